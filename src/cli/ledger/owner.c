/*
 * owner.c - which process owns a data directory.
 */
#include "cli/ledger/owner.h"

#include <stdlib.h>
#include <string.h>

#include "os/api.h"

#define WORDS 2 /* of its command line: "/usr/bin/cortex serve" */

static cx_str command_of(cx_cli *cli, const char *pid)
{
    cx_buf text;
    cx_buf_init(&text, cli->alloc);
    cx_machine_command(strtoull(pid, NULL, 10), WORDS, &text);
    cx_str kept =
        text.size == 0 ? (cx_str){NULL, 0} : cx_arena_copy_str(&cli->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return kept;
}

/* The lock file begins with the process id of its last owner (docs/formats/log.md). */
void cx_cli_owner_find(cx_cli *cli, const char *home_path, cx_cli_owner *out)
{
    const cx_io *io = cli->io;
    cx_str path = cx_arena_printf(&cli->arena, "%s/log/lock", home_path);
    cx_str socket = cx_arena_printf(&cli->arena, "%s/socket", home_path);
    cx_facts facts;
    cx_file file;
    size_t got = 0;
    *out = (cx_cli_owner){.held = false};
    if (path.data == NULL || socket.data == NULL || io->open(io, path.data, CX_IO_READ, &file) != 0)
        return;
    if (io->locked(io, file, &out->held) != 0)
        out->held = false;
    if (out->held && !cx_failed(cx_io_read_at(io, file, path.data, out->pid, sizeof out->pid - 1, 0,
                                              &got, NULL)))
        out->pid[strspn(out->pid, "0123456789")] = 0;
    (void)io->close(io, file);
    if (out->pid[0] != 0)
        out->command = command_of(cli, out->pid);
    out->socket = out->held && !cx_failed(cx_path_facts(socket.data, false, &facts, NULL)) &&
                  facts.kind == CX_FILE_SPECIAL;
}

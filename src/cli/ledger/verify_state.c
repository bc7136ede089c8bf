/*
 * verify_state.c - the file of `cortex verify --home --state FILE`: where it may be, and
 * interrupts.
 *
 * What it says about the log before its point is believed (ledger/check/kept.h), so it must be a
 * file of this user alone, and not in the data directory: a process that can write there could say
 * with it that everything was verified.
 */
#include <signal.h>
#include <string.h>

#include "cli/ledger/verify_parts.h"
#include "os/api.h"

static volatile sig_atomic_t end_requested;

static void on_end(int number)
{
    (void)number;
    end_requested = 1;
}

/* A second one ends it at once: what was kept is on the disk. */
void cx_cli_verify_begin_signals(void)
{
    struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
}

bool cx_cli_verify_goes_on(void *arg)
{
    (void)arg;
    return end_requested == 0;
}

static cx_status refuse(const char *path, const char *why, cx_err *err)
{
    return cx_fail_at(err, CX_E_USAGE, "StateNotPrivate", CX_NO_OFFSET,
                      "option --state: %s %s; what it says is believed, so name a file that only "
                      "you can write, in a folder that only you can write",
                      path, why);
}

static bool is_writable_by_others(const cx_facts *facts)
{
    return (facts->mode & 0022) != 0;
}

/* The folder has the side files of the database, too. */
static cx_status check_folder(cx_cli *cli, const char *path, cx_err *err)
{
    cx_facts facts;
    const char *slash = strrchr(path, '/');
    cx_str folder = slash == NULL ? CX_STR(".")
                    : slash == path
                        ? CX_STR("/")
                        : cx_arena_copy_str(&cli->arena, cx_str_from(path, (size_t)(slash - path)));
    if (folder.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_path_facts(folder.data, true, &facts, err));
    if (facts.kind != CX_FILE_FOLDER)
        return cx_fail(err, CX_E_USAGE, "option --state: %s is no folder", folder.data);
    if (facts.owner_id != cx_user_id() && facts.owner_id != 0)
        return refuse(path, "is in a folder of another user", err);
    return is_writable_by_others(&facts) ? refuse(path, "is in a folder that others can write", err)
                                         : CX_SUCCESS;
}

cx_status cx_cli_check_state_file(cx_cli *cli, const char *path, cx_err *err)
{
    cx_facts facts;
    cx_err failure = {0};
    CX_TRY(cx_cli_outside_homes(cli->io, path, err));
    CX_TRY(check_folder(cli, path, err));
    cx_status status = cx_path_facts(path, false, &facts, &failure);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (cx_failed(status))
        return cx_fail(err, status.code, "option --state: %s", failure.message);
    if (facts.kind != CX_FILE_REGULAR)
        return refuse(path, "is no regular file", err);
    if (facts.owner_id != cx_user_id())
        return refuse(path, "belongs to another user", err);
    return is_writable_by_others(&facts) ? refuse(path, "can be written by others", err)
                                         : CX_SUCCESS;
}

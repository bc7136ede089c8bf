/*
 * demo_files.c - the files of `cortex demo`: DIR/../share/cortex/demo, where DIR is the folder of
 * the program, in an installation as in a build tree.
 */
#include <string.h>

#include "cli/demo/demo.h"
#include "os/api.h"

#define DEMO_FILE_MAX (1 << 20)

cx_status cx_demo_read(cx_cli *cli, const char *name, cx_buf *out, cx_err *err)
{
    cx_buf program;
    cx_err why;
    cx_buf_init(&program, cli->alloc);
    cx_status status = cx_path_real(cx_machine_program(), &program, err);
    cx_str text = cx_buf_str(&program);
    while (text.size != 0 && text.data[text.size - 1] != '/')
        text.size--;
    cx_str path = cx_arena_printf(&cli->arena, "%.*s../share/cortex/demo/%s", (int)text.size,
                                  text.data == NULL ? "" : text.data, name);
    cx_buf_done(&program);
    CX_TRY(status);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    status = cx_io_read_file(cli->io, path.data, DEMO_FILE_MAX, out, &why);
    if (cx_failed(status))
        return cx_fail(err, why.code,
                       "%s; the demo reads its files from share/cortex/demo next to the folder of "
                       "the program: install the package, or build the whole tree",
                       why.message);
    return cx_buf_check(out, err);
}

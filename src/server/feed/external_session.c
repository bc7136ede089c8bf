/*
 * external_session.c - an archived session, with its subagents, as a lattice.
 */
#include "base/api.h"
#include "import/api.h"
#include "stores/api.h"
#include "server/feed/external_internal.h"

#define PREFIX "session/"

bool cx_external_is_session(cx_str branch)
{
    return cx_str_starts(branch, CX_STR(PREFIX));
}

static cx_status add_lines(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_buf *out = arg;
    cx_buf_add(out, bytes.data, bytes.size);
    return cx_buf_check(out, err);
}

cx_status cx_external_session_lines(cx_home *home, const cx_external_options *wanted, cx_buf *out,
                                    cx_err *err)
{
    cx_arena arena;
    cx_session_files files;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    size_t before = out->size;
    cx_str name =
        cx_str_from(wanted->branch.data + strlen(PREFIX), wanted->branch.size - strlen(PREFIX));
    options.alloc = out->alloc;
    cx_arena_init(&arena, out->alloc, 0);
    cx_status status = cx_session_files_find(home, name, &arena, &files, err);
    if (!cx_failed(status))
        status = cx_session_files_import(home, &files, wanted->max_bytes, &options, add_lines, out,
                                         NULL, NULL, err);
    cx_arena_done(&arena);
    if (cx_failed(status))
        out->size = before;
    return status;
}

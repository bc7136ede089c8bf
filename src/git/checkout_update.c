/*
 * checkout_update.c - updates a checkout to the commit that its branch has moved to (run.md §15).
 *
 * The record is one line: "FROM TO REF\n".  It decides only which two trees git walks between, and
 * git refuses to overwrite files that differ from both.
 */
#include "git/checkout_update.h"

#include <stdio.h>

#include "os/api.h"
#include "git/worktree.h"

#define LINE_BYTES_MAX 1024

static cx_status update_file_path(const cx_git *git, char out[CX_PATH_BYTES_MAX + 1], cx_err *err)
{
    int size = snprintf(out, CX_PATH_BYTES_MAX + 1, "%s/cortex-follow", cx_git_common_dir(git));
    if (size < 0 || size > CX_PATH_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "the path of the repository is too long");
    return CX_SUCCESS;
}

cx_status cx_checkout_update_begin(const cx_git *git, const cx_checkout_update *what, cx_err *err)
{
    CX_ASSERT(what->ref.size != 0 && what->to.size != 0);
    char path[CX_PATH_BYTES_MAX + 1], line[LINE_BYTES_MAX];
    char from[CX_OID_TEXT_SIZE], to[CX_OID_TEXT_SIZE];
    CX_TRY(update_file_path(git, path, err));
    cx_oid_text(&what->from, from);
    cx_oid_text(&what->to, to);
    int size =
        snprintf(line, sizeof line, "%s %s %.*s\n", from, to, (int)what->ref.size, what->ref.data);
    if (size < 0 || (size_t)size >= sizeof line)
        return cx_fail(err, CX_E_LIMIT, "the name of the main branch is too long");
    return cx_io_replace_file(cx_io_system(), path, (cx_bytes){(uint8_t *)line, (size_t)size}, err);
}

cx_status cx_checkout_update_end(const cx_git *git, cx_err *err)
{
    char path[CX_PATH_BYTES_MAX + 1];
    const cx_io *io = cx_io_system();
    CX_TRY(update_file_path(git, path, err));
    int failed = io->unlink(io, path);
    if (failed == 0 || cx_fail_os(NULL, -failed, "unlink").code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    return cx_fail_os(err, -failed, "%s", path);
}

static bool parse_update_line(cx_str line, size_t digits, cx_checkout_update *out)
{
    size_t head = 2 * (digits + 1);
    if (line.size < head + 2 || line.data[digits] != ' ' || line.data[head - 1] != ' ' ||
        line.data[line.size - 1] != '\n')
        return false;
    out->ref = (cx_str){line.data + head, line.size - head - 1};
    return cx_oid_parse((cx_str){line.data, digits}, &out->from) &&
           cx_oid_parse((cx_str){line.data + digits + 1, digits}, &out->to) &&
           cx_str_starts(out->ref, CX_STR("refs/heads/"));
}

static cx_status read_update_line(const cx_git *git, cx_arena *arena, cx_checkout_update *out,
                                  cx_err *err)
{
    char path[CX_PATH_BYTES_MAX + 1];
    cx_buf text;
    CX_TRY(update_file_path(git, path, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_io_read_file(cx_io_system(), path, LINE_BYTES_MAX, &text, err);
    if (!cx_failed(status)) {
        cx_str line = cx_arena_copy_str(arena, cx_buf_str(&text));
        if (line.data == NULL)
            status = cx_fail_nomem(err);
        else if (!parse_update_line(line, 2 * cx_git_oid_size(git), out))
            status = cx_fail(err, CX_E_FORMAT,
                             "%s is not a line of two commits and a branch; check that the "
                             "checkout matches its branch, then remove the file",
                             path);
    }
    cx_buf_done(&text);
    return status;
}

cx_status cx_checkout_update_find(const cx_git *git, cx_arena *arena, cx_checkout_update *out,
                                  bool *out_pending, cx_err *err)
{
    cx_oid now;
    *out_pending = false;
    CX_TRY(read_update_line(git, arena, out, err));
    cx_status status = cx_git_ref(git, out->ref, &now, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    *out_pending = cx_oid_eq(&now, &out->to);
    return CX_SUCCESS;
}

cx_status cx_checkout_refresh_index(const cx_git *checkout, cx_err *err)
{
    CX_ASSERT(!cx_git_is_hostile(checkout)); /* git.h I3 */
    /* Exit code 1 means that files differ; the next command on the checkout finds them. */
    int code = 0;
    cx_git_call call = {.args = CX_GIT_ARGS("update-index", "-q", "--refresh")};
    return cx_git_call_run(checkout, &call, NULL, &code, err);
}

cx_status cx_checkout_update_apply(const cx_git *checkout, const cx_oid *from, const cx_oid *to,
                                   cx_err *err)
{
    CX_ASSERT(!cx_git_is_hostile(checkout)); /* git.h I3 */
    char a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE];
    cx_oid_text(from, a);
    cx_oid_text(to, b);
    cx_git_call call = {.args = CX_GIT_ARGS("read-tree", "-m", "-u", a, b)};
    CX_TRY(cx_checkout_refresh_index(checkout, err));
    return cx_git_call_run(checkout, &call, NULL, NULL, err);
}

cx_status cx_checkout_update_target(const cx_git *git, const char *runtime_root, cx_str ref,
                                    cx_arena *arena, cx_git **out, cx_err *err)
{
    cx_worktree_listed *items;
    size_t count;
    *out = NULL;
    CX_TRY(cx_run_worktree_list(git, runtime_root, arena, &items, &count, err));
    for (size_t i = 0; i < count && *out == NULL; i++) {
        if (!cx_str_eq(items[i].branch, ref) || items[i].prunable || items[i].broken ||
            items[i].of_a_run)
            continue;
        const char *path = cx_arena_copy_str(arena, items[i].path).data;
        if (path == NULL)
            return cx_fail_nomem(err);
        const cx_git_checkout where = {.path = path, .git_dir = items[i].git_dir.data};
        CX_TRY(cx_git_open_checkout(git, &where, out, err));
    }
    return CX_SUCCESS;
}

cx_status cx_checkout_update_resume(const cx_git *git, const char *runtime_root, cx_arena *arena,
                                    const char **out_checkout, cx_err *err)
{
    cx_checkout_update begun;
    bool pending;
    cx_git *checkout = NULL;
    *out_checkout = NULL;
    cx_status status = cx_checkout_update_find(git, arena, &begun, &pending, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    if (pending)
        CX_TRY(cx_checkout_update_target(git, runtime_root, begun.ref, arena, &checkout, err));
    if (checkout != NULL) {
        *out_checkout = cx_arena_copy_str(arena, cx_str_z(cx_git_worktree(checkout))).data;
        status = *out_checkout == NULL
                     ? cx_fail_nomem(err)
                     : cx_checkout_update_apply(checkout, &begun.from, &begun.to, err);
        cx_git_close(checkout);
    } else {
        status = CX_SUCCESS;
    }
    if (cx_failed(status))
        *out_checkout = NULL;
    return cx_failed(status) ? status : cx_checkout_update_end(git, err);
}

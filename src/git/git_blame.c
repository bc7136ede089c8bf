/*
 * git_blame.c - which commit a line of the work tree came from.
 *
 * When git reads a file of a work tree it runs the filters that the repository's configuration and
 * attributes name, which are programs.  Blame must start none.  So git gets a neutral directory
 * that contains nothing but a configuration of two lines and uses the repository's objects as
 * alternates. The work tree's file is read here; where it differs from the one in HEAD, git gets a
 * temporary commit of it.
 */
#include "git/git.h"

#include <stdio.h>

#include "os/api.h"

#define FILE_BYTES_MAX ((size_t)64 << 20)
#define SHALLOW_BYTES_MAX ((size_t)16 << 20)
#define BRANCH "refs/heads/now"

typedef struct blame {
    const cx_git *git;
    const char *path;
    cx_oid head;
    cx_buf committed, now; /* the file */
    char folder[CX_PATH_BYTES_MAX + 1];
} blame;

static cx_status fail_no_line(const blame *b, const char *why, cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoLine", CX_NO_OFFSET, "%s %s", b->path, why);
}

/* --- the file --------------------------------------------------------------------------------- */

static cx_status read_worktree_file(blame *b, cx_err *err)
{
    cx_file top;
    cx_facts facts;
    CX_TRY(cx_folder_open(cx_git_worktree(b->git), &top, err));
    cx_status status = cx_folder_facts(top, b->path, &facts, err);
    if (status.code == CX_E_NOT_FOUND || status.code == CX_E_DENIED)
        status = fail_no_line(b, "is not in the work tree", err);
    else if (!cx_failed(status) && facts.kind != CX_FILE_REGULAR)
        status = fail_no_line(b, "is not a regular file", err);
    if (!cx_failed(status))
        status = cx_folder_read_file(top, b->path, FILE_BYTES_MAX, &b->now, err);
    cx_folder_close(top);
    return status;
}

static cx_status read_head_file(blame *b, cx_err *err)
{
    uint32_t mode;
    cx_status status = cx_git_resolve(b->git, CX_STR("HEAD"), &b->head, err);
    if (status.code == CX_E_NOT_FOUND)
        return fail_no_line(b, "is not committed: the repository has no commit yet", err);
    CX_TRY(status);
    CX_TRY(cx_git_show(b->git, &b->head, cx_str_z(b->path), FILE_BYTES_MAX, &b->committed, &mode,
                       err));
    if (mode != 0100644 && mode != 0100755)
        return fail_no_line(b, "is not a file of the newest commit", err);
    return CX_SUCCESS;
}

/* Whether the files are equal except for line ends (CRLF). */
static bool is_unchanged(const blame *b)
{
    cx_str now = cx_buf_str(&b->now), then = cx_buf_str(&b->committed);
    size_t at = 0;
    for (size_t i = 0; i < now.size; i++) {
        bool before_end = now.data[i] == '\r' && i + 1 < now.size && now.data[i + 1] == '\n';
        if (at < then.size && now.data[i] == then.data[at])
            at++;
        else if (!before_end)
            return false;
    }
    return at == then.size;
}

/* --- a neutral git directory ------------------------------------------------------------------ */

static cx_status write_text_file(cx_file folder, const char *path, cx_str text, cx_err *err)
{
    const cx_io *io = cx_io_system();
    cx_file file;
    CX_TRY(
        cx_folder_open_in(folder, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file, err));
    cx_status status = cx_io_write_all(io, file, path, text.data, text.size, err);
    cx_folder_close(file);
    return status;
}

/* Copies the `shallow` file; without it a shallow clone's commits would appear damaged. */
static cx_status copy_shallow(const blame *b, cx_file folder, cx_err *err)
{
    cx_file common;
    cx_buf text;
    CX_TRY(cx_folder_open(cx_git_common_dir(b->git), &common, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_folder_read_file(common, "shallow", SHALLOW_BYTES_MAX, &text, err);
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS;
    else if (!cx_failed(status))
        status = write_text_file(folder, "shallow", cx_buf_str(&text), err);
    cx_folder_close(common);
    cx_buf_done(&text);
    return status;
}

static cx_status fill_neutral_git_dir(const blame *b, cx_file folder, cx_err *err)
{
    char head[CX_OID_TEXT_SIZE + 1], objects[CX_PATH_BYTES_MAX + 16];
    char name[CX_OID_TEXT_SIZE];
    bool is_sha256 = cx_git_oid_size(b->git) == 32;
    cx_oid_text(&b->head, name);
    (void)snprintf(head, sizeof head, "%s\n", name);
    int size = snprintf(objects, sizeof objects, "%s/objects\n", cx_git_common_dir(b->git));
    if (size < 0 || (size_t)size >= sizeof objects)
        return cx_fail(err, CX_E_LIMIT, "the path of the repository is too long");
    CX_TRY(cx_folder_make_folders(folder, "objects/info", 0700, err));
    CX_TRY(cx_folder_make_folders(folder, "refs", 0700, err));
    CX_TRY(write_text_file(folder, "objects/info/alternates", cx_str_z(objects), err));
    CX_TRY(write_text_file(folder, "config",
                           is_sha256 ? CX_STR("[core]\nbare = true\nrepositoryformatversion = 1\n"
                                              "[extensions]\nobjectFormat = sha256\n")
                                     : CX_STR("[core]\nbare = true\nrepositoryformatversion = 0\n"),
                           err));
    CX_TRY(copy_shallow(b, folder, err));
    return write_text_file(folder, "HEAD", cx_str_z(head), err);
}

static cx_status make_neutral_git_dir(blame *b, cx_err *err)
{
    cx_file folder;
    CX_TRY(cx_path_make_temporary(b->folder, err));
    CX_TRY(cx_folder_open(b->folder, &folder, err));
    cx_status status = fill_neutral_git_dir(b, folder, err);
    cx_folder_close(folder);
    return status;
}

/* --- running blame ---------------------------------------------------------------------------- */

static void add_quoted(cx_buf *out, const char *path)
{
    cx_buf_add_z(out, "\"");
    for (; *path != '\0'; path++) {
        if (*path == '\n') {
            cx_buf_add_z(out, "\\n");
            continue;
        }
        if (*path == '"' || *path == '\\')
            cx_buf_add_z(out, "\\");
        cx_buf_add(out, path, 1);
    }
    cx_buf_add_z(out, "\"");
}

/* Commits the work tree's file on top of HEAD, in the neutral directory only. */
static cx_status commit_worktree_file(const blame *b, cx_oid *out, cx_err *err)
{
    char head[CX_OID_TEXT_SIZE];
    cx_buf stream, printed;
    cx_buf_init(&stream, cx_alloc_default());
    cx_buf_init(&printed, cx_alloc_default());
    cx_oid_text(&b->head, head);
    cx_buf_printf(&stream,
                  "commit " BRANCH "\nmark :1\n"
                  "committer Not Committed Yet <not.committed.yet> 0 +0000\n"
                  "data 0\n\nfrom %s\nM 100644 inline ",
                  head);
    add_quoted(&stream, b->path);
    cx_str now = cx_buf_str(&b->now);
    cx_buf_printf(&stream, "\ndata %zu\n", now.size);
    cx_buf_add(&stream, now.data, now.size);
    cx_buf_add_z(&stream, "\n\nget-mark :1\n");
    cx_git_call call = {.args = CX_GIT_ARGS("fast-import", "--quiet"),
                        .input = cx_buf_bytes(&stream),
                        .git_dir = b->folder};
    cx_status status = cx_buf_check(&stream, err);
    if (!cx_failed(status))
        status = cx_git_call_run(b->git, &call, &printed, NULL, err);
    if (!cx_failed(status)) {
        cx_str name = cx_buf_str(&printed);
        if (name.size != 0 && name.data[name.size - 1] == '\n')
            name.size--;
        if (!cx_oid_parse(name, out))
            status = cx_fail(err, CX_E_FORMAT, "git does not say what commit it made");
    }
    cx_buf_done(&stream);
    cx_buf_done(&printed);
    return status;
}

static cx_status run_blame(const blame *b, const char *line, const cx_oid *commit, cx_buf *out,
                           cx_err *err)
{
    char name[CX_OID_TEXT_SIZE], range[64];
    int code = 0;
    int size = snprintf(range, sizeof range, "-L%s,%s", line, line);
    cx_oid_text(commit, name);
    cx_git_call call = {.args = CX_GIT_ARGS("blame", "--porcelain", "--no-progress",
                                            "--no-textconv", range, name, "--", b->path),
                        .git_dir = b->folder};
    if (size < 0 || (size_t)size >= sizeof range)
        return fail_no_line(b, "has no line of that number", err);
    CX_TRY(cx_git_call_run(b->git, &call, out, &code, err));
    return code != 0
               ? fail_no_line(b, "has no line of that number, or its history is not all here", err)
               : CX_SUCCESS;
}

cx_status cx_git_blame(const cx_git *git, const char *path, const char *line, cx_buf *out,
                       cx_oid *out_now, cx_err *err)
{
    blame b = {.git = git, .path = path};
    cx_status status;
    CX_ASSERT(!cx_git_is_hostile(git));
    cx_buf_init(&b.committed, cx_alloc_default());
    cx_buf_init(&b.now, cx_alloc_default());
    *out_now = (cx_oid){.size = 0};
    CX_TRY_GOTO(status, read_worktree_file(&b, err));
    CX_TRY_GOTO(status, read_head_file(&b, err));
    CX_TRY_GOTO(status, make_neutral_git_dir(&b, err));
    if (!is_unchanged(&b))
        CX_TRY_GOTO(status, commit_worktree_file(&b, out_now, err));
    CX_TRY_GOTO(status, run_blame(&b, line, out_now->size == 0 ? &b.head : out_now, out, err));
done:
    cx_buf_done(&b.committed);
    cx_buf_done(&b.now);
    if (b.folder[0] != '\0')
        (void)cx_failed(cx_path_remove_tree(b.folder, NULL));
    return status;
}

/*
 * init_repo.c - preparing a repository for governed runs (run.md §20 init).
 *
 *   I1  Nothing is overwritten and no symbolic link is followed: files are made with O_EXCL beneath
 *       the work tree, .gitignore is only appended to, and only when it is a regular file.
 *   I2  Doing it twice changes nothing the second time.
 *   I3  A plan goes the same way and writes nothing.
 */
#include "cli/run/init_repo.h"

#include "os/api.h"
#include "rules/api.h"

enum { IGNORE_BYTES_MAX = 1 << 20, FOLDER_MODE = 0755 };

typedef struct preparing {
    cx_cli *cli;
    cx_cli_place *place;
    cx_file folder; /* the work tree */
    bool plan;      /* I3 */
    cx_cli_prepared *out;
} preparing;

static cx_status record_file(preparing *p, cx_str path, bool policy, bool schema, cx_err *err)
{
    cx_str kept = cx_arena_copy_str(&p->cli->arena, path);
    cx_str *slot = kept.data == NULL ? NULL : cx_vec_push(&p->out->created, p->cli->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = kept;
    if (policy && (slot = cx_vec_push(&p->out->policies, p->cli->alloc)) != NULL)
        *slot = kept;
    if (schema && (slot = cx_vec_push(&p->out->schemas, p->cli->alloc)) != NULL)
        *slot = kept;
    return slot == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- files ------------------------------------------------------------------------------------ */

/* A new file; *out_made is false when there is something already, whatever it is. */
static cx_status make_file(preparing *p, const char *path, cx_bytes contents, bool *out_made,
                           cx_err *err)
{
    const unsigned flags = CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE | CX_IO_PUBLIC;
    const cx_io *io = p->cli->io;
    cx_file file;
    cx_facts facts;
    cx_err own = {0};
    *out_made = false;
    cx_status status = cx_folder_facts(p->folder, path, &facts, &own);
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code != CX_E_NOT_FOUND) {
        *err = own;
        return status;
    }
    if (p->plan) {
        *out_made = true;
        return CX_SUCCESS;
    }
    CX_TRY(cx_folder_open_in(p->folder, path, flags, &file, err));
    status = cx_io_write_all(io, file, path, contents.data, contents.size, err);
    if (io->close(io, file) != 0 && !cx_failed(status))
        status = cx_fail(err, CX_E_IO, "cannot write %s", path);
    *out_made = true;
    return status;
}

/* --- policies/cortex.json --------------------------------------------------------------------- */

/* Letters that need no escape in JSON and mean nothing to git. */
static bool is_plain(cx_str name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._/-+@#";
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == 0 || strchr(letters, name.data[i]) == NULL)
            return false;
    return name.size != 0 && name.size <= 255;
}

static cx_str text_after(cx_str text, size_t size)
{
    return (cx_str){text.data + size, text.size - size};
}

/*
 * The branch that runs merge into: main when there is one or HEAD is no branch, else master, else
 * the one that is checked out.
 */
static cx_status choose_main(preparing *p, cx_str *out, cx_err *err)
{
    static const cx_str heads = {"refs/heads/", 11};
    static const char *const usual[] = {"refs/heads/main", "refs/heads/master"};
    cx_str ref;
    cx_oid oid;
    *out = CX_STR("main");
    for (size_t i = 0; i < CX_COUNT_OF(usual); i++) {
        cx_str name = cx_str_z(usual[i]);
        if (!cx_failed(cx_git_ref(p->place->git, name, &oid, NULL))) {
            *out = text_after(name, heads.size);
            return CX_SUCCESS;
        }
    }
    CX_TRY(cx_git_head_ref(p->place->git, &p->cli->arena, &ref, err));
    if (cx_str_starts(ref, heads) && is_plain(text_after(ref, heads.size)))
        *out = text_after(ref, heads.size);
    return CX_SUCCESS;
}

/* `contents` with the branch of this repository. */
static cx_status with_main(preparing *p, cx_bytes *contents, cx_err *err)
{
    static const cx_str member = {"\"main_branch\": \"main\"", 21};
    cx_str text = cx_bytes_str(*contents), branch;
    CX_TRY(choose_main(p, &branch, err));
    for (size_t i = 0; i + member.size <= text.size; i++) {
        if (memcmp(text.data + i, member.data, member.size) != 0)
            continue;
        size_t after = i + member.size;
        cx_str whole = cx_arena_printf(&p->cli->arena, "%.*s\"main_branch\": \"%.*s\"%.*s", (int)i,
                                       text.data, (int)branch.size, branch.data,
                                       (int)(text.size - after), text.data + after);
        if (whole.data == NULL)
            return cx_fail_nomem(err);
        *contents = cx_str_bytes(whole);
        break;
    }
    return CX_SUCCESS;
}

/* Not what `demo` and fleets need of the program, nor schemas of this program's answers: those are
 * no part of anybody's repository. */
static bool is_of_runs(cx_str name)
{
    return cx_str_starts(name, CX_STR("policies/")) ||
           (cx_str_starts(name, CX_STR("schemas/")) &&
            !cx_str_starts(name, CX_STR("schemas/answers/")));
}

static cx_status make_assets(preparing *p, cx_err *err)
{
    size_t count;
    const cx_run_asset_file *files = cx_run_assets(&count);
    for (size_t i = 0; i < count; i++) {
        cx_str name = cx_str_z(files[i].name);
        cx_bytes contents = {files[i].data, files[i].size};
        bool made;
        if (!is_of_runs(name))
            continue;
        const char *slash = strrchr(files[i].name, '/');
        cx_str folder = cx_arena_copy_str(
            &p->cli->arena,
            cx_str_from(name.data, slash == NULL ? 0 : (size_t)(slash - files[i].name)));
        if (folder.data == NULL)
            return cx_fail_nomem(err);
        if (!p->plan)
            CX_TRY(cx_folder_make_folders(p->folder, folder.data, FOLDER_MODE, err));
        if (strcmp(files[i].name, "policies/cortex.json") == 0)
            CX_TRY(with_main(p, &contents, err));
        CX_TRY(make_file(p, files[i].name, contents, &made, err));
        if (made)
            CX_TRY(record_file(p, name, cx_str_starts(name, CX_STR("policies/")),
                               cx_str_starts(name, CX_STR("schemas/")), err));
    }
    return CX_SUCCESS;
}

/* --- .gitignore ------------------------------------------------------------------------------- */

/* Appends one line; false when the file cannot be written. */
static cx_status append_line(preparing *p, cx_str line, bool *out_done, cx_err *err)
{
    static const char path[] = ".gitignore";
    const cx_io *io = p->cli->io;
    cx_facts facts;
    cx_file file;
    cx_buf text;
    uint64_t size = 0;
    cx_status status = cx_folder_facts(p->folder, path, &facts, NULL);
    *out_done = false;
    if (status.code == CX_E_NOT_FOUND)
        return make_file(p, path, cx_str_bytes(line), out_done, err);
    if (cx_failed(status) || facts.kind != CX_FILE_REGULAR)
        return CX_SUCCESS; /* I1 */
    if (p->plan) {
        *out_done = true;
        return CX_SUCCESS;
    }
    cx_buf_init(&text, p->cli->alloc);
    status = cx_folder_read_file(p->folder, path, IGNORE_BYTES_MAX, &text, NULL);
    if (!cx_failed(status) &&
        !cx_failed(cx_folder_open_in(p->folder, path, CX_IO_WRITE, &file, NULL))) {
        size = text.size;
        bool open_end = size != 0 && text.data[size - 1] != '\n';
        cx_buf_clear(&text);
        cx_buf_add_z(&text, open_end ? "\n" : "");
        cx_buf_add_str(&text, line);
        status = cx_buf_check(&text, err);
        if (!cx_failed(status))
            status = cx_io_write_at(io, file, path, text.data, text.size, size, err);
        (void)io->close(io, file);
        *out_done = !cx_failed(status);
    } else {
        status = CX_SUCCESS;
    }
    cx_buf_done(&text);
    return status;
}

/* Whether git ignores the contents of the runtime root. */
static cx_status is_root_ignored(preparing *p, bool *out, cx_err *err)
{
    cx_str inside = p->place->ground.runtime_root;
    cx_str probe = cx_arena_printf(&p->cli->arena, "%.*s/runs", (int)inside.size, inside.data);
    if (probe.data == NULL)
        return cx_fail_nomem(err);
    *out = true;
    return inside.size == 0 ? CX_SUCCESS : cx_git_is_ignored(p->place->git, probe.data, out, err);
}

static cx_status ignore_root(preparing *p, cx_err *err)
{
    bool ignored, done;
    cx_facts facts;
    cx_str inside = p->place->ground.runtime_root, line;
    p->out->gitignore = "refused";
    if (!cx_failed(cx_folder_facts(p->folder, ".gitignore", &facts, NULL)) &&
        facts.kind != CX_FILE_REGULAR) /* git itself would wait for a FIFO */
        return CX_SUCCESS;
    p->out->gitignore = "ok";
    CX_TRY(is_root_ignored(p, &ignored, err));
    if (ignored)
        return CX_SUCCESS;
    line = cx_str_starts(inside, CX_STR(".runtime-cache/"))
               ? CX_STR(".runtime-cache/\n")
               : cx_arena_printf(&p->cli->arena, "/%.*s/\n", (int)inside.size, inside.data);
    if (line.data == NULL)
        return cx_fail_nomem(err);
    p->out->gitignore = "refused";
    CX_TRY(append_line(p, line, &done, err));
    if (!done)
        return CX_SUCCESS;
    if (!p->plan)
        CX_TRY(is_root_ignored(p, &ignored, err));
    if (ignored || p->plan) {
        p->out->gitignore = "added";
        CX_TRY(record_file(p, CX_STR(".gitignore"), false, false, err));
    }
    return CX_SUCCESS;
}

/* --- all of it -------------------------------------------------------------------------------- */

static cx_status make_root(preparing *p, cx_err *err)
{
    cx_run_store store;
    cx_facts facts;
    bool there = !cx_failed(cx_path_facts(p->place->root, false, &facts, NULL));
    if (!p->plan)
        CX_TRY(cx_run_store_open(&store, p->place->root, true, p->cli->io, p->cli->alloc, err));
    cx_str inside = p->place->ground.runtime_root;
    return there ? CX_SUCCESS
                 : record_file(p, inside.size == 0 ? cx_str_z(p->place->root) : inside, false,
                               false, err);
}

/* A folder that git ignores is a build folder, not part of the project. */
static cx_status is_own_folder(cx_cli *cli, const cx_cli_place *place, bool *out, cx_err *err)
{
    cx_buf here;
    size_t size = strlen(place->worktree);
    bool ignored = false;
    cx_buf_init(&here, cli->alloc);
    cx_status status = cx_path_real(".", &here, err);
    const char *path = cx_failed(status) ? NULL : cx_buf_z(&here);
    if (path != NULL && strncmp(path, place->worktree, size) == 0 && path[size] == '/')
        status = cx_git_is_ignored(place->git, path + size + 1, &ignored, err);
    cx_buf_done(&here);
    *out = !ignored;
    return status;
}

static cx_status prepare_or_plan(cx_cli *cli, bool plan, cx_cli_prepared *out, cx_err *err)
{
    cx_cli_place place;
    cx_err own = {0};
    preparing p = {.cli = cli, .place = &place, .folder = CX_FILE_NONE, .plan = plan, .out = out};
    memset(out, 0, sizeof *out);
    cx_status status = cx_cli_place_open_at(cli, NULL, &place, &own);
    if (status.code == CX_E_NOT_FOUND || status.code == CX_E_UNSUPPORTED)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        *err = own;
        return status;
    }
    CX_TRY_GOTO(status, is_own_folder(cli, &place, &out->prepared, err));
    if (!out->prepared)
        goto done;
    cx_str root = cx_arena_copy_str(&cli->arena, cx_str_z(place.root));
    out->root = root.data;
    if (root.data == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status))
        CX_TRY_GOTO(status, cx_folder_open(place.worktree, &p.folder, err));
    CX_TRY_GOTO(status, ignore_root(&p, err));
    CX_TRY_GOTO(status, make_root(&p, err));
    CX_TRY_GOTO(status, make_assets(&p, err));
done:
    cx_folder_close(p.folder);
    cx_cli_place_close(&place);
    return status;
}

cx_status cx_cli_prepare_repo(cx_cli *cli, cx_cli_prepared *out, cx_err *err)
{
    return prepare_or_plan(cli, false, out, err);
}

cx_status cx_cli_plan_repo(cx_cli *cli, cx_cli_prepared *out, cx_err *err)
{
    return prepare_or_plan(cli, true, out, err);
}

void cx_cli_prepared_done(cx_cli *cli, cx_cli_prepared *prepared)
{
    cx_vec_done(&prepared->created, cli->alloc);
    cx_vec_done(&prepared->policies, cli->alloc);
    cx_vec_done(&prepared->schemas, cli->alloc);
}

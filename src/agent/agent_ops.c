/*
 * agent_ops.c - applies the operations of a replay script below one folder.
 */
#include "agent/agent_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/api.h"
#include "crypto/api.h"

#define GIT "/usr/bin/git"
#define GIT_TIMEOUT_MS 120000
#define ARGUMENTS_MAX 64
#define COPY_BYTES_MAX ((size_t)1 << 30)
#define ERRORS_BYTES_MAX 4096

typedef struct op_context {
    cx_file folder;
    const char *worktree;
    const char *args[ARGUMENTS_MAX + 1]; /* of the operation, terminated; its name first */
    size_t count;
    cx_str text; /* the last argument, which may hold any character */
    cx_arena arena;
    cx_buf bytes;
} op_context;

typedef cx_status operation(op_context *w, cx_err *err);

/* --- files ------------------------------------------------------------------------------------ */

static cx_status make_parents(op_context *w, const char *path, cx_err *err)
{
    const char *end = strrchr(path, '/');
    if (end == NULL || end == path)
        return CX_SUCCESS;
    cx_str parent = cx_arena_copy_str(&w->arena, (cx_str){path, (size_t)(end - path)});
    if (parent.data == NULL)
        return cx_fail_nomem(err);
    return cx_folder_make_folders(w->folder, parent.data, 0755, err);
}

static cx_status write_path(op_context *w, const char *path, unsigned how, cx_bytes bytes,
                            cx_err *err)
{
    const cx_io *io = cx_io_system();
    cx_file file;
    CX_TRY(make_parents(w, path, err));
    CX_TRY(cx_folder_open_in(w->folder, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_PUBLIC | how,
                             &file, err));
    cx_status status = CX_SUCCESS;
    if ((how & CX_IO_TRUNCATE) == 0) {
        uint64_t size = 0;
        bool regular = false;
        int code = io->size(io, file, &size, &regular);
        status = code != 0 ? cx_fail_os(err, -code, "cannot read the file information of %s", path)
                           : cx_io_write_at(io, file, path, bytes.data, bytes.size, size, err);
    } else {
        status = cx_io_write_all(io, file, path, bytes.data, bytes.size, err);
    }
    (void)io->close(io, file);
    return status;
}

static cx_status op_write(op_context *w, cx_err *err)
{
    return write_path(w, w->args[1], CX_IO_TRUNCATE, cx_str_bytes(w->text), err);
}

static cx_status op_append(op_context *w, cx_err *err)
{
    return write_path(w, w->args[1], 0, cx_str_bytes(w->text), err);
}

static cx_status op_write_b64(op_context *w, cx_err *err)
{
    if (!cx_base64_decode(w->text, CX_BASE64, &w->bytes))
        return cx_fail(err, CX_E_FORMAT, "the text is not base64");
    CX_TRY(cx_buf_check(&w->bytes, err));
    return write_path(w, w->args[1], CX_IO_TRUNCATE, cx_buf_bytes(&w->bytes), err);
}

static cx_status op_copy(op_context *w, cx_err *err)
{
    cx_facts facts;
    CX_TRY(cx_folder_facts(w->folder, w->args[1], &facts, err));
    CX_TRY(cx_folder_read_file(w->folder, w->args[1], COPY_BYTES_MAX, &w->bytes, err));
    CX_TRY(write_path(w, w->args[2], CX_IO_TRUNCATE, cx_buf_bytes(&w->bytes), err));
    return (facts.mode & 0111) != 0 ? cx_folder_set_mode(w->folder, w->args[2], 0755, err)
                                    : CX_SUCCESS;
}

static cx_status op_rename(op_context *w, cx_err *err)
{
    CX_TRY(make_parents(w, w->args[2], err));
    return cx_folder_rename(w->folder, w->args[1], w->args[2], err);
}

static cx_status op_delete(op_context *w, cx_err *err)
{
    cx_facts facts;
    CX_TRY(cx_folder_facts(w->folder, w->args[1], &facts, err));
    return cx_folder_remove_tree(w->folder, w->args[1], err);
}

/* A link replaces an existing file. */
static cx_status clear_for_link(op_context *w, const char *path, cx_err *err)
{
    CX_TRY(make_parents(w, path, err));
    cx_status status = cx_folder_remove(w->folder, path, err);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

static cx_status op_symlink(op_context *w, cx_err *err)
{
    CX_TRY(clear_for_link(w, w->args[2], err));
    return cx_folder_make_link(w->folder, w->args[1], w->args[2], err);
}

static cx_status op_hardlink(op_context *w, cx_err *err)
{
    CX_TRY(clear_for_link(w, w->args[2], err));
    return cx_folder_make_hard_link(w->folder, w->args[1], w->args[2], err);
}

static cx_status op_chmod(op_context *w, cx_err *err)
{
    char *end = NULL;
    unsigned long mode = strtoul(w->args[2], &end, 8);
    if (*w->args[2] == 0 || *end != 0 || mode > 07777)
        return cx_fail(err, CX_E_FORMAT, "'%.20s' is not an octal mode from 0 to 7777", w->args[2]);
    return cx_folder_set_mode(w->folder, w->args[1], (uint32_t)mode, err);
}

static cx_status op_mkfifo(op_context *w, cx_err *err)
{
    CX_TRY(make_parents(w, w->args[1], err));
    return cx_folder_make_fifo(w->folder, w->args[1], err);
}

static cx_status op_mkdir(op_context *w, cx_err *err)
{
    return cx_folder_make_folders(w->folder, w->args[1], 0755, err);
}

static cx_status op_touch(op_context *w, cx_err *err)
{
    return cx_folder_touch(w->folder, w->args[1], err);
}

/* --- git -------------------------------------------------------------------------------------- */

/* Passes a variable on: the sandbox sets where new objects go (sandbox.h); all other variables are
 * fixed. */
static void copy_variable(op_context *w, const char *name, const char **slot)
{
    const char *value = getenv(name);
    *slot = value == NULL ? NULL : cx_arena_printf(&w->arena, "%s=%s", name, value).data;
}

static cx_status run_git_op(op_context *w, const char *const *args, cx_buf *out, cx_err *err)
{
    const char *env[16] = {"PATH=/usr/bin:/bin",
                           "LC_ALL=C",
                           "HOME=/nonexistent",
                           "GIT_CONFIG_NOSYSTEM=1",
                           "GIT_CONFIG_GLOBAL=/dev/null",
                           "GIT_TERMINAL_PROMPT=0",
                           "GIT_EDITOR=true",
                           "GIT_AUTHOR_NAME=Cortex Agent",
                           "GIT_AUTHOR_EMAIL=agent@example.invalid",
                           "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
                           "GIT_COMMITTER_NAME=Cortex Agent",
                           "GIT_COMMITTER_EMAIL=agent@example.invalid",
                           "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z"};
    const char *argv[ARGUMENTS_MAX + 8] = {
        GIT,  "-c",       "core.hooksPath=/dev/null", "-c", "core.logAllRefUpdates=false",
        "-c", "gc.auto=0"};
    size_t count = 7;
    for (size_t i = 0; args[i] != NULL && count + 1 < CX_COUNT_OF(argv); i++)
        argv[count++] = args[i];
    copy_variable(w, "GIT_OBJECT_DIRECTORY", &env[13]);
    if (env[13] != NULL)
        copy_variable(w, "GIT_ALTERNATE_OBJECT_DIRECTORIES", &env[14]);
    cx_buf output;
    cx_buf_init(&output, w->arena.alloc);
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_result result;
    how.argv = argv;
    how.envp = env;
    how.cwd = w->worktree;
    if (out != NULL)
        how.out = cx_spawn_to_buf(out, 65536);
    how.errout =
        (cx_spawn_output){CX_SPAWN_OUT_BUF, &output, CX_FILE_NONE, ERRORS_BYTES_MAX, false};
    how.timeout_ms = GIT_TIMEOUT_MS;
    cx_status status = cx_spawn_run(&how, &result, err);
    if (!cx_failed(status) && cx_spawn_exit(&result) != 0) {
        const char *end = output.size == 0 ? NULL : memchr(output.data, '\n', output.size);
        int size = (int)(end == NULL ? output.size : (size_t)(end - (const char *)output.data));
        status = cx_fail(err, CX_E_FORMAT, "git %s exits with %d: %.*s", args[0],
                         cx_spawn_exit(&result), size, (const char *)output.data);
    }
    cx_buf_done(&output);
    return status;
}

static cx_status op_git(op_context *w, cx_err *err)
{
    return run_git_op(w, w->args + 1, NULL, err);
}

/* Adds an index entry of a submodule without a submodule. */
static cx_status op_gitlink(op_context *w, cx_err *err)
{
    static const char *const head[] = {"rev-parse", "--verify", "HEAD", NULL};
    CX_TRY(run_git_op(w, head, &w->bytes, err));
    while (w->bytes.size != 0 && w->bytes.data[w->bytes.size - 1] == '\n')
        w->bytes.size--;
    cx_str entry = cx_arena_printf(&w->arena, "160000,%.*s,%s", (int)w->bytes.size,
                                   (const char *)w->bytes.data, w->args[1]);
    if (entry.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_make_folders(w->folder, w->args[1], 0755, err));
    const char *const add[] = {"update-index", "--add", "--cacheinfo", entry.data, NULL};
    return run_git_op(w, add, NULL, err);
}

/* --- the list --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t least, most; /* arguments */
    operation *apply;
} operations[] = {
    {"write", 2, 2, op_write},
    {"append", 2, 2, op_append},
    {"write_b64", 2, 2, op_write_b64},
    {"copy", 2, 2, op_copy},
    {"rename", 2, 2, op_rename},
    {"delete", 1, 1, op_delete},
    {"symlink", 2, 2, op_symlink},
    {"hardlink", 2, 2, op_hardlink},
    {"chmod", 2, 2, op_chmod},
    {"mkfifo", 1, 1, op_mkfifo},
    {"mkdir", 1, 1, op_mkdir},
    {"touch", 1, 1, op_touch},
    {"git", 1, ARGUMENTS_MAX - 1, op_git},
    {"gitlink", 1, 1, op_gitlink},
};

static size_t find_operation(const cx_json *op)
{
    size_t i = 0;
    cx_str name = op->type == CX_JSON_ARRAY && op->count != 0 && op->items[0].type == CX_JSON_STRING
                      ? cx_json_text(&op->items[0])
                      : (cx_str){0};
    while (i < CX_COUNT_OF(operations) && !cx_str_is(name, operations[i].name))
        i++;
    return i;
}

static cx_status check_operation(const cx_json *op, size_t index, cx_err *err)
{
    size_t which = find_operation(op);
    if (which == CX_COUNT_OF(operations))
        return cx_fail(
            err, CX_E_FORMAT,
            "operation %zu has an unknown name; expected one of write append write_b64 copy rename "
            "delete symlink hardlink chmod mkfifo mkdir touch git gitlink",
            index);
    size_t arguments = op->count - 1u;
    if (arguments < operations[which].least || arguments > operations[which].most)
        return cx_fail(err, CX_E_FORMAT, "operation %zu (%s) has %zu arguments", index,
                       operations[which].name, arguments);
    bool holds_text = operations[which].apply == op_write || operations[which].apply == op_append;
    for (size_t i = 1; i < op->count; i++) {
        cx_str text =
            op->items[i].type == CX_JSON_STRING ? cx_json_text(&op->items[i]) : (cx_str){0};
        bool any = holds_text && i == 2;
        if (op->items[i].type != CX_JSON_STRING ||
            (!any && text.size != 0 && memchr(text.data, 0, text.size) != NULL))
            return cx_fail(err, CX_E_FORMAT,
                           "operation %zu (%s): argument %zu is not a usable text", index,
                           operations[which].name, i);
    }
    return CX_SUCCESS;
}

cx_status cx_agent_ops_check(const cx_json *ops, cx_err *err)
{
    if (ops->type != CX_JSON_ARRAY)
        return cx_fail(err, CX_E_FORMAT, "operations are an array of arrays");
    if (ops->count > CX_AGENT_OPS_MAX)
        return cx_fail(err, CX_E_LIMIT, "%u operations are more than %d", ops->count,
                       CX_AGENT_OPS_MAX);
    for (size_t i = 0; i < ops->count; i++)
        CX_TRY(check_operation(&ops->items[i], i, err));
    return CX_SUCCESS;
}

cx_status cx_agent_op_apply(const char *worktree, const cx_json *op, const cx_alloc *alloc,
                            cx_err *err)
{
    CX_ASSERT(op->type == CX_JSON_ARRAY);
    op_context w = {.worktree = worktree};
    cx_arena_init(&w.arena, alloc, 0);
    cx_buf_init(&w.bytes, alloc);
    cx_status status = CX_SUCCESS;
    for (; w.count < op->count; w.count++) {
        w.text = cx_json_text(&op->items[w.count]);
        w.args[w.count] = cx_arena_copy_str(&w.arena, w.text).data;
        if (w.args[w.count] == NULL)
            CX_TRY_GOTO(status, cx_fail_nomem(err));
    }
    CX_TRY_GOTO(status, cx_folder_open(worktree, &w.folder, err));
    status = operations[find_operation(op)].apply(&w, err);
    cx_folder_close(w.folder);
done:
    cx_buf_done(&w.bytes);
    cx_arena_done(&w.arena);
    return status;
}

/* --- the program ------------------------------------------------------------------------------ */

static cx_status report_failed_op(size_t index, const cx_json *op, const cx_err *failure,
                                  cx_arena *arena, cx_err *err)
{
    cx_json_list line = cx_json_list_begin(arena);
    cx_json_list_put(&line, CX_STR("error"), cx_json_make_str(cx_str_z(failure->message)));
    cx_json_list_put(&line, CX_STR("name"), op->items[0]);
    cx_json_list_put(&line, CX_STR("op"), cx_json_make_uint(arena, index));
    cx_json value;
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_json_list_end_object(&line, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    cx_buf_add_byte(&text, '\n');
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_io_write_all(cx_io_system(), 1, "standard output", text.data, text.size, err);
    cx_buf_done(&text);
    return status;
}

int cx_agent_ops_main(void)
{
    cx_arena arena;
    cx_buf text;
    cx_json ops;
    cx_err err = {0}, failure = {0};
    int code = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_io_read_file(cx_io_system(), "-", CX_RUN_JSON_BYTES_MAX, &text, &err);
    if (!cx_failed(status))
        status = cx_run_json_read(cx_buf_str(&text), 0, &arena, &ops, &err);
    if (!cx_failed(status))
        status = cx_agent_ops_check(&ops, &err);
    for (size_t i = 0; !cx_failed(status) && i < ops.count; i++) {
        if (!cx_failed(cx_agent_op_apply(".", &ops.items[i], cx_alloc_default(), &failure)))
            continue;
        code = 1;
        status = report_failed_op(i, &ops.items[i], &failure, &arena, &err);
    }
    if (cx_failed(status)) {
        (void)fprintf(stderr, "cortex: %s: %s\n", CX_AGENT_OPS, err.message);
        code = 2;
    }
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return code;
}

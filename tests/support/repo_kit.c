/*
 * repo_kit.c - real repositories for tests.
 */
#include "tests/support/repo_kit.h"

#include <stdio.h>

#include "os/spawn.h"
#include "base/hex.h"

static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                          "HOME=/nonexistent",
                                          "LC_ALL=C",
                                          "GIT_CONFIG_NOSYSTEM=1",
                                          "GIT_CONFIG_GLOBAL=/dev/null",
                                          "GIT_TERMINAL_PROMPT=0",
                                          "GIT_EDITOR=true",
                                          "GIT_AUTHOR_NAME=Cortex Test",
                                          "GIT_AUTHOR_EMAIL=test@example.invalid",
                                          "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
                                          "GIT_COMMITTER_NAME=Cortex Test",
                                          "GIT_COMMITTER_EMAIL=test@example.invalid",
                                          "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
                                          NULL};

cx_status repo_git_argv(repo_kit *kit, const char *const *args, cx_err *err)
{
    const char *argv[64] = {"/usr/bin/git", "-c", "core.hooksPath=/dev/null", "-c",
                            "commit.gpgSign=false"};
    size_t count = 5;
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_result result;
    for (size_t i = 0; args[i] != NULL && count < CX_COUNT_OF(argv) - 1; i++)
        argv[count++] = args[i];
    cx_buf_clear(&kit->said);
    how.argv = argv;
    how.envp = environment;
    how.cwd = kit->path;
    how.out = cx_spawn_to_buf(&kit->said, UINT64_C(64) << 20);
    how.errout.to = CX_SPAWN_OUT_JOIN;
    CX_TRY(cx_spawn_run(&how, &result, err));
    if (cx_spawn_exit(&result) != 0)
        return cx_fail(err, CX_E_FORMAT, "git %s: exit %d: %.*s", args[0], cx_spawn_exit(&result),
                       (int)(kit->said.size > 150 ? 150 : kit->said.size),
                       (const char *)kit->said.data);
    return CX_SUCCESS;
}

cx_status repo_begin(repo_kit *kit, const char *name, cx_err *err)
{
    memset(kit, 0, sizeof *kit);
    kit->folder = CX_FILE_NONE;
    cx_arena_init(&kit->arena, cx_alloc_default(), 0);
    cx_buf_init(&kit->said, cx_alloc_default());
    folder_fresh(kit->path, name);
    CX_TRY(cx_path_remove_tree(kit->path, err));
    CX_TRY(cx_path_make_folders(kit->path, err));
    CX_TRY(cx_folder_open(kit->path, &kit->folder, err));
    return repo_git(kit, err, "init", "-q", "-b", "main");
}

void repo_end(repo_kit *kit)
{
    if (kit->path[0] == '\0')
        return;
    cx_git_close(kit->git);
    cx_folder_close(kit->folder);
    cx_buf_done(&kit->said);
    cx_arena_done(&kit->arena);
    (void)!cx_failed(cx_path_remove_tree(kit->path, NULL));
    memset(kit, 0, sizeof *kit);
}

cx_status repo_open(repo_kit *kit, cx_err *err)
{
    return kit->git != NULL ? CX_SUCCESS : cx_git_open(kit->path, NULL, NULL, &kit->git, err);
}

/* --- files ------------------------------------------------------------------------------------ */

static cx_status make_parent(repo_kit *kit, const char *path, cx_err *err)
{
    char parent[CX_PATH_BYTES_MAX + 1];
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return CX_SUCCESS;
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    return cx_folder_make_folders(kit->folder, parent, 0755, err);
}

static cx_status write_file(repo_kit *kit, const char *path, cx_str contents, bool append,
                            cx_err *err)
{
    cx_file file;
    cx_buf old;
    cx_facts facts;
    CX_TRY(make_parent(kit, path, err));
    bool fresh = cx_failed(cx_folder_facts(kit->folder, path, &facts, NULL));
    cx_buf_init(&old, cx_alloc_default());
    cx_status status = CX_SUCCESS;
    if (append)
        status = cx_folder_read_file(kit->folder, path, SIZE_MAX, &old, err);
    cx_buf_add_str(&old, contents);
    if (!cx_failed(status))
        status = cx_folder_open_in(kit->folder, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE,
                                   &file, err);
    if (!cx_failed(status)) {
        status = cx_io_write_all(cx_io_system(), file, path, old.data, old.size, err);
        cx_folder_close(file);
    }
    cx_buf_done(&old);
    if (!cx_failed(status) && fresh)
        status = cx_folder_set_mode(kit->folder, path, 0644, err);
    return status;
}

cx_status repo_write(repo_kit *kit, const char *path, cx_str contents, cx_err *err)
{
    return write_file(kit, path, contents, false, err);
}

static cx_status copy_file(repo_kit *kit, const char *from, const char *to, cx_err *err)
{
    cx_buf contents;
    cx_buf_init(&contents, cx_alloc_default());
    cx_status status = cx_folder_read_file(kit->folder, from, SIZE_MAX, &contents, err);
    if (!cx_failed(status))
        status = write_file(kit, to, cx_buf_str(&contents), false, err);
    cx_buf_done(&contents);
    return status;
}

static cx_status write_base64(repo_kit *kit, const char *path, cx_str text, cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_status status = cx_base64_decode_any(text, &bytes)
                           ? write_file(kit, path, cx_buf_str(&bytes), false, err)
                           : cx_fail(err, CX_E_FORMAT, "the case's bytes are not base64");
    cx_buf_done(&bytes);
    return status;
}

/* --- operations ------------------------------------------------------------------------------- */

static cx_status run_git(repo_kit *kit, const char *const *words, size_t count, cx_err *err)
{
    const char *args[32];
    for (size_t i = 1; i < count && i < CX_COUNT_OF(args); i++)
        args[i - 1] = words[i];
    args[count < CX_COUNT_OF(args) ? count - 1 : CX_COUNT_OF(args) - 1] = NULL;
    return repo_git_argv(kit, args, err);
}

static cx_status add_gitlink(repo_kit *kit, const char *path, cx_err *err)
{
    char info[CX_PATH_BYTES_MAX];
    CX_TRY(repo_git(kit, err, "rev-parse", "HEAD"));
    (void)snprintf(info, sizeof info, "160000,%.40s,%s", (const char *)kit->said.data, path);
    return repo_git(kit, err, "update-index", "--add", "--cacheinfo", info);
}

static uint32_t octal(const char *text)
{
    uint32_t mode = 0;
    for (; *text >= '0' && *text <= '7'; text++)
        mode = mode * 8 + (uint32_t)(*text - '0');
    return mode;
}

static cx_status apply_words(repo_kit *kit, const char *const *words, size_t count, cx_str second,
                             cx_err *err)
{
    const char *op = words[0], *a = count > 1 ? words[1] : "", *b = count > 2 ? words[2] : "";
    if (strcmp(op, "write") == 0)
        return write_file(kit, a, second, false, err);
    if (strcmp(op, "append") == 0)
        return write_file(kit, a, second, true, err);
    if (strcmp(op, "write_b64") == 0)
        return write_base64(kit, a, second, err);
    if (strcmp(op, "delete") == 0)
        return cx_folder_remove_tree(kit->folder, a, err);
    if (strcmp(op, "rename") == 0) {
        CX_TRY(make_parent(kit, b, err));
        return cx_folder_rename(kit->folder, a, b, err);
    }
    if (strcmp(op, "copy") == 0)
        return copy_file(kit, a, b, err);
    if (strcmp(op, "symlink") == 0) {
        CX_TRY(make_parent(kit, b, err));
        return cx_folder_make_link(kit->folder, a, b, err);
    }
    if (strcmp(op, "chmod") == 0)
        return cx_folder_set_mode(kit->folder, a, octal(b), err);
    if (strcmp(op, "git") == 0)
        return run_git(kit, words, count, err);
    if (strcmp(op, "gitlink") == 0)
        return add_gitlink(kit, a, err);
    if (strcmp(op, "mkfifo") == 0) {
        CX_TRY(make_parent(kit, a, err));
        return cx_folder_make_fifo(kit->folder, a, err);
    }
    if (strcmp(op, "hardlink") == 0) {
        CX_TRY(make_parent(kit, b, err));
        return cx_folder_make_hard_link(kit->folder, a, b, err);
    }
    if (strcmp(op, "mkdir") == 0)
        return cx_folder_make_folders(kit->folder, a, 0755, err);
    if (strcmp(op, "touch") == 0)
        return cx_folder_touch(kit->folder, a, err);
    return cx_fail(err, CX_E_UNSUPPORTED, "there is no operation '%s'", op);
}

cx_status repo_apply(repo_kit *kit, const cx_json *ops, bool *out_plain, cx_err *err)
{
    bool plain = false;
    for (uint32_t i = 0; i < ops->count; i++) {
        const cx_json *op = &ops->items[i];
        const char *words[32];
        cx_str second = {"", 0};
        if (op->type != CX_JSON_ARRAY || op->count == 0 || op->count > CX_COUNT_OF(words))
            return cx_fail(err, CX_E_FORMAT, "an operation is a list of texts");
        for (uint32_t k = 0; k < op->count; k++) {
            if (op->items[k].type != CX_JSON_STRING)
                return cx_fail(err, CX_E_FORMAT, "an operation is a list of texts");
            cx_str word = cx_json_text(&op->items[k]);
            second = k == 2 ? word : second;
            words[k] = cx_arena_copy_str(&kit->arena, word).data;
            if (words[k] == NULL)
                return cx_fail_nomem(err);
        }
        plain |= strcmp(words[0], "git") != 0 && strcmp(words[0], "gitlink") != 0;
        CX_TRY(apply_words(kit, words, op->count, second, err));
    }
    if (out_plain != NULL)
        *out_plain = plain;
    return CX_SUCCESS;
}

cx_status repo_write_all(repo_kit *kit, const cx_json *files, cx_err *err)
{
    for (uint32_t i = 0; i < files->count; i++) {
        const cx_json_member *member = &files->members[i];
        const char *path = cx_arena_copy_str(&kit->arena, cx_json_text(&member->name)).data;
        if (path == NULL)
            return cx_fail_nomem(err);
        CX_TRY(write_file(kit, path, cx_json_text(&member->value), false, err));
    }
    return CX_SUCCESS;
}

cx_status repo_commit(repo_kit *kit, const char *message, cx_err *err)
{
    CX_TRY(repo_git(kit, err, "add", "-A", "-f"));
    return repo_git(kit, err, "commit", "-q", "--allow-empty", "-m", message);
}

cx_status repo_head(repo_kit *kit, char out[CX_OID_TEXT_SIZE], cx_err *err)
{
    CX_TRY(repo_git(kit, err, "rev-parse", "HEAD"));
    (void)snprintf(out, CX_OID_TEXT_SIZE, "%.*s", kit->said.size == 0 ? 0 : (int)kit->said.size - 1,
                   (const char *)kit->said.data);
    return CX_SUCCESS;
}

/*
 * run_command.c - command_gate.json and trivial_command.json: each command with a worktree of the
 * files that the cases name, and a trusted folder of programs that do nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/folder.h"
#include "command/command.h"
#include "agent/script.h"
#include "tests/runner/run.h"
#include "tests/support/folder.h"

static const char CONTENT[] = "#!/bin/sh\n";

/* Where a case is judged. */
typedef struct ground {
    char folder[FOLDER_PATH_SIZE];
    cx_str worktree, trusted;
    const cx_json *root; /* the file of cases: repo_files, packs, .. */
} ground;

static cx_status make_file(cx_arena *arena, cx_str folder, cx_str name, cx_err *err)
{
    const cx_io *io = cx_io_system();
    cx_file file;
    cx_str path = cx_arena_printf(arena, "%.*s/%.*s", (int)folder.size, folder.data, (int)name.size,
                                  name.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    char *slash = strrchr(path.data, '/');
    *slash = 0;
    cx_status status = cx_path_make_folders(path.data, err);
    *slash = '/';
    CX_TRY(status);
    int failed = io->open(io, path.data, CX_IO_WRITE | CX_IO_CREATE, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "%s", path.data);
    status = cx_io_write_all(io, file, path.data, CONTENT, sizeof CONTENT - 1, err);
    (void)io->close(io, file);
    if (!cx_failed(status) && chmod(path.data, 0755) != 0)
        status = cx_fail(err, CX_E_IO, "%s cannot be made executable", path.data);
    return status;
}

static cx_status make_ground(ground *g, runner *r, cx_err *err)
{
    static const char *const stubs[] = {"pytest", "python", "python3", "npm", "git",
                                        "echo",   "bash",   "sh",      "node"};
    const cx_json *files = CX_JSON_GET(r->root, "repo_files");
    const cx_json *links = CX_JSON_GET(r->root, "repo_symlinks");
    folder_fresh(g->folder, "run-command");
    g->root = r->root;
    g->worktree = cx_arena_printf(&r->arena, "%s/worktree", g->folder);
    g->trusted = cx_arena_printf(&r->arena, "%s/bin", g->folder);
    if (g->worktree.data == NULL || g->trusted.data == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < CX_COUNT_OF(stubs); i++)
        CX_TRY(make_file(&r->arena, g->trusted, cx_str_z(stubs[i]), err));
    for (uint32_t i = 0; files != NULL && i < files->count; i++)
        CX_TRY(make_file(&r->arena, g->worktree, cx_json_text(&files->items[i]), err));
    for (uint32_t i = 0; links != NULL && i < links->count; i++) {
        cx_str name = cx_json_text(&links->members[i].name);
        cx_str target = cx_json_text(&links->members[i].value);
        cx_str path = cx_arena_printf(&r->arena, "%.*s/%.*s", (int)g->worktree.size,
                                      g->worktree.data, (int)name.size, name.data);
        cx_str to = cx_arena_copy_str(&r->arena, target);
        if (path.data == NULL || to.data == NULL)
            return cx_fail_nomem(err);
        if (symlink(to.data, path.data) != 0)
            return cx_fail(err, CX_E_IO, "no link could be made at %s", path.data);
    }
    return CX_SUCCESS;
}

/* The baseline: every tracked file has the same content. */
static cx_status read_blob(void *arg, cx_str commit, cx_str path, size_t limit_bytes,
                           cx_arena *arena, cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    const ground *g = arg;
    const cx_json *files = CX_JSON_GET(g->root, "repo_files");
    (void)commit, (void)limit_bytes, (void)arena, (void)err;
    *out_kind = CX_BLOB_NONE;
    for (uint32_t i = 0; files != NULL && i < files->count; i++) {
        if (cx_str_eq(cx_json_text(&files->items[i]), path)) {
            *out_kind = CX_BLOB_FILE;
            *out = cx_str_bytes(cx_str_from(CONTENT, sizeof CONTENT - 1));
        }
    }
    return CX_SUCCESS;
}

static cx_status take_words(runner *r, const cx_json *list, cx_run_argv *out, cx_err *err)
{
    cx_str *words;
    CX_TRY(runner_texts(r, list, &words, err));
    return cx_run_argv_make(words, list->count, &r->arena, out, err);
}

/* The rules of a pack as the file of cases has them; "" is the default one. */
static cx_status take_rules(runner *r, const cx_json *item, cx_run_command_rules *out, cx_err *err)
{
    cx_str pack = CX_JSON_GET_STR(item, "policy_pack");
    bool none = pack.size == 0;
    out->pack_known =
        none || cx_str_is(pack, "low") || cx_str_is(pack, "medium") || cx_str_is(pack, "high");
    cx_str name = none || !out->pack_known ? CX_STR("default") : pack;
    const cx_json *allow = cx_json_get(CX_JSON_GET(r->root, "packs"), name);
    const cx_json *lists[] = {CX_JSON_GET(r->root, "global_forbidden"),
                              cx_json_get(CX_JSON_GET(r->root, "pack_forbidden"), name),
                              CX_JSON_GET(item, "forbidden_actions")};
    size_t total = 0, at = 0;
    if (allow == NULL)
        return cx_fail(err, CX_E_FORMAT, "the file has no such pack");
    cx_run_argv *prefixes = CX_ARENA_ARRAY(&r->arena, cx_run_argv, allow->count + 1);
    if (prefixes == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < allow->count; i++)
        CX_TRY(take_words(r, &allow->items[i], &prefixes[i], err));
    for (size_t i = 0; i < CX_COUNT_OF(lists); i++)
        total += lists[i] == NULL ? 0 : lists[i]->count;
    cx_str *actions = CX_ARENA_ARRAY(&r->arena, cx_str, total + 1);
    if (actions == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < CX_COUNT_OF(lists); i++) {
        for (uint32_t k = 0; lists[i] != NULL && k < lists[i]->count; k++)
            actions[at++] = cx_json_text(&lists[i]->items[k]);
    }
    out->allow = prefixes;
    out->allow_count = allow->count;
    out->forbidden = actions;
    out->forbidden_count = total;
    return CX_SUCCESS;
}

static cx_status judge(runner *r, const cx_json *item, ground *g, cx_run_command_verdict *out,
                       cx_err *err)
{
    cx_run_command_rules rules = {0};
    cx_str command;
    const cx_run_repo repo = {.arg = g, .read = read_blob};
    cx_run_script_context scripts = {g->worktree.data, &repo, CX_STR("0"), cx_alloc_default()};
    const cx_run_trust trust = {&g->trusted, 1, getuid(), &g->worktree, 1, false};
    const cx_json *approved = CX_JSON_GET(item, "network_approved");
    CX_TRY(runner_text(item, "command", &command, err));
    CX_TRY(take_rules(r, item, &rules, err));
    const cx_run_command_options options = {
        .rules = &rules,
        .network_policy = CX_JSON_GET_STR(item, "network_policy"),
        .network_approved = approved != NULL && approved->type == CX_JSON_TRUE,
        .worktree = g->worktree.data,
        .script = cx_run_script_compare,
        .script_arg = &scripts,
        .trust = &trust};
    return cx_run_command_check(&options, command, &r->arena, out, err);
}

cx_status run_command_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    ground g;
    cx_run_command_verdict verdict;
    cx_json argv;
    cx_status status = make_ground(&g, r, err);
    if (!cx_failed(status))
        status = judge(r, item, &g, &verdict, err);
    folder_remove(g.folder);
    CX_TRY(status);
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_json_list_put(&object, CX_STR("allow"), cx_json_make_bool(verdict.allow));
    cx_json_list_put(&object, CX_STR("rule"), cx_json_make_str(cx_str_z(verdict.rule)));
    if (verdict.lexed) {
        CX_TRY(cx_run_argv_json(&verdict.argv, &r->arena, &argv, err));
        cx_json_list_put(&object, CX_STR("argv"), argv);
    }
    return cx_json_list_end_object(&object, out, err);
}

cx_status run_trivial_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str command;
    bool trivial;
    CX_TRY(runner_text(item, "command", &command, err));
    CX_TRY(cx_run_command_trivial(command, &r->arena, &trivial, err));
    *out = cx_json_make_bool(trivial);
    return CX_SUCCESS;
}

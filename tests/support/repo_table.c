/*
 * repo_table.c - a repository made of a table.
 */
#include "tests/support/repo_table.h"

#include "rules/assets.h"

static cx_status resolve(void *arg, cx_str ref, cx_arena *arena, cx_str *out_commit, cx_err *err)
{
    (void)arg;
    (void)arena;
    (void)err;
    bool main = cx_str_is(ref, "HEAD") || cx_str_is(ref, "main") || cx_str_is(ref, "v1");
    *out_commit = main                     ? CX_STR(TABLE_COMMIT)
                  : cx_str_is(ref, "side") ? CX_STR(TABLE_SIDE)
                                           : cx_str_from(NULL, 0);
    return CX_SUCCESS;
}

static cx_status in_head(void *arg, cx_str commit, bool *out, cx_err *err)
{
    (void)arg;
    (void)err;
    *out = cx_str_is(commit, TABLE_COMMIT);
    return CX_SUCCESS;
}

static cx_status read_file(void *arg, cx_str commit, cx_str path, size_t limit_bytes,
                           cx_arena *arena, cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    const repo_table *table = arg;
    (void)commit;
    (void)arena;
    *out_kind = CX_BLOB_NONE;
    *out = (cx_bytes){NULL, 0};
    if (table->fails != NULL && cx_str_is(path, table->fails))
        return cx_fail(err, CX_E_IO, "the disk says no");
    for (size_t i = 0; i < table->count; i++) {
        const repo_file *file = &table->files[i];
        if (!cx_str_is(path, file->path))
            continue;
        if (file->bytes == NULL) {
            *out_kind = CX_BLOB_OTHER;
            return CX_SUCCESS;
        }
        size_t size = file->size == 0 ? strlen(file->bytes) : file->size;
        *out_kind = size > limit_bytes ? CX_BLOB_TOO_BIG : CX_BLOB_FILE;
        if (size <= limit_bytes)
            *out = cx_str_bytes(cx_str_from(file->bytes, size));
    }
    return CX_SUCCESS;
}

static cx_status list_files(void *arg, cx_str commit, cx_arena *arena, cx_run_tree *out,
                            cx_err *err)
{
    const repo_table *table = arg;
    cx_str *files = CX_ARENA_ARRAY(arena, cx_str, table->count + 1);
    (void)commit;
    if (files == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < table->count; i++)
        files[i] = cx_str_z(table->files[i].path);
    *out = (cx_run_tree){files, table->count};
    return CX_SUCCESS;
}

static cx_status artifact(void *arg, cx_str path, size_t limit_bytes, cx_arena *arena,
                          cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    const repo_table *table = arg;
    (void)limit_bytes;
    (void)arena;
    (void)err;
    *out = cx_str_bytes(CX_STR("failed\n"));
    *out_kind = table->bundle && cx_str_is(path, "artifacts/log.txt") ? CX_BLOB_FILE : CX_BLOB_NONE;
    return CX_SUCCESS;
}

cx_run_repo repo_table_open(repo_table *table)
{
    return (cx_run_repo){table, resolve, in_head, read_file, list_files, artifact};
}

void repo_table_put(repo_table *table, const char *path, const char *bytes)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->files[i].path, path) == 0) {
            table->files[i].bytes = bytes;
            table->files[i].size = 0;
            return;
        }
    if (table->count < CX_COUNT_OF(table->files))
        table->files[table->count++] = (repo_file){path, bytes, 0};
}

void repo_table_put_policies(repo_table *table)
{
    static const char *const names[] = {
        "policies/agent_registry.json",    "policies/command_allowlist.json",
        "policies/forbidden_actions.json", "policies/mcp_allowlist.json",
        "policies/packs/low.json",         "policies/packs/medium.json",
        "policies/packs/high.json"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        cx_bytes bytes;
        if (cx_run_asset(names[i], &bytes) && table->count < CX_COUNT_OF(table->files))
            table->files[table->count++] =
                (repo_file){names[i], (const char *)bytes.data, bytes.size};
    }
}

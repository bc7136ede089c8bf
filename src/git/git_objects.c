/*
 * git_objects.c - reads trees and files of commits.
 */
#include "git/git.h"

#include <stdlib.h>

#include "os/api.h"
#include "git/git_parts.h"

#define MODE_FOLDER 0040000u

/* "<mode> <type> <oid>\t<path>" */
static bool parse_tree_entry(cx_str field, size_t oid_size, cx_git_entry *out)
{
    const char *tab = memchr(field.data, '\t', field.size);
    if (tab == NULL)
        return false;
    cx_str head = {field.data, (size_t)(tab - field.data)};
    size_t digits = 2 * oid_size;
    if (head.size < 8 + digits || !cx_git_mode((cx_str){head.data, 6}, &out->mode) ||
        head.data[6] != ' ' || head.data[head.size - digits - 1] != ' ' ||
        !cx_oid_parse((cx_str){head.data + head.size - digits, digits}, &out->oid))
        return false;
    out->path = (cx_str){tab + 1, field.size - head.size - 1};
    return out->path.size != 0;
}

static int compare_entries(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_git_entry *)a)->path, ((const cx_git_entry *)b)->path);
}

static size_t count_zero_bytes(cx_str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == '\0';
    return count;
}

/* `text` lives in the arena. */
static cx_status parse_tree(cx_str text, size_t oid_size, cx_arena *arena, cx_git_tree *out,
                            cx_err *err)
{
    size_t capacity = count_zero_bytes(text), count = 0;
    cx_git_entry *entries = CX_ARENA_ARRAY(arena, cx_git_entry, capacity == 0 ? 1 : capacity);
    cx_git_fields fields = {text, false};
    bool sorted = true;
    cx_str field;
    if (entries == NULL)
        return cx_fail_nomem(err);
    while (cx_git_field(&fields, &field)) {
        if (!parse_tree_entry(field, oid_size, &entries[count]))
            return cx_fail(
                err, CX_E_FORMAT,
                "git listed a tree in an unknown format; cortex supports git 2.38 and later");
        sorted =
            sorted && (count == 0 || cx_str_cmp(entries[count - 1].path, entries[count].path) < 0);
        count++;
    }
    if (fields.cut)
        return cx_fail(err, CX_E_FORMAT, "git's list of a tree is truncated");
    if (!sorted)
        qsort(entries, count, sizeof *entries, compare_entries);
    for (size_t i = 1; i < count; i++)
        if (cx_str_eq(entries[i - 1].path, entries[i].path))
            return cx_fail(err, CX_E_FORMAT, "a tree has the path %.*s twice",
                           (int)(entries[i].path.size > 80 ? 80 : entries[i].path.size),
                           entries[i].path.data);
    *out = (cx_git_tree){entries, count};
    return CX_SUCCESS;
}

cx_status cx_git_tree_read(const cx_git *git, const cx_oid *commit_or_tree, cx_arena *arena,
                           cx_git_tree *out, cx_err *err)
{
    char name[CX_OID_TEXT_SIZE];
    cx_buf text;
    cx_oid_text(commit_or_tree, name);
    cx_git_call call = {.args = CX_GIT_ARGS("ls-tree", "-r", "-z", "--full-tree", name),
                        .bare = true};
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_git_call_run(git, &call, &text, NULL, err);
    if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&text));
        status = copy.data == NULL ? cx_fail_nomem(err)
                                   : parse_tree(copy, cx_git_oid_size(git), arena, out, err);
    }
    cx_buf_done(&text);
    return status;
}

const cx_git_entry *cx_git_tree_find(const cx_git_tree *tree, cx_str path)
{
    CX_ASSERT(tree->count == 0 || tree->entries != NULL);
    size_t low = 0, high = tree->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = cx_str_cmp(path, tree->entries[middle].path);
        if (order == 0)
            return &tree->entries[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* The one entry of a path; mode 0 when there is none. */
static cx_status find_tree_entry(const cx_git *git, const cx_oid *commit, cx_str path,
                                 cx_git_entry *out, cx_err *err)
{
    char name[CX_OID_TEXT_SIZE], z[CX_PATH_BYTES_MAX + 1];
    cx_buf text;
    out->mode = 0;
    if (path.size == 0 || path.size > CX_PATH_BYTES_MAX ||
        memchr(path.data, '\0', path.size) != NULL || path.data[path.size - 1] == '/')
        return CX_SUCCESS;
    memcpy(z, path.data, path.size);
    z[path.size] = '\0';
    cx_oid_text(commit, name);
    cx_git_call call = {.args = CX_GIT_ARGS("ls-tree", "-z", "--full-tree", name, "--", z),
                        .bare = true};
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_git_call_run(git, &call, &text, NULL, err);
    cx_git_fields fields = {cx_buf_str(&text), false};
    cx_str field;
    while (!cx_failed(status) && cx_git_field(&fields, &field)) {
        cx_git_entry entry;
        if (!parse_tree_entry(field, cx_git_oid_size(git), &entry))
            status = cx_fail(
                err, CX_E_FORMAT,
                "git listed a tree in an unknown format; cortex supports git 2.38 and later");
        else if (cx_str_eq(entry.path, path))
            *out = entry;
    }
    out->path = path;
    cx_buf_done(&text);
    return status;
}

cx_status cx_git_blob(const cx_git *git, const cx_oid *oid, size_t limit_bytes, cx_buf *out,
                      cx_err *err)
{
    char name[CX_OID_TEXT_SIZE];
    cx_oid_text(oid, name);
    cx_git_call call = {.args = CX_GIT_ARGS("cat-file", "blob", name),
                        .output_limit_bytes = limit_bytes == 0 ? 1 : limit_bytes,
                        .bare = true};
    return cx_git_call_run(git, &call, out, NULL, err);
}

cx_status cx_git_show(const cx_git *git, const cx_oid *commit, cx_str path, size_t limit_bytes,
                      cx_buf *out, uint32_t *out_mode, cx_err *err)
{
    cx_git_entry entry;
    CX_TRY(find_tree_entry(git, commit, path, &entry, err));
    if ((entry.mode & 0170000) == 0100000 || (entry.mode & 0170000) == 0120000)
        CX_TRY(cx_git_blob(git, &entry.oid, limit_bytes, out, err));
    *out_mode = entry.mode == 0 ? 0 : entry.mode == 040000 ? MODE_FOLDER : entry.mode;
    return CX_SUCCESS;
}

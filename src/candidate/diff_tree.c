/*
 * diff_tree.c - the candidate's tree: named and made here, handed to git as a pack (run.md §9).
 *
 * Git gets the contents of new files and the trees above them on its standard input.  It reads
 * neither the work tree nor an index: an agent may still be writing in both.  What the tree differs
 * in from the baseline is then asked of git and compared (candidate.c): a second opinion.
 *
 * Invariant: what is stored under a name is what was judged under it; a file that changed since is
 * CX_E_CONFLICT.
 */
#include "candidate/diff_parts.h"

#include "os/api.h"
#include "candidate/candidate.h"
#include "git/api.h"

#define DEPTH_MAX 300 /* above what a walk goes down */
#define LINKS_MAX 1000

/* --- the name --------------------------------------------------------------------------------- */

typedef struct tree_maker {
    const cx_git_entry *entries;
    size_t oid_size;
    cx_git_pack *pack;             /* NULL: only the name is wanted */
    const cx_diff_change *changes; /* trees without one are in the repository; NULL: none is */
    size_t change_count;
    cx_err *err;
} tree_maker;

/* Whether something at or below a folder ("a/b/", empty for the root) changed. */
static bool has_change_below(const tree_maker *m, cx_str folder)
{
    size_t low = 0, high = m->change_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cx_str_cmp(m->changes[middle].path, folder) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->change_count && cx_str_starts(m->changes[low].path, folder);
}

static cx_status store_tree(const tree_maker *m, size_t from, size_t skip, cx_bytes text)
{
    cx_str folder = skip == 0 ? CX_STR("") : (cx_str){m->entries[from].path.data, skip};
    if (m->pack == NULL || (m->changes != NULL && skip != 0 && !has_change_below(m, folder)))
        return CX_SUCCESS;
    return cx_git_pack_add(m->pack, CX_OBJECT_TREE, text, m->err);
}

static void add_entry(cx_buf *out, uint32_t mode, cx_str name, const cx_oid *oid)
{
    char digits[12];
    size_t at = sizeof digits;
    digits[--at] = ' ';
    for (; mode != 0; mode >>= 3)
        digits[--at] = (char)('0' + (mode & 7));
    cx_buf_add(out, digits + at, sizeof digits - at);
    cx_buf_add_str(out, name);
    cx_buf_add_byte(out, 0);
    cx_buf_add(out, oid->bytes, oid->size);
}

/* The tree of entries from..to, whose paths share their first `skip` bytes. */
static cx_status make_tree(const tree_maker *m, size_t from, size_t to, size_t skip, unsigned depth,
                           cx_oid *out)
{
    cx_buf text;
    cx_status status = CX_SUCCESS;
    if (depth > DEPTH_MAX)
        return cx_fail(m->err, CX_E_LIMIT, "folders are nested deeper than %d levels", DEPTH_MAX);
    cx_buf_init(&text, cx_alloc_default());
    for (size_t i = from; i < to && !cx_failed(status);) {
        cx_str rest = {m->entries[i].path.data + skip, m->entries[i].path.size - skip};
        const char *slash = memchr(rest.data, '/', rest.size);
        cx_str name = {rest.data, slash == NULL ? rest.size : (size_t)(slash - rest.data)};
        if (slash == NULL) {
            add_entry(&text, m->entries[i].mode, name, &m->entries[i].oid);
            i++;
            continue;
        }
        size_t end = i, prefix = skip + name.size + 1;
        while (end < to && m->entries[end].path.size > prefix &&
               memcmp(m->entries[end].path.data, m->entries[i].path.data, prefix) == 0)
            end++;
        cx_oid below;
        if (end == i)
            status = cx_fail(m->err, CX_E_FORMAT, "a path of the candidate has an empty name");
        else
            status = make_tree(m, i, end, prefix, depth + 1, &below);
        if (!cx_failed(status))
            add_entry(&text, 0040000, name, &below);
        i = end;
    }
    if (!cx_failed(status))
        status = cx_buf_check(&text, m->err);
    if (!cx_failed(status))
        status = store_tree(m, from, skip, cx_buf_bytes(&text));
    if (!cx_failed(status))
        *out = cx_git_object_oid(m->oid_size, "tree", cx_buf_bytes(&text));
    cx_buf_done(&text);
    return status;
}

/* A file and a folder of one name: "a" is followed, not always at once, by "a/..". */
static bool is_also_folder(const cx_git_entry *entries, size_t count, size_t at)
{
    cx_str path = entries[at].path;
    for (size_t i = at + 1; i < count && cx_str_starts(entries[i].path, path); i++)
        if (entries[i].path.data[path.size] == '/')
            return true;
    return false;
}

static cx_status make_root(const tree_maker *m, size_t count, cx_oid *out)
{
    const cx_git_entry *entries = m->entries;
    for (size_t i = 0; i + 1 < count; i++)
        if (cx_str_starts(entries[i + 1].path, entries[i].path) &&
            is_also_folder(entries, count, i))
            return cx_fail(m->err, CX_E_CONFLICT, "%.*s is a file and a folder at once",
                           (int)(entries[i].path.size > 80 ? 80 : entries[i].path.size),
                           entries[i].path.data);
    return make_tree(m, 0, count, 0, 0, out);
}

cx_status cx_diff_tree_oid(const cx_git_entry *entries, size_t count, size_t oid_size, cx_oid *out,
                           cx_err *err)
{
    const tree_maker m = {.entries = entries, .oid_size = oid_size, .err = err};
    return make_root(&m, count, out);
}

cx_status cx_diff_tree_store(const cx_git *git, const cx_git_entry *entries, size_t count,
                             cx_oid *out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    cx_git_pack pack;
    size_t oid_size = cx_git_oid_size(git);
    cx_git_pack_init(&pack, oid_size);
    const tree_maker m = {.entries = entries, .oid_size = oid_size, .pack = &pack, .err = err};
    cx_status status = make_root(&m, count, out);
    if (!cx_failed(status))
        status = cx_git_pack_store(&pack, git, false, err);
    cx_git_pack_done(&pack);
    return status;
}

/* --- contents --------------------------------------------------------------------------------- */

static cx_status fail_changed(cx_str path, cx_err *err)
{
    return cx_fail(err, CX_E_CONFLICT, "%.*s changed after it was judged",
                   (int)(path.size > 80 ? 80 : path.size), path.data);
}

/* As the walk saw it: through no link, without waiting for a FIFO. */
static cx_status read_contents(cx_file root, const cx_diff_change *change, cx_buf *out, cx_err *err)
{
    char path[CX_PATH_BYTES_MAX + 1];
    if (change->path.size >= sizeof path)
        return cx_fail(err, CX_E_LIMIT, "a path is longer than %d bytes", CX_PATH_BYTES_MAX);
    memcpy(path, change->path.data, change->path.size);
    path[change->path.size] = '\0';
    cx_status status = (change->new_mode & CX_MODE_KIND) == CX_MODE_LINK
                           ? cx_folder_read_link(root, path, out, err)
                           : cx_folder_read_file(root, path, CX_GIT_OBJECT_BYTES_MAX, out, err);
    bool other = status.code == CX_E_NOT_FOUND || status.code == CX_E_DENIED;
    return other ? fail_changed(change->path, err) : status;
}

static cx_status add_contents(cx_file root, const cx_diff_change *change, size_t oid_size,
                              cx_git_pack *pack, cx_err *err)
{
    cx_buf contents;
    cx_buf_init(&contents, cx_alloc_default());
    cx_status status = read_contents(root, change, &contents, err);
    if (!cx_failed(status)) {
        cx_oid oid = cx_git_object_oid(oid_size, "blob", cx_buf_bytes(&contents));
        status = cx_oid_eq(&oid, &change->new_oid)
                     ? cx_git_pack_add(pack, CX_OBJECT_BLOB, cx_buf_bytes(&contents), err)
                     : fail_changed(change->path, err);
    }
    cx_buf_done(&contents);
    return status;
}

static cx_status add_all_contents(const cx_git *git, const cx_diff_change *changes, size_t count,
                                  cx_git_pack *pack, cx_err *err)
{
    cx_file root;
    size_t links = 0;
    CX_TRY(cx_folder_open(cx_git_worktree(git), &root, err));
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        uint32_t kind = changes[i].new_mode & CX_MODE_KIND;
        if (changes[i].ignored || (kind != CX_MODE_FILE && kind != CX_MODE_LINK))
            continue;
        /* Links are refused, but they are part of the evidence. */
        if (kind == CX_MODE_LINK && ++links > LINKS_MAX)
            status = cx_fail(err, CX_E_LIMIT, "there are more than %d new links", LINKS_MAX);
        else
            status = add_contents(root, &changes[i], cx_git_oid_size(git), pack, err);
    }
    cx_folder_close(root);
    return status;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Names that git takes into no index; a tree that holds one is no tree for git. */
static cx_status check_names(const cx_diff_change *change, cx_err *err)
{
    cx_str rest = change->path;
    while (rest.data != NULL) {
        const char *slash = rest.size == 0 ? NULL : memchr(rest.data, '/', rest.size);
        cx_str name = {rest.data, slash == NULL ? rest.size : (size_t)(slash - rest.data)};
        if (name.size == 0 || cx_str_is(name, ".") || cx_str_is(name, "..") ||
            cx_diff_is_git_name(name))
            return cx_fail(err, CX_E_FORMAT, "git takes no path like %.*s",
                           (int)(change->path.size > 80 ? 80 : change->path.size),
                           change->path.data);
        rest.size -= name.size + (slash != NULL);
        rest.data = slash == NULL ? NULL : slash + 1;
    }
    return CX_SUCCESS;
}

/* The baseline's entries with the changes in their places, sorted. */
static cx_status apply_changes(const cx_git_tree *base, const cx_diff_change *changes, size_t count,
                               cx_arena *arena, cx_git_tree *out, cx_err *err)
{
    cx_git_entry *entries = CX_ARENA_ARRAY(arena, cx_git_entry, base->count + count + 1);
    size_t i = 0, k = 0, made = 0;
    if (entries == NULL)
        return cx_fail_nomem(err);
    while (i < base->count || k < count) {
        int order = i == base->count ? 1
                    : k == count     ? -1
                                     : cx_str_cmp(base->entries[i].path, changes[k].path);
        if (order < 0 || (order == 0 && changes[k].ignored)) {
            entries[made++] = base->entries[i++];
            k += order == 0;
            continue;
        }
        i += order == 0;
        if (!changes[k].ignored && changes[k].new_mode != 0) {
            CX_TRY(check_names(&changes[k], err));
            entries[made++] =
                (cx_git_entry){changes[k].path, changes[k].new_mode, changes[k].new_oid};
        }
        k++;
    }
    *out = (cx_git_tree){entries, made};
    return CX_SUCCESS;
}

static cx_status fill_pack(const cx_git *git, const cx_git_tree *candidate,
                           const cx_diff_change *changes, size_t count, cx_git_pack *pack,
                           cx_oid *out, cx_err *err)
{
    const tree_maker m = {.entries = candidate->entries,
                          .oid_size = cx_git_oid_size(git),
                          .pack = pack,
                          .changes = changes,
                          .change_count = count,
                          .err = err};
    CX_TRY(make_root(&m, candidate->count, out));
    return add_all_contents(git, changes, count, pack, err);
}

cx_status cx_diff_tree_write(const cx_git *git, const cx_oid *baseline,
                             const cx_diff_change *changes, size_t count, const cx_oid *tree,
                             cx_err *err)
{
    cx_arena arena;
    cx_git_tree base, candidate = {NULL, 0};
    cx_git_pack pack;
    cx_oid made = {.size = 0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_git_pack_init(&pack, cx_git_oid_size(git));
    cx_status status = cx_git_tree_read(git, baseline, &arena, &base, err);
    if (!cx_failed(status))
        status = apply_changes(&base, changes, count, &arena, &candidate, err);
    if (!cx_failed(status))
        status = fill_pack(git, &candidate, changes, count, &pack, &made, err);
    if (!cx_failed(status) && !cx_oid_eq(&made, tree))
        status = cx_fail(err, CX_E_CONFLICT, "the candidate changed after it was judged");
    if (!cx_failed(status))
        status = cx_git_pack_store(&pack, git, false, err);
    cx_git_pack_done(&pack);
    cx_arena_done(&arena);
    return status;
}

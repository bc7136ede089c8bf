/*
 * diff_tree.c - the candidate's tree: named here, written by git (run.md §9).
 *
 * The name is computed from the entries alone, so that a re-check costs no process and git's own
 * answer, when the tree is written, is a second opinion.
 */
#include "run/diff_parts.h"

#include "base/folder.h"
#include "run/candidate.h"
#include "run/git_parts.h"

#define DEPTH_MAX 300 /* above what a walk goes down */
#define LINKS_MAX 1000

/* --- the name --------------------------------------------------------------------------------- */

typedef struct tree_maker {
    const cx_git_entry *entries;
    size_t oid_size;
    cx_err *err;
} tree_maker;

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

cx_status cx_diff_tree_oid(const cx_git_entry *entries, size_t count, size_t oid_size, cx_oid *out,
                           cx_err *err)
{
    const tree_maker m = {entries, oid_size, err};
    for (size_t i = 0; i + 1 < count; i++)
        if (cx_str_starts(entries[i + 1].path, entries[i].path) &&
            is_also_folder(entries, count, i))
            return cx_fail(err, CX_E_CONFLICT, "%.*s is a file and a folder at once",
                           (int)(entries[i].path.size > 80 ? 80 : entries[i].path.size),
                           entries[i].path.data);
    return make_tree(&m, 0, count, 0, 0, out);
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool is_new_blob(const cx_diff_change *change, bool link)
{
    return !change->ignored && change->new_mode != 0 &&
           (change->new_mode & CX_MODE_KIND) == (link ? CX_MODE_LINK : CX_MODE_FILE);
}

static cx_status fail_changed(cx_str path, cx_err *err)
{
    return cx_fail(err, CX_E_CONFLICT, "%.*s changed after it was judged",
                   (int)(path.size > 80 ? 80 : path.size), path.data);
}

static cx_status check_written(cx_str answer, const cx_diff_change *changes, size_t count,
                               size_t oid_size, cx_err *err)
{
    size_t line = 2 * oid_size + 1;
    for (size_t i = 0; i < count; i++) {
        cx_oid oid;
        if (!is_new_blob(&changes[i], false))
            continue;
        if (answer.size < line || answer.data[line - 1] != '\n' ||
            !cx_oid_parse((cx_str){answer.data, line - 1}, &oid) ||
            !cx_oid_eq(&oid, &changes[i].new_oid))
            return fail_changed(changes[i].path, err);
        answer.data += line;
        answer.size -= line;
    }
    return answer.size == 0 ? CX_SUCCESS
                            : cx_fail(err, CX_E_FORMAT, "git wrote more objects than it was given");
}

/* All regular files in one call.  Git reads the files itself, without filters; what it read must be
 * what was judged. */
static cx_status write_files(const cx_git *git, const cx_diff_change *changes, size_t count,
                             cx_err *err)
{
    cx_buf paths, answer;
    cx_buf_init(&paths, cx_alloc_default());
    cx_buf_init(&answer, cx_alloc_default());
    for (size_t i = 0; i < count; i++)
        if (is_new_blob(&changes[i], false)) {
            cx_run_path_quote(&paths, changes[i].path);
            cx_buf_add_byte(&paths, '\n');
        }
    cx_git_call call = {.args = CX_GIT_ARGS("hash-object", "-w", "--no-filters", "--stdin-paths"),
                        .input = cx_buf_bytes(&paths)};
    cx_status status = cx_buf_check(&paths, err);
    if (!cx_failed(status) && paths.size != 0)
        status = cx_git_call_run(git, &call, &answer, NULL, err);
    if (!cx_failed(status) && paths.size != 0)
        status = check_written(cx_buf_str(&answer), changes, count, cx_git_oid_size(git), err);
    cx_buf_done(&paths);
    cx_buf_done(&answer);
    return status;
}

static cx_status write_link(const cx_git *git, cx_file root, const cx_diff_change *change,
                            cx_err *err)
{
    char path[CX_PATH_BYTES_MAX + 1];
    cx_buf target;
    cx_oid oid;
    (void)snprintf(path, sizeof path, "%.*s", (int)change->path.size, change->path.data);
    cx_buf_init(&target, cx_alloc_default());
    cx_status status = cx_folder_read_link(root, path, &target, err);
    if (!cx_failed(status)) {
        cx_git_call call = {.args = CX_GIT_ARGS("hash-object", "-w", "--no-filters", "--stdin"),
                            .input = cx_buf_bytes(&target)};
        status = cx_git_ask_oid(git, &call, &oid, err);
    }
    if (!cx_failed(status) && !cx_oid_eq(&oid, &change->new_oid))
        status = fail_changed(change->path, err);
    cx_buf_done(&target);
    return status;
}

/* Links are refused, but they are part of the evidence. */
static cx_status write_links(const cx_git *git, const cx_diff_change *changes, size_t count,
                             cx_err *err)
{
    cx_file root;
    size_t links = 0;
    CX_TRY(cx_folder_open(cx_git_worktree(git), &root, err));
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        if (is_new_blob(&changes[i], true))
            status = ++links > LINKS_MAX
                         ? cx_fail(err, CX_E_LIMIT, "there are more than %d new links", LINKS_MAX)
                         : write_link(git, root, &changes[i], err);
    cx_folder_close(root);
    return status;
}

static void add_index_line(cx_buf *out, const cx_diff_change *change, size_t oid_size)
{
    char name[CX_OID_TEXT_SIZE];
    cx_oid none = {.size = (uint8_t)oid_size};
    cx_oid_text(change->new_mode == 0 ? &none : &change->new_oid, name);
    cx_buf_printf(out, "%06o %s 0\t", change->new_mode, name);
    cx_buf_add_str(out, change->path);
    cx_buf_add_byte(out, 0);
}

/* Deletions first: a folder may stand where a file was, and the reverse. */
static cx_status update_index(const cx_git *git, const char *index, const cx_diff_change *changes,
                              size_t count, cx_err *err)
{
    cx_buf lines;
    size_t oid_size = cx_git_oid_size(git);
    cx_buf_init(&lines, cx_alloc_default());
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++)
            if (!changes[i].ignored && (changes[i].new_mode == 0) == (pass == 0))
                add_index_line(&lines, &changes[i], oid_size);
    cx_git_call call = {.args = CX_GIT_ARGS("update-index", "-z", "--index-info"),
                        .input = cx_buf_bytes(&lines),
                        .index_file = index};
    cx_status status = cx_buf_check(&lines, err);
    if (!cx_failed(status) && lines.size != 0)
        status = cx_git_call_run(git, &call, NULL, NULL, err);
    cx_buf_done(&lines);
    return status;
}

static cx_status write_tree(const cx_git *git, const char *index, const cx_oid *baseline,
                            const cx_diff_change *changes, size_t count, const cx_oid *tree,
                            cx_err *err)
{
    char base[CX_OID_TEXT_SIZE];
    cx_oid written;
    cx_oid_text(baseline, base);
    cx_git_call read = {.args = CX_GIT_ARGS("read-tree", base), .index_file = index};
    cx_git_call write = {.args = CX_GIT_ARGS("write-tree"), .index_file = index};
    CX_TRY(cx_git_call_run(git, &read, NULL, NULL, err));
    CX_TRY(update_index(git, index, changes, count, err));
    CX_TRY(cx_git_ask_oid(git, &write, &written, err));
    return cx_oid_eq(&written, tree)
               ? CX_SUCCESS
               : cx_fail(err, CX_E_CONFLICT, "git makes another tree of the candidate than we do");
}

cx_status cx_diff_tree_write(const cx_git *git, const cx_oid *baseline,
                             const cx_diff_change *changes, size_t count, const cx_oid *tree,
                             cx_err *err)
{
    char index[CX_PATH_BYTES_MAX + 1];
    uint64_t random = 0;
    if (cx_io_system()->random(cx_io_system(), &random, sizeof random) < 0)
        return cx_fail(err, CX_E_IO, "there is no randomness to name a temporary index with");
    int size = snprintf(index, sizeof index, "%s/cortex-index-%016llx", cx_git_dir(git),
                        (unsigned long long)random);
    if (size < 0 || (size_t)size >= sizeof index)
        return cx_fail(err, CX_E_LIMIT, "the path of the repository is too long");
    CX_TRY(write_files(git, changes, count, err));
    CX_TRY(write_links(git, changes, count, err));
    cx_status status = write_tree(git, index, baseline, changes, count, tree, err);
    (void)cx_io_system()->unlink(cx_io_system(), index);
    return status;
}

/*
 * git_history.c - references and loose commits, read as bytes (git_history.h).
 */
#include "git/git_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "git/git_pack.h"
#include "git/git_parts.h"
#include "os/api.h"

#define REF_BYTES_MAX ((size_t)4096)
#define PACKED_BYTES_MAX ((size_t)64 << 20)
#define COMMIT_FILE_BYTES_MAX ((size_t)1 << 20)
#define SYMBOLIC_MAX 5
#define SUBJECT_BYTES_MAX 200

typedef struct history {
    cx_file git, common; /* folders; the same one in the main checkout */
    cx_arena *arena;     /* of the result */
    cx_arena scratch;
    cx_map seen; /* object names */
    int64_t since_ns, until_ns;
    CX_VEC(cx_oid) waiting;
    CX_VEC(cx_git_made) made;
    size_t refs, visited;
    cx_git_history *out;
} history;

/* --- commits ---------------------------------------------------------------------------------- */

static bool take_line(cx_str *rest, cx_str *out)
{
    if (rest->size == 0)
        return false;
    const char *end = memchr(rest->data, '\n', rest->size);
    size_t size = end == NULL ? rest->size : (size_t)(end - rest->data);
    *out = cx_str_from(rest->data, size);
    size += end != NULL;
    *rest = cx_str_from(rest->data + size, rest->size - size);
    return true;
}

/* "NAME <MAIL> SECONDS ZONE": the seconds. */
static bool parse_seconds(cx_str line, int64_t *out)
{
    size_t at = line.size;
    int64_t value = 0;
    while (at > 0 && line.data[at - 1] != '>')
        at--;
    if (at == 0 || at == line.size || line.data[at] != ' ')
        return false;
    size_t digits = 0;
    for (at++; at < line.size && line.data[at] >= '0' && line.data[at] <= '9'; at++, digits++) {
        if (digits == 18)
            return false;
        value = value * 10 + (line.data[at] - '0');
    }
    *out = value;
    return digits != 0;
}

bool cx_git_commit_parse(cx_str text, size_t oid_size, cx_git_commit_text *out)
{
    cx_str line;
    bool has_tree = false, has_author = false, has_committer = false;
    memset(out, 0, sizeof *out);
    while (take_line(&text, &line) && line.size != 0) {
        if (cx_str_starts(line, CX_STR("tree "))) {
            has_tree = true;
        } else if (cx_str_starts(line, CX_STR("parent "))) {
            cx_oid parent;
            if (out->parent_count == CX_COUNT_OF(out->parents) ||
                !cx_oid_parse(cx_str_from(line.data + 7, line.size - 7), &parent) ||
                parent.size != oid_size)
                return false;
            out->parents[out->parent_count++] = parent;
        } else if (!has_author && cx_str_starts(line, CX_STR("author "))) {
            has_author = parse_seconds(line, &out->author_s);
        } else if (!has_committer && cx_str_starts(line, CX_STR("committer "))) {
            has_committer = parse_seconds(line, &out->committer_s);
        }
    }
    if (take_line(&text, &line))
        out->subject =
            cx_str_from(line.data, line.size > SUBJECT_BYTES_MAX ? SUBJECT_BYTES_MAX : line.size);
    return has_tree && has_author && has_committer;
}

/* An object to look at, unless it was. */
static cx_status wait_for(history *h, const cx_oid *oid, cx_err *err)
{
    uint64_t *value;
    bool is_new;
    cx_str key = {(const char *)oid->bytes, oid->size};
    if (oid->size == 0 || cx_oid_is_zero(oid) || cx_map_find(&h->seen, key) != NULL)
        return CX_SUCCESS;
    key = cx_arena_copy_str(&h->scratch, key);
    cx_oid *slot = key.data == NULL ? NULL : cx_vec_push(&h->waiting, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *oid;
    return cx_map_put(&h->seen, key, &value, &is_new, err);
}

static cx_status add_commit(history *h, const cx_oid *oid, int64_t made_ns,
                            const cx_git_commit_text *commit, cx_err *err)
{
    if (made_ns > h->until_ns)
        return CX_SUCCESS;
    cx_git_made *made = cx_vec_push(&h->made, cx_alloc_default());
    if (made == NULL)
        return cx_fail_nomem(err);
    *made = (cx_git_made){.oid = *oid,
                          .made_ns = made_ns,
                          .author_s = commit->author_s,
                          .committer_s = commit->committer_s,
                          .subject = cx_arena_copy_str(h->arena, commit->subject)};
    return made->subject.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* A commit that was made before the time ends the walk: so were its parents. */
static cx_status visit_object(history *h, const cx_oid *oid, cx_err *err)
{
    char name[CX_OID_TEXT_SIZE], path[CX_OID_TEXT_SIZE + 16];
    cx_facts facts;
    cx_buf file, contents;
    cx_object_type type;
    cx_git_commit_text commit;
    cx_err ignored;
    cx_oid_text(oid, name);
    (void)snprintf(path, sizeof path, "objects/%.2s/%s", name, name + 2);
    if (cx_failed(cx_folder_facts(h->common, path, &facts, &ignored)) ||
        facts.kind != CX_FILE_REGULAR || facts.changed_ns < h->since_ns)
        return CX_SUCCESS; /* in a pack, or older */
    cx_buf_init(&file, cx_alloc_default());
    cx_buf_init(&contents, cx_alloc_default());
    cx_status status = cx_folder_read_file(h->common, path, COMMIT_FILE_BYTES_MAX, &file, &ignored);
    if (!cx_failed(status))
        status = cx_git_loose_parse(cx_buf_bytes(&file), COMMIT_FILE_BYTES_MAX, &type, &contents,
                                    &ignored);
    if (status.code == CX_E_NOMEM || status.code == CX_E_UNSUPPORTED) {
        *err = ignored;
    } else if (cx_failed(status)) {
        h->out->false_names++;
        status = CX_SUCCESS;
    } else {
        cx_oid real = cx_git_object_oid(oid->size, cx_git_type_name(type), cx_buf_bytes(&contents));
        if (!cx_oid_eq(&real, oid)) {
            h->out->false_names++; /* I1 */
        } else if (type == CX_OBJECT_COMMIT &&
                   cx_git_commit_parse(cx_buf_str(&contents), oid->size, &commit)) {
            status = add_commit(h, oid, facts.changed_ns, &commit, err);
            for (size_t i = 0; i < commit.parent_count && !cx_failed(status); i++)
                status = wait_for(h, &commit.parents[i], err);
        }
    }
    cx_buf_done(&file);
    cx_buf_done(&contents);
    return status;
}

static cx_status visit_objects(history *h, cx_err *err)
{
    while (h->waiting.count != 0) {
        cx_oid oid = h->waiting.items[--h->waiting.count];
        if (h->visited++ == CX_GIT_HISTORY_COMMITS_MAX) {
            h->out->is_cut = true;
            return CX_SUCCESS;
        }
        CX_TRY(visit_object(h, &oid, err));
    }
    return CX_SUCCESS;
}

/* --- references ------------------------------------------------------------------------------- */

static bool is_ref_name(cx_str name)
{
    return name.size != 0 && name.size < 1024 && name.data[0] != '/' &&
           memchr(name.data, 0, name.size) == NULL;
}

/* The file of a reference: an object's name, or "ref: NAME". */
static cx_status read_ref(history *h, cx_file folder, const char *path, unsigned depth, cx_err *err)
{
    cx_buf text;
    cx_oid oid;
    cx_err ignored;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&text, cx_alloc_default());
    if (!cx_failed(cx_folder_read_file(folder, path, REF_BYTES_MAX, &text, &ignored))) {
        cx_str value = cx_buf_str(&text);
        while (value.size != 0 &&
               (value.data[value.size - 1] == '\n' || value.data[value.size - 1] == '\r'))
            value.size--;
        cx_str name = cx_str_starts(value, CX_STR("ref: "))
                          ? cx_str_from(value.data + 5, value.size - 5)
                          : (cx_str){NULL, 0};
        if (cx_oid_parse(value, &oid)) {
            status = wait_for(h, &oid, err);
        } else if (is_ref_name(name) && depth < SYMBOLIC_MAX) {
            cx_str copy = cx_arena_copy_str(&h->scratch, name);
            status = copy.data == NULL ? cx_fail_nomem(err)
                                       : read_ref(h, h->common, copy.data, depth + 1, err);
        }
    }
    cx_buf_done(&text);
    return status;
}

typedef struct ref_walk {
    history *h;
    cx_status status;
    cx_err *err;
} ref_walk;

static cx_walk_step visit_ref(void *arg, const cx_walk_entry *entry)
{
    ref_walk *walk = arg;
    history *h = walk->h;
    char path[CX_PATH_BYTES_MAX + 8];
    if (entry->facts.kind != CX_FILE_REGULAR)
        return CX_WALK_ON;
    if (h->refs++ == CX_GIT_HISTORY_REFS_MAX) {
        h->out->is_cut = true;
        return CX_WALK_STOP;
    }
    int size = snprintf(path, sizeof path, "refs/%s", entry->path);
    if (size < 0 || (size_t)size >= sizeof path)
        return CX_WALK_ON;
    walk->status = read_ref(h, h->common, path, 0, walk->err);
    return cx_failed(walk->status) ? CX_WALK_STOP : CX_WALK_ON;
}

static cx_status read_loose_refs(history *h, cx_err *err)
{
    cx_file refs;
    cx_err ignored;
    ref_walk walk = {.h = h, .status = CX_SUCCESS, .err = err};
    const cx_walk_limits limits = {
        .entries = 4 * CX_GIT_HISTORY_REFS_MAX, .depth = 64, .may_vanish = true};
    if (cx_failed(
            cx_folder_open_in(h->common, "refs", CX_IO_READ | CX_IO_DIRECTORY, &refs, &ignored)))
        return CX_SUCCESS;
    cx_status walked = cx_folder_walk(refs, &limits, visit_ref, &walk, &ignored);
    cx_folder_close(refs);
    CX_TRY(walk.status);
    if (cx_failed(walked))
        h->out->is_cut = true;
    return CX_SUCCESS;
}

/* "<id> SP <name>" a line; others begin with '#' or '^'. */
static cx_status read_packed_refs(history *h, cx_err *err)
{
    cx_buf text;
    cx_err ignored;
    cx_oid oid;
    cx_str line;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status =
        cx_folder_read_file(h->common, "packed-refs", PACKED_BYTES_MAX, &text, &ignored);
    if (status.code == CX_E_LIMIT)
        h->out->is_cut = true;
    cx_str rest = cx_failed(status) ? (cx_str){NULL, 0} : cx_buf_str(&text);
    status = CX_SUCCESS;
    while (!cx_failed(status) && take_line(&rest, &line)) {
        const char *space = line.size == 0 ? NULL : memchr(line.data, ' ', line.size);
        if (space == NULL ||
            !cx_oid_parse(cx_str_from(line.data, (size_t)(space - line.data)), &oid))
            continue;
        if (h->refs++ >= CX_GIT_HISTORY_REFS_MAX) {
            h->out->is_cut = true;
            break;
        }
        status = wait_for(h, &oid, err);
    }
    cx_buf_done(&text);
    return status;
}

static bool visit_pack(void *arg, const char *name)
{
    history *h = arg;
    char path[CX_PATH_BYTES_MAX + 1];
    cx_facts facts;
    cx_err ignored;
    if (!cx_str_ends(cx_str_z(name), CX_STR(".pack")))
        return true;
    int size = snprintf(path, sizeof path, "objects/pack/%s", name);
    if (size > 0 && (size_t)size < sizeof path &&
        !cx_failed(cx_folder_facts(h->common, path, &facts, &ignored)))
        h->out->has_new_packs = h->out->has_new_packs || facts.changed_ns >= h->since_ns;
    return true;
}

/* --- the git directory ------------------------------------------------------------------------ */

/* A path that a file of git names, from the folder it is in; it is only opened and read. */
static cx_status open_named(const char *folder, cx_str named, cx_arena *arena, cx_file *out,
                            cx_str *out_path, cx_err *err)
{
    while (named.size != 0 &&
           (named.data[named.size - 1] == '\n' || named.data[named.size - 1] == '\r'))
        named.size--;
    if (named.size == 0 || named.size > CX_PATH_BYTES_MAX ||
        memchr(named.data, 0, named.size) != NULL)
        return cx_fail(err, CX_E_FORMAT, "%s: a file of git names no folder", folder);
    *out_path = named.data[0] == '/'
                    ? cx_arena_copy_str(arena, named)
                    : cx_arena_printf(arena, "%s/%.*s", folder, (int)named.size, named.data);
    return out_path->data == NULL ? cx_fail_nomem(err) : cx_folder_open(out_path->data, out, err);
}

/* `.git` is a folder, or the file of a linked work tree: "gitdir: PATH". */
static cx_status open_git(history *h, const char *folder, cx_err *err)
{
    cx_file tree;
    cx_facts facts;
    cx_buf text;
    cx_str path = {NULL, 0};
    CX_TRY(cx_folder_open(folder, &tree, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_folder_facts(tree, ".git", &facts, err);
    if (status.code == CX_E_NOT_FOUND) {
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoRepository", CX_NO_OFFSET,
                            "%s: found no .git, expected a work tree of git", folder);
    } else if (!cx_failed(status) && facts.kind == CX_FILE_FOLDER) {
        status = cx_folder_open_in(tree, ".git", CX_IO_READ | CX_IO_DIRECTORY, &h->git, err);
    } else if (!cx_failed(status)) {
        status = cx_folder_read_file(tree, ".git", REF_BYTES_MAX, &text, err);
        cx_str line = cx_buf_str(&text);
        if (!cx_failed(status) && !cx_str_starts(line, CX_STR("gitdir: ")))
            status = cx_fail(err, CX_E_FORMAT, "%s/.git: found no \"gitdir: PATH\"", folder);
        if (!cx_failed(status))
            status = open_named(folder, cx_str_from(line.data + 8, line.size - 8), &h->scratch,
                                &h->git, &path, err);
    }
    cx_folder_close(tree);
    cx_buf_clear(&text);
    h->common = h->git;
    if (!cx_failed(status) && path.data != NULL &&
        !cx_failed(cx_folder_read_file(h->git, "commondir", REF_BYTES_MAX, &text, NULL))) {
        cx_str ignored;
        h->common = CX_FILE_NONE;
        status = open_named(path.data, cx_buf_str(&text), &h->scratch, &h->common, &ignored, err);
    }
    cx_buf_done(&text);
    return status;
}

static int by_time(const void *left, const void *right)
{
    const cx_git_made *a = left, *b = right;
    if (a->made_ns != b->made_ns)
        return a->made_ns < b->made_ns ? -1 : 1;
    return memcmp(a->oid.bytes, b->oid.bytes, sizeof a->oid.bytes);
}

static cx_status read_history(history *h, const char *folder, cx_err *err)
{
    cx_err ignored;
    CX_TRY(open_git(h, folder, err));
    CX_TRY(read_ref(h, h->git, "HEAD", 0, err));
    CX_TRY(read_loose_refs(h, err));
    CX_TRY(read_packed_refs(h, err));
    CX_TRY(visit_objects(h, err));
    cx_status packs = cx_folder_list(h->common, "objects/pack", visit_pack, h, &ignored);
    (void)packs; /* a repository without packs has no such folder */
    cx_git_made *commits = CX_ARENA_ARRAY(h->arena, cx_git_made, h->made.count + 1);
    if (commits == NULL)
        return cx_fail_nomem(err);
    if (h->made.count != 0) {
        memcpy(commits, h->made.items, h->made.count * sizeof *commits);
        qsort(commits, h->made.count, sizeof *commits, by_time);
    }
    h->out->commits = commits;
    h->out->count = h->made.count;
    return CX_SUCCESS;
}

cx_status cx_git_history_read(const char *folder, int64_t since_ns, int64_t until_ns,
                              cx_arena *arena, cx_git_history *out, cx_err *err)
{
    history h = {.git = CX_FILE_NONE,
                 .common = CX_FILE_NONE,
                 .arena = arena,
                 .since_ns = since_ns,
                 .until_ns = until_ns,
                 .out = out};
    memset(out, 0, sizeof *out);
    cx_arena_init(&h.scratch, cx_alloc_default(), 0);
    cx_map_init(&h.seen, cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_status status = read_history(&h, folder, err);
    if (h.common != h.git)
        cx_folder_close(h.common);
    cx_folder_close(h.git);
    cx_vec_done(&h.waiting, cx_alloc_default());
    cx_vec_done(&h.made, cx_alloc_default());
    cx_map_done(&h.seen);
    cx_arena_done(&h.scratch);
    return status;
}

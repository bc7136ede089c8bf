/*
 * snapshot_repo.c - the repository's side of a snapshot: its own files, references, HEAD, index.
 *
 * The repository's files are read from its folder and not asked of git, which might act on them.
 * References and the index are asked of git, which knows their formats; a loose reference that git
 * keeps silent about (a broken one) is added from the folder.
 */
#include "run/snapshot_parts.h"

#include <stdlib.h>

#include "base/thread.h"
#include "crypto/digest.h"
#include "run/git_parts.h"

#define META_BYTES_MAX ((size_t)64 << 20)
#define HEAD_BYTES_MAX 4096

/* --- the repository's own files --------------------------------------------------------------- */

typedef struct metas {
    cx_snapshot *snapshot;
    CX_VEC(cx_snap_meta) list;
    cx_file folder;  /* that `path`s are in */
    const char *as;  /* what their names begin with */
    bool names_only; /* of folders: not what is in them */
    cx_status status;
    cx_err *err;
} metas;

static cx_status add_meta(metas *m, cx_str name, const cx_facts *facts, cx_bytes contents)
{
    cx_snap_meta *slot = cx_vec_push(&m->list, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(m->err);
    memset(slot, 0, sizeof *slot);
    slot->name = cx_arena_copy_str(&m->snapshot->repo_arena, name);
    slot->kind_mode = (uint32_t)facts->kind << 16 | facts->mode;
    if (facts->kind == CX_FILE_REGULAR || facts->kind == CX_FILE_LINK)
        slot->sha256 = cx_digest_of(contents);
    return slot->name.data == NULL ? cx_fail_nomem(m->err) : CX_SUCCESS;
}

static cx_status take_meta(metas *m, const char *path, const cx_facts *facts)
{
    cx_buf contents;
    cx_buf_init(&contents, cx_alloc_default());
    cx_status status = CX_SUCCESS;
    if (facts->kind == CX_FILE_REGULAR)
        status = cx_folder_read_file(m->folder, path, META_BYTES_MAX, &contents, m->err);
    else if (facts->kind == CX_FILE_LINK)
        status = cx_folder_read_link(m->folder, path, &contents, m->err);
    if (!cx_failed(status)) {
        cx_str name = cx_arena_printf(&m->snapshot->repo_arena, "%s%s", m->as, path);
        status = name.data == NULL ? cx_fail_nomem(m->err)
                                   : add_meta(m, name, facts, cx_buf_bytes(&contents));
    }
    cx_buf_done(&contents);
    return status;
}

static cx_status take_one(metas *m, const char *path)
{
    cx_facts facts;
    cx_status status = cx_folder_facts(m->folder, path, &facts, m->err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    return cx_failed(status) ? status : take_meta(m, path, &facts);
}

static cx_walk_step visit_meta(void *arg, const cx_walk_entry *entry)
{
    metas *m = arg;
    m->status = take_meta(m, entry->path, &entry->facts);
    if (cx_failed(m->status))
        return CX_WALK_STOP;
    return m->names_only ? CX_WALK_SKIP : CX_WALK_ON;
}

/* Everything at and below one folder of the repository, which need not be there. */
static cx_status take_below(metas *m, const char *folder, bool names_only)
{
    cx_facts facts;
    cx_file within, whole = m->folder;
    cx_status status = cx_folder_facts(whole, folder, &facts, m->err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    if (facts.kind != CX_FILE_FOLDER)
        return take_meta(m, folder, &facts); /* hooks as a link to elsewhere: told as that link */
    CX_TRY(cx_folder_open_in(whole, folder, CX_IO_READ | CX_IO_DIRECTORY, &within, m->err));
    cx_str as = cx_arena_printf(&m->snapshot->repo_arena, "%s/", folder);
    m->folder = within;
    m->as = as.data == NULL ? "" : as.data;
    m->names_only = names_only;
    m->status = CX_SUCCESS;
    status = as.data == NULL ? cx_fail_nomem(m->err)
                             : cx_folder_walk(within, NULL, visit_meta, m, m->err);
    m->folder = whole;
    m->as = "";
    cx_folder_close(within);
    return cx_failed(status) ? status : m->status;
}

static cx_status take_common(metas *m)
{
    CX_TRY(take_one(m, "config"));
    CX_TRY(take_one(m, "shallow"));
    CX_TRY(take_below(m, "hooks", false));
    CX_TRY(take_below(m, "info", false));
    CX_TRY(take_below(m, "objects/info", false));
    return take_below(m, "worktrees", true);
}

/* Runs `take` on a folder given by an absolute path. */
static cx_status take_in(metas *m, const char *path, cx_status (*take)(metas *m))
{
    CX_TRY(cx_folder_open(path, &m->folder, m->err));
    cx_status status = take(m);
    cx_folder_close(m->folder);
    return status;
}

static cx_status take_pointer(metas *m)
{
    cx_facts facts;
    cx_status status = cx_folder_facts(m->folder, ".git", &facts, m->err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    /* The main checkout's is a folder: its contents are the repository. */
    if (facts.kind == CX_FILE_FOLDER)
        return add_meta(m, CX_STR(".git"), &facts, (cx_bytes){NULL, 0});
    return take_one(m, ".git");
}

static cx_status take_own(metas *m)
{
    CX_TRY(take_one(m, "config.worktree"));
    CX_TRY(take_one(m, "commondir"));
    return take_one(m, "gitdir");
}

static int compare_metas(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_snap_meta *)a)->name, ((const cx_snap_meta *)b)->name);
}

static cx_status take_metas(const cx_git *git, cx_snapshot *s, cx_err *err)
{
    metas m = {.snapshot = s, .as = "", .err = err};
    cx_status status = take_in(&m, cx_git_common_dir(git), take_common);
    if (!cx_failed(status))
        status = take_in(&m, cx_git_worktree(git), take_pointer);
    if (!cx_failed(status))
        status = take_in(&m, cx_git_dir(git), take_own);
    if (!cx_failed(status)) {
        s->metas =
            CX_ARENA_ARRAY(&s->repo_arena, cx_snap_meta, m.list.count == 0 ? 1 : m.list.count);
        if (s->metas == NULL)
            status = cx_fail_nomem(err);
        else if (m.list.count != 0) {
            memcpy(s->metas, m.list.items, m.list.count * sizeof *s->metas);
            s->meta_count = m.list.count;
            qsort(s->metas, s->meta_count, sizeof *s->metas, compare_metas);
        }
    }
    cx_vec_done(&m.list, cx_alloc_default());
    return status;
}

/* --- references ------------------------------------------------------------------------------- */

static int compare_refs(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_snap_ref *)a)->name, ((const cx_snap_ref *)b)->name);
}

static size_t count_lines(cx_str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == '\n';
    return count;
}

/* "<oid> <target or nothing> <name>" */
static bool parse_ref(cx_str line, size_t oid_size, cx_snap_ref *out)
{
    size_t digits = 2 * oid_size;
    if (line.size <= digits + 2 || line.data[digits] != ' ' ||
        !cx_oid_parse((cx_str){line.data, digits}, &out->oid))
        return false;
    cx_str rest = {line.data + digits + 1, line.size - digits - 1};
    const char *space = memchr(rest.data, ' ', rest.size);
    if (space == NULL)
        return false;
    out->target = (cx_str){rest.data, (size_t)(space - rest.data)};
    out->name = (cx_str){space + 1, rest.size - out->target.size - 1};
    return cx_str_starts(out->name, CX_STR("refs/"));
}

cx_status cx_refs_parse(cx_str text, size_t oid_size, cx_arena *arena, cx_snap_ref **out,
                        size_t *out_count, cx_err *err)
{
    size_t lines = count_lines(text), count = 0;
    cx_snap_ref *refs = CX_ARENA_ARRAY(arena, cx_snap_ref, lines == 0 ? 1 : lines);
    cx_str rest = cx_arena_copy_str(arena, text);
    if (refs == NULL || rest.data == NULL)
        return cx_fail_nomem(err);
    while (rest.size != 0) {
        const char *end = memchr(rest.data, '\n', rest.size);
        if (end == NULL)
            return cx_fail(err, CX_E_FORMAT, "git's list of references ends in the middle");
        cx_str line = {rest.data, (size_t)(end - rest.data)};
        if (!parse_ref(line, oid_size, &refs[count]))
            return cx_fail(err, CX_E_FORMAT, "git lists references in a form that we do not know");
        count++;
        rest.data += line.size + 1;
        rest.size -= line.size + 1;
    }
    qsort(refs, count, sizeof *refs, compare_refs);
    *out = refs;
    *out_count = count;
    return CX_SUCCESS;
}

typedef struct loose {
    cx_snapshot *snapshot;
    CX_VEC(cx_snap_ref) broken;
    bool failed;
} loose;

static cx_walk_step visit_ref(void *arg, const cx_walk_entry *entry)
{
    loose *l = arg;
    if (entry->facts.kind == CX_FILE_FOLDER)
        return CX_WALK_ON;
    cx_str name = cx_arena_printf(&l->snapshot->repo_arena, "refs/%s", entry->path);
    const cx_snap_ref key = {.name = name};
    if (name.data != NULL &&
        bsearch(&key, l->snapshot->refs, l->snapshot->ref_count, sizeof key, compare_refs) != NULL)
        return CX_WALK_ON;
    cx_snap_ref *slot = name.data == NULL ? NULL : cx_vec_push(&l->broken, cx_alloc_default());
    if (slot == NULL) {
        l->failed = true;
        return CX_WALK_STOP;
    }
    *slot = (cx_snap_ref){.name = name, .target = CX_STR("broken")};
    return CX_WALK_ON;
}

static cx_status add_broken(cx_snapshot *s, const loose *found, cx_err *err)
{
    size_t count = s->ref_count + found->broken.count;
    cx_snap_ref *all = CX_ARENA_ARRAY(&s->repo_arena, cx_snap_ref, count);
    if (all == NULL)
        return cx_fail_nomem(err);
    if (s->ref_count != 0)
        memcpy(all, s->refs, s->ref_count * sizeof *all);
    memcpy(all + s->ref_count, found->broken.items, found->broken.count * sizeof *all);
    qsort(all, count, sizeof *all, compare_refs);
    s->refs = all;
    s->ref_count = count;
    return CX_SUCCESS;
}

static cx_status take_loose(cx_snapshot *s, const char *git_dir, cx_err *err)
{
    cx_file folder, refs;
    loose found = {.snapshot = s};
    CX_TRY(cx_folder_open(git_dir, &folder, err));
    cx_status status = cx_folder_open_in(folder, "refs", CX_IO_READ | CX_IO_DIRECTORY, &refs, err);
    cx_folder_close(folder);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS; /* a linked work tree has none of its own as a rule */
    CX_TRY(status);
    status = cx_folder_walk(refs, NULL, visit_ref, &found, err);
    cx_folder_close(refs);
    if (!cx_failed(status) && found.failed)
        status = cx_fail_nomem(err);
    if (!cx_failed(status) && found.broken.count != 0)
        status = add_broken(s, &found, err);
    cx_vec_done(&found.broken, cx_alloc_default());
    return status;
}

static cx_status take_refs(const cx_git *git, cx_snapshot *s, cx_err *err)
{
    cx_buf text;
    cx_git_call call = {
        .args = CX_GIT_ARGS("for-each-ref", "--format=%(objectname) %(symref) %(refname)"),
        .bare = true};
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_git_call_run(git, &call, &text, NULL, err);
    if (!cx_failed(status))
        status = cx_refs_parse(cx_buf_str(&text), cx_git_oid_size(git), &s->repo_arena, &s->refs,
                               &s->ref_count, err);
    cx_buf_done(&text);
    CX_TRY(status);
    CX_TRY(take_loose(s, cx_git_common_dir(git), err));
    return cx_git_is_linked(git) ? take_loose(s, cx_git_dir(git), err) : CX_SUCCESS;
}

/* --- HEAD ------------------------------------------------------------------------------------- */

static cx_status take_head(const cx_git *git, cx_snapshot *s, cx_err *err)
{
    cx_file folder;
    cx_buf text;
    cx_facts facts;
    CX_TRY(cx_folder_open(cx_git_dir(git), &folder, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_folder_facts(folder, "HEAD", &facts, err);
    if (!cx_failed(status) && facts.kind == CX_FILE_LINK) {
        cx_buf_add_z(&text, "ref: "); /* how git wrote it long ago */
        status = cx_folder_read_link(folder, "HEAD", &text, err);
    } else if (!cx_failed(status)) {
        status = cx_folder_read_file(folder, "HEAD", HEAD_BYTES_MAX, &text, err);
    }
    cx_folder_close(folder);
    cx_str line = cx_buf_str(&text);
    while (line.size != 0 && (line.data[line.size - 1] == '\n' || line.data[line.size - 1] == ' '))
        line.size--;
    s->head_ref = CX_STR("");
    if (!cx_failed(status) && cx_str_starts(line, CX_STR("ref: "))) {
        s->head_ref = cx_arena_copy_str(&s->repo_arena, (cx_str){line.data + 5, line.size - 5});
        const cx_snap_ref key = {.name = s->head_ref};
        const cx_snap_ref *ref =
            s->head_ref.data == NULL || s->ref_count == 0
                ? NULL
                : bsearch(&key, s->refs, s->ref_count, sizeof key, compare_refs);
        if (ref != NULL)
            s->head = ref->oid;
        if (s->head_ref.data == NULL)
            status = cx_fail_nomem(err);
    } else if (!cx_failed(status) && !cx_oid_parse(line, &s->head)) {
        status =
            cx_fail(err, CX_E_FORMAT, "HEAD of the work tree is neither a branch nor a commit");
    }
    cx_buf_done(&text);
    return status;
}

/* --- the index -------------------------------------------------------------------------------- */

/* "<tag> <mode> <oid> <stage>\t<path>"; a lower-case tag is assume-unchanged or fsmonitor-valid. */
static bool parse_index_entry(cx_str field, size_t oid_size, cx_index_entry *out)
{
    size_t digits = 2 * oid_size, head = 2 + 7 + digits + 3;
    if (field.size <= head || field.data[1] != ' ' || field.data[8] != ' ' ||
        field.data[9 + digits] != ' ' || field.data[11 + digits] != '\t' ||
        !cx_git_mode((cx_str){field.data + 2, 6}, &out->mode) ||
        !cx_oid_parse((cx_str){field.data + 9, digits}, &out->oid))
        return false;
    char tag = field.data[0], stage = field.data[10 + digits];
    if (stage < '0' || stage > '3')
        return false;
    bool lower = tag >= 'a' && tag <= 'z';
    out->stage = (uint8_t)(stage - '0');
    out->flags = (uint8_t)((lower ? CX_INDEX_ASSUME_UNCHANGED : 0) |
                           (tag == 'S' || tag == 's' ? CX_INDEX_SKIP_WORKTREE : 0));
    out->path = (cx_str){field.data + head, field.size - head};
    return lower || (tag >= 'A' && tag <= 'Z') || tag == '?';
}

cx_status cx_index_parse(cx_str text, size_t oid_size, cx_arena *arena, cx_index_entry **out,
                         size_t *out_count, cx_err *err)
{
    size_t room = 0, count = 0;
    cx_str kept = cx_arena_copy_str(arena, text);
    for (size_t i = 0; i < text.size; i++)
        room += text.data[i] == '\0';
    cx_index_entry *entries = CX_ARENA_ARRAY(arena, cx_index_entry, room == 0 ? 1 : room);
    if (kept.data == NULL || entries == NULL)
        return cx_fail_nomem(err);
    cx_git_fields fields = {kept, false};
    cx_str field;
    while (cx_git_field(&fields, &field)) {
        if (!parse_index_entry(field, oid_size, &entries[count]))
            return cx_fail(err, CX_E_FORMAT, "git lists the index in a form that we do not know");
        count++;
    }
    if (fields.cut)
        return cx_fail(err, CX_E_FORMAT, "git's list of the index ends in the middle");
    *out = entries;
    *out_count = count;
    return CX_SUCCESS;
}

static cx_status take_index(const cx_git *git, const char *index_file, cx_snapshot *s, cx_err *err)
{
    cx_buf text;
    cx_git_call call = {.args = CX_GIT_ARGS("ls-files", "-z", "-s", "-v", "-f", "--full-name"),
                        .index_file = index_file};
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_git_call_run(git, &call, &text, NULL, err);
    if (!cx_failed(status))
        status = cx_index_parse(cx_buf_str(&text), cx_git_oid_size(git), &s->index_arena, &s->index,
                                &s->index_count, err);
    cx_buf_done(&text);
    return status;
}

/* The index is listed beside the rest: git is waited for once, not twice. */
typedef struct listing {
    const cx_git *git;
    const char *index_file;
    cx_snapshot *snapshot;
    cx_status status;
    cx_err err;
} listing;

static void list_index(void *arg)
{
    listing *l = arg;
    l->status = take_index(l->git, l->index_file, l->snapshot, &l->err);
}

static cx_status take_rest(const cx_git *git, cx_snapshot *snapshot, cx_err *err)
{
    CX_TRY(take_refs(git, snapshot, err));
    CX_TRY(take_head(git, snapshot, err));
    return take_metas(git, snapshot, err);
}

cx_status cx_snapshot_repository(const cx_git *git, const char *index_file, cx_snapshot *snapshot,
                                 cx_err *err)
{
    listing l = {.git = git, .index_file = index_file, .snapshot = snapshot};
    cx_thread thread;
    bool beside = cx_thread_start(&thread, list_index, &l);
    cx_status status = take_rest(git, snapshot, err);
    if (beside)
        cx_thread_join(&thread);
    else
        list_index(&l);
    if (cx_failed(status) || !cx_failed(l.status))
        return status;
    if (err != NULL)
        *err = l.err;
    return l.status;
}

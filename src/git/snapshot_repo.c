/*
 * snapshot_repo.c - the repository's part of a snapshot: its own files, references, HEAD, index.
 *
 * The repository's files, HEAD and the index are read from their folders and not through git, which
 * might act on them.  References are listed by git, which knows how they are packed; a loose
 * reference that git does not list (a broken one) is added from the folder.  The branch of an agent
 * is read from the agent's own folder.
 */
#include "git/snapshot_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "crypto/api.h"
#include "git/git_parts.h"

#define META_BYTES_MAX ((size_t)64 << 20)
#define HEAD_BYTES_MAX 4096

/* --- the repository's own files --------------------------------------------------------------- */

typedef struct meta_reader {
    cx_snapshot *snapshot;
    CX_VEC(cx_snap_meta) list;
    cx_file folder;  /* the folder of the paths */
    const char *as;  /* prefix of the names */
    bool names_only; /* list names of folders, not their contents */
    cx_status status;
    cx_err *err;
} meta_reader;

static cx_status add_meta(meta_reader *m, cx_str name, const cx_facts *facts, cx_bytes contents)
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

static cx_status read_meta(meta_reader *m, const char *path, const cx_facts *facts)
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

static cx_status read_meta_at(meta_reader *m, const char *path)
{
    cx_facts facts;
    cx_status status = cx_folder_facts(m->folder, path, &facts, m->err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    return cx_failed(status) ? status : read_meta(m, path, &facts);
}

static cx_walk_step visit_meta(void *arg, const cx_walk_entry *entry)
{
    meta_reader *m = arg;
    m->status = read_meta(m, entry->path, &entry->facts);
    if (cx_failed(m->status))
        return CX_WALK_STOP;
    return m->names_only ? CX_WALK_SKIP : CX_WALK_ON;
}

/* Reads everything at and below one folder of the repository, which may be absent. */
static cx_status read_metas_below(meta_reader *m, const char *folder, bool names_only)
{
    cx_facts facts;
    cx_file within, whole = m->folder;
    cx_status status = cx_folder_facts(whole, folder, &facts, m->err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    if (facts.kind != CX_FILE_FOLDER)
        return read_meta(m, folder, &facts); /* hooks as a symbolic link: recorded as that link */
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

static cx_status read_common_metas(meta_reader *m)
{
    CX_TRY(read_meta_at(m, "config"));
    CX_TRY(read_meta_at(m, "shallow"));
    CX_TRY(read_metas_below(m, "hooks", false));
    CX_TRY(read_metas_below(m, "info", false));
    CX_TRY(read_metas_below(m, "objects/info", false));
    return read_metas_below(m, "worktrees", true);
}

/* Where HEAD and the index are. */
static const char *snapshot_git_dir(const cx_git *git, const cx_agent_git *agent)
{
    return agent != NULL ? agent->git_dir : cx_git_dir(git);
}

/* Runs `read_part` on the folder of an absolute path. */
static cx_status read_metas_in(meta_reader *m, const char *path,
                               cx_status (*read_part)(meta_reader *m))
{
    CX_TRY(cx_folder_open(path, &m->folder, m->err));
    cx_status status = read_part(m);
    cx_folder_close(m->folder);
    return status;
}

static cx_status read_git_pointer(meta_reader *m)
{
    cx_facts facts;
    cx_status status = cx_folder_facts(m->folder, ".git", &facts, m->err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    /* In the main checkout `.git` is a folder: its contents are the repository. */
    if (facts.kind == CX_FILE_FOLDER)
        return add_meta(m, CX_STR(".git"), &facts, (cx_bytes){NULL, 0});
    return read_meta_at(m, ".git");
}

static cx_status read_own_metas(meta_reader *m)
{
    CX_TRY(read_meta_at(m, "config.worktree"));
    CX_TRY(read_meta_at(m, "commondir"));
    return read_meta_at(m, "gitdir");
}

static int compare_metas(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_snap_meta *)a)->name, ((const cx_snap_meta *)b)->name);
}

static cx_status read_metas(const cx_git *git, const cx_agent_git *agent, cx_snapshot *s,
                            cx_err *err)
{
    meta_reader m = {.snapshot = s, .as = "", .err = err};
    cx_status status = read_metas_in(&m, cx_git_common_dir(git), read_common_metas);
    if (!cx_failed(status))
        status = read_metas_in(&m, cx_git_worktree(git), read_git_pointer);
    if (!cx_failed(status))
        status = read_metas_in(&m, snapshot_git_dir(git, agent), read_own_metas);
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
    CX_ASSERT(oid_size == 20 || oid_size == 32);
    size_t lines = count_lines(text), count = 0;
    cx_snap_ref *refs = CX_ARENA_ARRAY(arena, cx_snap_ref, lines == 0 ? 1 : lines);
    cx_str rest = cx_arena_copy_str(arena, text);
    if (refs == NULL || rest.data == NULL)
        return cx_fail_nomem(err);
    while (rest.size != 0) {
        const char *end = memchr(rest.data, '\n', rest.size);
        if (end == NULL)
            return cx_fail(err, CX_E_FORMAT, "git's list of references is truncated");
        cx_str line = {rest.data, (size_t)(end - rest.data)};
        if (!parse_ref(line, oid_size, &refs[count]))
            return cx_fail(
                err, CX_E_FORMAT,
                "git listed references in an unknown format; cortex supports git 2.38 and later");
        count++;
        rest.data += line.size + 1;
        rest.size -= line.size + 1;
    }
    qsort(refs, count, sizeof *refs, compare_refs);
    *out = refs;
    *out_count = count;
    return CX_SUCCESS;
}

typedef struct loose_refs {
    cx_snapshot *snapshot;
    cx_file folder;
    const char *prefix; /* of the names: "refs/" */
    cx_str skip;        /* references below it are read from elsewhere; empty = none */
    size_t oid_size;
    bool with_values; /* false: a reference that git has not listed is broken */
    CX_VEC(cx_snap_ref) found;
    bool failed;
} loose_refs;

/* "<oid>\n" or "ref: <name>\n"; any other content, and anything but a regular file, is broken. */
static void read_loose_ref(const loose_refs *l, const char *path, const cx_facts *facts,
                           cx_snap_ref *out)
{
    cx_buf text;
    out->target = CX_STR("broken");
    if (facts->kind != CX_FILE_REGULAR)
        return;
    cx_buf_init(&text, cx_alloc_default());
    bool read = !cx_failed(cx_folder_read_file(l->folder, path, HEAD_BYTES_MAX, &text, NULL));
    cx_str line = cx_buf_str(&text);
    while (line.size != 0 && (line.data[line.size - 1] == '\n' || line.data[line.size - 1] == ' '))
        line.size--;
    cx_oid oid;
    if (read && cx_str_starts(line, CX_STR("ref: ")) && line.size > 5) {
        cx_str target = {line.data + 5, line.size - 5};
        out->target = cx_arena_copy_str(&l->snapshot->repo_arena, target);
    } else if (read && cx_oid_parse(line, &oid) && oid.size == l->oid_size) {
        out->target = CX_STR("");
        out->oid = oid;
    }
    cx_buf_done(&text);
}

static cx_walk_step visit_loose_ref(void *arg, const cx_walk_entry *entry)
{
    loose_refs *l = arg;
    if (entry->facts.kind == CX_FILE_FOLDER)
        return CX_WALK_ON;
    cx_str name = cx_arena_printf(&l->snapshot->repo_arena, "%s%s", l->prefix, entry->path);
    const cx_snap_ref key = {.name = name};
    if (name.data != NULL && l->skip.size != 0 && cx_str_starts(name, l->skip))
        return CX_WALK_ON;
    if (name.data != NULL && l->snapshot->ref_count != 0 &&
        bsearch(&key, l->snapshot->refs, l->snapshot->ref_count, sizeof key, compare_refs) != NULL)
        return CX_WALK_ON;
    cx_snap_ref *slot = name.data == NULL ? NULL : cx_vec_push(&l->found, cx_alloc_default());
    if (slot == NULL) {
        l->failed = true;
        return CX_WALK_STOP;
    }
    *slot = (cx_snap_ref){.name = name, .target = CX_STR("broken")};
    if (l->with_values)
        read_loose_ref(l, entry->path, &entry->facts, slot);
    l->failed = slot->target.data == NULL;
    return l->failed ? CX_WALK_STOP : CX_WALK_ON;
}

static cx_status add_loose_refs(cx_snapshot *s, const loose_refs *l, cx_err *err)
{
    size_t count = s->ref_count + l->found.count;
    cx_snap_ref *all = CX_ARENA_ARRAY(&s->repo_arena, cx_snap_ref, count);
    if (all == NULL)
        return cx_fail_nomem(err);
    if (s->ref_count != 0)
        memcpy(all, s->refs, s->ref_count * sizeof *all);
    memcpy(all + s->ref_count, l->found.items, l->found.count * sizeof *all);
    qsort(all, count, sizeof *all, compare_refs);
    s->refs = all;
    s->ref_count = count;
    return CX_SUCCESS;
}

static cx_status walk_loose_refs(cx_snapshot *s, loose_refs *l, cx_err *err)
{
    l->snapshot = s;
    cx_status status = cx_folder_walk(l->folder, NULL, visit_loose_ref, l, err);
    if (!cx_failed(status) && l->failed)
        status = cx_fail_nomem(err);
    if (!cx_failed(status) && l->found.count != 0)
        status = add_loose_refs(s, l, err);
    cx_vec_done(&l->found, cx_alloc_default());
    return status;
}

/* Adds the loose references of a git directory that git has not listed. */
static cx_status read_loose_refs(cx_snapshot *s, const char *git_dir, cx_str skip, cx_err *err)
{
    cx_file folder;
    loose_refs l = {.prefix = "refs/", .skip = skip};
    CX_TRY(cx_folder_open(git_dir, &folder, err));
    cx_status status =
        cx_folder_open_in(folder, "refs", CX_IO_READ | CX_IO_DIRECTORY, &l.folder, err);
    cx_folder_close(folder);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS; /* a linked work tree usually has none of its own */
    CX_TRY(status);
    status = walk_loose_refs(s, &l, err);
    cx_folder_close(l.folder);
    return status;
}

/* Replaces the references below the agent's prefix by the agent's copies. */
static cx_status read_agent_refs(cx_snapshot *s, const cx_agent_git *agent, size_t oid_size,
                                 cx_err *err)
{
    size_t remaining = 0;
    loose_refs l = {.oid_size = oid_size, .with_values = true};
    cx_str prefix = cx_arena_copy_str(&s->repo_arena, agent->ref_prefix);
    if (prefix.data == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < s->ref_count; i++)
        if (!cx_str_starts(s->refs[i].name, prefix))
            s->refs[remaining++] = s->refs[i];
    s->ref_count = remaining;
    l.prefix = prefix.data;
    CX_TRY(cx_folder_open(agent->ref_dir, &l.folder, err));
    cx_status status = walk_loose_refs(s, &l, err);
    cx_folder_close(l.folder);
    return status;
}

static cx_status read_refs(const cx_git *git, const cx_agent_git *agent, cx_snapshot *s,
                           cx_err *err)
{
    cx_buf text;
    bool own_refs = agent != NULL && agent->ref_dir != NULL;
    cx_str skip = own_refs ? agent->ref_prefix : CX_STR("");
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
    CX_TRY(read_loose_refs(s, cx_git_common_dir(git), skip, err));
    if (own_refs)
        CX_TRY(read_agent_refs(s, agent, cx_git_oid_size(git), err));
    return cx_git_is_linked(git) ? read_loose_refs(s, snapshot_git_dir(git, agent), CX_STR(""), err)
                                 : CX_SUCCESS;
}

/* --- HEAD ------------------------------------------------------------------------------------- */

static cx_status read_head(const cx_git *git, const cx_agent_git *agent, cx_snapshot *s,
                           cx_err *err)
{
    cx_file folder;
    cx_buf text;
    cx_facts facts;
    CX_TRY(cx_folder_open(snapshot_git_dir(git, agent), &folder, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_folder_facts(folder, "HEAD", &facts, err);
    if (!cx_failed(status) && facts.kind == CX_FILE_LINK) {
        cx_buf_add_z(&text, "ref: "); /* git once wrote HEAD as a link */
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
    CX_ASSERT(oid_size == 20 || oid_size == 32);
    size_t capacity = 0, count = 0;
    cx_str copy = cx_arena_copy_str(arena, text);
    for (size_t i = 0; i < text.size; i++)
        capacity += text.data[i] == '\0';
    cx_index_entry *entries = CX_ARENA_ARRAY(arena, cx_index_entry, capacity == 0 ? 1 : capacity);
    if (copy.data == NULL || entries == NULL)
        return cx_fail_nomem(err);
    cx_git_fields fields = {copy, false};
    cx_str field;
    while (cx_git_field(&fields, &field)) {
        if (!parse_index_entry(field, oid_size, &entries[count]))
            return cx_fail(
                err, CX_E_FORMAT,
                "git listed the index in an unknown format; cortex supports git 2.38 and later");
        count++;
    }
    if (fields.cut)
        return cx_fail(err, CX_E_FORMAT, "git's list of the index is truncated");
    *out = entries;
    *out_count = count;
    return CX_SUCCESS;
}

/* Lists an index that depends on other files through git; only the user's own, never an agent's. */
static cx_status list_index_by_git(const cx_git *git, const char *index_file, cx_snapshot *s,
                                   cx_err *err)
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

/* A hook's index belongs to the user; its path is relative to the top of the work tree, as git gave
 * it. */
static cx_status read_hook_index(const cx_git *git, const char *file, cx_buf *out, cx_err *err)
{
    char path[CX_PATH_BYTES_MAX + 1];
    int size = file[0] == '/' ? snprintf(path, sizeof path, "%s", file)
                              : snprintf(path, sizeof path, "%s/%s", cx_git_worktree(git), file);
    if (size < 0 || (size_t)size >= sizeof path)
        return cx_fail(err, CX_E_LIMIT, "the path of the index is too long");
    return cx_io_read_file(cx_io_system(), path, CX_INDEX_BYTES_MAX, out, err);
}

static cx_status read_index_file(const cx_git *git, const cx_snapshot_options *options, cx_buf *out,
                                 cx_err *err)
{
    cx_file folder;
    if (options->index_file != NULL)
        return read_hook_index(git, options->index_file, out, err);
    CX_TRY(cx_folder_open(snapshot_git_dir(git, options->agent), &folder, err));
    cx_status status = cx_folder_read_file(folder, "index", CX_INDEX_BYTES_MAX, out, err);
    cx_folder_close(folder);
    return status;
}

static cx_status read_index(const cx_git *git, const cx_snapshot_options *options, cx_snapshot *s,
                            cx_err *err)
{
    cx_buf file;
    cx_buf_init(&file, cx_alloc_default());
    cx_status status = read_index_file(git, options, &file, err);
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS; /* no index yet: nothing was ever added */
    else if (!cx_failed(status))
        status = cx_index_read(cx_buf_bytes(&file), cx_git_oid_size(git), &s->index_arena,
                               &s->index, &s->index_count, err);
    cx_buf_done(&file);
    if (status.code == CX_E_UNSUPPORTED && !cx_git_is_hostile(git))
        status = list_index_by_git(git, options->index_file, s, err);
    return status;
}

cx_status cx_snapshot_repository(const cx_git *git, const cx_snapshot_options *options,
                                 cx_snapshot *snapshot, cx_err *err)
{
    CX_TRY(read_index(git, options, snapshot, err));
    CX_TRY(read_refs(git, options->agent, snapshot, err));
    CX_TRY(read_head(git, options->agent, snapshot, err));
    return read_metas(git, options->agent, snapshot, err);
}

/*
 * diff_views.c - what changed since the baseline, as seen in four places (run.md §9).
 *
 * Commits and HEAD are asked of git, without rename detection: both sides of a rename are changes.
 * The index and the disk are compared here, entry by entry, with the baseline's tree; nothing that
 * git could be told to overlook takes part.
 */
#include "candidate/diff_parts.h"

#include <stdlib.h>

#include "git/api.h"

#define COMMITS_MAX 1000
#define IGNORE_BYTES_MAX ((size_t)16 << 20)

static cx_status add_view(cx_diff_job *job, cx_str name, const cx_diff_change *changes,
                          size_t count, cx_err *err)
{
    cx_diff_view *view = cx_vec_push(&job->views, job->arena->alloc);
    if (view == NULL || name.data == NULL)
        return cx_fail_nomem(err);
    *view = (cx_diff_view){name, changes, count};
    return CX_SUCCESS;
}

/* --- commits ---------------------------------------------------------------------------------- */

static cx_diff_change change_of(const cx_raw_change *raw)
{
    return (cx_diff_change){.path = raw->path,
                            .old_mode = raw->old_mode,
                            .new_mode = raw->new_mode,
                            .old_oid = raw->old_oid,
                            .new_oid = raw->new_oid};
}

static cx_status run_raw_diff(const cx_diff_job *job, const cx_git_call *call, bool commits,
                              cx_raw_diff *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, job->arena->alloc);
    cx_status status = cx_git_call_run(job->git, call, &text, NULL, err);
    if (!cx_failed(status))
        status = cx_raw_parse(cx_buf_str(&text), cx_git_oid_size(job->git), commits, job->arena,
                              out, err);
    cx_buf_done(&text);
    return status;
}

/* One view for each run of changes that belong to one commit and parent. */
static cx_status add_commits(cx_diff_job *job, const cx_raw_diff *raw, cx_err *err)
{
    cx_diff_change *changes = CX_ARENA_ARRAY(job->arena, cx_diff_change, raw->count + 1);
    if (changes == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < raw->count; i++)
        changes[i] = change_of(&raw->changes[i]);
    for (size_t i = 0; i < raw->count;) {
        size_t start = i;
        char id[CX_OID_TEXT_SIZE];
        while (i < raw->count && raw->changes[i].commit == raw->changes[start].commit)
            i++;
        cx_oid_text(&raw->commits[raw->changes[start].commit], id);
        CX_TRY(add_view(job, cx_arena_printf(job->arena, "commit %s", id), changes + start,
                        i - start, err));
    }
    return CX_SUCCESS;
}

/* A line for each commit: its id, with `parents` followed by those of its parents. */
static cx_status list_commits(const cx_diff_job *job, const cx_oid *from, const cx_oid *to,
                              bool parents, cx_buf *out, cx_err *err)
{
    char range[2 * CX_OID_TEXT_SIZE + 2], a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE];
    cx_oid_text(from, a);
    cx_oid_text(to, b);
    (void)snprintf(range, sizeof range, "%s..%s", a, b);
    cx_git_call call = {.args = parents ? CX_GIT_ARGS("rev-list", "--max-count=1001", "--parents",
                                                      "--end-of-options", range, "--")
                                        : CX_GIT_ARGS("rev-list", "--max-count=1001",
                                                      "--end-of-options", range, "--"),
                        .bare = true};
    return cx_git_call_run(job->git, &call, out, NULL, err);
}

/* Splits the next line off. */
static cx_str next_line(cx_str *rest)
{
    const char *end = memchr(rest->data, '\n', rest->size);
    cx_str line = {rest->data, end == NULL ? rest->size : (size_t)(end - rest->data)};
    size_t step = line.size + (end != NULL);
    *rest = (cx_str){rest->data + step, rest->size - step};
    return line;
}

/* "<commit> <parent> .." as `diff-tree --stdin` reads it. A parent that is not in `range` is of the
 * baseline's history: when there is one, the others are left out. */
static void add_trusted_parents(cx_buf *out, cx_str line, const cx_map *range, size_t id_size)
{
    bool merges = false;
    for (size_t at = id_size + 1; at + id_size <= line.size; at += id_size + 1)
        merges = merges || cx_map_find(range, (cx_str){line.data + at, id_size}) == NULL;
    cx_buf_add(out, line.data, id_size);
    for (size_t at = id_size + 1; at + id_size <= line.size; at += id_size + 1) {
        cx_str parent = {line.data + at, id_size};
        if (merges && cx_map_find(range, parent) != NULL)
            continue;
        cx_buf_add_byte(out, ' ');
        cx_buf_add_str(out, parent);
    }
    cx_buf_add_byte(out, '\n');
}

static cx_status list_with_trusted_parents(const cx_diff_job *job, const cx_oid *from,
                                           const cx_oid *to, cx_buf *out, cx_err *err)
{
    size_t id_size = 2 * cx_git_oid_size(job->git);
    cx_buf listed;
    cx_map range;
    cx_buf_init(&listed, job->arena->alloc);
    cx_map_init(&range, job->arena->alloc, cx_io_seed(cx_io_system()));
    cx_status status = list_commits(job, from, to, true, &listed, err);
    for (cx_str rest = cx_buf_str(&listed); !cx_failed(status) && rest.size != 0;) {
        uint64_t *value;
        bool fresh;
        cx_str line = next_line(&rest);
        if (line.size < id_size)
            status = cx_fail(err, CX_E_FORMAT, "git lists commits in a form that is not known");
        else
            status = cx_map_put(&range, (cx_str){line.data, id_size}, &value, &fresh, err);
    }
    for (cx_str rest = cx_buf_str(&listed); !cx_failed(status) && rest.size != 0;)
        add_trusted_parents(out, next_line(&rest), &range, id_size);
    cx_map_done(&range);
    cx_buf_done(&listed);
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

cx_status cx_diff_view_commits(cx_diff_job *job, const cx_oid *from, const cx_oid *to,
                               unsigned *out_commits, cx_err *err)
{
    cx_buf ids;
    cx_raw_diff raw = {.count = 0};
    size_t count = 0;
    cx_buf_init(&ids, job->arena->alloc);
    cx_status status = job->options->baseline_merges
                           ? list_with_trusted_parents(job, from, to, &ids, err)
                           : list_commits(job, from, to, false, &ids, err);
    for (size_t i = 0; i < ids.size; i++)
        count += ids.data[i] == '\n';
    if (!cx_failed(status) && count > COMMITS_MAX)
        cx_run_findings_reject(job->findings, "D15", CX_STR(""), CX_STR("head"),
                               "there are more than %d commits since the baseline", COMMITS_MAX);
    if (!cx_failed(status) && count != 0) {
        cx_git_call call = {.args = CX_GIT_ARGS("diff-tree", "--stdin", "-r", "-m", "--root", "-z",
                                                "--raw", "--no-abbrev", "--no-renames"),
                            .input = cx_buf_bytes(&ids),
                            .bare = true};
        status = run_raw_diff(job, &call, true, &raw, err);
    }
    cx_buf_done(&ids);
    CX_TRY(status);
    *out_commits = (unsigned)count;
    return add_commits(job, &raw, err);
}

cx_status cx_diff_view_head(cx_diff_job *job, const cx_oid *from, const cx_oid *to, cx_err *err)
{
    char a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE];
    cx_raw_diff raw = {.count = 0};
    cx_oid_text(from, a);
    cx_oid_text(to, b);
    cx_git_call call = {
        .args = CX_GIT_ARGS("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", a, b),
        .bare = true};
    CX_TRY(run_raw_diff(job, &call, false, &raw, err));
    cx_diff_change *changes = CX_ARENA_ARRAY(job->arena, cx_diff_change, raw.count + 1);
    if (changes == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < raw.count; i++)
        changes[i] = change_of(&raw.changes[i]);
    return add_view(job, CX_STR("head"), changes, raw.count, err);
}

/* --- the index -------------------------------------------------------------------------------- */

static cx_diff_change removed(const cx_git_entry *entry)
{
    return (cx_diff_change){.path = entry->path, .old_mode = entry->mode, .old_oid = entry->oid};
}

cx_status cx_diff_view_index(cx_diff_job *job, cx_err *err)
{
    const cx_index_entry *index = job->after->index;
    const cx_git_entry *base = job->base.entries;
    size_t count = job->after->index_count, i = 0, k = 0, found = 0;
    cx_diff_change *changes =
        CX_ARENA_ARRAY(job->arena, cx_diff_change, count + job->base.count + 1);
    if (changes == NULL)
        return cx_fail_nomem(err);
    for (size_t n = 1; n < count; n++)
        if (cx_str_cmp(index[n - 1].path, index[n].path) > 0)
            return cx_fail(err, CX_E_FORMAT, "the index is not in its order");
    while (i < count || k < job->base.count) {
        int order = i == count             ? 1
                    : k == job->base.count ? -1
                                           : cx_str_cmp(index[i].path, base[k].path);
        if (order > 0) {
            changes[found++] = removed(&base[k++]);
            continue;
        }
        const cx_git_entry *old = order == 0 ? &base[k++] : NULL;
        for (cx_str path = index[i].path; i < count && cx_str_eq(index[i].path, path); i++) {
            if (old != NULL && old->mode == index[i].mode && cx_oid_eq(&old->oid, &index[i].oid))
                continue;
            if (found == count + job->base.count)
                return cx_fail(err, CX_E_FORMAT, "the index is not in its order");
            changes[found++] = (cx_diff_change){.path = path,
                                                .old_mode = old == NULL ? 0 : old->mode,
                                                .new_mode = index[i].mode,
                                                .new_oid = index[i].oid};
            if (old != NULL)
                changes[found - 1].old_oid = old->oid;
        }
    }
    return add_view(job, CX_STR("index"), changes, found, err);
}

/* --- the disk --------------------------------------------------------------------------------- */

static uint32_t git_mode(const cx_snap_file *file)
{
    if (file->facts.kind == CX_FILE_LINK)
        return CX_MODE_LINK;
    return file->facts.mode & 0100 ? 0100755 : 0100644;
}

/* Equal to the snapshot in what git would record, and in bits that it would not. */
static bool is_unchanged(const cx_snap_file *old, const cx_snap_file *now)
{
    return old->facts.kind == now->facts.kind &&
           (old->facts.mode & 07100) == (now->facts.mode & 07100) &&
           cx_digest_eq(&old->sha256, &now->sha256);
}

typedef struct disk {
    cx_diff_job *job;
    cx_diff_change *changes;
    size_t change_count;
    cx_git_entry *entries; /* the candidate */
    size_t entry_count;
    CX_VEC(cx_str) closed; /* `.git` look-alikes: what is below them is not gone into */
    size_t base_at, before_at;
} disk;

static cx_status change_add(disk *d, const cx_git_entry *old, const cx_snap_file *now, cx_err *err)
{
    cx_diff_change change = {.path = now != NULL ? now->path : old->path};
    if (old != NULL) {
        change.old_mode = old->mode;
        change.old_oid = old->oid;
    }
    if (now != NULL) {
        change.new_mode = git_mode(now);
        change.new_oid = now->oid;
        if (now->facts.kind == CX_FILE_REGULAR) {
            cx_diff_blob blob = {now->facts.size_bytes, now->binary, false};
            CX_TRY(cx_diff_blob_add(d->job, &now->oid, &blob, err));
            d->job->new_bytes += now->facts.size_bytes;
        }
    }
    const cx_snap_file *was =
        d->job->before == NULL ? NULL : cx_snapshot_find(d->job->before, change.path);
    if (was != NULL && was->facts.kind == CX_FILE_REGULAR && old != NULL &&
        cx_oid_eq(&was->oid, &old->oid)) {
        cx_diff_blob blob = {was->facts.size_bytes, was->binary, false};
        CX_TRY(cx_diff_blob_add(d->job, &old->oid, &blob, err));
    }
    d->changes[d->change_count++] = change;
    return CX_SUCCESS;
}

static void add_unchanged_entry(disk *d, cx_str path, uint32_t mode, const cx_oid *oid)
{
    d->entries[d->entry_count++] = (cx_git_entry){path, mode, *oid};
}

/* The file of the snapshot with this path; paths come in order. */
static const cx_snap_file *before_of(disk *d, cx_str path)
{
    const cx_snapshot *before = d->job->before;
    int order = 1;
    if (before == NULL)
        return NULL;
    while (d->before_at < before->file_count &&
           (order = cx_str_cmp(before->files[d->before_at].path, path)) < 0)
        d->before_at++;
    return d->before_at < before->file_count && order == 0 ? &before->files[d->before_at] : NULL;
}

/* A path of the baseline that has no file on disk now. */
static cx_status is_missing(disk *d, const cx_git_entry *old, cx_err *err)
{
    const cx_snapshot *before = d->job->before;
    const cx_snap_file *was = before_of(d, old->path);
    bool gone = before == NULL || was != NULL;
    if ((old->mode & CX_MODE_KIND) == CX_MODE_GITLINK) {
        /* A folder, or nothing at all, is what a submodule that was not fetched looks like. */
        const cx_snap_file *now = cx_snapshot_find(d->job->after, old->path);
        gone = now == NULL && was != NULL;
    }
    if (gone)
        return change_add(d, old, NULL, err);
    add_unchanged_entry(d, old->path, old->mode, &old->oid);
    return CX_SUCCESS;
}

static void check_file(disk *d, const cx_snap_file *was, const cx_snap_file *now, bool changed)
{
    cx_run_findings *findings = d->job->findings;
    uint32_t special = now->facts.mode & 07000;
    if (now->facts.kind != CX_FILE_REGULAR)
        return;
    bool linked =
        now->facts.link_count > 1 &&
        (d->job->before != NULL ? was == NULL || was->facts.link_count < now->facts.link_count
                                : changed);
    if (linked)
        cx_run_findings_reject(findings, "D08", now->path, CX_STR("disk"),
                               "the file has %llu names; write a copy of its own in its place",
                               (unsigned long long)now->facts.link_count);
    if (special != 0 && (was == NULL || (was->facts.mode & 07000) != special))
        cx_run_findings_reject(
            findings, "D11", now->path, CX_STR("disk"),
            "the file has mode %04o; set-uid, set-gid and sticky bits are refused",
            now->facts.mode);
}

static cx_status is_present(disk *d, const cx_git_entry *old, const cx_snap_file *now, cx_err *err)
{
    const cx_snap_file *was = before_of(d, now->path);
    bool same = was != NULL && is_unchanged(was, now);
    bool special = (now->facts.mode & 07000) != 0 && now->facts.kind == CX_FILE_REGULAR && !same;
    bool as_base = old != NULL && old->mode == git_mode(now) && cx_oid_eq(&old->oid, &now->oid);
    bool changed = special || (!same && !as_base);
    check_file(d, was, now, changed);
    if (!changed) {
        if (old != NULL)
            add_unchanged_entry(d, old->path, old->mode, &old->oid);
        return CX_SUCCESS;
    }
    add_unchanged_entry(d, now->path, git_mode(now), &now->oid);
    return change_add(d, old, now, err);
}

/* Whether a file of the walk is one that git could have, or else why it is refused. */
static bool is_comparable(disk *d, const cx_snap_file *file)
{
    if (file->facts.kind != CX_FILE_SPECIAL)
        return file->facts.kind != CX_FILE_FOLDER;
    cx_run_findings *findings = d->job->findings;
    const cx_snap_file *was =
        d->job->before == NULL ? NULL : cx_snapshot_find(d->job->before, file->path);
    if (was == NULL || was->facts.kind != CX_FILE_SPECIAL)
        cx_run_findings_reject(findings, "D08", file->path, CX_STR("disk"),
                               "it is a FIFO, a socket or a device; only files may be made");
    return false;
}

static bool below_closed(const disk *d, cx_str path)
{
    for (size_t i = 0; i < d->closed.count; i++) {
        cx_str folder = d->closed.items[i];
        if (path.size > folder.size && path.data[folder.size] == '/' && cx_str_starts(path, folder))
            return true;
    }
    return false;
}

/* A bare repository is one too: git enters it when it is the current directory.  So is the
 * directory of a linked work tree, whose `commondir` names where objects, references and
 * configuration are. */
static bool is_bare_repository(const cx_snapshot *after, const cx_snap_file *head)
{
    char path[CX_PATH_BYTES_MAX + 16];
    static const char *const folders[] = {"objects", "refs"};
    size_t size = head->path.size - 4;
    if (head->path.size < 5 || !cx_str_ends(head->path, CX_STR("/HEAD")))
        return false;
    int common = snprintf(path, sizeof path, "%.*scommondir", (int)size, head->path.data);
    if (common > 0 && (size_t)common < sizeof path &&
        cx_snapshot_find(after, cx_str_z(path)) != NULL)
        return true;
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++) {
        int length = snprintf(path, sizeof path, "%.*s%s", (int)size, head->path.data, folders[i]);
        const cx_snap_file *found = length < 0 || (size_t)length >= sizeof path
                                        ? NULL
                                        : cx_snapshot_find(after, cx_str_z(path));
        if (found == NULL || found->facts.kind != CX_FILE_FOLDER)
            return false;
    }
    return true;
}

/* D05.  True when the file is, or is below, something that is not gone into. */
static cx_status check_nested_repository(disk *d, const cx_snap_file *file, bool *out_closed,
                                         cx_err *err)
{
    cx_run_findings *findings = d->job->findings;
    const char *slash = cx_bytes_last(file->path.data, '/', file->path.size);
    size_t start = slash == NULL ? 0 : (size_t)(slash - file->path.data) + 1;
    cx_str name = {file->path.data + start, file->path.size - start};
    *out_closed = below_closed(d, file->path);
    if (*out_closed)
        return CX_SUCCESS;
    bool git_name = cx_diff_is_git_name(name), head = cx_str_is(name, "HEAD");
    bool known = (git_name || head) && d->job->before != NULL &&
                 cx_snapshot_find(d->job->before, file->path) != NULL;
    if (!known && git_name) {
        cx_str *slot = cx_vec_push(&d->closed, d->job->arena->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = file->path;
        *out_closed = true;
        cx_run_findings_reject(findings, "D05", file->path, CX_STR("disk"),
                               "it is, or looks like, a git repository inside this one; remove it");
    } else if (!known && head && is_bare_repository(d->job->after, file)) {
        cx_run_findings_reject(findings, "D05", (cx_str){file->path.data, file->path.size - 5},
                               CX_STR("disk"),
                               "it is a bare git repository inside this one; remove it");
    }
    return CX_SUCCESS;
}

/* The first entry at or after `path`. */
static size_t entry_at(const cx_git_entry *entries, size_t count, cx_str path)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cx_str_cmp(entries[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool tree_has(const cx_git_entry *entries, size_t count, cx_str folder, const char *name,
                     cx_arena *arena, bool *failed)
{
    cx_str path = cx_arena_printf(arena, "%.*s/%s", (int)folder.size, folder.data, name);
    *failed |= path.data == NULL;
    size_t at = path.data == NULL ? count : entry_at(entries, count, path);
    return at < count && cx_str_starts(entries[at].path, path) &&
           (name[strlen(name) - 1] == '/' || entries[at].path.size == path.size);
}

static bool tree_has_bare(const cx_git_entry *entries, size_t count, cx_str folder, cx_arena *arena,
                          bool *failed)
{
    return tree_has(entries, count, folder, "HEAD", arena, failed) &&
           (tree_has(entries, count, folder, "commondir", arena, failed) ||
            (tree_has(entries, count, folder, "objects/", arena, failed) &&
             tree_has(entries, count, folder, "refs/", arena, failed)));
}

cx_status cx_diff_check_bare_repositories(cx_diff_job *job, cx_err *err)
{
    bool failed = false;
    for (size_t i = 0; i < job->candidate_count && !failed; i++) {
        cx_str path = job->candidate[i].path;
        cx_arena_mark mark = cx_arena_mark_now(job->arena);
        cx_str folder = {path.data, path.size > 5 ? path.size - 5 : 0};
        bool made =
            folder.size != 0 && cx_str_ends(path, CX_STR("/HEAD")) &&
            tree_has_bare(job->candidate, job->candidate_count, folder, job->arena, &failed) &&
            !tree_has_bare(job->base.entries, job->base.count, folder, job->arena, &failed);
        cx_arena_reset(job->arena, mark);
        if (made)
            cx_run_findings_reject(job->findings, "D05", folder, CX_STR("head"),
                                   "it is a bare git repository inside this one; remove it");
    }
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status compare_disk(disk *d, cx_err *err)
{
    const cx_snapshot *after = d->job->after;
    const cx_git_tree *base = &d->job->base;
    for (size_t i = 0; i < after->file_count; i++) {
        const cx_snap_file *file = &after->files[i];
        const cx_git_entry *old = NULL;
        bool closed;
        CX_TRY(check_nested_repository(d, file, &closed, err));
        if (closed || !is_comparable(d, file))
            continue;
        int order = 1;
        while (d->base_at < base->count &&
               (order = cx_str_cmp(base->entries[d->base_at].path, file->path)) < 0)
            CX_TRY(is_missing(d, &base->entries[d->base_at++], err));
        if (d->base_at < base->count && order == 0)
            old = &base->entries[d->base_at++];
        CX_TRY(is_present(d, old, file, err));
    }
    while (d->base_at < base->count)
        CX_TRY(is_missing(d, &base->entries[d->base_at++], err));
    return CX_SUCCESS;
}

/* What was there before, unknown to git, and is gone: it changed, though no tree will show it.  All
 * three lists are sorted. */
static void add_lost(disk *d)
{
    const cx_snapshot *before = d->job->before, *after = d->job->after;
    const cx_git_tree *base = &d->job->base;
    size_t file_at = 0, base_at = 0;
    for (size_t i = 0; before != NULL && i < before->file_count; i++) {
        const cx_snap_file *was = &before->files[i];
        int order = 1, base_order = 1;
        while (file_at < after->file_count &&
               (order = cx_str_cmp(after->files[file_at].path, was->path)) < 0)
            file_at++;
        if ((file_at < after->file_count && order == 0) ||
            (was->facts.kind != CX_FILE_REGULAR && was->facts.kind != CX_FILE_LINK))
            continue;
        while (base_at < base->count &&
               (base_order = cx_str_cmp(base->entries[base_at].path, was->path)) < 0)
            base_at++;
        if (base_at == base->count || base_order != 0)
            d->changes[d->change_count++] = (cx_diff_change){.path = was->path, .ignored = true};
    }
}

static int compare_changes(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_diff_change *)a)->path, ((const cx_diff_change *)b)->path);
}

/* Ignored files leave the candidate; everything stays sorted. */
static void drop_ignored(disk *d)
{
    size_t stored = 0, at = 0;
    for (size_t i = 0; i < d->entry_count; i++) {
        while (at < d->change_count && cx_str_cmp(d->changes[at].path, d->entries[i].path) < 0)
            at++;
        if (at < d->change_count && d->changes[at].ignored &&
            cx_str_eq(d->changes[at].path, d->entries[i].path))
            continue;
        d->entries[stored++] = d->entries[i];
    }
    d->entry_count = stored;
}

cx_status cx_diff_view_disk(cx_diff_job *job, cx_err *err)
{
    size_t before_count = job->before == NULL ? 0 : job->before->file_count;
    size_t room = job->after->file_count + job->base.count + 1;
    disk d = {.job = job};
    d.changes = CX_ARENA_ARRAY(job->arena, cx_diff_change, room + before_count);
    d.entries = CX_ARENA_ARRAY(job->arena, cx_git_entry, room);
    if (d.changes == NULL || d.entries == NULL)
        return cx_fail_nomem(err);
    cx_status status = compare_disk(&d, err);
    cx_vec_done(&d.closed, job->arena->alloc);
    CX_TRY(status);
    add_lost(&d);
    qsort(d.changes, d.change_count, sizeof *d.changes, compare_changes);
    CX_TRY(cx_diff_mark_ignored(job, d.changes, d.change_count, err));
    drop_ignored(&d);
    job->disk = d.changes;
    job->disk_count = d.change_count;
    job->candidate = d.entries;
    job->candidate_count = d.entry_count;
    return add_view(job, CX_STR("disk"), d.changes, d.change_count, err);
}

/* --- ignored ---------------------------------------------------------------------------------- */

/*
 * Git reads .gitignore from the work tree, where an agent may have put a FIFO or a link.  It is
 * shown a folder of ours in its place, which holds those of the baseline alone: a changed one is
 * refused by D06 whatever it says.
 */
static bool is_above_new(const cx_diff_change *changes, size_t count, cx_str folder)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cx_str_cmp(changes[middle].path, folder) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && cx_str_starts(changes[low].path, folder);
}

/* From the disk when that is what the baseline has, which is the rule, else from git. */
static cx_status read_ignore_file(const cx_diff_job *job, const char *path, const cx_oid *oid,
                                  cx_buf *out, cx_err *err)
{
    cx_file root;
    bool same = false;
    if (!cx_failed(cx_folder_open(cx_git_worktree(job->git), &root, NULL))) {
        if (!cx_failed(cx_folder_read_file(root, path, IGNORE_BYTES_MAX, out, NULL))) {
            cx_oid found = cx_git_blob_oid(job->git, cx_buf_bytes(out));
            same = cx_oid_eq(&found, oid);
        }
        cx_folder_close(root);
    }
    if (same)
        return CX_SUCCESS;
    cx_buf_clear(out);
    return cx_git_blob(job->git, oid, IGNORE_BYTES_MAX, out, err);
}

static cx_status copy_ignore_file(cx_diff_job *job, cx_file scratch, const cx_git_entry *entry,
                                  size_t folder_size, cx_err *err)
{
    cx_buf contents;
    cx_file file;
    cx_str path = cx_arena_copy_str(job->arena, entry->path);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&contents, job->arena->alloc);
    cx_status status = read_ignore_file(job, path.data, &entry->oid, &contents, err);
    if (!cx_failed(status) && folder_size > 1) {
        cx_str folder = cx_arena_copy_str(job->arena, (cx_str){path.data, folder_size - 1});
        status = folder.data == NULL ? cx_fail_nomem(err)
                                     : cx_folder_make_folders(scratch, folder.data, 0700, err);
    }
    if (!cx_failed(status))
        status = cx_folder_open_in(scratch, path.data, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE,
                                   &file, err);
    if (!cx_failed(status)) {
        status =
            cx_io_write_all(cx_io_system(), file, path.data, contents.data, contents.size, err);
        cx_folder_close(file);
    }
    cx_buf_done(&contents);
    return status;
}

static cx_status copy_ignore_files(cx_diff_job *job, const char *scratch,
                                   const cx_diff_change *changes, size_t count, cx_err *err)
{
    static const cx_str name = {".gitignore", 10};
    cx_file folder;
    CX_TRY(cx_folder_open(scratch, &folder, err));
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < job->base.count && !cx_failed(status); i++) {
        const cx_git_entry *entry = &job->base.entries[i];
        size_t above = entry->path.size - (entry->path.size < name.size ? 0 : name.size);
        if (!cx_mode_is_file(entry->mode) || !cx_str_ends(entry->path, name) ||
            (above != 0 && entry->path.data[above - 1] != '/') ||
            !is_above_new(changes, count, (cx_str){entry->path.data, above}))
            continue;
        status = copy_ignore_file(job, folder, entry, above, err);
    }
    cx_folder_close(folder);
    return status;
}

static cx_status run_check_ignore(cx_diff_job *job, const char *scratch, cx_bytes paths,
                                  cx_buf *out, cx_err *err)
{
    char no_index[CX_PATH_BYTES_MAX + 1];
    int code = 0;
    CX_TRY(cx_git_no_index(job->git, no_index, err));
    cx_git_call call = {.args = CX_GIT_ARGS("check-ignore", "--no-index", "--stdin", "-z"),
                        .input = paths,
                        .index_file = no_index,
                        .work_tree = scratch,
                        .plain_paths = true};
    CX_TRY(cx_git_call_run(job->git, &call, out, &code, err));
    return code == 0 || code == 1
               ? CX_SUCCESS
               : cx_fail(err, CX_E_FORMAT, "git cannot say which new files are ignored");
}

static cx_status mark_named(cx_str answer, cx_diff_change *changes, size_t count, cx_err *err)
{
    cx_git_fields fields = {answer, false};
    cx_str path;
    while (cx_git_field(&fields, &path)) {
        if (!cx_str_starts(path, CX_STR("./")))
            return cx_fail(err, CX_E_FORMAT, "git names an ignored file that was not asked about");
        cx_diff_change key = {.path = {path.data + 2, path.size - 2}};
        cx_diff_change *found = bsearch(&key, changes, count, sizeof key, compare_changes);
        if (found != NULL)
            found->ignored = true;
    }
    return CX_SUCCESS;
}

static cx_status mark_in(cx_diff_job *job, const char *scratch, cx_bytes paths,
                         cx_diff_change *changes, size_t count, cx_err *err)
{
    cx_buf answer;
    cx_buf_init(&answer, job->arena->alloc);
    cx_status status = copy_ignore_files(job, scratch, changes, count, err);
    if (!cx_failed(status))
        status = run_check_ignore(job, scratch, paths, &answer, err);
    if (!cx_failed(status))
        status = mark_named(cx_buf_str(&answer), changes, count, err);
    cx_buf_done(&answer);
    return status;
}

cx_status cx_diff_mark_ignored(cx_diff_job *job, cx_diff_change *changes, size_t count, cx_err *err)
{
    char scratch[CX_PATH_BYTES_MAX + 1];
    cx_buf paths;
    cx_buf_init(&paths, job->arena->alloc);
    for (size_t i = 0; i < count; i++)
        if (changes[i].old_mode == 0 && changes[i].new_mode != 0) {
            cx_buf_add_z(&paths, "./"); /* or ":(glob)x" would not be a name */
            cx_buf_add_str(&paths, changes[i].path);
            cx_buf_add_byte(&paths, 0);
        }
    cx_status status = cx_buf_check(&paths, err);
    if (!cx_failed(status) && paths.size != 0) {
        status = cx_path_make_temporary(scratch, err);
        if (!cx_failed(status)) {
            status = mark_in(job, scratch, cx_buf_bytes(&paths), changes, count, err);
            (void)cx_failed(cx_path_remove_tree(scratch, NULL));
        }
    }
    cx_buf_done(&paths);
    return status;
}

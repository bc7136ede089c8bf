/*
 * isolation.c - compares two snapshots (run.md §10).
 */
#include "candidate/isolation.h"

#define FINDINGS_MAX 1000
#define RULE "reviewer_side_effect"

typedef struct comparison {
    const cx_snapshot *a, *b;
    bool shared;
    cx_run_findings *findings;
} comparison;

static void add_difference(const comparison *c, cx_str where, const char *kind, const char *what)
{
    if (c->findings->list.count < FINDINGS_MAX)
        cx_run_findings_reject(c->findings, RULE, where, cx_str_z(kind), "%s", what);
}

static void add_shared_difference(const comparison *c, cx_str where, const char *kind,
                                  const char *what)
{
    if (!c->shared)
        add_difference(c, where, kind, what);
    else if (c->findings->list.count < FINDINGS_MAX)
        cx_run_findings_inform(c->findings, RULE, where, cx_str_z(kind), "%s, by another process",
                               what);
}

static const char *kind_of(const cx_snap_file *file)
{
    return file->facts.kind == CX_FILE_FOLDER ? "folder"
           : file->facts.kind == CX_FILE_LINK ? "link"
                                              : "file";
}

static void compare_file(const comparison *c, const cx_snap_file *old, const cx_snap_file *now)
{
    if (cx_snap_file_same(old, now))
        return;
    bool mode = old->facts.kind == now->facts.kind && old->facts.mode != now->facts.mode;
    add_difference(c, now->path, mode ? "mode" : kind_of(now),
                   mode ? "its mode changed" : "it was changed");
}

static void compare_files(const comparison *c)
{
    size_t i = 0, k = 0;
    while (i < c->a->file_count || k < c->b->file_count) {
        int order = i == c->a->file_count   ? 1
                    : k == c->b->file_count ? -1
                                            : cx_str_cmp(c->a->files[i].path, c->b->files[k].path);
        if (order < 0)
            add_difference(c, c->a->files[i].path, kind_of(&c->a->files[i]), "it was removed");
        else if (order > 0)
            add_difference(c, c->b->files[k].path, kind_of(&c->b->files[k]), "it was added");
        else
            compare_file(c, &c->a->files[i], &c->b->files[k]);
        i += order <= 0;
        k += order >= 0;
    }
}

static bool same_entry(const cx_index_entry *a, const cx_index_entry *b)
{
    return a->mode == b->mode && a->stage == b->stage && a->flags == b->flags &&
           cx_oid_eq(&a->oid, &b->oid);
}

static int compare_entries(const cx_index_entry *a, const cx_index_entry *b)
{
    int order = cx_str_cmp(a->path, b->path);
    return order != 0 ? order : (a->stage > b->stage) - (a->stage < b->stage);
}

static void compare_index(const comparison *c)
{
    size_t i = 0, k = 0;
    while (i < c->a->index_count || k < c->b->index_count) {
        int order = i == c->a->index_count   ? 1
                    : k == c->b->index_count ? -1
                                             : compare_entries(&c->a->index[i], &c->b->index[k]);
        if (order != 0 || !same_entry(&c->a->index[i], &c->b->index[k]))
            add_difference(c, order <= 0 ? c->a->index[i].path : c->b->index[k].path, "index",
                           "its entry in the index changed");
        i += order <= 0;
        k += order >= 0;
    }
}

static void compare_refs(const comparison *c)
{
    size_t i = 0, k = 0;
    while (i < c->a->ref_count || k < c->b->ref_count) {
        int order = i == c->a->ref_count   ? 1
                    : k == c->b->ref_count ? -1
                                           : cx_str_cmp(c->a->refs[i].name, c->b->refs[k].name);
        if (order != 0 || !cx_oid_eq(&c->a->refs[i].oid, &c->b->refs[k].oid) ||
            !cx_str_eq(c->a->refs[i].target, c->b->refs[k].target))
            add_shared_difference(c, order <= 0 ? c->a->refs[i].name : c->b->refs[k].name, "ref",
                                  "the reference changed");
        i += order <= 0;
        k += order >= 0;
    }
    if (!cx_str_eq(c->a->head_ref, c->b->head_ref) || !cx_oid_eq(&c->a->head, &c->b->head))
        add_difference(c, CX_STR("HEAD"), "head", "HEAD moved");
}

static void compare_metas(const comparison *c)
{
    size_t i = 0, k = 0;
    while (i < c->a->meta_count || k < c->b->meta_count) {
        const cx_snap_meta *old = i < c->a->meta_count ? &c->a->metas[i] : NULL;
        const cx_snap_meta *now = k < c->b->meta_count ? &c->b->metas[k] : NULL;
        int order = old == NULL ? 1 : now == NULL ? -1 : cx_str_cmp(old->name, now->name);
        cx_str name = order <= 0 ? old->name : now->name;
        bool same = order == 0 && old->kind_mode == now->kind_mode &&
                    cx_digest_eq(&old->sha256, &now->sha256);
        i += order <= 0;
        k += order >= 0;
        if (same)
            continue;
        if (cx_str_starts(name, CX_STR("worktrees/")) ||
            cx_str_starts(name, CX_STR("objects/info/packs")) ||
            cx_str_starts(name, CX_STR("objects/info/commit-graph")))
            add_shared_difference(c, name, "repository", "a work tree or a pack came or went");
        else
            add_difference(c, name, "repository", "a file of the repository itself changed");
    }
}

void cx_run_isolation_compare(const cx_snapshot *before, const cx_snapshot *after, bool shared,
                              cx_run_findings *findings)
{
    CX_ASSERT(before != NULL && after != NULL && findings != NULL);
    const comparison c = {before, after, shared, findings};
    compare_files(&c);
    compare_index(&c);
    compare_refs(&c);
    compare_metas(&c);
}

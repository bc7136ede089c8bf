/*
 * diff.c - the diff gate: looks, asks, judges, in this order (run.md §9).
 *
 *   1  the baseline (D01); without one nothing else can be judged
 *   2  a new snapshot next to the old one: files, index, references, the repository's own files;
 *      taken at the same time
 *   3  four views of what changed: commits, HEAD, index, disk
 *   4  the contents of what changed; the rules; the candidate's tree
 *
 * Invariant: whatever cannot be seen or understood is an error or a violation, never a pass.
 */
#include "candidate/diff.h"

#include <stdlib.h>

#include "base/api.h"
#include "candidate/diff_parts.h"
#include "git/api.h"

static const struct {
    const char *rule;
    const char *text;
} rule_texts[] = {
    {"D00", "the candidate's tree is not the one that was judged first"},
    {"D01", "the baseline does not name one commit"},
    {"D02", "a file of the repository itself, or what HEAD names, was changed"},
    {"D03", "a reference other than the task branch changed, or HEAD left the baseline's history"},
    {"D04", "an index entry is hidden from git or unmerged"},
    {"D05", "a repository inside the repository, or a name that looks like one"},
    {"D06", "a protected path was changed"},
    {"D07", "a path outside allowed_paths was changed"},
    {"D08", "a FIFO, socket, device, or a file with several names"},
    {"D09", "a symbolic link was added, removed or changed"},
    {"D10", "a submodule was added, removed or moved"},
    {"D11", "a file mode other than 100644 and 100755"},
    {"D12", "binary contents"},
    {"D13", "a copy of a file outside allowed_paths"},
    {"D14", "a name that collides with another, or is not plain text"},
    {"D15", "too many changes, or too much new content"},
};

const char *cx_diff_rule_text(const char *rule)
{
    for (size_t i = 0; i < CX_COUNT_OF(rule_texts); i++)
        if (strcmp(rule_texts[i].rule, rule) == 0)
            return rule_texts[i].text;
    return NULL;
}

/* --- parts of the judgement ------------------------------------------------------------------- */

/* D01.  *out_found false: refused, there is nothing to compare with. */
static cx_status find_baseline(cx_diff_job *job, bool *out_found, cx_err *err)
{
    cx_err why = {.code = CX_OK};
    cx_str ref = job->options->baseline;
    cx_status status = cx_git_resolve(job->git, ref, &job->baseline, &why);
    *out_found = !cx_failed(status);
    if (status.code == CX_E_NOT_FOUND) {
        cx_run_findings_reject(
            job->findings, "D01", (cx_str){ref.data, ref.size > 200 ? 200 : ref.size},
            CX_STR("repository"), "the baseline does not name one commit: %s", why.message);
        return CX_SUCCESS;
    }
    if (cx_failed(status) && err != NULL)
        *err = why;
    return status;
}

static cx_status build_views(cx_diff_job *job, unsigned *out_commits, cx_err *err)
{
    const cx_oid *head = &job->after->head;
    *out_commits = 0;
    if (head->size != 0 && !cx_oid_eq(head, &job->baseline)) {
        CX_TRY(cx_diff_view_commits(job, &job->baseline, head, out_commits, err));
        CX_TRY(cx_diff_view_head(job, &job->baseline, head, err));
    }
    CX_TRY(cx_diff_view_index(job, err));
    return job->options->index_only ? CX_SUCCESS : cx_diff_view_disk(job, err);
}

static int compare_paths(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

/* Every changed path once, sorted. */
static cx_status gather_paths(const cx_diff_job *job, cx_diff_report *out, cx_err *err)
{
    size_t total = 0, count = 0, stored = 0;
    for (size_t v = 0; v < job->views.count; v++)
        total += job->views.items[v].count;
    cx_str *paths = CX_ARENA_ARRAY(job->arena, cx_str, total + 1);
    if (paths == NULL)
        return cx_fail_nomem(err);
    for (size_t v = 0; v < job->views.count; v++)
        for (size_t i = 0; i < job->views.items[v].count; i++)
            paths[count++] = job->views.items[v].changes[i].path;
    qsort(paths, count, sizeof *paths, compare_paths);
    for (size_t i = 0; i < count; i++)
        if (stored == 0 || !cx_str_eq(paths[stored - 1], paths[i]))
            paths[stored++] = paths[i];
    out->paths = paths;
    out->path_count = stored;
    return CX_SUCCESS;
}

/* D15.  False: too much to go on with what costs time a path. */
static bool check_amount(cx_diff_job *job, const cx_diff_report *report)
{
    const cx_diff_options *options = job->options;
    uint64_t paths = options->max_paths != 0 ? options->max_paths : CX_DIFF_PATHS_MAX;
    uint64_t bytes = options->max_bytes != 0 ? options->max_bytes : CX_DIFF_BYTES_MAX;
    if (report->path_count > paths)
        cx_run_findings_reject(job->findings, "D15", CX_STR(""), CX_STR("disk"),
                               "%zu paths changed, more than %llu", report->path_count,
                               (unsigned long long)paths);
    if (job->new_bytes > bytes)
        cx_run_findings_reject(job->findings, "D15", CX_STR(""), CX_STR("disk"),
                               "there are %llu bytes of new content, more than %llu",
                               (unsigned long long)job->new_bytes, (unsigned long long)bytes);
    return !cx_run_findings_have(job->findings, "D15");
}

/* A candidate that is a file and a folder at once, or has names no tree can hold, has no tree. */
static cx_status name_tree(cx_diff_job *job, cx_diff_report *out, cx_err *err)
{
    cx_err why;
    cx_status status = cx_diff_tree_oid(job->candidate, job->candidate_count,
                                        cx_git_oid_size(job->git), &out->tree, &why);
    if (cx_failed(status)) {
        out->tree.size = 0;
        if (err != NULL)
            *err = why;
        return status;
    }
    const cx_oid *expected = job->options->expected_tree;
    if (expected != NULL && expected->size != 0 && !cx_oid_eq(expected, &out->tree))
        cx_run_findings_reject(job->findings, "D00", CX_STR(""), CX_STR("disk"),
                               "the candidate's tree is not the one that was judged first");
    return CX_SUCCESS;
}

/* Rules over the views; a path rule is reported even when there is too much to look into
 * everything. */
static cx_status check_views(cx_diff_job *job, cx_diff_report *out, cx_err *err)
{
    CX_TRY(gather_paths(job, out, err));
    bool moderate = check_amount(job, out);
    if (moderate)
        CX_TRY(cx_diff_blobs_load(job, err));
    CX_TRY(cx_diff_check_paths(job, err));
    if (!job->options->index_only && moderate)
        CX_TRY(name_tree(job, out, err));
    return moderate ? cx_diff_check_copies(job, err) : CX_SUCCESS;
}

/* The baseline is found, and its tree listed, while the snapshot is taken; the job's arena and its
 * findings are the listing's until then. */
typedef struct listing {
    cx_diff_job *job;
    bool found;
    cx_status status;
    cx_err err;
} listing;

static void list_baseline(void *arg)
{
    listing *l = arg;
    cx_diff_job *job = l->job;
    l->status = find_baseline(job, &l->found, &l->err);
    if (!cx_failed(l->status) && l->found)
        l->status = cx_git_tree_read(job->git, &job->baseline, job->arena, &job->base, &l->err);
}

static cx_status gather_views(cx_diff_job *job, cx_snapshot **after, bool *out_found, cx_err *err)
{
    const cx_diff_options *options = job->options;
    const cx_snapshot_options how = {.before = options->snapshot,
                                     .skip = options->skip,
                                     .index_file = options->index_file,
                                     .agent = options->agent,
                                     .repository_only = options->index_only};
    listing l = {.job = job};
    cx_thread thread;
    bool started = cx_thread_start(&thread, list_baseline, &l);
    cx_status status = cx_snapshot_read(job->git, &how, after, err);
    if (started)
        cx_thread_join(&thread);
    else
        list_baseline(&l);
    job->after = *after;
    *out_found = l.found;
    /* Without a baseline nothing else counts. */
    if (!cx_failed(l.status) && (!l.found || cx_failed(status)))
        return l.found ? status : CX_SUCCESS;
    if (cx_failed(l.status) && err != NULL)
        *err = l.err;
    return l.status;
}

static cx_status apply_rules(cx_diff_job *job, cx_snapshot **after, cx_diff_report *out,
                             cx_err *err)
{
    bool found;
    CX_TRY(gather_views(job, after, &found, err));
    if (!found)
        return CX_SUCCESS;
    out->baseline = job->baseline;
    out->head = job->after->head;
    CX_TRY(cx_diff_check_repository(job, err));
    CX_TRY(build_views(job, &out->commits, err));
    return check_views(job, out, err);
}

/* --- what the report keeps -------------------------------------------------------------------- */

/* Paths of the report must not point into a snapshot that is closed now. */
static cx_status fill_report(cx_diff_job *job, cx_diff_report *out, cx_err *err)
{
    cx_diff_change *changes = CX_ARENA_ARRAY(job->arena, cx_diff_change, job->disk_count + 1);
    cx_str *paths = CX_ARENA_ARRAY(job->arena, cx_str, out->path_count + 1);
    if (changes == NULL || paths == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < job->disk_count; i++) {
        changes[i] = job->disk[i];
        changes[i].path = cx_arena_copy_str(job->arena, job->disk[i].path);
        if (changes[i].path.data == NULL)
            return cx_fail_nomem(err);
    }
    for (size_t i = 0; i < out->path_count; i++) {
        paths[i] = cx_arena_copy_str(job->arena, out->paths[i]);
        if (paths[i].data == NULL)
            return cx_fail_nomem(err);
    }
    out->changes = changes;
    out->change_count = job->disk_count;
    out->paths = paths;
    out->new_bytes = job->new_bytes;
    return cx_run_findings_check(job->findings, err);
}

static void job_begin(cx_diff_job *job, const cx_diff_options *options, cx_arena *arena,
                      cx_diff_report *out)
{
    memset(out, 0, sizeof *out);
    memset(job, 0, sizeof *job);
    cx_run_findings_init(&out->findings, arena);
    out->phase = options->phase;
    job->options = options;
    job->git = options->git;
    job->arena = arena;
    job->before = options->snapshot;
    job->findings = &out->findings;
    cx_map_init(&job->blobs, arena->alloc, cx_io_seed(cx_io_system()));
}

static cx_status job_end(cx_diff_job *job, cx_status status, cx_diff_report *out, cx_err *err)
{
    if (!cx_failed(status))
        status = fill_report(job, out, err);
    cx_vec_done(&job->views, job->arena->alloc);
    cx_vec_done(&job->known, job->arena->alloc);
    cx_map_done(&job->blobs);
    if (cx_failed(status))
        cx_diff_report_done(out);
    else
        out->passed = out->findings.refusing == 0;
    return status;
}

cx_status cx_diff_gate_run(const cx_diff_options *options, cx_arena *arena, cx_diff_report *out,
                           cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL && out != NULL);
    cx_diff_job job;
    cx_snapshot *after = NULL;
    job_begin(&job, options, arena, out);
    cx_status status = job_end(&job, apply_rules(&job, &after, out, err), out, err);
    cx_snapshot_close(after);
    return status;
}

static cx_status check_commit_range(cx_diff_job *job, const cx_oid *from, const cx_oid *to,
                                    cx_diff_report *out, cx_err *err)
{
    job->baseline = *from;
    out->baseline = *from;
    CX_TRY(cx_git_tree_read(job->git, from, job->arena, &job->base, err));
    CX_TRY(cx_diff_view_commits(job, from, to, &out->commits, err));
    CX_TRY(cx_diff_view_head(job, from, to, err));
    CX_TRY(cx_git_tree_of(job->git, to, &out->tree, err));
    cx_git_tree tree;
    CX_TRY(cx_git_tree_read(job->git, to, job->arena, &tree, err));
    /* What D14 compares with: the files that there will be. */
    job->candidate_count = tree.count;
    job->candidate = CX_ARENA_ARRAY(job->arena, cx_git_entry, tree.count + 1);
    if (job->candidate == NULL)
        return cx_fail_nomem(err);
    if (tree.count != 0)
        memcpy(job->candidate, tree.entries, tree.count * sizeof *tree.entries);
    CX_TRY(cx_diff_check_bare_repositories(job, err));
    CX_TRY(gather_paths(job, out, err));
    bool moderate = check_amount(job, out);
    if (moderate)
        CX_TRY(cx_diff_blobs_load(job, err));
    CX_TRY(cx_diff_check_paths(job, err));
    return moderate ? cx_diff_check_copies(job, err) : CX_SUCCESS;
}

cx_status cx_diff_gate_run_commits(const cx_diff_options *options, const cx_oid *from,
                                   const cx_oid *to, cx_arena *arena, cx_diff_report *out,
                                   cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL && out != NULL);
    cx_diff_job job;
    cx_snapshot head = {.head = *to};
    job_begin(&job, options, arena, out);
    job.after = &head;
    return job_end(&job, check_commit_range(&job, from, to, out, err), out, err);
}

void cx_diff_report_done(cx_diff_report *report)
{
    cx_run_findings_done(&report->findings);
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static const char *phase_name(cx_diff_phase phase)
{
    switch (phase) {
    case CX_DIFF_REVIEW: return "review";
    case CX_DIFF_TESTS: return "tests";
    case CX_DIFF_AGENT: break;
    }
    return "agent";
}

static cx_status put_strings(cx_json_list *object, const char *name, const cx_str *items,
                             size_t count, cx_arena *arena, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json value;
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&list, cx_json_make_str(items[i]));
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_json_list_put(object, cx_str_z(name), value);
    return CX_SUCCESS;
}

/* The distinct rules that refuse, in their order. */
static cx_status put_rules(cx_json_list *object, const cx_diff_report *report, cx_arena *arena,
                           cx_err *err)
{
    cx_str rules[CX_COUNT_OF(rule_texts)];
    size_t count = 0;
    for (size_t i = 0; i < CX_COUNT_OF(rule_texts); i++)
        if (cx_run_findings_have(&report->findings, rule_texts[i].rule))
            rules[count++] = cx_str_z(rule_texts[i].rule);
    return put_strings(object, "rules", rules, count, arena, err);
}

static cx_status put_oid(cx_json_list *object, const char *name, const cx_oid *oid, cx_arena *arena,
                         cx_err *err)
{
    char text[CX_OID_TEXT_SIZE];
    if (oid->size == 0) {
        cx_json_list_put(object, cx_str_z(name), cx_json_make_null());
        return CX_SUCCESS;
    }
    cx_oid_text(oid, text);
    cx_str stored = cx_arena_copy_str(arena, cx_str_z(text));
    cx_json_list_put(object, cx_str_z(name), cx_json_make_str(stored));
    return stored.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_diff_report_json(const cx_diff_report *report, cx_arena *arena, cx_json *out,
                              cx_err *err)
{
    CX_ASSERT(report != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena);
    cx_json violations;
    CX_TRY(cx_run_findings_json(&report->findings, arena, &violations, err));
    cx_json_list_put(&object, CX_STR("allow"), cx_json_make_bool(report->passed));
    CX_TRY(put_rules(&object, report, arena, err));
    cx_json_list_put(&object, CX_STR("violations"), violations);
    CX_TRY(put_oid(&object, "baseline", &report->baseline, arena, err));
    CX_TRY(put_oid(&object, "tree", &report->tree, arena, err));
    CX_TRY(put_strings(&object, "changed", report->paths, report->path_count, arena, err));
    cx_json_list_put(&object, CX_STR("phase"),
                     cx_json_make_str(cx_str_z(phase_name(report->phase))));
    return cx_json_list_end_object(&object, out, err);
}

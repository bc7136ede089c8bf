/*
 * state_join.c - S2 of a contract that was split: its parts side by side, then what they made,
 * joined on the branch of the task (run.md §14, §15).
 *
 *   I1  Each part goes through its own S2 to S5 and waits in S4; only when all of them have passed
 *       anything is joined, in their order, each judged against what was joined before.
 *   I2  The join is a candidate as any other: judged, reviewed, tested, and merged at once or not
 *       at all.
 *   I3  Parts that share a path, which both have declared as a lock, never work at the same time:
 *       the later one in the plan starts when the earlier one has passed or failed.
 *   I4  While threads work, the thread that holds the governor's lock owns all of its state.
 */
#include "governor/state_internal.h"
#include "candidate/api.h"

#define THREADS_MAX 4u

/* --- side by side ----------------------------------------------------------------------------- */

typedef enum part_progress { PART_WAITS, PART_WORKS, PART_ENDED } part_progress;

typedef struct team {
    cx_governor *governor;
    part_progress progress[1 + CX_RUN_PARTS_MAX]; /* of each task */
    bool failed;                                  /* an event could not be written */
    cx_status status;
    cx_err why;
} team;

static bool shares_path(const cx_governor_task *a, const cx_governor_task *b)
{
    const cx_str_list *one = &a->contract.allowed_paths, *other = &b->contract.allowed_paths;
    for (size_t i = 0; i < one->count; i++)
        for (size_t k = 0; k < other->count; k++)
            if (cx_run_path_overlap(one->items[i], other->items[k], &a->governor->ground) !=
                CX_RUN_APART)
                return true;
    return false;
}

/* I3: an earlier part that shares a path has not ended. */
static bool must_wait(const team *w, size_t part)
{
    for (size_t i = 1; i < part; i++)
        if (w->progress[i] != PART_ENDED &&
            shares_path(&w->governor->tasks[i], &w->governor->tasks[part]))
            return true;
    return false;
}

/* The next part that may work, or 0 when none is left; waits for one.  The first that waits always
 * may when none works. */
static size_t next_part(team *w)
{
    cx_governor *g = w->governor;
    while (!w->failed) {
        bool waiting = false;
        for (size_t i = 1; i < g->task_count; i++) {
            if (w->progress[i] != PART_WAITS)
                continue;
            waiting = true;
            if (!must_wait(w, i))
                return i;
        }
        if (!waiting)
            return 0;
        cx_governor_wait(g);
    }
    return 0;
}

static void part_worker(void *arg, unsigned index)
{
    team *w = arg;
    size_t part;
    (void)index;
    cx_governor_enter(w->governor);
    while ((part = next_part(w)) != 0) {
        cx_err why;
        w->progress[part] = PART_WORKS;
        cx_status status = cx_task_run(&w->governor->tasks[part], &why);
        w->progress[part] = PART_ENDED;
        if (cx_failed(status) && !w->failed) {
            w->failed = true;
            w->status = status;
            w->why = why;
        }
        cx_governor_wake(w->governor);
    }
    cx_governor_leave(w->governor);
}

static cx_status run_parts(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    team w = {.governor = g};
    unsigned parts = (unsigned)(g->task_count - 1);
    g->shared = true;
    cx_thread_team(parts < THREADS_MAX ? parts : THREADS_MAX, part_worker, &w);
    g->shared = false;
    if (!w.failed)
        return CX_SUCCESS;
    if (err != NULL)
        *err = w.why;
    return w.status;
}

/* --- all of them, or none --------------------------------------------------------------------- */

static cx_status refuse_split(cx_governor_task *t, const char *reason, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_str *items = CX_ARENA_ARRAY(&t->arena, cx_str, g->task_count);
    size_t count = 0;
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 1; i < g->task_count; i++) {
        const cx_governor_task *part = &g->tasks[i];
        if (!part->refused)
            continue;
        items[count] = cx_arena_printf(&t->arena, "%.*s: %s %.*s", (int)part->id.size,
                                       part->id.data, cx_gate_name(part->refusal.gate),
                                       (int)part->refusal.reason.size, part->refusal.reason.data);
        if (items[count++].data == NULL)
            return cx_fail_nomem(err);
    }
    cx_texts violations = {items, count};
    t->refusal.hint = count == 0 ? CX_STR("") : items[0];
    return cx_task_refuse(t, CX_GATE_SPLIT, reason, false, &violations, err);
}

static bool any_refused(const cx_governor *g)
{
    for (size_t i = 1; i < g->task_count; i++)
        if (g->tasks[i].refused)
            return true;
    return false;
}

/* --- joining ---------------------------------------------------------------------------------- */

static cx_status write_part_joined(cx_governor_task *part, cx_str branch, const cx_merge_plan *plan,
                                   cx_err *err)
{
    static const char prefix[] = "refs/heads/";
    char commit[CX_OID_TEXT_SIZE];
    cx_json_list payload = cx_json_list_begin(&part->arena);
    size_t skip = cx_str_starts(branch, CX_STR("refs/heads/")) ? sizeof prefix - 1 : 0;
    cx_oid_text(&plan->commit, commit);
    cx_json_put_quoted(&payload, "branch", (cx_str){branch.data + skip, branch.size - skip});
    cx_json_put_z(&payload, "kind", plan->kind == CX_MERGE_REAL ? "merge" : "fast_forward");
    cx_json_put_z(&payload, "commit", commit);
    if (plan->detail.size != 0)
        cx_json_put_quoted(&payload, "detail", plan->detail);
    return cx_task_event(part, CX_RUN_INFO, CX_RUN_EVENT_MERGE_APPLIED, &payload, err);
}

/* Into the branch of the task, whose work tree follows; no other process moves that branch. */
static cx_status merge_part(cx_governor_task *t, cx_governor_task *part, const cx_git *checkout,
                            cx_err *err)
{
    cx_governor *g = t->governor;
    cx_merge_plan plan;
    cx_merge_options options = {
        .git = g->git,
        .runtime_root = g->store.root,
        .main_ref = t->workspace.worktree.branch,
        .own_checkout = checkout,
        .baseline = g->baseline_oid,
        .candidate = part->candidate.commit,
        .run_id = cx_run_id(g->run),
        .task_id = part->id,
        .contract_sha256 = cx_digest_text(&g->contract_sha256, &part->arena),
        .time_s = (int64_t)(g->io->wall_ns(g->io) / UINT64_C(1000000000)),
    };
    CX_TRY(cx_run_merge_plan(&options, &part->arena, &plan, err));
    if (plan.kind == CX_MERGE_REAL)
        CX_TRY(cx_task_check_merge(part, &plan, err));
    if (part->refused)
        return CX_SUCCESS;
    if (plan.kind != CX_MERGE_REFUSED)
        CX_TRY(cx_run_merge_apply(&options, &plan, &part->arena, err));
    if (plan.kind == CX_MERGE_REFUSED)
        return cx_task_refuse_merge(part, plan.reason, plan.detail, err);
    return write_part_joined(part, t->workspace.worktree.branch, &plan, err);
}

/* The work tree of a task that was split was read-only for its agent: git may use it. */
static cx_status join_part(cx_governor_task *t, cx_governor_task *part, cx_err *err)
{
    cx_git *checkout;
    const cx_git_checkout where = {.path = cx_git_worktree(t->workspace.worktree.git),
                                   .git_dir = cx_git_dir(t->workspace.worktree.git)};
    CX_ASSERT(t->plans && t->agent.spec.read_only);
    CX_TRY(cx_git_open_checkout(t->governor->git, &where, &checkout, err));
    cx_status status = merge_part(t, part, checkout, err);
    cx_git_close(checkout);
    return status;
}

/* S4 to S6 for all, then their merges in task order. */
static cx_status join_parts(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    for (size_t i = 1; i < g->task_count; i++)
        CX_TRY(cx_task_advance(&g->tasks[i], err));
    for (size_t i = 1; i < g->task_count && !any_refused(g); i++)
        CX_TRY(join_part(t, &g->tasks[i], err));
    return any_refused(g) ? refuse_split(t, "join_refused", err) : CX_SUCCESS;
}

/* The branch is the candidate when it is what the diff gate has seen. */
static cx_status use_joined_candidate(cx_governor_task *t, cx_err *err)
{
    cx_oid head, tree;
    t->gate = CX_GATE_CANDIDATE;
    CX_TRY(cx_git_ref(t->governor->git, t->workspace.worktree.branch, &head, err));
    CX_TRY(cx_git_tree_of(t->governor->git, &head, &tree, err));
    if (!cx_oid_eq(&tree, &t->candidate.diff.tree))
        return cx_fail(err, CX_E_CONFLICT, "the work tree is not what its parts were joined to");
    return cx_task_set_candidate(t, &head, err);
}

cx_status cx_task_work_parts(cx_governor_task *t, cx_err *err)
{
    t->gate = CX_GATE_SPLIT;
    CX_TRY(run_parts(t, err));
    if (cx_task_cancelled(t)) {
        t->refusal.aborted = true;
        return cx_task_refuse(t, CX_GATE_INTERRUPTED, "signal", false, NULL, err);
    }
    if (any_refused(t->governor))
        return refuse_split(t, "part_refused", err);
    CX_TRY(join_parts(t, err));
    if (!t->refused)
        CX_TRY(cx_task_run_diff_gate(t, NULL, err));
    if (t->refused)
        return CX_SUCCESS;
    CX_TRY(use_joined_candidate(t, err));
    cx_task_go(t, CX_WHY_DIFF_PASSED);
    return CX_SUCCESS;
}

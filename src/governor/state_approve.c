/*
 * state_approve.c - asking a human, and what they signed (run.md §13).
 *
 * Only files in approvals/ and those named on the command line count.  Nothing is used up unless
 * all that is asked for is approved.
 */
#include "base/api.h"
#include "governor/state_internal.h"

#define POLL_MS 200

bool cx_governor_scope_granted(void *governor, cx_str scope)
{
    const cx_governor *g = governor;
    for (size_t i = 0; i < g->granted_scopes.count; i++)
        if (cx_str_eq(g->granted_scopes.items[i], scope))
            return true;
    return false;
}

cx_run_grants cx_governor_grants(cx_governor *g)
{
    return (cx_run_grants){cx_governor_scope_granted, g};
}

static bool has_all_scopes(const cx_governor *g, const cx_texts *scopes)
{
    for (size_t i = 0; i < scopes->count; i++)
        if (cx_run_approvals_find(&g->approvals, scopes->items[i]) == NULL)
            return false;
    return true;
}

static cx_status store_granted_scopes(cx_governor *g, const cx_texts *scopes, cx_err *err)
{
    size_t count = g->granted_scopes.count + scopes->count;
    cx_str *items = CX_ARENA_ARRAY(g->arena, cx_str, count);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        items[i] = i < g->granted_scopes.count
                       ? g->granted_scopes.items[i]
                       : cx_arena_copy_str(g->arena, scopes->items[i - g->granted_scopes.count]);
    g->granted_scopes = (cx_texts){items, count};
    return CX_SUCCESS;
}

/* The signed file is evidence of the run. */
static cx_status store_approval_file(cx_governor_task *t, const cx_run_approval *approval,
                                     cx_err *err)
{
    cx_str path = cx_arena_printf(&t->arena, CX_RUN_APPROVALS_EVIDENCE "%.*s.json",
                                  (int)approval->approval_id.size, approval->approval_id.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (cx_run_file_exists(t->governor->run, path))
        return CX_SUCCESS;
    CX_TRY(cx_run_file_write(t->governor->run, path, approval->file, err));
    return cx_task_add_artifact(t, path, err);
}

/* Uses what was found; *out false when another process used it in between. */
static cx_status use_approvals(cx_governor_task *t, const cx_texts *scopes, bool *out, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_json_list used = cx_json_list_begin(&t->arena), payload = cx_json_list_begin(&t->arena);
    cx_json list;
    *out = false;
    for (size_t i = 0; i < scopes->count; i++) {
        const cx_run_approval *approval;
        cx_json one;
        CX_TRY(cx_run_approvals_use(&g->approvals, scopes->items[i], &approval, err));
        if (approval == NULL)
            return CX_SUCCESS;
        CX_TRY(store_approval_file(t, approval, err));
        CX_TRY(cx_run_approval_json(approval, true, &t->arena, &one, err));
        cx_json_list_add(&used, one);
    }
    CX_TRY(cx_json_list_end_array(&used, &list, err));
    cx_json_list_put(&payload, CX_STR("approvals"), list);
    cx_json_put_quoted_strs(&payload, "scopes", scopes->items, scopes->count);
    CX_TRY(cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_HUMAN_APPROVAL_COMPLETED, &payload, err));
    *out = true;
    return store_granted_scopes(g, scopes, err);
}

static bool is_repeated_refusal(const cx_run_findings *refused, size_t index)
{
    const cx_run_finding *it = &refused->list.items[index];
    for (size_t i = 0; i < index; i++)
        if (cx_str_eq(refused->list.items[i].where, it->where) &&
            cx_str_eq(refused->list.items[i].message, it->message))
            return true;
    return false;
}

/* Without the folder: no path of this computer goes into a bundle. */
static cx_str last_part(cx_str path)
{
    size_t start = path.size;
    while (start != 0 && path.data[start - 1] != '/')
        start--;
    return (cx_str){path.data + start, path.size - start};
}

/* Each file that was refused, once. */
static cx_status write_rejected_approvals(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_run_findings *refused = &g->approvals.refused;
    CX_TRY(cx_run_findings_check(refused, err));
    for (; g->refusals_written < refused->list.count; g->refusals_written++) {
        const cx_run_finding *finding = &refused->list.items[g->refusals_written];
        cx_json_list payload = cx_json_list_begin(&t->arena);
        if (is_repeated_refusal(refused, g->refusals_written))
            continue;
        cx_json_put_quoted(&payload, "file", last_part(finding->where));
        cx_json_put_quoted(&payload, "reason", finding->message);
        CX_TRY(cx_task_event(t, CX_RUN_ERROR, CX_RUN_EVENT_HUMAN_APPROVAL_REJECTED, &payload, err));
    }
    return CX_SUCCESS;
}

static uint64_t wait_seconds(const cx_governor *g)
{
    return g->options->approval_wait_s != 0 ? g->options->approval_wait_s
                                            : g->policy.config.limits.approval_wait_sec;
}

/* Looks again and again until all is approved, the time is up, or the run is told to end. */
static cx_status wait_for_scopes(cx_governor_task *t, const cx_texts *scopes, bool *out,
                                 cx_err *err)
{
    cx_governor *g = t->governor;
    uint64_t start = g->io->monotonic_ns(g->io), wait_ns = wait_seconds(g) * UINT64_C(1000000000);
    bool late = false;
    while (!*out && !late && !cx_task_cancelled(t)) {
        late = g->io->monotonic_ns(g->io) - start >= wait_ns;
        g->approval_context.now_ns = (int64_t)g->io->wall_ns(g->io);
        CX_TRY(cx_run_approvals_add_folder(&g->approvals, err));
        if (has_all_scopes(g, scopes))
            CX_TRY(use_approvals(t, scopes, out, err));
        if (!*out && !late) {
            cx_governor_leave(g); /* other parts go on meanwhile */
            cx_thread_sleep_ms(POLL_MS);
            cx_governor_enter(g);
        }
    }
    return *out ? CX_SUCCESS : write_rejected_approvals(t, err);
}

bool cx_governor_may_be_approved(cx_governor *g, const cx_texts *scopes)
{
    return wait_seconds(g) != 0 || has_all_scopes(g, scopes);
}

cx_status cx_task_ask_approval(cx_governor_task *t, const cx_texts *scopes, bool *out_granted,
                               cx_err *err)
{
    cx_governor *g = t->governor;
    cx_json wanted;
    uint64_t start = g->io->monotonic_ns(g->io);
    cx_json_list payload = cx_json_list_begin(&t->arena);
    *out_granted = false;
    CX_TRY(cx_run_approval_wanted_json((cx_str_list){scopes->items, scopes->count},
                                       &g->contract_sha256, wait_seconds(g), &t->arena, &wanted,
                                       err));
    CX_TRY(cx_task_event_json(t, CX_RUN_INFO, CX_RUN_EVENT_HUMAN_APPROVAL_REQUIRED, &wanted, err));
    CX_TRY(wait_for_scopes(t, scopes, out_granted, err));
    if (*out_granted)
        return CX_SUCCESS;
    cx_json_put_uint(&payload, "waited_sec",
                     (g->io->monotonic_ns(g->io) - start) / UINT64_C(1000000000));
    return cx_task_event(t, CX_RUN_WARN, CX_RUN_EVENT_HUMAN_APPROVAL_TIMEOUT, &payload, err);
}

/*
 * state_fix.c - S5: another attempt under a new contract, or the end (run.md §15).
 *
 * The new contract is the old one with another task_id, its parent's, and one artifact more: the
 * evidence of the failure.  It goes through all of S0's checks again; nothing in it can widen what
 * the old one allowed, because nothing else is written.
 */
#include "base/api.h"
#include "crypto/api.h"
#include "contract/api.h"
#include "governor/state_internal.h"

/* --- the new contract ------------------------------------------------------------------------- */

static cx_status failed_artifact(cx_governor_task *t, cx_json *out, cx_err *err)
{
    bool tests = t->verdicts.tests.reached && !t->verdicts.tests.passed;
    cx_run_ref ref;
    cx_json_list object = cx_json_list_begin(&t->arena);
    cx_str name = cx_arena_printf(&t->arena, "failed_evidence.attempt_%u", t->attempt);
    cx_str uri = cx_arena_printf(&t->arena, "artifacts/%s_failed_attempt_%u.json",
                                 tests ? "tests" : "review", t->attempt);
    if (uri.data != NULL)
        uri = cx_task_file(t, uri.data);
    if (name.data == NULL || uri.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_file_ref(t->governor->run, uri, &t->arena, &ref, err));
    cx_json_put_quoted(&object, "name", name);
    cx_json_put_quoted(&object, "uri", uri);
    cx_json_put_digest(&object, "sha256", &ref.sha256);
    return cx_json_list_end_object(&object, out, err);
}

static cx_status longer_artifacts(cx_governor_task *t, cx_json *out, cx_err *err)
{
    const cx_json *inputs = CX_JSON_GET(&t->contract.json, "inputs");
    const cx_json *old = CX_JSON_GET(inputs, "artifacts");
    cx_json_list array = cx_json_list_begin(&t->arena), object = cx_json_list_begin(&t->arena);
    cx_json added, artifacts;
    CX_TRY(failed_artifact(t, &added, err));
    for (uint32_t i = 0; old != NULL && i < old->count; i++)
        cx_json_list_add(&array, old->items[i]);
    cx_json_list_add(&array, added);
    CX_TRY(cx_json_list_end_array(&array, &artifacts, err));
    for (uint32_t i = 0; i < inputs->count; i++)
        if (!cx_str_is(cx_json_text(&inputs->members[i].name), "artifacts"))
            cx_json_list_put(&object, cx_json_text(&inputs->members[i].name),
                             inputs->members[i].value);
    cx_json_list_put(&object, CX_STR("artifacts"), artifacts);
    return cx_json_list_end_object(&object, out, err);
}

static cx_status next_contract(cx_governor_task *t, uint32_t attempt, cx_str *out_id, cx_buf *out,
                               cx_err *err)
{
    const cx_json *old = &t->contract.json;
    cx_json_list object = cx_json_list_begin(&t->arena);
    cx_json inputs, fresh;
    *out_id = cx_arena_printf(&t->arena, "%.*s.fix%u", (int)t->id.size, t->id.data, attempt);
    if (out_id->data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(longer_artifacts(t, &inputs, err));
    for (uint32_t i = 0; i < old->count; i++) {
        cx_str name = cx_json_text(&old->members[i].name);
        if (!cx_str_is(name, "task_id") && !cx_str_is(name, "inputs") &&
            !cx_str_is(name, "parent_task_id"))
            cx_json_list_put(&object, name, old->members[i].value);
    }
    cx_json_put_quoted(&object, "task_id", *out_id);
    cx_json_put_quoted(&object, "parent_task_id", t->id);
    cx_json_list_put(&object, CX_STR("inputs"), inputs);
    CX_TRY(cx_json_list_end_object(&object, &fresh, err));
    return cx_run_json_write(out, &fresh, err);
}

/* --- S0 again --------------------------------------------------------------------------------- */

cx_status cx_task_validate(cx_governor_task *t, cx_str given, cx_contract *out, cx_str *out_text,
                           cx_texts *faults, cx_err *err)
{
    CX_ASSERT(t != NULL && out != NULL);
    cx_governor *g = t->governor;
    cx_run_findings findings;
    cx_buf text;
    cx_run_findings_init(&findings, &t->arena);
    cx_buf_init(&text, g->alloc);
    cx_status status = cx_run_contract_read(given, &t->arena, &findings, out, err);
    if (!cx_failed(status) && findings.refusing == 0)
        status = cx_run_contract_baseline(out, &g->repo, &findings, err);
    if (!cx_failed(status) && findings.refusing == 0)
        status = cx_run_contract_lint(out, &g->policy, &g->repo, &g->ground,
                                      &cx_run_contract_command_checks, &t->arena, &findings, err);
    if (!cx_failed(status))
        status = cx_findings_texts(&findings, &t->arena, faults, err);
    if (!cx_failed(status) && faults->count == 0)
        status = cx_run_contract_resolve(out, &g->policy, &t->arena, &text, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        *out_text = cx_arena_copy_str(&t->arena, cx_buf_str(&text));
        if (out_text->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    cx_run_findings_done(&findings);
    return status;
}

cx_status cx_task_check_policy(cx_governor_task *t, const cx_contract *contract, cx_texts *faults,
                               cx_err *err)
{
    cx_governor *g = t->governor;
    cx_run_findings findings;
    cx_run_grants grants = cx_governor_grants(g);
    cx_run_findings_init(&findings, &t->arena);
    cx_status status =
        cx_run_gate_policy(&g->policy, contract, &g->tree, &g->ground, &grants, &findings, err);
    if (!cx_failed(status))
        status = cx_findings_texts(&findings, &t->arena, faults, err);
    cx_run_findings_done(&findings);
    return status;
}

static cx_status use_fix_contract(cx_governor_task *t, cx_str given, cx_err *err)
{
    cx_contract contract;
    cx_texts faults = {NULL, 0};
    cx_str text;
    CX_TRY(cx_task_validate(t, given, &contract, &text, &faults, err));
    if (faults.count != 0)
        return cx_task_refuse(t, CX_GATE_CONTRACT, "fix_contract_invalid", false, &faults, err);
    CX_TRY(cx_task_check_policy(t, &contract, &faults, err));
    if (faults.count != 0)
        return cx_task_refuse(t, CX_GATE_POLICY, "fix_contract_wider", true, &faults, err);
    t->contract = contract;
    t->contract_text = text;
    return CX_SUCCESS;
}

/* --- the state -------------------------------------------------------------------------------- */

static void wait_backoff(cx_governor_task *t, uint32_t seconds)
{
    const cx_io *io = t->governor->io;
    uint64_t end = io->monotonic_ns(io) + seconds * UINT64_C(1000000000);
    cx_governor_leave(t->governor);
    while (io->monotonic_ns(io) < end && !cx_task_cancelled(t))
        cx_thread_sleep_ms(100);
    cx_governor_enter(t->governor);
}

/* The gate that failed has reported it already; this ends the task. */
static cx_status end_fix_loop(cx_governor_task *t, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    bool tests = t->verdicts.tests.reached && !t->verdicts.tests.passed;
    cx_json_put_uint(&payload, "attempts", (uint64_t)t->attempt + 1);
    t->refused = true;
    t->refusal.gate = tests ? CX_GATE_TESTS : CX_GATE_REVIEW;
    t->refusal.reason = tests ? CX_STR("must_pass_failed") : CX_STR("review_failed");
    return cx_task_event(t, CX_RUN_ERROR, CX_RUN_EVENT_FIX_LOOP_EXHAUSTED, &payload, err);
}

static cx_status write_fix_triggered(cx_governor_task *t, cx_str path, cx_err *err)
{
    cx_digest digest = cx_digest_of(cx_str_bytes(t->contract_text));
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_quoted(&payload, "parent_task_id", t->id);
    cx_json_put_quoted(&payload, "contract", path);
    cx_json_put_digest(&payload, "contract_sha256", &digest);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_FIX_LOOP_TRIGGERED, &payload, err);
}

static void forget_verdicts(cx_governor_task *t)
{
    t->agent.has_reply = false;
    memset(&t->reports.review, 0, sizeof t->reports.review);
    memset(&t->reports.tests, 0, sizeof t->reports.tests);
    memset(&t->verdicts.review, 0, sizeof t->verdicts.review);
    memset(&t->verdicts.tests, 0, sizeof t->verdicts.tests);
    memset(&t->verdicts.diff, 0, sizeof t->verdicts.diff);
    t->refusal.violations = (cx_texts){NULL, 0};
    t->refusal.hint = (cx_str){NULL, 0};
}

cx_status cx_state_fix(cx_governor_task *t, cx_err *err)
{
    cx_buf text;
    cx_str id;
    uint32_t next = t->attempt + 1;
    t->gate = CX_GATE_FIX_LOOP;
    if (t->plans || next > t->contract.max_retries) /* parts have loops of their own */
        return end_fix_loop(t, err);
    wait_backoff(t, t->contract.retry_backoff_sec);
    cx_buf_init(&text, t->governor->alloc);
    cx_status status = next_contract(t, next, &id, &text, err);
    cx_str given =
        cx_failed(status) ? (cx_str){NULL, 0} : cx_arena_copy_str(&t->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    cx_str path = cx_arena_printf(&t->arena, "tasks/%.*s.json", (int)id.size, id.data);
    if (given.data == NULL || path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(use_fix_contract(t, given, err));
    if (t->refused)
        return CX_SUCCESS;
    CX_TRY(cx_run_file_write(t->governor->run, path, cx_str_bytes(t->contract_text), err));
    t->attempt = next;
    CX_TRY(write_fix_triggered(t, path, err));
    forget_verdicts(t);
    cx_task_go(t, CX_WHY_FIX);
    return CX_SUCCESS;
}

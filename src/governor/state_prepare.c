/*
 * state_prepare.c - S0 and S1: schema registry, contract, pack, policy; then how the work is
 * split.
 *
 * The contract was read and judged before the bundle existed (state_start.c), because its task id
 * names the bundle's folders; here the verdict is written down and acted on.
 */
#include "governor/state_internal.h"
#include "rules/api.h"

/* --- schema registry -------------------------------------------------------------------------- */

typedef struct registry_source {
    cx_governor *governor;
} registry_source;

static cx_status read_baseline_schema(void *arg, const char *name, cx_arena *arena, cx_str *out,
                                      cx_err *err)
{
    cx_governor *g = ((registry_source *)arg)->governor;
    cx_str path = cx_arena_printf(arena, "schemas/%s", name);
    cx_run_blob kind;
    cx_bytes bytes;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(g->repo.read(g->repo.arg, g->baseline, path, CX_RUN_JSON_BYTES_MAX, arena, &kind, &bytes,
                        err));
    if (kind != CX_BLOB_FILE)
        return cx_fail(err, CX_E_NOT_FOUND, "%s is no file of the baseline", path.data);
    *out = cx_bytes_str(bytes);
    return CX_SUCCESS;
}

/* The baseline brings its own schemas when it has their registry. */
static cx_status baseline_has_registry(cx_governor *g, bool *out, cx_err *err)
{
    cx_run_blob kind = CX_BLOB_NONE;
    cx_bytes bytes;
    if (g->baseline.size != 0)
        CX_TRY(g->repo.read(g->repo.arg, g->baseline, CX_STR("schemas/schema_registry.json"),
                            CX_RUN_JSON_BYTES_MAX, g->arena, &kind, &bytes, err));
    *out = kind != CX_BLOB_NONE;
    return CX_SUCCESS;
}

static cx_status check_registry(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    registry_source source = {g};
    cx_run_findings findings;
    cx_texts texts = {NULL, 0};
    bool own = false;
    t->gate = CX_GATE_SCHEMA_REGISTRY;
    cx_run_findings_init(&findings, &t->arena);
    cx_status status = cx_run_schema_registry_check(NULL, NULL, &findings, err);
    if (!cx_failed(status))
        status = baseline_has_registry(g, &own, err);
    if (!cx_failed(status) && own)
        status = cx_run_schema_registry_check(read_baseline_schema, &source, &findings, err);
    if (!cx_failed(status))
        status = cx_findings_texts(&findings, &t->arena, &texts, err);
    cx_run_findings_done(&findings);
    CX_TRY(status);
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_z(&payload, "status", texts.count == 0 ? "match" : "mismatch");
    if (texts.count != 0)
        cx_json_put_quoted_strs(&payload, "violations", texts.items, texts.count);
    CX_TRY(cx_governor_event(g, texts.count == 0 ? CX_RUN_INFO : CX_RUN_ERROR,
                             CX_RUN_EVENT_SCHEMA_REGISTRY_CHECK, &payload, err));
    if (texts.count != 0)
        return cx_task_refuse(t, CX_GATE_SCHEMA_REGISTRY, "registry_mismatch", false, &texts, err);
    return CX_SUCCESS;
}

/* --- contract --------------------------------------------------------------------------------- */

/* The first rule that refuses names the reason; all of them are listed. */
static cx_status check_contract(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_texts texts;
    t->gate = CX_GATE_CONTRACT;
    if (!g->contract_ok) {
        const char *first = "K01";
        for (size_t i = 0; i < g->findings.list.count; i++) {
            if (g->findings.list.items[i].informs)
                continue;
            first = g->findings.list.items[i].rule;
            t->refusal.hint = g->findings.list.items[i].message;
            break;
        }
        CX_TRY(cx_findings_texts(&g->findings, &t->arena, &texts, err));
        return cx_task_refuse(t, CX_GATE_CONTRACT, first, false, &texts, err);
    }
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_z(&payload, "schema", "task_contract.v1.json");
    cx_json_put_z(&payload, "lints", "K02-K15");
    CX_TRY(cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_CONTRACT_VALIDATED, &payload, err));
    return cx_run_active_contract(&g->store, cx_run_id(g->run), cx_str_bytes(g->contract_text),
                                  err);
}

static cx_status select_pack(cx_governor_task *t, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    t->gate = CX_GATE_POLICY;
    cx_json_put_z(&payload, "policy_pack", cx_run_pack_name(t->contract.pack));
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_POLICY_PACK_SELECTED, &payload, err);
}

/* --- policy ----------------------------------------------------------------------------------- */

/* The scopes that would lift all findings; count 0 when one of them cannot be lifted. */
static cx_status scopes_wanted(const cx_run_findings *findings, cx_arena *arena, cx_texts *out,
                               cx_err *err)
{
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, findings->refusing + 1);
    size_t count = 0;
    if (items == NULL)
        return cx_fail_nomem(err);
    *out = (cx_texts){NULL, 0};
    for (size_t i = 0; i < findings->list.count && count < findings->refusing; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        if (finding->informs)
            continue;
        if (finding->detail.size == 0)
            return CX_SUCCESS;
        items[count++] = finding->detail;
    }
    *out = (cx_texts){items, count};
    return CX_SUCCESS;
}

typedef struct policy_verdict {
    cx_texts violations, scopes;
    const char *reason; /* of the first violation */
} policy_verdict;

static cx_status evaluate_policy(cx_governor_task *t, policy_verdict *out, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_run_findings findings;
    cx_run_grants grants = cx_governor_grants(g);
    memset(out, 0, sizeof *out);
    cx_run_findings_init(&findings, &t->arena);
    cx_status status =
        cx_run_gate_policy(&g->policy, &t->contract, &g->tree, &g->ground, &grants, &findings, err);
    if (!cx_failed(status))
        status = cx_findings_texts(&findings, &t->arena, &out->violations, err);
    if (!cx_failed(status))
        status = scopes_wanted(&findings, &t->arena, &out->scopes, err);
    for (size_t i = 0; i < findings.list.count && out->reason == NULL; i++)
        if (!findings.list.items[i].informs)
            out->reason = findings.list.items[i].rule;
    cx_run_findings_done(&findings);
    return status;
}

static cx_status write_policy_verdict(cx_governor_task *t, const policy_verdict *verdict,
                                      cx_err *err)
{
    bool passed = verdict->violations.count == 0;
    t->verdicts.policy =
        (cx_run_gate){true, passed, verdict->violations.items, verdict->violations.count};
    return cx_task_gate_event(t, CX_RUN_EVENT_POLICY_GATE_RESULT, passed, &verdict->violations,
                              err);
}

/* §4, §13: what an approval can lift is asked for, once; then it is judged again. */
static cx_status check_policy(cx_governor_task *t, cx_err *err)
{
    policy_verdict verdict;
    bool granted = false;
    CX_TRY(evaluate_policy(t, &verdict, err));
    CX_TRY(write_policy_verdict(t, &verdict, err));
    if (verdict.scopes.count != 0)
        CX_TRY(cx_task_ask_approval(t, &verdict.scopes, &granted, err));
    if (granted) {
        CX_TRY(evaluate_policy(t, &verdict, err));
        CX_TRY(write_policy_verdict(t, &verdict, err));
    }
    if (verdict.violations.count == 0)
        return CX_SUCCESS;
    return cx_task_refuse(t, CX_GATE_POLICY, verdict.reason, true, &verdict.violations, err);
}

/* --- the states ------------------------------------------------------------------------------- */

cx_status cx_state_contract(cx_governor_task *t, cx_err *err)
{
    static cx_governor_step *const steps[] = {check_registry, check_contract, select_pack,
                                              check_policy};
    t->refusal.blocked = true; /* until an agent starts */
    for (size_t i = 0; i < CX_COUNT_OF(steps); i++) {
        CX_TRY(steps[i](t, err));
        if (t->refused)
            return CX_SUCCESS;
    }
    /* The request was for a plan: a run without work is no success, so its end says what held
     * it. */
    if (t->governor->options->plan_only)
        return cx_task_refuse(t, CX_GATE_PLAN, "plan_only", false, NULL, err);
    cx_task_go(t, CX_WHY_ACCEPTED);
    return CX_SUCCESS;
}

cx_status cx_state_plan(cx_governor_task *t, cx_err *err)
{
    t->gate = CX_GATE_PLAN;
    if (t->contract.assigned.role == CX_ROLE_TECH_LEAD && !t->contract.audit_only)
        return cx_task_plan(t, err);
    cx_task_go(t, t->contract.audit_only ? CX_WHY_AUDIT : CX_WHY_SINGLE);
    return CX_SUCCESS;
}

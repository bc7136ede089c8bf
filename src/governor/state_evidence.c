/*
 * state_evidence.c - sources and claims of an agent's reply (run.md §6): what is complete becomes
 * reports/evidence_bundle.json; where the contract demands evidence, what is not is refused.
 */
#include "governor/state_internal.h"
#include "rules/api.h"

typedef struct evidence {
    cx_governor_task *t;
    const cx_json *sources, *claims; /* NULL: none */
    CX_VEC(cx_str) faults;
} evidence;

/* A search, or an output of type report that names the bundle. */
static bool is_demanded(const cx_contract *contract)
{
    if (contract->task_type == CX_TASK_SEARCH)
        return true;
    for (size_t i = 0; i < contract->output_count; i++) {
        cx_str name = contract->outputs[i].name;
        if (cx_str_is(contract->outputs[i].type, "report") &&
            (cx_str_is(name, "evidence_bundle") || cx_str_is(name, "evidence_bundle.json") ||
             cx_str_is(name, "reports/evidence_bundle.json")))
            return true;
    }
    return false;
}

static cx_status add_fault(evidence *e, const char *what, uint32_t index, const char *why,
                           cx_err *err)
{
    cx_arena *arena = &e->t->arena;
    cx_str text = cx_arena_printf(arena, "%s %u: %s", what, index, why);
    cx_str *slot = text.data == NULL ? NULL : cx_vec_push(&e->faults, arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = text;
    return CX_SUCCESS;
}

static bool is_sha256(cx_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (strchr("0123456789abcdefABCDEF", text.data[i]) == NULL)
            return false;
    return text.size == 64;
}

static bool is_source(const evidence *e, cx_str id, uint32_t before)
{
    if (cx_str_is(id, "src-0"))
        return true;
    for (uint32_t i = 0; e->sources != NULL && i < e->sources->count && i < before; i++)
        if (cx_str_eq(CX_JSON_GET_STR(&e->sources->items[i], "source_id"), id))
            return true;
    return false;
}

static cx_status check_source(evidence *e, uint32_t i, cx_err *err)
{
    const cx_json *source = &e->sources->items[i];
    cx_str id = CX_JSON_GET_STR(source, "source_id");
    if (id.size == 0)
        return add_fault(e, "source", i, "it has no source_id", err);
    if (is_source(e, id, i))
        return add_fault(e, "source", i, "its source_id is used twice", err);
    if (CX_JSON_GET_STR(source, "url").size == 0)
        return add_fault(e, "source", i, "it has no url", err);
    if (!is_sha256(CX_JSON_GET_STR(source, "content_sha256")))
        return add_fault(e, "source", i, "it has no content_sha256 of what was fetched", err);
    return CX_SUCCESS;
}

static cx_status check_claim(evidence *e, uint32_t i, cx_err *err)
{
    const cx_json *claim = &e->claims->items[i];
    const cx_json *ids = cx_json_get_typed(claim, CX_STR("supporting_source_ids"), CX_JSON_ARRAY);
    if (CX_JSON_GET_STR(claim, "text").size == 0)
        return add_fault(e, "claim", i, "it has no text", err);
    if (ids == NULL || ids->count == 0)
        return add_fault(e, "claim", i, "it has no source", err);
    for (uint32_t k = 0; k < ids->count; k++)
        if (ids->items[k].type != CX_JSON_STRING ||
            !is_source(e, cx_json_text(&ids->items[k]), UINT32_MAX))
            return add_fault(e, "claim", i, "it names a source that is not given", err);
    return CX_SUCCESS;
}

/* Whatever else the schema of the bundle demands: times, kinds, confidence. */
static cx_status check_schema(evidence *e, cx_err *err)
{
    cx_governor_task *t = e->t;
    cx_run_findings findings;
    cx_texts texts = {NULL, 0};
    cx_json document;
    const cx_run_task_facts facts = {.run_id = cx_run_id(t->governor->run),
                                     .spec = t->contract.spec,
                                     .created_at = t->governor->created_at,
                                     .baseline_commit = t->governor->baseline,
                                     .evidence = t->agent.evidence};
    CX_TRY(cx_run_report_evidence_bundle(&facts, &t->arena, &document, err));
    cx_run_findings_init(&findings, &t->arena);
    cx_status status =
        cx_run_schema_check("evidence_bundle.v1.json", &document, "evidence", &findings, err);
    if (!cx_failed(status))
        status = cx_findings_texts(&findings, &t->arena, &texts, err);
    cx_run_findings_done(&findings);
    CX_TRY(status);
    for (size_t i = 0; i < texts.count; i++) {
        cx_str *slot = cx_vec_push(&e->faults, t->arena.alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = texts.items[i];
    }
    return CX_SUCCESS;
}

static cx_status check_all(evidence *e, bool demanded, cx_err *err)
{
    uint32_t sources = e->sources == NULL ? 0 : e->sources->count;
    uint32_t claims = e->claims == NULL ? 0 : e->claims->count;
    if (sources > CX_RUN_EVIDENCE_MAX || claims > CX_RUN_EVIDENCE_MAX)
        return add_fault(e, "reply", 0, "it has more than 1000 sources or claims", err);
    if (demanded && claims == 0)
        CX_TRY(add_fault(e, "reply", 0,
                         "evidence_refs has no claims, but the contract demands "
                         "evidence",
                         err));
    for (uint32_t i = 0; i < sources; i++)
        CX_TRY(check_source(e, i, err));
    for (uint32_t i = 0; i < claims; i++)
        CX_TRY(check_claim(e, i, err));
    return e->faults.count == 0 ? check_schema(e, err) : CX_SUCCESS;
}

static cx_status conclude_evidence(evidence *e, bool demanded, cx_err *err)
{
    cx_governor_task *t = e->t;
    cx_texts faults = {e->faults.items, e->faults.count};
    if (faults.count == 0)
        return CX_SUCCESS;
    t->agent.evidence = NULL;
    if (demanded) {
        t->refusal.hint = cx_arena_copy_str(&t->arena, faults.items[0]);
        return cx_task_refuse(t, CX_GATE_OUTPUT_SCHEMA, "evidence_incomplete", false, &faults, err);
    }
    t->agent.evidence_note = cx_arena_printf(&t->arena, "the agent's evidence was left out: %.*s",
                                             (int)faults.items[0].size, faults.items[0].data);
    return t->agent.evidence_note.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_task_check_evidence(cx_governor_task *t, cx_err *err)
{
    bool demanded = is_demanded(&t->contract);
    const cx_json *refs =
        cx_json_get_typed(&t->agent.reply, CX_STR("evidence_refs"), CX_JSON_OBJECT);
    evidence e = {.t = t};
    t->agent.evidence = NULL;
    t->agent.evidence_note = CX_STR("");
    if (refs != NULL) {
        e.sources = cx_json_get_typed(refs, CX_STR("sources"), CX_JSON_ARRAY);
        e.claims = cx_json_get_typed(refs, CX_STR("claims"), CX_JSON_ARRAY);
    }
    if (!demanded && e.sources == NULL && e.claims == NULL)
        return CX_SUCCESS;
    t->agent.evidence = refs;
    cx_status status = check_all(&e, demanded, err);
    if (!cx_failed(status))
        status = conclude_evidence(&e, demanded, err);
    cx_vec_done(&e.faults, t->arena.alloc);
    return status;
}

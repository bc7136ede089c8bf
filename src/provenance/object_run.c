/*
 * object_run.c - governed runs and their events, from bundle and ledger.
 */
#include "crypto/api.h"
#include "provenance/object_parts.h"
#include "audit/api.h"

cx_status cx_run_inspect(const cx_sources *sources, cx_str run_id, cx_arena *arena,
                         cx_run_inspection *out, cx_err *err)
{
    memset(out, 0, sizeof *out);
    if (sources->index != NULL)
        CX_TRY(cx_run_index_find(sources->index, run_id, arena, &out->known, err));
    if (out->known.sealed)
        out->known.witness.seal = &out->known.seal;
    if (sources->store == NULL)
        return CX_SUCCESS;
    cx_status status = cx_run_view_open(sources->store, run_id, &out->bundle, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (!cx_failed(status))
        status = cx_run_verify(out->bundle, &out->known.witness, arena, &out->verdict, err);
    if (cx_failed(status))
        cx_run_inspect_done(out);
    return status;
}

void cx_run_inspect_done(cx_run_inspection *seen)
{
    cx_run_findings_done(&seen->verdict.findings);
    cx_run_bundle_close(seen->bundle);
    memset(seen, 0, sizeof *seen);
}

/* Calls `visit` with each event until it returns false. */
static cx_status each_event(const cx_run_inspection *seen, cx_arena *arena,
                            bool (*visit)(void *arg, const cx_run_event_read *event), void *arg,
                            cx_err *err)
{
    cx_bytes bytes;
    cx_str text, line;
    uint64_t index = 0;
    CX_TRY(cx_run_bundle_read(seen->bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &bytes,
                              err));
    text = cx_bytes_str(bytes);
    while (cx_run_next_line(&text, &line)) {
        cx_run_event_read event;
        cx_status status = cx_run_event_parse(line, ++index, arena, &event, err);
        if (status.code == CX_E_NOMEM)
            return status;
        if (!cx_failed(status) && !visit(arg, &event))
            break;
    }
    return CX_SUCCESS;
}

typedef struct commit_search {
    cx_str commit;
    cx_run_commit_event *out;
} commit_search;

static bool match_commit(void *arg, const cx_run_event_read *event)
{
    commit_search *l = arg;
    bool made =
        cx_str_is(event->type, "CANDIDATE_COMMITTED") || cx_str_is(event->type, "MERGE_APPLIED");
    if (made && cx_str_eq(CX_JSON_GET_STR(&event->payload, "commit"), l->commit))
        *l->out = (cx_run_commit_event){true, event->type, event->index};
    return true;
}

cx_status cx_run_find_commit(const cx_run_inspection *seen, cx_str commit, cx_arena *arena,
                             cx_run_commit_event *out, cx_err *err)
{
    commit_search visit = {commit, out};
    memset(out, 0, sizeof *out);
    return seen->bundle == NULL ? CX_SUCCESS : each_event(seen, arena, match_commit, &visit, err);
}

/* --- what a run is ---------------------------------------------------------------------------- */

static void add_copy(cx_json_list *list, const char *name, const cx_json *value)
{
    cx_reply_add(list, name, value == NULL ? cx_json_make_null() : *value);
}

/* [{gate, event_type, index, task_id, passed, violations}]: what the gates ruled, in order. */
static cx_status add_gates(const cx_run_inspection *seen, cx_json_list *facts, cx_arena *arena,
                           cx_err *err)
{
    cx_run_projection projection;
    cx_json rulings, gates;
    cx_status status = cx_run_view_projection(seen->bundle, arena, &projection, err);
    if (!cx_failed(status))
        status = cx_run_projection_rulings_json(&projection, arena, &rulings, err);
    if (!cx_failed(status))
        status = cx_run_projection_gates_json(&projection, arena, &gates, err);
    cx_run_projection_done(&projection, arena);
    CX_TRY(status);
    cx_reply_add(facts, "gates", gates);
    cx_reply_add(facts, "rulings", rulings);
    return CX_SUCCESS;
}

static cx_status add_seal(const cx_run_inspection *seen, cx_json_list *facts, cx_arena *arena,
                          cx_err *err)
{
    if (!seen->known.sealed) {
        cx_reply_text(facts, "seal", (cx_str){NULL, 0});
        return CX_SUCCESS;
    }
    cx_json_list list = cx_json_list_begin(arena);
    cx_reply_text(&list, "actor", seen->known.actor);
    cx_reply_uint(&list, "seq", seen->known.seal_index);
    add_copy(&list, "manifest_sha256", CX_JSON_GET(&seen->known.seal, "manifest_sha256"));
    add_copy(&list, "chain_head", CX_JSON_GET(&seen->known.seal, "chain_head"));
    return cx_reply_end_object(facts, "seal", &list, err);
}

static cx_status bundle_facts(const cx_run_inspection *seen, cx_json_list *facts, cx_arena *arena,
                              cx_err *err)
{
    cx_json view, copy;
    static const char *const names[] = {"task_id", "user_request", "status",
                                        "state",   "created_at",   "finished_at"};
    CX_TRY(cx_run_view_show(seen->bundle, &seen->known.witness, arena, &view, err));
    CX_TRY(cx_json_copy(&view, arena, &copy, err)); /* the bundle will be closed */
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        add_copy(facts, names[i], cx_json_get(&copy, cx_str_z(names[i])));
    const cx_json *repo = CX_JSON_GET(&copy, "repo");
    add_copy(facts, "baseline", repo == NULL ? NULL : CX_JSON_GET(repo, "baseline_ref"));
    add_copy(facts, "final", repo == NULL ? NULL : CX_JSON_GET(repo, "final_ref"));
    const cx_json *codes = CX_JSON_GET(&copy, "codes");
    add_copy(facts, "codes", codes);
    return add_gates(seen, facts, arena, err);
}

static cx_status seal_facts(const cx_run_inspection *seen, cx_json_list *facts)
{
    static const char *const names[] = {"task_id", "status"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        add_copy(facts, names[i], cx_json_get(&seen->known.seal, cx_str_z(names[i])));
    add_copy(facts, "baseline", CX_JSON_GET(&seen->known.seal, "baseline_commit"));
    add_copy(facts, "final", CX_JSON_GET(&seen->known.seal, "final_commit"));
    return CX_SUCCESS;
}

static void set_run_verdict(const cx_run_inspection *seen, cx_arena *arena, cx_described *out)
{
    if (seen->bundle == NULL) {
        out->verdict = CX_INDETERMINATE;
        out->by = CX_STR("the ledger has its seal; the bundle is missing");
        return;
    }
    out->verdict = seen->verdict.verdict;
    unsigned long long files = seen->verdict.file_count, events = seen->verdict.event_count;
    if (out->verdict == CX_HOLDS)
        out->by =
            CX_TEXTF(arena, "%llu files and %llu events match the seal, entry %llu of %.*s", files,
                     events, (unsigned long long)seen->known.seal_index, CX_S(seen->known.actor));
    else if (out->verdict == CX_BROKEN)
        out->by = CX_TEXTF(
            arena, "the bundle does not match its seal: %zu findings, see 'cortex run verify'",
            seen->verdict.findings.refusing);
    else
        out->by = CX_STR("it has no seal in this ledger: see 'cortex run verify'");
}

static cx_status describe_seen(const cx_run_inspection *seen, cx_arena *arena, cx_described *out,
                               cx_err *err)
{
    cx_json_list facts = cx_json_list_begin(arena);
    cx_json value;
    CX_TRY(seen->bundle != NULL ? bundle_facts(seen, &facts, arena, err)
                                : seal_facts(seen, &facts));
    add_copy(&facts, "contract_sha256",
             seen->known.sealed ? CX_JSON_GET(&seen->known.seal, "contract_sha256") : NULL);
    CX_TRY(add_seal(seen, &facts, arena, err));
    CX_TRY(cx_json_list_end_object(&facts, &value, err));
    CX_TRY(cx_json_copy(&value, arena, &out->facts, err));
    set_run_verdict(seen, arena, out);
    cx_str status = CX_JSON_GET_STR(&out->facts, "status");
    cx_str task = CX_JSON_GET_STR(&out->facts, "task_id");
    out->here = true;
    cx_str asked = CX_JSON_GET_STR(&out->facts, "user_request");
    out->title = CX_TEXTF(arena, "%.*s%stask %.*s: %.*s", CX_S(asked), asked.size != 0 ? "; " : "",
                          CX_S(task), status.data == NULL ? 7 : (int)status.size,
                          status.data == NULL ? "RUNNING" : status.data);
    return CX_SUCCESS;
}

cx_status cx_run_describe(const cx_sources *sources, cx_str run_id, cx_arena *arena,
                          cx_described *out, cx_err *err)
{
    cx_run_inspection seen;
    CX_TRY(cx_run_inspect(sources, run_id, arena, &seen, err));
    if (seen.bundle == NULL && !seen.known.sealed) {
        out->by = CX_STR("it has neither a bundle nor a seal here");
        cx_run_inspect_done(&seen);
        return CX_SUCCESS;
    }
    cx_status status = describe_seen(&seen, arena, out, err);
    cx_run_inspect_done(&seen);
    return status;
}

/* --- one event -------------------------------------------------------------------------------- */

bool cx_run_event_split(cx_str id, cx_str *out_run, uint64_t *out_index)
{
    uint64_t index = 0;
    const char *slash = id.size == 0 ? NULL : cx_bytes_last(id.data, '/', id.size);
    size_t size = slash == NULL ? 0 : (size_t)(slash - id.data);
    if (slash == NULL || id.size - size - 1 == 0 || id.size - size - 1 > 7 ||
        !cx_run_id_valid(cx_str_from(id.data, size)))
        return false;
    for (size_t i = size + 1; i < id.size; i++) {
        if (id.data[i] < '0' || id.data[i] > '9')
            return false;
        index = index * 10 + (uint64_t)(id.data[i] - '0');
    }
    *out_run = cx_str_from(id.data, size);
    *out_index = index;
    return index != 0;
}

typedef struct index_search {
    uint64_t wanted;
    bool found;
    cx_run_event_read event;
} index_search;

static bool match_index(void *arg, const cx_run_event_read *event)
{
    index_search *l = arg;
    l->found = event->index == l->wanted;
    if (l->found)
        l->event = *event;
    return !l->found;
}

/* A sealed run that holds has exactly these events; the seal covers the chain's end. */
cx_status cx_run_event_describe(const cx_sources *sources, cx_str id, cx_arena *arena,
                                cx_described *out, cx_err *err)
{
    cx_str run_id;
    index_search visit = {0};
    cx_run_inspection seen;
    cx_status status;
    if (!cx_run_event_split(id, &run_id, &visit.wanted))
        return CX_SUCCESS;
    CX_TRY(cx_run_inspect(sources, run_id, arena, &seen, err));
    out->by = CX_STR("the run's bundle is missing");
    if (seen.bundle != NULL) {
        out->by = CX_STR("the run has no event with this number");
        CX_TRY_GOTO(status, each_event(&seen, arena, match_index, &visit, err));
    }
    if (visit.found) {
        CX_TRY_GOTO(status, cx_json_copy(&visit.event.whole, arena, &out->facts, err));
        out->here = true;
        out->title = CX_TEXTF(arena, "event %llu of %.*s: %.*s", (unsigned long long)visit.wanted,
                              CX_S(run_id), CX_S(visit.event.type));
        out->verdict = seen.verdict.verdict;
        out->by = out->verdict == CX_HOLDS
                      ? CX_STR("its line is in the hash chain that the run's seal ends")
                      : CX_STR("the run's bundle does not hold, or is not sealed");
    }
    status = CX_SUCCESS;
done:
    cx_run_inspect_done(&seen);
    return status;
}

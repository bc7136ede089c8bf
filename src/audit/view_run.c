/*
 * view_run.c - read models of one run (run.md §21, decision 0025).
 */
#include "os/api.h"
#include "bundle/api.h"
#include "audit/view.h"

cx_status cx_run_view_open(const cx_run_store *store, cx_str run_id, cx_run_bundle **out,
                           cx_err *err)
{
    CX_ASSERT(store != NULL && out != NULL);
    cx_arena arena;
    cx_facts facts;
    cx_status status;
    cx_arena_init(&arena, store->alloc, 0);
    cx_str path = {NULL, 0};
    if (!cx_run_id_valid(run_id))
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoRun", CX_NO_OFFSET,
                            "this is no id of a run; expected run_YYYYMMDD_HHMMSS_<32 hex digits>");
    else if ((path = cx_run_store_path(store, &arena, "runs", run_id)).data == NULL)
        status = cx_fail_nomem(err);
    else if (cx_failed(cx_path_facts(path.data, false, &facts, NULL)) ||
             facts.kind != CX_FILE_FOLDER)
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoRun", CX_NO_OFFSET,
                            "there is no run %.*s; 'cortex run list' names those there are",
                            (int)run_id.size, run_id.data);
    else
        status = cx_run_bundle_open(store->io, store->alloc, path.data, out, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_run_view_projection(cx_run_bundle *bundle, cx_arena *arena, cx_run_projection *out,
                                 cx_err *err)
{
    CX_ASSERT(bundle != NULL && arena != NULL && out != NULL);
    cx_bytes events;
    cx_run_projection_init(out);
    CX_TRY(
        cx_run_bundle_read(bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &events, err));
    return cx_run_projection_read(cx_bytes_str(events), arena, out, err);
}

/* --- show ------------------------------------------------------------------------------------ */

static cx_status put_verdict(cx_json_list *object, const cx_run_verdict *verdict, cx_err *err)
{
    const char *const *codes;
    size_t count;
    cx_json_list array = cx_json_list_begin(object->arena);
    CX_TRY(cx_run_verdict_codes(verdict, object->arena, &codes, &count, err));
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&array, cx_json_make_str(cx_str_z(codes[i])));
    cx_json_put_array(object, "codes", &array);
    cx_json_put_z(object, "verdict",
                  verdict->verdict == CX_HOLDS    ? "holds"
                  : verdict->verdict == CX_BROKEN ? "broken"
                                                  : "indeterminate");
    cx_json_put_bool(object, "sealed", verdict->sealed);
    return CX_SUCCESS;
}

/* What an operator looks at; the contract stays the authority (decision 0025). */
static cx_json_list case_object(const cx_run_projection *projection, const cx_json *binding,
                                cx_arena *arena)
{
    cx_json_list one = cx_json_list_begin(arena);
    cx_json_put_z(&one, "execution_authority", "task_contract");
    cx_json_put_z(&one, "source", "role_binding_summary of the run's manifest");
    cx_json_put_utf8(&one, "run_id", projection->run_id);
    cx_json_put_utf8(&one, "state", projection->state);
    cx_run_part_put_or(&one, "status", projection->status, "RUNNING");
    cx_json_put(&one, "role_binding_summary", binding == NULL ? cx_json_make_null() : *binding);
    return one;
}

static void put_case(cx_json_list *object, const cx_run_projection *projection,
                     const cx_json *binding)
{
    cx_json_list one = case_object(projection, binding, object->arena);
    cx_json_put_object(object, "workflow_case_read_model", &one);
}

/* The binding that the manifest kept, else the one that the contract gives. */
static cx_status find_binding(cx_run_bundle *bundle, const cx_json *manifest, cx_arena *arena,
                              cx_json *out, bool *out_found, cx_err *err)
{
    cx_json contract;
    const cx_json *stored = manifest == NULL ? NULL : CX_JSON_GET(manifest, "role_binding_summary");
    *out_found = true;
    if (stored != NULL) {
        *out = *stored;
        return CX_SUCCESS;
    }
    cx_status status = cx_run_bundle_json(bundle, CX_STR("contract.json"), &contract, err);
    if (cx_failed(status)) {
        *out_found = false;
        return status.code == CX_E_NOMEM ? status : CX_SUCCESS;
    }
    return cx_run_report_role_binding(&contract, arena, out, err);
}

/* Without a manifest: what the events say. */
static void put_events_facts(cx_json_list *object, const cx_run_projection *projection)
{
    cx_json_put_utf8(object, "run_id", projection->run_id);
    if (projection->tasks.count != 0)
        cx_json_put_utf8(object, "task_id", projection->tasks.items[0].task_id);
    if (projection->moments.count != 0)
        cx_json_put_utf8(object, "created_at", projection->moments.items[0].ts);
    cx_json_put_z(object, "status", "RUNNING"); /* it has ended when its manifest says so */
    cx_json_put_utf8(object, "trace_id", projection->trace_id);
    cx_run_part_put_given(object, "failure_reason", projection->failed_gate);
}

static cx_status write_show(cx_run_bundle *bundle, const cx_run_projection *projection,
                            const cx_run_verdict *verdict, cx_arena *arena, cx_json *out,
                            cx_err *err)
{
    cx_json manifest, binding, failed;
    bool bound;
    cx_json_list object = cx_json_list_begin(arena);
    cx_status status = cx_run_bundle_json(bundle, CX_STR("manifest.json"), &manifest, err);
    bool has = !cx_failed(status) && manifest.type == CX_JSON_OBJECT;
    if (status.code == CX_E_NOMEM)
        return status;
    for (uint32_t i = 0; has && i < manifest.count; i++) {
        cx_str name = cx_json_text(&manifest.members[i].name);
        if (!cx_str_is(name, "sealed") && !cx_str_is(name, "verdict") &&
            !cx_str_is(name, "codes") && !cx_str_is(name, "state") &&
            !cx_str_is(name, "role_binding_read_model") && !cx_str_is(name, "failed_tests") &&
            !cx_str_is(name, "workflow_case_read_model")) /* a damaged one claims nothing */
            cx_json_list_put(&object, name, manifest.members[i].value);
    }
    if (!has)
        put_events_facts(&object, projection);
    CX_TRY(put_verdict(&object, verdict, err));
    cx_json_put_utf8(&object, "state", projection->state);
    CX_TRY(find_binding(bundle, has ? &manifest : NULL, arena, &binding, &bound, err));
    cx_json_put(&object, "role_binding_read_model", bound ? binding : cx_json_make_null());
    put_case(&object, projection, bound ? &binding : NULL);
    CX_TRY(cx_run_view_failed_tests(bundle, arena, &failed, err));
    cx_json_put(&object, "failed_tests", failed);
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_view_show(cx_run_bundle *bundle, const cx_run_witness *witness, cx_arena *arena,
                           cx_json *out, cx_err *err)
{
    CX_ASSERT(bundle != NULL && arena != NULL && out != NULL);
    cx_run_verdict verdict;
    cx_run_projection projection;
    cx_status status = cx_run_view_projection(bundle, arena, &projection, err);
    if (status.code == CX_E_NOMEM || status.code == CX_E_IO) {
        cx_run_projection_done(&projection, arena);
        return status;
    }
    /* Events that cannot be read are verification's finding. */
    status = cx_run_verify(bundle, witness, arena, &verdict, err);
    if (!cx_failed(status)) {
        status = write_show(bundle, &projection, &verdict, arena, out, err);
        cx_run_findings_done(&verdict.findings);
    }
    cx_run_projection_done(&projection, arena);
    return status;
}

cx_status cx_run_view_workflow_case(cx_run_bundle *bundle, cx_arena *arena, cx_json *out,
                                    cx_err *err)
{
    CX_ASSERT(bundle != NULL && arena != NULL && out != NULL);
    cx_run_projection projection;
    cx_json manifest, binding;
    bool bound = false;
    cx_status status = cx_run_view_projection(bundle, arena, &projection, err);
    if (!cx_failed(status)) {
        cx_status read = cx_run_bundle_json(bundle, CX_STR("manifest.json"), &manifest, err);
        bool has = !cx_failed(read) && manifest.type == CX_JSON_OBJECT;
        status = read.code == CX_E_NOMEM
                     ? read
                     : find_binding(bundle, has ? &manifest : NULL, arena, &binding, &bound, err);
    }
    if (!cx_failed(status)) {
        cx_json_list object = case_object(&projection, bound ? &binding : NULL, arena);
        status = cx_json_list_end_object(&object, out, err);
    }
    cx_run_projection_done(&projection, arena);
    return status;
}

/* --- events ---------------------------------------------------------------------------------- */

static void put_attempt(cx_json_list *object, int64_t attempt)
{
    cx_json_put(object, "attempt",
                attempt == CX_RUN_NO_ATTEMPT ? cx_json_make_null()
                                             : cx_json_make_int(object->arena, attempt));
}

static void put_task(cx_json_list *object, cx_str task_id)
{
    if (task_id.data == NULL)
        cx_json_put(object, "task_id", cx_json_make_null());
    else
        cx_json_put_utf8(object, "task_id", task_id);
}

static cx_status add_event(cx_json_list *items, const cx_run_moment *moment, bool raw, cx_err *err)
{
    cx_run_event_read event;
    cx_json_list one = cx_json_list_begin(items->arena);
    cx_json_put_uint(&one, "index", moment->index);
    if (raw) {
        cx_json_put_utf8(&one, "raw", moment->line);
    } else {
        CX_TRY(cx_run_event_parse(moment->line, moment->index, items->arena, &event, err));
        for (uint32_t i = 0; i < event.whole.count; i++)
            if (!cx_str_is(cx_json_text(&event.whole.members[i].name), "index"))
                cx_json_list_put(&one, cx_json_text(&event.whole.members[i].name),
                                 event.whole.members[i].value);
    }
    cx_json_add_object(items, &one);
    return CX_SUCCESS;
}

cx_status cx_run_view_events(const cx_run_projection *projection, uint64_t from, size_t limit,
                             bool raw, cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT(projection != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), items = cx_json_list_begin(arena);
    size_t first = from == 0 ? 0 : (size_t)(from - 1), count = projection->moments.count;
    if (limit == 0 || limit > CX_RUN_PAGE_MAX)
        limit = limit == 0 ? CX_RUN_PAGE_DEFAULT : CX_RUN_PAGE_MAX;
    size_t i = first;
    for (; i < count && i - first < limit; i++)
        CX_TRY(add_event(&items, &projection->moments.items[i], raw, err));
    cx_json_put_array(&object, "items", &items);
    cx_json_put(&object, "next", i < count ? cx_json_make_uint(arena, i + 1) : cx_json_make_null());
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_view_gates(const cx_run_projection *projection, cx_arena *arena, cx_json *out,
                            cx_err *err)
{
    CX_ASSERT(projection != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena);
    cx_json gates, verdicts;
    CX_TRY(cx_run_projection_gates_json(projection, arena, &gates, err));
    CX_TRY(cx_run_projection_rulings_json(projection, arena, &verdicts, err));
    cx_json_put_utf8(&object, "run_id", projection->run_id);
    cx_json_put(&object, "gates", gates);
    cx_json_put(&object, "verdicts", verdicts);
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_view_timeline(const cx_run_projection *projection, cx_arena *arena, cx_json *out,
                               cx_err *err)
{
    CX_ASSERT(projection != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), items = cx_json_list_begin(arena);
    cx_json states;
    CX_TRY(cx_run_projection_states_json(projection, arena, &states, err));
    for (size_t i = 0; i < projection->moments.count; i++) {
        const cx_run_moment *moment = &projection->moments.items[i];
        cx_json_list one = cx_json_list_begin(arena);
        cx_json_put_uint(&one, "index", moment->index);
        cx_json_put_utf8(&one, "ts", moment->ts);
        cx_json_put_utf8(&one, "level", moment->level);
        cx_json_put_utf8(&one, "event_type", moment->type);
        put_task(&one, moment->task_id);
        put_attempt(&one, moment->attempt);
        cx_json_add_object(&items, &one);
    }
    cx_json_put_utf8(&object, "run_id", projection->run_id);
    cx_json_put_utf8(&object, "state", projection->state);
    cx_json_put_array(&object, "items", &items);
    cx_json_put(&object, "states", states);
    return cx_json_list_end_object(&object, out, err);
}

/* --- files ----------------------------------------------------------------------------------- */

cx_status cx_run_view_files(cx_run_bundle *bundle, cx_str folder, cx_arena *arena, cx_json *out,
                            cx_err *err)
{
    CX_ASSERT(bundle != NULL && arena != NULL && out != NULL);
    size_t count;
    const cx_run_entry *entries = cx_run_bundle_entries(bundle, &count);
    cx_json_list object = cx_json_list_begin(arena), items = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++) {
        cx_run_ref ref = {.path = entries[i].path, .size_bytes = entries[i].size_bytes};
        cx_json value;
        if (!entries[i].regular || !cx_str_starts(entries[i].path, folder))
            continue;
        ref.name = cx_str_from(ref.path.data + folder.size, ref.path.size - folder.size);
        CX_TRY(cx_run_bundle_digest(bundle, ref.path, &ref.sha256, err));
        CX_TRY(cx_run_ref_json(&ref, arena, &value, err));
        cx_json_list_add(&items, value);
    }
    cx_json_put_array(&object, "items", &items);
    return cx_json_list_end_object(&object, out, err);
}

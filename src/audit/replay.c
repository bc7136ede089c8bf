/*
 * replay.c - tells a finished run again from its events alone, and holds the result against what
 * manifest and reports say (run.md §18, rehydrate).
 *
 *   I1  The document is a function of the bundle, the witness and the other bundle: no clock, no
 *       random number, no path of the machine.
 *   I2  status is ok only when verification found nothing, every report is valid, manifest and
 *       reports say what the events say, and the run does not differ from the one it is held
 * against.
 */
#include "audit/replay.h"

#include "crypto/api.h"
#include "bundle/api.h"
#include "rules/api.h"

typedef struct replay {
    cx_run_bundle *bundle, *against;
    cx_arena *arena;
    cx_run_projection projection, other_projection;
    bool has_projection, has_other_projection;
    cx_run_verdict verdict;
    cx_json_list mismatches; /* {field, expected, actual} */
    size_t mismatch_count;
    bool reports_ok;
    bool params_compared, params_equal;
    cx_run_divergence divergence;
} replay;

/* An empty object when it cannot be read: verification has said so. */
static cx_json read_optional_json(cx_run_bundle *bundle, const char *path)
{
    cx_json value = {.type = CX_JSON_OBJECT};
    cx_status status = cx_run_bundle_json(bundle, cx_str_z(path), &value, NULL);
    if (cx_failed(status))
        value = (cx_json){.type = CX_JSON_OBJECT};
    return value;
}

static cx_str text_at(const cx_json *value, const char *pointer)
{
    const cx_json *found = cx_json_pointer(value, cx_str_z(pointer));
    return found == NULL || found->type != CX_JSON_STRING ? CX_STR("") : cx_json_text(found);
}

/* --- the projection --------------------------------------------------------------------------- */

/* `*out_has` false: the events cannot be read, which is verification's finding. */
static cx_status read_projection(cx_run_bundle *bundle, cx_arena *arena,
                                 cx_run_projection *projection, bool *out_has, cx_err *err)
{
    cx_bytes events;
    cx_run_projection_init(projection);
    cx_status status =
        cx_run_bundle_read(bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &events, err);
    if (!cx_failed(status))
        status = cx_run_projection_read(cx_bytes_str(events), arena, projection, err);
    *out_has = !cx_failed(status);
    return status.code == CX_E_NOMEM || status.code == CX_E_IO ? status : CX_SUCCESS;
}

/* --- events against manifest and reports ----------------------------------------------------- */

static void add_mismatch(replay *r, cx_str field, cx_str expected, cx_str actual)
{
    cx_json_list one = cx_json_list_begin(r->arena);
    cx_json_put_utf8(&one, "field", field);
    cx_json_put_utf8(&one, "expected", expected); /* what the events say */
    cx_json_put_utf8(&one, "actual", actual);
    cx_json_add_object(&r->mismatches, &one);
    r->mismatch_count++;
}

static void check_equal(replay *r, cx_str field, cx_str expected, cx_str actual)
{
    if (!cx_str_eq(expected, actual))
        add_mismatch(r, field, expected, actual);
}

static cx_str yes_no(bool value)
{
    return value ? CX_STR("passed") : CX_STR("not passed");
}

/* The gates that a task_result states, against those of its task's events. */
static void compare_gates(replay *r, const char *path)
{
    cx_json result = read_optional_json(r->bundle, path);
    const cx_run_projection_task *task =
        cx_run_projection_find(&r->projection, text_at(&result, "/task_id"));
    for (unsigned gate = 0; gate < CX_RUN_GATE_COUNT; gate++) {
        cx_str pointer = cx_arena_printf(r->arena, "/gates/%s/passed", cx_run_gate_names[gate]);
        const cx_json *stated = pointer.data == NULL ? NULL : cx_json_pointer(&result, pointer);
        bool says = stated != NULL && stated->type == CX_JSON_TRUE;
        bool was = task != NULL && cx_run_projection_task_passed(&r->projection, task, gate);
        if (says != was)
            add_mismatch(
                r,
                cx_arena_printf(r->arena, "%s%s", path, pointer.data == NULL ? "" : pointer.data),
                yes_no(was), yes_no(says));
    }
}

static void compare_task(replay *r, const cx_json *task)
{
    const cx_run_projection_task *recorded =
        cx_run_projection_find(&r->projection, text_at(task, "/task_id"));
    bool success = cx_str_is(text_at(task, "/status"), "SUCCESS");
    if (recorded == NULL) {
        if (success)
            add_mismatch(r, CX_STR("manifest.json/tasks"), CX_STR("no event of this task"),
                         text_at(task, "/task_id"));
        return;
    }
    for (unsigned gate = 0; success && gate < CX_RUN_GATE_COUNT; gate++)
        if (!cx_run_projection_task_passed(&r->projection, recorded, gate))
            add_mismatch(
                r, cx_arena_printf(r->arena, "manifest.json/tasks/%s", cx_run_gate_names[gate]),
                yes_no(false), CX_STR("SUCCESS"));
}

static void compare_with_manifest(replay *r)
{
    cx_json manifest = read_optional_json(r->bundle, "manifest.json");
    const cx_json *tasks = cx_json_get_typed(&manifest, CX_STR("tasks"), CX_JSON_ARRAY);
    if (!r->has_projection || manifest.count == 0)
        return;
    check_equal(r, CX_STR("manifest.json/run_id"), r->projection.run_id,
                text_at(&manifest, "/run_id"));
    check_equal(r, CX_STR("manifest.json/trace_id"), r->projection.trace_id,
                text_at(&manifest, "/trace_id"));
    check_equal(r, CX_STR("manifest.json/status"),
                r->projection.status.data == NULL ? CX_STR("RUNNING") : r->projection.status,
                text_at(&manifest, "/status"));
    check_equal(r, CX_STR("manifest.json/repo/baseline_ref"),
                r->projection.baseline_commit.size == 0 ? CX_STR("none")
                                                        : r->projection.baseline_commit,
                text_at(&manifest, "/repo/baseline_ref"));
    for (uint32_t i = 0; tasks != NULL && i < tasks->count; i++)
        compare_task(r, &tasks->items[i]);
    compare_gates(r, "reports/task_result.json");
}

/* --- reports --------------------------------------------------------------------------------- */

static const struct report_file {
    const char *path, *schema;
} report_files[] = {
    {"reports/evidence_bundle.json", "evidence_bundle.v1.json"},
    {"reports/evidence_report.json", "evidence_report.v1.json"},
    {"reports/review_report.json", "review_report.v1.json"},
    {"reports/task_result.json", "task_result.v1.json"},
    {"reports/test_report.json", "test_report.v1.json"},
    {"reports/work_report.json", "work_report.v1.json"},
};

static cx_status check_report(replay *r, const struct report_file *file, cx_json_list *object,
                              cx_err *err)
{
    cx_json value;
    cx_err why;
    cx_json_list one = cx_json_list_begin(r->arena);
    cx_run_findings findings;
    bool ok = false;
    cx_json_put_z(&one, "schema", file->schema);
    cx_run_findings_init(&findings, r->arena);
    cx_status status = cx_run_bundle_json(r->bundle, cx_str_z(file->path), &value, &why);
    if (status.code == CX_E_NOMEM) {
        *err = why;
    } else if (cx_failed(status)) {
        cx_json_put_utf8(&one, "error", cx_arena_copy_str(r->arena, cx_str_z(why.message)));
        status = CX_SUCCESS;
    } else {
        status = cx_run_schema_check(file->schema, &value, "report_schema", &findings, err);
        ok = !cx_failed(status) && findings.refusing == 0;
        if (findings.list.count != 0)
            cx_json_put_utf8(&one, "error", findings.list.items[0].message);
        else
            cx_json_put(&one, "error", cx_json_make_null());
    }
    if (!cx_failed(status))
        status = cx_run_findings_check(&findings, err);
    cx_json_put_bool(&one, "ok", ok);
    cx_json_put_object(object, file->path, &one);
    r->reports_ok = r->reports_ok && ok;
    cx_run_findings_done(&findings);
    return status;
}

static cx_status check_reports(replay *r, cx_json_list *object, cx_err *err)
{
    cx_json_list reports = cx_json_list_begin(r->arena);
    r->reports_ok = true;
    for (size_t i = 0; i < CX_COUNT_OF(report_files); i++)
        CX_TRY(check_report(r, &report_files[i], &reports, err));
    cx_json_put_object(object, "reports", &reports);
    return CX_SUCCESS;
}

/* --- parts of the document ------------------------------------------------------------------- */

/* {missing, extra, mismatched}: files as verification found them. */
static void put_hashes(const replay *r, cx_json_list *object)
{
    static const struct {
        const char *name, *code;
    } kinds[] = {{"extra", "file_uncovered"},
                 {"mismatched", "file_hash_mismatch"},
                 {"missing", "file_missing"}};
    cx_json_list hashes = cx_json_list_begin(r->arena);
    for (size_t k = 0; k < CX_COUNT_OF(kinds); k++) {
        cx_json_list array = cx_json_list_begin(r->arena);
        for (size_t i = 0; i < r->verdict.findings.list.count; i++) {
            const cx_run_finding *finding = &r->verdict.findings.list.items[i];
            if (strcmp(finding->rule, kinds[k].code) == 0)
                cx_json_list_add(&array, cx_run_part_str(r->arena, finding->where));
        }
        cx_json_put_array(&hashes, kinds[k].name, &array);
    }
    cx_json_put_object(object, "evidence_hashes", &hashes);
}

static cx_status put_verdict(const replay *r, cx_json_list *object, cx_err *err)
{
    const char *const *codes;
    size_t count;
    cx_json_list array = cx_json_list_begin(r->arena);
    CX_TRY(cx_run_verdict_codes(&r->verdict, r->arena, &codes, &count, err));
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&array, cx_json_make_str(cx_str_z(codes[i])));
    cx_json_put_z(object, "verdict",
                  r->verdict.verdict == CX_HOLDS    ? "holds"
                  : r->verdict.verdict == CX_BROKEN ? "broken"
                                                    : "indeterminate");
    cx_json_put_array(object, "codes", &array);
    return CX_SUCCESS;
}

/* Every event in one line of the timeline: index, time, task, type. */
static void put_timeline(const replay *r, cx_json_list *object)
{
    cx_json_list array = cx_json_list_begin(r->arena);
    for (size_t i = 0; i < r->projection.moments.count; i++) {
        const cx_run_moment *moment = &r->projection.moments.items[i];
        cx_json_list one = cx_json_list_begin(r->arena);
        cx_json_put_uint(&one, "index", moment->index);
        cx_json_put_utf8(&one, "ts", moment->ts);
        cx_json_put_utf8(&one, "event_type", moment->type);
        if (moment->task_id.data == NULL)
            cx_json_put(&one, "task_id", cx_json_make_null());
        else
            cx_json_put_utf8(&one, "task_id", moment->task_id);
        cx_json_add_object(&array, &one);
    }
    cx_json_put_array(object, "timeline", &array);
}

static cx_status put_projection(const replay *r, cx_json_list *object, cx_err *err)
{
    cx_json states, gates;
    CX_TRY(cx_run_projection_states_json(&r->projection, r->arena, &states, err));
    CX_TRY(cx_run_projection_gates_json(&r->projection, r->arena, &gates, err));
    cx_json_put_uint(object, "events_count", r->projection.moments.count);
    cx_json_put(object, "states", states);
    cx_json_put(object, "gates", gates);
    put_timeline(r, object);
    return CX_SUCCESS;
}

static void put_divergence(const replay *r, cx_json_list *object)
{
    cx_json_list one = cx_json_list_begin(r->arena);
    if (!r->divergence.found) {
        cx_json_put(object, "first_divergence", cx_json_make_null());
        return;
    }
    if (r->divergence.index == 0)
        cx_json_put(&one, "index", cx_json_make_null());
    else
        cx_json_put_uint(&one, "index", r->divergence.index);
    cx_json_put_utf8(&one, "field", r->divergence.field);
    cx_json_put(&one, "expected", r->divergence.expected);
    cx_json_put(&one, "actual", r->divergence.actual);
    cx_json_put_object(object, "first_divergence", &one);
}

/* --- the whole ------------------------------------------------------------------------------- */

/* What was decided beforehand: runner, model, versions (meta.json without the run's id). */
static void compare_params(replay *r)
{
    cx_json mine = read_optional_json(r->bundle, "meta.json"),
            theirs = read_optional_json(r->against, "meta.json");
    static const char *const members[] = {"params", "model", "env_hash", "versions"};
    r->params_compared = r->params_equal = true;
    for (size_t i = 0; i < CX_COUNT_OF(members); i++) {
        const cx_json *a = cx_json_get(&mine, cx_str_z(members[i]));
        const cx_json *b = cx_json_get(&theirs, cx_str_z(members[i]));
        if ((a == NULL) != (b == NULL) || (a != NULL && !cx_json_equal(a, b)))
            r->params_equal = false;
    }
}

static cx_status compare(replay *r, cx_err *err)
{
    if (r->against == NULL)
        return CX_SUCCESS;
    compare_params(r);
    CX_TRY(
        read_projection(r->against, r->arena, &r->other_projection, &r->has_other_projection, err));
    if (!r->has_other_projection)
        return cx_fail(err, CX_E_FORMAT,
                       "the events of the run to compare with cannot be read; 'cortex run verify' "
                       "says what is wrong with it");
    if (!r->has_projection)
        return CX_SUCCESS; /* broken already */
    return cx_run_compare(r->against, &r->other_projection, r->bundle, &r->projection, r->arena,
                          &r->divergence, err);
}

static int exit_code_of(const replay *r)
{
    if (r->verdict.verdict == CX_BROKEN || r->mismatch_count != 0 || !r->reports_ok ||
        !r->has_projection)
        return 1;
    if (r->divergence.found)
        return CX_RUN_EXIT_DIVERGED;
    return cx_run_verdict_exit(&r->verdict);
}

static cx_status write_document(replay *r, cx_run_rehydration *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(r->arena);
    CX_TRY(check_reports(r, &object, err));
    out->exit_code = exit_code_of(r);
    cx_json_put_utf8(&object, "run_id", r->verdict.run_id);
    if (r->against == NULL)
        cx_json_put(&object, "baseline_run_id", cx_json_make_null());
    else
        cx_json_put_utf8(&object, "baseline_run_id",
                         cx_arena_copy_str(r->arena, r->other_projection.run_id));
    cx_json_put_z(&object, "status", out->exit_code == 0 || out->exit_code == 3 ? "ok" : "fail");
    CX_TRY(put_verdict(r, &object, err));
    CX_TRY(put_projection(r, &object, err));
    put_hashes(r, &object);
    cx_json_put_array(&object, "mismatches", &r->mismatches);
    cx_json_put(&object, "params_equal",
                r->params_compared ? cx_json_make_bool(r->params_equal) : cx_json_make_null());
    put_divergence(r, &object);
    return cx_json_list_end_object(&object, &out->document, err);
}

cx_status cx_run_rehydrate(cx_run_bundle *bundle, const cx_run_witness *witness,
                           cx_run_bundle *against, cx_arena *arena, cx_run_rehydration *out,
                           cx_err *err)
{
    CX_ASSERT(bundle != NULL && arena != NULL && out != NULL);
    replay r = {.bundle = bundle, .against = against, .arena = arena};
    r.mismatches = cx_json_list_begin(arena);
    cx_run_projection_init(&r.other_projection);
    cx_status status = cx_run_verify(bundle, witness, arena, &r.verdict, err);
    if (cx_failed(status))
        return status;
    CX_TRY_GOTO(status, read_projection(bundle, arena, &r.projection, &r.has_projection, err));
    compare_with_manifest(&r);
    CX_TRY_GOTO(status, compare(&r, err));
    status = write_document(&r, out, err);
done:
    cx_run_projection_done(&r.projection, arena);
    cx_run_projection_done(&r.other_projection, arena);
    cx_run_findings_done(&r.verdict.findings);
    return status;
}

/*
 * trace_ingest.c - batches sent one after the other to a recorder over an empty home (trace.md §9,
 * §11).
 *
 * The answer of a case is the list of its steps' answers: `http`, and for 200 what the batch was
 * told.
 */
#include "recorder/recorder.h"
#include "tests/runner/runner.h"
#include "tests/runner/trace.h"
#include "tests/support/folder.h"

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    int64_t now_ns;
    cx_home *home;
    cx_recorder *recorder;
} fixture;

static int64_t fixture_now(void *arg)
{
    return ((const fixture *)arg)->now_ns;
}

static cx_status add_keys(runner *r, fixture *s, const cx_json *item, cx_err *err)
{
    cx_str file, text;
    cx_trust trust;
    bool is_new;
    CX_TRY(runner_text(item, "trust", &file, err));
    CX_TRY(runner_read(r, file, &text, err));
    CX_TRY(cx_trust_parse(text, &r->arena, &trust, err));
    for (size_t i = 0; i < trust.count; i++)
        CX_TRY(cx_recorder_key_add(s->recorder, &trust.keys[i], &is_new, err));
    return CX_SUCCESS;
}

static cx_status fixture_open(runner *r, fixture *s, const cx_json *item, cx_err *err)
{
    const cx_home_options options = {
        .segment_bytes = UINT64_C(1) << 20, .derivers = &cx_recorder_deriver, .deriver_count = 1};
    const cx_json *policy = CX_JSON_GET(item, "policy");
    cx_recorder_options recorder = {
        .keep_unknown = cx_str_is(CX_JSON_GET_STR(policy, "unknown_key"), "keep_unverified"),
        .strip_level = cx_str_is(CX_JSON_GET_STR(policy, "level"), "strip"),
        .now_ns = fixture_now,
        .now_arg = s};
    cx_str now;
    bool naive;
    *s = (fixture){.now_ns = 0};
    CX_TRY(runner_text(item, "now", &now, err));
    if (!cx_trace_time_parse(now, &s->now_ns, &naive))
        return cx_fail(err, CX_E_FORMAT, "the case's time is none");
    folder_fresh(s->path, "vectors");
    CX_TRY(cx_home_create(s->path, CX_SCHEME_CORTEX_1, &options, err));
    CX_TRY(cx_home_open(s->path, &options, &s->home, err));
    CX_TRY(cx_recorder_open(s->home, &recorder, &s->recorder, err));
    return add_keys(r, s, item, err);
}

static cx_status fixture_close(fixture *s, cx_status status, cx_err *err)
{
    cx_err closing = {0};
    cx_recorder_close(s->recorder);
    if (s->home != NULL && cx_failed(cx_home_close(s->home, &closing)) && !cx_failed(status))
        status = cx_fail(err, closing.code, "%s", closing.message);
    folder_remove(s->path);
    return status;
}

/* A valid batch without events, with spaces after it. */
static cx_status padded_body(runner *r, const cx_json *make, cx_bytes *out, cx_err *err)
{
    static const char batch[] = "{\"events\":[],\"batch_timestamp\":\"2026-01-12T00:00:00Z\","
                                "\"consent_timestamp\":\"2026-01-01T00:00:00Z\"}";
    uint64_t size = 0;
    const cx_json *bytes = CX_JSON_GET(make, "bytes");
    if (bytes == NULL || !cx_json_uint64(bytes, &size) || size < sizeof batch)
        return cx_fail(err, CX_E_FORMAT, "a body of that many bytes cannot be made");
    char *text = cx_arena_push(&r->arena, size, 1);
    if (text == NULL)
        return cx_fail_nomem(err);
    memset(text, ' ', size);
    memcpy(text, batch, sizeof batch - 1);
    *out = cx_bytes_from(text, size);
    return CX_SUCCESS;
}

static cx_status step_body(runner *r, const cx_json *step, cx_bytes *out, cx_err *err)
{
    cx_str file = CX_JSON_GET_STR(step, "body"), text;
    if (file.data == NULL)
        return padded_body(r, CX_JSON_GET(step, "make"), out, err);
    CX_TRY(runner_read(r, file, &text, err));
    *out = cx_str_bytes(text);
    return CX_SUCCESS;
}

static cx_status result_of(runner *r, const cx_intake_event *taken, cx_json *out, cx_err *err)
{
    const cx_trace_verdict *v = &taken->verdict;
    cx_json_list list = cx_json_list_begin(&r->arena), paths = cx_json_list_begin(&r->arena);
    bool is_refused = taken->status != CX_INTAKE_STORED && taken->status != CX_INTAKE_DUPLICATE;
    cx_json value;
    cx_json_list_put(&list, CX_STR("trace_id"),
                     taken->trace_id.data == NULL ? cx_json_make_null()
                                                  : cx_json_make_str(taken->trace_id));
    cx_json_list_put(&list, CX_STR("status"),
                     cx_json_make_str(cx_str_z(cx_intake_event_status_name(taken->status))));
    cx_json_list_put(&list, CX_STR("reason"),
                     is_refused
                         ? cx_json_make_str(cx_str_z(cx_trace_reason_name(v->problem.reason)))
                         : cx_json_make_null());
    if (is_refused && v->problem.reason == CX_REASON_LEVEL_VIOLATION) {
        for (size_t i = 0; i < v->path_count; i++)
            cx_json_list_add(&paths, cx_json_make_str(v->paths[i]));
        CX_TRY(cx_json_list_end_array(&paths, &value, err));
        cx_json_list_put(&list, CX_STR("paths"), value);
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_status intake_of(runner *r, const cx_intake *intake, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->arena), results = cx_json_list_begin(&r->arena);
    cx_json value;
    if (intake->problem.http != 0) {
        cx_json_list_put(&list, CX_STR("http"), cx_json_make_int(&r->arena, intake->problem.http));
        return cx_json_list_end_object(&list, out, err);
    }
    cx_json_list_put(&list, CX_STR("http"), cx_json_make_int(&r->arena, 200));
    cx_json_list_put(&list, CX_STR("received"), cx_json_make_uint(&r->arena, intake->received));
    cx_json_list_put(&list, CX_STR("accepted"), cx_json_make_uint(&r->arena, intake->accepted));
    cx_json_list_put(&list, CX_STR("rejected"), cx_json_make_uint(&r->arena, intake->rejected));
    cx_json_list_put(&list, CX_STR("status"), cx_json_make_str(cx_str_z(cx_intake_status(intake))));
    for (size_t i = 0; i < intake->received; i++) {
        CX_TRY(result_of(r, &intake->events[i], &value, err));
        cx_json_list_add(&results, value);
    }
    CX_TRY(cx_json_list_end_array(&results, &value, err));
    cx_json_list_put(&list, CX_STR("results"), value);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status run_steps(runner *r, fixture *s, const cx_json *steps, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (uint32_t i = 0; i < steps->count; i++) {
        cx_bytes body;
        cx_intake intake;
        cx_json answer;
        CX_TRY(step_body(r, &steps->items[i], &body, err));
        CX_TRY(cx_recorder_receive(s->recorder, body, CX_CAPTURE_AUTHENTICATED, &r->arena, &intake,
                                   err));
        CX_TRY(intake_of(r, &intake, &answer, err));
        cx_json_list_add(&list, answer);
    }
    return cx_json_list_end_array(&list, out, err);
}

cx_status runner_trace_ingest(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *steps;
    fixture s;
    CX_TRY(runner_member(item, "steps", CX_JSON_ARRAY, &steps, err));
    cx_status status = fixture_open(r, &s, item, err);
    if (!cx_failed(status))
        status = run_steps(r, &s, steps, out, err);
    return fixture_close(&s, status, err);
}

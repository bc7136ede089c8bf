/*
 * api_runs.c - GET /runs/..: one run and the contents of its bundle (run.md §21).
 *
 *   A1  An id of invalid form is answered like a run that does not exist; files are opened beneath
 *       the bundle and no link is followed (audit/view.h, bundle/bundle.h).
 *   A2  Files are sent as stored, with their SHA-256 as ETag.
 */
#include "crypto/api.h"
#include "audit/api.h"
#include "server/route.h"
#include "server/feed/part_runs.h"
#include "server/feed/runs.h"

#define FILE_BYTES_MAX ((size_t)64 << 20)

/* --- what every question needs ---------------------------------------------------------------- */

typedef struct looking {
    cx_call *call;
    cx_runs *runs; /* NULL: of a part, whose bundles are stored in it */
    cx_run_store store;
    cx_run_bundle *bundle;
    cx_run_projection projection;
    bool answer_from;
} looking;

cx_status cx_api_runs_of(cx_call *call, cx_runs **out, cx_err *err)
{
    *out = call->service->runs;
    if (*out == NULL)
        return cx_fail(err, CX_E_UNSUPPORTED, "no repository is served: start with --repo DIR");
    return CX_SUCCESS;
}

static cx_status open_run(looking *l, cx_err *err)
{
    if (cx_part_runs_served(l->call))
        return cx_part_run_open(l->call, l->call->captures[0], &l->bundle, err);
    CX_TRY(cx_api_runs_of(l->call, &l->runs, err));
    cx_status status = cx_runs_store(l->runs, &l->store, err);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail(err, CX_E_NOT_FOUND, "no such run");
    CX_TRY(status);
    return cx_run_view_open(&l->store, l->call->captures[0], &l->bundle, err);
}

static cx_status answer_from_run(looking *l, cx_err *err)
{
    l->answer_from = true;
    return cx_run_view_projection(l->bundle, l->call->arena, &l->projection, err);
}

typedef cx_status answer_function(looking *l, cx_err *err);

static cx_status open_known_run(cx_call *call, answer_function *answer, cx_err *err)
{
    looking l = {.call = call};
    cx_status status = open_run(&l, err);
    if (!cx_failed(status))
        status = answer(&l, err);
    if (l.answer_from)
        cx_run_projection_done(&l.projection, call->arena);
    cx_run_bundle_close(l.bundle);
    return status;
}

static cx_status find_known(looking *l, cx_run_known *out, cx_err *err)
{
    if (l->runs == NULL)
        return cx_part_run_known(l->call, l->call->captures[0], out, err);
    return cx_run_index_find(cx_runs_index(l->runs), l->call->captures[0], l->call->arena, out,
                             err);
}

/* --- one run ---------------------------------------------------------------------------------- */

static cx_status answer_show(looking *l, cx_err *err)
{
    cx_run_known known;
    cx_json value;
    CX_TRY(find_known(l, &known, err));
    CX_TRY(cx_run_view_show(l->bundle, &known.witness, l->call->arena, &value, err));
    return cx_call_answer_json(l->call, 200, &value, err);
}

cx_status cx_api_run(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_show, err);
}

static cx_status answer_events(looking *l, cx_err *err)
{
    const cx_param *from = cx_call_param(l->call, "from"), *limit = cx_call_param(l->call, "limit");
    cx_json value;
    CX_TRY(answer_from_run(l, err));
    CX_TRY(cx_run_view_events(&l->projection, from->given ? from->count : 1,
                              limit->given ? (size_t)limit->count : 0, cx_call_flag(l->call, "raw"),
                              l->call->arena, &value, err));
    return cx_call_answer_json(l->call, 200, &value, err);
}

cx_status cx_api_run_events(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_events, err);
}

static cx_status answer_gates(looking *l, cx_err *err)
{
    cx_json value;
    CX_TRY(answer_from_run(l, err));
    CX_TRY(cx_run_view_gates(&l->projection, l->call->arena, &value, err));
    return cx_call_answer_json(l->call, 200, &value, err);
}

cx_status cx_api_run_gates(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_gates, err);
}

static cx_status answer_timeline(looking *l, cx_err *err)
{
    cx_json value;
    CX_TRY(answer_from_run(l, err));
    CX_TRY(cx_run_view_timeline(&l->projection, l->call->arena, &value, err));
    return cx_call_answer_json(l->call, 200, &value, err);
}

cx_status cx_api_run_timeline(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_timeline, err);
}

static cx_status answer_verify(looking *l, cx_err *err)
{
    cx_run_known known;
    cx_run_verdict verdict;
    cx_json value;
    CX_TRY(find_known(l, &known, err));
    CX_TRY(cx_run_verify(l->bundle, &known.witness, l->call->arena, &verdict, err));
    cx_status status = cx_run_verdict_json(&verdict, l->call->arena, &value, err);
    cx_run_findings_done(&verdict.findings);
    CX_TRY(status);
    return cx_call_answer_json(l->call, 200, &value, err);
}

/* A stored bundle that cannot be had has a verdict, too. */
static cx_status answer_unread(cx_call *call, cx_status status, cx_err *err)
{
    static const struct {
        const char *tag;
        cx_run_unread why;
    } of[] = {{CX_RUN_BUNDLE_CHANGED, CX_RUN_UNREAD_CHANGED},
              {CX_RUN_BUNDLE_MISSING, CX_RUN_UNREAD_MISSING},
              {CX_RUN_BUNDLE_ERASED, CX_RUN_UNREAD_ERASED},
              {CX_RUN_BUNDLE_UNREACHABLE, CX_RUN_UNREAD_AWAY},
              {CX_RUN_END_TAG, CX_RUN_UNREAD_ENDED}};
    cx_run_verdict verdict;
    cx_json value;
    for (size_t i = 0; err->tag != NULL && i < CX_COUNT_OF(of); i++) {
        if (strcmp(err->tag, of[i].tag) != 0)
            continue;
        CX_TRY(cx_run_verify_unread(call->captures[0], of[i].why, cx_str_z(err->message),
                                    call->arena, &verdict, err));
        status = cx_run_verdict_json(&verdict, call->arena, &value, err);
        cx_run_findings_done(&verdict.findings);
        CX_TRY(status);
        return cx_call_answer_json(call, 200, &value, err);
    }
    return status;
}

cx_status cx_api_run_verify(cx_call *call, cx_err *err)
{
    cx_err why = {0};
    cx_status status = open_known_run(call, answer_verify, &why);
    if (cx_failed(status) && cx_part_runs_served(call))
        status = answer_unread(call, status, &why);
    if (cx_failed(status) && err != NULL)
        *err = why;
    return status;
}

/* --- the whole bundle ------------------------------------------------------------------------- */

static cx_status make_archive(looking *l, cx_err *err)
{
    return cx_run_archive_write(l->bundle, &l->call->response.body, err);
}

cx_status cx_api_run_bundle(cx_call *call, cx_err *err)
{
    char hex[65] = {0};
    cx_buf *body = &call->response.body;
    if (cx_part_runs_served(call))
        CX_TRY(cx_part_run_archive(call, call->captures[0], body, err));
    else
        CX_TRY(open_known_run(call, make_archive, err));
    const cx_digest digest = cx_digest_of(cx_buf_bytes(body));
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    cx_call_answer(call, 200, "application/zstd");
    cx_call_header(call, "ETag", "\"%s\"", hex);
    return CX_SUCCESS;
}

/* --- replay ----------------------------------------------------------------------------------- */

/* {"against": RUN2}, or nothing. */
static cx_status read_against(looking *l, cx_run_bundle **out, bool *out_answered, cx_err *err)
{
    cx_json body;
    bool read;
    *out = NULL;
    *out_answered = false;
    if (l->call->request.body.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_call_json(l->call, &body, &read, err));
    cx_str against = read ? CX_JSON_GET_STR(&body, "against") : (cx_str){NULL, 0};
    if (!read) {
        *out_answered = true;
        return CX_SUCCESS;
    }
    if (body.type != CX_JSON_OBJECT || (body.count != 0 && against.data == NULL) ||
        body.count > 1) {
        const cx_problem problem = {
            .status = 422,
            .type = "invalid-request",
            .detail = CX_STR("expected no body, {}, or {\"against\": the id of another run}"),
            .pointer = CX_STR("")};
        cx_call_problem(l->call, &problem);
        *out_answered = true;
        return CX_SUCCESS;
    }
    if (against.data == NULL)
        return CX_SUCCESS;
    return l->runs == NULL ? cx_part_run_open(l->call, against, out, err)
                           : cx_run_view_open(&l->store, against, out, err);
}

static cx_status answer_replay(looking *l, cx_err *err)
{
    cx_run_known known;
    cx_run_bundle *against;
    cx_run_rehydration replay;
    bool answered;
    CX_TRY(read_against(l, &against, &answered, err));
    if (answered)
        return CX_SUCCESS;
    cx_status status = find_known(l, &known, err);
    if (!cx_failed(status))
        status = cx_run_rehydrate(l->bundle, &known.witness, against, l->call->arena, &replay, err);
    cx_run_bundle_close(against);
    CX_TRY(status);
    return cx_call_answer_json(l->call, 200, &replay.document, err);
}

cx_status cx_api_run_replay(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_replay, err);
}

/* --- files ------------------------------------------------------------------------------------ */

/* "<sha256>", "W/..", several, or "*". */
static bool has_tag(cx_str header, const char *tag)
{
    cx_str wanted = cx_str_z(tag);
    if (cx_str_is(header, "*"))
        return true;
    for (size_t i = 0; i + wanted.size <= header.size; i++)
        if (memcmp(header.data + i, wanted.data, wanted.size) == 0)
            return true;
    return false;
}

/* A2 */
static cx_status answer_bytes(looking *l, cx_str path, cx_err *err)
{
    cx_bytes bytes;
    char tag[67] = "\"";
    const char *type;
    CX_TRY(cx_run_bundle_read(l->bundle, path, FILE_BYTES_MAX, &bytes, err));
    const cx_digest digest = cx_digest_of(bytes);
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), tag + 1);
    tag[65] = '"';
    tag[66] = 0;
    type = cx_str_ends(path, CX_STR(".json"))                 ? "application/json"
           : cx_str_ends(path, CX_STR(".jsonl"))              ? "application/x-ndjson"
           : cx_str_ends(path, CX_STR(".diff"))               ? "text/x-diff; charset=utf-8"
           : cx_str_is(cx_run_media_type(path), "text/plain") ? "text/plain; charset=utf-8"
                                                              : "application/octet-stream";
    bool same = has_tag(l->call->request.if_none_match, tag);
    if (!same)
        cx_buf_add(&l->call->response.body, bytes.data, bytes.size);
    cx_call_answer(l->call, same ? 304 : 200, type);
    cx_call_header(l->call, "ETag", "%s", tag);
    return CX_SUCCESS;
}

static cx_status answer_diff(looking *l, cx_err *err)
{
    return answer_bytes(l, CX_STR("patch.diff"), err);
}

cx_status cx_api_run_diff(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_diff, err);
}

static cx_status answer_names(looking *l, cx_err *err)
{
    return answer_bytes(l, CX_STR("diff_name_only.txt"), err);
}

cx_status cx_api_run_diff_names(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_names, err);
}

static cx_status answer_reports(looking *l, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_run_view_files(l->bundle, CX_STR("reports/"), l->call->arena, &value, err));
    return cx_call_answer_json(l->call, 200, &value, err);
}

cx_status cx_api_run_reports(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_reports, err);
}

static cx_status no_file(cx_err *err)
{
    return cx_fail(err, CX_E_NOT_FOUND, "the bundle has no such file");
}

/* "task_result" or "task_result.json". */
static cx_status answer_report(looking *l, cx_err *err)
{
    cx_str name = l->call->captures[1];
    bool whole = cx_str_ends(name, CX_STR(".json"));
    cx_str path = cx_arena_printf(l->call->arena, "reports/%.*s%s", (int)name.size, name.data,
                                  whole ? "" : ".json");
    if (path.data == NULL)
        return cx_fail_nomem(err);
    return cx_run_bundle_find(l->bundle, path) == NULL ? no_file(err) : answer_bytes(l, path, err);
}

cx_status cx_api_run_report(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_report, err);
}

static cx_status answer_artifacts(looking *l, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_run_view_files(l->bundle, CX_STR(""), l->call->arena, &value, err));
    return cx_call_answer_json(l->call, 200, &value, err);
}

cx_status cx_api_run_artifacts(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_artifacts, err);
}

/* Any file of the bundle by its path; `artifacts/` may be left out. */
static cx_status answer_artifact(looking *l, cx_err *err)
{
    cx_str path = l->call->captures[1];
    if (cx_run_bundle_find(l->bundle, path) == NULL) {
        path = cx_arena_printf(l->call->arena, "artifacts/%.*s", (int)path.size, path.data);
        if (path.data == NULL)
            return cx_fail_nomem(err);
        if (cx_run_bundle_find(l->bundle, path) == NULL)
            return no_file(err);
    }
    return answer_bytes(l, path, err);
}

cx_status cx_api_run_artifact(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_artifact, err);
}

/* --- live ------------------------------------------------------------------------------------- */

static cx_status open_tail(cx_call *call, void (*wake)(void *arg), void *arg, cx_stream **out,
                           cx_err *err)
{
    return cx_runs_tail(call->service->runs, call->captures[0], call->response.after.commit, wake,
                        arg, out, err);
}

/* The index of an event: digits only. */
static bool read_index(cx_str text, uint64_t *out)
{
    uint64_t value = 0;
    if (text.size == 0 || text.size > 9)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = 10 * value + (uint64_t)(text.data[i] - '0');
    }
    *out = value;
    return true;
}

static cx_status answer_stream(looking *l, cx_err *err)
{
    cx_call *call = l->call;
    cx_str after = call->request.last_event_id;
    if (l->runs == NULL)
        return cx_fail(err, CX_E_UNSUPPORTED, "a node of a fleet has stored events only");
    if (after.data == NULL || after.size == 0)
        after = cx_call_text(call, "after");
    if (after.data != NULL && !read_index(after, &call->response.after.commit)) {
        const cx_problem problem = {.status = 422,
                                    .type = "invalid-parameter",
                                    .detail =
                                        CX_STR("the event to continue after is not one of a run"),
                                    .parameter = CX_STR("after"),
                                    .reason = CX_STR("expected the index of an event, such as 17")};
        cx_call_problem(call, &problem);
        return CX_SUCCESS;
    }
    call->response.stream = open_tail;
    cx_call_answer(call, 200, "text/event-stream");
    cx_call_header(call, "X-Accel-Buffering", "no");
    return CX_SUCCESS;
}

cx_status cx_api_run_stream(cx_call *call, cx_err *err)
{
    return open_known_run(call, answer_stream, err);
}

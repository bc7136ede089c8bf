/*
 * answer_around.c - the context of a trace, and whether a trace that was not submitted would
 * verify.
 */
#include "crypto/api.h"
#include "recorder/api.h"
#include "provenance/object_parts.h"

/* --- around ----------------------------------------------------------------------------------- */

typedef struct around {
    cx_recorder *recorder;
    cx_index *index;
    const cx_trace_wanted *wanted;
    cx_arena *arena;
    const cx_found_row *row;
    cx_str agent, actor;
} around;

static cx_status find_index_row(around *a, cx_err *err)
{
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    size_t count = 0;
    bool more;
    query.trace_id = a->wanted->trace_id;
    query.agent = a->wanted->agent;
    query.verified = CX_NULL;
    query.level = CX_LEVEL_FULL;
    query.limit = 2;
    CX_TRY(cx_index_find(a->index, &query, a->arena, &a->row, &count, &more, err));
    if (count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoTrace", CX_NO_OFFSET, "no such trace");
    if (count > 1)
        return cx_fail_at(err, CX_E_CONFLICT, "Ambiguous", CX_NO_OFFSET,
                          "several agents have a trace %.*s: choose one with agent_id_hash",
                          (int)a->wanted->trace_id.size, a->wanted->trace_id.data);
    a->agent = cx_reply_cell(a->row, "agent_id_hash")->text;
    a->actor = cx_reply_cell(a->row, "ledger_actor")->text;
    return CX_SUCCESS;
}

/* The agent's nearest trace on one side, verified or not. */
static cx_status add_neighbour(around *a, cx_json_list *list, const char *name, bool next,
                               cx_err *err)
{
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    const cx_found_row *rows;
    size_t count = 0;
    cx_json value = cx_json_make_null();
    bool more;
    query.agent = a->agent;
    query.verified = CX_NULL;
    query.level = a->wanted->level;
    query.limit = 1;
    query.oldest_first = next;
    query.has_cursor = true;
    query.cursor_ns = a->row->timestamp_ns;
    query.cursor_id = a->row->id;
    CX_TRY(cx_index_find(a->index, &query, a->arena, &rows, &count, &more, err));
    if (count != 0)
        CX_TRY(cx_reply_trace_row(&rows[0], a->wanted->level, a->arena, &value, err));
    cx_reply_add(list, name, value);
    return CX_SUCCESS;
}

/* The id of the batch it came in; data NULL when it came in none. */
static cx_status batch_of(around *a, cx_str *out, cx_err *err)
{
    cx_trace_level level = CX_LEVEL_FULL;
    cx_recorded recorded;
    static const uint8_t none[CX_TRACE_BATCH_ID_SIZE];
    *out = (cx_str){NULL, 0};
    (void)cx_trace_level_parse(cx_reply_cell(a->row, "trace_level")->text, &level);
    CX_TRY(cx_recorder_recorded(a->recorder->home, a->actor,
                                (uint64_t)cx_reply_cell(a->row, "ledger_seq")->i, level, a->arena,
                                &recorded, err));
    if (memcmp(recorded.record.batch, none, sizeof none) == 0)
        return CX_SUCCESS;
    char *hex = CX_ARENA_ARRAY(a->arena, char, 2 * CX_TRACE_BATCH_ID_SIZE + 1);
    if (hex == NULL)
        return cx_fail_nomem(err);
    cx_hex_encode(cx_bytes_from(recorded.record.batch, CX_TRACE_BATCH_ID_SIZE), hex);
    *out = cx_str_from(hex, 2 * CX_TRACE_BATCH_ID_SIZE);
    return CX_SUCCESS;
}

static cx_status add_batch(around *a, cx_json_list *list, cx_err *err)
{
    cx_batch_found found;
    cx_json metadata = cx_json_make_null();
    cx_str id;
    CX_TRY(batch_of(a, &id, err));
    cx_status status =
        id.data == NULL ? CX_SUCCESS : cx_index_batch(a->index, id, a->arena, &found, err);
    if (id.data == NULL || status.code == CX_E_NOT_FOUND) { /* the index may lag */
        cx_reply_add(list, "batch", cx_json_make_null());
        return CX_SUCCESS;
    }
    CX_TRY(status);
    if (found.correlation_metadata.data != NULL)
        CX_TRY(cx_json_parse_text(found.correlation_metadata, a->arena, &metadata, err));
    cx_json_list batch = cx_json_list_begin(a->arena);
    cx_reply_text(&batch, "batch_id", id);
    cx_reply_uint(&batch, "received", found.received);
    cx_reply_uint(&batch, "accepted", found.accepted);
    cx_reply_uint(&batch, "rejected", found.rejected);
    cx_reply_add(&batch, "correlation_metadata", metadata);
    return cx_reply_end_object(list, "batch", &batch, err);
}

static cx_status add_nodes(around *a, cx_json_list *list, bool wanted, cx_err *err)
{
    const cx_sources sources = {.home = a->recorder->home,
                                .recorder = a->recorder,
                                .io = cx_io_system(),
                                .alloc = a->recorder->alloc};
    cx_json_list nodes = cx_json_list_begin(a->arena);
    cx_json value;
    cx_str *hashes = NULL;
    size_t count = 0;
    if (wanted)
        CX_TRY(cx_trace_nodes(&sources, a->actor, a->wanted->trace_id, a->arena, &hashes, &count,
                              err));
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&nodes, hashes[i].data == NULL ? cx_json_make_null()
                                                        : cx_json_make_str(hashes[i]));
    CX_TRY(cx_json_list_end_array(&nodes, &value, err));
    cx_reply_add(list, "nodes", value);
    return CX_SUCCESS;
}

static cx_status around_json(around *a, bool nodes, cx_json *out, cx_err *err)
{
    CX_TRY(find_index_row(a, err));
    cx_json_list list = cx_json_list_begin(a->arena);
    cx_reply_text(&list, "agent_id_hash", a->agent);
    CX_TRY(add_batch(a, &list, err));
    CX_TRY(add_neighbour(a, &list, "next", true, err));
    CX_TRY(add_nodes(a, &list, nodes, err));
    CX_TRY(add_neighbour(a, &list, "previous", false, err));
    cx_json row;
    CX_TRY(cx_reply_trace_row(a->row, a->wanted->level, a->arena, &row, err));
    cx_reply_add(&list, "row", row);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_around(cx_recorder *recorder, cx_index *index,
                                    const cx_trace_wanted *wanted, bool nodes, cx_buf *out,
                                    cx_err *err)
{
    cx_reply reply;
    cx_json value;
    cx_reply_begin(&reply, recorder->alloc, err);
    around a = {recorder, index, wanted, &reply.arena, NULL, {NULL, 0}, {NULL, 0}};
    return cx_reply_end(&reply, around_json(&a, nodes, &value, err), &value, out);
}

/* --- checking without recording --------------------------------------------------------------- */

static cx_status check_event(const cx_event *event, const cx_trace_check *check, cx_arena *arena,
                             cx_buf *out, cx_err *err)
{
    cx_trace trace;
    cx_trace_problem problem = event->problem;
    cx_trace_verdict verdict = {.verdict = CX_BROKEN, .form = CX_FORM_NONE};
    cx_buf scratch;
    CX_TRY(cx_trace_read(event->trace, arena, &trace, &verdict.problem, err));
    if (problem.reason != CX_REASON_NONE)
        verdict.problem = problem;
    cx_buf_init(&scratch, arena->alloc);
    cx_status status = CX_SUCCESS;
    if (verdict.problem.reason == CX_REASON_NONE)
        status = cx_trace_verify(&trace, check, &scratch, arena, &verdict, err);
    cx_buf_clear(&scratch);
    if (!cx_failed(status))
        status = cx_trace_verdict_json(&scratch, &trace, &verdict, err);
    cx_str line = cx_buf_str(&scratch);
    while (line.size != 0 && line.data[line.size - 1] == '\n')
        line.size--;
    cx_buf_add_str(out, line);
    cx_buf_done(&scratch);
    return status;
}

static cx_status check_events(cx_recorder *recorder, cx_bytes body, cx_arena *arena, cx_buf *out,
                              cx_err *err)
{
    cx_batch batch = {.level = CX_LEVEL_ABSENT};
    cx_batch_problem problem;
    cx_trust_view *view;
    cx_event alone = {.trace = body, .level = CX_LEVEL_ABSENT};
    cx_status status = CX_SUCCESS;
    CX_TRY(cx_batch_read(body, arena, &batch, &problem, err));
    if (problem.http != 0) /* no batch: one trace, or what cannot be read as one */
        batch = (cx_batch){.events = &alone, .event_count = 1, .level = CX_LEVEL_ABSENT};
    size_t count =
        batch.event_count < CX_CHECK_TRACES_MAX ? batch.event_count : CX_CHECK_TRACES_MAX;
    CX_TRY(cx_recorder_trust_acquire(recorder, &view, err));
    cx_buf_printf(out, "{\"left_out\":%zu,\"results\":[", batch.event_count - count);
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        const cx_trace_check check = {.trust = &view->trust,
                                      .received_ns = cx_recorder_now(recorder),
                                      .event_level = batch.events[i].level,
                                      .batch_level = batch.level,
                                      .forms = CX_FORMS_ALL};
        if (i != 0)
            cx_buf_add_byte(out, ',');
        status = check_event(&batch.events[i], &check, arena, out, err);
    }
    cx_recorder_trust_release(recorder, view);
    cx_buf_add_z(out, "]}\n");
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

cx_status cx_recorder_answer_check(cx_recorder *recorder, cx_bytes body, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = check_events(recorder, body, &arena, out, err);
    cx_arena_done(&arena);
    return status;
}

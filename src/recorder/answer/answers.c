/*
 * answers.c - lists of traces, alerts and keys as JSON (trace.md §11), for the command line and the
 * server.
 */
#include "crypto/api.h"
#include "recorder/deliveries.h"
#include "recorder/answer/reply.h"

/* --- rows of GET /traces ---------------------------------------------------------------------- */

typedef struct shown {
    const char *name;   /* in the answer */
    const char *column; /* of covenant_traces */
    int at;
} shown;

static cx_json cell_json(const cx_cell *cell, cx_cell_type type, cx_arena *arena)
{
    if (cell->null)
        return cx_json_make_null();
    switch (type) {
    case CX_CELL_INT: return cx_json_make_int(arena, cell->i);
    case CX_CELL_FLOAT: return cx_json_make_double(arena, cell->f);
    case CX_CELL_BOOL: return cx_json_make_bool(cell->b);
    case CX_CELL_TEXT:
    case CX_CELL_TIME:
    case CX_CELL_JSON:
    case CX_CELL_TEXTS:
    case CX_CELL_UUID: break;
    }
    return cx_json_make_str(cell->text);
}

static void add_cells(cx_json_list *list, const cx_found_row *row, const shown *columns,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int at = columns[i].at;
        if (cx_trace_columns[at].type == CX_CELL_TIME)
            cx_reply_time(list, columns[i].name,
                          row->cells[at].null ? CX_TIME_NONE : row->cells[at].i);
        else
            cx_reply_add(list, columns[i].name,
                         cell_json(&row->cells[at], cx_trace_columns[at].type, list->arena));
    }
}

#define PLAIN_COUNT 13
#define SCORE_COUNT 6
#define CONSCIENCE_COUNT 8
#define IDMA_COUNT 4
#define AUDIT_COUNT 2

typedef struct shape {
    shown plain[PLAIN_COUNT];
    shown scores[SCORE_COUNT];
    shown conscience[CONSCIENCE_COUNT];
    shown idma[IDMA_COUNT];
    shown audit[AUDIT_COUNT];
} shape;

static const shape list_shape = {
    .plain = {{"trace_id", "trace_id", 0},
              {"agent_id_hash", "agent_id_hash", 0},
              {"trace_type", "trace_type", 0},
              {"trace_level", "trace_level", 0},
              {"timestamp", "timestamp", 0},
              {"task_id", "task_id", 0},
              {"thought_id", "thought_id", 0},
              {"cognitive_state", "cognitive_state", 0},
              {"selected_action", "selected_action", 0},
              {"action_success", "action_success", 0},
              {"signature_verified", "signature_verified", 0},
              {"envelope_signed", "envelope_signed", 0},
              {"canonical_form", "canonical_form", 0}},
    .scores = {{"csdma", "csdma_plausibility_score", 0},
               {"dsdma", "dsdma_domain_alignment", 0},
               {"k_eff", "idma_k_eff", 0},
               {"correlation_risk", "idma_correlation_risk", 0},
               {"coherence_level", "coherence_level", 0},
               {"entropy_level", "entropy_level", 0}},
    .conscience = {{"passed", "conscience_passed", 0},
                   {"overridden", "action_was_overridden", 0},
                   {"entropy_passed", "entropy_passed", 0},
                   {"coherence_passed", "coherence_passed", 0},
                   {"optimization_veto_passed", "optimization_veto_passed", 0},
                   {"epistemic_humility_passed", "epistemic_humility_passed", 0},
                   {"updated_status_detected", "updated_status_detected", 0},
                   {"thought_depth_triggered", "thought_depth_triggered", 0}},
    .idma = {{"phase", "idma_phase", 0},
             {"phase_computed", "idma_phase_computed", 0},
             {"fragility_flag", "idma_fragility_flag", 0},
             {"check", "idma_check", 0}},
    .audit = {{"seq", "audit_sequence_number", 0}, {"hash", "audit_entry_hash", 0}},
};

static void find_columns(shown *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        columns[i].at = cx_trace_column(columns[i].column);
        CX_ASSERT(columns[i].at >= 0);
    }
}

static void find_shape(shape *s)
{
    *s = list_shape;
    find_columns(s->plain, PLAIN_COUNT);
    find_columns(s->scores, SCORE_COUNT);
    find_columns(s->conscience, CONSCIENCE_COUNT);
    find_columns(s->idma, IDMA_COUNT);
    find_columns(s->audit, AUDIT_COUNT);
}

static cx_status add_group(cx_json_list *outer, const char *name, const cx_found_row *row,
                           const shown *columns, size_t count, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(outer->arena);
    add_cells(&list, row, columns, count);
    return cx_reply_end_object(outer, name, &list, err);
}

/* The phase is the agent's own word, and not shown below the level at which it came (§2). */
static cx_status add_idma(cx_json_list *outer, const cx_found_row *row, const shape *s,
                          bool hides_phase, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(outer->arena);
    if (hides_phase)
        cx_reply_add(&list, s->idma[0].name, cx_json_make_null());
    add_cells(&list, row, s->idma + hides_phase, IDMA_COUNT - hides_phase);
    return cx_reply_end_object(outer, "idma", &list, err);
}

static cx_status row_json(const cx_found_row *row, const shape *s, cx_trace_level level,
                          cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_trace_level stored = CX_LEVEL_FULL;
    const cx_cell *cell = cx_reply_cell(row, "trace_level");
    if (!cell->null)
        (void)cx_trace_level_parse(cell->text, &stored);
    cx_json_list list = cx_json_list_begin(arena);
    add_cells(&list, row, s->plain, PLAIN_COUNT);
    CX_TRY(add_group(&list, "scores", row, s->scores, SCORE_COUNT, err));
    CX_TRY(add_group(&list, "conscience", row, s->conscience, CONSCIENCE_COUNT, err));
    CX_TRY(add_idma(&list, row, s, stored > level && level < CX_LEVEL_DETAILED, err));
    CX_TRY(add_group(&list, "audit", row, s->audit, AUDIT_COUNT, err));
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_reply_trace_row(const cx_found_row *row, cx_trace_level level, cx_arena *arena,
                             cx_json *out, cx_err *err)
{
    shape s;
    find_shape(&s);
    return row_json(row, &s, level, arena, out, err);
}

/* --- cursors ---------------------------------------------------------------------------------- */

/* time (8) ‖ id (8) ‖ the first 16 bytes of SHA-256 over a label, the data directory's id and
 * those 16. */
#define CURSOR_SIZE 32

static void cursor_tag(cx_recorder *recorder, const uint8_t place[16], uint8_t out[16])
{
    uint8_t id[16];
    cx_sha256 hash;
    cx_home_id(recorder->home, id);
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, "cortex.cursor.v1", 16);
    cx_sha256_add(&hash, id, sizeof id);
    cx_sha256_add(&hash, place, 16);
    const cx_digest digest = cx_sha256_end(&hash);
    memcpy(out, digest.bytes, 16);
}

static void put_be64(uint8_t *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * (7 - i)));
}

static uint64_t be64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static cx_status write_cursor(cx_recorder *recorder, const cx_found_row *last, cx_arena *arena,
                              cx_str *out, cx_err *err)
{
    uint8_t bytes[CURSOR_SIZE];
    cx_buf text;
    put_be64(bytes, (uint64_t)last->timestamp_ns);
    put_be64(bytes + 8, (uint64_t)last->id);
    cursor_tag(recorder, bytes, bytes + 16);
    cx_buf_init(&text, arena->alloc);
    cx_base64_add(&text, cx_bytes_from(bytes, sizeof bytes), CX_BASE64_URL);
    *out = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_recorder_cursor_parse(cx_recorder *recorder, cx_str cursor, cx_trace_query *query,
                                   cx_err *err)
{
    cx_buf bytes;
    uint8_t tag[16];
    cx_buf_init(&bytes, recorder->alloc);
    bool good = cx_base64_decode(cursor, CX_BASE64_URL, &bytes) && bytes.size == CURSOR_SIZE;
    if (good) {
        cursor_tag(recorder, bytes.data, tag);
        good = memcmp(tag, bytes.data + 16, sizeof tag) == 0;
    }
    if (good) {
        query->has_cursor = true;
        query->cursor_ns = (int64_t)be64(bytes.data);
        query->cursor_id = (int64_t)be64(bytes.data + 8);
    }
    cx_buf_done(&bytes);
    return good ? CX_SUCCESS
                : cx_fail_at(err, CX_E_FORMAT, "BadCursor", CX_NO_OFFSET,
                             "the cursor is not one of this data directory: omit it to start at "
                             "the newest trace");
}

/* What was dropped from the index is not searched, and an answer says so. */
cx_status cx_reply_not_searched(cx_json_list *list, cx_index *index, cx_err *err)
{
    int64_t retained_ns;
    CX_TRY(cx_index_retained(index, &retained_ns, err));
    cx_reply_time(list, "not_searched_before", retained_ns);
    return CX_SUCCESS;
}

/* --- GET /traces ------------------------------------------------------------------------------ */

static cx_status traces_json(cx_recorder *recorder, cx_index *index, const cx_trace_query *query,
                             cx_arena *arena, cx_json *out, cx_err *err)
{
    const cx_found_row *rows;
    size_t count = 0;
    bool more = false;
    shape s;
    cx_json traces;
    cx_str cursor = {NULL, 0};
    CX_TRY(cx_index_find(index, query, arena, &rows, &count, &more, err));
    find_shape(&s);
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++) {
        cx_json row;
        CX_TRY(row_json(&rows[i], &s, query->level, arena, &row, err));
        cx_json_list_add(&list, row);
    }
    CX_TRY(cx_json_list_end_array(&list, &traces, err));
    if (more)
        CX_TRY(write_cursor(recorder, &rows[count - 1], arena, &cursor, err));
    list = cx_json_list_begin(arena);
    cx_reply_add(&list, "traces", traces);
    cx_reply_uint(&list, "count", count);
    cx_reply_text(&list, "next_cursor", cursor);
    CX_TRY(cx_reply_not_searched(&list, index, err));
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_traces(cx_recorder *recorder, cx_index *index,
                                    const cx_trace_query *query, cx_buf *out, cx_err *err)
{
    cx_reply a;
    cx_json value;
    cx_reply_begin(&a, recorder->alloc, err);
    return cx_reply_end(&a, traces_json(recorder, index, query, &a.arena, &value, err), &value,
                        out);
}

/* --- alerts, keys ----------------------------------------------------------------------------- */

/* The alert as the index has it, and where it was sent. */
static cx_status alert_with_deliveries(cx_recorder *recorder, const cx_json *alert, cx_arena *arena,
                                       cx_json *out, cx_err *err)
{
    cx_json deliveries;
    CX_TRY(
        cx_deliveries_json(recorder, CX_JSON_GET_STR(alert, "alert_id"), arena, &deliveries, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; i < alert->count; i++)
        cx_json_list_put(&list, cx_json_text(&alert->members[i].name), alert->members[i].value);
    cx_reply_add(&list, "deliveries", deliveries);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status alerts_json(cx_recorder *recorder, cx_index *index, bool open_only, uint32_t limit,
                             cx_arena *arena, cx_json *out, cx_err *err)
{
    const cx_json *items;
    size_t count = 0;
    cx_json alerts;
    CX_TRY(cx_index_alerts(index, open_only, limit, arena, &items, &count, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++) {
        cx_json alert;
        CX_TRY(alert_with_deliveries(recorder, &items[i], arena, &alert, err));
        cx_json_list_add(&list, alert);
    }
    CX_TRY(cx_json_list_end_array(&list, &alerts, err));
    list = cx_json_list_begin(arena);
    cx_reply_add(&list, "alerts", alerts);
    cx_reply_uint(&list, "count", count);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_alerts(cx_recorder *recorder, cx_index *index, bool open_only,
                                    uint32_t limit, cx_buf *out, cx_err *err)
{
    cx_reply a;
    cx_json value;
    cx_reply_begin(&a, recorder->alloc, err);
    return cx_reply_end(&a, alerts_json(recorder, index, open_only, limit, &a.arena, &value, err),
                        &value, out);
}

static cx_status keys_json(cx_recorder *recorder, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_trust trust;
    cx_json keys;
    CX_TRY(cx_recorder_trust(recorder, arena, &trust, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < trust.count; i++) {
        cx_json key;
        CX_TRY(cx_trust_key_json(&trust.keys[i], arena, &key, err));
        cx_json_list_add(&list, key);
    }
    CX_TRY(cx_json_list_end_array(&list, &keys, err));
    list = cx_json_list_begin(arena);
    cx_reply_add(&list, "format", cx_json_make_str(CX_STR("cortex-trust-1")));
    cx_reply_add(&list, "keys", keys);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_keys(cx_recorder *recorder, cx_buf *out, cx_err *err)
{
    cx_reply a;
    cx_json value;
    cx_reply_begin(&a, recorder->alloc, err);
    return cx_reply_end(&a, keys_json(recorder, &a.arena, &value, err), &value, out);
}

/*
 * answers.c - questions about recorded traces, answered as JSON (trace.md §11): what the command
 * line and the server both print.
 */
#include "base/alloc.h"
#include "crypto/digest.h"
#include "crypto/text.h"
#include "ledger/snapshot.h"
#include "recorder/internal.h"
#include "trace/idma.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

/* --- pieces ----------------------------------------------------------------------------------- */

/* One answer being made: values live in the arena, errors are kept for the end. */
typedef struct answer {
    cx_arena arena;
    cx_err *err;
} answer;

static void answer_begin(answer *a, const cx_alloc *alloc, cx_err *err)
{
    cx_arena_init(&a->arena, alloc, 0);
    a->err = err;
}

static cx_status answer_end(answer *a, cx_status status, const cx_json *value, cx_buf *out)
{
    if (!cx_failed(status))
        status = cx_json_write(out, value, CX_JSON_PY_COMPACT, a->err);
    cx_arena_done(&a->arena);
    if (cx_failed(status))
        return status;
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, a->err);
}

static void put(cx_json_list *list, const char *name, cx_json value)
{
    cx_json_list_put(list, cx_str_z(name), value);
}

static void put_text(cx_json_list *list, const char *name, cx_str text)
{
    put(list, name, text.data == NULL ? cx_json_make_null() : cx_json_make_str(text));
}

static void put_z(cx_json_list *list, const char *name, const char *text)
{
    put(list, name, text[0] == 0 ? cx_json_make_null() : cx_json_make_str(cx_str_z(text)));
}

static void put_uint(cx_json_list *list, const char *name, uint64_t value)
{
    put(list, name, cx_json_make_uint(list->arena, value));
}

static void put_time(cx_json_list *list, const char *name, int64_t ns)
{
    char text[CX_TRACE_TIME_SIZE];
    if (ns == CX_TIME_NONE) {
        put(list, name, cx_json_make_null());
        return;
    }
    cx_trace_time_write(ns, text);
    cx_str copy = cx_arena_copy_str(list->arena, cx_str_z(text));
    list->failed |= copy.data == NULL;
    put_text(list, name, copy);
}

static void put_hex(cx_json_list *list, const char *name, const void *bytes, size_t size)
{
    char *hex = cx_arena_push(list->arena, 2 * size + 1, 1);
    list->failed |= hex == NULL;
    if (hex == NULL)
        return;
    cx_hex_encode(cx_bytes_from(bytes, size), hex);
    put_text(list, name, cx_str_from(hex, 2 * size));
}

static cx_status end_object(cx_json_list *outer, const char *name, cx_json_list *inner, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(inner, &value, err));
    put(outer, name, value);
    return CX_SUCCESS;
}

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

static const cx_cell *cell_of(const cx_found_row *row, const char *column)
{
    int at = cx_trace_column(column);
    CX_ASSERT(at >= 0);
    return &row->cells[at];
}

static void put_cells(cx_json_list *list, const cx_found_row *row, const shown *columns,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int at = columns[i].at;
        if (cx_trace_columns[at].type == CX_CELL_TIME)
            put_time(list, columns[i].name, row->cells[at].null ? CX_TIME_NONE : row->cells[at].i);
        else
            put(list, columns[i].name,
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

static cx_status put_group(cx_json_list *outer, const char *name, const cx_found_row *row,
                           const shown *columns, size_t count, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(outer->arena);
    put_cells(&list, row, columns, count);
    return end_object(outer, name, &list, err);
}

/* The phase is the agent's own word, and not shown below the level at which it came (§2). */
static cx_status put_idma(cx_json_list *outer, const cx_found_row *row, const shape *s,
                          bool hides_phase, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(outer->arena);
    if (hides_phase)
        put(&list, s->idma[0].name, cx_json_make_null());
    put_cells(&list, row, s->idma + hides_phase, IDMA_COUNT - hides_phase);
    return end_object(outer, "idma", &list, err);
}

static cx_status row_json(const cx_found_row *row, const shape *s, cx_trace_level level,
                          cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_trace_level stored = CX_LEVEL_FULL;
    const cx_cell *cell = cell_of(row, "trace_level");
    if (!cell->null)
        (void)cx_trace_level_parse(cell->text, &stored);
    cx_json_list list = cx_json_list_begin(arena);
    put_cells(&list, row, s->plain, PLAIN_COUNT);
    CX_TRY(put_group(&list, "scores", row, s->scores, SCORE_COUNT, err));
    CX_TRY(put_group(&list, "conscience", row, s->conscience, CONSCIENCE_COUNT, err));
    CX_TRY(put_idma(&list, row, s, stored > level && level < CX_LEVEL_DETAILED, err));
    CX_TRY(put_group(&list, "audit", row, s->audit, AUDIT_COUNT, err));
    return cx_json_list_end_object(&list, out, err);
}

/* --- cursors ---------------------------------------------------------------------------------- */

/* time (8) ‖ id (8) ‖ the first 16 bytes of SHA-256 over a label, the home's id and those 16. */
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
                             "the cursor is none that this home gave out: leave it out to begin at"
                             " the newest trace");
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
    put(&list, "traces", traces);
    put_uint(&list, "count", count);
    put_text(&list, "next_cursor", cursor);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_traces(cx_recorder *recorder, cx_index *index,
                                    const cx_trace_query *query, cx_buf *out, cx_err *err)
{
    answer a;
    cx_json value;
    answer_begin(&a, recorder->alloc, err);
    return answer_end(&a, traces_json(recorder, index, query, &a.arena, &value, err), &value, out);
}

/* --- one trace -------------------------------------------------------------------------------- */

/* Where it is; of several levels the highest that may be shown, else the lowest there is. */
typedef struct place {
    cx_str actor;
    uint64_t seq;
    cx_trace_level level;
} place;

static cx_status ambiguous(const cx_trace_wanted *wanted, cx_err *err)
{
    return cx_fail_at(err, CX_E_CONFLICT, "Ambiguous", CX_NO_OFFSET,
                      "several agents have a trace %.*s: say which with agent_id_hash",
                      (int)wanted->trace_id.size, wanted->trace_id.data);
}

static bool is_better(cx_trace_level level, cx_trace_level than, cx_trace_level wanted)
{
    if (level <= wanted)
        return than > wanted || level > than;
    return than > wanted && level < than;
}

static cx_status find_place(cx_index *index, const cx_trace_wanted *wanted, cx_arena *arena,
                            place *out, cx_err *err)
{
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    const cx_found_row *rows;
    size_t count = 0;
    bool more;
    query.trace_id = wanted->trace_id;
    query.agent = wanted->agent;
    query.verified = CX_NULL;
    query.level = CX_LEVEL_FULL;
    query.every_level = true;
    query.limit = 64;
    CX_TRY(cx_index_find(index, &query, arena, &rows, &count, &more, err));
    if (count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoTrace", CX_NO_OFFSET, "there is no such trace");
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        cx_trace_level level = CX_LEVEL_FULL;
        if (!cx_str_eq(cell_of(&rows[i], "agent_id_hash")->text,
                       cell_of(&rows[0], "agent_id_hash")->text))
            return ambiguous(wanted, err);
        (void)cx_trace_level_parse(cell_of(&rows[i], "trace_level")->text, &level);
        if (found && !is_better(level, out->level, wanted->level))
            continue;
        *out = (place){cell_of(&rows[i], "ledger_actor")->text,
                       (uint64_t)cell_of(&rows[i], "ledger_seq")->i, level};
        found = true;
    }
    return CX_SUCCESS;
}

static cx_status erased_trace(cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "Erased", CX_NO_OFFSET,
                      "the trace was erased; its entry is still in the ledger");
}

static cx_status fetch(cx_recorder *recorder, cx_index *index, const cx_trace_wanted *wanted,
                       cx_arena *arena, cx_recorded *out, place *out_place, cx_err *err)
{
    CX_TRY(find_place(index, wanted, arena, out_place, err));
    CX_TRY(cx_recorder_recorded(recorder->home, out_place->actor, out_place->seq, out_place->level,
                                arena, out, err));
    return out->erased ? erased_trace(err) : CX_SUCCESS;
}

/* Judged now, with the keys as they are now; of a view only what was found at intake is known. */
static cx_status verdict_json(cx_recorder *recorder, const cx_recorded *recorded, cx_arena *arena,
                              cx_json *out, cx_err *err)
{
    const cx_trace_record *record = &recorded->record;
    cx_trust_view *view;
    cx_trace_verdict verdict = {.verdict = record->verified ? CX_HOLDS : CX_INDETERMINATE,
                                .problem = {.reason = record->reason},
                                .form = record->form,
                                .numbers = record->numbers,
                                .canonical = record->canonical};
    CX_TRY(cx_recorder_trust_take(recorder, &view, err));
    const cx_trace_check check = {.trust = &view->trust,
                                  .received_ns = record->received_ns,
                                  .event_level = record->level,
                                  .batch_level = record->level,
                                  .forms = CX_FORMS_ALL,
                                  .any_level = true};
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_status status = CX_SUCCESS;
    if (!record->is_view)
        CX_GO(status, cx_trace_verify(&recorded->trace, &check, &text, arena, &verdict, err));
    cx_buf_clear(&text);
    CX_GO(status, cx_trace_verdict_json(&text, &recorded->trace, &verdict, err));
    cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&text));
    status = copy.data == NULL ? cx_fail_nomem(err) : cx_json_parse_text(copy, arena, out, err);
done:
    cx_buf_done(&text);
    cx_recorder_trust_drop(recorder, view);
    return status;
}

static cx_status proof_json(cx_recorder *recorder, const place *at, const cx_recorded *recorded,
                            cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_inclusion proof;
    cx_digest root;
    cx_buf bytes, text;
    CX_TRY(
        cx_proof_journal(recorder->home, at->actor, at->seq, 0, true, arena, &proof, &root, err));
    cx_buf_init(&bytes, arena->alloc);
    cx_buf_init(&text, arena->alloc);
    cx_inclusion_encode(&proof, &bytes);
    cx_base64_add(&text, cx_buf_bytes(&bytes), CX_BASE64_URL);
    cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&bytes);
    cx_buf_done(&text);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list list = cx_json_list_begin(arena);
    put_uint(&list, "journal_size", proof.tree_size);
    put_hex(&list, "journal_root", root.bytes, sizeof root.bytes);
    put_hex(&list, "leaf", recorded->entry.leaf_hash.bytes, 32);
    put_hex(&list, "payload_salt", recorded->entry.salt, sizeof recorded->entry.salt);
    put_text(&list, "inclusion", copy);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status conflicts_json(cx_index *index, const cx_recorded *recorded, cx_arena *arena,
                                const place *at, cx_json *out, cx_err *err)
{
    const cx_conflict_row *rows;
    size_t count = 0;
    CX_TRY(
        cx_index_conflicts(index, at->actor, recorded->trace.trace_id, arena, &rows, &count, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++) {
        cx_json item;
        cx_json_list row = cx_json_list_begin(arena);
        put_text(&row, "actor", rows[i].actor);
        put_uint(&row, "seq", rows[i].seq);
        put_hex(&row, "content_sha256", rows[i].content.bytes, 32);
        put_time(&row, "received_at", rows[i].received_ns);
        CX_TRY(cx_json_list_end_object(&row, &item, err));
        cx_json_list_add(&list, item);
    }
    return cx_json_list_end_array(&list, out, err);
}

/* The trace as it may be shown: itself, or its view. */
static cx_status shown_trace(const cx_recorded *recorded, cx_trace_level level, cx_arena *arena,
                             cx_json *out, cx_err *err)
{
    const cx_trace_record *record = &recorded->record;
    const cx_str *removed;
    size_t removed_count;
    if (record->level <= level) {
        *out = *recorded->trace.json;
        return CX_SUCCESS;
    }
    const cx_trace_lowering how = {.from = record->level,
                                   .to = level,
                                   .form = record->form,
                                   .canonical = record->canonical,
                                   .content = record->content,
                                   .has_canonical = record->form != CX_FORM_NONE};
    return cx_trace_lower(&recorded->trace, &how, arena, out, &removed, &removed_count, err);
}

static cx_status entry_json(const place *at, const cx_recorded *recorded, cx_arena *arena,
                            cx_json *out, cx_err *err)
{
    const cx_trace_record *record = &recorded->record;
    cx_json_list list = cx_json_list_begin(arena);
    put_text(&list, "actor", at->actor);
    put_uint(&list, "seq", at->seq);
    put_time(&list, "received_at", record->received_ns);
    put_text(&list, "capture", record->capture);
    put_hex(&list, "content_sha256", record->content.bytes, 32);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status trace_json(cx_recorder *recorder, cx_index *index, const cx_trace_wanted *wanted,
                            cx_arena *arena, cx_buf *out, cx_err *err)
{
    place at = {.level = CX_LEVEL_FULL};
    cx_recorded recorded;
    cx_json trace, verdict, proof, conflicts, entry;
    CX_TRY(fetch(recorder, index, wanted, arena, &recorded, &at, err));
    CX_TRY(shown_trace(&recorded, wanted->level, arena, &trace, err));
    CX_TRY(verdict_json(recorder, &recorded, arena, &verdict, err));
    CX_TRY(entry_json(&at, &recorded, arena, &entry, err));
    CX_TRY(proof_json(recorder, &at, &recorded, arena, &proof, err));
    CX_TRY(conflicts_json(index, &recorded, arena, &at, &conflicts, err));
    cx_trace_level level = at.level < wanted->level ? at.level : wanted->level;
    /* The trace keeps its number spelling (§14.4), the rest is ours. */
    static const cx_canon_style as_received = {.spaces = false};
    cx_json_list list = cx_json_list_begin(arena);
    cx_json value;
    put_z(&list, "level", cx_trace_level_name(level));
    put(&list, "verdict", verdict);
    put(&list, "entry", entry);
    put(&list, "proof", proof);
    put(&list, "conflicts", conflicts);
    put(&list, "trace", trace);
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    CX_TRY(cx_trace_canon_value(&value, &as_received, out, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

cx_status cx_recorder_answer_trace(cx_recorder *recorder, cx_index *index,
                                   const cx_trace_wanted *wanted, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = trace_json(recorder, index, wanted, &arena, out, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_recorder_raw_trace(cx_recorder *recorder, cx_index *index,
                                const cx_trace_wanted *wanted, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    place at = {.level = CX_LEVEL_FULL};
    cx_recorded recorded;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = fetch(recorder, index, wanted, &arena, &recorded, &at, err);
    if (!cx_failed(status) && recorded.record.level > wanted->level)
        status = cx_fail_at(err, CX_E_DENIED, "LevelTooLow", CX_NO_OFFSET,
                            "the received bytes are of level %s",
                            cx_trace_level_name(recorded.record.level));
    else if (!cx_failed(status)) {
        cx_buf_add(out, recorded.entry.payload.data, recorded.entry.payload.size);
        status = cx_buf_check(out, err);
    }
    cx_arena_done(&arena);
    return status;
}

/* --- chain, wakeup ---------------------------------------------------------------------------- */

/* A profile that a key of the agent names, when one does. */
static cx_status profile_of(cx_recorder *recorder, cx_str agent, cx_chain_profile *out, cx_err *err)
{
    cx_trust_view *view;
    CX_TRY(cx_recorder_trust_take(recorder, &view, err));
    for (size_t i = 0; i < view->trust.count; i++) {
        const cx_trust_key *key = &view->trust.keys[i];
        bool names_agent = false;
        for (size_t k = 0; k < key->agent_count; k++)
            names_agent |= cx_str_eq(key->agents[k], agent);
        if (names_agent && key->chain_profile.data != NULL)
            (void)cx_chain_profile_parse(key->chain_profile, out);
    }
    cx_recorder_trust_drop(recorder, view);
    return CX_SUCCESS;
}

cx_status cx_recorder_chain(cx_recorder *recorder, cx_index *index, cx_str agent,
                            const cx_chain_options *options, cx_arena *arena, cx_chain_report *out,
                            cx_err *err)
{
    const cx_chain_entry *entries;
    size_t count = 0;
    cx_chain_options used = *options;
    if (used.profile == CX_CHAIN_AUTO)
        CX_TRY(profile_of(recorder, agent, &used.profile, err));
    CX_TRY(cx_index_chain(index, agent, arena, &entries, &count, err));
    return cx_chain_check(entries, count, &used, arena, out, err);
}

cx_status cx_recorder_answer_chain(cx_recorder *recorder, cx_index *index, cx_str agent,
                                   const cx_chain_options *options, cx_buf *out,
                                   cx_verdict *out_verdict, cx_err *err)
{
    cx_arena arena;
    cx_chain_report report;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = cx_recorder_chain(recorder, index, agent, options, &arena, &report, err);
    if (!cx_failed(status)) {
        *out_verdict = report.verdict;
        status = cx_chain_json(out, agent, &report, err);
    }
    cx_arena_done(&arena);
    return status;
}

/* A wakeup is a run of the five types; one that comes again begins the next. */
#define WAKEUP_COUNT 5
static const cx_str wakeup_types[WAKEUP_COUNT] = {
    CX_STR("VERIFY_IDENTITY"), CX_STR("VALIDATE_INTEGRITY"), CX_STR("EVALUATE_RESILIENCE"),
    CX_STR("ACCEPT_INCOMPLETENESS"), CX_STR("EXPRESS_GRATITUDE")};

static unsigned wakeup_at(cx_str type)
{
    unsigned at = 0;
    while (at < WAKEUP_COUNT && !cx_str_eq(type, wakeup_types[at]))
        at++;
    return at;
}

static const char *wakeup_state(const cx_wakeup_row *row)
{
    if (row == NULL)
        return "missing";
    if (!row->verified)
        return "unverified";
    bool failed = row->conscience_passed == CX_FALSE || row->action_success == CX_FALSE;
    return failed ? "failed" : "there";
}

static cx_status wakeup_json(const cx_wakeup_row *const found[WAKEUP_COUNT], cx_arena *arena,
                             bool *out_complete, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list types = cx_json_list_begin(arena);
    int64_t first = CX_TIME_NONE;
    *out_complete = true;
    for (unsigned i = 0; i < WAKEUP_COUNT; i++) {
        cx_json_list type = cx_json_list_begin(arena);
        cx_json value;
        const char *state = wakeup_state(found[i]);
        *out_complete &= strcmp(state, "there") == 0;
        put_z(&type, "state", state);
        put_text(&type, "trace_id", found[i] != NULL ? found[i]->trace_id : (cx_str){NULL, 0});
        CX_TRY(cx_json_list_end_object(&type, &value, err));
        cx_json_list_put(&types, wakeup_types[i], value);
        if (found[i] != NULL && (first == CX_TIME_NONE || found[i]->timestamp_ns < first))
            first = found[i]->timestamp_ns;
    }
    put_time(&list, "began_at", first);
    put(&list, "complete", cx_json_make_bool(*out_complete));
    CX_TRY(end_object(&list, "types", &types, err));
    return cx_json_list_end_object(&list, out, err);
}

static cx_status wakeups_json(cx_index *index, cx_str agent, cx_arena *arena, bool *out_complete,
                              cx_json *out, cx_err *err)
{
    const cx_wakeup_row *rows;
    size_t count = 0;
    cx_json wakeups;
    CX_TRY(cx_index_wakeups(index, agent, arena, &rows, &count, err));
    cx_json_list list = cx_json_list_begin(arena);
    *out_complete = count != 0;
    for (size_t i = 0; i < count;) {
        const cx_wakeup_row *found[WAKEUP_COUNT] = {NULL};
        cx_json value;
        bool complete;
        for (; i < count; i++) {
            unsigned at = wakeup_at(rows[i].trace_type);
            if (at == WAKEUP_COUNT)
                continue;
            if (found[at] != NULL)
                break;
            found[at] = &rows[i];
        }
        CX_TRY(wakeup_json(found, arena, &complete, &value, err));
        cx_json_list_add(&list, value);
        *out_complete &= complete;
    }
    CX_TRY(cx_json_list_end_array(&list, &wakeups, err));
    list = cx_json_list_begin(arena);
    put_text(&list, "agent", agent);
    put(&list, "complete", cx_json_make_bool(*out_complete));
    put(&list, "wakeups", wakeups);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_wakeup(cx_recorder *recorder, cx_index *index, cx_str agent,
                                    cx_buf *out, bool *out_complete, cx_err *err)
{
    answer a;
    cx_json value;
    answer_begin(&a, recorder->alloc, err);
    return answer_end(&a, wakeups_json(index, agent, &a.arena, out_complete, &value, err), &value,
                      out);
}

/* --- capacity --------------------------------------------------------------------------------- */

static cx_status n_eff_json(const cx_n_eff *n, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json columns;
    cx_json_list list = cx_json_list_begin(arena);
    for (unsigned i = 0; i < n->columns_used; i++)
        cx_json_list_add(&list, cx_json_make_str(cx_str_z(n->columns[i])));
    CX_TRY(cx_json_list_end_array(&list, &columns, err));
    list = cx_json_list_begin(arena);
    put_uint(&list, "rows", n->rows_used);
    put(&list, "columns", columns);
    put(&list, "participation",
        n->enough ? cx_json_make_double(arena, n->participation) : cx_json_make_null());
    put(&list, "entropy", n->enough ? cx_json_make_double(arena, n->entropy) : cx_json_make_null());
    return cx_json_list_end_object(&list, out, err);
}

static cx_status capacity_json(cx_recorder *recorder, cx_index *index, cx_str agent,
                               cx_arena *arena, cx_json *out, cx_err *err)
{
    int64_t now = cx_recorder_now(recorder), from = now - CX_CAPACITY_DAYS * DAY_NS;
    cx_capacity_input input = {.now_ns = now};
    cx_capacity capacity;
    cx_chain_report chain;
    cx_n_eff n;
    cx_json n_value;
    cx_buf text;
    const cx_chain_options options = {.profile = CX_CHAIN_AUTO};
    CX_TRY(cx_index_scores(index, agent, from, now, arena, &input.rows, &input.count, err));
    CX_TRY(cx_index_scores(index, agent, from - CX_CAPACITY_DAYS * DAY_NS, from, arena,
                           &input.baseline, &input.baseline_count, err));
    CX_TRY(cx_index_received_count(index, agent, from, now, &input.received_count, err));
    CX_TRY(cx_recorder_chain(recorder, index, agent, &options, arena, &chain, err));
    input.chain = chain.verdict;
    CX_TRY(cx_capacity_compute(&input, arena, &capacity, err));
    CX_TRY(cx_n_eff_compute(input.rows, input.count, arena, &n, err));
    CX_TRY(n_eff_json(&n, arena, &n_value, err));
    cx_buf_init(&text, recorder->alloc);
    cx_status status = cx_capacity_json(&text, agent, &capacity, err);
    cx_str copy = cx_failed(status) ? CX_STR("") : cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    cx_json value;
    CX_TRY(cx_json_parse_text(copy, arena, &value, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; i < value.count; i++)
        cx_json_list_put(&list, cx_json_text(&value.members[i].name), value.members[i].value);
    put(&list, "n_eff", n_value);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_capacity(cx_recorder *recorder, cx_index *index, cx_str agent,
                                      cx_buf *out, cx_err *err)
{
    answer a;
    cx_json value;
    answer_begin(&a, recorder->alloc, err);
    return answer_end(&a, capacity_json(recorder, index, agent, &a.arena, &value, err), &value,
                      out);
}

/* --- alerts, keys ----------------------------------------------------------------------------- */

static cx_status alerts_json(cx_index *index, bool open_only, uint32_t limit, cx_arena *arena,
                             cx_json *out, cx_err *err)
{
    const cx_json *items;
    size_t count = 0;
    cx_json alerts;
    CX_TRY(cx_index_alerts(index, open_only, limit, arena, &items, &count, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&list, items[i]);
    CX_TRY(cx_json_list_end_array(&list, &alerts, err));
    list = cx_json_list_begin(arena);
    put(&list, "alerts", alerts);
    put_uint(&list, "count", count);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_alerts(cx_recorder *recorder, cx_index *index, bool open_only,
                                    uint32_t limit, cx_buf *out, cx_err *err)
{
    answer a;
    cx_json value;
    answer_begin(&a, recorder->alloc, err);
    return answer_end(&a, alerts_json(index, open_only, limit, &a.arena, &value, err), &value, out);
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
    put(&list, "format", cx_json_make_str(CX_STR("cortex-trust-1")));
    put(&list, "keys", keys);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_keys(cx_recorder *recorder, cx_buf *out, cx_err *err)
{
    answer a;
    cx_json value;
    answer_begin(&a, recorder->alloc, err);
    return answer_end(&a, keys_json(recorder, &a.arena, &value, err), &value, out);
}

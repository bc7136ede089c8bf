/*
 * scenario.c - vector files into steps.
 */
#include "tests/support/scenario.h"

#include <stdio.h>

#include "proof/uri.h"

/* A step is written as JSON text and read back: what is tested is what a script would say. */
typedef struct maker {
    cx_buf text;
    bool first;
    cx_arena *arena;
    scenario_given given;
    cx_err *err;
    cx_str actor;
    const cx_json *rows; /* of the file, up to the one at hand */
    uint32_t row_count;
    const cx_json *edge, *removed; /* args of the last add_edge and remove_edge that have an edge */
    bool after_snapshot;
    int64_t clock_ns; /* after the step before */
} maker;

static void begin(maker *m, const char *op)
{
    cx_buf_clear(&m->text);
    cx_buf_printf(&m->text, "{\"op\":\"%s\"", op);
}

static void add_json(maker *m, const char *name, const cx_json *value)
{
    if (value == NULL || value->type == CX_JSON_NULL)
        return;
    cx_buf_printf(&m->text, ",\"%s\":", name);
    cx_status status = cx_json_write(&m->text, value, CX_JSON_PY_COMPACT, m->err);
    CX_ASSERT(!cx_failed(status));
}

static void add_text(maker *m, const char *name, const char *text)
{
    cx_buf_printf(&m->text, ",\"%s\":\"%s\"", name, text);
}

static void add_str(maker *m, const char *name, cx_str text)
{
    cx_buf_printf(&m->text, ",\"%s\":\"%.*s\"", name, (int)text.size, text.data);
}

static void add_raw(maker *m, const char *name, const char *json)
{
    cx_buf_printf(&m->text, ",\"%s\":%s", name, json);
}

static cx_status finish(maker *m, cx_json *out)
{
    cx_buf_add_z(&m->text, "}");
    CX_TRY(cx_buf_check(&m->text, m->err));
    cx_str copy = cx_arena_copy_str(m->arena, cx_buf_str(&m->text));
    if (copy.data == NULL)
        return cx_fail_nomem(m->err);
    return cx_json_parse_text(copy, m->arena, out, m->err);
}

static void copy_members(maker *m, const cx_json *args, const char *const *names)
{
    for (; *names != NULL; names++)
        add_json(m, *names, cx_json_get(args, cx_str_z(*names)));
}

static int64_t int_of(const cx_json *object, const char *name, bool *out_there)
{
    int64_t value = 0;
    const cx_json *member = cx_json_get(object, cx_str_z(name));
    *out_there = member != NULL && cx_json_int64(member, &value);
    return value;
}

/* The id of a URI of the file, as a step's member. */
static void add_id_of(maker *m, cx_str uri_text)
{
    cx_uri uri;
    char hex[33];
    cx_status status = cx_uri_parse(uri_text, &uri, m->err);
    CX_ASSERT(!cx_failed(status));
    for (unsigned i = 0; i < 16; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", uri.id.bytes[i]);
    add_text(m, "id", hex);
}

static void add_now(maker *m, const scenario_step *step)
{
    if (m->given == SCENARIO_WRITTEN && step->has_clock)
        cx_buf_printf(&m->text, ",\"now_ns\":%lld", (long long)step->clock_ns);
}

/* --- scenario.json ---------------------------------------------------------------------------- */

static bool op_is(cx_str op, const char *word)
{
    return cx_str_starts(op, cx_str_z(word));
}

/* "attest success", "attest failure REASON"; the intents are those of the vectors' README. */
static void make_attest(maker *m, const cx_json *args, cx_str op)
{
    static const char *const names[] = {"cited", NULL};
    const size_t before = strlen("attest failure ");
    bool failed = op_is(op, "attest failure");
    begin(m, "attest");
    copy_members(m, args, names);
    add_text(m, "intent", failed ? "intent_b" : "intent_a");
    add_text(m, "outcome", failed ? "failure" : "success");
    if (failed && op.size > before)
        add_str(m, "reason", cx_str_from(op.data + before, op.size - before));
    add_str(m, "by", m->actor);
}

/* An Event carries the frame that the README tells. */
static void make_write(maker *m, const cx_json *args)
{
    static const char *const names[] = {"data_cbor", "importance", "tags", "type", NULL};
    begin(m, "write");
    copy_members(m, args, names);
    if (m->given == SCENARIO_WRITTEN)
        add_id_of(m, CX_JSON_GET_STR(args, "uri"));
    if (cx_str_is(CX_JSON_GET_STR(args, "type"), "Event"))
        add_raw(m, "frames",
                "[{\"verb\":\"acquire\",\"kind\":\"service\",\"ref\":\"gpu_inference\"}]");
}

static void make_update(maker *m, const cx_json *args)
{
    static const char *const names[] = {"topic", "strength", "rationale", NULL};
    begin(m, "update");
    add_json(m, "uri", CX_JSON_GET(args, "uri"));
    cx_buf_add_z(&m->text, ",\"data\":{\"polarity\":\"prefer\"");
    copy_members(m, args, names);
    cx_buf_add_z(&m->text, "}");
}

/* "add_edge duplicate" is about the edge added last, "add_edge revive" about the one removed
 * last. */
static void make_edge(maker *m, const cx_json *args, cx_str op)
{
    static const char *const which[] = {"src", "dst", "type", NULL};
    static const char *const how[] = {"weight", "by", "reason", NULL};
    bool remove = op_is(op, "remove_edge"), revive = op_is(op, "add_edge revive");
    bool told = args != NULL && CX_JSON_GET(args, "src") != NULL;
    const cx_json *edge = told ? args : revive ? m->removed : m->edge;
    begin(m, remove ? "remove_edge" : "add_edge");
    if (edge != NULL)
        copy_members(m, edge, which);
    const cx_json *from = args == NULL || args->type != CX_JSON_OBJECT ? edge : args;
    if (from != NULL)
        copy_members(m, from, how);
    if (told && remove)
        m->removed = args;
    else if (told)
        m->edge = args;
}

/* What the operation's name says in words. */
static cx_status make_main(maker *m, const cx_json *args, cx_str op)
{
    static const char *const tombstone[] = {"uri", "reason", "by", NULL};
    static const char *const patch[] = {"uri", "tags", "importance", "visibility", NULL};
    static const char *const context[] = {"in_context", NULL};
    static const char *const raw[] = {"payload", NULL};
    if (op_is(op, "write")) {
        make_write(m, args);
    } else if (op_is(op, "update_head")) {
        begin(m, "update_head");
        copy_members(m, args, patch);
    } else if (op_is(op, "update")) {
        make_update(m, args);
    } else if (op_is(op, "tombstone")) {
        begin(m, "tombstone");
        copy_members(m, args, tombstone);
    } else if (op_is(op, "add_edge") || op_is(op, "remove_edge")) {
        make_edge(m, args, op);
    } else if (op_is(op, "attest")) {
        make_attest(m, args, op);
    } else if (op_is(op, "compact")) {
        begin(m, "compact");
        copy_members(m, args, context);
        add_raw(m, "intent", "\"intent_a\",\"step\":\"step_1\",\"budget\":4000");
    } else if (op_is(op, "store.AppendJournal raw")) {
        begin(m, "raw");
        copy_members(m, args, raw);
        add_json(m, "now_ns", CX_JSON_GET(args, "created_at"));
    } else if (op_is(op, "snapshot")) {
        begin(m, "snapshot");
        add_json(m, "trigger", CX_JSON_GET(args, "reason"));
    } else {
        return cx_fail(m->err, CX_E_FORMAT, "no operation of a scenario is called '%.*s'",
                       (int)op.size, op.data == NULL ? "" : op.data);
    }
    return CX_SUCCESS;
}

static void read_roots(const cx_json *row, scenario_step *out)
{
    cx_str overall = CX_JSON_GET_STR(row, "overall_root");
    out->overall = overall.data != NULL ? overall : CX_JSON_GET_STR(row, "overall");
    if (overall.data != NULL)
        out->overall_name = "overall_root";
    out->journal = CX_JSON_GET_STR(row, "journal_root");
    out->memories = CX_JSON_GET_STR(row, "memories_root");
    out->edges = CX_JSON_GET_STR(row, "edges_root");
}

/* What was asked after a snapshot read the clock as well. */
static unsigned idle_reads(const maker *m, const scenario_step *step)
{
    int64_t ticks = (step->clock_ns - m->clock_ns) / SCENARIO_TICK_NS;
    return m->after_snapshot && step->has_clock && ticks > 1 ? (unsigned)ticks - 1 : 0;
}

static cx_status read_main(maker *m, const cx_json *row, const cx_json *roots, scenario_step *out)
{
    const cx_json *args = CX_JSON_GET(row, "args");
    cx_str op = CX_JSON_GET_STR(row, "op");
    *out = (scenario_step){.runs = !op_is(op, "open"),
                           .refused = CX_JSON_GET(row, "err") != NULL,
                           .overall_name = "overall_root",
                           .leaf_name = "last_leaf_hash"};
    out->clock_ns = int_of(row, "clock_ns_after", &out->has_clock);
    out->next_seq = (uint64_t)int_of(row, "next_seq", &out->has_next_seq);
    out->entry = CX_JSON_GET_STR(row, "last_journal_cbor");
    out->leaf = CX_JSON_GET_STR(row, "last_leaf_hash");
    out->is_snapshot = op_is(op, "snapshot");
    out->idle_reads = idle_reads(m, out);
    m->clock_ns = out->clock_ns;
    m->after_snapshot = out->is_snapshot;
    read_roots(roots, out);
    if (!out->runs)
        return CX_SUCCESS;
    if (op_is(op, "write"))
        out->uri = CX_JSON_GET_STR(args, "uri");
    else if (op_is(op, "update"))
        out->uri = CX_JSON_GET_STR(args, "new_uri");
    CX_TRY(make_main(m, args, op));
    if (!op_is(op, "store.AppendJournal raw"))
        add_now(m, out);
    return finish(m, &out->step);
}

/* --- scenario_large_first60.json -------------------------------------------------------------- */

static void add_row_uri(maker *m, const cx_json *row, uint64_t version)
{
    cx_str hex = CX_JSON_GET_STR(row, "id");
    char ulid[CX_ULID_SIZE];
    cx_id id;
    for (size_t i = 0; i < 16; i++) {
        unsigned byte = 0;
        (void)sscanf(hex.data + 2 * i, "%2x", &byte);
        id.bytes[i] = (uint8_t)byte;
    }
    cx_ulid_format(&id, ulid);
    cx_buf_printf(&m->text, ",\"uri\":\"matrix://cortex/Fact/%.*s#%llu\"", CX_ULID_SIZE, ulid,
                  (unsigned long long)version);
}

static void add_fact(maker *m, const cx_json *row)
{
    add_raw(m, "data", "{\"subject\":\"matrix://bulk\",\"predicate\":\"p\"");
    add_json(m, "statement", CX_JSON_GET(row, "statement"));
    cx_buf_add_z(&m->text, "},\"provenance\":{\"source\":\"observed\"}");
}

/* The newest version that the rows before have made of the row's memory. */
static cx_status latest_version(maker *m, const cx_json *row, uint64_t *out)
{
    cx_str id = CX_JSON_GET_STR(row, "id");
    *out = 1;
    for (uint32_t i = 0; i < m->row_count; i++) {
        cx_str uri_text = CX_JSON_GET_STR(&m->rows[i], "uri");
        cx_uri uri;
        if (uri_text.size == 0 || !cx_str_eq(CX_JSON_GET_STR(&m->rows[i], "id"), id))
            continue;
        CX_TRY(cx_uri_parse(uri_text, &uri, m->err));
        *out = uri.version;
    }
    return CX_SUCCESS;
}

/* A refused update makes no URI: it is about the newest version. */
static cx_status updated_version(maker *m, const cx_json *row, uint64_t *out)
{
    cx_str made_text = CX_JSON_GET_STR(row, "uri");
    cx_uri made;
    if (made_text.size == 0)
        return latest_version(m, row, out);
    CX_TRY(cx_uri_parse(made_text, &made, m->err));
    *out = made.version - 1;
    return CX_SUCCESS;
}

static cx_status make_large(maker *m, const cx_json *row, int64_t number)
{
    static const char *const edge[] = {"src", "dst", "type", "weight", NULL};
    cx_str op = CX_JSON_GET_STR(row, "op");
    char name[32];
    (void)snprintf(name, sizeof name, "%.*s", (int)op.size, op.data);
    begin(m, name);
    if (cx_str_is(op, "write")) {
        add_raw(m, "type", "2");
        add_fact(m, row);
        add_json(m, "importance", CX_JSON_GET(row, "importance"));
        cx_str tag = CX_JSON_GET_STR(row, "tag");
        cx_buf_printf(&m->text, ",\"tags\":[\"%.*s\"]", (int)tag.size, tag.data);
        if (m->given == SCENARIO_WRITTEN)
            add_str(m, "id", CX_JSON_GET_STR(row, "id"));
    } else if (cx_str_is(op, "update")) {
        uint64_t version;
        CX_TRY(updated_version(m, row, &version));
        add_row_uri(m, row, version);
        add_fact(m, row);
    } else if (cx_str_is(op, "update_head")) {
        add_row_uri(m, row, 1);
        add_json(m, "importance", CX_JSON_GET(row, "importance"));
    } else if (cx_str_is(op, "tombstone")) {
        add_row_uri(m, row, 1);
        cx_buf_printf(&m->text, ",\"reason\":\"r%lld\"", (long long)number);
    } else {
        copy_members(m, row, edge);
        if (cx_str_is(op, "remove_edge"))
            add_text(m, "reason", "x");
    }
    return CX_SUCCESS;
}

static cx_status read_large(maker *m, const cx_json *row, const cx_json *roots, scenario_step *out)
{
    bool there = false;
    int64_t number = int_of(row, "i", &there);
    *out = (scenario_step){.runs = true,
                           .refused = CX_JSON_GET(row, "err") != NULL,
                           .overall_name = "overall",
                           .leaf_name = "leaf"};
    out->clock_ns = int_of(row, "now_ns", &out->has_clock);
    out->leaf = CX_JSON_GET_STR(row, "leaf");
    out->uri = CX_JSON_GET_STR(row, "uri");
    read_roots(roots, out);
    CX_TRY(make_large(m, row, number));
    add_now(m, out);
    return finish(m, &out->step);
}

/* --- both ------------------------------------------------------------------------------------- */

static cx_status read_all(const cx_json *file, const cx_json *other, const char *list,
                          const char *other_list, scenario_given given, cx_arena *arena,
                          cx_status (*read)(maker *m, const cx_json *row, const cx_json *roots,
                                            scenario_step *out),
                          scenario *out, cx_err *err)
{
    const cx_json *rows = cx_json_get_typed(file, cx_str_z(list), CX_JSON_ARRAY);
    const cx_json *roots = rows;
    if (other != NULL)
        roots = cx_json_get_typed(other, cx_str_z(other_list), CX_JSON_ARRAY);
    if (rows == NULL || roots == NULL || roots->count != rows->count)
        return cx_fail(err, CX_E_FORMAT, "the vector file has no list %s, or another length", list);
    maker m = {.arena = arena, .given = given, .err = err};
    m.actor = CX_JSON_GET_STR(file, "actor");
    m.rows = rows->items;
    cx_buf_init(&m.text, cx_alloc_default());
    *out = (scenario){.actor = CX_JSON_GET_STR(file, "actor"), .count = rows->count, .file = *file};
    out->steps = CX_ARENA_ARRAY(arena, scenario_step, rows->count + 1);
    cx_status status = out->steps == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    for (uint32_t i = 0; i < rows->count && !cx_failed(status); m.row_count = ++i)
        status = read(&m, &rows->items[i], &roots->items[i], &out->steps[i]);
    cx_buf_done(&m.text);
    return status;
}

cx_status scenario_main(const cx_json *file, const cx_json *other, scenario_given given,
                        cx_arena *arena, scenario *out, cx_err *err)
{
    return read_all(file, other, "steps", "steps", given, arena, read_main, out, err);
}

cx_status scenario_large(const cx_json *file, const cx_json *other, scenario_given given,
                         cx_arena *arena, scenario *out, cx_err *err)
{
    return read_all(file, other, "ops", "roots", given, arena, read_large, out, err);
}

/* --- scenario_embed.json ---------------------------------------------------------------------- */

/* What the four points of the file say in words. */
static const struct embed_step {
    const char *json;
    int point; /* of the file, reached after this step; -1 = none */
} embed_steps[] = {
    {"{\"op\":\"write\",\"type\":\"Fact\",\"data\":{\"statement\":\"e0\",\"subject\":\"s\","
     "\"predicate\":\"p\"}}",
     -1},
    {"{\"op\":\"write\",\"type\":\"Fact\",\"data\":{\"statement\":\"e1\",\"subject\":\"s\","
     "\"predicate\":\"p\"}}",
     -1},
    {"{\"op\":\"write\",\"type\":\"Fact\",\"data\":{\"statement\":\"e2\",\"subject\":\"s\","
     "\"predicate\":\"p\"}}",
     0},
    {"{\"op\":\"embed\",\"id\":\"018bcfe5680000000000000000000001\",\"dim\":16}", -1},
    {"{\"op\":\"embed\",\"id\":\"018bcfe5680000000000000000000002\",\"dim\":16}", -1},
    {"{\"op\":\"embed\",\"id\":\"018bcfe5680000000000000000000003\",\"dim\":16}", 1},
    {"{\"op\":\"update\",\"uri\":\"matrix://cortex/Fact/01HF7YAT000000000000000002#1\","
     "\"data\":{\"statement\":\"e1b\",\"subject\":\"s\",\"predicate\":\"p\"}}",
     -1},
    {"{\"op\":\"embed\",\"id\":\"018bcfe5680000000000000000000002\",\"dim\":16}", 2},
    {"{\"op\":\"tombstone\",\"uri\":\"matrix://cortex/Fact/01HF7YAT000000000000000003#1\","
     "\"reason\":\"gone\"}",
     3},
};

cx_status scenario_embed(const cx_json *file, cx_arena *arena, scenario *out, cx_err *err)
{
    const cx_json *points = cx_json_get_typed(file, CX_STR("steps"), CX_JSON_ARRAY);
    const cx_json *journal = cx_json_get_typed(file, CX_STR("journal"), CX_JSON_ARRAY);
    size_t count = CX_COUNT_OF(embed_steps);
    if (points == NULL || points->count != 4 || journal == NULL || journal->count != count)
        return cx_fail(err, CX_E_FORMAT, "the vector file has other steps");
    *out = (scenario){.actor = CX_STR("emb"), .count = count, .file = *file};
    out->steps = CX_ARENA_ARRAY(arena, scenario_step, count);
    if (out->steps == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        scenario_step *step = &out->steps[i];
        *step = (scenario_step){.runs = true,
                                .overall_name = "overall",
                                .leaf_name = "leaf",
                                .has_next_seq = true,
                                .next_seq = i + 1,
                                .entry = CX_JSON_GET_STR(&journal->items[i], "cbor"),
                                .leaf = CX_JSON_GET_STR(&journal->items[i], "leaf")};
        step->at_point = embed_steps[i].point >= 0;
        step->point = step->at_point ? (size_t)embed_steps[i].point : 0;
        if (step->at_point)
            read_roots(&points->items[step->point], step);
        CX_TRY(cx_json_parse_text(cx_str_z(embed_steps[i].json), arena, &step->step, err));
    }
    return CX_SUCCESS;
}

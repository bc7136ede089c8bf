/*
 * read.c - bytes to a trace, or the first reason why not (§1, §4.3).
 *
 * The first reason is the one that comes first in cx_trace_reason, independent of its place in the
 * text: everything is checked, and the smallest reason is stored; among equal ones the first found.
 * Only parse errors depend on the place: the parser stops at the first one.
 */
#include "trace/internal.h"

#include "base/api.h"
#include "json/api.h"

typedef struct reading {
    cx_arena *arena;
    cx_trace *trace;
    cx_trace_problem *problem;
    bool failed; /* out of memory */
} reading;

/* --- problems --------------------------------------------------------------------------------- */

static bool is_first_problem(const reading *r, cx_trace_reason reason)
{
    return r->problem->reason == CX_REASON_NONE || reason < r->problem->reason;
}

static void note_problem(reading *r, cx_trace_reason reason, cx_str path, const char *detail)
{
    if (is_first_problem(r, reason))
        *r->problem = (cx_trace_problem){reason, path, cx_str_z(detail)};
}

/* A pointer into the envelope, or into component `index` unless that is negative. */
static cx_str path_of(reading *r, int64_t index, const char *name)
{
    cx_str path = index < 0 ? cx_arena_printf(r->arena, "/%s", name)
                            : cx_arena_printf(r->arena, "/components/%lld%s%s", (long long)index,
                                              name[0] == 0 ? "" : "/", name);
    r->failed |= path.data == NULL;
    return path;
}

static void note_problem_at(reading *r, cx_trace_reason reason, int64_t index, const char *name,
                            const char *detail)
{
    if (is_first_problem(r, reason))
        note_problem(r, reason, path_of(r, index, name), detail);
}

/* A problem at a byte of the text. */
static void note_problem_at_offset(reading *r, cx_trace_reason reason, size_t offset,
                                   const char *detail)
{
    cx_buf pointer;
    cx_str path = {NULL, 0};
    if (!is_first_problem(r, reason))
        return;
    cx_buf_init(&pointer, r->arena->alloc);
    if (cx_json_pointer_at(cx_bytes_str(r->trace->bytes), offset, &pointer)) {
        path = cx_arena_copy_str(r->arena, cx_buf_str(&pointer));
        r->failed |= path.data == NULL;
    }
    r->failed |= pointer.failed;
    cx_buf_done(&pointer);
    note_problem(r, reason, path, detail);
}

/* --- parsing ---------------------------------------------------------------------------------- */

/* A refusal of the JSON parser.  Invalid UTF-8 anywhere in the text has priority. */
static void note_parse_failure(reading *r, const cx_err *failure)
{
    static const struct {
        const char *tag;
        cx_trace_reason reason;
    } reasons[] = {{"U_DUPKEY", CX_REASON_DUPLICATE_KEY},
                   {"U_DEPTH", CX_REASON_DEPTH_EXCEEDED},
                   {"U_NUMBER", CX_REASON_LIMIT_EXCEEDED},
                   {"U_LIMIT", CX_REASON_LIMIT_EXCEEDED}};
    cx_trace_reason reason = CX_REASON_MALFORMED_JSON;
    for (size_t i = 0; i < CX_COUNT_OF(reasons); i++)
        if (failure->tag != NULL && strcmp(failure->tag, reasons[i].tag) == 0)
            reason = reasons[i].reason;
    if (!cx_utf8_valid(cx_bytes_str(r->trace->bytes))) {
        note_problem(r, CX_REASON_INVALID_UTF8, (cx_str){NULL, 0}, "the text is not valid UTF-8");
        return;
    }
    cx_str detail =
        cx_arena_printf(r->arena, "line %llu, column %llu: %s", (unsigned long long)failure->line,
                        (unsigned long long)failure->column, failure->message);
    r->failed |= detail.data == NULL;
    if (r->failed)
        return;
    if (reason == CX_REASON_DUPLICATE_KEY || reason == CX_REASON_LIMIT_EXCEEDED)
        note_problem_at_offset(r, reason, (size_t)failure->offset, detail.data);
    else
        note_problem(r, reason, (cx_str){NULL, 0}, detail.data);
}

void cx_trace_parser_init(cx_json_parser *parser, const cx_alloc *alloc)
{
    const cx_json_limits limits = {.depth = CX_TRACE_DEPTH_MAX,
                                   .integer_digits = CX_TRACE_NUMBER_BYTES_MAX,
                                   .allow_nonfinite = true};
    cx_json_parser_init(parser, alloc, &limits);
}

/* False when there is no value; *out_status is then an error, or success. */
static bool parse_trace_json(reading *r, cx_json_parser *parser, cx_json *out,
                             cx_status *out_status, cx_err *err)
{
    cx_err failure = {0};
    *out_status = CX_SUCCESS;
    if (r->trace->bytes.size > CX_TRACE_BYTES_MAX) {
        note_problem(r, CX_REASON_LIMIT_EXCEEDED, (cx_str){NULL, 0}, "a trace has at most 8 MiB");
        return false;
    }
    cx_status status =
        cx_json_parse(parser, cx_bytes_str(r->trace->bytes), r->arena, out, &failure);
    if (status.code == CX_E_NOMEM)
        *out_status = cx_fail_nomem(err);
    else if (cx_failed(status))
        note_parse_failure(r, &failure);
    return !cx_failed(status);
}

/* --- every value ------------------------------------------------------------------------------ */

_Static_assert(sizeof(cx_json_member) == 2 * sizeof(cx_json), "members are pairs of values");

/* Members or items of a container still to be visited. */
typedef struct value_cursor {
    const cx_json *at; /* names and values in turn, or items */
    size_t left;
} value_cursor;

static value_cursor children_of(const cx_json *value)
{
    if (value->type == CX_JSON_OBJECT)
        return (value_cursor){(const cx_json *)value->members, 2 * (size_t)value->count};
    return (value_cursor){value->items, value->count};
}

/* Offset of a number, whose text is always part of the input. */
static size_t offset_of(const reading *r, const cx_json *number)
{
    return (size_t)((const uint8_t *)number->text - r->trace->bytes.data);
}

/* Finds the first number that does not fit a double or is too long, and texts that are too long. */
static void check_value_limits(reading *r, const cx_json *value, size_t *not_finite,
                               size_t *too_long)
{
    if (value->type == CX_JSON_STRING) {
        if (CX_UNLIKELY(value->count > CX_TRACE_TEXT_BYTES_MAX))
            note_problem(r, CX_REASON_LIMIT_EXCEEDED, (cx_str){NULL, 0},
                         "a text has at most 4 MiB");
        return;
    }
    if (!cx_json_is_number(value))
        return;
    if (CX_UNLIKELY(!cx_json_has_canonical(value)) && offset_of(r, value) < *not_finite)
        *not_finite = offset_of(r, value);
    if (CX_UNLIKELY(value->count > CX_TRACE_NUMBER_BYTES_MAX) && offset_of(r, value) < *too_long)
        *too_long = offset_of(r, value);
}

/* Numbers that are not finite, and the limits on numbers and texts (§11). */
static void check_all_limits(reading *r, const cx_json *root)
{
    value_cursor stack[CX_TRACE_DEPTH_MAX + 1];
    size_t depth = 1, not_finite = SIZE_MAX, too_long = SIZE_MAX;
    stack[0] = (value_cursor){root, 1};
    while (depth != 0) {
        value_cursor *top = &stack[depth - 1];
        if (top->left == 0) {
            depth--;
            continue;
        }
        const cx_json *value = top->at++;
        top->left--;
        if (value->type >= CX_JSON_ARRAY)
            stack[depth++] = children_of(value);
        else
            check_value_limits(r, value, &not_finite, &too_long);
    }
    if (too_long != SIZE_MAX)
        note_problem_at_offset(r, CX_REASON_LIMIT_EXCEEDED, too_long,
                               "a number has at most 4096 bytes");
    if (not_finite != SIZE_MAX)
        note_problem_at_offset(r, CX_REASON_NUMBER_NOT_FINITE, not_finite,
                               "a number that is not finite, or beyond binary64");
}

/* --- members ---------------------------------------------------------------------------------- */

/* The member, after checking its type; NULL when it is absent or null, which is the same (§3). */
static const cx_json *get_member(reading *r, const cx_json *object, int64_t index, const char *name,
                                 cx_json_type type, bool required)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    if (value == NULL || value->type == CX_JSON_NULL) {
        if (required)
            note_problem_at(r, CX_REASON_MISSING_FIELD, index, name,
                            "a required member is missing");
        return NULL;
    }
    if (value->type == type)
        return value;
    note_problem_at(r, CX_REASON_FIELD_TYPE, index, name,
                    type == CX_JSON_STRING  ? "a string is expected here"
                    : type == CX_JSON_ARRAY ? "an array is expected here"
                                            : "an object is expected here");
    return NULL;
}

static cx_str get_text(reading *r, const cx_json *object, int64_t index, const char *name,
                       bool required)
{
    const cx_json *value = get_member(r, object, index, name, CX_JSON_STRING, required);
    return value != NULL ? cx_json_text(value) : (cx_str){NULL, 0};
}

static bool time_of(reading *r, cx_str spelled, int64_t index, const char *name, int64_t *out_ns,
                    bool *out_naive)
{
    if (spelled.data == NULL)
        return false;
    if (cx_trace_time_parse(spelled, out_ns, out_naive))
        return true;
    note_problem_at(
        r, CX_REASON_TIMESTAMP_INVALID, index, name,
        "expected YYYY-MM-DDTHH:MM:SS[.1-9 digits][Z or offset], a date of 1970 to 2262");
    return false;
}

/* --- components ------------------------------------------------------------------------------- */

/* False when the component cannot be used. */
static bool read_component(reading *r, const cx_json *json, uint32_t i, cx_trace_component *out)
{
    if (json->type != CX_JSON_OBJECT) {
        note_problem_at(r, CX_REASON_FIELD_TYPE, i, "", "an object is expected here");
        return false;
    }
    *out = (cx_trace_component){.json = json, .event = CX_EVENT_UNKNOWN};
    out->component_type = get_text(r, json, i, "component_type", true);
    out->event_type = get_text(r, json, i, "event_type", true);
    out->timestamp = get_text(r, json, i, "timestamp", true);
    out->data = get_member(r, json, i, "data", CX_JSON_OBJECT, true);
    bool timed =
        time_of(r, out->timestamp, i, "timestamp", &out->timestamp_ns, &out->naive_timestamp);
    if (out->event_type.data == NULL || out->component_type.data == NULL)
        return false;
    out->event = cx_event_type_parse(out->event_type);
    if (out->event != CX_EVENT_UNKNOWN &&
        !cx_str_is(out->component_type, cx_event_component_type(out->event)))
        note_problem_at(r, CX_REASON_COMPONENT_TYPE_MISMATCH, i, "component_type",
                        "this event belongs to another component");
    return timed && out->data != NULL;
}

static void note_missing_components(reading *r)
{
    cx_buf names;
    if (!is_first_problem(r, CX_REASON_COMPONENTS_MISSING))
        return;
    cx_buf_init(&names, r->arena->alloc);
    for (unsigned i = 0; i < CX_EVENT_REQUIRED_COUNT; i++)
        if (r->trace->last[i] == NULL)
            cx_buf_printf(&names, "%s%s", names.size == 0 ? "" : ", ",
                          cx_event_type_name((cx_event_type)i));
    if (names.size != 0) {
        cx_str detail = cx_arena_printf(r->arena, "there is no component of %.*s", (int)names.size,
                                        (const char *)names.data);
        r->failed |= detail.data == NULL;
        if (detail.data != NULL)
            note_problem_at(r, CX_REASON_COMPONENTS_MISSING, -1, "components", detail.data);
    }
    r->failed |= names.failed;
    cx_buf_done(&names);
}

static void read_components(reading *r, const cx_json *list)
{
    cx_trace *trace = r->trace;
    if (list->count > CX_TRACE_COMPONENTS_MAX) {
        note_problem_at(r, CX_REASON_LIMIT_EXCEEDED, -1, "components",
                        "a trace has at most 256 components");
        return;
    }
    cx_trace_component *components = CX_ARENA_ARRAY(r->arena, cx_trace_component, list->count);
    bool usable = components != NULL;
    r->failed |= components == NULL;
    if (components == NULL)
        return;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!read_component(r, &list->items[i], i, &components[i])) {
            usable = false;
            continue;
        }
        if (components[i].event != CX_EVENT_UNKNOWN)
            trace->last[components[i].event] = &components[i];
        if (i == 0 || components[i].timestamp_ns > trace->signed_ns)
            trace->signed_ns = components[i].timestamp_ns;
    }
    note_missing_components(r);
    trace->components = components;
    trace->component_count = usable ? list->count : 0;
}

/* --- the envelope ----------------------------------------------------------------------------- */

/* major.minor >= 2.7 (§1); anything may follow. */
static bool is_stamped(cx_str version)
{
    uint32_t parts[2] = {0, 0};
    size_t at = 0;
    for (unsigned i = 0; i < 2; i++) {
        size_t start = at;
        for (; at < version.size && version.data[at] >= '0' && version.data[at] <= '9'; at++)
            if (parts[i] < 1000000)
                parts[i] = parts[i] * 10 + (uint32_t)(version.data[at] - '0');
        if (at == start || (i == 0 && (at == version.size || version.data[at++] != '.')))
            return false;
    }
    return parts[0] > 2 || (parts[0] == 2 && parts[1] >= 7);
}

static void read_level(reading *r, cx_str spelled)
{
    if (spelled.data != NULL && !cx_trace_level_parse(spelled, &r->trace->level))
        note_problem_at(r, CX_REASON_LEVEL_UNKNOWN, -1, "trace_level",
                        "expected generic, detailed or full_traces");
}

/* In the order of the table in §1, which decides between equal reasons. */
static void read_envelope(reading *r, const cx_json *root)
{
    static const char *const unused[] = {"signature_ml_dsa_65", "pubkey_ml_dsa_65", "pqc_key_id"};
    cx_trace *trace = r->trace;
    bool naive;
    trace->trace_id = get_text(r, root, -1, "trace_id", true);
    if (trace->trace_id.size > CX_TRACE_ID_BYTES_MAX)
        note_problem_at(r, CX_REASON_LIMIT_EXCEEDED, -1, "trace_id", "an id has at most 256 bytes");
    trace->thought_id = get_text(r, root, -1, "thought_id", false);
    trace->task_id = get_text(r, root, -1, "task_id", false);
    trace->agent_id_hash = get_text(r, root, -1, "agent_id_hash", false);
    trace->started_at = get_text(r, root, -1, "started_at", false);
    trace->has_started =
        time_of(r, trace->started_at, -1, "started_at", &trace->started_ns, &naive);
    trace->completed_at = get_text(r, root, -1, "completed_at", false);
    trace->has_completed =
        time_of(r, trace->completed_at, -1, "completed_at", &trace->completed_ns, &naive);
    const cx_json *components = get_member(r, root, -1, "components", CX_JSON_ARRAY, true);
    trace->signature = get_text(r, root, -1, "signature", true);
    trace->key_id = get_text(r, root, -1, "signature_key_id", true);
    read_level(r, get_text(r, root, -1, "trace_level", false));
    trace->schema_version = get_text(r, root, -1, "trace_schema_version", false);
    trace->stamped = is_stamped(trace->schema_version);
    (void)get_member(r, root, -1, "deployment_profile", CX_JSON_OBJECT, false);
    for (size_t i = 0; i < CX_COUNT_OF(unused); i++)
        (void)get_text(r, root, -1, unused[i], false);
    if (components != NULL)
        read_components(r, components);
}

cx_status cx_trace_read_with(cx_json_parser *parser, cx_bytes bytes, cx_arena *arena, cx_trace *out,
                             cx_trace_problem *out_problem, cx_err *err)
{
    cx_trace trace = {.bytes = bytes, .level = CX_LEVEL_ABSENT};
    cx_trace_problem problem = {.reason = CX_REASON_NONE};
    reading r = {.arena = arena, .trace = &trace, .problem = &problem};
    cx_json *root = CX_ARENA_NEW(arena, cx_json);
    cx_status status;
    if (root == NULL)
        return cx_fail_nomem(err);
    if (parse_trace_json(&r, parser, root, &status, err)) {
        trace.json = root;
        check_all_limits(&r, root);
        if (root->type == CX_JSON_OBJECT)
            read_envelope(&r, root);
        else
            note_problem(&r, CX_REASON_FIELD_TYPE, (cx_str){NULL, 0}, "a trace is an object");
    }
    CX_TRY(status);
    if (r.failed)
        return cx_fail_nomem(err);
    *out = trace;
    *out_problem = problem;
    return CX_SUCCESS;
}

cx_status cx_trace_read(cx_bytes bytes, cx_arena *arena, cx_trace *out,
                        cx_trace_problem *out_problem, cx_err *err)
{
    cx_json_parser parser;
    cx_trace_parser_init(&parser, arena->alloc);
    cx_status status = cx_trace_read_with(&parser, bytes, arena, out, out_problem, err);
    cx_json_parser_done(&parser);
    return status;
}

/*
 * batch.c - the body of POST /events (trace.md §11): the envelope strictly, each event separately.
 *
 * One bad event must not cause the rejection of others, so the body is first split by brackets and
 * quotes alone: the batch without the contents of its events, then each event without its trace,
 * are parsed strictly, and each trace is parsed by cx_trace_read.  Together they check every byte.
 *
 * Text that is not JSON anywhere makes the whole batch unreadable, since its meaning is unknown; a
 * duplicate member, a non-finite number, or excessive depth inside an event affects only that
 * event.
 */
#include "json/api.h"
#include "recorder/internal.h"

static cx_str text_of(cx_bytes bytes)
{
    return cx_bytes_str(bytes);
}

/* --- refusing the batch ----------------------------------------------------------------------- */

static void reject_batch(cx_batch_problem *problem, int http, const char *type, cx_str detail,
                         cx_str pointer)
{
    *problem = (cx_batch_problem){http, type, detail, pointer};
}

#define INVALID(problem, detail, pointer) \
    reject_batch((problem), 422, "invalid-batch", CX_STR(detail), CX_STR(pointer))

static void reject_json(cx_batch_problem *problem, const cx_err *failure, cx_arena *arena)
{
    const char *type = "malformed-json";
    if (failure->tag != NULL && strcmp(failure->tag, "U_DUPKEY") == 0)
        type = "duplicate-key";
    else if (failure->tag != NULL && strcmp(failure->tag, "U_UTF8") == 0)
        type = "invalid-utf8";
    cx_str detail = cx_arena_printf(arena, "%s", failure->message);
    if (detail.data == NULL)
        detail = CX_STR("the body is not JSON");
    reject_batch(problem, 400, type, detail, (cx_str){NULL, 0});
}

bool cx_batch_unreadable(cx_trace_reason reason, cx_batch_problem *out_problem)
{
    if (reason == CX_REASON_INVALID_UTF8)
        reject_batch(out_problem, 400, "invalid-utf8", CX_STR("an event is not valid UTF-8"),
                     CX_STR("/events"));
    else if (reason == CX_REASON_MALFORMED_JSON)
        reject_batch(out_problem, 400, "malformed-json", CX_STR("an event is not JSON"),
                     CX_STR("/events"));
    else
        return false;
    return true;
}

/* --- text with one part left out -------------------------------------------------------------- */

typedef struct trace_part {
    cx_str part;       /* of the text; data NULL = nothing to replace */
    const char *stead; /* its replacement */
} trace_part;

/* The text with the part replaced, in the arena. */
static cx_status replace_part(cx_str text, const trace_part *what, cx_arena *arena, cx_str *out,
                              cx_err *err)
{
    if (what->part.data == NULL) {
        *out = text;
        return CX_SUCCESS;
    }
    size_t before = (size_t)(what->part.data - text.data);
    size_t after = text.size - before - what->part.size, stead = strlen(what->stead);
    char *made = cx_arena_push(arena, before + stead + after + 1, 1);
    if (made == NULL)
        return cx_fail_nomem(err);
    memcpy(made, text.data, before);
    memcpy(made + before, what->stead, stead);
    memcpy(made + before + stead, what->part.data + what->part.size, after);
    *out = cx_str_from(made, before + stead + after);
    return CX_SUCCESS;
}

/* Names may be spelled with escapes. */
static bool member_name_is(cx_str quoted, cx_str wanted, cx_arena *arena)
{
    cx_json name;
    if (quoted.size == wanted.size + 2)
        return memcmp(quoted.data + 1, wanted.data, wanted.size) == 0;
    return memchr(quoted.data, '\\', quoted.size) != NULL &&
           !cx_failed(cx_json_parse_text(quoted, arena, &name, NULL)) &&
           cx_str_eq(cx_json_text(&name), wanted);
}

/* The last member of that name; the strict parser rejects duplicates. */
static cx_str find_member(cx_str object, cx_str wanted, cx_arena *arena)
{
    cx_json_span span;
    cx_str name, value, found = {NULL, 0};
    if (!cx_json_span_begin(&span, object))
        return found;
    while (cx_json_span_next(&span, &name, &value))
        if (name.size >= wanted.size + 2 && member_name_is(name, wanted, arena))
            found = value;
    return span.bad ? (cx_str){NULL, 0} : found;
}

cx_str cx_batch_trace_id(cx_bytes trace, cx_arena *arena)
{
    static const cx_str none = {NULL, 0};
    cx_json_span span;
    cx_json id;
    cx_str name, value, found = none;
    unsigned count = 0;
    if (!cx_json_span_begin(&span, text_of(trace)))
        return none;
    while (cx_json_span_next(&span, &name, &value))
        if (name.size >= 10 && member_name_is(name, CX_STR("trace_id"), arena)) {
            found = value;
            count++;
        }
    if (span.bad || count != 1 || found.size > 8 * CX_TRACE_ID_BYTES_MAX ||
        cx_failed(cx_json_parse_text(found, arena, &id, NULL)) || id.type != CX_JSON_STRING ||
        cx_json_text(&id).size > CX_TRACE_ID_BYTES_MAX)
        return none;
    return cx_json_text(&id);
}

/* --- one event -------------------------------------------------------------------------------- */

static void event_problem(cx_event *event, cx_trace_reason reason, cx_str path, cx_str detail)
{
    event->problem = (cx_trace_problem){reason, path, detail};
}

/* The reasons of §4.3 for what the strict reader refuses. */
static cx_trace_reason reason_of(const cx_err *failure)
{
    static const struct {
        const char *tag;
        cx_trace_reason reason;
    } reasons[] = {{"U_UTF8", CX_REASON_INVALID_UTF8},
                   {"U_DUPKEY", CX_REASON_DUPLICATE_KEY},
                   {"U_DEPTH", CX_REASON_DEPTH_EXCEEDED},
                   {"U_LIMIT", CX_REASON_LIMIT_EXCEEDED}};
    for (size_t i = 0; i < CX_COUNT_OF(reasons); i++)
        if (failure->tag != NULL && strcmp(failure->tag, reasons[i].tag) == 0)
            return reasons[i].reason;
    if (failure->tag != NULL && strcmp(failure->tag, "U_NUMBER") == 0)
        return failure->code == CX_E_LIMIT ? CX_REASON_LIMIT_EXCEEDED : CX_REASON_NUMBER_NOT_FINITE;
    return CX_REASON_MALFORMED_JSON;
}

static void read_event_members(const cx_json *value, cx_str trace, cx_event *out)
{
    const cx_json *type = CX_JSON_GET(value, "event_type");
    const cx_json *level = CX_JSON_GET(value, "trace_level");
    out->level = CX_LEVEL_ABSENT;
    out->connectivity = type != NULL && type->type == CX_JSON_STRING &&
                        cx_str_starts(cx_json_text(type), CX_STR("connectivity_"));
    if (type == NULL)
        event_problem(out, CX_REASON_MISSING_FIELD, CX_STR("/event_type"),
                      CX_STR("expected event_type \"complete_trace"));
    else if (!out->connectivity &&
             (type->type != CX_JSON_STRING || !cx_str_is(cx_json_text(type), "complete_trace")))
        event_problem(out, CX_REASON_FIELD_TYPE, CX_STR("/event_type"),
                      CX_STR("unknown event_type, expected \"complete_trace\" or one that begins "
                             "with \"connectivity_\""));
    else if (trace.data == NULL || CX_JSON_GET(value, "trace") == NULL)
        event_problem(out, CX_REASON_MISSING_FIELD, CX_STR("/trace"),
                      CX_STR("the event has no trace"));
    else if (level != NULL && level->type != CX_JSON_NULL &&
             (level->type != CX_JSON_STRING ||
              !cx_trace_level_parse(cx_json_text(level), &out->level)))
        event_problem(out, CX_REASON_LEVEL_UNKNOWN, CX_STR("/trace_level"),
                      CX_STR("expected the level generic, detailed or full_traces"));
}

static cx_status read_event(cx_json_parser *parser, cx_str text, cx_arena *arena, cx_event *out,
                            cx_err *err)
{
    *out = (cx_event){.level = CX_LEVEL_ABSENT};
    const trace_part trace = {find_member(text, CX_STR("trace"), arena), "0"};
    cx_str envelope;
    cx_json value;
    cx_err failure = {0};
    CX_TRY(replace_part(text, &trace, arena, &envelope, err));
    cx_status status = cx_json_parse(parser, envelope, arena, &value, &failure);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (trace.part.data != NULL)
        out->trace = cx_str_bytes(trace.part);
    if (cx_failed(status))
        event_problem(out, reason_of(&failure), (cx_str){NULL, 0},
                      cx_arena_printf(arena, "the event cannot be read: %s", failure.message));
    else if (value.type != CX_JSON_OBJECT)
        event_problem(out, CX_REASON_FIELD_TYPE, CX_STR(""), CX_STR("expected an object"));
    else if ((value.flags & (CX_JSON_OVERFLOW | CX_JSON_NONFINITE)) != 0)
        event_problem(out, CX_REASON_NUMBER_NOT_FINITE, (cx_str){NULL, 0},
                      CX_STR("a number of the event is not finite"));
    else
        read_event_members(&value, trace.part, out);
    return CX_SUCCESS;
}

static cx_status read_events(cx_json_parser *parser, cx_str list, cx_arena *arena, cx_batch *out,
                             cx_batch_problem *problem, cx_err *err)
{
    cx_json_span span;
    cx_str name, value;
    size_t count = 0;
    bool there = cx_json_span_begin(&span, list);
    while (there && cx_json_span_next(&span, &name, &value))
        count++;
    if (!there || span.bad) {
        reject_batch(problem, 400, "malformed-json", CX_STR("the list of events is not JSON"),
                     CX_STR("/events"));
        return CX_SUCCESS;
    }
    if (count > CX_BATCH_EVENTS_MAX) {
        INVALID(problem, "the batch has more than 1000 events: send several batches", "/events");
        return CX_SUCCESS;
    }
    cx_event *events = CX_ARENA_ARRAY(arena, cx_event, count + 1);
    if (events == NULL)
        return cx_fail_nomem(err);
    (void)cx_json_span_begin(&span, list);
    for (size_t i = 0; i < count && cx_json_span_next(&span, &name, &value); i++) {
        CX_TRY(read_event(parser, value, arena, &events[i], err));
        if (cx_batch_unreadable(events[i].problem.reason, problem))
            return CX_SUCCESS;
    }
    out->events = events;
    out->event_count = count;
    return CX_SUCCESS;
}

/* --- the envelope ----------------------------------------------------------------------------- */

static bool read_time_member(const cx_json *root, const char *name, cx_str *out_text, int64_t *out)
{
    const cx_json *value = cx_json_get(root, cx_str_z(name));
    bool naive;
    if (value == NULL || value->type != CX_JSON_STRING ||
        !cx_trace_time_parse(cx_json_text(value), out, &naive))
        return false;
    *out_text = cx_json_text(value);
    return true;
}

static bool read_envelope(const cx_json *root, cx_batch *out, cx_batch_problem *problem)
{
    if (root->type != CX_JSON_OBJECT) {
        INVALID(problem, "the body is not an object", "");
        return false;
    }
    const cx_json *events = CX_JSON_GET(root, "events");
    if (events == NULL || events->type != CX_JSON_ARRAY) {
        INVALID(problem, "events must be an array", "/events");
        return false;
    }
    if (!read_time_member(root, "batch_timestamp", &out->batch_timestamp, &out->batch_ns)) {
        INVALID(problem, "batch_timestamp must be a timestamp", "/batch_timestamp");
        return false;
    }
    if (!read_time_member(root, "consent_timestamp", &out->consent_timestamp, &out->consent_ns)) {
        INVALID(problem, "consent_timestamp must be a timestamp", "/consent_timestamp");
        return false;
    }
    const cx_json *level = CX_JSON_GET(root, "trace_level");
    if (level != NULL && level->type != CX_JSON_NULL &&
        (level->type != CX_JSON_STRING ||
         !cx_trace_level_parse(cx_json_text(level), &out->level))) {
        INVALID(problem, "trace_level must be generic, detailed or full_traces", "/trace_level");
        return false;
    }
    const cx_json *metadata = CX_JSON_GET(root, "correlation_metadata");
    if (metadata != NULL && metadata->type != CX_JSON_NULL)
        out->correlation_metadata = metadata;
    return true;
}

static cx_status read_batch(cx_json_parser *parser, cx_str body, cx_arena *arena, cx_batch *out,
                            cx_batch_problem *problem, cx_err *err)
{
    cx_err failure = {0};
    cx_json *root = CX_ARENA_NEW(arena, cx_json);
    if (root == NULL)
        return cx_fail_nomem(err);
    cx_str list = find_member(body, CX_STR("events"), arena);
    bool is_list = list.size != 0 && list.data[0] == '[';
    const trace_part events = {is_list ? list : (cx_str){NULL, 0}, "[]"};
    cx_str envelope;
    CX_TRY(replace_part(body, &events, arena, &envelope, err));
    cx_status status = cx_json_parse(parser, envelope, arena, root, &failure);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status)) {
        reject_json(problem, &failure, arena);
        return CX_SUCCESS;
    }
    if (!cx_json_has_canonical(root)) {
        reject_batch(problem, 400, "malformed-json", CX_STR("a number of the batch is not finite"),
                     (cx_str){NULL, 0});
        return CX_SUCCESS;
    }
    if (!read_envelope(root, out, problem))
        return CX_SUCCESS;
    return is_list ? read_events(parser, list, arena, out, problem, err) : CX_SUCCESS;
}

cx_status cx_batch_read(cx_bytes body, cx_arena *arena, cx_batch *out,
                        cx_batch_problem *out_problem, cx_err *err)
{
    *out = (cx_batch){.level = CX_LEVEL_ABSENT};
    *out_problem = (cx_batch_problem){0};
    if (body.size > CX_BATCH_BYTES_MAX) {
        reject_batch(out_problem, 413, "too-large", CX_STR("the batch has more than 8388608 bytes"),
                     (cx_str){NULL, 0});
        return CX_SUCCESS;
    }
    const cx_json_limits limits = {.depth = CX_TRACE_DEPTH_MAX,
                                   .integer_digits = CX_TRACE_NUMBER_BYTES_MAX,
                                   .allow_nonfinite = true};
    cx_json_parser parser;
    cx_json_parser_init(&parser, arena->alloc, &limits);
    cx_status status = read_batch(&parser, text_of(body), arena, out, out_problem, err);
    cx_json_parser_done(&parser);
    return status;
}

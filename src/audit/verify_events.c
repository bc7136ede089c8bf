/*
 * verify_events.c - the event lines, their chain, and the order of states (run.md §14, §17, §18).
 *
 * This goes through every line of a bundle, so the common case is short: a line of exactly the
 * members that writers write is judged here, any other by the schema.
 */
#include "crypto/api.h"
#include "rules/api.h"
#include "audit/verify_internal.h"

#define EVENTS CX_STR("events.jsonl")
#define CHAIN CX_STR("events.hashchain.jsonl")

typedef struct stream {
    cx_run_verification *v;
    cx_json_parser parser;
    cx_arena scratch; /* of one line */
    cx_str chain;     /* what is left of the file */
    bool chain_there, chain_broken;
    uint64_t count;
    cx_digest head;
    cx_str last_ts;
    cx_str trace_id;
    bool trace_stays; /* trace_id is the manifest's */
} stream;

/* --- one line --------------------------------------------------------------------------------- */

static bool is_type(const cx_json *event, const char *name, cx_json_type type, bool or_null,
                    unsigned *seen)
{
    const cx_json *value = cx_json_get(event, cx_str_z(name));
    *seen += value != NULL;
    return value != NULL && (value->type == type || (or_null && value->type == CX_JSON_NULL));
}

/* orchestrator_event.v1 for events of exactly the eight members. */
static bool is_plain_event(const cx_json *event)
{
    unsigned seen = 0;
    int64_t at;
    bool typed = is_type(event, "ts", CX_JSON_STRING, false, &seen) &&
                 is_type(event, "level", CX_JSON_STRING, false, &seen) &&
                 is_type(event, "event_type", CX_JSON_STRING, false, &seen) &&
                 is_type(event, "run_id", CX_JSON_STRING, false, &seen) &&
                 is_type(event, "task_id", CX_JSON_STRING, true, &seen) &&
                 is_type(event, "attempt", CX_JSON_INT, true, &seen) &&
                 is_type(event, "trace_id", CX_JSON_STRING, false, &seen) &&
                 is_type(event, "payload", CX_JSON_OBJECT, false, &seen);
    cx_str level = CX_JSON_GET_STR(event, "level");
    return typed && seen == event->count && cx_run_time_parse(CX_JSON_GET_STR(event, "ts"), &at) &&
           (cx_str_is(level, "INFO") || cx_str_is(level, "WARN") || cx_str_is(level, "ERROR"));
}

static cx_status check_schema(stream *s, const cx_json *event, uint64_t line)
{
    cx_run_verification *v = s->v;
    cx_run_findings found;
    if (is_plain_event(event))
        return CX_SUCCESS;
    cx_run_findings_init(&found, v->arena);
    cx_status status =
        cx_run_schema_check("orchestrator_event.v1.json", event, "event_schema", &found, v->err);
    if (!cx_failed(status) && found.list.count != 0)
        cx_run_verify_add_finding(
            v, CX_RUN_EVENT_SCHEMA, EVENTS, "line %llu: %.*s: %.*s", (unsigned long long)line,
            (int)found.list.items[0].where.size, found.list.items[0].where.data,
            (int)found.list.items[0].message.size, found.list.items[0].message.data);
    if (!cx_failed(status))
        status = cx_run_findings_check(&found, v->err);
    cx_run_findings_done(&found);
    return status;
}

static cx_status check_event(stream *s, const cx_json *event, uint64_t line)
{
    cx_run_verification *v = s->v;
    cx_str ts = CX_JSON_GET_STR(event, "ts"), run_id = CX_JSON_GET_STR(event, "run_id");
    cx_str trace_id = CX_JSON_GET_STR(event, "trace_id");
    CX_TRY(check_schema(s, event, line));
    if (ts.data != NULL) {
        if (s->last_ts.data != NULL && cx_str_cmp(ts, s->last_ts) < 0)
            cx_run_verify_add_finding(v, CX_RUN_EVENT_ORDER, EVENTS,
                                      "line %llu: its time is before that of the line above",
                                      (unsigned long long)line);
        s->last_ts = ts;
    }
    if (run_id.data != NULL && !cx_str_eq(run_id, v->run_id))
        cx_run_verify_add_finding(v, CX_RUN_EVENT_RUN_ID, EVENTS,
                                  "line %llu: an event of run '%.*s'", (unsigned long long)line,
                                  (int)(run_id.size > 128 ? 128 : run_id.size), run_id.data);
    if (trace_id.data != NULL && !cx_str_eq(trace_id, s->trace_id)) {
        if (s->trace_id.size != 0)
            cx_run_verify_add_finding(v, CX_RUN_EVENT_RUN_ID, EVENTS,
                                      "line %llu: a run has one trace id, this is another",
                                      (unsigned long long)line);
        s->trace_id = trace_id;
        s->trace_stays = false;
    }
    return CX_SUCCESS;
}

/* --- one link --------------------------------------------------------------------------------- */

static bool digest_member(const cx_json *link, const char *name, const cx_digest *expected)
{
    cx_digest found;
    return cx_digest_parse(cx_json_get_str(link, cx_str_z(name)), &found) &&
           cx_digest_eq(&found, expected);
}

/* A link that is spelled otherwise than we do, but says the same. */
static bool same_link(stream *s, cx_str line, const cx_digest *event_sha256, const cx_digest *prev,
                      const cx_digest *hash)
{
    cx_json link;
    uint64_t index;
    bool same = !cx_failed(cx_json_parse(&s->parser, line, &s->scratch, &link, NULL)) &&
                link.type == CX_JSON_OBJECT && link.count == 4;
    const cx_json *number = same ? CX_JSON_GET(&link, "index") : NULL;
    same = number != NULL && cx_json_uint64(number, &index) && index == s->count &&
           digest_member(&link, "event_sha256", event_sha256) && digest_member(&link, "hash", hash);
    if (same && prev == NULL)
        same = CX_JSON_GET_STR(&link, "prev_hash").data != NULL &&
               CX_JSON_GET_STR(&link, "prev_hash").size == 0;
    else if (same)
        same = digest_member(&link, "prev_hash", prev);
    return same;
}

/* As events.c writes it; `at` after the last byte, or NULL when the text differs. */
static const char *skip_text(const char *at, const char *end, const char *text, size_t size)
{
    return at == NULL || (size_t)(end - at) < size || memcmp(at, text, size) != 0 ? NULL
                                                                                  : at + size;
}

static bool plain_link(cx_str line, uint64_t index, const cx_digest *event_sha256,
                       const cx_digest *prev, const cx_digest *hash)
{
    char number[24], hex[64];
    size_t width = 0;
    for (uint64_t rest = index; rest != 0; rest /= 10)
        width++;
    for (size_t i = width; i-- > 0; index /= 10)
        number[i] = (char)('0' + index % 10);
    const char *at = line.data, *end = line.data + line.size;
#define SKIP(literal) at = skip_text(at, end, literal, sizeof literal - 1)
    SKIP("{\"index\":");
    at = skip_text(at, end, number, width);
    SKIP(",\"event_sha256\":\"");
    cx_hex_encode(cx_bytes_from(event_sha256->bytes, sizeof event_sha256->bytes), hex);
    at = skip_text(at, end, hex, sizeof hex);
    SKIP("\",\"prev_hash\":\"");
    if (prev != NULL) {
        cx_hex_encode(cx_bytes_from(prev->bytes, sizeof prev->bytes), hex);
        at = skip_text(at, end, hex, sizeof hex);
    }
    SKIP("\",\"hash\":\"");
    cx_hex_encode(cx_bytes_from(hash->bytes, sizeof hash->bytes), hex);
    at = skip_text(at, end, hex, sizeof hex);
    SKIP("\"}");
#undef SKIP
    return at == end;
}

static void check_link(stream *s, const cx_digest *event_sha256)
{
    cx_run_verification *v = s->v;
    const cx_digest *prev = s->count == 1 ? NULL : &s->head;
    cx_digest hash = cx_run_chain_hash(s->count, prev, event_sha256);
    cx_str line;
    if (s->chain_there && !s->chain_broken) {
        if (!cx_run_next_line(&s->chain, &line)) {
            s->chain_broken = true;
            cx_run_verify_add_finding(v, CX_RUN_CHAIN_INVALID, CHAIN, "event %llu has no link",
                                      (unsigned long long)s->count);
        } else if (!plain_link(line, s->count, event_sha256, prev, &hash) &&
                   !same_link(s, line, event_sha256, prev, &hash)) {
            s->chain_broken = true; /* what follows cannot fit either */
            cx_run_verify_add_finding(v, CX_RUN_CHAIN_INVALID, CHAIN,
                                      "line %llu is not the link of its event",
                                      (unsigned long long)s->count);
        }
    }
    s->head = hash;
    const cx_run_witness *witness = v->witness;
    if (witness->has_events && witness->event_count != 0 &&
        (s->count > witness->event_count || !cx_digest_eq(&witness->events[s->count - 1], &hash)))
        cx_run_verify_add_finding(v, CX_RUN_LEDGER_MISSING, EVENTS,
                                  "the ledger has no entry of event %llu with these bytes",
                                  (unsigned long long)s->count);
}

static bool is_inside(cx_str whole, cx_str part)
{
    uintptr_t start = (uintptr_t)whole.data, at = (uintptr_t)part.data;
    return part.size == 0 || (at >= start && at - start <= whole.size);
}

static cx_status check_lines(stream *s, cx_str events)
{
    cx_run_verification *v = s->v;
    cx_str line, whole = events;
    while (cx_run_next_line(&events, &line)) {
        cx_json event;
        cx_digest digest = cx_digest_of(cx_str_bytes(line));
        if (++s->count > CX_RUN_EVENTS_MAX)
            return cx_fail(v->err, CX_E_LIMIT, "events.jsonl has more than %d lines",
                           CX_RUN_EVENTS_MAX);
        check_link(s, &digest);
        cx_arena_mark mark = cx_arena_mark_now(&s->scratch);
        cx_status status = cx_json_parse(&s->parser, line, &s->scratch, &event, v->err);
        if (status.code == CX_E_NOMEM)
            return status;
        if (cx_failed(status) || event.type != CX_JSON_OBJECT)
            cx_run_verify_add_finding(v, CX_RUN_EVENT_NOT_JSON, EVENTS,
                                      "line %llu is no JSON object", (unsigned long long)s->count);
        else
            CX_TRY(check_event(s, &event, s->count));
        /* What is compared with the next line stays; it mostly lies in the file itself. */
        if (is_inside(whole, s->last_ts) && (s->trace_stays || is_inside(whole, s->trace_id)))
            cx_arena_reset(&s->scratch, mark);
    }
    if (events.size != 0)
        cx_run_verify_add_finding(v, CX_RUN_EVENTS_TORN, EVENTS, "the last line has no end");
    if (s->chain_there && !s->chain_broken && s->chain.size != 0)
        cx_run_verify_add_finding(v, CX_RUN_CHAIN_INVALID, CHAIN,
                                  "found more than the events' links");
    if (v->witness->has_events && v->witness->event_count > s->count)
        cx_run_verify_add_finding(
            v, CX_RUN_LEDGER_MISSING, EVENTS, "the ledger knows %llu events, %llu are here",
            (unsigned long long)v->witness->event_count, (unsigned long long)s->count);
    return CX_SUCCESS;
}

cx_status cx_run_verify_events(cx_run_verification *v)
{
    stream s = {.v = v,
                .trace_id = v->trace_id.data != NULL ? v->trace_id : CX_STR(""),
                .trace_stays = true};
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_bytes events, chain;
    char hex[65] = {0};
    limits.depth = CX_RUN_JSON_DEPTH_MAX;
    limits.bytes = CX_RUN_EVENT_BYTES_MAX;
    CX_TRY(cx_run_verify_bytes(v, EVENTS, CX_RUN_EVENTS_BYTES_MAX, &events));
    CX_TRY(cx_run_verify_bytes(v, CHAIN, CX_RUN_EVENTS_BYTES_MAX, &chain));
    s.chain_there = chain.data != NULL;
    s.chain = cx_bytes_str(chain);
    if (!s.chain_there)
        cx_run_verify_add_finding(v, CX_RUN_CHAIN_MISSING, CHAIN, "the events have no chain");
    cx_arena_init(&s.scratch, v->arena->alloc, 0);
    cx_json_parser_init(&s.parser, v->arena->alloc, &limits);
    cx_status status = check_lines(&s, cx_bytes_str(events));
    cx_json_parser_done(&s.parser);
    cx_arena_done(&s.scratch);
    v->out->event_count = s.count;
    if (s.count != 0)
        cx_hex_encode(cx_bytes_from(s.head.bytes, sizeof s.head.bytes), hex);
    v->out->chain_head = cx_arena_copy_str(v->arena, cx_str_z(hex));
    if (!cx_failed(status) && v->out->chain_head.data == NULL)
        status = cx_fail_nomem(v->err);
    return status;
}

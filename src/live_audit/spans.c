/*
 * spans.c - tool spans that exporters sent while a session ran, and the decisions of their calls
 * (live.md §10.7).
 *
 * A span of a tool alone does not prove that the tool ran: agents send one for a refused call, too.
 * It ran when a span below it says so (Claude Code, Codex), or when the agent sends spans of calls
 * that ran only (Gemini CLI).  A missing span proves nothing, since exporters drop them.
 */
#include <string.h>

#include "import/api.h"
#include "live_audit/parts.h"
#include "recorder/api.h"

#define SPANS_MAX 200000 /* of tools, while a session ran */
/* Spans arrive after what they tell of, in batches. */
#define LATE_NS (INT64_C(15) * 60 * 1000000000)
#define ID_HEX 48 /* of a trace and a span */

typedef struct tool_span {
    cx_str key, call_id, tool, session; /* key: trace and span */
    uint64_t seq;
    bool ran;
} tool_span;

typedef struct span_reader {
    cx_live_audit *audit;
    CX_VEC(tool_span) tools;
    cx_map by_id;    /* trace and span -> place in tools */
    cx_map executed; /* trace and span that something ran below of */
    cx_arena keep, scratch;
    bool is_cut;
} span_reader;

/* --- spans ------------------------------------------------------------------------------------ */

static cx_str attribute(const cx_json *span, const char *name)
{
    const cx_json *list = cx_json_get_typed(span, CX_STR("attributes"), CX_JSON_ARRAY);
    for (uint32_t i = 0; list != NULL && i < list->count; i++)
        if (cx_str_is(CX_JSON_GET_STR(&list->items[i], "key"), name))
            return CX_JSON_GET_STR(CX_JSON_GET(&list->items[i], "value"), "stringValue");
    return (cx_str){NULL, 0};
}

static cx_str first_attribute(const cx_json *span, const char *const *names)
{
    cx_str text = {NULL, 0};
    for (; *names != NULL && text.size == 0; names++)
        text = attribute(span, *names);
    return text;
}

/* Ids in hex: 32 digits of the trace, 16 of a span.  Empty when they are not that. */
static cx_str key_of(span_reader *r, const cx_json *span, const char *member)
{
    cx_str trace = CX_JSON_GET_STR(span, "traceId"), id = cx_json_get_str(span, cx_str_z(member));
    if (trace.size + id.size != ID_HEX || trace.size != 32)
        return CX_STR("");
    return cx_arena_printf(&r->keep, "%.*s%.*s", (int)trace.size, trace.data, (int)id.size,
                           id.data);
}

static bool is_execution(cx_str name)
{
    return cx_str_is(name, "claude_code.tool.execution") ||
           cx_str_is(name, "unified_exec.exec_command");
}

static cx_status add_tool(span_reader *r, const cx_json *span, cx_str call_id, uint64_t seq,
                          cx_err *err)
{
    static const char *const tools[] = {"gen_ai.tool.name", "tool_name", "function_name", NULL};
    static const char *const sessions[] = {"session.id", "gen_ai.conversation.id",
                                           "conversation.id", NULL};
    uint64_t *place;
    bool is_new;
    cx_str key = key_of(r, span, "spanId");
    if (key.data == NULL)
        return cx_fail_nomem(err);
    if (key.size == 0)
        return CX_SUCCESS;
    if (r->tools.count == SPANS_MAX) {
        r->is_cut = true;
        return CX_SUCCESS;
    }
    CX_TRY(cx_map_put(&r->by_id, key, &place, &is_new, err));
    if (!is_new)
        return CX_SUCCESS; /* sent twice */
    tool_span *tool = cx_vec_push(&r->tools, r->audit->alloc);
    if (tool == NULL)
        return cx_fail_nomem(err);
    *place = r->tools.count - 1;
    bool is_gemini = cx_str_is(CX_JSON_GET_STR(span, "name"), "tool_call") ||
                     cx_str_is(attribute(span, "gen_ai.operation.name"), "tool_call");
    *tool = (tool_span){.key = key,
                        .call_id = cx_arena_copy_str(&r->keep, call_id),
                        .tool = cx_arena_copy_str(&r->keep, first_attribute(span, tools)),
                        .session = cx_arena_copy_str(&r->keep, first_attribute(span, sessions)),
                        .seq = seq,
                        .ran = is_gemini};
    return tool->call_id.data == NULL || tool->tool.data == NULL || tool->session.data == NULL
               ? cx_fail_nomem(err)
               : CX_SUCCESS;
}

static cx_status read_span(span_reader *r, const cx_json *span, uint64_t seq, cx_err *err)
{
    static const char *const ids[] = {"gen_ai.tool.call.id", "gen_ai.tool.call_id", "call_id",
                                      NULL};
    cx_str call_id = first_attribute(span, ids);
    if (is_execution(CX_JSON_GET_STR(span, "name"))) {
        uint64_t *value;
        bool is_new;
        cx_str parent = key_of(r, span, "parentSpanId");
        if (parent.data == NULL)
            return cx_fail_nomem(err);
        return parent.size == 0 ? CX_SUCCESS
                                : cx_map_put(&r->executed, parent, &value, &is_new, err);
    }
    return call_id.size == 0 ? CX_SUCCESS : add_tool(r, span, call_id, seq, err);
}

/* A request that was accepted can be read; one that cannot says nothing. */
static cx_status read_request(span_reader *r, cx_bytes payload, bool is_json, uint64_t seq,
                              cx_err *err)
{
    cx_otlp_request request;
    cx_err ignored;
    cx_status status =
        cx_otlp_scan(CX_OTLP_TRACES, is_json, payload, &r->scratch, &request, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    for (size_t i = 0; !cx_failed(status) && i < request.count; i++) {
        cx_json span;
        if (request.records[i].fault != CX_OTLP_FINE)
            continue;
        CX_TRY(cx_otlp_meaning(CX_OTLP_TRACES, request.records[i].value, &r->scratch, &span, err));
        CX_TRY(read_span(r, &span, seq, err));
    }
    return CX_SUCCESS;
}

/* The newest requests first: those of the session are near the end, mostly. */
static cx_status read_requests(span_reader *r, cx_err *err)
{
    const cx_live_audit_journal *journal = &r->audit->journal;
    cx_actor_info info;
    cx_err ignored;
    if (cx_failed(cx_home_actor(r->audit->home, CX_STR(CX_OTLP_ACTOR), &info, &ignored)))
        return CX_SUCCESS; /* nothing was ever sent */
    for (uint64_t seq = info.entry_count; seq-- > 0 && !r->is_cut;) {
        cx_entry_view entry;
        bool is_logs, is_json;
        cx_arena_mark mark = cx_arena_mark_now(&r->scratch);
        CX_TRY(cx_home_entry(r->audit->home, CX_STR(CX_OTLP_ACTOR), seq, &r->scratch, &entry, err));
        int64_t at = entry.entry.created_at_ns;
        if (at < journal->first_ns)
            break;
        if (at - LATE_NS <= journal->last_ns && !entry.payload_erased &&
            cx_recorder_otlp_kind(entry.entry.kind, &is_logs, &is_json) && !is_logs)
            CX_TRY(read_request(r, entry.payload, is_json, seq, err));
        cx_arena_reset(&r->scratch, mark);
    }
    return CX_SUCCESS;
}

/* --- comparing -------------------------------------------------------------------------------- */

static void check_span(cx_live_audit *audit, const tool_span *span)
{
    const cx_live_audit_journal *journal = &audit->journal;
    const uint64_t *first = cx_map_find(&journal->by_id, span->call_id);
    bool is_own = span->session.size != 0 && cx_str_eq(span->session, audit->report->session);
    uint32_t at = first == NULL ? CX_LIVE_AUDIT_NONE : (uint32_t)*first;
    const cx_live_audit_decision *newest = NULL;
    int size = (int)(span->tool.size > 80 ? 80 : span->tool.size);
    if (at == CX_LIVE_AUDIT_NONE && is_own && cx_live_audit_has_ids(journal->agent)) {
        cx_live_audit_add(audit, CX_LIVE_AUDIT_UNDECIDED_SPAN, NULL, NULL, span->call_id,
                          "a span says that %.*s ran (entry %llu of otel), and no hook decided it",
                          size, span->tool.data, (unsigned long long)span->seq);
        return;
    }
    for (unsigned looked = 0; at != CX_LIVE_AUDIT_NONE && looked < 64; looked++) {
        newest = &journal->decisions.items[at];
        at = newest->next;
    }
    if (newest != NULL && newest->verdict == CX_LIVE_DENY)
        cx_live_audit_add(
            audit, CX_LIVE_AUDIT_DENIED_CALL_RAN, NULL, &newest->seq, span->call_id,
            "%.*s was denied (%.*s), and a span says that it ran (entry %llu of otel)", size,
            span->tool.data, (int)(newest->rule.size > 8 ? 8 : newest->rule.size),
            newest->rule.data, (unsigned long long)span->seq);
}

static void check_spans(span_reader *r)
{
    for (size_t i = 0; i < r->tools.count; i++) {
        tool_span *span = &r->tools.items[i];
        if (span->ran || cx_map_find(&r->executed, span->key) != NULL)
            check_span(r->audit, span);
    }
    if (r->is_cut)
        cx_live_audit_add(
            r->audit, CX_LIVE_AUDIT_WORK_TREE_UNREAD, NULL, NULL, CX_STR(CX_OTLP_ACTOR),
            "more than %d spans of tools: the older ones are not compared", SPANS_MAX);
}

cx_status cx_live_audit_spans(cx_live_audit *audit, cx_err *err)
{
    span_reader r = {.audit = audit};
    cx_arena_init(&r.keep, audit->alloc, 0);
    cx_arena_init(&r.scratch, audit->alloc, 0);
    cx_map_init(&r.by_id, audit->alloc, audit->seed);
    cx_map_init(&r.executed, audit->alloc, audit->seed);
    cx_status status = read_requests(&r, err);
    if (!cx_failed(status))
        check_spans(&r);
    cx_vec_done(&r.tools, audit->alloc);
    cx_map_done(&r.by_id);
    cx_map_done(&r.executed);
    cx_arena_done(&r.keep);
    cx_arena_done(&r.scratch);
    return status;
}

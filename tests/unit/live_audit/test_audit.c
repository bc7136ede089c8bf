/*
 * test_audit.c - audits over journals that are made here: what the journal alone says, connections
 * of the egress proxy, and that every finding has its words (docs/formats/live.md §10).
 */
#include "live_audit/api.h"
#include "recorder/api.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

static void take(kit *k, const char *text)
{
    cx_arena arena;
    cx_err err;
    cx_live_outcome outcome;
    const cx_live_options options = {.agent = CX_LIVE_CLAUDE,
                                     .mode = CX_LIVE_ENFORCE,
                                     .via = "process",
                                     .home = k->path,
                                     .user_home = "/home/u"};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_live_take(k->home, &options, cx_str_z(text), &arena, &outcome, &err), &err);
    cx_arena_done(&arena);
}

#define EVENT(name, more) \
    "{\"session_id\":\"s1\",\"cwd\":\"/\",\"hook_event_name\":\"" name "\"" more "}"
#define CALL(id, command)                                                 \
    ",\"tool_name\":\"Bash\",\"tool_use_id\":\"" id "\",\"tool_input\":{" \
    "\"command\":\"" command "\"}"

static void add(kit *k, const char *actor, const char *kind, const char *payload)
{
    cx_txn *txn;
    cx_err err;
    uint64_t seq;
    const cx_io *io = cx_home_io(k->home);
    CHECK_STATUS(cx_txn_begin(k->home, cx_str_z(actor), &txn, &err), &err);
    const cx_entry_draft draft = {.kind = cx_str_z(kind),
                                  .created_at_ns = (int64_t)io->wall_ns(io),
                                  .payload = cx_str_bytes(cx_str_z(payload)),
                                  .committed = true};
    CHECK_STATUS(cx_txn_entry(txn, &draft, &seq, &err), &err);
    CHECK_STATUS(cx_txn_commit(txn, &err), &err);
}

/* "name:count name:count", in the order of the table. */
static void audit(kit *k, cx_verdict verdict, const char *expected)
{
    cx_arena arena;
    cx_err err;
    cx_live_audit_report report;
    cx_json json;
    cx_buf text, sarif;
    bool is_first = true;
    const cx_live_audit_options options = {.no_work_tree = true};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&sarif, cx_alloc_default());
    CHECK_STATUS(
        cx_live_audit_session(k->home, &options, CX_STR("s1"), NULL, &arena, &report, &err), &err);
    for (cx_live_audit_kind kind = 0; kind < CX_LIVE_AUDIT_KIND_COUNT; kind++)
        if (report.counts[kind] != 0)
            cx_buf_printf(&text, "%s%s:%llu", text.size == 0 ? "" : " ", cx_live_audit_name(kind),
                          (unsigned long long)report.counts[kind]);
    if (!cx_str_is(cx_buf_str(&text), expected))
        cx_test_fail(__FILE__, __LINE__, "found '%.*s', expected '%s'", (int)text.size,
                     (const char *)text.data, expected);
    CHECK_INT(report.verdict, verdict);
    CHECK_STATUS(cx_live_audit_json(&report, &arena, &json, &err), &err);
    cx_live_audit_sarif_begin(&sarif);
    CHECK_STATUS(cx_live_audit_sarif_add(&sarif, &report, &is_first, &err), &err);
    cx_live_audit_sarif_end(&sarif, report.verdict);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&sarif), &arena, &json, &err), &err);
    cx_buf_done(&text);
    cx_buf_done(&sarif);
    cx_arena_done(&arena);
}

CX_TEST(a_journal_alone)
{
    kit k;
    CHECK(kit_init(&k, "audit_journal", CX_SCHEME_CORTEX_1));
    take(&k, EVENT("SessionStart", ",\"source\":\"startup\""));
    take(&k, EVENT("PreToolUse", CALL("t1", "ls")));
    take(&k, EVENT("PostToolUse", CALL("t1", "ls")));
    audit(&k, CX_INDETERMINATE, "no_transcript:1");
    take(&k, EVENT("PostToolUse", CALL("t2", "ls")));
    audit(&k, CX_BROKEN, "undecided_result:1 no_transcript:1");
    take(&k, EVENT("PreToolUse", CALL("t3", "rm -rf x")));
    take(&k, EVENT("PostToolUse", CALL("t3", "rm -rf x")));
    audit(&k, CX_BROKEN, "undecided_result:1 denied_call_ran:1 no_transcript:1");
    kit_done(&k);
}

CX_TEST(connections)
{
    kit k;
    CHECK(kit_init(&k, "audit_egress", CX_SCHEME_CORTEX_1));
    take(&k, EVENT("SessionStart", ",\"source\":\"startup\""));
    add(&k, "exec:local", "exec.start", "{\"v\":1,\"exec\":\"a\",\"cwd\":\"/w\"}");
    add(&k, "exec:local", "egress.connection",
        "{\"exec\":\"a\",\"host\":\"h.org\",\"verdict\":\"allow\",\"rule\":\"E00\"}");
    add(&k, "exec:local", "egress.connection",
        "{\"exec\":\"a\",\"host\":\"no.org\",\"verdict\":\"refuse\",\"rule\":\"E02\"}");
    /* Of a command that is not known here, and of another kind. */
    add(&k, "exec:local", "egress.connection",
        "{\"exec\":\"b\",\"host\":\"h.org\",\"verdict\":\"allow\",\"rule\":\"E00\"}");
    add(&k, "exec:local", "egress.open", "{\"exec\":\"a\",\"host\":\"h.org\"}");
    add(&k, "exec:local", "egress.connection", "no JSON");
    take(&k, EVENT("SessionEnd", ",\"reason\":\"x\""));
    add(&k, "exec:local", "egress.connection",
        "{\"exec\":\"a\",\"host\":\"later.org\",\"verdict\":\"allow\",\"rule\":\"E00\"}");
    audit(&k, CX_INDETERMINATE, "no_transcript:1 egress_without_call:1 egress_denied:1");
    kit_done(&k);
    CHECK(kit_init(&k, "audit_egress_explained", CX_SCHEME_CORTEX_1));
    take(&k, EVENT("PreToolUse", CALL("t1", "ls")));
    add(&k, "exec:local", "exec.start", "{\"v\":1,\"exec\":\"a\",\"cwd\":\"/w\"}");
    add(&k, "exec:local", "egress.connection",
        "{\"exec\":\"a\",\"host\":\"h.org\",\"verdict\":\"allow\",\"rule\":\"E00\"}");
    take(&k, EVENT("PostToolUse", CALL("t1", "ls")));
    audit(&k, CX_INDETERMINATE, "no_transcript:1 first_call_start:1");
    kit_done(&k);
}

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define ATTRIBUTE(key, text) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" text "\"}}"
#define SPANS(list) "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[" list "]}]}]}"
#define TOOL_SPAN(id, call, session)                                                 \
    "{\"traceId\":\"" TRACE "\",\"spanId\":\"00000000000000" id "\",\"name\":\"t\"," \
    "\"attributes\":[" ATTRIBUTE("gen_ai.tool.call.id", call) "," ATTRIBUTE(         \
        "session.id", session) "," ATTRIBUTE("gen_ai.tool.name", "Bash") "]}"
#define RAN_SPAN(id, parent)                                                     \
    "{\"traceId\":\"" TRACE "\",\"spanId\":\"00000000000000" id "\","            \
    "\"parentSpanId\":\"00000000000000" parent "\",\"name\":\"claude_code.tool." \
    "execution\"}"

CX_TEST(spans)
{
    kit k;
    CHECK(kit_init(&k, "audit_spans", CX_SCHEME_CORTEX_1));
    take(&k, EVENT("SessionStart", ",\"source\":\"startup\""));
    take(&k, EVENT("PreToolUse", CALL("t1", "ls")));
    take(&k, EVENT("PreToolUse", CALL("t2", "rm -rf x")));
    /* Decided; refused; of another session; not shown to have run. */
    add(&k, "otel", "otlp.traces.json",
        SPANS(TOOL_SPAN("01", "t1", "s1") "," RAN_SPAN("a1", "01")));
    add(&k, "otel", "otlp.traces.json", SPANS(TOOL_SPAN("02", "t2", "s1")));
    add(&k, "otel", "otlp.traces.json",
        SPANS(TOOL_SPAN("03", "t3", "s2") "," RAN_SPAN("a3", "03")));
    add(&k, "otel", "otlp.traces.json", SPANS(TOOL_SPAN("04", "t4", "s1")));
    add(&k, "otel", "otlp.traces.json", "no JSON");
    add(&k, "otel", "otlp.logs.json", "{}");
    audit(&k, CX_INDETERMINATE, "no_transcript:1");
    /* The child may come before, in another request, and twice. */
    add(&k, "otel", "otlp.traces.json", SPANS(RAN_SPAN("a5", "05") "," RAN_SPAN("a4", "04")));
    add(&k, "otel", "otlp.traces.json", SPANS(RAN_SPAN("a5", "05")));
    add(&k, "otel", "otlp.traces.json", SPANS(TOOL_SPAN("05", "t5", "s1")));
    audit(&k, CX_BROKEN, "undecided_span:2 no_transcript:1");
    add(&k, "otel", "otlp.traces.json", SPANS(RAN_SPAN("a2", "02")));
    audit(&k, CX_BROKEN, "undecided_span:2 denied_call_ran:1 no_transcript:1");
    kit_done(&k);
}

CX_TEST(words)
{
    for (cx_live_audit_kind kind = 0; kind < CX_LIVE_AUDIT_KIND_COUNT; kind++) {
        CHECK(strlen(cx_live_audit_name(kind)) > 5 && strlen(cx_live_audit_title(kind)) > 10);
        CHECK(strchr(cx_live_audit_title(kind), '"') == NULL); /* SARIF has them as they are */
    }
    CHECK_INT(cx_live_audit_worse(CX_HOLDS, CX_INDETERMINATE), CX_INDETERMINATE);
    CHECK_INT(cx_live_audit_worse(CX_BROKEN, CX_INDETERMINATE), CX_BROKEN);
    CHECK_INT(cx_live_audit_worse(CX_HOLDS, CX_HOLDS), CX_HOLDS);
}

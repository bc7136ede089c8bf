#include "tests/unit/import/util.h"

/* One document around spans; attributes are {"key":K,"value":{...}} lists. */
#define DOC(spans)                                                                          \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","         \
    "\"value\":{\"stringValue\":\"svc\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"lib\"}," \
    "\"spans\":[" spans "]}]}]}"
#define T1 "\"traceId\":\"0102030405060708090a0b0c0d0e0f10\""
#define AT(time) "\"startTimeUnixNano\":\"" time "\""
#define KV(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define AGENT(name) KV("gen_ai.agent.name", name)
#define OP(name) KV("gen_ai.operation.name", name)
#define SPAN(id, parent, time, attributes)                     \
    "{" T1 ",\"spanId\":\"" id "\",\"parentSpanId\":\"" parent \
    "\"," AT(time) ",\"name\":"                                \
                   "\"n\",\"attributes\":[" attributes "]}"
#define A "00000000000000aa"
#define B "00000000000000bb"
#define C "00000000000000cc"

/* clang-format off */
#define TOOL_ATTRIBUTES                                                              \
    OP("execute_tool") "," KV("gen_ai.tool.name", "search") ","                      \
    KV("gen_ai.tool.call.id", "c1") "," KV("gen_ai.tool.call.arguments", "abc")
#define CHAT_ATTRIBUTES                                                              \
    OP("chat") "," KV("gen_ai.system", "acme") "," KV("gen_ai.request.model", "m1")  \
    ",{\"key\":\"gen_ai.usage.prompt_tokens\",\"value\":{\"intValue\":\"12\"}}"      \
    ",{\"key\":\"gen_ai.usage.output_tokens\",\"value\":{\"intValue\":7}}"
/* clang-format on */

CX_TEST(otlp_one_node_a_span_and_one_a_file)
{
    imported in;
    import_text(
        &in, "otlp",
        DOC(SPAN(A, "", "1700000000000000001", AGENT("planner") "," OP("invoke_agent")) "," SPAN(
            B, A, "1700000000000000002", OP("chat"))));
    CHECK_INT(in.count, 3);
    CHECK_INT(in.summary.total.records, 2);
    CHECK_STR(node_text(&in, 0, "/agent_id"), "importer");
    CHECK_STR(node_text(&in, 0, "/event/kind"), "run");
    CHECK_STR(node_text(&in, 0, "/event/records"), "2");
    CHECK_STR(node_text(&in, 1, "/agent_id"), "planner");
    CHECK_STR(node_text(&in, 1, "/event/kind"), "run");
    CHECK_STR(node_text(&in, 1, "/event/src_id"), A);
    CHECK_STR(node_text(&in, 1, "/event/t_ns"), "1700000000000000001");
    CHECK_STR(node_text(&in, 1, "/timestamp"), "1700000000.0");
    CHECK(node_has_parent(&in, 1, 0));
    CHECK_STR(node_text(&in, 2, "/agent_id"), "planner"); /* the nearest ancestor's */
    CHECK_STR(node_text(&in, 2, "/event/kind"), "reason");
    CHECK_STR(node_text(&in, 2, "/event/src_parent"), A);
    CHECK(node_has_parent(&in, 2, 1));
    CHECK_INT(node_parent_count(&in, 2), 1);
    CHECK_STR(node_text(&in, 2, "/fork_type"), "null");
    imported_done(&in);
}

CX_TEST(otlp_spans_go_out_by_nanosecond_and_parents_first)
{
    imported in;
    /* Listed by end: the root last, the later sibling first. */
    import_text(&in, "otlp",
                DOC(SPAN(C, A, "1700000000000000003", "") "," SPAN(
                    B, A, "1700000000000000002", "") "," SPAN(A, "", "1700000000000000001", "")));
    CHECK_STR(node_text(&in, 1, "/event/src_id"), A);
    CHECK_STR(node_text(&in, 2, "/event/src_id"), B);
    CHECK_STR(node_text(&in, 3, "/event/src_id"), C);
    CHECK_INT(in.time_errors, 0);
    CHECK_STR(node_text(&in, 3, "/event/at/index"), "0");
    imported_done(&in);
}

CX_TEST(otlp_a_parent_that_starts_later_stays_first_and_is_labelled)
{
    imported in;
    import_text(&in, "otlp", DOC(SPAN(B, A, "1000000000", "") "," SPAN(A, "", "5000000000", "")));
    CHECK_STR(node_text(&in, 1, "/event/src_id"), A);
    CHECK(node_has_issue(&in, 2, "parent_after_child"));
    CHECK(!node_has_issue(&in, 1, "parent_after_child"));
    CHECK_INT(in.time_errors, 1); /* strict verification reports it */
    imported_done(&in);
}

CX_TEST(otlp_self_parent_is_left_out)
{
    imported in;
    import_text(&in, "otlp", DOC(SPAN(A, A, "1", "")));
    CHECK_INT(in.count, 2);
    CHECK(node_has_issue(&in, 1, "parent_cycle"));
    CHECK(node_has_parent(&in, 1, 0));
    CHECK_INT(node_parent_count(&in, 1), 1);
    imported_done(&in);
}

CX_TEST(otlp_cycle_of_two_loses_one_edge)
{
    imported in;
    import_text(&in, "otlp", DOC(SPAN(A, B, "1", "") "," SPAN(B, A, "1", "")));
    CHECK_INT(in.count, 3);
    CHECK_INT(issue_count(&in, CX_ISSUE_PARENT_CYCLE), 1);
    CHECK(node_has_issue(&in, 1, "parent_cycle"));
    CHECK(node_has_parent(&in, 2, 1));
    imported_done(&in);
}

CX_TEST(otlp_duplicate_ids_keep_both_nodes_and_mean_the_first)
{
    imported in;
    import_text(&in, "otlp",
                DOC(SPAN(A, "", "1", AGENT("one")) "," SPAN(A, "", "2",
                                                            AGENT("two")) "," SPAN(B, A, "3", "")));
    CHECK_INT(in.count, 4);
    CHECK(!node_has_issue(&in, 1, "duplicate_id"));
    CHECK(node_has_issue(&in, 2, "duplicate_id"));
    CHECK(node_has_parent(&in, 3, 1));
    CHECK(!node_has_parent(&in, 3, 2));
    CHECK_STR(node_text(&in, 3, "/agent_id"), "one");
    imported_done(&in);
}

CX_TEST(otlp_dangling_parent_hangs_on_the_file)
{
    imported in;
    import_text(&in, "otlp", DOC(SPAN(A, "", "1", "") "," SPAN(B, C, "2", "")));
    CHECK(node_has_issue(&in, 2, "dangling_parent"));
    CHECK(node_has_parent(&in, 2, 0)); /* in place of the parent */
    CHECK(node_has_parent(&in, 2, 1)); /* the branch's predecessor */
    CHECK_STR(node_text(&in, 2, "/event/src_parent"), C);
    imported_done(&in);
}

CX_TEST(otlp_links_reach_into_other_traces_parents_do_not)
{
    imported in;
    import_text(&in, "otlp",
                DOC(SPAN(A, "", "1",
                         AGENT("one")) ",{\"traceId\":"
                                       "\"ffffffffffffffffffffffffffffffff\","
                                       "\"spanId\":\"" B "\",\"parentSpanId\":\"" A
                                       "\"," AT("2") ",\"links\":[{" T1 ",\"spanId\":\"" A
                                                     "\"}],\"attributes\":[" AGENT("two") "]}"));
    CHECK(node_has_issue(&in, 2, "dangling_parent"));
    CHECK(node_has_parent(&in, 2, 1)); /* by the link */
    CHECK(node_has_parent(&in, 2, 0));
    imported_done(&in);
}

CX_TEST(otlp_hex_ids_meet_in_either_case_and_as_base64)
{
    imported in;
    /* The same 16 and 8 bytes, once as hex and once as a protobuf printer writes bytes. */
    import_text(
        &in, "otlp",
        DOC("{\"traceId\":\"0102030405060708090A0B0C0D0E0F10\",\"spanId\":"
            "\"00000000000000AA\"," AT(
                "1") "},"
                     "{\"traceId\":\"AQIDBAUGBwgJCgsMDQ4PEA==\",\"spanId\":\"AAAAAAAAALs=\","
                     "\"parentSpanId\":\"AAAAAAAAAKo=\"," AT("2") "}"));
    CHECK_INT(issue_count(&in, CX_ISSUE_DANGLING_PARENT), 0);
    CHECK(node_has_parent(&in, 2, 1));
    CHECK_STR(node_text(&in, 1, "/event/src_id"), "00000000000000AA"); /* as written */
    CHECK_STR(node_text(&in, 1, "/event/id_encoding"), "(absent)");
    CHECK_STR(node_text(&in, 2, "/event/id_encoding"), "base64");
    imported_done(&in);
}

CX_TEST(otlp_handing_over_is_a_natural_fork)
{
    imported in;
    import_text(
        &in, "otlp",
        DOC(SPAN(A, "", "1", AGENT("boss") "," OP("invoke_agent")) "," SPAN(
            B, A, "2", AGENT("worker") "," OP("invoke_agent")) "," SPAN(C, B, "3", OP("chat"))));
    CHECK_STR(node_text(&in, 1, "/fork_type"), "null"); /* no agent handed over to the first */
    CHECK_STR(node_text(&in, 2, "/fork_type"), "natural");
    CHECK_STR(node_text(&in, 3, "/fork_type"), "null");
    CHECK_STR(node_text(&in, 3, "/agent_id"), "worker");
    imported_done(&in);
}

CX_TEST(otlp_agents_fall_back_to_the_service)
{
    imported in;
    import_text(&in, "otlp",
                DOC(SPAN(A, "", "1", "") "," SPAN(B, "", "2", KV("gen_ai.agent.id", "7up"))));
    CHECK_STR(node_text(&in, 1, "/agent_id"), "svc");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "_7up");
    imported_done(&in);
    import_text(&in, "otlp",
                "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"spanId\":\"" A "\"}]}]}]}");
    CHECK_STR(node_text(&in, 1, "/agent_id"), "unknown");
    CHECK(node_has_issue(&in, 1, "no_time"));
    imported_done(&in);
}

CX_TEST(otlp_tool_calls_and_usage_are_derived)
{
    imported in;
    static const char text[] = DOC("{" T1 ",\"spanId\":\"" A "\"," AT(
        "1") ",\"attributes\":[" TOOL_ATTRIBUTES "],\"status\":{\"code\":2}},"
             "{" T1 ",\"spanId\":\"" B "\"," AT("2") ",\"attributes\":[" CHAT_ATTRIBUTES "]}");
    import_text(&in, "otlp", text);
    CHECK_STR(node_text(&in, 1, "/event/kind"), "act");
    CHECK_STR(node_text(&in, 1, "/event/tool"), "search");
    CHECK_STR(node_text(&in, 1, "/event/call_id"), "c1");
    CHECK_STR(node_text(&in, 1, "/event/status"), "error");
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/call/c1/status"), "error");
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/call/c1/tool"), "search");
    /* SHA-256 of the text abc, first 16 digits (FIPS 180-4's own example). */
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/call/c1/args"), "ba7816bf8f01cfea");
    CHECK_STR(node_text(&in, 1, "/state_delta/beliefs/span_ok/value"), "false");
    CHECK_STR(node_text(&in, 1, "/state_delta/beliefs/span_ok/confidence"), "1.0");
    CHECK_STR(node_text(&in, 2, "/event/model"), "m1");
    CHECK_STR(node_text(&in, 2, "/event/provider"), "acme");
    CHECK_STR(node_text(&in, 2, "/event/usage/input_tokens"), "12");
    CHECK_STR(node_text(&in, 2, "/event/usage/output_tokens"), "7");
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
    imported_done(&in);
}

CX_TEST(otlp_top_is_the_document_without_spans)
{
    imported in;
    import_text(&in, "otlp",
                "{\"extra\":1.10,\"resourceSpans\":[{\"schemaUrl\":\"u\"},"
                "{\"resource\":{\"r\":2},\"instrumentationLibrarySpans\":["
                "{\"instrumentationLibrary\":{\"name\":\"old\"},\"spans\":[{\"spanId\":\"" A
                "\"}]},{\"spans\":[]}]}]}");
    CHECK_INT(in.count, 2);
    CHECK_STR(node_text(&in, 0, "/event/raw_top/extra"), "1.1");
    CHECK_STR(node_text(&in, 0, "/event/raw_top/resourceSpans/0/schemaUrl"), "u");
    CHECK_STR(node_text(&in, 0,
                        "/event/raw_top/resourceSpans/1/instrumentationLibrarySpans/0/"
                        "instrumentationLibrary/name"),
              "old");
    CHECK(node_get(&in, 0, "/event/raw_top/resourceSpans/1/instrumentationLibrarySpans/0/spans") ==
          NULL);
    CHECK_STR(node_text(&in, 1, "/event/resource"), "1");
    CHECK_STR(node_text(&in, 1, "/event/scope"), "0");
    CHECK_STR(node_text(&in, 1, "/event/raw/spanId"), A);
    imported_done(&in);
}

CX_TEST(otlp_lines_are_batches_and_keep_each_head_once)
{
    imported in;
    import_text(&in, "otlp",
                DOC(SPAN(A, "", "1", "") "," SPAN(B, A, "2", "")) "\n" DOC(
                    SPAN(C, B, "3", "")) "\n{\"resourceSpans\":[{\"other\":1,\"scopeSpans\":[{"
                                         "\"spans\":[{\"spanId\":\"00000000000000dd\"}]}]}]}\n");
    CHECK_INT(in.count, 5);
    CHECK_INT(node_get(&in, 0, "/event/raw_top/batches")->count, 2);
    CHECK_STR(node_text(&in, 1, "/event/at/line"), "1");
    CHECK_STR(node_text(&in, 1, "/event/at/index"), "0");
    CHECK_STR(node_text(&in, 2, "/event/at/index"), "1");
    size_t c = node_with(&in, "src_id", C), d = node_with(&in, "src_id", "00000000000000dd");
    CHECK_STR(node_text(&in, c, "/event/at/line"), "2");
    CHECK_STR(node_text(&in, c, "/event/batch"), "0");
    CHECK_STR(node_text(&in, c, "/event/raw/spanId"), C);
    CHECK(node_has_parent(&in, c, node_with(&in, "src_id", B)));
    CHECK_STR(node_text(&in, d, "/event/batch"), "1");
    imported_done(&in);
}

CX_TEST(otlp_bad_records_are_nodes_of_the_importer)
{
    imported in;
    import_text(&in, "otlp",
                DOC(SPAN(A, "", "1", "") ",42") "\n42\n{\"resourceMetrics\":[]}\n{\"cut\n");
    CHECK_INT(in.summary.total.bad, 4);
    CHECK_INT(in.count, 6);
    size_t span = node_with(&in, "raw", "42"); /* the first 42 is the span's place on line 1 */
    CHECK_STR(node_text(&in, span, "/agent_id"), "importer");
    CHECK_STR(node_text(&in, span, "/event/kind"), "bad");
    CHECK_STR(node_text(&in, span, "/event/at/line"), "1");
    CHECK(node_has_issue(&in, span, "unknown_type"));
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 3);
    size_t cut = node_with(&in, "error", "U_SYNTAX");
    CHECK_STR(node_text(&in, cut, "/event/raw_text"), "{\"cut");
    CHECK_STR(node_text(&in, cut, "/event/line"), "4");
    imported_done(&in);
}

CX_TEST(otlp_times_that_cannot_be_read_are_labelled)
{
    imported in;
    import_text(
        &in, "otlp",
        DOC("{\"spanId\":\"" A "\"," AT("18446744073709551615") "},{\"spanId\":\"" B "\"," AT(
            "x") "},{\"spanId\":\"" C "\",\"startTimeUnixNano\":9007199254740993}"));
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 2);
    size_t c = node_with(&in, "src_id", C);
    CHECK_STR(node_text(&in, c, "/event/t_ns"), "9007199254740993");
    imported_done(&in);
}

CX_TEST(otlp_other_documents_are_refused)
{
    imported in;
    import_text(&in, "otlp", "{\"spans\":[]}");
    CHECK_INT(in.status.code, CX_E_FORMAT);
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
    import_text(&in, "otlp", "{\"resourceSpans\":[");
    CHECK(cx_failed(in.status));
    CHECK_STR(cx_str_z(in.err.tag), "U_SYNTAX");
    imported_done(&in);
    import_text(&in, "otlp", "{\"resourceSpans\":[]}");
    CHECK_INT(in.count, 1); /* nothing to tell, told */
    imported_done(&in);
}

CX_TEST(otlp_a_number_that_overflows_spoils_its_span_only)
{
    imported in;
    import_text(&in, "otlp", DOC(SPAN(A, "", "1", "") ",{\"spanId\":\"" B "\",\"x\":1e999}"));
    CHECK_INT(in.summary.total.bad, 1);
    size_t bad = node_with(&in, "error", "U_NUMBER");
    CHECK_STR(node_text(&in, bad, "/event/kind"), "bad");
    CHECK(node_get(&in, bad, "/event/raw") == NULL);
    cx_str text = node_text(&in, bad, "/event/raw_text");
    CHECK(memmem(text.data, text.size, "1e999", 5) != NULL); /* as spelled */
    imported_done(&in);
}

/* --- log records --- */

#define LOGS(records)                                                                          \
    "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"   \
    "{\"stringValue\":\"shop\"}}]},\"scopeLogs\":[{\"scope\":{\"name\":\"l\"},\"logRecords\":" \
    "[" records "]}]}]}"

CX_TEST(otlp_logs_are_records_of_their_service)
{
    imported in;
    import_text(
        &in, "otlp",
        LOGS("{\"timeUnixNano\":\"7\",\"severityNumber\":17,\"body\":{\"stringValue\":\"x\"}},"
             "{\"timeUnixNano\":\"0\",\"observedTimeUnixNano\":\"9\",\"eventName\":"
             "\"gen_ai.choice\",\"spanId\":\"" A "\"},{\"body\":{}},8"));
    CHECK_INT(in.count, 5);
    CHECK_INT(in.summary.total.bad, 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_DANGLING_PARENT), 1);
    size_t error = node_with(&in, "kind", "error");
    CHECK_STR(node_text(&in, error, "/agent_id"), "shop");
    CHECK_STR(node_text(&in, error, "/event/t_ns"), "7");
    size_t choice = node_with(&in, "name", "gen_ai.choice");
    CHECK_STR(node_text(&in, choice, "/event/kind"), "reason");
    CHECK_STR(node_text(&in, choice, "/event/t_ns"), "9");
    CHECK_STR(node_text(&in, choice, "/event/src_parent"), A);
    CHECK_STR(node_text(&in, choice, "/event/signal"), "log");
    imported_done(&in);
}

CX_TEST(otlp_logs_and_spans_in_lines)
{
    imported in;
    import_text(&in, "otlp",
                LOGS("{" T1 ",\"timeUnixNano\":\"5\",\"spanId\":\"" A "\"}") "\n" DOC(
                    SPAN(A, "", "1", "")) "\n" LOGS("{\"timeUnixNano\":\"6\"}") "\n");
    CHECK_INT(in.count, 4);
    CHECK_INT(issue_count(&in, CX_ISSUE_DANGLING_PARENT), 0);
    size_t log = node_with(&in, "t_ns", "5");
    CHECK_STR(node_text(&in, log, "/event/kind"), "observe");
    imported_done(&in);
}

/* The same marks as OpenInference, Traceloop and LangSmith put them on spans. */
CX_TEST(otlp_state_of_a_graph)
{
    static const char *const marks[][2] = {
        {"{\"key\":\"metadata\",\"value\":{\"stringValue\":\"{\\\"langgraph_node\\\":"
         "\\\"review\\\"}\"}},",
         "output.value"},
        {"{\"key\":\"traceloop.association.properties.langgraph_node\",\"value\":{\"stringValue\":"
         "\"review\"}},{\"key\":\"traceloop.entity.name\",\"value\":{\"stringValue\":\"review\"}},",
         "traceloop.entity.output"},
        {"{\"key\":\"langsmith.metadata.langgraph_node\",\"value\":{\"stringValue\":\"review\"}},",
         "gen_ai.completion"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(marks); i++) {
        imported in;
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        cx_buf_printf(&text,
                      "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":"
                      "\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"b7ad6b7169203331\","
                      "\"name\":\"review\","
                      "\"startTimeUnixNano\":\"1767225600000000000\",\"attributes\":[%s"
                      "{\"key\":\"openinference.span.kind\",\"value\":{\"stringValue\":\"CHAIN\"}},"
                      "{\"key\":\"%s\",\"value\":{\"stringValue\":\"{\\\"outputs\\\":{"
                      "\\\"limit\\\":900}}\"}}]}]}]}]}",
                      marks[i][0], marks[i][1]);
        import_text(&in, "auto", cx_buf_z(&text));
        CHECK_STR(node_text(&in, node_with(&in, "src_id", "b7ad6b7169203331"),
                            "/state_delta/memory/graph/limit"),
                  "900");
        imported_done(&in);
        cx_buf_done(&text);
    }
}

#include "tests/unit/import/util.h"

#define DOC(observations)                                                                        \
    "{\"trace\":{\"id\":\"t\",\"name\":\"flow\",\"metadata\":\"{\\\"a\\\": 1}\",\"scores\":[]}," \
    "\"observations\":[" observations "]}"
#define O(id, parent, type, name, start)                                                       \
    "{\"id\":\"" id "\",\"traceId\":\"t\",\"parentObservationId\":" parent ",\"type\":\"" type \
    "\",\"name\":\"" name "\",\"startTime\":\"" start "\",\"endTime\":null,\"level\":\"DEFAULT\"}"
#define AT(ms) "2025-06-06T11:31:33." ms "Z"

CX_TEST(langfuse_the_trace_stays_on_the_file_node)
{
    imported in;
    import_text(&in, "langfuse", DOC(""));
    CHECK_INT(in.count, 1);
    CHECK_STR(node_text(&in, 0, "/event/raw_top/trace/name"), "flow");
    CHECK_STR(node_text(&in, 0, "/event/raw_top/trace/metadata"), "{\"a\": 1}"); /* text stays */
    CHECK(node_get(&in, 0, "/event/raw_top/observations") == NULL);
    CHECK_STR(node_text(&in, 0, "/timestamp"), "0.0");
    imported_done(&in);
}

/* A list of documents is data: their texts alone would leave out ids and scores. */
CX_TEST(langfuse_results_that_are_data_stay_json)
{
    imported in;
    import_text(&in, "langfuse",
                "[{\"type\":\"TOOL\",\"id\":\"1\",\"parentObservationId\":null,\"name\":\"find\","
                "\"output\":[{\"id\":7,\"text\":\"a\"},{\"text\":\"b\"}]},"
                "{\"type\":\"TOOL\",\"id\":\"2\",\"parentObservationId\":null,\"name\":\"say\","
                "\"output\":[{\"type\":\"text\",\"text\":\"a\"},{\"text\":\"b\"}]}]");
    REQUIRE(in.count == 3);
    CHECK_STR(node_text(&in, 1, "/event/result/0/id"), "7");
    CHECK_STR(node_text(&in, 1, "/event/result/1/text"), "b");
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/tool/find/last/result"),
              "[{\"id\":7,\"text\":\"a\"},{\"text\":\"b\"}]");
    CHECK_STR(node_text(&in, 2, "/event/result"), "a\n\nb");
    imported_done(&in);
}

CX_TEST(langfuse_roots_are_children_of_the_file)
{
    imported in;
    import_text(
        &in, "langfuse",
        DOC(O("b", "null", "SPAN", "two", AT("002")) "," O("a", "null", "SPAN", "one", AT("001"))));
    CHECK_STR(node_text(&in, 1, "/event/src_id"), "a");
    CHECK(node_has_parent(&in, 1, 0));
    CHECK(node_has_parent(&in, 2, 0));
    CHECK(node_has_parent(&in, 2, 1)); /* same agent */
    CHECK_INT(issue_count(&in, CX_ISSUE_DANGLING_PARENT), 0);
    CHECK_STR(node_text(&in, 1, "/agent_id"), "flow");
    imported_done(&in);
}

CX_TEST(langfuse_the_nearest_agent_observation_names_the_agent)
{
    imported in;
    import_text(
        &in, "langfuse",
        DOC(O("g", "\"inner\"", "GENERATION", "llm", AT("003")) "," O(
            "inner", "\"outer\"", "AGENT", "Inner",
            AT("002")) "," O("outer", "null", "AGENT", "Outer",
                             AT("001")) "," O("t", "\"outer\"", "TOOL", "search", AT("004"))));
    size_t g = node_with(&in, "src_id", "g"), tool = node_with(&in, "src_id", "t");
    CHECK_STR(node_text(&in, g, "/agent_id"), "Inner");
    CHECK_STR(node_text(&in, g, "/event/kind"), "reason");
    CHECK_STR(node_text(&in, tool, "/agent_id"), "Outer");
    CHECK_STR(node_text(&in, tool, "/event/kind"), "act");
    CHECK_STR(node_text(&in, tool, "/event/tool"), "search");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "inner"), "/fork_type"), "natural");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "outer"), "/fork_type"), "null");
    imported_done(&in);
}

CX_TEST(langfuse_millisecond_ties_go_by_position)
{
    imported in;
    import_text(
        &in, "langfuse",
        DOC(O("z", "null", "EVENT", "e", AT("500")) "," O(
            "y", "null", "EVENT", "e", AT("500")) "," O("x", "null", "EVENT", "e", AT("499"))));
    CHECK_STR(node_text(&in, 1, "/event/src_id"), "x");
    CHECK_STR(node_text(&in, 2, "/event/src_id"), "z");
    CHECK_STR(node_text(&in, 3, "/event/src_id"), "y");
    CHECK_STR(node_text(&in, 3, "/event/t_ns"), "1749209493500000000");
    CHECK_STR(node_text(&in, 3, "/timestamp"), "1749209493.5");
    imported_done(&in);
}

CX_TEST(langfuse_level_error_is_a_belief)
{
    imported in;
    import_text(&in, "langfuse",
                DOC("{\"id\":\"e1\",\"type\":\"TOOL\",\"level\":\"ERROR\",\"name\":\"x\"},"
                    "{\"id\":\"w1\",\"type\":\"TOOL\",\"level\":\"WARNING\",\"name\":\"x\"}"));
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "e1"), "/state_delta/beliefs/e1_ok/value"),
              "false");
    CHECK(node_get(&in, node_with(&in, "src_id", "w1"), "/state_delta/beliefs") == NULL);
    imported_done(&in);
}

CX_TEST(langfuse_strange_observations)
{
    imported in;
    import_text(&in, "langfuse",
                DOC("7,{\"name\":\"neither id nor type\"},{\"id\":\"n\",\"type\":\"NEWTYPE\"},"
                    "{\"id\":\"n\",\"type\":\"SPAN\",\"startTime\":\"yesterday\"}"));
    CHECK_INT(in.count, 5);
    CHECK_INT(in.summary.total.bad, 2);
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 3);
    CHECK_INT(issue_count(&in, CX_ISSUE_DUPLICATE_ID), 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 1);
    imported_done(&in);
    import_text(&in, "langfuse", "{\"id\":1}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

CX_TEST(langfuse_observations_inside_the_trace)
{
    imported in;
    import_text(&in, "langfuse",
                "{\"trace\":{\"name\":\"n\",\"observations\":[{\"id\":\"a\",\"type\":\"SPAN\"}]}}");
    CHECK_INT(in.count, 2);
    CHECK(node_get(&in, 0, "/event/raw_top/trace/observations") == NULL);
    CHECK_STR(node_text(&in, 0, "/event/raw_top/trace/name"), "n");
    imported_done(&in);
}

static void check_export(const char *name, uint64_t observations, size_t agents)
{
    imported in;
    if (!import_data(&in, "langfuse", &name, 1))
        return;
    CHECK_INT(in.summary.total.records, observations);
    CHECK_INT(in.summary.total.nodes, observations + 1);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_INT(in.summary.agent_count, agents);
    CHECK_INT(in.time_errors, 0);
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
        CHECK_INT(in.summary.total.issues[i], 0);
    imported_done(&in);
}

CX_TEST(langfuse_exports)
{
    check_export("data/langfuse/autogen-2025-06-06.json", 2, 2);
    check_export("data/langfuse/google-adk-2025-08-28.json", 5, 3);
    check_export("data/langfuse/langgraph-2025-08-22.json", 9, 2);
    check_export("data/langfuse/llamaindex-2025-06-05.json", 2, 2);
    check_export("data/langfuse/openai-agents-2025-09-30.json", 5, 3);
    check_export("data/langfuse/pydantic-ai-tools-2025-12-04.json", 12, 2);
}

CX_TEST(langfuse_state_of_a_graph)
{
    imported in;
    import_text(
        &in, "auto",
        "{\"trace\":{\"id\":\"t\",\"name\":\"LangGraph\"},\"observations\":[{\"id\":\"a\",\"type\":"
        "\"SPAN\",\"name\":\"LangGraph\",\"input\":{\"limit\":500}},{\"id\":\"b\",\"type\":"
        "\"SPAN\","
        "\"name\":\"review\",\"parentObservationId\":\"a\",\"metadata\":{\"langgraph_node\":"
        "\"review\"},"
        "\"output\":{\"limit\":900}},{\"id\":\"c\",\"type\":\"SPAN\",\"name\":\"x\","
        "\"parentObservationId\":\"b\",\"metadata\":\"{\\\"langgraph_node\\\":\\\"x\\\"}\","
        "\"output\":\"{\\\"limit\\\":901}\"}]}");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "a"), "/state_delta/memory/graph/limit"),
              "500");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "b"), "/state_delta/memory/graph/limit"),
              "900");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "c"), "/state_delta/memory/graph/limit"),
              "901");
    imported_done(&in);
}

/* A page of the API, a list, and the export to a bucket, whose names have underscores. */
CX_TEST(langfuse_observations_without_their_trace)
{
    static const char *const files[] = {
        "{\"data\":[{\"id\":\"o\",\"traceId\":\"t\",\"type\":\"GENERATION\",\"name\":\"chat\","
        "\"startTime\":"
        "\"2026-01-01T00:00:00Z\",\"endTime\":\"2026-01-01T00:00:01Z\",\"model\":\"gpt\",\"input\":"
        "[{\"role\":"
        "\"user\",\"content\":\"q\"}],\"output\":{\"role\":\"assistant\",\"content\":\"a\"},"
        "\"usage\":{"
        "\"input\":3,\"output\":4},\"parentObservationId\":\"p\"}],\"meta\":{\"page\":1}}",
        "[{\"id\":\"o\",\"traceId\":\"t\",\"type\":\"GENERATION\",\"name\":\"chat\",\"startTime\":"
        "\"2026-01-01T00:00:00Z\",\"endTime\":\"2026-01-01T00:00:01Z\",\"model\":\"gpt\",\"input\":"
        "\"[{\\\"role"
        "\\\":\\\"user\\\",\\\"content\\\":\\\"q\\\"}]\",\"output\":\"a\",\"usageDetails\":{"
        "\"input\":3,"
        "\"output\":4},\"parentObservationId\":\"p\"}]",
        "{\"id\":\"o\",\"trace_id\":\"t\",\"type\":\"GENERATION\",\"name\":\"chat\",\"start_time\":"
        "\"2026-01-01T00:00:00Z\",\"end_time\":\"2026-01-01T00:00:01Z\",\"provided_model_name\":"
        "\"gpt\","
        "\"input\":\"[{\\\"role\\\":\\\"user\\\",\\\"content\\\":\\\"q\\\"}]\",\"output\":\"a\","
        "\"usage_details\":{\"input\":3,\"output\":4},\"parent_observation_id\":\"p\"}\n"
        "{\"id\":\"p\",\"trace_id\":\"t\",\"type\":\"SPAN\",\"name\":\"x\",\"start_time\":"
        "\"2026-01-01T00:00:00Z\",\"parent_observation_id\":null}\n",
    };
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        imported in;
        import_text(&in, "auto", files[i]);
        size_t model = node_with(&in, "src_id", "o");
        CHECK_STR(node_text(&in, model, "/event/source"), "langfuse");
        CHECK_STR(node_text(&in, model, "/event/model"), "gpt");
        CHECK_STR(node_text(&in, model, "/event/text"), "a");
        CHECK_STR(node_text(&in, model, "/event/input/0/text"), "q");
        CHECK_STR(node_text(&in, model, "/event/tokens/output"), "4");
        CHECK_STR(node_text(&in, model, "/event/duration_ns"), "1000000000");
        CHECK_STR(node_text(&in, model, "/event/trace_id"), "t");
        CHECK(node_has_issue(&in, model, "dangling_parent") == (i != 2));
        imported_done(&in);
    }
}

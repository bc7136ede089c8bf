#include "tests/unit/import/util.h"

#define SPAN(id, parent, start)                                                          \
    "{\"name\":\"n\",\"context\":{\"trace_id\":340282366920938463463374607431768211455," \
    "\"span_id\":" id "},\"parent\":" parent ",\"start_time\":" start ",\"attributes\":{}}"
#define PARENT(id) "{\"trace_id\":340282366920938463463374607431768211455,\"span_id\":" id "}"
#define DOC(spans) "{\"spans\":[" spans "],\"final_output\":{\"answer\":4.20}}"

CX_TEST(otel_sdk_ids_that_agree_as_doubles_are_different)
{
    imported in;
    /* 2^53 and 2^53 + 1; the child names the second. */
    import_text(&in, "otel-sdk",
                DOC(SPAN("9007199254740992", "null", "1") "," SPAN(
                    "9007199254740993", "null", "2") "," SPAN("5",
                                                              PARENT("90071992547"
                                                                     "40993"),
                                                              "3")));
    CHECK_INT(in.count, 4);
    CHECK_INT(issue_count(&in, CX_ISSUE_DUPLICATE_ID), 0);
    CHECK_STR(node_text(&in, 1, "/event/src_id"), "9007199254740992");
    CHECK_STR(node_text(&in, 2, "/event/src_id"), "9007199254740993");
    CHECK_STR(node_text(&in, 3, "/event/src_parent"), "9007199254740993");
    CHECK_STR(node_text(&in, 3, "/event/trace_id"), "340282366920938463463374607431768211455");
    CHECK_STR(node_text(&in, 3, "/event/raw/context/trace_id"),
              "340282366920938463463374607431768211455");
    CHECK(node_has_parent(&in, 3, 2));
    imported_done(&in);
}

CX_TEST(otel_sdk_children_listed_before_their_parent)
{
    imported in;
    import_text(
        &in, "otel-sdk",
        DOC(SPAN("2", PARENT("1"), "1757950000000000002") "," SPAN(
            "3", PARENT("1"), "1757950000000000003") "," SPAN("1", "null", "1757950000000000001")));
    CHECK_STR(node_text(&in, 1, "/event/src_id"), "1");
    CHECK_STR(node_text(&in, 2, "/event/src_id"), "2");
    CHECK_STR(node_text(&in, 3, "/event/t_ns"), "1757950000000000003");
    CHECK_STR(node_text(&in, 0, "/event/raw_top/final_output/answer"), "4.2");
    CHECK(node_get(&in, 0, "/event/raw_top/spans") == NULL);
    CHECK_INT(in.time_errors, 0);
    imported_done(&in);
}

CX_TEST(otel_sdk_reads_what_the_sdk_prints_itself)
{
    imported in;
    import_text(&in, "otel-sdk",
                "{\"spans\":[{\"name\":\"root\",\"context\":{\"trace_id\":\"0xAB\",\"span_id\":"
                "\"0xC1\"},\"parent_id\":null,\"start_time\":\"2025-09-15T12:00:00.000001Z\","
                "\"status\":{\"status_code\":\"ERROR\"},\"resource\":{\"attributes\":"
                "{\"service.name\":\"svc\"}}},"
                "{\"name\":\"leaf\",\"context\":{\"trace_id\":\"0xab\",\"span_id\":\"0xc2\"},"
                "\"parent_id\":\"0xc1\",\"start_time\":\"2025-09-15T12:00:00.000002Z\"}]}");
    CHECK_INT(in.count, 3);
    CHECK(node_has_parent(&in, 2, 1));
    CHECK_STR(node_text(&in, 1, "/event/t_ns"), "1757937600000001000");
    CHECK_STR(node_text(&in, 1, "/state_delta/beliefs/span_ok/value"), "false");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "unknown");
    imported_done(&in);
}

CX_TEST(otel_sdk_other_documents_are_refused)
{
    imported in;
    import_text(&in, "otel-sdk", "[]");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
    import_text(&in, "otel-sdk", "{\"spans\":[7,{}]}");
    CHECK_INT(in.summary.total.bad, 1);
    CHECK_INT(in.count, 3);
    imported_done(&in);
}

static void check_any_agent(const char *name, uint64_t spans)
{
    imported in;
    if (!import_data(&in, "otel-sdk", &name, 1))
        return;
    CHECK_INT(in.summary.total.records, spans);
    CHECK_INT(in.summary.total.nodes, spans + 1);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_INT(in.summary.agent_count, 2);
    CHECK_STR(in.summary.agents[1].name, "any_agent");
    CHECK_INT(in.time_errors, 0);
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
        CHECK_INT(in.summary.total.issues[i], 0);
    /* The root is listed last and comes out first; all others are its children. */
    CHECK_STR(node_text(&in, 1, "/event/operation"), "invoke_agent");
    CHECK_STR(node_text(&in, 1, "/event/src_parent"), "(absent)");
    for (size_t i = 2; i < in.count; i++)
        CHECK(node_has_parent(&in, i, 1));
    imported_done(&in);
}

CX_TEST(otel_sdk_any_agent_files)
{
    check_any_agent("data/any_agent_otel/agno.json", 6);
    check_any_agent("data/any_agent_otel/langchain.json", 7);
    check_any_agent("data/any_agent_otel/openai.json", 6);
    check_any_agent("data/any_agent_otel/smolagents.json", 7);
}

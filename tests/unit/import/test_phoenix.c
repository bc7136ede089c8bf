#include "tests/unit/import/util.h"

CX_TEST(phoenix_nested_attributes)
{
    imported in;
    import_text(
        &in, "auto",
        "[{\"context\":{\"trace_id\":\"t\",\"span_id\":\"a\"},\"span_kind\":\"LLM\",\"attributes\":"
        "{\"llm\":{"
        "\"model_name\":\"m\",\"token_count\":{\"prompt\":3},\"input_messages\":[{\"message\":{"
        "\"role\":"
        "\"user\",\"content\":\"q\"}}]}},\"start_time\":\"2026-01-01T00:00:00Z\",\"end_time\":"
        "\"2026-01-01T00:00:01Z\"},{\"context.span_id\":\"b\",\"parent_id\":\"gone\",\"span_kind\":"
        "\"TOOL\","
        "\"name\":\"f\",\"status_code\":\"ERROR\",\"status_message\":\"bad\",\"attributes.input\":{"
        "\"value\":"
        "\"{}\"}},{\"span_kind\":\"LLM\"},1]");
    CHECK_INT(in.summary.total.records, 4);
    CHECK_INT(in.summary.total.bad, 2);
    size_t model = node_with(&in, "model", "m"), tool = node_with(&in, "tool", "f");
    CHECK_STR(node_text(&in, model, "/event/kind"), "reason");
    CHECK_STR(node_text(&in, model, "/event/input/0/text"), "q");
    CHECK_STR(node_text(&in, model, "/event/tokens/input"), "3");
    CHECK_STR(node_text(&in, model, "/event/duration_ns"), "1000000000");
    CHECK_STR(node_text(&in, tool, "/event/kind"), "act");
    CHECK_STR(node_text(&in, tool, "/event/error"), "bad");
    CHECK(node_has_issue(&in, tool, "dangling_parent"));
    imported_done(&in);
    import_text(&in, "phoenix", "{\"data\":{}}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

/* Columns say some of it twice: the kind of a span, and attributes that are nested, too. */
CX_TEST(phoenix_columns_that_repeat_each_other)
{
    imported in;
    import_text(&in, "auto",
                "[{\"context.span_id\":\"a\",\"context.trace_id\":\"t\",\"span_kind\":\"LLM\","
                "\"start_time\":\"2026-01-01T00:00:00Z\",\"attributes.openinference.span.kind\":"
                "\"LLM\",\"attributes.llm.model_name\":\"m\",\"attributes\":{\"llm\":{"
                "\"model_name\":\"n\"},\"llm.model_name\":\"o\"}}]");
    CHECK_INT(in.summary.total.bad, 0);
    size_t model = node_with(&in, "model", "n");
    CHECK_STR(node_text(&in, model, "/event/kind"), "reason");
    imported_done(&in);
}

/* What a node of a graph returns is written to the state; runs inside of it write nothing. */
CX_TEST(phoenix_state_of_a_graph)
{
    imported in;
    import_text(
        &in, "auto",
        "[{\"context.span_id\":\"a\",\"context.trace_id\":\"t\",\"span_kind\":\"CHAIN\",\"name\":"
        "\"LangGraph\",\"start_time\":\"2026-01-01T00:00:00Z\",\"attributes.input.value\":"
        "\"{\\\"limit\\\":500,\\\"order\\\":\\\"A1\\\"}\",\"attributes.output.value\":"
        "\"{\\\"limit\\\":900}\"},"
        "{\"context.span_id\":\"b\",\"context.trace_id\":\"t\",\"parent_id\":\"a\",\"span_kind\":"
        "\"CHAIN\",\"name\":\"review\",\"start_time\":\"2026-01-01T00:00:01Z\","
        "\"attributes.metadata\":\"{\\\"langgraph_node\\\":\\\"review\\\"}\","
        "\"attributes.output.value\":\"{\\\"limit\\\":900,\\\"note\\\":{\\\"who\\\":\\\"gold\\\"}}"
        "\"},"
        "{\"context.span_id\":\"c\",\"context.trace_id\":\"t\",\"parent_id\":\"b\",\"span_kind\":"
        "\"CHAIN\",\"name\":\"should_continue\",\"start_time\":\"2026-01-01T00:00:02Z\","
        "\"attributes\":{\"metadata\":{\"langgraph_node\":\"review\"},\"output\":{\"value\":"
        "\"{\\\"limit\\\":1}\"}}},"
        "{\"context.span_id\":\"d\",\"context.trace_id\":\"t\",\"parent_id\":\"a\",\"span_kind\":"
        "\"CHAIN\",\"name\":\"ask\",\"start_time\":\"2026-01-01T00:00:03Z\","
        "\"attributes\":{\"metadata\":{\"langgraph_node\":\"ask\"},\"output\":{\"value\":"
        "\"{\\\"update\\\":{\\\"order\\\":null},\\\"goto\\\":\\\"end\\\"}\"}}},"
        "{\"context.span_id\":\"e\",\"context.trace_id\":\"t\",\"parent_id\":\"a\",\"span_kind\":"
        "\"CHAIN\",\"name\":\"say\",\"start_time\":\"2026-01-01T00:00:04Z\","
        "\"attributes\":{\"metadata\":{\"langgraph_node\":\"say\"},\"output\":{\"value\":\"end\"}}}"
        "]");
    REQUIRE(in.count == 6);
    size_t root = node_with(&in, "src_id", "a"), node = node_with(&in, "src_id", "b");
    size_t edge = node_with(&in, "src_id", "c"), command = node_with(&in, "src_id", "d");
    CHECK_STR(node_text(&in, root, "/state_delta/memory/graph/limit"), "500");
    CHECK_STR(node_text(&in, root, "/state_delta/memory/graph/order"), "A1");
    CHECK_STR(node_text(&in, node, "/state_delta/memory/graph/limit"), "900");
    CHECK_STR(node_text(&in, node, "/state_delta/memory/graph/note/who"), "gold");
    CHECK(node_get(&in, edge, "/state_delta/memory/graph") == NULL);
    CHECK(node_get(&in, command, "/state_delta/memory/graph/order") != NULL);
    CHECK(node_get(&in, command, "/state_delta/memory/graph/goto") == NULL);
    CHECK(node_get(&in, node_with(&in, "src_id", "e"), "/state_delta/memory/graph") == NULL);
    imported_done(&in);
}

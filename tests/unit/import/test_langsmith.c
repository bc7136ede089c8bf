#include "tests/unit/import/util.h"

CX_TEST(langsmith_nested_and_failed_runs)
{
    imported in;
    import_text(&in, "auto",
                "{\"id\":1,\"name\":\"root\",\"run_type\":\"chain\",\"inputs\":{},\"child_runs\":[{"
                "\"id\":2,"
                "\"name\":\"f\",\"run_type\":\"tool\",\"inputs\":{\"a\":1},\"error\":\"boom\","
                "\"start_time\":"
                "1775000000000},{\"id\":3,\"run_type\":\"llm\",\"inputs\":{\"messages\":[{\"role\":"
                "\"user\","
                "\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"},{\"type\":\"human\","
                "\"content\":"
                "\"c\"}]},\"outputs\":{\"generations\":[{\"text\":\"d\"}]}},{\"id\":4,\"run_type\":"
                "\"retriever\","
                "\"parent_run_id\":\"gone\",\"inputs\":{},\"start_time\":\"never\"},7]}");
    REQUIRE(in.count == 6);
    CHECK_INT(in.summary.total.bad, 1);
    size_t root = node_with(&in, "src_id", "1"), tool = node_with(&in, "src_id", "2");
    CHECK(node_get(&in, root, "/event/raw/child_runs") == NULL);
    CHECK(node_has_parent(&in, tool, root));
    CHECK_STR(node_text(&in, tool, "/agent_id"), "root");
    CHECK_STR(node_text(&in, tool, "/event/error"), "boom");
    CHECK_STR(node_text(&in, tool, "/state_delta/memory/call/2/status"), "error");
    size_t model = node_with(&in, "text", "d");
    CHECK_STR(node_text(&in, model, "/event/input/0/text"), "c");
    CHECK(node_get(&in, model, "/event/input/1") == NULL);
    CHECK(node_has_issue(&in, node_with(&in, "src_id", "4"), "dangling_parent"));
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 1);
    imported_done(&in);
    import_text(&in, "langsmith", "{\"runs\":1}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

CX_TEST(langsmith_lines_in_any_order)
{
    imported in;
    import_text(
        &in, "auto",
        "{\"id\":\"b\",\"parent_run_id\":\"a\",\"run_type\":\"tool\",\"name\":\"f\",\"inputs\":{}}"
        "\n"
        "{\"id\":\"a\",\"run_type\":\"chain\",\"name\":\"root\",\"inputs\":{}}\n{\"id\":\"c\"}\n");
    CHECK(node_has_parent(&in, node_with(&in, "src_id", "b"), node_with(&in, "src_id", "a")));
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 1);
    CHECK_INT(in.summary.total.bad, 1);
    imported_done(&in);
}

CX_TEST(langsmith_state_of_a_graph)
{
    imported in;
    import_text(
        &in, "auto",
        "[{\"id\":\"a\",\"name\":\"LangGraph\",\"run_type\":\"chain\",\"inputs\":{\"limit\":500},"
        "\"outputs\":{\"limit\":900}},{\"id\":\"b\",\"parent_run_id\":\"a\",\"name\":\"review\","
        "\"run_type\":\"chain\",\"extra\":{\"metadata\":{\"langgraph_node\":\"review\","
        "\"langgraph_step\":1}},\"inputs\":{\"limit\":500},\"outputs\":{\"limit\":900}},"
        "{\"id\":\"c\",\"parent_run_id\":\"b\",\"name\":\"ChatModel\",\"run_type\":\"llm\","
        "\"extra\":{\"metadata\":{\"langgraph_node\":\"review\"}},\"inputs\":{\"limit\":1},"
        "\"outputs\":{\"limit\":2}}]");
    size_t root = node_with(&in, "src_id", "a"), node = node_with(&in, "src_id", "b");
    CHECK_STR(node_text(&in, root, "/state_delta/memory/graph/limit"), "500");
    CHECK_STR(node_text(&in, node, "/state_delta/memory/graph/limit"), "900");
    CHECK(node_get(&in, node_with(&in, "src_id", "c"), "/state_delta/memory/graph") == NULL);
    imported_done(&in);
}

/* The program's own export: run_id, and usage in the answer. */
CX_TEST(langsmith_lines_with_run_ids)
{
    imported in;
    import_text(
        &in, "auto",
        "{\"run_id\":\"a\",\"run_type\":\"chain\",\"name\":\"agent\",\"parent_run_id\":null,"
        "\"inputs\":{},"
        "\"outputs\":{\"usage_metadata\":{\"input_tokens\":9}}}\n"
        "{\"run_id\":\"b\",\"run_type\":\"llm\",\"name\":\"m\",\"parent_run_id\":\"a\",\"inputs\":{"
        "},\"outputs\":"
        "{\"generations\":[[{\"text\":\"x\",\"message\":{\"kwargs\":{\"content\":\"x\",\"usage_"
        "metadata\":{"
        "\"input_tokens\":10,\"output_tokens\":5,\"input_token_details\":{\"cache_read\":4}}}}}]]}}"
        "\n"
        "{\"run_id\":\"c\",\"run_type\":\"llm\",\"name\":\"m\",\"parent_run_id\":\"a\",\"inputs\":{"
        "},\"outputs\":"
        "{\"generations\":[{\"text\":\"y\"}],\"llm_output\":{\"token_usage\":{\"prompt_tokens\":7,"
        "\"completion_tokens\":2}}}}\n");
    size_t model = node_with(&in, "src_id", "b"), other = node_with(&in, "src_id", "c");
    CHECK(node_has_parent(&in, model, node_with(&in, "src_id", "a")));
    CHECK_STR(node_text(&in, model, "/event/tokens/input"), "10");
    CHECK_STR(node_text(&in, model, "/event/tokens/cached"), "4");
    CHECK_STR(node_text(&in, other, "/event/tokens/output"), "2");
    CHECK(node_get(&in, node_with(&in, "src_id", "a"), "/event/tokens") == NULL);
    CHECK_INT(issue_count(&in, CX_ISSUE_DANGLING_PARENT), 0);
    imported_done(&in);
}

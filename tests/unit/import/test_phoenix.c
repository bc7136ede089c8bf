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

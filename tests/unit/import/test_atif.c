#include "tests/unit/import/util.h"

CX_TEST(atif_unusual_steps)
{
    imported in;
    import_text(
        &in, "auto",
        "{\"schema_version\":\"ATIF-v9\",\"steps\":[{\"step_id\":1,\"source\":\"agent\","
        "\"message\":"
        "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"}],\"tool_calls\":[{\"tool_call_"
        "id\":"
        "\"1\",\"function_name\":\"f\"},{\"tool_call_id\":\"2\",\"function_name\":\"g\"}],"
        "\"observation\":{\"results\":[{\"source_call_id\":\"2\",\"content\":\"r\"},{\"content\":"
        "\"loose\"}]},\"metrics\":{\"cost_usd\":\"x\"}},{\"step_id\":2,\"source\":\"moon\","
        "\"message\":"
        "\"?\"},{\"message\":\"nobody\"},4]}");
    CHECK_INT(in.summary.total.bad, 2);
    size_t step = node_with(&in, "src_id", "1");
    CHECK_STR(node_text(&in, step, "/agent_id"), "agent");
    CHECK_STR(node_text(&in, step, "/event/kind"), "act");
    CHECK_STR(node_text(&in, step, "/event/images"), "1");
    CHECK_STR(node_text(&in, step, "/state_delta/memory/call/1/status"), "open");
    CHECK_STR(node_text(&in, step, "/state_delta/memory/call/2/status"), "ok");
    CHECK_STR(node_text(&in, step, "/event/cost_usd"), "(absent)");
    CHECK(node_has_issue(&in, node_with(&in, "src_id", "2"), "unknown_type"));
    imported_done(&in);
    import_text(&in, "atif", "{\"schema_version\":\"ATIF-v1\"}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

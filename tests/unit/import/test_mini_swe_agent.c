#include "tests/unit/import/util.h"

CX_TEST(mini_commands_and_their_ends)
{
    imported in;
    import_text(
        &in, "auto",
        "{\"info\":{\"mini_version\":\"1\"},\"messages\":[{\"role\":\"assistant\",\"content\":"
        "\"```bash\\nls\"},{\"role\":\"assistant\",\"content\":\"```bash\\nls\\n```\"},{\"role\":"
        "\"user\",\"content\":\"<returncode>127</returncode>\"},{\"role\":\"user\",\"content\":"
        "\"<returncode>\"},{\"type\":\"function_call_output\",\"call_id\":\"9\",\"output\":\"o\"},"
        "{\"object\":\"response\",\"output\":[{\"type\":\"function_call\",\"call_id\":\"8\","
        "\"name\":"
        "\"bash\",\"arguments\":\"{}\"}]},{\"role\":\"exit\",\"content\":\"\",\"extra\":{"
        "\"exit_status\":\"LimitsExceeded\",\"timestamp\":1775000000.5}},{\"x\":1},null]}");
    CHECK_INT(in.summary.total.records, 9);
    CHECK_INT(in.summary.total.bad, 2);
    size_t open = node_with(&in, "text", "```bash\nls");
    CHECK_STR(node_text(&in, open, "/event/kind"), "reason"); /* the block does not end */
    size_t call = node_with(&in, "text", "```bash\nls\n```");
    CHECK_STR(node_text(&in, call, "/event/arguments/command"), "ls");
    CHECK_STR(
        node_text(&in, node_with(&in, "result", "<returncode>127</returncode>"), "/event/status"),
        "error");
    CHECK(node_has_issue(&in, node_with(&in, "call_id", "9"), "orphan_result"));
    CHECK_STR(node_text(&in, node_with(&in, "call_id", "8"), "/event/kind"), "act");
    size_t end = node_with(&in, "kind", "state");
    CHECK_STR(node_text(&in, end, "/state_delta/beliefs/exit_status/value"), "LimitsExceeded");
    CHECK_STR(node_text(&in, end, "/event/t_ns"), "1775000000500000000");
    imported_done(&in);
    import_text(&in, "mini-swe-agent", "[]");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

/* Files of version 1 have no times of their own. */
CX_TEST(mini_swe_agent_time_of_the_answer)
{
    imported in;
    import_text(&in, "mini-swe-agent",
                "{\"info\":{},\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"extra\":{"
                "\"response\":"
                "{\"created\":1775802391,\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,"
                "\"prompt_tokens_details\":{\"cached_tokens\":5}}}}}],\"trajectory_format\":"
                "\"mini-swe-agent-1\"}");
    size_t node = node_with(&in, "text", "x");
    CHECK_STR(node_text(&in, node, "/event/t_ns"), "1775802391000000000");
    CHECK_STR(node_text(&in, node, "/event/tokens/cached"), "5");
    imported_done(&in);
}

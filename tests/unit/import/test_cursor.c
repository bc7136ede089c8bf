#include "tests/unit/import/util.h"

#define CALL(subtype, call)                                                                 \
    "{\"type\":\"tool_call\",\"subtype\":\"" subtype "\",\"call_id\":\"1\",\"session_id\":" \
    "\"s\",\"tool_call\":{" call "}}\n"

CX_TEST(cursor_calls_that_fail)
{
    imported in;
    import_text(
        &in, "auto",
        CALL("started", "\"shellToolCall\":{\"args\":{\"command\":\"ls\"}}")
            CALL("completed", "\"shellToolCall\":{\"result\":{\"rejected\":{\"reason\":\"no\"}}}")
                CALL("started",
                     "\"x\":1") "{\"type\":\"result\",\"is_error\":true,\"result\":\"stopped\","
                                "\"session_id\":\"s\"}\n"
                                "{\"type\":\"thinking\",\"text\":\"hm\",\"session_id\":\"s\"}\n"
                                "{\"type\":\"comet\",\"session_id\":\"s\"}\n{}\n");
    CHECK_INT(in.summary.total.bad, 1);
    size_t done = node_with(&in, "kind", "tool_result");
    CHECK_STR(node_text(&in, done, "/event/tool"), "shell");
    CHECK_STR(node_text(&in, done, "/event/status"), "error");
    CHECK_STR(node_text(&in, done, "/event/result/reason"), "no");
    CHECK_STR(node_text(&in, node_with(&in, "error", "stopped"), "/agent_id"), "harness");
    CHECK_STR(node_text(&in, node_with(&in, "thinking", "hm"), "/agent_id"), "cursor");
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 2); /* and the bad one */
    imported_done(&in);
}

/* Claude Code prints the same types, with a uuid. */
CX_TEST(cursor_is_not_claude_code)
{
    CHECK(cx_import_detect(cx_str_bytes(CX_STR("{\"type\":\"user\",\"uuid\":\"a\",\"session_id\":"
                                               "\"s\",\"message\":{\"content\":\"x\"}}"))) != NULL);
    CHECK_STR(cx_str_z(cx_import_detect(cx_str_bytes(CX_STR(
                  "{\"type\":\"user\",\"uuid\":\"a\",\"session_id\":\"s\",\"message\":{\"content\":"
                  "\"x\"}}")))),
              "claude-code");
}

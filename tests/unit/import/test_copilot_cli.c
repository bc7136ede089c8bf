#include "tests/unit/import/util.h"

#define EVENT(id, parent, type, data) \
    "{\"id\":\"" id "\",\"parentId\":" parent ",\"type\":\"" type "\",\"data\":{" data "}}\n"

/* A call that nothing asked for before is told by its start; an unknown event is kept. */
CX_TEST(copilot_unusual_events)
{
    imported in;
    import_text(
        &in, "auto",
        EVENT("a", "null", "tool.execution_start",
              "\"toolCallId\":\"1\",\"toolName\":\"bash\",\"arguments\":{\"command\":\"ls\"}")
            EVENT("b", "\"a\"", "tool.execution_complete",
                  "\"toolCallId\":\"1\",\"success\":false,\"error\":{\"message\":\"denied\"}")
                EVENT("c", "\"gone\"", "session.error", "\"message\":\"quota\"")
                    EVENT("d", "\"c\"", "session.model_change", "\"newModel\":\"m2\"")
                        EVENT("e", "\"d\"", "moon.rise", "\"content\":\"?\"")
                            EVENT("f", "\"e\"", "assistant.usage",
                                  "\"inputTokens\":4,\"outputTokens\":2") "{\"type\":\"user."
                                                                          "message\",\"data\":3}\n{"
                                                                          "\"id\":\"x\"}\nnull\n");
    CHECK_INT(in.summary.total.records, 9);
    CHECK_INT(in.summary.total.bad, 2);
    size_t start = node_with(&in, "kind", "act"), done = node_with(&in, "kind", "tool_result");
    CHECK_STR(node_text(&in, start, "/agent_id"), "copilot");
    CHECK_STR(node_text(&in, done, "/event/error"), "denied");
    CHECK_STR(node_text(&in, done, "/event/tool"), "bash");
    CHECK(node_has_parent(&in, done, start));
    size_t error = node_with(&in, "error", "quota");
    CHECK_STR(node_text(&in, error, "/event/kind"), "error");
    CHECK(node_has_issue(&in, error, "dangling_parent"));
    CHECK_STR(node_text(&in, node_with(&in, "model", "m2"), "/event/kind"), "config");
    CHECK(node_has_issue(&in, node_with(&in, "event_type", "moon.rise"), "unknown_type"));
    CHECK_STR(
        node_text(&in, node_with(&in, "event_type", "assistant.usage"), "/event/tokens/input"),
        "4");
    imported_done(&in);
}

/* The last line that the program prints has neither id nor time. */
CX_TEST(copilot_cli_result_line)
{
    imported in;
    import_text(
        &in, "auto",
        "{\"type\":\"user.message\",\"id\":\"a\",\"timestamp\":\"2026-03-01T10:00:00Z\",\"data\":{"
        "\"content\":\"q\"}}\n{\"type\":\"result\",\"sessionId\":\"s\",\"exitCode\":0}\n");
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 0);
    imported_done(&in);
}

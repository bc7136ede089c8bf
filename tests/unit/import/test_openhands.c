#include "tests/unit/import/util.h"

CX_TEST(openhands_unusual_events)
{
    imported in;
    import_text(
        &in, "auto",
        "[{\"id\":1,\"source\":\"agent\",\"action\":\"read\",\"args\":{\"path\":\"a.c\"}},"
        "{\"id\":2,\"source\":\"agent\",\"cause\":1,\"observation\":\"error\",\"content\":\"no "
        "file\"},"
        "{\"id\":3,\"source\":\"agent\",\"action\":\"think\",\"args\":{\"thought\":\"hm\"}},"
        "{\"id\":4,\"source\":\"agent\",\"cause\":3,\"observation\":\"think\",\"content\":\"\"},"
        "{\"id\":5,\"source\":\"agent\",\"cause\":99,\"observation\":\"run\",\"content\":\"x\","
        "\"extras\":{\"exit_code\":1}},"
        "{\"source\":\"user\",\"action\":\"message\",\"message\":\"no "
        "args\"},{\"action\":\"x\"},[],1]");
    CHECK_INT(in.summary.total.records, 9);
    CHECK_INT(in.summary.total.bad, 3);
    size_t read = node_with(&in, "tool", "read"), failed = node_with(&in, "error", "no file");
    CHECK(node_has_parent(&in, failed, read));
    CHECK_STR(node_text(&in, failed, "/event/status"), "error");
    CHECK_STR(node_text(&in, node_with(&in, "thinking", "hm"), "/event/kind"), "reason");
    CHECK(node_has_issue(&in, node_with(&in, "src_id", "5"), "orphan_result"));
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "4"), "/agent_id"), "harness");
    CHECK_STR(node_text(&in, node_with(&in, "text", "no args"), "/agent_id"), "user");
    imported_done(&in);
}

/* The newer events, and runs whose history is pairs. */
CX_TEST(openhands_other_forms)
{
    imported in;
    import_text(
        &in, "openhands",
        "{\"kind\":\"AgentErrorEvent\",\"id\":\"e\",\"tool_call_id\":\"1\",\"error\":\"bad\"}\n"
        "{\"kind\":\"ObservationEvent\",\"observation\":{\"is_error\":true,\"text\":\"t\"}}\n"
        "{\"kind\":\"MessageEvent\"}\n"
        "{\"history\":[[{\"source\":\"a\",\"action\":\"run\",\"args\":{}}],3,[1,{\"source\":"
        "\"a\",\"observation\":\"run\",\"content\":\"c\"},{\"source\":\"a\",\"action\":\"x\"}]]}"
        "\n");
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_STR(node_text(&in, node_with(&in, "error", "bad"), "/event/status"), "error");
    CHECK_STR(node_text(&in, node_with(&in, "result", "t"), "/event/status"), "error");
    size_t second = node_with(&in, "result", "c");
    CHECK_STR(node_text(&in, second, "/event/at/index"), "5");
    CHECK_STR(node_text(&in, second, "/agent_id"), "tools#2");
    imported_done(&in);
    import_text(&in, "openhands", "{\"history\":[]}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

#include "tests/unit/import/util.h"

#define LINE(uuid, parent, type, more) \
    "{\"uuid\":\"" uuid "\",\"parentUuid\":" parent ",\"type\":\"" type "\"" more "}\n"
#define PARTS(role, parts) ",\"message\":{\"role\":\"" role "\",\"parts\":[" parts "]}"

CX_TEST(qwen_tree_of_lines)
{
    imported in;
    import_text(
        &in, "qwen-code",
        LINE("c", "\"b\"", "tool_result",
             PARTS("user", "{\"functionResponse\":{\"id\":\"1\",\"name\":\"ls\",\"response\":{"
                           "\"output\":\"x\"}}}") ",\"timestamp\":\"2026-01-01T00:00:03Z\"")
            LINE("a", "null", "user",
                 PARTS("user", "{\"text\":\"go\"}") ",\"timestamp\":\"2026-01-01T00:00:01Z\"")
                LINE(
                    "b", "\"a\"", "assistant",
                    PARTS(
                        "model",
                        "{\"text\":\"hm\",\"thought\":true},{\"functionCall\":{\"id\":"
                        "\"1\",\"name\":\"ls\",\"args\":{}}}") ",\"model\":\"q\",\"usageMetadata\":"
                                                               "{\"promptTokenCount\":3,"
                                                               "\"candidatesTokenCount\":4},"
                                                               "\"timestamp\":\"2026-01-01T00:00:"
                                                               "02Z\""));
    REQUIRE(in.count == 4);
    CHECK_STR(node_text(&in, 1, "/event/text"), "go");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "qwen");
    CHECK_STR(node_text(&in, 2, "/event/thinking"), "hm");
    CHECK_STR(node_text(&in, 2, "/event/model"), "q");
    CHECK_STR(node_text(&in, 2, "/event/tokens/output"), "4");
    CHECK_STR(node_text(&in, 3, "/event/kind"), "tool_result");
    CHECK(node_has_parent(&in, 2, 1));
    CHECK(node_has_parent(&in, 3, 2));
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
    imported_done(&in);
}

CX_TEST(qwen_failed_results_and_unusual_lines)
{
    imported in;
    import_text(
        &in, "qwen-code",
        LINE("a", "\"gone\"", "tool_result",
             ",\"toolCallResult\":{\"callId\":\"9\",\"status\":\"error\",\"error\":"
             "\"denied\",\"resultDisplay\":\"no\"}")
            LINE("b", "\"a\"", "system",
                 ",\"subtype\":\"slash_command\",\"systemPayload\":{\"rawCommand\":\"/go\"}")
                LINE("c", "\"b\"", "system", ",\"systemPayload\":[1]")
                    LINE("d", "\"c\"", "hologram", "") "{\"uuid\":\"e\"}\n3\n");
    CHECK_INT(in.summary.total.records, 6);
    CHECK_INT(in.summary.total.bad, 2);
    size_t result = node_with(&in, "error", "denied");
    CHECK_STR(node_text(&in, result, "/event/result"), "no");
    CHECK_STR(node_text(&in, result, "/event/status"), "error");
    CHECK(node_has_issue(&in, result, "dangling_parent"));
    CHECK(node_has_issue(&in, result, "orphan_result"));
    CHECK_STR(node_text(&in, node_with(&in, "subtype", "slash_command"), "/event/text"), "/go");
    CHECK(node_has_issue(&in, node_with(&in, "src_id", "d"), "unknown_type"));
    imported_done(&in);
}

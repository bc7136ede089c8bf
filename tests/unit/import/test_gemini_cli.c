#include "tests/unit/import/util.h"

#define USER(id, text) "{\"id\":\"" id "\",\"type\":\"user\",\"content\":\"" text "\"}"
#define CALL(status, more)                                                                      \
    "{\"id\":\"g\",\"type\":\"gemini\",\"content\":\"\",\"toolCalls\":[{\"id\":\"c\",\"name\":" \
    "\"read_file\",\"args\":{\"path\":\"a.c\"},\"status\":\"" status "\"" more "}]}"

CX_TEST(gemini_messages_say_calls_and_thoughts)
{
    imported in;
    import_text(&in, "gemini-cli",
                "{\"sessionId\":\"s\",\"messages\":[" USER(
                    "u", "go") ",{\"id\":\"g\",\"type\":"
                               "\"gemini\",\"content\":[{\"text\":\"I read\"},\" "
                               "it\"],\"model\":\"m\",\"thoughts\":"
                               "[{\"subject\":\"S\",\"description\":\"D\"},3],\"tokens\":{"
                               "\"input\":5,\"output\":2,"
                               "\"cached\":1},\"toolCalls\":[{\"id\":\"a\",\"name\":\"x\",\"args\":"
                               "{},\"result\":"
                               "[{\"functionResponse\":{\"response\":{\"error\":\"bad\"}}}],"
                               "\"status\":\"error\"},"
                               "{\"id\":\"b\",\"name\":\"y\",\"args\":{},\"status\":\"awaiting_"
                               "approval\"},7]}]}");
    REQUIRE(in.count == 3);
    CHECK_STR(node_text(&in, 1, "/agent_id"), "user");
    CHECK_STR(node_text(&in, 1, "/event/kind"), "input");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "gemini");
    CHECK_STR(node_text(&in, 2, "/event/kind"), "act");
    CHECK_STR(node_text(&in, 2, "/event/text"), "I read\n\n it");
    CHECK_STR(node_text(&in, 2, "/event/thinking"), "S\n\nD");
    CHECK_STR(node_text(&in, 2, "/event/tokens/input"), "5");
    CHECK_STR(node_text(&in, 2, "/event/tokens/cached"), "1");
    CHECK_STR(node_text(&in, 2, "/event/tool_calls/0/result"), "bad");
    CHECK_STR(node_text(&in, 2, "/event/tool_calls/0/failed"), "true");
    CHECK_STR(node_text(&in, 2, "/event/tool_calls/1/tool"), "y");
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/call/a/status"), "error");
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/call/b/status"), "open");
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 1);
    imported_done(&in);
}

/* A log says a message again when it knows more: the call stays one call. */
CX_TEST(gemini_log_repeats_messages)
{
    imported in;
    import_text(
        &in, "gemini-cli",
        "{\"sessionId\":\"s\",\"projectHash\":\"p\"}\n" USER("u", "go") "\n" CALL(
            "executing",
            "") "\n" CALL("success",
                          ",\"result\":[{\"text\":\"done\"}]") "\n{\"$set\":{"
                                                               "\"messages\":[" USER(
                                                                   "u",
                                                                   "go") ",3," USER("v",
                                                                                    "more") "]}}\n"
                                                                                            "{\"$"
                                                                                            "rewind"
                                                                                            "To\":"
                                                                                            "\"u\"}"
                                                                                            "\n{\"$"
                                                                                            "rewind"
                                                                                            "To\":"
                                                                                            "\"nowh"
                                                                                            "ere\"}"
                                                                                            "\n[]"
                                                                                            "\n{"
                                                                                            "\"id\""
                                                                                            ":\"x\""
                                                                                            "}\n");
    CHECK_INT(in.summary.total.records, 10);
    CHECK_INT(in.summary.total.bad, 2);
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
    CHECK_INT(issue_count(&in, CX_ISSUE_DUPLICATE_ID), 0);
    CHECK_STR(node_text(&in, node_with(&in, "result", "done"), "/state_delta/memory/call/c/status"),
              "ok");
    size_t added = node_with(&in, "src_id", "v");
    CHECK_STR(node_text(&in, added, "/event/text"), "more");
    CHECK_STR(node_text(&in, added, "/event/at/index"), "2");
    imported_done(&in);
}

CX_TEST(gemini_checkpoints_and_strange_documents)
{
    imported in;
    import_text(
        &in, "gemini-cli",
        "{\"history\":[{\"role\":\"user\",\"parts\":[{\"text\":\"a\"}]},{\"role\":\"model\","
        "\"parts\":[{\"functionCall\":{\"name\":\"ls\",\"args\":{\"p\":1}}}]},{\"role\":"
        "\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"ls\",\"response\":{\"output\":"
        "\"b\"}}}]},null]}");
    REQUIRE(in.count == 5);
    CHECK_INT(in.summary.total.bad, 1);
    CHECK(node_with(&in, "kind", "act") < in.count);
    CHECK_STR(node_text(&in, node_with(&in, "kind", "tool_result"), "/agent_id"), "tools");
    imported_done(&in);
    import_text(&in, "gemini-cli", "{\"sessionId\":\"s\"}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

/* Older files call the model `model`, and some messages have a role only. */
CX_TEST(gemini_cli_older_roles)
{
    imported in;
    import_text(
        &in, "gemini-cli",
        "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"messages\":[{\"id\":\"a\",\"timestamp\":"
        "\"2026-03-24T12:00:01Z\",\"type\":\"model\",\"content\":[{\"text\":\"older\"}]},"
        "{\"id\":\"b\",\"timestamp\":\"2026-03-24T12:00:04Z\",\"role\":\"user\",\"content\":\"q\"}]"
        "}");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "a"), "/event/role"), "assistant");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "b"), "/event/role"), "user");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "b"), "/event/text"), "q");
    imported_done(&in);
}

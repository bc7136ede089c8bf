#include "tests/unit/import/util.h"

#define SAY(what, text) \
    "{\"ts\":1775000000000,\"type\":\"say\",\"say\":\"" what "\",\"text\":\"" text "\"}"

CX_TEST(cline_what_was_shown)
{
    imported in;
    import_text(
        &in, "auto",
        "[" SAY("text", "task") "," SAY("text", "answer") "," SAY(
            "tool",
            "{\\\"tool\\\":"
            "\\\"editedExisti"
            "ngFile\\\","
            "\\\"path\\\":"
            "\\\"a.c\\\"}") "," SAY("api_req_started",
                                    "not json") "," SAY("error",
                                                        "failed") "," SAY("use_mcp_server",
                                                                          "{\\\"toolName\\\":"
                                                                          "\\\"q\\\","
                                                                          "\\\"arguments\\\":\\\"{"
                                                                          "\\\\\\\"a\\\\\\\":1}"
                                                                          "\\\"}") "," SAY("command"
                                                                                           "_outpu"
                                                                                           "t",
                                                                                           "out") "," SAY("api_req_"
                                                                                                          "finishe"
                                                                                                          "d",
                                                                                                          "{\\\"cos"
                                                                                                          "t\\\":-"
                                                                                                          "1}") ",{"
                                                                                                                "\""
                                                                                                                "ts"
                                                                                                                "\""
                                                                                                                ":t"
                                                                                                                "ru"
                                                                                                                "e,"
                                                                                                                "\""
                                                                                                                "ty"
                                                                                                                "pe"
                                                                                                                "\""
                                                                                                                ":"
                                                                                                                "\""
                                                                                                                "as"
                                                                                                                "k"
                                                                                                                "\""
                                                                                                                ","
                                                                                                                "\""
                                                                                                                "as"
                                                                                                                "k"
                                                                                                                "\""
                                                                                                                ":"
                                                                                                                "\""
                                                                                                                "fo"
                                                                                                                "ll"
                                                                                                                "ow"
                                                                                                                "up"
                                                                                                                "\""
                                                                                                                ","
                                                                                                                "\""
                                                                                                                "te"
                                                                                                                "xt"
                                                                                                                "\""
                                                                                                                ":"
                                                                                                                "\""
                                                                                                                "pl"
                                                                                                                "ai"
                                                                                                                "n?"
                                                                                                                "\""
                                                                                                                "},"
                                                                                                                "{}"
                                                                                                                ",5"
                                                                                                                "]");
    REQUIRE(in.count == 12);
    CHECK_INT(in.summary.total.bad, 2);
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 1);
    CHECK_STR(node_text(&in, node_with(&in, "text", "task"), "/agent_id"), "user");
    CHECK_STR(node_text(&in, node_with(&in, "text", "answer"), "/agent_id"), "cline");
    size_t edit = node_with(&in, "tool", "replace_in_file");
    CHECK_STR(node_text(&in, edit, "/state_delta/memory/files/a.c/written/how"), "edit");
    CHECK_STR(node_text(&in, node_with(&in, "error", "failed"), "/event/kind"), "error");
    CHECK_STR(node_text(&in, node_with(&in, "tool", "q"), "/event/arguments/a"), "1");
    CHECK_STR(node_text(&in, node_with(&in, "result", "out"), "/agent_id"), "tools");
    CHECK(node_with(&in, "text", "plain?") < in.count);
    imported_done(&in);
    import_text(&in, "cline", "{}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

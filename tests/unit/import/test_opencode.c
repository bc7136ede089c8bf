#include "tests/unit/import/util.h"

#define MESSAGE(info, parts) "{\"info\":{" info "},\"parts\":[" parts "]}"
#define TOOL(id, status, more)                                                                   \
    "{\"type\":\"tool\",\"callID\":\"" id "\",\"tool\":\"bash\",\"state\":{\"status\":\"" status \
    "\",\"input\":{\"command\":\"ls\"}" more "}}"

CX_TEST(opencode_states_of_a_tool)
{
    imported in;
    import_text(
        &in, "auto",
        "[" MESSAGE(
            "\"role\":\"assistant\",\"mode\":\"plan\",\"error\":{\"name\":\"Aborted\"}",
            TOOL("a", "pending", "") "," TOOL("b", "completed", ",\"output\":\"x\"") "," TOOL(
                "c", "error",
                ",\"error\":\"boom\"") ",{\"type\":\"file\",\"mime\":"
                                       "\"image/png\"},{\"type\":\"hologram\"},4") "," MESSAGE("",
                                                                                               "") ",null]");
    CHECK_STR(node_text(&in, 1, "/event/source"), "opencode");
    CHECK_INT(in.summary.total.bad, 2);
    size_t plan = node_with(&in, "kind", "act");
    CHECK_STR(node_text(&in, plan, "/agent_id"), "plan");
    CHECK_STR(node_text(&in, plan, "/event/error"), "Aborted");
    CHECK_STR(node_text(&in, plan, "/event/images"), "1");
    CHECK_STR(node_text(&in, plan, "/state_delta/memory/call/a/status"), "open");
    CHECK_STR(node_text(&in, plan, "/state_delta/memory/call/b/status"), "ok");
    CHECK_STR(node_text(&in, plan, "/state_delta/memory/call/c/status"), "error");
    CHECK_STR(node_text(&in, plan, "/event/tool_calls/2/result"), "boom");
    imported_done(&in);
}

CX_TEST(opencode_stored_parts_and_strange_documents)
{
    imported in;
    import_text(&in, "auto",
                "{\"type\":\"reasoning\",\"text\":\"hm\",\"sessionID\":\"s\",\"messageID\":"
                "\"m\"}\n{\"type\":\"snapshot\",\"sessionID\":\"s\",\"messageID\":\"m\"}\n");
    CHECK_STR(node_text(&in, 1, "/event/thinking"), "hm");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "harness");
    imported_done(&in);
    import_text(&in, "opencode", "{\"info\":{}}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

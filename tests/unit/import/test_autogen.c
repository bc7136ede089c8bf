#include "tests/unit/import/util.h"

CX_TEST(autogen_lines_and_unusual_messages)
{
    imported in;
    import_text(&in, "auto",
                "{\"source\":\"a\",\"type\":\"ThoughtEvent\",\"content\":\"hm\"}\n"
                "{\"source\":\"a\",\"type\":\"StructuredMessage\",\"content\":{\"x\":1}}\n"
                "{\"source\":\"a\",\"type\":\"MultiModalMessage\",\"content\":[\"look\",{\"type\":"
                "\"image\"}]}\n"
                "{\"source\":\"a\",\"type\":\"ToolCallRequestEvent\",\"content\":\"not a list\"}\n"
                "{\"source\":\"a\",\"type\":\"StopMessage\",\"created_at\":\"never\"}\n"
                "{\"type\":\"TextMessage\"}\n[]\n");
    CHECK_INT(in.summary.total.bad, 2);
    CHECK_STR(node_text(&in, node_with(&in, "thinking", "hm"), "/event/kind"), "reason");
    CHECK(node_with(&in, "text", "{\"x\":1}") < in.count);
    CHECK_STR(node_text(&in, node_with(&in, "text", "look"), "/event/images"), "1");
    CHECK_STR(node_text(&in, node_with(&in, "message_type", "ToolCallRequestEvent"), "/event/text"),
              "not a list");
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 1);
    imported_done(&in);
    import_text(&in, "autogen", "{\"messages\":3}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

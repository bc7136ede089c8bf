#include "tests/unit/import/util.h"

CX_TEST(droid_unusual_lines)
{
    imported in;
    import_text(
        &in, "auto",
        "{\"type\":\"session_start\",\"id\":\"s\",\"cwd\":\"/\",\"title\":\"T\"}\n"
        "{\"type\":\"message\",\"id\":\"a\",\"parentId\":\"gone\",\"message\":{\"role\":\"user\","
        "\"content\":\"hi\"}}\n"
        "{\"type\":\"message\",\"id\":\"a\",\"message\":{\"role\":\"assistant\",\"content\":[]},"
        "\"timestamp\":\"never\"}\n"
        "{\"type\":\"todo_state\",\"todos\":[{\"content\":\"x\"}]}\n"
        "{\"type\":\"warp\"}\n{\"id\":\"x\"}\n7\n");
    CHECK_INT(in.summary.total.records, 7);
    CHECK_INT(in.summary.total.bad, 2);
    CHECK_STR(node_text(&in, node_with(&in, "text", "T"), "/event/kind"), "state");
    CHECK(node_has_issue(&in, node_with(&in, "text", "hi"), "dangling_parent"));
    CHECK_INT(issue_count(&in, CX_ISSUE_DUPLICATE_ID), 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 1);
    size_t plans = 0;
    for (size_t i = 0; i < in.count; i++)
        plans += node_get(&in, i, "/state_delta/memory/plan/0/content") != NULL;
    CHECK_INT(plans, 1);
    imported_done(&in);
}

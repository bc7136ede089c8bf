#include "tests/unit/import/util.h"

#define NODE(id, parent, role, content)                                           \
    "\"" id "\":{\"parent\":" parent ",\"message\":{\"author\":{\"role\":\"" role \
    "\"},\"content\":" content "}}"

/* The order of members says nothing: a node without a time is not after those that follow it. */
CX_TEST(chatgpt_nodes_without_a_time)
{
    imported in;
    import_text(
        &in, "chatgpt",
        "{\"create_time\":5,\"mapping\":{\"z\":{\"message\":null},\"a\":{\"parent\":\"z\","
        "\"message\":{\"author\":{\"role\":\"user\"},\"create_time\":7.5}},\"m\":{\"parent\":"
        "\"a\",\"message\":{\"author\":{\"role\":\"assistant\"}}}}}");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "z"), "/timestamp"), "5.0");
    CHECK_STR(node_text(&in, node_with(&in, "src_id", "m"), "/timestamp"), "7.5");
    CHECK_INT(issue_count(&in, CX_ISSUE_PARENT_AFTER_CHILD), 0);
    CHECK_INT(issue_count(&in, CX_ISSUE_NO_TIME), 2);
    imported_done(&in);
}

/* Two conversations whose roots have one name; a branch; content of several types. */
CX_TEST(chatgpt_trees)
{
    imported in;
    import_text(
        &in, "auto",
        "[{\"title\":\"A\",\"mapping\":{" NODE(
            "c", "\"r\"", "assistant",
            "{\"parts\":[\"one\",{\"asset_pointer\":\"f\"}]}") ","
                                                               "\"r\":{\"message\":"
                                                               "null,\"parent\":null}"
                                                               "," NODE(
                                                                   "d", "\"r\"", "assistant",
                                                                   "{\"content_type\":"
                                                                   "\"thoughts\","
                                                                   "\"thoughts\":[{"
                                                                   "\"summary\":\"s\","
                                                                   "\"content\":\"t\"}"
                                                                   "]}") ","
                                                                         "\"e\":5}},{"
                                                                         "\"mapping\":"
                                                                         "{\"r\":{"
                                                                         "\"message\":"
                                                                         "null}," NODE(
                                                                             "x", "\"r\"", "user",
                                                                             "{\"parts"
                                                                             "\":["
                                                                             "\"two\"]"
                                                                             "}") "," NODE("y",
                                                                                           "\"gone"
                                                                                           "\"",
                                                                                           "assista"
                                                                                           "nt",
                                                                                           "{\"cont"
                                                                                           "ent_"
                                                                                           "type\":"
                                                                                           "\"odd\""
                                                                                           "}") "}}"
                                                                                                ",{"
                                                                                                "}"
                                                                                                "]");
    CHECK_INT(in.summary.total.bad, 2);
    size_t one = node_with(&in, "text", "one"), thought = node_with(&in, "thinking", "s\n\nt");
    size_t two = node_with(&in, "text", "two"), root = node_with(&in, "src_id", "r");
    CHECK_STR(node_text(&in, one, "/event/images"), "1");
    CHECK(node_has_parent(&in, one, root));
    CHECK(node_has_parent(&in, thought, root));
    CHECK(!node_has_parent(&in, two, root));
    CHECK_STR(node_text(&in, two, "/agent_id"), "user#2");
    CHECK(node_has_issue(&in, node_with(&in, "src_id", "y"), "dangling_parent"));
    imported_done(&in);
    import_text(&in, "chatgpt", "{\"mapping\":[]}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

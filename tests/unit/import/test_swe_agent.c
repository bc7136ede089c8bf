#include "tests/unit/import/util.h"

#define M(role, more) "{\"role\":\"" role "\",\"agent\":\"primary\"" more "}"
#define SAYS(role, text) M(role, ",\"content\":\"" text "\"")
#define ACTS(action, thought) \
    M("assistant", ",\"content\":\"c\",\"action\":\"" action "\",\"thought\":\"" thought "\"")
#define STEP(action, thought, state)                    \
    "{\"action\":\"" action "\",\"thought\":\"" thought \
    "\",\"observation\":\"o\",\"response\":\"r\","      \
    "\"state\":" state "}"
#define INFO \
    "\"environment\":\"swe_main\",\"info\":{\"exit_status\":\"submitted\",\"submission\":\"s\"}"

CX_TEST(swe_history_and_steps)
{
    imported in;
    import_text(
        &in, "swe-agent",
        "{" INFO ",\"history\":[" SAYS("system", "s") "," SAYS("user", "issue") "," ACTS(
            "ls",
            "look") "," SAYS("user",
                             "files") "," ACTS("submit",
                                               "done") "],"
                                                       "\"trajectory\":[" STEP(
                                                           "ls", "look",
                                                           "\"{\\\"open_file\\\": "
                                                           "\\\"n/a\\\"}\"") "," STEP("subm"
                                                                                      "it",
                                                                                      "don"
                                                                                      "e",
                                                                                      "{\"o"
                                                                                      "pen_"
                                                                                      "file"
                                                                                      "\":"
                                                                                      "\"ma"
                                                                                      "in."
                                                                                      "py\""
                                                                                      "}") "]}");
    CHECK_INT(in.count, 6);
    CHECK_INT(in.summary.total.records, 5);
    CHECK_STR(node_text(&in, 0, "/event/raw_top/info/submission"), "s");
    CHECK(node_get(&in, 0, "/event/raw_top/history") == NULL);
    CHECK(node_get(&in, 0, "/event/raw_top/trajectory") == NULL);
    static const char *const agents[] = {"importer", "task",        "task",
                                         "primary",  "environment", "primary"};
    static const char *const kinds[] = {"run", "input", "input", "act", "tool_result", "act"};
    static const char *const forks[] = {"null",    "natural",     "null",
                                        "natural", "observation", "null"};
    for (size_t i = 0; i < in.count && i < CX_COUNT_OF(agents); i++) {
        CHECK_STR(node_text(&in, i, "/agent_id"), agents[i]);
        CHECK_STR(node_text(&in, i, "/event/kind"), kinds[i]);
        CHECK_STR(node_text(&in, i, "/fork_type"), forks[i]);
        if (i != 0)
            CHECK(node_has_parent(&in, i, i - 1));
    }
    CHECK_STR(node_text(&in, 3, "/event/raw_step/observation"), "o");
    CHECK_STR(node_text(&in, 3, "/state_delta/memory/env/open_file"), "n/a");
    CHECK_STR(node_text(&in, 5, "/state_delta/memory/env/open_file"), "main.py");
    CHECK_STR(node_text(&in, 5, "/state_delta/beliefs/exit_status/value"), "submitted");
    CHECK(node_get(&in, 4, "/state_delta/beliefs") == NULL);
    CHECK_STR(node_text(&in, 5, "/timestamp"), "4.0");
    CHECK_INT(issue_count(&in, CX_ISSUE_NO_TIME), 1);
    CHECK(node_has_issue(&in, 0, "no_time"));
    imported_done(&in);
}

CX_TEST(swe_steps_without_a_message_get_nodes)
{
    imported in;
    import_text(
        &in, "swe-agent",
        "{" INFO
        ",\"history\":[" SAYS("user", "issue") "," ACTS("a", "1") "," SAYS("user", "o1") "," ACTS(
            "b",
            "2") "],\"trajectory\":[" STEP("a", "1",
                                           "{}") "," STEP("b", "other",
                                                          "{}") "," STEP("b", "2",
                                                                         "{}") "," STEP("late", "9",
                                                                                        "{}") "]}");
    CHECK_INT(in.summary.total.records, 6);
    CHECK_INT(in.summary.total.nodes, 9); /* and a second node for two of them */
    REQUIRE(in.count == 9);
    CHECK_STR(node_text(&in, 4, "/event/kind"), "act");
    CHECK_STR(node_text(&in, 4, "/event/raw/thought"), "other");
    CHECK_STR(node_text(&in, 4, "/agent_id"), "primary");
    CHECK_STR(node_text(&in, 5, "/event/kind"), "tool_result");
    CHECK_STR(node_text(&in, 5, "/agent_id"), "environment");
    CHECK_STR(node_text(&in, 6, "/event/raw_step/thought"), "2");
    CHECK_STR(node_text(&in, 7, "/event/raw/action"), "late");
    CHECK_STR(node_text(&in, 8, "/state_delta/beliefs/exit_status/value"), "submitted");
    CHECK_STR(node_text(&in, 0, "/event/records"), "6");
    imported_done(&in);
}

CX_TEST(swe_equal_steps_are_matched_in_order)
{
    imported in;
    import_text(&in, "swe-agent",
                "{\"history\":[" ACTS("a", "x") "," ACTS("a", "x") "],\"trajectory\":[" STEP(
                    "a", "x", "{\"n\":1}") "," STEP("a", "x", "{\"n\":2}") "]}");
    CHECK_INT(in.count, 3);
    CHECK_STR(node_text(&in, 1, "/event/raw_step/state/n"), "1");
    CHECK_STR(node_text(&in, 2, "/event/raw_step/state/n"), "2");
    imported_done(&in);
}

CX_TEST(swe_steps_only)
{
    imported in;
    import_text(
        &in, "swe-agent",
        "{\"trajectory\":[" STEP("ls", "t", "\"no json\"") "," STEP("cat", "t", "null") ",7]}");
    CHECK_INT(in.summary.total.records, 3);
    CHECK_INT(in.summary.total.nodes, 6);
    CHECK_INT(in.summary.total.bad, 1);
    CHECK_STR(node_text(&in, 1, "/event/kind"), "act");
    CHECK_STR(node_text(&in, 1, "/agent_id"), "unknown");
    CHECK_STR(node_text(&in, 2, "/event/kind"), "tool_result");
    CHECK(node_get(&in, 2, "/state_delta/memory/env") == NULL);
    CHECK(node_has_parent(&in, 2, 1));
    CHECK(node_has_parent(&in, 3, 2));
    imported_done(&in);
}

CX_TEST(swe_calls_with_ids)
{
    imported in;
#define TOOL_CALL(id) \
    "{\"id\":\"" id   \
    "\",\"function\":{\"name\":\"find\",\"arguments\":\"{}\"},\"type\":\"function\"}"
    import_text(
        &in, "swe-agent",
        "{\"history\":[" SAYS("user", "q") "," M(
            "assistant", ",\"content\":\"c\",\"tool_calls\":[" TOOL_CALL("c1") "," TOOL_CALL(
                             "c2") "]") "," M("tool", ",\"content\":\"r\",\"tool_call_ids\":["
                                                      "\"c1\"]") "," M("tool", ",\"content\":\"r\","
                                                                               "\"tool_call_ids\":["
                                                                               "\"gone\"]") "]}");
    CHECK_STR(node_text(&in, 2, "/event/kind"), "act");
    CHECK_STR(node_text(&in, 2, "/event/calls/1"), "c2");
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/call/c1/tool"), "find");
    CHECK_STR(node_text(&in, 3, "/state_delta/memory/call/c1/status"), "ok");
    CHECK(node_has_issue(&in, 4, "orphan_result"));
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 1);
    imported_done(&in);
}

CX_TEST(swe_demonstrations_are_injected)
{
    imported in;
    import_text(
        &in, "swe-agent",
        "{\"history\":[" M("user", ",\"content\":\"demo\",\"is_demo\":true") "," M(
            "assistant",
            ","
            "\""
            "co"
            "nt"
            "en"
            "t"
            "\""
            ":"
            "\""
            "de"
            "mo"
            "\""
            ","
            "\""
            "ac"
            "ti"
            "on"
            "\""
            ":"
            "\""
            "x"
            "\""
            ","
            "\""
            "is"
            "_d"
            "em"
            "o"
            "\""
            ":t"
            "ru"
            "e") "," SAYS("user", "the issue") "," ACTS("ls", "t") "," SAYS("user", "o") "]}");
    CHECK_STR(node_text(&in, 2, "/fork_type"), "injection");
    CHECK_STR(node_text(&in, 3, "/agent_id"), "task"); /* no answer: no agent has acted yet */
    CHECK_STR(node_text(&in, 4, "/fork_type"), "null");
    CHECK_STR(node_text(&in, 5, "/agent_id"), "environment");
    imported_done(&in);
}

CX_TEST(swe_strange_documents)
{
    imported in;
    import_text(
        &in, "swe-agent",
        "{\"history\":[1,{\"content\":\"no role\"},{\"role\":\"assistant\",\"agent\":\"7up\"},"
        "{\"role\":\"critic\",\"content\":null},{\"role\":\"user\",\"content\":1e999}]}");
    CHECK_INT(in.count, 6);
    CHECK_INT(in.summary.total.bad, 3);
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 3);
    CHECK_STR(node_text(&in, node_with(&in, "kind", "reason"), "/agent_id"), "_7up");
    CHECK(node_with(&in, "error", "U_NUMBER") < in.count);
    imported_done(&in);
    import_text(&in, "swe-agent", "{\"info\":{}}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
    import_text(&in, "swe-agent", "{\"history\":[]}");
    CHECK_INT(in.count, 1);
    imported_done(&in);
}

static void check_trajectory(const char *name, uint64_t records, uint64_t nodes, bool ended)
{
    imported in;
    if (!import_data(&in, "swe-agent", &name, 1))
        return;
    CHECK_INT(in.summary.total.records, records);
    CHECK_INT(in.summary.total.nodes, nodes);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_INT(in.summary.agent_count, 4);
    CHECK_INT(in.time_errors, 0);
    CHECK_STR(node_text(&in, in.count - 1, "/state_delta/beliefs/exit_status/value"),
              ended ? "submitted" : "(absent)");
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
        CHECK_INT(in.summary.total.issues[i], i == CX_ISSUE_NO_TIME);
    imported_done(&in);
}

CX_TEST(swe_trajectories)
{
    check_trajectory("data/swe_agent/humanevalfix-python-0.traj.json", 11, 12, true);
    check_trajectory("data/swe_agent/function_calling_simple.traj.json", 12, 13, false);
    /* One step has another thought than its message. */
    check_trajectory("data/swe_agent/ctf-crypto-katy.traj.json", 38, 40, true);
}

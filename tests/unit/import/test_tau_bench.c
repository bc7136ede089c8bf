#include "tests/unit/import/util.h"

#define RUN(task, trial, traj)               \
    "{\"task_id\":" task ",\"trial\":" trial \
    ",\"reward\":1.0,\"info\":{\"user_cost\":1},\"traj\":[" traj "]}"
#define SYSTEM "{\"role\":\"system\",\"content\":\"rules\"}"
#define USER "{\"role\":\"user\",\"content\":\"hi\"}"
#define CALLS(id)                                                            \
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id \
    "\",\"type\":\"function\","                                              \
    "\"function\":{\"name\":\"book\",\"arguments\":\"{}\"}}]}"
#define TOOL(id) \
    "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"name\":\"book\",\"content\":\"ok\"}"
#define ASSISTANT "{\"role\":\"assistant\",\"content\":\"bye\"}"

CX_TEST(tau_a_run)
{
    imported in;
    import_text(&in, "tau-bench",
                "[" RUN("3", "0", SYSTEM "," USER "," CALLS("c") "," TOOL("c") "," ASSISTANT) "]");
    static const char *const agents[] = {"importer",      "run#3.0",  "system#3.0",    "user#3.0",
                                         "assistant#3.0", "tool#3.0", "assistant#3.0", "run#3.0"};
    static const char *const kinds[] = {"run", "run",         "input",   "input",
                                        "act", "tool_result", "message", "state"};
    static const char *const forks[] = {"null",    "null",        "natural", "natural",
                                        "natural", "observation", "null",    "null"};
    REQUIRE(in.count == 8);
    for (size_t i = 0; i < 8; i++) {
        CHECK_STR(node_text(&in, i, "/agent_id"), agents[i]);
        CHECK_STR(node_text(&in, i, "/event/kind"), kinds[i]);
        CHECK_STR(node_text(&in, i, "/fork_type"), forks[i]);
        if (i != 0)
            CHECK(node_has_parent(&in, i, i - 1));
    }
    CHECK_INT(in.summary.total.records, 7); /* messages and two a run */
    CHECK_STR(node_text(&in, 1, "/event/raw/info/user_cost"), "1");
    CHECK(node_get(&in, 1, "/event/raw/traj") == NULL);
    CHECK(node_get(&in, 4, "/event/raw/content") != NULL); /* null stays */
    CHECK_STR(node_text(&in, 4, "/event/call_id"), "c");
    CHECK_STR(node_text(&in, 5, "/state_delta/memory/call/c/status"), "ok");
    CHECK_INT(node_parent_count(&in, 7), 2);
    CHECK(node_has_parent(&in, 7, 1));
    CHECK_STR(node_text(&in, 7, "/state_delta/beliefs/reward/value"), "1.0");
    CHECK_STR(node_text(&in, 7, "/state_delta/beliefs/reward/confidence"), "1.0");
    CHECK(node_get(&in, 7, "/event/raw") == NULL);
    imported_done(&in);
}

CX_TEST(tau_runs_are_chains_of_their_own)
{
    imported in;
    import_text(&in, "tau-bench",
                "[" RUN("3", "0", USER "," CALLS("c")) "," RUN(
                    "3", "1", USER "," TOOL("c")) "," RUN("3", "0", USER) "]");
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_ORPHAN_RESULT), 1);
    size_t roots = 0, last = in.count;
    for (size_t i = 0; i < in.count; i++) {
        if (!cx_str_is(node_text(&in, i, "/event/kind"), "run") || i == 0)
            continue;
        CHECK(node_has_parent(&in, i, 0));
        CHECK_INT(node_parent_count(&in, i), 1);
        roots++;
        last = i;
    }
    CHECK_INT(roots, 3);
    CHECK_STR(node_text(&in, last, "/agent_id"), "run#3.0~2");
    imported_done(&in);
}

CX_TEST(tau_only_one_run)
{
    imported in;
    cx_bytes file = cx_str_bytes(
        CX_STR("[" RUN("3", "0", USER) "," RUN("\"3\"", "10", USER "," ASSISTANT) ",7]"));
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    options.only = CX_STR("3.10");
    import_bytes(&in, "tau-bench", &file, 1, &options);
    CHECK_INT(in.count, 5);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_STR(node_text(&in, 1, "/agent_id"), "run#3.10");
    imported_done(&in);
    options.only = CX_STR("3.1");
    import_bytes(&in, "tau-bench", &file, 1, &options);
    CHECK_INT(in.status.code, CX_E_USAGE);
    imported_done(&in);
}

CX_TEST(tau_strange_runs)
{
    imported in;
    import_text(
        &in, "tau-bench",
        "[7,{\"task_id\":1},{\"traj\":[]},{\"task_id\":1,\"trial\":2,\"traj\":[5,{\"content\":"
        "\"x\"},"
        "{\"role\":\"a,b\\n\\\"c\",\"content\":\"y\"},{\"role\":\"tool\",\"content\":\"z\"}]}]");
    CHECK_INT(in.summary.total.bad, 4);
    CHECK_INT(in.count, 11);
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 5);
    CHECK_INT(issue_count(&in, CX_ISSUE_ORPHAN_RESULT), 1);
    size_t odd = 0;
    while (odd < in.count && !cx_str_is(node_text(&in, odd, "/agent_id"), "a,b\n\"c#1.2"))
        odd++;
    CHECK(node_has_issue(&in, odd, "unknown_type"));
    imported_done(&in);
    import_text(&in, "tau-bench", "{\"traj\":[]}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
    import_text(&in, "tau-bench", "[]");
    CHECK_INT(in.count, 1);
    imported_done(&in);
    import_text(&in, "tau-bench",
                "[{\"task_id\":1,\"trial\":1,\"reward\":1e999,\"traj\":[" USER "]}]");
    CHECK_INT(in.summary.total.bad, 1);
    CHECK_INT(in.count, 4);
    CHECK(node_get(&in, 3, "/state_delta/beliefs") == NULL);
    imported_done(&in);
}

CX_TEST(tau_airline_runs)
{
    imported in;
    const char *name = "data/tau_bench/gpt-4o-airline-tasks-00-14.json";
    if (!import_data(&in, "tau-bench", &name, 1))
        return;
    CHECK_INT(in.summary.total.records, 1822 + 2 * 60);
    CHECK_INT(in.summary.total.nodes, 1822 + 2 * 60 + 1);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_INT(in.summary.agent_count, 290);
    CHECK_INT(in.time_errors, 0);
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
        CHECK_INT(in.summary.total.issues[i], i == CX_ISSUE_NO_TIME);
    imported_done(&in);
}

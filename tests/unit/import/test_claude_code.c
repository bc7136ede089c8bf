#include "tests/unit/import/util.h"

#define AT(second) "\"timestamp\":\"2026-01-02T03:04:" second ".000Z\""
#define SAYS(type, id, parent, second, content)                         \
    "{\"type\":\"" type "\",\"uuid\":\"" id "\",\"parentUuid\":" parent \
    ",\"sessionId\":\"sess-one\"," AT(second) ",\"message\":{\"content\":" content "}}\n"
#define CALL(id, name, input) \
    "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":" input "}"
#define RESULT(id, more) \
    "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"x\"" more "}"
#define UUID(in, id) node_with((in), "src_id", (id))

CX_TEST(claude_who_speaks_and_what_kind)
{
    imported in;
    import_text(
        &in, "claude-code",
        "{\"type\":\"file-history-snapshot\",\"messageId\":\"u1\"}\n" SAYS("user", "u1", "null",
                                                                           "01", "\"do it\"")
            SAYS("assistant", "a1", "\"u1\"", "02", "[{\"type\":\"text\",\"text\":\"hm\"}]")
                SAYS("assistant", "a2", "\"a1\"", "03", "[" CALL("t1", "Bash", "{\"c\":1}") "]")
                    SAYS("user", "r1", "\"a2\"", "04", "[" RESULT("t1", ",\"is_error\":true") "]")
                        SAYS("system", "s1", "\"r1\"", "05", "null")
                            SAYS("user", "u2", "\"s1\"", "06",
                                 "[{\"type\":\"text\",\"text\":\"stop\"}]"));
    CHECK_INT(in.count, 8);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_INT(in.time_errors, 0);
    CHECK_INT(issue_count(&in, CX_ISSUE_NO_TIME), 1);
    CHECK_STR(node_text(&in, 1, "/agent_id"), "harness");
    CHECK_STR(node_text(&in, 1, "/event/kind"), "state");
    CHECK_STR(node_text(&in, 1, "/fork_type"), "observation");
    size_t u1 = UUID(&in, "u1"), a1 = UUID(&in, "a1"), a2 = UUID(&in, "a2");
    size_t r1 = UUID(&in, "r1"), s1 = UUID(&in, "s1"), u2 = UUID(&in, "u2");
    CHECK_STR(node_text(&in, u1, "/agent_id"), "user");
    CHECK_STR(node_text(&in, u1, "/event/kind"), "input");
    CHECK_STR(node_text(&in, u1, "/fork_type"), "natural");
    CHECK_STR(node_text(&in, a1, "/agent_id"), "main");
    CHECK_STR(node_text(&in, a1, "/event/kind"), "reason");
    CHECK_STR(node_text(&in, a1, "/fork_type"), "natural");
    CHECK_STR(node_text(&in, a2, "/event/kind"), "act");
    CHECK_STR(node_text(&in, a2, "/event/tool"), "Bash");
    CHECK_STR(node_text(&in, a2, "/event/call_id"), "t1");
    CHECK_STR(node_text(&in, a2, "/fork_type"), "null");
    CHECK_STR(node_text(&in, a2, "/state_delta/memory/call/t1/status"), "open");
    CHECK_STR(node_text(&in, r1, "/agent_id"), "tools");
    CHECK_STR(node_text(&in, r1, "/event/kind"), "tool_result");
    CHECK_STR(node_text(&in, r1, "/event/tool"), "Bash");
    CHECK_STR(node_text(&in, r1, "/state_delta/memory/call/t1/status"), "error");
    CHECK_STR(node_text(&in, r1, "/state_delta/beliefs/Bash_ok/value"), "false");
    CHECK(node_has_parent(&in, r1, a2));
    CHECK_STR(node_text(&in, s1, "/agent_id"), "harness");
    CHECK_STR(node_text(&in, s1, "/event/kind"), "observe");
    CHECK_STR(node_text(&in, u2, "/event/kind"), "input");
    CHECK_STR(node_text(&in, u2, "/fork_type"), "null");
    CHECK_STR(node_text(&in, u2, "/event/t_ns"), "1767323046000000000");
    imported_done(&in);
}

CX_TEST(claude_several_calls_in_one_line)
{
    imported in;
    import_text(&in, "claude-code",
                SAYS("assistant", "a", "null", "01",
                     "[" CALL("t1", "Read", "{}") "," CALL("t2", "Grep", "{}") "]")
                    SAYS("user", "r2", "\"a\"", "02", "[" RESULT("t2", ",\"is_error\":false") "]"));
    CHECK_STR(node_text(&in, 1, "/event/calls/0"), "t1");
    CHECK_STR(node_text(&in, 1, "/event/calls/1"), "t2");
    CHECK(node_get(&in, 1, "/event/call_id") == NULL);
    CHECK_STR(node_text(&in, 2, "/state_delta/beliefs/Grep_ok/value"), "true");
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/call/t2/status"), "ok");
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 1);
    CHECK_STR(in.summary.open_calls[0].call_id, "t1");
    CHECK_STR(in.summary.open_calls[0].tool, "Read");
    imported_done(&in);
}

CX_TEST(claude_result_without_its_call)
{
    imported in;
    import_text(&in, "claude-code",
                SAYS("user", "r", "null", "01", "[" RESULT("gone", ",\"is_error\":true") "]"));
    CHECK(node_has_issue(&in, 1, "orphan_result"));
    CHECK(node_has_parent(&in, 1, 0));
    CHECK(node_get(&in, 1, "/state_delta/beliefs") == NULL); /* the tool is not known */
    imported_done(&in);
}

CX_TEST(claude_result_next_to_text_is_the_users)
{
    imported in;
    import_text(&in, "claude-code",
                SAYS("assistant", "a", "null", "01", "[" CALL("t1", "Read", "{}") "]")
                    SAYS("user", "u", "\"a\"", "02",
                         "[" RESULT("t1", "") ",{\"type\":\"text\",\"text\":\"and\"}]"));
    CHECK_STR(node_text(&in, 2, "/agent_id"), "user");
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
    imported_done(&in);
}

CX_TEST(claude_retries_are_a_fork)
{
    imported in;
    import_text(&in, "claude-code",
                SAYS("user", "u", "null", "01", "\"q\"")
                    SAYS("assistant", "a", "\"u\"", "02", "\"one\"")
                        SAYS("assistant", "b", "\"u\"", "03", "\"two\""));
    CHECK(node_has_parent(&in, 2, 1));
    CHECK(node_has_parent(&in, 3, 1));
    CHECK(node_has_parent(&in, 3, 2)); /* the agent's order stays linear */
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
        CHECK_INT(in.summary.total.issues[i], 0);
    imported_done(&in);
}

CX_TEST(claude_compaction)
{
    imported in;
    import_text(&in, "claude-code",
                SAYS("assistant", "a", "null", "01",
                     "\"x\"") "{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"uuid\":"
                              "\"c\",\"parentUuid\":null,"
                              "\"logicalParentUuid\":\"a\"," AT(
                                  "02") "}\n"
                                        "{\"type\":\"user\",\"isCompactSummary\":true,\"uuid\":"
                                        "\"s\",\"parentUuid\":\"c\"," AT(
                                            "03") ",\"message\":{\"content\":\"so far\"}}\n");
    CHECK_STR(node_text(&in, 2, "/event/kind"), "state");
    CHECK_STR(node_text(&in, 2, "/fork_type"), "natural");
    CHECK_STR(node_text(&in, 2, "/event/src_parent"), "a");
    CHECK(node_has_parent(&in, 2, 1));
    CHECK_STR(node_text(&in, 3, "/event/kind"), "state");
    CHECK_STR(node_text(&in, 3, "/fork_type"), "natural");
    imported_done(&in);
}

CX_TEST(claude_todos_are_goals)
{
    imported in;
    import_text(&in, "claude-code",
                SAYS("assistant", "a", "null", "01",
                     "[" CALL("t", "TodoWrite", "{\"todos\":[{\"content\":\"dig\"}]}") "]"));
    CHECK_STR(node_text(&in, 1, "/state_delta/goals/0/content"), "dig");
    imported_done(&in);
}

CX_TEST(claude_sessions_have_main_agents_of_their_own)
{
#define IN_SESSION(id, session, second)                                    \
    "{\"type\":\"assistant\",\"uuid\":\"" id "\",\"sessionId\":\"" session \
    "\"," AT(second) ",\"message\":{\"content\":\"x\"}}\n"
    imported in;
    import_text(
        &in, "claude-code",
        IN_SESSION("a", "first", "01") IN_SESSION("b", "12345678-b",
                                                  "02") IN_SESSION("c", "12345678-c", "03")
            IN_SESSION("d", "first", "04") IN_SESSION("e", "12345678-b", "05") IN_SESSION(
                "f", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9z", "06"));
    CHECK_STR(node_text(&in, UUID(&in, "a"), "/agent_id"), "main");
    CHECK_STR(node_text(&in, UUID(&in, "b"), "/agent_id"), "session-12345678");
    CHECK_STR(node_text(&in, UUID(&in, "c"), "/agent_id"), "session-12345678-c");
    CHECK_STR(node_text(&in, UUID(&in, "d"), "/agent_id"), "main");
    CHECK_STR(node_text(&in, UUID(&in, "e"), "/agent_id"), "session-12345678");
    CHECK_STR(node_text(&in, UUID(&in, "f"), "/agent_id"),
              "session-\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    imported_done(&in);
}

/* --- subagents ----------------------------------------------------------------------------- */

#define MAIN_FILE                                                                                 \
    SAYS("user", "u1", "null", "01", "\"go\"")                                                    \
    SAYS("assistant", "a1", "\"u1\"", "02", "[" CALL("task", "Task", "{}") "]")                   \
    "{\"type\":\"user\",\"uuid\":\"r1\",\"parentUuid\":\"a1\",\"sessionId\":\"sess-one\"," AT(    \
        "09") ",\"toolUseResult\":{\"agentId\":\"beef\"},\"message\":{\"content\":[" RESULT("tas" \
                                                                                            "k",  \
                                                                                            "") "]}}\n"
#define SUB(type, id, parent, second, content)                                   \
    "{\"type\":\"" type "\",\"uuid\":\"" id "\",\"parentUuid\":" parent          \
    ",\"sessionId\":\"sess-one\",\"isSidechain\":true,\"agentId\":\"beef\"," AT( \
        second) ",\"message\":{\"content\":" content "}}\n"
#define SUB_FILE                                                                \
    SUB("user", "x1", "null", "03", "\"find out\"")                             \
    SUB("assistant", "x2", "\"x1\"", "04", "[" CALL("inner", "Read", "{}") "]") \
    SUB("user", "x3", "\"x2\"", "05", "[" RESULT("inner", "") "]")              \
    SUB("user", "x4", "\"x3\"", "06", "\"a reminder\"")                         \
    SUB("assistant", "x5", "\"x4\"", "07", "\"found\"")

static void check_subagent(const char *first, const char *second)
{
    imported in;
    const cx_bytes files[] = {cx_str_bytes(cx_str_z(first)), cx_str_bytes(cx_str_z(second))};
    import_bytes(&in, "claude-code", files, 2, NULL);
    CHECK_INT(in.count, 10);
    CHECK_INT(in.time_errors, 0);
    size_t x1 = UUID(&in, "x1"), x5 = UUID(&in, "x5");
    CHECK_STR(node_text(&in, x1, "/agent_id"), "agent-beef");
    CHECK_STR(node_text(&in, x1, "/fork_type"), "natural");
    CHECK_INT(node_parent_count(&in, x1), 1);
    CHECK(node_has_parent(&in, x1, UUID(&in, "a1")));
    CHECK_STR(node_text(&in, UUID(&in, "x3"), "/agent_id"), "tools");
    CHECK_STR(node_text(&in, x1, "/event/kind"), "message"); /* its caller's */
    CHECK_STR(node_text(&in, UUID(&in, "x4"), "/event/kind"), "input");
    CHECK_STR(node_text(&in, UUID(&in, "x4"), "/fork_type"), "null");
    CHECK(node_has_parent(&in, UUID(&in, "r1"), x5));
    CHECK(node_has_parent(&in, UUID(&in, "r1"), UUID(&in, "a1")));
    CHECK_STR(node_text(&in, UUID(&in, "a1"), "/agent_id"), "main");
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
        CHECK_INT(in.summary.total.issues[i], 0);
    imported_done(&in);
}

CX_TEST(claude_subagent_with_its_main_file_in_either_order)
{
    check_subagent(MAIN_FILE, SUB_FILE);
    check_subagent(SUB_FILE, MAIN_FILE);
}

CX_TEST(claude_subagent_alone)
{
    imported in;
    import_text(&in, "claude-code", SUB_FILE);
    CHECK_INT(in.count, 6);
    CHECK_INT(node_parent_count(&in, UUID(&in, "x1")), 1);
    CHECK(node_has_parent(&in, UUID(&in, "x1"), 0));
    CHECK_STR(node_text(&in, UUID(&in, "x1"), "/agent_id"), "agent-beef");
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
        CHECK_INT(in.summary.total.issues[i], 0);
    imported_done(&in);
}

CX_TEST(claude_main_file_alone)
{
    imported in;
    import_text(&in, "claude-code", MAIN_FILE);
    CHECK_INT(node_parent_count(&in, UUID(&in, "r1")), 1);
    imported_done(&in);
}

CX_TEST(claude_progress_names_the_spawning_call)
{
    imported in;
    import_text(&in, "claude-code",
                SAYS("assistant", "a1", "null", "01",
                     "[" CALL("task", "Task",
                              "{}") "]") "{\"type\":\"progress\",\"uuid\":\"p\",\"parentUuid\":"
                                         "\"a1\"," AT("05") ",\"parentToolUseID\":\"task\","
                                                            "\"data\":{\"type\":\"agent_progress\","
                                                            "\"agentId\":\"beef\","
                                                            "\"message\":{\"uuid\":\"x1\",\"type\":"
                                                            "\"user\"}}}\n" SUB_FILE);
    CHECK_INT(in.count, 8); /* what progress embeds is no second node */
    CHECK(node_has_parent(&in, UUID(&in, "x1"), UUID(&in, "a1")));
    CHECK_INT(issue_count(&in, CX_ISSUE_DUPLICATE_ID), 0);
    imported_done(&in);
}

/* Before subagents had files of their own, their lines were in that of their caller. */
#define SIDE(type, id, parent, second, content)                         \
    "{\"type\":\"" type "\",\"uuid\":\"" id "\",\"parentUuid\":" parent \
    ",\"sessionId\":\"sess-one\",\"isSidechain\":true," AT(             \
        second) ",\"message\":{\"content\":" content "}}\n"
#define ASKS(id) CALL(id, "Task", "{\"prompt\":\"find out\"}")

CX_TEST(claude_sidechains_are_subagents)
{
    imported in;
    import_text(
        &in, "claude-code",
        SAYS("user", "u1", "null", "01", "\"go\"") SAYS("assistant", "a1", "\"u1\"", "02",
                                                        "[" ASKS("t1") "]")
            SAYS("assistant", "a2", "\"a1\"", "03", "[" ASKS("t2") "]")
                SIDE("user", "one-1", "null", "04", "\"find out\"") SIDE("user", "two-1", "null",
                                                                         "04", "\"find out\"")
                    SIDE("assistant", "two-2", "\"two-1\"", "05", "[" CALL("in", "Read", "{}") "]")
                        SIDE("user", "two-3", "\"two-2\"", "06", "[" RESULT("in", "") "]")
                            SIDE("assistant", "one-2", "\"one-1\"", "07", "\"1\"")
                                SIDE("assistant", "two-4", "\"two-3\"", "08", "\"2\"")
                                    SAYS("user", "r2", "\"a2\"", "09", "[" RESULT("t2", "") "]"));
    const size_t one = UUID(&in, "one-1"), two = UUID(&in, "two-1"), r2 = UUID(&in, "r2");
    CHECK_STR(node_text(&in, one, "/agent_id"), "agent-one-1");
    CHECK_STR(node_text(&in, one, "/event/kind"), "message"); /* its caller's, not a person's */
    CHECK_STR(node_text(&in, UUID(&in, "one-2"), "/agent_id"), "agent-one-1");
    CHECK_STR(node_text(&in, UUID(&in, "two-2"), "/agent_id"), "agent-two-1");
    CHECK_STR(node_text(&in, UUID(&in, "two-3"), "/agent_id"), "tools");
    CHECK_STR(node_text(&in, UUID(&in, "two-4"), "/agent_id"), "agent-two-1");
    CHECK_STR(node_text(&in, UUID(&in, "a2"), "/agent_id"), "main");
    /* Two calls with one prompt start one each. */
    CHECK(node_has_parent(&in, one, UUID(&in, "a1")));
    CHECK(node_has_parent(&in, two, UUID(&in, "a2")));
    CHECK(!node_has_parent(&in, two, UUID(&in, "a1")));
    CHECK(node_has_parent(&in, r2, UUID(&in, "two-4")));
    CHECK(!node_has_parent(&in, r2, UUID(&in, "one-2")));
    imported_done(&in);
}

CX_TEST(claude_sidechain_of_an_unknown_call)
{
    imported in;
    import_text(&in, "claude-code",
                SAYS("assistant", "a1", "null", "02", "[" ASKS("t1") "]")
                    SIDE("user", "one-1", "null", "03", "\"Warmup\"")
                        SIDE("assistant", "one-2", "\"one-1\"", "04", "\"1\"")
                            SAYS("user", "r1", "\"a1\"", "05", "[" RESULT("t1", "") "]"));
    CHECK_STR(node_text(&in, UUID(&in, "one-2"), "/agent_id"), "agent-one-1");
    CHECK(node_has_parent(&in, UUID(&in, "one-1"), 0));
    CHECK_INT(node_parent_count(&in, UUID(&in, "r1")), 1);
    imported_done(&in);
}

/* A subagent that runs on in parallel to its caller has not gone into the line that says it
 * started. */
CX_TEST(claude_launched_subagents_do_not_merge)
{
    imported in;
    import_text(
        &in, "claude-code",
        SAYS("assistant", "a1", "null", "01",
             "[" CALL("task", "Task",
                      "{}") "]") "{\"type\":\"user\",\"uuid\":\"r1\",\"parentUuid\":"
                                 "\"a1\"," AT("02") ",\"toolUseResult\":{\"agentId\":"
                                                    "\"beef\",\"isAsync\":true},\"message\":"
                                                    "{\"content\":[" RESULT("task",
                                                                            "") "]}}"
                                                                                "\n" SUB_FILE);
    CHECK_INT(in.time_errors, 0);
    CHECK(node_has_parent(&in, UUID(&in, "x1"), UUID(&in, "a1")));
    CHECK(!node_has_parent(&in, UUID(&in, "r1"), UUID(&in, "x5")));
    imported_done(&in);
}

CX_TEST(claude_subagent_taken_up_again)
{
#define RESULT_AT(id, call, second)                     \
    "{\"type\":\"user\",\"uuid\":\"" id                 \
    "\"," AT(second) ",\"toolUseResult\":{\"agentId\":" \
                     "\"beef\"},\"message\":{\"content\":[" RESULT(call, "") "]}}\n"
    imported in;
    import_text(&in, "claude-code",
                SAYS("assistant", "a1", "null", "01", "[" CALL("c1", "Task", "{}") "]")
                    RESULT_AT("r1", "c1", "08")
                        SAYS("assistant", "a2", "\"r1\"", "10", "[" CALL("c2", "Task", "{}") "]")
                            RESULT_AT("r2", "c2", "20")
                                SUB_FILE SUB("user", "x6", "\"x5\"", "11", "\"more\"")
                                    SUB("assistant", "x7", "\"x6\"", "12", "\"done\""));
    CHECK_INT(in.time_errors, 0);
    CHECK(node_has_parent(&in, UUID(&in, "r1"), UUID(&in, "x5")));
    CHECK(!node_has_parent(&in, UUID(&in, "r1"), UUID(&in, "x7")));
    CHECK(node_has_parent(&in, UUID(&in, "r2"), UUID(&in, "x7")));
    imported_done(&in);
}

CX_TEST(claude_missing_parents_over_files)
{
    imported in;
    const char *compact = SUB("user", "k1", "\"m1\"", "05", "\"copied\"")
        SUB("assistant", "k2", "\"k1\"", "06", "\"summary\"");
    const char *whole = SAYS("user", "m1", "null", "01", "\"q\"");
    import_text(&in, "claude-code", compact);
    CHECK_INT(issue_count(&in, CX_ISSUE_DANGLING_PARENT), 1);
    CHECK(node_has_parent(&in, 1, 0));
    imported_done(&in);
    const cx_bytes files[] = {cx_str_bytes(cx_str_z(compact)), cx_str_bytes(cx_str_z(whole))};
    import_bytes(&in, "claude-code", files, 2, NULL);
    CHECK_INT(issue_count(&in, CX_ISSUE_DANGLING_PARENT), 0);
    CHECK(node_has_parent(&in, UUID(&in, "k1"), UUID(&in, "m1")));
    imported_done(&in);
}

/* --- damage -------------------------------------------------------------------------------- */

CX_TEST(claude_damaged_lines)
{
    imported in;
    import_text(&in, "claude-code",
                "{\"type\":\"user\",\"uuid\":\"a\"," AT(
                    "01") ",\"message\":\"plain\"}\r\n"
                          "\r\n"
                          "\"massive error\"\r\n42\r\n[1]\r\n{\"silly\":\"this\"}\r\n"
                          "{\"type\":\"user\",\"uuid\":\"\xff\"}\r\n"
                          "{\"type\":\"user\",\"type\":\"user\"}\r\n"
                          "{\"type\":\"newer\",\"uuid\":\"b\"," AT(
                              "02") "}\r\n"
                                    "{\"type\":\"user\",\"uuid\":\"a\",\"timesstamp\":\"x\"}\r\n"
                                    "{\"type\":\"user\",\"uuid\":\"c\",\"timestamp\":\"soon\"}\r\n"
                                    "{\"type\":\"assistant\",\"uu");
    CHECK_INT(in.count, 12);
    CHECK_INT(in.summary.total.records, 11);
    CHECK_INT(in.summary.total.blank_lines, 1);
    CHECK_INT(in.summary.total.bad, 7);
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 5);
    CHECK_INT(issue_count(&in, CX_ISSUE_DUPLICATE_ID), 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_NO_TIME), 2); /* the unreadable time is none */
    CHECK(node_with(&in, "error", "U_UTF8") < in.count);
    CHECK(node_get(&in, node_with(&in, "error", "U_UTF8"), "/event/raw_b64") != NULL);
    CHECK(node_with(&in, "error", "U_DUPKEY") < in.count);
    CHECK_STR(node_text(&in, node_with(&in, "error", "U_SYNTAX"), "/event/raw_text"),
              "{\"type\":\"assistant\",\"uu");
    CHECK_STR(node_text(&in, node_with(&in, "raw", "massive error"), "/agent_id"), "importer");
    CHECK(node_has_issue(&in, UUID(&in, "b"), "unknown_type"));
    CHECK_STR(node_text(&in, UUID(&in, "b"), "/agent_id"), "harness");
    imported_done(&in);
}

CX_TEST(claude_agent_ids_of_any_text)
{
    imported in;
    import_text(
        &in, "claude-code",
        "{\"type\":\"assistant\",\"agentId\":\"a,b\\n\\\"c\",\"uuid\":\"x\"," AT(
            "01") "}\n"
                  "{\"type\":\"assistant\",\"agentId\":\"7up\",\"uuid\":\"y\"," AT("02") "}\n");
    CHECK_STR(node_text(&in, 1, "/agent_id"), "agent-a,b\n\"c");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "agent-7up");
    imported_done(&in);
}

CX_TEST(claude_a_line_of_ten_megabytes)
{
    imported in;
    cx_buf text;
    const size_t size = 10u << 20;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "{\"type\":\"user\",\"uuid\":\"big\",\"message\":{\"content\":\"");
    uint8_t *room = cx_buf_reserve(&text, size);
    REQUIRE(room != NULL);
    memset(room, 'A', size);
    cx_buf_advance(&text, size);
    cx_buf_add_z(&text, "\"}}\n" SAYS("assistant", "a", "\"big\"", "01", "\"y\""));
    cx_bytes file = cx_buf_bytes(&text);
    import_bytes(&in, "claude-code", &file, 1, NULL);
    CHECK_INT(in.count, 3);
    CHECK_INT(node_text(&in, UUID(&in, "big"), "/event/raw/message/content").size, size);
    CHECK(node_has_parent(&in, UUID(&in, "a"), UUID(&in, "big")));
    imported_done(&in);
    cx_buf_done(&text);
}

/* --- files of others ----------------------------------------------------------------------- */

CX_TEST(claude_edge_cases)
{
    imported in;
    const char *name = "data/claude_code/edge_cases.jsonl";
    if (!import_data(&in, "claude-code", &name, 1))
        return;
    CHECK_INT(in.summary.total.records, 19);
    CHECK_INT(in.count, 20);
    CHECK_INT(in.summary.total.bad, 4);
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 4);
    CHECK_INT(issue_count(&in, CX_ISSUE_DUPLICATE_ID), 2);
    CHECK_INT(issue_count(&in, CX_ISSUE_DANGLING_PARENT), 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_NO_TIME), 2);
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 2);
    CHECK_INT(in.summary.agent_count, 6);
    CHECK_INT(in.time_errors, 0);
    imported_done(&in);
}

static void check_session(const char *name, uint64_t records, size_t agents, uint64_t untimed,
                          uint64_t dangling)
{
    imported in;
    if (!import_data(&in, "claude-code", &name, 1))
        return;
    CHECK_INT(in.summary.total.records, records);
    CHECK_INT(in.count, records + 1);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_INT(in.summary.agent_count, agents);
    CHECK_INT(in.time_errors, 0);
    CHECK_INT(issue_count(&in, CX_ISSUE_NO_TIME), untimed);
    CHECK_INT(issue_count(&in, CX_ISSUE_DANGLING_PARENT), dangling);
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
    CHECK_INT(issue_count(&in, CX_ISSUE_ORPHAN_RESULT), 0);
    imported_done(&in);
}

CX_TEST(claude_sessions)
{
    check_session("data/claude_code/subagent.jsonl", 96, 5, 3, 0);
    check_session("data/claude_code/tool_heavy.jsonl", 39, 5, 3, 0);
    check_session("data/claude_code/subagents/agent-acompact-70d8e7.jsonl", 15, 2, 0, 14);
}

CX_TEST(claude_lines_about_the_session)
{
    static const struct {
        const char *line, *kind, *note;
    } cases[] = {
        {"\"type\":\"mode\",\"mode\":\"normal\"", "config", "normal"},
        {"\"type\":\"permission-mode\",\"permissionMode\":\"plan\"", "config", "plan"},
        {"\"type\":\"ai-title\",\"aiTitle\":\"Fix\"", "state", NULL},
        {"\"type\":\"last-prompt\",\"lastPrompt\":\"abc\"", "state", NULL},
        {"\"type\":\"worktree-state\",\"worktreeSession\":null", "state", NULL},
        {"\"type\":\"pr-link\",\"prNumber\":7,\"prUrl\":\"https://x/7\"", "observe", NULL},
        {"\"type\":\"attachment\",\"uuid\":\"a\",\"parentUuid\":null,"
         "\"attachment\":{\"type\":\"hook_success\",\"content\":\"ok\"}",
         "observe", "hook_success"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        imported in;
        char text[512];
        (void)snprintf(text, sizeof text, "{%s,\"sessionId\":\"s1\"}\n", cases[i].line);
        import_text(&in, "claude-code", text);
        CHECK_INT(in.count, 2);
        CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 0);
        CHECK_STR(node_text(&in, 1, "/agent_id"), "harness");
        CHECK_STR(node_text(&in, 1, "/event/kind"), cases[i].kind);
        if (cases[i].note != NULL)
            CHECK_STR(node_text(&in, 1, "/event/note"), cases[i].note);
        else
            CHECK(node_get(&in, 1, "/event/note") == NULL);
        if (i == 3) /* the content is the prompt, not the line: SHA-256 of "abc" */
            CHECK_STR(node_text(&in, 1, "/state_delta/memory/last/harness"), "ba7816bf8f01cfea");
        imported_done(&in);
    }
}

#include "tests/unit/import/util.h"

#define LINE(second, type, payload)                                      \
    "{\"timestamp\":\"2026-01-02T03:04:" second ".5Z\",\"type\":\"" type \
    "\",\"payload\":{" payload "}}\n"
#define ITEM(second, payload) LINE(second, "response_item", payload)
#define CALL(second, id, name)                                 \
    ITEM(second, "\"type\":\"function_call\",\"name\":\"" name \
                 "\",\"arguments\":\"{}\",\"call_id\":\"" id "\"")
#define OUTPUT(second, id, output) \
    ITEM(second, "\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":" output)

CX_TEST(codex_who_speaks_and_what_kind)
{
    imported in;
    import_text(
        &in, "codex",
        LINE("01", "session_meta", "\"id\":\"0199aaaa-1\",\"cwd\":\"/x\"")
            ITEM("02", "\"type\":\"message\",\"role\":\"developer\",\"content\":[]")
                LINE("03", "turn_context", "\"model\":\"gpt-5\"")
                    ITEM("04", "\"type\":\"message\",\"role\":\"user\",\"content\":[]") LINE(
                        "04", "event_msg", "\"type\":\"user_message\",\"message\":\"hi\"")
                        ITEM("05", "\"type\":\"reasoning\",\"summary\":[]") ITEM(
                            "06", "\"type\":\"message\",\"role\":\"assistant\",\"content\":[]")
                            LINE("06", "event_msg", "\"type\":\"agent_message\",\"message\":\"hi\"")
                                LINE("07", "compacted", "\"message\":\"so far\"")
                                    LINE("08", "later_type", "\"type\":\"x\""));
    static const char *const agents[] = {"importer", "harness", "user",   "harness",
                                         "user",     "harness", "codex",  "codex",
                                         "harness",  "harness", "harness"};
    static const char *const kinds[] = {"run",     "config",  "input",  "config",
                                        "input",   "observe", "reason", "message",
                                        "observe", "state",   "observe"};
    static const char *const forks[] = {"null", "observation", "natural", "null",
                                        "null", "null",        "natural", "null",
                                        "null", "natural",     "null"};
    CHECK_INT(in.count, 11);
    for (size_t i = 0; i < in.count && i < CX_COUNT_OF(agents); i++) {
        CHECK_STR(node_text(&in, i, "/agent_id"), agents[i]);
        CHECK_STR(node_text(&in, i, "/event/kind"), kinds[i]);
        CHECK_STR(node_text(&in, i, "/fork_type"), forks[i]);
        if (i != 0)
            CHECK(node_has_parent(&in, i, i - 1)); /* the line before */
    }
    CHECK_STR(node_text(&in, 3, "/event/model"), "gpt-5");
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 1);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_INT(in.time_errors, 0);
    imported_done(&in);
}

CX_TEST(codex_parallel_calls_out_of_order)
{
    imported in;
    import_text(&in, "codex",
                CALL("01", "c1", "shell") CALL("02", "c2", "grep") CALL("03", "c3", "ls")
                    OUTPUT("04", "c3", "\"c\"") OUTPUT("05", "c1", "\"a\"")
                        OUTPUT("06", "c2", "\"b\""));
    CHECK(node_has_parent(&in, 4, 3));
    CHECK(node_has_parent(&in, 5, 1));
    CHECK(node_has_parent(&in, 5, 4));
    CHECK(node_has_parent(&in, 6, 2));
    CHECK_STR(node_text(&in, 5, "/event/tool"), "shell");
    CHECK_STR(node_text(&in, 6, "/event/tool"), "grep");
    CHECK_STR(node_text(&in, 1, "/event/kind"), "act");
    CHECK_STR(node_text(&in, 4, "/event/kind"), "tool_result");
    CHECK_STR(node_text(&in, 4, "/agent_id"), "tools");
    CHECK_STR(node_text(&in, 4, "/fork_type"), "observation");
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
        CHECK_INT(in.summary.total.issues[i], 0);
    imported_done(&in);
}

CX_TEST(codex_open_calls_and_orphans)
{
    imported in;
    import_text(&in, "codex", CALL("01", "open", "shell") OUTPUT("02", "other", "\"x\""));
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 1);
    CHECK_STR(in.summary.open_calls[0].call_id, "open");
    CHECK(node_has_issue(&in, 2, "orphan_result"));
    CHECK(node_get(&in, 1, "/event/issues") == NULL); /* said in the summary only */
    imported_done(&in);
}

CX_TEST(codex_ids_of_two_files_are_apart)
{
    imported in;
    const cx_bytes files[] = {cx_str_bytes(CX_STR(CALL("01", "c1", "shell"))),
                              cx_str_bytes(CX_STR(OUTPUT("02", "c1", "\"x\"")))};
    import_bytes(&in, "codex", files, 2, NULL);
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_ORPHAN_RESULT), 1);
    CHECK(node_has_parent(&in, 3, 1)); /* its file node: no line before it there */
    CHECK(!node_has_parent(&in, 3, 2));
    imported_done(&in);
}

CX_TEST(codex_outcomes)
{
    static const struct {
        const char *output, *status; /* of memory.call; beliefs only where known */
        bool known;
    } cases[] = {
        {"\"just text\"", "ok", false},
        {"\"Exit code: 0\\nfine\"", "ok", true},
        {"\"Exit code: 12\\nbad\"", "error", true},
        {"\"Exit code: \"", "ok", false},
        {"\"{\\\"output\\\":\\\"x\\\",\\\"metadata\\\":{\\\"exit_code\\\":0}}\"", "ok", true},
        {"\"{\\\"output\\\":\\\"x\\\",\\\"metadata\\\":{\\\"exit_code\\\":1}}\"", "error", true},
        {"{\"content\":\"x\",\"success\":false}", "error", true},
        {"{\"content\":\"x\",\"success\":true}", "ok", true},
        {"null", "ok", false},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        imported in;
        char text[1024];
        (void)snprintf(text, sizeof text, CALL("01", "c", "sh") OUTPUT("02", "c", "%s"),
                       cases[i].output);
        import_text(&in, "codex", text);
        CHECK_STR(node_text(&in, 2, "/state_delta/memory/call/c/status"), cases[i].status);
        const char *belief = !cases[i].known                      ? "(absent)"
                             : strcmp(cases[i].status, "ok") == 0 ? "true"
                                                                  : "false";
        CHECK_STR(node_text(&in, 2, "/state_delta/beliefs/sh_ok/value"), belief);
        imported_done(&in);
    }
}

CX_TEST(codex_calls_of_every_sort)
{
    imported in;
    import_text(
        &in, "codex",
        ITEM("01", "\"type\":\"custom_tool_call\",\"name\":\"apply_patch\",\"input\":\"p\",\"call_"
                   "id\":\"c\"")
            ITEM("02", "\"type\":\"custom_tool_call_output\",\"call_id\":\"c\",\"output\":\"done\"")
                ITEM("03",
                     "\"type\":\"local_shell_call\",\"call_id\":\"l\",\"action\":{\"command\":["
                     "\"ls\"]}") OUTPUT("04", "l", "\"x\"")
                    ITEM("05", "\"type\":\"web_search_call\",\"id\":\"w\",\"status\":\"completed\","
                               "\"action\":{}")
                        ITEM(
                            "06",
                            "\"type\":\"function_call\",\"name\":\"update_plan\",\"call_id\":\"p\","
                            "\"arguments\":\"{\\\"plan\\\":[{\\\"step\\\":\\\"dig\\\"}]}\"")
                            ITEM("07", "\"type\":\"ghost\""));
    CHECK_STR(node_text(&in, 1, "/event/tool"), "apply_patch");
    CHECK(node_has_parent(&in, 2, 1));
    CHECK_STR(node_text(&in, 3, "/event/tool"), "local_shell");
    CHECK_STR(node_text(&in, 5, "/event/tool"), "web_search");
    CHECK_STR(node_text(&in, 5, "/state_delta/memory/call/w/status"), "ok");
    CHECK_STR(node_text(&in, 6, "/state_delta/goals/0/step"), "dig");
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 1); /* the plan; no line answers a search */
    CHECK(node_has_issue(&in, 7, "unknown_type"));
    imported_done(&in);
}

CX_TEST(codex_events_set_no_calls)
{
    imported in;
    import_text(&in, "codex",
                LINE("01", "event_msg", "\"type\":\"exec_command_begin\",\"call_id\":\"c\"") LINE(
                    "02", "event_msg",
                    "\"type\":\"token_count\",\"info\":{\"last_token_usage\":{\"input_tokens\":5}}")
                    LINE("03", "event_msg", "\"type\":\"turn_aborted\""));
    for (size_t i = 1; i < in.count; i++)
        CHECK(node_get(&in, i, "/state_delta/memory/call") == NULL);
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
    CHECK_STR(node_text(&in, 2, "/event/usage/input_tokens"), "5");
    CHECK_STR(node_text(&in, 3, "/event/kind"), "error");
    imported_done(&in);
}

/* Thread ids start with a time: those of threads started together agree in their first digits. */
CX_TEST(codex_spawned_threads_have_names)
{
#define SPAWNED(id)                                                       \
    LINE("02", "session_meta",                                            \
         "\"id\":\"" id "\",\"source\":{\"subagent\":{\"thread_spawn\":{" \
         "\"parent_thread_id\":\"0199aaaa-parent\"}}}")                   \
    LINE("03", "session_meta", "\"id\":\"0199aaaa-parent\"") CALL("04", "c", "sh")
    imported in;
    const cx_bytes files[] = {
        cx_str_bytes(CX_STR(SPAWNED("0199bbbb-one"))),
        cx_str_bytes(
            CX_STR(LINE("01", "session_meta", "\"id\":\"0199aaaa-parent\"") CALL("05", "c", "sh"))),
        cx_str_bytes(CX_STR(SPAWNED("0199bbbb-two")))};
    import_bytes(&in, "codex", files, 3, NULL);
    size_t parent = 3, one = node_with(&in, "src_id", "0199bbbb-one");
    CHECK_STR(node_text(&in, parent, "/event/src_id"), "0199aaaa-parent");
    CHECK(node_has_parent(&in, one, parent));
    CHECK_STR(node_text(&in, one, "/event/parent_thread"), "0199aaaa-parent");
    size_t calls = 0;
    for (size_t i = 0; i < in.count; i++) {
        if (!cx_str_is(node_text(&in, i, "/event/kind"), "act"))
            continue;
        static const char *const agents[] = {"codex-0199bbbb", "codex-0199bbbb-two", "codex"};
        CHECK_STR(node_text(&in, i, "/agent_id"), agents[calls < 3 ? calls : 2]);
        CHECK_STR(node_text(&in, i, "/fork_type"), "natural");
        calls++;
    }
    CHECK_INT(calls, 3);
    CHECK_INT(in.time_errors, 0);
    imported_done(&in);
}

CX_TEST(codex_bare_items)
{
    imported in;
    import_text(
        &in, "codex",
        "{\"id\":\"old\",\"timestamp\":\"2025-05-01T00:00:00Z\",\"instructions\":null}\n"
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[]}\n"
        "{\"type\":\"function_call\",\"name\":\"shell\",\"arguments\":\"{}\",\"call_id\":\"c\"}\n"
        "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"x\"}\n");
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_STR(node_text(&in, 1, "/event/kind"), "config");
    CHECK_STR(node_text(&in, 1, "/event/src_id"), "old");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "user");
    CHECK_STR(node_text(&in, 3, "/agent_id"), "codex");
    CHECK(node_has_parent(&in, 4, 3));
    CHECK_INT(issue_count(&in, CX_ISSUE_NO_TIME), 3);
    imported_done(&in);
}

CX_TEST(codex_damaged_lines)
{
    imported in;
    import_text(&in, "codex",
                CALL("01", "c", "sh") "42\r\n[1]\r\n{\"no\":\"type\"}\r\n\r\n"
                                      "{\"type\":\"response_item\"}\r\n"
                                      "{\"type\":\"event_msg\",\"payload\":7}\r\n"
                                      "{\"type\":\"a\",\"type\":\"b\"}\r\n\xc0\xaf\r\n" OUTPUT(
                                          "00", "c", "\"late\"") "{\"timestamp\":\"2026");
    CHECK_INT(in.count, 11);
    CHECK_INT(in.summary.total.bad, 8);
    CHECK_INT(in.summary.total.blank_lines, 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 5);
    CHECK_INT(issue_count(&in, CX_ISSUE_TIME_REGRESSED), 1);
    size_t output = node_with(&in, "kind", "tool_result");
    CHECK(node_has_parent(&in, output, node_with(&in, "kind", "act")));
    CHECK(in.time_errors != 0); /* a strict verdict reports it */
    imported_done(&in);
}

CX_TEST(codex_an_output_before_its_call)
{
    imported in;
    import_text(&in, "codex", OUTPUT("01", "c", "\"x\"") CALL("02", "c", "sh"));
    CHECK_INT(in.count, 3);
    CHECK_INT(issue_count(&in, CX_ISSUE_PARENT_CYCLE), 1); /* the line before, left out */
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
    imported_done(&in);
}

CX_TEST(codex_newer_items)
{
    imported in;
    import_text(
        &in, "codex",
        LINE("01", "world_state", "\"full\":true,\"state\":{}") ITEM(
            "02",
            "\"type\":\"tool_search_call\",\"call_id\":\"s1\",\"arguments\":{\"query\":\"q\"}")
            ITEM("03", "\"type\":\"tool_search_output\",\"call_id\":\"s1\",\"tools\":[]") ITEM(
                "04", "\"type\":\"agent_message\",\"author\":\"/root/b\",\"recipient\":\"/root\","
                      "\"content\":[]")
                ITEM("05", "\"type\":\"ghost_snapshot\",\"ghost_commit\":{\"id\":\"c0ffee\"}")
                    ITEM("06", "\"type\":\"image_generation_call\",\"id\":\"g1\",\"status\":"
                               "\"completed\",\"revised_prompt\":\"a cat\",\"result\":\"AA==\""));
    static const char *const agents[] = {"harness", "codex",   "tools",
                                         "/root/b", "harness", "codex"};
    static const char *const kinds[] = {"state", "act", "tool_result", "message", "state", "act"};
    CHECK_INT(in.count, 7);
    for (size_t i = 0; i < CX_COUNT_OF(agents) && i + 1 < in.count; i++) {
        CHECK_STR(node_text(&in, i + 1, "/agent_id"), agents[i]);
        CHECK_STR(node_text(&in, i + 1, "/event/kind"), kinds[i]);
    }
    CHECK_INT(issue_count(&in, CX_ISSUE_UNKNOWN_TYPE), 0);
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
    CHECK_STR(node_text(&in, 2, "/event/tool"), "tool_search");
    CHECK(node_has_parent(&in, 3, 2));
    CHECK_STR(node_text(&in, 3, "/event/tool"), "tool_search");
    CHECK_STR(node_text(&in, 4, "/event/recipient"), "/root");
    CHECK_STR(node_text(&in, 5, "/event/commit"), "c0ffee");
    CHECK_STR(node_text(&in, 6, "/state_delta/memory/call/g1/status"), "ok");
    imported_done(&in);
}

CX_TEST(codex_completed_items)
{
#define DONE(second, item) LINE(second, "event_msg", "\"type\":\"item_completed\",\"item\":" item)
    imported in;
    import_text(&in, "codex",
                DONE("01", "{\"type\":\"CommandExecution\",\"id\":\"c1\",\"status\":\"completed\","
                           "\"exit_code\":0}")
                    DONE("02", "{\"type\":\"CommandExecution\",\"id\":\"c2\",\"status\":"
                               "\"completed\",\"exit_code\":2}")
                        DONE("03", "{\"type\":\"McpToolCall\",\"id\":\"c3\",\"server\":\"db\","
                                   "\"tool\":\"query\",\"status\":\"failed\"}")
                            DONE("04", "{\"type\":\"SubAgentActivity\",\"id\":\"c4\",\"kind\":"
                                       "\"started\",\"agent_thread_id\":\"0199\"}")
                                DONE("05", "7"));
    static const char *const status[] = {"ok", "error", "error", "started"};
    CHECK_INT(in.count, 6);
    for (size_t i = 0; i < CX_COUNT_OF(status) && i + 1 < in.count; i++) {
        CHECK_STR(node_text(&in, i + 1, "/event/status"), status[i]);
        CHECK_STR(node_text(&in, i + 1, "/event/kind"), "observe");
        CHECK(node_get(&in, i + 1, "/state_delta/memory/call") == NULL);
    }
    CHECK_STR(node_text(&in, 1, "/event/tool"), "shell");
    CHECK_STR(node_text(&in, 1, "/event/call_id"), "c1");
    CHECK_STR(node_text(&in, 3, "/event/tool"), "query");
    CHECK_STR(node_text(&in, 3, "/event/server"), "db");
    CHECK_STR(node_text(&in, 4, "/event/thread"), "0199");
    CHECK(node_has_issue(&in, 5, "unknown_type"));
    imported_done(&in);
#undef DONE
}

#include "tests/unit/import/util.h"

#define CHAT(role, content) "{\"role\":\"" role "\",\"content\":\"" content "\"}"

/* Every API's form of a call and of its answer. */
CX_TEST(messages_in_each_form)
{
    static const char *const cases[] = {
        "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"function\":{"
        "\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]},{\"role\":\"tool\",\"tool_call_id\":"
        "\"1\",\"content\":\"r\"}]",
        "[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\","
        "\"input\":{\"a\":1}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
        "\"tool_use_id\":\"1\",\"content\":\"r\"}]}]",
        "[{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":"
        "1}\"},{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"r\"}]",
        "[{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"id\":\"1\",\"name\":\"f\",\"args\":{"
        "\"a\":1}}}]},{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"id\":\"1\",\"name\":"
        "\"f\",\"response\":\"r\"}}]}]",
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        imported in;
        import_text(&in, "auto", cases[i]);
        REQUIRE(in.count == 3);
        CHECK_STR(node_text(&in, 1, "/event/source"), "messages");
        CHECK_STR(node_text(&in, 1, "/event/kind"), "act");
        CHECK_STR(node_text(&in, 1, "/event/arguments/a"), "1");
        CHECK_STR(node_text(&in, 2, "/event/kind"), "tool_result");
        CHECK_STR(node_text(&in, 2, "/event/tool"), "f");
        CHECK_STR(node_text(&in, 2, "/event/result"), "r");
        CHECK_STR(node_text(&in, 2, "/agent_id"), "tools");
        CHECK(node_has_parent(&in, 2, 1));
        CHECK_STR(node_text(&in, 2, "/state_delta/memory/tool/f/last/result"), "r");
        CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
        imported_done(&in);
    }
}

/* A call of a model: only what is new to it is its input. */
CX_TEST(messages_requests_with_answers)
{
    imported in;
    import_text(
        &in, "auto",
        "{\"custom_id\":\"q\",\"body\":{\"model\":\"m\",\"messages\":[" CHAT("user", "a") "," CHAT(
            "assistant",
            "b") "," CHAT("user", "c") "]},\"response\":"
                                       "{\"body\":{\"choices\":[{\"message\":" CHAT(
                                           "assistant",
                                           "d") "}],\"usage\":{"
                                                "\"prompt_tokens\":3},\"created\":10}}}\n{"
                                                "\"prompt\":\"p\",\"completion\":\"q\"}\n"
                                                "{\"request\":{\"messages\":[" CHAT(
                                                    "user",
                                                    "x") "]},\"error\":{\"message\":"
                                                         "\"overloaded\"},\"response\":null}\n");
    REQUIRE(in.count == 4);
    size_t first = node_with(&in, "text", "d");
    CHECK_STR(node_text(&in, first, "/event/input/0/text"), "c");
    CHECK(node_get(&in, first, "/event/input/1") == NULL);
    CHECK_STR(node_text(&in, first, "/event/model"), "m");
    CHECK_STR(node_text(&in, first, "/event/tokens/input"), "3");
    CHECK_STR(node_text(&in, first, "/event/t_ns"), "10000000000");
    CHECK_STR(node_text(&in, node_with(&in, "text", "q"), "/event/input/0/text"), "p");
    CHECK_STR(node_text(&in, node_with(&in, "error", "overloaded"), "/event/kind"), "reason");
    imported_done(&in);
}

/* Equal call ids of two conversations are two calls, and their agents are two. */
CX_TEST(messages_conversations_stay_apart)
{
#define CALL(status)                                                                  \
    "{\"tag\":1,\"messages\":[" CHAT(                                                 \
        "user", "u") ",{\"role\":\"assistant\",\"content\":\"\","                     \
                     "\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"" status \
                     "\"}}]},{\"role\":\"tool\","                                     \
                     "\"tool_call_id\":\"1\",\"content\":\"r\"},7]}\n"
    imported in;
    import_text(&in, "messages", CALL("f") CALL("g"));
#undef CALL
    CHECK_INT(in.count, 9);
    CHECK_STR(node_text(&in, 1, "/agent_id"), "conversation");
    size_t second = node_with(&in, "tool", "g");
    CHECK_STR(node_text(&in, second, "/agent_id"), "assistant#2");
    CHECK_INT(issue_count(&in, CX_ISSUE_OPEN_CALL), 0);
    CHECK_INT(issue_count(&in, CX_ISSUE_ORPHAN_RESULT), 0);
    imported_done(&in);
}

CX_TEST(messages_times_of_any_unit)
{
    static const struct {
        const char *time, *ns;
    } cases[] = {
        {"1775000000", "1775000000000000000"},
        {"1775000000123", "1775000000123000000"},
        {"1775000000123456", "1775000000123456000"},
        {"1775000000123456789", "1775000000123456789"},
        {"1775000000.123456", "1775000000123456000"},
        {"1775000000.0000000019", "1775000000000000001"},
        {"\"2026-03-31T23:33:20Z\"", "1775000000000000000"},
        {"1.7e9", "(absent)"},
        {"99999999999999999999.5", "(absent)"},
        {"true", "(absent)"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        imported in;
        char text[128];
        (void)snprintf(text, sizeof text, "{\"role\":\"user\",\"content\":\"x\",\"ts\":%s}",
                       cases[i].time);
        import_text(&in, "messages", text);
        CHECK_STR(node_text(&in, 1, "/event/t_ns"), cases[i].ns);
        CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), strcmp(cases[i].ns, "(absent)") == 0);
        imported_done(&in);
    }
}

CX_TEST(messages_of_unknown_programs)
{
    static const char *const no[] = {"{\"commit\":\"1\",\"author\":\"a\",\"message\":\"m\"}",
                                     "{\"name\":\"x\",\"value\":{\"a\":1}}",
                                     "{\"role\":\"user\"}",
                                     "{\"content\":\"x\"}",
                                     "[{\"level\":\"info\",\"msg\":\"x\"}]",
                                     "{\"level\":\"info\",\"time\":1,\"msg\":\"started\"}"};
    imported in;
    import_text(&in, "auto",
                "{\"sender\":\"Bo\",\"message\":\"hi\"}\n{\"sender\":\"Cy\",\"message\":"
                "[\"a\",\"b\"]}\n{\"sender\":\"Bo\"}\n");
    CHECK_STR(node_text(&in, 1, "/agent_id"), "Bo");
    CHECK_STR(node_text(&in, 2, "/event/text"), "a\n\nb");
    CHECK_INT(in.summary.total.bad, 1);
    imported_done(&in);
    for (size_t i = 0; i < CX_COUNT_OF(no); i++)
        CHECK(cx_import_detect(cx_str_bytes(cx_str_z(no[i]))) == NULL);
    import_text(&in, "messages", "{\"a\":1}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

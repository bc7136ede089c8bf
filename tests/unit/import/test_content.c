#include "tests/unit/import/util.h"

/* What records say: texts, calls with their arguments, answers, files, plans (imports.md §1.15). */

#define LINE(uuid, parent, type, message)                                 \
    "{\"type\":\"" type "\",\"uuid\":\"" uuid "\",\"parentUuid\":" parent \
    ",\"sessionId\":\"s\",\"timestamp\":\"2026-01-02T03:04:05Z\",\"message\":" message "}\n"

CX_TEST(content_of_a_session)
{
    imported in;
    import_text(
        &in, "claude-code",
        LINE("1", "null", "user", "{\"role\":\"user\",\"content\":\"fix it\"}")
            LINE("2", "\"1\"", "assistant",
                 "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},"
                 "{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"text\",\"text\":\"two\"},"
                 "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"Write\",\"input\":"
                 "{\"file_path\":\"/a/b.c\",\"content\":\"int x;\"}}],"
                 "\"usage\":{\"input_tokens\":7,\"output_tokens\":3,"
                 "\"cache_read_input_tokens\":5}}")
                LINE("3", "\"2\"", "user",
                     "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
                     "\"c\",\"is_error\":true,\"content\":[{\"type\":\"text\",\"text\":\"no\"},"
                     "{\"type\":\"image\",\"source\":{}}]}]}"));
    REQUIRE(in.count == 4);
    CHECK_STR(node_text(&in, 1, "/event/text"), "fix it");
    CHECK_STR(node_text(&in, 1, "/event/role"), "user");
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/messages/1/text"), "fix it");
    CHECK_STR(node_text(&in, 2, "/event/text"), "one\n\ntwo");
    CHECK_STR(node_text(&in, 2, "/event/thinking"), "hm");
    CHECK_STR(node_text(&in, 2, "/event/arguments/file_path"), "/a/b.c");
    CHECK_STR(node_text(&in, 2, "/event/tokens/input"), "7");
    CHECK_STR(node_text(&in, 2, "/event/tokens/output"), "3");
    CHECK_STR(node_text(&in, 2, "/event/tokens/cached"), "5");
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/files/~1a~1b.c/written/tool"), "Write");
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/files/~1a~1b.c/written/agent"), "main");
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/files/~1a~1b.c/written/bytes"), "6");
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/tool/Write/last/status"), "open");
    CHECK_STR(node_text(&in, 3, "/event/result"), "no");
    CHECK_STR(node_text(&in, 3, "/event/role"), "tool");
    CHECK_STR(node_text(&in, 3, "/event/images"), "1");
    CHECK_STR(node_text(&in, 3, "/state_delta/memory/tool/Write/last/status"), "error");
    CHECK_STR(node_text(&in, 3, "/state_delta/memory/tool/Write/last/result"), "no");
    CHECK_STR(node_text(&in, 3, "/state_delta/memory/messages/3/text"), "no");
    imported_done(&in);
}

/* A later call replaces all of the one before, although states are merged. */
CX_TEST(content_tool_state_is_of_the_newest_call)
{
    imported in;
    import_text(&in, "claude-code",
                LINE("1", "null", "assistant",
                     "{\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"Bash\","
                     "\"input\":{\"command\":\"ls\",\"timeout\":5}},{\"type\":\"tool_use\","
                     "\"id\":\"b\",\"name\":\"Bash\",\"input\":{\"command\":\"pwd\"}}]}"));
    REQUIRE(in.count == 2);
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/tool/Bash/last/arguments"),
              "{\"command\":\"pwd\"}");
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/tool/Bash/last/call"), "b");
    CHECK(node_get(&in, 1, "/state_delta/memory/tool/Bash/last/result")->type == CX_JSON_NULL);
    CHECK_STR(node_text(&in, 1, "/event/tool_calls/0/arguments/timeout"), "5");
    CHECK_STR(node_text(&in, 1, "/event/tool_calls/1/call_id"), "b");
    CHECK(node_get(&in, 1, "/event/arguments") == NULL);
    imported_done(&in);
}

CX_TEST(content_plans_and_patches)
{
    imported in;
    import_text(
        &in, "codex",
        "{\"timestamp\":\"2026-01-02T03:04:05Z\",\"type\":\"response_item\",\"payload\":{\"type\":"
        "\"custom_tool_call\",\"call_id\":\"p\",\"name\":\"apply_patch\",\"input\":"
        "\"*** Begin Patch\\n*** Add File: a.py\\n+x\\n*** Delete File: b.py\\n*** End Patch\"}}\n"
        "{\"timestamp\":\"2026-01-02T03:04:06Z\",\"type\":\"response_item\",\"payload\":{\"type\":"
        "\"function_call\",\"call_id\":\"q\",\"name\":\"update_plan\",\"arguments\":"
        "\"{\\\"plan\\\":[{\\\"step\\\":\\\"do\\\",\\\"status\\\":\\\"pending\\\"}]}\"}}\n"
        "{\"timestamp\":\"2026-01-02T03:04:07Z\",\"type\":\"response_item\",\"payload\":{\"type\":"
        "\"function_call_output\",\"call_id\":\"q\",\"output\":"
        "\"{\\\"output\\\":\\\"Plan updated\\\",\\\"metadata\\\":{\\\"exit_code\\\":0}}\"}}\n");
    REQUIRE(in.count == 4);
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/files/a.py/written/how"), "write");
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/files/b.py/written/how"), "delete");
    CHECK_STR(node_text(&in, 2, "/event/arguments/plan/0/step"), "do");
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/plan/0/step"), "do");
    CHECK_STR(node_text(&in, 3, "/event/result"), "Plan updated");
    CHECK_STR(node_text(&in, 3, "/state_delta/memory/tool/update_plan/last/result"),
              "Plan updated");
    imported_done(&in);
}

/* States hold the first 4096 bytes, cut between characters; the event holds all. */
CX_TEST(content_long_texts_are_cut_in_the_state)
{
    static char text[20000];
    imported in;
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "[{\"task_id\":1,\"trial\":0,\"traj\":["
                                 "{\"role\":\"user\",\"content\":\"x");
    for (size_t i = 0; i < 5000; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "\xC3\xA9");
    snprintf(text + at, sizeof text - at, "\"}]}]");
    import_text(&in, "tau-bench", text);
    REQUIRE(in.count == 4);
    CHECK_INT(node_get(&in, 2, "/event/text")->count, 10001);
    CHECK_INT(node_get(&in, 2, "/state_delta/memory/messages/1/text")->count, 4095);
    CHECK_STR(node_text(&in, 2, "/state_delta/memory/messages/1/bytes"), "10001");
    imported_done(&in);
}

CX_TEST(content_of_a_model_call)
{
    imported in;
    import_text(
        &in, "langfuse",
        "{\"trace\":{\"id\":\"t\",\"name\":\"app\"},\"observations\":[{\"id\":\"g\",\"type\":"
        "\"GENERATION\",\"startTime\":\"2026-01-01T00:00:00.000Z\",\"endTime\":"
        "\"2026-01-01T00:00:01.500Z\",\"costDetails\":{\"total\":0.25},\"input\":[{\"role\":"
        "\"user\",\"content\":\"old\"},{\"role\":\"assistant\",\"content\":\"said\"},{\"role\":"
        "\"user\",\"content\":\"new\"},{\"role\":\"tool\",\"content\":{\"type\":\"function\","
        "\"function\":{}}}],\"output\":{\"role\":\"assistant\",\"content\":\"answer\"}},"
        "{\"id\":\"e\",\"type\":\"TOOL\",\"name\":\"search\",\"level\":\"ERROR\","
        "\"statusMessage\":\"timed out\",\"input\":{\"q\":1},\"output\":null}]}");
    REQUIRE(in.count == 3);
    size_t model = cx_str_is(node_text(&in, 1, "/event/src_id"), "g") ? 1 : 2;
    CHECK_INT(node_get(&in, model, "/event/input")->count, 1);
    CHECK_STR(node_text(&in, model, "/event/input/0/text"), "new");
    CHECK_STR(node_text(&in, model, "/event/text"), "answer");
    CHECK_STR(node_text(&in, model, "/event/duration_ns"), "1500000000");
    CHECK_STR(node_text(&in, model, "/event/cost_usd"), "0.25");
    CHECK_STR(node_text(&in, model, "/state_delta/memory/messages/0-in1/text"), "new");
    CHECK_STR(node_text(&in, 3 - model, "/event/error"), "timed out");
    CHECK_STR(node_text(&in, 3 - model, "/event/arguments/q"), "1");
    imported_done(&in);
}

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

/* --- spans of instrumentation that has conventions of its own ------------------------------- */

#define ATTR(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define COUNT(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define SPAN(id, parent, name, more, attributes)                           \
    "{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"" id   \
    "\",\"parentSpanId\":\"" parent "\",\"name\":\"" name                  \
    "\",\"startTimeUnixNano\":\"1000\",\"endTimeUnixNano\":\"3500\"," more \
    "\"attributes\":[" attributes "]}"
#define SPANS(spans)                                            \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" ATTR( \
        "service.name", "shop") "]},\"scopeSpans\":[{\"spans\":[" spans "]}]}]}"

CX_TEST(content_of_openinference_spans)
{
    imported in;
    import_text(
        &in, "otlp",
        SPANS(
            SPAN("b7ad6b7169203331", "", "planner", "", ATTR("openinference.span.kind", "AGENT")) "," SPAN(
                "b7ad6b7169203332", "b7ad6b7169203331", "llm", "",
                ATTR("openinference.span.kind", "LLM") "," ATTR("llm.model_name", "m1") "," COUNT("llm.token_count.prompt", "11") "," COUNT("llm.token_count.completion", "4") "," ATTR("llm.input_messages.0.message.role", "user") "," ATTR(
                    "llm.input_messages.0.message.content",
                    "how many?") "," ATTR("llm.output_messages.0.message.role",
                                          "assistant") "," ATTR("llm.output_messages.0.message."
                                                                "tool_calls.0.tool_call.function."
                                                                "name",
                                                                "count") "," ATTR("llm.output_"
                                                                                  "messages.0."
                                                                                  "message.tool_"
                                                                                  "calls.0.tool_"
                                                                                  "call.function."
                                                                                  "arguments",
                                                                                  "{\\\"of\\\":"
                                                                                  "\\\"x\\\"}")) "," SPAN("b7ad6b7169203333",
                                                                                                          "b7ad6b7169203331",
                                                                                                          "count",
                                                                                                          "\"status\":{\"code\":2,\"message\":\"boom\"},\"events\":[{\"name\":\"exception\","
                                                                                                          "\"attributes\":[" ATTR(
                                                                                                              "exception.type",
                                                                                                              "KeyError") "," ATTR("exception.message",
                                                                                                                                   "x") "]}],",
                                                                                                          ATTR("openinference.span.kind", "TOOL") "," ATTR(
                                                                                                              "tool.name",
                                                                                                              "count") "," ATTR("input.value",
                                                                                                                                "{\\\"of\\\":\\\"x\\\"}") "," ATTR("output.value",
                                                                                                                                                                   "none"))));
    REQUIRE(in.count == 4);
    CHECK_STR(node_text(&in, 1, "/agent_id"), "planner");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "planner");
    CHECK_STR(node_text(&in, 2, "/event/kind"), "reason");
    CHECK_STR(node_text(&in, 2, "/event/model"), "m1");
    CHECK_STR(node_text(&in, 2, "/event/tokens/input"), "11");
    CHECK_STR(node_text(&in, 2, "/event/input/0/text"), "how many?");
    CHECK_STR(node_text(&in, 2, "/event/tool"), "count");
    CHECK_STR(node_text(&in, 2, "/event/arguments/of"), "x");
    CHECK_STR(node_text(&in, 2, "/event/duration_ns"), "2500");
    CHECK_STR(node_text(&in, 3, "/event/kind"), "act");
    CHECK_STR(node_text(&in, 3, "/event/error"), "KeyError: x");
    CHECK_STR(node_text(&in, 3, "/event/result"), "none");
    CHECK_STR(node_text(&in, 3, "/state_delta/memory/tool/count/last/status"), "error");
    CHECK_STR(node_text(&in, 3, "/state_delta/memory/messages/2/role"), "tool");
    imported_done(&in);
}

CX_TEST(content_of_ai_sdk_spans)
{
    imported in;
    import_text(
        &in, "otlp",
        SPANS(SPAN("b7ad6b7169203331", "", "ai.generateText", "", ATTR("ai.operationId", "ai.generateText") "," ATTR("ai.telemetry.functionId", "helper")) "," SPAN(
            "b7ad6b7169203332", "b7ad6b7169203331", "ai.generateText.doGenerate", "",
            ATTR("ai.operationId", "ai.generateText.doGenerate") "," ATTR("ai.model.id", "m2") "," COUNT(
                "ai.usage.promptTokens",
                "9") "," ATTR("ai.prompt.messages",
                              "[{\\\"role\\\":\\\"user\\\",\\\"content\\\":[{\\\"type\\\":"
                              "\\\"text\\\","
                              "\\\"text\\\":\\\"hello\\\"}]}]") "," ATTR("ai.response.text",
                                                                         "hi there")) "," SPAN("b7a"
                                                                                               "d6b"
                                                                                               "716"
                                                                                               "920"
                                                                                               "333"
                                                                                               "3",
                                                                                               "b7a"
                                                                                               "d6b"
                                                                                               "716"
                                                                                               "920"
                                                                                               "333"
                                                                                               "1",
                                                                                               "ai."
                                                                                               "too"
                                                                                               "lCa"
                                                                                               "ll",
                                                                                               "",
                                                                                               ATTR("ai.operationId", "ai.toolCall") "," ATTR("ai.toolCall.name", "weather") "," ATTR(
                                                                                                   "ai.toolCall.id",
                                                                                                   "w1") "," ATTR("ai.toolCall.args",
                                                                                                                  "{\\\"city\\\":\\\"Bern\\\"}") "," ATTR("ai.toolCall.result",
                                                                                                                                                          "sunny"))));
    REQUIRE(in.count == 4);
    CHECK_STR(node_text(&in, 1, "/event/kind"), "run");
    CHECK_STR(node_text(&in, 1, "/agent_id"), "helper");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "helper");
    CHECK_STR(node_text(&in, 2, "/event/kind"), "reason");
    CHECK_STR(node_text(&in, 2, "/event/input/0/text"), "hello");
    CHECK_STR(node_text(&in, 2, "/event/text"), "hi there");
    CHECK_STR(node_text(&in, 2, "/event/tokens/input"), "9");
    CHECK_STR(node_text(&in, 3, "/event/kind"), "act");
    CHECK_STR(node_text(&in, 3, "/event/tool"), "weather");
    CHECK_STR(node_text(&in, 3, "/event/call_id"), "w1");
    CHECK_STR(node_text(&in, 3, "/event/arguments/city"), "Bern");
    CHECK_STR(node_text(&in, 3, "/event/result"), "sunny");
    imported_done(&in);
}

CX_TEST(content_of_traceloop_spans)
{
    imported in;
    import_text(&in, "otlp",
                SPANS(SPAN("b7ad6b7169203331", "", "joke.agent", "", ATTR("traceloop.span.kind", "agent") "," ATTR("traceloop.entity.name", "joker")) "," SPAN(
                    "b7ad6b7169203332", "b7ad6b7169203331", "openai.chat", "",
                    ATTR("gen_ai.system", "OpenAI") "," ATTR("gen_ai.request.model", "m3") "," ATTR("gen_ai.prompt.0.role", "user") "," ATTR(
                        "gen_ai.prompt.0.content",
                        "tell one") "," ATTR("gen_ai.completion.0.role",
                                             "assistant") "," ATTR("gen_ai.completion.0.content",
                                                                   "knock") "," COUNT("gen_ai."
                                                                                      "usage."
                                                                                      "prompt_"
                                                                                      "tokens",
                                                                                      "5")) "," SPAN("b7ad6b7169203333",
                                                                                                     "b7ad6b7169203331",
                                                                                                     "rate.tool",
                                                                                                     "",
                                                                                                     ATTR("traceloop.span.kind", "tool") "," ATTR(
                                                                                                         "traceloop.entity.name",
                                                                                                         "rate") "," ATTR("traceloop.entity.input",
                                                                                                                          "{\\\"joke\\\":\\\"knock\\\"}") "," ATTR("traceloop.entity.output",
                                                                                                                                                                   "7"))));
    REQUIRE(in.count == 4);
    CHECK_STR(node_text(&in, 1, "/agent_id"), "joker");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "joker");
    CHECK_STR(node_text(&in, 2, "/event/kind"), "reason");
    CHECK_STR(node_text(&in, 2, "/event/text"), "knock");
    CHECK_STR(node_text(&in, 2, "/event/input/0/text"), "tell one");
    CHECK_STR(node_text(&in, 3, "/event/kind"), "act");
    CHECK_STR(node_text(&in, 3, "/event/tool"), "rate");
    CHECK_STR(node_text(&in, 3, "/event/arguments/joke"), "knock");
    CHECK_STR(node_text(&in, 3, "/event/result"), "7");
    imported_done(&in);
}

/* Events of a span, messages as structured values, and log records. */
CX_TEST(content_of_events_and_logs)
{
    imported in;
    import_text(
        &in, "otlp",
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[" SPAN(
            "b7ad6b7169203331", "", "chat",
            "\"events\":[{\"name\":\"gen_ai.user.message\",\"attributes\":[" ATTR(
                "content", "question") "]}],",
            ATTR("gen_ai.operation.name",
                 "chat") ",{\"key\":\"gen_ai.output.messages\",\"value\":{\"arrayValue\":{"
                         "\"values\":[{"
                         "\"kvlistValue\":{\"values\":[" ATTR(
                             "role",
                             "assistant") ",{\"key\":\"parts\",\"value\":{\"arrayValue\":{"
                                          "\"values\":[{\"kvlistValue\":{"
                                          "\"values\":[" ATTR("type", "text") "," ATTR(
                                              "content",
                                              "answer") "]}}]}}}]}}]}}}") "]}]}],\"resourceLogs\":["
                                                                          "{\"scopeLogs\":[{"
                                                                          "\"logRecords\":[{"
                                                                          "\"traceId\":"
                                                                          "\"0af7651916cd43dd8448eb"
                                                                          "211c80319c\",\"spanId\":"
                                                                          "\"b7ad6b7169203331\","
                                                                          "\"timeUnixNano\":"
                                                                          "\"2000\","
                                                                          "\"severityNumber\":17,"
                                                                          "\"body\":{"
                                                                          "\"stringValue\":\"disk "
                                                                          "full\"}}]}]}]}");
    REQUIRE(in.count == 3);
    CHECK_STR(node_text(&in, 1, "/event/input/0/text"), "question");
    CHECK_STR(node_text(&in, 1, "/event/text"), "answer");
    CHECK_STR(node_text(&in, 2, "/event/text"), "disk full");
    CHECK_STR(node_text(&in, 2, "/event/kind"), "error");
    imported_done(&in);
}

#include "tests/unit/import/util.h"

#include <stdlib.h>

#define LABELS                                                                             \
    "\"mistake_agent\":\"SECRETA\",\"mistake_step\":\"1\",\"mistake_reason\":\"SECRETB\"," \
    "\"ground_truth\":\"SECRETC\",\"is_correct\":false,\"is_corrected\":true,\"labels\":"  \
    "\"SECRETD\""
#define DOC(history) "{\"history\":[" history "],\"question\":\"why\",\"level\":1," LABELS "}"
#define NAMED(name, content) "{\"role\":\"user\",\"name\":\"" name "\",\"content\":\"" content "\"}"
#define ROLE(role) "{\"role\":\"" role "\",\"content\":\"x\"}"

CX_TEST(who_named_agents)
{
    imported in;
    import_text(
        &in, "who-when",
        DOC(NAMED("Expert", "a") "," NAMED("7up", "exitcode: 0 (execution succeeded)") "," NAMED(
            "Expert", "b") "," NAMED("a,b\\n\\\"c", "exitcode: 1 (execution failed)")));
    REQUIRE(in.count == 5);
    CHECK_STR(node_text(&in, 1, "/agent_id"), "Expert");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "_7up");
    CHECK_STR(node_text(&in, 4, "/agent_id"), "a,b\n\"c");
    CHECK_STR(node_text(&in, 1, "/fork_type"), "natural");
    CHECK_STR(node_text(&in, 3, "/fork_type"), "null");
    CHECK_INT(node_parent_count(&in, 3), 2); /* its own last and the message before */
    CHECK(node_has_parent(&in, 3, 1));
    CHECK(node_has_parent(&in, 3, 2));
    CHECK(node_get(&in, 1, "/state_delta/beliefs") == NULL);
    CHECK_STR(node_text(&in, 2, "/state_delta/beliefs/exec_ok/value"), "true");
    CHECK_STR(node_text(&in, 4, "/state_delta/beliefs/exec_ok/value"), "false");
    CHECK_STR(node_text(&in, 3, "/timestamp"), "2.0");
    CHECK_STR(node_text(&in, 3, "/event/at/index"), "2");
    CHECK_INT(issue_count(&in, CX_ISSUE_NO_TIME), 1);
    imported_done(&in);
}

CX_TEST(who_roles_lose_their_group)
{
    imported in;
    import_text(
        &in, "who-when",
        DOC(ROLE("human") "," ROLE("Orchestrator (thought)") "," ROLE(
            "Orchestrator (-> Web "
            "(Surfer))") "," ROLE("WebSurfer") "," ROLE("f(x)") "," ROLE("(all)") "," ROLE("open)") "," ROLE("human")));
    static const char *const agents[] = {"human", "Orchestrator", "Orchestrator", "WebSurfer",
                                         "f(x)",  "(all)",        "open)",        "human"};
    static const char *const forks[] = {"natural", "natural", "null",    "natural",
                                        "natural", "natural", "natural", "null"};
    REQUIRE(in.count == 9);
    for (size_t i = 0; i < 8; i++) {
        CHECK_STR(node_text(&in, i + 1, "/agent_id"), agents[i]);
        CHECK_STR(node_text(&in, i + 1, "/fork_type"), forks[i]);
        CHECK_STR(node_text(&in, i + 1, "/event/kind"),
                  strcmp(agents[i], "human") == 0 ? "input" : "message");
    }
    imported_done(&in);
}

CX_TEST(who_exit_codes)
{
    static const struct {
        const char *content, *belief;
    } cases[] = {{"exitcode: 0", "true"},    {"x\\nexitcode: 127 (failed)", "false"},
                 {"exitcode: -1", "false"},  {"exitcode: 00", "true"},
                 {"exitcode: ", "(absent)"}, {"exitcode: none", "(absent)"},
                 {"exit code 1", "(absent)"}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        imported in;
        char text[256];
        (void)snprintf(text, sizeof text, "{\"question\":\"q\",\"history\":[" NAMED("a", "%s") "]}",
                       cases[i].content);
        import_text(&in, "who-when", text);
        CHECK_STR(node_text(&in, 1, "/state_delta/beliefs/exec_ok/value"), cases[i].belief);
        imported_done(&in);
    }
}

CX_TEST(who_labels_stay_outside)
{
    imported in;
    cx_buf labels;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_bytes file = cx_str_bytes(CX_STR(DOC(NAMED("a", "x"))));
    cx_buf_init(&labels, cx_alloc_default());
    options.labels = imported_write;
    options.labels_arg = &labels;
    import_bytes(&in, "who-when", &file, 1, &options);
    static const char *const forbidden[] = {"SECRET", "mistake_", "ground_truth", "is_correct",
                                            "labels"};
    for (size_t i = 0; i < CX_COUNT_OF(forbidden); i++)
        CHECK(memmem(in.out.data, in.out.size, forbidden[i], strlen(forbidden[i])) == NULL);
    CHECK_STR(node_text(&in, 0, "/event/raw_top/question"), "why");
    CHECK_STR(node_text(&in, 0, "/event/raw_top/level"), "1");
    CHECK(node_get(&in, 0, "/event/raw_top/history") == NULL);
    CHECK_STR(cx_buf_str(&labels),
              "{\"file\":0,\"labels\":{\"ground_truth\":\"SECRETC\",\"is_correct\":false,"
              "\"is_corrected\":true,\"labels\":\"SECRETD\",\"mistake_agent\":\"SECRETA\","
              "\"mistake_reason\":\"SECRETB\",\"mistake_step\":\"1\"}}\n");
    imported_done(&in);
    cx_buf_done(&labels);
}

CX_TEST(who_strange_documents)
{
    imported in;
    import_text(&in, "who-when", "{\"history\":[3,{\"content\":\"nobody\"},{\"name\":\"a\"}]}");
    CHECK_INT(in.count, 4);
    CHECK_INT(in.summary.total.bad, 2);
    CHECK_STR(node_text(&in, node_with(&in, "kind", "message"), "/agent_id"), "a");
    imported_done(&in);
    import_text(&in, "who-when", "{\"question\":\"x\"}");
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

/* The other spellings: `trajectory`, `agent_name` and `agent`, `message` and `text`. */
CX_TEST(who_other_spellings)
{
    imported in;
    import_text(&in, "auto",
                "{\"mistake_agent\":\"SECRET\",\"mistake_step\":0,\"trajectory\":[{\"agent_name\":"
                "\"A\",\"content\":\"x\",\"action\":\"a\"},{\"agent\":\"B\",\"message\":"
                "\"exitcode: 2\"},{\"name\":\"C\",\"text\":\"z\"},{\"text\":\"nobody\"}]}");
    REQUIRE(in.count == 5);
    CHECK_STR(node_text(&in, 1, "/event/source"), "who-when");
    CHECK_STR(node_text(&in, 1, "/agent_id"), "A");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "B");
    CHECK_STR(node_text(&in, 2, "/state_delta/beliefs/exec_ok/value"), "false");
    CHECK_STR(node_text(&in, 3, "/event/text"), "z");
    CHECK_INT(in.summary.total.bad, 1);
    CHECK(memmem(in.out.data, in.out.size, "SECRET", 6) == NULL);
    imported_done(&in);
}

/* Every file, with the counts that the labels' summary gives. */
CX_TEST(who_files)
{
    const char *path = cx_test_data("data/who_and_when/labels.json");
    if (path == NULL) {
        cx_test_skip("no test data");
        return;
    }
    cx_buf text;
    cx_arena arena;
    cx_json list;
    cx_err err = {0};
    cx_buf_init(&text, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path, 1u << 20, &text, &err), &err);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&text), &arena, &list, &err), &err);
    size_t files = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        imported in;
        char name[256];
        const char *pointer = name;
        uint64_t steps = 0;
        cx_str file = CX_JSON_GET_STR(&list.items[i], "file");
        CHECK(cx_json_uint64(CX_JSON_GET(&list.items[i], "steps"), &steps));
        (void)snprintf(name, sizeof name, "data/who_and_when/%.*s", (int)file.size, file.data);
        if (cx_test_data(name) == NULL)
            continue;
        if (!import_data(&in, "who-when", &pointer, 1))
            continue;
        files++;
        CHECK_INT(in.summary.total.records, steps);
        CHECK_INT(in.count, steps + 1);
        CHECK_INT(in.summary.total.bad, 0);
        CHECK_INT(in.time_errors, 0);
        CHECK(memmem(in.out.data, in.out.size, "mistake_", 8) == NULL);
        CHECK(memmem(in.out.data, in.out.size, "\"ground_truth\"", 14) == NULL);
        /* The speaker at the labelled step. */
        int64_t step = atoll(cx_json_text(CX_JSON_GET(&list.items[i], "mistake_step")).data);
        CHECK(cx_str_eq(node_text(&in, (size_t)step + 1, "/agent_id"),
                        CX_JSON_GET_STR(&list.items[i], "agent_at_step")));
        imported_done(&in);
    }
    CHECK_INT(files, 71);
    cx_arena_done(&arena);
    cx_buf_done(&text);
}

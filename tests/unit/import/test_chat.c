#include "import/chat.h"

#include "tests/unit/import/util.h"

/* --- every failure of memory is said, or changes nothing ----------------------------------- */

typedef struct failing_once {
    cx_alloc alloc;
    size_t calls;
    size_t fail_at;
    bool for_good; /* and all after it */
    size_t held_bytes;
} failing_once;

static void *failing_resize(void *ctx, void *block, size_t old_size, size_t new_size)
{
    failing_once *failing = ctx;
    if (new_size != 0) {
        failing->calls++;
        if (failing->calls == failing->fail_at ||
            (failing->for_good && failing->calls > failing->fail_at))
            return NULL;
    }
    void *moved = cx_alloc_default()->resize(cx_alloc_default()->ctx, block, old_size, new_size);
    if (moved != NULL || new_size == 0)
        failing->held_bytes += new_size - old_size;
    return moved;
}

/* False when no allocation was left to fail. */
static bool import_failing(const char *format, cx_str text, size_t n, bool for_good, cx_str whole)
{
    failing_once failing = {.fail_at = n, .for_good = for_good};
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_import_summary summary = {0};
    cx_bytes file = cx_str_bytes(text);
    cx_buf out;
    cx_err err = {0};
    failing.alloc = (cx_alloc){failing_resize, &failing};
    options.alloc = &failing.alloc;
    cx_buf_init(&out, cx_alloc_default());
    cx_status status =
        cx_import_run_bytes(format, &file, 1, &options, imported_write, &out, &summary, &err);
    if (cx_failed(status))
        CHECK_INT(status.code, CX_E_NOMEM);
    else
        CHECK(cx_str_eq(cx_buf_str(&out), whole)); /* never an import that is a little different */
    cx_import_summary_done(&summary);
    cx_buf_done(&out);
    CHECK_INT(failing.held_bytes, 0);
    return failing.calls >= n;
}

static void check_memory(const char *format, const char *text)
{
    imported in;
    import_text(&in, format, text);
    CHECK_STATUS(in.status, &in.err);
    for (int for_good = 0; for_good < 2; for_good++) {
        size_t n = 1;
        while (n < 5000 &&
               import_failing(format, cx_str_z(text), n, for_good != 0, cx_buf_str(&in.out)))
            n++;
        CHECK(n > 10 && n < 5000);
    }
    imported_done(&in);
}

CX_TEST(chat_formats_out_of_memory)
{
    check_memory(
        "claude-code",
        "{\"type\":\"assistant\",\"uuid\":\"a\",\"sessionId\":\"one\",\"message\":{\"content\":"
        "[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Task\",\"input\":{}}]}}\n"
        "{\"type\":\"assistant\",\"uuid\":\"x\",\"agentId\":\"b\",\"sessionId\":\"two\"}\n"
        "{\"type\":\"user\",\"uuid\":\"r\",\"toolUseResult\":{\"agentId\":\"b\"},\"message\":{"
        "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"is_error\":true}]}}\n");
    check_memory(
        "codex",
        "{\"type\":\"session_meta\",\"payload\":{\"id\":\"x\",\"parent_thread_id\":\"y\"}}\n"
        "{\"type\":\"function_call\",\"name\":\"update_plan\",\"call_id\":\"c\","
        "\"arguments\":\"{\\\"plan\\\":[1]}\"}\n"
        "{\"type\":\"function_call_output\",\"call_id\":\"c\","
        "\"output\":\"{\\\"metadata\\\":{\\\"exit_code\\\":1}}\"}\n");
    check_memory("swe-agent",
                 "{\"history\":[{\"role\":\"assistant\",\"action\":\"a\"}],\"trajectory\":["
                 "{\"action\":\"a\",\"state\":\"{\\\"cwd\\\": \\\"/\\\"}\"},{\"action\":\"b\"}]}");
    check_memory("tau-bench",
                 "[{\"task_id\":1,\"trial\":0,\"traj\":[{\"role\":\"assistant\",\"tool_calls\":["
                 "{\"id\":\"a\"},{\"id\":\"b\"}]}]},{\"task_id\":1,\"trial\":0,\"traj\":[]}]");
    check_memory("who-when", "{\"mistake_step\":\"0\",\"history\":[{\"name\":\"a\"}]}");
}

/* --- names --------------------------------------------------------------------------------- */

CX_TEST(chat_scalars)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json text = cx_json_make_str(CX_STR("x")), number = cx_json_make_int(&arena, 12);
    cx_json null = cx_json_make_null(), truth = cx_json_make_bool(true);
    CHECK_STR(cx_import_scalar(&text), "x");
    CHECK_STR(cx_import_scalar(&number), "12");
    CHECK_INT(cx_import_scalar(&truth).size, 0);
    CHECK_INT(cx_import_scalar(NULL).size, 0);
    CHECK(cx_import_not_null(&null) == NULL);
    CHECK(cx_import_not_null(&truth) == &truth);
    cx_arena_done(&arena);
}

CX_TEST(chat_book_keeps_the_first_note)
{
    cx_arena keep;
    cx_err err = {0};
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_import_index index = {0};
    options.alloc = cx_alloc_default();
    cx_arena_init(&keep, options.alloc, 0);
    cx_import_sink sink = {.options = &options, .keep = &keep};
    CHECK(cx_import_index_find(&index, CX_STR("a")) == NULL);
    CHECK_STATUS(cx_import_index_add(&sink, &index, CX_STR("a"), CX_STR("one"), 1, &err), &err);
    CHECK_STATUS(cx_import_index_add(&sink, &index, CX_STR("a"), CX_STR("two"), 2, &err), &err);
    CHECK_STATUS(cx_import_index_add(&sink, &index, CX_STR(""), CX_STR("no"), 3, &err), &err);
    const cx_import_note *note = cx_import_index_find(&index, CX_STR("a"));
    REQUIRE(note != NULL);
    CHECK_STR(note->text, "one");
    CHECK_INT(note->record, 1);
    CHECK(cx_import_index_find(&index, CX_STR("")) == NULL);
    CHECK_INT(index.notes.count, 1);
    cx_import_index_done(&index, options.alloc);
    cx_import_index_done(&index, options.alloc);
    cx_arena_done(&keep);
}

CX_TEST(chat_short_names)
{
    static const char *const cases[][2] = {
        {"12345678-a", "p-12345678"},
        {"12345678-b", "p-12345678-b"},
        {"12345678-a", "p-12345678"},
        {"abc", "p-abc"},
        {"12345678", "p-12345678~2"},
        {"12345678", "p-12345678~2"},
        {"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
         "\xe2\x82\xac\xe2\x82\xac",
         "p-\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
         "\xe2\x82\xac"},
    };
    cx_arena keep;
    cx_err err = {0};
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_import_index index = {0};
    options.alloc = cx_alloc_default();
    cx_arena_init(&keep, options.alloc, 0);
    cx_import_sink sink = {.options = &options, .keep = &keep};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_str name = {NULL, 0};
        CHECK_STATUS(
            cx_import_short_name(&sink, &index, CX_STR("p-"), cx_str_z(cases[i][0]), &name, &err),
            &err);
        CHECK_STR(name, cases[i][1]);
    }
    cx_import_index_done(&index, options.alloc);
    cx_arena_done(&keep);
}

#include "tests/unit/import/util.h"

#include <locale.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* OTLP lines stand for any line format here: a span a line. */
#define LINE(id, time, agent)                                                               \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"spanId\":\"00000000000000" id      \
    "\",\"startTimeUnixNano\":\"" time "\",\"attributes\":[{\"key\":\"gen_ai.agent.name\"," \
    "\"value\":{\"stringValue\":\"" agent "\"}}]}]}]}]}"

CX_TEST(core_crlf_and_blank_lines)
{
    imported in;
    import_text(&in, "otlp", LINE("01", "1", "a") "\r\n\r\n \t\n" LINE("02", "2", "a"));
    CHECK_INT(in.count, 3);
    CHECK_INT(in.summary.total.blank_lines, 2);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_STR(node_text(&in, 0, "/event/blank_lines"), "2");
    CHECK_STR(node_text(&in, 2, "/event/at/line"), "4");
    imported_done(&in);
}

CX_TEST(core_lines_that_are_no_json)
{
    imported in;
    import_text(&in, "otlp",
                LINE("01", "5", "a") "\n"
                                     "\xff\xfe\n"
                                     "{\"a\":1,\"a\":2}\n"
                                     "{\"a\":1e999}\n"
                                     "{\"cut");
    CHECK_INT(in.count, 6);
    CHECK_INT(in.summary.total.bad, 4);
    CHECK_STR(node_text(&in, 2, "/event/error"), "U_UTF8");
    CHECK_STR(node_text(&in, 2, "/event/raw_b64"), "//4=");
    CHECK_STR(node_text(&in, 3, "/event/error"), "U_DUPKEY");
    CHECK_STR(node_text(&in, 3, "/event/raw_text"), "{\"a\":1,\"a\":2}");
    CHECK_STR(node_text(&in, 4, "/event/error"), "U_NUMBER");
    CHECK_STR(node_text(&in, 5, "/event/error"), "U_SYNTAX");
    CHECK_STR(node_text(&in, 5, "/event/raw_text"), "{\"cut");
    CHECK_STR(node_text(&in, 5, "/event/line"), "5");
    for (size_t i = 2; i < in.count; i++) {
        CHECK_STR(node_text(&in, i, "/agent_id"), "importer");
        CHECK_STR(node_text(&in, i, "/timestamp"), "5e-09"); /* of the record before */
        CHECK(node_has_parent(&in, i, 0));
    }
    imported_done(&in);
}

CX_TEST(core_nesting_that_a_node_could_not_hold_is_bad)
{
    imported in;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, LINE("01", "1", "a") "\n");
    for (int deep = 1022; deep <= 1023; deep++) {
        for (int i = 0; i < deep; i++)
            cx_buf_add_byte(&text, '[');
        for (int i = 0; i < deep; i++)
            cx_buf_add_byte(&text, ']');
        cx_buf_add_byte(&text, '\n');
    }
    cx_bytes file = cx_buf_bytes(&text);
    import_bytes(&in, "otlp", &file, 1, NULL);
    CHECK_INT(in.count, 4);
    CHECK(node_has_issue(&in, 2, "unknown_type")); /* read, but no span */
    CHECK_STR(node_text(&in, 3, "/event/error"), "U_DEPTH");
    imported_done(&in);
    cx_buf_done(&text);
}

CX_TEST(core_agents_that_differ_stay_different)
{
    imported in;
    import_text(
        &in, "otlp",
        LINE("01", "1", "7up") "\n" LINE("02", "2", "_7up") "\n" LINE(
            "03", "3", "a,b\\n\\\"c") "\n" LINE("04", "4",
                                                "importer") "\n" LINE("05", "5",
                                                                      " x ") "\n" LINE("06", "6",
                                                                                       "\\ud800"));
    CHECK_INT(in.count, 7);
    CHECK_STR(node_text(&in, 1, "/agent_id"), "_7up");
    CHECK_STR(node_text(&in, 2, "/agent_id"), "_7up~2");
    CHECK_STR(node_text(&in, 3, "/agent_id"), "a,b\n\"c");
    CHECK_STR(node_text(&in, 4, "/agent_id"), "importer~2");
    CHECK_STR(node_text(&in, 5, "/agent_id"), "x");
    CHECK_STR(node_text(&in, 6, "/agent_id"), "\\ud800");
    CHECK_INT(in.summary.agent_count, 7);
    CHECK_STR(in.summary.agents[0].name, "importer");
    imported_done(&in);
}

CX_TEST(core_file_node_says_what_was_read)
{
    imported in;
    const cx_bytes files[] = {
        cx_str_bytes(CX_STR(LINE("01", "9", "a") "\n\n" LINE("03", "9", "a"))),
        cx_str_bytes(CX_STR("")), cx_str_bytes(CX_STR(LINE("02", "7", "a") "\nx\n"))};
    import_bytes(&in, "otlp", files, 3, NULL);
    CHECK(cx_failed(in.status)); /* an empty file is no document and has no lines */
    imported_done(&in);
    const cx_bytes two[] = {files[0], files[2]};
    import_bytes(&in, "otlp", two, 2, NULL);
    CHECK_INT(in.count, 6);
    CHECK_STR(node_text(&in, 0, "/event/at/file"), "0");
    CHECK_STR(node_text(&in, 1, "/event/at/file"), "1");
    CHECK(node_has_parent(&in, 1, 0));
    CHECK_STR(node_text(&in, 0, "/state_delta/memory/run/format"), "otlp");
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/run/file"), "1");
    CHECK_STR(node_text(&in, 0, "/timestamp"), "7e-09"); /* not later than anything after it */
    CHECK_STR(node_text(&in, 0, "/prev_hash"),
              "0000000000000000000000000000000000000000000000000000000000000000");
    CHECK_STR(node_text(&in, 2, "/event/at/file"), "1"); /* by time, over the files */
    CHECK_INT(in.summary.file_count, 2);
    CHECK_INT(in.summary.files[0].records, 2);
    CHECK_INT(in.summary.files[0].blank_lines, 1);
    CHECK_INT(in.summary.files[1].bad, 1);
    CHECK_INT(in.summary.files[1].nodes, 3);
    CHECK_INT(in.time_errors, 0);
    imported_done(&in);
}

/* The expected digits are those of sha256sum. */
CX_TEST(core_file_hash_is_of_the_bytes)
{
    imported in;
    import_text(&in, "otlp", "{\"resourceSpans\":[]}");
    const cx_json *sha = node_get(&in, 0, "/event/sha256");
    REQUIRE(sha != NULL);
    CHECK_STR(node_text(&in, 0, "/event/sha256"),
              "57bc3a530fb2531e27616aa44e504e044b9d41aea1c0f16b843d1fddb58a1cb9");
    CHECK_STR(node_text(&in, 0, "/event/bytes"), "20");
    imported_done(&in);
}

CX_TEST(core_plain_ids_number_the_output)
{
    imported in;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_bytes file = cx_str_bytes(CX_STR(LINE("02", "2", "a") "\n" LINE("01", "1", "a")));
    options.plain_ids = true;
    import_bytes(&in, "otlp", &file, 1, &options);
    CHECK_STR(node_text(&in, 0, "/node_id"), "s0");
    CHECK_STR(node_text(&in, 2, "/node_id"), "s2");
    CHECK_STR(node_text(&in, 2, "/parents/0"), "s1");
    CHECK_STR(node_text(&in, 2, "/event/at/line"), "1");
    imported_done(&in);
}

CX_TEST(core_every_node_remembers_its_agents_last_content)
{
    imported in;
    import_text(&in, "langfuse",
                "{\"trace\":{\"name\":\"n\"},\"observations\":[{\"id\":\"a\",\"type\":\"TOOL\","
                "\"output\":\"abc\"}]}");
    CHECK_STR(node_text(&in, 1, "/state_delta/memory/last/n"), "ba7816bf8f01cfea");
    CHECK_INT(node_text(&in, 0, "/state_delta/memory/last/importer").size, 16);
    imported_done(&in);
}

CX_TEST(core_usage_errors)
{
    imported in;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_bytes file = cx_str_bytes(CX_STR(LINE("01", "1", "a")));
    import_text(&in, "no-such-format", "{}");
    CHECK_INT(in.status.code, CX_E_USAGE);
    imported_done(&in);
    options.only = CX_STR("1.2");
    import_bytes(&in, "otlp", &file, 1, &options);
    CHECK_INT(in.status.code, CX_E_USAGE);
    imported_done(&in);
    import_text(&in, "auto", "{\"who\":\"knows\"}");
    CHECK_INT(in.status.code, CX_E_FORMAT);
    imported_done(&in);
}

CX_TEST(core_formats_are_found_by_their_bytes)
{
    static const struct {
        const char *text, *format;
    } cases[] = {
        {LINE("01", "1", "a"), "otlp"},
        {"{\"spans\":[],\"final_output\":1}", "otel-sdk"},
        {"{\"trace\":{},\"observations\":[]}", "langfuse"},
        {"{\"type\":\"user\",\"uuid\":\"a\",\"message\":{\"content\":\"x\"}}", "claude-code"},
        {"{\"type\":\"us\n{\"type\":\"user\",\"uuid\":\"a\"}", "claude-code"},
        {"{\"type\":\"message\",\"role\":\"user\",\"content\":[]}", "codex"},
        {"{\"timestamp\":\"t\",\"type\":\"session_meta\",\"payload\":{}}", "codex"},
        {"{\"type\":\"user\",\"uuid\":\"a\",\"sessionId\":\"s\",\"parentUuid\":null}\n"
         "{\"type\":\"assistant\",\"uuid\":\"b\",\"message\":{\"parts\":[]}}",
         "qwen-code"},
        {"{\"sessionId\":\"s\",\"projectHash\":\"p\",\"messages\":[]}", "gemini-cli"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        const char *found = cx_import_detect(cx_str_bytes(cx_str_z(cases[i].text)));
        CHECK(found != NULL && strcmp(found, cases[i].format) == 0);
    }
    CHECK(cx_import_detect(cx_bytes_from("", 0)) == NULL);
    CHECK(cx_import_detect(cx_str_bytes(CX_STR("plain text"))) == NULL);
}

/* The names in the list, which the command line offers, are those of the formats. */
CX_TEST(core_formats_have_the_names_of_the_list)
{
#define NAME_OF(name, text) text,
    static const char *const names[] = {CX_IMPORT_FORMATS(NAME_OF)};
#undef NAME_OF
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        REQUIRE(cx_import_format_at(i) != NULL);
        CHECK_STR(cx_str_z(cx_import_format_at(i)->name), names[i]);
    }
    CHECK(cx_import_format_at(CX_COUNT_OF(names)) == NULL);
}

/* One record that no file of a format has outweighs those that look like it. */
CX_TEST(core_evidence_against_a_format_is_believed)
{
    cx_import_guessed guessed;
    cx_err err;
    cx_import_guess(cx_bytes_from("SQLite format 3\0more", 20), &guessed);
    CHECK(guessed.format == NULL && !guessed.is_json && !guessed.is_lattice);
    REQUIRE(guessed.other != NULL);
    CHECK_STR(cx_str_z(guessed.other->name), "sqlite");
    CHECK_INT(cx_import_fail_unknown(&guessed, &err).code, CX_E_FORMAT);
    CHECK(strstr(err.message, "SQLite") != NULL);
    CHECK_STR(cx_str_z(cx_import_detect(cx_str_bytes(CX_STR(
                  "{\"type\":\"user\",\"uuid\":\"a\",\"sessionId\":\"s\",\"parentUuid\":null}\n"
                  "{\"type\":\"assistant\",\"uuid\":\"b\",\"message\":{\"parts\":[]}}")))),
              "qwen-code");
    cx_import_guessed lattice;
    cx_import_guess(cx_str_bytes(CX_STR("{\"agent\":\"a\",\"node_id\":\"n\"}")), &lattice);
    CHECK(lattice.is_lattice && lattice.format == NULL);
    cx_import_guess(cx_str_bytes(CX_STR("2026-01-01 a log line\n")), &lattice);
    CHECK(!lattice.is_lattice && !lattice.is_json);
}

/* --- files --------------------------------------------------------------------------------- */

/* The system's files, with what a test wants to happen to them. */
typedef struct odd_io {
    cx_io io;
    unsigned preads;
    unsigned spoil_from; /* reads from this one on see other bytes; 0 = never */
} odd_io;

static int64_t odd_pread(const cx_io *io, cx_file file, void *data, size_t size, uint64_t offset)
{
    odd_io *odd = io->ctx;
    int64_t got = cx_io_system()->pread(cx_io_system(), file, data, size, offset);
    odd->preads++;
    if (odd->spoil_from != 0 && odd->preads >= odd->spoil_from && got > 0)
        ((char *)data)[got - 1] ^= 1;
    return got;
}

static bool write_temporary(char path[64], cx_str text)
{
    (void)snprintf(path, 64, "/tmp/cortex-import-XXXXXX");
    int file = mkstemp(path);
    bool ok = file >= 0 && write(file, text.data, text.size) == (ssize_t)text.size;
    if (file >= 0)
        (void)close(file);
    return ok;
}

CX_TEST(core_files_and_memory_give_the_same_bytes)
{
    char path[64];
    const char *paths[] = {path};
    cx_str text = CX_STR(LINE("02", "2", "b") "\r\n\nbad\n" LINE("01", "1", "a"));
    cx_bytes file = cx_str_bytes(text);
    imported in;
    cx_buf out;
    cx_err err = {0};
    REQUIRE(write_temporary(path, text));
    import_bytes(&in, "otlp", &file, 1, NULL);
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(
        cx_import_run(cx_io_system(), "otlp", paths, 1, NULL, imported_write, &out, NULL, &err),
        &err);
    CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(&in.out)));
    cx_buf_done(&out);
    imported_done(&in);
    (void)unlink(path);
}

/* Lines of all sizes, across the ends of what is read at once, and not in the order of time. */
static void add_long_lines(cx_buf *text)
{
    for (unsigned i = 0; i < 400; i++) {
        const size_t size = i == 150 ? 200000 : i * 37 % 3000;
        cx_buf_printf(text,
                      "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"spanId\":\"%016x\","
                      "\"startTimeUnixNano\":\"%u\",\"name\":\"",
                      i + 1, i % 7 == 0 ? 1000 - i : 1000 + i);
        for (size_t k = 0; k < size; k++)
            cx_buf_add_byte(text, (uint8_t)('a' + k % 26));
        cx_buf_add_z(text, i % 11 == 0 ? "\"}]}]}]}\r\n\n\n" : "\"}]}]}]}\n");
    }
}

CX_TEST(core_long_files_and_memory_give_the_same_bytes)
{
    char path[64];
    const char *paths[] = {path};
    imported in;
    cx_buf text, out;
    cx_err err = {0};
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    add_long_lines(&text);
    cx_bytes file = cx_buf_bytes(&text);
    REQUIRE(!text.failed && write_temporary(path, cx_buf_str(&text)));
    import_bytes(&in, "otlp", &file, 1, NULL);
    CHECK_INT(in.count, 401);
    CHECK_INT(in.summary.total.bad, 0);
    CHECK_STATUS(
        cx_import_run(cx_io_system(), "otlp", paths, 1, NULL, imported_write, &out, NULL, &err),
        &err);
    CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(&in.out)));
    cx_buf_done(&out);
    cx_buf_done(&text);
    imported_done(&in);
    (void)unlink(path);
}

CX_TEST(core_a_file_that_changes_under_us_is_an_error)
{
    char path[64];
    const char *paths[] = {path};
    odd_io odd = {.io = *cx_io_system()};
    cx_buf out;
    cx_err err = {0};
    odd.io.ctx = &odd;
    odd.io.pread = odd_pread;
    /* Without a line end, the last byte that is read is one of a record. */
    REQUIRE(write_temporary(path, CX_STR(LINE("01", "1", "a") "\n" LINE("02", "2", "a"))));
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_import_run(&odd.io, "otlp", paths, 1, NULL, imported_write, &out, NULL, &err),
                 &err);
    odd.spoil_from = odd.preads - 1; /* of the second pass, before the one that finds the end */
    odd.preads = 0;
    cx_status status =
        cx_import_run(&odd.io, "otlp", paths, 1, NULL, imported_write, &out, NULL, &err);
    CHECK_INT(status.code, CX_E_CONFLICT);
    cx_buf_done(&out);
    (void)unlink(path);
}

CX_TEST(core_a_missing_file_is_named)
{
    const char *paths[] = {"/nonexistent/cortex-import"};
    cx_buf out;
    cx_err err = {0};
    cx_buf_init(&out, cx_alloc_default());
    cx_status status =
        cx_import_run(cx_io_system(), "otlp", paths, 1, NULL, imported_write, &out, NULL, &err);
    CHECK_INT(status.code, CX_E_NOT_FOUND);
    CHECK(strstr(err.message, paths[0]) != NULL);
    cx_buf_done(&out);
}

static cx_status refuse(void *arg, cx_bytes bytes, cx_err *err)
{
    (void)arg;
    (void)bytes;
    return cx_fail(err, CX_E_IO, "disk full");
}

CX_TEST(core_what_write_says_is_passed_on)
{
    cx_bytes file = cx_str_bytes(CX_STR(LINE("01", "1", "a")));
    cx_err err = {0};
    cx_status status = cx_import_run_bytes("otlp", &file, 1, NULL, refuse, NULL, NULL, &err);
    CHECK_INT(status.code, CX_E_IO);
    CHECK(strcmp(err.message, "disk full") == 0);
}

CX_TEST(core_a_line_of_ten_megabytes)
{
    enum { SIZE = 10 * 1024 * 1024 };
    imported in;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, LINE("01", "1",
                             "a") "\n"
                                  "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"spanId\":"
                                  "\"0000000000000002\",\"startTimeUnixNano\":\"2\",\"image\":\"");
    uint8_t *room = cx_buf_reserve(&text, SIZE);
    REQUIRE(room != NULL);
    memset(room, 'x', SIZE);
    cx_buf_advance(&text, SIZE);
    cx_buf_add_z(&text, "\"}]}]}]}\n");
    cx_bytes file = cx_buf_bytes(&text);
    import_bytes(&in, "otlp", &file, 1, NULL);
    CHECK_INT(in.count, 3);
    CHECK_INT(node_text(&in, 2, "/event/raw/image").size, SIZE);
    imported_done(&in);
    cx_buf_done(&text);
}

CX_TEST(core_a_lower_limit_is_kept)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_bytes file = cx_str_bytes(CX_STR(LINE("01", "1", "a") "\n" LINE("02", "2", "a")));
    imported in;
    options.max_bytes = 20;
    import_bytes(&in, "otlp", &file, 1, &options);
    CHECK_INT(in.status.code, CX_E_LIMIT);
    CHECK_STR(cx_str_z(in.err.tag), "U_LIMIT");
    imported_done(&in);
}

CX_TEST(core_locale_and_time_zone_do_not_matter)
{
    imported here, there;
    static const char text[] = "{\"trace\":{},\"observations\":[{\"id\":\"a\",\"type\":\"SPAN\","
                               "\"startTime\":\"2025-03-30T02:30:00.5\",\"x\":1.5e-7}]}";
    import_text(&here, "langfuse", text);
    (void)setenv("TZ", "Australia/Lord_Howe", 1);
    tzset();
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL)
        (void)setlocale(LC_ALL, "C.UTF-8");
    import_text(&there, "langfuse", text);
    CHECK(here.out.size != 0 && cx_str_eq(cx_buf_str(&here.out), cx_buf_str(&there.out)));
    (void)setlocale(LC_ALL, "C");
    (void)unsetenv("TZ");
    tzset();
    imported_done(&here);
    imported_done(&there);
}

CX_TEST(core_raw_is_the_record_in_canonical_form)
{
    imported in;
    import_text(&in, "langfuse",
                "{\"trace\":{},\"observations\":[{\"type\":\"SPAN\",\"n\":1.10,\"i\":-0,\"big\":"
                "123456789012345678901234567890,\"s\":\"\\ud800\\u00e9\\/\",\"id\":\"a\"}]}");
    const cx_json *raw = node_get(&in, 1, "/event/raw");
    cx_buf text;
    REQUIRE(raw != NULL);
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&text, raw, CX_JSON_PY_COMPACT, &in.err), &in.err);
    CHECK_STR(cx_buf_str(&text),
              "{\"big\":123456789012345678901234567890,\"i\":0,\"id\":\"a\",\"n\":1.1,\"s\":"
              "\"\\ud800\\u00e9/\",\"type\":\"SPAN\"}");
    cx_buf_done(&text);
    imported_done(&in);
}

CX_TEST(core_summary_in_both_shapes)
{
    imported in;
    cx_buf text;
    cx_json value;
    import_text(&in, "otlp", LINE("01", "1", "a") "\n\n" LINE("01", "2", "a") "\nx\n");
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_import_summary_text(&text, &in.summary, &in.err), &in.err);
    CHECK_STR(cx_buf_str(&text), "otlp: 3 records, 4 nodes from 1 file, 2 agents\n"
                                 "  bad records: 1, in line 4: U_SYNTAX, no complete JSON\n"
                                 "  blank lines: 1\n"
                                 "  duplicate_id: 1  records with the id of an earlier one\n");
    cx_buf_clear(&text);
    CHECK_STATUS(cx_import_summary_json(&text, &in.summary, &in.err), &in.err);
    REQUIRE(text.size != 0 && text.data[text.size - 1] == '\n');
    text.size--;
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&text), &in.arena, &value, &in.err), &in.err);
    CHECK_STR(cx_json_text(cx_json_pointer(&value, CX_STR("/issues/duplicate_id"))), "1");
    CHECK_STR(cx_json_text(cx_json_pointer(&value, CX_STR("/files/0/records"))), "3");
    cx_buf again;
    cx_buf_init(&again, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&again, &value, CX_JSON_PY_COMPACT, &in.err), &in.err);
    CHECK(cx_str_eq(cx_buf_str(&again), cx_buf_str(&text))); /* canonical */
    cx_buf_done(&again);
    cx_buf_done(&text);
    imported_done(&in);
}

/* --- memory -------------------------------------------------------------------------------- */

typedef struct failing_alloc {
    cx_alloc alloc;
    size_t calls;
    size_t fail_at; /* this call and all after it fail */
    size_t held_bytes;
} failing_alloc;

static void *failing_resize(void *ctx, void *block, size_t old_size, size_t new_size)
{
    failing_alloc *failing = ctx;
    if (new_size != 0 && ++failing->calls >= failing->fail_at)
        return NULL;
    void *moved = cx_alloc_default()->resize(cx_alloc_default()->ctx, block, old_size, new_size);
    if (moved != NULL || new_size == 0)
        failing->held_bytes += new_size - old_size;
    return moved;
}

CX_TEST(core_running_out_of_memory_is_an_ordinary_error)
{
    static const cx_bytes files[] = {
        {(const uint8_t *)LINE("01", "1", "a") "\nbad\n" LINE("01", "3", "b"),
         sizeof(LINE("01", "1", "a") "\nbad\n" LINE("01", "3", "b")) - 1},
    };
    bool finished = false;
    for (size_t n = 1; n < 5000 && !finished; n++) {
        failing_alloc failing = {.fail_at = n};
        cx_import_options options = CX_IMPORT_OPTIONS_INIT;
        cx_import_summary summary = {0};
        cx_buf out;
        cx_err err = {0};
        failing.alloc = (cx_alloc){failing_resize, &failing};
        options.alloc = &failing.alloc;
        cx_buf_init(&out, cx_alloc_default());
        cx_status status =
            cx_import_run_bytes("otlp", files, 1, &options, imported_write, &out, &summary, &err);
        finished = !cx_failed(status);
        if (!finished)
            CHECK_INT(status.code, CX_E_NOMEM);
        cx_import_summary_done(&summary);
        cx_buf_done(&out);
        CHECK_INT(failing.held_bytes, 0);
    }
    CHECK(finished);
}

/*
 * test_window.c - a window of a file gives the records in it the nodes that the whole gives them
 * (docs/formats/imports.md §1.16).
 */
#include "tests/unit/import/util.h"

#include <stdio.h>
#include <stdlib.h>

#define LINES 40u
#define HEAD 2u
#define BEFORE 6u

/* Four lines a turn: a person, a call, its answer, a text. */
static void add_claude_line(cx_buf *out, unsigned i)
{
    static const char *const contents[] = {
        "\"do it\"",
        "[{\"type\":\"tool_use\",\"id\":\"t%u\",\"name\":\"Bash\",\"input\":{\"c\":%u}}]",
        "[{\"type\":\"tool_result\",\"tool_use_id\":\"t%u\",\"content\":\"x\",\"is_error\":false}]",
        "[{\"type\":\"text\",\"text\":\"said %u\"}]"};
    cx_buf_printf(out, "{\"type\":\"%s\",\"uuid\":\"u%u\",\"parentUuid\":",
                  i % 2 == 0 ? "user" : "assistant", i);
    if (i == 0)
        cx_buf_add_z(out, "null");
    else
        cx_buf_printf(out, "\"u%u\"", i - 1);
    cx_buf_printf(out,
                  ",\"sessionId\":\"s\",\"timestamp\":\"2026-01-02T03:04:%02u.000Z\",\"message\":"
                  "{\"content\":",
                  i);
    cx_buf_printf(out, contents[i % 4], i % 4 == 2 ? i - 1 : i, i);
    cx_buf_add_z(out, "}}\n");
}

static void add_codex_line(cx_buf *out, unsigned i)
{
    cx_buf_printf(out, "{\"timestamp\":\"2026-01-02T03:04:%02u.000Z\",\"type\":", i);
    if (i == 0)
        cx_buf_add_z(out, "\"session_meta\",\"payload\":{\"id\":\"c1\",\"cwd\":\"/w\"}}\n");
    else if (i % 4 == 1)
        cx_buf_printf(out,
                      "\"response_item\",\"payload\":{\"type\":\"function_call\",\"call_id\":"
                      "\"t%u\",\"name\":\"shell\",\"arguments\":\"{}\"}}\n",
                      i);
    else if (i % 4 == 2)
        cx_buf_printf(out,
                      "\"response_item\",\"payload\":{\"type\":\"function_call_output\",\"call_id\""
                      ":\"t%u\",\"output\":\"x\"}}\n",
                      i - 1);
    else
        cx_buf_printf(out,
                      "\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"assistant\","
                      "\"content\":[{\"type\":\"output_text\",\"text\":\"word %u\"}]}}\n",
                      i);
}

static void add_qwen_line(cx_buf *out, unsigned i)
{
    static const char *const types[] = {"user", "assistant", "tool_result", "assistant"};
    cx_buf_printf(out, "{\"uuid\":\"u%u\",\"parentUuid\":", i);
    if (i == 0)
        cx_buf_add_z(out, "null");
    else
        cx_buf_printf(out, "\"u%u\"", i - 1);
    cx_buf_printf(
        out,
        ",\"sessionId\":\"s\",\"timestamp\":\"2026-01-02T03:04:%02u.000Z\",\"type\":\"%s\","
        "\"message\":{\"role\":\"user\",\"parts\":[",
        i, types[i % 4]);
    if (i % 4 == 1)
        cx_buf_printf(out, "{\"functionCall\":{\"id\":\"t%u\",\"name\":\"ls\",\"args\":{}}}", i);
    else if (i % 4 == 2)
        cx_buf_printf(
            out,
            "{\"functionResponse\":{\"id\":\"t%u\",\"name\":\"ls\",\"response\":{\"output\":"
            "\"x\"}}}",
            i - 1);
    else
        cx_buf_printf(out, "{\"text\":\"word %u\"}", i);
    cx_buf_add_z(out, "]}}\n");
}

static void add_droid_line(cx_buf *out, unsigned i)
{
    if (i == 0) {
        cx_buf_add_z(out,
                     "{\"type\":\"session_start\",\"id\":\"s\",\"title\":\"t\",\"owner\":\"o\","
                     "\"cwd\":\"/w\"}\n");
        return;
    }
    cx_buf_printf(
        out, "{\"type\":\"message\",\"id\":\"m%u\",\"timestamp\":\"2026-01-02T03:04:%02u.000Z\",",
        i, i);
    if (i != 1)
        cx_buf_printf(out, "\"parentId\":\"m%u\",", i - 1);
    cx_buf_printf(out, "\"message\":{\"role\":\"%s\",\"content\":[",
                  i % 2 == 0 ? "user" : "assistant");
    if (i % 4 == 1)
        cx_buf_printf(out, "{\"type\":\"tool_use\",\"id\":\"t%u\",\"name\":\"LS\",\"input\":{}}",
                      i);
    else if (i % 4 == 2)
        cx_buf_printf(out, "{\"type\":\"tool_result\",\"tool_use_id\":\"t%u\",\"content\":\"x\"}",
                      i - 1);
    else
        cx_buf_printf(out, "{\"type\":\"text\",\"text\":\"word %u\"}", i);
    cx_buf_add_z(out, "]}}\n");
}

/* A call is told twice, in the message and when it is started. */
static void add_copilot_line(cx_buf *out, unsigned i)
{
    static const char *const types[] = {"user.message", "assistant.message", "tool.execution_start",
                                        "tool.execution_complete"};
    cx_buf_printf(out, "{\"type\":\"%s\",\"id\":\"e%u\",\"parentId\":",
                  i == 0 ? "session.start" : types[i % 4], i);
    if (i == 0)
        cx_buf_add_z(out, "null");
    else
        cx_buf_printf(out, "\"e%u\"", i - 1);
    cx_buf_printf(out, ",\"timestamp\":\"2026-01-02T03:04:%02u.000Z\",\"data\":{", i);
    if (i == 0)
        cx_buf_add_z(out, "\"sessionId\":\"s\"");
    else if (i % 4 == 0)
        cx_buf_printf(out, "\"content\":\"do %u\"", i);
    else if (i % 4 == 1)
        cx_buf_printf(
            out,
            "\"content\":\"I look\",\"toolRequests\":[{\"toolCallId\":\"t%u\",\"name\":\"bash\","
            "\"arguments\":{\"command\":\"ls\"}}]",
            i);
    else if (i % 4 == 2)
        cx_buf_printf(
            out, "\"toolCallId\":\"t%u\",\"toolName\":\"bash\",\"arguments\":{\"command\":\"ls\"}",
            i - 1);
    else
        cx_buf_printf(out, "\"toolCallId\":\"t%u\",\"success\":true,\"result\":{\"content\":\"x\"}",
                      i - 2);
    cx_buf_add_z(out, "}}\n");
}

typedef struct source {
    const char *format;
    cx_buf text;
    size_t starts[LINES + 1];
} source;

static void begin_source(source *s, const char *format, void (*add)(cx_buf *, unsigned))
{
    s->format = format;
    cx_buf_init(&s->text, cx_alloc_default());
    for (unsigned i = 0; i < LINES; i++) {
        s->starts[i] = s->text.size;
        add(&s->text, i);
    }
    s->starts[LINES] = s->text.size;
}

/* The head, some lines before, and the window, as the reader of sessions gives them. */
static void import_window(const source *s, unsigned from, unsigned until, imported *in)
{
    cx_buf text;
    const unsigned before = from < BEFORE ? 0 : from - BEFORE;
    const unsigned head = before < HEAD ? before : HEAD;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    const cx_import_window window = {.head = s->starts[head],
                                     .line = before,
                                     .from = from,
                                     .until = until,
                                     .after_ns = INT64_MIN,
                                     .until_ns = INT64_MAX};
    options.windows = &window;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add(&text, s->text.data, s->starts[head]);
    cx_buf_add(&text, s->text.data + s->starts[before], s->starts[until] - s->starts[before]);
    const cx_bytes file = cx_buf_bytes(&text);
    imported_begin(in);
    CHECK_STATUS(cx_import_run_bytes(s->format, &file, 1, &options, imported_write, &in->out, NULL,
                                     &in->err),
                 &in->err);
    in->summary.total.nodes = until - from + 1;
    imported_parse(in);
    imported_verify(in, false);
    cx_buf_done(&text);
}

static cx_str text_of(imported *in, const cx_json *value)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&out, value, CX_JSON_PY_COMPACT, &in->err), &in->err);
    cx_str text = cx_arena_copy_str(&in->arena, cx_buf_str(&out));
    cx_buf_done(&out);
    return text;
}

/* Without the seal, which is also over the type of a fork. */
static void check_event(imported *whole, const cx_json *a, imported *part, const cx_json *b)
{
    REQUIRE(a->count == b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        cx_str name = cx_json_text(&a->members[i].name);
        CHECK(cx_str_eq(name, cx_json_text(&b->members[i].name)));
        if (!cx_str_is(name, "__seal"))
            CHECK(cx_str_eq(text_of(whole, &a->members[i].value),
                            text_of(part, &b->members[i].value)));
    }
}

static void check_node(imported *whole, imported *part, size_t in_whole, size_t in_part)
{
    static const char *const members[] = {"agent_id", "state_delta", "timestamp"};
    const cx_json *a = &whole->nodes[in_whole], *b = &part->nodes[in_part];
    check_event(whole, CX_JSON_GET(a, "event"), part, CX_JSON_GET(b, "event"));
    for (size_t i = 0; i < CX_COUNT_OF(members); i++)
        CHECK(cx_str_eq(text_of(whole, cx_json_get(a, cx_str_z(members[i]))),
                        text_of(part, cx_json_get(b, cx_str_z(members[i])))));
}

/* The first `untimed` lines have the time of the one after them, which a window needs then. */
static void check_windows(const char *format, void (*add)(cx_buf *, unsigned), unsigned untimed)
{
    source s;
    imported whole;
    begin_source(&s, format, add);
    const cx_bytes file = cx_buf_bytes(&s.text);
    import_bytes(&whole, format, &file, 1, NULL);
    REQUIRE(whole.count == LINES + 1);
    for (unsigned from = 0; from < LINES; from++)
        for (unsigned until = (from < untimed ? untimed : from) + 1; until <= LINES; until += 7) {
            imported part;
            import_window(&s, from, until, &part);
            REQUIRE(part.count == until - from + 1);
            for (unsigned i = from; i < until; i++)
                check_node(&whole, &part, i + 1, i - from + 1);
            imported_done(&part);
        }
    imported_done(&whole);
    cx_buf_done(&s.text);
}

CX_TEST(window_of_claude_code_has_the_nodes_of_the_whole)
{
    CHECK(cx_import_has_windows("claude-code"));
    check_windows("claude-code", add_claude_line, 0);
}

CX_TEST(window_of_codex_has_the_nodes_of_the_whole)
{
    CHECK(cx_import_has_windows("codex"));
    check_windows("codex", add_codex_line, 0);
}

CX_TEST(window_of_qwen_code_has_the_nodes_of_the_whole)
{
    CHECK(cx_import_has_windows("qwen-code"));
    check_windows("qwen-code", add_qwen_line, 0);
}

CX_TEST(window_of_droid_has_the_nodes_of_the_whole)
{
    CHECK(cx_import_has_windows("droid"));
    check_windows("droid", add_droid_line, 1);
}

CX_TEST(window_of_copilot_cli_has_the_nodes_of_the_whole)
{
    CHECK(cx_import_has_windows("copilot-cli"));
    check_windows("copilot-cli", add_copilot_line, 0);
}

CX_TEST(window_says_which_lines_it_has)
{
    source s;
    imported part;
    begin_source(&s, "claude-code", add_claude_line);
    import_window(&s, 10, 20, &part);
    CHECK_STR(node_text(&part, 0, "/event/part/from"), "11");
    CHECK_STR(node_text(&part, 0, "/event/part/to"), "20");
    CHECK_STR(node_text(&part, 0, "/event/records"), "10");
    CHECK_STR(node_text(&part, 1, "/event/at/line"), "11");
    CHECK(node_get(&part, 1, "/event/issues") == NULL); /* its parent is elsewhere */
    imported_done(&part);
    cx_buf_done(&s.text);
}

/* Records of another file are chosen by their time; one without any bytes has no node. */
CX_TEST(window_takes_other_files_by_time)
{
    source s;
    imported part;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    const int64_t second = 1000000000, begin = INT64_C(1767323040) * second;
    begin_source(&s, "claude-code", add_claude_line);
    const cx_import_window windows[] = {
        {.from = 0, .until = LINES, .after_ns = INT64_MIN, .until_ns = INT64_MAX},
        {.absent = true},
        {.until = UINT64_MAX, .after_ns = begin + 5 * second, .until_ns = begin + 9 * second}};
    const cx_bytes files[] = {{s.text.data, s.starts[1]}, {NULL, 0}, cx_buf_bytes(&s.text)};
    options.windows = windows;
    imported_begin(&part);
    CHECK_STATUS(cx_import_run_bytes("claude-code", files, 3, &options, imported_write, &part.out,
                                     NULL, &part.err),
                 &part.err);
    part.summary.total.nodes = 2 + 1 + 4; /* two files, one line of the first, 6 to 9 */
    imported_parse(&part);
    CHECK_STR(node_text(&part, 1, "/event/at/file"), "2");
    CHECK_STR(node_text(&part, 3, "/event/at/line"), "7");
    CHECK_STR(node_text(&part, 6, "/event/at/line"), "10");
    imported_done(&part);
    cx_buf_done(&s.text);
}

/* --- what is repeated ------------------------------------------------------------------------ */

/* A message, the same with its answer, what is known of the session; and now and then a list of
 * messages, or a message, that were told long before. */
static void add_gemini_line(cx_buf *out, unsigned i)
{
    if (i == 0) {
        cx_buf_add_z(out, "{\"sessionId\":\"s\",\"projectHash\":\"p\"}\n");
        return;
    }
    const bool lists = i % 12 == 11, again = i % 4 == 2;
    const unsigned of = again ? i - 1 : i % 16 == 15 ? 1 : i;
    if (lists)
        cx_buf_printf(out,
                      "{\"$set\":{\"messages\":[{\"id\":\"m1\",\"type\":\"user\"},"
                      "{\"id\":\"l%u\",\"type\":\"user\",\"content\":\"x\"},"
                      "{\"id\":\"l%u\",\"type\":\"user\"},{\"id\":\"m3\"},7,",
                      i, i);
    else if (i % 4 == 0)
        cx_buf_add_z(out, "{\"$set\":{\"lastUpdated\":\"now\"}}\n");
    if (lists || i % 4 != 0)
        cx_buf_printf(out,
                      "{\"id\":\"%s%u\",\"type\":\"gemini\",\"timestamp\":"
                      "\"2026-01-02T03:04:%02u.000Z\",\"content\":\"said\",\"toolCalls\":["
                      "{\"id\":\"t%u\",\"name\":\"ls\",\"args\":{}%s}]}%s",
                      lists ? "k" : "m", of, i, lists ? 1 : of,
                      again ? ",\"result\":[{\"text\":\"a\"}]" : "", lists ? "]}}\n" : "\n");
}

typedef struct answers {
    unsigned asked, said_yes, told;
    bool yes[LINES + 1][8];
} answers;

static bool note_answer(void *arg, uint64_t line, uint32_t question, char space, cx_str id,
                        bool known)
{
    answers *a = arg;
    CHECK(line >= 1 && line <= LINES && question < 8 && id.size != 0 && space != 0);
    a->yes[line][question] = known;
    a->asked++;
    a->said_yes += known;
    return known;
}

static void count_told(void *arg, char space, cx_str id)
{
    answers *a = arg;
    CHECK(id.size != 0 && space != 0);
    a->told++;
}

static bool give_answer(void *arg, uint64_t line, uint32_t question, char space, cx_str id,
                        bool known)
{
    const answers *a = arg;
    (void)space;
    (void)id;
    CHECK(!known || a->yes[line][question]); /* what was read is some of what was told */
    return a->yes[line][question];
}

static void import_answered(const source *s, unsigned from, unsigned until, answers *a,
                            imported *in)
{
    cx_buf text;
    const unsigned before = from < BEFORE ? 0 : from - BEFORE;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    const cx_import_window window = {
        .line = before, .from = from, .until = until, .after_ns = INT64_MIN, .until_ns = INT64_MAX};
    options.windows = &window;
    options.was_told = a == NULL ? NULL : give_answer;
    options.told_arg = a;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add(&text, s->text.data + s->starts[before], s->starts[until] - s->starts[before]);
    const cx_bytes file = cx_buf_bytes(&text);
    imported_begin(in);
    CHECK_STATUS(cx_import_run_bytes(s->format, &file, 1, &options, imported_write, &in->out, NULL,
                                     &in->err),
                 &in->err);
    for (size_t i = 0; i < in->out.size; i++)
        in->summary.total.nodes += in->out.data[i] == '\n';
    imported_parse(in);
    imported_verify(in, false);
    cx_buf_done(&text);
}

/* Nodes of lines from .. until - 1, in order. */
static size_t nodes_of_lines(imported *in, unsigned from, unsigned until, size_t *out)
{
    size_t count = 0;
    for (size_t i = 1; i < in->count; i++) {
        const cx_str text = node_text(in, i, "/event/at/line");
        uint64_t line = 0;
        for (size_t k = 0; k < text.size; k++)
            line = 10 * line + (uint64_t)(text.data[k] - '0');
        if (line > from && line <= until)
            out[count++] = i;
    }
    return count;
}

CX_TEST(window_of_gemini_cli_has_what_was_told_long_before)
{
    source s;
    imported whole;
    answers a = {.asked = 0};
    size_t ours[4 * LINES], theirs[4 * LINES];
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    bool differs = false;
    CHECK(cx_import_has_windows("gemini-cli") && cx_import_asks("gemini-cli"));
    CHECK(!cx_import_asks("cursor") && !cx_import_asks("no such format"));
    begin_source(&s, "gemini-cli", add_gemini_line);
    const cx_bytes file = cx_buf_bytes(&s.text);
    options.was_told = note_answer;
    options.told = count_told;
    options.told_arg = &a;
    import_bytes(&whole, "gemini-cli", &file, 1, &options);
    CHECK(a.asked > 30 && a.said_yes > 10 && a.told > a.asked - a.said_yes);
    for (unsigned from = 1; from < LINES; from++)
        for (unsigned until = from + 1; until <= LINES; until += 7) {
            imported part, alone;
            const size_t count = nodes_of_lines(&whole, from, until, theirs);
            import_answered(&s, from, until, &a, &part);
            REQUIRE(nodes_of_lines(&part, from, until, ours) == count && count == part.count - 1);
            for (size_t i = 0; i < count; i++)
                check_node(&whole, &part, theirs[i], ours[i]);
            import_answered(&s, from, until, NULL, &alone);
            differs |= alone.count != part.count;
            imported_done(&alone);
            imported_done(&part);
        }
    CHECK(differs); /* so answers are needed */
    imported_done(&whole);
    cx_buf_done(&s.text);
}

CX_TEST(a_file_is_read_as_lines_by_its_first_two)
{
    static const struct {
        const char *format, *head;
        bool lines;
    } files[] = {
        {"gemini-cli", "{\"a\":1}\n", false},   {"gemini-cli", "{\"a\":1}\n{\"b\"\n", true},
        {"gemini-cli", "{\n\"b\":1}\n", false}, {"claude-code", "x", true},
        {"cline", "[]\n[]\n", false},           {"no such format", "{}\n{}\n", false}};
    for (size_t i = 0; i < CX_COUNT_OF(files); i++)
        CHECK(cx_import_reads_lines(files[i].format, cx_str_bytes(cx_str_z(files[i].head)),
                                    cx_alloc_default()) == files[i].lines);
}

/* --- items of a document ---------------------------------------------------------------------- */

/* Some are no records, or say no time; white space is everywhere. */
static void add_gemini_item(cx_buf *out, unsigned i)
{
    static const char *const types[] = {"user", "gemini", "info", "gemini"};
    if (i % 13 == 5) {
        cx_buf_add_z(out, i % 2 == 0 ? "null" : "{ \"no\" : [ 1,\r\n2 ] }");
        return;
    }
    cx_buf_printf(out, "{\n \"id\": \"m%u\",\n \"type\": \"%s\",", i, types[i % 4]);
    if (i % 11 != 3)
        cx_buf_printf(out, "\"timestamp\":\"2026-01-02T03:04:%02u.000Z\",", i);
    if (i % 4 == 3)
        cx_buf_printf(out,
                      "\"toolCalls\":[{\"id\":\"t%u\",\"name\":\"ls\",\"args\":{\"a\":\"]\"},"
                      "\"result\":[{\"functionResponse\":{\"response\":{\"output\":\"x\"}}}]}],",
                      i);
    if (i == 17)
        cx_buf_add_z(out, "\"tokens\":{\"input\":1e999},");
    cx_buf_printf(out, "\n \"content\": \"say, \\\"%u\\\"\"\n}", i);
}

static void add_cline_item(cx_buf *out, unsigned i)
{
    static const char *const whats[] = {"text", "tool", "command_output", "api_req_started",
                                        "completion_result"};
    if (i % 13 == 5) {
        cx_buf_add_z(out, "[ ]");
        return;
    }
    cx_buf_printf(out, "{ \"ts\" : %llu,\n\"type\":\"say\",\"say\":\"%s\",\"text\":",
                  1767323040000ull + 1000ull * i, whats[i % 5]);
    cx_buf_printf(out,
                  i % 5 == 1   ? "\"{\\\"tool\\\":\\\"readFile\\\",\\\"path\\\":\\\"a%u.c\\\"}\"}"
                  : i % 5 == 3 ? "\"{\\\"tokensIn\\\":%u}\"}"
                               : "\"word %u\"}",
                  i);
}

typedef struct items_document {
    const char *format;
    cx_buf text;
    size_t starts[LINES], count;
    cx_import_items items;
} items_document;

static cx_status note_start(void *arg, size_t begin, cx_err *err)
{
    items_document *d = arg;
    if (d->count == LINES)
        return cx_fail(err, CX_E_LIMIT, "more items than there are");
    d->starts[d->count++] = begin;
    return CX_SUCCESS;
}

static void begin_document(items_document *d, const char *format, const char *before,
                           const char *after, void (*add)(cx_buf *, unsigned))
{
    cx_err err = {0};
    *d = (items_document){.format = format};
    cx_buf_init(&d->text, cx_alloc_default());
    cx_buf_add_z(&d->text, before);
    for (unsigned i = 0; i < LINES; i++) {
        cx_buf_add_z(&d->text, i == 0 ? "\n  " : " ,\n  ");
        add(&d->text, i);
    }
    cx_buf_add_z(&d->text, after);
    CHECK_STATUS(cx_import_find_items(format, cx_buf_bytes(&d->text), cx_alloc_default(),
                                      note_start, d, &d->items, &err),
                 &err);
    REQUIRE(d->count == LINES && d->items.count == LINES);
}

/* As a line: between two tokens a line feed is as good as a blank. */
static void add_item_line(const items_document *d, unsigned i, cx_buf *out)
{
    size_t end = i + 1 < d->count ? d->starts[i + 1] : d->items.end - 1;
    const size_t from = out->size;
    cx_buf_add(out, d->text.data + d->starts[i], end - d->starts[i]);
    for (size_t at = from; at < out->size; at++)
        if (out->data[at] == '\n' || out->data[at] == '\r')
            out->data[at] = ' ';
    while (out->data[out->size - 1] == ' ')
        out->size--;
    out->size -= out->data[out->size - 1] == ',';
    cx_buf_add_byte(out, '\n');
}

/* `missing` is an item that is an empty line; LINES = none. */
static void import_items(const items_document *d, unsigned from, unsigned until, unsigned missing,
                         imported *in)
{
    cx_buf text, rest;
    const unsigned before = from < BEFORE ? 0 : from - BEFORE;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&rest, cx_alloc_default());
    cx_buf_add(&rest, d->text.data, d->items.begin);
    cx_buf_add_z(&rest, "[]");
    cx_buf_add(&rest, d->text.data + d->items.end, d->text.size - d->items.end);
    for (unsigned i = before; i < until; i++)
        if (i == missing)
            cx_buf_add_byte(&text, '\n');
        else
            add_item_line(d, i, &text);
    const cx_import_window window = {.line = before,
                                     .from = from,
                                     .until = until,
                                     .after_ns = INT64_MIN,
                                     .until_ns = INT64_MAX,
                                     .items = true,
                                     .rest = cx_buf_str(&rest)};
    const cx_bytes file = cx_buf_bytes(&text);
    options.windows = &window;
    imported_begin(in);
    CHECK_STATUS(cx_import_run_bytes(d->format, &file, 1, &options, imported_write, &in->out, NULL,
                                     &in->err),
                 &in->err);
    in->summary.total.nodes = until - from + 1 - (missing >= from && missing < until);
    imported_parse(in);
    imported_verify(in, false);
    cx_buf_done(&rest);
    cx_buf_done(&text);
}

/* The node of an item. */
static size_t node_of_item(imported *in, unsigned item)
{
    char index[16];
    (void)snprintf(index, sizeof index, "%u", item);
    for (size_t i = 1; i < in->count; i++)
        if (cx_str_is(node_text(in, i, "/event/at/index"), index))
            return i;
    return 0;
}

static void check_items(const char *format, const char *before, const char *after,
                        void (*add)(cx_buf *, unsigned))
{
    items_document d;
    imported whole;
    begin_document(&d, format, before, after, add);
    const cx_bytes file = cx_buf_bytes(&d.text);
    import_bytes(&whole, format, &file, 1, NULL);
    REQUIRE(whole.count == LINES + 1);
    for (unsigned from = 0; from < LINES; from++)
        for (unsigned until = from + 1; until <= LINES; until += 7) {
            imported part;
            import_items(&d, from, until, LINES, &part);
            REQUIRE(part.count == until - from + 1);
            CHECK((node_get(&part, 0, "/event/raw_top") == NULL) ==
                  (node_get(&whole, 0, "/event/raw_top") == NULL));
            for (unsigned i = from; i < until; i++)
                check_node(&whole, &part, node_of_item(&whole, i), node_of_item(&part, i));
            imported_done(&part);
        }
    imported_done(&whole);
    cx_buf_done(&d.text);
}

CX_TEST(window_of_a_document_of_gemini_cli_has_the_nodes_of_the_whole)
{
    CHECK(cx_import_has_items("gemini-cli"));
    check_items("gemini-cli", "{\"sessionId\":\"s\", \"history\":[{}],\n\"mess\\u0061ges\": [",
                "\n ],\"projectHash\":\"p\"}\n", add_gemini_item);
    check_items("gemini-cli", "\xEF\xBB\xBF{\"messages\":0,\n\"history\":[", "]}", add_gemini_item);
}

CX_TEST(window_of_a_document_of_cline_has_the_nodes_of_the_whole)
{
    CHECK(cx_import_has_items("cline"));
    check_items("cline", " [", "\n]\n", add_cline_item);
}

CX_TEST(window_of_a_document_says_which_items_it_has)
{
    items_document d;
    imported part;
    begin_document(&d, "cline", "[", "]", add_cline_item);
    import_items(&d, 10, 20, 12, &part);
    CHECK_STR(node_text(&part, 0, "/event/part/from"), "10");
    CHECK_STR(node_text(&part, 0, "/event/part/to"), "19");
    CHECK_STR(node_text(&part, 0, "/event/records"), "9");
    CHECK_STR(node_text(&part, 0, "/event/blank_lines"), "0");
    CHECK_STR(node_text(&part, 1, "/event/at/index"), "10");
    CHECK(node_of_item(&part, 12) == 0 && node_of_item(&part, 13) != 0);
    imported_done(&part);
    cx_buf_done(&d.text);
}

/* What is no item of a document is an error, not a record that is told to be bad. */
CX_TEST(window_of_items_is_of_items)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_import_window window = {.until = 2,
                               .after_ns = INT64_MIN,
                               .until_ns = INT64_MAX,
                               .items = true,
                               .rest = CX_STR("[]")};
    static const char *const lines[] = {"{\"ts\":1}\n{\"ts\":", "{} {}\n", "]\n"};
    options.windows = &window;
    for (size_t i = 0; i < CX_COUNT_OF(lines); i++) {
        imported in;
        const cx_bytes file = cx_str_bytes(cx_str_z(lines[i]));
        imported_begin(&in);
        cx_status status = cx_import_run_bytes("cline", &file, 1, &options, imported_write, &in.out,
                                               NULL, &in.err);
        CHECK(cx_failed(status) && in.out.size == 0);
        imported_done(&in);
    }
    window.rest = CX_STR("{}");
    imported in;
    const cx_bytes file = cx_str_bytes(CX_STR("{\"ts\":1}\n"));
    imported_begin(&in);
    CHECK(cx_failed(
        cx_import_run_bytes("cline", &file, 1, &options, imported_write, &in.out, NULL, &in.err)));
    CHECK_STR(cx_str_z(in.err.tag), "U_SHAPE");
    imported_done(&in);
}

static cx_status count_item(void *arg, size_t begin, cx_err *err)
{
    (void)begin;
    (void)err;
    ++*(size_t *)arg;
    return CX_SUCCESS;
}

/* I1 of items.c: each of these cannot be read as a whole, or is read as lines. */
CX_TEST(items_are_of_documents_that_can_be_read)
{
    static const struct {
        const char *format, *text;
    } bad[] = {{"cline", ""},
               {"cline", "{}"},
               {"cline", "[1,]"},
               {"cline", "[1 2]"},
               {"cline", "[{\"a\":1,\"a\":2}]"},
               {"cline", "[1]]"},
               {"cline", "[1"},
               {"cline", "[\"\xff\"]"},
               {"gemini-cli", "[]"},
               {"gemini-cli", "{\"messages\":{}}"},
               {"gemini-cli", "{\"messages\":[],\"messages\":[]}"},
               {"gemini-cli", "{\"messages\":[],\"x\":}"},
               {"gemini-cli", "{\"messages\":[]} 1"},
               {"gemini-cli", "{\"a\":1}\n{\"messages\":[]}"},
               {"gemini-cli", "{\"messages\":[\n{\"type\":\"user\"}\n]}"}};
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        size_t count = 0;
        cx_import_items items;
        cx_err err = {0};
        CHECK(
            cx_failed(cx_import_find_items(bad[i].format, cx_str_bytes(cx_str_z(bad[i].text)),
                                           cx_alloc_default(), count_item, &count, &items, &err)));
        CHECK(err.message[0] != 0);
    }
    size_t count = 0;
    cx_import_items items;
    cx_err err = {0};
    CHECK_STATUS(cx_import_find_items("cline", cx_str_bytes(CX_STR(" [ ] ")), cx_alloc_default(),
                                      count_item, &count, &items, &err),
                 &err);
    CHECK(count == 0 && items.count == 0 && items.begin == 1 && items.end == 4);
    CHECK(!cx_import_has_items("claude-code") && !cx_import_has_items("no such format"));
}

/* Some bytes of a text become others, or are gone. */
static void spoil(cx_buf *text, uint64_t *random)
{
    static const char bytes[] = "[]{},:\"\\ \n\r019eu\x80\xff";
    const unsigned count = 1 + (unsigned)(cx_test_random(random) % 3);
    for (unsigned i = 0; i < count && text->size > 1; i++) {
        const size_t at = (size_t)(cx_test_random(random) % text->size);
        if (cx_test_random(random) % 3 != 0) {
            text->data[at] = (uint8_t)bytes[cx_test_random(random) % (sizeof bytes - 1)];
            continue;
        }
        memmove(text->data + at, text->data + at + 1, text->size - at - 1);
        text->size--;
    }
}

/* Items of a document that was spoilt; *out_found is false when it has none now. */
static void find_spoilt(items_document *d, bool *out_found)
{
    cx_err err = {0};
    *out_found =
        !cx_failed(cx_import_find_items(d->format, cx_buf_bytes(&d->text), cx_alloc_default(),
                                        note_start, d, &d->items, &err)) &&
        d->items.count == d->count;
}

/* I1 of items.c, of documents that were spoilt: the whole can be read, and a window of all items
 * has its nodes. */
static void check_spoilt(items_document *d, unsigned *read)
{
    imported whole, part;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_buf lines, rest;
    bool found;
    find_spoilt(d, &found);
    const cx_bytes file = cx_buf_bytes(&d->text);
    imported_begin(&whole);
    cx_status status = cx_import_run_bytes(d->format, &file, 1, &options, imported_write,
                                           &whole.out, NULL, &whole.err);
    CHECK(!found || !cx_failed(status));
    if (found && !cx_failed(status)) {
        cx_buf_init(&lines, cx_alloc_default());
        cx_buf_init(&rest, cx_alloc_default());
        cx_buf_add(&rest, d->text.data, d->items.begin);
        cx_buf_add_z(&rest, "[]");
        cx_buf_add(&rest, d->text.data + d->items.end, d->text.size - d->items.end);
        for (size_t i = 0; i < d->count; i++)
            add_item_line(d, (unsigned)i, &lines);
        const cx_import_window window = {.until = d->count,
                                         .after_ns = INT64_MIN,
                                         .until_ns = INT64_MAX,
                                         .items = true,
                                         .rest = cx_buf_str(&rest)};
        const cx_bytes text = cx_buf_bytes(&lines);
        options.windows = &window;
        imported_begin(&part);
        CHECK_STATUS(cx_import_run_bytes(d->format, &text, 1, &options, imported_write, &part.out,
                                         NULL, &part.err),
                     &part.err);
        whole.summary.total.nodes = part.summary.total.nodes = d->count + 1;
        imported_parse(&whole);
        imported_parse(&part);
        for (unsigned i = 0; i < d->count; i++)
            check_node(&whole, &part, node_of_item(&whole, i), node_of_item(&part, i));
        ++*read;
        imported_done(&part);
        cx_buf_done(&rest);
        cx_buf_done(&lines);
    }
    imported_done(&whole);
}

CX_TEST(items_of_spoilt_documents_are_those_of_the_whole)
{
    uint64_t random = cx_test_seed();
    unsigned read = 0;
    for (unsigned i = 0; i < 600; i++) {
        items_document d = {.format = i % 2 == 0 ? "gemini-cli" : "cline"};
        cx_buf_init(&d.text, cx_alloc_default());
        cx_buf_add_z(&d.text, i % 2 == 0 ? "{ \"a\":[1],\"messages\": [" : "[");
        for (unsigned k = 0; k < 4; k++) {
            cx_buf_add_z(&d.text, k == 0 ? "" : ",");
            (i % 2 == 0 ? add_gemini_item : add_cline_item)(&d.text, k + i % 20);
        }
        cx_buf_add_z(&d.text, i % 2 == 0 ? "]}" : "]");
        spoil(&d.text, &random);
        check_spoilt(&d, &read);
        cx_buf_done(&d.text);
    }
    CHECK(read > 100 && read < 600);
}

CX_TEST(window_is_of_formats_whose_lines_stand_alone)
{
    CHECK(!cx_import_has_windows("aider"));
    CHECK(!cx_import_has_windows("cline"));
    CHECK(!cx_import_has_windows("no such format"));
}

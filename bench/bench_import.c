/*
 * bench_import.c - importing a session against parsing its JSON alone.
 *
 *     bench_import [lines]
 *
 * I1 imports a session of Claude Code and one of Codex from memory, as `cortex import` does, and
 * parses the same lines with the same parser.  An import reads each line twice, writes it once more
 * in canonical form, and hashes and seals the node that it becomes.
 */
#include "bench/bench.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "import/import.h"
#include "json/json.h"

static void must(cx_status status, const cx_err *err)
{
    if (cx_failed(status)) {
        fprintf(stderr, "bench_import: %s\n", err->message);
        exit(1);
    }
}

/* Some 1.2 KB a line: what is said, calls with arguments, answers with the text of a file. */
static void add_text(cx_buf *out, size_t i, size_t words)
{
    static const char *const list[] = {"ledger",  "refund", "order", "limit", "session",
                                       "history", "agent",  "proof", "entry", "commit"};
    for (size_t k = 0; k < words; k++)
        cx_buf_printf(out, "%s%s", k == 0 ? "" : " ", list[(i * 7 + k * k) % 10]);
}

static void add_claude_line(cx_buf *out, size_t i)
{
    static const char *const roles[] = {"assistant", "user"};
    cx_buf_printf(out,
                  "{\"parentUuid\":%s%08zx%s,\"isSidechain\":false,\"userType\":\"external\","
                  "\"cwd\":\"/srv/shop\",\"sessionId\":\"5e9a2c10-0000-4000-8000-0000000000a1\","
                  "\"version\":\"2.1.330\",\"type\":\"%s\",\"uuid\":\"%08zx\",\"timestamp\":"
                  "\"2026-11-01T%02zu:%02zu:%02zu.%03zuZ\",\"message\":{\"role\":\"%s\","
                  "\"content\":[",
                  i == 0 ? "null,\"first\":\"" : "\"", i == 0 ? i : i - 1, "\"", roles[i % 2], i,
                  i / 3600000 % 24, i / 60000 % 60, i / 1000 % 60, i % 1000, roles[i % 2]);
    if (i % 2 == 0) {
        cx_buf_add_z(out, "{\"type\":\"text\",\"text\":\"");
        add_text(out, i, 30);
        cx_buf_printf(out,
                      "\"},{\"type\":\"tool_use\",\"id\":\"toolu_%zu\",\"name\":\"Read\",\"input\":"
                      "{\"file_path\":\"/srv/shop/src/%zu.c\"}}],\"model\":\"claude-opus-4-1\","
                      "\"usage\":{\"input_tokens\":%zu,\"output_tokens\":42}",
                      i, i % 50, i % 9000);
    } else {
        cx_buf_printf(out, "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_%zu\",\"content\":\"",
                      i - 1);
        add_text(out, i, 220);
        cx_buf_add_z(out, "\"}]");
    }
    cx_buf_add_z(out, "}}\n");
}

static void add_codex_line(cx_buf *out, size_t i)
{
    cx_buf_printf(
        out,
        "{\"timestamp\":\"2026-11-01T%02zu:%02zu:%02zu.%03zuZ\",\"type\":\"response_item\","
        "\"payload\":{",
        i / 3600000 % 24, i / 60000 % 60, i / 1000 % 60, i % 1000);
    if (i % 2 == 0) {
        cx_buf_printf(out,
                      "\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"call_%zu\","
                      "\"arguments\":\"{\\\"command\\\":[\\\"cat\\\",\\\"src/%zu.c\\\"]}\"",
                      i, i % 50);
    } else {
        cx_buf_printf(
            out, "\"type\":\"function_call_output\",\"call_id\":\"call_%zu\",\"output\":\"", i - 1);
        add_text(out, i, 250);
        cx_buf_add_z(out, "\"");
    }
    cx_buf_add_z(out, "}}\n");
}

typedef struct work {
    const char *format;
    cx_bytes bytes;
    uint64_t written, records;
} work;

static cx_status count_bytes(void *arg, cx_bytes bytes, cx_err *err)
{
    (void)err;
    ((work *)arg)->written += bytes.size;
    return CX_SUCCESS;
}

static void import_all(void *arg)
{
    work *w = arg;
    cx_err err = {0};
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_import_summary summary = {0};
    must(cx_import_run_bytes(w->format, &w->bytes, 1, &options, count_bytes, w, &summary, &err),
         &err);
    if (summary.total.bad != 0) {
        fprintf(stderr, "bench_import: %s has bad records\n", w->format);
        exit(1);
    }
    w->records = summary.total.records;
    cx_import_summary_done(&summary);
}

static void parse_all(void *arg)
{
    work *w = arg;
    cx_err err = {0};
    cx_arena arena;
    cx_json_parser parser;
    const cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_json_parser_init(&parser, cx_alloc_default(), &limits);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_arena_mark mark = cx_arena_mark_now(&arena);
    for (size_t at = 0; at < w->bytes.size;) {
        const uint8_t *end = memchr(w->bytes.data + at, '\n', w->bytes.size - at);
        size_t size = (size_t)(end - (w->bytes.data + at));
        cx_json value;
        must(cx_json_parse(&parser, cx_str_from((const char *)w->bytes.data + at, size), &arena,
                           &value, &err),
             &err);
        w->written += value.count;
        cx_arena_reset(&arena, mark);
        at += size + 1;
    }
    cx_arena_done(&arena);
    cx_json_parser_done(&parser);
}

static void compare(const char *format, const char *what, void (*add)(cx_buf *, size_t),
                    size_t lines)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (size_t i = 0; i < lines; i++)
        add(&text, i);
    if (text.failed)
        exit(1);
    work ours = {.format = format, .bytes = cx_buf_bytes(&text)}, bare = ours;
    bench_side sides[] = {
        {.name = "import", .work = import_all, .arg = &ours, .units = (double)text.size},
        {.name = "parse alone", .work = parse_all, .arg = &bare, .units = (double)text.size}};
    bench_measure(sides, 2);
    printf("  %s: %zu lines, %.1f MB, %llu records\n", format, lines, (double)text.size / 1e6,
           (unsigned long long)ours.records);
    for (size_t i = 0; i < 2; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e6, "MB/s");
    (void)bench_print_row("I1", what, &sides[0].rate, &sides[1].rate, 1e6, 0);
    cx_buf_done(&text);
}

int main(int argc, char **argv)
{
    size_t lines = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    compare("claude-code", "import of a Claude Code session / its JSON parsed alone, MB/s",
            add_claude_line, lines);
    compare("codex", "import of a Codex session / its JSON parsed alone, MB/s", add_codex_line,
            lines);
    return 0;
}

/*
 * bench_sensitive.c - row D1: looking for secrets and personal data in agents' records, against
 * reading and hashing the same records, which every intake does.
 *
 *     bench_sensitive [FILE...]    of JSON or JSON Lines; default records made here
 */
#include <string.h>

#include "bench/bench.h"
#include "crypto/api.h"
#include "json/json.h"
#include "sensitive/sensitive.h"

enum { RECORDS = 400 };

typedef struct sample {
    cx_buf text; /* JSON Lines */
    const cx_sensitive_rules *rules;
    cx_arena arena;
    cx_json_parser parser;
    uint64_t found;
} sample;

static void scan_work(void *arg)
{
    sample *s = arg;
    cx_sensitive_list list;
    const cx_sensitive_target target = {.bytes = s->text.data, .size = s->text.size};
    cx_arena_mark mark = cx_arena_mark_now(&s->arena);
    cx_sensitive_list_init(&list, &s->arena);
    cx_sensitive_scan_lines(s->rules, &target, &list);
    s->found = list.count;
    cx_arena_reset(&s->arena, mark);
}

static void read_work(void *arg)
{
    sample *s = arg;
    for (size_t at = 0; at < s->text.size;) {
        const uint8_t *end = memchr(s->text.data + at, '\n', s->text.size - at);
        size_t size = end == NULL ? s->text.size - at : (size_t)(end - s->text.data) - at;
        cx_arena_mark mark = cx_arena_mark_now(&s->arena);
        cx_json value;
        cx_str line = cx_str_from((const char *)s->text.data + at, size);
        if (size != 0 && cx_failed(cx_json_parse(&s->parser, line, &s->arena, &value, NULL)))
            s->found++;
        s->found += cx_digest_of(cx_str_bytes(line)).bytes[0] == 0;
        cx_arena_reset(&s->arena, mark);
        at += size + 1;
    }
}

/* Prose, escapes, paths, ids and numbers, and a few texts that are found. */
static void make_records(cx_buf *out)
{
    for (unsigned i = 0; i < RECORDS; i++) {
        cx_buf_printf(
            out,
            "{\"type\":\"assistant\",\"uuid\":\"%08x-1c2d-4e3f-8a9b-%012x\",\"timestamp\":"
            "\"2026-11-01T10:00:%02u.000Z\",\"usage\":{\"input_tokens\":%u,"
            "\"output_tokens\":%u},\"message\":{\"role\":\"assistant\",\"content\":\"",
            i * 2654435761u, i * 40503u, i % 60, i * 7919u % 90000u, i * 31u);
        for (unsigned j = 0; j < 40; j++)
            cx_buf_printf(
                out,
                "The request was checked against policy %u and the file src/part_%u.c was "
                "changed.\\n+    return value_%u + 0x%x; /* see \\\"notes\\\" */\\n",
                j, i % 17, j, i * j);
        if (i % 20 == 0)
            cx_buf_printf(out, "write to user%u@example.org or call +49 30 1234567", i);
        cx_buf_add_z(out, "\"}}\n");
    }
}

static void read_files(cx_buf *out, char **paths, int count)
{
    for (int i = 0; i < count; i++) {
        FILE *file = fopen(paths[i], "rb");
        size_t got;
        if (file == NULL)
            abort();
        do {
            uint8_t *room = cx_buf_reserve(out, 1 << 16);
            if (room == NULL)
                abort();
            got = fread(room, 1, 1 << 16, file);
            cx_buf_advance(out, got);
        } while (got != 0);
        (void)fclose(file);
    }
}

int main(int argc, char **argv)
{
    static sample s;
    const cx_str policy = CX_STR("mark");
    cx_buf_init(&s.text, cx_alloc_default());
    cx_arena_init(&s.arena, cx_alloc_default(), 0);
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_json_parser_init(&s.parser, cx_alloc_default(), &limits);
    if (argc > 1)
        read_files(&s.text, argv + 1, argc - 1);
    else
        make_records(&s.text);
    if (cx_failed(cx_sensitive_rules_make(&policy, 1, NULL, 0, &s.arena, &s.rules, NULL)) ||
        cx_failed(cx_buf_check(&s.text, NULL)))
        abort();
    bench_side sides[] = {{.name = "looking for sensitive data", .work = scan_work, .arg = &s},
                          {.name = "reading and hashing", .work = read_work, .arg = &s}};
    for (size_t i = 0; i < 2; i++)
        sides[i].units = (double)s.text.size;
    bench_measure(sides, 2);
    for (size_t i = 0; i < 2; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e6, "MB/s");
    scan_work(&s);
    printf("%llu found in %zu bytes\n", (unsigned long long)s.found, s.text.size);
    bool ok = bench_print_row("D1", "MB/s / reading and hashing", &sides[0].rate, &sides[1].rate,
                              1e6, 0.3);
    cx_json_parser_done(&s.parser);
    cx_arena_done(&s.arena);
    cx_buf_done(&s.text);
    return ok ? 0 : 1;
}

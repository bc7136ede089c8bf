/*
 * bench_json.c - row J1: reading and canonical writing of 10 KB agent traces.
 *
 * Ours, jansson and Python read each document and write it with sorted names and no spaces;
 * simdjson only reads, and does so into its DOM.  A second kind of document, short lattice nodes
 * one a line, is measured for information.
 */
#include <string.h>

#include "base/diag.h"
#include "os/proc.h"
#include "bench/bench.h"
#include "json/json.h"

#ifdef CX_BENCH_JANSSON
#include <jansson.h>
#endif
#ifdef CX_BENCH_SIMDJSON
void *simdjson_peer_open(void);
void simdjson_peer_close(void *peer);
int simdjson_peer_parse(void *peer, const char *text, size_t size);
size_t simdjson_peer_padding(void);
#endif

enum { DOCUMENT_COUNT = 200, PADDING = 64 };

typedef struct documents {
    cx_buf text; /* one a line */
    size_t starts[DOCUMENT_COUNT + 1];
} documents;

static cx_str document(const documents *docs, size_t i)
{
    return (cx_str){(const char *)docs->text.data + docs->starts[i],
                    docs->starts[i + 1] - docs->starts[i] - 1};
}

/* --- documents ----------------------------------------------------------------------------- */

static uint64_t random_state = 8785;

static uint64_t random_below(uint64_t limit)
{
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % limit;
}

static const char *const words[] = {
    "the",     "request", "was",     "checked", "against", "policy",    "and",     "agent",
    "memory",  "before",  "decided", "because", "of",      "earlier",   "results", "with",
    "context", "of this", "tool",    "call",    "returns", "confident", "that",    "no harm"};

/* Words up to about `size` bytes; a line break now and then, and rarely something not ASCII. */
static void add_prose(cx_buf *out, size_t size)
{
    static const char *const rare[] = {"caf\xc3\xa9", "\xe2\x80\x94", "\\u00fc", "\xf0\x9f\x98\x80",
                                       "\xe4\xb8\xad\xe6\x96\x87"};
    size_t start = out->size;
    while (out->size - start < size) {
        uint64_t pick = random_below(100);
        if (pick < 4)
            cx_buf_add_z(out, ".\\n");
        else if (pick < 6)
            cx_buf_add_z(out, "\\\"quoted\\\"");
        else if (pick < 7)
            cx_buf_add_z(out, rare[random_below(CX_COUNT_OF(rare))]);
        else
            cx_buf_add_z(out, words[random_below(CX_COUNT_OF(words))]);
        cx_buf_add_byte(out, ' ');
    }
}

/* A component of a trace: about 24 members in the order a program would write them. */
static void add_component(cx_buf *out, unsigned number)
{
    cx_buf_printf(out,
                  "{\"event_type\": \"COMPONENT_%u\", \"timestamp\": \"2026-11-%02uT10:%02u:07Z\"",
                  number, (unsigned)random_below(28) + 1, (unsigned)random_below(60));
    cx_buf_printf(out, ", \"thought_id\": \"th_%016llx\"",
                  (unsigned long long)random_below(UINT64_MAX));
    cx_buf_add_z(out, ", \"reasoning\": \"");
    add_prose(out, 700);
    cx_buf_add_z(out, "\", \"prompt\": \"");
    add_prose(out, 400);
    cx_buf_printf(out, "\", \"confidence\": 0.%u, \"tokens_total\": %u, \"cost_usd\": %u.%03u",
                  (unsigned)random_below(1000) + 1, (unsigned)random_below(9000),
                  (unsigned)random_below(3), (unsigned)random_below(1000));
    cx_buf_printf(out, ", \"passed\": %s, \"parent\": null, \"scores\": [%u, 0.%u, 1.5e-0%u]",
                  random_below(2) ? "true" : "false", (unsigned)random_below(100),
                  (unsigned)random_below(90) + 9, (unsigned)random_below(8) + 1);
    cx_buf_add_z(out, ", \"attributes\": {");
    static const char *const names[] = {"model",   "provider", "step_index", "domain",
                                        "channel", "attempt",  "region",     "duration_ms",
                                        "cache",   "source",   "entropy",    "coherence"};
    for (unsigned i = 0; i < CX_COUNT_OF(names); i++) {
        cx_buf_printf(out, "%s\"%s\": ", i == 0 ? "" : ", ", names[i]);
        if (i % 3 == 2)
            cx_buf_printf(out, "%u", (unsigned)random_below(100000));
        else
            cx_buf_printf(out, "\"%s-%u\"", words[random_below(8)], (unsigned)random_below(50));
    }
    cx_buf_add_z(out, "}}");
}

static void add_trace(cx_buf *out, unsigned number)
{
    cx_buf_printf(out,
                  "{\"trace_id\": \"tr-%08u\", \"agent_id_hash\": \"%016llx\", \"components\": [",
                  number, (unsigned long long)random_below(UINT64_MAX));
    for (unsigned i = 0; i < 6; i++) {
        cx_buf_add_z(out, i == 0 ? "" : ", ");
        add_component(out, i);
    }
    cx_buf_add_z(out, "], \"trace_level\": \"generic\", \"signature\": \"");
    for (int i = 0; i < 88; i++)
        cx_buf_add_byte(out, (uint8_t)('A' + random_below(26)));
    cx_buf_add_z(out, "\"}");
}

/* A lattice node as our own programs write it: names sorted, no spaces. */
static void add_node(cx_buf *out, unsigned number)
{
    cx_buf_printf(
        out,
        "{\"agent_id\":\"agent_%u\",\"event\":{\"action\":\"step\",\"i\":%u,\"tool\":\"search\"},"
        "\"fork_type\":null,\"hash\":\"%016llx%016llx%016llx%016llx\",\"node_id\":\"n%u\","
        "\"parents\":[\"n%u\"],\"prev_hash\":\"%016llx%016llx%016llx%016llx\",\"seq\":%u,"
        "\"state_delta\":{\"beliefs\":{\"b%u\":{\"confidence\":0.%u,\"value\":true}},"
        "\"memory\":{\"k%u\":%u}},\"timestamp\":17000%05u.25}",
        number % 8, number, (unsigned long long)random_below(UINT64_MAX), 5ull, 6ull, 7ull, number,
        number - 1, (unsigned long long)random_below(UINT64_MAX), 5ull, 6ull, 7ull, number,
        number % 64, number % 90 + 10, number % 64, number, number);
}

static void make_documents(documents *docs, void (*add)(cx_buf *out, unsigned number))
{
    cx_buf_init(&docs->text, cx_alloc_default());
    for (unsigned i = 0; i < DOCUMENT_COUNT; i++) {
        docs->starts[i] = docs->text.size;
        add(&docs->text, i + 1);
        cx_buf_add_byte(&docs->text, '\n');
    }
    docs->starts[DOCUMENT_COUNT] = docs->text.size;
    CX_ASSERT(cx_buf_reserve(&docs->text, PADDING) != NULL);
}

/* --- ours ---------------------------------------------------------------------------------- */

typedef struct ours {
    const documents *docs;
    cx_json_parser parser;
    cx_arena arena;
    cx_buf out;
    bool writes;
    cx_json_style style;
} ours;

static void ours_work(void *arg)
{
    ours *o = arg;
    cx_arena_mark empty = cx_arena_mark_now(&o->arena);
    for (size_t i = 0; i < DOCUMENT_COUNT; i++) {
        cx_json value;
        cx_status status = cx_json_parse(&o->parser, document(o->docs, i), &o->arena, &value, NULL);
        CX_ASSERT(!cx_failed(status));
        if (o->writes) {
            cx_buf_clear(&o->out);
            status = cx_json_write(&o->out, &value, o->style, NULL);
            CX_ASSERT(!cx_failed(status));
        }
        cx_arena_reset(&o->arena, empty);
    }
}

static void ours_init(ours *o, const documents *docs, bool writes, cx_json_style style)
{
    *o = (ours){.docs = docs, .writes = writes, .style = style};
    cx_json_parser_init(&o->parser, cx_alloc_default(), NULL);
    cx_arena_init(&o->arena, cx_alloc_default(), 0);
    cx_buf_init(&o->out, cx_alloc_default());
}

static void ours_done(ours *o)
{
    cx_json_parser_done(&o->parser);
    cx_arena_done(&o->arena);
    cx_buf_done(&o->out);
}

/* --- peers --------------------------------------------------------------------------------- */

#ifdef CX_BENCH_JANSSON
static void jansson_work(void *arg)
{
    const documents *docs = arg;
    for (size_t i = 0; i < DOCUMENT_COUNT; i++) {
        cx_str text = document(docs, i);
        json_t *value = json_loadb(text.data, text.size, JSON_DECODE_ANY, NULL);
        CX_ASSERT(value != NULL);
        char *out = json_dumps(value, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENSURE_ASCII);
        CX_ASSERT(out != NULL);
        free(out);
        json_decref(value);
    }
}
#endif

#ifdef CX_BENCH_SIMDJSON
typedef struct simdjson_arg {
    const documents *docs;
    void *peer;
} simdjson_arg;

static void simdjson_work(void *arg)
{
    const simdjson_arg *s = arg;
    for (size_t i = 0; i < DOCUMENT_COUNT; i++) {
        cx_str text = document(s->docs, i);
        CX_ASSERT(simdjson_peer_parse(s->peer, text.data, text.size) == 0);
    }
}
#endif

/* Python measures itself, on the same documents, and prints the seconds of each turn. */
static bool measure_python(const documents *docs, bench_rate *out)
{
    static const char script[] =
        "import json,sys,time\n"
        "docs=sys.stdin.buffer.read().decode().split('\\n')[:-1]\n"
        "def turn():\n"
        "    t=time.perf_counter()\n"
        "    for d in docs: json.dumps(json.loads(d),sort_keys=True,separators=(',',':'))\n"
        "    return time.perf_counter()-t\n"
        "turn()\n"
        "c=time.process_time(); w=time.perf_counter()\n"
        "for _ in range(11): print(repr(turn()))\n"
        "print((time.process_time()-c)/(time.perf_counter()-w))\n";
    static const char *const argv[] = {"/usr/bin/python3", "-c", script, NULL};
    cx_proc_options options = {
        .argv = argv, .inherit_env = true, .input = cx_buf_bytes(&docs->text)};
    cx_proc_result result;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_proc_run(&options, &text, NULL, &result, NULL);
    bool ran = !cx_failed(status) && result.exit_code == 0;
    if (ran) {
        double numbers[BENCH_TURNS + 1];
        const char *at = cx_buf_z(&text);
        for (size_t i = 0; i <= BENCH_TURNS; i++) {
            char *end;
            numbers[i] = strtod(at, &end);
            at = end;
        }
        *out = bench_rate_of(numbers, BENCH_TURNS, (double)docs->text.size, numbers[BENCH_TURNS]);
    }
    cx_buf_done(&text);
    return ran;
}

/* --- rows ---------------------------------------------------------------------------------- */

/* What the peers must be beaten by; 0 is for information. */
typedef struct targets {
    double python, jansson, simdjson;
} targets;

static bool bench_documents(const char *id, const char *kind, const documents *docs,
                            const targets *wanted)
{
    double size = (double)docs->text.size;
    enum { OURS, OURS_PARSE, OURS_JCS, OUR_SIDES };
    bench_side sides[OUR_SIDES + 2] = {{.name = "ours, parse + canonical"},
                                       {.name = "ours, parse"},
                                       {.name = "ours, parse + RFC 8785"}};
    ours mine[OUR_SIDES];
    size_t count = OUR_SIDES, jansson = 0, simdjson = 0;
    for (size_t i = 0; i < OUR_SIDES; i++) {
        ours_init(&mine[i], docs, i != OURS_PARSE,
                  i == OURS_JCS ? CX_JSON_JCS : CX_JSON_PY_COMPACT);
        sides[i].work = ours_work;
        sides[i].arg = &mine[i];
    }
#ifdef CX_BENCH_JANSSON
    jansson = count++;
    sides[jansson] = (bench_side){
        .name = "jansson, parse + sorted", .work = jansson_work, .arg = (void *)(uintptr_t)docs};
#endif
#ifdef CX_BENCH_SIMDJSON
    CX_ASSERT(simdjson_peer_padding() <= PADDING);
    simdjson_arg simd = {docs, simdjson_peer_open()};
    simdjson = count++;
    sides[simdjson] = (bench_side){.name = "simdjson, parse", .work = simdjson_work, .arg = &simd};
#endif
    for (size_t i = 0; i < count; i++)
        sides[i].units = size;
    bench_measure(sides, count);
    bench_rate python;
    bool has_python = measure_python(docs, &python), ok = true;

    printf("%s %s: %d documents of %.0f bytes\n", id, kind, DOCUMENT_COUNT, size / DOCUMENT_COUNT);
    for (size_t i = 0; i < count; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e6, "MB/s");
    const bench_rate *rate = &sides[OURS].rate;
    if (has_python) {
        bench_print_side("python3, parse + sorted", &python, 1e6, "MB/s");
        ok &= bench_print_row(id, "MB/s / python3", rate, &python, 1e6, wanted->python);
    } else {
        bench_print_skipped(id, "MB/s / python3", wanted->python, "no /usr/bin/python3");
    }
    if (jansson != 0)
        ok &=
            bench_print_row(id, "MB/s / jansson", rate, &sides[jansson].rate, 1e6, wanted->jansson);
    else
        bench_print_skipped(id, "MB/s / jansson", wanted->jansson, "not built with it");
    if (simdjson != 0)
        ok &= bench_print_row(id, "MB/s / simdjson parse alone", rate, &sides[simdjson].rate, 1e6,
                              wanted->simdjson);
    else
        bench_print_skipped(id, "MB/s / simdjson parse alone", wanted->simdjson,
                            "not built with it");
    for (size_t i = 0; i < OUR_SIDES; i++)
        ours_done(&mine[i]);
#ifdef CX_BENCH_SIMDJSON
    simdjson_peer_close(simd.peer);
#endif
    return ok;
}

int main(void)
{
    static documents traces, nodes;
    static const targets j1 = {8, 15, 0.2}, none = {0, 0, 0};
    make_documents(&traces, add_trace);
    make_documents(&nodes, add_node);
    bool ok = bench_documents("J1", "agent traces", &traces, &j1);
    (void)bench_documents("J1i", "lattice nodes", &nodes, &none);
    cx_buf_done(&traces.text);
    cx_buf_done(&nodes.text);
    return ok ? 0 : 1;
}

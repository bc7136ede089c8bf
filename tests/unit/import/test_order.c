#include "tests/unit/import/util.h"

#include <stdlib.h>

/* A file of spans with these parents (an index, or -1) and times. */
static void add_span(cx_buf *text, unsigned id, int parent, unsigned time, unsigned agent)
{
    cx_buf_printf(text,
                  "%s{\"spanId\":\"%016x\",\"startTimeUnixNano\":\"%u\",\"attributes\":[{\"key\":"
                  "\"gen_ai.agent.name\",\"value\":{\"stringValue\":\"a%u\"}}]",
                  text->data[text->size - 1] == '[' ? "" : ",", id + 1, time, agent);
    if (parent >= 0)
        cx_buf_printf(text, ",\"parentSpanId\":\"%016x\"", (unsigned)parent + 1);
    cx_buf_add_byte(text, '}');
}

static unsigned number_of(const imported *in, size_t node, const char *pointer)
{
    cx_str text = node_text(in, node, pointer);
    return (unsigned)strtoul(text.data, NULL, 16) - 1;
}

/*
 * The naive reference: the node that has no parent left to wait for, and of those the least by
 * (time, position), comes next.  Cycles are avoided by only naming parents of smaller `rank`.
 */
static void naive_order(const int *parents, const unsigned *times, unsigned count, unsigned *out)
{
    bool done[64] = {false};
    for (unsigned n = 0; n < count; n++) {
        unsigned best = count;
        for (unsigned i = 0; i < count; i++) {
            bool ready = !done[i] && (parents[i] < 0 || done[parents[i]]);
            if (ready && (best == count || times[i] < times[best]))
                best = i;
        }
        done[best] = true;
        out[n] = best;
    }
}

CX_TEST(order_is_the_naive_one)
{
    uint64_t random = cx_test_seed();
    for (unsigned round = 0; round < 60; round++) {
        unsigned count = 1 + (unsigned)(cx_test_random(&random) % 40), times[64], expected[64];
        int parents[64], rank[64];
        imported in;
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        cx_buf_add_z(&text, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
        for (unsigned i = 0; i < count; i++)
            rank[i] = (int)(cx_test_random(&random) % 1000);
        for (unsigned i = 0; i < count; i++) {
            unsigned p = (unsigned)(cx_test_random(&random) % count);
            parents[i] = rank[p] < rank[i] ? (int)p : -1;
            times[i] = (unsigned)(cx_test_random(&random) % 12);
            add_span(&text, i, parents[i], times[i], (unsigned)(cx_test_random(&random) % 3));
        }
        cx_buf_add_z(&text, "]}]}]}");
        naive_order(parents, times, count, expected);
        cx_bytes file = cx_buf_bytes(&text);
        import_bytes(&in, "otlp", &file, 1, NULL);
        CHECK_INT(in.count, count + 1);
        for (unsigned n = 0; n < count && n + 1 < in.count; n++) {
            CHECK_INT(number_of(&in, n + 1, "/event/src_id"), expected[n]);
            bool late =
                parents[expected[n]] >= 0 && times[parents[expected[n]]] > times[expected[n]];
            CHECK(node_has_issue(&in, n + 1, "parent_after_child") == late);
        }
        CHECK_INT(issue_count(&in, CX_ISSUE_PARENT_CYCLE), 0);
        imported_done(&in);
        cx_buf_done(&text);
    }
}

/* Whatever parents are claimed, the outcome is a lattice, and only cycles lose edges. */
CX_TEST(order_any_parents_give_a_lattice)
{
    uint64_t random = cx_test_seed() + 1;
    for (unsigned round = 0; round < 60; round++) {
        unsigned count = 1 + (unsigned)(cx_test_random(&random) % 30);
        imported in;
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        cx_buf_add_z(&text, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
        for (unsigned i = 0; i < count; i++)
            add_span(&text, (unsigned)(cx_test_random(&random) % 30),
                     (int)(cx_test_random(&random) % 30), (unsigned)(cx_test_random(&random) % 5),
                     (unsigned)(cx_test_random(&random) % 4));
        cx_buf_add_z(&text, "]}]}]}");
        cx_bytes file = cx_buf_bytes(&text);
        import_bytes(&in, "otlp", &file, 1, NULL);
        CHECK_INT(in.count, count + 1);
        imported_done(&in);
        cx_buf_done(&text);
    }
}

/* Every one of 20,000 spans is the child of the next: no recursion, no quadratic walk. */
CX_TEST(order_long_chains_listed_backwards)
{
    enum { COUNT = 20000 };
    imported in;
    cx_buf text;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    options.plain_ids = true;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
    for (unsigned i = 0; i < COUNT; i++)
        cx_buf_printf(&text, "%s{\"spanId\":\"%016x\",\"parentSpanId\":\"%016x\"}",
                      i == 0 ? "" : ",", i + 1, i == COUNT - 1 ? 1 : i + 2);
    cx_buf_add_z(&text, "]}]}]}");
    cx_bytes file = cx_buf_bytes(&text);
    import_bytes(&in, "otlp", &file, 1, &options);
    CHECK_INT(in.count, COUNT + 1);
    CHECK_INT(issue_count(&in, CX_ISSUE_PARENT_CYCLE), 1); /* it is a circle */
    imported_done(&in);
    cx_buf_done(&text);
}

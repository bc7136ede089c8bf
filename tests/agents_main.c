/*
 * agents_main.c - cortex-agents: agents that sign traces, for examples, measurements and load.
 *
 *     cortex-agents trust NAME...                          a trust store with their keys
 *     cortex-agents batch [OPTION=VALUE]... NAME COUNT     one batch of their next traces
 *
 * Options: first=N (traces before these), level=generic|detailed|full_traces, task=PREFIX,
 * padding=BYTES, csdma=X, action=WORD, rationale=TEXT, every=SECONDS, forget=N (the agent's audit
 * log loses its hash before trace N: its chain breaks there), wakeup=1 (the first five are the
 * wakeup traces).  The same arguments give the same bytes; time starts on 2026-01-01.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/trace_maker.h"

#define AGENTS_MAX 16

static int misuse(void)
{
    (void)fputs("usage: cortex-agents trust NAME... | batch [OPTION=VALUE]... NAME COUNT\n",
                stderr);
    return 2;
}

static int finish(cx_buf *out)
{
    bool written = fwrite(out->data, 1, out->size, stdout) == out->size && fflush(stdout) == 0;
    cx_buf_done(out);
    return written ? 0 : 3;
}

static int print_trust(char **names, int count)
{
    maker makers[AGENTS_MAX];
    cx_trust_key keys[AGENTS_MAX];
    cx_arena arena;
    cx_buf out;
    cx_json list;
    cx_err err = {0};
    if (count < 1 || count > AGENTS_MAX)
        return misuse();
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_json_list items = cx_json_list_begin(&arena);
    for (int i = 0; i < count; i++) {
        cx_json key;
        maker_init(&makers[i], names[i]);
        keys[i] = maker_key(&makers[i]);
        if (!cx_failed(cx_trust_key_json(&keys[i], &arena, &key, &err)))
            cx_json_list_add(&items, key);
    }
    cx_status status = cx_json_list_end_array(&items, &list, &err);
    cx_buf_add_z(&out, "{\"format\": \"cortex-trust-1\", \"keys\": ");
    if (!cx_failed(status))
        status = cx_json_write_pretty(&out, &list, 0, &err);
    cx_buf_add_z(&out, "}\n");
    cx_arena_done(&arena);
    return cx_failed(status) ? misuse() : finish(&out);
}

typedef struct order {
    maker_options trace_options;
    unsigned long first, forget, every;
    bool wakeup;
} order;

static const char *value_of(const char *word, const char *name)
{
    size_t size = strlen(name);
    return strncmp(word, name, size) == 0 && word[size] == '=' ? word + size + 1 : NULL;
}

static bool take_option(const char *word, order *o)
{
    const char *value;
    if ((value = value_of(word, "first")) != NULL)
        o->first = strtoul(value, NULL, 10);
    else if ((value = value_of(word, "level")) != NULL)
        o->trace_options.level = value;
    else if ((value = value_of(word, "task")) != NULL)
        o->trace_options.task = value;
    else if ((value = value_of(word, "padding")) != NULL)
        o->trace_options.padding_bytes = strtoul(value, NULL, 10);
    else if ((value = value_of(word, "csdma")) != NULL)
        o->trace_options.csdma = strtod(value, NULL);
    else if ((value = value_of(word, "action")) != NULL)
        o->trace_options.action = value;
    else if ((value = value_of(word, "rationale")) != NULL)
        o->trace_options.rationale = value;
    else if ((value = value_of(word, "every")) != NULL)
        o->every = strtoul(value, NULL, 10);
    else if ((value = value_of(word, "forget")) != NULL)
        o->forget = strtoul(value, NULL, 10);
    else if ((value = value_of(word, "wakeup")) != NULL)
        o->wakeup = value[0] == '1';
    else
        return false;
    return true;
}

static void make_one(maker *m, const order *o, unsigned long number, cx_buf *out)
{
    static const char *const wakeups[] = {"VERIFY_IDENTITY_", "VALIDATE_INTEGRITY_",
                                          "EVALUATE_RESILIENCE_", "ACCEPT_INCOMPLETENESS_",
                                          "EXPRESS_GRATITUDE_"};
    maker_options trace_options = o->trace_options;
    trace_options.at_ns = MAKER_START_NS + (int64_t)(number * o->every) * INT64_C(1000000000);
    if (o->wakeup && number < CX_COUNT_OF(wakeups))
        trace_options.task = wakeups[number];
    if (o->forget != 0 && number == o->forget)
        m->previous[0] = 0;
    maker_trace(m, &trace_options, out);
}

static int print_batch(char **words, int count)
{
    order o = {.trace_options = MAKER_OPTIONS_INIT, .every = 60};
    maker m;
    cx_buf out, trace;
    int at = 0;
    while (at < count && take_option(words[at], &o))
        at++;
    if (count - at != 2)
        return misuse();
    unsigned long wanted = strtoul(words[at + 1], NULL, 10);
    maker_init(&m, words[at]);
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&trace, cx_alloc_default());
    maker_batch_begin(&out);
    for (unsigned long i = 0; i < o.first + wanted; i++) {
        cx_buf_clear(&trace);
        make_one(&m, &o, i, &trace); /* also those before: the chain goes through them */
        if (i >= o.first)
            maker_batch_add(&out, cx_buf_str(&trace));
    }
    maker_batch_end(&out, o.trace_options.level);
    cx_buf_add_byte(&out, '\n');
    cx_buf_done(&trace);
    return finish(&out);
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "trust") == 0)
        return print_trust(argv + 2, argc - 2);
    if (argc >= 4 && strcmp(argv[1], "batch") == 0)
        return print_batch(argv + 2, argc - 2);
    return misuse();
}

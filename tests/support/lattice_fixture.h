/*
 * fixture.h - small lattices for tests, written node by node and read like any other.
 *
 * Hashes are made up: what is tested here are states and graphs, not verification.  A node's
 * prev_hash is the hash of the first parent given, which so becomes its lineage parent.
 */
#ifndef CX_TESTS_LATTICE_FIXTURE_H
#define CX_TESTS_LATTICE_FIXTURE_H

#include <stdlib.h>

#include "lattice/state.h"
#include "tests/test.h"

typedef struct fixture {
    cx_buf text;
    char ids[64][32]; /* of the first nodes, to find their hashes by */
    size_t count;
    cx_lattice *lattice;
    cx_states *states;
    cx_buf out;
    cx_err err;
} fixture;

static inline void fixture_init(fixture *f)
{
    memset(f, 0, sizeof *f);
    cx_buf_init(&f->text, cx_alloc_default());
    cx_buf_init(&f->out, cx_alloc_default());
}

static inline void fixture_done(fixture *f)
{
    cx_states_close(f->states);
    cx_lattice_close(f->lattice);
    cx_buf_done(&f->text);
    cx_buf_done(&f->out);
}

/* `parents` separated by commas; `delta` and `event` JSON. */
static inline void fixture_node(fixture *f, const char *id, const char *agent_name, int seq,
                                int time, const char *parents, const char *delta, const char *event)
{
    unsigned prev = 0;
    size_t first_size = strcspn(parents, ",");
    for (size_t i = 0; i < f->count && i < CX_COUNT_OF(f->ids); i++)
        if (strlen(f->ids[i]) == first_size && memcmp(f->ids[i], parents, first_size) == 0)
            prev = (unsigned)i + 1;
    if (f->count < CX_COUNT_OF(f->ids))
        (void)snprintf(f->ids[f->count], sizeof f->ids[0], "%s", id);
    f->count++;
    cx_buf_printf(&f->text,
                  "{\"node_id\":\"%s\",\"agent_id\":\"%s\",\"seq\":%d,\"timestamp\":%d,"
                  "\"event\":%s,\"state_delta\":",
                  id, agent_name, seq, time, event == NULL ? "{}" : event);
    cx_buf_add_z(&f->text, delta);
    cx_buf_printf(&f->text, ",\"prev_hash\":\"%064x\",\"hash\":\"%064x\",\"parents\":[", prev,
                  (unsigned)f->count);
    for (const char *at = parents; *at != 0;) {
        size_t size = strcspn(at, ",");
        cx_buf_printf(&f->text, "%s\"%.*s\"", at == parents ? "" : ",", (int)size, at);
        at += size + (at[size] == ',');
    }
    cx_buf_add_z(&f->text, "]}\n");
}

static inline bool fixture_load(fixture *f)
{
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.keep_deltas = true;
    options.threads = 1;
    cx_status status =
        cx_lattice_open_bytes(cx_buf_bytes(&f->text), &options, &f->lattice, &f->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "cannot load: %s", f->err.message);
    return !cx_failed(status);
}

/* The states under the given rules, in place of those opened before. */
static inline bool fixture_states(fixture *f, const cx_state_options *options)
{
    cx_states_close(f->states);
    f->states = NULL;
    cx_status status = cx_states_open(f->lattice, options, &f->states, &f->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "cannot build states: %s", f->err.message);
    return !cx_failed(status);
}

static inline bool fixture_open(fixture *f, const cx_state_options *options)
{
    return fixture_load(f) && fixture_states(f, options);
}

static inline cx_node fixture_find(const fixture *f, const char *name)
{
    return cx_lattice_find(f->lattice, cx_str_z(name));
}

/* Canonical text of a node's state, good until the next call. */
static inline cx_str fixture_state(fixture *f, const char *name, bool inherited)
{
    cx_buf_clear(&f->out);
    CHECK_STATUS(cx_states_write(f->states, fixture_find(f, name), inherited, &f->out, &f->err),
                 &f->err);
    return cx_buf_str(&f->out);
}

/* Text of what a pointer names there, or "(none)". */
static inline cx_str fixture_at(fixture *f, const char *name, const char *pointer)
{
    cx_buf_clear(&f->out);
    cx_status status =
        cx_states_write_at(f->states, fixture_find(f, name), cx_str_z(pointer), &f->out, &f->err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_STR("(none)");
    CHECK_STATUS(status, &f->err);
    return cx_buf_str(&f->out);
}

static inline bool contains(cx_str text, const char *part)
{
    return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

/* The example of lattice.md §7.1. */
static inline void fixture_example(fixture *f)
{
    fixture_node(f, "n0", "system", 0, 1000, "",
                 "{\"memory\":{\"task\":\"audit\",\"x\":1},\"beliefs\":{\"safe\":{\"value\":true,"
                 "\"confidence\":0.5}},\"goals\":[\"g0\"]}",
                 NULL);
    fixture_node(f, "n1_a", "agent_a", 1, 1001, "n0",
                 "{\"memory\":{\"x\":2,\"plan\":\"A\"},\"beliefs\":{\"safe\":{\"value\":true,"
                 "\"confidence\":0.9}}}",
                 NULL);
    fixture_node(f, "n1_b", "agent_b", 1, 1002, "n0",
                 "{\"memory\":{\"x\":3,\"note\":{\"k\":[1,2]}},\"beliefs\":{\"safe\":{"
                 "\"value\":false,\"confidence\":0.7}},\"goals\":[\"g0\",\"gb\"]}",
                 NULL);
    fixture_node(f, "n2", "agent_a", 2, 1003, "n1_a,n1_b", "{\"memory\":{\"done\":true}}", NULL);
}

static const cx_answer_options answer_json_options = {.verified = true, .json = true};
static const cx_answer_options answer_text_options = {.verified = true, .json = false};

#endif

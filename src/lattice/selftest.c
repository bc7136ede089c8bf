/*
 * selftest.c - the printout that shows corruption being caught (§4.2): a valid trace and four
 * corruptions of it, each under schema 1.0, 1.1 and 2.0.0.
 *
 * The traces are built and hashed here, by the same functions writers use, and judged by the same
 * verification as any file.
 */
#include "lattice/lattice.h"

#include <stdio.h>

#include "crypto/api.h"

#define LENGTH 4

typedef enum corruption { INTACT, PAYLOAD, GAP, SWAP, METADATA } corruption;

static const char *const names[] = {"Valid Trace", "Payload Corruption", "Sequence Gap",
                                    "Event Swap", "Metadata Corruption"};

typedef struct step {
    char id[16];
    char event[48];
    const char *agent;
    char prev[65];
    char hash[65];
} step;

/* Hashes one step as its writer would. */
static cx_status seal_step(step *s, int index, const char *version, const char *parent,
                           cx_arena *arena, cx_err *err)
{
    cx_json event;
    cx_buf preimage;
    CX_TRY(cx_json_parse_text(cx_str_z(s->event), arena, &event, err));
    cx_str parents[1] = {cx_str_z(parent == NULL ? "" : parent)};
    cx_lattice_fields fields = {.prev_hash = cx_str_z(s->prev),
                                .event = &event,
                                .seq = index,
                                .agent_id = cx_str_z(s->agent),
                                .schema_version = cx_str_z(version),
                                .parents = parents,
                                .parent_count = parent != NULL};
    cx_buf_init(&preimage, arena->alloc);
    cx_status status = cx_lattice_preimage(&preimage, &fields, err);
    if (!cx_failed(status)) {
        cx_digest digest = cx_digest_of(cx_buf_bytes(&preimage));
        cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), s->hash);
        s->hash[64] = 0;
    }
    cx_buf_done(&preimage);
    return status;
}

/* Generation 1 writers knew no parents. */
static bool has_parents(const char *version)
{
    return version[0] == '2';
}

static cx_status build_steps(step *steps, const char *version, cx_arena *arena, cx_err *err)
{
    for (int i = 0; i < LENGTH; i++) {
        step *s = &steps[i];
        *s = (step){.agent = "recorder"};
        (void)snprintf(s->id, sizeof s->id, "t%d", i);
        (void)snprintf(s->event, sizeof s->event, "{\"action\":\"step\",\"value\":%d}", i * 10);
        if (i == 0)
            memset(s->prev, '0', 64);
        else
            memcpy(s->prev, steps[i - 1].hash, 64);
        const char *parent = i > 0 && has_parents(version) ? steps[i - 1].id : NULL;
        CX_TRY(seal_step(s, i, version, parent, arena, err));
    }
    return CX_SUCCESS;
}

static void corrupt_steps(step *steps, corruption kind)
{
    char held[sizeof steps[0].event];
    switch (kind) {
    case INTACT:
    case GAP: break; /* the gap is left out when writing */
    case PAYLOAD: steps[1].event[sizeof "{\"action\":\"" - 1] = 'X'; break;
    case SWAP:
        memcpy(held, steps[1].event, sizeof held);
        memcpy(steps[1].event, steps[2].event, sizeof held);
        memcpy(steps[2].event, held, sizeof held);
        break;
    case METADATA: steps[2].agent = "intruder"; break;
    }
}

static void write_steps(cx_buf *out, const step *steps, const char *version, corruption kind)
{
    cx_buf_printf(out, "{\"schema_version\":\"%s\"}\n", version);
    for (int i = 0; i < LENGTH; i++) {
        if (kind == GAP && i == 2)
            continue;
        const step *s = &steps[i];
        cx_buf_printf(out,
                      "{\"node_id\":\"%s\",\"agent_id\":\"%s\",\"seq\":%d,\"timestamp\":%d,"
                      "\"event\":%s,\"state_delta\":{},\"prev_hash\":\"%s\",\"hash\":\"%s\"",
                      s->id, s->agent, i, i, s->event, s->prev, s->hash);
        if (has_parents(version) && i > 0)
            cx_buf_printf(out, ",\"parents\":[\"%s\"]", steps[i - 1].id);
        cx_buf_add_z(out, "}\n");
    }
}

static cx_status verify_text(cx_str text, bool *out_holds, cx_err *err)
{
    cx_lattice *lattice;
    cx_lattice_report *report;
    CX_TRY(cx_lattice_open_bytes(cx_str_bytes(text), NULL, &lattice, err));
    cx_status status = cx_lattice_verify(lattice, NULL, &report, err);
    if (!cx_failed(status)) {
        *out_holds = cx_lattice_report_verdict(report) == CX_HOLDS;
        cx_lattice_report_close(report);
    }
    cx_lattice_close(lattice);
    return status;
}

/* Whether the verdict under this version is the right one. */
static cx_status run_case(corruption kind, const char *version, bool *out_right, cx_err *err)
{
    step steps[LENGTH];
    cx_arena arena;
    cx_buf text;
    bool holds = false;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = build_steps(steps, version, &arena, err);
    if (!cx_failed(status)) {
        corrupt_steps(steps, kind);
        write_steps(&text, steps, version, kind);
        status = cx_buf_check(&text, err);
    }
    if (!cx_failed(status))
        status = verify_text(cx_buf_str(&text), &holds, err);
    cx_buf_done(&text);
    cx_arena_done(&arena);
    *out_right = holds == (kind == INTACT);
    return status;
}

cx_status cx_lattice_selftest(cx_buf *out, unsigned *out_failed, cx_err *err)
{
    static const char *const versions[] = {"1.0", "1.1", "2.0.0"};
    *out_failed = 0;
    for (corruption kind = INTACT; kind <= METADATA; kind++) {
        bool all_right = true;
        for (size_t i = 0; i < CX_COUNT_OF(versions); i++) {
            bool right;
            CX_TRY(run_case(kind, versions[i], &right, err));
            all_right &= right;
        }
        cx_buf_printf(out, "--- RUNNING %s ---\n", names[kind]);
        if (!all_right)
            cx_buf_printf(out, "[FAIL] Replay CLI gave the wrong verdict (%s).\n", names[kind]);
        else if (kind == INTACT)
            cx_buf_printf(out, "[PASS] Replay CLI successfully verified the trace (%s).\n",
                          names[kind]);
        else
            cx_buf_printf(out, "[PASS] Replay CLI correctly rejected the corrupted trace (%s).\n",
                          names[kind]);
        *out_failed += !all_right;
    }
    if (*out_failed == 0)
        cx_buf_add_z(out, "--- ALL TESTS PASSED ---\n");
    else
        cx_buf_printf(out, "--- %u TESTS FAILED ---\n", *out_failed);
    return cx_buf_check(out, err);
}

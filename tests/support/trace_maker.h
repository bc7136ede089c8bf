/*
 * trace_maker.h - agents that sign traces, for tests and measurements.
 *
 *     maker m;
 *     maker_init(&m, "alpha");
 *     maker_trace(&m, &(maker_options)MAKER_OPTIONS_INIT, &text);     one trace of form B
 *
 * The signed bytes are written here by hand, in the spelling of form B, so that nothing of what is
 * tested helps in making its input.  Each trace of a maker follows the one before in its audit
 * chain (profile spec-1.0).
 */
#ifndef CX_TESTS_TRACE_MAKER_H
#define CX_TESTS_TRACE_MAKER_H

#include "base/buf.h"
#include "trace/trust.h"

typedef struct maker {
    char key_id[32];
    char agent[32];
    cx_pubkey public_key;
    uint8_t secret[64];
    uint64_t count;    /* of traces so far */
    char previous[65]; /* audit hash of the last one; "" before the first */
} maker;

typedef struct maker_options {
    int64_t at_ns;         /* of the first component */
    const char *level;     /* "generic", .. */
    const char *task;      /* prefix of the task's id */
    const char *action;    /* selected, without its class */
    const char *domain;    /* shown at detailed and above */
    const char *rationale; /* only in full_traces; NULL = none */
    double csdma, dsdma, coherence, entropy;
    double k_eff; /* 0 = the one that fits two sources */
    bool success, overridden, passed;
    size_t padding_bytes; /* of reasoning text, in full_traces */
    const char *trace_id; /* NULL = made from the count */
} maker_options;
#define MAKER_START_NS INT64_C(1767241200000000000) /* 2026-01-01T04:20:00Z */
#define MAKER_OPTIONS_INIT                                                                       \
    {                                                                                            \
        .at_ns = 0, .level = "generic", .task = "TASK_", .action = "SPEAK", .domain = "general", \
        .csdma = 0.9, .dsdma = 0.8, .coherence = 1.0, .entropy = 0.1, .success = true,           \
        .overridden = false, .passed = true                                                      \
    }

/* The key is that of the seed SHA-256("cortex test key " ‖ name). */
void maker_init(maker *m, const char *name);
/* Appends one trace; with at_ns 0 it is a minute after the one before. */
void maker_trace(maker *m, const maker_options *options, cx_buf *out);
/* The key as a trust store has it: for its own agent alone, valid from 2025-12-01 on. */
cx_trust_key maker_key(const maker *m);

/* A batch around what `add` appends, or with NULL empty: maker_batch_begin, traces, .._end. */
void maker_batch_begin(cx_buf *out);
/* Puts one trace into the batch. */
void maker_batch_add(cx_buf *out, cx_str trace);
void maker_batch_end(cx_buf *out, const char *level);

#endif

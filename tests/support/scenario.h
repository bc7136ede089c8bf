/*
 * scenario.h - the scenarios of tests/vectors/ledger as steps for memory/apply.h.
 *
 * The files tell what was called partly in their README; here that is put into the steps.  Ids and
 * times can be left to the caller's generators (as the original run had them) or written into the
 * steps.
 */
#ifndef CX_TESTS_SCENARIO_H
#define CX_TESTS_SCENARIO_H

#include "json/json.h"

typedef enum scenario_given {
    SCENARIO_GENERATED, /* ids and times come from generators */
    SCENARIO_WRITTEN    /* .. are in the steps */
} scenario_given;

typedef struct scenario_step {
    bool runs;           /* false: only roots to compare */
    cx_json step;        /* for cx_apply_step */
    unsigned idle_reads; /* of the clock, before it */
    bool is_snapshot;
    bool at_point; /* the file tells of point number `point`, reached after this step */
    size_t point;
    bool refused; /* Tombstoned */
    bool has_clock;
    int64_t clock_ns; /* after it */
    bool has_next_seq;
    uint64_t next_seq; /* after it */
    cx_str overall;    /* roots after it, hex; NULL data = not told */
    cx_str journal, memories, edges;
    const char *overall_name, *leaf_name; /* what the file calls them */
    cx_str uri;                           /* that it makes; NULL data = none */
    cx_str entry;                         /* the journal's last, hex; NULL data = not told */
    cx_str leaf;                          /* .. its leaf hash */
} scenario_step;

typedef struct scenario {
    cx_str actor;
    scenario_step *steps;
    size_t count;
    cx_json file;
} scenario;

/* The first clock reading gives one tick more than this. */
#define SCENARIO_START_NS INT64_C(1700000000000000000)
#define SCENARIO_TICK_NS INT64_C(1500000000)

/* scenario.json of matrix-1; roots of `other` (the same file of another scheme) when not NULL. */
CX_RESULT scenario_main(const cx_json *file, const cx_json *other, scenario_given given,
                        cx_arena *arena, scenario *out, cx_err *err);
/* scenario_large*.json. */
CX_RESULT scenario_large(const cx_json *file, const cx_json *other, scenario_given given,
                         cx_arena *arena, scenario *out, cx_err *err);
/* scenario_embed.json. */
CX_RESULT scenario_embed(const cx_json *file, cx_arena *arena, scenario *out, cx_err *err);

#endif

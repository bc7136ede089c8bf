/*
 * internal.h - shared by the files of this module.
 */
#ifndef CX_ERASURE_INTERNAL_H
#define CX_ERASURE_INTERNAL_H

#include "erasure/erasure.h"

/* One record that is to be destroyed. */
typedef struct cx_erasure_item {
    uint32_t actor; /* in the plan's names */
    bool is_memory;
    uint64_t seq;
    cx_id id;
    uint64_t bytes;
    int64_t first_ns, last_ns;
    cx_str kind;
} cx_erasure_item;

/* What is selected, in the order of the log; what holds keep is left out already. */
typedef struct cx_erasure_plan {
    cx_home *reader;
    const cx_erasure_filter *filter;
    cx_arena *arena;
    CX_VEC(cx_str) names;
    CX_VEC(cx_erasure_item) items;
    cx_erasure_sums sums;
} cx_erasure_plan;

/* `before_request` = UINT64_MAX: all that is recorded; else only what precedes that entry of the
 * journal `erasures` (R2).  End it also after a failure. */
CX_RESULT cx_erasure_plan_begin(cx_erasure_plan *plan, cx_home *reader,
                                const cx_erasure_filter *filter, uint64_t before_request,
                                cx_arena *arena, cx_err *err);
void cx_erasure_plan_end(cx_erasure_plan *plan);

/* Whether time and rules of the filter cover the record; agent and subject are not looked at. */
typedef struct cx_erasure_candidate {
    cx_str kind;
    bool has_level;
    cx_trace_level level;
    int64_t last_ns;
} cx_erasure_candidate;
bool cx_erasure_covers(const cx_erasure_filter *filter, const cx_erasure_candidate *candidate);

/* "erasure N: ": what the reasons of its entries begin with (R3). */
#define CX_ERASURE_TAG_MAX 32
cx_str cx_erasure_tag(uint64_t request, char out[CX_ERASURE_TAG_MAX]);

/* The lines of what the request destroyed, and how many they are. */
CX_RESULT cx_erasure_list(cx_home *reader, uint64_t request, cx_position from, cx_buf *out,
                          uint64_t *out_entries, uint64_t *out_memories, cx_err *err);

#endif

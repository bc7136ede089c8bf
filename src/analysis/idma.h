/*
 * idma.h - how many independent sources a decision rested on (trace.md §6).  Pure; thread-safe.
 */
#ifndef CX_ANALYSIS_IDMA_H
#define CX_ANALYSIS_IDMA_H

#include "base/api.h"

#define CX_IDMA_ESTABLISHED_AFTER 30 /* earlier verified traces; idma.established_after */
#define CX_IDMA_TOLERANCE 0.01

typedef struct cx_idma_input {
    bool has_k_eff, has_rho, has_sources, has_flag;
    double k_eff, rho;
    uint64_t source_count;
    bool fragility_flag;
    bool established;
} cx_idma_input;

typedef enum cx_idma_check {
    CX_IDMA_CONSISTENT,
    CX_IDMA_MISMATCH,
    CX_IDMA_OUT_OF_RANGE, /* input_out_of_range */
    CX_IDMA_INDETERMINATE
} cx_idma_check;
typedef enum cx_idma_phase {
    CX_PHASE_UNKNOWN,
    CX_PHASE_HEALTHY,
    CX_PHASE_FRAGILE,
    CX_PHASE_EMERGING,
    CX_PHASE_NASCENT
} cx_idma_phase;
typedef enum cx_idma_flag {
    CX_FLAG_CONSISTENT,
    CX_FLAG_MISMATCH, /* the finding fragility_mismatch */
    CX_FLAG_INDETERMINATE
} cx_idma_flag;

typedef struct cx_idma_result {
    bool has_computed;
    double computed;
    cx_idma_check check;
    cx_idma_phase phase;
    cx_idma_flag flag;
} cx_idma_result;

void cx_idma_judge(const cx_idma_input *input, cx_idma_result *out);
const char *cx_idma_check_name(cx_idma_check check);
const char *cx_idma_phase_name(cx_idma_phase phase); /* "" for unknown */
const char *cx_idma_flag_name(cx_idma_flag flag);

#endif

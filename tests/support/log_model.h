/*
 * log_model.h - what a log must hold, kept next to it in tests.
 */
#ifndef CX_TESTS_LOG_MODEL_H
#define CX_TESTS_LOG_MODEL_H

#include "base/vec.h"
#include "log/log.h"

typedef enum model_erasure { MODEL_LIVE, MODEL_TRIED, MODEL_ERASED } model_erasure;

/* A frame; its bytes follow from `seed`. */
typedef struct model_frame {
    uint64_t seed;
    size_t guarded_size;
    size_t erasable_size;
    uint64_t commit;
    cx_log_place place;
    model_erasure erasure;
} model_frame;

typedef struct log_model {
    CX_VEC(model_frame) frames; /* in order */
    uint64_t acked;             /* commits that were waited for */
    size_t acked_frames;
    cx_buf scratch;
} log_model;

void log_model_init(log_model *m);
void log_model_done(log_model *m);

/* Submits `count` new frames of these sizes in one commit; on success the model knows them. */
CX_RESULT log_model_submit(log_model *m, cx_log *log, const size_t (*sizes)[2], size_t count,
                           uint64_t *out_commit, cx_err *err);
/* Every commit up to `commit` is on the disk. */
void log_model_ack(log_model *m, uint64_t commit);
/* What was not acknowledged and has a number from `commit_count` on was lost. */
void log_model_lose(log_model *m, uint64_t commit_count);

/*
 * Reads the log through, and single frames too when `single` is set; fails the running test where
 * it differs from the model.  False when it did.
 */
bool log_model_check(log_model *m, cx_log *log, uint64_t commit_count, bool single);

#endif

/*
 * mask.h - secrets do not get into events and reports (run.md §1 R7).
 *
 * Masked is every occurrence of the value of an environment variable whose name says that it holds
 * a secret, and whatever has the shape of a known kind of token, by "[masked]"; in names of JSON
 * members too.  Raw logs of agents are never changed.
 */
#ifndef CX_BUNDLE_MASK_H
#define CX_BUNDLE_MASK_H

#include "rules/api.h"

#define CX_RUN_MASKED "[masked]"

typedef struct cx_run_mask {
    cx_arena *arena;
    CX_VEC(cx_str) secrets; /* longest first */
} cx_run_mask;

/* (?i)(key|token|secret|passw|credential) */
bool cx_run_mask_name(cx_str name);

/* Values of `env` ("NAME=value", ends with NULL; NULL = this process's environment) that are at
 * least 6 bytes long; shorter ones would mask ordinary text. */
CX_RESULT cx_run_mask_init(cx_run_mask *mask, const char *const *env, cx_arena *arena, cx_err *err);
/* One more secret. */
CX_RESULT cx_run_mask_add(cx_run_mask *mask, cx_str value, cx_err *err);
void cx_run_mask_done(cx_run_mask *mask);

/* `text` itself when nothing in it is secret, else a copy in `arena`. */
CX_RESULT cx_run_mask_text(const cx_run_mask *mask, cx_str text, cx_arena *arena, cx_str *out,
                           cx_err *err);
/* The same for every string of a value; `mask` is a cx_run_mask.  Fits events.h and bundle.h. */
cx_status cx_run_mask_json(void *mask, const cx_json *value, cx_arena *arena, cx_json *out,
                           cx_err *err);

#endif

/*
 * run.h - shared by everything that governs runs: limits, and findings, by which every lint and
 * every gate says why it rejects.  docs/formats/run.md is the format; § numbers refer to it.
 *
 *   I1  Findings are never lost silently: after lack of memory cx_run_findings_check fails, and
 *       nothing may be called passed.
 *   I2  `refusing` counts the findings that do not only inform, lost ones included.
 */
#ifndef CX_RULES_RUN_H
#define CX_RULES_RUN_H

#include "base/api.h"
#include "json/api.h"

/* Limits (§1 R4, R5). */
#define CX_RUN_JSON_DEPTH_MAX 128
#define CX_RUN_JSON_BYTES_MAX (UINT32_C(16) << 20)
#define CX_RUN_CONTRACT_BYTES_MAX (UINT32_C(1) << 20)
#define CX_RUN_OUTPUT_BYTES_MAX (UINT64_C(64) << 20) /* of one stream of one process */
#define CX_RUN_ID_BYTES_MAX 128

/* Exit code of a command whose gate rejected. */
#define CX_RUN_EXIT_REJECTED 4

/*
 * One reason to reject. A gate passes when it has none; a finding that only informs is marked. All
 * text lives in the arena of the list.
 */
typedef struct cx_run_finding {
    const char *rule; /* "K02", "C07", "D09", ..; static storage */
    cx_str where;   /* a JSON pointer of the contract, or a path of the repository; may be empty */
    cx_str detail;  /* which view of the diff, which attempt, ..; may be empty */
    cx_str message; /* one sentence: what was found, what was expected, what to do */
    bool informs;   /* true: informs only, is no reason to reject */
} cx_run_finding;

typedef struct cx_run_findings {
    cx_arena *arena;
    CX_VEC(cx_run_finding) list;
    size_t refusing; /* findings that are reasons to reject */
    bool failed;     /* lack of memory: cx_run_findings_check fails (I1) */
} cx_run_findings;

void cx_run_findings_init(cx_run_findings *findings, cx_arena *arena);
/* Frees the list; the text stays with the arena.  Fine for zeroed ones. */
void cx_run_findings_done(cx_run_findings *findings);
/* Adds a finding; `where` and `detail` are copied. Lack of memory is reported by
 * cx_run_findings_check. */
void cx_run_findings_reject(cx_run_findings *findings, const char *rule, cx_str where,
                            cx_str detail, const char *format, ...) CX_PRINTF(5, 6);
/* The same for a finding that only informs. */
void cx_run_findings_inform(cx_run_findings *findings, const char *rule, cx_str where,
                            cx_str detail, const char *format, ...) CX_PRINTF(5, 6);
bool cx_run_findings_have(const cx_run_findings *findings, const char *rule);
/* CX_E_NOMEM when a finding was lost: then nothing may be called passed (I1). */
CX_RESULT cx_run_findings_check(const cx_run_findings *findings, cx_err *err);
/* [{"rule","path","message"(,"view")}] in the order found, refusing ones only. */
CX_RESULT cx_run_findings_json(const cx_run_findings *findings, cx_arena *arena, cx_json *out,
                               cx_err *err);

/* --- JSON as this module reads and writes it (§1 R5) ------------------------------------------ */

/* Strict reading with the limits above; `limit_bytes` 0 = CX_RUN_JSON_BYTES_MAX. */
CX_RESULT cx_run_json_read(cx_str text, size_t limit_bytes, cx_arena *arena, cx_json *out,
                           cx_err *err);
/* Two spaces a level, raw UTF-8, a final newline; members in the order that `value` has them. */
CX_RESULT cx_run_json_write(cx_buf *out, const cx_json *value, cx_err *err);

/* RFC 3339 UTC with microseconds and 'Z' (§1 R6), 27 bytes and a terminator. */
void cx_run_time_text(int64_t ns, char out[28]); /* clock.h parses it */

#endif

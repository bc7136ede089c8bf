/*
 * trace.h - one signed decision of an agent: reading it, its canonical bytes, its signature, its
 * level (trace.md §1 - §4, §9).
 *
 *     cx_trace_read      bytes -> cx_trace, or the first reason why not
 *     cx_trace_verify    cx_trace + trust store -> verdict with its reason, form and paths
 *     cx_trace_redact     a view of a lower level, which never claims to be signed
 *
 * Invariants (cited by tests and asserts):
 *
 *   I1  A defect of a trace is a verdict with a reason, never an error; errors are out of memory
 *       and misuse.
 *   I2  Reading is iterative and bounded: no input makes it recurse, and every size has a limit
 *       (§11).
 *   I3  Numbers and bytes are stored as received.
 *   I4  A redacted view never has a signature, and never contains a field above its level (§2).
 *
 * A trace borrows from its bytes and its arena.  All functions are pure and thread-safe.
 */
#ifndef CX_TRACE_TRACE_H
#define CX_TRACE_TRACE_H

#include "base/api.h"
#include "json/api.h"
#include "trace/trust.h"

/* Limits (§1, §11). */
#define CX_TRACE_BYTES_MAX (UINT32_C(8) << 20)
#define CX_TRACE_ID_BYTES_MAX 256
#define CX_TRACE_COMPONENTS_MAX 256
#define CX_TRACE_DEPTH_MAX 64 /* the trace object is 1 */
#define CX_TRACE_NUMBER_BYTES_MAX 4096
#define CX_TRACE_TEXT_BYTES_MAX (UINT32_C(4) << 20)

typedef enum cx_trace_level {
    CX_LEVEL_GENERIC,
    CX_LEVEL_DETAILED,
    CX_LEVEL_FULL,
    CX_LEVEL_ABSENT /* not stated; greater than the others, so that it is never "lower" */
} cx_trace_level;
const char *cx_trace_level_name(cx_trace_level level); /* "generic", "detailed", "full_traces" */
bool cx_trace_level_parse(cx_str text, cx_trace_level *out);

/* §1; the index is that of cx_trace.last. */
typedef enum cx_event_type {
    CX_EVENT_THOUGHT_START,
    CX_EVENT_SNAPSHOT_AND_CONTEXT,
    CX_EVENT_DMA_RESULTS,
    CX_EVENT_ASPDMA_RESULT,
    CX_EVENT_CONSCIENCE_RESULT,
    CX_EVENT_ACTION_RESULT, /* up to here: every trace has exactly one of each */
    CX_EVENT_IDMA_RESULT,
    CX_EVENT_TSASPDMA_RESULT,
    CX_EVENT_LLM_CALL,
    CX_EVENT_VERB_SECOND_PASS_RESULT,
    CX_EVENT_UNKNOWN,
    CX_EVENT_COUNT = CX_EVENT_UNKNOWN
} cx_event_type;
#define CX_EVENT_REQUIRED_COUNT 6
const char *cx_event_type_name(cx_event_type type); /* "THOUGHT_START", ..; "" for unknown */

/* The canonical forms of §3. */
typedef enum cx_trace_form {
    CX_FORM_A,
    CX_FORM_B,
    CX_FORM_C,
    CX_FORM_D,
    CX_FORM_E,
    CX_FORM_F,
    CX_FORM_G,
    CX_FORM_H,
    CX_FORM_NONE
} cx_trace_form;
#define CX_FORMS_ALL 0xFFu
#define CX_FORM_BIT(form) (1u << (form))
/* "A" .. "H"; "" for none. */
const char *cx_trace_form_name(cx_trace_form form);
/* "B" or "A,B,H" -> bits; false for anything else. */
bool cx_trace_forms_parse(cx_str text, unsigned *out_bits);

typedef enum cx_trace_numbers {
    CX_NUMBERS_NONE, /* nothing verified */
    CX_NUMBERS_SAME, /* the received spelling equals Python's */
    CX_NUMBERS_LEXEME,
    CX_NUMBERS_PYTHON,
    CX_NUMBERS_JCS
} cx_trace_numbers;
const char *cx_trace_numbers_name(cx_trace_numbers numbers); /* "same", ..; "" for none */

/* Why a trace does not hold (§4.3, §9), in the order in which they are checked. */
typedef enum cx_trace_reason {
    CX_REASON_NONE,
    CX_REASON_INVALID_UTF8,
    CX_REASON_MALFORMED_JSON,
    CX_REASON_DUPLICATE_KEY,
    CX_REASON_DEPTH_EXCEEDED,
    CX_REASON_LIMIT_EXCEEDED,
    CX_REASON_NUMBER_NOT_FINITE,
    CX_REASON_MISSING_FIELD,
    CX_REASON_FIELD_TYPE,
    CX_REASON_LEVEL_UNKNOWN,
    CX_REASON_COMPONENT_TYPE_MISMATCH,
    CX_REASON_TIMESTAMP_INVALID,
    CX_REASON_COMPONENTS_MISSING,
    CX_REASON_SIGNATURE_ENCODING,
    CX_REASON_SIGNATURE_LENGTH,
    CX_REASON_KEY_UNKNOWN,
    CX_REASON_KEY_AGENT_MISMATCH,
    CX_REASON_KEY_NOT_YET_VALID,
    CX_REASON_KEY_EXPIRED,
    CX_REASON_KEY_REVOKED,
    CX_REASON_SIGNATURE_INVALID,
    CX_REASON_LEVEL_VIOLATION,
    CX_REASON_SIGNATURE_REPLAYED,
    CX_REASON_TRACE_ID_CONFLICT
} cx_trace_reason;
const char *cx_trace_reason_name(cx_trace_reason reason); /* "key_unknown", ..; "" for none */
bool cx_trace_reason_parse(cx_str text, cx_trace_reason *out);

typedef struct cx_trace_component {
    cx_event_type event;
    cx_str component_type, event_type;
    cx_str timestamp;     /* verbatim */
    int64_t timestamp_ns; /* since 1970-01-01 UTC */
    bool naive_timestamp; /* had no offset: taken as UTC */
    const cx_json *data;  /* an object */
    const cx_json *json;  /* the whole component */
} cx_trace_component;

/* Absent texts have NULL data.  Times are valid only where has_.. says so. */
typedef struct cx_trace {
    cx_bytes bytes;      /* as received: exactly the trace object */
    const cx_json *json; /* of them; numbers as spelled */
    cx_str trace_id, thought_id, task_id, agent_id_hash;
    cx_str started_at, completed_at;
    bool has_started, has_completed;
    int64_t started_ns, completed_ns;
    cx_str signature, key_id;
    cx_trace_level level; /* its own; CX_LEVEL_ABSENT */
    cx_str schema_version;
    bool stamped; /* schema_version says 2.7 or later (§1) */
    const cx_trace_component *components;
    uint32_t component_count;
    /* The last component of each known type, NULL when there is none. */
    const cx_trace_component *last[CX_EVENT_COUNT];
    int64_t signed_ns; /* signing time (§4): the latest component timestamp */
} cx_trace;

/* The first defect.  `path` is a JSON Pointer in the arena, data NULL when not fixed; `detail` is a
 * sentence for people that quotes no received text except names and ids. */
typedef struct cx_trace_problem {
    cx_trace_reason reason;
    cx_str path;
    cx_str detail;
} cx_trace_problem;

/* Parse and structure (§1, §4.3 up to components_missing).  If there is a problem, `out` has what
 * was read so far (the ids where they are texts), to name the trace. */
CX_RESULT cx_trace_read(cx_bytes bytes, cx_arena *arena, cx_trace *out,
                        cx_trace_problem *out_problem, cx_err *err);

/* The same for a stored trace or a redacted view of one (§2), which has neither signature nor key
 * id; those are then NULL. */
CX_RESULT cx_trace_read_stored(cx_bytes bytes, cx_arena *arena, cx_trace *out,
                               cx_trace_problem *out_problem, cx_err *err);

/* The same with a parser that is reused: about twice as fast for similar traces. */
void cx_trace_parser_init(cx_json_parser *parser, const cx_alloc *alloc);
CX_RESULT cx_trace_read_with(cx_json_parser *parser, cx_bytes bytes, cx_arena *arena, cx_trace *out,
                             cx_trace_problem *out_problem, cx_err *err);

/* `YYYY-MM-DDTHH:MM:SS[.1-9 digits][Z|+-HH:MM]`, a real calendar date (§1); years 1970 to 2262. */
bool cx_trace_time_parse(cx_str text, int64_t *out_ns, bool *out_naive);
/* UTC with nine fraction digits and Z, as the index keeps it; 30 bytes and NUL. */
#define CX_TRACE_TIME_SIZE 31
void cx_trace_time_write(int64_t ns, char out[CX_TRACE_TIME_SIZE]);

/* The effective level: the trace's own, else the event's, else the batch's, else generic (§1). */
cx_trace_level cx_trace_level_of(const cx_trace *trace, cx_trace_level event, cx_trace_level batch);

/* VERIFY_IDENTITY, ..; data NULL when it is none (§8).  Static storage. */
cx_str cx_trace_wakeup_type(cx_str task_id);

/* agent_id_hash, or NULL data when it is absent or "unknown" (§1). */
cx_str cx_trace_agent(const cx_trace *trace);
/* The ledger's actor of the trace (decision 0015): the agent, else "key:<key id>"; in the arena. */
cx_str cx_trace_actor(const cx_trace *trace, cx_arena *arena);

/* --- canonical bytes (§3) --------------------------------------------------------------------- */

typedef struct cx_trace_bytes {
    cx_trace_form form;
    bool python_numbers;        /* A - G: Python's spelling instead of the received one */
    bool strip_data_only;       /* E: its second try */
    cx_trace_level batch_level; /* E: the level when the trace has none; CX_LEVEL_ABSENT = null */
} cx_trace_bytes;

/* Appends the text that would have been signed.  CX_E_FORMAT when the trace has no such form (H of
 * a lone surrogate). */
CX_RESULT cx_trace_canonical(const cx_trace *trace, const cx_trace_bytes *which, cx_buf *out,
                             cx_err *err);

/* Any JSON value as the forms spell it; `strip` as in §3.  JCS uses neither of the two. */
typedef struct cx_canon_style {
    bool spaces;         /* ", " and ": " */
    bool python_numbers; /* else as received */
    bool strip;
} cx_canon_style;
CX_RESULT cx_trace_canon_value(const cx_json *value, const cx_canon_style *style, cx_buf *out,
                               cx_err *err);

/* Content digest (§9). */
CX_RESULT cx_trace_content_digest(const cx_trace *trace, cx_digest *out, cx_err *err);

/* --- levels (§2) ------------------------------------------------------------------------------ */

/* Pointers of the fields that `level` does not allow, in member order, from the arena. */
CX_RESULT cx_trace_violations(const cx_trace *trace, cx_trace_level level, cx_arena *arena,
                              const cx_str **out_paths, size_t *out_count, cx_err *err);

typedef struct cx_trace_redaction {
    cx_trace_level from; /* the level of the stored trace */
    cx_trace_level to;   /* CX_E_USAGE "Raising" when above */
    cx_trace_form form;  /* the form that verified; NONE = null in the view */
    cx_digest canonical, content;
    bool has_canonical;
} cx_trace_redaction;
/* The redacted view as a JSON value, and the removed pointers. */
CX_RESULT cx_trace_redact(const cx_trace *trace, const cx_trace_redaction *how, cx_arena *arena,
                          cx_json *out, const cx_str **out_removed, size_t *out_removed_count,
                          cx_err *err);

/* --- verification (§4) ------------------------------------------------------------------------ */

typedef enum cx_trace_pqc {
    CX_PQC_ABSENT,
    CX_PQC_NOT_CHECKED,
    CX_PQC_HOLDS,
    CX_PQC_BROKEN
} cx_trace_pqc;
typedef enum cx_trace_signed {
    CX_SIGNED_NOTHING,
    CX_SIGNED_COMPONENTS,       /* B - D */
    CX_SIGNED_COMPONENTS_LEVEL, /* E */
    CX_SIGNED_ENVELOPE          /* A, F - H */
} cx_trace_signed;
const char *cx_trace_signed_name(cx_trace_signed what); /* "components+level", ..; "" */

typedef struct cx_trace_check {
    const cx_trust *trust;
    int64_t received_ns;                     /* time of receipt: revocation is judged by it */
    cx_trace_level event_level, batch_level; /* CX_LEVEL_ABSENT when not said */
    unsigned forms;                          /* CX_FORMS_ALL, or CX_FORM_BITs */
    bool any_level;                          /* do not report level_violation: the strip policy */
} cx_trace_check;

typedef struct cx_trace_verdict {
    cx_verdict verdict; /* indeterminate: key_unknown */
    cx_trace_problem problem;
    const cx_str *paths; /* all of them, for level_violation */
    size_t path_count;
    cx_trace_form form; /* that the signature verifies under; also with level_violation */
    cx_trace_numbers numbers;
    cx_digest canonical; /* of the bytes that verified */
    uint64_t canonical_size_bytes;
    cx_trace_signed covers;
    cx_trace_pqc pqc;
    const cx_trust_key *key; /* borrowed from the trust store; NULL = unknown */
    bool naive_timestamp;    /* warning */
} cx_trace_verdict;

/* `scratch` is used and cleared. */
CX_RESULT cx_trace_verify(const cx_trace *trace, const cx_trace_check *check, cx_buf *scratch,
                          cx_arena *arena, cx_trace_verdict *out, cx_err *err);
/* The same with the content digest (§9), whatever the verdict: both digests are computed in
 * parallel lanes, which is faster than one after the other.  `out_content` may be NULL. */
CX_RESULT cx_trace_verify_content(const cx_trace *trace, const cx_trace_check *check,
                                  cx_buf *scratch, cx_arena *arena, cx_trace_verdict *out,
                                  cx_digest *out_content, cx_err *err);

/* One of several traces that are verified together. */
typedef struct cx_trace_job {
    const cx_trace *trace;
    cx_trace_check check;
    cx_trace_verdict *out;
    cx_digest *out_content; /* may be NULL */
} cx_trace_job;

/* The same results for each trace; much faster for eight and more, whose signatures and digests are
 * checked in lanes.  On failure the results are undefined. */
CX_RESULT cx_trace_verify_many(const cx_trace_job *jobs, size_t count, cx_buf *scratch,
                               cx_arena *arena, cx_err *err);

/* One line of canonical JSON and text for people, as `cortex trace verify` prints them; the trace
 * may be one that cx_trace_read found a problem in. */
CX_RESULT cx_trace_verdict_json(cx_buf *out, const cx_trace *trace, const cx_trace_verdict *verdict,
                                cx_err *err);
CX_RESULT cx_trace_verdict_text(cx_buf *out, const cx_trace *trace, const cx_trace_verdict *verdict,
                                bool colour, cx_err *err);

#endif

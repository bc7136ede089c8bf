/*
 * parts.h - the two sides of an audit as the files of this module share them: what the journal has
 * (journal.c), what transcripts tell (transcript.c), compared by reconcile.c and worktree.c.
 */
#ifndef CX_LIVE_AUDIT_PARTS_H
#define CX_LIVE_AUDIT_PARTS_H

#include "crypto/api.h"
#include "live_audit/live_audit.h"
#include "stores/api.h"

#define CX_LIVE_AUDIT_NONE UINT32_MAX

/* --- forms of inputs (form.c) ----------------------------------------------------------------- */

/*
 * A call in a form in which the hook's word and the transcript's can be compared.  `pair` is what
 * calls without an id are matched by: the kind of the tool and what it is about.
 */
typedef struct cx_live_audit_form {
    cx_digest input;    /* as hooks of this agent would send it */
    cx_digest absolute; /* the same with its path made absolute */
    cx_digest pair;
    bool in_words; /* a command given as a list of words: hooks have it as one text */
    cx_live_tool_form tool_form;
    bool is_known_tool, is_mcp;
} cx_live_audit_form;

/* `input` NULL = {}.  Text of a call's arguments is parsed. */
CX_RESULT cx_live_audit_form_of(cx_live_agent agent, cx_str tool, cx_str mcp_server,
                                const cx_json *input, cx_str cwd, cx_arena *arena,
                                cx_live_audit_form *out, cx_err *err);

/* Sets `pair` of an input that only its digest (`form->input`) is known of. */
void cx_live_audit_pair_of_digest(cx_live_agent agent, cx_str tool, cx_live_audit_form *form);

typedef enum cx_live_audit_outcome {
    CX_LIVE_AUDIT_OPEN,    /* no result is told */
    CX_LIVE_AUDIT_RAN,     /* it has a result of its own */
    CX_LIVE_AUDIT_REFUSED, /* a hook or a person refused it */
    CX_LIVE_AUDIT_NEVER,   /* the agent refused it before its hooks */
    CX_LIVE_AUDIT_UNCLEAR  /* a failure that does not say whether it ran */
} cx_live_audit_outcome;

/* What a result says about whether the call ran; `raw` is the transcript's record. */
cx_live_audit_outcome cx_live_audit_outcome_of(cx_live_agent agent, const cx_json *result, bool ok,
                                               const cx_json *raw);

/* --- the transcript's side -------------------------------------------------------------------- */

typedef struct cx_live_audit_call {
    cx_str id, tool;
    cx_str session;  /* when the record names another one; else empty */
    cx_str subagent; /* empty = the session's own agent */
    cx_live_audit_form form;
    cx_live_audit_outcome outcome;
    uint32_t file;
    uint64_t line, result_line;
    bool has_time, is_copy;  /* told before, word for word: a resumed session repeats its past */
    int64_t t_ns, result_ns; /* 0 = the record has no time */
    uint32_t next;           /* the next call with this id; NONE */
    uint32_t told;           /* of the first with this id: calls that are no copies */
    uint32_t decision;       /* what decided it; NONE */
    bool is_gap;             /* an undecided call that ran */
} cx_live_audit_call;

typedef struct cx_live_audit_told {
    cx_live_agent agent;
    cx_str session; /* as the first record with one says; empty = unknown */
    cx_str parent;  /* a Codex thread that started this one; else empty */
    CX_VEC(cx_live_audit_call) calls;
    CX_VEC(cx_live_audit_file) files;
    cx_map by_id; /* -> first call */
    uint64_t bad_lines;
    uint32_t bad_file;
    uint64_t bad_line;         /* the first */
    int64_t first_ns, last_ns; /* of its records; 0 = none has a time */
    cx_arena arena;
    const cx_alloc *alloc;
} cx_live_audit_told;

void cx_live_audit_told_init(cx_live_audit_told *told, cx_live_agent agent, cx_str session,
                             const cx_alloc *alloc, uint64_t seed);
void cx_live_audit_told_done(cx_live_audit_told *told);

/* The agent whose transcripts have this form; CX_LIVE_AGENT_COUNT when none. */
cx_live_agent cx_live_audit_agent_of_format(const char *format);
/* Reads transcripts that are in memory; `files` names each, and gets its counts. */
CX_RESULT cx_live_audit_told_read(cx_live_audit_told *told, const char *format,
                                  const cx_bytes *bytes, const cx_live_audit_file *files,
                                  size_t count, cx_err *err);

/* --- the journal's side ----------------------------------------------------------------------- */

typedef struct cx_live_audit_decision {
    uint64_t seq;
    int64_t at_ns, until_ns; /* to the result; INT64_MAX: it may still run */
    cx_str id, tool, event, rule, subagent, text;
    cx_live_audit_form form; /* `input` is the entry's own digest */
    bool has_rewritten, rewrite_unknown;
    cx_digest rewritten; /* of the input that was answered in its place */
    cx_live_answer_kind verdict, would;
    cx_live_mode mode;
    bool is_permission, used, runs_on;
    const cx_str *writes; /* absolute paths */
    uint32_t write_count, commands, hosts;
    uint32_t result; /* NONE = no hook reported one */
    uint32_t next;   /* with the same id, or without ids the same pair */
    uint32_t below;  /* of the stack of decisions without a result */
} cx_live_audit_decision;

typedef struct cx_live_audit_result {
    uint64_t seq;
    int64_t at_ns;
    cx_str id, tool;
    cx_digest input;
    bool failed, is_joined; /* to a decision */
} cx_live_audit_result;

typedef enum cx_live_audit_mark_kind {
    CX_LIVE_AUDIT_MARK_START,
    CX_LIVE_AUDIT_MARK_END,
    CX_LIVE_AUDIT_MARK_CONFIG,
    CX_LIVE_AUDIT_MARK_APPROVAL
} cx_live_audit_mark_kind;

/* Entries that are neither decision nor result, as far as the audit looks at them. */
typedef struct cx_live_audit_mark {
    cx_live_audit_mark_kind kind;
    uint64_t seq;
    int64_t at_ns, until_ns;
    cx_str text, by; /* source, path, host; who */
    bool flag;       /* policy unread; allowed */
    bool fail_open;
    cx_live_mode mode;
} cx_live_audit_mark;

/* Times in which something ran that may have written anywhere; and writes of single files. */
typedef struct cx_live_audit_span {
    int64_t from_ns, until_ns;
} cx_live_audit_span;
typedef struct cx_live_audit_write {
    int64_t from_ns, until_ns;
    uint32_t next; /* of the same path */
} cx_live_audit_write;

typedef struct cx_live_audit_journal {
    cx_str actor;
    cx_live_agent agent;
    CX_VEC(cx_live_audit_decision) decisions;
    CX_VEC(cx_live_audit_result) results;
    CX_VEC(cx_live_audit_mark) marks;
    cx_map by_id, by_pair;            /* -> first decision */
    CX_VEC(cx_live_audit_span) spans; /* apart from each other, ascending */
    CX_VEC(cx_live_audit_write) writes;
    cx_map by_path;
    cx_map open;                  /* call id or input -> newest decision without a result */
    cx_str transcript, root, cwd; /* the newest that is named */
    uint64_t entries, erased, erased_seq;
    uint64_t fail_open, fail_open_seq; /* decisions; the first */
    int64_t first_ns, last_ns;
    bool ended;
    cx_arena arena;
    const cx_alloc *alloc;
} cx_live_audit_journal;

void cx_live_audit_journal_init(cx_live_audit_journal *journal, const cx_alloc *alloc,
                                uint64_t seed);
void cx_live_audit_journal_done(cx_live_audit_journal *journal);
CX_RESULT cx_live_audit_journal_read(cx_live_audit_journal *journal, cx_home *home, cx_str actor,
                                     cx_err *err);
/* Whether hooks of the agent send the id of a call. */
bool cx_live_audit_has_ids(cx_live_agent agent);

/* --- findings --------------------------------------------------------------------------------- */

typedef struct cx_live_audit {
    cx_home *home;
    const cx_live_audit_options *options;
    int64_t now_ns; /* when the transcript was read */
    const cx_alloc *alloc;
    cx_arena *arena; /* the report's */
    uint64_t seed;
    cx_live_audit_report *report;
    cx_live_audit_told told;
    cx_live_audit_journal journal;
    bool has_told, has_journal;
    CX_VEC(cx_live_audit_finding) found;
    bool failed; /* lack of memory */
} cx_live_audit;

/* Adds a finding; `call` and `decision` (both may be NULL) name the two sides.  The message is
 * printf's, text from outside in it is escaped when it is shown. */
void cx_live_audit_add(cx_live_audit *audit, cx_live_audit_kind kind,
                       const cx_live_audit_call *call, const uint64_t *seq, cx_str where,
                       const char *format, ...) CX_PRINTF(6, 7);

/* Compares both sides; fills in the report's counts. */
CX_RESULT cx_live_audit_reconcile(cx_live_audit *audit, cx_err *err);
/* Compares the work tree (worktree.c). */
CX_RESULT cx_live_audit_work_tree(cx_live_audit *audit, cx_err *err);
/* Fills in spans and writes of a journal that was read. */
CX_RESULT cx_live_audit_index_times(cx_live_audit_journal *journal, cx_err *err);
/* Compares connections that the egress proxy recorded (egress.c). */
CX_RESULT cx_live_audit_egress(cx_live_audit *audit, cx_err *err);
/* Compares tool spans of exporters (spans.c). */
CX_RESULT cx_live_audit_spans(cx_live_audit *audit, cx_err *err);
/* Whether a call that may have done it ran at that time: wrote `path` (data NULL = any command). */
bool cx_live_audit_is_explained(const cx_live_audit_journal *journal, int64_t at_ns, cx_str path);

#endif

/*
 * steps.h - steps of all histories as rows: what each says, for search, and one line for each
 * history, for the inbox (docs/formats/view.md).
 *
 * Rows are a function of the ledger like all of the index (I1).  The row of a step holds what of it
 * is shown in a list and what is searched, not the step: that is where `ref` finds it in the
 * history.  Both engines find words by their full-text indexes: SQLite FTS5 with unicode61,
 * PostgreSQL with the configuration `simple`; upper and lower case are alike, words are not reduced
 * to stems.
 */
#ifndef CX_INDEX_STEPS_H
#define CX_INDEX_STEPS_H

#include "base/api.h"
#include "index/index.h"

#define CX_STEP_TEXT_MAX ((size_t)256 << 10) /* of a step, for search; what is above it is not */
#define CX_HISTORY_TITLE_MAX 200             /* bytes */
#define CX_STEP_SNIPPET_MAX 240              /* bytes of the text around a hit */

/* Rows of these are found by their words, but are no histories that are listed: traces and memories
 * have lists of their own. */
#define CX_SOURCE_TRACES "traces"
#define CX_SOURCE_MEMORY "memory"

typedef struct cx_step_row {
    /* As /api/v1/view names it: session/ID, otel/TRACE, agent/NAME; or memory/ACTOR. */
    cx_str history;
    cx_str source;  /* claude-code, codex, otel, steps, ..; traces, memory */
    cx_str ref;     /* names the node in the history, or the memory; one row each */
    int64_t at_ns;  /* CX_TIME_NONE = unknown */
    int64_t end_ns; /* likewise */
    cx_str kind; /* message decision tool_call tool_result observation handoff memory error note */
    cx_str agent, role, tool, model;
    bool failed;
    int64_t tokens_input, tokens_output; /* 0 = unknown */
    double cost_usd;
    cx_str message_id; /* rows with the same one repeat the usage of one answer; empty = none */
    cx_str title; /* what it would call its history; the highest rank, then the first, counts */
    uint8_t title_rank; /* 0 = none */
    cx_str text;
    cx_str actor; /* where it came from in the ledger */
    uint64_t seq;
} cx_step_row;

/* Inside a transaction.  Ignored when the history has a row of that ref. */
CX_RESULT cx_index_put_step(cx_index *index, const cx_step_row *row, cx_err *err);

/* What a reader of a growing file keeps between its pieces. */
typedef struct cx_history_progress {
    uint64_t lines; /* read so far */
    cx_str pending; /* base64 of a line whose end has not come */
    cx_str path;    /* NULL data: as it was */
} cx_history_progress;
/* All zero for a new history. */
CX_RESULT cx_index_history_progress(cx_index *index, cx_str history, cx_arena *arena,
                                    cx_history_progress *out, cx_err *err);
CX_RESULT cx_index_set_history_progress(cx_index *index, cx_str history, cx_str source,
                                        const cx_history_progress *progress, cx_err *err);
/* A document was replaced by a newer one: the history goes on as `name`, without its rows. */
CX_RESULT cx_index_renew_history(cx_index *index, cx_str before, cx_str name, cx_err *err);
/* Of a history that many documents make: the step is written again. */
CX_RESULT cx_index_drop_step(cx_index *index, cx_str history, cx_str ref, cx_err *err);
/* The entry was erased: its rows go, and the history's counts and title are made again. */
CX_RESULT cx_index_forget_steps(cx_index *index, cx_str actor, uint64_t seq, cx_err *err);
/* Rows of the history whose ref begins so (in ASCII) were erased; likewise. */
CX_RESULT cx_index_forget_refs(cx_index *index, cx_str history, cx_str beginning, cx_err *err);
/* Rows older than that go, and histories whose newest row they were. */
CX_RESULT cx_index_retain_steps(cx_index *index, int64_t before_ns, cx_err *err);

/* --- questions -------------------------------------------------------------------------------- */

typedef struct cx_found_history {
    int64_t id; /* for the cursor */
    cx_str name, source, title, agent, model, path;
    int64_t first_ns, last_ns; /* CX_TIME_NONE */
    int64_t steps, calls, errors, tokens_input, tokens_output;
    double cost_usd;
} cx_found_history;

typedef struct cx_history_query {
    cx_str words;               /* in the title, agent, path or any step; data NULL = any */
    cx_str name, source, agent; /* data NULL = any */
    int64_t from_ns, to_ns;     /* of the newest step; CX_TIME_NONE */
    uint32_t limit;             /* 1 .. 1000 */
    bool has_cursor;
    int64_t cursor_ns, cursor_id; /* after this one */
} cx_history_query;
#define CX_HISTORY_QUERY_INIT                                        \
    {                                                                \
        .from_ns = CX_TIME_NONE, .to_ns = CX_TIME_NONE, .limit = 100 \
    }
/* Newest first by the newest step, then by id. */
CX_RESULT cx_index_histories(cx_index *index, const cx_history_query *query, cx_arena *arena,
                             const cx_found_history **out, size_t *out_count, bool *out_more,
                             cx_err *err);

typedef struct cx_found_step {
    int64_t id;                    /* for the cursor */
    cx_str history, title, source; /* of the history */
    cx_str ref, kind, agent, role, tool;
    int64_t at_ns;
    bool failed;
    /* A part of the text around the first word that was found; the texts before and after it were
     * cut. */
    cx_str snippet;
    bool cut_before, cut_after;
} cx_found_step;

typedef struct cx_step_query {
    cx_str words;   /* all of them, at most CX_INDEX_WORDS_MAX; the last may be a beginning */
    cx_str history; /* data NULL = all */
    cx_str kind, agent, tool;
    uint32_t limit; /* 1 .. 500 */
    bool has_cursor;
    int64_t cursor_id; /* those before it */
} cx_step_query;
/*
 * Newest first, as they came in.  CX_E_FORMAT "NoWords" when there is nothing to search for,
 * CX_E_LIMIT "TooManyWords".
 */
CX_RESULT cx_index_search(cx_index *index, const cx_step_query *query, cx_arena *arena,
                          const cx_found_step **out, size_t *out_count, bool *out_more,
                          cx_err *err);

#endif

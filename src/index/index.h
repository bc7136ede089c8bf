/*
 * index.h - the searchable index of traces: rows, tables, queries (trace.md §10, §11).
 *
 * An index lives in a SQLite file, attached as schema `cirislens` (the schema name of spec 1.0's
 * SQL), or in a PostgreSQL database; queries and answers are the same.
 *
 * Invariants (cited by tests and asserts):
 *
 *   I1  The index is a function of the ledger: dropping and rebuilding it gives the same rows and
 *       ids.
 *   I2  Rows are written in batches, in one transaction with the log position up to which the index
 *       is then true: after a crash the feed continues there, and no row is missing or duplicated.
 *   I3  Of the rows of one trace exactly one has primary_row set: verified before unverified, then
 *       the highest level (§9).
 *   I4  Nothing that a sender writes makes a write fail: a value that does not fit its column is
 *       NULL there.
 *
 * An index object belongs to one thread at a time.
 */
#ifndef CX_INDEX_INDEX_H
#define CX_INDEX_INDEX_H

#include <math.h>

#include "base/api.h"
#include "json/api.h"
#include "analysis/api.h"
#include "trace/api.h"

/* --- rows ------------------------------------------------------------------------------------- */

typedef enum cx_cell_type {
    CX_CELL_TEXT,  /* T; U+0000 is shown as U+FFFD */
    CX_CELL_INT,   /* I */
    CX_CELL_FLOAT, /* F */
    CX_CELL_BOOL,  /* B */
    CX_CELL_TIME,  /* Z: ns since 1970 in `i` */
    CX_CELL_JSON,  /* J: text of one JSON value */
    CX_CELL_TEXTS, /* A: text of a JSON array of strings; the driver turns it into text[] */
    CX_CELL_UUID   /* U: lower-case text */
} cx_cell_type;

typedef struct cx_cell {
    bool null;
    union {
        int64_t i;
        double f;
        bool b;
        cx_str text;
    };
} cx_cell;

typedef struct cx_column {
    const char *name;
    cx_cell_type type;
    bool required; /* not null */
} cx_column;

/* covenant_traces without its generated `id`, in the order of §10. */
extern const cx_column cx_trace_columns[];
extern const unsigned cx_trace_column_count;
/* Index of a column by name; -1 when there is none. */
int cx_trace_column(const char *name);

/* The values of a row that are not in the trace itself. */
typedef struct cx_trace_facts {
    cx_trace_level level; /* effective */
    int64_t received_ns;
    int64_t consent_ns; /* CX_TIME_NONE = none */
    bool verified;
    cx_trace_reason reason; /* why not verified */
    cx_trace_form form;     /* CX_FORM_NONE when not verified */
    bool has_canonical;
    cx_digest canonical, content;
    bool established; /* §6, of the agent before this trace */
    cx_str actor;     /* in the ledger */
    uint64_t seq;
    cx_str key_id; /* of the signer: a redacted view no longer names it */
} cx_trace_facts;

typedef struct cx_trace_row {
    cx_cell *cells; /* cx_trace_column_count of them */
    /* The received text, for the audit chain (§5); NULL data when absent. */
    cx_str action_executed, action_timestamp;
} cx_trace_row;
/* primary_row is set by the index. */
CX_RESULT cx_trace_row_make(const cx_trace *trace, const cx_trace_facts *facts, cx_arena *arena,
                            cx_trace_row *out, cx_err *err);

/* --- the index -------------------------------------------------------------------------------- */

typedef struct cx_index cx_index;

typedef enum cx_index_mode {
    CX_INDEX_WRITE, /* creates or migrates the tables */
    CX_INDEX_READ
} cx_index_mode;

/* `where` is a path, or postgresql://.. / postgres://.. ; CX_E_FORMAT "IndexVersion" when the
 * tables are newer than this program.  CX_E_BUSY / CX_E_IO "DatabaseAway" when a server cannot be
 * reached: try again later. */
CX_RESULT cx_index_open(const char *where, cx_index_mode mode, cx_index **out, cx_err *err);
/* What a person can do when the index at `where` could not be opened because of `failure`. */
const char *cx_index_advice(const char *where, const cx_err *failure);
void cx_index_close(cx_index *index);
/* "sqlite", "postgresql", "timescaledb" */
const char *cx_index_engine(const cx_index *index);

/* Where the feed continues; all zero for new tables and for those of another data directory;
 * writing to the latter fails with CX_E_CONFLICT "OtherHome". */
typedef struct cx_feed_position {
    uint64_t commit, frames;
} cx_feed_position;
CX_RESULT cx_index_position(cx_index *index, const uint8_t home_id[16], cx_feed_position *out,
                            cx_err *err);

/* One transaction.  Rows are upserted by (agent_id_hash, trace_id, trace_level). */
CX_RESULT cx_index_begin(cx_index *index, cx_err *err);
CX_RESULT cx_index_put_trace(cx_index *index, const cx_trace_row *row, cx_err *err);
/* Sets a trace's new verdict (§4): its key was registered, or found to be compromised. */
typedef struct cx_rejudged {
    cx_str agent, trace_id;
    cx_trace_level level;
    bool verified;
    cx_trace_reason reason;
    cx_trace_form form;
    bool has_canonical;
    cx_digest canonical;
} cx_rejudged;
CX_RESULT cx_index_rejudge(cx_index *index, const cx_rejudged *change, cx_err *err);
/* A trace was erased: deletes its row and its words, if any. */
CX_RESULT cx_index_remove(cx_index *index, cx_str agent, cx_str trace_id, cx_trace_level level,
                          cx_err *err);
/* Rows of one signing key, for verifying them again: ledger_actor, ledger_seq, agent, id, level,
 * signing verdict. */
typedef struct cx_keyed_row {
    cx_str actor, agent, trace_id;
    uint64_t seq;
    cx_trace_level level;
    bool verified;
} cx_keyed_row;
CX_RESULT cx_index_rows_of_key(cx_index *index, cx_str key_id, cx_arena *arena,
                               const cx_keyed_row **out, size_t *out_count, cx_err *err);
/* §6: whether an earlier verified trace had k_eff >= 2.0, or there are 30 of them. */
CX_RESULT cx_index_established(cx_index *index, cx_str agent, bool *out, cx_err *err);
CX_RESULT cx_index_put_key(cx_index *index, const cx_trust_key *key, cx_err *err);
typedef struct cx_batch_row {
    cx_str batch_id;
    int64_t received_ns, batch_ns, consent_ns; /* CX_TIME_NONE */
    cx_trace_level level;
    cx_str correlation_metadata; /* JSON text; NULL data */
    uint64_t received, accepted, rejected;
    cx_str reasons;  /* JSON text: reason -> count */
    cx_str findings; /* JSON text: consent_after_batch, .. (decision 0026); NULL data */
    uint64_t seq;    /* sequence number of its entry in the journal `batches` */
} cx_batch_row;
CX_RESULT cx_index_put_batch(cx_index *index, const cx_batch_row *row, cx_err *err);
typedef struct cx_conflict_row {
    cx_str agent, trace_id;
    cx_trace_level level;
    cx_digest content;
    int64_t received_ns;
    cx_str actor;
    uint64_t seq;
} cx_conflict_row;
/* The payload of an entry was erased: deletes all rows and texts of that entry. */
CX_RESULT cx_index_forget(cx_index *index, cx_str actor, uint64_t seq, cx_err *err);
/* An agent's traces were verified again: recomputes the phases of the later ones (§6). */
CX_RESULT cx_index_update_phases(cx_index *index, cx_str agent, cx_err *err);
CX_RESULT cx_index_put_conflict(cx_index *index, const cx_conflict_row *row, cx_err *err);
/* `alert`: the object of cx_alert_json. */
CX_RESULT cx_index_put_alert(cx_index *index, const cx_json *alert, int64_t at_ns, cx_err *err);
CX_RESULT cx_index_mark_alert(cx_index *index, cx_str alert_id, bool resolved, int64_t at_ns,
                              cx_str by, cx_str notes, cx_err *err);
CX_RESULT cx_index_commit(cx_index *index, const uint8_t home_id[16], cx_feed_position position,
                          cx_err *err);
void cx_index_rollback(cx_index *index); /* no effect outside a transaction */
/* Drops everything and recreates the tables. */
CX_RESULT cx_index_clear(cx_index *index, cx_err *err);
/* Applies age: drops index partitions older than that; the ledger is not touched. */
CX_RESULT cx_index_retain(cx_index *index, int64_t older_than_ns, uint64_t *out_dropped,
                          cx_err *err);
/*
 * Applies size, of an index in a file: when its rows take more than `max_bytes`, the oldest days go
 * until they take nine tenths of that, hours when there is one day left; the newest hour stays.
 * The file keeps its size, its free pages are used again.  One transaction a day.  CX_E_UNSUPPORTED
 * of an index in PostgreSQL.
 */
CX_RESULT cx_index_bound(cx_index *index, uint64_t max_bytes, uint64_t *out_dropped, cx_err *err);
/* Rows before this time were dropped for age or size, so nothing older is found; CX_TIME_NONE =
 * none were. */
CX_RESULT cx_index_retained(cx_index *index, int64_t *out_ns, cx_err *err);

/* Updates covenant_agent_hours for the hours in which rows came or changed; counts the hours.
 * Call it periodically, for example each hour; does nothing in SQLite (a view) and TimescaleDB (its
 * own policy). */
CX_RESULT cx_index_refresh(cx_index *index, uint64_t *out_hours, cx_err *err);

/* --- questions -------------------------------------------------------------------------------- */

/* Classes of the conscience's result, and of the number of sources of a decision. */
typedef enum cx_gate_class {
    CX_GATE_UNKNOWN,
    CX_GATE_PASSED,
    CX_GATE_NOT_PASSED,
    CX_GATE_OVERRIDDEN /* whether it passed or not */
} cx_gate_class;
typedef enum cx_k_eff_class {
    CX_K_EFF_UNKNOWN,
    CX_K_EFF_BELOW_2,
    CX_K_EFF_2_TO_5,
    CX_K_EFF_5_AND_MORE
} cx_k_eff_class;

typedef struct cx_trace_query {
    cx_str trace_type, agent, task_id, thought_id, selected_action, cognitive_state, domain;
    cx_str trace_id;        /* texts with NULL data: any */
    cx_str text;            /* words in action_rationale */
    int64_t from_ns, to_ns; /* from <= timestamp < to; CX_TIME_NONE */
    int8_t verified;        /* cx_tri; CX_NULL = both */
    int8_t conscience_passed, overridden, fragility_flag;
    double min_plausibility, max_plausibility; /* NAN = any */
    cx_trace_level level; /* highest level that may be shown: the caller redacts what is above it */
    bool every_level;     /* one row for each stored level of a trace; else only its primary row */
    bool components;      /* the JSON columns too; they are null otherwise */
    uint32_t limit;       /* 1 .. 1000 */
    bool oldest_first;    /* oldest first, also relative to the cursor */
    bool has_cursor;      /* rows after this one */
    int64_t cursor_ns;
    int64_t cursor_id;
    /* At most CX_INDEX_WORDS_MAX words between spaces; each must begin an id, an action or a type
     * of the trace, or be a word, or some in a row, of its action_rationale; data NULL = any. */
    cx_str words;
    bool names_only; /* do not search the rationale, which a lower level hides */
    int8_t gate;     /* cx_gate_class; -1 = any */
    int8_t k_eff;    /* cx_k_eff_class; -1 = any */
    int8_t kept_at;  /* cx_trace_level of the row; -1 = any */
} cx_trace_query;
#define CX_TRACE_QUERY_INIT                                                                        \
    {                                                                                              \
        .from_ns = CX_TIME_NONE, .to_ns = CX_TIME_NONE, .verified = CX_TRUE,                       \
        .conscience_passed = CX_NULL, .overridden = CX_NULL, .fragility_flag = CX_NULL,            \
        .min_plausibility = NAN, .max_plausibility = NAN, .level = CX_LEVEL_GENERIC, .limit = 100, \
        .gate = -1, .k_eff = -1, .kept_at = -1                                                     \
    }
#define CX_INDEX_WORDS_MAX 6

typedef struct cx_found_row {
    int64_t id;           /* for the cursor */
    int64_t timestamp_ns; /* likewise */
    cx_cell *cells;       /* cx_trace_column_count of them */
} cx_found_row;
/* Newest first (or oldest), then by id; *out_more: there are more after the last one. */
CX_RESULT cx_index_find(cx_index *index, const cx_trace_query *query, cx_arena *arena,
                        const cx_found_row **out, size_t *out_count, bool *out_more, cx_err *err);

/* A number of primary rows with the same facet values; the agent is borrowed until `take` returns.
 * Several cells may have the same values. */
typedef struct cx_facet_cell {
    cx_str agent;
    cx_trace_level level;
    bool verified;
    cx_k_eff_class k_eff;
    cx_gate_class gate;
    int64_t hour; /* hour of `timestamp`, since 1970 */
    uint64_t traces;
} cx_facet_cell;
/* With words, at most this many matching rows are counted, the newest first. */
#define CX_FACET_ROWS_MAX 20000
/* Counts all primary rows, or those that match the words of `query` (the rest of it is ignored), as
 * of one moment.  *out_complete is false when there were more than CX_FACET_ROWS_MAX of them. */
CX_RESULT cx_index_facets(cx_index *index, const cx_trace_query *query,
                          cx_status (*take)(void *arg, const cx_facet_cell *cell, cx_err *err),
                          void *arg, bool *out_complete, cx_err *err);

/* Verified primary rows of an agent (NULL data: all) with from <= timestamp < to, by time. */
CX_RESULT cx_index_scores(cx_index *index, cx_str agent, int64_t from_ns, int64_t to_ns,
                          cx_arena *arena, const cx_score_row **out, size_t *out_count,
                          cx_err *err);
/* All received traces of an agent in that time, unverified ones included: its primary rows. */
CX_RESULT cx_index_received_count(cx_index *index, cx_str agent, int64_t from_ns, int64_t to_ns,
                                  uint64_t *out, cx_err *err);
/* Audit entries of an agent's verified primary rows, in order of arrival. */
CX_RESULT cx_index_chain(cx_index *index, cx_str agent, cx_arena *arena, const cx_chain_entry **out,
                         size_t *out_count, cx_err *err);
/* The same with first <= number <= last, and up to `context` numbers before and after. */
CX_RESULT cx_index_chain_near(cx_index *index, cx_str agent, int64_t first, int64_t last,
                              unsigned context, cx_arena *arena, const cx_chain_entry **out,
                              size_t *out_count, cx_err *err);
/* The number of the audit entry of a trace's verified primary row; `*out_found` false: it has no
 * such row, or no number. */
CX_RESULT cx_index_audit_number(cx_index *index, cx_str agent, cx_str trace_id, int64_t *out,
                                bool *out_found, cx_err *err);
/* Agents of verified primary rows, by name. */
CX_RESULT cx_index_agents(cx_index *index, cx_arena *arena, const cx_str **out, size_t *out_count,
                          cx_err *err);
/* A batch's correlation_metadata as JSON text, data NULL when it has none. CX_E_NOT_FOUND "NoBatch"
 * when there is no batch with this id. */
typedef struct cx_batch_found {
    cx_str correlation_metadata;
    uint64_t received, accepted, rejected;
} cx_batch_found;
CX_RESULT cx_index_batch(cx_index *index, cx_str batch_id, cx_arena *arena, cx_batch_found *out,
                         cx_err *err);
/* Wakeup traces (§8) of an agent, by time: all rows, verified or not. */
typedef struct cx_wakeup_row {
    cx_str trace_id, task_id, trace_type;
    int64_t timestamp_ns;
    bool verified;
    int8_t conscience_passed, action_success;
} cx_wakeup_row;
CX_RESULT cx_index_wakeups(cx_index *index, cx_str agent, cx_arena *arena,
                           const cx_wakeup_row **out, size_t *out_count, cx_err *err);
/* Alerts as JSON objects, newest first; `open_only` leaves resolved ones out. */
CX_RESULT cx_index_alerts(cx_index *index, bool open_only, uint32_t limit, cx_arena *arena,
                          const cx_json **out, size_t *out_count, cx_err *err);
/* Conflicting evidence of a trace. */
CX_RESULT cx_index_conflicts(cx_index *index, cx_str agent, cx_str trace_id, cx_arena *arena,
                             const cx_conflict_row **out, size_t *out_count, cx_err *err);

typedef struct cx_index_status {
    const char *engine;
    unsigned schema_version;
    cx_feed_position position;
    uint64_t trace_rows, unverified_rows, alert_rows;
    int64_t retained_ns;             /* as cx_index_retained */
    uint64_t bytes_used, bytes_file; /* of an index in a file; else 0 */
} cx_index_status;
CX_RESULT cx_index_get_status(cx_index *index, cx_index_status *out, cx_err *err);

#endif

/*
 * chain.h - the audit chain of an agent (trace.md §5).  Pure; thread-safe.
 */
#ifndef CX_ANALYSIS_CHAIN_H
#define CX_ANALYSIS_CHAIN_H

#include "base/api.h"

typedef enum cx_chain_profile { CX_CHAIN_AUTO, CX_CHAIN_SPEC_1_0, CX_CHAIN_AGENT } cx_chain_profile;
const char *cx_chain_profile_name(cx_chain_profile profile); /* "auto", "spec-1.0", "agent" */
bool cx_chain_profile_parse(cx_str text, cx_chain_profile *out);

/* The audit entry that an ACTION_RESULT states. */
typedef struct cx_chain_entry {
    int64_t seq;
    cx_digest hash;
    bool has_hash; /* else the text was absent or not 64 lower-case hex digits */
    cx_str action; /* action_executed; data NULL = absent */
    bool has_success, success;
    cx_str timestamp; /* of the component, verbatim */
    int64_t timestamp_ns;
    cx_str trace_id;
    uint64_t arrival; /* order of arrival, decides between equal times */
} cx_chain_entry;

typedef enum cx_chain_kind {
    CX_CHAIN_GAP,
    CX_CHAIN_DUPLICATE,
    CX_CHAIN_FORK,
    CX_CHAIN_REORDER,
    CX_CHAIN_MISMATCH,
    CX_CHAIN_UNCHECKED
} cx_chain_kind;
const char *cx_chain_kind_name(cx_chain_kind kind);

/* Sorted by (seq, kind).  Both records are named where there are two. */
typedef struct cx_chain_finding {
    cx_chain_kind kind;
    int64_t seq;
    int64_t next, missing; /* gap */
    cx_str trace_id,
        other_id; /* this record, and the previous one or the other one of the same number */
    cx_digest expected, found; /* mismatch, when one entry came before */
    bool has_expected;
} cx_chain_finding;

typedef struct cx_chain_report {
    cx_verdict verdict;
    cx_chain_profile profile; /* the one used: never auto */
    const cx_chain_finding *findings;
    size_t finding_count;
    uint64_t entry_count; /* a trace that was sent twice counts once */
    bool empty;
} cx_chain_report;

typedef struct cx_chain_options {
    cx_chain_profile profile;
    const cx_digest *genesis; /* previous hash of entry 0 or 1; NULL = empty string */
    /* The level of a trace left out the action: the ten actions of spec 1.0 are tried.  A hash that
     * one of them gives is a link like any other; otherwise the link is unchecked. */
    bool infer_actions;
} cx_chain_options;

/* hash of entry n from the text of the previous one (64 hex digits, or empty). */
void cx_chain_hash(cx_str previous_hex, cx_str action, bool success, cx_str timestamp,
                   cx_digest *out);
/* Entries in any order; they are not changed.  Memory from the arena. */
CX_RESULT cx_chain_check(const cx_chain_entry *entries, size_t count,
                         const cx_chain_options *options, cx_arena *arena, cx_chain_report *out,
                         cx_err *err);
/* {"agent":..,"verdict":..,"profile":..,"entries":N,"findings":[..]} and text. */
CX_RESULT cx_chain_json(cx_buf *out, cx_str agent, const cx_chain_report *report, cx_err *err);
CX_RESULT cx_chain_text(cx_buf *out, cx_str agent, const cx_chain_report *report, bool colour,
                        cx_err *err);

#endif

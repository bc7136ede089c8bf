/*
 * type.h - the vocabularies of memories, and the data of the nine memory types (ledger.md §4.1).
 *
 *     bytes   cx_data_decode  cx_data_encode       the canonical CBOR that a Version holds
 *     JSON    cx_data_from_json  cx_data_to_json   the same with readable member names
 *     rules   cx_data_check  cx_data_accept        what a caller may write
 *
 * Decoding checks the encoding only: it reads all texts and numbers that the encoder could have
 * written, because old records must stay readable.  cx_data_check decides what may be written. All
 * functions are pure and thread-safe.
 */
#ifndef CX_MEMORY_TYPE_H
#define CX_MEMORY_TYPE_H

#include "base/api.h"
#include "json/api.h"
#include "proof/api.h"

/* Names and codes of memory types and edge types are cx_uri_type_name, cx_uri_type_code,
 * cx_uri_edge_type_name, cx_uri_edge_type_code of proof/uri.h. */
typedef enum cx_type {
    CX_TYPE_IDENTITY = 1,
    CX_TYPE_FACT,
    CX_TYPE_PREFERENCE,
    CX_TYPE_BELIEF,
    CX_TYPE_EVENT,
    CX_TYPE_GOAL,
    CX_TYPE_CONSTRAINT,
    CX_TYPE_CAPABILITY,
    CX_TYPE_PATTERN
} cx_type;

typedef enum cx_edge_type {
    CX_EDGE_DERIVED_FROM = 1,
    CX_EDGE_SUPERSEDES,
    CX_EDGE_REFERENCES,
    CX_EDGE_CONTRADICTS,
    CX_EDGE_CORROBORATES,
    CX_EDGE_CONSENTS_TO,
    CX_EDGE_DISPATCHED_TO,
    CX_EDGE_ATTESTED_BY,
    CX_EDGE_CITED_IN,
    CX_EDGE_TOMBSTONES,
    CX_EDGE_PART_OF,
    CX_EDGE_INSTANCE_OF,
    CX_EDGE_CAUSED_BY,
    CX_EDGE_OBSERVED_BY
} cx_edge_type;

#define CX_VERB_MAX 10
#define CX_KIND_MAX 8

/* "find" (1) .. "delegate" (10); "service" (1) .. "capability" (8).  Empty for an unused code, 0
 * for an unknown name. */
cx_str cx_verb_name(uint8_t verb);
uint8_t cx_verb_code(cx_str name);
cx_str cx_kind_name(uint8_t kind);
uint8_t cx_kind_code(cx_str name);
/* "private", "scoped", "actor_public". */
cx_str cx_visibility_name(uint8_t visibility);
uint8_t cx_visibility_code(cx_str name);
/* user_input, derived, observed, imported. */
bool cx_source_ok(cx_str source);

void cx_tag_hash(cx_str tag, uint8_t out[8]);

/* --- the data -------------------------------------------------------------------------------- */

typedef struct cx_blobs {
    const cx_maybe_bytes *items;
    size_t count;
} cx_blobs;

/* A point in time that may be left out, in seconds. */
typedef struct cx_maybe_time {
    bool is_set;
    int64_t s;
} cx_maybe_time;

/* A duration that may be left out.  One of zero is a duration. */
typedef struct cx_maybe_duration {
    bool is_set;
    int64_t ns;
} cx_maybe_duration;

typedef struct cx_data_identity {
    cx_str name;
    cx_str did;
    cx_strs wallets;
    cx_strs roles;
    cx_blobs public_keys;
} cx_data_identity;

typedef struct cx_data_fact {
    cx_str statement;
    cx_str subject;
    cx_str predicate;
    cx_bytes object;
    cx_str source;
    cx_maybe_time as_of;
} cx_data_fact;

typedef struct cx_data_preference {
    cx_str topic;
    cx_maybe_bytes value;
    cx_str polarity;
    float strength;
    cx_str rationale;
} cx_data_preference;

typedef struct cx_data_belief {
    cx_str statement;
    cx_str subject;
    cx_str stance;
    cx_strs evidence_for;
    cx_strs evidence_against;
} cx_data_belief;

typedef struct cx_cost {
    bool is_set;
    cx_str asset;
    cx_str amount;
} cx_cost;

typedef struct cx_data_event {
    cx_str kind;
    cx_str intent_ref;
    cx_str counterparty;
    cx_str outcome;
    cx_cost cost;
    cx_maybe_duration duration;
    cx_strs artifacts;
    cx_str summary;
} cx_data_event;

typedef struct cx_goal_object {
    cx_str kind;
    cx_str ref;
    cx_bytes value;
} cx_goal_object;

typedef struct cx_goal_objects {
    const cx_goal_object *items;
    size_t count;
} cx_goal_objects;

typedef struct cx_goal_constraint {
    cx_str type;
    bool hard;
    cx_str statement;
    cx_bytes data;
} cx_goal_constraint;

typedef struct cx_goal_constraints {
    const cx_goal_constraint *items;
    size_t count;
} cx_goal_constraints;

typedef struct cx_goal_budget {
    bool is_set; /* an empty budget is left out, so it must not be set without a member */
    cx_str daily_max;
    cx_str total_max;
    int64_t intents_per_day;
    int64_t concurrent;
} cx_goal_budget;

typedef struct cx_data_goal {
    cx_str statement;
    cx_maybe_time horizon_end;
    cx_strs success_criteria;
    cx_str status;
    cx_strs subgoals;
    cx_str verb_hint;
    cx_goal_objects objects;
    cx_goal_constraints constraints;
    cx_goal_budget budget;
    bool persistent;
    cx_str created_by;
} cx_data_goal;

typedef struct cx_data_constraint {
    cx_str statement;
    cx_str polarity;
    cx_str trigger;
    cx_str strength;
    cx_str source;
} cx_data_constraint;

typedef struct cx_data_capability {
    cx_str subject;
    cx_str capability;
    cx_bytes parameters;
    bool verified;
    cx_maybe_time last_observed; /* always written: seconds or null */
} cx_data_capability;

typedef struct cx_data_pattern {
    cx_str statement;
    cx_strs derived_from;
    float strength;
    int64_t coverage;
} cx_data_pattern;

/* Data of any type; `type` (cx_type) says which member is set.  The schema is 1 in all that is
 * written today. */
typedef struct cx_data {
    uint8_t type;
    uint64_t schema;
    union {
        cx_data_identity identity;
        cx_data_fact fact;
        cx_data_preference preference;
        cx_data_belief belief;
        cx_data_event event;
        cx_data_goal goal;
        cx_data_constraint constraint;
        cx_data_capability capability;
        cx_data_pattern pattern;
    } as;
} cx_data;

/* Text must be valid UTF-8 and the type known (asserted). */
void cx_data_encode(const cx_data *data, cx_buf *out);
/* Strict: CX_E_FORMAT "NonCanonical" with the byte offset, "InvalidType" (CX_E_USAGE) for a type
 * that does not exist.  Borrows from the bytes; arrays come from the arena. */
CX_RESULT cx_data_decode(uint8_t type, cx_bytes bytes, cx_arena *arena, cx_data *out, cx_err *err);

/*
 * Checks that this may be written: schema 1, required texts not blank, strengths in 0..1 (so no
 * NaN), words from their lists.  CX_E_USAGE with tag "InvalidType", "FieldMissing" or
 * "InvalidArgument"; the message names the member.
 */
CX_RESULT cx_data_check(const cx_data *data, cx_err *err);
/*
 * Decodes and checks a caller's bytes: also "EmptyData" (no bytes at all), "NonCanonical", and
 * "TypeDataMismatch" (canonical CBOR, but not of this type).
 */
CX_RESULT cx_data_accept(uint8_t type, cx_bytes bytes, cx_arena *arena, cx_data *out, cx_err *err);

/*
 * From an object with the member names of §4.1; members left out, or null, are empty.  Times are
 * RFC 3339 text (fractions are cut off, towards the past) or integer seconds; bytes are text or
 * {"base64": "..."}; durations are integer nanoseconds or text as in 1m30s.  `schema` need not be
 * given.  CX_E_USAGE "InvalidType", "EmptyData" (an object without members), "TypeDataMismatch" (no
 * object, a member that the type does not have, or one of another kind).  Checks nothing else: see
 * cx_data_check.  Borrows from the JSON and the arena.
 */
CX_RESULT cx_data_from_json(uint8_t type, const cx_json *json, cx_arena *arena, cx_data *out,
                            cx_err *err);
/* Complete: cx_data_from_json gives the same data (except that floats that are not finite become
 * null).  Empty members are left out.  Borrows from the data. */
CX_RESULT cx_data_to_json(const cx_data *data, cx_arena *arena, cx_json *out, cx_err *err);

/* One member by its name, as comparable text, for Find's field comparisons: texts as they are,
 * numbers and booleans as in JSON, times as RFC 3339.  False when the type has no such member, or
 * it is left out, or is a list or bytes.  Appends. */
bool cx_data_member_text(const cx_data *data, cx_str name, cx_buf *out);

#endif

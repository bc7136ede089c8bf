/*
 * apply.h - the calls as JSON, one step for each call: for scripts, replays and test vectors.
 *
 *     {"op": "write", "now_ns": 1700000001500000000, "type": "Fact", "data": {...}, "tags": [..]}
 *
 * A step is an object with `op`, `now_ns` (the clock while it runs; absent = the real one) and the
 * call's members, either directly or in an object `args`.  Unknown members are refused.
 *
 *     write          type, data (§4.1 names) or data_cbor (hex), [id, actor_scope, visibility,
 *                    importance, tags, frames [{verb, kind, ref}], provenance {source,
 *                    derived_from, attestations, signed_by, signed_at, signature}, created_by,
 *                    confidence, expires_at, forms {short, medium}, blind, pinned]
 *     update         uri, data or data_cbor, [provenance, created_by, confidence, expires_at,
 *                    forms, blind]
 *     update_head    uri, [tags, frames, importance, visibility, if_head, by]
 *     tombstone      uri, [reason, by]
 *     add_edge       src, type, dst, [by, weight, data, blind]
 *     remove_edge    src, type, dst, [reason, by]
 *     embed          id, source_version, model, vector; or id, dim, [salt]: the test embedder
 *     compact        in_context, intent, step, [load_bearing, budget]
 *     attest         intent, outcome (success, failure), cited, [reason, by]
 *     raw            [kind, payload, committed, by]
 *     redact         seq, [reason, by]
 *     redact_memory  uri, [reason, by]
 *     snapshot       [trigger]
 *     drop_snapshot  seq, [by]
 *
 * Ids are 32 hex digits or ULIDs; bytes (data, payload, signature) are hex; types, verbs, kinds and
 * visibilities are names or numbers; times are seconds or RFC 3339.
 */
#ifndef CX_MEMORY_APPLY_H
#define CX_MEMORY_APPLY_H

#include "json/api.h"
#include "memory/memory.h"

typedef struct cx_apply cx_apply;

/* `options` as for cx_memory_open; its clock is used for a step without `now_ns`. */
CX_RESULT cx_apply_open(cx_home *home, cx_str actor, const cx_memory_options *options,
                        cx_apply **out, cx_err *err);
void cx_apply_close(cx_apply *apply);

typedef struct cx_applied_step {
    bool refused; /* refused by the call: `reason` says why; nothing was changed */
    cx_err reason;
    bool has_uri; /* write, update */
    cx_str uri;   /* in the arena */
    bool wrote;   /* entries were written */
    uint64_t seq; /* of the last one */
    bool has_number;
    uint64_t number; /* snapshot */
} cx_applied_step;

/*
 * Applies one step.  A refused call is a result; a malformed step (CX_E_USAGE "BadStep", which
 * names the member) and a ledger that cannot be written are errors.
 */
CX_RESULT cx_apply_step(cx_apply *apply, const cx_json *step, cx_arena *arena, cx_applied_step *out,
                        cx_err *err);

#endif

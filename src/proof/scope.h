/*
 * scope.h - what one agent lets another read: a signed statement over a pinned snapshot (ledger.md
 * §10.3).
 *
 *     grantor   fill a cx_scope, cx_scope_to_sign, sign elsewhere, set signature, cx_scope_encode
 *     grantee   shows the bytes; cx_scope_verify turns them into a cx_scope_use
 *     reads     cx_scope_use_allows for each memory
 *
 * A scope that is wrong is a finding (broken, with the reason's name), never an error.
 */
#ifndef CX_PROOF_SCOPE_H
#define CX_PROOF_SCOPE_H

#include "proof/proof.h"

#define CX_SCOPE_SCHEMA 1
#define CX_SCOPE_BYTES_MAX CX_PROOF_BYTES_MAX

/* Matches a memory when any of its types, tags, ids or its frame does; an empty one nothing. */
typedef struct cx_selector {
    cx_bytes types; /* a byte a type */
    cx_strs tags;
    const cx_id *ids;
    size_t id_count;
    bool has_frame; /* a frame with this verb and one of these objects */
    uint8_t verb;
    const cx_id *objects; /* obj_hash of references */
    size_t object_count;
    bool objects_null; /* absent, which is not the same bytes as empty; neither matches */
} cx_selector;

typedef struct cx_scope {
    uint64_t schema;
    cx_str actor;
    cx_digest snapshot_hash; /* OverallRoot of the pinned snapshot */
    cx_selector include;
    cx_selector exclude;
    cx_bytes multiproof; /* canonical CBOR of the proof of include.ids; empty = none */
    bool expires;
    int64_t expires_at;     /* seconds; that whole second is still good */
    uint64_t budget_tokens; /* 0 = none */
    cx_str granted_by;
    cx_str granted_to;
    bool writable;
    cx_maybe_bytes signature; /* null = not signed */
} cx_scope;

/* multiproof must be canonical CBOR, as it is put in as it stands. */
void cx_scope_encode(const cx_scope *scope, cx_buf *out);
/* The bytes to sign: with field 11 null. */
void cx_scope_to_sign(const cx_scope *scope, cx_buf *out);
/* Strict; CX_E_FORMAT "NonCanonical" with the byte offset.  Borrows from the bytes. */
CX_RESULT cx_scope_decode(cx_bytes bytes, cx_arena *arena, cx_scope *out, cx_err *err);

typedef struct cx_scope_check {
    cx_str actor;   /* whose memories these are */
    int64_t now_ns; /* of the injected clock */
    /* The public key of an agent; NULL = "NoKeyResolver" (indeterminate). */
    cx_status (*key)(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err);
    void *key_arg;
    /* The manifest's bytes of the retained snapshot with that OverallRoot; they must live as long
     * as the arena. */
    cx_status (*snapshot)(void *arg, const cx_digest *overall_root, cx_bytes *out_manifest,
                          bool *out_found, cx_err *err);
    void *snapshot_arg;
    bool has_presenter; /* compare `presenter` with granted_to */
    cx_str presenter;
    uint64_t tokens; /* about to be spent; compared with the budget when there is one */
} cx_scope_check;

/* An id of a selector and its place there. */
typedef struct cx_scope_id {
    cx_id id;
    size_t index;
} cx_scope_id;

/* A scope that was verified, with what its reads need.  Made only by cx_scope_verify. */
typedef struct cx_scope_use {
    cx_scope scope;
    cx_manifest manifest;            /* of the pinned snapshot */
    cx_bytes manifest_bytes;         /* canonical */
    cx_multiproof proof;             /* count 0 without ids; leaves in cortex-1, no siblings */
    const cx_scope_id *included_ids; /* of scope.include, sorted by id */
    const cx_scope_id *excluded_ids;
} cx_scope_use;

/*
 * First failure wins: NonCanonical, SchemaVersion, NoKeyResolver, ActorMismatch, EmptyInclude,
 * ScopeExpired, UnknownAgent, SignatureInvalid, SnapshotUnresolved, ProofMismatch, NotGrantee,
 * BudgetExceeded.  *out is written only when it holds; it borrows from the bytes and the arena.
 * Errors are those of the callbacks, and CX_E_NOMEM.
 */
CX_RESULT cx_scope_verify(cx_bytes scope, const cx_scope_check *check, cx_arena *arena,
                          cx_scope_use *out, cx_finding *out_finding, cx_err *err);

/* Whether `key` signed it. */
CX_RESULT cx_scope_signed_by(const cx_scope *scope, const cx_pubkey *key, const cx_alloc *alloc,
                             bool *out, cx_err *err);
/* Whether the proof's keys are those of include.ids, in their order: NULL when they are, else why
 * not (static storage), with *out_index the first that is not, or SIZE_MAX. */
const char *cx_scope_ids_fault(const cx_scope *scope, const cx_multiproof *proof,
                               size_t *out_index);

bool cx_selector_is_empty(const cx_selector *selector);
bool cx_selector_matches(const cx_selector *selector, const cx_head *head);
/* include matches and exclude does not. */
bool cx_scope_use_allows(const cx_scope_use *granted, const cx_head *head);
/* The record proven for an id of include.ids, or empty: not among them, erased, or matrix-1. */
cx_bytes cx_granted_leaf(const cx_scope_use *granted, const cx_id *id);

#endif

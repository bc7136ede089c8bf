/*
 * memory.h - an actor's typed memories and the edges between them: the calls of ledger.md §10.
 *
 * Invariants (cited by tests and asserts):
 *
 *   M1  Every call that writes runs in the actor's write transaction: what it reads cannot change
 *       before it commits.
 *   M2  A call that fails changes nothing, except that the violation of a scope is journaled.
 *   M3  The clock is read at most once in a call, and only when the call needs it.
 *   M4  All text is valid UTF-8; text that is not is refused.
 *
 * Errors carry the format's reason names as tags ("VersionConflict", ..).  Thread-safe.
 */
#ifndef CX_MEMORY_MEMORY_H
#define CX_MEMORY_MEMORY_H

#include "ledger/api.h"
#include "proof/api.h"
#include "memory/near.h"
#include "memory/salience.h"
#include "memory/type.h"
#include "memory/uri.h"

/* The limit of a memory's or an edge's data. */
#define CX_MEMORY_DATA_SIZE_MAX (UINT32_C(16) << 20)
#define CX_MEMORY_BY_SIZE_MAX 1024
#define CX_CITED_MAX 256
#define CX_FIND_LIMIT_MAX 1000
#define CX_CONTEXT_BUDGET_MAX 1000000
#define CX_COMPACT_BUDGET 4000
#define CX_COMPACT_URIS_MAX 4096

/* The rows that this module derives: idx/, salience/, meta/salience_weights.  For cx_home_options.
 */
extern const cx_deriver cx_memory_deriver;

typedef struct cx_memory cx_memory;

/*
 * A call that its sender names by a key of its own is carried out once: the entry `memory.request`,
 * in the same commit, keeps the key's hash and the result.  The same key and content again fail
 * with CX_E_EXISTS "Repeated", which sets `repeated` and the result of the first time; the same key
 * with other content fails with CX_E_CONFLICT "KeyReused".
 */
#define CX_REQUEST_KEY_SIZE_MAX 256
typedef struct cx_memory_request {
    /* The scope that the call is made under, and its hash, which the entry names; NULL = none.
     * New memories, new versions and labels are written under a scope, and nothing else is. */
    const cx_scope_use *scope;
    cx_digest grant;
    cx_str sender; /* keys of different senders are different keys */
    cx_str key;    /* empty = none: only the result is filled in */
    cx_digest content;
    /* The result: */
    bool repeated;
    bool wrote; /* entries: the first one is `seq` */
    uint64_t seq;
    bool has_uri; /* of a memory that was written */
    cx_uri uri;
    uint64_t used; /* memories that an attestation cites */
} cx_memory_request;

typedef struct cx_memory_options {
    const cx_alloc *alloc; /* NULL = default */
    /* NULL = the wall clock of the home's cx_io.  Called inside the transaction, and by readers. */
    int64_t (*now_ns)(void *arg);
    void *now_arg;
    cx_status (*new_id)(void *arg, cx_id *out, cx_err *err); /* NULL = ULIDs */
    void *new_id_arg;
    bool has_scheme; /* a new actor is created with `scheme`, not the data directory's */
    cx_scheme scheme;
    /* What the one call that writes through this object is carried out for; NULL = none */
    cx_memory_request *request;
    /* Called while a search ranks many memories, with how many it has looked at; may be NULL. */
    void (*looked)(void *arg, uint64_t count);
    void *looked_arg;
    size_t ranked_max; /* so many ranked memories are in memory at once; 0 = 65,536 */
} cx_memory_options;

/* Opens an actor's memories in a data directory, which must outlive it.  The actor may be new;
 * `options` may be NULL. */
CX_RESULT cx_memory_open(cx_home *home, cx_str actor, const cx_memory_options *options,
                         cx_memory **out, cx_err *err);
void cx_memory_close(cx_memory *memory); /* NULL is fine */

/* --- writing --------------------------------------------------------------------------------- */

typedef struct cx_memory_write {
    uint8_t type;
    cx_bytes data;      /* canonical CBOR of the type's data */
    const cx_id *id;    /* NULL = new */
    cx_str actor_scope; /* empty = the actor */
    uint8_t visibility; /* 0 = private */
    uint8_t importance;
    const cx_str *tags;
    size_t tag_count;
    const cx_frame *frames;
    size_t frame_count;
    cx_provenance provenance; /* source empty = user_input */
    cx_str created_by;        /* empty = the actor */
    float confidence;         /* 0 = 1 */
    bool expires;
    int64_t expires_at;    /* seconds */
    const cx_forms *forms; /* given by the caller; NULL = rendered */
    bool blind;            /* salt the records: for texts that can be guessed */
    bool pinned;           /* its salience stays at least .7 */
    /* The scope that the caller acts under; NULL = the owner.  The memory must be one that it
     * allows, by type, tag or frame; `created_by` is then its grantee. */
    const cx_scope_use *scope;
} cx_memory_write;

/* A cortex URI among provenance.derived_from must exist: DanglingReference. */
CX_RESULT cx_memory_write_new(cx_memory *memory, const cx_memory_write *write, cx_uri *out_uri,
                              cx_err *err);

typedef struct cx_memory_update {
    cx_bytes data;
    cx_provenance provenance;
    cx_str created_by;
    float confidence;
    bool expires;
    int64_t expires_at;
    const cx_forms *forms;
    bool blind;                /* a memory that was blinded stays so */
    const cx_scope_use *scope; /* as in cx_memory_write */
} cx_memory_update;

/* Compare-and-set: the URI's version must be the current one. */
CX_RESULT cx_memory_update_at(cx_memory *memory, const cx_uri *uri, const cx_memory_update *update,
                              cx_uri *out_uri, cx_err *err);

typedef struct cx_head_patch {
    bool set_tags, set_frames, set_importance, set_visibility;
    const cx_str *tags;
    size_t tag_count;
    const cx_frame *frames;
    size_t frame_count;
    uint8_t importance;
    uint8_t visibility;
    const cx_digest *if_head;  /* expected H(Head CBOR); NULL = any */
    const cx_scope_use *scope; /* the scope the caller acts under; NULL = the owner */
    cx_str by;                 /* empty = granted_to of the scope, or the actor */
} cx_head_patch;

/* Under a scope nothing about the memory is revealed unless the scope allows it. */
CX_RESULT cx_memory_update_head(cx_memory *memory, const cx_uri *uri, const cx_head_patch *patch,
                                cx_err *err);
/* The second call succeeds and writes nothing. */
CX_RESULT cx_memory_tombstone(cx_memory *memory, const cx_uri *uri, cx_str reason, cx_str by,
                              cx_err *err);

typedef struct cx_edge_name {
    cx_id src;
    uint8_t type;
    cx_id dst;
} cx_edge_name;

/* *out_written: an entry was written; false: nothing had to change. */
CX_RESULT cx_memory_add_edge(cx_memory *memory, const cx_edge_name *name, cx_str by, float weight,
                             cx_bytes data, bool blind, bool *out_written, cx_err *err);
CX_RESULT cx_memory_remove_edge(cx_memory *memory, const cx_edge_name *name, cx_str reason,
                                cx_str by, bool *out_written, cx_err *err);

CX_RESULT cx_memory_embed(cx_memory *memory, const cx_id *id, uint64_t source_version, cx_str model,
                          const float *values, size_t dim, cx_err *err);

typedef struct cx_memory_compact {
    const cx_uri *in_context;
    size_t in_context_count;
    const cx_uri *load_bearing;
    size_t load_bearing_count;
    uint64_t budget; /* 0 = CX_COMPACT_BUDGET */
    cx_str intent;
    cx_str step;
} cx_memory_compact;
/*
 * Keeps load_bearing and, of in_context, Identity, hard Constraint and active Goal; in the order of
 * in_context, then those that only load_bearing names.  Tombstoned memories are dropped (refused
 * when in_context names no others), duplicates count once.  The record lives in the arena.
 */
CX_RESULT cx_memory_compact_context(cx_memory *memory, const cx_memory_compact *compact,
                                    cx_arena *arena, cx_checkpoint_record *out, cx_err *err);

typedef struct cx_memory_attest {
    cx_str intent;
    uint8_t outcome; /* 0 success, 1 failure */
    cx_str reason;
    const cx_str *cited; /* URIs as given; unusable ones are skipped */
    size_t cited_count;
    cx_str by; /* empty = the actor */
} cx_memory_attest;
typedef struct cx_memory_attested {
    uint64_t seq; /* of `attest`; `learn_weights` is the next */
    size_t used;  /* of the cited memories */
    bool learned; /* the weights changed */
} cx_memory_attested;
/* Weights change unless nothing usable is cited (§10.1), whatever delta is.  `out` may be NULL. */
CX_RESULT cx_memory_attest_outcome(cx_memory *memory, const cx_memory_attest *attest,
                                   cx_memory_attested *out, cx_err *err);

/* An opaque entry of kind `raw` or a dotted kind; `committed` payloads can be erased. */
CX_RESULT cx_memory_raw(cx_memory *memory, cx_str kind, cx_bytes payload, bool committed, cx_str by,
                        uint64_t *out_seq, cx_err *err);
/* Redact: the payload of a committed entry is destroyed.  NotCommitted, AlreadyRedacted. */
CX_RESULT cx_memory_redact(cx_memory *memory, uint64_t seq, cx_str reason, cx_str by, cx_err *err);
/* One of what cx_memory_redact_many destroys. */
typedef struct cx_memory_target {
    bool is_memory;
    uint64_t seq; /* of an entry with a committed payload */
    cx_id id;     /* of a memory */
} cx_memory_target;
/* The first of these holds that keeps a memory, or NULL; of a memory that is there. */
CX_RESULT cx_memory_hold_of(cx_memory *memory, const cx_id *id, const cx_holds *holds,
                            cx_arena *arena, const cx_hold **out, cx_err *err);
/* Redact and RedactMemory of many in one commit.  What is erased already is skipped; *out_held: how
 * many a legal hold keeps.  Nothing is destroyed before cx_home_erase, which the caller calls once
 * after the last of them. */
CX_RESULT cx_memory_redact_many(cx_memory *memory, const cx_memory_target *targets, size_t count,
                                cx_str reason, cx_str by, size_t *out_held, cx_err *err);
/* Destroys every text of the memory; a tombstone and the versions' hashes are left.  A second call
 * succeeds and writes nothing. */
CX_RESULT cx_memory_redact_memory(cx_memory *memory, const cx_uri *uri, cx_str reason, cx_str by,
                                  cx_err *err);

/* --- reading --------------------------------------------------------------------------------- */

typedef struct cx_memory_view {
    cx_uri uri; /* with the version shown */
    cx_head head;
    cx_version_record version; /* `erased` when the memory was redacted */
    cx_bytes head_bytes;       /* canonical */
    bool expired;              /* it has expired */
} cx_memory_view;

/* Exactly that version; memory from the arena.  NotFound, TypeMismatch. */
CX_RESULT cx_memory_resolve(cx_memory *memory, const cx_uri *uri, cx_arena *arena,
                            cx_memory_view *out, cx_err *err);
CX_RESULT cx_memory_resolve_latest(cx_memory *memory, const cx_id *id, cx_arena *arena,
                                   cx_memory_view *out, cx_err *err);
/* Reads as a grantee: the pinned snapshot's record, whose bytes are the proven leaf; journals
 * violations. ScopeExpired, ScopeViolation, NotFound (also for a memory newer than the snapshot).
 */
CX_RESULT cx_memory_resolve_scoped(cx_memory *memory, const cx_uri *uri, const cx_scope_use *scope,
                                   cx_arena *arena, cx_memory_view *out, cx_err *err);

typedef struct cx_edge_view {
    cx_edge edge;
    cx_bytes bytes;
} cx_edge_view;
/* Edges from (or to) a memory, removed ones on request; type 0 = all. */
CX_RESULT cx_memory_edges(cx_memory *memory, const cx_id *id, bool to, uint8_t type,
                          bool with_removed, size_t limit, cx_arena *arena,
                          const cx_edge_view **out, size_t *out_count, cx_err *err);

/* Find must be bounded: at least one of types, tags, text, from, near; and a limit or a budget. */
typedef struct cx_memory_find {
    cx_str
        text; /* all of its words are in the memory; "word*": one that begins with it (words.h) */
    cx_bytes types;     /* one byte for each type */
    const cx_str *tags; /* all of them */
    size_t tag_count;
    uint8_t frame_verb; /* 0 = none */
    cx_str frame_ref;
    const cx_id *from; /* live edges from this memory .. */
    uint8_t follow;    /* .. of this type, 0 = any */
    const float *near; /* most similar (cosine) first; vectors of other sizes are left out */
    size_t near_dim;
    cx_str field;       /* a member of the type's data, as text .. */
    cx_str field_op;    /* .. "=", "!=", "<", "<=", ">", ">=", "contains" .. */
    cx_str field_value; /* .. this; numbers on both sides are compared as numbers */
    size_t limit;       /* 1 .. CX_FIND_LIMIT_MAX; 0 = none, then a budget is needed */
    /* tokens of medium forms; 0 = none.  A memory that does not fit is skipped */
    uint64_t budget_tokens;
    bool with_tombstoned;
    bool with_expired;
    bool late_binding;         /* journals find_late */
    cx_str predicate;          /* of find_late */
    const cx_scope_use *scope; /* filters silently: records of the pinned snapshot */
} cx_memory_find;

typedef struct cx_memory_hit {
    cx_memory_view view;
    float salience;
    float similarity; /* with near */
} cx_memory_hit;
CX_RESULT cx_memory_find_all(cx_memory *memory, const cx_memory_find *find, cx_arena *arena,
                             const cx_memory_hit **out, size_t *out_count, cx_err *err);

/*
 * Identity, hard constraints, active goals, then facts by salience, within a budget of tokens of
 * medium forms.  If the first three do not fit the budget: BudgetUnreachable.
 */
CX_RESULT cx_memory_context(cx_memory *memory, uint64_t budget_tokens, const cx_scope_use *scope,
                            cx_arena *arena, const cx_memory_hit **out, size_t *out_count,
                            cx_err *err);

typedef struct cx_memory_step {
    cx_id id;
    unsigned depth;
    cx_id reached_from;
    uint8_t by_type; /* edge type; 0 at the start */
} cx_memory_step;
#define CX_WALK_DEPTH_MAX 8
#define CX_WALK_NODES_MAX 10000
/* Breadth-first over live edges; *out_cut: a bound was reached and there is more. */
CX_RESULT cx_memory_walk(cx_memory *memory, const cx_id *start, unsigned depth_max, bool backwards,
                         cx_arena *arena, const cx_memory_step **out, size_t *out_count,
                         bool *out_cut, cx_err *err);

/* All live (or all) memories of a type (0 = any) by id, starting after `after` (NULL = the first).
 */
CX_RESULT cx_memory_list(cx_memory *memory, uint8_t type, bool with_tombstoned, const cx_id *after,
                         size_t limit, cx_arena *arena, const cx_memory_view **out,
                         size_t *out_count, cx_err *err);
/* The salience record, and the current score.  NotFound. */
CX_RESULT cx_memory_salience_of(cx_memory *memory, const cx_id *id, cx_salience *out,
                                float *out_cold, cx_err *err);
CX_RESULT cx_memory_weights_now(cx_memory *memory, cx_weights_record *out, cx_err *err);

#endif

/*
 * entry.h - the bytes of journal entries and of their payloads (ledger.md §3).
 *
 * Encoders append to a buffer; decoders are strict (CX_E_FORMAT "NonCanonical" with byte offset)
 * and borrow text and bytes from the input.  encode(decode(x)) == x for every x that decodes.
 */
#ifndef CX_PROOF_ENTRY_H
#define CX_PROOF_ENTRY_H

#include "base/api.h"

#define CX_ENTRY_MAX (UINT32_C(16) << 20)        /* bytes of an entry */
#define CX_ENTRY_PAYLOAD_MAX (UINT32_C(1) << 20) /* inline; longer ones are committed */
#define CX_ENTRY_KIND_MAX 64
#define CX_ENTRY_CREATED_BY_MAX 1024

typedef struct cx_id {
    uint8_t bytes[16];
} cx_id;

typedef struct cx_entry {
    uint64_t seq;
    cx_str kind;
    int64_t created_at_ns;
    cx_bytes created_by; /* empty = left out */
    cx_bytes payload;    /* inline; empty = left out */
    bool committed;      /* the next two instead of an inline payload */
    cx_digest commitment;
    uint64_t payload_size; /* 0 = left out */
} cx_entry;

/* [a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*, 1..64 bytes. */
bool cx_entry_kind_ok(cx_str kind);
void cx_entry_encode(const cx_entry *entry, cx_buf *out);
CX_RESULT cx_entry_decode(cx_bytes bytes, cx_entry *out, cx_err *err);

/* The kinds of this document.  Dotted kinds and `raw` have opaque payloads. */
typedef enum cx_entry_kind {
    CX_ENTRY_RAW,
    CX_ENTRY_WRITE,
    CX_ENTRY_UPDATE,
    CX_ENTRY_TOMBSTONE,
    CX_ENTRY_ADD_EDGE,
    CX_ENTRY_REMOVE_EDGE,
    CX_ENTRY_UPDATE_HEAD,
    CX_ENTRY_EMBED,
    CX_ENTRY_COMPACT,
    CX_ENTRY_ATTEST,
    CX_ENTRY_LEARN_WEIGHTS,
    CX_ENTRY_FIND_LATE,
    CX_ENTRY_SCOPE_VIOLATION,
    CX_ENTRY_GC,
    CX_ENTRY_MIGRATION,
    CX_ENTRY_SEAL,
    CX_ENTRY_DROP_SNAPSHOT,
    CX_ENTRY_REDACT,
    CX_ENTRY_REDACT_MEMORY,
    CX_ENTRY_OTHER /* a dotted kind, or one this build does not know */
} cx_entry_kind;

cx_str cx_entry_kind_name(cx_entry_kind kind); /* "raw", "write", ...; empty for OTHER */
cx_entry_kind cx_entry_kind_of(cx_str name);

/* --- payloads, one struct a kind ------------------------------------------------------------- */

/* A byte string or array that may be null, which is not the same as empty. */
typedef struct cx_maybe_bytes {
    bool null;
    cx_bytes bytes;
} cx_maybe_bytes;

typedef struct cx_payload_write { /* write, update */
    cx_id id;
    uint64_t version;
    uint8_t type;
    cx_digest version_hash;
} cx_payload_write;

typedef struct cx_payload_edge { /* add_edge, remove_edge */
    uint8_t type;
    cx_id src;
    cx_id dst;
    float weight; /* +0 = left out */
    /* remove_edge only: */
    bool tombstoned;
    cx_str reason;
    cx_str by;
} cx_payload_edge;

typedef struct cx_payload_update_head {
    cx_id id;
    uint64_t version;
    cx_digest head_hash;
} cx_payload_update_head;

typedef struct cx_payload_embed {
    cx_id id;
    uint64_t vertex;
    cx_str model;
    uint64_t dim;
    cx_digest vector_hash;
    uint64_t source_version;
} cx_payload_embed;

typedef struct cx_payload_compact {
    cx_str intent;
    cx_str step;
    uint64_t budget;
    uint64_t kept;
    uint64_t compacted;
    cx_digest record_hash;
} cx_payload_compact;

typedef struct cx_payload_attest {
    cx_str intent;
    uint8_t outcome; /* 0 success, 1 failure */
    cx_str reason;
    const cx_id *cited;
    size_t cited_count;
} cx_payload_attest;

/* Recency, access, citations, declared importance, vector: in this order everywhere. */
typedef struct cx_weights {
    float r, a, c, d, v;
} cx_weights;

typedef struct cx_payload_learn_weights {
    uint64_t source_seq;
    float alpha;
    bool decrement;
    bool skipped;
    cx_weights previous;
    cx_weights now;
} cx_payload_learn_weights;

typedef struct cx_payload_find_late {
    cx_str predicate;
    cx_bytes types;
    int64_t limit;
    int64_t result_count;
    const cx_str *tags;
    size_t tag_count;
    const cx_id *ids;
    size_t id_count;
} cx_payload_find_late;

typedef struct cx_payload_scope_violation {
    cx_str granted_to;
    cx_str granted_by;
    cx_id id;
    cx_str reason; /* "violation", "not_writable" */
    cx_str mode;   /* "read", "write", or empty */
} cx_payload_scope_violation;

typedef struct cx_payload_seal {
    uint64_t snapshot_seq;
    cx_digest manifest_digest;
    cx_digest overall_root;
    cx_str signed_by;
    cx_bytes signature;
} cx_payload_seal;

typedef struct cx_payload_drop_snapshot {
    uint64_t snapshot_seq;
    cx_digest manifest_digest;
} cx_payload_drop_snapshot;

typedef struct cx_payload_redact {
    uint64_t target_seq;
    cx_digest commitment;
    cx_str reason;
} cx_payload_redact;

typedef struct cx_payload_redact_memory {
    cx_id id;
    uint64_t versions_erased;
    cx_digest head_hash;
    cx_str reason;
} cx_payload_redact_memory;

/* A payload of any kind; `kind` says which member is set (tombstone: `id`). */
typedef struct cx_payload {
    cx_entry_kind kind;
    union {
        cx_bytes raw; /* raw, other, gc, migration */
        cx_id id;     /* tombstone: 16 bare bytes */
        cx_payload_write write;
        cx_payload_edge edge;
        cx_payload_update_head update_head;
        cx_payload_embed embed;
        cx_payload_compact compact;
        cx_payload_attest attest;
        cx_payload_learn_weights learn_weights;
        cx_payload_find_late find_late;
        cx_payload_scope_violation scope_violation;
        cx_payload_seal seal;
        cx_payload_drop_snapshot drop_snapshot;
        cx_payload_redact redact;
        cx_payload_redact_memory redact_memory;
    } as;
} cx_payload;

void cx_payload_encode(const cx_payload *payload, cx_buf *out);
/* Arrays come from the arena. */
CX_RESULT cx_payload_decode(cx_entry_kind kind, cx_bytes bytes, cx_arena *arena, cx_payload *out,
                            cx_err *err);

#endif

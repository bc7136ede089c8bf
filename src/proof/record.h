/*
 * record.h - the bytes of the records a journal explains: Head, Version, Edge, Vector, checkpoint
 * record, salience, weights, manifest (ledger.md §4, §9, §10.1).
 *
 * Encoders append to a buffer; decoders are strict (CX_E_FORMAT "NonCanonical" with byte offset),
 * borrow text and bytes from the input and take arrays from an arena.  encode(decode(x)) == x.
 * Null and empty byte strings are different values and both are kept.  Times are seconds unless the
 * name says ns.
 */
#ifndef CX_PROOF_RECORD_H
#define CX_PROOF_RECORD_H

#include "proof/entry.h"
#include "tree/api.h"

/* Memory types and edge types (§4.1); names in memory/type.h. */
#define CX_TYPE_MIN 1
#define CX_TYPE_MAX 9
#define CX_EDGE_TYPE_MIN 1
#define CX_EDGE_TYPE_MAX 14
#define CX_IMPORTANCE_MAX 10
#define CX_TAGS_MAX 16
#define CX_TAG_SIZE_MAX 64
#define CX_FRAMES_MAX 16
#define CX_REF_SIZE_MAX 256
#define CX_DERIVED_FROM_MAX 64
#define CX_REASON_SIZE_MAX 4096

typedef enum cx_visibility {
    CX_VISIBILITY_PRIVATE = 1,
    CX_VISIBILITY_SCOPED = 2,
    CX_VISIBILITY_ACTOR_PUBLIC = 3
} cx_visibility;

typedef struct cx_forms {
    cx_str brief; /* "short" in the format */
    cx_str medium;
} cx_forms;

typedef struct cx_frame { /* a typed reference inside a Head, not a frame of the log */
    uint8_t verb;
    uint8_t kind;
    cx_str ref;
} cx_frame;

typedef struct cx_head {
    cx_id id;
    uint8_t type;
    uint64_t current_version;
    cx_str actor_scope;
    uint8_t visibility;
    uint8_t importance;
    const cx_str *tags;
    size_t tag_count;
    bool tombstoned;
    cx_str tombstone_reason;
    int64_t tombstoned_at;
    cx_str tombstoned_by;
    int64_t last_updated_at;
    bool last_updated_null; /* "no time" */
    bool embedded;
    uint64_t vertex;
    cx_str model;
    uint64_t dim;
    bool stale;
    cx_forms forms;
    const cx_frame *frames;
    size_t frame_count;
    bool blinded;
    cx_id blind;
} cx_head;

typedef struct cx_provenance {
    cx_str source; /* user_input derived observed imported */
    const cx_str *derived_from;
    size_t derived_count;
    const cx_str *attestations;
    size_t attestation_count;
    cx_bytes signed_by; /* a key, as bytes */
    bool has_signed_at;
    int64_t signed_at;
    cx_bytes signature;
} cx_provenance;

typedef struct cx_version_record {
    cx_id id;
    uint64_t version;
    uint8_t type;
    cx_maybe_bytes data;
    int64_t created_at;
    bool created_at_null;
    cx_str created_by;
    bool expires;
    int64_t expires_at;
    float confidence;
    cx_provenance provenance;
    cx_forms forms;
    bool forms_override;
    cx_digest hash;
    bool blinded;
    cx_id blind;
    bool erased; /* the stub that RedactMemory leaves: id, version, type, hash only */
} cx_version_record;

typedef struct cx_edge {
    uint8_t type;
    cx_id src;
    cx_id dst;
    int64_t created_at;
    bool created_at_null;
    cx_str created_by;
    float weight;
    bool tombstoned;
    int64_t tombstoned_at;
    bool has_tombstoned_at;
    cx_str reason;
    cx_str by;
    cx_bytes data;
    bool blinded;
    cx_id blind;
} cx_edge;

typedef struct cx_vector {
    uint64_t vertex;
    cx_str model;
    uint64_t dim;
    const float *values; /* dim of them */
    uint64_t source_version;
    int64_t embedded_at;
    bool embedded_at_null;
    cx_digest hash;
} cx_vector;

typedef struct cx_compacted {
    cx_str uri;
    cx_str brief;
    float salience;
} cx_compacted;

typedef struct cx_checkpoint_record {
    cx_str intent;
    cx_str step;
    int64_t created_ns;
    uint64_t budget;
    const cx_str *kept;
    size_t kept_count;
    bool kept_null;
    const cx_compacted *compacted;
    size_t compacted_count;
    bool compacted_null;
} cx_checkpoint_record;

typedef struct cx_salience {
    int64_t last_used_ns;
    uint64_t access;
    uint64_t citations;
    uint8_t importance;
    bool pinned;
    float cached;
    int64_t computed_at_ns;
} cx_salience;

typedef struct cx_weights_record {
    cx_weights weights;
    int64_t updated_at_ns; /* 0 = left out */
    uint64_t updates;
} cx_weights_record;

typedef struct cx_manifest {
    cx_scheme scheme; /* schema 2 + field 12, or schema 1 */
    cx_str actor;
    uint64_t snapshot_seq;
    uint64_t journal_size;
    cx_digest journal_root;
    bool state_roots_null;
    bool has_edges, has_memories; /* matrix-1 may hold fewer namespaces */
    cx_digest edges_root;
    cx_digest memories_root;
    cx_digest overall_root;
    int64_t created_ns;
    cx_str trigger;
    cx_str signed_by;
    cx_maybe_bytes signature; /* null = left out */
    uint64_t live_memories;
    uint64_t edge_count; /* removed ones included */
    uint64_t tombstoned;
} cx_manifest;

typedef struct cx_strs {
    const cx_str *items;
    size_t count;
} cx_strs;

/* What a reference is called in keys and selectors: the first 16 bytes of its SHA-256. */
cx_id cx_obj_hash(cx_str ref);

void cx_head_encode(const cx_head *head, cx_buf *out);
CX_RESULT cx_head_decode(cx_bytes bytes, cx_arena *arena, cx_head *out, cx_err *err);
/* Encodes as is; field 12 is `hash`. */
void cx_version_encode(const cx_version_record *version, cx_buf *out);
CX_RESULT cx_version_decode(cx_bytes bytes, cx_arena *arena, cx_version_record *out, cx_err *err);
/* H("matrix.cortex.memory.v1" ‖ type ‖ CBOR with a zero hash); needs memory for the encoding. */
CX_RESULT cx_version_hash(const cx_version_record *version, const cx_alloc *alloc, cx_digest *out,
                          cx_err *err);
void cx_edge_encode(const cx_edge *edge, cx_buf *out);
CX_RESULT cx_edge_decode(cx_bytes bytes, cx_arena *arena, cx_edge *out, cx_err *err);
void cx_vector_encode(const cx_vector *vector, cx_buf *out);
CX_RESULT cx_vector_decode(cx_bytes bytes, cx_arena *arena, cx_vector *out, cx_err *err);
cx_digest cx_vector_hash(const float *values, size_t count);
void cx_checkpoint_record_encode(const cx_checkpoint_record *record, cx_buf *out);
CX_RESULT cx_checkpoint_record_decode(cx_bytes bytes, cx_arena *arena, cx_checkpoint_record *out,
                                      cx_err *err);
void cx_salience_encode(const cx_salience *salience, cx_buf *out);
CX_RESULT cx_salience_decode(cx_bytes bytes, cx_salience *out, cx_err *err);
void cx_weights_encode(const cx_weights_record *weights, cx_buf *out);
CX_RESULT cx_weights_decode(cx_bytes bytes, cx_weights_record *out, cx_err *err);

/* With signature fields as they are. */
void cx_manifest_encode(const cx_manifest *manifest, cx_buf *out);
/* The body: without fields 9 and 10.  "cortex.manifest.v1" ‖ body is what is signed. */
void cx_manifest_encode_body(const cx_manifest *manifest, cx_buf *out);
CX_RESULT cx_manifest_decode(cx_bytes bytes, cx_manifest *out, cx_err *err);
/* manifest_digest (§9). */
CX_RESULT cx_manifest_digest(const cx_manifest *manifest, const cx_alloc *alloc, cx_digest *out,
                             cx_err *err);
/* overall_root recomputed from the manifest's own journal and state roots. */
cx_digest cx_manifest_overall(const cx_manifest *manifest);

#endif

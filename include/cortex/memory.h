/*
 * cortex/memory.h - an actor's typed memories, and the edges between them.
 *
 *     cx_memories *memories;
 *     cx_memories_open(ledger, "andrew", NULL, &memories, &err);
 *     cx_memories_draft draft = CX_MEMORIES_DRAFT_INIT;
 *     draft.type = "Fact";
 *     draft.content.data = cx_str_z("{\"statement\":\"the office opens at 9\",\"subject\":"
 *                                   "\"office\",\"predicate\":\"opens_at\",\"source\":\"Anna\"}");
 *     cx_uri_text uri;
 *     cx_memories_write(memories, &draft, &uri, &err);         uri.text: matrix://cortex/Fact/..#1
 *     cx_owned json;
 *     cx_memories_get(memories, uri.text, &json, &err);
 *     puts(cx_owned_text(&json));
 *     cx_owned_done(&json);
 *
 * Every write is an entry of the actor's journal and is durable when the call returns.  A call that
 * fails changes nothing.  Memories are named by URI (§4.3): matrix://cortex/<Type>/<ULID>#<N> is
 * version N; a parameter named `memory` also accepts a bare ULID, the current version.  Edges are
 * matrix://cortex/edge/<ULID>/<type>/<ULID>.
 *
 * Answers are one JSON object as UTF-8 text, one line, members in order, times in RFC 3339: the
 * same as `cortex memory --json` prints.  Free them with cx_owned_done.
 *
 * Errors carry the format's names as tags: those listed at each call, those of cortex/journal.h,
 * and CX_E_FORMAT "BadURI", CX_E_NOT_FOUND "NotFound", CX_E_USAGE "InvalidArgument".  § numbers
 * refer to docs/formats/ledger.md.  Thread-safe, except for closing.  C11 and C++ clean.
 */
#ifndef CORTEX_MEMORY_H
#define CORTEX_MEMORY_H

#include <cortex/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The default limit of memories returned by one list, find or walk. */
#define CX_MEMORIES_LIMIT 100

typedef struct cx_memories cx_memories;

/* A zero-terminated URI; every URI of a memory or edge fits. */
#define CX_URI_TEXT_SIZE 128
typedef struct cx_uri_text {
    char text[CX_URI_TEXT_SIZE];
} cx_uri_text;

typedef struct cx_memories_options {
    const cx_alloc *alloc;        /* NULL = the ledger's */
    const char *scheme;           /* of a new actor; NULL = the data directory's */
    int64_t (*now_ns)(void *arg); /* nanoseconds since 1970; NULL = the wall clock */
    void *now_arg;
    bool (*new_id)(void *arg, uint8_t out_id[16]); /* false = failed; NULL = ULIDs */
    void *new_id_arg;
} cx_memories_options;

#define CX_MEMORIES_OPTIONS_INIT           \
    {                                      \
        NULL, NULL, NULL, NULL, NULL, NULL \
    }

/* The actor may be new.  The ledger must outlive this; `options` may be NULL. */
CX_API CX_RESULT cx_memories_open(cx_ledger *ledger, const char *actor,
                                  const cx_memories_options *options, cx_memories **out,
                                  cx_err *err);
CX_API void cx_memories_close(cx_memories *memories); /* NULL is accepted */

/* --- writing (§10) ---------------------------------------------------------------------------- */

/* The content of one version. */
typedef struct cx_memories_content {
    cx_str data;                     /* a JSON object with members of the type's (§4.1) */
    cx_bytes data_cbor;              /* in place of it: the canonical CBOR; at most 16 MiB */
    const char *source;              /* user_input derived observed imported; NULL = user_input */
    const char *const *derived_from; /* at most 64; a memory's URI must exist */
    size_t derived_from_count;
    const char *const *attestations;
    size_t attestation_count;
    float confidence; /* above 0, to 1; 0 = 1 */
    bool expires;
    int64_t expires_at_s; /* since 1970; that second is still good */
    const char *brief;    /* short form (§4.2), at most 50 tokens of 4 bytes; both or none .. */
    const char *medium;   /* .. medium form, at most 200; NULL = derived from the data */
    const char *by;       /* NULL = the actor */
    bool blind;           /* salted, so that erased content cannot be guessed from its hash */
} cx_memories_content;

#define CX_MEMORIES_CONTENT_INIT                                                              \
    {                                                                                         \
        {NULL, 0}, {NULL, 0}, NULL, NULL, 0, NULL, 0, 0.0f, false, 0, NULL, NULL, NULL, false \
    }

typedef struct cx_memories_frame { /* what a memory is about: "acquire", "service", "gpu" */
    const char *verb;
    const char *kind;
    const char *ref;
} cx_memories_frame;

/* The properties of a memory that are not part of a version. */
typedef struct cx_memories_labels {
    const char *const *tags; /* at most 16 */
    size_t tag_count;
    const cx_memories_frame *frames; /* at most 16 */
    size_t frame_count;
    unsigned importance;    /* 0 to 10 */
    const char *visibility; /* private scoped actor_public; NULL = private */
} cx_memories_labels;

#define CX_MEMORIES_LABELS_INIT   \
    {                             \
        NULL, 0, NULL, 0, 0, NULL \
    }

typedef struct cx_memories_draft {
    const char *type; /* Identity Fact Preference Belief Event Goal Constraint Capability Pattern */
    cx_memories_content content;
    cx_memories_labels labels;
    const char *id;          /* a ULID; NULL = new */
    const char *actor_scope; /* NULL = the actor */
    bool pinned;             /* its salience never falls below 0.7 */
} cx_memories_draft;

#define CX_MEMORIES_DRAFT_INIT                                                     \
    {                                                                              \
        NULL, CX_MEMORIES_CONTENT_INIT, CX_MEMORIES_LABELS_INIT, NULL, NULL, false \
    }

/*
 * A new memory.  CX_E_USAGE "InvalidType", "EmptyData", "TypeDataMismatch" (a member the type does
 * not have, or of another kind), "FieldMissing", "InvalidSource", "InvalidArgument"; CX_E_FORMAT
 * "NonCanonical" (CBOR); CX_E_MORE, _SYNTAX, _FORMAT "U_..." with the place in the JSON;
 * CX_E_EXISTS "AlreadyExists" (the id); CX_E_LIMIT "FormTooLong" and others; "DanglingReference".
 */
CX_API CX_RESULT cx_memories_write(cx_memories *memories, const cx_memories_draft *draft,
                                   cx_uri_text *out_uri, cx_err *err);
/* Writes the next version of a memory; `uri` must name the current version: CX_E_CONFLICT
 * "VersionConflict" when another writer came first.  Errors as for writing, and "Tombstoned". */
CX_API CX_RESULT cx_memories_update(cx_memories *memories, const char *uri,
                                    const cx_memories_content *content, cx_uri_text *out_uri,
                                    cx_err *err);

typedef struct cx_memories_relabel {
    cx_memories_labels labels;
    bool set_tags, set_frames, set_importance, set_visibility; /* the others are unchanged */
    const cx_digest *if_head; /* "head_hash" as read; else CX_E_CONFLICT "HeadConflict" */
    const char *by;           /* NULL = the actor */
} cx_memories_relabel;

#define CX_MEMORIES_RELABEL_INIT                                        \
    {                                                                   \
        CX_MEMORIES_LABELS_INIT, false, false, false, false, NULL, NULL \
    }

CX_API CX_RESULT cx_memories_update_labels(cx_memories *memories, const char *memory,
                                           const cx_memories_relabel *relabel, cx_err *err);

/* Marks a memory as deleted; it stays readable.  A second call succeeds and writes nothing. */
CX_API CX_RESULT cx_memories_tombstone(cx_memories *memories, const char *memory,
                                       const char *reason, const char *by, cx_err *err);
/* Marks a memory as deleted and destroys the content of all its versions, after appending an entry
 * that records who erased it and why; all proofs still hold.  A second call succeeds and writes
 * nothing. */
CX_API CX_RESULT cx_memories_erase(cx_memories *memories, const char *memory, const char *reason,
                                   const char *by, cx_err *err);

typedef struct cx_memories_edge {
    const char *from; /* memories */
    const char *type; /* derived_from supersedes references contradicts corroborates consents_to
                         dispatched_to attested_by cited_in tombstones part_of instance_of caused_by
                         observed_by */
    const char *to;
    float weight;
    cx_bytes data;
    const char *by; /* NULL = the actor */
    bool blind;
} cx_memories_edge;

#define CX_MEMORIES_EDGE_INIT                          \
    {                                                  \
        NULL, NULL, NULL, 0.0f, {NULL, 0}, NULL, false \
    }

/* Adds an edge.  *out_written (may be NULL): false when it existed already.  `out_uri` may be NULL.
 */
CX_API CX_RESULT cx_memories_link(cx_memories *memories, const cx_memories_edge *edge,
                                  cx_uri_text *out_uri, bool *out_written, cx_err *err);
/* Removes an edge.  *out_written (may be NULL): false when it was removed already. */
CX_API CX_RESULT cx_memories_unlink(cx_memories *memories, const char *edge_uri, const char *reason,
                                    const char *by, bool *out_written, cx_err *err);

/* Stores the embedding vector of a memory version, for cx_memories_query.near. */
CX_API CX_RESULT cx_memories_embed(cx_memories *memories, const char *memory, const char *model,
                                   const float *values, size_t dim, cx_err *err);

typedef struct cx_memories_outcome {
    const char *intent;
    bool failed;
    const char *reason;
    const char *const *cited; /* URIs, at most 256; unusable ones are skipped */
    size_t cited_count;
    const char *by; /* NULL = the actor */
} cx_memories_outcome;

typedef struct cx_memories_attested {
    uint64_t seq; /* of the entry */
    size_t used;  /* number of cited memories that were usable */
    bool learned; /* the salience weights, and so the order of results, have changed */
} cx_memories_attested;

/* Records an outcome and the memories it rested on.  CX_E_DENIED "RateLimited".  `out` may be NULL.
 */
CX_API CX_RESULT cx_memories_attest(cx_memories *memories, const cx_memories_outcome *outcome,
                                    cx_memories_attested *out, cx_err *err);

typedef struct cx_memories_compaction {
    const char *const *in_context; /* URIs of memories in the agent's context */
    size_t in_context_count;
    const char *const *load_bearing; /* URIs of those that must stay in full */
    size_t load_bearing_count;
    uint64_t budget_tokens; /* 0 = 4000 */
    const char *intent;
    const char *step;
} cx_memories_compaction;

/* Decides which memories stay in full and which in short form; journaled.  {"actor","budget",
 * "compacted":[{"salience","short","uri"}],"kept":[uri],"uri"}. */
CX_API CX_RESULT cx_memories_compact(cx_memories *memories,
                                     const cx_memories_compaction *compaction, cx_owned *out,
                                     cx_err *err);

/* --- reading ---------------------------------------------------------------------------------- */

/* CX_E_NOT_FOUND "NotFound"; CX_E_CONFLICT "TypeMismatch" when the URI's type is not
 * the memory's. */
CX_API CX_RESULT cx_memories_get(cx_memories *memories, const char *memory, cx_owned *out,
                                 cx_err *err);
/* The data only: canonical CBOR, as in cx_memories_content.data_cbor; empty when erased. */
CX_API CX_RESULT cx_memories_get_data(cx_memories *memories, const char *memory, cx_owned *out,
                                      cx_err *err);

typedef struct cx_memories_listing {
    const char *type; /* NULL = all */
    bool with_tombstoned;
    const char *after; /* a ULID: begin after it; NULL = with the first */
    size_t limit;      /* 0 = CX_MEMORIES_LIMIT */
} cx_memories_listing;

#define CX_MEMORIES_LISTING_INIT \
    {                            \
        NULL, false, NULL, 0     \
    }

/* By id: {"actor","count","memories":[..],"next_after"}; next_after is null at the end.  `listing`
 * may be NULL. */
CX_API CX_RESULT cx_memories_list(cx_memories *memories, const cx_memories_listing *listing,
                                  cx_owned *out, cx_err *err);

/* At least one of types, tags, from and near is required. */
typedef struct cx_memories_query {
    const char *const *types; /* any of them */
    size_t type_count;
    const char *const *tags; /* all of them */
    size_t tag_count;
    const char *frame_verb; /* NULL = none; with frame_ref */
    const char *frame_ref;
    const char *from;   /* memories to which this one has live edges .. */
    const char *follow; /* .. of this type; NULL = any */
    const float *near;  /* a vector: most similar first; vectors of other sizes are skipped */
    size_t near_dim;
    const char *field;    /* a member of the data .. */
    const char *field_op; /* .. = != < <= > >= contains .. */
    const char *field_value;
    size_t limit;           /* at most 1000; 0 = CX_MEMORIES_LIMIT, or none with a budget */
    uint64_t budget_tokens; /* of medium forms; 0 = none.  Memories that do not fit are skipped */
    bool with_tombstoned;
    bool with_expired;
    const char *journal_as; /* journal the search (find_late) under this name; NULL = do not */
} cx_memories_query;

#define CX_MEMORIES_QUERY_INIT                                                                   \
    {                                                                                            \
        NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, false, false, \
            NULL                                                                                 \
    }

/* By salience, or similarity: {"actor","count","memories":[{..,"salience","similarity"}]}.
 * CX_E_USAGE "InvalidArgument" when none of the required members is set. */
CX_API CX_RESULT cx_memories_find(cx_memories *memories, const cx_memories_query *query,
                                  cx_owned *out, cx_err *err);
/* The memories for an agent's context: identity, hard constraints, active goals, then facts by
 * salience.  The answer is as for find.  CX_E_LIMIT "BudgetUnreachable" when the first three do not
 * fit. */
CX_API CX_RESULT cx_memories_context(cx_memories *memories, uint64_t budget_tokens, cx_owned *out,
                                     cx_err *err);

typedef struct cx_memories_edge_query {
    bool to;          /* edges to the memory, not from it */
    const char *type; /* NULL = all */
    bool with_removed;
    size_t limit; /* 0 = CX_MEMORIES_LIMIT */
} cx_memories_edge_query;

#define CX_MEMORIES_EDGE_QUERY_INIT \
    {                               \
        false, NULL, false, 0       \
    }

/* {"actor","count","edges":[..]}; `query` may be NULL. */
CX_API CX_RESULT cx_memories_edges(cx_memories *memories, const char *memory,
                                   const cx_memories_edge_query *query, cx_owned *out, cx_err *err);
/* Breadth first over live edges, at most 8 deep: {"actor","cut","steps":[{"by","depth","from","id",
 * "short","uri"}]}; "cut": a limit was reached. */
CX_API CX_RESULT cx_memories_walk(cx_memories *memories, const char *memory, unsigned depth_max,
                                  bool backwards, cx_owned *out, cx_err *err);
/* Numbers of the entries about a memory, oldest first, for cx_ledger_read: {"actor","count",
 * "entries":[..]}. */
CX_API CX_RESULT cx_memories_history(cx_memories *memories, const char *memory, cx_owned *out,
                                     cx_err *err);

#ifdef __cplusplus
}
#endif
#endif

/*
 * record.h - between reading bytes (load.c) and the skeleton (internal.h): a batch of nodes as one
 * reader found them, its texts still borrowed from the input.
 *
 * A batch is filled by one thread without touching the lattice, hashed as a whole in lanes, and
 * then absorbed by the lattice in file order.
 */
#ifndef CX_LATTICE_RECORD_H
#define CX_LATTICE_RECORD_H

#include "json/api.h"
#include "lattice/internal.h"

/* A parents entry as written, and its hash under the lattice's seed. */
typedef struct parent_ref {
    cx_str text;
    uint64_t hash;
} parent_ref;

typedef struct draft {
    node n; /* agent is a batch-local index; parents, lineage not yet set */
    uint64_t id_hash;
    uint32_t first_ref;
    uint32_t ref_count;
    cx_str delta; /* with keep_deltas; offset into the batch's deltas while being filled */
} draft;

typedef struct batch_agent {
    cx_str name;     /* in the batch's own arena */
    uint32_t global; /* index in the lattice, NO_AGENT until it is known */
} batch_agent;

typedef enum digest_kind { DIGEST_HASH, DIGEST_SEAL, DIGEST_STORE } digest_kind;

typedef struct digest_job {
    size_t offset; /* of the pre-image, in the batch's work buffer */
    size_t size;
    uint32_t draft;
    digest_kind kind;
    cx_digest expected;
} digest_job;

typedef struct batch_complaint {
    uint32_t draft;
    cx_lattice_code code;
    cx_str detail; /* in the scratch arena */
} batch_complaint;

#define BATCH_RECENT 16u
#define BATCH_EXPECTED 16u

/*
 * The name that stood in this place of the last line, with quotes and colon, as two words in the
 * order of memory.  Lines repeat: where the text is the same, its slot is known.
 */
typedef struct expected_name {
    uint64_t text[2], mask[2];
    uint8_t size;
    uint8_t slot; /* its offset in record_fields */
} expected_name;

typedef struct batch {
    const cx_alloc *alloc;
    uint64_t seed;
    bool keep_deltas, keep_seals;
    cx_json_parser parser;
    cx_json_recoder recoder;
    cx_str input;     /* what the current record was parsed from; stays until absorbed */
    cx_arena values;  /* of one record; reset for each */
    cx_arena scratch; /* of one batch: decoded texts, details */
    cx_buf work;      /* pre-images */
    cx_buf deltas;    /* canonical state_deltas */
    CX_VEC(draft) drafts;
    CX_VEC(parent_ref) refs;
    CX_VEC(cx_str) odd;
    CX_VEC(batch_complaint) complaints;
    CX_VEC(digest_job) jobs;
    CX_VEC(cx_bytes) messages;
    CX_VEC(cx_digest) digests;
    CX_VEC(cx_digest) seals; /* one a draft, with keep_seals */
    /* Kept from batch to batch. */
    cx_arena names;
    cx_map agent_index;
    CX_VEC(batch_agent) agents;
    expected_name expected[BATCH_EXPECTED];
    uint32_t recent_agents[BATCH_RECENT]; /* indexes by recent_slot() of the name */
} batch;

/* The fields of §2, NULL when absent. */
typedef struct record_fields {
    const cx_json *node_id, *agent_id, *seq, *timestamp, *event, *state_delta;
    const cx_json *prev_hash, *hash, *parents, *fork_type, *schema_version;
} record_fields;

/* What lies deeper, and what a scan has written already. */
typedef struct record_inside {
    cx_str strategy; /* event.merge_strategy, data NULL when it is no string */
    cx_str seal;     /* event.__seal, likewise */
    bool has_seal;
    bool failed; /* the event says that something failed: content/failure.c */
    /* Of a scanned record, else with data NULL; event and state_delta then have no members. */
    cx_str head;  /* canonical prev_hash and event, in b->work after its contents */
    cx_str delta; /* canonical, in b->deltas after its contents */
} record_inside;

typedef struct record {
    record_fields fields;
    record_inside inside;
} record;

/* content/failure.c: whether a member of an event, in canonical form, says that something failed;
 * cx_lattice_failed_event() does so of a whole event. */
bool cx_lattice_failed_member(cx_str name, cx_str value);

void cx_lattice_batch_init(batch *b, const cx_alloc *alloc, uint64_t seed,
                           const cx_json_limits *limits);
void cx_lattice_batch_done(batch *b);
/* Ready for the next batch; everything but the agents' names is gone. */
void cx_lattice_batch_clear(batch *b);

/*
 * Adds one record parsed from b->input into b->values.  Texts the batch keeps are borrowed from
 * the input, or copied when they lay in b->values (they had escapes).
 * Damage is noted, not an error: only CX_E_NOMEM and U_SHAPE (no object) fail.
 */
CX_RESULT cx_lattice_batch_add(batch *b, const cx_json *value, cx_str version, uint64_t offset,
                               uint64_t line, cx_err *err);
/* The same for a record whose parts are known. */
CX_RESULT cx_lattice_batch_add_record(batch *b, const record *r, cx_str version, uint64_t offset,
                                      uint64_t line, cx_err *err);
/* The slot a member belongs to, NULL for unknown names. */
const cx_json **cx_lattice_field_slot(record_fields *f, cx_str name);

/*
 * scan.c: adds the record of an ordinary line, straight from its text, which starts at `at` in
 * b->input.  There is an LF at `last_lf`, CX_JSON_RECODE_SLACK bytes of the input after it.
 * *out_next is the start of the next line, or NULL when the line is not ordinary: nothing was
 * added then.
 */
CX_RESULT cx_lattice_batch_scan(batch *b, const char *at, const char *last_lf, cx_str version,
                                uint64_t offset, uint64_t line, const char **out_next, cx_err *err);
/* The last LF with so much after it, NULL when there is none. */
const char *cx_lattice_scan_limit(cx_str input);

/* preimage.c: the parts of a pre-image around canonical text. */
CX_RESULT cx_lattice_preimage_tail(cx_buf *out, const cx_lattice_fields *fields, cx_err *err);
void cx_lattice_seal_preimage_begin(cx_buf *out, cx_str fork_type);
CX_RESULT cx_lattice_seal_preimage_end(cx_buf *out, const cx_json *timestamp, cx_err *err);

/* Computes all digests of the batch and sets the flags that follow from them. */
CX_RESULT cx_lattice_batch_digest(batch *b, cx_err *err);

/* Byte order, in place; O(n log n) at worst. */
void cx_lattice_sort_ids(cx_str *items, size_t count);

/* graph.c: moves a digested batch into the lattice. */
CX_RESULT cx_lattice_absorb(cx_lattice *lattice, batch *b, cx_err *err);

/* The tag an id is filed under. */
static inline uint64_t id_hash(uint64_t seed, cx_str id)
{
    return cx_map_hash_bytes(seed, id.data, id.size);
}

#endif

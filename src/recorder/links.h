/*
 * links.h - what points to what across the modules of a data directory (decision 0022).
 *
 *     trace  -> run                  correlation_metadata.run_id of its batch, or the run's id
 *                                    inside the trace's own bytes
 *     trace  -> memory, trace, run   URIs inside its bytes: matrix://cortex/.., cortex://trace/ID,
 *                                    cortex://run/ID
 *     memory -> memory, trace, run   derived_from of its provenance
 *     run    -> commit               final_commit of its seal
 *
 * The book is made by reading the log once; cx_links_refresh reads on from where it ended.  It
 * holds links, not things: what a link names need not exist.  Belongs to one thread at a time.
 */
#ifndef CX_RECORDER_LINKS_H
#define CX_RECORDER_LINKS_H

#include "ledger/api.h"

#define CX_LINKS_MAX 4000000 /* of one home; more is CX_E_LIMIT */
#define CX_LINKS_PER_ENTRY_MAX \
    1024 /* texts of one trace that look like links; the rest is left out */

typedef enum cx_prov_kind {
    CX_PROV_NONE,
    CX_PROV_MEMORY,   /* matrix://cortex/Type/ULID#version */
    CX_PROV_EDGE,     /* matrix://cortex/edge/.. */
    CX_PROV_TRACE,    /* a trace_id */
    CX_PROV_RUN,      /* a run id */
    CX_PROV_EVENT,    /* RUN/INDEX, from 1 */
    CX_PROV_COMMIT,   /* hex */
    CX_PROV_ENTRY,    /* ACTOR/SEQ */
    CX_PROV_SNAPSHOT, /* ACTOR@NUMBER */
    CX_PROV_JOURNAL,  /* ACTOR:SIZE: the journal of that many entries */
    CX_PROV_NODE,     /* the hash of a lattice node */
    CX_PROV_KEY,      /* a key id of the trust store */
    CX_PROV_ACTOR,
    CX_PROV_LINE, /* FILE:LINE of a repository */
    CX_PROV_KIND_COUNT
} cx_prov_kind;
/* "memory", "trace", ..; static storage. */
const char *cx_prov_kind_name(cx_prov_kind kind);

/* What a link rests on. */
typedef enum cx_link_ground {
    CX_LINK_STATED, /* somebody said so beside the thing: a batch's metadata */
    CX_LINK_INSIDE  /* it stands in the bytes that are hashed, signed or sealed with the thing */
} cx_link_ground;

typedef struct cx_link {
    cx_prov_kind from_kind, to_kind;
    cx_str from, to;      /* ids as above; live as long as the book */
    const char *relation; /* "performed_in", "mentions", "derived_from", "ended_at"; static */
    cx_link_ground ground;
    cx_str actor; /* where it is written */
    uint64_t seq;
} cx_link;

typedef struct cx_links cx_links;

/* Over an open home, which must outlive it; reads all of the log.  `alloc` NULL = default. */
CX_RESULT cx_links_open(cx_home *home, const cx_alloc *alloc, cx_links **out, cx_err *err);
CX_RESULT cx_links_refresh(cx_links *links, cx_err *err);
void cx_links_close(cx_links *links); /* NULL is fine */

/* In log order; borrowed until the next refresh.  A memory is found by its id whatever its version:
 * give a whole URI, look at each link's own. */
CX_RESULT cx_links_from(const cx_links *links, cx_prov_kind kind, cx_str id, cx_arena *arena,
                        const cx_link ***out, size_t *out_count, cx_err *err);
CX_RESULT cx_links_to(const cx_links *links, cx_prov_kind kind, cx_str id, cx_arena *arena,
                      const cx_link ***out, size_t *out_count, cx_err *err);

/* matrix://cortex/.., cortex://trace/ID, cortex://run/ID: what it names; false for other text. The
 * id is borrowed from `uri`. */
bool cx_prov_of_uri(cx_str uri, cx_prov_kind *out_kind, cx_str *out_id);

/* The next such URI in a text that is not only of them (JSON, prose); `*text` then begins behind
 * it. One ends at a space, a quote, a bracket, .. and at a full stop that ends a sentence. */
bool cx_prov_next_uri(cx_str *text, cx_prov_kind *out_kind, cx_str *out_id);

#endif

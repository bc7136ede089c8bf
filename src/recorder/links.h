/*
 * links.h - references between objects of all modules of a data directory (decision 0022).
 *
 *     trace  -> run                  correlation_metadata.run_id of its batch, or the run's id
 *                                    inside the trace's own bytes
 *     trace  -> memory, trace, run   URIs inside its bytes: matrix://cortex/.., cortex://trace/ID,
 *                                    cortex://run/ID
 *     memory -> memory, trace, run   derived_from of its provenance
 *     run    -> commit               final_commit of its seal
 *
 * HOME/links.db says where the entries are that link; cx_links_open reads the log on from where it
 * ended (a server does so before), and what an entry links is read from the entry.  They are names,
 * not objects: the target of a link need not exist.  The file is derived and never believed: it can
 * hide links, as can every process that writes to the data directory, but not make any.  Used by
 * one thread at a time.
 */
#ifndef CX_RECORDER_LINKS_H
#define CX_RECORDER_LINKS_H

#include "ledger/api.h"

#define CX_LINKS_FOUND_MAX 1024 /* of one question */
#define CX_LINKS_PER_ENTRY_MAX \
    1024 /* texts of one trace that look like links; further ones are ignored */

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

/* The one table of kinds (links/names.c): names in JSON and docs/formats/provenance.md, and what
 * each kind offers.  Tests compare it with the type ObjectKind of the API, tools/check_docs.py with
 * the document. */
typedef struct cx_prov_kind_info {
    const char *name;   /* "memory", "trace", .. */
    cx_str uri_prefix;  /* "cortex://trace/"; data NULL = its URI is its id, or it has none */
    const char *screen; /* of the web page that shows one; NULL = none does */
    bool has_why;       /* `cortex why` answers for it */
    bool has_evidence;  /* `cortex evidence` writes a file for it */
} cx_prov_kind_info;
/* Static storage. */
const cx_prov_kind_info *cx_prov_kind_info_of(cx_prov_kind kind);
/* Its name. */
const char *cx_prov_kind_name(cx_prov_kind kind);

/* What a link rests on. */
typedef enum cx_link_ground {
    CX_LINK_STATED, /* stated outside the object: in a batch's metadata */
    CX_LINK_INSIDE  /* inside the bytes that are hashed, signed or sealed with the object */
} cx_link_ground;

typedef struct cx_link {
    cx_prov_kind from_kind, to_kind;
    cx_str from, to;      /* ids as above */
    const char *relation; /* "performed_in", "mentions", "derived_from", "ended_at"; static */
    cx_link_ground ground;
    cx_str actor; /* where it is written */
    uint64_t seq;
} cx_link;

typedef struct cx_links cx_links;

/* Over an open data directory, which must outlive it; reads what the log has since the last time,
 * all of it the first time.  `alloc` NULL = default. */
CX_RESULT cx_links_open(cx_home *home, const cx_alloc *alloc, cx_links **out, cx_err *err);
CX_RESULT cx_links_refresh(cx_links *links, cx_err *err);
void cx_links_close(cx_links *links); /* NULL is fine */

/* Brings HOME/links.db up to the log, so that no question has to; nothing where there can be no
 * such file.  In steps of some ten milliseconds, until `stop` asks it to end (*out_end false). */
CX_RESULT cx_links_read_on(cx_home *home, bool (*stop)(void *arg), void *arg, bool *out_end,
                           cx_err *err);

typedef struct cx_links_question {
    bool to; /* where links end, else where they begin */
    cx_prov_kind kind;
    cx_str id;               /* a memory's with its version */
    cx_prov_kind other_kind; /* of the other end; CX_PROV_NONE = any */
} cx_links_question;

/* In log order, memory from the arena; at most CX_LINKS_FOUND_MAX, *out_more: there are others. */
CX_RESULT cx_links_find(cx_links *links, const cx_links_question *question, cx_arena *arena,
                        const cx_link **out, size_t *out_count, bool *out_more, cx_err *err);

/* HOME/links.db; the path lives in the arena. */
const char *cx_links_path(const char *home_path, cx_arena *arena);
/* Empties it, or removes it where it is damaged: the next question reads all of the log. */
CX_RESULT cx_links_clear(const char *home_path, cx_err *err);
/* After an erasure: the rows of what is no more are gone from the file, if there is one. */
CX_RESULT cx_links_forget_erased(cx_home *home, cx_err *err);

/* matrix://cortex/.., cortex://trace/ID, cortex://run/ID: what it names; false for other text. The
 * id is borrowed from `uri`. */
bool cx_prov_of_uri(cx_str uri, cx_prov_kind *out_kind, cx_str *out_id);

/* The next such URI in a text with other content (JSON, prose); `*text` then begins after it. A
 * URI ends at a space, a quote, a bracket, .. and at a full stop that ends a sentence. */
bool cx_prov_next_uri(cx_str *text, cx_prov_kind *out_kind, cx_str *out_id);

#endif

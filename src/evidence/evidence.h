/*
 * evidence.h - one file about one object, for a recipient who has nothing else: entries with their
 * proofs, their contents, and a page that a browser shows (docs/formats/evidence.md).
 *
 *     CX_TRY(cx_evidence_write(&evidence, &file, err));
 *     CX_TRY(cx_evidence_check(bytes, &options, arena, &result, err));
 *
 * The file is an HTML document.  Its data is at its end in one inert block; everything before it is
 * a function of that data.  The verifier generates the page again and compares every byte, so that
 * what is shown is what was verified, and the file can contain nothing else.
 *
 * No data directory, no network, no clock.  All functions are pure and thread-safe.
 */
#ifndef CX_EVIDENCE_EVIDENCE_H
#define CX_EVIDENCE_EVIDENCE_H

#include "proof/api.h"

#define CX_EVIDENCE_MAGIC "cortex.evidence"
#define CX_EVIDENCE_DATA_MAX (UINT32_C(16) << 20) /* bytes of the data */
#define CX_EVIDENCE_FILE_MAX CX_PROOF_BYTES_MAX   /* bytes of the file */
#define CX_EVIDENCE_JOURNALS_MAX 64
#define CX_EVIDENCE_ENTRIES_MAX 4096
#define CX_EVIDENCE_FILES_MAX 4096
#define CX_EVIDENCE_PARTS_MAX 256                        /* traces, memories, packs, keys: each */
#define CX_EVIDENCE_NAME_MAX 1024                        /* bytes of an id, a path, an actor */
#define CX_EVIDENCE_SHOWN_MAX (UINT32_C(64) << 10)       /* of one text on the page */
#define CX_EVIDENCE_SHOWN_ALL_MAX (UINT32_C(1536) << 10) /* of all texts on the page */

/* Where a journal was when the file was made. */
typedef struct cx_evidence_journal {
    cx_str actor;
    cx_scheme scheme;
    cx_journal_point point;
    cx_bytes checkpoint; /* a signed note of that point; empty = none */
} cx_evidence_journal;

typedef struct cx_evidence_entry {
    size_t journal;      /* its place in `journals` */
    cx_bytes inclusion;  /* an inclusion proof with its entry */
    cx_bytes payload;    /* of a committed payload that is shown */
    const uint8_t *salt; /* 32 bytes next to it; NULL = not shown, or erased */
} cx_evidence_entry;

/* That a journal is in a home root, the root over all actors (ledger.md §15). */
typedef struct cx_evidence_home {
    size_t journal; /* its place in `journals` */
    cx_bytes proof; /* a home proof with its checkpoint */
    /* What the overall root in it is made of: the journal's root then, and the state's. */
    cx_digest journal_root, memories_root, edges_root;
    cx_bytes consistency; /* from then to the journal's point; empty = it is the same */
} cx_evidence_home;

typedef struct cx_evidence_file { /* of the bundle of a run */
    cx_str path;
    cx_bytes bytes;
} cx_evidence_file;

typedef struct cx_evidence_trace {
    size_t entry;       /* trace.received */
    cx_bytes canonical; /* what the agent signed */
    cx_signature signature;
    cx_str key_id;
} cx_evidence_trace;

typedef struct cx_evidence_memory {
    cx_str uri;
    size_t entry;     /* write or update */
    cx_bytes version; /* the record; empty = its content was erased */
} cx_evidence_memory;

typedef struct cx_evidence_key { /* a claim of the file's maker */
    cx_str id;
    cx_pubkey key;
    cx_str role; /* "trace", "checkpoint" */
} cx_evidence_key;

typedef struct cx_evidence {
    cx_str kind; /* "run", "trace", "commit", "memory", "session" */
    cx_str id;
    int64_t made_at_ns; /* a claim */
    const cx_evidence_journal *journals;
    size_t journal_count;
    const cx_evidence_entry *entries;
    size_t entry_count;
    const cx_evidence_file *files; /* by path, distinct */
    size_t file_count;
    const cx_evidence_trace *traces;
    size_t trace_count;
    const cx_evidence_memory *memories;
    size_t memory_count;
    const cx_bytes *packs; /* proof packs of memories */
    size_t pack_count;
    const cx_evidence_key *keys;
    size_t key_count;
    cx_bytes commit;               /* the commit object, without git's header; empty = none */
    const cx_evidence_home *homes; /* by journal, each at most once */
    size_t home_count;
} cx_evidence;

/* --- the file --------------------------------------------------------------------------------- */

/* CX_E_LIMIT when there is too much of something; texts must be UTF-8.  On any error `out` is as it
 * was. */
CX_RESULT cx_evidence_write(const cx_evidence *evidence, cx_buf *out, cx_err *err);
/* The first bytes of one. */
bool cx_evidence_recognise(cx_bytes bytes);
/*
 * Defects are findings: "BadEvidence" (not such a container), "NonCanonical" (the data), and
 * "PageMismatch" (a byte of the file differs from the page of the data; `offset` is its position).
 * *out borrows from the arena.
 */
CX_RESULT cx_evidence_read(cx_bytes bytes, cx_arena *arena, cx_evidence *out, cx_finding *finding,
                           cx_err *err);

/* The data alone, and the page alone: pieces of the above. */
CX_RESULT cx_evidence_encode(const cx_evidence *evidence, cx_buf *out, cx_err *err);
CX_RESULT cx_evidence_decode(cx_bytes bytes, cx_arena *arena, cx_evidence *out, cx_err *err);
CX_RESULT cx_evidence_page(const cx_evidence *evidence, cx_buf *out, cx_err *err);

/* Whether a commit object has this name: git's hash (SHA-1 or SHA-256, as long as the name is) over
 * "commit SIZE", a zero byte and the bytes. */
bool cx_evidence_is_commit(cx_bytes raw, cx_str id);

/* --- checking it ------------------------------------------------------------------------------ */

#define CX_EVIDENCE_LIMITS_MAX 16
#define CX_EVIDENCE_FINDINGS_MAX 64 /* that are stored; the first broken one always is */

/* One finding about a part. */
typedef struct cx_evidence_finding {
    const char
        *part; /* "page", "journal", "entry", "home", "run", "trace", "memory", "proof", "commit" */
    size_t number; /* of the entry, trace, .. in its list */
    cx_finding finding;
} cx_evidence_finding;

typedef struct cx_evidence_result {
    cx_evidence evidence; /* valid when `read` */
    bool read;
    cx_finding finding;                                     /* the worst; the verdict of the file */
    cx_evidence_finding findings[CX_EVIDENCE_FINDINGS_MAX]; /* all that do not hold */
    size_t finding_count;
    size_t journals_signed, journals_anchored; /* by a given key; by any given anchor */
    size_t homes_signed;  /* journals whose home root a given key signed, and which it covers */
    size_t traces_signed; /* by a given key */
    size_t entries_shown, bodies_missing;
    size_t bundle_files_listed;                 /* that the run's manifest names */
    const char *limits[CX_EVIDENCE_LIMITS_MAX]; /* what is not proven; static storage */
    size_t limit_count;
} cx_evidence_result;

/*
 * Options as for proofs: keys, cosigners_required, checkpoint, journal (a root), overall_root,
 * require.  A file that is broken is a result; errors are memory and limits.
 */
CX_RESULT cx_evidence_check(cx_bytes bytes, const cx_check_options *options, cx_arena *arena,
                            cx_evidence_result *out, cx_err *err);
/* The sentence in `limits` until a caller that can read traces has computed the canonical bytes
 * again (provenance/evidence_make.h). */
extern const char cx_evidence_limit_canonical[];
/* Adds what was found elsewhere; a verdict never gets better by it. */
void cx_evidence_add(cx_evidence_result *result, const char *part, size_t number,
                     const cx_finding *finding);
/* For a file that could not be read. */
void cx_evidence_result_of(const cx_err *error, cx_evidence_result *out);

/* For people, and one line of JSON (docs/formats/evidence.md). */
void cx_evidence_write_text(const cx_evidence_result *result, cx_str file, bool details,
                            cx_buf *out);
void cx_evidence_write_json(const cx_evidence_result *result, cx_str file, cx_buf *out);

#endif

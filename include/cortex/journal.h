/*
 * cortex/journal.h - a data directory: append-only journals of many actors, and the 32-byte roots
 * that commit to them.
 *
 *     cx_ledger_make("home", NULL, NULL, &err);                              once
 *     cx_ledger *ledger;
 *     cx_ledger_open("home", NULL, &ledger, &err);
 *     cx_ledger_draft draft = CX_LEDGER_DRAFT_INIT;
 *     draft.kind = "tool.called";
 *     draft.payload = cx_bytes_from(bytes, size);
 *     cx_ledger_append(ledger, "andrew", &draft, 1, &seq, &err);             durable
 *     cx_ledger_state state;
 *     cx_ledger_roots(ledger, "andrew", &state, &err);                       state.overall_root
 *     cx_ledger_close(ledger, &err);
 *
 * A data directory (`--home` on the command line) contains one log, which is the source of truth,
 * and a database derived from it.  One process writes; others may read meanwhile (read_only).
 * Memories are in cortex/memory.h, proofs in cortex/proof.h.  Rules and bytes:
 * docs/formats/ledger.md; § numbers refer to that page.
 *
 * Text parameters are zero-terminated UTF-8.  NULL for a required one, and text that is not UTF-8,
 * are CX_E_USAGE "InvalidArgument".  An actor's name has 1 to 256 bytes without '/' and control
 * characters (§4.3).  Errors carry the format's names as tags: those listed at each call and, for
 * every call that reads or writes, CX_E_IO "Poisoned" (an earlier write failed: close and open
 * again; acknowledged entries are durable), CX_E_FORMAT "LogDamaged", CX_E_NOMEM.
 * Pointers to options, outputs and objects must not be NULL unless the call says so.
 *
 * Thread-safe, except for closing.  C11 and C++ clean.
 */
#ifndef CORTEX_JOURNAL_H
#define CORTEX_JOURNAL_H

#include <cortex/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cx_ledger cx_ledger;

/* --- the data directory (§5) ----------------------------------------------------------------- */

typedef struct cx_ledger_options {
    const cx_alloc *alloc;     /* NULL = cx_alloc_default(); must be thread-safe */
    bool read_only;            /* sees what the writer commits; never changes a byte */
    uint64_t segment_bytes;    /* size of the log's segment files; 0 = default */
    uint32_t flush_timeout_ms; /* how long a search waits for the tables to catch up with the log;
                                    0 = 30,000 */
    /* Called from time to time while tables are brought up to date; `what` is static storage. */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *progress_arg;
} cx_ledger_options;

#define CX_LEDGER_OPTIONS_INIT        \
    {                                 \
        NULL, false, 0, 0, NULL, NULL \
    }

/*
 * Creates the directory (its parent must exist) and an empty log.  `scheme` selects how everything
 * is hashed and never changes: "cortex-1" (the default for NULL) or "matrix-1" (§1.1).
 * CX_E_EXISTS when a data directory exists there (CX_E_BUSY while it is open); CX_E_USAGE
 * "InvalidArgument" for another scheme.
 */
CX_API CX_RESULT cx_ledger_make(const char *path, const char *scheme,
                                const cx_ledger_options *options, cx_err *err);
/*
 * Opens it: truncates an unfinished write that a crash left, and brings the tables up to date.
 * CX_E_NOT_FOUND "NoHome"; CX_E_BUSY "Locked" names the writer process.  `options` may be NULL.
 * Close *out with cx_ledger_close.
 */
CX_API CX_RESULT cx_ledger_open(const char *path, const cx_ledger_options *options, cx_ledger **out,
                                cx_err *err);
/* NULL is accepted.  The object is freed even when this fails; then the tables are older than the
 * log, and the next opening brings them up to date. */
CX_API CX_RESULT cx_ledger_close(cx_ledger *ledger, cx_err *err);

/* The scheme of new actors, "cortex-1" or "matrix-1"; static storage. */
CX_API const char *cx_ledger_scheme(const cx_ledger *ledger);
/* Bytes of an unfinished, unacknowledged write that opening truncated; usually 0. */
CX_API uint64_t cx_ledger_torn_bytes(const cx_ledger *ledger);

/* Copies the data directory to `to_path` while writers continue.  CX_E_EXISTS when `to_path`
 * exists. */
CX_API CX_RESULT cx_ledger_backup(cx_ledger *ledger, const char *to_path, cx_err *err);

/* --- actors --------------------------------------------------------------------------------- */

typedef struct cx_ledger_actor_info {
    cx_str name;        /* borrowed from the ledger */
    const char *scheme; /* static storage */
    uint64_t entry_count;
    uint64_t snapshot_count; /* ever made; the number of the next one */
    uint64_t live_memories;
    uint64_t tombstoned;
    uint64_t edge_count; /* removed ones included */
} cx_ledger_actor_info;

/* CX_E_NOT_FOUND "NoActor". */
CX_API CX_RESULT cx_ledger_actor(cx_ledger *ledger, const char *actor, cx_ledger_actor_info *out,
                                 cx_err *err);
/* Calls `visit` for each actor, in the order of their first entries, until it returns false.
 * `visit` may call functions of the ledger. */
CX_API CX_RESULT cx_ledger_each_actor(cx_ledger *ledger,
                                      bool (*visit)(void *arg, const cx_ledger_actor_info *actor),
                                      void *arg, cx_err *err);

/* --- appending (§3) ------------------------------------------------------------------------- */

typedef struct cx_ledger_draft {
    const char *kind; /* "raw", or a dotted one of your own: a-z 0-9 _ and '.', at most 64 bytes */
    cx_bytes payload; /* opaque here; at most 512 MiB, above 1 MiB always committed */
    bool committed;   /* stored apart from the entry, which then holds a salted hash: erasable */
    const char *by;   /* the author, at most 1024 bytes; NULL = left out */
    int64_t created_at_ns; /* since 1970; 0 = now */
} cx_ledger_draft;

#define CX_LEDGER_DRAFT_INIT            \
    {                                   \
        NULL, {NULL, 0}, false, NULL, 0 \
    }

/*
 * Appends all of the drafts, or none, and returns when they are durable.  *out_first_seq (may be
 * NULL) is the number of the first one; the others follow consecutively.  The actor is created with
 * its first entry.  Callers in several threads share one sync.  CX_E_USAGE "InvalidArgument" (kind,
 * actor, no drafts), CX_E_LIMIT, CX_E_DENIED when opened read-only.
 */
CX_API CX_RESULT cx_ledger_append(cx_ledger *ledger, const char *actor,
                                  const cx_ledger_draft *drafts, size_t count,
                                  uint64_t *out_first_seq, cx_err *err);
/* The same without waiting for the sync: *out_ticket is for cx_ledger_wait. */
CX_API CX_RESULT cx_ledger_append_later(cx_ledger *ledger, const char *actor,
                                        const cx_ledger_draft *drafts, size_t count,
                                        uint64_t *out_first_seq, uint64_t *out_ticket, cx_err *err);
/* Returns when the ticket's entries, and all before them, are durable. */
CX_API CX_RESULT cx_ledger_wait(cx_ledger *ledger, uint64_t ticket, cx_err *err);
/* Returns when everything appended so far, by any thread, is durable. */
CX_API CX_RESULT cx_ledger_sync(cx_ledger *ledger, cx_err *err);

/* --- reading -------------------------------------------------------------------------------- */

/* An entry.  Text and bytes borrow from `memory`, until cx_ledger_entry_done. */
typedef struct cx_ledger_entry {
    uint64_t seq;
    cx_str kind;
    int64_t created_at_ns;
    cx_bytes created_by;   /* empty = left out */
    cx_bytes payload;      /* empty when there is none, or it was erased */
    bool committed;        /* `commitment` and `payload_size` are in the entry, not the payload */
    bool erased;           /* .. and the payload was destroyed */
    cx_digest commitment;  /* of salt and payload (§3) */
    uint64_t payload_size; /* as it was when it was committed */
    uint8_t salt[32];      /* of a committed payload that was not erased; else zeros */
    bool has_subject;
    char subject[27];    /* the memory it is about, as ULID */
    cx_bytes bytes;      /* the entry itself, canonical CBOR */
    cx_digest leaf_hash; /* H(bytes): its leaf in the journal */
    cx_owned memory;
} cx_ledger_entry;

/* CX_E_NOT_FOUND "NoActor", "NoEntry".  Free *out with cx_ledger_entry_done. */
CX_API CX_RESULT cx_ledger_read(cx_ledger *ledger, const char *actor, uint64_t seq,
                                cx_ledger_entry *out, cx_err *err);
CX_API void cx_ledger_entry_done(cx_ledger_entry *entry);

/*
 * Destroys the payload of a committed entry, after appending an entry that records who erased it
 * and why (§10, Redact).  Only that entry changes the roots; every proof still holds.
 * CX_E_NOT_FOUND "NotFound",
 * CX_E_CONFLICT "NotCommitted", CX_E_EXISTS "AlreadyRedacted".  `by` NULL = the actor.
 */
CX_API CX_RESULT cx_ledger_erase(cx_ledger *ledger, const char *actor, uint64_t seq,
                                 const char *reason, const char *by, cx_err *err);

/* --- roots and snapshots (§1, §9) ------------------------------------------------------------ */

typedef struct cx_ledger_state {
    uint64_t journal_size; /* entries */
    cx_digest journal_root;
    cx_digest edges_root;
    cx_digest memories_root;
    cx_digest overall_root; /* commits to all of the above */
} cx_ledger_state;

/* One consistent view, durable when this returns.  CX_E_NOT_FOUND "NoActor". */
CX_API CX_RESULT cx_ledger_roots(cx_ledger *ledger, const char *actor, cx_ledger_state *out,
                                 cx_err *err);

/* A snapshot's manifest.  Text and bytes borrow from `memory`, until cx_ledger_manifest_done. */
typedef struct cx_ledger_manifest {
    uint64_t snapshot; /* its number, from 0 */
    cx_str actor;
    const char *scheme; /* static storage */
    cx_ledger_state state;
    int64_t created_at_ns;
    cx_str reason;
    bool sealed;
    cx_str signed_by; /* when sealed */
    uint64_t live_memories;
    uint64_t tombstoned;
    uint64_t edge_count;
    cx_bytes bytes; /* canonical CBOR; store a copy outside of the data directory */
    cx_owned memory;
} cx_ledger_manifest;

CX_API void cx_ledger_manifest_done(cx_ledger_manifest *manifest);

/* Makes a snapshot: the present state stays provable.  Changes no root.  `reason`: at most 255
 * bytes, NULL = "explicit".  CX_E_NOT_FOUND "NoActor". */
CX_API CX_RESULT cx_ledger_snapshot_make(cx_ledger *ledger, const char *actor, const char *reason,
                                         cx_ledger_manifest *out, cx_err *err);
/* CX_E_NOT_FOUND "NoActor", "SnapshotNotFound", as for all calls below. */
CX_API CX_RESULT cx_ledger_snapshot_get(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                        cx_ledger_manifest *out, cx_err *err);
/* Finds the newest snapshot with that overall root. */
CX_API CX_RESULT cx_ledger_snapshot_find(cx_ledger *ledger, const char *actor,
                                         const cx_digest *overall_root, cx_ledger_manifest *out,
                                         cx_err *err);
/* Visits the snapshots that were not dropped, oldest first, until `visit` returns false.  The
 * manifest is borrowed for the call; `visit` may call functions of the ledger. */
CX_API CX_RESULT cx_ledger_each_snapshot(cx_ledger *ledger, const char *actor,
                                         bool (*visit)(void *arg,
                                                       const cx_ledger_manifest *manifest),
                                         void *arg, cx_err *err);

/* The bytes to sign with Ed25519, outside of this library. */
CX_API CX_RESULT cx_ledger_snapshot_to_sign(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                            cx_owned *out, cx_err *err);

typedef struct cx_ledger_seal {
    const char *signed_by; /* the signer's name, as readers will see it; required */
    cx_pubkey key;
    cx_signature signature;
    const char *by; /* the entry's author; NULL = left out */
} cx_ledger_seal;

/* Adds the signature to the manifest and the journal.  CX_E_DENIED "BadSignature" when it is not a
 * signature of this manifest by that key, CX_E_EXISTS "AlreadySealed". */
CX_API CX_RESULT cx_ledger_snapshot_seal(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                         const cx_ledger_seal *seal, cx_err *err);
/* Drops a snapshot, which is journaled; proofs made from it before still hold. */
CX_API CX_RESULT cx_ledger_snapshot_drop(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                         const char *by, cx_err *err);

/* --- seeds of compilations (§9.2) ------------------------------------------------------------- */

#define CX_LEDGER_SEED_SIZE 65 /* 64 hex digits and a terminator */

typedef struct cx_ledger_seed_input {
    const char *intent_id;  /* a ULID; with scheme matrix-1 any text */
    const char *mtx_digest; /* 64 lower-case hex digits; with scheme matrix-1 any text */
    const char *model_id;
    bool at;           /* over the state of `snapshot`; else over the present state */
    uint64_t snapshot; /* when `at` */
} cx_ledger_seed_input;

#define CX_LEDGER_SEED_INPUT_INIT  \
    {                              \
        NULL, NULL, NULL, false, 0 \
    }

/* The D11 seed: one hash of the intent, the actor, its overall root, the digest of the method and
 * the model.  `out_root` (the overall root that it was made over) may be NULL.  CX_E_USAGE
 * "InvalidArgument"; CX_E_NOT_FOUND "NoActor", "SnapshotNotFound". */
CX_API CX_RESULT cx_ledger_seed(cx_ledger *ledger, const char *actor,
                                const cx_ledger_seed_input *input,
                                char out_seed[CX_LEDGER_SEED_SIZE], cx_digest *out_root,
                                cx_err *err);

/* --- verifying a data directory (§10.2, §11) -------------------------------------------------- */

/*
 * A root stored outside of the data directory.  Without one, verification cannot detect that the
 * newest entries were removed or that the whole log was rewritten.
 */
typedef struct cx_ledger_anchor {
    uint64_t journal_size;
    cx_digest journal_root;
    cx_bytes manifest; /* a stored manifest in place of the two above; empty = use those */
} cx_ledger_anchor;

typedef struct cx_ledger_verify_options {
    const cx_alloc *alloc;           /* NULL = default */
    const char *actor;               /* NULL = all */
    const cx_ledger_anchor *anchors; /* of `actor`, which is then required */
    size_t anchor_count;
    bool require_anchored;     /* the verdict is indeterminate unless an anchor holds */
    const cx_pubkey *seal_key; /* NULL = signatures of seals are not checked */
    size_t finding_max;        /* how many findings the report stores; 0 = 1000 */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *progress_arg;
} cx_ledger_verify_options;

#define CX_LEDGER_VERIFY_OPTIONS_INIT                   \
    {                                                   \
        NULL, NULL, NULL, 0, false, NULL, 0, NULL, NULL \
    }

typedef struct cx_ledger_report cx_ledger_report;

/*
 * Reads the log from its first byte, derives everything again, and compares.  Never writes; the
 * writer process may continue.  Damage is a verdict, not an error.  Errors: CX_E_NOT_FOUND
 * "NoHome", CX_E_USAGE (anchors without an actor), CX_E_FORMAT (an anchor that is no manifest),
 * CX_E_IO.
 */
CX_API CX_RESULT cx_ledger_verify(const char *path, const cx_ledger_verify_options *options,
                                  cx_ledger_report **out, cx_err *err);
CX_API void cx_ledger_report_close(cx_ledger_report *report); /* NULL is accepted */
CX_API cx_verdict cx_ledger_report_verdict(const cx_ledger_report *report);

typedef struct cx_ledger_finding {
    const char *check;  /* "log", "entry", "journal", "version", "head", "edge", "state",
                           "manifest", "seal", "payload", "counter", "table", "anchor" */
    const char *reason; /* "LogDamaged", "Truncated", "Forked", ... */
    cx_str actor;
    cx_str where;   /* "seq 12", a key, or a file and an offset */
    cx_str message; /* what was expected and found */
} cx_ledger_finding;

/* Number of stored findings; cx_ledger_totals counts all of them. */
CX_API size_t cx_ledger_report_count(const cx_ledger_report *report);
/* Borrowed from the report; `index` < count. */
CX_API void cx_ledger_report_finding(const cx_ledger_report *report, size_t index,
                                     cx_ledger_finding *out);

/* What was checked; read it together with the verdict. */
typedef struct cx_ledger_totals {
    uint64_t actors, entries, memories, versions, edges, manifests, payloads, erased;
    uint64_t findings;   /* all of them, stored or not */
    bool anchored;       /* an anchor held: history up to it is complete and not rewritten */
    bool tables_checked; /* false: absent or unreadable, which is no damage; see tables_note */
    cx_str tables_note;
    uint64_t torn_bytes; /* of an unfinished, unacknowledged write at the log's end (a crash) */
} cx_ledger_totals;

CX_API void cx_ledger_report_totals(const cx_ledger_report *report, cx_ledger_totals *out);
/* The actors and their roots, derived from the log; borrowed from the report. */
CX_API size_t cx_ledger_report_actor_count(const cx_ledger_report *report);
CX_API void cx_ledger_report_actor(const cx_ledger_report *report, size_t index,
                                   cx_ledger_actor_info *out, cx_ledger_state *out_state);

/* --- the tables ------------------------------------------------------------------------------- */

typedef enum cx_ledger_rebuild_mode {
    CX_LEDGER_REBUILD,         /* differing tables are an error, "RootMismatch", and stay as is */
    CX_LEDGER_REBUILD_REPLACE, /* differing tables are replaced: the log is the truth */
    CX_LEDGER_REBUILD_COMPARE  /* compares only, writes nothing */
} cx_ledger_rebuild_mode;

typedef struct cx_ledger_rebuilt {
    uint64_t entries, records;
    bool changed; /* the old tables differed or did not exist */
    bool resumed; /* continued an earlier rebuild that was interrupted */
} cx_ledger_rebuilt;

/*
 * Rebuilds the tables from the log in new files, then replaces the old ones atomically.  The data
 * directory must not be open for writing: CX_E_BUSY.  CX_E_NOT_FOUND "NoHome", CX_E_CONFLICT
 * "RootMismatch".  `options` and `out` may be NULL.
 */
CX_API CX_RESULT cx_ledger_rebuild(const char *path, const cx_ledger_options *options,
                                   cx_ledger_rebuild_mode mode, cx_ledger_rebuilt *out,
                                   cx_err *err);

/* --- roots as text ---------------------------------------------------------------------------- */

#define CX_DIGEST_TEXT_SIZE 65
/* 64 lower-case hex digits and a zero byte. */
CX_API void cx_digest_to_text(const cx_digest *digest, char out[CX_DIGEST_TEXT_SIZE]);
/* 64 hex digits; false for anything else, and *out is then unchanged. */
CX_API bool cx_digest_from_text(const char *text, cx_digest *out);

#ifdef __cplusplus
}
#endif
#endif

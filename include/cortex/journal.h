/*
 * cortex/journal.h - a home: append-only journals of many actors, and 32 bytes that commit to all.
 *
 *     cx_ledger_make("home", NULL, NULL, &err);                              once
 *     cx_ledger *ledger;
 *     cx_ledger_open("home", NULL, &ledger, &err);
 *     cx_ledger_draft draft = CX_LEDGER_DRAFT_INIT;
 *     draft.kind = "tool.called";
 *     draft.payload = cx_bytes_from(bytes, size);
 *     cx_ledger_append(ledger, "andrew", &draft, 1, &seq, &err);             on the disk
 *     cx_ledger_state state;
 *     cx_ledger_roots(ledger, "andrew", &state, &err);                       state.overall_root
 *     cx_ledger_close(ledger, &err);
 *
 * A home is a folder with one log, which is the only truth, and a database derived from it.  One
 * process writes; others may read meanwhile (read_only).  Memories are in cortex/memory.h, proofs
 * in cortex/proof.h.  Rules and bytes: docs/formats/ledger.md (§ numbers are of that page).
 *
 * Text parameters are terminated UTF-8; NULL where one is needed, and text that is not UTF-8, are
 * CX_E_USAGE "InvalidArgument".  An actor's name has 1 to 256 bytes without '/' and controls
 * (§4.3). Errors carry the format's names as tags: those listed at each call, and with every call
 * that reads or writes CX_E_IO "Poisoned" (an earlier write failed: close, open again; what was
 * acknowledged is there), CX_E_FORMAT "LogDamaged", CX_E_NOMEM.
 *
 * Thread-safe but for closing.  C11 and C++ clean.
 */
#ifndef CORTEX_JOURNAL_H
#define CORTEX_JOURNAL_H

#include <cortex/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cx_ledger cx_ledger;

/* --- a home (§5) ---------------------------------------------------------------------------- */

typedef struct cx_ledger_options {
    const cx_alloc *alloc;      /* NULL = cx_alloc_default(); must be thread-safe */
    bool read_only;             /* sees what others write; never changes a byte */
    uint64_t segment_bytes;     /* of the log's files; 0 = default */
    uint32_t settle_timeout_ms; /* how long a search waits for the tables; 0 = 30,000 */
    /* Called now and then while tables are brought up to date. */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *progress_arg;
} cx_ledger_options;

#define CX_LEDGER_OPTIONS_INIT        \
    {                                 \
        NULL, false, 0, 0, NULL, NULL \
    }

/*
 * Makes the folder (its parent must exist) and an empty log.  `scheme`, which says how everything
 * is hashed and never changes, is "cortex-1" (NULL = that) or "matrix-1" (§1.1).  CX_E_EXISTS when
 * there is a home (CX_E_BUSY while it is open); CX_E_USAGE "InvalidArgument" for another scheme.
 */
CX_API CX_RESULT cx_ledger_make(const char *path, const char *scheme,
                                const cx_ledger_options *options, cx_err *err);
/*
 * Cuts off what a crash left unfinished, and brings the tables up to date.  CX_E_NOT_FOUND
 * "NoHome"; CX_E_BUSY "Locked" names the process that writes.  `options` may be NULL.
 */
CX_API CX_RESULT cx_ledger_open(const char *path, const cx_ledger_options *options, cx_ledger **out,
                                cx_err *err);
/* NULL is fine.  The ledger is gone even when this fails; then the tables are behind the log, which
 * the next opening mends. */
CX_API CX_RESULT cx_ledger_close(cx_ledger *ledger, cx_err *err);

/* "cortex-1" or "matrix-1": what new actors get; static storage. */
CX_API const char *cx_ledger_scheme(const cx_ledger *ledger);
/* Bytes of an unacknowledged write that opening found unfinished and cut off; mostly 0. */
CX_API uint64_t cx_ledger_torn_bytes(const cx_ledger *ledger);

/* A copy, itself a home, while writers go on.  CX_E_EXISTS when something stands at `to_path`. */
CX_API CX_RESULT cx_ledger_backup(cx_ledger *ledger, const char *to_path, cx_err *err);

/* --- actors --------------------------------------------------------------------------------- */

typedef struct cx_ledger_actor_info {
    cx_str name;        /* borrowed from the ledger */
    const char *scheme; /* static storage */
    uint64_t entry_count;
    uint64_t snapshot_count; /* ever made: the next one's number */
    uint64_t live_memories;
    uint64_t tombstoned;
    uint64_t edge_count; /* removed ones included */
} cx_ledger_actor_info;

/* CX_E_NOT_FOUND "NoActor". */
CX_API CX_RESULT cx_ledger_actor(cx_ledger *ledger, const char *actor, cx_ledger_actor_info *out,
                                 cx_err *err);
/* Calls `visit` for each, in the order of their first entries, until it returns false.  It may call
 * the ledger. */
CX_API CX_RESULT cx_ledger_each_actor(cx_ledger *ledger,
                                      bool (*visit)(void *arg, const cx_ledger_actor_info *actor),
                                      void *arg, cx_err *err);

/* --- appending (§3) ------------------------------------------------------------------------- */

typedef struct cx_ledger_draft {
    const char *kind; /* "raw", or a dotted one of your own: a-z 0-9 _ and '.', at most 64 bytes */
    cx_bytes payload; /* opaque here; at most 512 MiB, above 1 MiB always committed */
    bool committed;   /* stands beside the entry, which holds a salted hash: can be erased */
    const char *by;   /* who wrote it, at most 1024 bytes; NULL = left out */
    int64_t created_at_ns; /* since 1970; 0 = now */
} cx_ledger_draft;

#define CX_LEDGER_DRAFT_INIT            \
    {                                   \
        NULL, {NULL, 0}, false, NULL, 0 \
    }

/*
 * Appends all of the drafts, or none, and returns when they are on the disk: *out_first_seq (may be
 * NULL) is the first one's number, the others follow.  The actor comes into being with its first
 * entry.  Callers in several threads share one sync.  CX_E_USAGE "InvalidArgument" (kind, actor, no
 * drafts), CX_E_LIMIT, CX_E_DENIED on a read-only home.
 */
CX_API CX_RESULT cx_ledger_append(cx_ledger *ledger, const char *actor,
                                  const cx_ledger_draft *drafts, size_t count,
                                  uint64_t *out_first_seq, cx_err *err);
/* The same without waiting for the disk: *out_ticket is for cx_ledger_wait. */
CX_API CX_RESULT cx_ledger_append_later(cx_ledger *ledger, const char *actor,
                                        const cx_ledger_draft *drafts, size_t count,
                                        uint64_t *out_first_seq, uint64_t *out_ticket, cx_err *err);
/* Returns when what the ticket stands for, and all before it, is on the disk. */
CX_API CX_RESULT cx_ledger_wait(cx_ledger *ledger, uint64_t ticket, cx_err *err);
/* Returns when all that was appended so far, by anybody, is on the disk. */
CX_API CX_RESULT cx_ledger_sync(cx_ledger *ledger, cx_err *err);

/* --- reading -------------------------------------------------------------------------------- */

/* All that is borrowed is borrowed from `memory`. */
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
    uint8_t salt[32];      /* of a committed payload that is there; else zeros */
    bool has_subject;
    char subject[27];    /* the memory it is about, as ULID */
    cx_bytes bytes;      /* the entry itself, canonical CBOR */
    cx_digest leaf_hash; /* H(bytes): its leaf in the journal */
    cx_owned memory;
} cx_ledger_entry;

/* CX_E_NOT_FOUND "NoActor", "NoEntry".  Give it back with cx_ledger_entry_done. */
CX_API CX_RESULT cx_ledger_read(cx_ledger *ledger, const char *actor, uint64_t seq,
                                cx_ledger_entry *out, cx_err *err);
CX_API void cx_ledger_entry_done(cx_ledger_entry *entry);

/*
 * Destroys the payload of a committed entry, after an entry that says who and why (§10, Redact).
 * No root changes but by that entry; every proof still holds.  CX_E_NOT_FOUND "NotFound",
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
    cx_digest overall_root; /* commits to all of it */
} cx_ledger_state;

/* One consistent view, on the disk when this returns.  CX_E_NOT_FOUND "NoActor". */
CX_API CX_RESULT cx_ledger_roots(cx_ledger *ledger, const char *actor, cx_ledger_state *out,
                                 cx_err *err);

/* A snapshot's manifest.  All that is borrowed is borrowed from `memory`. */
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
    cx_bytes bytes; /* canonical CBOR; worth keeping outside the home */
    cx_owned memory;
} cx_ledger_manifest;

CX_API void cx_ledger_manifest_done(cx_ledger_manifest *manifest);

/* Keeps the state as it is, so that it can be proven later; changes no root.  `reason`: at most 255
 * bytes, NULL = "explicit".  CX_E_NOT_FOUND "NoActor". */
CX_API CX_RESULT cx_ledger_snapshot_make(cx_ledger *ledger, const char *actor, const char *reason,
                                         cx_ledger_manifest *out, cx_err *err);
/* CX_E_NOT_FOUND "NoActor", "SnapshotNotFound", as all that follow. */
CX_API CX_RESULT cx_ledger_snapshot_get(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                        cx_ledger_manifest *out, cx_err *err);
/* The newest with that overall root. */
CX_API CX_RESULT cx_ledger_snapshot_find(cx_ledger *ledger, const char *actor,
                                         const cx_digest *overall_root, cx_ledger_manifest *out,
                                         cx_err *err);
/* Those that were not dropped, oldest first, until `visit` returns false.  Each is borrowed for the
 * call, which may call the ledger. */
CX_API CX_RESULT cx_ledger_each_snapshot(cx_ledger *ledger, const char *actor,
                                         bool (*visit)(void *arg,
                                                       const cx_ledger_manifest *manifest),
                                         void *arg, cx_err *err);

/* The bytes to sign with Ed25519, outside of this library. */
CX_API CX_RESULT cx_ledger_snapshot_to_sign(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                            cx_owned *out, cx_err *err);

typedef struct cx_ledger_seal {
    const char *signed_by; /* who signed, as readers will see it; needed */
    cx_pubkey key;
    cx_signature signature;
    const char *by; /* who writes the entry; NULL = left out */
} cx_ledger_seal;

/* Takes the signature into manifest and journal.  CX_E_DENIED "BadSignature" when it is not the
 * key's over this manifest, CX_E_EXISTS "AlreadySealed". */
CX_API CX_RESULT cx_ledger_snapshot_seal(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                         const cx_ledger_seal *seal, cx_err *err);
/* Journaled; proofs made at it before still hold. */
CX_API CX_RESULT cx_ledger_snapshot_drop(cx_ledger *ledger, const char *actor, uint64_t snapshot,
                                         const char *by, cx_err *err);

/* --- checking a whole home (§10.2, §11) ------------------------------------------------------- */

/*
 * Something from outside the home that was true once.  Without one nobody can see whether the
 * newest entries were cut off, or all of it was written anew.
 */
typedef struct cx_ledger_anchor {
    uint64_t journal_size;
    cx_digest journal_root;
    cx_bytes manifest; /* one that was kept, in place of the two above; empty = those */
} cx_ledger_anchor;

typedef struct cx_ledger_verify_options {
    const cx_alloc *alloc;           /* NULL = default */
    const char *actor;               /* NULL = all */
    const cx_ledger_anchor *anchors; /* of the actor, which must then be given */
    size_t anchor_count;
    bool require_anchored;     /* without an anchor that holds: indeterminate */
    const cx_pubkey *seal_key; /* NULL = signatures of seals are not checked */
    size_t finding_max;        /* kept; 0 = 1000 */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *progress_arg;
} cx_ledger_verify_options;

#define CX_LEDGER_VERIFY_OPTIONS_INIT                   \
    {                                                   \
        NULL, NULL, NULL, 0, false, NULL, 0, NULL, NULL \
    }

typedef struct cx_ledger_report cx_ledger_report;

/*
 * Reads the log from its first byte, derives everything again, and compares.  Never writes; a
 * process that writes to the home may go on.  Damage is a verdict; errors: CX_E_NOT_FOUND "NoHome",
 * CX_E_USAGE (anchors without an actor), CX_E_FORMAT (an anchor that is no manifest), CX_E_IO.
 */
CX_API CX_RESULT cx_ledger_verify(const char *path, const cx_ledger_verify_options *options,
                                  cx_ledger_report **out, cx_err *err);
CX_API void cx_ledger_report_close(cx_ledger_report *report); /* NULL is fine */
CX_API cx_verdict cx_ledger_report_verdict(const cx_ledger_report *report);

typedef struct cx_ledger_finding {
    const char *check;  /* "log", "entry", "journal", "version", "head", "edge", "state",
                           "manifest", "seal", "payload", "counter", "table", "anchor" */
    const char *reason; /* "LogDamaged", "Truncated", "Forked", ... */
    cx_str actor;
    cx_str where;   /* "seq 12", a key, a file and offset */
    cx_str message; /* expected, found */
} cx_ledger_finding;

/* Findings kept; there may be more, see the totals. */
CX_API size_t cx_ledger_report_count(const cx_ledger_report *report);
/* Borrowed from the report; `index` < count. */
CX_API void cx_ledger_report_finding(const cx_ledger_report *report, size_t index,
                                     cx_ledger_finding *out);

/* What was checked: a verdict never comes without it. */
typedef struct cx_ledger_totals {
    uint64_t actors, entries, memories, versions, edges, manifests, payloads, erased;
    uint64_t findings;   /* kept or not */
    bool anchored;       /* an anchor held: the past up to it is neither cut nor rewritten */
    bool tables_checked; /* false: absent or unreadable, which does no harm; see tables_note */
    cx_str tables_note;
    uint64_t torn_bytes; /* an unfinished write at the log's end: a crash, nothing acknowledged */
} cx_ledger_totals;

CX_API void cx_ledger_report_totals(const cx_ledger_report *report, cx_ledger_totals *out);
/* Each actor and its roots as the log gives them; borrowed. */
CX_API size_t cx_ledger_report_actor_count(const cx_ledger_report *report);
CX_API void cx_ledger_report_actor(const cx_ledger_report *report, size_t index,
                                   cx_ledger_actor_info *out, cx_ledger_state *out_state);

/* --- the tables ------------------------------------------------------------------------------- */

typedef enum cx_ledger_rebuild_mode {
    CX_LEDGER_REBUILD,         /* differing tables are an error, "RootMismatch", and stay */
    CX_LEDGER_REBUILD_REPLACE, /* differing tables are replaced: the log is the truth */
    CX_LEDGER_REBUILD_COMPARE  /* nothing is written */
} cx_ledger_rebuild_mode;

typedef struct cx_ledger_rebuilt {
    uint64_t entries, records;
    bool changed; /* the old tables differed, or there were none */
    bool resumed; /* an earlier run that was interrupted was taken up */
} cx_ledger_rebuilt;

/*
 * Makes the tables anew from the log, beside the old ones, then puts them in place at once.  The
 * home must not be open for writing: CX_E_BUSY.  CX_E_NOT_FOUND "NoHome", CX_E_CONFLICT
 * "RootMismatch".  `out` may be NULL.
 */
CX_API CX_RESULT cx_ledger_rebuild(const char *path, const cx_ledger_options *options,
                                   cx_ledger_rebuild_mode mode, cx_ledger_rebuilt *out,
                                   cx_err *err);

/* --- roots as text ---------------------------------------------------------------------------- */

#define CX_DIGEST_TEXT_SIZE 65
/* 64 lower-case hex digits and a zero byte. */
CX_API void cx_digest_to_text(const cx_digest *digest, char out[CX_DIGEST_TEXT_SIZE]);
/* 64 hex digits; false for anything else, *out is then untouched. */
CX_API bool cx_digest_from_text(const char *text, cx_digest *out);

#ifdef __cplusplus
}
#endif
#endif

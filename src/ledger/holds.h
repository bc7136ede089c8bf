/*
 * holds.h - legal holds: what must not be destroyed while they last (erasure.md §2).
 *
 * A hold is an entry `hold.add` in the journal `holds`, and is named by its number there; an entry
 * `hold.release` ends it.
 *
 *   H1  The code that destroys content asks inside the transaction that records the erasure, so
 *       a hold that is durable before the erasure always wins.
 *   H2  A hold whose own payload cannot be read holds everything: damage never releases content.
 */
#ifndef CX_LEDGER_HOLDS_H
#define CX_LEDGER_HOLDS_H

#include "ledger/home.h"

#define CX_HOLDS_ACTOR "holds"
#define CX_HOLD_SUBJECT_MIN 3
#define CX_HOLD_TEXT_MAX 1024
#define CX_HOLD_REASON_MAX 4096
#define CX_HOLDS_MAX 10000 /* active ones */

/* All conditions that are given must be true of what it holds.  Texts without data are not given.
 */
typedef struct cx_hold {
    uint64_t seq; /* in the journal `holds`: its name */
    cx_str agent;
    cx_str subject;
    cx_str run;
    int64_t from_ns, to_ns; /* of the entry's time; INT64_MIN, INT64_MAX = open */
    cx_str reason;
    cx_str by;
    int64_t created_ns;
    bool unreadable; /* H2 */
    bool released;
    cx_str release_reason, released_by;
    int64_t released_ns;
} cx_hold;

typedef struct cx_holds {
    const cx_hold *items; /* in the order of their numbers */
    size_t count;
} cx_holds;

/* The active ones, and with `all` the released ones too; memory from the arena.  Also inside a
 * transaction of any actor.  None when there is no such journal. */
CX_RESULT cx_holds_load(cx_home *home, bool all, cx_arena *arena, cx_holds *out, cx_err *err);

/* Checks the conditions and records the hold; `seq`, times of creation and release are not read. */
CX_RESULT cx_hold_add(cx_home *home, const cx_hold *hold, int64_t now_ns, uint64_t *out_seq,
                      cx_err *err);
/* CX_E_NOT_FOUND "NoHold", CX_E_CONFLICT "HoldReleased". */
CX_RESULT cx_hold_release(cx_home *home, uint64_t seq, cx_str reason, cx_str by, int64_t now_ns,
                          cx_err *err);

/* What is to be destroyed, as a hold sees it. */
typedef struct cx_hold_target {
    cx_str actor;
    int64_t first_ns, last_ns; /* times of its first and last entry */
    const cx_bytes *contents;
    size_t content_count;
    cx_str kind;          /* of an entry; contents[0] is its payload */
    const cx_id *subject; /* of an entry, or NULL */
} cx_hold_target;
/* The first hold that keeps it, or NULL. */
const cx_hold *cx_holds_find(const cx_holds *holds, const cx_hold_target *target);
/* CX_E_DENIED "OnHold", naming the hold. */
cx_status cx_hold_fail(const cx_hold *hold, cx_err *err);

/*
 * The subject of an entry run.bundle_part: it binds the run and the bytes, which are compressed and
 * name nothing (decision 56). So a hold of the run keeps them.
 */
cx_id cx_run_part_subject(cx_str run_id, const cx_digest *sha256);

/*
 * Whether content names `text`, by itself and not as a part of a longer word.  JSON escapes are
 * resolved, texts in CBOR are looked at one by one; in other binary content a word may begin
 * anywhere, since the length before it can look like a letter.
 */
bool cx_content_names(cx_bytes content, cx_str text);

#endif

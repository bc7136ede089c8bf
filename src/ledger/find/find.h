/*
 * find.h - what has to do with a hash: entries, and snapshots that are retained.
 *
 * Found without reading the log, at a cost that nearly does not grow with it (find/hash_rows.h).
 * Of an entry: its leaf hash, the commitment to its payload, a home root it records, and what
 * derivers name (cx_derive_hash, cx_derive_name).  Of a snapshot: its roots and the digest of its
 * manifest.
 */
#ifndef CX_LEDGER_FIND_FIND_H
#define CX_LEDGER_FIND_FIND_H

#include "ledger/home.h"

/* Hex digits of a hash that are asked for, at least. */
#define CX_FIND_DIGITS_MIN 8

typedef struct cx_hash_place {
    cx_str actor;
    bool snapshot; /* else an entry */
    uint64_t number;
} cx_hash_place;

/*
 * The places that hashes, or ids, which begin with these hex digits in lower case lead to, oldest
 * entries first; at most `max`.  They are candidates: of longer texts only 16 digits are compared,
 * a snapshot may have been dropped, and rows are not believed.  Read the place and compare.
 * Everything that was recorded before the call is looked at.  CX_E_BUSY "Remote".
 */
CX_RESULT cx_home_find_hash(cx_home *home, cx_str digits, size_t max, cx_arena *arena,
                            const cx_hash_place **out, size_t *out_count, cx_err *err);
/* An entry with the changes of its frame, as cx_tail_next shows it but for the position; memory
 * from the arena. */
CX_RESULT cx_home_entry_item(cx_home *home, cx_str actor, uint64_t seq, cx_arena *arena,
                             cx_tail_item *out, cx_err *err);

#endif

/*
 * frame.h - the layout of the ledger's frames in the log: actor, entry, records, and the erasable
 * part (ledger.md §5, docs/formats/log.md).
 *
 * Guarded part (integers big-endian):
 *
 *     offset  size
 *     0       1      format, 1
 *     1       1      flags: bit 0 there is an entry; bit 1 it has a committed payload;
 *                    bit 2 a subject follows
 *     2       2      size of the actor's name, then the name
 *             4      size of the entry, then the entry     (with bit 0)
 *             16     subject: the memory the entry is about (with bit 2)
 *             4      number of changes, then each:
 *                      1  0 put, 1 removed, 2 put with the value in the erasable part
 *                      2  size of the key, then the key
 *                      4  size of the value           (0 and 2)
 *                         the value                   (0)
 *                     32  the value's hash            (2)
 *
 * Erasable part: salt (32) and payload when bit 1 is set, then the values of kind 2 in order.
 */
#ifndef CX_LEDGER_FRAME_H
#define CX_LEDGER_FRAME_H

#include "ledger/home.h"
#include "log/api.h"

typedef struct cx_ledger_frame {
    cx_str actor;
    cx_bytes entry; /* canonical bytes; empty = none */
    bool has_subject;
    cx_id subject;
    bool committed;      /* salt and payload are in the erasable part */
    const uint8_t *salt; /* 32 bytes; NULL when erased */
    cx_bytes payload;
    bool erased;
    const cx_change *changes;
    size_t change_count;
} cx_ledger_frame;

/* Where a committed payload begins in the erasable part: after its salt. */
#define CX_FRAME_PAYLOAD_AT 32

/* CX_E_LIMIT for a key or value longer than a frame allows. */
CX_RESULT cx_change_check(const cx_change *change, cx_err *err);
/* The erasable part when it already lies in memory as it will be written: a committed payload
 * directly after its salt, and nothing else.  Empty: it has to be assembled. */
cx_bytes cx_frame_erasable_in_place(const cx_ledger_frame *frame);
/* Appends the two parts; `erasable` is NULL when that part is already in place. */
CX_RESULT cx_frame_encode(const cx_ledger_frame *frame, cx_buf *guarded, cx_buf *erasable,
                          cx_err *err);
/* Borrows from the parts; changes come from the arena.  CX_E_FORMAT "LogDamaged". */
CX_RESULT cx_frame_decode(const cx_log_frame *parts, bool erased, cx_arena *arena,
                          cx_ledger_frame *out, cx_err *err);

/* Marks the erasable part as destroyed, whether or not all of it has been overwritten yet. */
static inline bool cx_frame_erased(const cx_log_item *item)
{
    return item->erased || item->half_erased;
}

#endif

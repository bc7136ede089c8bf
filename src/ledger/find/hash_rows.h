/*
 * hash_rows.h - from the beginning of a hash to the entries and snapshots that have to do with it.
 *
 * The rows only lead to candidates: who asks reads each of them and compares what it really says.
 *
 *   H1  The rows are a function of the log, whatever the flushes were: hashes are counted, and each
 *       65,536 of them leave the table hash_new for a block of 256 sorted rows.
 *   H2  A question reads one row a block and one range of hash_new, so that writing stays cheap:
 *       a hash is written once into a small table, and once at the end of a row.
 *   H3  Every row has a checksum, a block has all of its rows, and hash_new has as many as meta
 *       says: what is missing is damage, not an answer.
 *
 *     hash_new(head, actor, number, sum)   the newest; head = first 8 bytes of the hash
 *     hash_block(id, items)                256 * block + first byte of the hashes; 7 bytes of each
 *                                          hash, actor and number as varints; then a checksum
 *
 * A number is twice that of the entry, or twice that of the snapshot and one more.
 */
#ifndef CX_LEDGER_FIND_HASH_ROWS_H
#define CX_LEDGER_FIND_HASH_ROWS_H

#include "ledger/store.h"

/* Hashes that are in hash_new before they become a block. */
#define CX_HASH_BLOCK 65536
#define CX_HASH_BLOCK_ROWS 256

extern const char cx_hash_schema[];
extern const char cx_hash_clear[];

CX_RESULT cx_hash_prepare(cx_store *store, cx_err *err);
void cx_hash_finish(cx_tables *tables);

CX_RESULT cx_store_put_hash(cx_store *store, const cx_hash_row *row, cx_err *err);
/* Within a flush; adds to *count how many hashes came that were not in hash_new. */
CX_RESULT cx_store_write_hashes(cx_store *store, const cx_memtable *memtable, uint64_t *count,
                                cx_err *err);

/*
 * Shows each row whose head is in low .. high, which have their first byte in common; flushed rows
 * only.  CX_E_FORMAT "DatabaseDamaged" when one that is read is damaged or missing.
 */
CX_RESULT cx_store_find_hashes(cx_store *store, uint64_t low, uint64_t high,
                               cx_status (*row)(void *arg, const cx_hash_row *row, bool *stop,
                                                cx_err *err),
                               void *arg, cx_err *err);
/* Reads all of them; adds their number to *count. */
CX_RESULT cx_store_check_hashes(cx_store *store, uint64_t *count, cx_err *err);

#endif

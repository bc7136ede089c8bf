/*
 * slots.h - an RFC 6962 tree whose leaves may be replaced: one leaf for each of many objects that
 * change (ledger.md §15).
 *
 * The journal tree (mmr.h) never changes a leaf and keeps every past root.  This one keeps only the
 * tree as it is now, and replacing a leaf costs one path.  Hashes are those of cortex-1.
 * Not thread-safe.
 */
#ifndef CX_TREE_SLOTS_H
#define CX_TREE_SLOTS_H

#include "base/api.h"
#include "tree/mmr.h"

typedef struct cx_slots cx_slots;

CX_RESULT cx_slots_open(const cx_alloc *alloc, cx_slots **out, cx_err *err);
void cx_slots_close(cx_slots *slots); /* NULL is fine */

uint64_t cx_slots_count(const cx_slots *slots);
/* Replaces leaf `index`, or appends it when index is the count; index <= count. */
CX_RESULT cx_slots_put(cx_slots *slots, uint64_t index, const cx_digest *leaf_hash, cx_err *err);
/* H("") for no leaves. */
cx_digest cx_slots_root(const cx_slots *slots);
/* The path that cx_mmr_inclusion_holds checks with CX_SCHEME_CORTEX_1; index < count. */
void cx_slots_inclusion(const cx_slots *slots, uint64_t index, cx_mmr_path *out);

#endif

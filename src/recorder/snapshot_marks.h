/*
 * snapshot_marks.h - the positions of snapshots in a lattice of recorded traces.
 */
#ifndef CX_RECORDER_SNAPSHOT_MARKS_H
#define CX_RECORDER_SNAPSHOT_MARKS_H

#include "ledger/api.h"
#include "view/api.h"

#define CX_SNAPSHOT_MARKS_MAX 10000 /* of one lattice */

/*
 * For each branch agent/.. of a lattice that cx_recorder_lattice made of this data directory, or of
 * an older state of it: the snapshots of its journal that were not dropped, oldest first, each
 * after the newest node that comes from one of its entries.  Those before the first node are left
 * out.  The list and its texts live in the arena.
 */
CX_RESULT cx_recorder_snapshot_marks(cx_home *home, const cx_lattice *lattice, cx_arena *arena,
                                     cx_lattice_view_snapshot **out, size_t *out_count,
                                     cx_err *err);

#endif

/*
 * run_part.h - some events of a long run, without reading those before them
 * (docs/formats/view.md).
 *
 *   P1  The nodes are those of the whole run, with the same hashes, as long as the events before
 *       them did not change since places were made (run_places.h).
 *   P2  A parent that is not in the part counts as known when it was the newest node of its branch
 *       where the part begins.
 *   P3  Of a run whose places were made, what is read is at most CX_RUN_PLACES_STRIDE events more
 *       than the part has, and the places: one for as many events, and a line for each task.
 */
#ifndef CX_PROVENANCE_RUN_PART_H
#define CX_PROVENANCE_RUN_PART_H

#include <cortex/lattice.h>

#include "base/api.h"
#include "bundle/api.h"
#include "recorder/api.h"

/* "<run_id>" is what has parts; "<run_id>/<branch>" has none.  Of a run of any length only lines
 * are counted, those after its places.  No node is looked for.  CX_E_NOT_FOUND "NoRun". */
CX_RESULT cx_run_extent(const cx_run_store *store, cx_str name, cx_steps_extent *out, cx_err *err);

/*
 * Events `from` .. `from` + CX_STEPS_PART - 1, counted from 0, loaded from `lines` and verified.
 * CX_E_NOT_FOUND "NoRun", "NoPart"; CX_E_UNSUPPORTED "NoParts"; CX_E_SYNTAX, CX_E_FORMAT,
 * CX_E_LIMIT with err->line for events that cannot be read.
 */
CX_RESULT cx_run_open_part(const cx_run_store *store, cx_str name, uint64_t from,
                           const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                           cx_lattice_report **out_report, cx_err *err);

/* Of a run that has more events than a part: its places, so that its parts open at once. */
CX_RESULT cx_run_part_prepare(const cx_run_store *store, cx_str run_id, cx_err *err);

/* cx_run_open_part of an open bundle, with other sizes: for tests. */
typedef struct cx_run_part_sizes {
    uint64_t stride, part;
} cx_run_part_sizes;
CX_RESULT cx_run_part_of(const cx_run_store *store, cx_run_bundle *bundle, cx_str run_id,
                         const cx_run_part_sizes *sizes, uint64_t from,
                         const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                         cx_lattice_report **out_report, cx_err *err);

#endif

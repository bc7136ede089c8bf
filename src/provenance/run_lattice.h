/*
 * run_lattice.h - a governed run as a lattice (decision 0017, formats/run-lattice.md): one node an
 * event, one branch a task, and one for the governor.
 *
 * Nodes are a function of the bytes of events.jsonl: the hashes are always the same.  A run in
 * progress has a lattice too, of its events so far.
 */
#ifndef CX_PROVENANCE_RUN_LATTICE_H
#define CX_PROVENANCE_RUN_LATTICE_H

#include <cortex/lattice.h>

#include "base/api.h"

#define CX_RUN_LATTICE_GOVERNOR "governor"

/*
 * Appends the nodes as JSON Lines.  `branch` is a task id or "governor": that branch and all that
 * it descends from; data NULL = the whole run.  CX_E_NOT_FOUND "NoBranch", CX_E_SYNTAX and
 * CX_E_FORMAT with err->line for events that cannot be read.
 */
CX_RESULT cx_run_lattice_lines(cx_str events, cx_str branch, cx_buf *out, cx_err *err);
/* The same, loaded from `lines`, which must outlive it. */
CX_RESULT cx_run_lattice(cx_str events, cx_str branch, const cx_lattice_options *options,
                         cx_buf *lines, cx_lattice **out, cx_err *err);

#endif

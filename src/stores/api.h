/*
 * stores - indexes of recorded data other than traces: session files, governed runs, and the inbox
 * over all of it.
 *
 * Knows the ledger and the trace index; knows nothing of HTTP or of how data is received.
 *
 * Invariants (cited by tests and asserts):
 *
 *   I1  What was recorded first about an event, a seal or a byte of a file is what counts.
 *   I2  An entry that cannot be read as ours is ignored; it is no error of a run or a session.
 */
#ifndef CX_STORES_API_H
#define CX_STORES_API_H

#include "stores/actions.h"
#include "stores/inbox.h"
#include "stores/run_bundle.h"
#include "stores/run_end.h"
#include "stores/run_index.h"
#include "stores/run_list.h"
#include "stores/run_object.h"
#include "stores/session_files.h"
#include "stores/session_index.h"
#include "stores/session_part.h"

#endif

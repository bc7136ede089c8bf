/*
 * external.h - data received in external formats, as a lattice: `otel` branches
 * (docs/formats/otlp.md §4), and archived sessions (docs/formats/sessions.md §4).
 *
 * It is in this module because it needs both the recorder's index of OTLP requests and the readers
 * of `import`, which do not know each other; the command line uses it too.
 */
#ifndef CX_SERVER_EXTERNAL_H
#define CX_SERVER_EXTERNAL_H

#include <cortex/lattice.h>

#include "base/api.h"
#include "ledger/api.h"
#include "recorder/api.h"

/* "otel", "otel/TRACE_ID", "otel/service/NAME", "session/NAME", "session/ID": names this file
 * answers for. */
bool cx_external_is(cx_str branch);

typedef struct cx_external_options {
    cx_str branch;    /* cx_external_is */
    size_t max_bytes; /* of the requests or files read; 0 = no limit.  CX_E_LIMIT "U_LIMIT" */
} cx_external_options;

/*
 * Appends the nodes as JSON Lines: a function of the records that were accepted and are not erased,
 * and of nothing else, neither the order in which they came nor the requests they came in.
 * CX_E_NOT_FOUND "NoBranch", CX_E_USAGE for a malformed branch name.
 */
CX_RESULT cx_external_lines(cx_home *home, const cx_external_options *wanted, cx_buf *out,
                            cx_err *err);
/* The same, loaded from `lines`, which must outlive it. */
CX_RESULT cx_external_lattice(cx_home *home, const cx_external_options *wanted,
                              const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                              cx_err *err);

/* --- parts of sessions (docs/formats/view.md) ------------------------------------------------- */

/*
 * Entries `from` .. `from` + CX_STEPS_PART - 1, loaded from `lines` and verified: lines of the
 * session's file with what hooks decided meanwhile (stores/session_part.h), or what hooks recorded
 * of a session that has no file.  CX_E_NOT_FOUND "NoBranch", "NoPart"; CX_E_UNSUPPORTED "NoParts".
 */
CX_RESULT cx_external_part(cx_home *home, cx_str branch, uint64_t from,
                           const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                           cx_lattice_report **out_report, cx_err *err);
/* How long a session is; `node`: "at:0:LINE", "src:ID", or data NULL.  Of what cannot be opened in
 * parts, out->parts is false. */
CX_RESULT cx_external_extent(cx_home *home, cx_str branch, cx_str node, cx_steps_extent *out,
                             cx_err *err);

#endif

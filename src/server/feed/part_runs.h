/*
 * part_runs.h - governed runs of a part of a fleet, as its nodes show them: no node has a
 * repository, so they are read from the journal and from the bundles that are stored there
 * (stores/run_bundle.h, decision 0056).
 */
#ifndef CX_SERVER_PART_RUNS_H
#define CX_SERVER_PART_RUNS_H

#include "audit/api.h"
#include "server/route.h"
#include "stores/api.h"

/* Bytes of a stored archive that a server reads into memory; a larger one is for `run export`. */
#define CX_PART_RUN_BYTES_MAX ((uint64_t)64 << 20)

/* Whether runs are read there: a part is served, and no repository. */
bool cx_part_runs_served(const cx_call *call);
/* As cx_run_index_find. */
CX_RESULT cx_part_run_known(cx_call *call, cx_str run_id, cx_run_known *out, cx_err *err);
/* Appends the archive of a run.  CX_E_NOT_FOUND also when it was erased; CX_E_FORMAT
 * CX_RUN_BUNDLE_CHANGED. */
CX_RESULT cx_part_run_archive(cx_call *call, cx_str run_id, cx_buf *out, cx_err *err);
CX_RESULT cx_part_run_open(cx_call *call, cx_str run_id, cx_run_bundle **out, cx_err *err);
/* As cx_run_view_list. */
CX_RESULT cx_part_run_list(cx_call *call, const cx_run_list_query *query, cx_json *out,
                           cx_err *err);

#endif

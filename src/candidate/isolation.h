/*
 * isolation.h - checks that a reviewer changed nothing (run.md §10): two snapshots must agree in
 * every file (tracked, untracked, ignored), folder, mode, link, index entry and flag, reference,
 * HEAD, config, hook and info file. Times and the index's stat data do not count.
 */
#ifndef CX_CANDIDATE_ISOLATION_H
#define CX_CANDIDATE_ISOLATION_H

#include "git/api.h"

/* One finding "reviewer_side_effect" a difference, where = path or name, detail = "file", "folder",
 * "mode", "link", "index", "ref", "head", "repository".  At most 1,000; no finding = isolated.
 * `shared`: as in diff.h, references and work trees of others only inform. */
void cx_run_isolation_compare(const cx_snapshot *before, const cx_snapshot *after, bool shared,
                              cx_run_findings *findings);

#endif

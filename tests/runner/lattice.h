/*
 * lattice.h - the parts of the lattice suite's runner.
 */
#ifndef CX_TESTS_RUNNER_LATTICE_H
#define CX_TESTS_RUNNER_LATTICE_H

#include "lattice/lattice.h"
#include "tests/runner/runner.h"

/* lattice.c */

/* A report as it is compared: findings without detail, in one order. */
CX_RESULT runner_report(runner *r, const cx_json *report, cx_json *out, cx_err *err);

/* lattice_graph.c */

cx_status runner_graph_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status runner_graph_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err);

/* lattice_tables.c */

/* Answers the table of that name; false when there is no such table. */
bool runner_lattice_table(runner *r, cx_str name, cx_str file);

/* What a case calls lww, confidence, policy or manual. */
CX_RESULT runner_strategy(cx_str name, cx_merge_strategy *out, cx_err *err);
/* An object of agents and numbers, or null. */
CX_RESULT runner_priorities(runner *r, const cx_json *value, const cx_agent_priority **out,
                            size_t *out_count, cx_err *err);

#endif

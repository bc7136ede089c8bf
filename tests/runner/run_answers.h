/*
 * run_answers.h - the answers of the run suite's runner, for the table in run.c.
 */
#ifndef CX_TESTS_RUNNER_RUN_ANSWERS_H
#define CX_TESTS_RUNNER_RUN_ANSWERS_H

#include "contract/policy.h"
#include "tests/runner/run.h"

static inline cx_json run_text_or_null(const char *text)
{
    return text == NULL ? cx_json_make_null() : cx_json_make_str(cx_str_z(text));
}

/* run_schema.c */
cx_status run_report_schema_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);

/*
 * The repository that the cases of policies and contracts mean: registry, skills, tools and schemas
 * are those of the folder upstream/ next to the cases where there is one, all else is what the
 * program carries; every name of a commit resolves.  run_contract.c
 */
cx_run_repo run_case_repo(runner *r);
/* Its policies. */
CX_RESULT run_case_policy(runner *r, cx_run_policy *out, cx_err *err);

/* run_paths.c */
cx_status run_path_lint_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_path_match_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_path_overlap_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);

/* run_policy.c */
cx_status run_policy_gate_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_pack_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_pack_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_shell_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_handoff_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
cx_status run_simple_gate_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);

/* run_contract.c */
cx_status run_contract_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);
bool run_contract_agrees(const cx_json *expected, const cx_json *got);
cx_status run_legacy_hash_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);

/* run_lock.c */
cx_status run_lock_got(runner *r, const cx_json *item, cx_json *out, cx_err *err);

#endif

/*
 * schemas.h - the project's own schemas (run.md §2), compiled on first use and cached for the
 * process.
 */
#ifndef CX_RULES_SCHEMAS_H
#define CX_RULES_SCHEMAS_H

#include "schema/api.h"
#include "rules/run.h"

/* "task_contract.v1.json". Borrowed for the life of the process; any thread. CX_E_NOT_FOUND when no
 * such schema is built in. */
CX_RESULT cx_run_schema(const char *name, const cx_schema **out, cx_err *err);

/*
 * Validates an instance as all gates do, with date-time asserted: one rejecting finding under
 * `rule` for each mismatch (where = JSON pointer of the instance). No findings = valid.
 */
CX_RESULT cx_run_schema_check(const char *name, const cx_json *instance, const char *rule,
                              cx_run_findings *findings, cx_err *err);

/*
 * The same with an external schema, such as one bound to a contract (§6): loaded strictly from its
 * bytes. An unusable schema is an error (CX_E_FORMAT, CX_E_SYNTAX, CX_E_LIMIT).
 */
CX_RESULT cx_run_schema_check_bytes(cx_str schema_text, const cx_json *instance, const char *rule,
                                    cx_run_findings *findings, cx_err *err);

/*
 * The schema registry (SCHEMA_REGISTRY_CHECK, §2): compares what schemas/schema_registry.json
 * states of each file with its bytes. `read` returns the bytes of one file of the folder by its
 * name ("x.v1.json"), CX_E_NOT_FOUND when it is absent; the bytes live in the arena of the
 * findings. NULL: the files built into the program.  Findings: SR01 registry missing or unreadable,
 * SR02 file missing, SR03 bytes or digest differ.
 */
typedef cx_status (*cx_run_schema_read)(void *arg, const char *name, cx_arena *arena, cx_str *out,
                                        cx_err *err);
CX_RESULT cx_run_schema_registry_check(cx_run_schema_read read, void *arg,
                                       cx_run_findings *findings, cx_err *err);

#endif

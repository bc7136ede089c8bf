/*
 * contract_parts.h - shared by the files contract*.c, and internal to them.
 */
#ifndef CX_CONTRACT_CONTRACT_PARTS_H
#define CX_CONTRACT_CONTRACT_PARTS_H

#include "contract/contract.h"

typedef struct contract_lint {
    cx_contract *contract;
    const cx_run_policy *policy;
    const cx_run_repo *repo; /* may be NULL */
    const cx_run_path_context *ground;
    const cx_contract_checks *checks;
    cx_arena *arena;
    cx_run_findings *findings;
    cx_err *err;
} contract_lint;

/* A member that is a string, else a text without data. */
static inline cx_str cx_contract_text(const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_STRING ? cx_json_text(value)
                                                          : cx_str_from(NULL, 0);
}

/* For "%.*s": at most `most` bytes of text from outside. */
#define CX_CONTRACT_SHOW(text, most)                                    \
    (int)((text).size < (size_t)(most) ? (text).size : (size_t)(most)), \
        (text).data == NULL ? "" : (text).data

/* "/allowed_paths/3" and, with a member, "/inputs/artifacts/0/uri"; "" when out of memory, which
 * the findings then report. */
cx_str cx_contract_where(contract_lint *lint, const char *list, size_t index, const char *name);

/* A number that is an integer for the schema: 60, 60.0 and 6e1 are. Capped at 2^32 - 1, never
 * negative; 0 for NULL and null. */
uint32_t cx_contract_integer(const cx_json *value);

/* contract_schema.c: K04, K15 */
cx_status cx_contract_lint_schema(contract_lint *lint);
cx_status cx_contract_lint_artifacts(contract_lint *lint);
/* contract_refs.c: K05 (target_ref), K07 */
cx_status cx_contract_lint_target(contract_lint *lint);
cx_status cx_contract_lint_refs(contract_lint *lint);
/* contract_role.c: K08 */
void cx_contract_lint_drift(contract_lint *lint);

#endif

/*
 * run_contract.c - contract.json and legacy_contract_hash.json (run.md §3).
 *
 * The cases' repository: see run_answers.h.  Of the prompts that references name it has one.
 */
#include "contract/contract_command.h"
#include "base/hex.h"
#include "rules/assets.h"
#include "tests/runner/run_answers.h"

static const char the_commit[] = "0123456789012345678901234567890123456789";

static cx_status resolve(void *arg, cx_str ref, cx_arena *arena, cx_str *out_commit, cx_err *err)
{
    (void)arg;
    (void)ref;
    (void)arena;
    (void)err;
    *out_commit = CX_STR(the_commit);
    return CX_SUCCESS;
}

static cx_status in_head(void *arg, cx_str commit, bool *out, cx_err *err)
{
    (void)arg;
    (void)commit;
    (void)err;
    *out = true;
    return CX_SUCCESS;
}

/* Whether the cases say that this file is the one in upstream/: packs and command lists are not, as
 * those differ from run.md, which decides. */
static bool is_of_upstream(cx_str path)
{
    static const char *const names[] = {"policies/agent_registry.json",
                                        "policies/skills_bundle_registry.json",
                                        "policies/mcp_allowlist.json"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_str_is(path, names[i]))
            return true;
    return cx_str_starts(path, CX_STR("schemas/"));
}

static cx_status read_file(void *arg, cx_str commit, cx_str path, size_t limit_bytes,
                           cx_arena *arena, cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    runner *r = arg;
    cx_str text, name = cx_arena_copy_str(arena, path),
                 upstream = cx_arena_printf(arena, "upstream/%.*s", (int)path.size, path.data);
    (void)commit;
    (void)limit_bytes;
    *out = cx_str_bytes(CX_STR("a prompt\n"));
    *out_kind = CX_BLOB_FILE;
    if (name.data == NULL || upstream.data == NULL)
        return cx_fail_nomem(err);
    if (cx_str_eq(path, CX_STR("policies/agents/codex/roles/50_worker_core.md")))
        return CX_SUCCESS;
    if (is_of_upstream(path) && !cx_failed(runner_read(r, upstream, &text, NULL))) {
        *out = cx_str_bytes(text);
        return CX_SUCCESS;
    }
    /* A schema that is not here is looked for in the program, by the caller. */
    if (cx_str_starts(path, CX_STR("schemas/")) || !cx_run_asset(name.data, out))
        *out_kind = CX_BLOB_NONE;
    return CX_SUCCESS;
}

static cx_status list_files(void *arg, cx_str commit, cx_arena *arena, cx_run_tree *out,
                            cx_err *err)
{
    (void)arg;
    (void)commit;
    (void)arena;
    (void)err;
    *out = (cx_run_tree){NULL, 0};
    return CX_SUCCESS;
}

cx_run_repo run_case_repo(runner *r)
{
    return (cx_run_repo){r, resolve, in_head, read_file, list_files, NULL};
}

cx_status run_case_policy(runner *r, cx_run_policy *out, cx_err *err)
{
    const cx_run_repo repo = run_case_repo(r);
    cx_run_findings findings;
    cx_run_findings_init(&findings, &r->arena);
    cx_status status =
        cx_run_policy_load(&repo, CX_STR(the_commit), &r->arena, &findings, out, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status =
            cx_fail(err, CX_E_FORMAT, "the policies cannot be read: %.*s",
                    (int)findings.list.items[0].message.size, findings.list.items[0].message.data);
    cx_run_findings_done(&findings);
    return status;
}

/* K15 asks for the bytes of artifacts, which the folder of cases does not have. */
static bool is_asked(const cx_run_finding *finding)
{
    return !finding->informs && strcmp(finding->rule, "K15") != 0;
}

/* {schema_valid, contract_valid, rule, rules[]}: a case names one of the rules. */
static cx_status answer(runner *r, const cx_run_findings *findings, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena), rules = cx_json_list_begin(&r->arena);
    cx_json list;
    const char *first = NULL;
    for (size_t i = 0; i < findings->list.count; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        if (!is_asked(finding))
            continue;
        if (first == NULL)
            first = finding->rule;
        cx_json_list_add(&rules, run_text_or_null(finding->rule));
    }
    CX_TRY(cx_json_list_end_array(&rules, &list, err));
    cx_json_list_put(&object, CX_STR("schema_valid"),
                     cx_json_make_bool(!cx_run_findings_have(findings, "K01")));
    cx_json_list_put(&object, CX_STR("contract_valid"), cx_json_make_bool(first == NULL));
    cx_json_list_put(&object, CX_STR("rule"), run_text_or_null(first));
    cx_json_list_put(&object, CX_STR("rules"), list);
    return cx_json_list_end_object(&object, out, err);
}

cx_status run_contract_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_run_repo repo = run_case_repo(r);
    const cx_json *instance = cx_json_get(item, CX_STR("instance"));
    cx_run_findings findings;
    cx_contract contract;
    cx_run_policy policy;
    cx_buf text;
    cx_status status;
    if (instance == NULL)
        return cx_fail(err, CX_E_FORMAT, "the case has no 'instance'");
    cx_buf_init(&text, cx_alloc_default());
    cx_run_findings_init(&findings, &r->arena);
    CX_TRY_GOTO(status, cx_run_json_write(&text, instance, err));
    CX_TRY_GOTO(status, cx_run_contract_check(cx_buf_str(&text), &repo, NULL,
                                              &cx_run_contract_command_checks, &r->arena, &findings,
                                              &contract, &policy, err));
    CX_TRY_GOTO(status, answer(r, &findings, out, err));
done:
    cx_run_findings_done(&findings);
    cx_buf_done(&text);
    return status;
}

bool run_contract_agrees(const cx_json *expected, const cx_json *got)
{
    static const char *const same[] = {"schema_valid", "contract_valid"};
    const cx_json *rule = cx_json_get(expected, CX_STR("rule"));
    const cx_json *rules = cx_json_get(got, CX_STR("rules"));
    for (size_t i = 0; i < CX_COUNT_OF(same); i++) {
        const cx_json *a = cx_json_get(expected, cx_str_z(same[i]));
        const cx_json *b = cx_json_get(got, cx_str_z(same[i]));
        if (a == NULL || b == NULL || !cx_json_equal(a, b))
            return false;
    }
    if (rule == NULL || rule->type == CX_JSON_NULL)
        return rules != NULL && rules->count == 0;
    for (uint32_t i = 0; rules != NULL && i < rules->count; i++)
        if (cx_json_equal(rule, &rules->items[i]))
            return true;
    return false;
}

cx_status run_legacy_hash_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_digest digest;
    char hex[2 * sizeof digest.bytes];
    const cx_json *contract = cx_json_get(item, CX_STR("contract"));
    if (contract == NULL)
        return cx_fail(err, CX_E_FORMAT, "the case has no 'contract'");
    CX_TRY(cx_run_contract_legacy_hash(contract, &digest, err));
    cx_hex_encode((cx_bytes){digest.bytes, sizeof digest.bytes}, hex);
    return runner_string(r, cx_str_from(hex, sizeof hex), out, err);
}

/*
 * run_tamper.c - tamper.json, and the golden bundles as they are (run.md §17, §18).
 */
#include "os/folder.h"
#include "base/io.h"
#include "audit/verify.h"
#include "tests/runner/run.h"
#include "tests/support/tamper.h"

/* {exit, codes} of one verification; `seal` may be NULL. */
static cx_status judge(runner *r, const char *folder, const cx_json *seal, cx_json *out,
                       cx_err *err)
{
    cx_run_bundle *bundle;
    cx_run_verdict verdict;
    cx_run_witness witness = {.seal = seal};
    CX_TRY(cx_run_bundle_open(NULL, NULL, folder, &bundle, err));
    cx_status status = cx_run_verify(bundle, &witness, &r->arena, &verdict, err);
    if (!cx_failed(status)) {
        const char *const *codes = NULL;
        size_t count = 0;
        cx_json list_value = cx_json_make_null();
        cx_json_list list = cx_json_list_begin(&r->arena);
        status = cx_run_verdict_codes(&verdict, &r->arena, &codes, &count, err);
        for (size_t i = 0; i < count; i++)
            cx_json_list_add(&list, cx_json_make_str(cx_str_z(codes[i])));
        if (!cx_failed(status))
            status = cx_json_list_end_array(&list, &list_value, err);
        list = cx_json_list_begin(&r->arena);
        cx_json_list_put(&list, CX_STR("exit"),
                         cx_json_make_int(&r->arena, cx_run_verdict_exit(&verdict)));
        cx_json_list_put(&list, CX_STR("codes"), list_value);
        if (!cx_failed(status))
            status = cx_json_list_end_object(&list, out, err);
        cx_run_findings_done(&verdict.findings);
    }
    cx_run_bundle_close(bundle);
    return status;
}

/* The seal of a golden run; with `run_id` under that name. */
static cx_status read_seal(runner *r, const char *golden, cx_str run_id, cx_json *out, cx_err *err)
{
    CX_TRY(
        runner_read_json(r, cx_arena_printf(&r->arena, "golden/%s/seal.json", golden), out, err));
    if (run_id.size == 0)
        return CX_SUCCESS;
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (uint32_t i = 0; i < out->count; i++) {
        cx_str name = cx_json_text(&out->members[i].name);
        cx_json_list_put(&list, name,
                         cx_str_is(name, "run_id") ? cx_json_make_str(run_id)
                                                   : out->members[i].value);
    }
    return cx_json_list_end_object(&list, out, err);
}

/* Copies, changes, judges with and without the ledger. */
static cx_status judge_changed(runner *r, const char *golden, const cx_json *ops,
                               const char *scratch, cx_json *out, cx_err *err)
{
    cx_json manifest, seal, with, without;
    tampered t;
    cx_str from = runner_path(r, cx_arena_printf(&r->arena, "golden/%s/bundle", golden));
    CX_TRY(runner_read_json(r, cx_arena_printf(&r->arena, "golden/%s/bundle/manifest.json", golden),
                            &manifest, err));
    cx_str run_id = CX_JSON_GET_STR(&manifest, "run_id");
    cx_str name = cx_arena_copy_str(&r->arena, run_id);
    if (from.data == NULL || name.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(tamper_copy(from.data, scratch, name.data, &t, err));
    if (ops != NULL)
        CX_TRY(tamper_apply(&t, ops, err));
    CX_TRY(t.other_seal ? read_seal(r, "fix_loop", run_id, &seal, err)
                        : read_seal(r, golden, CX_STR(""), &seal, err));
    CX_TRY(judge(r, t.folder, &seal, &with, err));
    CX_TRY(judge(r, t.folder, NULL, &without, err));
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("sealed"), with);
    cx_json_list_put(&list, CX_STR("without_ledger"), without);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status judge_in(runner *r, const char *golden, const cx_json *ops, cx_json *out,
                          cx_err *err)
{
    char scratch[FOLDER_PATH_SIZE];
    folder_fresh(scratch, "run_tamper");
    cx_status status = judge_changed(r, golden, ops, scratch, out, err);
    (void)!cx_failed(cx_path_remove_tree(scratch, NULL));
    return status;
}

cx_status run_tamper_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *ops;
    CX_TRY(runner_member(item, "ops", CX_JSON_ARRAY, &ops, err));
    return judge_in(r, "success", ops, out, err);
}

static bool has_code(const cx_json *codes, const cx_json *code)
{
    for (uint32_t i = 0; i < codes->count; i++)
        if (cx_json_equal(&codes->items[i], code))
            return true;
    return false;
}

/* The exit code, and every code that must be reported; others may be. */
bool run_tamper_agrees(const cx_json *expected, const cx_json *got)
{
    static const char *const sides[] = {"sealed", "without_ledger"};
    for (size_t i = 0; i < CX_COUNT_OF(sides); i++) {
        const cx_json *want = cx_json_get(expected, cx_str_z(sides[i]));
        const cx_json *have = cx_json_get(got, cx_str_z(sides[i]));
        const cx_json *exit_code = want == NULL ? NULL : CX_JSON_GET(want, "exit");
        const cx_json *codes = want == NULL ? NULL : CX_JSON_GET(want, "codes");
        if (exit_code == NULL || codes == NULL || codes->type != CX_JSON_ARRAY ||
            !cx_json_equal(exit_code, CX_JSON_GET(have, "exit")))
            return false;
        for (uint32_t c = 0; c < codes->count; c++)
            if (!has_code(CX_JSON_GET(have, "codes"), &codes->items[c]))
                return false;
    }
    return true;
}

/* --- golden/NAME: verify_sealed_exit and verify_without_ledger_exit --------------------------- */

cx_status run_golden_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str name;
    CX_TRY(runner_text(item, "name", &name, err));
    return judge_in(r, name.data, NULL, out, err);
}

cx_status run_golden_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str name;
    cx_json expected, none;
    const cx_json *sealed, *without;
    cx_json_list list = cx_json_list_begin(&r->arena);
    CX_TRY(runner_text(item, "name", &name, err));
    CX_TRY(runner_read_json(r, cx_arena_printf(&r->arena, "golden/%s/expected.json", name.data),
                            &expected, err));
    CX_TRY(runner_member(&expected, "verify_sealed_exit", CX_JSON_INT, &sealed, err));
    CX_TRY(runner_member(&expected, "verify_without_ledger_exit", CX_JSON_INT, &without, err));
    CX_TRY(cx_json_list_end_array(&list, &none, err));
    cx_json sides[2];
    const cx_json *exits[] = {sealed, without};
    for (size_t i = 0; i < 2; i++) {
        list = cx_json_list_begin(&r->arena);
        cx_json_list_put(&list, CX_STR("exit"), *exits[i]);
        cx_json_list_put(&list, CX_STR("codes"), none);
        CX_TRY(cx_json_list_end_object(&list, &sides[i], err));
    }
    list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("sealed"), sides[0]);
    cx_json_list_put(&list, CX_STR("without_ledger"), sides[1]);
    return cx_json_list_end_object(&list, out, err);
}

/*
 * run.c - the cases of run governance: which file is answered by whom, and how many of each hold.
 */
#include "tests/runner/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "base/vec.h"
#include "tests/runner/run_answers.h"

static const run_theme themes[] = {
    /* schema: run_schema.c */
    {"report_schema.json", run_report_schema_got, NULL, NULL},

    /* contract, paths, policy: run_contract.c run_paths.c run_policy.c */
    {"contract.json", run_contract_got, NULL, run_contract_agrees},
    {"allowed_paths_lint.json", run_path_lint_got, NULL, NULL},
    {"path_match.json", run_path_match_got, NULL, NULL},
    {"path_overlap.json", run_path_overlap_got, NULL, NULL},
    {"policy_gate.json", run_policy_gate_got, NULL, NULL},
    {"default_policy_pack.json", run_pack_got, run_pack_expect, NULL},
    {"shell_mapping.json", run_shell_got, NULL, NULL},
    {"handoff_chain.json", run_handoff_got, NULL, NULL},
    {"simple_gates.json", run_simple_gate_got, NULL, NULL},
    {"legacy_contract_hash.json", run_legacy_hash_got, NULL, NULL},

    /* commands: run_command.c */
    {"command_gate.json", run_command_got, NULL, NULL},
    {"trivial_command.json", run_trivial_got, NULL, NULL},

    /* git: run_diff.c */
    {"diff_gate.json", run_diff_got, NULL, NULL},
    {"reviewer_isolation.json", run_isolation_got, NULL, NULL},
    {"attacks.json", run_attack_got, NULL, NULL},

    /* locks, bundles: run_lock.c run_tamper.c */
    {"lock.json", run_lock_got, NULL, NULL},
    {"tamper.json", run_tamper_got, NULL, run_tamper_agrees},
};

static cx_status plain_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *expected = CX_JSON_GET(item, "expected");
    (void)r;
    if (expected == NULL)
        return cx_fail(err, CX_E_FORMAT, "the case has no 'expected'");
    *out = *expected;
    return CX_SUCCESS;
}

static void run_theme_file(runner *r, const run_theme *theme)
{
    static const char list[] = "/cases";
    runner_kind kind = {list, theme->got, theme->expect != NULL ? theme->expect : plain_expect};
    cx_arena_mark mark = cx_arena_mark_now(&r->arena);
    unsigned passed = r->passed, failed = r->failed, skipped = r->skipped;
    cx_json root;
    cx_err err;
    cx_status status = runner_read_json(r, cx_str_z(theme->file), &root, &err);
    if (status.code == CX_E_NOT_FOUND) {
        cx_arena_reset(&r->arena, mark);
        return;
    }
    if (cx_failed(status))
        runner_fail(r, cx_str_z(theme->file), err.message);
    else if (cx_json_pointer(&root, cx_str_z(list)) == NULL)
        runner_fail(r, cx_str_z(theme->file), "found no list 'cases'");
    else if (theme->got == NULL)
        runner_skip(r, cx_str_z(theme->file), "nobody answers this file");
    else {
        r->agrees = theme->agrees;
        runner_run_list(r, &kind, theme->file, &root);
        r->agrees = NULL;
    }
    (void)fprintf(r->got_only ? stderr : stdout, "%s: %u passed, %u failed, %u skipped\n",
                  theme->file, r->passed - passed, r->failed - failed, r->skipped - skipped);
    cx_arena_reset(&r->arena, mark);
}

/* --- golden/NAME ------------------------------------------------------------------------------ */

typedef struct names {
    runner *r;
    CX_VEC(cx_str) list;
} names;

static bool take_name(void *arg, const char *name)
{
    names *all = arg;
    cx_str *slot = cx_vec_push(&all->list, all->r->arena.alloc);
    if (slot == NULL)
        return false;
    *slot = cx_arena_copy_str(&all->r->arena, cx_str_z(name));
    return slot->data != NULL;
}

static int by_text(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

/* One case for each folder that says what is expected of it. */
static cx_status golden_cases(runner *r, const names *all, cx_json *out, cx_err *err)
{
    const cx_io *io = cx_io_system();
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json cases;
    for (size_t i = 0; i < all->list.count; i++) {
        cx_str name = all->list.items[i];
        cx_str file =
            cx_arena_printf(&r->arena, "%s/golden/%s/expected.json", r->folder, name.data);
        cx_json_list item = cx_json_list_begin(&r->arena);
        cx_file opened;
        cx_json made;
        if (file.data == NULL || io->open(io, file.data, CX_IO_READ, &opened) != 0)
            continue;
        (void)io->close(io, opened);
        cx_json_list_put(&item, CX_STR("id"),
                         cx_json_make_str(cx_arena_printf(&r->arena, "golden-%s", name.data)));
        cx_json_list_put(&item, CX_STR("name"), cx_json_make_str(name));
        CX_TRY(cx_json_list_end_object(&item, &made, err));
        cx_json_list_add(&list, made);
    }
    CX_TRY(cx_json_list_end_array(&list, &cases, err));
    list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("cases"), cases);
    return cx_json_list_end_object(&list, out, err);
}

static void run_golden(runner *r)
{
    static const runner_kind kind = {"/cases", run_golden_got, run_golden_expect};
    const cx_io *io = cx_io_system();
    cx_arena_mark mark = cx_arena_mark_now(&r->arena);
    unsigned passed = r->passed, failed = r->failed;
    names all = {.r = r};
    cx_json root;
    cx_err err;
    cx_str folder = runner_path(r, CX_STR("golden"));
    if (folder.data == NULL || io->list(io, folder.data, take_name, &all) != 0)
        goto done;
    qsort(all.list.items, all.list.count, sizeof *all.list.items, by_text);
    if (cx_failed(golden_cases(r, &all, &root, &err)))
        runner_fail(r, CX_STR("golden"), err.message);
    else
        runner_run_list(r, &kind, "golden", &root);
    (void)fprintf(r->got_only ? stderr : stdout, "golden: %u passed, %u failed, 0 skipped\n",
                  r->passed - passed, r->failed - failed);
done:
    cx_vec_done(&all.list, r->arena.alloc);
    cx_arena_reset(&r->arena, mark);
}

/* A file of cases without an answering function must not look answered. */
static bool report_unknown(void *arg, const char *name)
{
    runner *r = arg;
    bool known = !cx_str_ends(cx_str_z(name), CX_STR(".json"));
    for (size_t i = 0; i < CX_COUNT_OF(themes); i++)
        known |= cx_str_is(cx_str_z(name), themes[i].file);
    if (!known)
        runner_skip(r, cx_str_z(name), "unknown file of cases");
    return true;
}

void runner_run_suite(runner *r)
{
    const cx_io *io = cx_io_system();
    for (size_t i = 0; i < CX_COUNT_OF(themes); i++)
        run_theme_file(r, &themes[i]);
    run_golden(r);
    if (io->list(io, r->folder, report_unknown, r) != 0)
        runner_fail(r, cx_str_z(r->folder), "the folder cannot be listed");
}

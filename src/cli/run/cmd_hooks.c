/*
 * cmd_hooks.c - `cortex hooks install|remove|status`, and what the installed scripts call:
 * `cortex hook pre-commit|pre-push` (run.md §19).
 */
#include <stdlib.h>

#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "candidate/api.h"

/* --- install, remove, status ------------------------------------------------------------------ */

typedef cx_status hooks_action(const cx_git *git, const char *program, cx_arena *arena,
                               cx_hook out[CX_HOOK_COUNT], cx_err *err);

static cx_status answer_hooks(cx_cli *cli, bool json, const cx_hook hooks[CX_HOOK_COUNT],
                              cx_buf *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&cli->arena), root = cx_json_list_begin(&cli->arena);
    for (size_t i = 0; i < CX_HOOK_COUNT; i++) {
        const cx_hook *hook = &hooks[i];
        cx_json_list object = cx_json_list_begin(&cli->arena);
        cx_json value;
        if (!json) {
            cx_buf_printf(out, "%-10s %-9s ", hook->name, cx_hook_state_name(hook->state));
            cx_shown_add(out, cx_str_z(hook->path));
            if (hook->state == CX_HOOK_INSTALLED)
                cx_buf_add_z(out, hook->enforce == CX_HOOK_ENFORCE_PEOPLE ? ", for runs and people"
                                                                          : ", for runs only");
            cx_buf_add_z(out, hook->chained ? " (the one from before runs after it)\n" : "\n");
            continue;
        }
        cx_json_put_str(&object, "name", cx_str_z(hook->name));
        cx_json_put_str(&object, "state", cx_str_z(cx_hook_state_name(hook->state)));
        cx_json_put_str(&object, "path", cx_str_z(hook->path));
        cx_json_put_maybe(
            &object, "enforce",
            cx_str_z(hook->state == CX_HOOK_INSTALLED ? cx_hook_enforce_name(hook->enforce) : ""));
        cx_json_put_bool(&object, "chained", hook->chained);
        CX_TRY(cx_json_list_end_object(&object, &value, err));
        cx_json_list_add(&list, value);
    }
    if (!json)
        return cx_buf_check(out, err);
    cx_json_put_array(&root, "hooks", &list);
    return cx_cli_end_json(&root, out, err);
}

static cx_status change_hooks(cx_cli *cli, const cx_cli_args *args, hooks_action *action,
                              cx_buf *out, cx_err *err)
{
    cx_cli_place place;
    cx_hook hooks[CX_HOOK_COUNT];
    cx_buf program;
    CX_TRY(cx_cli_place_open(cli, args, &place, err));
    cx_buf_init(&program, cli->alloc);
    cx_status status = cx_path_real(cx_machine_program(), &program, err);
    const char *path = cx_failed(status) ? NULL : cx_buf_z(&program);
    if (!cx_failed(status) && path == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status))
        status = action(place.git, path, &cli->arena, hooks, err);
    if (!cx_failed(status))
        status = answer_hooks(cli, cx_cli_has(args, "json"), hooks, out, err);
    cx_buf_done(&program);
    cx_cli_place_close(&place);
    return status;
}

static int run_hooks_action(cx_cli *cli, const cx_cli_args *args, hooks_action *action)
{
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = change_hooks(cli, args, action, &out, &err);
    int code = cx_failed(status)
                   ? cx_cli_fail(cli, args->command->name, &err, cx_cli_has(args, "json"))
                   : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static bool enforces_people(const cx_cli_args *args)
{
    const char *whose = cx_cli_value(args, "enforce");
    return whose != NULL && strcmp(whose, "people") == 0;
}

static cx_status install_for_runs(const cx_git *git, const char *program, cx_arena *arena,
                                  cx_hook out[CX_HOOK_COUNT], cx_err *err)
{
    return cx_hooks_install(git, program, CX_HOOK_ENFORCE_RUNS, arena, out, err);
}

static cx_status install_for_people(const cx_git *git, const char *program, cx_arena *arena,
                                    cx_hook out[CX_HOOK_COUNT], cx_err *err)
{
    return cx_hooks_install(git, program, CX_HOOK_ENFORCE_PEOPLE, arena, out, err);
}

static int run_hooks_install(cx_cli *cli, const cx_cli_args *args)
{
    bool people = enforces_people(args);
    int code = run_hooks_action(cli, args, people ? install_for_people : install_for_runs);
    if (code != CX_EXIT_HOLDS)
        return code;
    if (people)
        cx_cli_remark("every commit and push outside an active run is rejected now, yours too");
    else
        cx_cli_remark("only branches cortex/.. and work trees of runs are checked; your own "
                      "commits and pushes are not ('--enforce people' checks them, too)");
    cx_cli_remark("'cortex hooks remove' undoes this and restores the hooks from before");
    return code;
}

static int run_hooks_remove(cx_cli *cli, const cx_cli_args *args)
{
    return run_hooks_action(cli, args, cx_hooks_remove);
}

static int run_hooks_status(cx_cli *cli, const cx_cli_args *args)
{
    return run_hooks_action(cli, args, cx_hooks_status);
}

static const cx_cli_option hooks_options[] = {CX_CLI_OPTION_REPO, CX_CLI_OPTION_JSON,
                                              CX_CLI_OPTIONS_COMMON};

static const cx_cli_option install_options[] = {
    CX_CLI_OPT("enforce", 0, CX_CLI_CHOICE, "runs|people",
               "Whose commits and pushes are checked: those on branches and in work trees of "
               "governed runs (the default), or people's own, too, which are then rejected outside "
               "an active run."),
    CX_CLI_OPTION_REPO, CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

#define HOOKS_EXITS "0 done\n2 wrong usage\n3 could not be done"

const cx_cli_command cx_cli_hooks_install = {
    .name = "hooks install",
    .purpose = "install git hooks that check commits and pushes",
    .about =
        "Installs pre-commit and pre-push scripts that call 'cortex hook'. An existing hook "
        "is kept as NAME.before-cortex and runs after the Cortex hook has allowed. On branches "
        "and in work trees of governed runs, what the contract does not allow is rejected. "
        "People's own commits and pushes are not checked, unless --enforce people is given.",
    .options = install_options,
    .option_count = CX_COUNT_OF(install_options),
    .exits = HOOKS_EXITS,
    .example = "cortex hooks install",
    .run = run_hooks_install,
};

const cx_cli_command cx_cli_hooks_remove = {
    .name = "hooks remove",
    .purpose = "remove the git hooks",
    .about = "Removes the scripts that 'hooks install' wrote and restores the hooks from before. "
             "Other hooks are not changed.",
    .options = hooks_options,
    .option_count = CX_COUNT_OF(hooks_options),
    .exits = HOOKS_EXITS,
    .example = "cortex hooks remove",
    .run = run_hooks_remove,
};

const cx_cli_command cx_cli_hooks_status = {
    .name = "hooks status",
    .purpose = "show which git hooks are installed",
    .about = "Shows for each hook whether it is absent, installed, outdated (written by another "
             "program or version of Cortex), or foreign (not written by Cortex).",
    .options = hooks_options,
    .option_count = CX_COUNT_OF(hooks_options),
    .exits = HOOKS_EXITS,
    .example = "cortex hooks status --json",
    .run = run_hooks_status,
};

/* --- the hooks themselves --------------------------------------------------------------------- */

#define INPUT_BYTES_MAX ((size_t)1 << 20)

typedef cx_status hook_check(const cx_hook_options *options, cx_arena *arena, cx_hook_verdict *out,
                             cx_err *err);

static cx_status check_hook(cx_cli *cli, const cx_cli_args *args, hook_check *check_function,
                            bool push, cx_hook_verdict *out, cx_err *err)
{
    cx_cli_place place;
    cx_run_store store;
    cx_buf input;
    const char *index = getenv("GIT_INDEX_FILE");
    cx_buf_init(&input, cli->alloc);
    cx_status status = CX_SUCCESS;
    if (push)
        status = cx_io_read_file(cli->io, "-", INPUT_BYTES_MAX, &input, err);
    if (!cx_failed(status))
        status = cx_cli_place_open(cli, args, &place, err);
    if (cx_failed(status)) {
        cx_buf_done(&input);
        return status;
    }
    store = (cx_run_store){cli->io, cli->alloc, place.root};
    const cx_hook_options options = {
        .git = place.git,
        .store = &store,
        .enforce = cx_cli_has(args, "enforce") && !enforces_people(args) ? CX_HOOK_ENFORCE_RUNS
                                                                         : CX_HOOK_ENFORCE_PEOPLE,
        .index_file = index != NULL && index[0] != '\0' ? index : NULL,
        .input = cx_buf_str(&input)};
    status = check_function(&options, &cli->arena, out, err);
    cx_cli_place_close(&place);
    cx_buf_done(&input);
    return status;
}

static cx_status judgement_json(cx_cli *cli, const cx_hook_verdict *judgement, cx_buf *out,
                                cx_err *err)
{
    cx_json_list root = cx_json_list_begin(&cli->arena);
    cx_json violations;
    CX_TRY(cx_run_findings_json(&judgement->findings, &cli->arena, &violations, err));
    cx_json_put_bool(&root, "allow", judgement->findings.refusing == 0);
    cx_json_list_put(&root, CX_STR("violations"), violations);
    return cx_cli_end_json(&root, out, err);
}

/* With --json, on standard output; what cannot be reported is not allowed. */
static int report_judgement(cx_cli *cli, const cx_hook_verdict *judgement, int code)
{
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = judgement_json(cli, judgement, &out, &err);
    if (cx_failed(status) || cx_cli_answer(cli, &out, code) != code)
        code = CX_RUN_EXIT_REJECTED;
    cx_buf_done(&out);
    return code;
}

/* One line a finding, on standard error, where git shows it: rule, path, reason. */
static int run_hook_gate(cx_cli *cli, const cx_cli_args *args, hook_check *check_function,
                         bool push)
{
    cx_hook_verdict judgement;
    cx_err err = {0};
    if (cx_failed(check_hook(cli, args, check_function, push, &judgement, &err))) {
        cx_cli_complain("%s: %s; rejected, because it could not be checked", args->command->name,
                        err.message);
        if (cx_cli_has(args, "json"))
            cx_cli_write_error_json(cli, &err);
        return CX_RUN_EXIT_REJECTED;
    }
    for (size_t i = 0; i < judgement.findings.list.count; i++) {
        const cx_run_finding *finding = &judgement.findings.list.items[i];
        if (!finding->informs)
            cx_cli_complain("%s: %s %.*s: %.*s", args->command->name, finding->rule,
                            (int)finding->where.size, finding->where.data,
                            (int)finding->message.size, finding->message.data);
    }
    int code = judgement.findings.refusing == 0 ? CX_EXIT_HOLDS : CX_RUN_EXIT_REJECTED;
    if (cx_cli_has(args, "json"))
        code = report_judgement(cli, &judgement, code);
    cx_run_findings_done(&judgement.findings);
    return code;
}

static int run_hook_pre_commit(cx_cli *cli, const cx_cli_args *args)
{
    return run_hook_gate(cli, args, cx_hook_pre_commit, false);
}

static int run_hook_pre_push(cx_cli *cli, const cx_cli_args *args)
{
    return run_hook_gate(cli, args, cx_hook_pre_push, true);
}

static const cx_cli_option hook_options[] = {
    CX_CLI_OPT("enforce", 0, CX_CLI_CHOICE, "runs|people",
               "runs: allow what is neither on a branch nor in a work tree of a governed run. "
               "people, the default: reject that, too."),
    CX_CLI_OPTION_REPO, CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

#define HOOK_EXITS "0 allowed\n2 usage error\n4 rejected, also when the check fails"

const cx_cli_command cx_cli_hook_pre_commit = {
    .name = "hook pre-commit",
    .purpose = "run the check of the pre-commit hook",
    .about = "Finds the contract of the active run that this work tree's branch belongs to, and "
             "checks the index against its baseline by the diff gate. Without a contract, or with "
             "more than one, the commit is rejected. The message names rule and path.",
    .options = hook_options,
    .option_count = CX_COUNT_OF(hook_options),
    .exits = HOOK_EXITS,
    .example = "cortex hook pre-commit",
    .run = run_hook_pre_commit,
};

const cx_cli_command cx_cli_hook_pre_push = {
    .name = "hook pre-push",
    .purpose = "run the check of the pre-push hook",
    .about = "Reads the lines that git passes to a pre-push hook and checks every commit to be "
             "pushed. Deleting a branch and pushes that are no fast-forward are rejected.",
    .options = hook_options,
    .option_count = CX_COUNT_OF(hook_options),
    .exits = HOOK_EXITS,
    .example = "cortex hook pre-push < lines",
    .run = run_hook_pre_push,
};

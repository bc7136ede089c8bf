/*
 * cmd_run.c - `cortex run CONTRACT`: one governed run, from a contract to a sealed bundle.
 */
#include <stdio.h>
#include <unistd.h>

#include "audit/api.h"
#include "bundle/api.h"
#include "cli/ledger/ledger.h"
#include "cli/run/failed_tests.h"
#include "cli/run/run_start.h"
#include "cli/run/run_where.h"
#include "cli/run/telemetry.h"
#include "provenance/api.h"
#include "sandbox/api.h"

typedef struct running {
    cx_cli *cli;
    const cx_cli_args *args;
    bool json, follow, live;
    cx_run_options options;
    cx_cli_run_ledger ledger;
    cx_cli_telemetry telemetry;
    cx_cli_sent sent;
    cx_bytes contract;
    uint64_t shown;
} running;

/* --- progress --------------------------------------------------------------------------------- */

static void on_event(void *arg, cx_str type, cx_str line)
{
    running *r = arg;
    r->shown++;
    if (r->follow) {
        cx_cli_out_write_exact(&r->cli->out, cx_str_bytes(line));
        cx_cli_out_write(&r->cli->out, CX_STR("\n"));
    } else if (r->live) {
        cx_cli_remark("%4llu  %.*s", (unsigned long long)r->shown, (int)type.size, type.data);
    }
}

/* --- the question ----------------------------------------------------------------------------- */

static cx_status read_run_options(running *r, cx_err *err)
{
    const char *intent = cx_cli_value(r->args, "intent");
    cx_bytes request = {NULL, 0};
    if ((intent != NULL) == (r->args->operand_count != 0))
        return cx_fail(err, CX_E_USAGE, "expected a CONTRACT, or --intent REQUEST in place of it");
    if (intent == NULL && cx_cli_has(r->args, "plan-only"))
        return cx_fail(err, CX_E_USAGE,
                       "option --plan-only: expected --intent; of a CONTRACT, --dry-run says what "
                       "would be refused");
    if (intent != NULL && cx_cli_has(r->args, "dry-run"))
        return cx_fail(err, CX_E_USAGE,
                       "option --dry-run: expected a CONTRACT; with --intent an agent would have "
                       "to write it first: --plan-only runs that agent and nothing more");
    if (intent != NULL)
        CX_TRY(cx_cli_read_text(r->cli, intent, &request, err));
    else
        CX_TRY(cx_cli_read_file(r->cli, r->args->operands[0], &r->contract, err));
    if (intent != NULL && request.size == 0)
        return cx_fail(err, CX_E_USAGE, "option --intent: found an empty request");
    CX_TRY(cx_cli_run_options(r->cli, r->args, &r->options, err));
    r->options.contract = r->contract;
    r->options.intent = cx_bytes_str(request);
    r->options.plan_only = cx_cli_has(r->args, "plan-only");
    r->options.progress = on_event;
    r->options.progress_arg = r;
    return CX_SUCCESS;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* What the answer takes from the bundle. */
typedef struct bundle_facts {
    cx_run_bundle *bundle; /* open while its text is used; NULL = none */
    cx_json failed_tests;  /* of a run that failed: what its tests printed last */
    cx_str plane;          /* "exec": its agent was no MCP server; else empty */
    cx_str profile;
} bundle_facts;

/* As the manifest records it (`runner`). */
static cx_status read_plane(const running *r, cx_run_bundle *bundle, bundle_facts *out, cx_err *err)
{
    cx_json manifest;
    CX_TRY(cx_run_bundle_json(bundle, CX_STR("manifest.json"), &manifest, err));
    const cx_json *runner = cx_json_get_typed(&manifest, CX_STR("runner"), CX_JSON_OBJECT);
    if (runner == NULL || !cx_str_is(CX_JSON_GET_STR(runner, "name"), "exec"))
        return CX_SUCCESS;
    cx_str profile = CX_JSON_GET_STR(runner, "profile");
    out->plane = CX_STR("exec");
    out->profile = profile.size == 0 ? CX_STR("") : cx_arena_copy_str(&r->cli->arena, profile);
    return out->profile.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status read_bundle_facts(const running *r, const cx_run_outcome *o, bundle_facts *out,
                                   cx_err *err)
{
    cx_json_list none = cx_json_list_begin(&r->cli->arena);
    CX_TRY(cx_json_list_end_array(&none, &out->failed_tests, err));
    if (o->bundle.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_run_bundle_open(r->cli->io, r->cli->alloc, o->bundle.data, &out->bundle, err));
    CX_TRY(read_plane(r, out->bundle, out, err));
    if (o->failed_gate.size == 0)
        return CX_SUCCESS;
    return cx_run_view_failed_tests(out->bundle, &r->cli->arena, &out->failed_tests, err);
}

static cx_status answer_run_json(const running *r, const cx_run_outcome *o, const cx_json *failed,
                                 cx_buf *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->cli->arena);
    cx_json_list seal = cx_json_list_begin(&r->cli->arena);
    cx_json telemetry;
    cx_json_put_maybe(&list, "run_id", o->run_id);
    cx_json_put_str(&list, "status", o->status);
    cx_json_put_str(&list, "task_status", o->task_status);
    cx_json_put_maybe(&list, "failed_gate", o->failed_gate);
    cx_json_put_maybe(&list, "reason", o->reason);
    cx_json_put_maybe(&list, "hint", o->hint);
    cx_json_list_put(&list, CX_STR("violations"), o->violations);
    cx_json_list_put(&list, CX_STR("failed_tests"), *failed);
    cx_json_put_uint(&list, "attempts", o->attempts);
    cx_json_put_maybe(&list, "baseline_commit", o->baseline_commit);
    cx_json_put_maybe(&list, "final_commit", o->final_commit);
    cx_json_put_maybe(&list, "merged", o->merged);
    cx_json_put_maybe(&list, "patch_sha256", o->patch_sha256);
    cx_json_put_maybe(&list, "manifest_sha256", o->manifest_sha256);
    if (o->sealed) {
        cx_json_put_uint(&seal, "index", o->seal_index);
        cx_json_put_object(&list, "seal", &seal);
    } else {
        cx_json_put_null(&list, "seal");
    }
    cx_json_put_maybe(&list, "bundle", o->bundle);
    CX_TRY(cx_cli_telemetry_json(&r->telemetry, &r->sent, &r->cli->arena, &telemetry, err));
    cx_json_put(&list, "telemetry", telemetry);
    return cx_cli_end_json(&list, out, err);
}

static void add_line(cx_buf *out, const char *name, cx_str text)
{
    if (text.size == 0)
        return;
    cx_buf_printf(out, "%-9s ", name);
    cx_shown_add(out, text);
    cx_buf_add_byte(out, '\n');
}

static void answer_run_text(const cx_run_outcome *o, const bundle_facts *facts, cx_buf *out)
{
    cx_shown_add(out, o->status);
    cx_buf_add_z(out, "  ");
    cx_shown_add(out, o->run_id);
    cx_buf_add_byte(out, '\n');
    if (o->failed_gate.size != 0) {
        cx_buf_add_z(out, "gate      ");
        cx_shown_add(out, o->failed_gate);
        cx_buf_add_z(out, ": ");
        cx_shown_add(out, o->reason);
        cx_buf_add_byte(out, '\n');
    }
    for (uint32_t i = 0; i < o->violations.count; i++)
        add_line(out, i == 0 ? "because" : "", cx_json_text(&o->violations.items[i]));
    if (o->violations.count != 1 || !cx_str_eq(cx_json_text(&o->violations.items[0]), o->hint))
        add_line(out, "hint", o->hint);
    cx_cli_add_failed_tests(out, &facts->failed_tests);
    if (facts->plane.size != 0) {
        cx_buf_add_z(out, "plane     ");
        cx_shown_add(out, facts->plane);
        cx_buf_add_z(out, " (");
        cx_shown_add(out, facts->profile);
        cx_buf_add_z(out, "), no MCP: its tool calls are known as it printed them\n");
    }
    add_line(out, "merged", o->merged);
    add_line(out, "commit", o->final_commit);
    add_line(out, "bundle", o->bundle);
    if (o->sealed)
        cx_buf_printf(out, "sealed    entry %llu\n", (unsigned long long)o->seal_index);
}

static cx_status answer_run(running *r, const cx_run_outcome *o, cx_err *err)
{
    cx_buf out;
    bundle_facts facts = {.bundle = NULL};
    cx_buf_init(&out, r->cli->alloc);
    cx_status status = read_bundle_facts(r, o, &facts, err);
    if (!cx_failed(status) && r->json)
        status = answer_run_json(r, o, &facts.failed_tests, &out, err);
    else if (!cx_failed(status))
        answer_run_text(o, &facts, &out);
    if (!cx_failed(status))
        status = cx_buf_check(&out, err);
    if (!cx_failed(status))
        cx_cli_out_write(&r->cli->out, cx_buf_str(&out));
    cx_run_bundle_close(facts.bundle);
    cx_buf_done(&out);
    return status;
}

/* --- running ---------------------------------------------------------------------------------- */

static cx_status plan_task(running *r, int *out_code, cx_err *err)
{
    cx_json verdict;
    cx_buf out;
    bool allow;
    CX_TRY(cx_run_dry(&r->options, &r->cli->arena, &verdict, &allow, err));
    cx_buf_init(&out, r->cli->alloc);
    cx_status status = r->json ? cx_json_write(&out, &verdict, CX_JSON_PY_COMPACT, err)
                               : cx_json_write_pretty(&out, &verdict, 0, err);
    cx_buf_add_byte(&out, '\n');
    if (!cx_failed(status))
        status = cx_buf_check(&out, err);
    if (!cx_failed(status))
        cx_cli_out_write(&r->cli->out, cx_buf_str(&out));
    cx_buf_done(&out);
    *out_code = allow ? CX_EXIT_HOLDS : CX_RUN_EXIT_REJECTED;
    return status;
}

/* The run ended where it was asked to end: with an accepted plan. */
static bool is_planned(const running *r, const cx_run_outcome *o)
{
    return r->options.plan_only && cx_str_is(o->failed_gate, cx_gate_name(CX_GATE_PLAN)) &&
           cx_str_is(o->reason, "plan_only");
}

/* Derived, and made when they are missed: that it cannot be done now is no error. */
static void prepare_parts(running *r, cx_str run_id)
{
    cx_run_store store;
    if (run_id.size == 0 ||
        cx_failed(cx_cli_run_store(r->cli, r->options.repo, false, &store, NULL)))
        return;
    cx_status prepared = cx_run_part_prepare(&store, run_id, NULL);
    (void)prepared;
}

static cx_status run_task(running *r, int *out_code, cx_err *err)
{
    cx_run_outcome outcome;
    CX_TRY(read_run_options(r, err));
    if (cx_cli_has(r->args, "dry-run"))
        return plan_task(r, out_code, err);
    CX_TRY(cx_sandbox_supported(err));
    CX_TRY(cx_cli_telemetry_for_run(r->cli, r->args, &r->telemetry, err));
    CX_TRY(cx_cli_run_ledger_begin(&r->ledger, r->cli, r->args, &r->options, err));
    CX_TRY(cx_run_execute(&r->options, &r->cli->arena, &outcome, err));
    prepare_parts(r, outcome.run_id);
    cx_cli_telemetry_after_run(r->cli, &r->telemetry, outcome.run_id, outcome.bundle,
                               r->options.ledger, &r->sent);
    *out_code = is_planned(r, &outcome) ? CX_EXIT_HOLDS : outcome.exit_code;
    return answer_run(r, &outcome, err);
}

static int run_run(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    int code = CX_EXIT_HOLDS;
    running r = {.cli = cli,
                 .args = args,
                 .json = cx_cli_has(args, "json"),
                 .follow = cx_cli_has(args, "follow")};
    r.live = !r.json && !r.follow && isatty(2) != 0;
    cx_status status = run_task(&r, &code, &err);
    cx_cli_run_ledger_close(&r.ledger);
    if (cx_failed(status))
        return cx_cli_fail(cli, args->operand_count == 0 ? "run" : args->operands[0], &err, r.json);
    return code;
}

/* --- the table -------------------------------------------------------------------------------- */

static const cx_cli_operand operands[] = {{"CONTRACT", CX_CLI_FILE, NULL, true, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPT(
        "intent", 0, CX_CLI_TEXT, "REQUEST|@FILE|-",
        "A request in plain words, in place of a CONTRACT: the runner of the role PM in "
        "policies/cortex.json writes the contract, unless --runner or --script name another."),
    CX_CLI_OPTIONS_RUN,
    CX_CLI_OPTION_TELEMETRY,
    CX_CLI_OPT_FLAG("plan-only", 0,
                    "With --intent: stop when the contract is written and checked; nothing works "
                    "on it."),
    CX_CLI_OPT_FLAG("follow", 0, "Print each event as a line of JSON when it is written."),
    CX_CLI_OPT_FLAG("dry-run", 0, "Run only the checks that precede the agent, and write nothing."),
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_run = {
    .name = "run",
    .purpose = "run a task contract under its gates and record the evidence",
    .about = "Lets an agent work on the contract in its own work tree, inside a sandbox, and "
             "checks everything it did: paths, commands, review, tests. Only changes that pass "
             "every gate are merged. Every run leaves a bundle of evidence that is sealed in the "
             "ledger; 'cortex run verify' checks it.\n\nWith --intent an agent writes the contract "
             "first, on a read-only checkout of HEAD: its whole reply must be one task contract, "
             "which is then checked like any other. It is configured by 'cortex runner add NAME "
             "...' and \"roles\": {\"PM\": \"NAME\"} in policies/cortex.json. With --plan-only the "
             "run ends "
             "there: its record has the status FAILURE at the gate plan (plan_only), because "
             "nothing was worked on, and the contract is its contract.json.\n\nA rejected run "
             "leaves the repository unchanged. An interrupt ends the run cleanly: the bundle has "
             "status FAILURE, and locks and work trees are released.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits =
        "0 every gate passed, and the result is merged (unless --no-merge); with --plan-only: the "
        "contract was written and accepted\n2 usage error\n3 the "
        "run could not be started, or its evidence could not be written\n4 a gate rejected",
    .example = "cortex run contracts/fix-login.json --follow\ncortex run --intent 'Never refund "
               "more than was paid'",
    .run = run_run,
};

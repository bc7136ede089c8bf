/*
 * cmd_run_chain.c - `cortex run chain FILE`: several contracts, each a governed run of its own.
 */
#include <stdio.h>
#include <unistd.h>

#include "cli/ledger/ledger.h"
#include "cli/run/run_start.h"
#include "cli/run/run_where.h"
#include "cli/run/telemetry.h"
#include "governor/api.h"
#include "sandbox/api.h"

typedef struct chaining {
    cx_cli *cli;
    const cx_cli_args *args;
    bool json, live;
    cx_run_findings findings;
    cx_run_chain chain;
    cx_run_store store;
    cx_cli_run_ledger ledger;
    cx_cli_telemetry telemetry;
    cx_run_chain_options options;
    cx_buf out;
    int code;
} chaining;

/* The folder of the chain's file: contracts that it names are relative to it. */
static const char *folder_of(chaining *c, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return ".";
    return slash == path
               ? "/"
               : cx_arena_copy_str(&c->cli->arena, cx_str_from(path, (size_t)(slash - path))).data;
}

static void on_news(void *arg, const cx_run_chain_news *news)
{
    chaining *c = arg;
    if (c->live)
        cx_cli_remark("%-8s %.*s %.*s", cx_run_chain_state_name(news->state),
                      (int)news->step->name.size, news->step->name.data, (int)news->reason.size,
                      news->reason.size == 0 ? "" : news->reason.data);
}

/* --- answers ---------------------------------------------------------------------------------- */

static cx_status reject_chain(chaining *c, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&c->cli->arena);
    cx_json errors;
    c->code = CX_RUN_EXIT_REJECTED;
    if (c->json) {
        CX_TRY(cx_run_findings_json(&c->findings, &c->cli->arena, &errors, err));
        cx_json_put_bool(&list, "valid", false);
        cx_json_list_put(&list, CX_STR("errors"), errors);
        return cx_cli_end_json(&list, &c->out, err);
    }
    cx_buf_add_z(&c->out, "chain: rejected\n");
    for (size_t i = 0; i < c->findings.list.count; i++) {
        const cx_run_finding *finding = &c->findings.list.items[i];
        cx_buf_printf(&c->out, "  %s ", finding->rule);
        cx_shown_add(&c->out, finding->where);
        cx_buf_add_z(&c->out, ": ");
        cx_shown_add(&c->out, finding->message);
        cx_buf_add_byte(&c->out, '\n');
    }
    return CX_SUCCESS;
}

static void add_step(cx_buf *out, const cx_json *step)
{
    static const char *const names[] = {"status", "name", "run_id", "reason"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        cx_str text = cx_json_get_str(step, cx_str_z(names[i]));
        if (i == 0)
            cx_buf_printf(out, "  %-8.*s", (int)text.size, text.data);
        else if (text.size != 0) {
            cx_buf_add_z(out, "  ");
            cx_shown_add(out, text);
        }
    }
    cx_buf_add_byte(out, '\n');
}

static cx_status answer_chain(chaining *c, const cx_run_chain_outcome *o, cx_err *err)
{
    const cx_json *steps = CX_JSON_GET(&o->manifest, "steps");
    c->code = o->exit_code;
    if (c->json) {
        CX_TRY(cx_json_write(&c->out, &o->manifest, CX_JSON_PY_COMPACT, err));
        cx_buf_add_byte(&c->out, '\n');
        return CX_SUCCESS;
    }
    cx_shown_add(&c->out, CX_JSON_GET_STR(&o->manifest, "status"));
    cx_buf_add_z(&c->out, "  ");
    cx_shown_add(&c->out, o->chain_run_id);
    cx_buf_add_byte(&c->out, '\n');
    for (uint32_t i = 0; i < steps->count; i++)
        add_step(&c->out, &steps->items[i]);
    cx_buf_add_z(&c->out, "manifest  ");
    cx_shown_add(&c->out, o->manifest_path);
    cx_buf_add_byte(&c->out, '\n');
    return CX_SUCCESS;
}

/* --- running ---------------------------------------------------------------------------------- */

static void send_step_spans(chaining *c, const cx_run_chain_outcome *o)
{
    const cx_json *steps = CX_JSON_GET(&o->manifest, "steps");
    for (uint32_t i = 0; i < steps->count; i++) {
        cx_str run_id = CX_JSON_GET_STR(&steps->items[i], "run_id");
        cx_cli_sent sent;
        if (run_id.size == 0)
            continue;
        cx_str path = cx_run_store_path(&c->store, &c->cli->arena, "runs", run_id);
        cx_cli_telemetry_after_run(c->cli, &c->telemetry, run_id,
                                   path.data == NULL ? CX_STR("") : path, c->options.run.ledger,
                                   &sent);
    }
}

static cx_status run_chain(chaining *c, cx_err *err)
{
    const char *path = c->args->operands[0];
    cx_bytes bytes;
    cx_run_chain_outcome outcome;
    uint64_t parallel = cx_cli_number(c->args, "parallel", 0);
    if (parallel > 64)
        return cx_fail(err, CX_E_USAGE, "option --parallel: expected at most 64");
    CX_TRY(cx_cli_read_file(c->cli, path, &bytes, err));
    CX_TRY(cx_run_chain_read(cx_bytes_str(bytes), folder_of(c, path), &c->cli->arena, &c->findings,
                             &c->chain, err));
    CX_TRY(cx_run_findings_check(&c->findings, err));
    if (c->findings.refusing != 0)
        return reject_chain(c, err);
    CX_TRY(cx_sandbox_supported(err));
    CX_TRY(cx_cli_run_options(c->cli, c->args, &c->options.run, err));
    CX_TRY(cx_cli_telemetry_for_run(c->cli, c->args, &c->telemetry, err));
    CX_TRY(cx_cli_run_store(c->cli, NULL, true, &c->store, err));
    CX_TRY(cx_cli_run_ledger_begin(&c->ledger, c->cli, c->args, &c->options.run, err));
    c->options.store = &c->store;
    c->options.parallel = (uint32_t)parallel;
    c->options.news = on_news;
    c->options.news_arg = c;
    CX_TRY(cx_run_chain_execute(&c->chain, &c->options, &c->cli->arena, &outcome, err));
    send_step_spans(c, &outcome);
    return answer_chain(c, &outcome, err);
}

static int run_run_chain(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    chaining c = {.cli = cli, .args = args, .json = cx_cli_has(args, "json")};
    c.live = !c.json && isatty(2) != 0;
    cx_buf_init(&c.out, cli->alloc);
    cx_run_findings_init(&c.findings, &cli->arena);
    cx_status status = run_chain(&c, &err);
    cx_cli_run_ledger_close(&c.ledger);
    int code = cx_failed(status) ? cx_cli_fail(cli, args->operands[0], &err, c.json)
                                 : cx_cli_answer(cli, &c.out, c.code);
    cx_run_findings_done(&c.findings);
    cx_buf_done(&c.out);
    return code;
}

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTIONS_RUN,
    CX_CLI_OPTION_TELEMETRY,
    CX_CLI_OPT("parallel", 0, CX_CLI_COUNT, "N", "Steps at once, at most 64; default 4."),
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_run_chain = {
    .name = "run chain",
    .purpose = "run several contracts in the order of their dependencies",
    .about = "FILE names the steps: "
             "{\"version\":\"v1\",\"chain_id\",\"steps\":[{\"name\",\"contract\",\"depends_on\":[]}"
             "]}, where contract is a path relative to FILE or the contract itself. Steps without "
             "unfinished dependencies run in parallel; each is a governed run of its own. Steps "
             "that depend on a failed step are skipped. The results are in the chain's manifest, "
             "below the runtime root.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 every step succeeded\n2 usage error\n"
             "3 a step could not be started, or the evidence could not be written\n"
             "4 the chain is not valid, or a gate refused a step",
    .example = "cortex run chain release.json --parallel 2",
    .run = run_run_chain,
};

/*
 * cmd_lattice_import.c - `cortex lattice import --seal`: a lattice of others into the data
 * directory (docs/formats/steps.md §7).
 */
#include "cli/ledger/ledger.h"
#include "json/api.h"
#include "lattice/api.h"
#include "recorder/api.h"

typedef struct import_state {
    cx_lattice *lattice;
    cx_steps_sealed sealed;
    bool dry;
} import_state;

static cx_status show_sealed(cx_cli_ledger *l, const import_state *s, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(l->arena);
    if (!l->json) {
        cx_buf_printf(&l->out, "%s%llu nodes of %llu agents stored, %llu were there\n",
                      s->dry ? "dry run: it holds; " : "", (unsigned long long)s->sealed.stored,
                      (unsigned long long)s->sealed.agents,
                      (unsigned long long)s->sealed.duplicates);
        return cx_buf_check(&l->out, err);
    }
    cx_json_put_uint(&list, "agents", s->sealed.agents);
    cx_json_put_uint(&list, "duplicates", s->sealed.duplicates);
    cx_json_put_uint(&list, "stored", s->sealed.stored);
    return cx_cli_end_json(&list, &l->out, err);
}

static cx_status work(cx_cli_ledger *l, void *arg, cx_err *err)
{
    import_state *s = arg;
    cx_recorder *recorder;
    const cx_recorder_options options = {.alloc = l->cli->alloc};
    CX_TRY(cx_recorder_open(l->home, &options, &recorder, err));
    cx_status status =
        cx_recorder_steps_seal(recorder, s->lattice, CX_STR("local"), s->dry, &s->sealed, err);
    cx_recorder_close(recorder);
    return cx_failed(status) ? status : show_sealed(l, s, err);
}

/* Every finding, as `cortex lattice verify` prints them; true when the lattice holds. */
static cx_status check_lattice(cx_cli *cli, const cx_cli_args *args, const cx_lattice *lattice,
                               bool *out_holds, cx_err *err)
{
    const cx_lattice_text_options text = {.details = true};
    cx_lattice_report *report = NULL;
    cx_buf out;
    CX_TRY(cx_lattice_verify(lattice, NULL, &report, err));
    *out_holds = cx_lattice_report_verdict(report) == CX_HOLDS;
    cx_buf_init(&out, cli->alloc);
    cx_status status = CX_SUCCESS;
    if (!*out_holds && cx_cli_has(args, "json"))
        status = cx_lattice_report_json(&out, lattice, report, err);
    else if (!*out_holds)
        status = cx_lattice_report_text(&out, lattice, report, &text, err);
    if (!cx_failed(status))
        cx_cli_out_write(&cli->out, cx_buf_str(&out));
    cx_buf_done(&out);
    cx_lattice_report_close(report);
    return status;
}

static int run(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {.access = CX_CLI_WRITE, .work = work};
    import_state s = {.dry = cx_cli_has(args, "dry-run")};
    bool holds = false;
    cx_err err;
    int code;
    if (!cx_cli_has(args, "seal"))
        return cx_cli_misuse(args, "expected --seal: the nodes get seals, and new hashes where "
                                   "they are not strict already");
    s.lattice = cx_cli_open_lattice(cli, args, args->operands[0], CX_CLI_KEEP_DELTAS, &code);
    if (s.lattice == NULL)
        return code;
    if (cx_failed(check_lattice(cli, args, s.lattice, &holds, &err)))
        code = cx_cli_fail(cli, args->operands[0], &err, cx_cli_has(args, "json"));
    else if (holds)
        code = cx_cli_run_job(cli, args, &job, &s);
    else
        code = CX_EXIT_BROKEN;
    if (code == CX_EXIT_BROKEN && !holds)
        cx_cli_complain("%s does not hold: nothing of it was stored", args->operands[0]);
    cx_lattice_close(s.lattice);
    return code;
}

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("seal", 0, "Nodes that have no seal get one, and so another hash."),
    CX_CLI_OPT_FLAG("dry-run", 0, "Check everything, store nothing."), CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_READING, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_lattice_import = {
    .name = "lattice import",
    .purpose = "store a lattice that others wrote, sealed",
    .about =
        "Takes a whole lattice into the data directory, or nothing of it. What does not verify is "
        "refused, with every finding. A lattice that holds in strict mode keeps its hashes; in "
        "others each node is sealed and hashed again, and says in event.__source what it was.\n\n"
        "The same file again stores nothing; after an interruption it stores what is missing. "
        "@agent/NAME then names the history of each agent. (Logs and sessions of other formats: "
        "'cortex import'.)",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 all of it is stored\n"
             "1 it does not hold, or an agent has other steps here: nothing was stored\n"
             "2 usage error\n"
             "3 unreadable, or it could not be stored",
    .example = "cortex lattice import --seal history.jsonl",
    .run = run,
};

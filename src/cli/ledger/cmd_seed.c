/*
 * cmd_seed.c - `cortex seed`: the D11 seed of a compilation (ledger.md §9.2).
 */
#include "cli/ledger/ledger.h"
#include "ledger/api.h"

static cx_status prepare_seed(cx_cli_ledger *l, void *arg, cx_err *err)
{
    static const char *const needed[] = {"intent", "mtx", "model"};
    cx_seed_question *question = arg;
    for (size_t i = 0; i < CX_COUNT_OF(needed); i++)
        if (!cx_cli_has(l->args, needed[i]))
            return cx_fail(err, CX_E_USAGE,
                           "expected --%s: a seed needs --intent, --mtx and --model", needed[i]);
    *question = (cx_seed_question){.intent_id = cx_str_z(cx_cli_value(l->args, "intent")),
                                   .mtx_digest = cx_str_z(cx_cli_value(l->args, "mtx")),
                                   .model_id = cx_str_z(cx_cli_value(l->args, "model")),
                                   .at = cx_cli_has(l->args, "at"),
                                   .snapshot = cx_cli_number(l->args, "at", 0)};
    return CX_SUCCESS;
}

static cx_status seed_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_seed_answer answer;
    cx_json_list json = cx_json_list_begin(l->arena);
    CX_TRY(cx_seed_over(l->home, l->actor, arg, l->arena, &answer, err));
    if (!l->json) {
        cx_buf_add(&l->out, answer.seed, sizeof answer.seed);
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_digest(&json, "overall_root", &answer.overall_root);
    cx_json_put_str(&json, "scheme", cx_scheme_name(answer.scheme));
    cx_json_put_str(&json, "seed", cx_str_from(answer.seed, sizeof answer.seed));
    if (answer.has_snapshot)
        cx_json_put_uint(&json, "snapshot", answer.snapshot);
    else
        cx_json_put_null(&json, "snapshot");
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_seed(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, prepare_seed, seed_job};
    cx_seed_question question;
    return cx_cli_run_job(cli, args, &job, &question);
}

static const cx_cli_option options[] = {
    CX_CLI_OPT("intent", 0, CX_CLI_TEXT, "ID",
               "The intent's id, a ULID (with scheme matrix-1 any text); required."),
    CX_CLI_OPT("mtx", 0, CX_CLI_TEXT, "DIGEST",
               "The method's digest, 64 hex digits (with scheme matrix-1 any text); required."),
    CX_CLI_OPT("model", 0, CX_CLI_TEXT, "ID", "The model's id; required."),
    CX_CLI_OPT("at", 0, CX_CLI_COUNT, "SNAPSHOT", "Over this snapshot; default the present state."),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_seed = {
    .name = "seed",
    .purpose = "compute the D11 seed of a compilation",
    .about =
        "Prints one hash of everything that a compilation depends on: the intent, the actor, its "
        "overall root, the method's digest and the model. The same inputs over the same state give "
        "the same seed. Make a snapshot first ('cortex snapshot make --reason pre-compile') so "
        "that "
        "the state can be found by its root and proven later.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex seed --intent 01HF7YAT000000000000000003 --mtx \"$DIGEST\" --model m-7",
    .run = run_seed,
};

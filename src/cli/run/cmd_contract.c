/*
 * cmd_contract.c - `cortex contract lint|hash|resolve|explain` and `cortex gate policy`.
 */
#include "cli/run/gate_report.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "crypto/api.h"
#include "contract/api.h"

/* --- what they share -------------------------------------------------------------------------- */

typedef struct contract_job {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *path;
    cx_str bytes;
    cx_cli_place place;
    cx_run_findings findings;
    cx_contract contract;
    cx_run_policy policy;
    bool gate_judged; /* findings are those of the policy gate, with scopes */
} contract_job;

static cx_status read_contract_bytes(contract_job *job, cx_err *err)
{
    cx_buf *text = CX_ARENA_NEW(&job->cli->arena, cx_buf);
    if (text == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(text, job->cli->alloc);
    cx_status status =
        cx_io_read_file(job->cli->io, job->path, CX_RUN_CONTRACT_BYTES_MAX, text, err);
    if (!cx_failed(status)) {
        job->bytes = cx_arena_copy_str(&job->cli->arena, cx_buf_str(text));
        if (job->bytes.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(text);
    return status;
}

static void job_init(contract_job *job, cx_cli *cli, const cx_cli_args *args)
{
    memset(job, 0, sizeof *job);
    job->cli = cli;
    job->args = args;
    job->path = args->operands[0];
    cx_run_findings_init(&job->findings, &cli->arena);
}

static void job_done(contract_job *job)
{
    cx_cli_place_close(&job->place);
    cx_run_findings_done(&job->findings);
}

/* Reads the file and the repository; what is wrong with the contract is in the findings. */
static cx_status check_contract(contract_job *job, cx_err *err)
{
    CX_TRY(read_contract_bytes(job, err));
    CX_TRY(cx_cli_place_open(job->cli, job->args, &job->place, err));
    return cx_run_contract_check(job->bytes, &job->place.repo, &job->place.ground,
                                 &cx_run_contract_command_checks, &job->cli->arena, &job->findings,
                                 &job->contract, &job->policy, err);
}

static int answer_contract_lint(contract_job *job, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    cx_json_list object = cx_json_list_begin(arena);
    cx_cli_gate_report report = {.gate = "contract",
                                 .subject = job->path,
                                 .allow = job->findings.refusing == 0,
                                 .findings = &job->findings};
    cx_json errors;
    cx_status status = cx_run_findings_json(&job->findings, arena, &errors, err);
    if (!cx_failed(status)) {
        cx_json_put_bool(&object, "valid", report.allow);
        cx_json_list_put(&object, CX_STR("errors"), errors);
        status = cx_json_list_end_object(&object, &report.json, err);
    }
    if (cx_failed(status))
        return cx_cli_fail(job->cli, job->path, err, cx_cli_gate_json(job->args));
    return cx_cli_gate_answer(job->cli, job->args, &report);
}

/* --- contract lint ---------------------------------------------------------------------------- */

static int run_contract_lint(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    contract_job job;
    job_init(&job, cli, args);
    int code = cx_failed(check_contract(&job, &err))
                   ? cx_cli_fail(cli, job.path, &err, cx_cli_gate_json(args))
                   : answer_contract_lint(&job, &err);
    job_done(&job);
    return code;
}

static const cx_cli_operand contract_operand[] = {{"CONTRACT", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option lint_options[] = {CX_CLI_OPTION_REPO, CX_CLI_OPTIONS_GATE,
                                             CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_contract_lint = {
    .name = "contract lint",
    .purpose = "report everything that is wrong with a task contract",
    .about = "Checks CONTRACT as a run would before it starts anything: its schema, then the lints "
             "K02 to K15, against the repository's commit that the contract names as its baseline "
             "and the policies of that commit. All lints are evaluated; each finding names a place "
             "in the file and what to do.",
    .operands = contract_operand,
    .operand_count = CX_COUNT_OF(contract_operand),
    .options = lint_options,
    .option_count = CX_COUNT_OF(lint_options),
    .exits = CX_CLI_EXITS_GATE,
    .example = "cortex contract lint task.json\n"
               "cortex contract lint task.json --format sarif -o lint.sarif",
    .run = run_contract_lint,
};

/* --- contract hash ---------------------------------------------------------------------------- */

static cx_status hash_contract(contract_job *job, cx_buf *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&job->cli->arena);
    cx_digest digest;
    CX_TRY(read_contract_bytes(job, err));
    digest = cx_digest_of(cx_str_bytes(job->bytes));
    if (cx_cli_has(job->args, "legacy")) {
        cx_json contract;
        CX_TRY(cx_run_json_read(job->bytes, CX_RUN_CONTRACT_BYTES_MAX, &job->cli->arena, &contract,
                                err));
        CX_TRY(cx_run_contract_legacy_hash(&contract, &digest, err));
    }
    if (cx_cli_has(job->args, "json")) {
        cx_json_put_digest(&object, "sha256", &digest);
        return cx_cli_end_json(&object, out, err);
    }
    cx_cli_add_digest(out, &digest);
    cx_buf_add_byte(out, '\n');
    return CX_SUCCESS;
}

static int run_contract_hash(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    contract_job job;
    cx_buf out;
    job_init(&job, cli, args);
    cx_buf_init(&out, cli->alloc);
    int code = cx_failed(hash_contract(&job, &out, &err))
                   ? cx_cli_fail(cli, job.path, &err, cx_cli_has(args, "json"))
                   : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    job_done(&job);
    return code;
}

static const cx_cli_option hash_options[] = {
    CX_CLI_OPT_FLAG("legacy", 0,
                    "The digest of the sorted-key form by which bundles of an older system name "
                    "their contract; only for recognising those."),
    CX_CLI_OPT_FLAG("json", 0, "One line of JSON instead of text."), CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_contract_hash = {
    .name = "contract hash",
    .purpose = "print the digest by which approvals and seals name a contract",
    .about =
        "Prints the SHA-256 of the bytes of CONTRACT. An approval holds for exactly these bytes.",
    .operands = contract_operand,
    .operand_count = CX_COUNT_OF(contract_operand),
    .options = hash_options,
    .option_count = CX_COUNT_OF(hash_options),
    .exits = "0 printed\n2 usage error\n3 the file could not be read",
    .example = "cortex contract hash task.json",
    .run = run_contract_hash,
};

/* --- contract resolve ------------------------------------------------------------------------- */

/* One line for programs; else as people write it. */
static cx_status write_resolved(contract_job *job, cx_buf *out, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    cx_json whole;
    CX_TRY(cx_run_contract_resolve(&job->contract, &job->policy, arena, out, err));
    if (!cx_cli_gate_json(job->args))
        return CX_SUCCESS;
    cx_str text = cx_arena_copy_str(arena, cx_buf_str(out));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_json_read(text, 0, arena, &whole, err));
    cx_buf_clear(out);
    CX_TRY(cx_json_write(out, &whole, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return CX_SUCCESS;
}

static int answer_resolved_contract(contract_job *job, cx_err *err)
{
    cx_buf out;
    cx_buf_init(&out, job->cli->alloc);
    int code = cx_failed(write_resolved(job, &out, err))
                   ? cx_cli_fail(job->cli, job->path, err, cx_cli_gate_json(job->args))
                   : cx_cli_answer(job->cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static int run_contract_resolve(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    contract_job job;
    job_init(&job, cli, args);
    int code;
    if (cx_failed(check_contract(&job, &err)))
        code = cx_cli_fail(cli, job.path, &err, cx_cli_gate_json(args));
    else
        code = job.findings.refusing != 0 ? answer_contract_lint(&job, &err)
                                          : answer_resolved_contract(&job, &err);
    job_done(&job);
    return code;
}

const cx_cli_command cx_cli_contract_resolve = {
    .name = "contract resolve",
    .purpose = "print the contract with all defaults resolved",
    .about = "Prints CONTRACT with its baseline as a commit and with the role_contract that its "
             "role has in the registry. A contract that fails a lint has no such form: then its "
             "findings are the answer.",
    .operands = contract_operand,
    .operand_count = CX_COUNT_OF(contract_operand),
    .options = lint_options,
    .option_count = CX_COUNT_OF(lint_options),
    .exits = CX_CLI_EXITS_GATE,
    .example = "cortex contract resolve task.json",
    .run = run_contract_resolve,
};

/* --- gate policy ------------------------------------------------------------------------------ */

/* The policy gate over a contract that can be read; else what keeps it from being read. */
static cx_status check_policy(contract_job *job, cx_run_tree *tree, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    CX_TRY(read_contract_bytes(job, err));
    CX_TRY(cx_cli_place_open(job->cli, job->args, &job->place, err));
    CX_TRY(cx_run_contract_read(job->bytes, arena, &job->findings, &job->contract, err));
    if (job->findings.refusing != 0)
        return CX_SUCCESS;
    CX_TRY(cx_run_contract_baseline(&job->contract, &job->place.repo, &job->findings, err));
    if (job->findings.refusing != 0)
        return CX_SUCCESS;
    CX_TRY(cx_run_policy_load(&job->place.repo, job->contract.baseline_commit, arena,
                              &job->findings, &job->policy, err));
    if (job->findings.refusing != 0)
        return CX_SUCCESS;
    CX_TRY(
        job->place.repo.list(job->place.repo.arg, job->contract.baseline_commit, arena, tree, err));
    job->gate_judged = true;
    return cx_run_gate_policy(&job->policy, &job->contract, tree, &job->place.ground, NULL,
                              &job->findings, err);
}

/* The distinct rules of the refusing findings, and the approvals that would lift all of them. */
static void write_rules_json(const contract_job *job, cx_json_list *object)
{
    const cx_run_findings *findings = &job->findings;
    cx_json_list rules = cx_json_list_begin(object->arena),
                 scopes = cx_json_list_begin(object->arena);
    bool liftable = job->gate_judged;
    for (size_t i = 0; i < findings->list.count; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        bool seen = finding->informs;
        for (size_t k = 0; k < i && !seen; k++)
            seen = !findings->list.items[k].informs &&
                   strcmp(findings->list.items[k].rule, finding->rule) == 0;
        if (!seen)
            cx_json_list_add(&rules, cx_json_make_str(cx_str_z(finding->rule)));
        liftable = liftable && (finding->informs || finding->detail.size != 0);
    }
    for (size_t i = 0; liftable && i < findings->list.count; i++)
        if (!findings->list.items[i].informs)
            cx_json_list_add(&scopes, cx_json_make_str(findings->list.items[i].detail));
    cx_json_put_array(object, "rules", &rules);
    cx_json_put_array(object, "scopes", &scopes);
}

static cx_status describe_policy(contract_job *job, cx_json *out, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    cx_json_list object = cx_json_list_begin(arena);
    cx_json violations;
    CX_TRY(cx_run_gate_violations(&job->findings, arena, &violations, err));
    cx_json_put_bool(&object, "allow", job->findings.refusing == 0);
    write_rules_json(job, &object);
    cx_json_list_put(&object, CX_STR("violations"), violations);
    cx_json_put_str(
        &object, "policy_pack",
        cx_str_z(job->contract.pack == CX_PACK_NONE ? "" : cx_run_pack_name(job->contract.pack)));
    cx_json_put_maybe(&object, "baseline_commit", job->contract.baseline_commit);
    return cx_json_list_end_object(&object, out, err);
}

static int run_gate_policy(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    contract_job job;
    cx_run_tree tree = {NULL, 0};
    int code;
    job_init(&job, cli, args);
    cx_cli_gate_report report = {.gate = "policy", .subject = job.path, .findings = &job.findings};
    if (cx_failed(check_policy(&job, &tree, &err)) ||
        cx_failed(describe_policy(&job, &report.json, &err))) {
        code = cx_cli_fail(cli, job.path, &err, cx_cli_gate_json(args));
    } else {
        report.allow = job.findings.refusing == 0;
        code = cx_cli_gate_answer(cli, args, &report);
    }
    job_done(&job);
    return code;
}

const cx_cli_command cx_cli_gate_policy = {
    .name = "gate policy",
    .purpose = "check whether a contract exceeds its agent's rights",
    .about = "Compares what CONTRACT asks for with the registry's row of its agent, and its paths "
             "with what is protected or wide, by the policies of the contract's baseline. "
             "Approvals are not considered: the answer names the scopes that one would need.",
    .operands = contract_operand,
    .operand_count = CX_COUNT_OF(contract_operand),
    .options = lint_options,
    .option_count = CX_COUNT_OF(lint_options),
    .exits = CX_CLI_EXITS_GATE,
    .example = "cortex gate policy task.json --json",
    .run = run_gate_policy,
};

/*
 * cmd_retention.c - `cortex retention apply`: destroys content that is older than its rule allows.
 */
#include "cli/erasure/erasure_view.h"
#include "cli/erasure/retention_rules.h"

cx_status cx_cli_read_retention(cx_cli *cli, const cx_cli_args *args, cx_erasure_filter *out,
                                cx_err *err)
{
    const cx_str *texts;
    size_t count;
    CX_TRY(cx_cli_all_values(cli, args, "retention", &texts, &count, err));
    if (count > CX_RETENTION_RULES_MAX)
        return cx_fail(err, CX_E_USAGE, "option --retention: found %zu rules, expected at most %d",
                       count, CX_RETENTION_RULES_MAX);
    cx_retention_rule *rules = CX_ARENA_ARRAY(&cli->arena, cx_retention_rule, count + 1);
    if (rules == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        CX_TRY(cx_retention_rule_parse(texts[i], &rules[i], err));
    *out = (cx_erasure_filter){.before_ns = CX_TIME_NONE,
                               .rules = rules,
                               .rule_count = count,
                               .now_ns = (int64_t)cli->io->wall_ns(cli->io),
                               .reason = CX_STR("retention"),
                               .by = CX_STR("retention")};
    return CX_SUCCESS;
}

static cx_status prepare_retention(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_cli_erasing *erasing = arg;
    const char *by = cx_cli_value(l->args, "by");
    CX_TRY(cx_cli_read_retention(l->cli, l->args, &erasing->filter, err));
    if (erasing->filter.rule_count == 0)
        return cx_fail(
            err, CX_E_USAGE,
            "there are no rules: set them in the configuration, such as "
            "retention = [\"trace.received/full_traces 30d\", \"session.* 1y\"], or give "
            "--retention RULE");
    if (by != NULL)
        erasing->filter.by = cx_str_z(by);
    return cx_cli_erasing_prepare(l, erasing, err);
}

static cx_status retention_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    return cx_cli_erasing_job(l, arg, err);
}

static int run_retention_apply(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job apply = {CX_CLI_WRITE, false, prepare_retention, retention_job};
    static const cx_cli_job plan = {CX_CLI_READ, false, prepare_retention, retention_job};
    cx_cli_erasing erasing = {.has_signer = false};
    int code = cx_cli_run_job(cli, args, cx_cli_has(args, "dry-run") ? &plan : &apply, &erasing);
    cx_cli_signer_done(&erasing.signer);
    return code;
}

static const cx_cli_option options[] = {
    CX_CLI_OPTION_RETENTION,
    CX_CLI_OPTION_DRY_RUN,
    CX_CLI_OPT("by", 0, CX_CLI_TEXT, "NAME", "Who applies them; default \"retention\"."),
    CX_CLI_OPTIONS_RECEIPT,
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_retention_apply = {
    .name = "retention apply",
    .purpose = "destroy content that is older than its rule allows",
    .about = "Applies the rules of the configuration's 'retention' to all journals: content is "
             "destroyed as by 'cortex erase', with one receipt; entries, hashes and proofs stay. "
             "KIND is a kind of entries, a beginning such as session.*, 'memory', or *; LEVEL is "
             "the level of a trace; AGE is counted from when a record was recorded, of a memory "
             "from its last change. 'cortex serve --retention-every SECONDS' does the same on a "
             "schedule.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_WRITE
    "\n4 a legal hold keeps a part of what is due; the holds are named, the rest is destroyed",
    .example = "cortex retention apply --retention 'trace.received/full_traces 30d' --dry-run",
    .run = run_retention_apply,
};

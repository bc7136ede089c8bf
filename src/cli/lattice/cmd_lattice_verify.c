/*
 * cmd_lattice_verify.c - `cortex lattice verify`: verifies a history (lattice.md §4, §5).
 */
#include <string.h>

#include "cli/cli.h"
#include "lattice/api.h"

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {CX_CLI_OPTIONS_VERIFY, CX_CLI_OPTIONS_READING,
                                        CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_lattice_verify = {
    .name = "lattice verify",
    .purpose = "verify every hash, link and branch of a history",
    .about = "Reads a lattice (JSONL, a JSON array, or an object with \"nodes\"; \"-\" is standard "
             "input), recomputes every hash and checks that each branch is numbered without gaps, "
             "linked by hash, and names its predecessor among its parents. All failures are "
             "reported with their nodes. The Evidence line shows what the verdict rests on. "
             "Without an anchor, the verdict does not cover nodes truncated from the end.\n\nA "
             "valid branch that descends from a damaged node is shown as tainted.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 every branch holds\n"
             "1 something does not hold\n"
             "2 usage error, or an unknown agent after --compare\n"
             "3 the file cannot be read as a lattice, or output could not be written",
    .example = "cortex lattice verify history.jsonl --strict --head @anchor.json",
    .run = cx_cli_run_lattice_verify,
};

/* --head AGENT=HASH: the hash has no '=' in it, an agent may. */
static cx_status parse_head(const char *text, cx_lattice_head *out, cx_err *err)
{
    const char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text)
        return cx_fail(err, CX_E_USAGE, "option --head: found '%s', expected AGENT=HASH or @FILE",
                       text);
    out->agent = cx_str_from(text, (size_t)(equals - text));
    out->hash = cx_str_z(equals + 1);
    return CX_SUCCESS;
}

static cx_status read_anchor_file(cx_cli *cli, const char *path, cx_lattice_anchor *out,
                                  cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_io_read_file(cli->io, path, (size_t)256 << 20, &text, err);
    if (!cx_failed(status)) {
        /* What the anchor borrows must live as long as it does. */
        cx_str kept = cx_arena_copy_str(&cli->arena, cx_buf_str(&text));
        status = kept.data == NULL ? cx_fail_nomem(err)
                                   : cx_lattice_anchor_parse(kept, &cli->arena, out, err);
    }
    cx_buf_done(&text);
    return status;
}

/* Reads all --head options; *out_path names the file an error is about, NULL for the options. */
static cx_status collect_heads(cx_cli *cli, const cx_cli_args *args, cx_lattice_anchor *out,
                               bool *out_given, const char **out_path, cx_err *err)
{
    size_t count = 0, files = 0;
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(args, "head", given)) != NULL) {
        count++;
        files += given->values[0][0] == '@';
    }
    *out_given = count != 0;
    *out_path = NULL;
    if (files > 1 || (files == 1 && count > 1))
        return cx_fail(err, CX_E_USAGE,
                       "option --head: expected either one @FILE or any number of AGENT=HASH");
    if (files == 1) {
        *out_path = cx_cli_value(args, "head") + 1;
        return read_anchor_file(cli, *out_path, out, err);
    }
    cx_lattice_head *heads = CX_ARENA_ARRAY(&cli->arena, cx_lattice_head, count + 1);
    if (heads == NULL)
        return cx_fail_nomem(err);
    *out = (cx_lattice_anchor){.heads = heads};
    while ((given = cx_cli_next(args, "head", given)) != NULL)
        CX_TRY(parse_head(given->values[0], &heads[out->head_count++], err));
    return CX_SUCCESS;
}

/* The answer in the requested form. */
static cx_status write_report(const cx_cli_args *args, const cx_lattice *lattice,
                              const cx_lattice_report *report, cx_buf *out, cx_err *err)
{
    const cx_cli_given *compare = cx_cli_next(args, "compare", NULL);
    cx_str pair[2] = {{NULL, 0}, {NULL, 0}};
    for (size_t i = 0; compare != NULL && i < 2; i++) {
        pair[i] = cx_str_z(compare->values[i]);
        bool known = false;
        for (uint32_t agent = 0; agent < cx_lattice_agent_count(lattice) && !known; agent++)
            known = cx_str_eq(cx_lattice_agent_name(lattice, agent), pair[i]);
        if (!known)
            return cx_fail(
                err, CX_E_USAGE,
                "option --compare: found no agent '%s'; 'cortex lattice heads' lists them",
                compare->values[i]);
    }
    if (cx_cli_has(args, "json"))
        return cx_lattice_report_json(out, lattice, report, err);
    cx_lattice_text_options text = {
        .colour = cx_cli_colour(&args->cli->out, cx_cli_value(args, "color")),
        .details = cx_cli_has(args, "details"),
        .compare = compare == NULL ? NULL : pair,
    };
    return cx_lattice_report_text(out, lattice, report, &text, err);
}

static int verify_and_report(cx_cli *cli, const cx_cli_args *args, const char *path,
                             const cx_lattice *lattice, const cx_lattice_checks *checks)
{
    cx_err err;
    cx_lattice_report *report = NULL;
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    int code;
    cx_status status = cx_lattice_verify(lattice, checks, &report, &err);
    if (!cx_failed(status))
        status = write_report(args, lattice, report, &out, &err);
    if (cx_failed(status))
        code = cx_cli_fail(cli, path, &err, cx_cli_has(args, "json"));
    else
        code = cx_cli_answer(cli, &out,
                             cx_lattice_report_verdict(report) == CX_HOLDS ? CX_EXIT_HOLDS
                                                                           : CX_EXIT_BROKEN);
    cx_buf_done(&out);
    cx_lattice_report_close(report);
    return code;
}

int cx_cli_run_lattice_verify(cx_cli *cli, const cx_cli_args *args)
{
    bool strict = cx_cli_has(args, "strict");
    cx_lattice_checks checks = {
        .content_ids = strict || cx_cli_has(args, "content-ids"),
        .require_seals = strict || cx_cli_has(args, "require-seals"),
        .strict_time = strict || cx_cli_has(args, "strict-time"),
        .unambiguous = strict,
    };
    cx_err err;
    cx_lattice_anchor anchor = {0};
    bool anchored;
    const char *anchor_path;
    cx_status status = collect_heads(cli, args, &anchor, &anchored, &anchor_path, &err);
    if (cx_failed(status)) {
        if (anchor_path == NULL)
            return cx_cli_misuse(args, err.message);
        return cx_cli_fail(cli, anchor_path, &err, cx_cli_has(args, "json"));
    }
    checks.anchor = anchored ? &anchor : NULL;
    int code;
    const char *path = args->operands[0];
    cx_lattice *lattice = cx_cli_open_lattice(
        cli, args, path, anchor.whole ? CX_CLI_KEEP_SEALS : CX_CLI_KEEP_NOTHING, &code);
    if (lattice == NULL)
        return code;
    code = verify_and_report(cli, args, path, lattice, &checks);
    cx_lattice_close(lattice);
    return code;
}

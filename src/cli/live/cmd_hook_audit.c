/*
 * cmd_hook_audit.c - `cortex hook audit`: what was not decided (docs/formats/live.md §10).
 */
#include <string.h>

#include "base/api.h"
#include "cli/live/live.h"
#include "live_audit/api.h"
#include "os/api.h"

typedef struct auditing {
    cx_live_audit_options options;
    const char *transcript;
    bool all, sarif, is_first;
    cx_cli_ledger *l;
    cx_verdict verdict;
    uint64_t audited, by_verdict[3];
} auditing;

/* --- text ------------------------------------------------------------------------------------- */

static void print_place(cx_buf *out, const cx_live_audit_finding *finding)
{
    if (finding->file.size != 0) {
        cx_buf_add_z(out, "\n             transcript ");
        cx_shown_add(out, finding->file);
        if (finding->line != 0)
            cx_buf_printf(out, ":%llu", (unsigned long long)finding->line);
        if (finding->call_id.size != 0) {
            cx_buf_add_z(out, "  call ");
            cx_shown_add(out, finding->call_id);
        }
    }
    if (finding->has_entry)
        cx_buf_printf(out, "\n             entry %llu", (unsigned long long)finding->seq);
    if (finding->where.size != 0) {
        cx_buf_add_z(out, "\n             ");
        cx_shown_add(out, finding->where);
    }
    cx_buf_add_z(out, "\n");
}

static void print_report(cx_buf *out, const cx_live_audit_report *report)
{
    uint64_t listed[CX_LIVE_AUDIT_KIND_COUNT] = {0};
    cx_buf_printf(out, "%s  ", cx_verdict_name(report->verdict));
    cx_shown_add(out, report->agent);
    cx_buf_add_z(out, "  ");
    cx_shown_add(out, report->session);
    cx_buf_printf(out, "  %llu call%s told, %llu with a decision; %llu decision%s recorded\n",
                  (unsigned long long)report->calls, report->calls == 1 ? "" : "s",
                  (unsigned long long)report->matched, (unsigned long long)report->decisions,
                  report->decisions == 1 ? "" : "s");
    for (size_t i = 0; i < report->finding_count; i++) {
        const cx_live_audit_finding *finding = &report->findings[i];
        cx_live_audit_severity severity = cx_live_audit_severity_of(finding->kind);
        listed[finding->kind]++;
        cx_buf_printf(out, "  %-8s %s: ", cx_live_audit_severity_name(severity),
                      cx_live_audit_name(finding->kind));
        cx_shown_add(out, finding->message);
        print_place(out, finding);
    }
    for (cx_live_audit_kind kind = 0; kind < CX_LIVE_AUDIT_KIND_COUNT; kind++)
        if (report->counts[kind] > listed[kind])
            cx_buf_printf(out, "  %s: %llu more\n", cx_live_audit_name(kind),
                          (unsigned long long)(report->counts[kind] - listed[kind]));
}

/* --- work ------------------------------------------------------------------------------------- */

static cx_status take_report(void *arg, const cx_live_audit_report *report, cx_err *err)
{
    auditing *a = arg;
    a->verdict = cx_live_audit_worse(a->verdict, report->verdict);
    a->audited++;
    a->by_verdict[report->verdict]++;
    if (a->sarif)
        return cx_live_audit_sarif_add(&a->l->out, report, &a->is_first, err);
    if (a->l->json) {
        cx_json value;
        cx_arena scratch;
        cx_buf text;
        /* Written at once, so that a report's memory ends with it. */
        cx_arena_init(&scratch, a->l->cli->alloc, 0);
        cx_buf_init(&text, a->l->cli->alloc);
        cx_status status = cx_live_audit_json(report, &scratch, &value, err);
        if (!cx_failed(status))
            status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
        if (!cx_failed(status)) {
            if (a->audited != 1)
                cx_buf_add_byte(&a->l->out, ',');
            cx_buf_add_str(&a->l->out, cx_buf_str(&text));
            status = cx_buf_check(&a->l->out, err);
        }
        cx_buf_done(&text);
        cx_arena_done(&scratch);
        return status;
    }
    print_report(&a->l->out, report);
    return cx_buf_check(&a->l->out, err);
}

/* Exit code 1 is a gap that was found, never an audit that was not possible. */
static cx_status refuse(cx_status status, cx_err *err)
{
    bool ambiguous = err->tag != NULL && strcmp(err->tag, "Ambiguous") == 0;
    if (status.code == CX_E_CONFLICT || status.code == CX_E_DENIED || status.code == CX_E_EXISTS ||
        status.code == CX_E_LIMIT)
        err->code = status.code = ambiguous ? CX_E_USAGE : CX_E_FORMAT;
    return status;
}

static cx_status ask_audit(cx_cli_ledger *l, auditing *a, cx_err *err)
{
    cx_live_audit_report report;
    const char *name = l->args->operand_count != 0 ? l->args->operands[0] : "";
    if (a->all)
        return cx_live_audit_all(l->home, &a->options, take_report, a, err);
    CX_TRY(cx_live_audit_session(l->home, &a->options, cx_str_z(name), a->transcript, l->arena,
                                 &report, err));
    return take_report(a, &report, err);
}

static cx_status audit_sessions(cx_cli_ledger *l, void *state, cx_err *err)
{
    auditing *a = state;
    static const int codes[] = {CX_EXIT_HOLDS, CX_EXIT_BROKEN, CX_EXIT_UNCHECKED};
    a->l = l;
    a->is_first = true;
    a->options.alloc = l->cli->alloc;
    if (a->sarif)
        cx_live_audit_sarif_begin(&l->out);
    else if (l->json)
        cx_buf_add_z(&l->out, "{\"sessions\":[");
    cx_status status = ask_audit(l, a, err);
    if (cx_failed(status)) {
        cx_buf_clear(&l->out);
        return refuse(status, err);
    }
    l->exit_code = codes[a->verdict];
    if (a->sarif) {
        cx_live_audit_sarif_end(&l->out, a->verdict);
    } else if (l->json) {
        cx_buf_printf(&l->out, "],\"audited\":%llu,\"verdict\":\"%s\"}\n",
                      (unsigned long long)a->audited, cx_verdict_name(a->verdict));
    } else if (a->all) {
        cx_buf_printf(&l->out, "%s: %llu session%s audited, %llu broken, %llu indeterminate\n",
                      cx_verdict_name(a->verdict), (unsigned long long)a->audited,
                      a->audited == 1 ? "" : "s", (unsigned long long)a->by_verdict[CX_BROKEN],
                      (unsigned long long)a->by_verdict[CX_INDETERMINATE]);
    }
    return cx_buf_check(&l->out, err);
}

static cx_status read_options(cx_cli_ledger *l, void *state, cx_err *err)
{
    auditing *a = state;
    const char *since = cx_cli_value(l->args, "since");
    a->all = cx_cli_has(l->args, "all") || since != NULL;
    a->sarif = cx_cli_has(l->args, "sarif");
    a->transcript = cx_cli_value(l->args, "transcript");
    a->options.repo = cx_cli_value(l->args, "repo");
    a->options.no_work_tree = cx_cli_has(l->args, "no-work-tree");
    if (a->all && (l->args->operand_count != 0 || a->transcript != NULL || a->options.repo != NULL))
        return cx_fail(err, CX_E_USAGE,
                       "--all and --since audit many sessions: give neither SESSION, --transcript "
                       "nor --repo");
    if (a->sarif && l->json)
        return cx_fail(err, CX_E_USAGE, "--json and --sarif are two forms: give one");
    if (a->options.repo != NULL && a->options.no_work_tree)
        return cx_fail(err, CX_E_USAGE,
                       "--repo names the work tree that --no-work-tree leaves out");
    return since == NULL ? CX_SUCCESS
                         : cx_cli_parse_moment(l->cli, "--since", since, &a->options.since_ns, err);
}

static int run_hook_audit(cx_cli *cli, const cx_cli_args *args)
{
    auditing state = {.verdict = CX_HOLDS};
    const cx_cli_job job = {.access = CX_CLI_READ, .prepare = read_options, .work = audit_sessions};
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand operands[] = {{"SESSION", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("transcript", 0, CX_CLI_FILE, "FILE",
               "Read this transcript in place of the archived ones."),
    CX_CLI_OPT_FLAG("all", 0,
                    "Every session of the data directory, and every archived transcript."),
    CX_CLI_OPT("since", 0, CX_CLI_TEXT, "TIME",
               "Those with something newer: a date, a time, or an age such as 7d."),
    CX_CLI_OPT("repo", 0, CX_CLI_FILE, "DIR",
               "The work tree to compare; default the one of the session's policy."),
    CX_CLI_OPT_FLAG("no-work-tree", 0, "Do not compare files and commits."),
    CX_CLI_OPT_FLAG("sarif", 0, "Answer in SARIF 2.1.0."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_hook_audit = {
    .name = "hook audit",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .purpose = "find tool calls of a session that no hook decided",
    .about = "Compares the transcript of a session, and the files and commits of its work tree, "
             "with what its hooks recorded. Each finding names both sides. SESSION is an id, its "
             "first digits, the actor, or the name of an archived transcript; default the newest.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 every call that ran was decided, and ran as decided\n1 an enforcement gap\n2 usage "
             "error, or something named does not exist\n3 indeterminate, or could not be checked",
    .example = "cortex hook audit\ncortex hook audit --all --since 7d --sarif",
    .run = run_hook_audit,
};

/*
 * cmd_demo.c - `cortex demo`: first the forensic part on two recorded histories, then a scenario in
 * a folder (demo_scenario.c).
 *
 * The forensic part begins with two printouts that every copy of this program must reproduce
 * exactly. An incident follows, from the question to the node that answers it.  Every step checks
 * what it shows: exit code 0 means that all of it was as expected.  This part writes nothing to the
 * disk.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/demo/demo.h"
#include "crypto/api.h"
#include "lattice/api.h"
#include "rules/api.h"

#define MERGE "examples/merge.jsonl"       /* the four nodes of lattice.md §7.1 */
#define INCIDENT "examples/incident.jsonl" /* an invented incident: a planted page raises a limit */

static int run_demo(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_option options[] = {
    CX_CLI_OPT("dir", 0, CX_CLI_FILE, "DIR",
               "Run the demo in DIR, which must be empty or not exist; default: a new folder below "
               "$TMPDIR or /tmp."),
    CX_CLI_OPT_FLAG("forensic", 0, "Show only the built-in incident; nothing is written."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_demo = {
    .name = "demo",
    .purpose = "record, govern, prove and tamper in a sample project",
    .about =
        "Three agents sign what they decide; a governed run changes a small repository; memories "
        "name the decision and the run they come from; a snapshot is sealed, and one evidence file "
        "is made for an auditor. Then one byte is changed in the log, the database, the proof, the "
        "bundle, a decision and the evidence page, and each change is detected. Finally 'cortex "
        "why' traces a line of code to its origins. Every line after $ is a command that was run "
        "and can be typed again; all files stay in DIR. Without a sandbox for agents (see 'cortex "
        "doctor') the governed run is skipped, and the exit code is 3.\n\nThe first part, which "
        "--forensic shows alone, verifies a small history and runs the selftest. It then draws, "
        "queries and tampers with an invented incident: a planted page raises a refund limit, and "
        "an agent pays ten times too much. The same history is in examples/incident.jsonl.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits =
        "0 everything was as expected\n1 something was not; the output says what\n2 usage error\n3 "
        "a part was skipped, which the output names, or the output could not be written",
    .example = "cortex demo --dir ~/cortex-demo",
    .run = run_demo,
};

static const char merge_expected[] =
    "=== CORTEX FORENSIC DEBUGGER (CFD) v2.0.0 ===\n"
    "Loaded 4 trace nodes from DATG.\n"
    "Branch 'system': VALID\n"
    "Branch 'agent_a': VALID\n"
    "Branch 'agent_b': VALID\n"
    "[SUCCESS] All branches verified successfully.\n"
    "--- COMPARING AGENTS: agent_a vs agent_b ---\n"
    "Lowest Common Ancestor (LCA): n0\n"
    "Agent agent_a sub-path extensions: ['n1_a', 'n2']\n"
    "Agent agent_b sub-path extensions: ['n1_b']\n"
    "[SUCCESS] Multi-Agent CFD Verification Complete. 100% congruent.\n"
    "Evidence: hash=held monotonic=held lineage=held containment=held structure=held seals=none "
    "ids=labels time=ordered anchor=none\n";

static const char selftest_expected[] =
    "--- RUNNING Valid Trace ---\n"
    "[PASS] Replay CLI successfully verified the trace (Valid Trace).\n"
    "--- RUNNING Payload Corruption ---\n"
    "[PASS] Replay CLI correctly rejected the corrupted trace (Payload Corruption).\n"
    "--- RUNNING Sequence Gap ---\n"
    "[PASS] Replay CLI correctly rejected the corrupted trace (Sequence Gap).\n"
    "--- RUNNING Event Swap ---\n"
    "[PASS] Replay CLI correctly rejected the corrupted trace (Event Swap).\n"
    "--- RUNNING Metadata Corruption ---\n"
    "[PASS] Replay CLI correctly rejected the corrupted trace (Metadata Corruption).\n"
    "--- ALL TESTS PASSED ---\n";

typedef struct demo {
    cx_cli *cli;
    cx_buf out;
    cx_bytes merge, incident; /* the histories, as their files are; static */
    size_t step_start;        /* where the output of the running step begins */
    unsigned surprises;
    bool colour;
} demo;

/* --- showing and expecting ----------------------------------------------------------------- */

static void add_caption(demo *d, const char *text)
{
    cx_buf_printf(&d->out, "%s\n# %s%s\n", d->colour ? "\033[1m" : "", text,
                  d->colour ? "\033[0m" : "");
}

/* The command line that would print what follows. */
static void add_command_line(demo *d, const char *line)
{
    cx_buf_printf(&d->out, "%s$ cortex %s%s\n", d->colour ? "\033[36m" : "", line,
                  d->colour ? "\033[0m" : "");
    d->step_start = d->out.size;
}

static void expect_step(demo *d, bool as_expected, const char *what)
{
    if (as_expected)
        return;
    d->surprises++;
    cx_buf_printf(&d->out, "[UNEXPECTED] %s\n", what);
}

/* What the running step printed, without colours; NULL data when out of memory. */
static cx_str plain_output(const demo *d)
{
    cx_str text =
        cx_str_from((const char *)d->out.data + d->step_start, d->out.size - d->step_start);
    char *plain = CX_ARENA_ARRAY(&d->cli->arena, char, text.size + 1);
    size_t size = 0;
    if (d->out.failed || plain == NULL)
        return (cx_str){NULL, 0};
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\033')
            while (i < text.size && text.data[i] != 'm')
                i++;
        else
            plain[size++] = text.data[i];
    }
    return (cx_str){plain, size};
}

static bool step_printed(const demo *d, const char *text)
{
    cx_str plain = plain_output(d);
    return plain.data != NULL && memmem(plain.data, plain.size, text, strlen(text)) != NULL;
}

static bool step_printed_exactly(const demo *d, const char *text)
{
    return cx_str_is(plain_output(d), text);
}

static cx_answer_options text_options(const demo *d)
{
    return (cx_answer_options){
        .verified = true, .json = false, .colour = d->colour, .reasons = true};
}

/* --- part one: fixed printouts --------------------------------------------------------------- */

static cx_status show_merge(demo *d, cx_err *err)
{
    const cx_str pair[] = {CX_STR("agent_a"), CX_STR("agent_b")};
    const cx_lattice_text_options text = {.compare = pair};
    cx_lattice_options reading = CX_LATTICE_OPTIONS_INIT;
    cx_lattice *lattice = NULL;
    cx_lattice_report *report = NULL;
    cx_status status;
    add_caption(d, "Four nodes, two agents that branch and merge: does the history hold?");
    add_command_line(d, "lattice verify examples/merge.jsonl --compare agent_a agent_b");
    CX_TRY_GOTO(status, cx_lattice_open_bytes(d->merge, &reading, &lattice, err));
    CX_TRY_GOTO(status, cx_lattice_verify(lattice, NULL, &report, err));
    CX_TRY_GOTO(status, cx_lattice_report_text(&d->out, lattice, report, &text, err));
    expect_step(d, step_printed_exactly(d, merge_expected),
                "the report differs from the one it must be");
done:
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    return status;
}

static cx_status show_selftest(demo *d, cx_err *err)
{
    unsigned failed = 0;
    add_caption(d, "Would it notice? One good history, four damaged ones, three schema versions.");
    add_command_line(d, "lattice selftest");
    CX_TRY(cx_lattice_selftest(&d->out, &failed, err));
    expect_step(d, failed == 0 && step_printed_exactly(d, selftest_expected),
                "the selftest differs from what it must print");
    return CX_SUCCESS;
}

/* --- part two: the incident ---------------------------------------------------------------- */

static cx_status show_verdict(demo *d, const cx_lattice *lattice, cx_lattice_report *report,
                              cx_err *err)
{
    cx_lattice_text_options text = {.colour = d->colour, .details = true};
    return cx_lattice_report_text(&d->out, lattice, report, &text, err);
}

static cx_status show_strict(demo *d, const cx_lattice *lattice, cx_err *err)
{
    static const cx_lattice_checks strict = {true, true, true, true, NULL};
    cx_lattice_report *report = NULL;
    cx_status status;
    add_caption(d, "The incident: a customer asked for 4800.00, ten times the order, and an agent\n"
                   "# paid it. First: can the record be trusted?");
    add_command_line(d, "lattice verify examples/incident.jsonl --strict");
    CX_TRY_GOTO(status, cx_lattice_verify(lattice, &strict, &report, err));
    CX_TRY_GOTO(status, show_verdict(d, lattice, report, err));
    expect_step(d, cx_lattice_report_verdict(report) == CX_HOLDS, "the incident does not hold");
done:
    cx_lattice_report_close(report);
    return status;
}

static cx_status show_graph(demo *d, const cx_lattice *lattice, cx_err *err)
{
    cx_render_options picture = {.form = CX_RENDER_TERMINAL,
                                 .colour = d->colour,
                                 .columns = cx_cli_columns(),
                                 .first = 10,
                                 .max_nodes = 16};
    cx_lattice_report *report = NULL;
    cx_status status;
    add_caption(d, "What happened around the payment, one lane an agent:");
    add_command_line(d, "lattice render examples/incident.jsonl --first 10 --max 16");
    CX_TRY_GOTO(status, cx_lattice_verify(lattice, NULL, &report, err));
    picture.report = report;
    CX_TRY_GOTO(status, cx_lattice_render(&d->out, lattice, &picture, err));
    expect_step(d, step_printed(d, "researcher") && step_printed(d, "coder"),
                "the picture lacks its agents");
done:
    cx_lattice_report_close(report);
    return status;
}

static cx_status show_heatmap(demo *d, const cx_lattice *lattice, cx_err *err)
{
    const cx_answer_options text = text_options(d);
    add_caption(d, "Which nodes did most branches start from?");
    add_command_line(d, "lattice heatmap examples/incident.jsonl");
    CX_TRY(cx_lattice_answer_heatmap(&d->out, lattice, &text, err));
    expect_step(d, step_printed(d, " 4\n"), "no node has four children");
    return CX_SUCCESS;
}

static cx_status show_why(demo *d, const cx_states *states, cx_node coder, cx_err *err)
{
    const cx_answer_options text = text_options(d);
    add_caption(d, "Why did the coder believe in a limit of 50000? Newest change first:");
    add_command_line(d, "lattice why examples/incident.jsonl @coder refund_limit --section memory");
    CX_TRY(cx_lattice_answer_why(&d->out, states, coder, CX_STR("refund_limit"), CX_STR("memory"),
                                 &text, err));
    expect_step(d, step_printed(d, "researcher#3 memory.refund_limit: - -> 50000 (delta)"),
                "the planted page is not among the causes");
    expect_step(d, step_printed(d, "-> 50000 (merge)"),
                "the merge that brought it over is missing");
    return CX_SUCCESS;
}

/* How the planted node's id begins: it is the only injection. */
static cx_str planted_id(const cx_lattice *lattice)
{
    cx_lattice_node_info info;
    for (cx_node node = 0; node < cx_lattice_count(lattice); node++) {
        cx_lattice_node(lattice, node, &info);
        if (info.fork_type == CX_FORK_INJECTION)
            return cx_str_from(info.id.data, 8);
    }
    return CX_STR("none");
}

static cx_status show_bisect(demo *d, const cx_lattice *lattice, const cx_states *states,
                             cx_node researcher, cx_err *err)
{
    const cx_answer_options text = text_options(d);
    cx_predicate predicate;
    add_caption(d, "Which node introduced the value?");
    add_command_line(
        d, "lattice bisect examples/incident.jsonl @researcher '/memory/refund_limit>=50000'");
    CX_TRY(
        cx_predicate_parse(CX_STR("/memory/refund_limit>=50000"), &d->cli->arena, &predicate, err));
    CX_TRY(cx_lattice_answer_bisect(&d->out, states, researcher, &predicate, &text, err));
    cx_str id = cx_arena_copy_str(&d->cli->arena, planted_id(lattice));
    expect_step(d, id.data != NULL && step_printed(d, id.data), "the planted node is not named");
    return CX_SUCCESS;
}

static cx_status show_compare(demo *d, const cx_states *states, cx_err *err)
{
    const cx_answer_options text = text_options(d);
    add_caption(d, "The reviewer read the real handbook. How far apart are the two?");
    add_command_line(d, "lattice compare examples/incident.jsonl coder reviewer");
    CX_TRY(cx_lattice_answer_compare(&d->out, states, CX_STR("coder"), CX_STR("reviewer"), &text,
                                     err));
    expect_step(
        d, step_printed(d, "refund_limit") && step_printed(d, "50000") && step_printed(d, "500"),
        "the two limits are not shown");
    return CX_SUCCESS;
}

/* Shows the answers that need states. */
static cx_status show_questions(demo *d, const cx_lattice *lattice, cx_err *err)
{
    cx_state_options merging = CX_STATE_OPTIONS_INIT;
    cx_states *states = NULL;
    cx_status status;
    cx_node coder = cx_lattice_find(lattice, CX_STR("@coder"));
    cx_node researcher = cx_lattice_find(lattice, CX_STR("@researcher"));
    if (coder == CX_NODE_NONE || researcher == CX_NODE_NONE)
        return cx_fail(err, CX_E_FORMAT, INCIDENT ": expected the agents coder and researcher");
    CX_TRY(cx_states_open(lattice, &merging, &states, err));
    CX_TRY_GOTO(status, show_why(d, states, coder, err));
    CX_TRY_GOTO(status, show_bisect(d, lattice, states, researcher, err));
    CX_TRY_GOTO(status, show_compare(d, states, err));
done:
    cx_states_close(states);
    return status;
}

static cx_status show_incident(demo *d, cx_err *err)
{
    cx_lattice_options reading = CX_LATTICE_OPTIONS_INIT;
    reading.keep_deltas = true;
    cx_lattice *lattice = NULL;
    cx_status status;
    CX_TRY_GOTO(status, cx_lattice_open_bytes(d->incident, &reading, &lattice, err));
    CX_TRY_GOTO(status, show_strict(d, lattice, err));
    CX_TRY_GOTO(status, show_graph(d, lattice, err));
    CX_TRY_GOTO(status, show_heatmap(d, lattice, err));
    CX_TRY_GOTO(status, show_questions(d, lattice, err));
done:
    cx_lattice_close(lattice);
    return status;
}

/* --- part three: one byte ------------------------------------------------------------------ */

/* A copy in which the amount of the payment is smaller by a digit; *out_line is where. */
static cx_status forge_payment(demo *d, cx_str *out, uint64_t *out_line, cx_err *err)
{
    static const char honest[] = "\"amount\":4800.0";
    cx_str copy = cx_arena_copy_str(&d->cli->arena,
                                    cx_str_from((const char *)d->incident.data, d->incident.size));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    char *at = strstr((char *)(uintptr_t)copy.data, honest);
    if (at == NULL)
        return cx_fail(err, CX_E_FORMAT, INCIDENT ": expected %s", honest);
    at[sizeof honest - 1 - strlen("4800.0")] = '1';
    uint64_t column;
    cx_json_locate(copy, (size_t)(at - copy.data), out_line, &column);
    *out = copy;
    return CX_SUCCESS;
}

static cx_status show_forgery(demo *d, cx_err *err)
{
    cx_lattice_options reading = CX_LATTICE_OPTIONS_INIT;
    cx_lattice *lattice = NULL;
    cx_lattice_report *report = NULL;
    cx_status status;
    cx_str copy = {NULL, 0};
    uint64_t line = 0;
    CX_TRY(forge_payment(d, &copy, &line, err));
    cx_str title = cx_arena_printf(&d->cli->arena,
                                   "An attacker makes the payment look smaller: 4800.0 becomes "
                                   "1800.0,\n# one byte in line %llu of a copy.",
                                   (unsigned long long)line);
    if (title.data == NULL)
        return cx_fail_nomem(err);
    add_caption(d, title.data);
    add_command_line(d, "lattice verify copy.jsonl --details");
    CX_TRY_GOTO(status, cx_lattice_open_bytes(cx_str_bytes(copy), &reading, &lattice, err));
    CX_TRY_GOTO(status, cx_lattice_verify(lattice, NULL, &report, err));
    CX_TRY_GOTO(status, show_verdict(d, lattice, report, err));
    size_t count;
    const cx_lattice_finding *errors = cx_lattice_report_errors(report, &count);
    bool found = count == 1 && errors[0].code == CX_E_HASH && errors[0].node != CX_NODE_NONE;
    cx_lattice_node_info info = {0};
    if (found)
        cx_lattice_node(lattice, errors[0].node, &info);
    expect_step(d, found && info.line == line, "the forged node is not the one that is named");
done:
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    return status;
}

static cx_status show_all(demo *d, cx_err *err)
{
    if (!cx_run_asset(MERGE, &d->merge) || !cx_run_asset(INCIDENT, &d->incident))
        return cx_fail(err, CX_E_NOT_FOUND, "this program carries no " MERGE " or no " INCIDENT);
    CX_TRY(show_merge(d, err));
    CX_TRY(show_selftest(d, err));
    CX_TRY(show_incident(d, err));
    CX_TRY(show_forgery(d, err));
    add_caption(d, d->surprises == 0
                       ? "All of it was as expected. Try it: cortex help lattice; your own traces: "
                         "cortex import --list"
                       : "Not all of it was as expected: look for [UNEXPECTED].");
    return CX_SUCCESS;
}

/* In --dir, or in a new folder with a random name. */
static int run_scenario(cx_cli *cli, const cx_cli_args *args)
{
    const char *folder = cx_cli_value(args, "dir"), *base = getenv("TMPDIR");
    uint8_t random[6];
    char name[13] = "";
    if (folder != NULL)
        return cx_cli_demo_scenario(cli, args, folder);
    if (cli->io->random(cli->io, random, sizeof random) != 0)
        return CX_EXIT_UNCHECKED;
    cx_hex_encode(cx_bytes_from(random, sizeof random), name);
    cx_str path = cx_arena_printf(&cli->arena, "%s/cortex-demo-%s",
                                  base == NULL || base[0] != '/' ? "/tmp" : base, name);
    return path.data == NULL ? CX_EXIT_UNCHECKED : cx_cli_demo_scenario(cli, args, path.data);
}

static int run_demo(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err;
    demo d = {.cli = cli, .colour = cx_cli_colour(&cli->out, cx_cli_value(args, "color"))};
    cx_buf_init(&d.out, cli->alloc);
    cx_status status = show_all(&d, &err);
    int code = cx_cli_answer(cli, &d.out, d.surprises == 0 ? CX_EXIT_HOLDS : CX_EXIT_BROKEN);
    if (cx_failed(status))
        code = cx_cli_fail(cli, "demo", &err, false);
    cx_buf_done(&d.out);
    if (code != CX_EXIT_HOLDS || cx_cli_has(args, "forensic"))
        return code;
    return run_scenario(cli, args);
}

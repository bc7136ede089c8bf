/*
 * cmd_lattice_render.c - `cortex lattice render`: the history as a picture.
 */
#include <string.h>

#include "cli/cli.h"
#include "cli/ledger/ledger.h"
#include "lattice/api.h"
#include "view/api.h"
#include "recorder/api.h"
#include "server/api.h"

static int run_lattice_render(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("ascii", 0, "Text for a terminal, with nothing beyond ASCII in it."),
    CX_CLI_OPT_FLAG("svg", 0, "A picture for a browser."),
    CX_CLI_OPT_FLAG("dot", 0, "For Graphviz."),
    CX_CLI_OPT_FLAG("html", 0,
                    "Write the debugger with its data as one HTML file that any browser opens."),
    CX_CLI_OPT_FLAG("layout-json", 0,
                    "Write the position of every node as JSON, for programs that draw."),
    CX_CLI_OPT_FLAG("fold", 0, "Quiet stretches of one agent become one row."),
    CX_CLI_OPT_FLAG("no-labels", 0, "Leave out the text of nodes; faster on long histories."),
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "OUT", "Write to OUT, atomically."),
    CX_CLI_OPT("first", 0, CX_CLI_COUNT, "N", "Begin at row N of the topological order, from 0."),
    CX_CLI_OPT("max", 0, CX_CLI_COUNT, "N",
               "Draw at most N nodes; default 200 on a terminal, else all."),
    CX_CLI_OPTION_PART,
    CX_CLI_OPT_FLAG("json", 0, "The same as --layout-json, with errors as JSON too."),
    CX_CLI_OPTIONS_READING,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_lattice_render = {
    .name = "lattice render",
    .purpose = "draw the history",
    .about = "Draws the graph with one lane an agent, oldest first: forks, merges, and marks on "
             "nodes that fail verification. Text for a terminal (the default), SVG, Graphviz, the "
             "layout as JSON, or one HTML file with everything in it that 'cortex lattice view' "
             "shows (of long histories 2000 events; see --first).",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 drawn, and the lattice holds\n"
             "1 drawn, but the lattice does not hold\n"
             "2 usage error\n"
             "3 unreadable, or the output could not be written",
    .example = "cortex lattice render history.jsonl --svg -o history.svg",
    .run = run_lattice_render,
};

/* False when more than one form is given. */
static bool choose_form(const cx_cli_args *args, cx_render_form *out)
{
    bool json = cx_cli_has(args, "layout-json");
    bool svg = cx_cli_has(args, "svg"), dot = cx_cli_has(args, "dot");
    if (svg + dot + json + cx_cli_has(args, "ascii") + cx_cli_has(args, "html") > 1)
        return false;
    *out = CX_RENDER_TERMINAL;
    if (svg)
        *out = CX_RENDER_SVG;
    else if (dot)
        *out = CX_RENDER_DOT;
    else if (json || (cx_cli_has(args, "json") && !cx_cli_has(args, "ascii")))
        *out = CX_RENDER_JSON;
    return true;
}

static uint32_t clamp_number(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static cx_status draw_lattice(const cx_cli_args *args, const cx_lattice *lattice,
                              const cx_lattice_report *report, cx_render_form form, cx_buf *out,
                              cx_err *err)
{
    bool to_stdout = cx_cli_value(args, "output") == NULL;
    const char *when = cx_cli_value(args, "color");
    cx_render_options picture = {
        .form = form,
        .colour = cx_cli_colour(&args->cli->out, when == NULL && !to_stdout ? "never" : when),
        .columns = to_stdout ? cx_cli_columns() : 0,
        .max_nodes = clamp_number(cx_cli_number(args, "max", 0)),
        .first = clamp_number(cx_cli_number(args, "first", 0)),
        .report = report,
        .ascii = cx_cli_has(args, "ascii"),
        .fold = cx_cli_has(args, "fold"),
        .no_labels = cx_cli_has(args, "no-labels"),
    };
    return cx_lattice_render(out, lattice, &picture, err);
}

/* For recorded traces: the snapshots that contain the shown nodes. Other sources have none. */
static cx_status keep_snapshots(cx_cli *cli, const cx_cli_args *args, const cx_lattice *lattice,
                                cx_lattice_view *view, cx_arena *arena, cx_err *err)
{
    const char *path = args->operands[0];
    cx_lattice_view_snapshot *list;
    size_t count;
    cx_home *home = NULL;
    if (path[0] != '@' || strncmp(path, "@run/", 5) == 0 || cx_external_is(cx_str_z(path + 1)))
        return CX_SUCCESS;
    const cx_home_options reading = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    CX_TRY(cx_cli_home_path(cli, args, &path, err));
    CX_TRY(cx_home_open(path, &reading, &home, err));
    cx_status status = cx_recorder_snapshot_marks(home, lattice, arena, &list, &count, err);
    if (!cx_failed(status))
        status = cx_lattice_view_snapshots(view, list, count, err);
    cx_status closed = cx_home_close(home, NULL);
    (void)closed; /* nothing was written */
    return status;
}

/* head, the data, tail: the page was cut where its data goes when it was built. */
static cx_status draw_page(cx_cli *cli, const cx_cli_args *args, const cx_lattice *lattice,
                           const cx_lattice_report *report, cx_buf *out, cx_err *err)
{
    const cx_state_options merging = CX_STATE_OPTIONS_INIT;
    const char *path = args->operands[0], *name = strrchr(path, '/');
    const cx_lattice_view_part part = {
        .title = cx_json_shown(cx_str_z(name == NULL ? path : name + 1), &cli->arena),
        .first = clamp_number(cx_cli_number(args, "first", 0)),
        .count = clamp_number(cx_cli_number(args, "max", 0))};
    cx_lattice_view *view = NULL;
    cx_states *states = NULL;
    uint32_t nodes = 0;
    cx_arena arena;
    if (!cx_page_is_built())
        return cx_fail(err, CX_E_UNSUPPORTED,
                       "option --html: this program was built without the page; README.md says "
                       "how to build it with the page");
    cx_buf_add(out, cx_page_single_head.data, cx_page_single_head.size);
    cx_arena_init(&arena, cli->alloc, 0);
    cx_status status = cx_states_open(lattice, &merging, &states, err);
    if (!cx_failed(status))
        status = cx_lattice_view_open(lattice, report, false, &view, err);
    if (!cx_failed(status))
        status = keep_snapshots(cli, args, lattice, view, &arena, err);
    if (!cx_failed(status))
        status = cx_lattice_view_carry(out, view, states, &part, &nodes, err);
    cx_lattice_view_close(view);
    cx_states_close(states);
    cx_arena_done(&arena);
    CX_TRY(status);
    if (nodes < cx_lattice_count(lattice))
        cx_cli_complain("note: the file holds %lu of %lu events, starting at row %lu; --first and "
                        "--max select others",
                        (unsigned long)nodes, (unsigned long)cx_lattice_count(lattice),
                        (unsigned long)part.first);
    cx_buf_add(out, cx_page_single_tail.data, cx_page_single_tail.size);
    return cx_buf_check(out, err);
}

static cx_status write_file(cx_cli *cli, const char *path, const cx_buf *contents, cx_err *err)
{
    cx_cli_file file;
    CX_TRY(cx_buf_check(contents, err));
    CX_TRY(cx_cli_file_begin(&file, cli->io, path, err));
    cx_status status = cx_cli_file_write(&file, cx_buf_bytes(contents), err);
    if (!cx_failed(status))
        return cx_cli_file_commit(&file, err);
    cx_cli_file_abort(&file);
    return status;
}

static int draw_and_write(cx_cli *cli, const cx_cli_args *args, const cx_lattice *lattice,
                          const cx_lattice_report *report, cx_render_form form)
{
    cx_err err;
    const char *about = args->operands[0], *path = cx_cli_value(args, "output");
    int code = CX_EXIT_HOLDS;
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    if (cx_lattice_report_verdict(report) != CX_HOLDS)
        code = CX_EXIT_BROKEN;
    cx_status status = cx_cli_has(args, "html")
                           ? draw_page(cli, args, lattice, report, &out, &err)
                           : draw_lattice(args, lattice, report, form, &out, &err);
    if (!cx_failed(status) && path != NULL && strcmp(path, "-") != 0) {
        about = path;
        status = write_file(cli, path, &out, &err);
    } else if (!cx_failed(status)) {
        code = form == CX_RENDER_TERMINAL ? cx_cli_answer(cli, &out, code)
                                          : cx_cli_answer_exact(cli, &out, code);
    }
    if (cx_failed(status))
        code = cx_cli_fail(cli, about, &err, cx_cli_has(args, "json"));
    cx_buf_done(&out);
    return code;
}

static int run_lattice_render(cx_cli *cli, const cx_cli_args *args)
{
    cx_render_form form;
    if (!choose_form(args, &form))
        return cx_cli_misuse(args,
                             "expected one of --ascii, --svg, --dot, --html and --layout-json");
    if (cx_cli_has(args, "html") && cx_cli_has(args, "part"))
        return cx_cli_misuse(args, "--html holds states, which depend on the whole history: "
                                   "expected no --part with it");
    int code;
    cx_lattice_report *report = NULL;
    cx_lattice *lattice = cx_cli_open_verified(
        cli, args, args->operands[0], cx_cli_value(args, "part"),
        cx_cli_has(args, "html") ? CX_CLI_KEEP_DELTAS : CX_CLI_KEEP_NOTHING, &report, &code);
    if (lattice == NULL)
        return code;
    code = draw_and_write(cli, args, lattice, report, form);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    return code;
}

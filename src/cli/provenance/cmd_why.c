/*
 * cmd_why.c - `cortex why`: from a line of code, or any other object, to its origins
 * (docs/formats/provenance.md).
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/links.h"
#include "cli/provenance/session.h"
#include "lattice/api.h"

#define NODES_MAX 64 /* that changed a value and are followed */

/* --- as text -------------------------------------------------------------------------------- */

static uint64_t number_of(const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    uint64_t number = 0;
    return value != NULL && cx_json_uint64(value, &number) ? number : 0;
}

static void add_indent(cx_buf *out, uint64_t depth)
{
    for (uint64_t i = 0; i < depth; i++)
        cx_buf_add_z(out, "  ");
}

static const char *colour_of(cx_str verdict)
{
    return cx_str_is(verdict, "holds")    ? "\033[32m"
           : cx_str_is(verdict, "broken") ? "\033[31m"
                                          : "\033[33m";
}

static void add_verdict(cx_buf *out, cx_str verdict, bool colour)
{
    cx_buf_printf(out, "%s%.*s%s", colour ? colour_of(verdict) : "", (int)verdict.size,
                  verdict.data, colour ? "\033[0m" : "");
}

/* The name of a line links to it: the facts say which file and line git found. */
static void add_name(cx_buf *out, const cx_json *step, cx_str name, const cx_cli_links *links)
{
    const cx_json *facts = CX_JSON_GET(step, "facts");
    if (!cx_str_is(CX_JSON_GET_STR(step, "kind"), "line") || facts == NULL ||
        facts->type != CX_JSON_OBJECT) {
        cx_shown_add(out, name);
        return;
    }
    cx_cli_links_add(out, links, CX_JSON_GET_STR(facts, "path"), number_of(facts, "line"), name);
}

static void add_step(cx_buf *out, const cx_json *step, const cx_cli_links *links, bool colour)
{
    const cx_json *link = CX_JSON_GET(step, "link");
    uint64_t depth = number_of(step, "depth");
    cx_str kind = CX_JSON_GET_STR(step, "kind"), verdict = CX_JSON_GET_STR(step, "verdict");
    bool linked = link != NULL && link->type == CX_JSON_OBJECT;
    cx_str own = CX_JSON_GET_STR(step, "by");
    cx_str by = linked ? CX_JSON_GET_STR(link, "by") : own;
    add_indent(out, depth);
    if (linked) {
        cx_str relation = CX_JSON_GET_STR(link, "relation");
        cx_buf_printf(out, "%.*s: ", (int)relation.size, relation.data);
    }
    cx_str name = cx_json_get_str(step, cx_str_z(cx_str_is(kind, "component") ? "title" : "id"));
    cx_buf_printf(out, "%.*s%s", (int)kind.size, kind.data, name.size == 0 ? "" : " ");
    add_name(out, step, name, links);
    cx_buf_add_byte(out, '\n');
    if (cx_str_is(kind, "component"))
        return;
    add_indent(out, depth);
    cx_buf_add_z(out, "    ");
    cx_shown_add(out, CX_JSON_GET_STR(step, "title"));
    cx_buf_add_byte(out, '\n');
    add_indent(out, depth);
    cx_buf_add_z(out, "    ");
    add_verdict(out, verdict, colour);
    cx_buf_add_z(out, ": ");
    cx_shown_add(out, own);
    cx_buf_add_byte(out, '\n');
    if (!linked || cx_str_eq(by, own))
        return;
    add_indent(out, depth);
    cx_buf_add_z(out, "    link ");
    add_verdict(out, CX_JSON_GET_STR(link, "verdict"), colour);
    cx_buf_add_z(out, ": ");
    cx_shown_add(out, by);
    cx_buf_add_byte(out, '\n');
}

static void print_why(cx_buf *out, const cx_json *answer, const cx_cli_links *links, bool colour)
{
    const cx_json *steps = CX_JSON_GET(answer, "steps"),
                  *limits = CX_JSON_GET(answer, "not_proven");
    cx_buf_add_z(out, "Why ");
    cx_shown_add(out, CX_JSON_GET_STR(answer, "question"));
    cx_buf_add_z(out, "?\n");
    for (uint32_t i = 0; steps != NULL && i < steps->count; i++)
        add_step(out, &steps->items[i], links, colour);
    cx_buf_add_z(out, "verdict: ");
    add_verdict(out, CX_JSON_GET_STR(answer, "verdict"), colour);
    cx_buf_add_byte(out, '\n');
    for (uint32_t i = 0; limits != NULL && i < limits->count; i++) {
        cx_buf_add_z(out, "not proven: ");
        cx_shown_add(out, cx_json_text(&limits->items[i]));
        cx_buf_add_byte(out, '\n');
    }
}

/* --- a value of a lattice --------------------------------------------------------------------- */

/* The nodes of an answer of `lattice why`, each as an object of its branch. */
static cx_status nodes_of(cx_cli *cli, cx_str answer, const char *branch, cx_prov_object *out,
                          size_t *out_count, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_parse_text(answer, &cli->arena, &value, err));
    const cx_json *changes = CX_JSON_GET(&value, "changes");
    *out_count = 0;
    for (uint32_t i = 0; changes != NULL && i < changes->count && *out_count < NODES_MAX; i++) {
        cx_str node = CX_JSON_GET_STR(&changes->items[i], "node");
        cx_str agent = CX_JSON_GET_STR(&changes->items[i], "agent");
        cx_prov_object object = {.kind = CX_PROV_NODE,
                                 .id = node,
                                 .actor = agent.size != 0 ? agent : cx_str_z(branch + 1),
                                 .matched = "node_hash",
                                 .known = true};
        out[(*out_count)++] = object;
    }
    return CX_SUCCESS;
}

static cx_status ask_lattice_why(cx_cli *cli, const cx_cli_args *args, const cx_lattice *lattice,
                                 cx_prov_object *out, size_t *out_count, cx_err *err)
{
    const char *name = args->operands[1], *key = args->operands[2];
    const cx_answer_options json = {.verified = true, .json = true};
    const cx_state_options merging = CX_STATE_OPTIONS_INIT;
    cx_node node;
    cx_states *states = NULL;
    cx_buf answer;
    if (cx_failed(cx_lattice_resolve(lattice, cx_str_z(name), &node, NULL)))
        return cx_fail(err, CX_E_USAGE,
                       "found no node '%s' ('cortex lattice heads %s' lists the newest)", name,
                       args->operands[0]);
    CX_TRY(cx_states_open_for(lattice, &merging, &node, 1, &states, err));
    cx_buf_init(&answer, cli->alloc);
    cx_status status =
        cx_lattice_answer_why(&answer, states, node, cx_str_z(key), (cx_str){NULL, 0}, &json, err);
    if (!cx_failed(status)) {
        cx_str text = cx_arena_copy_str(&cli->arena, cx_buf_str(&answer));
        status = text.data == NULL ? cx_fail_nomem(err)
                                   : nodes_of(cli, text, args->operands[0], out, out_count, err);
    }
    cx_buf_done(&answer);
    cx_states_close(states);
    return status;
}

/* --- the command ------------------------------------------------------------------------------ */

typedef struct why_query {
    cx_prov_object objects[NODES_MAX];
    size_t count;
    cx_str question;
    cx_json candidates;
} why_query;

static cx_status find_causes(cx_cli *cli, const cx_cli_args *args, cx_cli_session *session,
                             why_query *asked, cx_buf *out, int *code, cx_err *err)
{
    cx_json answer;
    if (asked->count == 0) {
        CX_TRY(cx_cli_session_find(cli, session, args->operands[0], true, &asked->objects[0],
                                   &asked->candidates, err));
        asked->count = 1;
        asked->question = asked->objects[0].id;
    }
    CX_TRY(cx_why_of_many(&session->sources, asked->objects, asked->count, asked->question,
                          &cli->arena, &answer, err));
    cx_str verdict = CX_JSON_GET_STR(&answer, "verdict");
    *code = cx_str_is(verdict, "holds")    ? CX_EXIT_HOLDS
            : cx_str_is(verdict, "broken") ? CX_EXIT_BROKEN
                                           : CX_EXIT_UNCHECKED;
    if (!cx_cli_has(args, "json")) {
        cx_cli_links links;
        cx_cli_links_begin(&links, args,
                           session->git == NULL ? NULL : cx_git_worktree(session->git));
        print_why(out, &answer, &links,
                  cx_cli_colour(&args->cli->out, cx_cli_value(args, "color")));
        return cx_buf_check(out, err);
    }
    CX_TRY(cx_json_write(out, &answer, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

/* With @BRANCH NODE KEY: the nodes that made the value; *out_exit is set when there are none. */
static bool read_lattice_operand(cx_cli *cli, const cx_cli_args *args, why_query *asked,
                                 int *out_exit)
{
    cx_err err;
    cx_lattice *lattice =
        cx_cli_open_lattice(cli, args, args->operands[0], CX_CLI_KEEP_DELTAS, out_exit);
    if (lattice == NULL)
        return false;
    cx_status status = ask_lattice_why(cli, args, lattice, asked->objects, &asked->count, &err);
    cx_lattice_close(lattice);
    asked->question = cx_arena_printf(&cli->arena, "%s %s %s", args->operands[0], args->operands[1],
                                      args->operands[2]);
    if (!cx_failed(status) && asked->count == 0)
        status = cx_fail(&err, CX_E_USAGE, "no node changed '%s'", args->operands[2]);
    if (cx_failed(status))
        *out_exit = cx_cli_fail(cli, args->operands[0], &err, cx_cli_has(args, "json"));
    return !cx_failed(status);
}

static int answer_why(cx_cli *cli, const cx_cli_args *args, why_query *asked)
{
    cx_err err = {0};
    cx_cli_session session = {0};
    cx_buf out;
    int code = CX_EXIT_HOLDS;
    cx_buf_init(&out, cli->alloc);
    cx_status status = cx_cli_session_open(cli, args, &session, &err);
    if (!cx_failed(status))
        status = find_causes(cli, args, &session, asked, &out, &code, &err);
    if (cx_failed(status)) {
        cx_buf_clear(&out);
        if (asked->candidates.type == CX_JSON_OBJECT && !cx_cli_has(args, "json"))
            cx_cli_session_candidates(&out, &asked->candidates);
        (void)cx_cli_answer(cli, &out, 0);
        code = cx_cli_session_fail(cli, args, &err);
    } else {
        code = cx_cli_answer(cli, &out, code);
    }
    cx_cli_session_close(&session);
    cx_buf_done(&out);
    return code;
}

static int run_why(cx_cli *cli, const cx_cli_args *args)
{
    why_query *asked = CX_ARENA_NEW(&cli->arena, why_query);
    int code = CX_EXIT_UNCHECKED;
    if (asked == NULL)
        return CX_EXIT_UNCHECKED;
    memset(asked, 0, sizeof *asked);
    bool lattice = args->operands[0][0] == '@';
    if (lattice != (args->operand_count == 3) || args->operand_count == 2)
        return cx_cli_misuse(args, "expected one ID, or @BRANCH NODE KEY");
    if (lattice && !read_lattice_operand(cli, args, asked, &code))
        return code;
    return answer_why(cli, args, asked);
}

static const cx_cli_operand operands[] = {{"ID", CX_CLI_TEXT, NULL, false, false},
                                          {"NODE", CX_CLI_TEXT, NULL, true, false},
                                          {"KEY", CX_CLI_TEXT, NULL, true, false}};
static const cx_cli_option options[] = {CX_CLI_OPTIONS_SESSION, CX_CLI_OPTIONS_LIMITS,
                                        CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_LINKS,
                                        CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_why = {
    .name = "why",
    .purpose = "trace a line, commit, run, decision or memory to its origins",
    .about = "ID is a line of a file (FILE:LINE), a commit, a run, an event (RUN/N), a trace, a "
             "memory, a URI (matrix://.., cortex://trace/ID, cortex://run/ID), an entry "
             "(ACTOR/SEQ) or a lattice node; or @BRANCH NODE KEY asks for the origin of a value in "
             "a lattice. The answer goes from the line to the commit that wrote it, the governed "
             "run that made the commit, its contract and gates, the signed decisions that led to "
             "it, and the memories that they read and wrote. Each step and each link has a verdict "
             "and names its evidence: `indeterminate` means that it is only stated. 'cortex "
             "lattice why' answers within one lattice.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 every step and every link holds\n1 one is broken\n2 usage error, or ID is unknown "
             "or ambiguous\n3 one is only stated or not available, or could not be answered",
    .example = "cortex why src/refund.py:2",
    .run = run_why,
};

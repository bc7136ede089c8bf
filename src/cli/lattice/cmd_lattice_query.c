/*
 * cmd_lattice_query.c - questions about a history: state why reach grep heatmap compare heads show
 * bisect (lattice.md §8).
 *
 * All run the same way: open, verify, find the operands, build the states that the answer needs,
 * answer. The exit code is that of the verification (0 holds, 1 does not), because an answer from
 * a damaged history is an answer about a damaged history.
 */
#include <string.h>

#include "cli/cli.h"
#include "lattice/api.h"

/* What a question needs before it can be answered. */
typedef struct query {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *path;
    cx_lattice *lattice;
    cx_states *states;
    cx_state_options state_options;
    cx_agent_role *roles;
    size_t role_count;
    cx_answer_options answer;
    cx_buf out;
    cx_node targets[2];
    size_t target_count;
    bool found_nothing; /* exit 1 though the lattice holds */
} query;

/* --- finding what is meant ----------------------------------------------------------------- */

static cx_status take_node(query *q, cx_node node, const char *name, cx_err *err)
{
    cx_lattice_node_info info;
    cx_lattice_node(q->lattice, node, &info);
    if (!info.in_graph)
        return cx_fail(err, CX_E_USAGE,
                       "node '%s' is unusable or repeated, and stands in no history", name);
    q->targets[q->target_count++] = node;
    return CX_SUCCESS;
}

static cx_status find_node(query *q, const char *name, cx_err *err)
{
    cx_node node;
    cx_status status = cx_lattice_resolve(q->lattice, cx_str_z(name), &node, err);
    if (cx_failed(status)) {
        err->code = CX_E_USAGE;
        return (cx_status){CX_E_USAGE};
    }
    return take_node(q, node, name, err);
}

/* An agent, for its newest node, or a node. */
static cx_status find_side(query *q, const char *name, cx_err *err)
{
    cx_node node;
    cx_str head = cx_arena_printf(&q->cli->arena, "@%s", name);
    if (head.data == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_lattice_resolve(q->lattice, head, &node, NULL)) &&
        cx_failed(cx_lattice_resolve(q->lattice, cx_str_z(name), &node, NULL)))
        return cx_fail(err, CX_E_USAGE,
                       "found no agent and no node '%s' ('cortex lattice heads' lists the agents)",
                       name);
    return take_node(q, node, name, err);
}

/* --- state options ------------------------------------------------------------------------- */

/* NAME=NUMBER; the locale is never set, so the decimal point is a point. */
static cx_status parse_priority(const char *text, cx_arena *arena, cx_agent_priority *out,
                                cx_err *err)
{
    const char *equals = strrchr(text, '=');
    cx_json number;
    if (equals != NULL && equals != text &&
        !cx_failed(cx_json_parse_text(cx_str_z(equals + 1), arena, &number, NULL)) &&
        cx_json_double(&number, &out->priority)) {
        out->agent = cx_str_from(text, (size_t)(equals - text));
        return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_USAGE,
                   "option --priority: found '%s', expected AGENT=NUMBER or role:ROLE=NUMBER",
                   text);
}

static cx_status parse_role(const char *text, cx_agent_role *out, cx_err *err)
{
    const char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == 0)
        return cx_fail(err, CX_E_USAGE, "option --role: found '%s', expected AGENT=ROLE", text);
    *out = (cx_agent_role){cx_str_from(text, (size_t)(equals - text)), cx_str_z(equals + 1)};
    return CX_SUCCESS;
}

static cx_merge_strategy strategy_named(const char *name)
{
    if (name == NULL || strcmp(name, "lww") == 0)
        return CX_MERGE_LWW;
    if (strcmp(name, "confidence") == 0)
        return CX_MERGE_CONFIDENCE;
    return strcmp(name, "policy") == 0 ? CX_MERGE_POLICY : CX_MERGE_MANUAL;
}

static cx_status read_state_options(query *q, cx_err *err)
{
    const cx_cli_args *args = q->args;
    const char *base = cx_cli_value(args, "base");
    q->state_options.strategy = strategy_named(cx_cli_value(args, "strategy"));
    q->state_options.base_none = base != NULL && strcmp(base, "none") == 0;
    cx_agent_priority *list =
        CX_ARENA_ARRAY(&q->cli->arena, cx_agent_priority, args->given_count + 1);
    if (list == NULL)
        return cx_fail_nomem(err);
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(args, "priority", given)) != NULL)
        CX_TRY(parse_priority(given->values[0], &q->cli->arena,
                              &list[q->state_options.priority_count++], err));
    q->state_options.priorities = list;
    q->roles = CX_ARENA_ARRAY(&q->cli->arena, cx_agent_role, args->given_count + 1);
    if (q->roles == NULL)
        return cx_fail_nomem(err);
    while ((given = cx_cli_next(args, "role", given)) != NULL)
        CX_TRY(parse_role(given->values[0], &q->roles[q->role_count++], err));
    return CX_SUCCESS;
}

/* Priorities of roles become those of the agents that have them. */
static cx_status resolve_roles(query *q, cx_err *err)
{
    return cx_lattice_resolve_roles(q->lattice, q->roles, q->role_count, &q->cli->arena,
                                    &q->state_options, err);
}

/* --- the run of a question ----------------------------------------------------------------- */

typedef struct question {
    bool states; /* needs the states of its targets and has the state options */
    bool node;   /* its second operand is a node */
    bool parts;  /* it has CX_CLI_OPTION_PART */
    bool sides;  /* its second and third operands are agents or nodes */
    cx_status (*answer)(query *q, cx_err *err);
} question;

static cx_status answer_question(query *q, const question *asked, cx_err *err)
{
    if (asked->node)
        CX_TRY(find_node(q, q->args->operands[1], err));
    for (size_t i = 1; asked->sides && i <= 2; i++)
        CX_TRY(find_side(q, q->args->operands[i], err));
    if (asked->states)
        CX_TRY(resolve_roles(q, err));
    if (asked->states)
        CX_TRY(cx_states_open_for(q->lattice, &q->state_options, q->targets, q->target_count,
                                  &q->states, err));
    return asked->answer(q, err);
}

static int run_question(cx_cli *cli, const cx_cli_args *args, const question *asked)
{
    cx_err err;
    query q = {.cli = cli, .args = args, .path = args->operands[0]};
    q.answer.json = cx_cli_has(args, "json");
    q.answer.colour = cx_cli_colour(&cli->out, cx_cli_value(args, "color"));
    if (asked->states && cx_failed(read_state_options(&q, &err)))
        return cx_cli_misuse(args, err.message);
    int code;
    cx_lattice_report *report = NULL;
    q.lattice = cx_cli_open_verified(
        cli, args, q.path, asked->parts ? cx_cli_value(args, "part") : NULL,
        asked->states ? CX_CLI_KEEP_DELTAS : CX_CLI_KEEP_NOTHING, &report, &code);
    if (q.lattice == NULL)
        return code;
    q.answer.verified = cx_lattice_report_verdict(report) == CX_HOLDS;
    cx_lattice_report_close(report);
    cx_buf_init(&q.out, cli->alloc);
    if (cx_failed(answer_question(&q, asked, &err))) {
        code = cx_cli_fail(cli, q.path, &err, q.answer.json);
    } else {
        code = cx_cli_answer(
            cli, &q.out, q.answer.verified && !q.found_nothing ? CX_EXIT_HOLDS : CX_EXIT_BROKEN);
        if (!q.answer.verified && !q.answer.json)
            cx_cli_complain("%s does not hold; 'cortex lattice verify' shows the findings", q.path);
    }
    cx_buf_done(&q.out);
    cx_states_close(q.states);
    cx_lattice_close(q.lattice);
    return code;
}

/* --- the questions ------------------------------------------------------------------------- */

static const cx_cli_operand file_only[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};
static const cx_cli_operand file_node[] = {{"FILE", CX_CLI_FILE, NULL, false, false},
                                           {"NODE", CX_CLI_TEXT, NULL, false, false}};

#define OPTION_JSON CX_CLI_OPT_FLAG("json", 0, "One line of canonical JSON instead of text.")
#define OPTIONS_STATE                                                                           \
    CX_CLI_OPT("strategy", 0, CX_CLI_CHOICE, "lww|confidence|policy|manual",                    \
               "How competing values merge where the node names no strategy; default lww."),    \
        CX_CLI_OPT("base", 0, CX_CLI_CHOICE, "lca|none",                                        \
                   "Merge against the best common ancestors (lca, the default) or two-way "     \
                   "(none)."),                                                                  \
        CX_CLI_OPT_MANY("priority", 0, CX_CLI_TEXT, "NAME=NUMBER",                              \
                        "Priority of an agent, or of role:ROLE, for --strategy policy; others " \
                        "have 0. May be repeated."),                                            \
        CX_CLI_OPT_MANY("role", 0, CX_CLI_TEXT, "AGENT=ROLE",                                   \
                        "The role of an agent; default: agent_role in the event of its newest " \
                        "node. May be repeated.")

#define EXITS                                                                                     \
    "0 answered, and the lattice holds\n1 answered, but the lattice does not hold "               \
    "(\"verified\":false)\n2 usage error, or an unknown node or agent\n3 unreadable, or a cycle " \
    "prevents an answer"

#define COMMAND(symbol, words, what, text, operand_list, option_list, sample, function) \
    const cx_cli_command symbol = {                                                     \
        .name = words,                                                                  \
        .purpose = what,                                                                \
        .about = text,                                                                  \
        .operands = operand_list,                                                       \
        .operand_count = CX_COUNT_OF(operand_list),                                     \
        .options = option_list,                                                         \
        .option_count = CX_COUNT_OF(option_list),                                       \
        .exits = EXITS,                                                                 \
        .example = sample,                                                              \
        .run = function,                                                                \
    }

/* state */

static cx_status answer_state(query *q, cx_err *err)
{
    return cx_lattice_answer_state(&q->out, q->states, q->targets[0],
                                   cx_cli_has(q->args, "inherited"), &q->answer, err);
}

static int run_state(cx_cli *cli, const cx_cli_args *args)
{
    static const question asked = {.states = true, .node = true, .answer = answer_state};
    return run_question(cli, args, &asked);
}

static const cx_cli_option state_options[] = {
    CX_CLI_OPT_FLAG("inherited", 0, "The state before the node's own changes."), OPTIONS_STATE,
    OPTION_JSON, CX_CLI_OPTIONS_READING, CX_CLI_OPTIONS_COMMON};

COMMAND(cx_cli_lattice_state, "lattice state", "show what an agent knew at a node",
        "Rebuilds memory, beliefs, goals and context at NODE from everything before it, merging "
        "branches where they meet. NODE is a node_id, a hash, the first digits of one, AGENT#SEQ, "
        "or @AGENT for that agent's newest node. Merges that could not be decided (strategy "
        "manual) are listed as conflicts.",
        file_node, state_options, "cortex lattice state history.jsonl @coder", run_state);

/* why */

static cx_status answer_why(query *q, cx_err *err)
{
    const char *section = cx_cli_value(q->args, "section"), *text = cx_cli_value(q->args, "text");
    /* Programs get the members that lattice.md §8 names, and the others when they ask for them. */
    q->answer.reasons = !q->answer.json || cx_cli_has(q->args, "reasons");
    cx_status status = text != NULL
                           ? cx_lattice_answer_said(&q->out, q->lattice, q->targets[0],
                                                    cx_str_z(text), &q->answer, err)
                           : cx_lattice_answer_why(
                                 &q->out, q->states, q->targets[0], cx_str_z(q->args->operands[2]),
                                 cx_str_z(section == NULL ? "" : section), &q->answer, err);
    if (status.code != CX_E_NOT_FOUND)
        return status;
    err->code = CX_E_USAGE;
    return (cx_status){CX_E_USAGE};
}

static int run_why(cx_cli *cli, const cx_cli_args *args)
{
    static const question asked = {.states = true, .node = true, .answer = answer_why};
    static const question said = {.node = true, .answer = answer_why};
    bool by_text = cx_cli_value(args, "text") != NULL;
    if (by_text == (args->operand_count == 3))
        return cx_cli_misuse(args, by_text ? "KEY and --text are two questions: leave one out"
                                           : "expected KEY, for example: cortex lattice why "
                                             "history.jsonl @coder refund_limit; or --text "
                                             "SENTENCE");
    if (by_text && cx_cli_value(args, "section") != NULL)
        return cx_cli_misuse(args, "--section is about a KEY, not about --text");
    return run_question(cli, args, by_text ? &said : &asked);
}

static const cx_cli_operand why_operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false},
                                              {"NODE", CX_CLI_TEXT, NULL, false, false},
                                              {"KEY", CX_CLI_TEXT, NULL, true, false}};
static const cx_cli_option why_options[] = {
    CX_CLI_OPT("text", 0, CX_CLI_TEXT, "SENTENCE",
               "Not a value: where this text was said before NODE, and where it came through."),
    CX_CLI_OPT("section", 0, CX_CLI_CHOICE, "memory|beliefs", "Look only there; default both."),
    CX_CLI_OPT_FLAG("reasons", 0,
                    "In JSON too, the reason of each change and its source; text always has them."),
    OPTIONS_STATE,
    OPTION_JSON,
    CX_CLI_OPTIONS_READING,
    CX_CLI_OPTIONS_COMMON};

COMMAND(cx_cli_lattice_why, "lattice why", "list every change that led to a value",
        "Lists, newest first, each node before NODE (and NODE itself) that changed KEY: who, from "
        "what, to what, and whether by its own doing (delta) or because branches met (merge). It "
        "shows recorded changes, not causes.\n\n"
        "KEY is a key of memory or beliefs (limit), of an object in it (memory.order.limit), or a "
        "JSON pointer (/memory/order/limit). A key that never was there is an error that names "
        "the nearest ones.\n\n"
        "With --text SENTENCE in place of KEY: the steps that said it before NODE (or NODE "
        "itself), oldest first, and how: a message, what a model was given, a call's arguments, "
        "its result, a file. White space does not matter. A sentence that is in none of them is "
        "an error that names the nearest.",
        why_operands, why_options, "cortex lattice why history.jsonl @coder refund_limit", run_why);

/* reach */

static cx_status answer_reach(query *q, cx_err *err)
{
    return cx_lattice_answer_reach(&q->out, q->lattice, q->targets[0], &q->answer, err);
}

static int run_reach(cx_cli *cli, const cx_cli_args *args)
{
    static const question asked = {.node = true, .answer = answer_reach};
    return run_question(cli, args, &asked);
}

static const cx_cli_option reach_options[] = {OPTION_JSON, CX_CLI_OPTIONS_READING,
                                              CX_CLI_OPTIONS_COMMON};

COMMAND(
    cx_cli_lattice_reach, "lattice reach", "show what else a step reached",
    "Lists, oldest first, the steps after NODE (its descendants) that carry its text: a message, "
    "an argument, a result or a changed value of theirs shares 24 bytes or more with NODE's "
    "content, white space aside, that no step outside of NODE's descendants has; or that have "
    "its call id. The last line says how many follow at all.\n\n"
    "What follows may have been influenced; what carries the text has read it, or the same. A "
    "paraphrase is not found, and of NODE's content the first MiB is compared.",
    file_node, reach_options, "cortex lattice reach history.jsonl tools#3", run_reach);

/* grep */

static cx_status answer_grep(query *q, cx_err *err)
{
    uint64_t most = cx_cli_number(q->args, "max", 200);
    uint32_t total;
    size_t count = q->args->operand_count - 1;
    cx_str *words = CX_ARENA_ARRAY(&q->cli->arena, cx_str, count);
    if (words == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        words[i] = cx_str_z(q->args->operands[i + 1]);
    CX_TRY(cx_lattice_answer_grep(&q->out, q->lattice, words, count,
                                  most < UINT32_MAX ? (uint32_t)most : UINT32_MAX, &q->answer,
                                  &total, err));
    q->found_nothing = total == 0;
    return CX_SUCCESS;
}

static int run_grep(cx_cli *cli, const cx_cli_args *args)
{
    static const question asked = {.parts = true, .answer = answer_grep};
    return run_question(cli, args, &asked);
}

static const cx_cli_operand grep_operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false},
                                               {"WORDS", CX_CLI_TEXT, NULL, false, true}};
static const cx_cli_option grep_options[] = {
    CX_CLI_OPT("max", 0, CX_CLI_COUNT, "N", "List at most N hits; default 200."),
    CX_CLI_OPTION_PART, OPTION_JSON, CX_CLI_OPTIONS_READING, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_lattice_grep = {
    .name = "lattice grep",
    .purpose = "find the steps of a history that say something",
    .about =
        "Lists, in order, the nodes whose content has all WORDS: messages, arguments, results, "
        "errors, reasons, changed values. A word may be a part of another one, or several in "
        "quotes; case (of ASCII letters) and white space do not matter. It needs no index; 'cortex "
        "search' looks through everything that is recorded.",
    .operands = grep_operands,
    .operand_count = CX_COUNT_OF(grep_operands),
    .options = grep_options,
    .option_count = CX_COUNT_OF(grep_options),
    .exits = "0 found, and the lattice holds\n1 found nothing, or the lattice does not hold\n2 "
             "usage error\n3 unreadable",
    .example = "cortex lattice grep history.jsonl refund limit",
    .run = run_grep,
};

/* heatmap */

static cx_status answer_heatmap(query *q, cx_err *err)
{
    return cx_lattice_answer_heatmap(&q->out, q->lattice, &q->answer, err);
}

static int run_heatmap(cx_cli *cli, const cx_cli_args *args)
{
    static const question asked = {.answer = answer_heatmap};
    return run_question(cli, args, &asked);
}

static const cx_cli_option plain_options[] = {OPTION_JSON, CX_CLI_OPTIONS_READING,
                                              CX_CLI_OPTIONS_COMMON};

COMMAND(cx_cli_lattice_heatmap, "lattice heatmap", "rank the nodes where histories diverge most",
        "Lists the nodes with more than one child, most children first: the places where one "
        "decision or observation spread to several branches.",
        file_only, plain_options, "cortex lattice heatmap history.jsonl", run_heatmap);

/* compare */

static cx_status answer_compare(query *q, cx_err *err)
{
    return cx_lattice_answer_compare_nodes(&q->out, q->states, q->targets, &q->answer, err);
}

static int run_compare(cx_cli *cli, const cx_cli_args *args)
{
    static const question asked = {.states = true, .sides = true, .answer = answer_compare};
    return run_question(cli, args, &asked);
}

static const cx_cli_operand compare_operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false},
                                                  {"A", CX_CLI_TEXT, NULL, false, false},
                                                  {"B", CX_CLI_TEXT, NULL, false, false}};
static const cx_cli_option compare_options[] = {OPTIONS_STATE, OPTION_JSON, CX_CLI_OPTIONS_READING,
                                                CX_CLI_OPTIONS_COMMON};

COMMAND(cx_cli_lattice_compare, "lattice compare",
        "show where two agents diverge and how they differ",
        "Shows the last node both lines share, what each did since, the best common ancestors of "
        "both through all parents, and where the states differ. A and B are agents, for their "
        "newest nodes, or nodes.",
        compare_operands, compare_options, "cortex lattice compare history.jsonl coder reviewer",
        run_compare);

/* heads */

static cx_status answer_heads(query *q, cx_err *err)
{
    return cx_lattice_answer_heads(&q->out, q->lattice, &q->answer, err);
}

static int run_heads(cx_cli *cli, const cx_cli_args *args)
{
    static const question asked = {.answer = answer_heads};
    return run_question(cli, args, &asked);
}

COMMAND(cx_cli_lattice_heads, "lattice heads", "list each agent's newest node",
        "Lists every agent with its newest node, which other commands accept as @AGENT.", file_only,
        plain_options, "cortex lattice heads history.jsonl", run_heads);

/* show */

static cx_status answer_show(query *q, cx_err *err)
{
    return cx_lattice_answer_show(&q->out, q->lattice, q->targets[0], &q->answer, err);
}

static int run_show(cx_cli *cli, const cx_cli_args *args)
{
    static const question asked = {.parts = true, .node = true, .answer = answer_show};
    return run_question(cli, args, &asked);
}

static const cx_cli_option show_options[] = {CX_CLI_OPTION_PART, OPTION_JSON,
                                             CX_CLI_OPTIONS_READING, CX_CLI_OPTIONS_COMMON};

COMMAND(cx_cli_lattice_show, "lattice show", "show one node in full",
        "Shows a node as it was recorded, with its resolved parents and its children. NODE is a "
        "node_id, a hash, the first digits of one, AGENT#SEQ, or @AGENT for that agent's newest "
        "node.",
        file_node, show_options, "cortex lattice show history.jsonl @planner", run_show);

/* bisect */

static cx_status answer_bisect(query *q, cx_err *err)
{
    cx_predicate predicate;
    cx_err parse_err;
    if (cx_failed(cx_predicate_parse(cx_str_z(q->args->operands[2]), &q->cli->arena, &predicate,
                                     &parse_err)))
        return cx_fail(err, CX_E_USAGE, "predicate '%s': %s", q->args->operands[2],
                       parse_err.message);
    return cx_lattice_answer_bisect(&q->out, q->states, q->targets[0], &predicate, &q->answer, err);
}

static int run_bisect(cx_cli *cli, const cx_cli_args *args)
{
    static const question asked = {.states = true, .node = true, .answer = answer_bisect};
    return run_question(cli, args, &asked);
}

static const cx_cli_operand bisect_operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false},
                                                 {"NODE", CX_CLI_TEXT, NULL, false, false},
                                                 {"PREDICATE", CX_CLI_TEXT, NULL, false, false}};

COMMAND(cx_cli_lattice_bisect, "lattice bisect",
        "find the first node where a condition became true",
        "Walks the line from the start to NODE and names the first node whose state makes the "
        "predicate true, and each later node where that changes.\n\nPREDICATE is a JSON pointer "
        "into the state, alone (the member exists) or followed by =VALUE, !=VALUE, <N, <=N, >N, "
        ">=N, or ~TEXT (the string contains TEXT). VALUE is JSON, or plain text if it is not valid "
        "JSON. Quote it for the shell.",
        bisect_operands, compare_options,
        "cortex lattice bisect history.jsonl @coder '/memory/refund_limit>=50000'", run_bisect);

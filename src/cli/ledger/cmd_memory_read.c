/*
 * cmd_memory_read.c - `cortex memory get`, `list`, `context`, `walk`.
 */
#include <string.h>

#include "cli/ledger/read_scope.h"
#include "cli/ledger/memory_view.h"
#include "memory/api.h"

enum {
    LIST_DEFAULT = 100,
    LIST_MAX = 1000,
    CONTEXT_DEFAULT = 4000,
    WALK_DEFAULT = 3,
    EDGES_MAX = 10000
};

/* --- get -------------------------------------------------------------------------------------- */

typedef struct get_state {
    cx_cli_name name;
    cx_cli_scope scope;
} get_state;

static cx_status prepare_get(cx_cli_ledger *l, void *state, cx_err *err)
{
    get_state *s = state;
    CX_TRY(cx_cli_parse_name(l->args->operands[0], &s->name, err));
    if (cx_cli_has(l->args, "scope") && s->name.latest)
        return cx_fail(err, CX_E_USAGE, "with --scope, expected the memory's whole URI");
    return cx_cli_read_scope(l->cli, l->args, &s->scope, err);
}

static cx_status edges_of(cx_cli_ledger *l, const cx_id *id, bool to, cx_json_list *json,
                          cx_err *err)
{
    const cx_edge_view *edges;
    size_t count;
    CX_TRY(cx_memory_edges(l->memory, id, to, 0, true, EDGES_MAX, l->arena, &edges, &count, err));
    cx_json_list list = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < count; i++) {
        if (!l->json) {
            cx_buf_printf(&l->out, "  %-12s ", i != 0 ? "" : to ? "edges to" : "edges from");
            cx_cli_edge_line(&edges[i].edge, &l->out);
            continue;
        }
        cx_json_list edge = cx_json_list_begin(l->arena);
        cx_view_edge(&edges[i].edge, &edge);
        cx_json_add_object(&list, &edge);
    }
    if (l->json)
        cx_json_put_array(json, to ? "edges_to" : "edges_from", &list);
    return CX_SUCCESS;
}

static cx_status memory_get_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    get_state *s = state;
    const cx_scope_use *granted;
    cx_memory_view view;
    CX_TRY(cx_cli_scope_open(l, &s->scope, &granted, err));
    if (granted != NULL)
        CX_TRY(cx_memory_resolve_scoped(l->memory, &s->name.uri, granted, l->arena, &view, err));
    else if (s->name.latest)
        CX_TRY(cx_memory_resolve_latest(l->memory, &s->name.uri.id, l->arena, &view, err));
    else
        CX_TRY(cx_memory_resolve(l->memory, &s->name.uri, l->arena, &view, err));
    cx_json_list json = cx_json_list_begin(l->arena);
    if (!l->json)
        CX_TRY(cx_cli_memory_text(&view, l->arena, &l->out, err));
    else
        CX_TRY(cx_view_memory(&view, &json, err));
    if (cx_cli_has(l->args, "edges")) {
        CX_TRY(edges_of(l, &view.uri.id, false, &json, err));
        CX_TRY(edges_of(l, &view.uri.id, true, &json, err));
    }
    return l->json ? cx_cli_end_json(&json, &l->out, err) : CX_SUCCESS;
}

static int run_memory_get(cx_cli *cli, const cx_cli_args *args)
{
    /* Under a scope a read that is not allowed is journaled: that is a write. */
    static const cx_cli_job plain = {CX_CLI_READ, true, prepare_get, memory_get_job};
    static const cx_cli_job scoped = {CX_CLI_WRITE, true, prepare_get, memory_get_job};
    get_state state;
    if (cx_cli_has(args, "scope") && cx_cli_has(args, "edges"))
        return cx_cli_misuse(args, "option --edges: not available with --scope");
    return cx_cli_run_job(cli, args, cx_cli_has(args, "scope") ? &scoped : &plain, &state);
}

static const cx_cli_operand uri_operand[] = {{"URI", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option get_options[] = {
    CX_CLI_OPT_FLAG("edges", 0, "Also the edges from and to it, removed ones included."),
    CX_CLI_OPTIONS_SCOPE, CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_get = {
    .name = "memory get",
    .purpose = "show one memory",
    .about = "Shows the memory at exactly the version that URI names; a ULID means the current "
             "version. Dead and expired memories are shown and marked.",
    .operands = uri_operand,
    .operand_count = CX_COUNT_OF(uri_operand),
    .options = get_options,
    .option_count = CX_COUNT_OF(get_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex memory get 01HF7YAT000000000000000003 --edges",
    .run = run_memory_get,
};

/* --- list ------------------------------------------------------------------------------------- */

typedef struct list_state {
    uint8_t type;
    bool has_after;
    cx_id after;
    size_t limit;
} list_state;

static cx_status prepare_list(cx_cli_ledger *l, void *state, cx_err *err)
{
    list_state *s = state;
    const char *type = cx_cli_value(l->args, "type"), *after = cx_cli_value(l->args, "after");
    uint64_t limit = cx_cli_number(l->args, "limit", LIST_DEFAULT);
    if (limit == 0 || limit > LIST_MAX)
        return cx_fail(err, CX_E_USAGE, "option --limit: found %llu, expected 1 to %d",
                       (unsigned long long)limit, LIST_MAX);
    s->limit = (size_t)limit;
    s->type = type == NULL ? 0 : cx_uri_type_code(cx_str_z(type));
    s->has_after = after != NULL;
    if (after != NULL && !cx_ulid_parse(cx_str_z(after), &s->after))
        return cx_fail(err, CX_E_USAGE, "option --after: found '%s', expected a ULID", after);
    return CX_SUCCESS;
}

static cx_status memory_list_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    list_state *s = state;
    const cx_memory_view *views;
    size_t count;
    CX_TRY(cx_memory_list(l->memory, s->type, cx_cli_has(l->args, "all"),
                          s->has_after ? &s->after : NULL, s->limit, l->arena, &views, &count,
                          err));
    cx_json_list list = cx_json_list_begin(l->arena), json = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < count; i++) {
        if (!l->json) {
            cx_cli_memory_line(&views[i], &l->out);
            continue;
        }
        cx_json_list item = cx_json_list_begin(l->arena);
        CX_TRY(cx_view_memory(&views[i], &item, err));
        cx_json_add_object(&list, &item);
    }
    bool more = count == s->limit;
    if (!l->json) {
        char id[CX_ULID_SIZE];
        if (count == 0)
            cx_buf_add_z(&l->out, "no memories\n");
        if (more) {
            cx_ulid_format(&views[count - 1].uri.id, id);
            cx_buf_printf(&l->out, "there may be more: --after %.26s\n", id);
        }
        return CX_SUCCESS;
    }
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uint(&json, "count", count);
    if (more)
        cx_json_put_id(&json, "next_after", &views[count - 1].uri.id);
    else
        cx_json_put_null(&json, "next_after");
    cx_json_put_array(&json, "memories", &list);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_memory_list(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, true, prepare_list, memory_list_job};
    list_state state;
    return cx_cli_run_job(cli, args, &job, &state);
}

#define TYPE_NAMES "Identity|Fact|Preference|Belief|Event|Goal|Constraint|Capability|Pattern"

static const cx_cli_option list_options[] = {
    CX_CLI_OPT("type", 0, CX_CLI_CHOICE, TYPE_NAMES, "Only this type."),
    CX_CLI_OPT_FLAG("all", 0, "Dead ones too."),
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most N, up to 1000; default 100."),
    CX_CLI_OPT("after", 0, CX_CLI_TEXT, "ULID", "Continue after this id."),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_list = {
    .name = "memory list",
    .purpose = "list all memories by id",
    .about = "Lists live memories, oldest id first.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex memory list --type Goal",
    .run = run_memory_list,
};

/* --- context ---------------------------------------------------------------------------------- */

static cx_status prepare_context(cx_cli_ledger *l, void *state, cx_err *err)
{
    return cx_cli_read_scope(l->cli, l->args, state, err);
}

static cx_status memory_context_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const cx_scope_use *granted;
    const cx_memory_hit *hits;
    size_t count;
    uint64_t budget = cx_cli_number(l->args, "budget", CONTEXT_DEFAULT);
    CX_TRY(cx_cli_scope_open(l, state, &granted, err));
    CX_TRY(cx_memory_context(l->memory, budget, granted, l->arena, &hits, &count, err));
    if (l->json)
        return cx_cli_hits_answer(l, hits, count, false, err);
    for (size_t i = 0; i < count; i++) {
        cx_shown_add(&l->out, hits[i].view.head.forms.medium);
        cx_buf_add_byte(&l->out, '\n');
    }
    return CX_SUCCESS;
}

static int run_memory_context(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, true, prepare_context, memory_context_job};
    cx_cli_scope state;
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_option context_options[] = {
    CX_CLI_OPT("budget", 0, CX_CLI_COUNT, "TOKENS",
               "How many tokens (a quarter of the bytes) the texts may take; default 4000."),
    CX_CLI_OPTIONS_SCOPE, CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_context = {
    .name = "memory context",
    .purpose = "print memories as context for a model",
    .about = "Prints, within a budget, the identity of the actor, hard constraints, active goals, "
             "then facts by salience, one text a line.",
    .options = context_options,
    .option_count = CX_COUNT_OF(context_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex memory context --budget 2000",
    .run = run_memory_context,
};

/* --- walk ------------------------------------------------------------------------------------- */

static cx_status prepare_walk(cx_cli_ledger *l, void *state, cx_err *err)
{
    uint64_t depth = cx_cli_number(l->args, "depth", WALK_DEFAULT);
    if (depth > CX_WALK_DEPTH_MAX)
        return cx_fail(err, CX_E_USAGE, "option --depth: found %llu, expected at most %d",
                       (unsigned long long)depth, CX_WALK_DEPTH_MAX);
    return cx_cli_parse_name(l->args->operands[0], state, err);
}

static cx_status add_step(cx_cli_ledger *l, const cx_memory_step *step, cx_json_list *list,
                          cx_err *err)
{
    cx_memory_view view;
    bool is_start = step->by_type == 0;
    CX_TRY(cx_memory_resolve_latest(l->memory, &step->id, l->arena, &view, err));
    if (!l->json) {
        cx_buf_printf(&l->out, "%*s%s%s", (int)(2 * step->depth), "",
                      is_start ? "" : cx_uri_edge_type_name(step->by_type).data,
                      is_start ? "" : " ");
        cx_cli_memory_line(&view, &l->out);
        return CX_SUCCESS;
    }
    cx_json_list item = cx_json_list_begin(l->arena);
    cx_json_put_uint(&item, "depth", step->depth);
    if (is_start) {
        cx_json_put_null(&item, "by");
        cx_json_put_null(&item, "from");
    } else {
        cx_json_put_str(&item, "by", cx_uri_edge_type_name(step->by_type));
        cx_json_put_id(&item, "from", &step->reached_from);
    }
    cx_json_put_id(&item, "id", &step->id);
    cx_json_put_str(&item, "short", view.head.forms.brief);
    cx_json_put_uri(&item, "uri", &view.uri);
    cx_json_add_object(list, &item);
    return CX_SUCCESS;
}

static cx_status memory_walk_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const cx_cli_name *name = state;
    const cx_memory_step *steps;
    size_t count;
    bool cut;
    CX_TRY(cx_memory_walk(l->memory, &name->uri.id,
                          (unsigned)cx_cli_number(l->args, "depth", WALK_DEFAULT),
                          cx_cli_has(l->args, "backwards"), l->arena, &steps, &count, &cut, err));
    cx_json_list list = cx_json_list_begin(l->arena), json = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < count; i++)
        CX_TRY(add_step(l, &steps[i], &list, err));
    if (!l->json) {
        if (cut)
            cx_buf_add_z(&l->out, "truncated here: the limits were reached\n");
        return CX_SUCCESS;
    }
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_bool(&json, "cut", cut);
    cx_json_put_array(&json, "steps", &list);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_memory_walk(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, true, prepare_walk, memory_walk_job};
    cx_cli_name state;
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_option walk_options[] = {
    CX_CLI_OPT("depth", 0, CX_CLI_COUNT, "N", "How many edges away, at most 8; default 3."),
    CX_CLI_OPT_FLAG("backwards", 0, "Along edges to a memory in place of those from it."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_walk = {
    .name = "memory walk",
    .purpose = "follow the edges of a memory",
    .about = "Follows live edges from a memory, nearest first, at most 10000 memories.",
    .operands = uri_operand,
    .operand_count = CX_COUNT_OF(uri_operand),
    .options = walk_options,
    .option_count = CX_COUNT_OF(walk_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex memory walk 01HF7YAT000000000000000003 --depth 2",
    .run = run_memory_walk,
};

/*
 * cmd_hook_status.c - `cortex hook status`: for each agent, whether its hooks hold.
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/live/hook_state.h"
#include "cli/live/live.h"
#include "rules/api.h"

/* --- one agent -------------------------------------------------------------------------------- */

static void add_place(const cx_hook_place *place, cx_agent_scope scope, cx_buf *out)
{
    if (!place->has)
        return;
    cx_buf_printf(out, "  %-8s  ", cx_agent_scope_name(scope));
    if (place->problem.size != 0)
        cx_buf_add_z(out, "cannot be read");
    else if (place->found.ours == 0)
        cx_buf_add_z(out, place->there ? "not installed" : "no file");
    else if (place->in_force)
        cx_buf_printf(out, "in force, mode %s", cx_live_mode_name(place->found.hook.mode));
    else
        cx_buf_add_z(out, "NOT IN FORCE");
    cx_buf_add_z(out, "  ");
    cx_shown_add(out, cx_str_z(place->path));
    cx_buf_add_z(out, "\n");
    cx_str why = place->problem.size != 0 ? place->problem : place->off;
    if (why.size != 0) {
        cx_buf_add_z(out, "            ");
        cx_shown_add(out, why);
        cx_buf_add_z(out, "\n");
    }
}

static void add_agent(const cx_hook_state *state, cx_buf *out)
{
    char time[28];
    cx_buf_printf(out, "%s  %s", cx_live_agent_name(state->agent),
                  !state->installed ? "not installed"
                  : state->holds    ? "holds"
                                    : "DOES NOT HOLD");
    if (state->program != NULL) {
        cx_buf_add_z(out, "  ");
        cx_shown_add(out, cx_str_z(state->program));
        cx_buf_add_z(out, " ");
        cx_shown_add(out, state->version.size == 0 ? CX_STR("(says no version)") : state->version);
    } else {
        cx_buf_add_z(out, "  (its program is not in PATH)");
    }
    cx_buf_add_z(out, "\n");
    if (!state->installed && state->program == NULL)
        return;
    for (size_t i = 0; i < CX_SCOPE_COUNT; i++)
        add_place(&state->places[i], (cx_agent_scope)i, out);
    if (state->trust.size != 0) {
        cx_buf_add_z(out, "  trust     ");
        cx_shown_add(out, state->trust);
        cx_buf_add_z(out, "\n");
    }
    if (state->has_latest) {
        cx_run_time_text(state->latest.latest_ns, time);
        cx_buf_printf(out, "  latest    %.19sZ, session ", time);
        cx_shown_add(out, state->latest.session);
        cx_buf_printf(out, ", %llu calls\n", (unsigned long long)state->latest.calls);
    } else if (state->installed) {
        cx_buf_add_z(out, "  latest    no event of this agent is in the ledger yet\n");
    }
    if (state->note.size != 0) {
        cx_buf_add_z(out, "  note      ");
        cx_buf_add_str(out, state->note);
        cx_buf_add_z(out, "\n");
    }
}

static void put_place(cx_json_list *array, const cx_hook_place *place, cx_agent_scope scope)
{
    cx_json_list object = cx_json_list_begin(array->arena);
    if (!place->has)
        return;
    cx_json_put_z(&object, "scope", cx_agent_scope_name(scope));
    cx_json_put_str(&object, "path", cx_str_z(place->path));
    cx_json_put_bool(&object, "installed", place->found.ours != 0);
    cx_json_put_bool(&object, "in_force", place->in_force);
    cx_json_put_maybe(&object, "problem", place->problem.size != 0 ? place->problem : place->off);
    if (place->found.ours != 0) {
        cx_json_put_z(&object, "mode", cx_live_mode_name(place->found.hook.mode));
        cx_json_put_str(&object, "program", place->found.hook.program);
        cx_json_put_maybe(&object, "home", place->found.hook.home);
    }
    cx_json_add_object(array, &object);
}

static void put_agent(cx_json_list *array, const cx_hook_state *state)
{
    cx_json_list object = cx_json_list_begin(array->arena);
    cx_json_list places = cx_json_list_begin(array->arena);
    cx_json_put_z(&object, "agent", cx_live_agent_name(state->agent));
    cx_json_put_bool(&object, "installed", state->installed);
    cx_json_put_bool(&object, "holds", state->holds);
    cx_json_put_maybe(&object, "program",
                      state->program == NULL ? CX_STR("") : cx_str_z(state->program));
    cx_json_put_maybe(&object, "version", state->version);
    cx_json_put_maybe(&object, "trust", state->trust);
    cx_json_put_maybe(&object, "note", state->note);
    cx_json_put_maybe(&object, "latest_session",
                      state->has_latest ? state->latest.session : CX_STR(""));
    if (state->has_latest)
        cx_json_put_int(&object, "latest_ns", state->latest.latest_ns);
    else
        cx_json_put_null(&object, "latest_ns");
    for (size_t i = 0; i < CX_SCOPE_COUNT; i++)
        put_place(&places, &state->places[i], (cx_agent_scope)i);
    cx_json_put_array(&object, "places", &places);
    cx_json_add_object(array, &object);
}

/* --- all -------------------------------------------------------------------------------------- */

typedef struct listing {
    cx_json_list array;
    cx_buf out;
    bool broken, named;
} listing;

static cx_status add_states(cx_cli *cli, const cx_cli_args *args, cx_home *home, listing *l,
                            cx_err *err)
{
    cx_live_agent only = CX_LIVE_AGENT_COUNT;
    if (args->operand_count != 0)
        CX_TRY(cx_cli_read_agent(args->operands[0], &only, err));
    for (unsigned i = 0; i < CX_LIVE_MCP; i++) {
        cx_hook_state state;
        if (only != CX_LIVE_AGENT_COUNT && i != only)
            continue;
        CX_TRY(cx_hook_state_read(cli, (cx_live_agent)i, home, &state, err));
        /* Asked for by its name, an agent without hooks does not hold either. */
        l->broken = l->broken || (!state.holds && (state.installed || i == only));
        if (cx_cli_has(args, "json"))
            put_agent(&l->array, &state);
        else
            add_agent(&state, &l->out);
    }
    if (!cx_cli_has(args, "json"))
        return cx_buf_check(&l->out, err);
    cx_json_list root = cx_json_list_begin(&cli->arena);
    cx_json_put_array(&root, "agents", &l->array);
    cx_json_put_bool(&root, "holds", !l->broken);
    return cx_cli_end_json(&root, &l->out, err);
}

static int run_status(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0}, ignored;
    cx_home *home = NULL;
    const char *path;
    const cx_home_options options = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    listing l = {.array = cx_json_list_begin(&cli->arena)};
    cx_buf_init(&l.out, cli->alloc);
    cx_status status = cx_cli_home_path(cli, args, &path, &err);
    if (!cx_failed(status)) {
        cx_status opened = cx_home_open(path, &options, &home, &err);
        if (cx_failed(opened)) {
            home = NULL;
            if (opened.code != CX_E_NOT_FOUND)
                status = opened;
        }
    }
    if (!cx_failed(status))
        status = add_states(cli, args, home, &l, &err);
    int code = cx_failed(status)
                   ? cx_cli_ledger_fail(cli, args, &err)
                   : cx_cli_answer(cli, &l.out, l.broken ? CX_EXIT_BROKEN : CX_EXIT_HOLDS);
    if (home != NULL) {
        cx_status closed = cx_home_close(home, &ignored);
        (void)closed; /* it was only read */
    }
    cx_buf_done(&l.out);
    return code;
}

static const cx_cli_operand maybe_agent[] = {
    {"AGENT", CX_CLI_CHOICE, "claude|codex|gemini|cursor|copilot", true, false}};
static const cx_cli_option status_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                               CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_hook_status = {
    .name = "hook status",
    .operands = maybe_agent,
    .operand_count = CX_COUNT_OF(maybe_agent),
    .purpose = "show whether the hooks of coding agents hold",
    .about = "For each agent and each place of its configuration: whether the hooks are there and "
             "complete, in which mode, whether their program is there, and what switches them "
             "off. For Codex, whether it trusts them. And the newest event of that agent. The "
             "project is that of the current folder. Starts the agents' programs to ask for their "
             "version.",
    .options = status_options,
    .option_count = CX_COUNT_OF(status_options),
    .exits = "0 what is installed holds\n1 hooks are installed and not in force, or the agent "
             "that was named has none\n2 usage error\n3 could not be answered",
    .example = "cortex hook status\ncortex hook status claude --json",
    .run = run_status,
};

/*
 * doctor_agents.c - checks the hooks of coding agents: a line for each agent whose program is in
 * PATH or whose configuration has our hooks.  An agent without hooks is no failure.
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/live/hook_state.h"
#include "cli/live/probe_record.h"
#include "cli/service/doctor.h"
#include "rules/api.h"

static const char *const names[] = {[CX_LIVE_CLAUDE] = "claude",
                                    [CX_LIVE_CODEX] = "codex",
                                    [CX_LIVE_GEMINI] = "gemini",
                                    [CX_LIVE_CURSOR] = "cursor",
                                    [CX_LIVE_COPILOT] = "copilot"};

/* The first problem. */
static cx_str first_problem(const cx_hook_state *state)
{
    for (size_t i = 0; i < CX_SCOPE_COUNT; i++) {
        if (state->places[i].problem.size != 0)
            return state->places[i].problem;
        if (state->places[i].off.size != 0)
            return state->places[i].off;
    }
    return state->trust;
}

/* The place that wins: the administrator's, else the first one in force. */
static const cx_hook_place *place_in_force(const cx_hook_state *state, size_t *out_scope)
{
    for (size_t i = CX_SCOPE_COUNT; i-- > 0;)
        if (state->places[i].in_force) {
            *out_scope = i;
            return &state->places[i];
        }
    return NULL;
}

/* "; probed 2026-11-28: fires"; empty when it never was. */
static const char *probe_text(cx_doctor *d, const cx_hook_state *state, const char *home,
                              bool *out_bad)
{
    char time[28];
    cx_probe_record record = {.known = false};
    if (home != NULL)
        record = cx_probe_record_read(d->cli, home, state->agent);
    *out_bad = record.known && cx_str_is(record.verdict, "silent");
    if (!record.known)
        return "; never probed";
    cx_run_time_text(record.at_ns, time);
    cx_str text = cx_arena_printf(&d->cli->arena, "; probed %.10s with %.*s: %.*s", time,
                                  (int)record.version.size, record.version.data,
                                  (int)record.verdict.size, record.verdict.data);
    return text.data == NULL ? "" : text.data;
}

static void note_state(cx_doctor *d, const cx_hook_state *state, const char *home)
{
    bool silent;
    const char *probed = probe_text(d, state, home, &silent);
    char latest[28] = "no event yet";
    size_t scope = 0;
    const char *name = names[state->agent];
    const char *version = state->version.size != 0 ? state->version.data : "of no known version";
    if (state->program == NULL)
        version = "not in PATH";
    const cx_hook_place *place = place_in_force(state, &scope);
    if (state->has_latest)
        cx_run_time_text(state->latest.latest_ns, latest);
    if (!state->installed) {
        cx_doctor_note(d, name, CX_DOCTOR_OK, NULL,
                       "%s; no hooks of ours ('cortex hook install %s')", version, name);
    } else if (!state->holds || place == NULL) {
        cx_doctor_note(d, name, CX_DOCTOR_FAIL, "'cortex hook status' shows all of it",
                       "%s; hooks do not hold: %s", version, first_problem(state).data);
    } else {
        bool warn = state->note.size != 0 || silent;
        cx_doctor_note(d, name, warn ? CX_DOCTOR_WARN : CX_DOCTOR_OK,
                       silent ? "'cortex hook probe' did not see the hooks fire: try again"
                       : warn ? state->note.data
                              : NULL,
                       "%s; hooks in force by the %s configuration, mode %s%s%s; latest event: "
                       "%.19s%s",
                       version, cx_agent_scope_name((cx_agent_scope)scope),
                       cx_live_mode_name(place->found.hook.mode),
                       state->trust.size != 0 ? ", " : "", state->trust.data, latest, probed);
    }
}

void cx_doctor_check_agents(cx_doctor *d, const cx_cli_args *args)
{
    const cx_home_options reading = cx_cli_home_options(d->cli, CX_CLI_READ, NULL);
    cx_home *home = NULL;
    const char *path = NULL;
    cx_err err;
    if (cx_failed(cx_cli_home_path(d->cli, args, &path, &err)) ||
        cx_failed(cx_home_open(path, &reading, &home, &err)))
        home = NULL;
    for (unsigned i = 0; i < CX_LIVE_MCP; i++) {
        cx_hook_state state;
        cx_status status = cx_hook_state_read(d->cli, (cx_live_agent)i, home, &state, &err);
        if (cx_failed(status))
            cx_doctor_note(d, names[i], CX_DOCTOR_WARN, NULL, "not known: %s", err.message);
        else if (state.installed || state.program != NULL)
            note_state(d, &state, path);
    }
    if (home != NULL) {
        cx_status closed = cx_home_close(home, &err);
        (void)closed; /* it was only read */
    }
}

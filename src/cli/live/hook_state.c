/*
 * hook_state.c - see hook_state.h.
 */
#include "cli/live/hook_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/live/codex_trust.h"
#include "os/api.h"

#define VERSION_TIMEOUT_MS 20000
#define DROP_INS_MAX 64

/* --- the agent's program ---------------------------------------------------------------------- */

const char *cx_agent_program(cx_cli *cli, cx_live_agent agent)
{
    static const char *const names[][3] = {[CX_LIVE_CLAUDE] = {"claude"},
                                           [CX_LIVE_CODEX] = {"codex"},
                                           [CX_LIVE_GEMINI] = {"gemini"},
                                           [CX_LIVE_CURSOR] = {"cursor-agent", "cursor"},
                                           [CX_LIVE_COPILOT] = {"copilot"}};
    const char *found = NULL;
    for (size_t i = 0; found == NULL && names[agent][i] != NULL; i++) {
        cx_buf path;
        cx_buf_init(&path, cli->alloc);
        /* One that PATH finds in the current folder may be a repository's. */
        if (!cx_failed(cx_proc_find(names[agent][i], &path, NULL)) && path.size != 0 &&
            path.data[0] == '/')
            found = cx_arena_copy_str(&cli->arena, cx_buf_str(&path)).data;
        cx_buf_done(&path);
    }
    return found;
}

/* The first word of its answer that begins with a digit. */
static cx_str ask_version(cx_cli *cli, const char *program)
{
    const char *const argv[] = {program, "--version", NULL};
    const cx_proc_options options = {.argv = argv,
                                     .inherit_env = true,
                                     .cwd = "/",
                                     .timeout_ms = VERSION_TIMEOUT_MS,
                                     .output_limit_bytes = 65536};
    cx_proc_result result;
    cx_buf out;
    cx_err err;
    cx_str version = CX_STR("");
    cx_buf_init(&out, cli->alloc);
    if (!cx_failed(cx_proc_run(&options, &out, NULL, &result, &err)) && result.exit_code == 0)
        for (size_t i = 0; i < out.size && version.size == 0; i++) {
            bool starts = i == 0 || strchr(" \t\nv", out.data[i - 1]) != NULL;
            size_t size = 0;
            while (i + size < out.size && size < 40 &&
                   strchr("0123456789.-+abcdefghijklmnopqrstuvwxyz", out.data[i + size]) != NULL)
                size++;
            if (starts && out.data[i] >= '0' && out.data[i] <= '9')
                version =
                    cx_arena_copy_str(&cli->arena, cx_str_from((const char *)out.data + i, size));
        }
    cx_buf_done(&out);
    return version.data == NULL ? CX_STR("") : version;
}

/* Whether a version is at least another: numbers between dots. */
static bool version_at_least(cx_str version, const unsigned *least, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned number = 0;
        while (at < version.size && version.data[at] >= '0' && version.data[at] <= '9' &&
               number < 1000000)
            number = number * 10 + (unsigned)(version.data[at++] - '0');
        if (number != least[i])
            return number > least[i];
        at += at < version.size && version.data[at] == '.';
    }
    return true;
}

/* --- the files -------------------------------------------------------------------------------- */

static cx_status read_place(cx_cli *cli, cx_live_agent agent, cx_agent_scope scope,
                            cx_hook_place *out, cx_err *err)
{
    cx_agent_file file;
    cx_err why = {0};
    *out = (cx_hook_place){.problem = CX_STR(""), .off = CX_STR("")};
    cx_status status = cx_agent_file_path(cli, agent, scope, &out->path, &why);
    out->has = !cx_failed(status);
    if (status.code == CX_E_NOT_FOUND || status.code == CX_E_USAGE)
        return CX_SUCCESS;
    if (!cx_failed(status))
        status = cx_agent_file_read(cli, out->path, false, &file, &why);
    if (!cx_failed(status) && (out->there = file.there))
        status = cx_live_register_read(file.text, agent, &cli->arena, &out->found, &why);
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    out->there = true;
    out->problem = cx_arena_copy_str(&cli->arena, cx_str_z(why.message));
    return out->problem.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* What other files say: Copilot's settings, and the parts of Claude Code's managed settings. */
typedef struct switches {
    cx_cli *cli;
    cx_live_agent agent;
    const char *folder;
    const char *off_by; /* the file that switches hooks off; NULL = none */
    bool off_is_managed, managed_only, on_by_admin;
    unsigned files;
} switches;

static void read_switch_file(switches *s, const char *path, bool managed)
{
    cx_agent_file file;
    cx_live_registered found;
    cx_err ignored;
    if (cx_failed(cx_agent_file_read(s->cli, path, false, &file, &ignored)) || !file.there ||
        cx_failed(cx_live_register_read(file.text, s->agent, &s->cli->arena, &found, &ignored)))
        return;
    if (found.off && !s->off_is_managed) {
        s->off_by = path;
        s->off_is_managed = managed;
    }
    s->managed_only = s->managed_only || (managed && found.managed_only);
}

static bool read_drop_in(void *arg, const char *name)
{
    switches *s = arg;
    cx_str path = cx_arena_printf(&s->cli->arena, "%s/%s", s->folder, name);
    if (path.data != NULL && cx_str_ends(path, CX_STR(".json")))
        read_switch_file(s, path.data, true);
    return ++s->files < DROP_INS_MAX;
}

static void read_other_files(switches *s)
{
    const char *user;
    cx_err ignored;
    if (s->agent == CX_LIVE_CLAUDE) {
        s->folder = "/etc/claude-code/managed-settings.d";
        (void)s->cli->io->list(s->cli->io, s->folder, read_drop_in, s);
    }
    if (s->agent != CX_LIVE_COPILOT)
        return;
    if (!cx_failed(cx_agent_user_folder(s->cli, s->agent, &user, &ignored))) {
        cx_str path = cx_arena_printf(&s->cli->arena, "%s/settings.json", user);
        if (path.data != NULL)
            read_switch_file(s, path.data, false);
    }
    const char *project;
    if (!cx_failed(cx_agent_file_path(s->cli, s->agent, CX_SCOPE_PROJECT, &project, &ignored))) {
        size_t stem = strlen(project) - strlen("hooks/cortex.json");
        cx_str path =
            cx_arena_printf(&s->cli->arena, "%.*scopilot/settings.json", (int)stem, project);
        if (path.data != NULL)
            read_switch_file(s, path.data, false);
    }
}

static void collect_switches(switches *s, const cx_hook_state *state)
{
    read_other_files(s);
    for (size_t i = 0; i < CX_SCOPE_COUNT; i++) {
        const cx_hook_place *place = &state->places[i];
        bool managed = i == CX_SCOPE_MANAGED;
        if (place->found.off && !s->off_is_managed) {
            s->off_by = place->path;
            s->off_is_managed = managed;
        }
        s->managed_only = s->managed_only || (managed && place->found.managed_only);
        s->on_by_admin = s->on_by_admin || (managed && place->found.on);
    }
}

/* --- which of them hold ----------------------------------------------------------------------- */

static cx_str file_trouble(cx_cli *cli, const cx_hook_place *place)
{
    const cx_live_registered *f = &place->found;
    cx_err err;
    cx_facts facts;
    if (f->mixed)
        return CX_STR("its entries say different things: install again");
    if (f->missing != NULL)
        return cx_arena_printf(&cli->arena, "no entry, or a changed one, for %s: install again",
                               f->missing);
    if (access(f->hook.program.data, X_OK) != 0)
        return cx_arena_printf(&cli->arena, "its program %s is not there or cannot be run",
                               f->hook.program.data);
    if (cx_failed(cx_path_facts(f->hook.program.data, true, &facts, &err)) ||
        (facts.mode & 0002) != 0)
        return cx_arena_printf(&cli->arena, "its program %s can be replaced by every user",
                               f->hook.program.data);
    if (f->hook.home.size != 0 && cx_failed(cx_path_facts(f->hook.home.data, true, &facts, &err)))
        return cx_arena_printf(&cli->arena, "its data directory %s is not there: cortex init",
                               f->hook.home.data);
    return CX_STR("");
}

static cx_str switch_trouble(cx_cli *cli, const switches *s, size_t scope)
{
    bool managed = scope == CX_SCOPE_MANAGED;
    if (s->managed_only && !managed)
        return CX_STR("the administrator admits managed hooks only");
    if (s->off_by == NULL || (s->agent == CX_LIVE_GEMINI && s->on_by_admin))
        return CX_STR("");
    /* What users and projects say does not reach what an administrator has set. */
    if (managed && !s->off_is_managed && s->agent != CX_LIVE_GEMINI)
        return CX_STR("");
    return cx_arena_printf(&cli->arena, "hooks are switched off in %s", s->off_by);
}

static cx_status judge_places(cx_cli *cli, cx_hook_state *state, cx_err *err)
{
    switches s = {.cli = cli, .agent = state->agent};
    bool in_force = false, trouble = false;
    collect_switches(&s, state);
    for (size_t i = 0; i < CX_SCOPE_COUNT; i++) {
        cx_hook_place *place = &state->places[i];
        trouble = trouble || place->problem.size != 0;
        if (place->found.ours == 0)
            continue;
        state->installed = true;
        place->off = file_trouble(cli, place);
        if (place->off.data != NULL && place->off.size == 0)
            place->off = switch_trouble(cli, &s, i);
        if (place->off.data == NULL)
            return cx_fail_nomem(err);
        place->in_force = place->off.size == 0;
        in_force = in_force || place->in_force;
    }
    state->holds = in_force && !trouble;
    return CX_SUCCESS;
}

static cx_str note_for(const cx_hook_state *state)
{
    static const unsigned closing[] = {2, 1, 295};
    const char *simple = getenv("CLAUDE_CODE_SIMPLE");
    if (state->agent == CX_LIVE_CLAUDE && state->version.size != 0 &&
        !version_at_least(state->version, closing, CX_COUNT_OF(closing)))
        return CX_STR("older than 2.1.295: a hook that is killed or too late lets the tool run");
    if (state->agent == CX_LIVE_CLAUDE && simple != NULL && strcmp(simple, "1") == 0)
        return CX_STR("CLAUDE_CODE_SIMPLE=1 here: sessions started here run without hooks");
    if (state->agent == CX_LIVE_GEMINI && getenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH") != NULL)
        return CX_STR("GEMINI_CLI_SYSTEM_SETTINGS_PATH is set: another file is the "
                      "administrator's");
    if (state->agent == CX_LIVE_CURSOR && state->installed)
        return CX_STR("Cursor has not been tried with this version of cortex");
    return CX_STR("");
}

static cx_status find_latest(cx_cli *cli, cx_home *home, cx_hook_state *state, cx_err *err)
{
    const cx_live_session *list;
    size_t count;
    CX_TRY(cx_live_sessions(home, &cli->arena, &list, &count, err));
    for (size_t i = 0; i < count && !state->has_latest; i++)
        if (cx_str_is(list[i].agent, cx_live_agent_name(state->agent))) {
            state->latest = list[i];
            state->has_latest = true;
        }
    return CX_SUCCESS;
}

/* Codex runs hooks that its user has reviewed, and skips others without a word. */
static cx_status ask_trust(cx_cli *cli, cx_hook_state *state, cx_err *err)
{
    cx_codex_hooks hooks;
    cx_err why = {0};
    cx_hook_place *user = &state->places[CX_SCOPE_USER];
    if (state->program == NULL) {
        state->trust = CX_STR("unknown: codex is not in PATH");
        return CX_SUCCESS;
    }
    cx_status status = cx_codex_hooks_ask(cli, state->program, &hooks, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        state->trust =
            cx_arena_printf(&cli->arena, "unknown: codex did not answer (%s)", why.message);
    else if (hooks.ours != 0 && hooks.trusted == hooks.ours)
        state->trust = CX_STR("trusted");
    else
        state->trust = cx_arena_printf(
            &cli->arena,
            "%zu of %zu hooks are trusted: Codex skips the others without a word; install again, "
            "or review them in codex with /hooks",
            hooks.trusted, hooks.ours);
    if (state->trust.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_failed(status) && (hooks.ours == 0 || hooks.trusted < hooks.ours)) {
        user->in_force = false;
        user->off = user->off.size == 0 ? CX_STR("not trusted by Codex") : user->off;
        state->holds = false;
    }
    return CX_SUCCESS;
}

cx_status cx_hook_state_read(cx_cli *cli, cx_live_agent agent, cx_home *home, cx_hook_state *out,
                             cx_err *err)
{
    *out = (cx_hook_state){
        .agent = agent, .version = CX_STR(""), .trust = CX_STR(""), .note = CX_STR("")};
    for (size_t i = 0; i < CX_SCOPE_COUNT; i++)
        CX_TRY(read_place(cli, agent, (cx_agent_scope)i, &out->places[i], err));
    CX_TRY(judge_places(cli, out, err));
    out->program = cx_agent_program(cli, agent);
    if (out->program != NULL)
        out->version = ask_version(cli, out->program);
    if (agent == CX_LIVE_CODEX && out->places[CX_SCOPE_USER].found.ours != 0)
        CX_TRY(ask_trust(cli, out, err));
    out->note = note_for(out);
    return home == NULL ? CX_SUCCESS : find_latest(cli, home, out, err);
}

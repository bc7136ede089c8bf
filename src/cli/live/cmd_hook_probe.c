/*
 * cmd_hook_probe.c - `cortex hook probe AGENT`: whether the hooks really fire.
 *
 *   V1  The agent runs with the user's own configuration, against a model that is played here
 *       (probe_model.h): the verdict is about what is in force, not about what is written.
 *   V2  "Decided" is an entry in the ledger, and nothing else.
 *   V3  No other host is reached: the agent's proxy is the played model, which refuses.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ledger/ledger.h"
#include "cli/live/hook_state.h"
#include "cli/live/live.h"
#include "cli/live/probe_model.h"
#include "cli/live/probe_record.h"
#include "os/api.h"
#include "rules/api.h"

#define AGENT_MS_DEFAULT 120
#define AGENT_S_MAX 600
#define OUTPUT_MAX ((size_t)4 << 20)
#define ENV_MAX 4096
#define ARGS_MAX 24

typedef struct lane_result {
    bool asked, ended, ran, decided;
    cx_str tool, verdict, rule;
} lane_result;

typedef struct probe {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_hook_state state;
    const char *home; /* the data directory that the hooks record in */
    char folder[CX_PATH_BYTES_MAX + 1];
    uint16_t port;
    cx_probe_seen seen;
    lane_result main, sub;
    cx_proc_result ended;
    cx_str complaint; /* the last line of the agent's standard error */
} probe;

/* --- starting the agent ----------------------------------------------------------------------- */

/* Variables that would send the agent to another model, or say that it runs inside of an agent. */
static bool is_dropped(const char *variable)
{
    static const char *const starts[] = {
        "ANTHROPIC_",   "CLAUDE_CODE_USE_", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT",
        "OPENAI_",      "GEMINI_API",       "GOOGLE_",    "HTTP_PROXY=",
        "HTTPS_PROXY=", "ALL_PROXY=",       "NO_PROXY=",  "http_proxy=",
        "https_proxy=", "all_proxy=",       "no_proxy="};
    for (size_t i = 0; i < CX_COUNT_OF(starts); i++)
        if (strncmp(variable, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

static const char *format_one(probe *p, const char *format)
{
    return cx_arena_printf(&p->cli->arena, format, (unsigned)p->port).data;
}

static cx_status make_environment(probe *p, const char ***out, cx_err *err)
{
    static const char *const set[] = {"HTTP_PROXY=http://127.0.0.1:%u",
                                      "HTTPS_PROXY=http://127.0.0.1:%u",
                                      "http_proxy=http://127.0.0.1:%u",
                                      "https_proxy=http://127.0.0.1:%u",
                                      "NO_PROXY=127.0.0.1,localhost,::1",
                                      "no_proxy=127.0.0.1,localhost,::1",
                                      "ANTHROPIC_BASE_URL=http://127.0.0.1:%u",
                                      "ANTHROPIC_API_KEY=cortex-probe",
                                      "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
                                      "DISABLE_AUTOUPDATER=1",
                                      "DISABLE_TELEMETRY=1",
                                      "DISABLE_ERROR_REPORTING=1",
                                      "CORTEX_PROBE_KEY=cortex-probe",
                                      "GEMINI_API_KEY=cortex-probe",
                                      "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:%u",
                                      "GEMINI_CLI_TRUST_WORKSPACE=true",
                                      "GEMINI_TELEMETRY_ENABLED=false"};
    const char **list = CX_ARENA_ARRAY(&p->cli->arena, const char *, ENV_MAX + 32);
    size_t count = 0;
    if (list == NULL)
        return cx_fail_nomem(err);
    for (const char *const *at = cx_machine_environment(); *at != NULL && count < ENV_MAX; at++)
        if (!is_dropped(*at))
            list[count++] = *at;
    for (size_t i = 0; i < CX_COUNT_OF(set); i++) {
        list[count] = format_one(p, set[i]);
        if (list[count++] == NULL)
            return cx_fail_nomem(err);
    }
    list[count] = NULL;
    *out = list;
    return CX_SUCCESS;
}

/* Settings of Claude Code may set variables, too; those of the command line outrank them. */
#define CLAUDE_SETTINGS                                                                          \
    "{\"env\":{\"ANTHROPIC_BASE_URL\":\"http://127.0.0.1:%1$u\",\"ANTHROPIC_API_KEY\":"          \
    "\"cortex-probe\",\"CLAUDE_CODE_USE_BEDROCK\":\"\",\"CLAUDE_CODE_USE_VERTEX\":\"\","         \
    "\"CLAUDE_CODE_USE_FOUNDRY\":\"\",\"HTTPS_PROXY\":\"http://127.0.0.1:%1$u\",\"HTTP_PROXY\":" \
    "\"http://127.0.0.1:%1$u\",\"NO_PROXY\":\"127.0.0.1,localhost\"}}"

#define CODEX_PROVIDER                                                                          \
    "model_providers.cortex_probe={name=\"probe\",base_url=\"http://127.0.0.1:%u/v1\",env_key=" \
    "\"CORTEX_PROBE_KEY\",wire_api=\"responses\"}"

static cx_status make_arguments(probe *p, const char **out, cx_err *err)
{
    static const char *const claude[] = {"-p",
                                         CX_PROBE_MAIN,
                                         "--output-format",
                                         "json",
                                         "--no-session-persistence",
                                         "--strict-mcp-config",
                                         "--settings",
                                         CLAUDE_SETTINGS};
    static const char *const codex[] = {"exec",
                                        "--json",
                                        "--skip-git-repo-check",
                                        "--ephemeral",
                                        "-s",
                                        "read-only",
                                        "-c",
                                        "model=\"gpt-5\"",
                                        "-c",
                                        "model_provider=\"cortex_probe\"",
                                        "-c",
                                        CODEX_PROVIDER,
                                        CX_PROBE_MAIN};
    static const char *const gemini[] = {"--skip-trust", "--approval-mode", "yolo", "-p",
                                         CX_PROBE_MAIN};
    cx_live_agent agent = p->state.agent;
    const char *const *words = agent == CX_LIVE_CLAUDE  ? claude
                               : agent == CX_LIVE_CODEX ? codex
                                                        : gemini;
    size_t count = agent == CX_LIVE_CLAUDE  ? CX_COUNT_OF(claude)
                   : agent == CX_LIVE_CODEX ? CX_COUNT_OF(codex)
                                            : CX_COUNT_OF(gemini);
    out[0] = p->state.program;
    for (size_t i = 0; i < count; i++) {
        out[i + 1] = strchr(words[i], '%') == NULL ? words[i] : format_one(p, words[i]);
        if (out[i + 1] == NULL)
            return cx_fail_nomem(err);
    }
    out[count + 1] = NULL;
    return CX_SUCCESS;
}

/* The last line that is not empty. */
static cx_str last_line(cx_cli *cli, cx_str text)
{
    while (text.size != 0 && strchr(" \t\r\n", text.data[text.size - 1]) != NULL)
        text.size--;
    size_t start = text.size;
    while (start != 0 && text.data[start - 1] != '\n')
        start--;
    size_t size = text.size - start > 300 ? 300 : text.size - start;
    cx_str kept = cx_arena_copy_str(&cli->arena, cx_str_from(text.data + start, size));
    return kept.data == NULL ? CX_STR("") : kept;
}

static cx_status run_agent(probe *p, uint64_t seconds, cx_err *err)
{
    const char *argv[ARGS_MAX];
    const char **envp = NULL;
    cx_buf out, errout;
    CX_TRY(make_environment(p, &envp, err));
    CX_TRY(make_arguments(p, argv, err));
    cx_buf_init(&out, p->cli->alloc);
    cx_buf_init(&errout, p->cli->alloc);
    const cx_proc_options options = {.argv = argv,
                                     .envp = envp,
                                     .cwd = p->folder,
                                     .timeout_ms = seconds * 1000,
                                     .output_limit_bytes = OUTPUT_MAX};
    cx_status status = cx_proc_run(&options, &out, &errout, &p->ended, err);
    p->complaint = last_line(p->cli, cx_buf_str(errout.size != 0 ? &errout : &out));
    cx_buf_done(&out);
    cx_buf_done(&errout);
    return status;
}

/* --- the folder ------------------------------------------------------------------------------- */

static cx_status write_in_folder(probe *p, const char *name, const char *text, cx_err *err)
{
    cx_str path = cx_arena_printf(&p->cli->arena, "%s/%s", p->folder, name);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    return cx_io_replace_private_file(p->cli->io, path.data, cx_str_bytes(cx_str_z(text)), err);
}

/* Gemini CLI takes a model without an account only with this way of signing in. */
static cx_status write_gemini_settings(probe *p, cx_err *err)
{
    cx_str path = cx_arena_printf(&p->cli->arena, "%s/.gemini", p->folder);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_path_make_folders(path.data, err));
    return write_in_folder(p, ".gemini/settings.json",
                           "{\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}}\n",
                           err);
}

static cx_status make_folder(probe *p, cx_err *err)
{
    char made[CX_PATH_BYTES_MAX + 1];
    cx_str real;
    CX_TRY(cx_path_make_temporary(made, err));
    CX_TRY(cx_cli_real_path(p->cli, made, &real, err));
    memcpy(p->folder, real.data, real.size + 1);
    if (p->state.agent == CX_LIVE_GEMINI)
        CX_TRY(write_gemini_settings(p, err));
    CX_TRY(write_in_folder(p, CX_PROBE_MAIN_FILE, CX_PROBE_MAIN_TEXT "\n", err));
    return write_in_folder(p, CX_PROBE_SUB_FILE, CX_PROBE_SUB_TEXT "\n", err);
}

/* --- what the ledger has (V2) ----------------------------------------------------------------- */

static bool contains(cx_str text, const char *word)
{
    cx_str wanted = cx_str_z(word);
    for (size_t at = 0; at + wanted.size <= text.size; at++)
        if (memcmp(text.data + at, wanted.data, wanted.size) == 0)
            return true;
    return false;
}

static void take_decision(const cx_json *payload, cx_str text, const char *file, lane_result *out)
{
    const cx_json *call = CX_JSON_GET(payload, "call");
    if (out->decided || !contains(text, file))
        return;
    out->decided = true;
    out->tool = CX_JSON_GET_STR(call, "tool");
    out->verdict = CX_JSON_GET_STR(payload, "verdict");
    out->rule = CX_JSON_GET_STR(payload, "rule");
}

static cx_status read_session(probe *p, cx_home *home, cx_str actor, cx_err *err)
{
    cx_actor_info info;
    CX_TRY(cx_home_actor(home, actor, &info, err));
    for (uint64_t seq = 0; seq < info.entry_count; seq++) {
        cx_entry_view entry;
        cx_json payload;
        cx_err ignored;
        CX_TRY(cx_home_entry(home, actor, seq, &p->cli->arena, &entry, err));
        if (!cx_kinds_is(entry.entry.kind, CX_KIND_LIVE_DECISION) || entry.payload_erased ||
            cx_failed(cx_run_json_read(cx_bytes_str(entry.payload), 0, &p->cli->arena, &payload,
                                       &ignored)) ||
            !cx_str_is(CX_JSON_GET_STR(&payload, "cwd"), p->folder))
            continue;
        take_decision(&payload, cx_bytes_str(entry.payload), CX_PROBE_MAIN_FILE, &p->main);
        take_decision(&payload, cx_bytes_str(entry.payload), CX_PROBE_SUB_FILE, &p->sub);
    }
    return CX_SUCCESS;
}

/* Sessions of the probe's folder, which no other session has had. */
static cx_status read_ledger(probe *p, cx_err *err)
{
    const cx_home_options options = cx_cli_home_options(p->cli, CX_CLI_READ, NULL);
    const cx_live_session *list;
    size_t count;
    cx_home *home;
    cx_err ignored;
    CX_TRY(cx_home_open(p->home, &options, &home, err));
    cx_status status = cx_live_sessions(home, &p->cli->arena, &list, &count, err);
    for (size_t i = 0; !cx_failed(status) && i < count; i++)
        if (cx_str_is(list[i].cwd, p->folder))
            status = read_session(p, home, list[i].actor, err);
    cx_status closed = cx_home_close(home, &ignored);
    (void)closed; /* it was only read */
    return status;
}

/* --- the verdict ------------------------------------------------------------------------------ */

typedef enum verdict { FIRES, SILENT, UNKNOWN } verdict;

static verdict lane_verdict(const lane_result *lane)
{
    return lane->decided ? FIRES : lane->ended ? SILENT : UNKNOWN;
}

static verdict whole_verdict(const probe *p)
{
    verdict main = lane_verdict(&p->main), sub = lane_verdict(&p->sub);
    if (main == SILENT || sub == SILENT)
        return SILENT;
    return main == FIRES && (sub == FIRES || !p->seen.can_start) ? FIRES : UNKNOWN;
}

static void add_lane(const char *name, const lane_result *lane, const char *not_tried, cx_buf *out)
{
    cx_buf_printf(out, "  %-10s ", name);
    if (lane->decided) {
        cx_buf_add_z(out, "decided: ");
        cx_shown_add(out, lane->tool);
        cx_buf_add_z(out, ", ");
        cx_shown_add(out, lane->verdict);
        cx_buf_add_z(out, " by ");
        cx_shown_add(out, lane->rule);
    } else if (lane->ended) {
        cx_buf_add_z(out, lane->ran ? "NOT DECIDED: the call ran, and the ledger has no entry of it"
                                    : "NOT DECIDED: the ledger has no entry of the call, which did "
                                      "not run");
    } else {
        cx_buf_add_z(out, not_tried);
    }
    cx_buf_add_z(out, "\n");
}

static void add_reason(const probe *p, cx_buf *out)
{
    if (p->ended.timed_out)
        cx_buf_add_z(out, "  the agent did not end in time and was ended\n");
    else if (p->ended.exit_code != 0)
        cx_buf_printf(out, "  the agent ended with exit code %d\n", p->ended.exit_code);
    if (p->seen.requests == p->seen.refused)
        cx_buf_add_z(out, "  it never asked the played model: a hook refused the prompt, or its "
                          "configuration names another model\n");
    if (p->complaint.size != 0) {
        cx_buf_add_z(out, "  its last words: ");
        cx_shown_add(out, p->complaint);
        cx_buf_add_z(out, "\n");
    }
}

/* What the files say already. */
static void add_troubles(const probe *p, cx_buf *out)
{
    for (size_t i = 0; i < CX_SCOPE_COUNT; i++) {
        if (p->state.places[i].off.size == 0)
            continue;
        cx_buf_printf(out, "  %s: ", cx_agent_scope_name((cx_agent_scope)i));
        cx_shown_add(out, p->state.places[i].off);
        cx_buf_add_z(out, "\n");
    }
}

static void add_text(const probe *p, verdict v, cx_buf *out)
{
    cx_buf_printf(out, "%s %.*s: %s\n", cx_live_agent_name(p->state.agent),
                  (int)p->state.version.size, p->state.version.data,
                  v == FIRES    ? "the hooks fire"
                  : v == SILENT ? "THE HOOKS DO NOT FIRE"
                                : "not known");
    add_lane("main agent", &p->main,
             p->main.asked ? "not known: no result of the call came back" : "not tried", out);
    add_lane("sub-agent", &p->sub,
             p->sub.asked        ? "not known: no result of the call came back"
             : p->seen.can_start ? "not known: it was not started"
                                 : "not tried: the agent offers none here",
             out);
    add_troubles(p, out);
    if (v == UNKNOWN)
        add_reason(p, out);
    if (p->seen.refused != 0)
        cx_buf_printf(out, "  %u connection%s to other hosts refused\n", p->seen.refused,
                      p->seen.refused == 1 ? "" : "s");
    cx_buf_add_z(out, "not tried: configurations of projects, MCP servers, tools that write, a "
                      "session on a terminal\n");
}

static void put_lane(cx_json_list *root, const char *name, const lane_result *lane)
{
    cx_json_list object = cx_json_list_begin(root->arena);
    cx_json_put_bool(&object, "asked", lane->asked);
    cx_json_put_bool(&object, "returned", lane->ended);
    cx_json_put_bool(&object, "ran", lane->ran);
    cx_json_put_bool(&object, "decided", lane->decided);
    cx_json_put_maybe(&object, "verdict", lane->verdict);
    cx_json_put_maybe(&object, "rule", lane->rule);
    cx_json_put_object(root, name, &object);
}

static const char *verdict_word(verdict v)
{
    return v == FIRES ? "fires" : v == SILENT ? "silent" : "unknown";
}

static cx_status add_verdict(probe *p, verdict v, cx_buf *out, cx_err *err)
{
    cx_json_list root = cx_json_list_begin(&p->cli->arena);
    if (!cx_cli_has(p->args, "json")) {
        add_text(p, v, out);
        return cx_buf_check(out, err);
    }
    cx_json_put_z(&root, "agent", cx_live_agent_name(p->state.agent));
    cx_json_put_maybe(&root, "version", p->state.version);
    cx_json_put_z(&root, "verdict", verdict_word(v));
    put_lane(&root, "main", &p->main);
    put_lane(&root, "sub", &p->sub);
    cx_json_put_uint(&root, "requests", p->seen.requests);
    cx_json_put_uint(&root, "refused", p->seen.refused);
    cx_json_put_int(&root, "exit_code", p->ended.exit_code);
    cx_json_put_bool(&root, "timed_out", p->ended.timed_out);
    return cx_cli_end_json(&root, out, err);
}

/* --- all of it -------------------------------------------------------------------------------- */

static cx_status prepare_probe(probe *p, cx_err *err)
{
    cx_live_agent agent;
    CX_TRY(cx_cli_read_agent(p->args->operands[0], &agent, err));
    if (agent != CX_LIVE_CLAUDE && agent != CX_LIVE_CODEX && agent != CX_LIVE_GEMINI)
        return cx_fail(err, CX_E_USAGE,
                       "%s cannot be probed: it takes no model of ours without an account, or was "
                       "never tried; 'cortex hook status %s' shows what is written",
                       cx_live_agent_name(agent), p->args->operands[0]);
    CX_TRY(cx_hook_state_read(p->cli, agent, NULL, &p->state, err));
    if (p->state.program == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "the program of %s is not in PATH",
                       cx_live_agent_name(agent));
    for (size_t i = CX_SCOPE_COUNT; i-- > 0;) {
        const cx_hook_place *place = &p->state.places[i];
        if (place->found.ours != 0 && place->found.hook.home.size != 0 && p->home == NULL)
            p->home = place->found.hook.home.data;
    }
    for (size_t i = 0; i < CX_SCOPE_COUNT; i++)
        if (p->state.places[i].problem.size != 0)
            return cx_fail(err, CX_E_CONFLICT, "%s: %s", p->state.places[i].path,
                           p->state.places[i].problem.data);
    if (!p->state.installed)
        return cx_fail(err, CX_E_CONFLICT,
                       "no hooks of ours are installed: 'cortex hook install %s' comes first",
                       p->args->operands[0]);
    return p->home != NULL ? CX_SUCCESS : cx_cli_home_path(p->cli, p->args, &p->home, err);
}

static cx_status run_probe(probe *p, cx_err *err)
{
    cx_probe_model *model = NULL;
    cx_err ignored;
    uint64_t seconds = cx_cli_number(p->args, "deadline", AGENT_MS_DEFAULT);
    if (seconds == 0 || seconds > AGENT_S_MAX)
        return cx_fail(err, CX_E_USAGE, "--deadline takes 1 to 600 seconds");
    CX_TRY(prepare_probe(p, err));
    cx_status status = make_folder(p, err);
    if (!cx_failed(status))
        status =
            cx_probe_model_start(p->cli->alloc, p->state.agent, p->folder, &model, &p->port, err);
    if (!cx_failed(status))
        status = run_agent(p, seconds, err);
    if (model != NULL)
        p->seen = cx_probe_model_seen(model);
    cx_probe_model_stop(model);
    if (!cx_failed(status))
        status = read_ledger(p, err);
    if (p->folder[0] != 0) {
        cx_status removed = cx_path_remove_tree(p->folder, &ignored);
        (void)removed; /* a temporary folder */
    }
    p->main.asked = p->seen.main_asked;
    p->main.ended = p->seen.main_ended;
    p->main.ran = p->seen.main_ran;
    p->sub.ran = p->seen.sub_ran;
    p->sub.asked = p->seen.sub_asked;
    p->sub.ended = p->seen.sub_ended;
    return status;
}

static int run_command(cx_cli *cli, const cx_cli_args *args)
{
    probe p = {.cli = cli, .args = args, .complaint = CX_STR("")};
    cx_err err = {0};
    cx_buf out;
    verdict v = UNKNOWN;
    cx_buf_init(&out, cli->alloc);
    cx_status status = run_probe(&p, &err);
    if (!cx_failed(status)) {
        v = whole_verdict(&p);
        status = cx_probe_record_write(cli, p.home, p.state.agent, p.state.version, verdict_word(v),
                                       &err);
    }
    if (!cx_failed(status))
        status = add_verdict(&p, v, &out, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out,
                                                 v == FIRES    ? CX_EXIT_HOLDS
                                                 : v == SILENT ? CX_EXIT_BROKEN
                                                               : CX_EXIT_UNCHECKED);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_operand one_agent[] = {
    {"AGENT", CX_CLI_CHOICE, "claude|codex|gemini", false, false}};
static const cx_cli_option probe_options[] = {
    CX_CLI_OPT("deadline", 0, CX_CLI_COUNT, "SECONDS",
               "End the agent after so long; default 120, at most 600."),
    CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_hook_probe = {
    .name = "hook probe",
    .operands = one_agent,
    .operand_count = CX_COUNT_OF(one_agent),
    .purpose = "try whether an agent's hooks really fire",
    .about = "Starts the agent with the user's own configuration in a temporary folder, against a "
             "model that this program plays on loopback: no account is needed, nothing is paid, "
             "and no other host is reached. The model asks for two harmless calls: the agent reads "
             "a file, and a sub-agent reads another. Then the ledger is read: were both "
             "decided?\n\nThe session is recorded like any other. Cursor and Copilot CLI cannot be "
             "probed.",
    .options = probe_options,
    .option_count = CX_COUNT_OF(probe_options),
    .exits = "0 the hooks fire\n1 a call was made that no hook decided, or no hooks are "
             "installed\n2 usage error, or the agent's program is not in PATH\n3 not known: the "
             "agent did not get so far",
    .example = "cortex hook probe claude",
    .run = run_command,
};

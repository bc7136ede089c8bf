/*
 * register_form.c - what is registered for each agent: events, command line, entry.
 */
#include <string.h>

#include "base/api.h"
#include "live/register_parts.h"

/* --- events ----------------------------------------------------------------------------------- */

static const cx_live_hook_event claude_events[] = {
    {"PreToolUse", true},         {"PermissionRequest", true}, {"PostToolUse", true},
    {"PostToolUseFailure", true}, {"UserPromptSubmit", false}, {"SessionStart", false},
    {"SessionEnd", false},        {"SubagentStart", false},    {"SubagentStop", false},
    {"ConfigChange", false}};
static const cx_live_hook_event codex_events[] = {
    {"PreToolUse", true},        {"PermissionRequest", true}, {"PostToolUse", true},
    {"UserPromptSubmit", false}, {"SessionStart", false},     {"SessionEnd", false},
    {"SubagentStart", false},    {"SubagentStop", false}};
static const cx_live_hook_event gemini_events[] = {{"BeforeTool", true},
                                                   {"AfterTool", true},
                                                   {"BeforeAgent", false},
                                                   {"SessionStart", false},
                                                   {"SessionEnd", false}};
/* beforeShellExecution, beforeMCPExecution and beforeReadFile describe calls that preToolUse has
 * described already: a call would be decided, and approved, twice. */
static const cx_live_hook_event cursor_events[] = {
    {"preToolUse", true},          {"postToolUse", true},    {"postToolUseFailure", true},
    {"beforeTabFileRead", false},  {"sessionStart", false},  {"sessionEnd", false},
    {"beforeSubmitPrompt", false}, {"subagentStart", false}, {"subagentStop", false}};
static const cx_live_hook_event copilot_events[] = {
    {"preToolUse", false},          {"permissionRequest", false}, {"postToolUse", false},
    {"userPromptSubmitted", false}, {"sessionStart", false},      {"sessionEnd", false}};

const cx_live_hook_event *cx_live_hook_events(cx_live_agent agent, size_t *out_count)
{
    switch (agent) {
    case CX_LIVE_CLAUDE: *out_count = CX_COUNT_OF(claude_events); return claude_events;
    case CX_LIVE_CODEX: *out_count = CX_COUNT_OF(codex_events); return codex_events;
    case CX_LIVE_GEMINI: *out_count = CX_COUNT_OF(gemini_events); return gemini_events;
    case CX_LIVE_CURSOR: *out_count = CX_COUNT_OF(cursor_events); return cursor_events;
    case CX_LIVE_COPILOT: *out_count = CX_COUNT_OF(copilot_events); return copilot_events;
    case CX_LIVE_MCP:
    case CX_LIVE_AGENT_COUNT: break;
    }
    *out_count = 0;
    return NULL;
}

const cx_hook_form *cx_hook_form_of(cx_live_agent agent)
{
    static const cx_hook_form claude = {true, NULL, "command", false};
    static const cx_hook_form codex = {true, "*", "command", false};
    static const cx_hook_form gemini = {true, ".*", "command", false};
    static const cx_hook_form cursor = {false, NULL, "command", true};
    static const cx_hook_form copilot = {false, NULL, "bash", true};
    return agent == CX_LIVE_CLAUDE   ? &claude
           : agent == CX_LIVE_CODEX  ? &codex
           : agent == CX_LIVE_GEMINI ? &gemini
           : agent == CX_LIVE_CURSOR ? &cursor
                                     : &copilot;
}

/* --- the command line ------------------------------------------------------------------------- */

/* As on the command line; the shorter of the agent's two names. */
static const char *agent_word(cx_live_agent agent)
{
    return agent == CX_LIVE_CLAUDE ? "claude" : cx_live_agent_name(agent);
}

static cx_status check_path(const char *what, cx_str path, cx_err *err)
{
    bool good = path.size != 0 && path.data[0] == '/' && cx_utf8_valid(path);
    for (size_t i = 0; good && i < path.size; i++)
        good = (uint8_t)path.data[i] >= ' ' && path.data[i] != 127;
    return good ? CX_SUCCESS
                : cx_fail(err, CX_E_FORMAT,
                          "the path of %s cannot be part of an agent's configuration: expected an "
                          "absolute path in UTF-8 without control characters",
                          what);
}

/* R4: our own "no" is exit 2 with its reason; anything else that is not 0 becomes one.  Codex and
 * Gemini CLI take an exit 2 without a reason for consent; the others show the command with the
 * reason, so that it is short for them. */
static const char *closing(cx_live_agent agent)
{
    return agent == CX_LIVE_CODEX || agent == CX_LIVE_GEMINI
               ? " || { r=$?; [ $r = 2 ] || echo \"cortex: its hook gave no answer (exit $r)\" "
                 ">&2; "
                 "exit 2; }"
               : " || exit 2";
}

cx_status cx_live_hook_command(const cx_live_hook *hook, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_buf text;
    CX_TRY(check_path("the program", hook->program, err));
    if (hook->home.size != 0)
        CX_TRY(check_path("the data directory", hook->home, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_sh_word(&text, hook->program);
    cx_buf_printf(&text, " hook %s --mode %s", agent_word(hook->agent),
                  cx_live_mode_name(hook->mode));
    if (hook->home.size != 0) {
        cx_buf_add_z(&text, " --home ");
        cx_buf_add_sh_word(&text, hook->home);
    }
    if (hook->mode != CX_LIVE_OBSERVE)
        cx_buf_add_z(&text, closing(hook->agent));
    cx_str kept = cx_arena_copy_str(arena, cx_buf_str(&text));
    bool failed = text.failed || kept.data == NULL;
    cx_buf_done(&text);
    if (failed)
        return cx_fail_nomem(err);
    *out = kept;
    return CX_SUCCESS;
}

/* The next word of a command, quotes removed; false at its end, or where a shell would do more
 * than split words. */
static bool next_word(cx_str *rest, cx_arena *arena, cx_str *out)
{
    while (rest->size != 0 && (rest->data[0] == ' ' || rest->data[0] == '\t')) {
        rest->data++;
        rest->size--;
    }
    char *word = rest->size == 0 ? NULL : cx_arena_push(arena, rest->size + 1, 1);
    size_t size = 0, at = 0;
    bool quoted = false;
    if (word == NULL)
        return false;
    for (; at < rest->size; at++) {
        char c = rest->data[at];
        if (c == '\'')
            quoted = !quoted;
        else if (!quoted && (c == ' ' || c == '\t'))
            break;
        else if (!quoted && c == '\\' && at + 1 < rest->size)
            word[size++] = rest->data[++at];
        else if (!quoted && strchr("|&;<>()$`\"\n", c) != NULL)
            return false;
        else
            word[size++] = c;
    }
    word[size] = 0;
    *out = cx_str_from(word, size);
    rest->data += at;
    rest->size -= at;
    return !quoted;
}

static bool is_named_cortex(cx_str program)
{
    size_t start = program.size;
    while (start != 0 && program.data[start - 1] != '/')
        start--;
    return cx_str_eq(cx_str_from(program.data + start, program.size - start), CX_STR("cortex"));
}

/* R2 */
bool cx_live_hook_command_read(cx_str command, cx_arena *arena, cx_live_hook *out)
{
    cx_live_hook hook = {.mode = CX_LIVE_OBSERVE};
    cx_str word, rest = command;
    if (!next_word(&rest, arena, &hook.program) || !is_named_cortex(hook.program) ||
        !next_word(&rest, arena, &word) || !cx_str_is(word, "hook") ||
        !next_word(&rest, arena, &word))
        return false;
    hook.agent = cx_live_agent_parse(word);
    if (hook.agent >= CX_LIVE_MCP)
        return false;
    while (next_word(&rest, arena, &word)) {
        if (cx_str_is(word, "--mode") && next_word(&rest, arena, &word))
            (void)cx_live_mode_parse(word, &hook.mode);
        else if (cx_str_is(word, "--home") && next_word(&rest, arena, &word))
            hook.home = word;
    }
    *out = hook;
    return true;
}

/* --- an entry --------------------------------------------------------------------------------- */

static void add_entry(cx_buf *out, const cx_live_hook *hook, cx_str command)
{
    bool closed = hook->mode != CX_LIVE_OBSERVE;
    cx_buf_add_z(out, hook->agent == CX_LIVE_CURSOR ? "{\"" : "{\"type\": \"command\", \"");
    cx_buf_printf(out, "%s\": ", cx_hook_form_of(hook->agent)->command);
    cx_json_write_str(out, command, CX_JSON_JCS);
    switch (hook->agent) {
    case CX_LIVE_CLAUDE:
        cx_buf_printf(out, ", \"timeout\": %d%s}", CX_LIVE_HOOK_TIMEOUT_S,
                      closed ? ", \"onFailure\": \"block\"" : "");
        break;
    case CX_LIVE_GEMINI:
        cx_buf_printf(out, ", \"name\": \"cortex\", \"timeout\": %d}",
                      CX_LIVE_HOOK_TIMEOUT_S * 1000);
        break;
    case CX_LIVE_CURSOR:
        cx_buf_printf(out, ", \"timeout\": %d%s}", CX_LIVE_HOOK_TIMEOUT_S,
                      closed ? ", \"failClosed\": true" : "");
        break;
    case CX_LIVE_COPILOT:
        cx_buf_printf(out, ", \"timeoutSec\": %d}", CX_LIVE_HOOK_TIMEOUT_S);
        break;
    case CX_LIVE_CODEX:
    case CX_LIVE_MCP:
    case CX_LIVE_AGENT_COUNT:
        cx_buf_printf(out, ", \"timeout\": %d}", CX_LIVE_HOOK_TIMEOUT_S);
        break;
    }
}

cx_status cx_hook_element(const cx_live_hook *hook, const cx_live_hook_event *event,
                          cx_arena *arena, cx_str *out, cx_err *err)
{
    const cx_hook_form *form = cx_hook_form_of(hook->agent);
    cx_str command;
    cx_buf text;
    CX_TRY(cx_live_hook_command(hook, arena, &command, err));
    cx_buf_init(&text, cx_alloc_default());
    if (form->grouped) {
        cx_buf_add_z(&text, "{");
        if (form->matcher != NULL && event->of_tool)
            cx_buf_printf(&text, "\"matcher\": \"%s\", ", form->matcher);
        cx_buf_add_z(&text, "\"hooks\": [");
    }
    add_entry(&text, hook, command);
    if (form->grouped)
        cx_buf_add_z(&text, "]}");
    *out = cx_arena_copy_str(arena, cx_buf_str(&text));
    bool failed = text.failed || out->data == NULL;
    cx_buf_done(&text);
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

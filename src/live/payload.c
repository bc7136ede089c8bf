/*
 * payload.c - what five agents send to a hook, read into one form.
 */
#include <string.h>

#include "crypto/api.h"
#include "live/live.h"
#include "rules/api.h"

/* --- names ------------------------------------------------------------------------------------ */

static const struct {
    const char *name, *word;
} agents[CX_LIVE_AGENT_COUNT] = {
    [CX_LIVE_CLAUDE] = {"claude-code", "claude"}, [CX_LIVE_CODEX] = {"codex", "codex"},
    [CX_LIVE_GEMINI] = {"gemini", "gemini"},      [CX_LIVE_CURSOR] = {"cursor", "cursor"},
    [CX_LIVE_COPILOT] = {"copilot", "copilot"},   [CX_LIVE_MCP] = {"mcp", "mcp"},
};

const char *cx_live_agent_name(cx_live_agent agent)
{
    CX_ASSERT(agent < CX_LIVE_AGENT_COUNT);
    return agents[agent].name;
}

cx_live_agent cx_live_agent_parse(cx_str word)
{
    for (size_t i = 0; i < CX_LIVE_AGENT_COUNT; i++)
        if (cx_str_is(word, agents[i].name) || cx_str_is(word, agents[i].word))
            return (cx_live_agent)i;
    return CX_LIVE_AGENT_COUNT;
}

static const char *const modes[] = {"observe", "ask", "enforce"};

const char *cx_live_mode_name(cx_live_mode mode)
{
    CX_ASSERT(mode < CX_COUNT_OF(modes));
    return modes[mode];
}

bool cx_live_mode_parse(cx_str word, cx_live_mode *out)
{
    for (size_t i = 0; i < CX_COUNT_OF(modes); i++)
        if (cx_str_is(word, modes[i])) {
            *out = (cx_live_mode)i;
            return true;
        }
    return false;
}

/* Events by name: Claude Code, Codex and Copilot's PascalCase first, then Gemini, Cursor and
 * Copilot's camelCase. */
static const struct {
    const char *name;
    cx_live_event event;
} events[] = {
    {"PreToolUse", CX_LIVE_BEFORE},
    {"PostToolUse", CX_LIVE_AFTER},
    {"PostToolUseFailure", CX_LIVE_FAILED},
    {"PermissionRequest", CX_LIVE_PERMISSION},
    {"UserPromptSubmit", CX_LIVE_PROMPT},
    {"SessionStart", CX_LIVE_START},
    {"SessionEnd", CX_LIVE_END},
    {"ConfigChange", CX_LIVE_CONFIG},
    {"SubagentStart", CX_LIVE_SUBAGENT},
    {"SubagentStop", CX_LIVE_SUBAGENT},
    {"BeforeTool", CX_LIVE_BEFORE},
    {"AfterTool", CX_LIVE_AFTER},
    {"BeforeAgent", CX_LIVE_PROMPT},
    {"preToolUse", CX_LIVE_BEFORE},
    {"postToolUse", CX_LIVE_AFTER},
    {"postToolUseFailure", CX_LIVE_FAILED},
    {"permissionRequest", CX_LIVE_PERMISSION},
    {"beforeShellExecution", CX_LIVE_BEFORE},
    {"beforeMCPExecution", CX_LIVE_BEFORE},
    {"beforeReadFile", CX_LIVE_BEFORE},
    {"beforeTabFileRead", CX_LIVE_BEFORE},
    {"afterShellExecution", CX_LIVE_AFTER},
    {"afterMCPExecution", CX_LIVE_AFTER},
    {"afterFileEdit", CX_LIVE_AFTER},
    {"beforeSubmitPrompt", CX_LIVE_PROMPT},
    {"userPromptSubmitted", CX_LIVE_PROMPT},
    {"sessionStart", CX_LIVE_START},
    {"sessionEnd", CX_LIVE_END},
    {"subagentStart", CX_LIVE_SUBAGENT},
    {"subagentStop", CX_LIVE_SUBAGENT},
};

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct payload {
    const cx_json *root;
    cx_arena *arena;
    cx_live_call *call;
    cx_err *err;
} payload;

/* The first member of that name that is a text. */
static cx_str text_of(const payload *p, const char *a, const char *b)
{
    cx_str text = cx_json_get_str(p->root, cx_str_z(a));
    return text.data == NULL && b != NULL ? cx_json_get_str(p->root, cx_str_z(b)) : text;
}

/* The name of an event in Copilot's camelCase form, which does not say it. */
static cx_str guess_event(const payload *p)
{
    if (cx_json_get(p->root, CX_STR("toolName")) != NULL)
        return cx_json_get(p->root, CX_STR("toolResult")) != NULL ? CX_STR("postToolUse")
                                                                  : CX_STR("preToolUse");
    if (cx_json_get(p->root, CX_STR("prompt")) != NULL)
        return CX_STR("userPromptSubmitted");
    if (cx_json_get(p->root, CX_STR("source")) != NULL)
        return CX_STR("sessionStart");
    if (cx_json_get(p->root, CX_STR("reason")) != NULL)
        return CX_STR("sessionEnd");
    return CX_STR("");
}

static cx_status read_event(payload *p)
{
    cx_str name = text_of(p, "hook_event_name", "hookEventName");
    if (name.size == 0 && p->call->agent == CX_LIVE_COPILOT) {
        name = guess_event(p);
        p->call->flat = true;
    }
    if (name.size == 0)
        return cx_fail(p->err, CX_E_FORMAT,
                       "/hook_event_name: found none, expected the name of a hook event");
    p->call->event_name = name;
    for (size_t i = 0; i < CX_COUNT_OF(events); i++)
        if (cx_str_is(name, events[i].name))
            p->call->event = events[i].event;
    return CX_SUCCESS;
}

/* Cursor's flat events have the tool's input among everything else. */
static cx_status make_flat_input(payload *p, const char *tool, const char *const *members,
                                 size_t count)
{
    cx_json_list object = cx_json_list_begin(p->arena);
    cx_json *value = CX_ARENA_NEW(p->arena, cx_json);
    if (value == NULL)
        return cx_fail_nomem(p->err);
    for (size_t i = 0; i < count; i++) {
        const cx_json *member = cx_json_get(p->root, cx_str_z(members[i]));
        if (member != NULL)
            cx_json_list_put(&object, cx_str_z(members[i]), *member);
    }
    CX_TRY(cx_json_list_end_object(&object, value, p->err));
    p->call->input = value;
    if (p->call->tool.size == 0)
        p->call->tool = cx_str_z(tool);
    return CX_SUCCESS;
}

/* Some agents send a tool's input as a JSON text. */
static cx_status parse_input(payload *p, const cx_json *input)
{
    cx_json *value;
    if (input->type == CX_JSON_OBJECT) {
        p->call->input = input;
        return CX_SUCCESS;
    }
    if (input->type != CX_JSON_STRING)
        return cx_fail(p->err, CX_E_FORMAT, "/tool_input: found %s, expected an object",
                       cx_json_type_name(input));
    value = CX_ARENA_NEW(p->arena, cx_json);
    if (value == NULL)
        return cx_fail_nomem(p->err);
    cx_err inner;
    cx_status status =
        cx_run_json_read(cx_json_text(input), CX_LIVE_INPUT_MAX, p->arena, value, &inner);
    if (cx_failed(status))
        return cx_fail(p->err, CX_E_FORMAT, "/tool_input: found a text that is no JSON: %s",
                       inner.message);
    if (value->type != CX_JSON_OBJECT)
        return cx_fail(p->err, CX_E_FORMAT, "/tool_input: found a text with %s, expected an object",
                       cx_json_type_name(value));
    p->call->input = value;
    return CX_SUCCESS;
}

static cx_status read_tool(payload *p)
{
    static const char *const shell[] = {"command", "cwd"}, *const file[] = {"file_path"};
    cx_live_call *call = p->call;
    const cx_json *input = cx_json_get(p->root, CX_STR("tool_input"));
    call->tool = text_of(p, "tool_name", "toolName");
    if (input == NULL)
        input = cx_json_get(p->root, CX_STR("toolArgs"));
    call->id = text_of(p, "tool_use_id", "tool_call_id");
    if (input != NULL && input->type != CX_JSON_NULL)
        CX_TRY(parse_input(p, input));
    else if (cx_str_ends(call->event_name, CX_STR("ShellExecution")))
        CX_TRY(make_flat_input(p, "Shell", shell, CX_COUNT_OF(shell)));
    else if (cx_str_is(call->event_name, "afterFileEdit"))
        CX_TRY(make_flat_input(p, "Write", file, CX_COUNT_OF(file)));
    else if (cx_str_ends(call->event_name, CX_STR("File")) ||
             cx_str_ends(call->event_name, CX_STR("FileRead")))
        CX_TRY(make_flat_input(p, "Read", file, CX_COUNT_OF(file)));
    if (call->tool.size == 0)
        return cx_fail(p->err, CX_E_FORMAT, "/tool_name: found none, expected the tool's name");
    const cx_json *server = cx_json_get(p->root, CX_STR("mcp_server"));
    const cx_json *context = cx_json_get(p->root, CX_STR("mcp_context"));
    if (server != NULL)
        call->mcp_server = CX_JSON_GET_STR(server, "name");
    else if (context != NULL)
        call->mcp_server = CX_JSON_GET_STR(context, "server_name");
    else if (cx_str_is(call->event_name, "beforeMCPExecution"))
        call->mcp_server = text_of(p, "url", "command");
    static const char *const outputs[] = {"tool_response", "tool_output", "toolResult",
                                          "error",         "output",      "result_json"};
    for (size_t i = 0; i < CX_COUNT_OF(outputs) && call->output == NULL; i++)
        call->output = cx_json_get(p->root, cx_str_z(outputs[i]));
    return cx_live_input_digest(call->input, &call->input_sha256, &call->input_bytes, p->err);
}

cx_status cx_live_input_digest(const cx_json *input, cx_digest *out, uint64_t *out_bytes,
                               cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = CX_SUCCESS;
    if (input == NULL)
        cx_buf_add_z(&text, "{}");
    else
        status = cx_json_write(&text, input, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        *out = cx_digest_of(cx_buf_bytes(&text));
        if (out_bytes != NULL)
            *out_bytes = text.size;
    }
    cx_buf_done(&text);
    return status;
}

static bool is_about_a_tool(cx_live_event event)
{
    return event == CX_LIVE_BEFORE || event == CX_LIVE_PERMISSION || event == CX_LIVE_AFTER ||
           event == CX_LIVE_FAILED;
}

/* The object, and which event it is about. */
static cx_status begin_payload(payload *p, cx_live_agent agent, cx_str text)
{
    cx_err *err = p->err;
    cx_arena *arena = p->arena;
    cx_json *root = CX_ARENA_NEW(arena, cx_json);
    memset(p->call, 0, sizeof *p->call);
    p->root = root;
    p->call->agent = agent;
    if (root == NULL)
        return cx_fail_nomem(err);
    if (text.size > CX_LIVE_INPUT_MAX)
        return cx_fail(err, CX_E_LIMIT, "found more than 16 MiB, expected a hook's JSON");
    if (text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        text = cx_str_from(text.data + 3, text.size - 3);
    if (text.size == 0)
        return cx_fail(err, CX_E_SYNTAX, "found nothing, expected a hook's JSON");
    CX_TRY(cx_run_json_read(text, CX_LIVE_INPUT_MAX, arena, root, err));
    if (root->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "found %s, expected an object as hooks send it",
                       cx_json_type_name(root));
    return read_event(p);
}

cx_status cx_live_call_event(cx_live_agent agent, cx_str text, cx_arena *arena, cx_live_call *out,
                             cx_err *err)
{
    payload p = {.arena = arena, .call = out, .err = err};
    return begin_payload(&p, agent, text);
}

cx_status cx_live_call_read(cx_live_agent agent, cx_str text, cx_arena *arena, cx_live_call *out,
                            cx_err *err)
{
    payload p = {.arena = arena, .call = out, .err = err};
    CX_TRY(begin_payload(&p, agent, text));
    out->session = text_of(&p, agent == CX_LIVE_CURSOR ? "conversation_id" : "session_id",
                           agent == CX_LIVE_CURSOR ? "session_id" : "sessionId");
    if (out->session.size == 0 || out->session.size > CX_LIVE_SESSION_BYTES_MAX)
        return cx_fail(err, CX_E_FORMAT, "/session_id: found %s, expected 1 to 128 bytes",
                       out->session.size == 0 ? "none" : "a longer one");
    out->cwd = text_of(&p, "cwd", NULL);
    const cx_json *roots = cx_json_get_typed(p.root, CX_STR("workspace_roots"), CX_JSON_ARRAY);
    if (out->cwd.size == 0 && roots != NULL && roots->count != 0 &&
        roots->items[0].type == CX_JSON_STRING)
        out->cwd = cx_json_text(&roots->items[0]);
    out->transcript = text_of(&p, "transcript_path", "transcriptPath");
    out->subagent = text_of(&p, "agent_id", "subagent_id");
    out->subagent_type = text_of(&p, "agent_type", "subagent_type");
    out->permission_mode = text_of(&p, "permission_mode", NULL);
    out->source = text_of(&p, "source", NULL);
    out->reason = text_of(&p, "reason", NULL);
    out->path = text_of(&p, "file_path", NULL);
    out->prompt = text_of(&p, "prompt", NULL);
    return is_about_a_tool(out->event) ? read_tool(&p) : CX_SUCCESS;
}

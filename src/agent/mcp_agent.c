/*
 * mcp_agent.c - approval requests and tool events, as coding agents send them over MCP.
 *
 * `codex mcp-server` requests approvals by elicitation/create with a member codex_elicitation
 * (exec-approval, patch-approval) and reads "decision" in the answer; app servers use methods of
 * their own.  Tool events are notifications codex/event with a message {"type":
 * "exec_command_begin", ..}.
 */
#include "agent/mcp_agent.h"

/* Longest text of an agent in an event. */
enum { SHOWN_MAX = 4096, NAMES_MAX = 256 };

static const struct {
    const char *method, *kind;
} methods[] = {
    {"execCommandApproval", "exec"},        {"item/commandExecution/requestApproval", "exec"},
    {"applyPatchApproval", "patch"},        {"item/fileChange/requestApproval", "patch"},
    {"sampling/createMessage", "sampling"},
};

/* --- text written by agents ------------------------------------------------------------------- */

/* Cuts a text to SHOWN_MAX bytes, between characters. */
static cx_str shorten_text(cx_str text)
{
    if (text.size <= SHOWN_MAX)
        return text;
    size_t size = SHOWN_MAX;
    while (size > 0 && ((unsigned char)text.data[size] & 0xC0) == 0x80)
        size--;
    return cx_str_from(text.data, size);
}

/* A lone surrogate is not allowed in evidence. */
static cx_json shown_text(cx_str text)
{
    cx_json value = cx_json_make_str(shorten_text(text));
    return (value.flags & CX_JSON_SURROGATE) != 0 ? cx_json_make_str(CX_STR("?")) : value;
}

/* A command as text: the items of a list, joined by spaces. */
static cx_status command_text(const cx_json *command, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_buf text;
    *out = CX_STR("");
    if (command == NULL)
        return CX_SUCCESS;
    if (command->type == CX_JSON_STRING) {
        *out = shorten_text(cx_json_text(command));
        return CX_SUCCESS;
    }
    if (command->type != CX_JSON_ARRAY)
        return CX_SUCCESS;
    cx_buf_init(&text, arena->alloc);
    for (uint32_t i = 0; i < command->count && text.size <= SHOWN_MAX; i++) {
        if (command->items[i].type != CX_JSON_STRING)
            continue;
        if (text.size != 0)
            cx_buf_add_byte(&text, ' ');
        cx_buf_add_str(&text, shorten_text(cx_json_text(&command->items[i])));
    }
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, shorten_text(cx_buf_str(&text)));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

/* --- requests --------------------------------------------------------------------------------- */

/* "exec" of "exec-approval"; empty when it is no approval. */
static cx_str elicitation_kind(const cx_json *params)
{
    cx_str what = params == NULL ? CX_STR("") : CX_JSON_GET_STR(params, "codex_elicitation");
    if (cx_str_is(what, "exec-approval"))
        return CX_STR("exec");
    return cx_str_is(what, "patch-approval") ? CX_STR("patch") : CX_STR("");
}

static cx_str request_kind(cx_str method, const cx_json *params)
{
    if (cx_str_is(method, "elicitation/create"))
        return elicitation_kind(params);
    for (size_t i = 0; i < CX_COUNT_OF(methods); i++) {
        if (cx_str_is(method, methods[i].method))
            return cx_str_z(methods[i].kind);
    }
    return CX_STR("");
}

cx_status cx_mcp_read_request(cx_str method, const cx_json *params, cx_arena *arena,
                              cx_mcp_request_class *out_asks, cx_runner_request *out, cx_err *err)
{
    memset(out, 0, sizeof *out);
    out->kind = request_kind(method, params);
    out->details = params;
    *out_asks = out->kind.size == 0 ? CX_MCP_REQUEST_UNSUPPORTED : CX_MCP_REQUEST_APPROVAL;
    if (params == NULL || params->type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    const cx_json *command = CX_JSON_GET(params, "codex_command");
    if (command == NULL)
        command = CX_JSON_GET(params, "command");
    return command_text(command, arena, &out->command, err);
}

cx_status cx_mcp_make_answer(const cx_runner_request *request, bool granted, cx_arena *arena,
                             cx_mcp_answer *out, cx_err *err)
{
    CX_ASSERT(request->kind.size != 0);
    cx_json_list result = cx_json_list_begin(arena), content = cx_json_list_begin(arena);
    cx_json nothing;
    memset(out, 0, sizeof *out);
    if (cx_str_is(request->kind, "sampling")) {
        out->refused = true;
        out->code = granted ? CX_MCP_E_INTERNAL : CX_MCP_E_METHOD;
        out->message = granted
                           ? CX_STR("sampling was approved, but this client has no model to ask")
                           : CX_STR("sampling is not approved");
        return CX_SUCCESS;
    }
    cx_json_list_put(&result, CX_STR("decision"),
                     cx_json_make_str(granted ? CX_STR("approved") : CX_STR("denied")));
    cx_json_list_put(&result, CX_STR("action"),
                     cx_json_make_str(granted ? CX_STR("accept") : CX_STR("decline")));
    if (granted) {
        CX_TRY(cx_json_list_end_object(&content, &nothing, err));
        cx_json_list_put(&result, CX_STR("content"), nothing);
    }
    return cx_json_list_end_object(&result, &out->result, err);
}

/* --- notifications ---------------------------------------------------------------------------- */

static const cx_json *codex_event(cx_str method, const cx_json *params)
{
    if (!cx_str_is(method, "codex/event") || params == NULL || params->type != CX_JSON_OBJECT)
        return NULL;
    return cx_json_get_typed(params, CX_STR("msg"), CX_JSON_OBJECT);
}

/* {"tool": "apply_patch", "paths": [..]} */
static cx_status put_changed_paths(const cx_json *changes, cx_json_list *payload, cx_err *err)
{
    cx_json_list paths = cx_json_list_begin(payload->arena);
    cx_json value;
    if (changes == NULL || changes->type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    for (uint32_t i = 0; i < changes->count && i < NAMES_MAX; i++)
        cx_json_list_add(&paths, shown_text(cx_json_text(&changes->members[i].name)));
    CX_TRY(cx_json_list_end_array(&paths, &value, err));
    cx_json_list_put(payload, CX_STR("paths"), value);
    return CX_SUCCESS;
}

static void put_server_tool(const cx_json *event, cx_json_list *payload)
{
    const cx_json *call = cx_json_get_typed(event, CX_STR("invocation"), CX_JSON_OBJECT);
    if (call == NULL)
        return;
    cx_json_list_put(payload, CX_STR("server"), shown_text(CX_JSON_GET_STR(call, "server")));
    cx_json_list_put(payload, CX_STR("name"), shown_text(CX_JSON_GET_STR(call, "tool")));
}

cx_status cx_mcp_read_tool(cx_str method, const cx_json *params, cx_arena *arena, bool *out_is,
                           bool *out_shell, cx_json *out, cx_err *err)
{
    const cx_json *event = codex_event(method, params);
    cx_str type = event == NULL ? CX_STR("") : CX_JSON_GET_STR(event, "type");
    cx_json_list payload = cx_json_list_begin(arena);
    cx_str tool = CX_STR(""), command;
    *out_shell = cx_str_is(type, "exec_command_begin");
    if (*out_shell)
        tool = CX_STR("shell");
    else if (cx_str_is(type, "patch_apply_begin"))
        tool = CX_STR("apply_patch");
    else if (cx_str_is(type, "mcp_tool_call_begin"))
        tool = CX_STR("mcp");
    else if (cx_str_is(type, "web_search_begin"))
        tool = CX_STR("web_search");
    *out_is = tool.size != 0;
    if (!*out_is)
        return CX_SUCCESS;
    cx_json_list_put(&payload, CX_STR("tool"), cx_json_make_str(tool));
    if (*out_shell) {
        CX_TRY(command_text(CX_JSON_GET(event, "command"), arena, &command, err));
        cx_json_list_put(&payload, CX_STR("command"), shown_text(command));
    } else if (cx_str_is(tool, "apply_patch")) {
        CX_TRY(put_changed_paths(CX_JSON_GET(event, "changes"), &payload, err));
    } else if (cx_str_is(tool, "mcp")) {
        put_server_tool(event, &payload);
    }
    return cx_json_list_end_object(&payload, out, err);
}

cx_str cx_mcp_read_thread(cx_str method, const cx_json *params)
{
    const cx_json *event = codex_event(method, params);
    const cx_json *meta = event == NULL ? NULL : CX_JSON_GET(params, "_meta");
    cx_str thread = meta == NULL ? CX_STR("") : CX_JSON_GET_STR(meta, "threadId");
    if (thread.size == 0 && event != NULL &&
        cx_str_is(CX_JSON_GET_STR(event, "type"), "session_configured"))
        thread = CX_JSON_GET_STR(event, "session_id");
    return thread;
}

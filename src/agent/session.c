/*
 * session.c - records of agents, by the form that each prints (session.h).
 */
#include "agent/session.h"

/* What one line is read into. */
typedef struct reading {
    cx_session *session;
    cx_arena arena; /* of the line */
    cx_session_sink *sink;
    void *arg;
} reading;

void cx_session_init(cx_session *session, const cx_alloc *alloc)
{
    memset(session, 0, sizeof *session);
    session->alloc = alloc;
    cx_buf_init(&session->reply, alloc);
    cx_buf_init(&session->failure, alloc);
    cx_buf_init(&session->thread, alloc);
}

void cx_session_done(cx_session *session)
{
    cx_buf_done(&session->reply);
    cx_buf_done(&session->failure);
    cx_buf_done(&session->thread);
}

/* --- text ------------------------------------------------------------------------------------- */

/* I3 */
static cx_str cut_text(cx_str text, size_t most)
{
    if (text.size <= most)
        return text;
    size_t size = most;
    while (size > 0 && ((uint8_t)text.data[size] & 0xC0) == 0x80)
        size--;
    return (cx_str){text.data, size};
}

/* As compact JSON; nothing for a value that JSON cannot write again, such as 1e999 (I1). */
static cx_status write_value(cx_buf *out, const cx_json *value, cx_err *err)
{
    cx_err why;
    cx_status status = cx_json_write(out, value, CX_JSON_PY_COMPACT, &why);
    return status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* The text of a content: a string, or a list of parts that have "text" or "content". */
static cx_status content_text(reading *r, const cx_json *content, cx_str *out, cx_err *err)
{
    cx_buf text;
    *out = CX_STR("");
    if (content == NULL)
        return CX_SUCCESS;
    if (content->type == CX_JSON_STRING) {
        *out = cx_json_text(content);
        return CX_SUCCESS;
    }
    cx_buf_init(&text, r->session->alloc);
    cx_status status = CX_SUCCESS;
    if (content->type == CX_JSON_ARRAY) {
        for (uint32_t i = 0; i < content->count; i++) {
            cx_str one = CX_JSON_GET_STR(&content->items[i], "text");
            if (one.size != 0 && text.size != 0)
                cx_buf_add_byte(&text, '\n');
            cx_buf_add_str(&text, one);
        }
    } else if (content->type != CX_JSON_NULL) {
        status = write_value(&text, content, err);
    }
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status) && text.size != 0) {
        *out = cx_arena_copy_str(&r->arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

static void set_text(cx_buf *buf, cx_str text)
{
    cx_buf_clear(buf);
    cx_buf_add_str(buf, text);
}

static void set_thread(reading *r, cx_str id)
{
    if (id.size != 0 && id.size <= 256 && r->session->thread.size == 0)
        set_text(&r->session->thread, id);
}

static void set_failure(reading *r, cx_str text)
{
    set_text(&r->session->failure,
             text.size == 0 ? CX_STR("it gave no reason") : cut_text(text, CX_SESSION_INPUT_MAX));
}

static void set_reply(reading *r, cx_str text, bool more)
{
    cx_session *s = r->session;
    if (!more || !s->reply_open)
        cx_buf_clear(&s->reply);
    s->reply_open = more;
    s->reply_failed = s->reply.size + text.size > CX_SESSION_REPLY_MAX;
    if (!s->reply_failed)
        cx_buf_add_str(&s->reply, text);
}

/* --- items ------------------------------------------------------------------------------------ */

static cx_status emit_item(reading *r, cx_session_item *item, cx_err *err)
{
    item->text_size = item->text.size;
    item->text = cut_text(item->text, CX_SESSION_TEXT_MAX);
    item->command = cut_text(item->command, CX_SESSION_INPUT_MAX);
    item->who = cut_text(item->who, 256);
    item->id = cut_text(item->id, 256);
    return r->sink(r->arg, item, err);
}

static cx_status emit_message(reading *r, const char *who, cx_str text, bool continued, cx_err *err)
{
    cx_session_item item = {
        .kind = CX_SESSION_MESSAGE, .who = cx_str_z(who), .text = text, .continued = continued};
    if (text.size == 0)
        return CX_SUCCESS;
    r->session->counts.messages += !continued;
    return emit_item(r, &item, err);
}

static bool is_shell_tool(cx_str tool)
{
    static const char *const names[] = {"Bash",  "BashOutput",        "Monitor",       "PowerShell",
                                        "shell", "run_shell_command", "shellToolCall", "bash"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_str_is(tool, names[i]))
            return true;
    return false;
}

static cx_status emit_call(reading *r, cx_str tool, cx_str id, const cx_json *input, cx_err *err)
{
    cx_session_item item = {.kind = CX_SESSION_CALL,
                            .who = tool.size == 0 ? CX_STR("unnamed") : tool,
                            .id = id,
                            .shell = is_shell_tool(tool)};
    const cx_json *command = input == NULL ? NULL : CX_JSON_GET(input, "command");
    cx_buf text;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&text, r->session->alloc);
    if (input != NULL)
        status = write_value(&text, input, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status) && command != NULL)
        status = content_text(r, command, &item.command, err);
    item.text = cx_buf_str(&text);
    r->session->counts.calls++;
    if (!cx_failed(status))
        status = emit_item(r, &item, err);
    cx_buf_done(&text);
    return status;
}

static cx_status emit_result(reading *r, cx_str tool, cx_str id, const cx_json *content,
                             bool failed, cx_err *err)
{
    cx_session_item item = {.kind = CX_SESSION_RESULT, .who = tool, .id = id, .failed = failed};
    CX_TRY(content_text(r, content, &item.text, err));
    r->session->counts.results++;
    return emit_item(r, &item, err);
}

/* --- calls that are printed twice (I2) -------------------------------------------------------- */

static uint64_t hash_id(cx_str id)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < id.size; i++)
        hash = (hash ^ (uint8_t)id.data[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Whether that call is new. */
static bool open_call(cx_session *s, cx_str id)
{
    uint64_t hash = hash_id(id);
    for (size_t i = 0; i < s->open_count; i++)
        if (s->open[i] == hash)
            return false;
    if (s->open_count < CX_SESSION_OPEN_MAX)
        s->open[s->open_count++] = hash;
    return true;
}

static void close_call(cx_session *s, cx_str id)
{
    uint64_t hash = hash_id(id);
    for (size_t i = 0; i < s->open_count; i++)
        if (s->open[i] == hash)
            s->open[i--] = s->open[--s->open_count];
}

static bool is_true(const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_TRUE;
}

/* --- Claude Code, and Cursor's form of it ----------------------------------------------------- */

static cx_status read_claude_block(reading *r, const char *who, const cx_json *block, cx_err *err)
{
    cx_str type = CX_JSON_GET_STR(block, "type");
    if (cx_str_is(type, "text")) {
        cx_str text = CX_JSON_GET_STR(block, "text");
        if (strcmp(who, "assistant") == 0)
            set_reply(r, text, false);
        return emit_message(r, who, text, false, err);
    }
    if (cx_str_is(type, "thinking"))
        return emit_message(r, "reasoning", CX_JSON_GET_STR(block, "thinking"), false, err);
    if (cx_str_is(type, "tool_use") || cx_str_is(type, "server_tool_use"))
        return emit_call(r, CX_JSON_GET_STR(block, "name"), CX_JSON_GET_STR(block, "id"),
                         CX_JSON_GET(block, "input"), err);
    if (cx_str_is(type, "tool_result") || cx_str_ends(type, CX_STR("_tool_result")))
        return emit_result(r, CX_STR(""), CX_JSON_GET_STR(block, "tool_use_id"),
                           CX_JSON_GET(block, "content"), is_true(block, "is_error"), err);
    return CX_SUCCESS;
}

static cx_status read_claude_message(reading *r, const char *who, const cx_json *message,
                                     cx_err *err)
{
    const cx_json *content = CX_JSON_GET(message, "content");
    if (content != NULL && content->type == CX_JSON_STRING)
        return emit_message(r, who, cx_json_text(content), false, err);
    for (uint32_t i = 0; content != NULL && content->type == CX_JSON_ARRAY && i < content->count;
         i++)
        CX_TRY(read_claude_block(r, who, &content->items[i], err));
    return CX_SUCCESS;
}

static cx_status read_claude_result(reading *r, const cx_json *record, cx_err *err)
{
    const cx_json *structured =
        cx_json_get_typed(record, CX_STR("structured_output"), CX_JSON_OBJECT);
    cx_str text = CX_JSON_GET_STR(record, "result");
    if (is_true(record, "is_error"))
        set_failure(r, text.size != 0 ? text : CX_JSON_GET_STR(record, "subtype"));
    if (structured != NULL)
        CX_TRY(content_text(r, structured, &text, err));
    if (text.size != 0)
        set_reply(r, text, false);
    return CX_SUCCESS;
}

/* Cursor: {"type":"tool_call","subtype":"started","call_id","tool_call":{"readToolCall":{..}}} */
static cx_status read_cursor_call(reading *r, const cx_json *record, cx_err *err)
{
    const cx_json *call = cx_json_get_typed(record, CX_STR("tool_call"), CX_JSON_OBJECT);
    cx_str id = CX_JSON_GET_STR(record, "call_id");
    if (call == NULL || call->count == 0)
        return CX_SUCCESS;
    cx_str tool = cx_json_text(&call->members[0].name);
    const cx_json *value = &call->members[0].value;
    if (open_call(r->session, id))
        CX_TRY(emit_call(r, tool, id, CX_JSON_GET(value, "args"), err));
    if (!cx_str_is(CX_JSON_GET_STR(record, "subtype"), "completed"))
        return CX_SUCCESS;
    close_call(r->session, id);
    return emit_result(r, tool, id, CX_JSON_GET(value, "result"), false, err);
}

static cx_status read_claude(reading *r, cx_str type, const cx_json *record, bool *known,
                             cx_err *err)
{
    static const char *const silent[] = {
        "system",      "stream_event",    "rate_limit_event", "tool_progress", "tool_use_summary",
        "auth_status", "control_request", "control_response", "keep_alive",    "thinking"};
    const cx_json *message = cx_json_get_typed(record, CX_STR("message"), CX_JSON_OBJECT);
    set_thread(r, CX_JSON_GET_STR(record, "session_id"));
    if (cx_str_is(type, "assistant") && message != NULL)
        return read_claude_message(r, "assistant", message, err);
    if (cx_str_is(type, "user") && message != NULL)
        return read_claude_message(r, "user", message, err);
    if (cx_str_is(type, "result"))
        return read_claude_result(r, record, err);
    if (cx_str_is(type, "tool_call"))
        return read_cursor_call(r, record, err);
    *known = false;
    for (size_t i = 0; i < CX_COUNT_OF(silent); i++)
        *known = *known || cx_str_is(type, silent[i]);
    return CX_SUCCESS;
}

/* --- Codex ------------------------------------------------------------------------------------ */

static const char *codex_tool(cx_str type)
{
    static const char *const names[][2] = {
        {"command_execution", "shell"},  {"file_change", "apply_patch"},
        {"mcp_tool_call", "mcp"},        {"web_search", "web_search"},
        {"collab_tool_call", "collab"},  {"image_generation", "image_generation"},
        {"exec_command_begin", "shell"}, {"patch_apply_begin", "apply_patch"},
        {"mcp_tool_call_begin", "mcp"},  {"web_search_begin", "web_search"},
        {"exec_command_end", "shell"},   {"patch_apply_end", "apply_patch"},
        {"mcp_tool_call_end", "mcp"},    {"web_search_end", "web_search"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_str_is(type, names[i][0]))
            return names[i][1];
    return NULL;
}

/* The members of an item that say what is called. */
static cx_status codex_input(reading *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const names[] = {"command",   "changes",    "server", "tool",
                                        "arguments", "invocation", "query",  "prompt"};
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *value = cx_json_get(item, cx_str_z(names[i]));
        if (value != NULL)
            cx_json_list_put(&list, cx_str_z(names[i]), *value);
    }
    return cx_json_list_end_object(&list, out, err);
}

static const cx_json *codex_output(const cx_json *item)
{
    static const char *const names[] = {"aggregated_output", "error",  "result",
                                        "formatted_output",  "stdout", "changes"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *value = cx_json_get(item, cx_str_z(names[i]));
        if (value != NULL && value->type != CX_JSON_NULL)
            return value;
    }
    return NULL;
}

static bool codex_failed(const cx_json *item)
{
    const cx_json *code = CX_JSON_GET(item, "exit_code");
    cx_str status = CX_JSON_GET_STR(item, "status");
    if (cx_str_is(status, "failed") || cx_str_is(status, "declined"))
        return true;
    return code != NULL && cx_json_is_number(code) && !cx_str_is(cx_json_text(code), "0");
}

static cx_status read_codex_call(reading *r, const char *tool, cx_str id, const cx_json *item,
                                 bool ended, cx_err *err)
{
    cx_json input;
    if (open_call(r->session, id)) {
        CX_TRY(codex_input(r, item, &input, err));
        CX_TRY(emit_call(r, cx_str_z(tool), id, &input, err));
    }
    if (!ended)
        return CX_SUCCESS;
    close_call(r->session, id);
    return emit_result(r, cx_str_z(tool), id, codex_output(item), codex_failed(item), err);
}

static cx_status read_codex_item(reading *r, const cx_json *item, bool ended, cx_err *err)
{
    cx_str type = CX_JSON_GET_STR(item, "type"), text = CX_JSON_GET_STR(item, "text");
    const char *tool = codex_tool(type);
    if (tool != NULL)
        return read_codex_call(r, tool, CX_JSON_GET_STR(item, "id"), item, ended, err);
    if (!ended)
        return CX_SUCCESS;
    if (cx_str_is(type, "agent_message")) {
        set_reply(r, text, false);
        return emit_message(r, "assistant", text, false, err);
    }
    if (cx_str_is(type, "reasoning"))
        return emit_message(r, "reasoning", text, false, err);
    if (cx_str_is(type, "error"))
        return emit_message(r, "error", CX_JSON_GET_STR(item, "message"), false, err);
    return CX_SUCCESS; /* todo_list, and items to come */
}

/* {"id", "msg": {"type": "exec_command_begin", ..}}: what `codex exec --json` printed before it had
 * items. */
static cx_status read_codex_msg(reading *r, const cx_json *msg, cx_err *err)
{
    cx_str type = CX_JSON_GET_STR(msg, "type");
    const char *tool = codex_tool(type);
    set_thread(r, CX_JSON_GET_STR(msg, "session_id"));
    if (tool != NULL)
        return read_codex_call(r, tool, CX_JSON_GET_STR(msg, "call_id"), msg,
                               cx_str_ends(type, CX_STR("_end")), err);
    if (cx_str_is(type, "agent_message")) {
        set_reply(r, CX_JSON_GET_STR(msg, "message"), false);
        return emit_message(r, "assistant", CX_JSON_GET_STR(msg, "message"), false, err);
    }
    if (cx_str_is(type, "agent_reasoning"))
        return emit_message(r, "reasoning", CX_JSON_GET_STR(msg, "text"), false, err);
    if (cx_str_is(type, "error"))
        set_failure(r, CX_JSON_GET_STR(msg, "message"));
    return CX_SUCCESS;
}

static cx_status read_codex(reading *r, cx_str type, const cx_json *record, bool *known,
                            cx_err *err)
{
    const cx_json *item = cx_json_get_typed(record, CX_STR("item"), CX_JSON_OBJECT);
    const cx_json *error = cx_json_get_typed(record, CX_STR("error"), CX_JSON_OBJECT);
    set_thread(r, CX_JSON_GET_STR(record, "thread_id"));
    if (item != NULL && cx_str_is(type, "item.completed"))
        return read_codex_item(r, item, true, err);
    if (item != NULL && (cx_str_is(type, "item.started") || cx_str_is(type, "item.updated")))
        return read_codex_item(r, item, false, err);
    if (cx_str_is(type, "turn.failed")) {
        set_failure(r, error == NULL ? CX_STR("") : CX_JSON_GET_STR(error, "message"));
        return CX_SUCCESS;
    }
    if (cx_str_is(type, "error")) /* it may try again: turn.failed says when it gave up */
        return emit_message(r, "error", CX_JSON_GET_STR(record, "message"), false, err);
    *known = cx_str_is(type, "thread.started") || cx_str_is(type, "turn.started") ||
             cx_str_is(type, "turn.completed");
    return CX_SUCCESS;
}

/* --- Gemini ----------------------------------------------------------------------------------- */

static cx_status read_gemini_message(reading *r, const cx_json *record, cx_err *err)
{
    cx_str text = CX_JSON_GET_STR(record, "content");
    bool more = is_true(record, "delta"), continued = more && r->session->reply_open;
    if (!cx_str_is(CX_JSON_GET_STR(record, "role"), "assistant"))
        return emit_message(r, "user", text, false, err);
    set_reply(r, text, more);
    return emit_message(r, "assistant", text, continued, err);
}

static cx_status read_gemini(reading *r, cx_str type, const cx_json *record, bool *known,
                             cx_err *err)
{
    const cx_json *error = cx_json_get_typed(record, CX_STR("error"), CX_JSON_OBJECT);
    cx_str id = CX_JSON_GET_STR(record, "tool_id");
    bool failed = cx_str_is(CX_JSON_GET_STR(record, "status"), "error");
    set_thread(r, CX_JSON_GET_STR(record, "session_id"));
    if (cx_str_is(type, "message"))
        return read_gemini_message(r, record, err);
    r->session->reply_open = false;
    if (cx_str_is(type, "tool_use"))
        return emit_call(r, CX_JSON_GET_STR(record, "tool_name"), id,
                         CX_JSON_GET(record, "parameters"), err);
    if (cx_str_is(type, "tool_result"))
        return emit_result(r, CX_STR(""), id,
                           failed && error != NULL ? CX_JSON_GET(error, "message")
                                                   : CX_JSON_GET(record, "output"),
                           failed, err);
    if (cx_str_is(type, "error"))
        return emit_message(r, "error", CX_JSON_GET_STR(record, "message"), false, err);
    if (cx_str_is(type, "result") && failed)
        set_failure(r, error == NULL ? CX_STR("") : CX_JSON_GET_STR(error, "message"));
    *known = cx_str_is(type, "result") || cx_str_is(type, "init");
    return CX_SUCCESS;
}

/* --- OpenCode --------------------------------------------------------------------------------- */

static cx_status read_opencode(reading *r, cx_str type, const cx_json *record, bool *known,
                               cx_err *err)
{
    const cx_json *part = cx_json_get_typed(record, CX_STR("part"), CX_JSON_OBJECT);
    const cx_json *state =
        part == NULL ? NULL : cx_json_get_typed(part, CX_STR("state"), CX_JSON_OBJECT);
    set_thread(r, CX_JSON_GET_STR(record, "sessionID"));
    if (part != NULL && cx_str_is(type, "text")) {
        set_reply(r, CX_JSON_GET_STR(part, "text"), false);
        return emit_message(r, "assistant", CX_JSON_GET_STR(part, "text"), false, err);
    }
    if (part != NULL && state != NULL && cx_str_is(type, "tool_use")) {
        cx_str tool = CX_JSON_GET_STR(part, "tool"), id = CX_JSON_GET_STR(part, "callID");
        bool failed = cx_str_is(CX_JSON_GET_STR(state, "status"), "error");
        CX_TRY(emit_call(r, tool, id, CX_JSON_GET(state, "input"), err));
        return emit_result(r, tool, id, CX_JSON_GET(state, failed ? "error" : "output"), failed,
                           err);
    }
    *known = cx_str_is(type, "step_start") || cx_str_is(type, "step_finish") ||
             cx_str_is(type, "reasoning");
    return CX_SUCCESS;
}

/* --- which form ------------------------------------------------------------------------------- */

/* NULL: no record of an agent that is known here. */
static const char *format_of(cx_str type, const cx_json *record)
{
    bool claude_id = CX_JSON_GET_STR(record, "session_id").size != 0;
    if (cx_str_starts(type, CX_STR("thread.")) || cx_str_starts(type, CX_STR("turn.")) ||
        cx_str_starts(type, CX_STR("item.")))
        return "codex";
    if (cx_json_get_typed(record, CX_STR("part"), CX_JSON_OBJECT) != NULL &&
        CX_JSON_GET_STR(record, "sessionID").size != 0)
        return "opencode";
    if (cx_str_is(type, "tool_call") && CX_JSON_GET_STR(record, "call_id").size != 0)
        return "cursor";
    if ((cx_str_is(type, "assistant") || cx_str_is(type, "user")) &&
        cx_json_get_typed(record, CX_STR("message"), CX_JSON_OBJECT) != NULL)
        return "claude";
    if (claude_id && CX_JSON_GET(record, "subtype") != NULL)
        return "claude"; /* system, result */
    if (cx_str_is(type, "init") && claude_id)
        return "gemini";
    if (CX_JSON_GET_STR(record, "tool_id").size != 0 ||
        (cx_str_is(type, "message") && CX_JSON_GET_STR(record, "role").size != 0))
        return "gemini";
    return NULL;
}

static cx_status read_record(reading *r, cx_str type, const cx_json *record, bool *known,
                             cx_err *err)
{
    const char *format = r->session->format;
    if (strcmp(format, "codex") == 0) {
        const cx_json *msg = cx_json_get_typed(record, CX_STR("msg"), CX_JSON_OBJECT);
        return msg != NULL ? read_codex_msg(r, msg, err) : read_codex(r, type, record, known, err);
    }
    if (strcmp(format, "gemini") == 0)
        return read_gemini(r, type, record, known, err);
    if (strcmp(format, "opencode") == 0)
        return read_opencode(r, type, record, known, err);
    return read_claude(r, type, record, known, err);
}

/* A session begins in one form and stays in it; Cursor shows itself by its first call. */
static void choose_format(cx_session *s, cx_str type, const cx_json *record, bool is_msg)
{
    const char *format = is_msg ? "codex" : type.size == 0 ? NULL : format_of(type, record);
    if (s->format == NULL)
        s->format = format;
    else if (format != NULL && strcmp(format, "cursor") == 0 && strcmp(s->format, "claude") == 0)
        s->format = format;
}

static cx_status read_object(reading *r, const cx_json *record, bool *out_record, cx_err *err)
{
    cx_session *s = r->session;
    const cx_json *msg = cx_json_get_typed(record, CX_STR("msg"), CX_JSON_OBJECT);
    cx_str type = CX_JSON_GET_STR(record, "type");
    bool is_msg = msg != NULL && CX_JSON_GET_STR(msg, "type").size != 0, known = true;
    choose_format(s, type, record, is_msg);
    *out_record = s->format != NULL && (type.size != 0 || is_msg);
    if (!*out_record) {
        s->counts.unknown++;
        return CX_SUCCESS;
    }
    cx_status status = read_record(r, type, record, &known, err);
    s->counts.unknown += !known;
    return status;
}

cx_status cx_session_read_value(cx_session *session, const cx_json *record, cx_session_sink *sink,
                                void *arg, cx_err *err)
{
    CX_ASSERT(session != NULL && record != NULL && sink != NULL);
    reading r = {.session = session, .sink = sink, .arg = arg};
    bool is_record;
    session->counts.lines++;
    cx_arena_init(&r.arena, session->alloc, 0);
    cx_status status = read_object(&r, record, &is_record, err);
    cx_arena_done(&r.arena);
    return status;
}

cx_status cx_session_read(cx_session *session, cx_str line, cx_session_sink *sink, void *arg,
                          bool *out_record, cx_err *err)
{
    CX_ASSERT(session != NULL && sink != NULL && out_record != NULL);
    reading r = {.session = session, .sink = sink, .arg = arg};
    cx_json value;
    *out_record = false;
    size_t at = 0;
    while (at < line.size && (uint8_t)line.data[at] <= 0x20)
        at++;
    if (at == line.size)
        return CX_SUCCESS;
    session->counts.lines++;
    if (line.data[at] != '{') {
        session->counts.broken++;
        return CX_SUCCESS;
    }
    cx_arena_init(&r.arena, session->alloc, 0);
    cx_status status = cx_run_json_read(line, CX_SESSION_REPLY_MAX, &r.arena, &value, NULL);
    if (cx_failed(status)) {
        session->counts.broken++;
        status = status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
    } else {
        status = read_object(&r, &value, out_record, err);
    }
    cx_arena_done(&r.arena);
    CX_TRY(status);
    CX_TRY(cx_buf_check(&session->reply, err));
    CX_TRY(cx_buf_check(&session->failure, err));
    return cx_buf_check(&session->thread, err);
}

/* --- documents -------------------------------------------------------------------------------- */

/* A lone surrogate is not allowed in evidence. */
static void put_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_json value = cx_json_make_str(text);
    cx_json_put(list, name,
                (value.flags & CX_JSON_SURROGATE) != 0 ? cx_json_make_str(CX_STR("?")) : value);
}

cx_status cx_session_call_json(const cx_session_item *item, cx_arena *arena, cx_json *out,
                               cx_err *err)
{
    CX_ASSERT(item->kind == CX_SESSION_CALL);
    cx_json_list list = cx_json_list_begin(arena);
    put_text(&list, "tool", item->who);
    if (item->id.size != 0)
        put_text(&list, "call", item->id);
    if (item->command.size != 0)
        put_text(&list, "command", item->command);
    if (item->text.size != 0)
        put_text(&list, "input", cut_text(item->text, CX_SESSION_INPUT_MAX));
    if (item->text_size > CX_SESSION_INPUT_MAX)
        cx_json_put_bool(&list, "input_cut", true);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_session_counts_json(const cx_session *session, cx_arena *arena, cx_json *out,
                                 cx_err *err)
{
    CX_ASSERT(session->format != NULL);
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_put_z(&list, "format", session->format);
    cx_json_put_uint(&list, "lines", session->counts.lines);
    cx_json_put_uint(&list, "unknown", session->counts.unknown);
    cx_json_put_uint(&list, "broken", session->counts.broken);
    cx_json_put_uint(&list, "messages", session->counts.messages);
    cx_json_put_uint(&list, "tool_calls", session->counts.calls);
    return cx_json_list_end_object(&list, out, err);
}

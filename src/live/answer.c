/*
 * answer.c - what each agent is told.
 */
#include "live/answer.h"

#include <string.h>

#include "base/api.h"
#include "live/shell.h"
#include "live/tools.h"

const char *cx_live_answer_name(cx_live_answer_kind kind)
{
    static const char *const names[] = {"allow", "deny", "ask", "rewrite"};
    CX_ASSERT(kind < CX_COUNT_OF(names));
    return names[kind];
}

/* One line, whatever the reason has in it. */
static cx_str one_line(cx_str text, cx_arena *arena)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_shown_add(&out, text);
    cx_str line = cx_arena_copy_str(arena, cx_buf_str(&out));
    cx_buf_done(&out);
    return line;
}

/* The member of the input that holds a command. */
static const char *command_member(const cx_live_call *call)
{
    const cx_live_tool *tool = cx_live_tool_find(call->tool);
    if (tool == NULL || tool->form != CX_LIVE_FORM_COMMAND || call->input == NULL)
        return NULL;
    const char *found = NULL;
    for (size_t i = 0; i < CX_COUNT_OF(tool->members) && tool->members[i] != NULL; i++) {
        if (cx_json_get(call->input, cx_str_z(tool->members[i])) == NULL)
            continue;
        if (found != NULL) /* which of them counts is the agent's secret */
            return NULL;
        found = tool->members[i];
    }
    return found != NULL && cx_json_get_str(call->input, cx_str_z(found)).data != NULL ? found
                                                                                       : NULL;
}

bool cx_live_answer_can_rewrite(const cx_live_call *call)
{
    return call->event == CX_LIVE_BEFORE && command_member(call) != NULL &&
           !cx_str_ends(call->event_name, CX_STR("ShellExecution"));
}

bool cx_live_sandboxed(const cx_live_policy *policy, const cx_live_call *call, cx_arena *arena,
                       cx_str *out)
{
    const char *member = command_member(call);
    cx_buf text;
    if (member == NULL || policy->program.size == 0)
        return false;
    cx_buf_init(&text, cx_alloc_default());
    cx_shell_add_word(&text, policy->program);
    cx_buf_add_z(&text, " exec --network deny -- /bin/sh -c");
    cx_shell_add_word(&text, cx_json_get_str(call->input, cx_str_z(member)));
    *out = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return out->data != NULL && out->size != 0;
}

/* --- JSON forms ------------------------------------------------------------------------------- */

static cx_status end_out(cx_json_list *root, cx_live_outcome *out, cx_arena *arena, cx_err *err)
{
    cx_json value;
    cx_buf text;
    CX_TRY(cx_json_list_end_object(root, &value, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    cx_buf_add_z(&text, "\n");
    if (!cx_failed(status)) {
        out->out = cx_arena_copy_str(arena, cx_buf_str(&text));
        status = out->out.data == NULL ? cx_fail_nomem(err) : cx_buf_check(&text, err);
    }
    cx_buf_done(&text);
    return status;
}

/* The input with the command replaced. */
static cx_json_list new_input(const cx_live_call *call, cx_str command, bool whole, cx_arena *arena)
{
    cx_json_list object = cx_json_list_begin(arena);
    const char *member = command_member(call);
    CX_ASSERT(member != NULL);
    for (uint32_t i = 0; whole && i < call->input->count; i++)
        if (!cx_str_is(cx_json_text(&call->input->members[i].name), member))
            cx_json_list_put(&object, cx_json_text(&call->input->members[i].name),
                             call->input->members[i].value);
    cx_json_put_str(&object, member, command);
    return object;
}

static cx_status answer_rewrite(const cx_live_call *call, cx_live_outcome *out, cx_arena *arena,
                                cx_err *err)
{
    cx_json_list root = cx_json_list_begin(arena), hook = cx_json_list_begin(arena);
    cx_json_list input =
        new_input(call, out->decision.rewrite, call->agent != CX_LIVE_GEMINI, arena);
    if (call->agent == CX_LIVE_CURSOR) {
        cx_json_put_z(&root, "permission", "allow");
        cx_json_put_object(&root, "updated_input", &input);
    } else if (call->flat) {
        cx_json_put_object(&root, "modifiedArgs", &input);
    } else {
        cx_json_put_str(&hook, "hookEventName", call->event_name);
        if (call->agent == CX_LIVE_CODEX)
            cx_json_put_z(&hook, "permissionDecision", "allow");
        cx_json_put_object(&hook, call->agent == CX_LIVE_GEMINI ? "tool_input" : "updatedInput",
                           &input);
        cx_json_put_object(&root, "hookSpecificOutput", &hook);
    }
    return end_out(&root, out, arena, err);
}

static cx_status answer_ask_json(const cx_live_call *call, cx_str reason, cx_live_outcome *out,
                                 cx_arena *arena, cx_err *err)
{
    cx_json_list root = cx_json_list_begin(arena), hook = cx_json_list_begin(arena);
    cx_json_put_str(&hook, "hookEventName", call->event_name);
    cx_json_put_z(&hook, "permissionDecision", "ask");
    cx_json_put_str(&hook, "permissionDecisionReason", reason);
    cx_json_put_object(&root, "hookSpecificOutput", &hook);
    return end_out(&root, out, arena, err);
}

static cx_status answer_permission(const cx_live_call *call, cx_str reason, cx_live_outcome *out,
                                   cx_arena *arena, cx_err *err)
{
    cx_json_list root = cx_json_list_begin(arena), hook = cx_json_list_begin(arena),
                 decision = cx_json_list_begin(arena);
    cx_json_put_z(&decision, "behavior", "deny");
    cx_json_put_str(&decision, "message", reason);
    cx_json_put_str(&hook, "hookEventName", call->event_name);
    cx_json_put_object(&hook, "decision", &decision);
    cx_json_put_object(&root, "hookSpecificOutput", &hook);
    return end_out(&root, out, arena, err);
}

static bool has_json_permission(const cx_live_call *call)
{
    return call->event == CX_LIVE_PERMISSION &&
           (call->agent == CX_LIVE_CLAUDE || call->agent == CX_LIVE_CODEX);
}

/* --- the answer ------------------------------------------------------------------------------- */

static void answer_pass(cx_live_agent agent, cx_live_event event, cx_live_outcome *out)
{
    out->exit_code = 0;
    out->out = out->complaint = CX_STR("");
    if (agent == CX_LIVE_CURSOR && (event == CX_LIVE_BEFORE || event == CX_LIVE_SUBAGENT))
        out->out = CX_STR("{\"permission\":\"allow\"}\n");
    else if (agent == CX_LIVE_CURSOR && event == CX_LIVE_PROMPT)
        out->out = CX_STR("{\"continue\":true}\n");
}

cx_str cx_live_reason(const cx_live_call *call, const cx_live_outcome *out, cx_arena *arena)
{
    const cx_live_decision *decision = &out->decision;
    char code[65] = "";
    cx_hex_encode(cx_bytes_from(call->input_sha256.bytes, 32), code);
    cx_str what = call->tool, why = decision->why, text;
    for (size_t i = 0; i < decision->effect_count; i++)
        if (decision->effects[i].verdict == decision->verdict) {
            what = decision->effects[i].text;
            break;
        }
    size_t shown = what.size < 200 ? what.size : 200;
    while (shown != 0 && shown < what.size && ((uint8_t)what.data[shown] & 0xc0) == 0x80)
        shown--;
    if (out->answer == CX_LIVE_ASKED)
        text = cx_arena_printf(arena,
                               "cortex: a person must approve this (%s): %.*s: %.*s. They can run: "
                               "cortex session approve %.*s %.12s",
                               decision->rule, (int)shown, what.data, (int)why.size, why.data,
                               (int)out->session.size, out->session.data, code);
    else
        text = cx_arena_printf(arena, "cortex: not allowed (%s): %.*s: %.*s", decision->rule,
                               (int)shown, what.data, (int)why.size, why.data);
    return text.data == NULL ? text : one_line(text, arena);
}

/* A3 */
static cx_status answer_deny_json(const cx_live_call *call, cx_str reason, cx_live_outcome *out,
                                  cx_arena *arena, cx_err *err)
{
    cx_json_list root = cx_json_list_begin(arena), hook = cx_json_list_begin(arena);
    if (call->agent == CX_LIVE_GEMINI) {
        cx_json_put_z(&root, "decision", "deny");
        cx_json_put_str(&root, "reason", reason);
    } else if (call->agent == CX_LIVE_CURSOR) {
        cx_json_put_z(&root, "permission", "deny");
        cx_json_put_str(&root, "user_message", reason);
        cx_json_put_str(&root, "agent_message", reason);
    } else if (call->flat) {
        cx_json_put_z(&root, "permissionDecision", "deny");
        cx_json_put_str(&root, "permissionDecisionReason", reason);
    } else {
        cx_json_put_str(&hook, "hookEventName", call->event_name);
        cx_json_put_z(&hook, "permissionDecision", "deny");
        cx_json_put_str(&hook, "permissionDecisionReason", reason);
        cx_json_put_object(&root, "hookSpecificOutput", &hook);
    }
    return end_out(&root, out, arena, err);
}

cx_status cx_live_answer(const cx_live_call *call, bool over_http, cx_arena *arena,
                         cx_live_outcome *out, cx_err *err)
{
    answer_pass(call->agent, call->event, out);
    if (out->answer == CX_LIVE_PASS)
        return CX_SUCCESS;
    if (out->answer == CX_LIVE_REWRITTEN) {
        out->out = CX_STR("");
        return call->event == CX_LIVE_BEFORE ? answer_rewrite(call, out, arena, err) : CX_SUCCESS;
    }
    cx_str reason = cx_live_reason(call, out, arena);
    if (reason.data == NULL)
        return cx_fail_nomem(err);
    out->out = CX_STR("");
    if (has_json_permission(call)) /* being asked already, the person decides */
        return out->answer == CX_LIVE_ASKED ? CX_SUCCESS
                                            : answer_permission(call, reason, out, arena, err);
    if (out->answer == CX_LIVE_ASKED && call->agent == CX_LIVE_CLAUDE)
        return answer_ask_json(call, reason, out, arena, err);
    if (over_http)
        return answer_deny_json(call, reason, out, arena, err);
    out->complaint = reason; /* A1 */
    out->exit_code = 2;
    return CX_SUCCESS;
}

void cx_live_answer_failure(cx_live_agent agent, bool fail_open, const cx_err *why, cx_arena *arena,
                            cx_live_outcome *out)
{
    memset(out, 0, sizeof *out);
    answer_pass(agent, CX_LIVE_BEFORE, out);
    cx_str line = one_line(cx_str_z(why->message), arena);
    out->complaint = cx_arena_printf(arena, "cortex: no decision: %.*s", (int)line.size,
                                     line.data == NULL ? "" : line.data);
    if (out->complaint.data == NULL)
        out->complaint = CX_STR("cortex: no decision: out of memory");
    if (fail_open)
        return;
    out->answer = CX_LIVE_DENY;
    out->out = CX_STR("");
    out->exit_code = 2;
}

/* The event that a body is about, as far as it can be told: a call of a tool otherwise. */
static void guess_event(cx_live_agent agent, cx_str body, cx_arena *arena, cx_live_call *out)
{
    static const char *const before[] = {"PreToolUse", "PreToolUse", "BeforeTool",
                                         "preToolUse", "PreToolUse", "PreToolUse"};
    cx_err ignored;
    _Static_assert(CX_COUNT_OF(before) == CX_LIVE_AGENT_COUNT, "one for each agent");
    if (!cx_failed(cx_live_call_event(agent, body, arena, out, &ignored)))
        return;
    memset(out, 0, sizeof *out);
    out->agent = agent;
    out->event = CX_LIVE_BEFORE;
    out->event_name = cx_str_z(before[agent]);
}

cx_status cx_live_answer_failure_http(cx_live_agent agent, cx_str body, bool fail_open,
                                      cx_str reason, cx_arena *arena, bool *out_decided,
                                      cx_live_outcome *out, cx_err *err)
{
    cx_live_call call;
    memset(out, 0, sizeof *out);
    guess_event(agent, body, arena, &call);
    *out_decided = call.event == CX_LIVE_BEFORE || call.event == CX_LIVE_PERMISSION;
    if (!*out_decided)
        return CX_SUCCESS;
    answer_pass(agent, call.event, out);
    if (fail_open)
        return CX_SUCCESS;
    out->answer = CX_LIVE_DENY;
    cx_str line = one_line(reason, arena);
    cx_str text = line.data == NULL ? line
                                    : cx_arena_printf(arena, "cortex: no decision: %.*s",
                                                      (int)line.size, line.data);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    return has_json_permission(&call) ? answer_permission(&call, text, out, arena, err)
                                      : answer_deny_json(&call, text, out, arena, err);
}

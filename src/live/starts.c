/*
 * starts.c - calls that start other agents, or what runs later: what of it hooks will see.
 */
#include <string.h>

#include "live/decide_parts.h"

static bool is_true(const cx_json *input, const char *name)
{
    const cx_json *value = input == NULL ? NULL : cx_json_get(input, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_TRUE;
}

static void add(cx_deciding *d, cx_live_verdict verdict, cx_str text, const char *why)
{
    cx_deciding_add(d, CX_LIVE_AGENT_START, verdict, verdict == CX_LIVE_ALLOW ? "L00" : "L07",
                    text.size == 0 ? d->call->tool : text, "%s", why);
}

/* The id of a sub-agent of Claude Code's own session: "a" and 16 hexadecimal digits. */
static bool is_own_subagent(cx_str name)
{
    if (name.size != 17 || name.data[0] != 'a')
        return false;
    for (size_t i = 1; i < name.size; i++)
        if (strchr("0123456789abcdef", name.data[i]) == NULL || name.data[i] == 0)
            return false;
    return true;
}

void cx_deciding_agent(cx_deciding *d, cx_str name)
{
    const cx_json *input = d->call->input;
    if (input != NULL && cx_str_is(CX_JSON_GET_STR(input, "isolation"), "remote"))
        add(d, CX_LIVE_FORBIDDEN, name, "it runs on another machine, where no hook decides");
    else
        add(d, CX_LIVE_ALLOW, name, "");
}

void cx_deciding_message(cx_deciding *d, cx_str to)
{
    if (is_own_subagent(to))
        add(d, CX_LIVE_ALLOW, to, "");
    else
        add(d, CX_LIVE_UNLISTED, to, "it can reach a session that is not governed");
}

void cx_deciding_later(cx_deciding *d, cx_str text)
{
    if (cx_str_list_has(d->policy->tools_allow, d->call->tool))
        add(d, CX_LIVE_ALLOW, text, "");
    else if (cx_str_is(d->call->tool, "CronCreate") && !is_true(d->call->input, "durable"))
        add(d, CX_LIVE_ALLOW, text, ""); /* a prompt to this session, gone with it */
    else if (cx_str_is(d->call->tool, "CronCreate"))
        add(d, CX_LIVE_UNLISTED, text, "it gives prompts to later sessions");
    else if (cx_str_is(d->call->tool, "Workflow"))
        add(d, CX_LIVE_UNLISTED, text, "what its script starts shows only when it runs");
    else
        add(d, CX_LIVE_UNLISTED, text,
            "commands in a skill's text run when it is loaded, and no hook sees them");
}

void cx_deciding_worktree(cx_deciding *d)
{
    static const char *const folder = ".claude/worktrees";
    const cx_json *input = d->call->input;
    cx_str path = input == NULL ? CX_STR("") : CX_JSON_GET_STR(input, "path");
    if (cx_str_is(d->call->tool, "EnterWorktree"))
        cx_deciding_write(d, path.size != 0 ? path : cx_str_z(folder));
    else if (is_true(input, "discard_changes"))
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_UNLISTED, "L07", cx_str_z(folder), "%s",
                        "what was changed in the worktree and not committed is lost");
    else
        cx_deciding_add(d, CX_LIVE_NOTHING, CX_LIVE_ALLOW, "L00", d->call->tool, "%s", "");
}

/*
 * decide.c - a call's effects by its tool, and the verdict over them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "live/decide_parts.h"

const char *cx_live_effect_name(cx_live_effect_kind kind)
{
    static const char *const names[] = {"nothing", "command", "read",  "write",
                                        "host",    "tool",    "agent", "unknown"};
    CX_ASSERT(kind < CX_COUNT_OF(names));
    return names[kind];
}

void cx_deciding_add(cx_deciding *d, cx_live_effect_kind kind, cx_live_verdict verdict,
                     const char *rule, cx_str text, const char *why, ...)
{
    char reason[CX_LIVE_REASON_BYTES_MAX];
    va_list args;
    if (cx_failed(d->status))
        return;
    /* The same effect again says nothing new. */
    for (size_t i = 0; i < d->count; i++)
        if (d->effects[i].kind == kind && d->effects[i].verdict == verdict &&
            cx_str_eq(d->effects[i].text, text))
            return;
    if (d->count == CX_LIVE_EFFECTS_MAX) {
        d->too_many = true;
        return;
    }
    cx_live_effect *effect = &d->effects[d->count++];
    *effect = (cx_live_effect){.kind = kind, .verdict = verdict, .rule = rule, .why = CX_STR("")};
    effect->text = cx_arena_copy_str(d->arena, text.data == NULL ? CX_STR("") : text);
    if (verdict != CX_LIVE_ALLOW) {
        va_start(args, why);
        int size = vsnprintf(reason, sizeof reason, why, args);
        va_end(args);
        effect->why = cx_arena_copy_str(d->arena, cx_str_from(reason, size < 0 ? 0
                                                                      : (size_t)size < sizeof reason
                                                                          ? (size_t)size
                                                                          : sizeof reason - 1));
    }
    if (effect->text.data == NULL || effect->why.data == NULL)
        d->status = cx_fail_nomem(d->err);
}

/* --- tools of MCP servers --------------------------------------------------------------------- */

static bool names_tool(cx_str entry, cx_str whole, cx_str server, cx_str tool)
{
    if (cx_str_eq(entry, whole) || cx_str_eq(entry, server))
        return true;
    return entry.size == server.size + tool.size + 1 && cx_str_starts(entry, server) &&
           entry.data[server.size] == '/' && cx_str_ends(entry, tool);
}

static bool list_names_tool(cx_str_list list, cx_str whole, cx_str server, cx_str tool)
{
    for (size_t i = 0; i < list.count; i++)
        if (names_tool(list.items[i], whole, server, tool))
            return true;
    return false;
}

#define ARGUMENTS_DEPTH_MAX 16

/* Paths and addresses among the arguments: what the server does with them is not known, so they
 * count as read, and outside of the work tree as not listed. */
static void take_arguments(cx_deciding *d, const cx_json *value, unsigned depth)
{
    if (depth == ARGUMENTS_DEPTH_MAX) {
        cx_deciding_add(d, CX_LIVE_UNKNOWN, CX_LIVE_UNLISTED, "L08", CX_STR("arguments"),
                        "nested deeper than 16");
        return;
    }
    if (value->type == CX_JSON_OBJECT) {
        for (uint32_t i = 0; i < value->count; i++)
            take_arguments(d, &value->members[i].value, depth + 1);
    } else if (value->type == CX_JSON_ARRAY) {
        for (uint32_t i = 0; i < value->count; i++)
            take_arguments(d, &value->items[i], depth + 1);
    } else if (value->type == CX_JSON_STRING) {
        cx_str text = cx_json_text(value);
        bool path = cx_str_starts(text, CX_STR("/")) || cx_str_starts(text, CX_STR("~/")) ||
                    cx_str_starts(text, CX_STR("../")) || cx_str_starts(text, CX_STR("file://"));
        if (cx_deciding_urls_in(d, text) != 0 || !path ||
            memchr(text.data, '\n', text.size) != NULL)
            return;
        cx_str below = cx_deciding_below_root(d, cx_deciding_resolve(d, text));
        cx_deciding_read(d, text);
        if (below.data == NULL)
            cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_UNLISTED, "L13", text,
                            "an argument names a file outside of the work tree");
    }
}

static void decide_mcp(cx_deciding *d, cx_str server, cx_str tool)
{
    const cx_live_policy *policy = d->policy;
    cx_str whole = d->call->tool;
    cx_str shown = cx_arena_printf(d->arena, "%.*s/%.*s", (int)server.size, server.data,
                                   (int)tool.size, tool.data);
    if (shown.data == NULL) {
        d->status = cx_fail_nomem(d->err);
        return;
    }
    if (list_names_tool(policy->tools_allow, whole, server, tool))
        cx_deciding_add(d, CX_LIVE_TOOL, CX_LIVE_ALLOW, "L00", shown, "%s", "");
    else
        cx_deciding_add(d, CX_LIVE_TOOL, CX_LIVE_UNLISTED, "L06", shown,
                        "no list of the policy has this server or tool");
    if (d->call->input != NULL)
        take_arguments(d, d->call->input, 0);
}

/* --- tools ------------------------------------------------------------------------------------ */

/* The first of the members that is there, as a text; an array of texts is joined by spaces. */
static cx_str member_text(cx_deciding *d, const cx_live_tool *tool, const cx_json **out_list)
{
    *out_list = NULL;
    for (size_t i = 0; i < CX_COUNT_OF(tool->members) && tool->members[i] != NULL; i++) {
        const cx_json *value =
            d->call->input == NULL ? NULL : cx_json_get(d->call->input, cx_str_z(tool->members[i]));
        if (value != NULL && value->type == CX_JSON_STRING)
            return cx_json_text(value);
        if (value != NULL && value->type == CX_JSON_ARRAY) {
            *out_list = value;
            return (cx_str){NULL, 0};
        }
    }
    return (cx_str){NULL, 0};
}

static bool is_true(const cx_json *input, const char *name)
{
    const cx_json *value = input == NULL ? NULL : cx_json_get(input, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_TRUE;
}

/* ["bash","-lc","text"], as some models write it. */
static cx_str text_of_argv(cx_deciding *d, const cx_json *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].type != CX_JSON_STRING)
            return (cx_str){NULL, 0};
    if (list->count == 3 && cx_str_starts(cx_json_text(&list->items[1]), CX_STR("-")) &&
        cx_str_ends(cx_json_text(&list->items[1]), CX_STR("c")))
        return cx_json_text(&list->items[2]);
    (void)d;
    return (cx_str){NULL, 0};
}

static void decide_shell_tool(cx_deciding *d, const cx_live_tool *tool)
{
    static const char *const folders[] = {"workdir", "cwd", "directory", "dir_path"};
    const cx_json *list, *input = d->call->input;
    cx_str text = member_text(d, tool, &list);
    if (list != NULL)
        text = text_of_argv(d, list);
    for (size_t i = 0; i < CX_COUNT_OF(folders) && input != NULL; i++) {
        cx_str folder = cx_json_get_str(input, cx_str_z(folders[i]));
        if (folder.size != 0) {
            d->cwd = cx_deciding_resolve(d, folder);
            break;
        }
    }
    if (text.data == NULL)
        cx_deciding_add(d, CX_LIVE_UNKNOWN, CX_LIVE_UNLISTED, "L08", d->call->tool,
                        "its input has no command in a form that is known");
    else if (is_true(input, "tty"))
        cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_FORBIDDEN, "L07", text,
                        "what is typed into a terminal later is decided by no hook");
    else
        cx_deciding_command(d, text);
    if (is_true(input, "dangerouslyDisableSandbox"))
        cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_UNLISTED, "L07",
                        CX_STR("dangerouslyDisableSandbox"),
                        "it switches the agent's own sandbox off");
    cx_str permissions =
        input == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(input, "sandbox_permissions");
    if (cx_str_is(permissions, "require_escalated"))
        cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_UNLISTED, "L07", CX_STR("require_escalated"),
                        "it runs outside of the agent's own sandbox");
}

static void decide_known_tool(cx_deciding *d, const cx_live_tool *tool)
{
    const cx_json *list;
    cx_str text = member_text(d, tool, &list);
    switch (tool->form) {
    case CX_LIVE_FORM_NOTHING:
        cx_deciding_add(d, CX_LIVE_NOTHING, CX_LIVE_ALLOW, "L00", d->call->tool, "%s", "");
        break;
    case CX_LIVE_FORM_COMMAND: decide_shell_tool(d, tool); break;
    case CX_LIVE_FORM_POWERSHELL:
        cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_UNLISTED, "L07", text,
                        "commands of PowerShell are not taken apart");
        break;
    case CX_LIVE_FORM_TYPED:
        if (text.size == 0)
            cx_deciding_add(d, CX_LIVE_NOTHING, CX_LIVE_ALLOW, "L00", d->call->tool, "%s", "");
        else
            cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_FORBIDDEN, "L07", text,
                            "what is typed into a running program can be anything");
        break;
    case CX_LIVE_FORM_PATCH: cx_deciding_patch(d, text.data == NULL ? CX_STR("") : text); break;
    case CX_LIVE_FORM_READ:
    case CX_LIVE_FORM_WRITE:
        if (text.data == NULL)
            cx_deciding_add(d, CX_LIVE_UNKNOWN, CX_LIVE_UNLISTED, "L08", d->call->tool,
                            "its input names no file in a way that is known");
        else if (tool->form == CX_LIVE_FORM_READ)
            cx_deciding_read(d, text);
        else if (cx_str_is(CX_JSON_GET_STR(d->call->input, "command"), "view"))
            cx_deciding_read(d, text);
        else
            cx_deciding_write(d, text);
        break;
    case CX_LIVE_FORM_SEARCH: cx_deciding_read(d, text.size == 0 ? d->cwd : text); break;
    case CX_LIVE_FORM_URL:
        if (cx_str_is(cx_str_z(tool->name), "web_fetch") && cx_deciding_urls_in(d, text) != 0)
            break;
        cx_deciding_url(d, text.data == NULL ? CX_STR("") : text);
        break;
    case CX_LIVE_FORM_WEB: cx_deciding_web(d, text.data == NULL ? CX_STR("") : text); break;
    case CX_LIVE_FORM_AGENT:
        cx_deciding_add(d, CX_LIVE_AGENT_START, CX_LIVE_ALLOW, "L00",
                        text.data == NULL ? d->call->tool : text, "%s", "");
        break;
    }
}

static void decide_tool(cx_deciding *d)
{
    const cx_live_policy *policy = d->policy;
    cx_str server, tool;
    const cx_live_tool *known = cx_live_tool_find(d->call->tool);
    bool mcp = cx_live_tool_is_mcp(d->call, &server, &tool);
    if (list_names_tool(policy->tools_deny, d->call->tool, mcp ? server : CX_STR(""),
                        mcp ? tool : d->call->tool)) {
        cx_deciding_add(d, CX_LIVE_TOOL, CX_LIVE_FORBIDDEN, "L05", d->call->tool,
                        "the policy or a limit names this tool as denied");
        return;
    }
    if (mcp) {
        decide_mcp(d, server, tool);
    } else if (known != NULL) {
        decide_known_tool(d, known);
    } else if (cx_str_list_has(policy->tools_allow, d->call->tool)) {
        cx_deciding_add(d, CX_LIVE_TOOL, CX_LIVE_ALLOW, "L00", d->call->tool, "%s", "");
    } else {
        cx_deciding_add(d, CX_LIVE_UNKNOWN, CX_LIVE_FORBIDDEN, "L02", d->call->tool,
                        "a tool that is not known; tools.allow of policies/live.json can name it");
    }
}

cx_status cx_live_decide(const cx_live_policy *policy, const cx_live_call *call, cx_arena *arena,
                         cx_live_decision *out, cx_err *err)
{
    cx_deciding d = {
        .policy = policy, .call = call, .arena = arena, .err = err, .status = CX_SUCCESS};
    memset(out, 0, sizeof *out);
    out->rule = "L00";
    out->why = CX_STR("");
    d.effects = CX_ARENA_ARRAY(arena, cx_live_effect, CX_LIVE_EFFECTS_MAX + 1);
    if (d.effects == NULL)
        return cx_fail_nomem(err);
    if (call->cwd.size != 0 && call->cwd.data[0] == '/')
        d.cwd = call->cwd;
    else
        d.cwd = policy->root;
    cx_str real = cx_deciding_resolve(&d, d.cwd);
    d.cwd = real.data == NULL ? CX_STR("") : real;
    decide_tool(&d);
    CX_TRY(d.status);
    if (d.too_many)
        d.effects[d.count++] = (cx_live_effect){.kind = CX_LIVE_UNKNOWN,
                                                .verdict = CX_LIVE_UNLISTED,
                                                .rule = "L08",
                                                .text = call->tool,
                                                .why = CX_STR("more than 64 effects in one call")};
    for (size_t i = 0; i < d.count; i++)
        if (d.effects[i].verdict > out->verdict) {
            out->verdict = d.effects[i].verdict;
            out->rule = d.effects[i].rule;
            out->why = d.effects[i].why;
        }
    out->effects = d.effects;
    out->effect_count = d.count;
    out->rewrite = d.rewritten;
    return CX_SUCCESS;
}

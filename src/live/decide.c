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

bool cx_live_list_names_tool(cx_str_list list, cx_str whole, cx_str server, cx_str tool)
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
    if (cx_live_list_names_tool(policy->tools_allow, whole, server, tool))
        cx_deciding_add(d, CX_LIVE_TOOL, CX_LIVE_ALLOW, "L00", shown, "%s", "");
    else
        cx_deciding_add(d, CX_LIVE_TOOL, CX_LIVE_UNLISTED, "L06", shown,
                        "no list of the policy has this server or tool");
    if (d->call->input != NULL)
        take_arguments(d, d->call->input, 0);
}

/* --- tools ------------------------------------------------------------------------------------ */

/* Calls `decide` with each text that the tool's members have, also those of an array; the number
 * of them. */
static size_t each_text(cx_deciding *d, const cx_live_tool *tool,
                        void (*decide)(cx_deciding *d, cx_str text))
{
    size_t found = 0;
    for (size_t i = 0; i < CX_COUNT_OF(tool->members) && tool->members[i] != NULL; i++) {
        const cx_json *value =
            d->call->input == NULL ? NULL : cx_json_get(d->call->input, cx_str_z(tool->members[i]));
        if (value == NULL || value->type == CX_JSON_NULL)
            continue;
        const cx_json *items = value->type == CX_JSON_ARRAY ? value->items : value;
        for (uint32_t k = 0; k < (value->type == CX_JSON_ARRAY ? value->count : 1); k++, found++)
            if (items[k].type == CX_JSON_STRING)
                decide(d, cx_json_text(&items[k]));
            else
                cx_deciding_add(d, CX_LIVE_UNKNOWN, CX_LIVE_UNLISTED, "L08",
                                cx_str_z(tool->members[i]), "found %s, expected a text",
                                cx_json_type_name(&items[k]));
    }
    return found;
}

/* The first member that is a text; empty when there is none. */
static cx_str first_text(const cx_deciding *d, const cx_live_tool *tool)
{
    for (size_t i = 0; i < CX_COUNT_OF(tool->members) && tool->members[i] != NULL; i++) {
        cx_str text = d->call->input == NULL
                          ? CX_STR("")
                          : cx_json_get_str(d->call->input, cx_str_z(tool->members[i]));
        if (text.size != 0)
            return text;
    }
    return CX_STR("");
}

static bool is_true(const cx_json *input, const char *name)
{
    const cx_json *value = input == NULL ? NULL : cx_json_get(input, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_TRUE;
}

/* ["bash","-lc","text"], as some models write it. */
static cx_str text_of_argv(const cx_json *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].type != CX_JSON_STRING)
            return (cx_str){NULL, 0};
    if (list->count == 3 && cx_str_starts(cx_json_text(&list->items[1]), CX_STR("-")) &&
        cx_str_ends(cx_json_text(&list->items[1]), CX_STR("c")))
        return cx_json_text(&list->items[2]);
    return (cx_str){NULL, 0};
}

/* Where the command runs; unknown when two members say it differently. */
static void take_folder(cx_deciding *d)
{
    static const char *const folders[] = {"workdir", "cwd", "directory", "dir_path"};
    cx_str folder = CX_STR("");
    for (size_t i = 0; i < CX_COUNT_OF(folders) && d->call->input != NULL; i++) {
        cx_str text = cx_json_get_str(d->call->input, cx_str_z(folders[i]));
        if (text.size == 0 || cx_str_eq(text, folder))
            continue;
        bool first = folder.size == 0;
        folder = text;
        cx_str real = first ? cx_deciding_resolve_links(d, text, &d->linked) : (cx_str){NULL, 0};
        d->cwd = real.data == NULL ? CX_STR("") : real;
        if (!first)
            return;
    }
}

static void decide_line(cx_deciding *d, cx_str text)
{
    if (is_true(d->call->input, "tty"))
        cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_FORBIDDEN, "L07", text,
                        "what is typed into a terminal later is decided by no hook");
    else
        cx_deciding_command(d, text);
}

/* The lines in the members, among them ["bash","-lc","line"]; the number of them. */
static size_t decide_lines(cx_deciding *d, const cx_live_tool *tool)
{
    size_t found = 0;
    for (size_t i = 0; i < CX_COUNT_OF(tool->members) && tool->members[i] != NULL; i++) {
        const cx_json *value =
            d->call->input == NULL ? NULL : cx_json_get(d->call->input, cx_str_z(tool->members[i]));
        cx_str text = {NULL, 0};
        if (value != NULL && value->type == CX_JSON_STRING)
            text = cx_json_text(value);
        else if (value != NULL && value->type == CX_JSON_ARRAY)
            text = text_of_argv(value);
        else if (value == NULL || value->type == CX_JSON_NULL)
            continue;
        if (text.data == NULL)
            cx_deciding_add(d, CX_LIVE_UNKNOWN, CX_LIVE_UNLISTED, "L08", cx_str_z(tool->members[i]),
                            "no command in a form that is known");
        else
            decide_line(d, text);
        found++;
    }
    return found;
}

static void decide_shell_tool(cx_deciding *d, const cx_live_tool *tool)
{
    const cx_json *input = d->call->input;
    const cx_json *socket = input == NULL ? NULL : CX_JSON_GET(input, "ws"); /* of Monitor */
    take_folder(d);
    size_t found = decide_lines(d, tool);
    if (socket != NULL && socket->type == CX_JSON_OBJECT) {
        cx_str url = CX_JSON_GET_STR(socket, "url");
        cx_deciding_url(d, url.data == NULL ? CX_STR("") : url);
        found++;
    }
    if (found == 0)
        cx_deciding_add(d, CX_LIVE_UNKNOWN, CX_LIVE_UNLISTED, "L08", d->call->tool,
                        "its input has no command in a form that is known");
    if (found > 1) /* which of them runs is not known, so neither is replaced */
        d->rewritten = (cx_str){NULL, 0};
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

static void decide_typed(cx_deciding *d, cx_str text)
{
    if (text.size == 0)
        cx_deciding_add(d, CX_LIVE_NOTHING, CX_LIVE_ALLOW, "L00", d->call->tool, "%s", "");
    else
        cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_FORBIDDEN, "L07", text,
                        "what is typed into a running program can be anything");
}

static void decide_powershell(cx_deciding *d, cx_str text)
{
    cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_UNLISTED, "L07", text,
                    "commands of PowerShell are not taken apart");
}

/* Gemini's web_fetch takes a prompt with addresses in it. */
static void decide_url(cx_deciding *d, cx_str text)
{
    if (!cx_str_is(d->call->tool, "web_fetch") || cx_deciding_urls_in(d, text) == 0)
        cx_deciding_url(d, text);
}

static bool tells_contents(const cx_live_tool *tool)
{
    static const char *const names[] = {"Glob", "glob", "LS", "list_directory", "LSP"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (strcmp(tool->name, names[i]) == 0)
            return false;
    return true;
}

/* A file or a folder, or a pattern of them. */
static void search_contents(cx_deciding *d, cx_str path)
{
    bool pattern = false, braces = false;
    for (size_t i = 0; i < path.size; i++) {
        pattern = pattern || strchr("*?[", path.data[i]) != NULL;
        braces = braces || path.data[i] == '{';
    }
    if (pattern && !cx_deciding_may_read_pattern(d, path))
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_FORBIDDEN, "L15", path,
                        "the pattern can become what the policy keeps from being read");
    else if (braces)
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_UNLISTED, "L08", path,
                        "what its braces become is not looked at");
    else if (!pattern && cx_deciding_holds_secrets(d, path))
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_FORBIDDEN, "L15", path,
                        "below it is what the policy keeps from being read; name the folders that "
                        "are meant");
    else
        cx_deciding_read(d, path);
}

/* A search without a path, or with a relative pattern, is of the working folder. */
static void decide_search(cx_deciding *d, const cx_live_tool *tool)
{
    cx_str pattern = CX_STR("");
    if (d->call->input != NULL &&
        (strcmp(tool->name, "Glob") == 0 || strcmp(tool->name, "glob") == 0))
        pattern = CX_JSON_GET_STR(d->call->input, "pattern");
    size_t plain = 0;
    while (plain < pattern.size && strchr("*?[{", pattern.data[plain]) == NULL)
        plain++;
    while (plain > 1 && plain < pattern.size && pattern.data[plain - 1] != '/')
        plain--;
    if (cx_str_starts(pattern, CX_STR("/")) || cx_str_starts(pattern, CX_STR("~")) ||
        cx_str_starts(pattern, CX_STR("..")))
        cx_deciding_read(d, cx_str_from(pattern.data, plain));
    void (*decide)(cx_deciding *, cx_str) =
        tells_contents(tool) ? search_contents : cx_deciding_read;
    if (each_text(d, tool, decide) == 0)
        decide(d, d->cwd);
}

/* Forms whose members are all of one kind; NULL for the others. */
static void (*decider_of(const cx_live_tool *tool, const cx_json *input))(cx_deciding *, cx_str)
{
    switch (tool->form) {
    case CX_LIVE_FORM_POWERSHELL: return decide_powershell;
    case CX_LIVE_FORM_TYPED: return decide_typed;
    case CX_LIVE_FORM_PATCH: return cx_deciding_patch;
    case CX_LIVE_FORM_READ: return cx_deciding_read;
    case CX_LIVE_FORM_WRITE:
        return input != NULL && strcmp(tool->name, "str_replace_editor") == 0 &&
                       cx_str_is(CX_JSON_GET_STR(input, "command"), "view")
                   ? cx_deciding_read
                   : cx_deciding_write;
    case CX_LIVE_FORM_URL: return decide_url;
    case CX_LIVE_FORM_WEB: return cx_deciding_web;
    default: return NULL;
    }
}

static void decide_known_tool(cx_deciding *d, const cx_live_tool *tool)
{
    void (*decide)(cx_deciding *, cx_str) = decider_of(tool, d->call->input);
    if (decide != NULL) {
        if (each_text(d, tool, decide) == 0 && tool->form != CX_LIVE_FORM_TYPED)
            cx_deciding_add(d, CX_LIVE_UNKNOWN, CX_LIVE_UNLISTED, "L08", d->call->tool,
                            "what it is about is not in its input in a way that is known");
        else if (d->count == 0)
            cx_deciding_add(d, CX_LIVE_NOTHING, CX_LIVE_ALLOW, "L00", d->call->tool, "%s", "");
        return;
    }
    switch (tool->form) {
    case CX_LIVE_FORM_COMMAND: decide_shell_tool(d, tool); break;
    case CX_LIVE_FORM_SEARCH: decide_search(d, tool); break;
    case CX_LIVE_FORM_AGENT: cx_deciding_agent(d, first_text(d, tool)); break;
    case CX_LIVE_FORM_MESSAGE: cx_deciding_message(d, first_text(d, tool)); break;
    case CX_LIVE_FORM_LATER: cx_deciding_later(d, first_text(d, tool)); break;
    case CX_LIVE_FORM_WORKTREE: cx_deciding_worktree(d); break;
    default: cx_deciding_add(d, CX_LIVE_NOTHING, CX_LIVE_ALLOW, "L00", d->call->tool, "%s", "");
    }
}

/* A list means a tool by each of its names: Claude Code's Task is Agent now, and Codex writes a
 * namespace before some. */
static bool list_means_tool(cx_str_list list, const cx_live_tool *known)
{
    static const char *const pair[] = {"Agent", "Task"};
    if (known == NULL)
        return false;
    if (cx_str_list_has(list, cx_str_z(known->name)))
        return true;
    for (size_t i = 0; i < 2; i++)
        if (strcmp(known->name, pair[i]) == 0)
            return cx_str_list_has(list, cx_str_z(pair[1 - i]));
    return false;
}

static void decide_tool(cx_deciding *d)
{
    const cx_live_policy *policy = d->policy;
    cx_str server, tool;
    const cx_live_tool *known = cx_live_tool_find(d->call->tool);
    bool mcp = cx_live_tool_is_mcp(d->call, &server, &tool);
    if (cx_live_list_names_tool(policy->tools_deny, d->call->tool, mcp ? server : CX_STR(""),
                                mcp ? tool : d->call->tool) ||
        list_means_tool(policy->tools_deny, known)) {
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
    cx_str real = cx_deciding_resolve_links(&d, d.cwd, &d.linked);
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

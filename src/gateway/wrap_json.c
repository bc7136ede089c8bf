/*
 * wrap_json.c - servers in JSON: the member "mcpServers" of the whole, and of "projects", by folder
 * (Claude Code, Gemini CLI, Cursor).
 */
#include <string.h>

#include "base/api.h"
#include "gateway/wrap.h"
#include "gateway/span.h"

typedef cx_status (*entry_taker)(void *arg, const cx_gateway_wrap_entry *entry, cx_err *err);

static cx_str decode(cx_str spelled, cx_arena *arena)
{
    cx_json value;
    cx_err ignored;
    if (cx_failed(cx_json_parse_text(spelled, arena, &value, &ignored)) ||
        value.type != CX_JSON_STRING)
        return (cx_str){NULL, 0};
    return cx_json_text(&value);
}

static bool next_item(cx_str array, size_t *offset, cx_str *out_item)
{
    cx_str name;
    return array.size != 0 && array.data[0] == '[' &&
           cx_gateway_span_next(array, offset, &name, out_item);
}

static void read_member(cx_gateway_wrap_entry *entry, cx_str spelled, cx_str name, cx_str value)
{
    if (cx_str_is(name, "command"))
        entry->command = value;
    else if (cx_str_is(name, "args"))
        entry->args = value;
    else if (cx_str_is(name, "type"))
        entry->type = value;
    else if (cx_str_is(name, "url"))
        entry->url_name = spelled, entry->url = value;
    else if (cx_str_is(name, "headers") || cx_str_is(name, "headersHelper") ||
             cx_str_is(name, "oauth") || cx_str_is(name, "authProviderType"))
        entry->has_secrets = true;
}

static cx_status each_of(cx_str servers, cx_arena *arena, entry_taker take, void *arg, cx_err *err)
{
    size_t offset = 0;
    cx_str spelled, value, member_spelled, member;
    if (servers.size == 0 || servers.data[0] != '{')
        return CX_SUCCESS;
    while (cx_gateway_span_next(servers, &offset, &spelled, &value)) {
        cx_gateway_wrap_entry entry = {.name = decode(spelled, arena)};
        size_t inner = 0;
        if (entry.name.data == NULL || value.data[0] != '{')
            continue;
        while (cx_gateway_span_next(value, &inner, &member_spelled, &member))
            read_member(&entry, member_spelled, decode(member_spelled, arena), member);
        CX_TRY(take(arg, &entry, err));
    }
    return CX_SUCCESS;
}

static cx_status each(cx_str text, const char *folder, cx_arena *arena, entry_taker take, void *arg,
                      cx_err *err)
{
    cx_json root;
    cx_str servers, projects, project;
    CX_TRY(cx_json_parse_text(text, arena, &root, err));
    if (root.type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "found %s, expected an object", cx_json_type_name(&root));
    cx_str whole = cx_gateway_span_trim(text);
    if (cx_gateway_span_member(whole, "mcpServers", &servers))
        CX_TRY(each_of(servers, arena, take, arg, err));
    if (cx_gateway_span_member(whole, "projects", &projects) && projects.data[0] == '{' &&
        cx_gateway_span_member(projects, folder, &project) && project.data[0] == '{' &&
        cx_gateway_span_member(project, "mcpServers", &servers))
        return each_of(servers, arena, take, arg, err);
    return CX_SUCCESS;
}

const cx_gateway_wrap_syntax cx_gateway_wrap_json = {.each = each,
                                                     .next_item = next_item,
                                                     .decode = decode,
                                                     .joiner = ", ",
                                                     .command_name = "\"command\"",
                                                     .args_name = "\"args\""};

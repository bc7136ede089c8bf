/*
 * tools.c - the tools of a server as it listed them.
 */
#include "gateway/tools.h"

#include <string.h>

#include "crypto/api.h"
#include "live/api.h"

#define MINUTE_NS UINT64_C(60000000000)

/* --- characters that are not seen ------------------------------------------------------------- */

/* A joiner between parts of an emoji is seen as one picture. */
static bool is_pictorial(uint32_t code)
{
    return (code >= 0x2190 && code <= 0x2bff) || code == 0xfe0f ||
           (code >= 0x1f000 && code <= 0x1faff);
}

static bool is_selector(uint32_t code)
{
    return code >= 0xfe00 && code <= 0xfe0f;
}

/* What has no width and no ink: format characters, fillers, joiners outside of pictures. */
static bool is_unseen(uint32_t code, uint32_t before)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0xad, 0xad},     {0x34f, 0x34f},     {0x115f, 0x1160},  {0x17b4, 0x17b5},
                  {0x180b, 0x180f}, {0x200b, 0x200c},   {0x2060, 0x2065},  {0x206a, 0x206f},
                  {0x2800, 0x2800}, {0x3164, 0x3164},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0},
                  {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}};
    for (size_t i = 0; i < CX_COUNT_OF(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return code == 0x200d && !is_pictorial(before);
}

/* A selector chooses between two shapes of the character before it.  After another selector, or
 * after a letter of ASCII, it chooses nothing, and is there to be counted. */
static bool is_idle_selector(uint32_t code, uint32_t before)
{
    bool keycap = (before >= '0' && before <= '9') || before == '#' || before == '*';
    return is_selector(code) && (is_selector(before) || (before < 0x80 && !keycap));
}

static unsigned trick_of(uint32_t code, uint32_t before)
{
    if ((code >= 0xe0000 && code <= 0xe0fff) || is_idle_selector(code, before))
        return CX_GATEWAY_TRICK_TAG;
    if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
        code == 0x200e || code == 0x200f || code == 0x61c)
        return CX_GATEWAY_TRICK_BIDI;
    if (is_unseen(code, before))
        return CX_GATEWAY_TRICK_ZERO_WIDTH;
    bool is_space = code == '\t' || code == '\n' || code == '\r';
    return (code < ' ' && !is_space) || (code >= 0x7f && code <= 0x9f) ? CX_GATEWAY_TRICK_CONTROL
                                                                       : 0;
}

unsigned cx_gateway_tricks(cx_str text)
{
    unsigned found = 0;
    uint32_t before = 0;
    for (size_t at = 0; at < text.size;) {
        if ((uint8_t)text.data[at] < 0x80) {
            uint32_t plain = (uint8_t)text.data[at++];
            found |= trick_of(plain, before);
            before = plain;
            continue;
        }
        size_t size = 0;
        uint32_t code = cx_utf8_decode((const uint8_t *)text.data + at, &size);
        found |= trick_of(code, before);
        before = code;
        at += size;
    }
    return found;
}

/* --- digests ---------------------------------------------------------------------------------- */

static cx_status digest_members(const cx_json *tool, const char *const *names, size_t count,
                                cx_arena *arena, cx_digest *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena);
    cx_json value;
    for (size_t i = 0; i < count; i++) {
        const cx_json *member = cx_json_get(tool, cx_str_z(names[i]));
        if (member != NULL)
            cx_json_put(&object, names[i], *member);
    }
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_live_input_digest(&value, out, NULL, err);
}

static cx_status digest_rest(const cx_json *tool, const char *const *names, size_t count,
                             cx_arena *arena, cx_digest *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena);
    cx_json value;
    for (uint32_t i = 0; tool->type == CX_JSON_OBJECT && i < tool->count; i++) {
        bool known = false;
        cx_str name = cx_json_text(&tool->members[i].name);
        for (size_t k = 0; k < count && !known; k++)
            known = cx_str_is(name, names[k]);
        if (!known)
            cx_json_list_put(&object, name, tool->members[i].value);
    }
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_live_input_digest(&value, out, NULL, err);
}

cx_status cx_gateway_tool_digest(const cx_json *tool, cx_arena *arena, cx_gateway_tool_digests *out,
                                 cx_err *err)
{
    static const char *const told[] = {"annotations", "description", "name", "title"};
    static const char *const schemas[] = {"inputSchema", "outputSchema"};
    static const char *const all[] = {"annotations", "description",  "inputSchema",
                                      "name",        "outputSchema", "title"};
    CX_TRY(digest_members(tool, told, CX_COUNT_OF(told), arena, &out->description, err));
    CX_TRY(digest_members(tool, schemas, CX_COUNT_OF(schemas), arena, &out->schema, err));
    CX_TRY(digest_members(tool, all, CX_COUNT_OF(all), arena, &out->all, err));
    out->has_rest = true;
    return digest_rest(tool, all, CX_COUNT_OF(all), arena, &out->rest, err);
}

bool cx_gateway_tool_same(const cx_gateway_tool_digests *a, const cx_gateway_tool_digests *b)
{
    return cx_digest_eq(&a->all, &b->all) &&
           (!a->has_rest || !b->has_rest || cx_digest_eq(&a->rest, &b->rest));
}

/* --- the table -------------------------------------------------------------------------------- */

void cx_gateway_tools_init(cx_gateway_tools *tools, const cx_alloc *alloc)
{
    memset(tools, 0, sizeof *tools);
    tools->alloc = alloc;
    cx_arena_init(&tools->arena, alloc, 0);
}

void cx_gateway_tools_done(cx_gateway_tools *tools)
{
    for (size_t i = 0; i < tools->count; i++)
        cx_schema_close(tools->items[i].schema);
    cx_alloc_free(tools->alloc, tools->items, tools->room * sizeof *tools->items);
    cx_arena_done(&tools->arena);
    memset(tools, 0, sizeof *tools);
}

cx_gateway_tool *cx_gateway_tools_find(cx_gateway_tools *tools, cx_str name)
{
    for (size_t i = 0; i < tools->count; i++)
        if (cx_str_eq(tools->items[i].name, name))
            return &tools->items[i];
    return NULL;
}

static cx_status keep(cx_gateway_tools *tools, cx_str text, cx_str *out, cx_err *err)
{
    if (text.size > CX_GATEWAY_TOOLS_BYTES_MAX - tools->bytes)
        return cx_fail(err, CX_E_LIMIT, "the server's lists of tools take more than 64 MiB");
    tools->bytes += text.size;
    *out = cx_arena_copy_str(&tools->arena, text);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status grow(cx_gateway_tools *tools, cx_err *err)
{
    if (tools->count < tools->room)
        return CX_SUCCESS;
    if (tools->count == CX_GATEWAY_TOOLS_MAX)
        return cx_fail(err, CX_E_LIMIT, "the server has more than %d tools", CX_GATEWAY_TOOLS_MAX);
    size_t room = tools->room == 0 ? 16 : 2 * tools->room;
    cx_gateway_tool *items = cx_alloc_new(tools->alloc, room * sizeof *items);
    if (items == NULL)
        return cx_fail_nomem(err);
    if (tools->count != 0)
        memcpy(items, tools->items, tools->count * sizeof *items);
    cx_alloc_free(tools->alloc, tools->items, tools->room * sizeof *items);
    tools->items = items;
    tools->room = room;
    return CX_SUCCESS;
}

static cx_status keep_properties(cx_gateway_tools *tools, cx_gateway_tool *entry,
                                 const cx_json *schema, cx_err *err)
{
    const cx_json *properties = cx_json_get_typed(schema, CX_STR("properties"), CX_JSON_OBJECT);
    entry->property_count = 0;
    if (properties == NULL || properties->count == 0)
        return CX_SUCCESS;
    entry->properties = CX_ARENA_ARRAY(&tools->arena, cx_str, properties->count);
    if (entry->properties == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < properties->count; i++)
        CX_TRY(keep(tools, cx_json_text(&properties->members[i].name),
                    &entry->properties[entry->property_count++], err));
    return CX_SUCCESS;
}

/* A schema that cannot be used is a property of the tool: nothing can be said of its arguments. */
static cx_status compile(cx_gateway_tools *tools, cx_gateway_tool *entry, const cx_json *tool,
                         cx_err *err)
{
    const cx_json *schema = CX_JSON_GET(tool, "inputSchema");
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    cx_err problem;
    options.strict = false;
    options.alloc = tools->alloc;
    cx_schema_close(entry->schema);
    entry->schema = NULL;
    entry->property_count = 0;
    if (schema == NULL)
        return keep(tools, CX_STR("the server gave it no inputSchema"), &entry->schema_problem,
                    err);
    CX_TRY(keep_properties(tools, entry, schema, err));
    cx_status status = cx_schema_compile(&options, schema, &entry->schema, &problem);
    entry->schema_problem = CX_STR("");
    if (!cx_failed(status))
        return CX_SUCCESS;
    entry->schema = NULL;
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    return keep(tools, cx_str_z(problem.message), &entry->schema_problem, err);
}

cx_status cx_gateway_tools_put(cx_gateway_tools *tools, cx_str name, const cx_json *tool,
                               const cx_gateway_tool_digests *digests, cx_gateway_tool **out,
                               cx_err *err)
{
    cx_gateway_tool *entry = cx_gateway_tools_find(tools, name);
    bool is_new = entry == NULL;
    if (is_new) {
        CX_TRY(grow(tools, err));
        entry = &tools->items[tools->count];
        memset(entry, 0, sizeof *entry);
        CX_TRY(keep(tools, name, &entry->name, err));
        tools->count++;
    }
    *out = entry;
    bool same = !is_new && cx_digest_eq(&entry->digests.all, &digests->all);
    entry->digests = *digests;
    return same ? CX_SUCCESS : compile(tools, entry, tool, err);
}

cx_status cx_gateway_tool_hide(cx_gateway_tools *tools, cx_gateway_tool *tool, const char *rule,
                               cx_str why, cx_err *err)
{
    bool same = tool->rule == rule && (rule == NULL || cx_str_eq(tool->why, why));
    tool->rule = rule;
    return same || rule == NULL ? CX_SUCCESS : keep(tools, why, &tool->why, err);
}

/* --- how often -------------------------------------------------------------------------------- */

cx_status cx_gateway_tool_rate(cx_gateway_tools *tools, cx_gateway_tool *tool, uint32_t per_minute,
                               uint64_t now_ns, bool count, bool *out_ok, cx_err *err)
{
    *out_ok = per_minute != 0;
    CX_ASSERT(per_minute <= CX_LIVE_RATE_MAX);
    if (per_minute == 0)
        return CX_SUCCESS;
    if (tool->calls_ns == NULL) {
        tool->calls_ns = CX_ARENA_ARRAY(&tools->arena, uint64_t, CX_LIVE_RATE_MAX);
        if (tool->calls_ns == NULL)
            return cx_fail_nomem(err);
    }
    if (tool->calls_count >= per_minute) {
        size_t at = (tool->calls_next + CX_LIVE_RATE_MAX - per_minute) % CX_LIVE_RATE_MAX;
        *out_ok = now_ns - tool->calls_ns[at] >= MINUTE_NS;
    }
    if (*out_ok && count) {
        tool->calls_ns[tool->calls_next] = now_ns;
        tool->calls_next = (tool->calls_next + 1) % CX_LIVE_RATE_MAX;
        tool->calls_count += tool->calls_count < CX_LIVE_RATE_MAX;
    }
    return CX_SUCCESS;
}

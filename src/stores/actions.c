/*
 * actions.c - names out of tool calls: tools, paths, hosts (docs/formats/actions.md §3).
 */
#include "stores/actions.h"

#include <stdio.h>

#include "base/api.h"

enum { READS = 1, WRITES = 2, ASKS = 4, NAMES_ALL = 8, DEPTH_MAX = 8 };

/* Tools whose arguments name every file and host that they touch, in lower case. */
static const struct {
    const char *name;
    unsigned access;
} known_tools[] = {
    {"read", READS},
    {"notebookread", READS},
    {"view_image", READS},
    {"read_file", READS},
    {"write", WRITES},
    {"edit", READS | WRITES},
    {"multiedit", READS | WRITES},
    {"notebookedit", READS | WRITES},
    {"write_file", WRITES},
    {"replace", READS | WRITES},
    {"apply_patch", READS | WRITES},
    {"webfetch", ASKS},
    {"todowrite", NAMES_ALL},
    {"update_plan", NAMES_ALL},
    {"exitplanmode", NAMES_ALL},
    {"approval_request", NAMES_ALL},
};

static const char *const path_members[] = {
    "file_path",   "filepath", "path",          "paths",     "notebook_path", "file",
    "filename",    "files",    "absolute_path", "old_path",  "new_path",      "source",
    "destination", "target",   "target_file",   "image_path"};
static const char *const url_members[] = {"url",  "urls",     "uri",   "uris",
                                          "link", "endpoint", "domain"};

void cx_actions_init(cx_actions *actions, const cx_alloc *alloc, uint64_t seed)
{
    memset(actions, 0, sizeof *actions);
    actions->alloc = alloc;
    cx_arena_init(&actions->arena, alloc, 0);
    cx_map_init(&actions->by_name, alloc, seed);
    cx_buf_init(&actions->name, alloc);
}

void cx_actions_done(cx_actions *actions)
{
    if (actions->alloc == NULL)
        return;
    cx_vec_done(&actions->items, actions->alloc);
    cx_map_done(&actions->by_name);
    cx_buf_done(&actions->name);
    cx_arena_done(&actions->arena);
}

/* --- items ------------------------------------------------------------------------------------ */

static cx_status add_place(cx_actions *a, cx_action_item *item, cx_str place, cx_err *err)
{
    item->count++;
    if (item->place_count == CX_ACTION_PLACES_MAX)
        return CX_SUCCESS;
    if (item->place_count != 0 && cx_str_eq(item->places[item->place_count - 1], place))
        return CX_SUCCESS;
    cx_str *places = (cx_str *)item->places;
    if (places == NULL)
        places = CX_ARENA_ARRAY(&a->arena, cx_str, CX_ACTION_PLACES_MAX);
    if (place.size > CX_ACTION_PLACE_MAX)
        place.size = CX_ACTION_PLACE_MAX;
    place.size = cx_utf8_valid_prefix(place);
    cx_str kept = places == NULL ? place : cx_arena_copy_str(&a->arena, place);
    if (places == NULL || kept.data == NULL)
        return cx_fail_nomem(err);
    places[item->place_count++] = kept;
    item->places = places;
    return CX_SUCCESS;
}

/* a->name is in normal form. */
static cx_status add_item(cx_actions *a, cx_str place, cx_err *err)
{
    uint64_t *at = cx_map_find(&a->by_name, cx_buf_str(&a->name));
    bool is_new;
    if (at != NULL)
        return add_place(a, &a->items.items[*at], place, err);
    if (a->items.count == CX_ACTION_ITEMS_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "TooManyActions", CX_NO_OFFSET,
                          "more than %zu different tools, files and hosts", CX_ACTION_ITEMS_MAX);
    cx_str kept = cx_arena_copy_str(&a->arena, cx_buf_str(&a->name));
    cx_action_item *item = kept.data == NULL ? NULL : cx_vec_push(&a->items, a->alloc);
    if (item == NULL)
        return cx_fail_nomem(err);
    *item = (cx_action_item){.name = kept};
    CX_TRY(cx_map_put(&a->by_name, kept, &at, &is_new, err));
    *at = a->items.count - 1;
    return add_place(a, item, place, err);
}

/* *out_named: it is a name; what is none is counted by the caller. */
static cx_status add_name(cx_actions *a, const char *kind, cx_str folder, cx_str value,
                          cx_str place, bool *out_named, cx_err *err)
{
    cx_buf raw;
    cx_err unused = {0};
    cx_buf_init(&raw, a->alloc);
    cx_buf_add_z(&raw, kind);
    if (folder.size != 0) {
        cx_buf_add_str(&raw, folder);
        cx_buf_add_byte(&raw, '/');
    }
    cx_buf_add_str(&raw, value);
    cx_buf_clear(&a->name);
    cx_status status = cx_buf_check(&raw, err);
    if (!cx_failed(status)) {
        status = cx_action_name_normal(cx_buf_str(&raw), &a->name, &unused);
        *out_named = !cx_failed(status);
        status = status.code == CX_E_NOMEM ? cx_fail_nomem(err)
                 : *out_named              ? add_item(a, place, err)
                                           : CX_SUCCESS;
    }
    cx_buf_done(&raw);
    return status;
}

/* --- paths and hosts -------------------------------------------------------------------------- */

static bool is_absolute(cx_str path)
{
    bool drive =
        path.size > 2 && path.data[1] == ':' && (path.data[2] == '\\' || path.data[2] == '/');
    return drive || cx_str_starts(path, CX_STR("file://")) ||
           (path.size != 0 && (path.data[0] == '/' || path.data[0] == '\\'));
}

/* A path that cannot be a name makes its call one that does not name everything. */
static cx_status add_path(cx_actions *a, unsigned access, cx_str path, cx_str folder, cx_str place,
                          bool *out_named, cx_err *err)
{
    static const struct {
        unsigned access;
        const char *kind;
    } kinds[] = {{READS, "read:"}, {WRITES, "write:"}};
    bool named = true;
    if (is_absolute(path))
        folder = (cx_str){NULL, 0};
    else if (folder.size == 0)
        a->relative++;
    for (size_t i = 0; i < CX_COUNT_OF(kinds) && named; i++)
        if ((access & kinds[i].access) != 0)
            CX_TRY(add_name(a, kinds[i].kind, folder, path, place, &named, err));
    *out_named = named;
    return CX_SUCCESS;
}

cx_status cx_actions_add_path(cx_actions *a, bool written, cx_str path, cx_str folder, cx_str place,
                              cx_err *err)
{
    bool named = false;
    CX_TRY(add_path(a, written ? WRITES : READS, path, folder, place, &named, err));
    a->opaque += !named;
    return CX_SUCCESS;
}

static bool ends_authority(char c)
{
    return c == '/' || c == '?' || c == '#' || c == '\\' || c == '"' || c == '\'' || c == '`' ||
           c == '<' || c == '>' || c == '(' || c == ')' || c == '{' || c == '}' || c == '|' ||
           c == ';' || c == ',' || c == '&' || c == '$' || (uint8_t)c <= ' ';
}

/* The authority of a URL at the beginning of the text, without user and port. */
static cx_str host_of(cx_str text)
{
    size_t end = 0, start = 0;
    while (end < text.size && !ends_authority(text.data[end]))
        end++;
    for (size_t i = 0; i < end; i++)
        if (text.data[i] == '@')
            start = i + 1;
    cx_str host = cx_str_from(text.data + start, end - start);
    const char *bracket =
        host.size != 0 && host.data[0] == '[' ? memchr(host.data, ']', host.size) : NULL;
    if (bracket != NULL)
        return cx_str_from(host.data + 1, (size_t)(bracket - host.data) - 1);
    const char *colon = host.size == 0 ? NULL : memchr(host.data, ':', host.size);
    return colon == NULL ? host : cx_str_from(host.data, (size_t)(colon - host.data));
}

static size_t find_scheme_end(cx_str text, size_t from)
{
    const char *at =
        from >= text.size ? NULL : memmem(text.data + from, text.size - from, "://", 3);
    return at == NULL ? SIZE_MAX : (size_t)(at - text.data) + 3;
}

/* Every scheme://host in a text; *out_found is not cleared. */
static cx_status add_hosts(cx_actions *a, cx_str text, cx_str place, bool *out_found, cx_err *err)
{
    for (size_t at = find_scheme_end(text, 0); at != SIZE_MAX; at = find_scheme_end(text, at)) {
        bool named = false;
        cx_str host = host_of(cx_str_from(text.data + at, text.size - at));
        bool is_file = at >= 7 && memcmp(text.data + at - 7, "file", 4) == 0;
        if (host.size != 0 && !is_file)
            CX_TRY(add_name(a, "host:", (cx_str){NULL, 0}, host, place, &named, err));
        *out_found = *out_found || named;
    }
    return CX_SUCCESS;
}

static cx_status add_url(cx_actions *a, cx_str url, cx_str place, bool *out_found, cx_err *err)
{
    bool named = false;
    if (find_scheme_end(url, 0) != SIZE_MAX)
        return add_hosts(a, url, place, out_found, err);
    cx_str host = host_of(url);
    if (host.size != 0)
        CX_TRY(add_name(a, "host:", (cx_str){NULL, 0}, host, place, &named, err));
    *out_found = *out_found || named;
    return CX_SUCCESS;
}

cx_status cx_actions_add_url(cx_actions *a, cx_str url, cx_str place, cx_err *err)
{
    bool found = false;
    return add_url(a, url, place, &found, err);
}

/* --- arguments -------------------------------------------------------------------------------- */

/* A call on its way. */
typedef struct calling {
    cx_actions *a;
    const cx_action_call *call;
    cx_str folder;
    unsigned access; /* of its paths */
    bool path_found, host_found, path_unnamed;
    cx_err *err;
} calling;

static bool is_member(cx_str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(names[i]);
        bool same = name.size == size;
        for (size_t j = 0; j < size && same; j++) {
            char c = name.data[j];
            same = (c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c) == names[i][j];
        }
        if (same)
            return true;
    }
    return false;
}

static cx_status add_call_path(calling *c, unsigned access, cx_str path)
{
    bool named = false;
    CX_TRY(add_path(c->a, access, path, c->folder, c->call->place, &named, c->err));
    c->path_found = true;
    c->path_unnamed = c->path_unnamed || !named;
    return CX_SUCCESS;
}

/* The lines of a patch that name files. */
static cx_status add_patch(calling *c, cx_str text)
{
    static const char *const heads[] = {
        "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "};
    for (size_t at = 0; at < text.size;) {
        const char *end = memchr(text.data + at, '\n', text.size - at);
        size_t size = end == NULL ? text.size - at : (size_t)(end - text.data) - at;
        cx_str line = cx_str_from(text.data + at, size);
        at += size + 1;
        if (line.size != 0 && line.data[line.size - 1] == '\r')
            line.size--;
        for (size_t i = 0; i < CX_COUNT_OF(heads); i++) {
            size_t head = strlen(heads[i]);
            if (line.size > head && memcmp(line.data, heads[i], head) == 0)
                CX_TRY(add_call_path(c, READS | WRITES,
                                     cx_str_from(line.data + head, line.size - head)));
        }
    }
    return CX_SUCCESS;
}

/* A text that is no path: what a shell runs, a patch, a question. Contents of files that are
 * written name no host. */
static cx_status add_text(calling *c, cx_str text)
{
    CX_TRY(add_patch(c, text));
    if ((c->access & WRITES) != 0 && (c->access & NAMES_ALL) != 0)
        return CX_SUCCESS;
    return add_hosts(c->a, text, c->call->place, &c->host_found, c->err);
}

static cx_status add_value(calling *c, cx_str name, const cx_json *value, unsigned depth)
{
    if (depth == DEPTH_MAX) {
        c->path_unnamed = true;
        return CX_SUCCESS;
    }
    if (value->type == CX_JSON_ARRAY)
        for (uint32_t i = 0; i < value->count; i++)
            CX_TRY(add_value(c, name, &value->items[i], depth + 1));
    if (value->type == CX_JSON_OBJECT)
        for (uint32_t i = 0; i < value->count; i++)
            CX_TRY(add_value(c, cx_json_text(&value->members[i].name), &value->members[i].value,
                             depth + 1));
    if (value->type != CX_JSON_STRING)
        return CX_SUCCESS;
    cx_str text = cx_json_text(value);
    bool is_path = is_member(name, path_members, CX_COUNT_OF(path_members));
    bool has_scheme = find_scheme_end(text, 0) != SIZE_MAX;
    if (is_path && (!has_scheme || cx_str_starts(text, CX_STR("file://"))))
        return add_call_path(c, c->access & (READS | WRITES), text);
    if (is_member(name, url_members, CX_COUNT_OF(url_members)))
        return add_url(c->a, text, c->call->place, &c->host_found, c->err);
    return add_text(c, text);
}

/* Strings of one member in JSON that was cut and cannot be parsed. */
static cx_status add_cut_member(calling *c, cx_json_parser *parser, cx_str text, const char *name,
                                bool is_path)
{
    char head[32];
    int size = snprintf(head, sizeof head, "\"%s\":\"", name);
    CX_ASSERT(size > 0 && (size_t)size < sizeof head);
    for (size_t at = 0; at < text.size;) {
        cx_json value;
        cx_arena scratch;
        size_t used;
        const char *found = memmem(text.data + at, text.size - at, head, (size_t)size);
        if (found == NULL)
            return CX_SUCCESS;
        at = (size_t)(found - text.data) + (size_t)size;
        cx_arena_init(&scratch, c->a->alloc, 0);
        cx_status status =
            cx_json_parse_prefix(parser, cx_str_from(text.data + at - 1, text.size - at + 1), true,
                                 &scratch, &value, &used, NULL);
        if (status.code == CX_E_NOMEM)
            status = cx_fail_nomem(c->err);
        else if (cx_failed(status))
            status = CX_SUCCESS; /* it is the value that was cut */
        else if (is_path)
            status = add_call_path(c, c->access & (READS | WRITES), cx_json_text(&value));
        else
            status = add_url(c->a, cx_json_text(&value), c->call->place, &c->host_found, c->err);
        cx_arena_done(&scratch);
        CX_TRY(status);
    }
    return CX_SUCCESS;
}

static cx_status add_cut_args(calling *c, cx_str text)
{
    cx_json_parser parser;
    cx_status status = CX_SUCCESS;
    cx_json_parser_init(&parser, c->a->alloc, NULL);
    for (size_t i = 0; i < CX_COUNT_OF(path_members) && !cx_failed(status); i++)
        status = add_cut_member(c, &parser, text, path_members[i], true);
    for (size_t i = 0; i < CX_COUNT_OF(url_members) && !cx_failed(status); i++)
        status = add_cut_member(c, &parser, text, url_members[i], false);
    cx_json_parser_done(&parser);
    return cx_failed(status) ? status : add_text(c, text);
}

/* Arguments that are text may be JSON: Codex writes them so. */
static cx_status add_args(calling *c, const cx_json *args)
{
    cx_json decoded;
    cx_arena scratch;
    if (args == NULL)
        return CX_SUCCESS;
    if (args->type != CX_JSON_STRING)
        return add_value(c, CX_STR(""), args, 0);
    cx_str text = cx_json_text(args);
    cx_arena_init(&scratch, c->a->alloc, 0);
    cx_status status = cx_json_parse_text(text, &scratch, &decoded, NULL);
    if (status.code == CX_E_NOMEM)
        status = cx_fail_nomem(c->err);
    else if (cx_failed(status) || decoded.type == CX_JSON_STRING)
        status = c->call->cut ? add_cut_args(c, text) : add_text(c, text);
    else {
        cx_str folder =
            decoded.type == CX_JSON_OBJECT ? CX_JSON_GET_STR(&decoded, "workdir") : CX_STR("");
        if (folder.size != 0 && is_absolute(folder))
            c->folder = folder;
        status = add_value(c, CX_STR(""), &decoded, 0);
    }
    cx_arena_done(&scratch);
    return status;
}

/* What a tool of that name (in lower case) may do; an unknown one may do anything. */
static unsigned access_of(cx_str tool)
{
    for (size_t i = 0; i < CX_COUNT_OF(known_tools); i++)
        if (cx_str_is(tool, known_tools[i].name))
            return known_tools[i].access | NAMES_ALL;
    return READS | WRITES;
}

static bool names_everything(const calling *c)
{
    if ((c->access & NAMES_ALL) == 0 || c->call->cut || c->path_unnamed || c->call->args == NULL)
        return false;
    if ((c->access & (READS | WRITES)) != 0 && !c->path_found)
        return false;
    return (c->access & ASKS) == 0 || c->host_found;
}

cx_status cx_actions_add_call(cx_actions *a, const cx_action_call *call, cx_err *err)
{
    calling c = {.a = a, .call = call, .folder = call->folder, .err = err};
    bool named = false;
    a->calls++;
    CX_TRY(add_name(a, "tool:", (cx_str){NULL, 0}, call->tool, call->place, &named, err));
    a->unread += !named; /* which tool it was is not known */
    c.access = named ? access_of(cx_str_from(a->name.data == NULL ? "" : (char *)a->name.data + 5,
                                             a->name.size - 5))
                     : (unsigned)(READS | WRITES);
    CX_TRY(add_args(&c, call->args));
    if (call->command.size != 0)
        CX_TRY(add_text(&c, call->command));
    a->opaque += !names_everything(&c);
    return CX_SUCCESS;
}

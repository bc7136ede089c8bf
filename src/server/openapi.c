/*
 * openapi.c - the OpenAPI 3.1 document, made from the table of routes.
 */
#include "json/api.h"
#include "server/openapi_type.h"
#include "server/param.h"
#include "server/route.h"

static void str(cx_buf *out, const char *text)
{
    cx_json_write_str(out, cx_str_z(text), CX_JSON_PY_COMPACT);
}

static void add_query_param(cx_buf *out, const cx_route_param *param, const char *name)
{
    cx_buf_add_z(out, "{\"description\":");
    str(out, param->help);
    cx_buf_add_z(out, ",\"in\":\"query\",\"name\":");
    str(out, name);
    cx_buf_printf(out, ",\"required\":%s,\"schema\":", param->required ? "true" : "false");
    cx_buf_add_byte(out, '{');
    cx_param_schema(param, out);
    cx_buf_add_z(out, "}}");
}

/* {name} and {name...} of the path, in order. */
static bool add_path_params(cx_buf *out, const char *path)
{
    bool any = false;
    for (const char *open; (open = strchr(path, '{')) != NULL; any = true) {
        const char *close = strchr(open, '}');
        size_t size = (size_t)(close - open) - 1;
        if (close[-1] == '.')
            size -= 3;
        cx_buf_add_z(out, any ? ",{\"in\":\"path\",\"name\":\"" : "{\"in\":\"path\",\"name\":\"");
        cx_buf_add(out, open + 1, size);
        cx_buf_add_z(out, "\",\"required\":true,\"schema\":{\"type\":\"string\"}}");
        path = close;
    }
    return any;
}

static void add_params(cx_buf *out, const cx_route *route)
{
    cx_buf_add_z(out, "\"parameters\":[");
    bool any = add_path_params(out, route->path);
    for (size_t i = 0; i < route->param_count; i++) {
        if (any)
            cx_buf_add_byte(out, ',');
        any = true;
        add_query_param(out, &route->params[i], route->params[i].name);
        if (route->params[i].also != NULL) {
            cx_buf_add_byte(out, ',');
            add_query_param(out, &route->params[i], route->params[i].also);
        }
    }
    cx_buf_add_z(out, "],");
}

/* {"MEDIA":{"schema":{..}}}; `type` NULL: without a schema. */
static void add_content(cx_buf *out, const char *media, const char *type)
{
    cx_buf_add_byte(out, '{');
    str(out, media);
    cx_buf_add_z(out, ":{");
    if (type != NULL) {
        cx_buf_add_z(out, "\"schema\":");
        cx_api_type_schema(type, out);
    }
    cx_buf_add_z(out, "}}");
}

static void add_code(cx_buf *out, const char *code, const cx_route *route)
{
    bool is_empty = strncmp(code, "204", 3) == 0;
    bool is_good = code[0] == '2' && !is_empty, is_problem = code[0] >= '4';
    cx_buf_add_byte(out, '"');
    cx_buf_add(out, code, 3);
    cx_buf_add_z(out, "\":{");
    if (is_good || is_problem) {
        cx_buf_add_z(out, "\"content\":");
        add_content(out, is_good ? route->answers : "application/problem+json",
                    is_good ? route->response_type : "Problem");
        cx_buf_add_byte(out, ',');
    }
    cx_buf_printf(out, "\"description\":\"%s\"}",
                  is_good      ? "answered"
                  : is_empty   ? "nothing to say"
                  : is_problem ? "a problem"
                               : "not modified");
}

static void add_answers(cx_buf *out, const cx_route *route)
{
    static const char *const guarded[] = {"401", "403", "422"};
    bool any = false;
    cx_buf_add_z(out, "\"responses\":{");
    for (const char *code = route->codes; *code != 0; code += code[3] == ' ' ? 4 : 3, any = true) {
        if (any)
            cx_buf_add_byte(out, ',');
        add_code(out, code, route);
    }
    for (size_t i = 0; i < CX_COUNT_OF(guarded) && !route->open; i++) {
        cx_buf_add_byte(out, ',');
        add_code(out, guarded[i], route);
    }
    if (route->has_body) {
        cx_buf_add_byte(out, ',');
        add_code(out, "415", route);
    }
    /* What any request may get: another method or host, a full server, a failure. */
    cx_buf_add_z(out, ",\"default\":{\"content\":");
    add_content(out, "application/problem+json", "Problem");
    cx_buf_add_z(out, ",\"description\":\"another problem\"}}");
}

static void add_scopes(cx_buf *out, const cx_route *route)
{
    if (route->open) {
        cx_buf_add_z(out, ",\"security\":[]");
        return;
    }
    cx_buf_add_z(out, ",\"security\":[{\"bearer\":[]}],\"x-cortex-scopes\":[");
    bool any = false;
    for (unsigned scope = 1; scope <= CX_SCOPES_ALL; scope <<= 1) {
        if ((route->scopes & scope) == 0)
            continue;
        if (any)
            cx_buf_add_byte(out, ',');
        any = true;
        str(out, cx_scope_name(scope).data);
    }
    cx_buf_add_byte(out, ']');
    if (route->full_level)
        cx_buf_add_z(out, ",\"x-cortex-level\":\"full_traces\"");
}

static void add_operation(cx_buf *out, const cx_route *route)
{
    cx_buf_add_byte(out, '"');
    for (const char *c = route->method; *c != 0; c++)
        cx_buf_add_byte(out, (uint8_t)(*c | 0x20));
    cx_buf_add_z(out, "\":{");
    add_params(out, route);
    if (route->has_body) {
        cx_buf_add_z(out, "\"requestBody\":{\"content\":");
        add_content(out, "application/json", route->request_type);
        cx_buf_printf(out, ",\"required\":%s},", route->body_optional ? "false" : "true");
    }
    add_answers(out, route);
    add_scopes(out, route);
    cx_buf_add_z(out, ",\"summary\":");
    str(out, route->summary);
    cx_buf_add_byte(out, '}');
}

/* Patterns become templates: {name...} is {name}; the alias has the other name. */
static void add_path(cx_buf *out, const char *path, bool alias)
{
    static const char covenant[] = "/api/v1/covenant";
    cx_buf_add_byte(out, '"');
    if (alias) {
        cx_buf_add_z(out, "/api/v1/accord");
        path += sizeof covenant - 1;
    }
    for (; *path != 0; path++)
        if (*path != '.' || path[1] != '.' || path[2] != '.')
            cx_buf_add_byte(out, (uint8_t)*path);
        else
            path += 2;
    cx_buf_add_byte(out, '"');
}

/* All routes of the first one's path. */
static void add_item(cx_buf *out, size_t first, bool alias)
{
    bool any = false;
    add_path(out, cx_routes[first].path, alias);
    cx_buf_add_z(out, ":{");
    for (size_t i = first; i < cx_route_count; i++) {
        if (strcmp(cx_routes[i].path, cx_routes[first].path) != 0)
            continue;
        if (any)
            cx_buf_add_byte(out, ',');
        any = true;
        add_operation(out, &cx_routes[i]);
    }
    cx_buf_add_byte(out, '}');
}

static bool is_first(size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(cx_routes[i].path, cx_routes[at].path) == 0)
            return false;
    return true;
}

static void add_types(cx_buf *out)
{
    for (size_t i = 0; i < cx_api_type_count; i++) {
        cx_buf_add_z(out, i > 0 ? ",\"" : "\"");
        cx_buf_add_z(out, cx_api_types[i].name);
        cx_buf_add_z(out, "\":");
        cx_api_type_schema(cx_api_types[i].notation, out);
    }
}

cx_status cx_route_openapi(cx_buf *out, cx_err *err)
{
    bool any = false;
    cx_buf_printf(out,
                  "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Cortex\",\"version\":\"%s\"},"
                  "\"components\":{\"securitySchemes\":{\"bearer\":{\"type\":\"http\","
                  "\"scheme\":\"bearer\"}},\"schemas\":{",
                  cx_version());
    add_types(out);
    cx_buf_add_z(out, "}},\"servers\":[{\"url\":\"/\",\"description\":"
                      "\"the server that gave this document\"}],\"paths\":{");
    for (size_t i = 0; i < cx_route_count; i++) {
        if (cx_routes[i].otlp || !is_first(i))
            continue;
        for (int alias = 0; alias < 2; alias++) {
            if (alias == 1 &&
                !cx_str_starts(cx_str_z(cx_routes[i].path), CX_STR("/api/v1/covenant/")))
                continue;
            if (any)
                cx_buf_add_byte(out, ',');
            any = true;
            add_item(out, i, alias == 1);
        }
    }
    cx_buf_add_z(out, "}}\n");
    return cx_buf_check(out, err);
}

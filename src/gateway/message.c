/*
 * message.c - one JSON-RPC message of MCP.
 */
#include "gateway/message.h"

#include <string.h>

#include "gateway/frame.h"

#define ID_DIGITS_MAX 20

cx_status cx_gateway_id_read(const cx_json *value, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_buf text;
    bool plain = value->type == CX_JSON_STRING ||
                 (value->type == CX_JSON_INT && value->count <= ID_DIGITS_MAX);
    if (!plain)
        return cx_fail(err, CX_E_FORMAT, "/id: found %s, expected a text or an integer",
                       cx_json_type_name(value));
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_json_write(&text, value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status) && text.size > CX_GATEWAY_ID_MAX)
        status = cx_fail(err, CX_E_FORMAT, "/id: found one of %zu bytes, expected at most %d",
                         text.size, CX_GATEWAY_ID_MAX);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

/* --- names that differ in case ---------------------------------------------------------------- */

/* The next character as Go's decoder folds it: besides the letters of ASCII, two that Unicode folds
 * to them. */
static char fold_next(cx_str text, size_t *at)
{
    char c = text.data[*at];
    size_t left = text.size - *at;
    if (left >= 2 && memcmp(text.data + *at, "\xc5\xbf", 2) == 0) { /* U+017F, long s */
        *at += 2;
        return 's';
    }
    if (left >= 3 && memcmp(text.data + *at, "\xe2\x84\xaa", 3) == 0) { /* U+212A, Kelvin */
        *at += 3;
        return 'k';
    }
    *at += 1;
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool cx_gateway_is_mistaken(cx_str name, cx_str known)
{
    size_t a = 0, b = 0;
    if (cx_str_eq(name, known))
        return false;
    while (a < name.size && b < known.size)
        if (fold_next(name, &a) != fold_next(known, &b))
            return false;
    return a == name.size && b == known.size;
}

const cx_json *cx_gateway_mistaken_member(const cx_json *object, const char *const *known,
                                          size_t known_count)
{
    if (object == NULL || object->type != CX_JSON_OBJECT)
        return NULL;
    for (uint32_t i = 0; i < object->count; i++)
        for (size_t k = 0; k < known_count; k++)
            if (cx_gateway_is_mistaken(cx_json_text(&object->members[i].name), cx_str_z(known[k])))
                return &object->members[i].name;
    return NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status read_answer(const cx_json *value, const cx_json *id, cx_arena *arena,
                             cx_gateway_message *out, cx_err *err)
{
    out->kind = CX_GATEWAY_ANSWER;
    out->result = CX_JSON_GET(value, "result");
    out->error = CX_JSON_GET(value, "error");
    if ((out->result == NULL) == (out->error == NULL))
        return cx_fail(err, CX_E_FORMAT,
                       "found neither a method nor exactly one of result and error");
    if (id != NULL && id->type == CX_JSON_NULL && out->error != NULL)
        return CX_SUCCESS;
    if (id == NULL)
        return cx_fail(err, CX_E_FORMAT, "/id: found none, expected the id of the request");
    return cx_gateway_id_read(id, arena, &out->id, err);
}

cx_status cx_gateway_message_read(const cx_json *value, cx_arena *arena, cx_gateway_message *out,
                                  cx_err *err)
{
    static const char *const known[] = {"jsonrpc", "id", "method", "params", "result", "error"};
    memset(out, 0, sizeof *out);
    if (value->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "found %s, expected an object", cx_json_type_name(value));
    if (!cx_str_is(CX_JSON_GET_STR(value, "jsonrpc"), "2.0"))
        return cx_fail(err, CX_E_FORMAT, "/jsonrpc: expected \"2.0\"");
    const cx_json *mistaken = cx_gateway_mistaken_member(value, known, CX_COUNT_OF(known));
    if (mistaken != NULL)
        return cx_fail(err, CX_E_FORMAT,
                       "/%.*s: expected no member that differs from one of JSON-RPC in case only",
                       (int)mistaken->count, mistaken->text);
    const cx_json *method = CX_JSON_GET(value, "method"), *id = CX_JSON_GET(value, "id");
    if (method == NULL)
        return read_answer(value, id, arena, out, err);
    if (method->type != CX_JSON_STRING || method->count == 0)
        return cx_fail(err, CX_E_FORMAT, "/method: expected a text");
    if (CX_JSON_GET(value, "result") != NULL || CX_JSON_GET(value, "error") != NULL)
        return cx_fail(err, CX_E_FORMAT, "found a method together with a result or an error");
    out->method = cx_json_text(method);
    out->params = CX_JSON_GET(value, "params");
    out->kind = id == NULL ? CX_GATEWAY_NOTIFICATION : CX_GATEWAY_REQUEST;
    return id == NULL ? CX_SUCCESS : cx_gateway_id_read(id, arena, &out->id, err);
}

/* --- answers ---------------------------------------------------------------------------------- */

static void begin_answer(cx_buf *out, cx_str id)
{
    cx_buf_add_z(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    cx_buf_add_str(out, id.size == 0 ? CX_STR("null") : id);
}

void cx_gateway_add_error(cx_buf *out, cx_str id, int code, cx_str message)
{
    begin_answer(out, id);
    cx_buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
    cx_json_write_str(out, message, CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, "}}\n");
}

void cx_gateway_add_refusal(cx_buf *out, cx_str id, bool stateless, cx_str text)
{
    begin_answer(out, id);
    cx_buf_add_z(out, ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
    cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, "}],\"isError\":true");
    if (stateless)
        cx_buf_add_z(out, ",\"resultType\":\"complete\"");
    cx_buf_add_z(out, "}}\n");
}

/* --- servers ---------------------------------------------------------------------------------- */

cx_status cx_gateway_check_name(cx_str name, cx_err *err)
{
    bool good = name.size != 0 && name.size <= CX_GATEWAY_NAME_MAX;
    for (size_t i = 0; i < name.size && good; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        good = letter || (i != 0 && (c == '.' || c == '-' || c == '_'));
        if (c == '_' && (i + 1 == name.size || name.data[i + 1] == '_'))
            good = false;
    }
    if (good)
        return CX_SUCCESS;
    size_t shown = name.size < CX_GATEWAY_NAME_MAX ? name.size : CX_GATEWAY_NAME_MAX;
    return cx_fail(
        err, CX_E_USAGE,
        "found \"%.*s\", expected a server's name: 1 to 64 letters, digits, '.', '_' and "
        "'-', a letter or digit first, no \"__\", and no '_' at the end",
        (int)shown, shown == 0 ? "" : name.data);
}

/*
 * schema_report.c - what a check says: errors with their places, and that it had to stop.
 */
#include <stdarg.h>
#include <stdio.h>

#include "schema/schema_checker.h"

/* --- stopping and reporting ------------------------------------------------------------------- */

bool schema_stop(schema_checker *c, cx_status status)
{
    if (!c->stop) {
        c->stop = true;
        c->status = status;
    }
    return false;
}

bool schema_out_of_memory(schema_checker *c)
{
    return schema_stop(c, cx_fail_nomem(c->err));
}

bool schema_stop_steps(schema_checker *c)
{
    return schema_stop(c, cx_fail_at(c->err, CX_E_LIMIT, "SchemaSteps", CX_NO_OFFSET,
                                     "checking against the schema takes more than %llu steps",
                                     (unsigned long long)c->options->steps_max));
}

static void add_place(cx_buf *out, const schema_place *at)
{
    /* Turned around through an array of pointers: no deeper than the instance. */
    size_t count = 0;
    for (const schema_place *p = at; p->parent != NULL; p = p->parent)
        count++;
    for (size_t i = count; i > 0; i--) {
        const schema_place *p = at;
        for (size_t skip = 1; skip < i; skip++)
            p = p->parent;
        if (p->name.data != NULL) {
            cx_json_pointer_add(out, p->name);
        } else {
            cx_buf_add_byte(out, '/');
            cx_buf_add_u64(out, p->index);
        }
    }
}

static cx_str copy_text(schema_checker *c, const cx_buf *text)
{
    cx_str kept = {NULL, 0};
    if (cx_failed(cx_buf_check(text, c->err)))
        (void)schema_out_of_memory(c);
    else if ((kept = cx_arena_copy_str(c->arena, cx_buf_str(text))).data == NULL)
        (void)schema_out_of_memory(c);
    return kept;
}

bool schema_report(schema_checker *c, const schema_node *node, const char *keyword,
                   const schema_place *at, const char *format, ...)
{
    if (!schema_wants_errors(c) || c->stop)
        return false;
    if (c->errors.count >= c->options->errors_max) {
        c->cut = true;
        return false;
    }
    cx_schema_error error = {.keyword = keyword};
    cx_buf text;
    cx_buf_init(&text, c->alloc);
    add_place(&text, at);
    error.instance = copy_text(c, &text);
    cx_buf_clear(&text);
    schema_node_location(node, &text);
    if (!node->never)
        cx_json_pointer_add(&text, cx_str_z(keyword));
    error.schema = copy_text(c, &text);
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    cx_buf_clear(&text);
    cx_buf_add_z(&text, message);
    error.message = copy_text(c, &text);
    cx_buf_done(&text);
    cx_schema_error *slot = c->stop ? NULL : cx_vec_push(&c->errors, c->alloc);
    if (slot == NULL)
        return schema_out_of_memory(c);
    *slot = error;
    return false;
}

schema_shown schema_show(const cx_json *value)
{
    schema_shown out;
    cx_str text = {NULL, 0};
    switch ((cx_json_type)value->type) {
    case CX_JSON_NULL: text = CX_STR("null"); break;
    case CX_JSON_FALSE: text = CX_STR("false"); break;
    case CX_JSON_TRUE: text = CX_STR("true"); break;
    case CX_JSON_ARRAY:
        (void)snprintf(out.text, sizeof out.text, "an array of %u", (unsigned)value->count);
        return out;
    case CX_JSON_OBJECT:
        (void)snprintf(out.text, sizeof out.text, "an object with %u members",
                       (unsigned)value->count);
        return out;
    default: text = cx_json_text(value); break;
    }
    bool is_string = value->type == CX_JSON_STRING, is_cut = text.size > SCHEMA_SHOWN_MAX;
    size_t size = is_cut ? SCHEMA_SHOWN_MAX : text.size;
    while (is_cut && size > 0 && ((uint8_t)text.data[size] & 0xC0) == 0x80)
        size--;
    size_t used = 0;
    if (is_string)
        out.text[used++] = '"';
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        out.text[used++] = byte < 0x20 || byte == 0x7F || byte == '"' ? '?' : (char)byte;
    }
    if (is_cut) {
        memcpy(out.text + used, "..", 2);
        used += 2;
    }
    if (is_string)
        out.text[used++] = '"';
    out.text[used] = '\0';
    return out;
}

/*
 * reply.c - helpers of the files that write answers.
 */
#include "recorder/answer/reply.h"

#include "crypto/api.h"

void cx_reply_begin(cx_reply *a, const cx_alloc *alloc, cx_err *err)
{
    cx_arena_init(&a->arena, alloc, 0);
    a->err = err;
}

cx_status cx_reply_end(cx_reply *a, cx_status status, const cx_json *value, cx_buf *out)
{
    if (!cx_failed(status))
        status = cx_json_write(out, value, CX_JSON_PY_COMPACT, a->err);
    cx_arena_done(&a->arena);
    if (cx_failed(status))
        return status;
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, a->err);
}

void cx_reply_add(cx_json_list *list, const char *name, cx_json value)
{
    cx_json_list_put(list, cx_str_z(name), value);
}

void cx_reply_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_reply_add(list, name, text.data == NULL ? cx_json_make_null() : cx_json_make_str(text));
}

void cx_reply_z(cx_json_list *list, const char *name, const char *text)
{
    cx_reply_add(list, name, text[0] == 0 ? cx_json_make_null() : cx_json_make_str(cx_str_z(text)));
}

void cx_reply_uint(cx_json_list *list, const char *name, uint64_t value)
{
    cx_reply_add(list, name, cx_json_make_uint(list->arena, value));
}

void cx_reply_time(cx_json_list *list, const char *name, int64_t ns)
{
    char text[CX_TRACE_TIME_SIZE];
    if (ns == CX_TIME_NONE) {
        cx_reply_add(list, name, cx_json_make_null());
        return;
    }
    cx_trace_time_write(ns, text);
    cx_str copy = cx_arena_copy_str(list->arena, cx_str_z(text));
    list->failed |= copy.data == NULL;
    cx_reply_text(list, name, copy);
}

void cx_reply_hex(cx_json_list *list, const char *name, const void *bytes, size_t size)
{
    char *hex = cx_arena_push(list->arena, 2 * size + 1, 1);
    list->failed |= hex == NULL;
    if (hex == NULL)
        return;
    cx_hex_encode(cx_bytes_from(bytes, size), hex);
    cx_reply_text(list, name, cx_str_from(hex, 2 * size));
}

cx_status cx_reply_end_object(cx_json_list *outer, const char *name, cx_json_list *inner,
                              cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(inner, &value, err));
    cx_reply_add(outer, name, value);
    return CX_SUCCESS;
}

const cx_cell *cx_reply_cell(const cx_found_row *row, const char *column)
{
    int at = cx_trace_column(column);
    CX_ASSERT(at >= 0);
    return &row->cells[at];
}

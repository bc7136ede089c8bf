/*
 * put.c - members of an object that is being built.
 */
#include "json/put.h"

#include <math.h>

#include "base/api.h"

/* --- text that is not UTF-8 ------------------------------------------------------------------- */

static cx_str copy_buffer(cx_buf *buf, cx_arena *arena)
{
    cx_str copy = buf->failed ? (cx_str){NULL, 0} : cx_arena_copy_str(arena, cx_buf_str(buf));
    cx_buf_done(buf);
    return copy;
}

cx_str cx_json_shown(cx_str text, cx_arena *arena)
{
    cx_buf shown;
    if (cx_utf8_valid(text))
        return text;
    cx_buf_init(&shown, arena->alloc);
    cx_shown_add(&shown, text);
    return copy_buffer(&shown, arena);
}

/* Copies valid runs, and calls `add_byte` for each byte that is in none. */
static cx_str copy_replacing(cx_str text, cx_arena *arena,
                             void (*add_byte)(cx_buf *out, uint8_t byte))
{
    cx_buf out;
    if (cx_utf8_valid(text))
        return text;
    cx_buf_init(&out, arena->alloc);
    while (text.size != 0) {
        size_t good = cx_utf8_valid_prefix(text);
        cx_buf_add(&out, text.data, good);
        if (good < text.size)
            add_byte(&out, (uint8_t)text.data[good++]);
        text = cx_str_from(text.data + good, text.size - good);
    }
    return copy_buffer(&out, arena);
}

static void add_octal(cx_buf *out, uint8_t byte)
{
    cx_buf_printf(out, "\\%03o", (unsigned)byte);
}

static void add_replacement(cx_buf *out, uint8_t byte)
{
    (void)byte;
    cx_buf_add(out, "\xef\xbf\xbd", 3);
}

cx_str cx_json_quoted(cx_str text, cx_arena *arena)
{
    return copy_replacing(text, arena, add_octal);
}

cx_str cx_json_utf8(cx_str text, cx_arena *arena)
{
    return copy_replacing(text, arena, add_replacement);
}

typedef cx_str text_form(cx_str text, cx_arena *arena);

static cx_json make_text(cx_json_list *list, cx_str text, text_form *form)
{
    if (text.data == NULL)
        return cx_json_make_str(CX_STR(""));
    text = form(text, list->arena);
    list->failed = list->failed || text.data == NULL;
    return cx_json_make_str(text);
}

static void put_texts(cx_json_list *list, const char *name, const cx_str *texts, size_t count,
                      text_form *form)
{
    cx_json_list inner = cx_json_list_begin(list->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&inner, make_text(&inner, texts[i], form));
    cx_json_put_array(list, name, &inner);
}

/* --- members ---------------------------------------------------------------------------------- */

void cx_json_put(cx_json_list *list, const char *name, cx_json value)
{
    cx_json_list_put(list, cx_str_z(name), value);
}

void cx_json_put_str(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_put(list, name, make_text(list, text, cx_json_shown));
}

void cx_json_put_quoted(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_put(list, name, make_text(list, text, cx_json_quoted));
}

void cx_json_put_utf8(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_put(list, name, make_text(list, text, cx_json_utf8));
}

void cx_json_put_z(cx_json_list *list, const char *name, const char *text)
{
    cx_json_put(list, name, cx_json_make_str(cx_str_z(text)));
}

void cx_json_put_maybe(cx_json_list *list, const char *name, cx_str text)
{
    if (text.size == 0)
        cx_json_put_null(list, name);
    else
        cx_json_put_str(list, name, text);
}

void cx_json_put_uint(cx_json_list *list, const char *name, uint64_t value)
{
    cx_json_put(list, name, cx_json_make_uint(list->arena, value));
}

void cx_json_put_int(cx_json_list *list, const char *name, int64_t value)
{
    cx_json_put(list, name, cx_json_make_int(list->arena, value));
}

void cx_json_put_bool(cx_json_list *list, const char *name, bool value)
{
    cx_json_put(list, name, cx_json_make_bool(value));
}

void cx_json_put_null(cx_json_list *list, const char *name)
{
    cx_json_put(list, name, cx_json_make_null());
}

void cx_json_put_float(cx_json_list *list, const char *name, float value)
{
    if (isfinite(value))
        cx_json_put(list, name, cx_json_make_double(list->arena, (double)value));
    else
        cx_json_put_null(list, name);
}

void cx_json_put_hex(cx_json_list *list, const char *name, cx_bytes bytes)
{
    char *text = CX_ARENA_ARRAY(list->arena, char, 2 * bytes.size + 1);
    if (text == NULL) {
        list->failed = true;
        return;
    }
    cx_hex_encode(bytes, text);
    cx_json_put(list, name, cx_json_make_str(cx_str_from(text, 2 * bytes.size)));
}

void cx_json_put_digest(cx_json_list *list, const char *name, const cx_digest *digest)
{
    cx_json_put_hex(list, name, cx_bytes_from(digest->bytes, sizeof digest->bytes));
}

void cx_json_put_bytes(cx_json_list *list, const char *name, cx_bytes bytes)
{
    if (cx_utf8_valid(cx_bytes_str(bytes))) {
        cx_json_put_str(list, name, cx_bytes_str(bytes));
        return;
    }
    cx_json_list inner = cx_json_list_begin(list->arena);
    cx_json_put_hex(&inner, "hex", bytes);
    cx_json_put_object(list, name, &inner);
}

void cx_json_put_strs(cx_json_list *list, const char *name, const cx_str *texts, size_t count)
{
    put_texts(list, name, texts, count, cx_json_shown);
}

void cx_json_put_quoted_strs(cx_json_list *list, const char *name, const cx_str *texts,
                             size_t count)
{
    put_texts(list, name, texts, count, cx_json_quoted);
}

void cx_json_put_utf8_strs(cx_json_list *list, const char *name, const cx_str *texts, size_t count)
{
    put_texts(list, name, texts, count, cx_json_utf8);
}

void cx_json_put_object(cx_json_list *list, const char *name, cx_json_list *inner)
{
    cx_json value;
    if (cx_failed(cx_json_list_end_object(inner, &value, NULL)))
        list->failed = true;
    else
        cx_json_put(list, name, value);
}

void cx_json_put_array(cx_json_list *list, const char *name, cx_json_list *inner)
{
    cx_json value;
    if (cx_failed(cx_json_list_end_array(inner, &value, NULL)))
        list->failed = true;
    else
        cx_json_put(list, name, value);
}

void cx_json_add_object(cx_json_list *list, cx_json_list *inner)
{
    cx_json value;
    if (cx_failed(cx_json_list_end_object(inner, &value, NULL)))
        list->failed = true;
    else
        cx_json_list_add(list, value);
}

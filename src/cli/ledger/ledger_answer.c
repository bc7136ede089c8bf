/*
 * ledger_answer.c - answers of the ledger's commands: JSON with the same members every time, and
 * text that cannot act on a terminal.
 */
#include <math.h>
#include <unistd.h>

#include "base/api.h"
#include "cli/ledger/ledger.h"
#include "crypto/api.h"
#include "proof/api.h"
#include "memory/api.h"

/* --- JSON ------------------------------------------------------------------------------------- */

cx_str cx_cli_valid_text(cx_arena *arena, cx_str text)
{
    cx_buf shown;
    if (cx_utf8_valid(text))
        return text;
    cx_buf_init(&shown, cx_alloc_default());
    cx_shown_add(&shown, text);
    cx_str kept = shown.failed ? (cx_str){NULL, 0} : cx_arena_copy_str(arena, cx_buf_str(&shown));
    cx_buf_done(&shown);
    return kept;
}

cx_json cx_cli_json_str(cx_json_list *list, cx_str text)
{
    cx_str valid = cx_cli_valid_text(list->arena, text);
    list->failed = list->failed || (valid.data == NULL && text.data != NULL);
    return cx_json_make_str(valid);
}

void cx_cli_put_str(cx_json_list *list, const char *name, cx_str text)
{
    if (text.data == NULL)
        text = CX_STR("");
    cx_json_list_put(list, cx_str_z(name), cx_cli_json_str(list, text));
}

void cx_cli_put_maybe(cx_json_list *list, const char *name, cx_str text)
{
    if (text.size == 0)
        cx_cli_put_null(list, name);
    else
        cx_cli_put_str(list, name, text);
}

void cx_cli_put_uint(cx_json_list *list, const char *name, uint64_t value)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_uint(list->arena, value));
}

void cx_cli_put_int(cx_json_list *list, const char *name, int64_t value)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_int(list->arena, value));
}

void cx_cli_put_bool(cx_json_list *list, const char *name, bool value)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_bool(value));
}

void cx_cli_put_null(cx_json_list *list, const char *name)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_null());
}

void cx_cli_put_float(cx_json_list *list, const char *name, float value)
{
    if (isfinite(value))
        cx_json_list_put(list, cx_str_z(name), cx_json_make_double(list->arena, (double)value));
    else
        cx_cli_put_null(list, name);
}

void cx_cli_put_hex(cx_json_list *list, const char *name, cx_bytes bytes)
{
    char *text = CX_ARENA_ARRAY(list->arena, char, 2 * bytes.size + 1);
    if (text == NULL) {
        list->failed = true;
        return;
    }
    cx_hex_encode(bytes, text);
    cx_cli_put_str(list, name, cx_str_from(text, 2 * bytes.size));
}

void cx_cli_put_digest(cx_json_list *list, const char *name, const cx_digest *digest)
{
    cx_cli_put_hex(list, name, cx_bytes_from(digest->bytes, sizeof digest->bytes));
}

void cx_cli_put_id(cx_json_list *list, const char *name, const cx_id *id)
{
    char *text = CX_ARENA_ARRAY(list->arena, char, CX_ULID_SIZE);
    if (text == NULL) {
        list->failed = true;
        return;
    }
    cx_ulid_format(id, text);
    cx_cli_put_str(list, name, cx_str_from(text, CX_ULID_SIZE));
}

/* Puts what a buffer holds and lets the buffer go. */
static void put_buffer(cx_json_list *list, const char *name, cx_buf *text)
{
    cx_str kept = cx_arena_copy_str(list->arena, cx_buf_str(text));
    if (text->failed || kept.data == NULL)
        list->failed = true;
    else
        cx_cli_put_str(list, name, kept);
    cx_buf_done(text);
}

void cx_cli_put_uri(cx_json_list *list, const char *name, const cx_uri *uri)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_uri_add(uri, &text);
    put_buffer(list, name, &text);
}

void cx_cli_put_time(cx_json_list *list, const char *name, bool present, int64_t seconds)
{
    cx_buf text;
    if (!present) {
        cx_cli_put_null(list, name);
        return;
    }
    cx_buf_init(&text, cx_alloc_default());
    cx_form_time(seconds, &text);
    put_buffer(list, name, &text);
}

void cx_cli_put_bytes(cx_json_list *list, const char *name, cx_bytes bytes)
{
    if (cx_utf8_valid(cx_bytes_str(bytes))) {
        cx_cli_put_str(list, name, cx_bytes_str(bytes));
        return;
    }
    cx_json_list inner = cx_json_list_begin(list->arena);
    cx_cli_put_hex(&inner, "hex", bytes);
    if (cx_failed(cx_cli_put_object(list, name, &inner, NULL)))
        list->failed = true;
}

void cx_cli_put_texts(cx_json_list *list, const char *name, const cx_str *texts, size_t count)
{
    cx_json_list inner = cx_json_list_begin(list->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&inner, cx_cli_json_str(&inner, texts[i]));
    if (cx_failed(cx_cli_put_array(list, name, &inner, NULL)))
        list->failed = true;
}

cx_status cx_cli_put_object(cx_json_list *list, const char *name, cx_json_list *inner, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(inner, &value, err));
    cx_json_list_put(list, cx_str_z(name), value);
    return CX_SUCCESS;
}

cx_status cx_cli_put_array(cx_json_list *list, const char *name, cx_json_list *inner, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_array(inner, &value, err));
    cx_json_list_put(list, cx_str_z(name), value);
    return CX_SUCCESS;
}

cx_status cx_cli_add_object(cx_json_list *list, cx_json_list *inner, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(inner, &value, err));
    cx_json_list_add(list, value);
    return CX_SUCCESS;
}

cx_status cx_cli_end_json(cx_json_list *list, cx_buf *out, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(list, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return CX_SUCCESS;
}

void cx_cli_add_json_text(cx_buf *out, cx_str text)
{
    cx_buf shown;
    if (cx_utf8_valid(text)) {
        cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
        return;
    }
    cx_buf_init(&shown, out->alloc);
    cx_shown_add(&shown, text);
    cx_json_write_str(out, cx_buf_str(&shown), CX_JSON_PY_COMPACT);
    out->failed = out->failed || shown.failed;
    cx_buf_done(&shown);
}

/* --- text ------------------------------------------------------------------------------------- */

void cx_cli_add_text(cx_buf *out, cx_str text)
{
    cx_shown_add(out, text);
}

void cx_cli_add_uri(cx_buf *out, const cx_uri *uri)
{
    cx_uri_add(uri, out);
}

void cx_cli_add_digest(cx_buf *out, const cx_digest *digest)
{
    cx_hex_add(out, cx_bytes_from(digest->bytes, sizeof digest->bytes));
}

void cx_cli_add_time(cx_buf *out, int64_t seconds)
{
    cx_form_time(seconds, out);
}

int64_t cx_cli_seconds(int64_t ns)
{
    int64_t seconds = ns / 1000000000;
    return ns % 1000000000 < 0 ? seconds - 1 : seconds;
}

cx_status cx_cli_can_deliver(cx_cli *cli, const cx_cli_args *args, cx_err *err)
{
    const char *path = cx_cli_value(args, "output");
    cx_cli_file file;
    if (path == NULL || strcmp(path, "-") == 0 || access(path, F_OK) == 0)
        return CX_SUCCESS;
    CX_TRY(cx_cli_file_begin(&file, cli->io, path, err));
    cx_cli_file_abort(&file);
    return CX_SUCCESS;
}

cx_status cx_cli_deliver(cx_cli *cli, const cx_cli_args *args, cx_bytes bytes, cx_err *err)
{
    const char *path = cx_cli_value(args, "output");
    if (path == NULL || strcmp(path, "-") == 0) {
        cx_cli_out_write_exact(&cli->out, bytes);
        return CX_SUCCESS;
    }
    cx_cli_file file;
    CX_TRY(cx_cli_file_begin(&file, cli->io, path, err));
    cx_status status = cx_cli_file_write(&file, bytes, err);
    if (!cx_failed(status))
        return cx_cli_file_commit(&file, err);
    cx_cli_file_abort(&file);
    return status;
}

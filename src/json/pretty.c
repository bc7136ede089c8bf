/*
 * pretty.c - indented JSON for display, with characters that act on a terminal escaped.
 *
 * The output is valid JSON: reading it back gives an equal value.
 */
#include "base/api.h"
#include "json/internal.h"

static void write_text(cx_buf *out, const cx_json *string)
{
    cx_str text = cx_json_text(string);
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size, *done = at;
    cx_buf_add_byte(out, '"');
    while ((at = cx_json_scan_plain(at, end)) < end) {
        size_t size;
        uint32_t code = cx_utf8_decode(at, &size);
        if (code == '"' || code == '\\' || cx_shown_acts(code)) {
            cx_buf_add(out, done, (size_t)(at - done));
            cx_str one = {(const char *)at, size};
            /* The canonical writer produces the escapes; its quotes are removed again. */
            cx_buf quoted;
            cx_buf_init(&quoted, out->alloc);
            cx_json_write_str(&quoted, one, CX_JSON_PY_COMPACT);
            if (quoted.failed)
                out->failed = true;
            else
                cx_buf_add(out, quoted.data + 1, quoted.size - 2);
            cx_buf_done(&quoted);
            done = at + size;
        }
        at += size;
    }
    cx_buf_add(out, done, (size_t)(end - done));
    cx_buf_add_byte(out, '"');
}

static void write_line_start(cx_buf *out, size_t level)
{
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; i < level; i++)
        cx_buf_add_z(out, "  ");
}

static void write_leaf(cx_buf *out, const cx_json *value)
{
    switch ((cx_json_type)value->type) {
    case CX_JSON_NULL: cx_buf_add_z(out, "null"); break;
    case CX_JSON_FALSE: cx_buf_add_z(out, "false"); break;
    case CX_JSON_TRUE: cx_buf_add_z(out, "true"); break;
    case CX_JSON_INT:
    case CX_JSON_DOUBLE: cx_buf_add_str(out, cx_json_text(value)); break;
    case CX_JSON_STRING: write_text(out, value); break;
    case CX_JSON_ARRAY: cx_buf_add_z(out, "[]"); break;
    case CX_JSON_OBJECT: cx_buf_add_z(out, "{}"); break;
    }
}

/* The line of an item or member up to its value. */
static void write_lead(cx_buf *out, const cx_json_step *step, size_t level)
{
    write_line_start(out, level);
    if (step->is_object) {
        write_text(out, step->at);
        cx_buf_add_z(out, ": ");
    }
}

/* Ends what is complete and leads to the next value, or NULL when there is none. */
static const cx_json *next_value(cx_buf *out, cx_json_path *path, unsigned indent)
{
    while (path->depth != 0) {
        cx_json_step *step = cx_json_path_top(path);
        if (cx_json_step_next(step)) {
            cx_buf_add_byte(out, ',');
            write_lead(out, step, path->depth + indent);
            return cx_json_step_value(step);
        }
        path->depth--;
        write_line_start(out, path->depth + indent);
        cx_buf_add_byte(out, step->is_object ? '}' : ']');
    }
    return NULL;
}

cx_status cx_json_write_pretty(cx_buf *out, const cx_json *value, unsigned indent, cx_err *err)
{
    cx_json_path path;
    cx_json_path_init(&path, out->alloc);
    size_t size_before = out->size;
    while (value != NULL && !out->failed) {
        if (!cx_json_is_container(value) || value->count == 0) {
            write_leaf(out, value);
            value = next_value(out, &path, indent);
            continue;
        }
        cx_buf_add_byte(out, value->type == CX_JSON_OBJECT ? '{' : '[');
        if (!cx_json_path_enter(&path, value)) {
            out->failed = true;
            break;
        }
        write_lead(out, cx_json_path_top(&path), path.depth + indent);
        value = cx_json_step_value(cx_json_path_top(&path));
    }
    cx_json_path_done(&path);
    if (!out->failed)
        return CX_SUCCESS;
    out->size = size_before;
    return cx_fail_nomem(err);
}

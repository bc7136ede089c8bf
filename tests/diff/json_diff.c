/*
 * json_diff.c - the half of the differential test that is ours: reads documents, one a frame
 * (32-bit big-endian length, then that many bytes), and answers each with a line, the accepted
 * ones with `+`, the compact text, a tab and the default text; the refused ones with `-` and the
 * tag; what parses but has no canonical form with `!`.  json_diff.py is the other half.
 */
#include <stdio.h>
#include <stdlib.h>

#include "json/json.h"

static size_t read_frame(char **data, size_t *capacity)
{
    unsigned char head[4];
    if (fread(head, 1, sizeof head, stdin) != sizeof head)
        return SIZE_MAX;
    size_t size =
        (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | (size_t)head[3];
    if (size > *capacity) {
        free(*data);
        *data = malloc(size);
        *capacity = size;
        if (*data == NULL)
            exit(3);
    }
    if (size != 0 && fread(*data, 1, size, stdin) != size)
        exit(3);
    return size;
}

static void answer(cx_json_parser *parser, cx_arena *arena, cx_str text, cx_buf *out)
{
    cx_json value;
    cx_err err;
    cx_buf_clear(out);
    if (cx_failed(cx_json_parse(parser, text, arena, &value, &err))) {
        cx_buf_printf(out, "-%s", err.tag != NULL ? err.tag : "?");
        return;
    }
    cx_buf_add_byte(out, '+');
    if (cx_failed(cx_json_write(out, &value, CX_JSON_PY_COMPACT, &err))) {
        cx_buf_clear(out);
        cx_buf_add_byte(out, '!');
        return;
    }
    cx_buf_add_byte(out, '\t');
    if (cx_failed(cx_json_write(out, &value, CX_JSON_PY_DEFAULT, &err)))
        exit(3);
}

int main(void)
{
    char *data = NULL;
    size_t capacity = 0, size;
    cx_json_parser parser;
    cx_arena arena;
    cx_buf out;
    cx_json_parser_init(&parser, cx_alloc_default(), NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_arena_mark empty = cx_arena_mark_now(&arena);
    while ((size = read_frame(&data, &capacity)) != SIZE_MAX) {
        answer(&parser, &arena, (cx_str){data, size}, &out);
        cx_buf_add_byte(&out, '\n');
        if (out.failed || fwrite(out.data, 1, out.size, stdout) != out.size)
            return 3;
        cx_arena_reset(&arena, empty);
    }
    cx_buf_done(&out);
    cx_arena_done(&arena);
    cx_json_parser_done(&parser);
    free(data);
    return fflush(stdout) == 0 ? 0 : 3;
}

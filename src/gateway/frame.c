/*
 * frame.c - lines of JSON-RPC out of a stream of bytes.
 */
#include "gateway/frame.h"

#include <string.h>

void cx_gateway_reader_init(cx_gateway_reader *reader, const cx_alloc *alloc, size_t limit)
{
    memset(reader, 0, sizeof *reader);
    cx_buf_init(&reader->held, alloc);
    reader->limit = limit;
}

void cx_gateway_reader_done(cx_gateway_reader *reader)
{
    cx_buf_done(&reader->held);
}

/* --- what is not kept ------------------------------------------------------------------------- */

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void add_part(cx_gateway_skim *s, uint8_t c)
{
    if (s->part_size == sizeof s->part)
        s->part_is_long = true;
    else
        s->part[s->part_size++] = (char)c;
}

static void begin_part(cx_gateway_skim *s)
{
    s->part_size = 0;
    s->part_is_long = false;
}

static bool part_is(const cx_gateway_skim *s, const char *text)
{
    return !s->part_is_long && cx_str_is(cx_str_from(s->part, s->part_size), text);
}

/* The end of a member's name. */
static void end_name(cx_gateway_skim *s)
{
    s->key_is_id = part_is(s, "\"id\"");
    s->has_method |= part_is(s, "\"method\"");
    s->after_colon = true;
    begin_part(s);
}

static void end_value(cx_gateway_skim *s)
{
    if (s->after_colon && s->key_is_id && !s->part_is_long && s->part_size != 0) {
        memcpy(s->id, s->part, s->part_size);
        s->id_size = s->part_size;
        s->has_id = true;
    }
    s->after_colon = s->key_is_id = false;
    begin_part(s);
}

static void skim_string_byte(cx_gateway_skim *s, uint8_t c)
{
    if (s->escaped)
        s->escaped = false;
    else if (c == '\\')
        s->escaped = true;
    else if (c == '"')
        s->in_string = false;
    if (s->depth == 1)
        add_part(s, c);
}

static void skim_byte(cx_gateway_skim *s, uint8_t c)
{
    if (s->in_string) {
        skim_string_byte(s, c);
        return;
    }
    if (is_space(c))
        return;
    if (!s->started) {
        s->started = true;
        s->is_array = c != '{';
    }
    bool outermost = s->depth == 1 && !s->is_array;
    if (c == '{' || c == '[') {
        if (outermost)
            s->part_is_long = true; /* no id */
        s->depth += s->depth < 1u << 30;
    } else if (c == '}' || c == ']') {
        if (outermost)
            end_value(s);
        s->depth -= s->depth != 0;
    } else if (outermost && c == ':') {
        end_name(s);
    } else if (outermost && c == ',') {
        end_value(s);
    } else {
        s->in_string = c == '"';
        if (s->depth == 1)
            add_part(s, c);
    }
}

void cx_gateway_skim_bytes(cx_gateway_skim *skim, cx_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        skim_byte(skim, bytes.data[i]);
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool is_blank(cx_str line)
{
    for (size_t i = 0; i < line.size; i++)
        if (!is_space((uint8_t)line.data[i]))
            return false;
    return true;
}

/* F2: the memory is given back, too. */
static void begin_dropping(cx_gateway_reader *r)
{
    const cx_alloc *alloc = r->held.alloc;
    memset(&r->skim, 0, sizeof r->skim);
    r->dropping = true;
    r->dropped_bytes = r->held.size;
    cx_gateway_skim_bytes(&r->skim, cx_buf_bytes(&r->held));
    cx_buf_done(&r->held);
    cx_buf_init(&r->held, alloc);
}

static void forget_returned(cx_gateway_reader *r)
{
    if (!r->returned)
        return;
    r->returned = false;
    const cx_alloc *alloc = r->held.alloc;
    if (r->held.capacity > (size_t)1 << 20) {
        cx_buf_done(&r->held);
        cx_buf_init(&r->held, alloc);
    }
    cx_buf_clear(&r->held);
}

static cx_status hold(cx_gateway_reader *r, cx_bytes part, cx_err *err)
{
    if (!r->dropping && r->held.size + part.size > r->limit)
        begin_dropping(r);
    if (r->dropping) {
        r->dropped_bytes += part.size;
        cx_gateway_skim_bytes(&r->skim, part);
        return CX_SUCCESS;
    }
    cx_buf_add(&r->held, part.data, part.size);
    return cx_buf_check(&r->held, err);
}

static bool finish_line(cx_gateway_reader *r, cx_gateway_frame *out, cx_str *out_line)
{
    if (r->dropping) {
        r->dropping = false;
        *out = CX_GATEWAY_FRAME_TOO_LONG;
        return true;
    }
    *out_line = cx_buf_str(&r->held);
    r->returned = true;
    *out = CX_GATEWAY_FRAME_MESSAGE;
    return !is_blank(*out_line); /* F3 */
}

cx_status cx_gateway_reader_next(cx_gateway_reader *reader, cx_bytes *bytes, cx_gateway_frame *out,
                                 cx_str *out_line, cx_err *err)
{
    *out = CX_GATEWAY_FRAME_MORE;
    while (bytes->size != 0) {
        forget_returned(reader);
        const uint8_t *end = memchr(bytes->data, '\n', bytes->size);
        size_t size = end == NULL ? bytes->size : (size_t)(end - bytes->data);
        CX_TRY(hold(reader, cx_bytes_from(bytes->data, size), err));
        size += end != NULL;
        *bytes = cx_bytes_from(bytes->data + size, bytes->size - size);
        if (end != NULL && finish_line(reader, out, out_line))
            return CX_SUCCESS;
        *out = CX_GATEWAY_FRAME_MORE;
    }
    return CX_SUCCESS;
}

cx_status cx_gateway_reader_end(cx_gateway_reader *reader, cx_gateway_frame *out, cx_str *out_line,
                                cx_err *err)
{
    (void)err;
    forget_returned(reader);
    *out = CX_GATEWAY_FRAME_MORE;
    if (!reader->dropping && reader->held.size == 0)
        return CX_SUCCESS;
    if (!finish_line(reader, out, out_line))
        *out = CX_GATEWAY_FRAME_MORE;
    return CX_SUCCESS;
}

/*
 * sse.c - messages out of a stream of server-sent events.
 */
#include "gateway/sse.h"

#include <string.h>

#define NAME_MAX ((size_t)64) /* of a line that is no data */

void cx_gateway_sse_init(cx_gateway_sse *sse, const cx_alloc *alloc, size_t limit)
{
    memset(sse, 0, sizeof *sse);
    cx_buf_init(&sse->line, alloc);
    cx_buf_init(&sse->data, alloc);
    sse->limit = limit;
}

void cx_gateway_sse_done(cx_gateway_sse *sse)
{
    cx_buf_done(&sse->line);
    cx_buf_done(&sse->data);
}

static void begin_event(cx_gateway_sse *s)
{
    cx_buf_clear(&s->data);
    s->has_data = s->is_other = s->dropping = s->ended = false;
    s->dropped_bytes = 0;
    memset(&s->skim, 0, sizeof s->skim);
}

/* E4 */
static void begin_dropping(cx_gateway_sse *s)
{
    const cx_alloc *alloc = s->data.alloc;
    s->dropping = true;
    s->dropped_bytes = s->data.size;
    cx_gateway_skim_bytes(&s->skim, cx_buf_bytes(&s->data));
    cx_buf_done(&s->data);
    cx_buf_init(&s->data, alloc);
}

static void add_data(cx_gateway_sse *s, cx_bytes part)
{
    if (!s->dropping && s->data.size + part.size > s->limit)
        begin_dropping(s);
    if (s->dropping) {
        s->dropped_bytes += part.size;
        cx_gateway_skim_bytes(&s->skim, part);
    } else {
        cx_buf_add(&s->data, part.data, part.size);
    }
}

/* A field's value: what follows its name, ":" and one space. */
static bool is_field(cx_str line, const char *name, cx_str *out_value)
{
    size_t size = strlen(name);
    if (!cx_str_starts(line, cx_str_z(name)) || (line.size > size && line.data[size] != ':'))
        return false;
    size_t from = line.size > size ? size + 1 : size;
    from += from < line.size && line.data[from] == ' ';
    *out_value = cx_str_from(line.data + from, line.size - from);
    return true;
}

static void take_line(cx_gateway_sse *s, cx_str line)
{
    cx_str value;
    if (is_field(line, "data", &value)) {
        if (s->has_data)
            add_data(s, cx_str_bytes(CX_STR("\n")));
        s->has_data = true;
        add_data(s, cx_str_bytes(value));
    } else if (is_field(line, "event", &value)) {
        s->is_other = value.size != 0 && !cx_str_is(value, "message");
    }
}

/* The part of a long line that is here already: data goes on to the event at once. */
static void spill(cx_gateway_sse *s)
{
    cx_str line = cx_buf_str(&s->line);
    if (!s->in_data && line.size <= NAME_MAX)
        return;
    if (!s->in_data) {
        s->in_data = cx_str_starts(line, CX_STR("data:"));
        if (s->in_data)
            take_line(s, line);
        else
            line.size = NAME_MAX; /* its rest says nothing */
    } else {
        add_data(s, cx_str_bytes(line));
    }
    s->line.size = s->in_data ? 0 : NAME_MAX;
}

static void end_line(cx_gateway_sse *s)
{
    if (s->in_data)
        add_data(s, cx_buf_bytes(&s->line));
    else
        take_line(s, cx_buf_str(&s->line));
    s->in_data = false;
    cx_buf_clear(&s->line);
}

static void skip_mark(cx_gateway_sse *s)
{
    if (s->began || s->line.size < 3)
        return;
    s->began = true;
    if (memcmp(s->line.data, "\xef\xbb\xbf", 3) == 0) {
        memmove(s->line.data, s->line.data + 3, s->line.size - 3);
        s->line.size -= 3;
    }
}

/* Takes the bytes of a line off the front; true when its end is among them. */
static bool take_part(cx_gateway_sse *s, cx_bytes *bytes)
{
    size_t size = 0;
    if (s->after_cr && bytes->data[0] == '\n') {
        *bytes = cx_bytes_from(bytes->data + 1, bytes->size - 1);
        s->after_cr = false;
        return false;
    }
    s->after_cr = false;
    while (size < bytes->size && bytes->data[size] != '\n' && bytes->data[size] != '\r')
        size++;
    bool end = size < bytes->size;
    cx_buf_add(&s->line, bytes->data, size);
    s->after_cr = end && bytes->data[size] == '\r';
    *bytes = cx_bytes_from(bytes->data + size + end, bytes->size - size - end);
    skip_mark(s);
    return end;
}

cx_status cx_gateway_sse_next(cx_gateway_sse *sse, cx_bytes *bytes, cx_gateway_frame *out,
                              cx_str *out_message, cx_err *err)
{
    *out = CX_GATEWAY_FRAME_MORE;
    while (bytes->size != 0) {
        if (sse->ended)
            begin_event(sse);
        bool end = take_part(sse, bytes);
        CX_TRY(cx_buf_check(&sse->line, err));
        if (!end) {
            spill(sse);
        } else if (sse->line.size == 0 && !sse->in_data) {
            sse->began = sse->ended = true;
            if (sse->has_data && !sse->is_other) {
                *out = sse->dropping ? CX_GATEWAY_FRAME_TOO_LONG : CX_GATEWAY_FRAME_MESSAGE;
                *out_message = cx_buf_str(&sse->data);
                return CX_SUCCESS;
            }
        } else {
            sse->began = true;
            end_line(sse);
        }
        CX_TRY(cx_buf_check(&sse->data, err));
    }
    return CX_SUCCESS;
}

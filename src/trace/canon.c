/*
 * canon.c - JSON values as Python's json.dumps(sort_keys=True) spells them, with numbers as they
 * were received or as Python spells them, and with or without empty values (§3).
 *
 * I1  Members are stored in code point order, which is Python's.
 * I2  Stripping happens while writing: a member is written, and removed when nothing was left
 *     inside it.  So each value is visited once.
 * I3  Plain text and numbers in Python's spelling are copied; the module json writes the others.
 */
#include "trace/internal.h"

#include "base/api.h"
#include "crypto/api.h"

/* An open array or object. */
typedef struct frame {
    union {
        const cx_json *item;
        const cx_json_member *member;
    };
    uint32_t left;
    bool is_object;
    bool any;     /* has content */
    size_t start; /* of the text, with the comma and the name before it */
} frame;

#define LOCAL_FRAMES 64

typedef struct writing {
    cx_buf *out;
    cx_canon_style style;
    bool differs; /* Python would spell a number differently */
    frame *frames;
    size_t depth, capacity;
    frame local[LOCAL_FRAMES];
} writing;

/* --- pieces ----------------------------------------------------------------------------------- */

static void add_string(cx_buf *out, const cx_json *string)
{
    if (CX_UNLIKELY((string->flags & CX_JSON_PLAIN) == 0)) {
        cx_json_write_str(out, cx_json_text(string), CX_JSON_PY_COMPACT);
        return;
    }
    uint8_t *to = cx_buf_reserve(out, (size_t)string->count + 2);
    if (CX_UNLIKELY(to == NULL))
        return;
    to[0] = '"';
    memcpy(to + 1, string->text, string->count);
    to[1 + (size_t)string->count] = '"';
    cx_buf_advance(out, (size_t)string->count + 2);
}

/* A number whose spelling may differ from Python's. */
static void add_odd_number(writing *w, const cx_json *number)
{
    cx_buf *out = w->out;
    size_t before = out->size;
    cx_json_write_number(out, number, CX_JSON_PY_COMPACT);
    if (out->failed)
        return;
    cx_str received = cx_json_text(number);
    cx_str python = {(const char *)out->data + before, out->size - before};
    if (cx_str_eq(received, python))
        return;
    w->differs = true;
    if (!w->style.python_numbers) {
        out->size = before;
        cx_buf_add_str(out, received);
    }
}

static void add_scalar(writing *w, const cx_json *value)
{
    switch ((cx_json_type)value->type) {
    case CX_JSON_NULL: cx_buf_add_str(w->out, CX_STR("null")); break;
    case CX_JSON_FALSE: cx_buf_add_str(w->out, CX_STR("false")); break;
    case CX_JSON_TRUE: cx_buf_add_str(w->out, CX_STR("true")); break;
    case CX_JSON_INT:
    case CX_JSON_DOUBLE:
        if (CX_LIKELY((value->flags & CX_JSON_CANONICAL) != 0))
            cx_buf_add_str(w->out, cx_json_text(value));
        else
            add_odd_number(w, value);
        break;
    case CX_JSON_STRING: add_string(w->out, value); break;
    case CX_JSON_ARRAY: cx_buf_add_str(w->out, CX_STR("[]")); break;
    case CX_JSON_OBJECT: cx_buf_add_str(w->out, CX_STR("{}")); break;
    }
}

/* --- walking ---------------------------------------------------------------------------------- */

static bool is_filled_container(const cx_json *value)
{
    return value->type >= CX_JSON_ARRAY && value->count != 0;
}

/* Values that stripping drops without a look inside: null anywhere, empty text and containers as
 * members. */
static bool is_dropped(const cx_json *value, bool is_member)
{
    return value->type == CX_JSON_NULL ||
           (is_member && value->type >= CX_JSON_STRING && value->count == 0);
}

static bool open_container(writing *w, const cx_json *value, size_t start)
{
    if (CX_UNLIKELY(w->depth == w->capacity)) {
        bool was_local = w->frames == w->local;
        frame *grown = was_local ? NULL : w->frames;
        size_t capacity = was_local ? 0 : w->capacity;
        if (!cx_vec_reserve_raw(&grown, &capacity, w->depth + 1, sizeof *grown, w->out->alloc))
            return false;
        if (was_local)
            memcpy(grown, w->local, sizeof w->local);
        w->frames = grown;
        w->capacity = capacity;
    }
    frame *f = &w->frames[w->depth++];
    *f = (frame){.left = value->count, .is_object = value->type == CX_JSON_OBJECT, .start = start};
    if (f->is_object)
        f->member = value->members;
    else
        f->item = value->items;
    cx_buf_add_byte(w->out, f->is_object ? '{' : '[');
    return true;
}

/* Closes the innermost container, or removes it together with its name when it is empty. */
static void close_container(writing *w)
{
    frame *f = &w->frames[--w->depth];
    frame *outer = w->depth == 0 ? NULL : f - 1;
    if (!f->any && w->style.strip && outer != NULL && outer->is_object) {
        if (!w->out->failed)
            w->out->size = f->start;
        return;
    }
    cx_buf_add_byte(w->out, f->is_object ? '}' : ']');
    if (outer != NULL)
        outer->any = true;
}

static void add_comma(writing *w)
{
    cx_buf_add(w->out, ", ", 1 + (size_t)w->style.spaces);
}

static void add_name(writing *w, const cx_json *name)
{
    add_string(w->out, name);
    cx_buf_add(w->out, ": ", 1 + (size_t)w->style.spaces);
}

/* The next value of the innermost container, after writing its comma and name; NULL when it was
 * stripped. *out_start is where it began. */
static const cx_json *next_value(writing *w, frame *f, size_t *out_start)
{
    const cx_json_member *member = f->is_object ? f->member++ : NULL;
    const cx_json *value = f->is_object ? &member->value : f->item++;
    f->left--;
    if (w->style.strip && is_dropped(value, f->is_object))
        return NULL;
    *out_start = w->out->size;
    if (f->any)
        add_comma(w);
    if (f->is_object)
        add_name(w, &member->name);
    return value;
}

/* False when out of memory. */
static bool write_value(writing *w, const cx_json *value)
{
    size_t start = w->out->size;
    if (!is_filled_container(value)) {
        add_scalar(w, value);
        return true;
    }
    if (!open_container(w, value, start))
        return false;
    while (w->depth != 0) {
        frame *f = &w->frames[w->depth - 1];
        if (f->left == 0) {
            close_container(w);
            continue;
        }
        value = next_value(w, f, &start);
        if (value == NULL)
            continue;
        if (!is_filled_container(value)) {
            add_scalar(w, value);
            f->any = true;
        } else if (!open_container(w, value, start)) {
            return false;
        }
    }
    return true;
}

cx_status cx_canon_value(const cx_json *value, const cx_canon_style *style, cx_buf *out,
                         bool *differs, cx_err *err)
{
    if (!cx_json_has_canonical(value))
        return cx_fail(err, CX_E_FORMAT,
                       "found a number that is not finite, which has no canonical form");
    writing w; /* not cleared as a whole: the frames are large and need none of it */
    w.out = out;
    w.style = *style;
    w.differs = false;
    w.frames = w.local;
    w.depth = 0;
    w.capacity = LOCAL_FRAMES;
    bool ok = write_value(&w, value);
    if (w.frames != w.local)
        cx_alloc_free(out->alloc, w.frames, w.capacity * sizeof *w.frames);
    if (!ok)
        return cx_fail_nomem(err);
    if (w.differs)
        *differs = true;
    return cx_buf_check(out, err);
}

cx_status cx_trace_canon_value(const cx_json *value, const cx_canon_style *style, cx_buf *out,
                               cx_err *err)
{
    bool differs = false;
    return cx_canon_value(value, style, out, &differs, err);
}

cx_status cx_trace_content_digest(const cx_trace *trace, cx_digest *out, cx_err *err)
{
    static const cx_canon_style compact = {.spaces = false};
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    /* Most traces do not grow; a failure here is found below. */
    (void)cx_buf_reserve(&text, trace->bytes.size + 64);
    cx_status status = cx_trace_canon_value(trace->json, &compact, &text, err);
    if (!cx_failed(status))
        *out = cx_digest_of(cx_buf_bytes(&text));
    cx_buf_done(&text);
    return status;
}

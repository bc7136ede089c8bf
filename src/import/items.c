/*
 * items.c - where the records of a document are in its text, so that some of them can be read
 * without the others (docs/formats/imports.md §1.16).
 *
 *   I1  A document that has items here can be imported as a whole, and its records are these items:
 *       all of its text is read as JSON, within the limits of the whole.
 */
#include "import/core.h"

typedef struct finding {
    const cx_import_format *format;
    cx_str text;
    size_t mark; /* bytes of the document before the text */
    cx_json_parser parser;
    cx_arena arena;
    cx_import_on_item on_item;
    void *arg;
} finding;

static cx_status fail_shape(const finding *f, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                      "found no list of records, expected %s", f->format->info.help);
}

static bool is_list(cx_str text)
{
    return text.size != 0 && text.data[0] == '[';
}

static cx_status find_name(finding *f, cx_str quoted, size_t *out, cx_err *err)
{
    cx_json name;
    cx_arena_mark mark = cx_arena_mark_now(&f->arena);
    CX_TRY(cx_json_parse(&f->parser, quoted, &f->arena, &name, err));
    for (*out = 0; f->format->item_lists[*out] != NULL; ++*out)
        if (cx_str_is(cx_json_text(&name), f->format->item_lists[*out]))
            break;
    cx_arena_reset(&f->arena, mark);
    return CX_SUCCESS;
}

/* The list that the format takes its records from. */
static cx_status find_list(finding *f, cx_str *out, cx_err *err)
{
    cx_json_span span;
    cx_str name, value;
    size_t best = SIZE_MAX, which;
    *out = f->text;
    while (out->size != 0 && (unsigned char)out->data[out->size - 1] <= ' ')
        out->size--;
    while (out->size != 0 && (unsigned char)out->data[0] <= ' ')
        *out = cx_str_from(out->data + 1, out->size - 1);
    if (f->format->item_lists[0] == NULL)
        return is_list(*out) ? CX_SUCCESS : fail_shape(f, err);
    if (!cx_json_span_begin(&span, *out) || span.close != '}')
        return fail_shape(f, err);
    while (cx_json_span_next(&span, &name, &value)) {
        CX_TRY(find_name(f, name, &which, err));
        if (f->format->item_lists[which] == NULL || which >= best || !is_list(value))
            continue;
        best = which;
        *out = value;
    }
    return span.bad || best == SIZE_MAX ? fail_shape(f, err) : CX_SUCCESS;
}

static cx_status read_items(finding *f, cx_str list, cx_import_items *out, cx_err *err)
{
    cx_json_span span;
    cx_str name, value;
    cx_json item;
    cx_arena_mark mark = cx_arena_mark_now(&f->arena);
    bool there = cx_json_span_begin(&span, list);
    out->begin = (size_t)(list.data - f->text.data);
    out->end = out->begin + list.size;
    while (there && cx_json_span_next(&span, &name, &value)) {
        CX_TRY(cx_json_parse(&f->parser, value, &f->arena, &item, err));
        cx_arena_reset(&f->arena, mark);
        if (++out->count > UINT32_MAX - 1)
            return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET, "more than 2^32 records");
        CX_TRY(f->on_item(f->arg, f->mark + (size_t)(value.data - f->text.data), err));
    }
    return !there || span.bad ? fail_shape(f, err) : CX_SUCCESS;
}

/* I1: names that are there twice, for one. */
static cx_status read_rest(finding *f, const cx_import_items *items, cx_err *err)
{
    cx_buf rest;
    cx_json value;
    cx_buf_init(&rest, f->arena.alloc);
    cx_buf_add(&rest, f->text.data, items->begin);
    cx_buf_add_z(&rest, "[]");
    cx_buf_add(&rest, f->text.data + items->end, f->text.size - items->end);
    cx_status status = cx_buf_check(&rest, err);
    if (!cx_failed(status))
        status = cx_json_parse(&f->parser, cx_buf_str(&rest), &f->arena, &value, err);
    cx_buf_done(&rest);
    return status;
}

static cx_status find_all(finding *f, cx_import_items *out, cx_err *err)
{
    cx_str list;
    if (f->format->line != NULL &&
        cx_import_looks_like_lines(&f->parser, &f->arena, cx_str_bytes(f->text)))
        return fail_shape(f, err);
    CX_TRY(find_list(f, &list, err));
    f->parser.limits.depth = RECORD_DEPTH_MAX - (f->format->item_lists[0] == NULL ? 1 : 2);
    CX_TRY(read_items(f, list, out, err));
    f->parser.limits.depth = RECORD_DEPTH_MAX;
    return read_rest(f, out, err);
}

cx_status cx_import_find_items(const char *name, cx_bytes document, const cx_alloc *alloc,
                               cx_import_on_item on_item, void *arg, cx_import_items *out,
                               cx_err *err)
{
    const cx_json_limits limits = {RECORD_DEPTH_MAX, 4300, 0, false};
    const cx_bytes text = cx_import_after_mark(document);
    finding f = {.text = cx_bytes_str(text),
                 .mark = document.size - text.size,
                 .on_item = on_item,
                 .arg = arg};
    CX_ASSERT(cx_import_has_items(name));
    for (size_t i = 0; f.format == NULL || strcmp(f.format->info.name, name) != 0; i++)
        f.format = cx_import_format_nth(i);
    *out = (cx_import_items){.count = 0};
    cx_arena_init(&f.arena, alloc, 0);
    cx_json_parser_init(&f.parser, alloc, &limits);
    cx_status status = find_all(&f, out, err);
    cx_json_parser_done(&f.parser);
    cx_arena_done(&f.arena);
    out->begin += f.mark;
    out->end += f.mark;
    return status;
}

/*
 * register_edit.c - changing a JSON text in place.
 *
 *   E1  The text was read as strict JSON before: slices are values, names are distinct.
 *   E2  Bytes outside of what is added or removed stay as they are.
 *   E3  A container on one line stays on one line.
 */
#include <string.h>

#include "live/register_parts.h"

#define PARTS_MAX 65536

/* --- slices ----------------------------------------------------------------------------------- */

static cx_status decode_name(cx_str quoted, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_json name;
    CX_TRY(cx_json_parse_text(quoted, arena, &name, err));
    *out = cx_json_text(&name);
    return CX_SUCCESS;
}

cx_status cx_slices_of(cx_str container, cx_arena *arena, cx_slices *out, cx_err *err)
{
    cx_json_span span;
    cx_str name, value;
    CX_VEC(cx_slice) parts = {0};
    cx_status status = CX_SUCCESS;
    bool there = cx_json_span_begin(&span, container);
    while (there && cx_json_span_next(&span, &name, &value)) {
        cx_slice *part = parts.count < PARTS_MAX ? cx_vec_push(&parts, cx_alloc_default()) : NULL;
        if (part == NULL)
            CX_TRY_GOTO(status, parts.count < PARTS_MAX
                                    ? cx_fail_nomem(err)
                                    : cx_fail(err, CX_E_LIMIT, "more than %d members", PARTS_MAX));
        part->value = value;
        part->name = (cx_str){NULL, 0};
        const char *start = name.data != NULL ? name.data : value.data;
        part->all = cx_str_from(start, (size_t)(value.data + value.size - start));
        if (name.data != NULL)
            CX_TRY_GOTO(status, decode_name(name, arena, &part->name, err));
    }
    if (!there || span.bad)
        CX_TRY_GOTO(status, cx_fail(err, CX_E_FORMAT, "expected an object or an array"));
    out->container = container;
    out->count = parts.count;
    out->items = CX_ARENA_ARRAY(arena, cx_slice, parts.count + 1);
    if (out->items == NULL)
        status = cx_fail_nomem(err);
    else if (parts.count != 0)
        memcpy(out->items, parts.items, parts.count * sizeof *parts.items);
done:
    cx_vec_done(&parts, cx_alloc_default());
    return status;
}

const cx_slice *cx_slices_find(const cx_slices *parts, const char *name)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].name.data != NULL && cx_str_is(parts->items[i].name, name))
            return &parts->items[i];
    return NULL;
}

/* --- layout ----------------------------------------------------------------------------------- */

/* The white space that begins the line of `at`; *out_first: nothing else is before it. */
static cx_str line_indent(cx_str text, const char *at, bool *out_first)
{
    const char *start = at, *end;
    while (start > text.data && start[-1] != '\n')
        start--;
    for (end = start; end < at && (*end == ' ' || *end == '\t'); end++)
        continue;
    *out_first = end == at && start > text.data;
    return cx_str_from(start, (size_t)(end - start));
}

/* What a level is indented by: what the first indented line has. */
static const char *indent_unit(cx_str text, cx_arena *arena)
{
    for (size_t i = 0; i + 1 < text.size; i++) {
        if (text.data[i] != '\n' || (text.data[i + 1] != ' ' && text.data[i + 1] != '\t'))
            continue;
        size_t end = i + 1;
        while (end < text.size && text.data[end] == text.data[i + 1] && end - i <= 8)
            end++;
        cx_str kept = cx_arena_copy_str(arena, cx_str_from(text.data + i + 1, end - i - 1));
        return kept.data != NULL ? kept.data : "  ";
    }
    return "  ";
}

void cx_text_editor_init(cx_text_editor *editor, cx_str text, cx_arena *arena)
{
    const char *feed = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
    *editor = (cx_text_editor){.text = text, .arena = arena};
    editor->line_end = feed != NULL && feed > text.data && feed[-1] == '\r' ? "\r\n" : "\n";
    editor->unit = indent_unit(text, arena);
}

static void add_edit(cx_text_editor *e, size_t at, size_t cut, cx_buf *add)
{
    cx_str kept = cx_arena_copy_str(e->arena, cx_buf_str(add));
    if (e->count == e->capacity) {
        size_t more = e->capacity == 0 ? 32 : e->capacity * 2;
        cx_text_edit *grown = CX_ARENA_ARRAY(e->arena, cx_text_edit, more);
        if (grown != NULL && e->count != 0)
            memcpy(grown, e->edits, e->count * sizeof *grown);
        e->edits = grown != NULL ? grown : e->edits;
        e->capacity = grown != NULL ? more : e->capacity;
    }
    if (add->failed || kept.data == NULL || e->count == e->capacity)
        e->failed = true;
    else
        e->edits[e->count++] = (cx_text_edit){at, cut, kept};
    cx_buf_done(add);
}

/* An item with its lines: ends and indentation of the text, or all on one line (E3). */
static void add_item(const cx_text_editor *e, cx_buf *out, cx_str item, cx_str indent, bool lines)
{
    for (size_t i = 0; i < item.size; i++) {
        char c = item.data[i];
        if (c == '\n' && lines) {
            cx_buf_add_z(out, e->line_end);
            cx_buf_add_str(out, indent);
        } else if (c == '\t' && lines) {
            cx_buf_add_z(out, e->unit);
        } else if (c != '\n' && c != '\t') {
            cx_buf_add_byte(out, (uint8_t)c);
        }
    }
}

void cx_text_editor_append(cx_text_editor *e, const cx_slices *parts, const cx_str *items,
                           size_t count)
{
    cx_buf add, indent;
    bool lines, ignored;
    if (count == 0)
        return;
    cx_buf_init(&add, cx_alloc_default());
    cx_buf_init(&indent, cx_alloc_default());
    cx_str outer = line_indent(e->text, parts->container.data, &ignored);
    if (parts->count != 0) {
        const cx_slice *last = &parts->items[parts->count - 1];
        cx_buf_add_str(&indent, line_indent(e->text, last->all.data, &lines));
        for (size_t i = 0; i < count; i++) {
            cx_buf_add_z(&add, lines ? "," : ", ");
            if (lines) {
                cx_buf_add_z(&add, e->line_end);
                cx_buf_add_str(&add, cx_buf_str(&indent));
            }
            add_item(e, &add, items[i], cx_buf_str(&indent), lines);
        }
        add_edit(e, (size_t)(last->value.data + last->value.size - e->text.data), 0, &add);
    } else {
        lines = memchr(e->text.data, '\n', e->text.size) != NULL;
        cx_buf_add_str(&indent, outer);
        cx_buf_add_z(&indent, e->unit);
        for (size_t i = 0; i < count; i++) {
            cx_buf_add_z(&add, i == 0 ? "" : lines ? "," : ", ");
            if (lines) {
                cx_buf_add_z(&add, e->line_end);
                cx_buf_add_str(&add, cx_buf_str(&indent));
            }
            add_item(e, &add, items[i], cx_buf_str(&indent), lines);
        }
        if (lines) {
            cx_buf_add_z(&add, e->line_end);
            cx_buf_add_str(&add, outer);
        }
        add_edit(e, (size_t)(parts->container.data - e->text.data) + 1, parts->container.size - 2,
                 &add);
    }
    e->failed = e->failed || indent.failed;
    cx_buf_done(&indent);
}

/* After the last part that stays, or up to the first one that does. */
void cx_text_editor_remove(cx_text_editor *e, const cx_slices *parts, const bool *gone)
{
    size_t base = (size_t)(parts->container.data - e->text.data);
    const cx_slice *kept = NULL;
    for (size_t i = 0; i < parts->count; i++) {
        if (!gone[i]) {
            kept = &parts->items[i];
            continue;
        }
        size_t last = i;
        while (last + 1 < parts->count && gone[last + 1])
            last++;
        cx_buf none;
        cx_buf_init(&none, cx_alloc_default());
        cx_str from = parts->items[i].all, to = parts->items[last].all;
        size_t start = (size_t)(from.data - e->text.data);
        size_t end = (size_t)(to.data + to.size - e->text.data);
        if (kept != NULL)
            start = (size_t)(kept->all.data + kept->all.size - e->text.data);
        else if (last + 1 < parts->count)
            end = (size_t)(parts->items[last + 1].all.data - e->text.data);
        else /* all of them: nothing is left between the brackets */
            start = base + 1, end = base + parts->container.size - 1;
        add_edit(e, start, end - start, &none);
        i = last;
    }
}

void cx_text_editor_replace(cx_text_editor *e, cx_str slice, cx_str with)
{
    cx_buf add;
    cx_buf_init(&add, cx_alloc_default());
    cx_buf_add_str(&add, with);
    add_edit(e, (size_t)(slice.data - e->text.data), slice.size, &add);
}

/* By position; those of one position stay in their order. */
static void sort_edits(cx_text_edit *edits, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        cx_text_edit moved = edits[i];
        size_t to = i;
        for (; to > 0 && edits[to - 1].at > moved.at; to--)
            edits[to] = edits[to - 1];
        edits[to] = moved;
    }
}

cx_status cx_text_editor_end(cx_text_editor *e, cx_buf *out, cx_err *err)
{
    size_t at = 0;
    if (e->failed)
        return cx_fail_nomem(err);
    sort_edits(e->edits, e->count);
    for (size_t i = 0; i < e->count; i++) {
        const cx_text_edit *edit = &e->edits[i];
        CX_ASSERT(edit->at >= at && edit->cut <= e->text.size - edit->at);
        cx_buf_add(out, e->text.data + at, edit->at - at);
        cx_buf_add_str(out, edit->add);
        at = edit->at + edit->cut;
    }
    cx_buf_add(out, e->text.data + at, e->text.size - at);
    return cx_buf_check(out, err);
}

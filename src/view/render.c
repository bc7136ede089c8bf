/*
 * render.c - chooses the form of a picture, writes the JSON form, and escapes external text.
 *
 * The JSON form is the layout itself, one canonical line, for programs that draw: rows in order
 * with lane, column, marks and findings; edges by row, null for an end outside the window.
 */
#include "view/render.h"

#include <stdio.h>

#include "base/api.h"
#include "json/api.h"

/* Reading events again costs one read for each row; pictures with more rows have no labels. */
#define LABEL_ROWS_MAX 5000
#define TERMINAL_ROWS_DEFAULT 200

cx_status cx_lattice_render(cx_buf *out, const cx_lattice *lattice,
                            const cx_render_options *options, cx_err *err)
{
    bool terminal = options->form == CX_RENDER_TERMINAL;
    layout_options wanted = {.first = options->first,
                             .max_rows = options->max_nodes,
                             .fold = options->fold,
                             .report = options->report};
    if (wanted.max_rows == 0 && terminal)
        wanted.max_rows = TERMINAL_ROWS_DEFAULT;
    uint32_t rows = wanted.max_rows != 0 ? wanted.max_rows : (uint32_t)lattice->nodes.count;
    wanted.labels = !options->no_labels && rows <= LABEL_ROWS_MAX;

    layout made;
    CX_TRY(cx_lattice_layout_init(&made, lattice, &wanted, err));
    picture pic = {lattice, options, &made};
    cx_status status = CX_SUCCESS;
    switch (options->form) {
    case CX_RENDER_TERMINAL: status = cx_lattice_render_terminal(out, &pic, err); break;
    case CX_RENDER_SVG: status = cx_lattice_render_svg(out, &pic, err); break;
    case CX_RENDER_DOT: status = cx_lattice_render_dot(out, &pic, err); break;
    case CX_RENDER_JSON: status = cx_lattice_render_json(out, &pic, err); break;
    default: status = cx_fail(err, CX_E_USAGE, "unknown picture format"); break;
    }
    cx_lattice_layout_done(&made);
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

/* --- safe text ----------------------------------------------------------------------------- */

typedef struct code_range {
    uint32_t first, last;
} code_range;

static bool in_ranges(uint32_t code, const code_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    }
    return false;
}

/*
 * Characters that act on a terminal or have no defined width: variation selectors, fillers,
 * noncharacters.
 */
static bool is_unsafe(uint32_t code)
{
    static const code_range unsafe[] = {
        {0x34F, 0x34F},   {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x3164, 0x3164},
        {0xFDD0, 0xFDEF}, {0xFE00, 0xFE0F}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8},
    };
    return cx_shown_acts(code) || (code >= 0x7F && in_ranges(code, unsafe, CX_COUNT_OF(unsafe))) ||
           (code & 0xFFFE) == 0xFFFE;
}

/* Columns of a terminal, by the blocks of East Asian Width W and F; combining marks take none. */
static uint32_t code_width(uint32_t code)
{
    static const code_range wide[] = {
        {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97C},
        {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},
        {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
        {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD},
    };
    static const code_range combining[] = {
        {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},   {0x64B, 0x65F},
        {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0xFE20, 0xFE2F},
    };
    if (code < 0x300)
        return 1;
    if (in_ranges(code, combining, CX_COUNT_OF(combining)))
        return 0;
    return in_ranges(code, wide, CX_COUNT_OF(wide)) ? 2 : 1;
}

/* One character as it will be shown. */
typedef struct shown {
    char text[16];
    uint32_t size;    /* bytes */
    uint32_t columns; /* on a terminal; markup of XML and DOT counts as what it stands for */
} shown;

static void show_z(shown *out, const char *text, uint32_t columns)
{
    out->size = (uint32_t)strlen(text);
    memcpy(out->text, text, out->size);
    out->columns = columns;
}

static void show_escape(shown *out, const char *format, unsigned value, render_escape escape)
{
    char digits[16];
    int size = snprintf(digits, sizeof digits, format, value);
    out->columns = (uint32_t)size;
    out->size = 0;
    out->text[out->size++] = '\\';
    if (escape == RENDER_DOT)
        out->text[out->size++] = '\\';
    memcpy(out->text + out->size, digits + 1, (size_t)size - 1);
    out->size += (uint32_t)size - 1;
}

/* True when it was a character with a meaning in the markup. */
static bool show_markup(shown *out, uint32_t code, render_escape escape)
{
    if (escape != RENDER_XML && escape != RENDER_DOT)
        return false;
    switch (code) {
    case '&': show_z(out, "&amp;", 1); return true;
    case '<': show_z(out, escape == RENDER_XML ? "&lt;" : "<", 1); return true;
    case '>': show_z(out, escape == RENDER_XML ? "&gt;" : ">", 1); return true;
    case '"': show_z(out, escape == RENDER_XML ? "&quot;" : "\\\"", 1); return true;
    case '\'': show_z(out, escape == RENDER_XML ? "&#39;" : "'", 1); return true;
    case '\\': show_z(out, escape == RENDER_XML ? "\\" : "\\\\", 1); return true;
    default: return false;
    }
}

/* Shows the character at the start of text and returns the bytes it took. */
static size_t show_next(shown *out, cx_str text, render_escape escape)
{
    const uint8_t *data = (const uint8_t *)text.data;
    size_t length = cx_utf8_sequence(data, text.size);
    bool surrogate = length == 0 && text.size >= 3 && data[0] == 0xED && (data[1] & 0xE0) == 0xA0 &&
                     (data[2] & 0xC0) == 0x80;
    if (length == 0 && !surrogate) {
        show_escape(out, "\\x%02x", data[0], escape);
        return 1;
    }
    uint32_t code = cx_utf8_decode(data, &length);
    if (is_unsafe(code) || (escape == RENDER_ASCII && code > 0x7E)) {
        show_escape(out, code > 0xFFFF ? "\\U%08x" : "\\u%04x", code, escape);
    } else if (!show_markup(out, code, escape)) {
        memcpy(out->text, data, length);
        out->size = (uint32_t)length;
        out->columns = code_width(code);
    }
    return length;
}

uint32_t cx_lattice_render_width(cx_str text, render_escape escape)
{
    uint32_t columns = 0;
    shown one;
    for (size_t at = 0; at < text.size && columns < RENDER_NO_LIMIT - 16;) {
        at += show_next(&one, (cx_str){text.data + at, text.size - at}, escape);
        columns += one.columns;
    }
    return columns;
}

/* The number of combining marks, which take no column, must be bounded. */
#define COMBINING_MAX 4

uint32_t cx_lattice_render_text(cx_buf *out, cx_str text, render_escape escape, uint32_t columns)
{
    if (columns == 0)
        return 0;
    bool fits = columns == RENDER_NO_LIMIT || cx_lattice_render_width(text, escape) <= columns;
    uint32_t room = fits ? columns : columns - 1;
    uint32_t used = 0, piled = 0;
    shown one;
    for (size_t at = 0; at < text.size;) {
        at += show_next(&one, (cx_str){text.data + at, text.size - at}, escape);
        piled = one.columns == 0 ? piled + 1 : 0;
        if (one.columns > room - used)
            break;
        if (piled <= COMBINING_MAX)
            cx_buf_add(out, one.text, one.size);
        used += one.columns;
    }
    if (!fits) {
        cx_buf_add_z(out, escape == RENDER_ASCII ? "~" : "\xE2\x80\xA6");
        used++;
    }
    return used;
}

/* --- names --------------------------------------------------------------------------------- */

cx_str cx_lattice_render_time(const cx_lattice *lattice, cx_node at, char scratch[32])
{
    const node *n = node_at(lattice, at);
    if ((n->flags & NODE_UNUSABLE) != 0)
        return (cx_str){"?", 1};
    if ((n->flags & NODE_TIME_BIG) != 0)
        return lattice->odd.items[n->time.i];
    size_t size;
    if ((n->flags & NODE_TIME_INT) != 0)
        size = (size_t)snprintf(scratch, 32, "%lld", (long long)n->time.i);
    else
        size = cx_number_write_py(n->time.d, scratch);
    return (cx_str){scratch, size};
}

cx_str cx_lattice_render_short_id(cx_str id)
{
    if (id.size != 64)
        return id;
    for (size_t i = 0; i < id.size; i++) {
        char c = id.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return id;
    }
    return (cx_str){id.data, 10};
}

const char *cx_lattice_render_fork(unsigned fork)
{
    switch (fork) {
    case CX_FORK_NATURAL: return "natural";
    case CX_FORK_OBSERVATION: return "observation";
    case CX_FORK_INJECTION: return "injection";
    case CX_FORK_UNKNOWN: return "unknown";
    default: return "";
    }
}

const char *cx_lattice_render_verdict(layout_verdict verdict)
{
    switch (verdict) {
    case LAYOUT_VALID: return "VALID";
    case LAYOUT_TAINTED: return "VALID (tainted)";
    case LAYOUT_INVALID: return "INVALID";
    default: return "";
    }
}

const char *cx_lattice_render_edge(unsigned type)
{
    switch (type) {
    case LAYOUT_LINEAGE: return "lineage";
    case LAYOUT_FORK: return "fork";
    case LAYOUT_MERGE: return "merge";
    default: return "causal";
    }
}

/* --- the JSON form: names in code point order, so that the line is canonical (§3.2) ---------- */

static void add_name(cx_buf *out, const char *name, bool first)
{
    cx_buf_add_z(out, first ? "\"" : ",\"");
    cx_buf_add_z(out, name);
    cx_buf_add_z(out, "\":");
}

static void add_count(cx_buf *out, const char *name, uint64_t value, bool first)
{
    add_name(out, name, first);
    cx_buf_add_u64(out, value);
}

static void add_text(cx_buf *out, const char *name, cx_str value, bool first)
{
    add_name(out, name, first);
    cx_json_write_str(out, value, CX_JSON_PY_COMPACT);
}

/* Null for an empty text. */
static void add_word(cx_buf *out, const char *name, const char *value, bool first)
{
    if (value[0] != '\0') {
        add_text(out, name, cx_str_z(value), first);
    } else {
        add_name(out, name, first);
        cx_buf_add_z(out, "null");
    }
}

static void add_row_number(cx_buf *out, const char *name, const picture *pic, uint32_t row)
{
    add_name(out, name, false);
    if (row == LAYOUT_OUTSIDE)
        cx_buf_add_z(out, "null");
    else
        cx_buf_add_u64(out, pic->layout->first + (uint64_t)row);
}

static void add_edge(cx_buf *out, const picture *pic, const layout_edge *edge)
{
    char child[16], parent[16];
    cx_buf_add_byte(out, '{');
    add_text(out, "child", cx_lattice_label(pic->lattice, edge->child, child), true);
    add_word(out, "fork", cx_lattice_render_fork(edge->fork), false);
    add_row_number(out, "from", pic, edge->from);
    add_text(out, "parent", cx_lattice_label(pic->lattice, edge->parent, parent), false);
    add_row_number(out, "to", pic, edge->to);
    add_word(out, "type", cx_lattice_render_edge(edge->type), false);
    cx_buf_add_byte(out, '}');
}

static void add_lane(cx_buf *out, const picture *pic, const layout_lane *lane)
{
    static const char *const words[] = {"", "VALID", "TAINTED", "INVALID"};
    cx_buf_add_byte(out, '{');
    add_text(out, "agent", layout_lane_name(pic->lattice, lane), true);
    add_count(out, "first", lane->first, false);
    add_count(out, "last", lane->last, false);
    add_count(out, "nodes", lane->node_count, false);
    add_word(out, "verdict", words[lane->verdict], false);
    cx_buf_add_byte(out, '}');
}

static void add_marks(cx_buf *out, unsigned marks)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{LAYOUT_HAS_ERROR, "error"},      {LAYOUT_IS_HEAD, "head"},
                 {LAYOUT_IS_FAILED, "failed"},     {LAYOUT_LEFT_OUT, "left_out"},
                 {LAYOUT_IS_MERGE, "merge"},       {LAYOUT_NO_ORDER, "no_order"},
                 {LAYOUT_IS_OVERRIDE, "override"}, {LAYOUT_IS_ROOT, "root"},
                 {LAYOUT_HAS_WARNING, "warning"}};
    const char *separator = "";
    cx_buf_add_byte(out, '[');
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        if ((marks & names[i].bit) == 0)
            continue;
        cx_buf_printf(out, "%s\"%s\"", separator, names[i].name);
        separator = ",";
    }
    cx_buf_add_byte(out, ']');
}

static void add_row(cx_buf *out, const picture *pic, const layout_row *row)
{
    char scratch[64];
    bool found = row->code != CX_LATTICE_CODE_COUNT;
    cx_buf_add_byte(out, '{');
    add_word(out, "code", found ? cx_lattice_code_name((cx_lattice_code)row->code) : "", true);
    add_count(out, "column", row->column, false);
    add_count(out, "findings", row->finding_count, false);
    add_count(out, "folded", row->folded, false);
    add_word(out, "fork", cx_lattice_render_fork(row->fork), false);
    add_text(out, "id", cx_lattice_label(pic->lattice, row->node, scratch), false);
    add_text(out, "label", row->label, false);
    add_count(out, "lane", row->lane, false);
    add_name(out, "marks", false);
    add_marks(out, row->marks);
    add_name(out, "seq", false);
    cx_buf_add_i64(out, node_at(pic->lattice, row->node)->seq);
    add_name(out, "time", false);
    cx_str time = cx_lattice_render_time(pic->lattice, row->node, scratch);
    cx_buf_add_str(out, cx_str_is(time, "?") || !pic->layout->timed ? CX_STR("null") : time);
    cx_buf_add_byte(out, '}');
}

cx_status cx_lattice_render_json(cx_buf *out, const picture *pic, cx_err *err)
{
    const layout *l = pic->layout;
    cx_buf_add_byte(out, '{');
    add_count(out, "columns", l->column_count, true);
    add_name(out, "edges", false);
    for (uint32_t i = 0; i < l->edge_count; i++) {
        cx_buf_add_byte(out, i == 0 ? '[' : ',');
        add_edge(out, pic, &l->edges[i]);
    }
    cx_buf_add_z(out, l->edge_count == 0 ? "[]" : "]");
    add_count(out, "first", l->first, false);
    add_name(out, "lanes", false);
    for (uint32_t i = 0; i < l->lane_count; i++) {
        cx_buf_add_byte(out, i == 0 ? '[' : ',');
        add_lane(out, pic, &l->lanes[i]);
    }
    cx_buf_add_z(out, l->lane_count == 0 ? "[]" : "]");
    add_count(out, "nodes", pic->lattice->nodes.count, false);
    add_name(out, "rows", false);
    for (uint32_t i = 0; i < l->row_count; i++) {
        cx_buf_add_byte(out, i == 0 ? '[' : ',');
        add_row(out, pic, &l->rows[i]);
    }
    cx_buf_add_z(out, l->row_count == 0 ? "[]" : "]");
    add_count(out, "total", l->row_total, false);
    const cx_lattice_report *report = pic->options->report;
    add_word(out, "verdict",
             report == NULL ? "" : cx_verdict_name(cx_lattice_report_verdict(report)), false);
    cx_buf_add_z(out, "}\n");
    return cx_buf_check(out, err);
}

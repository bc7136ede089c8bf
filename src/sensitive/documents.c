/*
 * documents.c - texts, JSON documents and JSON Lines: where something is, and masks in place.
 *
 * The walk over JSON asks for no valid JSON: it follows quotes and brackets, so that what a sender
 * truncated is scanned, too.
 */
#include <string.h>

#include "sensitive/sensitive.h"

/* Digits of a JSON number that can be a card's. */
#define NUMBER_MIN 14
#define NUMBER_MAX 19
/* Bytes of a name in a pointer. */
#define NAME_MAX_SHOWN 256

/* --- findings --------------------------------------------------------------------------------- */

void cx_sensitive_list_init(cx_sensitive_list *list, cx_arena *arena)
{
    *list = (cx_sensitive_list){.arena = arena};
}

static void add_finding(cx_sensitive_list *list, const cx_sensitive_finding *found)
{
    list->count++;
    list->masked += found->masked;
    if (list->listed == CX_SENSITIVE_LISTED_MAX || list->failed)
        return;
    if (list->items == NULL)
        list->items = CX_ARENA_ARRAY(list->arena, cx_sensitive_finding, CX_SENSITIVE_LISTED_MAX);
    cx_str pointer = cx_arena_copy_str(list->arena, found->pointer);
    if (list->items == NULL || pointer.data == NULL) {
        list->failed = true;
        return;
    }
    list->items[list->listed] = *found;
    list->items[list->listed++].pointer = pointer;
}

static bool is_below(cx_str pointer, const char *const *below)
{
    if (below[0] == NULL)
        return true;
    for (size_t i = 0; i < 2 && below[i] != NULL; i++) {
        size_t size = strlen(below[i]);
        if (pointer.size >= size && memcmp(pointer.data, below[i], size) == 0 &&
            (pointer.size == size || pointer.data[size] == '/'))
            return true;
    }
    return false;
}

/* S1.  `number` tells masks in names apart, which must stay different; 0 = none.  Ends of lines
 * stay. */
static void write_mask(uint8_t *to, size_t size, uint64_t number)
{
    static const char text[] = "[masked";
    bool is_long = size > sizeof text - 1;
    for (size_t i = 0; i < size; i++)
        if (to[i] != '\n' && to[i] != '\r')
            to[i] = (uint8_t)(is_long && i < sizeof text - 1 ? text[i] : '*');
    if (is_long)
        to[size - 1] = ']';
    for (size_t i = size - is_long; number != 0 && i > 1; number /= 10)
        to[--i] = (uint8_t)('0' + number % 10);
}

/* --- JSON ------------------------------------------------------------------------------------- */

typedef struct frame {
    bool is_object;
    size_t name, name_size; /* of the member, as it is written, without quotes */
    uint64_t index;         /* of the item */
} frame;

typedef struct walker {
    const cx_sensitive_rules *rules;
    const cx_sensitive_target *target;
    cx_str json;
    size_t base; /* of `json` in the target */
    uint64_t line;
    cx_sensitive_list *list;
    frame frames[CX_SENSITIVE_DEPTH_MAX];
    size_t depth; /* may be greater than there are frames */
    cx_buf text;  /* of a string with escapes */
    cx_buf pointer, name;
} walker;

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool read_code_unit(cx_str raw, size_t at, uint32_t *out)
{
    *out = 0;
    if (raw.size < 6 || at > raw.size - 6 || raw.data[at] != '\\' || raw.data[at + 1] != 'u')
        return false;
    for (size_t i = at + 2; i < at + 6; i++) {
        if (hex_digit(raw.data[i]) < 0)
            return false;
        *out = *out << 4 | (uint32_t)hex_digit(raw.data[i]);
    }
    return true;
}

/* One character of a string as it is written: bytes read, and what they say. */
static size_t read_character(cx_str raw, size_t at, uint8_t out[4], size_t *out_size)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    uint32_t code, low;
    *out_size = 1;
    out[0] = (uint8_t)raw.data[at];
    if (raw.data[at] != '\\' || at + 1 == raw.size)
        return 1;
    if (read_code_unit(raw, at, &code)) {
        bool pair = code >= 0xD800 && code < 0xDC00 && read_code_unit(raw, at + 6, &low) &&
                    low >= 0xDC00 && low < 0xE000;
        if (pair)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        *out_size = cx_utf8_encode(code, out);
        return pair ? 12 : 6;
    }
    const char *letter = strchr(letters, raw.data[at + 1]);
    out[0] = (uint8_t)(letter != NULL && *letter != 0 ? meant[letter - letters] : raw.data[at + 1]);
    return 2;
}

static cx_str decode_string(cx_str raw, cx_buf *out)
{
    uint8_t bytes[4];
    cx_buf_clear(out);
    for (size_t at = 0; at < raw.size;) {
        const char *slash = memchr(raw.data + at, '\\', raw.size - at);
        size_t plain = slash == NULL ? raw.size - at : (size_t)(slash - raw.data) - at, size;
        cx_buf_add(out, raw.data + at, plain);
        at += plain;
        if (at < raw.size) {
            at += read_character(raw, at, bytes, &size);
            cx_buf_add(out, bytes, size);
        }
    }
    return cx_buf_str(out);
}

/* S2: in a pointer, too.  A long name is left out as a whole: cut, it could end in half of one (and
 * S3: a name is read again for each finding below it). */
static void add_name(walker *w, cx_str raw)
{
    if (raw.size > NAME_MAX_SHOWN)
        raw = CX_STR("*");
    cx_str name = decode_string(raw, &w->name);
    cx_sensitive_hit hit;
    for (size_t at = 0; cx_sensitive_next(w->rules, name, &at, &hit);)
        memset(w->name.data + hit.offset, '*', hit.size);
    bool is_text = cx_utf8_valid(name);
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        if (c == '~' || c == '/')
            cx_buf_add_z(&w->pointer, c == '~' ? "~0" : "~1");
        else if (is_text || (uint8_t)c < 0x80)
            cx_buf_add_byte(&w->pointer, (uint8_t)c);
        else
            cx_buf_add_byte(&w->pointer, '?');
    }
}

static cx_str make_pointer(walker *w)
{
    size_t depth = w->depth < CX_SENSITIVE_DEPTH_MAX ? w->depth : CX_SENSITIVE_DEPTH_MAX;
    cx_buf_clear(&w->pointer);
    if (w->list->listed == CX_SENSITIVE_LISTED_MAX && w->target->mask_below[0] == NULL)
        return CX_STR(""); /* only counted */
    for (size_t i = 0; i < depth && w->pointer.size <= CX_SENSITIVE_POINTER_MAX; i++) {
        const frame *f = &w->frames[i];
        cx_buf_add_byte(&w->pointer, '/');
        if (f->is_object)
            add_name(w, cx_str_from(w->json.data + f->name, f->name_size));
        else
            cx_buf_add_u64(&w->pointer, f->index);
    }
    cx_str made = cx_buf_str(&w->pointer);
    while (made.size > CX_SENSITIVE_POINTER_MAX ||
           (made.size != 0 && !cx_utf8_valid(made))) /* cut between characters */
        made.size = made.size > CX_SENSITIVE_POINTER_MAX ? CX_SENSITIVE_POINTER_MAX : made.size - 1;
    return made;
}

/* Something at these bytes of the document. */
static void report_hit(walker *w, const cx_sensitive_hit *hit, size_t at, size_t size, bool is_name,
                       bool is_number)
{
    cx_sensitive_finding found = {.class_of = hit->class_of,
                                  .pattern = hit->pattern,
                                  .pointer = make_pointer(w),
                                  .line = w->line,
                                  .is_name = is_name};
    uint8_t *mask = w->target->mask;
    found.masked = mask != NULL &&
                   cx_sensitive_action_of(w->rules, hit->class_of) == CX_SENSITIVE_MASK &&
                   is_below(found.pointer, w->target->mask_below);
    add_finding(w->list, &found);
    if (!found.masked)
        return;
    if (is_number)
        memset(mask + w->base + at, '9', size);
    else
        write_mask(mask + w->base + at, size, is_name ? w->list->count : 0);
}

/* The string between these quotes; decoded when it has to be. */
static void scan_string(walker *w, size_t start, size_t size, bool is_name, bool escaped)
{
    cx_str raw = cx_str_from(w->json.data + start, size), text = raw;
    size_t from = 0, decoded = 0, length;
    uint8_t bytes[4];
    cx_sensitive_hit hit;
    if (escaped)
        text = decode_string(raw, &w->text);
    for (size_t at = 0; cx_sensitive_next(w->rules, text, &at, &hit);) {
        size_t end;
        if (!escaped) {
            report_hit(w, &hit, start + hit.offset, hit.size, is_name, false);
            continue;
        }
        for (; decoded < hit.offset; decoded += length)
            from += read_character(raw, from, bytes, &length);
        for (end = from; decoded < hit.offset + hit.size; decoded += length)
            end += read_character(raw, end, bytes, &length);
        report_hit(w, &hit, start + from, end - from, is_name, false);
        from = end;
    }
}

/* Where the string ends that begins after a quote: its closing quote, or the end of the text.
 * *out_coded: it has escapes that hide a character, and not only ends of lines and quotes. */
static size_t find_quote(cx_str json, size_t at, bool *out_coded)
{
    size_t quote = at;
    *out_coded = false;
    for (;;) {
        if (quote <= at) {
            const char *found = memchr(json.data + at, '"', json.size - at);
            if (found == NULL)
                return json.size;
            quote = (size_t)(found - json.data) + 1;
        }
        const char *slash = memchr(json.data + at, '\\', quote - 1 - at);
        if (slash == NULL)
            return quote - 1;
        at = (size_t)(slash - json.data) + 2;
        *out_coded |= at <= json.size && (slash[1] == 'u' || slash[1] == '/');
        if (at >= json.size)
            return json.size;
    }
}

static frame *current_frame(walker *w)
{
    return w->depth == 0 || w->depth > CX_SENSITIVE_DEPTH_MAX ? NULL : &w->frames[w->depth - 1];
}

static size_t scan_number(walker *w, size_t at)
{
    cx_sensitive_hit hit;
    size_t size = 0, next = 0;
    while (at + size < w->json.size && strchr("0123456789.eE+-", w->json.data[at + size]) != NULL &&
           w->json.data[at + size] != 0)
        size++;
    cx_str text = cx_str_from(w->json.data + at, size);
    if (size >= NUMBER_MIN && size <= NUMBER_MAX &&
        cx_sensitive_next(w->rules, text, &next, &hit) && hit.class_of == CX_SENSITIVE_CARD &&
        hit.size == size)
        report_hit(w, &hit, at, size, false, true);
    return at + (size == 0 ? 1 : size);
}

/* Any bytes: only strings and numbers matter, and what brackets say about their place. */
static void walk_json(walker *w)
{
    bool name_next = false;
    for (size_t at = 0; at < w->json.size;) {
        frame *f = current_frame(w);
        char c = w->json.data[at];
        if (c == '"') {
            bool coded;
            size_t end = find_quote(w->json, at + 1, &coded), size = end - at - 1;
            bool is_name = name_next && f != NULL && f->is_object;
            if (is_name) {
                f->name = at + 1;
                f->name_size = size;
            }
            scan_string(w, at + 1, size, is_name, coded);
            name_next = false;
            at = end + 1;
        } else if (c == '{' || c == '[') {
            if (w->depth++ < CX_SENSITIVE_DEPTH_MAX)
                w->frames[w->depth - 1] = (frame){.is_object = c == '{'};
            name_next = c == '{';
            at++;
        } else if (c == '}' || c == ']') {
            w->depth -= w->depth != 0;
            name_next = false;
            at++;
        } else if (c == ',') {
            if (f != NULL)
                f->index++;
            name_next = f != NULL && f->is_object;
            at++;
        } else if (c >= '0' && c <= '9') {
            at = scan_number(w, at);
        } else {
            at++;
        }
    }
}

static void scan_document(const cx_sensitive_rules *rules, const cx_sensitive_target *target,
                          size_t base, size_t size, uint64_t line, cx_sensitive_list *list)
{
    walker w;
    w.rules = rules;
    w.target = target;
    w.json = cx_str_from((const char *)target->bytes + base, size);
    w.base = base;
    w.line = line;
    w.list = list;
    w.depth = 0;
    cx_buf_init(&w.text, list->arena->alloc);
    cx_buf_init(&w.pointer, list->arena->alloc);
    cx_buf_init(&w.name, list->arena->alloc);
    walk_json(&w);
    if (cx_failed(cx_buf_check(&w.text, NULL)) || cx_failed(cx_buf_check(&w.pointer, NULL)) ||
        cx_failed(cx_buf_check(&w.name, NULL)))
        list->failed = true;
    cx_buf_done(&w.name);
    cx_buf_done(&w.pointer);
    cx_buf_done(&w.text);
}

/* --- texts and lines -------------------------------------------------------------------------- */

static void scan_stretch(const cx_sensitive_rules *rules, const cx_sensitive_target *target,
                         size_t base, size_t size, cx_str pointer, uint64_t line,
                         cx_sensitive_list *list)
{
    cx_str text = cx_str_from((const char *)target->bytes + base, size);
    cx_sensitive_hit hit;
    size_t counted = 0;
    for (size_t at = 0; cx_sensitive_next(rules, text, &at, &hit);) {
        cx_sensitive_finding found = {
            .class_of = hit.class_of, .pattern = hit.pattern, .pointer = pointer};
        for (; line != 0 && counted < hit.offset; counted++)
            line += text.data[counted] == '\n';
        found.line = line;
        found.masked = target->mask != NULL &&
                       cx_sensitive_action_of(rules, hit.class_of) == CX_SENSITIVE_MASK &&
                       is_below(pointer, target->mask_below);
        add_finding(list, &found);
        if (found.masked)
            write_mask(target->mask + base + hit.offset, hit.size, 0);
    }
}

void cx_sensitive_scan_text(const cx_sensitive_rules *rules, const cx_sensitive_target *target,
                            cx_str pointer, cx_sensitive_list *list)
{
    if (cx_sensitive_is_on(rules) && target->size != 0)
        scan_stretch(rules, target, 0, target->size, pointer, 0, list);
}

void cx_sensitive_scan_json(const cx_sensitive_rules *rules, const cx_sensitive_target *target,
                            cx_sensitive_list *list)
{
    if (cx_sensitive_is_on(rules) && target->size != 0)
        scan_document(rules, target, 0, target->size, 0, list);
}

void cx_sensitive_scan_lines(const cx_sensitive_rules *rules, const cx_sensitive_target *target,
                             cx_sensitive_list *list)
{
    size_t stretch = 0; /* of lines that are no JSON: scanned as one text */
    uint64_t line = 1, stretch_line = 1;
    if (!cx_sensitive_is_on(rules))
        return;
    for (size_t at = 0; at < target->size; line++) {
        const uint8_t *feed = memchr(target->bytes + at, '\n', target->size - at);
        size_t end = feed == NULL ? target->size : (size_t)(feed - target->bytes) + 1;
        if (target->bytes[at] == '{' || target->bytes[at] == '[') {
            scan_stretch(rules, target, stretch, at - stretch, CX_STR(""), stretch_line, list);
            scan_document(rules, target, at, end - at, line, list);
            stretch = end;
            stretch_line = line + 1;
        }
        at = end;
    }
    if (stretch < target->size)
        scan_stretch(rules, target, stretch, target->size - stretch, CX_STR(""), stretch_line,
                     list);
}

bool cx_sensitive_scan_number(const cx_sensitive_rules *rules, uint64_t number, cx_str pointer,
                              cx_sensitive_list *list, bool *out_mask, bool may_mask)
{
    char text[24];
    size_t at = sizeof text, next = 0;
    cx_sensitive_hit hit;
    *out_mask = false;
    for (; number != 0; number /= 10)
        text[--at] = (char)('0' + number % 10);
    if (!cx_sensitive_next(rules, cx_str_from(text + at, sizeof text - at), &next, &hit) ||
        hit.class_of != CX_SENSITIVE_CARD)
        return false;
    *out_mask = may_mask && cx_sensitive_action_of(rules, CX_SENSITIVE_CARD) == CX_SENSITIVE_MASK;
    const cx_sensitive_finding found = {
        .class_of = hit.class_of, .pattern = hit.pattern, .pointer = pointer, .masked = *out_mask};
    add_finding(list, &found);
    return true;
}

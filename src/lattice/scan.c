/*
 * scan.c - an ordinary line becomes a node of the batch without making values of it.
 *
 * Nearly all lines of nearly all files are objects with the fields of §2 and little else, in plain
 * JSON.  Their event and delta are only hashed or kept: they are written in canonical form while
 * they are read (json/recode.h), the event right where its pre-image will stand, and all other
 * fields are slices of the input.
 *
 * A line that is anything else is declined, and read the general way.  Declining leaves no trace,
 * so there are no two opinions about what is wrong with a line: only record.c says that.
 */
#include "lattice/record.h"

#define MOST_PARENTS 16
#define MOST_UNKNOWN 8
#define MOST_SCALARS 8
/* The event is written this far after the work so far: prev_hash comes before it, at its end. */
#define PREV_BYTES 64
/* Room is made for all that is left of a block, at once; a block of a few huge lines is not for
 * us. */
#define MOST_BYTES ((size_t)4 << 20)

typedef struct scan {
    cx_json_recoder *recoder;
    expected_name *expected; /* for the next name */
    const expected_name *expected_end;
    const char *lf; /* after the line, or at its end */
    record r;
    uint8_t *event; /* where to write it */
    uint8_t *delta;
    bool keeps_delta;
    cx_json object; /* stands for the event and the delta: an object without members */
    cx_json list;
    cx_json parents[MOST_PARENTS];
    cx_json scalars[MOST_SCALARS];
    uint32_t scalar_count;
    uint32_t unknown_count;
    cx_str unknown[MOST_UNKNOWN]; /* names of members that are no field */
} scan;

/* The text of a string in canonical form, data NULL when the value is none. */
static cx_str string_inside(cx_str value)
{
    return value.data[0] == '"' ? (cx_str){value.data + 1, value.size - 2} : (cx_str){NULL, 0};
}

static const char *scan_event(scan *s, const char *at)
{
    at = cx_json_recode_blanks(at);
    size_t size;
    if (*at != '{' || (at = cx_json_recode(s->recoder, at, s->lf, s->event, &size)) == NULL)
        return NULL;
    s->r.fields.event = &s->object;
    s->r.inside.head = (cx_str){(const char *)s->event, size};
    for (uint32_t i = 0; i < s->recoder->part_count; i++) {
        const cx_json_part *part = &s->recoder->parts[i];
        if (cx_str_is(part->name, "__seal")) {
            s->r.inside.has_seal = true;
            s->r.inside.seal = string_inside(part->value);
        } else if (cx_str_is(part->name, "merge_strategy")) {
            s->r.inside.strategy = string_inside(part->value);
        } else if (cx_lattice_failed_member(part->name, part->value)) {
            s->r.inside.failed = true;
        }
    }
    return at;
}

/* The bracket that the value of a section starts with (§2), 0 for other names. */
static char section_bracket(cx_str name)
{
    switch (name.size) {
    case 5: return cx_str_is(name, "goals") ? '[' : 0;
    case 6: return cx_str_is(name, "memory") ? '{' : 0;
    case 7: return cx_str_is(name, "beliefs") ? '{' : 0;
    case 13: return cx_str_is(name, "context_stack") ? '[' : 0;
    default: return 0;
    }
}

static const char *scan_delta(scan *s, const char *at)
{
    at = cx_json_recode_blanks(at);
    /* Without a seal to check it need not be written; that is known after the event only. */
    bool is_written = s->keeps_delta || s->r.inside.has_seal || s->r.fields.event == NULL;
    size_t size = 0;
    if (*at != '{')
        return NULL;
    at = cx_json_recode(s->recoder, at, s->lf, is_written ? s->delta : NULL, &size);
    if (at == NULL)
        return NULL;
    for (uint32_t i = 0; i < s->recoder->part_count; i++) {
        const cx_json_part *part = &s->recoder->parts[i];
        char bracket = section_bracket(part->name);
        if (bracket != 0 && part->value.data[0] != bracket)
            return NULL;
    }
    s->r.fields.state_delta = &s->object;
    if (is_written)
        s->r.inside.delta = (cx_str){(const char *)s->delta, size};
    return at;
}

static const char *scan_parents(scan *s, const char *at)
{
    s->r.fields.parents = &s->list;
    at = cx_json_recode_blanks(at);
    if (*at != '[')
        return cx_json_recode_scalar(s->recoder, at, &s->list);
    s->list = (cx_json){.type = CX_JSON_ARRAY, .items = s->parents};
    at = cx_json_recode_blanks(at + 1);
    if (*at == ']')
        return at + 1;
    for (;;) {
        if (s->list.count == MOST_PARENTS)
            return NULL;
        at = cx_json_recode_scalar(s->recoder, at, &s->parents[s->list.count++]);
        if (at == NULL)
            return NULL;
        at = cx_json_recode_blanks(at);
        if (*at == ']')
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

/* No field of ours, but it must be JSON and its name must be the only one. */
static const char *scan_unknown(scan *s, cx_str name, const char *at)
{
    for (uint32_t i = 0; i < s->unknown_count; i++)
        if (cx_str_eq(s->unknown[i], name))
            return NULL;
    if (s->unknown_count == MOST_UNKNOWN)
        return NULL;
    s->unknown[s->unknown_count++] = name;
    size_t size;
    return cx_json_recode(s->recoder, at, s->lf, NULL, &size);
}

static void expect_name(expected_name *name, const char *at, size_t size, size_t slot)
{
    char text[16] = {0}, mask[16] = {0};
    if (size > sizeof text)
        return;
    memcpy(text, at, size);
    memset(mask, 0xFF, size);
    memcpy(name->text, text, sizeof text);
    memcpy(name->mask, mask, sizeof mask);
    name->size = (uint8_t)size;
    name->slot = (uint8_t)slot;
}

static inline bool is_expected(const expected_name *name, const char *at)
{
    uint64_t words[2];
    memcpy(words, at, sizeof words);
    return (((words[0] ^ name->text[0]) & name->mask[0]) |
            ((words[1] ^ name->text[1]) & name->mask[1])) == 0 &&
           name->size != 0;
}

/* After the name of a member; *out_slot NULL means that its value was read as well. */
static const char *scan_name(scan *s, const char *at, const cx_json ***out_slot)
{
    char *fields = (char *)&s->r.fields;
    expected_name *expected = s->expected < s->expected_end ? s->expected++ : NULL;
    if (CX_LIKELY(expected != NULL && is_expected(expected, at))) {
        *out_slot = (const cx_json **)(void *)(fields + expected->slot);
        return at + expected->size;
    }
    cx_str name;
    const char *after = cx_json_recode_name(at, &name);
    if (after == NULL)
        return NULL;
    *out_slot = cx_lattice_field_slot(&s->r.fields, name);
    if (*out_slot == NULL)
        return scan_unknown(s, name, after);
    if (expected != NULL)
        expect_name(expected, at, (size_t)(after - at), (size_t)((char *)*out_slot - fields));
    return after;
}

static const char *scan_member(scan *s, const char *at)
{
    const cx_json **slot;
    at = scan_name(s, at, &slot);
    if (at == NULL || slot == NULL)
        return at;
    if (*slot != NULL)
        return NULL; /* twice */
    if (slot == &s->r.fields.event)
        return scan_event(s, at);
    if (slot == &s->r.fields.state_delta)
        return scan_delta(s, at);
    if (slot == &s->r.fields.parents)
        return scan_parents(s, at);
    cx_json *value = &s->scalars[s->scalar_count++];
    *slot = value;
    return cx_json_recode_scalar(s->recoder, at, value);
}

/* After the LF of the line, NULL when it is not ordinary. */
static const char *scan_line(scan *s, const char *at)
{
    if (*at != '{')
        return NULL;
    do {
        at = scan_member(s, at + 1);
        if (at == NULL)
            return NULL;
        at = cx_json_recode_blanks(at);
    } while (*at == ',');
    if (*at++ != '}')
        return NULL;
    at += *at == '\r';
    return *at == '\n' ? at + 1 : NULL;
}

/* Puts prev_hash before the event; false when the record lacks one of them, or a delta. */
static bool complete_head(scan *s)
{
    const cx_json *prev = s->r.fields.prev_hash;
    if (s->r.fields.event == NULL || s->r.fields.state_delta == NULL || prev == NULL ||
        prev->type != CX_JSON_STRING || prev->count > PREV_BYTES)
        return false;
    uint8_t *head = s->event - prev->count;
    memcpy(head, prev->text, prev->count);
    s->r.inside.head = (cx_str){(const char *)head, s->r.inside.head.size + prev->count};
    return true;
}

const char *cx_lattice_scan_limit(cx_str input)
{
    return input.size <= CX_JSON_RECODE_SLACK
               ? NULL
               : cx_bytes_last(input.data, '\n', input.size - CX_JSON_RECODE_SLACK);
}

/* Piece by piece, as clear_draft in record.c: for one large object the compiler calls for a loop
 * whose start alone costs more. */
static void clear_record(record *r)
{
    record_fields *f = &r->fields;
    f->node_id = f->agent_id = f->seq = f->timestamp = f->event = f->state_delta = NULL;
    f->prev_hash = f->hash = f->parents = f->fork_type = f->schema_version = NULL;
    r->inside = (record_inside){0};
}

cx_status cx_lattice_batch_scan(batch *b, const char *at, const char *last_lf, cx_str version,
                                uint64_t offset, uint64_t line, const char **out_next, cx_err *err)
{
    *out_next = NULL;
    size_t left = (size_t)(last_lf - at) + 1;
    if (left > MOST_BYTES)
        return CX_SUCCESS;
    uint8_t *work = cx_buf_reserve(&b->work, PREV_BYTES + CX_JSON_RECODE_EXTRA_BYTES(left));
    uint8_t *deltas = cx_buf_reserve(&b->deltas, CX_JSON_RECODE_EXTRA_BYTES(left));
    if (work == NULL || deltas == NULL)
        return cx_fail_nomem(err);
    scan s;
    s.recoder = &b->recoder;
    s.expected = b->expected;
    s.expected_end = b->expected + BATCH_EXPECTED;
    s.lf = last_lf;
    s.keeps_delta = b->keep_deltas || b->keep_seals;
    clear_record(&s.r);
    s.event = work + PREV_BYTES;
    s.delta = deltas;
    s.object = (cx_json){.type = CX_JSON_OBJECT};
    s.scalar_count = s.unknown_count = 0;
    const char *after = scan_line(&s, at);
    if (after == NULL || !complete_head(&s))
        return CX_SUCCESS;
    *out_next = after;
    return cx_lattice_batch_add_record(b, &s.r, version, offset, line, err);
}

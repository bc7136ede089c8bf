/*
 * otlp_proto.c - a table of the messages, and one reader for all of them.
 *
 * Fields of a message may come in any order and repeated ones apart from each other, while JSON
 * requires each name once; so a message is walked once for each field that it contains.
 *
 * I1  A message is checked as a whole (tags, lengths) before any of it is written.
 * I2  Every field of the input is written exactly once: under its name, or under "_unknown".
 */
#include "import/otlp_proto.h"

#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"
#include "json/api.h"

/* --- the wire --------------------------------------------------------------------------------- */

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

typedef struct field {
    uint64_t number;
    unsigned wire;
    uint64_t value; /* of a varint or a fixed one */
    cx_bytes bytes;
    uint64_t offset; /* in the request */
} field;

typedef struct message {
    const uint8_t *at, *end;
} message;

typedef struct walk {
    const uint8_t *start; /* of the request, for offsets */
    cx_buf *out;
    uint64_t records;
    cx_err *err;
} walk;

static cx_status malformed(walk *w, const uint8_t *at, const char *what)
{
    return cx_fail_at(w->err, CX_E_SYNTAX, "U_PROTOBUF", (uint64_t)(at - w->start),
                      "not OTLP protobuf: %s at byte %llu", what,
                      (unsigned long long)(at - w->start));
}

static bool read_varint(message *m, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && m->at < m->end; shift += 7) {
        uint8_t byte = *m->at++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

static uint64_t little_endian(const uint8_t *at, size_t size)
{
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static cx_status read_fixed(walk *w, message *m, size_t size, uint64_t *out)
{
    if ((size_t)(m->end - m->at) < size)
        return malformed(w, m->at, "a field is truncated");
    *out = little_endian(m->at, size);
    m->at += size;
    return CX_SUCCESS;
}

/* The next field; the message must not be at its end. */
static cx_status read_field(walk *w, message *m, field *out)
{
    uint64_t tag, size;
    const uint8_t *start = m->at;
    if (!read_varint(m, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF)
        return malformed(w, start, "expected a field's tag");
    *out = (field){.number = tag >> 3, .wire = (unsigned)(tag & 7)};
    out->offset = (uint64_t)(start - w->start);
    switch (out->wire) {
    case WIRE_VARINT:
        if (!read_varint(m, &out->value))
            return malformed(w, m->at, "a number is truncated");
        return CX_SUCCESS;
    case WIRE_FIXED64: return read_fixed(w, m, 8, &out->value);
    case WIRE_FIXED32: return read_fixed(w, m, 4, &out->value);
    case WIRE_BYTES:
        start = m->at;
        if (!read_varint(m, &size) || size > (uint64_t)(m->end - m->at))
            return malformed(w, start, "a length exceeds its message");
        out->bytes = cx_bytes_from(m->at, (size_t)size);
        m->at += size;
        return CX_SUCCESS;
    default: return malformed(w, start, "a wire type that proto3 does not have");
    }
}

/* --- the messages ----------------------------------------------------------------------------- */

typedef enum kind {
    TEXT,
    HEX,    /* ids */
    BASE64, /* bytes */
    NUMBER, /* int32, uint32, enum, fixed32; a negative one is a varint of 64 bits */
    COUNT,  /* uint64, fixed64: text in JSON */
    SIGNED, /* int64: text in JSON */
    REAL,
    FLAG,
    MESSAGE
} kind;

typedef struct shape shape;

typedef struct member {
    uint32_t number;
    kind is;
    bool repeated;
    const char *name;
    const shape *of; /* of a message */
} member;

struct shape {
    const member *members;
    size_t count;
    bool is_record; /* a span or log record: counted */
};

static const shape any_value, key_value;

#define SHAPE(name, record, ...)                          \
    static const member name##_members[] = {__VA_ARGS__}; \
    static const shape name = {name##_members, sizeof name##_members / sizeof(member), (record)}

#define ATTRIBUTES(number)                                \
    {                                                     \
        (number), MESSAGE, true, "attributes", &key_value \
    }
#define PLAIN(number, is, name)           \
    {                                     \
        (number), (is), false, name, NULL \
    }
#define ONE(number, name, of)                 \
    {                                         \
        (number), MESSAGE, false, name, &(of) \
    }
#define MANY(number, name, of)               \
    {                                        \
        (number), MESSAGE, true, name, &(of) \
    }

SHAPE(array_value, false, MANY(1, "values", any_value));
SHAPE(key_value_list, false, MANY(1, "values", key_value));

static const member any_value_members[] = {
    PLAIN(1, TEXT, "stringValue"),     PLAIN(2, FLAG, "boolValue"),
    PLAIN(3, SIGNED, "intValue"),      PLAIN(4, REAL, "doubleValue"),
    ONE(5, "arrayValue", array_value), ONE(6, "kvlistValue", key_value_list),
    PLAIN(7, BASE64, "bytesValue"),
};
static const shape any_value = {any_value_members, 7, false};

static const member key_value_members[] = {PLAIN(1, TEXT, "key"), ONE(2, "value", any_value)};
static const shape key_value = {key_value_members, 2, false};

SHAPE(resource, false, ATTRIBUTES(1), PLAIN(2, NUMBER, "droppedAttributesCount"));
SHAPE(scope, false, PLAIN(1, TEXT, "name"), PLAIN(2, TEXT, "version"), ATTRIBUTES(3),
      PLAIN(4, NUMBER, "droppedAttributesCount"));

SHAPE(span_event, false, PLAIN(1, COUNT, "timeUnixNano"), PLAIN(2, TEXT, "name"), ATTRIBUTES(3),
      PLAIN(4, NUMBER, "droppedAttributesCount"));
SHAPE(span_link, false, PLAIN(1, HEX, "traceId"), PLAIN(2, HEX, "spanId"),
      PLAIN(3, TEXT, "traceState"), ATTRIBUTES(4), PLAIN(5, NUMBER, "droppedAttributesCount"),
      PLAIN(6, NUMBER, "flags"));
SHAPE(span_status, false, PLAIN(2, TEXT, "message"), PLAIN(3, NUMBER, "code"));
SHAPE(span, true, PLAIN(1, HEX, "traceId"), PLAIN(2, HEX, "spanId"), PLAIN(3, TEXT, "traceState"),
      PLAIN(4, HEX, "parentSpanId"), PLAIN(5, TEXT, "name"), PLAIN(6, NUMBER, "kind"),
      PLAIN(7, COUNT, "startTimeUnixNano"), PLAIN(8, COUNT, "endTimeUnixNano"), ATTRIBUTES(9),
      PLAIN(10, NUMBER, "droppedAttributesCount"), MANY(11, "events", span_event),
      PLAIN(12, NUMBER, "droppedEventsCount"), MANY(13, "links", span_link),
      PLAIN(14, NUMBER, "droppedLinksCount"), ONE(15, "status", span_status),
      PLAIN(16, NUMBER, "flags"));
SHAPE(scope_spans, false, ONE(1, "scope", scope), MANY(2, "spans", span),
      PLAIN(3, TEXT, "schemaUrl"));
SHAPE(resource_spans, false, ONE(1, "resource", resource), MANY(2, "scopeSpans", scope_spans),
      PLAIN(3, TEXT, "schemaUrl"));
SHAPE(traces_request, false, MANY(1, "resourceSpans", resource_spans));

SHAPE(log_record, true, PLAIN(1, COUNT, "timeUnixNano"), PLAIN(2, NUMBER, "severityNumber"),
      PLAIN(3, TEXT, "severityText"), ONE(5, "body", any_value), ATTRIBUTES(6),
      PLAIN(7, NUMBER, "droppedAttributesCount"), PLAIN(8, NUMBER, "flags"),
      PLAIN(9, HEX, "traceId"), PLAIN(10, HEX, "spanId"), PLAIN(11, COUNT, "observedTimeUnixNano"),
      PLAIN(12, TEXT, "eventName"));
SHAPE(scope_logs, false, ONE(1, "scope", scope), MANY(2, "logRecords", log_record),
      PLAIN(3, TEXT, "schemaUrl"));
SHAPE(resource_logs, false, ONE(1, "resource", resource), MANY(2, "scopeLogs", scope_logs),
      PLAIN(3, TEXT, "schemaUrl"));
SHAPE(logs_request, false, MANY(1, "resourceLogs", resource_logs));

/* Whether a field has the wire type of its member; flags and times are fixed on the wire, counts
 * are not, and a sender that confuses them is accepted where the value is the same. */
static bool field_matches(const member *m, const field *f)
{
    switch (m->is) {
    case TEXT:
    case HEX:
    case BASE64:
    case MESSAGE: return f->wire == WIRE_BYTES;
    case REAL: return f->wire == WIRE_FIXED64;
    case FLAG: return f->wire == WIRE_VARINT;
    case NUMBER: return f->wire == WIRE_VARINT || f->wire == WIRE_FIXED32;
    case COUNT:
    case SIGNED: return f->wire == WIRE_VARINT || f->wire == WIRE_FIXED64;
    }
    return false;
}

static size_t find_member(const shape *of, const field *f)
{
    for (size_t i = 0; i < of->count; i++)
        if (of->members[i].number == f->number && field_matches(&of->members[i], f))
            return i;
    return of->count;
}

/* --- writing ---------------------------------------------------------------------------------- */

static cx_status write_message(walk *w, const shape *of, cx_bytes bytes, unsigned depth);

static void write_name(walk *w, const char *name)
{
    uint8_t last = w->out->size == 0 ? 0 : w->out->data[w->out->size - 1];
    if (last != '{')
        cx_buf_add_byte(w->out, ',');
    cx_buf_add_byte(w->out, '"');
    cx_buf_add_z(w->out, name);
    cx_buf_add_z(w->out, "\":");
}

static void write_quoted_hex(walk *w, cx_bytes bytes)
{
    cx_buf_add_byte(w->out, '"');
    cx_hex_add(w->out, bytes);
    cx_buf_add_byte(w->out, '"');
}

/* Finite numbers as JSON numbers; the others as text, as OTLP/JSON requires. */
static void write_real(walk *w, uint64_t bits)
{
    double value;
    char text[CX_NUMBER_TEXT_SIZE];
    memcpy(&value, &bits, sizeof value);
    if (value != value)
        cx_buf_add_z(w->out, "\"NaN\"");
    else if (value > 1.7976931348623157e308 || value < -1.7976931348623157e308)
        cx_buf_add_z(w->out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else
        cx_buf_add(w->out, text, cx_number_write_py(value, text));
}

static cx_status write_value(walk *w, const member *m, const field *f, unsigned depth)
{
    switch (m->is) {
    case MESSAGE: return write_message(w, m->of, f->bytes, depth + 1);
    case TEXT: {
        cx_str text = cx_bytes_str(f->bytes);
        if (!cx_utf8_valid(text))
            return cx_fail_at(w->err, CX_E_FORMAT, "U_UTF8", f->offset,
                              "not OTLP protobuf: the text '%s' at byte %llu is not UTF-8", m->name,
                              (unsigned long long)f->offset);
        cx_json_write_str(w->out, text, CX_JSON_JCS);
        return CX_SUCCESS;
    }
    case HEX: write_quoted_hex(w, f->bytes); return CX_SUCCESS;
    case BASE64:
        cx_buf_add_byte(w->out, '"');
        cx_base64_add(w->out, f->bytes, CX_BASE64);
        cx_buf_add_byte(w->out, '"');
        return CX_SUCCESS;
    case NUMBER: cx_buf_add_i64(w->out, (int64_t)f->value); return CX_SUCCESS;
    case COUNT:
        cx_buf_add_byte(w->out, '"');
        cx_buf_add_u64(w->out, f->value);
        cx_buf_add_byte(w->out, '"');
        return CX_SUCCESS;
    case SIGNED:
        cx_buf_add_byte(w->out, '"');
        cx_buf_add_i64(w->out, (int64_t)f->value);
        cx_buf_add_byte(w->out, '"');
        return CX_SUCCESS;
    case REAL: write_real(w, f->value); return CX_SUCCESS;
    case FLAG: cx_buf_add_z(w->out, f->value != 0 ? "true" : "false"); return CX_SUCCESS;
    }
    return CX_SUCCESS;
}

/* All values of one member: a list, or the last one; earlier ones of a single member are
 * unknown. */
static cx_status write_member(walk *w, const shape *of, size_t index, cx_bytes bytes,
                              unsigned depth)
{
    const member *m = &of->members[index];
    message scan = {bytes.data, bytes.data + bytes.size};
    field f, last = {0};
    bool first = true;
    write_name(w, m->name);
    if (m->repeated)
        cx_buf_add_byte(w->out, '[');
    while (scan.at < scan.end) {
        CX_TRY(read_field(w, &scan, &f));
        if (find_member(of, &f) != index)
            continue;
        last = f;
        if (!m->repeated)
            continue;
        if (!first)
            cx_buf_add_byte(w->out, ',');
        first = false;
        CX_TRY(write_value(w, m, &f, depth));
    }
    if (!m->repeated)
        return write_value(w, m, &last, depth);
    cx_buf_add_byte(w->out, ']');
    return CX_SUCCESS;
}

static void write_unknown(walk *w, const field *f)
{
    static const char *const wires[] = {"varint", "fixed64", "bytes", "", "", "fixed32"};
    cx_buf_printf(w->out, "{\"field\":%llu,\"value\":\"", (unsigned long long)f->number);
    if (f->wire == WIRE_BYTES)
        cx_hex_add(w->out, f->bytes);
    else if (f->wire == WIRE_VARINT)
        cx_buf_add_u64(w->out, f->value);
    else
        cx_buf_printf(w->out, f->wire == WIRE_FIXED64 ? "%016llx" : "%08llx",
                      (unsigned long long)f->value);
    cx_buf_printf(w->out, "\",\"wire\":\"%s\"}", wires[f->wire]);
}

typedef struct tally {
    uint32_t seen[16]; /* of each member */
    bool unknown;
} tally;

/* I1 */
static cx_status count_fields(walk *w, const shape *of, cx_bytes bytes, tally *out)
{
    message scan = {bytes.data, bytes.data + bytes.size};
    field f;
    memset(out, 0, sizeof *out);
    while (scan.at < scan.end) {
        CX_TRY(read_field(w, &scan, &f));
        size_t index = find_member(of, &f);
        if (index == of->count || (out->seen[index]++ != 0 && !of->members[index].repeated))
            out->unknown = true;
    }
    return CX_SUCCESS;
}

static cx_status write_unknown_fields(walk *w, const shape *of, cx_bytes bytes, tally *left)
{
    message scan = {bytes.data, bytes.data + bytes.size};
    field f;
    bool first = true;
    write_name(w, "_unknown");
    cx_buf_add_byte(w->out, '[');
    while (scan.at < scan.end) {
        CX_TRY(read_field(w, &scan, &f));
        size_t index = find_member(of, &f);
        /* The last occurrence of a single member is written under its name. */
        if (index < of->count && (of->members[index].repeated || --left->seen[index] == 0))
            continue;
        if (!first)
            cx_buf_add_byte(w->out, ',');
        first = false;
        write_unknown(w, &f);
    }
    cx_buf_add_byte(w->out, ']');
    return CX_SUCCESS;
}

static cx_status write_message(walk *w, const shape *of, cx_bytes bytes, unsigned depth)
{
    tally found;
    if (depth > CX_OTLP_DEPTH_MAX)
        return cx_fail_at(w->err, CX_E_LIMIT, "U_DEPTH", (uint64_t)(bytes.data - w->start),
                          "OTLP values nest more than %d levels", CX_OTLP_DEPTH_MAX);
    if (w->out->size > CX_OTLP_JSON_BYTES_MAX)
        return cx_fail_at(w->err, CX_E_LIMIT, "U_LIMIT", (uint64_t)(bytes.data - w->start),
                          "the request is more than %llu bytes as JSON: send smaller batches",
                          (unsigned long long)CX_OTLP_JSON_BYTES_MAX);
    CX_TRY(count_fields(w, of, bytes, &found));
    w->records += of->is_record;
    cx_buf_add_byte(w->out, '{');
    for (size_t i = 0; i < of->count; i++)
        if (found.seen[i] != 0)
            CX_TRY(write_member(w, of, i, bytes, depth));
    if (found.unknown)
        CX_TRY(write_unknown_fields(w, of, bytes, &found));
    cx_buf_add_byte(w->out, '}');
    return CX_SUCCESS;
}

/* --- secrets and personal data ---------------------------------------------------------------- */

typedef struct screening {
    const uint8_t *start;
    const cx_sensitive_rules *rules;
    const cx_sensitive_target *target;
    cx_sensitive_list *list;
    walk wire;
    char pointer[CX_SENSITIVE_POINTER_MAX]; /* of the message; a deeper one is cut */
    size_t size;
} screening;

static void screen_bytes(screening *s, cx_bytes bytes, bool may_mask)
{
    size_t at = (size_t)(bytes.data - s->start);
    const cx_sensitive_target target = {
        .bytes = bytes.data,
        .size = bytes.size,
        .mask = may_mask && s->target->mask != NULL ? s->target->mask + at : NULL};
    cx_sensitive_scan_text(s->rules, &target, cx_str_from(s->pointer, s->size), s->list);
}

/* A varint of the same length that is no card's number. */
static void screen_number(screening *s, const field *f, const uint8_t *end)
{
    bool mask = false;
    if (!cx_sensitive_scan_number(s->rules, f->value, cx_str_from(s->pointer, s->size), s->list,
                                  &mask, s->target->mask != NULL) ||
        !mask)
        return;
    size_t last = (size_t)(end - s->start) - 1, at = last;
    s->target->mask[last] = 0x7F;
    while (at > 0 && (s->start[at - 1] & 0x80) != 0 && last - at < 8)
        s->target->mask[--at] = 0xFF;
}

static void add_step(screening *s, const char *name, bool is_item, uint32_t index)
{
    int added = is_item ? snprintf(s->pointer + s->size, sizeof s->pointer - s->size, "/%s/%u",
                                   name, (unsigned)index)
                        : snprintf(s->pointer + s->size, sizeof s->pointer - s->size, "/%s", name);
    if (added > 0 && (size_t)added < sizeof s->pointer - s->size)
        s->size += (size_t)added;
}

static void screen_message(screening *s, const shape *of, cx_bytes bytes, unsigned depth)
{
    message scan = {bytes.data, bytes.data + bytes.size};
    uint32_t seen[16] = {0};
    field f;
    const size_t before = s->size;
    while (scan.at < scan.end && !cx_failed(read_field(&s->wire, &scan, &f))) {
        size_t index = find_member(of, &f);
        if (index == of->count || depth > CX_OTLP_DEPTH_MAX) {
            add_step(s, "_unknown", false, 0);
            if (f.wire == WIRE_BYTES)
                screen_bytes(s, f.bytes, false);
        } else {
            const member *m = &of->members[index];
            add_step(s, m->name, m->repeated, seen[index]++);
            if (m->is == MESSAGE)
                screen_message(s, m->of, f.bytes, depth + 1);
            else if (m->is == TEXT || m->is == BASE64)
                screen_bytes(s, f.bytes, true);
            else if (m->is == SIGNED && f.wire == WIRE_VARINT)
                screen_number(s, &f, scan.at);
        }
        s->size = before;
    }
}

void cx_otlp_scan_sensitive(cx_otlp_signal signal, const cx_sensitive_rules *rules,
                            const cx_sensitive_target *target, cx_sensitive_list *list)
{
    cx_err ignored;
    screening s = {.start = target->bytes,
                   .rules = rules,
                   .target = target,
                   .list = list,
                   .wire = {.start = target->bytes, .err = &ignored}};
    if (!cx_sensitive_is_on(rules) || target->size == 0)
        return;
    screen_message(&s, signal == CX_OTLP_TRACES ? &traces_request : &logs_request,
                   cx_bytes_from(target->bytes, target->size), 0);
}

/* --- the meaning of JSON ---------------------------------------------------------------------- */

/*
 * I3  Values that a protobuf reader takes for the same become the same JSON: what is a default is
 *     left out, except inside AnyValue, where it says which member is set.
 */
typedef struct meaning {
    cx_arena *arena;
    cx_err *err;
} meaning;

static cx_status meaning_of_message(meaning *m, const shape *of, const cx_json *value,
                                    cx_json *out);

/* A whole number, as JSON has it or as text; false when it is neither or exceeds 64 bits. */
static bool read_whole(const cx_json *value, bool *out_negative, uint64_t *out)
{
    int64_t below = 0;
    double real = 0;
    *out_negative = false;
    if (value->type == CX_JSON_STRING) {
        cx_str text = cx_json_text(value);
        size_t i = text.size != 0 && text.data[0] == '-';
        uint64_t number = 0;
        *out_negative = i == 1;
        if (i == text.size)
            return false;
        for (; i < text.size; i++) {
            unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
            if (digit > 9 || number > (UINT64_MAX - digit) / 10)
                return false;
            number = number * 10 + digit;
        }
        *out = number;
        return !*out_negative || number <= UINT64_C(1) << 63;
    }
    if (cx_json_uint64(value, out))
        return true;
    if (cx_json_int64(value, &below)) {
        *out_negative = true;
        *out = (uint64_t)0 - (uint64_t)below;
        return true;
    }
    if (value->type != CX_JSON_DOUBLE || !cx_json_double(value, &real) ||
        real < -9007199254740992.0 || real > 9007199254740992.0 || (double)(int64_t)real != real)
        return false;
    below = (int64_t)real;
    *out_negative = below < 0;
    *out = below < 0 ? (uint64_t)-below : (uint64_t)below;
    return true;
}

/* The names that JSON may have for numbers of an enumeration. */
static bool read_enum_name(const cx_json *value, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t number;
    } names[] = {
        {"SPAN_KIND_UNSPECIFIED", 0}, {"SPAN_KIND_INTERNAL", 1}, {"SPAN_KIND_SERVER", 2},
        {"SPAN_KIND_CLIENT", 3},      {"SPAN_KIND_PRODUCER", 4}, {"SPAN_KIND_CONSUMER", 5},
        {"STATUS_CODE_UNSET", 0},     {"STATUS_CODE_OK", 1},     {"STATUS_CODE_ERROR", 2},
    };
    for (size_t i = 0; value->type == CX_JSON_STRING && i < CX_COUNT_OF(names); i++)
        if (cx_str_is(cx_json_text(value), names[i].name)) {
            *out = names[i].number;
            return true;
        }
    return false;
}

static cx_status make_text(meaning *m, cx_str text, cx_json *out)
{
    if (text.data == NULL)
        return cx_fail_nomem(m->err);
    *out = cx_json_make_str(text);
    return CX_SUCCESS;
}

static cx_status meaning_of_whole(meaning *m, const cx_json *value, cx_json *out, bool *out_default)
{
    bool negative = false;
    uint64_t number = 0;
    if (!read_enum_name(value, &number) && !read_whole(value, &negative, &number))
        return CX_SUCCESS;
    *out_default = number == 0;
    return make_text(m,
                     cx_arena_printf(m->arena, "%s%llu", negative && number != 0 ? "-" : "",
                                     (unsigned long long)number),
                     out);
}

/* Text that says bytes: hex in either case or base64 for ids, base64 in either form for the
 * rest. */
static cx_status meaning_of_bytes(meaning *m, bool is_id, const cx_json *value, cx_json *out,
                                  bool *out_default)
{
    if (value->type != CX_JSON_STRING)
        return CX_SUCCESS;
    cx_str text = cx_json_text(value);
    *out_default = text.size == 0;
    cx_buf bytes, shown;
    cx_buf_init(&bytes, m->arena->alloc);
    cx_buf_init(&shown, m->arena->alloc);
    uint8_t id[16];
    bool good = false;
    if (is_id && text.size % 2 == 0 && text.size <= 2 * sizeof id &&
        cx_hex_decode_any(text, id, text.size / 2)) {
        cx_buf_add(&bytes, id, text.size / 2);
        good = true;
    } else {
        good = cx_base64_decode_either(text, &bytes) &&
               (!is_id || bytes.size == 8 || bytes.size == sizeof id);
    }
    if (good && is_id)
        cx_hex_add(&shown, cx_buf_bytes(&bytes));
    else if (good)
        cx_base64_add(&shown, cx_buf_bytes(&bytes), CX_BASE64);
    cx_status status = cx_buf_check(&bytes, m->err);
    if (!cx_failed(status))
        status = cx_buf_check(&shown, m->err);
    if (!cx_failed(status) && good)
        status = make_text(m, cx_arena_copy_str(m->arena, cx_buf_str(&shown)), out);
    cx_buf_done(&bytes);
    cx_buf_done(&shown);
    return status;
}

static cx_status meaning_of_value(meaning *m, const member *as, const cx_json *value, cx_json *out,
                                  bool *out_default)
{
    double real = 0;
    *out = *value;
    *out_default = false;
    switch (as->is) {
    case TEXT:
        *out_default = value->type == CX_JSON_STRING && cx_json_text(value).size == 0;
        return CX_SUCCESS;
    case HEX:
    case BASE64: return meaning_of_bytes(m, as->is == HEX, value, out, out_default);
    case NUMBER:
    case COUNT:
    case SIGNED: return meaning_of_whole(m, value, out, out_default);
    case REAL:
        if (cx_json_double(value, &real)) {
            *out = cx_json_make_double(m->arena, real);
            *out_default = real == 0;
        }
        return CX_SUCCESS;
    case FLAG: *out_default = value->type == CX_JSON_FALSE; return CX_SUCCESS;
    case MESSAGE:
        if (value->type == CX_JSON_OBJECT) {
            CX_TRY(meaning_of_message(m, as->of, value, out));
            *out_default = out->count == 0;
        }
        return CX_SUCCESS;
    }
    return CX_SUCCESS;
}

static cx_status meaning_of_member(meaning *m, const member *as, const cx_json *value, cx_json *out,
                                   bool *out_default)
{
    bool ignored;
    if (!as->repeated || value->type != CX_JSON_ARRAY)
        return meaning_of_value(m, as, value, out, out_default);
    cx_json_list list = cx_json_list_begin(m->arena);
    for (uint32_t i = 0; i < value->count; i++) {
        cx_json item;
        CX_TRY(meaning_of_value(m, as, &value->items[i], &item, &ignored));
        cx_json_list_add(&list, item);
    }
    *out_default = value->count == 0;
    return cx_json_list_end_array(&list, out, m->err);
}

/* Members that the message does not have stay as they are. */
static cx_status meaning_of_message(meaning *m, const shape *of, const cx_json *value, cx_json *out)
{
    cx_json_list object = cx_json_list_begin(m->arena);
    for (uint32_t i = 0; i < value->count; i++) {
        cx_str name = cx_json_text(&value->members[i].name);
        cx_json item = value->members[i].value;
        bool is_default = false;
        if (item.type == CX_JSON_NULL)
            continue;
        for (size_t k = 0; k < of->count; k++)
            if (cx_str_is(name, of->members[k].name)) {
                CX_TRY(meaning_of_member(m, &of->members[k], &value->members[i].value, &item,
                                         &is_default));
                break;
            }
        if (!is_default || of == &any_value)
            cx_json_list_put(&object, name, item);
    }
    return cx_json_list_end_object(&object, out, m->err);
}

cx_status cx_otlp_meaning(cx_otlp_signal signal, const cx_json *record, cx_arena *arena,
                          cx_json *out, cx_err *err)
{
    meaning m = {arena, err};
    return meaning_of_message(&m, signal == CX_OTLP_TRACES ? &span : &log_record, record, out);
}

/* --- the whole -------------------------------------------------------------------------------- */

cx_status cx_otlp_json(cx_otlp_signal signal, cx_bytes request, cx_buf *out, uint64_t *out_records,
                       cx_err *err)
{
    const shape *of = signal == CX_OTLP_TRACES ? &traces_request : &logs_request;
    static const uint8_t nothing[1] = {0};
    size_t before = out->size;
    if (request.data == NULL)
        request = cx_bytes_from(nothing, 0);
    walk w = {.start = request.data, .out = out, .err = err};
    cx_status status = write_message(&w, of, request, 0);
    if (!cx_failed(status))
        status = cx_buf_check(out, err);
    if (cx_failed(status)) {
        out->size = before;
        return status;
    }
    if (out_records != NULL)
        *out_records = w.records;
    return CX_SUCCESS;
}

/*
 * ledger_fields.c - payload_fields of journal.json: what a payload says, under the names that the
 * case uses.
 *
 * Numbers as names are the payload's own keys.  The others are names of the original's structures;
 * the table below says which key each means and how it is shown there.  A field that the payload
 * leaves out has its zero value.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cbor/cbor.h"
#include "base/hex.h"
#include "proof/entry.h"
#include "tests/runner/ledger.h"

typedef enum show {
    SHOW_ANY,     /* a number, a text, or bytes as hex */
    SHOW_BITS,    /* a float's bits as hex */
    SHOW_BASE64,  /* bytes */
    SHOW_NUMBERS, /* bytes as a list of numbers, or a list of such */
} show;

typedef enum zero { ZERO_NUMBER, ZERO_FALSE, ZERO_TEXT, ZERO_LIST } zero;

static const struct field {
    const char *kind; /* of the entry; NULL = any */
    const char *name;
    unsigned key;
    show show;
    zero zero;
} fields[] = {
    {NULL, "SchemaVersion", 0, SHOW_ANY, ZERO_NUMBER},
    {"add_edge", "weight", 4, SHOW_ANY, ZERO_NUMBER},
    {"add_edge", "weight_f32_bits", 4, SHOW_BITS, ZERO_NUMBER},
    {"remove_edge", "weight", 4, SHOW_ANY, ZERO_NUMBER},
    {"remove_edge", "weight_f32_bits", 4, SHOW_BITS, ZERO_NUMBER},
    {"remove_edge", "tombstoned", 5, SHOW_ANY, ZERO_FALSE},
    {"remove_edge", "reason", 6, SHOW_ANY, ZERO_TEXT},
    {"remove_edge", "by", 7, SHOW_ANY, ZERO_TEXT},
    {"find_late", "Predicate", 1, SHOW_ANY, ZERO_TEXT},
    {"find_late", "Types", 2, SHOW_BASE64, ZERO_TEXT},
    {"find_late", "Limit", 3, SHOW_ANY, ZERO_NUMBER},
    {"find_late", "ResultCount", 4, SHOW_ANY, ZERO_NUMBER},
    {"find_late", "Tags", 5, SHOW_ANY, ZERO_LIST},
    {"find_late", "AccessedIDs", 6, SHOW_NUMBERS, ZERO_LIST},
    {"embed", "vertex", 2, SHOW_ANY, ZERO_NUMBER},
    {"embed", "model", 3, SHOW_ANY, ZERO_TEXT},
    {"embed", "dim", 4, SHOW_ANY, ZERO_NUMBER},
    {"embed", "src_version", 6, SHOW_ANY, ZERO_NUMBER},
    {"compact", "IntentID", 1, SHOW_ANY, ZERO_TEXT},
    {"compact", "StepID", 2, SHOW_ANY, ZERO_TEXT},
    {"compact", "BudgetTokens", 3, SHOW_ANY, ZERO_NUMBER},
    {"compact", "KeptCount", 4, SHOW_ANY, ZERO_NUMBER},
    {"compact", "CompactedCount", 5, SHOW_ANY, ZERO_NUMBER},
    {"compact", "CheckpointHash", 6, SHOW_NUMBERS, ZERO_LIST},
    {"update_head", "version", 2, SHOW_ANY, ZERO_NUMBER},
    {"scope_violation", "reason", 4, SHOW_ANY, ZERO_TEXT},
    {"scope_violation", "mode", 5, SHOW_ANY, ZERO_TEXT},
    {"attest", "reason", 3, SHOW_ANY, ZERO_TEXT},
    {"learn_weights", "SourceSeq", 1, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "Alpha", 2, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "DecrementOnFailure", 3, SHOW_ANY, ZERO_FALSE},
    {"learn_weights", "Skipped", 4, SHOW_ANY, ZERO_FALSE},
    {"learn_weights", "PrevWR", 5, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "PrevWA", 6, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "PrevWC", 7, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "PrevWD", 8, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "PrevWV", 9, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "NewWR", 10, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "NewWA", 11, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "NewWC", 12, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "NewWD", 13, SHOW_ANY, ZERO_NUMBER},
    {"learn_weights", "NewWV", 14, SHOW_ANY, ZERO_NUMBER},
};

static bool find_field(cx_str kind, cx_str name, struct field *out)
{
    char text[8] = "";
    for (size_t i = 0; i < CX_COUNT_OF(fields); i++)
        if (cx_str_is(name, fields[i].name) &&
            (fields[i].kind == NULL || cx_str_is(kind, fields[i].kind))) {
            *out = fields[i];
            return true;
        }
    if (name.size == 0 || name.size > 2 || name.data[0] < '0' || name.data[0] > '9')
        return false;
    memcpy(text, name.data, name.size);
    *out = (struct field){.key = (unsigned)strtoul(text, NULL, 10)};
    return true;
}

static CX_RESULT zero_value(runner *r, zero kind, cx_json *out, cx_err *err)
{
    cx_json_list none = cx_json_list_begin(&r->arena);
    switch (kind) {
    case ZERO_FALSE: *out = cx_json_make_bool(false); return CX_SUCCESS;
    case ZERO_TEXT: *out = cx_json_make_str(CX_STR("")); return CX_SUCCESS;
    case ZERO_LIST: return cx_json_list_end_array(&none, out, err);
    default: *out = cx_json_make_uint(&r->arena, 0); return CX_SUCCESS;
    }
}

static CX_RESULT byte_numbers(runner *r, cx_bytes bytes, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < bytes.size; i++)
        cx_json_list_add(&list, cx_json_make_uint(&r->arena, bytes.data[i]));
    return cx_json_list_end_array(&list, out, err);
}

static CX_RESULT show_bytes(runner *r, cx_bytes bytes, show how, cx_json *out, cx_err *err)
{
    if (how == SHOW_NUMBERS)
        return byte_numbers(r, bytes, out, err);
    if (how != SHOW_BASE64)
        return runner_hex(r, bytes, out, err);
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_base64_add(&text, bytes, CX_BASE64);
    cx_status status = runner_string(r, cx_buf_str(&text), out, err);
    cx_buf_done(&text);
    return status;
}

/* A float in the fewest digits that mean it. */
static CX_RESULT show_float(runner *r, cx_bytes bytes, show how, cx_json *out, cx_err *err)
{
    cx_cbor_reader reader;
    char text[32];
    uint32_t bits;
    cx_cbor_begin(&reader, bytes, "float");
    float value = cx_cbor_read_f32(&reader);
    CX_TRY(cx_cbor_end(&reader, err));
    if (how == SHOW_BITS) {
        memcpy(&bits, &value, sizeof bits);
        (void)snprintf(text, sizeof text, "%08x", bits);
        return runner_string(r, cx_str_z(text), out, err);
    }
    for (int digits = 1; digits <= 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    if (!isfinite(value))
        return runner_string(r, cx_str_z(text), out, err);
    *out = cx_json_make_double(&r->arena, strtod(text, NULL));
    return CX_SUCCESS;
}

static CX_RESULT show_item(runner *r, cx_bytes bytes, show how, cx_json *out, cx_err *err)
{
    cx_cbor_reader reader;
    cx_cbor_begin(&reader, bytes, "payload");
    switch (cx_cbor_peek(&reader)) {
    case CX_CBOR_UINT:
        *out = cx_json_make_uint(&r->arena, cx_cbor_read_uint(&reader));
        return CX_SUCCESS;
    case CX_CBOR_TEXT: return runner_string(r, cx_cbor_read_text(&reader), out, err);
    case CX_CBOR_BYTES: return show_bytes(r, cx_cbor_read_bytes(&reader), how, out, err);
    case CX_CBOR_ARRAY: {
        cx_json_list list = cx_json_list_begin(&r->arena);
        size_t count = cx_cbor_read_array(&reader, bytes.size);
        for (size_t i = 0; i < count; i++) {
            cx_json value;
            CX_TRY(show_item(r, cx_cbor_read_any(&reader), how, &value, err));
            cx_json_list_add(&list, value);
        }
        return cx_json_list_end_array(&list, out, err);
    }
    default: break;
    }
    if (bytes.size == 1 && (bytes.data[0] == 0xf4 || bytes.data[0] == 0xf5)) {
        *out = cx_json_make_bool(bytes.data[0] == 0xf5);
        return CX_SUCCESS;
    }
    return show_float(r, bytes, how, out, err);
}

/* The member of the payload's map with that key; empty when it is left out. */
static CX_RESULT member_of(cx_bytes payload, unsigned key, cx_bytes *out, cx_err *err)
{
    cx_cbor_reader reader;
    *out = (cx_bytes){NULL, 0};
    cx_cbor_begin(&reader, payload, "payload");
    cx_cbor_members members = cx_cbor_read_members(&reader);
    while (cx_cbor_next_member(&reader, &members)) {
        cx_bytes value = cx_cbor_read_any(&reader);
        if (members.key == key)
            *out = value;
    }
    return cx_cbor_end(&reader, err);
}

static CX_RESULT show_field(runner *r, cx_bytes payload, const struct field *field, cx_json *out,
                            cx_err *err)
{
    cx_bytes item;
    CX_TRY(member_of(payload, field->key, &item, err));
    return item.size == 0 ? zero_value(r, field->zero, out, err)
                          : show_item(r, item, field->show, out, err);
}

static cx_status fields_of(runner *r, const cx_json *entry, const cx_json *names, cx_json *out,
                           cx_err *err)
{
    cx_str kind;
    cx_bytes payload;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_text(entry, "kind", &kind, err));
    CX_TRY(runner_bytes(r, entry, "payload", &payload, err));
    for (uint32_t i = 0; i < names->count; i++) {
        struct field field;
        cx_json value;
        cx_str name = cx_json_text(&names->members[i].name);
        if (!find_field(kind, name, &field))
            continue;
        CX_TRY(show_field(r, payload, &field, &value, err));
        cx_json_list_put(&object, name, value);
    }
    return cx_json_list_end_object(&object, out, err);
}

void runner_ledger_fields(runner *r, cx_str name)
{
    if (!cx_str_is(name, "journal.json"))
        return;
    const cx_json *cases = cx_json_get_typed(runner_file.root, CX_STR("cases"), CX_JSON_ARRAY);
    for (uint32_t i = 0; cases != NULL && i < cases->count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&r->arena);
        cx_json value;
        cx_err err = {0};
        const cx_json *names =
            cx_json_get_typed(&cases->items[i], CX_STR("payload_fields"), CX_JSON_OBJECT);
        if (names != NULL) {
            cx_status status = fields_of(r, &cases->items[i], names, &value, &err);
            runner_value(r, runner_pointer(r, "/cases", i, "payload_fields"), status, &value, &err);
        }
        cx_arena_reset(&r->arena, mark);
    }
}

/*
 * otlp_scan.c - one walk over a request in either encoding: protobuf becomes the JSON of
 * otlp_proto.h first.
 */
#include "import/otlp_scan.h"

#include "crypto/api.h"
#include "import/gen_ai.h"

/* The depth limit of a request in protobuf, where a value takes up to three levels of JSON. */
#define JSON_DEPTH_MAX 256

const char *const cx_otlp_resources_name[2] = {"resourceSpans", "resourceLogs"};
const char *const cx_otlp_scopes_name[2] = {"scopeSpans", "scopeLogs"};
const char *const cx_otlp_old_scopes_name[2] = {"instrumentationLibrarySpans",
                                                "instrumentationLibraryLogs"};
const char *const cx_otlp_records_name[2] = {"spans", "logRecords"};

typedef struct scan {
    cx_otlp_signal signal;
    cx_arena *arena;
    cx_otlp_request *out;
    cx_buf text;
    size_t space;
} scan;

const char *cx_otlp_fault_text(cx_otlp_fault fault)
{
    static const char *const texts[] = {
        "", "a record must be an object",
        "traceId must be 16 bytes that are not all zero (32 hexadecimal digits in JSON)",
        "spanId must be 8 bytes that are not all zero (16 hexadecimal digits in JSON)"};
    return texts[fault];
}

cx_str cx_otlp_service(const cx_json *resource)
{
    const cx_json *inner = CX_JSON_GET(resource, "resource");
    const cx_import_span view = {.attributes =
                                     inner == NULL ? NULL : CX_JSON_GET(inner, "attributes")};
    return cx_import_attribute_str(&view, CX_STR("service.name"));
}

/* --- ids -------------------------------------------------------------------------------------- */

/* Hex in either case, or the base64 that a plain protobuf printer writes (imports.md §2.1); zeros
 * when it is neither, or not there. */
static cx_status read_id(scan *s, const cx_json *record, const char *name, uint8_t *out,
                         size_t size, bool *out_some, cx_err *err)
{
    cx_str text = cx_json_get_str(record, cx_str_z(name));
    memset(out, 0, size);
    *out_some = false;
    if (text.size == 2 * size) {
        if (!cx_hex_decode_any(text, out, size))
            memset(out, 0, size);
    } else if (text.size == (size + 2) / 3 * 4) {
        cx_buf_clear(&s->text);
        if (cx_base64_decode(text, CX_BASE64, &s->text) && s->text.size == size)
            memcpy(out, s->text.data, size);
        CX_TRY(cx_buf_check(&s->text, err));
    }
    for (size_t i = 0; i < size; i++)
        *out_some |= out[i] != 0;
    return CX_SUCCESS;
}

/* --- walking ---------------------------------------------------------------------------------- */

static cx_status digest_record(scan *s, cx_otlp_record *record, cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(s->arena);
    cx_json meaning;
    cx_buf_clear(&s->text);
    cx_status status = cx_otlp_meaning(s->signal, record->value, s->arena, &meaning, err);
    if (!cx_failed(status))
        status = cx_json_write(&s->text, &meaning, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        record->content = cx_digest_of(cx_buf_bytes(&s->text));
    cx_arena_reset(s->arena, mark);
    return status;
}

static cx_status add_record(scan *s, const cx_otlp_record *at, cx_err *err)
{
    cx_otlp_request *out = s->out;
    if (out->count == CX_OTLP_RECORDS_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                          "a request has more than %d records: send smaller batches",
                          CX_OTLP_RECORDS_MAX);
    if (out->count == s->space) {
        size_t space = s->space == 0 ? 64 : s->space * 2;
        cx_otlp_record *grown = CX_ARENA_ARRAY(s->arena, cx_otlp_record, space);
        if (grown == NULL)
            return cx_fail_nomem(err);
        if (out->count != 0)
            memcpy(grown, out->records, out->count * sizeof *grown);
        out->records = grown;
        s->space = space;
    }
    cx_otlp_record *record = &out->records[out->count++];
    *record = *at;
    if (record->value->type != CX_JSON_OBJECT) {
        record->fault = CX_OTLP_NO_OBJECT;
        return CX_SUCCESS;
    }
    bool traced = false, spanned = false;
    CX_TRY(read_id(s, record->value, "traceId", record->trace_id, CX_OTLP_TRACE_ID_SIZE, &traced,
                   err));
    CX_TRY(
        read_id(s, record->value, "spanId", record->span_id, CX_OTLP_SPAN_ID_SIZE, &spanned, err));
    if (s->signal == CX_OTLP_TRACES && !(traced && spanned))
        record->fault = traced ? CX_OTLP_SPAN_ID : CX_OTLP_TRACE_ID;
    return digest_record(s, record, err);
}

static cx_status fail_shape(cx_err *err, const char *where)
{
    return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                      "expected %s to be an array of objects, as OTLP/JSON has it", where);
}

/* An absent list is an empty one; null too, as proto3 JSON has it. */
static cx_status list_of(const cx_json *object, const char *name, const cx_json **out, cx_err *err)
{
    const cx_json *list = cx_json_get(object, cx_str_z(name));
    *out = NULL;
    if (list == NULL || list->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (list->type != CX_JSON_ARRAY)
        return fail_shape(err, name);
    *out = list;
    return CX_SUCCESS;
}

static cx_status walk_scopes(scan *s, cx_otlp_record *at, const char *name, cx_err *err)
{
    const cx_json *scopes, *records;
    CX_TRY(list_of(at->resource, name, &scopes, err));
    for (uint32_t i = 0; scopes != NULL && i < scopes->count; i++) {
        at->scope = &scopes->items[i];
        if (at->scope->type != CX_JSON_OBJECT)
            return fail_shape(err, name);
        CX_TRY(list_of(at->scope, cx_otlp_records_name[s->signal], &records, err));
        for (uint32_t k = 0; records != NULL && k < records->count; k++) {
            at->value = &records->items[k];
            CX_TRY(add_record(s, at, err));
        }
    }
    return CX_SUCCESS;
}

static cx_status walk_document(scan *s, cx_err *err)
{
    const cx_json *resources;
    cx_otlp_record at = {.fault = CX_OTLP_FINE};
    if (s->out->root.type != CX_JSON_OBJECT)
        return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                          "found JSON of type %s, expected an object with an array %s",
                          cx_json_type_name(&s->out->root), cx_otlp_resources_name[s->signal]);
    if (!cx_json_has_canonical(&s->out->root))
        return cx_fail_at(err, CX_E_FORMAT, "U_NUMBER", CX_NO_OFFSET,
                          "a number of the request exceeds the range of a double");
    CX_TRY(list_of(&s->out->root, cx_otlp_resources_name[s->signal], &resources, err));
    for (uint32_t i = 0; resources != NULL && i < resources->count; i++) {
        at.resource = &resources->items[i];
        if (at.resource->type != CX_JSON_OBJECT)
            return fail_shape(err, cx_otlp_resources_name[s->signal]);
        CX_TRY(walk_scopes(s, &at, cx_otlp_scopes_name[s->signal], err));
        CX_TRY(walk_scopes(s, &at, cx_otlp_old_scopes_name[s->signal], err));
    }
    return CX_SUCCESS;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Protobuf as JSON, in the arena. */
static cx_status text_of(scan *s, bool is_json, cx_bytes bytes, cx_str *out, cx_err *err)
{
    if (is_json) {
        *out = cx_bytes_str(bytes);
        return CX_SUCCESS;
    }
    CX_TRY(cx_otlp_json(s->signal, bytes, &s->text, NULL, err));
    *out = cx_arena_copy_str(s->arena, cx_buf_str(&s->text));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_otlp_scan(cx_otlp_signal signal, bool is_json, cx_bytes bytes, cx_arena *arena,
                       cx_otlp_request *out, cx_err *err)
{
    static const cx_json_limits limits = {.depth = JSON_DEPTH_MAX, .integer_digits = 4300};
    cx_json_parser parser;
    cx_str text;
    cx_otlp_request found = {.count = 0};
    scan s = {.signal = signal, .arena = arena, .out = &found};
    cx_buf_init(&s.text, arena->alloc);
    cx_json_parser_init(&parser, arena->alloc, &limits);
    cx_status status = text_of(&s, is_json, bytes, &text, err);
    if (!cx_failed(status))
        status = cx_json_parse(&parser, text, arena, &found.root, err);
    if (!cx_failed(status))
        status = walk_document(&s, err);
    cx_json_parser_done(&parser);
    cx_buf_done(&s.text);
    if (!cx_failed(status))
        *out = found;
    return status;
}

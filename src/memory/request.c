/*
 * request.c - a call that its sender names by a key is carried out once (memory.h,
 * docs/formats/ledger.md §10.4).
 *
 *     memory.request  {"content","entry","grant","request","uri","used"}
 *
 *   R1  The entry is in the commit of the call: both are there, or neither.
 *   R2  A call that was refused leaves no such entry, so that it can be sent again.
 *   R3  What is written under a scope has such an entry, with a key or without, which names the
 *       scope by its hash.
 */
#include "crypto/api.h"
#include "json/api.h"
#include "memory/internal.h"

static cx_digest hash_request(const cx_memory_request *request)
{
    static const uint8_t separator = 0;
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, request->sender.data, request->sender.size);
    cx_sha256_add(&hash, &separator, 1);
    cx_sha256_add(&hash, request->key.data, request->key.size);
    return cx_sha256_end(&hash);
}

static cx_status fail_damaged(cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the row of a request is damaged; run 'cortex tables rebuild'");
}

/* The result of the first time. */
static bool read_result(const cx_json *row, cx_memory_request *request)
{
    const cx_json *entry = CX_JSON_GET(row, "entry"), *used = CX_JSON_GET(row, "used");
    cx_str uri = CX_JSON_GET_STR(row, "uri");
    request->wrote = entry != NULL && entry->type != CX_JSON_NULL;
    if (request->wrote && !cx_json_uint64(entry, &request->seq))
        return false;
    request->has_uri = uri.data != NULL;
    if (request->has_uri && cx_failed(cx_memory_uri_parse(uri, &request->uri, NULL)))
        return false;
    return used != NULL && cx_json_uint64(used, &request->used);
}

static cx_status answer_repeated(cx_memory_call *call, cx_bytes row, cx_err *err)
{
    cx_memory_request *request = call->memory->options.request;
    cx_json value;
    cx_digest content;
    if (cx_failed(cx_json_parse_text(cx_bytes_str(row), call->arena, &value, NULL)) ||
        value.type != CX_JSON_OBJECT ||
        !cx_digest_parse(CX_JSON_GET_STR(&value, "content"), &content) ||
        !read_result(&value, request))
        return fail_damaged(err);
    if (!cx_digest_eq(&content, &request->content))
        return cx_fail_at(err, CX_E_CONFLICT, "KeyReused", CX_NO_OFFSET,
                          "this key was used for another request; use a new key for each");
    request->repeated = true;
    return cx_fail_at(err, CX_E_EXISTS, "Repeated", CX_NO_OFFSET,
                      "the request was carried out before");
}

cx_status cx_memory_request_begin(cx_memory_call *call, cx_err *err)
{
    const cx_memory_request *request = call->memory->options.request;
    cx_memory_key key;
    cx_bytes row;
    bool found = false;
    if (request == NULL || request->key.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_memory_check_text(request->key, "the key", 1, CX_REQUEST_KEY_SIZE_MAX, err));
    const cx_digest hash = hash_request(request);
    cx_memory_key_begin(&key, CX_MEMORY_REQUEST_KEY);
    cx_memory_key_add(&key, hash.bytes, sizeof hash.bytes);
    CX_TRY(cx_memory_fetch(&call->from, cx_memory_key_bytes(&key), &row, &found, err));
    return found ? answer_repeated(call, row, err) : CX_SUCCESS;
}

static void add_hex(cx_buf *out, const char *name, const cx_digest *digest)
{
    char hex[2 * sizeof digest->bytes];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    cx_buf_printf(out, "\"%s\":\"%.*s\"", name, (int)sizeof hex, hex);
}

static void write_payload(const cx_memory_request *request, cx_buf *out)
{
    const cx_digest hash = hash_request(request);
    cx_buf_add_byte(out, '{');
    add_hex(out, "content", &request->content);
    if (request->wrote)
        cx_buf_printf(out, ",\"entry\":%llu,", (unsigned long long)request->seq);
    else
        cx_buf_add_z(out, ",\"entry\":null,");
    if (request->scope != NULL) {
        add_hex(out, "grant", &request->grant);
        cx_buf_add_byte(out, ',');
    }
    if (request->key.size != 0)
        add_hex(out, "request", &hash);
    else
        cx_buf_add_z(out, "\"request\":null");
    cx_buf_add_z(out, ",\"uri\":");
    if (request->has_uri) {
        cx_buf_add_byte(out, '"');
        cx_uri_add(&request->uri, out);
        cx_buf_add_byte(out, '"');
    } else {
        cx_buf_add_z(out, "null");
    }
    cx_buf_printf(out, ",\"used\":%llu}", (unsigned long long)request->used);
}

/* R1, R2, R3 */
cx_status cx_memory_request_end(cx_memory_call *call, cx_err *err)
{
    cx_memory_request *request = call->memory->options.request;
    if (request == NULL)
        return CX_SUCCESS;
    request->wrote = call->wrote;
    request->seq = call->seq;
    if (request->key.size == 0 && request->scope == NULL)
        return CX_SUCCESS;
    cx_buf_clear(&call->buf);
    write_payload(request, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    const cx_entry_draft draft = {
        .kind = cx_kinds_name(CX_KIND_MEMORY_REQUEST),
        .created_at_ns = cx_memory_call_now(call),
        .created_by = cx_str_bytes(request->sender),
        .payload = cx_buf_bytes(&call->buf),
    };
    CX_TRY(cx_txn_entry(call->txn, &draft, NULL, err));
    call->requested = true;
    return CX_SUCCESS;
}

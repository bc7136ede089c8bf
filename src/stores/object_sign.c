/*
 * object_sign.c - Signature Version 4.  Invariant G1: object_sign.h.
 */
#include "stores/object_sign.h"

#include <stdio.h>

#include "crypto/api.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define SERVICE "s3"
#define LAST "aws4_request"
enum { DATE_SIZE = 8, HEX_SIZE = 2 * sizeof(cx_digest) };

void cx_object_time(int64_t seconds, char out[17])
{
    const cx_civil_time t = cx_civil_of_seconds(seconds);
    (void)snprintf(out, 17, "%04u%02u%02uT%02u%02u%02uZ", (unsigned)t.date.year % 10000,
                   t.date.month % 100, t.date.day % 100, t.hour % 100, t.minute % 100,
                   t.second % 100);
}

static void add_hex(cx_buf *out, const cx_digest *digest)
{
    char hex[HEX_SIZE];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    cx_buf_add(out, hex, sizeof hex);
}

static void add_names(cx_buf *out, const cx_object_signing *s)
{
    for (size_t i = 0; i < s->header_count; i++) {
        if (i != 0)
            cx_buf_add_byte(out, ';');
        cx_buf_add_z(out, s->headers[i].name);
    }
}

static void add_scope(cx_buf *out, const cx_object_signing *s)
{
    cx_buf_printf(out, "%.*s/%s/" SERVICE "/" LAST, DATE_SIZE, s->time, s->region);
}

static void add_canonical_request(cx_buf *out, const cx_object_signing *s)
{
    cx_buf_printf(out, "%s\n%s\n%s\n", s->method, s->path, s->query);
    for (size_t i = 0; i < s->header_count; i++)
        cx_buf_printf(out, "%s:%s\n", s->headers[i].name, s->headers[i].value);
    cx_buf_add_byte(out, '\n');
    add_names(out, s);
    cx_buf_printf(out, "\n%s", s->payload_sha256);
}

static cx_digest mac(const cx_digest *key, cx_str text)
{
    const cx_bytes piece = cx_str_bytes(text);
    return cx_hmac_sha256(cx_bytes_from(key->bytes, sizeof key->bytes), &piece, 1);
}

/* Of a day, a region and this service. */
static cx_digest derive_key(const cx_object_signing *s, cx_buf *scratch)
{
    const cx_bytes date = cx_bytes_from(s->time, DATE_SIZE);
    cx_buf_clear(scratch);
    cx_buf_printf(scratch, "AWS4%s", s->secret_key);
    cx_digest key = cx_hmac_sha256(cx_buf_bytes(scratch), &date, 1);
    key = mac(&key, cx_str_z(s->region));
    key = mac(&key, CX_STR(SERVICE));
    return mac(&key, CX_STR(LAST));
}

cx_status cx_object_sign(const cx_object_signing *s, cx_buf *out, cx_err *err)
{
    cx_buf text;
    CX_ASSERT(strlen(s->time) == 16 && s->path[0] == '/');
    cx_buf_init(&text, cx_alloc_default());
    add_canonical_request(&text, s);
    const cx_digest request = cx_digest_of(cx_buf_bytes(&text));
    cx_buf_clear(&text);
    cx_buf_printf(&text, ALGORITHM "\n%s\n", s->time);
    add_scope(&text, s);
    cx_buf_add_byte(&text, '\n');
    add_hex(&text, &request);
    cx_status status = cx_buf_check(&text, err);
    cx_buf key_text;
    cx_buf_init(&key_text, cx_alloc_default());
    const cx_digest key = derive_key(s, &key_text);
    if (!cx_failed(status))
        status = cx_buf_check(&key_text, err);
    const cx_digest signature = mac(&key, cx_buf_str(&text));
    cx_buf_done(&key_text);
    cx_buf_done(&text);
    CX_TRY(status);
    cx_buf_printf(out, ALGORITHM " Credential=%s/", s->access_key);
    add_scope(out, s);
    cx_buf_add_z(out, ", SignedHeaders=");
    add_names(out, s);
    cx_buf_add_z(out, ", Signature=");
    add_hex(out, &signature);
    return cx_buf_check(out, err);
}

/*
 * object_request.c - settings of an S3-compatible store, and one request to it.
 */
#include "stores/object_request.h"

#include <stdio.h>

#include "crypto/api.h"
#include "os/api.h"
#include "stores/object_sign.h"

enum { HEADERS_MAX = 8 };
#define KEY_MAX ((size_t)256)
#define TOKEN_MAX ((size_t)8192)
#define MS_PER_MIB 2000

/* --- settings --------------------------------------------------------------------------------- */

static bool only(const char *text, const char *allowed)
{
    for (const char *at = text; *at != 0; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9')) &&
            strchr(allowed, *at) == NULL)
            return false;
    return true;
}

/* HOST[:PORT] of an endpoint. */
static const char *host_of(const char *endpoint)
{
    return strstr(endpoint, "://") + 3;
}

static bool is_loopback(const char *host)
{
    cx_ip ip;
    const bool v6 = host[0] == '[';
    const size_t size = v6 ? strcspn(++host, "]") : strcspn(host, ":");
    static const cx_ip v6_loopback = {.bytes = {[15] = 1}, .is_v6 = true};
    cx_str name = cx_str_from(host, size);
    if (cx_str_is(name, "localhost"))
        return true;
    return cx_ip_parse(name, &ip) && (ip.is_v6 ? cx_ip_eq(&ip, &v6_loopback) : ip.bytes[0] == 127);
}

static cx_status check_endpoint(const cx_object_store *store, cx_err *err)
{
    cx_err why = {0};
    if (store->endpoint == NULL || store->endpoint[0] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "[bundles] endpoint is missing; expected such as https://s3.example");
    if (cx_failed(cx_http_post_check_url(store->endpoint, &why)))
        return cx_fail(err, CX_E_USAGE, "[bundles] endpoint: %s", why.message);
    if (strpbrk(host_of(store->endpoint), "/?") != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "[bundles] endpoint: found '%.200s', expected http[s]://HOST[:PORT] without "
                       "a path; the bucket is a setting of its own",
                       store->endpoint);
    if (strncmp(store->endpoint, "http://", 7) == 0 && !store->plain_http &&
        !is_loopback(host_of(store->endpoint)))
        return cx_fail(err, CX_E_USAGE,
                       "[bundles] endpoint: found '%.200s', expected https://; http:// is for this "
                       "machine, unless plain-http = true",
                       store->endpoint);
    return CX_SUCCESS;
}

static bool is_prefix(const char *prefix)
{
    const size_t size = strlen(prefix);
    if (size == 0)
        return true;
    for (const char *at = prefix; at != NULL && *at != 0; at = strchr(at, '/')) {
        at += *at == '/';
        if (*at == '/' || *at == 0 || *at == '.')
            return false;
    }
    return size <= CX_OBJECT_PREFIX_MAX && prefix[0] != '/' &&
           only(prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_./");
}

cx_status cx_object_store_check(const cx_object_store *store, cx_err *err)
{
    CX_TRY(check_endpoint(store, err));
    const size_t bucket = store->bucket == NULL ? 0 : strlen(store->bucket);
    if (bucket < 3 || bucket > 63 || !only(store->bucket, ".-") || store->bucket[0] == '.' ||
        store->bucket[0] == '-')
        return cx_fail(err, CX_E_USAGE,
                       "[bundles] bucket: found '%.80s', expected 3 to 63 of a-z, 0-9, '-' and '.'",
                       store->bucket == NULL ? "" : store->bucket);
    if (store->region[0] == 0 || strlen(store->region) > 64 || !only(store->region, "-"))
        return cx_fail(err, CX_E_USAGE,
                       "[bundles] region: found '%.80s', expected 1 to 64 of a-z, 0-9 and '-'",
                       store->region);
    if (!is_prefix(store->prefix))
        return cx_fail(err, CX_E_USAGE,
                       "[bundles] prefix: found '%.80s', expected at most %d of A-Z, a-z, 0-9, "
                       "'-', '_', '.' and '/', and no part that is empty or begins with '.'",
                       store->prefix, CX_OBJECT_PREFIX_MAX);
    if (store->timeout_s == 0 || store->timeout_s > CX_OBJECT_TIMEOUT_MAX_S)
        return cx_fail(err, CX_E_USAGE,
                       "[bundles] store-timeout: found %u, expected 1 to %d seconds",
                       (unsigned)store->timeout_s, CX_OBJECT_TIMEOUT_MAX_S);
    return CX_SUCCESS;
}

static bool is_credential(const char *text, size_t most)
{
    const size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] >= 127)
            return false;
    return size != 0 && size <= most;
}

/* O4 */
cx_status cx_object_store_ready(const cx_object_store *store, cx_err *err)
{
    cx_err why = {0};
    if (store->access_key == NULL || store->secret_key == NULL)
        return cx_fail_at(err, CX_E_NOT_FOUND, CX_OBJECT_UNREACHABLE, CX_NO_OFFSET,
                          "the object store %s needs credentials: set CORTEX_S3_ACCESS_KEY_ID and "
                          "CORTEX_S3_SECRET_ACCESS_KEY, or AWS_ACCESS_KEY_ID and "
                          "AWS_SECRET_ACCESS_KEY",
                          store->endpoint);
    if (!is_credential(store->access_key, KEY_MAX) || strpbrk(store->access_key, "/,=") != NULL ||
        !is_credential(store->secret_key, KEY_MAX) ||
        (store->session_token != NULL && !is_credential(store->session_token, TOKEN_MAX)))
        return cx_fail_at(err, CX_E_NOT_FOUND, CX_OBJECT_UNREACHABLE, CX_NO_OFFSET,
                          "the credentials of the object store have another form: expected "
                          "printable ASCII without blanks");
    return cx_failed(cx_http_post_ready(&why))
               ? cx_fail_at(err, CX_E_NOT_FOUND, CX_OBJECT_UNREACHABLE, CX_NO_OFFSET,
                            "the object store cannot be asked: %s", why.message)
               : CX_SUCCESS;
}

void cx_object_name(const cx_object_store *store, const cx_digest *sha256,
                    char out[CX_OBJECT_NAME_SIZE])
{
    char hex[2 * sizeof sha256->bytes];
    cx_hex_encode(cx_bytes_from(sha256->bytes, sizeof sha256->bytes), hex);
    (void)snprintf(out, CX_OBJECT_NAME_SIZE, "%s%ssha256/%.*s", store->prefix,
                   store->prefix[0] == 0 ? "" : "/", (int)sizeof hex, hex);
}

/* --- the answer ------------------------------------------------------------------------------- */

typedef struct exchange {
    const cx_object_request *request;
    cx_object_answer *answer;
    cx_sha256 hash;
    bool enough; /* it was we who ended it */
} exchange;

/* Of a name of a header, `lower` being in lower case. */
static bool name_is(cx_str name, const char *lower)
{
    if (name.size != strlen(lower))
        return false;
    for (size_t i = 0; i < name.size; i++)
        if ((name.data[i] | 0x20) != (lower[i] | 0x20))
            return false;
    return true;
}

static bool take_header(void *arg, cx_str name, cx_str value)
{
    exchange *x = arg;
    if (name_is(name, "x-amz-delete-marker") && cx_str_is(value, "true"))
        x->answer->delete_marker = true;
    return true;
}

static bool take_object(exchange *x, cx_bytes part)
{
    cx_object_answer *a = x->answer;
    if (part.size > x->request->size - a->received) {
        a->longer = x->enough = true;
        return false;
    }
    if (x->request->out != NULL && part.size != 0)
        memcpy(x->request->out + a->received, part.data, part.size);
    cx_sha256_add(&x->hash, part.data, part.size);
    a->received += part.size;
    return true;
}

/* What is too long is cut off: it is no object. */
static bool take_part(void *arg, unsigned status, cx_bytes part)
{
    exchange *x = arg;
    cx_object_answer *a = x->answer;
    if (x->request->expects && status == 200)
        return take_object(x, part);
    const size_t room = CX_OBJECT_TEXT_MAX - a->text_size;
    const size_t size = part.size < room ? part.size : room;
    if (size != 0)
        memcpy(a->text + a->text_size, part.data, size);
    a->text_size += size;
    x->enough = size != part.size;
    return !x->enough;
}

/* <Code>NoSuchKey</Code>: nothing else of what a store says is shown. */
static void read_code(cx_object_answer *a)
{
    static const char open[] = "<Code>";
    const size_t skip = sizeof open - 1;
    for (size_t i = 0; i + skip < a->text_size; i++) {
        size_t size = 0;
        if (memcmp(a->text + i, open, skip) != 0)
            continue;
        for (const uint8_t *at = a->text + i + skip; at < a->text + a->text_size; at++, size++)
            if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                  (*at >= '0' && *at <= '9')) ||
                size + 1 >= sizeof a->code)
                break;
        memcpy(a->code, a->text + i + skip, size);
        a->code[size] = 0;
        return;
    }
}

/* --- the request ------------------------------------------------------------------------------ */

typedef struct signed_request {
    char time[17], payload[65];
    char path[CX_OBJECT_NAME_SIZE + 80];
    cx_object_header headers[HEADERS_MAX];
    size_t count;
    const char *lines[HEADERS_MAX + 2];
    size_t line_count;
} signed_request;

static void add_header(signed_request *r, const char *name, const char *value)
{
    CX_ASSERT(r->count < HEADERS_MAX);
    r->headers[r->count++] = (cx_object_header){name, value};
}

static void describe_request(const cx_object_store *store, const cx_io *io,
                             const cx_object_request *request, signed_request *r)
{
    char name[CX_OBJECT_NAME_SIZE] = "";
    const cx_digest nothing = cx_digest_of(cx_bytes_from(NULL, 0));
    const cx_digest *payload = request->body.size == 0 ? &nothing : request->object;
    cx_object_time((int64_t)(io->wall_ns(io) / UINT64_C(1000000000)), r->time);
    cx_hex_encode(cx_bytes_from(payload->bytes, sizeof payload->bytes), r->payload);
    r->payload[64] = 0;
    if (request->object != NULL)
        cx_object_name(store, request->object, name);
    (void)snprintf(r->path, sizeof r->path, "/%s%s%s", store->bucket, name[0] == 0 ? "" : "/",
                   name);
    add_header(r, "host", host_of(store->endpoint));
    if (request->if_none_match)
        add_header(r, "if-none-match", "*");
    add_header(r, "x-amz-content-sha256", r->payload);
    add_header(r, "x-amz-date", r->time);
    if (store->session_token != NULL)
        add_header(r, "x-amz-security-token", store->session_token);
}

/* "name: value" of each, and the signature. */
static cx_status write_headers(const cx_object_store *store, const cx_object_request *request,
                               signed_request *r, cx_arena *arena, cx_err *err)
{
    cx_buf text;
    const cx_object_signing signing = {.access_key = store->access_key,
                                       .secret_key = store->secret_key,
                                       .region = store->region,
                                       .time = r->time,
                                       .method = request->method,
                                       .path = r->path,
                                       .query = request->query == NULL ? "" : request->query,
                                       .headers = r->headers,
                                       .header_count = r->count,
                                       .payload_sha256 = r->payload};
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_object_sign(&signing, &text, err);
    const char *signature = cx_failed(status)
                                ? NULL
                                : cx_arena_printf(arena, "Authorization: %s", cx_buf_z(&text)).data;
    cx_buf_done(&text);
    CX_TRY(status);
    r->lines[r->line_count++] = signature;
    r->lines[r->line_count++] = "Content-Type: application/octet-stream";
    for (size_t i = 0; i < r->count; i++)
        r->lines[r->line_count++] =
            cx_arena_printf(arena, "%s: %s", r->headers[i].name, r->headers[i].value).data;
    for (size_t i = 0; i < r->line_count; i++)
        if (r->lines[i] == NULL)
            return cx_fail_nomem(err);
    return CX_SUCCESS;
}

static uint32_t limit_ms(const cx_object_store *store, const cx_object_request *request)
{
    const uint64_t bytes = request->body.size > request->size ? request->body.size : request->size;
    return store->timeout_s * 1000 + (uint32_t)((bytes >> 20) * MS_PER_MIB);
}

static void keep_answer(exchange *x, cx_status sent, unsigned status, const cx_err *why)
{
    cx_object_answer *a = x->answer;
    /* An answer that was cut off is none, unless it was we who had enough of it. */
    a->status = cx_failed(sent) && !x->enough ? 0 : status;
    if (cx_failed(sent))
        (void)snprintf(a->why, sizeof a->why, "%.150s", why->message);
    a->sha256 = cx_sha256_end(&x->hash);
    if (a->status < 200 || a->status > 299)
        read_code(a);
}

cx_status cx_object_send(const cx_object_store *store, const cx_io *io,
                         const cx_object_request *request, cx_object_answer *out, cx_err *err)
{
    signed_request r = {.count = 0};
    exchange x = {.request = request, .answer = out};
    cx_arena arena;
    unsigned status = 0;
    cx_err why = {0};
    memset(out, 0, sizeof *out);
    cx_sha256_init(&x.hash);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    describe_request(store, io, request, &r);
    cx_status done = write_headers(store, request, &r, &arena, err);
    cx_str url = cx_arena_printf(&arena, "%s%s%s%s", store->endpoint, r.path,
                                 request->query == NULL ? "" : "?",
                                 request->query == NULL ? "" : request->query);
    if (!cx_failed(done) && url.data == NULL)
        done = cx_fail_nomem(err);
    if (!cx_failed(done)) {
        const cx_http_stream stream = {.url = url.data,
                                       .method = request->method,
                                       .headers = r.lines,
                                       .header_count = r.line_count,
                                       .body = request->body,
                                       .timeout_ms = limit_ms(store, request),
                                       .arg = &x,
                                       .header = take_header,
                                       .received = take_part};
        cx_status sent = cx_http_stream_send(&stream, &status, &why);
        if (sent.code == CX_E_NOMEM || sent.code == CX_E_UNSUPPORTED) {
            if (err != NULL)
                *err = why;
            done = sent;
        } else {
            keep_answer(&x, sent, status, &why);
        }
    }
    cx_arena_done(&arena);
    return done;
}

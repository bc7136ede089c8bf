/*
 * http_stream.c - one request, its response part by part, over libcurl's easy interface.
 */
#include "os/http/http_stream.h"

#include <stdlib.h>
#include <string.h>

#include "os/curl.h"
#include "os/http/http_post.h"

#define USER_AGENT "cortex"
#define CONNECT_MS 10000
#define ERROR_TEXT_SIZE 256 /* CURL_ERROR_SIZE */

typedef struct streaming {
    const cx_http_stream *stream;
    void *easy;
    unsigned status; /* of the response whose headers are read */
    size_t header_bytes;
} streaming;

/* --- the response ----------------------------------------------------------------------------- */

static cx_str trim(cx_str text)
{
    while (text.size != 0 && (uint8_t)text.data[0] <= ' ')
        text = cx_str_from(text.data + 1, text.size - 1);
    while (text.size != 0 && (uint8_t)text.data[text.size - 1] <= ' ')
        text.size--;
    return text;
}

/* "HTTP/1.1 200 OK": of an interim response, of a proxy's, at last of the server's. */
static bool is_status_line(cx_str line, unsigned *out_status)
{
    const char *space = line.size == 0 ? NULL : memchr(line.data, ' ', line.size);
    if (!cx_str_starts(line, CX_STR("HTTP/")) || space == NULL)
        return false;
    const char *at = space + 1, *end = line.data + line.size;
    unsigned status = 0, digits = 0;
    for (; at < end && *at >= '0' && *at <= '9' && digits < 3; at++, digits++)
        status = status * 10 + (unsigned)(*at - '0');
    *out_status = digits == 3 ? status : 0;
    return true;
}

static size_t take_header(char *data, size_t size, size_t count, void *arg)
{
    streaming *s = arg;
    size_t bytes = size * count;
    cx_str line = trim(cx_str_from(data, bytes));
    s->header_bytes += bytes;
    if (s->header_bytes > CX_HTTP_STREAM_HEADERS_MAX)
        return 0;
    const char *colon = line.size == 0 ? NULL : memchr(line.data, ':', line.size);
    if (is_status_line(line, &s->status) || colon == NULL || s->stream->header == NULL ||
        s->status < 200)
        return bytes;
    cx_str name = cx_str_from(line.data, (size_t)(colon - line.data));
    cx_str value = trim(cx_str_from(colon + 1, line.size - name.size - 1));
    return s->stream->header(s->stream->arg, name, value) ? bytes : 0;
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
    streaming *s = arg;
    size_t bytes = size * count;
    return s->stream->received(s->stream->arg, s->status, cx_bytes_from(data, bytes)) ? bytes : 0;
}

static int watch_cancel(void *arg, int64_t down_total, int64_t down, int64_t up_total, int64_t up)
{
    const streaming *s = arg;
    (void)down_total, (void)down, (void)up_total, (void)up;
    return s->stream->cancel != NULL && atomic_load(s->stream->cancel);
}

/* --- the request ------------------------------------------------------------------------------ */

static bool set_options(streaming *s, void *headers, char *error_text)
{
    const cx_curl_functions *curl = cx_curl();
    const cx_http_stream *stream = s->stream;
    const char *certificates = getenv("SSL_CERT_FILE");
    void *easy = s->easy;
    int failed = 0;
    if (certificates != NULL && certificates[0] != 0)
        failed |= curl->curl_easy_setopt(easy, CX_CURL_CERTIFICATES, certificates);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_URL, stream->url);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_PROTOCOLS, CX_CURL_HTTP_ONLY);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_NO_SIGNAL, 1L);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_USER_AGENT, USER_AGENT);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_ERROR_TEXT, error_text);
    if (strcmp(stream->method, "POST") == 0 || strcmp(stream->method, "PUT") == 0) {
        failed |= curl->curl_easy_setopt(easy, CX_CURL_POST, 1L);
        failed |= curl->curl_easy_setopt(easy, CX_CURL_BODY_SIZE, (int64_t)stream->body.size);
        failed |= curl->curl_easy_setopt(easy, CX_CURL_BODY, (const char *)stream->body.data);
    }
    if (strcmp(stream->method, "POST") != 0)
        failed |= curl->curl_easy_setopt(easy, CX_CURL_METHOD, stream->method);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_HEADERS, headers);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_TIMEOUT_MS, (long)stream->timeout_ms);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_CONNECT_TIMEOUT_MS, (long)CONNECT_MS);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_HEADER_FUNCTION, take_header);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_HEADER_DATA, (void *)s);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_WRITE_FUNCTION, take_body);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_WRITE_DATA, (void *)s);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_NO_PROGRESS, 0L);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_PROGRESS_FUNCTION, watch_cancel);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_PROGRESS_DATA, (void *)s);
    return failed == 0;
}

static cx_status fail_answer(int answer, const char *text, cx_err *err)
{
    const char *why = text[0] != 0 ? text : cx_curl()->curl_easy_strerror(answer);
    if (answer == CX_CURL_TIMED_OUT)
        return cx_fail(err, CX_E_TIMEOUT, "no response in time (%s)", why);
    if (answer == CX_CURL_WRITE_ERROR)
        return cx_fail(err, CX_E_LIMIT, "the response was not taken to its end");
    if (answer == CX_CURL_ABORTED)
        return cx_fail(err, CX_E_IO, "stopped while waiting for the response");
    return cx_fail(err, CX_E_IO, "%s", why);
}

/* NULL: out of memory. */
static void *make_headers(const cx_http_stream *stream)
{
    /* No wait for "100 Continue". */
    void *list = cx_curl()->curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < stream->header_count && list != NULL; i++) {
        void *longer = cx_curl()->curl_slist_append(list, stream->headers[i]);
        if (longer == NULL)
            cx_curl()->curl_slist_free_all(list);
        list = longer;
    }
    return list;
}

cx_status cx_http_stream_send(const cx_http_stream *stream, unsigned *out_status, cx_err *err)
{
    char text[ERROR_TEXT_SIZE] = "";
    CX_TRY(cx_http_post_ready(err));
    streaming s = {.stream = stream, .easy = cx_curl()->curl_easy_init()};
    void *headers = make_headers(stream);
    cx_status status = CX_SUCCESS;
    *out_status = 0;
    if (s.easy == NULL || headers == NULL || !set_options(&s, headers, text)) {
        status = cx_fail_nomem(err);
    } else {
        int answer = cx_curl()->curl_easy_perform(s.easy);
        *out_status = s.status;
        if (answer != CX_CURL_OK)
            status = fail_answer(answer, text, err);
    }
    cx_curl()->curl_slist_free_all(headers);
    cx_curl()->curl_easy_cleanup(s.easy);
    return status;
}

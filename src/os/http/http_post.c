/*
 * http_post.c - one POST request, over libcurl's easy interface.
 */
#include "os/http/http_post.h"

#include <stdlib.h>
#include <string.h>

#include "os/curl.h"
#include "os/library.h"

#define USER_AGENT "cortex"
#define CONNECT_MS 10000
#define RESPONSE_MAX ((size_t)1 << 20)
#define RETRY_AFTER_MAX 86400
#define ERROR_TEXT_SIZE 256 /* CURL_ERROR_SIZE */

cx_status cx_http_post_ready(cx_err *err)
{
    return cx_curl() != NULL ? CX_SUCCESS
                             : cx_fail(err, CX_E_UNSUPPORTED, "sending over HTTP needs libcurl: %s",
                                       cx_library_advice("install the package libcurl3-gnutls"));
}

/* --- addresses -------------------------------------------------------------------------------- */

static cx_status fail_url(cx_err *err, const char *what)
{
    return cx_fail_at(err, CX_E_USAGE, "BadUrl", CX_NO_OFFSET,
                      "%s; expected such as https://host.example/path", what);
}

static bool is_port(const char *text, size_t size)
{
    unsigned port = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || i == 5)
            return false;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return size != 0 && port >= 1 && port <= 65535;
}

/* HOST, HOST:PORT or [V6]:PORT. */
static cx_status check_authority(const char *text, size_t size, cx_err *err)
{
    const char *end = text + size;
    const char *bracket = text[0] == '[' ? memchr(text, ']', size) : NULL;
    const char *host_end = bracket != NULL ? bracket + 1 : memchr(text, ':', size);
    if (memchr(text, '@', size) != NULL)
        return fail_url(err, "a user name or password in the address would be seen in lists of "
                             "processes and logs");
    if (text[0] == '[' && bracket == NULL)
        return fail_url(err, "the IPv6 address has no ']'");
    if (host_end == NULL)
        host_end = end;
    if (host_end == text)
        return fail_url(err, "the address names no host");
    if (host_end != end &&
        (*host_end != ':' || !is_port(host_end + 1, (size_t)(end - host_end) - 1)))
        return fail_url(err, "the port is not a number from 1 to 65535");
    return CX_SUCCESS;
}

cx_status cx_http_post_check_url(const char *url, cx_err *err)
{
    size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
    if (scheme == 0)
        return fail_url(err, "the address begins with neither http:// nor https://");
    if (strlen(url) > CX_HTTP_POST_URL_MAX)
        return fail_url(err, "the address is longer than 2000 bytes");
    for (const char *at = url; *at != 0; at++)
        if (*at <= ' ' || *at >= 127 || strchr("\"<>\\^`{|}", *at) != NULL)
            return fail_url(err, "the address has a character that must be escaped as %XX");
    if (strchr(url, '#') != NULL)
        return fail_url(err, "the address has a fragment (#..), which is never sent");
    size_t size = strcspn(url + scheme, "/?");
    if (size == 0)
        return fail_url(err, "the address names no host");
    return check_authority(url + scheme, size, err);
}

/* --- sending ---------------------------------------------------------------------------------- */

typedef struct sending {
    const cx_http_post *post;
    size_t received;
} sending;

static size_t discard_response(char *data, size_t size, size_t count, void *arg)
{
    sending *s = arg;
    (void)data;
    s->received += size * count;
    return s->received > RESPONSE_MAX ? 0 : size * count;
}

static int watch_cancel(void *arg, int64_t down_total, int64_t down, int64_t up_total, int64_t up)
{
    const sending *s = arg;
    (void)down_total, (void)down, (void)up_total, (void)up;
    return s->post->cancel != NULL && atomic_load(s->post->cancel);
}

static cx_status fail_sending(int answer, const char *text, cx_err *err)
{
    const char *why = text[0] != 0 ? text : cx_curl()->curl_easy_strerror(answer);
    if (answer == CX_CURL_TIMED_OUT)
        return cx_fail(err, CX_E_TIMEOUT, "no response in time (%s)", why);
    if (answer == CX_CURL_WRITE_ERROR)
        return cx_fail(err, CX_E_LIMIT, "the response is longer than 1 MiB");
    if (answer == CX_CURL_ABORTED)
        return cx_fail(err, CX_E_IO, "stopped while waiting for the response");
    return cx_fail(err, CX_E_IO, "%s", why);
}

static bool set_options(void *easy, sending *s, void *headers, char *error_text)
{
    const cx_curl_functions *curl = cx_curl();
    const cx_http_post *post = s->post;
    const char *certificates = getenv("SSL_CERT_FILE");
    int failed = 0;
    if (certificates != NULL && certificates[0] != 0)
        failed |= curl->curl_easy_setopt(easy, CX_CURL_CERTIFICATES, certificates);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_URL, post->url);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_PROTOCOLS, CX_CURL_HTTP_ONLY);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_NO_SIGNAL, 1L);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_USER_AGENT, USER_AGENT);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_ERROR_TEXT, error_text);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_POST, 1L);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_BODY_SIZE, (int64_t)post->body.size);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_BODY, (const char *)post->body.data);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_HEADERS, headers);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_TIMEOUT_MS, (long)post->timeout_ms);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_CONNECT_TIMEOUT_MS, (long)CONNECT_MS);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_WRITE_FUNCTION, discard_response);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_WRITE_DATA, (void *)s);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_NO_PROGRESS, 0L);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_PROGRESS_FUNCTION, watch_cancel);
    failed |= curl->curl_easy_setopt(easy, CX_CURL_PROGRESS_DATA, (void *)s);
    return failed == 0;
}

static void read_result(void *easy, cx_http_post_result *out)
{
    long status = 0;
    int64_t seconds = 0;
    (void)cx_curl()->curl_easy_getinfo(easy, CX_CURL_INFO_STATUS, &status);
    /* Not in versions before 7.66: then there is none. */
    if (cx_curl()->curl_easy_getinfo(easy, CX_CURL_INFO_RETRY_AFTER, &seconds) != CX_CURL_OK ||
        seconds < 0)
        seconds = 0;
    *out = (cx_http_post_result){.status = status < 0 || status > 999 ? 0 : (unsigned)status,
                                 .retry_after_s = seconds > RETRY_AFTER_MAX ? RETRY_AFTER_MAX
                                                                            : (uint32_t)seconds};
}

/* NULL: out of memory. */
static void *make_headers(const cx_http_post *post)
{
    /* No wait for "100 Continue". */
    void *list = cx_curl()->curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < post->header_count && list != NULL; i++) {
        void *longer = cx_curl()->curl_slist_append(list, post->headers[i]);
        if (longer == NULL)
            cx_curl()->curl_slist_free_all(list);
        list = longer;
    }
    return list;
}

cx_status cx_http_post_send(const cx_http_post *post, cx_http_post_result *out, cx_err *err)
{
    char text[ERROR_TEXT_SIZE] = "";
    sending s = {.post = post};
    CX_TRY(cx_http_post_ready(err));
    void *easy = cx_curl()->curl_easy_init();
    void *headers = make_headers(post);
    cx_status status = CX_SUCCESS;
    if (easy == NULL || headers == NULL || !set_options(easy, &s, headers, text)) {
        status = cx_fail_nomem(err);
    } else {
        int answer = cx_curl()->curl_easy_perform(easy);
        if (answer != CX_CURL_OK)
            status = fail_sending(answer, text, err);
        else
            read_result(easy, out);
    }
    cx_curl()->curl_slist_free_all(headers);
    cx_curl()->curl_easy_cleanup(easy);
    return status;
}

/*
 * http_post.c - one POST request, over libcurl's easy interface.
 *
 * libcurl's header is not needed to build: the few calls and numbers used are stable parts of its
 * ABI (soname 4, since 2006), and are declared here.
 */
#include "os/http_post.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "os/library.h"

#define USER_AGENT "cortex"
#define CONNECT_MS 10000
#define RESPONSE_MAX ((size_t)1 << 20)
#define RETRY_AFTER_MAX 86400
#define ERROR_TEXT_SIZE 256 /* CURL_ERROR_SIZE */

/* Options: type * 10000 + number (long 0, pointer 10000, function 20000, 64 bits 30000). */
enum {
    OPT_WRITE_DATA = 10001,
    OPT_URL = 10002,
    OPT_ERROR_TEXT = 10010,
    OPT_BODY = 10015,
    OPT_USER_AGENT = 10018,
    OPT_HEADERS = 10023,
    OPT_NO_PROGRESS = 43,
    OPT_POST = 47,
    OPT_PROGRESS_DATA = 10057,
    OPT_CERTIFICATES = 10065,
    OPT_NO_SIGNAL = 99,
    OPT_TIMEOUT_MS = 155,
    OPT_CONNECT_TIMEOUT_MS = 156,
    OPT_PROTOCOLS = 181,
    OPT_WRITE_FUNCTION = 20011,
    OPT_PROGRESS_FUNCTION = 20219,
    OPT_BODY_SIZE = 30120,
    INFO_STATUS = 0x200000 + 2,
    INFO_RETRY_AFTER = 0x600000 + 57
};
#define PROTOCOLS_HTTP 3L /* http and https */
#define GLOBAL_DEFAULT 3L
#define ANSWER_OK 0
#define ANSWER_WRITE_ERROR 23
#define ANSWER_TIMED_OUT 28
#define ANSWER_ABORTED 42

typedef struct curl_functions {
    int (*curl_global_init)(long flags);
    void *(*curl_easy_init)(void);
    int (*curl_easy_setopt)(void *easy, int option, ...);
    int (*curl_easy_perform)(void *easy);
    int (*curl_easy_getinfo)(void *easy, int info, ...);
    void (*curl_easy_cleanup)(void *easy);
    const char *(*curl_easy_strerror)(int answer);
    void *(*curl_slist_append)(void *list, const char *line);
    void (*curl_slist_free_all)(void *list);
} curl_functions;

static struct {
    pthread_once_t once;
    bool usable;
    curl_functions table;
} found = {.once = PTHREAD_ONCE_INIT};

/* --- the library ------------------------------------------------------------------------------ */

static cx_status load_functions(curl_functions *out)
{
    cx_library *library;
    /* The build over GnuTLS first: the HTTP server has that library already. */
    cx_status status = cx_library_load("libcurl-gnutls.so.4", &library, NULL);
    if (cx_failed(status))
        status = cx_library_load("libcurl.so.4", &library, NULL);
    CX_TRY(status);
#define FIND(name) CX_TRY(cx_library_symbol(library, #name, &out->name, NULL))
    FIND(curl_global_init);
    FIND(curl_easy_init);
    FIND(curl_easy_setopt);
    FIND(curl_easy_perform);
    FIND(curl_easy_getinfo);
    FIND(curl_easy_cleanup);
    FIND(curl_easy_strerror);
    FIND(curl_slist_append);
    FIND(curl_slist_free_all);
#undef FIND
    return CX_SUCCESS;
}

static void load_once(void)
{
    found.usable = !cx_failed(load_functions(&found.table)) &&
                   found.table.curl_global_init(GLOBAL_DEFAULT) == ANSWER_OK;
}

cx_status cx_http_post_ready(cx_err *err)
{
    return pthread_once(&found.once, load_once) == 0 && found.usable
               ? CX_SUCCESS
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
    const char *why = text[0] != 0 ? text : found.table.curl_easy_strerror(answer);
    if (answer == ANSWER_TIMED_OUT)
        return cx_fail(err, CX_E_TIMEOUT, "no response in time (%s)", why);
    if (answer == ANSWER_WRITE_ERROR)
        return cx_fail(err, CX_E_LIMIT, "the response is longer than 1 MiB");
    if (answer == ANSWER_ABORTED)
        return cx_fail(err, CX_E_IO, "stopped while waiting for the response");
    return cx_fail(err, CX_E_IO, "%s", why);
}

static bool set_options(void *easy, sending *s, void *headers, char *error_text)
{
    const curl_functions *curl = &found.table;
    const cx_http_post *post = s->post;
    const char *certificates = getenv("SSL_CERT_FILE");
    int failed = 0;
    if (certificates != NULL && certificates[0] != 0)
        failed |= curl->curl_easy_setopt(easy, OPT_CERTIFICATES, certificates);
    failed |= curl->curl_easy_setopt(easy, OPT_URL, post->url);
    failed |= curl->curl_easy_setopt(easy, OPT_PROTOCOLS, PROTOCOLS_HTTP);
    failed |= curl->curl_easy_setopt(easy, OPT_NO_SIGNAL, 1L);
    failed |= curl->curl_easy_setopt(easy, OPT_USER_AGENT, USER_AGENT);
    failed |= curl->curl_easy_setopt(easy, OPT_ERROR_TEXT, error_text);
    failed |= curl->curl_easy_setopt(easy, OPT_POST, 1L);
    failed |= curl->curl_easy_setopt(easy, OPT_BODY_SIZE, (int64_t)post->body.size);
    failed |= curl->curl_easy_setopt(easy, OPT_BODY, (const char *)post->body.data);
    failed |= curl->curl_easy_setopt(easy, OPT_HEADERS, headers);
    failed |= curl->curl_easy_setopt(easy, OPT_TIMEOUT_MS, (long)post->timeout_ms);
    failed |= curl->curl_easy_setopt(easy, OPT_CONNECT_TIMEOUT_MS, (long)CONNECT_MS);
    failed |= curl->curl_easy_setopt(easy, OPT_WRITE_FUNCTION, discard_response);
    failed |= curl->curl_easy_setopt(easy, OPT_WRITE_DATA, (void *)s);
    failed |= curl->curl_easy_setopt(easy, OPT_NO_PROGRESS, 0L);
    failed |= curl->curl_easy_setopt(easy, OPT_PROGRESS_FUNCTION, watch_cancel);
    failed |= curl->curl_easy_setopt(easy, OPT_PROGRESS_DATA, (void *)s);
    return failed == 0;
}

static void read_result(void *easy, cx_http_post_result *out)
{
    long status = 0;
    int64_t seconds = 0;
    (void)found.table.curl_easy_getinfo(easy, INFO_STATUS, &status);
    /* Not in versions before 7.66: then there is none. */
    if (found.table.curl_easy_getinfo(easy, INFO_RETRY_AFTER, &seconds) != ANSWER_OK || seconds < 0)
        seconds = 0;
    *out = (cx_http_post_result){.status = status < 0 || status > 999 ? 0 : (unsigned)status,
                                 .retry_after_s = seconds > RETRY_AFTER_MAX ? RETRY_AFTER_MAX
                                                                            : (uint32_t)seconds};
}

/* NULL: out of memory. */
static void *make_headers(const cx_http_post *post)
{
    /* No wait for "100 Continue". */
    void *list = found.table.curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < post->header_count && list != NULL; i++) {
        void *longer = found.table.curl_slist_append(list, post->headers[i]);
        if (longer == NULL)
            found.table.curl_slist_free_all(list);
        list = longer;
    }
    return list;
}

cx_status cx_http_post_send(const cx_http_post *post, cx_http_post_result *out, cx_err *err)
{
    char text[ERROR_TEXT_SIZE] = "";
    sending s = {.post = post};
    CX_TRY(cx_http_post_ready(err));
    void *easy = found.table.curl_easy_init();
    void *headers = make_headers(post);
    cx_status status = CX_SUCCESS;
    if (easy == NULL || headers == NULL || !set_options(easy, &s, headers, text)) {
        status = cx_fail_nomem(err);
    } else {
        int answer = found.table.curl_easy_perform(easy);
        if (answer != ANSWER_OK)
            status = fail_sending(answer, text, err);
        else
            read_result(easy, out);
    }
    found.table.curl_slist_free_all(headers);
    found.table.curl_easy_cleanup(easy);
    return status;
}

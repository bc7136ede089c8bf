/*
 * tls.c - TLS through libcurl's easy interface, which connects, verifies, and then gives the bytes.
 *
 * libcurl's header is not needed to build: the few calls and numbers used are stable parts of its
 * ABI (soname 4), and are declared here.
 */
#include "os/http/tls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/library.h"

#define ERROR_TEXT_SIZE 256 /* CURL_ERROR_SIZE */

/* Options: type * 10000 + number (long 0, pointer 10000, function 20000, 64 bits 30000). */
enum {
    OPT_URL = 10002,
    OPT_PROXY = 10004,
    OPT_ERROR_TEXT = 10010,
    OPT_CERTIFICATES = 10065,
    OPT_HTTP_VERSION = 84,
    OPT_NO_SIGNAL = 99,
    OPT_CONNECT_ONLY = 141,
    OPT_CONNECT_TIMEOUT_MS = 156,
    OPT_PROTOCOLS = 181,
    OPT_RESOLVE = 10203,
    INFO_SOCKET = 0x500000 + 44,
    INFO_ADDRESS = 0x100000 + 32
};
#define PROTOCOLS_HTTPS 2L
#define HTTP_1_1 2L
#define GLOBAL_DEFAULT 3L

enum {
    ANSWER_OK = 0,
    ANSWER_TIMED_OUT = 28,
    ANSWER_TLS_CONNECT = 35,
    ANSWER_PEER_REFUSED = 60, /* the certificate */
    ANSWER_AGAIN = 81
};

typedef struct curl_functions {
    int (*curl_global_init)(long flags);
    void *(*curl_easy_init)(void);
    int (*curl_easy_setopt)(void *easy, int option, ...);
    int (*curl_easy_perform)(void *easy);
    int (*curl_easy_getinfo)(void *easy, int info, ...);
    int (*curl_easy_send)(void *easy, const void *data, size_t size, size_t *out_size);
    int (*curl_easy_recv)(void *easy, void *data, size_t size, size_t *out_size);
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

struct cx_tls {
    void *easy;
    void *resolve;
    cx_socket socket;
};

static cx_status load_functions(curl_functions *out)
{
    cx_library *library;
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
    FIND(curl_easy_send);
    FIND(curl_easy_recv);
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

static bool set_options(const cx_tls *tls, const char *url, uint32_t timeout_ms, char *error_text)
{
    const curl_functions *curl = &found.table;
    const char *certificates = getenv("SSL_CERT_FILE");
    int failed = 0;
    if (certificates != NULL && certificates[0] != 0)
        failed |= curl->curl_easy_setopt(tls->easy, OPT_CERTIFICATES, certificates);
    failed |= curl->curl_easy_setopt(tls->easy, OPT_URL, url);
    failed |= curl->curl_easy_setopt(tls->easy, OPT_PROTOCOLS, PROTOCOLS_HTTPS);
    failed |= curl->curl_easy_setopt(tls->easy, OPT_HTTP_VERSION, HTTP_1_1);
    failed |= curl->curl_easy_setopt(tls->easy, OPT_PROXY, "");
    failed |= curl->curl_easy_setopt(tls->easy, OPT_RESOLVE, tls->resolve);
    failed |= curl->curl_easy_setopt(tls->easy, OPT_NO_SIGNAL, 1L);
    failed |= curl->curl_easy_setopt(tls->easy, OPT_CONNECT_ONLY, 1L);
    failed |= curl->curl_easy_setopt(tls->easy, OPT_CONNECT_TIMEOUT_MS, (long)timeout_ms);
    failed |= curl->curl_easy_setopt(tls->easy, OPT_ERROR_TEXT, error_text);
    return failed == 0;
}

static cx_status perform(cx_tls *tls, const char *host, const cx_ip *ip, const char *error_text,
                         cx_err *err)
{
    const curl_functions *curl = &found.table;
    const char *reached = NULL;
    cx_ip address;
    int answer = curl->curl_easy_perform(tls->easy);
    if (answer != ANSWER_OK)
        return cx_fail(err,
                       answer == ANSWER_PEER_REFUSED || answer == ANSWER_TLS_CONNECT ? CX_E_DENIED
                       : answer == ANSWER_TIMED_OUT                                  ? CX_E_TIMEOUT
                                                                                     : CX_E_IO,
                       "%s: %s", host,
                       error_text[0] != 0 ? error_text : curl->curl_easy_strerror(answer));
    if (curl->curl_easy_getinfo(tls->easy, INFO_SOCKET, &tls->socket) != ANSWER_OK ||
        tls->socket < 0)
        return cx_fail(err, CX_E_IO, "%s: the connection has no socket", host);
    if (curl->curl_easy_getinfo(tls->easy, INFO_ADDRESS, &reached) != ANSWER_OK ||
        reached == NULL || !cx_ip_parse(cx_str_z(reached), &address) || !cx_ip_eq(&address, ip))
        return cx_fail(err, CX_E_DENIED, "%s: another address was reached than the checked one",
                       host);
    return CX_SUCCESS;
}

cx_status cx_tls_connect(const char *host, uint16_t port, const cx_ip *ip, uint32_t timeout_ms,
                         cx_tls **out, cx_err *err)
{
    char url[320], pinned[400], address[CX_IP_TEXT_SIZE], error_text[ERROR_TEXT_SIZE] = "";
    if (pthread_once(&found.once, load_once) != 0 || !found.usable)
        return cx_fail(err, CX_E_UNSUPPORTED,
                       "TLS to %s needs libcurl: install the package libcurl3-gnutls", host);
    cx_tls *tls = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *tls);
    if (tls == NULL)
        return cx_fail_nomem(err);
    cx_ip_write(ip, address);
    (void)snprintf(url, sizeof url, "https://%s:%u/", host, (unsigned)port);
    (void)snprintf(pinned, sizeof pinned, "%s:%u:%s%s%s", host, (unsigned)port,
                   ip->is_v6 ? "[" : "", address, ip->is_v6 ? "]" : "");
    tls->socket = CX_SOCKET_NONE;
    tls->easy = found.table.curl_easy_init();
    tls->resolve = found.table.curl_slist_append(NULL, pinned);
    cx_status status = CX_SUCCESS;
    if (tls->easy == NULL || tls->resolve == NULL || !set_options(tls, url, timeout_ms, error_text))
        status = cx_fail_nomem(err);
    else
        status = perform(tls, host, ip, error_text, err);
    if (!cx_failed(status)) {
        (void)found.table.curl_easy_setopt(tls->easy, OPT_ERROR_TEXT, NULL);
        *out = tls;
    } else {
        cx_tls_close(tls);
    }
    return status;
}

void cx_tls_close(cx_tls *tls)
{
    if (tls == NULL)
        return;
    if (tls->easy != NULL)
        found.table.curl_easy_cleanup(tls->easy);
    found.table.curl_slist_free_all(tls->resolve);
    cx_alloc_free(cx_alloc_default(), tls, sizeof *tls);
}

cx_socket cx_tls_socket(const cx_tls *tls)
{
    return tls->socket;
}

cx_socket_result cx_tls_receive(cx_tls *tls, void *data, size_t size, size_t *out_size)
{
    int answer = found.table.curl_easy_recv(tls->easy, data, size, out_size);
    if (answer == ANSWER_AGAIN)
        return CX_SOCKET_WAITS;
    return answer == ANSWER_OK && *out_size != 0 ? CX_SOCKET_DONE : CX_SOCKET_ENDED;
}

cx_socket_result cx_tls_send(cx_tls *tls, const void *data, size_t size, size_t *out_size)
{
    int answer = found.table.curl_easy_send(tls->easy, data, size, out_size);
    if (answer == ANSWER_AGAIN || (answer == ANSWER_OK && *out_size == 0))
        return CX_SOCKET_WAITS;
    return answer == ANSWER_OK ? CX_SOCKET_DONE : CX_SOCKET_ENDED;
}

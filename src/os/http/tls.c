/*
 * tls.c - TLS through libcurl's easy interface, which connects, verifies, and then gives the bytes.
 */
#include "os/http/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/curl.h"
#include "os/library.h"

struct cx_tls {
    void *easy;
    void *resolve;
    cx_socket socket;
};

static bool set_options(const cx_tls *tls, const char *url, uint32_t timeout_ms, char *error_text)
{
    const cx_curl_functions *curl = cx_curl();
    const char *certificates = getenv("SSL_CERT_FILE");
    int failed = 0;
    if (certificates != NULL && certificates[0] != 0)
        failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_CERTIFICATES, certificates);
    failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_URL, url);
    failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_PROTOCOLS, CX_CURL_HTTPS_ONLY);
    failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_HTTP_VERSION, CX_CURL_HTTP_1_1);
    failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_PROXY, "");
    failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_RESOLVE, tls->resolve);
    failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_NO_SIGNAL, 1L);
    failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_CONNECT_ONLY, 1L);
    failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_CONNECT_TIMEOUT_MS, (long)timeout_ms);
    failed |= curl->curl_easy_setopt(tls->easy, CX_CURL_ERROR_TEXT, error_text);
    return failed == 0;
}

static cx_status perform(cx_tls *tls, const char *host, const cx_ip *ip, const char *error_text,
                         cx_err *err)
{
    const cx_curl_functions *curl = cx_curl();
    const char *reached = NULL;
    cx_ip address;
    int answer = curl->curl_easy_perform(tls->easy);
    if (answer != CX_CURL_OK)
        return cx_fail(err,
                       answer == CX_CURL_PEER_REFUSED || answer == CX_CURL_TLS_CONNECT ? CX_E_DENIED
                       : answer == CX_CURL_TIMED_OUT ? CX_E_TIMEOUT
                                                     : CX_E_IO,
                       "%s: %s", host,
                       error_text[0] != 0 ? error_text : curl->curl_easy_strerror(answer));
    if (curl->curl_easy_getinfo(tls->easy, CX_CURL_INFO_SOCKET, &tls->socket) != CX_CURL_OK ||
        tls->socket < 0)
        return cx_fail(err, CX_E_IO, "%s: the connection has no socket", host);
    if (curl->curl_easy_getinfo(tls->easy, CX_CURL_INFO_ADDRESS, &reached) != CX_CURL_OK ||
        reached == NULL || !cx_ip_parse(cx_str_z(reached), &address) || !cx_ip_eq(&address, ip))
        return cx_fail(err, CX_E_DENIED, "%s: another address was reached than the checked one",
                       host);
    return CX_SUCCESS;
}

cx_status cx_tls_connect(const char *host, uint16_t port, const cx_ip *ip, uint32_t timeout_ms,
                         cx_tls **out, cx_err *err)
{
    char url[320], pinned[400], address[CX_IP_TEXT_SIZE], error_text[CX_CURL_ERROR_SIZE] = "";
    if (cx_curl() == NULL)
        return cx_fail(err, CX_E_UNSUPPORTED, "TLS to %s needs libcurl: %s", host,
                       cx_library_advice("install the package libcurl3-gnutls"));
    cx_tls *tls = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *tls);
    if (tls == NULL)
        return cx_fail_nomem(err);
    cx_ip_write(ip, address);
    (void)snprintf(url, sizeof url, "https://%s:%u/", host, (unsigned)port);
    (void)snprintf(pinned, sizeof pinned, "%s:%u:%s%s%s", host, (unsigned)port,
                   ip->is_v6 ? "[" : "", address, ip->is_v6 ? "]" : "");
    tls->socket = CX_SOCKET_NONE;
    tls->easy = cx_curl()->curl_easy_init();
    tls->resolve = cx_curl()->curl_slist_append(NULL, pinned);
    cx_status status = CX_SUCCESS;
    if (tls->easy == NULL || tls->resolve == NULL || !set_options(tls, url, timeout_ms, error_text))
        status = cx_fail_nomem(err);
    else
        status = perform(tls, host, ip, error_text, err);
    if (!cx_failed(status)) {
        (void)cx_curl()->curl_easy_setopt(tls->easy, CX_CURL_ERROR_TEXT, NULL);
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
        cx_curl()->curl_easy_cleanup(tls->easy);
    cx_curl()->curl_slist_free_all(tls->resolve);
    cx_alloc_free(cx_alloc_default(), tls, sizeof *tls);
}

cx_socket cx_tls_socket(const cx_tls *tls)
{
    return tls->socket;
}

cx_socket_result cx_tls_receive(cx_tls *tls, void *data, size_t size, size_t *out_size)
{
    int answer = cx_curl()->curl_easy_recv(tls->easy, data, size, out_size);
    if (answer == CX_CURL_AGAIN)
        return CX_SOCKET_WAITS;
    return answer == CX_CURL_OK && *out_size != 0 ? CX_SOCKET_DONE : CX_SOCKET_ENDED;
}

cx_socket_result cx_tls_send(cx_tls *tls, const void *data, size_t size, size_t *out_size)
{
    int answer = cx_curl()->curl_easy_send(tls->easy, data, size, out_size);
    if (answer == CX_CURL_AGAIN || (answer == CX_CURL_OK && *out_size == 0))
        return CX_SOCKET_WAITS;
    return answer == CX_CURL_OK ? CX_SOCKET_DONE : CX_SOCKET_ENDED;
}

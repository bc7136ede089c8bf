/*
 * curl.h - libcurl's easy interface, loaded when it is first needed.  Private to this module.
 *
 * libcurl's header is not needed to build: the few calls and numbers used are stable parts of its
 * ABI (soname 4, since 2006), and are declared here.
 */
#ifndef CX_OS_CURL_H
#define CX_OS_CURL_H

#include "base/api.h"

/* Options: type * 10000 + number (long 0, pointer 10000, function 20000, 64 bits 30000). */
enum {
    CX_CURL_WRITE_DATA = 10001,
    CX_CURL_URL = 10002,
    CX_CURL_PROXY = 10004,
    CX_CURL_ERROR_TEXT = 10010,
    CX_CURL_BODY = 10015,
    CX_CURL_USER_AGENT = 10018,
    CX_CURL_HEADERS = 10023,
    CX_CURL_HEADER_DATA = 10029,
    CX_CURL_METHOD = 10036,
    CX_CURL_NO_PROGRESS = 43,
    CX_CURL_POST = 47,
    CX_CURL_PROGRESS_DATA = 10057,
    CX_CURL_CERTIFICATES = 10065,
    CX_CURL_HTTP_VERSION = 84,
    CX_CURL_NO_SIGNAL = 99,
    CX_CURL_CONNECT_ONLY = 141,
    CX_CURL_TIMEOUT_MS = 155,
    CX_CURL_CONNECT_TIMEOUT_MS = 156,
    CX_CURL_PROTOCOLS = 181,
    CX_CURL_RESOLVE = 10203,
    CX_CURL_WRITE_FUNCTION = 20011,
    CX_CURL_HEADER_FUNCTION = 20079,
    CX_CURL_PROGRESS_FUNCTION = 20219,
    CX_CURL_BODY_SIZE = 30120,
    CX_CURL_INFO_ADDRESS = 0x100000 + 32,
    CX_CURL_INFO_STATUS = 0x200000 + 2,
    CX_CURL_INFO_SOCKET = 0x500000 + 44,
    CX_CURL_INFO_RETRY_AFTER = 0x600000 + 57
};
#define CX_CURL_HTTP_ONLY 3L /* http and https */
#define CX_CURL_HTTPS_ONLY 2L
#define CX_CURL_HTTP_1_1 2L
#define CX_CURL_ERROR_SIZE 256
#define CX_CURL_GLOBAL_DEFAULT 3L
#define CX_CURL_OK 0
#define CX_CURL_WRITE_ERROR 23
#define CX_CURL_TIMED_OUT 28
#define CX_CURL_TLS_CONNECT 35
#define CX_CURL_ABORTED 42
#define CX_CURL_PEER_REFUSED 60 /* the certificate */
#define CX_CURL_AGAIN 81

typedef struct cx_curl_functions {
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
} cx_curl_functions;

/* NULL when there is no usable libcurl; once it was found, always the same.  Thread-safe. */
const cx_curl_functions *cx_curl(void);

#endif

/*
 * curl.c - libcurl, loaded when it is first needed.
 */
#include "os/curl.h"

#include <pthread.h>

#include "os/library.h"

static struct {
    pthread_once_t once;
    bool usable;
    cx_curl_functions table;
} found = {.once = PTHREAD_ONCE_INIT};

/* --- the library ------------------------------------------------------------------------------ */

static cx_status load_functions(cx_curl_functions *out)
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
                   found.table.curl_global_init(CX_CURL_GLOBAL_DEFAULT) == CX_CURL_OK;
}

const cx_curl_functions *cx_curl(void)
{
    return pthread_once(&found.once, load_once) == 0 && found.usable ? &found.table : NULL;
}

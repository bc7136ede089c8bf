/*
 * openssl.c - libcrypto, found at run time.
 */
#include "crypto/openssl.h"

#include <pthread.h>

#include "os/api.h"

static struct {
    pthread_once_t once;
    bool usable;
    cx_openssl table;
} found = {.once = PTHREAD_ONCE_INIT};

static cx_status load_openssl(cx_openssl *out)
{
    cx_library *library;
    CX_TRY(cx_library_load("libcrypto.so.3", &library, NULL));
#define FIND(name) CX_TRY(cx_library_symbol(library, #name, &out->name, NULL));
    CX_OPENSSL_FUNCTIONS(FIND)
#undef FIND
    return CX_SUCCESS;
}

static void load_once(void)
{
    found.usable = !cx_failed(load_openssl(&found.table));
}

const cx_openssl *cx_openssl_get(void)
{
    return pthread_once(&found.once, load_once) == 0 && found.usable ? &found.table : NULL;
}

/*
 * openssl.h - the functions of libcrypto that are used, found when they are first needed.
 *
 * Linked, libcrypto is most of the time that the program takes to start, and with SHA-NI nothing of
 * it is called (docs/decisions/0007).
 */
#ifndef CX_CRYPTO_OPENSSL_H
#define CX_CRYPTO_OPENSSL_H

#include <openssl/evp.h>

#define CX_OPENSSL_FUNCTIONS(X) \
    X(EVP_MD_fetch)             \
    X(EVP_MD_CTX_new)           \
    X(EVP_MD_CTX_free)          \
    X(EVP_DigestInit_ex2)       \
    X(EVP_DigestUpdate)         \
    X(EVP_DigestFinal_ex)

typedef struct cx_openssl {
#define CX_OPENSSL_POINTER(name) __typeof__(name) *name;
    CX_OPENSSL_FUNCTIONS(CX_OPENSSL_POINTER)
#undef CX_OPENSSL_POINTER
} cx_openssl;

/* NULL when there is no libcrypto.  The library stays until the process ends.  Thread-safe. */
const cx_openssl *cx_openssl_get(void);

#endif

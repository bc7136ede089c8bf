/*
 * ml_dsa.c - ML-DSA-65 by libcrypto or liboqs, found at run time.
 */
#include "crypto/ml_dsa.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#include "os/api.h"

/* --- libcrypto -------------------------------------------------------------------------------- */

#define OPENSSL_FUNCTIONS(X)          \
    X(EVP_SIGNATURE_fetch)            \
    X(EVP_SIGNATURE_free)             \
    X(EVP_PKEY_new_raw_public_key_ex) \
    X(EVP_PKEY_free)                  \
    X(EVP_MD_CTX_new)                 \
    X(EVP_MD_CTX_free)                \
    X(EVP_DigestVerifyInit_ex)        \
    X(EVP_DigestVerify)

typedef struct openssl_table {
#define POINTER(name) __typeof__(name) *name;
    OPENSSL_FUNCTIONS(POINTER)
#undef POINTER
} openssl_table;

static cx_status load_openssl(openssl_table *out)
{
    cx_library *library;
    CX_TRY(cx_library_load("libcrypto.so.3", &library, NULL));
#define FIND(name) CX_TRY(cx_library_symbol(library, #name, &out->name, NULL));
    OPENSSL_FUNCTIONS(FIND)
#undef FIND
    EVP_SIGNATURE *algorithm = out->EVP_SIGNATURE_fetch(NULL, "ML-DSA-65", NULL);
    if (algorithm == NULL)
        return cx_fail(NULL, CX_E_UNSUPPORTED, "libcrypto has no ML-DSA-65: it is before 3.5");
    out->EVP_SIGNATURE_free(algorithm);
    return CX_SUCCESS;
}

static cx_ml_dsa verify_with_openssl(const openssl_table *ssl, cx_bytes public_key,
                                     cx_bytes message, cx_bytes signature)
{
    cx_ml_dsa result = CX_ML_DSA_NOT_CHECKED;
    EVP_MD_CTX *context = ssl->EVP_MD_CTX_new();
    EVP_PKEY *key = ssl->EVP_PKEY_new_raw_public_key_ex(NULL, "ML-DSA-65", NULL, public_key.data,
                                                        public_key.size);
    if (context != NULL && key != NULL &&
        ssl->EVP_DigestVerifyInit_ex(context, NULL, NULL, NULL, NULL, key, NULL) == 1) {
        int answer = ssl->EVP_DigestVerify(context, signature.data, signature.size, message.data,
                                           message.size);
        if (answer >= 0)
            result = answer == 1 ? CX_ML_DSA_HOLDS : CX_ML_DSA_BROKEN;
    }
    ssl->EVP_PKEY_free(key);
    ssl->EVP_MD_CTX_free(context);
    return result;
}

/* --- liboqs ----------------------------------------------------------------------------------- */

/* Debian 12 has no liboqs and so no header: the declarations are those of oqs/sig.h. */
typedef struct oqs_table {
    void (*init)(void);
    const char *(*version)(void);
    void *(*sig_new)(const char *name);
    void (*sig_free)(void *sig);
    int (*sig_verify)(const void *sig, const uint8_t *message, size_t message_size,
                      const uint8_t *signature, size_t signature_size, const uint8_t *public_key);
} oqs_table;

/* "0.12.0" or later. */
static bool is_final_version(const char *version)
{
    char *end = NULL;
    unsigned long major = version == NULL ? 0 : strtoul(version, &end, 10), minor = 0;
    if (end != NULL && *end == '.')
        minor = strtoul(end + 1, NULL, 10);
    return major > 0 || minor >= 12;
}

static cx_status load_oqs(oqs_table *out)
{
    static const char *const names[] = {"liboqs.so.9", "liboqs.so.8", "liboqs.so.7"};
    cx_library *library = NULL;
    for (size_t i = 0; i < CX_COUNT_OF(names) && library == NULL; i++)
        if (cx_failed(cx_library_load(names[i], &library, NULL)))
            library = NULL;
    if (library == NULL)
        return cx_fail(NULL, CX_E_UNSUPPORTED, "liboqs is not installed");
    CX_TRY(cx_library_symbol(library, "OQS_init", &out->init, NULL));
    CX_TRY(cx_library_symbol(library, "OQS_version", &out->version, NULL));
    CX_TRY(cx_library_symbol(library, "OQS_SIG_new", &out->sig_new, NULL));
    CX_TRY(cx_library_symbol(library, "OQS_SIG_free", &out->sig_free, NULL));
    CX_TRY(cx_library_symbol(library, "OQS_SIG_verify", &out->sig_verify, NULL));
    if (!is_final_version(out->version()))
        return cx_fail(NULL, CX_E_UNSUPPORTED, "liboqs is before 0.12: its ML-DSA is a draft");
    out->init();
    void *sig = out->sig_new("ML-DSA-65");
    if (sig == NULL)
        return cx_fail(NULL, CX_E_UNSUPPORTED, "liboqs was built without ML-DSA-65");
    out->sig_free(sig);
    return CX_SUCCESS;
}

static cx_ml_dsa verify_with_oqs(const oqs_table *oqs, cx_bytes public_key, cx_bytes message,
                                 cx_bytes signature)
{
    void *sig = oqs->sig_new("ML-DSA-65");
    if (sig == NULL)
        return CX_ML_DSA_NOT_CHECKED;
    int answer = oqs->sig_verify(sig, message.data, message.size, signature.data, signature.size,
                                 public_key.data);
    oqs->sig_free(sig);
    return answer == 0 ? CX_ML_DSA_HOLDS : CX_ML_DSA_BROKEN;
}

/* --- whichever there is ----------------------------------------------------------------------- */

static struct {
    pthread_once_t once;
    bool has_openssl, has_oqs;
    openssl_table openssl;
    oqs_table oqs;
} found = {.once = PTHREAD_ONCE_INIT};

static void load_once(void)
{
    found.has_openssl = !cx_failed(load_openssl(&found.openssl));
    found.has_oqs = !found.has_openssl && !cx_failed(load_oqs(&found.oqs));
}

const char *cx_ml_dsa_library(void)
{
    if (pthread_once(&found.once, load_once) != 0)
        return NULL;
    return found.has_openssl ? "OpenSSL" : found.has_oqs ? "liboqs" : NULL;
}

cx_ml_dsa cx_ml_dsa_65_verify(cx_bytes public_key, cx_bytes message, cx_bytes signature)
{
    if (cx_ml_dsa_library() == NULL)
        return CX_ML_DSA_NOT_CHECKED;
    if (public_key.size != CX_ML_DSA_65_KEY_SIZE || signature.size != CX_ML_DSA_65_SIGNATURE_SIZE)
        return CX_ML_DSA_BROKEN;
    return found.has_openssl ? verify_with_openssl(&found.openssl, public_key, message, signature)
                             : verify_with_oqs(&found.oqs, public_key, message, signature);
}

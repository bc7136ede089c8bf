/*
 * ml_dsa.h - ML-DSA-65 (FIPS 204), where the machine has a library for it.
 *
 * Loaded when first needed (docs/decisions/0007): libcrypto from OpenSSL 3.5 on, else liboqs from
 * 0.12 on (earlier ones have a draft under the same name).  Nothing signs.  Thread-safe.
 */
#ifndef CX_CRYPTO_ML_DSA_H
#define CX_CRYPTO_ML_DSA_H

#include "base/api.h"

#define CX_ML_DSA_65_KEY_SIZE 1952
#define CX_ML_DSA_65_SIGNATURE_SIZE 3309

typedef enum cx_ml_dsa {
    CX_ML_DSA_NOT_CHECKED, /* no library, or it could not answer */
    CX_ML_DSA_HOLDS,
    CX_ML_DSA_BROKEN
} cx_ml_dsa;

/* "OpenSSL", "liboqs"; NULL = this machine has neither. */
const char *cx_ml_dsa_library(void);

/* Over the message with an empty context.  A key or signature of another size is broken, when there
 * is a library. */
cx_ml_dsa cx_ml_dsa_65_verify(cx_bytes public_key, cx_bytes message, cx_bytes signature);

#endif

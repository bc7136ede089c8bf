/*
 * object_store.h - an S3-compatible store of bytes under the hash of them (decision 0060).
 *
 * Objects are [PREFIX/]sha256/HEX in one bucket; the bucket is part of the path, not of the host.
 * Requests are signed (object_sign.h); redirects are not followed.  Thread-safe; each call blocks.
 *
 *   O1  Bytes are given out only when they have the size and the hash that were asked for; no
 *       answer is read beyond that.
 *   O2  That an object is there, or gone, is never believed of the answer to a PUT or a DELETE: it
 *       is read back.  So an outcome that is not known is found out, too.
 *   O3  Every call ends: each request has a time limit, and tries are counted.
 *   O4  No secret is in any message.
 *   O5  An object that exists is not replaced (If-None-Match).  A store that does not know that
 *       replaces bytes by the same bytes: the name is their hash.
 */
#ifndef CX_STORES_OBJECT_STORE_H
#define CX_STORES_OBJECT_STORE_H

#include "base/api.h"

#define CX_OBJECT_PREFIX_MAX 512
#define CX_OBJECT_NAME_SIZE (CX_OBJECT_PREFIX_MAX + 80) /* of a name as text, with its NUL */
#define CX_OBJECT_TIMEOUT_S 30
#define CX_OBJECT_TIMEOUT_MAX_S 3600
#define CX_OBJECT_TRIES 4

/* The store did not answer, or refuses, or cannot be asked; tag of errors: CX_E_NOT_FOUND. */
#define CX_OBJECT_UNREACHABLE "BundleUnreachable"
#define CX_OBJECT_MISSING "BundleMissing" /* CX_E_NOT_FOUND: there is no such object */
#define CX_OBJECT_CHANGED "BundleChanged" /* CX_E_FORMAT: it has other bytes */

typedef struct cx_object_store {
    const char *endpoint; /* http[s]://HOST[:PORT] */
    const char *bucket, *region;
    const char *prefix;                  /* empty = none */
    const char *access_key, *secret_key; /* NULL = not known */
    const char *session_token;           /* NULL = none */
    bool plain_http;                     /* http:// beyond this machine, too */
    uint32_t timeout_s;                  /* of a request, and 2 s more for each MiB */
    unsigned tries;                      /* of each request, at least 1 */
} cx_object_store;

/* CX_E_USAGE says which setting is wrong.  Credentials are not looked at. */
CX_RESULT cx_object_store_check(const cx_object_store *store, cx_err *err);
/* Whether requests can be made at all: credentials are there, and libcurl.
 * CX_OBJECT_UNREACHABLE. */
CX_RESULT cx_object_store_ready(const cx_object_store *store, cx_err *err);

/* [PREFIX/]sha256/HEX */
void cx_object_name(const cx_object_store *store, const cx_digest *sha256,
                    char out[CX_OBJECT_NAME_SIZE]);

/* O2, O5: afterwards the bytes are there.  Also CX_OBJECT_CHANGED: other bytes have that name. */
CX_RESULT cx_object_put(const cx_object_store *store, const cx_io *io, const cx_digest *sha256,
                        cx_bytes bytes, cx_err *err);
/* O1: `size` bytes to `out`. */
CX_RESULT cx_object_get(const cx_object_store *store, const cx_io *io, const cx_digest *sha256,
                        size_t size, uint8_t *out, cx_err *err);

/* Whether the bucket keeps what is removed as an old version. */
typedef enum cx_object_versions {
    CX_OBJECT_VERSIONS_NONE,
    CX_OBJECT_VERSIONS_KEPT,
    CX_OBJECT_VERSIONS_UNKNOWN /* the store does not say */
} cx_object_versions;

/* O2: afterwards it is not there; nor is it an error when it never was. */
CX_RESULT cx_object_remove(const cx_object_store *store, const cx_io *io, const cx_digest *sha256,
                           cx_object_versions *out, cx_err *err);

#endif

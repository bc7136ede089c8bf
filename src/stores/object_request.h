/*
 * object_request.h - one signed request to an S3-compatible store, and what is taken of its answer.
 * Private to this module.
 */
#ifndef CX_STORES_OBJECT_REQUEST_H
#define CX_STORES_OBJECT_REQUEST_H

#include "stores/object_store.h"

#define CX_OBJECT_TEXT_MAX ((size_t)4096) /* of an answer that is no object */

typedef struct cx_object_request {
    const char *method;
    const cx_digest *object; /* NULL = the bucket */
    const char *query;       /* NULL = none */
    cx_bytes body;           /* of a PUT, never empty; its hash is `object` */
    bool if_none_match;
    bool expects; /* an object of `size` bytes, to `out` when that is not NULL */
    size_t size;
    uint8_t *out;
} cx_object_request;

typedef struct cx_object_answer {
    unsigned status; /* 0: there was none, or not all of it */
    char why[160];   /* then */
    bool longer;     /* status 200, and more bytes than expected */
    size_t received; /* of an expected object */
    cx_digest sha256;
    bool delete_marker;
    char code[48]; /* of an error, letters and digits; or empty */
    uint8_t text[CX_OBJECT_TEXT_MAX];
    size_t text_size;
} cx_object_answer;

/* Fails only for what another try would not change: memory, no libcurl. */
CX_RESULT cx_object_send(const cx_object_store *store, const cx_io *io,
                         const cx_object_request *request, cx_object_answer *out, cx_err *err);

#endif

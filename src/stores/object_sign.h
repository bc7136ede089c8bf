/*
 * object_sign.h - the header Authorization of a request to an S3-compatible store: Signature
 * Version 4, as https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 * describes it.  Pure: no clock, no network.  Private to this module and its tests.
 *
 *   G1  All headers that are given are signed, and nothing is encoded: path and query are as they
 *       are sent, so both have only characters that need no escape.
 */
#ifndef CX_STORES_OBJECT_SIGN_H
#define CX_STORES_OBJECT_SIGN_H

#include "base/api.h"

typedef struct cx_object_header {
    const char *name; /* lower-case letters, digits, '-' */
    const char *value;
} cx_object_header;

typedef struct cx_object_signing {
    const char *access_key, *secret_key, *region;
    const char *time; /* "20130524T000000Z", as in the header x-amz-date */
    const char *method;
    const char *path;                /* begins with '/' */
    const char *query;               /* "name=value", ascending, joined by '&'; empty = none */
    const cx_object_header *headers; /* ascending by name; host and x-amz-* among them */
    size_t header_count;
    const char *payload_sha256; /* hex, as in the header x-amz-content-sha256 */
} cx_object_signing;

/* Appends the value of Authorization. */
CX_RESULT cx_object_sign(const cx_object_signing *signing, cx_buf *out, cx_err *err);
/* "20130524T000000Z" of seconds since 1970, of the years 1970 to 9999. */
void cx_object_time(int64_t seconds, char out[17]);

#endif

/*
 * object_store.c - what is asked of an S3-compatible store, and when its answers are believed.
 * Invariants O1 to O5: object_store.h.
 */
#include "stores/object_store.h"

#include <stdio.h>

#include "crypto/api.h"
#include "os/api.h"
#include "stores/object_request.h"

#define WAIT_MS 100 /* after the first failure; doubled each time */

/* --- again ------------------------------------------------------------------------------------ */

/* What an answer means for the next step. */
typedef enum answer_kind {
    ANSWER_DONE,    /* 200, 201, 204 */
    ANSWER_ABSENT,  /* 404 of an object */
    ANSWER_EXISTS,  /* 412 */
    ANSWER_AGAIN,   /* 429, 409, 500 to 504, or none at all */
    ANSWER_REFUSED, /* everything else */
    ANSWER_LONGER   /* of a GET: more bytes than asked for */
} answer_kind;

static answer_kind kind_of(const cx_object_answer *a)
{
    if (a->longer)
        return ANSWER_LONGER;
    switch (a->status) {
    case 200:
    case 201:
    case 204: return ANSWER_DONE;
    case 404: return strcmp(a->code, "NoSuchBucket") == 0 ? ANSWER_REFUSED : ANSWER_ABSENT;
    case 412: return ANSWER_EXISTS;
    case 0:
    case 408:
    case 409:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504: return ANSWER_AGAIN;
    default: return ANSWER_REFUSED;
    }
}

static void wait_before(unsigned attempt)
{
    cx_thread_sleep_ms((uint32_t)WAIT_MS << (attempt > 5 ? 5 : attempt));
}

static cx_status fail_asked(const cx_object_store *store, const cx_object_answer *a, cx_err *err)
{
    const char *advice = "";
    if (a->status == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, CX_OBJECT_UNREACHABLE, CX_NO_OFFSET,
                          "the object store %s did not answer (%s)", store->endpoint, a->why);
    if (a->status >= 300 && a->status < 400)
        advice = "; redirects are not followed: expected the endpoint and region of the bucket";
    else if (a->status == 401 || a->status == 403)
        advice = "; expected credentials that may list, read, write and delete in the bucket";
    else if (strcmp(a->code, "NoSuchBucket") == 0)
        advice = "; create the bucket, or correct [bundles] bucket";
    return cx_fail_at(err, CX_E_NOT_FOUND, CX_OBJECT_UNREACHABLE, CX_NO_OFFSET,
                      "the object store %s answered %u%s%s for the bucket %s%s", store->endpoint,
                      a->status, a->code[0] == 0 ? "" : " ", a->code, store->bucket, advice);
}

static cx_status fail_changed(const cx_object_store *store, const cx_digest *sha256, cx_err *err)
{
    char name[CX_OBJECT_NAME_SIZE];
    cx_object_name(store, sha256, name);
    return cx_fail_at(err, CX_E_FORMAT, CX_OBJECT_CHANGED, CX_NO_OFFSET,
                      "the object %s in the bucket %s has other bytes than were stored", name,
                      store->bucket);
}

/* O3: one request, until there is an answer that is more than "later". */
static cx_status ask(const cx_object_store *store, const cx_io *io, cx_object_request *request,
                     cx_object_answer *out, answer_kind *out_kind, cx_err *err)
{
    for (unsigned attempt = 0;; attempt++) {
        CX_TRY(cx_object_send(store, io, request, out, err));
        *out_kind = kind_of(out);
        if (*out_kind != ANSWER_AGAIN || attempt + 1 >= store->tries)
            return CX_SUCCESS;
        wait_before(attempt);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef enum found {
    FOUND_SAME,
    FOUND_OTHER,
    FOUND_NOTHING,
} found;

/* O1; `out` NULL: only to see.  CX_OBJECT_UNREACHABLE: it is not known. */
static cx_status read_object(const cx_object_store *store, const cx_io *io, const cx_digest *sha256,
                             size_t size, uint8_t *out, found *out_found, cx_err *err)
{
    cx_object_answer answer;
    cx_object_request request = {
        .method = "GET", .object = sha256, .expects = true, .size = size, .out = out};
    answer_kind kind;
    CX_TRY(ask(store, io, &request, &answer, &kind, err));
    if (kind == ANSWER_ABSENT) {
        *out_found = FOUND_NOTHING;
        return CX_SUCCESS;
    }
    if (kind != ANSWER_LONGER && (kind != ANSWER_DONE || answer.status != 200))
        return fail_asked(store, &answer, err);
    *out_found =
        kind == ANSWER_DONE && answer.received == size && cx_digest_eq(&answer.sha256, sha256)
            ? FOUND_SAME
            : FOUND_OTHER;
    return CX_SUCCESS;
}

cx_status cx_object_get(const cx_object_store *store, const cx_io *io, const cx_digest *sha256,
                        size_t size, uint8_t *out, cx_err *err)
{
    char name[CX_OBJECT_NAME_SIZE];
    found is = FOUND_NOTHING;
    CX_TRY(cx_object_store_ready(store, err));
    CX_TRY(read_object(store, io, sha256, size, out, &is, err));
    if (is == FOUND_OTHER)
        return fail_changed(store, sha256, err);
    if (is == FOUND_SAME)
        return CX_SUCCESS;
    cx_object_name(store, sha256, name);
    return cx_fail_at(err, CX_E_NOT_FOUND, CX_OBJECT_MISSING, CX_NO_OFFSET,
                      "the object %s is not in the bucket %s of %s", name, store->bucket,
                      store->endpoint);
}

/* --- storing ---------------------------------------------------------------------------------- */

/* O2, O5.  Each round asks once, and looks what came of it. */
cx_status cx_object_put(const cx_object_store *store, const cx_io *io, const cx_digest *sha256,
                        cx_bytes bytes, cx_err *err)
{
    cx_object_answer answer;
    cx_object_request request = {
        .method = "PUT", .object = sha256, .body = bytes, .if_none_match = true};
    CX_TRY(cx_object_store_ready(store, err));
    for (unsigned attempt = 0;; attempt++) {
        found is = FOUND_NOTHING;
        CX_TRY(cx_object_send(store, io, &request, &answer, err));
        const answer_kind kind = kind_of(&answer);
        const bool unknown_header = answer.status == 501 && request.if_none_match;
        request.if_none_match = request.if_none_match && !unknown_header;
        if (kind == ANSWER_REFUSED && !unknown_header)
            return fail_asked(store, &answer, err);
        if (!unknown_header)
            CX_TRY(read_object(store, io, sha256, bytes.size, NULL, &is, err));
        if (is == FOUND_SAME)
            return CX_SUCCESS;
        if (is == FOUND_OTHER)
            return fail_changed(store, sha256, err);
        if (kind == ANSWER_DONE)
            return cx_fail_at(err, CX_E_NOT_FOUND, CX_OBJECT_UNREACHABLE, CX_NO_OFFSET,
                              "the object store %s answered %u to a PUT, and does not have the "
                              "object",
                              store->endpoint, answer.status);
        if (attempt + 1 >= store->tries)
            return fail_asked(store, &answer, err);
        wait_before(attempt);
    }
}

/* --- removing --------------------------------------------------------------------------------- */

static bool says(const cx_object_answer *a, const char *word)
{
    const size_t size = strlen(word);
    for (size_t i = 0; i + size <= a->text_size; i++)
        if (memcmp(a->text + i, word, size) == 0)
            return true;
    return false;
}

static cx_status find_versions(const cx_object_store *store, const cx_io *io,
                               cx_object_versions *out, cx_err *err)
{
    cx_object_answer answer;
    cx_object_request request = {.method = "GET", .query = "versioning="};
    answer_kind kind;
    CX_TRY(ask(store, io, &request, &answer, &kind, err));
    if (kind != ANSWER_DONE || !says(&answer, "VersioningConfiguration"))
        *out = CX_OBJECT_VERSIONS_UNKNOWN;
    else
        *out = says(&answer, "<Status>") ? CX_OBJECT_VERSIONS_KEPT : CX_OBJECT_VERSIONS_NONE;
    return CX_SUCCESS;
}

cx_status cx_object_remove(const cx_object_store *store, const cx_io *io, const cx_digest *sha256,
                           cx_object_versions *out, cx_err *err)
{
    char name[CX_OBJECT_NAME_SIZE];
    cx_object_answer answer;
    cx_object_request request = {.method = "DELETE", .object = sha256};
    answer_kind kind;
    found is = FOUND_OTHER;
    CX_TRY(cx_object_store_ready(store, err));
    CX_TRY(ask(store, io, &request, &answer, &kind, err));
    const bool marked = answer.delete_marker;
    if (kind != ANSWER_DONE && kind != ANSWER_ABSENT && kind != ANSWER_AGAIN)
        return fail_asked(store, &answer, err);
    CX_TRY(read_object(store, io, sha256, 0, NULL, &is, err));
    if (is != FOUND_NOTHING) {
        cx_object_name(store, sha256, name);
        return cx_fail_at(err, CX_E_NOT_FOUND, CX_OBJECT_UNREACHABLE, CX_NO_OFFSET,
                          "the object %s is still in the bucket %s (the answer to DELETE was %u): "
                          "it may be locked",
                          name, store->bucket, answer.status);
    }
    CX_TRY(find_versions(store, io, out, err));
    if (marked)
        *out = CX_OBJECT_VERSIONS_KEPT;
    return CX_SUCCESS;
}

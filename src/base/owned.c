/*
 * owned.c - cx_owned: bytes that a caller of the library owns.
 */
#include "base/owned.h"

#include "base/alloc.h"

cx_status cx_owned_from_buf(cx_buf *from, cx_owned *out, cx_err *err)
{
    if (cx_buf_z(from) == NULL) {
        cx_buf_done(from);
        return cx_fail_nomem(err);
    }
    *out = (cx_owned){from->data, from->size, from->capacity, from->alloc};
    cx_buf_init(from, from->alloc);
    return CX_SUCCESS;
}

void cx_owned_done(cx_owned *owned)
{
    if (owned->data != NULL)
        cx_alloc_free(owned->alloc, owned->data, owned->capacity);
    *owned = (cx_owned){NULL, 0, 0, NULL};
}

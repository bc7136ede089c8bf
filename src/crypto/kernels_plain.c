/*
 * kernels_plain.c - machines for which there are no SHA kernels but the portable one.
 */
#include "crypto/internal.h"

#if !defined(CX_DIGEST_X86) && !defined(CX_DIGEST_ARM)

const cx_digest_parts *cx_digest_parts_find(void)
{
    static const cx_digest_parts none = {NULL, NULL};
    return &none;
}

#endif

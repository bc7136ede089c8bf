/*
 * processor_plain.c - machines that cannot be asked have what the compiler was told that they have.
 */
#include "base/processor.h"

#if !defined(__x86_64__) && !defined(__i386__) && !(defined(__aarch64__) && defined(__linux__))

unsigned cx_processor_detect(void)
{
    unsigned found = 0;
#ifdef __ARM_FEATURE_SHA2 /* this macro means SHA-1 as well (ACLE) */
    found |= CX_PROCESSOR_ARM_SHA1 | CX_PROCESSOR_ARM_SHA2;
#endif
#ifdef __ARM_FEATURE_CRC32
    found |= CX_PROCESSOR_ARM_CRC32;
#endif
#ifdef __ARM_FEATURE_AES /* .. and PMULL */
    found |= CX_PROCESSOR_ARM_PMULL;
#endif
    return found;
}

#endif

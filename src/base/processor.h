/*
 * processor.h - instructions that only some processors of a kind have.
 *
 * The processor, or the kernel on its behalf, is asked once: a hypervisor makes the question cost
 * as much as thousands of hashes.  Thread-safe; cannot fail.
 */
#ifndef CX_BASE_PROCESSOR_H
#define CX_BASE_PROCESSOR_H

#include <stdbool.h>

/* Each answer includes that the operating system saves the registers. */
typedef enum cx_processor_feature {
    CX_PROCESSOR_ASKED = 1 << 0,
    CX_PROCESSOR_X86_SHA = 1 << 1,   /* with SSSE3 and SSE 4.1 */
    CX_PROCESSOR_X86_CRC32 = 1 << 2, /* SSE 4.2, with PCLMULQDQ */
    CX_PROCESSOR_X86_AVX2 = 1 << 3,
    CX_PROCESSOR_X86_AVX512F = 1 << 4,
    CX_PROCESSOR_X86_VPCLMULQDQ = 1 << 5,
    CX_PROCESSOR_X86_AVX512_IFMA = 1 << 6, /* with AVX-512 BW, DQ and VL */
    CX_PROCESSOR_ARM_SHA1 = 1 << 7,
    CX_PROCESSOR_ARM_SHA2 = 1 << 8, /* SHA-256 */
    CX_PROCESSOR_ARM_CRC32 = 1 << 9,
    CX_PROCESSOR_ARM_PMULL = 1 << 10
} cx_processor_feature;

/* Whether this machine has all of these features, which are or-ed. */
bool cx_processor_has(unsigned features);

/* For processor.c, in one file for each kind of machine: the features found now. */
unsigned cx_processor_detect(void);

#endif

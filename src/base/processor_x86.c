/*
 * processor_x86.c - which instructions an x86 processor has: by CPUID.
 */
#include "base/processor.h"

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

/* Leaf 7, EBX bit 29; compilers of Debian 12 have no name for it. */
static bool has_sha(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx >> 29 & 1) != 0;
}

unsigned cx_processor_detect(void)
{
    unsigned found = 0;
    if (has_sha() && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3"))
        found |= CX_PROCESSOR_X86_SHA;
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        found |= CX_PROCESSOR_X86_CRC32;
    if (__builtin_cpu_supports("avx2"))
        found |= CX_PROCESSOR_X86_AVX2;
    if (__builtin_cpu_supports("avx512f"))
        found |= CX_PROCESSOR_X86_AVX512F;
    if (__builtin_cpu_supports("vpclmulqdq"))
        found |= CX_PROCESSOR_X86_VPCLMULQDQ;
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512ifma"))
        found |= CX_PROCESSOR_X86_AVX512_IFMA;
    return found;
}

#endif

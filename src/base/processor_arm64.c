/*
 * processor_arm64.c - which instructions a 64-bit ARM processor has, as the Linux kernel says: the
 * registers that tell are not for programs to read.
 */
#include "base/processor.h"

#if defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>

/* Bits of AT_HWCAP (Linux, Documentation/arch/arm64/elf_hwcaps.rst); old headers lack the names. */
enum { HWCAP_BIT_PMULL = 4, HWCAP_BIT_SHA1 = 5, HWCAP_BIT_SHA2 = 6, HWCAP_BIT_CRC32 = 7 };

unsigned cx_processor_detect(void)
{
    static const struct {
        unsigned bit;
        cx_processor_feature feature;
    } features[] = {{HWCAP_BIT_PMULL, CX_PROCESSOR_ARM_PMULL},
                    {HWCAP_BIT_SHA1, CX_PROCESSOR_ARM_SHA1},
                    {HWCAP_BIT_SHA2, CX_PROCESSOR_ARM_SHA2},
                    {HWCAP_BIT_CRC32, CX_PROCESSOR_ARM_CRC32}};
    unsigned long capabilities = getauxval(AT_HWCAP);
    unsigned found = 0;
    for (unsigned i = 0; i < sizeof features / sizeof *features; i++)
        if ((capabilities >> features[i].bit & 1) != 0)
            found |= features[i].feature;
    return found;
}

#endif

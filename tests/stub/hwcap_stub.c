/*
 * hwcap_stub.c - a 64-bit ARM processor with fewer instructions: preloaded, it hides bits of
 * AT_HWCAP from the program and its libraries.  qemu has no model without SHA and CRC instructions.
 *
 * CORTEX_TEST_HWCAP_OFF holds the hidden bits as a number, as strtoul reads it.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>

unsigned long getauxval(unsigned long type)
{
    unsigned long (*real)(unsigned long);
    /* POSIX has a function's address come as one of data. */
    *(void **)&real = dlsym(RTLD_NEXT, "getauxval");
    const char *hidden = getenv("CORTEX_TEST_HWCAP_OFF");
    unsigned long value = real != NULL ? real(type) : 0;
    return type == AT_HWCAP && hidden != NULL ? value & ~strtoul(hidden, NULL, 0) : value;
}

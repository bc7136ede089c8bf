/* Written for tests/macos. */
#ifndef CX_MACOS_MACH_O_DYLD_H
#define CX_MACOS_MACH_O_DYLD_H
#include <stdint.h>
int _NSGetExecutablePath(char *out, uint32_t *size);
#endif

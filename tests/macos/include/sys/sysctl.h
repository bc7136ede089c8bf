/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_SYSCTL_H
#define CX_MACOS_SYS_SYSCTL_H
#include <sys/types.h>
int sysctlbyname(const char *name, void *out, size_t *size, void *value, size_t value_size);
#endif

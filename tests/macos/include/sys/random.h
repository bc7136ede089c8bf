/* Written for tests/macos: getentropy alone, no getrandom. */
#ifndef CX_MACOS_SYS_RANDOM_H
#define CX_MACOS_SYS_RANDOM_H
#include <sys/types.h>
int getentropy(void *out, size_t size);
#endif

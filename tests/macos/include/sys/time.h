/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_TIME_H
#define CX_MACOS_SYS_TIME_H
#include <sys/types.h>
#include <sys/select.h>
int gettimeofday(struct timeval *time, void *zone);
#endif

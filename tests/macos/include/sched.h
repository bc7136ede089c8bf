/* Written for tests/macos: without sched_getaffinity and clone. */
#ifndef CX_MACOS_SCHED_H
#define CX_MACOS_SCHED_H
int sched_yield(void);
#endif

/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_RESOURCE_H
#define CX_MACOS_SYS_RESOURCE_H
#include <sys/types.h>
typedef unsigned long long rlim_t;
struct rlimit {
    rlim_t rlim_cur;
    rlim_t rlim_max;
};
struct rusage {
    struct timeval ru_utime;
    struct timeval ru_stime;
    long ru_maxrss;
    long more[13];
};
#define RLIM_INFINITY (((rlim_t)1 << 63) - 1)
#define RLIMIT_CPU 0
#define RLIMIT_FSIZE 1
#define RLIMIT_DATA 2
#define RLIMIT_STACK 3
#define RLIMIT_CORE 4
#define RLIMIT_AS 5
#define RLIMIT_NPROC 7
#define RLIMIT_NOFILE 8
#define RUSAGE_SELF 0
int getrlimit(int which, struct rlimit *out);
int setrlimit(int which, const struct rlimit *limit);
int getrusage(int who, struct rusage *out);
#endif

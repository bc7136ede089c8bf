/* Written for tests/macos: types as wide as macOS has them (64-bit). */
#ifndef CX_MACOS_SYS_TYPES_H
#define CX_MACOS_SYS_TYPES_H
#include <stddef.h>
#include <stdint.h>
typedef long ssize_t;
typedef long long off_t;
typedef int pid_t;
typedef unsigned uid_t;
typedef unsigned gid_t;
typedef unsigned id_t;
typedef unsigned short mode_t;
typedef unsigned short nlink_t;
typedef int dev_t;
typedef unsigned long long ino_t;
typedef long long blkcnt_t;
typedef int blksize_t;
typedef unsigned fsblkcnt_t;
typedef unsigned fsfilcnt_t;
typedef long time_t;
typedef int suseconds_t;
typedef unsigned useconds_t;
typedef unsigned long clock_t;
typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned u_int;
typedef unsigned long u_long;
typedef char *caddr_t;
struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
struct timeval {
    time_t tv_sec;
    suseconds_t tv_usec;
};
typedef struct cx_macos_mutex {
    long sig;
    char opaque[56];
} pthread_mutex_t;
typedef struct cx_macos_cond {
    long sig;
    char opaque[40];
} pthread_cond_t;
typedef struct cx_macos_condattr {
    long sig;
    char opaque[8];
} pthread_condattr_t;
typedef struct cx_macos_mutexattr {
    long sig;
    char opaque[8];
} pthread_mutexattr_t;
typedef struct cx_macos_attr {
    long sig;
    char opaque[56];
} pthread_attr_t;
typedef struct cx_macos_once {
    long sig;
    char opaque[8];
} pthread_once_t;
typedef struct cx_macos_thread *pthread_t;
typedef unsigned long pthread_key_t;
#endif

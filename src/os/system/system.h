/*
 * system.h - what os needs of the operating system where systems differ.  Private to this module;
 * base has base/platform.h for the same purpose.
 *
 * One set of files is built (cmake/platform.cmake): *_linux.c; or *_posix.c, which has calls that
 * every POSIX system has, with *_macos.c or *_other.c for the rest.
 *
 * Descriptors made here are closed in programs that are started, sockets do not block.  Calls that
 * return a descriptor or a bool set errno when they return -1 or false.
 */
#ifndef CX_OS_SYSTEM_H
#define CX_OS_SYSTEM_H

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/api.h"

/* --- descriptors ------------------------------------------------------------------------------ */

/* [0] is the end to read from. */
bool cx_system_pipe(int out[2]);
/* An empty file without a name. */
int cx_system_unnamed_file(void);

int cx_system_socket(int family, int type);
/* Two Unix sockets, for messages of one byte with a descriptor. */
bool cx_system_socket_pair(int out[2]);
/* The same for a stream of bytes. */
bool cx_system_stream_pair(int out[2]);
int cx_system_accept(int listening, struct sockaddr *peer, socklen_t *size);
/* Flags of send(2), for an error instead of a SIGPIPE; those of recvmsg(2), for descriptors that
 * are closed in programs that are started, as cx_system_adopt makes sure. */
extern const int cx_system_send_flags, cx_system_receive_flags;
/* A socket that came from another process. */
void cx_system_adopt(int socket);
/* Makes `file` another descriptor of what never becomes readable. */
bool cx_system_silence(int file);

/* A file that is readable from a wake-up until it is cleared; wake-ups may come from any thread. */
int cx_system_wake_open(void);
void cx_system_wake(int file);
void cx_system_wake_clear(int file);

/* Binds a Unix socket whose file only this user can connect to, at any moment. */
bool cx_system_bind_private(int socket, const struct sockaddr *address, socklen_t size);
/* The user, and the process (0 = not known), at the other end of a Unix socket. */
bool cx_system_peer(int socket, uint64_t *out_user, uint64_t *out_process);

/* A short path to a folder, for the address of a socket. */
typedef struct cx_system_way {
    char path[64];
    int folder; /* -1 = none */
} cx_system_way;
bool cx_system_way_open(const char *folder, cx_system_way *out);
void cx_system_way_close(const cx_system_way *way);

/* --- folders ---------------------------------------------------------------------------------- */

/* A flag of open(2) for a folder that is only passed through. */
extern const int cx_system_pass_flag;
/* Opens a path below `folder` in one call that follows no link and does not leave it; *out is its
 * result, with EXDEV or ELOOP for a path that does.  False: the system has no such call. */
bool cx_system_open_beneath(int folder, const char *path, int flags, mode_t mode, int *out);
/* Of a file or folder, never through a link (ELOOP). */
bool cx_system_change_mode(int folder, const char *name, mode_t mode);
void cx_system_times(const struct stat *info, int64_t *out_modified_ns, int64_t *out_changed_ns);
/* Bytes of the file system: what this user may still write, and all. */
bool cx_system_space(const char *path, uint64_t *out_free, uint64_t *out_all);
/* As cx_folder_keeps_times and cx_folder_clock_ns (folder.h). */
bool cx_system_keeps_times(int folder);
int64_t cx_system_file_clock_ns(void);

/* --- libraries -------------------------------------------------------------------------------- */

/* What to call dlopen with for the library that Linux calls `soname`, attempt by attempt; false
 * when there is no attempt `turn`. */
bool cx_system_library(const char *soname, unsigned turn, char *out, size_t size);
/* How a missing library is installed; NULL = as a package of Debian. */
extern const char *const cx_system_library_advice;

/* --- programs --------------------------------------------------------------------------------- */

/* Runs `child_main`, which does not return, in a new process; it may share our memory, and we may
 * be stopped, until it executes a program.  Its process id, or -1. */
pid_t cx_system_start(int (*child_main)(void *arg), void *arg);
/* A file that is readable when a child has ended; -1 = none. */
int cx_system_process_file(pid_t child);
/* This process is killed when its parent, `starter`, ends; true also where the system cannot. */
bool cx_system_die_with(pid_t starter);
/* Whether cx_system_execute can execute an open file. */
extern const bool cx_system_executes_files;
/* Executes an open file; returns only on failure. */
void cx_system_execute(int file, char *const *argv, char *const *envp);
/* All descriptors from 3 on, when a program is executed.  Async-signal-safe. */
void cx_system_close_on_exec(void);
/* `which` is an RLIMIT_.  Never raises a limit; 0 = as it is.  Async-signal-safe. */
void cx_system_limit(int which, uint64_t value);

/* --- signals ---------------------------------------------------------------------------------- */

/* Takes a signal, blocked in this thread, off those that are pending. */
void cx_system_drop_pending(int number);
/* A file that is readable when one of `taken`, blocked in this thread, has come; -1.  At most one
 * is open in a process (EBUSY). */
int cx_system_signals_open(const sigset_t *taken);
/* 0: none has come. */
int cx_system_signals_read(int file);
void cx_system_signals_close(int file);

#endif

/*
 * platform.h - what base needs of the operating system where systems differ.  Private to this
 * module; what os needs of that kind is in os/system/system.h.
 *
 * One set of files is built (cmake/platform.cmake): platform_linux.c; or platform_posix.c, which
 * has calls that every POSIX system has, with platform_macos.c or platform_other.c for the rest.
 *
 * Calls that return an int return 0 or a negated errno, as those of io.h.  Thread-safe.
 */
#ifndef CX_BASE_PLATFORM_H
#define CX_BASE_PLATFORM_H

#include <pthread.h>

#include "base/bytes.h"

/* --- files: as the members of cx_io of these names -------------------------------------------- */

/* Until the device has it, and not only its cache. */
int cx_platform_sync(int file, bool data_only);
void cx_platform_start_sync(int file, uint64_t offset, uint64_t size);
void cx_platform_forget(int file);
int cx_platform_close(int file);
int cx_platform_allocate(int file, uint64_t size);
int cx_platform_lock(int file);
int cx_platform_locked(int file, bool *out_locked);
int cx_platform_random(void *data, size_t size);

/* --- memory and errors ------------------------------------------------------------------------ */

/* A hint: `block`, aligned to pages, is large and used densely. */
void cx_platform_advise_huge(void *block, size_t size_bytes);
void cx_platform_return_large(void);
/* The words for an errno: in `room`, or static. */
const char *cx_platform_error_text(int code, char *room, size_t room_size);

/* --- threads ---------------------------------------------------------------------------------- */

/* A condition whose timeouts no setting of the clock prolongs.  0, or an errno. */
int cx_platform_condition_init(pthread_cond_t *condition);
/* Waits at most so long; may wake spuriously. */
void cx_platform_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                uint32_t milliseconds);
/* Cores that this process may use; 1 when it cannot be told. */
unsigned cx_platform_cores(void);

#endif

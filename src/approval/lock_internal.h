/*
 * lock_internal.h - shared by lock.c and lock_acquire.c: the folder of locks, open and read.
 */
#ifndef CX_APPROVAL_LOCK_INTERNAL_H
#define CX_APPROVAL_LOCK_INTERNAL_H

#include "approval/lock.h"

#define CX_RUN_LOCK_NAME_SIZE 70 /* 64 hex digits, ".lock", a terminator */

typedef struct cx_run_locks {
    const cx_run_store *store;
    cx_arena *arena;
    cx_file mutex; /* CX_FILE_NONE when read-only */
    cx_file folder;
    cx_run_lock *list; /* sorted by path */
    size_t count;
} cx_run_locks;

/* Reads all locks; with `change` under the mutex until close. */
CX_RESULT cx_run_locks_open(cx_run_locks *locks, const cx_run_store *store, bool change,
                            cx_arena *arena, cx_err *err);
void cx_run_locks_close(cx_run_locks *locks);
/* False when the value is not the content of a lock file. */
bool cx_run_lock_parse(const cx_json *value, cx_run_lock *out);
void cx_run_lock_file_name(const cx_digest *key, char out[CX_RUN_LOCK_NAME_SIZE]);
/* Classifies a lock by the table of §11, in its present state. */
cx_run_lock_reason cx_run_locks_classify(const cx_run_locks *locks, const cx_run_lock *lock);
CX_RESULT cx_run_locks_remove(cx_run_locks *locks, const cx_run_lock *lock, cx_err *err);
/* A new lock, or with `replace` a renewed one. */
CX_RESULT cx_run_locks_write(cx_run_locks *locks, const cx_run_lock *lock, bool replace,
                             cx_err *err);

#endif

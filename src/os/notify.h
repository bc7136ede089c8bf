/*
 * notify.h - the kernel says which names in which folders changed (inotify).
 *
 * It only says where to look again: what is lost (too many changes at once, folders beyond the
 * kernel's limit, file systems of other machines) has to be found by looking at everything. Belongs
 * to one thread.
 */
#ifndef CX_OS_NOTIFY_H
#define CX_OS_NOTIFY_H

#include "base/api.h"

typedef struct cx_notify cx_notify;

/* CX_E_UNSUPPORTED, CX_E_LIMIT when the kernel gives none. */
CX_RESULT cx_notify_open(const cx_alloc *alloc, cx_notify **out, cx_err *err);
void cx_notify_close(cx_notify *notify); /* NULL is fine */

/* Watches one folder, not what is below it; again: fine.  CX_E_LIMIT when the kernel has no more.
 */
CX_RESULT cx_notify_add(cx_notify *notify, const char *folder, cx_err *err);

/* A name that appeared, was written to, was renamed to, or went, in a folder as it was added. */
typedef void cx_notify_seen(void *arg, const char *folder, const char *name, bool is_folder);
/*
 * Waits at most that long for something to happen and calls `seen` for all of it; a signal ends the
 * wait, too.  *out_lost: something happened that is not known.
 */
CX_RESULT cx_notify_wait(cx_notify *notify, uint32_t timeout_ms, cx_notify_seen *seen, void *arg,
                         bool *out_lost, cx_err *err);

#endif

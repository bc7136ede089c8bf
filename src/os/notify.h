/*
 * notify.h - watches folders for changed names (inotify).
 *
 * It is a hint where to look: lost changes (queue overflow, folders beyond the kernel's limit,
 * network file systems) are found only by a full scan.  Belongs to one thread.
 */
#ifndef CX_OS_NOTIFY_H
#define CX_OS_NOTIFY_H

#include "base/api.h"

typedef struct cx_notify cx_notify;

/* CX_E_UNSUPPORTED, or CX_E_LIMIT when the kernel has no instance left. */
CX_RESULT cx_notify_open(const cx_alloc *alloc, cx_notify **out, cx_err *err);
void cx_notify_close(cx_notify *notify); /* NULL is accepted */

/* Watches one folder, without subfolders; adding it twice is no error.  CX_E_LIMIT when the kernel
 * has no watch left. */
CX_RESULT cx_notify_add(cx_notify *notify, const char *folder, cx_err *err);

/* Called for a name that was created, written, renamed or removed; `folder` as it was added. */
typedef void cx_notify_seen(void *arg, const char *folder, const char *name, bool is_folder);
/*
 * Waits for changes, at most `timeout_ms` or until a signal, and calls `seen` for each.  *out_lost:
 * changes were lost, so a full scan is needed.
 */
CX_RESULT cx_notify_wait(cx_notify *notify, uint32_t timeout_ms, cx_notify_seen *seen, void *arg,
                         bool *out_lost, cx_err *err);

#endif

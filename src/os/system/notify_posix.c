/*
 * notify_posix.c - notify.h where the system does not name the files that change.
 *
 * kqueue(2) reports that a folder has changed, or one open file, but no name, and a descriptor for
 * each file of thousands of sessions is no option.  So there are no hints, and callers scan.
 */
#include "os/notify.h"

cx_status cx_notify_open(const cx_alloc *alloc, cx_notify **out, cx_err *err)
{
    (void)alloc;
    *out = NULL;
    return cx_fail(err, CX_E_UNSUPPORTED, "this system does not name the files that change");
}

void cx_notify_close(cx_notify *notify)
{
    CX_ASSERT(notify == NULL);
}

cx_status cx_notify_add(cx_notify *notify, const char *folder, cx_err *err)
{
    (void)notify;
    return cx_fail(err, CX_E_UNSUPPORTED, "changes in %s cannot be followed", folder);
}

cx_status cx_notify_wait(cx_notify *notify, uint32_t timeout_ms, cx_notify_seen *seen, void *arg,
                         bool *out_lost, cx_err *err)
{
    (void)notify;
    (void)timeout_ms;
    (void)seen;
    (void)arg;
    *out_lost = true;
    return cx_fail(err, CX_E_UNSUPPORTED, "changes of files cannot be followed");
}

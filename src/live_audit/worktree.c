/*
 * worktree.c - files and commits that changed while a session ran, and the calls that explain them
 * (live.md §7.3).
 */
#include <string.h>

#include "live_audit/parts.h"
#include "os/api.h"

/* Clocks of file systems are coarse, and a result is recorded after its effect. */
#define SLACK_NS (INT64_C(2) * 1000000000)

static bool covers(cx_str written, cx_str path)
{
    return cx_str_starts(path, written) &&
           (path.size == written.size || path.data[written.size] == '/');
}

bool cx_live_audit_is_explained(const cx_live_audit_journal *journal, int64_t at_ns, cx_str path)
{
    for (size_t i = 0; i < journal->decisions.count; i++) {
        const cx_live_audit_decision *d = &journal->decisions.items[i];
        if (d->at_ns - SLACK_NS > at_ns)
            break;
        if (d->verdict == CX_LIVE_DENY || d->is_permission ||
            (d->until_ns != INT64_MAX && at_ns > d->until_ns + SLACK_NS))
            continue;
        if (d->commands != 0 || d->hosts != 0)
            return true;
        for (uint32_t k = 0; path.data != NULL && k < d->write_count; k++)
            if (covers(d->writes[k], path))
                return true;
    }
    return false;
}

cx_status cx_live_audit_work_tree(cx_live_audit *audit, cx_err *err)
{
    (void)audit;
    (void)err;
    return CX_SUCCESS;
}

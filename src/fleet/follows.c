/*
 * follows.c - whether a part still leads from what was stated of it: the same part, not shorter,
 * the same commit at that place, and a chain from there to its head (F7).
 */
#include <inttypes.h>

#include "fleet/internal.h"

typedef struct following {
    cx_str name;
    const cx_fleet_point *then;
    uint64_t *out_commits;
} following;

static cx_status find_part(cx_fleet *fleet, const following *f, cx_fleet_now *out, cx_err *err)
{
    cx_fleet_part part;
    cx_err why = {0};
    cx_status status = cx_fleet_find(fleet, f->name, &part, &why);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail_at(err, CX_E_CONFLICT, "PartRemoved", CX_NO_OFFSET,
                          "the fleet has no part of that name any more");
    if (cx_failed(status)) {
        *err = why;
        return status;
    }
    if (part.number != f->then->number || memcmp(part.id, f->then->id, sizeof part.id) != 0)
        return cx_fail_at(err, CX_E_CONFLICT, "PartReplaced", CX_NO_OFFSET,
                          "another part has that name now: its number or its id is not the one "
                          "that was stated");
    return cx_fleet_look(fleet, part.number, out, err);
}

static cx_status check_size(const following *f, const cx_fleet_now *now, cx_err *err)
{
    if (now->next < f->then->commits)
        return cx_fail_at(err, CX_E_CONFLICT, "RolledBack", CX_NO_OFFSET,
                          "it has %" PRIu64 " commits, and %" PRIu64
                          " were stated: the database was restored to an older state",
                          now->next, f->then->commits);
    if (now->epoch < f->then->epoch)
        return cx_fail_at(err, CX_E_CONFLICT, "RolledBack", CX_NO_OFFSET,
                          "its epoch is %" PRIu64 ", and %" PRIu64
                          " was stated: the database was restored to an older state",
                          now->epoch, f->then->epoch);
    return CX_SUCCESS;
}

/* The head after so many commits, as the database has it.  A commit before the base that is still
 * there can show that it is another one now. */
static cx_status check_head_then(cx_fleet *fleet, const cx_fleet_point *then,
                                 const cx_fleet_now *now, cx_err *err)
{
    cx_digest head = cx_fleet_first_head(then->id, then->number);
    bool found = true;
    if (then->commits != 0)
        CX_TRY(cx_fleet_head_after(fleet, then->number, now, then->commits, &head, &found, err));
    if (!found && then->commits > now->base)
        return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                          "part %u, commit %" PRIu64 ": it is missing", then->number,
                          then->commits - 1);
    if (!found || cx_digest_eq(&head, &then->head))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_CONFLICT, "Forked", CX_NO_OFFSET,
                      "after %" PRIu64 " commits its head is not the one that was stated: it was "
                      "written anew",
                      then->commits);
}

/* What was stated is older than the base: what is there can still be found broken, but not that it
 * leads from there. */
static cx_status check_pruned(cx_fleet *fleet, const cx_fleet_point *then, const cx_fleet_now *now,
                              cx_err *err)
{
    cx_fleet_chain ignored = {0};
    CX_TRY(cx_fleet_check_chain(fleet, then->number, now, &ignored, err));
    return cx_fail_at(err, CX_E_UNSUPPORTED, "Pruned", CX_NO_OFFSET,
                      "it was pruned: its chain begins after %" PRIu64 " commits, and %" PRIu64
                      " were stated; only a later checkpoint can be checked",
                      now->base, then->commits);
}

static cx_status check_following(cx_fleet *fleet, void *arg, cx_err *err)
{
    const following *f = arg;
    const cx_fleet_point *then = f->then;
    cx_fleet_now now;
    cx_digest head = then->head;
    CX_TRY(find_part(fleet, f, &now, err));
    *f->out_commits = now.next;
    CX_TRY(check_size(f, &now, err));
    CX_TRY(check_head_then(fleet, then, &now, err));
    if (then->commits < now.base)
        return check_pruned(fleet, then, &now, err);
    CX_TRY(cx_fleet_check_links(fleet, then->number, then->commits, now.next, &head, err));
    if (!cx_digest_eq(&head, &now.head))
        return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                          "part %u: its head is not that of its commits", then->number);
    return CX_SUCCESS;
}

cx_status cx_fleet_follows(cx_fleet *fleet, cx_str name, const cx_fleet_point *then,
                           uint64_t *out_commits, cx_err *err)
{
    following f = {name, then, out_commits};
    *out_commits = 0;
    return cx_fleet_in_one_state(fleet, check_following, &f, err);
}

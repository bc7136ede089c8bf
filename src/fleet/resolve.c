/*
 * resolve.c - outcomes that are not known (F6).
 *
 * The old connection may still have a transaction under way in the server.  So the part's row is
 * changed first, on a new connection: that waits for the row's lock, and with a new epoch nothing
 * that was sent before can be committed any more.  Then what is there is the outcome.  In a strict
 * fleet the change itself waits for the standby: what was committed before it, is there too.
 *
 * Where another node has the part, it changed the epoch already; this node then changes the row
 * of cx_pulse, so that what it read is on the standby when it says so.
 */
#include "fleet/internal.h"

typedef struct confirmed {
    bool found;
    uint64_t epoch, next;
    cx_digest head;
} confirmed;

static cx_status read_confirmed(void *arg, const cx_pg_value *columns, cx_err *err)
{
    confirmed *out = arg;
    out->found = true;
    out->epoch = (uint64_t)columns[0].i;
    out->next = (uint64_t)columns[1].i;
    return cx_fleet_read_digest(&columns[2], &out->head, err);
}

/* A new epoch of the part if it is still ours; one statement, one commit. */
static cx_status send_confirm(cx_fleet *fleet, const cx_fleet_part *part, confirmed *out,
                              cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_INT, CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(part->number), cx_fleet_int(part->epoch),
                                  cx_fleet_text(fleet->owner), cx_fleet_int(fleet->lease_ms)};
    *out = (confirmed){0};
    return cx_pg_query(fleet->pg,
                       "UPDATE " CX_T_PART " SET epoch = epoch + 1, "
                       "lease_until = now() + $4 * interval '1 millisecond' "
                       "WHERE part = $1 AND epoch >= $2 AND owner = $3 RETURNING epoch, next, head",
                       values, CX_COUNT_OF(values), types, CX_COUNT_OF(types), read_confirmed, out,
                       NULL, err);
}

static cx_status send_pulse(cx_fleet *fleet, unsigned part, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(part)};
    return cx_pg_query(fleet->pg, "UPDATE " CX_T_PULSE " SET count = count + 1 WHERE part = $1",
                       values, CX_COUNT_OF(values), NULL, 0, NULL, NULL, NULL, err);
}

/* The part is still ours. */
static cx_status resolve_own(cx_fleet *fleet, cx_fleet_part *part, const confirmed *now,
                             const cx_digest *head, bool *out_there, cx_err *err)
{
    bool same = now->next == part->next && cx_digest_eq(&now->head, &part->head);
    *out_there = now->next == part->next + 1 && cx_digest_eq(&now->head, head);
    if (!same && !*out_there && !CX_FLEET_RULE(CX_RULE_CHAIN)) {
        part->next = now->next;
        part->head = now->head;
        same = true;
    }
    if (!same && !*out_there)
        return cx_fleet_stop(fleet, part, "its head changed, and no node took it", err);
    part->epoch = now->epoch;
    part->owned = true;
    return CX_SUCCESS;
}

/* Another node has it.  *out_again: ask once more. */
static cx_status resolve_lost(cx_fleet *fleet, cx_fleet_part *part, const cx_digest *head,
                              bool *out_there, bool *out_again, cx_err *err)
{
    cx_fleet_now now;
    cx_digest found;
    bool is_there = false;
    *out_again = true;
    CX_TRY(cx_fleet_look(fleet, part->number, &now, err));
    if (now.epoch < part->epoch && !CX_FLEET_RULE(CX_RULE_CHAIN))
        part->epoch = now.epoch;
    if (now.epoch < part->epoch)
        return cx_fleet_stop(fleet, part, "its epoch went back", err);
    if (now.epoch == part->epoch && strcmp(now.owner, fleet->owner) == 0)
        return CX_SUCCESS; /* it is ours after all: this server lags */
    cx_status status = send_pulse(fleet, part->number, err);
    if (cx_fleet_outcome_of(fleet, status) != CX_OUTCOME_DONE)
        return cx_failed(status) ? status : CX_SUCCESS;
    CX_TRY(cx_fleet_commit_head(fleet, part->number, part->next, &found, &is_there, err));
    CX_TRY(cx_fleet_look(fleet, part->number, &now, err));
    if (!is_there && part->next < now.base)
        return cx_fail_at(err, CX_E_IO, "Pruned", CX_NO_OFFSET,
                          "its row was pruned, if it is there");
    *out_there = is_there && cx_digest_eq(&found, head);
    *out_again = false;
    part->owned = false;
    cx_fleet_note(fleet, part, "fenced", *out_there ? "the last commit is there" : "");
    return CX_SUCCESS;
}

/* One attempt on a new connection. */
static cx_status resolve_once(cx_fleet *fleet, cx_fleet_part *part, const cx_digest *head,
                              bool *out_there, bool *out_again, cx_err *err)
{
    confirmed now;
    *out_again = true;
    CX_TRY(cx_fleet_reconnect(fleet, err));
    cx_status status = send_confirm(fleet, part, &now, err);
    if (cx_fleet_outcome_of(fleet, status) != CX_OUTCOME_DONE)
        return cx_failed(status) ? status : CX_SUCCESS;
    if (!now.found)
        return resolve_lost(fleet, part, head, out_there, out_again, err);
    *out_again = false;
    return resolve_own(fleet, part, &now, head, out_there, err);
}

cx_status cx_fleet_resolve(cx_fleet *fleet, cx_fleet_part *part, const cx_digest *head,
                           bool *out_there, cx_err *err)
{
    const cx_io *io = fleet->io;
    uint64_t deadline_ns = cx_fleet_deadline(fleet);
    cx_err why = {0};
    bool again = true;
    if (!CX_FLEET_RULE(CX_RULE_RESOLVE)) {
        *out_there = true;
        return CX_SUCCESS;
    }
    for (unsigned tries = 0; io->monotonic_ns(io) < deadline_ns; tries++) {
        why = (cx_err){0};
        cx_status status = resolve_once(fleet, part, head, out_there, &again, &why);
        bool stopped = why.tag != NULL && strcmp(why.tag, "PartStopped") == 0;
        if (cx_failed(status) && stopped) {
            if (err != NULL)
                *err = why;
            return status;
        }
        if (!cx_failed(status) && !again)
            return CX_SUCCESS;
        cx_fleet_pause(fleet, tries);
    }
    part->owned = false;
    return cx_fail_at(
        err, CX_E_IO, "OutcomeUnknown", CX_NO_OFFSET,
        "part %u: whether the last commit is there could not be resolved within %u ms; the part "
        "must be taken again: %s",
        part->number, fleet->resolve_ms,
        why.message[0] != 0 ? why.message : "no standby confirms a commit");
}

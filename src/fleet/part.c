/*
 * part.c - taking, renewing and giving back a part, and stopping one whose database was restored or
 * changed (F2, F3, F7).
 */
#include <stdio.h>

#include "fleet/internal.h"

/* Groups that are recomputed at the end of a part of which this node knows nothing. */
#define TAIL_GROUPS 16

/* --- looking ---------------------------------------------------------------------------------- */

static cx_status read_now(void *arg, const cx_pg_value *columns, cx_err *err)
{
    cx_fleet_now *out = arg;
    out->epoch = (uint64_t)columns[0].i;
    out->next = (uint64_t)columns[1].i;
    CX_TRY(cx_fleet_read_digest(&columns[2], &out->head, err));
    if (columns[3].text.size != sizeof out->home_id || columns[4].text.size >= sizeof out->owner)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the row of a part in the database is not as it was made");
    memcpy(out->home_id, columns[3].text.data, sizeof out->home_id);
    memcpy(out->owner, columns[4].text.data, columns[4].text.size);
    out->owner[columns[4].text.size] = 0;
    out->strict = columns[5].b;
    out->found = true;
    return CX_SUCCESS;
}

#define NOW_COLUMNS "epoch, next, head, home_id, coalesce(owner, ''), " CX_FLEET_STRICT
static const cx_pg_type now_types[] = {CX_PG_INT,   CX_PG_INT,  CX_PG_BYTES,
                                       CX_PG_BYTES, CX_PG_TEXT, CX_PG_BOOL};

cx_status cx_fleet_look(cx_fleet *fleet, unsigned part, cx_fleet_now *out, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(part)};
    *out = (cx_fleet_now){0};
    CX_TRY(cx_pg_query(fleet->pg, "SELECT " NOW_COLUMNS " FROM " CX_T_PART " WHERE part = $1",
                       values, 1, now_types, CX_COUNT_OF(now_types), read_now, out, NULL, err));
    return out->found ? CX_SUCCESS
                      : cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                                   "part %u has no row in the database", part);
}

/* --- events ----------------------------------------------------------------------------------- */

static cx_status write_event(cx_fleet *fleet, unsigned part, uint64_t epoch, const char *kind,
                             const char *detail, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_int(epoch),
                                  cx_fleet_text(fleet->owner), cx_fleet_text(kind),
                                  cx_fleet_text(detail)};
    return cx_pg_query(fleet->pg,
                       "INSERT INTO " CX_T_EVENT
                       " (part, epoch, node, kind, detail) VALUES ($1, $2, $3, $4, $5)",
                       values, CX_COUNT_OF(values), NULL, 0, NULL, NULL, NULL, err);
}

void cx_fleet_note(cx_fleet *fleet, const cx_fleet_part *part, const char *kind, const char *detail)
{
    cx_status ignored = write_event(fleet, part->number, part->epoch, kind, detail, NULL);
    (void)ignored;
}

cx_status cx_fleet_stop(cx_fleet *fleet, cx_fleet_part *part, const char *why, cx_err *err)
{
    part->owned = false;
    cx_fleet_note(fleet, part, "stopped", why);
    return cx_fail_at(err, CX_E_FORMAT, "PartStopped", CX_NO_OFFSET,
                      "part %u is stopped: %s; the database was restored to an older state or "
                      "changed. 'cortex fleet doctor' shows it, and accepts the state as it is",
                      part->number, why);
}

cx_status cx_fleet_accept(cx_fleet *fleet, unsigned part, cx_err *err)
{
    cx_fleet_now now;
    CX_TRY(cx_fleet_look(fleet, part, &now, err));
    return write_event(fleet, part, now.epoch, "accepted", "by an operator", err);
}

/* --- taking ----------------------------------------------------------------------------------- */

typedef struct taken {
    cx_fleet_now now;
    bool stopped;
} taken;

/* A stop that no operator has accepted since. */
#define IS_STOPPED                                                           \
    "EXISTS (SELECT FROM " CX_T_EVENT " s WHERE s.part = $1 AND s.kind = "   \
    "'stopped' AND s.id > coalesce((SELECT max(a.id) FROM " CX_T_EVENT " a " \
    "WHERE a.part = $1 AND a.kind = 'accepted'), 0))"

/* A lease of this process's own is no obstacle: after an outcome that was not resolved it takes the
 * part again. */
#define TAKE_SQL(condition)                                                                   \
    "WITH t AS (UPDATE " CX_T_PART " SET epoch = epoch + 1, owner = $2, lease_until = "       \
    "now() + $3 * interval '1 millisecond' WHERE part = $1 AND (owner = $2 OR " condition     \
    ") AND NOT " IS_STOPPED " RETURNING part, epoch, next, head, home_id, owner), "           \
    "e AS (INSERT INTO " CX_T_EVENT " (part, epoch, node, kind, prior_until) SELECT t.part, " \
    "t.epoch, $2, 'take', (SELECT CASE WHEN p.owner = $2 THEN NULL ELSE p.lease_until END "   \
    "FROM " CX_T_PART " p WHERE p.part = $1) FROM t) SELECT " NOW_COLUMNS " FROM t"

static cx_status send_take(cx_fleet *fleet, unsigned part, cx_fleet_now *out, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_text(fleet->owner),
                                  cx_fleet_int(fleet->lease_ms)};
    const char *sql = CX_FLEET_RULE(CX_RULE_LEASE)
                          ? TAKE_SQL("lease_until IS NULL OR lease_until < now()")
                          : TAKE_SQL("true");
    *out = (cx_fleet_now){0};
    return cx_pg_query(fleet->pg, sql, values, CX_COUNT_OF(values), now_types,
                       CX_COUNT_OF(now_types), read_now, out, NULL, err);
}

/* An answer that did not come: the part may be ours.  Its epoch is then confirmed by a commit of
 * its own (F6). */
static cx_status confirm_take(cx_fleet *fleet, cx_fleet_part *part, cx_fleet_now *out, cx_err *err)
{
    cx_fleet_part guess = *part;
    bool there;
    CX_TRY(cx_fleet_reconnect(fleet, err));
    CX_TRY(cx_fleet_look(fleet, part->number, out, err));
    if (strcmp(out->owner, fleet->owner) != 0) {
        *out = (cx_fleet_now){0};
        return CX_SUCCESS;
    }
    guess.epoch = out->epoch;
    guess.next = out->next;
    guess.head = out->head;
    guess.known = false;
    CX_TRY(cx_fleet_resolve(fleet, &guess, &out->head, &there, err));
    out->found = guess.owned;
    out->epoch = guess.epoch;
    return CX_SUCCESS;
}

/* That what the node knew is still there: the group before `next` has the head that it had. */
static cx_status check_known(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_now *now,
                             cx_err *err)
{
    cx_digest head = now->head;
    bool found = now->next == part->next;
    if (now->epoch < part->epoch)
        return cx_fleet_stop(fleet, part, "its epoch went back", err);
    if (now->next < part->next)
        return cx_fleet_stop(fleet, part, "groups that were committed are gone", err);
    if (part->next == 0)
        return CX_SUCCESS; /* the chain is read from its begin; an import may have named the log */
    if (memcmp(now->home_id, part->home_id, sizeof now->home_id) != 0)
        return cx_fleet_stop(fleet, part, "it has the identity of another log", err);
    if (!found)
        CX_TRY(cx_fleet_group_head(fleet, part->number, part->next - 1, &head, &found, err));
    if (!found || !cx_digest_eq(&head, &part->head))
        return cx_fleet_stop(fleet, part, "a group that was committed is another one now", err);
    return CX_SUCCESS;
}

/* Recomputes the chain from what is known, or over the newest groups. */
static cx_status check_tail(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_now *now,
                            cx_err *err)
{
    uint64_t from = now->next > TAIL_GROUPS ? now->next - TAIL_GROUPS : 0;
    cx_digest head = cx_fleet_first_head(now->home_id, part->number);
    bool found = true;
    if (part->known)
        from = part->next;
    if (from != 0)
        CX_TRY(cx_fleet_group_head(fleet, part->number, from - 1, &head, &found, err));
    if (!found)
        return cx_fleet_stop(fleet, part, "a group is missing", err);
    cx_err why = {0};
    cx_status status = cx_fleet_read_groups(fleet, part->number, now->home_id, from, now->next,
                                            &head, NULL, NULL, &why);
    if (status.code == CX_E_FORMAT)
        return cx_fleet_stop(fleet, part, why.message, err);
    if (cx_failed(status)) {
        if (err != NULL)
            *err = why;
        return status;
    }
    return cx_digest_eq(&head, &now->head)
               ? CX_SUCCESS
               : cx_fleet_stop(fleet, part, "its head is not that of its groups", err);
}

static cx_status check_taken(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_now *now,
                             cx_err *err)
{
    if (CX_FLEET_RULE(CX_RULE_CHAIN)) {
        if (part->known)
            CX_TRY(check_known(fleet, part, now, err));
        CX_TRY(check_tail(fleet, part, now, err));
    }
    memcpy(part->home_id, now->home_id, sizeof part->home_id);
    part->epoch = now->epoch;
    part->next = now->next;
    part->head = now->head;
    part->owned = part->known = true;
    return CX_SUCCESS;
}

static cx_status read_stopped(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(bool *)arg = columns[0].b;
    return CX_SUCCESS;
}

/* Nothing was taken: because of a lease, or of a stop. */
static cx_status why_not_taken(cx_fleet *fleet, const cx_fleet_part *part, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL};
    const cx_pg_value values[] = {cx_fleet_int(part->number)};
    bool stopped = false;
    CX_TRY(cx_pg_query(fleet->pg, "SELECT " IS_STOPPED, values, 1, types, 1, read_stopped, &stopped,
                       NULL, err));
    if (!stopped)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "PartStopped", CX_NO_OFFSET,
                      "part %u is stopped: a node found that the database was restored or changed; "
                      "'cortex fleet doctor' shows why, and accepts the state as it is",
                      part->number);
}

cx_status cx_fleet_take(cx_fleet *fleet, cx_fleet_part *part, bool *out_taken, cx_err *err)
{
    cx_fleet_now now;
    *out_taken = part->owned = false;
    CX_ASSERT(part->number < CX_FLEET_PARTS && !fleet->read_only);
    CX_TRY(cx_fleet_need_connection(fleet, err));
    cx_status status = send_take(fleet, part->number, &now, err);
    switch (cx_fleet_outcome_of(fleet, status)) {
    case CX_OUTCOME_DONE: break;
    case CX_OUTCOME_UNKNOWN: CX_TRY(confirm_take(fleet, part, &now, err)); break;
    case CX_OUTCOME_AGAIN: return CX_SUCCESS;
    case CX_OUTCOME_ELSEWHERE: CX_TRY(cx_fleet_reconnect(fleet, err)); return CX_SUCCESS;
    default: return status;
    }
    if (!now.found)
        return why_not_taken(fleet, part, err);
    if (fleet->strict && !now.strict)
        return cx_fleet_not_strict(err);
    CX_TRY(check_taken(fleet, part, &now, err));
    *out_taken = true;
    return CX_SUCCESS;
}

/* --- keeping ---------------------------------------------------------------------------------- */

cx_status cx_fleet_not_strict(cx_err *err)
{
    return cx_fail_at(err, CX_E_DENIED, "NotStrict", CX_NO_OFFSET,
                      "the fleet is strict, and the server waits for no standby: set "
                      "synchronous_standby_names, and synchronous_commit to on or remote_apply");
}

cx_status cx_fleet_why_refused(cx_fleet *fleet, cx_fleet_part *part, bool *out_again, cx_err *err)
{
    cx_fleet_now now;
    *out_again = false;
    CX_TRY(cx_fleet_look(fleet, part->number, &now, err));
    bool ours = strcmp(now.owner, fleet->owner) == 0;
    if (ours && now.epoch == part->epoch && now.next == part->next &&
        cx_digest_eq(&now.head, &part->head)) {
        if (fleet->strict && !now.strict)
            return cx_fleet_not_strict(err);
        *out_again = true;
        return CX_SUCCESS;
    }
    part->owned = false;
    if (CX_FLEET_RULE(CX_RULE_CHAIN)) {
        if (ours && now.epoch == part->epoch)
            return cx_fleet_stop(fleet, part, "its head changed, and no node took it", err);
        CX_TRY(check_known(fleet, part, &now, err));
    }
    cx_fleet_note(fleet, part, "fenced", "");
    return cx_fail_at(err, CX_E_CONFLICT, "Fenced", CX_NO_OFFSET,
                      "part %u was taken by another node; nothing was written", part->number);
}

/* Changes the row of an owned part by `sql`, whose first three parameters are part, epoch,
 * owner. */
static cx_status change_owned(cx_fleet *fleet, cx_fleet_part *part, const char *sql,
                              cx_pg_value fourth, size_t count, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(part->number), cx_fleet_int(part->epoch),
                                  cx_fleet_text(fleet->owner), fourth};
    uint64_t changed = 0;
    bool again;
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_pg_query(fleet->pg, sql, values, count, NULL, 0, NULL, NULL, &changed, err));
    return changed == 1 ? CX_SUCCESS : cx_fleet_why_refused(fleet, part, &again, err);
}

cx_status cx_fleet_renew(cx_fleet *fleet, cx_fleet_part *part, cx_err *err)
{
    CX_ASSERT(part->owned);
    return change_owned(fleet, part,
                        "UPDATE " CX_T_PART " SET lease_until = now() + $4 * "
                        "interval '1 millisecond' WHERE part = $1 AND epoch = $2 AND owner = $3",
                        cx_fleet_int(fleet->lease_ms), 4, err);
}

cx_status cx_fleet_give_back(cx_fleet *fleet, cx_fleet_part *part, cx_err *err)
{
    CX_ASSERT(part->owned);
    cx_status status = change_owned(fleet, part,
                                    "UPDATE " CX_T_PART " SET lease_until = NULL, "
                                    "owner = NULL WHERE part = $1 AND epoch = $2 AND owner = $3",
                                    cx_fleet_int(0), 3, err);
    part->owned = false;
    return status;
}

cx_status cx_fleet_adopt(cx_fleet *fleet, cx_fleet_part *part, const uint8_t home_id[16],
                         cx_err *err)
{
    cx_digest head = cx_fleet_first_head(home_id, part->number);
    const cx_pg_value values[] = {cx_fleet_int(part->number),  cx_fleet_int(part->epoch),
                                  cx_fleet_text(fleet->owner), cx_fleet_bytes(home_id, 16),
                                  cx_fleet_digest(&head),      cx_fleet_digest(&part->head)};
    uint64_t changed = 0;
    CX_ASSERT(part->owned && part->next == 0);
    CX_TRY(cx_pg_query(fleet->pg,
                       "UPDATE " CX_T_PART " SET home_id = $4, head = $5 "
                       "WHERE part = $1 AND epoch = $2 AND owner = $3 AND next = 0 AND head = $6",
                       values, CX_COUNT_OF(values), NULL, 0, NULL, NULL, &changed, err));
    if (changed != 1) {
        bool again;
        return cx_fleet_why_refused(fleet, part, &again, err);
    }
    memcpy(part->home_id, home_id, sizeof part->home_id);
    part->head = head;
    return CX_SUCCESS;
}

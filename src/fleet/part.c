/*
 * part.c - taking, renewing and giving back a part, and stopping one whose database was restored or
 * changed (F2, F3, F7).
 */
#include <stdio.h>

#include "fleet/internal.h"

/* Links that are recomputed at the end of a part of which this node knows nothing. */
#define TAIL_LINKS 64

/* --- looking ---------------------------------------------------------------------------------- */

static cx_status read_now(void *arg, const cx_pg_value *columns, cx_err *err)
{
    cx_fleet_now *out = arg;
    out->epoch = (uint64_t)columns[0].i;
    out->next = (uint64_t)columns[1].i;
    CX_TRY(cx_fleet_read_digest(&columns[2], &out->head, err));
    if (columns[3].text.size != sizeof out->id || columns[4].text.size >= sizeof out->owner)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the row of a part in the database is not as it was made");
    memcpy(out->id, columns[3].text.data, sizeof out->id);
    memcpy(out->owner, columns[4].text.data, columns[4].text.size);
    out->owner[columns[4].text.size] = 0;
    out->strict = columns[5].b;
    out->quota = (uint64_t)columns[6].i;
    out->base = (uint64_t)columns[7].i;
    out->base_num = (uint64_t)columns[9].i;
    out->base_head = cx_fleet_first_head(out->id, (unsigned)columns[10].i);
    if (out->base != 0)
        CX_TRY(cx_fleet_read_digest(&columns[8], &out->base_head, err));
    out->found = true;
    return CX_SUCCESS;
}

#define NOW_COLUMNS                                                     \
    "epoch, next, head, id, coalesce(owner, ''), " CX_FLEET_STRICT ", " \
    "coalesce(quota_bytes, 0), base, coalesce(base_head, ''), coalesce(base_num, 0), part"
static const cx_pg_type now_types[] = {CX_PG_INT,   CX_PG_INT,  CX_PG_BYTES, CX_PG_BYTES,
                                       CX_PG_TEXT,  CX_PG_BOOL, CX_PG_INT,   CX_PG_INT,
                                       CX_PG_BYTES, CX_PG_INT,  CX_PG_INT};

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

static cx_status read_found(void *arg, const cx_pg_value *columns, cx_err *err)
{
    cx_fleet_part *out = arg;
    if (columns[0].i < 0 || columns[0].i >= CX_FLEET_PARTS_MAX ||
        columns[1].text.size != sizeof out->id)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the row of a part in the database is not as it was made");
    out->number = (unsigned)columns[0].i;
    memcpy(out->id, columns[1].text.data, sizeof out->id);
    return CX_SUCCESS;
}

cx_status cx_fleet_find(cx_fleet *fleet, cx_str name, cx_fleet_part *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_str(name)};
    uint64_t rows = 0;
    *out = (cx_fleet_part){0};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_pg_query(fleet->pg, "SELECT part, id FROM " CX_T_PART " WHERE name = $1", values, 1,
                       types, CX_COUNT_OF(types), read_found, out, &rows, err));
    if (rows == 1)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoPart", CX_NO_OFFSET,
                      "the fleet has no part '%.*s'; 'cortex fleet parts' shows those it has, and "
                      "'cortex fleet add' makes one",
                      (int)name.size, name.data);
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
    CX_TRY(cx_fleet_need_connection(fleet, err));
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
#define TAKE_SQL(condition)                                                                     \
    "WITH t AS (UPDATE " CX_T_PART " SET epoch = epoch + 1, owner = $2, address = NULL, "       \
    "lease_until = now() + $3 * interval '1 millisecond' WHERE part = $1 AND moved_to IS NULL " \
    "AND (owner = $2 OR " condition ") AND NOT " IS_STOPPED                                     \
    " RETURNING part, epoch, next, head, id, owner, quota_bytes, base, base_head, base_num), "  \
    "e AS (INSERT INTO " CX_T_EVENT " (part, epoch, node, kind, prior_until) SELECT t.part, "   \
    "t.epoch, $2, 'take', (SELECT CASE WHEN p.owner = $2 THEN NULL ELSE p.lease_until END "     \
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

/* That what the node knew is still there: the commit before `next` has the head that it had. */
static cx_status check_known(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_now *now,
                             cx_err *err)
{
    cx_digest head = now->head;
    bool found = now->next == part->next;
    if (now->epoch < part->epoch)
        return cx_fleet_stop(fleet, part, "its epoch went back", err);
    if (now->next < part->next)
        return cx_fleet_stop(fleet, part, "commits that were acknowledged are gone", err);
    if (memcmp(now->id, part->id, sizeof now->id) != 0)
        return cx_fleet_stop(fleet, part, "it is another part", err);
    if (part->next == 0)
        return CX_SUCCESS; /* the chain is read from its begin */
    if (part->next < now->base) {
        part->owned = false;
        return cx_fail_at(err, CX_E_CONFLICT, "Pruned", CX_NO_OFFSET,
                          "part %u was pruned past the last commit that this process knows; start "
                          "it again",
                          part->number);
    }
    if (!found)
        CX_TRY(cx_fleet_head_after(fleet, part->number, now, part->next, &head, &found, err));
    if (!found || !cx_digest_eq(&head, &part->head))
        return cx_fleet_stop(fleet, part, "a commit that was acknowledged is another one now", err);
    return CX_SUCCESS;
}

/* Recomputes the chain from what is known, or over the newest links. */
static cx_status check_tail(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_now *now,
                            cx_err *err)
{
    uint64_t from = now->next > TAIL_LINKS ? now->next - TAIL_LINKS : 0;
    cx_digest head;
    bool found = true;
    if (part->known)
        from = part->next;
    if (from < now->base)
        from = now->base;
    CX_TRY(cx_fleet_head_after(fleet, part->number, now, from, &head, &found, err));
    if (!found)
        return cx_fleet_stop(fleet, part, "a commit is missing", err);
    cx_err why = {0};
    cx_status status = cx_fleet_check_links(fleet, part->number, from, now->next, &head, &why);
    if (status.code == CX_E_FORMAT)
        return cx_fleet_stop(fleet, part, why.message, err);
    if (cx_failed(status)) {
        if (err != NULL)
            *err = why;
        return status;
    }
    return cx_digest_eq(&head, &now->head)
               ? CX_SUCCESS
               : cx_fleet_stop(fleet, part, "its head is not that of its commits", err);
}

static cx_status check_taken(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_now *now,
                             cx_err *err)
{
    if (CX_FLEET_RULE(CX_RULE_CHAIN)) {
        if (part->known)
            CX_TRY(check_known(fleet, part, now, err));
        CX_TRY(check_tail(fleet, part, now, err));
    }
    memcpy(part->id, now->id, sizeof part->id);
    part->epoch = now->epoch;
    part->next = now->next;
    part->head = now->head;
    part->quota = now->quota;
    part->owned = part->known = true;
    return CX_SUCCESS;
}

typedef struct obstacle {
    bool stopped;
    char moved_to[CX_FLEET_URL_MAX];
} obstacle;

static cx_status read_obstacle(void *arg, const cx_pg_value *columns, cx_err *err)
{
    obstacle *out = arg;
    (void)err;
    out->stopped = columns[0].b;
    (void)snprintf(out->moved_to, sizeof out->moved_to, "%.*s", (int)columns[1].text.size,
                   columns[1].text.data);
    return CX_SUCCESS;
}

/* Nothing was taken: because of a lease, or of a stop, or because it is elsewhere. */
static cx_status why_not_taken(cx_fleet *fleet, const cx_fleet_part *part, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL, CX_PG_TEXT};
    const cx_pg_value values[] = {cx_fleet_int(part->number)};
    obstacle found = {0};
    CX_TRY(cx_pg_query(fleet->pg,
                       "SELECT " IS_STOPPED ", coalesce(p.moved_to, '') FROM " CX_T_PART
                       " p WHERE p.part = $1",
                       values, 1, types, CX_COUNT_OF(types), read_obstacle, &found, NULL, err));
    if (found.moved_to[0] != 0)
        return cx_fail_at(err, CX_E_CONFLICT, "PartMoved", CX_NO_OFFSET, "part %u was moved to %s",
                          part->number, found.moved_to);
    if (!found.stopped)
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
    CX_ASSERT(!fleet->read_only);
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

static cx_status read_quota(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(uint64_t *)arg = (uint64_t)columns[0].i;
    return CX_SUCCESS;
}

cx_status cx_fleet_renew(cx_fleet *fleet, cx_fleet_part *part, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    const cx_pg_value values[] = {cx_fleet_int(part->number), cx_fleet_int(part->epoch),
                                  cx_fleet_text(fleet->owner), cx_fleet_int(fleet->lease_ms)};
    uint64_t rows = 0;
    bool again;
    CX_ASSERT(part->owned);
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_pg_query(fleet->pg,
                       "UPDATE " CX_T_PART " SET lease_until = now() + $4 * "
                       "interval '1 millisecond' WHERE part = $1 AND epoch = $2 AND owner = $3 "
                       "RETURNING coalesce(quota_bytes, 0)",
                       values, CX_COUNT_OF(values), types, 1, read_quota, &part->quota, &rows,
                       err));
    return rows == 1 ? CX_SUCCESS : cx_fleet_why_refused(fleet, part, &again, err);
}

cx_status cx_fleet_give_back(cx_fleet *fleet, cx_fleet_part *part, cx_err *err)
{
    CX_ASSERT(part->owned);
    cx_status status = change_owned(fleet, part,
                                    "UPDATE " CX_T_PART " SET lease_until = NULL, owner = NULL, "
                                    "address = NULL WHERE part = $1 AND epoch = $2 AND owner = $3",
                                    cx_fleet_int(0), 3, err);
    part->owned = false;
    return status;
}

/* As a take does, it begins an epoch, and waits for a statement that is under way. */
cx_status cx_fleet_release(cx_fleet *fleet, unsigned part, const char *owner, bool *out_released,
                           cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_text(owner)};
    uint64_t changed = 0;
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_pg_query(fleet->pg,
                       "WITH t AS (UPDATE " CX_T_PART " SET epoch = epoch + 1, owner = NULL, "
                       "address = NULL, lease_until = NULL WHERE part = $1 AND owner = $2 "
                       "RETURNING part, epoch) INSERT INTO " CX_T_EVENT
                       " (part, epoch, node, kind) SELECT part, epoch, $2, 'released' FROM t",
                       values, CX_COUNT_OF(values), NULL, 0, NULL, NULL, &changed, err));
    *out_released = changed == 1;
    return CX_SUCCESS;
}

cx_status cx_fleet_publish(cx_fleet *fleet, cx_fleet_part *part, const char *address, cx_err *err)
{
    CX_ASSERT(part->owned);
    if (strlen(address) > CX_FLEET_ADDRESS_MAX)
        return cx_fail(err, CX_E_LIMIT, "an address has at most %d bytes", CX_FLEET_ADDRESS_MAX);
    return change_owned(fleet, part,
                        "UPDATE " CX_T_PART " SET address = nullif($4, '') "
                        "WHERE part = $1 AND epoch = $2 AND owner = $3",
                        cx_fleet_text(address), 4, err);
}

/*
 * That it is elsewhere must survive a failover: otherwise it could be taken here and there.  So the
 * statement is sent until it is known to be committed, and finds what it did itself.
 */
cx_status cx_fleet_moved(cx_fleet *fleet, cx_fleet_part *part, const char *where, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(part->number), cx_fleet_int(part->epoch),
                                  cx_fleet_text(fleet->owner), cx_fleet_text(where)};
    uint64_t changed = 0;
    bool again;
    CX_ASSERT(part->owned);
    cx_status status = cx_fleet_complete(
        fleet,
        "UPDATE " CX_T_PART " SET moved_to = $4, owner = NULL, address = NULL, lease_until = NULL, "
        "epoch = $2 + 1 WHERE part = $1 AND ((epoch = $2 AND owner = $3) OR (epoch = $2 + 1 AND "
        "owner IS NULL AND moved_to = $4))",
        values, CX_COUNT_OF(values), &changed, err);
    if (!cx_failed(status) && changed == 0)
        status = cx_fleet_why_refused(fleet, part, &again, err);
    if (!cx_failed(status) && changed == 0)
        status = cx_fail_at(err, CX_E_BUSY, "DatabaseAway", CX_NO_OFFSET,
                            "part %u was not marked as moved; try again", part->number);
    if (!cx_failed(status)) {
        /* Not where to: an address may have a password. */
        cx_fleet_part there = *part;
        there.epoch++;
        cx_fleet_note(fleet, &there, "moved", "");
    }
    part->owned = false;
    return status;
}

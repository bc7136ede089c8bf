/*
 * list.c - parts, events and server as an operator sees them.
 */
#include <stdio.h>

#include "fleet/internal.h"

typedef struct listing {
    cx_fleet_each_part *each;
    void *arg;
} listing;

static cx_status read_part_row(void *arg, const cx_pg_value *columns, cx_err *err)
{
    const listing *l = arg;
    cx_fleet_row row = {.number = (unsigned)columns[0].i,
                        .name = columns[1].text,
                        .epoch = (uint64_t)columns[3].i,
                        .next = (uint64_t)columns[4].i,
                        .bytes = (uint64_t)columns[6].i,
                        .owner = columns[7].text,
                        .address = columns[8].text,
                        .moved_to = columns[9].text,
                        .lease_left_ms = columns[10].i,
                        .files = (uint64_t)columns[11].i,
                        .stops = (uint64_t)columns[12].i,
                        .stopped = columns[13].b,
                        .fences = (uint64_t)columns[14].i,
                        .base = (uint64_t)columns[15].i,
                        .quota = (uint64_t)columns[16].i,
                        .stored = (uint64_t)columns[17].i,
                        .handed = (uint64_t)columns[18].i,
                        .going_to = columns[19].text};
    CX_TRY(cx_fleet_read_digest(&columns[5], &row.head, err));
    if (columns[2].text.size != sizeof row.id || columns[0].i < 0 ||
        columns[0].i >= CX_FLEET_PARTS_MAX)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the row of a part in the database is not as it was made");
    memcpy(row.id, columns[2].text.data, sizeof row.id);
    return l->each(l->arg, &row, err);
}

cx_status cx_fleet_list(cx_fleet *fleet, cx_fleet_each_part *each, void *arg, cx_err *err)
{
    static const cx_pg_type types[] = {
        CX_PG_INT,  CX_PG_TEXT, CX_PG_BYTES, CX_PG_INT, CX_PG_INT, CX_PG_BYTES, CX_PG_INT,
        CX_PG_TEXT, CX_PG_TEXT, CX_PG_TEXT,  CX_PG_INT, CX_PG_INT, CX_PG_INT,   CX_PG_BOOL,
        CX_PG_INT,  CX_PG_INT,  CX_PG_INT,   CX_PG_INT, CX_PG_INT, CX_PG_TEXT};
    listing l = {each, arg};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(
        fleet->pg,
        "SELECT p.part, p.name, p.id, p.epoch, p.next, p.head, p.bytes, coalesce(p.owner, ''), "
        "coalesce(p.address, ''), coalesce(p.moved_to, ''), "
        "coalesce((extract(epoch FROM p.lease_until - now()) * 1000)::bigint, 0), "
        "(SELECT count(*) FROM " CX_T_FILE " f WHERE f.part = p.part), "
        "s.stops, coalesce(s.stop > coalesce(s.accepted, 0), false), s.fences, p.base, "
        "coalesce(p.quota_bytes, 0), "
        "CASE WHEN p.quota_bytes IS NULL THEN 0 ELSE " CX_FLEET_STORED " END, s.handed, "
        "coalesce((SELECT b.to_node FROM " CX_T_BALANCE " b WHERE b.part = p.part AND b.until > "
        "now()), '') FROM " CX_T_PART
        " p CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE e.kind = 'stopped') AS stops, "
        "count(*) FILTER (WHERE e.kind = 'fenced') AS fences, "
        "count(*) FILTER (WHERE e.kind = 'handed') AS handed, "
        "max(e.id) FILTER (WHERE e.kind = 'stopped') AS stop, "
        "max(e.id) FILTER (WHERE e.kind = 'accepted') AS accepted "
        "FROM " CX_T_EVENT " e WHERE e.part = p.part AND e.kind IN ('stopped', 'fenced', "
        "'accepted', 'handed')) s ORDER BY 1",
        NULL, 0, types, CX_COUNT_OF(types), read_part_row, &l, NULL, err);
}

/* --- events ----------------------------------------------------------------------------------- */

typedef struct event_list {
    cx_fleet_each_event *each;
    void *arg;
} event_list;

static cx_status read_event(void *arg, const cx_pg_value *columns, cx_err *err)
{
    const event_list *l = arg;
    const cx_fleet_event event = {.part = columns[0].text,
                                  .owner = columns[1].text,
                                  .kind = columns[2].text,
                                  .detail = columns[3].text,
                                  .at = columns[4].text,
                                  .epoch = (uint64_t)columns[5].i,
                                  .ago_ms = columns[6].i,
                                  .ended_lease = columns[7].b};
    return l->each(l->arg, &event, err);
}

/* By the index that has the newest ones of what is asked for at its end. */
#define EVENTS_SQL(condition)                                                          \
    "SELECT coalesce(p.name, ''), e.node, e.kind, coalesce(e.detail, ''), "            \
    "to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), e.epoch, " \
    "(extract(epoch FROM now() - e.at) * 1000)::bigint, e.prior_until IS NOT NULL "    \
    "FROM (SELECT * FROM " CX_T_EVENT " " condition                                    \
    " ORDER BY id DESC LIMIT $1) e LEFT JOIN " CX_T_PART                               \
    " p ON p.part = e.part ORDER BY e.id DESC"

cx_status cx_fleet_list_events(cx_fleet *fleet, cx_str part, unsigned most,
                               cx_fleet_each_event *each, void *arg, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_TEXT, CX_PG_TEXT, CX_PG_TEXT, CX_PG_TEXT,
                                       CX_PG_TEXT, CX_PG_INT,  CX_PG_INT,  CX_PG_BOOL};
    const cx_pg_value values[] = {cx_fleet_int(most), cx_fleet_str(part)};
    event_list l = {each, arg};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(
        fleet->pg,
        part.size == 0
            ? EVENTS_SQL("")
            : EVENTS_SQL("WHERE part = (SELECT part FROM " CX_T_PART " WHERE name = $2)"),
        values, part.size == 0 ? 1 : 2, types, CX_COUNT_OF(types), read_event, &l, NULL, err);
}

/* --- the server ------------------------------------------------------------------------------- */

static cx_status read_server(void *arg, const cx_pg_value *columns, cx_err *err)
{
    cx_fleet_server *out = arg;
    (void)err;
    out->standby_named = columns[0].b;
    out->commit_waits = columns[1].b;
    out->read_only = columns[2].b;
    out->migrations = (uint64_t)columns[3].i;
    out->long_transactions = (uint64_t)columns[4].i;
    size_t size = columns[5].text.size < sizeof out->version - 1 ? columns[5].text.size
                                                                 : sizeof out->version - 1;
    memcpy(out->version, columns[5].text.data, size);
    out->version[size] = 0;
    return CX_SUCCESS;
}

cx_status cx_fleet_server_of(cx_fleet *fleet, cx_fleet_server *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL, CX_PG_BOOL, CX_PG_BOOL,
                                       CX_PG_INT,  CX_PG_INT,  CX_PG_TEXT};
    *out = (cx_fleet_server){.migrations_known = cx_fleet_migrations_known()};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(fleet->pg,
                       "SELECT current_setting('synchronous_standby_names') <> '', "
                       "current_setting('synchronous_commit') IN ('on', 'remote_apply'), "
                       "pg_is_in_recovery(), "
                       "(SELECT count(*) FROM " CX_T_MIGRATION "), "
                       "(SELECT count(*) FROM pg_stat_activity WHERE datname = "
                       "current_database() AND "
                       "xact_start < now() - interval '1 minute'), "
                       "current_setting('server_version')",
                       NULL, 0, types, CX_COUNT_OF(types), read_server, out, NULL, err);
}

/*
 * list.c - parts and server as an operator sees them.
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
                        .epoch = (uint64_t)columns[2].i,
                        .next = (uint64_t)columns[3].i,
                        .frames = (uint64_t)columns[5].i,
                        .bytes = (uint64_t)columns[6].i,
                        .owner = columns[7].text,
                        .lease_left_ms = columns[8].i,
                        .actors = (uint64_t)columns[9].i,
                        .stops = (uint64_t)columns[10].i,
                        .stopped = columns[11].b};
    CX_TRY(cx_fleet_read_digest(&columns[4], &row.head, err));
    if (columns[1].text.size != sizeof row.home_id || row.number >= CX_FLEET_PARTS)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the row of a part in the database is not as it was made");
    memcpy(row.home_id, columns[1].text.data, sizeof row.home_id);
    return l->each(l->arg, &row, err);
}

cx_status cx_fleet_list(cx_fleet *fleet, bool all, cx_fleet_each_part *each, void *arg, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT,   CX_PG_BYTES, CX_PG_INT, CX_PG_INT,
                                       CX_PG_BYTES, CX_PG_INT,   CX_PG_INT, CX_PG_TEXT,
                                       CX_PG_INT,   CX_PG_INT,   CX_PG_INT, CX_PG_BOOL};
    const cx_pg_value values[] = {{.type = CX_PG_BOOL, .b = all}};
    listing l = {each, arg};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(
        fleet->pg,
        "SELECT p.part, p.home_id, p.epoch, p.next, p.head, p.frames, p.bytes, "
        "coalesce(p.owner, ''), "
        "coalesce((extract(epoch FROM p.lease_until - now()) * 1000)::bigint, 0), "
        "(SELECT count(*) FROM " CX_T_ACTOR " a WHERE a.part = p.part), "
        "(SELECT count(*) FROM " CX_T_EVENT " s WHERE s.part = p.part AND s.kind = 'stopped'), "
        "EXISTS (SELECT FROM " CX_T_EVENT
        " s WHERE s.part = p.part AND s.kind = 'stopped' AND s.id > "
        "coalesce((SELECT max(a.id) FROM " CX_T_EVENT " a WHERE a.part = p.part AND a.kind = "
        "'accepted'), 0)) "
        "FROM " CX_T_PART " p WHERE $1 OR p.epoch > 0 OR p.next > 0 ORDER BY 1",
        values, 1, types, CX_COUNT_OF(types), read_part_row, &l, NULL, err);
}

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

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
                        .stopped = columns[13].b};
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
    static const cx_pg_type types[] = {CX_PG_INT,   CX_PG_TEXT, CX_PG_BYTES, CX_PG_INT,  CX_PG_INT,
                                       CX_PG_BYTES, CX_PG_INT,  CX_PG_TEXT,  CX_PG_TEXT, CX_PG_TEXT,
                                       CX_PG_INT,   CX_PG_INT,  CX_PG_INT,   CX_PG_BOOL};
    listing l = {each, arg};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(
        fleet->pg,
        "SELECT p.part, p.name, p.id, p.epoch, p.next, p.head, p.bytes, coalesce(p.owner, ''), "
        "coalesce(p.address, ''), coalesce(p.moved_to, ''), "
        "coalesce((extract(epoch FROM p.lease_until - now()) * 1000)::bigint, 0), "
        "(SELECT count(*) FROM " CX_T_FILE " f WHERE f.part = p.part), "
        "(SELECT count(*) FROM " CX_T_EVENT " s WHERE s.part = p.part AND s.kind = 'stopped'), "
        "EXISTS (SELECT FROM " CX_T_EVENT
        " s WHERE s.part = p.part AND s.kind = 'stopped' AND s.id > "
        "coalesce((SELECT max(a.id) FROM " CX_T_EVENT " a WHERE a.part = p.part AND a.kind = "
        "'accepted'), 0)) "
        "FROM " CX_T_PART " p ORDER BY 1",
        NULL, 0, types, CX_COUNT_OF(types), read_part_row, &l, NULL, err);
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

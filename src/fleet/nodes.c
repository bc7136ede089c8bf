/*
 * nodes.c - processes that serve, as operators and other nodes see them.
 */
#include "fleet/internal.h"

static cx_status read_flag(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(bool *)arg = columns[0].b;
    return CX_SUCCESS;
}

cx_str cx_fleet_node_name(const cx_fleet *fleet)
{
    const char *slash = strrchr(fleet->owner, '/');
    return (cx_str){fleet->owner, (size_t)(slash - fleet->owner)};
}

cx_status cx_fleet_node_tell(cx_fleet *fleet, unsigned part, const char *address, bool balances,
                             const cx_fleet_counts *counts, bool *out_drain, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL};
    const int64_t numbers[] = {(int64_t)counts->open,     (int64_t)counts->held,
                               (int64_t)counts->own,      (int64_t)counts->accepted,
                               (int64_t)counts->given_up, (int64_t)counts->refused};
    const cx_pg_value values[] = {
        cx_fleet_text(fleet->owner),
        cx_fleet_str(cx_fleet_node_name(fleet)),
        cx_fleet_int(part),
        cx_fleet_text(address),
        cx_fleet_text(cx_version()),
        {.type = CX_PG_BOOL, .b = balances},
        {.type = CX_PG_INTS, .times = numbers, .count = CX_COUNT_OF(numbers)}};
    *out_drain = false;
    if (strlen(address) > CX_FLEET_ADDRESS_MAX)
        return cx_fail(err, CX_E_LIMIT, "an address has at most %d bytes", CX_FLEET_ADDRESS_MAX);
    CX_TRY(cx_fleet_need_connection(fleet, err));
    /* A process that is new takes over what its node was told. */
    return cx_pg_query(
        fleet->pg,
        "INSERT INTO " CX_T_NODE " AS n (owner, node, part, address, version, balances, "
        "counts, draining) SELECT $1, $2, $3, $4, $5, $6, $7, coalesce((SELECT bool_or(o.draining) "
        "FROM " CX_T_NODE
        " o WHERE o.node = $2), false) ON CONFLICT (owner) DO UPDATE SET seen_at = now(), "
        "address = excluded.address, counts = excluded.counts RETURNING draining",
        values, CX_COUNT_OF(values), types, 1, read_flag, out_drain, NULL, err);
}

cx_status cx_fleet_node_leave(cx_fleet *fleet, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_text(fleet->owner)};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    /* The row of a node that drains stays: its next process must know. */
    return cx_pg_query(fleet->pg,
                       "DELETE FROM " CX_T_NODE " WHERE owner = $1 AND NOT draining OR "
                       "seen_at < now() - interval '7 days'",
                       values, 1, NULL, 0, NULL, NULL, NULL, err);
}

cx_status cx_fleet_drain(cx_fleet *fleet, cx_str node, bool drain, uint64_t *out_count, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_str(node), {.type = CX_PG_BOOL, .b = drain}};
    return cx_fleet_complete(fleet, "UPDATE " CX_T_NODE " SET draining = $2 WHERE node = $1",
                             values, CX_COUNT_OF(values), out_count, err);
}

typedef struct node_list {
    cx_fleet_each_node *each;
    void *arg;
} node_list;

static cx_status read_node(void *arg, const cx_pg_value *columns, cx_err *err)
{
    const node_list *l = arg;
    const cx_fleet_node_row row = {.owner = columns[0].text,
                                   .node = columns[1].text,
                                   .part = columns[2].text,
                                   .address = columns[3].text,
                                   .version = columns[4].text,
                                   .draining = columns[5].b,
                                   .silent_ms = columns[6].i,
                                   .up_ms = columns[7].i,
                                   .has_counts = columns[8].i >= 0,
                                   .counts = {.open = (uint64_t)columns[8].i,
                                              .held = (uint64_t)columns[9].i,
                                              .own = (uint64_t)columns[10].i,
                                              .accepted = (uint64_t)columns[11].i,
                                              .given_up = (uint64_t)columns[12].i,
                                              .refused = (uint64_t)columns[13].i}};
    return l->each(l->arg, &row, err);
}

cx_status cx_fleet_list_nodes(cx_fleet *fleet, cx_fleet_each_node *each, void *arg, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_TEXT, CX_PG_TEXT, CX_PG_TEXT, CX_PG_TEXT, CX_PG_TEXT,
                                       CX_PG_BOOL, CX_PG_INT,  CX_PG_INT,  CX_PG_INT,  CX_PG_INT,
                                       CX_PG_INT,  CX_PG_INT,  CX_PG_INT,  CX_PG_INT};
    node_list l = {each, arg};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(fleet->pg,
                       "SELECT n.owner, n.node, coalesce(p.name, ''), n.address, n.version, "
                       "n.draining, (extract(epoch FROM now() - n.seen_at) * 1000)::bigint, "
                       "(extract(epoch FROM now() - n.started_at) * 1000)::bigint, "
                       "coalesce(n.counts[1], -1), coalesce(n.counts[2], 0), "
                       "coalesce(n.counts[3], 0), coalesce(n.counts[4], 0), "
                       "coalesce(n.counts[5], 0), coalesce(n.counts[6], 0) FROM " CX_T_NODE
                       " n LEFT JOIN " CX_T_PART
                       " p ON p.part = n.part ORDER BY n.node, n.started_at",
                       NULL, 0, types, CX_COUNT_OF(types), read_node, &l, NULL, err);
}

/* --- where a part is served ------------------------------------------------------------------- */

typedef struct where {
    char *address;
    bool own;
    const cx_fleet *fleet;
} where;

static cx_status read_where(void *arg, const cx_pg_value *columns, cx_err *err)
{
    where *w = arg;
    if (columns[0].text.size > CX_FLEET_ADDRESS_MAX)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the address of a part in the database is longer than it can be");
    memcpy(w->address, columns[0].text.data, columns[0].text.size);
    w->address[columns[0].text.size] = 0;
    w->own = cx_str_eq(columns[1].text, cx_str_z(w->fleet->owner));
    return CX_SUCCESS;
}

cx_status cx_fleet_address_of(cx_fleet *fleet, unsigned part, char *address, bool *out_own,
                              cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_TEXT, CX_PG_TEXT};
    const cx_pg_value values[] = {cx_fleet_int(part)};
    where w = {.address = address, .fleet = fleet};
    address[0] = 0;
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(
        cx_pg_query(fleet->pg,
                    "SELECT CASE WHEN lease_until > now() THEN coalesce(address, '') ELSE '' END, "
                    "coalesce(owner, '') FROM " CX_T_PART " WHERE part = $1",
                    values, 1, types, CX_COUNT_OF(types), read_where, &w, NULL, err));
    *out_own = w.own;
    return CX_SUCCESS;
}

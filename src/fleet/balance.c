/*
 * balance.c - parts are spread evenly over the nodes that are there.
 *
 * A node has too many parts when another one, that could serve one of them, has at least two fewer.
 * The process that serves the first part of the fleet plans: it writes into the one row of
 * cx_balance which part goes from whom to whom.  The owner of that part reads it there, finishes
 * its requests and gives the part back; processes of other nodes leave it to the one that is named,
 * as long as that one is heard of.  Nothing of this matters for safety (F1): a plan that is not
 * followed costs time.
 *
 *   B1  One move at a time: a move begins and ends by an UPDATE of that row, which finds it as it
 *       was.
 *   B2  A node is given a part when it has been there for `after`, twice as long for each time in
 *       the last ten minutes that it died or lost its lease; and a part is moved when its owner has
 *       had it for `after`.
 *   B3  Between two moves there is a pause, twice as long for each move in a row that failed.
 */
#include <stdio.h>

#include "fleet/internal.h"

/* SQL: durations.  A node says every second that it is there. */
#define HEARD "interval '3 seconds'"
#define DIED "interval '5 seconds'"
#define REMEMBERED "interval '10 minutes'"
#define MOVE_LASTS "interval '60 seconds'"
#define MS " * interval '1 millisecond'"

/* Of an owner, "NODE/16 hex digits". */
#define NODE_OF(owner) "left(" owner ", -17)"

/* Of the row `b`: another process serves the part. */
#define ARRIVED                                                                 \
    "EXISTS (SELECT FROM " CX_T_PART " q WHERE q.part = b.part AND q.owner <> " \
    "b.from_owner AND q.address IS NOT NULL AND q.lease_until > now())"
#define HAS_ENDED "b.part IS NOT NULL AND (b.until <= now() OR " ARRIVED ")"
/* B3 */
#define MAY_BEGIN                                                               \
    "b.enabled AND b.part IS NULL AND b.ended_at + (b.after_ms / 5 * power(2, " \
    "least(b.in_a_row, 8)))" MS " <= now()"

/* --- a move ----------------------------------------------------------------------------------- */

typedef struct state {
    bool hands, plans, ended, may_begin;
    char *to;
} state;

static cx_status read_state(void *arg, const cx_pg_value *columns, cx_err *err)
{
    state *out = arg;
    (void)err;
    out->hands = columns[0].b;
    out->plans = columns[1].b;
    out->ended = columns[2].b;
    out->may_begin = columns[3].b;
    (void)snprintf(out->to, CX_FLEET_NODE_MAX + 1, "%.*s", (int)columns[4].text.size,
                   columns[4].text.data);
    return CX_SUCCESS;
}

/* Reads a row or two: each process that serves a part asks once a second. */
static cx_status read_own(cx_fleet *fleet, unsigned part, const char *owner, state *out,
                          cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL, CX_PG_BOOL, CX_PG_BOOL, CX_PG_BOOL, CX_PG_TEXT};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_text(owner)};
    return cx_pg_query(
        fleet->pg,
        "SELECT coalesce(b.part = $1 AND b.from_owner = $2 AND b.until > now(), false), "
        "coalesce((SELECT p.owner FROM " CX_T_PART " p WHERE p.lease_until > now() AND p.address "
        "IS NOT NULL AND EXISTS (SELECT FROM " CX_T_NODE
        " n WHERE n.part = p.part AND n.node = " NODE_OF(
            "p.owner") " AND n.balances AND n.seen_at > now() - " HEARD ") ORDER BY p.part "
                       "LIMIT 1) = $2, false), " HAS_ENDED ", " MAY_BEGIN
                       ", coalesce(b.to_node, '') "
                       "FROM " CX_T_BALANCE " b",
        values, CX_COUNT_OF(values), types, CX_COUNT_OF(types), read_state, out, NULL, err);
}

static cx_status end_move(cx_fleet *fleet, cx_err *err)
{
    return cx_pg_query(
        fleet->pg,
        "UPDATE " CX_T_BALANCE " b SET part = NULL, from_owner = NULL, to_node = NULL, until = "
        "NULL, ended_at = now(), moves = b.moves + d.done, failures = b.failures + 1 - d.done, "
        "in_a_row = CASE d.done WHEN 1 THEN 0 ELSE b.in_a_row + 1 END FROM (SELECT "
        "coalesce((" NODE_OF(
            "q.owner") " = m.to_node AND q.lease_until > now())::int, 0) AS done FROM " CX_T_BALANCE
                       " m LEFT JOIN " CX_T_PART " q ON q.part = m.part) d WHERE " HAS_ENDED,
        NULL, 0, NULL, 0, NULL, NULL, NULL, err);
}

/* Processes that are there, for each node and part; parts that are owned; how many each node
 * has. */
#define LIVE                                                                                  \
    "live AS MATERIALIZED (SELECT n.node, n.part, max(n.started_at) AS since FROM " CX_T_NODE \
    " n WHERE n.seen_at > now() - " HEARD " AND NOT n.draining AND n.balances GROUP BY 1, 2)"
#define OWNED                                                                      \
    "owned AS MATERIALIZED (SELECT p.part, p.owner, p.epoch, p.address, " NODE_OF( \
        "p.owner") " AS node FROM " CX_T_PART " p WHERE p.lease_until > now())"
#define LOADS                                                                                  \
    "loads AS MATERIALIZED (SELECT l.node, count(o.part) AS parts FROM (SELECT DISTINCT node " \
    "FROM live) l LEFT JOIN owned o ON o.node = l.node GROUP BY 1)"

/* B2, of a process `t` of `live`. */
#define TROUBLES                                                                                   \
    "((SELECT count(*) FROM " CX_T_NODE " d WHERE d.part = t.part AND d.node = t.node AND "        \
    "d.seen_at BETWEEN now() - " REMEMBERED " AND now() - " DIED                                   \
    ") + (SELECT count(*) FROM " CX_T_EVENT                                                        \
    " e WHERE e.part = t.part AND e.kind IN ('fenced', 'released') AND e.at > now() - " REMEMBERED \
    " AND " NODE_OF("e.node") " = t.node))"
#define IS_STEADY "now() - t.since >= (b.after_ms * power(2, least(" TROUBLES ", 6)))" MS
#define HAS_STAYED                                                                                 \
    "coalesce((SELECT e.at FROM " CX_T_EVENT " e WHERE e.part = o.part AND e.kind = 'take' ORDER " \
    "BY e.id DESC LIMIT 1) <= now() - b.after_ms" MS ", true)"

static cx_status begin_move(cx_fleet *fleet, cx_err *err)
{
    return cx_pg_query(
        fleet->pg,
        "WITH " LIVE ", " OWNED ", " LOADS ", found AS MATERIALIZED (SELECT o.part, o.owner, "
        "o.epoch, t.node FROM owned o JOIN live s ON s.part = o.part AND s.node = o.node JOIN "
        "loads f ON f.node = o.node JOIN live t ON t.part = o.part AND t.node <> o.node JOIN loads "
        "g ON g.node = t.node CROSS JOIN " CX_T_BALANCE " b WHERE o.address IS NOT NULL AND "
        "f.parts >= g.parts + 2 AND " IS_STEADY " AND " HAS_STAYED " ORDER BY g.parts - f.parts, "
        "o.part, t.node LIMIT 1), begun AS (UPDATE " CX_T_BALANCE " b SET part = found.part, "
        "from_owner = found.owner, to_node = found.node, until = now() + " MOVE_LASTS " FROM found "
        "WHERE " MAY_BEGIN " RETURNING found.part, found.owner, found.epoch, found.node) INSERT "
        "INTO " CX_T_EVENT " (part, epoch, node, kind, detail) SELECT part, epoch, owner, "
        "'handed', 'to ' || node FROM begun",
        NULL, 0, NULL, 0, NULL, NULL, NULL, err);
}

cx_status cx_fleet_balance_step(cx_fleet *fleet, unsigned part, const char *owner, char *to,
                                bool *out_hands, cx_err *err)
{
    state now = {.to = to};
    to[0] = 0;
    *out_hands = false;
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(read_own(fleet, part, owner, &now, err));
    if (now.plans && now.ended)
        CX_TRY(end_move(fleet, err));
    else if (now.plans && now.may_begin)
        CX_TRY(begin_move(fleet, err));
    *out_hands = now.hands;
    return CX_SUCCESS;
}

/* --- for who waits for a part ----------------------------------------------------------------- */

typedef struct waiting {
    bool *is_free, *comes;
} waiting;

static cx_status read_free(void *arg, const cx_pg_value *columns, cx_err *err)
{
    const waiting *out = arg;
    (void)err;
    *out->is_free = columns[0].b;
    *out->comes = columns[1].b;
    return CX_SUCCESS;
}

cx_status cx_fleet_is_free(cx_fleet *fleet, unsigned part, bool *out_free, bool *out_comes,
                           cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL, CX_PG_BOOL};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_str(cx_fleet_node_name(fleet))};
    bool is_free = false, comes = false;
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_pg_query(
        fleet->pg,
        "SELECT coalesce(p.lease_until <= now(), true) AND NOT coalesce(b.to_node <> $2 "
        "AND " NODE_OF(
            "b.from_owner") " <> $2 AND EXISTS (SELECT FROM " CX_T_NODE " n WHERE n.part = "
                            "b.part AND n.node = b.to_node AND NOT n.draining AND n.seen_at > "
                            "now() - " HEARD "), "
                            "false), coalesce(b.to_node = $2, false) FROM " CX_T_PART
                            " p LEFT JOIN " CX_T_BALANCE
                            " b ON b.part = p.part AND b.until > now() WHERE p.part = $1",
        values, CX_COUNT_OF(values), types, CX_COUNT_OF(types), read_free,
        &(waiting){&is_free, &comes}, NULL, err));
    *out_free = is_free;
    *out_comes = comes;
    return CX_SUCCESS;
}

/* --- for operators ---------------------------------------------------------------------------- */

typedef struct reading {
    cx_fleet_balance *out;
    cx_arena *arena;
} reading;

static cx_status read_balance(void *arg, const cx_pg_value *columns, cx_err *err)
{
    const reading *r = arg;
    cx_str texts[3];
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++) {
        texts[i] =
            columns[i].text.size == 0 ? CX_STR("") : cx_arena_copy_str(r->arena, columns[i].text);
        if (texts[i].data == NULL)
            return cx_fail_nomem(err);
    }
    *r->out = (cx_fleet_balance){.part = texts[0],
                                 .from = texts[1],
                                 .to = texts[2],
                                 .enabled = columns[3].b,
                                 .after_ms = (uint64_t)columns[4].i,
                                 .moves = (uint64_t)columns[5].i,
                                 .failures = (uint64_t)columns[6].i};
    return CX_SUCCESS;
}

cx_status cx_fleet_balance_read(cx_fleet *fleet, cx_arena *arena, cx_fleet_balance *out,
                                cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_TEXT, CX_PG_TEXT, CX_PG_TEXT, CX_PG_BOOL,
                                       CX_PG_INT,  CX_PG_INT,  CX_PG_INT};
    reading r = {out, arena};
    *out = (cx_fleet_balance){.enabled = false};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(fleet->pg,
                       "SELECT coalesce(p.name, ''), coalesce(" NODE_OF(
                           "b.from_owner") ", ''), "
                                           "coalesce(b.to_node, ''), b.enabled, b.after_ms, "
                                           "b.moves, b.failures FROM " CX_T_BALANCE
                                           " b LEFT JOIN " CX_T_PART
                                           " p ON p.part = b.part AND b.until > "
                                           "now()",
                       NULL, 0, types, CX_COUNT_OF(types), read_balance, &r, NULL, err);
}

cx_status cx_fleet_balance_set(cx_fleet *fleet, const bool *enabled, uint64_t after_ms, cx_err *err)
{
    const cx_pg_value values[] = {{.type = CX_PG_BOOL, .b = enabled == NULL || *enabled},
                                  {.type = CX_PG_BOOL, .b = enabled != NULL},
                                  cx_fleet_int(after_ms)};
    uint64_t changed = 0;
    if (after_ms != 0 && (after_ms < CX_FLEET_BALANCE_MS_MIN || after_ms > CX_FLEET_BALANCE_MS_MAX))
        return cx_fail(err, CX_E_LIMIT, "parts are moved after %d to %d ms",
                       CX_FLEET_BALANCE_MS_MIN, CX_FLEET_BALANCE_MS_MAX);
    CX_TRY(cx_fleet_complete(fleet,
                             "UPDATE " CX_T_BALANCE " SET enabled = CASE WHEN $2 THEN $1 ELSE "
                             "enabled END, after_ms = coalesce(nullif($3, 0), after_ms)",
                             values, CX_COUNT_OF(values), &changed, err));
    return changed == 1 ? CX_SUCCESS
                        : cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                                     "how parts are spread has no row in the database");
}

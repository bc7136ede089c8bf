/*
 * index_pg_days.c - partitions by day (trace.md §10), without TimescaleDB.
 *
 * A day gets its partition with its first row, and so does the following day, in advance.  Only
 * days around the time of receipt get one: rows that claim to be from long ago or from the future
 * go to the default partition, because otherwise a sender could create any number of tables.  When
 * such a day gets a partition later, its rows are moved there first: PostgreSQL refuses a partition
 * whose rows are in the default one.
 *
 * Creating and dropping tables takes locks until the transaction ends, and a server has a limited
 * number of locks; so the number per transaction is bounded.
 */
#ifdef CX_WITH_PG

#include "index/index_pg.h"

#include "base/api.h"

#define DAY_NS (INT64_C(86400) * 1000000000)
#define DAYS_BACK 100
#define DAYS_AHEAD 2
#define DAYS_MADE_MAX 64
#define DAYS_DROPPED_MAX 96

typedef CX_VEC(int64_t) number_vec;

cx_status cx_index_pg_add_number(void *vector, int64_t number, bool *out_new, cx_err *err)
{
    number_vec *numbers = vector;
    size_t low = 0, high = numbers->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (numbers->items[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    *out_new = low == numbers->count || numbers->items[low] != number;
    if (!*out_new)
        return CX_SUCCESS;
    if (cx_vec_push(numbers, cx_alloc_default()) == NULL)
        return cx_fail_nomem(err);
    memmove(numbers->items + low + 1, numbers->items + low,
            (numbers->count - 1 - low) * sizeof *numbers->items);
    numbers->items[low] = number;
    return CX_SUCCESS;
}

/* --- names ------------------------------------------------------------------------------------ */

/* "2026-01-31" and "20260131"; days count from 1970. */
static void day_texts(int64_t day, char dashed[11], char plain[9])
{
    char time[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(day * DAY_NS, time);
    memcpy(dashed, time, 10);
    dashed[10] = 0;
    memcpy(plain, time, 4);
    memcpy(plain + 4, time + 5, 2);
    memcpy(plain + 6, time + 8, 2);
    plain[8] = 0;
}

/* Parses a partition's name; false for the default one. */
static bool day_of(cx_str name, int64_t *out)
{
    char text[] = "0000-00-00T00:00:00Z";
    bool naive;
    int64_t ns;
    if (name.size < 9 || name.data[name.size - 9] != 'p')
        return false;
    const char *digits = name.data + name.size - 8;
    memcpy(text, digits, 4);
    memcpy(text + 5, digits + 4, 2);
    memcpy(text + 8, digits + 6, 2);
    if (!cx_trace_time_parse(cx_str_z(text), &ns, &naive))
        return false;
    *out = ns / DAY_NS;
    return true;
}

static cx_status load_day(void *arg, const cx_pg_value *columns, cx_err *err)
{
    cx_pg_index *own = arg;
    int64_t day;
    bool is_new;
    return day_of(columns[0].text, &day) ? cx_index_pg_add_number(&own->days, day, &is_new, err)
                                         : CX_SUCCESS;
}

static cx_status load_days(cx_pg_index *own, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_TEXT};
    if (own->days_known)
        return CX_SUCCESS;
    own->days.count = 0;
    CX_TRY(cx_pg_query(own->pg,
                       "SELECT CAST(c.relname AS text) FROM pg_inherits i"
                       " JOIN pg_class c ON c.oid = i.inhrelid"
                       " WHERE i.inhparent = to_regclass('cirislens.covenant_traces')",
                       NULL, 0, types, 1, load_day, own, NULL, err));
    own->days_known = true;
    return CX_SUCCESS;
}

/* --- making ----------------------------------------------------------------------------------- */

static cx_status note_found(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)columns;
    (void)err;
    *(bool *)arg = true;
    return CX_SUCCESS;
}

/* Whether the default partition has rows of a day. */
static cx_status has_strays(cx_pg_index *own, int64_t day, bool *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    cx_pg_value values[] = {{.type = CX_PG_TIME, .i = day * DAY_NS},
                            {.type = CX_PG_TIME, .i = (day + 1) * DAY_NS}};
    *out = false;
    return cx_pg_query(own->pg,
                       "SELECT id FROM cirislens.covenant_traces_default"
                       " WHERE timestamp >= $1 AND timestamp < $2 LIMIT 1",
                       values, 2, types, 1, note_found, out, NULL, err);
}

/* Names and bounds are made from numbers: they contain no external text. */
static cx_status make_day(cx_pg_index *own, int64_t day, cx_err *err)
{
    char from[11], to[11], name[9], ignored[9];
    bool strays, is_new;
    cx_buf sql;
    day_texts(day, from, name);
    day_texts(day + 1, to, ignored);
    CX_TRY(has_strays(own, day, &strays, err));
    cx_buf_init(&sql, cx_alloc_default());
    if (strays)
        cx_buf_printf(&sql,
                      "CREATE TEMPORARY TABLE cortex_strays ON COMMIT DROP AS"
                      " SELECT * FROM cirislens.covenant_traces_default"
                      " WHERE timestamp >= '%s+00' AND timestamp < '%s+00';"
                      "DELETE FROM cirislens.covenant_traces_default"
                      " WHERE timestamp >= '%s+00' AND timestamp < '%s+00';",
                      from, to, from, to);
    cx_buf_printf(&sql,
                  "CREATE TABLE cirislens.covenant_traces_p%s PARTITION OF"
                  " cirislens.covenant_traces FOR VALUES FROM ('%s 00:00:00+00')"
                  " TO ('%s 00:00:00+00');",
                  name, from, to);
    if (strays)
        cx_buf_add_z(&sql, "INSERT INTO cirislens.covenant_traces SELECT * FROM cortex_strays;"
                           "DROP TABLE cortex_strays;");
    const char *text = cx_buf_z(&sql);
    cx_status status = text == NULL ? cx_fail_nomem(err) : cx_pg_run(own->pg, text, err);
    cx_buf_done(&sql);
    if (cx_failed(status))
        return status;
    own->days_made++;
    return cx_index_pg_add_number(&own->days, day, &is_new, err);
}

static bool has_day(const cx_pg_index *own, int64_t day)
{
    size_t low = 0, high = own->days.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (own->days.items[middle] < day)
            low = middle + 1;
        else
            high = middle;
    }
    return low < own->days.count && own->days.items[low] == day;
}

cx_status cx_index_pg_make_days(cx_index *index, cx_err *err)
{
    cx_pg_index *own = index->connection;
    if (own->timescale)
        return CX_SUCCESS;
    CX_TRY(load_days(own, err));
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < own->pending.count; i++) {
        const cx_pg_pending *row = &own->pending.items[i];
        int64_t day = row->key.timestamp_ns / DAY_NS;
        int64_t received = row->received_ns / DAY_NS;
        if (row->replaced || day < received - DAYS_BACK || day > received + DAYS_AHEAD)
            continue;
        if (!has_day(own, day) && own->days_made < DAYS_MADE_MAX)
            CX_TRY(make_day(own, day, err));
        if (day > last && day <= received)
            last = day;
    }
    if (last != INT64_MIN && !has_day(own, last + 1) && own->days_made < DAYS_MADE_MAX)
        CX_TRY(make_day(own, last + 1, err));
    return CX_SUCCESS;
}

/* --- dropping --------------------------------------------------------------------------------- */

static cx_status add_count(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(uint64_t *)arg += (uint64_t)columns[0].i;
    return CX_SUCCESS;
}

static cx_status drop_day(cx_pg_index *own, int64_t day, uint64_t *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    char dashed[11], name[9], sql[128];
    day_texts(day, dashed, name);
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM cirislens.covenant_traces_p%s", name);
    CX_TRY(cx_pg_query(own->pg, sql, NULL, 0, types, 1, add_count, out, NULL, err));
    (void)snprintf(sql, sizeof sql, "DROP TABLE cirislens.covenant_traces_p%s", name);
    return cx_pg_run(own->pg, sql, err);
}

/* If there are too many days for one transaction, the caller deletes the rows of the rest; their
 * partitions are dropped at the next run. */
cx_status cx_index_pg_drop_days(cx_index *index, int64_t before_ns, uint64_t *out, cx_err *err)
{
    cx_pg_index *own = index->connection;
    size_t count = 0;
    uint64_t dropped = 0;
    CX_TRY(load_days(own, err));
    while (count < own->days.count && count < DAYS_DROPPED_MAX &&
           (own->days.items[count] + 1) * DAY_NS <= before_ns)
        CX_TRY(drop_day(own, own->days.items[count++], &dropped, err));
    own->days.count -= count;
    if (own->days.count != 0)
        memmove(own->days.items, own->days.items + count,
                own->days.count * sizeof *own->days.items);
    *out = dropped;
    return CX_SUCCESS;
}

#endif

/*
 * small.c - files that any process changes as a whole (F4).
 *
 * A change says what is there afterwards, so it may be sent again when its outcome is not known:
 * see `before`.  One case stays: a file that is made, whose outcome is not known, and that another
 * process removes meanwhile, may be there again.
 */
#include "fleet/internal.h"

static cx_status check_name(cx_str name, cx_err *err)
{
    if (name.size != 0 && name.size <= CX_FLEET_FILE_NAME_MAX)
        return CX_SUCCESS;
    return cx_fail(err, CX_E_LIMIT, "a file's name has 1 to %d bytes", CX_FLEET_FILE_NAME_MAX);
}

typedef struct found_file {
    cx_buf *out;
    bool found;
} found_file;

static cx_status read_bytes(void *arg, const cx_pg_value *columns, cx_err *err)
{
    found_file *found = arg;
    found->found = true;
    if (columns[0].text.size > CX_FLEET_SMALL_MAX)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "a small file in the database is longer than it can be");
    cx_buf_add_str(found->out, columns[0].text);
    return cx_buf_check(found->out, err);
}

cx_status cx_fleet_small_read(cx_fleet *fleet, unsigned part, cx_str name, cx_buf *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_str(name)};
    found_file found = {.out = out};
    CX_TRY(check_name(name, err));
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_pg_query(fleet->pg, "SELECT bytes FROM " CX_T_SMALL " WHERE part = $1 AND name = $2",
                       values, CX_COUNT_OF(values), types, 1, read_bytes, &found, NULL, err));
    if (found.found)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoFile", CX_NO_OFFSET, "part %u has no file %.*s", part,
                      (int)name.size, name.data);
}

/* --- changing --------------------------------------------------------------------------------- */

/*
 * What a change replaces.  Each write gives the file a random version, and a change is made only
 * where the version is the one that was there when it began, or its own.  Where it is another one,
 * another process wrote later: so what is sent again after an outcome that was not known never
 * takes away a later write, and counts as done before it.
 */
typedef struct before {
    int64_t version, own;
    bool found;
} before;

static cx_status read_version(void *arg, const cx_pg_value *columns, cx_err *err)
{
    before *out = arg;
    (void)err;
    out->version = columns[0].i;
    out->found = true;
    return CX_SUCCESS;
}

static cx_status ask_version(cx_fleet *fleet, unsigned part, cx_str name, before *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_str(name)};
    out->found = false;
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(fleet->pg,
                       "SELECT version FROM " CX_T_SMALL " WHERE part = $1 AND name = $2", values,
                       CX_COUNT_OF(values), types, 1, read_version, out, NULL, err);
}

static cx_status look_before(cx_fleet *fleet, unsigned part, cx_str name, before *out, cx_err *err)
{
    const cx_io *io = fleet->io;
    uint64_t deadline_ns = cx_fleet_deadline(fleet);
    *out = (before){0};
    int failed = io->random(io, &out->own, sizeof out->own);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    for (unsigned tries = 0;; tries++) {
        cx_status status = ask_version(fleet, part, name, out, err);
        /* Only a server that was not reached, or went away, is asked again. */
        if (!cx_failed(status) || !cx_pg_is_away(fleet->pg) || fleet->snapshot ||
            io->monotonic_ns(io) >= deadline_ns)
            return status;
        cx_fleet_pause(fleet, tries);
    }
}

/* Changes nothing where the server waits for no standby; whether it does is asked before. */
static cx_status need_strict(cx_fleet *fleet, unsigned part, cx_err *err)
{
    cx_fleet_now now;
    if (!fleet->strict)
        return CX_SUCCESS;
    CX_TRY(cx_fleet_look(fleet, part, &now, err));
    return now.strict ? CX_SUCCESS : cx_fleet_not_strict(err);
}

cx_status cx_fleet_small_write(cx_fleet *fleet, unsigned part, cx_str name, cx_bytes bytes,
                               cx_err *err)
{
    before b;
    uint64_t changed = 0;
    CX_TRY(check_name(name, err));
    if (bytes.size > CX_FLEET_SMALL_MAX)
        return cx_fail(err, CX_E_LIMIT, "a small file has at most %zu bytes", CX_FLEET_SMALL_MAX);
    CX_TRY(look_before(fleet, part, name, &b, err));
    const cx_pg_value values[] = {cx_fleet_int(part),
                                  cx_fleet_str(name),
                                  cx_fleet_bytes(bytes.data, bytes.size),
                                  {.type = CX_PG_BOOL, .b = fleet->strict},
                                  {.type = CX_PG_INT, .i = b.own},
                                  {.type = CX_PG_INT, .i = b.version}};
    const char *sql = b.found
                          ? "UPDATE " CX_T_SMALL " SET bytes = $3, version = $5, changed_at = "
                            "now() WHERE part = $1 AND name = $2 AND version IN ($5, $6) AND "
                            "(NOT $4 OR " CX_FLEET_STRICT ")"
                          : "INSERT INTO " CX_T_SMALL
                            " AS s (part, name, bytes, version) SELECT $1, $2, $3, $5 WHERE NOT "
                            "$4 OR " CX_FLEET_STRICT " ON CONFLICT (part, name) DO UPDATE SET "
                            "changed_at = now() WHERE s.version = $5";
    CX_TRY(cx_fleet_complete(fleet, sql, values, b.found ? 6 : 5, &changed, err));
    return changed == 1 ? CX_SUCCESS : need_strict(fleet, part, err);
}

cx_status cx_fleet_small_remove(cx_fleet *fleet, unsigned part, cx_str name, cx_err *err)
{
    before b;
    CX_TRY(check_name(name, err));
    CX_TRY(look_before(fleet, part, name, &b, err));
    const cx_pg_value values[] = {
        cx_fleet_int(part), cx_fleet_str(name), {.type = CX_PG_INT, .i = b.version}};
    if (!b.found)
        return CX_SUCCESS;
    return cx_fleet_complete(
        fleet, "DELETE FROM " CX_T_SMALL " WHERE part = $1 AND name = $2 AND version = $3", values,
        CX_COUNT_OF(values), NULL, err);
}

cx_status cx_fleet_small_rename(cx_fleet *fleet, unsigned part, cx_str from, cx_str to, cx_err *err)
{
    before b;
    CX_TRY(check_name(from, err));
    CX_TRY(check_name(to, err));
    CX_TRY(look_before(fleet, part, from, &b, err));
    const cx_pg_value values[] = {cx_fleet_int(part),
                                  cx_fleet_str(from),
                                  cx_fleet_str(to),
                                  {.type = CX_PG_INT, .i = b.version},
                                  {.type = CX_PG_INT, .i = b.own}};
    if (!b.found)
        return CX_SUCCESS;
    /* Sent again after it was done, it finds no `from` of that version and changes nothing. */
    return cx_fleet_complete(
        fleet,
        "WITH f AS (DELETE FROM " CX_T_SMALL " WHERE part = $1 AND name = $2 AND $2 <> $3 AND "
        "version = $4 RETURNING part, bytes) INSERT INTO " CX_T_SMALL
        " (part, name, bytes, version) SELECT part, $3, bytes, $5 FROM f ON CONFLICT (part, name) "
        "DO "
        "UPDATE SET bytes = excluded.bytes, version = excluded.version, changed_at = now()",
        values, CX_COUNT_OF(values), NULL, err);
}

/* --- listing ---------------------------------------------------------------------------------- */

typedef struct small_list {
    cx_fleet_each_small *each;
    void *arg;
} small_list;

static cx_status read_name(void *arg, const cx_pg_value *columns, cx_err *err)
{
    const small_list *l = arg;
    if (columns[0].text.size == 0 || columns[0].text.size > CX_FLEET_FILE_NAME_MAX ||
        columns[1].i < 0)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the row of a small file in the database is not as it was made");
    return l->each(l->arg, columns[0].text, (uint64_t)columns[1].i, err);
}

cx_status cx_fleet_small_list(cx_fleet *fleet, unsigned part, cx_fleet_each_small *each, void *arg,
                              cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_TEXT, CX_PG_INT};
    const cx_pg_value values[] = {cx_fleet_int(part)};
    small_list l = {each, arg};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(fleet->pg,
                       "SELECT name, octet_length(bytes)::bigint FROM " CX_T_SMALL
                       " WHERE part = $1 ORDER BY name",
                       values, 1, types, CX_COUNT_OF(types), read_name, &l, NULL, err);
}

/* --- locks ------------------------------------------------------------------------------------ */

static cx_status read_flag(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(bool *)arg = columns[0].b;
    return CX_SUCCESS;
}

#define LOCK_KEY "hashtextextended($2, 4851972301 + $1)"

cx_status cx_fleet_small_lock(cx_fleet *fleet, unsigned part, cx_str name, bool *out_locked,
                              cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_str(name)};
    *out_locked = false;
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(fleet->pg, "SELECT pg_try_advisory_lock(" LOCK_KEY ")", values,
                       CX_COUNT_OF(values), types, 1, read_flag, out_locked, NULL, err);
}

cx_status cx_fleet_small_unlock(cx_fleet *fleet, unsigned part, cx_str name, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_str(name)};
    bool ignored;
    if (cx_pg_is_away(fleet->pg))
        return CX_SUCCESS; /* it went with the connection */
    return cx_pg_query(fleet->pg, "SELECT pg_advisory_unlock(" LOCK_KEY ")", values,
                       CX_COUNT_OF(values), types, 1, read_flag, &ignored, NULL, err);
}

/*
 * schema.c - the tables of a fleet: numbered files of SQL that the program carries, each run once,
 * forwards, in a transaction of its own.
 *
 * What was run is in cx_migration with the file's SHA-256.  A database with a migration that this
 * program does not know is one of a later program, and one with another hash was made by another
 * file: both are refused.
 */
#include <stdio.h>

#include "crypto/api.h"
#include "fleet/internal.h"
#include "rules/api.h"

#define MIGRATIONS 5
#define INIT_ANSWER_MS 60000
static const char *const files[MIGRATIONS] = {
    "sql/fleet/001_parts.sql", "sql/fleet/002_bounds.sql", "sql/fleet/003_balance.sql",
    "sql/fleet/004_counts.sql", "sql/fleet/005_trail.sql"};

static cx_str text_of(const char *name)
{
    cx_bytes bytes = {NULL, 0};
    bool found = cx_run_asset(name, &bytes);
    CX_ASSERT(found);
    return cx_bytes_str(bytes);
}

bool cx_fleet_sql(uint64_t number, cx_str *out)
{
    if (number == 0 || number > MIGRATIONS)
        return false;
    *out = text_of(files[number - 1]);
    return true;
}

cx_str cx_fleet_roles_sql(void)
{
    return text_of("sql/fleet/roles.sql");
}

uint64_t cx_fleet_migrations_known(void)
{
    return MIGRATIONS;
}

/* --- what the database has -------------------------------------------------------------------- */

static cx_status read_flag(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(bool *)arg = columns[0].b;
    return CX_SUCCESS;
}

static cx_status has_schema(cx_pg *pg, bool *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL};
    return cx_pg_query(pg, "SELECT to_regclass('cortex_fleet.cx_migration') IS NOT NULL", NULL, 0,
                       types, 1, read_flag, out, NULL, err);
}

static cx_status check_migration(void *arg, const cx_pg_value *columns, cx_err *err)
{
    uint64_t *count = arg;
    cx_digest found;
    if (columns[0].i < 1 || (uint64_t)columns[0].i != *count + 1)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the fleet's migrations in the database are not numbered 1, 2, ..");
    if (*count == MIGRATIONS)
        return cx_fail(err, CX_E_UNSUPPORTED,
                       "the database was migrated by a later version of cortex; upgrade this one");
    CX_TRY(cx_fleet_read_digest(&columns[1], &found, err));
    cx_digest own = cx_digest_of(cx_str_bytes(text_of(files[*count])));
    if (!cx_digest_eq(&found, &own))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the database was migrated by a %s that is not the one of this program",
                          files[*count]);
    ++*count;
    return CX_SUCCESS;
}

static cx_status count_migrations(cx_pg *pg, uint64_t *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_BYTES};
    bool there = false;
    *out = 0;
    CX_TRY(has_schema(pg, &there, err));
    if (!there)
        return CX_SUCCESS;
    return cx_pg_query(pg, "SELECT number, sha256 FROM " CX_T_MIGRATION " ORDER BY 1", NULL, 0,
                       types, CX_COUNT_OF(types), check_migration, out, NULL, err);
}

/* --- migrating -------------------------------------------------------------------------------- */

static cx_status run_file(cx_pg *pg, size_t index, cx_err *err)
{
    cx_str text = text_of(files[index]);
    cx_digest digest = cx_digest_of(cx_str_bytes(text));
    const cx_pg_value values[] = {cx_fleet_int(index + 1), cx_fleet_text(files[index]),
                                  cx_fleet_digest(&digest)};
    CX_TRY(cx_pg_run(pg, text.data, err));
    return cx_pg_query(pg,
                       "INSERT INTO " CX_T_MIGRATION " (number, name, sha256) "
                       "VALUES ($1, $2, $3)",
                       values, CX_COUNT_OF(values), NULL, 0, NULL, NULL, NULL, err);
}

/* --- parts ------------------------------------------------------------------------------------ */

bool cx_fleet_is_part_name(cx_str name)
{
    if (name.size == 0 || name.size > CX_FLEET_PART_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (i == 0 || (c != '.' && c != '_' && c != '-')))
            return false;
    }
    return true;
}

static cx_status read_number(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(int64_t *)arg = columns[0].i;
    return CX_SUCCESS;
}

/* Inside of a transaction that ends before another adds one. */
static cx_status add_part(cx_pg *pg, cx_str name, unsigned *out_number, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    const cx_io *io = cx_io_system();
    uint8_t id[16];
    int64_t number = 0;
    if (!cx_fleet_is_part_name(name))
        return cx_fail(err, CX_E_USAGE,
                       "the name of a part has 1 to %d characters: a to z, 0 to 9, and after the "
                       "first one . _ -",
                       CX_FLEET_PART_NAME_MAX);
    int failed = io->random(io, id, sizeof id);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    CX_TRY(cx_pg_run(pg, "SELECT pg_advisory_xact_lock(4851972301)", err));
    CX_TRY(cx_pg_query(pg, "SELECT coalesce(max(part) + 1, 0) FROM " CX_T_PART, NULL, 0, types, 1,
                       read_number, &number, NULL, err));
    if (number >= CX_FLEET_PARTS_MAX)
        return cx_fail(err, CX_E_LIMIT, "a fleet has at most %d parts", CX_FLEET_PARTS_MAX);
    cx_digest head = cx_fleet_first_head(id, (unsigned)number);
    const cx_pg_value values[] = {cx_fleet_int((uint64_t)number), cx_fleet_str(name),
                                  cx_fleet_bytes(id, sizeof id), cx_fleet_digest(&head)};
    cx_status status =
        cx_pg_query(pg, "INSERT INTO " CX_T_PART " (part, name, id, head) VALUES ($1, $2, $3, $4)",
                    values, CX_COUNT_OF(values), NULL, 0, NULL, NULL, NULL, err);
    if (cx_failed(status) && strcmp(cx_pg_state(pg), "23505") == 0)
        return cx_fail_at(err, CX_E_EXISTS, "PartExists", CX_NO_OFFSET, "there is a part %.*s",
                          (int)name.size, name.data);
    CX_TRY(status);
    *out_number = (unsigned)number;
    return cx_pg_query(pg, "INSERT INTO " CX_T_PULSE " (part) VALUES ($1)", values, 1, NULL, 0,
                       NULL, NULL, NULL, err);
}

cx_status cx_fleet_add(cx_fleet *fleet, cx_str name, unsigned *out_number, cx_err *err)
{
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_pg_begin(fleet->pg, err));
    cx_status status = add_part(fleet->pg, name, out_number, err);
    if (!cx_failed(status))
        status = cx_pg_commit(fleet->pg, err);
    cx_pg_rollback(fleet->pg);
    return status;
}

/* The part of a new fleet. */
static cx_status fill_fleet(cx_pg *pg, const uint8_t id[16], bool strict, cx_err *err)
{
    const cx_pg_value fleet[] = {cx_fleet_bytes(id, 16), {.type = CX_PG_BOOL, .b = strict}};
    unsigned number;
    CX_TRY(add_part(pg, CX_STR(CX_FLEET_MAIN), &number, err));
    return cx_pg_query(pg, "INSERT INTO " CX_T_FLEET " (id, strict) VALUES ($1, $2)", fleet,
                       CX_COUNT_OF(fleet), NULL, 0, NULL, NULL, NULL, err);
}

typedef struct existing {
    bool found, strict;
    uint8_t id[16];
} existing;

static cx_status read_existing(void *arg, const cx_pg_value *columns, cx_err *err)
{
    existing *out = arg;
    (void)err;
    out->found = columns[0].text.size == sizeof out->id;
    if (out->found)
        memcpy(out->id, columns[0].text.data, sizeof out->id);
    out->strict = columns[1].b;
    return CX_SUCCESS;
}

static cx_status need_fleet(cx_pg *pg, bool strict, const uint8_t *id, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BYTES, CX_PG_BOOL};
    existing there = {0};
    uint8_t made[16];
    CX_TRY(cx_pg_query(pg, "SELECT id, strict FROM " CX_T_FLEET, NULL, 0, types, CX_COUNT_OF(types),
                       read_existing, &there, NULL, err));
    if (there.found && id != NULL && memcmp(there.id, id, sizeof there.id) != 0)
        return cx_fail_at(err, CX_E_CONFLICT, "OtherFleet", CX_NO_OFFSET,
                          "the database has another fleet; give this one a database of its own");
    if (there.found && there.strict != strict)
        return cx_fail_at(
            err, CX_E_CONFLICT, "OtherFleet", CX_NO_OFFSET,
            "the database has a fleet that %s for a standby; that is not changed here",
            there.strict ? "waits" : "does not wait");
    if (there.found)
        return CX_SUCCESS;
    int failed = cx_io_system()->random(cx_io_system(), made, sizeof made);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    return fill_fleet(pg, id != NULL ? id : made, strict, err);
}

static cx_status migrate(cx_pg *pg, bool strict, const uint8_t *id, uint64_t *out_applied,
                         cx_err *err)
{
    uint64_t count;
    /* Of several that begin at the same time one makes the tables. */
    CX_TRY(cx_pg_run(pg, "SELECT pg_advisory_xact_lock(4851972301)", err));
    CX_TRY(count_migrations(pg, &count, err));
    for (uint64_t i = count; i < MIGRATIONS; i++)
        CX_TRY(run_file(pg, (size_t)i, err));
    *out_applied = MIGRATIONS - count;
    return need_fleet(pg, strict, id, err);
}

cx_status cx_fleet_init(const char *url, bool strict, const uint8_t *id, uint64_t *out_applied,
                        cx_err *err)
{
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    cx_pg *pg = NULL;
    options.application_name = "cortex fleet init";
    /* COMMIT waits for a standby for as long as there is none. */
    options.answer_timeout_ms = INIT_ANSWER_MS;
    CX_TRY(cx_pg_open(url, &options, &pg, err));
    cx_status status = cx_pg_begin(pg, err);
    if (!cx_failed(status))
        status = migrate(pg, strict, id, out_applied, err);
    if (!cx_failed(status))
        status = cx_pg_commit(pg, err);
    cx_pg_rollback(pg);
    cx_pg_close(pg);
    return status;
}

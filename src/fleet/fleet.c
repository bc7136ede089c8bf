/*
 * fleet.c - opening a fleet, connecting again, and what an SQLSTATE says about a transaction.
 *
 * A failure belongs to one of three: nothing happened (the server said so), something may have
 * happened (no answer, or a warning with it: F6), or this server does not write.  READ COMMITTED
 * suffices: each decision is one UPDATE that names what it relies on.
 */
#include <stdio.h>

#include "fleet/internal.h"

#include "crypto/api.h"

#define ANSWER_MS 10000
#define RESOLVE_MS 30000
#define LEASE_MS_MIN 100
#define LEASE_MS_MAX 600000
#define PAUSE_MS_MAX 500
#define IDLE_MS_MIN 1000

/* --- outcomes --------------------------------------------------------------------------------- */

static bool is_state(const char *state, const char *prefix)
{
    return strncmp(state, prefix, strlen(prefix)) == 0;
}

/* A failure with an SQLSTATE: only of those below can something have happened. */
static cx_fleet_outcome outcome_of_state(const char *state)
{
    static const struct {
        const char *state; /* or its class */
        cx_fleet_outcome outcome;
    } table[] = {
        {"40001", CX_OUTCOME_AGAIN},     /* serialization */
        {"40P01", CX_OUTCOME_AGAIN},     /* deadlock */
        {"55P03", CX_OUTCOME_AGAIN},     /* a lock was not to be had in time */
        {"57014", CX_OUTCOME_AGAIN},     /* cancelled before COMMIT */
        {"25P03", CX_OUTCOME_AGAIN},     /* stood still in the middle of a transaction */
        {"25006", CX_OUTCOME_ELSEWHERE}, /* read only */
        {"57P03", CX_OUTCOME_ELSEWHERE}, /* starting up, or a standby without hot standby */
        {"57P", CX_OUTCOME_UNKNOWN},     /* shut down, perhaps while COMMIT waited */
        {"08", CX_OUTCOME_UNKNOWN},      /* the connection */
        {"40003", CX_OUTCOME_UNKNOWN},   /* statement completion unknown */
        {"23505", CX_OUTCOME_REPEATED},  /* a unique key */
        {"53100", CX_OUTCOME_FULL},
    };
    for (size_t i = 0; i < CX_COUNT_OF(table); i++)
        if (is_state(state, table[i].state))
            return table[i].outcome;
    return CX_OUTCOME_REFUSED;
}

cx_fleet_outcome cx_fleet_outcome_of(const cx_fleet *fleet, cx_status status)
{
    if (!cx_failed(status))
        return cx_pg_warnings(fleet->pg) != 0 && CX_FLEET_RULE(CX_RULE_WARN) ? CX_OUTCOME_UNKNOWN
                                                                             : CX_OUTCOME_DONE;
    const char *state = cx_pg_state(fleet->pg);
    if (state[0] != 0)
        return outcome_of_state(state);
    /* Found before anything was sent. */
    if (status.code == CX_E_LIMIT || status.code == CX_E_USAGE)
        return CX_OUTCOME_REFUSED;
    return CX_OUTCOME_UNKNOWN;
}

void cx_fleet_pause(cx_fleet *fleet, unsigned tries)
{
    uint8_t random = 0;
    uint32_t ms = tries < 6 ? 10u << tries : PAUSE_MS_MAX;
    (void)fleet->io->random(fleet->io, &random, sizeof random);
    cx_thread_sleep_ms(ms / 2 + ms / 2 * random / 255); /* so that nodes do not come together */
}

uint64_t cx_fleet_deadline(const cx_fleet *fleet)
{
    return fleet->io->monotonic_ns(fleet->io) + UINT64_C(1000000) * fleet->resolve_ms;
}

/* --- values ----------------------------------------------------------------------------------- */

cx_status cx_fleet_read_digest(const cx_pg_value *value, cx_digest *out, cx_err *err)
{
    if (value->null || value->text.size != sizeof out->bytes)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the fleet's tables have a hash that is not 32 bytes");
    memcpy(out->bytes, value->text.data, sizeof out->bytes);
    return CX_SUCCESS;
}

/* --- connecting ------------------------------------------------------------------------------- */

/*
 * The standby is waited for in this session, whatever the server's default is.  A process that
 * stands still in the middle of a transaction keeps the lock of the part's row, and the server
 * would keep its connection for hours: so it ends a transaction in which nothing comes for as long
 * as a lease.
 */
static cx_status set_up_session(cx_fleet *fleet, cx_err *err)
{
    char sql[320];
    uint32_t idle_ms = fleet->lease_ms < IDLE_MS_MIN ? IDLE_MS_MIN : fleet->lease_ms;
    (void)snprintf(sql, sizeof sql,
                   "SELECT set_config('synchronous_commit', CASE WHEN "
                   "current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' "
                   "ELSE 'on' END, false), "
                   "set_config('idle_in_transaction_session_timeout', '%u', false)",
                   fleet->read_only ? 0 : (unsigned)idle_ms);
    CX_TRY(cx_pg_run(fleet->pg, sql, err));
    fleet->session_set = true;
    return CX_SUCCESS;
}

cx_status cx_fleet_reconnect(cx_fleet *fleet, cx_err *err)
{
    fleet->session_set = false;
    CX_TRY(cx_pg_reconnect(fleet->pg, err));
    return set_up_session(fleet, err);
}

cx_status cx_fleet_need_connection(cx_fleet *fleet, cx_err *err)
{
    if (fleet->snapshot && cx_pg_is_away(fleet->pg))
        return cx_fail_at(err, CX_E_IO, "DatabaseAway", CX_NO_OFFSET,
                          "the connection was lost in the middle of reading one state; try again");
    return cx_pg_is_away(fleet->pg) || !fleet->session_set ? cx_fleet_reconnect(fleet, err)
                                                           : CX_SUCCESS;
}

cx_status cx_fleet_complete(cx_fleet *fleet, const char *sql, const cx_pg_value *values,
                            size_t count, uint64_t *out_changed, cx_err *err)
{
    const cx_io *io = fleet->io;
    uint64_t deadline_ns = cx_fleet_deadline(fleet);
    for (unsigned tries = 0;; tries++) {
        cx_status status = cx_fleet_need_connection(fleet, err);
        if (!cx_failed(status))
            status =
                cx_pg_query(fleet->pg, sql, values, count, NULL, 0, NULL, NULL, out_changed, err);
        cx_fleet_outcome outcome = cx_fleet_outcome_of(fleet, status);
        if (outcome == CX_OUTCOME_DONE)
            return status;
        if (outcome == CX_OUTCOME_FULL || outcome == CX_OUTCOME_REFUSED ||
            outcome == CX_OUTCOME_REPEATED)
            return status;
        if (io->monotonic_ns(io) >= deadline_ns)
            return cx_failed(status)
                       ? status
                       : cx_fail_at(err, CX_E_IO, "OutcomeUnknown", CX_NO_OFFSET,
                                    "no standby confirms a commit within %u ms", fleet->resolve_ms);
        cx_fleet_pause(fleet, tries);
        if (outcome == CX_OUTCOME_ELSEWHERE)
            (void)cx_failed(cx_fleet_reconnect(fleet, NULL));
    }
}

static cx_status read_fleet_row(void *arg, const cx_pg_value *columns, cx_err *err)
{
    cx_fleet *fleet = arg;
    if (columns[2].i < (int64_t)cx_fleet_migrations_known())
        return cx_fail_at(err, CX_E_FORMAT, "OldTables", CX_NO_OFFSET,
                          "the fleet's tables are of an earlier version of cortex: run 'cortex "
                          "fleet init' once; nodes of that version go on meanwhile and afterwards");
    if (columns[0].text.size != sizeof fleet->id)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the fleet's id in the database is not 16 bytes");
    memcpy(fleet->id, columns[0].text.data, sizeof fleet->id);
    fleet->strict = columns[1].b;
    return CX_SUCCESS;
}

static cx_status no_fleet(cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoFleet", CX_NO_OFFSET,
                      "the database has no fleet; 'cortex fleet init' makes one");
}

static cx_status read_fleet(cx_fleet *fleet, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BYTES, CX_PG_BOOL, CX_PG_INT};
    uint64_t rows = 0;
    cx_status status = cx_pg_query(
        fleet->pg, "SELECT id, strict, (SELECT count(*) FROM " CX_T_MIGRATION ") FROM " CX_T_FLEET,
        NULL, 0, types, CX_COUNT_OF(types), read_fleet_row, fleet, &rows, err);
    const char *state = cx_pg_state(fleet->pg);
    if (cx_failed(status) && (is_state(state, "42P01") || is_state(state, "3F000")))
        return no_fleet(err);
    CX_TRY(status);
    return rows == 1 ? CX_SUCCESS : no_fleet(err);
}

cx_status cx_fleet_new_owner(const char *node, char out[CX_FLEET_OWNER_SIZE], cx_err *err)
{
    const cx_io *io = cx_io_system();
    uint8_t random[8];
    char hex[17];
    int failed = io->random(io, random, sizeof random);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    cx_hex_encode(cx_bytes_from(random, sizeof random), hex);
    hex[16] = 0;
    (void)snprintf(out, CX_FLEET_OWNER_SIZE, "%.*s/%s", CX_FLEET_NODE_MAX, node, hex);
    return CX_SUCCESS;
}

static cx_status name_owner(cx_fleet *fleet, const cx_fleet_options *options, cx_err *err)
{
    const char *node = options->node;
    size_t size = node == NULL ? 0 : strlen(node);
    if (size == 0 || size > CX_FLEET_NODE_MAX)
        return cx_fail(err, CX_E_USAGE, "a node's name has 1 to %d characters", CX_FLEET_NODE_MAX);
    for (size_t i = 0; i < size; i++)
        if (node[i] <= ' ' || node[i] > '~')
            return cx_fail(err, CX_E_USAGE,
                           "a node's name has printable ASCII characters and no space");
    if (options->owner != NULL) {
        CX_ASSERT(strlen(options->owner) < sizeof fleet->owner);
        (void)snprintf(fleet->owner, sizeof fleet->owner, "%s", options->owner);
        return CX_SUCCESS;
    }
    return cx_fleet_new_owner(node, fleet->owner, err);
}

static cx_status open_connection(cx_fleet *fleet, const char *url, const cx_fleet_options *options,
                                 cx_err *err)
{
    cx_pg_options pg = CX_PG_OPTIONS_INIT;
    uint32_t answer_ms = options->answer_ms == 0 ? ANSWER_MS : options->answer_ms;
    fleet->lease_ms = options->lease_ms == 0 ? CX_FLEET_LEASE_MS : options->lease_ms;
    fleet->resolve_ms = options->resolve_ms == 0 ? RESOLVE_MS : options->resolve_ms;
    fleet->snapshot = options->snapshot;
    fleet->read_only = options->read_only || options->snapshot;
    if (fleet->lease_ms < LEASE_MS_MIN || fleet->lease_ms > LEASE_MS_MAX)
        return cx_fail(err, CX_E_LIMIT, "a lease lasts %d to %d ms", LEASE_MS_MIN, LEASE_MS_MAX);
    CX_TRY(name_owner(fleet, options, err));
    pg.application_name = "cortex fleet";
    pg.read_only = fleet->read_only;
    pg.warnings = true;
    /* So that the server, where it can, gives up first and says so. */
    pg.answer_timeout_ms = answer_ms + answer_ms / 4;
    pg.statement_timeout_ms = answer_ms;
    CX_TRY(cx_pg_open(url, &pg, &fleet->pg, err));
    CX_TRY(set_up_session(fleet, err));
    CX_TRY(read_fleet(fleet, err));
    return fleet->snapshot
               ? cx_pg_run(fleet->pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err)
               : CX_SUCCESS;
}

cx_status cx_fleet_open(const char *url, const cx_fleet_options *options, cx_fleet **out,
                        cx_err *err)
{
    cx_fleet *fleet = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *fleet);
    if (fleet == NULL)
        return cx_fail_nomem(err);
    fleet->io = cx_io_system();
    cx_buf_init(&fleet->sql, cx_alloc_default());
    cx_arena_init(&fleet->arena, cx_alloc_default(), 0);
    cx_status status = open_connection(fleet, url, options, err);
    if (cx_failed(status))
        cx_fleet_close(fleet);
    else
        *out = fleet;
    return status;
}

void cx_fleet_close(cx_fleet *fleet)
{
    if (fleet == NULL)
        return;
    cx_pg_close(fleet->pg);
    cx_buf_done(&fleet->sql);
    cx_arena_done(&fleet->arena);
    cx_alloc_free(cx_alloc_default(), fleet, sizeof *fleet);
}

void cx_fleet_id(const cx_fleet *fleet, uint8_t out[16])
{
    memcpy(out, fleet->id, sizeof fleet->id);
}

bool cx_fleet_is_strict(const cx_fleet *fleet)
{
    return fleet->strict;
}

uint32_t cx_fleet_lease_ms(const cx_fleet *fleet)
{
    return fleet->lease_ms;
}

const char *cx_fleet_owner(const cx_fleet *fleet)
{
    return fleet->owner;
}

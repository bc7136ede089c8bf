/*
 * pg.c - a connection to PostgreSQL: opening, statements, errors.
 *
 * Settings of a session, and why: UTC and UTF-8, so that answers do not depend on the server;
 * a statement timeout, so that a slow server is an error and not a hang; TCP's own timeout, for
 * servers that fell silent.  Rows arrive one by one, so that a long answer takes no memory.
 */
#ifdef CX_WITH_PG

#include <stdio.h>

#include "base/api.h"
#include "db/pg_internal.h"
#include "db/pg_value.h"
#include "os/api.h"

/* Statements differ by the filters they use; when there are more they are prepared again. */
#define STATEMENTS_MAX 256
/* Outcomes that may wait: the server keeps them in its send buffer, libpq in memory. */
#define QUEUED_MAX 1000
#define PARAMETERS_MAX 128

/* --- errors ----------------------------------------------------------------------------------- */

static bool is_class(const char *state, const char *prefix)
{
    return strncmp(state, prefix, strlen(prefix)) == 0;
}

static cx_status unavailable_error(cx_err *err, cx_code code, const char *doing, const char *why,
                                   const char *state)
{
    return cx_fail_at(err, code, "DatabaseAway", CX_NO_OFFSET, "PostgreSQL: %s: %s%s%s", doing, why,
                      state[0] != 0 ? ", SQLSTATE " : "", state);
}

/* By SQLSTATE (PostgreSQL, appendix A).  The server's text is not passed on: it quotes values. */
static cx_status fail_state(const char *state, const char *doing, cx_err *err)
{
    if (is_class(state, "57014"))
        return unavailable_error(err, CX_E_BUSY, doing, "it took longer than allowed", state);
    if (is_class(state, "57P") || is_class(state, "08"))
        return unavailable_error(err, CX_E_IO, doing, "the server is going or gone", state);
    if (is_class(state, "53300") || is_class(state, "53400"))
        return unavailable_error(err, CX_E_BUSY, doing, "the server has no connection left", state);
    if (is_class(state, "53") || is_class(state, "58"))
        return unavailable_error(err, CX_E_IO, doing, "the server is out of disk, memory or locks",
                                 state);
    if (is_class(state, "40") || is_class(state, "55"))
        return unavailable_error(err, CX_E_BUSY, doing, "another session holds what is needed",
                                 state);
    if (is_class(state, "28") || is_class(state, "42501") || is_class(state, "25006"))
        return cx_fail(err, CX_E_DENIED, "PostgreSQL: %s: the user may not do that, SQLSTATE %s",
                       doing, state);
    if (is_class(state, "42") || is_class(state, "3F"))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "PostgreSQL: %s: the tables are not what they should be, SQLSTATE %s",
                          doing, state);
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseRefused", CX_NO_OFFSET,
                      "PostgreSQL: %s: refused, SQLSTATE %s", doing, state);
}

cx_status cx_pg_fail(cx_pg *pg, const PGresult *result, const char *doing, cx_err *err)
{
    const char *state = result == NULL ? NULL : pg->f.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    (void)snprintf(pg->state, sizeof pg->state, "%s", state == NULL ? "" : state);
    if (state != NULL && state[0] != 0)
        return fail_state(state, doing, err);
    if (pg->silent)
        return unavailable_error(err, CX_E_IO, doing, "the server gave no answer in time", "");
    if (cx_pg_is_away(pg))
        return unavailable_error(err, CX_E_IO, doing, "the connection is lost", "");
    return result == NULL ? cx_fail_nomem(err)
                          : unavailable_error(err, CX_E_IO, doing,
                                              "the server's answer is not understood", "");
}

/* While connecting there is no SQLSTATE; the text names host, user and reason, and no password. */
static cx_status fail_connecting(cx_pg *pg, cx_err *err)
{
    const char *text = pg->handle == NULL ? "out of memory" : pg->f.PQerrorMessage(pg->handle);
    size_t size = strcspn(text, "\n");
    bool denied = strstr(text, "authentication failed") != NULL ||
                  strstr(text, "pg_hba.conf") != NULL || strstr(text, "does not exist") != NULL;
    bool malformed = strstr(text, "URI") != NULL || strstr(text, "connection option") != NULL ||
                     strstr(text, "percent-encoded") != NULL;
    if (malformed)
        return cx_fail(err, CX_E_USAGE,
                       "PostgreSQL: the database's address cannot be read; expected "
                       "postgresql://USER@HOST:PORT/DATABASE");
    if (denied)
        return cx_fail(err, CX_E_DENIED, "PostgreSQL: %.*s", (int)size, text);
    bool full = strstr(text, "too many") != NULL || strstr(text, "remaining connection") != NULL;
    return cx_fail_at(err, full ? CX_E_BUSY : CX_E_IO, "DatabaseAway", CX_NO_OFFSET,
                      "PostgreSQL: %.*s", (int)size, text);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static uint64_t answer_deadline(const cx_pg *pg)
{
    const cx_io *io = cx_io_system();
    return io->monotonic_ns(io) + UINT64_C(1000000) * pg->options.answer_timeout_ms;
}

/*
 * Whether PQgetResult will return without waiting.  False: the server was silent for as long as was
 * allowed; then nothing more is read from the connection.  (TCP does not tell: the system of a
 * frozen server still acknowledges its probes.)
 */
static bool wait_for_answer(cx_pg *pg, uint64_t deadline_ns)
{
    const cx_io *io = cx_io_system();
    while (pg->f.PQisBusy(pg->handle) != 0) {
        uint64_t now = io->monotonic_ns(io);
        if (now >= deadline_ns)
            return false;
        uint64_t left_ms = (deadline_ns - now) / 1000000 + 1;
        if (cx_net_wait(pg->f.PQsocket(pg->handle), NULL, (uint32_t)left_ms) == CX_NET_READY &&
            pg->f.PQconsumeInput(pg->handle) != 1)
            return true; /* PQgetResult says why */
    }
    return true;
}

/* The next result, NULL after the last. */
static PGresult *next_result(cx_pg *pg, uint64_t deadline_ns)
{
    if (pg->options.answer_timeout_ms != 0 && !wait_for_answer(pg, deadline_ns)) {
        pg->silent = true;
        return NULL;
    }
    return pg->f.PQgetResult(pg->handle);
}

static bool is_good(ExecStatusType status)
{
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_SINGLE_TUPLE;
}

/* What became of statements that were sent, without their rows. */
static cx_status await_outcome(cx_pg *pg, bool sent, const char *doing, cx_err *err)
{
    uint64_t deadline_ns = answer_deadline(pg);
    cx_status status = CX_SUCCESS;
    PGresult *result;
    if (!sent)
        return cx_pg_fail(pg, NULL, doing, err);
    while ((result = next_result(pg, deadline_ns)) != NULL) {
        if (!cx_failed(status) && !is_good(pg->f.PQresultStatus(result)))
            status = cx_pg_fail(pg, result, doing, err);
        pg->f.PQclear(result);
    }
    if (!cx_failed(status) && cx_pg_is_away(pg))
        status = cx_pg_fail(pg, NULL, doing, err);
    return status;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

/* A warning at COMMIT may say that the transaction is not where it was to be. */
static void count_notice(void *arg, const PGresult *result)
{
    cx_pg *pg = arg;
    const char *severity = pg->f.PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity != NULL && strcmp(severity, "WARNING") == 0)
        pg->warnings++;
}

static cx_status configure(cx_pg *pg, cx_err *err)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SET statement_timeout = %u; SET TimeZone = 'UTC';"
                   "SET default_transaction_read_only = %s; SET client_min_messages = %s;"
                   "SET jit = off",
                   pg->options.statement_timeout_ms, pg->options.read_only ? "on" : "off",
                   pg->options.warnings ? "warning" : "error");
    return cx_pg_run(pg, sql, err);
}

/* What the URL says comes later and wins, but for the encoding. */
static cx_status connect_now(cx_pg *pg, cx_err *err)
{
    char timeout[16];
    (void)snprintf(timeout, sizeof timeout, "%u", pg->options.connect_timeout_s);
    const char *const names[] = {"connect_timeout", "tcp_user_timeout", "fallback_application_name",
                                 "dbname",          "client_encoding",  NULL};
    const char *const values[] = {timeout, "30000", pg->options.application_name,
                                  pg->url, "UTF8",  NULL};
    pg->handle = pg->f.PQconnectdbParams(names, values, 1);
    if (pg->handle == NULL || pg->f.PQstatus(pg->handle) != CONNECTION_OK)
        return fail_connecting(pg, err);
    (void)pg->f.PQsetNoticeProcessor(pg->handle, ignore_notice, NULL);
    if (pg->options.warnings)
        (void)pg->f.PQsetNoticeReceiver(pg->handle, count_notice, pg);
    return configure(pg, err);
}

static void forget_names(cx_pg *pg)
{
    cx_map_done(&pg->statements);
    cx_arena_done(&pg->texts);
    cx_map_init(&pg->statements, cx_alloc_default(), 0);
    cx_arena_init(&pg->texts, cx_alloc_default(), 0);
    pg->statement_count = 0;
}

cx_status cx_pg_open(const char *url, const cx_pg_options *options, cx_pg **out, cx_err *err)
{
    cx_pg *pg = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *pg);
    if (pg == NULL)
        return cx_fail_nomem(err);
    pg->options = *options;
    pg->url_size = strlen(url) + 1;
    cx_map_init(&pg->statements, cx_alloc_default(), 0);
    cx_arena_init(&pg->texts, cx_alloc_default(), 0);
    cx_buf_init(&pg->values, cx_alloc_default());
    cx_buf_init(&pg->scratch, cx_alloc_default());
    cx_status status = CX_SUCCESS;
    pg->url = cx_alloc_new(cx_alloc_default(), pg->url_size);
    if (pg->url == NULL)
        status = cx_fail_nomem(err);
    else
        memcpy(pg->url, url, pg->url_size);
    if (!cx_failed(status))
        status = cx_pg_library_load(&pg->f, err);
    if (!cx_failed(status))
        status = connect_now(pg, err);
    if (cx_failed(status)) {
        cx_pg_close(pg);
        return status;
    }
    *out = pg;
    return CX_SUCCESS;
}

void cx_pg_close(cx_pg *pg)
{
    if (pg == NULL)
        return;
    if (pg->handle != NULL)
        pg->f.PQfinish(pg->handle);
    cx_map_done(&pg->statements);
    cx_arena_done(&pg->texts);
    cx_buf_done(&pg->values);
    cx_buf_done(&pg->scratch);
    cx_alloc_free(cx_alloc_default(), pg->url, pg->url_size);
    cx_alloc_free(cx_alloc_default(), pg, sizeof *pg);
}

bool cx_pg_is_away(const cx_pg *pg)
{
    return pg->handle == NULL || pg->silent || pg->f.PQstatus(pg->handle) != CONNECTION_OK;
}

const char *cx_pg_state(const cx_pg *pg)
{
    return pg->state;
}

unsigned cx_pg_warnings(const cx_pg *pg)
{
    return pg->warnings;
}

cx_status cx_pg_reconnect(cx_pg *pg, cx_err *err)
{
    if (pg->handle != NULL)
        pg->f.PQfinish(pg->handle);
    pg->handle = NULL;
    pg->in_transaction = false;
    pg->in_copy = false;
    pg->queued = 0;
    pg->silent = false;
    forget_names(pg);
    return connect_now(pg, err);
}

/* --- simple statements ------------------------------------------------------------------------ */

cx_status cx_pg_run(cx_pg *pg, const char *sql, cx_err *err)
{
    pg->warnings = 0;
    pg->state[0] = 0;
    return await_outcome(pg, pg->f.PQsendQuery(pg->handle, sql) == 1, "running a statement", err);
}

cx_status cx_pg_begin(cx_pg *pg, cx_err *err)
{
    CX_TRY(cx_pg_run(pg, "BEGIN", err));
    pg->in_transaction = true;
    return CX_SUCCESS;
}

/* A transaction in which something failed is rolled back by COMMIT, which does not call that an
 * error. */
cx_status cx_pg_commit(cx_pg *pg, cx_err *err)
{
    PGTransactionStatusType now = pg->f.PQtransactionStatus(pg->handle);
    if (now != PQTRANS_INTRANS)
        return cx_pg_is_away(pg) ? cx_pg_fail(pg, NULL, "committing", err)
                                 : cx_fail(err, CX_E_USAGE, "there is nothing to commit");
    CX_TRY(cx_pg_run(pg, "COMMIT", err));
    pg->in_transaction = false;
    return CX_SUCCESS;
}

/* Gives up a COPY and a pipeline that were left half done. */
static void drop_pending_work(cx_pg *pg)
{
    if (pg->in_copy)
        (void)pg->f.PQputCopyEnd(pg->handle, "given up");
    pg->in_copy = false;
    if (pg->queued != 0)
        (void)cx_pg_drain(pg, NULL).code;
    (void)cx_pg_finish(pg, "", NULL).code;
}

void cx_pg_rollback(cx_pg *pg)
{
    if (pg == NULL || pg->handle == NULL || !pg->in_transaction)
        return;
    pg->in_transaction = false;
    if (cx_pg_is_away(pg))
        return;
    drop_pending_work(pg);
    PGresult *result = pg->f.PQexec(pg->handle, "ROLLBACK");
    pg->f.PQclear(result);
}

cx_status cx_pg_finish(cx_pg *pg, const char *doing, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    PGresult *result;
    while ((result = pg->f.PQgetResult(pg->handle)) != NULL) {
        ExecStatusType now = pg->f.PQresultStatus(result);
        if (!cx_failed(status) && !is_good(now))
            status = cx_pg_fail(pg, result, doing, err);
        pg->f.PQclear(result);
        if (now == PGRES_COPY_IN || now == PGRES_COPY_OUT || now == PGRES_COPY_BOTH)
            break; /* does not end by itself */
    }
    if (!cx_failed(status) && cx_pg_is_away(pg))
        status = cx_pg_fail(pg, NULL, doing, err);
    return status;
}

/* --- statements with values ------------------------------------------------------------------- */

typedef struct parameters {
    int count;
    Oid types[PARAMETERS_MAX];
    const char *values[PARAMETERS_MAX];
    int lengths[PARAMETERS_MAX];
    int formats[PARAMETERS_MAX]; /* all binary */
} parameters;

static cx_status encode_parameters(cx_pg *pg, const cx_pg_value *values, size_t count,
                                   parameters *out, cx_err *err)
{
    size_t offsets[PARAMETERS_MAX];
    CX_ASSERT(count <= PARAMETERS_MAX);
    cx_buf_clear(&pg->values);
    for (size_t i = 0; i < count; i++) {
        offsets[i] = pg->values.size + 4;
        CX_TRY(cx_pg_add_value(&pg->values, &values[i], err));
    }
    CX_TRY(cx_buf_check(&pg->values, err));
    out->count = (int)count;
    for (size_t i = 0; i < count; i++) {
        size_t end = i + 1 < count ? offsets[i + 1] - 4 : pg->values.size;
        out->types[i] = cx_pg_oids[values[i].type];
        out->values[i] = values[i].null ? NULL : (const char *)pg->values.data + offsets[i];
        out->lengths[i] = (int)(end - offsets[i]);
        out->formats[i] = 1;
    }
    return CX_SUCCESS;
}

#define NAME_SIZE 24

static cx_status prepare_statement(cx_pg *pg, const char *sql, const parameters *given,
                                   const char *name, cx_err *err)
{
    bool sent = pg->f.PQsendPrepare(pg->handle, name, sql, given->count, given->types) == 1;
    return await_outcome(pg, sent, "preparing a statement", err);
}

/* The name of the prepared statement with that text. */
static cx_status name_of(cx_pg *pg, const char *sql, const parameters *given, char name[NAME_SIZE],
                         cx_err *err)
{
    const uint64_t *known = cx_map_find(&pg->statements, cx_str_z(sql));
    if (known != NULL) {
        (void)snprintf(name, NAME_SIZE, "c%llu", (unsigned long long)*known);
        return CX_SUCCESS;
    }
    if (pg->queued != 0)
        CX_TRY(cx_pg_drain(pg, err));
    if (pg->statement_count == STATEMENTS_MAX)
        CX_TRY(cx_pg_forget(pg, err));
    cx_str text = cx_arena_copy_str(&pg->texts, cx_str_z(sql));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    (void)snprintf(name, NAME_SIZE, "c%llu", (unsigned long long)pg->statement_count);
    CX_TRY(cx_map_reserve(&pg->statements, (size_t)pg->statement_count + 1, err));
    CX_TRY(prepare_statement(pg, sql, given, name, err));
    uint64_t *value;
    bool is_new;
    CX_TRY(cx_map_put(&pg->statements, text, &value, &is_new, err));
    *value = pg->statement_count++;
    return CX_SUCCESS;
}

cx_status cx_pg_forget(cx_pg *pg, cx_err *err)
{
    forget_names(pg);
    return cx_pg_run(pg, "DEALLOCATE ALL", err);
}

static cx_status send_statement(cx_pg *pg, const char *sql, const cx_pg_value *values, size_t count,
                                cx_err *err)
{
    parameters given;
    char name[NAME_SIZE];
    if (cx_pg_is_away(pg))
        return cx_pg_fail(pg, NULL, "sending a statement", err);
    CX_TRY(encode_parameters(pg, values, count, &given, err));
    CX_TRY(name_of(pg, sql, &given, name, err));
    if (pg->f.PQsendQueryPrepared(pg->handle, name, given.count, given.values, given.lengths,
                                  given.formats, 1) != 1)
        return cx_pg_fail(pg, NULL, "sending a statement", err);
    return CX_SUCCESS;
}

/* --- rows ------------------------------------------------------------------------------------- */

static cx_status read_row(cx_pg *pg, const PGresult *result, const cx_pg_type *types,
                          size_t column_count, cx_pg_value *out, cx_err *err)
{
    size_t room = 0;
    if (pg->f.PQnfields(result) != (int)column_count)
        return cx_fail(err, CX_E_USAGE,
                       "the result has another number of columns than the caller expects");
    for (size_t i = 0; i < column_count; i++)
        room += cx_pg_scratch_size(types[i], (size_t)pg->f.PQgetlength(result, 0, (int)i));
    cx_buf_clear(&pg->scratch);
    if (cx_buf_reserve(&pg->scratch, room) == NULL && room != 0)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < column_count; i++) {
        out[i] = (cx_pg_value){.type = types[i], .null = true};
        if (pg->f.PQgetisnull(result, 0, (int)i) != 0)
            continue;
        cx_bytes bytes = cx_bytes_from(pg->f.PQgetvalue(result, 0, (int)i),
                                       (size_t)pg->f.PQgetlength(result, 0, (int)i));
        CX_TRY(cx_pg_read_value(bytes, types[i], &pg->scratch, &out[i], err));
    }
    return CX_SUCCESS;
}

/* One result of a running statement; *out_count counts what it read or changed. */
static cx_status read_result(cx_pg *pg, const PGresult *result, const cx_pg_type *types,
                             size_t column_count, cx_pg_row *row, void *arg, uint64_t *out_count,
                             cx_err *err)
{
    cx_pg_value columns[CX_PG_COLUMNS_MAX];
    ExecStatusType status = pg->f.PQresultStatus(result);
    if (!is_good(status))
        return cx_pg_fail(pg, result, "asking", err);
    if (status == PGRES_COMMAND_OK) {
        for (const char *at = pg->f.PQcmdTuples((PGresult *)(uintptr_t)result); *at != 0; at++)
            *out_count = *out_count * 10 + (uint64_t)(*at - '0');
        return CX_SUCCESS;
    }
    if (pg->f.PQntuples(result) == 0 || row == NULL)
        return CX_SUCCESS;
    ++*out_count;
    CX_TRY(read_row(pg, result, types, column_count, columns, err));
    return row(arg, columns, err);
}

cx_status cx_pg_query(cx_pg *pg, const char *sql, const cx_pg_value *values, size_t value_count,
                      const cx_pg_type *types, size_t column_count, cx_pg_row *row, void *arg,
                      uint64_t *out_changed, cx_err *err)
{
    uint64_t count = 0;
    PGresult *result;
    CX_ASSERT(!pg->in_copy && pg->queued == 0 && column_count <= CX_PG_COLUMNS_MAX);
    uint64_t deadline_ns = answer_deadline(pg);
    pg->warnings = 0;
    pg->state[0] = 0;
    CX_TRY(send_statement(pg, sql, values, value_count, err));
    (void)pg->f.PQsetSingleRowMode(pg->handle);
    cx_status status = CX_SUCCESS;
    while ((result = next_result(pg, deadline_ns)) != NULL) {
        if (!cx_failed(status))
            status = read_result(pg, result, types, column_count, row, arg, &count, err);
        pg->f.PQclear(result);
    }
    if (!cx_failed(status) && cx_pg_is_away(pg))
        status = cx_pg_fail(pg, NULL, "asking", err);
    if (!cx_failed(status) && out_changed != NULL)
        *out_changed = count;
    return status;
}

/* --- many at once ----------------------------------------------------------------------------- */

cx_status cx_pg_queue(cx_pg *pg, const char *sql, const cx_pg_value *values, size_t value_count,
                      cx_err *err)
{
    CX_ASSERT(!pg->in_copy);
    if (pg->queued == QUEUED_MAX)
        CX_TRY(cx_pg_drain(pg, err));
    parameters given;
    char name[NAME_SIZE];
    if (cx_pg_is_away(pg))
        return cx_pg_fail(pg, NULL, "sending a statement", err);
    CX_TRY(encode_parameters(pg, values, value_count, &given, err));
    CX_TRY(name_of(pg, sql, &given, name, err));
    if (pg->queued == 0 && pg->f.PQenterPipelineMode(pg->handle) != 1)
        return cx_pg_fail(pg, NULL, "sending statements", err);
    pg->queued++;
    if (pg->f.PQsendQueryPrepared(pg->handle, name, given.count, given.values, given.lengths,
                                  given.formats, 1) != 1)
        return cx_pg_fail(pg, NULL, "sending a statement", err);
    return CX_SUCCESS;
}

cx_status cx_pg_drain(cx_pg *pg, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    if (pg->queued == 0)
        return CX_SUCCESS;
    pg->queued = 0;
    if (pg->f.PQpipelineSync(pg->handle) != 1)
        return cx_pg_fail(pg, NULL, "sending statements", err);
    for (bool synced = false; !synced;) {
        PGresult *result = pg->f.PQgetResult(pg->handle);
        ExecStatusType now = pg->f.PQresultStatus(result);
        if (result == NULL && cx_pg_is_away(pg))
            break;
        synced = now == PGRES_PIPELINE_SYNC;
        /* What follows a failure is not tried, and says only that. */
        bool bad = result != NULL && !synced && !is_good(now) && now != PGRES_PIPELINE_ABORTED;
        if (bad && !cx_failed(status))
            status = cx_pg_fail(pg, result, "running statements", err);
        pg->f.PQclear(result);
    }
    if (cx_pg_is_away(pg))
        return cx_failed(status) ? status : cx_pg_fail(pg, NULL, "running statements", err);
    if (pg->f.PQexitPipelineMode(pg->handle) != 1 && !cx_failed(status))
        status = cx_pg_fail(pg, NULL, "running statements", err);
    return status;
}

#else

#include "db/pg.h"

static cx_status not_built_error(cx_err *err)
{
    return cx_fail(err, CX_E_UNSUPPORTED,
                   "this program was built without PostgreSQL (package libpq-dev)");
}

/* No caller has a connection here, so nothing but opening is ever called. */
cx_status cx_pg_open(const char *url, const cx_pg_options *options, cx_pg **out, cx_err *err)
{
    (void)url;
    (void)options;
    (void)out;
    return not_built_error(err);
}

void cx_pg_close(cx_pg *pg)
{
    (void)pg;
}

bool cx_pg_is_away(const cx_pg *pg)
{
    (void)pg;
    return true;
}

cx_status cx_pg_reconnect(cx_pg *pg, cx_err *err)
{
    (void)pg;
    return not_built_error(err);
}

const char *cx_pg_state(const cx_pg *pg)
{
    (void)pg;
    return "";
}

unsigned cx_pg_warnings(const cx_pg *pg)
{
    (void)pg;
    return 0;
}

cx_status cx_pg_run(cx_pg *pg, const char *sql, cx_err *err)
{
    (void)pg;
    (void)sql;
    return not_built_error(err);
}

cx_status cx_pg_begin(cx_pg *pg, cx_err *err)
{
    (void)pg;
    return not_built_error(err);
}

cx_status cx_pg_commit(cx_pg *pg, cx_err *err)
{
    (void)pg;
    return not_built_error(err);
}

void cx_pg_rollback(cx_pg *pg)
{
    (void)pg;
}

cx_status cx_pg_query(cx_pg *pg, const char *sql, const cx_pg_value *values, size_t value_count,
                      const cx_pg_type *types, size_t column_count, cx_pg_row *row, void *arg,
                      uint64_t *out_changed, cx_err *err)
{
    (void)pg, (void)sql, (void)values, (void)value_count, (void)types, (void)column_count;
    (void)row, (void)arg, (void)out_changed;
    return not_built_error(err);
}

#endif

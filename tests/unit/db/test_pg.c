/*
 * test_pg.c - the PostgreSQL driver: values, rows in bulk, many statements, errors.
 *
 * With CORTEX_TEST_PG (tests/support/postgres.sh) against a server; what needs none runs always.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "db/pg.h"
#include "tests/test.h"

#ifdef CX_WITH_PG

static const char *server(void)
{
    const char *url = getenv("CORTEX_TEST_PG");
    if (url == NULL || *url == 0) {
        cx_test_skip("CORTEX_TEST_PG names no database");
        return NULL;
    }
    return url;
}

static cx_pg *connect_to(const char *url)
{
    cx_err err = {0};
    cx_pg *pg = NULL;
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    CHECK_STATUS(cx_pg_open(url, &options, &pg, &err), &err);
    return pg;
}

/* Opens a connection or leaves the test. */
#define CONNECT(pg)              \
    const char *url = server();  \
    if (url == NULL)             \
        return;                  \
    cx_pg *pg = connect_to(url); \
    REQUIRE(pg != NULL)

typedef struct taker {
    cx_buf *out;
    size_t count; /* of columns */
} taker;

/* The rows of an answer as text: values with a bar between them, rows with a new line. */
static cx_status take_row(void *arg, const cx_pg_value *columns, cx_err *err)
{
    taker *t = arg;
    for (size_t i = 0; i < t->count; i++) {
        if (i != 0)
            cx_buf_add_byte(t->out, '|');
        if (columns[i].null) {
            cx_buf_add_z(t->out, "null");
            continue;
        }
        switch (columns[i].type) {
        case CX_PG_INT:
        case CX_PG_TIME: cx_buf_add_i64(t->out, columns[i].i); break;
        case CX_PG_FLOAT: cx_buf_printf(t->out, "%.17g", columns[i].f); break;
        case CX_PG_BOOL: cx_buf_add_z(t->out, columns[i].b ? "true" : "false"); break;
        default: cx_buf_add_str(t->out, columns[i].text); break;
        }
    }
    cx_buf_add_byte(t->out, '\n');
    return cx_buf_check(t->out, err);
}

static cx_status ask(cx_pg *pg, const char *sql, const cx_pg_value *values, size_t value_count,
                     const cx_pg_type *types, size_t count, cx_buf *out, cx_err *err)
{
    taker t = {out, count};
    cx_buf_clear(out);
    return cx_pg_query(pg, sql, values, value_count, types, count, take_row, &t, NULL, err);
}

#define CHECK_ASK(sql, values, value_count, types, count, expected)                           \
    do {                                                                                      \
        cx_buf out_;                                                                          \
        cx_err err_ = {0};                                                                    \
        cx_buf_init(&out_, cx_alloc_default());                                               \
        CHECK_STATUS(ask(pg, (sql), (values), (value_count), (types), (count), &out_, &err_), \
                     &err_);                                                                  \
        cx_str text_ = cx_buf_str(&out_);                                                     \
        CHECK_STR(text_, (expected));                                                         \
        cx_buf_done(&out_);                                                                   \
    } while (0)

static const cx_pg_type all_types[] = {CX_PG_TEXT, CX_PG_INT,  CX_PG_FLOAT, CX_PG_BOOL,
                                       CX_PG_TIME, CX_PG_JSON, CX_PG_TEXTS, CX_PG_UUID};

static void all_values(cx_pg_value values[8], bool null)
{
    values[0] = (cx_pg_value){.type = CX_PG_TEXT, .text = CX_STR("t\xc3\xa9xt '\"\\")};
    values[1] = (cx_pg_value){.type = CX_PG_INT, .i = INT64_MIN};
    values[2] = (cx_pg_value){.type = CX_PG_FLOAT, .f = 0.0031992000000000006};
    values[3] = (cx_pg_value){.type = CX_PG_BOOL, .b = true};
    values[4] = (cx_pg_value){.type = CX_PG_TIME, .i = INT64_C(1767225600123456789)};
    values[5] = (cx_pg_value){.type = CX_PG_JSON, .text = CX_STR("{\"a\": [1.0, null]}")};
    values[6] = (cx_pg_value){.type = CX_PG_TEXTS,
                              .text = CX_STR("[\"a\",\"\",\"quo\\\"te\",\"NULL\",\"{x,y}\"]")};
    values[7] =
        (cx_pg_value){.type = CX_PG_UUID, .text = CX_STR("52eadd3c-75b7-42cf-88fb-dc85be19eb2a")};
    for (size_t i = 0; i < 8; i++)
        values[i].null = null;
}

static const char all_text[] =
    "t\xc3\xa9xt '\"\\|-9223372036854775808|0.0031992000000000006|true|1767225600123456000|"
    "{\"a\": [1.0, null]}|[\"a\",\"\",\"quo\\\"te\",\"NULL\",\"{x,y}\"]|"
    "52eadd3c-75b7-42cf-88fb-dc85be19eb2a\n";

/* --- values ----------------------------------------------------------------------------------- */

CX_TEST(values_of_every_type_come_back_as_they_went)
{
    CONNECT(pg);
    cx_pg_value values[8];
    all_values(values, false);
    CHECK_ASK("SELECT $1, $2, $3, $4, $5, $6, $7, $8", values, 8, all_types, 8, all_text);
    CHECK_ASK("SELECT pg_typeof($1)::text || pg_typeof($2) || pg_typeof($3) || pg_typeof($4)"
              " || pg_typeof($5) || pg_typeof($6) || pg_typeof($7) || pg_typeof($8)",
              values, 8, all_types, 1,
              "textbigintdouble precisionbooleantimestamp with time zonejsonbtext[]uuid\n");
    all_values(values, true);
    CHECK_ASK("SELECT $1, $2, $3, $4, $5, $6, $7, $8", values, 8, all_types, 8,
              "null|null|null|null|null|null|null|null\n");
    cx_str items[] = {CX_STR("x"), CX_STR("y z")};
    cx_pg_value list = {.type = CX_PG_LIST, .items = items, .count = 2};
    CHECK_ASK("SELECT u, n FROM unnest($1) WITH ORDINALITY AS t (u, n)", &list, 1, all_types, 2,
              "x|1\ny z|2\n");
    list.count = 0;
    CHECK_ASK("SELECT u, n FROM unnest($1) WITH ORDINALITY AS t (u, n)", &list, 1, all_types, 2,
              "");
    int64_t times[] = {0, 1000000000};
    cx_pg_value moments = {.type = CX_PG_TIMES, .times = times, .count = 2};
    CHECK_ASK("SELECT t::text FROM unnest($1) t", &moments, 1, all_types, 1,
              "1970-01-01 00:00:00+00\n1970-01-01 00:00:01+00\n");
    /* Below a microsecond times are cut, also before 1970. */
    cx_pg_value early = {.type = CX_PG_TIME, .i = -1};
    CHECK_ASK("SELECT $1", &early, 1, all_types + 4, 1, "-1000\n");
    cx_pg_close(pg);
}

CX_TEST(a_column_of_another_type_is_an_error)
{
    CONNECT(pg);
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK(ask(pg, "SELECT 1::int4", NULL, 0, all_types + 1, 1, &out, &err).code == CX_E_FORMAT);
    CHECK_STR(cx_str_z(err.tag), "DatabaseDamaged");
    CHECK(ask(pg, "SELECT 'infinity'::timestamptz", NULL, 0, all_types + 4, 1, &out, &err).code ==
          CX_E_FORMAT);
    CHECK(ask(pg, "SELECT 'text'", NULL, 0, all_types + 7, 1, &out, &err).code == CX_E_FORMAT);
    CHECK(ask(pg, "SELECT ARRAY[['a'],['b']]", NULL, 0, all_types + 6, 1, &out, &err).code ==
          CX_E_FORMAT);
    CHECK(ask(pg, "SELECT 1, 2", NULL, 0, all_types, 1, &out, &err).code == CX_E_USAGE);
    /* The connection goes on. */
    CHECK_ASK("SELECT 'fine'", NULL, 0, all_types, 1, "fine\n");
    cx_buf_done(&out);
    cx_pg_close(pg);
}

CX_TEST(values_that_are_none_are_refused_before_they_are_sent)
{
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    static const cx_pg_value bad[] = {
        {.type = CX_PG_UUID, .text = {"52eadd3c", 8}},
        {.type = CX_PG_UUID, .text = {"52eadd3c-75b7-42cf-88fb-dc85be19eb2az", 37}},
        {.type = CX_PG_TEXTS, .text = {"[1]", 3}},
        {.type = CX_PG_TEXTS, .text = {"{}", 2}},
        {.type = CX_PG_TEXTS, .text = {"[", 1}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(cx_pg_add_value(&out, &bad[i], &err).code != CX_OK);
    cx_buf_clear(&out);
    cx_pg_value fine = {.type = CX_PG_INT, .i = 258};
    CHECK_STATUS(cx_pg_add_value(&out, &fine, &err), &err);
    CHECK(out.size == 12 && memcmp(out.data, "\0\0\0\010\0\0\0\0\0\0\1\2", 12) == 0);
    cx_buf_done(&out);
}

/* --- rows in bulk ----------------------------------------------------------------------------- */

static const char make_table[] =
    "CREATE TEMPORARY TABLE bulk (t text, i bigint NOT NULL, f double precision, b boolean,"
    " z timestamptz, j jsonb, a text[], u uuid)";

CX_TEST(copy_takes_every_type)
{
    CONNECT(pg);
    cx_err err = {0};
    cx_buf rows;
    cx_pg_value values[8];
    cx_buf_init(&rows, cx_alloc_default());
    CHECK_STATUS(cx_pg_run(pg, make_table, &err), &err);
    CHECK_STATUS(cx_pg_copy_begin(pg, "COPY bulk FROM STDIN (FORMAT binary)", &err), &err);
    for (int turn = 0; turn < 2; turn++) {
        all_values(values, turn == 1);
        values[1].null = false;
        cx_pg_add_row(&rows, 8);
        for (size_t i = 0; i < 8; i++)
            CHECK_STATUS(cx_pg_add_value(&rows, &values[i], &err), &err);
    }
    CHECK_STATUS(cx_pg_copy_rows(pg, cx_buf_bytes(&rows), &err), &err);
    CHECK_STATUS(cx_pg_copy_end(pg, &err), &err);
    CHECK_ASK("SELECT * FROM bulk WHERE t IS NOT NULL", NULL, 0, all_types, 8, all_text);
    CHECK_ASK("SELECT * FROM bulk WHERE t IS NULL", NULL, 0, all_types, 8,
              "null|-9223372036854775808|null|null|null|null|null|null\n");
    /* An array is an array (trace.md §14.26). */
    CHECK_ASK("SELECT a[3] FROM bulk WHERE a IS NOT NULL", NULL, 0, all_types, 1, "quo\"te\n");
    cx_buf_done(&rows);
    cx_pg_close(pg);
}

CX_TEST(copy_says_what_was_refused_and_the_connection_goes_on)
{
    CONNECT(pg);
    cx_err err = {0};
    cx_buf rows;
    cx_buf_init(&rows, cx_alloc_default());
    CHECK_STATUS(cx_pg_run(pg, make_table, &err), &err);
    CHECK_STATUS(cx_pg_begin(pg, &err), &err);
    CHECK_STATUS(cx_pg_copy_begin(pg, "COPY bulk (i) FROM STDIN (FORMAT binary)", &err), &err);
    cx_pg_value null = {.type = CX_PG_INT, .null = true};
    cx_pg_add_row(&rows, 1);
    CHECK_STATUS(cx_pg_add_value(&rows, &null, &err), &err);
    CHECK_STATUS(cx_pg_copy_rows(pg, cx_buf_bytes(&rows), &err), &err);
    CHECK(cx_pg_copy_end(pg, &err).code == CX_E_FORMAT);
    CHECK_STR(cx_str_z(err.tag), "DatabaseRefused");
    CHECK(strstr(err.message, "23502") != NULL);
    cx_pg_rollback(pg);
    /* One that is left half done. */
    CHECK_STATUS(cx_pg_begin(pg, &err), &err);
    CHECK_STATUS(cx_pg_copy_begin(pg, "COPY bulk (i) FROM STDIN (FORMAT binary)", &err), &err);
    cx_pg_rollback(pg);
    CHECK_ASK("SELECT count(*) FROM bulk", NULL, 0, all_types + 1, 1, "0\n");
    CHECK(cx_pg_copy_begin(pg, "COPY nowhere FROM STDIN (FORMAT binary)", &err).code ==
          CX_E_FORMAT);
    cx_buf_done(&rows);
    cx_pg_close(pg);
}

/* --- statements ------------------------------------------------------------------------------- */

CX_TEST(many_statements_in_one_go)
{
    CONNECT(pg);
    cx_err err = {0};
    CHECK_STATUS(cx_pg_run(pg, "CREATE TEMPORARY TABLE n (i bigint PRIMARY KEY)", &err), &err);
    CHECK_STATUS(cx_pg_begin(pg, &err), &err);
    for (int64_t i = 0; i < 2500; i++) {
        cx_pg_value value = {.type = CX_PG_INT, .i = i};
        CHECK_STATUS(cx_pg_queue(pg, "INSERT INTO n VALUES ($1)", &value, 1, &err), &err);
        if (i % 10 == 0)
            CHECK_STATUS(cx_pg_queue(pg, "DELETE FROM n WHERE i = $1", &value, 1, &err), &err);
    }
    CHECK_STATUS(cx_pg_drain(pg, &err), &err);
    CHECK_STATUS(cx_pg_commit(pg, &err), &err);
    CHECK_ASK("SELECT count(*), CAST(min(i) AS bigint) FROM n", NULL, 0,
              ((const cx_pg_type[]){CX_PG_INT, CX_PG_INT}), 2, "2250|1\n");
    /* The first failure is told; nothing after it was done. */
    CHECK_STATUS(cx_pg_begin(pg, &err), &err);
    for (int64_t i = -3; i < 3; i++) {
        cx_pg_value value = {.type = CX_PG_INT, .i = i};
        CHECK_STATUS(cx_pg_queue(pg, "INSERT INTO n VALUES ($1)", &value, 1, &err), &err);
    }
    CHECK(cx_pg_drain(pg, &err).code == CX_E_FORMAT);
    CHECK(strstr(err.message, "23505") != NULL);
    CHECK(cx_pg_commit(pg, &err).code == CX_E_USAGE);
    cx_pg_rollback(pg);
    CHECK_ASK("SELECT count(*) FROM n", NULL, 0, all_types + 1, 1, "2250\n");
    CHECK_STATUS(cx_pg_drain(pg, &err), &err); /* nothing waits: fine */
    cx_pg_close(pg);
}

CX_TEST(statements_are_prepared_once_and_more_than_fit_are_prepared_again)
{
    CONNECT(pg);
    char sql[64];
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 300; i++) {
            char expected[16];
            cx_pg_value value = {.type = CX_PG_INT, .i = i};
            (void)snprintf(sql, sizeof sql, "SELECT $1 + %d", i);
            (void)snprintf(expected, sizeof expected, "%d\n", 2 * i);
            CHECK_ASK(sql, &value, 1, all_types + 1, 1, expected);
        }
    CHECK_ASK("SELECT count(*) <= 256 AND count(*) > 40 FROM pg_prepared_statements", NULL, 0,
              all_types + 3, 1, "true\n");
    cx_pg_close(pg);
}

static cx_status stop_taking(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)columns;
    return ++*(int *)arg == 3 ? cx_fail(err, CX_E_LIMIT, "enough") : CX_SUCCESS;
}

CX_TEST(a_taker_may_stop_and_changes_are_counted)
{
    CONNECT(pg);
    cx_err err = {0};
    int taken = 0;
    uint64_t changed = 0;
    CHECK(cx_pg_query(pg, "SELECT generate_series(1::bigint, 100000)", NULL, 0, all_types + 1, 1,
                      stop_taking, &taken, NULL, &err)
              .code == CX_E_LIMIT);
    CHECK_INT(taken, 3);
    CHECK_STATUS(cx_pg_run(pg, "CREATE TEMPORARY TABLE n (i bigint)", &err), &err);
    CHECK_STATUS(cx_pg_query(pg, "INSERT INTO n SELECT generate_series(1, 137)", NULL, 0, NULL, 0,
                             NULL, NULL, &changed, &err),
                 &err);
    CHECK_INT(changed, 137);
    cx_pg_close(pg);
}

/* --- errors ----------------------------------------------------------------------------------- */

CX_TEST(errors_say_what_to_do_and_quote_neither_sql_nor_data)
{
    CONNECT(pg);
    static const struct {
        const char *sql;
        cx_code code;
        const char *tag;
    } cases[] = {
        {"SELECT 'secret'::bigint", CX_E_FORMAT, "DatabaseRefused"},
        {"SELECT secret FROM nowhere", CX_E_FORMAT, "DatabaseDamaged"},
        {"SELEC 'secret'", CX_E_FORMAT, "DatabaseDamaged"},
        {"SELECT 1/0 AS secret", CX_E_FORMAT, "DatabaseRefused"},
        {"SET statement_timeout = 100; SELECT pg_sleep(20), 'secret'", CX_E_BUSY, "DatabaseAway"},
        {"SET transaction_read_only = on; CREATE TABLE secret (i int)", CX_E_DENIED, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cx_err err = {0};
        cx_status status = cx_pg_run(pg, cases[i].sql, &err);
        CHECK_INT(status.code, cases[i].code);
        CHECK_STR(cx_str_z(err.tag == NULL ? "" : err.tag), cases[i].tag);
        CHECK(strstr(err.message, "secret") == NULL && strstr(err.message, "SELECT") == NULL);
    }
    cx_pg_close(pg);
}

CX_TEST(a_server_that_cannot_be_reached_is_away)
{
    cx_err err = {0};
    cx_pg *pg;
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    options.connect_timeout_s = 2;
    /* Port 1 of this machine: no server listens there. */
    cx_status status = cx_pg_open("postgresql://u:hunter2@127.0.0.1:1/x", &options, &pg, &err);
    if (status.code == CX_E_UNSUPPORTED) {
        CHECK(strstr(err.message, "libpq") != NULL);
        cx_test_skip("there is no libpq");
        return;
    }
    CHECK(status.code == CX_E_IO);
    CHECK_STR(cx_str_z(err.tag), "DatabaseAway");
    CHECK(strstr(err.message, "hunter2") == NULL);
    CHECK(cx_pg_open("postgresql://[bad", &options, &pg, &err).code == CX_E_USAGE);
}

CX_TEST(a_user_or_database_that_is_not_there_is_denied)
{
    const char *url = server();
    if (url == NULL)
        return;
    cx_err err = {0};
    cx_pg *pg;
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    char other[512];
    const char *slash = strrchr(url, '/');
    (void)snprintf(other, sizeof other, "%.*s/no_such_database", (int)(slash - url), url);
    CHECK(cx_pg_open(other, &options, &pg, &err).code == CX_E_DENIED);
}

CX_TEST(too_many_connections_is_busy)
{
    const char *url = server();
    if (url == NULL)
        return;
    enum { MANY = 200 };
    cx_pg *all[MANY];
    size_t count = 0;
    cx_err err = {0};
    cx_status status = {CX_OK};
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    while (count < MANY && status.code == CX_OK) {
        status = cx_pg_open(url, &options, &all[count], &err);
        count += status.code == CX_OK;
    }
    CHECK(count > 5 && count < MANY);
    CHECK(status.code == CX_E_BUSY);
    CHECK_STR(cx_str_z(err.tag == NULL ? "" : err.tag), "DatabaseAway");
    while (count > 0)
        cx_pg_close(all[--count]);
}

CX_TEST(a_lost_connection_is_away_until_reconnected)
{
    CONNECT(pg);
    cx_err err = {0};
    cx_buf out;
    uint64_t changed;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_ASK("SELECT 'before'", NULL, 0, all_types, 1, "before\n");
    CHECK_STATUS(cx_pg_begin(pg, &err), &err);
    cx_status status = cx_pg_run(pg, "SELECT pg_terminate_backend(pg_backend_pid())", &err);
    CHECK(status.code == CX_E_IO);
    CHECK_STR(cx_str_z(err.tag == NULL ? "" : err.tag), "DatabaseAway");
    CHECK(cx_pg_is_away(pg));
    status = cx_pg_query(pg, "SELECT 1", NULL, 0, NULL, 0, NULL, NULL, &changed, &err);
    CHECK(status.code == CX_E_IO);
    CHECK(cx_pg_queue(pg, "SELECT 1", NULL, 0, &err).code == CX_E_IO);
    CHECK(cx_pg_commit(pg, &err).code == CX_E_IO);
    CHECK(cx_pg_copy_begin(pg, "COPY n FROM STDIN (FORMAT binary)", &err).code == CX_E_IO);
    cx_pg_rollback(pg);
    CHECK_STATUS(cx_pg_reconnect(pg, &err), &err);
    CHECK_ASK("SELECT 'before'", NULL, 0, all_types, 1, "before\n");
    cx_buf_done(&out);
    cx_pg_close(pg);
}

static cx_status take_bytes(void *arg, const cx_pg_value *columns, cx_err *err)
{
    cx_buf *out = arg;
    cx_buf_clear(out);
    cx_buf_add_str(out, columns[0].text);
    return cx_buf_check(out, err);
}

CX_TEST(bytes_come_back_as_they_went)
{
    static const cx_pg_type types[] = {CX_PG_BYTES};
    CONNECT(pg);
    cx_err err = {0};
    cx_buf out;
    cx_str blobs[] = {{"a\0b", 3}, {"", 0}, {"\xff", 1}};
    int64_t numbers[] = {INT64_MIN, 0, 7};
    const cx_pg_value bytes = {.type = CX_PG_BYTES, .text = {"\0\xff\n", 3}};
    const cx_pg_value list = {.type = CX_PG_BLOBS, .items = blobs, .count = 3};
    const cx_pg_value ints = {.type = CX_PG_INTS, .times = numbers, .count = 3};
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_pg_query(pg, "SELECT $1", &bytes, 1, types, 1, take_bytes, &out, NULL, &err),
                 &err);
    CHECK(out.size == 3 && memcmp(out.data, "\0\xff\n", 3) == 0);
    CHECK_ASK("SELECT pg_typeof($1)::text", &bytes, 1, all_types, 1, "bytea\n");
    CHECK_ASK("SELECT encode(b, 'hex') FROM unnest($1) b", &list, 1, all_types, 1,
              "610062\n\nff\n");
    CHECK_ASK("SELECT n FROM unnest($1) n", &ints, 1, all_types + 1, 1,
              "-9223372036854775808\n0\n7\n");
    cx_buf_done(&out);
    cx_pg_close(pg);
}

CX_TEST(the_state_of_a_failure_is_told)
{
    CONNECT(pg);
    cx_err err = {0};
    CHECK(cx_failed(cx_pg_run(pg, "SELECT 1 / 0", &err)));
    CHECK_STR(cx_str_z(cx_pg_state(pg)), "22012");
    CHECK(cx_failed(
        cx_pg_query(pg, "SELECT * FROM pg_none", NULL, 0, NULL, 0, NULL, NULL, NULL, &err)));
    CHECK_STR(cx_str_z(cx_pg_state(pg)), "42P01");
    CHECK_STATUS(cx_pg_run(pg, "SELECT 1", &err), &err);
    CHECK_STR(cx_str_z(cx_pg_state(pg)), "");
    cx_pg_close(pg);
}

CX_TEST(warnings_are_counted_where_they_are_wanted)
{
    static const char warns[] = "DO $$ BEGIN RAISE WARNING 'so'; RAISE NOTICE 'not'; END $$";
    const char *url = server();
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    cx_pg *pg = NULL;
    cx_err err = {0};
    if (url == NULL)
        return;
    for (unsigned wanted = 0; wanted < 2; wanted++) {
        options.warnings = wanted != 0;
        CHECK_STATUS(cx_pg_open(url, &options, &pg, &err), &err);
        CHECK_STATUS(cx_pg_run(pg, warns, &err), &err);
        CHECK(cx_pg_warnings(pg) == wanted);
        CHECK_STATUS(cx_pg_run(pg, "SELECT 1", &err), &err);
        CHECK(cx_pg_warnings(pg) == 0);
        cx_pg_close(pg);
    }
}

/* A server that takes longer than is waited for: no state, since nothing is known. */
CX_TEST(a_silent_server_is_given_up)
{
    const char *url = server();
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    cx_pg *pg = NULL;
    cx_err err = {0};
    if (url == NULL)
        return;
    options.answer_timeout_ms = 300;
    CHECK_STATUS(cx_pg_open(url, &options, &pg, &err), &err);
    cx_status status =
        cx_pg_query(pg, "SELECT pg_sleep(30)", NULL, 0, NULL, 0, NULL, NULL, NULL, &err);
    CHECK(status.code == CX_E_IO && cx_pg_is_away(pg));
    CHECK(strstr(err.message, "no answer in time") != NULL);
    CHECK_STR(cx_str_z(cx_pg_state(pg)), "");
    CHECK(cx_failed(cx_pg_run(pg, "SELECT 1", &err)));
    CHECK_STATUS(cx_pg_reconnect(pg, &err), &err);
    CHECK_STATUS(cx_pg_run(pg, "SELECT 1", &err), &err);
    cx_pg_close(pg);
}

#else

CX_TEST(a_program_built_without_postgresql_says_so)
{
    cx_err err = {0};
    cx_pg *pg;
    cx_pg_options options = CX_PG_OPTIONS_INIT;
    CHECK(cx_pg_open("postgresql://127.0.0.1/x", &options, &pg, &err).code == CX_E_UNSUPPORTED);
    CHECK(strstr(err.message, "libpq-dev") != NULL);
}

#endif

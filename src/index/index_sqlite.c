/*
 * index_sqlite.c - the index in a SQLite file, attached as schema `cirislens`.
 *
 * The connection's own database is a private, empty one, so that the qualified names of spec 1.0's
 * SQL work here and the file's tables have plain names for other programs.  Statements are prepared
 * once and cached by their text.
 */
#include "db/api.h"
#include "base/api.h"
#include "index/index_internal.h"

/* Queries differ by their filters; when the cache is full it is emptied. */
#define STATEMENTS_MAX 256

typedef struct prepared {
    cx_db_statement *statement;
} prepared;

typedef struct sqlite_index {
    cx_db *db;
    cx_arena texts; /* of the statements below */
    cx_map by_text;
    CX_VEC(prepared) statements;
} sqlite_index;

static sqlite_index *sqlite_index_of(const cx_index *index)
{
    return index->connection;
}

static const char *engine_name(const cx_index *index)
{
    (void)index;
    return "sqlite";
}

/* --- statements ------------------------------------------------------------------------------- */

static void forget_statements(sqlite_index *own_index)
{
    for (size_t i = 0; i < own_index->statements.count; i++)
        cx_db_finish(own_index->statements.items[i].statement);
    own_index->statements.count = 0;
    cx_map_done(&own_index->by_text);
    cx_map_init(&own_index->by_text, cx_alloc_default(), 0);
    cx_arena_done(&own_index->texts);
    cx_arena_init(&own_index->texts, cx_alloc_default(), 0);
}

/* SQLite treats `$1` as a name and numbers it by occurrence; `?1` is a number. */
static cx_status prepare_statement(sqlite_index *own_index, cx_str text, cx_db_statement **out,
                                   cx_err *err)
{
    char *sql = CX_ARENA_ARRAY(&own_index->texts, char, text.size + 1);
    if (sql == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < text.size; i++)
        sql[i] = text.data[i] == '$' ? '?' : text.data[i];
    sql[text.size] = 0;
    return cx_db_prepare(own_index->db, sql, out, err);
}

static cx_status find_statement(sqlite_index *own_index, const char *sql, cx_db_statement **out,
                                cx_err *err)
{
    const uint64_t *known = cx_map_find(&own_index->by_text, cx_str_z(sql));
    if (known != NULL) {
        *out = own_index->statements.items[*known].statement;
        return CX_SUCCESS;
    }
    if (own_index->statements.count == STATEMENTS_MAX)
        forget_statements(own_index);
    cx_str text = cx_arena_copy_str(&own_index->texts, cx_str_z(sql));
    prepared *slot;
    if (text.data == NULL || !cx_vec_reserve(&own_index->statements,
                                             own_index->statements.count + 1, cx_alloc_default()))
        return cx_fail_nomem(err);
    CX_TRY(cx_map_reserve(&own_index->by_text, own_index->statements.count + 1, err));
    CX_TRY(prepare_statement(own_index, text, out, err));
    uint64_t *number;
    bool is_new;
    cx_status status = cx_map_put(&own_index->by_text, text, &number, &is_new, err);
    if (cx_failed(status)) {
        cx_db_finish(*out);
        return status;
    }
    *number = own_index->statements.count;
    slot = &own_index->statements.items[own_index->statements.count++];
    slot->statement = *out;
    return CX_SUCCESS;
}

/* --- values ----------------------------------------------------------------------------------- */

/* `times` has space for the text of every value that is a time. */
static void bind_value(cx_db_statement *statement, int at, const cx_sql_value *value,
                       char times[CX_TRACE_TIME_SIZE])
{
    if (value->cell.null) {
        cx_db_bind_null(statement, at);
        return;
    }
    switch (value->type) {
    case CX_CELL_INT: cx_db_bind_int(statement, at, value->cell.i); break;
    case CX_CELL_FLOAT: cx_db_bind_double(statement, at, value->cell.f); break;
    case CX_CELL_BOOL: cx_db_bind_int(statement, at, value->cell.b); break;
    case CX_CELL_TIME:
        cx_trace_time_write(value->cell.i, times);
        cx_db_bind_text(statement, at, cx_str_z(times));
        break;
    default: cx_db_bind_text(statement, at, value->cell.text); break;
    }
}

static cx_status read_cell(const cx_db_statement *statement, int column, cx_cell_type type,
                           cx_cell *out, cx_err *err)
{
    bool naive;
    *out = (cx_cell){.null = cx_db_is_null(statement, column)};
    if (out->null)
        return CX_SUCCESS;
    switch (type) {
    case CX_CELL_INT: out->i = cx_db_int(statement, column); break;
    case CX_CELL_FLOAT: out->f = cx_db_double(statement, column); break;
    case CX_CELL_BOOL: out->b = cx_db_int(statement, column) != 0; break;
    case CX_CELL_TIME:
        if (!cx_trace_time_parse(cx_db_text(statement, column), &out->i, &naive))
            return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                              "the index has an invalid time; run 'cortex tables rebuild'");
        break;
    default: out->text = cx_db_text(statement, column); break;
    }
    return CX_SUCCESS;
}

static cx_status read_rows(cx_db_statement *statement, const cx_question *question, cx_err *err)
{
    cx_cell cells[CX_SQL_COLUMNS_MAX];
    for (;;) {
        bool row;
        CX_TRY(cx_db_step(statement, &row, err));
        if (!row)
            return CX_SUCCESS;
        for (size_t i = 0; i < question->column_count; i++)
            CX_TRY(read_cell(statement, (int)i, question->types[i], &cells[i], err));
        CX_TRY(question->row(question->arg, cells, err));
    }
}

static cx_status ask_engine(cx_index *index, const cx_question *question, cx_err *err)
{
    char times[CX_SQL_COLUMNS_MAX][CX_TRACE_TIME_SIZE];
    CX_ASSERT(question->value_count <= CX_SQL_COLUMNS_MAX &&
              question->column_count <= CX_SQL_COLUMNS_MAX);
    cx_db_statement *statement;
    CX_TRY(find_statement(sqlite_index_of(index), question->sql, &statement, err));
    for (size_t i = 0; i < question->value_count; i++)
        bind_value(statement, (int)i + 1, &question->values[i], times[i]);
    cx_status status =
        question->row != NULL ? read_rows(statement, question, err) : cx_db_execute(statement, err);
    cx_db_reset(statement);
    /* Bound values belong to the caller and may be freed before the statement is used again. */
    for (size_t i = 0; i < question->value_count; i++)
        cx_db_bind_null(statement, (int)i + 1);
    return status;
}

static cx_status run_sql(cx_index *index, const char *sql, cx_err *err)
{
    return cx_db_run(sqlite_index_of(index)->db, sql, err);
}

/* --- transactions and age --------------------------------------------------------------------- */

static cx_status begin_txn(cx_index *index, cx_err *err)
{
    return cx_db_begin_write(sqlite_index_of(index)->db, err);
}

static cx_status commit_txn(cx_index *index, cx_err *err)
{
    return cx_db_commit(sqlite_index_of(index)->db, err);
}

static void rollback_txn(cx_index *index)
{
    cx_db_rollback(sqlite_index_of(index)->db);
}

static cx_status flush_rows(cx_index *index, cx_err *err)
{
    (void)index;
    (void)err;
    return CX_SUCCESS;
}

/* Summaries are a view, so they are always up to date. */
static cx_status touch_hour(cx_index *index, int64_t ns, cx_err *err)
{
    (void)index;
    (void)ns;
    (void)err;
    return CX_SUCCESS;
}

/* Deleted words remain in older segments until these are merged. */
static cx_status scrub_deleted(cx_index *index, cx_err *err)
{
    CX_TRY(cx_index_do(index,
                       "INSERT INTO cirislens.covenant_traces_text (covenant_traces_text)"
                       " VALUES ('optimize')",
                       NULL, 0, err));
    return cx_index_do(index,
                       "INSERT INTO cirislens.cortex_steps_text (cortex_steps_text)"
                       " VALUES ('optimize')",
                       NULL, 0, err);
}

static bool empty_log(cx_index *index)
{
    return cx_db_empty_attached_log(sqlite_index_of(index)->db, "cirislens");
}

static cx_status refresh_summaries(cx_index *index, uint64_t *out, cx_err *err)
{
    (void)index;
    (void)err;
    *out = 0;
    return CX_SUCCESS;
}

static cx_status retain_rows(cx_index *index, int64_t *before_ns, uint64_t *out, cx_err *err)
{
    cx_sql_value before = cx_sql_time(*before_ns);
    CX_TRY(cx_index_do(index, "DELETE FROM cirislens.covenant_traces WHERE timestamp < $1", &before,
                       1, err));
    *out = (uint64_t)cx_db_changes(sqlite_index_of(index)->db);
    return CX_SUCCESS;
}

static cx_status has_tables(cx_index *index, bool *out, cx_err *err)
{
    int64_t count;
    CX_TRY(cx_index_number(index,
                           "SELECT count(*) FROM cirislens.sqlite_master"
                           " WHERE type = 'table' AND name = 'cortex_index_versions'",
                           NULL, 0, 0, &count, err));
    *out = count != 0;
    return CX_SUCCESS;
}

static cx_status drop_tables(cx_index *index, cx_err *err)
{
    forget_statements(sqlite_index_of(index));
    return cx_index_sqlite_drop(index, err);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void close_index(cx_index *index)
{
    sqlite_index *own_index = sqlite_index_of(index);
    if (own_index == NULL)
        return;
    forget_statements(own_index);
    cx_vec_done(&own_index->statements, cx_alloc_default());
    cx_map_done(&own_index->by_text);
    cx_arena_done(&own_index->texts);
    cx_db_close(own_index->db);
    cx_alloc_free(cx_alloc_default(), own_index, sizeof *own_index);
    index->connection = NULL;
}

const cx_index_driver cx_index_sqlite_driver = {
    .name = engine_name,
    .close = close_index,
    .has_tables = has_tables,
    .drop_tables = drop_tables,
    .begin = begin_txn,
    .commit = commit_txn,
    .rollback = rollback_txn,
    .ask = ask_engine,
    .run = run_sql,
    .put = cx_index_put_one,
    .flush = flush_rows,
    .touch = touch_hour,
    .scrub = scrub_deleted,
    .empty_log = empty_log,
    .refresh = refresh_summaries,
    .retain = retain_rows,
    .migrations = cx_index_sqlite_migrations,
    .words_condition = "t.id IN (SELECT rowid FROM cirislens.covenant_traces_text"
                       " WHERE covenant_traces_text MATCH $%u)",
    .quotes_words = true,
    .phrase_condition = "EXISTS (SELECT 1 FROM cirislens.covenant_traces_text"
                        " WHERE covenant_traces_text MATCH $%u AND rowid = t.id)",
    .phrase_parts = {"\"", " ", "\""},
    .facets_sql = "SELECT agent_id_hash, trace_level, verified, k_eff, gate, hour, traces"
                  " FROM cirislens.covenant_traces_facets",
    .has_sets = true,
};

cx_status cx_index_sqlite_open(cx_index *index, const char *path, cx_err *err)
{
    sqlite_index *own_index = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *own_index);
    if (own_index == NULL)
        return cx_fail_nomem(err);
    cx_arena_init(&own_index->texts, cx_alloc_default(), 0);
    cx_map_init(&own_index->by_text, cx_alloc_default(), 0);
    index->connection = own_index;
    if (index->mode == CX_INDEX_WRITE && !cx_db_in_files(path))
        cx_db_make_private(path);
    CX_TRY(cx_db_open(NULL, CX_DB_SCRATCH, &own_index->db, err));
    return cx_db_attach(own_index->db, path,
                        index->mode == CX_INDEX_WRITE ? CX_DB_WRITE : CX_DB_READ, "cirislens", err);
}

/*
 * index.c - the searchable index: opening, queries, transactions (trace.md §9, §10).  index_rows.c
 * writes rows, index_side.c writes the side tables, and index_age.c drops old rows.
 *
 * The SQL here means the same on both engines.  Ids are assigned in the order in which rows are
 * put, and the next one is stored in the feed's row, so that they follow the log and a rebuild
 * gives the same ones.
 */
#include "base/api.h"
#include "crypto/api.h"
#include "index/index_internal.h"

/* The number of agents whose history is cached. */
#define AGENT_STATES_MAX 20000

/* --- asking ----------------------------------------------------------------------------------- */

/* Cleans external texts as the rows do: a name that was stored in its cleaned form is found, and
 * never causes an error of the server. */
static cx_status clean_values(const cx_question *question, cx_arena *arena,
                              const cx_sql_value **out, cx_err *err)
{
    size_t count = question->value_count;
    cx_sql_value *values = CX_ARENA_ARRAY(arena, cx_sql_value, count);
    if (values == NULL)
        return cx_fail_nomem(err);
    memcpy(values, question->values, count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        if (values[i].type != CX_CELL_TEXT || values[i].cell.null)
            continue;
        cx_str cleaned = cx_index_clean(values[i].cell.text, arena);
        if (cleaned.data == NULL)
            return cx_fail_nomem(err);
        values[i].cell.text = cleaned;
    }
    *out = values;
    return CX_SUCCESS;
}

static bool has_unclean(const cx_question *question)
{
    for (size_t i = 0; i < question->value_count; i++)
        if (question->values[i].type == CX_CELL_TEXT && !question->values[i].cell.null &&
            !cx_index_is_clean(question->values[i].cell.text))
            return true;
    return false;
}

cx_status cx_index_ask_as_is(cx_index *index, const cx_question *question, cx_err *err)
{
    if (!has_unclean(question))
        return index->engine->ask(index, question, err);
    cx_arena arena;
    cx_question cleaned = *question;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = clean_values(question, &arena, &cleaned.values, err);
    if (!cx_failed(status))
        status = index->engine->ask(index, &cleaned, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_index_ask(cx_index *index, const cx_question *question, cx_err *err)
{
    if (index->in_transaction)
        CX_TRY(index->engine->flush(index, err));
    return cx_index_ask_as_is(index, question, err);
}

cx_status cx_index_do(cx_index *index, const char *sql, const cx_sql_value *values, size_t count,
                      cx_err *err)
{
    cx_question question = {.sql = sql, .values = values, .value_count = count};
    return cx_index_ask_as_is(index, &question, err);
}

static cx_status read_number(void *arg, const cx_cell *cells, cx_err *err)
{
    (void)err;
    if (!cells[0].null)
        *(int64_t *)arg = cells[0].i;
    return CX_SUCCESS;
}

cx_status cx_index_number(cx_index *index, const char *sql, const cx_sql_value *values,
                          size_t count, int64_t otherwise, int64_t *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_INT};
    int64_t number = otherwise;
    cx_question question = {sql, values, count, types, 1, read_number, &number};
    CX_TRY(cx_index_ask(index, &question, err));
    *out = number;
    return CX_SUCCESS;
}

/* --- the feed's line -------------------------------------------------------------------------- */

static cx_status read_feed_line(void *arg, const cx_cell *cells, cx_err *err)
{
    (void)err;
    cx_feed_line *line = arg;
    *line = (cx_feed_line){
        .there = true,
        .position = {(uint64_t)cells[1].i, (uint64_t)cells[2].i},
        .last_id = cells[3].i,
        .commits = cells[4].i,
        .retained_ns = cells[5].null ? CX_TIME_NONE : cells[5].i,
    };
    size_t size = cells[0].text.size < 32 ? cells[0].text.size : 32;
    memcpy(line->home_id, cells[0].text.data, size);
    return CX_SUCCESS;
}

cx_status cx_index_read_feed(cx_index *index, cx_feed_line *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_INT, CX_CELL_INT,
                                         CX_CELL_INT,  CX_CELL_INT, CX_CELL_TIME};
    *out = (cx_feed_line){.retained_ns = CX_TIME_NONE};
    cx_question question = {
        "SELECT home_id, log_commit, log_frames, last_id, commits, retained_until"
        " FROM cirislens.cortex_index_feed",
        NULL,
        0,
        types,
        CX_COUNT_OF(types),
        read_feed_line,
        out};
    return index->engine->ask(index, &question, err);
}

cx_status cx_index_write_feed(cx_index *index, const char *home_id, cx_feed_position position,
                              cx_err *err)
{
    cx_sql_value values[] = {
        cx_sql_text(cx_str_z(home_id)),       cx_sql_int((int64_t)position.commit),
        cx_sql_int((int64_t)position.frames), cx_sql_int(index->last_id),
        cx_sql_int(index->commits),           cx_sql_time(index->retained_ns),
    };
    return cx_index_do(index,
                       "INSERT INTO cirislens.cortex_index_feed (one, home_id, log_commit,"
                       " log_frames, last_id, commits, retained_until)"
                       " VALUES (1, $1, $2, $3, $4, $5, $6) ON CONFLICT (one) DO UPDATE SET"
                       " home_id = excluded.home_id, log_commit = excluded.log_commit,"
                       " log_frames = excluded.log_frames, last_id = excluded.last_id,"
                       " commits = excluded.commits, retained_until = excluded.retained_until",
                       values, CX_COUNT_OF(values), err);
}

static void home_text(const uint8_t home_id[16], char out[33])
{
    cx_hex_encode(cx_bytes_from(home_id, 16), out);
    out[32] = 0;
}

/* --- tables and their versions ---------------------------------------------------------------- */

static cx_status read_version(cx_index *index, unsigned *out, cx_err *err)
{
    bool there;
    int64_t version = 0;
    CX_TRY(index->engine->has_tables(index, &there, err));
    if (there)
        CX_TRY(cx_index_number(index,
                               "SELECT CAST(max(version) AS bigint)"
                               " FROM cirislens.cortex_index_versions",
                               NULL, 0, 0, &version, err));
    *out = version > 0 ? (unsigned)version : 0;
    return CX_SUCCESS;
}

static cx_status reject_version(unsigned version, cx_err *err)
{
    if (version > CX_INDEX_VERSION)
        return cx_fail_at(err, CX_E_FORMAT, "IndexVersion", CX_NO_OFFSET,
                          "the trace index has version %u of its tables, this program knows %u: use"
                          " a newer program, or drop the index and run 'cortex tables rebuild'",
                          version, CX_INDEX_VERSION);
    return CX_SUCCESS;
}

static cx_status make_version(cx_index *index, unsigned version, cx_err *err)
{
    const cx_index_migration *migration = &index->engine->migrations[version - 1];
    CX_TRY(migration->make(index, err));
    cx_sql_value values[] = {cx_sql_int(version), cx_sql_text(cx_str_z(migration->name))};
    return cx_index_do(index,
                       "INSERT INTO cirislens.cortex_index_versions (version, name)"
                       " VALUES ($1, $2)",
                       values, CX_COUNT_OF(values), err);
}

/* Migrates the tables from their version to this program's; inside a transaction. */
static cx_status make_tables(cx_index *index, cx_err *err)
{
    unsigned version;
    CX_TRY(read_version(index, &version, err));
    CX_TRY(reject_version(version, err));
    if (version == 0)
        CX_TRY(index->engine->run(index,
                                  "CREATE TABLE cirislens.cortex_index_versions"
                                  " (version bigint NOT NULL PRIMARY KEY, name text NOT NULL)",
                                  err));
    for (; version < CX_INDEX_VERSION; version++)
        CX_TRY(make_version(index, version + 1, err));
    return CX_SUCCESS;
}

static cx_status migrate(cx_index *index, cx_err *err)
{
    CX_TRY(index->engine->begin(index, err));
    cx_status status = make_tables(index, err);
    if (!cx_failed(status))
        status = index->engine->commit(index, err);
    if (cx_failed(status))
        index->engine->rollback(index);
    return status;
}

static cx_status prepare_tables(cx_index *index, cx_err *err)
{
    unsigned version;
    CX_TRY(read_version(index, &version, err));
    CX_TRY(reject_version(version, err));
    if (version < CX_INDEX_VERSION) {
        if (index->mode == CX_INDEX_READ)
            return cx_fail_at(err, version == 0 ? CX_E_NOT_FOUND : CX_E_FORMAT, "IndexVersion",
                              CX_NO_OFFSET,
                              "no trace index of this version exists yet: record a trace or run"
                              " 'cortex tables rebuild'");
        CX_TRY(migrate(index, err));
    }
    index->version = CX_INDEX_VERSION;
    return CX_SUCCESS;
}

/* --- opening ---------------------------------------------------------------------------------- */

static cx_status read_state(cx_index *index, cx_err *err)
{
    cx_feed_line line;
    CX_TRY(cx_index_read_feed(index, &line, err));
    if (line.commits != index->commits)
        cx_index_forget_agents(index);
    index->commits = line.commits;
    index->last_id = line.last_id;
    index->retained_ns = line.retained_ns;
    return CX_SUCCESS;
}

static bool is_pg(const char *where)
{
    cx_str text = cx_str_z(where);
    return cx_str_starts(text, CX_STR("postgresql://")) ||
           cx_str_starts(text, CX_STR("postgres://"));
}

const char *cx_index_advice(const char *where, const cx_err *failure)
{
    if (!is_pg(where))
        return "check the file's folder, rights and free space; 'cortex tables rebuild' makes the "
               "index again";
    switch (failure->code) {
    case CX_E_UNSUPPORTED: return "install libpq5, or leave out --db to use SQLite";
    case CX_E_USAGE: return "give --db as postgresql://USER@HOST:PORT/DATABASE";
    case CX_E_DENIED:
        return "check that the user and the database of --db exist, its password, and what the "
               "server allows (pg_hba.conf)";
    case CX_E_FORMAT:
    case CX_E_CONFLICT: return "name another database with --db, or use the Cortex that made it";
    default: return "start PostgreSQL, or correct the address in --db";
    }
}

static cx_status open_engine(cx_index *index, const char *where, cx_err *err)
{
    bool pg = is_pg(where);
    index->engine = pg ? &cx_index_pg_driver : &cx_index_sqlite_driver;
    return pg ? cx_index_pg_open(index, where, err) : cx_index_sqlite_open(index, where, err);
}

cx_status cx_index_open(const char *where, cx_index_mode mode, cx_index **out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    cx_index *index = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *index);
    if (index == NULL)
        return cx_fail_nomem(err);
    index->mode = mode;
    index->retained_ns = CX_TIME_NONE;
    index->few_ids = CX_INDEX_FEW_IDS;
    index->some_ids = CX_INDEX_SOME_IDS;
    cx_map_init(&index->agents, cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_arena_init(&index->agents_memory, cx_alloc_default(), 0);
    cx_buf_init(&index->insert_sql, cx_alloc_default());
    cx_status status = open_engine(index, where, err);
    if (!cx_failed(status))
        status = prepare_tables(index, err);
    if (!cx_failed(status))
        status = read_state(index, err);
    if (cx_failed(status)) {
        cx_index_close(index);
        return status;
    }
    *out = index;
    return CX_SUCCESS;
}

void cx_index_close(cx_index *index)
{
    if (index == NULL)
        return;
    cx_index_rollback(index);
    index->engine->close(index);
    cx_map_done(&index->agents);
    cx_arena_done(&index->agents_memory);
    cx_vec_done(&index->agent_states, cx_alloc_default());
    cx_buf_done(&index->insert_sql);
    cx_alloc_free(cx_alloc_default(), index, sizeof *index);
}

const char *cx_index_engine(const cx_index *index)
{
    return index->engine->name(index);
}

/* --- transactions ----------------------------------------------------------------------------- */

cx_status cx_index_position(cx_index *index, const uint8_t home_id[16], cx_feed_position *out,
                            cx_err *err)
{
    char home[33];
    cx_feed_line line;
    home_text(home_id, home);
    CX_TRY(cx_index_read_feed(index, &line, err));
    bool ours = line.there && strcmp(line.home_id, home) == 0;
    /* An index of another data directory is not emptied without being asked to. */
    if (line.there && !ours && index->mode == CX_INDEX_WRITE)
        return cx_fail_at(
            err, CX_E_CONFLICT, "OtherHome", CX_NO_OFFSET,
            "the trace index belongs to another data directory; name another one, or take it"
            " over with 'cortex tables rebuild --db'");
    *out = ours ? line.position : (cx_feed_position){0, 0};
    return CX_SUCCESS;
}

cx_status cx_index_begin(cx_index *index, cx_err *err)
{
    if (index->mode != CX_INDEX_WRITE || index->in_transaction)
        return cx_fail(err, CX_E_USAGE,
                       "the trace index is not open for writing, or has an open transaction");
    CX_TRY(index->engine->begin(index, err));
    cx_status status = read_state(index, err);
    if (cx_failed(status)) {
        index->engine->rollback(index);
        return status;
    }
    if (index->agent_states.count > AGENT_STATES_MAX)
        cx_index_forget_agents(index);
    index->in_transaction = true;
    return CX_SUCCESS;
}

cx_status cx_index_commit(cx_index *index, const uint8_t home_id[16], cx_feed_position position,
                          cx_err *err)
{
    char home[33];
    CX_ASSERT(index->in_transaction);
    home_text(home_id, home);
    index->commits++;
    cx_status status = index->engine->flush(index, err);
    if (!cx_failed(status) && index->must_scrub)
        status = index->engine->scrub(index, err);
    index->must_empty |= index->must_scrub;
    index->must_scrub = false;
    if (!cx_failed(status))
        status = cx_index_write_feed(index, home, position, err);
    if (!cx_failed(status))
        status = index->engine->commit(index, err);
    if (cx_failed(status)) {
        cx_index_rollback(index);
        return status;
    }
    index->in_transaction = false;
    if (index->must_empty && index->engine->empty_log != NULL)
        index->must_empty = !index->engine->empty_log(index);
    return CX_SUCCESS;
}

void cx_index_rollback(cx_index *index)
{
    if (index == NULL || !index->in_transaction)
        return;
    index->engine->rollback(index);
    index->in_transaction = false;
    /* State cached inside the transaction is invalid; the feed's row is read at the next begin. */
    cx_index_forget_agents(index);
}

static cx_status clear_inside(cx_index *index, cx_err *err)
{
    CX_TRY(index->engine->drop_tables(index, err));
    return make_tables(index, err);
}

cx_status cx_index_clear(cx_index *index, cx_err *err)
{
    if (index->mode != CX_INDEX_WRITE || index->in_transaction)
        return cx_fail(err, CX_E_USAGE, "the trace index cannot be cleared here");
    CX_TRY(index->engine->begin(index, err));
    cx_status status = clear_inside(index, err);
    if (!cx_failed(status))
        status = index->engine->commit(index, err);
    if (cx_failed(status))
        index->engine->rollback(index);
    cx_index_forget_agents(index);
    index->last_id = 0;
    index->commits = 0;
    index->retained_ns = CX_TIME_NONE;
    return status;
}

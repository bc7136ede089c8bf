/*
 * index.c - the searchable index: opening, feeding, age (trace.md §9, §10).
 *
 * What is said here in SQL means the same to both engines.  Ids are handed out in the order in
 * which rows are put and kept in the feed's own line, so that they follow the log and a rebuild
 * gives the same ones.
 */
#include "base/alloc.h"
#include "base/io.h"
#include "trace/index_internal.h"

/* Agents whose history is remembered at a time. */
#define AGENT_STATES_MAX 20000
#define DAY_NS (INT64_C(86400) * 1000000000)

/* --- asking ----------------------------------------------------------------------------------- */

/* Texts that come from outside are made such as the rows have them: a name that cannot be stored is
 * found again as it was stored, and is never the server's error. */
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

static cx_status ask_clean(cx_index *index, const cx_question *question, cx_err *err)
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
    return ask_clean(index, question, err);
}

cx_status cx_index_do(cx_index *index, const char *sql, const cx_sql_value *values, size_t count,
                      cx_err *err)
{
    cx_question question = {.sql = sql, .values = values, .value_count = count};
    return ask_clean(index, &question, err);
}

static cx_status take_number(void *arg, const cx_cell *cells, cx_err *err)
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
    cx_question question = {sql, values, count, types, 1, take_number, &number};
    CX_TRY(cx_index_ask(index, &question, err));
    *out = number;
    return CX_SUCCESS;
}

/* --- the feed's line -------------------------------------------------------------------------- */

typedef struct feed_line {
    bool there;
    char home_id[33];
    cx_feed_position position;
    int64_t last_id, commits, retained_ns;
} feed_line;

static cx_status take_feed(void *arg, const cx_cell *cells, cx_err *err)
{
    (void)err;
    feed_line *line = arg;
    *line = (feed_line){
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

static cx_status read_feed(cx_index *index, feed_line *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_INT, CX_CELL_INT,
                                         CX_CELL_INT,  CX_CELL_INT, CX_CELL_TIME};
    *out = (feed_line){.retained_ns = CX_TIME_NONE};
    cx_question question = {
        "SELECT home_id, log_commit, log_frames, last_id, commits, retained_until"
        " FROM cirislens.cortex_index_feed",
        NULL,
        0,
        types,
        CX_COUNT_OF(types),
        take_feed,
        out};
    return index->engine->ask(index, &question, err);
}

static cx_status write_feed(cx_index *index, const char *home_id, cx_feed_position position,
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
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 16; i++) {
        out[2 * i] = digits[home_id[i] >> 4];
        out[2 * i + 1] = digits[home_id[i] & 15];
    }
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

static cx_status refuse_version(unsigned version, cx_err *err)
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

/* From whatever version the tables have to this program's; inside a transaction. */
static cx_status make_tables(cx_index *index, cx_err *err)
{
    unsigned version;
    CX_TRY(read_version(index, &version, err));
    CX_TRY(refuse_version(version, err));
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
    CX_TRY(refuse_version(version, err));
    if (version < CX_INDEX_VERSION) {
        if (index->mode == CX_INDEX_READ)
            return cx_fail_at(err, version == 0 ? CX_E_NOT_FOUND : CX_E_FORMAT, "IndexVersion",
                              CX_NO_OFFSET,
                              "there is no trace index of this version yet: record a trace or run"
                              " 'cortex tables rebuild'");
        CX_TRY(migrate(index, err));
    }
    index->version = CX_INDEX_VERSION;
    return CX_SUCCESS;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void forget_agents(cx_index *index)
{
    cx_map_done(&index->agents);
    cx_arena_done(&index->agents_memory);
    index->agent_states.count = 0;
    cx_map_init(&index->agents, cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_arena_init(&index->agents_memory, cx_alloc_default(), 0);
}

static cx_status read_state(cx_index *index, cx_err *err)
{
    feed_line line;
    CX_TRY(read_feed(index, &line, err));
    if (line.commits != index->commits)
        forget_agents(index);
    index->commits = line.commits;
    index->last_id = line.last_id;
    index->retained_ns = line.retained_ns;
    return CX_SUCCESS;
}

static cx_status open_engine(cx_index *index, const char *where, cx_err *err)
{
    cx_str text = cx_str_z(where);
    bool pg =
        cx_str_starts(text, CX_STR("postgresql://")) || cx_str_starts(text, CX_STR("postgres://"));
    index->engine = pg ? &cx_index_pg_driver : &cx_index_sqlite_driver;
    return pg ? cx_index_pg_open(index, where, err) : cx_index_sqlite_open(index, where, err);
}

cx_status cx_index_open(const char *where, cx_index_mode mode, cx_index **out, cx_err *err)
{
    cx_index *index = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *index);
    if (index == NULL)
        return cx_fail_nomem(err);
    index->mode = mode;
    index->retained_ns = CX_TIME_NONE;
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
    feed_line line;
    home_text(home_id, home);
    CX_TRY(read_feed(index, &line, err));
    bool ours = line.there && strcmp(line.home_id, home) == 0;
    /* What another home has filled is not emptied unasked. */
    if (line.there && !ours && index->mode == CX_INDEX_WRITE)
        return cx_fail_at(err, CX_E_CONFLICT, "OtherHome", CX_NO_OFFSET,
                          "the trace index belongs to another home; name another one, or take it"
                          " over with 'cortex tables rebuild --db'");
    *out = ours ? line.position : (cx_feed_position){0, 0};
    return CX_SUCCESS;
}

cx_status cx_index_begin(cx_index *index, cx_err *err)
{
    if (index->mode != CX_INDEX_WRITE || index->in_transaction)
        return cx_fail(err, CX_E_USAGE, "the trace index cannot begin to write here");
    CX_TRY(index->engine->begin(index, err));
    cx_status status = read_state(index, err);
    if (cx_failed(status)) {
        index->engine->rollback(index);
        return status;
    }
    if (index->agent_states.count > AGENT_STATES_MAX)
        forget_agents(index);
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
    if (!cx_failed(status))
        status = write_feed(index, home, position, err);
    if (!cx_failed(status))
        status = index->engine->commit(index, err);
    if (cx_failed(status)) {
        cx_index_rollback(index);
        return status;
    }
    index->in_transaction = false;
    return CX_SUCCESS;
}

void cx_index_rollback(cx_index *index)
{
    if (index == NULL || !index->in_transaction)
        return;
    index->engine->rollback(index);
    index->in_transaction = false;
    /* What was learnt inside is not true any more; the feed's line is read at the next begin. */
    forget_agents(index);
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
    forget_agents(index);
    index->last_id = 0;
    index->commits = 0;
    index->retained_ns = CX_TIME_NONE;
    return status;
}

/* --- which row of a trace counts (§9) --------------------------------------------------------- */

typedef struct key_taker {
    cx_row_key *keys;
    size_t count;
} key_taker;

static cx_status take_key(void *arg, const cx_cell *cells, cx_err *err)
{
    key_taker *taker = arg;
    cx_row_key key = {CX_LEVEL_GENERIC, cells[1].i, cells[2].i, cells[3].b};
    if (taker->count == 3 || !cx_trace_level_parse(cells[0].text, &key.level))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the index holds an unknown level; run 'cortex tables rebuild'");
    taker->keys[taker->count++] = key;
    return CX_SUCCESS;
}

cx_status cx_index_row_keys(cx_index *index, cx_str agent, cx_str trace_id, cx_row_key out[3],
                            size_t *out_count, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TIME, CX_CELL_INT, CX_CELL_BOOL};
    cx_sql_value values[] = {cx_sql_text(agent), cx_sql_text(trace_id)};
    key_taker taker = {out, 0};
    cx_question question = {"SELECT trace_level, timestamp, id, verified"
                            " FROM cirislens.covenant_trace_keys"
                            " WHERE agent_id_hash = $1 AND trace_id = $2 ORDER BY id",
                            values,
                            CX_COUNT_OF(values),
                            types,
                            CX_COUNT_OF(types),
                            take_key,
                            &taker};
    CX_TRY(ask_clean(index, &question, err));
    *out_count = taker.count;
    return CX_SUCCESS;
}

size_t cx_index_primary_of(const cx_row_key *keys, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        int rank = (keys[i].verified ? 4 : 0) + (int)keys[i].level;
        int best_rank = (keys[best].verified ? 4 : 0) + (int)keys[best].level;
        if (rank > best_rank)
            best = i;
    }
    return best;
}

static cx_status set_primary(cx_index *index, cx_str agent, cx_str trace_id, const cx_row_key *keys,
                             size_t count, cx_err *err)
{
    size_t best = cx_index_primary_of(keys, count);
    for (size_t i = 0; i < count; i++) {
        cx_sql_value values[] = {
            cx_sql_text(agent),
            cx_sql_text(trace_id),
            cx_sql_text(cx_str_z(cx_trace_level_name(keys[i].level))),
            cx_sql_time(keys[i].timestamp_ns),
            cx_sql_bool(i == best),
        };
        CX_TRY(cx_index_do(index,
                           "UPDATE cirislens.covenant_traces SET primary_row = $5"
                           " WHERE agent_id_hash = $1 AND trace_id = $2 AND trace_level = $3"
                           " AND timestamp = $4 AND primary_row <> $5",
                           values, CX_COUNT_OF(values), err));
    }
    return CX_SUCCESS;
}

cx_status cx_index_set_primary(cx_index *index, cx_str agent, cx_str trace_id, cx_err *err)
{
    cx_row_key keys[3];
    size_t count;
    CX_TRY(cx_index_row_keys(index, agent, trace_id, keys, &count, err));
    return set_primary(index, agent, trace_id, keys, count, err);
}

/* --- putting rows ----------------------------------------------------------------------------- */

static cx_sql_value value_of(const cx_trace_row *row, unsigned column)
{
    return (cx_sql_value){cx_trace_columns[column].type, row->cells[column]};
}

/* INSERT INTO covenant_traces of all columns; made once for each thread's needs in `sql`. */
static const char *insert_sql(cx_buf *sql)
{
    cx_buf_add_z(sql, "INSERT INTO cirislens.covenant_traces (id");
    for (unsigned i = 0; i < CX_COL_COUNT; i++)
        cx_buf_printf(sql, ", %s", cx_trace_columns[i].name);
    cx_buf_add_z(sql, ") VALUES ($1");
    for (unsigned i = 0; i < CX_COL_COUNT; i++)
        cx_buf_printf(sql, ", $%u", i + 2);
    cx_buf_add_z(sql, ")");
    return cx_buf_z(sql);
}

static cx_status insert_row(cx_index *index, const cx_trace_row *row, int64_t id, bool primary,
                            cx_err *err)
{
    cx_sql_value values[CX_COL_COUNT + 1];
    values[0] = cx_sql_int(id);
    for (unsigned i = 0; i < CX_COL_COUNT; i++)
        values[i + 1] = value_of(row, i);
    values[CX_COL_primary_row + 1] = cx_sql_bool(primary);
    if (index->insert_sql.size == 0 && insert_sql(&index->insert_sql) == NULL) {
        cx_buf_clear(&index->insert_sql);
        return cx_fail_nomem(err);
    }
    return cx_index_do(index, (const char *)index->insert_sql.data, values, CX_COUNT_OF(values),
                       err);
}

/* A key id longer than any trust store takes is in no trust store, and would not fit an index. */
cx_sql_value cx_index_signer(const cx_trace_row *row)
{
    cx_str signer = row->cells[CX_COL_signer_key_id].text;
    return cx_sql_text(signer.size <= CX_TRUST_KEY_ID_BYTES_MAX ? signer : (cx_str){NULL, 0});
}

static cx_status insert_key(cx_index *index, const cx_trace_row *row, int64_t id, cx_err *err)
{
    cx_sql_value values[] = {
        value_of(row, CX_COL_agent_id_hash),
        value_of(row, CX_COL_trace_id),
        value_of(row, CX_COL_trace_level),
        value_of(row, CX_COL_timestamp),
        cx_sql_int(id),
        value_of(row, CX_COL_signature_verified),
        cx_index_signer(row),
        cx_sql_text(row->action_executed),
        cx_sql_text(row->action_timestamp),
    };
    return cx_index_do(index,
                       "INSERT INTO cirislens.covenant_trace_keys (agent_id_hash, trace_id,"
                       " trace_level, timestamp, id, verified, signer_key_id, action_executed,"
                       " action_timestamp) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                       values, CX_COUNT_OF(values), err);
}

static cx_status delete_row(cx_index *index, cx_str agent, cx_str trace_id, const cx_row_key *key,
                            cx_err *err)
{
    cx_sql_value values[] = {
        cx_sql_text(agent),
        cx_sql_text(trace_id),
        cx_sql_text(cx_str_z(cx_trace_level_name(key->level))),
        cx_sql_time(key->timestamp_ns),
    };
    CX_TRY(cx_index_do(index,
                       "DELETE FROM cirislens.covenant_traces WHERE agent_id_hash = $1"
                       " AND trace_id = $2 AND trace_level = $3 AND timestamp = $4",
                       values, 4, err));
    return cx_index_do(index,
                       "DELETE FROM cirislens.covenant_trace_keys WHERE agent_id_hash = $1"
                       " AND trace_id = $2 AND trace_level = $3",
                       values, 3, err);
}

cx_row_key cx_index_key_of(const cx_trace_row *row, int64_t id)
{
    cx_row_key key = {CX_LEVEL_GENERIC, row->cells[CX_COL_timestamp].i, id,
                      row->cells[CX_COL_signature_verified].b};
    bool known = cx_trace_level_parse(row->cells[CX_COL_trace_level].text, &key.level);
    CX_ASSERT(known);
    return key;
}

cx_status cx_index_put_one(cx_index *index, const cx_trace_row *row, cx_err *err)
{
    cx_str agent = row->cells[CX_COL_agent_id_hash].text;
    cx_str trace_id = row->cells[CX_COL_trace_id].text;
    cx_row_key keys[4];
    size_t count, at = 0;
    CX_TRY(cx_index_row_keys(index, agent, trace_id, keys, &count, err));
    cx_row_key mine = cx_index_key_of(row, index->last_id + 1);
    while (at < count && keys[at].level != mine.level)
        at++;
    if (at < count) {
        mine.id = keys[at].id;
        CX_TRY(delete_row(index, agent, trace_id, &keys[at], err));
    } else {
        count++;
        index->last_id++;
    }
    keys[at] = mine;
    CX_TRY(insert_row(index, row, mine.id, cx_index_primary_of(keys, count) == at, err));
    CX_TRY(insert_key(index, row, mine.id, err));
    return count == 1 ? CX_SUCCESS : set_primary(index, agent, trace_id, keys, count, err);
}

/* --- established agents (§6) ------------------------------------------------------------------ */

typedef struct state_taker {
    cx_index *index;
    cx_agent_state *state;
} state_taker;

static bool knows_trace(const cx_agent_state *state, cx_str trace_id)
{
    for (unsigned i = 0; i < state->count; i++)
        if (cx_str_eq(state->ids[i], trace_id))
            return true;
    return false;
}

/* One more verified trace of an agent. */
static cx_status learn_trace(cx_index *index, cx_agent_state *state, cx_str trace_id,
                             const cx_cell *k_eff, cx_err *err)
{
    if (!k_eff->null && k_eff->f >= 2.0)
        state->established = true;
    if (state->established || knows_trace(state, trace_id))
        return CX_SUCCESS;
    cx_str copy = cx_arena_copy_str(&index->agents_memory, trace_id);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    state->ids[state->count++] = copy;
    if (state->count == CX_IDMA_ESTABLISHED_AFTER)
        state->established = true;
    return CX_SUCCESS;
}

static cx_status take_trace(void *arg, const cx_cell *cells, cx_err *err)
{
    state_taker *taker = arg;
    return learn_trace(taker->index, taker->state, cells[0].text, &cells[1], err);
}

/* A trace has at most three rows, so this many are either all there are or thirty traces. */
static cx_status load_agent(cx_index *index, cx_str agent, cx_agent_state *state, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_FLOAT};
    cx_sql_value values[] = {cx_sql_text(agent), cx_sql_int(3 * CX_IDMA_ESTABLISHED_AFTER)};
    state_taker taker = {index, state};
    cx_question question = {"SELECT trace_id, idma_k_eff FROM cirislens.covenant_traces"
                            " WHERE agent_id_hash = $1 AND signature_verified = TRUE"
                            " ORDER BY timestamp DESC, id DESC LIMIT $2",
                            values,
                            CX_COUNT_OF(values),
                            types,
                            CX_COUNT_OF(types),
                            take_trace,
                            &taker};
    return cx_index_ask(index, &question, err);
}

static cx_status find_agent(cx_index *index, cx_str agent, cx_agent_state **out, cx_err *err)
{
    const uint64_t *known = cx_map_find(&index->agents, agent);
    if (known != NULL) {
        *out = index->agent_states.items[*known];
        return CX_SUCCESS;
    }
    cx_str copy = cx_arena_copy_str(&index->agents_memory, agent);
    cx_agent_state *state = CX_ARENA_NEW(&index->agents_memory, cx_agent_state);
    if (copy.data == NULL || state == NULL ||
        !cx_vec_reserve(&index->agent_states, index->agent_states.count + 1, cx_alloc_default()))
        return cx_fail_nomem(err);
    *state = (cx_agent_state){0};
    CX_TRY(load_agent(index, agent, state, err));
    uint64_t *number;
    bool is_new;
    CX_TRY(cx_map_put(&index->agents, copy, &number, &is_new, err));
    *number = index->agent_states.count;
    index->agent_states.items[index->agent_states.count++] = state;
    *out = state;
    return CX_SUCCESS;
}

cx_status cx_index_established(cx_index *index, cx_str agent, bool *out, cx_err *err)
{
    if (!index->in_transaction)
        forget_agents(index); /* somebody else may have written since */
    cx_agent_state *state = NULL;
    CX_TRY(find_agent(index, agent, &state, err));
    *out = state->established;
    return CX_SUCCESS;
}

/* --- writing ---------------------------------------------------------------------------------- */

cx_status cx_index_put_trace(cx_index *index, const cx_trace_row *row, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    const uint64_t *known;
    CX_TRY(index->engine->put(index, row, err));
    known = cx_map_find(&index->agents, row->cells[CX_COL_agent_id_hash].text);
    if (known == NULL || !row->cells[CX_COL_signature_verified].b)
        return CX_SUCCESS;
    return learn_trace(index, index->agent_states.items[*known], row->cells[CX_COL_trace_id].text,
                       &row->cells[CX_COL_idma_k_eff], err);
}

static cx_sql_value digest_value(bool there, const cx_digest *digest, char hex[65])
{
    static const char digits[] = "0123456789abcdef";
    if (!there)
        return cx_sql_text((cx_str){NULL, 0});
    for (size_t i = 0; i < 32; i++) {
        hex[2 * i] = digits[digest->bytes[i] >> 4];
        hex[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    hex[64] = 0;
    return cx_sql_text(cx_str_from(hex, 64));
}

static cx_sql_value name_value(const char *name)
{
    return cx_sql_text(name[0] == 0 ? (cx_str){NULL, 0} : cx_str_z(name));
}

static cx_status rejudge_row(cx_index *index, const cx_rejudged *change, const cx_row_key *key,
                             cx_err *err)
{
    char hex[65];
    cx_trace_form form = change->verified ? change->form : CX_FORM_NONE;
    cx_trace_reason reason = change->verified ? CX_REASON_NONE : change->reason;
    cx_sql_value values[] = {
        cx_sql_text(change->agent),
        cx_sql_text(change->trace_id),
        cx_sql_text(cx_str_z(cx_trace_level_name(change->level))),
        cx_sql_bool(change->verified),
        cx_sql_time(key->timestamp_ns),
        name_value(cx_trace_reason_name(reason)),
        name_value(cx_trace_form_name(form)),
        digest_value(change->has_canonical, &change->canonical, hex),
        cx_sql_bool(cx_index_form_signs_envelope(form)),
    };
    CX_TRY(cx_index_do(index,
                       "UPDATE cirislens.covenant_traces SET signature_verified = $4,"
                       " verification_error = $6, canonical_form = $7, canonical_sha256 = $8,"
                       " envelope_signed = $9 WHERE agent_id_hash = $1 AND trace_id = $2"
                       " AND trace_level = $3 AND timestamp = $5",
                       values, CX_COUNT_OF(values), err));
    return cx_index_do(index,
                       "UPDATE cirislens.covenant_trace_keys SET verified = $4"
                       " WHERE agent_id_hash = $1 AND trace_id = $2 AND trace_level = $3",
                       values, 4, err);
}

cx_status cx_index_rejudge(cx_index *index, const cx_rejudged *change, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    cx_row_key keys[3];
    size_t count, at = 0;
    CX_TRY(index->engine->flush(index, err));
    CX_TRY(cx_index_row_keys(index, change->agent, change->trace_id, keys, &count, err));
    while (at < count && keys[at].level != change->level)
        at++;
    if (at == count) /* too old: the row was dropped */
        return CX_SUCCESS;
    forget_agents(index);
    CX_TRY(rejudge_row(index, change, &keys[at], err));
    keys[at].verified = change->verified;
    CX_TRY(index->engine->touch(index, keys[at].timestamp_ns, err));
    return set_primary(index, change->agent, change->trace_id, keys, count, err);
}

/* --- keys, batches, conflicts ----------------------------------------------------------------- */

static cx_status agents_json(const cx_trust_key *key, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_json agents;
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < key->agent_count; i++)
        cx_json_list_add(&list, cx_json_make_str(key->agents[i]));
    CX_TRY(cx_json_list_end_array(&list, &agents, err));
    return cx_index_clean_json(&agents, arena, out, err);
}

/* 43 digits of base64url, as the trust store spells keys. */
static void key_text(const cx_pubkey *key, char out[44])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t bits = 0;
    unsigned count = 0;
    size_t size = 0;
    for (size_t i = 0; i < sizeof key->bytes; i++) {
        bits = bits << 8 | key->bytes[i];
        for (count += 8; count >= 6; count -= 6)
            out[size++] = digits[bits >> (count - 6) & 63];
    }
    out[size++] = digits[bits << (6 - count) & 63];
    out[size] = 0;
}

cx_status cx_index_put_key(cx_index *index, const cx_trust_key *key, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    char public_key[44];
    cx_str agents = {NULL, 0};
    cx_arena arena;
    key_text(&key->key, public_key);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = agents_json(key, &arena, &agents, err);
    cx_sql_value values[] = {
        cx_sql_text(key->key_id),          cx_sql_text(cx_str_z(public_key)),
        {CX_CELL_TEXTS, {.text = agents}}, cx_sql_time(key->not_before),
        cx_sql_time(key->not_after),       cx_sql_time(key->revoked_at),
        cx_sql_text(key->revoked_reason),  cx_sql_time(key->compromised_since),
        cx_sql_text(key->replaces),        cx_sql_text(key->chain_profile),
        cx_sql_text(key->description),     cx_sql_text(key->added_by),
        cx_sql_time(key->added_at),
    };
    if (!cx_failed(status))
        status = cx_index_do(
            index,
            "INSERT INTO cirislens.covenant_public_keys (key_id, algorithm, public_key_base64,"
            " agents, not_before, not_after, revoked_at, revoked_reason, compromised_since,"
            " replaces, chain_profile, description, added_by, added_at) VALUES"
            " ($1, 'ed25519', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
            " ON CONFLICT (key_id) DO UPDATE SET public_key_base64 = excluded.public_key_base64,"
            " agents = excluded.agents, not_before = excluded.not_before,"
            " not_after = excluded.not_after, revoked_at = excluded.revoked_at,"
            " revoked_reason = excluded.revoked_reason,"
            " compromised_since = excluded.compromised_since, replaces = excluded.replaces,"
            " chain_profile = excluded.chain_profile, description = excluded.description,"
            " added_by = excluded.added_by, added_at = excluded.added_at",
            values, CX_COUNT_OF(values), err);
    cx_arena_done(&arena);
    return status;
}

static cx_status clean_json_text(cx_str text, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_json value;
    *out = (cx_str){NULL, 0};
    if (text.data == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_json_parse_text(text, arena, &value, err));
    return cx_index_clean_json(&value, arena, out, err);
}

static cx_status put_batch(cx_index *index, const cx_batch_row *row, cx_arena *arena, cx_err *err)
{
    cx_str metadata, reasons, findings;
    CX_TRY(clean_json_text(row->correlation_metadata, arena, &metadata, err));
    CX_TRY(clean_json_text(row->reasons, arena, &reasons, err));
    CX_TRY(clean_json_text(row->findings, arena, &findings, err));
    cx_sql_value values[] = {
        cx_sql_text(row->batch_id),
        cx_sql_time(row->received_ns),
        cx_sql_time(row->batch_ns),
        cx_sql_time(row->consent_ns),
        row->level == CX_LEVEL_ABSENT ? cx_sql_text((cx_str){NULL, 0})
                                      : cx_sql_text(cx_str_z(cx_trace_level_name(row->level))),
        cx_sql_json(metadata),
        cx_sql_int((int64_t)row->received),
        cx_sql_int((int64_t)row->accepted),
        cx_sql_int((int64_t)row->rejected),
        cx_sql_json(reasons),
        cx_sql_json(findings),
        cx_sql_int((int64_t)row->seq),
    };
    return cx_index_do(
        index,
        "INSERT INTO cirislens.covenant_trace_batches (batch_id, received_at, batch_timestamp,"
        " consent_timestamp, trace_level, correlation_metadata, received_count, accepted_count,"
        " rejected_count, reasons, findings, ledger_seq)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
        " ON CONFLICT (batch_id) DO UPDATE SET received_at = excluded.received_at,"
        " batch_timestamp = excluded.batch_timestamp,"
        " consent_timestamp = excluded.consent_timestamp, trace_level = excluded.trace_level,"
        " correlation_metadata = excluded.correlation_metadata,"
        " received_count = excluded.received_count, accepted_count = excluded.accepted_count,"
        " rejected_count = excluded.rejected_count, reasons = excluded.reasons,"
        " findings = excluded.findings, ledger_seq = excluded.ledger_seq",
        values, CX_COUNT_OF(values), err);
}

cx_status cx_index_put_batch(cx_index *index, const cx_batch_row *row, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = put_batch(index, row, &arena, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_index_put_conflict(cx_index *index, const cx_conflict_row *row, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    char hex[65];
    cx_sql_value values[] = {
        cx_sql_text(row->actor),
        cx_sql_int((int64_t)row->seq),
        cx_sql_text(row->agent),
        cx_sql_text(row->trace_id),
        cx_sql_text(cx_str_z(cx_trace_level_name(row->level))),
        digest_value(true, &row->content, hex),
        cx_sql_time(row->received_ns),
    };
    return cx_index_do(index,
                       "INSERT INTO cirislens.covenant_trace_conflicts (ledger_actor, ledger_seq,"
                       " agent_id_hash, trace_id, trace_level, content_sha256, received_at)"
                       " VALUES ($1, $2, $3, $4, $5, $6, $7)"
                       " ON CONFLICT (ledger_actor, ledger_seq) DO NOTHING",
                       values, CX_COUNT_OF(values), err);
}

cx_status cx_index_remove(cx_index *index, cx_str agent, cx_str trace_id, cx_trace_level level,
                          cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    cx_row_key keys[3];
    size_t count, at = 0;
    CX_TRY(index->engine->flush(index, err));
    CX_TRY(cx_index_row_keys(index, agent, trace_id, keys, &count, err));
    while (at < count && keys[at].level != level)
        at++;
    if (at == count)
        return CX_SUCCESS;
    forget_agents(index);
    CX_TRY(delete_row(index, agent, trace_id, &keys[at], err));
    CX_TRY(index->engine->touch(index, keys[at].timestamp_ns, err));
    CX_TRY(cx_index_set_primary(index, agent, trace_id, err));
    return index->engine->scrub(index, err);
}

/* --- age -------------------------------------------------------------------------------------- */

typedef struct trace_name {
    cx_str agent, trace_id;
} trace_name;

typedef struct name_taker {
    cx_arena *arena;
    CX_VEC(trace_name) names;
} name_taker;

static cx_status take_name(void *arg, const cx_cell *cells, cx_err *err)
{
    name_taker *taker = arg;
    trace_name *name = cx_vec_push(&taker->names, cx_alloc_default());
    if (name == NULL)
        return cx_fail_nomem(err);
    name->agent = cx_arena_copy_str(taker->arena, cells[0].text);
    name->trace_id = cx_arena_copy_str(taker->arena, cells[1].text);
    return name->agent.data == NULL || name->trace_id.data == NULL ? cx_fail_nomem(err)
                                                                   : CX_SUCCESS;
}

/* Traces of which one row goes and another stays: their primary row may have to change. */
static cx_status find_split(cx_index *index, int64_t before_ns, name_taker *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TEXT};
    cx_sql_value before = cx_sql_time(before_ns);
    cx_question question = {
        "SELECT DISTINCT k.agent_id_hash, k.trace_id FROM cirislens.covenant_trace_keys k"
        " JOIN cirislens.covenant_trace_keys o ON o.agent_id_hash = k.agent_id_hash"
        " AND o.trace_id = k.trace_id WHERE k.timestamp < $1 AND o.timestamp >= $1",
        &before,
        1,
        types,
        CX_COUNT_OF(types),
        take_name,
        out};
    return cx_index_ask(index, &question, err);
}

static cx_status retain_inside(cx_index *index, int64_t before_ns, name_taker *split, uint64_t *out,
                               cx_err *err)
{
    feed_line line;
    CX_TRY(find_split(index, before_ns, split, err));
    CX_TRY(index->engine->retain(index, &before_ns, out, err));
    cx_sql_value before = cx_sql_time(before_ns);
    CX_TRY(cx_index_do(index, "DELETE FROM cirislens.covenant_trace_keys WHERE timestamp < $1",
                       &before, 1, err));
    for (size_t i = 0; i < split->names.count; i++)
        CX_TRY(cx_index_set_primary(index, split->names.items[i].agent,
                                    split->names.items[i].trace_id, err));
    CX_TRY(read_feed(index, &line, err));
    if (!line.there)
        return CX_SUCCESS;
    index->commits++;
    if (index->retained_ns == CX_TIME_NONE || index->retained_ns < before_ns)
        index->retained_ns = before_ns;
    return write_feed(index, line.home_id, line.position, err);
}

cx_status cx_index_retain(cx_index *index, int64_t older_than_ns, uint64_t *out_dropped,
                          cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    name_taker split = {.arena = &arena};
    uint64_t dropped = 0;
    /* Whole days go, on both engines alike; times before 1970 do not occur. */
    int64_t before_ns = older_than_ns < 0 ? 0 : older_than_ns - older_than_ns % DAY_NS;
    cx_status status = cx_index_begin(index, err);
    if (!cx_failed(status)) {
        status = retain_inside(index, before_ns, &split, &dropped, err);
        if (!cx_failed(status))
            status = index->engine->commit(index, err);
        if (cx_failed(status))
            cx_index_rollback(index);
        index->in_transaction = false;
        forget_agents(index);
    }
    cx_vec_done(&split.names, cx_alloc_default());
    cx_arena_done(&arena);
    if (!cx_failed(status))
        *out_dropped = dropped;
    return status;
}

cx_status cx_index_refresh(cx_index *index, uint64_t *out_hours, cx_err *err)
{
    uint64_t hours = 0;
    CX_TRY(cx_index_begin(index, err));
    cx_status status = index->engine->refresh(index, &hours, err);
    if (!cx_failed(status))
        status = index->engine->commit(index, err);
    if (cx_failed(status)) {
        cx_index_rollback(index);
        return status;
    }
    index->in_transaction = false;
    *out_hours = hours;
    return CX_SUCCESS;
}

/*
 * index_rows.c - rows of traces: choosing the primary row, putting, changing the verdict, and
 * removing one (trace.md §9).
 */
#include "crypto/api.h"
#include "index/index_internal.h"

/* --- which row of a trace counts (§9) --------------------------------------------------------- */

typedef struct key_list {
    cx_row_key *keys;
    size_t count;
} key_list;

static cx_status collect_row_key(void *arg, const cx_cell *cells, cx_err *err)
{
    key_list *list = arg;
    cx_row_key key = {CX_LEVEL_GENERIC, cells[1].i, cells[2].i, cells[3].b};
    if (list->count == 3 || !cx_trace_level_parse(cells[0].text, &key.level))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the index has an unknown level; run 'cortex tables rebuild'");
    list->keys[list->count++] = key;
    return CX_SUCCESS;
}

cx_status cx_index_row_keys(cx_index *index, cx_str agent, cx_str trace_id, cx_row_key out[3],
                            size_t *out_count, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TIME, CX_CELL_INT, CX_CELL_BOOL};
    cx_sql_value values[] = {cx_sql_text(agent), cx_sql_text(trace_id)};
    key_list list = {out, 0};
    cx_question question = {"SELECT trace_level, timestamp, id, verified"
                            " FROM cirislens.covenant_trace_keys"
                            " WHERE agent_id_hash = $1 AND trace_id = $2 ORDER BY id",
                            values,
                            CX_COUNT_OF(values),
                            types,
                            CX_COUNT_OF(types),
                            collect_row_key,
                            &list};
    CX_TRY(cx_index_ask_as_is(index, &question, err));
    *out_count = list.count;
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

/* The INSERT INTO covenant_traces of all columns, assembled in `sql`. */
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

/* A key id longer than a trust store allows is in no trust store, and would not fit an index. */
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

/* --- writing ---------------------------------------------------------------------------------- */

cx_status cx_index_put_trace(cx_index *index, const cx_trace_row *row, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    const uint64_t *known;
    CX_TRY(index->engine->put(index, row, err));
    known = cx_map_find(&index->agents, row->cells[CX_COL_agent_id_hash].text);
    if (known == NULL || !row->cells[CX_COL_signature_verified].b)
        return CX_SUCCESS;
    return cx_index_learn_trace(index, index->agent_states.items[*known],
                                row->cells[CX_COL_trace_id].text, &row->cells[CX_COL_idma_k_eff],
                                err);
}

static cx_sql_value name_value(const char *name)
{
    return cx_sql_text(name[0] == 0 ? (cx_str){NULL, 0} : cx_str_z(name));
}

static cx_status reclassify_row(cx_index *index, const cx_rejudged *change, const cx_row_key *key,
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
        change->has_canonical ? cx_index_digest(&change->canonical, hex)
                              : cx_sql_text((cx_str){NULL, 0}),
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
    if (at == count) /* the row was dropped because of its age */
        return CX_SUCCESS;
    cx_index_forget_agents(index);
    CX_TRY(reclassify_row(index, change, &keys[at], err));
    keys[at].verified = change->verified;
    CX_TRY(index->engine->touch(index, keys[at].timestamp_ns, err));
    return set_primary(index, change->agent, change->trace_id, keys, count, err);
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
    cx_index_forget_agents(index);
    CX_TRY(delete_row(index, agent, trace_id, &keys[at], err));
    CX_TRY(index->engine->touch(index, keys[at].timestamp_ns, err));
    CX_TRY(cx_index_set_primary(index, agent, trace_id, err));
    index->must_scrub = true;
    return CX_SUCCESS;
}

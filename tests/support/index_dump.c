/*
 * index_dump.c - see index_dump.h.
 */
#include "tests/support/index_dump.h"

#include "base/alloc.h"
#include "index/index_internal.h"

typedef struct dumper {
    cx_buf *out;
    const char *table;
    const cx_cell_type *types;
    size_t column_count;
} dumper;

static cx_status dump_json(cx_buf *out, cx_str text, cx_err *err)
{
    cx_arena arena;
    cx_json value;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_json_parse_text(text, &arena, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
    cx_arena_done(&arena);
    return status;
}

static cx_status dump_cell(cx_buf *out, cx_cell_type type, const cx_cell *cell, cx_err *err)
{
    char time[CX_TRACE_TIME_SIZE];
    if (cell->null) {
        cx_buf_add_z(out, "null");
        return CX_SUCCESS;
    }
    switch (type) {
    case CX_CELL_INT: cx_buf_add_i64(out, cell->i); break;
    case CX_CELL_FLOAT: cx_buf_printf(out, "%.17g", cell->f); break;
    case CX_CELL_BOOL: cx_buf_add_z(out, cell->b ? "true" : "false"); break;
    case CX_CELL_TIME:
        cx_trace_time_write(cell->i, time);
        cx_buf_add(out, time, 26); /* up to the microseconds */
        break;
    case CX_CELL_JSON:
    case CX_CELL_TEXTS: return dump_json(out, cell->text, err);
    default: cx_json_write_str(out, cell->text, CX_JSON_JCS); break;
    }
    return CX_SUCCESS;
}

static cx_status dump_row(void *arg, const cx_cell *cells, cx_err *err)
{
    dumper *d = arg;
    cx_buf_add_z(d->out, d->table);
    for (size_t i = 0; i < d->column_count; i++) {
        cx_buf_add_byte(d->out, ' ');
        CX_TRY(dump_cell(d->out, d->types[i], &cells[i], err));
    }
    cx_buf_add_byte(d->out, '\n');
    return cx_buf_check(d->out, err);
}

/* The letters of trace.md §10. */
static cx_cell_type type_of(char letter)
{
    static const char letters[] = "TIFBZJAU";
    const char *at = strchr(letters, letter);
    CX_ASSERT(at != NULL);
    return (cx_cell_type)(at - letters);
}

static cx_status dump_table(cx_index *index, const char *table, const char *columns,
                            const char *letters, const char *order, cx_buf *out, cx_err *err)
{
    cx_cell_type types[CX_SQL_COLUMNS_MAX];
    size_t count = strlen(letters);
    cx_buf sql;
    for (size_t i = 0; i < count; i++)
        types[i] = type_of(letters[i]);
    dumper d = {out, table, types, count};
    cx_buf_init(&sql, cx_alloc_default());
    cx_buf_printf(&sql, "SELECT %s FROM cirislens.%s ORDER BY %s", columns, table, order);
    cx_question question = {cx_buf_z(&sql), NULL, 0, types, count, dump_row, &d};
    cx_status status = cx_index_ask(index, &question, err);
    cx_buf_done(&sql);
    return status;
}

static cx_status dump_traces(cx_index *index, cx_buf *out, cx_err *err)
{
    static const char letters[] = "TIFBZJAU";
    char types[CX_COL_COUNT + 1] = {0};
    cx_buf columns;
    cx_buf_init(&columns, cx_alloc_default());
    for (unsigned i = 0; i < CX_COL_COUNT; i++) {
        types[i] = letters[cx_trace_columns[i].type];
        cx_buf_printf(&columns, "%s%s", i == 0 ? "" : ", ", cx_trace_columns[i].name);
    }
    cx_status status = dump_table(index, "covenant_traces", cx_buf_z(&columns), types,
                                  "agent_id_hash, trace_id, trace_level", out, err);
    cx_buf_done(&columns);
    return status;
}

cx_status index_dump(cx_index *index, cx_buf *out, cx_err *err)
{
    CX_TRY(dump_traces(index, out, err));
    CX_TRY(dump_table(index, "covenant_trace_keys",
                      "agent_id_hash, trace_id, trace_level, timestamp, verified, signer_key_id,"
                      " action_executed, action_timestamp",
                      "TTTZBTTT", "agent_id_hash, trace_id, trace_level", out, err));
    CX_TRY(dump_table(index, "covenant_trace_conflicts",
                      "ledger_actor, ledger_seq, agent_id_hash, trace_id, trace_level,"
                      " content_sha256, received_at",
                      "TITTTTZ", "ledger_actor, ledger_seq", out, err));
    CX_TRY(dump_table(index, "covenant_public_keys",
                      "key_id, algorithm, public_key_base64, agents, not_before, not_after,"
                      " revoked_at, revoked_reason, compromised_since, replaces, chain_profile,"
                      " description, added_by, added_at",
                      "TTTAZZZTZTTTTZ", "key_id", out, err));
    CX_TRY(dump_table(index, "covenant_trace_batches",
                      "batch_id, received_at, batch_timestamp, consent_timestamp, trace_level,"
                      " correlation_metadata, received_count, accepted_count, rejected_count,"
                      " reasons, findings, ledger_seq",
                      "TZZZTJIIIJJI", "batch_id", out, err));
    return dump_table(index, "coherence_ratchet_alerts",
                      "alert_id, severity, detection_mechanism, agent_id_hash, domain, metric,"
                      " value, baseline, deviation, evidence_traces, recommended_action, timestamp,"
                      " acknowledged, acknowledged_at, acknowledged_by, acknowledged_notes,"
                      " resolved, resolved_at, resolved_by, resolved_notes, alert",
                      "TTTTTTFFFATZBZTTBZTTJ", "alert_id", out, err);
}

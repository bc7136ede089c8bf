/*
 * index_side.c - the side tables of the index: keys, batches, conflicts (trace.md §10).
 */
#include "base/api.h"
#include "crypto/api.h"
#include "index/index_internal.h"

cx_sql_value cx_index_digest(const cx_digest *digest, char hex[65])
{
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    hex[64] = 0;
    return cx_sql_text(cx_str_from(hex, 64));
}

static cx_status agents_json(const cx_trust_key *key, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_json agents;
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < key->agent_count; i++)
        cx_json_list_add(&list, cx_json_make_str(key->agents[i]));
    CX_TRY(cx_json_list_end_array(&list, &agents, err));
    return cx_index_clean_json(&agents, arena, out, err);
}

cx_status cx_index_put_key(cx_index *index, const cx_trust_key *key, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    cx_buf public_key;
    cx_str agents = {NULL, 0};
    cx_arena arena;
    cx_buf_init(&public_key, cx_alloc_default());
    cx_base64_add(&public_key, cx_bytes_from(key->key.bytes, sizeof key->key.bytes), CX_BASE64_URL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_buf_check(&public_key, err);
    if (!cx_failed(status))
        status = agents_json(key, &arena, &agents, err);
    cx_sql_value values[] = {
        cx_sql_text(key->key_id),          cx_sql_text(cx_buf_str(&public_key)),
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
    cx_buf_done(&public_key);
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
        cx_index_digest(&row->content, hex),
        cx_sql_time(row->received_ns),
    };
    return cx_index_do(index,
                       "INSERT INTO cirislens.covenant_trace_conflicts (ledger_actor, ledger_seq,"
                       " agent_id_hash, trace_id, trace_level, content_sha256, received_at)"
                       " VALUES ($1, $2, $3, $4, $5, $6, $7)"
                       " ON CONFLICT (ledger_actor, ledger_seq) DO NOTHING",
                       values, CX_COUNT_OF(values), err);
}

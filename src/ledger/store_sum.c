/*
 * store_sum.c - the checksum that every row of the tables carries over itself (S3 in store.c).
 */
#include "crypto/crc32c.h"
#include "ledger/store_internal.h"

static void put_u64(uint8_t out[8], uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * (7 - i)));
}

static uint32_t sum_u64(uint32_t sum, uint64_t value)
{
    uint8_t bytes[8];
    put_u64(bytes, value);
    return cx_crc32c_add(sum, bytes, sizeof bytes);
}

static uint32_t sum_bytes(uint32_t sum, cx_bytes bytes)
{
    return cx_crc32c_add(sum_u64(sum, bytes.size), bytes.data, bytes.size);
}

void cx_store_sum_row(int64_t actor, cx_bytes key, cx_bytes value, uint8_t out[CX_ROW_SUM_SIZE])
{
    uint32_t sum = sum_bytes(sum_bytes(sum_u64(0, (uint64_t)actor), key), value);
    for (unsigned i = 0; i < CX_ROW_SUM_SIZE; i++)
        out[i] = (uint8_t)(sum >> (8 * (3 - i)));
}

uint32_t cx_store_sum_entry(const cx_entry_row *row)
{
    const uint64_t numbers[] = {(uint64_t)row->actor,      row->seq,
                                (uint64_t)row->created_ns, row->place.segment,
                                row->place.offset,         row->place.size_bytes,
                                row->has_subject ? 1u : 0u};
    uint32_t sum = sum_bytes(0, cx_str_bytes(row->kind));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sum = sum_u64(sum, numbers[i]);
    if (row->has_subject)
        sum = cx_crc32c_add(sum, row->subject.bytes, sizeof row->subject.bytes);
    return cx_crc32c_add(sum, row->leaf.bytes, sizeof row->leaf.bytes);
}

uint32_t cx_store_sum_actor(const cx_actor_row *row)
{
    const uint64_t numbers[] = {(uint64_t)row->id, (uint64_t)row->scheme,
                                row->entries,      row->snapshots,
                                row->live,         row->dead,
                                row->edges,        row->entry_sum,
                                row->state_sum};
    uint32_t sum = sum_bytes(0, cx_str_bytes(row->name));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sum = sum_u64(sum, numbers[i]);
    return sum;
}

uint32_t cx_store_sum_meta(cx_str identity, cx_position position)
{
    return sum_u64(sum_u64(sum_bytes(0, cx_str_bytes(identity)), position.commit), position.frames);
}

cx_status cx_store_damaged(const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "%s; run 'cortex tables rebuild' (the log is the truth, nothing is lost)",
                      what);
}

/* The value without its checksum, which must be right. */
cx_status cx_store_check_row(int64_t actor, cx_bytes key, cx_bytes stored, cx_bytes *out,
                             cx_err *err)
{
    uint8_t sum[CX_ROW_SUM_SIZE];
    if (stored.size < CX_ROW_SUM_SIZE)
        return cx_store_damaged("a record's row is damaged", err);
    cx_bytes value = cx_bytes_from(stored.data, stored.size - CX_ROW_SUM_SIZE);
    cx_store_sum_row(actor, key, value, sum);
    if (memcmp(sum, stored.data + value.size, CX_ROW_SUM_SIZE) != 0)
        return cx_store_damaged("a record's row is damaged", err);
    *out = value;
    return CX_SUCCESS;
}

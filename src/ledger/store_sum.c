/*
 * store_sum.c - the checksum of every row of the tables (S3 in store.c).
 */
#include "crypto/api.h"
#include "ledger/store_internal.h"

/* Rows are short, and most of their parts a few bytes: they are copied together, so that the sum is
 * called once. */
typedef struct summing {
    uint32_t sum;
    size_t size;
    uint8_t bytes[240];
} summing;

static void sum_gathered(summing *s)
{
    s->sum = cx_crc32c_add(s->sum, s->bytes, s->size);
    s->size = 0;
}

static void add_bytes(summing *s, const void *data, size_t size)
{
    if (size > sizeof s->bytes - s->size)
        sum_gathered(s);
    if (size > sizeof s->bytes) {
        s->sum = cx_crc32c_add(s->sum, data, size);
    } else if (size != 0) {
        memcpy(s->bytes + s->size, data, size);
        s->size += size;
    }
}

static void add_u64(summing *s, uint64_t value)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * (7 - i)));
    add_bytes(s, bytes, sizeof bytes);
}

/* Adds the bytes with their size before them. */
static void add_sized(summing *s, cx_bytes bytes)
{
    add_u64(s, bytes.size);
    add_bytes(s, bytes.data, bytes.size);
}

static uint32_t sum_end(summing *s)
{
    sum_gathered(s);
    return s->sum;
}

static void summing_begin(summing *s)
{
    s->sum = 0;
    s->size = 0;
}

void cx_store_sum_row(int64_t actor, cx_bytes key, cx_bytes value, uint8_t out[CX_ROW_SUM_SIZE])
{
    summing s;
    summing_begin(&s);
    add_u64(&s, (uint64_t)actor);
    add_sized(&s, key);
    add_sized(&s, value);
    uint32_t sum = sum_end(&s);
    for (unsigned i = 0; i < CX_ROW_SUM_SIZE; i++)
        out[i] = (uint8_t)(sum >> (8 * (3 - i)));
}

uint32_t cx_store_sum_entry(const cx_entry_row *row)
{
    const uint64_t numbers[] = {(uint64_t)row->actor,      row->seq,
                                (uint64_t)row->created_ns, row->place.segment,
                                row->place.offset,         row->place.size_bytes,
                                row->has_subject ? 1u : 0u};
    summing s;
    summing_begin(&s);
    add_sized(&s, cx_str_bytes(row->kind));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_u64(&s, numbers[i]);
    if (row->has_subject)
        add_bytes(&s, row->subject.bytes, sizeof row->subject.bytes);
    add_bytes(&s, row->leaf.bytes, sizeof row->leaf.bytes);
    return sum_end(&s);
}

uint32_t cx_store_sum_actor(const cx_actor_row *row)
{
    const uint64_t numbers[] = {(uint64_t)row->id, (uint64_t)row->scheme,
                                row->entries,      row->snapshots,
                                row->live,         row->dead,
                                row->edges};
    summing s;
    summing_begin(&s);
    add_sized(&s, cx_str_bytes(row->name));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_u64(&s, numbers[i]);
    add_sized(&s, row->peaks);
    for (unsigned i = 0; i < 2; i++) {
        uint8_t bytes[CX_PAGES_ANCHOR_SIZE];
        cx_pages_anchor_encode(&row->trees[i], bytes);
        add_bytes(&s, bytes, sizeof bytes);
    }
    return sum_end(&s);
}

uint32_t cx_store_sum_meta(cx_str identity, cx_position position, const cx_store_counters *counters)
{
    summing s;
    summing_begin(&s);
    add_sized(&s, cx_str_bytes(identity));
    add_u64(&s, position.commit);
    add_u64(&s, position.frames);
    if (counters != NULL) {
        add_u64(&s, counters->actors);
        add_u64(&s, counters->entries);
        add_u64(&s, counters->records);
        add_u64(&s, counters->hashes);
    }
    return sum_end(&s);
}

cx_status cx_store_damaged(const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "%s; run 'cortex tables rebuild' (the log is the truth, nothing is lost)",
                      what);
}

/* Checks a row's checksum and returns the value without it. */
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

/*
 * store_runs.c - rows of records that wait, sorted, while tables are derived into a new file.
 *
 * A flush into a large table of records, whose keys come in no order, reads and writes nearly all
 * of its pages.  While a new file is filled, a flush appends its rows, sorted, as a
 * *run* to a file next to it; in the end the runs are merged, and the table is written from its
 * first row to its last.
 *
 *     row    u16be size of the name, u32be size of the value, u8 removed; the name (u64be actor,
 *            key); the value; its checksum (S3 in store.c), each bit turned over if it is removed
 *
 *     meta   record_runs: for each run that waits its size in bytes and its number of rows, u64be;
 *            the first run begins at byte 0
 *
 * W1  A run is in the file, and synced, before the transaction that has its position in meta is
 *     committed.  It is written after all runs that meta names; what follows those is not read.
 * W2  Of a name's rows in runs that of the last run counts; all are newer than the table.
 * W3  A point read looks into runs.  A range read does not: they are merged before, by the calls
 *     that flush the memtable for it.
 */
#include <stdio.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"

enum {
    ROW_HEAD = 2 + 4 + 1,
    PART_BYTES = 16 << 10, /* what a point read reads */
    WRITE_BYTES = 256 << 10,
    RUNS_MAX = 64,
    RUN_SIZE = 8 + 8,       /* in meta */
    FILTER_BITS_A_ROW = 16, /* a name that is not there has them in one of 400 runs */
    FILTER_PROBES = 4,
    COMMIT_BYTES = 32 << 20,
    /* A flush of fewer rows is written into the table where no run waits. */
    ROWS_MIN = 4096,
};
#define RUNS_NAME "record_runs"

typedef struct run_part {
    uint64_t offset;
    size_t size;
    cx_str first; /* name of its first row */
} run_part;

typedef struct record_run {
    uint64_t begin, size, rows;
    cx_arena names;
    CX_VEC(run_part) parts;
    uint64_t *filter;     /* of hashes of names, FILTER_PROBES bits each */
    uint64_t filter_bits; /* a multiple of 64, less than 2^32 */
} record_run;

struct cx_record_runs {
    const cx_alloc *alloc;
    const cx_io *io;
    uint64_t seed;
    char *path;
    size_t path_size;
    cx_file file;
    bool unsynced;
    record_run runs[RUNS_MAX];
    size_t count;            /* that reads look into */
    bool has_next;           /* the flush under way wrote runs[count] */
    bool merged;             /* .. or put all into the table */
    cx_buf part;             /* the one that was read last */
    const run_part *part_of; /* .. of these */
};

/* A row in the bytes that it was read from. */
typedef struct run_row {
    cx_str name;
    cx_bytes value; /* its checksum follows */
    bool removed;
} run_row;

/* The name of a row as it is in runs, where the order of bytes is that of the table. */
typedef struct run_name {
    char bytes[8 + CX_KEY_SIZE_MAX];
} run_name;

static cx_str name_of(int64_t actor, cx_bytes key, run_name *name)
{
    CX_ASSERT(key.size <= CX_KEY_SIZE_MAX);
    for (unsigned i = 0; i < 8; i++)
        name->bytes[i] = (char)((uint64_t)actor >> (8 * (7 - i)));
    if (key.size != 0)
        memcpy(name->bytes + 8, key.data, key.size);
    return cx_str_from(name->bytes, 8 + key.size);
}

static cx_status fail_runs(cx_err *err)
{
    return cx_store_damaged("rows that wait to be merged are damaged", err);
}

/* --- one run ---------------------------------------------------------------------------------- */

static void run_close(const cx_record_runs *r, record_run *run)
{
    cx_vec_done(&run->parts, r->alloc);
    cx_alloc_free(r->alloc, run->filter, (size_t)(run->filter_bits / 8));
    if (run->filter_bits != 0)
        cx_arena_done(&run->names);
    *run = (record_run){.begin = 0};
}

static cx_status run_open(const cx_record_runs *r, record_run *run, uint64_t begin, uint64_t rows,
                          cx_err *err)
{
    const uint64_t most = UINT64_C(1) << 31, wanted = (rows / 64 + 1) * 64 * FILTER_BITS_A_ROW;
    const uint64_t bits = rows > most / FILTER_BITS_A_ROW ? most : wanted;
    *run = (record_run){.begin = begin, .filter_bits = bits};
    cx_arena_init(&run->names, r->alloc, 0);
    run->filter = cx_alloc_zeroed(r->alloc, (size_t)(bits / 64), sizeof *run->filter);
    return run->filter != NULL ? CX_SUCCESS : cx_fail_nomem(err);
}

static uint64_t hash_of(const cx_record_runs *r, cx_str name)
{
    return cx_map_hash_bytes(r->seed, name.data, name.size);
}

/* A bit of the filter, of a name with that hash. */
static uint64_t bit_of(const record_run *run, uint64_t hash, uint32_t probe)
{
    const uint32_t step = (uint32_t)(hash >> 32) | 1, at = (uint32_t)hash + probe * step;
    return at * run->filter_bits >> 32;
}

static bool may_have(const record_run *run, uint64_t hash)
{
    for (uint32_t probe = 0; probe < FILTER_PROBES; probe++) {
        const uint64_t bit = bit_of(run, hash, probe);
        if ((run->filter[bit / 64] >> bit % 64 & 1) == 0)
            return false;
    }
    return true;
}

/* Notes the row that follows those of the run. */
static cx_status note_row(const cx_record_runs *r, record_run *run, cx_str name, size_t size,
                          cx_err *err)
{
    const uint64_t hash = hash_of(r, name);
    run_part *last = run->parts.count == 0 ? NULL : &run->parts.items[run->parts.count - 1];
    if (last == NULL || last->size >= PART_BYTES) {
        const cx_str first = cx_arena_copy_str(&run->names, name);
        last = first.data == NULL ? NULL : cx_vec_push(&run->parts, r->alloc);
        if (last == NULL)
            return cx_fail_nomem(err);
        *last = (run_part){.offset = run->begin + run->size, .first = first};
    }
    for (uint32_t probe = 0; probe < FILTER_PROBES; probe++) {
        const uint64_t bit = bit_of(run, hash, probe);
        run->filter[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    last->size += size;
    run->size += size;
    run->rows++;
    return CX_SUCCESS;
}

/* The row at the reader's place; false when these are not the bytes of one. */
static bool read_row(cx_reader *reader, run_row *out)
{
    const size_t name_size = cx_reader_u16(reader), value_size = cx_reader_u32(reader);
    const uint8_t removed = cx_reader_u8(reader);
    out->removed = removed != 0;
    out->name = cx_bytes_str(cx_reader_bytes(reader, name_size));
    out->value = cx_reader_bytes(reader, value_size + CX_ROW_SUM_SIZE);
    out->value.size -= cx_reader_ok(reader) ? CX_ROW_SUM_SIZE : 0;
    return cx_reader_ok(reader) && name_size >= 8 && removed <= 1;
}

static cx_row row_of(const run_row *from)
{
    cx_reader reader = cx_reader_over(cx_str_bytes(from->name));
    cx_row row = {.value = from->value, .removed = from->removed};
    row.actor = (int64_t)cx_reader_u64(&reader);
    row.key = cx_reader_bytes(&reader, cx_reader_left(&reader));
    return row;
}

static cx_status check_row(const run_row *from, cx_err *err)
{
    const cx_row row = row_of(from);
    const uint8_t *stored = row.value.data + row.value.size, turn = row.removed ? 0xff : 0;
    uint8_t sum[CX_ROW_SUM_SIZE];
    bool same = true;
    cx_store_sum_row(row.actor, row.key, row.value, sum);
    for (size_t i = 0; i < sizeof sum; i++)
        same = same && (sum[i] ^ turn) == stored[i];
    return same ? CX_SUCCESS : fail_runs(err);
}

static cx_status read_part(const cx_record_runs *r, const run_part *part, cx_buf *out, cx_err *err)
{
    size_t size = 0;
    cx_buf_clear(out);
    uint8_t *space = cx_buf_reserve(out, part->size);
    if (space == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_io_read_at(r->io, r->file, r->path, space, part->size, part->offset, &size, err));
    cx_buf_advance(out, size);
    return size == part->size ? CX_SUCCESS : fail_runs(err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static cx_status open_file(cx_record_runs *r, unsigned flags, cx_err *err)
{
    if (r->file != CX_FILE_NONE)
        return CX_SUCCESS;
    const int failed = r->io->open(r->io, r->path, CX_IO_READ | CX_IO_WRITE | flags, &r->file);
    return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "opening %s", r->path);
}

static void add_row(cx_buf *out, cx_str name, const cx_row *row)
{
    uint8_t head[ROW_HEAD];
    cx_writer writer = cx_writer_over(head, sizeof head);
    cx_writer_uint(&writer, name.size, 2);
    cx_writer_uint(&writer, row->value.size, 4);
    cx_writer_uint(&writer, row->removed ? 1 : 0, 1);
    cx_buf_add(out, head, sizeof head);
    cx_buf_add_str(out, name);
    cx_buf_add(out, row->value.data, row->value.size + CX_ROW_SUM_SIZE);
    for (size_t i = 1; row->removed && !out->failed && i <= CX_ROW_SUM_SIZE; i++)
        out->data[out->size - i] ^= 0xff;
}

static cx_status write_out(cx_record_runs *r, cx_buf *out, uint64_t end, cx_err *err)
{
    CX_TRY(cx_buf_check(out, err));
    r->unsynced = true;
    CX_TRY(cx_io_write_at(r->io, r->file, r->path, out->data, out->size, end - out->size, err));
    cx_buf_clear(out);
    return CX_SUCCESS;
}

static cx_status write_rows(cx_record_runs *r, record_run *run, const cx_sorted_row *rows,
                            size_t count, cx_buf *out, cx_err *err)
{
    run_name name;
    for (size_t i = 0; i < count; i++) {
        const cx_row *row = rows[i].row;
        const cx_str text = name_of(row->actor, row->key, &name);
        add_row(out, text, row);
        CX_TRY(
            note_row(r, run, text, ROW_HEAD + text.size + row->value.size + CX_ROW_SUM_SIZE, err));
        if (out->size >= WRITE_BYTES)
            CX_TRY(write_out(r, out, run->begin + run->size, err));
    }
    return write_out(r, out, run->begin + run->size, err);
}

static cx_status put_meta(cx_store *store, size_t count, cx_err *err)
{
    const cx_record_runs *r = store->runs;
    uint8_t bytes[RUNS_MAX * RUN_SIZE];
    cx_writer writer = cx_writer_over(bytes, sizeof bytes);
    for (size_t i = 0; i < count; i++) {
        cx_writer_uint(&writer, r->runs[i].size, 8);
        cx_writer_uint(&writer, r->runs[i].rows, 8);
    }
    cx_db_statement *put = store->writing.put_meta;
    cx_db_bind_text(put, 1, CX_STR(RUNS_NAME));
    cx_db_bind_bytes(put, 2, cx_bytes_from(bytes, writer.offset));
    return cx_db_execute(put, err);
}

bool cx_store_takes_run(const cx_store *store, size_t rows)
{
    const cx_record_runs *r = store->runs;
    return r != NULL && r->count < RUNS_MAX && !store->sweeps &&
           (r->count != 0 || rows >= ROWS_MIN);
}

cx_status cx_store_write_run(cx_store *store, const cx_sorted_row *rows, size_t count, cx_err *err)
{
    cx_record_runs *r = store->runs;
    const record_run *before = r->count == 0 ? NULL : &r->runs[r->count - 1];
    CX_ASSERT(r->count < RUNS_MAX && !r->has_next);
    if (count == 0)
        return CX_SUCCESS;
    CX_TRY(open_file(r, CX_IO_CREATE, err));
    record_run *run = &r->runs[r->count];
    run_close(r, run); /* of a flush that failed */
    CX_TRY(run_open(r, run, before == NULL ? 0 : before->begin + before->size, count, err));
    cx_buf out;
    cx_buf_init(&out, r->alloc);
    cx_status status = write_rows(r, run, rows, count, &out, err);
    cx_buf_done(&out);
    CX_TRY(status);
    r->has_next = true;
    return put_meta(store, r->count + 1, err);
}

cx_status cx_store_sync_runs(cx_store *store, cx_err *err)
{
    cx_record_runs *r = store->runs;
    if (r == NULL || !r->unsynced)
        return CX_SUCCESS;
    const int failed = r->io->sync(r->io, r->file, true);
    if (failed != 0)
        return cx_fail_os(err, -failed, "syncing %s", r->path);
    r->unsynced = false;
    return CX_SUCCESS;
}

bool cx_store_runs_merged(const cx_store *store)
{
    return store->runs != NULL && store->runs->merged;
}

void cx_store_runs_flushed(cx_store *store)
{
    cx_record_runs *r = store->runs;
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->count && r->merged; i++)
        run_close(r, &r->runs[i]);
    if (r->merged) {
        r->count = 0;
        r->part_of = NULL;
    }
    r->count += r->has_next ? 1 : 0;
    r->merged = r->has_next = false;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The last part that begins at or before the name; NULL when the name is before all. */
static const run_part *part_of(const record_run *run, cx_str name)
{
    size_t low = 0, high = run->parts.count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (cx_str_cmp(run->parts.items[middle].first, name) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NULL : &run->parts.items[low - 1];
}

static cx_status find_in_run(cx_record_runs *r, const record_run *run, cx_str name, run_row *out,
                             bool *out_there, cx_err *err)
{
    const run_part *part = part_of(run, name);
    *out_there = false;
    if (part == NULL)
        return CX_SUCCESS;
    if (r->part_of != part) {
        r->part_of = NULL;
        CX_TRY(read_part(r, part, &r->part, err));
        r->part_of = part;
    }
    cx_reader reader = cx_reader_over(cx_buf_bytes(&r->part));
    while (cx_reader_left(&reader) != 0) {
        if (!read_row(&reader, out))
            return fail_runs(err);
        const int order = cx_str_cmp(out->name, name);
        if (order > 0)
            return CX_SUCCESS;
        *out_there = order == 0;
        if (order == 0)
            return check_row(out, err);
    }
    return CX_SUCCESS;
}

cx_status cx_store_find_in_runs(cx_store *store, int64_t actor, cx_bytes key, cx_row *out,
                                bool *out_there, cx_err *err)
{
    cx_record_runs *r = store->runs;
    run_name bytes;
    *out_there = false;
    if (r == NULL || r->count == 0)
        return CX_SUCCESS;
    const cx_str name = name_of(actor, key, &bytes);
    const uint64_t hash = hash_of(r, name);
    for (size_t i = r->count; i-- > 0 && !*out_there;) {
        run_row row;
        if (!may_have(&r->runs[i], hash))
            continue;
        CX_TRY(find_in_run(r, &r->runs[i], name, &row, out_there, err));
        if (*out_there)
            *out = row_of(&row);
    }
    return CX_SUCCESS;
}

/* --- merging ---------------------------------------------------------------------------------- */

typedef struct merged_run {
    const record_run *run;
    size_t next_part;
    cx_buf part;
    cx_reader reader;
    run_row row;
} merged_run;

typedef struct merge {
    const cx_record_runs *r;
    merged_run runs[RUNS_MAX];
    uint32_t heap[RUNS_MAX]; /* numbers of runs, the first row of all in front */
    size_t count;            /* of runs that are not at their end */
    run_name last;           /* that was taken */
    size_t last_size;
    bool has_last;
    uint64_t *records;
} merge;

static cx_status next_row(const merge *m, merged_run *run, bool *out_more, cx_err *err)
{
    *out_more = cx_reader_left(&run->reader) != 0 || run->next_part < run->run->parts.count;
    if (!*out_more)
        return CX_SUCCESS;
    if (cx_reader_left(&run->reader) == 0) {
        CX_TRY(read_part(m->r, &run->run->parts.items[run->next_part++], &run->part, err));
        run->reader = cx_reader_over(cx_buf_bytes(&run->part));
    }
    return read_row(&run->reader, &run->row) ? check_row(&run->row, err) : fail_runs(err);
}

/* Of equal names that of the last run is first (W2). */
static bool is_before(const merge *m, uint32_t a, uint32_t b)
{
    const int order = cx_str_cmp(m->runs[a].row.name, m->runs[b].row.name);
    return order != 0 ? order < 0 : a > b;
}

static void sift_down(merge *m, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < m->count; child++)
            if (is_before(m, m->heap[child], m->heap[least]))
                least = child;
        if (least == at)
            return;
        const uint32_t number = m->heap[at];
        m->heap[at] = m->heap[least];
        m->heap[least] = number;
        at = least;
    }
}

static cx_status begin_merge(merge *m, cx_err *err)
{
    for (size_t i = 0; i < m->r->count; i++) {
        bool more = false;
        m->runs[i].run = &m->r->runs[i];
        CX_TRY(next_row(m, &m->runs[i], &more, err));
        if (more)
            m->heap[m->count++] = (uint32_t)i;
    }
    for (size_t at = m->count / 2; at-- > 0;)
        sift_down(m, at);
    return CX_SUCCESS;
}

/* Leaves the row in front. */
static cx_status leave_first(merge *m, cx_err *err)
{
    bool more = false;
    CX_TRY(next_row(m, &m->runs[m->heap[0]], &more, err));
    if (!more)
        m->heap[0] = m->heap[--m->count];
    sift_down(m, 0);
    return CX_SUCCESS;
}

/* The next name's newest row; it is valid until the next call. */
static cx_status next_merged(merge *m, cx_row *out, bool *out_more, cx_err *err)
{
    while (m->count != 0 && m->has_last &&
           cx_str_eq(m->runs[m->heap[0]].row.name, cx_str_from(m->last.bytes, m->last_size)))
        CX_TRY(leave_first(m, err));
    *out_more = m->count != 0;
    if (!*out_more)
        return CX_SUCCESS;
    const run_row *first = &m->runs[m->heap[0]].row;
    if (first->name.size > sizeof m->last.bytes)
        return fail_runs(err);
    memcpy(m->last.bytes, first->name.data, first->name.size);
    m->last_size = first->name.size;
    m->has_last = true;
    *out = row_of(first);
    return CX_SUCCESS;
}

/* cx_db_next_row, of a table that is empty: there is nothing to remove. */
static cx_status next_inserted(void *arg, cx_db_value *columns, bool *out_more, cx_err *err)
{
    merge *m = arg;
    cx_row row;
    do
        CX_TRY(next_merged(m, &row, out_more, err));
    while (*out_more && row.removed);
    if (!*out_more)
        return CX_SUCCESS;
    columns[0] = (cx_db_value){.type = CX_DB_INT, .number = row.actor};
    columns[1] = (cx_db_value){.type = CX_DB_BYTES, .bytes = row.key};
    columns[2] =
        (cx_db_value){.type = CX_DB_BYTES,
                      .bytes = cx_bytes_from(row.value.data, row.value.size + CX_ROW_SUM_SIZE)};
    *m->records += cx_store_is_counted(&row) ? 1 : 0;
    return CX_SUCCESS;
}

static cx_status has_records(cx_store *store, bool *out, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(store->writing.db, "SELECT 1 FROM record LIMIT 1", &statement, err));
    cx_status status = cx_db_step(statement, out, err);
    cx_db_finish(statement);
    return status;
}

static cx_status merge_all(merge *m, cx_store *store, cx_err *err)
{
    bool any = true, more = true;
    CX_TRY(begin_merge(m, err));
    CX_TRY(has_records(store, &any, err));
    if (!any)
        return cx_db_insert_rows(store->writing.db, "record", 3, next_inserted, m, err);
    for (;;) {
        cx_row row;
        CX_TRY(next_merged(m, &row, &more, err));
        if (!more)
            return CX_SUCCESS;
        CX_TRY(cx_store_write_row(&store->writing, &row, m->records, err));
    }
}

static cx_status forget_meta(cx_store *store, cx_err *err)
{
    return cx_db_run(store->writing.db, "DELETE FROM meta WHERE name='" RUNS_NAME "'", err);
}

cx_status cx_store_merge_runs(cx_store *store, uint64_t *records, cx_err *err)
{
    cx_record_runs *r = store->runs;
    if (r == NULL || r->count == 0)
        return CX_SUCCESS;
    CX_ASSERT(!r->has_next);
    merge *m = cx_alloc_zeroed(r->alloc, 1, sizeof *m);
    if (m == NULL)
        return cx_fail_nomem(err);
    m->r = r;
    m->records = records;
    for (size_t i = 0; i < RUNS_MAX; i++)
        cx_buf_init(&m->runs[i].part, r->alloc);
    cx_status status = merge_all(m, store, err);
    for (size_t i = 0; i < RUNS_MAX; i++)
        cx_buf_done(&m->runs[i].part);
    cx_alloc_free(r->alloc, m, sizeof *m);
    CX_TRY(status);
    r->merged = true;
    return forget_meta(store, err);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Those that are whole. */
static cx_status note_rows(const cx_record_runs *r, record_run *run, cx_bytes bytes, cx_err *err)
{
    cx_reader reader = cx_reader_over(bytes);
    size_t before = 0;
    run_row row;
    while (cx_reader_left(&reader) != 0 && read_row(&reader, &row)) {
        CX_TRY(check_row(&row, err));
        CX_TRY(note_row(r, run, row.name, reader.offset - before, err));
        before = reader.offset;
    }
    return CX_SUCCESS;
}

/* Reads a run that an earlier process wrote. */
static cx_status load_run(cx_record_runs *r, uint64_t begin, uint64_t size, uint64_t rows,
                          cx_buf *bytes, cx_err *err)
{
    record_run *run = &r->runs[r->count];
    if (rows > size / ROW_HEAD)
        return fail_runs(err);
    CX_TRY(run_open(r, run, begin, rows, err));
    r->count++;
    for (uint64_t most = WRITE_BYTES; run->size < size;) {
        const uint64_t left = size - run->size, before = run->size;
        const run_part piece = {.offset = begin + before,
                                .size = (size_t)(left < most ? left : most)};
        CX_TRY(read_part(r, &piece, bytes, err));
        CX_TRY(note_rows(r, run, cx_buf_bytes(bytes), err));
        if (run->size == before && left <= most)
            return fail_runs(err);
        most *= run->size == before ? 2 : 1; /* a row that is larger */
    }
    return run->rows == rows ? CX_SUCCESS : fail_runs(err);
}

static cx_status load_runs(cx_record_runs *r, cx_bytes meta, cx_err *err)
{
    cx_reader reader = cx_reader_over(meta);
    uint64_t begin = 0;
    cx_buf bytes;
    cx_status status = CX_SUCCESS;
    if (meta.size % RUN_SIZE != 0 || meta.size > RUNS_MAX * RUN_SIZE)
        return fail_runs(err);
    status = open_file(r, 0, err);
    if (status.code == CX_E_NOT_FOUND)
        return fail_runs(err);
    CX_TRY(status);
    cx_buf_init(&bytes, r->alloc);
    while (cx_reader_left(&reader) != 0 && !cx_failed(status)) {
        const uint64_t size = cx_reader_u64(&reader), rows = cx_reader_u64(&reader);
        status = load_run(r, begin, size, rows, &bytes, err);
        begin += size;
    }
    cx_buf_done(&bytes);
    return status;
}

static cx_status resume(cx_store *store, cx_err *err)
{
    cx_db_statement *statement;
    bool there = false;
    CX_TRY(cx_db_prepare(store->writing.db, "SELECT value FROM meta WHERE name='" RUNS_NAME "'",
                         &statement, err));
    cx_status status = cx_db_step(statement, &there, err);
    if (!cx_failed(status) && there)
        status = load_runs(store->runs, cx_db_bytes(statement, 0), err);
    cx_db_finish(statement);
    return status;
}

cx_status cx_store_begin_runs(cx_store *store, const cx_io *io, const char *path, cx_err *err)
{
    CX_ASSERT(store->derives && store->runs == NULL);
    cx_record_runs *r = cx_alloc_zeroed(store->alloc, 1, sizeof *r);
    if (r == NULL)
        return cx_fail_nomem(err);
    r->alloc = store->alloc;
    r->io = io;
    r->seed = store->seed;
    r->file = CX_FILE_NONE;
    r->path_size = strlen(path) + sizeof CX_RUNS_ENDING;
    r->path = cx_alloc_new(r->alloc, r->path_size);
    cx_buf_init(&r->part, r->alloc);
    store->runs = r;
    store->commit_bytes = COMMIT_BYTES;
    if (r->path != NULL)
        (void)snprintf(r->path, r->path_size, "%s" CX_RUNS_ENDING, path);
    cx_status status = r->path != NULL ? resume(store, err) : cx_fail_nomem(err);
    if (cx_failed(status))
        cx_store_end_runs(store);
    return status;
}

void cx_store_forget_runs(cx_store *store)
{
    cx_record_runs *r = store->runs;
    for (size_t i = 0; r != NULL && i < RUNS_MAX; i++)
        run_close(r, &r->runs[i]);
    if (r == NULL)
        return;
    r->count = 0;
    r->part_of = NULL;
    r->merged = r->has_next = false;
}

void cx_store_end_runs(cx_store *store)
{
    cx_record_runs *r = store->runs;
    if (r == NULL)
        return;
    for (size_t i = 0; i < RUNS_MAX; i++)
        run_close(r, &r->runs[i]);
    if (r->file != CX_FILE_NONE)
        (void)r->io->close(r->io, r->file);
    cx_alloc_free(r->alloc, r->path, r->path_size);
    cx_buf_done(&r->part);
    cx_alloc_free(r->alloc, r, sizeof *r);
    store->runs = NULL;
}

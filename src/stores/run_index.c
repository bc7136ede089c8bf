/*
 * run_index.c - what the ledger knows of a run, from its rows and their entries (run.md §17, §18).
 *
 *   I1  The first entry about an event, and the first seal, count: the rows are of these.
 *   I2  A row is never believed: its entry is read, and must be about what the row is about.
 *   I3  What was read of a run stays right, as entries stay: later only new rows are followed.
 */
#include "stores/run_index.h"

#include "base/api.h"
#include "crypto/api.h"
#include "recorder/api.h"

/* More are not kept: then the others are read again. */
#define RUNS_KEPT 64
#define LINKS_KEPT ((size_t)1 << 20)

typedef struct known_run {
    char id[CX_RUN_ID_BYTES_MAX];
    size_t id_size;
    cx_buf first_row;          /* as it was read last; empty = none */
    CX_VEC(cx_digest) links;   /* by index - 1; zero = none */
    cx_buf seal, seal_journal; /* the payload; empty = none */
    uint64_t seal_seq;
    bool is_read;
    uint64_t durable; /* commits, when it was read last */
} known_run;

struct cx_run_index {
    cx_home *home;
    const cx_alloc *alloc;
    cx_lock lock;
    CX_VEC(known_run *) runs;
    size_t links; /* of all of them */
};

static void free_run(cx_run_index *index, known_run *run)
{
    cx_vec_done(&run->links, index->alloc);
    cx_buf_done(&run->first_row);
    cx_buf_done(&run->seal);
    cx_buf_done(&run->seal_journal);
    cx_alloc_free(index->alloc, run, sizeof *run);
}

static void forget_runs(cx_run_index *index)
{
    for (size_t i = 0; i < index->runs.count; i++)
        free_run(index, index->runs.items[i]);
    index->runs.count = 0;
    index->links = 0;
}

cx_status cx_run_index_open(cx_home *home, const cx_alloc *alloc, cx_run_index **out, cx_err *err)
{
    CX_ASSERT(home != NULL && out != NULL);
    cx_run_index *index = cx_alloc_zeroed(alloc, 1, sizeof *index);
    if (index == NULL)
        return cx_fail_nomem(err);
    index->home = home;
    index->alloc = alloc;
    cx_lock_init(&index->lock);
    *out = index;
    return CX_SUCCESS;
}

void cx_run_index_close(cx_run_index *index)
{
    if (index == NULL)
        return;
    forget_runs(index);
    cx_vec_done(&index->runs, index->alloc);
    cx_lock_done(&index->lock);
    cx_alloc_free(index->alloc, index, sizeof *index);
}

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct event_row {
    uint32_t index;
    cx_run_place place; /* the journal is in the arena, or NULL: that of the first row */
} event_row;

/* The rows of a run, as one scan shows them. */
typedef struct run_rows {
    const known_run *run;
    cx_arena *arena;
    cx_bytes prefix;
    bool first_only;
    bool changed; /* since they were read last */
    cx_bytes first_bytes;
    cx_run_row first;
    uint32_t seen; /* rows of events */
    CX_VEC(event_row) unread;
} run_rows;

static cx_status damaged(const known_run *run, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the tables' rows of run %.*s do not fit the log; run 'cortex tables"
                      " rebuild'",
                      (int)run->id_size, run->id);
}

static cx_status take_first_row(run_rows *rows, cx_bytes value, bool *stop, cx_err *err)
{
    cx_str copy = cx_arena_copy_str(rows->arena, cx_bytes_str(value));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    rows->first_bytes = cx_str_bytes(copy);
    if (!cx_run_row_decode(rows->first_bytes, &rows->first))
        return damaged(rows->run, err);
    rows->changed = !cx_str_eq(copy, cx_buf_str(&rows->run->first_row));
    *stop = rows->first_only || !rows->changed;
    return CX_SUCCESS;
}

static bool has_link(const known_run *run, uint32_t index)
{
    static const cx_digest none;
    return index <= run->links.count && !cx_digest_eq(&run->links.items[index - 1], &none);
}

static cx_status take_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    run_rows *rows = arg;
    if (key.size == rows->prefix.size)
        return take_first_row(rows, value, stop, err);
    event_row row = {.index = cx_run_event_row_index(key, rows->prefix)};
    if (row.index == 0 || row.index > CX_RUN_EVENTS_MAX || rows->first_bytes.size == 0 ||
        !cx_run_event_row_decode(value, rows->first.journal, &row.place))
        return damaged(rows->run, err);
    rows->seen++;
    if (has_link(rows->run, row.index)) /* I3 */
        return CX_SUCCESS;
    if (row.place.journal.data != rows->first.journal.data)
        row.place.journal = cx_arena_copy_str(rows->arena, row.place.journal);
    event_row *slot = cx_vec_push(&rows->unread, rows->arena->alloc);
    if (slot == NULL || row.place.journal.data == NULL)
        return cx_fail_nomem(err);
    *slot = row;
    return CX_SUCCESS;
}

static cx_status scan_rows(cx_run_index *index, run_rows *rows, cx_err *err)
{
    cx_run_row_key key;
    rows->prefix = cx_run_row_name(&key, cx_str_from(rows->run->id, rows->run->id_size));
    const cx_scan scan = {.common = true, .prefix = rows->prefix, .row = take_row, .arg = rows};
    return cx_home_scan(index->home, &scan, err);
}

/* --- entries (I2) ----------------------------------------------------------------------------- */

/* The entry at a place, which must be about this run. */
static cx_status read_about(cx_run_index *index, const known_run *run, cx_run_place place,
                            cx_arena *arena, cx_entry_view *out, cx_run_entry_about *out_about,
                            cx_err *err)
{
    bool ours = false;
    if (!cx_str_starts(place.journal, CX_STR(CX_RUN_ACTOR_PREFIX)))
        return damaged(run, err);
    cx_status status = cx_home_entry(index->home, place.journal, place.seq, arena, out, err);
    if (status.code == CX_E_NOT_FOUND)
        return damaged(run, err);
    CX_TRY(status);
    CX_TRY(cx_run_entry_about_read(&out->entry, arena, out_about, &ours, err));
    return ours && cx_str_eq(out_about->run_id, cx_str_from(run->id, run->id_size))
               ? CX_SUCCESS
               : damaged(run, err);
}

static cx_status put_link(cx_run_index *index, known_run *run, uint32_t number,
                          const cx_digest *link, cx_err *err)
{
    while (run->links.count < number) {
        cx_digest *slot = cx_vec_push(&run->links, index->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        memset(slot, 0, sizeof *slot);
        index->links++;
    }
    run->links.items[number - 1] = *link;
    return CX_SUCCESS;
}

static cx_status read_events(cx_run_index *index, known_run *run, const run_rows *rows,
                             cx_arena *arena, cx_err *err)
{
    for (size_t i = 0; i < rows->unread.count; i++) {
        const event_row *row = &rows->unread.items[i];
        cx_arena_mark mark = cx_arena_mark_now(arena);
        cx_entry_view entry;
        cx_run_entry_about about;
        CX_TRY(read_about(index, run, row->place, arena, &entry, &about, err));
        if (about.seal || about.index != row->index)
            return damaged(run, err);
        CX_TRY(put_link(index, run, row->index, &about.link, err));
        cx_arena_reset(arena, mark);
    }
    return CX_SUCCESS;
}

static cx_status read_seal(cx_run_index *index, known_run *run, const cx_run_row *first,
                           cx_arena *arena, cx_err *err)
{
    cx_entry_view entry;
    cx_run_entry_about about;
    if (!first->sealed || run->seal.size != 0)
        return CX_SUCCESS;
    CX_TRY(read_about(index, run, first->seal, arena, &entry, &about, err));
    if (!about.seal)
        return damaged(run, err);
    cx_buf_clear(&run->seal_journal);
    cx_buf_add_str(&run->seal_journal, first->seal.journal);
    CX_TRY(cx_buf_check(&run->seal_journal, err));
    cx_buf_add(&run->seal, entry.payload.data, entry.payload.size);
    run->seal_seq = first->seal.seq;
    return cx_buf_check(&run->seal, err);
}

static cx_status follow_rows(cx_run_index *index, known_run *run, const run_rows *rows,
                             cx_arena *arena, cx_err *err)
{
    if (!rows->changed)
        return CX_SUCCESS;
    if (!rows->first_only && rows->seen != rows->first.events)
        return damaged(run, err);
    CX_TRY(read_seal(index, run, &rows->first, arena, err));
    if (rows->first_only)
        return CX_SUCCESS;
    CX_TRY(read_events(index, run, rows, arena, err));
    cx_buf_clear(&run->first_row);
    cx_buf_add(&run->first_row, rows->first_bytes.data, rows->first_bytes.size);
    return cx_buf_check(&run->first_row, err);
}

/* Reads what is new of a run; needs the lock. */
static cx_status read_run(cx_run_index *index, known_run *run, bool first_only, cx_err *err)
{
    const uint64_t durable = cx_home_durable(index->home);
    if (run->is_read && durable != 0 && run->durable == durable) /* 0: it is not known */
        return CX_SUCCESS;
    cx_arena arena;
    cx_arena_init(&arena, index->alloc, 0);
    run_rows rows = {.run = run, .arena = &arena, .first_only = first_only};
    cx_status status = scan_rows(index, &rows, err);
    if (!cx_failed(status))
        status = follow_rows(index, run, &rows, &arena, err);
    if (!cx_failed(status) && !first_only) {
        run->is_read = true;
        run->durable = durable;
    }
    cx_vec_done(&rows.unread, arena.alloc);
    cx_arena_done(&arena);
    return status;
}

/* --- answering ------------------------------------------------------------------------------- */

static known_run *add_run(cx_run_index *index, cx_str run_id)
{
    if (index->runs.count >= RUNS_KEPT || index->links >= LINKS_KEPT)
        forget_runs(index);
    known_run *run = cx_alloc_zeroed(index->alloc, 1, sizeof *run);
    known_run **slot = run == NULL ? NULL : cx_vec_push(&index->runs, index->alloc);
    if (slot == NULL) {
        cx_alloc_free(index->alloc, run, sizeof *run);
        return NULL;
    }
    memcpy(run->id, run_id.data, run_id.size);
    run->id_size = run_id.size;
    cx_buf_init(&run->first_row, index->alloc);
    cx_buf_init(&run->seal, index->alloc);
    cx_buf_init(&run->seal_journal, index->alloc);
    *slot = run;
    return run;
}

static cx_status find_run(cx_run_index *index, cx_str run_id, known_run **out, cx_err *err)
{
    for (size_t i = 0; i < index->runs.count; i++) {
        known_run *run = index->runs.items[i];
        if (cx_str_eq(cx_str_from(run->id, run->id_size), run_id)) {
            *out = run;
            return CX_SUCCESS;
        }
    }
    *out = add_run(index, run_id);
    return *out == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status copy_run(const known_run *run, cx_arena *arena, cx_run_known *out, cx_err *err)
{
    cx_digest *links = CX_ARENA_ARRAY(arena, cx_digest, run->links.count + 1);
    if (links == NULL)
        return cx_fail_nomem(err);
    if (run->links.count != 0)
        memcpy(links, run->links.items, run->links.count * sizeof *links);
    out->witness.has_events = run->links.count != 0;
    out->witness.events = links;
    out->witness.event_count = run->links.count;
    cx_run_row first;
    if (run->first_row.size != 0 && cx_run_row_decode(cx_buf_bytes(&run->first_row), &first))
        out->journal = cx_arena_copy_str(arena, first.journal);
    if (run->seal.size == 0)
        return CX_SUCCESS;
    cx_str seal = cx_arena_copy_str(arena, cx_buf_str(&run->seal));
    out->actor = cx_arena_copy_str(arena, cx_buf_str(&run->seal_journal));
    if (seal.data == NULL || out->actor.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_json_read(seal, 0, arena, &out->seal, err));
    out->seal_index = run->seal_seq;
    out->sealed = true;
    return CX_SUCCESS;
}

cx_status cx_run_index_find(cx_run_index *index, cx_str run_id, cx_arena *arena, cx_run_known *out,
                            cx_err *err)
{
    known_run *run = NULL;
    memset(out, 0, sizeof *out);
    if (!cx_run_id_valid(run_id))
        return CX_SUCCESS;
    cx_lock_enter(&index->lock);
    cx_status status = find_run(index, run_id, &run, err);
    if (!cx_failed(status))
        status = read_run(index, run, false, err);
    if (!cx_failed(status))
        status = copy_run(run, arena, out, err);
    cx_lock_leave(&index->lock);
    if (out->sealed)
        out->witness.seal = &out->seal;
    return status;
}

/* A run that has a seal keeps it (I3); of one that has none only the first row is looked at. */
cx_status cx_run_index_sealed(cx_run_index *index, cx_str run_id, bool *out, cx_err *err)
{
    known_run *run = NULL;
    *out = false;
    if (!cx_run_id_valid(run_id))
        return CX_SUCCESS;
    cx_lock_enter(&index->lock);
    cx_status status = find_run(index, run_id, &run, err);
    if (!cx_failed(status) && run->seal.size == 0)
        status = read_run(index, run, true, err);
    *out = !cx_failed(status) && run->seal.size != 0;
    cx_lock_leave(&index->lock);
    return status;
}

/*
 * commit.c - one change of a part's files in one transaction (F1, F5).
 *
 * Writes alone are one statement, and so one round trip:
 *
 *     WITH g AS (UPDATE cx_part .. WHERE part, epoch, owner, next, head RETURNING part, num),
 *          c AS (INSERT INTO cx_commit .. FROM g), e AS (INSERT INTO cx_extent .. FROM g), ..
 *     SELECT count(*) FROM g
 *
 * All rows come from g, so that without the guard's row nothing is there.  A change of names or
 * sizes, or one with many bytes, is a transaction of several statements that begins with the guard.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fleet/internal.h"

/* The same change is sent so often, when the server says that nothing happened. */
#define TRIES_MAX 30
/* Bytes of writes in one statement. */
#define BATCH_BYTES (UINT64_C(16) << 20)
#define BATCH_WRITES 4096

typedef struct committing {
    cx_fleet *fleet;
    cx_fleet_part *part;
    const cx_fleet_change *change;
    const cx_fleet_write **sorted; /* by file, chunk, start */
    uint64_t bytes;
    bool chained; /* something is in the digest */
    uint8_t nonce[CX_FLEET_NONCE_SIZE];
    cx_digest digest, head;
    unsigned tries;
    uint64_t deadline_ns; /* of reaching the server */
    bool done;
} committing;

/* --- what is given ---------------------------------------------------------------------------- */

static int compare_writes(const void *a, const void *b)
{
    const cx_fleet_write *left = *(const cx_fleet_write *const *)a;
    const cx_fleet_write *right = *(const cx_fleet_write *const *)b;
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    if (left->chunk != right->chunk)
        return left->chunk < right->chunk ? -1 : 1;
    return left->start < right->start ? -1 : left->start > right->start;
}

static void make_digest(committing *c)
{
    cx_sha256 hash;
    cx_fleet_digest_begin(&hash, c->nonce);
    for (size_t i = 0; i < c->change->write_count; i++) {
        const cx_fleet_write *w = c->sorted[i];
        if (w->derived)
            continue;
        c->chained = true;
        cx_fleet_digest_add(&hash, w->file, w->chunk, w->start, w->bytes);
    }
    c->digest = cx_sha256_end(&hash);
}

static cx_status prepare(committing *c, cx_err *err)
{
    const cx_fleet_change *change = c->change;
    const cx_io *io = c->fleet->io;
    CX_ASSERT(change->write_count + change->file_count != 0);
    c->sorted = CX_ARENA_ARRAY(&c->fleet->arena, const cx_fleet_write *, change->write_count + 1);
    if (c->sorted == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < change->write_count; i++) {
        const cx_fleet_write *w = &change->writes[i];
        CX_ASSERT(w->bytes.size != 0 && w->start + w->bytes.size <= CX_FLEET_CHUNK);
        CX_ASSERT(!w->whole || (w->start == 0 && !w->derived));
        c->sorted[i] = w;
        c->bytes += w->bytes.size;
    }
    if (c->bytes > CX_FLEET_CHANGE_MAX)
        return cx_fail(err, CX_E_LIMIT, "one commit has at most %llu bytes",
                       (unsigned long long)CX_FLEET_CHANGE_MAX);
    if (change->write_count > 1)
        qsort(c->sorted, change->write_count, sizeof(*c->sorted), compare_writes);
    int failed = io->random(io, c->nonce, sizeof c->nonce);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    make_digest(c);
    return CX_SUCCESS;
}

/* --- statements ------------------------------------------------------------------------------- */

/* Extents as parallel lists for a statement; memory of the call. */
typedef struct extents {
    int64_t *files, *chunks, *starts;
    cx_str *bytes;
    size_t count;
} extents;

typedef struct batch {
    extents fresh, whole, derived;
} batch;

static cx_status init_extents(cx_arena *arena, size_t count, extents *out, cx_err *err)
{
    *out = (extents){.files = CX_ARENA_ARRAY(arena, int64_t, count),
                     .chunks = CX_ARENA_ARRAY(arena, int64_t, count),
                     .starts = CX_ARENA_ARRAY(arena, int64_t, count),
                     .bytes = CX_ARENA_ARRAY(arena, cx_str, count)};
    return out->files != NULL && out->chunks != NULL && out->starts != NULL && out->bytes != NULL
               ? CX_SUCCESS
               : cx_fail_nomem(err);
}

static void add_extent(extents *to, const cx_fleet_write *w)
{
    to->files[to->count] = (int64_t)w->file;
    to->chunks[to->count] = (int64_t)w->chunk;
    to->starts[to->count] = w->start;
    to->bytes[to->count++] = cx_bytes_str(w->bytes);
}

/* The writes from *at on that go into one statement. */
static cx_status next_batch(const committing *c, size_t *at, batch *out, cx_err *err)
{
    cx_arena *arena = &c->fleet->arena;
    size_t left = c->change->write_count - *at;
    size_t room = left < BATCH_WRITES ? left : BATCH_WRITES;
    uint64_t bytes = 0;
    CX_TRY(init_extents(arena, room + 1, &out->fresh, err));
    CX_TRY(init_extents(arena, room + 1, &out->whole, err));
    CX_TRY(init_extents(arena, room + 1, &out->derived, err));
    for (size_t i = 0; i < room && bytes < BATCH_BYTES; i++, ++*at) {
        const cx_fleet_write *w = c->sorted[*at];
        add_extent(w->derived ? &out->derived : w->whole ? &out->whole : &out->fresh, w);
        bytes += w->bytes.size;
    }
    return CX_SUCCESS;
}

/* The guard: $1 part, $2 epoch, $3 next, $4 head, $5 new head, $6 bytes, $7 lease, $8 owner, $9
 * strict, $10 digest, $11 nonce. */
#define GUARD_VALUES 11

static void add_guard(cx_buf *sql)
{
    cx_buf_add_z(sql, "WITH g AS (UPDATE " CX_T_PART
                      " SET next = next + 1, head = $5, bytes = bytes + $6, lease_until = now() + "
                      "$7 * interval '1 millisecond' WHERE part = $1");
    if (CX_FLEET_RULE(CX_RULE_GUARD))
        cx_buf_add_z(sql, " AND epoch = $2 AND next = $3 AND head = $4 AND owner = $8");
    cx_buf_add_z(sql, " AND (NOT $9 OR " CX_FLEET_STRICT ") RETURNING part, next - 1 AS num, "
                      "coalesce(quota_bytes, 0) AS quota), "
                      "c AS (INSERT INTO " CX_T_COMMIT
                      " SELECT part, num, $2, $4, $5, $10, $11 FROM g)");
}

/* Lists begin at parameter `first`; `g` has part and number. */
static void add_lists(cx_buf *sql, unsigned first, const batch *b)
{
#define INSERT_EXTENTS                                                               \
    "(INSERT INTO " CX_T_EXTENT " SELECT g.part, u.f, u.c, u.s, g.num, u.b FROM g, " \
    "unnest($%u, $%u, $%u, $%u) u(f, c, s, b)"
#define ON_SAME                                                                          \
    " ON CONFLICT (part, file, chunk, start) DO UPDATE SET num = excluded.num, bytes = " \
    "excluded.bytes"
    if (b->fresh.count != 0)
        cx_buf_printf(sql, ", e AS " INSERT_EXTENTS ")", first, first + 1, first + 2, first + 3);
    first += 4;
    if (b->whole.count != 0) {
        cx_buf_printf(sql, ", w AS " INSERT_EXTENTS ON_SAME ")", first, first + 1, first + 2,
                      first + 3);
        cx_buf_printf(sql,
                      ", x AS (DELETE FROM " CX_T_EXTENT " x USING g, unnest($%u, $%u) u(f, c) "
                      "WHERE x.part = g.part AND x.file = u.f AND x.chunk = u.c AND x.start <> 0)",
                      first, first + 1);
        /* A join: as a condition it would be looked at for each commit of the part. */
        cx_buf_printf(sql,
                      ", o AS (UPDATE " CX_T_COMMIT " o SET nonce = NULL FROM g, "
                      "unnest($%u, $%u) u(f, c), " CX_T_EXTENT " y WHERE y.part = g.part AND "
                      "y.file = u.f AND y.chunk = u.c AND o.part = y.part AND o.num = y.num AND "
                      "o.nonce IS NOT NULL)",
                      first, first + 1);
    }
    first += 4;
    if (b->derived.count != 0)
        cx_buf_printf(sql, ", d AS " INSERT_EXTENTS ON_SAME ")", first, first + 1, first + 2,
                      first + 3);
}

static size_t put_list(cx_pg_value *values, const extents *list)
{
    values[0] = (cx_pg_value){.type = CX_PG_INTS, .times = list->files, .count = list->count};
    values[1] = (cx_pg_value){.type = CX_PG_INTS, .times = list->chunks, .count = list->count};
    values[2] = (cx_pg_value){.type = CX_PG_INTS, .times = list->starts, .count = list->count};
    values[3] = (cx_pg_value){.type = CX_PG_BLOBS, .items = list->bytes, .count = list->count};
    return 4;
}

static size_t put_lists(cx_pg_value *values, const batch *b)
{
    size_t count = put_list(values, &b->fresh);
    count += put_list(values + count, &b->whole);
    return count + put_list(values + count, &b->derived);
}

static size_t put_guard(const committing *c, cx_pg_value *values)
{
    const cx_fleet *fleet = c->fleet;
    const cx_fleet_part *part = c->part;
    const cx_pg_value given[GUARD_VALUES] = {
        cx_fleet_int(part->number),
        cx_fleet_int(part->epoch),
        cx_fleet_int(part->next),
        cx_fleet_digest(&part->head),
        cx_fleet_digest(&c->head),
        cx_fleet_int(c->bytes),
        cx_fleet_int(fleet->lease_ms),
        cx_fleet_text(fleet->owner),
        {.type = CX_PG_BOOL, .b = fleet->strict},
        cx_fleet_digest(&c->digest),
        cx_fleet_bytes(c->nonce, sizeof c->nonce),
    };
    memcpy(values, given, sizeof given);
    values[GUARD_VALUES - 1].null = !c->chained;
    return GUARD_VALUES;
}

typedef struct guarded {
    int64_t count; /* rows of the guard */
    int64_t quota;
} guarded;

static cx_status read_guarded(void *arg, const cx_pg_value *columns, cx_err *err)
{
    guarded *out = arg;
    (void)err;
    *out = (guarded){columns[0].i, columns[1].i};
    return CX_SUCCESS;
}

static cx_status run_counted(cx_fleet *fleet, const cx_pg_value *values, size_t count, guarded *out,
                             cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_INT};
    cx_buf_add_z(&fleet->sql, " SELECT count(*), coalesce(max(quota), 0) FROM g");
    cx_buf_add_byte(&fleet->sql, 0);
    CX_TRY(cx_buf_check(&fleet->sql, err));
    return cx_pg_query(fleet->pg, (const char *)fleet->sql.data, values, count, types,
                       CX_COUNT_OF(types), read_guarded, out, NULL, err);
}

/* --- one statement ---------------------------------------------------------------------------- */

static bool is_one_statement(const committing *c)
{
    return c->change->file_count == 0 && c->bytes <= BATCH_BYTES &&
           c->change->write_count <= BATCH_WRITES;
}

static cx_status send_one(committing *c, guarded *out, cx_err *err)
{
    cx_pg_value values[GUARD_VALUES + 12];
    size_t at = 0, count = put_guard(c, values);
    batch b = {0};
    cx_buf_clear(&c->fleet->sql);
    add_guard(&c->fleet->sql);
    CX_TRY(next_batch(c, &at, &b, err));
    add_lists(&c->fleet->sql, GUARD_VALUES + 1, &b);
    count += put_lists(values + count, &b);
    return run_counted(c->fleet, values, count, out, err);
}

/* --- a transaction ---------------------------------------------------------------------------- */

/* What a derived file had is in no digest: the nonces of its commits stay.  Their numbers are a
 * list before the commits are looked at, so that these are found by their key whatever the server
 * thinks of the sizes of the tables. */
#define FORGET_NONCES(from)                                                                \
    "o AS (UPDATE " CX_T_COMMIT " SET nonce = NULL WHERE part = $1 AND nonce IS NOT NULL " \
    "AND num = ANY (ARRAY(SELECT DISTINCT e.num FROM " CX_T_EXTENT " e, " from " AND NOT " \
    "f.derived)))"
#define FORGET_FILE(where)                                                                      \
    "WITH f AS (SELECT file, derived FROM " CX_T_FILE " WHERE part = $1 AND " where             \
    "), " FORGET_NONCES(                                                                        \
        "f WHERE e.part = $1 AND e.file = f.file") ", "                                         \
                                                   "x AS (DELETE FROM " CX_T_EXTENT             \
                                                   " e USING f WHERE e.part = $1 AND e.file = " \
                                                   "f.file) "                                   \
                                                   "DELETE FROM " CX_T_FILE                     \
                                                   " d USING f WHERE d.part = $1 AND d.file = " \
                                                   "f.file"

static cx_status run_on_file(cx_fleet *fleet, const char *sql, const cx_pg_value *values,
                             size_t count, cx_err *err)
{
    return cx_pg_query(fleet->pg, sql, values, count, NULL, 0, NULL, NULL, NULL, err);
}

static cx_status send_file(const committing *c, const cx_fleet_file_change *f, cx_err *err)
{
    cx_fleet *fleet = c->fleet;
    const cx_pg_value part = cx_fleet_int(c->part->number), file = cx_fleet_int(f->file);
    const cx_pg_value made[] = {
        part, file, cx_fleet_str(f->name), {.type = CX_PG_BOOL, .b = f->derived}};
    const cx_pg_value name[] = {part, cx_fleet_str(f->name), file};
    const cx_pg_value number[] = {part, file, cx_fleet_int(f->size)};
    switch (f->op) {
    case CX_FLEET_MAKE:
        return run_on_file(fleet,
                           "INSERT INTO " CX_T_FILE " (part, file, name, derived) "
                           "VALUES ($1, $2, $3, $4)",
                           made, 4, err);
    case CX_FLEET_RENAME:
        CX_TRY(run_on_file(fleet, FORGET_FILE("name = $2 AND file <> $3"), name, 3, err));
        return run_on_file(fleet,
                           "UPDATE " CX_T_FILE " SET name = $2 WHERE part = $1 AND file = $3", name,
                           3, err);
    case CX_FLEET_REMOVE: return run_on_file(fleet, FORGET_FILE("file = $2"), number, 2, err);
    default:
        CX_TRY(run_on_file(
            fleet,
            "WITH " FORGET_NONCES(
                CX_T_FILE " f WHERE f.part = $1 AND f.file = $2 AND e.part = $1 AND "
                          "e.file = $2 AND e.chunk * 65536 >= $3") " DELETE FROM " CX_T_EXTENT
                                                                   " WHERE part = $1 AND file = $2 "
                                                                   "AND chunk * 65536 >= $3",
            number, 3, err));
        return run_on_file(fleet,
                           "UPDATE " CX_T_FILE " SET size = $3 WHERE part = $1 AND file = $2",
                           number, 3, err);
    }
}

static cx_status send_batch(const committing *c, const batch *b, cx_err *err)
{
    cx_pg_value values[14] = {cx_fleet_int(c->part->number), cx_fleet_int(c->part->next)};
    guarded ignored = {0};
    cx_buf_clear(&c->fleet->sql);
    cx_buf_add_z(&c->fleet->sql, "WITH g AS (SELECT $1::bigint AS part, $2::bigint AS num, "
                                 "0::bigint AS quota)");
    add_lists(&c->fleet->sql, 3, b);
    return run_counted(c->fleet, values, 2 + put_lists(values + 2, b), &ignored, err);
}

static cx_status send_parts(committing *c, guarded *out, cx_err *err)
{
    cx_pg_value values[GUARD_VALUES];
    size_t count = put_guard(c, values);
    CX_TRY(cx_pg_begin(c->fleet->pg, err));
    cx_buf_clear(&c->fleet->sql);
    add_guard(&c->fleet->sql);
    CX_TRY(run_counted(c->fleet, values, count, out, err));
    if (out->count == 0)
        return CX_SUCCESS;
    for (size_t i = 0; i < c->change->file_count; i++)
        CX_TRY(send_file(c, &c->change->files[i], err));
    for (size_t at = 0; at < c->change->write_count;) {
        cx_arena_mark mark = cx_arena_mark_now(&c->fleet->arena);
        batch b = {0};
        CX_TRY(next_batch(c, &at, &b, err));
        CX_TRY(send_batch(c, &b, err));
        cx_arena_reset(&c->fleet->arena, mark);
    }
    return CX_SUCCESS;
}

/* What went wrong before COMMIT was sent has not happened. */
static cx_fleet_outcome before_commit(cx_fleet *fleet, cx_status status)
{
    cx_fleet_outcome outcome = cx_fleet_outcome_of(fleet, status);
    return outcome == CX_OUTCOME_UNKNOWN ? CX_OUTCOME_AGAIN : outcome;
}

static cx_fleet_outcome send_transaction(committing *c, guarded *out, cx_status *out_status,
                                         cx_err *err)
{
    cx_fleet *fleet = c->fleet;
    cx_fleet_outcome outcome;
    *out_status = send_parts(c, out, err);
    if (cx_failed(*out_status)) {
        outcome = before_commit(fleet, *out_status);
        cx_pg_rollback(fleet->pg);
        return outcome;
    }
    if (out->count == 0) {
        cx_pg_rollback(fleet->pg);
        return CX_OUTCOME_DONE;
    }
    *out_status = cx_pg_commit(fleet->pg, err);
    outcome = cx_fleet_outcome_of(fleet, *out_status);
    if (outcome != CX_OUTCOME_DONE)
        cx_pg_rollback(fleet->pg);
    return outcome;
}

/* --- what became of it ------------------------------------------------------------------------ */

static void is_there(committing *c)
{
    c->part->next++;
    c->part->head = c->head;
    c->done = true;
}

static cx_status resolve(committing *c, cx_err *err)
{
    bool there = false;
    CX_TRY(cx_fleet_resolve(c->fleet, c->part, &c->head, &there, err));
    if (there) {
        is_there(c);
        return CX_SUCCESS;
    }
    if (c->part->owned)
        return CX_SUCCESS; /* it is sent again */
    return cx_fail_at(err, CX_E_CONFLICT, "Fenced", CX_NO_OFFSET,
                      "part %u was taken by another process; nothing was written", c->part->number);
}

static cx_status guard_found_nothing(committing *c, cx_err *err)
{
    bool again;
    CX_TRY(cx_fleet_why_refused(c->fleet, c->part, &again, err));
    cx_fleet_pause(c->fleet, c->tries);
    return CX_SUCCESS;
}

/* *out false: the server was not reached, and is tried again: it may be another one soon. */
static cx_status reach(committing *c, bool *out, cx_err *err)
{
    const cx_io *io = c->fleet->io;
    cx_status status = cx_fleet_need_connection(c->fleet, err);
    *out = !cx_failed(status);
    if (*out)
        return CX_SUCCESS;
    if (io->monotonic_ns(io) >= c->deadline_ns || status.code == CX_E_DENIED ||
        status.code == CX_E_USAGE)
        return status;
    cx_fleet_pause(c->fleet, c->tries);
    return CX_SUCCESS;
}

/* One attempt. */
static cx_status commit_once(committing *c, cx_err *err)
{
    guarded guard = {0};
    cx_status status;
    cx_fleet_outcome outcome;
    bool there;
    CX_TRY(reach(c, &there, err));
    if (!there)
        return CX_SUCCESS;
    c->head = cx_fleet_next_head(&c->part->head, c->part->number, c->part->epoch, c->part->next,
                                 &c->digest);
    if (is_one_statement(c)) {
        status = send_one(c, &guard, err);
        outcome = cx_fleet_outcome_of(c->fleet, status);
    } else {
        outcome = send_transaction(c, &guard, &status, err);
    }
    switch (outcome) {
    case CX_OUTCOME_DONE:
        if (guard.count == 0)
            return guard_found_nothing(c, err);
        c->part->quota = (uint64_t)guard.quota;
        is_there(c);
        return CX_SUCCESS;
    case CX_OUTCOME_UNKNOWN: return resolve(c, err);
    case CX_OUTCOME_REPEATED:
        return cx_fleet_stop(c->fleet, c->part, "it has bytes where none were written", err);
    case CX_OUTCOME_FULL:
        return cx_fail_at(err, CX_E_IO, "DatabaseFull", CX_NO_OFFSET,
                          "part %u: the disk of the database is full; nothing was written",
                          c->part->number);
    case CX_OUTCOME_AGAIN: cx_fleet_pause(c->fleet, c->tries); return CX_SUCCESS;
    case CX_OUTCOME_ELSEWHERE:
        cx_fleet_pause(c->fleet, c->tries);
        c->fleet->session_set = false; /* so that it is connected again */
        return CX_SUCCESS;
    default: return status;
    }
}

static cx_status commit_all(committing *c, cx_err *err)
{
    CX_TRY(prepare(c, err));
    c->deadline_ns = cx_fleet_deadline(c->fleet);
    for (c->tries = 0; !c->done; c->tries++) {
        if (c->tries == TRIES_MAX)
            return cx_fail_at(err, CX_E_BUSY, "DatabaseAway", CX_NO_OFFSET,
                              "part %u: the database refused the same commit %d times; nothing was "
                              "written",
                              c->part->number, TRIES_MAX);
        cx_arena_mark mark = cx_arena_mark_now(&c->fleet->arena);
        cx_status status = commit_once(c, err);
        cx_arena_reset(&c->fleet->arena, mark);
        CX_TRY(status);
    }
    return CX_SUCCESS;
}

cx_status cx_fleet_commit(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_change *change,
                          cx_err *err)
{
    committing c = {.fleet = fleet, .part = part, .change = change};
    CX_ASSERT(part->owned);
    cx_arena_mark mark = cx_arena_mark_now(&fleet->arena);
    cx_status status = commit_all(&c, err);
    cx_arena_reset(&fleet->arena, mark);
    return status;
}

/*
 * append.c - a group in one statement, which is one transaction and one round trip (F1, F4, F5).
 *
 *     WITH g AS (UPDATE cx_part .. WHERE part, epoch, owner, next, head RETURNING ..),
 *          i AS (INSERT INTO cx_group .. FROM g), ..
 *     SELECT count(*) FROM g
 *
 * Rows are inserted from g, so that without the guard's row nothing is.  Where a key is there
 * already the unique index refuses the whole statement; the keys are then looked up, and the rest
 * is sent.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fleet/internal.h"

/* The same group is sent so often, when the server says that nothing happened. */
#define TRIES_MAX 30

typedef struct appending {
    cx_fleet *fleet;
    cx_fleet_part *part;
    const cx_fleet_record *records;
    size_t count;
    cx_fleet_place *places;
    bool *placed;  /* by record */
    size_t *batch; /* indexes of those that are sent */
    size_t batch_count;
    size_t *same_as; /* by record: an earlier one with its key, or itself */
    cx_log_frame *frames;
    uint64_t *sizes; /* of erasable parts, by place in the batch */
    cx_digest head;  /* after the group */
    unsigned tries;
} appending;

/* --- checking what is given ------------------------------------------------------------------- */

static cx_status check_records(const cx_fleet_record *records, size_t count, cx_err *err)
{
    uint64_t bytes = 0;
    if (count == 0 || count > CX_FLEET_RECORDS_MAX)
        return cx_fail(err, CX_E_LIMIT, "a group has 1 to %d records", CX_FLEET_RECORDS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (records[i].key.size > CX_FLEET_KEY_MAX)
            return cx_fail(err, CX_E_LIMIT, "a sender's key has at most %d bytes",
                           CX_FLEET_KEY_MAX);
        bytes += records[i].frame.guarded.size + records[i].frame.erasable.size;
        if (bytes > CX_FLEET_GROUP_MAX)
            return cx_fail(err, CX_E_LIMIT, "a group has at most %llu bytes",
                           (unsigned long long)CX_FLEET_GROUP_MAX);
    }
    return CX_SUCCESS;
}

typedef struct keyed {
    cx_bytes key;
    size_t index;
} keyed;

static int compare_keys(const void *a, const void *b)
{
    const keyed *left = a, *right = b;
    int order = cx_str_cmp(cx_bytes_str(left->key), cx_bytes_str(right->key));
    return order != 0 ? order : left->index < right->index ? -1 : 1;
}

/* Of several records with one key in the same call the first counts. */
static cx_status find_same_keys(appending *a, cx_err *err)
{
    keyed *list = CX_ARENA_ARRAY(&a->fleet->arena, keyed, a->count);
    size_t count = 0;
    if (list == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < a->count; i++) {
        a->same_as[i] = i;
        if (a->records[i].key.size != 0 && CX_FLEET_RULE(CX_RULE_KEYS))
            list[count++] = (keyed){a->records[i].key, i};
    }
    if (count > 1)
        qsort(list, count, sizeof *list, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (cx_str_eq(cx_bytes_str(list[i].key), cx_bytes_str(list[i - 1].key)))
            a->same_as[list[i].index] = a->same_as[list[i - 1].index];
    return CX_SUCCESS;
}

static cx_status prepare(appending *a, cx_err *err)
{
    cx_arena *arena = &a->fleet->arena;
    a->placed = CX_ARENA_ARRAY(arena, bool, a->count);
    a->batch = CX_ARENA_ARRAY(arena, size_t, a->count);
    a->same_as = CX_ARENA_ARRAY(arena, size_t, a->count);
    a->frames = CX_ARENA_ARRAY(arena, cx_log_frame, a->count);
    a->sizes = CX_ARENA_ARRAY(arena, uint64_t, a->count);
    if (a->placed == NULL || a->batch == NULL || a->same_as == NULL || a->frames == NULL ||
        a->sizes == NULL)
        return cx_fail_nomem(err);
    memset(a->placed, 0, a->count * sizeof *a->placed);
    return find_same_keys(a, err);
}

/* --- the group -------------------------------------------------------------------------------- */

static cx_status encode_group(appending *a, cx_err *err)
{
    cx_fleet *fleet = a->fleet;
    cx_log_group_id id = {.number = a->part->next};
    memcpy(id.home_id, a->part->home_id, sizeof id.home_id);
    a->batch_count = 0;
    for (size_t i = 0; i < a->count; i++) {
        if (a->placed[i] || a->same_as[i] != i)
            continue;
        a->frames[a->batch_count] = a->records[i].frame;
        a->batch[a->batch_count++] = i;
    }
    if (a->batch_count == 0)
        return CX_SUCCESS;
    cx_buf_clear(&fleet->guarded);
    cx_buf_clear(&fleet->erasable);
    CX_TRY(cx_log_group_encode(&id, a->frames, a->batch_count, &fleet->guarded, &fleet->erasable,
                               a->sizes, err));
    a->head = cx_fleet_next_head(&a->part->head, a->part->number, a->part->epoch, a->part->next,
                                 cx_buf_bytes(&fleet->guarded));
    return CX_SUCCESS;
}

/* Lists for the statement; memory of the call. */
typedef struct lists {
    cx_str *pieces, *live, *keys, *actors;
    int64_t *live_frames, *key_frames;
    size_t piece_count, live_count, key_count, actor_count;
} lists;

static cx_status list_pieces(const appending *a, lists *out, cx_err *err)
{
    const cx_buf *all = &a->fleet->guarded;
    if (all->size <= CX_FLEET_PIECE)
        return CX_SUCCESS;
    size_t count = (all->size + CX_FLEET_PIECE - 1) / CX_FLEET_PIECE;
    out->pieces = CX_ARENA_ARRAY(&a->fleet->arena, cx_str, count);
    if (out->pieces == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        size_t at = i * CX_FLEET_PIECE, left = all->size - at;
        out->pieces[i] = (cx_str){(const char *)all->data + at,
                                  left < CX_FLEET_PIECE ? left : (size_t)CX_FLEET_PIECE};
    }
    out->piece_count = count;
    return CX_SUCCESS;
}

static cx_status make_lists(const appending *a, lists *out, cx_err *err)
{
    cx_arena *arena = &a->fleet->arena;
    size_t at = 0;
    *out = (lists){.live = CX_ARENA_ARRAY(arena, cx_str, a->batch_count),
                   .keys = CX_ARENA_ARRAY(arena, cx_str, a->batch_count),
                   .actors = CX_ARENA_ARRAY(arena, cx_str, a->batch_count),
                   .live_frames = CX_ARENA_ARRAY(arena, int64_t, a->batch_count),
                   .key_frames = CX_ARENA_ARRAY(arena, int64_t, a->batch_count)};
    if (out->live == NULL || out->keys == NULL || out->actors == NULL || out->live_frames == NULL ||
        out->key_frames == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < a->batch_count; i++) {
        const cx_fleet_record *record = &a->records[a->batch[i]];
        if (a->sizes[i] != 0) {
            out->live[out->live_count] =
                (cx_str){(const char *)a->fleet->erasable.data + at, (size_t)a->sizes[i]};
            out->live_frames[out->live_count++] = (int64_t)i;
            at += (size_t)a->sizes[i];
        }
        if (record->key.size != 0 && CX_FLEET_RULE(CX_RULE_KEYS)) {
            out->keys[out->key_count] = cx_bytes_str(record->key);
            out->key_frames[out->key_count++] = (int64_t)i;
        }
        if (record->actor.size != 0)
            out->actors[out->actor_count++] = record->actor;
    }
    return list_pieces(a, out, err);
}

/* --- the statement ---------------------------------------------------------------------------- */

static cx_status write_sql(cx_buf *sql, const lists *given, cx_err *err)
{
    cx_buf_clear(sql);
    cx_buf_add_z(sql, "WITH g AS (UPDATE " CX_T_PART " SET next = next + 1, "
                      "head = $5, frames = frames + $6, bytes = bytes + $7, lease_until = now() + "
                      "$8 * interval '1 millisecond' WHERE part = $1");
    if (CX_FLEET_RULE(CX_RULE_GUARD))
        cx_buf_add_z(sql, " AND epoch = $2 AND next = $3 AND head = $4 AND owner = $9");
    cx_buf_add_z(sql,
                 " AND (NOT $10 OR " CX_FLEET_STRICT ") RETURNING part, next - 1 AS num), "
                 "i AS (INSERT INTO " CX_T_GROUP " SELECT part, num, $2, $4, $5, $6, $11 FROM g)");
    if (given->piece_count != 0)
        cx_buf_add_z(sql, ", p AS (INSERT INTO " CX_T_PIECE " SELECT g.part, g.num, "
                          "u.n - 1, u.b FROM g, unnest($12) WITH ORDINALITY u(b, n))");
    if (given->live_count != 0)
        cx_buf_add_z(sql, ", l AS (INSERT INTO " CX_T_LIVE " SELECT g.part, g.num, "
                          "u.f, u.b FROM g, unnest($13, $14) u(f, b))");
    if (given->key_count != 0)
        cx_buf_add_z(sql, ", s AS (INSERT INTO " CX_T_SEEN " SELECT g.part, u.k, "
                          "g.num, u.f FROM g, unnest($15, $16) u(k, f))");
    if (given->actor_count != 0)
        cx_buf_add_z(sql, ", a AS (INSERT INTO " CX_T_ACTOR " SELECT g.part, u.a, "
                          "g.num FROM g, unnest($17) u(a))");
    cx_buf_add_z(sql, " SELECT count(*) FROM g");
    cx_buf_add_byte(sql, 0);
    return cx_buf_check(sql, err);
}

static cx_status read_count(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(int64_t *)arg = columns[0].i;
    return CX_SUCCESS;
}

/* *out_count: 1, or 0 where the guard found no row. */
static cx_status send_group(appending *a, int64_t *out_count, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    cx_fleet *fleet = a->fleet;
    const cx_fleet_part *part = a->part;
    lists given;
    CX_TRY(make_lists(a, &given, err));
    CX_TRY(write_sql(&fleet->sql, &given, err));
    cx_pg_value whole = cx_fleet_bytes(fleet->guarded.data, fleet->guarded.size);
    whole.null = given.piece_count != 0;
    const cx_pg_value values[] = {
        cx_fleet_int(part->number),
        cx_fleet_int(part->epoch),
        cx_fleet_int(part->next),
        cx_fleet_digest(&part->head),
        cx_fleet_digest(&a->head),
        cx_fleet_int(a->batch_count),
        cx_fleet_int(fleet->guarded.size + fleet->erasable.size),
        cx_fleet_int(fleet->lease_ms),
        cx_fleet_text(fleet->owner),
        {.type = CX_PG_BOOL, .b = fleet->strict},
        whole,
        {.type = CX_PG_BLOBS, .items = given.pieces, .count = given.piece_count},
        {.type = CX_PG_INTS, .times = given.live_frames, .count = given.live_count},
        {.type = CX_PG_BLOBS, .items = given.live, .count = given.live_count},
        {.type = CX_PG_BLOBS, .items = given.keys, .count = given.key_count},
        {.type = CX_PG_INTS, .times = given.key_frames, .count = given.key_count},
        {.type = CX_PG_BLOBS, .items = given.actors, .count = given.actor_count},
    };
    return cx_pg_query(fleet->pg, (const char *)fleet->sql.data, values, CX_COUNT_OF(values), types,
                       1, read_count, out_count, NULL, err);
}

/* --- what became of it ------------------------------------------------------------------------ */

static void group_is_there(appending *a)
{
    for (size_t i = 0; i < a->batch_count; i++) {
        a->places[a->batch[i]] = (cx_fleet_place){.num = a->part->next, .frame = i};
        a->placed[a->batch[i]] = true;
    }
    a->part->next++;
    a->part->head = a->head;
}

typedef struct found_keys {
    appending *a;
    size_t count;
} found_keys;

static cx_status read_place(void *arg, const cx_pg_value *columns, cx_err *err)
{
    found_keys *found = arg;
    appending *a = found->a;
    uint64_t at = (uint64_t)columns[0].i - 1;
    if (at >= a->batch_count)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the database answered about a key that was not asked for");
    size_t index = a->batch[at];
    a->places[index] = (cx_fleet_place){
        .num = (uint64_t)columns[1].i, .frame = (uint64_t)columns[2].i, .repeated = true};
    found->count += !a->placed[index];
    a->placed[index] = true;
    return CX_SUCCESS;
}

/* A unique key was there: senders' keys, an actor, or (F7) the group itself. */
static cx_status find_repeated(appending *a, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_INT, CX_PG_INT};
    cx_str *keys = CX_ARENA_ARRAY(&a->fleet->arena, cx_str, a->batch_count);
    found_keys found = {.a = a};
    bool has_actor = false;
    if (keys == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < a->batch_count; i++) {
        keys[i] = cx_bytes_str(a->records[a->batch[i]].key);
        has_actor = has_actor || a->records[a->batch[i]].actor.size != 0;
    }
    const cx_pg_value values[] = {cx_fleet_int(a->part->number),
                                  {.type = CX_PG_BLOBS, .items = keys, .count = a->batch_count}};
    CX_TRY(cx_pg_query(
        a->fleet->pg,
        "SELECT u.n, s.num, s.frame FROM unnest($2) WITH ORDINALITY u(k, n) JOIN " CX_T_SEEN
        " s ON s.part = $1 AND s.key = u.k",
        values, CX_COUNT_OF(values), types, CX_COUNT_OF(types), read_place, &found, NULL, err));
    if (found.count != 0)
        return CX_SUCCESS;
    if (has_actor)
        return cx_fail_at(err, CX_E_EXISTS, "ActorExists", CX_NO_OFFSET,
                          "part %u has an actor of that name already", a->part->number);
    return cx_fleet_stop(a->fleet, a->part, "it has a group after its head", err);
}

static cx_status resolve_group(appending *a, cx_err *err)
{
    bool there = false;
    CX_TRY(cx_fleet_resolve(a->fleet, a->part, &a->head, &there, err));
    if (there) {
        group_is_there(a);
        return CX_SUCCESS;
    }
    if (a->part->owned)
        return CX_SUCCESS; /* it is sent again */
    return cx_fail_at(err, CX_E_CONFLICT, "Fenced", CX_NO_OFFSET,
                      "part %u was taken by another node; nothing was written", a->part->number);
}

static cx_status disk_full(const appending *a, cx_err *err)
{
    return cx_fail_at(err, CX_E_IO, "DatabaseFull", CX_NO_OFFSET,
                      "part %u: the disk of the database is full; nothing was written, and the "
                      "same may be sent again when there is room",
                      a->part->number);
}

static cx_status guard_found_nothing(appending *a, cx_err *err)
{
    bool again;
    CX_TRY(cx_fleet_why_refused(a->fleet, a->part, &again, err));
    cx_fleet_pause(a->fleet, a->tries);
    return CX_SUCCESS;
}

/* One attempt; on success what is placed, is. */
static cx_status append_once(appending *a, cx_err *err)
{
    int64_t count = 0;
    CX_TRY(cx_fleet_need_connection(a->fleet, err));
    cx_status status = send_group(a, &count, err);
    switch (cx_fleet_outcome_of(a->fleet, status)) {
    case CX_OUTCOME_DONE:
        if (count == 0)
            return guard_found_nothing(a, err);
        group_is_there(a);
        return CX_SUCCESS;
    case CX_OUTCOME_UNKNOWN: return resolve_group(a, err);
    case CX_OUTCOME_REPEATED: return find_repeated(a, err);
    case CX_OUTCOME_FULL: return disk_full(a, err);
    case CX_OUTCOME_AGAIN: cx_fleet_pause(a->fleet, a->tries); return CX_SUCCESS;
    case CX_OUTCOME_ELSEWHERE:
        cx_fleet_pause(a->fleet, a->tries);
        return cx_fleet_reconnect(a->fleet, err);
    default: return status;
    }
}

static cx_status append_all(appending *a, cx_err *err)
{
    CX_TRY(prepare(a, err));
    const cx_io *io = a->fleet->io;
    uint64_t deadline_ns = io->monotonic_ns(io) + UINT64_C(1000000) * a->fleet->resolve_ms;
    for (a->tries = 0; a->tries < TRIES_MAX; a->tries++) {
        cx_arena_mark mark = cx_arena_mark_now(&a->fleet->arena);
        CX_TRY(encode_group(a, err));
        if (a->batch_count == 0)
            return CX_SUCCESS;
        if (a->tries != 0 && io->monotonic_ns(io) >= deadline_ns)
            break;
        if (!a->part->owned)
            return cx_fail_at(err, CX_E_CONFLICT, "Fenced", CX_NO_OFFSET,
                              "part %u was taken by another node", a->part->number);
        CX_TRY(append_once(a, err));
        cx_arena_reset(&a->fleet->arena, mark);
    }
    return cx_fail_at(err, CX_E_BUSY, "DatabaseAway", CX_NO_OFFSET,
                      "part %u: the database refused the same group %u times; nothing was written",
                      a->part->number, a->tries);
}

cx_status cx_fleet_append(cx_fleet *fleet, cx_fleet_part *part, const cx_fleet_record *records,
                          size_t count, cx_fleet_place *out_places, cx_err *err)
{
    appending a = {
        .fleet = fleet, .part = part, .records = records, .count = count, .places = out_places};
    CX_ASSERT(!fleet->read_only);
    if (!part->owned)
        return cx_fail_at(err, CX_E_CONFLICT, "Fenced", CX_NO_OFFSET, "part %u is not this node's",
                          part->number);
    CX_TRY(check_records(records, count, err));
    cx_arena_mark mark = cx_arena_mark_now(&fleet->arena);
    cx_status status = append_all(&a, err);
    for (size_t i = 0; !cx_failed(status) && i < count; i++) {
        if (a.same_as[i] != i) {
            out_places[i] = out_places[a.same_as[i]];
            out_places[i].repeated = true;
        }
    }
    cx_arena_reset(&fleet->arena, mark);
    return status;
}

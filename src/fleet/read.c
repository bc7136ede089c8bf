/*
 * read.c - the groups of a part in order, each hash recomputed (F7).
 *
 * A database is believed no more than a disk: numbers, epochs, chain, checksums and sizes are
 * compared with what the bytes say.
 */
#include "fleet/internal.h"

/* Rows that are read at a time: at most this much memory, times CX_FLEET_PIECE. */
#define PAGE_ROWS 16

typedef struct group_row {
    uint64_t num, epoch, frames;
    cx_digest prev, head;
    size_t at, size; /* of its bytes in the page */
    bool in_pieces;
} group_row;

typedef struct reading {
    cx_fleet *fleet;
    unsigned part;
    uint8_t home_id[16];
    uint64_t next, epoch; /* the next number; the epoch before */
    cx_digest *head;
    cx_fleet_each_group *each;
    void *arg;
    group_row rows[PAGE_ROWS];
    size_t row_count;
    cx_buf page;   /* bytes of the rows */
    cx_buf pieces; /* of the group at hand */
    cx_buf live;   /* its erasable parts */
    CX_VEC(int64_t) live_frames;
    CX_VEC(size_t) live_sizes;
    cx_buf whole;
    cx_arena arena;
} reading;

static cx_status broken(const reading *r, uint64_t num, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET, "part %u, group %llu: %s",
                      r->part, (unsigned long long)num, what);
}

/* --- rows ------------------------------------------------------------------------------------- */

static cx_status read_group_row(void *arg, const cx_pg_value *columns, cx_err *err)
{
    reading *r = arg;
    if (r->row_count == PAGE_ROWS)
        return broken(r, r->next, "the database answered with more rows than were asked for", err);
    group_row *row = &r->rows[r->row_count++];
    *row = (group_row){.num = (uint64_t)columns[0].i,
                       .epoch = (uint64_t)columns[1].i,
                       .frames = (uint64_t)columns[4].i,
                       .at = r->page.size,
                       .in_pieces = columns[5].null};
    CX_TRY(cx_fleet_read_digest(&columns[2], &row->prev, err));
    CX_TRY(cx_fleet_read_digest(&columns[3], &row->head, err));
    if (!row->in_pieces)
        cx_buf_add_str(&r->page, columns[5].text);
    row->size = r->page.size - row->at;
    return cx_buf_check(&r->page, err);
}

static cx_status read_page(reading *r, uint64_t to, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT,   CX_PG_INT, CX_PG_BYTES,
                                       CX_PG_BYTES, CX_PG_INT, CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(r->part), cx_fleet_int(r->next), cx_fleet_int(to),
                                  cx_fleet_int(PAGE_ROWS)};
    r->row_count = 0;
    cx_buf_clear(&r->page);
    return cx_pg_query(r->fleet->pg,
                       "SELECT num, epoch, prev, head, frames, bytes FROM " CX_T_GROUP
                       " WHERE part = $1 AND num >= $2 AND num < $3 "
                       "ORDER BY num LIMIT $4",
                       values, CX_COUNT_OF(values), types, CX_COUNT_OF(types), read_group_row, r,
                       NULL, err);
}

static cx_status read_piece(void *arg, const cx_pg_value *columns, cx_err *err)
{
    reading *r = arg;
    if (r->pieces.size + columns[0].text.size > CX_FLEET_GROUP_MAX)
        return broken(r, r->next, "it is longer than a group can be", err);
    cx_buf_add_str(&r->pieces, columns[0].text);
    return cx_buf_check(&r->pieces, err);
}

static cx_status read_pieces(reading *r, uint64_t num, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(r->part), cx_fleet_int(num)};
    cx_buf_clear(&r->pieces);
    return cx_pg_query(r->fleet->pg,
                       "SELECT bytes FROM " CX_T_PIECE
                       " WHERE part = $1 AND num = $2 ORDER BY piece",
                       values, CX_COUNT_OF(values), types, 1, read_piece, r, NULL, err);
}

static cx_status read_live_row(void *arg, const cx_pg_value *columns, cx_err *err)
{
    reading *r = arg;
    if (r->live.size + columns[1].text.size > CX_FLEET_GROUP_MAX)
        return broken(r, r->next, "its erasable parts are longer than a group can be", err);
    int64_t *frame = cx_vec_push(&r->live_frames, cx_alloc_default());
    size_t *size = cx_vec_push(&r->live_sizes, cx_alloc_default());
    if (frame == NULL || size == NULL)
        return cx_fail_nomem(err);
    *frame = columns[0].i;
    *size = columns[1].text.size;
    cx_buf_add_str(&r->live, columns[1].text);
    return cx_buf_check(&r->live, err);
}

static cx_status read_live(reading *r, uint64_t num, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(r->part), cx_fleet_int(num)};
    return cx_pg_query(
        r->fleet->pg,
        "SELECT frame, bytes FROM " CX_T_LIVE " WHERE part = $1 AND num = $2 ORDER BY frame",
        values, CX_COUNT_OF(values), types, CX_COUNT_OF(types), read_live_row, r, NULL, err);
}

/* --- one group -------------------------------------------------------------------------------- */

typedef struct live_cursor {
    reading *r;
    uint64_t num;
    bool read; /* the rows were asked for */
    size_t next, at;
} live_cursor;

/* Frames are asked for in order. */
static cx_status find_live(void *arg, size_t frame, cx_bytes *out, cx_err *err)
{
    live_cursor *c = arg;
    reading *r = c->r;
    if (!c->read)
        CX_TRY(read_live(r, c->num, err));
    c->read = true;
    while (c->next < r->live_frames.count && r->live_frames.items[c->next] < (int64_t)frame)
        c->at += r->live_sizes.items[c->next++];
    bool there = c->next < r->live_frames.count && r->live_frames.items[c->next] == (int64_t)frame;
    *out = there ? cx_bytes_from(r->live.data + c->at, r->live_sizes.items[c->next])
                 : (cx_bytes){NULL, 0};
    return CX_SUCCESS;
}

static cx_status check_chain(const reading *r, const group_row *row, cx_bytes bytes, cx_err *err)
{
    if (row->num != r->next)
        return broken(r, r->next, "it is missing", err);
    if (!cx_digest_eq(&row->prev, r->head))
        return broken(r, row->num, "it does not follow the group before it", err);
    if (row->epoch < r->epoch || row->epoch == 0)
        return broken(r, row->num, "its epoch is older than that of the group before it", err);
    cx_digest head = cx_fleet_next_head(r->head, r->part, row->epoch, row->num, bytes);
    if (!cx_digest_eq(&head, &row->head))
        return broken(r, row->num, "its hash is not that of its bytes", err);
    return CX_SUCCESS;
}

static cx_status read_group(reading *r, const group_row *row, cx_err *err)
{
    cx_bytes bytes = cx_bytes_from(r->page.data + row->at, row->size);
    cx_log_group_id id = {.number = row->num};
    cx_fleet_group group = {
        .num = row->num, .epoch = row->epoch, .prev = row->prev, .head = row->head};
    live_cursor cursor = {.r = r, .num = row->num};
    memcpy(id.home_id, r->home_id, sizeof id.home_id);
    if (row->in_pieces) {
        CX_TRY(read_pieces(r, row->num, err));
        bytes = cx_buf_bytes(&r->pieces);
    }
    CX_TRY(check_chain(r, row, bytes, err));
    cx_arena_mark mark = cx_arena_mark_now(&r->arena);
    cx_buf_clear(&r->live);
    r->live_frames.count = r->live_sizes.count = 0;
    CX_TRY(cx_log_group_decode(&id, bytes, find_live, &cursor, &r->whole, &r->arena, &group.items,
                               &group.count, err));
    if (group.count != row->frames)
        return broken(r, row->num, "its row counts other frames than it has", err);
    if (r->each != NULL)
        CX_TRY(r->each(r->arg, &group, err));
    cx_arena_reset(&r->arena, mark);
    *r->head = row->head;
    r->epoch = row->epoch;
    r->next++;
    return CX_SUCCESS;
}

static cx_status read_all(reading *r, uint64_t to, cx_err *err)
{
    while (r->next < to) {
        CX_TRY(read_page(r, to, err));
        if (r->row_count == 0)
            return broken(r, r->next, "it is missing", err);
        for (size_t i = 0; i < r->row_count; i++)
            CX_TRY(read_group(r, &r->rows[i], err));
    }
    return CX_SUCCESS;
}

cx_status cx_fleet_read_groups(cx_fleet *fleet, unsigned part, const uint8_t home_id[16],
                               uint64_t from, uint64_t to, cx_digest *head,
                               cx_fleet_each_group *each, void *arg, cx_err *err)
{
    reading r = {
        .fleet = fleet, .part = part, .next = from, .head = head, .each = each, .arg = arg};
    memcpy(r.home_id, home_id, sizeof r.home_id);
    cx_buf *const bufs[] = {&r.page, &r.pieces, &r.live, &r.whole};
    for (size_t i = 0; i < CX_COUNT_OF(bufs); i++)
        cx_buf_init(bufs[i], cx_alloc_default());
    cx_arena_init(&r.arena, cx_alloc_default(), 0);
    cx_status status = read_all(&r, to, err);
    for (size_t i = 0; i < CX_COUNT_OF(bufs); i++)
        cx_buf_done(bufs[i]);
    cx_vec_done(&r.live_frames, cx_alloc_default());
    cx_vec_done(&r.live_sizes, cx_alloc_default());
    cx_arena_done(&r.arena);
    return status;
}

cx_status cx_fleet_scan(cx_fleet *fleet, unsigned part, cx_fleet_each_group *each, void *arg,
                        cx_err *err)
{
    cx_fleet_now now;
    CX_ASSERT(part < CX_FLEET_PARTS);
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_fleet_look(fleet, part, &now, err));
    cx_digest head = cx_fleet_first_head(now.home_id, part);
    CX_TRY(cx_fleet_read_groups(fleet, part, now.home_id, 0, now.next, &head, each, arg, err));
    if (cx_digest_eq(&head, &now.head))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                      "part %u: its head is not that of its groups", part);
}

/* --- one head --------------------------------------------------------------------------------- */

typedef struct one_head {
    cx_digest head;
    bool found;
} one_head;

static cx_status read_head(void *arg, const cx_pg_value *columns, cx_err *err)
{
    one_head *out = arg;
    out->found = true;
    return cx_fleet_read_digest(&columns[0], &out->head, err);
}

cx_status cx_fleet_group_head(cx_fleet *fleet, unsigned part, uint64_t num, cx_digest *out,
                              bool *out_found, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_int(num)};
    one_head found = {0};
    CX_TRY(cx_pg_query(fleet->pg, "SELECT head FROM " CX_T_GROUP " WHERE part = $1 AND num = $2",
                       values, CX_COUNT_OF(values), types, 1, read_head, &found, NULL, err));
    *out = found.head;
    *out_found = found.found;
    return CX_SUCCESS;
}

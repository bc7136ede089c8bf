/*
 * check.c - the chain of a part, recomputed (F7).
 */
#include <stdio.h>

#include "fleet/internal.h"

/* Links, and bytes of extents, that are read at a time. */
#define PAGE_LINKS 256

typedef struct link_row {
    uint64_t num, epoch;
    cx_digest prev, head, digest;
    uint8_t nonce[CX_FLEET_NONCE_SIZE];
    bool has_nonce;
} link_row;

typedef struct checking {
    cx_fleet *fleet;
    unsigned part;
    uint64_t next, epoch; /* the next number; the epoch before */
    cx_digest *head;
    link_row rows[PAGE_LINKS];
    size_t count;
} checking;

static cx_status broken(const checking *c, uint64_t num, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET, "part %u, commit %llu: %s",
                      c->part, (unsigned long long)num, what);
}

/* --- links ------------------------------------------------------------------------------------ */

static cx_status read_link(void *arg, const cx_pg_value *columns, cx_err *err)
{
    checking *c = arg;
    if (c->count == PAGE_LINKS)
        return broken(c, c->next, "the database answered with more rows than were asked for", err);
    link_row *row = &c->rows[c->count++];
    *row = (link_row){.num = (uint64_t)columns[0].i, .epoch = (uint64_t)columns[1].i};
    CX_TRY(cx_fleet_read_digest(&columns[2], &row->prev, err));
    CX_TRY(cx_fleet_read_digest(&columns[3], &row->head, err));
    CX_TRY(cx_fleet_read_digest(&columns[4], &row->digest, err));
    row->has_nonce = !columns[5].null;
    if (!row->has_nonce)
        return CX_SUCCESS;
    if (columns[5].text.size != sizeof row->nonce)
        return broken(c, row->num, "its nonce has another size", err);
    memcpy(row->nonce, columns[5].text.data, sizeof row->nonce);
    return CX_SUCCESS;
}

static cx_status read_page(checking *c, uint64_t to, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT,   CX_PG_INT,   CX_PG_BYTES,
                                       CX_PG_BYTES, CX_PG_BYTES, CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(c->part), cx_fleet_int(c->next), cx_fleet_int(to),
                                  cx_fleet_int(PAGE_LINKS)};
    c->count = 0;
    return cx_pg_query(c->fleet->pg,
                       "SELECT num, epoch, prev, head, digest, nonce FROM " CX_T_COMMIT
                       " WHERE part = $1 AND num >= $2 AND num < $3 ORDER BY num LIMIT $4",
                       values, CX_COUNT_OF(values), types, CX_COUNT_OF(types), read_link, c, NULL,
                       err);
}

static cx_status check_link(checking *c, const link_row *row, cx_err *err)
{
    if (row->num != c->next)
        return broken(c, c->next, "it is missing", err);
    if (!cx_digest_eq(&row->prev, c->head))
        return broken(c, row->num, "it does not follow the commit before it", err);
    if (row->epoch < c->epoch || row->epoch == 0)
        return broken(c, row->num, "its epoch is older than that of the commit before it", err);
    cx_digest head = cx_fleet_next_head(c->head, c->part, row->epoch, row->num, &row->digest);
    if (!cx_digest_eq(&head, &row->head))
        return broken(c, row->num, "its hash is not that of what it says", err);
    *c->head = row->head;
    c->epoch = row->epoch;
    c->next++;
    return CX_SUCCESS;
}

cx_status cx_fleet_check_links(cx_fleet *fleet, unsigned part, uint64_t from, uint64_t to,
                               cx_digest *head, cx_err *err)
{
    checking *c = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *c);
    cx_status status = CX_SUCCESS;
    if (c == NULL)
        return cx_fail_nomem(err);
    *c = (checking){.fleet = fleet, .part = part, .next = from, .head = head};
    while (c->next < to) {
        CX_TRY_GOTO(status, read_page(c, to, err));
        if (c->count == 0)
            CX_TRY_GOTO(status, broken(c, c->next, "it is missing", err));
        for (size_t i = 0; i < c->count; i++)
            CX_TRY_GOTO(status, check_link(c, &c->rows[i], err));
    }
done:
    cx_alloc_free(cx_alloc_default(), c, sizeof *c);
    return status;
}

/* --- before the base (F8) --------------------------------------------------------------------- */

cx_status cx_fleet_read_kept(cx_fleet *fleet, unsigned part, uint64_t base, cx_fleet_kept *out,
                             cx_err *err)
{
    checking *c = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *c);
    cx_status status = CX_SUCCESS;
    if (c == NULL)
        return cx_fail_nomem(err);
    *c = (checking){.fleet = fleet, .part = part};
    cx_fleet_kept_begin(out);
    do {
        CX_TRY_GOTO(status, read_page(c, base, err));
        for (size_t i = 0; i < c->count; i++) {
            const link_row *row = &c->rows[i];
            cx_digest head =
                cx_fleet_next_head(&row->prev, part, row->epoch, row->num, &row->digest);
            if (!cx_digest_eq(&head, &row->head))
                CX_TRY_GOTO(status,
                            broken(c, row->num, "its hash is not that of what it says", err));
            cx_fleet_kept_add(out, row->num, row->epoch, &row->prev, &row->head, &row->digest);
            c->next = row->num + 1;
        }
    } while (c->count != 0);
done:
    cx_alloc_free(cx_alloc_default(), c, sizeof *c);
    return status;
}

typedef struct one_digest {
    cx_digest digest;
    bool found;
} one_digest;

static cx_status read_digest(void *arg, const cx_pg_value *columns, cx_err *err)
{
    one_digest *out = arg;
    out->found = true;
    return cx_fleet_read_digest(&columns[0], &out->digest, err);
}

/* That the commit which states the base states this one, with these commits before it.  It is of
 * the chain: its links are checked. */
static cx_status check_base(cx_fleet *fleet, unsigned part, const cx_fleet_now *now,
                            cx_fleet_chain *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_int(now->base_num)};
    one_digest stated = {.found = false};
    cx_fleet_kept kept;
    if (now->base == 0)
        return CX_SUCCESS;
    CX_TRY(cx_fleet_read_kept(fleet, part, now->base, &kept, err));
    out->kept = kept.count;
    cx_digest found = cx_fleet_kept_end(&kept, now->base, &now->base_head);
    CX_TRY(cx_pg_query(fleet->pg, "SELECT digest FROM " CX_T_COMMIT " WHERE part = $1 AND num = $2",
                       values, CX_COUNT_OF(values), types, 1, read_digest, &stated, NULL, err));
    if (now->base_num >= now->base && now->base_num < now->next && stated.found &&
        cx_digest_eq(&found, &stated.digest))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                      "part %u: its base, or the commits before it, are not those that commit %llu "
                      "states",
                      part, (unsigned long long)now->base_num);
}

cx_status cx_fleet_check_chain(cx_fleet *fleet, unsigned part, const cx_fleet_now *now,
                               cx_fleet_chain *out, cx_err *err)
{
    cx_digest head = now->base_head;
    if (now->base > now->next)
        return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                          "part %u: its base is beyond its head", part);
    CX_TRY(check_base(fleet, part, now, out, err));
    CX_TRY(cx_fleet_check_links(fleet, part, now->base, now->next, &head, err));
    if (!cx_digest_eq(&head, &now->head))
        return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                          "part %u: its head is not that of its commits", part);
    out->commits = now->next - now->base;
    return CX_SUCCESS;
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

cx_status cx_fleet_commit_head(cx_fleet *fleet, unsigned part, uint64_t num, cx_digest *out,
                               bool *out_found, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_int(num)};
    one_head found = {0};
    CX_TRY(cx_pg_query(fleet->pg, "SELECT head FROM " CX_T_COMMIT " WHERE part = $1 AND num = $2",
                       values, CX_COUNT_OF(values), types, 1, read_head, &found, NULL, err));
    *out = found.head;
    *out_found = found.found;
    return CX_SUCCESS;
}

cx_status cx_fleet_head_after(cx_fleet *fleet, unsigned part, const cx_fleet_now *now,
                              uint64_t count, cx_digest *out, bool *out_found, cx_err *err)
{
    CX_ASSERT(count != 0 || now->base == 0);
    *out_found = true;
    *out = now->base_head;
    return count == now->base ? CX_SUCCESS
                              : cx_fleet_commit_head(fleet, part, count - 1, out, out_found, err);
}

/* --- bytes ------------------------------------------------------------------------------------ */

/*
 * The extents of files that are not derived, by the commit that wrote them: each commit's digest is
 * recomputed from its own.  The server sorts; what it sends is looked at once and kept nowhere.
 */
typedef struct byte_check {
    cx_fleet *fleet;
    unsigned part;
    uint64_t to;
    bool open; /* a commit is being hashed */
    uint64_t num;
    cx_sha256 hash;
    cx_digest expected;
    bool has_nonce;
    cx_fleet_chain *out;
} byte_check;

static cx_status byte_error(const byte_check *b, uint64_t num, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                      "part %u, commit %llu: its bytes are not those that were written", b->part,
                      (unsigned long long)num);
}

static cx_status end_commit(byte_check *b, cx_err *err)
{
    if (!b->open)
        return CX_SUCCESS;
    b->open = false;
    cx_digest found = cx_sha256_end(&b->hash);
    if (!b->has_nonce) {
        b->out->overwritten++;
        return CX_SUCCESS;
    }
    b->out->recomputed++;
    return cx_digest_eq(&found, &b->expected) ? CX_SUCCESS : byte_error(b, b->num, err);
}

static cx_status begin_commit(byte_check *b, const cx_pg_value *columns, cx_err *err)
{
    uint8_t nonce[CX_FLEET_NONCE_SIZE] = {0};
    b->open = true;
    b->num = (uint64_t)columns[0].i;
    b->has_nonce = !columns[5].null;
    if (b->has_nonce && columns[5].text.size != sizeof nonce)
        return byte_error(b, b->num, err);
    if (b->has_nonce)
        memcpy(nonce, columns[5].text.data, sizeof nonce);
    cx_fleet_digest_begin(&b->hash, nonce);
    return cx_fleet_read_digest(&columns[6], &b->expected, err);
}

static cx_status check_extent(void *arg, const cx_pg_value *columns, cx_err *err)
{
    byte_check *b = arg;
    if (columns[0].null || columns[6].null)
        return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                          "part %u: bytes of a commit that is not there", b->part);
    if (b->open && b->num != (uint64_t)columns[0].i)
        CX_TRY(end_commit(b, err));
    if (!b->open)
        CX_TRY(begin_commit(b, columns, err));
    if (columns[3].i < 0 || columns[3].i >= CX_FLEET_CHUNK)
        return byte_error(b, b->num, err);
    cx_fleet_digest_add(&b->hash, (uint64_t)columns[1].i, (uint64_t)columns[2].i,
                        (uint32_t)columns[3].i,
                        cx_bytes_from(columns[4].text.data, columns[4].text.size));
    return CX_SUCCESS;
}

/*
 * A cursor, so that neither side holds more than a page, and each page has its own time.  The
 * server sorts references: the bytes of larger extents are stored apart.
 */
#define PAGE_EXTENTS 256
#define CURSOR "cortex_fleet_check"

static cx_status open_cursor(const byte_check *b, cx_err *err)
{
    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "DECLARE " CURSOR
                   " NO SCROLL CURSOR FOR SELECT e.num, e.file, e.chunk, e.start, "
                   "e.bytes, c.nonce, c.digest FROM " CX_T_EXTENT " e JOIN " CX_T_FILE
                   " f ON f.part = e.part AND f.file = e.file LEFT JOIN " CX_T_COMMIT
                   " c ON c.part = e.part AND c.num = e.num WHERE e.part = %u AND NOT f.derived "
                   "ORDER BY e.num, e.file, e.chunk, e.start",
                   b->part);
    return cx_pg_run(b->fleet->pg, sql, err);
}

static cx_status check_bytes(byte_check *b, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT,   CX_PG_INT,   CX_PG_INT,  CX_PG_INT,
                                       CX_PG_BYTES, CX_PG_BYTES, CX_PG_BYTES};
    uint64_t rows;
    CX_TRY(open_cursor(b, err));
    do {
        char sql[64];
        (void)snprintf(sql, sizeof sql, "FETCH %d FROM " CURSOR, PAGE_EXTENTS);
        CX_TRY(cx_pg_query(b->fleet->pg, sql, NULL, 0, types, CX_COUNT_OF(types), check_extent, b,
                           &rows, err));
    } while (rows != 0);
    CX_TRY(end_commit(b, err));
    return cx_pg_run(b->fleet->pg, "CLOSE " CURSOR, err);
}

static cx_status read_count(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(uint64_t *)arg = (uint64_t)columns[0].i;
    return CX_SUCCESS;
}

/* What is numbered as the next commit or a later one was not written by a node. */
static cx_status check_beyond(const byte_check *b, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    const cx_pg_value values[] = {cx_fleet_int(b->part), cx_fleet_int(b->to)};
    uint64_t count = 0;
    CX_TRY(cx_pg_query(b->fleet->pg,
                       "SELECT (SELECT count(*) FROM " CX_T_COMMIT
                       " WHERE part = $1 AND num >= $2) + (SELECT count(*) FROM " CX_T_EXTENT
                       " WHERE part = $1 AND (num >= $2 OR num < 0))",
                       values, CX_COUNT_OF(values), types, 1, read_count, &count, NULL, err));
    return count == 0 ? CX_SUCCESS
                      : cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                                   "part %u: it has commits or bytes beyond its head", b->part);
}

/* Commits with a nonce have bytes; those of which none is there any more are found here. */
static cx_status check_missing(byte_check *b, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    const cx_pg_value values[] = {cx_fleet_int(b->part), cx_fleet_int(b->to)};
    uint64_t count = 0;
    CX_TRY(cx_pg_query(b->fleet->pg,
                       "SELECT count(*) FROM " CX_T_COMMIT
                       " WHERE part = $1 AND num < $2 AND nonce IS NOT NULL",
                       values, CX_COUNT_OF(values), types, 1, read_count, &count, NULL, err));
    if (count == b->out->recomputed)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                      "part %u: the bytes of %llu commits are gone", b->part,
                      (unsigned long long)(count - b->out->recomputed));
}

static cx_status check_part(cx_fleet *fleet, unsigned part, cx_fleet_chain *out, cx_err *err)
{
    cx_fleet_now now;
    CX_TRY(cx_fleet_look(fleet, part, &now, err));
    byte_check bytes = {.fleet = fleet, .part = part, .to = now.next, .out = out};
    CX_TRY(cx_fleet_check_chain(fleet, part, &now, out, err));
    CX_TRY(check_beyond(&bytes, err));
    CX_TRY(check_bytes(&bytes, err));
    return check_missing(&bytes, err);
}

cx_status cx_fleet_in_one_state(cx_fleet *fleet, cx_fleet_reading *reads, void *arg, cx_err *err)
{
    CX_TRY(cx_fleet_need_connection(fleet, err));
    if (fleet->snapshot)
        return reads(fleet, arg, err);
    CX_TRY(cx_pg_run(fleet->pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err));
    cx_status status = reads(fleet, arg, err);
    /* cx_pg_rollback ends what cx_pg_begin began, and this was not. */
    if (!cx_pg_is_away(fleet->pg) && cx_failed(cx_pg_run(fleet->pg, "ROLLBACK", NULL)))
        fleet->session_set = false; /* is connected again before the next use */
    return status;
}

typedef struct part_check {
    unsigned part;
    cx_fleet_chain *out;
} part_check;

static cx_status run_check(cx_fleet *fleet, void *arg, cx_err *err)
{
    const part_check *check = arg;
    return check_part(fleet, check->part, check->out, err);
}

cx_status cx_fleet_check(cx_fleet *fleet, unsigned part, cx_fleet_chain *out, cx_err *err)
{
    part_check check = {part, out};
    *out = (cx_fleet_chain){0};
    return cx_fleet_in_one_state(fleet, run_check, &check, err);
}

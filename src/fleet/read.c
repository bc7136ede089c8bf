/*
 * read.c - the files of a part and their bytes.
 *
 * A database is believed no more than a disk: places and sizes are checked here, what the bytes
 * mean is checked by who reads the files.
 */
#include "fleet/internal.h"

/* --- files ------------------------------------------------------------------------------------ */

typedef struct file_list {
    cx_fleet_each_file *each;
    void *arg;
} file_list;

static cx_status damaged(cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the row of a file in the database is not as it was made");
}

static cx_status read_file_row(void *arg, const cx_pg_value *columns, cx_err *err)
{
    const file_list *l = arg;
    const cx_fleet_file file = {.file = (uint64_t)columns[0].i,
                                .name = columns[1].text,
                                .derived = columns[2].b,
                                .size = (uint64_t)columns[3].i,
                                .end = (uint64_t)columns[4].i};
    if (columns[0].i < 0 || columns[3].i < 0 || columns[4].i < 0 || file.name.size == 0 ||
        file.name.size > CX_FLEET_FILE_NAME_MAX ||
        memchr(file.name.data, 0, file.name.size) != NULL)
        return damaged(err);
    return l->each(l->arg, &file, err);
}

cx_status cx_fleet_list_files(cx_fleet *fleet, unsigned part, cx_fleet_each_file *each, void *arg,
                              cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_TEXT, CX_PG_BOOL, CX_PG_INT, CX_PG_INT};
    const cx_pg_value values[] = {cx_fleet_int(part)};
    file_list l = {each, arg};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(
        fleet->pg,
        "SELECT f.file, f.name, f.derived, f.size, coalesce((SELECT e.chunk * 65536 + e.start + "
        "octet_length(e.bytes) FROM " CX_T_EXTENT " e WHERE e.part = f.part AND e.file = f.file "
        "ORDER BY e.chunk DESC, e.start DESC LIMIT 1), 0) FROM " CX_T_FILE
        " f WHERE f.part = $1 ORDER BY f.name",
        values, 1, types, CX_COUNT_OF(types), read_file_row, &l, NULL, err);
}

/* --- where the log may be read from ----------------------------------------------------------- */

typedef struct trail {
    uint8_t *out;
    bool there;
} trail;

static cx_status read_trail(void *arg, const cx_pg_value *columns, cx_err *err)
{
    trail *t = arg;
    (void)err;
    t->there = !columns[0].null && columns[0].text.size == CX_FLEET_TRAIL;
    if (t->there)
        memcpy(t->out, columns[0].text.data, CX_FLEET_TRAIL);
    return CX_SUCCESS;
}

cx_status cx_fleet_read_trail(cx_fleet *fleet, unsigned part, uint8_t out[CX_FLEET_TRAIL],
                              bool *out_there, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(part)};
    trail t = {.out = out};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_pg_query(fleet->pg, "SELECT trail FROM " CX_T_PART " WHERE part = $1", values, 1,
                       types, 1, read_trail, &t, NULL, err));
    *out_there = t.there;
    return CX_SUCCESS;
}

/* No standby is waited for, whatever the session is set to: a lost one costs reading. */
cx_status cx_fleet_write_trail(cx_fleet *fleet, const cx_fleet_part *part,
                               const uint8_t bytes[CX_FLEET_TRAIL], cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(part->number), cx_fleet_int(part->epoch),
                                  cx_fleet_text(fleet->owner),
                                  cx_fleet_bytes(bytes, CX_FLEET_TRAIL)};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(fleet->pg,
                       "WITH s AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', "
                       "true)) UPDATE " CX_T_PART " SET trail = $4 FROM s WHERE part = $1 AND "
                       "epoch = $2 AND owner = $3",
                       values, CX_COUNT_OF(values), NULL, 0, NULL, NULL, NULL, err);
}

static cx_status read_flag(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(bool *)arg = columns[0].b;
    return CX_SUCCESS;
}

cx_status cx_fleet_has_extent(cx_fleet *fleet, unsigned part, uint64_t file, uint64_t chunk,
                              uint32_t start, bool *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_BOOL};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_int(file), cx_fleet_int(chunk),
                                  cx_fleet_int(start)};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(fleet->pg,
                       "SELECT EXISTS (SELECT FROM " CX_T_EXTENT " WHERE part = $1 AND file = $2 "
                       "AND chunk = $3 AND start = $4)",
                       values, CX_COUNT_OF(values), types, 1, read_flag, out, NULL, err);
}

/* --- bytes ------------------------------------------------------------------------------------ */

typedef struct reading {
    cx_fleet_each_extent *each;
    void *arg;
    uint64_t first, count; /* chunks that were asked for */
    uint64_t chunk, end;   /* of the extent before */
    bool any;
} reading;

static cx_status read_extent(void *arg, const cx_pg_value *columns, cx_err *err)
{
    reading *r = arg;
    const cx_fleet_extent extent = {
        .chunk = (uint64_t)columns[0].i,
        .start = (uint32_t)columns[1].i,
        .bytes = cx_bytes_from(columns[2].text.data, columns[2].text.size),
    };
    bool fits = columns[0].i >= 0 && extent.chunk >= r->first &&
                extent.chunk - r->first < r->count && columns[1].i >= 0 &&
                columns[1].i < CX_FLEET_CHUNK && extent.bytes.size != 0 &&
                extent.bytes.size <= CX_FLEET_CHUNK - extent.start;
    if (fits && r->any)
        fits = extent.chunk > r->chunk || (extent.chunk == r->chunk && extent.start >= r->end);
    if (!fits)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "an extent in the database is where it cannot be");
    r->any = true;
    r->chunk = extent.chunk;
    r->end = extent.start + extent.bytes.size;
    return r->each(r->arg, &extent, err);
}

cx_status cx_fleet_read(cx_fleet *fleet, unsigned part, uint64_t file, uint64_t chunk,
                        uint64_t count, cx_fleet_each_extent *each, void *arg, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_INT, CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_int(file), cx_fleet_int(chunk),
                                  cx_fleet_int(chunk + count)};
    reading r = {.each = each, .arg = arg, .first = chunk, .count = count};
    CX_TRY(cx_fleet_need_connection(fleet, err));
    return cx_pg_query(fleet->pg,
                       "SELECT chunk, start, bytes FROM " CX_T_EXTENT
                       " WHERE part = $1 AND file = $2 AND chunk >= $3 AND chunk < $4 "
                       "ORDER BY chunk, start",
                       values, CX_COUNT_OF(values), types, CX_COUNT_OF(types), read_extent, &r,
                       NULL, err);
}

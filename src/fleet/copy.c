/*
 * copy.c - all files of a part into an empty part, usually of another database.
 *
 * The chain of the copy is its own: it is another part.  What the files mean is the same, byte for
 * byte.
 */
#include "fleet/internal.h"

/* Chunks that are read, and then written in one commit. */
#define BATCH_CHUNKS 64

typedef struct copied_file {
    uint64_t file, size, end;
    bool derived;
    cx_str name;
} copied_file;

typedef struct copying {
    cx_fleet *from, *to;
    unsigned from_part;
    cx_fleet_part *to_part;
    cx_fleet_copied *out;
    CX_VEC(copied_file) files;
    CX_VEC(cx_str) small;
    const copied_file *file; /* at hand */
    cx_arena names, bytes;
    CX_VEC(cx_fleet_write) writes;
} copying;

static cx_status keep_file(void *arg, const cx_fleet_file *file, cx_err *err)
{
    copying *c = arg;
    copied_file *kept = cx_vec_push(&c->files, cx_alloc_default());
    cx_str name = cx_arena_copy_str(&c->names, file->name);
    if (kept == NULL || name.data == NULL)
        return cx_fail_nomem(err);
    *kept = (copied_file){file->file, file->size, file->end, file->derived, name};
    return CX_SUCCESS;
}

static cx_status keep_small(void *arg, cx_str name, uint64_t size, cx_err *err)
{
    copying *c = arg;
    (void)size;
    cx_str *kept = cx_vec_push(&c->small, cx_alloc_default());
    cx_str copy = cx_arena_copy_str(&c->names, name);
    if (kept == NULL || copy.data == NULL)
        return cx_fail_nomem(err);
    *kept = copy;
    return CX_SUCCESS;
}

static cx_status keep_extent(void *arg, const cx_fleet_extent *extent, cx_err *err)
{
    copying *c = arg;
    cx_fleet_write *write = cx_vec_push(&c->writes, cx_alloc_default());
    cx_str bytes = cx_arena_copy_str(&c->bytes, cx_bytes_str(extent->bytes));
    if (write == NULL || bytes.data == NULL)
        return cx_fail_nomem(err);
    *write = (cx_fleet_write){.file = c->file->file,
                              .chunk = extent->chunk,
                              .start = extent->start,
                              .derived = c->file->derived,
                              .bytes = cx_str_bytes(bytes)};
    c->out->bytes += bytes.size;
    return CX_SUCCESS;
}

static cx_status copy_chunks(copying *c, uint64_t chunk, cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(&c->bytes);
    c->writes.count = 0;
    CX_TRY(cx_fleet_read(c->from, c->from_part, c->file->file, chunk, BATCH_CHUNKS, keep_extent, c,
                         err));
    const cx_fleet_change change = {.writes = c->writes.items, .write_count = c->writes.count};
    if (c->writes.count != 0)
        CX_TRY(cx_fleet_commit(c->to, c->to_part, &change, err));
    cx_arena_reset(&c->bytes, mark);
    return CX_SUCCESS;
}

static cx_status copy_file(copying *c, cx_err *err)
{
    const copied_file *f = c->file;
    const cx_fleet_file_change made[] = {
        {.op = CX_FLEET_MAKE, .file = f->file, .derived = f->derived, .name = f->name},
        {.op = CX_FLEET_RESIZE, .file = f->file, .size = f->size}};
    const cx_fleet_change change = {.files = made, .file_count = CX_COUNT_OF(made)};
    CX_TRY(cx_fleet_commit(c->to, c->to_part, &change, err));
    for (uint64_t chunk = 0; chunk * CX_FLEET_CHUNK < f->end; chunk += BATCH_CHUNKS)
        CX_TRY(copy_chunks(c, chunk, err));
    c->out->files++;
    return CX_SUCCESS;
}

static cx_status copy_small(copying *c, cx_str name, cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_status status = cx_fleet_small_read(c->from, c->from_part, name, &bytes, err);
    if (!cx_failed(status))
        status = cx_fleet_small_write(c->to, c->to_part->number, name, cx_buf_bytes(&bytes), err);
    cx_buf_done(&bytes);
    c->out->small++;
    return status;
}

/* Its extents are the same. */
static cx_status copy_trail(copying *c, cx_err *err)
{
    uint8_t bytes[CX_FLEET_TRAIL];
    bool there;
    CX_TRY(cx_fleet_read_trail(c->from, c->from_part, bytes, &there, err));
    return there ? cx_fleet_write_trail(c->to, c->to_part, bytes, err) : CX_SUCCESS;
}

static cx_status copy_all(copying *c, cx_err *err)
{
    CX_TRY(cx_fleet_list_files(c->to, c->to_part->number, keep_file, c, err));
    if (c->files.count != 0)
        return cx_fail_at(err, CX_E_EXISTS, "PartNotEmpty", CX_NO_OFFSET,
                          "the part to copy to has files already");
    CX_TRY(cx_fleet_list_files(c->from, c->from_part, keep_file, c, err));
    CX_TRY(cx_fleet_small_list(c->from, c->from_part, keep_small, c, err));
    for (size_t i = 0; i < c->files.count; i++) {
        c->file = &c->files.items[i];
        CX_TRY(copy_file(c, err));
    }
    for (size_t i = 0; i < c->small.count; i++)
        CX_TRY(copy_small(c, c->small.items[i], err));
    return copy_trail(c, err);
}

cx_status cx_fleet_copy(cx_fleet *from, unsigned from_part, cx_fleet *to, cx_fleet_part *to_part,
                        cx_fleet_copied *out, cx_err *err)
{
    copying c = {.from = from, .from_part = from_part, .to = to, .to_part = to_part, .out = out};
    *out = (cx_fleet_copied){0};
    cx_arena_init(&c.names, cx_alloc_default(), 0);
    cx_arena_init(&c.bytes, cx_alloc_default(), 0);
    cx_status status = copy_all(&c, err);
    cx_arena_done(&c.names);
    cx_arena_done(&c.bytes);
    cx_vec_done(&c.files, cx_alloc_default());
    cx_vec_done(&c.small, cx_alloc_default());
    cx_vec_done(&c.writes, cx_alloc_default());
    return status;
}

/* --- clearing --------------------------------------------------------------------------------- */

typedef struct clearing {
    CX_VEC(cx_fleet_file_change) files;
} clearing;

static cx_status drop_file(void *arg, const cx_fleet_file *file, cx_err *err)
{
    clearing *c = arg;
    cx_fleet_file_change *change = cx_vec_push(&c->files, cx_alloc_default());
    if (change == NULL)
        return cx_fail_nomem(err);
    *change = (cx_fleet_file_change){.op = CX_FLEET_REMOVE, .file = file->file};
    return CX_SUCCESS;
}

cx_status cx_fleet_clear(cx_fleet *fleet, cx_fleet_part *part, cx_err *err)
{
    clearing c = {0};
    cx_status status = cx_fleet_list_files(fleet, part->number, drop_file, &c, err);
    const cx_fleet_change change = {.files = c.files.items, .file_count = c.files.count};
    if (!cx_failed(status) && c.files.count != 0)
        status = cx_fleet_commit(fleet, part, &change, err);
    cx_vec_done(&c.files, cx_alloc_default());
    if (part->owned) {
        cx_status given = cx_fleet_give_back(fleet, part, cx_failed(status) ? NULL : err);
        if (!cx_failed(status))
            status = given;
    }
    return status;
}

/*
 * archive_file.c - an archived segment's bytes: reading blocks by the table, writing both.
 *
 * The table is the one that the seekable format of zstd has at the end of a file, in a frame that
 * decompressors skip, so `zstd -d` restores a segment.  Numbers are little-endian:
 *
 *     0  4  5e 2a 4d 18        4  4  bytes that follow
 *     8  8  a block: bytes of its frame, bytes of it unpacked
 *       ..  4  number of blocks   1  zero   4  b1 ea 92 8f
 */
#include "log/archive_file.h"

#include <errno.h>

#include "os/api.h"

enum { TABLE_HEAD_SIZE = 8, ROW_SIZE = 8, TABLE_END_SIZE = 9 };
static const uint8_t table_magic[4] = {0x5e, 0x2a, 0x4d, 0x18};
static const uint8_t end_magic[4] = {0xb1, 0xea, 0x92, 0x8f};

#define BLOCKS_MAX ((uint32_t)((UINT64_C(4) << 30) / CX_ARCHIVE_BLOCK) + 1)
/* More than any block is packed to. */
#define FRAME_SIZE_MAX (2 * CX_ARCHIVE_BLOCK)

static uint32_t get_little(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void put_little(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* Exactly `size` bytes; -ENODATA when the file ends before. */
static int read_exactly(const cx_io *io, cx_file file, void *to, size_t size, uint64_t offset)
{
    size_t got = 0;
    while (got < size) {
        int64_t step = io->pread(io, file, (uint8_t *)to + got, size - got, offset + got);
        if (step == -EINTR)
            continue;
        if (step <= 0)
            return step == 0 ? -ENODATA : (int)step;
        got += (size_t)step;
    }
    return 0;
}

/* --- reading ------------------------------------------------------------------------------- */

/* Rows into starts and size; false when they do not fill the file. */
static bool take_rows(cx_archive *archive, const uint8_t *rows, uint32_t count)
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t packed = get_little(rows + (size_t)i * ROW_SIZE);
        uint32_t size = get_little(rows + (size_t)i * ROW_SIZE + 4);
        bool last = i + 1 == count;
        if (packed == 0 || packed > FRAME_SIZE_MAX || size == 0 || size > CX_ARCHIVE_BLOCK ||
            (!last && size != CX_ARCHIVE_BLOCK))
            return false;
        archive->starts[i] = offset;
        archive->size += size;
        offset += packed;
    }
    archive->starts[count] = offset;
    return offset + TABLE_HEAD_SIZE + (uint64_t)count * ROW_SIZE + TABLE_END_SIZE ==
           archive->file_size;
}

/* 0, or -EBADMSG when the table is not as it was written. */
static int read_table(const cx_io *io, const cx_alloc *alloc, cx_archive *archive)
{
    uint8_t end[TABLE_END_SIZE];
    if (archive->file_size < TABLE_HEAD_SIZE + TABLE_END_SIZE)
        return -EBADMSG;
    int failed = read_exactly(io, archive->file, end, sizeof end, archive->file_size - sizeof end);
    if (failed != 0)
        return failed == -ENODATA ? -EBADMSG : failed;
    uint32_t count = get_little(end);
    uint64_t table = (uint64_t)count * ROW_SIZE + TABLE_END_SIZE;
    if (end[4] != 0 || memcmp(end + 5, end_magic, sizeof end_magic) != 0 || count == 0 ||
        count > BLOCKS_MAX || archive->file_size < TABLE_HEAD_SIZE + table)
        return -EBADMSG;
    size_t bytes_size = TABLE_HEAD_SIZE + (size_t)count * ROW_SIZE;
    uint8_t *bytes = cx_alloc_new(alloc, bytes_size);
    archive->starts = cx_alloc_zeroed(alloc, (size_t)count + 1, sizeof *archive->starts);
    archive->blocks = count;
    if (bytes == NULL || archive->starts == NULL)
        failed = -ENOMEM;
    else
        failed = read_exactly(io, archive->file, bytes, bytes_size,
                              archive->file_size - TABLE_HEAD_SIZE - table);
    if (failed == -ENODATA ||
        (failed == 0 &&
         (memcmp(bytes, table_magic, sizeof table_magic) != 0 || get_little(bytes + 4) != table ||
          !take_rows(archive, bytes + TABLE_HEAD_SIZE, count))))
        failed = -EBADMSG;
    cx_alloc_free(alloc, bytes, bytes_size);
    return failed;
}

static void drop_table(const cx_alloc *alloc, cx_archive *archive)
{
    cx_alloc_free(alloc, archive->starts, ((size_t)archive->blocks + 1) * sizeof *archive->starts);
    archive->starts = NULL;
    archive->blocks = 0;
    archive->size = 0;
}

int cx_archive_open(const cx_io *io, const cx_alloc *alloc, const char *path, unsigned flags,
                    cx_archive *out)
{
    bool regular;
    *out = (cx_archive){.file = CX_FILE_NONE};
    int failed = io->open(io, path, flags, &out->file);
    if (failed != 0)
        return failed;
    failed = io->size(io, out->file, &out->file_size, &regular);
    if (failed == 0 && !regular)
        failed = -EBADMSG;
    if (failed == 0)
        failed = read_table(io, alloc, out);
    if (failed != 0)
        drop_table(alloc, out);
    if (failed == -EBADMSG)
        return 0;
    if (failed != 0) {
        (void)io->close(io, out->file);
        out->file = CX_FILE_NONE;
    }
    return failed;
}

void cx_archive_close(const cx_io *io, const cx_alloc *alloc, cx_archive *archive)
{
    if (archive->file != CX_FILE_NONE)
        (void)io->close(io, archive->file);
    archive->file = CX_FILE_NONE;
    drop_table(alloc, archive);
}

size_t cx_archive_block_size(const cx_archive *archive, uint32_t block)
{
    uint64_t left = archive->size - (uint64_t)block * CX_ARCHIVE_BLOCK;
    return left < CX_ARCHIVE_BLOCK ? (size_t)left : CX_ARCHIVE_BLOCK;
}

int cx_archive_read_packed(const cx_io *io, const cx_archive *archive, uint32_t block, cx_buf *out)
{
    CX_ASSERT(block < archive->blocks);
    size_t size = (size_t)(archive->starts[block + 1] - archive->starts[block]);
    uint8_t *room = cx_buf_reserve(out, size);
    if (room == NULL)
        return -ENOMEM;
    int failed = read_exactly(io, archive->file, room, size, archive->starts[block]);
    if (failed == 0)
        cx_buf_advance(out, size);
    return failed;
}

static const uint8_t frame_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};

int cx_archive_has_block(const cx_io *io, const cx_archive *archive, uint32_t block, bool *out)
{
    uint8_t magic[sizeof frame_magic];
    int failed = read_exactly(io, archive->file, magic, sizeof magic, archive->starts[block]);
    *out = failed == 0 && memcmp(magic, frame_magic, sizeof magic) == 0;
    return failed == -ENODATA ? 0 : failed;
}

int cx_archive_read_block(const cx_io *io, const cx_archive *archive, uint32_t block,
                          cx_buf *scratch, uint8_t *to, bool *out_whole)
{
    cx_buf_clear(scratch);
    *out_whole = false;
    int failed = cx_archive_read_packed(io, archive, block, scratch);
    if (failed != 0)
        return failed == -ENODATA ? 0 : failed;
    cx_status status =
        cx_zstd_unpack(cx_buf_bytes(scratch), to, cx_archive_block_size(archive, block), NULL);
    if (cx_failed(status) && status.code != CX_E_FORMAT)
        return -ENOSYS;
    *out_whole = !cx_failed(status);
    return 0;
}

/* --- writing ------------------------------------------------------------------------------- */

cx_status cx_archive_begin(cx_archive_writer *writer, const cx_io *io, const cx_alloc *alloc,
                           const char *path, cx_err *err)
{
    *writer = (cx_archive_writer){.io = io, .path = path, .file = CX_FILE_NONE};
    cx_buf_init(&writer->table, alloc);
    cx_buf_init(&writer->packed, alloc);
    int failed =
        io->open(io, path, CX_IO_READ | CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE, &writer->file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot create %s", path);
    return CX_SUCCESS;
}

cx_status cx_archive_add_packed(cx_archive_writer *writer, cx_bytes frame, size_t size, cx_err *err)
{
    uint8_t row[ROW_SIZE];
    CX_ASSERT(frame.size <= FRAME_SIZE_MAX && size <= CX_ARCHIVE_BLOCK);
    put_little(row, (uint32_t)frame.size);
    put_little(row + 4, (uint32_t)size);
    cx_buf_add(&writer->table, row, sizeof row);
    if (writer->table.failed)
        return cx_fail_nomem(err);
    CX_TRY(cx_io_write_at(writer->io, writer->file, writer->path, frame.data, frame.size,
                          writer->offset, err));
    writer->offset += frame.size;
    return CX_SUCCESS;
}

cx_status cx_archive_add(cx_archive_writer *writer, cx_bytes block, cx_err *err)
{
    cx_buf_clear(&writer->packed);
    CX_TRY(cx_zstd_pack(block, CX_ARCHIVE_LEVEL, true, &writer->packed, err));
    return cx_archive_add_packed(writer, cx_buf_bytes(&writer->packed), block.size, err);
}

cx_status cx_archive_end(cx_archive_writer *writer, cx_err *err)
{
    uint8_t head[TABLE_HEAD_SIZE], end[TABLE_END_SIZE] = {0};
    size_t rows = writer->table.size;
    memcpy(head, table_magic, sizeof table_magic);
    put_little(head + 4, (uint32_t)(rows + TABLE_END_SIZE));
    put_little(end, (uint32_t)(rows / ROW_SIZE));
    memcpy(end + 5, end_magic, sizeof end_magic);
    cx_buf_add(&writer->table, end, sizeof end);
    if (writer->table.failed)
        return cx_fail_nomem(err);
    CX_TRY(cx_io_write_at(writer->io, writer->file, writer->path, head, sizeof head, writer->offset,
                          err));
    writer->offset += sizeof head;
    CX_TRY(cx_io_write_at(writer->io, writer->file, writer->path, writer->table.data,
                          writer->table.size, writer->offset, err));
    writer->offset += writer->table.size;
    int failed = writer->io->sync(writer->io, writer->file, false);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot sync %s", writer->path);
    (void)writer->io->close(writer->io, writer->file);
    writer->file = CX_FILE_NONE;
    return CX_SUCCESS;
}

void cx_archive_writer_done(cx_archive_writer *writer)
{
    if (writer->file != CX_FILE_NONE) {
        cx_status ignored; /* what is left is removed when the log is opened for writing */
        (void)writer->io->unlink(writer->io, writer->path);
        ignored = cx_archive_destroy(writer->io, writer->path, writer->file, NULL);
        (void)ignored;
        (void)writer->io->close(writer->io, writer->file);
    }
    cx_buf_done(&writer->table);
    cx_buf_done(&writer->packed);
}

cx_status cx_archive_destroy(const cx_io *io, const char *path, cx_file file, cx_err *err)
{
    static const uint8_t zeros[65536];
    uint64_t size;
    bool regular;
    int failed = io->size(io, file, &size, &regular);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot ask for the size of %s", path);
    for (uint64_t at = 0; at < size; at += sizeof zeros) {
        size_t step = size - at < sizeof zeros ? (size_t)(size - at) : sizeof zeros;
        CX_TRY(cx_io_write_at(io, file, path, zeros, step, at, err));
    }
    failed = io->sync(io, file, true);
    return failed != 0 ? cx_fail_os(err, -failed, "cannot sync %s", path) : CX_SUCCESS;
}

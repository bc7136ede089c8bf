/*
 * archive_file.h - the bytes of an archived segment (docs/formats/log.md §7): zstd frames of one
 * block each, and the table of the seekable format, by which a block is found.
 *
 * Calls return 0 or a negated errno, as a cx_io's do.
 */
#ifndef CX_LOG_ARCHIVE_FILE_H
#define CX_LOG_ARCHIVE_FILE_H

#include "base/api.h"

#define CX_ARCHIVE_BLOCK ((size_t)128 << 10) /* bytes that are packed together */
#define CX_ARCHIVE_LEVEL 6                   /* of zstd */

typedef struct cx_archive {
    cx_file file;
    uint32_t blocks;
    uint64_t *starts;   /* of each block's frame, and of the table: blocks + 1 items */
    uint64_t size;      /* of the segment */
    uint64_t file_size; /* of the archive */
} cx_archive;

/* An archive whose table is not as it was written is opened as one of an empty segment. */
int cx_archive_open(const cx_io *io, const cx_alloc *alloc, const char *path, unsigned flags,
                    cx_archive *out);
void cx_archive_close(const cx_io *io, const cx_alloc *alloc, cx_archive *archive);

/* Bytes of the segment in block `block`: CX_ARCHIVE_BLOCK, fewer in the last one. */
size_t cx_archive_block_size(const cx_archive *archive, uint32_t block);
/* Appends the frame of a block as it is in the file. */
int cx_archive_read_packed(const cx_io *io, const cx_archive *archive, uint32_t block, cx_buf *out);
/* Whether the file still has that block: false when the archive was replaced and this one
 * destroyed. */
int cx_archive_has_block(const cx_io *io, const cx_archive *archive, uint32_t block, bool *out);
/* Unpacks a block; *out_whole false when it is not as it was written.  `scratch` is overwritten. */
int cx_archive_read_block(const cx_io *io, const cx_archive *archive, uint32_t block,
                          cx_buf *scratch, uint8_t *to, bool *out_whole);

typedef struct cx_archive_writer {
    const cx_io *io;
    const char *path; /* borrowed */
    cx_file file;
    uint64_t offset;
    cx_buf table;
    cx_buf packed; /* scratch */
} cx_archive_writer;

/* Creates the file, or empties it. */
CX_RESULT cx_archive_begin(cx_archive_writer *writer, const cx_io *io, const cx_alloc *alloc,
                           const char *path, cx_err *err);
CX_RESULT cx_archive_add(cx_archive_writer *writer, cx_bytes block, cx_err *err);
/* A frame that is packed already, of `size` bytes. */
CX_RESULT cx_archive_add_packed(cx_archive_writer *writer, cx_bytes frame, size_t size,
                                cx_err *err);
/* Writes the table and syncs. */
CX_RESULT cx_archive_end(cx_archive_writer *writer, cx_err *err);
/* Closes; a file that was not ended is removed, and overwritten. */
void cx_archive_writer_done(cx_archive_writer *writer);

/* Overwrites a file with zeros, syncs; what was in it is not on the disk any more. */
CX_RESULT cx_archive_destroy(const cx_io *io, const char *path, cx_file file, cx_err *err);

#endif

/*
 * unpack.h - the headers of a tar archive, as a reader of untrusted archives sees them.
 */
#ifndef CX_LEDGER_BACKUP_UNPACK_H
#define CX_LEDGER_BACKUP_UNPACK_H

#include "base/api.h"

#define CX_TAR_BLOCK 512
#define CX_TAR_NAME_MAX 257 /* prefix, a slash, name, zero */

typedef enum cx_tar_kind {
    CX_TAR_FILE,
    CX_TAR_FOLDER,
    CX_TAR_EXTENSION, /* pax headers "x" and "g": passed over */
    CX_TAR_END,       /* a block of zeros */
    CX_TAR_LINK,      /* hard or symbolic */
    CX_TAR_SPECIAL,   /* device, FIFO */
    CX_TAR_OTHER,     /* sparse files, GNU long names, several volumes, .. */
    CX_TAR_BAD        /* no header: wrong checksum, magic or size */
} cx_tar_kind;

typedef struct cx_tar_header {
    cx_tar_kind kind;
    uint64_t size_bytes;        /* of the contents, up to 8 GiB; padded to blocks in the archive */
    char name[CX_TAR_NAME_MAX]; /* as it is written there: not trusted */
} cx_tar_header;

void cx_tar_header_parse(const uint8_t block[CX_TAR_BLOCK], cx_tar_header *out);

/* The path inside of a backup: without "./" at its front, '/' at its end and `top` (which ends with
 * '/', or is ""); empty for the folder itself.  False when it is absolute, has a component ".." or
 * is not below `top`. */
bool cx_tar_path(const cx_tar_header *header, cx_str top, cx_str *out);

#endif

/*
 * git_pack.h - passes objects to git as one pack on its standard input (gitformat-pack, version 2,
 * without deltas): objects made by the governor, or found in a folder that an agent can write.
 *
 *     cx_git_pack_init(&pack, cx_git_oid_size(git));
 *     CX_TRY(cx_git_pack_add(&pack, CX_OBJECT_BLOB, contents, err));  ..
 *     status = cx_git_pack_store(&pack, git, false, err);
 *     cx_git_pack_done(&pack);
 *
 * Git recomputes every name and reads nothing but these bytes: no file, no link and no alternate of
 * the folder that an object came from.
 */
#ifndef CX_GIT_GIT_PACK_H
#define CX_GIT_GIT_PACK_H

#include "git/git.h"

#define CX_GIT_PACK_BYTES_MAX (UINT64_C(512) << 20)   /* of one pack, and of all its contents */
#define CX_GIT_OBJECT_BYTES_MAX (UINT64_C(256) << 20) /* of one object, unpacked */

typedef enum cx_object_type {
    CX_OBJECT_COMMIT = 1,
    CX_OBJECT_TREE = 2,
    CX_OBJECT_BLOB = 3,
    CX_OBJECT_TAG = 4
} cx_object_type;

/* "commit", "tree", .. */
const char *cx_git_type_name(cx_object_type type);

typedef struct cx_git_pack {
    cx_buf bytes;
    size_t oid_size;
    uint32_t count;
    uint64_t plain_bytes; /* of all contents */
} cx_git_pack;

void cx_git_pack_init(cx_git_pack *pack, size_t oid_size);
void cx_git_pack_done(cx_git_pack *pack);
/* CX_E_LIMIT beyond the limits above. */
CX_RESULT cx_git_pack_add(cx_git_pack *pack, cx_object_type type, cx_bytes contents, cx_err *err);
/* Writes the objects into the repository; an empty pack is fine.  `strict`: git also checks their
 * format and that the objects they refer to exist. */
CX_RESULT cx_git_pack_store(cx_git_pack *pack, const cx_git *git, bool strict, cx_err *err);
/* A pack from an agent, as bytes: always with strict checks.  CX_E_LIMIT when git would need more
 * than CX_GIT_HOSTILE_MEMORY_BYTES for it; `timeout_ms`: 0 = the handle's. */
CX_RESULT cx_git_pack_store_bytes(const cx_git *git, cx_bytes pack, uint64_t timeout_ms,
                                  cx_err *err);

/*
 * Parses the file of a loose object ("<type> <size>\0<contents>" in a zlib stream) and appends the
 * contents. CX_E_FORMAT when it is malformed; CX_E_LIMIT beyond `limit_bytes`.
 */
CX_RESULT cx_git_loose_parse(cx_bytes file, size_t limit_bytes, cx_object_type *out_type,
                             cx_buf *out, cx_err *err);

#endif

/*
 * git_index.h - reads the file of a git index, versions 2 to 4, without git (gitformat-index).
 *
 * An agent can write the index of its work tree, and git acts on what an index contains: flags,
 * shared indexes in other files, programs that watch the file system.  This reader has no side
 * effects.
 *
 *   I1  Every length is compared with the bytes left; a wrong one is an error with its offset.
 *   I2  Unknown content that changes the meaning of the index is rejected: an extension with a
 *       lower-case name.
 */
#ifndef CX_GIT_GIT_INDEX_H
#define CX_GIT_GIT_INDEX_H

#include "git/git.h"

#define CX_INDEX_BYTES_MAX (UINT64_C(256) << 20)

enum {
    CX_INDEX_ASSUME_UNCHANGED = 1,
    CX_INDEX_SKIP_WORKTREE = 2,
    CX_INDEX_FSMONITOR_VALID = 4,
    CX_INDEX_INTENT_TO_ADD = 8
};

typedef struct cx_index_entry {
    cx_str path;
    uint32_t mode;
    cx_oid oid;
    uint8_t stage;
    uint8_t flags; /* CX_INDEX_ */
} cx_index_entry;

/*
 * Entries in the order of the file; paths live in the arena.  CX_E_FORMAT with the offset when the
 * bytes are not an index; CX_E_UNSUPPORTED for an index that depends on other files (split,
 * sparse). The checksum is not verified: a process that can write the file can write the checksum,
 * too.
 */
CX_RESULT cx_index_read(cx_bytes file, size_t oid_size, cx_arena *arena, cx_index_entry **out,
                        size_t *out_count, cx_err *err);

#endif

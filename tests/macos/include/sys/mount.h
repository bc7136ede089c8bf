/* Written for tests/macos. */
#ifndef CX_MACOS_SYS_MOUNT_H
#define CX_MACOS_SYS_MOUNT_H
#include <sys/types.h>
struct statfs {
    uint32_t f_bsize;
    int32_t f_iosize;
    uint64_t f_blocks;
    uint64_t f_bfree;
    uint64_t f_bavail;
    uint64_t f_files;
    uint64_t f_ffree;
    int32_t f_fsid[2];
    uid_t f_owner;
    uint32_t f_type;
    uint32_t f_flags;
    uint32_t f_fssubtype;
    char f_fstypename[16];
    char f_mntonname[1024];
    char f_mntfromname[1024];
    uint32_t f_flags_ext;
    uint32_t f_reserved[7];
};
int statfs(const char *path, struct statfs *out);
int fstatfs(int file, struct statfs *out);
#endif

/* Written for tests/macos: without O_PATH, O_TMPFILE, F_OFD_SETLK (not in every SDK),
 * posix_fallocate, posix_fadvise and sync_file_range. */
#ifndef CX_MACOS_FCNTL_H
#define CX_MACOS_FCNTL_H
#include <sys/types.h>
#define O_RDONLY 0
#define O_WRONLY 1
#define O_RDWR 2
#define O_ACCMODE 3
#define O_NONBLOCK 4
#define O_APPEND 8
#define O_SYNC 0x80
#define O_NOFOLLOW 0x100
#define O_CREAT 0x200
#define O_TRUNC 0x400
#define O_EXCL 0x800
#define O_NOCTTY 0x20000
#define O_DIRECTORY 0x100000
#define O_CLOEXEC 0x1000000
#define AT_FDCWD (-2)
#define AT_EACCESS 0x10
#define AT_SYMLINK_NOFOLLOW 0x20
#define AT_SYMLINK_FOLLOW 0x40
#define AT_REMOVEDIR 0x80
#define FD_CLOEXEC 1
#define F_DUPFD 0
#define F_GETFD 1
#define F_SETFD 2
#define F_GETFL 3
#define F_SETFL 4
#define F_GETLK 7
#define F_SETLK 8
#define F_SETLKW 9
#define F_RDLCK 1
#define F_UNLCK 2
#define F_WRLCK 3
#define F_PREALLOCATE 42
#define F_NOCACHE 48
#define F_FULLFSYNC 51
#define F_DUPFD_CLOEXEC 67
#define F_SETNOSIGPIPE 73
#define F_ALLOCATECONTIG 2
#define F_ALLOCATEALL 4
#define F_PEOFPOSMODE 3
#define F_VOLPOSMODE 4
struct flock {
    off_t l_start;
    off_t l_len;
    pid_t l_pid;
    short l_type;
    short l_whence;
};
typedef struct fstore {
    unsigned fst_flags;
    int fst_posmode;
    off_t fst_offset;
    off_t fst_length;
    off_t fst_bytesalloc;
} fstore_t;
int open(const char *path, int flags, ...);
int openat(int folder, const char *path, int flags, ...);
int fcntl(int file, int command, ...);
#endif

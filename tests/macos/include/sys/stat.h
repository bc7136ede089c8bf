/* Written for tests/macos: times are st_mtimespec; there is no statx and no st_mtim. */
#ifndef CX_MACOS_SYS_STAT_H
#define CX_MACOS_SYS_STAT_H
#include <sys/types.h>
struct stat {
    dev_t st_dev;
    mode_t st_mode;
    nlink_t st_nlink;
    ino_t st_ino;
    uid_t st_uid;
    gid_t st_gid;
    dev_t st_rdev;
    struct timespec st_atimespec;
    struct timespec st_mtimespec;
    struct timespec st_ctimespec;
    struct timespec st_birthtimespec;
    off_t st_size;
    blkcnt_t st_blocks;
    blksize_t st_blksize;
    unsigned st_flags;
    unsigned st_gen;
};
#define S_IFMT 0170000
#define S_IFIFO 0010000
#define S_IFDIR 0040000
#define S_IFREG 0100000
#define S_IFLNK 0120000
#define S_IFSOCK 0140000
#define S_ISDIR(m) (((m)&S_IFMT) == S_IFDIR)
#define S_ISREG(m) (((m)&S_IFMT) == S_IFREG)
#define S_ISLNK(m) (((m)&S_IFMT) == S_IFLNK)
#define S_ISFIFO(m) (((m)&S_IFMT) == S_IFIFO)
#define S_ISSOCK(m) (((m)&S_IFMT) == S_IFSOCK)
#define S_IRUSR 0400
#define S_IWUSR 0200
#define S_IXUSR 0100
int chmod(const char *path, mode_t mode);
int fchmod(int file, mode_t mode);
int fchmodat(int folder, const char *path, mode_t mode, int flags);
int fstat(int file, struct stat *out);
int fstatat(int folder, const char *path, struct stat *out, int flags);
int lstat(const char *path, struct stat *out);
int mkdir(const char *path, mode_t mode);
int mkdirat(int folder, const char *path, mode_t mode);
int mkfifo(const char *path, mode_t mode);
int mkfifoat(int folder, const char *path, mode_t mode);
int stat(const char *path, struct stat *out);
mode_t umask(mode_t mask);
int utimensat(int folder, const char *path, const struct timespec times[2], int flags);
int renameat(int a, const char *from, int b, const char *to);
#endif

/* Written for tests/macos: without pipe2, dup3, execveat, fdatasync, getentropy (sys/random.h),
 * gettid and `environ`, which macOS has elsewhere or not at all. */
#ifndef CX_MACOS_UNISTD_H
#define CX_MACOS_UNISTD_H
#include <sys/types.h>
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _SC_OPEN_MAX 5
#define _SC_PAGESIZE 29
#define _SC_NPROCESSORS_ONLN 58
#define _SC_PHYS_PAGES 200
_Noreturn void _exit(int code);
int access(const char *path, int mode);
unsigned alarm(unsigned seconds);
int chdir(const char *path);
int close(int file);
int dup(int file);
int dup2(int from, int to);
int execve(const char *path, char *const argv[], char *const envp[]);
int execv(const char *path, char *const argv[]);
int faccessat(int folder, const char *path, int mode, int flags);
int fchown(int file, uid_t user, gid_t group);
pid_t fork(void);
int fsync(int file);
int ftruncate(int file, off_t size);
char *getcwd(char *out, size_t size);
gid_t getegid(void);
uid_t geteuid(void);
gid_t getgid(void);
int gethostname(char *out, size_t size);
int getpeereid(int socket, uid_t *user, gid_t *group);
pid_t getpgrp(void);
pid_t getpid(void);
pid_t getppid(void);
uid_t getuid(void);
int isatty(int file);
int link(const char *from, const char *to);
int linkat(int a, const char *from, int b, const char *to, int flags);
off_t lseek(int file, off_t offset, int whence);
int pause(void);
int pipe(int out[2]);
ssize_t pread(int file, void *data, size_t size, off_t offset);
ssize_t pwrite(int file, const void *data, size_t size, off_t offset);
ssize_t read(int file, void *data, size_t size);
ssize_t readlink(const char *path, char *out, size_t size);
ssize_t readlinkat(int folder, const char *path, char *out, size_t size);
int rmdir(const char *path);
int setpgid(pid_t process, pid_t group);
pid_t setsid(void);
unsigned sleep(unsigned seconds);
int symlink(const char *target, const char *path);
int symlinkat(const char *target, int folder, const char *path);
long sysconf(int name);
int unlink(const char *path);
int unlinkat(int folder, const char *path, int flags);
int usleep(useconds_t microseconds);
ssize_t write(int file, const void *data, size_t size);
#endif

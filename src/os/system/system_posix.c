/*
 * system_posix.c - the part of system.h that needs nothing but POSIX: descriptors, folders,
 * signals.
 *
 * What the systems of the *_linux.c files do in one call is done in two here: between them another
 * thread may start a program, which then inherits the descriptor.  start_posix.c closes it there.
 */
#include "os/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const int cx_system_receive_flags = 0;
/* Folders on the way must be readable then, where O_PATH would need none of it. */
const int cx_system_pass_flag = O_RDONLY;

/* --- descriptors ------------------------------------------------------------------------------ */

static void close_on_exec(int file)
{
    (void)fcntl(file, F_SETFD, FD_CLOEXEC);
}

static void set_up_socket(int socket)
{
    close_on_exec(socket);
    (void)fcntl(socket, F_SETFL, O_NONBLOCK);
    cx_system_adopt(socket);
}

bool cx_system_pipe(int out[2])
{
    if (pipe(out) != 0)
        return false;
    close_on_exec(out[0]);
    close_on_exec(out[1]);
    return true;
}

/* The folder of temporary files, without a slash at its end. */
static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder == NULL || folder[0] != '/' ? "/tmp" : folder;
}

int cx_system_unnamed_file(void)
{
    char name[PATH_MAX];
    int size = snprintf(name, sizeof name, "%s/cortex-XXXXXX", temporary_folder());
    if (size < 0 || (size_t)size >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int file = mkstemp(name);
    if (file < 0)
        return -1;
    close_on_exec(file);
    (void)unlink(name);
    return file;
}

int cx_system_socket(int family, int type)
{
    int made = socket(family, type, 0);
    if (made >= 0)
        set_up_socket(made);
    return made;
}

/* Messages of one byte keep their bounds in a stream, too. */
bool cx_system_socket_pair(int out[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, out) != 0)
        return false;
    set_up_socket(out[0]);
    set_up_socket(out[1]);
    return true;
}

bool cx_system_stream_pair(int out[2])
{
    return cx_system_socket_pair(out);
}

int cx_system_accept(int listening, struct sockaddr *peer, socklen_t *size)
{
    int accepted = accept(listening, peer, size);
    if (accepted >= 0)
        set_up_socket(accepted);
    return accepted;
}

/* A socket without a name that is connected to nothing. */
bool cx_system_silence(int file)
{
    int silent = cx_system_socket(AF_UNIX, SOCK_DGRAM);
    bool done = silent >= 0 && dup2(silent, file) >= 0;
    if (done)
        close_on_exec(file);
    if (silent >= 0)
        (void)close(silent);
    return done;
}

/*
 * The mode of the file comes from the umask, which all threads share: a file that one of them
 * creates meanwhile gets fewer rights than it asked for, never more.
 */
bool cx_system_bind_private(int socket, const struct sockaddr *address, socklen_t size)
{
    mode_t before = umask(0177);
    bool done = bind(socket, address, size) == 0;
    int code = errno;
    (void)umask(before);
    errno = code;
    return done;
}

/* A link in a new folder that only this user can enter. */
bool cx_system_way_open(const char *folder, cx_system_way *out)
{
    char through[sizeof out->path];
    out->folder = -1;
    (void)snprintf(out->path, sizeof out->path, "/tmp/cortex-XXXXXX");
    char *real = realpath(folder, NULL);
    if (real == NULL)
        return false;
    bool made = mkdtemp(out->path) != NULL;
    if (made) {
        (void)snprintf(through, sizeof through, "%.32s/d", out->path);
        made = symlink(real, through) == 0;
        if (!made)
            (void)rmdir(out->path);
        else
            memcpy(out->path, through, sizeof through);
    }
    int code = errno;
    free(real);
    errno = code;
    return made;
}

void cx_system_way_close(const cx_system_way *way)
{
    char above[sizeof way->path];
    (void)unlink(way->path);
    (void)snprintf(above, sizeof above, "%s", way->path);
    *strrchr(above, '/') = '\0';
    (void)rmdir(above);
}

/* --- folders ---------------------------------------------------------------------------------- */

bool cx_system_open_beneath(int folder, const char *path, int flags, mode_t mode, int *out)
{
    (void)folder;
    (void)path;
    (void)flags;
    (void)mode;
    (void)out;
    return false;
}

/* AT_SYMLINK_NOFOLLOW changes a link that came in place of the file meanwhile: its own mode, which
 * means nothing. */
bool cx_system_change_mode(int folder, const char *name, mode_t mode)
{
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    if (S_ISLNK(info.st_mode)) {
        errno = ELOOP;
        return false;
    }
    return fchmodat(folder, name, mode, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether a file system dates writes to mapped pages is not known. */
bool cx_system_keeps_times(int folder)
{
    (void)folder;
    return false;
}

int64_t cx_system_file_clock_ns(void)
{
    return 0; /* no file is old enough */
}

/* --- signals ---------------------------------------------------------------------------------- */

/* sigwait does not wait for a signal that is pending. */
void cx_system_drop_pending(int number)
{
    sigset_t one, pending;
    int got;
    sigemptyset(&one);
    sigaddset(&one, number);
    if (sigpending(&pending) == 0 && sigismember(&pending, number) == 1)
        (void)sigwait(&one, &got);
}

#define TAKEN_MAX 8

/* Handlers write the number to a pipe. */
static struct {
    atomic_bool open;
    atomic_int to; /* the end to write to */
    int numbers[TAKEN_MAX];
    struct sigaction before[TAKEN_MAX];
    size_t count;
    sigset_t taken;
} taking;

static void note_signal(int number)
{
    int code = errno;
    const unsigned char byte = (unsigned char)number;
    (void)!write(atomic_load(&taking.to), &byte, 1);
    errno = code;
}

static void install_handlers(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    taking.count = 0;
    for (int number = 1; number < NSIG && number < 128 && taking.count < TAKEN_MAX; number++)
        if (sigismember(&taking.taken, number) == 1 &&
            sigaction(number, &action, &taking.before[taking.count]) == 0)
            taking.numbers[taking.count++] = number;
    (void)pthread_sigmask(SIG_UNBLOCK, &taking.taken, NULL);
}

int cx_system_signals_open(const sigset_t *taken)
{
    int ends[2];
    if (atomic_exchange(&taking.open, true)) {
        errno = EBUSY;
        return -1;
    }
    if (!cx_system_pipe(ends)) {
        atomic_store(&taking.open, false);
        return -1;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    atomic_store(&taking.to, ends[1]);
    taking.taken = *taken;
    install_handlers();
    return ends[0];
}

int cx_system_signals_read(int file)
{
    unsigned char number;
    return read(file, &number, 1) == 1 ? number : 0;
}

void cx_system_signals_close(int file)
{
    (void)pthread_sigmask(SIG_BLOCK, &taking.taken, NULL);
    for (size_t i = 0; i < taking.count; i++)
        (void)sigaction(taking.numbers[i], &taking.before[i], NULL);
    (void)close(atomic_load(&taking.to));
    (void)close(file);
    atomic_store(&taking.open, false);
}

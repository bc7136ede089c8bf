/*
 * test_index_locks.c - opening an index once more in a process leaves the locks of the first one
 * alone.
 *
 * Closing any descriptor of a file drops all POSIX locks that the process has on it.  An index that
 * has lost them can be taken for closed by another process, which then removes its write-ahead log.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"
#include "tests/support/index_kit.h"

/* Whether another process sees a lock on the file: asked by a child, since one's own do not
 * show. */
static bool is_locked(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int file = open(path, O_RDWR | O_CLOEXEC);
        _exit(file >= 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 1 : 0);
    }
    int state = 0;
    return child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) &&
           WEXITSTATUS(state) == 1;
}

CX_TEST(index_opened_again_keeps_the_locks_of_the_first)
{
    char where[FOLDER_PATH_SIZE + 16];
    cx_err err = {0};
    cx_feed_position position;
    (void)snprintf(where, sizeof where, "%s", kit_place(false));
    cx_index *first = kit_open_empty(where), *again = NULL;
    REQUIRE(first != NULL);
    CHECK_STATUS(cx_index_position(first, kit_home, &position, &err), &err);
    CHECK(is_locked(where));
    CHECK_STATUS(cx_index_open(where, CX_INDEX_WRITE, &again, &err), &err);
    CHECK(is_locked(where));
    cx_index_close(again);
    CHECK(is_locked(where));
    cx_index_close(first);
    CHECK(!is_locked(where));
    kit_remove(where, false);
}

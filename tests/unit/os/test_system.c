/*
 * Tests for os/system/system.h and os/machine.h: what each system's files promise.
 */
#include "os/system/system.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/api.h"
#include "tests/test.h"

static bool is_readable(int file)
{
    struct pollfd one = {file, POLLIN, 0};
    return poll(&one, 1, 0) == 1 && (one.revents & POLLIN) != 0;
}

static bool is_private(int file)
{
    return (fcntl(file, F_GETFD) & FD_CLOEXEC) != 0;
}

CX_TEST(descriptors_are_closed_in_programs_and_sockets_do_not_block)
{
    int ends[2], pair[2];
    REQUIRE(cx_system_pipe(ends) && cx_system_socket_pair(pair));
    int made[] = {ends[0],
                  ends[1],
                  pair[0],
                  pair[1],
                  cx_system_unnamed_file(),
                  cx_system_socket(AF_UNIX, SOCK_STREAM),
                  cx_system_wake_open()};
    for (size_t i = 0; i < CX_COUNT_OF(made); i++)
        CHECK(made[i] >= 0 && is_private(made[i]));
    CHECK((fcntl(pair[0], F_GETFL) & O_NONBLOCK) != 0);
    CHECK((fcntl(made[5], F_GETFL) & O_NONBLOCK) != 0);
    CHECK(write(ends[1], "x", 1) == 1 && is_readable(ends[0]));
    CHECK(send(pair[0], "y", 1, cx_system_send_flags) == 1 && is_readable(pair[1]));
    CHECK(write(made[4], "abc", 3) == 3);
    for (size_t i = 0; i < CX_COUNT_OF(made); i++)
        (void)close(made[i]);
}

CX_TEST(a_wake_up_is_there_until_it_is_cleared)
{
    int file = cx_system_wake_open();
    REQUIRE(file >= 0);
    CHECK(!is_readable(file));
    for (int i = 0; i < 3; i++)
        cx_system_wake(file);
    CHECK(is_readable(file));
    CHECK(is_readable(file));
    cx_system_wake_clear(file);
    CHECK(!is_readable(file));
    for (int i = 0; i < 100000; i++) /* never waits */
        cx_system_wake(file);
    CHECK(is_readable(file));
    (void)close(file);
}

CX_TEST(a_silenced_file_is_never_readable)
{
    int ends[2];
    REQUIRE(cx_system_pipe(ends));
    CHECK(write(ends[1], "x", 1) == 1 && is_readable(ends[0]));
    CHECK(cx_system_silence(ends[0]));
    CHECK(!is_readable(ends[0]));
    CHECK(is_private(ends[0]));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

CX_TEST(a_way_leads_to_a_folder_and_is_short)
{
    char folder[] = "/tmp/cx_way_XXXXXX";
    char path[PATH_MAX];
    struct stat a, b;
    cx_system_way way;
    REQUIRE(mkdtemp(folder) != NULL);
    REQUIRE(cx_system_way_open(folder, &way));
    CHECK(strlen(way.path) < sizeof way.path);
    (void)snprintf(path, sizeof path, "%s/.", way.path);
    CHECK(stat(folder, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino);
    cx_system_way_close(&way);
    CHECK(stat(path, &b) != 0);
    CHECK(!cx_system_way_open("/nowhere/at-all", &way));
    CHECK_INT(rmdir(folder), 0);
}

/* Not the umask, and not for a moment. */
CX_TEST(a_socket_has_a_file_for_its_user_alone)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct stat info;
    mode_t before = umask(0);
    int made = cx_system_socket(AF_UNIX, SOCK_STREAM);
    REQUIRE(made >= 0);
    (void)snprintf(name.sun_path, sizeof name.sun_path, "/tmp/cx_socket_%ld", (long)getpid());
    CHECK(cx_system_bind_private(made, (const struct sockaddr *)&name, sizeof name));
    CHECK(stat(name.sun_path, &info) == 0);
    CHECK_INT(info.st_mode & 0777, 0600);
    CHECK(!cx_system_bind_private(made, (const struct sockaddr *)&name, sizeof name));
    CHECK_INT(umask(before), 0);
    (void)close(made);
    (void)unlink(name.sun_path);
}

CX_TEST(signals_come_as_reads_while_they_are_taken)
{
    sigset_t taken, before, now;
    sigemptyset(&taken);
    sigaddset(&taken, SIGUSR1);
    sigaddset(&taken, SIGUSR2);
    CHECK_INT(pthread_sigmask(SIG_BLOCK, &taken, &before), 0);
    int file = cx_system_signals_open(&taken);
    REQUIRE(file >= 0);
    CHECK_INT(cx_system_signals_read(file), 0);
    CHECK_INT(kill(getpid(), SIGUSR2), 0);
    struct pollfd one = {file, POLLIN, 0};
    while (poll(&one, 1, 10000) < 0)
        continue;
    CHECK_INT(cx_system_signals_read(file), SIGUSR2);
    CHECK_INT(cx_system_signals_read(file), 0);
    cx_system_signals_close(file);
    CHECK_INT(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    CHECK(sigismember(&now, SIGUSR1) == 1);
    CHECK_INT(raise(SIGUSR1), 0); /* is pending again, rather than taken */
    cx_system_drop_pending(SIGUSR1);
    CHECK(sigpending(&now) == 0 && sigismember(&now, SIGUSR1) == 0);
    cx_system_drop_pending(SIGUSR1); /* there is none: does not wait */
    CHECK_INT(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

CX_TEST(a_signal_is_awaited_for_a_time)
{
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    CHECK_INT(pthread_sigmask(SIG_BLOCK, &one, &before), 0);
    CHECK_INT(cx_machine_await_signal(&one, 1000000), 0);
    CHECK_INT(kill(getpid(), SIGUSR1), 0);
    CHECK_INT(cx_machine_await_signal(&one, UINT64_C(60000000000)), SIGUSR1);
    CHECK_INT(cx_machine_await_signal(&one, 0), 0);
    CHECK_INT(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

CX_TEST(a_process_has_one_start_until_it_is_gone)
{
    cx_err err;
    uint64_t first = 0, again = 1;
    CHECK_STATUS(cx_machine_process_start((uint64_t)getpid(), &first, &err), &err);
    CHECK_STATUS(cx_machine_process_start((uint64_t)getpid(), &again, &err), &err);
    CHECK_INT(first, again);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    REQUIRE(child > 0 && waitpid(child, NULL, 0) == child);
    CHECK_INT(cx_machine_process_start((uint64_t)child, &again, &err).code, CX_E_NOT_FOUND);
    CHECK_INT(cx_machine_process_start(UINT64_MAX, &again, &err).code, CX_E_NOT_FOUND);
}

CX_TEST(the_machine_says_what_it_is)
{
    static char shell[] = "/bin/sh";
    char *const argv[] = {shell, NULL};
    cx_err err;
    uint64_t stack;
    cx_buf text;
    cx_facts facts;
    cx_buf_init(&text, cx_alloc_default());
    cx_machine_begin(1, argv);
    CHECK_STATUS(cx_path_facts(cx_machine_program(), true, &facts, &err), &err);
    CHECK_INT(facts.kind, CX_FILE_REGULAR);
    CHECK(cx_machine_environment() != NULL);
    CHECK(cx_machine_stack_limit(&stack));
    CHECK_STATUS(cx_machine_host(&text, &err), &err);
    CHECK(text.size != 0 && text.data[text.size - 1] > ' ');
    cx_buf_clear(&text);
    CHECK_STATUS(cx_machine_boot_id(&text, &err), &err);
    cx_buf_clear(&text);
    cx_machine_command(UINT64_MAX, 2, &text);
    CHECK_INT(text.size, 0);
    cx_buf_done(&text);
}

CX_TEST(a_library_is_looked_for_by_few_names)
{
    char path[256];
    unsigned turn = 0;
    while (turn < 100 && cx_system_library("libz.so.1", turn, path, sizeof path))
        turn++;
    CHECK(turn >= 1 && turn < 100);
    CHECK(!cx_system_library("libz.so.1", 0, path, 4));
}

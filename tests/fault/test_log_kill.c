/*
 * test_log_kill.c - a program that writes from several threads is killed at a random moment, again
 * and again: what it was told to be on the disk is there, in each writer's order and without gaps.
 * CORTEX_CRASH_ROUNDS says how often; 20 without it.
 */
#include "log/log.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/support/folder.h"
#include "tests/test.h"

enum { WRITERS = 4 };

/* What a frame begins with, and what a writer says over the pipe when it was told so. */
typedef struct ticket {
    uint32_t writer;
    uint32_t number;
} ticket;

typedef struct child {
    cx_log *log;
    uint32_t next[WRITERS];
    int pipe;
} child;

static void make_frame(ticket t, uint8_t *out, size_t *out_size)
{
    size_t size = sizeof t + (t.number * 2654435761u >> 20) % 3000;
    memcpy(out, &t, sizeof t);
    for (size_t i = sizeof t; i < size; i++)
        out[i] = (uint8_t)(t.writer + t.number * 3 + i);
    *out_size = size;
}

static void write_on(void *arg, unsigned index)
{
    child *c = arg;
    uint8_t bytes[4096];
    for (ticket t = {index, c->next[index]};; t.number++) {
        size_t size;
        uint64_t commit;
        make_frame(t, bytes, &size);
        cx_log_frame frames[2] = {{cx_bytes_from(bytes, size), {NULL, 0}},
                                  {cx_bytes_from(bytes, size), cx_bytes_from(bytes, size)}};
        if (cx_failed(cx_log_submit(c->log, frames, 2, NULL, &commit, NULL)) ||
            cx_failed(cx_log_wait(c->log, commit, NULL)) ||
            write(c->pipe, &t, sizeof t) != (ssize_t)sizeof t)
            _exit(1);
    }
}

static pid_t start(const char *folder, const cx_log_options *options, const uint32_t *next,
                   int *out_pipe)
{
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    pid_t pid = fork();
    if (pid != 0) {
        (void)close(ends[1]);
        *out_pipe = ends[0];
        return pid;
    }
    child c = {.pipe = ends[1]};
    (void)close(ends[0]);
    memcpy(c.next, next, sizeof c.next);
    if (cx_failed(cx_log_open(folder, options, &c.log, NULL, NULL)))
        _exit(2);
    ticket ready = {WRITERS, 0};
    if (write(ends[1], &ready, sizeof ready) != (ssize_t)sizeof ready)
        _exit(3);
    cx_thread_team(WRITERS, write_on, &c);
    _exit(4);
}

/* Reads what was acknowledged until the pipe ends; false when the child never got going. */
static bool drain(int pipe_end, uint32_t acked[WRITERS])
{
    ticket t;
    bool ready = false;
    while (read(pipe_end, &t, sizeof t) == (ssize_t)sizeof t) {
        if (t.writer == WRITERS)
            ready = true;
        else if (t.number + 1 > acked[t.writer])
            acked[t.writer] = t.number + 1;
    }
    (void)close(pipe_end);
    return ready;
}

static bool good_frame(const cx_log_item *item, ticket t, bool second)
{
    uint8_t bytes[4096];
    size_t size;
    make_frame(t, bytes, &size);
    cx_bytes erasable = item->frame.erasable;
    return item->frame.guarded.size == size && memcmp(item->frame.guarded.data, bytes, size) == 0 &&
           !item->erased && !item->erasable_damaged && erasable.size == (second ? size : 0) &&
           (!second || memcmp(erasable.data, bytes, size) == 0);
}

/* Each writer's frames from 0 on, in pairs, none twice; next[] is how many there are. */
static bool count_frames(const char *folder, uint32_t next[WRITERS])
{
    static const cx_log_options reading = {.read_only = true};
    cx_log *log;
    cx_log_scan *scan;
    cx_err err;
    bool good = true, end = false;
    memset(next, 0, WRITERS * sizeof *next);
    if (cx_failed(cx_log_open(folder, &reading, &log, NULL, &err)) ||
        cx_failed(cx_log_scan_begin(log, 0, &scan, &err))) {
        cx_test_fail(__FILE__, __LINE__, "%s", err.message);
        return false;
    }
    while (good && !end) {
        cx_log_commit commit;
        if (cx_failed(cx_log_scan_next(scan, &commit, &end, &err))) {
            cx_test_fail(__FILE__, __LINE__, "%s", err.message);
            good = false;
            break;
        }
        for (size_t i = 0; !end && good && i < commit.count; i++) {
            ticket t;
            memcpy(&t, commit.items[i].frame.guarded.data, sizeof t);
            good = t.writer < WRITERS && t.number == next[t.writer] &&
                   good_frame(&commit.items[i], t, i % 2 != 0);
            if (good && i % 2 != 0)
                next[t.writer]++;
        }
        good = good && (end || commit.count % 2 == 0);
    }
    cx_log_scan_end(scan);
    cx_log_close(log);
    return good;
}

static void pause_ms(uint64_t ms)
{
    struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Until a ticket lies after the one that says that the child is ready; for two minutes. */
static bool has_promised(int pipe_end)
{
    int bytes = 0;
    for (int i = 0; i < 120000; i++) {
        if (ioctl(pipe_end, FIONREAD, &bytes) == 0 && (size_t)bytes >= 2 * sizeof(ticket))
            return true;
        pause_ms(1);
    }
    return false;
}

CX_TEST(log_killed_at_any_moment_keeps_what_it_promised)
{
    const char *given = getenv("CORTEX_CRASH_ROUNDS");
    uint64_t rounds = given != NULL ? strtoull(given, NULL, 10) : 20, seed = cx_test_seed();
    const cx_log_options options = {.segment_bytes = UINT64_C(256) << 10, .trail_bytes = 8 << 10};
    char folder[FOLDER_PATH_SIZE];
    uint32_t next[WRITERS] = {0};
    uint64_t promised = 0;
    cx_err err;
    folder_fresh(folder, "kill");
    CHECK_STATUS(cx_log_create(folder, &options, &err), &err);
    for (uint64_t round = 0; round < rounds; round++) {
        uint32_t acked[WRITERS] = {0};
        int end = -1, status = 0;
        pid_t pid = start(folder, &options, next, &end);
        REQUIRE(pid > 0);
        /* Every other time not before something was promised, however slow the machine is. */
        if (round % 2 == 0)
            CHECK(has_promised(end));
        pause_ms(cx_test_random(&seed) % 60);
        CHECK_INT(kill(pid, SIGKILL), 0);
        (void)drain(end, acked);
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        bool good = count_frames(folder, next);
        for (unsigned w = 0; w < WRITERS; w++)
            good = good && next[w] >= acked[w];
        for (unsigned w = 0; w < WRITERS; w++)
            promised += acked[w] != 0;
        if (!good) {
            cx_test_fail(__FILE__, __LINE__, "round %llu of seed %llu", (unsigned long long)round,
                         (unsigned long long)cx_test_seed());
            break;
        }
        /* The log grows with the rounds, and is read each time. */
        if (round % 25 == 24) {
            folder_remove(folder);
            memset(next, 0, sizeof next);
            CHECK_STATUS(cx_log_create(folder, &options, &err), &err);
        }
    }
    CHECK(promised >= rounds / 2);
    folder_remove(folder);
}

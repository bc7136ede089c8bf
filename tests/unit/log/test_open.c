/*
 * test_open.c - creating, opening, recovering: what is cut, what is refused, and who may write.
 */
#include "log/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

static const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
static const cx_log_options reading = {.read_only = true};

typedef struct place {
    char folder[FOLDER_PATH_SIZE];
    log_model m;
} place;

static cx_log *make(place *p, int commits, size_t size)
{
    cx_log *log = NULL;
    cx_err err;
    folder_fresh(p->folder, "open");
    log_model_init(&p->m);
    CHECK_STATUS(cx_log_create(p->folder, &small, &err), &err);
    cx_status status = cx_log_open(p->folder, &small, &log, NULL, &err);
    CHECK(!cx_failed(status));
    for (int i = 0; i < commits && !cx_failed(status); i++) {
        uint64_t commit;
        const size_t sizes[2][2] = {{size, 0}, {size + (size_t)i, 20}};
        CHECK_STATUS(log_model_submit(&p->m, log, sizes, 2, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&p->m, commit);
    }
    return log;
}

static void drop(place *p)
{
    folder_remove(p->folder);
    log_model_done(&p->m);
}

/* Opens one of the log's files; -1 when it is not there. */
static int file_of(const place *p, const char *name)
{
    char path[FOLDER_PATH_SIZE + 20];
    (void)snprintf(path, sizeof path, "%s/%s", p->folder, name);
    return open(path, O_RDWR);
}

static void change(const place *p, const char *name, off_t at, const void *data, size_t size)
{
    int file = file_of(p, name);
    CHECK(file >= 0 && pwrite(file, data, size, at) == (ssize_t)size);
    (void)close(file);
}

static void flip(const place *p, const char *name, off_t at)
{
    uint8_t byte = 0;
    int file = file_of(p, name);
    CHECK(file >= 0 && pread(file, &byte, 1, at) == 1);
    byte ^= 0x40;
    CHECK(pwrite(file, &byte, 1, at) == 1);
    (void)close(file);
}

static cx_code open_code(const place *p, const cx_log_options *options, cx_log_opened *opened,
                         cx_err *err)
{
    cx_log *log;
    cx_status status = cx_log_open(p->folder, options, &log, opened, err);
    if (!cx_failed(status))
        cx_log_close(log);
    return status.code;
}

CX_TEST(open_finds_what_was_written)
{
    place p;
    cx_log_opened opened;
    cx_err err;
    uint8_t id[16], again[16], zeros[16] = {0};
    cx_log *log = make(&p, 40, 1500);
    REQUIRE(log != NULL);
    cx_log_home_id(log, id);
    CHECK(memcmp(id, zeros, 16) != 0);
    CHECK(log_model_check(&p.m, log, 40, true));
    cx_log_close(log);
    REQUIRE(!cx_failed(cx_log_open(p.folder, &small, &log, &opened, &err)));
    cx_log_home_id(log, again);
    CHECK(memcmp(id, again, 16) == 0);
    CHECK_INT(opened.commit_count, 40);
    CHECK_INT(opened.torn_bytes, 0);
    CHECK_INT(opened.segment_count, 3);
    CHECK(log_model_check(&p.m, log, 40, true));
    cx_log_close(log);
    drop(&p);
}

CX_TEST(open_says_when_there_is_no_log_or_one_already)
{
    place p;
    cx_err err;
    folder_fresh(p.folder, "open");
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_NOT_FOUND);
    CHECK_INT(open_code(&p, &reading, NULL, &err), CX_E_NOT_FOUND);
    CHECK_INT(mkdir(p.folder, 0700), 0);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_NOT_FOUND);
    CHECK_INT(open_code(&p, &reading, NULL, &err), CX_E_NOT_FOUND);
    CHECK_INT(rmdir(p.folder), 0); /* and asking left nothing in it */
    cx_log_close(make(&p, 1, 10));
    CHECK_INT(cx_log_create(p.folder, &small, &err).code, CX_E_EXISTS);
    drop(&p);
    const cx_log_options tiny = {.segment_bytes = 1000};
    CHECK_INT(cx_log_create(p.folder, &tiny, &err).code, CX_E_LIMIT);
    cx_log_close(NULL);
}

CX_TEST(open_refuses_a_second_writer_and_names_the_first)
{
    place p;
    cx_err err;
    char text[32];
    cx_log *log = make(&p, 1, 10), *reader;
    REQUIRE(log != NULL);
    (void)snprintf(text, sizeof text, "process %ld", (long)getpid());
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_BUSY);
    CHECK_STR(cx_str_z(err.tag), "Locked");
    CHECK(strstr(err.message, text) != NULL);
    CHECK_INT(cx_log_create(p.folder, &small, &err).code, CX_E_BUSY);
    /* From another process too, and that one's end does not end the lock. */
    pid_t pid = fork();
    if (pid == 0)
        _exit(open_code(&p, &small, NULL, &err) == CX_E_BUSY && strstr(err.message, text) != NULL
                  ? 0
                  : 1);
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_BUSY);
    CHECK_STATUS(cx_log_open(p.folder, &reading, &reader, NULL, &err), &err);
    cx_log_close(reader);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_BUSY);
    cx_log_close(log);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_OK);
    drop(&p);
}

CX_TEST(open_reading_changes_nothing)
{
    place p;
    cx_buf before, after;
    cx_log_opened opened;
    cx_err err;
    cx_log *log = make(&p, 30, 1500);
    cx_log_close(log);
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_init(&after, cx_alloc_default());
    const model_frame *last = &p.m.frames.items[p.m.frames.count - 1];
    change(&p, "000001.seg", (off_t)(last->place.offset + last->place.size_bytes + 32), "torn", 4);
    folder_contents(p.folder, &before);
    CHECK_INT(chmod(p.folder, 0500), 0);
    REQUIRE(!cx_failed(cx_log_open(p.folder, &reading, &log, &opened, &err)));
    CHECK_INT(opened.commit_count, 30);
    CHECK_INT(opened.torn_bytes, 8); /* in words of eight */
    CHECK_INT(cx_log_durable(log), 30);
    CHECK(log_model_check(&p.m, log, 30, true));
    cx_log_frame frame = {cx_bytes_from("x", 1), {NULL, 0}};
    uint64_t commit;
    CHECK_INT(cx_log_submit(log, &frame, 1, NULL, &commit, &err).code, CX_E_DENIED);
    CHECK_INT(cx_log_erase(log, p.m.frames.items[1].place, &err).code, CX_E_DENIED);
    CHECK_INT(cx_log_wait(log, 30, &err).code, CX_E_USAGE);
    cx_log_close(log);
    CHECK_INT(chmod(p.folder, 0700), 0);
    folder_contents(p.folder, &after);
    CHECK(cx_str_eq(cx_buf_str(&before), cx_buf_str(&after)));
    cx_buf_done(&before);
    cx_buf_done(&after);
    drop(&p);
}

/* A group cut anywhere: the commits before it are there, the rest is cut and said so. */
CX_TEST(open_cuts_a_torn_group)
{
    place p;
    cx_buf segment;
    cx_err err;
    char path[FOLDER_PATH_SIZE + 20];
    cx_log_close(make(&p, 3, 300));
    cx_buf_init(&segment, cx_alloc_default());
    (void)snprintf(path, sizeof path, "%s/000000.seg", p.folder);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path, SIZE_MAX, &segment, &err), &err);
    uint64_t start = p.m.frames.items[4].place.offset;
    const model_frame *last = &p.m.frames.items[5];
    uint64_t end = last->place.offset + last->place.size_bytes + 32;
    static const uint8_t zeros[4096];
    for (uint64_t cut = start; cut < end; cut += 8) {
        cx_log_opened opened;
        cx_log *log;
        change(&p, "000000.seg", 0, segment.data, segment.size);
        change(&p, "000000.seg", (off_t)cut, zeros, (size_t)(end - cut));
        change(&p, "lock", 24, zeros, 12); /* nothing acknowledges the third commit */
        REQUIRE(!cx_failed(cx_log_open(p.folder, &small, &log, &opened, &err)));
        CHECK_INT(opened.commit_count, 2);
        uint64_t used = cut - start; /* words of eight that are not zero */
        while (used != 0 && memcmp(segment.data + start + used - 8, zeros, 8) == 0)
            used -= 8;
        CHECK_INT(opened.torn_bytes, used);
        CHECK_INT(cx_log_durable(log), 2);
        cx_log_close(log);
        cx_buf after;
        cx_buf_init(&after, cx_alloc_default());
        CHECK_STATUS(cx_io_read_file(cx_io_system(), path, SIZE_MAX, &after, &err), &err);
        for (size_t i = (size_t)start; i < after.size; i++)
            if (after.data[i] != 0) {
                cx_test_fail(__FILE__, __LINE__, "cut at %llu: byte %zu is left",
                             (unsigned long long)cut, i);
                break;
            }
        cx_buf_done(&after);
    }
    cx_buf_done(&segment);
    drop(&p);
}

CX_TEST(open_refuses_damage_with_commits_after_it)
{
    place p;
    cx_log_opened opened;
    cx_err err;
    cx_buf before, after;
    cx_log *log;
    cx_log_close(make(&p, 5, 300));
    uint64_t at = p.m.frames.items[4].place.offset;
    flip(&p, "000000.seg", (off_t)at + 100);
    static const uint8_t zeros[12];
    change(&p, "lock", 24, zeros, 12);
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_init(&after, cx_alloc_default());
    folder_contents(p.folder, &before);
    CHECK_INT(open_code(&p, &small, &opened, &err), CX_E_FORMAT);
    CHECK_STR(cx_str_z(err.tag), "LogDamaged");
    CHECK_INT(err.offset, at);
    CHECK(strstr(err.message, "000000.seg") != NULL);
    folder_contents(p.folder, &after);
    /* But for the process in the lock file. */
    CHECK_INT(before.size, after.size);
    CHECK(memcmp(before.data, after.data, before.size - 80) == 0);
    /* A reader may still look at what is whole. */
    CHECK_STATUS(cx_log_open(p.folder, &reading, &log, &opened, &err), &err);
    CHECK_INT(opened.commit_count, 5);
    CHECK_INT(opened.torn_bytes, 0);
    cx_log_close(log);
    cx_buf_done(&before);
    cx_buf_done(&after);
    drop(&p);
}

/* The lock file outlives a program: what it acknowledged cannot have been torn. */
CX_TEST(open_misses_commits_that_were_acknowledged)
{
    place p;
    cx_err err;
    cx_log *log;
    cx_log_close(make(&p, 5, 300));
    const model_frame *last = &p.m.frames.items[9];
    flip(&p, "000000.seg", (off_t)last->place.offset + 20);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_FORMAT);
    CHECK_STR(cx_str_z(err.tag), "LogDamaged");
    CHECK(strstr(err.message, "commits 4 to 4") != NULL);
    /* An erasable part that changed is damage as well, and no reason to cut the commit. */
    flip(&p, "000000.seg", (off_t)last->place.offset + 20);
    flip(&p, "000000.seg", (off_t)(last->place.offset + last->place.size_bytes) - 20);
    cx_log_opened opened;
    REQUIRE(!cx_failed(cx_log_open(p.folder, &small, &log, &opened, &err)));
    CHECK_INT(opened.commit_count, 5);
    CHECK_INT(opened.torn_bytes, 0);
    cx_log_close(log);
    drop(&p);
}

CX_TEST(open_refuses_missing_segments_and_bad_headers)
{
    place p;
    cx_err err;
    char first[FOLDER_PATH_SIZE + 20], away[FOLDER_PATH_SIZE + 20];
    static const uint8_t two[4] = {0, 0, 0, 2};
    cx_log_close(make(&p, 60, 1500));
    (void)snprintf(first, sizeof first, "%s/000001.seg", p.folder);
    (void)snprintf(away, sizeof away, "%s/gone", p.folder);
    CHECK_INT(rename(first, away), 0);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_FORMAT);
    CHECK_STR(cx_str_z(err.tag), "LogDamaged");
    CHECK_INT(open_code(&p, &reading, NULL, &err), CX_E_FORMAT);
    CHECK_INT(rename(away, first), 0);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_OK);
    flip(&p, "000003.seg", 33);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_FORMAT);
    flip(&p, "000003.seg", 33);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_OK);
    (void)snprintf(first, sizeof first, "%s/000003.seg", p.folder);
    CHECK_INT(truncate(first, 65000), 0);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_FORMAT);
    /* From a later version: not damage. */
    uint8_t header[4096];
    int file = file_of(&p, "000000.seg");
    CHECK(pread(file, header, sizeof header, 0) == 4096);
    (void)close(file);
    drop(&p);
    cx_log_close(make(&p, 1, 10));
    change(&p, "000000.seg", 8, two, 4);
    CHECK_INT(open_code(&p, &small, NULL, &err), CX_E_FORMAT);
    drop(&p);
}

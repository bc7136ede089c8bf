/*
 * test_read.c - single frames by their place, and erasing them for good.
 */
#include "log/log.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

static const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};

static cx_log *fresh(char folder[FOLDER_PATH_SIZE], const cx_log_options *options)
{
    cx_log *log = NULL;
    cx_err err;
    folder_fresh(folder, "read");
    CHECK_STATUS(cx_log_create(folder, options, &err), &err);
    CHECK_STATUS(cx_log_open(folder, options, &log, NULL, &err), &err);
    return log;
}

static cx_code read_code(cx_log *log, cx_log_place place)
{
    cx_buf buf;
    cx_log_frame frame;
    cx_err err;
    bool erased;
    cx_buf_init(&buf, cx_alloc_default());
    cx_status status = cx_log_read(log, place, &buf, &frame, &erased, &err);
    cx_buf_done(&buf);
    return status.code;
}

static bool reads_as_erased(cx_log *log, cx_log_place place)
{
    cx_buf buf;
    cx_log_frame frame;
    cx_err err;
    bool erased = false;
    cx_buf_init(&buf, cx_alloc_default());
    cx_status status = cx_log_read(log, place, &buf, &frame, &erased, &err);
    bool good = !cx_failed(status) && erased && frame.erasable.size == 0;
    cx_buf_done(&buf);
    return good;
}

CX_TEST(read_refuses_places_where_no_frame_is)
{
    char folder[FOLDER_PATH_SIZE];
    const size_t sizes[2][2] = {{400, 10}, {9000, 0}};
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_err err;
    uint64_t commit;
    REQUIRE(log != NULL);
    log_model_init(&m);
    CHECK_STATUS(log_model_submit(&m, log, sizes, 2, &commit, &err), &err);
    cx_log_place place = m.frames.items[0].place;
    CHECK_INT(read_code(log, place), CX_E_NOT_FOUND); /* not on the disk yet */
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    CHECK_INT(read_code(log, place), CX_OK);
    for (uint64_t at = 0; at < 12000; at++) {
        cx_log_place other = {0, 0, at};
        bool first = at == place.offset, second = at == m.frames.items[1].place.offset;
        cx_code code = read_code(log, other);
        if (first || second)
            CHECK_INT(code, CX_OK);
        else
            CHECK(code == CX_E_NOT_FOUND || code == CX_E_FORMAT);
    }
    place.segment = 1;
    CHECK_INT(read_code(log, place), CX_E_NOT_FOUND);
    place.segment = 0;
    place.size_bytes = 40000;
    CHECK_INT(read_code(log, place), CX_E_NOT_FOUND);
    place.size_bytes = 8; /* too small: the frame knows better */
    CHECK_INT(read_code(log, place), CX_OK);
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

/* More segments than files are kept open. */
CX_TEST(read_from_many_segments)
{
    char folder[FOLDER_PATH_SIZE];
    const size_t sizes[1][2] = {{61000, 100}};
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_err err;
    uint64_t commit = 0;
    REQUIRE(log != NULL);
    log_model_init(&m);
    for (int i = 0; i < 40; i++)
        CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    CHECK_INT(m.frames.items[39].place.segment, 39);
    for (int i = 0; i < 3; i++)
        CHECK(log_model_check(&m, log, 40, true));
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

/* Whether the pattern stands anywhere in the folder's files. */
static bool anywhere(const char *folder, const char *pattern)
{
    cx_buf all;
    cx_buf_init(&all, cx_alloc_default());
    folder_contents(folder, &all);
    bool found = memmem(all.data, all.size, pattern, strlen(pattern)) != NULL;
    cx_buf_done(&all);
    return found;
}

CX_TEST(erase_leaves_no_byte_of_the_erasable_part)
{
    char folder[FOLDER_PATH_SIZE];
    cx_log *log = fresh(folder, &small);
    cx_log_place places[3];
    cx_buf buf;
    cx_log_frame got;
    cx_err err;
    uint64_t commit;
    bool erased;
    REQUIRE(log != NULL);
    cx_log_frame frames[3] = {
        {cx_bytes_from("guarded-first", 13), cx_bytes_from("secret-first", 12)},
        {cx_bytes_from("guarded-second", 14), cx_bytes_from("secret-second", 13)},
        {cx_bytes_from("guarded-third", 13), {NULL, 0}}};
    CHECK_STATUS(cx_log_submit(log, frames, 3, places, &commit, &err), &err);
    CHECK_INT(cx_log_erase(log, places[0], &err).code, CX_E_NOT_FOUND); /* not there yet */
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    CHECK(anywhere(folder, "secret-first"));
    CHECK_STATUS(cx_log_erase(log, places[0], &err), &err);
    CHECK_STATUS(cx_log_erase(log, places[0], &err), &err); /* done already */
    CHECK_STATUS(cx_log_erase(log, places[2], &err), &err); /* nothing to do */
    CHECK(!anywhere(folder, "secret-first"));
    CHECK(anywhere(folder, "guarded-first") && anywhere(folder, "secret-second"));
    for (int again = 0; again < 2; again++) {
        cx_buf_init(&buf, cx_alloc_default());
        CHECK_STATUS(cx_log_read(log, places[0], &buf, &got, &erased, &err), &err);
        CHECK(erased && got.erasable.size == 0);
        CHECK_STR(cx_bytes_str(got.guarded), "guarded-first");
        CHECK_STATUS(cx_log_read(log, places[1], &buf, &got, &erased, &err), &err);
        CHECK(!erased);
        CHECK_STR(cx_bytes_str(got.erasable), "secret-second");
        CHECK_STATUS(cx_log_read(log, places[2], &buf, &got, &erased, &err), &err);
        CHECK(!erased && got.erasable.size == 0);
        cx_buf_done(&buf);
        cx_log_close(log);
        REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, NULL, &err)));
    }
    cx_log_close(log);
    folder_remove(folder);
}

/* --- some of a frame ------------------------------------------------------------------------ */

static cx_code range_code(cx_log *log, cx_log_place place, uint64_t from, size_t size, cx_buf *out,
                          cx_log_range *range)
{
    cx_buf buf;
    cx_err err;
    cx_buf_init(&buf, cx_alloc_default());
    cx_status status = cx_log_read_range(log, place, from, size, &buf, out, range, &err);
    if (!cx_failed(status))
        CHECK(range->guarded.data > buf.data && range->guarded.data < buf.data + buf.size);
    cx_buf_done(&buf);
    return status.code;
}

CX_TEST(range_is_what_the_frame_has_there)
{
    static const size_t guarded_sizes[] = {1, 13, 8100, 9000, 30000};
    enum { SIZE = 20000 };
    char folder[FOLDER_PATH_SIZE];
    static uint8_t erasable[SIZE], guarded[30000];
    cx_log *log = fresh(folder, &small);
    REQUIRE(log != NULL);
    for (size_t i = 0; i < SIZE; i++)
        erasable[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t k = 0; k < CX_COUNT_OF(guarded_sizes); k++) {
        cx_log_frame frame = {cx_bytes_from(guarded, guarded_sizes[k]),
                              cx_bytes_from(erasable, SIZE)};
        cx_log_range range;
        cx_log_place place;
        cx_buf out;
        cx_err err;
        uint64_t commit;
        CHECK_STATUS(cx_log_submit(log, &frame, 1, &place, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        cx_buf_init(&out, cx_alloc_default());
        for (size_t from = 0; from <= SIZE; from += 1111)
            for (size_t size = 0; from + size <= SIZE; size += 3333) {
                cx_buf_clear(&out);
                CHECK_INT(range_code(log, place, from, size, &out, &range), CX_OK);
                CHECK(!range.erased && range.erasable_size == SIZE);
                CHECK(cx_str_eq(cx_buf_str(&out), cx_str_from((char *)erasable + from, size)));
            }
        cx_buf_clear(&out);
        CHECK_INT(range_code(log, place, SIZE, 1, &out, &range), CX_E_USAGE);
        CHECK_INT(range_code(log, place, SIZE + 1, 0, &out, &range), CX_E_USAGE);
        CHECK_INT(range_code(log, place, UINT64_MAX, 2, &out, &range), CX_E_USAGE);
        CHECK_STATUS(cx_log_erase(log, place, &err), &err);
        CHECK_INT(range_code(log, place, 5, 10, &out, &range), CX_OK);
        CHECK(range.erased && out.size == 0 && range.guarded.size == guarded_sizes[k]);
        place.offset += 8;
        CHECK(range_code(log, place, 0, 1, &out, &range) != CX_OK && out.size == 0);
        cx_buf_done(&out);
    }
    cx_log_close(log);
    folder_remove(folder);
}

/* A changed byte of the head, the guarded part, or the erasable part's first word. */
CX_TEST(range_of_a_damaged_frame_is_an_error)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 16];
    cx_log *log = fresh(folder, &small);
    cx_log_frame frame = {cx_bytes_from("guarded!", 8), cx_bytes_from("secret!!", 8)};
    cx_log_place place;
    cx_buf out;
    cx_err err;
    uint64_t commit;
    REQUIRE(log != NULL);
    CHECK_STATUS(cx_log_submit(log, &frame, 1, &place, &commit, &err), &err);
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    (void)snprintf(path, sizeof path, "%s/000000.seg", folder);
    int file = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(file >= 0);
    cx_buf_init(&out, cx_alloc_default());
    for (uint64_t at = 0; at < 28; at++) {
        cx_log_range range;
        uint8_t byte;
        const off_t offset = (off_t)(place.offset + at);
        REQUIRE(pread(file, &byte, 1, offset) == 1);
        byte ^= 0x10;
        REQUIRE(pwrite(file, &byte, 1, offset) == 1);
        CHECK_INT(range_code(log, place, 0, 8, &out, &range), CX_E_FORMAT);
        CHECK_INT(out.size, 0);
        byte ^= 0x10;
        REQUIRE(pwrite(file, &byte, 1, offset) == 1);
        CHECK_INT(range_code(log, place, 0, 8, &out, &range), CX_OK);
        cx_buf_clear(&out);
    }
    cx_buf_done(&out);
    (void)close(file);
    cx_log_close(log);
    folder_remove(folder);
}

CX_TEST(erase_of_zeros_is_still_erased)
{
    static const uint8_t zeros[100];
    char folder[FOLDER_PATH_SIZE];
    cx_log *log = fresh(folder, &small);
    cx_log_frame frame = {cx_bytes_from("g", 1), cx_bytes_from(zeros, sizeof zeros)}, got;
    cx_log_place place;
    cx_buf buf;
    cx_err err;
    uint64_t commit;
    bool erased = true;
    REQUIRE(log != NULL);
    cx_buf_init(&buf, cx_alloc_default());
    CHECK_STATUS(cx_log_submit(log, &frame, 1, &place, &commit, &err), &err);
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    CHECK_STATUS(cx_log_read(log, place, &buf, &got, &erased, &err), &err);
    CHECK(!erased && got.erasable.size == sizeof zeros);
    CHECK_STATUS(cx_log_erase(log, place, &err), &err);
    CHECK_STATUS(cx_log_read(log, place, &buf, &got, &erased, &err), &err);
    CHECK(erased && got.erasable.size == 0);
    cx_buf_done(&buf);
    cx_log_close(log);
    folder_remove(folder);
}

/* Half erased is told by a scan, is erased for who reads the frame, and is completed by erasing
 * again. */
CX_TEST(erase_cut_short_is_reported_and_finished)
{
    char folder[FOLDER_PATH_SIZE];
    fault_io files;
    fault_io_init(&files, cx_io_system(), FAULT_WRITE, FAULT_NEVER, false);
    const cx_log_options options = {.io = &files.io, .segment_bytes = CX_LOG_SEGMENT_MIN};
    cx_log *log = fresh(folder, &options);
    cx_log_frame frame = {cx_bytes_from("guarded", 7), cx_bytes_from("first-second-third", 18)};
    cx_log_place place;
    cx_err err;
    uint64_t commit;
    REQUIRE(log != NULL);
    CHECK_STATUS(cx_log_submit(log, &frame, 1, &place, &commit, &err), &err);
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    files.torn = true;
    files.fail_at = atomic_load(&files.calls) + 2; /* after the head */
    CHECK_INT(cx_log_erase(log, place, &err).code, CX_E_IO);
    CHECK(!anywhere(folder, "first-se") && anywhere(folder, "third"));
    CHECK_INT(cx_log_submit(log, &frame, 1, NULL, &commit, &err).code, CX_E_IO);
    CHECK_STR(cx_str_z(err.tag), "Poisoned");
    CHECK(reads_as_erased(log, place));
    cx_log_close(log);
    cx_log_opened opened;
    cx_log_scan *scan;
    cx_log_commit found;
    bool end;
    REQUIRE(!cx_failed(cx_log_open(folder, &options, &log, &opened, &err)));
    CHECK_INT(opened.commit_count, 1); /* a commit is whole whatever becomes of erasable parts */
    REQUIRE(!cx_failed(cx_log_scan_begin(log, 0, &scan, &err)));
    CHECK_STATUS(cx_log_scan_next(scan, &found, &end, &err), &err);
    CHECK(!end && found.items[0].erasable_damaged && !found.items[0].erased);
    CHECK_INT(found.items[0].frame.erasable.size, 0);
    cx_log_scan_end(scan);
    CHECK(reads_as_erased(log, place));
    CHECK_STATUS(cx_log_erase(log, place, &err), &err);
    CHECK(reads_as_erased(log, place));
    CHECK(!anywhere(folder, "third"));
    cx_log_close(log);
    CHECK_INT(atomic_load(&files.open_files), 0);
    folder_remove(folder);
}

CX_TEST(erase_that_cannot_sync_poisons)
{
    for (uint64_t which = 1; which <= 2; which++) {
        char folder[FOLDER_PATH_SIZE];
        fault_io files;
        fault_io_init(&files, cx_io_system(), FAULT_SYNC, FAULT_NEVER, false);
        const cx_log_options options = {.io = &files.io, .segment_bytes = CX_LOG_SEGMENT_MIN};
        cx_log *log = fresh(folder, &options);
        cx_log_frame frame = {cx_bytes_from("guarded", 7), cx_bytes_from("e", 1)};
        cx_log_place place;
        cx_err err;
        uint64_t commit;
        REQUIRE(log != NULL);
        CHECK_STATUS(cx_log_submit(log, &frame, 1, &place, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        CHECK_STATUS(cx_log_submit(log, &frame, 1, NULL, &commit, &err), &err);
        files.fail_at = atomic_load(&files.calls) + which;
        CHECK_INT(cx_log_erase(log, place, &err).code, CX_E_IO);
        CHECK_INT(cx_log_wait(log, commit, &err).code, CX_E_IO);
        CHECK_STR(cx_str_z(err.tag), "Poisoned");
        cx_log_close(log);
        folder_remove(folder);
    }
}

/*
 * test_io.c - reading whole files and pipes, and replacing a file in one step or not at all.
 */
#include "base/io.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/fault.h"
#include "tests/test.h"

static const char *scratch(const char *name)
{
    static char path[512];
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, sizeof path, "%s/cortex-io-%ld-%s", folder != NULL ? folder : "/tmp",
                   (long)getpid(), name);
    return path;
}

static void fill(cx_buf *buf, size_t size)
{
    for (size_t i = 0; i < size; i++)
        cx_buf_add_byte(buf, (uint8_t)(i * 31 >> 3));
}

CX_TEST(io_reads_back_what_it_replaced)
{
    static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 300000};
    const cx_io *io = cx_io_system();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cx_buf written, read;
        cx_err err;
        cx_buf_init(&written, cx_alloc_default());
        cx_buf_init(&read, cx_alloc_default());
        fill(&written, sizes[i]);
        const char *path = scratch("whole");
        CHECK_STATUS(cx_io_replace_file(io, path, cx_buf_bytes(&written), &err), &err);
        cx_buf_add_z(&read, "kept");
        CHECK_STATUS(cx_io_read_file(io, path, SIZE_MAX, &read, &err), &err);
        CHECK_INT(read.size, sizes[i] + 4);
        CHECK(memcmp(read.data, "kept", 4) == 0);
        CHECK(sizes[i] == 0 || memcmp(read.data + 4, written.data, sizes[i]) == 0);
        /* The limit itself is allowed. */
        cx_buf_clear(&read);
        CHECK_STATUS(cx_io_read_file(io, path, sizes[i], &read, &err), &err);
        if (sizes[i] != 0) {
            cx_buf_clear(&read);
            CHECK(cx_io_read_file(io, path, sizes[i] - 1, &read, &err).code == CX_E_LIMIT);
            CHECK_STR(cx_str_z(err.tag), "U_LIMIT");
        }
        CHECK_INT(unlink(path), 0);
        cx_buf_done(&written);
        cx_buf_done(&read);
    }
}

CX_TEST(io_limit_also_bounds_the_memory_taken)
{
    fault_alloc memory;
    cx_buf read;
    cx_err err;
    fault_alloc_init(&memory, FAULT_NEVER, false);
    cx_buf_init(&read, &memory.alloc);
    const char *path = scratch("sparse");
    cx_io const *io = cx_io_system();
    cx_file file;
    REQUIRE(io->open(io, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE, &file) == 0);
    CHECK_INT(io->truncate(io, file, (uint64_t)1 << 30), 0); /* a gigabyte of nothing */
    CHECK_INT(io->close(io, file), 0);
    CHECK(cx_io_read_file(io, path, 1000, &read, &err).code == CX_E_LIMIT);
    CHECK(read.capacity < ((size_t)1 << 20));
    CHECK_INT(unlink(path), 0);
    cx_buf_done(&read);
}

/* Standard input becomes a pipe a child writes to, a little at a time. */
static pid_t pipe_stdin(size_t size, int *out_saved)
{
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        for (size_t at = 0; at < size;) {
            uint8_t piece[777];
            size_t count = size - at < sizeof piece ? size - at : sizeof piece;
            for (size_t i = 0; i < count; i++)
                piece[i] = (uint8_t)((at + i) * 31 >> 3);
            ssize_t done = write(ends[1], piece, count);
            if (done < 0)
                _exit(1);
            at += (size_t)done;
        }
        _exit(0);
    }
    close(ends[1]);
    *out_saved = dup(0);
    (void)dup2(ends[0], 0);
    close(ends[0]);
    return pid;
}

CX_TEST(io_reads_standard_input_to_its_end)
{
    static const size_t sizes[] = {0, 5, 65536, 200001};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cx_buf expected, read;
        cx_err err;
        int saved = -1;
        cx_buf_init(&expected, cx_alloc_default());
        cx_buf_init(&read, cx_alloc_default());
        fill(&expected, sizes[i]);
        pid_t pid = pipe_stdin(sizes[i], &saved);
        REQUIRE(pid > 0);
        CHECK_STATUS(cx_io_read_file(cx_io_system(), "-", SIZE_MAX, &read, &err), &err);
        (void)dup2(saved, 0);
        close(saved);
        CHECK(cx_str_eq(cx_buf_str(&read), cx_buf_str(&expected)));
        cx_buf_done(&expected);
        cx_buf_done(&read);
    }
}

CX_TEST(io_survives_short_and_interrupted_calls)
{
    fault_io files;
    cx_buf written, read;
    cx_err err;
    fault_io_init(&files, cx_io_system(), 0, FAULT_NEVER, false);
    files.at_most = 333;
    files.eintr = 3;
    cx_buf_init(&written, cx_alloc_default());
    cx_buf_init(&read, cx_alloc_default());
    fill(&written, 100000);
    const char *path = scratch("short");
    CHECK_STATUS(cx_io_replace_file(&files.io, path, cx_buf_bytes(&written), &err), &err);
    CHECK_STATUS(cx_io_read_file(&files.io, path, SIZE_MAX, &read, &err), &err);
    CHECK(cx_str_eq(cx_buf_str(&read), cx_buf_str(&written)));
    CHECK_INT(files.open_files, 0);
    CHECK_INT(unlink(path), 0);
    cx_buf_done(&written);
    cx_buf_done(&read);
}

static bool left_over(const char *path)
{
    char temporary[600];
    (void)snprintf(temporary, sizeof temporary, "%s.0000000000000000.tmp", path);
    return access(temporary, F_OK) == 0;
}

CX_TEST(io_replace_leaves_the_old_file_when_anything_fails)
{
    static const unsigned kinds[] = {FAULT_OPEN, FAULT_WRITE, FAULT_SYNC, FAULT_CLOSE,
                                     FAULT_RENAME};
    const cx_io *io = cx_io_system();
    const char *path = scratch("old");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        fault_io files;
        cx_buf read;
        cx_err err;
        cx_buf_init(&read, cx_alloc_default());
        CHECK_STATUS(cx_io_replace_file(io, path, cx_bytes_from("old", 3), &err), &err);
        fault_io_init(&files, io, kinds[i], 1, false);
        cx_status status = cx_io_replace_file(&files.io, path, cx_bytes_from("new", 3), &err);
        CHECK(status.code == CX_E_IO);
        CHECK_INT(err.os_errno, EIO);
        CHECK_INT(files.fired, 1);
        CHECK_INT(files.open_files, 0);
        CHECK_STATUS(cx_io_read_file(io, path, SIZE_MAX, &read, &err), &err);
        CHECK_STR(cx_buf_str(&read), "old");
        cx_buf_done(&read);
    }
    /* Without randomness the temporary name is known: nothing is left next to the file. */
    static const unsigned later[] = {FAULT_WRITE, FAULT_SYNC, FAULT_RENAME};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        fault_io files;
        cx_err err;
        fault_io_init(&files, io, FAULT_RANDOM | later[i], 1, true);
        CHECK(cx_failed(cx_io_replace_file(&files.io, path, cx_bytes_from("new", 3), &err)));
        CHECK(files.fired >= 2);
        CHECK(!left_over(path));
    }
    CHECK_INT(unlink(path), 0);
}

CX_TEST(io_replace_makes_a_file_others_may_read)
{
    struct stat info;
    const char *path = scratch("mode");
    cx_err err;
    mode_t before = umask(022);
    CHECK_STATUS(cx_io_replace_file(cx_io_system(), path, cx_bytes_from("x", 1), &err), &err);
    (void)umask(before);
    CHECK_INT(stat(path, &info), 0);
    CHECK_INT(info.st_mode & 0777, 0644);
    CHECK_INT(unlink(path), 0);
}

CX_TEST(io_errors_name_the_file_and_the_reason)
{
    const cx_io *io = cx_io_system();
    cx_buf read;
    cx_err err;
    cx_file file;
    cx_buf_init(&read, cx_alloc_default());
    CHECK(cx_io_read_file(io, "/nonexistent/x", SIZE_MAX, &read, &err).code == CX_E_NOT_FOUND);
    CHECK_STR(cx_str_z(err.message), "cannot open /nonexistent/x: No such file or directory");
    CHECK(cx_io_read_file(io, "/tmp", SIZE_MAX, &read, &err).code == CX_E_IO);
    CHECK_INT(err.os_errno, EISDIR);
    CHECK(cx_io_replace_file(io, "/nonexistent/x", (cx_bytes){0}, &err).code == CX_E_NOT_FOUND);
    char path[5000];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = 0;
    CHECK(cx_io_replace_file(io, path, (cx_bytes){0}, &err).code == CX_E_LIMIT);
    const char *taken = scratch("exclusive");
    unsigned flags = CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE;
    REQUIRE(io->open(io, taken, flags, &file) == 0);
    CHECK_INT(io->close(io, file), 0);
    CHECK_INT(io->open(io, taken, flags, &file), -EEXIST);
    CHECK_INT(unlink(taken), 0);
    cx_buf_done(&read);
}

CX_TEST(io_read_failures_close_the_file)
{
    const char *path = scratch("fails");
    cx_err err;
    CHECK_STATUS(cx_io_replace_file(cx_io_system(), path, cx_bytes_from("abc", 3), &err), &err);
    for (unsigned which = FAULT_OPEN; which <= FAULT_READ; which *= 2) {
        fault_io files;
        cx_buf read;
        fault_io_init(&files, cx_io_system(), which, 1, false);
        cx_buf_init(&read, cx_alloc_default());
        CHECK(cx_io_read_file(&files.io, path, SIZE_MAX, &read, &err).code == CX_E_IO);
        CHECK_INT(files.open_files, 0);
        cx_buf_done(&read);
    }
    CHECK_INT(unlink(path), 0);
}

CX_TEST(io_reads_and_writes_at_offsets)
{
    fault_io files;
    cx_file file;
    cx_err err;
    size_t got;
    char back[16] = "";
    const char *path = scratch("at");
    fault_io_init(&files, cx_io_system(), 0, FAULT_NEVER, false);
    files.at_most = 3;
    files.eintr = 2;
    const cx_io *io = &files.io;
    REQUIRE(io->open(io, path, CX_IO_READ | CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE, &file) ==
            0);
    CHECK_STATUS(cx_io_write_at(io, file, path, "0123456789", 10, 5, &err), &err);
    CHECK_STATUS(cx_io_read_at(io, file, path, back, 8, 7, &got, &err), &err);
    CHECK(got == 8 && memcmp(back, "23456789", 8) == 0);
    CHECK_STATUS(cx_io_read_at(io, file, path, back, 8, 11, &got, &err), &err);
    CHECK(got == 4 && memcmp(back, "6789", 4) == 0);
    CHECK_STATUS(cx_io_read_at(io, file, path, back, 8, 100, &got, &err), &err);
    CHECK_INT(got, 0);
    files.which = FAULT_PREAD | FAULT_WRITE;
    files.onwards = true;
    files.fail_at = 1;
    CHECK_INT(cx_io_read_at(io, file, path, back, 8, 0, &got, &err).code, CX_E_IO);
    CHECK_INT(cx_io_write_at(io, file, path, back, 8, 0, &err).code, CX_E_IO);
    CHECK_INT(io->close(io, file), 0);
    CHECK_INT(unlink(path), 0);
}

CX_TEST(io_lock_keeps_a_second_opening_out)
{
    const cx_io *io = cx_io_system();
    const char *path = scratch("lock");
    cx_file first, second, reader;
    bool locked = true;
    unsigned flags = CX_IO_READ | CX_IO_WRITE | CX_IO_CREATE;
    REQUIRE(io->open(io, path, flags, &first) == 0 && io->open(io, path, flags, &second) == 0 &&
            io->open(io, path, CX_IO_READ, &reader) == 0);
    CHECK_INT(io->locked(io, reader, &locked), 0);
    CHECK(!locked);
    CHECK_INT(io->lock(io, first), 0);
    CHECK_INT(io->lock(io, first), 0); /* has it */
    CHECK_INT(io->lock(io, second), -EAGAIN);
    CHECK_INT(io->locked(io, reader, &locked), 0);
    CHECK(locked);
    CHECK_INT(io->locked(io, first, &locked), 0);
    CHECK(!locked); /* not by another process */
    /* Closing another opening does not end it, as a lock of the process would. */
    CHECK_INT(io->close(io, second), 0);
    CHECK_INT(io->locked(io, reader, &locked), 0);
    CHECK(locked);
    CHECK_INT(io->close(io, first), 0);
    CHECK_INT(io->locked(io, reader, &locked), 0);
    CHECK(!locked);
    CHECK_INT(io->close(io, reader), 0);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(io->process_id(io), getpid());
}

typedef struct names {
    unsigned count, stop_at;
    bool seen[2], dots;
} names;

static bool see_name(void *arg, const char *name)
{
    names *all = arg;
    all->count++;
    all->seen[0] |= strcmp(name, "a") == 0;
    all->seen[1] |= strcmp(name, "b") == 0;
    all->dots |= name[0] == '.';
    return all->count != all->stop_at;
}

CX_TEST(io_lists_and_syncs_folders_and_allocates)
{
    const cx_io *io = cx_io_system();
    char folder[520], path[560];
    cx_file file;
    cx_err err;
    struct stat info;
    (void)snprintf(folder, sizeof folder, "%s", scratch("folder"));
    REQUIRE(io->mkdir(io, folder) == 0);
    for (const char *name = "ab"; *name != 0; name++) {
        (void)snprintf(path, sizeof path, "%s/%c", folder, *name);
        REQUIRE(io->open(io, path, CX_IO_WRITE | CX_IO_CREATE, &file) == 0);
        CHECK_INT(io->allocate(io, file, 100000), 0);
        CHECK(stat(path, &info) == 0 && info.st_size == 100000);
        CHECK_INT(io->allocate(io, file, 5), 0); /* never cuts */
        CHECK(stat(path, &info) == 0 && info.st_size == 100000);
        CHECK_INT(io->close(io, file), 0);
    }
    names all = {0}, one = {.stop_at = 1};
    CHECK_INT(io->list(io, folder, see_name, &all), 0);
    CHECK(all.count == 2 && all.seen[0] && all.seen[1] && !all.dots);
    CHECK_INT(io->list(io, folder, see_name, &one), 0);
    CHECK_INT(one.count, 1);
    CHECK_STATUS(cx_io_sync_folder(io, folder, &err), &err);
    CHECK_INT(unlink(path), 0);
    path[strlen(path) - 1] = 'a';
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0);
    CHECK_INT(io->list(io, folder, see_name, &all), -ENOENT);
    CHECK_INT(cx_io_sync_folder(io, folder, &err).code, CX_E_NOT_FOUND);
}

CX_TEST(io_clocks_and_seeds_answer)
{
    const cx_io *io = cx_io_system();
    uint64_t first = io->monotonic_ns(io);
    CHECK(io->wall_ns(io) > UINT64_C(1600000000000000000));
    CHECK(io->monotonic_ns(io) >= first);
    CHECK(cx_io_seed(io) != cx_io_seed(io));
    fault_io files;
    fault_io_init(&files, io, FAULT_RANDOM, 1, true);
    CHECK(cx_io_seed(&files.io) == 0);
}

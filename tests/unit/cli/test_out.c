/*
 * test_out.c - output that could not be written is noticed, and files appear whole or not at all,
 * whichever call of the operating system fails.
 */
#include "tests/test.h"

#include "cli/out.c" /* NOLINT: the program's files are no library */

#include <dirent.h>

/* The real system, except that call number `fail_at` (from 1) fails with ENOSPC. */
typedef struct faulty {
    cx_io io;
    int calls;
    int fail_at;
} faulty;

static faulty fault;

static bool fails_now(void)
{
    return ++fault.calls == fault.fail_at;
}

static int faulty_open(const cx_io *io, const char *path, unsigned flags, cx_file *out)
{
    (void)io;
    return fails_now() ? -ENOSPC : cx_io_system()->open(cx_io_system(), path, flags, out);
}

static int faulty_close(const cx_io *io, cx_file file)
{
    (void)io;
    int closed = cx_io_system()->close(cx_io_system(), file);
    return fails_now() ? -ENOSPC : closed;
}

static int64_t faulty_write(const cx_io *io, cx_file file, const void *data, size_t size)
{
    (void)io;
    /* One byte at a time: short writes must be carried on. */
    return fails_now() ? -ENOSPC
                       : cx_io_system()->write(cx_io_system(), file, data, size == 0 ? 0 : 1);
}

static int faulty_sync(const cx_io *io, cx_file file, bool data_only)
{
    (void)io;
    return fails_now() ? -ENOSPC : cx_io_system()->sync(cx_io_system(), file, data_only);
}

static int faulty_rename(const cx_io *io, const char *from, const char *to)
{
    (void)io;
    return fails_now() ? -ENOSPC : cx_io_system()->rename(cx_io_system(), from, to);
}

static int faulty_size(const cx_io *io, cx_file file, uint64_t *out, bool *out_regular)
{
    (void)io;
    return fails_now() ? -ENOSPC : cx_io_system()->size(cx_io_system(), file, out, out_regular);
}

static const cx_io *failing(int fail_at)
{
    fault = (faulty){.io = *cx_io_system(), .fail_at = fail_at};
    fault.io.open = faulty_open;
    fault.io.close = faulty_close;
    fault.io.write = faulty_write;
    fault.io.sync = faulty_sync;
    fault.io.rename = faulty_rename;
    fault.io.size = faulty_size;
    return &fault.io;
}

static bool make_folder(char *folder, size_t size)
{
    (void)snprintf(folder, size, "/tmp/cortex-test-out-XXXXXX");
    return mkdtemp(folder) != NULL;
}

static unsigned count_files(const char *folder)
{
    unsigned count = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;)
        count += entry->d_name[0] != '.';
    if (list != NULL)
        (void)closedir(list);
    return count;
}

static cx_status write_whole(const cx_io *io, const char *path, const char *text, cx_err *err)
{
    cx_cli_file file;
    CX_TRY(cx_cli_file_begin(&file, io, path, err));
    cx_status status = cx_cli_file_write(&file, cx_str_bytes(cx_str_z(text)), err);
    if (!cx_failed(status))
        return cx_cli_file_commit(&file, err);
    cx_cli_file_abort(&file);
    return status;
}

static bool holds(const char *path, const char *text)
{
    cx_buf found;
    cx_buf_init(&found, cx_alloc_default());
    bool same = !cx_failed(cx_io_read_file(cx_io_system(), path, 1000, &found, NULL)) &&
                cx_str_is(cx_buf_str(&found), text);
    cx_buf_done(&found);
    return same;
}

CX_TEST(out_file_is_old_or_new_whichever_call_fails)
{
    char folder[64], path[96];
    cx_err err;
    REQUIRE(make_folder(folder, sizeof folder));
    (void)snprintf(path, sizeof path, "%s/file", folder);
    CHECK_STATUS(write_whole(cx_io_system(), path, "old", &err), &err);
    int fail_at = 0, refused = 0;
    do {
        cx_status status = write_whole(failing(++fail_at), path, "new text", &err);
        CHECK_INT(count_files(folder), 1);
        /* Closing what was only looked at may fail unheard. */
        CHECK(holds(path, cx_failed(status) ? "old" : "new text"));
        CHECK(!cx_failed(status) || strstr(err.message, "cannot write") != NULL);
        refused += cx_failed(status);
        CHECK_STATUS(write_whole(cx_io_system(), path, "old", &err), &err);
    } while (fault.calls >= fail_at && fail_at < 100);
    /* Opening twice, size, closing, eight bytes, sync, rename. */
    CHECK_INT(refused, 14);
    (void)unlink(path);
    (void)rmdir(folder);
}

CX_TEST(out_file_abort_leaves_nothing)
{
    char folder[64], path[96];
    cx_err err;
    cx_cli_file file, never = {0};
    REQUIRE(make_folder(folder, sizeof folder));
    (void)snprintf(path, sizeof path, "%s/file", folder);
    CHECK_STATUS(cx_cli_file_begin(&file, cx_io_system(), path, &err), &err);
    CHECK_INT(count_files(folder), 1);
    cx_cli_file_abort(&file);
    CHECK_INT(count_files(folder), 0);
    cx_cli_file_abort(&file);
    cx_cli_file_abort(&never);
    (void)rmdir(folder);
}

CX_TEST(out_remembers_the_first_failure)
{
    int ends[2];
    cx_err err;
    cx_cli_out out;
    REQUIRE(pipe(ends) == 0);
    cx_cli_out_init(&out, failing(3));
    out.file = ends[1];
    cx_cli_out_write(&out, CX_STR("ab"));
    CHECK(!out.failed);
    cx_cli_out_write(&out, CX_STR("cd"));
    CHECK(out.failed);
    cx_cli_out_write(&out, CX_STR("ef"));
    cx_status status = cx_cli_out_end(&out, &err);
    CHECK(cx_failed(status));
    CHECK(strstr(err.message, "standard output") != NULL);
    char seen[8];
    CHECK_INT(read(ends[0], seen, sizeof seen), 2);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* What comes out of a pipe. */
static cx_str through(cx_cli_out *out, cx_str text, bool exact, char *seen, size_t seen_size)
{
    int ends[2];
    if (pipe(ends) != 0)
        return (cx_str){NULL, 0};
    out->file = ends[1];
    if (exact)
        cx_cli_out_write_exact(out, cx_str_bytes(text));
    else
        cx_cli_out_write(out, text);
    ssize_t size = read(ends[0], seen, seen_size);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return cx_str_from(seen, size < 0 ? 0 : (size_t)size);
}

CX_TEST(out_lets_nothing_act_on_a_terminal)
{
    static const char hostile[] = "a\tb\n\x1b[31mc\x1b[0m\x1b]0;t\x07\xc2\x9b\xff\r\n";
    static const char shown[] =
        "a\tb\n\\u001b[31mc\\u001b[0m\\u001b]0;t\\u0007\\u009b\\xff\\u000d\n";
    static const char with_colours[] =
        "a\tb\n\x1b[31mc\x1b[0m\\u001b]0;t\\u0007\\u009b\\xff\\u000d\n";
    char seen[256];
    cx_cli_out out;
    cx_cli_out_init(&out, cx_io_system());
    out.terminal = false;
    CHECK_STR(through(&out, CX_STR(hostile), false, seen, sizeof seen), shown);
    CHECK_STR(through(&out, CX_STR(hostile), true, seen, sizeof seen), hostile);
    out.terminal = true;
    CHECK_STR(through(&out, CX_STR(hostile), true, seen, sizeof seen), shown);
    CHECK(cx_cli_colour(&out, "always"));
    CHECK_STR(through(&out, CX_STR(hostile), false, seen, sizeof seen), with_colours);
    CHECK(!cx_cli_colour(&out, "never"));
    CHECK_STR(through(&out, CX_STR(hostile), false, seen, sizeof seen), shown);
}

CX_TEST(out_reports_a_failing_close)
{
    int ends[2];
    cx_err err;
    cx_cli_out out;
    REQUIRE(pipe(ends) == 0);
    cx_cli_out_init(&out, failing(2));
    out.file = ends[1];
    cx_cli_out_write(&out, CX_STR("a"));
    cx_status status = cx_cli_out_end(&out, &err);
    CHECK_INT(status.code, CX_E_IO);
    (void)close(ends[0]);
}

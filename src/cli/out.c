/*
 * out.c - checked output, files that appear whole, colours and progress.
 */
#include "cli/out.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/api.h"

/* --- standard output ----------------------------------------------------------------------- */

void cx_cli_out_init(cx_cli_out *out, const cx_io *io)
{
    *out = (cx_cli_out){.io = io, .file = STDOUT_FILENO};
    out->terminal = isatty(STDOUT_FILENO) == 1;
}

static void write_bytes(cx_cli_out *out, const void *data, size_t size)
{
    if (out->failed)
        return;
    cx_status status =
        cx_io_write_all(out->io, out->file, "standard output", data, size, &out->err);
    out->failed = cx_failed(status);
}

void cx_cli_out_write(cx_cli_out *out, cx_str text)
{
    cx_buf shown;
    size_t plain = cx_shown_plain_prefix(text);
    if (plain == text.size) {
        write_bytes(out, text.data, text.size);
        return;
    }
    cx_buf_init(&shown, cx_alloc_default());
    cx_buf_add(&shown, text.data, plain);
    cx_shown_add_lines(&shown, cx_str_from(text.data + plain, text.size - plain),
                       (out->colours ? CX_SHOWN_COLOURS : 0u) | (out->links ? CX_SHOWN_LINKS : 0u));
    if (!out->failed && cx_failed(cx_buf_check(&shown, &out->err)))
        out->failed = true;
    write_bytes(out, shown.data, shown.size);
    cx_buf_done(&shown);
}

void cx_cli_out_write_exact(cx_cli_out *out, cx_bytes bytes)
{
    if (out->terminal)
        cx_cli_out_write(out, cx_bytes_str(bytes));
    else
        write_bytes(out, bytes.data, bytes.size);
}

cx_status cx_cli_out_end(cx_cli_out *out, cx_err *err)
{
    int failed = out->failed ? 0 : out->io->close(out->io, out->file);
    if (failed != 0) {
        out->failed = true;
        (void)cx_fail_os(&out->err, -failed, "cannot write standard output");
    }
    if (!out->failed)
        return CX_SUCCESS;
    *err = out->err;
    return (cx_status){out->err.code};
}

/* --- terminals ----------------------------------------------------------------------------- */

static bool is_dumb_terminal(void)
{
    const char *term = getenv("TERM");
    return term == NULL || term[0] == 0 || strcmp(term, "dumb") == 0;
}

/* By --color and --links: always, never, or what the terminal is. */
static bool wants_more_than_text(const cx_cli_out *out, const char *when)
{
    if (when != NULL && strcmp(when, "always") == 0)
        return true;
    if (when != NULL && strcmp(when, "never") == 0)
        return false;
    /* https://no-color.org: set and not empty. */
    const char *no_color = getenv("NO_COLOR");
    if (no_color != NULL && no_color[0] != 0)
        return false;
    return !is_dumb_terminal() && out->terminal;
}

bool cx_cli_colour(cx_cli_out *out, const char *when)
{
    out->colours = wants_more_than_text(out, when);
    return out->colours;
}

bool cx_cli_link_text(cx_cli_out *out, const char *when)
{
    static const char *const without[] = {"linux", "vt100",  "vt102", "vt220",
                                          "ansi",  "cons25", "emacs", "eterm"};
    const char *term = getenv("TERM");
    out->links = wants_more_than_text(out, when);
    bool asked = when != NULL && strcmp(when, "always") == 0;
    for (size_t i = 0; i < CX_COUNT_OF(without) && !asked && term != NULL; i++)
        out->links = out->links && strcmp(term, without[i]) != 0;
    return out->links;
}

unsigned cx_cli_columns(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

/* A line of --progress in so many nanoseconds; on a terminal one four times a second. */
#define LINE_NS UINT64_C(2000000000)
#define REWRITE_NS UINT64_C(250000000)
#define SILENT_NS UINT64_C(500000000)

void cx_cli_progress_init(cx_cli_progress *progress, const cx_io *io, const char *label)
{
    *progress = (cx_cli_progress){.io = io, .label = label, .start_ns = io->monotonic_ns(io)};
    progress->enabled = isatty(STDERR_FILENO) == 1 && !is_dumb_terminal();
}

void cx_cli_progress_ask(cx_cli_progress *progress)
{
    progress->in_lines = !progress->enabled;
    progress->enabled = true;
}

void cx_cli_progress_count(void *arg, uint64_t count)
{
    cx_cli_progress *progress = arg;
    progress->counts = true;
    progress->count = count;
}

static unsigned percent_of(uint64_t done, uint64_t total)
{
    return total == 0 ? 100
                      : (unsigned)((double)(done < total ? done : total) * 100 / (double)total);
}

static void add_duration(char *text, size_t size, double seconds)
{
    const uint64_t s = seconds < 1e9 ? (uint64_t)seconds : UINT64_C(1000000000);
    if (s >= 3600)
        (void)snprintf(text, size, "%llu h %02llu min", (unsigned long long)(s / 3600),
                       (unsigned long long)(s / 60 % 60));
    else if (s >= 60)
        (void)snprintf(text, size, "%llu min %02llu s", (unsigned long long)(s / 60),
                       (unsigned long long)(s % 60));
    else
        (void)snprintf(text, size, "%llu s", (unsigned long long)s);
}

/* Of the part that is under way: the log's bytes, or rows. */
static void show_rate(cx_cli_progress *progress, uint64_t now_ns)
{
    const double seconds = (double)(now_ns - progress->part.start_ns) / 1e9 + 1e-9;
    const bool bytes =
        strcmp(progress->part.label, "log") == 0 || strcmp(progress->part.label, "tables") == 0;
    const double done = (double)(progress->part.done - progress->part.first_done);
    const double count = (double)(progress->part.count - progress->part.first_count);
    char rate[64] = "", left[64] = "";
    if (bytes)
        (void)snprintf(rate, sizeof rate, ", %.1f MB/s", done / seconds / 1e6);
    if (done > 0 && progress->part.total > progress->part.done) {
        (void)snprintf(left, sizeof left, ", ");
        add_duration(left + 2, sizeof left - 2 - sizeof " left",
                     (double)(progress->part.total - progress->part.done) * seconds / done);
        (void)snprintf(left + strlen(left), sizeof " left", " left");
    }
    (void)fprintf(stderr,
                  progress->in_lines ? "%s %3u %%, %.0f %s/s%s%s\n"
                                     : "\r%s %3u %%, %.0f %s/s%s%s\033[K",
                  progress->part.label, percent_of(progress->part.done, progress->part.total),
                  count / seconds, bytes ? "entries" : "rows", rate, left);
    (void)fflush(stderr);
    progress->shown = 1;
    progress->part.shown_ns = now_ns;
}

/* The last line of a part, where lines are asked for. */
static void end_part(cx_cli_progress *progress, uint64_t now_ns)
{
    if (progress->part.label == NULL || !progress->in_lines)
        return;
    progress->part.done = progress->part.total;
    show_rate(progress, now_ns);
}

static void count_step(cx_cli_progress *progress, uint64_t done, uint64_t total)
{
    const uint64_t now = progress->io->monotonic_ns(progress->io);
    if (progress->part.label == NULL || strcmp(progress->part.label, progress->label) != 0) {
        end_part(progress, now);
        progress->part.label = progress->label;
        progress->part.start_ns = progress->part.shown_ns = now;
        progress->part.first_done = done;
        progress->part.first_count = progress->count;
    }
    progress->part.done = done;
    progress->part.total = total;
    progress->part.count = progress->count;
    if (now - progress->part.shown_ns >= (progress->in_lines ? LINE_NS : REWRITE_NS) &&
        now - progress->start_ns >= SILENT_NS)
        show_rate(progress, now);
}

void cx_cli_progress_step(void *arg, uint64_t bytes_done, uint64_t bytes_total)
{
    cx_cli_progress *progress = arg;
    progress->stepped = true;
    if (!progress->enabled || bytes_total == 0)
        return;
    if (progress->counts) {
        count_step(progress, bytes_done, bytes_total);
        return;
    }
    const unsigned percent = percent_of(bytes_done, bytes_total);
    if (progress->shown == percent + 1 ||
        progress->io->monotonic_ns(progress->io) - progress->start_ns < SILENT_NS)
        return;
    progress->shown = percent + 1;
    (void)fprintf(stderr, "\r%s %3u %%", progress->label, percent); /* a literal */
    (void)fflush(stderr);
}

void cx_cli_progress_end(cx_cli_progress *progress)
{
    if (progress->counts && progress->in_lines)
        end_part(progress, progress->io->monotonic_ns(progress->io));
    else if (progress->shown != 0)
        (void)fputs("\r\033[K", stderr);
    progress->shown = 0;
}

/* --- standard error ------------------------------------------------------------------------ */

/* In one piece, so that lines of threads do not mix. */
static void write_error(const cx_buf *text)
{
    if (!text->failed)
        (void)fwrite(text->data, 1, text->size, stderr);
}

static void print_message(const char *before, const char *format, va_list args)
{
    char line[2048];
    cx_buf text;
    int wanted = vsnprintf(line, sizeof line, format, args);
    if (wanted < 0)
        return;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, before);
    cx_str whole = cx_str_z(line);
    if (wanted >= (int)sizeof line) /* cut, perhaps inside of a character */
        while (whole.size != 0 && ((uint8_t)whole.data[whole.size - 1] & 0x80) != 0)
            whole.size--;
    cx_shown_add(&text, whole);
    cx_buf_add_byte(&text, '\n');
    write_error(&text);
    cx_buf_done(&text);
}

void cx_cli_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message("cortex: ", format, args);
    va_end(args);
}

void cx_cli_remark(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message("", format, args);
    va_end(args);
}

void cx_cli_remark_lines(cx_str text)
{
    cx_buf shown;
    cx_buf_init(&shown, cx_alloc_default());
    cx_shown_add_lines(&shown, text, 0);
    write_error(&shown);
    cx_buf_done(&shown);
}

bool cx_cli_can_ask(void)
{
    return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

/* --- files --------------------------------------------------------------------------------- */

static void release_file(cx_cli_file *file)
{
    cx_alloc_free(cx_alloc_default(), file->path, file->size);
    cx_alloc_free(cx_alloc_default(), file->temporary, file->size);
    *file = (cx_cli_file){.file = CX_FILE_NONE};
}

/* Fills path (links followed, so that a link stays one) and temporary. */
static cx_status name_temporary_file(cx_cli_file *file, const char *path, cx_err *err)
{
    char *real = realpath(path, NULL);
    const char *target = real == NULL ? path : real;
    file->size = strlen(target) + 32;
    file->path = cx_alloc_new(cx_alloc_default(), file->size);
    file->temporary = cx_alloc_new(cx_alloc_default(), file->size);
    cx_status status = CX_SUCCESS;
    if (file->path == NULL || file->temporary == NULL) {
        status = cx_fail_nomem(err);
    } else {
        (void)snprintf(file->path, file->size, "%s", target);
        (void)snprintf(file->temporary, file->size, "%s.%016llx.tmp", target,
                       (unsigned long long)cx_io_seed(file->io));
    }
    free(real);
    return status;
}

/*
 * Opens an existing object that is not a regular file. Otherwise leaves file->file at none; an
 * existing regular file must be writable, which a rename would not check.
 */
static int open_special(cx_cli_file *file)
{
    const cx_io *io = file->io;
    cx_file there;
    uint64_t size;
    bool regular = false;
    int failed = io->open(io, file->path, CX_IO_WRITE, &there);
    if (failed != 0)
        return failed == -ENOENT ? 0 : failed;
    failed = io->size(io, there, &size, &regular);
    if (failed != 0 || regular)
        (void)io->close(io, there);
    else
        file->file = there;
    return failed;
}

static bool is_home(const cx_io *io, const char *folder)
{
    char segment[PATH_MAX];
    cx_file file;
    int size = snprintf(segment, sizeof segment, "%s/log/000000.seg", folder);
    if (size < 0 || (size_t)size >= sizeof segment || io->open(io, segment, CX_IO_READ, &file) != 0)
        return false;
    (void)io->close(io, file);
    return true;
}

cx_status cx_cli_outside_homes(const cx_io *io, const char *path, cx_err *err)
{
    char folder[PATH_MAX], real[PATH_MAX];
    int size = snprintf(folder, sizeof folder, "%s%s", *path == '/' ? "" : "./", path);
    if (size < 0 || (size_t)size >= sizeof folder)
        return CX_SUCCESS; /* the name is too long: opening it reports that */
    /* The nearest existing folder above it. */
    do {
        char *slash = strrchr(folder, '/');
        if (slash == folder)
            return CX_SUCCESS;
        *slash = 0;
    } while (realpath(folder, real) == NULL);
    for (char *end = real + strlen(real); end != NULL && end != real; end = strrchr(real, '/')) {
        *end = 0;
        if (is_home(io, real))
            return cx_fail_at(err, CX_E_USAGE, "InsideHome", CX_NO_OFFSET,
                              "%s is inside the data directory %s; choose a path outside of it",
                              path, real);
    }
    return CX_SUCCESS;
}

cx_status cx_cli_file_begin(cx_cli_file *file, const cx_io *io, const char *path, cx_err *err)
{
    *file = (cx_cli_file){.io = io, .file = CX_FILE_NONE};
    cx_status status = name_temporary_file(file, path, err);
    if (!cx_failed(status))
        status = cx_cli_outside_homes(io, file->path, err);
    if (!cx_failed(status)) {
        int failed = open_special(file);
        if (failed == 0 && file->file != CX_FILE_NONE)
            file->temporary[0] = 0;
        else if (failed == 0)
            failed =
                io->open(io, file->temporary,
                         CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE | CX_IO_PUBLIC, &file->file);
        if (failed != 0)
            status = cx_fail_os(err, -failed, "cannot write %s", path);
    }
    if (cx_failed(status))
        release_file(file);
    return status;
}

cx_status cx_cli_file_write(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_cli_file *file = arg;
    return cx_io_write_all(file->io, file->file, file->path, bytes.data, bytes.size, err);
}

cx_status cx_cli_file_commit(cx_cli_file *file, cx_err *err)
{
    const cx_io *io = file->io;
    bool direct = file->temporary[0] == 0;
    int failed = direct ? 0 : io->sync(io, file->file, false);
    int close_failed = io->close(io, file->file);
    file->file = CX_FILE_NONE;
    if (failed == 0)
        failed = close_failed;
    if (failed == 0 && !direct)
        failed = io->rename(io, file->temporary, file->path);
    cx_status status =
        failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "cannot write %s", file->path);
    if (failed != 0)
        cx_cli_file_abort(file);
    else
        release_file(file);
    return status;
}

void cx_cli_file_abort(cx_cli_file *file)
{
    if (file->path == NULL)
        return;
    if (file->file != CX_FILE_NONE)
        (void)file->io->close(file->io, file->file);
    if (file->temporary[0] != 0)
        (void)file->io->unlink(file->io, file->temporary);
    release_file(file);
}

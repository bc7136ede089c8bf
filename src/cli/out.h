/*
 * out.h - where a command's output goes: standard output, a file, and progress on a terminal.
 *
 * Output that could not be written in full is exit code 3 (lattice.md §4.3), whatever was found:
 * a report truncated by a full disk must not look complete. So every write is checked, the first
 * failure is stored, and the program checks for it once, at its end.
 */
#ifndef CX_CLI_OUT_H
#define CX_CLI_OUT_H

#include "base/api.h"

/*
 * No control sequence leaves through here (base/shown.h). Text from outside is escaped where it
 * is added (cx_shown_add); these functions check all output once more.
 */
typedef struct cx_cli_out {
    const cx_io *io;
    cx_file file;
    bool terminal; /* `file` is one */
    bool colours;  /* the program sets colours */
    bool links;    /* the program makes links (OSC 8) */
    bool failed;
    cx_err err; /* of the first failure */
} cx_cli_out;

/* Over standard output. */
void cx_cli_out_init(cx_cli_out *out, const cx_io *io);
/* Lines of the program's own, of JSON too. */
void cx_cli_out_write(cx_cli_out *out, cx_str text);
/* What must be exact: a file, a proof, a patch.  Only a terminal gets it as lines that are
 * shown. */
void cx_cli_out_write_exact(cx_cli_out *out, cx_bytes bytes);
/* Closes standard output, where some systems report a failure only then. */
CX_RESULT cx_cli_out_end(cx_cli_out *out, cx_err *err);

/* Whether the text gets colours; `when` is auto, always, never or NULL (= auto). */
bool cx_cli_colour(cx_cli_out *out, const char *when);
/* Whether text gets links (cli/links.h); `when` as above. auto also leaves out terminals that are
 * known to print what they do not understand. */
bool cx_cli_link_text(cx_cli_out *out, const char *when);
/* Width of the terminal on standard output; 0 when it is none. */
unsigned cx_cli_columns(void);

/* --- standard error: the only ways to it ----------------------------------------------------- */

/* One line with "cortex: " before it; ends of lines in it are shown. */
void cx_cli_complain(const char *format, ...) CX_PRINTF(1, 2);
/* The same without the name before it. */
void cx_cli_remark(const char *format, ...) CX_PRINTF(1, 2);
/* Lines. */
void cx_cli_remark_lines(cx_str text);
/* Whether a person can be asked there, and answer: standard input and error are terminals. */
bool cx_cli_can_ask(void);

/*
 * A file that atomically replaces another when it is complete; until then it does not exist
 * under its name. An object that is no regular file (a pipe, /dev/full) is written to directly.
 */
typedef struct cx_cli_file {
    const cx_io *io;
    cx_file file;
    char *path;      /* of the result, links followed */
    char *temporary; /* "" when written directly */
    size_t size;     /* of both blocks */
} cx_cli_file;

/* Whether a folder above `path` is a data directory (its log has a first segment): fails with
 * "InsideHome". */
CX_RESULT cx_cli_outside_homes(const cx_io *io, const char *path, cx_err *err);
/* Also "InsideHome": no file is written into a data directory. */
CX_RESULT cx_cli_file_begin(cx_cli_file *file, const cx_io *io, const char *path, cx_err *err);
/* Fits cx_import_write; `arg` is the cx_cli_file. */
CX_RESULT cx_cli_file_write(void *arg, cx_bytes bytes, cx_err *err);
/* Renames it into place; on any failure it leaves nothing. */
CX_RESULT cx_cli_file_commit(cx_cli_file *file, cx_err *err);
/* After a failure elsewhere; fine after commit and for a zeroed one. */
void cx_cli_file_abort(cx_cli_file *file);

/* Percent on standard error, for work that takes longer than half a second on a terminal; for work
 * that counts also its rate and the time that is left. */
typedef struct cx_cli_progress {
    const cx_io *io;
    const char *label;
    uint64_t start_ns;
    unsigned shown; /* percent + 1; 0 = nothing yet */
    bool enabled;
    bool in_lines; /* it was asked for where there is no terminal: a line now and then */
    bool counts;
    bool stepped;   /* there was enough work that a step was told */
    uint64_t count; /* entries or rows so far */
    struct {
        const char *label;
        uint64_t start_ns, shown_ns, done, total, count, first_done, first_count;
    } part; /* the work that `label` names */
} cx_cli_progress;

void cx_cli_progress_init(cx_cli_progress *progress, const cx_io *io, const char *label);
/* By --progress: also where standard error is no terminal. */
void cx_cli_progress_ask(cx_cli_progress *progress);
/* Fits the progress callbacks of the library; `arg` is the cx_cli_progress. */
void cx_cli_progress_step(void *arg, uint64_t bytes_done, uint64_t bytes_total);
/* Before it: how many entries or rows are done. */
void cx_cli_progress_count(void *arg, uint64_t count);
/* Wipes the line, or adds the last one. */
void cx_cli_progress_end(cx_cli_progress *progress);

#endif

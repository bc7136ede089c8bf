/*
 * spawn.h - runs other programs: their input, environment, limits, output and end.
 *
 * A child gets exactly `argv` and `envp`, no descriptors but 0, 1, 2 and those listed, its own
 * session and process group, default signals, and umask 022.  No shell is involved.  Starting costs
 * about as much as posix_spawn, whatever the size of this process.  On a timeout or a cancel the
 * whole group gets SIGTERM and, after `grace_ms`, SIGKILL.  When the child has ended, the rest of
 * its group is killed, too (unless `leave_rest`); a grandchild that left the group is not waited
 * for (sandbox.h uses a process namespace against that).
 *
 *     cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
 *     how.argv = argv, how.envp = envp, how.out = cx_spawn_to_buf(&text, 1 << 20);
 *     CX_TRY(cx_spawn_run(&how, &result, err));
 *
 * Thread-safe: any number of threads may start children at once; one child belongs to one thread
 * at a time.  No signal handler is touched.
 */
#ifndef CX_OS_SPAWN_H
#define CX_OS_SPAWN_H

#include <stdatomic.h>

#include "base/api.h"

#define CX_SPAWN_OUTPUT_DEFAULT (UINT64_C(64) << 20) /* bytes of one stream */
#define CX_SPAWN_GRACE_MS 5000                       /* between SIGTERM and SIGKILL */
#define CX_SPAWN_LAST_MS 20000                       /* for who is to end others before it ends */
#define CX_SPAWN_KEEP_MAX 16
#define CX_SPAWN_FOREVER UINT64_MAX

typedef enum cx_spawn_in {
    CX_SPAWN_IN_NULL,  /* /dev/null */
    CX_SPAWN_IN_BYTES, /* `input`, then the end; never blocks, whatever its size */
    CX_SPAWN_IN_PIPE,  /* cx_spawn_write; only with cx_spawn_open */
    CX_SPAWN_IN_FILE   /* `input_file` */
} cx_spawn_in;

typedef enum cx_spawn_out {
    CX_SPAWN_OUT_NULL,  /* /dev/null */
    CX_SPAWN_OUT_BUF,   /* appended to `buf` */
    CX_SPAWN_OUT_FILE,  /* written to `file` from its current offset; the file stays open */
    CX_SPAWN_OUT_LINES, /* cx_spawn_read_line; only with cx_spawn_open, and only for `out` */
    CX_SPAWN_OUT_JOIN,  /* only for `errout`: the same pipe as `out`, interleaved as written */
    CX_SPAWN_OUT_GIVEN  /* only for `errout`: the child has `file` itself */
} cx_spawn_out;

typedef struct cx_spawn_output {
    cx_spawn_out to;
    cx_buf *buf;
    cx_file file;
    uint64_t limit_bytes; /* 0 = CX_SPAWN_OUTPUT_DEFAULT.  Output past the limit is discarded
                             (result: truncated); the child does not notice */
    bool limit_fails;     /* instead: kill the child and fail with CX_E_LIMIT */
} cx_spawn_output;

static inline cx_spawn_output cx_spawn_to_buf(cx_buf *buf, uint64_t limit_bytes)
{
    return (cx_spawn_output){CX_SPAWN_OUT_BUF, buf, CX_FILE_NONE, limit_bytes, true};
}
static inline cx_spawn_output cx_spawn_to_file(cx_file file, uint64_t limit_bytes)
{
    return (cx_spawn_output){CX_SPAWN_OUT_FILE, NULL, file, limit_bytes, false};
}

/* An open descriptor that the child gets under the number `as` (3 .. 255, each once). */
typedef struct cx_spawn_inherit {
    cx_file file;
    int as;
} cx_spawn_inherit;

/* Soft and hard limits set in the child; 0 = as they are.  No core file is ever written. */
typedef struct cx_spawn_limits {
    uint64_t cpu_seconds;
    uint64_t processes;
    uint64_t file_bytes;
    uint64_t open_files;
    uint64_t
        memory_bytes; /* private and writable; a program built with sanitizers needs terabytes */
} cx_spawn_limits;

typedef struct cx_spawn_options {
    const char *const *argv; /* ends with NULL */
    const char *path;        /* the program's file; NULL = argv[0].  No search in PATH: it must
                                contain a slash */
    cx_file executable; /* the program as an open file, so that the file checked is the file run.  A
                           script cannot run this way and is run by `path`.  CX_FILE_NONE = by path */
    const char *const *envp; /* ends with NULL; NULL = empty */
    const char *cwd;         /* NULL = this process's */
    cx_spawn_in in;
    cx_bytes input;
    cx_file input_file;
    cx_spawn_output out, errout;
    const cx_spawn_inherit *keep;
    size_t keep_count;             /* <= CX_SPAWN_KEEP_MAX */
    const cx_spawn_limits *limits; /* NULL = none */
    const cx_file *join;           /* files to which the child writes "0" before its exec: the
                                      cgroup.procs of its control groups; NULL = none */
    size_t join_count;
    bool leave_rest;       /* what is left of its group when it ends by itself runs on: a program
                              that starts another for the user, such as xdg-open */
    bool die_with_starter; /* SIGKILL to the child when the thread that starts it ends */
    cx_file term_file;     /* for a child that supervises others (confine.h): "t" is written here
                              instead of SIGTERM, and "k" instead of SIGKILL, which follows
                              CX_SPAWN_LAST_MS later.  CX_FILE_NONE = signals */
    uint64_t timeout_ms;   /* from the start; 0 = none */
    uint64_t grace_ms;     /* 0 = CX_SPAWN_GRACE_MS */
    const atomic_bool *cancel; /* NULL = none; polled every 50 ms */
} cx_spawn_options;

#define CX_SPAWN_OPTIONS_INIT \
    ((cx_spawn_options){      \
        .executable = CX_FILE_NONE, .input_file = CX_FILE_NONE, .term_file = CX_FILE_NONE})

typedef struct cx_spawn_stream {
    uint64_t total_bytes; /* written by the child and read by us */
    uint64_t kept_bytes;
    bool truncated; /* kept_bytes < total_bytes */
} cx_spawn_stream;

typedef struct cx_spawn_result {
    int exit_code; /* -1 when ended by a signal */
    int signal;    /* 0 when it exited */
    bool timed_out;
    bool cancelled;
    bool killed; /* SIGTERM was not enough */
    bool lost;   /* "k" was not enough either: processes it supervised may still run */
    uint64_t duration_ns;
    uint64_t cpu_ns; /* of the child and the descendants it waited for */
    cx_spawn_stream out, errout;
} cx_spawn_result;

/* The exit code as a shell reports it (run.md §12): 124 after a timeout, 128 + n after signal n. */
int cx_spawn_exit(const cx_spawn_result *result);

/*
 * Runs a program to its end.  A program that ran and failed, was killed, or timed out is a result,
 * not an error.  CX_E_NOT_FOUND, CX_E_DENIED, ..: it could not be started (a shell reports 127,
 * 126).
 */
CX_RESULT cx_spawn_run(const cx_spawn_options *options, cx_spawn_result *result, cx_err *err);

/* --- a child with two-way streams ------------------------------------------------------------ */

typedef struct cx_spawn_child cx_spawn_child;

/* Starts a child.  Buffers, files and `cancel` of the options must live until cx_spawn_close; the
 * rest is copied.  After `timeout_ms` of the options every call below ends the child and fails with
 * CX_E_TIMEOUT. */
CX_RESULT cx_spawn_open(const cx_spawn_options *options, cx_spawn_child **out, cx_err *err);

/* Writes all of it (CX_SPAWN_IN_PIPE), reading outputs meanwhile, so that neither side can block
 * the other.  CX_E_IO (EPIPE) when the child has closed its input, CX_E_TIMEOUT after `timeout_ms`
 * of this call (a part may have been written). */
CX_RESULT cx_spawn_write(cx_spawn_child *child, cx_bytes data, uint64_t timeout_ms, cx_err *err);
/* Closes the child's input. */
void cx_spawn_end_input(cx_spawn_child *child);

/*
 * The next line (CX_SPAWN_OUT_LINES) without its line feed, borrowed until the next call;
 * `*out_end` true (and an empty line) at the end of the output.  A last line without a line feed
 * counts.  CX_E_LIMIT when a line is longer than `limit_bytes`, CX_E_TIMEOUT after `timeout_ms`.
 */
CX_RESULT cx_spawn_read_line(cx_spawn_child *child, size_t limit_bytes, uint64_t timeout_ms,
                             cx_str *out_line, bool *out_end, cx_err *err);

/* Our ends of its streams, which do not block, and a file that can be read when it has ended; -1
 * where there is none.  For a caller that waits for more than this child (relay.h), instead of the
 * two calls above; the child keeps them. */
typedef struct cx_spawn_files {
    cx_file input, output, process;
} cx_spawn_files;
cx_spawn_files cx_spawn_child_files(const cx_spawn_child *child);

/* SIGKILL to its group, also to one that is stopped; cx_spawn_close follows. */
void cx_spawn_kill(cx_spawn_child *child);

/* Closes its input, waits `wait_ms` for it to exit, then ends the group as after a timeout.  Always
 * frees `child`; NULL is accepted.  `result` may be NULL. */
CX_RESULT cx_spawn_close(cx_spawn_child *child, uint64_t wait_ms, cx_spawn_result *result,
                         cx_err *err);

#endif

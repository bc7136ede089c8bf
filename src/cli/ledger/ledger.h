/*
 * ledger.h - what the commands of the ledger share: finding and opening the data directory, the
 * actor, reading arguments, answering.
 *
 * A command is a job of two steps.  `prepare` reads arguments and files before anything is
 * locked, so that mistakes are found early; `work` has the open data directory. Both may leave
 * an answer in `out` and an exit code; errors that they return are printed to standard error.
 */
#ifndef CX_CLI_LEDGER_H
#define CX_CLI_LEDGER_H

#include "cli/cli.h"
#include "ledger/api.h"
#include "memory/api.h"

/* Of the log's files that `init` and hooks make: each command that writes reads the newest
 * whole. */
#define CX_CLI_SEGMENT_SIZE (UINT64_C(16) << 20)

/* A command that ends sooner archives nothing. */
#define CX_CLI_ARCHIVING_STARTS_MS 2000

/* Longest argument read from a file or standard input. */
#define CX_CLI_ARGUMENT_MAX ((size_t)64 << 20)

#define CX_CLI_OPTION_HOME                                                                   \
    CX_CLI_OPT("home", 0, CX_CLI_FILE, "DIR",                                                \
               "The data directory; default $CORTEX_HOME, else $XDG_DATA_HOME/cortex, else " \
               "~/.local/share/cortex.")
#define CX_CLI_OPTION_ACTOR                                                                      \
    CX_CLI_OPT("actor", 0, CX_CLI_TEXT, "NAME",                                                  \
               "The actor whose journal to use; default $CORTEX_ACTOR, else $LOGNAME or $USER, " \
               "else \"local\".")
#define CX_CLI_OPTION_MAX_INDEX                                                              \
    CX_CLI_OPT(                                                                              \
        "max-index", 0, CX_CLI_SIZE, "SIZE",                                                 \
        "The index in a file takes at most SIZE: its oldest rows leave it, not the ledger, " \
        "and answers name the time before which nothing is searched; at least 1M, default: " \
        "no limit.")
#define CX_CLI_OPTION_JSON CX_CLI_OPT_FLAG("json", 0, "One line of JSON instead of text.")
/* Options of every command on one actor's journal. */
#define CX_CLI_OPTIONS_LEDGER CX_CLI_OPTION_HOME, CX_CLI_OPTION_ACTOR, CX_CLI_OPTION_JSON
#define CX_CLI_OPTION_OUTPUT(what)                 \
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "FILE", \
               "Write " what " to FILE; default standard output.")

#define CX_CLI_EXITS_WRITE                                                                        \
    "0 done and durable\n1 rejected because of what the ledger contains: nothing was changed\n2 " \
    "usage error, or something named does not exist\n3 could not be done: no data directory, "    \
    "owned by another process, unreadable, full disk"
#define CX_CLI_EXITS_READ                                                                         \
    "0 answered\n1 the reader is not allowed to read it\n2 usage error, or something named does " \
    "not exist\n3 could not be answered: no data directory, unreadable, damaged"

/* CX_CLI_SIGN reads, and signs what it has read: one such command at a time. */
typedef enum cx_cli_access { CX_CLI_READ, CX_CLI_WRITE, CX_CLI_SIGN } cx_cli_access;

typedef struct cx_cli_ledger {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_arena *arena; /* the command's */
    bool json;
    const char *path;  /* of the data directory */
    cx_str actor;      /* empty when the command has none */
    cx_home *home;     /* NULL while preparing */
    cx_memory *memory; /* of the actor; NULL unless the job wants it */
    cx_file signing;   /* who has it locked signs; CX_FILE_NONE */
    cx_buf out;        /* the answer */
    int exit_code;     /* of the answer */
    uint64_t memories; /* of the actor, dead ones too; for the progress of a search */
    cx_cli_progress searching;
} cx_cli_ledger;

typedef struct cx_cli_job {
    cx_cli_access access;
    bool wants_memory;
    cx_status (*prepare)(cx_cli_ledger *l, void *state, cx_err *err); /* may be NULL */
    cx_status (*work)(cx_cli_ledger *l, void *state, cx_err *err);
} cx_cli_job;

/* Runs a job from options to exit code. */
int cx_cli_run_job(cx_cli *cli, const cx_cli_args *args, const cx_cli_job *job, void *state);

/*
 * A command that writes goes through the process that owns the data directory, if there is one.
 * What it then reads may need the files: from here on the data directory is open for reading.
 * Does nothing when this process is the owner.
 */
CX_RESULT cx_cli_keep_reading(cx_cli_ledger *l, cx_err *err);

/* Two must not sign at once: each has to see what the other has signed.  Until l->signing is
 * closed. */
CX_RESULT cx_cli_lock_signing(cx_cli_ledger *l, cx_err *err);

/* Reports an error, with what to do where that is known; returns the exit code. */
int cx_cli_ledger_fail(cx_cli *cli, const cx_cli_args *args, const cx_err *err);

/* --- where and who -------------------------------------------------------------------------- */

/* The data directory that the options and the environment name; text in the arena. */
CX_RESULT cx_cli_home_path(cx_cli *cli, const cx_cli_args *args, const char **out, cx_err *err);
/* Makes it, and the folders above it; CX_E_EXISTS. */
CX_RESULT cx_cli_make_home(cx_cli *cli, const cx_cli_args *args, const char *path, cx_scheme scheme,
                           cx_err *err);
CX_RESULT cx_cli_actor_name(cx_cli *cli, const cx_cli_args *args, cx_str *out, cx_err *err);
/* The options with which every command opens a data directory; `progress` may be NULL. */
cx_home_options cx_cli_home_options(cx_cli *cli, cx_cli_access access, cx_cli_progress *progress);
/* "<name of the data directory's folder>/<actor>": the default name of a log. */
CX_RESULT cx_cli_default_origin(cx_cli *cli, const char *home_path, cx_str actor, cx_str *out,
                                cx_err *err);

/* --progress, of work that counts. */
#define CX_CLI_OPTION_PROGRESS                                                                  \
    CX_CLI_OPT_FLAG("progress", 0,                                                              \
                    "Show rate, percent and time left on standard error, also when that is no " \
                    "terminal: a line every two seconds, and one at the end of each part.")

/* --- arguments ------------------------------------------------------------------------------ */

/* The text itself, the contents of FILE for "@FILE", standard input for "-"; in the arena. */
CX_RESULT cx_cli_read_text(cx_cli *cli, const char *argument, cx_bytes *out, cx_err *err);
/* A file's contents ("-" = standard input), in the arena. */
CX_RESULT cx_cli_read_file(cx_cli *cli, const char *path, cx_bytes *out, cx_err *err);
CX_RESULT cx_cli_read_json(cx_cli *cli, const char *what, const char *argument, cx_json *out,
                           cx_err *err);
/* 64 hex digits. */
CX_RESULT cx_cli_parse_digest(const char *what, const char *text, cx_digest *out, cx_err *err);
CX_RESULT cx_cli_parse_number(const char *what, const char *text, uint64_t *out, cx_err *err);
/* RFC 3339, or seconds since 1970. */
CX_RESULT cx_cli_parse_time(const char *what, const char *text, int64_t *out_seconds, cx_err *err);
/* .. or a date, or an age such as 30d (m, h, d, w, y): that long ago. */
CX_RESULT cx_cli_parse_moment(cx_cli *cli, const char *what, const char *text, int64_t *out_ns,
                              cx_err *err);
/* A finite number, as a float. */
CX_RESULT cx_cli_parse_float(const char *what, const char *text, float *out, cx_err *err);
/* Numbers as a JSON array, "@FILE" or "-". */
CX_RESULT cx_cli_read_vector(cx_cli *cli, const char *argument, const float **out, size_t *out_dim,
                             cx_err *err);
/* A name in one of the vocabularies; the message lists them all. */
CX_RESULT cx_cli_parse_word(const char *what, const char *text, cx_str (*name)(uint8_t code),
                            uint8_t max, uint8_t *out, cx_err *err);
/* All values of a repeatable option, in order. */
CX_RESULT cx_cli_all_values(cx_cli *cli, const cx_cli_args *args, const char *option,
                            const cx_str **out, size_t *out_count, cx_err *err);

/* A memory as people name it: a URI, or a ULID alone for whatever is current. */
typedef struct cx_cli_name {
    bool latest; /* only uri.id is set */
    cx_uri uri;
} cx_cli_name;
CX_RESULT cx_cli_parse_name(const char *text, cx_cli_name *out, cx_err *err);
/* The URI of a name: looked up when it is a ULID. */
CX_RESULT cx_cli_find_uri(cx_cli_ledger *l, const cx_cli_name *name, cx_uri *out, cx_err *err);

/* --- answers -------------------------------------------------------------------------------- */

/* The whole object as one line into `out`. */
CX_RESULT cx_cli_end_json(cx_json_list *list, cx_buf *out, cx_err *err);

/* Text that may not be UTF-8, as cx_json_put_str writes it. */
cx_json cx_cli_json_str(cx_json_list *list, cx_str text);
/* The same, written. */
void cx_cli_add_json_text(cx_buf *out, cx_str text);
void cx_cli_add_digest(cx_buf *out, const cx_digest *digest);
/* Seconds of a time in nanoseconds, towards the past. */
int64_t cx_cli_seconds(int64_t ns);

/* Fails when --output names a file that cannot be created: checked before anything is written to
 * the data directory for it. */
CX_RESULT cx_cli_can_deliver(cx_cli *cli, const cx_cli_args *args, cx_err *err);
/* Bytes to --output, or to standard output when that is not given. */
CX_RESULT cx_cli_deliver(cx_cli *cli, const cx_cli_args *args, cx_bytes bytes, cx_err *err);

#endif

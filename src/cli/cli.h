/*
 * cli.h - what the commands share: the running program, opening a lattice, reporting errors.
 */
#ifndef CX_CLI_CLI_H
#define CX_CLI_CLI_H

#include "cli/commands.h"
#include "cli/opt.h"
#include "cli/out.h"
#include "json/api.h"

/* Exit codes of the whole project (lattice.md §4.3). */
enum {
    CX_EXIT_HOLDS = 0,
    CX_EXIT_BROKEN = 1,
    CX_EXIT_USAGE = 2,
    CX_EXIT_UNCHECKED = 3,
    CX_EXIT_REJECTED = 4 /* a gate, or a legal hold */
};

/* An index is not kept smaller (option --max-index). */
#define CX_CLI_INDEX_MIN (UINT64_C(1) << 20)

typedef struct cx_lattice cx_lattice; /* of <cortex/lattice.h> */
typedef struct cx_lattice_report cx_lattice_report;
typedef struct cx_fleet_files cx_fleet_files;   /* of fleet/files.h */
typedef struct cx_object_store cx_object_store; /* of stores/object_store.h */

typedef struct cx_cli {
    const cx_io *io; /* &files */
    cx_io files;     /* the system's; of a data directory in a database that one's */
    const cx_alloc *alloc;
    cx_arena arena; /* for as long as the command runs */
    cx_cli_out out;
    cx_cli_commands commands;
    const cx_buf *standard_input; /* NULL, or all of it, read already */
    cx_buf recorded;              /* nodes of recorded traces, which a lattice borrows from */
    cx_buf piped;                 /* standard input, likewise */
    const char *configured_home, *configured_actor; /* by files (config.h); NULL = not */
    bool archives;                  /* segments of the log, by configuration: section [archive] */
    uint32_t archive_keep;          /* so many stay as they are */
    int64_t archive_age_ns;         /* .. and those younger than this; 0 = none */
    uint64_t max_index;             /* bytes, by configuration: section [derived]; 0 = no limit */
    const char *archive_to;         /* NULL = the log's own folder, or the one that it names */
    const cx_object_store *objects; /* of bundles, by configuration (objects.h); NULL = none */
    bool stores_objects;            /* bundles go there, not into the journal */
    const char *objects_refused;    /* the file of a folder that names one; NULL = none */
    cx_fleet_files *part; /* of a data directory in a database (fleet/part_home.h); NULL = none */
    struct cx_cli_reached *reached; /* nodes that it writes through (fleet/part_reach.c) */
    bool governed; /* the command is about governed runs: errors carry a "message" (run.md §20) */
} cx_cli;

/* --- messages ----------------------------------------------------------------------------- */

/*
 * Reports that `path` could not be checked (lattice.md §1.3) and returns the exit code: 2 for
 * CX_E_USAGE, else 3.  With json, also one line on standard output.
 */
int cx_cli_fail(cx_cli *cli, const char *path, const cx_err *err, bool json);
/* The same line of JSON alone, on standard output. */
void cx_cli_write_error_json(cx_cli *cli, const cx_err *err);
/* A usage error found after the options were read; returns 2. */
int cx_cli_misuse(const cx_cli_args *args, const char *message);

/* Writes a finished answer to standard output; `exit_code`, or 3 when the buffer failed. */
int cx_cli_answer(cx_cli *cli, cx_buf *answer, int exit_code);
/* The same for bytes that must be exact (cx_cli_out_write_exact). */
int cx_cli_answer_exact(cx_cli *cli, cx_buf *answer, int exit_code);

/* --- reading ------------------------------------------------------------------------------- */

/* Options of every command that reads a lattice. */
#define CX_CLI_OPTIONS_LIMITS                                                                   \
    CX_CLI_OPT("threads", 0, CX_CLI_COUNT, "N",                                                 \
               "Readers working at once; default: one a core, at most 8."),                     \
        CX_CLI_OPT("max-depth", 0, CX_CLI_COUNT, "N",                                           \
                   "Refuse input nested deeper than N brackets (U_DEPTH); at most, and by "     \
                   "default, 1024."),                                                           \
        CX_CLI_OPT("max-bytes", 0, CX_CLI_SIZE, "SIZE",                                         \
                   "Refuse input longer than SIZE (U_LIMIT); K, M, G are understood; default: " \
                   "no limit.")
/* The same for commands that accept @BRANCH in place of a file. */
#define CX_CLI_OPTIONS_READING                                                                     \
    CX_CLI_OPT("home", 0, CX_CLI_FILE, "DIR",                                                      \
               "In place of FILE, @BRANCH (such as @agent/976dbe5047633d39) names that branch of " \
               "the traces in this data directory, and @ all branches. @otel/TRACE_ID is a trace " \
               "sent by an OpenTelemetry exporter, @otel all of those. @session/NAME is a "        \
               "session file archived by 'cortex watch', or a session that hooks recorded. "       \
               "@run/RUN_ID or @run/RUN_ID/TASK is a "                                             \
               "governed run of the current repository. A folder is read as the bundle of a run. " \
               "Default:  $CORTEX_HOME, else $XDG_DATA_HOME/cortex, else ~/.local/share/cortex."), \
        CX_CLI_OPTIONS_LIMITS

typedef enum cx_cli_keep { CX_CLI_KEEP_NOTHING, CX_CLI_KEEP_DELTAS, CX_CLI_KEEP_SEALS } cx_cli_keep;

/* A path as a word of a shell's command line, to be copied; data NULL = no memory. */
cx_str cx_cli_quoted(cx_arena *arena, const char *path);

/* CX_E_IO for what people name in place of a session's file: a folder, or an address of the web. */
CX_RESULT cx_cli_check_input(const char *path, cx_err *err);

/*
 * Opens the lattice at `path` with the reading options; "@BRANCH" and "@" are recorded traces.
 * On failure prints a message and sets *out_exit.
 */
cx_lattice *cx_cli_open_lattice(cx_cli *cli, const cx_cli_args *args, const char *path,
                                cx_cli_keep keep, int *out_exit);

#define CX_CLI_OPTION_PART                                                                      \
    CX_CLI_OPT("part", 0, CX_CLI_TEXT, "ENTRY|last",                                            \
               "Of @agent/NAME, a history of steps, only the 4096 entries of its journal from " \
               "ENTRY on, or the last ones; of @session/NAME lines of the session, of "         \
               "@run/RUN_ID its events. What else there is is not read.")
/*
 * The same, and the verdict; `part` is the value of CX_CLI_OPTION_PART, NULL = the whole.  The user
 * is told which part was read.  Both are the caller's.
 */
cx_lattice *cx_cli_open_verified(cx_cli *cli, const cx_cli_args *args, const char *path,
                                 const char *part, cx_cli_keep keep, cx_lattice_report **out_report,
                                 int *out_exit);

/* --- the commands -------------------------------------------------------------------------- */

#define CX_CLI_DECLARE_COMMAND(name) extern const cx_cli_command cx_cli_##name;
CX_CLI_COMMANDS(CX_CLI_DECLARE_COMMAND)
#undef CX_CLI_DECLARE_COMMAND

/* What `cortex verify` hands a lattice file to: the whole of `cortex lattice verify`. */
int cx_cli_run_lattice_verify(cx_cli *cli, const cx_cli_args *args);

/* Options of both commands. */
#define CX_CLI_OPTIONS_VERIFY                                                                     \
    CX_CLI_OPT_FLAG("content-ids", 0, "Every node_id must be the node's hash (E_ID)."),           \
        CX_CLI_OPT_FLAG("require-seals", 0,                                                       \
                        "Every node must seal its state delta, time and fork type "               \
                        "(E_SEAL_MISSING)."),                                                     \
        CX_CLI_OPT_FLAG("strict-time", 0, "No node may be earlier than a parent (E_TIME)."),      \
        CX_CLI_OPT_FLAG("strict", 0,                                                              \
                        "All three above, and no ambiguous hash input (E_AMBIGUOUS)."),           \
        CX_CLI_OPT_MANY("head", 0, CX_CLI_TEXT, "AGENT=HASH|@FILE",                               \
                        "AGENT=HASH: this agent's newest node must have this hash; may be "       \
                        "repeated. @FILE: the anchor in FILE must hold (see 'cortex lattice "     \
                        "anchor'). The two kinds cannot be mixed."),                              \
        {"compare",                                                                               \
         0,                                                                                       \
         CX_CLI_TEXT,                                                                             \
         "A B",                                                                                   \
         "Also show where the histories of agents A and B part (text output).",                   \
         2,                                                                                       \
         false},                                                                                  \
        CX_CLI_OPT_FLAG("details", 0, "Show the expected and the actual value of each finding."), \
        CX_CLI_OPT_FLAG("json", 0, "One line of canonical JSON instead of text.")

#endif

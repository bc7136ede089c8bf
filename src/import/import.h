/*
 * import.h - public header of import: external traces become lattice JSONL.
 *
 *     cx_import_summary summary;
 *     cx_import_options options = CX_IMPORT_OPTIONS_INIT;
 *     cx_import_run(io, "claude-code", paths, path_count, &options, write, file, &summary, &err);
 *     cx_import_summary_text(&buf, &summary);
 *     cx_import_summary_done(&summary);
 *
 * Every source record becomes exactly one sealed node, bad ones included, after one file node a
 * file.  The rules are those of docs/formats/imports.md (§ numbers in this module are of that
 * page). The same files in the same order give the same bytes: no clock, path, locale or random
 * number reaches the output.  Thread-safe as long as the callbacks are.
 */
#ifndef CX_IMPORT_IMPORT_H
#define CX_IMPORT_IMPORT_H

#include "base/api.h"
#include "import/place.h"
#include "json/api.h"

typedef struct cx_import_format_info {
    const char *name;        /* what the command line calls it */
    const char *description; /* a few words */
    const char *help;        /* one line: what the files look like */
    bool lines;              /* a record a line, streamed; else one document a file */
} cx_import_format_info;

/*
 * The list of all formats, in the order of the help text: the one place that names a new one.
 * X(NAME, text) stands for `const cx_import_format cx_import_NAME` of NAME.c, whose info.name is
 * `text`.
 */
#define CX_IMPORT_FORMATS(X)            \
    X(otlp, "otlp")                     \
    X(otel_sdk, "otel-sdk")             \
    X(langfuse, "langfuse")             \
    X(claude_code, "claude-code")       \
    X(codex, "codex")                   \
    X(swe_agent, "swe-agent")           \
    X(tau_bench, "tau-bench")           \
    X(who_when, "who-when")             \
    X(gemini_cli, "gemini-cli")         \
    X(qwen_code, "qwen-code")           \
    X(messages, "messages")             \
    X(opencode, "opencode")             \
    X(cline, "cline")                   \
    X(copilot_cli, "copilot-cli")       \
    X(cursor, "cursor")                 \
    X(droid, "droid")                   \
    X(aider, "aider")                   \
    X(openhands, "openhands")           \
    X(mini_swe_agent, "mini-swe-agent") \
    X(atif, "atif")                     \
    X(autogen, "autogen")               \
    X(langsmith, "langsmith")           \
    X(phoenix, "phoenix")               \
    X(jaeger, "jaeger")                 \
    X(chatgpt, "chatgpt")

/* The formats, in the order of the list; NULL after the last. */
const cx_import_format_info *cx_import_format_at(size_t index);

/* Whether files of the format are lines whose records can be read in windows. */
bool cx_import_has_windows(const char *name);
/* Whether documents of the format have a list of records that can be read in windows (items.c). */
bool cx_import_has_items(const char *name);

/* Whether records in a window of the format need cx_import_options.was_told. */
bool cx_import_asks(const char *name);
/* Whether a file of the format that begins so is read as lines, and not as a document. */
bool cx_import_reads_lines(const char *name, cx_bytes head, const cx_alloc *alloc);

/* Where the records of a document are in its text. */
typedef struct cx_import_items {
    size_t begin, end; /* of the list, with its brackets */
    uint64_t count;
} cx_import_items;
/* An item of the list, from byte `begin` of the document on. */
typedef cx_status (*cx_import_on_item)(void *arg, size_t begin, cx_err *err);

/*
 * Finds the items of a document, in their order, and reads all of it as JSON: what cannot be
 * imported as a whole has none.  CX_E_FORMAT, CX_E_SYNTAX, CX_E_LIMIT as cx_import_run has them.
 */
CX_RESULT cx_import_find_items(const char *name, cx_bytes document, const cx_alloc *alloc,
                               cx_import_on_item on_item, void *arg, cx_import_items *out,
                               cx_err *err);

/* A program whose files can be recognised, but have no importer. */
typedef struct cx_import_other {
    const char *name;        /* "qwen-code" */
    const char *description; /* "a Qwen Code session" */
    const char *advice;      /* how to get its history in */
} cx_import_other;

/* What a file is, by its first records; static storage. */
typedef struct cx_import_guessed {
    const char *format;           /* to import it with; NULL = none */
    const cx_import_other *other; /* NULL = none; set only without a format */
    const char *nearest;          /* the format that shares most member names; NULL = none */
    bool is_lattice;              /* nodes of ours, perhaps damaged */
    bool is_json;                 /* a record at least was JSON */
    bool is_blank;                /* nothing but white space */
} cx_import_guessed;

/*
 * Judges the first records of a file.  `head` has at least the first record whole, as
 * cx_import_read_head reads it; more is better.
 */
void cx_import_guess(cx_bytes head, cx_import_guessed *out);
/* The format alone; NULL when there is none. */
const char *cx_import_detect(cx_bytes head);
/* The text without a byte order mark (UTF-8) before it, which editors on Windows write. */
cx_bytes cx_import_after_mark(cx_bytes text);
/* U_SHAPE with what was found instead of a known format, and what to do. */
CX_RESULT cx_import_fail_unknown(const cx_import_guessed *guessed, cx_err *err);

/*
 * Appends the start of a file, from its first byte: as much as judging it takes, at least the first
 * record, however long.  `max_bytes` as in cx_import_options.
 */
CX_RESULT cx_import_read_head(const cx_io *io, cx_file file, const char *path, size_t max_bytes,
                              cx_buf *out, cx_err *err);

/* What may be wrong with a record and never stops an import (§1.5). */
typedef enum cx_import_issue {
    CX_ISSUE_BAD_TIME,
    CX_ISSUE_DANGLING_PARENT,
    CX_ISSUE_DUPLICATE_ID,
    CX_ISSUE_NO_TIME,
    CX_ISSUE_OPEN_CALL, /* only in the summary: known at the end */
    CX_ISSUE_ORPHAN_RESULT,
    CX_ISSUE_PARENT_AFTER_CHILD,
    CX_ISSUE_PARENT_CYCLE,
    CX_ISSUE_TIME_REGRESSED,
    CX_ISSUE_TRUNCATED,
    CX_ISSUE_UNKNOWN_TYPE,
    CX_ISSUE_COUNT
} cx_import_issue;

/* "bad_time"; static storage. */
const char *cx_import_issue_name(cx_import_issue issue);

/* ISO 8601 / RFC 3339 with any number of fraction digits and an offset (none = UTC), exactly;
 * digits after the ninth must not be lost, so a text with nonzero ones is rejected. */
bool cx_import_time_iso(cx_str text, int64_t *out_ns);

typedef cx_status (*cx_import_write)(void *arg, cx_bytes bytes, cx_err *err);

/* A tool call, as it is read; text lives until the callback returns. */
typedef struct cx_import_called {
    uint32_t file;       /* 0-based place on the command line */
    uint64_t line;       /* 1-based, 0 in a document */
    cx_str tool;         /* empty = unknown */
    cx_str folder;       /* that relative paths in the arguments are of; empty = unknown */
    const cx_json *args; /* NULL = unknown */
} cx_import_called;
typedef cx_status (*cx_import_on_call)(void *arg, const cx_import_called *call, cx_err *err);

/*
 * A call, an answer, both in one, or a record with neither; what is borrowed lives until the
 * callback returns.  A call that the format tells again is reported again.
 */
typedef struct cx_import_step {
    uint32_t file; /* 0-based place on the command line */
    uint64_t line; /* 1-based, 0 in a document */
    bool bad;      /* no record of the format, or no JSON: nothing below is known */
    bool opens;    /* a call */
    bool closes;   /* an answer */
    bool ok;       /* of an answer: not marked as failed */
    bool has_time;
    int64_t t_ns; /* since 1970, as the record says */
    cx_str agent; /* as the source names it */
    cx_str folder;
    cx_str call_id, tool;  /* empty = unknown */
    const cx_json *args;   /* of a call; NULL = unknown */
    const cx_json *result; /* of an answer; NULL = unknown */
    const cx_json *raw;    /* the record; NULL = none */
} cx_import_step;
typedef cx_status (*cx_import_on_step)(void *arg, const cx_import_step *step, cx_err *err);

/*
 * A file of lines, or of items, of which only a window is read (§1.16).  The bytes that are given
 * are its first lines (`head` bytes of them, or 0), then its lines from `line` on.  Those before
 * the window are there for what its records refer to; they become no nodes.
 */
typedef struct cx_import_window {
    size_t head;
    uint64_t line;              /* lines of the file before those that follow the head */
    uint64_t from, until;       /* the window: lines from .. until - 1, counted from 0 */
    int64_t after_ns, until_ns; /* only records after the one, and not after the other time;
                                   INT64_MIN, INT64_MAX = all */
    bool absent;                /* none of its bytes are given, and it has no node */
    /* The lines are items of a document (cx_import_find_items), counted likewise: an empty one is
     * missing.  `rest` is the document with an empty list in the place of its items. */
    bool items;
    cx_str rest;
    /* Of a text (place.h), where from and until count its records: where each stretch of the bytes
     * is in it, and what is known at its end; or NULL.  `head` and `line` do not count then. */
    const cx_import_segment *segments;
    size_t segment_count;
    const cx_import_place *end;
} cx_import_window;

/*
 * Some formats tell a message or a call again when more is known of it, however much later.
 * Whether an id was told in a record before is asked in an order that follows from the file alone:
 * the question's number, from 0, is that in its line (1-based).  `known`: the records that were
 * read told it; the answer is what counts.
 */
typedef bool (*cx_import_was_told)(void *arg, uint64_t line, uint32_t question, char space,
                                   cx_str id, bool known);
/* An id was told, after what was asked about its record; perhaps not for the first time. */
typedef void (*cx_import_told)(void *arg, char space, cx_str id);

typedef struct cx_import_options {
    const cx_alloc *alloc; /* NULL = cx_alloc_default() */
    bool plain_ids;        /* s<k> in output order in place of the hash */
    cx_str only;           /* tau-bench: "TASK.TRIAL"; empty = all */
    size_t max_bytes;      /* of a file that is loaded whole, and of a line; 0 = 4 GiB less 1 */
    uint64_t seed;         /* of hash maps; no output depends on it; 0 = the io's */
    /* Labels that must not enter the lattice (§2.8), a canonical JSON line a file; or NULL. */
    cx_import_write labels;
    void *labels_arg;
    /* Called now and then; the total counts both passes over the files, 0 = unknown. */
    void (*progress)(void *arg, uint64_t bytes_done, uint64_t bytes_total);
    void *progress_arg;
    cx_import_on_call on_call; /* once for each call, in the order of the files; or NULL */
    void *on_call_arg;
    cx_import_on_step on_step; /* at least once for each record, in the order of files; or NULL */
    void *on_step_arg;
    /* One for each file, of cx_import_has_windows, has_items or has_places; or NULL. */
    const cx_import_window *windows;
    /* What records before a window told, of formats that ask for it; or NULL. */
    cx_import_was_told was_told;
    cx_import_told told;
    void *told_arg;
} cx_import_options;

#define CX_IMPORT_OPTIONS_INIT                                                                    \
    {                                                                                             \
        NULL, false, {NULL, 0}, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL                                                                            \
    }

/* At most this many ids of open calls are listed; their count is exact. */
#define CX_IMPORT_OPEN_CALLS_LISTED 100

typedef struct cx_import_file_summary {
    uint64_t bytes;
    cx_digest sha256;
    uint64_t records; /* of the source, bad ones included */
    uint64_t nodes;   /* records + 1, and the second nodes of SWE-agent steps (§2.6) */
    uint64_t bad;
    uint64_t
        first_bad_line;    /* of a file's first one; 0 = it has none, or its records are no lines */
    const char *first_bad; /* .. and its code; NULL = it is JSON, but no record of the format */
    uint64_t blank_lines;
    uint64_t issues[CX_ISSUE_COUNT]; /* nodes carrying the label; open calls */
} cx_import_file_summary;

typedef struct cx_import_open_call {
    uint32_t file;
    cx_str call_id;
    cx_str tool; /* empty when unknown */
} cx_import_open_call;

typedef struct cx_import_agent {
    cx_str name;
    uint64_t nodes;
} cx_import_agent;

/* Filled on success; release with cx_import_summary_done, which also accepts a zeroed one. */
typedef struct cx_import_summary {
    const char *format;
    cx_import_file_summary total; /* sha256 unused */
    const cx_import_file_summary *files;
    size_t file_count;
    const cx_import_agent *agents; /* in order of first appearance in the output */
    size_t agent_count;
    const cx_import_open_call *open_calls;
    size_t open_call_count; /* listed ones; total.issues[CX_ISSUE_OPEN_CALL] counts all */
    cx_arena arena;
    bool filled;
} cx_import_summary;

void cx_import_summary_done(cx_import_summary *summary);

/* One line of canonical JSON with LF; the lines people read. */
CX_RESULT cx_import_summary_json(cx_buf *out, const cx_import_summary *summary, cx_err *err);
CX_RESULT cx_import_summary_text(cx_buf *out, const cx_import_summary *summary, cx_err *err);

/*
 * Imports files ("-" = standard input) and passes the lattice to `write`, in pieces; NULL = the
 * files are only read, for the callbacks of the options: no node is made, no parent is resolved,
 * and `summary` must be NULL.  A format of
 * "auto" is detected from the first file.  Bad records are not errors: the output is complete and
 * summary->total.bad is their number.  Errors: CX_E_USAGE (unknown format, `only` elsewhere, or
 * nothing matches `only`), those that `write` returned, and, where a document cannot be read at
 * all, the tags of cx_json_parse and U_SHAPE; the message names the file.
 */
CX_RESULT cx_import_run(const cx_io *io, const char *format, const char *const *paths,
                        size_t path_count, const cx_import_options *options, cx_import_write write,
                        void *write_arg, cx_import_summary *summary, cx_err *err);

/* The same over memory. */
CX_RESULT cx_import_run_bytes(const char *format, const cx_bytes *files, size_t file_count,
                              const cx_import_options *options, cx_import_write write,
                              void *write_arg, cx_import_summary *summary, cx_err *err);

#endif

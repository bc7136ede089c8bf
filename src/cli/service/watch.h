/*
 * watch.h - finds session files of coding agents and archives them as they grow
 * (docs/formats/sessions.md).
 */
#ifndef CX_CLI_WATCH_H
#define CX_CLI_WATCH_H

#include "os/api.h"
#include "base/api.h"
#include "cli/cli.h"
#include "ledger/api.h"
#include "stores/api.h"

typedef struct cx_watch_counts {
    uint64_t files, sessions; /* checked; with new data */
    uint64_t pieces, bytes, lines;
    uint64_t unknown; /* files of no known format: archived as bytes */
    uint64_t waiting; /* bytes of lines without an end */
    uint64_t failed;  /* files that could not be read */
} cx_watch_counts;

/* A file that was seen. */
typedef struct cx_watch_file {
    const char *path;  /* in the watch's arena */
    bool dirty;        /* to be checked */
    bool document;     /* is replaced, and does not grow */
    uint64_t dirty_ns; /* since when, on the monotonic clock */
    bool unknown;      /* of no known format, so far */
    bool reported_unread;
    bool complained;
    bool set_due;      /* more was archived than its newest action set covers */
    uint64_t grown_ns; /* when that was, on the monotonic clock */
    uint64_t waiting;  /* bytes of a line without an end */
    uint64_t device, inode, size;
    int64_t modified_ns;
} cx_watch_file;

typedef struct cx_watch {
    cx_cli *cli;
    const char *home_path;
    const cx_sensitive_rules *sensitive;
    bool json;
    bool quiet;           /* no line for each piece; stops between two files when it is to end */
    bool may_wait;        /* for folders: none may exist yet */
    bool at_once;         /* documents, too, even if they were changed just now */
    bool has_aider;       /* there is a history of Aider in `here` */
    const char *here;     /* where the command runs, with the usual folders; NULL = not known */
    bool usual;           /* the folders of known programs, not those of the operands */
    const char **folders; /* real paths */
    size_t folder_count;
    cx_notify *notify; /* NULL = file watching is unavailable: every scan checks all files */
    cx_arena arena;
    cx_map by_path; /* path -> place in files */
    CX_VEC(cx_watch_file) files;
    cx_home *home; /* open only while something is written */
    cx_arena sessions_arena;
    CX_VEC(cx_recorded_session) sessions; /* as the ledger has them, as far as we know */
    cx_map session_by_path;               /* path -> place of its newest generation */
    cx_watch_counts counts;
    cx_buf text, record, masked;
} cx_watch;

#define CX_WATCH_RESCAN_S 30

/* cmd_watch.c.  An empty watch, of which `home_path` and the flags can be set. */
void cx_watch_init(cx_watch *w, cx_cli *cli);
void cx_watch_done(cx_watch *w);
/* Finds the folders: the operands, or those of known programs. */
CX_RESULT cx_watch_begin(cx_watch *w, const cx_cli_args *args, cx_err *err);
/* Archives what changes until a signal.  Call cx_watch_begin_signals before. */
CX_RESULT cx_watch_until_end(cx_watch *w, uint64_t rescan_s, cx_err *err);
/* SIGINT and SIGTERM end cx_watch_until_end; a second one ends the process. */
void cx_watch_begin_signals(void);
bool cx_watch_is_ending(void);

/* watch_scan.c: finds the files below all folders; those that changed become dirty. */
CX_RESULT cx_watch_scan(cx_watch *w, cx_err *err);
/* One file, as its folder names it. */
CX_RESULT cx_watch_add(cx_watch *w, const char *folder, const char *name, cx_err *err);
/* Whether there is a file to be archived now. */
bool cx_watch_any_dirty(const cx_watch *w);
bool cx_watch_is_due(const cx_watch *w, const cx_watch_file *file);

/* watch_archive.c: archives what is dirty; a file that cannot be read is complained of and left. */
CX_RESULT cx_watch_archive(cx_watch *w, cx_err *err);
/* Records the action sets of sessions that have not grown for a minute, or of all that have grown
 * (docs/formats/actions.md). */
CX_RESULT cx_watch_record_actions(cx_watch *w, bool all, cx_err *err);
/* Only the session that was changed last, before all others; *out is valid until the next call.
 * NULL: there is no session whose format is known. */
CX_RESULT cx_watch_archive_newest(cx_watch *w, const cx_recorded_session **out, cx_err *err);

#endif

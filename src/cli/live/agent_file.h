/*
 * agent_file.h - where agents keep their configuration, and changing it safely.
 *
 *   A1  A file is changed only when it is the user's own, a regular file under one name that no
 *       other user can write, in a folder of which the same holds.  Links are not followed.
 *   A2  A change replaces the file as a whole, with its mode, and only when it still is what was
 *       shown.
 *   A3  What was there before is kept in the data directory until it is undone.
 */
#ifndef CX_CLI_LIVE_AGENT_FILE_H
#define CX_CLI_LIVE_AGENT_FILE_H

#include "cli/cli.h"
#include "live/api.h"

typedef enum cx_agent_scope {
    CX_SCOPE_USER,
    CX_SCOPE_PROJECT,
    CX_SCOPE_LOCAL,   /* the project, this user only: Claude Code */
    CX_SCOPE_MANAGED, /* the administrator's */
    CX_SCOPE_COUNT
} cx_agent_scope;
const char *cx_agent_scope_name(cx_agent_scope scope);

/* Path of the file for a scope; in the arena.  CX_E_NOT_FOUND: the agent has none there, or HOME is
 * not set.  Projects: the folder with .git at or above the current one, else the current one. */
CX_RESULT cx_agent_file_path(cx_cli *cli, cx_live_agent agent, cx_agent_scope scope,
                             const char **out, cx_err *err);
/* The folder of the agent's own files of this user, such as ~/.codex; in the arena. */
CX_RESULT cx_agent_user_folder(cx_cli *cli, cx_live_agent agent, const char **out, cx_err *err);

typedef struct cx_agent_file {
    const char *path;
    bool there;
    bool folder_there;
    uint32_t mode; /* of the file when there */
    cx_str text;   /* in the arena; empty when not there */
} cx_agent_file;

/* Reads it.  With `strict`, A1: CX_E_DENIED says what is wrong with it. */
CX_RESULT cx_agent_file_read(cx_cli *cli, const char *path, bool strict, cx_agent_file *out,
                             cx_err *err);
/* A2.  `mode` is that of a new file.  CX_E_CONFLICT when it changed meanwhile. */
CX_RESULT cx_agent_file_write(cx_cli *cli, const cx_agent_file *file, cx_str text, uint32_t mode,
                              cx_err *err);
/* Removes it, when it still is what was read. */
CX_RESULT cx_agent_file_remove(cx_cli *cli, const cx_agent_file *file, cx_err *err);

/* --- what was there before -------------------------------------------------------------------- */

typedef struct cx_agent_undo {
    bool known;
    bool was_there;
    cx_str before;      /* its text then */
    cx_digest wrote;    /* SHA-256 of what we wrote */
    bool managed_only;  /* we added it */
    const cx_str *keys; /* of sections in a config.toml that are ours; borrowed when writing */
    size_t key_count;
} cx_agent_undo;
/* `home` is the data directory. */
CX_RESULT cx_agent_undo_read(cx_cli *cli, const char *home, const char *path, cx_agent_undo *out,
                             cx_err *err);
CX_RESULT cx_agent_undo_write(cx_cli *cli, const char *home, const char *path,
                              const cx_agent_undo *undo, cx_err *err);
CX_RESULT cx_agent_undo_forget(cx_cli *cli, const char *home, const char *path, cx_err *err);

/* --- showing and asking ----------------------------------------------------------------------- */

/* Appends the lines that differ, with up to three around them, as `diff -u` does. */
CX_RESULT cx_cli_line_diff(cx_str before, cx_str after, const char *name, bool colour, cx_buf *out,
                           cx_err *err);

/* Shows `text` on the terminal and waits for "yes" there, never from a pipe.  CX_E_DENIED. */
CX_RESULT cx_cli_ask_person(const cx_buf *text, const char *without, cx_err *err);

#endif

/*
 * decide_parts.h - what the parts of a decision share: places, effects, commands.
 */
#ifndef CX_LIVE_DECIDE_PARTS_H
#define CX_LIVE_DECIDE_PARTS_H

#include "live/policy.h"
#include "live/shell.h"
#include "live/tools.h"

#define CX_DECIDING_PLACES_MAX 4
#define CX_LIVE_SETTINGS_FILES 17 /* in each of two folders (named.c) */

/* Where a shell can be: in several places after a `cd` that may have failed. */
typedef struct cx_shell_places {
    unsigned shell;                     /* cx_shell_command.shells */
    cx_str now[CX_DECIDING_PLACES_MAX]; /* absolute; empty = not known */
    size_t count;
    cx_str before[CX_DECIDING_PLACES_MAX]; /* where else, once the chain ends */
    size_t before_count;
    unsigned chain;
} cx_shell_places;

typedef struct cx_deciding {
    const cx_live_policy *policy;
    const cx_live_call *call;
    cx_arena *arena;
    cx_live_effect *effects; /* room for CX_LIVE_EFFECTS_MAX */
    size_t count;
    bool too_many;
    cx_str cwd;  /* absolute; empty = not known */
    bool linked; /* the working folder is reached through a link: `cd ..` is not its parent */
    cx_shell_places places[CX_SHELL_DEPTH_MAX]; /* of a line that is decided */
    cx_str rewritten;                           /* of a command; data NULL = none */
    bool settings_read;                         /* `settings` are those that there are (named.c) */
    cx_str settings[2 * CX_LIVE_SETTINGS_FILES];
    cx_err *err;
    cx_status status; /* of memory, and of what could not be asked */
} cx_deciding;

/* Adds an effect; `why` is formatted when the verdict is not to allow. */
void cx_deciding_add(cx_deciding *d, cx_live_effect_kind kind, cx_live_verdict verdict,
                     const char *rule, cx_str text, const char *why, ...) CX_PRINTF(6, 7);

/* --- places (paths.c) ------------------------------------------------------------------------- */

/* A path as it will be met: absolute, without "." and "..", links of what exists resolved.  Data
 * NULL when it cannot be known. */
cx_str cx_deciding_resolve(cx_deciding *d, cx_str path);
/* Sets *linked when a link was followed. */
cx_str cx_deciding_resolve_links(cx_deciding *d, cx_str path, bool *linked);
/* The part below the work tree: "" for the work tree itself; data NULL when it is outside. */
cx_str cx_deciding_below_root(const cx_deciding *d, cx_str absolute);
void cx_deciding_read(cx_deciding *d, cx_str path);
void cx_deciding_write(cx_deciding *d, cx_str path);
/* Adds nothing when it is allowed. */
void cx_deciding_write_quietly(cx_deciding *d, cx_str path);
/* A file or folder that is moved, removed or made something else, with what is below it. */
void cx_deciding_replace(cx_deciding *d, cx_str path);
/* Whether a read would be allowed; nothing is added. */
bool cx_deciding_may_read(cx_deciding *d, cx_str path);
/* Whether no file that an unquoted pattern can become is kept from being read. */
bool cx_deciding_may_read_pattern(cx_deciding *d, cx_str pattern);
/* Whether something below the folder is kept from being read. */
bool cx_deciding_holds_secrets(cx_deciding *d, cx_str folder);
/* "*** Add File: .." and the like; each file is an effect. */
void cx_deciding_patch(cx_deciding *d, cx_str patch);

/* --- what is guarded (guarded.c) -------------------------------------------------------------- */

typedef struct cx_live_guard {
    cx_live_verdict verdict; /* CX_LIVE_ALLOW: nothing is known of it, and the others are not set */
    const char *rule, *why;  /* static storage */
} cx_live_guard;

/* Both take a resolved path.  What keeps a file from being written whatever the lists of the policy
 * say; and what else needs a person. */
cx_live_guard cx_live_guard_of(const cx_deciding *d, cx_str real);
cx_live_guard cx_live_soft_guard_of(cx_deciding *d, cx_str real);
/* What is guarded, exists and is below a folder: one of them; data NULL = none. */
cx_str cx_live_guarded_below(cx_deciding *d, cx_str folder);
/* `inner` is `outer` or below it. */
bool cx_live_path_below(cx_str inner, cx_str outer);
/* Whether the components of `pattern` occur one after the other in `path`, in any case; a '/' at
 * the pattern's end only says that it is a folder's. */
bool cx_live_path_has(cx_str path, cx_str pattern);

/* --- what settings name (named.c) ------------------------------------------------------------- */

/* The settings by which the file is started later; NULL = none names it.  Takes a resolved path. */
const char *cx_live_settings_that_name(cx_deciding *d, cx_str real);

/* --- hosts (hosts.c) -------------------------------------------------------------------------- */

void cx_deciding_url(cx_deciding *d, cx_str url);
/* /dev/tcp/HOST/PORT and /dev/udp/HOST/PORT, which bash opens itself; false when it is another. */
bool cx_deciding_device(cx_deciding *d, cx_str path);
/* A search that the provider runs. */
void cx_deciding_web(cx_deciding *d, cx_str query);
/* Every http URL in a text. */
size_t cx_deciding_urls_in(cx_deciding *d, cx_str text);

/* --- agents and what runs later (starts.c) ---------------------------------------------------- */

void cx_deciding_agent(cx_deciding *d, cx_str name);
void cx_deciding_message(cx_deciding *d, cx_str to);
/* Skills, workflows, prompts for later. */
void cx_deciding_later(cx_deciding *d, cx_str text);
void cx_deciding_worktree(cx_deciding *d);

/* --- programs (programs.c) -------------------------------------------------------------------- */

/* Whether the words of a builtin have it start something, or write where they say. */
const char *cx_live_builtin_danger(const cx_shell_command *command);
/* The same of programs that else only read; files that they write are effects. */
const char *cx_live_reader_danger(cx_deciding *d, cx_str program, const cx_shell_command *command);
/* Files that any program is given: one that is kept from being read forbids the command. */
bool cx_live_words_may_be_read(cx_deciding *d, cx_str program, const cx_shell_command *command,
                               bool reader);

/* --- commands (commands.c) -------------------------------------------------------------------- */

/* One simple command of a line. */
typedef struct cx_live_command {
    cx_deciding *d;
    const cx_shell_command *command; /* has at least one word */
    cx_str shown;
    cx_str program; /* its base name */
    bool opaque;
    const char *opaque_why;
} cx_live_command;

void cx_deciding_command(cx_deciding *d, cx_str text);
/* Adds the command itself as an effect. */
void cx_live_command_add(cx_live_command *c, cx_live_verdict verdict, const char *rule,
                         const char *why);
/* Whether ".." is one of its components. */
bool cx_live_has_parent(cx_str path);

/* --- programs that change files (files.c) ----------------------------------------------------- */

/* False when the program is none of them; else each file that its words name is decided. */
bool cx_live_take_files(cx_live_command *c);

/* --- patterns and folders as they are (reach.c) ----------------------------------------------- */

/* Whether nothing that `pattern` becomes below `base` (real) is kept from being read; false, too,
 * when there is more than can be looked at. */
bool cx_live_pattern_may_be_read(cx_deciding *d, cx_str base, cx_str pattern);

typedef enum cx_live_below {
    CX_LIVE_BELOW_FINE,
    CX_LIVE_BELOW_DENIED, /* something is kept from being read */
    CX_LIVE_BELOW_UNKNOWN /* more than is looked at */
} cx_live_below;

/* Of a folder that is read with all that is below it; `follows`: its links, too. */
cx_live_below cx_live_look_below(cx_deciding *d, cx_str folder, bool follows);
/* A component of a pattern, and a name in a folder (paths.c). */
bool cx_live_name_matches(cx_str pattern, cx_str name);
/* Whether a name is kept from being read wherever it is (paths.c). */
bool cx_live_is_denied_name(const cx_deciding *d, cx_str name);

/* --- options of other programs (options.c) ---------------------------------------------------- */

/* Files that options have a program write, and options that nothing can be told of.  `reads`: it is
 * one that only reads, and its other words are looked at elsewhere. */
void cx_live_take_options(cx_live_command *c, bool reads);

#endif

/*
 * config.h - the configuration: settings files in place of options (docs/configuration.md).
 *
 * A setting is an option of a command under another name, so the settings follow from the
 * commands' tables: `[serve] workers = 8` is `cortex serve --workers 8`.
 *
 *   G1  In order of precedence: option, environment, files, default.  Of the files the nearest
 *       takes precedence: HOME/config.toml, then the user's, then the system's; $CORTEX_CONFIG
 *       names one in place of the last two.
 *   G2  An error in a file stops every command that could act on it: an ignored setting is a
 *       mistake that stays unnoticed.
 *   G3  A file that other users can change is not read.  A repository cannot configure Cortex: the
 *       rules for its runs are in policies/ of the baseline, and only the user chooses where
 *       evidence is stored.
 */
#ifndef CX_CLI_CONFIG_H
#define CX_CLI_CONFIG_H

#include "os/api.h"
#include "cli/cli.h"

/* Of the file in a data directory. */
#define CX_CONFIG_NAME "config.toml"

typedef enum cx_config_where {
    CX_CONFIG_HOME,   /* HOME/config.toml */
    CX_CONFIG_USER,   /* $XDG_CONFIG_HOME/cortex/config.toml, or what $CORTEX_CONFIG names */
    CX_CONFIG_SYSTEM, /* /etc/cortex/config.toml */
    CX_CONFIG_FILES
} cx_config_where;

typedef struct cx_config_file {
    const char *path; /* NULL = there is no place for one */
    bool there;
    cx_str text; /* what was read, in the arena of the command */
    const cx_setting *settings;
    size_t count;
} cx_config_file;

typedef struct cx_config {
    cx_config_file files[CX_CONFIG_FILES];
    const char *home; /* the data directory whose config.toml was searched */
} cx_config;

/* One setting. */
typedef struct cx_config_key {
    const char *section; /* "" = for all commands that have the option */
    const cx_cli_option *option;
} cx_config_key;
/* All of them, in the order of the tables; memory from the arena. */
CX_RESULT cx_config_keys(cx_cli_commands commands, cx_arena *arena, const cx_config_key **out,
                         size_t *out_count, cx_err *err);
/* Its name in the environment, "CORTEX_SERVE_WORKERS"; in the arena. */
const char *cx_config_variable(const cx_config_key *key, cx_arena *arena);
/* The default as a file spells it; NULL = none, or it depends on the machine. */
const char *cx_config_default(const cx_config_key *key);

/* The same of an example for what has no default; NULL = what the help calls its value. */
const char *cx_config_example(const cx_config_key *key);

/* The setting of a file for a key; NULL when there is none. */
const cx_setting *cx_config_find(const cx_config_file *file, const cx_config_key *key);

/* Whether what the file of a data directory says for a key counts: in a folder no store of bundles
 * does (objects.h, S1). */
bool cx_config_counts(const cx_config *config, size_t file, const cx_config_key *key);

/* The first text that the files have for a setting without a section; NULL when none has. */
const char *cx_config_common(const cx_config *config, const char *name);

/* Reads and checks one file.  CX_E_NOT_FOUND: it is not there; CX_E_USAGE: it cannot be used, and
 * where. */
CX_RESULT cx_config_read(cx_cli *cli, const char *path, cx_config_where where, cx_config_file *out,
                         cx_err *err);
/* All of them. `home` is the value of --home, or NULL. */
CX_RESULT cx_config_load(cx_cli *cli, const char *home, cx_config *out, cx_err *err);
/* G1: gives the command what neither it nor the environment has been given. */
CX_RESULT cx_config_apply(cx_cli *cli, cx_cli_args *args, cx_err *err);

#endif

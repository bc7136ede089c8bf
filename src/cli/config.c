/*
 * config.c - what can be set, reading it, and giving it to commands.
 */
#include "cli/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fleet/part_home.h"
#include "cli/objects.h"
#include "db/api.h"
#include "fleet/api.h"
#include "os/api.h"

#define SYSTEM_FILE "/etc/cortex/config.toml"
#define KEYS_MAX 400

/* --- what can be set -------------------------------------------------------------------------- */

/* Options with these names mean the same in every command that has them. */
static const struct shared {
    const char *section, *name;
} shared[] = {
    {"", "home"},
    {"", "actor"},
    {"", "db"},
    {"", "color"},
    {"", "links"},
    {"", "link-to"},
    {"", "retention"},
    {"limits", "threads"},
    {"limits", "max-depth"},
    {"limits", "max-bytes"},
    {"limits", "cache"},
    {"memory", "embedder-url"},
    {"memory", "embedder"},
    {"memory", "embedder-model"},
    {"memory", "embedder-timeout"},
    {"intake", "sensitive"},
    {"intake", "sensitive-pattern"},
    {"telemetry", "otlp-endpoint"},
    {"derived", "max-index"},
    {"bundles", "store"},
    {"bundles", "endpoint"},
    {"bundles", "bucket"},
    {"bundles", "region"},
    {"bundles", "prefix"},
    {"bundles", "store-timeout"},
    {"bundles", "plain-http"},
};

/* Commands with a section of their own: those that run long or receive data.  [archive] is read by
 * every command that writes, too. */
static const struct section {
    const char *name, *command;
} sections[] = {{"serve", "serve"}, {"record", "record"}, {"watch", "watch"},
                {"mcp", "mcp"},     {"import", "import"}, {"archive", "log archive"}};

/* Never set in a file: the caller chooses the form of an answer. */
static const char *const never[] = {"help", "json", "output"};

/* As in the help; a test compares the two. */
static const struct preset {
    const char *section, *name, *value;
} presets[] = {
    {"", "color", "\"auto\""},
    {"", "links", "\"auto\""},
    {"", "link-to", "\"file\""},
    {"limits", "max-depth", "1024"},
    {"serve", "listen", "\"127.0.0.1:8420\""},
    {"serve", "unknown-key", "\"reject\""},
    {"serve", "lease", "4"},
    {"serve", "hold", "30"},
    {"serve", "worker-timeout", "5"},
    {"serve", "detect-every", "900"},
    {"serve", "level-policy", "\"reject\""},
    {"serve", "open-signed", "false"},
    {"serve", "open-requests", "600"},
    {"serve", "open-events", "600"},
    {"serve", "queue", "1024"},
    {"serve", "max-body", "\"8M\""},
    {"serve", "body-memory", "\"256M\""},
    {"serve", "connections", "16384"},
    {"serve", "header-timeout", "30"},
    {"serve", "body-timeout", "120"},
    {"serve", "answer-timeout", "300"},
    {"serve", "grace", "15"},
    {"serve", "insecure", "false"},
    {"record", "unknown-key", "\"reject\""},
    {"record", "level-policy", "\"reject\""},
    {"mcp", "level", "\"full_traces\""},
    {"bundles", "store", "\"database\""},
    {"bundles", "region", "\"us-east-1\""},
    {"bundles", "store-timeout", "30"},
};

/* Where what the help calls the value is none. */
static const struct preset examples[] = {
    {"archive", "after", "\"30d\""},
    {"archive", "to", "\"/mnt/slow/cortex-log\""},
    {"derived", "max-index", "\"2G\""},
    {"bundles", "endpoint", "\"https://s3.eu-central-1.amazonaws.com\""},
    {"bundles", "bucket", "\"cortex-bundles\""},
    {"bundles", "prefix", "\"team-b\""},
};

static const char *find_preset(const struct preset *list, size_t count, const cx_config_key *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].section, key->section) == 0 &&
            strcmp(list[i].name, key->option->name) == 0)
            return list[i].value;
    return NULL;
}

const char *cx_config_default(const cx_config_key *key)
{
    return find_preset(presets, CX_COUNT_OF(presets), key);
}

const char *cx_config_example(const cx_config_key *key)
{
    return find_preset(examples, CX_COUNT_OF(examples), key);
}

static const cx_cli_command *command_of(cx_cli_commands commands, const char *name)
{
    for (size_t i = 0; i < commands.count; i++)
        if (strcmp(commands.items[i]->name, name) == 0)
            return commands.items[i];
    return NULL;
}

static const cx_cli_option *option_of(const cx_cli_command *command, const char *name)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (strcmp(command->options[i].name, name) == 0)
            return &command->options[i];
    return NULL;
}

static bool is_shared(const char *name)
{
    for (size_t i = 0; i < CX_COUNT_OF(shared); i++)
        if (strcmp(shared[i].name, name) == 0)
            return true;
    return false;
}

static bool can_be_set(const cx_cli_option *option)
{
    for (size_t i = 0; i < CX_COUNT_OF(never); i++)
        if (strcmp(never[i], option->name) == 0)
            return false;
    return option->value_count <= 1 && !is_shared(option->name);
}

cx_status cx_config_keys(cx_cli_commands commands, cx_arena *arena, const cx_config_key **out,
                         size_t *out_count, cx_err *err)
{
    cx_config_key *keys = CX_ARENA_ARRAY(arena, cx_config_key, KEYS_MAX);
    size_t count = 0;
    if (keys == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < CX_COUNT_OF(shared); i++) {
        const cx_cli_option *option = NULL;
        for (size_t j = 0; j < commands.count && option == NULL; j++)
            option = option_of(commands.items[j], shared[i].name);
        if (option != NULL)
            keys[count++] = (cx_config_key){shared[i].section, option};
    }
    for (size_t i = 0; i < CX_COUNT_OF(sections); i++) {
        const cx_cli_command *command = command_of(commands, sections[i].command);
        for (size_t j = 0; command != NULL && j < command->option_count; j++)
            if (can_be_set(&command->options[j])) {
                CX_ASSERT(count < KEYS_MAX);
                keys[count++] = (cx_config_key){sections[i].name, &command->options[j]};
            }
    }
    *out = keys;
    *out_count = count;
    return CX_SUCCESS;
}

const char *cx_config_variable(const cx_config_key *key, cx_arena *arena)
{
    cx_str name = cx_arena_printf(arena, "CORTEX_%s%s%s", key->section,
                                  key->section[0] == 0 ? "" : "_", key->option->name);
    char *copy = name.data == NULL ? NULL : CX_ARENA_ARRAY(arena, char, name.size + 1);
    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i <= name.size; i++) {
        char c = name.data[i];
        copy[i] = c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
    }
    return copy;
}

/* --- checking a file -------------------------------------------------------------------------- */

typedef struct check {
    cx_cli *cli;
    const char *path;
    cx_config_where where;
    const cx_config_key *keys;
    size_t key_count;
    cx_err *err;
} check;

static cx_status fail_setting(const check *c, const cx_setting *s, const char *format, ...)
    CX_PRINTF(3, 4);
static cx_status fail_setting(const check *c, const cx_setting *s, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cx_fail_at(c->err, CX_E_USAGE, "Config", CX_NO_OFFSET, "%s: line %u, column %u: %s",
                      c->path, s->line, s->column, text);
}

static const cx_config_key *key_of(const check *c, const cx_setting *s)
{
    for (size_t i = 0; i < c->key_count; i++)
        if (cx_str_is(s->section, c->keys[i].section) &&
            cx_str_is(s->name, c->keys[i].option->name))
            return &c->keys[i];
    return NULL;
}

static cx_status fail_unknown_setting(const check *c, const cx_setting *s)
{
    const char *names[KEYS_MAX], *meant;
    size_t count = 0;
    cx_str name = cx_arena_copy_str(&c->cli->arena, s->name);
    cx_str section = cx_arena_copy_str(&c->cli->arena, s->section);
    if (name.data == NULL || section.data == NULL)
        return cx_fail_nomem(c->err);
    for (size_t i = 0; i < c->key_count; i++)
        if (cx_str_is(s->section, c->keys[i].section))
            names[count++] = c->keys[i].option->name;
    if (count == 0) {
        for (size_t i = 0; i < c->key_count; i++)
            names[count++] = c->keys[i].section;
        meant = cx_cli_suggest(names, count, section.data);
        return fail_setting(c, s, "there is no section [%.40s]%s%s%s", section.data,
                            meant == NULL ? "" : "; did you mean [", meant == NULL ? "" : meant,
                            meant == NULL ? "" : "]?");
    }
    /* Right, and in the wrong place. */
    for (size_t i = 0; i < c->key_count; i++)
        if (cx_str_is(s->name, c->keys[i].option->name))
            return fail_setting(c, s, "there is no setting '%s' here; it belongs %s%s%s", name.data,
                                c->keys[i].section[0] == 0 ? "before the first section" : "into [",
                                c->keys[i].section, c->keys[i].section[0] == 0 ? "" : "]");
    meant = cx_cli_suggest(names, count, name.data);
    if (meant != NULL)
        return fail_setting(c, s, "there is no setting '%.40s' here; did you mean '%s'?", name.data,
                            meant);
    return fail_setting(c, s, "there is no setting '%.40s' here; 'cortex config default' lists all",
                        name.data);
}

static cx_status check_kind(const check *c, const cx_setting *s, const cx_cli_option *option)
{
    const char *wanted = NULL;
    if (option->kind == CX_CLI_FLAG)
        wanted = s->kind == CX_SETTING_FLAG ? NULL : "true or false";
    else if (option->repeatable)
        wanted =
            s->kind == CX_SETTING_TEXTS || s->kind == CX_SETTING_TEXT ? NULL : "texts, [\"..\"]";
    else if (option->kind == CX_CLI_COUNT)
        wanted = s->kind == CX_SETTING_NUMBER ? NULL : "a whole number";
    else if (option->kind == CX_CLI_SIZE)
        wanted = s->kind == CX_SETTING_NUMBER || s->kind == CX_SETTING_TEXT
                     ? NULL
                     : "a number of bytes, or a text such as \"64M\"";
    else if (s->kind != CX_SETTING_TEXT)
        wanted = "a text in quotes";
    return wanted == NULL ? CX_SUCCESS
                          : fail_setting(c, s, "%s: expected %s", option->name, wanted);
}

/* A copy of a data directory must not choose what runs, or who is sent something. */
static cx_status check_home_setting(const check *c, const cx_setting *s, const char *name)
{
    static const char *const programs[] = {"embedder", "alert-command"};
    static const char *const servers[] = {"embedder-url", "alert-webhook", "alertmanager",
                                          "otlp-endpoint"};
    for (size_t i = 0; i < CX_COUNT_OF(programs); i++)
        if (strcmp(name, programs[i]) == 0)
            return fail_setting(c, s,
                                "%s: the file in a data directory cannot name a program: a copy of "
                                "one must not choose what runs",
                                name);
    for (size_t i = 0; i < CX_COUNT_OF(servers); i++)
        if (strcmp(name, servers[i]) == 0)
            return fail_setting(c, s,
                                "%s: the file in a data directory cannot name a server: a copy of "
                                "one must not choose where data is sent",
                                name);
    return CX_SUCCESS;
}

static bool is_archive_setting(const cx_config_key *key, const char *name)
{
    return strcmp(key->section, "archive") == 0 && strcmp(key->option->name, name) == 0;
}

static const char archive_after_form[] = "expected an age such as 30d (also m, h, w, y)";

static cx_status check_archive_setting(const check *c, const cx_setting *s,
                                       const cx_config_key *key)
{
    int64_t age_ns;
    if (is_archive_setting(key, "after") && !cx_age_parse(cx_str_z(s->values[0]), &age_ns))
        return fail_setting(c, s, "after: found '%.40s', %s", s->values[0], archive_after_form);
    if (!is_archive_setting(key, "to"))
        return CX_SUCCESS;
    if (c->where == CX_CONFIG_HOME)
        return fail_setting(c, s,
                            "to: the file in a data directory cannot name a folder: a copy of one "
                            "must not choose where content is put; 'cortex log archive --to DIR' "
                            "notes the folder for this one");
    if (s->values[0][0] != '/')
        return fail_setting(c, s, "to: found '%.80s', expected an absolute path", s->values[0]);
    return CX_SUCCESS;
}

static cx_status check_setting(const check *c, const cx_setting *s)
{
    const cx_config_key *key = key_of(c, s);
    cx_err why;
    if (key == NULL)
        return fail_unknown_setting(c, s);
    if (c->where == CX_CONFIG_HOME && strcmp(key->option->name, "home") == 0)
        return fail_setting(
            c, s, "home: the file in a data directory cannot name another data directory");
    if (c->where == CX_CONFIG_HOME)
        CX_TRY(check_home_setting(c, s, key->option->name));
    CX_TRY(check_kind(c, s, key->option));
    CX_TRY(check_archive_setting(c, s, key));
    for (size_t i = 0; i < s->value_count && key->option->kind != CX_CLI_FLAG; i++)
        if (cx_failed(cx_cli_check_value(key->option, s->values[i], &why)))
            return fail_setting(c, s, "%s", why.message);
    return CX_SUCCESS;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* G3 */
static cx_status check_owner(const char *path, cx_err *err)
{
    cx_facts facts;
    CX_TRY(cx_path_facts(path, true, &facts, err));
    if (facts.kind != CX_FILE_REGULAR && facts.kind != CX_FILE_SPECIAL) /* /dev/null is nothing */
        return cx_fail_at(err, CX_E_USAGE, "Config", CX_NO_OFFSET, "%s is no file", path);
    if (facts.kind == CX_FILE_REGULAR &&
        ((facts.mode & 022) != 0 || (facts.owner_id != 0 && facts.owner_id != cx_user_id())))
        return cx_fail_at(err, CX_E_USAGE, "Config", CX_NO_OFFSET,
                          "%s is not read, because other users can change it; own the file and run "
                          "chmod go-w on it",
                          path);
    return CX_SUCCESS;
}

static cx_status parse_config_file(check *c, cx_str text, cx_config_file *out)
{
    cx_err why;
    cx_status status = cx_settings_read(text, &c->cli->arena, &out->settings, &out->count, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(c->err);
    if (cx_failed(status))
        return cx_fail_at(c->err, CX_E_USAGE, "Config", CX_NO_OFFSET, "%s: %s", c->path,
                          why.message);
    CX_TRY(cx_config_keys(c->cli->commands, &c->cli->arena, &c->keys, &c->key_count, c->err));
    for (size_t i = 0; i < out->count; i++)
        CX_TRY(check_setting(c, &out->settings[i]));
    return CX_SUCCESS;
}

static cx_status too_large(const char *path, cx_err *err)
{
    return cx_fail_at(err, CX_E_USAGE, "Config", CX_NO_OFFSET, "%s: expected at most %zu bytes",
                      path, CX_SETTINGS_BYTES_MAX);
}

static cx_status keep_and_parse(check *c, const cx_buf *text, cx_config_file *out)
{
    cx_str kept = CX_STR("");
    out->there = true;
    if (text->size != 0) {
        kept = cx_arena_copy_str(&c->cli->arena, cx_buf_str(text));
        if (kept.data == NULL)
            return cx_fail_nomem(c->err);
    }
    out->text = kept;
    return parse_config_file(c, kept, out);
}

cx_status cx_config_read(cx_cli *cli, const char *path, cx_config_where where, cx_config_file *out,
                         cx_err *err)
{
    check c = {.cli = cli, .path = path, .where = where, .err = err};
    cx_buf text;
    *out = (cx_config_file){.path = path};
    CX_TRY(check_owner(path, err));
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_io_read_file(cli->io, path, CX_SETTINGS_BYTES_MAX, &text, err);
    if (status.code == CX_E_LIMIT)
        status = too_large(path, err);
    if (!cx_failed(status))
        status = keep_and_parse(&c, &text, out);
    cx_buf_done(&text);
    return status;
}

static const char *environment_value(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == 0 ? NULL : value;
}

/* Of a place where there may be none. */
static cx_status read_maybe(cx_cli *cli, cx_str path, cx_config_where where, cx_config *out,
                            cx_err *err)
{
    cx_facts facts;
    cx_err own = {0};
    if (path.data == NULL)
        return cx_fail_nomem(err);
    out->files[where].path = path.data;
    /* A file that cannot be reached is treated as absent: the folder belongs to another user, or a
 * service may not read the data directory folders of users. */
    if (cx_failed(cx_path_facts(path.data, true, &facts, &own)) &&
        (own.code == CX_E_NOT_FOUND || own.os_errno == ENOTDIR || own.os_errno == EACCES))
        return CX_SUCCESS;
    return cx_config_read(cli, path.data, where, &out->files[where], err);
}

static cx_status read_own(cx_cli *cli, cx_config *out, cx_err *err)
{
    const char *named = environment_value("CORTEX_CONFIG"),
               *config = environment_value("XDG_CONFIG_HOME");
    const char *home = environment_value("HOME");
    if (named != NULL) {
        cx_status status =
            cx_config_read(cli, named, CX_CONFIG_USER, &out->files[CX_CONFIG_USER], err);
        if (status.code == CX_E_NOT_FOUND)
            return cx_fail_at(err, CX_E_USAGE, "Config", CX_NO_OFFSET,
                              "$CORTEX_CONFIG: there is no file %s", named);
        return status;
    }
    CX_TRY(read_maybe(cli, CX_STR(SYSTEM_FILE), CX_CONFIG_SYSTEM, out, err));
    /* The XDG rule: a relative path there is to be ignored. */
    if (config != NULL && config[0] == '/')
        return read_maybe(cli, cx_arena_printf(&cli->arena, "%s/cortex/config.toml", config),
                          CX_CONFIG_USER, out, err);
    if (home != NULL)
        return read_maybe(cli, cx_arena_printf(&cli->arena, "%s/.config/cortex/config.toml", home),
                          CX_CONFIG_USER, out, err);
    return CX_SUCCESS;
}

const cx_setting *cx_config_find(const cx_config_file *file, const cx_config_key *key)
{
    for (size_t i = 0; i < file->count; i++)
        if (cx_str_is(file->settings[i].section, key->section) &&
            cx_str_is(file->settings[i].name, key->option->name))
            return &file->settings[i];
    return NULL;
}

bool cx_config_counts(const cx_config *config, size_t file, const cx_config_key *key)
{
    return file != CX_CONFIG_HOME || strcmp(key->section, CX_CLI_OBJECTS_SECTION) != 0 ||
           config->home == NULL || cx_cli_is_database(config->home);
}

const char *cx_config_common(const cx_config *config, const char *name)
{
    for (size_t i = 0; i < CX_CONFIG_FILES; i++)
        for (size_t j = 0; j < config->files[i].count; j++)
            if (config->files[i].settings[j].section.size == 0 &&
                cx_str_is(config->files[i].settings[j].name, name))
                return config->files[i].settings[j].values[0];
    return NULL;
}

static cx_status read_small(cx_fleet *fleet, cx_str part, cx_buf *out, cx_err *err)
{
    cx_fleet_part found;
    CX_TRY(cx_fleet_find(fleet, part, &found, err));
    return cx_fleet_small_read(fleet, found.number, CX_STR(CX_CONFIG_NAME), out, err);
}

/* Of a part of a fleet, which is in a database: that there is none, or no such part, or that the
 * user is refused, is for the command to say. */
static cx_status read_part_file(cx_cli *cli, const char *home, cx_config *out, cx_err *err)
{
    const cx_fleet_options options = {.node = "cortex-config", .read_only = true};
    cx_config_file *file = &out->files[CX_CONFIG_HOME];
    check c = {.cli = cli, .where = CX_CONFIG_HOME, .err = err};
    cx_fleet *fleet = NULL;
    cx_err why = {0};
    cx_buf text;
    cx_str part;
    const char *url;
    CX_TRY(cx_cli_split_database(&cli->arena, home, &url, &part, err));
    c.path = cx_arena_printf(&cli->arena, "fleet:%.*s/config.toml", (int)part.size, part.data).data;
    if (c.path == NULL)
        return cx_fail_nomem(err);
    file->path = c.path;
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_fleet_open(url, &options, &fleet, &why);
    if (!cx_failed(status))
        status = read_small(fleet, part, &text, &why);
    cx_fleet_close(fleet);
    if (!cx_failed(status) && text.size > CX_SETTINGS_BYTES_MAX)
        status = too_large(c.path, err);
    else if (!cx_failed(status))
        status = keep_and_parse(&c, &text, file);
    else if (status.code == CX_E_NOT_FOUND || status.code == CX_E_DENIED)
        status = CX_SUCCESS;
    else
        *err = why;
    cx_buf_done(&text);
    return status;
}

cx_status cx_config_load(cx_cli *cli, const char *home, cx_config *out, cx_err *err)
{
    const char *data = environment_value("XDG_DATA_HOME"), *user = environment_value("HOME");
    *out = (cx_config){.home = NULL};
    CX_TRY(read_own(cli, out, err));
    out->home = home != NULL ? home : environment_value("CORTEX_HOME");
    if (out->home == NULL)
        out->home = cx_config_common(out, "home");
    if (out->home == NULL && data != NULL && data[0] == '/')
        out->home = cx_arena_printf(&cli->arena, "%s/cortex", data).data;
    else if (out->home == NULL && user != NULL)
        out->home = cx_arena_printf(&cli->arena, "%s/.local/share/cortex", user).data;
    if (out->home == NULL || out->home[0] == 0)
        return CX_SUCCESS;
    if (cx_cli_is_database(out->home))
        return read_part_file(cli, out->home, out, err);
    return read_maybe(cli, cx_arena_printf(&cli->arena, "%s/config.toml", out->home),
                      CX_CONFIG_HOME, out, err);
}

/* --- giving it to a command ------------------------------------------------------------------- */

typedef struct applying {
    cx_cli *cli;
    cx_cli_args *args;
    const cx_config *config;
    cx_err *err;
} applying;

static cx_status apply_value(applying *g, const cx_cli_option *option, const char *value)
{
    return cx_cli_add_option(g->args, (size_t)(option - g->args->command->options), value,
                             &g->cli->arena, g->err);
}

/* The environment speaks like a command line; a flag there is true or false. */
static cx_status apply_variable(applying *g, const cx_cli_option *option, const char *name,
                                const char *value)
{
    cx_err why;
    if (option->kind == CX_CLI_FLAG) {
        bool yes = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
        if (!yes && strcmp(value, "false") != 0 && strcmp(value, "0") != 0)
            return cx_fail(g->err, CX_E_USAGE, "$%s: found '%s', expected true or false", name,
                           value);
        return yes ? apply_value(g, option, NULL) : CX_SUCCESS;
    }
    if (cx_failed(cx_cli_check_value(option, value, &why)))
        return cx_fail(g->err, CX_E_USAGE, "$%s: %s", name, why.message);
    return apply_value(g, option, value);
}

static cx_status apply_setting(applying *g, const cx_cli_option *option, const cx_setting *s)
{
    if (option->kind == CX_CLI_FLAG)
        return strcmp(s->values[0], "true") == 0 ? apply_value(g, option, NULL) : CX_SUCCESS;
    for (size_t i = 0; i < s->value_count; i++)
        CX_TRY(apply_value(g, option, s->values[i]));
    return CX_SUCCESS;
}

/* G1 */
static cx_status apply_key(applying *g, const cx_config_key *key)
{
    const cx_cli_option *option = option_of(g->args->command, key->option->name);
    const char *name = cx_config_variable(key, &g->cli->arena), *value;
    if (name == NULL)
        return cx_fail_nomem(g->err);
    if (option == NULL || cx_cli_has(g->args, option->name) || option->kind != key->option->kind)
        return CX_SUCCESS;
    value = environment_value(name);
    if (value != NULL)
        return apply_variable(g, option, name, value);
    for (size_t i = 0; i < CX_CONFIG_FILES; i++) {
        const cx_setting *s = cx_config_find(&g->config->files[i], key);
        if (s != NULL)
            return apply_setting(g, option, s);
    }
    return CX_SUCCESS;
}

/* The text that the environment or a file has for a setting; NULL when none has. */
static const char *text_of(const applying *g, const cx_config_key *key)
{
    const char *name = cx_config_variable(key, &g->cli->arena);
    const char *value = name == NULL ? NULL : environment_value(name);
    for (size_t i = 0; i < CX_CONFIG_FILES && value == NULL; i++) {
        const cx_setting *s = cx_config_find(&g->config->files[i], key);
        value = s == NULL ? NULL : s->values[0];
    }
    return value;
}

/* Of values that a file was checked for; the environment's were not. */
static cx_status set_archiving(cx_cli *cli, const cx_config_key *key, const char *value,
                               cx_err *err)
{
    cx_err why;
    const char *name = cx_config_variable(key, &cli->arena);
    if (name == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_cli_check_value(key->option, value, &why)))
        return cx_fail(err, CX_E_USAGE, "$%s: %s", name, why.message);
    if (is_archive_setting(key, "after") && !cx_age_parse(cx_str_z(value), &cli->archive_age_ns))
        return cx_fail(err, CX_E_USAGE, "$%s: found '%.40s', %s", name, value, archive_after_form);
    if (is_archive_setting(key, "to") && value[0] != '/')
        return cx_fail(err, CX_E_USAGE, "$%s: found '%.80s', expected an absolute path", name,
                       value);
    if (is_archive_setting(key, "to"))
        cli->archive_to = value;
    if (is_archive_setting(key, "keep")) {
        unsigned long long keep = strtoull(value, NULL, 10);
        cli->archive_keep = keep > UINT32_MAX ? UINT32_MAX : (uint32_t)keep;
    }
    cli->archives = cli->archives || !is_archive_setting(key, "to");
    return CX_SUCCESS;
}

#define ARCHIVE_KEEP_DEFAULT 2 /* as in the help of log archive */

/* What [archive] says to all that write. */
static cx_status apply_archiving(const applying *g, const cx_config_key *keys, size_t count)
{
    cx_cli *cli = g->cli;
    cli->archives = false;
    cli->archive_keep = ARCHIVE_KEEP_DEFAULT;
    cli->archive_age_ns = 0;
    cli->archive_to = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *value = strcmp(keys[i].section, "archive") == 0 ? text_of(g, &keys[i]) : NULL;
        if (value != NULL)
            CX_TRY(set_archiving(cli, &keys[i], value, g->err));
    }
    return CX_SUCCESS;
}

/* Every command that opens a file of tables keeps so much of it in memory. */
static cx_status apply_cache(const applying *g, const cx_config_key *keys, size_t count)
{
    uint64_t bytes;
    for (size_t i = 0; i < count; i++) {
        bool is_cache =
            strcmp(keys[i].section, "limits") == 0 && strcmp(keys[i].option->name, "cache") == 0;
        const char *value = is_cache ? text_of(g, &keys[i]) : NULL;
        if (value == NULL)
            continue;
        if (!cx_cli_parse_size(value, &bytes) || bytes < CX_DB_CACHE_MIN)
            return cx_fail(g->err, CX_E_USAGE,
                           "setting limits.cache: found '%.40s', expected a size such as 64M, at "
                           "least 64K",
                           value);
        cx_db_limit_cache(bytes);
    }
    return CX_SUCCESS;
}

/* Every command that brings the index up to date keeps it small. */
static cx_status apply_derived(const applying *g, const cx_config_key *keys, size_t count)
{
    cx_err why;
    g->cli->max_index = 0;
    for (size_t i = 0; i < count; i++) {
        const char *value = strcmp(keys[i].section, "derived") == 0 ? text_of(g, &keys[i]) : NULL;
        if (value == NULL)
            continue;
        if (cx_failed(cx_cli_check_value(keys[i].option, value, &why)) ||
            !cx_cli_parse_size(value, &g->cli->max_index) || g->cli->max_index < CX_CLI_INDEX_MIN)
            return cx_fail(g->err, CX_E_USAGE,
                           "setting derived.max-index: found '%.40s', expected a size such as 2G, "
                           "at least 1M",
                           value);
    }
    return CX_SUCCESS;
}

/* Whether the settings of a section are options of this command. */
static bool is_of_command(const char *section, const cx_cli_command *command)
{
    for (size_t i = 0; i < CX_COUNT_OF(sections); i++)
        if (strcmp(section, sections[i].name) == 0)
            return strcmp(command->name, sections[i].command) == 0;
    return false;
}

/* --home and --actor have another meaning in some commands (the data directory to verify, a
 * filter). ledger.h uses these two after the environment to find the data directory and the
 * actor. */
static bool is_asked_for(const cx_config_key *key)
{
    return key->section[0] == 0 &&
           (strcmp(key->option->name, "home") == 0 || strcmp(key->option->name, "actor") == 0);
}

cx_status cx_config_apply(cx_cli *cli, cx_cli_args *args, cx_err *err)
{
    const bool takes_home = cx_cli_takes(args, "home");
    const char *home = takes_home ? cx_cli_value(args, "home") : NULL;
    const char *named = environment_value("CORTEX_HOME");
    const cx_config_key *keys;
    size_t count;
    cx_config config;
    /* A command without a data directory asks no database. */
    if (!takes_home && named != NULL && cx_cli_is_database(named))
        home = "";
    CX_TRY(cx_config_load(cli, home, &config, err));
    CX_TRY(cx_config_keys(cli->commands, &cli->arena, &keys, &count, err));
    applying g = {cli, args, &config, err};
    cli->configured_home = cx_config_common(&config, "home");
    cli->configured_actor = cx_config_common(&config, "actor");
    for (size_t i = 0; i < count; i++)
        if (!is_asked_for(&keys[i]) &&
            (keys[i].section[0] == 0 || strcmp(keys[i].section, "limits") == 0 ||
             strcmp(keys[i].section, "memory") == 0 || strcmp(keys[i].section, "intake") == 0 ||
             strcmp(keys[i].section, "derived") == 0 ||
             is_of_command(keys[i].section, args->command)))
            CX_TRY(apply_key(&g, &keys[i]));
    CX_TRY(apply_cache(&g, keys, count));
    CX_TRY(apply_derived(&g, keys, count));
    CX_TRY(cx_cli_objects_apply(cli, args, &config, err));
    return apply_archiving(&g, keys, count);
}

/*
 * cmd_config.c - `cortex config`, `config check` and `config default`: what is set, whether a file
 * can be used, and a file with everything in it as comments.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/config.h"
#include "cli/ledger/ledger.h"

static const char *const where_names[] = {"home", "user", "system"};

/* --- config ----------------------------------------------------------------------------------- */

typedef struct effective {
    cx_str value;       /* as a file spells it; data NULL = nothing */
    const char *source; /* "environment", "home", "user", "system", "default" */
    cx_str place;       /* "CORTEX_HOME", "FILE:LINE"; data NULL = none */
} effective;

static void add_quoted(cx_buf *out, const char *text)
{
    cx_json_write_str(out, cx_str_z(text), CX_JSON_JCS);
}

/* A setting as a file spells it. */
static void add_setting(cx_buf *out, const cx_setting *s)
{
    if (s->kind == CX_SETTING_TEXTS)
        cx_buf_add_byte(out, '[');
    for (size_t i = 0; i < s->value_count; i++) {
        if (i != 0)
            cx_buf_add_z(out, ", ");
        if (s->kind == CX_SETTING_TEXT || s->kind == CX_SETTING_TEXTS)
            add_quoted(out, s->values[i]);
        else
            cx_buf_add_z(out, s->values[i]);
    }
    if (s->kind == CX_SETTING_TEXTS)
        cx_buf_add_byte(out, ']');
}

static cx_status copy_text(cx_cli *cli, cx_buf *text, cx_str *out, cx_err *err)
{
    cx_status status = cx_buf_check(text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(&cli->arena, cx_buf_str(text));
        status = out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(text);
    return status;
}

static cx_status of_file(cx_cli *cli, const cx_config *config, const cx_config_key *key,
                         effective *out, cx_err *err)
{
    for (size_t i = 0; i < CX_CONFIG_FILES; i++) {
        const cx_setting *s = cx_config_find(&config->files[i], key);
        cx_buf text;
        if (s == NULL || !cx_config_counts(config, i, key))
            continue;
        out->source = where_names[i];
        out->place = cx_arena_printf(&cli->arena, "%s:%u", config->files[i].path, s->line);
        if (out->place.data == NULL)
            return cx_fail_nomem(err);
        cx_buf_init(&text, cli->alloc);
        add_setting(&text, s);
        return copy_text(cli, &text, &out->value, err);
    }
    return CX_SUCCESS;
}

static cx_status find_effective(cx_cli *cli, const cx_config *config, const cx_config_key *key,
                                effective *out, cx_err *err)
{
    const char *name = cx_config_variable(key, &cli->arena), *fixed = cx_config_default(key);
    *out = (effective){.source = "default"};
    if (fixed != NULL)
        out->value = cx_str_z(fixed);
    if (name == NULL)
        return cx_fail_nomem(err);
    const char *value = getenv(name);
    if (value == NULL || value[0] == 0)
        return of_file(cli, config, key, out, err);
    cx_buf text;
    cx_buf_init(&text, cli->alloc);
    bool bare = key->option->kind == CX_CLI_COUNT || key->option->kind == CX_CLI_FLAG;
    if (bare)
        cx_buf_add_z(&text, value);
    else
        add_quoted(&text, value);
    out->source = "environment";
    out->place = cx_str_z(name);
    return copy_text(cli, &text, &out->value, err);
}

static cx_str key_name(cx_cli *cli, const cx_config_key *key)
{
    return cx_arena_printf(&cli->arena, "%s%s%s", key->section, key->section[0] == 0 ? "" : ".",
                           key->option->name);
}

static void write_files_json(const cx_config *config, cx_json_list *json)
{
    cx_json_list files = cx_json_list_begin(json->arena);
    for (size_t i = 0; i < CX_CONFIG_FILES; i++) {
        cx_json_list file = cx_json_list_begin(json->arena);
        if (config->files[i].path == NULL)
            continue;
        cx_json_put_bool(&file, "exists", config->files[i].there);
        cx_json_put_str(&file, "path", cx_str_z(config->files[i].path));
        cx_json_put_uint(&file, "settings", config->files[i].count);
        cx_json_put_str(&file, "source", cx_str_z(where_names[i]));
        cx_json_add_object(&files, &file);
    }
    cx_json_put_array(json, "files", &files);
}

static void print_files(const cx_config *config, cx_buf *out)
{
    for (size_t i = 0; i < CX_CONFIG_FILES; i++) {
        if (config->files[i].path == NULL)
            continue;
        cx_buf_printf(out, "# %-6s ", where_names[i]);
        cx_shown_add(out, cx_str_z(config->files[i].path));
        if (config->files[i].there)
            cx_buf_printf(out, ", %zu settings\n", config->files[i].count);
        else
            cx_buf_add_z(out, ", not there\n");
    }
}

static void print_value(cx_cli *cli, const cx_config_key *key, const effective *is, cx_buf *out)
{
    cx_str name = key_name(cli, key);
    cx_buf_printf(out, "%-30.*s ", (int)name.size, name.data);
    if (is->value.data == NULL)
        cx_buf_add_z(out, "-");
    else
        cx_shown_add(out, is->value);
    if (strcmp(is->source, "default") != 0) {
        cx_buf_add_z(out, "  # ");
        cx_shown_add(out, is->place);
    }
    cx_buf_add_byte(out, '\n');
}

static void write_value_json(cx_cli *cli, const cx_config_key *key, const effective *is,
                             cx_json_list *values)
{
    cx_json_list item = cx_json_list_begin(values->arena);
    cx_json_put_str(&item, "name", key_name(cli, key));
    cx_json_put_maybe(&item, "place", is->place.data == NULL ? CX_STR("") : is->place);
    cx_json_put_str(&item, "source", cx_str_z(is->source));
    cx_json_put_maybe(&item, "value", is->value.data == NULL ? CX_STR("") : is->value);
    cx_json_add_object(values, &item);
}

/* What a file says and does not decide, with the reason: an ignored setting must not be a
 * surprise. */
static cx_status show_ignored(cx_cli *cli, const cx_config *config, const cx_config_key *key,
                              cx_json_list *ignored, cx_buf *out, cx_err *err)
{
    static const char why[] = "a copy of a data directory must not choose where bundles go: set it "
                              "in your own file";
    for (size_t i = 0; i < CX_CONFIG_FILES; i++) {
        const cx_setting *s = cx_config_find(&config->files[i], key);
        if (s == NULL || cx_config_counts(config, i, key))
            continue;
        cx_str name = key_name(cli, key);
        cx_str place = cx_arena_printf(&cli->arena, "%s:%u", config->files[i].path, s->line);
        if (name.data == NULL || place.data == NULL)
            return cx_fail_nomem(err);
        if (out != NULL) {
            cx_buf_printf(out, "# ignored: %.*s of ", (int)name.size, name.data);
            cx_shown_add(out, place);
            cx_buf_printf(out, ": %s\n", why);
            continue;
        }
        cx_json_list item = cx_json_list_begin(ignored->arena);
        cx_json_put_str(&item, "name", name);
        cx_json_put_str(&item, "place", place);
        cx_json_put_z(&item, "why", why);
        cx_json_add_object(ignored, &item);
    }
    return CX_SUCCESS;
}

static cx_status show_config(cx_cli *cli, const cx_cli_args *args, cx_buf *out, cx_err *err)
{
    bool json = cx_cli_has(args, "json"), all = cx_cli_has(args, "all");
    cx_json_list values = cx_json_list_begin(&cli->arena), root = values, ignored = values;
    const cx_config_key *keys;
    size_t count;
    cx_config config;
    root = cx_json_list_begin(&cli->arena);
    ignored = cx_json_list_begin(&cli->arena);
    CX_TRY(cx_config_load(cli, cx_cli_value(args, "home"), &config, err));
    CX_TRY(cx_config_keys(cli->commands, &cli->arena, &keys, &count, err));
    if (!json)
        print_files(&config, out);
    for (size_t i = 0; i < count; i++)
        CX_TRY(show_ignored(cli, &config, &keys[i], &ignored, json ? NULL : out, err));
    for (size_t i = 0; i < count; i++) {
        effective is;
        CX_TRY(find_effective(cli, &config, &keys[i], &is, err));
        if (json)
            write_value_json(cli, &keys[i], &is, &values);
        else if (all || strcmp(is.source, "default") != 0 || is.value.data != NULL)
            print_value(cli, &keys[i], &is, out);
    }
    if (!json)
        return CX_SUCCESS;
    write_files_json(&config, &root);
    cx_json_put_array(&root, "ignored", &ignored);
    cx_json_put_array(&root, "values", &values);
    return cx_cli_end_json(&root, out, err);
}

static int run_config_job(cx_cli *cli, const cx_cli_args *args,
                          cx_status (*work)(cx_cli *, const cx_cli_args *, cx_buf *, cx_err *))
{
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = work(cli, args, &out, &err);
    int code = cx_failed(status)
                   ? cx_cli_fail(cli, args->command->name, &err,
                                 cx_cli_takes(args, "json") && cx_cli_has(args, "json"))
                   : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static int run_config(cx_cli *cli, const cx_cli_args *args)
{
    return run_config_job(cli, args, show_config);
}

static const cx_cli_option show_options[] = {
    CX_CLI_OPT_FLAG("all", 0, "Also show settings that are not set and have no fixed default."),
    CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_config = {
    .name = "config",
    .purpose = "show settings and where each comes from",
    .about = "Shows the configuration files and every setting with its effective value and where "
             "it comes from. In order of precedence: option, environment, HOME/config.toml, your "
             "own file ($XDG_CONFIG_HOME/cortex/config.toml, ~/.config/cortex/config.toml), "
             "/etc/cortex/config.toml, default; $CORTEX_CONFIG names a file in place of the last "
             "two. Settings are the options of commands: workers in section [serve] is 'cortex "
             "serve --workers', and $CORTEX_SERVE_WORKERS the same in the environment.\n\n'cortex "
             "config default' prints a file with all of them, 'cortex config check' checks one. "
             "The rules for runs in a repository are not set here but in its policies/.",
    .options = show_options,
    .option_count = CX_COUNT_OF(show_options),
    .exits = "0 shown\n2 a file cannot be used, or usage error\n3 a file could not be read",
    .example = "cortex config --json",
    .run = run_config,
};

/* --- check ------------------------------------------------------------------------------------ */

static cx_status check_config(cx_cli *cli, const cx_cli_args *args, cx_buf *out, cx_err *err)
{
    cx_config config = {.home = NULL};
    if (args->operand_count == 0) {
        CX_TRY(cx_config_load(cli, cx_cli_value(args, "home"), &config, err));
    } else {
        cx_config_file *file = &config.files[CX_CONFIG_USER];
        CX_TRY(cx_config_read(cli, args->operands[0], CX_CONFIG_USER, file, err));
    }
    const cx_config_key *keys;
    size_t found = 0, count;
    CX_TRY(cx_config_keys(cli->commands, &cli->arena, &keys, &count, err));
    for (size_t i = 0; i < CX_CONFIG_FILES; i++) {
        if (!config.files[i].there)
            continue;
        found++;
        cx_shown_add(out, cx_str_z(config.files[i].path));
        cx_buf_printf(out, ": ok, %zu settings\n", config.files[i].count);
    }
    for (size_t i = 0; i < count; i++)
        CX_TRY(show_ignored(cli, &config, &keys[i], NULL, out, err));
    if (found == 0)
        cx_buf_add_z(out, "there is no configuration file; 'cortex config default' prints one\n");
    return CX_SUCCESS;
}

static int run_config_check(cx_cli *cli, const cx_cli_args *args)
{
    return run_config_job(cli, args, check_config);
}

static const cx_cli_operand check_operands[] = {{"FILE", CX_CLI_FILE, NULL, true, false}};
static const cx_cli_option check_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_config_check = {
    .name = "config check",
    .purpose = "check configuration files",
    .about = "Reads FILE, or all configuration files, and reports each error with its line: an "
             "unknown setting, a value of the wrong type, a file that other users can change.",
    .operands = check_operands,
    .operand_count = CX_COUNT_OF(check_operands),
    .options = check_options,
    .option_count = CX_COUNT_OF(check_options),
    .exits = "0 they can be used\n2 one cannot, or usage error\n3 could not be read",
    .example = "cortex config check ~/.config/cortex/config.toml",
    .run = run_config_check,
};

/* --- default ---------------------------------------------------------------------------------- */

/* The help, as a comment of at most so many columns. */
static void add_comment(cx_buf *out, const char *text)
{
    enum { WIDTH = 96 };
    while (*text != 0) {
        size_t size = strlen(text), cut = size;
        if (size > WIDTH)
            for (cut = WIDTH; cut > 1 && text[cut] != ' ';)
                cut--;
        cx_buf_printf(out, "# %.*s\n", (int)cut, text);
        text += cut;
        text += *text == ' ';
    }
}

/* A placeholder, where there is no default. */
static void add_example(cx_buf *out, const cx_cli_option *option)
{
    switch (option->kind) {
    case CX_CLI_FLAG: cx_buf_add_z(out, "false"); return;
    case CX_CLI_COUNT: cx_buf_add_z(out, "1"); return;
    case CX_CLI_SIZE: cx_buf_add_z(out, "\"64M\""); return;
    case CX_CLI_CHOICE: {
        size_t size = strcspn(option->value, "|");
        cx_buf_printf(out, "\"%.*s\"", (int)size, option->value);
        return;
    }
    case CX_CLI_TEXT:
    case CX_CLI_FILE:
    case CX_CLI_COMMAND: break;
    }
    if (option->repeatable)
        cx_buf_add_byte(out, '[');
    add_quoted(out, option->value);
    if (option->repeatable)
        cx_buf_add_byte(out, ']');
}

static cx_status print_default(cx_cli *cli, const cx_cli_args *args, cx_buf *out, cx_err *err)
{
    const cx_config_key *keys;
    const char *section = "";
    size_t count;
    (void)args;
    CX_TRY(cx_config_keys(cli->commands, &cli->arena, &keys, &count, err));
    cx_buf_add_z(out, "# Configuration of cortex: $XDG_CONFIG_HOME/cortex/config.toml, "
                      "/etc/cortex/config.toml or HOME/config.toml.\n# All settings are commented "
                      "out: remove the '#' of those that you set.\n# A setting without a default "
                      "shows an example; 'cortex config' shows the effective values.\n");
    for (size_t i = 0; i < count; i++) {
        const char *value = cx_config_default(&keys[i]);
        if (value == NULL)
            value = cx_config_example(&keys[i]);
        if (strcmp(section, keys[i].section) != 0)
            cx_buf_printf(out, "\n[%s]\n", keys[i].section);
        section = keys[i].section;
        cx_buf_add_byte(out, '\n');
        add_comment(out, keys[i].option->help);
        cx_buf_printf(out, "#%s = ", keys[i].option->name);
        if (value != NULL)
            cx_buf_add_z(out, value);
        else
            add_example(out, keys[i].option);
        cx_buf_add_byte(out, '\n');
    }
    return CX_SUCCESS;
}

static int run_config_default(cx_cli *cli, const cx_cli_args *args)
{
    return run_config_job(cli, args, print_default);
}

static const cx_cli_option default_options[] = {CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_config_default = {
    .name = "config default",
    .purpose = "print a configuration file with every setting",
    .about = "Prints a file with every setting commented out: its purpose and its default, or an "
             "example where the default depends on the machine.",
    .options = default_options,
    .option_count = CX_COUNT_OF(default_options),
    .exits = "0 printed\n2 usage error\n3 could not be written",
    .example = "cortex config default > ~/.config/cortex/config.toml",
    .run = run_config_default,
};

/*
 * objects.c - the object store of bundles, from the configuration.  Invariants S1 and S2:
 * objects.h.
 */
#include "cli/objects.h"

#include <stdlib.h>

#include "cli/fleet/part_home.h"
#include "stores/api.h"

#define SECTION CX_CLI_OBJECTS_SECTION
#define REGION_DEFAULT "us-east-1"
#define KIND_S3 "s3"
#define KIND_DATABASE "database"

typedef struct applying {
    cx_cli *cli;
    const cx_cli_args *args;
    const cx_config *config;
    const cx_config_key *keys;
    size_t key_count;
    cx_err *err;
} applying;

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == 0 ? NULL : value;
}

/* What the command line, the environment or a file says; NULL when none does. */
static cx_status find_text(const applying *g, const char *name, const char **out)
{
    const cx_config_key *key = NULL;
    cx_err why;
    *out = cx_cli_takes(g->args, name) && g->args->command == &cx_cli_run_store_command
               ? cx_cli_value(g->args, name)
               : NULL;
    for (size_t i = 0; i < g->key_count && key == NULL; i++)
        if (strcmp(g->keys[i].section, SECTION) == 0 && strcmp(g->keys[i].option->name, name) == 0)
            key = &g->keys[i];
    if (*out != NULL || key == NULL)
        return CX_SUCCESS;
    const char *of_environment = cx_config_variable(key, &g->cli->arena);
    if (of_environment == NULL)
        return cx_fail_nomem(g->err);
    *out = variable(of_environment);
    if (*out != NULL && key->option->kind != CX_CLI_FLAG &&
        cx_failed(cx_cli_check_value(key->option, *out, &why)))
        return cx_fail(g->err, CX_E_USAGE, "$%s: %s", of_environment, why.message);
    for (size_t i = 0; i < CX_CONFIG_FILES && *out == NULL; i++) {
        const cx_setting *s = cx_config_find(&g->config->files[i], key);
        if (s != NULL && !cx_config_counts(g->config, i, key)) /* S1 */
            g->cli->objects_refused = g->config->files[i].path;
        else if (s != NULL)
            *out = s->values[0];
    }
    return CX_SUCCESS;
}

static cx_status find_or(const applying *g, const char *name, const char *otherwise,
                         const char **out)
{
    CX_TRY(find_text(g, name, out));
    if (*out == NULL)
        *out = otherwise;
    return CX_SUCCESS;
}

static cx_status find_flag(const applying *g, const char *name, bool *out)
{
    const char *value;
    *out = g->args->command == &cx_cli_run_store_command && cx_cli_has(g->args, name);
    if (*out)
        return CX_SUCCESS;
    CX_TRY(find_text(g, name, &value));
    *out = value != NULL && (strcmp(value, "true") == 0 || strcmp(value, "1") == 0);
    if (value != NULL && !*out && strcmp(value, "false") != 0 && strcmp(value, "0") != 0)
        return cx_fail(g->err, CX_E_USAGE, "[bundles] %s: found '%.40s', expected true or false",
                       name, value);
    return CX_SUCCESS;
}

/* S2.  A pair is taken as one: never the name of one and the secret of another. */
static void find_credentials(cx_object_store *store)
{
    static const char *const names[][3] = {
        {"CORTEX_S3_ACCESS_KEY_ID", "CORTEX_S3_SECRET_ACCESS_KEY", "CORTEX_S3_SESSION_TOKEN"},
        {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}};
    for (size_t i = 0; i < CX_COUNT_OF(names) && store->access_key == NULL; i++) {
        store->access_key = variable(names[i][0]);
        store->secret_key = variable(names[i][1]);
        store->session_token = variable(names[i][2]);
    }
}

static cx_status read_settings(const applying *g, cx_object_store *out, const char **out_kind)
{
    const char *timeout;
    CX_TRY(find_or(g, "store", KIND_DATABASE, out_kind));
    CX_TRY(find_text(g, "endpoint", &out->endpoint));
    CX_TRY(find_text(g, "bucket", &out->bucket));
    CX_TRY(find_or(g, "region", REGION_DEFAULT, &out->region));
    CX_TRY(find_or(g, "prefix", "", &out->prefix));
    CX_TRY(find_text(g, "store-timeout", &timeout));
    const unsigned long long seconds =
        timeout == NULL ? CX_OBJECT_TIMEOUT_S : strtoull(timeout, NULL, 10);
    out->timeout_s = seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
    out->tries = CX_OBJECT_TRIES;
    return find_flag(g, "plain-http", &out->plain_http);
}

static cx_status check_kind(const char *kind, cx_err *err)
{
    return strcmp(kind, KIND_S3) == 0 || strcmp(kind, KIND_DATABASE) == 0
               ? CX_SUCCESS
               : cx_fail(err, CX_E_USAGE,
                         "[bundles] store: found '%.40s', expected \"" KIND_DATABASE
                         "\" or \"" KIND_S3 "\"",
                         kind);
}

cx_status cx_cli_objects_apply(cx_cli *cli, const cx_cli_args *args, const cx_config *config,
                               cx_err *err)
{
    applying g = {.cli = cli, .args = args, .config = config, .err = err};
    const char *kind;
    cli->objects = NULL;
    cli->stores_objects = false;
    cli->objects_refused = NULL;
    CX_TRY(cx_config_keys(cli->commands, &cli->arena, &g.keys, &g.key_count, err));
    cx_object_store *store = CX_ARENA_NEW(&cli->arena, cx_object_store);
    if (store == NULL)
        return cx_fail_nomem(err);
    memset(store, 0, sizeof *store);
    CX_TRY(read_settings(&g, store, &kind));
    CX_TRY(check_kind(kind, err));
    cli->stores_objects = strcmp(kind, KIND_S3) == 0;
    if (store->endpoint == NULL && store->bucket == NULL && !cli->stores_objects)
        return CX_SUCCESS;
    CX_TRY(cx_object_store_check(store, err));
    find_credentials(store);
    cli->objects = store; /* what was stored there is read, whatever `store` says of today */
    return CX_SUCCESS;
}

/* --- one file --------------------------------------------------------------------------------- */

static const char *text_of(const cx_config_file *file, const char *name, const char *otherwise)
{
    for (size_t i = 0; i < file->count; i++)
        if (cx_str_is(file->settings[i].section, SECTION) &&
            cx_str_is(file->settings[i].name, name))
            return file->settings[i].values[0];
    return otherwise;
}

cx_status cx_cli_objects_check(const cx_config_file *file, cx_err *err)
{
    cx_err why = {0};
    const char *timeout = text_of(file, "store-timeout", NULL);
    const unsigned long long seconds =
        timeout == NULL ? CX_OBJECT_TIMEOUT_S : strtoull(timeout, NULL, 10);
    const cx_object_store store = {
        .endpoint = text_of(file, "endpoint", "https://s3.example"),
        .bucket = text_of(file, "bucket", "bucket"),
        .region = text_of(file, "region", REGION_DEFAULT),
        .prefix = text_of(file, "prefix", ""),
        .plain_http = strcmp(text_of(file, "plain-http", "false"), "true") == 0,
        .timeout_s = seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds};
    CX_TRY(check_kind(text_of(file, "store", KIND_DATABASE), err));
    if (cx_failed(cx_object_store_check(&store, &why)))
        return cx_fail_at(err, CX_E_USAGE, "Config", CX_NO_OFFSET, "%s: %s", file->path,
                          why.message);
    return CX_SUCCESS;
}

cx_status cx_cli_objects_allowed(const cx_cli *cli, cx_err *err)
{
    return cli->objects_refused == NULL
               ? CX_SUCCESS
               : cx_fail(err, CX_E_USAGE,
                         "%s: [bundles] counts in a part of a fleet, not in a folder: a copy of a "
                         "data directory must not choose where bundles go; set it in your own file "
                         "or in the environment, and remove it there",
                         cli->objects_refused);
}

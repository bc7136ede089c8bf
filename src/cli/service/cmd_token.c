/*
 * cmd_token.c - `cortex token add|list|revoke`: who may talk to the server.
 */
#include <stdio.h>
#include <string.h>

#include "cli/ledger/ledger.h"
#include "server/api.h"

/* --- what they share -------------------------------------------------------------------------- */

typedef struct tokens_job {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *path;
    bool json;
    cx_buf out;
} tokens_job;

/* The file is in the data directory, which is not opened itself: a server may own it. */
static cx_status need_home(tokens_job *job, cx_err *err)
{
    cx_file folder;
    CX_TRY(cx_cli_home_path(job->cli, job->args, &job->path, err));
    const cx_io *io = job->cli->io; /* the data directory's */
    cx_str log = cx_arena_printf(&job->cli->arena, "%s/log", job->path);
    if (log.data == NULL)
        return cx_fail_nomem(err);
    if (io->open(io, log.data, CX_IO_READ | CX_IO_DIRECTORY, &folder) != 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoHome", CX_NO_OFFSET,
                          "there is no data directory at %s; 'cortex init' creates one", job->path);
    (void)io->close(io, folder);
    return CX_SUCCESS;
}

static int run_token_job(cx_cli *cli, const cx_cli_args *args,
                         cx_status (*work)(tokens_job *job, cx_err *err))
{
    cx_err err = {0};
    tokens_job job = {.cli = cli, .args = args, .json = cx_cli_has(args, "json")};
    cx_buf_init(&job.out, cli->alloc);
    cx_status status = need_home(&job, &err);
    if (!cx_failed(status))
        status = work(&job, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &job.out, CX_EXIT_HOLDS);
    cx_buf_done(&job.out);
    return code;
}

static cx_status add_line(tokens_job *job, const cx_json *value, cx_err *err)
{
    CX_TRY(cx_json_write(&job->out, value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(&job->out, '\n');
    return CX_SUCCESS;
}

/* --- add -------------------------------------------------------------------------------------- */

static cx_status read_scopes(const cx_cli_args *args, unsigned *out, cx_err *err)
{
    const cx_cli_given *given = NULL;
    *out = 0;
    while ((given = cx_cli_next(args, "scope", given)) != NULL) {
        unsigned scope = cx_scope_parse(cx_str_z(given->values[0]));
        if (scope == 0)
            return cx_fail(
                err, CX_E_USAGE,
                "option --scope: found '%s', expected trace:write, trace:read, key:admin, "
                "run:read, run:start, run:approve, memory:write, memory:scoped, hook, "
                "session:approve or home:write",
                given->values[0]);
        *out |= scope;
    }
    if (*out == 0)
        return cx_fail(err, CX_E_USAGE,
                       "expected --scope trace:write, trace:read, key:admin, run:read, run:start, "
                       "run:approve, memory:write, memory:scoped, hook, session:approve or "
                       "home:write; it may be repeated");
    return CX_SUCCESS;
}

/* "30d" from now on; at most a hundred years. */
static bool parse_age(const cx_io *io, const char *text, int64_t *out_ns)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    const int64_t seconds_max = INT64_C(100) * 366 * 86400;
    int64_t count = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && count < seconds_max; at++)
        count = 10 * count + (*at - '0');
    for (size_t i = 0; i < CX_COUNT_OF(units); i++) {
        if (at == text || *at != units[i].unit || at[1] != 0 || count == 0 ||
            count > seconds_max / units[i].seconds)
            continue;
        *out_ns = (int64_t)io->wall_ns(io) + count * units[i].seconds * INT64_C(1000000000);
        return true;
    }
    return false;
}

static cx_status read_new_token(tokens_job *job, cx_token *out, cx_err *err)
{
    const char *level = cx_cli_value(job->args, "level"), *name = cx_cli_value(job->args, "name");
    const char *expires = cx_cli_value(job->args, "expires");
    bool naive;
    memset(out, 0, sizeof *out);
    out->level = CX_LEVEL_GENERIC;
    out->expires_ns = CX_TIME_NONE;
    CX_TRY(read_scopes(job->args, &out->scopes, err));
    if (level != NULL && !cx_trace_level_parse(cx_str_z(level), &out->level))
        return cx_fail(err, CX_E_USAGE, "option --level: found '%s'", level);
    if (level != NULL && (out->scopes & CX_SCOPE_READ) == 0)
        return cx_fail(err, CX_E_USAGE, "option --level: needs --scope trace:read");
    if (name != NULL && strlen(name) > CX_TOKEN_NAME_MAX)
        return cx_fail(err, CX_E_USAGE, "option --name: expected at most %d bytes",
                       CX_TOKEN_NAME_MAX);
    if (name != NULL)
        (void)snprintf(out->name, sizeof out->name, "%s", name);
    if (expires != NULL && !parse_age(job->cli->io, expires, &out->expires_ns) &&
        !cx_trace_time_parse(cx_str_z(expires), &out->expires_ns, &naive))
        return cx_fail(err, CX_E_USAGE,
                       "option --expires: found '%s', expected a time such as "
                       "2027-01-31T12:00:00Z, or how long it is good for: 30d, 12h, 90m, 4w",
                       expires);
    return CX_SUCCESS;
}

static cx_status add_token(tokens_job *job, cx_err *err)
{
    char text[CX_TOKEN_TEXT_SIZE + 1];
    cx_token token;
    cx_json value, whole;
    CX_TRY(read_new_token(job, &token, err));
    CX_TRY(cx_token_add(job->cli->io, job->path, &token, text, &token, err));
    if (!job->json) {
        /* The token alone is the answer, so that it can be put where it is needed. */
        cx_buf_printf(&job->out, "%s\n", text);
        cx_cli_complain("token %s; it is shown only once", token.id);
        return CX_SUCCESS;
    }
    CX_TRY(cx_token_json(&token, &job->cli->arena, &value, err));
    cx_json_list list = cx_json_list_begin(&job->cli->arena);
    for (uint32_t i = 0; i < value.count; i++)
        cx_json_list_put(&list, cx_json_text(&value.members[i].name), value.members[i].value);
    cx_json_put_str(&list, "token", cx_str_z(text));
    CX_TRY(cx_json_list_end_object(&list, &whole, err));
    return add_line(job, &whole, err);
}

static int run_token_add(cx_cli *cli, const cx_cli_args *args)
{
    return run_token_job(cli, args, add_token);
}

static const cx_cli_option add_options[] = {
    CX_CLI_OPT_MANY("scope", 0, CX_CLI_CHOICE,
                    "trace:write|trace:read|key:admin|run:read|run:start|run:approve|memory:write|"
                    "memory:scoped|hook|session:approve|home:write",
                    "What it allows; may be repeated."),
    CX_CLI_OPT("level", 0, CX_CLI_CHOICE, "generic|detailed|full_traces",
               "With trace:read: the highest level it may see; default generic."),
    CX_CLI_OPT("name", 0, CX_CLI_TEXT, "NAME", "The token's name in lists and records."),
    CX_CLI_OPT("expires", 0, CX_CLI_TEXT, "TIME",
               "When the token expires: a time, or how long it is good for, such as 30d (also m, "
               "h, w); default never."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_token_add = {
    .name = "token add",
    .purpose = "create an API token",
    .about = "Creates a token and prints it once; the data directory stores only its SHA-256. A "
             "running server accepts it immediately.",
    .options = add_options,
    .option_count = CX_COUNT_OF(add_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex token add --scope trace:write --name agent-7",
    .run = run_token_add,
};

/* --- list ------------------------------------------------------------------------------------- */

static void list_one(tokens_job *job, const cx_token *token)
{
    char time[CX_TRACE_TIME_SIZE];
    cx_buf_printf(&job->out, "%s  ", token->id);
    for (unsigned scope = 1; scope <= CX_SCOPES_ALL; scope <<= 1)
        if (token->scopes & scope)
            cx_buf_printf(&job->out, "%s ", cx_scope_name(scope).data);
    if (token->scopes & CX_SCOPE_READ)
        cx_buf_printf(&job->out, "(%s) ", cx_trace_level_name(token->level));
    if (token->expires_ns != CX_TIME_NONE) {
        cx_trace_time_write(token->expires_ns, time);
        cx_buf_printf(&job->out, "until %.19sZ ", time);
        if (token->expires_ns <= (int64_t)job->cli->io->wall_ns(job->cli->io))
            cx_buf_add_z(&job->out, "(over) ");
    }
    cx_shown_add(&job->out, cx_str_z(token->name));
    cx_buf_add_byte(&job->out, '\n');
}

static cx_status list_tokens(tokens_job *job, cx_err *err)
{
    cx_arena *arena = &job->cli->arena;
    cx_json_list items = cx_json_list_begin(arena), root = cx_json_list_begin(arena);
    cx_tokens tokens;
    cx_json value;
    CX_TRY(cx_tokens_read(job->cli->io, job->path, arena, &tokens, err));
    for (size_t i = 0; i < tokens.count; i++) {
        if (!job->json) {
            list_one(job, &tokens.items[i]);
            continue;
        }
        CX_TRY(cx_token_json(&tokens.items[i], arena, &value, err));
        cx_json_list_add(&items, value);
    }
    if (!job->json) {
        if (tokens.count == 0)
            cx_buf_add_z(&job->out, "there are no tokens; 'cortex token add' makes one\n");
        return CX_SUCCESS;
    }
    cx_json_put_array(&root, "tokens", &items);
    return cx_cli_end_json(&root, &job->out, err);
}

static int run_token_list(cx_cli *cli, const cx_cli_args *args)
{
    return run_token_job(cli, args, list_tokens);
}

static const cx_cli_option list_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                             CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_token_list = {
    .name = "token list",
    .purpose = "list API tokens",
    .about = "Lists the tokens with what they allow, never the tokens themselves.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex token list",
    .run = run_token_list,
};

/* --- revoke ----------------------------------------------------------------------------------- */

static cx_status revoke_token(tokens_job *job, cx_err *err)
{
    cx_token token;
    cx_json value;
    CX_TRY(cx_token_revoke(job->cli->io, job->path, cx_str_z(job->args->operands[0]), &token, err));
    if (!job->json) {
        cx_buf_printf(&job->out, "token %s is revoked\n", token.id);
        return CX_SUCCESS;
    }
    CX_TRY(cx_token_json(&token, &job->cli->arena, &value, err));
    return add_line(job, &value, err);
}

static int run_token_revoke(cx_cli *cli, const cx_cli_args *args)
{
    return run_token_job(cli, args, revoke_token);
}

static const cx_cli_operand revoke_operands[] = {{"TOKEN", CX_CLI_TEXT, NULL, false, false}};

const cx_cli_command cx_cli_token_revoke = {
    .name = "token revoke",
    .purpose = "revoke an API token",
    .about = "TOKEN is an id or a name, as 'cortex token list' shows them. When the command is "
             "done, a running server refuses it.",
    .operands = revoke_operands,
    .operand_count = CX_COUNT_OF(revoke_operands),
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex token revoke agent-7",
    .run = run_token_revoke,
};

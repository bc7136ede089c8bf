/*
 * cmd_init.c - `cortex init`: creates a data directory, and inside a git repository what runs need.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/api.h"
#include "cli/fleet/part_home.h"
#include "cli/run/init_repo.h"
#include "cli/ledger/ledger.h"

static int run_init(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"DIR", CX_CLI_FILE, NULL, true, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("scheme", 0, CX_CLI_CHOICE, "cortex-1|matrix-1",
               "The commitment scheme of the data directory: cortex-1 (the default) is what "
               "transparency-log tools read; matrix-1 is byte for byte that of the older system. "
               "It cannot be changed later."),
    CX_CLI_OPT("segment-size", 0, CX_CLI_SIZE, "SIZE",
               "Size of the log's first file, 64K at least; default 16M. The space is allocated "
               "immediately."),
    CX_CLI_OPT("fleet", 0, CX_CLI_TEXT, "URL",
               "Make it in a PostgreSQL database, for many nodes, as 'cortex fleet init' does: "
               "postgresql://USER@HOST/NAME."),
    CX_CLI_OPT_FLAG("no-standby", 0, "Of a fleet: do not wait for a synchronous standby."),
    CX_CLI_OPT_FLAG("no-repo", 0, "Do not prepare the current git repository."),
    CX_CLI_OPT_FLAG("yes", 'y', "Write without asking."),
    CX_CLI_OPT_FLAG("dry-run", 0, "Show what would be written, and write nothing."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_init = {
    .name = "init",
    .purpose = "create a data directory, where everything is recorded",
    .about = "Creates the data directory DIR (or the one that --home or the environment names) "
             "with an empty log. 'cortex memory write' and other commands then record there, each "
             "actor in its own journal, and 'cortex roots' shows the root hashes.\n\nInside a git "
             "repository it also creates what governed runs need: the runtime root "
             "(.runtime-cache/cortexpilot, or $CORTEXPILOT_RUNTIME_ROOT), its line in .gitignore, "
             "and the files of policies/ and schemas/ to commit. On a terminal it shows these "
             "files first and asks; with --yes, --json or no terminal it does not ask. Existing "
             "files are never changed, and an existing data directory is used.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 created\n1 the data directory exists, and there is no repository to prepare; or "
             "you declined\n2 usage error\n3 could not be created",
    .example = "cortex init ~/.local/share/cortex",
    .run = run_init,
};

/* Makes the folders above `path` that are missing. */
static cx_status make_parents(cx_cli *cli, const char *path, cx_err *err)
{
    cx_str copy = cx_arena_printf(&cli->arena, "%s", path);
    char *text = copy.data == NULL ? NULL : cx_arena_push(&cli->arena, copy.size + 1, 1);
    if (text == NULL)
        return cx_fail_nomem(err);
    memcpy(text, copy.data, copy.size + 1);
    for (char *at = text + 1; *at != 0; at++) {
        if (*at != '/' || at[1] == 0)
            continue;
        *at = 0;
        int failed = cli->io->mkdir(cli->io, text);
        cx_file folder;
        if (failed != 0 && cli->io->open(cli->io, text, CX_IO_READ | CX_IO_DIRECTORY, &folder) != 0)
            return cx_fail_os(err, -failed, "cannot create the folder %s", text);
        if (failed != 0)
            (void)cli->io->close(cli->io, folder);
        *at = '/';
    }
    return CX_SUCCESS;
}

static cx_status choose_home(cx_cli *cli, const cx_cli_args *args, const char **out_path,
                             cx_scheme *out_scheme, cx_err *err)
{
    const char *scheme = cx_cli_value(args, "scheme");
    if (args->operand_count == 1 && cx_cli_has(args, "home"))
        return cx_fail(err, CX_E_USAGE, "expected either DIR or --home DIR");
    if (args->operand_count == 1)
        *out_path = args->operands[0];
    else
        CX_TRY(cx_cli_home_path(cli, args, out_path, err));
    *out_scheme = CX_SCHEME_CORTEX_1;
    if (scheme != NULL && !cx_scheme_parse(cx_str_z(scheme), out_scheme))
        return cx_fail(err, CX_E_USAGE,
                       "option --scheme: found '%s', expected cortex-1 or matrix-1", scheme);
    return cx_cli_outside_homes(cli->io, *out_path, err);
}

cx_status cx_cli_make_home(cx_cli *cli, const cx_cli_args *args, const char *path, cx_scheme scheme,
                           cx_err *err)
{
    cx_home_options home = cx_cli_home_options(cli, CX_CLI_WRITE, NULL);
    home.segment_bytes = cx_cli_number(args, "segment-size", CX_CLI_SEGMENT_SIZE);
    CX_TRY(make_parents(cli, path, err));
    cx_status status = cx_home_create(path, scheme, &home, err);
    if (status.code != CX_E_EXISTS)
        return status;
    return cx_fail(
        err, CX_E_EXISTS,
        "the data directory %s exists already, and nothing was changed; 'cortex status' shows it",
        path);
}

/* What one init did. */
typedef struct init_done {
    const char *path; /* of the data directory */
    cx_scheme scheme;
    bool made; /* false: the data directory exists already, which is no error inside a repository */
    bool planned;  /* --dry-run: that would be done */
    bool declined; /* the person does not want it */
    cx_cli_prepared repo;
} init_done;

static cx_status write_home_json(cx_cli *cli, const init_done *done, cx_str *out, cx_err *err)
{
    char *real = realpath(done->path, NULL);
    *out = cx_arena_copy_str(&cli->arena, cx_str_z(real == NULL ? done->path : real));
    free(real);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status answer_init_json(cx_cli *cli, const init_done *done, cx_str home, cx_buf *out,
                                  cx_err *err)
{
    const cx_cli_prepared *repo = &done->repo;
    cx_json_list json = cx_json_list_begin(&cli->arena);
    cx_json_put_str(&json, "home", home);
    if (done->planned)
        cx_json_put_bool(&json, "dry_run", true);
    if (done->made)
        cx_json_put_str(&json, "scheme", cx_scheme_name(done->scheme));
    if (repo->prepared) {
        cx_json_put_bool(&json, "home_made", done->made);
        cx_json_put_str(&json, "runtime_root", cx_str_z(repo->root));
        cx_json_put_strs(&json, "created", repo->created.items, repo->created.count);
        cx_json_put_str(&json, "gitignore", cx_str_z(repo->gitignore));
        cx_json_put_strs(&json, "policies", repo->policies.items, repo->policies.count);
        cx_json_put_strs(&json, "schemas", repo->schemas.items, repo->schemas.count);
    }
    return cx_cli_end_json(&json, out, err);
}

static void answer_init_text(const init_done *done, cx_str home, cx_buf *out)
{
    const cx_cli_prepared *repo = &done->repo;
    const char *made = done->planned ? "would make " : "made ";
    cx_buf_add_z(out, done->made ? made : "found the data directory ");
    cx_shown_add(out, home);
    if (done->made)
        cx_buf_printf(out, " (%.*s)", (int)cx_scheme_name(done->scheme).size,
                      cx_scheme_name(done->scheme).data);
    cx_buf_add_byte(out, '\n');
    if (!repo->prepared)
        return;
    cx_buf_add_z(out, "runs are kept in ");
    cx_shown_add(out, cx_str_z(repo->root));
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; i < repo->created.count; i++) {
        cx_buf_add_z(out, made);
        cx_shown_add(out, repo->created.items[i]);
        cx_buf_add_byte(out, '\n');
    }
    if (strcmp(repo->gitignore, "refused") == 0)
        cx_buf_add_z(out, "git does not ignore the runtime root, and .gitignore could not be "
                          "changed: add .runtime-cache/ to it\n");
    if (repo->policies.count != 0 && !done->planned)
        cx_buf_add_z(out, "commit policies/ and schemas/: runs read them from the baseline\n"
                          "runner.mcp_only is true: only agents that speak MCP do runs that merge; "
                          "'cortex runner add --full' gives that up, and every manifest says so\n");
}

/* --- asking first ----------------------------------------------------------------------------- */

#define REPLY_BYTES 64

static void print_plan(const init_done *plan)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "cortex init writes:\n  ");
    cx_shown_add(&text, cx_str_z(plan->path));
    cx_buf_add_z(&text, plan->made ? "/  (the data directory)\n" : "/  (exists and is used)\n");
    for (size_t i = 0; i < plan->repo.created.count; i++) {
        cx_buf_add_z(&text, "  ");
        cx_shown_add(&text, plan->repo.created.items[i]);
        if (cx_str_is(plan->repo.created.items[i], ".gitignore"))
            cx_buf_add_z(&text, "  (one line)");
        cx_buf_add_byte(&text, '\n');
    }
    cx_buf_add_z(&text, "--no-repo leaves the repository as it is. Write this? [y/N]\n");
    cx_cli_remark_lines(cx_buf_str(&text));
    cx_buf_done(&text);
}

/* Whether the reply on the terminal is yes; the end of input is no. */
static bool is_confirmed(void)
{
    char reply[REPLY_BYTES];
    if (fgets(reply, sizeof reply, stdin) == NULL)
        return false;
    cx_str word = cx_str_z(reply);
    while (word.size != 0 && (uint8_t)word.data[word.size - 1] <= ' ')
        word.size--;
    return cx_str_is(word, "y") || cx_str_is(word, "Y") || cx_str_is(word, "yes");
}

static cx_status plan_init(cx_cli *cli, const cx_cli_args *args, init_done *plan, cx_err *err)
{
    cx_facts facts;
    plan->planned = true;
    plan->made = cx_failed(cx_path_facts(plan->path, true, &facts, NULL));
    return cx_cli_has(args, "no-repo") ? CX_SUCCESS : cx_cli_plan_repo(cli, &plan->repo, err);
}

/* Files of a repository are its owner's: where a person can be asked, they are asked. */
static cx_status ask_first(cx_cli *cli, const cx_cli_args *args, init_done *done, cx_err *err)
{
    init_done plan = {.path = done->path, .scheme = done->scheme};
    if (cx_cli_has(args, "yes") || cx_cli_has(args, "no-repo") || cx_cli_has(args, "json") ||
        !cx_cli_can_ask())
        return CX_SUCCESS;
    cx_status status = plan_init(cli, args, &plan, err);
    if (!cx_failed(status) && plan.repo.created.count != 0) {
        print_plan(&plan);
        done->declined = !is_confirmed();
    }
    cx_cli_prepared_done(cli, &plan.repo);
    return status;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* The data directory first: without it there is no use in preparing the repository. */
static cx_status init_home_and_repository(cx_cli *cli, const cx_cli_args *args, init_done *done,
                                          cx_err *err)
{
    cx_err own = {0};
    CX_TRY(choose_home(cli, args, &done->path, &done->scheme, err));
    if (cx_cli_has(args, "dry-run"))
        return plan_init(cli, args, done, err);
    CX_TRY(ask_first(cli, args, done, err));
    if (done->declined)
        return CX_SUCCESS;
    cx_status status = cx_cli_make_home(cli, args, done->path, done->scheme, &own);
    done->made = !cx_failed(status);
    if (cx_failed(status) && status.code != CX_E_EXISTS) {
        *err = own;
        return status;
    }
    if (!cx_cli_has(args, "no-repo")) {
        cx_status prepared = cx_cli_prepare_repo(cli, &done->repo, err);
        if (prepared.code == CX_E_EXISTS) /* another object is at that path, not a data directory */
            return (cx_status){err->code = CX_E_IO};
        CX_TRY(prepared);
    }
    if (!done->made && !done->repo.prepared) {
        *err = own;
        return status;
    }
    return CX_SUCCESS;
}

static int run_init(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    init_done done = {.path = "", .scheme = CX_SCHEME_CORTEX_1};
    cx_str home = CX_STR("");
    cx_buf out;
    if (cx_cli_has(args, "fleet"))
        return cx_cli_init_fleet(cli, args);
    cx_buf_init(&out, cli->alloc);
    cx_status status = init_home_and_repository(cli, args, &done, &err);
    if (!cx_failed(status) && done.declined) {
        cx_cli_remark("nothing was written");
        cx_buf_done(&out);
        return CX_EXIT_BROKEN;
    }
    if (!cx_failed(status))
        status = write_home_json(cli, &done, &home, &err);
    if (!cx_failed(status) && cx_cli_has(args, "json"))
        status = answer_init_json(cli, &done, home, &out, &err);
    else if (!cx_failed(status))
        answer_init_text(&done, home, &out);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_cli_prepared_done(cli, &done.repo);
    cx_buf_done(&out);
    return code;
}

/*
 * cmd_worktrees.c - `cortex worktrees list`: the repository's work trees, and which are of runs.
 */
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "git/api.h"

static int run_worktrees_list(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_option options[] = {CX_CLI_OPTION_REPO, CX_CLI_OPTION_JSON,
                                        CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_worktrees_list = {
    .name = "worktrees list",
    .purpose = "list the work trees of a repository and their runs",
    .about = "Lists what git lists, the main checkout first. 'run cleanup' removes those of runs "
             "that are over.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 listed\n2 wrong usage\n3 could not be read",
    .example = "cortex worktrees list --json",
    .run = run_worktrees_list,
};

static cx_status add_item(cx_cli *cli, const cx_worktree_listed *item, cx_json_list *list,
                          cx_err *err)
{
    char head[CX_OID_TEXT_SIZE];
    cx_json_list object = cx_json_list_begin(&cli->arena);
    cx_json value;
    cx_oid_text(&item->head, head);
    cx_str kept = cx_arena_copy_str(&cli->arena, cx_str_z(head));
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    cx_json_put_str(&object, "path", item->path);
    cx_json_put_maybe(&object, "branch", item->branch.size == 0 ? (cx_str){NULL, 0} : item->branch);
    cx_json_put_str(&object, "head", kept);
    cx_json_put_maybe(&object, "run_id", item->ours ? item->run_id : (cx_str){NULL, 0});
    cx_json_put_bool(&object, "prunable", item->prunable);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    cx_json_list_add(list, value);
    return CX_SUCCESS;
}

static void add_line(cx_buf *out, const cx_worktree_listed *item)
{
    char head[CX_OID_TEXT_SIZE];
    cx_oid_text(&item->head, head);
    cx_buf_printf(out, "%.12s  ", head);
    cx_shown_add(out, item->path);
    if (item->branch.size != 0) {
        cx_buf_add_z(out, "  ");
        cx_shown_add(out, item->branch);
    }
    if (item->ours) {
        cx_buf_add_z(out, "  of run ");
        cx_shown_add(out, item->run_id);
    }
    cx_buf_add_z(out, item->prunable ? "  (gone)\n" : "\n");
}

static cx_status list_worktrees(cx_cli *cli, const cx_cli_args *args, cx_buf *out, cx_err *err)
{
    cx_cli_place place;
    cx_worktree_listed *items;
    size_t count = 0;
    bool json = cx_cli_has(args, "json");
    cx_json_list array = cx_json_list_begin(&cli->arena), root = cx_json_list_begin(&cli->arena);
    CX_TRY(cx_cli_place_open(cli, args, &place, err));
    cx_status status =
        cx_run_worktree_list(place.git, place.root, &cli->arena, &items, &count, err);
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        if (json)
            status = add_item(cli, &items[i], &array, err);
        else
            add_line(out, &items[i]);
    }
    if (!cx_failed(status) && json)
        cx_json_put_array(&root, "worktrees", &array);
    if (!cx_failed(status) && json)
        status = cx_cli_end_json(&root, out, err);
    cx_cli_place_close(&place);
    return status;
}

static int run_worktrees_list(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = list_worktrees(cli, args, &out, &err);
    int code = cx_failed(status)
                   ? cx_cli_fail(cli, args->command->name, &err, cx_cli_has(args, "json"))
                   : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

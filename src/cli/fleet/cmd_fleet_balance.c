/*
 * cmd_fleet_balance.c - `cortex fleet balance`: how parts are spread over nodes (fleet/balance.c).
 */
#include <inttypes.h>

#include "cli/fleet/fleet_args.h"
#include "cli/ledger/ledger.h"
#include "fleet/api.h"
#include "json/api.h"

#define SILENT_MS 5000 /* a node says every second that it is there */

typedef struct share {
    cx_str node;
    uint64_t could, has; /* parts that it has a process for; that it owns */
    bool draining;
} share;

typedef struct shares {
    cx_cli_fleet_job *job;
    CX_VEC(share) rows;
    bool enabled;
} shares;

static share *share_of(shares *s, cx_str node)
{
    for (size_t i = 0; i < s->rows.count; i++)
        if (cx_str_eq(s->rows.items[i].node, node))
            return &s->rows.items[i];
    return NULL;
}

static cx_status note_node(void *arg, const cx_fleet_node_row *row, cx_err *err)
{
    shares *s = arg;
    share *of = share_of(s, row->node);
    if (row->silent_ms > SILENT_MS)
        return CX_SUCCESS;
    if (of == NULL) {
        of = cx_vec_push(&s->rows, cx_alloc_default());
        if (of == NULL)
            return cx_fail_nomem(err);
        *of = (share){.node = cx_cli_fleet_kept(s->job, row->node)};
    }
    of->could++;
    of->draining = of->draining || row->draining;
    return of->node.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status note_part(void *arg, const cx_fleet_row *row, cx_err *err)
{
    shares *s = arg;
    size_t size = row->owner.size;
    (void)err;
    while (size != 0 && row->owner.data[size - 1] != '/')
        size--;
    share *of = size < 2 ? NULL : share_of(s, cx_str_from(row->owner.data, size - 1));
    if (of != NULL && row->lease_left_ms > 0)
        of->has++;
    return CX_SUCCESS;
}

/* --- the answer ------------------------------------------------------------------------------- */

void cx_cli_fleet_put_balance(cx_json_list *json, const cx_fleet_balance *balance)
{
    cx_json_list of = cx_json_list_begin(json->arena);
    cx_json_put_uint(&of, "after_ms", balance->after_ms);
    cx_json_put_bool(&of, "enabled", balance->enabled);
    cx_json_put_uint(&of, "failures", balance->failures);
    cx_json_put_maybe(&of, "from", balance->from);
    cx_json_put_uint(&of, "moves", balance->moves);
    cx_json_put_maybe(&of, "part", balance->part);
    cx_json_put_maybe(&of, "to", balance->to);
    cx_json_put_object(json, "balance", &of);
}

void cx_cli_fleet_add_balance(cx_buf *out, const cx_fleet_balance *balance)
{
    cx_buf_printf(out, "%s, after %" PRIu64 ".%" PRIu64 " s; %" PRIu64 " moved, %" PRIu64 " failed",
                  balance->enabled ? "on" : "off", balance->after_ms / 1000,
                  balance->after_ms / 100 % 10, balance->moves, balance->failures);
    if (balance->part.size == 0)
        return;
    cx_buf_add_z(out, "; ");
    cx_shown_add(out, balance->part);
    cx_buf_add_z(out, " goes from ");
    cx_shown_add(out, balance->from);
    cx_buf_add_z(out, " to ");
    cx_shown_add(out, balance->to);
}

static cx_status write_json(const shares *s, const cx_fleet_balance *balance, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(&s->job->cli->arena);
    cx_json_list nodes = cx_json_list_begin(&s->job->cli->arena);
    for (size_t i = 0; i < s->rows.count; i++) {
        const share *of = &s->rows.items[i];
        cx_json_list one = cx_json_list_begin(&s->job->cli->arena);
        cx_json_put_bool(&one, "draining", of->draining);
        cx_json_put_str(&one, "node", of->node);
        cx_json_put_uint(&one, "parts", of->has);
        cx_json_put_uint(&one, "processes", of->could);
        cx_json_add_object(&nodes, &one);
    }
    cx_cli_fleet_put_balance(&json, balance);
    cx_json_put_array(&json, "nodes", &nodes);
    return cx_cli_end_json(&json, &s->job->out, err);
}

static void write_text(const shares *s, const cx_fleet_balance *balance)
{
    cx_buf *out = &s->job->out;
    cx_buf_add_z(out, "spreading parts over nodes is ");
    cx_cli_fleet_add_balance(out, balance);
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; i < s->rows.count; i++) {
        const share *of = &s->rows.items[i];
        cx_buf_printf(out, "%6" PRIu64 " of %" PRIu64 " parts  ", of->has, of->could);
        cx_shown_add(out, of->node);
        cx_buf_add_z(out, of->draining ? "  drains\n" : "\n");
    }
}

static cx_status set_balance(cx_cli_fleet_job *job, cx_err *err)
{
    bool on = cx_cli_has(job->args, "on"), off = cx_cli_has(job->args, "off");
    uint64_t after_s = cx_cli_number(job->args, "after", 0);
    return on || off || after_s != 0
               ? cx_fleet_balance_set(job->fleet, on || off ? &on : NULL, after_s * 1000, err)
               : CX_SUCCESS;
}

static cx_status balance_work(cx_cli_fleet_job *job, cx_err *err)
{
    shares s = {.job = job};
    cx_fleet_balance balance;
    CX_TRY(set_balance(job, err));
    cx_status status = cx_fleet_balance_read(job->fleet, &job->cli->arena, &balance, err);
    if (!cx_failed(status))
        status = cx_fleet_list_nodes(job->fleet, note_node, &s, err);
    if (!cx_failed(status))
        status = cx_fleet_list(job->fleet, note_part, &s, err);
    if (!cx_failed(status) && job->json)
        status = write_json(&s, &balance, err);
    else if (!cx_failed(status))
        write_text(&s, &balance);
    cx_vec_done(&s.rows, cx_alloc_default());
    return status;
}

static int run_fleet_balance(cx_cli *cli, const cx_cli_args *args)
{
    bool on = cx_cli_has(args, "on"), off = cx_cli_has(args, "off");
    uint64_t after_s = cx_cli_number(args, "after", 1);
    if (on && off)
        return cx_cli_misuse(args, "expected either --on or --off");
    if (after_s == 0 || after_s > CX_FLEET_BALANCE_MS_MAX / 1000)
        return cx_cli_misuse(args, "option --after: expected 1 to 86400 seconds");
    return cx_cli_fleet_run(cli, args,
                            on || off || cx_cli_has(args, "after") ? CX_CLI_FLEET_WRITES
                                                                   : CX_CLI_FLEET_READS,
                            balance_work);
}

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("on", 0, "Spread parts over nodes; so it is from the beginning."),
    CX_CLI_OPT_FLAG("off", 0, "Leave each part where it is; a move that is on goes on."),
    CX_CLI_OPT("after", 0, CX_CLI_COUNT, "SECONDS",
               "A node is there, and a part at its owner, for so long before a part is moved; "
               "1 to 86400, at first 10."),
    CX_CLI_OPTION_DATABASE,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_balance = {
    .name = "fleet balance",
    .purpose = "show or set how parts are spread over nodes",
    .about =
        "Shows how many parts each node owns, of those that it has a process for, and whether a "
        "part is on its way. A node that has at least two more than another one hands parts over "
        "to it, one at a time, as when it is drained: requests are finished, or held until the "
        "other node serves the part. A node that died or lost a lease is given parts later, and "
        "moves that fail make the pause before the next one longer.\n\nTo set it needs the owner "
        "of the tables. 'cortex serve --keep-part' leaves one process out.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 set, or shown" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet balance --database postgresql://cortex@db1/cortex\n"
               "cortex fleet balance --off",
    .run = run_fleet_balance,
};

/*
 * cmd_fleet_nodes.c - `cortex fleet nodes` and `cortex fleet drain`: the processes that serve the
 * parts of a fleet (docs/fleet.md).
 */
#include <inttypes.h>

#include "cli/fleet/fleet_args.h"
#include "cli/fleet/part_home.h"
#include "cli/ledger/ledger.h"
#include "fleet/api.h"
#include "json/api.h"

#define SILENT_MS 5000 /* a node says every second that it is there */

typedef struct node_table {
    cx_cli_fleet_job *job;
    cx_json_list nodes;
} node_table;

/* --- fleet nodes ------------------------------------------------------------------------------ */

static const char *state_of(const cx_fleet_node_row *row)
{
    if (row->silent_ms > SILENT_MS)
        return "silent";
    return row->draining ? "drains" : "up";
}

static void put_connections(cx_json_list *json, const cx_fleet_node_row *row)
{
    const cx_fleet_counts *of = &row->counts;
    cx_json_list counts = cx_json_list_begin(json->arena);
    if (!row->has_counts) {
        cx_json_put_null(json, "connections");
        return;
    }
    cx_json_put_uint(&counts, "accepted", of->accepted);
    cx_json_put_uint(&counts, "given_up", of->given_up);
    cx_json_put_uint(&counts, "held", of->held);
    cx_json_put_uint(&counts, "other",
                     of->open > of->held + of->own ? of->open - of->held - of->own : 0);
    cx_json_put_uint(&counts, "own", of->own);
    cx_json_put_uint(&counts, "refused", of->refused);
    cx_json_put_object(json, "connections", &counts);
}

static void put_node(node_table *table, const cx_fleet_node_row *row)
{
    const cx_cli_fleet_job *job = table->job;
    cx_json_list json = cx_json_list_begin(&job->cli->arena);
    cx_json_put_str(&json, "address", cx_cli_fleet_kept(job, row->address));
    put_connections(&json, row);
    cx_json_put_bool(&json, "draining", row->draining);
    cx_json_put_str(&json, "node", cx_cli_fleet_kept(job, row->node));
    cx_json_put_str(&json, "part", cx_cli_fleet_kept(job, row->part));
    cx_json_put_str(&json, "process", cx_cli_fleet_kept(job, row->owner));
    cx_json_put_int(&json, "silent_ms", row->silent_ms);
    cx_json_put_z(&json, "state", state_of(row));
    cx_json_put_int(&json, "up_ms", row->up_ms);
    cx_json_put_str(&json, "version", cx_cli_fleet_kept(job, row->version));
    cx_json_add_object(&table->nodes, &json);
}

/* A column of text from the database. */
static void add_column(cx_buf *out, cx_str text, size_t width)
{
    size_t start = out->size;
    cx_shown_add(out, text);
    do {
        cx_buf_add_byte(out, ' ');
    } while (out->size - start <= width && !out->failed);
}

static cx_status add_node(void *arg, const cx_fleet_node_row *row, cx_err *err)
{
    node_table *table = arg;
    cx_cli_fleet_job *job = table->job;
    (void)err;
    if (job->json) {
        put_node(table, row);
        return CX_SUCCESS;
    }
    add_column(&job->out, row->node, 20);
    add_column(&job->out, row->part, 16);
    add_column(&job->out, row->address, 21);
    cx_buf_printf(&job->out, "%-7s %8" PRId64 " s  ", state_of(row), row->silent_ms / 1000);
    if (row->has_counts)
        cx_buf_printf(&job->out, "%11" PRIu64 "  ", row->counts.open);
    else
        cx_buf_printf(&job->out, "%11s  ", "-");
    cx_shown_add(&job->out, row->version);
    cx_buf_add_byte(&job->out, '\n');
    return CX_SUCCESS;
}

static cx_status list_work(cx_cli_fleet_job *job, cx_err *err)
{
    node_table table = {.job = job, .nodes = cx_json_list_begin(&job->cli->arena)};
    if (!job->json)
        cx_buf_add_z(&job->out, "node                 part             address               state "
                                " last heard  connections  version\n");
    CX_TRY(cx_fleet_list_nodes(job->fleet, add_node, &table, err));
    if (!job->json)
        return CX_SUCCESS;
    cx_json_list json = cx_json_list_begin(&job->cli->arena);
    cx_json_put_array(&json, "nodes", &table.nodes);
    return cx_cli_end_json(&json, &job->out, err);
}

static int run_fleet_nodes(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_READS, list_work);
}

static const cx_cli_option nodes_options[] = {CX_CLI_OPTION_DATABASE, CX_CLI_OPTION_JSON,
                                              CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_nodes = {
    .name = "fleet nodes",
    .purpose = "list the nodes of a fleet",
    .about =
        "Shows each process of 'cortex serve --fleet', as it said last: its node, the part it "
        "serves or hands connections on for, where clients connect, whether it drains, and how "
        "many "
        "connections are at its address, whether it serves them itself or not. "
        "A node says every second that it is there; one that was killed is silent. 'cortex "
        "fleet parts' shows which of them owns a part. The page of any node shows both under Nodes "
        "(#/nodes), renewed while it is open.",
    .options = nodes_options,
    .option_count = CX_COUNT_OF(nodes_options),
    .exits = "0 answered" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet nodes --database postgresql://cortex@db1/cortex",
    .run = run_fleet_nodes,
};

/* --- fleet drain ------------------------------------------------------------------------------ */

static cx_status drain_work(cx_cli_fleet_job *job, cx_err *err)
{
    uint64_t count = 0;
    cx_str node = cx_str_z(job->args->operands[0]);
    bool drain = !cx_cli_has(job->args, "undo");
    CX_TRY(cx_fleet_drain(job->fleet, node, drain, &count, err));
    if (count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoNode", CX_NO_OFFSET,
                          "no node '%.*s' has registered; 'cortex fleet nodes' lists them",
                          (int)node.size, node.data);
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_bool(&json, "draining", drain);
        cx_json_put_str(&json, "node", node);
        cx_json_put_uint(&json, "processes", count);
        return cx_cli_end_json(&json, &job->out, err);
    }
    cx_buf_add_z(&job->out, "told the node ");
    cx_shown_add(&job->out, node);
    cx_buf_add_z(&job->out, drain ? " to give its part back, and to take none\n"
                                  : " that it may take its part again\n");
    return CX_SUCCESS;
}

static int run_fleet_drain(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_WRITES, drain_work);
}

static const cx_cli_operand drain_operands[] = {{"NODE", CX_CLI_TEXT, NULL, false, false}};
static const cx_cli_option drain_options[] = {
    CX_CLI_OPTION_DATABASE, CX_CLI_OPT_FLAG("undo", 0, "The node may take its part again."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_drain = {
    .name = "fleet drain",
    .purpose = "make a node give its part back, before it is stopped or upgraded",
    .about =
        "Tells the node of that name, within a second, to finish its requests, to give its part "
        "back, and to take none until --undo. It goes on handing connections on to the node "
        "that takes over, and a new process of its name is told the same.",
    .operands = drain_operands,
    .operand_count = CX_COUNT_OF(drain_operands),
    .options = drain_options,
    .option_count = CX_COUNT_OF(drain_options),
    .exits = "0 told\n2 usage error, or no such node\n3 could not be done: the database is away, "
             "refuses the user, or has no fleet",
    .example = "cortex fleet drain node-1 --database postgresql://cortex@db1/cortex\n"
               "cortex fleet drain node-1 --undo",
    .run = run_fleet_drain,
};

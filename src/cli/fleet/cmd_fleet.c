/*
 * cmd_fleet.c - `cortex fleet`: data directories in PostgreSQL, as an operator makes them, looks at
 * them, and moves them (docs/fleet.md).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fleet/fleet_args.h"
#include "cli/fleet/part_home.h"
#include "cli/ledger/ledger.h"
#include "fleet/api.h"
#include "json/api.h"

#define OPTION_PART \
    CX_CLI_OPT("part", 0, CX_CLI_TEXT, "NAME", "The part, which is a data directory; default main.")

typedef cx_cli_fleet_job fleet_job;

/* --- a part and its files --------------------------------------------------------------------- */

static cx_str part_name(const fleet_job *job)
{
    const char *name = cx_cli_value(job->args, "part");
    return name == NULL ? CX_STR(CX_FLEET_MAIN) : cx_str_z(name);
}

/* Opens the files of a part; *out_path is its data directory. */
static cx_status open_part(const fleet_job *job, cx_str part, const char **out_path, cx_err *err)
{
    cx_str home = cx_arena_printf(&job->cli->arena, "%s#%.*s", job->url, (int)part.size, part.data);
    cx_fleet_files_options options = {.node = "cortex-fleet"};
    if (home.data == NULL)
        return cx_fail_nomem(err);
    return cx_cli_part_open_with(job->cli, home.data, &options, out_path, err);
}

/* An empty data directory in a part that has none. */
static cx_status make_home(const fleet_job *job, cx_str part, bool *out_made, cx_err *err)
{
    const char *path;
    CX_TRY(open_part(job, part, &path, err));
    cx_home_options options = cx_cli_home_options(job->cli, CX_CLI_WRITE, NULL);
    options.segment_bytes = CX_CLI_SEGMENT_SIZE;
    cx_status status = cx_home_create(path, CX_SCHEME_CORTEX_1, &options, err);
    *out_made = !cx_failed(status);
    if (status.code == CX_E_EXISTS)
        status = CX_SUCCESS;
    cx_cli_part_close(job->cli);
    return status;
}

/* --- fleet init, fleet add -------------------------------------------------------------------- */

static cx_status init_work(fleet_job *job, cx_err *err)
{
    uint64_t applied = 0;
    bool strict = !cx_cli_has(job->args, "no-standby"), made = false;
    CX_TRY(cx_fleet_init(job->url, strict, NULL, &applied, err));
    CX_TRY(make_home(job, CX_STR(CX_FLEET_MAIN), &made, err));
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_bool(&json, "made", made);
        cx_json_put_uint(&json, "migrations_run", applied);
        cx_json_put_z(&json, "part", CX_FLEET_MAIN);
        cx_json_put_bool(&json, "strict", strict);
        return cx_cli_end_json(&json, &job->out, err);
    }
    if (applied == 0)
        cx_buf_add_z(&job->out, "the tables are there and up to date\n");
    else
        cx_buf_printf(&job->out, "ran %" PRIu64 " migrations\n", applied);
    if (made)
        cx_buf_add_z(&job->out, "made an empty data directory in the part main\n");
    cx_buf_add_z(&job->out, strict ? "strict: a commit is acknowledged when a standby has it\n"
                                   : "not strict: a commit is acknowledged by one server alone\n");
    return CX_SUCCESS;
}

int cx_cli_init_fleet(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_URL, init_work);
}

static int run_fleet_init(cx_cli *cli, const cx_cli_args *args)
{
    if (!cx_cli_has(args, "print-sql"))
        return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_URL, init_work);
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_str sql;
    for (uint64_t i = 1; cx_fleet_sql(i, &sql); i++) {
        cx_buf_add_str(&out, sql);
        cx_buf_add_byte(&out, '\n');
    }
    cx_buf_add_str(&out, cx_fleet_roles_sql());
    int code = cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_option init_options[] = {
    CX_CLI_OPTION_DATABASE,
    CX_CLI_OPT_FLAG("no-standby", 0,
                    "Acknowledge what one server has written. What it loses is lost; by default a "
                    "synchronous standby is waited for."),
    CX_CLI_OPT_FLAG("print-sql", 0,
                    "Print the SQL of tables and roles, and do nothing: for a DBA to read."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_init = {
    .name = "fleet init",
    .purpose = "make the tables of a fleet in PostgreSQL, and an empty data directory",
    .about = "Makes the schema cortex_fleet, or brings its tables up to date: migrations are "
             "numbered and "
             "run forwards, each once. Then makes an empty data directory in the part main, unless "
             "it has "
             "one. Needs a user that may create a schema; nodes need less, see the roles that "
             "--print-sql shows.",
    .options = init_options,
    .option_count = CX_COUNT_OF(init_options),
    .exits = "0 the tables are there\n1 the database has another fleet" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet init --database postgresql://cortex@db1/cortex\n"
               "cortex fleet init --print-sql",
    .run = run_fleet_init,
};

static cx_status add_work(fleet_job *job, cx_err *err)
{
    cx_str name = cx_str_z(job->args->operands[0]);
    unsigned number;
    bool made;
    CX_TRY(cx_fleet_add(job->fleet, name, &number, err));
    CX_TRY(make_home(job, name, &made, err));
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_str(&json, "name", name);
        cx_json_put_uint(&json, "part", number);
        return cx_cli_end_json(&json, &job->out, err);
    }
    cx_buf_printf(&job->out, "made the part %.*s with an empty data directory\n", (int)name.size,
                  name.data);
    return CX_SUCCESS;
}

static int run_fleet_add(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_WRITES, add_work);
}

static const cx_cli_operand name_operands[] = {{"NAME", CX_CLI_TEXT, NULL, false, false}};
static const cx_cli_option plain_options[] = {CX_CLI_OPTION_DATABASE, CX_CLI_OPTION_JSON,
                                              CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_add = {
    .name = "fleet add",
    .purpose = "make a data directory of its own in a fleet, as for a tenant",
    .about =
        "Makes the part NAME with an empty data directory. It has its own tokens, keys, settings, "
        "checkpoints and retention, and shares nothing with the other parts but the database. "
        "Nodes serve it with 'cortex serve --fleet URL#NAME'.",
    .operands = name_operands,
    .operand_count = CX_COUNT_OF(name_operands),
    .options = plain_options,
    .option_count = CX_COUNT_OF(plain_options),
    .exits = "0 made\n1 there is a part of that name" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet add team-b --database postgresql://cortex@db1/cortex",
    .run = run_fleet_add,
};

/* --- fleet parts ------------------------------------------------------------------------------ */

typedef struct part_list {
    fleet_job *job;
    cx_json_list json;
    uint64_t count, owned, served, stopped, commits, bytes;
} part_list;

static void count_row(part_list *l, const cx_fleet_row *row)
{
    bool on = row->owner.size != 0 && row->lease_left_ms > 0;
    l->count++;
    l->owned += on;
    l->served += on && row->address.size != 0;
    l->stopped += row->stopped;
    l->commits += row->next;
    l->bytes += row->bytes;
}

static void put_part(part_list *l, const cx_fleet_row *row)
{
    cx_json_list json = cx_json_list_begin(&l->job->cli->arena);
    cx_json_put_maybe(&json, "address", cx_cli_fleet_kept(l->job, row->address));
    cx_json_put_uint(&json, "base", row->base);
    cx_json_put_uint(&json, "bytes_written", row->bytes);
    cx_json_put_uint(&json, "commits", row->next);
    cx_json_put_uint(&json, "epoch", row->epoch);
    cx_json_put_uint(&json, "files", row->files);
    cx_json_put_maybe(&json, "going_to", cx_cli_fleet_kept(l->job, row->going_to));
    cx_json_put_uint(&json, "handed", row->handed);
    cx_json_put_digest(&json, "head", &row->head);
    cx_json_put_hex(&json, "id", cx_bytes_from(row->id, sizeof row->id));
    cx_json_put_int(&json, "lease_left_ms", row->lease_left_ms);
    cx_json_put_maybe(&json, "moved_to", cx_cli_fleet_kept(l->job, row->moved_to));
    cx_json_put_str(&json, "name", cx_cli_fleet_kept(l->job, row->name));
    cx_json_put_maybe(&json, "owner", cx_cli_fleet_kept(l->job, row->owner));
    cx_json_put_uint(&json, "part", row->number);
    cx_cli_fleet_put_quota(&json, row->quota, row->stored);
    cx_json_put_bool(&json, "stopped", row->stopped);
    cx_json_add_object(&l->json, &json);
}

/* How much of its quota the log of a part has. */
static void add_quota(cx_buf *out, const cx_fleet_row *row)
{
    char text[24] = "-";
    if (row->quota != 0)
        (void)snprintf(text, sizeof text, "%.0f%%",
                       100.0 * (double)row->stored / (double)row->quota);
    cx_buf_printf(out, "%6s  ", text);
}

static cx_status add_part(void *arg, const cx_fleet_row *row, cx_err *err)
{
    part_list *l = arg;
    cx_buf *out = &l->job->out;
    (void)err;
    count_row(l, row);
    if (l->job->json) {
        put_part(l, row);
        return CX_SUCCESS;
    }
    cx_buf_printf(out, "%-20.*s %8" PRIu64 " %10" PRIu64 " %14" PRIu64 "  ", (int)row->name.size,
                  row->name.data, row->epoch, row->next, row->bytes);
    add_quota(out, row);
    if (row->moved_to.size != 0) {
        cx_buf_add_z(out, "moved to ");
        cx_shown_add(out, row->moved_to);
    } else if (row->stopped) {
        cx_buf_add_z(out, "stopped");
    } else if (row->owner.size != 0 && row->lease_left_ms > 0) {
        cx_shown_add(out, row->owner);
        cx_buf_add_z(out, row->address.size == 0 ? "" : " at ");
        cx_shown_add(out, row->address);
        cx_buf_add_z(out, row->going_to.size == 0 ? "" : ", goes to ");
        cx_shown_add(out, row->going_to);
    } else {
        cx_buf_add_z(out, "free");
    }
    cx_buf_add_byte(out, '\n');
    return CX_SUCCESS;
}

static cx_status parts_work(fleet_job *job, cx_err *err)
{
    part_list l = {.job = job, .json = cx_json_list_begin(&job->cli->arena)};
    if (!job->json)
        cx_buf_add_z(&job->out,
                     "part                    epoch    commits  bytes written   quota  owner\n");
    CX_TRY(cx_fleet_list(job->fleet, add_part, &l, err));
    if (!job->json)
        return CX_SUCCESS;
    cx_json_list json = cx_json_list_begin(&job->cli->arena);
    cx_json_put_array(&json, "parts", &l.json);
    return cx_cli_end_json(&json, &job->out, err);
}

static int run_fleet_parts(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_READS, parts_work);
}

const cx_cli_command cx_cli_fleet_parts = {
    .name = "fleet parts",
    .purpose = "list the parts of a fleet and their owners",
    .about =
        "Shows each part, which is a data directory, with its epoch, which grows whenever a "
        "process takes it, what was written, how much of its quota its log has, and the process "
        "that owns it.",
    .options = plain_options,
    .option_count = CX_COUNT_OF(plain_options),
    .exits = "0 answered" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet parts --database postgresql://cortex@db1/cortex",
    .run = run_fleet_parts,
};

typedef struct object_count {
    fleet_job *job;
    CX_VEC(unsigned) parts;
    uint64_t with_objects;
} object_count;

static cx_status keep_number(void *arg, const cx_fleet_row *row, cx_err *err)
{
    object_count *c = arg;
    unsigned *made = cx_vec_push(&c->parts, cx_alloc_default());
    if (made == NULL)
        return cx_fail_nomem(err);
    *made = row->number;
    return CX_SUCCESS;
}

/* The connection is one: what a part has is asked after the list of parts. */
static cx_status count_objects(object_count *c, cx_err *err)
{
    cx_status status = cx_fleet_list(c->job->fleet, keep_number, c, err);
    for (size_t i = 0; i < c->parts.count && !cx_failed(status); i++) {
        const char *bucket = NULL;
        status = cx_cli_fleet_objects(c->job, c->parts.items[i], &bucket, err);
        c->with_objects += bucket != NULL;
    }
    cx_vec_done(&c->parts, cx_alloc_default());
    return status;
}

/* --- fleet status ----------------------------------------------------------------------------- */

static cx_status count_part(void *arg, const cx_fleet_row *row, cx_err *err)
{
    (void)err;
    count_row(arg, row);
    return CX_SUCCESS;
}

static cx_status put_status(const fleet_job *job, const part_list *l, const cx_fleet_server *server,
                            const cx_fleet_balance *balance, uint64_t with_objects,
                            const uint8_t id[16], cx_buf *out, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(&job->cli->arena);
    cx_cli_fleet_put_balance(&json, balance);
    cx_json_put_uint(&json, "bytes_written", l->bytes);
    cx_json_put_uint(&json, "commits", l->commits);
    cx_json_put_hex(&json, "id", cx_bytes_from(id, 16));
    cx_json_put_uint(&json, "migrations", server->migrations);
    cx_json_put_uint(&json, "parts", l->count);
    cx_json_put_uint(&json, "parts_owned", l->owned);
    cx_json_put_uint(&json, "parts_served", l->served);
    cx_json_put_uint(&json, "parts_stopped", l->stopped);
    cx_json_put_uint(&json, "parts_with_objects", with_objects);
    cx_json_put_bool(&json, "read_only", server->read_only);
    cx_json_put_str(&json, "server_version", cx_cli_fleet_kept(job, cx_str_z(server->version)));
    cx_json_put_bool(&json, "standby_named", server->standby_named);
    cx_json_put_bool(&json, "strict", cx_fleet_is_strict(job->fleet));
    return cx_cli_end_json(&json, out, err);
}

static cx_status status_work(fleet_job *job, cx_err *err)
{
    part_list l = {.job = job};
    object_count objects = {.job = job};
    cx_fleet_server server;
    cx_fleet_balance balance;
    uint8_t id[16];
    CX_TRY(cx_fleet_list(job->fleet, count_part, &l, err));
    CX_TRY(cx_fleet_server_of(job->fleet, &server, err));
    CX_TRY(cx_fleet_balance_read(job->fleet, &job->cli->arena, &balance, err));
    CX_TRY(count_objects(&objects, err));
    cx_fleet_id(job->fleet, id);
    if (job->json)
        return put_status(job, &l, &server, &balance, objects.with_objects, id, &job->out, err);
    cx_buf_add_z(&job->out, "fleet    ");
    cx_hex_add(&job->out, cx_bytes_from(id, sizeof id));
    cx_buf_printf(&job->out, "%s\nserver   PostgreSQL ",
                  cx_fleet_is_strict(job->fleet) ? ", strict" : ", not strict");
    cx_shown_add(&job->out, cx_str_z(server.version));
    cx_buf_printf(&job->out,
                  "%s%s\nparts    %" PRIu64 ", %" PRIu64 " owned, %" PRIu64 " served, %" PRIu64
                  " stopped\nwritten  %" PRIu64 " commits, %" PRIu64 " bytes\n",
                  server.read_only ? ", a standby" : "",
                  server.standby_named ? ", waits for a standby" : "", l.count, l.owned, l.served,
                  l.stopped, l.commits, l.bytes);
    cx_buf_add_z(&job->out, "spread   ");
    cx_cli_fleet_add_balance(&job->out, &balance);
    cx_buf_add_byte(&job->out, '\n');
    if (objects.with_objects != 0)
        cx_buf_printf(&job->out,
                      "bundles  of %" PRIu64 " parts are put into an object store: back that up, "
                      "too, the database has hashes and keys only\n",
                      objects.with_objects);
    return CX_SUCCESS;
}

static int run_fleet_status(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_READS, status_work);
}

const cx_cli_command cx_cli_fleet_status = {
    .name = "fleet status",
    .purpose = "show what a fleet contains, and how its server is set",
    .about = "Shows the fleet's id, whether commits wait for a standby, and how many parts are "
             "owned by a process, served, or stopped, and how they are spread over nodes.",
    .options = plain_options,
    .option_count = CX_COUNT_OF(plain_options),
    .exits = "0 answered" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet status --database postgresql://cortex@db1/cortex",
    .run = run_fleet_status,
};

/* --- fleet doctor ----------------------------------------------------------------------------- */

typedef struct examined_part {
    unsigned number;
    bool used, stopped;
    cx_str name;
} examined_part;

typedef struct examination {
    fleet_job *job;
    cx_json_list checks;
    CX_VEC(examined_part) parts;
    cx_fleet_chain total;
} examination;

/* One line: ok, warn or fail; a failure is exit code 1. */
static void note(examination *e, const char *state, const char *name, cx_str detail)
{
    if (strcmp(state, "fail") == 0)
        e->job->code = CX_EXIT_BROKEN;
    if (!e->job->json) {
        cx_buf_printf(&e->job->out, "%-5s %-8s ", state, name);
        cx_shown_add(&e->job->out, detail);
        cx_buf_add_byte(&e->job->out, '\n');
        return;
    }
    cx_json_list json = cx_json_list_begin(&e->job->cli->arena);
    cx_json_put_str(&json, "detail", cx_cli_fleet_kept(e->job, detail));
    cx_json_put_str(&json, "name", cx_cli_fleet_kept(e->job, cx_str_z(name)));
    cx_json_put_z(&json, "status", state);
    cx_json_add_object(&e->checks, &json);
}

static cx_status mark_part(void *arg, const cx_fleet_row *row, cx_err *err)
{
    examination *e = arg;
    examined_part *part = cx_vec_push(&e->parts, cx_alloc_default());
    if (part == NULL)
        return cx_fail_nomem(err);
    *part = (examined_part){row->number, row->next != 0, row->stopped,
                            cx_cli_fleet_kept(e->job, row->name)};
    return part->name.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static void note_server(examination *e, const cx_fleet_server *server)
{
    bool strict = cx_fleet_is_strict(e->job->fleet);
    if (server->migrations == server->migrations_known)
        note(e, "ok", "tables", CX_STR("up to date"));
    else
        note(e, "fail", "tables",
             CX_STR("not those of this program; the later program of both runs 'fleet init'"));
    if (strict && !(server->standby_named && server->commit_waits))
        note(e, "fail", "standby",
             CX_STR("the fleet is strict, and the server waits for no standby: set "
                    "synchronous_standby_names, and synchronous_commit to on or remote_apply"));
    else if (strict)
        note(e, "ok", "standby", CX_STR("commits wait for a synchronous standby"));
    else
        note(e, "warn", "standby",
             CX_STR("the fleet is not strict: what a failed primary alone had is lost"));
    if (server->read_only)
        note(e, "fail", "primary",
             CX_STR("this server is a standby; name all hosts and "
                    "target_session_attrs=read-write"));
    if (server->long_transactions != 0)
        note(e, "warn", "vacuum",
             CX_STR("transactions are open for more than a minute: rows that were erased stay in "
                    "the files as long"));
}

static cx_status note_objects(examination *e, const examined_part *part, cx_err *err)
{
    const char *bucket = NULL;
    CX_TRY(cx_cli_fleet_objects(e->job, part->number, &bucket, err));
    if (bucket == NULL)
        return CX_SUCCESS;
    cx_str text = cx_arena_printf(&e->job->cli->arena,
                                  "part %.*s: bundles are put into the bucket %s: back it up, too, "
                                  "the database has hashes and keys only",
                                  (int)part->name.size, part->name.data, bucket);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    note(e, "ok", "bundles", text);
    return CX_SUCCESS;
}

static cx_status examine_part(examination *e, const examined_part *part, cx_err *err)
{
    cx_err why = {0};
    cx_fleet_chain chain;
    cx_str name =
        cx_arena_printf(&e->job->cli->arena, "part %.*s", (int)part->name.size, part->name.data);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    if (part->stopped)
        note(e, "fail", name.data,
             CX_STR("stopped: a node found that the database was restored or changed; "
                    "--accept takes the state as it is"));
    CX_TRY(note_objects(e, part, err));
    if (!part->used || !cx_cli_has(e->job->args, "chains"))
        return CX_SUCCESS;
    cx_status status = cx_fleet_check(e->job->fleet, part->number, &chain, &why);
    if (cx_failed(status) && status.code != CX_E_FORMAT) {
        *err = why;
        return status;
    }
    e->total.commits += chain.commits;
    e->total.recomputed += chain.recomputed;
    if (cx_failed(status))
        note(e, "fail", name.data, cx_str_z(why.message));
    return CX_SUCCESS;
}

static cx_status accept_part(const fleet_job *job, cx_err *err)
{
    const char *name = cx_cli_value(job->args, "accept");
    cx_fleet_part part;
    if (name == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_fleet_find(job->fleet, cx_str_z(name), &part, err));
    return cx_fleet_accept(job->fleet, part.number, err);
}

static cx_status examine(examination *e, cx_err *err)
{
    fleet_job *job = e->job;
    cx_fleet_server server;
    CX_TRY(accept_part(job, err));
    CX_TRY(cx_fleet_server_of(job->fleet, &server, err));
    note_server(e, &server);
    CX_TRY(cx_fleet_list(job->fleet, mark_part, e, err));
    for (size_t i = 0; i < e->parts.count; i++)
        CX_TRY(examine_part(e, &e->parts.items[i], err));
    if (cx_cli_has(job->args, "chains") && job->code == CX_EXIT_HOLDS) {
        cx_str text =
            cx_arena_printf(&job->cli->arena,
                            "%zu parts, %" PRIu64 " commits: every link recomputed, and from "
                            "their bytes %" PRIu64,
                            e->parts.count, e->total.commits, e->total.recomputed);
        note(e, "ok", "chains", text);
    }
    return CX_SUCCESS;
}

static cx_status doctor_work(fleet_job *job, cx_err *err)
{
    examination e = {.job = job, .checks = cx_json_list_begin(&job->cli->arena)};
    cx_status status = examine(&e, err);
    cx_vec_done(&e.parts, cx_alloc_default());
    CX_TRY(status);
    if (!job->json)
        return CX_SUCCESS;
    cx_json_list json = cx_json_list_begin(&job->cli->arena);
    cx_json_put_array(&json, "checks", &e.checks);
    cx_json_put_bool(&json, "ok", job->code == CX_EXIT_HOLDS);
    return cx_cli_end_json(&json, &job->out, err);
}

static int run_fleet_doctor(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args,
                            cx_cli_has(args, "accept") ? CX_CLI_FLEET_WRITES : CX_CLI_FLEET_READS,
                            doctor_work);
}

static const cx_cli_option doctor_options[] = {
    CX_CLI_OPTION_DATABASE,
    CX_CLI_OPT_FLAG("chains", 0, "Read every commit of every part and recompute all hashes."),
    CX_CLI_OPT("accept", 0, CX_CLI_TEXT, "PART",
               "Take the state of a stopped part as it is: nodes may write it again. What was lost "
               "stays lost; compare with a checkpoint or a backup before."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_doctor = {
    .name = "fleet doctor",
    .purpose = "check the database of a fleet and say how to fix what is wrong",
    .about = "Checks the tables, whether commits wait for a standby as they should, and whether "
             "parts are stopped. With --chains every hash is recomputed from the bytes. What the "
             "files of a part mean is checked by 'cortex verify --home URL#PART'.",
    .options = doctor_options,
    .option_count = CX_COUNT_OF(doctor_options),
    .exits = "0 all is well\n1 something is wrong: see the lines with fail" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet doctor --chains --database postgresql://cortex@db1/cortex",
    .run = run_fleet_doctor,
};

/* --- fleet import, fleet export --------------------------------------------------------------- */

static cx_status write_copied(fleet_job *job, const char *verb, cx_str part, const char *folder,
                              uint64_t commits, cx_err *err)
{
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_uint(&json, "commits", commits);
        cx_json_put_str(&json, "folder", cx_str_z(folder));
        cx_json_put_str(&json, "part", part);
        return cx_cli_end_json(&json, &job->out, err);
    }
    cx_buf_printf(&job->out, "%s %" PRIu64 " commits of the log: ", verb, commits);
    cx_shown_add(&job->out, cx_str_z(folder));
    cx_buf_printf(&job->out, ", part %.*s\n", (int)part.size, part.data);
    return CX_SUCCESS;
}

typedef cx_status copy_home(cx_home *home, const char *to, cx_err *err);

static cx_status backup_home(const fleet_job *job, copy_home *copy, const char *from,
                             const char *to, uint64_t *out_commits, cx_err *err)
{
    cx_home_options options = cx_cli_home_options(job->cli, CX_CLI_READ, NULL);
    cx_home *home;
    options.or_remote = false;
    CX_TRY(cx_home_open(from, &options, &home, err));
    *out_commits = cx_home_durable(home);
    cx_status status = copy(home, to, err), closed = cx_home_close(home, NULL);
    (void)closed;
    return status;
}

/* Whether the part has a data directory in which nothing was recorded, as init makes it. */
static cx_status is_unused(const fleet_job *job, cx_str part, bool *out, cx_err *err)
{
    cx_home_options options = cx_cli_home_options(job->cli, CX_CLI_READ, NULL);
    const char *path;
    cx_home *home = NULL;
    *out = false;
    CX_TRY(open_part(job, part, &path, err));
    cx_status status = cx_home_open(path, &options, &home, err);
    if (!cx_failed(status)) {
        *out = cx_home_durable(home) <= 1; /* its scheme */
        status = cx_home_close(home, err);
    } else if (status.code == CX_E_NOT_FOUND) {
        status = CX_SUCCESS;
    }
    cx_cli_part_close(job->cli);
    return status;
}

static cx_status import_work(fleet_job *job, cx_err *err)
{
    const char *path, *from = job->args->operands[0];
    cx_str part = part_name(job);
    cx_fleet_part found;
    unsigned number;
    uint64_t commits = 0;
    bool unused = false, taken = false;
    cx_status status = cx_fleet_find(job->fleet, part, &found, err);
    if (status.code == CX_E_NOT_FOUND)
        status = cx_fleet_add(job->fleet, part, &number, err);
    CX_TRY(status);
    CX_TRY(cx_fleet_find(job->fleet, part, &found, err));
    CX_TRY(is_unused(job, part, &unused, err));
    if (unused) {
        CX_TRY(cx_fleet_take(job->fleet, &found, &taken, err));
        if (taken)
            CX_TRY(cx_fleet_clear(job->fleet, &found, err));
    }
    CX_TRY(open_part(job, part, &path, err));
    status = backup_home(job, cx_home_copy_into, from, path, &commits, err);
    cx_cli_part_close(job->cli);
    if (status.code == CX_E_EXISTS)
        return cx_fail_at(err, CX_E_EXISTS, "PartNotEmpty", CX_NO_OFFSET,
                          "the part %.*s has a data directory; name a new one with --part",
                          (int)part.size, part.data);
    CX_TRY(status);
    return write_copied(job, "imported", part, from, commits, err);
}

static int run_fleet_import(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_WRITES, import_work);
}

static const cx_cli_operand folder_operands[] = {{"DIR", CX_CLI_FILE, NULL, false, false}};
static const cx_cli_option part_options[] = {CX_CLI_OPTION_DATABASE, OPTION_PART,
                                             CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_import = {
    .name = "fleet import",
    .purpose = "copy a data directory into a part of a fleet",
    .about =
        "Copies the data directory DIR into the new part NAME: the log byte for byte, so that "
        "roots, proofs and checkpoints stay the same, the settings, and the checkpoints signed "
        "last. As 'cortex backup', it does not stop writers, and leaves out tokens, private "
        "keys, tables and indexes; the last two are made when the part is first opened for "
        "writing. An import that was interrupted leaves a part without a data directory; it "
        "can be repeated.",
    .operands = folder_operands,
    .operand_count = CX_COUNT_OF(folder_operands),
    .options = part_options,
    .option_count = CX_COUNT_OF(part_options),
    .exits = "0 done and durable\n1 the part has a data directory" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet import ~/.local/share/cortex --part team-b "
               "--database postgresql://cortex@db1/cortex",
    .run = run_fleet_import,
};

static cx_status export_work(fleet_job *job, cx_err *err)
{
    const char *path, *to = job->args->operands[0];
    cx_str part = part_name(job);
    uint64_t commits = 0;
    CX_TRY(cx_cli_outside_homes(job->cli->io, to, err));
    CX_TRY(open_part(job, part, &path, err));
    cx_status status = backup_home(job, cx_home_backup, path, to, &commits, err);
    cx_cli_part_close(job->cli);
    if (status.code == CX_E_EXISTS)
        return cx_fail(err, CX_E_EXISTS, "%s exists; expected a folder that does not exist", to);
    CX_TRY(status);
    return write_copied(job, "exported", part, to, commits, err);
}

static int run_fleet_export(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_URL, export_work);
}

const cx_cli_command cx_cli_fleet_export = {
    .name = "fleet export",
    .purpose = "copy a part of a fleet into a new data directory",
    .about =
        "Makes the data directory DIR of one state of the part: the log has the same bytes, so "
        "'cortex verify --home' and proofs say the same. The same as 'cortex backup DIR --home "
        "URL#NAME'. Who owns the part goes on writing.",
    .operands = folder_operands,
    .operand_count = CX_COUNT_OF(folder_operands),
    .options = part_options,
    .option_count = CX_COUNT_OF(part_options),
    .exits = "0 done and durable\n1 DIR exists, or the log is damaged" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet export /srv/team-b --part team-b "
               "--database postgresql://cortex@db1/cortex",
    .run = run_fleet_export,
};

/* --- fleet move ------------------------------------------------------------------------------- */

typedef struct moving {
    fleet_job *job;
    cx_str name;
    cx_fleet *to;
    cx_fleet_part from_part, to_part;
    cx_fleet_copied copied;
} moving;

static cx_status copy_and_switch(moving *m, cx_err *err)
{
    const char *where = cx_cli_value(m->job->args, "to");
    unsigned number;
    cx_status status = cx_fleet_find(m->to, m->name, &m->to_part, err);
    if (status.code == CX_E_NOT_FOUND) {
        CX_TRY(cx_fleet_add(m->to, m->name, &number, err));
        status = cx_fleet_find(m->to, m->name, &m->to_part, err);
    }
    CX_TRY(status);
    CX_TRY(cx_cli_fleet_take(m->to, &m->to_part, m->name, err));
    CX_TRY(cx_fleet_copy(m->job->fleet, m->from_part.number, m->to, &m->to_part, &m->copied, err));
    /* From here on it cannot be taken at the old place.  Before, it can be at neither. */
    CX_TRY(cx_fleet_renew(m->to, &m->to_part, err));
    CX_TRY(cx_fleet_moved(m->job->fleet, &m->from_part, where, err));
    return cx_fleet_give_back(m->to, &m->to_part, err);
}

static cx_status move_work(fleet_job *job, cx_err *err)
{
    moving m = {.job = job, .name = cx_str_z(job->args->operands[0])};
    const char *where = cx_cli_value(job->args, "to");
    /* The leases must outlast the copy; F1 stands against the rest. */
    const cx_fleet_options options = {.node = "cortex-fleet", .lease_ms = 600000};
    if (where == NULL || !cx_cli_is_database(where))
        return cx_fail(err, CX_E_USAGE, "expected --to postgresql://USER@HOST/DATABASE");
    if (strchr(where, '@') != NULL && memchr(where + 13, ':', strcspn(where + 13, "@")) != NULL)
        return cx_fail(
            err, CX_E_USAGE,
            "option --to: the address is shown to others; leave the password to ~/.pgpass");
    CX_TRY(cx_fleet_find(job->fleet, m.name, &m.from_part, err));
    CX_TRY(cx_fleet_open(where, &options, &m.to, err));
    cx_status status = cx_cli_fleet_take(job->fleet, &m.from_part, m.name, err);
    if (!cx_failed(status))
        status = copy_and_switch(&m, err);
    if (cx_failed(status) && m.from_part.owned)
        (void)cx_failed(cx_fleet_give_back(job->fleet, &m.from_part, NULL));
    cx_fleet_close(m.to);
    CX_TRY(status);
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_uint(&json, "bytes", m.copied.bytes);
        cx_json_put_uint(&json, "files", m.copied.files + m.copied.small);
        cx_json_put_str(&json, "part", m.name);
        return cx_cli_end_json(&json, &job->out, err);
    }
    cx_buf_printf(&job->out, "moved the part %.*s: %" PRIu64 " files, %" PRIu64 " bytes\n",
                  (int)m.name.size, m.name.data, m.copied.files + m.copied.small, m.copied.bytes);
    return CX_SUCCESS;
}

static int run_fleet_move(cx_cli *cli, const cx_cli_args *args)
{
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_WRITES, move_work);
}

static const cx_cli_operand move_operands[] = {{"PART", CX_CLI_TEXT, NULL, false, false}};
static const cx_cli_option move_options[] = {
    CX_CLI_OPTION_DATABASE,
    CX_CLI_OPT("to", 0, CX_CLI_TEXT, "URL", "The database to move it to; it has a fleet."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_move = {
    .name = "fleet move",
    .purpose = "move a part to another database",
    .about =
        "Takes the part, copies all its files to the part of the same name in the other database, "
        "and marks it here as moved, so that no node ever takes it here again. Nodes must be "
        "drained before, and started with the new address afterwards. Interrupted before the "
        "mark, the part is still here, and the copy must be removed before another try.",
    .operands = move_operands,
    .operand_count = CX_COUNT_OF(move_operands),
    .options = move_options,
    .option_count = CX_COUNT_OF(move_options),
    .exits = "0 moved\n1 a part there has files already" CX_CLI_EXITS_DATABASE,
    .example = "export CORTEX_FLEET=postgresql://cortex@db1/cortex\n"
               "cortex fleet move team-b --to postgresql://cortex@db9/cortex",
    .run = run_fleet_move,
};

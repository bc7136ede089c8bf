/*
 * cmd_fleet.c - `cortex fleet`: the log of many nodes in PostgreSQL, as an operator makes it, looks
 * at it, and moves data directories into it and out of it (docs/fleet.md).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ledger/ledger.h"
#include "fleet/api.h"
#include "json/api.h"

#define OPTION_DATABASE                                                                          \
    CX_CLI_OPT("database", 0, CX_CLI_TEXT, "URL",                                                \
               "The database: postgresql://USER@HOST:PORT/NAME; several hosts after each other " \
               "and ?target_session_attrs=read-write find the primary. Default $CORTEX_FLEET. "  \
               "Leave the password to ~/.pgpass: command lines are seen by others.")

#define EXITS_DATABASE                                                                         \
    "\n2 usage error\n3 could not be done: the database is away, refuses the user, or has no " \
    "fleet"

/* An open fleet and the answer of a command. */
typedef struct fleet_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_fleet *fleet;
    const char *url;
    bool json;
    cx_buf out;
    int code;
} fleet_job;

typedef cx_status fleet_work(fleet_job *job, cx_err *err);

static cx_status database_url(const cx_cli_args *args, const char **out, cx_err *err)
{
    const char *url = cx_cli_value(args, "database");
    if (url == NULL)
        url = getenv("CORTEX_FLEET");
    if (url == NULL || url[0] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "no database is named; expected --database postgresql://USER@HOST/NAME, or "
                       "$CORTEX_FLEET");
    if (strncmp(url, "postgresql://", 13) != 0 && strncmp(url, "postgres://", 11) != 0)
        return cx_fail(err, CX_E_USAGE,
                       "the database's address cannot be read; expected "
                       "postgresql://USER@HOST:PORT/DATABASE");
    if (strlen(url) > CX_FLEET_URL_MAX)
        return cx_fail(err, CX_E_LIMIT, "the database's address is longer than %d bytes",
                       CX_FLEET_URL_MAX);
    *out = url;
    return CX_SUCCESS;
}

static cx_status open_and_work(fleet_job *job, bool read_only, fleet_work *work, cx_err *err)
{
    const cx_fleet_options options = {.node = "cortex-fleet", .read_only = read_only};
    CX_TRY(cx_fleet_open(job->url, &options, &job->fleet, err));
    cx_status status = work(job, err);
    cx_fleet_close(job->fleet);
    return status;
}

static int run_job(cx_cli *cli, const cx_cli_args *args, bool opens, bool read_only,
                   fleet_work *work)
{
    cx_err err = {0};
    fleet_job job = {.cli = cli, .args = args, .json = cx_cli_has(args, "json")};
    cx_buf_init(&job.out, cli->alloc);
    cx_status status = database_url(args, &job.url, &err);
    if (!cx_failed(status))
        status = opens ? open_and_work(&job, read_only, work, &err) : work(&job, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &job.out, job.code);
    cx_buf_done(&job.out);
    return code;
}

static cx_str kept(const fleet_job *job, cx_str text)
{
    return cx_arena_copy_str(&job->cli->arena, text);
}

/* --- fleet init ------------------------------------------------------------------------------- */

static cx_status init_work(fleet_job *job, cx_err *err)
{
    uint64_t applied = 0;
    bool strict = !cx_cli_has(job->args, "no-standby");
    CX_TRY(cx_fleet_init(job->url, strict, NULL, &applied, err));
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_uint(&json, "migrations_run", applied);
        cx_json_put_uint(&json, "parts", CX_FLEET_PARTS);
        cx_json_put_bool(&json, "strict", strict);
        return cx_cli_end_json(&json, &job->out, err);
    }
    if (applied == 0)
        cx_buf_add_z(&job->out, "the tables are there and up to date\n");
    else
        cx_buf_printf(&job->out, "ran %" PRIu64 " migrations; %d parts\n", applied, CX_FLEET_PARTS);
    cx_buf_add_z(&job->out, strict ? "strict: a commit is acknowledged when a standby has it\n"
                                   : "not strict: a commit is acknowledged by one server alone\n");
    return CX_SUCCESS;
}

static int run_fleet_init(cx_cli *cli, const cx_cli_args *args)
{
    if (!cx_cli_has(args, "print-sql"))
        return run_job(cli, args, false, false, init_work);
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_buf_add_str(&out, cx_fleet_sql());
    cx_buf_add_byte(&out, '\n');
    cx_buf_add_str(&out, cx_fleet_roles_sql());
    int code = cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_option init_options[] = {
    OPTION_DATABASE,
    CX_CLI_OPT_FLAG("no-standby", 0,
                    "Acknowledge what one server has written. What it loses is lost; by default a "
                    "synchronous standby is waited for."),
    CX_CLI_OPT_FLAG("print-sql", 0,
                    "Print the SQL of tables and roles, and do nothing: for a DBA to read."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_init = {
    .name = "fleet init",
    .purpose = "make the tables of a fleet in PostgreSQL",
    .about =
        "Makes the schema cortex_fleet with 256 empty parts, or brings its tables up to date: "
        "migrations are numbered and run forwards, each once. An actor belongs to the part that "
        "the first byte of the SHA-256 of its name says. Needs a user that may create a schema; "
        "nodes need less, see the roles that --print-sql shows.",
    .options = init_options,
    .option_count = CX_COUNT_OF(init_options),
    .exits = "0 the tables are there\n1 the database has another fleet" EXITS_DATABASE,
    .example = "cortex fleet init --database postgresql://cortex@db1/cortex\n"
               "cortex fleet init --print-sql",
    .run = run_fleet_init,
};

/* --- fleet parts ------------------------------------------------------------------------------ */

typedef struct part_list {
    fleet_job *job;
    cx_json_list json;
    uint64_t count, owned, stopped, groups, frames, bytes;
} part_list;

static void put_part(part_list *l, const cx_fleet_row *row)
{
    cx_json_list json = cx_json_list_begin(&l->job->cli->arena);
    cx_json_put_uint(&json, "actors", row->actors);
    cx_json_put_uint(&json, "bytes", row->bytes);
    cx_json_put_uint(&json, "epoch", row->epoch);
    cx_json_put_uint(&json, "frames", row->frames);
    cx_json_put_uint(&json, "groups", row->next);
    cx_json_put_digest(&json, "head", &row->head);
    cx_json_put_hex(&json, "home_id", cx_bytes_from(row->home_id, sizeof row->home_id));
    cx_json_put_int(&json, "lease_left_ms", row->lease_left_ms);
    cx_json_put_maybe(&json, "owner", kept(l->job, row->owner));
    cx_json_put_uint(&json, "part", row->number);
    cx_json_put_bool(&json, "stopped", row->stopped);
    cx_json_add_object(&l->json, &json);
}

static cx_status add_part(void *arg, const cx_fleet_row *row, cx_err *err)
{
    part_list *l = arg;
    bool on = row->owner.size != 0 && row->lease_left_ms > 0;
    (void)err;
    l->count++;
    l->owned += on;
    l->stopped += row->stopped;
    l->groups += row->next;
    l->frames += row->frames;
    l->bytes += row->bytes;
    if (l->job->json) {
        put_part(l, row);
        return CX_SUCCESS;
    }
    cx_buf_printf(&l->job->out, "%4u %8" PRIu64 " %9" PRIu64 " %10" PRIu64 " %13" PRIu64 "  ",
                  row->number, row->epoch, row->next, row->frames, row->bytes);
    if (row->stopped)
        cx_buf_add_z(&l->job->out, "stopped");
    else if (on)
        cx_shown_add(&l->job->out, row->owner);
    else
        cx_buf_add_z(&l->job->out, "free");
    cx_buf_add_byte(&l->job->out, '\n');
    return CX_SUCCESS;
}

static cx_status parts_work(fleet_job *job, cx_err *err)
{
    part_list l = {.job = job, .json = cx_json_list_begin(&job->cli->arena)};
    if (!job->json)
        cx_buf_add_z(&job->out, "part    epoch    groups     frames         bytes  owner\n");
    CX_TRY(cx_fleet_list(job->fleet, cx_cli_has(job->args, "all"), add_part, &l, err));
    if (!job->json)
        return CX_SUCCESS;
    cx_json_list json = cx_json_list_begin(&job->cli->arena);
    cx_json_put_array(&json, "parts", &l.json);
    return cx_cli_end_json(&json, &job->out, err);
}

static int run_fleet_parts(cx_cli *cli, const cx_cli_args *args)
{
    return run_job(cli, args, true, true, parts_work);
}

static const cx_cli_option parts_options[] = {
    OPTION_DATABASE, CX_CLI_OPT_FLAG("all", 0, "Also parts that were never used."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_parts = {
    .name = "fleet parts",
    .purpose = "list the parts of a fleet and their owners",
    .about = "Shows each part with its epoch, which grows whenever a node takes it, what it "
             "contains, and the node that writes it.",
    .options = parts_options,
    .option_count = CX_COUNT_OF(parts_options),
    .exits = "0 answered" EXITS_DATABASE,
    .example = "cortex fleet parts --database postgresql://cortex@db1/cortex",
    .run = run_fleet_parts,
};

/* --- fleet status ----------------------------------------------------------------------------- */

static cx_status count_part(void *arg, const cx_fleet_row *row, cx_err *err)
{
    part_list *l = arg;
    (void)err;
    l->count++;
    l->owned += row->owner.size != 0 && row->lease_left_ms > 0;
    l->stopped += row->stopped;
    l->groups += row->next;
    l->frames += row->frames;
    l->bytes += row->bytes;
    return CX_SUCCESS;
}

static cx_status put_status(const fleet_job *job, const part_list *l, const cx_fleet_server *server,
                            const uint8_t id[16], cx_buf *out, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(&job->cli->arena);
    cx_json_put_uint(&json, "bytes", l->bytes);
    cx_json_put_uint(&json, "frames", l->frames);
    cx_json_put_uint(&json, "groups", l->groups);
    cx_json_put_hex(&json, "id", cx_bytes_from(id, 16));
    cx_json_put_uint(&json, "migrations", server->migrations);
    cx_json_put_uint(&json, "parts_owned", l->owned);
    cx_json_put_uint(&json, "parts_stopped", l->stopped);
    cx_json_put_uint(&json, "parts_used", l->count);
    cx_json_put_bool(&json, "read_only", server->read_only);
    cx_json_put_str(&json, "server_version", kept(job, cx_str_z(server->version)));
    cx_json_put_bool(&json, "standby_named", server->standby_named);
    cx_json_put_bool(&json, "strict", cx_fleet_is_strict(job->fleet));
    return cx_cli_end_json(&json, out, err);
}

static cx_status status_work(fleet_job *job, cx_err *err)
{
    part_list l = {.job = job};
    cx_fleet_server server;
    uint8_t id[16];
    CX_TRY(cx_fleet_list(job->fleet, false, count_part, &l, err));
    CX_TRY(cx_fleet_server_of(job->fleet, &server, err));
    cx_fleet_id(job->fleet, id);
    if (job->json)
        return put_status(job, &l, &server, id, &job->out, err);
    cx_buf_add_z(&job->out, "fleet    ");
    cx_hex_add(&job->out, cx_bytes_from(id, sizeof id));
    cx_buf_printf(&job->out, "%s\nserver   PostgreSQL ",
                  cx_fleet_is_strict(job->fleet) ? ", strict" : ", not strict");
    cx_shown_add(&job->out, cx_str_z(server.version));
    cx_buf_printf(&job->out,
                  "%s%s\nparts    %" PRIu64 " used, %" PRIu64 " owned, %" PRIu64
                  " stopped\nlog      %" PRIu64 " groups, %" PRIu64 " frames, %" PRIu64 " bytes\n",
                  server.read_only ? ", a standby" : "",
                  server.standby_named ? ", waits for a standby" : "", l.count, l.owned, l.stopped,
                  l.groups, l.frames, l.bytes);
    return CX_SUCCESS;
}

static int run_fleet_status(cx_cli *cli, const cx_cli_args *args)
{
    return run_job(cli, args, true, true, status_work);
}

static const cx_cli_option status_options[] = {OPTION_DATABASE, CX_CLI_OPTION_JSON,
                                               CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_status = {
    .name = "fleet status",
    .purpose = "show what a fleet contains, and how its server is set",
    .about = "Shows the fleet's id, whether commits wait for a standby, and how many parts are "
             "used, owned by a node, or stopped.",
    .options = status_options,
    .option_count = CX_COUNT_OF(status_options),
    .exits = "0 answered" EXITS_DATABASE,
    .example = "cortex fleet status --database postgresql://cortex@db1/cortex",
    .run = run_fleet_status,
};

/* --- fleet doctor ----------------------------------------------------------------------------- */

typedef struct examination {
    fleet_job *job;
    cx_json_list checks;
    bool used[CX_FLEET_PARTS], stopped[CX_FLEET_PARTS];
    uint64_t verified;
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
    cx_json_put_str(&json, "detail", kept(e->job, detail));
    cx_json_put_z(&json, "name", name);
    cx_json_put_z(&json, "status", state);
    cx_json_add_object(&e->checks, &json);
}

static cx_status mark_part(void *arg, const cx_fleet_row *row, cx_err *err)
{
    examination *e = arg;
    (void)err;
    e->used[row->number] = row->next != 0;
    e->stopped[row->number] = row->stopped;
    return CX_SUCCESS;
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

static cx_status examine_part(examination *e, unsigned part, cx_err *err)
{
    cx_err why = {0};
    cx_str name = cx_arena_printf(&e->job->cli->arena, "part %u", part);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    if (e->stopped[part])
        note(e, "fail", name.data,
             CX_STR("stopped: a node found that the database was restored or changed; "
                    "--accept takes the state as it is"));
    if (!e->used[part] || !cx_cli_has(e->job->args, "chains"))
        return CX_SUCCESS;
    cx_status status = cx_fleet_scan(e->job->fleet, part, NULL, NULL, &why);
    if (cx_failed(status) && status.code != CX_E_FORMAT) {
        *err = why;
        return status;
    }
    e->verified++;
    if (cx_failed(status))
        note(e, "fail", name.data, cx_str_z(why.message));
    return CX_SUCCESS;
}

static cx_status doctor_work(fleet_job *job, cx_err *err)
{
    examination e = {.job = job, .checks = cx_json_list_begin(&job->cli->arena)};
    cx_fleet_server server;
    uint64_t part = cx_cli_number(job->args, "accept", CX_FLEET_PARTS);
    if (cx_cli_has(job->args, "accept")) {
        if (part >= CX_FLEET_PARTS)
            return cx_fail(err, CX_E_USAGE, "option --accept: expected a part, 0 to %d",
                           CX_FLEET_PARTS - 1);
        CX_TRY(cx_fleet_accept(job->fleet, (unsigned)part, err));
    }
    CX_TRY(cx_fleet_server_of(job->fleet, &server, err));
    note_server(&e, &server);
    CX_TRY(cx_fleet_list(job->fleet, false, mark_part, &e, err));
    for (unsigned i = 0; i < CX_FLEET_PARTS; i++)
        CX_TRY(examine_part(&e, i, err));
    if (cx_cli_has(job->args, "chains") && job->code == CX_EXIT_HOLDS) {
        cx_str text = cx_arena_printf(&job->cli->arena, "%" PRIu64 " parts recomputed", e.verified);
        note(&e, "ok", "chains", text);
    }
    if (!job->json)
        return CX_SUCCESS;
    cx_json_list json = cx_json_list_begin(&job->cli->arena);
    cx_json_put_array(&json, "checks", &e.checks);
    cx_json_put_bool(&json, "ok", job->code == CX_EXIT_HOLDS);
    return cx_cli_end_json(&json, &job->out, err);
}

static int run_fleet_doctor(cx_cli *cli, const cx_cli_args *args)
{
    return run_job(cli, args, true, !cx_cli_has(args, "accept"), doctor_work);
}

static const cx_cli_option doctor_options[] = {
    OPTION_DATABASE,
    CX_CLI_OPT_FLAG("chains", 0, "Read every group of every part and recompute all hashes."),
    CX_CLI_OPT("accept", 0, CX_CLI_COUNT, "PART",
               "Take the state of a stopped part as it is: nodes may write it again. What was lost "
               "stays lost; compare with a checkpoint or a backup before."),
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_doctor = {
    .name = "fleet doctor",
    .purpose = "check the database of a fleet and say how to fix what is wrong",
    .about = "Checks the tables, whether commits wait for a standby as they should, and whether "
             "parts are stopped. With --chains every hash is recomputed from the bytes.",
    .options = doctor_options,
    .option_count = CX_COUNT_OF(doctor_options),
    .exits = "0 all is well\n1 something is wrong: see the lines with fail" EXITS_DATABASE,
    .example = "cortex fleet doctor --chains --database postgresql://cortex@db1/cortex",
    .run = run_fleet_doctor,
};

/* --- fleet import, fleet export --------------------------------------------------------------- */

static cx_status write_moved(fleet_job *job, const char *verb, const cx_fleet_moved *moved,
                             cx_err *err)
{
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_uint(&json, "actors", moved->actors);
        cx_json_put_uint(&json, "bytes", moved->bytes);
        cx_json_put_uint(&json, "frames", moved->frames);
        cx_json_put_uint(&json, "groups", moved->groups);
        cx_json_put_uint(&json, "home_root_frames_left_out", moved->left_out);
        cx_json_put_uint(&json, "parts", moved->parts);
        cx_json_put_uint(&json, "repeated", moved->repeated);
        return cx_cli_end_json(&json, &job->out, err);
    }
    cx_buf_printf(&job->out, "%s %" PRIu64 " frames in %" PRIu64 " groups, %" PRIu64 " parts\n",
                  verb, moved->frames, moved->groups, moved->parts);
    if (moved->repeated != 0)
        cx_buf_printf(&job->out, "%" PRIu64 " groups were there already\n", moved->repeated);
    if (moved->left_out != 0)
        cx_buf_printf(&job->out,
                      "%" PRIu64 " entries of home:root were left out: they are about the "
                      "directory as a whole\n",
                      moved->left_out);
    return CX_SUCCESS;
}

static cx_status import_work(fleet_job *job, cx_err *err)
{
    cx_fleet_moved moved;
    CX_TRY(cx_fleet_import(job->fleet, job->args->operands[0], &moved, err));
    return write_moved(job, "imported", &moved, err);
}

static int run_fleet_import(cx_cli *cli, const cx_cli_args *args)
{
    return run_job(cli, args, true, false, import_work);
}

static const cx_cli_operand import_operands[] = {{"DIR", CX_CLI_FILE, NULL, false, false}};
static const cx_cli_option import_options[] = {OPTION_DATABASE, CX_CLI_OPTION_JSON,
                                               CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_import = {
    .name = "fleet import",
    .purpose = "copy a data directory into the parts of a fleet",
    .about =
        "Copies the log of the data directory DIR: the journals of each actor into the actor's "
        "part, byte for byte, so that roots and proofs stay the same. No process may write DIR "
        "meanwhile. Entries of home:root, settings, keys and tokens are not copied. An import "
        "that was interrupted goes on where it was; one that is repeated changes nothing.",
    .operands = import_operands,
    .operand_count = CX_COUNT_OF(import_operands),
    .options = import_options,
    .option_count = CX_COUNT_OF(import_options),
    .exits = "0 done and durable\n1 a part has an actor of that name, or was taken by another "
             "node" EXITS_DATABASE,
    .example =
        "cortex fleet import ~/.local/share/cortex --database postgresql://cortex@db1/cortex",
    .run = run_fleet_import,
};

static cx_status export_work(fleet_job *job, cx_err *err)
{
    const cx_cli_args *args = job->args;
    cx_fleet_moved moved;
    size_t count = 0;
    uint64_t part = cx_cli_number(args, "part", 0);
    cx_str *actors = CX_ARENA_ARRAY(&job->cli->arena, cx_str, args->given_count + 1);
    if (actors == NULL)
        return cx_fail_nomem(err);
    for (const cx_cli_given *at = NULL; (at = cx_cli_next(args, "actor", at)) != NULL;)
        actors[count++] = cx_str_z(at->values[0]);
    if (cx_cli_has(args, "part") == (count != 0))
        return cx_fail(err, CX_E_USAGE, "expected either --part or --actor");
    if (part >= CX_FLEET_PARTS)
        return cx_fail(err, CX_E_USAGE, "option --part: expected 0 to %d", CX_FLEET_PARTS - 1);
    CX_TRY(cx_cli_outside_homes(job->cli->io, args->operands[0], err));
    CX_TRY(cx_fleet_export(job->fleet, (unsigned)part, actors, count, args->operands[0],
                           cx_cli_number(args, "segment", CX_CLI_SEGMENT_SIZE), &moved, err));
    return write_moved(job, "exported", &moved, err);
}

static int run_fleet_export(cx_cli *cli, const cx_cli_args *args)
{
    return run_job(cli, args, true, true, export_work);
}

static const cx_cli_option export_options[] = {
    OPTION_DATABASE,
    CX_CLI_OPT("part", 0, CX_CLI_COUNT, "N", "The part to export, 0 to 255."),
    CX_CLI_OPT_MANY("actor", 0, CX_CLI_TEXT, "NAME",
                    "Export this actor, of whatever part; may be repeated."),
    CX_CLI_OPT(
        "segment", 0, CX_CLI_SIZE, "SIZE",
        "The size of the log's first file, as of 'init --segment-size'; default 16M. With that "
        "of the imported directory the log has the same bytes."),
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_export = {
    .name = "fleet export",
    .purpose = "copy a part of a fleet into a new data directory",
    .about = "Makes the data directory DIR of one part, or of some actors. Every hash is "
             "recomputed on the way. 'cortex verify --home' and proofs of it say the same as those "
             "of the directory that was imported. DIR has no keys, settings or tokens.",
    .operands = import_operands,
    .operand_count = CX_COUNT_OF(import_operands),
    .options = export_options,
    .option_count = CX_COUNT_OF(export_options),
    .exits = "0 done and durable\n1 DIR exists, or a hash does not fit" EXITS_DATABASE,
    .example =
        "cortex fleet export --part 17 /srv/part-17 --database postgresql://cortex@db1/cortex\n"
        "cortex fleet export --actor agent-7 /srv/agent-7",
    .run = run_fleet_export,
};

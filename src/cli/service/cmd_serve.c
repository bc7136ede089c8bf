/*
 * cmd_serve.c - `cortex serve`: serves a data directory over HTTP until a signal.
 */
#include "cli/service/serving.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <unistd.h>

#include "base/api.h"
#include "db/api.h"
#include "os/api.h"
#include "cli/fleet/part_home.h"
#include "cli/ledger/ledger.h"
#include "cli/erasure/retention_rules.h"
#include "cli/erasure/sensitive_args.h"
#include "cli/service/serve_alerts.h"
#include "git/api.h"

#define INDEX_DAYS_MAX 36500
#define LOCK_WAIT_MS 5000
/* Of a command that writes through a node: machines that are gone do not keep places. */
#define WRITER_IDLE_MS 600000
#define GRACE_S_DEFAULT 15

/* --- the question ----------------------------------------------------------------------------- */

static void log_line(void *arg, const char *line)
{
    (void)arg;
    cx_cli_complain("%s", line);
}

static cx_status read_milliseconds(const cx_cli_args *args, const char *name, uint32_t *out,
                                   cx_err *err)
{
    uint64_t seconds = cx_cli_number(args, name, 0);
    if (cx_cli_has(args, name) && (seconds == 0 || seconds > 86400))
        return cx_fail(err, CX_E_USAGE, "option --%s: expected 1 to 86400 seconds", name);
    *out = (uint32_t)seconds * 1000;
    return CX_SUCCESS;
}

static cx_status read_cache(const cx_cli_args *args, cx_err *err)
{
    uint64_t bytes = cx_cli_number(args, "cache", CX_DB_CACHE_DEFAULT);
    if (bytes < CX_DB_CACHE_MIN)
        return cx_fail(err, CX_E_USAGE, "option --cache: expected at least 64K");
    if (cx_cli_has(args, "cache"))
        cx_db_limit_cache(bytes);
    return CX_SUCCESS;
}

static cx_status read_count(const cx_cli_args *args, const char *name, uint64_t max, unsigned *out,
                            cx_err *err)
{
    uint64_t count = cx_cli_number(args, name, 0);
    if (cx_cli_has(args, name) && (count == 0 || count > max))
        return cx_fail(err, CX_E_USAGE, "option --%s: expected 1 to %llu", name,
                       (unsigned long long)max);
    *out = (unsigned)count;
    return CX_SUCCESS;
}

static cx_status read_host_names(cx_serving *s, cx_server_options *options, cx_err *err)
{
    const cx_cli_given *given = NULL;
    const char **names = CX_ARENA_ARRAY(&s->cli->arena, const char *, s->args->given_count + 1);
    if (names == NULL)
        return cx_fail_nomem(err);
    while ((given = cx_cli_next(s->args, "name", given)) != NULL)
        names[options->name_count++] = given->values[0];
    options->names = names;
    return CX_SUCCESS;
}

/* A default address was not requested: when it is in use, the server runs without it. */
static cx_status read_otlp_options(const cx_cli_args *args, cx_server_options *options, cx_err *err)
{
    const char *where = cx_cli_value(args, "otlp");
    options->otlp = where == NULL || strcmp(where, "off") != 0;
    options->otlp_must = where != NULL;
    options->otlp_tokens = cx_cli_has(args, "otlp-tokens");
    if (options->otlp)
        CX_TRY(cx_tcp_address_parse(where == NULL ? "127.0.0.1:4318" : where,
                                    &options->otlp_address, err));
    where = cx_cli_value(args, "otlp-grpc");
    options->grpc = where == NULL ? options->otlp : strcmp(where, "off") != 0;
    options->grpc_must = where != NULL;
    if (options->grpc)
        CX_TRY(cx_tcp_address_parse(where == NULL ? "127.0.0.1:4317" : where,
                                    &options->grpc_address, err));
    return CX_SUCCESS;
}

/* NULL when it cannot be told. */
static const char *own_path(cx_serving *s)
{
    cx_buf real;
    cx_err ignored;
    cx_str path = {NULL, 0};
    cx_buf_init(&real, s->cli->alloc);
    if (!cx_failed(cx_path_real(cx_machine_program(), &real, &ignored)))
        path = cx_arena_copy_str(&s->cli->arena, cx_buf_str(&real));
    cx_buf_done(&real);
    return path.data;
}

static bool owns_part(void *files)
{
    return cx_fleet_files_own(files);
}

static cx_status read_server_options(cx_serving *s, cx_server_options *out, cx_err *err)
{
    const cx_cli_args *args = s->args;
    const char *listen = cx_cli_value(args, "listen");
    cx_server_options options = {
        .alloc = s->cli->alloc,
        .io = s->cli->io,
        .home_path = s->path,
        .index_where = cx_cli_value(args, "db"),
        .tls_cert_path = cx_cli_value(args, "tls-cert"),
        .tls_key_path = cx_cli_value(args, "tls-key"),
        .insecure = cx_cli_has(args, "insecure"),
        .open_signed = cx_cli_has(args, "open-signed"),
        .mcp_writes = cx_cli_has(args, "mcp-writes"),
        .user_home = getenv("HOME"),
        .program = own_path(s),
        .body_max = (size_t)cx_cli_number(args, "max-body", 0),
        .body_memory = (size_t)cx_cli_number(args, "body-memory", 0),
        .log = log_line,
        .relayed_port = s->worker.port,
    };
    CX_TRY(cx_tcp_address_parse(listen == NULL ? "127.0.0.1:8420" : listen, &options.address, err));
    CX_TRY(read_otlp_options(args, &options, err));
    if (options.body_max > CX_BATCH_BYTES_MAX)
        return cx_fail(err, CX_E_USAGE, "option --max-body: expected at most 8M");
    CX_TRY(read_count(args, "workers", 256, &options.workers, err));
    CX_TRY(read_count(args, "readers", 64, &options.readers, err));
    CX_TRY(read_count(args, "io-threads", 64, &options.io_threads, err));
    CX_TRY(read_count(args, "queue", 100000, &options.queue, err));
    CX_TRY(read_count(args, "connections", 1000000, &options.connections, err));
    CX_TRY(read_count(args, "connections-per-address", 1000000, &options.connections_per_address,
                      err));
    CX_TRY(read_count(args, "open-requests", 1000000, &options.open_requests, err));
    CX_TRY(read_count(args, "open-events", 1000000, &options.open_events, err));
    CX_TRY(read_cache(args, err));
    CX_TRY(read_milliseconds(args, "header-timeout", &options.header_ms, err));
    CX_TRY(read_milliseconds(args, "body-timeout", &options.body_ms, err));
    CX_TRY(read_milliseconds(args, "answer-timeout", &options.answer_ms, err));
    CX_TRY(read_host_names(s, &options, err));
    CX_TRY(cx_cli_alerting_read(s->cli, args, &options.alerting, err));
    *out = options;
    return CX_SUCCESS;
}

static bool option_is(const cx_cli_args *args, const char *option, const char *word)
{
    const char *value = cx_cli_value(args, option);
    return value != NULL && strcmp(value, word) == 0;
}

/* --- where it is served ----------------------------------------------------------------------- */

#define DESCRIPTION_MAX 4096

static const char *description_path(cx_cli *cli, const char *home_path)
{
    return cx_arena_printf(&cli->arena, "%s/server.json", home_path).data;
}

/* Others find the server by it.  Without it everything but that works. */
static void describe_server(cx_serving *s)
{
    const char *path = description_path(s->cli, s->path);
    cx_json_list json = cx_json_list_begin(&s->cli->arena);
    cx_err err;
    cx_buf text;
    /* A process and an address of loopback mean nothing on the other machines that have a part. */
    if (s->cli->part != NULL)
        return;
    cx_buf_init(&text, s->cli->alloc);
    cx_json_put_maybe(&json, "otlp_url", s->otlp_url);
    cx_json_put_uint(&json, "pid", (uint64_t)getpid());
    cx_json_put_str(&json, "url", s->url);
    cx_status status = path == NULL ? cx_fail_nomem(&err) : cx_cli_end_json(&json, &text, &err);
    if (!cx_failed(status))
        status = cx_io_replace_private_file(s->cli->io, path, cx_buf_bytes(&text), &err);
    if (cx_failed(status))
        cx_cli_complain("serve: note: 'cortex up' cannot find this server: %s", err.message);
    s->described = !cx_failed(status);
    cx_buf_done(&text);
}

static void remove_description(cx_serving *s)
{
    const char *path = s->described ? description_path(s->cli, s->path) : NULL;
    if (path != NULL)
        (void)s->cli->io->unlink(s->cli->io, path);
}

/* Whether a process has the log open for writing. */
static bool is_owned(cx_cli *cli, const char *home_path)
{
    cx_str path = cx_arena_printf(&cli->arena, "%s/log/lock", home_path);
    bool is_locked = false;
    cx_file file;
    if (path.data == NULL || cli->io->open(cli->io, path.data, CX_IO_READ, &file) != 0)
        return false;
    if (cli->io->locked(cli->io, file, &is_locked) != 0)
        is_locked = false;
    (void)cli->io->close(cli->io, file);
    return is_locked;
}

/* A killed server leaves its description: the process must be there, and own the data directory.
 * In a container it is process 1. */
cx_status cx_serving_find(cx_cli *cli, const char *home_path, cx_str *out_url, cx_err *err)
{
    const char *path = description_path(cli, home_path);
    int64_t pid = 0;
    cx_json value;
    cx_buf text;
    *out_url = CX_STR("");
    if (path == NULL)
        return cx_fail_nomem(err);
    if (cli->part != NULL)
        return CX_SUCCESS;
    cx_buf_init(&text, cli->alloc);
    bool is_read = !cx_failed(cx_io_read_file(cli->io, path, DESCRIPTION_MAX, &text, NULL));
    cx_str kept = is_read ? cx_arena_copy_str(&cli->arena, cx_buf_str(&text)) : CX_STR("");
    cx_buf_done(&text);
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    if (!is_read || cx_failed(cx_json_parse_text(kept, &cli->arena, &value, NULL)))
        return CX_SUCCESS;
    const cx_json *url = cx_json_get_typed(&value, CX_STR("url"), CX_JSON_STRING);
    const cx_json *number = cx_json_get_typed(&value, CX_STR("pid"), CX_JSON_INT);
    if (url != NULL && number != NULL && cx_json_int64(number, &pid) && pid > 0 &&
        pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM) &&
        is_owned(cli, home_path))
        *out_url = cx_json_text(url);
    return CX_SUCCESS;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Again when another worker was first. */
static cx_status open_part_home(cx_serving *s, cx_err *err)
{
    cx_status status;
    do {
        CX_TRY(cx_serve_worker_open(s->cli, &s->worker, s->ends, &s->path, err));
        cx_home_options options = cx_cli_home_options(s->cli, CX_CLI_WRITE, NULL);
        options.or_remote = false;
        status = cx_home_open(s->path, &options, &s->home, err);
    } while (status.code == CX_E_BUSY);
    return status;
}

/* Commands own a data directory only briefly. */
static cx_status open_home(cx_serving *s, cx_err *err)
{
    if (s->worker.is_one)
        return open_part_home(s, err);
    cx_cli_progress progress;
    cx_cli_progress_init(&progress, s->cli->io, "tables");
    cx_home_options options = cx_cli_home_options(s->cli, CX_CLI_WRITE, &progress);
    /* A server is the one that others write through. */
    options.or_remote = false;
    uint64_t end = s->cli->io->monotonic_ns(s->cli->io) + LOCK_WAIT_MS * UINT64_C(1000000);
    cx_status status;
    while ((status = cx_home_open(s->path, &options, &s->home, err)).code == CX_E_BUSY &&
           s->cli->io->monotonic_ns(s->cli->io) < end)
        cx_thread_sleep_ms(20);
    cx_cli_progress_end(&progress);
    return status;
}

static cx_status check_max_index(const cx_serving *s, uint64_t bytes, cx_err *err)
{
    const char *where = cx_cli_value(s->args, "db");
    if (cx_cli_has(s->args, "max-index") && bytes < CX_CLI_INDEX_MIN)
        return cx_fail(err, CX_E_USAGE, "option --max-index: expected at least 1M");
    if (bytes != 0 && where != NULL && cx_str_starts(cx_str_z(where), CX_STR("postgres")))
        return cx_fail(err, CX_E_USAGE,
                       "option --max-index: only an index in a file can be bounded by its size; "
                       "bound one in PostgreSQL with --index-days");
    return CX_SUCCESS;
}

static cx_status open_recorder(cx_serving *s, cx_err *err)
{
    cx_recorder_options options = {
        .alloc = s->cli->alloc,
        .keep_unknown = option_is(s->args, "unknown-key", "keep"),
        .strip_level = option_is(s->args, "level-policy", "strip"),
    };
    uint64_t days = cx_cli_number(s->args, "index-days", 0);
    options.index_bytes = cx_cli_number(s->args, "max-index", 0);
    CX_TRY(check_max_index(s, options.index_bytes, err));
    options.index_days = days > INDEX_DAYS_MAX ? INDEX_DAYS_MAX : (unsigned)days;
    const char *forms = cx_cli_value(s->args, "forms");
    if (forms != NULL && !cx_trace_forms_parse(cx_str_z(forms), &options.forms))
        return cx_fail(err, CX_E_USAGE,
                       "option --forms: found '%s', expected letters such as A,B,H", forms);
    CX_TRY(cx_cli_sensitive_rules(s->cli, s->args, &options.sensitive, err));
    CX_TRY(open_home(s, err));
    /* The socket of a data directory is a file; a part has none, and is written to over HTTP. */
    cx_remote_options remote = {.no_socket = s->cli->part != NULL};
    if (remote.no_socket) {
        remote.may_answer = owns_part;
        remote.may_answer_arg = s->cli->part;
        remote.idle_timeout_ms = WRITER_IDLE_MS;
    }
    CX_TRY(cx_home_serve_begin(s->home, &remote, &s->remote, err));
    return cx_recorder_open(s->home, &options, &s->recorder, err);
}

/* The first start makes a token, so that there is something to begin with. */
static cx_status need_token(cx_serving *s, cx_err *err)
{
    const cx_io *io = s->cli->io;
    char text[CX_TOKEN_TEXT_SIZE + 2];
    cx_token token = {.name = "first",
                      .scopes = CX_SCOPE_WRITE | CX_SCOPE_READ | CX_SCOPE_RUN_READ,
                      .level = CX_LEVEL_FULL,
                      .expires_ns = CX_TIME_NONE};
    cx_str path = cx_arena_printf(&s->cli->arena, "%s/token", s->path);
    cx_tokens tokens;
    cx_buf kept;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_tokens_read(io, s->path, &s->cli->arena, &tokens, err));
    if (s->cli->part != NULL) {
        if (tokens.count == 0)
            cx_cli_complain("serve: there are no tokens; 'cortex token add --home URL#PART' makes "
                            "one");
        return CX_SUCCESS;
    }
    if (tokens.count == 0) {
        CX_TRY(cx_token_add(io, s->path, &token, text, &token, err));
        text[CX_TOKEN_TEXT_SIZE] = '\n';
        CX_TRY(cx_io_replace_private_file(io, path.data,
                                          cx_bytes_from(text, CX_TOKEN_TEXT_SIZE + 1), err));
        s->first_token = true;
    }
    cx_buf_init(&kept, s->cli->alloc);
    if (!cx_failed(cx_io_read_file(io, path.data, 4096, &kept, NULL))) {
        s->token_path = path.data;
        while (kept.size != 0 && kept.data[kept.size - 1] == '\n')
            kept.size--;
        if (kept.size == CX_TOKEN_TEXT_SIZE)
            s->token_text = cx_arena_copy_str(&s->cli->arena, cx_buf_str(&kept));
    }
    cx_buf_done(&kept);
    return CX_SUCCESS;
}

/* A path with every link resolved, in the arena. */
static cx_status real_path(cx_serving *s, const char *path, const char **out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, s->cli->alloc);
    cx_status status = cx_path_real(path, &text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(&s->cli->arena, cx_buf_str(&text)).data;
        status = *out == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&text);
    return status;
}

static cx_status open_runs(cx_serving *s, cx_err *err)
{
    const char *repo = cx_cli_value(s->args, "repo");
    cx_git *git = NULL;
    if (repo == NULL)
        return CX_SUCCESS;
    if (s->cli->part != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "option --repo: runs belong to a folder of one machine, and the data "
                       "directory is in a database");
    CX_TRY(cx_git_open(repo, NULL, s->cli->alloc, &git, err));
    cx_str worktree = cx_arena_copy_str(&s->cli->arena, cx_str_z(cx_git_worktree(git)));
    bool linked = cx_git_is_linked(git);
    cx_git_close(git);
    cx_runs_options options = {.alloc = s->cli->alloc,
                               .io = s->cli->io,
                               .repo = worktree.data,
                               .envp = cx_machine_environment(),
                               .home = s->home};
    if (worktree.data == NULL)
        return cx_fail_nomem(err);
    if (linked)
        return cx_fail(err, CX_E_USAGE,
                       "option --repo: expected the main checkout of a repository, and %s is a "
                       "linked work tree",
                       repo);
    CX_TRY(cx_run_store_root(options.repo, getenv(CX_RUN_ROOT_ENV), &s->cli->arena,
                             &options.runtime_root, err));
    CX_TRY(real_path(s, s->path, &options.home_path, err));
    if (cx_failed(real_path(s, cx_machine_program(), &options.program, NULL)))
        options.program = NULL; /* no run can be started then, which the endpoint reports */
    return cx_runs_open(&options, &s->runs, err);
}

/* "": there is no such listener. */
static cx_str url_of(cx_serving *s, const cx_tcp_address *address, bool tls)
{
    if (address == NULL)
        return CX_STR("");
    return cx_arena_printf(&s->cli->arena, "%s://%s%s%s:%u", tls ? "https" : "http",
                           address->is_v6 ? "[" : "", address->host, address->is_v6 ? "]" : "",
                           (unsigned)address->port);
}

/* The OTLP listeners have none when their addresses are in use. */
static cx_status name_urls(cx_serving *s, cx_err *err)
{
    const cx_tcp_address *otlp = cx_server_otlp_address(s->server);
    bool tls = cx_cli_has(s->args, "tls-cert");
    s->url = url_of(s, cx_server_address(s->server), tls);
    s->otlp_url = url_of(s, otlp, tls && otlp != NULL && !otlp->is_loopback);
    s->otlp_grpc_url = url_of(s, cx_server_grpc_address(s->server), false);
    return s->url.data == NULL || s->otlp_url.data == NULL || s->otlp_grpc_url.data == NULL
               ? cx_fail_nomem(err)
               : CX_SUCCESS;
}

static cx_status listen_at(cx_serving *s, cx_server_options *options, cx_err *err)
{
    bool is_default = cx_cli_value(s->args, "listen") == NULL;
    cx_status status = cx_server_open(options, &s->server, err);
    if (status.code != CX_E_BUSY || !s->or_free_port || !is_default)
        return status;
    options->address.port = 0;
    return cx_server_open(options, &s->server, err);
}

static void join_writer(void *arg, int socket, void (*ended)(void *arg), void *ended_arg)
{
    cx_home_serve_add(arg, socket, ended, ended_arg);
}

static bool tables_age(void *arg, uint64_t *out_ms)
{
    return cx_fleet_files_tables_age(arg, out_ms);
}

static cx_status open_watch(cx_serving *s, cx_server_options *options, cx_err *err)
{
    const char *home = getenv("CORTEX_HOME");
    cx_part_watch_options watch = {.node = s->worker.node,
                                   .relay = cx_serve_worker_relay,
                                   .tables_age = tables_age,
                                   .arg = s->cli->part};
    uint8_t id[16];
    if (!s->worker.is_one || home == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_cli_split_database(&s->cli->arena, home, &watch.url, &watch.part, err));
    CX_TRY(cx_part_watch_open(&watch, &s->watch, err));
    options->watch = s->watch;
    cx_fleet_files_id(s->cli->part, id);
    cx_hex_encode(cx_bytes_from(id, CX_COUNT_OF(id) / 2), s->part_id);
    options->part_id = s->part_id;
    if (s->cli->objects != NULL) {
        s->objects = *s->cli->objects;
        s->objects.tries = 2; /* a worker waits for it */
        options->objects = &s->objects;
    }
    return CX_SUCCESS;
}

cx_status cx_serving_open(cx_serving *s, cx_err *err)
{
    cx_server_options options;
    CX_TRY(cx_serve_worker_read(s->cli, &s->worker, err));
    CX_TRY(cx_serve_worker_follow(&s->worker, err));
    if (s->worker.is_one)
        s->worker.lease_ms = (uint32_t)cx_cli_number(s->args, "lease", 0) * 1000;
    if (!s->worker.is_one)
        CX_TRY(cx_cli_home_path(s->cli, s->args, &s->path, err));
    CX_TRY(read_server_options(s, &options, err));
    CX_TRY(open_recorder(s, err));
    /* The part of a worker is open only now. */
    options.io = s->cli->io;
    options.home_path = s->path;
    if (s->cli->part != NULL) {
        options.may_answer = owns_part;
        options.may_answer_arg = s->cli->part;
        options.join = join_writer;
        options.join_arg = s->remote;
    }
    CX_TRY(open_watch(s, &options, err));
    CX_TRY(need_token(s, err));
    CX_TRY(cx_cli_alerting_secret(s->cli, s->args, s->path, &options.alerting, err));
    CX_TRY(open_runs(s, err));
    options.recorder = s->recorder;
    options.runs = s->runs;
    if (s->token_path != NULL)
        CX_TRY(real_path(s, s->token_path, &options.token_path, err));
    CX_TRY(listen_at(s, &options, err));
    CX_TRY(name_urls(s, err));
    describe_server(s);
    return cx_serve_worker_publish(s->cli, &s->worker, err);
}

/* --- running ---------------------------------------------------------------------------------- */

/* The address that signs a browser in goes to a terminal, never to a log. */
static void print_page_url(const cx_serving *s, cx_str url, cx_buf *out)
{
    if (!cx_page_is_built()) {
        cx_buf_add_z(out, "page   not in this program: it was built without (see README.md)\n");
        return;
    }
    cx_buf_printf(out, "page   %.*s/", (int)url.size, url.data);
    if (s->token_text.data != NULL && isatty(1))
        cx_buf_printf(out, "#token=%.*s", (int)s->token_text.size, s->token_text.data);
    cx_buf_add_byte(out, '\n');
}

static void print_urls_text(const cx_serving *s, cx_buf *out)
{
    cx_str url = s->url, otlp = s->otlp_url, grpc = s->otlp_grpc_url;
    cx_buf_printf(out, "cortex %s listens on %.*s\n", cx_version(), (int)url.size, url.data);
    cx_buf_add_z(out, "home   ");
    cx_shown_add(out, cx_str_z(s->path));
    cx_buf_add_byte(out, '\n');
    if (otlp.size != 0)
        cx_buf_printf(out, "otlp   OTEL_EXPORTER_OTLP_ENDPOINT=%.*s\n", (int)otlp.size, otlp.data);
    if (grpc.size != 0)
        cx_buf_printf(out, "grpc   OTEL_EXPORTER_OTLP_ENDPOINT=%.*s for exporters that use gRPC\n",
                      (int)grpc.size, grpc.data);
    if (s->token_path == NULL) {
        cx_buf_add_z(out, "token  made with 'cortex token add'; 'cortex token list' shows them\n");
        print_page_url(s, url, out);
        return;
    }
    cx_buf_add_z(out, "token  in ");
    cx_shown_add(out, cx_str_z(s->token_path));
    cx_buf_printf(out, "%s\n", s->first_token ? " (made now: may write, and read everything)" : "");
    cx_buf_printf(out, "try    curl -sS%s -H \"Authorization: Bearer $(cat '",
                  cx_cli_has(s->args, "tls-cert") ? " --cacert CERT" : "");
    cx_shown_add(out, cx_str_z(s->token_path));
    cx_buf_printf(out,
                  "')\" -H 'Content-Type: application/json' --data-binary @batch.json "
                  "%.*s/api/v1/covenant/events\n",
                  (int)url.size, url.data);
    print_page_url(s, url, out);
}

static cx_status print_urls(const cx_serving *s, cx_err *err)
{
    cx_buf out;
    cx_json_list json = cx_json_list_begin(&s->cli->arena);
    cx_status status;
    cx_buf_init(&out, s->cli->alloc);
    if (cx_cli_has(s->args, "json")) {
        cx_json_put_str(&json, "home", cx_str_z(s->path));
        cx_json_put_maybe(&json, "otlp_grpc_url", s->otlp_grpc_url);
        cx_json_put_maybe(&json, "otlp_url", s->otlp_url);
        cx_json_put_maybe(&json, "token_file",
                          cx_str_z(s->token_path == NULL ? "" : s->token_path));
        cx_json_put_str(&json, "url", s->url);
        status = cx_cli_end_json(&json, &out, err);
    } else {
        print_urls_text(s, &out);
        status = cx_buf_check(&out, err);
    }
    if (!cx_failed(status))
        cx_cli_out_write(&s->cli->out, cx_buf_str(&out));
    cx_buf_done(&out);
    return status;
}

void cx_serving_block_signals(sigset_t *ends, sigset_t *before)
{
    (void)sigemptyset(ends);
    (void)sigaddset(ends, SIGTERM);
    (void)sigaddset(ends, SIGINT);
    /* Threads that are started from now on leave them to us. */
    (void)pthread_sigmask(SIG_BLOCK, ends, before);
}

/* A failure is reported and tried again at the next time: the server goes on. */
static void record_home_root(const cx_serving *s)
{
    cx_err err = {0};
    cx_home_root_entry entry;
    cx_status status =
        cx_home_root_record(s->home, (int64_t)s->cli->io->wall_ns(s->cli->io), &entry, &err);
    if (cx_failed(status) && status.code != CX_E_NOT_FOUND)
        cx_cli_complain("serve: the home root could not be recorded: %s", err.message);
}

/* The rules are read each time: ages are counted from now. */
static void apply_retention(const cx_serving *s)
{
    cx_err err = {0};
    cx_arena arena;
    cx_erasure_filter filter;
    cx_erasure_result result = {.nothing = true};
    cx_arena_init(&arena, s->cli->alloc, 0);
    cx_status status = cx_cli_read_retention(s->cli, s->args, &filter, &err);
    if (!cx_failed(status))
        status = cx_erasure_run(s->home, NULL, &filter, &arena, &result, &err);
    if (cx_failed(status))
        cx_cli_complain("serve: retention could not be applied: %s", err.message);
    else if (!result.nothing)
        cx_cli_complain("serve: retention destroyed %llu entries and %llu memories, %llu kept by a "
                        "legal hold; receipt: entry %llu of " CX_ERASURES_ACTOR,
                        (unsigned long long)result.head.entries,
                        (unsigned long long)result.head.memories,
                        (unsigned long long)result.head.held, (unsigned long long)result.receipt);
    cx_arena_done(&arena);
}

/* A task of this thread, which waits for the signal. */
typedef struct periodic {
    uint32_t every_ms; /* 0 = never */
    uint64_t next_ns;
    void (*perform)(const cx_serving *s);
} periodic;

#define MS_NS UINT64_C(1000000)

/* Nanoseconds until the next task is due; UINT64_MAX = never. */
static uint64_t time_to_next(const periodic *tasks, size_t count, uint64_t now)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        uint64_t left = tasks[i].next_ns > now ? tasks[i].next_ns - now : 0;
        if (tasks[i].every_ms != 0 && left < least)
            least = left;
    }
    return least;
}

static void perform_due(const cx_serving *s, periodic *tasks, size_t count)
{
    const cx_io *io = s->cli->io;
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].every_ms == 0 || tasks[i].next_ns > io->monotonic_ns(io))
            continue;
        tasks[i].perform(s);
        tasks[i].next_ns = io->monotonic_ns(io) + tasks[i].every_ms * MS_NS;
    }
}

/* Meanwhile this thread records home roots and applies retention. */
static void wait_for_end(const cx_serving *s, const sigset_t *ends, const sigset_t *before)
{
    const cx_io *io = s->cli->io;
    periodic tasks[] = {{s->home_root_ms, 0, record_home_root},
                        {s->retention_ms, 0, apply_retention}};
    int got = -1;
    for (size_t i = 0; i < CX_COUNT_OF(tasks); i++)
        tasks[i].next_ns = io->monotonic_ns(io) + tasks[i].every_ms * MS_NS;
    for (;;) {
        uint64_t left = time_to_next(tasks, CX_COUNT_OF(tasks), io->monotonic_ns(io));
        if (left == UINT64_MAX ? sigwait(ends, &got) == 0
                               : cx_machine_await_signal(ends, left) != 0)
            break;
        if (left != UINT64_MAX)
            perform_due(s, tasks, CX_COUNT_OF(tasks));
    }
    /* A second one ends it at once: what was acknowledged is on the disk. */
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* The rules are checked before the server starts, although they are read again when applied. */
static cx_status read_periodic(cx_serving *s, cx_err *err)
{
    cx_erasure_filter filter;
    CX_TRY(read_milliseconds(s->args, "home-root-every", &s->home_root_ms, err));
    CX_TRY(read_milliseconds(s->args, "retention-every", &s->retention_ms, err));
    CX_TRY(cx_cli_read_retention(s->cli, s->args, &filter, err));
    if (s->retention_ms != 0 && filter.rule_count == 0)
        return cx_fail(err, CX_E_USAGE,
                       "option --retention-every: there are no rules; set them in the "
                       "configuration, such as retention = [\"session.* 1y\"], or give "
                       "--retention RULE");
    return CX_SUCCESS;
}

void cx_serving_await_end(const sigset_t *ends, const sigset_t *before)
{
    int got;
    while (sigwait(ends, &got) != 0)
        continue;
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

void cx_serving_close(cx_serving *s, uint32_t grace_ms)
{
    cx_err err;
    remove_description(s);
    /* Its clients may be connections of the server. */
    cx_home_serve_stop(s->remote);
    cx_server_close(s->server, grace_ms);
    cx_part_watch_close(s->watch);
    cx_runs_close(s->runs);
    cx_home_serve_end(s->remote);
    cx_recorder_close(s->recorder);
    if (cx_failed(cx_home_close(s->home, &err)))
        cx_cli_complain(
            "serve: note: the tables could not be brought up to date (%s); the log is complete",
            err.message);
}

static int run_serve(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    sigset_t ends, before;
    cx_serving s = {.cli = cli, .args = args, .ends = &ends};
    uint32_t grace_ms = (uint32_t)(cx_cli_number(args, "grace", GRACE_S_DEFAULT) % 86400) * 1000;
    cx_alloc_return_large();
    if (cx_cli_has(args, "fleet") && getenv(CX_SERVE_WORKER_ENV) == NULL)
        return cx_cli_serve_fleet(cli, args);
    cx_serving_block_signals(&ends, &before);
    cx_status status = read_periodic(&s, &err);
    if (!cx_failed(status))
        status = cx_serving_open(&s, &err);
    if (!cx_failed(status))
        status = print_urls(&s, &err);
    int code = CX_EXIT_HOLDS;
    if (s.worker.is_one && status.code == CX_E_BUSY && cx_serve_worker_was_told(&err)) {
        grace_ms = 0;
    } else if (cx_failed(status)) {
        code = cx_cli_ledger_fail(cli, args, &err);
        grace_ms = 0;
    } else {
        wait_for_end(&s, &ends, &before);
        if (!s.worker.is_one) /* whose parent has said it */
            cx_cli_complain("serve: stopping after the running requests");
    }
    cx_serving_close(&s, grace_ms);
    return code;
}

/* --- the table -------------------------------------------------------------------------------- */

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME,
    CX_CLI_OPT("listen", 0, CX_CLI_TEXT, "ADDR:PORT",
               "Where to listen; default 127.0.0.1:8420. Port 0 selects a free port. An address "
               "other than loopback needs TLS, or --insecure."),
    CX_CLI_OPT("fleet", 0, CX_CLI_TEXT, "URL[#PART]",
               "Be a node of the fleet in this database: take the part (default main) when it is "
               "free and serve it, else hand connections on to the node that does. The page shows "
               "nodes and parts under Nodes. See docs/fleet.md."),
    CX_CLI_OPT("node", 0, CX_CLI_TEXT, "NAME",
               "With --fleet: the name of this node; default the name of the machine."),
    CX_CLI_OPT("node-listen", 0, CX_CLI_TEXT, "ADDR:PORT",
               "With --fleet: where other nodes hand connections on to this one; default a free "
               "port of 127.0.0.1. Nodes on several machines need an address that those reach."),
    CX_CLI_OPT("node-address", 0, CX_CLI_TEXT, "ADDR:PORT",
               "With --fleet: how other nodes reach that, if by another address; port 0 is the one "
               "of --node-listen."),
    CX_CLI_OPT("node-tls-cert", 0, CX_CLI_FILE, "FILE",
               "With --fleet: TLS between nodes, which then know each other: the certificate chain "
               "that this one shows, in PEM. It names the address by which others reach it and "
               "that it connects from."),
    CX_CLI_OPT("node-tls-key", 0, CX_CLI_FILE, "FILE", "Its private key in PEM."),
    CX_CLI_OPT("node-tls-ca", 0, CX_CLI_FILE, "FILE",
               "The CA in PEM that the certificates of all nodes are of; no other is trusted."),
    CX_CLI_OPT("node-tls-name", 0, CX_CLI_TEXT, "NAME",
               "A DNS name that the certificates of all nodes have, in place of addresses."),
    CX_CLI_OPT(
        "lease", 0, CX_CLI_COUNT, "SECONDS",
        "With --fleet: how long a node that is gone, or hears nothing of the database, keeps "
        "its part; 1 to 600, default 4."),
    CX_CLI_OPT("worker-timeout", 0, CX_CLI_COUNT, "SECONDS",
               "With --fleet: a worker that has not answered for so long is killed, and its part "
               "is given back for it; 1 to 600, default 5."),
    CX_CLI_OPT_FLAG("keep-part", 0,
                    "With --fleet: neither hand the part over to a node that has fewer, nor be "
                    "given it for that ('cortex fleet balance')."),
    CX_CLI_OPT("hold", 0, CX_CLI_COUNT, "SECONDS",
               "With --fleet: how long a connection waits while no node serves the part; 1 to "
               "3600, default 30."),
    CX_CLI_OPT("otlp", 0, CX_CLI_TEXT, "ADDR:PORT|off",
               "Where OpenTelemetry exporters send spans and logs by OTLP/HTTP; default "
               "127.0.0.1:4318, or off if that port is in use. On loopback no token is needed."),
    CX_CLI_OPT("otlp-grpc", 0, CX_CLI_TEXT, "ADDR:PORT|off",
               "Where they send the same by OTLP/gRPC, without TLS; default 127.0.0.1:4317, or off "
               "if that port is in use, or with --otlp off. An address other than loopback needs "
               "--insecure."),
    CX_CLI_OPT_FLAG("otlp-tokens", 0, "OTLP needs a token of scope trace:write on loopback, too."),
    CX_CLI_OPT(
        "repo", 0, CX_CLI_FILE, "DIR",
        "Also show the governed runs of this git repository, and start runs in it for tokens "
        "that may."),
    CX_CLI_OPT("tls-cert", 0, CX_CLI_FILE, "FILE", "Certificate chain in PEM."),
    CX_CLI_OPT("tls-key", 0, CX_CLI_FILE, "FILE", "Its private key in PEM."),
    CX_CLI_OPT_FLAG("mcp-writes", 0,
                    "Offer tokens of scope memory:write the MCP tools that write memories."),
    CX_CLI_OPT_FLAG("insecure", 0, "Listen on any address without TLS."),
    CX_CLI_OPT_MANY("name", 0, CX_CLI_TEXT, "NAME",
                    "A name by which browsers may call this server, besides addresses and "
                    "localhost. May be repeated; not needed with TLS."),
    CX_CLI_OPT("db", 0, CX_CLI_TEXT, "WHERE",
               "The index: a file, or postgresql://...; default HOME/cirislens.db."),
    CX_CLI_OPT("index-days", 0, CX_CLI_COUNT, "N",
               "Traces older than N days leave the index, not the ledger; default: they stay."),
    CX_CLI_OPTION_MAX_INDEX,
    CX_CLI_OPT("home-root-every", 0, CX_CLI_COUNT, "SECONDS",
               "Record the home root, one root over all actors, this often when something has "
               "changed; 1 to 86400, default never. 'cortex checkpoint --all' signs it."),
    CX_CLI_OPTION_RETENTION,
    CX_CLI_OPT("retention-every", 0, CX_CLI_COUNT, "SECONDS",
               "Apply the rules of retention this often, as 'cortex retention apply' does; 1 to "
               "86400, default never."),
    CX_CLI_OPT("detect-every", 0, CX_CLI_COUNT, "SECONDS",
               "Run the detectors this often, over what is new; at most 86400, 0 = never, default "
               "900."),
    CX_CLI_OPT("alert-webhook", 0, CX_CLI_TEXT, "URL",
               "Send alerts there as signed JSON (Standard Webhooks), again until they arrive."),
    CX_CLI_OPT(
        "alert-secret", 0, CX_CLI_FILE, "FILE",
        "The secret that signs them, whsec_ and base64; default HOME/alert-secret, which the "
        "first start makes."),
    CX_CLI_OPT("alertmanager", 0, CX_CLI_TEXT, "URL",
               "Send alerts to the Prometheus Alertmanager at this address, such as "
               "http://127.0.0.1:9093."),
    CX_CLI_OPT("alert-command", 0, CX_CLI_TEXT, "COMMAND",
               "Run this program for each alert, with the JSON on standard input; words are split "
               "at spaces, no shell is involved."),
    CX_CLI_OPT("unknown-key", 0, CX_CLI_CHOICE, "reject|keep",
               "Traces signed by a key that is not registered: reject them (the default), or keep "
               "them as unverified until it is."),
    CX_CLI_OPT_FLAG("open-signed", 0,
                    "Signed traces need no token, as CIRIS agents send them. A key that registers "
                    "itself waits, and with it what it signed, until 'cortex key approve' or "
                    "'cortex key reject' decides."),
    CX_CLI_OPT("open-requests", 0, CX_CLI_COUNT, "N",
               "Requests a minute without a token from one address; default 600. More are "
               "answered with 429."),
    CX_CLI_OPT("open-events", 0, CX_CLI_COUNT, "N",
               "Events a minute of one key without a token; default 600, and always a batch of "
               "1000. More are answered with 429."),
    CX_CLI_OPT("level-policy", 0, CX_CLI_CHOICE, "reject|strip",
               "What to do with traces that contain more than their level allows: reject them (the "
               "default), or store only what is allowed."),
    CX_CLI_OPT("forms", 0, CX_CLI_TEXT, "LETTERS",
               "Canonical forms that are tried, such as B,H; default all."),
    CX_CLI_OPTIONS_SENSITIVE,
    CX_CLI_OPT("workers", 0, CX_CLI_COUNT, "N", "Threads that verify and write; default 4 a core."),
    CX_CLI_OPT("readers", 0, CX_CLI_COUNT, "N", "Threads that answer questions; default 1 a core."),
    CX_CLI_OPT("io-threads", 0, CX_CLI_COUNT, "N",
               "Threads that send and receive; default 2 to 4."),
    CX_CLI_OPT("queue", 0, CX_CLI_COUNT, "N",
               "Writing requests that may wait; default 1024. More are answered with 503."),
    CX_CLI_OPT("max-body", 0, CX_CLI_SIZE, "SIZE", "Longest body; at most, and by default, 8M."),
    CX_CLI_OPT("body-memory", 0, CX_CLI_SIZE, "SIZE",
               "Memory for all bodies at once; default 256M."),
    CX_CLI_OPT("cache", 0, CX_CLI_SIZE, "SIZE",
               "Memory for pages of each file of tables that is open; at least 64K, default 64M."),
    CX_CLI_OPT("connections", 0, CX_CLI_COUNT, "N", "Connections at once; default 16384."),
    CX_CLI_OPT("connections-per-address", 0, CX_CLI_COUNT, "N",
               "The same from one address; default 1024, on loopback no limit."),
    CX_CLI_OPT("header-timeout", 0, CX_CLI_COUNT, "SECONDS",
               "For a whole header, and for a connection that sends nothing; default 30."),
    CX_CLI_OPT("body-timeout", 0, CX_CLI_COUNT, "SECONDS", "For a whole body; default 120."),
    CX_CLI_OPT("answer-timeout", 0, CX_CLI_COUNT, "SECONDS",
               "For reading a whole answer; default 300."),
    CX_CLI_OPT("grace", 0, CX_CLI_COUNT, "SECONDS",
               "How long running requests may take after a stop signal; default 15."),
    CX_CLI_OPT_FLAG("json", 0, "Print the addresses as one line of JSON."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_serve = {
    .name = "serve",
    .purpose = "run the server: receive traces and answer queries over HTTP",
    .about =
        "Serves the data directory. Agents send signed traces, and each is verified; a 200 "
        "response means that the trace is durable. Queries about traces, agents, proofs and "
        "histories are answered like the commands with --json. /openapi.json describes all "
        "endpoints.\n\nAll endpoints but /healthz and /readyz need a token (see 'cortex token'); "
        "the first start creates one and prints its path. SIGTERM or an interrupt stops the server "
        "after running requests are finished; a second one stops it immediately.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 stopped by a signal\n2 usage error, or something named does not exist\n3 could not "
             "serve: no data directory, owned by another process, address in use",
    .example = "cortex serve --listen 127.0.0.1:8420",
    .run = run_serve,
};

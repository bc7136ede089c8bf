/*
 * doctor_home.c - checks the data directory and what serving it needs: configuration, log,
 * tables, index, keys, tokens, owner, ports, libraries, disk, clock, and the interfaces for
 * other programs. Nothing is changed; ports are bound briefly and released. A missing data
 * directory is no failure, nor is a port in use by its own server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/api.h"
#include "cli/ledger/checkpoint.h"
#include "cli/config.h"
#include "cli/service/doctor.h"
#include "cli/ledger/owner.h"
#include "cli/trace/index_view.h"
#include "recorder/api.h"
#include "server/api.h"

#define DISK_LOW_BYTES (UINT64_C(1) << 30)
#define DISK_FULL_BYTES (UINT64_C(128) << 20) /* a new segment needs 64 MiB */
#define CLOCK_EARLIEST_S INT64_C(1767225600)  /* 2026-01-01: before the program was made */
#define CLOCK_AHEAD_S 300
#define NAMES_MAX 1024

typedef struct exam {
    cx_doctor *doctor;
    const cx_cli_args *args;
    const char *path; /* of the data directory */
    cx_home *home;    /* NULL = it could not be opened */
    cx_config config;
    bool has_config;
    cx_cli_owner owner;
} exam;

static const char *format_text(exam *e, const char *format, const char *what)
{
    cx_str made = cx_arena_printf(&e->doctor->cli->arena, format, what);
    return made.data;
}

/* --- the configuration ------------------------------------------------------------------------ */

static void check_config(exam *e)
{
    cx_err err = {0};
    size_t files = 0, settings = 0;
    cx_status status =
        cx_config_load(e->doctor->cli, cx_cli_value(e->args, "home"), &e->config, &err);
    if (cx_failed(status)) {
        cx_doctor_note(e->doctor, "config", CX_DOCTOR_FAIL,
                       "fix the file; 'cortex config check' checks it again", "%s", err.message);
        return;
    }
    e->has_config = true;
    for (size_t i = 0; i < CX_CONFIG_FILES; i++) {
        files += e->config.files[i].there;
        settings += e->config.files[i].count;
    }
    cx_doctor_note(e->doctor, "config", CX_DOCTOR_OK, NULL, "%zu files with %zu settings", files,
                   settings);
}

/* What a setting of [serve] is; NULL = not set. */
static const char *serve_setting(const exam *e, const char *name)
{
    for (size_t i = 0; e->has_config && i < CX_CONFIG_FILES; i++)
        for (size_t j = 0; j < e->config.files[i].count; j++) {
            const cx_setting *s = &e->config.files[i].settings[j];
            if (cx_str_is(s->section, "serve") && cx_str_is(s->name, name) && s->value_count != 0)
                return s->values[0];
        }
    return NULL;
}

/* --- the data directory ----------------------------------------------------------------------- */

static void check_privacy(exam *e)
{
    cx_facts facts;
    if (cx_failed(cx_path_facts(e->path, true, &facts, NULL)))
        return;
    if ((facts.mode & 077) != 0)
        cx_doctor_note(e->doctor, "home", CX_DOCTOR_WARN, format_text(e, "chmod 700 %s", e->path),
                       "%s can be opened by other users (mode %04o)", e->path, facts.mode);
    else if (facts.owner_id != cx_user_id())
        cx_doctor_note(e->doctor, "home", CX_DOCTOR_WARN, "use it as its owner",
                       "%s belongs to another user", e->path);
    else
        cx_doctor_note(e->doctor, "home", CX_DOCTOR_OK, NULL, "%s is readable by you only",
                       e->path);
}

static bool open_home(exam *e)
{
    const cx_home_options reading = cx_cli_home_options(e->doctor->cli, CX_CLI_READ, NULL);
    cx_err err = {0};
    cx_status status = cx_home_open(e->path, &reading, &e->home, &err);
    if (!cx_failed(status))
        return true;
    e->home = NULL;
    if (status.code == CX_E_NOT_FOUND)
        cx_doctor_note(e->doctor, "home", CX_DOCTOR_WARN, "cortex init", "%s", err.message);
    else
        cx_doctor_note(e->doctor, "log", CX_DOCTOR_FAIL,
                       "'cortex verify --home' shows where; make a copy before anything writes",
                       "%s", err.message);
    return false;
}

static cx_status count_entries(cx_home *home, size_t *out_actors, uint64_t *out_entries,
                               cx_err *err)
{
    cx_actor_walk walk;
    const cx_actor_info *info = NULL;
    cx_status status;
    cx_actor_walk_begin(&walk, home);
    while (!cx_failed(status = cx_actor_walk_next(&walk, &info, err)) && info != NULL) {
        ++*out_actors;
        *out_entries += info->entry_count;
    }
    cx_actor_walk_end(&walk);
    return status;
}

static void check_log(exam *e)
{
    size_t count = 0;
    cx_err err;
    uint64_t entries = 0, torn = cx_home_torn_bytes(e->home);
    if (cx_failed(count_entries(e->home, &count, &entries, &err))) {
        cx_doctor_note(e->doctor, "log", CX_DOCTOR_FAIL, "cortex verify --home", "%s", err.message);
        return;
    }
    if (torn != 0)
        cx_doctor_note(e->doctor, "log", CX_DOCTOR_WARN,
                       "nothing: they were never acknowledged, and the next write removes them",
                       "%llu bytes of an unfinished write are at its end",
                       (unsigned long long)torn);
    else
        cx_doctor_note(e->doctor, "log", CX_DOCTOR_OK, NULL,
                       "%llu entries of %zu actors; 'cortex verify --home' checks them all",
                       (unsigned long long)entries, count);
}

static void check_tables(exam *e)
{
    cx_tables_status tables;
    cx_cli_index_view index;
    cx_err err;
    const char *where = cx_recorder_index_path(e->path, &e->doctor->cli->arena);
    const char *set = cx_cli_value(e->args, "db");
    if (set == NULL && e->has_config)
        set = cx_config_common(&e->config, "db");
    if (cx_failed(cx_home_tables_status(e->home, &tables, &err))) {
        cx_doctor_note(e->doctor, "tables", CX_DOCTOR_FAIL, "cortex tables rebuild", "%s",
                       err.message);
        return;
    }
    uint64_t lag = tables.log_commits - tables.table_commits;
    cx_doctor_note(e->doctor, "tables", lag == 0 ? CX_DOCTOR_OK : CX_DOCTOR_WARN,
                   "nothing: the next command that writes brings them up to date",
                   "%llu commits not yet flushed from the log", (unsigned long long)lag);
    if (where == NULL)
        return;
    cx_cli_index_inspect(e->home, set == NULL ? where : set, &index);
    lag = cx_cli_index_lag(&index, &tables);
    if (!index.there && index.why_not.code == CX_E_NOT_FOUND)
        cx_doctor_note(e->doctor, "index", CX_DOCTOR_OK, NULL,
                       "none yet: it is created by the first query");
    else if (!index.there)
        cx_doctor_note(e->doctor, "index", CX_DOCTOR_FAIL,
                       cx_index_advice(index.where, &index.why_not), "%s", index.why_not.message);
    else if (!index.ours)
        cx_doctor_note(e->doctor, "index", CX_DOCTOR_FAIL, "name another database with --db",
                       "it belongs to another data directory");
    else
        cx_doctor_note(e->doctor, "index", CX_DOCTOR_OK, NULL,
                       "%s, %llu traces, lag of %llu commits", index.status.engine,
                       (unsigned long long)index.status.trace_rows, (unsigned long long)lag);
}

static void check_trust(exam *e)
{
    const cx_recorder_options options = {.alloc = e->doctor->cli->alloc};
    cx_recorder *recorder = NULL;
    cx_trust trust;
    cx_err err;
    size_t revoked = 0;
    cx_status status = cx_recorder_open(e->home, &options, &recorder, &err);
    if (!cx_failed(status))
        status = cx_recorder_trust(recorder, &e->doctor->cli->arena, &trust, &err);
    if (cx_failed(status)) {
        cx_doctor_note(e->doctor, "keys", CX_DOCTOR_FAIL, NULL, "%s", err.message);
    } else {
        for (size_t i = 0; i < trust.count; i++)
            revoked += trust.keys[i].revoked_at != CX_TIME_NONE;
        cx_doctor_note(e->doctor, "keys", CX_DOCTOR_OK, NULL,
                       "%zu public keys for traces, %zu revoked%s", trust.count - revoked, revoked,
                       trust.count == 0 ? "; without one every trace is rejected (cortex key add)"
                                        : "");
    }
    cx_recorder_close(recorder);
}

/* --- signed checkpoints and API tokens -------------------------------------------------------- */

typedef struct signing {
    exam *e;
    size_t count;
    const char *bad;
} signing;

static bool check_signed_file(void *arg, const char *name)
{
    signing *s = arg;
    cx_cli_stored_checkpoint kept;
    cx_err err;
    cx_str path = cx_arena_printf(&s->e->doctor->cli->arena, "%s/keys/%s", s->e->path, name);
    if (strncmp(name, "checkpoint-", 11) != 0 || path.data == NULL)
        return true;
    s->count++;
    if (cx_failed(cx_cli_read_checkpoint(s->e->doctor->cli, path.data, &kept, &err)))
        s->bad = path.data;
    return s->count < NAMES_MAX;
}

static void check_signed(exam *e)
{
    signing s = {.e = e};
    cx_str folder = cx_arena_printf(&e->doctor->cli->arena, "%s/keys", e->path);
    if (folder.data == NULL)
        return;
    (void)e->doctor->cli->io->list(e->doctor->cli->io, folder.data, check_signed_file, &s);
    if (s.bad != NULL)
        cx_doctor_note(e->doctor, "checkpoints", CX_DOCTOR_FAIL,
                       "restore the file from a copy: without it nothing is signed",
                       "%s cannot be read", s.bad);
    else
        cx_doctor_note(e->doctor, "checkpoints", CX_DOCTOR_OK, NULL,
                       "%zu origins with a signed checkpoint%s", s.count,
                       s.count == 0 ? "; a checkpoint stored elsewhere reveals truncation" : "");
}

static bool is_private_file(exam *e, const char *name, bool *out_there)
{
    cx_facts facts;
    cx_str path = cx_arena_printf(&e->doctor->cli->arena, "%s/%s", e->path, name);
    *out_there = path.data != NULL && !cx_failed(cx_path_facts(path.data, false, &facts, NULL));
    return !*out_there || (facts.mode & 077) == 0;
}

static void check_tokens(exam *e)
{
    cx_tokens tokens;
    cx_err err;
    bool there, also;
    int64_t now = (int64_t)e->doctor->cli->io->wall_ns(e->doctor->cli->io);
    size_t over = 0;
    bool closed = is_private_file(e, "tokens.json", &there);
    closed = is_private_file(e, "token", &also) && closed;
    if (cx_failed(
            cx_tokens_read(e->doctor->cli->io, e->path, &e->doctor->cli->arena, &tokens, &err))) {
        cx_doctor_note(e->doctor, "tokens", CX_DOCTOR_FAIL,
                       "restore HOME/tokens.json, or remove it and create new tokens",
                       "all requests are rejected: %s", err.message);
        return;
    }
    for (size_t i = 0; i < tokens.count; i++)
        over += tokens.items[i].expires_ns != CX_TIME_NONE && tokens.items[i].expires_ns <= now;
    if (!closed)
        cx_doctor_note(e->doctor, "tokens", CX_DOCTOR_FAIL,
                       "chmod 600 HOME/token HOME/tokens.json, then create new tokens",
                       "other users can read a token file");
    else
        cx_doctor_note(e->doctor, "tokens", CX_DOCTOR_OK, NULL, "%zu, of which %zu have expired",
                       tokens.count, over);
}

/* --- serving ---------------------------------------------------------------------------------- */

static void check_owner(exam *e)
{
    cx_cli_owner_find(e->doctor->cli, e->path, &e->owner);
    if (!e->owner.held)
        cx_doctor_note(e->doctor, "owner", CX_DOCTOR_OK, NULL,
                       "no writer process: commands open the data directory themselves");
    else if (e->owner.socket)
        cx_doctor_note(e->doctor, "owner", CX_DOCTOR_OK, NULL,
                       "process %s (%.*s) owns the data directory; others write through its socket",
                       e->owner.pid, (int)e->owner.command.size,
                       e->owner.command.data == NULL ? "" : e->owner.command.data);
    else
        cx_doctor_note(
            e->doctor, "owner", CX_DOCTOR_WARN, "wait until it ends, or stop it",
            "process %s owns the data directory and serves no socket: others cannot write",
            e->owner.pid);
}

static void check_library(exam *e, const char *name, const char *file, const char *fix,
                          const char *what)
{
    cx_library *library = NULL;
    cx_err err;
    if (cx_failed(cx_library_load(file, &library, &err)))
        cx_doctor_note(e->doctor, name, CX_DOCTOR_WARN, cx_library_advice(fix), "%s is missing: %s",
                       file, what);
    else
        cx_doctor_note(e->doctor, name, CX_DOCTOR_OK, NULL, "%s is present", file);
    cx_library_close(library);
}

static void check_http_post(exam *e)
{
    if (cx_failed(cx_http_post_ready(NULL)))
        cx_doctor_note(e->doctor, "webhooks", CX_DOCTOR_WARN,
                       cx_library_advice("apt install libcurl3-gnutls"),
                       "libcurl is missing: alerts over HTTP need it");
    else
        cx_doctor_note(e->doctor, "webhooks", CX_DOCTOR_OK, NULL, "libcurl is present");
}

static void check_port(exam *e, const char *name, const char *setting, const char *fallback)
{
    const char *set = serve_setting(e, setting);
    cx_tcp_address address;
    cx_err err;
    int socket;
    if (set != NULL && strcmp(set, "off") == 0) {
        cx_doctor_note(e->doctor, name, CX_DOCTOR_OK, NULL, "switched off");
        return;
    }
    cx_status status = cx_tcp_address_parse(set == NULL ? fallback : set, &address, &err);
    if (!cx_failed(status))
        status = cx_tcp_listen(&address, &socket, &err);
    if (!cx_failed(status)) {
        cx_tcp_close(socket);
        cx_doctor_note(e->doctor, name, CX_DOCTOR_OK, NULL, "%s is free",
                       set == NULL ? fallback : set);
        return;
    }
    bool ours = status.code == CX_E_BUSY && e->owner.held && e->owner.socket;
    cx_doctor_note(e->doctor, name, ours ? CX_DOCTOR_OK : CX_DOCTOR_WARN,
                   "stop the program that uses it, or choose another address in section [serve]",
                   "%s%s", err.message, ours ? " (the data directory is being served)" : "");
}

/* --- the machine ------------------------------------------------------------------------------ */

static void check_disk(exam *e)
{
    uint64_t room, all;
    cx_err err;
    if (cx_failed(cx_path_space(e->path, &room, &all, &err)))
        return;
    cx_doctor_note(
        e->doctor, "disk",
        room < DISK_FULL_BYTES  ? CX_DOCTOR_FAIL
        : room < DISK_LOW_BYTES ? CX_DOCTOR_WARN
                                : CX_DOCTOR_OK,
        "free space, or move the data directory: writes are rejected before the disk is full",
        "%llu MiB free of %llu", (unsigned long long)(room >> 20), (unsigned long long)(all >> 20));
}

/* The time of the newest entry of all actors; 0 = there is none. */
static int64_t newest_entry(exam *e)
{
    const cx_actor_info *actors;
    cx_entry_view view;
    size_t count;
    int64_t newest = 0;
    if (e->home == NULL ||
        cx_failed(cx_home_actors_from(e->home, 0, NAMES_MAX, &e->doctor->cli->arena, &actors,
                                      &count, NULL)))
        return 0;
    for (size_t i = 0; i < count && i < NAMES_MAX; i++)
        if (actors[i].entry_count != 0 &&
            !cx_failed(cx_home_entry(e->home, actors[i].name, actors[i].entry_count - 1,
                                     &e->doctor->cli->arena, &view, NULL)) &&
            view.entry.created_at_ns > newest)
            newest = view.entry.created_at_ns;
    return newest;
}

static void check_clock(exam *e)
{
    int64_t now = cx_cli_seconds((int64_t)e->doctor->cli->io->wall_ns(e->doctor->cli->io));
    int64_t ahead = cx_cli_seconds(newest_entry(e)) - now;
    if (now < CLOCK_EARLIEST_S)
        cx_doctor_note(e->doctor, "clock", CX_DOCTOR_FAIL, "set it; see timedatectl",
                       "it is earlier than the build of this program");
    else if (ahead > CLOCK_AHEAD_S)
        cx_doctor_note(e->doctor, "clock", CX_DOCTOR_WARN, "set it; see timedatectl",
                       "the newest entry is %lld seconds in the future: it is slow, or was fast",
                       (long long)ahead);
    else
        cx_doctor_note(e->doctor, "clock", CX_DOCTOR_OK, NULL, "no entry is in the future");
}

/* --- MCP -------------------------------------------------------------------------------------- */

static cx_status never_asked(void *arg, cx_str target, cx_arena *arena, cx_mcpd_reply *out,
                             cx_err *err)
{
    (void)arg;
    (void)target;
    (void)arena;
    (void)out;
    return cx_fail(err, CX_E_UNSUPPORTED, "nothing is asked here");
}

static void check_mcp(exam *e)
{
    static const char hello[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
        "{\"protocolVersion\":\"2025-06-18\"}}";
    static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}";
    const cx_mcpd_host host = {.arg = NULL, .ask = never_asked};
    cx_mcpd_session session = CX_MCPD_SESSION_INIT;
    cx_json answer;
    cx_buf out;
    const cx_json *tools = NULL;
    cx_buf_init(&out, e->doctor->cli->alloc);
    bool good = !cx_failed(cx_mcpd_answer(&host, &session, CX_STR(hello), e->doctor->cli->alloc,
                                          &out, NULL)) &&
                session.begun;
    cx_buf_clear(&out);
    good = good &&
           !cx_failed(
               cx_mcpd_answer(&host, &session, CX_STR(list), e->doctor->cli->alloc, &out, NULL)) &&
           !cx_failed(cx_json_parse_text(cx_buf_str(&out), &e->doctor->cli->arena, &answer, NULL));
    if (good)
        tools = cx_json_pointer(&answer, CX_STR("/result/tools"));
    if (tools != NULL && tools->count != 0)
        cx_doctor_note(e->doctor, "mcp", CX_DOCTOR_OK, NULL, "it greets, and has %u tools",
                       (unsigned)tools->count);
    else
        cx_doctor_note(e->doctor, "mcp", CX_DOCTOR_FAIL, NULL,
                       "it does not answer as the protocol requires");
    cx_buf_done(&out);
}

/* --- all of it -------------------------------------------------------------------------------- */

static void check_home(exam *e)
{
    cx_err err;
    if (cx_failed(cx_cli_home_path(e->doctor->cli, e->args, &e->path, &err))) {
        cx_doctor_note(e->doctor, "home", CX_DOCTOR_WARN, "set CORTEX_HOME", "%s", err.message);
        e->path = ".";
        return;
    }
    bool there = open_home(e);
    if (there) {
        check_privacy(e);
        check_log(e);
        check_tables(e);
        check_trust(e);
        check_signed(e);
        check_tokens(e);
        check_owner(e);
    }
    check_disk(e);
}

void cx_doctor_check_home(cx_doctor *doctor, const cx_cli_args *args)
{
    exam e = {.doctor = doctor, .args = args};
    check_config(&e);
    if (e.has_config)
        doctor->cli->configured_home = cx_config_common(&e.config, "home");
    check_home(&e);
    check_clock(&e);
    check_library(&e, "http", "libmicrohttpd.so.12", "apt install libmicrohttpd12",
                  "'cortex serve' needs it");
    check_library(&e, "grpc", "libnghttp2.so.14", "apt install libnghttp2-14",
                  "OTLP over gRPC needs it");
    check_library(&e, "postgresql", "libpq.so.5", "apt install libpq5",
                  "an index in PostgreSQL needs it");
    check_http_post(&e);
    check_port(&e, "listen", "listen", "127.0.0.1:8420");
    check_port(&e, "otlp", "otlp", "127.0.0.1:4318");
    check_port(&e, "otlp-grpc", "otlp-grpc", "127.0.0.1:4317");
    check_mcp(&e);
    cx_status closed = cx_home_close(e.home, NULL);
    (void)closed; /* nothing was written */
}

/*
 * serve_fleet.c - the parent of a node: holds the public address, and hands each connection on to
 * where the part is served now.
 *
 * Connections go to the own worker, else to the node whose address is in the database, else they
 * wait (option --hold).  A node is asked to end by a signal, to give its part back by an operator
 * ('cortex fleet drain'); in both cases the worker finishes what it has, and connections go on.
 */
#include "cli/fleet/serve_fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/fleet/part_home.h"
#include "cli/ledger/ledger.h"
#include "server/api.h"

#define LEASE_S_MAX 600
#define HOLD_S_DEFAULT 30
#define HOLD_S_MAX 3600
#define SILENT_S_DEFAULT 5
#define SILENT_S_MAX 600
#define GRACE_S_DEFAULT 15
#define ANSWER_S_DEFAULT 300
#define CONNECTIONS_DEFAULT 16384
#define PER_ADDRESS_DEFAULT 1024
#define DESCRIPTORS_RESERVED 64
#define STEP_MS 50
#define REFUSED_SHOWN_MS 10000
#define HELD_SHOWN_MS 250 /* shorter is not worth a line */
#define HANDED_MS 5000    /* a part that was given back for a node is taken by it within */
#define MS UINT64_C(1000000)

#define BUSY_DETAIL "no node of the fleet serves this part now"
static const char busy_answer[] =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
    "Retry-After: 5\r\nConnection: close\r\nContent-Length: 125\r\n\r\n"
    "{\"detail\":\"" BUSY_DETAIL "\",\"status\":503,\"title\":\"Not now\","
    "\"type\":\"urn:cortex:problem:unavailable\"}";

typedef struct node {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *url; /* of the database */
    cx_str part;
    const char *name;
    cx_tcp_address outer, inner;
    const char *address; /* of the inner socket, as others reach it */
    uint32_t grace_ms, hold_ms;
    cx_forward_tls *tls; /* between nodes; NULL = none */
    cx_forward *forward;
    cx_serve_process process;
    cx_serve_node known;
    /* As connections were handed on last. */
    cx_serve_state state;
    char owner[CX_FLEET_ADDRESS_MAX + 1];
    bool drains, hands;
    uint64_t given_ns; /* the worker has ended, for another node; 0 = it has not */
    /* Of the forwarder's thread: what was told last, and when. */
    char refused[512];
    uint64_t refused_ns;
    uint64_t held_ns, held_most; /* since when, and how many; 0 = none is held */
} node;

static uint64_t now_ns(void)
{
    const cx_io *io = cx_io_system();
    return io->monotonic_ns(io);
}

/* --- the question ----------------------------------------------------------------------------- */

static cx_status read_number(const cx_cli_args *args, const char *name, uint64_t max,
                             uint64_t fallback, uint64_t *out, cx_err *err)
{
    *out = cx_cli_number(args, name, fallback);
    if (cx_cli_has(args, name) && (*out == 0 || *out > max))
        return cx_fail(err, CX_E_USAGE, "option --%s: expected 1 to %" PRIu64, name, max);
    return CX_SUCCESS;
}

/* A node's part has no folder, and its worker no address of its own. */
static cx_status check_others(const cx_cli_args *args, cx_err *err)
{
    static const char *const alone[] = {"home", "repo"};
    static const char *const off[] = {"otlp", "otlp-grpc"};
    for (size_t i = 0; i < CX_COUNT_OF(alone); i++)
        if (cx_cli_has(args, alone[i]))
            return cx_fail(err, CX_E_USAGE,
                           "option --%s: not with --fleet, whose part is the data directory, and "
                           "is served by one machine now and by another one later",
                           alone[i]);
    for (size_t i = 0; i < CX_COUNT_OF(off); i++)
        if (cx_cli_has(args, off[i]) && strcmp(cx_cli_value(args, off[i]), "off") != 0)
            return cx_fail(err, CX_E_USAGE,
                           "option --%s: with --fleet exporters send to the address of --listen, "
                           "with a token",
                           off[i]);
    return CX_SUCCESS;
}

static cx_status read_name(node *n, cx_err *err)
{
    const char *given = cx_cli_value(n->args, "node");
    cx_buf host;
    cx_buf_init(&host, n->cli->alloc);
    cx_status status = given == NULL ? cx_machine_host(&host, err) : CX_SUCCESS;
    cx_str name = given == NULL ? cx_buf_str(&host) : cx_str_z(given);
    if (!cx_failed(status)) {
        name = cx_arena_copy_str(&n->cli->arena, name);
        status = name.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&host);
    CX_TRY(status);
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] <= ' ' || name.data[i] > '~' || name.data[i] == '/')
            name.size = 0;
    if (name.size == 0 || name.size > CX_FLEET_NODE_MAX)
        return cx_fail(err, CX_E_USAGE,
                       "option --node: expected 1 to %d printable characters of ASCII without "
                       "space and '/'",
                       CX_FLEET_NODE_MAX);
    n->name = name.data;
    return CX_SUCCESS;
}

/* Both addresses are reached by others when they are not on loopback. */
static cx_status read_addresses(node *n, cx_err *err)
{
    const char *listen = cx_cli_value(n->args, "listen");
    const char *inner = cx_cli_value(n->args, "node-listen");
    bool tls = cx_cli_has(n->args, "tls-cert"), insecure = cx_cli_has(n->args, "insecure");
    CX_TRY(cx_tcp_address_parse(listen == NULL ? "127.0.0.1:8420" : listen, &n->outer, err));
    CX_TRY(cx_tcp_address_parse(inner == NULL ? "127.0.0.1:0" : inner, &n->inner, err));
    if (tls != cx_cli_has(n->args, "tls-key"))
        return cx_fail(err, CX_E_USAGE, "certificate and key must be given together");
    CX_TRY(cx_server_check_reach(&n->outer, tls, insecure, err));
    return cx_server_check_reach(&n->inner, tls || n->tls != NULL, insecure, err);
}

static cx_status read_tls(node *n, cx_err *err)
{
    const cx_forward_tls_options options = {.cert = cx_cli_value(n->args, "node-tls-cert"),
                                            .key = cx_cli_value(n->args, "node-tls-key"),
                                            .ca = cx_cli_value(n->args, "node-tls-ca"),
                                            .name = cx_cli_value(n->args, "node-tls-name")};
    bool any = options.cert != NULL || options.key != NULL || options.ca != NULL;
    if (!any && options.name == NULL)
        return CX_SUCCESS;
    if (options.cert == NULL || options.key == NULL || options.ca == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "options --node-tls-cert, --node-tls-key and --node-tls-ca must be given "
                       "together");
    return cx_forward_tls_open(&options, &n->tls, err);
}

static cx_status read_question(node *n, cx_err *err)
{
    uint64_t lease, hold, silent, grace = cx_cli_number(n->args, "grace", GRACE_S_DEFAULT);
    const char *fleet = cx_cli_value(n->args, "fleet");
    if (!cx_cli_is_database(fleet))
        return cx_fail(err, CX_E_USAGE,
                       "option --fleet: expected postgresql://USER@HOST:PORT/DATABASE, with #PART "
                       "for another part than main");
    CX_TRY(cx_cli_split_database(&n->cli->arena, fleet, &n->url, &n->part, err));
    CX_TRY(check_others(n->args, err));
    CX_TRY(read_number(n->args, "hold", HOLD_S_MAX, HOLD_S_DEFAULT, &hold, err));
    CX_TRY(read_number(n->args, "lease", LEASE_S_MAX, CX_FLEET_LEASE_MS / 1000, &lease, err));
    CX_TRY(read_number(n->args, "worker-timeout", SILENT_S_MAX, SILENT_S_DEFAULT, &silent, err));
    n->hold_ms = (uint32_t)hold * 1000;
    n->process.silent_s = (unsigned)silent;
    n->grace_ms = (uint32_t)(grace % 86400) * 1000;
    CX_TRY(read_name(n, err));
    CX_TRY(read_tls(n, err));
    return read_addresses(n, err);
}

/* --- opening ---------------------------------------------------------------------------------- */

static cx_str address_text(cx_arena *arena, const cx_tcp_address *address)
{
    return cx_arena_printf(arena, "%s%s%s:%u", address->is_v6 ? "[" : "", address->host,
                           address->is_v6 ? "]" : "", (unsigned)address->port);
}

/* What others connect to: the inner socket, unless that listens everywhere. */
static cx_status read_own_address(node *n, cx_err *err)
{
    const char *given = cx_cli_value(n->args, "node-address");
    bool everywhere = strcmp(n->inner.host, "0.0.0.0") == 0 || strcmp(n->inner.host, "::") == 0;
    cx_tcp_address address = n->inner;
    if (given != NULL)
        CX_TRY(cx_tcp_address_parse(given, &address, err));
    else if (everywhere)
        return cx_fail(err, CX_E_USAGE,
                       "option --node-listen: %s is no address that other nodes can connect to; "
                       "name one with --node-address ADDR:PORT",
                       n->inner.host);
    if (address.port == 0)
        address.port = n->inner.port;
    n->address = address_text(&n->cli->arena, &address).data;
    return n->address == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Of the thread of the forwarder.  The same is told once in a while: anyone can connect. */
static void say_refused(void *arg, const char *why)
{
    node *n = arg;
    uint64_t now = now_ns();
    if (strcmp(why, n->refused) == 0 && now < n->refused_ns + REFUSED_SHOWN_MS * MS)
        return;
    (void)snprintf(n->refused, sizeof n->refused, "%s", why);
    n->refused_ns = now;
    cx_cli_complain("serve: TLS between nodes: %s", why);
}

static cx_status open_forward(node *n, cx_err *err)
{
    uint64_t connections, per_address, answer_s;
    cx_forward_options options = {.alloc = n->cli->alloc,
                                  .outer = CX_SOCKET_NONE,
                                  .inner = CX_SOCKET_NONE,
                                  .hold_ms = n->hold_ms,
                                  .tls = n->tls,
                                  .refused = say_refused,
                                  .refused_arg = n,
                                  .answer = busy_answer};
    CX_TRY(read_number(n->args, "connections", 1000000, CONNECTIONS_DEFAULT, &connections, err));
    CX_TRY(read_number(n->args, "connections-per-address", 1000000,
                       n->outer.is_loopback ? 0 : PER_ADDRESS_DEFAULT, &per_address, err));
    CX_TRY(read_number(n->args, "answer-timeout", 86400, ANSWER_S_DEFAULT, &answer_s, err));
    /* Each has two descriptors. */
    uint64_t descriptors = cx_tcp_descriptors(connections * 2 + DESCRIPTORS_RESERVED);
    if (descriptors < DESCRIPTORS_RESERVED + 16)
        return cx_fail(err, CX_E_LIMIT,
                       "the limit of %" PRIu64 " file descriptors is too low; raise it with "
                       "ulimit -n",
                       descriptors);
    if (connections > (descriptors - DESCRIPTORS_RESERVED) / 2)
        connections = (descriptors - DESCRIPTORS_RESERVED) / 2;
    options.connections = (unsigned)connections;
    options.connections_per_address = (unsigned)per_address;
    options.idle_ms = (uint32_t)(answer_s + 10) * 1000; /* the worker's limits come first */
    CX_TRY(cx_tcp_listen(&n->outer, &options.outer, err));
    cx_status status = cx_tcp_listen(&n->inner, &options.inner, err);
    if (cx_failed(status)) {
        cx_tcp_close(options.outer);
        return status;
    }
    return cx_forward_open(&options, &n->forward, err);
}

/* --- the worker's command line ---------------------------------------------------------------- */

/* Of the parent only; the worker has its own values of these. */
static bool is_parents(const char *name)
{
    static const char *const names[] = {"fleet",
                                        "listen",
                                        "node",
                                        "node-listen",
                                        "node-address",
                                        "hold",
                                        "json",
                                        "home",
                                        "otlp",
                                        "otlp-grpc",
                                        "connections-per-address",
                                        "worker-timeout",
                                        "keep-part",
                                        "node-tls-cert",
                                        "node-tls-key",
                                        "node-tls-ca",
                                        "node-tls-name"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static cx_status make_argv(node *n, cx_err *err)
{
    static const char *const own[] = {"--listen", "127.0.0.1:0", "--json", "--otlp",
                                      "off",      "--otlp-grpc", "off"};
    cx_arena *arena = &n->cli->arena;
    size_t count = 0, max = 4 + CX_COUNT_OF(own) + n->args->given_count * 3;
    const char **argv = CX_ARENA_ARRAY(arena, const char *, max);
    cx_str program = CX_STR("");
    cx_buf real;
    if (argv == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&real, n->cli->alloc);
    cx_status status = cx_path_real(cx_machine_program(), &real, err);
    if (!cx_failed(status))
        program = cx_arena_copy_str(arena, cx_buf_str(&real));
    cx_buf_done(&real);
    CX_TRY(status);
    argv[count++] = program.data;
    argv[count++] = "serve";
    for (size_t i = 0; i < n->args->given_count; i++) {
        const cx_cli_given *given = &n->args->given[i];
        const char *name = n->args->command->options[given->option].name;
        if (is_parents(name))
            continue;
        /* One word: a value may begin with a dash. */
        argv[count] = given->values[0] == NULL
                          ? cx_arena_printf(arena, "--%s", name).data
                          : cx_arena_printf(arena, "--%s=%s", name, given->values[0]).data;
        if (argv[count++] == NULL)
            return cx_fail_nomem(err);
    }
    for (size_t i = 0; i < CX_COUNT_OF(own); i++)
        argv[count++] = own[i];
    argv[count] = NULL;
    n->process.argv = argv;
    return program.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* The address of the database goes there: it may have a password, and command lines are seen. */
static cx_status make_envp(node *n, cx_err *err)
{
    static const char *const replaced[] = {"CORTEX_HOME=", CX_SERVE_WORKER_ENV "=",
                                           "CORTEX_SERVE_"};
    const char *const *from = cx_machine_environment();
    size_t count = 0, have = 0;
    while (from[have] != NULL)
        have++;
    const char **envp = CX_ARENA_ARRAY(&n->cli->arena, const char *, have + 3);
    if (envp == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < have; i++) {
        bool drops = false;
        for (size_t k = 0; k < CX_COUNT_OF(replaced); k++)
            drops = drops || strncmp(from[i], replaced[k], strlen(replaced[k])) == 0;
        if (!drops)
            envp[count++] = from[i];
    }
    envp[count++] = cx_arena_printf(&n->cli->arena, "CORTEX_HOME=%s#%.*s", n->url,
                                    (int)n->part.size, n->part.data)
                        .data;
    envp[count++] = n->process.env;
    if (envp[count - 2] == NULL)
        return cx_fail_nomem(err);
    envp[count] = NULL;
    n->process.envp = envp;
    return CX_SUCCESS;
}

static cx_status open_node(node *n, cx_err *err)
{
    CX_TRY(read_question(n, err));
    CX_TRY(open_forward(n, err));
    CX_TRY(read_own_address(n, err));
    CX_TRY(make_argv(n, err));
    CX_TRY(make_envp(n, err));
    n->process.cli = n->cli;
    n->process.node = &n->known;
    n->process.name = n->name;
    n->process.node_address = n->address;
    n->process.client_port = n->outer.port;
    n->process.grace_ms = n->grace_ms;
    const char *clients = address_text(&n->cli->arena, &n->outer).data;
    if (clients == NULL)
        return cx_fail_nomem(err);
    n->known = (cx_serve_node){.url = n->url,
                               .name = n->name,
                               .address = n->address,
                               .clients = clients,
                               .part = n->part,
                               .balances = !cx_cli_has(n->args, "keep-part")};
    CX_TRY(cx_serve_node_open(&n->known, err));
    return cx_serve_watch_open(&n->process.watch, err);
}

static cx_status print_urls(const node *n, cx_err *err)
{
    cx_arena *arena = &n->cli->arena;
    cx_str at = address_text(arena, &n->outer);
    cx_str url =
        cx_arena_printf(arena, "%s://%.*s", cx_cli_has(n->args, "tls-cert") ? "https" : "http",
                        (int)at.size, at.data);
    cx_buf out;
    cx_status status;
    if (at.data == NULL || url.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&out, n->cli->alloc);
    if (cx_cli_has(n->args, "json")) {
        cx_json_list json = cx_json_list_begin(arena);
        cx_json_put_z(&json, "node", n->name);
        cx_json_put_z(&json, "node_address", n->address);
        cx_json_put_str(&json, "part", n->part);
        cx_json_put_str(&json, "url", url);
        status = cx_cli_end_json(&json, &out, err);
    } else {
        cx_buf_printf(&out, "cortex %s listens on %.*s\nnode   ", cx_version(), (int)url.size,
                      url.data);
        cx_shown_add(&out, cx_str_z(n->name));
        cx_buf_printf(&out, " at %s, of the part ", n->address);
        cx_shown_add(&out, n->part);
        cx_buf_add_byte(&out, '\n');
        status = cx_buf_check(&out, err);
    }
    if (!cx_failed(status))
        cx_cli_out_write(&n->cli->out, cx_buf_str(&out));
    cx_buf_done(&out);
    return status;
}

/* --- running ---------------------------------------------------------------------------------- */

static void say_state(const node *n)
{
    if (n->process.state == CX_SERVE_READY)
        cx_cli_complain("serve: this node has the part %.*s, and serves it", (int)n->part.size,
                        n->part.data);
    else if (n->state == CX_SERVE_READY)
        cx_cli_complain("serve: this node does not serve the part %.*s any more", (int)n->part.size,
                        n->part.data);
}

static void say_held(node *n, uint64_t held)
{
    if (held != 0) {
        n->held_ns = n->held_ns == 0 ? now_ns() : n->held_ns;
        n->held_most = held > n->held_most ? held : n->held_most;
        return;
    }
    if (n->held_ns != 0 && now_ns() - n->held_ns >= HELD_SHOWN_MS * MS)
        cx_cli_complain("serve: connections were held for %" PRIu64 " ms, at most %" PRIu64
                        " at once",
                        (now_ns() - n->held_ns) / MS, n->held_most);
    n->held_ns = n->held_most = 0;
}

/* N5, with the lock held: whether the part is another node's to take.  Not any more when one has
 * it, or none does soon. */
static bool look_at_move(node *n)
{
    cx_serve_node *known = &n->known;
    bool ready = n->process.state == CX_SERVE_READY;
    memcpy(known->serving, ready ? n->process.owner : "", ready ? sizeof known->serving : 1);
    if (!known->hands)
        n->given_ns = 0;
    else if (n->process.child != NULL)
        return true;
    else if (n->given_ns == 0)
        n->given_ns = now_ns();
    if (n->given_ns != 0 && (known->owner[0] != 0 || now_ns() >= n->given_ns + HANDED_MS * MS))
        known->hands = false;
    return known->hands;
}

static void say_move(const node *n, bool hands, const char *to)
{
    if (hands)
        cx_cli_complain("serve: this node has more parts than its share, and hands the part %.*s "
                        "over to the node %s",
                        (int)n->part.size, n->part.data, to);
    else if (n->owner[0] == 0)
        cx_cli_complain("serve: no node has taken the part %.*s over: this one takes it again",
                        (int)n->part.size, n->part.data);
}

/* Looks at what is known, and hands connections on accordingly; whether the part is to be given
 * back. */
static bool look(node *n)
{
    cx_tcp_address other;
    char owner[CX_FLEET_ADDRESS_MAX + 1], to[CX_FLEET_NODE_MAX + 1];
    cx_forward_counts counts = cx_forward_count(n->forward);
    bool ready = n->process.state == CX_SERVE_READY;
    cx_lock_enter(&n->known.lock);
    bool drains = n->known.drains, hands = look_at_move(n);
    n->known.counts = (cx_fleet_counts){counts.open,     counts.held,     counts.own,
                                        counts.accepted, counts.given_up, counts.refused};
    memcpy(owner, n->known.owner, sizeof owner);
    memcpy(to, n->known.to, sizeof to);
    n->known.hurries = !ready && (owner[0] == 0 || counts.held != 0);
    cx_lock_leave(&n->known.lock);
    if (drains != n->drains)
        cx_cli_complain(drains ? "serve: an operator drains this node: it gives its part back"
                               : "serve: an operator has ended the draining of this node");
    if (n->process.state != n->state || strcmp(owner, n->owner) != 0) {
        bool has_other = owner[0] != 0 && !cx_failed(cx_tcp_address_parse(owner, &other, NULL));
        cx_forward_to(n->forward, ready ? &n->process.address : NULL, has_other ? &other : NULL);
        say_state(n);
    }
    say_held(n, counts.held);
    memcpy(n->owner, owner, sizeof owner);
    if (hands != n->hands)
        say_move(n, hands, to);
    n->drains = drains;
    n->hands = hands;
    n->state = n->process.state;
    return drains || hands;
}

static void step(node *n, bool wanted, uint32_t wait_ms)
{
    cx_forward_counts counts = cx_forward_count(n->forward);
    bool gives = look(n);
    n->process.counts = counts;
    cx_serve_process_step(&n->process, wanted && !gives, counts.own, wait_ms);
    (void)look(n);
}

/* Until a signal; false: the worker cannot work. */
static bool run_node(node *n, const sigset_t *ends, const sigset_t *before)
{
    while (cx_machine_await_signal(ends, 0) == 0) {
        step(n, true, STEP_MS);
        if (n->process.fails)
            return false;
    }
    /* A second one ends both at once: what was acknowledged is in the database. */
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
    return true;
}

static bool has_successor(node *n)
{
    cx_lock_enter(&n->known.lock);
    bool has = n->known.owner[0] != 0 || !n->known.has_others;
    cx_lock_leave(&n->known.lock);
    return has;
}

/* First the worker; then those who wait go to the next owner; then those who are there finish. */
static void end_node(node *n)
{
    cx_cli_complain("serve: stopping after the running requests");
    while (n->process.child != NULL)
        step(n, false, STEP_MS);
    uint64_t end = now_ns() + n->grace_ms * MS;
    /* What was known of owners is from before. */
    cx_lock_enter(&n->known.lock);
    n->known.owner[0] = 0;
    cx_lock_leave(&n->known.lock);
    while (now_ns() < end &&
           (!has_successor(n) || (cx_forward_count(n->forward).held != 0 && n->owner[0] != 0)))
        step(n, false, STEP_MS);
    cx_forward_stop(n->forward);
    while (now_ns() < end && cx_forward_count(n->forward).open != 0 && n->owner[0] != 0)
        step(n, false, STEP_MS);
}

int cx_cli_serve_fleet(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    sigset_t ends, before;
    node n = {.cli = cli, .args = args};
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &ends, &before);
    cx_status status = open_node(&n, &err);
    if (!cx_failed(status))
        status = print_urls(&n, &err);
    int code = CX_EXIT_HOLDS;
    if (cx_failed(status))
        code = cx_cli_ledger_fail(cli, args, &err);
    else if (run_node(&n, &ends, &before))
        end_node(&n);
    else
        code = CX_EXIT_USAGE;
    cx_serve_process_close(&n.process);
    cx_serve_watch_close(&n.process.watch);
    cx_serve_node_close(&n.known);
    cx_forward_close(n.forward);
    cx_forward_tls_close(n.tls);
    return code;
}

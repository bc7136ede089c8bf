/*
 * serve_process.c - the worker of a node, from its start to its end, again and again.
 */
#include "cli/fleet/serve_fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES ((size_t)16 << 10)
#define ARRIVE_MS 1000 /* a connection reaches the worker within */
#define END_MS \
    UINT64_C(20000)  /* beyond the grace, until it is killed: the tables are brought up to date */
#define EXIT_MS 1000 /* its output has ended */
#define KILLED_MS 60000 /* a process in a call of the system ends after it */
#define STEADY_MS 10000 /* a worker that ran so long is started again at once */
#define SAY_MS 1000
#define DELAY_MIN_MS 250
#define DELAY_MAX_MS 4000
#define MS UINT64_C(1000000)

static uint64_t now_ns(void)
{
    const cx_io *io = cx_io_system();
    return io->monotonic_ns(io);
}

/* --- its end ---------------------------------------------------------------------------------- */

static void say_end(const cx_serve_process *process, const cx_spawn_result *result)
{
    if (process->state == CX_SERVE_ENDING && result->exit_code == 0)
        return;
    const char *had = process->was_ready ? "" : " before it had the part";
    if (result->signal != 0)
        cx_cli_complain("serve: the worker was ended by signal %d%s", result->signal, had);
    else
        cx_cli_complain("serve: the worker ended with exit code %d%s; its last line says why",
                        result->exit_code, had);
}

static void plan_start(cx_serve_process *process)
{
    uint64_t now = now_ns();
    if (process->was_ready && now - process->ready_ns >= STEADY_MS * MS)
        process->delay_ms = 0;
    else if (process->delay_ms == 0)
        process->delay_ms = DELAY_MIN_MS;
    else if (process->delay_ms < DELAY_MAX_MS)
        process->delay_ms *= 2;
    process->start_ns = now + process->delay_ms * MS;
}

/* It ends within that time, or is killed. */
static void take_end(cx_serve_process *process, uint64_t wait_ms)
{
    cx_spawn_result result = {.exit_code = -1};
    cx_err err = {0};
    cx_status status = cx_spawn_close(process->child, wait_ms, &result, &err);
    process->child = NULL;
    cx_serve_watch_at(&process->watch, NULL);
    cx_serve_node_release(process->node, process->owner);
    if (cx_failed(status))
        cx_cli_complain("serve: how the worker ended cannot be told: %s", err.message);
    else
        say_end(process, &result);
    /* Another start would end the same way. */
    process->fails = !process->was_ready && result.exit_code == CX_EXIT_USAGE;
    if (process->state == CX_SERVE_ENDING)
        process->delay_ms = 0, process->start_ns = 0;
    else
        plan_start(process);
    process->state = CX_SERVE_NONE;
    process->was_ready = false;
}

static void kill_worker(cx_serve_process *process)
{
    cx_spawn_kill(process->child);
    take_end(process, KILLED_MS);
}

void cx_serve_process_close(cx_serve_process *process)
{
    if (process->child == NULL)
        return;
    cx_err ignored;
    (void)cx_failed(cx_spawn_close(process->child, 0, NULL, &ignored));
    process->child = NULL;
    process->state = CX_SERVE_NONE;
}

/* --- its start -------------------------------------------------------------------------------- */

/* A new owner for each, so that the lease of a dead one is no one else's. */
static cx_status name_worker(cx_serve_process *process, cx_err *err)
{
    CX_TRY(cx_fleet_new_owner(process->name, process->owner, err));
    (void)snprintf(process->env, sizeof process->env, CX_SERVE_WORKER_ENV "=%s %s %u %s",
                   process->name, process->node_address, (unsigned)process->client_port,
                   process->owner);
    return CX_SUCCESS;
}

static void start(cx_serve_process *process)
{
    cx_err err = {0};
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    if (cx_failed(name_worker(process, &err))) {
        cx_cli_complain("serve: the worker cannot be started: %s", err.message);
        plan_start(process);
        return;
    }
    how.argv = process->argv;
    how.envp = process->envp;
    how.in = CX_SPAWN_IN_PIPE;
    how.out = (cx_spawn_output){.to = CX_SPAWN_OUT_LINES, .file = CX_FILE_NONE};
    how.errout = (cx_spawn_output){.to = CX_SPAWN_OUT_GIVEN, .file = 2};
    how.die_with_starter = true;
    how.grace_ms = CX_SPAWN_GRACE_MS;
    if (cx_failed(cx_spawn_open(&how, &process->child, &err))) {
        cx_cli_complain("serve: the worker cannot be started: %s", err.message);
        process->child = NULL;
        plan_start(process);
        return;
    }
    process->state = CX_SERVE_WAITING;
    process->unheard = 0;
}

/* Its first line says where it listens. */
static void take_line(cx_serve_process *process, cx_str line)
{
    cx_arena arena;
    cx_json value;
    process->unheard = 0;
    if (process->state != CX_SERVE_WAITING)
        return;
    cx_arena_init(&arena, process->cli->alloc, 0);
    cx_str text = cx_arena_copy_str(&arena, line), url = CX_STR("");
    if (text.data != NULL && !cx_failed(cx_json_parse_text(text, &arena, &value, NULL)))
        url = CX_JSON_GET_STR(&value, "url");
    const char *host = url.size == 0 ? NULL : memchr(url.data, '/', url.size);
    cx_str address = CX_STR("");
    if (host != NULL && (size_t)(host - url.data) + 2 < url.size)
        address = cx_arena_printf(&arena, "%.*s", (int)(url.size - (size_t)(host + 2 - url.data)),
                                  host + 2);
    if (address.data != NULL && address.size != 0 &&
        !cx_failed(cx_tcp_address_parse(address.data, &process->address, NULL))) {
        process->state = CX_SERVE_READY;
        process->was_ready = true;
        process->ready_ns = now_ns();
        cx_serve_watch_at(&process->watch, &process->address);
    }
    cx_arena_done(&arena);
}

/* --- step by step ----------------------------------------------------------------------------- */

static void tell_end(cx_serve_process *process)
{
    cx_spawn_end_input(process->child);
    process->state = CX_SERVE_ENDING;
    process->until_ns = now_ns() + (process->grace_ms + END_MS) * MS;
    cx_serve_watch_at(&process->watch, NULL);
}

/* N2 */
static void say_here(cx_serve_process *process)
{
    uint64_t now = now_ns();
    if (now < process->said_ns + SAY_MS * MS || process->state == CX_SERVE_ENDING)
        return;
    process->said_ns = now;
    process->unheard++;
    /* A worker that reads no more is found otherwise. */
    char line[6 * 21 + 1];
    const cx_forward_counts *c = &process->counts;
    int size = snprintf(line, sizeof line,
                        "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                        c->open, c->held, c->own, c->accepted, c->given_up, c->refused);
    cx_status ignored = cx_spawn_write(process->child, cx_bytes_from(line, (size_t)size), 1, NULL);
    (void)ignored;
}

/* N4.  Seconds in which this process does not run itself are not counted. */
static bool is_hung(cx_serve_process *process)
{
    unsigned silent, unready;
    if (process->state == CX_SERVE_NONE || process->state == CX_SERVE_ENDING)
        return false;
    cx_serve_watch_count(&process->watch, &silent, &unready);
    silent = process->unheard > silent ? process->unheard - 1 : silent;
    if (silent >= process->silent_s)
        cx_cli_complain("serve: the worker has not answered for %u s, and is killed", silent);
    else if (unready >= process->silent_s + process->grace_ms / 1000)
        cx_cli_complain("serve: the worker has not been ready for %u s, and is killed", unready);
    else
        return false;
    return true;
}

static void advance(cx_serve_process *process, bool wanted, uint64_t own)
{
    uint64_t now = now_ns();
    if (is_hung(process))
        kill_worker(process);
    else if (process->state == CX_SERVE_NONE && wanted && now >= process->start_ns)
        start(process);
    else if (process->state == CX_SERVE_WAITING && !wanted)
        tell_end(process);
    else if (process->state == CX_SERVE_READY && !wanted) {
        process->state = CX_SERVE_ARRIVING;
        process->until_ns = now + ARRIVE_MS * MS;
    } else if (process->state == CX_SERVE_ARRIVING && (own == 0 || now >= process->until_ns))
        tell_end(process);
    else if (process->state == CX_SERVE_ENDING && now >= process->until_ns) {
        cx_cli_complain("serve: the worker did not end in time, and is killed");
        kill_worker(process);
    }
}

void cx_serve_process_step(cx_serve_process *process, bool wanted, uint64_t own, uint32_t wait_ms)
{
    cx_str line = CX_STR("");
    bool ended = false;
    cx_err err = {0};
    advance(process, wanted, own);
    if (process->child == NULL) {
        cx_thread_sleep_ms(wait_ms);
        return;
    }
    say_here(process);
    if (process->state == CX_SERVE_ARRIVING)
        wait_ms = wait_ms < 10 ? wait_ms : 10;
    cx_status status =
        cx_spawn_read_line(process->child, LINE_MAX_BYTES, wait_ms, &line, &ended, &err);
    if (status.code == CX_E_TIMEOUT)
        return;
    if (cx_failed(status) || ended)
        take_end(process, EXIT_MS);
    else
        take_line(process, line);
}

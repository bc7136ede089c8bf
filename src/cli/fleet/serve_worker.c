/*
 * serve_worker.c - the worker of a node (serve_fleet.h), as far as it is not `cortex serve`.
 */
#include "cli/fleet/serve_fleet.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/fleet/part_home.h"

#define ASK_MS 500      /* between questions whether the part is free */
#define COMES_MS 50     /* .. while it is handed over to this node */
#define ANSWER_MS 3000  /* of the database */
#define SILENT_MS 10000 /* of the parent, which says something every second */

/* N1.  From any thread: what other threads do now must not be answered any more. */
static void end_at_once(void *arg, const char *why)
{
    (void)arg;
    cx_cli_complain("serve: the part is lost, and this worker ends: %s", why);
    _exit(CX_EXIT_UNCHECKED);
}

static cx_status read_words(cx_cli *cli, const char *text, cx_serve_worker *out, cx_err *err)
{
    char *words = CX_ARENA_ARRAY(&cli->arena, char, strlen(text) + 1);
    if (words == NULL)
        return cx_fail_nomem(err);
    memcpy(words, text, strlen(text) + 1);
    char *address = strchr(words, ' ');
    char *port = address == NULL ? NULL : strchr(address + 1, ' ');
    char *owner = port == NULL ? NULL : strchr(port + 1, ' ');
    char *end = NULL;
    unsigned long number = owner == NULL ? 0 : strtoul(port + 1, &end, 10);
    if (number == 0 || number > UINT16_MAX || end != owner ||
        strlen(owner + 1) >= CX_FLEET_OWNER_SIZE)
        return cx_fail(err, CX_E_USAGE,
                       "$" CX_SERVE_WORKER_ENV
                       " is set by 'cortex serve --fleet' for its worker, and cannot be read");
    *address = *port = 0;
    *out = (cx_serve_worker){true, words, address + 1, (uint16_t)number, owner + 1, 0};
    return CX_SUCCESS;
}

cx_status cx_serve_worker_read(cx_cli *cli, cx_serve_worker *out, cx_err *err)
{
    const char *text = getenv(CX_SERVE_WORKER_ENV);
    *out = (cx_serve_worker){.is_one = false};
    if (text == NULL)
        return CX_SUCCESS;
    cx_status status = read_words(cli, text, out, err);
    (void)unsetenv(CX_SERVE_WORKER_ENV); /* programs that it starts are no workers */
    return status;
}

/* --- waiting for the part --------------------------------------------------------------------- */

static cx_status told_to_end(cx_err *err)
{
    return cx_fail_at(err, CX_E_BUSY, "ToldToEnd", CX_NO_OFFSET,
                      "told to end while it waited for the part");
}

bool cx_serve_worker_was_told(const cx_err *err)
{
    return err->tag != NULL && strcmp(err->tag, "ToldToEnd") == 0;
}

/* Failures after the first answer are those of a database that fails over: it is asked again. */
static cx_status wait_until_free(cx_fleet *fleet, unsigned part, const sigset_t *ends, cx_err *err)
{
    bool is_free = false, comes = false;
    CX_TRY(cx_fleet_is_free(fleet, part, &is_free, &comes, err));
    while (!is_free) {
        if (cx_machine_await_signal(ends, (comes ? COMES_MS : ASK_MS) * UINT64_C(1000000)) != 0)
            return told_to_end(err);
        if (cx_failed(cx_fleet_is_free(fleet, part, &is_free, &comes, NULL)))
            is_free = comes = false;
    }
    return CX_SUCCESS;
}

static cx_status wait_for_part(cx_cli *cli, const cx_serve_worker *worker, const char *home,
                               const sigset_t *ends, cx_err *err)
{
    const cx_fleet_options options = {
        .node = worker->node, .answer_ms = ANSWER_MS, .read_only = true};
    cx_fleet_part part;
    cx_fleet *fleet;
    const char *url;
    cx_str name;
    CX_TRY(cx_cli_split_database(&cli->arena, home, &url, &name, err));
    CX_TRY(cx_fleet_open(url, &options, &fleet, err));
    cx_status status = cx_fleet_find(fleet, name, &part, err);
    if (!cx_failed(status))
        status = wait_until_free(fleet, part.number, ends, err);
    cx_fleet_close(fleet);
    return status;
}

cx_status cx_serve_worker_open(cx_cli *cli, const cx_serve_worker *worker, const sigset_t *ends,
                               const char **out_path, cx_err *err)
{
    const char *home = getenv("CORTEX_HOME");
    cx_fleet_files_options options = {.node = worker->node,
                                      .owner = worker->owner,
                                      .lease_ms = worker->lease_ms,
                                      .lost = end_at_once};
    if (home == NULL || !cx_cli_is_database(home))
        return cx_fail(err, CX_E_USAGE, "a worker's $CORTEX_HOME is the address of a database");
    cx_cli_part_close(cli);
    CX_TRY(wait_for_part(cli, worker, home, ends, err));
    return cx_cli_part_open_with(cli, home, &options, out_path, err);
}

/* --- with the parent -------------------------------------------------------------------------- */

/* open, held, own, accepted, given_up, refused */
static atomic_uint_fast64_t relay_counts[6];

void cx_serve_worker_relay(void *arg, cx_relay_counts *out)
{
    uint64_t values[CX_COUNT_OF(relay_counts)];
    (void)arg;
    for (size_t i = 0; i < CX_COUNT_OF(values); i++)
        values[i] = atomic_load_explicit(&relay_counts[i], memory_order_relaxed);
    *out = (cx_relay_counts){values[0], values[1], values[2], values[3], values[4], values[5]};
}

static void note_counts(const char *line)
{
    for (size_t i = 0; i < CX_COUNT_OF(relay_counts); i++) {
        char *end = NULL;
        uint64_t value = strtoull(line, &end, 10);
        if (end == line)
            return;
        atomic_store_explicit(&relay_counts[i], value, memory_order_relaxed);
        line = end;
    }
}

/* A line of counts a second; one that is longer than it can be is left out. */
static void hear(const char *bytes, size_t count)
{
    static char line[256];
    static size_t used;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '\n') {
            used = used + 1 < sizeof line ? used : 0;
            line[used++] = bytes[i];
            continue;
        }
        line[used] = 0;
        used = 0;
        note_counts(line);
    }
}

/* Detached: it may wait when the process ends. */
static void *await_silence(void *arg)
{
    char bytes[256];
    ssize_t count = 1;
    while (count > 0 || (count < 0 && errno == EINTR)) {
        cx_stream_wait input = {0, CX_POLL_READ, 0};
        if (!cx_stream_poll(&input, 1, SILENT_MS)) {
            cx_cli_complain("serve: the parent of this worker says nothing any more: the worker "
                            "ends, and gives the part back");
            break;
        }
        count = read(0, bytes, sizeof bytes);
        hear(bytes, count > 0 ? (size_t)count : 0);
        /* N4.  No more than what came, so that it waits for no one who reads nothing. */
        if (count > 0 && write(1, "\n", 1) < 0)
            break;
    }
    (void)kill(getpid(), SIGTERM);
    return arg;
}

cx_status cx_serve_worker_follow(const cx_serve_worker *worker, cx_err *err)
{
    pthread_t thread;
    if (!worker->is_one)
        return CX_SUCCESS;
    if (pthread_create(&thread, NULL, await_silence, NULL) != 0)
        return cx_fail(err, CX_E_BUSY, "a thread cannot be started");
    (void)pthread_detach(thread);
    return CX_SUCCESS;
}

cx_status cx_serve_worker_publish(cx_cli *cli, const cx_serve_worker *worker, cx_err *err)
{
    cx_fleet_files *files = cx_cli_part_files(cli);
    if (!worker->is_one)
        return CX_SUCCESS;
    return cx_fleet_files_publish(files, worker->address, err);
}

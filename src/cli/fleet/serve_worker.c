/*
 * serve_worker.c - the worker of a node (serve_fleet.h), as far as it is not `cortex serve`.
 */
#include "cli/fleet/serve_fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/fleet/part_home.h"

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
    char *end = NULL;
    unsigned long number = port == NULL ? 0 : strtoul(port + 1, &end, 10);
    if (number == 0 || number > UINT16_MAX || *end != 0)
        return cx_fail(err, CX_E_USAGE,
                       "$" CX_SERVE_WORKER_ENV
                       " is set by 'cortex serve --fleet' for its worker, and cannot be read");
    *address = *port = 0;
    *out = (cx_serve_worker){true, words, address + 1, (uint16_t)number};
    return CX_SUCCESS;
}

cx_status cx_serve_worker_open(cx_cli *cli, cx_serve_worker *out, cx_err *err)
{
    const char *text = getenv(CX_SERVE_WORKER_ENV), *home = getenv("CORTEX_HOME"), *path;
    cx_fleet_files_options options = {.lost = end_at_once};
    *out = (cx_serve_worker){.is_one = false};
    if (text == NULL)
        return CX_SUCCESS;
    CX_TRY(read_words(cli, text, out, err));
    if (home == NULL || !cx_cli_is_database(home))
        return cx_fail(err, CX_E_USAGE, "a worker's $CORTEX_HOME is the address of a database");
    options.node = out->node;
    return cx_cli_part_open_with(cli, home, &options, &path, err);
}

/* Detached: it may wait in read when the process ends. */
static void *await_end_of_input(void *arg)
{
    char byte;
    ssize_t count;
    do {
        count = read(0, &byte, 1);
    } while (count > 0 || (count < 0 && errno == EINTR));
    (void)kill(getpid(), SIGTERM);
    return arg;
}

cx_status cx_serve_worker_follow(const cx_serve_worker *worker, cx_err *err)
{
    pthread_t thread;
    if (!worker->is_one)
        return CX_SUCCESS;
    if (pthread_create(&thread, NULL, await_end_of_input, NULL) != 0)
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

/*
 * gateway_stdio.c - a server as a child, between its pipes and those of the agent (os/relay.h).
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/gateway/gateway.h"
#include "os/api.h"

#define QUEUE_MAX ((size_t)16 << 20) /* bytes that wait for one side */
#define LINGER_MS 60000              /* for the server, when the agent has closed its end */
#define GRACE_MS 1500                /* between SIGTERM and SIGKILL */

/* --- bytes ------------------------------------------------------------------------------------ */

static cx_status take_frame(cx_gateway_job *job, cx_gateway_side from, cx_gateway_frame frame,
                            cx_str line, cx_err *err)
{
    cx_gateway_reader *reader = from == CX_GATEWAY_CLIENT ? &job->from_client : &job->from_server;
    switch (frame) {
    case CX_GATEWAY_FRAME_MORE: return CX_SUCCESS;
    case CX_GATEWAY_FRAME_MESSAGE: return cx_gateway_line(job->gateway, from, line, err);
    case CX_GATEWAY_FRAME_TOO_LONG: break;
    }
    return cx_gateway_too_long(job->gateway, from, &reader->skim, reader->dropped_bytes, err);
}

cx_status cx_cli_gateway_feed(cx_gateway_job *job, cx_gateway_side from, cx_bytes bytes,
                              cx_err *err)
{
    cx_gateway_frame frame;
    cx_str line = CX_STR("");
    cx_gateway_reader *reader = from == CX_GATEWAY_CLIENT ? &job->from_client : &job->from_server;
    bool end = bytes.size == 0;
    while (bytes.size != 0) {
        CX_TRY(cx_gateway_reader_next(reader, &bytes, &frame, &line, err));
        CX_TRY(take_frame(job, from, frame, line, err));
    }
    if (!end)
        return CX_SUCCESS;
    CX_TRY(cx_gateway_reader_end(reader, &frame, &line, err));
    CX_TRY(take_frame(job, from, frame, line, err));
    if (from == CX_GATEWAY_CLIENT)
        return cx_gateway_client_gone(job->gateway, err);
    return cx_gateway_server_gone(job->gateway, CX_STR("cortex: the server has ended"), err);
}

/* --- the loop --------------------------------------------------------------------------------- */

typedef struct stdio_job {
    cx_gateway_job *job;
    cx_spawn_child *child;
} stdio_job;

static cx_status on_received(void *arg, cx_relay_side from, cx_bytes bytes, cx_err *err)
{
    stdio_job *s = arg;
    return cx_cli_gateway_feed(
        s->job, from == CX_RELAY_NEAR ? CX_GATEWAY_CLIENT : CX_GATEWAY_SERVER, bytes, err);
}

static cx_status on_tick(void *arg, cx_err *err)
{
    stdio_job *s = arg;
    return cx_gateway_tick(s->job->gateway, err);
}

static uint32_t due_ms(void *arg)
{
    const stdio_job *s = arg;
    return cx_gateway_due_ms(s->job->gateway);
}

static void end_far(void *arg)
{
    stdio_job *s = arg;
    cx_spawn_end_input(s->child);
}

static cx_status start_child(const char *const *argv, cx_spawn_child **out, cx_err *err)
{
    cx_buf path;
    cx_buf_init(&path, cx_alloc_default());
    cx_status status = cx_proc_find(argv[0], &path, err);
    const char *file = cx_failed(status) ? NULL : cx_buf_z(&path);
    if (!cx_failed(status) && file == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status)) {
        cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
        how.argv = argv;
        how.path = file;
        how.envp = cx_machine_environment();
        how.in = CX_SPAWN_IN_PIPE;
        how.out.to = CX_SPAWN_OUT_LINES;
        how.errout = (cx_spawn_output){.to = CX_SPAWN_OUT_GIVEN, .file = STDERR_FILENO};
        how.die_with_starter = true;
        how.grace_ms = GRACE_MS;
        status = cx_spawn_open(&how, out, err);
    }
    cx_buf_done(&path);
    return status;
}

/* The server's own exit code, and its signal as a shell reports it; a signal to this process. */
static int exit_code_of(const cx_spawn_result *result, int signal)
{
    if (signal != 0)
        return 128 + signal;
    return cx_spawn_exit(result);
}

cx_status cx_cli_gateway_stdio(cx_gateway_job *job, const char *const *argv, cx_err *err)
{
    stdio_job s = {.job = job};
    cx_spawn_result result = {0};
    cx_err close_err;
    int signal = 0;
    CX_TRY(start_child(argv, &s.child, err));
    const cx_spawn_files files = cx_spawn_child_files(s.child);
    const cx_relay relay = {.near_in = STDIN_FILENO,
                            .near_out = STDOUT_FILENO,
                            .far_in = files.output,
                            .far_out = files.input,
                            .far_process = files.process,
                            .wake = CX_FILE_NONE,
                            .to_near = cx_gateway_out(job->gateway, CX_GATEWAY_CLIENT),
                            .to_far = cx_gateway_out(job->gateway, CX_GATEWAY_SERVER),
                            .queue_max = QUEUE_MAX,
                            .linger_ms = LINGER_MS,
                            .arg = &s,
                            .received = on_received,
                            .tick = on_tick,
                            .due_ms = due_ms,
                            .end_far = end_far};
    cx_status status = cx_relay_run(&relay, &signal, err);
    cx_status closed = cx_spawn_close(s.child, signal != 0 || cx_failed(status) ? 0 : GRACE_MS,
                                      &result, &close_err);
    job->exit_code = exit_code_of(&result, signal);
    if (!cx_failed(status) && cx_failed(closed)) {
        *err = close_err;
        return closed;
    }
    return status;
}

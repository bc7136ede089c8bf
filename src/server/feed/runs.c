/*
 * runs.c - the server's state about a repository's runs, and the runs that it starts (run.md §21).
 *
 *   R1  Each started run has a thread that watches it until it has ended; its input (a file with a
 *       contract or a request) is removed then.
 *   R2  The lock guards the list, and the fields of each started run that its caller waits for.
 */
#include "server/feed/runs.h"

#include <stdio.h>

#include "base/api.h"
#include "os/api.h"
#include "sandbox/api.h"
#include "server/feed/plan_queue.h"
#include "server/feed/run_tail.h"

#define LINE_MAX_BYTES ((size_t)16 << 20)
#define LAST_LINE_MAX ((size_t)64 << 10)
#define READ_WAIT_MS 1000
#define END_WAIT_MS 20000 /* a run that is told to stop writes its final events first */
#define ARGS_MAX 14
#define INCOMING "incoming" /* below the runtime root: contracts on their way to a run */

typedef struct started {
    struct started *next;
    cx_runs *runs;
    cx_thread thread;
    char at_path[CX_PATH_BYTES_MAX + 2]; /* '@', then the path of the contract or request */
    char runner[65];
    bool is_intent, no_merge, plan_only;
    /* Under the lock: */
    char run_id[CX_RUN_ID_BYTES_MAX + 1];
    bool ended, waited; /* waited: its caller has gone */
    int exit_code;
    char message[CX_ERR_MESSAGE_SIZE];
} started;

struct cx_runs {
    cx_runs_options options;
    cx_run_index *index;
    cx_run_tails *tails;
    cx_plan_queue *queue; /* NULL = no run can be started here */
    cx_lock lock;
    started *first;
    size_t count;
    atomic_bool ending;
};

/* --- opening ---------------------------------------------------------------------------------- */

cx_status cx_runs_open(const cx_runs_options *options, cx_runs **out, cx_err *err)
{
    cx_runs *runs = cx_alloc_zeroed(options->alloc, 1, sizeof *runs);
    if (runs == NULL)
        return cx_fail_nomem(err);
    runs->options = *options;
    cx_lock_init(&runs->lock);
    cx_status status = cx_run_index_open(options->home, options->alloc, &runs->index, err);
    if (!cx_failed(status))
        status = cx_run_tails_open(options->io, options->alloc, &runs->tails, err);
    if (!cx_failed(status) && options->program != NULL)
        status = cx_plan_queue_open(runs, &runs->options, &runs->queue, err);
    if (cx_failed(status))
        cx_runs_close(runs);
    else
        *out = runs;
    return status;
}

void cx_runs_end(cx_runs *runs)
{
    atomic_store(&runs->ending, true);
    if (runs->queue != NULL)
        cx_plan_queue_end(runs->queue);
    if (runs->tails != NULL)
        cx_run_tails_end(runs->tails);
}

/* R1: those that have ended and whose caller was answered; all of them when `wait`. */
static void join_ended_runs(cx_runs *runs, bool wait)
{
    for (;;) {
        started *gone = NULL;
        cx_lock_enter(&runs->lock);
        for (started **place = &runs->first; *place != NULL; place = &(*place)->next)
            if (wait || ((*place)->ended && (*place)->waited)) {
                gone = *place;
                *place = gone->next;
                runs->count--;
                break;
            }
        cx_lock_leave(&runs->lock);
        if (gone == NULL)
            return;
        cx_thread_join(&gone->thread);
        cx_alloc_free(runs->options.alloc, gone, sizeof *gone);
    }
}

void cx_runs_close(cx_runs *runs)
{
    if (runs == NULL)
        return;
    cx_runs_end(runs);
    cx_plan_queue_close(runs->queue);
    join_ended_runs(runs, true);
    cx_run_tails_close(runs->tails);
    cx_run_index_close(runs->index);
    cx_lock_done(&runs->lock);
    cx_alloc_free(runs->options.alloc, runs, sizeof *runs);
}

const char *cx_runs_repo(const cx_runs *runs)
{
    return runs->options.repo;
}

cx_run_index *cx_runs_index(const cx_runs *runs)
{
    return runs->index;
}

const cx_runs_options *cx_runs_options_of(const cx_runs *runs)
{
    return &runs->options;
}

void cx_runs_wake_queue(cx_runs *runs)
{
    if (runs->queue != NULL)
        cx_plan_queue_wake(runs->queue);
}

cx_status cx_runs_store(const cx_runs *runs, cx_run_store *out, cx_err *err)
{
    return cx_run_store_open(out, runs->options.runtime_root, false, runs->options.io,
                             runs->options.alloc, err);
}

cx_status cx_runs_tail(cx_runs *runs, cx_str run_id, uint64_t after, void (*wake)(void *arg),
                       void *arg, cx_stream **out, cx_err *err)
{
    cx_run_store store;
    CX_TRY(cx_runs_store(runs, &store, err));
    return cx_run_tails_join(runs->tails, &store, run_id, after, wake, arg, out, err);
}

static const char *input_path(const started *s)
{
    return s->at_path + 1;
}

/* --- one started run -------------------------------------------------------------------------- */

static void set_run_id(started *s, cx_str run_id)
{
    cx_lock_enter(&s->runs->lock);
    if (s->run_id[0] == 0 && cx_run_id_valid(run_id)) {
        memcpy(s->run_id, run_id.data, run_id.size);
        cx_lock_wake(&s->runs->lock);
    }
    cx_lock_leave(&s->runs->lock);
}

/* Every line that a run prints is JSON; the first one that names the run is enough. */
static void read_output_line(started *s, cx_str line)
{
    cx_arena arena;
    cx_json value;
    if (s->run_id[0] != 0) /* written by this thread only */
        return;
    cx_arena_init(&arena, s->runs->options.alloc, 0);
    if (!cx_failed(cx_run_json_read(line, 0, &arena, &value, NULL)))
        set_run_id(s, CX_JSON_GET_STR(&value, "run_id"));
    cx_arena_done(&arena);
}

static cx_status follow_child(started *s, cx_spawn_child *child, cx_err *err)
{
    for (bool end = false; !end && !atomic_load(&s->runs->ending);) {
        cx_str line;
        cx_status status =
            cx_spawn_read_line(child, LINE_MAX_BYTES, READ_WAIT_MS, &line, &end, err);
        if (status.code == CX_E_TIMEOUT)
            continue;
        if (cx_failed(status))
            return status;
        if (!end)
            read_output_line(s, line);
    }
    return CX_SUCCESS;
}

static cx_status run_child(started *s, cx_buf *errors, int *out_exit, cx_err *err)
{
    const cx_runs_options *o = &s->runs->options;
    const char *argv[ARGS_MAX + 1];
    size_t count = 0;
    cx_spawn_child *child = NULL;
    cx_spawn_result result;
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    argv[count++] = o->program;
    argv[count++] = "run";
    if (s->is_intent)
        argv[count++] = "--intent";
    argv[count++] = s->is_intent ? s->at_path : input_path(s);
    argv[count++] = "--home";
    argv[count++] = o->home_path;
    argv[count++] = "--json";
    argv[count++] = "--follow";
    if (s->plan_only)
        argv[count++] = "--plan-only";
    if (s->no_merge)
        argv[count++] = "--no-merge";
    if (s->runner[0] != 0) {
        argv[count++] = "--runner";
        argv[count++] = s->runner;
    }
    argv[count] = NULL;
    how.argv = argv;
    how.envp = o->envp;
    how.cwd = o->repo;
    how.out.to = CX_SPAWN_OUT_LINES;
    how.errout = cx_spawn_to_buf(errors, LAST_LINE_MAX);
    how.errout.limit_fails = false;
    how.grace_ms = END_WAIT_MS;
    CX_TRY(cx_spawn_open(&how, &child, err));
    cx_status status = follow_child(s, child, err);
    /* Told to end: SIGTERM at once, and time for the last events. */
    cx_status closed = cx_spawn_close(child, 0, &result, cx_failed(status) ? NULL : err);
    *out_exit = cx_failed(closed) ? 3 : cx_spawn_exit(&result);
    return cx_failed(status) ? status : closed;
}

/* The last line that is not empty. */
static cx_str last_line(cx_str text)
{
    while (text.size != 0 && text.data[text.size - 1] == '\n')
        text.size--;
    size_t start = text.size;
    while (start != 0 && text.data[start - 1] != '\n')
        start--;
    return cx_str_from(text.data + start, text.size - start);
}

static void watch_child(void *arg)
{
    started *s = arg;
    cx_buf errors;
    cx_err err = {0};
    int code = 3;
    cx_buf_init(&errors, s->runs->options.alloc);
    cx_status status = run_child(s, &errors, &code, &err);
    (void)s->runs->options.io->unlink(s->runs->options.io, input_path(s)); /* R1 */
    cx_str line = cx_failed(status) ? cx_str_z(err.message) : last_line(cx_buf_str(&errors));
    cx_lock_enter(&s->runs->lock);
    s->ended = true;
    s->exit_code = code;
    (void)snprintf(s->message, sizeof s->message, "%.*s",
                   (int)(line.size > sizeof s->message - 1 ? sizeof s->message - 1 : line.size),
                   line.size == 0 ? "" : line.data);
    cx_lock_wake(&s->runs->lock);
    cx_lock_leave(&s->runs->lock);
    cx_buf_done(&errors);
}

/* --- starting --------------------------------------------------------------------------------- */

/* The run's input, in a file that is removed when the run ends. */
static cx_status write_input_file(cx_runs *runs, cx_bytes given, started *s, cx_err *err)
{
    const cx_runs_options *o = &runs->options;
    uint8_t random[12];
    char folder[CX_PATH_BYTES_MAX + 1];
    int size = snprintf(folder, sizeof folder, "%s/" INCOMING, o->runtime_root);
    if (size < 0 || (size_t)size + 40 > sizeof folder)
        return cx_fail(err, CX_E_LIMIT, "the runtime root's path is too long");
    CX_TRY(cx_path_make_folders(folder, err));
    int failed = o->io->random(o->io, random, sizeof random);
    if (failed != 0)
        return cx_fail_os(err, -failed, "random numbers");
    size_t used = (size_t)snprintf(s->at_path, sizeof s->at_path, "@%s/", folder);
    for (size_t i = 0; i < sizeof random; i++)
        used += (size_t)snprintf(s->at_path + used, sizeof s->at_path - used, "%02x", random[i]);
    (void)snprintf(s->at_path + used, sizeof s->at_path - used, s->is_intent ? ".txt" : ".json");
    return cx_run_write_file(o->io, input_path(s), given, err);
}

static cx_status start_watching(cx_runs *runs, started *s, cx_err *err)
{
    cx_lock_enter(&runs->lock);
    bool space = runs->count < CX_RUN_STARTED_MAX && !atomic_load(&runs->ending);
    if (space && cx_thread_start(&s->thread, watch_child, s)) {
        s->next = runs->first;
        runs->first = s;
        runs->count++;
    } else {
        space = false;
    }
    cx_lock_leave(&runs->lock);
    return space ? CX_SUCCESS
                 : cx_fail(err, CX_E_BUSY, "%d runs that this server started are still running",
                           CX_RUN_STARTED_MAX);
}

static cx_status wait_for_id(started *s, bool until_end, cx_arena *arena, cx_run_started *out,
                             cx_err *err)
{
    cx_runs *runs = s->runs;
    const cx_io *io = runs->options.io;
    uint64_t end = io->monotonic_ns(io) + (uint64_t)CX_RUN_START_WAIT_MS * 1000000;
    cx_lock_enter(&runs->lock);
    while (!s->ended && (until_end || (s->run_id[0] == 0 && io->monotonic_ns(io) < end)))
        cx_lock_wait_for(&runs->lock, 1000);
    out->run_id = cx_arena_copy_str(arena, cx_str_z(s->run_id));
    out->message = cx_arena_copy_str(arena, cx_str_z(s->message));
    out->exit_code = s->exit_code;
    bool late = s->run_id[0] == 0 && !s->ended;
    s->waited = true;
    cx_lock_leave(&runs->lock);
    if (out->run_id.data == NULL || out->message.data == NULL)
        return cx_fail_nomem(err);
    return late ? cx_fail(err, CX_E_TIMEOUT, "the run was started, but has no id yet") : CX_SUCCESS;
}

cx_status cx_runs_start(cx_runs *runs, const cx_run_start *what, cx_arena *arena,
                        cx_run_started *out, cx_err *err)
{
    const cx_runs_options *o = &runs->options;
    join_ended_runs(runs, false);
    CX_TRY(cx_sandbox_supported(err));
    if (o->program == NULL)
        return cx_fail(err, CX_E_UNSUPPORTED, "the server cannot find its own executable");
    started *s = cx_alloc_zeroed(o->alloc, 1, sizeof *s);
    if (s == NULL)
        return cx_fail_nomem(err);
    s->runs = runs;
    s->is_intent = what->is_intent;
    s->no_merge = what->no_merge;
    s->plan_only = what->plan_only;
    if (what->runner.data != NULL && what->runner.size < sizeof s->runner)
        memcpy(s->runner, what->runner.data, what->runner.size);
    cx_status status = write_input_file(runs, what->contract, s, err);
    if (!cx_failed(status))
        status = start_watching(runs, s, err);
    if (cx_failed(status)) {
        if (s->at_path[0] != 0)
            (void)o->io->unlink(o->io, input_path(s));
        cx_alloc_free(o->alloc, s, sizeof *s);
        return status;
    }
    return wait_for_id(s, what->until_end, arena, out, err);
}

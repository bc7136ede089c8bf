/*
 * runner_exec.c - an agent that is a program: started once a turn, prompt on standard input, reply
 * as the last line of standard output that is a JSON object, or in the file that {output} names
 * (run.md §16).
 *
 * Whole tokens of the template are replaced: {cwd} the worktree, {schema} the schema's file,
 * {output} a file in the scratch folder, {thread} the thread to continue ({thread} and an option
 * before it, such as --resume {thread}, are left out when there is none).
 */
#include "os/api.h"
#include "agent/runner.h"
#include "sandbox/api.h"

#define LINE_BYTES_MAX ((size_t)16 << 20)
#define STDERR_BYTES_MAX ((uint64_t)1 << 20)

typedef struct exec_runner {
    cx_runner base;
    const cx_runner_settings *settings;
    const cx_alloc *alloc;
    const cx_io *io;
} exec_runner;

/* --- argv ------------------------------------------------------------------------------------- */

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != 0;
}

static cx_status make_argv(exec_runner *x, const cx_runner_turn *turn, const char *output,
                           const char *const **out, bool *out_file, cx_err *err)
{
    const cx_runner_settings *settings = x->settings;
    const char **argv = CX_ARENA_ARRAY(turn->arena, const char *, settings->argv_count + 1);
    size_t count = 0;
    *out_file = false;
    if (argv == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < settings->argv_count; i++) {
        cx_str word = settings->argv[i];
        if (cx_str_is(word, "{thread}") && turn->thread_id.size == 0) {
            if (count > 1 && is_option(argv[count - 1]))
                count--;
            continue;
        }
        if (cx_str_is(word, "{thread}"))
            word = turn->thread_id;
        else if (cx_str_is(word, "{cwd}"))
            word = cx_str_z(turn->worktree);
        else if (cx_str_is(word, "{schema}"))
            word = cx_str_z(turn->schema_path);
        else if (cx_str_is(word, "{output}"))
            word = cx_str_z(output), *out_file = true;
        argv[count] = cx_arena_copy_str(turn->arena, word).data;
        if (argv[count++] == NULL)
            return cx_fail_nomem(err);
    }
    argv[count] = NULL;
    *out = argv;
    return CX_SUCCESS;
}

/* --- what it said ----------------------------------------------------------------------------- */

typedef struct heard {
    cx_str last;   /* the last line that is a JSON object; in the turn's arena */
    cx_str thread; /* the first "thread_id" or "session_id" */
} heard;

static cx_status hear_line(const cx_runner_turn *turn, cx_str line, heard *h, cx_err *err)
{
    cx_arena scratch;
    cx_json value;
    size_t at = 0;
    while (at < line.size && (line.data[at] == ' ' || line.data[at] == '\t'))
        at++;
    if (at == line.size || line.data[at] != '{')
        return CX_SUCCESS;
    cx_arena_init(&scratch, turn->arena->alloc, 0);
    cx_status status = CX_SUCCESS;
    if (!cx_failed(cx_run_json_read(line, LINE_BYTES_MAX, &scratch, &value, NULL))) {
        cx_str thread = CX_JSON_GET_STR(&value, "thread_id");
        if (thread.size == 0)
            thread = CX_JSON_GET_STR(&value, "session_id");
        h->last = cx_arena_copy_str(turn->arena, line);
        if (h->thread.size == 0 && thread.size != 0)
            h->thread = cx_arena_copy_str(turn->arena, thread);
        if (h->last.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_arena_done(&scratch);
    return status;
}

static cx_status hear(const cx_runner_host *host, const cx_runner_turn *turn, cx_str said, heard *h,
                      cx_err *err)
{
    while (said.size != 0) {
        const char *end = memchr(said.data, '\n', said.size);
        size_t size = end == NULL ? said.size : (size_t)(end - said.data);
        cx_str line = {said.data, size};
        CX_TRY(host->raw(host->arg, cx_str_bytes(line), err));
        CX_TRY(hear_line(turn, line, h, err));
        size += end != NULL;
        said = (cx_str){said.data + size, said.size - size};
    }
    return CX_SUCCESS;
}

/* The agent wrote it, so nothing on the way there may be a link. */
static cx_status read_output(const cx_runner_turn *turn, cx_bytes *out, bool *out_there,
                             cx_err *err)
{
    cx_file folder;
    cx_buf text;
    CX_TRY(cx_folder_open(turn->scratch, &folder, err));
    cx_buf_init(&text, turn->arena->alloc);
    cx_status status = cx_folder_read_file(folder, "output.json", LINE_BYTES_MAX, &text, err);
    *out_there = !cx_failed(status);
    if (!cx_failed(status)) {
        cx_str kept = cx_arena_copy_str(turn->arena, cx_buf_str(&text));
        *out = cx_str_bytes(kept);
        if (kept.data == NULL)
            status = cx_fail_nomem(err);
    } else if (status.code == CX_E_NOT_FOUND) {
        status = CX_SUCCESS;
    }
    cx_buf_done(&text);
    cx_folder_close(folder);
    return status;
}

/* --- the turn --------------------------------------------------------------------------------- */

static void judge_end(const cx_runner_turn *turn, const cx_sandbox_result *result, cx_str complaint,
                      cx_runner_reply *out)
{
    if (result->process.cancelled) {
        out->end = CX_RUNNER_CANCELLED;
        out->message = CX_STR("cancelled");
    } else if (result->process.timed_out) {
        out->end = CX_RUNNER_TIMED_OUT;
        out->message = CX_STR("the agent took longer than timeout_sec");
    } else if (result->exit_code != 0) {
        size_t size = complaint.size < 400 ? complaint.size : 400;
        while (size != 0 && (uint8_t)complaint.data[size - 1] <= 0x20)
            size--;
        out->end = CX_RUNNER_FAILED;
        out->message =
            cx_arena_printf(turn->arena, "the agent ended with exit code %d%s%.*s",
                            result->exit_code, size == 0 ? "" : ": ", (int)size, complaint.data);
    }
}

static cx_status take_reply(const cx_runner_turn *turn, const heard *h, bool from_file,
                            cx_runner_reply *out, cx_err *err)
{
    bool there = h->last.size != 0;
    if (from_file)
        CX_TRY(read_output(turn, &out->body, &there, err));
    else
        out->body = cx_str_bytes(h->last);
    out->thread_id = h->thread;
    if (!there) {
        out->end = CX_RUNNER_FAILED;
        out->message = from_file ? CX_STR("the agent wrote no {output} file")
                                 : CX_STR("the agent printed no line that is a JSON object");
    }
    return CX_SUCCESS;
}

static cx_status exec_turn(cx_runner *self, const cx_runner_host *host, const cx_runner_turn *turn,
                           cx_runner_reply *out, cx_err *err)
{
    exec_runner *x = (exec_runner *)self;
    cx_sandbox_spec spec = *turn->sandbox;
    cx_sandbox_result result;
    heard h = {{NULL, 0}, {NULL, 0}};
    cx_buf said, complaint;
    bool from_file;
    cx_str output = cx_arena_printf(turn->arena, "%s/output.json", turn->scratch);
    memset(out, 0, sizeof *out);
    if (output.data == NULL)
        return cx_fail_nomem(err);
    (void)x->io->unlink(x->io, output.data); /* of the turn before */
    CX_TRY(make_argv(x, turn, output.data, &spec.argv, &from_file, err));
    cx_buf_init(&said, x->alloc);
    cx_buf_init(&complaint, x->alloc);
    spec.path = turn->program;
    spec.in = CX_SPAWN_IN_BYTES;
    spec.input = (cx_bytes){(const uint8_t *)turn->prompt, turn->prompt_size};
    spec.out = cx_spawn_to_buf(&said, CX_RUN_OUTPUT_BYTES_MAX);
    spec.errout = cx_spawn_to_buf(&complaint, STDERR_BYTES_MAX);
    spec.errout.limit_fails = false;
    spec.timeout_ms = turn->timeout_ms;
    cx_status status = cx_sandbox_run(turn->box, &spec, &result, err);
    if (!cx_failed(status))
        status = hear(host, turn, cx_buf_str(&said), &h, err);
    if (!cx_failed(status)) {
        judge_end(turn, &result, cx_buf_str(&complaint), out);
        if (out->end == CX_RUNNER_OK)
            status = take_reply(turn, &h, from_file, out, err);
    }
    cx_buf_done(&said);
    cx_buf_done(&complaint);
    return status;
}

static cx_status exec_start(cx_runner *self, const cx_runner_host *host, const cx_runner_turn *turn,
                            cx_err *err)
{
    (void)self;
    (void)host;
    (void)turn;
    (void)err;
    return CX_SUCCESS;
}

static void exec_stop(cx_runner *self)
{
    exec_runner *x = (exec_runner *)self;
    cx_alloc_free(x->alloc, x, sizeof *x);
}

cx_status cx_runner_exec_open(const cx_runner_settings *settings, const cx_alloc *alloc,
                              const cx_io *io, cx_runner **out, cx_err *err)
{
    if (settings->argv_count == 0)
        return cx_fail(err, CX_E_FORMAT, "the configuration of the runner has no argv");
    exec_runner *x = cx_alloc_zeroed(alloc, 1, sizeof *x);
    if (x == NULL)
        return cx_fail_nomem(err);
    x->settings = settings;
    x->alloc = alloc;
    x->io = io;
    x->base = (cx_runner){.name = CX_STR(CX_RUNNER_NAME_EXEC),
                          .argv = settings->argv,
                          .argv_count = settings->argv_count,
                          .network = settings->network,
                          .start = exec_start,
                          .turn = exec_turn,
                          .stop = exec_stop};
    *out = &x->base;
    return CX_SUCCESS;
}

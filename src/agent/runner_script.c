/*
 * runner_script.c - replay-script: an agent whose turns are given in a file (run.md §16).
 *
 *     {"format":"cortex.replay-script.v1","thread_id",
 *      "turns":[{"ops":[[name, args..],..],"tool_calls":[{"tool",..}],"output":<the reply>}]}
 *
 * or, for several tasks of one run, "tasks":{"<task_id>":{"thread_id","turns"},..} instead of the
 * last two.  Turn i serves attempt i.  This program applies the operations inside the sandbox
 * (agent_ops.h); the output is the reply and passes the output gate like any other.
 */
#include "agent/agent_ops.h"
#include "agent/runner.h"
#include "sandbox/api.h"

#define SCRIPT_FORMAT "cortex.replay-script.v1"
#define ERRORS_BYTES_MAX 65536

typedef struct script_runner {
    cx_runner base;
    const cx_alloc *alloc;
    cx_arena arena;
    cx_json script;
    const cx_json
        *own; /* the object with thread_id and turns: the script, or the entry of its task */
    const cx_json *turns;
} script_runner;

/* --- reading ---------------------------------------------------------------------------------- */

static bool has_only_members(const cx_json *object, const char *const *names, size_t count)
{
    for (uint32_t i = 0; i < object->count; i++) {
        bool known = false;
        for (size_t k = 0; k < count && !known; k++)
            known = cx_str_is(cx_json_text(&object->members[i].name), names[k]);
        if (!known)
            return false;
    }
    return true;
}

static cx_status check_script_turn(const cx_json *turn, uint32_t index, cx_err *err)
{
    static const char *const names[] = {"ops", "tool_calls", "output"};
    const cx_json *calls = CX_JSON_GET(turn, "tool_calls");
    if (turn->type != CX_JSON_OBJECT || CX_JSON_GET(turn, "output") == NULL ||
        !has_only_members(turn, names, CX_COUNT_OF(names)))
        return cx_fail(err, CX_E_FORMAT,
                       "turn %u of the script: expected an object {ops, tool_calls, output}",
                       index);
    for (uint32_t i = 0; calls != NULL && i < calls->count; i++)
        if (calls->type != CX_JSON_ARRAY || CX_JSON_GET_STR(&calls->items[i], "tool").size == 0)
            return cx_fail(err, CX_E_FORMAT,
                           "turn %u of the script: tool_calls is an array of objects with \"tool\"",
                           index);
    return CX_SUCCESS;
}

/* Selects one task in a file for several tasks. */
static cx_status find_script_task(script_runner *s, cx_str task_id, cx_err *err)
{
    static const char *const names[] = {"format", "tasks"}, *const own[] = {"thread_id", "turns"};
    const cx_json *tasks = CX_JSON_GET(&s->script, "tasks");
    if (tasks->type != CX_JSON_OBJECT || !has_only_members(&s->script, names, CX_COUNT_OF(names)))
        return cx_fail(err, CX_E_FORMAT,
                       "the script: expected {format:\"" SCRIPT_FORMAT "\", tasks:{<task_id>: "
                       "{thread_id, turns}}}");
    s->own = cx_json_get_typed(tasks, task_id, CX_JSON_OBJECT);
    if (s->own == NULL || !has_only_members(s->own, own, CX_COUNT_OF(own)))
        return cx_fail(err, CX_E_FORMAT, "the script: expected {thread_id, turns} at tasks/%.*s",
                       (int)(task_id.size > 128 ? 128 : task_id.size), task_id.data);
    return CX_SUCCESS;
}

static cx_status check_script(script_runner *s, cx_str task_id, cx_err *err)
{
    static const char *const names[] = {"format", "thread_id", "turns"};
    bool several = CX_JSON_GET(&s->script, "tasks") != NULL;
    s->own = &s->script;
    if (several)
        CX_TRY(find_script_task(s, task_id, err));
    const cx_json *turns = cx_json_get_typed(s->own, CX_STR("turns"), CX_JSON_ARRAY);
    if (!cx_str_is(CX_JSON_GET_STR(&s->script, "format"), SCRIPT_FORMAT) || turns == NULL ||
        (!several && !has_only_members(&s->script, names, CX_COUNT_OF(names))))
        return cx_fail(err, CX_E_FORMAT,
                       "the script: expected {format:\"" SCRIPT_FORMAT "\", thread_id, turns}");
    s->turns = turns;
    for (uint32_t i = 0; i < turns->count; i++)
        CX_TRY(check_script_turn(&turns->items[i], i, err));
    return CX_SUCCESS;
}

static cx_status read_script(script_runner *s, const cx_io *io, const cx_runner_settings *settings,
                             cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, s->alloc);
    cx_status status = cx_io_read_file(io, settings->script, CX_RUN_JSON_BYTES_MAX, &text, err);
    cx_str copy = {NULL, 0};
    if (!cx_failed(status)) {
        copy = cx_arena_copy_str(&s->arena, cx_buf_str(&text));
        if (copy.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    if (!cx_failed(status))
        status = cx_run_json_read(copy, 0, &s->arena, &s->script, err);
    return cx_failed(status) ? status : check_script(s, settings->task_id, err);
}

/* --- a turn ----------------------------------------------------------------------------------- */

static void set_failed_reply(const cx_runner_turn *turn, cx_runner_end end, cx_str message,
                             cx_runner_reply *out)
{
    memset(out, 0, sizeof *out);
    out->end = end;
    out->message = cx_arena_copy_str(turn->arena, message);
}

static cx_status apply_operations(script_runner *s, const cx_runner_turn *turn, const cx_json *ops,
                                  cx_runner_reply *out, cx_err *err)
{
    cx_sandbox_spec spec = *turn->sandbox;
    const char *argv[] = {cx_sandbox_program(turn->box, &spec), CX_AGENT_OPS, NULL};
    cx_sandbox_result result;
    cx_buf input, output;
#ifdef CX_ARENA_ASAN
    /* agent-ops is this program: AddressSanitizer maps terabytes that it never touches, and its
     * leak checker uses ptrace, which the sandbox denies. */
    static const char *const env[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};
    const cx_sandbox_limits limits = {.memory_bytes = UINT64_MAX};
    spec.limits = &limits;
    spec.env = env;
#endif
    cx_buf_init(&input, s->alloc);
    cx_buf_init(&output, s->alloc);
    spec.argv = argv;
    spec.in = CX_SPAWN_IN_BYTES;
    spec.out = cx_spawn_to_buf(&output, ERRORS_BYTES_MAX);
    spec.out.limit_fails = false;
    spec.errout = (cx_spawn_output){.to = CX_SPAWN_OUT_JOIN};
    spec.timeout_ms = turn->timeout_ms;
    cx_status status = cx_json_write(&input, ops, CX_JSON_JCS, err);
    if (!cx_failed(status)) {
        spec.input = cx_buf_bytes(&input);
        status = cx_sandbox_run(turn->box, &spec, &result, err);
    }
    if (!cx_failed(status) && result.process.cancelled)
        set_failed_reply(turn, CX_RUNNER_CANCELLED, CX_STR("cancelled"), out);
    else if (!cx_failed(status) && result.process.timed_out)
        set_failed_reply(turn, CX_RUNNER_TIMED_OUT,
                         CX_STR("the operations took longer than timeout_sec"), out);
    else if (!cx_failed(status) && result.exit_code != 0)
        set_failed_reply(turn, CX_RUNNER_FAILED,
                         output.size == 0 ? CX_STR("the operations could not be applied")
                                          : cx_buf_str(&output),
                         out);
    cx_buf_done(&input);
    cx_buf_done(&output);
    return status;
}

static cx_status report_raw_turn(script_runner *s, const cx_runner_host *host,
                                 const cx_runner_turn *turn, const cx_json *reply, cx_err *err)
{
    cx_buf line;
    cx_buf_init(&line, s->alloc);
    cx_buf_printf(&line, "{\"turn\":%u,\"thread_id\":", turn->attempt);
    cx_json_write_str(&line, s->base.thread_id, CX_JSON_JCS);
    cx_buf_add_z(&line, ",\"output\":");
    cx_status status = cx_json_write(&line, reply, CX_JSON_JCS, err);
    cx_buf_add_byte(&line, '}');
    if (!cx_failed(status))
        status = cx_buf_check(&line, err);
    if (!cx_failed(status))
        status = host->raw(host->arg, cx_buf_bytes(&line), err);
    cx_buf_done(&line);
    return status;
}

/* A string is the reply itself, so that scripts can reply with invalid JSON; any other value is
 * sent as JSON. */
static cx_status make_script_reply(script_runner *s, const cx_json *output,
                                   const cx_runner_turn *turn, cx_runner_reply *out, cx_err *err)
{
    cx_buf text;
    if (output->type == CX_JSON_STRING) {
        out->body = cx_str_bytes(cx_json_text(output));
        return CX_SUCCESS;
    }
    cx_buf_init(&text, s->alloc);
    cx_status status = cx_json_write(&text, output, CX_JSON_JCS, err);
    if (!cx_failed(status)) {
        out->body = cx_str_bytes(cx_arena_copy_str(turn->arena, cx_buf_str(&text)));
        if (out->body.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status run_script_turn(cx_runner *self, const cx_runner_host *host,
                                 const cx_runner_turn *turn, cx_runner_reply *out, cx_err *err)
{
    script_runner *s = (script_runner *)self;
    memset(out, 0, sizeof *out);
    if (turn->attempt >= s->turns->count) {
        set_failed_reply(turn, CX_RUNNER_FAILED, CX_STR("the script has no turn left"), out);
        return CX_SUCCESS;
    }
    const cx_json *now = &s->turns->items[turn->attempt];
    const cx_json *ops = CX_JSON_GET(now, "ops"), *calls = CX_JSON_GET(now, "tool_calls");
    if (ops != NULL && ops->count != 0)
        CX_TRY(apply_operations(s, turn, ops, out, err));
    for (uint32_t i = 0; calls != NULL && i < calls->count && out->end == CX_RUNNER_OK; i++)
        CX_TRY(host->tool(host->arg, &calls->items[i], err));
    if (out->end != CX_RUNNER_OK)
        return CX_SUCCESS;
    const cx_json *output = CX_JSON_GET(now, "output");
    CX_TRY(report_raw_turn(s, host, turn, output, err));
    out->thread_id = s->base.thread_id;
    return make_script_reply(s, output, turn, out, err);
}

/* Invalid operations are found before anything starts. */
static cx_status start_script(cx_runner *self, const cx_runner_host *host,
                              const cx_runner_turn *turn, cx_err *err)
{
    script_runner *s = (script_runner *)self;
    (void)host;
    (void)turn;
    for (uint32_t i = 0; i < s->turns->count; i++) {
        const cx_json *ops = CX_JSON_GET(&s->turns->items[i], "ops");
        if (ops != NULL)
            CX_TRY(cx_agent_ops_check(ops, err));
    }
    return CX_SUCCESS;
}

static void stop_script(cx_runner *self)
{
    script_runner *s = (script_runner *)self;
    const cx_alloc *alloc = s->alloc;
    cx_arena_done(&s->arena);
    cx_alloc_free(alloc, s, sizeof *s);
}

cx_status cx_runner_script_open(const cx_runner_settings *settings, const cx_alloc *alloc,
                                const cx_io *io, cx_runner **out, cx_err *err)
{
    script_runner *s = cx_alloc_zeroed(alloc, 1, sizeof *s);
    if (s == NULL)
        return cx_fail_nomem(err);
    s->alloc = alloc;
    cx_arena_init(&s->arena, alloc, 0);
    cx_status status = read_script(s, io, settings, err);
    if (cx_failed(status)) {
        stop_script(&s->base);
        return status;
    }
    s->base = (cx_runner){.name = CX_STR(CX_RUNNER_NAME_SCRIPT),
                          .thread_id = CX_JSON_GET_STR(s->own, "thread_id"),
                          .start = start_script,
                          .turn = run_script_turn,
                          .stop = stop_script};
    *out = &s->base;
    return CX_SUCCESS;
}

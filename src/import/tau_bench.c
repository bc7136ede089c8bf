/*
 * tau_bench.c - tau-bench runs (§2.7): an array of runs, each a separate chain.
 *
 * A run is a node of agent run#TASK.TRIAL that contains the run without its messages, the messages,
 * and a closing node with the reward.  Agents have the run's suffix, so that no chain continues
 * from one run into the next.
 */
#include "import/chat.h"

typedef struct tau_bench_state {
    cx_import_index runs; /* suffixes in use */
} tau_bench_state;

/* The run being read. */
typedef struct run {
    cx_import_sink *sink;
    const cx_json *value;
    cx_str suffix; /* TASK.TRIAL; unique in the import */
    uint32_t last; /* record */
} run;

static cx_str run_name(cx_import_sink *sink, const cx_json *value)
{
    cx_str task = cx_import_scalar(CX_JSON_GET(value, "task_id"));
    cx_str trial = cx_import_scalar(CX_JSON_GET(value, "trial"));
    char *text = cx_arena_push(sink->arena, task.size + trial.size + 1, 1);
    if (text == NULL)
        return (cx_str){NULL, 0};
    if (task.size != 0)
        memcpy(text, task.data, task.size);
    text[task.size] = '.';
    if (trial.size != 0)
        memcpy(text + task.size + 1, trial.data, trial.size);
    return cx_str_from(text, task.size + trial.size + 1);
}

/* A repeated run, for example in another file, is another run: 3.0, 3.0~2, 3.0~3. */
static cx_status unique_suffix(run *self, cx_str name, cx_err *err)
{
    tau_bench_state *state = self->sink->state;
    cx_str suffix = name;
    for (unsigned count = 2; cx_import_index_find(&state->runs, suffix) != NULL; count++) {
        cx_buf buf;
        cx_buf_init(&buf, self->sink->options->alloc);
        cx_buf_add_str(&buf, name);
        cx_buf_printf(&buf, "~%u", count);
        cx_status status = cx_buf_check(&buf, err);
        suffix = cx_arena_copy_str(self->sink->arena, cx_buf_str(&buf));
        cx_buf_done(&buf);
        CX_TRY(status);
        if (suffix.data == NULL)
            return cx_fail_nomem(err);
    }
    self->suffix = suffix;
    return cx_import_index_add(self->sink, &state->runs, suffix, CX_STR(""), CX_RECORD_NONE, err);
}

static cx_status set_agent(const run *self, cx_import_record *r, cx_str role, cx_err *err)
{
    char *text = cx_arena_push(self->sink->arena, role.size + 1 + self->suffix.size, 1);
    if (text == NULL)
        return cx_fail_nomem(err);
    memcpy(text, role.data, role.size);
    text[role.size] = '#';
    memcpy(text + role.size + 1, self->suffix.data, self->suffix.size);
    r->agent = cx_str_from(text, role.size + 1 + self->suffix.size);
    return CX_SUCCESS;
}

/* The run without its messages; it hangs on the file node. */
static cx_status open_run(run *self, uint32_t *out_record, cx_err *err)
{
    static const char *const messages[] = {"traj", NULL};
    cx_json *rest = CX_ARENA_NEW(self->sink->arena, cx_json);
    if (rest == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_import_without(self->value, messages, self->sink->arena, rest, err));
    cx_import_record *r = cx_import_begin(self->sink);
    r->raw = rest;
    r->kind = CX_KIND_RUN;
    r->under_file = true;
    CX_TRY(set_agent(self, r, CX_STR("run"), err));
    CX_TRY(cx_import_end(self->sink, out_record, err));
    self->last = *out_record;
    return CX_SUCCESS;
}

static void describe_role(cx_import_record *r, const run *self, const cx_json *message, cx_str role)
{
    if (cx_str_is(role, "assistant")) {
        bool calls = cx_import_chat_calls(r, self->suffix, message) != 0;
        r->kind = calls ? CX_KIND_ACT : CX_KIND_MESSAGE;
        r->fork = CX_IMPORT_FORK_NATURAL;
    } else if (cx_str_is(role, "tool")) {
        cx_str id = cx_import_scalar(CX_JSON_GET(message, "tool_call_id"));
        r->kind = CX_KIND_TOOL_RESULT;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
        r->call_id = id;
        r->tool = CX_JSON_GET_STR(message, "name");
        if (id.size == 0)
            r->issues |= 1u << CX_ISSUE_ORPHAN_RESULT;
        cx_import_result(r, self->suffix, id, true, r->content);
    } else {
        r->kind = CX_KIND_INPUT;
        r->fork = CX_IMPORT_FORK_NATURAL;
        if (!cx_str_is(role, "user") && !cx_str_is(role, "system"))
            r->issues |= 1u << CX_ISSUE_UNKNOWN_TYPE;
    }
}

static cx_status import_message(run *self, const cx_json *message, cx_err *err)
{
    cx_str role = CX_JSON_GET_STR(message, "role");
    if (role.size == 0)
        return cx_import_bad(self->sink, message, UINT64_MAX, err);
    cx_import_record *r = cx_import_begin(self->sink);
    r->raw = message;
    r->content = cx_import_not_null(CX_JSON_GET(message, "content"));
    cx_import_refer_record(r, self->last, CX_REF_SEQUENCE);
    describe_role(r, self, message, role);
    CX_TRY(cx_import_name_calls(r, err));
    CX_TRY(set_agent(self, r, role, err));
    return cx_import_end(self->sink, &self->last, err);
}

static cx_status close_run(run *self, uint32_t opened, cx_err *err)
{
    const cx_json *reward = cx_import_not_null(CX_JSON_GET(self->value, "reward"));
    if (reward != NULL && !cx_json_has_canonical(reward))
        reward = NULL; /* it made the run a bad record already */
    cx_import_record *r = cx_import_begin(self->sink);
    r->kind = CX_KIND_STATE;
    r->content = reward;
    cx_import_refer_record(r, self->last, CX_REF_SEQUENCE);
    cx_import_refer_record(r, opened, CX_REF_SEQUENCE);
    if (reward != NULL)
        cx_import_belief(r, CX_STR("reward"), *reward);
    CX_TRY(set_agent(self, r, CX_STR("run"), err));
    return cx_import_end(self->sink, NULL, err);
}

static cx_status import_run(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    run self = {.sink = sink, .value = value};
    cx_str only = sink->options->only;
    uint32_t opened = CX_RECORD_NONE;
    cx_str name = run_name(sink, value);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    const cx_json *messages = cx_json_get_typed(value, CX_STR("traj"), CX_JSON_ARRAY);
    if (only.size != 0 && (messages == NULL || !cx_str_eq(only, name)))
        return CX_SUCCESS;
    if (messages == NULL)
        return cx_import_bad(sink, value, UINT64_MAX, err);
    CX_TRY(unique_suffix(&self, name, err));
    CX_TRY(open_run(&self, &opened, err));
    for (uint32_t i = 0; i < messages->count; i++)
        CX_TRY(import_message(&self, &messages->items[i], err));
    return close_run(&self, opened, err);
}

static cx_status tau_bench_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    if (document->type != CX_JSON_ARRAY)
        return cx_import_shape(err, "an array of runs");
    for (uint32_t i = 0; i < document->count; i++)
        CX_TRY(import_run(sink, &document->items[i], err));
    return CX_SUCCESS;
}

/* The run's own node has no role, and says nothing. */
static void tau_bench_content(cx_import_content *content, const cx_json *raw)
{
    if (CX_JSON_GET_STR(raw, "role").size != 0)
        cx_import_say_message(content, raw);
}

static void tau_bench_done(cx_import_sink *sink)
{
    tau_bench_state *state = sink->state;
    cx_import_index_done(&state->runs, sink->options->alloc);
}

static int tau_bench_detect(cx_bytes head, const cx_json *first)
{
    static const char traj[] = "\"traj\"", task[] = "\"task_id\"";
    if (first != NULL) {
        bool is_run = first->type == CX_JSON_ARRAY && first->count != 0 &&
                      cx_json_get_typed(&first->items[0], CX_STR("traj"), CX_JSON_ARRAY) != NULL;
        return is_run ? 90 : 0;
    }
    bool found = head.size != 0 && memmem(head.data, head.size, task, sizeof task - 1) != NULL;
    if (!found)
        return 0;
    return memmem(head.data, head.size, traj, sizeof traj - 1) != NULL ? 85 : 30;
}

const cx_import_format cx_import_tau_bench = {
    .info = {"tau-bench", "tau-bench runs",
             "[{\"task_id\",\"trial\",\"reward\",\"info\",\"traj\":[...]}], --only TASK.TRIAL",
             false},
    .no_time = true,
    .takes_only = true,
    .state_size = sizeof(tau_bench_state),
    .document = tau_bench_document,
    .content = tau_bench_content,
    .done = tau_bench_done,
    .detect = tau_bench_detect,
};

/*
 * projection.c - reads events and gathers what they state (run.md §13, §14, §17).
 *
 *   I1  The four gates of a task are those of its last attempt: a new contract (S5 to S2) resets
 *       the verdicts of diff, review and tests.
 *   I2  Review has passed when the reviewer said PASS and changed nothing (§10); tests have passed
 *       when TEST_RESULT says PASS and no command was refused since.
 *   I3  An event of an unknown type changes nothing; readers keep it (§17).
 */
#include "bundle/projection.h"

#include "bundle/report_parts.h"

const char *const cx_run_gate_names[CX_RUN_GATE_COUNT] = {"diff_gate", "policy_gate", "review_gate",
                                                          "tests_gate"};

bool cx_run_gate_verdict_read(cx_run_event_type type, const cx_json *payload,
                              cx_run_gate_verdict *out)
{
    cx_gate_id gate = cx_gate_of_event(type);
    const cx_gate_row *row = cx_gate_row_of(gate);
    CX_ASSERT(payload != NULL);
    if (gate == CX_GATE_NONE)
        return false;
    cx_str member = cx_str_z(row->member);
    bool passed = row->good[0] == '\0' ? cx_json_get_typed(payload, member, CX_JSON_TRUE) != NULL
                                       : cx_str_is(cx_json_get_str(payload, member), row->good);
    *out = (cx_run_gate_verdict){.id = gate, .gate = row->name, .passed = passed};
    return true;
}

void cx_run_projection_init(cx_run_projection *projection)
{
    memset(projection, 0, sizeof *projection);
    projection->state = CX_STR("S0");
    projection->exit_code = -1;
}

void cx_run_projection_done(cx_run_projection *projection, const cx_arena *arena)
{
    cx_vec_done(&projection->moments, arena->alloc);
    cx_vec_done(&projection->transitions, arena->alloc);
    cx_vec_done(&projection->rulings, arena->alloc);
    cx_vec_done(&projection->tasks, arena->alloc);
}

/* --- reading --------------------------------------------------------------------------------- */

typedef struct reader {
    cx_run_projection *projection;
    cx_arena *keep;   /* what stays */
    cx_arena scratch; /* of one event */
    cx_run_event_read event;
    size_t moment;
    bool failed; /* memory */
} reader;

static cx_str copied(reader *r, cx_str text)
{
    if (text.data == NULL)
        return text;
    cx_str copy = cx_arena_copy_str(r->keep, text);
    if (copy.data == NULL)
        r->failed = true;
    return copy;
}

/* The same for text that repeats: what is in the line without escapes is borrowed from it. */
static cx_str borrowed(reader *r, cx_str text)
{
    uintptr_t at = (uintptr_t)text.data, line = (uintptr_t)r->event.line.data;
    if (text.data != NULL && at >= line && at - line < r->event.line.size)
        return text;
    return copied(r, text);
}

static cx_str payload_text(const reader *r, const char *name)
{
    return cx_json_get_str(&r->event.payload, cx_str_z(name));
}

static cx_run_projection_task *task_of(reader *r)
{
    cx_run_projection *projection = r->projection;
    cx_str id = r->event.task_id;
    if (id.data == NULL)
        return NULL;
    for (size_t i = projection->tasks.count; i > 0; i--)
        if (cx_str_eq(projection->tasks.items[i - 1].task_id, id))
            return &projection->tasks.items[i - 1];
    cx_run_projection_task *task = cx_vec_push(&projection->tasks, r->keep->alloc);
    if (task == NULL) {
        r->failed = true;
        return NULL;
    }
    *task = (cx_run_projection_task){.task_id = borrowed(r, id),
                                     .attempt = CX_RUN_NO_ATTEMPT,
                                     .first = r->moment,
                                     .state = CX_STR("S0")};
    return task;
}

static void add_transition(reader *r, cx_run_projection_task *task)
{
    cx_run_transition *slot = cx_vec_push(&r->projection->transitions, r->keep->alloc);
    if (slot == NULL) {
        r->failed = true;
        return;
    }
    *slot = (cx_run_transition){.moment = r->moment,
                                .from = borrowed(r, payload_text(r, "from")),
                                .to = borrowed(r, payload_text(r, "to")),
                                .reason = borrowed(r, payload_text(r, "reason"))};
    r->projection->state = slot->to;
    if (task == NULL)
        return;
    task->state = slot->to;
    if (cx_str_is(slot->from, "S5") && cx_str_is(slot->to, "S2")) { /* I1 */
        task->gates[CX_RUN_GATE_DIFF].reached = false;
        task->gates[CX_RUN_GATE_REVIEW].reached = false;
        task->gates[CX_RUN_GATE_TESTS].reached = false;
        task->isolation_failed = false;
    }
}

static void set_gate(cx_run_projection_task *task, unsigned gate, bool passed)
{
    task->gates[gate].reached = true;
    task->gates[gate].passed = passed;
}

/* What a ruling means for the four gates of its task. */
static void apply_ruling(cx_run_projection_task *task, const cx_run_gate_verdict *judgement)
{
    if (judgement->id == CX_GATE_POLICY)
        set_gate(task, CX_RUN_GATE_POLICY, judgement->passed);
    else if (judgement->id == CX_GATE_DIFF)
        set_gate(task, CX_RUN_GATE_DIFF, judgement->passed);
    else if (judgement->id == CX_GATE_REVIEW)
        set_gate(task, CX_RUN_GATE_REVIEW, judgement->passed && !task->isolation_failed);
    else if (judgement->id == CX_GATE_TESTS)
        set_gate(task, CX_RUN_GATE_TESTS, judgement->passed);
    else if (judgement->id == CX_GATE_ISOLATION && !judgement->passed) {
        task->isolation_failed = true; /* I2 */
        task->gates[CX_RUN_GATE_REVIEW].passed = false;
    } else if (judgement->id == CX_GATE_TOOL && !judgement->passed &&
               cx_str_is(task->state, "S4")) /* before S4 it is the runner's own argv */
        set_gate(task, CX_RUN_GATE_TESTS, false);
}

/* "D07 README.md": writers put either that or {rule, path}. */
static cx_str violation_text(reader *r, const cx_json *item)
{
    if (item->type == CX_JSON_STRING)
        return copied(r, cx_json_text(item));
    cx_str rule = CX_JSON_GET_STR(item, "rule"), path = CX_JSON_GET_STR(item, "path");
    cx_str text = cx_arena_printf(r->keep, "%.*s%s%.*s", (int)rule.size,
                                  rule.data == NULL ? "" : rule.data, path.size == 0 ? "" : " ",
                                  (int)path.size, path.data == NULL ? "" : path.data);
    if (text.data == NULL)
        r->failed = true;
    return text;
}

static void add_ruling(reader *r, cx_run_projection_task *task,
                       const cx_run_gate_verdict *judgement)
{
    cx_run_ruling *slot = cx_vec_push(&r->projection->rulings, r->keep->alloc);
    const cx_json *list = cx_json_get_typed(&r->event.payload, CX_STR("violations"), CX_JSON_ARRAY);
    cx_str *violations = NULL;
    size_t count = list == NULL ? 0 : list->count;
    if (slot == NULL) {
        r->failed = true;
        return;
    }
    if (count != 0 && (violations = CX_ARENA_ARRAY(r->keep, cx_str, count)) == NULL) {
        r->failed = true;
        count = 0;
    }
    for (size_t i = 0; i < count; i++)
        violations[i] = violation_text(r, &list->items[i]);
    *slot = (cx_run_ruling){.moment = r->moment,
                            .judgement = *judgement,
                            .violations = violations,
                            .violation_count = count};
    if (task != NULL)
        apply_ruling(task, judgement);
}

/* An approval lifts what the policy gate refused (§13); the run goes on only then. */
static void apply_approval(cx_run_projection_task *task)
{
    if (task != NULL && task->gates[CX_RUN_GATE_POLICY].reached)
        task->gates[CX_RUN_GATE_POLICY].passed = true;
}

static void apply_run_finished(reader *r)
{
    cx_run_projection *projection = r->projection;
    const cx_json *code = CX_JSON_GET(&r->event.payload, "exit_code");
    projection->status = borrowed(r, payload_text(r, "status"));
    if (projection->status.data == NULL)
        projection->status = CX_STR("");
    if (code == NULL || !cx_json_int64(code, &projection->exit_code))
        projection->exit_code = -1;
    if (cx_str_is(projection->status, "SUCCESS"))
        projection->failed_gate = projection->reason = cx_str_from(NULL, 0);
}

static void apply_event(reader *r)
{
    cx_run_projection *projection = r->projection;
    cx_run_event_type kind = r->event.kind;
    cx_run_projection_task *task = task_of(r);
    cx_run_gate_verdict judgement;
    if (task != NULL) {
        task->last = r->moment;
        if (r->event.has_attempt)
            task->attempt = r->event.attempt;
    }
    if (cx_run_gate_verdict_read(kind, &r->event.payload, &judgement)) {
        add_ruling(r, task, &judgement);
    } else if (kind == CX_RUN_EVENT_STATE_TRANSITION) {
        add_transition(r, task);
    } else if (kind == CX_RUN_EVENT_GATE_FAILED) {
        projection->failed_gate = borrowed(r, payload_text(r, "gate"));
        projection->reason = borrowed(r, payload_text(r, "reason"));
    } else if (kind == CX_RUN_EVENT_HUMAN_APPROVAL_COMPLETED) {
        apply_approval(task);
    } else if (kind == CX_RUN_EVENT_RUN_FINISHED) {
        apply_run_finished(r);
    } else if (kind == CX_RUN_EVENT_RUN_CREATED) {
        projection->baseline_commit = borrowed(r, payload_text(r, "baseline_commit"));
        projection->contract_sha256 = borrowed(r, payload_text(r, "contract_sha256"));
    }
}

static cx_status read_line(reader *r, cx_str line, cx_err *err)
{
    cx_run_projection *projection = r->projection;
    uint64_t index = projection->moments.count + 1;
    cx_status status = cx_run_event_parse(line, index, &r->scratch, &r->event, err);
    if (cx_failed(status)) {
        if (err != NULL)
            err->line = index;
        return status;
    }
    cx_run_moment *moment = cx_vec_push(&projection->moments, r->keep->alloc);
    if (moment == NULL)
        return cx_fail_nomem(err);
    r->moment = projection->moments.count - 1;
    *moment = (cx_run_moment){
        .index = index,
        .line = line,
        .ts = borrowed(r, r->event.ts),
        .level = borrowed(r, r->event.level),
        .type = borrowed(r, r->event.type),
        .kind = r->event.kind,
        .task_id = borrowed(r, r->event.task_id),
        .attempt = r->event.has_attempt ? r->event.attempt : CX_RUN_NO_ATTEMPT,
    };
    if (index == 1) {
        projection->run_id = borrowed(r, r->event.run_id);
        projection->trace_id = borrowed(r, r->event.trace_id);
    }
    apply_event(r);
    return r->failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_run_projection_read(cx_str events, cx_arena *arena, cx_run_projection *projection,
                                 cx_err *err)
{
    CX_ASSERT(arena != NULL && projection != NULL);
    reader r = {.projection = projection, .keep = arena};
    cx_status status = CX_SUCCESS;
    cx_str line;
    cx_arena_init(&r.scratch, arena->alloc, 0);
    cx_arena_mark mark = cx_arena_mark_now(&r.scratch);
    while (!cx_failed(status) && cx_run_next_line(&events, &line)) {
        if (projection->moments.count == CX_RUN_EVENTS_MAX)
            status = cx_fail(err, CX_E_LIMIT, "more than %d events", CX_RUN_EVENTS_MAX);
        else
            status = read_line(&r, line, err);
        cx_arena_reset(&r.scratch, mark);
    }
    projection->torn = events.size != 0;
    cx_arena_done(&r.scratch);
    return status;
}

const cx_run_projection_task *cx_run_projection_find(const cx_run_projection *projection,
                                                     cx_str task_id)
{
    for (size_t i = 0; i < projection->tasks.count; i++)
        if (cx_str_eq(projection->tasks.items[i].task_id, task_id))
            return &projection->tasks.items[i];
    return NULL;
}

/* Whether the gate has judged this task itself. */
static bool reached(const cx_run_projection_task *task, unsigned gate)
{
    return task->gates[gate].reached;
}

bool cx_run_projection_task_passed(const cx_run_projection *projection,
                                   const cx_run_projection_task *task, unsigned gate)
{
    CX_ASSERT(projection != NULL);
    if (reached(task, gate) || gate != CX_RUN_GATE_POLICY)
        return reached(task, gate) && task->gates[gate].passed;
    for (size_t i = 0; i < projection->tasks.count; i++)
        if (reached(&projection->tasks.items[i], gate))
            return projection->tasks.items[i].gates[gate].passed;
    return false;
}

/* A contract that was split has no work of its own to judge. */
static bool has_own_gates(const cx_run_projection_task *task)
{
    return reached(task, CX_RUN_GATE_DIFF) || reached(task, CX_RUN_GATE_REVIEW) ||
           reached(task, CX_RUN_GATE_TESTS);
}

bool cx_run_projection_passed(const cx_run_projection *projection, unsigned gate)
{
    CX_ASSERT(projection != NULL);
    size_t count = 0;
    for (size_t i = 0; i < projection->tasks.count; i++) {
        const cx_run_projection_task *task = &projection->tasks.items[i];
        if (!has_own_gates(task) && !(gate == CX_RUN_GATE_POLICY && reached(task, gate)))
            continue;
        if (!cx_run_projection_task_passed(projection, task, gate))
            return false;
        count++;
    }
    return count != 0;
}

/* --- as JSON --------------------------------------------------------------------------------- */

static void put_moment(cx_json_list *object, const cx_run_moment *moment)
{
    cx_json_put_uint(object, "index", moment->index);
    cx_json_put_utf8(object, "ts", moment->ts);
    if (moment->task_id.data == NULL)
        cx_json_put(object, "task_id", cx_json_make_null());
    else
        cx_json_put_utf8(object, "task_id", moment->task_id);
    cx_json_put(object, "attempt",
                moment->attempt == CX_RUN_NO_ATTEMPT
                    ? cx_json_make_null()
                    : cx_json_make_int(object->arena, moment->attempt));
}

cx_status cx_run_projection_states_json(const cx_run_projection *projection, cx_arena *arena,
                                        cx_json *out, cx_err *err)
{
    CX_ASSERT(projection != NULL && arena != NULL && out != NULL);
    cx_json_list array = cx_json_list_begin(arena);
    for (size_t i = 0; i < projection->transitions.count; i++) {
        const cx_run_transition *one = &projection->transitions.items[i];
        cx_json_list object = cx_json_list_begin(arena);
        put_moment(&object, &projection->moments.items[one->moment]);
        cx_json_put_utf8(&object, "from", one->from);
        cx_json_put_utf8(&object, "to", one->to);
        cx_json_put_utf8(&object, "reason", one->reason);
        cx_json_add_object(&array, &object);
    }
    return cx_json_list_end_array(&array, out, err);
}

cx_status cx_run_projection_rulings_json(const cx_run_projection *projection, cx_arena *arena,
                                         cx_json *out, cx_err *err)
{
    CX_ASSERT(projection != NULL && arena != NULL && out != NULL);
    cx_json_list array = cx_json_list_begin(arena);
    for (size_t i = 0; i < projection->rulings.count; i++) {
        const cx_run_ruling *one = &projection->rulings.items[i];
        cx_json_list object = cx_json_list_begin(arena);
        put_moment(&object, &projection->moments.items[one->moment]);
        cx_json_put_utf8(&object, "event_type", projection->moments.items[one->moment].type);
        cx_json_put_z(&object, "gate", one->judgement.gate);
        cx_json_put_bool(&object, "passed", one->judgement.passed);
        cx_json_put_utf8_strs(&object, "violations", one->violations, one->violation_count);
        cx_json_add_object(&array, &object);
    }
    return cx_json_list_end_array(&array, out, err);
}

cx_status cx_run_projection_gates_json(const cx_run_projection *projection, cx_arena *arena,
                                       cx_json *out, cx_err *err)
{
    CX_ASSERT(projection != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena);
    for (unsigned gate = 0; gate < CX_RUN_GATE_COUNT; gate++) {
        cx_json_list one = cx_json_list_begin(arena);
        bool was = false;
        for (size_t i = 0; i < projection->tasks.count; i++)
            was = was || reached(&projection->tasks.items[i], gate);
        cx_json_put_bool(&one, "passed", cx_run_projection_passed(projection, gate));
        cx_json_put_bool(&one, "reached", was);
        cx_json_put_object(&object, cx_run_gate_names[gate], &one);
    }
    return cx_json_list_end_object(&object, out, err);
}

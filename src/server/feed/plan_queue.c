/*
 * plan_queue.c - plans what is queued, one request after the other (plan_queue.h).
 */
#include "server/feed/plan_queue.h"

#include "audit/api.h"
#include "base/api.h"
#include "governor/api.h"
#include "os/api.h"

#define IDLE_MS 2000  /* the queue of another server of this repository may get longer */
#define AGAIN_MS 1000 /* after what could not be started */

struct cx_plan_queue {
    cx_runs *runs;
    const cx_runs_options *options;
    cx_thread thread;
    cx_lock lock;
    bool woken, ending; /* under the lock */
};

/* --- preview ---------------------------------------------------------------------------------- */

cx_status cx_plan_preview(const cx_runs_options *options, cx_bytes contract, cx_str runner,
                          cx_arena *arena, cx_json *out, bool *out_allow, cx_err *err)
{
    cx_str name = runner.size == 0 ? CX_STR("") : cx_arena_copy_str(arena, runner);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    const cx_run_options how = {
        .alloc = options->alloc,
        .io = options->io,
        .repo = options->repo,
        .runtime_root = options->runtime_root,
        .home = options->home_path,
        .program = options->program,
        .contract = contract,
        .runner = name.size == 0 ? NULL : name.data,
    };
    return cx_run_dry(&how, arena, out, out_allow, err);
}

/* --- one case --------------------------------------------------------------------------------- */

typedef struct planning {
    cx_plan_queue *queue;
    cx_run_store store;
    cx_arena *arena;
    cx_run_case one;
} planning;

/* Under the mutex: `change` on the case as it is now; one that was cancelled meanwhile stays so. */
static cx_status change_case(planning *p, void (*change)(planning *p, cx_run_case *one),
                             cx_err *err)
{
    cx_file mutex;
    cx_run_case now;
    CX_TRY(cx_run_cases_lock(&p->store, p->arena, &mutex, err));
    cx_status status = cx_run_case_read(&p->store, p->one.case_id, p->arena, &now, err);
    if (!cx_failed(status) && now.state <= CX_CASE_PLANNING) {
        change(p, &now);
        status = cx_run_case_write(&p->store, &now, p->arena, err);
    }
    p->one = cx_failed(status) ? p->one : now;
    cx_flock_release(mutex);
    return status;
}

static void set_planning(planning *p, cx_run_case *one)
{
    (void)p;
    one->state = CX_CASE_PLANNING;
    one->note = CX_STR("");
}

static void set_queued(planning *p, cx_run_case *one)
{
    (void)p;
    one->state = CX_CASE_QUEUED;
    one->note = CX_STR("the server stopped before the planner had answered");
}

/* The result, which the worker prepared in p->one. */
static void set_result(planning *p, cx_run_case *one)
{
    *one = p->one;
}

static cx_status read_violations(const cx_run_projection *projection, planning *p, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(p->arena);
    cx_run_event_read event;
    for (size_t i = projection->moments.count; i-- > 0;) {
        const cx_run_moment *moment = &projection->moments.items[i];
        if (moment->kind != CX_RUN_EVENT_GATE_FAILED &&
            moment->kind != CX_RUN_EVENT_POLICY_VIOLATION)
            continue;
        CX_TRY(cx_run_event_parse(moment->line, moment->index, p->arena, &event, err));
        const cx_json *texts =
            cx_json_get_typed(&event.payload, CX_STR("violations"), CX_JSON_ARRAY);
        for (uint32_t k = 0; texts != NULL && k < texts->count; k++)
            if (texts->items[k].type == CX_JSON_STRING)
                cx_json_list_add(&list, texts->items[k]);
        if (texts != NULL && texts->count != 0)
            break;
    }
    return cx_json_list_end_array(&list, &p->one.violations, err);
}

/* The contract as the planner wrote it; its hash is in the evidence of its turn. */
static cx_status read_contract(cx_run_bundle *bundle, planning *p, cx_bytes *out, cx_err *err)
{
    cx_json evidence;
    CX_TRY(cx_run_bundle_json(bundle, CX_STR("artifacts/intent.json"), &evidence, err));
    cx_str task = CX_JSON_GET_STR(&evidence, "task_id");
    *out = (cx_bytes){NULL, 0};
    if (CX_JSON_GET_STR(&evidence, "contract_sha256").data == NULL)
        return CX_SUCCESS;
    cx_str path = cx_arena_printf(p->arena, "codex/%.*s/reply.txt", (int)task.size, task.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    return cx_run_bundle_read(bundle, path, CX_RUN_CONTRACT_BYTES_MAX, out, err);
}

static cx_status read_result(cx_run_bundle *bundle, planning *p, cx_err *err)
{
    cx_run_projection projection;
    cx_bytes contract;
    bool allow = false;
    cx_status status = cx_run_view_projection(bundle, p->arena, &projection, err);
    if (!cx_failed(status))
        status = read_contract(bundle, p, &contract, err);
    if (!cx_failed(status) && contract.data == NULL) {
        p->one.gate = cx_arena_copy_str(p->arena, projection.failed_gate);
        p->one.reason = cx_arena_copy_str(p->arena, projection.reason);
        status = read_violations(&projection, p, err);
    } else if (!cx_failed(status)) {
        status = cx_run_case_write_contract(&p->store, &p->one, contract, p->arena, err);
        if (!cx_failed(status))
            status = cx_plan_preview(p->queue->options, contract, p->one.runner, p->arena,
                                     &p->one.preview, &allow, err);
    }
    p->one.state = allow ? CX_CASE_PLANNED : CX_CASE_REFUSED;
    cx_run_projection_done(&projection, p->arena);
    return status;
}

static cx_status record_result(planning *p, const cx_run_started *started, cx_err *err)
{
    cx_run_bundle *bundle = NULL;
    p->one.state = CX_CASE_REFUSED;
    if (started->run_id.size == 0) {
        p->one.note = started->message.size == 0 ? CX_STR("the planner's run could not be started")
                                                 : started->message;
        return change_case(p, set_result, err);
    }
    p->one.plan_run_id = started->run_id;
    cx_err why = {0};
    cx_status status = cx_run_view_open(&p->store, started->run_id, &bundle, &why);
    if (!cx_failed(status))
        status = read_result(bundle, p, &why);
    if (cx_failed(status)) {
        p->one.state = CX_CASE_REFUSED;
        p->one.note =
            cx_arena_printf(p->arena, "the planner's result cannot be read: %s", why.message);
    }
    status = p->one.note.data == NULL ? cx_fail_nomem(err) : change_case(p, set_result, err);
    cx_run_bundle_close(bundle);
    return status;
}

static bool is_ending(cx_plan_queue *queue)
{
    cx_lock_enter(&queue->lock);
    bool ending = queue->ending;
    cx_lock_leave(&queue->lock);
    return ending;
}

static cx_status plan_case(planning *p, cx_err *err)
{
    cx_run_started started;
    cx_run_start what = {.contract = cx_str_bytes(p->one.intent),
                         .is_intent = true,
                         .plan_only = true,
                         .runner = p->one.runner.size == 0 ? (cx_str){NULL, 0} : p->one.runner,
                         .until_end = true};
    CX_TRY(change_case(p, set_planning, err));
    if (p->one.state != CX_CASE_PLANNING)
        return CX_SUCCESS; /* cancelled */
    cx_status status = cx_runs_start(p->queue->runs, &what, p->arena, &started, err);
    if (cx_failed(status) || is_ending(p->queue)) { /* Q3 */
        cx_err ignored;
        cx_status back = change_case(p, set_queued, &ignored);
        return cx_failed(status) ? status : back;
    }
    return record_result(p, &started, err);
}

/* Q3: the planner of this process is the only one, so a case that is being planned has no
 * planner. */
static cx_status requeue_cases(planning *p, cx_err *err)
{
    cx_str *ids;
    size_t count;
    CX_TRY(cx_run_case_list(&p->store, p->arena, &ids, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (cx_failed(cx_run_case_read(&p->store, ids[i], p->arena, &p->one, NULL)))
            continue;
        if (p->one.state == CX_CASE_PLANNING)
            CX_TRY(change_case(p, set_queued, err));
    }
    return CX_SUCCESS;
}

/* --- the thread ------------------------------------------------------------------------------- */

static bool wait_for_more(cx_plan_queue *queue, uint32_t ms)
{
    cx_lock_enter(&queue->lock);
    if (!queue->woken && !queue->ending)
        cx_lock_wait_for(&queue->lock, ms);
    queue->woken = false;
    bool go_on = !queue->ending;
    cx_lock_leave(&queue->lock);
    return go_on;
}

/* How long to wait until the next look; 0 = look at once. */
static uint32_t plan_next(cx_plan_queue *queue, cx_arena *arena, cx_file *planner)
{
    planning p = {.queue = queue, .arena = arena};
    cx_err err;
    cx_facts facts;
    if (cx_failed(cx_runs_store(queue->runs, &p.store, &err)) ||
        cx_failed(cx_path_facts(p.store.root, true, &facts, &err)))
        return IDLE_MS; /* nothing ever ran here */
    if (*planner == CX_FILE_NONE) {
        if (cx_failed(cx_run_cases_planner(&p.store, arena, planner, &err))) { /* Q2 */
            *planner = CX_FILE_NONE;
            return IDLE_MS;
        }
        if (cx_failed(requeue_cases(&p, &err)))
            return AGAIN_MS;
    }
    if (cx_failed(cx_run_case_next(&p.store, arena, &p.one, &err)))
        return IDLE_MS;
    return cx_failed(plan_case(&p, &err)) ? AGAIN_MS : 0;
}

static void work_queue(void *arg)
{
    cx_plan_queue *queue = arg;
    cx_file planner = CX_FILE_NONE;
    bool go_on = true;
    while (go_on) {
        cx_arena arena;
        cx_arena_init(&arena, queue->options->alloc, 0);
        uint32_t ms = plan_next(queue, &arena, &planner);
        cx_arena_done(&arena);
        go_on = ms == 0 ? !is_ending(queue) : wait_for_more(queue, ms);
    }
    cx_flock_release(planner);
}

cx_status cx_plan_queue_open(cx_runs *runs, const cx_runs_options *options, cx_plan_queue **out,
                             cx_err *err)
{
    cx_plan_queue *queue = cx_alloc_zeroed(options->alloc, 1, sizeof *queue);
    if (queue == NULL)
        return cx_fail_nomem(err);
    queue->runs = runs;
    queue->options = options;
    cx_lock_init(&queue->lock);
    *out = queue;
    return cx_thread_start(&queue->thread, work_queue, queue)
               ? CX_SUCCESS
               : cx_fail(err, CX_E_BUSY, "a thread for the queue of requests cannot be started");
}

void cx_plan_queue_wake(cx_plan_queue *queue)
{
    cx_lock_enter(&queue->lock);
    queue->woken = true;
    cx_lock_wake(&queue->lock);
    cx_lock_leave(&queue->lock);
}

void cx_plan_queue_end(cx_plan_queue *queue)
{
    cx_lock_enter(&queue->lock);
    queue->ending = true;
    cx_lock_wake(&queue->lock);
    cx_lock_leave(&queue->lock);
}

void cx_plan_queue_close(cx_plan_queue *queue)
{
    if (queue == NULL)
        return;
    cx_thread_join(&queue->thread);
    cx_lock_done(&queue->lock);
    cx_alloc_free(queue->options->alloc, queue, sizeof *queue);
}

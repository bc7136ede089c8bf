/*
 * run_lattice.c - events of a run as nodes (decision 0017).
 *
 *     agent_id      run/<run_id>/<task_id>, or run/<run_id>/governor for events without a task
 *     seq           counts the branch's nodes from 0
 *     timestamp     the event's, in seconds, exact
 *     event         {"__seal","attempt","event_type","level","payload_sha256","source":"run"}
 *     state_delta   {"memory":{"state":<to>}} on a transition, {"memory":{"gate.<name>":
 *                   {"passed":..}}} on a gate's verdict, else {"memory":{"last.<type>":<payload>}}
 *
 *   I1  A task's first node descends from the governor's newest node, which spawned it.
 *   I2  The governor's first node after a task's last one descends from that one too.
 *   I3  A branch is written with all its ancestors, so that it verifies by itself.
 */
#include "provenance/run_lattice.h"

#include "base/api.h"
#include "recorder/api.h"
#include "bundle/api.h"
#include "trace/api.h"

#define NOTHING SIZE_MAX

typedef struct branch {
    cx_str agent_id;
    int64_t next_seq;
    size_t newest; /* node; NOTHING = none yet */
    size_t last_moment;
    bool joined; /* I2 */
} branch;

typedef struct weaver {
    cx_run_projection projection;
    cx_arena arena;   /* of the whole */
    cx_arena scratch; /* of one node */
    cx_buf preimage;
    cx_buf lines; /* all nodes, in order of events */
    size_t *ends; /* where each node's line ends */
    char (*hashes)[CX_NODE_HASH_SIZE];
    branch *branches; /* 0 = the governor, then the tasks of the run */
    size_t branch_count;
    size_t *parents; /* of each node, by node; those of a node end at its `parent_end` */
    size_t *parent_end;
    size_t parent_count, parent_capacity;
} weaver;

/* --- one node -------------------------------------------------------------------------------- */

static cx_status delta_of(const cx_run_event_read *event, cx_arena *arena, cx_json *out,
                          cx_err *err)
{
    cx_run_gate_verdict judgement;
    cx_str name;
    cx_json value;
    if (cx_str_is(event->type, "STATE_TRANSITION"))
        return cx_node_memory(CX_STR("state"),
                              cx_json_make_str(CX_JSON_GET_STR(&event->payload, "to")), arena, out,
                              err);
    if (cx_run_gate_verdict_read(event->kind, &event->payload, &judgement)) {
        cx_json_list list = cx_json_list_begin(arena);
        cx_json_list_put(&list, CX_STR("passed"), cx_json_make_bool(judgement.passed));
        CX_TRY(cx_json_list_end_object(&list, &value, err));
        name = cx_arena_printf(arena, "gate.%s", judgement.gate);
    } else {
        value = event->payload;
        name = cx_arena_printf(arena, "last.%.*s", (int)event->type.size, event->type.data);
    }
    if (name.data == NULL)
        return cx_fail_nomem(err);
    return cx_node_memory(name, value, arena, out, err);
}

static cx_status begin_event(weaver *w, const cx_run_event_read *event, cx_json_list *list,
                             cx_err *err)
{
    cx_str digest;
    CX_TRY(cx_node_digest(&event->payload, &w->scratch, &w->preimage, &digest, err));
    *list = cx_json_list_begin(&w->scratch);
    cx_json_list_put(list, CX_STR("attempt"),
                     event->has_attempt ? cx_json_make_int(&w->scratch, event->attempt)
                                        : cx_json_make_null());
    cx_json_list_put(list, CX_STR("event_type"), cx_json_make_str(event->type));
    cx_json_list_put(list, CX_STR("level"), cx_json_make_str(event->level));
    cx_json_list_put(list, CX_STR("payload_sha256"), cx_json_make_str(digest));
    cx_json_list_put(list, CX_STR("source"), cx_json_make_str(CX_STR("run")));
    return CX_SUCCESS;
}

static cx_status add_parent(weaver *w, size_t node, cx_err *err)
{
    if (w->parent_count == w->parent_capacity)
        return cx_fail_nomem(err); /* cannot be: see weave() */
    w->parents[w->parent_count++] = node;
    return CX_SUCCESS;
}

/* The parents of this node; the newest of its own branch comes first. */
static cx_status choose_parents(weaver *w, const branch *own, size_t moment, cx_err *err)
{
    branch *governor = &w->branches[0];
    if (own->newest != NOTHING)
        CX_TRY(add_parent(w, own->newest, err));
    else if (own != governor && governor->newest != NOTHING) /* I1 */
        CX_TRY(add_parent(w, governor->newest, err));
    for (size_t i = 1; own == governor && i < w->branch_count; i++) { /* I2 */
        branch *task = &w->branches[i];
        if (task->joined || task->newest == NOTHING || task->last_moment >= moment)
            continue;
        task->joined = true;
        CX_TRY(add_parent(w, task->newest, err));
    }
    return CX_SUCCESS;
}

static cx_status write_node(weaver *w, branch *own, size_t moment, const cx_run_event_read *event,
                            cx_err *err)
{
    size_t first = w->parent_count;
    int64_t ns;
    bool naive;
    CX_TRY(choose_parents(w, own, moment, err));
    size_t count = w->parent_count - first;
    cx_str *parents = CX_ARENA_ARRAY(&w->scratch, cx_str, count + 1);
    if (parents == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        parents[i] = cx_str_from(w->hashes[w->parents[first + i]], CX_NODE_HASH_SIZE);
    cx_node_draft draft = {.agent_id = own->agent_id,
                           .seq = own->next_seq,
                           .prev_hash = count == 0 ? CX_STR(CX_NODE_GENESIS) : parents[0],
                           .parents = parents,
                           .parent_count = count};
    if (!cx_trace_time_parse(event->ts, &ns, &naive) || naive) {
        cx_status status = cx_fail(err, CX_E_FORMAT, "event %llu: its time is not in RFC 3339 form",
                                   (unsigned long long)event->index);
        if (err != NULL)
            err->line = event->index;
        return status;
    }
    CX_TRY(cx_node_seconds(ns, &w->scratch, &draft.timestamp, err));
    CX_TRY(delta_of(event, &w->scratch, &draft.delta, err));
    CX_TRY(begin_event(w, event, &draft.event, err));
    CX_TRY(cx_node_write(&draft, &w->scratch, &w->preimage, &w->lines, w->hashes[moment], err));
    own->newest = moment;
    own->next_seq++;
    w->ends[moment] = w->lines.size;
    w->parent_end[moment] = w->parent_count;
    return CX_SUCCESS;
}

/* --- all of them ----------------------------------------------------------------------------- */

static branch *branch_of(weaver *w, cx_str task_id)
{
    if (task_id.data == NULL)
        return &w->branches[0];
    const cx_run_projection_task *task = cx_run_projection_find(&w->projection, task_id);
    return &w->branches[1 + (size_t)(task - w->projection.tasks.items)];
}

static cx_status open_branches(weaver *w, cx_err *err)
{
    const cx_run_projection *projection = &w->projection;
    w->branch_count = projection->tasks.count + 1;
    w->branches = CX_ARENA_ARRAY(&w->arena, branch, w->branch_count);
    if (w->branches == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < w->branch_count; i++) {
        cx_str name =
            i == 0 ? CX_STR(CX_RUN_LATTICE_GOVERNOR) : projection->tasks.items[i - 1].task_id;
        w->branches[i] = (branch){
            .agent_id = cx_arena_printf(&w->arena, "run/%.*s/%.*s", (int)projection->run_id.size,
                                        projection->run_id.data, (int)name.size, name.data),
            .newest = NOTHING,
            .last_moment = i == 0 ? NOTHING : projection->tasks.items[i - 1].last,
        };
        if (w->branches[i].agent_id.data == NULL)
            return cx_fail_nomem(err);
    }
    return CX_SUCCESS;
}

static cx_status write_run(weaver *w, cx_err *err)
{
    size_t count = w->projection.moments.count;
    CX_TRY(open_branches(w, err));
    /* Each node has one parent of its own, and each branch is spawned and joined once. */
    w->parent_capacity = count + 2 * w->branch_count;
    w->ends = CX_ARENA_ARRAY(&w->arena, size_t, count + 1);
    w->parent_end = CX_ARENA_ARRAY(&w->arena, size_t, count + 1);
    w->parents = CX_ARENA_ARRAY(&w->arena, size_t, w->parent_capacity);
    w->hashes = cx_arena_push_array(&w->arena, count + 1, CX_NODE_HASH_SIZE, 1);
    if (w->ends == NULL || w->parent_end == NULL || w->parents == NULL || w->hashes == NULL)
        return cx_fail_nomem(err);
    cx_arena_mark mark = cx_arena_mark_now(&w->scratch);
    for (size_t i = 0; i < count; i++) {
        const cx_run_moment *moment = &w->projection.moments.items[i];
        cx_run_event_read event;
        CX_TRY(cx_run_event_parse(moment->line, moment->index, &w->scratch, &event, err));
        CX_TRY(write_node(w, branch_of(w, moment->task_id), i, &event, err));
        cx_arena_reset(&w->scratch, mark);
    }
    return CX_SUCCESS;
}

/* I3: the ancestors of the newest node of a branch, itself included.  Parents come first. */
static cx_status write_descent(weaver *w, size_t newest, cx_buf *out, cx_err *err)
{
    size_t count = w->projection.moments.count;
    bool *wanted = CX_ARENA_ARRAY(&w->arena, bool, count + 1);
    if (wanted == NULL)
        return cx_fail_nomem(err);
    memset(wanted, 0, count + 1);
    wanted[newest] = true;
    for (size_t i = count; i > 0; i--)
        for (size_t k = i == 1 ? 0 : w->parent_end[i - 2];
             wanted[i - 1] && k < w->parent_end[i - 1]; k++)
            wanted[w->parents[k]] = true;
    for (size_t i = 0; i < count; i++) {
        size_t start = i == 0 ? 0 : w->ends[i - 1];
        if (wanted[i])
            cx_buf_add(out, w->lines.data + start, w->ends[i] - start);
    }
    return cx_buf_check(out, err);
}

static cx_status write_branch(weaver *w, cx_str name, cx_buf *out, cx_err *err)
{
    for (size_t i = 0; i < w->branch_count; i++) {
        cx_str known =
            i == 0 ? CX_STR(CX_RUN_LATTICE_GOVERNOR) : w->projection.tasks.items[i - 1].task_id;
        if (cx_str_eq(known, name) && w->branches[i].newest != NOTHING)
            return write_descent(w, w->branches[i].newest, out, err);
    }
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
                      "the run has no branch %.*s, expected a task id or governor", (int)name.size,
                      name.data);
}

cx_status cx_run_lattice_lines(cx_str events, cx_str branch_name, cx_buf *out, cx_err *err)
{
    weaver w = {.branch_count = 0};
    const cx_alloc *alloc = out->alloc;
    cx_arena_init(&w.arena, alloc, 0);
    cx_arena_init(&w.scratch, alloc, 0);
    cx_buf_init(&w.preimage, alloc);
    cx_buf_init(&w.lines, alloc);
    cx_run_projection_init(&w.projection);
    cx_status status = cx_run_projection_read(events, &w.arena, &w.projection, err);
    if (!cx_failed(status) && w.projection.moments.count == 0)
        status =
            cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET, "the run has no events yet");
    if (!cx_failed(status))
        status = write_run(&w, err);
    if (!cx_failed(status) && branch_name.data != NULL) {
        status = write_branch(&w, branch_name, out, err);
    } else if (!cx_failed(status)) {
        cx_buf_add_str(out, cx_buf_str(&w.lines));
        status = cx_buf_check(out, err);
    }
    cx_run_projection_done(&w.projection, &w.arena);
    cx_buf_done(&w.lines);
    cx_buf_done(&w.preimage);
    cx_arena_done(&w.scratch);
    cx_arena_done(&w.arena);
    return status;
}

cx_status cx_run_lattice(cx_str events, cx_str branch_name, const cx_lattice_options *options,
                         cx_buf *lines, cx_lattice **out, cx_err *err)
{
    CX_TRY(cx_run_lattice_lines(events, branch_name, lines, err));
    return cx_lattice_open_bytes(cx_buf_bytes(lines), options, out, err);
}

/*
 * run_weave.c - one event of a run as a node (run_weave.h).
 */
#include "provenance/run_weave.h"

#include "provenance/run_lattice.h"
#include "trace/api.h"

void cx_run_weave_init(cx_weave *weave, const cx_alloc *alloc)
{
    memset(weave, 0, sizeof *weave);
    cx_arena_init(&weave->arena, alloc, 0);
    cx_buf_init(&weave->preimage, alloc);
    cx_map_init(&weave->tasks, alloc, cx_io_seed(cx_io_system()));
}

void cx_run_weave_done(cx_weave *weave)
{
    const cx_alloc *alloc = weave->arena.alloc;
    cx_vec_done(&weave->branches, alloc);
    cx_vec_done(&weave->open, alloc);
    cx_vec_done(&weave->parents, alloc);
    cx_map_done(&weave->tasks);
    cx_buf_done(&weave->preimage);
    cx_arena_done(&weave->arena);
}

/* --- branches --------------------------------------------------------------------------------- */

static cx_status add_branch(cx_weave *w, cx_str run_id, cx_str task_id, cx_str name, cx_err *err)
{
    cx_weave_branch *slot = cx_vec_push(&w->branches, w->arena.alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_weave_branch){
        .task_id = task_id,
        .agent_id = cx_arena_printf(&w->arena, "run/%.*s/%.*s", (int)run_id.size, run_id.data,
                                    (int)name.size, name.data),
        .last = CX_WEAVE_NONE,
        .joined = CX_WEAVE_NONE,
        .newest = CX_WEAVE_NONE,
    };
    return slot->agent_id.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_run_weave_begin(cx_weave *w, cx_str run_id, cx_err *err)
{
    CX_ASSERT(w->branches.count == 0);
    return add_branch(w, run_id, (cx_str){NULL, 0}, CX_STR(CX_RUN_LATTICE_GOVERNOR), err);
}

cx_str cx_run_weave_run(const cx_weave *w)
{
    static const size_t before = sizeof "run/" - 1, after = sizeof CX_RUN_LATTICE_GOVERNOR;
    CX_ASSERT(w->branches.count != 0);
    cx_str agent = w->branches.items[0].agent_id;
    return cx_str_from(agent.data + before, agent.size - before - after);
}

cx_status cx_run_weave_task(cx_weave *w, cx_str task_id, uint32_t *out, cx_err *err)
{
    const uint64_t *known = cx_map_find(&w->tasks, task_id);
    uint64_t *place;
    bool is_new;
    CX_ASSERT(w->branches.count != 0);
    if (known != NULL) {
        *out = (uint32_t)*known;
        return CX_SUCCESS;
    }
    cx_str copy = cx_arena_copy_str(&w->arena, task_id);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(add_branch(w, cx_run_weave_run(w), copy, copy, err));
    CX_TRY(cx_map_put(&w->tasks, copy, &place, &is_new, err));
    *place = w->branches.count - 1;
    *out = (uint32_t)*place;
    return CX_SUCCESS;
}

cx_status cx_run_weave_note(cx_weave *w, const cx_run_event_read *event, uint64_t at, uint32_t *out,
                            cx_err *err)
{
    *out = 0;
    if (w->branches.count == 0)
        CX_TRY(cx_run_weave_begin(w, event->run_id, err));
    if (event->task_id.data != NULL)
        CX_TRY(cx_run_weave_task(w, event->task_id, out, err));
    w->branches.items[*out].last = at;
    return CX_SUCCESS;
}

void cx_run_weave_restart(cx_weave *w, uint64_t at)
{
    w->open.count = 0;
    for (size_t i = 0; i < w->branches.count; i++) {
        cx_weave_branch *branch = &w->branches.items[i];
        branch->newest = CX_WEAVE_NONE;
        branch->next_seq = 0;
        if (branch->joined >= at)
            branch->joined = CX_WEAVE_NONE;
    }
}

/* --- one node --------------------------------------------------------------------------------- */

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

static cx_status begin_event(cx_weave *w, const cx_run_event_read *event, cx_arena *scratch,
                             cx_json_list *list, cx_err *err)
{
    cx_str digest;
    CX_TRY(cx_node_digest(&event->payload, scratch, &w->preimage, &digest, err));
    *list = cx_json_list_begin(scratch);
    cx_json_list_put(list, CX_STR("attempt"),
                     event->has_attempt ? cx_json_make_int(scratch, event->attempt)
                                        : cx_json_make_null());
    cx_json_list_put(list, CX_STR("event_type"), cx_json_make_str(event->type));
    cx_json_list_put(list, CX_STR("level"), cx_json_make_str(event->level));
    cx_json_list_put(list, CX_STR("payload_sha256"), cx_json_make_str(digest));
    cx_json_list_put(list, CX_STR("source"), cx_json_make_str(CX_STR("run")));
    return CX_SUCCESS;
}

/* `hashes` has room for all. */
static cx_status add_parent(cx_weave *w, const cx_weave_branch *branch, cx_str *hashes, cx_err *err)
{
    uint64_t *slot = cx_vec_push(&w->parents, w->arena.alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = branch->newest;
    hashes[w->parents.count - 1] = cx_str_from(branch->hash, sizeof branch->hash);
    return CX_SUCCESS;
}

/* I2: the tasks that ended before this event of the governor; the others stay open. */
static cx_status join_tasks(cx_weave *w, uint64_t at, cx_str *hashes, cx_err *err)
{
    size_t left = 0;
    for (size_t i = 0; i < w->open.count; i++) {
        cx_weave_branch *task = &w->branches.items[w->open.items[i]];
        if (task->last >= at) {
            w->open.items[left++] = w->open.items[i];
            continue;
        }
        task->joined = at;
        CX_TRY(add_parent(w, task, hashes, err));
    }
    w->open.count = left;
    return CX_SUCCESS;
}

/* The parents of a branch's next node; the newest of its own comes first. */
static cx_status choose_parents(cx_weave *w, uint32_t own, uint64_t at, cx_str *hashes, cx_err *err)
{
    const cx_weave_branch *branch = &w->branches.items[own], *governor = &w->branches.items[0];
    w->parents.count = 0;
    if (branch->newest != CX_WEAVE_NONE)
        CX_TRY(add_parent(w, branch, hashes, err));
    else if (own != 0 && governor->newest != CX_WEAVE_NONE) /* I1 */
        CX_TRY(add_parent(w, governor, hashes, err));
    return own == 0 ? join_tasks(w, at, hashes, err) : CX_SUCCESS;
}

static cx_status read_time(const cx_run_event_read *event, cx_arena *scratch, cx_json *out,
                           cx_err *err)
{
    int64_t ns;
    bool naive;
    if (cx_trace_time_parse(event->ts, &ns, &naive) && !naive)
        return cx_node_seconds(ns, scratch, out, err);
    cx_status status = cx_fail(err, CX_E_FORMAT, "event %llu: its time is not in RFC 3339 form",
                               (unsigned long long)event->index);
    if (err != NULL)
        err->line = event->index;
    return status;
}

static cx_status branch_of(const cx_weave *w, const cx_run_event_read *event, uint32_t *out,
                           cx_err *err)
{
    *out = 0;
    if (event->task_id.data == NULL)
        return CX_SUCCESS;
    const uint64_t *known = cx_map_find(&w->tasks, event->task_id);
    if (known == NULL)
        return cx_fail(err, CX_E_CONFLICT, "event %llu changed while it was read",
                       (unsigned long long)event->index);
    *out = (uint32_t)*known;
    return CX_SUCCESS;
}

cx_status cx_run_weave_node(cx_weave *w, const cx_run_event_read *event, uint64_t at,
                            cx_arena *scratch, cx_buf *out, cx_err *err)
{
    uint32_t own;
    CX_TRY(branch_of(w, event, &own, err));
    cx_str *hashes = CX_ARENA_ARRAY(scratch, cx_str, w->open.count + 1);
    if (hashes == NULL)
        return cx_fail_nomem(err);
    CX_TRY(choose_parents(w, own, at, hashes, err));
    cx_weave_branch *branch = &w->branches.items[own];
    cx_node_draft draft = {.agent_id = branch->agent_id,
                           .seq = branch->next_seq,
                           .prev_hash = w->parents.count == 0 ? CX_STR(CX_NODE_GENESIS) : hashes[0],
                           .parents = hashes,
                           .parent_count = w->parents.count};
    char hash[CX_NODE_HASH_SIZE];
    CX_TRY(read_time(event, scratch, &draft.timestamp, err));
    CX_TRY(delta_of(event, scratch, &draft.delta, err));
    CX_TRY(begin_event(w, event, scratch, &draft.event, err));
    CX_TRY(cx_node_write(&draft, scratch, &w->preimage, out, hash, err));
    if (own != 0 && branch->newest == CX_WEAVE_NONE) {
        uint32_t *slot = cx_vec_push(&w->open, w->arena.alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = own;
    }
    memcpy(branch->hash, hash, sizeof hash);
    branch->newest = at;
    branch->next_seq++;
    return CX_SUCCESS;
}

cx_status cx_run_weave_parse(cx_str line, uint64_t at, cx_arena *scratch, cx_run_event_read *out,
                             cx_err *err)
{
    cx_status status = at >= CX_RUN_EVENTS_MAX
                           ? cx_fail(err, CX_E_LIMIT, "more than %d events", CX_RUN_EVENTS_MAX)
                           : cx_run_event_parse(line, at + 1, scratch, out, err);
    if (cx_failed(status) && err != NULL)
        err->line = at + 1;
    return status;
}

/*
 * run_lattice.c - the events of a run as nodes, all of them or those of a branch (run_weave.h).
 *
 *   I3  A branch is written with all its ancestors, so that it verifies by itself.
 */
#include "provenance/run_lattice.h"

#include "base/api.h"
#include "provenance/run_weave.h"

typedef struct weaver {
    cx_weave weave;
    cx_arena scratch; /* of one event */
    cx_str events;
    cx_buf *out;
    cx_buf lines; /* of a branch: all nodes, in order of events */
    uint64_t count;
    /* Of a branch, by event: where each node's line ends, its parents, and where those end. */
    CX_VEC(size_t) ends;
    CX_VEC(uint64_t) parents;
    CX_VEC(size_t) parent_ends;
} weaver;

/* The events that there are. */
static cx_status note_events(weaver *w, cx_err *err)
{
    cx_str rest = w->events, line;
    cx_arena_mark mark = cx_arena_mark_now(&w->scratch);
    for (; cx_run_next_line(&rest, &line); w->count++) {
        cx_run_event_read event;
        uint32_t branch;
        CX_TRY(cx_run_weave_parse(line, w->count, &w->scratch, &event, err));
        CX_TRY(cx_run_weave_note(&w->weave, &event, w->count, &branch, err));
        cx_arena_reset(&w->scratch, mark);
    }
    if (w->count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
                          "the run has no events yet");
    return CX_SUCCESS;
}

/* Of the node that was written last. */
static cx_status keep_links(weaver *w, cx_err *err)
{
    const cx_alloc *alloc = w->scratch.alloc;
    const size_t count = w->weave.parents.count;
    size_t *end = cx_vec_push(&w->ends, alloc), *parent_end = cx_vec_push(&w->parent_ends, alloc);
    if (end == NULL || parent_end == NULL ||
        !cx_vec_reserve(&w->parents, w->parents.count + count, alloc))
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        w->parents.items[w->parents.count++] = w->weave.parents.items[i];
    *end = w->lines.size;
    *parent_end = w->parents.count;
    return CX_SUCCESS;
}

static cx_status write_nodes(weaver *w, bool is_branch, cx_err *err)
{
    cx_str rest = w->events, line;
    cx_arena_mark mark = cx_arena_mark_now(&w->scratch);
    for (uint64_t i = 0; i < w->count && cx_run_next_line(&rest, &line); i++) {
        cx_run_event_read event;
        CX_TRY(cx_run_weave_parse(line, i, &w->scratch, &event, err));
        CX_TRY(cx_run_weave_node(&w->weave, &event, i, &w->scratch, is_branch ? &w->lines : w->out,
                                 err));
        if (is_branch)
            CX_TRY(keep_links(w, err));
        cx_arena_reset(&w->scratch, mark);
    }
    return CX_SUCCESS;
}

/* I3: the ancestors of the newest node of a branch, itself included.  Parents come first. */
static cx_status write_descent(weaver *w, uint64_t newest, cx_err *err)
{
    bool *wanted = CX_ARENA_ARRAY(&w->scratch, bool, w->count + 1);
    if (wanted == NULL)
        return cx_fail_nomem(err);
    memset(wanted, 0, w->count + 1);
    wanted[newest] = true;
    for (size_t i = w->count; i > 0; i--)
        for (size_t k = i == 1 ? 0 : w->parent_ends.items[i - 2];
             wanted[i - 1] && k < w->parent_ends.items[i - 1]; k++)
            wanted[w->parents.items[k]] = true;
    for (size_t i = 0; i < w->count; i++) {
        size_t start = i == 0 ? 0 : w->ends.items[i - 1];
        if (wanted[i])
            cx_buf_add(w->out, w->lines.data + start, w->ends.items[i] - start);
    }
    return cx_buf_check(w->out, err);
}

static cx_status write_branch(weaver *w, cx_str name, cx_err *err)
{
    for (size_t i = 0; i < w->weave.branches.count; i++) {
        const cx_weave_branch *branch = &w->weave.branches.items[i];
        cx_str known = i == 0 ? CX_STR(CX_RUN_LATTICE_GOVERNOR) : branch->task_id;
        if (cx_str_eq(known, name) && branch->newest != CX_WEAVE_NONE)
            return write_descent(w, branch->newest, err);
    }
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
                      "the run has no branch %.*s, expected a task id or governor", (int)name.size,
                      name.data);
}

cx_status cx_run_lattice_lines(cx_str events, cx_str branch_name, cx_buf *out, cx_err *err)
{
    weaver w = {.events = events, .out = out};
    const cx_alloc *alloc = out->alloc;
    const size_t before = out->size;
    const bool is_branch = branch_name.data != NULL;
    cx_run_weave_init(&w.weave, alloc);
    cx_arena_init(&w.scratch, alloc, 0);
    cx_buf_init(&w.lines, alloc);
    cx_status status = note_events(&w, err);
    if (!cx_failed(status))
        status = write_nodes(&w, is_branch, err);
    if (!cx_failed(status) && is_branch)
        status = write_branch(&w, branch_name, err);
    cx_vec_done(&w.ends, alloc);
    cx_vec_done(&w.parents, alloc);
    cx_vec_done(&w.parent_ends, alloc);
    cx_buf_done(&w.lines);
    cx_arena_done(&w.scratch);
    cx_run_weave_done(&w.weave);
    if (cx_failed(status))
        out->size = before;
    return status;
}

cx_status cx_run_lattice(cx_str events, cx_str branch_name, const cx_lattice_options *options,
                         cx_buf *lines, cx_lattice **out, cx_err *err)
{
    CX_TRY(cx_run_lattice_lines(events, branch_name, lines, err));
    return cx_lattice_open_bytes(cx_buf_bytes(lines), options, out, err);
}

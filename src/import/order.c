/*
 * order.c - between the passes: resolves references, and finds the output order.
 *
 * Invariants:
 *   I1  afterwards the remaining edges form no cycle (§1.5 parent_cycle);
 *   I2  every parent comes before its children in order[];
 *   I3  nothing here depends on a hash map's order or seed.
 */
#include "import/core.h"

/* --- references ---------------------------------------------------------------------------- */

/* Links made at the end become refs like the others: the refs are rebuilt in entry order. */
static cx_status add_links(cx_import_core *core, cx_err *err)
{
    if (core->links.count == 0)
        return CX_SUCCESS;
    size_t old_count = core->refs.count, new_count = old_count + core->links.count;
    uint32_t *more = cx_alloc_zeroed(core->alloc, core->entries.count, sizeof *more);
    if (more == NULL || new_count > UINT32_MAX ||
        !cx_vec_reserve(&core->refs, new_count, core->alloc)) {
        cx_alloc_free(core->alloc, more, core->entries.count * sizeof *more);
        return cx_fail_nomem(err);
    }
    for (size_t i = 0; i < core->links.count; i++)
        more[core->links.items[i].child]++;
    /* From the end, so that every block only moves up. */
    size_t to = new_count;
    for (size_t i = core->entries.count; i-- > 0;) {
        entry *e = &core->entries.items[i];
        to -= e->ref_count + more[i];
        memmove(&core->refs.items[to], &core->refs.items[e->first_ref], e->ref_count * sizeof(ref));
        e->first_ref = (uint32_t)to;
    }
    core->refs.count = new_count;
    for (size_t i = 0; i < core->links.count; i++) {
        const late_link *link = &core->links.items[i];
        entry *e = &core->entries.items[link->child];
        core->refs.items[e->first_ref + e->ref_count++] = (ref){link->parent, link->kind, true};
    }
    cx_alloc_free(core->alloc, more, core->entries.count * sizeof *more);
    return CX_SUCCESS;
}

static void resolve(cx_import_core *core)
{
    for (size_t i = 0; i < core->entries.count; i++) {
        entry *e = &core->entries.items[i];
        for (uint32_t k = 0; k < e->ref_count; k++) {
            ref *r = &core->refs.items[e->first_ref + k];
            if (!r->direct)
                r->target = core->slots.items[r->target].definer;
            /* What a window does not have may be elsewhere in the file. */
            if (r->target != CX_RECORD_NONE || core->options.windows != NULL)
                continue;
            if (r->kind == CX_REF_NAMED) {
                e->issues |= 1u << CX_ISSUE_DANGLING_PARENT;
                e->flags |= ENTRY_UNDER_FILE;
            } else if (r->kind == CX_REF_RESULT) {
                e->issues |= 1u << CX_ISSUE_ORPHAN_RESULT;
            }
        }
    }
}

/* One record on the path of the search below, and its next reference to follow. */
typedef struct visit {
    uint32_t entry;
    uint32_t next;
} visit;

enum { UNSEEN, ON_PATH, FINISHED };

/*
 * Goes from `start` to its ancestors, depth first and without recursion.  An edge to a record that
 * is on the path would close a cycle: it is left out.
 */
static void break_cycles_from(cx_import_core *core, uint32_t start, uint8_t *colour, visit *path)
{
    size_t depth = 0;
    path[depth++] = (visit){start, 0};
    colour[start] = ON_PATH;
    while (depth != 0) {
        visit *top = &path[depth - 1];
        entry *e = &core->entries.items[top->entry];
        if (top->next == e->ref_count) {
            colour[top->entry] = FINISHED;
            depth--;
            continue;
        }
        ref *r = &core->refs.items[e->first_ref + top->next++];
        if (r->target == CX_RECORD_NONE || colour[r->target] == FINISHED)
            continue;
        if (colour[r->target] == ON_PATH) {
            /* A record that merely links to itself names no parent wrongly. */
            if (r->target != top->entry || r->kind != CX_REF_OPTIONAL)
                e->issues |= 1u << CX_ISSUE_PARENT_CYCLE;
            r->target = CX_RECORD_NONE;
            continue;
        }
        colour[r->target] = ON_PATH;
        path[depth++] = (visit){r->target, 0};
    }
}

static cx_status break_cycles(cx_import_core *core, cx_err *err)
{
    size_t count = core->entries.count;
    uint8_t *colour = cx_alloc_zeroed(core->alloc, count + 1, sizeof *colour);
    visit *path = cx_alloc_zeroed(core->alloc, count + 1, sizeof *path);
    bool ok = colour != NULL && path != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        if (colour[i] == UNSEEN)
            break_cycles_from(core, (uint32_t)i, colour, path);
    }
    cx_alloc_free(core->alloc, colour, (count + 1) * sizeof *colour);
    cx_alloc_free(core->alloc, path, (count + 1) * sizeof *path);
    return ok ? CX_SUCCESS : cx_fail_nomem(err);
}

/* --- agents and forks ---------------------------------------------------------------------- */

static uint32_t first_parent(const cx_import_core *core, const entry *e)
{
    if (e->ref_count == 0)
        return CX_RECORD_NONE;
    const ref *first = &core->refs.items[e->first_ref];
    if (first->kind != CX_REF_NAMED && first->kind != CX_REF_SEQUENCE)
        return CX_RECORD_NONE;
    return first->target;
}

/*
 * A record that inherits has the agent of the nearest ancestor along first references that has one
 * of its own; without any it uses its own name for it.  Every record is decided once: the result of
 * a walk is written to all records it passed.
 */
static cx_status inherit_agents(cx_import_core *core, cx_err *err)
{
    CX_VEC(uint32_t) path = {0};
    for (size_t i = 0; i < core->entries.count; i++) {
        uint32_t at = (uint32_t)i;
        path.count = 0;
        while (at != CX_RECORD_NONE && (core->entries.items[at].flags &
                                        (ENTRY_INHERIT | ENTRY_AGENTLESS)) == ENTRY_INHERIT) {
            uint32_t *room = cx_vec_push(&path, core->alloc);
            if (room == NULL) {
                cx_vec_done(&path, core->alloc);
                return cx_fail_nomem(err);
            }
            *room = at;
            at = first_parent(core, &core->entries.items[at]);
        }
        const entry *from = at == CX_RECORD_NONE ? NULL : &core->entries.items[at];
        /* No record inherits its agent from a bad record. */
        bool found = from != NULL && from->kind != CX_KIND_BAD && !(from->flags & ENTRY_AGENTLESS);
        for (size_t k = 0; k < path.count; k++) {
            entry *e = &core->entries.items[path.items[k]];
            if (found) {
                e->agent = from->agent;
                e->flags &= (uint16_t)~ENTRY_INHERIT;
            } else {
                e->flags |= ENTRY_AGENTLESS;
            }
        }
    }
    cx_vec_done(&path, core->alloc);
    return CX_SUCCESS;
}

static void decide_forks(cx_import_core *core)
{
    for (size_t i = 0; i < core->entries.count; i++) {
        entry *e = &core->entries.items[i];
        if ((e->flags & ENTRY_FORK_IF_HANDED) == 0)
            continue;
        uint32_t parent = first_parent(core, e);
        if (parent == CX_RECORD_NONE || core->entries.items[parent].agent == e->agent)
            e->fork = CX_IMPORT_FORK_NONE;
    }
}

/* --- times --------------------------------------------------------------------------------- */

/* A record without time has that of the one before it in its file, the first that of the next. */
static void assume_times_of(cx_import_core *core, const source *from, int64_t otherwise)
{
    if (from->entry_count == 0)
        return;
    entry *items = core->entries.items + from->first_entry;
    int64_t last = otherwise;
    for (uint32_t i = 0; i < from->entry_count; i++) {
        if (items[i].flags & (ENTRY_HAS_TIME | ENTRY_TIME_KNOWN)) {
            last = items[i].t_ns;
            break;
        }
    }
    for (uint32_t i = 0; i < from->entry_count; i++) {
        if (items[i].flags & (ENTRY_HAS_TIME | ENTRY_TIME_KNOWN))
            last = items[i].t_ns;
        if ((items[i].flags & ENTRY_HAS_TIME) == 0) {
            items[i].t_ns = last;
            if (items[i].kind != CX_KIND_BAD)
                items[i].issues |= 1u << CX_ISSUE_NO_TIME;
        }
    }
}

/* Records of other files have places in a window by their times. */
static void leave_out_times(cx_import_core *core)
{
    for (size_t i = 0; i < core->entries.count && core->options.windows != NULL; i++) {
        entry *e = &core->entries.items[i];
        const cx_import_window *window = window_of(core, e->file);
        if ((window->after_ns != INT64_MIN && e->t_ns <= window->after_ns) ||
            e->t_ns > window->until_ns)
            e->flags |= ENTRY_OUTSIDE;
    }
}

/* What the node of the file, or a node that bounds it, may not be later than. */
static bool is_bound(const entry *e, int64_t bound)
{
    return (e->flags & ENTRY_OUTSIDE) == 0 && e->t_ns < bound;
}

static void assume_times(cx_import_core *core)
{
    int64_t least = 0;
    bool any = false;
    for (size_t i = 0; i < core->entries.count; i++) {
        entry *e = &core->entries.items[i];
        if (core->format->no_time) {
            e->t_ns = (int64_t)e->index;
        } else if ((e->flags & ENTRY_HAS_TIME) && (!any || e->t_ns < least)) {
            least = e->t_ns;
            any = true;
        }
    }
    for (size_t f = 0; f < core->sources.count && !core->format->no_time; f++)
        assume_times_of(core, &core->sources.items[f], least);
    leave_out_times(core);
    /* File nodes come first, consecutively, and none may be later than its records, nor than any
     * bad record, whose node follows them in the importer's branch. */
    int64_t bound = INT64_MAX;
    for (size_t i = 0; i < core->entries.count; i++)
        if (core->entries.items[i].kind == CX_KIND_BAD && is_bound(&core->entries.items[i], bound))
            bound = core->entries.items[i].t_ns;
    for (size_t f = core->sources.count; f-- > 0;) {
        source *from = &core->sources.items[f];
        for (uint32_t i = 0; i < from->entry_count; i++) {
            const entry *e = &core->entries.items[from->first_entry + i];
            if (is_bound(e, bound))
                bound = e->t_ns;
        }
        from->t_ns = bound == INT64_MAX ? least : bound;
    }
}

static void label_times(cx_import_core *core)
{
    for (size_t i = 0; i < core->entries.count; i++) {
        entry *e = &core->entries.items[i];
        for (uint32_t k = 0; k < e->ref_count; k++) {
            const ref *r = &core->refs.items[e->first_ref + k];
            if (r->target != CX_RECORD_NONE && core->entries.items[r->target].t_ns > e->t_ns)
                e->issues |= 1u << (r->kind == CX_REF_SEQUENCE ? CX_ISSUE_TIME_REGRESSED
                                                               : CX_ISSUE_PARENT_AFTER_CHILD);
        }
    }
}

/* --- order (§1.8) -------------------------------------------------------------------------- */

typedef struct heap {
    const entry *entries;
    uint32_t *items;
    size_t count;
} heap;

/* Entries are in order of (file, position), so their number decides between equal times. */
static bool is_before(const heap *h, uint32_t a, uint32_t b)
{
    if (h->entries[a].t_ns != h->entries[b].t_ns)
        return h->entries[a].t_ns < h->entries[b].t_ns;
    return a < b;
}

static void heap_push(heap *h, uint32_t item)
{
    size_t at = h->count++;
    while (at != 0 && is_before(h, item, h->items[(at - 1) / 2])) {
        h->items[at] = h->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->items[at] = item;
}

static uint32_t heap_pop(heap *h)
{
    uint32_t least = h->items[0], moved = h->items[--h->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= h->count)
            break;
        if (child + 1 < h->count && is_before(h, h->items[child + 1], h->items[child]))
            child++;
        if (!is_before(h, h->items[child], moved))
            break;
        h->items[at] = h->items[child];
        at = child;
    }
    if (h->count != 0)
        h->items[at] = moved;
    return least;
}

/* children[first[p + 1] .. first[p + 2]) are the records that name p; first has count + 2 items. */
static void list_children(const cx_import_core *core, uint32_t *first, uint32_t *children,
                          uint32_t *waiting)
{
    size_t count = core->entries.count;
    for (size_t i = 0; i < count; i++) {
        const entry *e = &core->entries.items[i];
        for (uint32_t k = 0; k < e->ref_count; k++) {
            uint32_t target = core->refs.items[e->first_ref + k].target;
            if (target != CX_RECORD_NONE) {
                first[target + 1]++;
                waiting[i]++;
            }
        }
    }
    for (size_t i = 0; i < count; i++)
        first[i + 1] += first[i];
    first[count + 1] = first[count];
    /* first[p + 1] is now the end of the block of p; filling from the back makes it the start. */
    for (size_t i = count; i-- > 0;) {
        const entry *e = &core->entries.items[i];
        for (uint32_t k = e->ref_count; k-- > 0;) {
            uint32_t target = core->refs.items[e->first_ref + k].target;
            if (target != CX_RECORD_NONE)
                children[--first[target + 1]] = (uint32_t)i;
        }
    }
}

static void sort_entries(cx_import_core *core, uint32_t *first, uint32_t *children,
                         uint32_t *waiting, uint32_t *ready)
{
    size_t count = core->entries.count, done = 0;
    heap h = {core->entries.items, ready, 0};
    list_children(core, first, children, waiting);
    for (size_t i = 0; i < count; i++) {
        if (waiting[i] == 0)
            heap_push(&h, (uint32_t)i);
    }
    while (h.count != 0) {
        uint32_t next = heap_pop(&h);
        core->order[done++] = next;
        for (uint32_t k = first[next + 1]; k < first[next + 2]; k++) {
            if (--waiting[children[k]] == 0)
                heap_push(&h, children[k]);
        }
    }
    CX_ASSERT(done == count); /* I1 */
}

static cx_status find_order(cx_import_core *core, cx_err *err)
{
    size_t count = core->entries.count, edges = core->refs.count;
    const cx_alloc *alloc = core->alloc;
    uint32_t *first = cx_alloc_zeroed(alloc, count + 2, sizeof *first);
    uint32_t *children = cx_alloc_zeroed(alloc, edges + 1, sizeof *children);
    uint32_t *waiting = cx_alloc_zeroed(alloc, count + 1, sizeof *waiting);
    uint32_t *ready = cx_alloc_zeroed(alloc, count + 1, sizeof *ready);
    core->order = cx_alloc_zeroed(alloc, count + 1, sizeof *core->order);
    bool ok = first != NULL && children != NULL && waiting != NULL && ready != NULL &&
              core->order != NULL;
    if (ok)
        sort_entries(core, first, children, waiting, ready);
    cx_alloc_free(alloc, first, (count + 2) * sizeof *first);
    cx_alloc_free(alloc, children, (edges + 1) * sizeof *children);
    cx_alloc_free(alloc, waiting, (count + 1) * sizeof *waiting);
    cx_alloc_free(alloc, ready, (count + 1) * sizeof *ready);
    return ok ? CX_SUCCESS : cx_fail_nomem(err);
}

cx_status cx_import_resolve(cx_import_core *core, cx_err *err)
{
    CX_TRY(add_links(core, err));
    resolve(core);
    CX_TRY(break_cycles(core, err));
    CX_TRY(inherit_agents(core, err));
    decide_forks(core);
    assume_times(core);
    label_times(core);
    return find_order(core, err);
}

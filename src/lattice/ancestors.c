/*
 * ancestors.c - best common ancestors (lattice.md §7).
 *
 * From all heads at once we go down in reverse topological order, telling each node's parents
 * which heads reach them.  When a node is taken, all its descendants have been, so what is known
 * about it is complete:
 *
 *   I1  a node taken that all heads reach and that is not stale is a best common ancestor;
 *   I2  what lies below one is stale: common, but not best.
 *
 * A best common ancestor not yet found is reached from every head by a path without stale nodes,
 * and one node of each such path is waiting.  So the search ends as soon as one head has no
 * waiting node that is not stale: what remains of the other heads' history is not walked.
 *
 *   I3  Before anything is found, when X is the only waiting node of some head, every common
 *       ancestor is X or lies below it; if X is an ancestor of all heads it is the answer.
 *
 * I3 with a numbered lineage tree answers at once for the commonest shape, a branch that left the
 * trunk long ago and comes back; without it each such merge would walk the trunk back to the fork.
 */
#include "lattice/ancestors.h"

#include "lattice/state.h"

void cx_ancestry_init(ancestry *search, const cx_lattice *lattice)
{
    *search = (ancestry){.lattice = lattice, .alloc = lattice->alloc};
}

void cx_ancestry_done(ancestry *search)
{
    cx_vec_done(&search->met, search->alloc);
    cx_vec_done(&search->masks, search->alloc);
    cx_vec_done(&search->heap, search->alloc);
    cx_vec_done(&search->frontiers, search->alloc);
    cx_vec_done(&search->found, search->alloc);
    cx_alloc_free(search->alloc, search->slots, search->slot_count * sizeof *search->slots);
    cx_alloc_free(search->alloc, search->spans,
                  search->lattice->order_count * sizeof *search->spans);
    search->slots = NULL;
    search->slot_count = 0;
    search->spans = NULL;
}

/* --- the lineage tree ---------------------------------------------------------------------- */

static uint32_t lineage_position(const cx_lattice *lattice, uint32_t position)
{
    cx_node parent = node_at(lattice, lattice->order[position])->lineage;
    return parent == CX_NODE_NONE ? UINT32_MAX : lattice->position[parent];
}

cx_status cx_ancestry_span(ancestry *search, cx_err *err)
{
    const cx_lattice *lattice = search->lattice;
    uint32_t count = lattice->order_count;
    if (search->spans != NULL || count == 0)
        return CX_SUCCESS;
    lineage_span *spans = cx_alloc_zeroed(search->alloc, count, sizeof *spans);
    uint32_t *next = cx_alloc_zeroed(search->alloc, count, sizeof *next);
    if (spans == NULL || next == NULL) {
        cx_alloc_free(search->alloc, spans, count * sizeof *spans);
        cx_alloc_free(search->alloc, next, count * sizeof *next);
        return cx_fail_nomem(err);
    }
    /* Children come after parents: sizes are summed backwards, places given out forwards. */
    for (uint32_t i = count; i-- > 0;) {
        spans[i].size++;
        uint32_t parent = lineage_position(lattice, i);
        if (parent != UINT32_MAX)
            spans[parent].size += spans[i].size;
    }
    uint32_t free_place = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t parent = lineage_position(lattice, i);
        uint32_t *place = parent == UINT32_MAX ? &free_place : &next[parent];
        spans[i].first = *place;
        *place += spans[i].size;
        next[i] = spans[i].first + 1;
    }
    cx_alloc_free(search->alloc, next, count * sizeof *next);
    search->spans = spans;
    return CX_SUCCESS;
}

/* True when `above` is `below` or one of its lineage ancestors. */
static bool is_on_lineage(const ancestry *search, uint32_t above, uint32_t below)
{
    return search->spans[below].first - search->spans[above].first < search->spans[above].size;
}

/* --- the table of nodes met ---------------------------------------------------------------- */

static size_t slot_of(const ancestry *search, uint32_t position)
{
    size_t mask = search->slot_count - 1;
    size_t at = (size_t)(position * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (search->slots[at].round == search->round && search->slots[at].position != position)
        at = (at + 1) & mask;
    return at;
}

static bool grow_slots(ancestry *search)
{
    size_t old_count = search->slot_count, count = old_count == 0 ? 64 : 2 * old_count;
    met_slot *old = search->slots;
    met_slot *slots = cx_alloc_zeroed(search->alloc, count, sizeof *slots);
    if (slots == NULL)
        return false;
    search->slots = slots;
    search->slot_count = count;
    for (uint32_t i = 0; i < search->met.count; i++) {
        uint32_t position = search->met.items[i].position;
        slots[slot_of(search, position)] = (met_slot){search->round, position, i};
    }
    cx_alloc_free(search->alloc, old, old_count * sizeof *old);
    return true;
}

static uint64_t *mask_of(const ancestry *search, uint32_t index)
{
    return search->masks.items + index * search->words_each;
}

/* --- the waiting nodes --------------------------------------------------------------------- */

static uint32_t heap_position(const ancestry *search, size_t at)
{
    return search->met.items[search->heap.items[at]].position;
}

static bool heap_push(ancestry *search, uint32_t index)
{
    if (cx_vec_push(&search->heap, search->alloc) == NULL)
        return false;
    uint32_t *heap = search->heap.items;
    uint32_t position = search->met.items[index].position;
    size_t at = search->heap.count - 1;
    for (; at > 0 && heap_position(search, (at - 1) / 2) < position; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = index;
    return true;
}

static uint32_t heap_pop(ancestry *search)
{
    uint32_t *heap = search->heap.items;
    uint32_t top = heap[0], moved = heap[--search->heap.count];
    size_t count = search->heap.count, at = 0;
    uint32_t position = search->met.items[moved].position;
    for (size_t child = 1; child < count; at = child, child = 2 * child + 1) {
        if (child + 1 < count && heap_position(search, child + 1) > heap_position(search, child))
            child++;
        if (heap_position(search, child) <= position)
            break;
        heap[at] = heap[child];
    }
    if (count != 0)
        heap[at] = moved;
    return top;
}

/* --- painting ------------------------------------------------------------------------------ */

static void join_frontier(ancestry *search, size_t head, uint32_t index)
{
    frontier *front = &search->frontiers.items[head];
    if (front->count++ == 0)
        search->lost_heads--;
    front->index_xor ^= index;
}

static void leave_frontier(ancestry *search, size_t head, uint32_t index)
{
    frontier *front = &search->frontiers.items[head];
    if (--front->count == 0)
        search->lost_heads++;
    front->index_xor ^= index;
}

/* A node leaves the frontiers of all heads that reach it. */
static void leave_frontiers(ancestry *search, uint32_t index)
{
    const uint64_t *mask = mask_of(search, index);
    for (size_t word = 0; word < search->words_each; word++)
        for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1)
            leave_frontier(search, 64 * word + (size_t)__builtin_ctzll(bits), index);
}

/* The index of a node, which waits from now on if it is new. */
static bool visit_node(ancestry *search, uint32_t position, uint32_t *out)
{
    if (search->met.count + 1 > search->slot_count / 2 && !grow_slots(search))
        return false;
    size_t at = slot_of(search, position);
    if (search->slots[at].round == search->round) {
        *out = search->slots[at].index;
        return true;
    }
    uint32_t index = (uint32_t)search->met.count;
    size_t words = search->masks.count + search->words_each;
    met *fresh = cx_vec_push(&search->met, search->alloc);
    if (fresh == NULL || !cx_vec_reserve(&search->masks, words, search->alloc))
        return false;
    *fresh = (met){position, false};
    search->masks.count = words;
    memset(mask_of(search, index), 0, search->words_each * sizeof(uint64_t));
    search->slots[at] = (met_slot){search->round, position, index};
    *out = index;
    return heap_push(search, index);
}

static void mark_stale(ancestry *search, uint32_t index)
{
    if (!search->met.items[index].stale) {
        leave_frontiers(search, index);
        search->met.items[index].stale = true;
    }
}

/* The heads reaching `from` reach `to` too, which waits. */
static void spread_heads(ancestry *search, uint32_t from, uint32_t to)
{
    if (search->met.items[to].stale)
        return;
    const uint64_t *source = mask_of(search, from);
    uint64_t *mask = mask_of(search, to);
    for (size_t word = 0; word < search->words_each; word++) {
        uint64_t fresh = source[word] & ~mask[word];
        mask[word] |= fresh;
        for (; fresh != 0; fresh &= fresh - 1)
            join_frontier(search, 64 * word + (size_t)__builtin_ctzll(fresh), to);
    }
}

static bool is_common(const ancestry *search, uint32_t index)
{
    const uint64_t *mask = mask_of(search, index);
    size_t left = search->head_count;
    for (size_t word = 0; word < search->words_each; word++, left -= 64) {
        uint64_t all = left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;
        if (mask[word] != all)
            return false;
        if (left <= 64)
            break;
    }
    return true;
}

/* Takes the latest waiting node; *out_index says which. */
static bool visit_latest(ancestry *search, uint32_t *out_index)
{
    const cx_lattice *lattice = search->lattice;
    uint32_t index = heap_pop(search);
    bool stale = search->met.items[index].stale;
    cx_node taken = lattice->order[search->met.items[index].position];
    if (!stale) {
        leave_frontiers(search, index);
        if (is_common(search, index)) {
            cx_node *slot = cx_vec_push(&search->found, search->alloc);
            if (slot == NULL)
                return false;
            *slot = taken; /* I1 */
            stale = true;
        }
    }
    const node *n = node_at(lattice, taken);
    for (uint32_t i = 0; i < n->parent_count; i++) {
        uint32_t parent;
        if (!visit_node(search, lattice->position[node_parents(lattice, n)[i]], &parent))
            return false;
        if (stale)
            mark_stale(search, parent); /* I2 */
        else
            spread_heads(search, index, parent);
    }
    *out_index = index;
    return true;
}

/* I3 for one head. */
static bool is_answered(ancestry *search, size_t head, const cx_node *nodes, size_t count,
                        cx_node *out)
{
    const frontier *front = &search->frontiers.items[head];
    if (front->count != 1 || search->found.count != 0)
        return false;
    const cx_lattice *lattice = search->lattice;
    uint32_t only = search->met.items[front->index_xor].position;
    for (size_t i = 0; i < count; i++)
        if (!is_on_lineage(search, only, lattice->position[nodes[i]]))
            return false;
    *out = lattice->order[only];
    return true;
}

/* I3 for the heads that reached the node taken last; UINT32_MAX = all. */
static bool is_answered_by_one(ancestry *search, uint32_t index, const cx_node *nodes, size_t count,
                               cx_node *out)
{
    if (search->spans == NULL || count > 64)
        return false;
    uint64_t bits = UINT64_MAX >> (64 - count);
    if (index != UINT32_MAX)
        bits &= mask_of(search, index)[0];
    for (; bits != 0; bits &= bits - 1)
        if (is_answered(search, (size_t)__builtin_ctzll(bits), nodes, count, out))
            return true;
    return false;
}

static cx_status begin_search(ancestry *search, const cx_node *nodes, size_t count, cx_err *err)
{
    const cx_lattice *lattice = search->lattice;
    for (size_t i = 0; i < count; i++) {
        if (lattice->position[nodes[i]] == UINT32_MAX)
            return cx_states_no_place(lattice, nodes[i], err);
    }
    if (++search->round == 0) { /* after 2^32 rounds old slots must not look new */
        if (search->slots != NULL)
            memset(search->slots, 0, search->slot_count * sizeof *search->slots);
        search->round = 1;
    }
    search->met.count = search->masks.count = search->heap.count = search->found.count = 0;
    search->words_each = (count + 63) / 64;
    search->head_count = search->lost_heads = count;
    if (!cx_vec_reserve(&search->frontiers, count, search->alloc))
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        search->frontiers.items[i] = (frontier){0, 0};
    for (size_t i = 0; i < count; i++) {
        uint32_t index;
        if (!visit_node(search, lattice->position[nodes[i]], &index))
            return cx_fail_nomem(err);
        mask_of(search, index)[i / 64] |= UINT64_C(1) << (i % 64);
        join_frontier(search, i, index);
    }
    return CX_SUCCESS;
}

cx_status cx_ancestry_find(ancestry *search, const cx_node *nodes, size_t count, cx_err *err)
{
    search->found.count = 0;
    if (count == 0)
        return CX_SUCCESS;
    CX_TRY(begin_search(search, nodes, count, err));
    uint32_t index = UINT32_MAX;
    while (search->lost_heads == 0) {
        cx_node answer;
        if (is_answered_by_one(search, index, nodes, count, &answer)) {
            cx_node *slot = cx_vec_push(&search->found, search->alloc);
            if (slot == NULL)
                return cx_fail_nomem(err);
            *slot = answer;
            return CX_SUCCESS;
        }
        if (!visit_latest(search, &index))
            return cx_fail_nomem(err);
    }
    return CX_SUCCESS;
}

cx_status cx_lattice_common(const cx_lattice *lattice, const cx_node *nodes, size_t count,
                            cx_arena *arena, cx_node **out, size_t *out_count, cx_err *err)
{
    ancestry search;
    cx_ancestry_init(&search, lattice);
    cx_node *copy = NULL;
    cx_status status = cx_ancestry_find(&search, nodes, count, err);
    if (!cx_failed(status)) {
        size_t found = search.found.count;
        copy = CX_ARENA_ARRAY(arena, cx_node, found == 0 ? 1 : found);
        if (copy == NULL) {
            status = cx_fail_nomem(err);
        } else {
            if (found != 0)
                memcpy(copy, search.found.items, found * sizeof *copy);
            *out = copy;
            *out_count = found;
        }
    }
    cx_ancestry_done(&search);
    return status;
}

void cx_lattice_mark_ancestors(const cx_lattice *lattice, uint64_t *bits)
{
    /* Parents come before children, so one pass from the end meets every ancestor in time. */
    for (size_t word = ((size_t)lattice->order_count + 63) / 64; word-- > 0;) {
        for (unsigned bit = 64; bits[word] != 0 && bit-- > 0;) {
            if ((bits[word] >> bit & 1) == 0)
                continue;
            const node *n = node_at(lattice, lattice->order[64 * word + bit]);
            for (uint32_t i = 0; i < n->parent_count; i++) {
                uint32_t parent = lattice->position[node_parents(lattice, n)[i]];
                bits[parent / 64] |= UINT64_C(1) << (parent % 64);
            }
        }
    }
}

/*
 * graph.c - makes a graph of what was read: parents resolved, order, cycles, children, branches.
 *
 * Everything is a pass over arrays; nothing recurses, whatever the shape of the input.  Files
 * written as events happened are in (timestamp, node_id) order with parents before children, and
 * then the sort and the priority queue have nothing to do.
 */
#include "lattice/record.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/api.h"
#include "json/api.h"

/* --- order by time ---------------------------------------------------------------------------- */

static cx_str time_literal(const cx_lattice *lattice, const node *n, char scratch[48])
{
    if (n->flags & NODE_TIME_BIG)
        return lattice->odd.items[n->time.i];
    int size = n->flags & NODE_TIME_INT ? snprintf(scratch, 48, "%lld", (long long)n->time.i)
                                        : snprintf(scratch, 48, "%.17e", n->time.d);
    return (cx_str){scratch, (size_t)size};
}

/* Exact for an integer against a double (§2): both as integers once the double is known small. */
static int compare_int_double(int64_t i, double d)
{
    if (d >= 9223372036854775808.0)
        return -1;
    if (d < -9223372036854775808.0)
        return 1;
    int64_t whole = (int64_t)d; /* towards zero */
    if (i != whole)
        return i < whole ? -1 : 1;
    double rest = d - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

int cx_lattice_time_compare(const cx_lattice *lattice, const node *a, const node *b)
{
    bool a_int = (a->flags & NODE_TIME_INT) != 0, b_int = (b->flags & NODE_TIME_INT) != 0;
    if (((a->flags | b->flags) & NODE_TIME_BIG) != 0) {
        char left[48], right[48];
        return cx_number_compare(time_literal(lattice, a, left), time_literal(lattice, b, right));
    }
    if (a_int && b_int)
        return (a->time.i > b->time.i) - (a->time.i < b->time.i);
    if (a_int)
        return compare_int_double(a->time.i, b->time.d);
    if (b_int)
        return -compare_int_double(b->time.i, a->time.d);
    return (a->time.d > b->time.d) - (a->time.d < b->time.d);
}

int cx_lattice_node_compare(const cx_lattice *lattice, cx_node a, cx_node b)
{
    const node *left = node_at(lattice, a), *right = node_at(lattice, b);
    int order = cx_lattice_time_compare(lattice, left, right);
    return order != 0 ? order : cx_str_cmp(node_id(left), node_id(right));
}

typedef int (*node_order)(const cx_lattice *lattice, cx_node a, cx_node b);

/* (seq, timestamp, node_id), by rank once that is known. */
static int compare_in_branch(const cx_lattice *lattice, cx_node a, cx_node b)
{
    const node *left = node_at(lattice, a), *right = node_at(lattice, b);
    if (left->seq != right->seq)
        return left->seq < right->seq ? -1 : 1;
    return (lattice->rank[a] > lattice->rank[b]) - (lattice->rank[a] < lattice->rank[b]);
}

static int compare_rank(const cx_lattice *lattice, cx_node a, cx_node b)
{
    return (lattice->rank[a] > lattice->rank[b]) - (lattice->rank[a] < lattice->rank[b]);
}

static void merge_runs(const cx_lattice *lattice, const uint32_t *from, uint32_t *to, size_t left,
                       size_t middle, size_t end, node_order order)
{
    size_t a = left, b = middle;
    for (size_t at = left; at < end; at++) {
        bool take_left = b >= end || (a < middle && order(lattice, from[a], from[b]) <= 0);
        to[at] = take_left ? from[a++] : from[b++];
    }
}

/* Stable merge sort; a sorted array costs one pass.  `spare` has room for as many items. */
static void sort_nodes(const cx_lattice *lattice, uint32_t *items, uint32_t *spare, size_t count,
                       node_order order)
{
    size_t sorted = 1;
    while (sorted < count && order(lattice, items[sorted - 1], items[sorted]) <= 0)
        sorted++;
    if (sorted >= count)
        return;
    uint32_t *from = items, *to = spare;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t left = 0; left < count; left += 2 * width) {
            size_t middle = left + width < count ? left + width : count;
            size_t end = middle + width < count ? middle + width : count;
            if (middle >= end || order(lattice, from[middle - 1], from[middle]) <= 0)
                memcpy(to + left, from + left, (end - left) * sizeof *to);
            else
                merge_runs(lattice, from, to, left, middle, end, order);
        }
        uint32_t *held = from;
        from = to;
        to = held;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
}

/* Scratch of link: released at its end. */
typedef struct link_work {
    uint32_t *by_time; /* graph nodes in (timestamp, node_id) order */
    uint32_t *spare;
    uint32_t *waiting; /* parents of each node that have no place yet */
    size_t size;       /* items in each */
    uint32_t count;    /* graph nodes */
    /* Found on the first walk over all nodes: each further one costs as much as reading them. */
    uint32_t most_parents; /* of one node */
    bool has_generation_1;
    bool is_by_time;          /* the file is */
    bool time_is_topological; /* every parent comes before its children in by_time */
} link_work;

/* Not cleared: nearly all of them are filled from end to end, and some not used at all. */
static uint32_t *new_u32(const cx_lattice *lattice, size_t count)
{
    size_t size;
    return cx_size_mul(count, sizeof(uint32_t), &size) ? cx_alloc_new(lattice->alloc, size) : NULL;
}

/* The nodes of the graph in file order, and what else there is to know of each. */
static void list_nodes(cx_lattice *lattice, link_work *work)
{
    work->is_by_time = true;
    for (cx_node n = 0; n < lattice->nodes.count; n++) {
        const node *item = node_at(lattice, n);
        lattice->rank[n] = UINT32_MAX;
        if (!in_graph(item))
            continue;
        if (work->is_by_time && work->count != 0 &&
            cx_lattice_node_compare(lattice, work->by_time[work->count - 1], n) > 0)
            work->is_by_time = false;
        work->by_time[work->count++] = n;
        lattice->agents.items[item->agent].count++;
        work->has_generation_1 |= (item->flags & NODE_GENERATION_1) != 0;
        if (item->parent_count > work->most_parents)
            work->most_parents = item->parent_count;
    }
}

static cx_status order_by_time(cx_lattice *lattice, link_work *work, cx_err *err)
{
    lattice->rank = new_u32(lattice, work->size);
    if (lattice->rank == NULL)
        return cx_fail_nomem(err);
    list_nodes(lattice, work);
    if (!work->is_by_time)
        sort_nodes(lattice, work->by_time, work->spare, work->count, cx_lattice_node_compare);
    for (uint32_t i = 0; i < work->count; i++)
        lattice->rank[work->by_time[i]] = i;
    return CX_SUCCESS;
}

/* --- parents ---------------------------------------------------------------------------------- */

static int compare_missing(const void *a, const void *b)
{
    const missing_parent *left = a, *right = b;
    if (left->node != right->node)
        return left->node < right->node ? -1 : 1;
    return cx_str_cmp(left->text, right->text);
}

/* A parent that is missing can be named twice, too. */
static void find_missing_twice(cx_lattice *lattice)
{
    if (lattice->missing.count < 2)
        return;
    missing_parent *items = lattice->missing.items;
    qsort(items, lattice->missing.count, sizeof *items, compare_missing);
    for (size_t i = 1; i < lattice->missing.count; i++)
        if (compare_missing(&items[i - 1], &items[i]) == 0)
            lattice->nodes.items[items[i].node].flags |= NODE_PARENT_TWICE;
}

/* A name is an id; if no node has it, it is the hash of a node (§3.4). */
static cx_status resolve_pending(cx_lattice *lattice, cx_err *err)
{
    for (size_t i = 0; i < lattice->pending.count; i++) {
        const pending_parent *wait = &lattice->pending.items[i];
        cx_node found = cx_lattice_find_id(lattice, wait->text);
        if (found == CX_NODE_NONE) {
            CX_TRY(cx_lattice_index_hashes(lattice, err));
            found = cx_lattice_find_hash(lattice, wait->text);
        }
        lattice->parents.items[wait->slot] = found;
        if (found != CX_NODE_NONE)
            continue;
        lattice->nodes.items[wait->node].flags |= NODE_MISSING_PARENT;
        missing_parent *slot = cx_vec_push(&lattice->missing, lattice->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = (missing_parent){wait->node, wait->text};
    }
    find_missing_twice(lattice);
    cx_vec_done(&lattice->pending, lattice->alloc);
    return CX_SUCCESS;
}

/* Generation 1 (§3.3): without parents, the node whose hash is prev_hash is the parent. */
static cx_status imply_parents(cx_lattice *lattice, cx_err *err)
{
    for (cx_node n = 0; n < lattice->nodes.count; n++) {
        node *item = &lattice->nodes.items[n];
        if (!in_graph(item) || (item->flags & NODE_GENERATION_1) == 0 ||
            (item->flags & NODE_MISSING_PARENT) != 0 || item->parent_count != 0)
            continue;
        char scratch[64];
        CX_TRY(cx_lattice_index_hashes(lattice, err));
        cx_node found = cx_lattice_find_hash(lattice, cx_lattice_prev_text(lattice, n, scratch));
        if (found == CX_NODE_NONE)
            continue;
        uint32_t *slot = cx_vec_push(&lattice->parents, lattice->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = found;
        item->first_parent = (uint32_t)lattice->parents.count - 1;
        item->parent_count = 1;
    }
    return CX_SUCCESS;
}

/* Drops what is missing, sorts into merge order, drops repetitions, finds the lineage parent. */
static void order_parents(cx_lattice *lattice, node *item, uint32_t *spare)
{
    item->lineage = CX_NODE_NONE;
    if (item->parent_count == 0)
        return;
    uint32_t *parents = lattice->parents.items + item->first_parent;
    uint32_t count = 0;
    for (uint32_t i = 0; i < item->parent_count; i++)
        if (parents[i] != CX_NODE_NONE)
            parents[count++] = parents[i];
    if (count > 1) {
        sort_nodes(lattice, parents, spare, count, compare_rank);
        uint32_t kept = 1;
        for (uint32_t i = 1; i < count; i++)
            if (parents[i] != parents[kept - 1])
                parents[kept++] = parents[i];
        if (kept != count)
            item->flags |= NODE_PARENT_TWICE;
        count = kept;
    }
    item->parent_count = count;
    item->lineage = count == 0 ? CX_NODE_NONE : parents[0];
    for (uint32_t i = 0; i < count; i++) {
        if (cx_lattice_prev_is_hash_of(lattice, item, node_at(lattice, parents[i]))) {
            item->lineage = parents[i];
            break;
        }
    }
}

/* Counts the children of each node in first_child, on the way. */
static cx_status order_all_parents(cx_lattice *lattice, const link_work *work, cx_err *err)
{
    /* Implied parents are one a node, which need no sorting. */
    size_t most = (size_t)work->most_parents + 1;
    uint32_t *spare = new_u32(lattice, most);
    lattice->first_child =
        cx_alloc_zeroed(lattice->alloc, lattice->nodes.count + 1, sizeof *lattice->first_child);
    if (spare == NULL || lattice->first_child == NULL) {
        cx_alloc_free(lattice->alloc, spare, most * sizeof *spare);
        return cx_fail_nomem(err);
    }
    lattice->edge_count = 0;
    for (cx_node n = 0; n < lattice->nodes.count; n++) {
        node *item = &lattice->nodes.items[n];
        order_parents(lattice, item, spare);
        for (uint32_t i = 0; i < item->parent_count; i++)
            lattice->first_child[node_parents(lattice, item)[i]]++;
        lattice->edge_count += item->parent_count;
    }
    cx_alloc_free(lattice->alloc, spare, most * sizeof *spare);
    return CX_SUCCESS;
}

/* --- children and topological order --------------------------------------------------------- */

static cx_status list_children(cx_lattice *lattice, link_work *work, cx_err *err)
{
    size_t node_count = lattice->nodes.count;
    lattice->children = new_u32(lattice, lattice->edge_count + 1);
    if (lattice->children == NULL)
        return cx_fail_nomem(err);
    /* Ends first; filling backwards by rank turns them into starts and leaves children in order. */
    uint32_t sum = 0;
    work->time_is_topological = true;
    for (size_t n = 0; n <= node_count; n++)
        lattice->first_child[n] = sum += n < node_count ? lattice->first_child[n] : 0;
    for (uint32_t i = work->count; i-- > 0;) {
        const node *item = node_at(lattice, work->by_time[i]);
        for (uint32_t k = 0; k < item->parent_count; k++) {
            cx_node parent = node_parents(lattice, item)[k];
            lattice->children[--lattice->first_child[parent]] = work->by_time[i];
            if (lattice->rank[parent] >= i)
                work->time_is_topological = false;
        }
    }
    return CX_SUCCESS;
}

static void heap_push(uint32_t *heap, uint32_t count, uint32_t rank)
{
    uint32_t at = count;
    for (; at > 0 && heap[(at - 1) / 2] > rank; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = rank;
}

static uint32_t heap_pop(uint32_t *heap, uint32_t count)
{
    uint32_t top = heap[0], last = heap[count - 1], at = 0;
    count--;
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

/* Repeatedly the ready node with the smallest rank (§3.4); what never gets ready has no place. */
static void order_by_heap(cx_lattice *lattice, link_work *work)
{
    uint32_t *heap = work->spare, ready = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        cx_node n = work->by_time[i];
        work->waiting[n] = node_at(lattice, n)->parent_count;
        if (work->waiting[n] == 0)
            heap_push(heap, ready++, i);
    }
    lattice->order_count = 0;
    while (ready != 0) {
        cx_node n = work->by_time[heap_pop(heap, ready--)];
        lattice->order[lattice->order_count++] = n;
        uint32_t count;
        const cx_node *children = node_children(lattice, n, &count);
        for (uint32_t i = 0; i < count; i++)
            if (--work->waiting[children[i]] == 0)
                heap_push(heap, ready++, lattice->rank[children[i]]);
    }
}

/* Of the nodes without a place, those that reach another cycle or their own: E_CYCLE. */
static void mark_cycles(cx_lattice *lattice, link_work *work)
{
    uint32_t *queue = work->spare, *open_children = work->waiting, count = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        cx_node n = work->by_time[i];
        if (lattice->position[n] == UINT32_MAX)
            lattice->nodes.items[n].flags |= NODE_NO_ORDER | NODE_ON_CYCLE;
    }
    for (uint32_t i = 0; i < work->count; i++) {
        cx_node n = work->by_time[i];
        uint32_t child_count;
        const cx_node *children = node_children(lattice, n, &child_count);
        open_children[n] = 0;
        for (uint32_t k = 0; k < child_count; k++)
            open_children[n] += (node_at(lattice, children[k])->flags & NODE_NO_ORDER) != 0;
        if ((node_at(lattice, n)->flags & NODE_NO_ORDER) != 0 && open_children[n] == 0)
            queue[count++] = n;
    }
    while (count != 0) {
        node *item = &lattice->nodes.items[queue[--count]];
        item->flags &= ~(uint32_t)NODE_ON_CYCLE;
        for (uint32_t i = 0; i < item->parent_count; i++) {
            cx_node parent = node_parents(lattice, item)[i];
            if ((node_at(lattice, parent)->flags & NODE_NO_ORDER) != 0 &&
                --open_children[parent] == 0)
                queue[count++] = parent;
        }
    }
}

static cx_status order_topologically(cx_lattice *lattice, link_work *work, cx_err *err)
{
    lattice->order = new_u32(lattice, work->size);
    lattice->position = new_u32(lattice, work->size);
    if (lattice->order == NULL || lattice->position == NULL)
        return cx_fail_nomem(err);
    if (work->time_is_topological) {
        memcpy(lattice->order, work->by_time, work->count * sizeof *lattice->order);
        lattice->order_count = work->count;
    } else {
        order_by_heap(lattice, work);
    }
    memset(lattice->position, 0xFF, work->size * sizeof *lattice->position);
    for (uint32_t i = 0; i < lattice->order_count; i++)
        lattice->position[lattice->order[i]] = i;
    if (lattice->order_count != work->count)
        mark_cycles(lattice, work);
    return CX_SUCCESS;
}

/* --- branches ------------------------------------------------------------------------------- */

/* Each branch by rank.  False when that is not the order of seq in all of them. */
static bool fill_branches(cx_lattice *lattice, const link_work *work)
{
    bool is_by_seq = true;
    for (uint32_t i = 0; i < work->count; i++) {
        const node *item = node_at(lattice, work->by_time[i]);
        agent *a = &lattice->agents.items[item->agent];
        cx_node *next = &lattice->branch_nodes[a->first + a->count];
        /* The branch's last node has just been here: it costs nothing to look at again. */
        if (a->count++ != 0 && node_at(lattice, next[-1])->seq > item->seq)
            is_by_seq = false;
        *next = work->by_time[i];
    }
    return is_by_seq;
}

static cx_status list_branches(cx_lattice *lattice, link_work *work, cx_err *err)
{
    lattice->branch_nodes = new_u32(lattice, work->size);
    if (lattice->branch_nodes == NULL)
        return cx_fail_nomem(err);
    lattice->branch_node_count = work->count;
    uint32_t sum = 0; /* list_nodes() counted them */
    for (size_t i = 0; i < lattice->agents.count; i++) {
        lattice->agents.items[i].first = sum;
        sum += lattice->agents.items[i].count;
        lattice->agents.items[i].count = 0;
    }
    if (fill_branches(lattice, work))
        return CX_SUCCESS;
    for (size_t i = 0; i < lattice->agents.count; i++) {
        const agent *a = &lattice->agents.items[i];
        sort_nodes(lattice, lattice->branch_nodes + a->first, work->spare, a->count,
                   compare_in_branch);
    }
    return CX_SUCCESS;
}

static cx_status link_with(cx_lattice *lattice, link_work *work, cx_err *err)
{
    /* A pointer even without edges: node_parents() adds 0 to it. */
    if (!cx_vec_reserve(&lattice->parents, 1, lattice->alloc))
        return cx_fail_nomem(err);
    work->by_time = new_u32(lattice, work->size);
    work->spare = new_u32(lattice, work->size);
    work->waiting = new_u32(lattice, work->size);
    if (work->by_time == NULL || work->spare == NULL || work->waiting == NULL)
        return cx_fail_nomem(err);
    CX_TRY(order_by_time(lattice, work, err));
    CX_TRY(resolve_pending(lattice, err));
    if (work->has_generation_1)
        CX_TRY(imply_parents(lattice, err));
    CX_TRY(order_all_parents(lattice, work, err));
    CX_TRY(list_children(lattice, work, err));
    CX_TRY(order_topologically(lattice, work, err));
    return list_branches(lattice, work, err);
}

cx_status cx_lattice_link(cx_lattice *lattice, cx_err *err)
{
    link_work work = {.size = lattice->nodes.count + 1};
    cx_status status = link_with(lattice, &work, err);
    size_t size = work.size * sizeof(uint32_t);
    cx_alloc_free(lattice->alloc, work.by_time, size);
    cx_alloc_free(lattice->alloc, work.spare, size);
    cx_alloc_free(lattice->alloc, work.waiting, size);
    return status;
}

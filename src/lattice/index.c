/*
 * index.c - from names to nodes: node_id, hash, agent.
 *
 * The id index is an open-addressing table of 64-bit slots: the upper half is a tag (from a seeded
 * hash of the id), the lower half the node + 1, 0 when free.  The first slot follows from
 * the tag alone, so growing never touches the ids.
 */
#include "lattice/record.h"

#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"

#define FIRST_SLOTS ((size_t)1 << 12)

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

static cx_status grow_to(node_index *index, size_t size, const cx_alloc *alloc, cx_err *err)
{
    uint64_t *slots = cx_alloc_zeroed(alloc, size, sizeof *slots);
    if (slots == NULL)
        return cx_fail_nomem(err);
    size_t mask = size - 1;
    for (size_t i = 0; i < index->size; i++) {
        uint64_t slot = index->slots[i];
        if (slot == 0)
            continue;
        size_t at = (size_t)(slot >> 32) & mask;
        while (slots[at] != 0)
            at = (at + 1) & mask;
        slots[at] = slot;
    }
    cx_alloc_free(alloc, index->slots, index->size * sizeof *slots);
    index->slots = slots;
    index->size = size;
    return CX_SUCCESS;
}

cx_status cx_lattice_index_reserve(node_index *index, const cx_alloc *alloc, cx_err *err)
{
    if (index->used + 1 <= index->size / 2)
        return CX_SUCCESS;
    return grow_to(index, index->size == 0 ? FIRST_SLOTS : index->size * 2, alloc, err);
}

void cx_lattice_index_expect(node_index *index, size_t count, const cx_alloc *alloc)
{
    size_t size = FIRST_SLOTS;
    while (size / 2 < count && size <= SIZE_MAX / 2 / sizeof *index->slots)
        size *= 2;
    /* Only a guess: when there is no room for it, growing will do or say so. */
    if (size > index->size)
        (void)grow_to(index, size, alloc, NULL);
}

cx_node cx_lattice_index_find(const cx_lattice *lattice, cx_str id, uint64_t hash)
{
    const node_index *index = &lattice->ids;
    if (index->size == 0)
        return CX_NODE_NONE;
    size_t mask = index->size - 1;
    uint32_t tag = tag_of(hash);
    for (size_t at = tag & mask;; at = (at + 1) & mask) {
        uint64_t slot = index->slots[at];
        if (slot == 0)
            return CX_NODE_NONE;
        if ((uint32_t)(slot >> 32) == tag) {
            cx_node n = (cx_node)slot - 1;
            if (cx_str_eq(node_id(node_at(lattice, n)), id))
                return n;
        }
    }
}

void cx_lattice_index_add(node_index *index, cx_node n, uint64_t hash)
{
    size_t mask = index->size - 1;
    size_t at = tag_of(hash) & mask;
    while (index->slots[at] != 0)
        at = (at + 1) & mask;
    index->slots[at] = (uint64_t)tag_of(hash) << 32 | (n + 1);
    index->used++;
}

void cx_lattice_index_prefetch(const node_index *index, uint64_t hash)
{
    if (index->size != 0)
        __builtin_prefetch(&index->slots[tag_of(hash) & (index->size - 1)]);
}

cx_node cx_lattice_find_id(const cx_lattice *lattice, cx_str id)
{
    return cx_lattice_index_find(lattice, id, cx_map_hash_bytes(lattice->seed, id.data, id.size));
}

/* --- by hash -------------------------------------------------------------------------------- */

static uint64_t hash_key(const cx_lattice *lattice, cx_str hash)
{
    return cx_map_hash_bytes(lattice->seed ^ 1, hash.data, hash.size);
}

cx_str cx_lattice_hash_text(const cx_lattice *lattice, cx_node n, char scratch[64])
{
    const node *item = node_at(lattice, n);
    if (item->flags & NODE_HASH_ODD) {
        uint32_t index;
        memcpy(&index, item->hash.bytes, sizeof index);
        return lattice->odd.items[index];
    }
    cx_hex_encode(cx_bytes_from(item->hash.bytes, sizeof item->hash.bytes), scratch);
    return (cx_str){scratch, 64};
}

cx_str cx_lattice_prev_text(const cx_lattice *lattice, cx_node n, char scratch[64])
{
    const node *item = node_at(lattice, n);
    if (item->flags & NODE_PREV_ODD) {
        uint32_t index;
        memcpy(&index, item->prev.bytes, sizeof index);
        return lattice->odd.items[index];
    }
    cx_hex_encode(cx_bytes_from(item->prev.bytes, sizeof item->prev.bytes), scratch);
    return (cx_str){scratch, 64};
}

bool cx_lattice_prev_is_hash_of(const cx_lattice *lattice, const node *child, const node *parent)
{
    bool prev_odd = (child->flags & NODE_PREV_ODD) != 0;
    bool hash_odd = (parent->flags & NODE_HASH_ODD) != 0;
    if (prev_odd != hash_odd)
        return false;
    if (!prev_odd)
        return cx_digest_eq(&child->prev, &parent->hash);
    uint32_t prev, hash;
    memcpy(&prev, child->prev.bytes, sizeof prev);
    memcpy(&hash, parent->hash.bytes, sizeof hash);
    return cx_str_eq(lattice->odd.items[prev], lattice->odd.items[hash]);
}

/* Of several nodes with one hash the smallest node_id stands for it (§3.4). */
static cx_status add_hash(cx_lattice *lattice, cx_node n, cx_err *err)
{
    char scratch[64], other[64];
    cx_str text = cx_lattice_hash_text(lattice, n, scratch);
    node_index *index = &lattice->hashes;
    CX_TRY(cx_lattice_index_reserve(index, lattice->alloc, err));
    uint64_t hash = hash_key(lattice, text);
    size_t mask = index->size - 1;
    for (size_t at = tag_of(hash) & mask; index->slots[at] != 0; at = (at + 1) & mask) {
        cx_node m = (cx_node)index->slots[at] - 1;
        if ((uint32_t)(index->slots[at] >> 32) != tag_of(hash) ||
            !cx_str_eq(cx_lattice_hash_text(lattice, m, other), text))
            continue;
        if (cx_str_cmp(node_id(node_at(lattice, n)), node_id(node_at(lattice, m))) < 0)
            index->slots[at] = (uint64_t)tag_of(hash) << 32 | (n + 1);
        return CX_SUCCESS;
    }
    cx_lattice_index_add(index, n, hash);
    return CX_SUCCESS;
}

cx_status cx_lattice_index_hashes(cx_lattice *lattice, cx_err *err)
{
    if (lattice->hashes.size != 0)
        return CX_SUCCESS;
    for (cx_node n = 0; n < lattice->nodes.count; n++)
        if (in_graph(node_at(lattice, n)))
            CX_TRY(add_hash(lattice, n, err));
    return CX_SUCCESS;
}

static cx_node scan_hash(const cx_lattice *lattice, cx_str hash)
{
    cx_node best = CX_NODE_NONE;
    char scratch[64];
    for (cx_node n = 0; n < lattice->nodes.count; n++) {
        const node *item = node_at(lattice, n);
        if (in_graph(item) && cx_str_eq(cx_lattice_hash_text(lattice, n, scratch), hash) &&
            (best == CX_NODE_NONE ||
             cx_str_cmp(node_id(item), node_id(node_at(lattice, best))) < 0))
            best = n;
    }
    return best;
}

cx_node cx_lattice_find_hash(const cx_lattice *lattice, cx_str hash)
{
    const node_index *index = &lattice->hashes;
    if (index->size == 0)
        return scan_hash(lattice, hash);
    uint64_t key = hash_key(lattice, hash);
    size_t mask = index->size - 1;
    char scratch[64];
    for (size_t at = tag_of(key) & mask; index->slots[at] != 0; at = (at + 1) & mask) {
        cx_node n = (cx_node)index->slots[at] - 1;
        if ((uint32_t)(index->slots[at] >> 32) == tag_of(key) &&
            cx_str_eq(cx_lattice_hash_text(lattice, n, scratch), hash))
            return n;
    }
    return CX_NODE_NONE;
}

/* --- agents and what people type -------------------------------------------------------------- */

uint32_t cx_lattice_find_agent(const cx_lattice *lattice, cx_str name)
{
    const uint64_t *found = cx_map_find(&lattice->agent_index, name);
    return found == NULL ? NO_AGENT : (uint32_t)*found;
}

cx_node cx_lattice_head_of(const cx_lattice *lattice, uint32_t agent_index)
{
    const agent *a = &lattice->agents.items[agent_index];
    return a->count == 0 ? CX_NODE_NONE : lattice->branch_nodes[a->first + a->count - 1];
}

cx_node cx_lattice_find(const cx_lattice *lattice, cx_str name)
{
    if (name.size > 1 && name.data[0] == '@') {
        uint32_t found = cx_lattice_find_agent(lattice, (cx_str){name.data + 1, name.size - 1});
        if (found != NO_AGENT)
            return cx_lattice_head_of(lattice, found);
    }
    cx_node n = cx_lattice_find_id(lattice, name);
    return n != CX_NODE_NONE ? n : cx_lattice_find_hash(lattice, name);
}

cx_str cx_lattice_label(const cx_lattice *lattice, cx_node n, char scratch[16])
{
    const node *item = node_at(lattice, n);
    if ((item->flags & NODE_NO_ID) == 0)
        return node_id(item);
    int size = snprintf(scratch, 16, "#%u", n);
    return (cx_str){scratch, (size_t)size};
}

cx_str cx_lattice_agent_label(const cx_lattice *lattice, cx_node n)
{
    const node *item = node_at(lattice, n);
    return item->agent == NO_AGENT ? CX_STR("?") : lattice->agents.items[item->agent].name;
}

uint32_t cx_lattice_count(const cx_lattice *lattice)
{
    return (uint32_t)lattice->nodes.count;
}

uint32_t cx_lattice_agent_count(const cx_lattice *lattice)
{
    return (uint32_t)lattice->agents.count;
}

cx_str cx_lattice_agent_name(const cx_lattice *lattice, uint32_t index)
{
    CX_ASSERT(index < lattice->agents.count);
    return lattice->agents.items[index].name;
}

static double time_as_double(const cx_lattice *lattice, const node *n)
{
    double value = 0;
    if (n->flags & NODE_TIME_INT)
        return (double)n->time.i;
    if ((n->flags & NODE_TIME_BIG) == 0)
        return n->time.d;
    cx_str literal = lattice->odd.items[n->time.i];
    cx_json number = {.type = CX_JSON_INT, .count = (uint32_t)literal.size, .text = literal.data};
    (void)cx_json_double(&number, &value);
    return value;
}

void cx_lattice_node(const cx_lattice *lattice, cx_node n, cx_lattice_node_info *out)
{
    CX_ASSERT(n < lattice->nodes.count);
    const node *item = node_at(lattice, n);
    *out = (cx_lattice_node_info){
        .id = item->flags & NODE_NO_ID ? (cx_str){NULL, 0} : node_id(item),
        .agent = cx_lattice_agent_label(lattice, n),
        .seq = item->seq,
        .timestamp = time_as_double(lattice, item),
        .fork_type = node_fork(item),
        .parents = node_parents(lattice, item),
        .parent_count = item->parent_count,
        .lineage = item->lineage,
        .in_graph = in_graph(item),
        .offset = item->offset,
        .line = item->line,
    };
    out->children = node_children(lattice, n, &out->child_count);
}

/*
 * absorb.c - takes a digested batch into the lattice, in file order.
 *
 * This is the only part of reading that cannot run in parallel, so it does little: copy the id,
 * file it, and look up the parents.  Nearly always a parent was read before its child, and the
 * lookup is the end of it; the rest waits in pending[] for cx_lattice_link.
 */
#include "lattice/record.h"

static cx_status global_agent(cx_lattice *lattice, batch_agent *local, cx_err *err)
{
    uint64_t *found = cx_map_find(&lattice->agent_index, local->name);
    if (found == NULL) {
        cx_str name = cx_arena_copy_str(&lattice->text, local->name);
        agent *slot = cx_vec_push(&lattice->agents, lattice->alloc);
        if (name.data == NULL || slot == NULL)
            return cx_fail_nomem(err);
        *slot = (agent){.name = name};
        CX_TRY(cx_map_put(&lattice->agent_index, name, &found, NULL, err));
        *found = lattice->agents.count - 1;
    }
    local->global = (uint32_t)*found;
    return CX_SUCCESS;
}

/* Odd texts move to the lattice's table: the batch's indexes shift by what is there already. */
static void shift_odd(node *n, uint32_t by)
{
    if (n->flags & NODE_HASH_ODD) {
        uint32_t index;
        memcpy(&index, n->hash.bytes, sizeof index);
        index += by;
        memcpy(n->hash.bytes, &index, sizeof index);
    }
    if (n->flags & NODE_PREV_ODD) {
        uint32_t index;
        memcpy(&index, n->prev.bytes, sizeof index);
        index += by;
        memcpy(n->prev.bytes, &index, sizeof index);
    }
    if (n->flags & NODE_TIME_BIG)
        n->time.i += by;
}

static cx_status absorb_odd(cx_lattice *lattice, const batch *b, cx_err *err)
{
    for (size_t i = 0; i < b->odd.count; i++) {
        cx_str *slot = cx_vec_push(&lattice->odd, lattice->alloc);
        cx_str copy = cx_arena_copy_str(&lattice->text, b->odd.items[i]);
        if (slot == NULL || copy.data == NULL)
            return cx_fail_nomem(err);
        *slot = copy;
    }
    return CX_SUCCESS;
}

static cx_status absorb_complaints(cx_lattice *lattice, const batch *b, cx_node base, cx_err *err)
{
    for (size_t i = 0; i < b->complaints.count; i++) {
        const batch_complaint *from = &b->complaints.items[i];
        complaint *slot = cx_vec_push(&lattice->complaints, lattice->alloc);
        cx_str detail = cx_arena_copy_str(&lattice->text, from->detail);
        if (slot == NULL || detail.data == NULL)
            return cx_fail_nomem(err);
        *slot = (complaint){base + from->draft, from->code, detail};
    }
    return CX_SUCCESS;
}

static cx_status absorb_deltas(cx_lattice *lattice, const batch *b, cx_err *err)
{
    if (!cx_vec_reserve(&lattice->deltas, lattice->deltas.count + b->drafts.count, lattice->alloc))
        return cx_fail_nomem(err);
    cx_str all = cx_arena_copy_str(&lattice->text, cx_buf_str(&b->deltas));
    if (all.data == NULL)
        return cx_fail_nomem(err);
    const char *at = all.data;
    for (size_t i = 0; i < b->drafts.count; i++) {
        size_t size = b->drafts.items[i].delta.size;
        lattice->deltas.items[lattice->deltas.count++] = (cx_str){at, size};
        at += size;
    }
    return CX_SUCCESS;
}

static cx_status absorb_parents(cx_lattice *lattice, const batch *b, const draft *d, node *n,
                                cx_node self, cx_err *err)
{
    if (!cx_vec_reserve(&lattice->parents, lattice->parents.count + d->ref_count, lattice->alloc))
        return cx_fail_nomem(err);
    if (lattice->parents.count + d->ref_count > UINT32_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", n->offset, "more than 2^32 edges");
    n->first_parent = (uint32_t)lattice->parents.count;
    n->parent_count = d->ref_count;
    for (uint32_t i = 0; i < d->ref_count; i++) {
        const parent_ref *ref = &b->refs.items[d->first_ref + i];
        cx_node parent = cx_lattice_index_find(lattice, ref->text, ref->hash);
        uint32_t slot = (uint32_t)lattice->parents.count++;
        lattice->parents.items[slot] = parent;
        if (parent != CX_NODE_NONE)
            continue;
        pending_parent *wait = cx_vec_push(&lattice->pending, lattice->alloc);
        cx_str text = cx_arena_copy_str(&lattice->text, ref->text);
        if (wait == NULL || text.data == NULL)
            return cx_fail_nomem(err);
        *wait = (pending_parent){self, slot, text};
    }
    return CX_SUCCESS;
}

/* Files the id, or marks the node as a repetition of one met before (E_DUP_ID). */
static cx_status file_id(cx_lattice *lattice, node *n, cx_node self, uint64_t hash, cx_err *err)
{
    if (n->flags & NODE_UNUSABLE)
        return CX_SUCCESS;
    CX_TRY(cx_lattice_index_reserve(&lattice->ids, lattice->alloc, err));
    cx_node earlier = cx_lattice_index_find(lattice, node_id(n), hash);
    if (earlier == CX_NODE_NONE) {
        cx_lattice_index_add(&lattice->ids, self, hash);
        return CX_SUCCESS;
    }
    n->flags |= NODE_DUPLICATE;
    complaint *slot = cx_vec_push(&lattice->complaints, lattice->alloc);
    cx_str detail =
        cx_arena_printf(&lattice->text, "met before, at line %u", node_at(lattice, earlier)->line);
    if (slot == NULL || detail.data == NULL)
        return cx_fail_nomem(err);
    *slot = (complaint){self, CX_E_DUP_ID, detail};
    return CX_SUCCESS;
}

static cx_status absorb_draft(cx_lattice *lattice, batch *b, const draft *d, uint32_t odd_base,
                              cx_err *err)
{
    cx_node self = (cx_node)lattice->nodes.count;
    node *n = cx_vec_push(&lattice->nodes, lattice->alloc);
    if (n == NULL)
        return cx_fail_nomem(err);
    *n = d->n;
    cx_str id = cx_arena_copy_str(&lattice->text, node_id(&d->n));
    if (id.data == NULL)
        return cx_fail_nomem(err);
    n->id = id.data;
    if (n->agent != NO_AGENT) {
        batch_agent *local = &b->agents.items[n->agent];
        if (local->global == NO_AGENT)
            CX_TRY(global_agent(lattice, local, err));
        n->agent = local->global;
    }
    if (odd_base != 0)
        shift_odd(n, odd_base);
    CX_TRY(file_id(lattice, n, self, d->id_hash, err));
    if (in_graph(n))
        return absorb_parents(lattice, b, d, n, self, err);
    n->first_parent = (uint32_t)lattice->parents.count;
    return CX_SUCCESS;
}

/* Brings the places of a draft's id and first parents in the index on their way. */
static void prefetch_draft(const cx_lattice *lattice, const batch *b, const draft *d)
{
    enum { MOST = 2 };
    cx_lattice_index_prefetch(&lattice->ids, d->id_hash);
    for (uint32_t i = 0; i < d->ref_count && i < MOST; i++)
        cx_lattice_index_prefetch(&lattice->ids, b->refs.items[d->first_ref + i].hash);
}

cx_status cx_lattice_absorb(cx_lattice *lattice, batch *b, cx_err *err)
{
    enum { AHEAD = 8 };
    cx_node base = (cx_node)lattice->nodes.count;
    uint32_t odd_base = (uint32_t)lattice->odd.count;
    if (!cx_vec_reserve(&lattice->nodes, lattice->nodes.count + b->drafts.count, lattice->alloc))
        return cx_fail_nomem(err);
    if (lattice->nodes.count + b->drafts.count > lattice->max_nodes)
        return cx_fail_at(
            err, CX_E_LIMIT, "U_LIMIT", b->drafts.items[lattice->max_nodes - base].n.offset,
            "more than the limit of %llu nodes", (unsigned long long)lattice->max_nodes);
    CX_TRY(absorb_odd(lattice, b, err));
    for (size_t i = 0; i < b->drafts.count; i++) {
        if (i + AHEAD < b->drafts.count)
            prefetch_draft(lattice, b, &b->drafts.items[i + AHEAD]);
        CX_TRY(absorb_draft(lattice, b, &b->drafts.items[i], odd_base, err));
    }
    CX_TRY(absorb_complaints(lattice, b, base, err));
    if (lattice->keep_deltas)
        CX_TRY(absorb_deltas(lattice, b, err));
    if (lattice->keep_seals) {
        if (!cx_vec_reserve(&lattice->seals, lattice->seals.count + b->seals.count, lattice->alloc))
            return cx_fail_nomem(err);
        if (b->seals.count != 0)
            memcpy(lattice->seals.items + lattice->seals.count, b->seals.items,
                   b->seals.count * sizeof *b->seals.items);
        lattice->seals.count += b->seals.count;
    }
    return CX_SUCCESS;
}

/*
 * snapshot_marks.c - maps a snapshot's journal size to the node after which it was taken.
 *
 *   S1  bridge.c writes a branch's nodes consecutively, in the order of their entries: node number
 *       - seq is the number of the first, and event.entry.seq never decreases.  So the node is
 *         found
 *       by binary search, at the cost of reading a few events again.
 */
#include "recorder/snapshot_marks.h"

#include "crypto/api.h"
#include "lattice/api.h"
#include "ledger/api.h"

typedef struct marking {
    cx_home *home;
    const cx_lattice *lattice;
    cx_arena *arena;
    cx_lattice_view_snapshot *list;
    size_t count;
} marking;

/* The entry that a node of a trace comes from; false when the node does not name it. */
static cx_status source_entry_of(const marking *h, cx_node n, uint64_t *out, bool *out_known,
                                 cx_err *err)
{
    cx_arena scratch;
    cx_json source;
    cx_arena_init(&scratch, h->arena->alloc, 0);
    cx_status status = cx_lattice_source(h->lattice, n, &scratch, &source, err);
    *out_known = false;
    if (!cx_failed(status)) {
        const cx_json *event = CX_JSON_GET(&source, "event");
        const cx_json *entry = event == NULL ? NULL : CX_JSON_GET(event, "entry");
        const cx_json *seq = entry == NULL ? NULL : CX_JSON_GET(entry, "seq");
        *out_known = seq != NULL && cx_json_uint64(seq, out);
    }
    cx_arena_done(&scratch);
    return status;
}

/* S1.  The last node first .. head whose entry is one of the first `entries`; CX_NODE_NONE. */
static cx_status newest_node_in(const marking *h, cx_node first, cx_node head, uint64_t entries,
                                cx_node *out, cx_err *err)
{
    cx_node low = first, high = head + 1;
    while (low < high) {
        cx_node middle = low + (high - low) / 2;
        uint64_t entry = 0;
        bool is_known;
        CX_TRY(source_entry_of(h, middle, &entry, &is_known, err));
        if (is_known && entry < entries)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low == first ? CX_NODE_NONE : low - 1;
    return CX_SUCCESS;
}

static cx_status add_snapshot_mark(marking *h, const cx_manifest *manifest, cx_node node,
                                   cx_err *err)
{
    char root[64];
    cx_hex_encode(cx_bytes_from(manifest->overall_root.bytes, 32), root);
    cx_lattice_view_snapshot one = {
        .node = node,
        .number = manifest->snapshot_seq,
        .entries = manifest->journal_size,
        .created_ns = manifest->created_ns,
        .actor = cx_arena_copy_str(h->arena, manifest->actor),
        .root = cx_arena_copy_str(h->arena, cx_str_from(root, sizeof root)),
        .sealed = !manifest->signature.null,
    };
    if (one.actor.data == NULL || one.root.data == NULL)
        return cx_fail_nomem(err);
    h->list[h->count++] = one;
    return CX_SUCCESS;
}

static cx_status add_actor(marking *h, cx_str actor, cx_arena *scratch, cx_err *err)
{
    const cx_manifest *manifests;
    cx_lattice_node_info info;
    size_t count = 0;
    cx_str name = cx_arena_printf(scratch, "@agent/%.*s", (int)actor.size, actor.data);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    cx_node head = cx_lattice_find(h->lattice, name);
    if (head == CX_NODE_NONE)
        return CX_SUCCESS;
    cx_lattice_node(h->lattice, head, &info);
    if (info.seq < 0 || (uint64_t)info.seq > head)
        return CX_SUCCESS;
    cx_node first = head - (cx_node)info.seq;
    CX_TRY(cx_snapshot_list(h->home, actor, scratch, &manifests, &count, err));
    for (size_t i = 0; i < count && h->count < CX_SNAPSHOT_MARKS_MAX; i++) {
        cx_node node;
        CX_TRY(newest_node_in(h, first, head, manifests[i].journal_size, &node, err));
        if (node != CX_NODE_NONE)
            CX_TRY(add_snapshot_mark(h, &manifests[i], node, err));
    }
    return CX_SUCCESS;
}

cx_status cx_recorder_snapshot_marks(cx_home *home, const cx_lattice *lattice, cx_arena *arena,
                                     cx_lattice_view_snapshot **out, size_t *out_count, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    cx_arena scratch;
    marking h = {.home = home, .lattice = lattice, .arena = arena};
    h.list = CX_ARENA_ARRAY(arena, cx_lattice_view_snapshot, CX_SNAPSHOT_MARKS_MAX);
    if (h.list == NULL)
        return cx_fail_nomem(err);
    cx_arena_init(&scratch, arena->alloc, 0);
    cx_actor_walk_begin(&walk, home);
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL) {
        if (actor->snapshot_count != 0)
            status = add_actor(&h, actor->name, &scratch, err);
        cx_arena_reset(&scratch, (cx_arena_mark){0});
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    cx_arena_done(&scratch);
    if (cx_failed(status))
        return status;
    *out = h.list;
    *out_count = h.count;
    return CX_SUCCESS;
}

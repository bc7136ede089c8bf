/*
 * reach.c - what a step reached: all that follows from it, and of that, what carries its text.
 *
 * A node *follows* when it is a descendant of the source by parents edges.  It *carries* when it
 * also has the source's call id, or when a text of its content, or a value that it changed, shares
 * REACH_WIDTH bytes with a text of the source's content that no node outside of the source and its
 * descendants has: what was there without the source does not come from it.
 *
 * Each node is read once, so the cost is that of reading the file again; of the source's content
 * REACH_BYTES are compared.
 */
#include "lattice/answer.h"
#include "lattice/content/content.h"

#define KEYS_MAX 20u
#define SNIPPET_BYTES 160u

typedef struct reach_search {
    const cx_lattice *lattice;
    cx_arena *arena;
    lattice_reach *reach;
    content_reader reader;
    content_windows windows;
    cx_buf normal;
    cx_str call_id;
    CX_VEC(reach_carrier) carriers;
    size_t best; /* of the node that is read */
    cx_str best_text;
    bool is_call;
} reach_search;

/* --- the source ------------------------------------------------------------------------------- */

static cx_status normal_text(reach_search *s, cx_str text, cx_err *err)
{
    cx_buf_clear(&s->normal);
    cx_content_normal(&s->normal, text);
    return cx_buf_check(&s->normal, err);
}

static cx_status add_text(void *arg, const content_text *text, cx_err *err)
{
    reach_search *s = arg;
    if (text->is_whole)
        return CX_SUCCESS;
    CX_TRY(normal_text(s, text->text, err));
    s->reach->size += s->normal.size;
    if (s->normal.size < REACH_WIDTH)
        return CX_SUCCESS;
    size_t room = REACH_BYTES > s->windows.bytes.size ? REACH_BYTES - s->windows.bytes.size : 0;
    s->reach->is_cut |= s->normal.size > room;
    return room < REACH_WIDTH
               ? CX_SUCCESS
               : cx_windows_add(&s->windows, shortened(cx_buf_str(&s->normal), room), err);
}

static cx_status read_source(reach_search *s, cx_node source, cx_err *err)
{
    CX_TRY(cx_content_read(&s->reader, source, err));
    CX_TRY(cx_content_visit(&s->reader, add_text, s, err));
    s->call_id = CX_JSON_GET_STR(s->reader.event, "call_id");
    if (s->call_id.size != 0) {
        s->call_id = cx_arena_copy_str(s->arena, s->call_id);
        if (s->call_id.data == NULL)
            return cx_fail_nomem(err);
    }
    return cx_windows_make(&s->windows, err);
}

/* --- what follows ----------------------------------------------------------------------------- */

static bool has_bit(const uint64_t *bits, uint32_t position)
{
    return position != UINT32_MAX && (bits[position / 64] >> (position % 64) & 1) != 0;
}

static void mark_descendants(reach_search *s, cx_node source)
{
    const cx_lattice *lattice = s->lattice;
    uint64_t *bits = s->reach->follows;
    uint32_t first = lattice->position[source];
    bits[first / 64] |= UINT64_C(1) << (first % 64);
    for (uint32_t at = first + 1; at < lattice->order_count; at++) {
        const node *n = node_at(lattice, lattice->order[at]);
        const cx_node *parents = node_parents(lattice, n);
        bool follows = false;
        for (uint32_t i = 0; i < n->parent_count && !follows; i++)
            follows = has_bit(bits, lattice->position[parents[i]]);
        if (!follows)
            continue;
        bits[at / 64] |= UINT64_C(1) << (at % 64);
        s->reach->follow_count++;
    }
    bits[first / 64] &= ~(UINT64_C(1) << (first % 64));
}

/* --- what was there without the source -------------------------------------------------------- */

static cx_status forget_text(void *arg, const content_text *text, cx_err *err)
{
    reach_search *s = arg;
    if (text->is_whole)
        return CX_SUCCESS;
    CX_TRY(normal_text(s, text->text, err));
    cx_windows_forget(&s->windows, cx_buf_str(&s->normal));
    return CX_SUCCESS;
}

/* --- what carries ----------------------------------------------------------------------------- */

static cx_status find_text(void *arg, const content_text *text, cx_err *err)
{
    reach_search *s = arg;
    size_t at;
    s->is_call |= s->call_id.size != 0 && cx_str_eq(text->call_id, s->call_id);
    if (text->is_whole)
        return CX_SUCCESS;
    CX_TRY(normal_text(s, text->text, err));
    size_t size = cx_windows_find(&s->windows, cx_buf_str(&s->normal), &at);
    if (size <= s->best)
        return CX_SUCCESS;
    cx_buf snippet;
    cx_buf_init(&snippet, s->lattice->alloc);
    cx_content_snippet(&snippet, cx_buf_str(&s->normal), at, size, SNIPPET_BYTES);
    cx_status status = cx_buf_check(&snippet, err);
    s->best = size;
    if (!cx_failed(status)) {
        s->best_text = cx_arena_copy_str(s->arena, cx_buf_str(&snippet));
        if (s->best_text.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&snippet);
    return status;
}

/* Whether one value does; leaves the best of the node as it is. */
static cx_status value_carries(reach_search *s, const cx_json *value, bool *out, cx_err *err)
{
    static const content_text change = {.part = CONTENT_CHANGE};
    size_t best = s->best;
    cx_str best_text = s->best_text;
    s->best = 0;
    CX_TRY(cx_content_value(&s->reader, value, &change, find_text, s, err));
    *out = s->best != 0;
    if (best >= s->best) {
        s->best = best;
        s->best_text = best_text;
    }
    return CX_SUCCESS;
}

static cx_status add_key(reach_search *s, reach_carrier *carrier, cx_str section, cx_str key,
                         cx_str below, cx_err *err)
{
    if (carrier->key_count == KEYS_MAX)
        return CX_SUCCESS;
    if (carrier->keys == NULL)
        carrier->keys = CX_ARENA_ARRAY(s->arena, cx_str, KEYS_MAX);
    if (carrier->keys == NULL)
        return cx_fail_nomem(err);
    cx_str *slot = &carrier->keys[carrier->key_count];
    *slot = below.data == NULL
                ? cx_arena_printf(s->arena, "%.*s.%.*s", (int)section.size, section.data,
                                  (int)key.size, key.data)
                : cx_arena_printf(s->arena, "%.*s.%.*s.%.*s", (int)section.size, section.data,
                                  (int)key.size, key.data, (int)below.size, below.data);
    carrier->key_count++;
    return slot->data != NULL ? CX_SUCCESS : cx_fail_nomem(err);
}

/* memory.KEY, or memory.KEY.MEMBER of an object. */
static cx_status find_keys_of(reach_search *s, reach_carrier *carrier, cx_str section, cx_str key,
                              const cx_json *value, cx_err *err)
{
    bool carries;
    if (value->type != CX_JSON_OBJECT) {
        CX_TRY(value_carries(s, value, &carries, err));
        return carries ? add_key(s, carrier, section, key, (cx_str){NULL, 0}, err) : CX_SUCCESS;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        CX_TRY(value_carries(s, &value->members[i].value, &carries, err));
        if (carries)
            CX_TRY(add_key(s, carrier, section, key, cx_json_text(&value->members[i].name), err));
    }
    return CX_SUCCESS;
}

static cx_status find_keys(reach_search *s, reach_carrier *carrier, cx_err *err)
{
    const cx_json *delta =
        cx_json_get_typed(&s->reader.source, CX_STR("state_delta"), CX_JSON_OBJECT);
    for (uint32_t i = 0; delta != NULL && i < delta->count; i++) {
        const cx_json *section = &delta->members[i].value;
        cx_str name = cx_json_text(&delta->members[i].name);
        for (uint32_t k = 0; section->type == CX_JSON_OBJECT && k < section->count; k++)
            CX_TRY(find_keys_of(s, carrier, name, cx_json_text(&section->members[k].name),
                                &section->members[k].value, err));
    }
    return CX_SUCCESS;
}

static cx_status search_follower(reach_search *s, cx_node which, cx_err *err)
{
    reach_carrier carrier = {.which = which};
    s->best = 0;
    s->best_text = (cx_str){"", 0};
    CX_TRY(cx_content_read(&s->reader, which, err));
    s->is_call =
        s->call_id.size != 0 && cx_str_eq(CX_JSON_GET_STR(s->reader.event, "call_id"), s->call_id);
    CX_TRY(cx_content_visit(&s->reader, find_text, s, err));
    CX_TRY(find_keys(s, &carrier, err));
    if (s->best == 0 && !s->is_call)
        return CX_SUCCESS;
    s->reach->carrier_count++;
    if (s->carriers.count == REACH_CARRIERS_MAX)
        return CX_SUCCESS;
    carrier.by_text = s->best != 0;
    carrier.by_call = s->is_call;
    carrier.text = s->best_text;
    reach_carrier *slot = cx_vec_push(&s->carriers, s->lattice->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = carrier;
    return CX_SUCCESS;
}

static cx_status search_nodes(reach_search *s, cx_node source, cx_err *err)
{
    const cx_lattice *lattice = s->lattice;
    const uint64_t *follows = s->reach->follows;
    for (uint32_t at = 0; s->windows.slot_count != 0 && at < lattice->order_count; at++) {
        if (has_bit(follows, at) || lattice->order[at] == source)
            continue;
        CX_TRY(cx_content_read(&s->reader, lattice->order[at], err));
        CX_TRY(cx_content_visit(&s->reader, forget_text, s, err));
    }
    for (uint32_t at = lattice->position[source]; at < lattice->order_count; at++)
        if (has_bit(follows, at))
            CX_TRY(search_follower(s, lattice->order[at], err));
    return CX_SUCCESS;
}

static cx_status copy_carriers(reach_search *s, cx_err *err)
{
    s->reach->carriers = CX_ARENA_ARRAY(s->arena, reach_carrier, s->carriers.count + 1);
    if (s->reach->carriers == NULL)
        return cx_fail_nomem(err);
    s->reach->listed = s->carriers.count;
    if (s->carriers.count != 0)
        memcpy(s->reach->carriers, s->carriers.items, s->carriers.count * sizeof(reach_carrier));
    return CX_SUCCESS;
}

cx_status cx_lattice_reach(const cx_lattice *lattice, cx_node source, cx_arena *arena,
                           lattice_reach *out, cx_err *err)
{
    size_t words = ((size_t)lattice->order_count + 63) / 64;
    reach_search s = {.lattice = lattice, .arena = arena, .reach = out};
    *out = (lattice_reach){0};
    if (source >= lattice->nodes.count || lattice->position[source] == UINT32_MAX)
        return cx_fail(err, CX_E_NOT_FOUND, "the node is on or after a cycle, or in no history");
    out->follows = CX_ARENA_ARRAY(arena, uint64_t, words);
    if (out->follows == NULL)
        return cx_fail_nomem(err);
    memset(out->follows, 0, words * sizeof *out->follows);
    cx_content_init(&s.reader, lattice);
    cx_windows_init(&s.windows, lattice->alloc, REACH_WIDTH);
    cx_buf_init(&s.normal, lattice->alloc);
    mark_descendants(&s, source);
    cx_status status = read_source(&s, source, err);
    if (!cx_failed(status))
        status = search_nodes(&s, source, err);
    if (!cx_failed(status))
        status = copy_carriers(&s, err);
    cx_vec_done(&s.carriers, lattice->alloc);
    cx_buf_done(&s.normal);
    cx_windows_done(&s.windows);
    cx_content_done(&s.reader);
    return status;
}

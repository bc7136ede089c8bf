/*
 * part.c - some of an agent's steps, without reading those before them.
 *
 *   P1  Steps are nodes as they are stored, and an ancestor comes before its descendants in a
 *       journal.  So the entries of a part are nodes that verify by themselves, but for parents
 *       before its first entry, and parents of other agents.
 *   P2  A parent that is not in the part counts as known when the journal of the child has a record
 *       of it: step/node/HASH of its own steps, step/link/HASH of those of others.
 *   P3  The cost depends on the part, never on the journal.
 */
#include "base/api.h"
#include "lattice/api.h"
#include "recorder/step_record.h"

typedef struct part {
    cx_home *home;
    cx_str branch;
    cx_arena arena;
    cx_str actor; /* whose journal it is */
    cx_buf *lines;
} part;

/* --- which journal ---------------------------------------------------------------------------- */

/* *out_entries = 0: it has none that can be opened in parts. */
static cx_status find_journal(part *p, uint64_t *out_entries, cx_err *err)
{
    cx_actor_info info;
    bool has_steps = false;
    *out_entries = 0;
    if (!cx_str_starts(p->branch, CX_STR("agent/")))
        return CX_SUCCESS;
    cx_str agent = cx_str_from(p->branch.data + 6, p->branch.size - 6);
    CX_TRY(cx_step_actor(agent, &p->arena, &p->actor, err));
    CX_TRY(cx_recorder_has_steps(p->home, p->actor, &has_steps, err));
    if (!has_steps)
        return CX_SUCCESS;
    if (!cx_str_eq(agent, p->actor)) {
        cx_status other = cx_home_actor(p->home, agent, &info, err);
        if (other.code != CX_E_NOT_FOUND)
            return other; /* the branch has nodes of two journals */
    }
    CX_TRY(cx_home_actor(p->home, p->actor, &info, err));
    *out_entries = info.entry_count;
    return CX_SUCCESS;
}

static cx_status find_node(part *p, cx_str name, cx_steps_extent *out, cx_err *err)
{
    cx_digest hash;
    cx_step_record node;
    if (name.data == NULL || !cx_digest_parse(name, &hash))
        return CX_SUCCESS;
    const cx_step_key key = cx_step_key_of(CX_STEP_NODE_PREFIX, &hash);
    CX_TRY(cx_step_home_get(p->home, p->actor, cx_step_key_bytes(&key), &p->arena, &node,
                            &out->found, err));
    out->entry = out->found ? node.entry : 0;
    return CX_SUCCESS;
}

cx_status cx_recorder_steps_extent(cx_home *home, cx_str branch, cx_str node, cx_steps_extent *out,
                                   cx_err *err)
{
    part p = {.home = home, .branch = branch};
    *out = (cx_steps_extent){.parts = false};
    cx_arena_init(&p.arena, cx_alloc_default(), 0);
    cx_status status = find_journal(&p, &out->entries, err);
    out->parts = out->entries != 0;
    if (!cx_failed(status) && out->parts)
        status = find_node(&p, node, out, err);
    cx_arena_done(&p.arena);
    return status;
}

/* --- its entries ------------------------------------------------------------------------------ */

static cx_status add_entry(part *p, cx_str actor, uint64_t seq, cx_buf *out, cx_err *err)
{
    cx_entry_view view;
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    CX_TRY(cx_home_entry(p->home, actor, seq, &p->arena, &view, err));
    if (!view.payload_erased && cx_str_eq(view.entry.kind, CX_KIND_RECEIVED))
        return cx_fail_at(err, CX_E_UNSUPPORTED, "NoParts", CX_NO_OFFSET,
                          "entry %llu is a signed trace, whose nodes depend on all before it: "
                          "open the whole history",
                          (unsigned long long)seq);
    if (!view.payload_erased && cx_str_eq(view.entry.kind, CX_KIND_NODE)) {
        cx_buf_add(out, view.payload.data, view.payload.size);
        cx_buf_add_byte(out, '\n');
    }
    cx_arena_reset(&p->arena, mark);
    return cx_buf_check(out, err);
}

static cx_status add_entries(part *p, uint64_t from, cx_err *err)
{
    uint64_t entries;
    CX_TRY(find_journal(p, &entries, err));
    if (entries == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
                          "the data directory has no steps of %.*s that can be opened in parts",
                          (int)(p->branch.size > 80 ? 80 : p->branch.size), p->branch.data);
    if (from >= entries)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoPart", CX_NO_OFFSET,
                          "found a part from entry %llu, expected one below %llu",
                          (unsigned long long)from, (unsigned long long)entries);
    const uint64_t end = entries - from > CX_STEPS_PART ? from + CX_STEPS_PART : entries;
    for (uint64_t seq = from; seq < end; seq++)
        CX_TRY(add_entry(p, p->actor, seq, p->lines, err));
    if (p->lines->size == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoPart", CX_NO_OFFSET,
                          "entries %llu to %llu hold no steps, or erased ones",
                          (unsigned long long)from, (unsigned long long)(end - 1));
    return CX_SUCCESS;
}

/* --- parents that are not in it --------------------------------------------------------------- */

/* The record `prefix`HASH of the journal of that child's agent. */
static cx_status find_record(part *p, const cx_lattice *lattice, size_t missing, const char *prefix,
                             cx_step_record *out, bool *out_found, cx_err *err)
{
    cx_node child;
    cx_lattice_node_info info;
    cx_digest hash;
    cx_str name = cx_lattice_missing(lattice, missing, &child), actor;
    *out_found = false;
    if (!cx_digest_parse(name, &hash))
        return CX_SUCCESS;
    cx_lattice_node(lattice, child, &info);
    CX_TRY(cx_step_actor(info.agent, &p->arena, &actor, err));
    const cx_step_key key = cx_step_key_of(prefix, &hash);
    CX_TRY(
        cx_step_home_get(p->home, actor, cx_step_key_bytes(&key), &p->arena, out, out_found, err));
    out->hash = hash;
    return CX_SUCCESS;
}

/* P2 */
static cx_status is_known(part *p, const cx_lattice *lattice, size_t missing, bool *out,
                          cx_err *err)
{
    cx_step_record record;
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    CX_TRY(find_record(p, lattice, missing, CX_STEP_NODE_PREFIX, &record, out, err));
    if (!*out)
        CX_TRY(find_record(p, lattice, missing, CX_STEP_LINK_PREFIX, &record, out, err));
    cx_arena_reset(&p->arena, mark);
    return CX_SUCCESS;
}

static bool is_among(const cx_digest *hashes, size_t count, const cx_digest *hash)
{
    for (size_t i = 0; i < count; i++)
        if (cx_digest_eq(&hashes[i], hash))
            return true;
    return false;
}

/* Appends the steps of other agents that are named as parents, each once. */
static cx_status add_context(part *p, const cx_lattice *lattice, cx_buf *out, cx_err *err)
{
    size_t count = 0;
    cx_digest *added = CX_ARENA_ARRAY(&p->arena, cx_digest, CX_STEPS_PART_CONTEXT);
    if (added == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < cx_lattice_missing_count(lattice) && count < CX_STEPS_PART_CONTEXT;
         i++) {
        cx_step_record link;
        cx_actor_info info;
        bool found;
        cx_arena_mark mark = cx_arena_mark_now(&p->arena);
        CX_TRY(find_record(p, lattice, i, CX_STEP_LINK_PREFIX, &link, &found, err));
        if (found && !is_among(added, count, &link.hash)) {
            CX_TRY(cx_home_actor(p->home, link.agent, &info, err));
            CX_TRY(add_entry(p, link.agent, link.entry, out, err));
            added[count++] = link.hash;
        }
        cx_arena_reset(&p->arena, mark);
    }
    return CX_SUCCESS;
}

static cx_status open_with_context(part *p, const cx_lattice_options *options, cx_lattice **out,
                                   cx_err *err)
{
    cx_buf more;
    CX_TRY(cx_lattice_open_bytes(cx_buf_bytes(p->lines), options, out, err));
    cx_buf_init(&more, p->lines->alloc);
    cx_status status = add_context(p, *out, &more, err);
    if (!cx_failed(status) && more.size != 0) {
        cx_lattice_close(*out); /* it borrows from the lines */
        *out = NULL;
        cx_buf_add_str(p->lines, cx_buf_str(&more));
        status = cx_buf_check(p->lines, err);
        if (!cx_failed(status))
            status = cx_lattice_open_bytes(cx_buf_bytes(p->lines), options, out, err);
    }
    cx_buf_done(&more);
    return status;
}

static cx_status verify_part(part *p, const cx_lattice *lattice, cx_lattice_report **out,
                             cx_err *err)
{
    const size_t count = cx_lattice_missing_count(lattice);
    bool *known = CX_ARENA_ARRAY(&p->arena, bool, count + 1);
    if (known == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        CX_TRY(is_known(p, lattice, i, &known[i], err));
    return cx_lattice_verify_part(lattice, NULL, known, out, err);
}

cx_status cx_recorder_steps_part(cx_home *home, cx_str branch, uint64_t from,
                                 const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                                 cx_lattice_report **out_report, cx_err *err)
{
    part p = {.home = home, .branch = branch, .lines = lines};
    *out = NULL;
    cx_arena_init(&p.arena, lines->alloc, 0);
    cx_status status = add_entries(&p, from, err);
    if (!cx_failed(status))
        status = open_with_context(&p, options, out, err);
    if (!cx_failed(status))
        status = verify_part(&p, *out, out_report, err);
    cx_arena_done(&p.arena);
    if (cx_failed(status)) {
        cx_lattice_close(*out);
        *out = NULL;
    }
    return status;
}

/* Places that a hash leads to: one, and those of other hashes that begin as it does. */
#define STEP_PLACES_MAX 1024

/* --- one step --------------------------------------------------------------------------------- */

static cx_status read_step(cx_home *home, cx_str actor, uint64_t entry, cx_arena *arena,
                           cx_str *out_line, bool *out_found, cx_err *err)
{
    cx_entry_view view;
    CX_TRY(cx_home_entry(home, actor, entry, arena, &view, err));
    *out_found = !view.payload_erased && cx_str_eq(view.entry.kind, CX_KIND_NODE);
    *out_line = cx_bytes_str(view.payload);
    return CX_SUCCESS;
}

cx_status cx_recorder_step_line(cx_home *home, cx_str hash, cx_arena *arena, cx_str *out_line,
                                bool *out_found, cx_err *err)
{
    cx_digest digest;
    const cx_hash_place *places;
    size_t count = 0;
    *out_found = false;
    if (!cx_digest_parse(hash, &digest))
        return CX_SUCCESS;
    const cx_step_key key = cx_step_key_of(CX_STEP_NODE_PREFIX, &digest);
    CX_TRY(cx_home_find_hash(home, hash, STEP_PLACES_MAX, arena, &places, &count, err));
    for (size_t i = 0; i < count && !*out_found; i++) {
        cx_step_record node;
        if (places[i].snapshot)
            continue;
        CX_TRY(cx_step_home_get(home, places[i].actor, cx_step_key_bytes(&key), arena, &node,
                                out_found, err));
        if (*out_found)
            CX_TRY(read_step(home, places[i].actor, node.entry, arena, out_line, out_found, err));
    }
    return CX_SUCCESS;
}

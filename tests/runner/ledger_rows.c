/*
 * ledger_rows.c - rows of a home under the keys of the original, and what a rebuild counts; see
 * ledger_moments.h.
 */
#include "ledger/verify.h"
#include "tests/runner/ledger_moments.h"
#include "tests/support/folder.h"

/* --- records ---------------------------------------------------------------------------------- */

static uint64_t u64_of(const uint8_t *bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < 8; i++)
        number = number << 8 | bytes[i];
    return number;
}

static CX_RESULT u64_hex(runner *r, uint64_t number, cx_json *out, cx_err *err)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (56 - 8 * i));
    return runner_hex(r, cx_bytes_from(bytes, sizeof bytes), out, err);
}

/* Node at a 1-based position of the journal's tree, which is that of its first `size` leaves. */
static CX_RESULT tree_node(runner *r, runner_moment *m, uint64_t position, cx_json *out,
                           cx_err *err)
{
    cx_trees trees;
    cx_digest node = {{0}};
    CX_TRY(cx_home_trees_begin(m->home, m->actor, &trees, err));
    uint64_t size = cx_mmr_size(trees.journal), leaf = 0;
    /* The newest leaf at or before it; what follows are the nodes that leaf completes. */
    while (leaf + 1 < size && cx_mmr_leaf_position(leaf + 1) <= position)
        leaf++;
    uint64_t height = position - cx_mmr_leaf_position(leaf);
    cx_status status =
        size == 0 || height > 63
            ? cx_fail(err, CX_E_NOT_FOUND, "no node has that position")
            : cx_mmr_node(trees.journal, (unsigned)height, leaf >> height, &node, err);
    cx_home_trees_end(m->home);
    CX_TRY(status);
    return runner_digest(r, &node, out, err);
}

/* Rows the home does not keep under a key of the original, or keeps elsewhere. */
static CX_RESULT other_row(runner *r, runner_moment *m, cx_str key, cx_json *out, bool *out_known,
                           cx_err *err)
{
    cx_actor_info info;
    const uint8_t *end = (const uint8_t *)key.data + key.size;
    *out_known = true;
    CX_TRY(cx_home_actor(m->home, m->actor, &info, err));
    if (cx_str_is(key, "meta/journal_head") || cx_str_is(key, "accum/mmr/leafcount"))
        return u64_hex(r, info.entry_count, out, err);
    if (cx_str_is(key, "meta/snapshot_seq"))
        return u64_hex(r, info.snapshot_count, out, err);
    if (cx_str_starts(key, CX_STR("accum/mmr/n/")) && key.size == 20)
        return tree_node(r, m, u64_of(end - 8), out, err);
    if (cx_str_starts(key, CX_STR("j/")) && key.size == 10) {
        cx_entry_view view;
        CX_TRY(cx_home_entry(m->home, m->actor, u64_of(end - 8), &r->arena, &view, err));
        return runner_hex(r, view.bytes, out, err);
    }
    *out_known = false;
    return CX_SUCCESS;
}

/* {"k": logical key, "v"}.  The cached score of a salience row is of the original's own making. */
cx_status runner_row(runner *r, runner_moment *m, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes key, value;
    bool found = false, known = false;
    cx_json hex;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_bytes(r, item, "k", &key, err));
    cx_str name = cx_bytes_str(key);
    if (cx_str_starts(name, CX_STR("salience/")) || cx_str_starts(name, CX_STR("meta/embed_")))
        return cx_fail(err, CX_E_UNSUPPORTED, "a row of the original's own");
    CX_TRY(other_row(r, m, name, &hex, &known, err));
    if (!known) {
        CX_TRY(cx_home_get(m->home, m->actor, key, &r->arena, &value, &found, err));
        CX_TRY(found ? runner_hex(r, value, &hex, err)
                     : runner_string(r, CX_STR("no such row"), &hex, err));
    }
    CX_TRY(runner_hex(r, key, out, err));
    cx_json_list_put(&object, CX_STR("k"), *out);
    cx_json_list_put(&object, CX_STR("v"), hex);
    return cx_json_list_end_object(&object, out, err);
}

/* --- what a rebuild counts -------------------------------------------------------------------- */

/* Memories whose salience an attestation changed: those it cites, when its outcome says
 * anything. */
static CX_RESULT bumps(runner *r, runner_moment *m, uint64_t entries, uint64_t *out, cx_err *err)
{
    *out = 0;
    for (uint64_t seq = 0; seq < entries; seq++) {
        cx_entry_view view;
        cx_payload payload;
        CX_TRY(cx_home_entry(m->home, m->actor, seq, &r->arena, &view, err));
        if (!cx_str_is(view.entry.kind, "attest"))
            continue;
        CX_TRY(cx_payload_decode(CX_ENTRY_ATTEST, view.payload, &r->arena, &payload, err));
        *out += payload.as.attest.cited_count;
    }
    return CX_SUCCESS;
}

/* The overall root of a copy whose tables were rebuilt. */
static CX_RESULT root_of_rebuilt_copy(runner_moment *m, cx_digest *out, cx_err *err)
{
    const cx_home_options options = {
        .segment_bytes = UINT64_C(65536), .derivers = &cx_memory_deriver, .deriver_count = 1};
    char path[FOLDER_PATH_SIZE];
    cx_home *copy = NULL;
    cx_rebuild_result result;
    cx_roots roots;
    folder_fresh(path, "vectors-rebuilt");
    cx_status status = cx_home_backup(m->home, path, err);
    CX_TRY_GOTO(status, status);
    CX_TRY_GOTO(status, cx_home_rebuild(path, &options, CX_REBUILD_REPLACE, &result, err));
    CX_TRY_GOTO(status, cx_home_open(path, &options, &copy, err));
    CX_TRY_GOTO(status, cx_home_roots(copy, m->actor, &roots, err));
    *out = roots.overall;
done:
    if (copy != NULL) {
        cx_status closed = cx_home_close(copy, cx_failed(status) ? NULL : err);
        status = cx_failed(status) ? status : closed;
    }
    folder_remove(path);
    return status;
}

cx_status runner_rebuilt(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                         cx_err *err)
{
    cx_actor_info info;
    cx_roots roots;
    cx_digest after;
    uint64_t bumped;
    cx_json_list object = cx_json_list_begin(&r->arena);
    (void)item;
    CX_TRY(cx_home_actor(m->home, m->actor, &info, err));
    CX_TRY(cx_home_roots(m->home, m->actor, &roots, err));
    CX_TRY(bumps(r, m, info.entry_count, &bumped, err));
    runner_put_uint(r, &object, "leaves", info.entry_count);
    runner_put_uint(r, &object, "memories", info.live_memories + info.tombstoned);
    runner_put_uint(r, &object, "edges", info.edge_count);
    runner_put_uint(r, &object, "salience_bumps", bumped);
    CX_TRY(runner_put_digest(r, &object, "pre", &roots.overall, err));
    CX_TRY(root_of_rebuilt_copy(m, &after, err));
    CX_TRY(runner_put_digest(r, &object, "post", &after, err));
    return cx_json_list_end_object(&object, out, err);
}

/*
 * ledger_trees.c - journal trees and proofs about the journal.
 */
#include <stdio.h>

#include "proof/export.h"
#include "tests/runner/ledger.h"

static CX_RESULT grow(uint64_t size, cx_mmr **out, cx_err *err)
{
    if (size > 1000000)
        return cx_fail(err, CX_E_LIMIT, "a tree of more than a million leaves");
    CX_TRY(cx_mmr_open(runner_file.scheme, cx_alloc_default(), out, err));
    cx_status status = CX_SUCCESS;
    for (uint64_t i = 0; i < size && !cx_failed(status); i++) {
        cx_digest leaf = runner_ruled("leaf_rule", "matrix-mmr-leaf-", i);
        status = cx_mmr_append(*out, &leaf, 1, err);
    }
    if (cx_failed(status))
        cx_mmr_close(*out);
    return status;
}

/* --- journal_tree.json ------------------------------------------------------------------------ */

static cx_status root_values(runner *r, cx_mmr *mmr, uint64_t n, cx_json_list *object, cx_err *err)
{
    cx_digest root, peaks[64];
    cx_json value;
    size_t count = 0;
    CX_TRY(cx_mmr_root(mmr, n, &root, err));
    CX_TRY(runner_digest(r, &root, &value, err));
    cx_json_list_put(object, CX_STR("root"), value);
    CX_TRY(cx_mmr_peaks(mmr, n, peaks, &count, err));
    CX_TRY(runner_digests(r, peaks, count, &value, err));
    cx_json_list_put(object, CX_STR("peaks"), value);
    return CX_SUCCESS;
}

static cx_status root_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t n;
    cx_mmr *mmr;
    CX_TRY(runner_number(item, "n", &n, err));
    CX_TRY(grow(n, &mmr, err));
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_status status = root_values(r, mmr, n, &object, err);
    cx_mmr_close(mmr);
    CX_TRY(status);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(root_expect, "root", "peaks")

static cx_status path_got(runner *r, const cx_json *item, bool consistency, cx_json *out,
                          cx_err *err)
{
    uint64_t first, size;
    cx_mmr *mmr;
    cx_mmr_path path = {.count = 0};
    CX_TRY(runner_number(item, consistency ? "size1" : "index", &first, err));
    CX_TRY(runner_number(item, consistency ? "size2" : "size", &size, err));
    CX_TRY(grow(size, &mmr, err));
    cx_status status = consistency ? cx_mmr_consistency(mmr, first, size, &path, err)
                                   : cx_mmr_inclusion(mmr, first, size, &path, err);
    cx_mmr_close(mmr);
    CX_TRY(status);
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_json value;
    CX_TRY(runner_digests(r, path.hashes, path.count, &value, err));
    cx_json_list_put(&object, CX_STR("path"), value);
    return cx_json_list_end_object(&object, out, err);
}

static cx_status inclusion_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    return path_got(r, item, false, out, err);
}

static cx_status consistency_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    return path_got(r, item, true, out, err);
}

RUNNER_EXPECTS(path_expect, "path")

static cx_status all_paths(cx_mmr *mmr, uint64_t max, cx_digest *out_inclusion,
                           cx_digest *out_consistency, cx_err *err)
{
    cx_sha256 inclusion, consistency;
    cx_mmr_path path;
    cx_sha256_init(&inclusion);
    cx_sha256_init(&consistency);
    for (uint64_t n = 1; n <= max; n++)
        for (uint64_t m = 0; m < n; m++) {
            CX_TRY(cx_mmr_inclusion(mmr, m, n, &path, err));
            cx_sha256_add(&inclusion, path.hashes, path.count * sizeof path.hashes[0]);
            if (m == 0)
                continue;
            CX_TRY(cx_mmr_consistency(mmr, m, n, &path, err));
            cx_sha256_add(&consistency, path.hashes, path.count * sizeof path.hashes[0]);
        }
    *out_inclusion = cx_sha256_end(&inclusion);
    *out_consistency = cx_sha256_end(&consistency);
    return CX_SUCCESS;
}

static cx_status exhaustive_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t max;
    cx_mmr *mmr;
    cx_digest inclusion, consistency;
    cx_json value;
    CX_TRY(runner_number(item, "max_n", &max, err));
    CX_TRY(grow(max, &mmr, err));
    cx_status status = all_paths(mmr, max, &inclusion, &consistency, err);
    cx_mmr_close(mmr);
    CX_TRY(status);
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_digest(r, &inclusion, &value, err));
    cx_json_list_put(&object, CX_STR("sha256_inclusion"), value);
    CX_TRY(runner_digest(r, &consistency, &value, err));
    cx_json_list_put(&object, CX_STR("sha256_consistency"), value);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(exhaustive_expect, "sha256_inclusion", "sha256_consistency")

/* "tile/L/N[.p/W] sha256": the hash of that tile of the tree. */
static cx_status tile_of(runner *r, cx_mmr *mmr, uint64_t size, cx_str name, cx_json_list *object,
                         cx_err *err)
{
    char path[64];
    unsigned level = 0, width = 0;
    unsigned long long index = 0;
    bool entries = cx_str_starts(name, CX_STR("tile/entries/"));
    if (name.size >= sizeof path)
        return CX_SUCCESS;
    memcpy(path, name.data, name.size);
    path[name.size] = 0;
    if (!(entries ? sscanf(path, "tile/entries/%llu", &index) == 1
                  : sscanf(path, "tile/%u/%llu", &level, &index) == 2))
        return CX_SUCCESS;
    cx_buf tile;
    cx_buf_init(&tile, cx_alloc_default());
    cx_status status =
        entries ? cx_tile_entries(runner_file.scheme, mmr, size, index, &tile, &width, err)
                : cx_tile_hashes(runner_file.scheme, mmr, size, level, index, &tile, &width, err);
    cx_json value;
    if (!cx_failed(status))
        status = runner_sha256(r, cx_buf_bytes(&tile), &value, err);
    if (!cx_failed(status))
        cx_json_list_put(object, name, value);
    cx_buf_done(&tile);
    return status;
}

static cx_status tiles_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t size;
    cx_mmr *mmr;
    CX_TRY(runner_number(item, "tree_size", &size, err));
    CX_TRY(grow(size, &mmr, err));
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_status status = CX_SUCCESS;
    for (uint32_t i = 0; i < item->count && !cx_failed(status); i++)
        status = tile_of(r, mmr, size, cx_json_text(&item->members[i].name), &object, err);
    cx_mmr_close(mmr);
    CX_TRY(status);
    return cx_json_list_end_object(&object, out, err);
}

static cx_status tiles_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    for (uint32_t i = 0; i < item->count; i++)
        if (cx_str_starts(cx_json_text(&item->members[i].name), CX_STR("tile/")))
            cx_json_list_put(&object, cx_json_text(&item->members[i].name), item->members[i].value);
    return cx_json_list_end_object(&object, out, err);
}

/* Roots for the classic inputs as data of level 0: {"inputs": [hex], "roots": [n = 0, 1, ..]}. */
static cx_status classic_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *inputs;
    cx_digest nodes[64];
    cx_json_list roots = cx_json_list_begin(&r->arena);
    CX_TRY(runner_member(item, "inputs", CX_JSON_ARRAY, &inputs, err));
    if (inputs->count > 64)
        return cx_fail(err, CX_E_LIMIT, "more than 64 inputs");
    for (uint32_t n = 0; n <= inputs->count; n++) {
        cx_json value;
        size_t heights[64], count = 0;
        for (uint32_t i = 0; i < n; i++) {
            cx_bytes data;
            CX_TRY(runner_bytes(r, &inputs->items[i], "inputs", &data, err));
            uint8_t *prefixed = cx_arena_push(&r->arena, data.size + 1, 1);
            if (prefixed == NULL)
                return cx_fail_nomem(err);
            prefixed[0] = 0;
            if (data.size != 0)
                memcpy(prefixed + 1, data.data, data.size);
            nodes[count] = cx_digest_of(cx_bytes_from(prefixed, data.size + 1));
            heights[count++] = 0;
            while (count > 1 && heights[count - 1] == heights[count - 2]) {
                nodes[count - 2] =
                    cx_scheme_node(CX_SCHEME_CORTEX_1, &nodes[count - 2], &nodes[count - 1]);
                heights[count-- - 2]++;
            }
        }
        for (; count > 1; count--)
            nodes[count - 2] =
                cx_scheme_bag(CX_SCHEME_CORTEX_1, &nodes[count - 2], &nodes[count - 1]);
        cx_digest root = cx_scheme_journal_root(CX_SCHEME_CORTEX_1, n, &nodes[0]);
        CX_TRY(runner_digest(r, &root, &value, err));
        cx_json_list_add(&roots, value);
    }
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_json list;
    CX_TRY(cx_json_list_end_array(&roots, &list, err));
    cx_json_list_put(&object, CX_STR("roots"), list);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(classic_expect, "roots")

/* --- anchors.json, mmr.json ------------------------------------------------------------------- */

static cx_status anchors_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *asked;
    cx_json_list roots = cx_json_list_begin(&r->arena), object = cx_json_list_begin(&r->arena);
    cx_json value;
    CX_TRY(runner_member(item, "journal_root", CX_JSON_OBJECT, &asked, err));
    for (uint32_t i = 0; i < asked->count; i++) {
        cx_str name = cx_json_text(&asked->members[i].name);
        uint64_t n = 0;
        cx_mmr *mmr;
        cx_digest root;
        for (size_t c = 0; c < name.size && n < 10000000; c++)
            n = n * 10 + (uint64_t)(name.data[c] - '0');
        CX_TRY(grow(n, &mmr, err));
        cx_status status = cx_mmr_root(mmr, n, &root, err);
        cx_mmr_close(mmr);
        CX_TRY(status);
        CX_TRY(runner_digest(r, &root, &value, err));
        cx_json_list_put(&roots, name, value);
    }
    CX_TRY(cx_json_list_end_object(&roots, &value, err));
    cx_json_list_put(&object, CX_STR("journal_root"), value);
    cx_digest empty = cx_scheme_smt_empty(runner_file.scheme, 0);
    cx_digest journal = cx_scheme_journal_root(runner_file.scheme, 0, NULL);
    cx_digest fresh = cx_scheme_overall(runner_file.scheme, &journal, &empty, &empty);
    CX_TRY(runner_digest(r, &empty, &value, err));
    cx_json_list_put(&object, CX_STR("smt_empty"), value);
    CX_TRY(runner_digest(r, &fresh, &value, err));
    cx_json_list_put(&object, CX_STR("overall_fresh"), value);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(anchors_expect, "journal_root", "smt_empty", "overall_fresh")

static cx_status overall_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_digest journal, edges, memories;
    cx_json value;
    CX_TRY(runner_digest_of(r, item, "journal", &journal, err));
    CX_TRY(runner_digest_of(r, item, "edges", &edges, err));
    CX_TRY(runner_digest_of(r, item, "memories", &memories, err));
    cx_digest overall = cx_scheme_overall(runner_file.scheme, &journal, &edges, &memories);
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_digest(r, &overall, &value, err));
    cx_json_list_put(&object, CX_STR("overall"), value);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(overall_expect, "overall")

static cx_status position_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t n, first = 0;
    cx_mmr *mmr;
    cx_digest root = {{0}}, peaks[64];
    size_t count = 0;
    cx_json value, hash;
    CX_TRY(runner_number(item, "n", &n, err));
    CX_TRY(grow(n, &mmr, err));
    cx_status status = cx_mmr_root(mmr, n, &root, err);
    if (!cx_failed(status))
        status = cx_mmr_peaks(mmr, n, peaks, &count, err);
    cx_mmr_close(mmr);
    CX_TRY(status);
    cx_json_list list = cx_json_list_begin(&r->arena), object = cx_json_list_begin(&r->arena);
    for (size_t k = 0; k < count; k++) {
        cx_json_list peak = cx_json_list_begin(&r->arena);
        /* A peak is the last node of its perfect tree. */
        first += UINT64_C(1) << (63 - __builtin_clzll(n - first));
        CX_TRY(runner_digest(r, &peaks[k], &hash, err));
        cx_json_list_put(&peak, CX_STR("hash"), hash);
        cx_json_list_put(&peak, CX_STR("pos"),
                         cx_json_make_uint(&r->arena, cx_mmr_positions(first)));
        CX_TRY(cx_json_list_end_object(&peak, &value, err));
        cx_json_list_add(&list, value);
    }
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_json_list_put(&object, CX_STR("peaks"), value);
    CX_TRY(runner_digest(r, &root, &value, err));
    cx_json_list_put(&object, CX_STR("root"), value);
    cx_json_list_put(&object, CX_STR("size"), cx_json_make_uint(&r->arena, cx_mmr_positions(n)));
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(position_expect, "peaks", "root", "size")

/* --- containers of journal proofs ------------------------------------------------------------- */

/* Decoded, encoded again, and led to the root the file names. */
static cx_status inclusion_container_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes bytes;
    cx_inclusion proof;
    cx_json value;
    cx_buf again;
    CX_TRY(runner_bytes(r, item, "cbor", &bytes, err));
    CX_TRY(cx_inclusion_decode(bytes, &r->arena, &proof, err));
    cx_buf_init(&again, cx_alloc_default());
    cx_inclusion_encode(&proof, &again);
    cx_status status = runner_hex(r, cx_buf_bytes(&again), &value, err);
    cx_buf_done(&again);
    CX_TRY(status);
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_json_list_put(&object, CX_STR("cbor"), value);
    cx_json_list_put(&object, CX_STR("index"), cx_json_make_uint(&r->arena, proof.index));
    cx_json_list_put(&object, CX_STR("size"), cx_json_make_uint(&r->arena, proof.tree_size));
    CX_TRY(runner_digests(r, proof.path, proof.path_count, &value, err));
    cx_json_list_put(&object, CX_STR("path"), value);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(inclusion_container_expect, "cbor", "index", "size", "path")

static cx_status consistency_container_got(runner *r, const cx_json *item, cx_json *out,
                                           cx_err *err)
{
    cx_bytes bytes;
    cx_consistency proof;
    cx_json value;
    cx_buf again;
    CX_TRY(runner_bytes(r, item, "cbor", &bytes, err));
    CX_TRY(cx_consistency_decode(bytes, &r->arena, &proof, err));
    cx_buf_init(&again, cx_alloc_default());
    cx_consistency_encode(&proof, &again);
    cx_status status = runner_hex(r, cx_buf_bytes(&again), &value, err);
    cx_buf_done(&again);
    CX_TRY(status);
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_json_list_put(&object, CX_STR("cbor"), value);
    cx_json_list_put(&object, CX_STR("size1"), cx_json_make_uint(&r->arena, proof.size1));
    cx_json_list_put(&object, CX_STR("size2"), cx_json_make_uint(&r->arena, proof.size2));
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(consistency_container_expect, "cbor", "size1", "size2")

/* --- files ------------------------------------------------------------------------------------ */

static const runner_kind tree_kinds[] = {{"/roots", root_got, root_expect},
                                         {"/inclusion", inclusion_got, path_expect},
                                         {"/consistency", consistency_got, path_expect}};
static const runner_kind proof_kinds[] = {
    {"/inclusion", inclusion_container_got, inclusion_container_expect},
    {"/journal_proofs", inclusion_container_got, inclusion_container_expect},
    {"/consistency", consistency_container_got, consistency_container_expect}};

static void run_kinds(runner *r, const runner_kind *kinds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        runner_run_list(r, &kinds[i], runner_file.path, runner_file.root);
}

void runner_ledger_trees(runner *r, cx_str name)
{
    static const runner_kind exhaustive = {"", exhaustive_got, exhaustive_expect};
    static const runner_kind tiles = {"", tiles_got, tiles_expect};
    static const runner_kind classic = {"", classic_got, classic_expect};
    static const runner_kind anchors = {"", anchors_got, anchors_expect};
    static const runner_kind overall = {"/overall_examples", overall_got, overall_expect};
    static const runner_kind positions = {"/cases", position_got, position_expect};
    const cx_json *root = runner_file.root;
    if (cx_str_is(name, "journal_tree.json")) {
        run_kinds(r, tree_kinds, CX_COUNT_OF(tree_kinds));
        runner_run_one(r, &exhaustive, "/exhaustive");
        runner_run_one(r, &tiles, "/tiles");
        runner_run_one(r, &classic, "/rfc6962_reference");
    } else if (cx_str_is(name, "anchors.json")) {
        runner_run_one(r, &anchors, "");
        runner_run_list(r, &overall, runner_file.path, root);
    } else if (cx_str_is(name, "mmr.json")) {
        runner_run_list(r, &positions, runner_file.path, root);
    }
}

void runner_containers(runner *r)
{
    run_kinds(r, proof_kinds, CX_COUNT_OF(proof_kinds));
}

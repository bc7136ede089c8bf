/*
 * ledger_trees.c - journal trees, state trees, and proofs about the journal.
 */
#include <stdio.h>

#include "ledger/export.h"
#include "tests/runner/ledger.h"

/* The rules by which the vectors make their leaves and keys. */
static cx_digest numbered(const char *name, uint64_t i)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%s%llu", name, (unsigned long long)i);
    return cx_digest_of(cx_bytes_from(text, (size_t)size));
}

static CX_RESULT grow(uint64_t size, cx_mmr **out, cx_err *err)
{
    if (size > 1000000)
        return cx_fail(err, CX_E_LIMIT, "a tree of more than a million leaves");
    CX_TRY(cx_mmr_open(runner_file.scheme, cx_alloc_default(), out, err));
    cx_status status = CX_SUCCESS;
    for (uint64_t i = 0; i < size && !cx_failed(status); i++) {
        cx_digest leaf = numbered("matrix-mmr-leaf-", i);
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

/* --- anchors.json, mmr.json
 * ------------------------------------------------------------------------ */

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

static CX_RESULT digest_member(runner *r, const cx_json *item, const char *name, cx_digest *out,
                               cx_err *err)
{
    cx_bytes bytes;
    CX_TRY(runner_bytes(r, item, name, &bytes, err));
    if (bytes.size != sizeof out->bytes)
        return cx_fail(err, CX_E_FORMAT, "'%s' of the case is not a digest", name);
    memcpy(out->bytes, bytes.data, bytes.size);
    return CX_SUCCESS;
}

static cx_status overall_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_digest journal, edges, memories;
    cx_json value;
    CX_TRY(digest_member(r, item, "journal", &journal, err));
    CX_TRY(digest_member(r, item, "edges", &edges, err));
    CX_TRY(digest_member(r, item, "memories", &memories, err));
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

/* --- smt.json
 * ----------------------------------------------------------------------------------------- */

static CX_RESULT step_value(runner *r, const cx_json *step, cx_digest *out, cx_err *err)
{
    cx_bytes value;
    CX_TRY(runner_bytes(r, step, "value", &value, err));
    *out = cx_scheme_value(runner_file.scheme, value);
    return CX_SUCCESS;
}

/* The tree as it is behind step `until` (UINT64_MAX: all steps that are numbered up to it). */
static CX_RESULT tree_after(runner *r, uint64_t until, cx_smt **out, cx_err *err)
{
    const cx_json *steps;
    CX_TRY(runner_member(runner_file.root, "steps", CX_JSON_ARRAY, &steps, err));
    CX_TRY(cx_smt_open(runner_file.scheme, cx_alloc_default(), out, err));
    cx_status status = CX_SUCCESS;
    for (uint32_t i = 0; i < steps->count && !cx_failed(status); i++) {
        uint64_t number = 0;
        cx_digest key, value;
        CX_GO(status, runner_number(&steps->items[i], "step", &number, err));
        if (number > until)
            break;
        CX_GO(status, digest_member(r, &steps->items[i], "key_hash", &key, err));
        CX_GO(status, step_value(r, &steps->items[i], &value, err));
        CX_GO(status, cx_smt_put(*out, &key, &value, err));
    }
done:
    if (cx_failed(status))
        cx_smt_close(*out);
    return status;
}

static cx_status smt_step_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t number;
    cx_smt *smt;
    cx_digest root, value_hash;
    cx_json value;
    CX_TRY(runner_number(item, "step", &number, err));
    CX_TRY(tree_after(r, number, &smt, err));
    cx_status status = cx_smt_root(smt, &root, err);
    cx_smt_close(smt);
    CX_TRY(status);
    CX_TRY(step_value(r, item, &value_hash, err));
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_digest(r, &root, &value, err));
    cx_json_list_put(&object, CX_STR("root"), value);
    CX_TRY(runner_digest(r, &value_hash, &value, err));
    cx_json_list_put(&object, CX_STR("value_hash"), value);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(smt_step_expect, "root", "value_hash")

static cx_status add_path(runner *r, const cx_smt_path *path, cx_json_list *object, cx_err *err)
{
    cx_json value;
    cx_digest fold = cx_smt_fold(runner_file.scheme, path);
    cx_digest all =
        cx_digest_of(cx_bytes_from(path->siblings, path->sibling_count * sizeof *path->siblings));
    cx_json_list_put(object, CX_STR("member"), cx_json_make_bool(path->member));
    CX_TRY(runner_digest(r, &fold, &value, err));
    cx_json_list_put(object, CX_STR("root"), value);
    if (runner_file.scheme == CX_SCHEME_MATRIX_1) {
        CX_TRY(runner_digest(r, &all, &value, err));
        cx_json_list_put(object, CX_STR("sha256_of_256_siblings_concat"), value);
        return CX_SUCCESS;
    }
    CX_TRY(runner_digests(r, path->siblings, path->sibling_count, &value, err));
    cx_json_list_put(object, CX_STR("siblings"), value);
    const cx_digest other[2] = {path->other_key, path->other_value};
    if (path->has_other)
        CX_TRY(runner_digests(r, other, 2, &value, err));
    else
        value = cx_json_make_null();
    cx_json_list_put(object, CX_STR("other"), value);
    return CX_SUCCESS;
}

static cx_status smt_proof_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t step;
    cx_smt *smt;
    cx_digest key;
    const cx_smt_path *path;
    CX_TRY(runner_number(item, "after_step", &step, err));
    CX_TRY(digest_member(r, item, "key_hash", &key, err));
    CX_TRY(tree_after(r, step, &smt, err));
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_status status = cx_smt_prove(smt, &key, 1, &r->arena, &path, err);
    if (!cx_failed(status))
        status = add_path(r, path, &object, err);
    cx_smt_close(smt);
    CX_TRY(status);
    return cx_json_list_end_object(&object, out, err);
}

static cx_status smt_proof_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const cortex[] = {"member", "root", "siblings", "other"};
    static const char *const matrix[] = {"member", "root", "sha256_of_256_siblings_concat"};
    return runner_file.scheme == CX_SCHEME_CORTEX_1 ? runner_pick(r, item, cortex, 4, out, err)
                                                    : runner_pick(r, item, matrix, 3, out, err);
}

/* Proofs that do not say behind which step they belong are about trees the file does not tell. */
static void run_smt_proofs(runner *r)
{
    const cx_json *proofs = cx_json_get_typed(runner_file.root, CX_STR("proofs"), CX_JSON_ARRAY);
    const runner_kind kind = {"", smt_proof_got, smt_proof_expect};
    for (uint32_t i = 0; proofs != NULL && i < proofs->count; i++)
        if (cx_json_get(&proofs->items[i], CX_STR("after_step")) != NULL)
            runner_run_nth(r, &kind, "/proofs", i);
}

static cx_status edge_tree_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t n;
    cx_smt *smt;
    cx_digest root;
    cx_json value;
    CX_TRY(runner_number(item, "n", &n, err));
    CX_TRY(cx_smt_open(runner_file.scheme, cx_alloc_default(), &smt, err));
    cx_status status = CX_SUCCESS;
    for (uint64_t i = 0; i < n && !cx_failed(status); i++) {
        char text[32];
        cx_digest src = numbered("matrix-smt-id-", i), dst = numbered("matrix-smt-id-", i + 1);
        int size = snprintf(text, sizeof text, "edge-%llu", (unsigned long long)i);
        cx_digest key =
            cx_scheme_edge_key(runner_file.scheme, src.bytes, (uint8_t)(1 + i % 14), dst.bytes);
        cx_digest bytes = cx_scheme_value(runner_file.scheme, cx_bytes_from(text, (size_t)size));
        status = cx_smt_put(smt, &key, &bytes, err);
    }
    if (!cx_failed(status))
        status = cx_smt_root(smt, &root, err);
    cx_smt_close(smt);
    CX_TRY(status);
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_digest(r, &root, &value, err));
    cx_json_list_put(&object, CX_STR("root"), value);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(edge_tree_expect, "root")

/* --- containers of journal proofs
 * ------------------------------------------------------------------------- */

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

/* --- files
 * ------------------------------------------------------------------------------------------------
 */

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
    static const runner_kind steps = {"/steps", smt_step_got, smt_step_expect};
    static const runner_kind edges = {"/edge_tree_roots", edge_tree_got, edge_tree_expect};
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
    } else if (cx_str_is(name, "smt.json")) {
        runner_run_list(r, &steps, runner_file.path, root);
        run_smt_proofs(r);
        runner_run_list(r, &edges, runner_file.path, root);
    } else if (cx_str_is(name, "journal_proofs.json") || cx_str_is(name, "scenario.json")) {
        run_kinds(r, proof_kinds, CX_COUNT_OF(proof_kinds));
    }
}

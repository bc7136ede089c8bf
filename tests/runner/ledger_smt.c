/*
 * ledger_smt.c - state trees: roots after each step, the nodes that the original stored, proofs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/runner/ledger.h"

/* --- the tree as a list of nodes, by definition ----------------------------------------------- */

/*
 * The original stored every node above a leaf under idx/smt/<namespace>/n/<depth><path>; the
 * other scheme counts branches, those above at least two keys.
 */

#define DEPTH 256

typedef struct stored_node {
    unsigned depth;
    uint8_t path[32]; /* the first `depth` bits of the keys below it, then zeros */
    cx_digest hash;
} stored_node;

typedef struct stored_tree {
    cx_smt_pair *pairs; /* by key, each once */
    size_t count;
    stored_node *nodes;
    size_t node_count;
    size_t branches;
} stored_tree;

static bool bit_of(const cx_digest *key, unsigned depth)
{
    return (key->bytes[depth / 8] >> (7 - depth % 8) & 1) != 0;
}

/* The subtree of pairs from..to at `depth`. */
static cx_digest subtree(stored_tree *tree, unsigned depth, size_t from, size_t to)
{
    if (from == to)
        return cx_scheme_smt_empty(CX_SCHEME_MATRIX_1, depth);
    tree->branches += to - from > 1;
    stored_node node = {.depth = depth};
    memcpy(node.path, tree->pairs[from].key.bytes, depth / 8);
    if (depth % 8 != 0)
        node.path[depth / 8] =
            (uint8_t)(tree->pairs[from].key.bytes[depth / 8] & 0xffu << (8 - depth % 8));
    if (depth == DEPTH) {
        node.hash = cx_scheme_smt_leaf(CX_SCHEME_MATRIX_1, &tree->pairs[from].key,
                                       &tree->pairs[from].value);
    } else {
        size_t middle = from;
        while (middle < to && !bit_of(&tree->pairs[middle].key, depth))
            middle++;
        cx_digest left = subtree(tree, depth + 1, from, middle);
        cx_digest right = subtree(tree, depth + 1, middle, to);
        node.hash = cx_scheme_smt_node(CX_SCHEME_MATRIX_1, &left, &right);
    }
    tree->nodes[tree->node_count++] = node;
    return node.hash;
}

static int by_key(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(cx_digest));
}

static int by_place(const void *a, const void *b)
{
    const stored_node *x = a, *y = b;
    return x->depth != y->depth ? (x->depth > y->depth) - (x->depth < y->depth)
                                : memcmp(x->path, y->path, sizeof x->path);
}

/* Sorts the pairs; of a key's values the last one counts. */
static CX_RESULT store(runner *r, cx_smt_pair *pairs, size_t count, stored_tree *out, cx_err *err)
{
    *out = (stored_tree){.pairs = pairs};
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < out->count && !cx_digest_eq(&pairs[k].key, &pairs[i].key))
            k++;
        pairs[k] = pairs[i];
        out->count += k == out->count;
    }
    qsort(pairs, out->count, sizeof *pairs, by_key);
    out->nodes = CX_ARENA_ARRAY(&r->arena, stored_node, out->count * (DEPTH + 1) + 1);
    if (out->nodes == NULL)
        return cx_fail_nomem(err);
    (void)subtree(out, 0, 0, out->count);
    qsort(out->nodes, out->node_count, sizeof *out->nodes, by_place);
    return CX_SUCCESS;
}

/* SHA-256 over key and value of each node, by key. */
static cx_digest digest_of_nodes(const stored_tree *tree)
{
    static const char prefix[] = "idx/smt/memories/n/";
    cx_sha256 hash;
    cx_sha256_init(&hash);
    for (size_t i = 0; i < tree->node_count; i++) {
        const stored_node *node = &tree->nodes[i];
        const uint8_t depth[2] = {(uint8_t)(node->depth >> 8), (uint8_t)node->depth};
        cx_sha256_add(&hash, prefix, sizeof prefix - 1);
        cx_sha256_add(&hash, depth, sizeof depth);
        cx_sha256_add(&hash, node->path, sizeof node->path);
        cx_sha256_add(&hash, node->hash.bytes, sizeof node->hash.bytes);
    }
    return cx_sha256_end(&hash);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* An empty value removes its key; what is absent has a value of zeros (ledger.md §7). */
static CX_RESULT step_value(runner *r, const cx_json *step, cx_digest *out, bool *out_removes,
                            cx_err *err)
{
    cx_bytes value;
    CX_TRY(runner_bytes(r, step, "value", &value, err));
    *out_removes = value.size == 0;
    memset(out, 0, sizeof *out);
    if (!*out_removes)
        *out = cx_scheme_value(runner_file.scheme, value);
    return CX_SUCCESS;
}

/* The tree as it is after step `until`: all steps before the first with a greater number. */
static CX_RESULT tree_after(runner *r, int64_t until, cx_smt **out, cx_err *err)
{
    const cx_json *steps;
    CX_TRY(runner_member(runner_file.root, "steps", CX_JSON_ARRAY, &steps, err));
    CX_TRY(cx_smt_open(runner_file.scheme, cx_alloc_default(), out, err));
    cx_status status = CX_SUCCESS;
    for (uint32_t i = 0; i < steps->count && !cx_failed(status); i++) {
        int64_t number = 0;
        cx_digest key, value;
        CX_TRY_GOTO(status, runner_signed(&steps->items[i], "step", &number, err));
        if (number > until)
            break;
        CX_TRY_GOTO(status, runner_digest_of(r, &steps->items[i], "key_hash", &key, err));
        bool removes = false, was;
        CX_TRY_GOTO(status, step_value(r, &steps->items[i], &value, &removes, err));
        if (removes)
            CX_TRY_GOTO(status, cx_smt_remove(*out, &key, &was, err));
        else
            CX_TRY_GOTO(status, cx_smt_put(*out, &key, &value, err));
    }
done:
    if (cx_failed(status))
        cx_smt_close(*out);
    return status;
}

/* Drops the pairs with the key of pairs[count]; the new count. */
static size_t remove_pair(cx_smt_pair *pairs, size_t count)
{
    const cx_digest key = pairs[count].key;
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (!cx_digest_eq(&pairs[i].key, &key))
            pairs[left++] = pairs[i];
    return left;
}

/* What would be stored after that step. */
static CX_RESULT put_stored(runner *r, cx_json_list *object, int64_t until, cx_err *err)
{
    const cx_json *steps;
    stored_tree tree;
    size_t count = 0;
    CX_TRY(runner_member(runner_file.root, "steps", CX_JSON_ARRAY, &steps, err));
    cx_smt_pair *pairs = CX_ARENA_ARRAY(&r->arena, cx_smt_pair, (size_t)steps->count + 1);
    if (pairs == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < steps->count; i++) {
        int64_t number = 0;
        CX_TRY(runner_signed(&steps->items[i], "step", &number, err));
        if (number > until)
            break;
        CX_TRY(runner_digest_of(r, &steps->items[i], "key_hash", &pairs[count].key, err));
        bool removes = false;
        CX_TRY(step_value(r, &steps->items[i], &pairs[count].value, &removes, err));
        count = removes ? remove_pair(pairs, count) : count + 1;
    }
    CX_TRY(store(r, pairs, count, &tree, err));
    if (runner_file.scheme == CX_SCHEME_CORTEX_1) {
        runner_put_uint(r, object, "keys", tree.count);
        runner_put_uint(r, object, "branch_nodes", tree.branches);
        return CX_SUCCESS;
    }
    cx_digest digest = digest_of_nodes(&tree);
    runner_put_uint(r, object, "stored_nodes", tree.node_count);
    return runner_put_digest(r, object, "nodes_digest", &digest, err);
}

static cx_status smt_step_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    int64_t number;
    cx_smt *smt;
    cx_digest root, value_hash;
    cx_json value;
    CX_TRY(runner_signed(item, "step", &number, err));
    CX_TRY(tree_after(r, number, &smt, err));
    cx_status status = cx_smt_root(smt, &root, err);
    cx_smt_close(smt);
    CX_TRY(status);
    bool removes;
    CX_TRY(step_value(r, item, &value_hash, &removes, err));
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_digest(r, &root, &value, err));
    cx_json_list_put(&object, CX_STR("root"), value);
    CX_TRY(runner_digest(r, &value_hash, &value, err));
    cx_json_list_put(&object, CX_STR("value_hash"), value);
    CX_TRY(put_stored(r, &object, number, err));
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(smt_step_expect, "root", "value_hash", "keys", "branch_nodes", "stored_nodes",
               "nodes_digest")

/* Of an absent key: zeros, or null. */
static CX_RESULT put_value_hash(runner *r, const cx_smt_path *path, cx_json_list *object,
                                cx_err *err)
{
    const cx_digest zeros = {{0}};
    if (path->member || runner_file.scheme == CX_SCHEME_MATRIX_1)
        return runner_put_digest(r, object, "value_hash", path->member ? &path->value : &zeros,
                                 err);
    cx_json_list_put(object, CX_STR("value_hash"), cx_json_make_null());
    return CX_SUCCESS;
}

cx_status runner_non_default(runner *r, const cx_smt_path *path, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < path->sibling_count; i++) {
        cx_json_list item = cx_json_list_begin(&r->arena);
        cx_digest empty = cx_scheme_smt_empty(CX_SCHEME_MATRIX_1, (unsigned)i + 1);
        cx_json value;
        if (cx_digest_eq(&empty, &path->siblings[i]))
            continue;
        runner_put_uint(r, &item, "index", i);
        CX_TRY(runner_put_digest(r, &item, "hash", &path->siblings[i], err));
        CX_TRY(cx_json_list_end_object(&item, &value, err));
        cx_json_list_add(&list, value);
    }
    return cx_json_list_end_array(&list, out, err);
}

static CX_RESULT put_non_default(runner *r, const cx_smt_path *path, cx_json_list *object,
                                 cx_err *err)
{
    cx_json value;
    CX_TRY(runner_non_default(r, path, &value, err));
    cx_json_list_put(object, CX_STR("non_default_siblings"), value);
    return CX_SUCCESS;
}

static cx_status add_path(runner *r, const cx_smt_path *path, cx_json_list *object, cx_err *err)
{
    cx_json value;
    cx_digest fold = cx_smt_fold(runner_file.scheme, path);
    cx_digest all =
        cx_digest_of(cx_bytes_from(path->siblings, path->sibling_count * sizeof *path->siblings));
    cx_json_list_put(object, CX_STR("member"), cx_json_make_bool(path->member));
    CX_TRY(runner_digest(r, &fold, &value, err));
    cx_json_list_put(object, CX_STR("root"), value);
    CX_TRY(put_value_hash(r, path, object, err));
    if (runner_file.scheme == CX_SCHEME_MATRIX_1) {
        CX_TRY(put_non_default(r, path, object, err));
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
    int64_t step;
    cx_smt *smt;
    cx_digest key;
    const cx_smt_path *path;
    CX_TRY(runner_signed(item, "after_step", &step, err));
    CX_TRY(runner_digest_of(r, item, "key_hash", &key, err));
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
    static const char *const names[] = {"member",
                                        "root",
                                        "siblings",
                                        "other",
                                        "value_hash",
                                        "sha256_of_256_siblings_concat",
                                        "non_default_siblings"};
    return runner_pick(r, item, names, CX_COUNT_OF(names), out, err);
}

/* The tree is not told: the root that the proof leads to. */
static cx_status fold_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    const cx_json *siblings;
    cx_smt_path path = {.member = true};
    CX_TRY(runner_digest_of(r, item, "key_hash", &path.key, err));
    CX_TRY(runner_digest_of(r, item, "value_hash", &path.value, err));
    CX_TRY(runner_member(item, "siblings", CX_JSON_ARRAY, &siblings, err));
    cx_digest *hashes = CX_ARENA_ARRAY(&r->arena, cx_digest, (size_t)siblings->count + 1);
    if (hashes == NULL)
        return cx_fail_nomem(err);
    if (siblings->count > DEPTH)
        return cx_fail(err, CX_E_FORMAT, "more than %d siblings", DEPTH);
    for (uint32_t i = 0; i < siblings->count; i++)
        CX_TRY(runner_digest_of(r, &siblings->items[i], "siblings", &hashes[i], err));
    path.siblings = hashes;
    path.sibling_count = siblings->count;
    cx_digest root = cx_smt_fold(runner_file.scheme, &path);
    CX_TRY(runner_put_digest(r, &object, "root", &root, err));
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(fold_expect, "root")

/* Proofs that do not say after which step they belong are about trees the file does not tell: a
 * member's is folded, of an absent key there is nothing to start from. */
static void run_smt_proofs(runner *r)
{
    const cx_json *proofs = cx_json_get_typed(runner_file.root, CX_STR("proofs"), CX_JSON_ARRAY);
    const runner_kind kind = {"", smt_proof_got, smt_proof_expect};
    const runner_kind fold = {"", fold_got, fold_expect};
    for (uint32_t i = 0; proofs != NULL && i < proofs->count; i++)
        if (cx_json_get(&proofs->items[i], CX_STR("after_step")) != NULL)
            runner_run_nth(r, &kind, "/proofs", i);
        else if (CX_JSON_GET_STR(&proofs->items[i], "value_hash").data != NULL)
            runner_run_nth(r, &fold, "/proofs", i);
}

/* Edge i leads from id i to the next one and has the type 1 + i % 14. */
static void edge_pair(uint64_t i, cx_smt_pair *out)
{
    char text[32];
    cx_digest src = runner_ruled("id_rule", "matrix-smt-id-", i);
    cx_digest dst = runner_ruled("id_rule", "matrix-smt-id-", i + 1);
    int size = snprintf(text, sizeof text, "edge-%llu", (unsigned long long)i);
    out->key = cx_scheme_edge_key(runner_file.scheme, src.bytes, (uint8_t)(1 + i % 14), dst.bytes);
    out->value = cx_scheme_value(runner_file.scheme, cx_bytes_from(text, (size_t)size));
}

static cx_status edge_tree_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t n;
    cx_smt *smt;
    cx_digest root = {{0}};
    stored_tree tree;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_number(item, "n", &n, err));
    if (n > 100000)
        return cx_fail(err, CX_E_LIMIT, "a tree of more than 100,000 edges");
    cx_smt_pair *pairs = CX_ARENA_ARRAY(&r->arena, cx_smt_pair, (size_t)n + 1);
    if (pairs == NULL)
        return cx_fail_nomem(err);
    for (uint64_t i = 0; i <= n; i++)
        edge_pair(i, &pairs[i]);
    const cx_digest first = pairs[n == 0 ? 0 : n - 1].key; /* of the edge put last */
    CX_TRY(cx_smt_open(runner_file.scheme, cx_alloc_default(), &smt, err));
    cx_status status = CX_SUCCESS;
    for (uint64_t i = 0; i < n && !cx_failed(status); i++)
        status = cx_smt_put(smt, &pairs[i].key, &pairs[i].value, err);
    if (!cx_failed(status))
        status = cx_smt_root(smt, &root, err);
    cx_smt_close(smt);
    CX_TRY(status);
    CX_TRY(runner_put_digest(r, &object, "root", &root, err));
    if (runner_file.scheme == CX_SCHEME_MATRIX_1) {
        CX_TRY(store(r, pairs, (size_t)n, &tree, err));
        runner_put_uint(r, &object, "stored_nodes", tree.node_count);
        CX_TRY(runner_put_digest(r, &object, "first_key_hash", &first, err));
    }
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(edge_tree_expect, "root", "stored_nodes", "first_key_hash")

/* --- hashes of keys and of empty subtrees ----------------------------------------------------- */

static cx_status key_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_id from, to;
    uint64_t type;
    cx_digest key;
    cx_json value;
    bool memory = CX_JSON_GET(item, "id") != NULL;
    CX_TRY(runner_id_of(r, item, memory ? "id" : "src", &from, err));
    if (memory) {
        key = cx_scheme_memory_key(runner_file.scheme, from.bytes);
    } else {
        CX_TRY(runner_id_of(r, item, "dst", &to, err));
        CX_TRY(runner_number(item, "type", &type, err));
        key = cx_scheme_edge_key(runner_file.scheme, from.bytes, (uint8_t)type, to.bytes);
    }
    CX_TRY(runner_digest(r, &key, &value, err));
    cx_json_list_put(&object, memory ? CX_STR("memory_key_hash") : CX_STR("edge_key_hash"), value);
    return cx_json_list_end_object(&object, out, err);
}

static cx_status key_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const names[] = {"memory_key_hash", "edge_key_hash"};
    return runner_pick(r, item, names + (CX_JSON_GET(item, "id") == NULL), 1, out, err);
}

/* Item i is the hash of an empty subtree i levels high. */
static cx_status empty_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *list = runner_array(r->root, "/empty_hashes");
    size_t height = list == NULL ? 257 : (size_t)(item - list->items);
    if (height > 256)
        return cx_fail(err, CX_E_FORMAT, "a subtree has at most 256 levels");
    cx_digest hash = cx_scheme_smt_empty(runner_file.scheme, (unsigned)(256 - height));
    return runner_digest(r, &hash, out, err);
}

static cx_status text_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    return runner_string(r, runner_str(item), out, err);
}

/* --- the file --------------------------------------------------------------------------------- */

/* Values of the file as a whole: the empty tree, and all keys of the steps put and taken again. */
static CX_RESULT after_deleting_all(runner *r, cx_digest *out_root, uint64_t *out_count,
                                    cx_err *err)
{
    cx_smt *smt;
    const cx_json *steps;
    CX_TRY(runner_member(runner_file.root, "steps", CX_JSON_ARRAY, &steps, err));
    CX_TRY(tree_after(r, INT64_MAX, &smt, err));
    cx_status status = CX_SUCCESS;
    for (uint32_t i = 0; i < steps->count && !cx_failed(status); i++) {
        cx_digest key;
        bool was;
        CX_TRY_GOTO(status, runner_digest_of(r, &steps->items[i], "key_hash", &key, err));
        CX_TRY_GOTO(status, cx_smt_remove(smt, &key, &was, err));
    }
    *out_count = cx_smt_count(smt) + cx_smt_branches(smt);
    CX_TRY_GOTO(status, cx_smt_root(smt, out_root, err));
done:
    cx_smt_close(smt);
    return status;
}

static void run_whole(runner *r)
{
    cx_digest empty = cx_scheme_smt_empty(runner_file.scheme, 0), root;
    uint64_t count = 0;
    cx_err err = {0};
    runner_value_digest(r, "/empty_root", &empty);
    if (runner_file.scheme == CX_SCHEME_CORTEX_1)
        return;
    cx_status status = after_deleting_all(r, &root, &count, &err);
    if (cx_failed(status)) {
        runner_value(r, "/root_after_deleting_all", status, NULL, &err);
        return;
    }
    runner_value_digest(r, "/root_after_deleting_all", &root);
    runner_value_uint(r, "/nodes_after_deleting_all", count);
    /* The node at depth 3 above the keys that begin with 100. */
    uint8_t key[64] = "idx/smt/memories/n/";
    size_t size = strlen((const char *)key);
    key[size + 1] = 3;
    key[size + 2] = 0x80;
    runner_value_hex(r, "/node_key_example_memories_depth3_path80",
                     cx_bytes_from(key, size + 2 + 32));
}

void runner_ledger_smt(runner *r, cx_str name)
{
    static const runner_kind before = {"/steps", smt_step_got, smt_step_expect};
    static const runner_kind lists[] = {{"/edge_tree_roots", edge_tree_got, edge_tree_expect},
                                        {"/key_hash_examples", key_got, key_expect},
                                        {"/empty_hashes", empty_got, text_expect}};
    if (!cx_str_is(name, "smt.json"))
        return;
    runner_run_list(r, &before, runner_file.path, runner_file.root);
    run_smt_proofs(r);
    for (size_t i = 0; i < CX_COUNT_OF(lists); i++)
        runner_run_list(r, &lists[i], runner_file.path, runner_file.root);
    run_whole(r);
}

/*
 * scheme.c - the hashes of ledger.md §1.1, one function a row of its table.
 *
 * Everything that is hashed by the million (nodes, leaves, branches with an empty side) goes
 * through a message template: prefix and padding are laid out once, the digests of the children are
 * inserted.  The templates and the empty subtrees of both schemes are made on first use and never
 * change.
 */
#include "tree/scheme.h"

#include "base/api.h"

enum { DEPTH_MAX = 256, SCHEME_COUNT = 2 };

#define ENTRY_DOMAIN "matrix.cortex.journal.v1"
#define COMMITMENT_DOMAIN "cortex.payload.v1"
#define MATRIX_TREE "matrix.cortex.snapshot."
#define VALUE_DOMAIN MATRIX_TREE "smt.value.v1"

typedef struct templates {
    cx_digest_template level0; /* cortex-1 alone */
    cx_digest_template node;
    cx_digest_template bag;
    cx_digest_template smt_leaf;
    cx_digest_template smt_node;
} templates;

static struct {
    pthread_once_t once;
    templates of[SCHEME_COUNT];
    /* Of a subtree whose root stands at that depth. */
    cx_digest empty[SCHEME_COUNT][DEPTH_MAX + 1];
    /* matrix-1: the branch whose left child at that depth is empty.  66 constant bytes come first,
     * so one block of two is hashed already. */
    cx_digest_template left_empty[DEPTH_MAX + 1];
} table = {.once = PTHREAD_ONCE_INIT};

static void make_templates(templates *m, cx_str level0, cx_str node, cx_str bag, cx_str smt_leaf,
                           cx_str smt_node)
{
    const cx_bytes nothing = {NULL, 0};
    cx_digest_template_init(&m->level0, cx_str_bytes(level0), 32, nothing);
    cx_digest_template_init(&m->node, cx_str_bytes(node), 64, nothing);
    cx_digest_template_init(&m->bag, cx_str_bytes(bag), 64, nothing);
    cx_digest_template_init(&m->smt_leaf, cx_str_bytes(smt_leaf), 64, nothing);
    cx_digest_template_init(&m->smt_node, cx_str_bytes(smt_node), 64, nothing);
}

static void make_matrix_empties(void)
{
    static const char prefix[] = MATRIX_TREE "smt.node.v1";
    const templates *m = &table.of[CX_SCHEME_MATRIX_1];
    cx_digest *empty = table.empty[CX_SCHEME_MATRIX_1];
    uint8_t before[sizeof prefix - 1 + sizeof(cx_digest)];
    memcpy(before, prefix, sizeof prefix - 1);
    empty[DEPTH_MAX] = cx_digest_of(cx_str_bytes(CX_STR(MATRIX_TREE "smt.empty.v1")));
    for (size_t depth = DEPTH_MAX; depth > 0; depth--) {
        cx_digest pair[2] = {empty[depth], empty[depth]};
        cx_digest_template_many(&m->smt_node, pair[0].bytes, &empty[depth - 1], 1);
        memcpy(before + sizeof prefix - 1, empty[depth].bytes, sizeof(cx_digest));
        cx_digest_template_init(&table.left_empty[depth], cx_bytes_from(before, sizeof before), 32,
                                cx_bytes_from(NULL, 0));
    }
}

/* cortex-1's empty subtrees are zeros, as the table begins. */
static void make_table(void)
{
    const cx_str leaf = cx_str_from("\x00", 1), node = cx_str_from("\x01", 1);
    make_templates(&table.of[CX_SCHEME_CORTEX_1], leaf, node, node, leaf, node);
    make_templates(&table.of[CX_SCHEME_MATRIX_1], CX_STR(""), CX_STR(MATRIX_TREE "mmr.node.v1"),
                   CX_STR(MATRIX_TREE "mmr.bag.v1"), CX_STR(MATRIX_TREE "smt.leaf.v1"),
                   CX_STR(MATRIX_TREE "smt.node.v1"));
    make_matrix_empties();
}

static const templates *templates_of(cx_scheme scheme)
{
    CX_ASSERT(pthread_once(&table.once, make_table) == 0);
    return &table.of[scheme];
}

static cx_digest pair_of(const cx_digest_template *template, const cx_digest *left,
                         const cx_digest *right)
{
    cx_digest pair[2] = {*left, *right}, out;
    cx_digest_template_many(template, pair[0].bytes, &out, 1);
    return out;
}

/* H(domain ‖ data). */
static cx_digest domain_hash(cx_str domain, cx_bytes data)
{
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain.data, domain.size);
    cx_sha256_add(&hash, data.data, data.size);
    return cx_sha256_end(&hash);
}

static void store_u64(uint8_t out[8], uint64_t value)
{
    for (size_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (56 - 8 * i));
}

/* --- names ----------------------------------------------------------------------------------- */

cx_str cx_scheme_name(cx_scheme scheme)
{
    return scheme == CX_SCHEME_CORTEX_1 ? CX_STR("cortex-1") : CX_STR("matrix-1");
}

bool cx_scheme_parse(cx_str name, cx_scheme *out)
{
    bool cortex = cx_str_is(name, "cortex-1");
    if (!cortex && !cx_str_is(name, "matrix-1"))
        return false;
    *out = cortex ? CX_SCHEME_CORTEX_1 : CX_SCHEME_MATRIX_1;
    return true;
}

/* --- the journal tree ------------------------------------------------------------------------ */

cx_digest cx_scheme_entry(cx_bytes entry)
{
    return domain_hash(CX_STR(ENTRY_DOMAIN), entry);
}

cx_digest cx_scheme_level0(cx_scheme scheme, const cx_digest *leaf_hash)
{
    cx_digest out;
    cx_scheme_level0_many(scheme, leaf_hash, &out, 1);
    return out;
}

void cx_scheme_level0_many(cx_scheme scheme, const cx_digest *leaf_hashes, cx_digest *out,
                           size_t count)
{
    if (count == 0)
        return;
    if (scheme == CX_SCHEME_MATRIX_1)
        memmove(out, leaf_hashes, count * sizeof *out);
    else
        cx_digest_template_many(&templates_of(scheme)->level0, leaf_hashes->bytes, out, count);
}

cx_digest cx_scheme_node(cx_scheme scheme, const cx_digest *left, const cx_digest *right)
{
    return pair_of(&templates_of(scheme)->node, left, right);
}

cx_digest cx_scheme_bag(cx_scheme scheme, const cx_digest *left, const cx_digest *right)
{
    return pair_of(&templates_of(scheme)->bag, left, right);
}

void cx_scheme_nodes(cx_scheme scheme, const cx_digest *pairs, cx_digest *out, size_t count)
{
    if (count != 0)
        cx_digest_template_many(&templates_of(scheme)->node, pairs->bytes, out, count);
}

cx_digest cx_scheme_journal_root(cx_scheme scheme, uint64_t leaf_count, const cx_digest *acc)
{
    uint8_t data[8 + sizeof(cx_digest)] = {0};
    if (scheme == CX_SCHEME_CORTEX_1)
        return leaf_count == 0 ? cx_digest_of(cx_bytes_from(NULL, 0)) : *acc;
    store_u64(data, leaf_count);
    if (leaf_count != 0)
        memcpy(data + 8, acc->bytes, sizeof acc->bytes);
    return domain_hash(CX_STR(MATRIX_TREE "mmr.root.v1"), cx_bytes_from(data, sizeof data));
}

/* --- the state trees ------------------------------------------------------------------------- */

static cx_str key_domain(cx_scheme scheme, bool edge)
{
    if (scheme == CX_SCHEME_CORTEX_1)
        return edge ? (cx_str){NULL, 0} : CX_STR("m/");
    return edge ? CX_STR(MATRIX_TREE "smt.key.edges.v1")
                : CX_STR(MATRIX_TREE "smt.key.memories.v1");
}

cx_digest cx_scheme_memory_key(cx_scheme scheme, const uint8_t id[16])
{
    return domain_hash(key_domain(scheme, false), cx_bytes_from(id, 16));
}

cx_digest cx_scheme_edge_key(cx_scheme scheme, const uint8_t src[16], uint8_t type,
                             const uint8_t dst[16])
{
    uint8_t data[33];
    memcpy(data, src, 16);
    data[16] = type;
    memcpy(data + 17, dst, 16);
    return domain_hash(key_domain(scheme, true), cx_bytes_from(data, sizeof data));
}

cx_digest cx_scheme_value(cx_scheme scheme, cx_bytes record)
{
    return scheme == CX_SCHEME_CORTEX_1 ? cx_digest_of(record)
                                        : domain_hash(CX_STR(VALUE_DOMAIN), record);
}

cx_digest cx_scheme_smt_leaf(cx_scheme scheme, const cx_digest *key, const cx_digest *value)
{
    return pair_of(&templates_of(scheme)->smt_leaf, key, value);
}

void cx_scheme_smt_leaves(cx_scheme scheme, const cx_digest *key_values, cx_digest *out,
                          size_t count)
{
    if (count != 0)
        cx_digest_template_many(&templates_of(scheme)->smt_leaf, key_values->bytes, out, count);
}

cx_digest cx_scheme_smt_node(cx_scheme scheme, const cx_digest *left, const cx_digest *right)
{
    return pair_of(&templates_of(scheme)->smt_node, left, right);
}

void cx_scheme_smt_nodes(cx_scheme scheme, const cx_digest *pairs, cx_digest *out, size_t count)
{
    if (count != 0)
        cx_digest_template_many(&templates_of(scheme)->smt_node, pairs->bytes, out, count);
}

cx_digest cx_scheme_smt_empty(cx_scheme scheme, unsigned depth)
{
    CX_ASSERT(depth <= DEPTH_MAX);
    (void)templates_of(scheme);
    return table.empty[scheme][depth];
}

void cx_scheme_smt_one_sided(cx_scheme scheme, unsigned depth, unsigned side,
                             const cx_digest *hashes, cx_digest *out, size_t count)
{
    enum { GROUP = 32 };
    CX_ASSERT(depth >= 1 && depth <= DEPTH_MAX);
    const templates *m = templates_of(scheme);
    if (count == 0)
        return;
    if (scheme == CX_SCHEME_MATRIX_1 && side == 1) {
        cx_digest_template_many(&table.left_empty[depth], hashes->bytes, out, count);
        return;
    }
    for (size_t done = 0; done < count; done += GROUP) {
        cx_digest pairs[2 * GROUP];
        size_t some = count - done < GROUP ? count - done : GROUP;
        for (size_t i = 0; i < some; i++) {
            pairs[2 * i + side] = hashes[done + i];
            pairs[2 * i + (1 - side)] = table.empty[scheme][depth];
        }
        cx_digest_template_many(&m->smt_node, pairs->bytes, out + done, some);
    }
}

/* --- the whole ------------------------------------------------------------------------------- */

cx_digest cx_scheme_overall(cx_scheme scheme, const cx_digest *journal_root,
                            const cx_digest *edges_root, const cx_digest *memories_root)
{
    cx_sha256 hash;
    cx_sha256_init(&hash);
    if (scheme == CX_SCHEME_CORTEX_1) {
        cx_sha256_add(&hash, journal_root->bytes, 32);
        cx_sha256_add(&hash, memories_root->bytes, 32);
        cx_sha256_add(&hash, edges_root->bytes, 32);
        return cx_sha256_end(&hash);
    }
    static const char domain[] = MATRIX_TREE "overall.v1\x01";
    static const char edges[] = "\x00\x02\x05"
                                "edges";
    static const char memories[] = "\x08"
                                   "memories";
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, journal_root->bytes, 32);
    cx_sha256_add(&hash, edges, sizeof edges - 1);
    cx_sha256_add(&hash, edges_root->bytes, 32);
    cx_sha256_add(&hash, memories, sizeof memories - 1);
    cx_sha256_add(&hash, memories_root->bytes, 32);
    return cx_sha256_end(&hash);
}

/* --- records --------------------------------------------------------------------------------- */

cx_digest cx_scheme_payload_commitment(const uint8_t salt[32], cx_bytes payload)
{
    uint8_t size[8];
    cx_sha256 hash;
    store_u64(size, payload.size);
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, COMMITMENT_DOMAIN, sizeof COMMITMENT_DOMAIN - 1);
    cx_sha256_add(&hash, salt, 32);
    cx_sha256_add(&hash, size, sizeof size);
    cx_sha256_add(&hash, payload.data, payload.size);
    return cx_sha256_end(&hash);
}

/* --- many at once ---------------------------------------------------------------------------- */

enum { GROUP = 64, COMMITMENT_HEAD_SIZE = sizeof COMMITMENT_DOMAIN - 1 + 32 + 8 };

static void domain_hash_many(cx_str domain, const cx_bytes *messages, cx_digest *out, size_t count)
{
    cx_digest_pieces pieces[GROUP];
    for (size_t done = 0; done < count; done += GROUP) {
        size_t left = count - done < GROUP ? count - done : GROUP;
        for (size_t i = 0; i < left; i++)
            pieces[i] = (cx_digest_pieces){cx_str_bytes(domain), messages[done + i]};
        cx_digest_many_pieces(pieces, out + done, left);
    }
}

void cx_scheme_state_keys(cx_scheme scheme, bool edges, const cx_bytes *names, cx_digest *out,
                          size_t count)
{
    domain_hash_many(key_domain(scheme, edges), names, out, count);
}

void cx_scheme_entries(const cx_bytes *entries, cx_digest *out, size_t count)
{
    domain_hash_many(CX_STR(ENTRY_DOMAIN), entries, out, count);
}

void cx_scheme_values(cx_scheme scheme, const cx_bytes *records, cx_digest *out, size_t count)
{
    const cx_str none = {NULL, 0};
    domain_hash_many(scheme == CX_SCHEME_CORTEX_1 ? none : CX_STR(VALUE_DOMAIN), records, out,
                     count);
}

void cx_scheme_payload_commitments(const uint8_t *const *salts, const cx_bytes *payloads,
                                   cx_digest *out, size_t count)
{
    uint8_t heads[GROUP][COMMITMENT_HEAD_SIZE];
    cx_digest_pieces pieces[GROUP];
    for (size_t done = 0; done < count; done += GROUP) {
        size_t left = count - done < GROUP ? count - done : GROUP;
        for (size_t i = 0; i < left; i++) {
            uint8_t *at = heads[i];
            memcpy(at, COMMITMENT_DOMAIN, sizeof COMMITMENT_DOMAIN - 1);
            at += sizeof COMMITMENT_DOMAIN - 1;
            memcpy(at, salts[done + i], 32);
            store_u64(at + 32, payloads[done + i].size);
            pieces[i] = (cx_digest_pieces){cx_bytes_from(heads[i], COMMITMENT_HEAD_SIZE),
                                           payloads[done + i]};
        }
        cx_digest_many_pieces(pieces, out + done, left);
    }
}

cx_digest cx_scheme_version(uint8_t type, cx_bytes version_with_zero_hash)
{
    static const char domain[] = "matrix.cortex.memory.v1";
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, &type, 1);
    cx_sha256_add(&hash, version_with_zero_hash.data, version_with_zero_hash.size);
    return cx_sha256_end(&hash);
}

cx_digest cx_scheme_manifest(cx_bytes body)
{
    return domain_hash(CX_STR("cortex.manifest.v1"), body);
}

/*
 * scheme.h - the two commitment schemes: every hash of the ledger in one place (ledger.md §1.1).
 *
 * Records and entries have the same bytes in both; only what is hashed differs.  A scheme is chosen
 * when a ledger is made and never changes.  All functions are pure and thread-safe.
 */
#ifndef CX_TREE_SCHEME_H
#define CX_TREE_SCHEME_H

#include "base/api.h"
#include "crypto/api.h"

typedef enum cx_scheme {
    CX_SCHEME_CORTEX_1, /* RFC 6962 hashing, compressed sparse tree; the default */
    CX_SCHEME_MATRIX_1  /* byte-compatible with the original system */
} cx_scheme;

/* "cortex-1", "matrix-1". */
cx_str cx_scheme_name(cx_scheme scheme);
bool cx_scheme_parse(cx_str name, cx_scheme *out);

/* leaf_hash of an entry; the same in both schemes. */
cx_digest cx_scheme_entry(cx_bytes entry);
/* Level 0 of the journal tree: H(00 ‖ leaf_hash), or leaf_hash itself in matrix-1. */
cx_digest cx_scheme_level0(cx_scheme scheme, const cx_digest *leaf_hash);
/* Interior node of the journal tree over a perfect subtree. */
cx_digest cx_scheme_node(cx_scheme scheme, const cx_digest *left, const cx_digest *right);
/* Bagging: a node over a tree that is not perfect (matrix-1 hashes it otherwise). */
cx_digest cx_scheme_bag(cx_scheme scheme, const cx_digest *left, const cx_digest *right);
/* journal_root of n leaves whose tree hash is acc (not read when n is 0). */
cx_digest cx_scheme_journal_root(cx_scheme scheme, uint64_t leaf_count, const cx_digest *acc);
/* Many at once: out[i] = node(pairs[2i], pairs[2i+1]); out may overlay pairs from its start. */
void cx_scheme_nodes(cx_scheme scheme, const cx_digest *pairs, cx_digest *out, size_t count);
void cx_scheme_level0_many(cx_scheme scheme, const cx_digest *leaf_hashes, cx_digest *out,
                           size_t count);

cx_digest cx_scheme_memory_key(cx_scheme scheme, const uint8_t id[16]);
cx_digest cx_scheme_edge_key(cx_scheme scheme, const uint8_t src[16], uint8_t type,
                             const uint8_t dst[16]);
/* The value committed to for a record's canonical bytes. */
cx_digest cx_scheme_value(cx_scheme scheme, cx_bytes record);
cx_digest cx_scheme_smt_leaf(cx_scheme scheme, const cx_digest *key, const cx_digest *value);
cx_digest cx_scheme_smt_node(cx_scheme scheme, const cx_digest *left, const cx_digest *right);
void cx_scheme_smt_nodes(cx_scheme scheme, const cx_digest *pairs, cx_digest *out, size_t count);
/*
 * Branches with one empty side: the subtrees stand at `depth`, all on side `side` (0 = left), and
 * the empty ones are their siblings.  The same as smt_nodes, and cheaper.  `out` may be `hashes`.
 */
void cx_scheme_smt_one_sided(cx_scheme scheme, unsigned depth, unsigned side,
                             const cx_digest *hashes, cx_digest *out, size_t count);
/* out[i] = smt_leaf(key_values[2i], key_values[2i+1]). */
void cx_scheme_smt_leaves(cx_scheme scheme, const cx_digest *key_values, cx_digest *out,
                          size_t count);
/* An empty subtree whose root stands at `depth` (0 = the tree's root, 256 = a leaf). */
cx_digest cx_scheme_smt_empty(cx_scheme scheme, unsigned depth);

cx_digest cx_scheme_overall(cx_scheme scheme, const cx_digest *journal_root,
                            const cx_digest *edges_root, const cx_digest *memories_root);

/* Of many at once, in lanes.  A name is the id of a memory, or source, type and destination of an
 * edge after one another. */
void cx_scheme_state_keys(cx_scheme scheme, bool edges, const cx_bytes *names, cx_digest *out,
                          size_t count);
void cx_scheme_entries(const cx_bytes *entries, cx_digest *out, size_t count);
void cx_scheme_values(cx_scheme scheme, const cx_bytes *records, cx_digest *out, size_t count);
void cx_scheme_payload_commitments(const uint8_t *const *salts, const cx_bytes *payloads,
                                   cx_digest *out, size_t count);

/* Domain-separated hashes of records, the same in both schemes. */
cx_digest cx_scheme_payload_commitment(const uint8_t salt[32], cx_bytes payload); /* §3 */
cx_digest cx_scheme_version(uint8_t type, cx_bytes version_with_zero_hash);       /* §4 */
cx_digest cx_scheme_manifest(cx_bytes body);                                      /* §9 */

#endif

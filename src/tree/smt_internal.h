/*
 * smt_internal.h - what the files of the sparse Merkle tree share; only src/ledger/smt*.c open it.
 *
 * The tree is a binary trie without one-sided branches: a branch knows the bit at which the keys
 * below it part.  Leaves and branches are numbered; a `ref` names either, 4 bytes instead of a
 * pointer.
 *
 * Hashes stand where they are read: a branch holds the values of its two sides as seen from the
 * depth below it, one-sided branches of the format already folded in.  So hashing a branch reads
 * one cache line, and so does a step of a proof; a leaf, which is key and value, is another.
 *
 * Invariants:
 *   I1  a branch's bit is greater than that of the branch above it.
 *   I2  leaves below child[s] have bit `bit` == s, and share all bits before it.
 *   I3  sides[b].half[s] is right unless bit s of branches[b].stale is set.
 *   I4  whatever is stale is reached from the root through stale sides only.
 *   I5  there is one branch less than there are leaves (none when there are none).
 */
#ifndef CX_TREE_SMT_INTERNAL_H
#define CX_TREE_SMT_INTERNAL_H

#include "base/api.h"
#include "tree/smt.h"

enum { SMT_DEPTH = 256, SMT_GROUP = 64 };

#define SMT_LEAF UINT32_C(0x80000000)
#define SMT_NONE UINT32_MAX
#define SMT_LEAVES_MAX (SMT_LEAF - 2)

typedef struct smt_branch {
    uint32_t child[2];
    uint16_t bit;
    uint8_t stale; /* bit s: the value of side s must be hashed again */
} smt_branch;

/* One cache line each: key and value of a leaf, left and right of a branch. */
typedef struct smt_twin {
    cx_digest half[2];
} smt_twin;

typedef struct smt_twins {
    smt_twin *items; /* aligned to their size, inside block */
    uint8_t *block;
    size_t block_size_bytes;
    uint32_t capacity;
    uint32_t used;       /* the rest was never used */
    uint32_t free;       /* first of the list of those given back */
    uint32_t kept_count; /* used and not given back */
} smt_twins;

/* A branch to be hashed, and where its value goes: to a side of the task above, or to the root. */
typedef struct smt_task {
    uint32_t branch;
    uint32_t up;    /* place of the task above, times two, plus the side */
    uint32_t leaf;  /* one below it, once known: its key says where one-sided branches turn */
    uint16_t bit;   /* the branch's */
    uint16_t depth; /* at which its value stands */
} smt_task;

typedef struct smt_leaf_task {
    uint32_t leaf;
    uint32_t up;
    uint16_t depth;
} smt_leaf_task;

/* What one thread lists and hashes. */
typedef struct smt_hasher {
    cx_smt *smt;
    bool helps; /* with pieces of a level that another thread has listed */
    CX_VEC(smt_task) tasks;
    CX_VEC(smt_leaf_task) leaf_tasks;
    uint64_t hash_count;
} smt_hasher;

struct cx_smt {
    const cx_alloc *alloc;
    cx_scheme scheme;
    smt_twins leaves; /* half[0] is the key */
    smt_twins sides;  /* by branch */
    CX_VEC(smt_branch) branches;
    uint32_t root;
    bool stale; /* root_hash is */
    cx_digest root_hash;
    smt_hasher hasher;
};

static inline bool smt_is_leaf(uint32_t ref)
{
    return (ref & SMT_LEAF) != 0;
}

static inline const cx_digest *smt_key(const cx_smt *smt, uint32_t leaf)
{
    return &smt->leaves.items[leaf].half[0];
}

static inline unsigned smt_bit(const cx_digest *key, unsigned index)
{
    return (unsigned)key->bytes[index >> 3] >> (7 - (index & 7)) & 1;
}

/* Eight bytes of a key, most significant first; spelled so that compilers see one load. */
static inline uint64_t smt_word(const cx_digest *key, unsigned offset)
{
    const uint8_t *b = key->bytes + offset;
    return (uint64_t)b[0] << 56 | (uint64_t)b[1] << 48 | (uint64_t)b[2] << 40 |
           (uint64_t)b[3] << 32 | (uint64_t)b[4] << 24 | (uint64_t)b[5] << 16 |
           (uint64_t)b[6] << 8 | b[7];
}

/* The first bit in which two keys differ; SMT_DEPTH when they are equal. */
unsigned cx_smt_difference(const cx_digest *a, const cx_digest *b);
/* The leaf that a key's bits lead to, which may be another's; the tree is not empty. */
uint32_t cx_smt_descend(const cx_smt *smt, const cx_digest *key);
/* Room for so many leaves altogether and their branches; false when out of memory. */
bool cx_smt_grow(cx_smt *smt, uint64_t leaf_count);
/* Numbers of new leaves and branches, room being there. */
uint32_t cx_smt_add_leaf(cx_smt *smt, const cx_digest *key, const cx_digest *value);
uint32_t cx_smt_add_branch(cx_smt *smt, unsigned bit);
/* A new leaf, the sibling of all that hangs at `link`, from which its key differs first at `bit`:
 * I1, I2.
 */
void cx_smt_hang_leaf(cx_smt *smt, uint32_t *link, unsigned bit, const cx_digest *key,
                      const cx_digest *value);

/*
 * The root of a subtree as seen from further up, the way up having only empty sides: at first
 * `hash` stands at depth `from`, afterwards at depth `to`.
 */
typedef struct smt_chain {
    cx_digest hash;
    const cx_digest *key; /* of any leaf below */
    unsigned from;
    unsigned to;
} smt_chain;

/* Up to SMT_GROUP chains at once; returns how many hashes it took. */
uint64_t cx_smt_climb(cx_scheme scheme, smt_chain *chains, size_t count);

#endif

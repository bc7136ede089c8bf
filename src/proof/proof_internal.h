/*
 * proof_internal.h - what the proof files of this module share: a MultiProof as it is on the wire,
 * the way its keys go up together, and writing findings.
 */
#ifndef CX_PROOF_PROOF_INTERNAL_H
#define CX_PROOF_PROOF_INTERNAL_H

#include "cbor/api.h"
#include "proof/proof.h"

/* The three containers, by their schema numbers. */
typedef enum cx_proof_form {
    CX_FORM_PLAIN = 1,  /* matrix-1: every sibling of every key */
    CX_FORM_POOLED = 2, /* cortex-1: numbers of siblings that a pool has once */
    CX_FORM_COMPACT = 3 /* cortex-1: only siblings that do not follow from the keys */
} cx_proof_form;

/* Of one key, read but not yet judged. */
typedef struct cx_raw_item {
    cx_digest key;
    bool has_leaf, has_other, has_value;
    cx_bytes leaf;
    cx_digest other_key, other_value;
    cx_digest value;
    size_t sibling_count;    /* pooled and plain: beyond CX_PROOF_SIBLINGS_MAX they were not kept */
    uint32_t *indexes;       /* pooled and compact: 0 = empty, i = number i - 1 of the pool */
    size_t index_base;       /* indexes[0] is of this sibling: in pooled ones always of the first */
    const uint8_t *siblings; /* plain: CX_CBOR_DIGEST_STRIDE apart */
} cx_raw_item;

typedef struct cx_raw_proof {
    cx_proof_form form;
    cx_str scheme_name; /* as written; of schema 1 "matrix-1" */
    cx_str name_space;
    cx_digest root;
    size_t count;
    cx_raw_item *items;
    size_t pool_count;
    const uint8_t *pool; /* where its first digest stands .. */
    size_t pool_stride;  /* .. and how far apart they are */
    cx_bytes hashes;     /* compact: the siblings, without a gap */
    cx_bytes presence;   /* compact: a bit for each place of a sibling, 1 = its hash follows */
} cx_raw_proof;

/* Canonical and of a known schema, nothing else; CX_E_FORMAT "NonCanonical". */
CX_RESULT cx_raw_proof_read(cx_bytes bytes, cx_arena *arena, cx_raw_proof *out, cx_err *err);
/* The 32 bytes of sibling i (number 0 stands at depth 1) of an item whose form is good. */
const uint8_t *cx_raw_sibling(const cx_raw_proof *proof, const cx_raw_item *item, size_t i);
/* Membership as claimed, and the path without its siblings; *out is zero before. */
void cx_raw_item_claim(const cx_raw_proof *proof, const cx_raw_item *item, cx_proof_item *out);

/*
 * Paths of keys, in ascending order of the keys, and where they come together.  A key whose path
 * ends in the same place as that of the key before it goes nowhere by itself.  Of all keys below a
 * node the least one stands for it: on its way up it meets greater ones, nearest the leaves first.
 */
typedef struct cx_trail {
    const cx_digest *key;
    uint32_t item;   /* the key's number in the proof */
    uint32_t meets;  /* the first it meets; 0 = none */
    uint32_t next;   /* whom its meeter meets after it; 0 = none */
    uint16_t depth;  /* where its path ends */
    uint16_t shared; /* bits in common with the key before; 0 of the first */
} cx_trail;

/* Of the keys of a proof, sorted, not yet linked.  *out_twice is a number of a key that is there
 * twice, SIZE_MAX when there is none. */
CX_RESULT cx_trails_of(const cx_raw_proof *proof, cx_arena *arena, cx_trail **out,
                       size_t *out_twice, cx_err *err);
/* Fills shared, meets, next from sorted, distinct keys and depths of at most 256.  Returns
 * SIZE_MAX, or the place of a trail that ends on the way of the one before it or after its end. */
size_t cx_trails_link(cx_trail *trails, size_t count);
/* Whether a trail that is linked ends where the one before it does. */
static inline bool cx_trail_ends_with_last(const cx_trail *trails, size_t at)
{
    return at != 0 && trails[at].shared >= trails[at].depth;
}
/* The first sibling of a trail that is not also one of the trail before it. */
static inline size_t cx_trail_own(const cx_trail *trails, size_t at)
{
    return at == 0 ? 0 : trails[at].shared + 1u;
}
/* met[i] for own siblings i below `depth`: whether that sibling is what another key leads to. */
void cx_trail_mark_met(const cx_trail *trails, size_t at, bool met[CX_PROOF_SIBLINGS_MAX]);

/* The rule "ProofMalformed"; what is wrong is written to *out, which must hold before.  Links the
 * trails of a compact proof and finds its siblings; other schemas do not need them. */
CX_RESULT cx_raw_proof_check_form(cx_raw_proof *proof, cx_trail *trails, cx_arena *arena,
                                  cx_finding *out, cx_err *err);
/* The same for what one key says besides its siblings; NULL when it is good. */
const char *cx_raw_item_wrong(const cx_raw_item *item);
CX_RESULT cx_compact_check_form(cx_raw_proof *proof, cx_trail *trails, cx_arena *arena,
                                cx_finding *out, cx_err *err);

/*
 * Folds all paths together, level by level from the deepest, in lanes: every distinct node is
 * hashed once.  nodes[t] is the node at the end of trail t at first, and the highest one that it
 * stands for at last; nodes[0] is the root.  lefts[t] (may be NULL) becomes the left neighbour of
 * the highest node of t.  False in *out_agree when two keys contradict each other; *out_against
 * is then the greater of them, SIZE_MAX when it is not known.
 */
CX_RESULT cx_raw_proof_fold(const cx_raw_proof *proof, cx_scheme scheme, cx_trail *trails,
                            cx_digest *nodes, cx_digest *lefts, cx_arena *arena, bool *out_agree,
                            size_t *out_against, cx_err *err);
/* nodes[t] at the end of trail t, from what its item claims. */
void cx_raw_proof_ends(cx_scheme scheme, const cx_trail *trails, const cx_proof_item *items,
                       size_t count, cx_digest *nodes);

/* What all schemas say first: fields 0 to 2, and of field 3 how many items come. */
void cx_proof_put_head(const cx_multiproof *proof, cx_proof_form form, size_t field_count,
                       cx_buf *out);
/* Of an item of schemas 2 and 3 what stands before its siblings, which are field 2 .. */
void cx_proof_begin_item(const cx_proof_item *item, cx_cbor_fields *fields, cx_buf *out);
/* .. and what stands after them. */
void cx_proof_end_item(const cx_proof_item *item, cx_cbor_fields *fields, cx_buf *out);

/* Siblings of each key's own in place of those shared; items are claimed already. */
CX_RESULT cx_compact_expand(const cx_raw_proof *proof, cx_trail *trails, cx_proof_item *items,
                            cx_arena *arena, cx_finding *form, cx_err *err);
/* Schema 3; checks that the keys ascend and the paths go together: CX_E_USAGE "InvalidArgument". */
CX_RESULT cx_compact_encode(const cx_multiproof *proof, cx_buf *out, cx_err *err);

/* It holds, until something else is written. */
void cx_finding_init(cx_finding *out);
void cx_finding_set(cx_finding *out, cx_verdict verdict, const char *reason, size_t key_index,
                    const char *format, ...) CX_PRINTF(5, 6);
/*
 * Turns "these bytes are not of the format" into the finding `reason`, with the error's message
 * and offset; every other status is handed back.
 */
CX_RESULT cx_finding_from(cx_status status, const cx_err *found, const char *reason,
                          cx_finding *out, cx_err *err);

#define CX_FINDING_WHOLE SIZE_MAX

#endif

/*
 * tree.h - persistent maps from keys to JSON values: what the states of a lattice are made of.
 *
 * A map is a treap ordered by the bytes of its keys (code point order); a key's priority is its
 * hash under the forest's seed.  So equal sets of keys have equal shapes, and a change copies only
 * the path to it: states share what they have in common, and comparing or merging two of them
 * skips what they share by comparing pointers.  The seed decides shapes and never an output.
 *
 * Values that are no objects (scalars, arrays) are canonical JSON text borrowed from wherever the
 * delta lies; objects are maps.  Equality of texts is equality of values (lattice.md §3.2).
 *
 * Nothing recurses: work that nests uses the stacks of a tree_work.  No function here says why it
 * failed: there is only one reason, out of memory.
 */
#ifndef CX_LATTICE_TREE_H
#define CX_LATTICE_TREE_H

#include "base/api.h"

typedef struct tree tree;

/* Absent (data NULL, size 0), a leaf's canonical text, or a map (size VALUE_MAP, data its root). */
typedef struct cx_value {
    const void *data;
    uint32_t size;
} cx_value;

#define VALUE_MAP UINT32_MAX
#define VALUE_ABSENT ((cx_value){NULL, 0})
/* Longer texts than this are refused: sizes here have 31 bits. */
#define TREE_TEXT_MAX ((size_t)INT32_MAX)

/* Nodes are aligned to this, also those that are contiguous. */
#if UINTPTR_MAX > UINT32_MAX
#define TREE_ALIGN 16
#else
#define TREE_ALIGN 8
#endif
#define TREE_INSIDE 16

#define TREE_PRIORITY_MAX 0x7FFFFFu
/* Trees of up to so many keys lie in one piece, see tree_place.c: larger blocks are read a little
 * sooner and copied more often. */
#define TREE_BLOCK 4

struct tree {
    const tree *left, *right;
    union {
        struct {
            const char *key;
            const void *data;
        } at;
        /* A short `"key":value` of a placed node: reading it needs no other memory. */
        char inside[TREE_INSIDE];
    } text;
    uint32_t size;
    uint32_t key_size : 31;
    /* 0: the key lies in canonical text between its quotes.  1: decoded elsewhere. */
    uint32_t key_escaped : 1;
    uint32_t priority : 23;
    uint32_t is_inside : 1;
    /* Placed nodes: the number of nodes of this tree when they are contiguous in the order of their
     * keys, and how many of them are before this one.  0 when it is too large for that; `before`
     * then tells which directory follows the node, see tree_runs.h. */
    uint32_t count : 4;
    uint32_t before : 4;
    uint32_t stamp; /* the change that made this node; it alone may still write to it */
};

static inline bool value_is_absent(cx_value v)
{
    return v.data == NULL && v.size == 0;
}
static inline bool value_is_map(cx_value v)
{
    return v.size == VALUE_MAP;
}
static inline bool value_is_leaf(cx_value v)
{
    return v.size != VALUE_MAP && v.size != 0;
}
static inline const tree *value_root(cx_value v)
{
    return value_is_map(v) ? v.data : NULL;
}
static inline cx_value value_of_root(const tree *root)
{
    return (cx_value){root, VALUE_MAP};
}
static inline cx_value value_of_text(cx_str text)
{
    return (cx_value){text.data, (uint32_t)text.size};
}
static inline cx_str value_text(cx_value v)
{
    return (cx_str){v.data, v.size};
}
/* The very same, by pointer or by a leaf's bytes; false says nothing about two maps. */
static inline bool value_is_same(cx_value a, cx_value b)
{
    if (a.size != b.size)
        return false;
    return a.data == b.data || (value_is_leaf(a) && memcmp(a.data, b.data, a.size) == 0);
}

static inline cx_value tree_value(const tree *t)
{
    if (t == NULL)
        return VALUE_ABSENT;
    return (cx_value){t->is_inside ? t->text.inside + t->key_size + 3 : t->text.at.data, t->size};
}
static inline cx_str tree_key(const tree *t)
{
    return (cx_str){t->is_inside ? t->text.inside + 1 : t->text.at.key, t->key_size};
}

/* A key and how it is spelled. */
typedef struct tree_name {
    cx_str text;
    bool escaped;
} tree_name;

/*
 * Where trees grow.  Before a change, and never within one, `stamp` is raised.  With a scratch
 * arena a change makes its nodes there, and what is to outlive the change is placed at its end.
 */
typedef struct cx_forest {
    cx_arena *arena;
    uint64_t seed;
    uint32_t stamp;
    cx_arena *scratch; /* or NULL */
} cx_forest;

/* An open range of keys; NULL data = no bound. */
typedef struct tree_range {
    cx_str low, high;
} tree_range;

/* Two subtrees to be compared. */
typedef struct tree_pair {
    const tree *a, *b;
    tree_range range;
    bool visit; /* report this pair's key; its children have their own pairs */
} tree_pair;

/* What is to be written next, see tree_write.c. */
typedef struct tree_step {
    const tree *at, *end;
} tree_step;

/* Stacks, kept between calls. */
typedef struct tree_work {
    const cx_alloc *alloc;
    CX_VEC(tree_pair) pairs;
    CX_VEC(tree_step) steps;
    CX_VEC(tree *) path;
} tree_work;

static inline void cx_tree_work_init(tree_work *work, const cx_alloc *alloc)
{
    *work = (tree_work){.alloc = alloc};
}
void cx_tree_work_done(tree_work *work);

/* The node with that key, or NULL. */
const tree *cx_tree_find(const tree *root, cx_str key);

/* Nothing is copied when nothing changes.  False: out of memory, *root is then of no use. */
bool cx_tree_set(cx_forest *forest, const tree **root, tree_name name, cx_value v);
bool cx_tree_remove(cx_forest *forest, const tree **root, cx_str key);

/* True when a's key stands above b's in every tree of the forest. */
bool cx_tree_outranks(const tree *a, const tree *b);

/* The topmost node within the range, or NULL.  Below it there may be keys outside. */
const tree *cx_tree_narrow(const tree *root, tree_range range);
/* Exactly the keys within the range. */
bool cx_tree_restrict(cx_forest *forest, const tree *root, tree_range range, const tree **out);
/* All keys of `left` before all keys of `right`. */
bool cx_tree_join(cx_forest *forest, const tree *left, const tree *right, const tree **out);
/* As `like` with its key and priority, and everything else new. */
bool cx_tree_make(cx_forest *forest, const tree *like, cx_value v, const tree *left,
                  const tree *right, const tree **out);

/*
 * Moves what this change made of the tree out of scratch, with small trees in one piece.  Values
 * that are maps have been placed before.  False: out of memory.
 */
bool cx_tree_place(cx_forest *forest, tree_work *work, const tree **root);

/* Equal as JSON.  Both of one forest. */
bool cx_tree_equal(tree_work *work, cx_value a, cx_value b, bool *out_equal);

/* It will be written soon.  NULL is accepted. */
static inline void cx_tree_expect(const tree *root)
{
    /* The topmost node, and what of a directory lies after it. */
    for (uintptr_t i = 0; i < 4; i++)
        __builtin_prefetch((const void *)((uintptr_t)root + i * 64));
}

/* Appends the canonical JSON. */
bool cx_tree_write(tree_work *work, cx_value v, cx_buf *out);
/* The same, but ends soon after `most` bytes; *out_whole says whether all of it was written. */
bool cx_tree_write_most(tree_work *work, cx_value v, size_t most, cx_buf *out, bool *out_whole);

/* Calls visit for each key whose values differ, in order; it may stop the walk by false. */
typedef bool (*tree_visit)(void *arg, cx_str key, cx_value a, cx_value b);
bool cx_tree_diff(tree_work *work, const tree *a, const tree *b, tree_visit visit, void *arg);

#endif

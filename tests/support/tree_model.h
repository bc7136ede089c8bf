/*
 * tree_model.h - small maps as plain arrays, and the same as trees.
 */
#ifndef CX_TESTS_LATTICE_TREE_MODEL_H
#define CX_TESTS_LATTICE_TREE_MODEL_H

#include "lattice/tree.h"
#include "tests/test.h"

enum { KEYS = 60, VERSIONS = 400 };

static char key_texts[KEYS][16];
static char member_texts[KEYS][4][32];
/* The last is too long to lie inside of a node. */
static const char *const leaf_texts[4] = {"1", "2.5", "\"x\"", "[1,null,true]"};

/* Which leaf each key has, 0 = none. */
typedef struct model {
    uint8_t leaf[KEYS];
} model;

static inline cx_str key_of(unsigned k)
{
    if (key_texts[k][0] == 0)
        (void)snprintf(key_texts[k], sizeof key_texts[k], "\"k%u\":", k * 7919 % 1000);
    return cx_str_from(key_texts[k] + 1, strlen(key_texts[k]) - 3);
}

static inline cx_value leaf_value(unsigned leaf)
{
    return value_of_text(cx_str_z(leaf_texts[leaf - 1]));
}

/* The key with the leaf right after it, as in the text of a delta. */
static inline cx_str member_of(unsigned k, unsigned leaf)
{
    char *text = member_texts[k][leaf - 1];
    if (text[0] == 0)
        (void)snprintf(text, sizeof member_texts[k][0], "\"%.*s\":%s", (int)key_of(k).size,
                       key_of(k).data, leaf_texts[leaf - 1]);
    return cx_str_from(text + 1, key_of(k).size);
}

static inline bool matches(const tree *root, const model *m)
{
    for (unsigned k = 0; k < KEYS; k++) {
        cx_value expected = m->leaf[k] == 0 ? VALUE_ABSENT : leaf_value(m->leaf[k]);
        if (!value_is_same(tree_value(cx_tree_find(root, key_of(k))), expected))
            return false;
    }
    return true;
}

static inline bool is_sound(const tree *t, const tree **last)
{
    if (t == NULL)
        return true;
    if ((t->left != NULL && !cx_tree_outranks(t, t->left)) ||
        (t->right != NULL && !cx_tree_outranks(t, t->right)) || !is_sound(t->left, last))
        return false;
    if (*last != NULL && cx_str_cmp(tree_key(*last), tree_key(t)) >= 0)
        return false;
    *last = t;
    return is_sound(t->right, last);
}

static inline bool change(cx_forest *forest, const tree **root, model *m, uint64_t *random)
{
    unsigned k = (unsigned)(cx_test_random(random) % KEYS);
    unsigned leaf = (unsigned)(cx_test_random(random) % 5);
    m->leaf[k] = (uint8_t)leaf;
    if (leaf == 0)
        return cx_tree_remove(forest, root, key_of(k));
    if (cx_test_random(random) % 4 == 0)
        return cx_tree_set(forest, root, (tree_name){key_of(k), false}, leaf_value(leaf));
    cx_str key = member_of(k, leaf);
    cx_str text = cx_str_from(key.data + key.size + 2, strlen(leaf_texts[leaf - 1]));
    return cx_tree_set(forest, root, (tree_name){key, false}, value_of_text(text));
}

static inline void begin_change(cx_forest *forest)
{
    forest->stamp++;
    if (forest->scratch != NULL)
        cx_arena_reset(forest->scratch, (cx_arena_mark){0});
}

/* `"key":value` as one text: the name in it, and the value after it. */
static inline bool set_member(cx_forest *forest, const tree **root, cx_str text, size_t key_size)
{
    tree_name name = {cx_str_from(text.data + 1, key_size), false};
    cx_str value = cx_str_from(text.data + key_size + 3, text.size - key_size - 3);
    return cx_tree_set(forest, root, name, value_of_text(value));
}

#endif

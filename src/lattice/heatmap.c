/*
 * heatmap.c - where history branches, and where it ends.
 *
 *   heatmap  {"nodes":[{"D":N,"node":ID}],"verified":B}       `NODE D`
 *   heads    {"heads":[{"agent":A,"hash":H,"node":ID,"seq":N}],"verified":B}
 *
 * D is a node's number of children by parents edges; only D > 1, most first, then by id (§8).
 * Heads are in order of the agents' names; agents without a node in the graph have none.
 */
#include "lattice/answer.h"

#include <stdlib.h>

typedef struct hot_node {
    uint32_t children;
    cx_node which;
    cx_str id;
} hot_node;

static int compare_hot(const void *left, const void *right)
{
    const hot_node *a = left, *b = right;
    if (a->children != b->children)
        return a->children > b->children ? -1 : 1;
    int order = cx_str_cmp(a->id, b->id);
    return order != 0 ? order : (a->which > b->which) - (a->which < b->which);
}

static uint32_t count_children(const cx_lattice *lattice, cx_node which)
{
    uint32_t count = 0;
    if (in_graph(node_at(lattice, which)))
        (void)node_children(lattice, which, &count);
    return count;
}

cx_status cx_lattice_answer_heatmap(cx_buf *out, const cx_lattice *lattice,
                                    const cx_answer_options *options, cx_err *err)
{
    CX_VEC(hot_node) hot = {0};
    for (cx_node which = 0; which < lattice->nodes.count; which++) {
        uint32_t children = count_children(lattice, which);
        if (children < 2)
            continue;
        hot_node *slot = cx_vec_push(&hot, lattice->alloc);
        if (slot == NULL) {
            cx_vec_done(&hot, lattice->alloc);
            return cx_fail_nomem(err);
        }
        *slot = (hot_node){children, which, node_id(node_at(lattice, which))};
    }
    if (hot.count != 0)
        qsort(hot.items, hot.count, sizeof *hot.items, compare_hot);
    if (options->json)
        cx_buf_add_z(out, "{\"nodes\":[");
    for (size_t i = 0; i < hot.count; i++) {
        if (options->json) {
            cx_buf_printf(out, "%s{\"D\":%lu,\"node\":", i == 0 ? "" : ",",
                          (unsigned long)hot.items[i].children);
            cx_answer_node_str(out, lattice, hot.items[i].which);
            cx_buf_add_byte(out, '}');
        } else {
            cx_answer_node_name(out, lattice, hot.items[i].which);
            cx_buf_printf(out, " %lu\n", (unsigned long)hot.items[i].children);
        }
    }
    cx_vec_done(&hot, lattice->alloc);
    if (options->json) {
        cx_buf_add_z(out, "],");
        cx_answer_end(out, options);
    }
    return cx_buf_check(out, err);
}

/* --- heads --------------------------------------------------------------------------------- */

typedef struct named_head {
    cx_str agent;
    cx_node which;
} named_head;

static int compare_heads(const void *left, const void *right)
{
    const named_head *a = left, *b = right;
    return cx_str_cmp(a->agent, b->agent);
}

static void write_head(cx_buf *out, const cx_lattice *lattice, const named_head *head, bool json)
{
    char scratch[64];
    const node *n = node_at(lattice, head->which);
    cx_str hash = cx_lattice_hash_text(lattice, head->which, scratch);
    if (json) {
        cx_buf_add_z(out, "{\"agent\":");
        cx_answer_str(out, head->agent);
        cx_buf_add_z(out, ",\"hash\":");
        cx_answer_str(out, hash);
        cx_buf_add_z(out, ",\"node\":");
        cx_answer_node_str(out, lattice, head->which);
        cx_buf_printf(out, ",\"seq\":%lld}", (long long)n->seq);
        return;
    }
    cx_answer_name(out, head->agent);
    cx_buf_printf(out, "#%lld ", (long long)n->seq);
    cx_answer_node_name(out, lattice, head->which);
    cx_buf_add_byte(out, ' ');
    cx_answer_name(out, hash);
    cx_buf_add_byte(out, '\n');
}

cx_status cx_lattice_answer_heads(cx_buf *out, const cx_lattice *lattice,
                                  const cx_answer_options *options, cx_err *err)
{
    CX_VEC(named_head) heads = {0};
    for (uint32_t i = 0; i < lattice->agents.count; i++) {
        cx_node which = cx_lattice_head_of(lattice, i);
        if (which == CX_NODE_NONE)
            continue;
        named_head *slot = cx_vec_push(&heads, lattice->alloc);
        if (slot == NULL) {
            cx_vec_done(&heads, lattice->alloc);
            return cx_fail_nomem(err);
        }
        *slot = (named_head){lattice->agents.items[i].name, which};
    }
    if (heads.count != 0)
        qsort(heads.items, heads.count, sizeof *heads.items, compare_heads);
    if (options->json)
        cx_buf_add_z(out, "{\"heads\":[");
    for (size_t i = 0; i < heads.count; i++) {
        if (options->json && i != 0)
            cx_buf_add_byte(out, ',');
        write_head(out, lattice, &heads.items[i], options->json);
    }
    cx_vec_done(&heads, lattice->alloc);
    if (options->json) {
        cx_buf_add_z(out, "],");
        cx_answer_end(out, options);
    }
    return cx_buf_check(out, err);
}

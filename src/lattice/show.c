/*
 * show.c - one node with everything its source says.
 *
 *   {"children":[ID],"line":N,"lineage":ID|null,"node":{...},"parents":[ID],"verified":B}
 *
 * `node` is the source object, unknown fields too, in canonical JSON.  A field whose number is too
 * large to have a canonical form (lattice.md §3.2) is given as a string of its JSON text, so that
 * a damaged node can be looked at as well.  `parents` are those found, in merge order; `line` is 0
 * when the form has no lines.
 */
#include "lattice/answer.h"

static cx_status field_json(cx_buf *out, const cx_json_member *member, cx_err *err)
{
    cx_answer_str(out, cx_json_text(&member->name));
    cx_buf_add_byte(out, ':');
    if (cx_json_has_canonical(&member->value))
        return cx_json_write(out, &member->value, CX_JSON_PY_COMPACT, err);
    cx_buf text;
    cx_buf_init(&text, out->alloc);
    cx_status status = cx_json_write_pretty(&text, &member->value, 0, err);
    if (!cx_failed(status))
        cx_answer_str(out, cx_buf_str(&text));
    cx_buf_done(&text);
    return status;
}

static void nodes_json(cx_buf *out, const cx_lattice *lattice, const cx_node *nodes, uint32_t count)
{
    cx_buf_add_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i != 0)
            cx_buf_add_byte(out, ',');
        cx_answer_node_str(out, lattice, nodes[i]);
    }
    cx_buf_add_byte(out, ']');
}

static cx_status show_json(cx_buf *out, const cx_lattice *lattice, const cx_lattice_node_info *info,
                           const cx_json *source, const cx_answer_options *options, cx_err *err)
{
    cx_buf_add_z(out, "{\"children\":");
    nodes_json(out, lattice, info->children, info->child_count);
    cx_buf_printf(out, ",\"line\":%llu,\"lineage\":", (unsigned long long)info->line);
    if (info->lineage == CX_NODE_NONE)
        cx_buf_add_z(out, "null");
    else
        cx_answer_node_str(out, lattice, info->lineage);
    cx_buf_add_z(out, ",\"node\":{");
    for (uint32_t i = 0; i < source->count; i++) {
        if (i != 0)
            cx_buf_add_byte(out, ',');
        CX_TRY(field_json(out, &source->members[i], err));
    }
    cx_buf_add_z(out, "},\"parents\":");
    nodes_json(out, lattice, info->parents, info->parent_count);
    cx_buf_add_byte(out, ',');
    cx_answer_end(out, options);
    return CX_SUCCESS;
}

static void nodes_text(cx_buf *out, const cx_lattice *lattice, const char *title,
                       const cx_node *nodes, uint32_t count)
{
    cx_buf_add_z(out, title);
    for (uint32_t i = 0; i < count; i++) {
        cx_buf_add_z(out, i == 0 ? " " : ", ");
        cx_answer_node_name(out, lattice, nodes[i]);
    }
    cx_buf_add_z(out, count == 0 ? " none\n" : "\n");
}

static cx_status show_text(cx_buf *out, const cx_lattice *lattice, cx_node which,
                           const cx_lattice_node_info *info, const cx_json *source,
                           const cx_answer_options *options, cx_err *err)
{
    cx_answer_heading(out, options, "Node ");
    cx_answer_node_name(out, lattice, which);
    cx_buf_add_z(out, " (");
    cx_answer_name(out, info->agent);
    cx_buf_printf(out, "#%lld)", (long long)info->seq);
    if (info->line != 0)
        cx_buf_printf(out, ", line %llu", (unsigned long long)info->line);
    cx_buf_add_z(out, info->in_graph ? "\n" : ", left out of the graph\n");
    nodes_text(out, lattice, "Parents:", info->parents, info->parent_count);
    nodes_text(out, lattice, "Lineage parent:", &info->lineage, info->lineage != CX_NODE_NONE);
    nodes_text(out, lattice, "Children:", info->children, info->child_count);
    CX_TRY(cx_json_write_pretty(out, source, 0, err));
    cx_buf_add_byte(out, '\n');
    cx_answer_verdict_line(out, options);
    return CX_SUCCESS;
}

cx_status cx_lattice_answer_show(cx_buf *out, const cx_lattice *lattice, cx_node which,
                                 const cx_answer_options *options, cx_err *err)
{
    if (which >= lattice->nodes.count)
        return cx_fail(err, CX_E_NOT_FOUND, "no node has the number %lu", (unsigned long)which);
    cx_lattice_node_info info;
    cx_lattice_node(lattice, which, &info);
    cx_arena arena;
    cx_json source;
    cx_arena_init(&arena, lattice->alloc, 0);
    cx_status status;
    CX_TRY_GOTO(status, cx_lattice_source(lattice, which, &arena, &source, err));
    CX_TRY_GOTO(status, options->json
                            ? show_json(out, lattice, &info, &source, options, err)
                            : show_text(out, lattice, which, &info, &source, options, err));
    status = cx_buf_check(out, err);
done:
    cx_arena_done(&arena);
    return status;
}

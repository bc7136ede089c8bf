/*
 * anchor.c - what must be kept where the writer of a lattice cannot write (§5.2).
 *
 *   {"cortex_anchor":1,"heads":{agent:hash},"nodes":N,"root":R}
 *
 * R is the SHA-256 of the lines canonical([node_id,hash,agent_id,seq,seal]), one per node of the
 * graph, sorted, joined by LF, without a last LF.
 */
#include "lattice/report.h"

#include "base/api.h"
#include "crypto/api.h"
#include "lattice/record.h"

static void write_line(cx_buf *out, const cx_lattice *lattice, cx_node n)
{
    const node *item = node_at(lattice, n);
    char scratch[64];
    cx_buf_add_byte(out, '[');
    cx_json_write_str(out, node_id(item), CX_JSON_PY_COMPACT);
    cx_buf_add_byte(out, ',');
    cx_json_write_str(out, cx_lattice_hash_text(lattice, n, scratch), CX_JSON_PY_COMPACT);
    cx_buf_add_byte(out, ',');
    cx_json_write_str(out, cx_lattice_agent_label(lattice, n), CX_JSON_PY_COMPACT);
    cx_buf_add_byte(out, ',');
    cx_buf_add_i64(out, item->seq);
    cx_buf_add_z(out, ",\"");
    cx_hex_add(out, cx_bytes_from(lattice->seals.items[n].bytes, sizeof(cx_digest)));
    cx_buf_add_z(out, "\"]");
}

static cx_digest digest_sorted(cx_str *lines, size_t count)
{
    cx_sha256 hash;
    cx_lattice_sort_ids(lines, count);
    cx_sha256_init(&hash);
    for (size_t i = 0; i < count; i++) {
        if (i != 0)
            cx_sha256_add(&hash, "\n", 1);
        cx_sha256_add(&hash, lines[i].data, lines[i].size);
    }
    return cx_sha256_end(&hash);
}

cx_status cx_lattice_root(const cx_lattice *lattice, cx_digest *out, cx_err *err)
{
    if (!lattice->keep_seals)
        return cx_fail(err, CX_E_USAGE, "an anchor needs a lattice opened with keep_seals");
    cx_buf text;
    size_t node_count = lattice->nodes.count, count = 0;
    cx_str *lines = cx_alloc_zeroed(lattice->alloc, node_count + 1, sizeof *lines);
    cx_status status = CX_SUCCESS;
    cx_buf_init(&text, lattice->alloc);
    if (lines == NULL)
        CX_TRY_GOTO(status, cx_fail_nomem(err));
    for (cx_node n = 0; n < node_count; n++) {
        if (!in_graph(node_at(lattice, n)))
            continue;
        size_t start = text.size;
        write_line(&text, lattice, n);
        lines[count++].size = text.size - start;
    }
    CX_TRY_GOTO(status, cx_buf_check(&text, err));
    const char *at = (const char *)text.data;
    for (size_t i = 0; i < count; at += lines[i++].size)
        lines[i].data = at;
    *out = digest_sorted(lines, count);
done:
    cx_alloc_free(lattice->alloc, lines, (node_count + 1) * sizeof *lines);
    cx_buf_done(&text);
    return status;
}

cx_status cx_lattice_anchor_json(cx_buf *out, const cx_lattice *lattice, cx_err *err)
{
    cx_digest root;
    CX_TRY(cx_lattice_root(lattice, &root, err));
    size_t count = lattice->agents.count, used = 0;
    cx_str *names = cx_alloc_zeroed(lattice->alloc, count + 1, sizeof *names);
    if (names == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < count; i++)
        if (cx_lattice_head_of(lattice, i) != CX_NODE_NONE)
            names[used++] = lattice->agents.items[i].name;
    cx_lattice_sort_ids(names, used);
    cx_buf_add_z(out, "{\"cortex_anchor\":1,\"heads\":{");
    for (size_t i = 0; i < used; i++) {
        char scratch[64];
        cx_node head = cx_lattice_head_of(lattice, cx_lattice_find_agent(lattice, names[i]));
        if (i != 0)
            cx_buf_add_byte(out, ',');
        cx_json_write_str(out, names[i], CX_JSON_PY_COMPACT);
        cx_buf_add_byte(out, ':');
        cx_json_write_str(out, cx_lattice_hash_text(lattice, head, scratch), CX_JSON_PY_COMPACT);
    }
    cx_alloc_free(lattice->alloc, names, (count + 1) * sizeof *names);
    cx_buf_printf(out, "},\"nodes\":%zu,\"root\":\"", lattice->nodes.count);
    cx_hex_add(out, cx_bytes_from(root.bytes, sizeof root.bytes));
    cx_buf_add_z(out, "\"}\n");
    return cx_buf_check(out, err);
}

static cx_status fail_anchor(cx_err *err, const char *what)
{
    return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                      "not an anchor: expected %s; make one with `cortex lattice anchor FILE`",
                      what);
}

cx_status cx_lattice_anchor_parse(cx_str text, cx_arena *arena, cx_lattice_anchor *out, cx_err *err)
{
    cx_json value;
    int64_t version;
    CX_TRY(cx_json_parse_text(text, arena, &value, err));
    const cx_json *mark = CX_JSON_GET(&value, "cortex_anchor");
    if (mark == NULL || !cx_json_int64(mark, &version) || version != 1)
        return fail_anchor(err, "\"cortex_anchor\":1");
    const cx_json *heads = cx_json_get_typed(&value, CX_STR("heads"), CX_JSON_OBJECT);
    if (heads == NULL)
        return fail_anchor(err, "/heads, an object of agents and hashes");
    const cx_json *nodes = CX_JSON_GET(&value, "nodes");
    if (nodes == NULL || !cx_json_uint64(nodes, &out->nodes))
        return fail_anchor(err, "/nodes, a count");
    if (!cx_digest_parse(CX_JSON_GET_STR(&value, "root"), &out->root))
        return fail_anchor(err, "/root, 64 lower-case hex digits");
    cx_lattice_head *list = CX_ARENA_ARRAY(arena, cx_lattice_head, heads->count + 1);
    if (list == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < heads->count; i++) {
        const cx_json_member *member = &heads->members[i];
        if (member->value.type != CX_JSON_STRING)
            return fail_anchor(err, "each of /heads to be a hash");
        list[i] = (cx_lattice_head){cx_json_text(&member->name), cx_json_text(&member->value)};
    }
    out->heads = list;
    out->head_count = heads->count;
    out->whole = true;
    return CX_SUCCESS;
}

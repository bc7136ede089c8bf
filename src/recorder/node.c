/*
 * node.c - writes nodes of lattices (lattice.md §2, §3, §5.1).
 */
#include "recorder/node.h"

#include <stdio.h>

#include "crypto/api.h"
#include "lattice/api.h"

#define VERSION "2.0.0"
#define SECOND_NS INT64_C(1000000000)

static void hash_of(cx_bytes bytes, char out[CX_NODE_HASH_SIZE])
{
    const cx_digest digest = cx_digest_of(bytes);
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), out);
}

cx_status cx_node_seconds(int64_t ns, cx_arena *arena, cx_json *out, cx_err *err)
{
    char text[40];
    int64_t seconds = ns / SECOND_NS, rest = ns % SECOND_NS;
    int size = snprintf(text, sizeof text, "%lld", (long long)seconds);
    if (rest != 0) {
        size += snprintf(text + size, sizeof text - (size_t)size, ".%09lld", (long long)rest);
        while (text[size - 1] == '0')
            size--;
    }
    cx_str copy = cx_arena_copy_str(arena, cx_str_from(text, (size_t)size));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    return cx_json_parse_text(copy, arena, out, err);
}

cx_status cx_node_memory(cx_str name, cx_json value, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json memory;
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list_put(&list, name, value);
    CX_TRY(cx_json_list_end_object(&list, &memory, err));
    list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("memory"), memory);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_node_digest(const cx_json *value, cx_arena *arena, cx_buf *scratch, cx_str *out,
                         cx_err *err)
{
    char hex[CX_NODE_HASH_SIZE];
    cx_buf_clear(scratch);
    CX_TRY(cx_json_write(scratch, value, CX_JSON_PY_COMPACT, err));
    CX_TRY(cx_buf_check(scratch, err));
    hash_of(cx_buf_bytes(scratch), hex);
    *out = cx_arena_copy_str(arena, cx_str_from(hex, sizeof hex));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static void write_parents(const cx_node_draft *draft, cx_buf *out)
{
    cx_buf_add_z(out, "\",\"parents\":[");
    for (size_t i = 0; i < draft->parent_count; i++) {
        cx_buf_add_z(out, i == 0 ? "\"" : ",\"");
        cx_buf_add_str(out, draft->parents[i]);
        cx_buf_add_byte(out, '"');
    }
    cx_buf_add_z(out, "],\"prev_hash\":\"");
    cx_buf_add_str(out, draft->prev_hash);
}

static cx_status write_line(const cx_node_draft *draft, const cx_json *event, cx_str hash,
                            cx_buf *out, cx_err *err)
{
    cx_buf_add_z(out, "{\"agent_id\":");
    cx_json_write_str(out, draft->agent_id, CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, ",\"event\":");
    CX_TRY(cx_json_write(out, event, CX_JSON_PY_COMPACT, err));
    cx_buf_add_z(out, ",\"fork_type\":");
    if (draft->fork.data == NULL)
        cx_buf_add_z(out, "null");
    else
        cx_json_write_str(out, draft->fork, CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, ",\"hash\":\"");
    cx_buf_add_str(out, hash);
    cx_buf_add_z(out, "\",\"node_id\":\"");
    cx_buf_add_str(out, hash);
    write_parents(draft, out);
    cx_buf_printf(out, "\",\"schema_version\":\"" VERSION "\",\"seq\":%lld", (long long)draft->seq);
    cx_buf_add_z(out, ",\"state_delta\":");
    CX_TRY(cx_json_write(out, &draft->delta, CX_JSON_PY_COMPACT, err));
    cx_buf_add_z(out, ",\"timestamp\":");
    cx_buf_add_str(out, cx_json_text(&draft->timestamp));
    cx_buf_add_z(out, "}\n");
    return cx_buf_check(out, err);
}

cx_status cx_node_write(cx_node_draft *draft, cx_arena *arena, cx_buf *preimage, cx_buf *out,
                        char hash[CX_NODE_HASH_SIZE], cx_err *err)
{
    char seal[CX_NODE_HASH_SIZE];
    cx_json event;
    cx_buf_clear(preimage);
    CX_TRY(cx_lattice_seal_preimage(preimage, draft->fork, &draft->delta, &draft->timestamp, err));
    CX_TRY(cx_buf_check(preimage, err));
    hash_of(cx_buf_bytes(preimage), seal);
    cx_str stored = cx_arena_copy_str(arena, cx_str_from(seal, sizeof seal));
    if (stored.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list_put(&draft->event, CX_STR("__seal"), cx_json_make_str(stored));
    CX_TRY(cx_json_list_end_object(&draft->event, &event, err));
    const cx_lattice_fields fields = {.prev_hash = draft->prev_hash,
                                      .event = &event,
                                      .seq = draft->seq,
                                      .agent_id = draft->agent_id,
                                      .schema_version = CX_STR(VERSION),
                                      .parents = draft->parents,
                                      .parent_count = draft->parent_count};
    cx_buf_clear(preimage);
    CX_TRY(cx_lattice_preimage(preimage, &fields, err));
    CX_TRY(cx_buf_check(preimage, err));
    hash_of(cx_buf_bytes(preimage), hash);
    return write_line(draft, &event, cx_str_from(hash, CX_NODE_HASH_SIZE), out, err);
}

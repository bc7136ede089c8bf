/*
 * reach_answer.c - the answer to `reach` (lattice.md §8).
 *
 *   {"carries":[{"agent","by":["call"|"text"],"keys":[..],"node","seq","text"}],"cut","follows":N,
 *    "node":ID,"size":N,"total":N,"verified":B}
 *   NODE AGENT#SEQ (text, call) KEY, KEY: what they share
 */
#include "lattice/answer.h"

static void carrier_json(cx_buf *out, const cx_lattice *lattice, const reach_carrier *carrier)
{
    cx_buf_add_z(out, "{\"agent\":");
    cx_answer_str(out, cx_lattice_agent_label(lattice, carrier->which));
    cx_answer_reach_members(out, carrier);
    cx_buf_add_z(out, ",\"node\":");
    cx_answer_node_str(out, lattice, carrier->which);
    cx_buf_printf(out, ",\"seq\":%lld,\"text\":", (long long)node_at(lattice, carrier->which)->seq);
    cx_answer_str(out, carrier->text);
    cx_buf_add_byte(out, '}');
}

void cx_answer_reach_members(cx_buf *out, const reach_carrier *carrier)
{
    cx_buf_printf(out, ",\"by\":[%s%s%s],\"keys\":[", carrier->by_call ? "\"call\"" : "",
                  carrier->by_call && carrier->by_text ? "," : "",
                  carrier->by_text ? "\"text\"" : "");
    for (size_t i = 0; i < carrier->key_count; i++) {
        if (i != 0)
            cx_buf_add_byte(out, ',');
        cx_answer_str(out, carrier->keys[i]);
    }
    cx_buf_add_byte(out, ']');
}

static void carrier_text(cx_buf *out, const cx_lattice *lattice, const reach_carrier *carrier)
{
    cx_answer_node_name(out, lattice, carrier->which);
    cx_buf_add_byte(out, ' ');
    cx_answer_name(out, cx_lattice_agent_label(lattice, carrier->which));
    cx_buf_printf(out, "#%lld (%s)", (long long)node_at(lattice, carrier->which)->seq,
                  !carrier->by_text ? "call" : (carrier->by_call ? "text and call" : "text"));
    for (size_t i = 0; i < carrier->key_count; i++) {
        cx_buf_add_z(out, i == 0 ? " " : ", ");
        cx_answer_name(out, carrier->keys[i]);
    }
    if (carrier->text.size != 0) {
        cx_buf_add_z(out, ": ");
        cx_answer_name(out, carrier->text);
    }
    cx_buf_add_byte(out, '\n');
}

static void put_text(cx_buf *out, const cx_lattice *lattice, const lattice_reach *reach)
{
    for (size_t i = 0; i < reach->listed; i++)
        carrier_text(out, lattice, &reach->carriers[i]);
    if (reach->carrier_count > reach->listed)
        cx_buf_printf(out, "%lu more carry its text and are not listed.\n",
                      (unsigned long)(reach->carrier_count - reach->listed));
    cx_buf_printf(out, "%lu %s after it; %lu of them carr%s its text or its call.\n",
                  (unsigned long)reach->follow_count,
                  reach->follow_count == 1 ? "step comes" : "steps come",
                  (unsigned long)reach->carrier_count, reach->carrier_count == 1 ? "ies" : "y");
    if (reach->is_cut)
        cx_buf_printf(out, "Of its %lu bytes of text the first %lu were compared.\n",
                      (unsigned long)reach->size, (unsigned long)REACH_BYTES);
}

static void put_json(cx_buf *out, const cx_lattice *lattice, cx_node which,
                     const lattice_reach *reach, const cx_answer_options *options)
{
    cx_buf_add_z(out, "{\"carries\":[");
    for (size_t i = 0; i < reach->listed; i++) {
        if (i != 0)
            cx_buf_add_byte(out, ',');
        carrier_json(out, lattice, &reach->carriers[i]);
    }
    cx_buf_printf(out, "],\"cut\":%s,\"follows\":%lu,\"node\":", reach->is_cut ? "true" : "false",
                  (unsigned long)reach->follow_count);
    cx_answer_node_str(out, lattice, which);
    cx_buf_printf(out, ",\"size\":%lu,\"total\":%lu,", (unsigned long)reach->size,
                  (unsigned long)reach->carrier_count);
    cx_answer_end(out, options);
}

cx_status cx_lattice_answer_reach(cx_buf *out, const cx_lattice *lattice, cx_node which,
                                  const cx_answer_options *options, cx_err *err)
{
    cx_arena arena;
    lattice_reach reach;
    cx_arena_init(&arena, lattice->alloc, 0);
    cx_status status = cx_lattice_reach(lattice, which, &arena, &reach, err);
    if (!cx_failed(status)) {
        if (options->json)
            put_json(out, lattice, which, &reach, options);
        else
            put_text(out, lattice, &reach);
        status = cx_buf_check(out, err);
    }
    cx_arena_done(&arena);
    return status;
}

/*
 * why.c - where a key got its value: every change among a node and all its ancestors (§8).
 *
 *   {"changes":[{"agent","new","node","old","section","seq","via"}],"key":K,"node":ID,"verified":B}
 *   NODE AGENT#SEQ section.key: OLD -> NEW (via)
 *
 * Latest in topological order first, within a node memory before beliefs.  A change is a value that
 * differs from the one after the lineage parent; `via` is `delta` when the node's own delta names
 * the key in that section, else `merge`.  States share structure, so where a section did not change
 * its pointer says so and nothing is looked up.
 */
#include "lattice/ancestors.h"
#include "lattice/answer.h"
#include "lattice/state.h"

typedef struct why_query {
    const cx_states *states;
    cx_str key;
    cx_str spelled; /* the key as canonical JSON spells it, without its quotes */
    bool in_section[SECTION_COUNT];
    const cx_answer_options *options;
    tree_work work;
    cx_buf *out;
    size_t change_count;
} why_query;

static bool write_value(why_query *query, const char *before, cx_value v)
{
    cx_buf_add_z(query->out, before);
    return cx_tree_write(&query->work, v, query->out);
}

static bool change_json(why_query *query, cx_node which, state_section section, cx_value old_value,
                        cx_value new_value, const char *via)
{
    const cx_lattice *lattice = query->states->lattice;
    cx_buf *out = query->out;
    cx_buf_add_z(out, query->change_count == 0 ? "{\"agent\":" : ",{\"agent\":");
    cx_answer_str(out, cx_lattice_agent_label(lattice, which));
    bool ok = value_is_absent(new_value) || write_value(query, ",\"new\":", new_value);
    cx_buf_add_z(out, ",\"node\":");
    cx_answer_node_str(out, lattice, which);
    ok = ok && (value_is_absent(old_value) || write_value(query, ",\"old\":", old_value));
    cx_buf_add_z(out, ",\"section\":\"");
    cx_buf_add_str(out, cx_state_section_name(section));
    cx_buf_printf(out, "\",\"seq\":%lld,\"via\":\"%s\"}", (long long)node_at(lattice, which)->seq,
                  via);
    return ok;
}

static bool change_text(why_query *query, cx_node which, state_section section, cx_value old_value,
                        cx_value new_value, const char *via)
{
    const cx_lattice *lattice = query->states->lattice;
    cx_buf *out = query->out;
    cx_answer_node_name(out, lattice, which);
    cx_buf_add_byte(out, ' ');
    cx_answer_name(out, cx_lattice_agent_label(lattice, which));
    cx_buf_printf(out, "#%lld ", (long long)node_at(lattice, which)->seq);
    cx_buf_add_str(out, cx_state_section_name(section));
    cx_buf_add_byte(out, '.');
    cx_answer_name(out, query->key);
    bool ok = write_value(query, ": ",
                          value_is_absent(old_value) ? value_of_text(CX_STR("-")) : old_value);
    ok = ok && write_value(query, " -> ",
                           value_is_absent(new_value) ? value_of_text(CX_STR("-")) : new_value);
    cx_buf_printf(out, " (%s)\n", via);
    return ok;
}

/* Reports a section of a node when the key's value changed there. */
static bool compare_section(why_query *query, cx_node which, state_section section,
                            const tree *before, const tree *after)
{
    if (before == after)
        return true;
    cx_value old_value = tree_value(cx_tree_find(before, query->key));
    cx_value new_value = tree_value(cx_tree_find(after, query->key));
    bool equal;
    if (!cx_tree_equal(&query->work, old_value, new_value, &equal))
        return false;
    if (equal)
        return true;
    cx_str delta = query->states->lattice->deltas.items[which];
    const char *via = cx_delta_names(delta, section, query->spelled) ? "delta" : "merge";
    bool ok = query->options->json ? change_json(query, which, section, old_value, new_value, via)
                                   : change_text(query, which, section, old_value, new_value, via);
    query->change_count++;
    return ok;
}

static bool visit_node(why_query *query, cx_node which)
{
    const cx_states *states = query->states;
    cx_node lineage = node_at(states->lattice, which)->lineage;
    const state *after = cx_states_at(states, which);
    state before = lineage == CX_NODE_NONE ? cx_state_empty() : *cx_states_at(states, lineage);
    return (!query->in_section[SECTION_MEMORY] ||
            compare_section(query, which, SECTION_MEMORY, before.memory, after->memory)) &&
           (!query->in_section[SECTION_BELIEFS] ||
            compare_section(query, which, SECTION_BELIEFS, before.beliefs, after->beliefs));
}

static cx_status visit_history(why_query *query, cx_node which, cx_err *err)
{
    const cx_lattice *lattice = query->states->lattice;
    size_t words = ((size_t)lattice->order_count + 63) / 64;
    uint64_t *bits = cx_alloc_zeroed(query->states->alloc, words, sizeof *bits);
    if (bits == NULL)
        return cx_fail_nomem(err);
    bits[lattice->position[which] / 64] |= UINT64_C(1) << (lattice->position[which] % 64);
    cx_lattice_mark_ancestors(lattice, bits);
    bool ok = true;
    for (size_t word = words; ok && word-- > 0;)
        for (unsigned bit = 64; ok && bit-- > 0;)
            if ((bits[word] >> bit & 1) != 0)
                ok = visit_node(query, lattice->order[64 * word + bit]);
    cx_alloc_free(query->states->alloc, bits, words * sizeof *bits);
    return ok ? CX_SUCCESS : cx_fail_nomem(err);
}

static cx_status answer_why(why_query *query, cx_node which, cx_err *err)
{
    if (query->options->json)
        cx_buf_add_z(query->out, "{\"changes\":[");
    CX_TRY(visit_history(query, which, err));
    if (query->options->json) {
        cx_buf_add_z(query->out, "],\"key\":");
        cx_answer_str(query->out, query->key);
        cx_buf_add_z(query->out, ",\"node\":");
        cx_answer_node_str(query->out, query->states->lattice, which);
        cx_buf_add_byte(query->out, ',');
        cx_answer_end(query->out, query->options);
    }
    return cx_buf_check(query->out, err);
}

cx_status cx_lattice_answer_why(cx_buf *out, const cx_states *states, cx_node which, cx_str key,
                                cx_str section, const cx_answer_options *options, cx_err *err)
{
    state target;
    why_query query = {.states = states, .key = key, .options = options, .out = out};
    query.in_section[SECTION_MEMORY] = section.size == 0 || cx_str_eq(section, CX_STR("memory"));
    query.in_section[SECTION_BELIEFS] = section.size == 0 || cx_str_eq(section, CX_STR("beliefs"));
    if (!query.in_section[SECTION_MEMORY] && !query.in_section[SECTION_BELIEFS])
        return cx_fail(err, CX_E_USAGE, "a section is memory or beliefs: found '%.*s'",
                       (int)(section.size > 80 ? 80 : section.size), section.data);
    CX_TRY(cx_states_get(states, which, false, &target, err));
    cx_buf spelled;
    cx_buf_init(&spelled, states->alloc);
    cx_tree_work_init(&query.work, states->alloc);
    cx_answer_str(&spelled, key);
    cx_status status = cx_buf_check(&spelled, err);
    if (!cx_failed(status)) {
        query.spelled = cx_str_from((const char *)spelled.data + 1, spelled.size - 2);
        status = answer_why(&query, which, err);
    }
    cx_tree_work_done(&query.work);
    cx_buf_done(&spelled);
    return status;
}

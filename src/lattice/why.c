/*
 * why.c - where a key got its value: every change among a node and all its ancestors (§8).
 *
 *   {"changes":[{"agent","because"?,"new","node","old","section","seq","source"?,"text"?,
 *    "thinking"?,"via"}],"key":K,"node":ID,"verified":B}
 *   NODE AGENT#SEQ section.key: OLD -> NEW (via)
 *       because|thinking|text|from: ...
 *
 * Latest in topological order first, within a node memory before beliefs.  A change is a value that
 * differs from the one after the lineage parent; `via` is `delta` when the node's own delta names
 * the key in that section, else `merge`.  States share structure, so where a section did not change
 * its pointer says so and nothing is looked up.
 *
 * K is a top-level key; or, when that was never there, memory.order.limit or a JSON pointer, which
 * why_path.c takes apart.  For these a change is one of the text of what the pointer names.
 */
#include "lattice/ancestors.h"
#include "lattice/answer.h"
#include "lattice/state.h"

/* Where in the answer what is known only at its end belongs. */
typedef struct reason_gap {
    size_t because, others; /* text: `others` alone */
} reason_gap;

typedef struct why_query {
    const cx_states *states;
    cx_str key;
    cx_str spelled; /* the key as canonical JSON spells it, without its quotes */
    bool in_section[SECTION_COUNT];
    const cx_answer_options *options;
    tree_work work;
    const why_path *paths; /* one a section, in place of the key */
    cx_buf texts[2];       /* before, after */
    cx_buf *out;
    size_t change_count;
    cx_arena *arena;
    cx_buf value; /* scratch */
    CX_VEC(change_reason) reasons;
    CX_VEC(reason_gap) gaps; /* of each of them */
} why_query;

static bool copy_value(why_query *query, cx_value value, cx_str *out)
{
    if (value_is_absent(value))
        return true;
    cx_buf_clear(&query->value);
    if (!cx_tree_write(&query->work, value, &query->value) || query->value.failed)
        return false;
    if (query->value.size <= CHANGE_VALUE_MAX)
        *out = cx_arena_copy_str(query->arena, cx_buf_str(&query->value));
    return query->value.size > CHANGE_VALUE_MAX || out->data != NULL;
}

/* A change that a node made by itself, for its reason to be found. */
static bool note_reason(why_query *query, cx_node which, cx_value old_value, cx_value new_value)
{
    const cx_alloc *alloc = query->states->alloc;
    if (!query->options->reasons || query->reasons.count == CHANGE_REASONS_MAX)
        return true;
    change_reason *reason = cx_vec_push(&query->reasons, alloc);
    reason_gap *gap = cx_vec_push(&query->gaps, alloc);
    if (reason == NULL || gap == NULL)
        return false;
    *reason = (change_reason){.which = which, .source = CX_NODE_NONE};
    *gap = (reason_gap){0};
    if (query->reasons.count > CHANGE_SOURCES_MAX)
        return true;
    return copy_value(query, new_value, &reason->value) &&
           copy_value(query, old_value, &reason->old);
}

static bool write_value(why_query *query, const char *before, cx_value v)
{
    cx_buf_add_z(query->out, before);
    return cx_tree_write(&query->work, v, query->out);
}

static bool change_json(why_query *query, cx_node which, state_section section, cx_value old_value,
                        cx_value new_value, const char *via, reason_gap *gap)
{
    const cx_lattice *lattice = query->states->lattice;
    cx_buf *out = query->out;
    cx_buf_add_z(out, query->change_count == 1 ? "{\"agent\":" : ",{\"agent\":");
    cx_answer_str(out, cx_lattice_agent_label(lattice, which));
    gap->because = out->size;
    bool ok = value_is_absent(new_value) || write_value(query, ",\"new\":", new_value);
    cx_buf_add_z(out, ",\"node\":");
    cx_answer_node_str(out, lattice, which);
    ok = ok && (value_is_absent(old_value) || write_value(query, ",\"old\":", old_value));
    cx_buf_add_z(out, ",\"section\":\"");
    cx_buf_add_str(out, cx_state_section_name(section));
    cx_buf_printf(out, "\",\"seq\":%lld", (long long)node_at(lattice, which)->seq);
    gap->others = out->size;
    cx_buf_printf(out, ",\"via\":\"%s\"}", via);
    return ok;
}

static bool change_text(why_query *query, cx_node which, state_section section, cx_value old_value,
                        cx_value new_value, const char *via, reason_gap *gap)
{
    const cx_lattice *lattice = query->states->lattice;
    cx_buf *out = query->out;
    cx_answer_node_name(out, lattice, which);
    cx_buf_add_byte(out, ' ');
    cx_answer_name(out, cx_lattice_agent_label(lattice, which));
    cx_buf_printf(out, "#%lld ", (long long)node_at(lattice, which)->seq);
    if (query->paths != NULL) {
        cx_answer_name(out, query->paths[section].pointer);
    } else {
        cx_buf_add_str(out, cx_state_section_name(section));
        cx_buf_add_byte(out, '.');
        cx_answer_name(out, query->key);
    }
    bool ok = write_value(query, ": ",
                          value_is_absent(old_value) ? value_of_text(CX_STR("-")) : old_value);
    ok = ok && write_value(query, " -> ",
                           value_is_absent(new_value) ? value_of_text(CX_STR("-")) : new_value);
    cx_buf_printf(out, " (%s)\n", via);
    gap->because = gap->others = out->size;
    return ok;
}

static bool report_change(why_query *query, cx_node which, state_section section,
                          cx_value old_value, cx_value new_value, const char *via)
{
    query->change_count++;
    if (query->change_count == 1 && query->options->json)
        cx_buf_add_z(query->out, "{\"changes\":[");
    reason_gap gap = {0};
    size_t count = query->gaps.count;
    bool ok = strcmp(via, "delta") != 0 || note_reason(query, which, old_value, new_value);
    ok = ok && (query->options->json
                    ? change_json(query, which, section, old_value, new_value, via, &gap)
                    : change_text(query, which, section, old_value, new_value, via, &gap));
    if (ok && query->gaps.count != count)
        query->gaps.items[count] = gap;
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
    return report_change(query, which, section, old_value, new_value, via);
}

/* The same of what a path names: by its text, for it may be inside an array. */
static bool compare_path(why_query *query, cx_node which, state_section section,
                         const state *before, const state *after)
{
    const why_path *path = &query->paths[section];
    cx_value values[2] = {VALUE_ABSENT, VALUE_ABSENT};
    if (!path->is_asked || value_is_same(cx_state_section_value(before, section),
                                         cx_state_section_value(after, section)))
        return true;
    for (size_t i = 0; i < 2; i++) {
        bool there;
        if (!cx_why_path_text(path, i == 0 ? before : after, &query->work, &query->texts[i],
                              &there))
            return false;
        if (there)
            values[i] = value_of_text(cx_buf_str(&query->texts[i]));
    }
    if (value_is_absent(values[0]) && value_is_absent(values[1]))
        return true;
    if (value_is_same(values[0], values[1]))
        return true;
    const char *via =
        cx_why_path_in_delta(path, section, query->states->lattice->deltas.items[which]) ? "delta"
                                                                                         : "merge";
    return report_change(query, which, section, values[0], values[1], via);
}

static bool visit_node(why_query *query, cx_node which)
{
    const cx_states *states = query->states;
    cx_node lineage = node_at(states->lattice, which)->lineage;
    const state *after = cx_states_at(states, which);
    state before = lineage == CX_NODE_NONE ? cx_state_empty() : *cx_states_at(states, lineage);
    static const state_section order[SECTION_COUNT] = {SECTION_MEMORY, SECTION_BELIEFS,
                                                       SECTION_GOALS, SECTION_CONTEXT_STACK};
    for (size_t i = 0; query->paths != NULL && i < SECTION_COUNT; i++)
        if (!compare_path(query, which, order[i], &before, after))
            return false;
    if (query->paths != NULL)
        return true;
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

/* By the key itself; when that was never there, by what it says as a path. */
static cx_status visit_for_key(why_query *query, cx_node which, cx_str section, cx_arena *arena,
                               cx_err *err)
{
    why_path *paths;
    bool is_path;
    CX_TRY(visit_history(query, which, err));
    if (query->change_count != 0)
        return CX_SUCCESS;
    CX_TRY(cx_why_path_parse(query->key, section, arena, &paths, &is_path, err));
    if (is_path) {
        query->paths = paths;
        CX_TRY(visit_history(query, which, err));
    }
    if (query->change_count != 0)
        return CX_SUCCESS;
    if (!query->options->allow_absent)
        return cx_why_no_key(query->states, which, query->key, section, arena, err);
    if (query->options->json)
        cx_buf_add_z(query->out, "{\"changes\":[");
    return CX_SUCCESS;
}

/* --- reasons ---------------------------------------------------------------------------------- */

static void put_said_json(cx_buf *out, const char *name, cx_str text)
{
    if (text.size == 0)
        return;
    cx_buf_printf(out, ",\"%s\":", name);
    cx_answer_str(out, text);
}

static void others_json(cx_buf *out, const cx_lattice *lattice, const change_reason *reason)
{
    if (reason->source != CX_NODE_NONE) {
        cx_buf_add_z(out, ",\"source\":{\"agent\":");
        cx_answer_str(out, cx_lattice_agent_label(lattice, reason->source));
        cx_buf_add_z(out, ",\"node\":");
        cx_answer_node_str(out, lattice, reason->source);
        cx_buf_printf(out, ",\"seq\":%lld", (long long)node_at(lattice, reason->source)->seq);
        put_said_json(out, "text", reason->source_text);
        cx_buf_add_byte(out, '}');
    }
    put_said_json(out, "text", reason->text);
    put_said_json(out, "thinking", reason->thinking);
}

static void put_said_text(cx_buf *out, const char *name, cx_str text)
{
    if (text.size == 0)
        return;
    cx_buf_printf(out, "    %s: ", name);
    cx_answer_name(out, text);
    cx_buf_add_byte(out, '\n');
}

static void others_text(cx_buf *out, const cx_lattice *lattice, const change_reason *reason)
{
    put_said_text(out, "because", reason->because);
    put_said_text(out, "thinking", reason->thinking);
    put_said_text(out, "text", reason->text);
    if (reason->source == CX_NODE_NONE)
        return;
    cx_buf_add_z(out, "    from: ");
    cx_answer_name(out, cx_lattice_agent_label(lattice, reason->source));
    cx_buf_printf(out, "#%lld: ", (long long)node_at(lattice, reason->source)->seq);
    cx_answer_name(out, reason->source_text);
    cx_buf_add_byte(out, '\n');
}

/* Writes the answer again, with what belongs into its gaps. */
static void fill_gaps(why_query *query, const cx_buf *answer)
{
    const cx_lattice *lattice = query->states->lattice;
    cx_buf *out = query->out;
    size_t at = out->size;
    for (size_t i = 0; i < query->gaps.count; i++) {
        const reason_gap *gap = &query->gaps.items[i];
        const change_reason *reason = &query->reasons.items[i];
        cx_buf_add(out, answer->data + at, gap->because - at);
        if (query->options->json)
            put_said_json(out, "because", reason->because);
        cx_buf_add(out, answer->data + gap->because, gap->others - gap->because);
        if (query->options->json)
            others_json(out, lattice, reason);
        else
            others_text(out, lattice, reason);
        at = gap->others;
    }
    cx_buf_add(out, answer->data + at, answer->size - at);
}

static cx_status put_reasons(why_query *query, size_t start, cx_err *err)
{
    cx_buf answer;
    CX_TRY(cx_buf_check(query->out, err));
    CX_TRY(cx_change_reasons(query->states->lattice, query->reasons.items, query->reasons.count,
                             query->arena, err));
    cx_buf_init(&answer, query->states->alloc);
    cx_buf_add(&answer, query->out->data, query->out->size);
    cx_status status = cx_buf_check(&answer, err);
    if (!cx_failed(status)) {
        query->out->size = start;
        fill_gaps(query, &answer);
    }
    cx_buf_done(&answer);
    return status;
}

static cx_status answer_why(why_query *query, cx_node which, cx_str section, cx_arena *arena,
                            cx_err *err)
{
    size_t start = query->out->size;
    query->arena = arena;
    CX_TRY(visit_for_key(query, which, section, arena, err));
    if (query->reasons.count != 0)
        CX_TRY(put_reasons(query, start, err));
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
    cx_arena arena;
    cx_arena_init(&arena, states->alloc, 0);
    cx_buf_init(&spelled, states->alloc);
    cx_buf_init(&query.value, states->alloc);
    cx_buf_init(&query.texts[0], states->alloc);
    cx_buf_init(&query.texts[1], states->alloc);
    cx_tree_work_init(&query.work, states->alloc);
    cx_answer_str(&spelled, key);
    cx_status status = cx_buf_check(&spelled, err);
    if (!cx_failed(status)) {
        query.spelled = cx_str_from((const char *)spelled.data + 1, spelled.size - 2);
        status = answer_why(&query, which, section, &arena, err);
    }
    cx_tree_work_done(&query.work);
    cx_vec_done(&query.reasons, states->alloc);
    cx_vec_done(&query.gaps, states->alloc);
    cx_buf_done(&query.value);
    cx_buf_done(&query.texts[0]);
    cx_buf_done(&query.texts[1]);
    cx_buf_done(&spelled);
    cx_arena_done(&arena);
    return status;
}

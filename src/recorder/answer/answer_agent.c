/*
 * answer_agent.c - answers about all traces of an agent: audit chain, wakeups, capacity.
 */
#include "recorder/answer/reply.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

/* --- chain, wakeup ---------------------------------------------------------------------------- */

/* A profile that a key of the agent names, when one does. */
static cx_status read_profile(cx_recorder *recorder, cx_str agent, cx_chain_profile *out,
                              cx_err *err)
{
    cx_trust_view *view;
    CX_TRY(cx_recorder_trust_acquire(recorder, &view, err));
    for (size_t i = 0; i < view->trust.count; i++) {
        const cx_trust_key *key = &view->trust.keys[i];
        bool names_agent = false;
        for (size_t k = 0; k < key->agent_count; k++)
            names_agent |= cx_str_eq(key->agents[k], agent);
        if (names_agent && key->chain_profile.data != NULL)
            (void)cx_chain_profile_parse(key->chain_profile, out);
    }
    cx_recorder_trust_release(recorder, view);
    return CX_SUCCESS;
}

cx_status cx_recorder_chain(cx_recorder *recorder, cx_index *index, cx_str agent,
                            const cx_chain_options *options, cx_arena *arena, cx_chain_report *out,
                            cx_err *err)
{
    const cx_chain_entry *entries;
    size_t count = 0;
    cx_chain_options used = *options;
    used.infer_actions = true;
    if (used.profile == CX_CHAIN_AUTO)
        CX_TRY(read_profile(recorder, agent, &used.profile, err));
    CX_TRY(cx_index_chain(index, agent, arena, &entries, &count, err));
    return cx_chain_check(entries, count, &used, arena, out, err);
}

/* Entries on both sides, so that the profile can be recognised by a link. */
#define CHAIN_CONTEXT 16

/* The least number after `last`, or `last`. */
static int64_t successor_of(const cx_chain_entry *entries, size_t count, int64_t last)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (entries[i].seq > last && entries[i].seq < next)
            next = entries[i].seq;
    return next == INT64_MAX ? last : next;
}

static bool is_about(const cx_chain_finding *finding, int64_t first, int64_t last, int64_t after)
{
    return finding->kind == CX_CHAIN_GAP ? finding->next >= first && finding->seq <= last
                                         : finding->seq >= first && finding->seq <= after;
}

cx_status cx_recorder_chain_near(cx_recorder *recorder, cx_index *index, cx_str agent,
                                 int64_t first, int64_t last, cx_arena *arena, cx_chain_report *out,
                                 cx_err *err)
{
    const cx_chain_entry *entries;
    size_t count = 0, kept = 0;
    cx_chain_options options = {.profile = CX_CHAIN_AUTO, .infer_actions = true};
    CX_TRY(read_profile(recorder, agent, &options.profile, err));
    CX_TRY(cx_index_chain_near(index, agent, first, last, CHAIN_CONTEXT, arena, &entries, &count,
                               err));
    CX_TRY(cx_chain_check(entries, count, &options, arena, out, err));
    int64_t after = successor_of(entries, count, last);
    cx_chain_finding *findings = CX_ARENA_ARRAY(arena, cx_chain_finding, out->finding_count + 1);
    if (findings == NULL)
        return cx_fail_nomem(err);
    bool broken = false;
    for (size_t i = 0; i < out->finding_count; i++)
        if (is_about(&out->findings[i], first, last, after)) {
            findings[kept++] = out->findings[i];
            broken |= out->findings[i].kind != CX_CHAIN_UNCHECKED;
        }
    out->findings = findings;
    out->finding_count = kept;
    if (out->verdict == CX_BROKEN && !broken)
        out->verdict = CX_INDETERMINATE;
    return CX_SUCCESS;
}

cx_status cx_recorder_answer_chain(cx_recorder *recorder, cx_index *index, cx_str agent,
                                   const cx_chain_options *options, cx_buf *out,
                                   cx_verdict *out_verdict, cx_err *err)
{
    cx_arena arena;
    cx_chain_report report;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_status status = cx_recorder_chain(recorder, index, agent, options, &arena, &report, err);
    if (!cx_failed(status)) {
        *out_verdict = report.verdict;
        status = cx_chain_json(out, agent, &report, err);
    }
    cx_arena_done(&arena);
    return status;
}

/* A wakeup is a sequence of the five types; a repeated type begins the next. */
#define WAKEUP_COUNT 5
static const cx_str wakeup_types[WAKEUP_COUNT] = {
    CX_STR("VERIFY_IDENTITY"), CX_STR("VALIDATE_INTEGRITY"), CX_STR("EVALUATE_RESILIENCE"),
    CX_STR("ACCEPT_INCOMPLETENESS"), CX_STR("EXPRESS_GRATITUDE")};

static unsigned wakeup_at(cx_str type)
{
    unsigned at = 0;
    while (at < WAKEUP_COUNT && !cx_str_eq(type, wakeup_types[at]))
        at++;
    return at;
}

static const char *wakeup_state(const cx_wakeup_row *row)
{
    if (row == NULL)
        return "missing";
    if (!row->verified)
        return "unverified";
    bool failed = row->conscience_passed == CX_FALSE || row->action_success == CX_FALSE;
    return failed ? "failed" : "there";
}

static cx_status wakeup_json(const cx_wakeup_row *const found[WAKEUP_COUNT], cx_arena *arena,
                             bool *out_complete, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list types = cx_json_list_begin(arena);
    int64_t first = CX_TIME_NONE;
    *out_complete = true;
    for (unsigned i = 0; i < WAKEUP_COUNT; i++) {
        cx_json_list type = cx_json_list_begin(arena);
        cx_json value;
        const char *state = wakeup_state(found[i]);
        *out_complete &= strcmp(state, "there") == 0;
        cx_reply_z(&type, "state", state);
        cx_reply_text(&type, "trace_id", found[i] != NULL ? found[i]->trace_id : (cx_str){NULL, 0});
        CX_TRY(cx_json_list_end_object(&type, &value, err));
        cx_json_list_put(&types, wakeup_types[i], value);
        if (found[i] != NULL && (first == CX_TIME_NONE || found[i]->timestamp_ns < first))
            first = found[i]->timestamp_ns;
    }
    cx_reply_time(&list, "began_at", first);
    cx_reply_add(&list, "complete", cx_json_make_bool(*out_complete));
    CX_TRY(cx_reply_end_object(&list, "types", &types, err));
    return cx_json_list_end_object(&list, out, err);
}

static cx_status wakeups_json(cx_index *index, cx_str agent, cx_arena *arena, bool *out_complete,
                              cx_json *out, cx_err *err)
{
    const cx_wakeup_row *rows;
    size_t count = 0;
    cx_json wakeups;
    CX_TRY(cx_index_wakeups(index, agent, arena, &rows, &count, err));
    cx_json_list list = cx_json_list_begin(arena);
    *out_complete = count != 0;
    for (size_t i = 0; i < count;) {
        const cx_wakeup_row *found[WAKEUP_COUNT] = {NULL};
        cx_json value;
        bool complete;
        for (; i < count; i++) {
            unsigned at = wakeup_at(rows[i].trace_type);
            if (at == WAKEUP_COUNT)
                continue;
            if (found[at] != NULL)
                break;
            found[at] = &rows[i];
        }
        CX_TRY(wakeup_json(found, arena, &complete, &value, err));
        cx_json_list_add(&list, value);
        *out_complete &= complete;
    }
    CX_TRY(cx_json_list_end_array(&list, &wakeups, err));
    list = cx_json_list_begin(arena);
    cx_reply_text(&list, "agent", agent);
    cx_reply_add(&list, "complete", cx_json_make_bool(*out_complete));
    cx_reply_add(&list, "wakeups", wakeups);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_wakeup(cx_recorder *recorder, cx_index *index, cx_str agent,
                                    cx_buf *out, bool *out_complete, cx_err *err)
{
    cx_reply a;
    cx_json value;
    cx_reply_begin(&a, recorder->alloc, err);
    return cx_reply_end(&a, wakeups_json(index, agent, &a.arena, out_complete, &value, err), &value,
                        out);
}

/* --- capacity --------------------------------------------------------------------------------- */

static cx_status n_eff_json(const cx_n_eff *n, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json columns;
    cx_json_list list = cx_json_list_begin(arena);
    for (unsigned i = 0; i < n->columns_used; i++)
        cx_json_list_add(&list, cx_json_make_str(cx_str_z(n->columns[i])));
    CX_TRY(cx_json_list_end_array(&list, &columns, err));
    list = cx_json_list_begin(arena);
    cx_reply_uint(&list, "rows", n->rows_used);
    cx_reply_add(&list, "columns", columns);
    cx_reply_add(&list, "participation",
                 n->enough ? cx_json_make_double(arena, n->participation) : cx_json_make_null());
    cx_reply_add(&list, "entropy",
                 n->enough ? cx_json_make_double(arena, n->entropy) : cx_json_make_null());
    return cx_json_list_end_object(&list, out, err);
}

static cx_status capacity_json(cx_recorder *recorder, cx_index *index, cx_str agent,
                               cx_arena *arena, cx_json *out, cx_err *err)
{
    int64_t now = cx_recorder_now(recorder), from = now - CX_CAPACITY_DAYS * DAY_NS;
    cx_capacity_input input = {.now_ns = now};
    cx_capacity capacity;
    cx_chain_report chain;
    cx_n_eff n;
    cx_json n_value;
    cx_buf text;
    const cx_chain_options options = {.profile = CX_CHAIN_AUTO};
    CX_TRY(cx_index_scores(index, agent, from, now, arena, &input.rows, &input.count, err));
    CX_TRY(cx_index_scores(index, agent, from - CX_CAPACITY_DAYS * DAY_NS, from, arena,
                           &input.baseline, &input.baseline_count, err));
    CX_TRY(cx_index_received_count(index, agent, from, now, &input.received_count, err));
    CX_TRY(cx_recorder_chain(recorder, index, agent, &options, arena, &chain, err));
    input.chain = chain.verdict;
    CX_TRY(cx_capacity_compute(&input, arena, &capacity, err));
    CX_TRY(cx_n_eff_compute(input.rows, input.count, arena, &n, err));
    CX_TRY(n_eff_json(&n, arena, &n_value, err));
    cx_buf_init(&text, recorder->alloc);
    cx_status status = cx_capacity_json(&text, agent, &capacity, err);
    cx_str copy = cx_failed(status) ? CX_STR("") : cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    cx_json value;
    CX_TRY(cx_json_parse_text(copy, arena, &value, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; i < value.count; i++)
        cx_json_list_put(&list, cx_json_text(&value.members[i].name), value.members[i].value);
    cx_reply_add(&list, "n_eff", n_value);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_capacity(cx_recorder *recorder, cx_index *index, cx_str agent,
                                      cx_buf *out, cx_err *err)
{
    cx_reply a;
    cx_json value;
    cx_reply_begin(&a, recorder->alloc, err);
    return cx_reply_end(&a, capacity_json(recorder, index, agent, &a.arena, &value, err), &value,
                        out);
}

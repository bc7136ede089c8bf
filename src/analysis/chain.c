/*
 * chain.c - checks that an agent's audit entries form a chain (trace.md §5).
 *
 * Entries are sorted by (number, timestamp, arrival); those of one number are a *step*.  A link
 * holds when an entry's hash can be recomputed from any entry of the previous step, so both
 * branches of a fork are followed.  A trace that was sent twice counts once.
 */
#include "analysis/chain.h"

#include <stdlib.h>

#include "base/api.h"
#include "crypto/api.h"

/* At most this many entries of one number are compared with each other: an agent that signs more
 * has a broken chain anyway, and must not cause quadratic work. */
#define COMPARED_MAX 16

typedef struct checking {
    const cx_chain_entry **entries; /* sorted, without duplicates */
    size_t count;
    const cx_chain_options *options;
    cx_arena *arena;
    const cx_alloc *alloc;
    CX_VEC(cx_chain_finding) findings;
    uint64_t links; /* recomputed links */
    bool broken;
    bool unsure; /* a link that should have been checked could not be */
} checking;

/* --- names ------------------------------------------------------------------------------------ */

static const char *const profiles[] = {"auto", "spec-1.0", "agent"};

const char *cx_chain_profile_name(cx_chain_profile profile)
{
    return profiles[profile];
}

bool cx_chain_profile_parse(cx_str text, cx_chain_profile *out)
{
    for (size_t i = 0; i < CX_COUNT_OF(profiles); i++)
        if (cx_str_is(text, profiles[i])) {
            *out = (cx_chain_profile)i;
            return true;
        }
    return false;
}

const char *cx_chain_kind_name(cx_chain_kind kind)
{
    static const char *const names[] = {"gap",     "duplicate", "fork",
                                        "reorder", "mismatch",  "unchecked"};
    return names[kind];
}

/* --- links ------------------------------------------------------------------------------------ */

void cx_chain_hash(cx_str previous_hex, cx_str action, bool success, cx_str timestamp,
                   cx_digest *out)
{
    cx_sha256 hash;
    cx_str word = success ? CX_STR("true") : CX_STR("false");
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, previous_hex.data, previous_hex.size);
    cx_sha256_add(&hash, action.data, action.size);
    cx_sha256_add(&hash, word.data, word.size);
    cx_sha256_add(&hash, timestamp.data, timestamp.size);
    *out = cx_sha256_end(&hash);
}

/* What agents of spec 1.0 can do, as action_executed spells it. */
static const cx_str actions[] = {CX_STR("speak"),  CX_STR("task_complete"), CX_STR("ponder"),
                                 CX_STR("tool"),   CX_STR("observe"),       CX_STR("defer"),
                                 CX_STR("reject"), CX_STR("memorize"),      CX_STR("recall"),
                                 CX_STR("forget")};

/* Whether the link can only be found by trying actions. */
static bool is_inferred(const checking *c, const cx_chain_entry *entry)
{
    return c->options->infer_actions && entry->action.data == NULL;
}

static bool is_checkable(const checking *c, const cx_chain_entry *entry)
{
    return entry->has_hash && entry->has_success &&
           (entry->action.data != NULL || is_inferred(c, entry));
}

static bool links_to_text(const cx_chain_entry *entry, cx_str previous_hex, cx_digest *out_expected)
{
    if (entry->action.data != NULL) {
        cx_chain_hash(previous_hex, entry->action, entry->success, entry->timestamp, out_expected);
        return cx_digest_eq(out_expected, &entry->hash);
    }
    for (size_t i = 0; i < CX_COUNT_OF(actions); i++) {
        cx_chain_hash(previous_hex, actions[i], entry->success, entry->timestamp, out_expected);
        if (cx_digest_eq(out_expected, &entry->hash))
            return true;
    }
    return false;
}

static bool links_to(const cx_chain_entry *entry, const cx_digest *previous,
                     cx_digest *out_expected)
{
    char hex[64];
    if (previous == NULL)
        return links_to_text(entry, CX_STR(""), out_expected);
    cx_hex_encode(cx_bytes_from(previous->bytes, sizeof previous->bytes), hex);
    return links_to_text(entry, cx_str_from(hex, sizeof hex), out_expected);
}

/* --- findings --------------------------------------------------------------------------------- */

static cx_status add_finding(checking *c, const cx_chain_finding *finding, cx_err *err)
{
    cx_chain_finding *slot = cx_vec_push(&c->findings, c->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *finding;
    if (finding->kind != CX_CHAIN_UNCHECKED)
        c->broken = true;
    return CX_SUCCESS;
}

static cx_status add_unchecked(checking *c, const cx_chain_entry *entry, bool counts, cx_err *err)
{
    const cx_chain_finding finding = {
        .kind = CX_CHAIN_UNCHECKED, .seq = entry->seq, .trace_id = entry->trace_id};
    c->unsure |= counts;
    return add_finding(c, &finding, err);
}

/* A step: entries[first .. end). */
typedef struct step {
    size_t first, end;
} step;

static step step_at(const checking *c, size_t first)
{
    size_t end = first + 1;
    while (end < c->count && c->entries[end]->seq == c->entries[first]->seq)
        end++;
    return (step){first, end};
}

static bool same_hash(const cx_chain_entry *a, const cx_chain_entry *b)
{
    return a->has_hash == b->has_hash && (!a->has_hash || cx_digest_eq(&a->hash, &b->hash));
}

/* Compares another entry of one number with the first one that has its hash, else with the first: a
 * duplicate of the same audit entry, or a fork. */
static cx_status check_twin(checking *c, step now, size_t which, cx_err *err)
{
    const cx_chain_entry *other = c->entries[which], *earlier = c->entries[now.first];
    bool told_twice = false;
    for (size_t i = now.first; i < which && i < now.first + COMPARED_MAX && !told_twice; i++) {
        told_twice = same_hash(c->entries[i], other);
        if (told_twice)
            earlier = c->entries[i];
    }
    if (cx_str_eq(earlier->trace_id, other->trace_id) &&
        (told_twice || !earlier->has_hash || !other->has_hash))
        return CX_SUCCESS; /* the same trace at a higher or lower level */
    const cx_chain_finding finding = {.kind = told_twice ? CX_CHAIN_DUPLICATE : CX_CHAIN_FORK,
                                      .seq = other->seq,
                                      .trace_id = earlier->trace_id,
                                      .other_id = other->trace_id};
    return add_finding(c, &finding, err);
}

static cx_status check_twins(checking *c, step now, cx_err *err)
{
    for (size_t i = now.first + 1; i < now.end; i++)
        CX_TRY(check_twin(c, now, i, err));
    return CX_SUCCESS;
}

static cx_status check_order(checking *c, step before, step now, cx_err *err)
{
    const cx_chain_entry *previous = c->entries[before.first], *entry = c->entries[now.first];
    if (entry->timestamp_ns >= previous->timestamp_ns)
        return CX_SUCCESS;
    const cx_chain_finding finding = {.kind = CX_CHAIN_REORDER,
                                      .seq = entry->seq,
                                      .trace_id = previous->trace_id,
                                      .other_id = entry->trace_id};
    return add_finding(c, &finding, err);
}

static bool is_next(int64_t seq, int64_t next)
{
    return seq != INT64_MAX && next == seq + 1;
}

static cx_status check_gap(checking *c, step before, step now, cx_err *err)
{
    int64_t seq = c->entries[before.first]->seq, next = c->entries[now.first]->seq;
    if (is_next(seq, next))
        return CX_SUCCESS;
    uint64_t missing = (uint64_t)next - (uint64_t)seq - 1;
    const cx_chain_finding finding = {.kind = CX_CHAIN_GAP,
                                      .seq = seq,
                                      .next = next,
                                      .missing = missing > INT64_MAX ? INT64_MAX : (int64_t)missing,
                                      .trace_id = c->entries[before.first]->trace_id,
                                      .other_id = c->entries[now.first]->trace_id};
    return add_finding(c, &finding, err);
}

/* Checks an entry against those of the previous step. */
static cx_status check_link(checking *c, const cx_chain_entry *entry, step before, cx_err *err)
{
    cx_digest expected = {{0}};
    size_t tried = 0;
    if (!is_checkable(c, entry))
        return add_unchecked(c, entry, true, err);
    for (size_t i = before.first; i < before.end && tried < COMPARED_MAX; i++) {
        if (!c->entries[i]->has_hash)
            continue;
        tried++;
        if (links_to(entry, &c->entries[i]->hash, &expected)) {
            c->links++;
            return CX_SUCCESS;
        }
    }
    if (tried == 0 || is_inferred(c, entry) || /* it may be an action of another name */
        tried == COMPARED_MAX) /* an entry that was not tried may be its predecessor */
        return add_unchecked(c, entry, true, err);
    const cx_chain_finding finding = {.kind = CX_CHAIN_MISMATCH,
                                      .seq = entry->seq,
                                      .trace_id = entry->trace_id,
                                      .other_id = c->entries[before.first]->trace_id,
                                      .expected = expected,
                                      .found = entry->hash,
                                      .has_expected = tried == 1};
    return add_finding(c, &finding, err);
}

/* The first entries of the chain: against genesis when they can be. */
static cx_status check_start(checking *c, const cx_chain_entry *entry, cx_err *err)
{
    bool from_genesis = entry->seq == 0 || entry->seq == 1 || c->options->genesis != NULL;
    cx_digest expected;
    if (!from_genesis || !is_checkable(c, entry))
        return add_unchecked(c, entry, from_genesis, err);
    if (links_to(entry, c->options->genesis, &expected)) {
        c->links++;
        return CX_SUCCESS;
    }
    if (is_inferred(c, entry))
        return add_unchecked(c, entry, true, err);
    const cx_chain_finding finding = {.kind = CX_CHAIN_MISMATCH,
                                      .seq = entry->seq,
                                      .trace_id = entry->trace_id,
                                      .expected = expected,
                                      .found = entry->hash,
                                      .has_expected = true};
    return add_finding(c, &finding, err);
}

static cx_status check_links(checking *c, const step *before, step now, cx_err *err)
{
    bool linked =
        before != NULL && is_next(c->entries[before->first]->seq, c->entries[now.first]->seq);
    for (size_t i = now.first; i < now.end; i++) {
        const cx_chain_entry *entry = c->entries[i];
        if (before == NULL)
            CX_TRY(check_start(c, entry, err));
        else if (linked)
            CX_TRY(check_link(c, entry, *before, err));
        else
            CX_TRY(add_unchecked(c, entry, true, err));
    }
    return CX_SUCCESS;
}

static cx_status check_steps(checking *c, bool with_links, cx_err *err)
{
    step before = {0, 0};
    c->findings.count = 0;
    c->links = 0;
    c->broken = c->unsure = false;
    for (size_t at = 0; at < c->count;) {
        step now = step_at(c, at);
        if (at != 0)
            CX_TRY(check_gap(c, before, now, err));
        CX_TRY(check_twins(c, now, err));
        if (at != 0)
            CX_TRY(check_order(c, before, now, err));
        if (with_links)
            CX_TRY(check_links(c, at != 0 ? &before : NULL, now, err));
        before = now;
        at = now.end;
    }
    return CX_SUCCESS;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int compare_digests(const cx_chain_entry *a, const cx_chain_entry *b)
{
    if (a->has_hash != b->has_hash)
        return a->has_hash ? 1 : -1;
    return a->has_hash ? memcmp(a->hash.bytes, b->hash.bytes, sizeof a->hash.bytes) : 0;
}

/* Absent texts first. */
static int compare_texts(cx_str a, cx_str b)
{
    if (a.data == NULL || b.data == NULL)
        return (a.data != NULL) - (b.data != NULL);
    return cx_str_cmp(a, b);
}

/* Compares all fields that matter; 0 only for a trace that was sent twice. */
static int compare_content(const cx_chain_entry *x, const cx_chain_entry *y)
{
    int order = compare_texts(x->trace_id, y->trace_id);
    if (order == 0)
        order = compare_digests(x, y);
    if (order == 0)
        order = compare_texts(x->action, y->action);
    if (order == 0)
        order = compare_texts(x->timestamp, y->timestamp);
    if (order == 0)
        order = (x->has_success ? 1 + x->success : 0) - (y->has_success ? 1 + y->success : 0);
    return order;
}

static int compare_times(const cx_chain_entry *x, const cx_chain_entry *y)
{
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (x->timestamp_ns > y->timestamp_ns) - (x->timestamp_ns < y->timestamp_ns);
}

static int by_content(const void *a, const void *b)
{
    const cx_chain_entry *x = *(const cx_chain_entry *const *)a;
    const cx_chain_entry *y = *(const cx_chain_entry *const *)b;
    int order = compare_times(x, y);
    if (order == 0)
        order = compare_content(x, y);
    return order != 0 ? order : (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

static int by_arrival(const void *a, const void *b)
{
    const cx_chain_entry *x = *(const cx_chain_entry *const *)a;
    const cx_chain_entry *y = *(const cx_chain_entry *const *)b;
    int order = compare_times(x, y);
    if (order == 0)
        order = (x->arrival > y->arrival) - (x->arrival < y->arrival);
    return order != 0 ? order : compare_content(x, y);
}

/* Sorts in the order of §5 and removes duplicates: of a trace that was sent twice the first arrival
 * stays. */
static void sort_entries(checking *c)
{
    size_t kept = 0;
    if (c->count < 2)
        return;
    qsort(c->entries, c->count, sizeof *c->entries, by_content);
    for (size_t i = 0; i < c->count; i++)
        if (kept == 0 || compare_times(c->entries[kept - 1], c->entries[i]) != 0 ||
            compare_content(c->entries[kept - 1], c->entries[i]) != 0)
            c->entries[kept++] = c->entries[i];
    c->count = kept;
    qsort(c->entries, c->count, sizeof *c->entries, by_arrival);
}

/* Findings of one number and kind stay in the order in which they were found. */
static int by_number_and_kind(const void *a, const void *b)
{
    const cx_chain_finding *x = *(const cx_chain_finding *const *)a;
    const cx_chain_finding *y = *(const cx_chain_finding *const *)b;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x > y) - (x < y);
}

static cx_status sort_findings(const checking *c, const cx_chain_finding **out, cx_err *err)
{
    size_t count = c->findings.count;
    const cx_chain_finding **order = CX_ARENA_ARRAY(c->arena, const cx_chain_finding *, count + 1);
    cx_chain_finding *sorted = CX_ARENA_ARRAY(c->arena, cx_chain_finding, count + 1);
    if (order == NULL || sorted == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        order[i] = &c->findings.items[i];
    if (count > 1)
        qsort(order, count, sizeof *order, by_number_and_kind);
    for (size_t i = 0; i < count; i++)
        sorted[i] = *order[i];
    *out = sorted;
    return CX_SUCCESS;
}

static cx_verdict verdict_of(const checking *c, cx_chain_profile profile)
{
    if (profile == CX_CHAIN_AGENT || c->count == 0)
        return CX_INDETERMINATE;
    if (c->broken)
        return CX_BROKEN;
    return c->unsure ? CX_INDETERMINATE : CX_HOLDS;
}

static cx_status check_chain(checking *c, cx_chain_report *out, cx_err *err)
{
    cx_chain_profile profile = c->options->profile;
    CX_TRY(check_steps(c, profile != CX_CHAIN_AGENT, err));
    if (profile == CX_CHAIN_AUTO) {
        profile = c->links != 0 ? CX_CHAIN_SPEC_1_0 : CX_CHAIN_AGENT;
        if (profile == CX_CHAIN_AGENT)
            CX_TRY(check_steps(c, false, err));
    }
    const cx_chain_finding *findings = NULL;
    CX_TRY(sort_findings(c, &findings, err));
    *out = (cx_chain_report){.verdict = verdict_of(c, profile),
                             .profile = profile,
                             .findings = findings,
                             .finding_count = c->findings.count,
                             .entry_count = c->count,
                             .empty = c->count == 0};
    return CX_SUCCESS;
}

cx_status cx_chain_check(const cx_chain_entry *entries, size_t count,
                         const cx_chain_options *options, cx_arena *arena, cx_chain_report *out,
                         cx_err *err)
{
    CX_ASSERT(options != NULL && out != NULL);
    checking c = {.count = count, .options = options, .arena = arena, .alloc = arena->alloc};
    c.entries = CX_ARENA_ARRAY(arena, const cx_chain_entry *, count + 1);
    if (c.entries == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        c.entries[i] = &entries[i];
    sort_entries(&c);
    cx_status status = check_chain(&c, out, err);
    cx_vec_done(&c.findings, c.alloc);
    return status;
}

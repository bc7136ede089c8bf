/*
 * chain.c - whether an agent's audit entries follow one another (trace.md §5).
 *
 * Entries are sorted by (number, timestamp, arrival); those of one number are a *step*.  A link
 * holds when an entry's hash is recomputed from any entry of the step before, so of two histories
 * that part both are followed.
 */
#include "trace/chain.h"

#include <stdlib.h>

#include "base/vec.h"
#include "crypto/digest.h"
#include "crypto/text.h"

typedef struct checking {
    const cx_chain_entry **entries; /* sorted */
    size_t count;
    const cx_chain_options *options;
    cx_arena *arena;
    const cx_alloc *alloc;
    CX_VEC(cx_chain_finding) findings;
    uint64_t links; /* that were recomputed */
    bool broken;
    bool unsure; /* something could not be checked that should have been */
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

static bool is_checkable(const cx_chain_entry *entry)
{
    return entry->has_hash && entry->has_success && entry->action.data != NULL;
}

static bool follows_text(const cx_chain_entry *entry, cx_str previous_hex, cx_digest *out_expected)
{
    cx_chain_hash(previous_hex, entry->action, entry->success, entry->timestamp, out_expected);
    return cx_digest_eq(out_expected, &entry->hash);
}

static bool follows(const cx_chain_entry *entry, const cx_digest *previous, cx_digest *out_expected)
{
    char hex[64];
    if (previous == NULL)
        return follows_text(entry, CX_STR(""), out_expected);
    cx_hex_encode(cx_bytes_from(previous->bytes, sizeof previous->bytes), hex);
    return follows_text(entry, cx_str_from(hex, sizeof hex), out_expected);
}

/* --- findings --------------------------------------------------------------------------------- */

static cx_status find(checking *c, const cx_chain_finding *finding, cx_err *err)
{
    cx_chain_finding *slot = cx_vec_push(&c->findings, c->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *finding;
    if (finding->kind != CX_CHAIN_UNCHECKED)
        c->broken = true;
    return CX_SUCCESS;
}

static cx_status unchecked(checking *c, const cx_chain_entry *entry, bool counts, cx_err *err)
{
    const cx_chain_finding finding = {
        .kind = CX_CHAIN_UNCHECKED, .seq = entry->seq, .trace_id = entry->trace_id};
    c->unsure |= counts;
    return find(c, &finding, err);
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

/* Others of one number, each beside the first: the same audit entry told twice, or two. */
static cx_status check_twins(checking *c, step now, cx_err *err)
{
    const cx_chain_entry *first = c->entries[now.first];
    for (size_t i = now.first + 1; i < now.end; i++) {
        const cx_chain_entry *other = c->entries[i];
        bool same_hash = first->has_hash == other->has_hash &&
                         (!first->has_hash || cx_digest_eq(&first->hash, &other->hash));
        if (same_hash && cx_str_eq(first->trace_id, other->trace_id))
            continue; /* the same trace at another level */
        const cx_chain_finding finding = {.kind = same_hash ? CX_CHAIN_DUPLICATE : CX_CHAIN_FORK,
                                          .seq = first->seq,
                                          .trace_id = first->trace_id,
                                          .other_id = other->trace_id};
        CX_TRY(find(c, &finding, err));
    }
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
    return find(c, &finding, err);
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
    return find(c, &finding, err);
}

/* An entry against those of the step before. */
static cx_status check_link(checking *c, const cx_chain_entry *entry, step before, cx_err *err)
{
    cx_digest expected = {{0}};
    size_t tried = 0;
    if (!is_checkable(entry))
        return unchecked(c, entry, true, err);
    for (size_t i = before.first; i < before.end; i++) {
        if (!c->entries[i]->has_hash)
            continue;
        tried++;
        if (follows(entry, &c->entries[i]->hash, &expected)) {
            c->links++;
            return CX_SUCCESS;
        }
    }
    if (tried == 0)
        return unchecked(c, entry, true, err);
    const cx_chain_finding finding = {.kind = CX_CHAIN_MISMATCH,
                                      .seq = entry->seq,
                                      .trace_id = entry->trace_id,
                                      .other_id = c->entries[before.first]->trace_id,
                                      .expected = expected,
                                      .found = entry->hash,
                                      .has_expected = tried == 1};
    return find(c, &finding, err);
}

/* The first entries of the chain: against genesis when they can be. */
static cx_status check_start(checking *c, const cx_chain_entry *entry, cx_err *err)
{
    bool from_genesis = entry->seq == 0 || entry->seq == 1 || c->options->genesis != NULL;
    cx_digest expected;
    if (!from_genesis || !is_checkable(entry))
        return unchecked(c, entry, from_genesis, err);
    if (follows(entry, c->options->genesis, &expected)) {
        c->links++;
        return CX_SUCCESS;
    }
    const cx_chain_finding finding = {.kind = CX_CHAIN_MISMATCH,
                                      .seq = entry->seq,
                                      .trace_id = entry->trace_id,
                                      .expected = expected,
                                      .found = entry->hash,
                                      .has_expected = true};
    return find(c, &finding, err);
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
            CX_TRY(unchecked(c, entry, true, err));
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

static int compare_entries(const void *a, const void *b)
{
    const cx_chain_entry *x = *(const cx_chain_entry *const *)a;
    const cx_chain_entry *y = *(const cx_chain_entry *const *)b;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    if (x->timestamp_ns != y->timestamp_ns)
        return x->timestamp_ns < y->timestamp_ns ? -1 : 1;
    return (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

/* Of one number and kind the order of the entries is kept: a merge sort of small steps. */
static void sort_findings(checking *c)
{
    for (size_t i = 1; i < c->findings.count; i++) {
        cx_chain_finding moving = c->findings.items[i];
        size_t at = i;
        for (; at > 0; at--) {
            const cx_chain_finding *before = &c->findings.items[at - 1];
            if (before->seq < moving.seq ||
                (before->seq == moving.seq && before->kind <= moving.kind))
                break;
            c->findings.items[at] = *before;
        }
        c->findings.items[at] = moving;
    }
}

static cx_verdict verdict_of(const checking *c, cx_chain_profile profile)
{
    if (profile == CX_CHAIN_AGENT || c->count == 0)
        return CX_INDETERMINATE;
    if (c->broken)
        return CX_BROKEN;
    return c->unsure ? CX_INDETERMINATE : CX_HOLDS;
}

static cx_status check(checking *c, cx_chain_report *out, cx_err *err)
{
    cx_chain_profile profile = c->options->profile;
    CX_TRY(check_steps(c, profile != CX_CHAIN_AGENT, err));
    if (profile == CX_CHAIN_AUTO) {
        profile = c->links != 0 ? CX_CHAIN_SPEC_1_0 : CX_CHAIN_AGENT;
        if (profile == CX_CHAIN_AGENT)
            CX_TRY(check_steps(c, false, err));
    }
    sort_findings(c);
    size_t count = c->findings.count;
    cx_chain_finding *findings = CX_ARENA_ARRAY(c->arena, cx_chain_finding, count + 1);
    if (findings == NULL)
        return cx_fail_nomem(err);
    if (count != 0)
        memcpy(findings, c->findings.items, count * sizeof *findings);
    *out = (cx_chain_report){.verdict = verdict_of(c, profile),
                             .profile = profile,
                             .findings = findings,
                             .finding_count = count,
                             .entry_count = c->count,
                             .empty = c->count == 0};
    return CX_SUCCESS;
}

cx_status cx_chain_check(const cx_chain_entry *entries, size_t count,
                         const cx_chain_options *options, cx_arena *arena, cx_chain_report *out,
                         cx_err *err)
{
    checking c = {.count = count, .options = options, .arena = arena, .alloc = arena->alloc};
    c.entries = CX_ARENA_ARRAY(arena, const cx_chain_entry *, count + 1);
    if (c.entries == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        c.entries[i] = &entries[i];
    if (count > 1)
        qsort(c.entries, count, sizeof *c.entries, compare_entries);
    cx_status status = check(&c, out, err);
    cx_vec_done(&c.findings, c.alloc);
    return status;
}

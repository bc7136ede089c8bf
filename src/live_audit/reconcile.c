/*
 * reconcile.c - the two sides compared: each call of the transcript finds its decision, or is a
 * finding; each decision finds its call, or is one (live.md §10.2).
 *
 *   R1  Where hooks send a call's id, it alone says which decision is the call's; the input is then
 *       compared.
 *   R2  Without ids, calls and decisions of one tool and input are paired in their order.  Where
 *       there are as many of both, or all were decided alike, the order does not matter; else the
 *       match is ambiguous.
 *   R3  A decision serves one call.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "live_audit/parts.h"

#define MESSAGE_BYTES_MAX 700
#define CLOCK_SLACK_NS (INT64_C(5) * 1000000000)
/* A transcript is written within moments; an archive may follow later. */
#define TOLD_WITHIN_NS (INT64_C(15) * 60 * 1000000000)
#define CHAIN_LOOK_MAX 4096 /* decisions of one id; what is beyond is not matched */

void cx_live_audit_add(cx_live_audit *audit, cx_live_audit_kind kind,
                       const cx_live_audit_call *call, const uint64_t *seq, cx_str where,
                       const char *format, ...)
{
    char text[MESSAGE_BYTES_MAX];
    va_list args;
    if (audit->report->counts[kind]++ >= CX_LIVE_AUDIT_LISTED) /* V4 */
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cx_live_audit_finding *finding = cx_vec_push(&audit->found, audit->alloc);
    if (finding == NULL) {
        audit->failed = true;
        return;
    }
    *finding = (cx_live_audit_finding){.kind = kind};
    finding->message = cx_arena_copy_str(audit->arena, cx_str_z(text));
    finding->where = cx_arena_copy_str(audit->arena, where);
    if (call != NULL) {
        finding->file = cx_arena_copy_str(audit->arena, audit->told.files.items[call->file].path);
        finding->line = call->line;
        finding->call_id = cx_arena_copy_str(audit->arena, call->id);
        finding->tool = cx_arena_copy_str(audit->arena, call->tool);
        audit->failed = audit->failed || finding->file.data == NULL;
    }
    finding->has_entry = seq != NULL;
    finding->seq = seq == NULL ? 0 : *seq;
    audit->failed = audit->failed || finding->message.data == NULL;
}

#define ADD(kind, call, seq, ...) \
    cx_live_audit_add(audit, CX_LIVE_AUDIT_##kind, (call), (seq), (cx_str){NULL, 0}, __VA_ARGS__)
#define SHOWN(text, max) (int)((text).size > (max) ? (max) : (text).size), (text).data

/* --- calls that have a decision --------------------------------------------------------------- */

/* Agents whose hooks cannot ask a person: "ask" is a refusal there. */
static bool ask_refuses(cx_live_agent agent)
{
    return agent != CX_LIVE_CLAUDE;
}

static bool is_no(const cx_live_audit *audit, const cx_live_audit_decision *d)
{
    return d->verdict == CX_LIVE_DENY ||
           (d->verdict == CX_LIVE_ASKED && ask_refuses(audit->journal.agent));
}

/* What hooks reported of a call that they were told to refuse. */
static void check_refused(cx_live_audit *audit, const cx_live_audit_call *call,
                          const cx_live_audit_decision *d)
{
    const char *word = d->verdict == CX_LIVE_DENY ? "denied" : "not allowed without a person";
    if (d->result != CX_LIVE_AUDIT_NONE)
        ADD(DENIED_CALL_RAN, call, &d->seq,
            "%.*s was %s (%.*s), and its hook reported a result (entry %llu)", SHOWN(d->tool, 80),
            word, SHOWN(d->rule, 8),
            (unsigned long long)audit->journal.results.items[d->result].seq);
    else if (call != NULL && call->outcome == CX_LIVE_AUDIT_RAN)
        ADD(DENIED_CALL_RAN, call, &d->seq, "%.*s was %s (%.*s), and line %llu has its result",
            SHOWN(d->tool, 80), word, SHOWN(d->rule, 8), (unsigned long long)call->result_line);
    else if (call != NULL && call->outcome == CX_LIVE_AUDIT_UNCLEAR)
        ADD(DENIED_CALL_UNCLEAR, call, &d->seq,
            "%.*s was %s (%.*s); line %llu says that it failed, not whether it ran",
            SHOWN(d->tool, 80), word, SHOWN(d->rule, 8), (unsigned long long)call->result_line);
}

/* What ran, by the hook's own word after the call. */
static void check_executed(cx_live_audit *audit, const cx_live_audit_call *call,
                           const cx_live_audit_decision *d)
{
    if (d->result == CX_LIVE_AUDIT_NONE)
        return;
    const cx_live_audit_result *result = &audit->journal.results.items[d->result];
    unsigned long long seq = (unsigned long long)result->seq;
    bool as_it_was = cx_digest_eq(&result->input, &d->form.input);
    if (d->verdict == CX_LIVE_REWRITTEN) {
        if (d->has_rewritten && cx_digest_eq(&result->input, &d->rewritten))
            return;
        if (as_it_was || d->rewrite_unknown)
            ADD(REWRITE_UNCLEAR, call, &d->seq,
                "%.*s was to be rewritten; entry %llu does not show that the rewritten input ran",
                SHOWN(d->tool, 80), seq);
        else
            ADD(EXECUTED_DIFFERS, call, &d->seq,
                "%.*s was to be rewritten; entry %llu reports a third input", SHOWN(d->tool, 80),
                seq);
    } else if (!as_it_was) {
        ADD(EXECUTED_DIFFERS, call, &d->seq,
            "%.*s ran with another input than the one decided (entry %llu): another hook, or the "
            "agent, changed it",
            SHOWN(d->tool, 80), seq);
    }
}

/* A decision as it counts for its call; `call` is NULL when no transcript tells it. */
static void check_decision(cx_live_audit *audit, const cx_live_audit_call *call,
                           const cx_live_audit_decision *d)
{
    if (is_no(audit, d)) {
        check_refused(audit, call, d);
        return;
    }
    check_executed(audit, call, d);
    if (call != NULL && call->outcome == CX_LIVE_AUDIT_RAN && call->result_ns != 0 &&
        call->result_ns < d->at_ns - CLOCK_SLACK_NS)
        ADD(DECIDED_AFTERWARDS, call, &d->seq,
            "%.*s has its result on line %llu %lld seconds before its decision: the decision, or "
            "the transcript's time, is not genuine",
            SHOWN(d->tool, 80), (unsigned long long)call->result_line,
            (long long)((d->at_ns - call->result_ns) / 1000000000));
    if (d->would != d->verdict)
        ADD(OBSERVED, call, &d->seq, "mode %s let %.*s pass; the policy says %s (%.*s): %.*s",
            cx_live_mode_name(d->mode), SHOWN(d->tool, 80), cx_live_answer_name(d->would),
            SHOWN(d->rule, 8), SHOWN(d->text, 120));
    if (d->verdict == CX_LIVE_ASKED && call != NULL && call->outcome == CX_LIVE_AUDIT_RAN)
        ADD(ASKED_AND_RAN, call, &d->seq,
            "%.*s was asked about in the agent's own prompt, and ran: the agent says that its "
            "person allowed it",
            SHOWN(d->tool, 80));
}

static bool is_input_of(const cx_live_audit_call *call, const cx_live_audit_decision *d,
                        cx_live_agent agent)
{
    return cx_digest_eq(&call->form.input, &d->form.input) ||
           cx_digest_eq(&call->form.absolute, &d->form.input) ||
           (d->has_rewritten && cx_digest_eq(&call->form.input, &d->rewritten)) ||
           (agent == CX_LIVE_CODEX && cx_digest_eq(&call->form.pair, &d->form.pair));
}

/* Monitor is decided twice with one id, the second time as a shell's command. */
static bool is_same_command(const cx_live_audit_call *call, const cx_live_audit_decision *d)
{
    return call->form.tool_form == CX_LIVE_FORM_COMMAND &&
           d->form.tool_form == CX_LIVE_FORM_COMMAND && !cx_str_eq(call->tool, d->tool) &&
           cx_digest_eq(&call->form.pair, &d->form.pair);
}

/* The first decision of the chain that is of this input, unused ones first. */
static uint32_t choose_by_id(const cx_live_audit *audit, uint32_t first,
                             const cx_live_audit_call *call, bool unused)
{
    const cx_live_audit_decision *all = audit->journal.decisions.items;
    unsigned looked = 0;
    for (uint32_t i = first; i != CX_LIVE_AUDIT_NONE && looked++ < CHAIN_LOOK_MAX; i = all[i].next)
        if ((!unused || !all[i].used) &&
            (is_input_of(call, &all[i], audit->journal.agent) || is_same_command(call, &all[i])))
            return i;
    return CX_LIVE_AUDIT_NONE;
}

/* Decisions after `at` in its chain that are of the same call, too: asked again, or as another
 * tool. Returns the one that counts; of several, a refusal does. */
static uint32_t use_with_followers(cx_live_audit *audit, const cx_live_audit_call *call,
                                   uint32_t at, bool alone)
{
    cx_live_audit_decision *all = audit->journal.decisions.items;
    uint32_t counts = at, refuses = CX_LIVE_AUDIT_NONE;
    unsigned looked = 0;
    all[at].used = true;
    for (uint32_t i = all[at].next; alone && i != CX_LIVE_AUDIT_NONE && looked++ < CHAIN_LOOK_MAX;
         i = all[i].next) {
        if (all[i].used ||
            (!is_input_of(call, &all[i], audit->journal.agent) && !is_same_command(call, &all[i])))
            continue;
        all[i].used = true;
        if (cx_str_eq(all[i].tool, all[counts].tool))
            counts = i; /* the newest answer for this tool */
        else if (is_no(audit, &all[i]))
            refuses = i;
    }
    return refuses != CX_LIVE_AUDIT_NONE ? refuses : counts;
}

/* R1.  False when no decision has the id. */
static bool match_by_id(cx_live_audit *audit, cx_live_audit_call *call)
{
    const uint64_t *first =
        call->id.size == 0 ? NULL : cx_map_find(&audit->journal.by_id, call->id);
    cx_live_audit_decision *all = audit->journal.decisions.items;
    if (first == NULL)
        return false;
    const uint64_t *head = cx_map_find(&audit->told.by_id, call->id);
    uint32_t told = head == NULL ? 1 : audit->told.calls.items[*head].told;
    uint32_t at = choose_by_id(audit, (uint32_t)*first, call, true);
    if (at != CX_LIVE_AUDIT_NONE) {
        call->decision = use_with_followers(audit, call, at, told == 1);
        check_decision(audit, call, &all[call->decision]);
        return true;
    }
    at = choose_by_id(audit, (uint32_t)*first, call, false);
    if (at != CX_LIVE_AUDIT_NONE) { /* R3 */
        call->decision = at;
        ADD(CALL_ID_REPEATED, call, &all[at].seq,
            "%u different calls of the transcript have this id, and fewer decisions: which one "
            "was decided cannot be told",
            told);
        return true;
    }
    at = (uint32_t)*first;
    call->decision = at;
    all[at].used = true;
    if (call->form.in_words)
        ADD(AMBIGUOUS_MATCH, call, &all[at].seq,
            "%.*s is told as a list of words, which is not the text that was decided",
            SHOWN(call->tool, 80));
    else
        ADD(INPUT_DIFFERS, call, &all[at].seq,
            "the transcript's input of %.*s is not the one that was decided: %.*s",
            SHOWN(call->tool, 80), SHOWN(all[at].text, 120));
    check_decision(audit, call, &all[at]);
    return true;
}

/* R2: the first unused decision of this pair.  Cursor asks twice about one call, under two names of
 * the event. */
static bool match_by_pair(cx_live_audit *audit, cx_live_audit_call *call)
{
    const cx_str key = {(const char *)call->form.pair.bytes, sizeof call->form.pair.bytes};
    uint64_t *cursor = cx_map_find(&audit->journal.by_pair, key);
    cx_live_audit_decision *all = audit->journal.decisions.items;
    if (cursor == NULL)
        return false;
    uint32_t at = (uint32_t)*cursor;
    while (at != CX_LIVE_AUDIT_NONE && all[at].used)
        at = all[at].next;
    if (at == CX_LIVE_AUDIT_NONE) {
        *cursor = CX_LIVE_AUDIT_NONE;
        return false;
    }
    all[at].used = true;
    call->decision = at;
    uint32_t next = all[at].next;
    if (next != CX_LIVE_AUDIT_NONE && !cx_str_eq(all[next].event, all[at].event)) {
        all[next].used = true;
        if (is_no(audit, &all[next]))
            call->decision = next;
        next = all[next].next;
    }
    *cursor = next;
    check_decision(audit, call, &all[call->decision]);
    return true;
}

/* --- calls that have none --------------------------------------------------------------------- */

static void add_undecided(cx_live_audit *audit, cx_live_audit_call *call)
{
    call->is_gap = true;
    if (call->subagent.size != 0)
        ADD(UNDECIDED_SUBAGENT_CALL, call, NULL,
            "%.*s of sub-agent %.*s has the result on line %llu, and no hook decided it",
            SHOWN(call->tool, 80), SHOWN(call->subagent, 80),
            (unsigned long long)call->result_line);
    else
        ADD(UNDECIDED_CALL, call, NULL, "%.*s has the result on line %llu, and no hook decided it",
            SHOWN(call->tool, 80), (unsigned long long)call->result_line);
}

/* By what the tool is and what its result says.  The text of an MCP server's result is the
 * server's: it does not prove a refusal. */
static void judge_undecided(cx_live_audit *audit, cx_live_audit_call *call)
{
    bool refused = call->outcome == CX_LIVE_AUDIT_REFUSED || call->outcome == CX_LIVE_AUDIT_NEVER;
    bool is_codex = audit->told.agent == CX_LIVE_CODEX;
    if (refused && !call->form.is_mcp) {
        ADD(REFUSED_BEFORE_HOOKS, call, NULL, "%.*s did not run: line %llu says why",
            SHOWN(call->tool, 80), (unsigned long long)call->result_line);
    } else if (call->form.is_known_tool && call->form.tool_form == CX_LIVE_FORM_TYPED) {
        call->is_gap = true;
        ADD(TYPED_INPUT, call, NULL, "%.*s sent text to a program that runs; hooks do not see it",
            SHOWN(call->tool, 80));
    } else if (is_codex && cx_str_is(call->tool, "exec")) {
        ADD(CODE_MODE_CALL, call, NULL,
            "a script of code mode: the calls inside are decided under ids of their own, and are "
            "not in the transcript");
    } else if (is_codex && call->form.is_known_tool && call->form.tool_form == CX_LIVE_FORM_WEB) {
        ADD(PROVIDER_CALL, call, NULL, "%.*s runs at the model's provider", SHOWN(call->tool, 80));
    } else if (call->form.is_known_tool && call->form.tool_form == CX_LIVE_FORM_NOTHING &&
               !call->form.is_mcp) {
        ADD(HARMLESS_CALL, call, NULL, "%.*s reaches nothing outside of the conversation",
            SHOWN(call->tool, 80));
    } else if (call->outcome == CX_LIVE_AUDIT_RAN) {
        add_undecided(audit, call);
    } else {
        ADD(UNCLEAR_CALL, call, NULL, "no hook decided %.*s; %s", SHOWN(call->tool, 80),
            call->outcome == CX_LIVE_AUDIT_OPEN ? "the transcript has no result of it"
                                                : "its result does not say whether it ran");
    }
}

static void judge_call(cx_live_audit *audit, cx_live_audit_call *call)
{
    if (call->is_copy)
        return;
    audit->report->calls++;
    bool by_id = cx_live_audit_has_ids(audit->told.agent);
    bool found = audit->has_journal && (by_id && call->id.size != 0 ? match_by_id(audit, call)
                                                                    : match_by_pair(audit, call));
    if (found) {
        audit->report->matched++;
    } else if (call->session.size != 0 && call->outcome == CX_LIVE_AUDIT_RAN) {
        ADD(OTHER_SESSION, call, NULL,
            "%.*s is told as a call of session %.*s, and has no decision here: audit that session",
            SHOWN(call->tool, 80), SHOWN(call->session, 80));
    } else {
        judge_undecided(audit, call);
    }
}

/* --- what is left of the journal -------------------------------------------------------------- */

/* A refusal of the agent's prompt counts for the newest call of that input before it. */
static void check_permissions(cx_live_audit *audit)
{
    const cx_live_audit_journal *journal = &audit->journal;
    for (size_t i = 0; i < audit->told.calls.count; i++) {
        const cx_live_audit_call *call = &audit->told.calls.items[i];
        if (call->decision == CX_LIVE_AUDIT_NONE || call->outcome != CX_LIVE_AUDIT_RAN)
            continue;
        /* Permission entries follow their decision: at most a few entries later. */
        for (size_t k = call->decision + (size_t)1;
             k < journal->decisions.count && k <= call->decision + (size_t)16; k++) {
            const cx_live_audit_decision *d = &journal->decisions.items[k];
            bool same = cx_digest_eq(&d->form.pair, &call->form.pair);
            if (same && !d->is_permission)
                break;
            if (same && d->verdict == CX_LIVE_DENY)
                ADD(DENIED_CALL_RAN, call, &d->seq,
                    "%.*s was denied when the agent was about to ask (%.*s), and line %llu has "
                    "its result",
                    SHOWN(d->tool, 80), SHOWN(d->rule, 8), (unsigned long long)call->result_line);
        }
    }
}

static void check_unused(cx_live_audit *audit)
{
    const cx_live_audit_journal *journal = &audit->journal;
    for (size_t i = 0; i < journal->decisions.count; i++) {
        const cx_live_audit_decision *d = &journal->decisions.items[i];
        if (d->is_permission || d->used)
            continue;
        check_decision(audit, NULL, d);
        if (!audit->has_told)
            continue;
        bool is_later = !journal->ended && audit->told.last_ns != 0 &&
                        d->at_ns > audit->told.last_ns && audit->now_ns - d->at_ns < TOLD_WITHIN_NS;
        bool in_script = journal->agent == CX_LIVE_CODEX && cx_str_starts(d->id, CX_STR("exec-"));
        if (is_later || in_script)
            ADD(DECIDED_NOT_YET_TOLD, NULL, &d->seq, "%.*s: %s", SHOWN(d->tool, 80),
                in_script ? "a call inside of a script, which transcripts do not tell"
                          : "the transcript ends before it");
        else
            ADD(DECISION_WITHOUT_CALL, NULL, &d->seq,
                "%.*s was decided (%s), and no transcript tells the call: %.*s", SHOWN(d->tool, 80),
                cx_live_answer_name(d->verdict), SHOWN(d->text, 120));
    }
    for (size_t i = 0; i < journal->results.count; i++) {
        const cx_live_audit_result *result = &journal->results.items[i];
        if (result->is_joined || journal->agent == CX_LIVE_CURSOR)
            continue;
        ADD(UNDECIDED_RESULT, NULL, &result->seq,
            "a hook reported that %.*s ran; no hook decided it before", SHOWN(result->tool, 80));
    }
}

/* R2: equal calls, fewer of them decided, and not all alike. */
static void check_ambiguous(cx_live_audit *audit)
{
    if (cx_live_audit_has_ids(audit->told.agent))
        return;
    for (size_t i = 0; i < audit->told.calls.count; i++) {
        const cx_live_audit_call *call = &audit->told.calls.items[i];
        if (call->is_copy || call->decision != CX_LIVE_AUDIT_NONE)
            continue;
        const cx_live_audit_decision *all = audit->journal.decisions.items;
        uint32_t first = CX_LIVE_AUDIT_NONE;
        for (size_t k = i; k-- > 0 && first == CX_LIVE_AUDIT_NONE && i - k <= 1000;) {
            const cx_live_audit_call *other = &audit->told.calls.items[k];
            if (other->decision != CX_LIVE_AUDIT_NONE &&
                cx_digest_eq(&other->form.pair, &call->form.pair))
                first = other->decision;
        }
        if (first != CX_LIVE_AUDIT_NONE && is_no(audit, &all[first]))
            ADD(AMBIGUOUS_MATCH, call, &all[first].seq,
                "%.*s was called more often with this input than it was decided: which of the "
                "calls was refused cannot be told",
                SHOWN(call->tool, 80));
    }
}

/* --- gaps ------------------------------------------------------------------------------------- */

static const cx_live_audit_mark *config_between(const cx_live_audit_journal *journal,
                                                uint64_t after, uint64_t before)
{
    for (size_t i = 0; i < journal->marks.count; i++) {
        const cx_live_audit_mark *mark = &journal->marks.items[i];
        if (mark->kind == CX_LIVE_AUDIT_MARK_CONFIG && mark->seq > after && mark->seq < before)
            return mark;
    }
    return NULL;
}

typedef struct gap {
    const cx_live_audit_call *first, *last;
    uint32_t calls;
    uint64_t after; /* the entry before it; UINT64_MAX = none */
} gap;

static void end_gap(cx_live_audit *audit, gap *g, uint64_t before)
{
    uint64_t after = g->after == UINT64_MAX ? 0 : g->after;
    const cx_live_audit_mark *config = config_between(&audit->journal, after, before);
    if (g->calls >= 2 || (g->calls == 1 && config != NULL))
        ADD(HOOKS_GAP, g->first, g->after == UINT64_MAX ? NULL : &g->after,
            "%u calls in a row ran undecided, up to line %llu; the hooks were heard before: %s, "
            "after: %s%s",
            g->calls, (unsigned long long)g->last->line, g->after == UINT64_MAX ? "no" : "yes",
            before == UINT64_MAX ? "no" : "yes",
            config == NULL ? "" : "; the agent's configuration changed in between");
    g->calls = 0;
}

/* Runs of undecided calls, in the order of each file. */
static void check_gaps(cx_live_audit *audit)
{
    gap g = {.after = UINT64_MAX};
    uint32_t file = 0;
    for (size_t i = 0; i < audit->told.calls.count; i++) {
        const cx_live_audit_call *call = &audit->told.calls.items[i];
        if (call->is_copy)
            continue;
        if (call->file != file) {
            end_gap(audit, &g, UINT64_MAX);
            g = (gap){.after = UINT64_MAX};
            file = call->file;
        }
        if (call->is_gap) {
            if (g.calls++ == 0)
                g.first = call;
            g.last = call;
        } else if (call->decision != CX_LIVE_AUDIT_NONE) {
            uint64_t seq = audit->journal.decisions.items[call->decision].seq;
            end_gap(audit, &g, seq);
            g.after = seq;
        }
    }
    end_gap(audit, &g, UINT64_MAX);
}

/* --- the journal by itself -------------------------------------------------------------------- */

/* `before` is the start before it, or NULL: without a policy each event is a start. */
static void check_start(cx_live_audit *audit, const cx_live_audit_mark *mark,
                        const cx_live_audit_mark *before)
{
    if (before == NULL && cx_str_is(mark->text, "first_call"))
        ADD(FIRST_CALL_START, NULL, &mark->seq, "the first entry is of a call, not of a start");
    if (before != NULL && before->flag && before->mode == mark->mode)
        return;
    if (mark->flag && mark->mode == CX_LIVE_OBSERVE)
        ADD(NOT_ENFORCED, NULL, &mark->seq, "mode observe, and the policy cannot be read: %.*s",
            SHOWN(mark->by, 300));
    else if (mark->flag)
        ADD(POLICY_UNREAD, NULL, &mark->seq, "%.*s", SHOWN(mark->by, 300));
}

static void check_marks(cx_live_audit *audit)
{
    const cx_live_audit_journal *journal = &audit->journal;
    const cx_live_audit_mark *start = NULL;
    uint64_t end = UINT64_MAX;
    size_t next = 0;
    for (size_t i = 0; i < journal->marks.count; i++) {
        const cx_live_audit_mark *mark = &journal->marks.items[i];
        /* Decisions between an end and the next start. */
        for (; next < journal->decisions.count && journal->decisions.items[next].seq < mark->seq;
             next++)
            if (end != UINT64_MAX) {
                ADD(RESUMED_WITHOUT_START, NULL, &journal->decisions.items[next].seq,
                    "%.*s was decided after the session's end (entry %llu), without a new start",
                    SHOWN(journal->decisions.items[next].tool, 80), (unsigned long long)end);
                end = UINT64_MAX;
            }
        switch (mark->kind) {
        case CX_LIVE_AUDIT_MARK_START:
            end = UINT64_MAX;
            check_start(audit, mark, start);
            start = mark;
            break;
        case CX_LIVE_AUDIT_MARK_END: end = mark->seq; break;
        case CX_LIVE_AUDIT_MARK_CONFIG:
            ADD(CONFIG_CHANGED, NULL, &mark->seq, "%.*s changed (%.*s)", SHOWN(mark->text, 300),
                SHOWN(mark->by, 60));
            break;
        case CX_LIVE_AUDIT_MARK_APPROVAL:
            ADD(APPROVED, NULL, &mark->seq, "%.*s %s %.*s", SHOWN(mark->by, 100),
                mark->flag ? "allowed" : "refused", SHOWN(mark->text, 100));
            break;
        }
    }
    if (end != UINT64_MAX && next < journal->decisions.count)
        ADD(RESUMED_WITHOUT_START, NULL, &journal->decisions.items[next].seq,
            "%.*s was decided after the session's end (entry %llu), without a new start",
            SHOWN(journal->decisions.items[next].tool, 80), (unsigned long long)end);
    if (journal->fail_open != 0)
        ADD(FAIL_OPEN, NULL, &journal->fail_open_seq,
            "%llu decisions were made by a hook with --fail-open: it lets a call pass, without an "
            "entry, when it fails",
            (unsigned long long)journal->fail_open);
    if (journal->erased != 0)
        ADD(JOURNAL_ERASED, NULL, &journal->erased_seq, "%llu entries were erased",
            (unsigned long long)journal->erased);
}

cx_status cx_live_audit_reconcile(cx_live_audit *audit, cx_err *err)
{
    const cx_live_audit_told *told = &audit->told;
    for (size_t i = 0; i < told->calls.count; i++)
        judge_call(audit, &audit->told.calls.items[i]);
    if (audit->has_journal) {
        check_permissions(audit);
        check_unused(audit);
        check_ambiguous(audit);
        check_marks(audit);
        check_gaps(audit);
    }
    if (told->bad_lines != 0)
        cx_live_audit_add(audit, CX_LIVE_AUDIT_TRANSCRIPT_DAMAGED,
                          &(cx_live_audit_call){.file = told->bad_file, .line = told->bad_line},
                          NULL, (cx_str){NULL, 0}, "%llu lines cannot be read",
                          (unsigned long long)told->bad_lines);
    return audit->failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

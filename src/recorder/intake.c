/*
 * intake.c - receives traces: verifies, deduplicates, appends exactly once (trace.md §4, §9;
 * invariants I1 to I5: recorder.h).
 */
#include "recorder/recorder.h"

#include <stdlib.h>

#include "base/api.h"
#include "crypto/api.h"
#include "recorder/internal.h"
#include "recorder/pending.h"
#include "recorder/sensitive_mark.h"

/* A connectivity event says little, and no level applies to it. */
#define CONNECTIVITY_BYTES_MAX ((size_t)16 << 10)

typedef struct item {
    size_t index;
    const cx_event *event;
    cx_trace trace;
    cx_trace_level event_level; /* the event's, or what an open sender's trace contains */
    cx_trace_level level;
    cx_str actor;
    cx_digest signature; /* of its bytes */
    cx_bytes payload;    /* bytes to store: as received, or the redacted view */
    cx_intake_event *outcome;
    cx_sensitive_list found; /* in the payload */
    const char **levels;     /* of each finding that is listed */
    bool open;               /* verified, or to be stored unverified: goes to the ledger */
    bool waiting;            /* signed by a pending key: goes to the queue */
} item;

typedef struct intake {
    cx_recorder *recorder;
    cx_arena *arena;
    cx_buf scratch;
    cx_json_parser parser;
    const cx_batch *batch;
    cx_capture capture;
    const cx_open_sender *sender; /* NULL = the sender has a token, or is this machine's user */
    cx_trust pending;             /* of an open sender, once a key is unknown */
    bool pending_is_read;
    int64_t now_ns;
    uint8_t batch_id[CX_TRACE_BATCH_ID_SIZE];
    cx_sensitive_list found; /* in the batch's metadata */
    cx_trust_view *view;
    item *items;
    cx_intake_event *outcome;
    size_t count;
    bool wrote;
    uint64_t last_commit;
} intake;

const char *cx_intake_event_status_name(cx_intake_event_status status)
{
    static const char *const names[] = {"stored",   "duplicate", "unverified",
                                        "conflict", "rejected",  "pending"};
    CX_ASSERT((size_t)status < CX_COUNT_OF(names));
    return names[status];
}

/* --- verification (no lock) ------------------------------------------------------------------- */

static void reject_item(item *it, cx_trace_problem problem)
{
    it->open = it->waiting = false;
    it->outcome->status = CX_INTAKE_REJECTED;
    it->outcome->verdict.verdict =
        problem.reason == CX_REASON_KEY_UNKNOWN ? CX_INDETERMINATE : CX_BROKEN;
    it->outcome->verdict.problem = problem;
}

/* Rejects names that the ledger reserves, and text that cannot name an actor (ledger.md §4.3). */
static bool agent_is_usable(cx_str agent)
{
    if (agent.size == 0 || agent.size > CX_ACTOR_SIZE_MAX || !cx_utf8_valid(agent) ||
        cx_kinds_journal_is_own(agent))
        return false;
    for (size_t i = 0; i < agent.size; i++) {
        uint8_t c = (uint8_t)agent.data[i];
        if (c < 0x20 || c == 0x7f || c == '/')
            return false;
    }
    return true;
}

static cx_status choose_actor(intake *in, item *it, cx_err *err)
{
    cx_str agent = cx_trace_agent(&it->trace);
    it->actor = cx_trace_actor(&it->trace, in->arena);
    if (it->actor.data == NULL)
        return cx_fail_nomem(err);
    cx_str key = it->trace.key_id;
    bool usable = agent.data != NULL ? agent_is_usable(agent)
                                     : agent_is_usable(key) && key.size + 4 <= CX_ACTOR_SIZE_MAX;
    /* An unverified trace may name its key in any form, and the record repeats it. */
    if (key.size > CX_TRUST_KEY_ID_BYTES_MAX || !cx_utf8_valid(key))
        reject_item(it,
                    (cx_trace_problem){CX_REASON_FIELD_TYPE, CX_STR("/signature_key_id"),
                                       CX_STR("expected a key id of at most 256 bytes of UTF-8")});
    else if (!usable)
        reject_item(it,
                    (cx_trace_problem){
                        CX_REASON_FIELD_TYPE,
                        agent.data != NULL ? CX_STR("/agent_id_hash") : CX_STR("/signature_key_id"),
                        CX_STR("expected an agent or key id of 1 to 256 bytes, without '/' and "
                               "control characters, other than trust, batches, alerts, otel, "
                               "sessions, key:.. and run:..")});
    return CX_SUCCESS;
}

static cx_status digest_signature(intake *in, item *it, cx_err *err)
{
    cx_buf_clear(&in->scratch);
    if (!cx_base64_decode_either(it->trace.signature, &in->scratch))
        cx_buf_add_str(&in->scratch, it->trace.signature); /* refused elsewhere */
    it->signature = cx_digest_of(cx_buf_bytes(&in->scratch));
    return cx_buf_check(&in->scratch, err);
}

/* Only the view of the level is stored; the rest of the received bytes is dropped (§2). */
static cx_status redact_item(intake *in, item *it, cx_err *err)
{
    const cx_trace_verdict *v = &it->outcome->verdict;
    const cx_trace_redaction how = {.from = it->level,
                                    .to = it->level,
                                    .form = v->form,
                                    .canonical = v->canonical,
                                    .content = it->outcome->content,
                                    .has_canonical = v->form != CX_FORM_NONE};
    cx_json view;
    CX_TRY(cx_trace_redact(&it->trace, &how, in->arena, &view, &it->outcome->stripped,
                           &it->outcome->stripped_count, err));
    const cx_canon_style style = {.spaces = false};
    cx_buf_clear(&in->scratch);
    CX_TRY(cx_trace_canon_value(&view, &style, &in->scratch, err));
    cx_str copy = cx_arena_copy_str(in->arena, cx_buf_str(&in->scratch));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    it->payload = cx_str_bytes(copy);
    return CX_SUCCESS;
}

/* Checks the level of a trace that is stored unverified: its texts must not exceed it either. */
static cx_status check_level(intake *in, item *it, bool *out_violates, cx_err *err)
{
    cx_trace_verdict *v = &it->outcome->verdict;
    CX_TRY(cx_trace_violations(&it->trace, it->level, in->arena, &v->paths, &v->path_count, err));
    *out_violates = v->path_count != 0;
    return CX_SUCCESS;
}

static cx_status enforce_level(intake *in, item *it, cx_err *err)
{
    bool violates = false;
    CX_TRY(check_level(in, it, &violates, err));
    if (!violates)
        return CX_SUCCESS;
    if (in->recorder->options.strip_level)
        return redact_item(in, it, err);
    reject_item(it, (cx_trace_problem){CX_REASON_LEVEL_VIOLATION, it->outcome->verdict.paths[0],
                                       CX_STR("the trace contains more than its level allows")});
    return CX_SUCCESS;
}

/* The verification of one trace. */
static cx_trace_job verification_of(const intake *in, item *it)
{
    const cx_recorder_options *options = &in->recorder->options;
    return (cx_trace_job){.trace = &it->trace,
                          .check = {.trust = &in->view->trust,
                                    .received_ns = in->now_ns,
                                    .event_level = it->event_level,
                                    .batch_level = in->batch->level,
                                    .forms = options->forms,
                                    .any_level = options->strip_level || it->event->connectivity},
                          .out = &it->outcome->verdict,
                          .out_content = &it->outcome->content};
}

/* Of an unknown key: judged with the keys that wait for a decision (§4.6).  A trace that exceeds
 * its level does not wait, whatever the policy: it is rejected here and not when the key is
 * approved. */
static cx_status queue_item(intake *in, item *it, cx_err *err)
{
    cx_intake_event *outcome = it->outcome;
    cx_trace_verdict found;
    if (!in->pending_is_read)
        CX_TRY(cx_pending_trust(in->recorder->pending, in->arena, &in->pending, err));
    in->pending_is_read = true;
    it->open = false;
    outcome->status = CX_INTAKE_REJECTED;
    if (cx_trust_find(&in->pending, it->trace.key_id) == NULL) {
        outcome->verdict.problem.detail = CX_STR(
            "the key is neither registered nor does it wait for a decision: register it with POST "
            "/public-keys first");
        return CX_SUCCESS;
    }
    cx_trace_check check = verification_of(in, it).check;
    check.trust = &in->pending;
    check.any_level = it->event->connectivity;
    CX_TRY(cx_trace_verify(&it->trace, &check, &in->scratch, in->arena, &found, err));
    found.key = NULL;
    if (found.verdict == CX_HOLDS) {
        it->waiting = true;
        outcome->status = CX_TAKE_PENDING;
        return CX_SUCCESS;
    }
    outcome->verdict = found;
    return CX_SUCCESS;
}

/* Decides what becomes of an item from its verdict and the policies. */
static cx_status decide_item(intake *in, item *it, cx_err *err)
{
    const cx_recorder_options *options = &in->recorder->options;
    cx_intake_event *outcome = it->outcome;
    it->open = true;
    it->payload = it->event->trace;
    outcome->stripped_count = 0;
    outcome->has_content = true;
    cx_trace_reason reason = outcome->verdict.problem.reason;
    if (reason == CX_REASON_KEY_UNKNOWN && in->sender != NULL)
        return queue_item(in, it, err);
    if (reason == CX_REASON_KEY_UNKNOWN && options->keep_unknown && !it->event->connectivity) {
        outcome->status = CX_INTAKE_UNVERIFIED;
        return enforce_level(in, it, err);
    }
    if (outcome->verdict.verdict != CX_HOLDS) {
        it->open = false;
        outcome->status = CX_INTAKE_REJECTED;
        return CX_SUCCESS;
    }
    outcome->status = CX_INTAKE_STORED;
    return options->strip_level && !it->event->connectivity ? enforce_level(in, it, err)
                                                            : CX_SUCCESS;
}

/* Verifies the open items; with `actor` only those of that actor. */
static cx_status verify_items(intake *in, const cx_str *actor, cx_err *err)
{
    cx_trace_job *jobs = CX_ARENA_ARRAY(in->arena, cx_trace_job, in->count + 1);
    item **verified_items = CX_ARENA_ARRAY(in->arena, item *, in->count + 1);
    size_t count = 0;
    if (jobs == NULL || verified_items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < in->count; i++) {
        item *it = &in->items[i];
        if (!it->open || (actor != NULL && !cx_str_eq(it->actor, *actor)))
            continue;
        jobs[count] = verification_of(in, it);
        verified_items[count++] = it;
    }
    CX_TRY(cx_trace_verify_many(jobs, count, &in->scratch, in->arena, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(decide_item(in, verified_items[i], err));
    return CX_SUCCESS;
}

/* A connectivity event is a signed trace that has components of that type only. */
static void check_connectivity(const item *it, cx_trace_problem *problem)
{
    if (problem->reason == CX_REASON_COMPONENTS_MISSING && it->trace.component_count != 0)
        *problem = (cx_trace_problem){.reason = CX_REASON_NONE};
    if (problem->reason != CX_REASON_NONE)
        return;
    for (uint32_t i = 0; i < it->trace.component_count; i++)
        if (!cx_str_is(it->trace.components[i].component_type, "connectivity"))
            *problem = (cx_trace_problem){
                CX_REASON_COMPONENT_TYPE_MISMATCH, CX_STR("/components"),
                CX_STR("a connectivity event has components of type connectivity only")};
    if (it->event->trace.size > CONNECTIVITY_BYTES_MAX)
        *problem = (cx_trace_problem){CX_REASON_LIMIT_EXCEEDED, CX_STR(""),
                                      CX_STR("a connectivity event has at most 16 KiB")};
}

/* No level is stated: that of spec 1.0's own example is what it contains. */
static cx_status find_level(intake *in, item *it, cx_err *err)
{
    const cx_str *paths;
    size_t count = 1;
    for (int level = CX_LEVEL_GENERIC; level <= CX_LEVEL_FULL && count != 0; level++) {
        it->event_level = (cx_trace_level)level;
        CX_TRY(cx_trace_violations(&it->trace, it->event_level, in->arena, &paths, &count, err));
    }
    it->level = it->event_level;
    return CX_SUCCESS;
}

/* Parses one item; it is open when it can be verified. */
static cx_status read_item(intake *in, item *it, cx_err *err)
{
    cx_trace_problem problem = it->event->problem;
    if (problem.reason == CX_REASON_NONE || it->event->trace.size != 0) {
        cx_trace_problem found;
        CX_TRY(
            cx_trace_read_with(&in->parser, it->event->trace, in->arena, &it->trace, &found, err));
        it->outcome->trace_id = it->trace.trace_id.data != NULL
                                    ? it->trace.trace_id
                                    : cx_batch_trace_id(it->event->trace, in->arena);
        it->outcome->signing_key = it->trace.key_id;
        /* A syntax error in the trace is more specific than a problem of its envelope. */
        if (problem.reason == CX_REASON_NONE || found.reason == CX_REASON_INVALID_UTF8 ||
            found.reason == CX_REASON_MALFORMED_JSON)
            problem = found;
    }
    it->event_level = it->event->level;
    it->level = cx_trace_level_of(&it->trace, it->event_level, in->batch->level);
    if (it->event->connectivity)
        check_connectivity(it, &problem);
    if (problem.reason != CX_REASON_NONE) {
        reject_item(it, problem);
        return CX_SUCCESS;
    }
    it->open = true;
    if (in->sender != NULL && it->trace.level == CX_LEVEL_ABSENT &&
        it->event_level == CX_LEVEL_ABSENT && in->batch->level == CX_LEVEL_ABSENT)
        CX_TRY(find_level(in, it, err));
    return digest_signature(in, it, err);
}

/* --- secrets and personal data (docs/sensitive.md) -------------------------------------------- */

static bool covers(cx_str path, cx_str pointer)
{
    return cx_str_starts(pointer, path) &&
           (pointer.size == path.size || pointer.data[path.size] == '/');
}

/* The highest level below the trace's own at which each finding is redacted; NULL = at none. */
static cx_status find_lower_levels(intake *in, item *it, cx_err *err)
{
    it->levels = CX_ARENA_ARRAY(in->arena, const char *, it->found.listed + 1);
    if (it->levels == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < it->found.listed; i++)
        it->levels[i] = NULL;
    for (int level = CX_LEVEL_GENERIC; level < CX_LEVEL_FULL && level < (int)it->level; level++) {
        const cx_str *paths;
        size_t count = 0;
        CX_TRY(
            cx_trace_violations(&it->trace, (cx_trace_level)level, in->arena, &paths, &count, err));
        for (size_t i = 0; i < it->found.listed; i++)
            for (size_t j = 0; j < count; j++)
                if (covers(paths[j], it->found.items[i].pointer))
                    it->levels[i] = cx_trace_level_name((cx_trace_level)level);
    }
    return CX_SUCCESS;
}

/* What was signed is never changed. */
static cx_status mark_item(intake *in, item *it, cx_err *err)
{
    const cx_sensitive_target target = {.bytes = it->payload.data, .size = it->payload.size};
    cx_sensitive_list_init(&it->found, in->arena);
    cx_sensitive_scan_json(in->recorder->options.sensitive, &target, &it->found);
    if (it->found.failed)
        return cx_fail_nomem(err);
    return it->found.listed == 0 ? CX_SUCCESS : find_lower_levels(in, it, err);
}

/* A batch's own metadata is not signed. */
static cx_status mask_metadata(intake *in, cx_batch *batch, cx_err *err)
{
    static const char *const everywhere[2] = {NULL, NULL};
    const cx_sensitive_rules *rules = in->recorder->options.sensitive;
    cx_json *masked = CX_ARENA_NEW(in->arena, cx_json);
    bool changed = false;
    cx_sensitive_list_init(&in->found, in->arena);
    if (batch->correlation_metadata == NULL || !cx_sensitive_is_on(rules))
        return CX_SUCCESS;
    if (masked == NULL)
        return cx_fail_nomem(err);
    cx_buf_clear(&in->scratch);
    CX_TRY(cx_json_write(&in->scratch, batch->correlation_metadata, CX_JSON_PY_COMPACT, err));
    CX_TRY(cx_buf_check(&in->scratch, err));
    CX_TRY(cx_recorder_mask_json(rules, cx_buf_str(&in->scratch), everywhere, true, &in->found,
                                 masked, &changed, err));
    if (changed)
        batch->correlation_metadata = masked;
    return CX_SUCCESS;
}

static cx_status read_items(intake *in, cx_batch_problem *out_problem, cx_err *err)
{
    in->items = CX_ARENA_ARRAY(in->arena, item, in->count + 1);
    in->outcome = CX_ARENA_ARRAY(in->arena, cx_intake_event, in->count + 1);
    if (in->items == NULL || in->outcome == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < in->count; i++)
        in->outcome[i] = (cx_intake_event){.verdict = {.form = CX_FORM_NONE}};
    for (size_t i = 0; i < in->count; i++) {
        in->items[i] =
            (item){.index = i, .event = &in->batch->events[i], .outcome = &in->outcome[i]};
        CX_TRY(read_item(in, &in->items[i], err));
        if (in->batch->batch_timestamp.data != NULL &&
            cx_batch_unreadable(in->outcome[i].verdict.problem.reason, out_problem))
            return CX_SUCCESS;
    }
    CX_TRY(verify_items(in, NULL, err));
    for (size_t i = 0; i < in->count; i++)
        if (in->items[i].open || in->items[i].waiting)
            CX_TRY(choose_actor(in, &in->items[i], err));
    for (size_t i = 0; i < in->count; i++)
        if (in->items[i].open && cx_sensitive_is_on(in->recorder->options.sensitive))
            CX_TRY(mark_item(in, &in->items[i], err));
    return CX_SUCCESS;
}

/* --- the queue and the rates of open senders -------------------------------------------------- */

static bool is_accepted(const item *it)
{
    return it->open || it->waiting;
}

/* Asks once for each key; only for what it signed, so that no one uses up another's rate. */
static bool is_admitted(const intake *in)
{
    for (size_t i = 0; i < in->count; i++) {
        const item *it = &in->items[i];
        size_t events = 0;
        if (!is_accepted(it))
            continue;
        for (size_t j = 0; j < in->count; j++) {
            if (!is_accepted(&in->items[j]) ||
                !cx_str_eq(in->items[j].trace.key_id, it->trace.key_id))
                continue;
            if (j < i)
                break;
            events++;
        }
        if (events != 0 && !in->sender->admit(in->sender->arg, it->trace.key_id, events))
            return false;
    }
    return true;
}

static int compare_waiting(const void *a, const void *b)
{
    const item *x = *(const item *const *)a, *y = *(const item *const *)b;
    int order = cx_str_cmp(x->trace.key_id, y->trace.key_id);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Those that wait, in the order of keys and arrival. */
static cx_status list_waiting(const intake *in, cx_pending_event **out, size_t *out_count,
                              cx_err *err)
{
    const item **waiting = CX_ARENA_ARRAY(in->arena, const item *, in->count + 1);
    cx_pending_event *events = CX_ARENA_ARRAY(in->arena, cx_pending_event, in->count + 1);
    size_t count = 0;
    if (waiting == NULL || events == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < in->count; i++)
        if (in->items[i].waiting)
            waiting[count++] = &in->items[i];
    if (count > 1)
        qsort(waiting, count, sizeof *waiting, compare_waiting);
    for (size_t i = 0; i < count; i++)
        events[i] = (cx_pending_event){.key_id = waiting[i]->trace.key_id,
                                       .content = waiting[i]->outcome->content,
                                       .level = waiting[i]->event_level,
                                       .connectivity = waiting[i]->event->connectivity,
                                       .trace = waiting[i]->event->trace};
    *out = events;
    *out_count = count;
    return CX_SUCCESS;
}

/* Before anything else is stored, so that a full queue refuses the batch as a whole. */
static cx_status queue_items(intake *in, cx_batch_problem *out_problem, cx_err *err)
{
    cx_pending_event *events = NULL;
    size_t count = 0;
    cx_err failure = {0};
    if (!is_admitted(in)) {
        *out_problem = (cx_batch_problem){
            429, "rate",
            CX_STR("this key sends more events than its rate; nothing of this batch was stored"),
            (cx_str){NULL, 0}};
        return CX_SUCCESS;
    }
    CX_TRY(list_waiting(in, &events, &count, err));
    if (count == 0)
        return CX_SUCCESS;
    cx_status status = cx_pending_add_events(in->recorder->pending, in->batch, events, count,
                                             in->now_ns, &failure);
    if (!cx_failed(status))
        return status;
    bool decided = failure.tag != NULL && strcmp(failure.tag, "KeyDecided") == 0;
    if (status.code != CX_E_LIMIT && !decided) {
        *err = failure;
        return status;
    }
    cx_str detail = cx_arena_printf(in->arena, "%s", failure.message);
    if (detail.data == NULL)
        return cx_fail_nomem(err);
    *out_problem = status.code == CX_E_LIMIT
                       ? (cx_batch_problem){429, "pending-full", detail, (cx_str){NULL, 0}}
                       : (cx_batch_problem){503, "unavailable", detail, (cx_str){NULL, 0}};
    return CX_SUCCESS;
}

/* --- storing (in the actor's transaction) ----------------------------------------------------- */

static cx_status find_stored(cx_txn *txn, const item *it, cx_trace_record *out, bool *out_found,
                             cx_err *err)
{
    cx_trace_record_key name;
    cx_bytes value;
    CX_TRY(cx_txn_get(txn, cx_trace_record_name(&name, it->level, it->trace.trace_id), &value,
                      out_found, err));
    return *out_found ? cx_trace_record_decode(value, out, err) : CX_SUCCESS;
}

/* The same signature under another id, in the ledger or earlier in this transaction (I2). */
static cx_status is_replayed_signature(intake *in, cx_txn *txn, const item *it, bool *out,
                                       cx_err *err)
{
    cx_trace_record_key name;
    cx_bytes value;
    bool found = false;
    *out = false;
    CX_TRY(cx_txn_get_common(txn, cx_trace_signature_name(&name, it->level, &it->signature), &value,
                             &found, err));
    if (found) {
        *out = !cx_str_eq(cx_bytes_str(value), it->trace.trace_id);
        return CX_SUCCESS;
    }
    for (const item *other = in->items; other < it && !*out; other++)
        *out = other->outcome->has_entry && other->level == it->level &&
               (other->outcome->status == CX_INTAKE_STORED ||
                other->outcome->status == CX_INTAKE_UNVERIFIED) &&
               cx_digest_eq(&other->signature, &it->signature) &&
               !cx_str_eq(other->trace.trace_id, it->trace.trace_id);
    return CX_SUCCESS;
}

static cx_str capture_of(const intake *in, const item *it)
{
    static const cx_str names[] = {CX_STR("imported"), CX_STR("authenticated"), CX_STR("open")};
    return it->outcome->verdict.verdict == CX_HOLDS ? CX_STR("signed") : names[in->capture];
}

static cx_status append_trace(intake *in, cx_txn *txn, const item *it, cx_str kind, cx_bytes key,
                              cx_err *err)
{
    const cx_trace_verdict *v = &it->outcome->verdict;
    cx_trace_record record = {
        .level = it->level,
        .capture = capture_of(in, it),
        .received_ns = in->batch->received_ns != 0 ? in->batch->received_ns : in->now_ns,
        .consent_ns = in->batch->consent_ns,
        .content = it->outcome->content,
        .signature = it->signature,
        .key_id = it->trace.key_id,
        .verified = v->verdict == CX_HOLDS,
        .reason = v->verdict == CX_HOLDS ? CX_REASON_NONE : v->problem.reason,
        .form = v->form,
        .numbers = v->numbers,
        .canonical = v->canonical,
        .is_view = it->outcome->stripped_count != 0,
    };
    memcpy(record.batch, in->batch_id, sizeof record.batch);
    const cx_entry_draft draft = {
        .kind = kind, .created_at_ns = in->now_ns, .payload = it->payload, .committed = true};
    CX_TRY(cx_txn_entry(txn, &draft, &record.seq, err));
    it->outcome->seq = record.seq;
    const cx_mark mark = {.found = &it->found, .is_signed = true, .levels = it->levels};
    CX_TRY(cx_recorder_mark_put(txn, record.seq, &mark, err));
    cx_buf_clear(&in->scratch);
    cx_trace_record_encode(&record, &in->scratch);
    CX_TRY(cx_buf_check(&in->scratch, err));
    CX_TRY(cx_txn_put(txn, key, cx_buf_bytes(&in->scratch), false, err));
    in->wrote = true;
    return CX_SUCCESS;
}

static cx_status store_conflict(intake *in, cx_txn *txn, item *it, cx_err *err)
{
    cx_trace_record_key name;
    cx_bytes value,
        key = cx_trace_conflict_name(&name, it->level, it->trace.trace_id, &it->outcome->content);
    bool found = false;
    it->outcome->status = CX_INTAKE_CONFLICT;
    it->outcome->verdict.problem = (cx_trace_problem){
        CX_REASON_TRACE_ID_CONFLICT, CX_STR("/trace_id"),
        CX_STR("another trace is stored under this id; both are stored, the first one counts")};
    CX_TRY(cx_txn_get(txn, key, &value, &found, err));
    if (!found)
        return append_trace(in, txn, it, CX_KIND_CONFLICT, key, err);
    cx_trace_record record;
    CX_TRY(cx_trace_record_decode(value, &record, err));
    it->outcome->seq = record.seq;
    return CX_SUCCESS;
}

/* Apart from traces: no lattice, no score and no table contains it. */
static cx_status store_connectivity(intake *in, cx_txn *txn, item *it, cx_err *err)
{
    cx_trace_record record;
    cx_trace_record_key name;
    cx_bytes value, key = cx_trace_connectivity_name(&name, it->level, it->trace.trace_id);
    bool found = false;
    CX_TRY(cx_txn_get(txn, key, &value, &found, err));
    it->outcome->actor = it->actor;
    it->outcome->has_entry = true;
    if (!found)
        return append_trace(in, txn, it, CX_KIND_CONNECTIVITY, key, err);
    CX_TRY(cx_trace_record_decode(value, &record, err));
    if (cx_digest_eq(&record.content, &it->outcome->content)) {
        it->outcome->status = CX_INTAKE_DUPLICATE;
        it->outcome->seq = record.seq;
        return CX_SUCCESS;
    }
    it->outcome->has_entry = false;
    reject_item(it,
                (cx_trace_problem){CX_REASON_TRACE_ID_CONFLICT, CX_STR("/trace_id"),
                                   CX_STR("another connectivity event is stored under this id")});
    return CX_SUCCESS;
}

static cx_status store_item(intake *in, cx_txn *txn, item *it, cx_err *err)
{
    cx_trace_record record;
    cx_trace_record_key name;
    bool found = false, replay = false;
    CX_ASSERT(it->open && it->actor.size != 0); /* I4 */
    CX_ASSERT(it->outcome->status == CX_INTAKE_STORED ||
              it->outcome->status == CX_INTAKE_UNVERIFIED);
    if (it->event->connectivity)
        return store_connectivity(in, txn, it, err);
    CX_TRY(find_stored(txn, it, &record, &found, err));
    it->outcome->actor = it->actor;
    it->outcome->has_entry = true;
    if (found && cx_digest_eq(&record.content, &it->outcome->content)) {
        it->outcome->status = CX_INTAKE_DUPLICATE;
        it->outcome->seq = record.seq;
        return CX_SUCCESS;
    }
    CX_TRY(is_replayed_signature(in, txn, it, &replay, err));
    if (replay) {
        it->outcome->has_entry = false;
        reject_item(
            it, (cx_trace_problem){CX_REASON_SIGNATURE_REPLAYED, CX_STR("/signature"),
                                   CX_STR("this signature was already received under another id")});
        return CX_SUCCESS;
    }
    if (found)
        return store_conflict(in, txn, it, err);
    return append_trace(in, txn, it, CX_KIND_RECEIVED,
                        cx_trace_record_name(&name, it->level, it->trace.trace_id), err);
}

/* I1: nothing that was decided with an older trust store is written. */
static cx_status verify_again_if_trust_changed(intake *in, cx_str actor, cx_err *err)
{
    uint64_t entries = 0;
    CX_TRY(cx_recorder_trust_entries(in->recorder->home, &entries, err));
    if (entries == in->view->entries)
        return CX_SUCCESS;
    cx_trust_view *newer;
    CX_TRY(cx_recorder_trust_acquire(in->recorder, &newer, err));
    cx_trust_view *older = in->view;
    in->view = newer;
    cx_status status = verify_items(in, &actor, err);
    in->view = older;
    cx_recorder_trust_release(in->recorder, newer);
    return status;
}

static cx_status store_actor(intake *in, size_t first, cx_err *err)
{
    cx_txn *txn;
    cx_str actor = in->items[first].actor;
    bool before = in->wrote;
    CX_TRY(cx_txn_begin(in->recorder->home, actor, &txn, err));
    in->wrote = false;
    cx_status status = verify_again_if_trust_changed(in, actor, err);
    for (size_t i = first; i < in->count && !cx_failed(status); i++) {
        item *it = &in->items[i];
        if (it->open && cx_str_eq(it->actor, actor)) {
            status = store_item(in, txn, it, err);
            it->open = false;
        }
    }
    if (cx_failed(status) || !in->wrote)
        cx_txn_abort(txn);
    else
        status = cx_txn_commit_later(txn, &in->last_commit, err);
    in->wrote |= before;
    return status;
}

/* --- the batch and its alerts ----------------------------------------------------------------- */

static cx_status batch_reasons(const intake *in, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(in->arena);
    for (int reason = CX_REASON_INVALID_UTF8; reason <= CX_REASON_TRACE_ID_CONFLICT; reason++) {
        uint64_t count = 0;
        for (size_t i = 0; i < in->count; i++)
            count += (in->outcome[i].status == CX_INTAKE_CONFLICT ||
                      in->outcome[i].status == CX_INTAKE_REJECTED) &&
                     (int)in->outcome[i].verdict.problem.reason == reason;
        if (count != 0)
            cx_json_list_put(&list, cx_str_z(cx_trace_reason_name((cx_trace_reason)reason)),
                             cx_json_make_uint(in->arena, count));
    }
    return cx_json_list_end_object(&list, out, err);
}

/* Consent dated after the batch, or times in the future, are findings (decision 0026). */
static size_t find_unusual_times(const intake *in, const char *out[CX_INTAKE_WARNINGS_MAX])
{
    const cx_batch *batch = in->batch;
    size_t count = 0;
    if (batch->consent_ns > batch->batch_ns)
        out[count++] = "consent_after_batch";
    if (batch->consent_ns > in->now_ns)
        out[count++] = "consent_in_future";
    if (batch->batch_ns > in->now_ns)
        out[count++] = "batch_in_future";
    return count;
}

static const char consent_revoked[] = "consent_revoked";

static bool has_revoked_consent(const cx_intake_event *outcome)
{
    return outcome->warning_count != 0 &&
           outcome->warnings[outcome->warning_count - 1] == consent_revoked;
}

static cx_status batch_findings(const intake *in, cx_json *out, cx_err *err)
{
    const char *found[CX_INTAKE_WARNINGS_MAX];
    size_t count = find_unusual_times(in, found);
    cx_json_list list = cx_json_list_begin(in->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&list, cx_json_make_str(cx_str_z(found[i])));
    for (size_t i = 0; i < in->count; i++)
        if (has_revoked_consent(&in->outcome[i])) {
            cx_json_list_add(&list, cx_json_make_str(CX_STR(consent_revoked)));
            break;
        }
    return cx_json_list_end_array(&list, out, err);
}

/* Each accepted trace is named with what is unusual about its consent. */
static cx_status warn_of_consent(intake *in, cx_err *err)
{
    cx_str actor = CX_STR("");
    int64_t revoked_ns = CX_TIME_NONE;
    for (size_t i = 0; i < in->count; i++) {
        cx_intake_event *outcome = &in->outcome[i];
        if (outcome->status == CX_INTAKE_REJECTED)
            continue;
        outcome->warning_count = find_unusual_times(in, outcome->warnings);
        if (!cx_str_eq(actor, in->items[i].actor)) {
            actor = in->items[i].actor;
            CX_TRY(cx_recorder_consent_revoked(in->recorder, actor, in->arena, &revoked_ns, err));
        }
        if (revoked_ns != CX_TIME_NONE && in->batch->consent_ns <= revoked_ns)
            outcome->warnings[outcome->warning_count++] = consent_revoked;
    }
    return CX_SUCCESS;
}

static cx_status batch_json(const intake *in, const cx_intake *sums, cx_json *out, cx_err *err)
{
    const cx_batch *batch = in->batch;
    char id[2 * CX_TRACE_BATCH_ID_SIZE];
    cx_json reasons, findings;
    CX_TRY(batch_reasons(in, &reasons, err));
    CX_TRY(batch_findings(in, &findings, err));
    cx_hex_encode(cx_bytes_from(in->batch_id, sizeof in->batch_id), id);
    cx_str id_copy = cx_arena_copy_str(in->arena, cx_str_from(id, sizeof id));
    if (id_copy.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list list = cx_json_list_begin(in->arena);
    cx_json_list_put(&list, CX_STR("batch_id"), cx_json_make_str(id_copy));
    cx_json_list_put(&list, CX_STR("batch_timestamp"), cx_json_make_str(batch->batch_timestamp));
    cx_json_list_put(&list, CX_STR("consent_timestamp"),
                     cx_json_make_str(batch->consent_timestamp));
    if (batch->level != CX_LEVEL_ABSENT)
        cx_json_list_put(&list, CX_STR("trace_level"),
                         cx_json_make_str(cx_str_z(cx_trace_level_name(batch->level))));
    if (batch->correlation_metadata != NULL)
        cx_json_list_put(&list, CX_STR("correlation_metadata"), *batch->correlation_metadata);
    cx_json_list_put(&list, CX_STR("received"),
                     cx_json_make_uint(in->arena, sums->received - sums->pending));
    cx_json_list_put(&list, CX_STR("accepted"),
                     cx_json_make_uint(in->arena, sums->accepted - sums->pending));
    cx_json_list_put(&list, CX_STR("rejected"), cx_json_make_uint(in->arena, sums->rejected));
    cx_json_list_put(&list, CX_STR("reasons"), reasons);
    cx_json_list_put(&list, CX_STR("findings"), findings);
    return cx_json_list_end_object(&list, out, err);
}

/* A batch in which nothing was new is not worth an entry: sending it again changes nothing.  Nor is
 * one of an open sender of which nothing was stored: strangers must not make the ledger grow. */
static bool batch_is_new(const intake *in)
{
    if (in->sender != NULL)
        return in->wrote;
    for (size_t i = 0; i < in->count; i++)
        if (in->outcome[i].status == CX_INTAKE_REJECTED)
            return true;
    return in->wrote;
}

static cx_status store_batch(intake *in, const cx_intake *sums, cx_err *err)
{
    cx_txn *txn;
    cx_json value;
    uint64_t seq;
    if (in->batch->batch_timestamp.data == NULL || !batch_is_new(in))
        return CX_SUCCESS;
    CX_TRY(batch_json(in, sums, &value, err));
    cx_buf_clear(&in->scratch);
    CX_TRY(cx_json_write(&in->scratch, &value, CX_JSON_PY_COMPACT, err));
    const cx_entry_draft draft = {.kind = CX_KIND_BATCH,
                                  .created_at_ns = in->now_ns,
                                  .payload = cx_buf_bytes(&in->scratch),
                                  .committed = true};
    CX_TRY(cx_txn_begin(in->recorder->home, CX_ACTOR_BATCHES, &txn, err));
    const cx_mark mark = {.found = &in->found};
    cx_status status = cx_txn_entry(txn, &draft, &seq, err);
    if (!cx_failed(status))
        status = cx_recorder_mark_put(txn, seq, &mark, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    in->wrote = true;
    return cx_txn_commit_later(txn, &in->last_commit, err);
}

static cx_status raise_conflict_alerts(intake *in, cx_err *err)
{
    for (size_t i = 0; i < in->count; i++) {
        const cx_intake_event *outcome = &in->outcome[i];
        if (outcome->status != CX_INTAKE_CONFLICT)
            continue;
        const cx_conflict_alert alert = {.agent = outcome->actor,
                                         .trace_id = outcome->trace_id,
                                         .content = outcome->content,
                                         .at_ns = in->now_ns};
        bool raised = false;
        uint64_t commit = 0;
        CX_TRY(cx_recorder_raise_conflict(in->recorder, &alert, &raised, &commit, err));
        if (raised)
            in->last_commit = commit;
    }
    return CX_SUCCESS;
}

/* --- all of it -------------------------------------------------------------------------------- */

static void count_results(const intake *in, cx_intake *out)
{
    *out = (cx_intake){.events = in->outcome, .received = in->count};
    for (size_t i = 0; i < in->count; i++) {
        out->pending += in->outcome[i].status == CX_TAKE_PENDING;
        out->accepted += in->outcome[i].status <= CX_INTAKE_UNVERIFIED ||
                         in->outcome[i].status == CX_TAKE_PENDING;
    }
    out->rejected = out->received - out->accepted;
    for (size_t i = 0; i < in->count; i++) /* I5 */
        CX_ASSERT(in->outcome[i].has_entry == (in->outcome[i].status < CX_INTAKE_REJECTED));
}

static cx_status store_items(intake *in, cx_intake *out, cx_err *err)
{
    for (size_t i = 0; i < in->count; i++)
        if (in->items[i].open)
            CX_TRY(store_actor(in, i, err));
    for (size_t i = 0; i < in->count; i++)
        CX_ASSERT(!in->items[i].open); /* every item is decided */
    CX_TRY(warn_of_consent(in, err));
    count_results(in, out);
    CX_TRY(raise_conflict_alerts(in, err));
    CX_TRY(store_batch(in, out, err));
    out->changed = in->wrote;
    if (!in->wrote)
        /* An item reported as a duplicate must be durable before the answer. */
        return out->received == 0 ? CX_SUCCESS : cx_home_sync(in->recorder->home, err);
    CX_TRY(cx_home_wait(in->recorder->home, in->last_commit, err));
    cx_recorder_notify(in->recorder);
    return CX_SUCCESS;
}

cx_status cx_recorder_receive_from(cx_recorder *recorder, const cx_batch *batch, cx_capture capture,
                                   const cx_open_sender *sender, cx_arena *arena, cx_intake *out,
                                   cx_err *err)
{
    cx_batch own = *batch;
    intake in = {.recorder = recorder,
                 .arena = arena,
                 .batch = &own,
                 .capture = capture,
                 .sender = sender,
                 .count = batch->event_count,
                 .now_ns = cx_recorder_now(recorder)};
    const cx_io *io = cx_home_io(recorder->home);
    cx_batch_problem problem = {0};
    if (io->random(io, in.batch_id, sizeof in.batch_id) != 0)
        return cx_fail(err, CX_E_IO, "cannot read random bytes");
    CX_TRY(cx_recorder_trust_acquire(recorder, &in.view, err));
    cx_buf_init(&in.scratch, recorder->alloc);
    cx_trace_parser_init(&in.parser, recorder->alloc);
    cx_status status = mask_metadata(&in, &own, err);
    if (!cx_failed(status))
        status = read_items(&in, &problem, err);
    if (!cx_failed(status) && problem.http == 0 && sender != NULL)
        status = queue_items(&in, &problem, err);
    if (!cx_failed(status) && problem.http != 0)
        *out = (cx_intake){.problem = problem};
    else if (!cx_failed(status))
        status = store_items(&in, out, err);
    for (size_t i = 0; i < in.count && in.outcome != NULL; i++)
        in.outcome[i].verdict.key = NULL; /* owned by the view */
    cx_buf_done(&in.scratch);
    cx_json_parser_done(&in.parser);
    cx_recorder_trust_release(recorder, in.view);
    return status;
}

static cx_status receive_body(cx_recorder *recorder, cx_bytes body, cx_capture capture,
                              const cx_open_sender *sender, cx_arena *arena, cx_intake *out,
                              cx_err *err)
{
    cx_batch batch;
    cx_batch_problem problem;
    CX_TRY(cx_batch_read(body, arena, &batch, &problem, err));
    if (problem.http != 0) {
        *out = (cx_intake){.problem = problem};
        return CX_SUCCESS;
    }
    return cx_recorder_receive_from(recorder, &batch, capture, sender, arena, out, err);
}

cx_status cx_recorder_receive(cx_recorder *recorder, cx_bytes body, cx_capture capture,
                              cx_arena *arena, cx_intake *out, cx_err *err)
{
    return receive_body(recorder, body, capture, NULL, arena, out, err);
}

cx_status cx_recorder_take_open(cx_recorder *recorder, cx_bytes body, const cx_open_sender *sender,
                                cx_arena *arena, cx_intake *out, cx_err *err)
{
    return receive_body(recorder, body, CX_CAPTURE_OPEN, sender, arena, out, err);
}

cx_status cx_recorder_receive_traces(cx_recorder *recorder, const cx_bytes *traces, size_t count,
                                     cx_trace_level batch_level, cx_capture capture,
                                     cx_arena *arena, cx_intake *out, cx_err *err)
{
    cx_event *events = CX_ARENA_ARRAY(arena, cx_event, count + 1);
    if (events == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        events[i] = (cx_event){.trace = traces[i], .level = CX_LEVEL_ABSENT};
    const cx_batch batch = {
        .events = events, .event_count = count, .level = batch_level, .consent_ns = CX_TIME_NONE};
    return cx_recorder_receive_from(recorder, &batch, capture, NULL, arena, out, err);
}

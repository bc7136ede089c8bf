/*
 * feed.c - feeds the ledger into an index, from the position where the last feed stopped
 * (trace.md §10).
 *
 * F1  The index is a function of the log: a rebuild gives equal rows, however the feed was divided.
 *     Verdicts are those of the record, computed again when the trust store changes (§4), with the
 *     store as it was at that position of the log.
 * F2  Rows and the position after them are one transaction.  An interrupted feed continues there.
 *     Two programs that feed one index notice each other: the position is read again inside the
 *     transaction.
 * F3  An unavailable database only delays the index: intake never waits for it.
 * F4  Kinds are interpreted only in the journals that the recorder writes: an entry with such a
 *     kind in another journal, or in another form, is not indexed and does not stop the feed.
 */
#include "base/api.h"
#include "crypto/api.h"
#include "recorder/feed_steps.h"
#include "recorder/internal.h"
#include "recorder/links.h"

/* Frames in one transaction. */
#define FRAMES_AT_ONCE 4096
#define LINKS_EVERY 4096 /* frames */
#define POLL_MS 200
#define RETRY_MS 1000
#define UPKEEP_NS UINT64_C(3600000000000)
#define DAY_NS (INT64_C(86400) * 1000000000)

typedef struct feed {
    cx_recorder *recorder;
    bool is_thread; /* the one that stops when the recorder's feeder does */
    cx_index *index;
    uint8_t home_id[16];
    cx_position at;
    cx_arena arena; /* of one frame */
    cx_buf scratch;
    cx_trust_store
        store; /* the keys as the first `index_otlp_entries` of their journal made them */
    uint64_t index_otlp_entries;
    bool erased;       /* something was, since the links were told */
    bool linked;       /* the links were read on once .. */
    uint64_t unlinked; /* .. and so many frames were fed since */
} feed;

/* --- rows ------------------------------------------------------------------------------------- */

static const cx_change *change_under(const cx_tail_item *item, const char *prefix)
{
    size_t size = strlen(prefix);
    for (size_t i = 0; i < item->change_count; i++) {
        const cx_change *change = &item->changes[i];
        if (!change->removed && change->key.size > size &&
            memcmp(change->key.data, prefix, size) == 0)
            return change;
    }
    return NULL;
}

static cx_status feed_trace(feed *f, const cx_tail_item *item, cx_err *err)
{
    const cx_change *change = change_under(item, "trace/");
    cx_trace_record record;
    cx_trace trace;
    cx_trace_problem problem;
    cx_trace_row row;
    if (change == NULL || item->erased)
        return CX_SUCCESS;
    CX_TRY(cx_trace_record_decode(change->value, &record, err));
    CX_TRY(cx_trace_read_stored(item->payload, &f->arena, &trace, &problem, err));
    cx_trace_facts facts = {
        .level = record.level,
        .received_ns = record.received_ns,
        .consent_ns = record.consent_ns,
        .verified = record.verified,
        .reason = record.reason,
        .form = record.form,
        .has_canonical = record.form != CX_FORM_NONE,
        .canonical = record.canonical,
        .content = record.content,
        .actor = item->actor,
        .seq = record.seq,
        .key_id = record.key_id,
    };
    CX_TRY(cx_index_established(f->index, item->actor, &facts.established, err));
    CX_TRY(cx_trace_row_make(&trace, &facts, &f->arena, &row, err));
    CX_TRY(cx_index_put_trace(f->index, &row, err));
    const cx_feed_entry at = {f->index, item, &f->arena};
    return cx_feed_trace_words(&at, &trace, record.level, err);
}

static cx_status feed_conflict(feed *f, const cx_tail_item *item, cx_err *err)
{
    const cx_change *change = change_under(item, "conflict/");
    cx_trace_record record;
    if (change == NULL || change->key.size < 9 + 2 + 1 + 32)
        return CX_SUCCESS;
    CX_TRY(cx_trace_record_decode(change->value, &record, err));
    cx_str key = cx_bytes_str(change->key);
    const cx_conflict_row row = {
        .agent = item->actor,
        .trace_id = cx_str_from(key.data + 11, key.size - 11 - 33),
        .level = record.level,
        .content = record.content,
        .received_ns = record.received_ns,
        .actor = item->actor,
        .seq = record.seq,
    };
    return cx_index_put_conflict(f->index, &row, err);
}

/* --- verdicts computed again (§4) ------------------------------------------------------------- */

static cx_status rejudge_row(feed *f, const cx_keyed_row *row, const cx_trust *trust, cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(&f->arena);
    cx_recorded recorded;
    cx_trace_verdict verdict;
    CX_TRY(cx_recorder_recorded(f->recorder->home, row->actor, row->seq, row->level, &f->arena,
                                &recorded, err));
    if (recorded.erased || recorded.record.is_view) {
        cx_arena_reset(&f->arena, mark); /* the signed bytes are erased: the verdict stays */
        return CX_SUCCESS;
    }
    const cx_trace_check check = {.trust = trust,
                                  .received_ns = recorded.record.received_ns,
                                  .event_level = recorded.record.level,
                                  .batch_level = recorded.record.level,
                                  .forms = CX_FORMS_ALL,
                                  .any_level = true};
    CX_TRY(cx_trace_verify(&recorded.trace, &check, &f->scratch, &f->arena, &verdict, err));
    const cx_rejudged change = {.agent = row->agent,
                                .trace_id = row->trace_id,
                                .level = row->level,
                                .verified = verdict.verdict == CX_HOLDS,
                                .reason = verdict.problem.reason,
                                .form = verdict.form,
                                .has_canonical = verdict.form != CX_FORM_NONE,
                                .canonical = verdict.canonical};
    /* What stays unverified may be so for another reason now. */
    cx_status status =
        change.verified && row->verified ? CX_SUCCESS : cx_index_rejudge(f->index, &change, err);
    cx_arena_reset(&f->arena, mark);
    return status;
}

/* Phases of later traces hang on what is verified (§6): each agent is seen to once. */
static cx_status recompute_agent_phases(feed *f, const cx_keyed_row *rows, size_t count,
                                        cx_err *err)
{
    cx_map seen;
    cx_status status = CX_SUCCESS;
    cx_map_init(&seen, f->recorder->alloc, cx_io_seed(cx_io_system()));
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        uint64_t *slot;
        bool is_new = false;
        status = cx_map_put(&seen, rows[i].agent, &slot, &is_new, err);
        if (!cx_failed(status) && is_new)
            status = cx_index_update_phases(f->index, rows[i].agent, err);
    }
    cx_map_done(&seen);
    return status;
}

static cx_status rejudge_key(feed *f, const cx_trust_key *key, cx_err *err)
{
    const cx_trust trust = {key, 1};
    const cx_keyed_row *rows;
    size_t count = 0;
    CX_TRY(cx_index_rows_of_key(f->index, key->key_id, &f->arena, &rows, &count, err));
    for (size_t i = 0; i < count; i++)
        /* A registration helps what is not verified, a compromise hurts what is. */
        if (!rows[i].verified || key->compromised_since != CX_TIME_NONE)
            CX_TRY(rejudge_row(f, &rows[i], &trust, err));
    return recompute_agent_phases(f, rows, count, err);
}

/* The keys as they were before this entry of their journal. */
static cx_status reach_entry(feed *f, uint64_t seq, cx_err *err)
{
    const cx_trust_key *changed;
    if (seq < f->index_otlp_entries) { /* the index was created again meanwhile */
        cx_trust_store_done(&f->store);
        cx_trust_store_init(&f->store, f->recorder->alloc);
        f->index_otlp_entries = 0;
    }
    for (; f->index_otlp_entries < seq; f->index_otlp_entries++) {
        cx_arena_mark mark = cx_arena_mark_now(&f->arena);
        cx_entry_view entry;
        CX_TRY(cx_home_entry(f->recorder->home, CX_ACTOR_TRUST, f->index_otlp_entries, &f->arena,
                             &entry, err));
        if (cx_str_eq(entry.entry.kind, CX_KIND_KEY))
            CX_TRY(cx_trust_store_apply(&f->store, entry.payload, &changed, err));
        cx_arena_reset(&f->arena, mark);
    }
    return CX_SUCCESS;
}

static cx_status feed_key(feed *f, const cx_tail_item *item, cx_err *err)
{
    const cx_trust_key *changed;
    CX_TRY(reach_entry(f, item->entry.seq, err));
    CX_TRY(cx_trust_store_apply(&f->store, item->payload, &changed, err));
    f->index_otlp_entries = item->entry.seq + 1;
    if (changed == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_index_put_key(f->index, changed, err));
    return rejudge_key(f, changed, err);
}

/* --- batches and alerts ----------------------------------------------------------------------- */

static int64_t time_of(const cx_json *object, cx_str name)
{
    int64_t ns;
    bool naive;
    cx_str text = cx_json_get_str(object, name);
    return text.data != NULL && cx_trace_time_parse(text, &ns, &naive) ? ns : CX_TIME_NONE;
}

static uint64_t count_of(const cx_json *object, cx_str name)
{
    uint64_t count = 0;
    const cx_json *value = cx_json_get(object, name);
    return value != NULL && cx_json_uint64(value, &count) ? count : 0;
}

static cx_status text_of(feed *f, const cx_json *value, cx_str *out, cx_err *err)
{
    *out = (cx_str){NULL, 0};
    if (value == NULL)
        return CX_SUCCESS;
    cx_buf_clear(&f->scratch);
    CX_TRY(cx_json_write(&f->scratch, value, CX_JSON_PY_COMPACT, err));
    *out = cx_arena_copy_str(&f->arena, cx_buf_str(&f->scratch));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* False for what is not of the form (F4), and for what was erased. */
static cx_status read_payload(feed *f, const cx_tail_item *item, cx_json *out, bool *out_good,
                              cx_err *err)
{
    cx_status status = cx_json_parse_text(cx_bytes_str(item->payload), &f->arena, out, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    *out_good = !cx_failed(status) && out->type == CX_JSON_OBJECT;
    return CX_SUCCESS;
}

static cx_status feed_batch(feed *f, const cx_tail_item *item, cx_err *err)
{
    cx_json batch;
    bool good = false;
    CX_TRY(read_payload(f, item, &batch, &good, err));
    if (!good || CX_JSON_GET_STR(&batch, "batch_id").data == NULL)
        return CX_SUCCESS;
    cx_batch_row row = {
        .batch_id = CX_JSON_GET_STR(&batch, "batch_id"),
        .received_ns = item->entry.created_at_ns,
        .batch_ns = time_of(&batch, CX_STR("batch_timestamp")),
        .consent_ns = time_of(&batch, CX_STR("consent_timestamp")),
        .level = CX_LEVEL_ABSENT,
        .received = count_of(&batch, CX_STR("received")),
        .accepted = count_of(&batch, CX_STR("accepted")),
        .rejected = count_of(&batch, CX_STR("rejected")),
        .seq = item->entry.seq,
    };
    (void)cx_trace_level_parse(CX_JSON_GET_STR(&batch, "trace_level"), &row.level);
    CX_TRY(text_of(f, CX_JSON_GET(&batch, "correlation_metadata"), &row.correlation_metadata, err));
    CX_TRY(text_of(f, CX_JSON_GET(&batch, "reasons"), &row.reasons, err));
    CX_TRY(text_of(f, CX_JSON_GET(&batch, "findings"), &row.findings, err));
    return cx_index_put_batch(f->index, &row, err);
}

static cx_status feed_alert(feed *f, const cx_tail_item *item, cx_err *err)
{
    cx_json alert;
    bool good = false;
    CX_TRY(read_payload(f, item, &alert, &good, err));
    if (!good || CX_JSON_GET_STR(&alert, "alert_id").data == NULL ||
        CX_JSON_GET_STR(&alert, "severity").data == NULL ||
        CX_JSON_GET_STR(&alert, "detection_mechanism").data == NULL)
        return CX_SUCCESS;
    return cx_index_put_alert(f->index, &alert, item->entry.created_at_ns, err);
}

static cx_status feed_mark(feed *f, const cx_tail_item *item, cx_err *err)
{
    cx_json mark;
    bool good = false;
    CX_TRY(read_payload(f, item, &mark, &good, err));
    if (!good)
        return CX_SUCCESS;
    return cx_index_mark_alert(f->index, CX_JSON_GET_STR(&mark, "alert_id"),
                               cx_str_is(CX_JSON_GET_STR(&mark, "state"), "resolved"),
                               item->entry.created_at_ns, CX_JSON_GET_STR(&mark, "by"),
                               CX_JSON_GET_STR(&mark, "notes"), err);
}

/* Erased content is removed from the index, too (decision 0023). */
static cx_status feed_redact(feed *f, const cx_tail_item *item, cx_err *err)
{
    cx_payload payload;
    CX_TRY(cx_payload_decode(CX_ENTRY_REDACT, item->payload, &f->arena, &payload, err));
    return cx_index_forget(f->index, item->actor, payload.as.redact.target_seq, err);
}

/* --- the loop --------------------------------------------------------------------------------- */

static cx_status feed_item(feed *f, const cx_tail_item *item, cx_err *err)
{
    static const struct {
        const char *kind, *actor; /* NULL = any */
        cx_status (*feed_kind)(feed *f, const cx_tail_item *item, cx_err *err);
    } kinds[] = {{"trace.received", NULL, feed_trace},   {"trace.conflict", NULL, feed_conflict},
                 {"trace.batch", "batches", feed_batch}, {"trace.key", "trust", feed_key},
                 {"trace.alert", "alerts", feed_alert},  {"trace.alert_ack", "alerts", feed_mark},
                 {"redact", NULL, feed_redact}};
    if (!item->has_entry)
        return CX_SUCCESS;
    const cx_feed_entry at = {f->index, item, &f->arena};
    CX_TRY(cx_feed_steps(&at, err));
    CX_TRY(cx_feed_memory_words(&at, err));
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++)
        if (cx_str_is(item->entry.kind, kinds[i].kind))
            return kinds[i].actor == NULL || cx_str_is(item->actor, kinds[i].actor)
                       ? kinds[i].feed_kind(f, item, err)
                       : CX_SUCCESS;
    return CX_SUCCESS;
}

static cx_status feed_frames(feed *f, cx_tail *tail, bool *out_end, cx_err *err)
{
    cx_position at = f->at;
    *out_end = false;
    for (unsigned i = 0; i < FRAMES_AT_ONCE && !*out_end; i++) {
        cx_tail_item item;
        cx_arena_mark mark = cx_arena_mark_now(&f->arena);
        CX_TRY(cx_tail_next(tail, &item, out_end, err));
        if (*out_end)
            break;
        CX_TRY(feed_item(f, &item, err));
        f->erased = f->erased || (item.has_entry && (cx_str_is(item.entry.kind, "redact") ||
                                                     cx_str_is(item.entry.kind, "redact_memory")));
        cx_arena_reset(&f->arena, mark);
        CX_ASSERT(i == 0 ||
                  cx_position_before(at, item.position_after)); /* F2: the position advances */
        at = item.position_after;
        f->unlinked++;
    }
    f->at = at;
    return CX_SUCCESS;
}

/* The index's actual position: another program may have fed it since it was read. */
static cx_status reload_position(feed *f, bool *out_moved, cx_err *err)
{
    cx_feed_position position;
    CX_TRY(cx_index_position(f->index, f->home_id, &position, err));
    const cx_position now = {position.commit, position.frames};
    *out_moved = cx_position_before(f->at, now) || cx_position_before(now, f->at);
    f->at = now;
    return CX_SUCCESS;
}

/* `*out_moved`: nothing was done, the tail has to start again at `f->at`. */
static cx_status feed_transaction(feed *f, cx_tail *tail, bool *out_end, bool *out_moved,
                                  cx_err *err)
{
    CX_TRY(cx_index_begin(f->index, err));
    cx_status status = reload_position(f, out_moved, err);
    cx_position before = f->at;
    if (!cx_failed(status) && !*out_moved)
        status = feed_frames(f, tail, out_end, err);
    if (!cx_failed(status) && !cx_position_before(before, f->at)) {
        cx_index_rollback(f->index); /* nothing new */
        return CX_SUCCESS;
    }
    if (!cx_failed(status)) {
        const cx_feed_position position = {f->at.commit, f->at.frames};
        status = cx_index_commit(f->index, f->home_id, position, err);
    }
    if (cx_failed(status)) {
        cx_index_rollback(f->index);
        f->at = before;
    }
    return status;
}

static void report(feed *f)
{
    cx_recorder *recorder = f->recorder;
    uint64_t durable = cx_home_durable(recorder->home);
    cx_lock_enter(&recorder->lock);
    bool was_away = recorder->feeder.status.away;
    recorder->feeder.status.log_commits = durable;
    recorder->feeder.status.index_commits = f->at.commit;
    recorder->feeder.status.away = false;
    cx_lock_wake(&recorder->lock);
    cx_lock_leave(&recorder->lock);
    if (was_away && recorder->feeder.changed != NULL)
        recorder->feeder.changed(recorder->feeder.arg, NULL);
}

static bool is_stopping(cx_recorder *recorder)
{
    cx_lock_enter(&recorder->lock);
    bool stopping = recorder->feeder.stopping;
    cx_lock_leave(&recorder->lock);
    return stopping;
}

static bool has_to_stop(const feed *f)
{
    return f->is_thread && is_stopping(f->recorder);
}

/* Asked after each transaction, so that a feed from the beginning stays small, too. */
static cx_status bound_index(feed *f, cx_err *err)
{
    uint64_t max = f->recorder->options.index_bytes, dropped;
    if (max == 0 || strcmp(cx_index_engine(f->index), "sqlite") != 0)
        return CX_SUCCESS;
    return cx_index_bound(f->index, max, &dropped, err);
}

/* From where the index is to the log's end, or until another program moved the index. */
static cx_status feed_tail(feed *f, bool *out_end, cx_err *err)
{
    cx_tail *tail;
    bool moved = false;
    CX_TRY(cx_tail_begin(f->recorder->home, f->at, &tail, err));
    cx_status status = CX_SUCCESS;
    while (!*out_end && !moved && !cx_failed(status) && !has_to_stop(f)) {
        status = feed_transaction(f, tail, out_end, &moved, err);
        if (!cx_failed(status))
            status = bound_index(f, err);
        report(f);
    }
    cx_tail_end(tail);
    return status;
}

/* All that the log has now; the thread stops before when it is to. */
static cx_status feed_all(feed *f, cx_err *err)
{
    bool end = false;
    while (!end && !has_to_stop(f))
        CX_TRY(feed_tail(f, &end, err));
    if (f->erased && end) {
        f->erased = false;
        cx_status told = cx_links_forget_erased(f->recorder->home, NULL);
        (void)told; /* no reason to stop: the next that opens them reads that, too */
    }
    return CX_SUCCESS;
}

static cx_status feed_open(feed *f, cx_recorder *recorder, const char *where, cx_err *err)
{
    *f = (feed){.recorder = recorder};
    cx_arena_init(&f->arena, recorder->alloc, 0);
    cx_buf_init(&f->scratch, recorder->alloc);
    cx_trust_store_init(&f->store, recorder->alloc);
    cx_home_id(recorder->home, f->home_id);
    cx_feed_position position;
    CX_TRY(cx_index_open(where, CX_INDEX_WRITE, &f->index, err));
    CX_TRY(cx_index_position(f->index, f->home_id, &position, err));
    f->at = (cx_position){position.commit, position.frames};
    return CX_SUCCESS;
}

static void feed_close(feed *f)
{
    cx_index_close(f->index);
    cx_trust_store_done(&f->store);
    cx_buf_done(&f->scratch);
    cx_arena_done(&f->arena);
}

cx_status cx_recorder_feed_now(cx_recorder *recorder, const char *where, cx_err *err)
{
    feed f;
    cx_status status = feed_open(&f, recorder, where, err);
    if (!cx_failed(status))
        status = feed_all(&f, err);
    feed_close(&f);
    return status;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void note_failure(cx_recorder *recorder, const cx_err *failure)
{
    cx_feed_status *status = &recorder->feeder.status;
    cx_lock_enter(&recorder->lock);
    bool is_new = !status->away || strcmp(status->last_error, failure->message) != 0;
    status->away = true;
    memcpy(status->last_error, failure->message, sizeof status->last_error);
    cx_lock_leave(&recorder->lock);
    if (is_new && recorder->feeder.changed != NULL)
        recorder->feeder.changed(recorder->feeder.arg, failure);
}

/* Until there is more in the log, or the end. */
static void wait_for_more(feed *f)
{
    cx_recorder *recorder = f->recorder;
    while (!is_stopping(recorder) && cx_home_durable(recorder->home) <= f->at.commit) {
        cx_lock_enter(&recorder->lock);
        if (!recorder->feeder.stopping)
            cx_lock_wait_for(&recorder->lock, POLL_MS);
        cx_lock_leave(&recorder->lock);
    }
}

static void sleep_until_notified(cx_recorder *recorder, uint64_t milliseconds)
{
    const cx_io *io = cx_home_io(recorder->home);
    uint64_t end = io->monotonic_ns(io) + milliseconds * UINT64_C(1000000);
    while (!is_stopping(recorder) && io->monotonic_ns(io) < end) {
        cx_lock_enter(&recorder->lock);
        if (!recorder->feeder.stopping)
            cx_lock_wait_for(&recorder->lock, POLL_MS);
        cx_lock_leave(&recorder->lock);
    }
}

/* Once an hour: summaries are made true, and rows that are too old go. */
static cx_status maintain_index(feed *f, uint64_t *last_ns, cx_err *err)
{
    const cx_recorder *recorder = f->recorder;
    const cx_io *io = cx_home_io(recorder->home);
    uint64_t now = io->monotonic_ns(io), count = 0;
    if (*last_ns != 0 && now - *last_ns < UPKEEP_NS)
        return CX_SUCCESS;
    *last_ns = now;
    if (recorder->options.index_days != 0) {
        int64_t oldest = cx_recorder_now(recorder) - recorder->options.index_days * DAY_NS;
        CX_TRY(cx_index_retain(f->index, oldest, &count, err));
    }
    return cx_index_refresh(f->index, &count, err);
}

/* What is to be indexed comes first. */
static bool has_more_to_do(void *arg)
{
    const feed *f = arg;
    return is_stopping(f->recorder) || cx_home_durable(f->recorder->home) > f->at.commit;
}

/* After many frames, so that what opens links has few to read, and a few frames cost nothing. */
static void read_links(feed *f)
{
    bool end = false;
    if (f->linked && f->unlinked < LINKS_EVERY)
        return;
    cx_status status = cx_links_read_on(f->recorder->home, has_more_to_do, f, &end, NULL);
    f->linked = cx_failed(status) || end; /* else it goes on when there is time */
    if (f->linked)
        f->unlinked = 0;
}

static void feed_until_failure(cx_recorder *recorder)
{
    feed f;
    cx_err failure = {0};
    cx_status status = feed_open(&f, recorder, recorder->feeder.where, &failure);
    uint64_t last_upkeep_ns = 0;
    f.is_thread = true;
    while (!cx_failed(status)) {
        status = feed_all(&f, &failure);
        if (cx_failed(status) || is_stopping(recorder))
            break;
        status = maintain_index(&f, &last_upkeep_ns, &failure);
        if (cx_failed(status))
            break;
        read_links(&f);
        wait_for_more(&f);
    }
    if (cx_failed(status))
        note_failure(recorder, &failure);
    feed_close(&f);
}

static void feed_thread(void *arg)
{
    cx_recorder *recorder = arg;
    while (!is_stopping(recorder)) {
        feed_until_failure(recorder);
        if (!is_stopping(recorder))
            sleep_until_notified(recorder, RETRY_MS);
    }
}

/* An unavailable database may come back; one of another data directory, a newer one, or an address
 * that is none will not change. */
static cx_status check_index(cx_recorder *recorder, const char *where, cx_err *err)
{
    feed f;
    cx_err failure = {0};
    cx_status status = feed_open(&f, recorder, where, &failure);
    feed_close(&f);
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code != CX_E_CONFLICT && status.code != CX_E_FORMAT && status.code != CX_E_USAGE) {
        note_failure(recorder, &failure);
        return CX_SUCCESS;
    }
    if (err != NULL)
        *err = failure;
    return status;
}

cx_status cx_recorder_feed_begin(cx_recorder *recorder, const char *where, cx_feed_changed *changed,
                                 void *arg, cx_err *err)
{
    cx_feeder *feeder = &recorder->feeder;
    feeder->changed = changed;
    feeder->arg = arg;
    CX_TRY(check_index(recorder, where, err));
    size_t size = strlen(where) + 1;
    CX_ASSERT(feeder->where == NULL);
    feeder->where = cx_alloc_new(recorder->alloc, size);
    if (feeder->where == NULL)
        return cx_fail_nomem(err);
    memcpy(feeder->where, where, size);
    feeder->status.running = true;
    if (cx_thread_start(&feeder->thread, feed_thread, recorder))
        return CX_SUCCESS;
    cx_alloc_free(recorder->alloc, feeder->where, size);
    feeder->where = NULL;
    feeder->status.running = false;
    return cx_fail(err, CX_E_LIMIT, "cannot start the thread that feeds the index");
}

void cx_recorder_feed_end(cx_recorder *recorder)
{
    cx_feeder *feeder = &recorder->feeder;
    if (feeder->where == NULL)
        return;
    cx_lock_enter(&recorder->lock);
    feeder->stopping = true;
    cx_lock_wake(&recorder->lock);
    cx_lock_leave(&recorder->lock);
    cx_thread_join(&feeder->thread);
    cx_alloc_free(recorder->alloc, feeder->where, strlen(feeder->where) + 1);
    *feeder = (cx_feeder){0};
}

void cx_recorder_notify(cx_recorder *recorder)
{
    cx_lock_enter(&recorder->lock);
    cx_lock_wake(&recorder->lock);
    cx_lock_leave(&recorder->lock);
}

cx_status cx_recorder_feed_wait(cx_recorder *recorder, unsigned timeout_ms, cx_err *err)
{
    const cx_io *io = cx_home_io(recorder->home);
    uint64_t end = io->monotonic_ns(io) + timeout_ms * UINT64_C(1000000);
    uint64_t wanted = cx_home_durable(recorder->home);
    bool there = false;
    cx_lock_enter(&recorder->lock);
    for (;;) {
        there = recorder->feeder.status.index_commits >= wanted;
        uint64_t now = io->monotonic_ns(io);
        if (there || now >= end)
            break;
        uint64_t left = (end - now) / 1000000 + 1;
        cx_lock_wait_for(&recorder->lock, left < POLL_MS ? (uint32_t)left : POLL_MS);
    }
    cx_lock_leave(&recorder->lock);
    return there ? CX_SUCCESS
                 : cx_fail_at(err, CX_E_TIMEOUT, "IndexBehind", CX_NO_OFFSET,
                              "the index has not caught up within %u ms; it continues in the "
                              "background, try again later",
                              timeout_ms);
}

void cx_recorder_feed_get_status(cx_recorder *recorder, cx_feed_status *out)
{
    uint64_t durable = cx_home_durable(recorder->home);
    cx_lock_enter(&recorder->lock);
    *out = recorder->feeder.status;
    cx_lock_leave(&recorder->lock);
    out->log_commits = durable;
}

const char *cx_recorder_index_path(const char *home_path, cx_arena *arena)
{
    return cx_arena_printf(arena, "%s/cirislens.db", home_path).data;
}

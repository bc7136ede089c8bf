/*
 * verify.c - checks a whole data directory (ledger.md §11).
 *
 * V1  The log is read from its first byte; everything else is derived from it again, in a private
 *     database, and then compared with the stored tables.
 * V2  What could not be read is reported; nothing that was not checked is called verified.
 * V3  Nothing is written: files are opened for reading, no lock is taken.
 *
 * Truncating whole commits from the end leaves a shorter log that is valid in itself.  Only an
 * external anchor can show it: a checkpoint or a manifest that was stored elsewhere.
 */
#include "ledger/verify.h"

#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"
#include "ledger/check/erased.h"
#include "ledger/check/kept.h"
#include "ledger/check/since.h"
#include "ledger/internal.h"

#define FINDINGS_MAX 1000
#define COMMITS_SHOWN 64 /* progress is told once in so many */
#define RECORDS_SHOWN 1024

struct cx_home_report {
    const cx_alloc *alloc;
    cx_arena arena;
    CX_VEC(cx_home_finding) findings;
    size_t finding_max;
    cx_home_totals totals;
    cx_verdict verdict;
    CX_VEC(cx_actor_info) actors;
    CX_VEC(cx_roots) roots;
};

/* The tables of the data directory, whose pages another thread looks at while records are
 * checked. */
typedef struct stored_tables {
    cx_store store;
    bool there, stale;
    cx_status opened;
    cx_err why; /* of `opened` */
    cx_thread thread;
    cx_status pages;
    cx_err damage; /* of `pages` */
} stored_tables;

typedef struct verifier {
    cx_home *home;
    cx_home_report *report;
    const cx_home_verify_options *options;
    cx_arena arena;
    cx_check_sink sink;
    cx_erased *erased;
    cx_kept *kept;         /* NULL = nothing is kept */
    cx_kept_point from;    /* where this run begins; all zero = with the first commit */
    bool resumed;          /* `from` is a point */
    cx_digest last_commit; /* cx_kept_commit_digest of it */
    uint64_t bytes_before; /* of the log, that this run does not read */
    uint64_t entries_read; /* of the log, by this run and those that it continues */
    cx_home_root_check *home_roots;
    uint64_t records; /* memories and edges that there are in the end */
    bool damaged;     /* the log is damaged: later frames cannot be derived */
    stored_tables stored;
} verifier;

/* --- findings -------------------------------------------------------------------------------- */

static cx_status add_finding(void *arg, const char *check, const char *reason, cx_str actor,
                             const char *where, const char *message, cx_err *err)
{
    cx_home_report *report = arg;
    report->totals.findings++;
    if (report->findings.count >= report->finding_max)
        return CX_SUCCESS;
    cx_home_finding *slot = cx_vec_push(&report->findings, report->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_home_finding){
        .check = check,
        .reason = reason,
        .actor = cx_arena_copy_str(&report->arena, actor),
        .where = cx_arena_copy_str(&report->arena, cx_str_z(where)),
        .message = cx_arena_copy_str(&report->arena, cx_str_z(message)),
    };
    if (slot->actor.data == NULL || slot->where.data == NULL || slot->message.data == NULL)
        return cx_fail_nomem(err);
    return CX_SUCCESS;
}

static cx_status report_finding(verifier *check, const char *name, const char *reason, cx_str actor,
                                const char *where, const char *message, cx_err *err)
{
    return add_finding(check->report, name, reason, actor, where, message, err);
}

/* --- erasures -------------------------------------------------------------------------------- */

static cx_status mark_erased(verifier *check, const cx_ledger_frame *frame, const cx_entry *entry,
                             bool half, cx_err *err)
{
    const cx_erased_mark mark = {frame->actor, entry->seq,
                                 !frame->committed && frame->has_subject ? &frame->subject : NULL};
    check->report->totals.erased++;
    check->report->totals.half_erased += half ? 1 : 0;
    return cx_erased_add(check->erased, &mark, err);
}

static cx_status explain_erased(verifier *check, const cx_ledger_frame *frame,
                                const cx_entry *entry, cx_arena *arena, cx_err *err)
{
    cx_payload payload;
    bool redact = cx_str_is(entry->kind, "redact");
    if (!redact && !cx_str_is(entry->kind, "redact_memory"))
        return CX_SUCCESS;
    cx_status status =
        cx_payload_decode(cx_entry_kind_of(entry->kind), entry->payload, arena, &payload, NULL);
    if (cx_failed(status)) /* already reported, unless memory ran out */
        return status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
    const cx_erased_mark target = {frame->actor, redact ? payload.as.redact.target_seq : 0,
                                   redact ? NULL : &payload.as.redact_memory.id};
    return cx_erased_explain(check->erased, &target, err);
}

static cx_status report_unexplained(void *arg, cx_str actor, uint64_t seq, cx_err *err)
{
    char where[64];
    (void)snprintf(where, sizeof where, "seq %llu", (unsigned long long)seq);
    return report_finding(arg, "payload", "PayloadMissing", actor, where,
                          "its content was overwritten, but no entry says who erased it and why",
                          err);
}

/* --- the log ---------------------------------------------------------------------------------- */

static cx_status check_item(verifier *check, const cx_log_item *item, uint64_t commit, cx_err *err)
{
    cx_home *home = check->home;
    cx_arena *arena = &check->arena;
    cx_err reason = {0};
    cx_ledger_frame frame;
    char where[64];
    (void)snprintf(where, sizeof where, "segment %lu offset %llu",
                   (unsigned long)item->place.segment, (unsigned long long)item->place.offset);
    /* A crash can leave a payload half erased; an entry must explain it like any other erasure. */
    if (item->erasable_damaged && !item->half_erased) {
        check->damaged = true;
        return report_finding(check, "log", "LogDamaged", (cx_str){NULL, 0}, where,
                              "the erasable part is neither what was written nor erased", err);
    }
    cx_status decoded =
        cx_frame_decode(&item->frame, cx_frame_erased(item), arena, &frame, &reason);
    if (decoded.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(decoded)) {
        check->damaged = true;
        return report_finding(check, "log", "LogDamaged", (cx_str){NULL, 0}, where, reason.message,
                              err);
    }
    cx_actor *actor = NULL;
    CX_TRY(cx_home_find_actor(home, frame.actor, &actor, err));
    cx_scheme scheme = actor != NULL ? actor->info.scheme : home->scheme;
    uint64_t before = check->report->totals.findings;
    CX_TRY(cx_home_check_frame(&frame, scheme, arena, &check->sink, err));
    cx_entry entry;
    if (frame.entry.size != 0 && !cx_failed(cx_entry_decode(frame.entry, &entry, NULL))) {
        check->report->totals.entries++;
        check->entries_read++;
        check->report->totals.payloads += frame.committed && !frame.erased ? 1 : 0;
        CX_TRY(explain_erased(check, &frame, &entry, arena, err));
        if (cx_frame_erased(item))
            CX_TRY(mark_erased(check, &frame, &entry, item->half_erased, err));
    }
    const cx_applied at = {.place = item->place, .commit = commit};
    cx_status status = cx_home_apply(home, &frame, &at, arena, &reason);
    if (status.code == CX_E_NOMEM || status.code == CX_E_IO)
        return cx_failed(status) ? cx_fail(err, status.code, "%s", reason.message) : status;
    if (cx_failed(status)) {
        check->damaged = true;
        return check->report->totals.findings != before
                   ? CX_SUCCESS
                   : report_finding(check, "log", reason.tag != NULL ? reason.tag : "LogDamaged",
                                    frame.actor, where, reason.message, err);
    }
    return CX_SUCCESS;
}

static void show_progress(const verifier *check, const char *what, uint64_t done, uint64_t total,
                          uint64_t entries)
{
    const cx_home_options *options = &check->home->options;
    if (options->counted != NULL)
        options->counted(options->progress_arg, entries);
    if (options->progress != NULL)
        options->progress(options->progress_arg, what, done, total);
}

/* What was read so far without a finding stays, also when the program is killed (K1). */
static cx_status keep_point(verifier *check, bool is_base, cx_err *err)
{
    const cx_home *home = check->home;
    cx_kept_point point = {.at = home->applied,
                           .commit = check->last_commit,
                           .commits = home->applied.commit + 1,
                           .entries = check->entries_read,
                           .based = check->from.based,
                           .base_hashes = check->from.base_hashes,
                           .reached_ns = (int64_t)home->io->wall_ns(home->io)};
    if (check->kept == NULL || check->report->totals.findings != 0)
        return CX_SUCCESS;
    point.has_home_root = cx_home_root_check_last(check->home_roots, &point.home_root);
    return cx_kept_save(check->kept, &point, is_base, err);
}

static cx_status stop_here(verifier *check, cx_err *err)
{
    CX_TRY(cx_home_flush_now(check->home, err));
    CX_TRY(keep_point(check, false, err));
    const bool kept = check->kept != NULL && check->report->totals.findings == 0;
    return cx_fail_at(err, CX_E_BUSY, "Interrupted", CX_NO_OFFSET,
                      kept ? "interrupted after %llu commits, which are kept; the same command "
                             "continues there"
                           : "interrupted after %llu commits, of which nothing is kept",
                      (unsigned long long)(check->home->applied.commit + 1));
}

static bool is_stopped(const verifier *check)
{
    const cx_home_verify_options *options = check->options;
    return options->go_on != NULL && !options->go_on(options->go_on_arg);
}

/* A point is of rows that are written, so a run that keeps them waits for each flush. */
static cx_status flush_in_between(verifier *check, cx_err *err)
{
    if (check->kept == NULL)
        return cx_home_flush_aside(check->home, err);
    CX_TRY(cx_home_flush_now(check->home, err));
    return keep_point(check, false, err);
}

static cx_status check_commit(verifier *check, const cx_log_commit *commit, cx_err *err)
{
    cx_home *home = check->home;
    if (check->kept != NULL)
        check->last_commit = cx_kept_commit_digest(commit);
    for (size_t i = 0; i < commit->count && !check->damaged; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&check->arena);
        CX_TRY(check_item(check, &commit->items[i], commit->number, err));
        home->applied = (cx_position){commit->number, i + 1};
        cx_ledger_frame frame;
        if (!check->damaged) {
            CX_TRY(cx_frame_decode(&commit->items[i].frame, cx_frame_erased(&commit->items[i]),
                                   &check->arena, &frame, err));
            CX_TRY(cx_home_check_manifests(home, &frame, &check->arena, &check->sink, err));
            CX_TRY(cx_home_root_check_frame(check->home_roots, &frame, &check->arena, err));
        }
        cx_arena_reset(&check->arena, mark);
    }
    cx_home_totals *totals = &check->report->totals;
    totals->log_bytes = commit->bytes_done - check->bytes_before;
    if (totals->commits++ % COMMITS_SHOWN == 0)
        show_progress(check, "log", commit->bytes_done, commit->bytes_total, totals->entries);
    if (cx_home_is_flush_due(home))
        CX_TRY(flush_in_between(check, err));
    return !check->damaged && is_stopped(check) ? stop_here(check, err) : CX_SUCCESS;
}

/* K2: the commit at the point is the one that was verified. */
static cx_status check_point(verifier *check, const cx_log_commit *commit, cx_err *err)
{
    const cx_digest digest = cx_kept_commit_digest(commit);
    char where[64];
    check->bytes_before = commit->bytes_done;
    if (commit->number == check->from.at.commit && commit->count == check->from.at.frames &&
        cx_digest_eq(&digest, &check->from.commit))
        return CX_SUCCESS;
    check->damaged = true;
    (void)snprintf(where, sizeof where, "commit %llu", (unsigned long long)check->from.at.commit);
    return report_finding(check, "state", "Forked", (cx_str){NULL, 0}, where,
                          "the commit is another one than the kept state was made at: the log was "
                          "rewritten since, or the state is false; without a state everything is "
                          "read",
                          err);
}

/* The first commit of a run that continues. */
static cx_status take_commit(verifier *check, const cx_log_commit *commit, cx_err *err)
{
    if (check->resumed && commit->number <= check->from.at.commit)
        return check_point(check, commit, err);
    return check_commit(check, commit, err);
}

static cx_status report_cut_before_state(verifier *check, cx_err *err)
{
    char message[CX_ERR_MESSAGE_SIZE];
    check->damaged = true;
    (void)snprintf(message, sizeof message,
                   "the kept state was made at %llu commits, the log has %llu: it was cut, or the "
                   "state is false",
                   (unsigned long long)(check->from.at.commit + 1),
                   (unsigned long long)cx_log_durable(check->home->log));
    return report_finding(check, "state", "Truncated", (cx_str){NULL, 0}, "log", message, err);
}

static cx_status read_log(verifier *check, cx_err *err)
{
    cx_log_scan *scan;
    if (check->resumed && check->from.at.commit >= cx_log_durable(check->home->log))
        return report_cut_before_state(check, err);
    CX_TRY(cx_log_scan_begin(check->home->log, check->from.at.commit, &scan, err));
    cx_status status = CX_SUCCESS;
    for (;;) {
        cx_log_commit commit;
        bool end = false;
        cx_err reason = {0};
        cx_status step = cx_log_scan_next(scan, &commit, &end, &reason);
        if (step.code == CX_E_FORMAT) {
            check->damaged = true;
            CX_TRY_GOTO(status, report_finding(check, "log", "LogDamaged", (cx_str){NULL, 0}, "log",
                                               reason.message, err));
            continue;
        }
        if (cx_failed(step)) {
            if (err != NULL)
                *err = reason;
            status = step;
            break;
        }
        if (end)
            break;
        if (!check->damaged)
            CX_TRY_GOTO(status, take_commit(check, &commit, err));
    }
done:
    cx_log_scan_end(scan);
    return status;
}

/* --- the records as they are in the end (checks 4, 5, 9) ------------------------------------- */

typedef struct head_scan {
    verifier *check;
    cx_actor *actor;
    uint64_t live, dead, edges;
} head_scan;

static void show_records(const verifier *check)
{
    const uint64_t done = check->report->totals.memories + check->report->totals.edges;
    if (done % RECORDS_SHOWN == 0)
        show_progress(check, "records", done, check->records, done);
}

static cx_status report_bad_head(head_scan *scan, cx_bytes key, const char *reason,
                                 const char *message, cx_err *err)
{
    char where[40] = "m/";
    cx_hex_encode(cx_bytes_from(key.data + 2, 16), where + 2);
    where[34] = 0;
    return report_finding(scan->check, "head", reason, scan->actor->info.name, where, message, err);
}

static bool forms_equal(const cx_forms *a, const cx_forms *b)
{
    return cx_str_eq(a->brief, b->brief) && cx_str_eq(a->medium, b->medium);
}

static cx_status get_record(head_scan *scan, cx_bytes key, cx_bytes *out, bool *out_found,
                            cx_err *err)
{
    return cx_store_get(&scan->check->home->store, scan->actor->id, key, &scan->check->arena, out,
                        out_found, NULL, err);
}

static cx_status check_current(head_scan *scan, cx_bytes key, const cx_head *head, cx_err *err)
{
    uint8_t name[30];
    memcpy(name, "mv/", 3);
    memcpy(name + 3, head->id.bytes, 16);
    memcpy(name + 19, "/v/", 3);
    cx_bytes value = {NULL, 0};
    bool exists = false, next = false;
    cx_version_record version;
    for (unsigned i = 0; i < 8; i++)
        name[22 + i] = (uint8_t)(head->current_version >> (8 * (7 - i)));
    CX_TRY(get_record(scan, cx_bytes_from(name, sizeof name), &value, &exists, err));
    cx_bytes current = value;
    for (unsigned i = 0; i < 8; i++)
        name[22 + i] = (uint8_t)((head->current_version + 1) >> (8 * (7 - i)));
    CX_TRY(get_record(scan, cx_bytes_from(name, sizeof name), &value, &next, err));
    if (!exists || next)
        return report_bad_head(scan, key, "HeadMismatch",
                               "its current version is not the last one there is", err);
    cx_status decoded = cx_version_decode(current, &scan->check->arena, &version, NULL);
    if (decoded.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(decoded))
        return report_bad_head(scan, key, "NonCanonical", "its last version is not canonical", err);
    if (!version.erased && !forms_equal(&version.forms, &head->forms))
        return report_bad_head(scan, key, "FormsMismatch",
                               "its forms are not those of its last version", err);
    return CX_SUCCESS;
}

static cx_status check_tombstone(head_scan *scan, cx_bytes key, const cx_head *head, cx_err *err)
{
    uint8_t name[5 + 16];
    memcpy(name, "tomb/", 5);
    memcpy(name + 5, head->id.bytes, 16);
    cx_bytes value = {NULL, 0};
    bool there = false;
    CX_TRY(get_record(scan, cx_bytes_from(name, sizeof name), &value, &there, err));
    if (there != head->tombstoned)
        return report_bad_head(scan, key, "TombstoneMismatch",
                               head->tombstoned ? "it is tombstoned, but there is no record of that"
                                                : "there is a tombstone's record, but it is alive",
                               err);
    return CX_SUCCESS;
}

static cx_status check_one_head(head_scan *scan, cx_bytes key, cx_bytes value, cx_err *err)
{
    cx_digest hash;
    cx_head head;
    scan->check->report->totals.memories++;
    show_records(scan->check);
    if (cx_value_erased(value, &hash))
        return report_bad_head(scan, key, "PayloadMissing",
                               "its Head was erased without a successor", err);
    cx_status decoded = cx_head_decode(value, &scan->check->arena, &head, NULL);
    if (decoded.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(decoded))
        return report_bad_head(scan, key, "NonCanonical", "the Head's bytes are not canonical",
                               err);
    *(head.tombstoned ? &scan->dead : &scan->live) += 1;
    if (memcmp(head.id.bytes, key.data + 2, 16) != 0)
        return report_bad_head(scan, key, "HeadMismatch", "the Head names another memory", err);
    CX_TRY(check_tombstone(scan, key, &head, err));
    return check_current(scan, key, &head, err);
}

static cx_status check_head_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    head_scan *scan = arg;
    (void)stop;
    if (key.size != 18)
        return CX_SUCCESS;
    cx_arena_mark mark = cx_arena_mark_now(&scan->check->arena);
    cx_status status = check_one_head(scan, key, value, err);
    cx_arena_reset(&scan->check->arena, mark);
    return status;
}

static cx_status check_edge_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    head_scan *scan = arg;
    uint8_t name[5 + 33];
    cx_bytes copy = {NULL, 0};
    bool there = false;
    (void)stop;
    if (key.size != 40)
        return CX_SUCCESS;
    scan->edges++;
    scan->check->report->totals.edges++;
    show_records(scan->check);
    if (scan->check->home->options.deriver_count == 0)
        return CX_SUCCESS; /* e/to is derived by the module memory */
    memcpy(name, "e/to/", 5);
    memcpy(name + 5, key.data + 24, 16);
    name[21] = key.data[23];
    memcpy(name + 22, key.data + 7, 16);
    cx_arena_mark mark = cx_arena_mark_now(&scan->check->arena);
    cx_status status = get_record(scan, cx_bytes_from(name, sizeof name), &copy, &there, err);
    bool equal = there && cx_str_eq(cx_bytes_str(copy), cx_bytes_str(value));
    cx_arena_reset(&scan->check->arena, mark);
    CX_TRY(status);
    return equal ? CX_SUCCESS
                 : report_finding(scan->check, "edge", "EdgeMismatch", scan->actor->info.name,
                                  "e/to/", "an edge is not the same seen from its two ends", err);
}

static cx_status count_version(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    head_scan *scan = arg;
    (void)key;
    (void)value;
    (void)stop;
    (void)err;
    scan->check->report->totals.versions++;
    return CX_SUCCESS;
}

static cx_status count_manifest(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    head_scan *scan = arg;
    const cx_home_verify_options *options = scan->check->options;
    (void)stop;
    (void)key;
    scan->check->report->totals.manifests++;
    cx_finding finding;
    cx_manifest manifest;
    CX_TRY(cx_manifest_verify(value, NULL, scan->check->home->alloc, &manifest, &finding, err));
    if (finding.verdict == CX_HOLDS && options->seal_key != NULL && !manifest.signature.null)
        CX_TRY(cx_manifest_verify(value, options->seal_key, scan->check->home->alloc, &manifest,
                                  &finding, err));
    if (finding.verdict == CX_HOLDS)
        return CX_SUCCESS;
    return report_finding(scan->check, "manifest", finding.reason, scan->actor->info.name, "snap/",
                          finding.message, err);
}

static cx_status scan_state(head_scan *scan, const char *prefix,
                            cx_status (*row)(void *, cx_bytes, cx_bytes, bool *, cx_err *),
                            cx_err *err)
{
    return cx_store_scan(&scan->check->home->store, scan->actor->id, cx_str_bytes(cx_str_z(prefix)),
                         (cx_bytes){NULL, 0}, false, row, scan, err);
}

static cx_status check_state(verifier *check, cx_actor *actor, cx_err *err)
{
    head_scan scan = {.check = check, .actor = actor};
    CX_TRY(scan_state(&scan, "m/", check_head_row, err));
    CX_TRY(scan_state(&scan, "e/from/", check_edge_row, err));
    CX_TRY(scan_state(&scan, "mv/", count_version, err));
    CX_TRY(scan_state(&scan, "snap/", count_manifest, err));
    if (scan.live != actor->info.live_memories || scan.dead != actor->info.tombstoned ||
        scan.edges != actor->info.edge_count)
        return report_finding(check, "counter", "CounterMismatch", actor->info.name, "counters",
                              "the counters of memories and edges are not those of the records",
                              err);
    return CX_SUCCESS;
}

/* --- what changed since a base (check/kept.h) ------------------------------------------------- */

static bool begins_with(cx_bytes key, const char *prefix, size_t size)
{
    const size_t length = strlen(prefix);
    return key.size == size && memcmp(key.data, prefix, length) == 0;
}

static cx_status check_changed_value(head_scan *scan, cx_bytes key, cx_bytes value, cx_err *err)
{
    bool stop = false;
    if (begins_with(key, CX_HEAD_PREFIX, CX_HEAD_KEY_SIZE))
        return check_head_row(scan, key, value, &stop, err);
    if (begins_with(key, CX_EDGE_PREFIX, CX_EDGE_KEY_SIZE))
        return check_edge_row(scan, key, value, &stop, err);
    if (begins_with(key, "mv/", 30))
        return count_version(scan, key, value, &stop, err);
    return begins_with(key, "snap/", 13) ? count_manifest(scan, key, value, &stop, err)
                                         : CX_SUCCESS;
}

static cx_status check_changed_record(void *arg, int64_t actor, cx_bytes key, cx_err *err)
{
    verifier *check = arg;
    head_scan scan = {.check = check};
    cx_arena_mark mark = cx_arena_mark_now(&check->arena);
    cx_bytes value = {NULL, 0};
    bool there = false;
    if (actor == CX_ACTOR_HOME)
        return CX_SUCCESS;
    CX_TRY(cx_home_actor_numbered(check->home, actor, &scan.actor, err));
    CX_TRY(get_record(&scan, key, &value, &there, err));
    cx_status status = there ? check_changed_value(&scan, key, value, err) : CX_SUCCESS;
    cx_arena_reset(&check->arena, mark);
    return status;
}

/* --- the home's tables ------------------------------------------------------------------------ */

typedef struct table_check {
    verifier *check;
} table_check;

static cx_status table_differs(void *arg, const char *table, int64_t actor, cx_bytes key,
                               const char *how, cx_err *err)
{
    table_check *state = arg;
    char message[CX_ERR_MESSAGE_SIZE], hex[97];
    size_t shown = key.size < 48 ? key.size : 48;
    cx_hex_encode(cx_bytes_from(key.data, shown), hex);
    hex[2 * shown] = 0;
    (void)snprintf(message, sizeof message,
                   "a row of the tables is %s (key %s); the log is the truth: 'cortex tables"
                   " rebuild --replace' makes them anew",
                   how, hex);
    cx_home *home = state->check->home;
    cx_actor *of = NULL;
    if (actor >= 0 && (uint64_t)actor < home->actors.count)
        CX_TRY(cx_home_actor_numbered(home, actor, &of, err));
    return report_finding(state->check, "table", "TableMismatch",
                          of != NULL ? of->info.name : (cx_str){NULL, 0}, table, message, err);
}

static void show_compared(void *arg, uint64_t rows)
{
    const verifier *check = ((const table_check *)arg)->check;
    show_progress(check, "compared rows", rows, cx_store_rows_about(&check->home->store), rows);
}

typedef struct changes_check {
    verifier *check;
    cx_store *tables;
    cx_store_comparison how;
} changes_check;

static cx_status compare_changed_record(void *arg, int64_t actor, cx_bytes key, cx_err *err)
{
    const changes_check *changes = arg;
    if (actor == CX_ACTOR_HOME &&
        cx_str_starts(cx_bytes_str(key), CX_STR(CX_ERASE_PREFIX))) /* not of the log */
        return CX_SUCCESS;
    return cx_store_compare_record(&changes->check->home->store, changes->tables, actor, key,
                                   &changes->how, err);
}

static cx_status compare_changed_journal(void *arg, int64_t actor, uint64_t first, cx_err *err)
{
    const changes_check *changes = arg;
    return cx_store_compare_journal(&changes->check->home->store, changes->tables, actor, first,
                                    &changes->how, err);
}

static cx_status compare_changes(verifier *check, cx_store *tables, const cx_store_comparison *how,
                                 cx_err *err)
{
    changes_check changes = {check, tables, *how};
    CX_TRY(cx_kept_each_record(check->kept, compare_changed_record, &changes, err));
    CX_TRY(cx_kept_each_journal(check->kept, compare_changed_journal, &changes, err));
    CX_TRY(cx_store_compare_hashes(&check->home->store, tables, check->from.base_hashes, how, err));
    return cx_store_compare_totals(&check->home->store, tables, how, err);
}

static cx_status note_tables(verifier *check, const char *note, cx_err *err)
{
    check->report->totals.tables_note = cx_arena_copy_str(&check->report->arena, cx_str_z(note));
    return check->report->totals.tables_note.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status compare_tables(verifier *check, cx_store *tables, cx_err *err)
{
    table_check state = {check};
    cx_err reason = {0};
    const cx_store_comparison how = {.max = check->report->finding_max,
                                     .differ = table_differs,
                                     .compared = show_compared,
                                     .arg = &state};
    cx_status status = check->from.based
                           ? compare_changes(check, tables, &how, &reason)
                           : cx_store_compare(&check->home->store, tables, &how, &reason);
    check->report->totals.tables_checked = true;
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code != CX_E_FORMAT)
        return cx_fail(err, status.code, "%s", reason.message);
    return report_finding(check, "table", "DatabaseDamaged", (cx_str){NULL, 0}, "cortex.db",
                          reason.message, err);
}

/* Whether the log has reached `at`: a writer may append and flush while we verify. */
static bool log_has_reached(const cx_home *home, cx_position at)
{
    const cx_log_options options = {.alloc = home->alloc, .io = home->io, .read_only = true};
    cx_log_opened opened;
    cx_log *log;
    if (cx_failed(cx_log_open(home->log_path, &options, &log, &opened, NULL)))
        return false;
    uint64_t durable = cx_log_durable(log);
    cx_log_close(log);
    return at.commit + (at.frames != 0 ? 1 : 0) <= durable;
}

static void check_pages(void *arg)
{
    stored_tables *stored = arg;
    cx_db *db = stored->store.reading.db;
    cx_db_borrow(db);
    stored->pages = cx_db_check(db, &stored->damage);
    cx_db_give_back(db);
}

static void open_stored(verifier *check)
{
    stored_tables *stored = &check->stored;
    stored->opened = cx_home_open_tables_to_check(check->home, &stored->store, &stored->there,
                                                  &stored->stale, &stored->why);
    /* With a base only rows are looked at that have changed since. */
    if (!stored->there || cx_failed(stored->opened) || check->from.based)
        return;
    cx_db_lend(stored->store.reading.db);
    if (cx_home_derive_threads(check->home) == 1 ||
        !cx_thread_start(&stored->thread, check_pages, stored))
        check_pages(stored);
}

static void close_stored(verifier *check)
{
    stored_tables *stored = &check->stored;
    cx_thread_join(&stored->thread);
    if (stored->there && !cx_failed(stored->opened))
        cx_store_close(&stored->store);
    stored->there = false;
}

static cx_status check_tables(verifier *check, cx_err *err)
{
    cx_home *home = check->home;
    stored_tables *stored = &check->stored;
    if (!stored->there)
        return note_tables(check, "there are no tables; they come back from the log", err);
    if (cx_failed(stored->opened)) {
        if (stored->opened.code == CX_E_FORMAT)
            return report_finding(check, "table", "DatabaseDamaged", (cx_str){NULL, 0}, "cortex.db",
                                  stored->why.message, err);
        return note_tables(check, stored->why.message, err);
    }
    cx_thread_join(&stored->thread);
    const cx_position at = stored->store.flushed, end = home->applied;
    cx_status status = stored->pages;
    if (status.code == CX_E_FORMAT)
        status = report_finding(check, "table", "DatabaseDamaged", (cx_str){NULL, 0}, "cortex.db",
                                stored->damage.message, err);
    else if (cx_failed(status))
        status = cx_fail(err, status.code, "%s", stored->damage.message);
    else if (stored->stale)
        status = note_tables(check,
                             "the tables were made by another version or for other derived"
                             " rows; they are rebuilt when the data directory is opened",
                             err);
    else if (cx_position_before(end, at) && log_has_reached(home, at))
        status = note_tables(check, "the tables were not compared: a writer changed them meanwhile",
                             err);
    else if (cx_position_before(end, at) && !check->damaged)
        status = report_finding(
            check, "log", "LogCut", (cx_str){NULL, 0}, "cortex.db",
            "the tables know commits that the log does not have: the log was cut", err);
    else if (at.commit != end.commit || at.frames != end.frames)
        status = note_tables(check, "the tables lag the log and were not compared", err);
    else
        status = compare_tables(check, &stored->store, err);
    return status;
}

/* --- anchors (§11) ---------------------------------------------------------------------------- */

/* An external manifest whose snapshot is still retained: the state roots must be equal. */
static cx_status check_stored_manifest(verifier *check, cx_actor *actor,
                                       const cx_anchor_point *anchor, cx_err *err)
{
    uint8_t name[5 + 8];
    cx_bytes bytes = {NULL, 0};
    bool there = false;
    cx_manifest manifest;
    uint64_t seq = anchor->manifest->snapshot_seq;
    memcpy(name, "snap/", 5);
    for (unsigned i = 0; i < 8; i++)
        name[5 + i] = (uint8_t)(seq >> (8 * (7 - i)));
    CX_TRY(cx_store_get(&check->home->store, actor->id, cx_bytes_from(name, sizeof name),
                        &check->arena, &bytes, &there, NULL, err));
    if (!there || cx_failed(cx_manifest_decode(bytes, &manifest, NULL)) ||
        cx_digest_eq(&manifest.overall_root, &anchor->manifest->overall_root))
        return CX_SUCCESS;
    char where[64];
    (void)snprintf(where, sizeof where, "snapshot %llu", (unsigned long long)seq);
    return report_finding(
        check, "anchor", "Forked", actor->info.name, where,
        "the snapshot of that number has another overall root than the manifest that was"
        " kept: the past was rewritten",
        err);
}

static cx_status check_anchor(verifier *check, const cx_anchor_point *anchor, cx_err *err)
{
    cx_str name = anchor->actor.size != 0 ? anchor->actor : check->options->actor;
    cx_actor *actor = NULL;
    char where[64];
    CX_TRY(cx_home_find_actor(check->home, name, &actor, err));
    (void)snprintf(where, sizeof where, "size %llu", (unsigned long long)anchor->size);
    if (actor == NULL || actor->info.entry_count < anchor->size)
        return report_finding(check, "anchor", "Truncated", name, where,
                              "the journal is shorter than it was: entries were cut off", err);
    cx_digest root;
    CX_TRY(cx_actor_journal_root(check->home, actor, anchor->size, &root, err));
    if (!cx_digest_eq(&root, &anchor->journal_root))
        return report_finding(
            check, "anchor", "Forked", name, where,
            "the journal's root at that size is another one: the past was rewritten", err);
    check->report->totals.anchored = true;
    return anchor->manifest == NULL ? CX_SUCCESS : check_stored_manifest(check, actor, anchor, err);
}

static cx_status check_anchors(verifier *check, cx_err *err)
{
    const cx_home_verify_options *options = check->options;
    for (size_t i = 0; i < options->anchor_count; i++)
        CX_TRY(check_anchor(check, &options->anchors[i], err));
    return CX_SUCCESS;
}

/* --- the whole -------------------------------------------------------------------------------- */

static cx_status store_roots(verifier *check, cx_actor *actor, cx_err *err)
{
    cx_home_report *report = check->report;
    if (check->options->actor_max != 0 && report->actors.count >= check->options->actor_max)
        return CX_SUCCESS;
    cx_actor_info *info = cx_vec_push(&report->actors, report->alloc);
    cx_roots *roots = cx_vec_push(&report->roots, report->alloc);
    if (info == NULL || roots == NULL)
        return cx_fail_nomem(err);
    *info = actor->info;
    info->name = cx_arena_copy_str(&report->arena, actor->info.name);
    if (info->name.data == NULL)
        return cx_fail_nomem(err);
    return cx_actor_roots(check->home, actor, roots, err);
}

static cx_status count_home_root(verifier *check, cx_err *err)
{
    cx_home_totals *totals = &check->report->totals;
    cx_actor *actor;
    totals->has_home_root = cx_home_root_check_last(check->home_roots, &totals->home_root);
    for (uint64_t i = 1; i < check->home->actors.count; i++) {
        CX_TRY(cx_home_actor_numbered(check->home, (int64_t)i, &actor, err));
        if (!cx_home_root_reserved(actor->info.name))
            totals->recorded += actor->info.entry_count;
        check->records +=
            actor->info.live_memories + actor->info.tombstoned + actor->info.edge_count;
    }
    return CX_SUCCESS;
}

static bool is_wanted(const verifier *check, cx_str actor)
{
    return check->options->actor.size == 0 || cx_str_eq(check->options->actor, actor);
}

static cx_status list_journal(void *arg, int64_t actor, uint64_t first, cx_err *err)
{
    verifier *check = arg;
    cx_actor *found;
    (void)first;
    CX_TRY(cx_home_actor_numbered(check->home, actor, &found, err));
    if (!is_wanted(check, found->info.name))
        return CX_SUCCESS;
    check->report->totals.actors++;
    return store_roots(check, found, err);
}

static cx_status check_changed_actors(verifier *check, cx_err *err)
{
    CX_TRY(cx_kept_each_record(check->kept, check_changed_record, check, err));
    return cx_kept_each_journal(check->kept, list_journal, check, err);
}

static cx_status check_actors(verifier *check, cx_err *err)
{
    cx_str only = check->options->actor;
    if (check->from.based)
        return check_changed_actors(check, err);
    for (uint64_t i = 1; i < check->home->actors.count; i++) {
        cx_actor *actor;
        CX_TRY(cx_home_actor_numbered(check->home, (int64_t)i, &actor, err));
        if (!is_wanted(check, actor->info.name))
            continue;
        check->report->totals.actors++;
        cx_actor_hold(actor);
        cx_status status = check_state(check, actor, err);
        if (!cx_failed(status))
            status = store_roots(check, actor, err);
        cx_actor_release(actor);
        CX_TRY(status);
    }
    if (only.size != 0 && check->report->totals.actors == 0 && check->options->anchor_count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
                          "the data directory has no actor \"%.*s\"",
                          (int)(only.size < 80 ? only.size : 80), only.data);
    return CX_SUCCESS;
}

static cx_status verify_all(verifier *check, cx_err *err)
{
    check->report->totals.torn_bytes = check->home->torn_bytes;
    CX_TRY(read_log(check, err));
    CX_TRY(cx_store_memtable_rows(&check->home->store) != 0 ? cx_home_flush_now(check->home, err)
                                                            : cx_home_flush_end(check->home, err));
    open_stored(check);
    CX_TRY(cx_erased_each(check->erased, report_unexplained, check, err));
    CX_TRY(count_home_root(check, err));
    CX_TRY(check_actors(check, err));
    CX_TRY(check_tables(check, err));
    close_stored(check);
    CX_TRY(check_anchors(check, err));
    if (check->kept != NULL && cx_store_memtable_rows(&check->home->store) != 0)
        CX_TRY(cx_home_flush_now(check->home, err));
    /* K3: everything was looked at. */
    return keep_point(check,
                      check->report->totals.tables_checked && check->options->actor.size == 0, err);
}

static void decide_verdict(const verifier *check)
{
    cx_home_report *report = check->report;
    if (report->totals.findings != 0)
        report->verdict = CX_BROKEN;
    else if (check->options->require_anchored && !report->totals.anchored)
        report->verdict = CX_INDETERMINATE;
    else
        report->verdict = CX_HOLDS;
}

static cx_status open_kept(verifier *check, const char *path, cx_err *err)
{
    const cx_home_options *options = &check->options->home;
    const char *state = check->options->state;
    const cx_io *io = options->io != NULL ? options->io : cx_io_system();
    cx_home_totals *totals = &check->report->totals;
    uint8_t id[16];
    bool stale = false;
    CX_TRY(cx_kept_make_file(io, state, err));
    CX_TRY(cx_home_open_kept(path, state, options, &check->home, &stale, err));
    cx_log_home_id(check->home->log, id);
    CX_TRY(cx_kept_open(&check->home->store, stale, id, &check->kept, &check->from, &check->resumed,
                        err));
    if (check->resumed) {
        check->entries_read = check->from.entries;
        check->last_commit = check->from.commit;
        totals->since = true;
        totals->since_commit = check->from.at.commit + 1;
        totals->since_entries = check->from.entries;
        totals->since_ns = check->from.reached_ns;
    }
    return cx_home_begin_kept(check->home, !check->resumed, err);
}

static cx_status open_parts(verifier *check, const char *path, cx_err *err)
{
    const cx_alloc *alloc = check->report->alloc;
    CX_TRY(check->options->state != NULL
               ? open_kept(check, path, err)
               : cx_home_open_derived(path, NULL, false, &check->options->home, &check->home, err));
    CX_TRY(cx_home_root_check_open(check->home, &check->sink, &check->home_roots, err));
    if (check->resumed && check->from.has_home_root)
        cx_home_root_check_resume(check->home_roots, &check->from.home_root);
    return cx_erased_open(check->home->store.writing.db, !check->resumed, alloc, &check->erased,
                          err);
}

static cx_status verify_since(verifier *check, const char *path, cx_err *err)
{
    cx_home_options options = check->options->home;
    CX_ASSERT(check->options->actor.size != 0 && check->options->state == NULL);
    options.read_only = true;
    CX_TRY(cx_home_open(path, &options, &check->home, err));
    return cx_home_check_since(check->home, check->options, &check->sink, &check->report->totals,
                               err);
}

cx_status cx_home_verify(const char *path, const cx_home_verify_options *options,
                         cx_home_report **out, cx_err *err)
{
    CX_ASSERT(path != NULL);
    const cx_alloc *alloc = options->home.alloc != NULL ? options->home.alloc : cx_alloc_default();
    for (size_t i = 0; i < options->anchor_count; i++)
        if (options->anchors[i].actor.size == 0 && options->actor.size == 0)
            return cx_fail(err, CX_E_USAGE,
                           "an anchor is about one actor's journal: name the actor");
    cx_home_report *report = cx_alloc_zeroed(alloc, 1, sizeof *report);
    if (report == NULL)
        return cx_fail_nomem(err);
    report->alloc = alloc;
    report->finding_max = options->finding_max != 0 ? options->finding_max : FINDINGS_MAX;
    cx_arena_init(&report->arena, alloc, 0);
    verifier check = {.report = report, .options = options, .sink = {add_finding, report}};
    cx_arena_init(&check.arena, alloc, 0);
    cx_status status =
        options->since != NULL ? verify_since(&check, path, err) : open_parts(&check, path, err);
    if (!cx_failed(status) && options->since == NULL)
        status = verify_all(&check, err);
    if (!cx_failed(status))
        decide_verdict(&check);
    close_stored(&check);
    cx_erased_close(check.erased);
    cx_kept_close(check.kept);
    cx_home_root_check_close(check.home_roots);
    cx_home_close_derived(check.home);
    cx_arena_done(&check.arena);
    if (cx_failed(status))
        cx_home_report_close(report);
    else
        *out = report;
    return status;
}

void cx_home_report_close(cx_home_report *report)
{
    if (report == NULL)
        return;
    cx_vec_done(&report->findings, report->alloc);
    cx_vec_done(&report->actors, report->alloc);
    cx_vec_done(&report->roots, report->alloc);
    cx_arena_done(&report->arena);
    cx_alloc_free(report->alloc, report, sizeof *report);
}

cx_verdict cx_home_report_verdict(const cx_home_report *report)
{
    return report->verdict;
}

size_t cx_home_report_count(const cx_home_report *report)
{
    return report->findings.count;
}

const cx_home_finding *cx_home_report_finding(const cx_home_report *report, size_t index)
{
    CX_ASSERT(index < report->findings.count);
    return &report->findings.items[index];
}

const cx_home_totals *cx_home_report_totals(const cx_home_report *report)
{
    return &report->totals;
}

size_t cx_home_report_actor_count(const cx_home_report *report)
{
    return report->actors.count;
}

void cx_home_report_actor(const cx_home_report *report, size_t index, cx_actor_info *out,
                          cx_roots *out_roots)
{
    CX_ASSERT(index < report->actors.count && index < report->roots.count);
    *out = report->actors.items[index];
    *out_roots = report->roots.items[index];
}

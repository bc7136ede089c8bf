/*
 * verify_records.c - the records as they are in the end, one actor after another.
 */
#include "ledger/check/verifier.h"

#include <stdio.h>

#include "base/api.h"

#define RECORDS_SHOWN 1024 /* progress is told once in so many */

/* --- the records as they are in the end (checks 4, 5, 9) ------------------------------------- */

typedef struct head_scan {
    cx_verifier *check;
    cx_actor *actor;
    uint64_t live, dead, edges;
} head_scan;

static void show_records(const cx_verifier *check)
{
    const uint64_t done = check->report->totals.memories + check->report->totals.edges;
    if (done % RECORDS_SHOWN == 0)
        cx_verify_progress(check, "records", done, check->records, done);
}

static cx_status report_bad_head(head_scan *scan, cx_bytes key, const char *reason,
                                 const char *message, cx_err *err)
{
    char where[40] = "m/";
    cx_hex_encode(cx_bytes_from(key.data + 2, 16), where + 2);
    where[34] = 0;
    return cx_verify_report(scan->check, "head", reason, scan->actor->info.name, where, message,
                            err);
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
                 : cx_verify_report(scan->check, "edge", "EdgeMismatch", scan->actor->info.name,
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
    return cx_verify_report(scan->check, "manifest", finding.reason, scan->actor->info.name,
                            "snap/", finding.message, err);
}

static cx_status scan_state(head_scan *scan, const char *prefix,
                            cx_status (*row)(void *, cx_bytes, cx_bytes, bool *, cx_err *),
                            cx_err *err)
{
    return cx_store_scan(&scan->check->home->store, scan->actor->id, cx_str_bytes(cx_str_z(prefix)),
                         (cx_bytes){NULL, 0}, false, row, scan, err);
}

cx_status cx_verify_state(cx_verifier *check, cx_actor *actor, cx_err *err)
{
    head_scan scan = {.check = check, .actor = actor};
    CX_TRY(scan_state(&scan, "m/", check_head_row, err));
    CX_TRY(scan_state(&scan, "e/from/", check_edge_row, err));
    CX_TRY(scan_state(&scan, "mv/", count_version, err));
    CX_TRY(scan_state(&scan, "snap/", count_manifest, err));
    if (scan.live != actor->info.live_memories || scan.dead != actor->info.tombstoned ||
        scan.edges != actor->info.edge_count)
        return cx_verify_report(check, "counter", "CounterMismatch", actor->info.name, "counters",
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

cx_status cx_verify_record(void *arg, int64_t actor, cx_bytes key, cx_err *err)
{
    cx_verifier *check = arg;
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

/*
 * remote_check.c - what another process may put into a transaction.
 *
 * A frame that cannot be applied would be in the log for good: the data directory would never open
 * again.  So what comes through the socket is held to what verification holds it to, before it is
 * committed.
 *
 * K1  Rows that the data directory or its derivers make are not put by a client.
 * K2  A record that is read when a frame is applied can be read.
 * K3  An entry says what its records say (check_frame.c), and a kind of this format is not hidden
 *     after a commitment, where it could not be read.
 * K4  The modules above can derive from it (cx_deriver.check).
 */
#include <stdio.h>

#include "ledger/internal.h"
#include "proof/api.h"

static cx_status bad_frame(cx_err *err, const char *why)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadFrame", CX_NO_OFFSET,
                      "what is to be written would not hold: %s", why);
}

static bool key_is(cx_bytes key, const char *prefix, size_t size)
{
    return key.size == size && cx_str_starts(cx_bytes_str(key), cx_str_z(prefix));
}

/* K1 */
static cx_status check_name(cx_bytes key, cx_err *err)
{
    static const char *const derived[] = {"meta/", "hist/", "idx/", "erase/", "e/to/"};
    for (size_t i = 0; i < CX_COUNT_OF(derived); i++)
        if (cx_str_starts(cx_bytes_str(key), cx_str_z(derived[i])))
            return bad_frame(err, "a row that only the writer process writes");
    return CX_SUCCESS;
}

static cx_status check_manifest(const cx_change *change, cx_err *err)
{
    cx_manifest manifest;
    uint64_t seq = 0;
    CX_TRY(cx_manifest_decode(change->value, &manifest, err));
    for (size_t i = 5; i < change->key.size; i++)
        seq = seq << 8 | change->key.data[i];
    if (seq >= CX_SNAPSHOT_END)
        return bad_frame(err, "a snapshot's number that is too large");
    return seq == manifest.snapshot_seq ? CX_SUCCESS
                                        : bad_frame(err, "a manifest under another's number");
}

static cx_status check_head(const cx_change *change, cx_arena *arena, cx_err *err)
{
    cx_head head;
    CX_TRY(cx_head_decode(change->value, arena, &head, err));
    return memcmp(head.id.bytes, change->key.data + 2, sizeof head.id.bytes) == 0
               ? CX_SUCCESS
               : bad_frame(err, "a Head under another's id");
}

/* K2 */
static cx_status check_record(const cx_change *change, cx_arena *arena, cx_err *err)
{
    cx_salience salience;
    if (change->removed)
        return CX_SUCCESS;
    if (key_is(change->key, "snap/", 5 + 8))
        return check_manifest(change, err);
    if (key_is(change->key, "m/", 2 + 16))
        return check_head(change, arena, err);
    if (cx_str_starts(cx_bytes_str(change->key), CX_STR("salience/")))
        return cx_salience_decode(change->value, &salience, err);
    return CX_SUCCESS;
}

/* The first finding becomes the error. */
static cx_status store_first_finding(void *arg, const char *check, const char *reason, cx_str actor,
                                     const char *where, const char *message, cx_err *err)
{
    char why[CX_ERR_MESSAGE_SIZE];
    (void)arg;
    (void)check;
    (void)actor;
    (void)snprintf(why, sizeof why, "%s at %.60s: %.160s", reason, where, message);
    return bad_frame(err, why);
}

/* K3 */
static cx_status check_entry(const cx_ledger_frame *frame, const cx_entry *entry, cx_scheme scheme,
                             cx_arena *arena, cx_err *err)
{
    const cx_check_sink sink = {store_first_finding, NULL};
    cx_entry_kind kind = cx_entry_kind_of(entry->kind);
    if (entry->committed && kind != CX_ENTRY_RAW && kind != CX_ENTRY_OTHER)
        return bad_frame(err, "a committed payload of a kind that is read");
    return cx_home_check_frame(frame, scheme, arena, &sink, err);
}

/* K4 */
static cx_status check_above(const cx_home *home, const cx_entry *entry,
                             const cx_ledger_frame *frame, cx_arena *arena, cx_err *err)
{
    for (size_t i = 0; i < home->options.deriver_count; i++) {
        const cx_deriver *deriver = &home->options.derivers[i];
        if (deriver->check != NULL)
            CX_TRY(deriver->check(entry, frame->changes, frame->change_count, arena, err));
    }
    return CX_SUCCESS;
}

static cx_status check_frame(cx_txn *txn, const cx_ledger_frame *frame, size_t first, cx_err *err)
{
    cx_entry entry;
    bool has_entry = frame->entry.size != 0;
    for (size_t i = first; i < frame->change_count; i++) {
        CX_TRY(cx_change_check(&frame->changes[i], err));
        CX_TRY(check_name(frame->changes[i].key, err));
        CX_TRY(check_record(&frame->changes[i], &txn->arena, err));
    }
    if (has_entry) {
        CX_TRY(cx_entry_decode(frame->entry, &entry, err));
        CX_TRY(check_entry(frame, &entry, txn->info.scheme, &txn->arena, err));
    }
    return check_above(txn->home, has_entry ? &entry : NULL, frame, &txn->arena, err);
}

cx_status cx_remote_check_txn(cx_txn *txn, cx_err *err)
{
    CX_TRY(cx_txn_complete(txn, err));
    for (size_t i = 0; i < txn->frames.count; i++) {
        const cx_txn_frame *frame = &txn->frames.items[i];
        cx_ledger_frame whole = frame->frame;
        whole.changes = frame->changes.items;
        whole.change_count = frame->changes.count;
        CX_TRY(check_frame(txn, &whole, txn->is_new && i == 0 ? CX_TXN_BIRTH_CHANGES : 0, err));
    }
    return CX_SUCCESS;
}

/*
 * erase.c - destroys content after the entry that records who asked for it and why is durable.
 *
 * E1  The entry is durable first.  Its commit adds a row erase/<actor><seq> of the data directory
 *     itself, which is removed only when the bytes are destroyed: after a crash the erasure is
 *     completed at the next open for writing, which finds all plans with one scan.
 * E2  The row is removed last, after the copies in the tables and in their write-ahead log are
 *     destroyed.
 * E3  Only the erasable parts of frames are overwritten; every root and proof stays valid.
 *
 * The row's value is 0 and the target's sequence number (redact), or 1 and the memory's id
 * (redact_memory); all frames about that memory before the entry lose their copies.
 */
#include "base/api.h"
#include "ledger/internal.h"

enum { ERASE_PAYLOAD = 0, ERASE_SUBJECT = 1 };

static void put_u64(uint8_t *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * (7 - i)));
}

static uint64_t get_u64(const uint8_t *data)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | data[i];
    return value;
}

typedef struct erase_key {
    uint8_t bytes[CX_ERASE_PREFIX_SIZE + 16];
} erase_key;

static cx_bytes name_erasure(erase_key *out, int64_t actor, uint64_t seq)
{
    memcpy(out->bytes, CX_ERASE_PREFIX, CX_ERASE_PREFIX_SIZE);
    put_u64(out->bytes + CX_ERASE_PREFIX_SIZE, (uint64_t)actor);
    put_u64(out->bytes + CX_ERASE_PREFIX_SIZE + 8, seq);
    return cx_bytes_from(out->bytes, sizeof out->bytes);
}

cx_status cx_home_plan_erasure(cx_derive *at, int64_t actor, const cx_entry *entry,
                               const cx_ledger_frame *frame, cx_err *err)
{
    erase_key key;
    uint8_t value[1 + 16];
    if (cx_str_is(entry->kind, "redact")) {
        cx_payload payload;
        CX_TRY(
            cx_payload_decode(CX_ENTRY_REDACT, entry->payload, cx_derive_arena(at), &payload, err));
        value[0] = ERASE_PAYLOAD;
        put_u64(value + 1, payload.as.redact.target_seq);
        return cx_derive_put_common(at, name_erasure(&key, actor, entry->seq),
                                    cx_bytes_from(value, 9), err);
    }
    if (!cx_str_is(entry->kind, "redact_memory") || !frame->has_subject)
        return CX_SUCCESS;
    value[0] = ERASE_SUBJECT;
    memcpy(value + 1, frame->subject.bytes, 16);
    return cx_derive_put_common(at, name_erasure(&key, actor, entry->seq), cx_bytes_from(value, 17),
                                err);
}

/* --- doing it -------------------------------------------------------------------------------- */

typedef struct planned {
    int64_t actor;
    uint64_t seq; /* sequence number of the entry that requests the erasure */
    bool subject;
    uint64_t target;
    cx_id id;
} planned;

typedef struct plan {
    const cx_alloc *alloc;
    CX_VEC(planned) items;
    CX_VEC(cx_log_place) places;
    uint64_t before;
} plan;

static cx_status load_planned_erasure(void *arg, cx_bytes key, cx_bytes value, bool *stop,
                                      cx_err *err)
{
    plan *list = arg;
    (void)stop;
    planned item = {0};
    if (key.size != sizeof(erase_key) || (value.size != 9 && value.size != 17))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "a row of a planned erasure is damaged; run 'cortex tables rebuild'");
    item.actor = (int64_t)get_u64(key.data + CX_ERASE_PREFIX_SIZE);
    item.seq = get_u64(key.data + CX_ERASE_PREFIX_SIZE + 8);
    item.subject = value.data[0] == ERASE_SUBJECT && value.size == 17;
    if (item.subject)
        memcpy(item.id.bytes, value.data + 1, 16);
    else
        item.target = get_u64(value.data + 1);
    planned *slot = cx_vec_push(&list->items, list->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = item;
    return CX_SUCCESS;
}

static cx_status collect_frame_place(void *arg, const cx_entry_row *entry, bool *stop, cx_err *err)
{
    plan *list = arg;
    if (entry->seq >= list->before) {
        *stop = true;
        return CX_SUCCESS;
    }
    cx_log_place *slot = cx_vec_push(&list->places, list->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = entry->place;
    return CX_SUCCESS;
}

static cx_status find_places(cx_home *home, const planned *item, plan *list, cx_err *err)
{
    list->before = item->seq;
    if (item->subject)
        return cx_store_scan_entries(&home->store, item->actor, &item->id, collect_frame_place,
                                     list, err);
    cx_entry_row row;
    bool stop = false;
    CX_TRY(cx_store_get_entry(&home->store, item->actor, item->target, &row, err));
    return collect_frame_place(list, &row, &stop, err);
}

static cx_status forget_plan(cx_home *home, const planned *item, cx_err *err)
{
    erase_key key;
    const cx_row row = {
        .actor = CX_ACTOR_HOME, .key = name_erasure(&key, item->actor, item->seq), .removed = true};
    return cx_store_put(&home->store, &row, err);
}

/* Needs the lock and the transaction. */
static cx_status erase_planned(cx_home *home, cx_bytes prefix, plan *list, cx_err *err)
{
    CX_TRY(cx_home_drain_locked(home, err));
    CX_TRY(cx_store_scan(&home->store, CX_ACTOR_HOME, prefix, (cx_bytes){NULL, 0}, false,
                         load_planned_erasure, list, err));
    for (size_t i = 0; i < list->items.count; i++)
        CX_TRY(find_places(home, &list->items.items[i], list, err));
    if (list->items.count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_log_erase_many(home->log, list->places.items, list->places.count, err));
    /* Also removes it from the database's write-ahead log and from the files of an interrupted
     * rebuild. */
    cx_home_remove_new_tables(home->io, home->path);
    CX_TRY(cx_store_scrub(&home->store, err));
    for (size_t i = 0; i < list->items.count; i++)
        CX_TRY(forget_plan(home, &list->items.items[i], err));
    return cx_home_drain_locked(home, err);
}

/* Those whose row begins with `prefix`. */
static cx_status finish_erasures(cx_home *home, cx_bytes prefix, cx_err *err)
{
    plan list = {.alloc = home->alloc};
    cx_status status = erase_planned(home, prefix, &list, err);
    cx_vec_done(&list.items, home->alloc);
    cx_vec_done(&list.places, home->alloc);
    return status;
}

cx_status cx_home_erase(cx_home *home, cx_str actor, cx_err *err)
{
    CX_ASSERT(home != NULL);
    if (home->read_only)
        return cx_fail(err, CX_E_DENIED, "the data directory was opened for reading only");
    if (home->remote != NULL)
        return cx_remote_erase(home, actor, err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    erase_key key;
    cx_status status = cx_home_lock_txn(home, err);
    if (!cx_failed(status)) {
        status = cx_home_need_actor(home, actor, &found, err);
        if (!cx_failed(status)) {
            (void)name_erasure(&key, found->id, 0);
            status = finish_erasures(home, cx_bytes_from(key.bytes, CX_ERASE_PREFIX_SIZE + 8), err);
        }
        cx_home_unlock_txn(home);
    }
    cx_lock_leave(&home->lock);
    return status;
}

cx_status cx_home_finish_all_erasures(cx_home *home, cx_err *err)
{
    cx_lock_enter(&home->lock);
    cx_status status = finish_erasures(home, cx_str_bytes(CX_STR(CX_ERASE_PREFIX)), err);
    if (status.code == CX_E_BUSY) /* a reader is in the way; the plans stay */
        status = CX_SUCCESS;
    cx_lock_leave(&home->lock);
    return status;
}

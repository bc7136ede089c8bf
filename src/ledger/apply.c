/*
 * apply.c - applies one frame of the log in memory: rows, counters, history, trees, and the rows
 * that higher modules derive.
 *
 * A1  The same frames in the same order give the same rows, whether they have just been written,
 *     are read after a crash, or fill a new database.
 * A2  The old value of a record that a retained snapshot covers is stored as hist/<key>/<snapshot>
 *     (ledger.md §9.1).
 */
#include "base/api.h"
#include "ledger/find/find.h"
#include "ledger/find/hash_rows.h"
#include "ledger/root/home_tree.h"
#include "ledger/internal.h"
#include "ledger/past/history.h"

struct cx_derive {
    cx_home *home;
    cx_actor *actor;
    cx_arena *arena;
    uint64_t commit;
    const cx_ledger_frame *frame;
    const cx_entry *entry; /* NULL = none */
};

/* --- rows ------------------------------------------------------------------------------------ */

static cx_status get_row(const cx_derive *at, cx_bytes key, cx_bytes *out_value, bool *out_found,
                         cx_err *err)
{
    return cx_store_get(&at->home->store, at->actor->id, key, at->arena, out_value, out_found, NULL,
                        err);
}

static cx_status put_row(const cx_derive *at, cx_bytes key, cx_bytes value, bool removed,
                         cx_err *err)
{
    const cx_row row = {at->actor->id, key, value, removed, at->commit};
    return cx_store_put(&at->home->store, &row, err);
}

cx_status cx_derive_get(cx_derive *at, cx_bytes key, cx_bytes *out_value, bool *out_found,
                        cx_err *err)
{
    return get_row(at, key, out_value, out_found, err);
}

cx_status cx_derive_put(cx_derive *at, cx_bytes key, cx_bytes value, cx_err *err)
{
    return put_row(at, key, value, false, err);
}

cx_status cx_derive_remove(cx_derive *at, cx_bytes key, cx_err *err)
{
    return put_row(at, key, (cx_bytes){NULL, 0}, true, err);
}

cx_status cx_derive_get_common(cx_derive *at, cx_bytes key, cx_bytes *out_value, bool *out_found,
                               cx_err *err)
{
    return cx_store_get(&at->home->store, CX_ACTOR_HOME, key, at->arena, out_value, out_found, NULL,
                        err);
}

cx_status cx_derive_put_common(cx_derive *at, cx_bytes key, cx_bytes value, cx_err *err)
{
    const cx_row row = {CX_ACTOR_HOME, key, value, false, at->commit};
    return cx_store_put(&at->home->store, &row, err);
}

static cx_status put_hash(const cx_derive *at, uint64_t head, uint64_t number, cx_err *err)
{
    const cx_hash_row row = {.head = head, .actor = at->actor->id, .number = number};
    return cx_store_put_hash(&at->home->store, &row, err);
}

static uint64_t head_of_hash(const cx_digest *hash)
{
    uint64_t head = 0;
    for (size_t i = 0; i < sizeof head; i++)
        head = head << 8 | hash->bytes[i];
    return head;
}

cx_status cx_derive_hash(cx_derive *at, const cx_digest *hash, cx_err *err)
{
    CX_ASSERT(at->entry != NULL);
    return put_hash(at, head_of_hash(hash), 2 * at->entry->seq, err);
}

cx_status cx_derive_name(cx_derive *at, cx_str id, cx_err *err)
{
    uint64_t head = 0;
    unsigned digits = 0;
    CX_ASSERT(at->entry != NULL);
    for (; digits < 16 && digits < id.size; digits++) {
        const char c = id.data[digits];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
            break;
        head = head << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return digits < CX_FIND_DIGITS_MIN
               ? CX_SUCCESS
               : put_hash(at, head << 4 * (16 - digits), 2 * at->entry->seq, err);
}

cx_str cx_derive_actor(const cx_derive *at)
{
    return at->frame->actor;
}

cx_arena *cx_derive_arena(cx_derive *at)
{
    return at->arena;
}

static cx_status erased_value(const cx_derive *at, const cx_digest *hash, cx_bytes *out,
                              cx_err *err)
{
    uint8_t *bytes = cx_arena_push(at->arena, 1 + sizeof hash->bytes, 1);
    if (bytes == NULL)
        return cx_fail_nomem(err);
    bytes[0] = 0;
    memcpy(bytes + 1, hash->bytes, sizeof hash->bytes);
    *out = cx_bytes_from(bytes, 1 + sizeof hash->bytes);
    return CX_SUCCESS;
}

static bool is_kind(const cx_entry *entry, const char *kind)
{
    return entry != NULL && cx_str_is(entry->kind, kind);
}

/* --- history (§9.1) -------------------------------------------------------------------------- */

static cx_status note_there(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    const size_t size = *(const size_t *)arg;
    (void)value;
    (void)err;
    *stop = key.size == size; /* else it belongs to a longer key with the same prefix */
    if (*stop)
        *(size_t *)arg = 0;
    return CX_SUCCESS;
}

static cx_status scan_rows(const cx_derive *at, cx_bytes prefix, cx_bytes from,
                           cx_status (*row)(void *, cx_bytes, cx_bytes, bool *, cx_err *),
                           void *arg, cx_err *err)
{
    return cx_store_scan(&at->home->store, at->actor->id, prefix, from, false, row, arg, err);
}

/*
 * Whether the newest retained snapshot sees the record in a row of the past already: in its own, or
 * in that of a later one, which was dropped.  Rows of those were flushed when they were dropped
 * (needs_ranges), and none is written afterwards.
 */
static cx_status has_history(const cx_derive *at, cx_bytes record, uint64_t newest, bool *out,
                             cx_err *err)
{
    const cx_history_key key = cx_history_key_of(record, newest);
    cx_bytes value;
    CX_TRY(get_row(at, cx_history_key_bytes(&key), &value, out, err));
    if (*out || newest + 1 == at->actor->info.snapshot_count)
        return CX_SUCCESS;
    const cx_history_key from = cx_history_key_of(record, newest + 1);
    size_t size = from.size;
    CX_TRY(scan_rows(at, cx_bytes_from(from.bytes, from.size - 8), cx_history_key_bytes(&from),
                     note_there, &size, err));
    *out = size == 0;
    return CX_SUCCESS;
}

static cx_status record_history(const cx_derive *at, const cx_change *change, cx_err *err)
{
    const cx_actor *actor = at->actor;
    if (actor->retained.count == 0)
        return CX_SUCCESS;
    const uint64_t newest = actor->retained.items[actor->retained.count - 1];
    bool there = false;
    CX_TRY(has_history(at, change->key, newest, &there, err));
    if (there)
        return CX_SUCCESS;
    cx_bytes value = change->had_previous ? change->previous : (cx_bytes){NULL, 0};
    cx_digest hash;
    if (is_kind(at->entry, "redact_memory") && change->had_previous &&
        !cx_value_erased(value, &hash)) {
        hash = cx_scheme_value(actor->info.scheme, value);
        CX_TRY(erased_value(at, &hash, &value, err));
    }
    const cx_history_key key = cx_history_key_of(change->key, newest);
    return put_row(at, cx_history_key_bytes(&key), value, false, err);
}

/* No row of the past changes (past/history.h G2). */
static cx_status drop_snapshot(const cx_derive *at, uint64_t snapshot, cx_err *err)
{
    cx_actor *actor = at->actor;
    size_t index = 0;
    while (index < actor->retained.count && actor->retained.items[index] != snapshot)
        index++;
    if (index == actor->retained.count)
        return CX_SUCCESS;
    memmove(&actor->retained.items[index], &actor->retained.items[index + 1],
            (actor->retained.count - index - 1) * sizeof *actor->retained.items);
    actor->retained.count--;
    const cx_snapshot_row dropped = {.actor = actor->id, .snapshot = snapshot, .dropped = true};
    return cx_store_put_snapshot(&at->home->store, &dropped, err);
}

static cx_status erase_history_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    const cx_derive *at = arg;
    cx_digest hash;
    (void)stop;
    if (value.size == 0 || cx_value_erased(value, &hash))
        return CX_SUCCESS;
    hash = cx_scheme_value(at->actor->info.scheme, value);
    cx_bytes erased;
    CX_TRY(erased_value(at, &hash, &erased, err));
    return put_row(at, key, erased, false, err);
}

/* RedactMemory: no old copy of the Head may stay in the history. */
static cx_status erase_history(cx_derive *at, const cx_id *id, cx_err *err)
{
    uint8_t prefix[5 + 2 + 16 + 1];
    memcpy(prefix, "hist/m/", 7);
    memcpy(prefix + 7, id->bytes, 16);
    prefix[23] = '/';
    return scan_rows(at, cx_bytes_from(prefix, sizeof prefix), (cx_bytes){NULL, 0},
                     erase_history_row, at, err);
}

/* --- snapshots ------------------------------------------------------------------------------- */

static cx_status index_root(const cx_derive *at, const cx_manifest *manifest, bool removed,
                            cx_err *err)
{
    uint8_t key[9 + 32 + 8];
    memcpy(key, "idx/root/", 9);
    memcpy(key + 9, manifest->overall_root.bytes, 32);
    for (unsigned i = 0; i < 8; i++)
        key[41 + i] = (uint8_t)(manifest->snapshot_seq >> (8 * (7 - i)));
    return put_row(at, cx_bytes_from(key, sizeof key), (cx_bytes){NULL, 0}, removed, err);
}

/* What a snapshot can be found by. */
static cx_status index_hashes(const cx_derive *at, const cx_manifest *manifest, cx_err *err)
{
    cx_digest digest;
    CX_TRY(cx_manifest_digest(manifest, at->home->alloc, &digest, err));
    const cx_digest *const hashes[] = {&manifest->overall_root, &manifest->memories_root,
                                       &manifest->edges_root, &manifest->journal_root, &digest};
    for (size_t i = 0; i < CX_COUNT_OF(hashes); i++)
        CX_TRY(put_hash(at, head_of_hash(hashes[i]), 2 * manifest->snapshot_seq + 1, err));
    return CX_SUCCESS;
}

static cx_status damaged_log(const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "LogDamaged", CX_NO_OFFSET,
                      "the log has a frame that does not fit the frames before it: %s", what);
}

static cx_status apply_snapshot(const cx_derive *at, const cx_change *change, cx_err *err)
{
    cx_actor *actor = at->actor;
    cx_bytes bytes = change->value;
    bool found = true;
    if (change->removed)
        CX_TRY(get_row(at, change->key, &bytes, &found, err));
    if (!found)
        return CX_SUCCESS;
    cx_manifest manifest;
    CX_TRY(cx_manifest_decode(bytes, &manifest, err));
    if (manifest.snapshot_seq >= CX_SNAPSHOT_END)
        return damaged_log("a snapshot's number is too large", err);
    if (change->removed) {
        CX_TRY(drop_snapshot(at, manifest.snapshot_seq, err));
    } else if (manifest.snapshot_seq >= actor->info.snapshot_count) {
        uint64_t *slot = cx_vec_push(&actor->retained, at->home->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        *slot = manifest.snapshot_seq;
        actor->info.snapshot_count = manifest.snapshot_seq + 1;
        const cx_snapshot_row made = {.actor = actor->id, .snapshot = manifest.snapshot_seq};
        CX_TRY(cx_store_put_snapshot(&at->home->store, &made, err));
    }
    if (!change->removed)
        CX_TRY(index_hashes(at, &manifest, err));
    return index_root(at, &manifest, change->removed, err);
}

/* --- state records --------------------------------------------------------------------------- */

/* Whether a record tomb/<id> existed before this frame or is written by it. */
static cx_status tomb_there(const cx_derive *at, cx_bytes head_key, bool with_frame, bool *out,
                            cx_err *err)
{
    uint8_t name[5 + 16];
    memcpy(name, "tomb/", 5);
    memcpy(name + 5, head_key.data + 2, 16);
    const cx_bytes key = cx_bytes_from(name, sizeof name);
    for (size_t i = 0; with_frame && i < at->frame->change_count; i++)
        if (cx_str_eq(cx_bytes_str(at->frame->changes[i].key), cx_bytes_str(key))) {
            *out = true;
            return CX_SUCCESS;
        }
    cx_bytes value;
    return get_row(at, key, &value, out, err);
}

/* An erased Head no longer shows whether it was a tombstone, but the record tomb/<id> stays. */
static cx_status count_head(const cx_derive *at, const cx_change *change, cx_bytes head, bool now,
                            uint64_t **out_counter, cx_err *err)
{
    cx_digest hash;
    cx_head decoded;
    bool dead = false;
    if (cx_value_erased(head, &hash)) {
        CX_TRY(tomb_there(at, change->key, now, &dead, err));
    } else {
        cx_status status = cx_head_decode(head, at->arena, &decoded, NULL);
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(err);
        dead = !cx_failed(status) && decoded.tombstoned;
    }
    *out_counter = dead ? &at->actor->info.tombstoned : &at->actor->info.live_memories;
    return CX_SUCCESS;
}

static cx_status count_change(const cx_derive *at, const cx_change *change, cx_bytes value,
                              bool edge, cx_err *err)
{
    uint64_t *before = &at->actor->info.edge_count, *after = before;
    if (!edge && change->had_previous)
        CX_TRY(count_head(at, change, change->previous, false, &before, err));
    if (!edge && !change->removed)
        CX_TRY(count_head(at, change, value, true, &after, err));
    *before -= change->had_previous ? 1 : 0;
    *after += change->removed ? 0 : 1;
    return CX_SUCCESS;
}

static cx_digest state_value(cx_scheme scheme, cx_bytes value)
{
    cx_digest hash;
    return cx_value_erased(value, &hash) ? hash : cx_scheme_value(scheme, value);
}

static cx_status apply_state(const cx_derive *at, cx_change *change, cx_bytes value, bool is_new,
                             const cx_digest *tree_key, bool edge, cx_err *err)
{
    if (change->removed)
        return damaged_log("a memory or an edge is removed, which no call does", err);
    if (!is_new)
        CX_TRY(get_row(at, change->key, &change->previous, &change->had_previous, err));
    CX_TRY(record_history(at, change, err));
    const cx_digest after =
        change->erasable ? change->value_hash : state_value(at->actor->info.scheme, value);
    CX_TRY(count_change(at, change, value, edge, err));
    return cx_actor_put_state(at->home, at->actor, edge, tree_key, &after, err);
}

static cx_status row_value(const cx_derive *at, const cx_change *change, cx_bytes *out, cx_err *err)
{
    *out = change->value;
    return change->erased ? erased_value(at, &change->value_hash, out, err) : CX_SUCCESS;
}

/* Updates counters, history and trees for a change; its row is written afterwards. */
static cx_status apply_change(const cx_derive *at, cx_change *change, cx_err *err)
{
    cx_digest tree_key;
    bool edge = false;
    cx_bytes value;
    CX_TRY(row_value(at, change, &value, err));
    if (cx_state_key(at->actor->info.scheme, change->key, &tree_key, &edge))
        return apply_state(at, change, value, !edge && is_kind(at->entry, "write"), &tree_key, edge,
                           err);
    if (change->key.size == 5 + 8 && memcmp(change->key.data, "snap/", 5) == 0)
        return apply_snapshot(at, change, err);
    return CX_SUCCESS;
}

/* --- actors and entries ---------------------------------------------------------------------- */

static cx_status new_actor(cx_home *home, const cx_ledger_frame *frame, uint64_t commit,
                           cx_actor **out, cx_err *err)
{
    cx_scheme scheme = home->scheme;
    bool named = false;
    for (size_t i = 0; i < frame->change_count; i++)
        if (cx_str_is(cx_bytes_str(frame->changes[i].key), "meta/scheme"))
            named = cx_scheme_parse(cx_bytes_str(frame->changes[i].value), &scheme);
    if (!named)
        return damaged_log("an actor's first frame does not name the actor's scheme", err);
    if (frame->actor.size == 0)
        home->scheme = scheme;
    else if (home->actors.count == 0)
        return damaged_log("the first frame is not that of a data directory", err);
    CX_TRY(cx_home_add_actor(home, frame->actor, scheme, out, err));
    (*out)->retained_known = true;
    if (frame->actor.size != 0)
        CX_TRY(cx_store_put_actor_name(&home->store, (*out)->id, frame->actor, commit, err));
    return CX_SUCCESS;
}

/* The journal's right edge, and the nodes that the entry made whole. */
static cx_status extend_journal(const cx_derive *at, const cx_digest *leaf, cx_err *err)
{
    cx_actor *actor = at->actor;
    cx_mmr_fold folds[CX_MMR_FOLDS_MAX];
    size_t count = 0;
    CX_TRY(cx_mmr_edge_append(&actor->edge, actor->info.scheme, at->home->alloc, leaf, folds,
                              &count, err));
    for (size_t i = 0; i < count; i++) {
        const cx_fold_row row = {actor->id, folds[i]};
        CX_TRY(cx_store_put_fold(&at->home->store, &row, err));
    }
    return CX_SUCCESS;
}

static cx_status apply_entry(const cx_derive *at, const cx_ledger_frame *frame,
                             const cx_entry *entry, const cx_applied *where, cx_err *err)
{
    cx_actor *actor = at->actor;
    if (entry->seq != actor->info.entry_count)
        return damaged_log("an entry's number does not follow its predecessor's", err);
    const cx_entry_row row = {
        .actor = actor->id,
        .seq = entry->seq,
        .kind = entry->kind,
        .created_ns = entry->created_at_ns,
        .has_subject = frame->has_subject,
        .subject = frame->subject,
        .place = where->place,
        .leaf = where->leaf != NULL ? *where->leaf : cx_scheme_entry(frame->entry),
        .commit = at->commit,
    };
    CX_TRY(cx_store_put_entry(&at->home->store, &row, err));
    CX_TRY(put_hash(at, head_of_hash(&row.leaf), 2 * row.seq, err));
    if (entry->committed)
        CX_TRY(put_hash(at, head_of_hash(&entry->commitment), 2 * row.seq, err));
    actor->info.entry_count++;
    return extend_journal(at, &row.leaf, err);
}

/* Whether deriving the frame scans a range of rows, or later frames do, that it must find in the
 * tables (has_history): then the memtable must be flushed first. */
static bool needs_ranges(const cx_entry *entry)
{
    return entry != NULL &&
           (cx_str_is(entry->kind, "drop_snapshot") || cx_str_is(entry->kind, "redact_memory"));
}

static cx_status call_derivers(cx_derive *at, const cx_ledger_frame *frame, const cx_entry *entry,
                               cx_err *err)
{
    const cx_home_options *options = &at->home->options;
    for (size_t i = 0; i < options->deriver_count; i++)
        CX_TRY(options->derivers[i].derive(at, entry, frame->changes, frame->change_count, err));
    return CX_SUCCESS;
}

/* Counters, history and trees are updated against the rows before the frame; then the rows are
 * written. */
static cx_status apply_changes(cx_derive *at, cx_err *err)
{
    const cx_ledger_frame *frame = at->frame;
    /* The frame's changes are the caller's array; previous values are filled in for the
     * derivers. */
    cx_change *changes = (cx_change *)(uintptr_t)frame->changes;
    for (size_t i = 0; i < frame->change_count; i++)
        CX_TRY(apply_change(at, &changes[i], err));
    if (is_kind(at->entry, "redact_memory") && frame->has_subject)
        CX_TRY(erase_history(at, &frame->subject, err));
    for (size_t i = 0; i < frame->change_count; i++) {
        cx_bytes value;
        CX_TRY(row_value(at, &changes[i], &value, err));
        CX_TRY(put_row(at, changes[i].key, value, changes[i].removed, err));
    }
    if (at->entry != NULL)
        CX_TRY(cx_home_plan_erasure(at, at->actor->id, at->entry, frame, err));
    return call_derivers(at, frame, at->entry, err);
}

/* The data directory's own frames name no actor: they are of number 0. */
static cx_status actor_of_frame(cx_home *home, const cx_ledger_frame *frame, uint64_t commit,
                                cx_actor **out, cx_err *err)
{
    *out = NULL;
    if (frame->actor.size != 0)
        CX_TRY(cx_home_find_actor(home, frame->actor, out, err));
    else if (home->actors.count != 0)
        return cx_home_actor_numbered(home, CX_ACTOR_HOME, out, err);
    return *out != NULL ? CX_SUCCESS : new_actor(home, frame, commit, out, err);
}

static cx_status apply_to_actor(cx_derive *at, const cx_applied *where, cx_err *err)
{
    cx_home *home = at->home;
    /* Unknown: no frame was applied since the actor was read, so the tables have all of its rows
     * (C2 in actors.c). */
    CX_TRY(cx_home_know_retained(home, at->actor, err));
    CX_TRY(cx_home_actor_changes(home, at->actor, err));
    if (at->entry != NULL)
        CX_TRY(apply_entry(at, at->frame, at->entry, where, err));
    if (at->entry != NULL && cx_home_root_reserved(at->frame->actor)) {
        cx_home_root recorded;
        if (!cx_failed(cx_home_root_decode(at->entry->payload, &recorded, NULL)))
            CX_TRY(cx_derive_hash(at, &recorded.root, err));
        cx_home_root_note_applied(home, at->entry);
        home->actors.home_roots = at->actor->info.entry_count;
    }
    CX_TRY(apply_changes(at, err));
    return cx_home_root_reserved(at->frame->actor)
               ? cx_home_tree_apply(home, at->actor, at->frame->changes, at->frame->change_count,
                                    at->commit, err)
               : CX_SUCCESS;
}

cx_status cx_home_apply(cx_home *home, const cx_ledger_frame *frame, const cx_applied *where,
                        cx_arena *arena, cx_err *err)
{
    cx_entry entry;
    const cx_entry *decoded = where->entry;
    if (decoded == NULL && frame->entry.size != 0) {
        CX_TRY(cx_entry_decode(frame->entry, &entry, err));
        decoded = &entry;
    }
    if (needs_ranges(decoded))
        CX_TRY(cx_home_flush_wait_locked(home, err));
    cx_actor *actor = NULL;
    CX_TRY(actor_of_frame(home, frame, where->commit, &actor, err));
    cx_derive at = {home, actor, arena, where->commit, frame, decoded};
    cx_actor_hold(actor); /* deriving may release the lock */
    cx_status status = apply_to_actor(&at, where, err);
    cx_actor_release(actor);
    return status;
}

/*
 * read.c - reading records, entries, and records as of a snapshot.
 *
 * R1  What a caller is shown is durable: reading a value of a commit that is being written waits
 *     for its sync.
 */
#include "base/api.h"
#include "ledger/find/find.h"
#include "ledger/internal.h"
#include "ledger/past/history.h"

static cx_status wait_shown(cx_home *home, uint64_t commit, cx_err *err)
{
    return commit == 0 || home->read_only ? CX_SUCCESS : cx_home_wait(home, commit, err);
}

cx_status cx_home_actor(cx_home *home, cx_str actor, cx_actor_info *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_actor(home, actor, out, err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    cx_status status = cx_home_need_actor(home, actor, &found, err);
    if (!cx_failed(status)) {
        *out = found->info;
        out->name = actor;
    }
    cx_lock_leave(&home->lock);
    return status;
}

/* --- all actors ------------------------------------------------------------------------------- */

/* Actors that a walk reads at once. */
#define WALK_PAGE 256

cx_status cx_home_actors_from(cx_home *home, uint64_t from, size_t max, cx_arena *arena,
                              const cx_actor_info **out, size_t *out_count, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_actor_page(home, from, arena, out, out_count, err);
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_actor_page(home, from, max, arena, out, out_count, err);
    cx_lock_leave(&home->lock);
    return status;
}

void cx_actor_walk_begin(cx_actor_walk *walk, cx_home *home)
{
    cx_actor_walk_begin_named(walk, home, CX_STR(""));
}

void cx_actor_walk_begin_named(cx_actor_walk *walk, cx_home *home, cx_str prefix)
{
    *walk = (cx_actor_walk){
        .home = home, .prefix = prefix, .all = prefix.size == 0 || home->remote != NULL};
    cx_arena_init(&walk->arena, home->alloc, 0);
    cx_arena_init(&walk->chosen, home->alloc, 0);
}

static cx_status read_numbers(cx_actor_walk *walk, cx_err *err)
{
    cx_home *home = walk->home;
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_actor_numbers(home, walk->prefix, &walk->chosen, &walk->numbers,
                                             &walk->number_count, err);
    cx_lock_leave(&home->lock);
    walk->all = !cx_failed(status) && walk->numbers == NULL;
    return status;
}

static cx_status next_page(cx_actor_walk *walk, cx_err *err)
{
    cx_home *home = walk->home;
    cx_arena_reset(&walk->arena, (cx_arena_mark){0});
    walk->seen += walk->count;
    walk->at = walk->count = 0;
    if (!walk->all && walk->numbers == NULL)
        CX_TRY(read_numbers(walk, err));
    if (walk->all)
        return cx_home_actors_from(home, walk->seen, WALK_PAGE, &walk->arena, &walk->page,
                                   &walk->count, err);
    const size_t left = walk->number_count - (size_t)walk->seen;
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_actors_numbered(home, walk->numbers + walk->seen,
                                               left < WALK_PAGE ? left : WALK_PAGE, &walk->arena,
                                               &walk->page, &walk->count, err);
    cx_lock_leave(&home->lock);
    return status;
}

cx_status cx_actor_walk_next(cx_actor_walk *walk, const cx_actor_info **out, cx_err *err)
{
    *out = NULL;
    do {
        if (walk->at == walk->count)
            CX_TRY(next_page(walk, err));
        if (walk->count == 0)
            return CX_SUCCESS;
        *out = &walk->page[walk->at++];
    } while (!cx_str_starts((*out)->name, walk->prefix)); /* where there are no rows of names */
    return CX_SUCCESS;
}

void cx_actor_walk_end(cx_actor_walk *walk)
{
    cx_arena_done(&walk->arena);
    cx_arena_done(&walk->chosen);
}

typedef struct actor_list {
    CX_VEC(cx_actor_info) items;
} actor_list;

static cx_status gather_actors(cx_home *home, cx_arena *arena, actor_list *list, cx_err *err)
{
    const cx_actor_info *page;
    size_t count = 1;
    while (count != 0) {
        CX_TRY(cx_home_actors_from(home, list->items.count, WALK_PAGE, arena, &page, &count, err));
        if (!cx_vec_reserve(&list->items, list->items.count + count + 1, home->alloc))
            return cx_fail_nomem(err);
        if (count != 0)
            memcpy(list->items.items + list->items.count, page, count * sizeof *page);
        list->items.count += count;
    }
    return CX_SUCCESS;
}

cx_status cx_home_actors(cx_home *home, cx_arena *arena, const cx_actor_info **out,
                         size_t *out_count, cx_err *err)
{
    actor_list list = {{NULL, 0, 0}};
    cx_status status = gather_actors(home, arena, &list, err);
    cx_actor_info *infos = NULL;
    if (!cx_failed(status)) {
        infos = CX_ARENA_ARRAY(arena, cx_actor_info, list.items.count + 1);
        if (infos == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        memcpy(infos, list.items.items, list.items.count * sizeof *infos);
        *out = infos;
        *out_count = list.items.count;
    }
    cx_vec_done(&list.items, home->alloc);
    return status;
}

cx_status cx_home_get(cx_home *home, cx_str actor, cx_bytes key, cx_arena *arena,
                      cx_bytes *out_value, bool *out_found, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_get(home, actor, key, arena, out_value, out_found, err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    uint64_t commit = 0;
    cx_status status = cx_home_need_actor(home, actor, &found, err);
    if (!cx_failed(status))
        status =
            cx_store_get(&home->store, found->id, key, arena, out_value, out_found, &commit, err);
    cx_lock_leave(&home->lock);
    if (!cx_failed(status))
        status = wait_shown(home, commit, err);
    return status;
}

static cx_status scanned_actor(cx_home *home, const cx_scan *scan, int64_t *out, cx_err *err)
{
    cx_actor *found = NULL;
    *out = CX_ACTOR_HOME;
    if (scan->common)
        return home->apply_failed ? cx_home_check_alive(home, err) : CX_SUCCESS;
    CX_TRY(cx_home_need_actor(home, scan->actor, &found, err));
    *out = found->id;
    return CX_SUCCESS;
}

cx_status cx_home_scan(cx_home *home, const cx_scan *scan, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_scan(home, scan, err);
    cx_lock_enter(&home->lock);
    int64_t actor = CX_ACTOR_HOME;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, cx_home_flush_wait_locked(home, err));
    CX_TRY_GOTO(status, scanned_actor(home, scan, &actor, err));
    status = cx_store_scan(&home->store, actor, scan->prefix, scan->from, scan->backwards,
                           scan->row, scan->arg, err);
done:
    cx_lock_leave(&home->lock);
    return status;
}

/* --- the past (§9.1) ------------------------------------------------------------------------- */

typedef struct view {
    cx_arena *arena;
    size_t key_size;
    bool found;
    cx_bytes value;
} view;

static cx_status read_history_value(void *arg, cx_bytes key, cx_bytes value, bool *stop,
                                    cx_err *err)
{
    view *state = arg;
    if (key.size != 5 + state->key_size + 1 + 8)
        return CX_SUCCESS; /* belongs to a longer key with the same prefix */
    cx_str copy = cx_arena_copy_str(state->arena, cx_bytes_str(value));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    state->value = cx_str_bytes(copy);
    state->found = true;
    *stop = true;
    return CX_SUCCESS;
}

static cx_status history_at(cx_home *home, const cx_actor *actor, uint64_t snapshot, cx_bytes key,
                            view *state, cx_err *err)
{
    const cx_history_key from = cx_history_key_of(key, snapshot);
    return cx_store_scan(&home->store, actor->id, cx_bytes_from(from.bytes, from.size - 8),
                         cx_history_key_bytes(&from), false, read_history_value, state, err);
}

static cx_status get_at(cx_home *home, cx_actor *actor, uint64_t snapshot, cx_bytes key,
                        view *state, cx_err *err)
{
    CX_TRY(cx_home_know_retained(home, actor, err));
    bool retained = false;
    for (size_t i = 0; i < actor->retained.count; i++)
        retained = retained || actor->retained.items[i] == snapshot;
    if (!retained)
        return cx_fail_at(err, CX_E_NOT_FOUND, "SnapshotNotFound", CX_NO_OFFSET,
                          "there is no snapshot %llu, or it was dropped",
                          (unsigned long long)snapshot);
    CX_TRY(history_at(home, actor, snapshot, key, state, err));
    if (state->found) {
        state->found =
            state->value.size != 0; /* empty: the record did not exist at that snapshot */
        return CX_SUCCESS;
    }
    return cx_store_get(&home->store, actor->id, key, state->arena, &state->value, &state->found,
                        NULL, err);
}

cx_status cx_home_get_at(cx_home *home, cx_str actor, uint64_t snapshot_seq, cx_bytes key,
                         cx_arena *arena, cx_bytes *out_value, bool *out_found, bool *out_erased,
                         cx_digest *out_value_hash, cx_err *err)
{
    if (key.size > CX_KEY_SIZE_MAX - 16)
        return cx_fail(err, CX_E_LIMIT, "record key of %zu bytes", key.size);
    if (home->remote != NULL)
        return cx_remote_get_at(home, actor, snapshot_seq, key, arena, out_value, out_found,
                                out_erased, out_value_hash, err);
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    view state = {.arena = arena, .key_size = key.size};
    cx_status status = cx_home_flush_wait_locked(home, err);
    if (!cx_failed(status))
        status = cx_home_need_actor(home, actor, &found, err);
    if (!cx_failed(status))
        status = get_at(home, found, snapshot_seq, key, &state, err);
    cx_lock_leave(&home->lock);
    CX_TRY(status);
    *out_found = state.found;
    *out_erased = state.found && cx_value_erased(state.value, out_value_hash);
    if (state.found && !*out_erased)
        *out_value = state.value;
    return CX_SUCCESS;
}

/* --- entries ---------------------------------------------------------------------------------- */

static cx_status find_place(cx_home *home, cx_str actor, uint64_t seq, cx_entry_row *out,
                            cx_err *err)
{
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    cx_status status = cx_home_need_actor(home, actor, &found, err);
    if (!cx_failed(status))
        status = cx_store_get_entry(&home->store, found->id, seq, out, err);
    cx_lock_leave(&home->lock);
    if (!cx_failed(status))
        status = wait_shown(home, out->commit, err);
    return status;
}

/* Reads the frame at a place; its bytes are in the arena. */
static cx_status read_frame(cx_home *home, cx_log_place place, cx_arena *arena,
                            cx_ledger_frame *out, cx_err *err)
{
    cx_buf buf;
    cx_buf_init(&buf, home->alloc);
    cx_log_frame parts = {{NULL, 0}, {NULL, 0}};
    bool erased = false;
    cx_status status = cx_log_read(home->log, place, &buf, &parts, &erased, err);
    if (!cx_failed(status)) {
        cx_str guarded = cx_arena_copy_str(arena, cx_bytes_str(parts.guarded));
        cx_str erasable = cx_arena_copy_str(arena, cx_bytes_str(parts.erasable));
        if (guarded.data == NULL || erasable.data == NULL)
            status = cx_fail_nomem(err);
        parts = (cx_log_frame){cx_str_bytes(guarded), cx_str_bytes(erasable)};
    }
    cx_buf_done(&buf);
    CX_TRY(status);
    return cx_frame_decode(&parts, erased, arena, out, err);
}

static cx_status fail_other_entry(uint64_t seq, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the tables' row of entry %llu points at another one; run"
                      " 'cortex tables rebuild'",
                      (unsigned long long)seq);
}

cx_status cx_home_entry(cx_home *home, cx_str actor, uint64_t seq, cx_arena *arena,
                        cx_entry_view *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_entry(home, actor, seq, arena, out, err);
    cx_entry_row row;
    CX_TRY(find_place(home, actor, seq, &row, err));
    cx_ledger_frame frame;
    CX_TRY(read_frame(home, row.place, arena, &frame, err));
    cx_entry_view view_of = {.bytes = frame.entry, .leaf_hash = cx_scheme_entry(frame.entry)};
    if (!cx_str_eq(frame.actor, actor) || !cx_digest_eq(&view_of.leaf_hash, &row.leaf))
        return fail_other_entry(seq, err);
    CX_TRY(cx_entry_decode(frame.entry, &view_of.entry, err));
    view_of.payload = frame.committed ? frame.payload : view_of.entry.payload;
    view_of.payload_erased = frame.committed && frame.erased;
    if (frame.committed && !frame.erased)
        memcpy(view_of.salt, frame.salt, sizeof view_of.salt);
    view_of.has_subject = frame.has_subject;
    view_of.subject = frame.subject;
    *out = view_of;
    return CX_SUCCESS;
}

static cx_status fail_short(uint64_t seq, cx_err *err)
{
    return cx_fail(err, CX_E_USAGE, "the payload of entry %llu is shorter than that",
                   (unsigned long long)seq);
}

/* Of a payload that is read as a whole. */
static cx_status copy_range(cx_home *home, cx_str actor, uint64_t seq, uint64_t from, size_t size,
                            cx_buf *out, bool *out_erased, cx_err *err)
{
    cx_arena arena;
    cx_entry_view entry;
    cx_arena_init(&arena, home->alloc, 0);
    cx_status status = cx_home_entry(home, actor, seq, &arena, &entry, err);
    *out_erased = !cx_failed(status) && entry.payload_erased;
    if (!cx_failed(status) && !*out_erased) {
        if (from > entry.payload.size || size > entry.payload.size - from)
            status = fail_short(seq, err);
        else
            cx_buf_add(out, entry.payload.data + from, size);
    }
    cx_arena_done(&arena);
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

/* Whether the frame is that of the entry, with a committed payload that ends the erasable part. */
static cx_status check_range(const cx_log_range *range, cx_str actor, uint64_t seq,
                             const cx_entry_row *row, cx_arena *arena, bool *out_committed,
                             cx_err *err)
{
    const cx_log_frame parts = {range->guarded, {NULL, 0}};
    cx_ledger_frame frame;
    CX_TRY(cx_frame_decode(&parts, true, arena, &frame, err));
    const cx_digest leaf = cx_scheme_entry(frame.entry);
    if (!cx_str_eq(frame.actor, actor) || !cx_digest_eq(&leaf, &row->leaf))
        return fail_other_entry(seq, err);
    *out_committed = frame.committed;
    for (size_t i = 0; i < frame.change_count; i++)
        *out_committed = *out_committed && !frame.changes[i].erasable;
    return CX_SUCCESS;
}

cx_status cx_home_entry_range(cx_home *home, cx_str actor, uint64_t seq, uint64_t from, size_t size,
                              cx_buf *out, bool *out_erased, cx_err *err)
{
    cx_entry_row row;
    cx_arena arena;
    cx_buf buf;
    cx_log_range range = {.erased = false};
    const size_t before = out->size;
    bool committed = false;
    if (home->remote != NULL)
        return copy_range(home, actor, seq, from, size, out, out_erased, err);
    CX_TRY(find_place(home, actor, seq, &row, err));
    cx_arena_init(&arena, home->alloc, 0);
    cx_buf_init(&buf, home->alloc);
    cx_status status = cx_log_read_range(home->log, row.place, from + CX_FRAME_PAYLOAD_AT, size,
                                         &buf, out, &range, err);
    const bool is_short = status.code == CX_E_USAGE; /* or the payload is elsewhere */
    if (!cx_failed(status))
        status = check_range(&range, actor, seq, &row, &arena, &committed, err);
    cx_buf_done(&buf);
    cx_arena_done(&arena);
    *out_erased = range.erased;
    if (cx_failed(status) || !committed)
        out->size = before;
    return is_short || (!cx_failed(status) && !committed)
               ? copy_range(home, actor, seq, from, size, out, out_erased, err)
               : status;
}

cx_status cx_home_entry_item(cx_home *home, cx_str actor, uint64_t seq, cx_arena *arena,
                             cx_tail_item *out, cx_err *err)
{
    cx_entry_row row;
    cx_ledger_frame frame;
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "an entry's frame", err);
    CX_TRY(find_place(home, actor, seq, &row, err));
    CX_TRY(read_frame(home, row.place, arena, &frame, err));
    const cx_digest leaf = cx_scheme_entry(frame.entry);
    if (!cx_str_eq(frame.actor, actor) || !cx_digest_eq(&leaf, &row.leaf))
        return fail_other_entry(seq, err);
    cx_tail_item item = {.actor = frame.actor,
                         .has_entry = true,
                         .changes = frame.changes,
                         .change_count = frame.change_count,
                         .has_subject = frame.has_subject,
                         .subject = frame.subject};
    CX_TRY(cx_entry_decode(frame.entry, &item.entry, err));
    item.payload = item.entry.committed ? frame.payload : item.entry.payload;
    item.erased = item.entry.committed && frame.erased;
    *out = item;
    return CX_SUCCESS;
}

typedef struct about {
    cx_home *home;
    CX_VEC(uint64_t) seqs;
    CX_VEC(cx_log_place) places;
    uint64_t before;
} about;

static cx_status collect_entry_about(void *arg, const cx_entry_row *entry, bool *stop, cx_err *err)
{
    about *list = arg;
    if (entry->seq >= list->before) {
        *stop = true;
        return CX_SUCCESS;
    }
    uint64_t *seq = cx_vec_push(&list->seqs, list->home->alloc);
    cx_log_place *place = cx_vec_push(&list->places, list->home->alloc);
    if (seq == NULL || place == NULL)
        return cx_fail_nomem(err);
    *seq = entry->seq;
    *place = entry->place;
    return CX_SUCCESS;
}

static cx_status list_about(cx_home *home, cx_str actor, const cx_id *subject, about *list,
                            cx_err *err)
{
    cx_lock_enter(&home->lock);
    cx_actor *found = NULL;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, cx_home_flush_wait_locked(home, err));
    CX_TRY_GOTO(status, cx_home_need_actor(home, actor, &found, err));
    status =
        cx_store_scan_entries(&home->store, found->id, subject, collect_entry_about, list, err);
done:
    cx_lock_leave(&home->lock);
    return status;
}

static void about_done(about *list)
{
    cx_vec_done(&list->seqs, list->home->alloc);
    cx_vec_done(&list->places, list->home->alloc);
}

cx_status cx_home_entries_about(cx_home *home, cx_str actor, const cx_id *subject, cx_arena *arena,
                                const uint64_t **out_seqs, size_t *out_count, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_entries_about(home, actor, subject, arena, out_seqs, out_count, err);
    about list = {.home = home, .before = UINT64_MAX};
    cx_status status = list_about(home, actor, subject, &list, err);
    uint64_t *seqs = NULL;
    if (!cx_failed(status)) {
        seqs = CX_ARENA_ARRAY(arena, uint64_t, list.seqs.count + 1);
        if (seqs == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        if (list.seqs.count != 0)
            memcpy(seqs, list.seqs.items, list.seqs.count * sizeof *seqs);
        *out_seqs = seqs;
        *out_count = list.seqs.count;
    }
    about_done(&list);
    return status;
}

/* --- tables ----------------------------------------------------------------------------------- */

cx_status cx_home_flush(cx_home *home, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_flush(home, err);
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_flush_wait_locked(home, err);
    cx_lock_leave(&home->lock);
    return status;
}

/* As of the last flush. */
cx_status cx_home_tables_status(cx_home *home, cx_tables_status *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_remote_tables_status(home, out, err);
    cx_tables_status found = {.log_commits = cx_log_durable(home->log)};
    cx_lock_enter(&home->lock);
    found.table_commits = home->store.flushed.commit + (home->store.flushed.frames != 0 ? 1 : 0);
    found.entry_rows = home->store.counters.entries;
    found.record_rows = home->store.counters.records;
    cx_lock_leave(&home->lock);
    *out = found;
    return CX_SUCCESS;
}

static cx_status compare_counted(const cx_home *home, uint64_t entries, uint64_t records,
                                 cx_err *err)
{
    const cx_store_counters *kept = &home->store.counters;
    /* While a flush is under way, the rows may be ahead of the numbers. */
    if (home->store.flushing != NULL || (kept->entries == entries && kept->records == records))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the tables have %llu entries and %llu records, and say they have %llu and"
                      " %llu; run 'cortex tables rebuild --replace'",
                      (unsigned long long)entries, (unsigned long long)records,
                      (unsigned long long)kept->entries, (unsigned long long)kept->records);
}

cx_status cx_home_count_rows(cx_home *home, uint64_t *out_entries, uint64_t *out_records,
                             cx_err *err)
{
    uint64_t entries = 0, records = 0;
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "counting rows", err);
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_flush_wait_locked(home, err);
    if (!cx_failed(status))
        status = cx_store_count_rows(&home->store, &entries, &records, err);
    if (!cx_failed(status))
        status = compare_counted(home, entries, records, err);
    cx_lock_leave(&home->lock);
    *out_entries = entries;
    *out_records = records;
    return status;
}

cx_status cx_home_log_archive(cx_home *home, const cx_log_archive_options *options,
                              cx_log_archived *out, cx_err *err)
{
    return home->remote != NULL ? cx_remote_archive(home, options, false, out, err)
                                : cx_log_archive(home->log, options, out, err);
}

cx_status cx_home_log_restore(cx_home *home, const cx_log_archive_options *options,
                              cx_log_archived *out, cx_err *err)
{
    cx_log_archiving_state state;
    if (home->remote != NULL)
        return cx_remote_archive(home, options, true, out, err);
    cx_log_archiver_state(home->log, &state);
    if (state.on)
        return cx_fail_at(err, CX_E_USAGE, "ArchivesItself", CX_NO_OFFSET,
                          "the writer process archives segments by its configuration, so they "
                          "would not stay; remove its section [archive] and start it again first");
    return cx_log_unarchive(home->log, options, out, err);
}

void cx_home_log_archiving(cx_home *home, cx_log_archiving_state *out)
{
    *out = (cx_log_archiving_state){0};
    if (home->remote == NULL)
        cx_log_archiver_state(home->log, out);
}

cx_status cx_home_log_space(cx_home *home, cx_log_space *out, cx_err *err)
{
    if (home->remote != NULL)
        return cx_fail_at(err, CX_E_BUSY, "Remote", CX_NO_OFFSET,
                          "what %s takes is read from its files: open it for reading", home->path);
    return cx_log_space_of(home->log, out, err);
}

/*
 * trust.c - the trust store as a function of the ledger (trace.md §4).
 *
 * Every change is an entry `trace.key` of the actor `trust`, whose payload is canonical JSON:
 *
 *     {"key":{..},"op":"add"}                                        a key as in cortex-trust-1
 *     {"at":"..","by":"..","compromised_since":null,"key_id":"..","op":"revoke","reason":".."}
 *
 * An entry of another form, which a raw call can write there, changes nothing: the ledger stores it
 * for ever, and must stay usable.  The same is true of one whose payload was erased.
 *
 * Views are immutable: a verification in progress uses the one it began with, and detects by the
 * number of entries that there is a newer one.
 */
#include "base/api.h"
#include "recorder/internal.h"

/* --- entries onto a store --------------------------------------------------------------------- */

static cx_status bad_entry(const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadTrust", CX_NO_OFFSET, "a trace.key entry %s", what);
}

static cx_status time_member(const cx_json *object, cx_str name, int64_t *out, cx_err *err)
{
    const cx_json *value = cx_json_get(object, name);
    bool naive;
    *out = CX_TIME_NONE;
    if (value == NULL || value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (value->type != CX_JSON_STRING || !cx_trace_time_parse(cx_json_text(value), out, &naive))
        return bad_entry("has an invalid time", err);
    return CX_SUCCESS;
}

void cx_trust_store_init(cx_trust_store *store, const cx_alloc *alloc)
{
    *store = (cx_trust_store){.alloc = alloc};
    cx_arena_init(&store->arena, alloc, 0);
    cx_map_init(&store->by_id, alloc, cx_io_seed(cx_io_system()));
}

void cx_trust_store_done(cx_trust_store *store)
{
    cx_vec_done(&store->keys, store->alloc);
    cx_map_done(&store->by_id);
    cx_arena_done(&store->arena);
}

static cx_status apply_revoke(cx_trust_store *store, const cx_json *change,
                              const cx_trust_key **out_changed, cx_err *err)
{
    const uint64_t *index = cx_map_find(&store->by_id, CX_JSON_GET_STR(change, "key_id"));
    if (index == NULL)
        return bad_entry("revokes an unknown key", err);
    cx_trust_key *key = &store->keys.items[*index];
    int64_t at, since;
    CX_TRY(time_member(change, CX_STR("at"), &at, err));
    CX_TRY(time_member(change, CX_STR("compromised_since"), &since, err));
    key->revoked_at = at;
    key->compromised_since = since;
    key->revoked_reason = CX_JSON_GET_STR(change, "reason");
    *out_changed = key;
    return CX_SUCCESS;
}

static cx_status apply_add(cx_trust_store *store, const cx_json *change,
                           const cx_trust_key **out_changed, cx_err *err)
{
    const cx_json *value = CX_JSON_GET(change, "key");
    cx_trust_key key;
    uint64_t *index;
    bool is_new = false;
    if (value == NULL)
        return bad_entry("adds no key", err);
    CX_TRY(cx_trust_key_parse(value, CX_STR("/key"), &store->arena, &key, err));
    CX_TRY(cx_map_put(&store->by_id, key.key_id, &index, &is_new, err));
    if (!is_new)
        return bad_entry("adds an existing key: an id is never bound to another key", err);
    cx_trust_key *slot = cx_vec_push(&store->keys, store->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *index = store->keys.count - 1;
    *slot = key;
    *out_changed = slot;
    return CX_SUCCESS;
}

static cx_status apply_entry(cx_trust_store *store, cx_bytes payload,
                             const cx_trust_key **out_changed, cx_err *err)
{
    cx_json change;
    cx_str text = cx_arena_copy_str(&store->arena, cx_bytes_str(payload));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse_text(text, &store->arena, &change, err));
    cx_str op = CX_JSON_GET_STR(&change, "op");
    if (cx_str_is(op, "revoke"))
        return apply_revoke(store, &change, out_changed, err);
    if (cx_str_is(op, "add"))
        return apply_add(store, &change, out_changed, err);
    return bad_entry("neither adds nor revokes a key", err);
}

cx_status cx_trust_store_apply(cx_trust_store *store, cx_bytes payload,
                               const cx_trust_key **out_changed, cx_err *err)
{
    cx_err failure = {0};
    *out_changed = NULL;
    cx_status status = apply_entry(store, payload, out_changed, &failure);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    return CX_SUCCESS;
}

static int compare_ids(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_trust_key *)a)->key_id, ((const cx_trust_key *)b)->key_id);
}

cx_status cx_trust_store_store(const cx_trust_store *store, cx_arena *arena, cx_trust *out,
                               cx_err *err)
{
    cx_trust_key *keys = CX_ARENA_ARRAY(arena, cx_trust_key, store->keys.count + 1);
    if (keys == NULL)
        return cx_fail_nomem(err);
    if (store->keys.count != 0) {
        memcpy(keys, store->keys.items, store->keys.count * sizeof *keys);
        qsort(keys, store->keys.count, sizeof *keys, compare_ids);
    }
    *out = (cx_trust){keys, store->keys.count};
    return CX_SUCCESS;
}

/* --- views ------------------------------------------------------------------------------------ */

cx_status cx_recorder_trust_entries(cx_home *home, uint64_t *out, cx_err *err)
{
    cx_actor_info info;
    cx_status status = cx_home_actor(home, CX_ACTOR_TRUST, &info, err);
    if (status.code == CX_E_NOT_FOUND) {
        *out = 0;
        return CX_SUCCESS;
    }
    if (!cx_failed(status))
        *out = info.entry_count;
    return status;
}

static cx_status read_entries(cx_recorder *recorder, cx_trust_view *view, cx_err *err)
{
    const cx_trust_key *changed;
    for (uint64_t seq = 0; seq < view->entries; seq++) {
        cx_entry_view entry;
        cx_arena_mark mark = cx_arena_mark_now(&view->arena);
        CX_TRY(cx_home_entry(recorder->home, CX_ACTOR_TRUST, seq, &view->arena, &entry, err));
        if (cx_str_eq(entry.entry.kind, CX_KIND_KEY))
            CX_TRY(cx_trust_store_apply(&view->store, entry.payload, &changed, err));
        cx_arena_reset(&view->arena, mark);
    }
    return cx_trust_store_store(&view->store, &view->arena, &view->trust, err);
}

static void view_free(cx_recorder *recorder, cx_trust_view *view)
{
    cx_trust_store_done(&view->store);
    cx_arena_done(&view->arena);
    cx_alloc_free(recorder->alloc, view, sizeof *view);
}

static cx_status view_make(cx_recorder *recorder, uint64_t entries, cx_trust_view **out,
                           cx_err *err)
{
    cx_trust_view *view = cx_alloc_zeroed(recorder->alloc, 1, sizeof *view);
    if (view == NULL)
        return cx_fail_nomem(err);
    cx_trust_store_init(&view->store, recorder->alloc);
    cx_arena_init(&view->arena, recorder->alloc, 0);
    view->entries = entries;
    cx_status status = read_entries(recorder, view, err);
    if (cx_failed(status)) {
        view_free(recorder, view);
        return status;
    }
    *out = view;
    return CX_SUCCESS;
}

static cx_trust_view *newest(cx_recorder *recorder, uint64_t entries)
{
    cx_lock_enter(&recorder->lock);
    cx_trust_view *view = recorder->view;
    if (view != NULL && view->entries == entries)
        view->users++;
    else
        view = NULL;
    cx_lock_leave(&recorder->lock);
    return view;
}

/* Replaces the current view, which is freed when its last user releases it. */
static void publish(cx_recorder *recorder, cx_trust_view *view)
{
    cx_trust_view *old = NULL;
    cx_lock_enter(&recorder->lock);
    view->users = 1; /* the caller */
    if (recorder->view == NULL || recorder->view->entries < view->entries) {
        old = recorder->view;
        recorder->view = view;
        view->users++;
    }
    if (old != NULL && --old->users != 0)
        old = NULL;
    cx_lock_leave(&recorder->lock);
    if (old != NULL)
        view_free(recorder, old);
}

cx_status cx_recorder_trust_acquire(cx_recorder *recorder, cx_trust_view **out, cx_err *err)
{
    uint64_t entries = 0;
    CX_TRY(cx_recorder_trust_entries(recorder->home, &entries, err));
    *out = newest(recorder, entries);
    if (*out != NULL)
        return CX_SUCCESS;
    CX_TRY(view_make(recorder, entries, out, err));
    publish(recorder, *out);
    return CX_SUCCESS;
}

void cx_recorder_trust_release(cx_recorder *recorder, cx_trust_view *view)
{
    if (view == NULL)
        return;
    cx_lock_enter(&recorder->lock);
    CX_ASSERT(view->users > 0);
    bool last = --view->users == 0;
    cx_lock_leave(&recorder->lock);
    if (last)
        view_free(recorder, view);
}

cx_status cx_recorder_trust(cx_recorder *recorder, cx_arena *arena, cx_trust *out, cx_err *err)
{
    cx_trust_view *view;
    cx_trust copy = {NULL, 0};
    CX_TRY(cx_recorder_trust_acquire(recorder, &view, err));
    cx_status status = cx_trust_copy(&view->trust, arena, &copy, err);
    cx_recorder_trust_release(recorder, view);
    if (!cx_failed(status))
        *out = copy;
    return status;
}

/* --- changing it ------------------------------------------------------------------------------ */

static cx_status append_change(cx_recorder *recorder, cx_txn *txn, const cx_json *change,
                               int64_t now, cx_err *err)
{
    cx_buf text;
    uint64_t seq;
    cx_buf_init(&text, recorder->alloc);
    cx_status status = cx_json_write(&text, change, CX_JSON_PY_COMPACT, err);
    const cx_entry_draft draft = {
        .kind = CX_KIND_KEY, .created_at_ns = now, .payload = cx_buf_bytes(&text)};
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, &seq, err);
    cx_buf_done(&text);
    return status;
}

/* Inside the transaction no other thread changes the store, so the decision stays valid. */
static cx_status begin_change(cx_recorder *recorder, cx_txn **out_txn, cx_trust_view **out_view,
                              cx_err *err)
{
    CX_TRY(cx_txn_begin(recorder->home, CX_ACTOR_TRUST, out_txn, err));
    cx_status status = cx_recorder_trust_acquire(recorder, out_view, err);
    if (cx_failed(status))
        cx_txn_abort(*out_txn);
    return status;
}

static cx_status end_change(cx_recorder *recorder, cx_txn *txn, cx_trust_view *view, bool is_change,
                            cx_status status, cx_err *err)
{
    cx_recorder_trust_release(recorder, view);
    if (cx_failed(status) || !is_change) {
        cx_txn_abort(txn);
        return status;
    }
    status = cx_txn_commit(txn, err);
    cx_recorder_notify(recorder);
    return status;
}

static bool is_same_key(const cx_trust_key *a, const cx_trust_key *b)
{
    return memcmp(a->key.bytes, b->key.bytes, sizeof a->key.bytes) == 0;
}

static cx_status add_change(cx_recorder *recorder, cx_txn *txn, const cx_trust_key *key,
                            cx_err *err)
{
    cx_arena *arena = cx_txn_arena(txn);
    cx_trust_key added = *key;
    added.added_at = cx_recorder_now(recorder);
    cx_json value, change;
    CX_TRY(cx_trust_key_json(&added, arena, &value, err));
    /* What cannot be read again is never written. */
    CX_TRY(cx_trust_key_parse(&value, CX_STR(""), arena, &added, err));
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("op"), cx_json_make_str(CX_STR("add")));
    cx_json_list_put(&list, CX_STR("key"), value);
    CX_TRY(cx_json_list_end_object(&list, &change, err));
    return append_change(recorder, txn, &change, added.added_at, err);
}

cx_status cx_recorder_key_add(cx_recorder *recorder, const cx_trust_key *key, bool *out_new,
                              cx_err *err)
{
    cx_txn *txn;
    cx_trust_view *view;
    cx_status status = CX_SUCCESS;
    CX_TRY(begin_change(recorder, &txn, &view, err));
    const cx_trust_key *there = cx_trust_find(&view->trust, key->key_id);
    bool is_new = there == NULL;
    if (is_new && view->trust.count >= CX_TRUST_KEYS_MAX)
        status = cx_fail_at(err, CX_E_LIMIT, "TooManyKeys", CX_NO_OFFSET,
                            "the trust store has reached its limit of %d keys", CX_TRUST_KEYS_MAX);
    else if (is_new)
        status = add_change(recorder, txn, key, err);
    else if (!is_same_key(there, key))
        status = cx_fail_at(err, CX_E_CONFLICT, "KeyConflict", CX_NO_OFFSET,
                            "the key id %.*s belongs to another key and cannot be reused; rotate "
                            "with a new id that replaces it",
                            (int)key->key_id.size, key->key_id.data);
    status = end_change(recorder, txn, view, is_new, status, err);
    if (!cx_failed(status))
        *out_new = is_new;
    return status;
}

static void add_time(cx_json_list *list, cx_str name, int64_t ns, cx_arena *arena)
{
    char text[CX_TRACE_TIME_SIZE];
    if (ns == CX_TIME_NONE) {
        cx_json_list_put(list, name, cx_json_make_null());
        return;
    }
    cx_trace_time_write(ns, text);
    cx_str copy = cx_arena_copy_str(arena, cx_str_z(text));
    list->failed |= copy.data == NULL;
    cx_json_list_put(list, name, cx_json_make_str(copy.data == NULL ? CX_STR("") : copy));
}

cx_status cx_recorder_key_revoke(cx_recorder *recorder, cx_str key_id, cx_str reason, cx_str by,
                                 int64_t compromised_since, cx_err *err)
{
    cx_txn *txn;
    cx_trust_view *view;
    cx_json change;
    CX_TRY(begin_change(recorder, &txn, &view, err));
    cx_arena *arena = cx_txn_arena(txn);
    int64_t now = cx_recorder_now(recorder);
    const cx_trust_key *there = cx_trust_find(&view->trust, key_id);
    cx_status status = CX_SUCCESS;
    if (there == NULL)
        status = cx_fail_at(err, CX_E_NOT_FOUND, "NoKey", CX_NO_OFFSET,
                            "the trust store has no key %.*s", (int)key_id.size, key_id.data);
    /* Revoking twice keeps the first time, and can only widen what is compromised. */
    bool is_change =
        there != NULL &&
        (there->revoked_at == CX_TIME_NONE ||
         (compromised_since != CX_TIME_NONE && (there->compromised_since == CX_TIME_NONE ||
                                                compromised_since < there->compromised_since)));
    if (is_change) {
        int64_t at = there->revoked_at == CX_TIME_NONE ? now : there->revoked_at;
        cx_json_list list = cx_json_list_begin(arena);
        cx_json_list_put(&list, CX_STR("op"), cx_json_make_str(CX_STR("revoke")));
        cx_json_list_put(&list, CX_STR("key_id"), cx_json_make_str(key_id));
        cx_json_list_put(&list, CX_STR("reason"), cx_json_make_str(reason));
        cx_json_list_put(&list, CX_STR("by"), cx_json_make_str(by));
        add_time(&list, CX_STR("at"), at, arena);
        add_time(&list, CX_STR("compromised_since"), compromised_since, arena);
        status = cx_json_list_end_object(&list, &change, err);
        if (!cx_failed(status))
            status = append_change(recorder, txn, &change, now, err);
    }
    return end_change(recorder, txn, view, is_change, status, err);
}

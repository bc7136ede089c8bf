/*
 * session_list.c - sessions in the order of their latest entry.
 *
 *   Q1  `at` is the position up to which the log was read: what is later is read before an answer.
 *   Q2  Items are in the order of latest_ns, newest first, then of the actor; each actor is there
 *       once.
 */
#include "server/feed/session_list.h"

#include <string.h>

#include "base/api.h"

#define LAG_MAX 20000 /* commits: more than these, and reading the records is cheaper */

typedef struct listed {
    int64_t latest_ns;
    bool ended;
    uint32_t actor_size, record_size;
    char *bytes; /* the actor, then the record */
} listed;

struct cx_session_list {
    cx_home *home;
    const cx_alloc *alloc;
    cx_lock lock;
    listed *items; /* room for CX_SESSION_LIST_MAX */
    size_t count;
    cx_tail *tail;  /* NULL: nothing was read yet, or reading failed */
    cx_position at; /* Q1 */
};

static cx_str actor_of(const listed *item)
{
    return cx_str_from(item->bytes, item->actor_size);
}

static void free_item(cx_session_list *list, listed *item)
{
    cx_alloc_free(list->alloc, item->bytes, (size_t)item->actor_size + item->record_size);
}

static void forget_all(cx_session_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_item(list, &list->items[i]);
    list->count = 0;
    cx_tail_end(list->tail);
    list->tail = NULL;
}

cx_status cx_session_list_open(cx_home *home, const cx_alloc *alloc, cx_session_list **out,
                               cx_err *err)
{
    cx_session_list *list = cx_alloc_zeroed(alloc, 1, sizeof *list);
    if (list == NULL)
        return cx_fail_nomem(err);
    list->items = cx_alloc_zeroed(alloc, CX_SESSION_LIST_MAX, sizeof *list->items);
    if (list->items == NULL) {
        cx_alloc_free(alloc, list, sizeof *list);
        return cx_fail_nomem(err);
    }
    list->home = home;
    list->alloc = alloc;
    cx_lock_init(&list->lock);
    *out = list;
    return CX_SUCCESS;
}

void cx_session_list_close(cx_session_list *list)
{
    if (list == NULL)
        return;
    forget_all(list);
    cx_lock_done(&list->lock);
    cx_alloc_free(list->alloc, list->items, CX_SESSION_LIST_MAX * sizeof *list->items);
    cx_alloc_free(list->alloc, list, sizeof *list);
}

/* --- keeping ---------------------------------------------------------------------------------- */

/* Sessions at work are at the front, so this is short for most. */
static size_t find_item(const cx_session_list *list, cx_str actor)
{
    size_t at = 0;
    while (at < list->count && !cx_str_eq(actor_of(&list->items[at]), actor))
        at++;
    return at;
}

static cx_status make_item(cx_session_list *list, cx_str actor, cx_bytes record,
                           const cx_live_session *session, listed *out, cx_err *err)
{
    char *bytes = cx_alloc_zeroed(list->alloc, actor.size + record.size, 1);
    if (bytes == NULL)
        return cx_fail_nomem(err);
    memcpy(bytes, actor.data, actor.size);
    memcpy(bytes + actor.size, record.data, record.size);
    *out = (listed){.latest_ns = session->latest_ns,
                    .ended = session->ended,
                    .actor_size = (uint32_t)actor.size,
                    .record_size = (uint32_t)record.size,
                    .bytes = bytes};
    return CX_SUCCESS;
}

static void remove_item(cx_session_list *list, size_t at)
{
    free_item(list, &list->items[at]);
    list->count--;
    memmove(&list->items[at], &list->items[at + 1], (list->count - at) * sizeof *list->items);
}

static bool is_before(const listed *a, const listed *b)
{
    return a->latest_ns > b->latest_ns ||
           (a->latest_ns == b->latest_ns && cx_str_cmp(actor_of(a), actor_of(b)) < 0);
}

/* Q2 */
static void insert_item(cx_session_list *list, const listed *item)
{
    size_t at = 0;
    if (list->count == CX_SESSION_LIST_MAX)
        remove_item(list, list->count - 1);
    while (at < list->count && is_before(&list->items[at], item))
        at++;
    memmove(&list->items[at + 1], &list->items[at], (list->count - at) * sizeof *list->items);
    list->items[at] = *item;
    list->count++;
}

/* A record that cannot be read is not listed: `session show` says why. */
static cx_status keep_record(cx_session_list *list, cx_str actor, cx_bytes record, cx_arena *arena,
                             cx_err *err)
{
    cx_live_session session;
    cx_err ignored;
    listed item;
    cx_status status = cx_live_session_decode(record, arena, &session, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        return CX_SUCCESS;
    CX_TRY(make_item(list, actor, record, &session, &item, err));
    size_t at = find_item(list, actor);
    if (at < list->count)
        remove_item(list, at);
    insert_item(list, &item);
    return CX_SUCCESS;
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status read_session(cx_session_list *list, cx_str actor, cx_arena *arena, cx_err *err)
{
    cx_bytes record;
    bool found;
    CX_TRY(cx_home_get(list->home, actor, cx_str_bytes(CX_LIVE_SESSION_KEY), arena, &record, &found,
                       err));
    return found ? keep_record(list, actor, record, arena, err) : CX_SUCCESS;
}

/* Records written after the position was taken are read twice, which changes nothing. */
static cx_status read_all(cx_session_list *list, cx_arena *arena, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    forget_all(list);
    list->at = (cx_position){cx_home_durable(list->home), 0};
    cx_actor_walk_begin_named(&walk, list->home, CX_STR(CX_LIVE_ACTOR_PREFIX));
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL) {
        cx_arena_mark mark = cx_arena_mark_now(arena);
        status = read_session(list, actor->name, arena, err);
        cx_arena_reset(arena, mark);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    CX_TRY(status);
    return cx_tail_begin(list->home, list->at, &list->tail, err);
}

static cx_status read_frame(cx_session_list *list, const cx_tail_item *item, cx_arena *arena,
                            cx_err *err)
{
    cx_bytes wanted = cx_str_bytes(CX_LIVE_SESSION_KEY);
    list->at = item->position_after;
    if (!cx_live_actor_is_session(item->actor))
        return CX_SUCCESS;
    for (size_t i = 0; i < item->change_count; i++) {
        const cx_change *change = &item->changes[i];
        if (change->removed || change->erased || change->key.size != wanted.size ||
            memcmp(change->key.data, wanted.data, wanted.size) != 0)
            continue;
        cx_arena_mark mark = cx_arena_mark_now(arena);
        CX_TRY(keep_record(list, item->actor, change->value, arena, err));
        cx_arena_reset(arena, mark);
    }
    return CX_SUCCESS;
}

static cx_status catch_up(cx_session_list *list, cx_arena *arena, cx_err *err)
{
    cx_tail_item item;
    bool end = false;
    if (list->tail == NULL || cx_home_durable(list->home) > list->at.commit + LAG_MAX)
        CX_TRY(read_all(list, arena, err));
    while (!end) {
        CX_TRY(cx_tail_next(list->tail, &item, &end, err));
        if (!end)
            CX_TRY(read_frame(list, &item, arena, err));
    }
    return CX_SUCCESS;
}

/* Q1.  After a failure the next use begins again. */
static cx_status begin_use(cx_session_list *list, cx_arena *arena, cx_err *err)
{
    cx_status status = catch_up(list, arena, err);
    if (cx_failed(status))
        forget_all(list);
    return status;
}

/* --- answers ---------------------------------------------------------------------------------- */

static cx_status copy_item(const listed *item, cx_arena *arena, cx_live_session *out, cx_err *err)
{
    cx_str bytes = cx_arena_copy_str(
        arena, cx_str_from(item->bytes, (size_t)item->actor_size + item->record_size));
    if (bytes.data == NULL)
        return cx_fail_nomem(err);
    cx_str record = cx_str_from(bytes.data + item->actor_size, item->record_size);
    CX_TRY(cx_live_session_decode(cx_str_bytes(record), arena, out, err));
    out->actor = cx_str_from(bytes.data, item->actor_size);
    return CX_SUCCESS;
}

/* Whether an item comes after the one that a cursor names: it may have moved since. */
static bool is_after(const listed *item, cx_str after, int64_t after_ns)
{
    if (after.data == NULL || item->latest_ns < after_ns)
        return true;
    return item->latest_ns == after_ns && cx_str_cmp(actor_of(item), after) > 0;
}

static cx_status fill_page(cx_session_list *list, cx_str after, int64_t after_ns, bool running,
                           size_t limit, cx_arena *arena, cx_session_page *out, cx_err *err)
{
    cx_live_session *items = CX_ARENA_ARRAY(arena, cx_live_session, limit + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    *out = (cx_session_page){.items = items, .total = list->count};
    for (size_t i = 0; i < list->count; i++) {
        const listed *item = &list->items[i];
        if ((running && item->ended) || !is_after(item, after, after_ns))
            continue;
        if (out->count == limit) {
            out->more = true;
            break;
        }
        CX_TRY(copy_item(item, arena, &items[out->count++], err));
    }
    return CX_SUCCESS;
}

cx_status cx_session_list_page(cx_session_list *list, cx_str after, int64_t after_ns, bool running,
                               size_t limit, cx_arena *arena, cx_session_page *out, cx_err *err)
{
    cx_lock_enter(&list->lock);
    cx_status status = begin_use(list, arena, err);
    if (!cx_failed(status))
        status = fill_page(list, after, after_ns, running, limit, arena, out, err);
    cx_lock_leave(&list->lock);
    return status;
}

static cx_status find_named(cx_session_list *list, cx_str name, const listed **out, cx_err *err)
{
    cx_live_session session;
    cx_arena arena;
    const listed *match = NULL;
    bool several = false;
    cx_status status = CX_SUCCESS;
    cx_arena_init(&arena, list->alloc, 0);
    for (size_t i = 0; i < list->count && !cx_failed(status); i++) {
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        status = copy_item(&list->items[i], &arena, &session, err);
        if (!cx_failed(status) && cx_str_eq(session.session, name)) {
            several = false;
            match = &list->items[i];
            break;
        }
        if (!cx_failed(status) && name.size >= 4 && cx_str_starts(session.session, name)) {
            several = match != NULL;
            match = match == NULL ? &list->items[i] : match;
        }
        cx_arena_reset(&arena, mark);
    }
    cx_arena_done(&arena);
    CX_TRY(status);
    if (several)
        return cx_fail_at(err, CX_E_CONFLICT, "Ambiguous", CX_NO_OFFSET,
                          "several sessions begin with this: give more of the id");
    if (match == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "no such session");
    *out = match;
    return CX_SUCCESS;
}

cx_status cx_session_list_find(cx_session_list *list, cx_str name, cx_arena *arena,
                               cx_live_session *out, cx_err *err)
{
    bool found = false;
    const listed *match = NULL;
    if (cx_live_actor_is_session(name))
        CX_TRY(cx_live_session_read(list->home, name, arena, out, &found, err));
    if (found)
        return CX_SUCCESS;
    cx_lock_enter(&list->lock);
    cx_status status = begin_use(list, arena, err);
    if (!cx_failed(status))
        status = find_named(list, name, &match, err);
    if (!cx_failed(status))
        status = copy_item(match, arena, out, err);
    cx_lock_leave(&list->lock);
    return status;
}

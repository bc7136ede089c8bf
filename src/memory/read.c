/*
 * read.c - reading memories by name: one version, the latest, a list of all.
 */
#include "memory/internal.h"
#include "memory/search/best.h"
#include "memory/search/candidates.h"

/* The clock is read only for a memory that can expire. */
static void note_expiry(cx_memory *memory, cx_memory_view *view)
{
    view->expired =
        view->version.expires && cx_memory_is_expired(&view->version, cx_memory_now(memory));
}

cx_status cx_memory_resolve(cx_memory *memory, const cx_uri *uri, cx_arena *arena,
                            cx_memory_view *out, cx_err *err)
{
    const cx_memory_source from = {.memory = memory, .arena = arena};
    cx_memory_head head;
    cx_memory_view view;
    CX_TRY(cx_memory_need_uri(&from, uri, &head, err));
    CX_TRY(cx_memory_make_view(&from, &head, uri->version, &view, err));
    note_expiry(memory, &view);
    *out = view;
    return CX_SUCCESS;
}

cx_status cx_memory_resolve_latest(cx_memory *memory, const cx_id *id, cx_arena *arena,
                                   cx_memory_view *out, cx_err *err)
{
    const cx_memory_source from = {.memory = memory, .arena = arena};
    cx_memory_head head;
    cx_memory_view view;
    CX_TRY(cx_memory_need_head(&from, id, 0, &head, err));
    CX_TRY(cx_memory_make_view(&from, &head, head.head.current_version, &view, err));
    note_expiry(memory, &view);
    *out = view;
    return CX_SUCCESS;
}

/* --- lists ----------------------------------------------------------------------------------- */

/* Of so many heads, as a share of what a search has in memory, those of one type are looked for one
 * after the other; if these do not suffice it is rare, and its index has fewer. */
#define HEADS_SHARE 16

typedef struct listing {
    const cx_alloc *alloc;
    cx_arena scratch;
    uint8_t type;
    bool with_tombstoned;
    const cx_id *after;
    size_t limit;
    size_t heads_left; /* until the type is rare; 0 = it is not asked */
    bool is_rare;
    cx_id last; /* that was looked at */
    CX_VEC(cx_id) ids;
    cx_memory_source from; /* of those in the index */
    cx_best best;
} listing;

static cx_status collect_head(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    listing *list = arg;
    cx_head head;
    if (key.size != 2 + sizeof head.id.bytes ||
        (list->after != NULL && memcmp(key.data + 2, list->after->bytes, 16) == 0))
        return CX_SUCCESS;
    cx_arena_mark mark = cx_arena_mark_now(&list->scratch);
    CX_TRY(cx_head_decode(value, &list->scratch, &head, err));
    cx_arena_reset(&list->scratch, mark);
    list->last = head.id;
    list->is_rare = list->heads_left != 0 && --list->heads_left == 0;
    *stop = list->is_rare;
    if ((list->type != 0 && head.type != list->type) || (head.tombstoned && !list->with_tombstoned))
        return CX_SUCCESS;
    cx_id *slot = cx_vec_push(&list->ids, list->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = head.id;
    *stop = *stop || list->ids.count == list->limit;
    return CX_SUCCESS;
}

static cx_status keep_of_type(void *arg, const cx_id *id, float similarity, cx_err *err)
{
    listing *list = arg;
    cx_memory_head head;
    bool found = false;
    (void)similarity;
    if (!cx_best_wants(&list->best, id, 0.0f))
        return CX_SUCCESS;
    CX_TRY(cx_memory_find_head(&list->from, id, &head, &found, err));
    if (!found || head.head.tombstoned)
        return CX_SUCCESS;
    return cx_best_add(&list->best, id, 0.0f, err);
}

/* Those of the type that come after the last head, by their index, which is in the order of
 * time. */
static cx_status collect_of_type(cx_memory *memory, listing *list, cx_err *err)
{
    const cx_memory_find find = {.types = {&list->type, 1}};
    const cx_candidates candidates = {
        .find = &find, .from = &list->from, .each = keep_of_type, .arg = list};
    const cx_ranked after = {list->last, 0.0f};
    list->from = (cx_memory_source){.memory = memory, .arena = &list->scratch};
    list->best = (cx_best){.alloc = memory->alloc, .keep = list->limit - list->ids.count};
    cx_best_begin(&list->best, &after);
    cx_status status = cx_memory_candidates(&candidates, err);
    if (!cx_failed(status))
        cx_best_end(&list->best);
    for (size_t i = 0; i < list->best.items.count && !cx_failed(status); i++) {
        cx_id *slot = cx_vec_push(&list->ids, list->alloc);
        if (slot == NULL)
            status = cx_fail_nomem(err);
        else
            *slot = list->best.items.items[i].id;
    }
    cx_best_done(&list->best);
    return status;
}

static cx_status make_views(cx_memory *memory, const listing *list, cx_arena *arena,
                            const cx_memory_view **out, size_t *out_count, cx_err *err)
{
    cx_memory_view *views = CX_ARENA_ARRAY(arena, cx_memory_view, list->ids.count + 1);
    if (views == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < list->ids.count; i++)
        CX_TRY(cx_memory_resolve_latest(memory, &list->ids.items[i], arena, &views[i], err));
    *out = views;
    *out_count = list->ids.count;
    return CX_SUCCESS;
}

cx_status cx_memory_list(cx_memory *memory, uint8_t type, bool with_tombstoned, const cx_id *after,
                         size_t limit, cx_arena *arena, const cx_memory_view **out,
                         size_t *out_count, cx_err *err)
{
    listing list = {.alloc = memory->alloc,
                    .type = type,
                    .with_tombstoned = with_tombstoned,
                    .after = after,
                    .limit = limit};
    if (limit == 0)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET, "a list needs a limit");
    if (type != 0 && !with_tombstoned) /* what was erased is in no index */
        list.heads_left = cx_memory_ranked_max(memory) / HEADS_SHARE;
    cx_arena_init(&list.scratch, memory->alloc, 0);
    cx_memory_key from = {0};
    if (after != NULL)
        from = cx_memory_key_of("m/", after);
    cx_status status = cx_memory_scan(memory, cx_str_bytes(CX_STR("m/")),
                                      cx_memory_key_bytes(&from), collect_head, &list, err);
    if (!cx_failed(status) && list.is_rare && list.ids.count < limit)
        status = collect_of_type(memory, &list, err);
    if (!cx_failed(status))
        status = make_views(memory, &list, arena, out, out_count, err);
    cx_vec_done(&list.ids, memory->alloc);
    cx_arena_done(&list.scratch);
    return status;
}

/* --- salience -------------------------------------------------------------------------------- */

cx_status cx_memory_salience_of(cx_memory *memory, const cx_id *id, cx_salience *out,
                                float *out_cold, cx_err *err)
{
    cx_arena scratch;
    cx_arena_init(&scratch, memory->alloc, 0);
    const cx_memory_source from = {.memory = memory, .arena = &scratch};
    cx_memory_head head;
    cx_salience salience;
    cx_weights_record weights;
    cx_status status = cx_memory_need_head(&from, id, 0, &head, err);
    if (!cx_failed(status))
        status = cx_memory_salience_at(&from, &head.head, &salience, err);
    if (!cx_failed(status))
        status = cx_memory_weights_at(&from, &weights, err);
    if (!cx_failed(status)) {
        *out_cold = head.head.tombstoned
                        ? 0.0f
                        : cx_salience_score(&salience, &weights.weights, cx_memory_now(memory));
        *out = salience;
    }
    cx_arena_done(&scratch);
    return status;
}

cx_status cx_memory_weights_now(cx_memory *memory, cx_weights_record *out, cx_err *err)
{
    cx_arena scratch;
    cx_arena_init(&scratch, memory->alloc, 0);
    const cx_memory_source from = {.memory = memory, .arena = &scratch};
    cx_status status = cx_memory_weights_at(&from, out, err);
    cx_arena_done(&scratch);
    return status;
}

/*
 * plan.c - one pass over the log: which records a filter selects, and which of them a hold keeps.
 *
 * Records that account for something are never selected: keys, alerts, home roots, holds and
 * erasures.  Whether a hold keeps a record is decided again when it is destroyed (holds.h H1).
 */
#include <stdlib.h>

#include "erasure/internal.h"

typedef struct known_memory {
    uint32_t actor;
    cx_id id;
    bool there; /* a version of it is not erased */
    bool named;
    uint64_t bytes;
    int64_t first_ns, last_ns;
} known_memory;

typedef struct pass {
    cx_erasure_plan *plan;
    cx_holds holds;
    cx_map actors, ids;
    CX_VEC(known_memory) memories;
    CX_VEC(cx_erasure_kind) kinds;
    CX_VEC(cx_erasure_kept) kept;
} pass;

static bool accounts_for_something(cx_str actor)
{
    static const char *const journals[] = {"trust", "alerts", CX_HOLDS_ACTOR, CX_ERASURES_ACTOR,
                                           CX_HOME_ROOT_ACTOR};
    for (size_t i = 0; i < CX_COUNT_OF(journals); i++)
        if (cx_str_is(actor, journals[i]))
            return true;
    return false;
}

static cx_status number_actor(pass *p, cx_str actor, uint32_t *out, cx_err *err)
{
    const uint64_t *known = cx_map_find(&p->actors, actor);
    uint64_t *slot;
    bool is_new;
    if (known != NULL) {
        *out = (uint32_t)*known;
        return CX_SUCCESS;
    }
    cx_str copy = cx_arena_copy_str(p->plan->arena, actor);
    cx_str *name = copy.data == NULL ? NULL : cx_vec_push(&p->plan->names, cx_alloc_default());
    if (name == NULL)
        return cx_fail_nomem(err);
    *name = copy;
    CX_TRY(cx_map_put(&p->actors, copy, &slot, &is_new, err));
    *slot = p->plan->names.count - 1;
    *out = (uint32_t)*slot;
    return CX_SUCCESS;
}

/* --- sums ------------------------------------------------------------------------------------- */

static cx_status count_kind(pass *p, const cx_erasure_item *item, cx_str *out_kind, cx_err *err)
{
    cx_erasure_kind *kind = NULL;
    for (size_t i = 0; i < p->kinds.count && kind == NULL; i++)
        if (cx_str_eq(p->kinds.items[i].kind, item->kind))
            kind = &p->kinds.items[i];
    if (kind == NULL) {
        kind = cx_vec_push(&p->kinds, cx_alloc_default());
        cx_str name = cx_arena_copy_str(p->plan->arena, item->kind);
        if (kind == NULL || name.data == NULL)
            return cx_fail_nomem(err);
        *kind = (cx_erasure_kind){name, 0, 0, INT64_MAX, INT64_MIN};
    }
    kind->count++;
    kind->bytes += item->bytes;
    kind->oldest_ns = item->first_ns < kind->oldest_ns ? item->first_ns : kind->oldest_ns;
    kind->newest_ns = item->last_ns > kind->newest_ns ? item->last_ns : kind->newest_ns;
    *out_kind = kind->kind;
    return CX_SUCCESS;
}

static cx_status count_kept(pass *p, const cx_hold *hold, cx_err *err)
{
    p->plan->sums.held++;
    for (size_t i = 0; i < p->kept.count; i++)
        if (p->kept.items[i].hold == hold->seq) {
            p->kept.items[i].count++;
            return CX_SUCCESS;
        }
    cx_erasure_kept *slot = cx_vec_push(&p->kept, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_erasure_kept){hold->seq, hold->reason, 1};
    return CX_SUCCESS;
}

static cx_status add_item(pass *p, cx_erasure_item *item, cx_err *err)
{
    cx_erasure_sums *sums = &p->plan->sums;
    if (p->plan->items.count >= CX_ERASURE_ITEMS_MAX) {
        sums->left++;
        return CX_SUCCESS;
    }
    CX_TRY(count_kind(p, item, &item->kind, err));
    cx_erasure_item *slot = cx_vec_push(&p->plan->items, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *item;
    sums->entries += item->is_memory ? 0 : 1;
    sums->memories += item->is_memory ? 1 : 0;
    sums->bytes += item->bytes;
    return CX_SUCCESS;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* The level is in the name of the record next to a trace: trace/f/ID, conflict/d/ID. */
static bool find_level(const cx_tail_item *item, cx_trace_level *out)
{
    static const char *const prefixes[] = {"trace/", "conflict/", "connectivity/"};
    for (size_t i = 0; i < item->change_count; i++) {
        cx_str key = cx_bytes_str(item->changes[i].key);
        for (size_t j = 0; j < CX_COUNT_OF(prefixes); j++) {
            size_t size = strlen(prefixes[j]);
            if (key.size < size + 2 || memcmp(key.data, prefixes[j], size) != 0)
                continue;
            char letter = key.data[size];
            *out = letter == 'g'   ? CX_LEVEL_GENERIC
                   : letter == 'd' ? CX_LEVEL_DETAILED
                                   : CX_LEVEL_FULL;
            return letter == 'g' || letter == 'd' || letter == 'f';
        }
    }
    return false;
}

static cx_status select_entry(pass *p, uint32_t actor, const cx_tail_item *item, cx_err *err)
{
    const cx_erasure_filter *filter = p->plan->filter;
    const cx_entry *entry = &item->entry;
    cx_erasure_candidate candidate = {.kind = entry->kind, .last_ns = entry->created_at_ns};
    candidate.has_level = find_level(item, &candidate.level);
    if (!cx_erasure_covers(filter, &candidate))
        return CX_SUCCESS;
    if (filter->subject.data != NULL && !cx_content_names(item->payload, filter->subject))
        return CX_SUCCESS;
    const cx_hold_target target = {.actor = item->actor,
                                   .first_ns = entry->created_at_ns,
                                   .last_ns = entry->created_at_ns,
                                   .contents = &item->payload,
                                   .content_count = 1,
                                   .kind = entry->kind,
                                   .subject = item->has_subject ? &item->subject : NULL};
    const cx_hold *hold = cx_holds_find(&p->holds, &target);
    if (hold != NULL)
        return count_kept(p, hold, err);
    cx_erasure_item found = {.actor = actor,
                             .seq = entry->seq,
                             .bytes = item->payload.size,
                             .first_ns = entry->created_at_ns,
                             .last_ns = entry->created_at_ns,
                             .kind = entry->kind};
    return add_item(p, &found, err);
}

/* --- memories --------------------------------------------------------------------------------- */

/* m/<id16>, mv/<id16>/v/<n>, tomb/<id16>: content of a memory. */
static bool is_of_memory(cx_bytes key, cx_id *out)
{
    static const char *const prefixes[] = {"m/", "mv/", "tomb/"};
    for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++) {
        size_t size = strlen(prefixes[i]);
        if (key.size < size + sizeof out->bytes || memcmp(key.data, prefixes[i], size) != 0)
            continue;
        memcpy(out->bytes, key.data + size, sizeof out->bytes);
        return true;
    }
    return false;
}

static cx_status find_memory(pass *p, uint32_t actor, const cx_id *id, known_memory **out,
                             cx_err *err)
{
    char key[4 + 16];
    uint64_t *slot;
    bool is_new;
    memcpy(key, &actor, 4);
    memcpy(key + 4, id->bytes, 16);
    const uint64_t *known = cx_map_find(&p->ids, cx_str_from(key, sizeof key));
    if (known != NULL) {
        *out = &p->memories.items[*known];
        return CX_SUCCESS;
    }
    cx_str copy = cx_arena_copy_str(p->plan->arena, cx_str_from(key, sizeof key));
    known_memory *memory = copy.data == NULL ? NULL : cx_vec_push(&p->memories, cx_alloc_default());
    if (memory == NULL)
        return cx_fail_nomem(err);
    *memory =
        (known_memory){.actor = actor, .id = *id, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    CX_TRY(cx_map_put(&p->ids, copy, &slot, &is_new, err));
    *slot = p->memories.count - 1;
    *out = memory;
    return CX_SUCCESS;
}

static cx_status note_change(pass *p, uint32_t actor, const cx_tail_item *item,
                             const cx_change *change, cx_err *err)
{
    const cx_erasure_filter *filter = p->plan->filter;
    known_memory *memory = NULL;
    cx_id id;
    int64_t at = item->entry.created_at_ns;
    if (!is_of_memory(change->key, &id))
        return CX_SUCCESS;
    CX_TRY(find_memory(p, actor, &id, &memory, err));
    if (cx_str_is(item->entry.kind, "redact_memory")) {
        memory->there = false;
        return CX_SUCCESS;
    }
    if (change->erased || change->removed)
        return CX_SUCCESS;
    memory->there = memory->there || change->key.data[1] == 'v';
    memory->bytes += change->value.size;
    memory->first_ns = at < memory->first_ns ? at : memory->first_ns;
    memory->last_ns = at > memory->last_ns ? at : memory->last_ns;
    memory->named = memory->named || (filter->subject.data != NULL &&
                                      cx_content_names(change->value, filter->subject));
    return CX_SUCCESS;
}

static cx_status find_hold(pass *p, const known_memory *memory, const cx_hold **out, cx_err *err)
{
    cx_memory *memories;
    cx_arena arena;
    *out = NULL;
    if (p->holds.count == 0)
        return CX_SUCCESS;
    CX_TRY(
        cx_memory_open(p->plan->reader, p->plan->names.items[memory->actor], NULL, &memories, err));
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_memory_hold_of(memories, &memory->id, &p->holds, &arena, out, err);
    cx_arena_done(&arena);
    cx_memory_close(memories);
    return status;
}

static cx_status select_memory(pass *p, const known_memory *memory, cx_err *err)
{
    const cx_erasure_filter *filter = p->plan->filter;
    const cx_erasure_candidate candidate = {.kind = CX_STR("memory"), .last_ns = memory->last_ns};
    const cx_hold *hold;
    if (!memory->there || (filter->subject.data != NULL && !memory->named) ||
        !cx_erasure_covers(filter, &candidate))
        return CX_SUCCESS;
    CX_TRY(find_hold(p, memory, &hold, err));
    if (hold != NULL)
        return count_kept(p, hold, err);
    cx_erasure_item found = {.actor = memory->actor,
                             .is_memory = true,
                             .id = memory->id,
                             .bytes = memory->bytes,
                             .first_ns = memory->first_ns,
                             .last_ns = memory->last_ns,
                             .kind = candidate.kind};
    return add_item(p, &found, err);
}

/* --- the pass --------------------------------------------------------------------------------- */

static cx_status read_item(pass *p, const cx_tail_item *item, cx_err *err)
{
    const cx_erasure_filter *filter = p->plan->filter;
    uint32_t actor = 0;
    if (!item->has_entry || accounts_for_something(item->actor) ||
        (filter->agent.data != NULL && !cx_str_eq(filter->agent, item->actor)))
        return CX_SUCCESS;
    CX_TRY(number_actor(p, item->actor, &actor, err));
    for (size_t i = 0; i < item->change_count; i++)
        CX_TRY(note_change(p, actor, item, &item->changes[i], err));
    return item->entry.committed && !item->erased ? select_entry(p, actor, item, err) : CX_SUCCESS;
}

static cx_status read_log(pass *p, cx_tail *tail, uint64_t before_request, cx_err *err)
{
    bool end = false;
    for (;;) {
        cx_tail_item item;
        CX_TRY(cx_tail_next(tail, &item, &end, err));
        if (end || (item.has_entry && cx_str_is(item.actor, CX_ERASURES_ACTOR) &&
                    item.entry.seq >= before_request))
            return CX_SUCCESS;
        CX_TRY(read_item(p, &item, err));
    }
}

static int compare_kinds(const void *a, const void *b)
{
    const cx_erasure_kind *x = a, *y = b;
    size_t size = x->kind.size < y->kind.size ? x->kind.size : y->kind.size;
    int order = memcmp(x->kind.data, y->kind.data, size);
    return order != 0 ? order : (x->kind.size > y->kind.size) - (x->kind.size < y->kind.size);
}

static int compare_kept(const void *a, const void *b)
{
    const cx_erasure_kept *x = a, *y = b;
    return (x->hold > y->hold) - (x->hold < y->hold);
}

static cx_status keep_sums(pass *p, cx_err *err)
{
    cx_erasure_sums *sums = &p->plan->sums;
    cx_erasure_kind *kinds = CX_ARENA_ARRAY(p->plan->arena, cx_erasure_kind, p->kinds.count + 1);
    cx_erasure_kept *kept = CX_ARENA_ARRAY(p->plan->arena, cx_erasure_kept, p->kept.count + 1);
    if (kinds == NULL || kept == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < p->kinds.count; i++)
        kinds[i] = p->kinds.items[i];
    for (size_t i = 0; i < p->kept.count; i++)
        kept[i] = p->kept.items[i];
    qsort(kinds, p->kinds.count, sizeof *kinds, compare_kinds);
    qsort(kept, p->kept.count, sizeof *kept, compare_kept);
    sums->kinds = kinds;
    sums->kind_count = p->kinds.count;
    sums->kept = kept;
    sums->kept_count = p->kept.count;
    return CX_SUCCESS;
}

cx_status cx_erasure_plan_begin(cx_erasure_plan *plan, cx_home *reader,
                                const cx_erasure_filter *filter, uint64_t before_request,
                                cx_arena *arena, cx_err *err)
{
    const cx_position start = {0, 0};
    pass p = {.plan = plan};
    cx_tail *tail = NULL;
    *plan = (cx_erasure_plan){.reader = reader, .filter = filter, .arena = arena};
    cx_map_init(&p.actors, cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_map_init(&p.ids, cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_status status = cx_holds_load(reader, false, arena, &p.holds, err);
    if (!cx_failed(status))
        status = cx_tail_begin(reader, start, &tail, err);
    if (!cx_failed(status))
        status = read_log(&p, tail, before_request, err);
    cx_tail_end(tail);
    for (size_t i = 0; i < p.memories.count && !cx_failed(status); i++)
        status = select_memory(&p, &p.memories.items[i], err);
    if (!cx_failed(status))
        status = keep_sums(&p, err);
    cx_map_done(&p.actors);
    cx_map_done(&p.ids);
    cx_vec_done(&p.memories, cx_alloc_default());
    cx_vec_done(&p.kinds, cx_alloc_default());
    cx_vec_done(&p.kept, cx_alloc_default());
    return status;
}

void cx_erasure_plan_end(cx_erasure_plan *plan)
{
    cx_vec_done(&plan->names, cx_alloc_default());
    cx_vec_done(&plan->items, cx_alloc_default());
}

cx_status cx_erasure_plan_make(cx_home *reader, const cx_erasure_filter *filter, cx_arena *arena,
                               cx_erasure_sums *out, cx_err *err)
{
    cx_erasure_plan plan;
    cx_status status = cx_erasure_plan_begin(&plan, reader, filter, UINT64_MAX, arena, err);
    if (!cx_failed(status))
        *out = plan.sums;
    cx_erasure_plan_end(&plan);
    return status;
}

/*
 * view_cache.c - opens, shares and evicts lattices (invariants: view_cache.h).
 */
#include "server/feed/view_cache.h"

#include "base/api.h"
#include "recorder/api.h"
#include "provenance/api.h"
#include "server/feed/external.h"
#include "server/route.h"
#include "server/feed/runs.h"

#define NAME_MAX_BYTES 300
#define PART "part/"
#define PART_DIGITS_MAX 18
#define EXTERNAL_BYTES_MAX ((size_t)256 << 20)
#define SECOND_NS UINT64_C(1000000000)

struct cx_cached_view {
    const cx_alloc *alloc;
    char name[NAME_MAX_BYTES + 1];
    unsigned references;
    bool is_removed; /* the cache has a newer version, or evicted it */
    uint64_t used;
    cx_lock lock; /* of what follows */
    bool is_open;
    uint64_t version, opened_ns, fresh_ns; /* see version_of */
    cx_buf lines;                          /* the lattice borrows from them */
    cx_lattice *lattice;
    const cx_lattice *shown; /* the lattice, or one with another owner */
    cx_lattice_report *report;
    cx_states *states;
    cx_lattice_view *views[2]; /* without and with folds */
    cx_arena arena;            /* of the snapshots */
    cx_lattice_view_snapshot *marks;
    size_t mark_count;
};

struct cx_view_cache {
    const cx_alloc *alloc;
    cx_lock lock;
    cx_cached_view *items[CX_VIEW_CACHE_ITEMS_MAX];
    size_t count;
    uint64_t uses;
};

cx_status cx_view_cache_open(const cx_alloc *alloc, cx_view_cache **out, cx_err *err)
{
    cx_view_cache *cache = cx_alloc_zeroed(alloc, 1, sizeof *cache);
    if (cache == NULL)
        return cx_fail_nomem(err);
    cache->alloc = alloc;
    cx_lock_init(&cache->lock);
    *out = cache;
    return CX_SUCCESS;
}

static void free_item(cx_cached_view *item)
{
    CX_ASSERT(item->references == 0); /* I1 */
    cx_lattice_view_close(item->views[0]);
    cx_lattice_view_close(item->views[1]);
    cx_states_close(item->states);
    cx_lattice_report_close(item->report);
    cx_lattice_close(item->lattice);
    cx_arena_done(&item->arena);
    cx_buf_done(&item->lines);
    cx_lock_done(&item->lock);
    cx_alloc_free(item->alloc, item, sizeof *item);
}

void cx_view_cache_close(cx_view_cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < cache->count; i++)
        free_item(cache->items[i]);
    cx_lock_done(&cache->lock);
    cx_alloc_free(cache->alloc, cache, sizeof *cache);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* "<run_id>", or "<run_id>/<task id or governor>". */
static cx_status open_run(cx_cached_view *item, cx_call *call, cx_str name,
                          const cx_lattice_options *options, cx_err *err)
{
    const char *slash = memchr(name.data, '/', name.size);
    size_t size = slash == NULL ? name.size : (size_t)(slash - name.data);
    cx_str branch =
        slash == NULL ? (cx_str){NULL, 0} : cx_str_from(slash + 1, name.size - size - 1);
    cx_runs *runs;
    cx_run_store store;
    cx_run_bundle *bundle = NULL;
    cx_bytes events;
    CX_TRY(cx_api_runs_of(call, &runs, err));
    CX_TRY(cx_runs_store(runs, &store, err));
    CX_TRY(cx_run_view_open(&store, cx_str_from(name.data, size), &bundle, err));
    cx_status status =
        cx_run_bundle_read(bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &events, err);
    if (!cx_failed(status))
        status = cx_run_lattice(cx_bytes_str(events), branch, options, &item->lines, &item->lattice,
                                err);
    cx_run_bundle_close(bundle);
    return status;
}

static cx_status open_run_part(cx_cached_view *item, cx_call *call, cx_str name, uint64_t from,
                               const cx_lattice_options *options, cx_err *err)
{
    cx_runs *runs;
    cx_run_store store;
    CX_TRY(cx_api_runs_of(call, &runs, err));
    CX_TRY(cx_runs_store(runs, &store, err));
    return cx_run_open_part(&store, name, from, options, &item->lines, &item->lattice,
                            &item->report, err);
}

static cx_status open_traces(cx_cached_view *item, cx_home *home, const cx_lattice_options *options,
                             cx_err *err)
{
    cx_str name = cx_str_z(item->name);
    CX_TRY(cx_recorder_lattice(home, cx_str_is(name, "all") ? (cx_str){NULL, 0} : name, options,
                               &item->lines, &item->lattice, err));
    return cx_recorder_snapshot_marks(home, item->lattice, &item->arena, &item->marks,
                                      &item->mark_count, err);
}

/* What is after "run/"; data NULL = it is no run. */
static cx_str run_of(cx_str name)
{
    return cx_str_starts(name, CX_STR("run/")) ? cx_str_from(name.data + 4, name.size - 4)
                                               : (cx_str){NULL, 0};
}

/* "part/<entry>/<branch>" */
static bool read_part(cx_str name, uint64_t *out_from, cx_str *out_branch)
{
    if (!cx_str_starts(name, CX_STR(PART)))
        return false;
    cx_str rest = cx_str_from(name.data + strlen(PART), name.size - strlen(PART));
    const char *slash = memchr(rest.data, '/', rest.size);
    if (slash == NULL)
        return false;
    const size_t size = (size_t)(slash - rest.data);
    *out_branch = cx_str_from(slash + 1, rest.size - size - 1);
    *out_from = 0;
    for (size_t i = 0; i < size; i++) {
        if (rest.data[i] < '0' || rest.data[i] > '9')
            return false;
        *out_from = 10 * *out_from + (uint64_t)(rest.data[i] - '0');
    }
    return size != 0 && size <= PART_DIGITS_MAX && (size == 1 || rest.data[0] != '0');
}

static cx_status open_part(cx_cached_view *item, cx_call *call, uint64_t from, cx_str branch,
                           const cx_lattice_options *options, cx_err *err)
{
    cx_home *home = cx_recorder_home(call->service->recorder);
    cx_str run = run_of(branch);
    if (run.data != NULL)
        return open_run_part(item, call, run, from, options, err);
    if (cx_str_starts(branch, CX_STR("session/")))
        return cx_external_part(home, branch, from, options, &item->lines, &item->lattice,
                                &item->report, err);
    return cx_recorder_steps_part(home, branch, from, options, &item->lines, &item->lattice,
                                  &item->report, err);
}

static cx_status open_lattice(cx_cached_view *item, cx_call *call, cx_err *err)
{
    const cx_service *service = call->service;
    cx_str name = cx_str_z(item->name);
    const cx_lattice_options options = {.alloc = item->alloc,
                                        .threads = 1,
                                        .keep_deltas = true,
                                        .max_nodes = CX_CACHED_VIEW_NODES_MAX};
    if (service->options.only_lattice != NULL) {
        item->shown = service->options.only_lattice;
        return CX_SUCCESS;
    }
    const cx_external_options external = {.branch = name, .max_bytes = EXTERNAL_BYTES_MAX};
    uint64_t from;
    cx_str branch;
    if (read_part(name, &from, &branch))
        CX_TRY(open_part(item, call, from, branch, &options, err));
    else if (run_of(name).data != NULL)
        CX_TRY(open_run(item, call, run_of(name), &options, err));
    else if (cx_external_is(name))
        CX_TRY(cx_external_lattice(cx_recorder_home(service->recorder), &external, &options,
                                   &item->lines, &item->lattice, err));
    else
        CX_TRY(open_traces(item, cx_recorder_home(service->recorder), &options, err));
    item->shown = item->lattice;
    return CX_SUCCESS;
}

/* Resets an item that could not be opened, so that the next waiting caller starts from an empty
 * one. */
static void reset_item(cx_cached_view *item)
{
    cx_lattice_report_close(item->report);
    cx_lattice_close(item->lattice);
    cx_arena_done(&item->arena);
    cx_arena_init(&item->arena, item->alloc, 0);
    cx_buf_clear(&item->lines);
    item->report = NULL;
    item->lattice = NULL;
    item->shown = NULL;
    item->marks = NULL;
    item->mark_count = 0;
}

/* Under the item's lock. */
static cx_status open_item(cx_cached_view *item, cx_call *call, uint64_t version, cx_err *err)
{
    const cx_io *io = call->service->io;
    uint64_t began_ns = io->monotonic_ns(io);
    if (item->is_open)
        return CX_SUCCESS;
    cx_status status = open_lattice(item, call, err);
    if (!cx_failed(status) && item->report == NULL)
        status = cx_lattice_verify(item->shown, NULL, &item->report, err);
    if (cx_failed(status)) {
        reset_item(item);
        return status;
    }
    item->opened_ns = io->monotonic_ns(io);
    item->fresh_ns = CX_VIEW_CACHE_FRESH_FACTOR * (item->opened_ns - began_ns);
    if (item->fresh_ns < SECOND_NS)
        item->fresh_ns = SECOND_NS;
    item->version = version;
    item->is_open = true;
    return CX_SUCCESS;
}

/* Whether it is a run, or a part of one. */
static bool is_run(cx_str name)
{
    uint64_t from;
    cx_str branch;
    return run_of(read_part(name, &from, &branch) ? branch : name).data != NULL;
}

/* --- contents of the cache -------------------------------------------------------------------- */

/* Something that is another number when what a name means may have changed. */
static uint64_t version_of(const cx_call *call, cx_str name)
{
    const cx_service *service = call->service;
    if (service->options.only_lattice != NULL)
        return 0;
    /* A run grows event by event, and most runs end soon: it is opened again each time. */
    if (is_run(name))
        return service->io->monotonic_ns(service->io);
    return cx_home_durable(cx_recorder_home(service->recorder));
}

static void remove_item(cx_view_cache *cache, size_t at)
{
    cx_cached_view *item = cache->items[at];
    cache->items[at] = cache->items[--cache->count];
    item->is_removed = true;
    if (item->references == 0)
        free_item(item);
}

static size_t least_recently_used(const cx_view_cache *cache)
{
    size_t least = 0;
    for (size_t i = 1; i < cache->count; i++)
        if (cache->items[i]->used < cache->items[least]->used)
            least = i;
    return least;
}

/* An item without references does not change, so its size is read without its lock. */
static void evict_items(cx_view_cache *cache)
{
    uint64_t nodes = 0;
    for (size_t i = 0; i < cache->count; i++)
        if (cache->items[i]->references == 0 && cache->items[i]->shown != NULL)
            nodes += cx_lattice_count(cache->items[i]->shown);
    while (cache->count != 0 &&
           (cache->count == CX_VIEW_CACHE_ITEMS_MAX || nodes > CX_VIEW_CACHE_NODES_MAX)) {
        size_t at = least_recently_used(cache);
        const cx_cached_view *item = cache->items[at];
        if (item->references == 0 && item->shown != NULL)
            nodes -= cx_lattice_count(item->shown);
        remove_item(cache, at);
    }
}

static cx_cached_view *add_item(cx_view_cache *cache, cx_str name)
{
    cx_cached_view *item = cx_alloc_zeroed(cache->alloc, 1, sizeof *item);
    if (item == NULL)
        return NULL;
    item->alloc = cache->alloc;
    CX_ASSERT(name.size <= NAME_MAX_BYTES);
    memcpy(item->name, name.data, name.size);
    cx_buf_init(&item->lines, cache->alloc);
    cx_arena_init(&item->arena, cache->alloc, 0);
    cx_lock_init(&item->lock);
    evict_items(cache);
    CX_ASSERT(cache->count < CX_VIEW_CACHE_ITEMS_MAX); /* I3 */
    cache->items[cache->count++] = item;
    return item;
}

/* Under the cache's lock.  An item that was never opened, or could not be opened, counts as new. */
static cx_cached_view *find_item(cx_view_cache *cache, const cx_call *call, cx_str name,
                                 uint64_t version)
{
    const cx_io *io = call->service->io;
    for (size_t i = 0; i < cache->count; i++) {
        cx_cached_view *item = cache->items[i];
        if (!cx_str_is(name, item->name))
            continue;
        bool is_old = item->references == 0 && item->is_open && item->version != version &&
                      io->monotonic_ns(io) - item->opened_ns >= item->fresh_ns;
        if (!is_old)
            return item;
        remove_item(cache, i);
        break;
    }
    return NULL;
}

cx_status cx_view_cache_acquire(cx_view_cache *cache, cx_call *call, cx_cached_view **out,
                                cx_err *err)
{
    return cx_view_cache_acquire_named(cache, call, call->captures[0], out, err);
}

cx_status cx_view_cache_acquire_named(cx_view_cache *cache, cx_call *call, cx_str name,
                                      cx_cached_view **out, cx_err *err)
{
    bool only = call->service->options.only_lattice != NULL;
    if (name.size > NAME_MAX_BYTES || (only && !cx_str_is(name, "file")))
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET, "no such history");
    /* A token that may only read traces is not shown what runs did. */
    if (!only && is_run(name) && (call->token.scopes & CX_SCOPE_RUN_READ) == 0)
        return cx_fail(err, CX_E_DENIED, "this needs a token with the scope run:read");
    uint64_t version = version_of(call, name);
    cx_lock_enter(&cache->lock);
    cx_cached_view *item = find_item(cache, call, name, version);
    if (item == NULL)
        item = add_item(cache, name);
    if (item != NULL) {
        item->references++;
        item->used = ++cache->uses;
    }
    cx_lock_leave(&cache->lock);
    if (item == NULL)
        return cx_fail_nomem(err);
    cx_lock_enter(&item->lock);
    cx_status status = open_item(item, call, version, err);
    cx_lock_leave(&item->lock);
    if (cx_failed(status))
        cx_view_cache_release(cache, item);
    else
        *out = item;
    return status;
}

void cx_view_cache_release(cx_view_cache *cache, cx_cached_view *item)
{
    if (item == NULL)
        return;
    cx_lock_enter(&cache->lock);
    CX_ASSERT(item->references > 0); /* I1 */
    item->references--;
    /* An item that could not be opened is not cached: the next call tries again. */
    if (item->references == 0 && !item->is_open && !item->is_removed)
        for (size_t i = 0; i < cache->count; i++)
            if (cache->items[i] == item) {
                cache->items[i] = cache->items[--cache->count];
                item->is_removed = true;
            }
    bool is_last = item->references == 0 && item->is_removed;
    cx_lock_leave(&cache->lock);
    if (is_last)
        free_item(item);
}

bool cx_view_cache_is_part(const cx_cached_view *item)
{
    return cx_str_starts(cx_str_z(item->name), CX_STR(PART));
}

/* --- views and states of an item -------------------------------------------------------------- */

const cx_lattice *cx_view_cache_lattice(const cx_cached_view *item)
{
    return item->shown;
}

static cx_status make_view(cx_cached_view *item, bool fold, cx_err *err)
{
    cx_lattice_view *view;
    CX_TRY(cx_lattice_view_open(item->shown, item->report, fold, &view, err));
    cx_status status = cx_lattice_view_snapshots(view, item->marks, item->mark_count, err);
    if (cx_failed(status))
        cx_lattice_view_close(view);
    else
        item->views[fold] = view;
    return status;
}

cx_status cx_view_cache_view(cx_cached_view *item, bool fold, const cx_lattice_view **out,
                             cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_lock_enter(&item->lock);
    CX_ASSERT(item->is_open);
    if (item->views[fold] == NULL)
        status = make_view(item, fold, err);
    *out = item->views[fold];
    cx_lock_leave(&item->lock);
    return status;
}

cx_status cx_view_cache_states(cx_cached_view *item, const cx_states **out, cx_err *err)
{
    static const cx_state_options options = CX_STATE_OPTIONS_INIT;
    cx_status status = CX_SUCCESS;
    cx_lock_enter(&item->lock);
    CX_ASSERT(item->is_open);
    if (item->states == NULL)
        status = cx_states_open(item->shown, &options, &item->states, err);
    *out = item->states;
    cx_lock_leave(&item->lock);
    return status;
}

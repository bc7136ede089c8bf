/*
 * shelf.c - keeping opened lattices.
 *
 *   H1  A book is freed when nobody has it and it is no longer on the shelf, or when it has to make
 *       room; whoever has it keeps the version that was lent.
 *   H2  What is expensive (opening, states, pictures) happens under the lock of the book, never
 *       under that of the shelf: a slow book keeps nobody from another one.
 */
#include "server/feed/view_cache.h"

#include "base/api.h"
#include "recorder/api.h"
#include "provenance/api.h"
#include "server/feed/external.h"
#include "server/route.h"
#include "server/feed/runs.h"

#define NAME_MAX_BYTES 300
#define FOREIGN_BYTES_MAX ((size_t)256 << 20)
#define SECOND_NS UINT64_C(1000000000)

struct cx_cached_view {
    const cx_alloc *alloc;
    char name[NAME_MAX_BYTES + 1];
    unsigned lent;
    bool is_off; /* the shelf has a newer one, or no place */
    uint64_t used;
    cx_lock lock; /* of what follows */
    bool is_open;
    uint64_t version, opened_ns, rests_ns; /* see version_of */
    cx_buf lines;                          /* the lattice borrows from them */
    cx_lattice *lattice;
    const cx_lattice *shown; /* the lattice, or one that somebody else owns */
    cx_lattice_report *report;
    cx_states *states;
    cx_lattice_view *stages[2]; /* without and with folds */
    cx_arena arena;             /* of the snapshots */
    cx_lattice_view_snapshot *held;
    size_t held_count;
};

struct cx_view_cache {
    const cx_alloc *alloc;
    cx_lock lock;
    cx_cached_view *books[CX_VIEW_CACHE_ITEMS_MAX];
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

static void free_book(cx_cached_view *view_item)
{
    cx_lattice_view_close(view_item->stages[0]);
    cx_lattice_view_close(view_item->stages[1]);
    cx_states_close(view_item->states);
    cx_lattice_report_close(view_item->report);
    cx_lattice_close(view_item->lattice);
    cx_arena_done(&view_item->arena);
    cx_buf_done(&view_item->lines);
    cx_lock_done(&view_item->lock);
    cx_alloc_free(view_item->alloc, view_item, sizeof *view_item);
}

void cx_view_cache_close(cx_view_cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < cache->count; i++)
        free_book(cache->books[i]);
    cx_lock_done(&cache->lock);
    cx_alloc_free(cache->alloc, cache, sizeof *cache);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* "<run_id>", or "<run_id>/<task id or governor>". */
static cx_status open_run(cx_cached_view *view_item, cx_call *call, cx_str name,
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
        status = cx_run_lattice(cx_bytes_str(events), branch, options, &view_item->lines,
                                &view_item->lattice, err);
    cx_run_bundle_close(bundle);
    return status;
}

static cx_status open_traces(cx_cached_view *view_item, cx_home *home,
                             const cx_lattice_options *options, cx_err *err)
{
    cx_str name = cx_str_z(view_item->name);
    CX_TRY(cx_recorder_lattice(home, cx_str_is(name, "all") ? (cx_str){NULL, 0} : name, options,
                               &view_item->lines, &view_item->lattice, err));
    return cx_recorder_held(home, view_item->lattice, &view_item->arena, &view_item->held,
                            &view_item->held_count, err);
}

static cx_status open_lattice(cx_cached_view *view_item, cx_call *call, cx_err *err)
{
    const cx_service *service = call->service;
    cx_str name = cx_str_z(view_item->name);
    const cx_lattice_options options = {.alloc = view_item->alloc,
                                        .threads = 1,
                                        .keep_deltas = true,
                                        .max_nodes = CX_CACHED_VIEW_NODES_MAX};
    if (service->options.only_lattice != NULL) {
        view_item->shown = service->options.only_lattice;
        return CX_SUCCESS;
    }
    const cx_external_options external = {.branch = name, .max_bytes = FOREIGN_BYTES_MAX};
    if (cx_str_starts(name, CX_STR("run/")))
        CX_TRY(open_run(view_item, call, cx_str_from(name.data + 4, name.size - 4), &options, err));
    else if (cx_external_is(name))
        CX_TRY(cx_external_lattice(cx_recorder_home(service->recorder), &external, &options,
                                   &view_item->lines, &view_item->lattice, err));
    else
        CX_TRY(open_traces(view_item, cx_recorder_home(service->recorder), &options, err));
    view_item->shown = view_item->lattice;
    return CX_SUCCESS;
}

/* Of a book that could not be opened, so that whoever waits for it begins with an empty one. */
static void empty_book(cx_cached_view *view_item)
{
    cx_lattice_report_close(view_item->report);
    cx_lattice_close(view_item->lattice);
    cx_arena_done(&view_item->arena);
    cx_arena_init(&view_item->arena, view_item->alloc, 0);
    cx_buf_clear(&view_item->lines);
    view_item->report = NULL;
    view_item->lattice = NULL;
    view_item->shown = NULL;
    view_item->held = NULL;
    view_item->held_count = 0;
}

/* Under the book's lock. */
static cx_status open_book(cx_cached_view *view_item, cx_call *call, uint64_t version, cx_err *err)
{
    const cx_io *io = call->service->io;
    uint64_t began_ns = io->monotonic_ns(io);
    if (view_item->is_open)
        return CX_SUCCESS;
    cx_status status = open_lattice(view_item, call, err);
    if (!cx_failed(status))
        status = cx_lattice_verify(view_item->shown, NULL, &view_item->report, err);
    if (cx_failed(status)) {
        empty_book(view_item);
        return status;
    }
    view_item->opened_ns = io->monotonic_ns(io);
    view_item->rests_ns = CX_VIEW_CACHE_REST * (view_item->opened_ns - began_ns);
    if (view_item->rests_ns < SECOND_NS)
        view_item->rests_ns = SECOND_NS;
    view_item->version = version;
    view_item->is_open = true;
    return CX_SUCCESS;
}

/* --- what is on the shelf --------------------------------------------------------------------- */

/* Something that is another number when what a name means may have changed. */
static uint64_t version_of(const cx_call *call, cx_str name)
{
    cx_feed_status feed = {0};
    const cx_service *service = call->service;
    if (service->options.only_lattice != NULL)
        return 0;
    /* A run grows event by event, and most of them soon end: it is looked at again each time. */
    if (cx_str_starts(name, CX_STR("run/")))
        return service->io->monotonic_ns(service->io);
    cx_recorder_feed_get_status(service->recorder, &feed);
    return feed.log_commits;
}

static void take_off(cx_view_cache *cache, size_t at)
{
    cx_cached_view *view_item = cache->books[at];
    cache->books[at] = cache->books[--cache->count];
    view_item->is_off = true;
    if (view_item->lent == 0)
        free_book(view_item);
}

static size_t least_used(const cx_view_cache *cache)
{
    size_t least = 0;
    for (size_t i = 1; i < cache->count; i++)
        if (cache->books[i]->used < cache->books[least]->used)
            least = i;
    return least;
}

/* A book that nobody reads does not change, so its size may be looked at without its lock. */
static void make_room(cx_view_cache *cache)
{
    uint64_t nodes = 0;
    for (size_t i = 0; i < cache->count; i++)
        if (cache->books[i]->lent == 0 && cache->books[i]->shown != NULL)
            nodes += cx_lattice_count(cache->books[i]->shown);
    while (cache->count != 0 &&
           (cache->count == CX_VIEW_CACHE_ITEMS_MAX || nodes > CX_VIEW_CACHE_NODES_MAX)) {
        size_t at = least_used(cache);
        const cx_cached_view *view_item = cache->books[at];
        if (view_item->lent == 0 && view_item->shown != NULL)
            nodes -= cx_lattice_count(view_item->shown);
        take_off(cache, at);
    }
}

static cx_cached_view *new_book(cx_view_cache *cache, cx_str name)
{
    cx_cached_view *view_item = cx_alloc_zeroed(cache->alloc, 1, sizeof *view_item);
    if (view_item == NULL)
        return NULL;
    view_item->alloc = cache->alloc;
    memcpy(view_item->name, name.data, name.size);
    cx_buf_init(&view_item->lines, cache->alloc);
    cx_arena_init(&view_item->arena, cache->alloc, 0);
    cx_lock_init(&view_item->lock);
    make_room(cache);
    cache->books[cache->count++] = view_item;
    return view_item;
}

/* Under the shelf's lock.  A book that was never opened, or could not be, is as good as new. */
static cx_cached_view *find_book(cx_view_cache *cache, const cx_call *call, cx_str name,
                                 uint64_t version)
{
    const cx_io *io = call->service->io;
    for (size_t i = 0; i < cache->count; i++) {
        cx_cached_view *view_item = cache->books[i];
        if (!cx_str_is(name, view_item->name))
            continue;
        bool is_old = view_item->lent == 0 && view_item->is_open && view_item->version != version &&
                      io->monotonic_ns(io) - view_item->opened_ns >= view_item->rests_ns;
        if (!is_old)
            return view_item;
        take_off(cache, i);
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
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
                          "there is no such history here");
    /* Whoever may read traces only is not shown what runs did. */
    if (!only && cx_str_starts(name, CX_STR("run/")) &&
        (call->token.scopes & CX_SCOPE_RUN_READ) == 0)
        return cx_fail(err, CX_E_DENIED, "this needs a token of scope run:read");
    uint64_t version = version_of(call, name);
    cx_lock_enter(&cache->lock);
    cx_cached_view *view_item = find_book(cache, call, name, version);
    if (view_item == NULL)
        view_item = new_book(cache, name);
    if (view_item != NULL) {
        view_item->lent++;
        view_item->used = ++cache->uses;
    }
    cx_lock_leave(&cache->lock);
    if (view_item == NULL)
        return cx_fail_nomem(err);
    cx_lock_enter(&view_item->lock);
    cx_status status = open_book(view_item, call, version, err);
    cx_lock_leave(&view_item->lock);
    if (cx_failed(status))
        cx_view_cache_release(cache, view_item);
    else
        *out = view_item;
    return status;
}

void cx_view_cache_release(cx_view_cache *cache, cx_cached_view *view_item)
{
    if (view_item == NULL)
        return;
    cx_lock_enter(&cache->lock);
    view_item->lent--;
    /* One that could not be opened is not kept: the next call finds out again. */
    if (view_item->lent == 0 && !view_item->is_open && !view_item->is_off)
        for (size_t i = 0; i < cache->count; i++)
            if (cache->books[i] == view_item) {
                cache->books[i] = cache->books[--cache->count];
                view_item->is_off = true;
            }
    bool is_last = view_item->lent == 0 && view_item->is_off;
    cx_lock_leave(&cache->lock);
    if (is_last)
        free_book(view_item);
}

/* --- what is made of a book ------------------------------------------------------------------- */

const cx_lattice *cx_view_cache_lattice(const cx_cached_view *view_item)
{
    return view_item->shown;
}

static cx_status make_stage(cx_cached_view *view_item, bool fold, cx_err *err)
{
    cx_lattice_view *view;
    CX_TRY(cx_lattice_view_open(view_item->shown, view_item->report, fold, &view, err));
    cx_status status = cx_lattice_view_hold(view, view_item->held, view_item->held_count, err);
    if (cx_failed(status))
        cx_lattice_view_close(view);
    else
        view_item->stages[fold] = view;
    return status;
}

cx_status cx_view_cache_stage(cx_cached_view *view_item, bool fold, const cx_lattice_view **out,
                              cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_lock_enter(&view_item->lock);
    if (view_item->stages[fold] == NULL)
        status = make_stage(view_item, fold, err);
    *out = view_item->stages[fold];
    cx_lock_leave(&view_item->lock);
    return status;
}

cx_status cx_view_cache_states(cx_cached_view *view_item, const cx_states **out, cx_err *err)
{
    static const cx_state_options options = CX_STATE_OPTIONS_INIT;
    cx_status status = CX_SUCCESS;
    cx_lock_enter(&view_item->lock);
    if (view_item->states == NULL)
        status = cx_states_open(view_item->shown, &options, &view_item->states, err);
    *out = view_item->states;
    cx_lock_leave(&view_item->lock);
    return status;
}

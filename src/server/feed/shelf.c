/*
 * shelf.c - keeping opened lattices.
 *
 *   H1  A book is freed when nobody has it and it is no longer on the shelf, or when it has to make
 *       room; whoever has it keeps the version that was lent.
 *   H2  What is expensive (opening, states, pictures) happens under the lock of the book, never
 *       under that of the shelf: a slow book keeps nobody from another one.
 */
#include "server/feed/shelf.h"

#include "base/api.h"
#include "recorder/api.h"
#include "provenance/api.h"
#include "server/feed/foreign.h"
#include "server/route.h"
#include "server/feed/runs.h"

#define NAME_MAX_BYTES 300
#define FOREIGN_BYTES_MAX ((size_t)256 << 20)
#define SECOND_NS UINT64_C(1000000000)

struct cx_shelf_book {
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
    cx_stage *stages[2]; /* without and with folds */
    cx_arena arena;      /* of the snapshots */
    cx_stage_snapshot *held;
    size_t held_count;
};

struct cx_shelf {
    const cx_alloc *alloc;
    cx_lock lock;
    cx_shelf_book *books[CX_SHELF_BOOKS_MAX];
    size_t count;
    uint64_t uses;
};

cx_status cx_shelf_open(const cx_alloc *alloc, cx_shelf **out, cx_err *err)
{
    cx_shelf *shelf = cx_alloc_zeroed(alloc, 1, sizeof *shelf);
    if (shelf == NULL)
        return cx_fail_nomem(err);
    shelf->alloc = alloc;
    cx_lock_init(&shelf->lock);
    *out = shelf;
    return CX_SUCCESS;
}

static void free_book(cx_shelf_book *book)
{
    cx_stage_close(book->stages[0]);
    cx_stage_close(book->stages[1]);
    cx_states_close(book->states);
    cx_lattice_report_close(book->report);
    cx_lattice_close(book->lattice);
    cx_arena_done(&book->arena);
    cx_buf_done(&book->lines);
    cx_lock_done(&book->lock);
    cx_alloc_free(book->alloc, book, sizeof *book);
}

void cx_shelf_close(cx_shelf *shelf)
{
    if (shelf == NULL)
        return;
    for (size_t i = 0; i < shelf->count; i++)
        free_book(shelf->books[i]);
    cx_lock_done(&shelf->lock);
    cx_alloc_free(shelf->alloc, shelf, sizeof *shelf);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* "<run_id>", or "<run_id>/<task id or governor>". */
static cx_status open_run(cx_shelf_book *book, cx_call *call, cx_str name,
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
        status = cx_run_lattice(cx_bytes_str(events), branch, options, &book->lines, &book->lattice,
                                err);
    cx_run_bundle_close(bundle);
    return status;
}

static cx_status open_traces(cx_shelf_book *book, cx_home *home, const cx_lattice_options *options,
                             cx_err *err)
{
    cx_str name = cx_str_z(book->name);
    CX_TRY(cx_recorder_lattice(home, cx_str_is(name, "all") ? (cx_str){NULL, 0} : name, options,
                               &book->lines, &book->lattice, err));
    return cx_recorder_held(home, book->lattice, &book->arena, &book->held, &book->held_count, err);
}

static cx_status open_lattice(cx_shelf_book *book, cx_call *call, cx_err *err)
{
    const cx_service *service = call->service;
    cx_str name = cx_str_z(book->name);
    const cx_lattice_options options = {.alloc = book->alloc,
                                        .threads = 1,
                                        .keep_deltas = true,
                                        .max_nodes = CX_SHELF_BOOK_NODES_MAX};
    if (service->options.only_lattice != NULL) {
        book->shown = service->options.only_lattice;
        return CX_SUCCESS;
    }
    const cx_foreign_options foreign = {.branch = name, .max_bytes = FOREIGN_BYTES_MAX};
    if (cx_str_starts(name, CX_STR("run/")))
        CX_TRY(open_run(book, call, cx_str_from(name.data + 4, name.size - 4), &options, err));
    else if (cx_foreign_is(name))
        CX_TRY(cx_foreign_lattice(cx_recorder_home(service->recorder), &foreign, &options,
                                  &book->lines, &book->lattice, err));
    else
        CX_TRY(open_traces(book, cx_recorder_home(service->recorder), &options, err));
    book->shown = book->lattice;
    return CX_SUCCESS;
}

/* Of a book that could not be opened, so that whoever waits for it begins with an empty one. */
static void empty_book(cx_shelf_book *book)
{
    cx_lattice_report_close(book->report);
    cx_lattice_close(book->lattice);
    cx_arena_done(&book->arena);
    cx_arena_init(&book->arena, book->alloc, 0);
    cx_buf_clear(&book->lines);
    book->report = NULL;
    book->lattice = NULL;
    book->shown = NULL;
    book->held = NULL;
    book->held_count = 0;
}

/* Under the book's lock. */
static cx_status open_book(cx_shelf_book *book, cx_call *call, uint64_t version, cx_err *err)
{
    const cx_io *io = call->service->io;
    uint64_t began_ns = io->monotonic_ns(io);
    if (book->is_open)
        return CX_SUCCESS;
    cx_status status = open_lattice(book, call, err);
    if (!cx_failed(status))
        status = cx_lattice_verify(book->shown, NULL, &book->report, err);
    if (cx_failed(status)) {
        empty_book(book);
        return status;
    }
    book->opened_ns = io->monotonic_ns(io);
    book->rests_ns = CX_SHELF_REST * (book->opened_ns - began_ns);
    if (book->rests_ns < SECOND_NS)
        book->rests_ns = SECOND_NS;
    book->version = version;
    book->is_open = true;
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

static void take_off(cx_shelf *shelf, size_t at)
{
    cx_shelf_book *book = shelf->books[at];
    shelf->books[at] = shelf->books[--shelf->count];
    book->is_off = true;
    if (book->lent == 0)
        free_book(book);
}

static size_t least_used(const cx_shelf *shelf)
{
    size_t least = 0;
    for (size_t i = 1; i < shelf->count; i++)
        if (shelf->books[i]->used < shelf->books[least]->used)
            least = i;
    return least;
}

/* A book that nobody reads does not change, so its size may be looked at without its lock. */
static void make_room(cx_shelf *shelf)
{
    uint64_t nodes = 0;
    for (size_t i = 0; i < shelf->count; i++)
        if (shelf->books[i]->lent == 0 && shelf->books[i]->shown != NULL)
            nodes += cx_lattice_count(shelf->books[i]->shown);
    while (shelf->count != 0 &&
           (shelf->count == CX_SHELF_BOOKS_MAX || nodes > CX_SHELF_NODES_MAX)) {
        size_t at = least_used(shelf);
        const cx_shelf_book *book = shelf->books[at];
        if (book->lent == 0 && book->shown != NULL)
            nodes -= cx_lattice_count(book->shown);
        take_off(shelf, at);
    }
}

static cx_shelf_book *new_book(cx_shelf *shelf, cx_str name)
{
    cx_shelf_book *book = cx_alloc_zeroed(shelf->alloc, 1, sizeof *book);
    if (book == NULL)
        return NULL;
    book->alloc = shelf->alloc;
    memcpy(book->name, name.data, name.size);
    cx_buf_init(&book->lines, shelf->alloc);
    cx_arena_init(&book->arena, shelf->alloc, 0);
    cx_lock_init(&book->lock);
    make_room(shelf);
    shelf->books[shelf->count++] = book;
    return book;
}

/* Under the shelf's lock.  A book that was never opened, or could not be, is as good as new. */
static cx_shelf_book *find_book(cx_shelf *shelf, const cx_call *call, cx_str name, uint64_t version)
{
    const cx_io *io = call->service->io;
    for (size_t i = 0; i < shelf->count; i++) {
        cx_shelf_book *book = shelf->books[i];
        if (!cx_str_is(name, book->name))
            continue;
        bool is_old = book->lent == 0 && book->is_open && book->version != version &&
                      io->monotonic_ns(io) - book->opened_ns >= book->rests_ns;
        if (!is_old)
            return book;
        take_off(shelf, i);
        break;
    }
    return NULL;
}

cx_status cx_shelf_lend(cx_shelf *shelf, cx_call *call, cx_shelf_book **out, cx_err *err)
{
    return cx_shelf_lend_named(shelf, call, call->captures[0], out, err);
}

cx_status cx_shelf_lend_named(cx_shelf *shelf, cx_call *call, cx_str name, cx_shelf_book **out,
                              cx_err *err)
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
    cx_lock_enter(&shelf->lock);
    cx_shelf_book *book = find_book(shelf, call, name, version);
    if (book == NULL)
        book = new_book(shelf, name);
    if (book != NULL) {
        book->lent++;
        book->used = ++shelf->uses;
    }
    cx_lock_leave(&shelf->lock);
    if (book == NULL)
        return cx_fail_nomem(err);
    cx_lock_enter(&book->lock);
    cx_status status = open_book(book, call, version, err);
    cx_lock_leave(&book->lock);
    if (cx_failed(status))
        cx_shelf_give_back(shelf, book);
    else
        *out = book;
    return status;
}

void cx_shelf_give_back(cx_shelf *shelf, cx_shelf_book *book)
{
    if (book == NULL)
        return;
    cx_lock_enter(&shelf->lock);
    book->lent--;
    /* One that could not be opened is not kept: the next call finds out again. */
    if (book->lent == 0 && !book->is_open && !book->is_off)
        for (size_t i = 0; i < shelf->count; i++)
            if (shelf->books[i] == book) {
                shelf->books[i] = shelf->books[--shelf->count];
                book->is_off = true;
            }
    bool is_last = book->lent == 0 && book->is_off;
    cx_lock_leave(&shelf->lock);
    if (is_last)
        free_book(book);
}

/* --- what is made of a book ------------------------------------------------------------------- */

const cx_lattice *cx_shelf_lattice(const cx_shelf_book *book)
{
    return book->shown;
}

static cx_status make_stage(cx_shelf_book *book, bool fold, cx_err *err)
{
    cx_stage *stage;
    CX_TRY(cx_stage_open(book->shown, book->report, fold, &stage, err));
    cx_status status = cx_stage_hold(stage, book->held, book->held_count, err);
    if (cx_failed(status))
        cx_stage_close(stage);
    else
        book->stages[fold] = stage;
    return status;
}

cx_status cx_shelf_stage(cx_shelf_book *book, bool fold, const cx_stage **out, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_lock_enter(&book->lock);
    if (book->stages[fold] == NULL)
        status = make_stage(book, fold, err);
    *out = book->stages[fold];
    cx_lock_leave(&book->lock);
    return status;
}

cx_status cx_shelf_states(cx_shelf_book *book, const cx_states **out, cx_err *err)
{
    static const cx_state_options options = CX_STATE_OPTIONS_INIT;
    cx_status status = CX_SUCCESS;
    cx_lock_enter(&book->lock);
    if (book->states == NULL)
        status = cx_states_open(book->shown, &options, &book->states, err);
    *out = book->states;
    cx_lock_leave(&book->lock);
    return status;
}

/*
 * folder_walk.c - walks a tree, with one thread or several.
 *
 * A walker descends by itself, with one descriptor per level.  When another walker is idle it
 * offers the next folder, by path, instead of entering it.  Few offers may be pending at a time, so
 * that the queue stays small for any tree.
 *
 *   I1  Nothing is left out silently; what cannot be read is an error (folder.c I2).
 *   I2  A folder is entered once: by the walker that found it, or by the one that accepted the
 *   offer.
 *   I3  A waiting walker is woken by an offer, by a stop, and by the end of the last busy walker.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/api.h"
#include "os/folder_parts.h"

#define WALK_ENTRIES_MAX UINT64_C(2000000)
#define WALK_DEPTH_MAX 256
#define OFFERS_A_WALKER 4

typedef struct offer {
    char *path;
    size_t path_size;
    unsigned depth;
} offer;

/* The walkers of one tree. */
typedef struct crew {
    cx_file folder;
    cx_walk_limits limits;
    cx_walk_visit *visit;
    void *const *args;
    atomic_uint_fast64_t seen;
    atomic_bool stopped; /* by a visitor, or because a walker failed */
    atomic_uint room;    /* free places for offers; only a hint when read without the lock */
    cx_lock lock;        /* of what follows */
    offer offers[OFFERS_A_WALKER * CX_WALK_THREADS_MAX];
    unsigned offer_count;
    unsigned busy;    /* walkers that may still offer */
    unsigned waiting; /* walkers that sleep */
    cx_status status; /* of the first that failed */
    cx_err err;
} crew;

typedef struct walk {
    crew *crew;
    void *arg;
    char path[CX_PATH_BYTES_MAX + 1];
} walk;

static bool is_stopped(crew *c)
{
    return atomic_load_explicit(&c->stopped, memory_order_relaxed);
}

/* --- one walker ------------------------------------------------------------------------------- */

static cx_status walk_folder(walk *w, int file, size_t path_size, unsigned depth, cx_err *err);

static cx_status walk_below(walk *w, int folder, const cx_walk_entry *entry, unsigned depth,
                            cx_err *err)
{
    int file = openat(folder, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return cx_folder_fail(err, errno, "open the folder", w->path);
    return walk_folder(w, file, entry->path_size, depth, err);
}

/* False when the walker must enter the folder itself. */
static bool offer_folder(crew *c, const cx_walk_entry *entry, unsigned depth)
{
    if (atomic_load_explicit(&c->room, memory_order_relaxed) == 0)
        return false;
    char *path = cx_alloc_new(cx_alloc_default(), entry->path_size + 1);
    if (path == NULL)
        return false;
    memcpy(path, entry->path, entry->path_size + 1);
    cx_lock_enter(&c->lock);
    bool taken = atomic_load_explicit(&c->room, memory_order_relaxed) != 0;
    if (taken) {
        c->offers[c->offer_count++] = (offer){path, entry->path_size, depth};
        atomic_fetch_sub_explicit(&c->room, 1, memory_order_relaxed);
        if (c->waiting != 0)
            cx_lock_wake(&c->lock);
    }
    cx_lock_leave(&c->lock);
    if (!taken)
        cx_alloc_free(cx_alloc_default(), path, entry->path_size + 1);
    return taken;
}

static cx_status walk_one(walk *w, int folder, const char *name, size_t path_size, unsigned depth,
                          cx_err *err)
{
    struct stat info;
    crew *c = w->crew;
    size_t name_size = strlen(name), start = path_size == 0 ? 0 : path_size + 1;
    if (start + name_size > CX_PATH_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a path below the folder is longer than %d bytes",
                       CX_PATH_BYTES_MAX);
    if (atomic_fetch_add_explicit(&c->seen, 1, memory_order_relaxed) >= c->limits.entries)
        return cx_fail(err, CX_E_LIMIT, "the folder holds more than %llu files",
                       (unsigned long long)c->limits.entries);
    if (start != 0)
        w->path[path_size] = '/';
    memcpy(w->path + start, name, name_size + 1);
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT && c->limits.may_vanish
                   ? CX_SUCCESS
                   : cx_fail_os(err, errno, "cannot look at %s", w->path);
    cx_walk_entry entry = {
        .path = w->path, .path_size = start + name_size, .name = w->path + start, .parent = folder};
    cx_folder_read_facts(&info, &entry.facts);
    cx_walk_step step = c->visit(w->arg, &entry);
    if (step == CX_WALK_STOP)
        atomic_store_explicit(&c->stopped, true, memory_order_relaxed);
    if (step != CX_WALK_ON || entry.facts.kind != CX_FILE_FOLDER)
        return CX_SUCCESS;
    if (depth + 1 > c->limits.depth)
        return cx_fail(err, CX_E_LIMIT, "folders are nested deeper than %u levels",
                       c->limits.depth);
    return offer_folder(c, &entry, depth + 1) ? CX_SUCCESS
                                              : walk_below(w, folder, &entry, depth + 1, err);
}

/* Owns `file`. */
static cx_status walk_folder(walk *w, int file, size_t path_size, unsigned depth, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    DIR *dir = fdopendir(file);
    if (dir == NULL) {
        int code = errno;
        close(file);
        return cx_fail_os(err, code, "cannot read a folder");
    }
    while (!is_stopped(w->crew) && !cx_failed(status)) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            if (errno != 0)
                status = cx_fail_os(err, errno, "cannot read a folder");
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = walk_one(w, file, entry->d_name, path_size, depth, err);
    }
    (void)closedir(dir);
    w->path[path_size] = '\0';
    return status;
}

/* --- the crew --------------------------------------------------------------------------------- */

static cx_status walk_offer(walk *w, const offer *o, cx_err *err)
{
    memcpy(w->path, o->path, o->path_size + 1);
    int file = cx_folder_beneath(w->crew->folder, o->path, O_RDONLY | O_DIRECTORY, 0);
    if (file < 0)
        return cx_folder_fail(err, errno, "open the folder", o->path);
    return walk_folder(w, file, o->path_size, o->depth, err);
}

/* With the lock held.  Accepts an offer; false when none is pending and no walker is busy. */
static bool accept_offer(crew *c, offer *out)
{
    while (c->offer_count == 0 && c->busy != 0 && !is_stopped(c)) {
        c->waiting++;
        cx_lock_wait(&c->lock);
        c->waiting--;
    }
    if (c->offer_count == 0 || is_stopped(c))
        return false;
    *out = c->offers[--c->offer_count];
    atomic_fetch_add_explicit(&c->room, 1, memory_order_relaxed);
    c->busy++;
    return true;
}

/* With the lock held.  I3. */
static void finish_walker(crew *c, cx_status status, const cx_err *err)
{
    if (cx_failed(status) && !cx_failed(c->status)) {
        c->status = status;
        c->err = *err;
    }
    if (cx_failed(status))
        atomic_store_explicit(&c->stopped, true, memory_order_relaxed);
    if (--c->busy == 0 || is_stopped(c))
        cx_lock_wake(&c->lock);
}

/* Walker 0 is counted as busy with the folder itself from before the others start. */
static void walk_as(void *arg, unsigned index)
{
    crew *c = arg;
    char top[] = "";
    walk w = {.crew = c, .arg = c->args[index]};
    offer next = {.path = top};
    bool work = index == 0;
    cx_lock_enter(&c->lock);
    while (work || accept_offer(c, &next)) {
        cx_err err = {.code = CX_OK};
        cx_lock_leave(&c->lock);
        cx_status status = walk_offer(&w, &next, &err);
        if (!work)
            cx_alloc_free(cx_alloc_default(), next.path, next.path_size + 1);
        work = false;
        cx_lock_enter(&c->lock);
        finish_walker(c, status, &err);
    }
    cx_lock_leave(&c->lock);
}

cx_status cx_folder_walk_many(cx_file folder, const cx_walk_limits *limits, unsigned threads,
                              cx_walk_visit *visit, void *const *args, cx_err *err)
{
    CX_ASSERT(threads >= 1 && threads <= CX_WALK_THREADS_MAX);
    crew c = {.folder = folder,
              .limits = {WALK_ENTRIES_MAX, WALK_DEPTH_MAX, false},
              .visit = visit,
              .args = args,
              .busy = 1};
    if (limits != NULL)
        c.limits = *limits;
    atomic_init(&c.seen, 0);
    atomic_init(&c.stopped, false);
    atomic_init(&c.room, threads == 1 ? 0 : OFFERS_A_WALKER * threads);
    cx_lock_init(&c.lock);
    cx_thread_team(threads, walk_as, &c);
    cx_lock_done(&c.lock);
    while (c.offer_count != 0) { /* not accepted because of a stop */
        const offer *left = &c.offers[--c.offer_count];
        cx_alloc_free(cx_alloc_default(), left->path, left->path_size + 1);
    }
    if (cx_failed(c.status) && err != NULL)
        *err = c.err;
    return c.status;
}

cx_status cx_folder_walk(cx_file folder, const cx_walk_limits *limits, cx_walk_visit *visit,
                         void *arg, cx_err *err)
{
    return cx_folder_walk_many(folder, limits, 1, visit, &arg, err);
}

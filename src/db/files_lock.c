/*
 * files_lock.c - locks on a file and on the index of its write-ahead log, between the connections
 * of this process.
 *
 * L1  There is no waiting here: a lock that cannot be had is SQLITE_BUSY, and SQLite's busy handler
 *     waits.
 * L2  The levels of a file are SQLite's (sqlite.org/lockingv3.html): any number share it, one of
 *     these may reserve it, and has it alone once the others have left.
 * L3  The index lives as long as a connection uses it; the next one finds it empty, and SQLite
 *     makes it again from the write-ahead log.
 */
#include <sqlite3.h>
#include <stdlib.h>

#include "db/files_internal.h"

/* SQLite asks for regions of 32 KiB, each for 4,096 frames. */
#define REGIONS_MAX ((size_t)1 << 20)

bool cx_image_locks_init(cx_image_locks *locks)
{
    *locks = (cx_image_locks){0};
    return pthread_mutex_init(&locks->mutex, NULL) == 0;
}

static void drop_index(cx_image_locks *locks)
{
    const cx_alloc *alloc = cx_alloc_default();
    for (size_t i = 0; i < locks->region_count; i++)
        cx_alloc_free(alloc, locks->regions[i], locks->region_size);
    cx_alloc_free(alloc, (void *)locks->regions, locks->region_count * sizeof *locks->regions);
    locks->regions = NULL;
    locks->region_count = 0;
}

void cx_image_locks_done(cx_image_locks *locks)
{
    drop_index(locks);
    (void)pthread_mutex_destroy(&locks->mutex);
}

static cx_image_locks *enter_locks_of(cx_image *image)
{
    cx_image_locks *locks = &image->locks;
    int failed = pthread_mutex_lock(&locks->mutex);
    CX_ASSERT(failed == 0);
    return locks;
}

static cx_image_locks *enter_locks(const cx_image_user *user)
{
    return enter_locks_of(user->image);
}

static void leave_locks(cx_image_locks *locks)
{
    (void)pthread_mutex_unlock(&locks->mutex);
}

/* --- the file --------------------------------------------------------------------------------- */

static int share_file(cx_image_locks *locks, cx_image_user *user)
{
    if (locks->writer != NULL && locks->writer_level >= SQLITE_LOCK_PENDING)
        return SQLITE_BUSY;
    locks->shared++;
    user->level = SQLITE_LOCK_SHARED;
    return SQLITE_OK;
}

static int raise_lock(cx_image_locks *locks, cx_image_user *user, int level)
{
    CX_ASSERT(user->level >= SQLITE_LOCK_SHARED);
    if (locks->writer != NULL && locks->writer != user)
        return SQLITE_BUSY;
    int code = SQLITE_OK;
    if (level == SQLITE_LOCK_EXCLUSIVE && locks->shared > 1) {
        level = SQLITE_LOCK_PENDING; /* no new ones */
        code = SQLITE_BUSY;
    }
    locks->writer = user;
    locks->writer_level = user->level = level;
    return code;
}

int cx_image_lock(cx_image_user *user, int level)
{
    if (user->level >= level)
        return SQLITE_OK;
    cx_image_locks *locks = enter_locks(user);
    int code =
        level == SQLITE_LOCK_SHARED ? share_file(locks, user) : raise_lock(locks, user, level);
    leave_locks(locks);
    return code;
}

void cx_image_unlock(cx_image_user *user, int level)
{
    if (user->level <= level)
        return;
    cx_image_locks *locks = enter_locks(user);
    if (locks->writer == user) {
        locks->writer = NULL;
        locks->writer_level = SQLITE_LOCK_NONE;
    }
    if (level == SQLITE_LOCK_NONE)
        locks->shared--;
    user->level = level;
    leave_locks(locks);
}

bool cx_image_is_reserved(const cx_image_user *user)
{
    cx_image_locks *locks = enter_locks(user);
    bool reserved = locks->writer != NULL;
    leave_locks(locks);
    return reserved;
}

/* --- the index of the write-ahead log --------------------------------------------------------- */

static bool make_region(cx_image_locks *locks, size_t region, size_t size)
{
    const cx_alloc *alloc = cx_alloc_default();
    if (region >= locks->region_count) {
        void **more =
            alloc->resize(alloc->ctx, (void *)locks->regions, locks->region_count * sizeof *more,
                          (region + 1) * sizeof *more);
        if (more == NULL)
            return false;
        for (size_t i = locks->region_count; i <= region; i++)
            more[i] = NULL;
        locks->regions = more;
        locks->region_count = region + 1;
    }
    if (locks->regions[region] == NULL)
        locks->regions[region] = cx_alloc_zeroed(alloc, 1, size);
    locks->region_size = size;
    return locks->regions[region] != NULL;
}

int cx_image_index(cx_image_user *user, size_t region, size_t size, bool make, void volatile **out)
{
    *out = NULL;
    if (region >= REGIONS_MAX)
        return SQLITE_IOERR_SHMSIZE;
    cx_image_locks *locks = enter_locks(user);
    CX_ASSERT(locks->region_count == 0 || locks->region_size == size);
    if (!user->uses_index)
        locks->region_users++;
    user->uses_index = true;
    int code = !make || make_region(locks, region, size) ? SQLITE_OK : SQLITE_IOERR_NOMEM;
    if (code == SQLITE_OK && region < locks->region_count)
        *out = locks->regions[region];
    leave_locks(locks);
    return code;
}

static void leave_slots(cx_image_locks *locks, cx_image_user *user, int slot, int count)
{
    for (int i = slot; i < slot + count; i++) {
        unsigned bit = 1u << i;
        if ((user->exclusive_slots & bit) != 0)
            locks->slots[i] = 0;
        else if ((user->shared_slots & bit) != 0)
            locks->slots[i]--;
        user->exclusive_slots &= ~bit;
        user->shared_slots &= ~bit;
    }
}

static int share_slot(cx_image_locks *locks, cx_image_user *user, int slot)
{
    unsigned bit = 1u << slot;
    if (((user->shared_slots | user->exclusive_slots) & bit) != 0)
        return SQLITE_OK;
    if (locks->slots[slot] < 0)
        return SQLITE_BUSY;
    locks->slots[slot]++;
    user->shared_slots |= bit;
    return SQLITE_OK;
}

static int take_slots(cx_image_locks *locks, cx_image_user *user, int slot, int count)
{
    for (int i = slot; i < slot + count; i++)
        if ((user->exclusive_slots & 1u << i) == 0 && locks->slots[i] != 0)
            return SQLITE_BUSY;
    for (int i = slot; i < slot + count; i++) {
        locks->slots[i] = -1;
        user->exclusive_slots |= 1u << i;
    }
    return SQLITE_OK;
}

int cx_image_index_lock(cx_image_user *user, int slot, int count, int flags)
{
    CX_ASSERT(slot >= 0 && count >= 1 && slot + count <= CX_IMAGE_SLOTS);
    cx_image_locks *locks = enter_locks(user);
    int code = SQLITE_OK;
    if ((flags & SQLITE_SHM_UNLOCK) != 0)
        leave_slots(locks, user, slot, count);
    else if ((flags & SQLITE_SHM_SHARED) != 0)
        code = share_slot(locks, user, slot);
    else
        code = take_slots(locks, user, slot, count);
    leave_locks(locks);
    return code;
}

void cx_image_index_barrier(cx_image_user *user)
{
    leave_locks(enter_locks(user));
}

bool cx_image_index_is_used(cx_image *image)
{
    cx_image_locks *locks = enter_locks_of(image);
    bool used = locks->region_users != 0;
    leave_locks(locks);
    return used;
}

void cx_image_index_leave(cx_image_user *user)
{
    cx_image_locks *locks = enter_locks(user);
    leave_slots(locks, user, 0, CX_IMAGE_SLOTS);
    if (user->uses_index && --locks->region_users == 0)
        drop_index(locks);
    user->uses_index = false;
    leave_locks(locks);
}

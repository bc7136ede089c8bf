/*
 * disk.h - a disk in memory that loses what was not synced.
 *
 *     disk d;
 *     disk_init(&d, seed);
 *     ... write through &d.io ...
 *     disk_crash(&d, 512);     the machine lost power: unsynced pieces of 512 bytes are there or
 * not
 *     ... open again through &d.io ...
 *     disk_done(&d);
 *
 * What a file holds after a crash: each aligned piece is as it was when it was last synced, or as
 * one of the later writes left it, each piece for itself.  Names made, renamed and removed but not
 * synced are there up to a random one of these changes.  Locks and open files are gone.
 * Thread-safe.
 */
#ifndef CX_TESTS_DISK_H
#define CX_TESTS_DISK_H

#include "base/io.h"
#include "base/thread.h"

typedef struct disk_state disk_state;

typedef struct disk {
    cx_io io;
    uint64_t random;
    disk_state *state;
    /* Counts writes and syncs; from this one on every such call fails (0 = never): the power went
     * off there. */
    uint64_t calls;
    uint64_t off_at;
    bool sync_fails; /* every sync says EIO, and what was to be synced never reaches the disk,
                        though it can still be read until the crash */
    uint64_t room;   /* bytes the disk has in all; 0 = no end */
} disk;

void disk_init(disk *d, uint64_t seed);
void disk_done(disk *d);
void disk_crash(disk *d, size_t piece_bytes);

/* A file's contents as a program sees them now, borrowed; NULL when there is none. */
cx_buf *disk_file(disk *d, const char *path);
/* Calls `each` with every file there is now. */
void disk_each(disk *d, void (*each)(void *arg, const char *path, cx_buf *contents), void *arg);

#endif

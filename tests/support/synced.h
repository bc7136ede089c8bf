/*
 * synced.h - files in memory that others see as they were last synced.
 *
 *     synced_files s;
 *     synced_init(&s);
 *     ... write through &s.io ...
 *     synced_image(&s, "mem:a", &size)      what another process would read
 *     synced_kill(&s);                      this process ended: what was not synced is gone
 *     synced_done(&s);
 *
 * What src/db/files.h asks of an io, and no more: an opening for reading, while nothing in the
 * process has the file open for writing, has the image of that time; when the last opening for
 * writing is closed, what was not synced is gone.  Of the calls only those on files are there.
 * Thread-safe.
 */
#ifndef CX_TESTS_SYNCED_H
#define CX_TESTS_SYNCED_H

#include "base/io.h"
#include "base/thread.h"

enum { SYNCED_FILES = 16, SYNCED_OPENINGS = 64 };

typedef struct synced_file {
    char path[100]; /* "" = free */
    cx_buf now, synced;
    bool there; /* for other processes */
    unsigned writers;
} synced_file;

typedef struct synced_opening {
    synced_file *file; /* NULL = free */
    bool writes;
    bool is_frozen;
    cx_buf frozen;
} synced_opening;

typedef struct synced_files {
    cx_io io;
    cx_lock lock;
    synced_file files[SYNCED_FILES];
    synced_opening openings[SYNCED_OPENINGS];
    int refuse_open; /* errno of every opening for writing; 0 = none */
    int refuse_sync; /* .. of every sync */
    uint64_t room;   /* bytes a file may have; 0 = no end */
    /* Called, unlocked, after each sync that was done. */
    void (*on_sync)(void *arg, const char *path);
    void *arg;
} synced_files;

void synced_init(synced_files *s);
void synced_done(synced_files *s);
/* Openings stay as they are, and must be closed. */
void synced_kill(synced_files *s);
/* A copy, empty when others see no such file; end it with cx_buf_done. */
cx_buf synced_image(synced_files *s, const char *path, bool *out_there);
/* How many are open. */
unsigned synced_open_count(synced_files *s);

#endif

/*
 * fault.h - memory and files that fail when asked to.
 *
 *     fault_alloc memory;
 *     fault_alloc_init(&memory, 7, false);      the 7th allocation fails, later ones work again
 *     ... hand &memory.alloc to what is tested ...
 *     CHECK_INT(atomic_load(&memory.live_bytes), 0);
 *
 * Counting is atomic: both may be used from several threads.
 */
#ifndef CX_TESTS_FAULT_H
#define CX_TESTS_FAULT_H

#include <stdatomic.h>

#include "base/io.h"

#define FAULT_NEVER UINT64_MAX

typedef struct fault_alloc {
    cx_alloc alloc;
    uint64_t fail_at; /* 1 = the first allocation or growth; FAULT_NEVER */
    bool onwards;     /* every later one too */
    atomic_ullong calls;
    atomic_ullong fired;
    atomic_llong live_bytes;
    atomic_bool wrong_size; /* a block came back with another size than it was asked with */
} fault_alloc;

void fault_alloc_init(fault_alloc *memory, uint64_t fail_at, bool onwards);

typedef enum fault_call {
    FAULT_OPEN = 1,
    FAULT_READ = 2,
    FAULT_PREAD = 4,
    FAULT_WRITE = 8,
    FAULT_SYNC = 16,
    FAULT_CLOSE = 32,
    FAULT_RENAME = 64,
    FAULT_SIZE = 128,
    FAULT_RANDOM = 256,
    FAULT_ALLOCATE = 512,
    FAULT_LOCK = 1024,   /* taking it and asking for it */
    FAULT_FOLDER = 2048, /* list, mkdir, unlink */
    FAULT_ANY = 4095
} fault_call;

typedef struct fault_io {
    cx_io io;
    const cx_io *below;
    unsigned which; /* fault_call bits that count */
    uint64_t fail_at;
    bool onwards;
    int code;         /* errno of the failure */
    bool torn;        /* half of a failing write is written all the same */
    size_t at_most;   /* bytes one read or write moves; 0 = all */
    unsigned eintr;   /* every eintr-th read or write is interrupted first; 0 = none */
    bool no_size;     /* size() says that nothing is a regular file, as of a pipe */
    bool close_fails; /* what is closed is closed, and says EIO: as close(2) does */
    atomic_ullong calls;
    atomic_ullong transfers;
    atomic_ullong fired;
    atomic_llong open_files;
} fault_io;

void fault_io_init(fault_io *files, const cx_io *below, unsigned which, uint64_t fail_at,
                   bool onwards);

#endif

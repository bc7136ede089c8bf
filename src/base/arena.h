/*
 * arena.h - memory for one document or request: push, never free one by one, reset at once.
 *
 *     cx_arena arena;
 *     cx_arena_init(&arena, alloc, 0);
 *     cx_arena_mark mark = cx_arena_mark_now(&arena);
 *     ... cx_arena_push(&arena, size, align) ...
 *     cx_arena_reset(&arena, mark);          everything pushed since the mark is gone
 *     cx_arena_done(&arena);
 *
 * Not thread-safe.  Chunks grow geometrically and are reused after a reset, so that a loop over
 * documents soon stops allocating.  Under AddressSanitizer memory past the cursor is poisoned.
 */
#ifndef CX_BASE_ARENA_H
#define CX_BASE_ARENA_H

#include <stdalign.h>

#include "base/diag.h"
#include "base/status.h"

typedef struct cx_arena_chunk cx_arena_chunk;

typedef struct cx_arena {
    const cx_alloc *alloc;
    cx_arena_chunk *first;   /* all chunks, oldest first */
    cx_arena_chunk *current; /* the chunk in use; those after it are empty */
    uint8_t *cursor;
    uint8_t *end;
    size_t limit_bytes; /* on the sum of chunks; 0 = none */
    size_t total_bytes; /* of all chunks */
} cx_arena;

typedef struct cx_arena_mark {
    cx_arena_chunk *chunk;
    uint8_t *cursor;
} cx_arena_mark;

void cx_arena_init(cx_arena *arena, const cx_alloc *alloc, size_t limit_bytes);
void cx_arena_done(cx_arena *arena);

cx_arena_mark cx_arena_mark_now(const cx_arena *arena);
void cx_arena_reset(cx_arena *arena, cx_arena_mark mark);

/* The slow path of cx_arena_push. */
void *cx_arena_push_chunk(cx_arena *arena, size_t size_bytes, size_t align_bytes);

#if defined(__SANITIZE_ADDRESS__)
#define CX_ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CX_ARENA_ASAN 1
#endif
#endif

/* Uninitialised memory, or NULL when out of memory or over the limit.  align is a power of two. */
static inline void *cx_arena_push(cx_arena *arena, size_t size_bytes, size_t align_bytes)
{
#ifndef CX_ARENA_ASAN
    uintptr_t at = ((uintptr_t)arena->cursor + (align_bytes - 1)) & ~(uintptr_t)(align_bytes - 1);
    if (CX_LIKELY(arena->cursor != NULL && at <= (uintptr_t)arena->end &&
                  size_bytes <= (uintptr_t)arena->end - at)) {
        uint8_t *block = arena->cursor + (at - (uintptr_t)arena->cursor);
        arena->cursor = block + size_bytes;
        return block;
    }
#endif
    return cx_arena_push_chunk(arena, size_bytes, align_bytes);
}

#define CX_ARENA_NEW(arena, type) ((type *)cx_arena_push((arena), sizeof(type), alignof(type)))

/* `count` items, NULL on overflow too. */
#define CX_ARENA_ARRAY(arena, type, count) \
    ((type *)cx_arena_push_array((arena), (count), sizeof(type), alignof(type)))

void *cx_arena_push_array(cx_arena *arena, size_t count, size_t item_size_bytes,
                          size_t align_bytes);

/* Copies text and adds one zero byte, not counted.  Data is NULL when out of memory. */
cx_str cx_arena_copy_str(cx_arena *arena, cx_str text);

/* printf into the arena; data is NULL when out of memory. */
cx_str cx_arena_printf(cx_arena *arena, const char *format, ...) CX_PRINTF(2, 3);

#endif

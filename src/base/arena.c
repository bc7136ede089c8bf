/*
 * arena.c - chunked bump allocation.
 *
 * Invariants:
 *   I1  chunks form one list; those after `current` are empty and reusable;
 *   I2  cursor and end lie in `current`, or both are NULL when there is no chunk;
 *   I3  total_bytes is the sum of all chunks, headers included, and never passes limit_bytes.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/bytes.h"

#ifdef CX_ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(at, size) ASAN_POISON_MEMORY_REGION((at), (size))
#define UNPOISON(at, size) ASAN_UNPOISON_MEMORY_REGION((at), (size))
#define RED_ZONE ((size_t)16) /* poisoned bytes after every block */
#else
#define POISON(at, size) ((void)(at), (void)(size))
#define UNPOISON(at, size) ((void)(at), (void)(size))
#define RED_ZONE ((size_t)0)
#endif

#define FIRST_CHUNK_BYTES ((size_t)4096)
#define LARGEST_STEP_BYTES ((size_t)8 << 20) /* chunks stop doubling here */

struct cx_arena_chunk {
    cx_arena_chunk *next;
    size_t size_bytes; /* with this header */
    max_align_t data[];
};

void cx_arena_init(cx_arena *arena, const cx_alloc *alloc, size_t limit_bytes)
{
    *arena = (cx_arena){.alloc = alloc, .limit_bytes = limit_bytes};
}

void cx_arena_done(cx_arena *arena)
{
    for (cx_arena_chunk *chunk = arena->first; chunk != NULL;) {
        cx_arena_chunk *next = chunk->next;
        UNPOISON(chunk->data, chunk->size_bytes - sizeof *chunk);
        cx_alloc_free(arena->alloc, chunk, chunk->size_bytes);
        chunk = next;
    }
    cx_arena_init(arena, arena->alloc, arena->limit_bytes);
}

static void enter_chunk(cx_arena *arena, cx_arena_chunk *chunk)
{
    arena->current = chunk;
    arena->cursor = (uint8_t *)chunk->data;
    arena->end = (uint8_t *)chunk + chunk->size_bytes;
}

cx_arena_mark cx_arena_mark_now(const cx_arena *arena)
{
    return (cx_arena_mark){arena->current, arena->cursor};
}

void cx_arena_reset(cx_arena *arena, cx_arena_mark mark)
{
    if (arena->first == NULL)
        return;
    if (mark.chunk == NULL) {
        enter_chunk(arena, arena->first);
    } else {
        enter_chunk(arena, mark.chunk);
        arena->cursor = mark.cursor;
    }
    POISON(arena->cursor, (size_t)(arena->end - arena->cursor));
}

/* Inserts a chunk for `needed` data bytes after the current one. */
static bool add_chunk(cx_arena *arena, size_t needed)
{
    size_t size = arena->current == NULL ? FIRST_CHUNK_BYTES : arena->current->size_bytes * 2;
    if (size > LARGEST_STEP_BYTES)
        size = LARGEST_STEP_BYTES;
    size_t least;
    if (!cx_size_add(needed, sizeof(cx_arena_chunk), &least))
        return false;
    if (size < least)
        size = least;
    if (arena->limit_bytes != 0) {
        size_t left = arena->limit_bytes - arena->total_bytes;
        if (least > left)
            return false;
        size = size > left ? left : size;
    }
    cx_arena_chunk *chunk = cx_alloc_new(arena->alloc, size);
    if (chunk == NULL)
        return false;
    chunk->size_bytes = size;
    chunk->next = NULL;
    if (arena->current == NULL) {
        arena->first = chunk;
    } else {
        chunk->next = arena->current->next;
        arena->current->next = chunk;
    }
    arena->total_bytes += size;
    enter_chunk(arena, chunk);
    POISON(arena->cursor, (size_t)(arena->end - arena->cursor));
    return true;
}

static uint8_t *with_red_zone(uint8_t *cursor, const uint8_t *end)
{
    size_t left = (size_t)(end - cursor), skip = RED_ZONE;
    return cursor + (left < skip ? left : skip);
}

void *cx_arena_push_chunk(cx_arena *arena, size_t size_bytes, size_t align_bytes)
{
    CX_ASSERT(align_bytes != 0 && (align_bytes & (align_bytes - 1)) == 0);
    for (;;) {
        if (arena->current != NULL) {
            uintptr_t at = ((uintptr_t)arena->cursor + (align_bytes - 1)) & ~(align_bytes - 1);
            if (at <= (uintptr_t)arena->end && size_bytes <= (uintptr_t)arena->end - at) {
                uint8_t *block = arena->cursor + (at - (uintptr_t)arena->cursor);
                UNPOISON(block, size_bytes);
                arena->cursor = block + size_bytes;
                arena->cursor = with_red_zone(arena->cursor, arena->end);
                return block;
            }
            if (arena->current->next != NULL) {
                enter_chunk(arena, arena->current->next);
                continue;
            }
        }
        size_t needed;
        if (!cx_size_add(size_bytes, align_bytes + RED_ZONE, &needed) || !add_chunk(arena, needed))
            return NULL;
    }
}

void *cx_arena_push_array(cx_arena *arena, size_t count, size_t item_size_bytes, size_t align_bytes)
{
    size_t size;
    if (!cx_size_mul(count, item_size_bytes, &size))
        return NULL;
    return cx_arena_push(arena, size, align_bytes);
}

cx_str cx_arena_copy_str(cx_arena *arena, cx_str text)
{
    size_t size;
    char *copy = cx_size_add(text.size, 1, &size) ? cx_arena_push(arena, size, 1) : NULL;
    if (copy == NULL)
        return (cx_str){NULL, 0};
    if (text.size != 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    return (cx_str){copy, text.size};
}

/* Most texts are short: formatted once, into the stack. */
cx_str cx_arena_printf(cx_arena *arena, const char *format, ...)
{
    char few[256];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(few, sizeof few, format, args);
    va_end(args);
    char *text = size < 0 ? NULL : cx_arena_push(arena, (size_t)size + 1, 1);
    if (text == NULL)
        return (cx_str){NULL, 0};
    if ((size_t)size < sizeof few) {
        memcpy(text, few, (size_t)size + 1);
        return (cx_str){text, (size_t)size};
    }
    va_start(args, format);
    (void)vsnprintf(text, (size_t)size + 1, format, args);
    va_end(args);
    return (cx_str){text, (size_t)size};
}

/*
 * windows.c - pieces that texts share, found by a rolling hash (content.h).
 *
 * A slot holds the hash of a window and where it is; the bytes are compared, so that an equal hash
 * is no match by itself.  A window that meets a full neighbourhood is left out: texts made to
 * collide cost no more than others, and are found by less.
 */
#include "lattice/content/content.h"

#define MULTIPLIER UINT64_C(0x9E3779B97F4A7C15)
#define PROBES_MAX 32u

typedef struct content_slot {
    uint64_t hash;
    uint32_t at;
    bool is_used, is_forgotten;
} content_slot;

void cx_windows_init(content_windows *w, const cx_alloc *alloc, size_t width)
{
    *w = (content_windows){.alloc = alloc, .width = width, .power = 1};
    cx_buf_init(&w->bytes, alloc);
    for (size_t i = 1; i < width; i++)
        w->power *= MULTIPLIER;
}

void cx_windows_done(content_windows *w)
{
    cx_alloc_free(w->alloc, w->slots, w->slot_count * sizeof *w->slots);
    cx_buf_done(&w->bytes);
}

cx_status cx_windows_add(content_windows *w, cx_str text, cx_err *err)
{
    cx_buf_add_str(&w->bytes, text);
    cx_buf_add_byte(&w->bytes, 0);
    return cx_buf_check(&w->bytes, err);
}

static size_t slot_of(const content_windows *w, uint64_t hash)
{
    hash ^= hash >> 29;
    hash *= UINT64_C(0xBF58476D1CE4E5B9);
    return (size_t)(hash >> 32) & (w->slot_count - 1);
}

/* The slot of a window, or where it would be; NULL: its neighbourhood is full. */
static content_slot *find_slot(const content_windows *w, uint64_t hash, const char *bytes)
{
    size_t at = slot_of(w, hash);
    for (unsigned i = 0; i < PROBES_MAX; i++) {
        content_slot *slot = &w->slots[(at + i) & (w->slot_count - 1)];
        if (!slot->is_used || (slot->hash == hash && memcmp((const char *)w->bytes.data + slot->at,
                                                            bytes, w->width) == 0))
            return slot;
    }
    return NULL;
}

static uint64_t hash_first(const content_windows *w, const char *bytes)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < w->width; i++)
        hash = hash * MULTIPLIER + (uint8_t)bytes[i] + 1;
    return hash;
}

/* The hash of the window that begins one byte later. */
static uint64_t hash_next(const content_windows *w, uint64_t hash, const char *bytes)
{
    hash -= w->power * ((uint64_t)(uint8_t)bytes[0] + 1);
    return hash * MULTIPLIER + (uint8_t)bytes[w->width] + 1;
}

cx_status cx_windows_make(content_windows *w, cx_err *err)
{
    const char *bytes = (const char *)w->bytes.data;
    size_t size = w->bytes.size, words = 64, last_end = 0;
    CX_ASSERT(size < UINT32_MAX);
    if (size < w->width)
        return CX_SUCCESS;
    while (words < 2 * size)
        words *= 2;
    w->slots = cx_alloc_zeroed(w->alloc, words, sizeof *w->slots);
    if (w->slots == NULL)
        return cx_fail_nomem(err);
    w->slot_count = words;
    for (size_t i = 0; i + 1 < w->width; i++)
        if (bytes[i] == 0)
            last_end = i + 1;
    uint64_t hash = hash_first(w, bytes);
    for (size_t at = 0; at + w->width <= size; at++) {
        if (at != 0)
            hash = hash_next(w, hash, bytes + at - 1);
        if (bytes[at + w->width - 1] == 0)
            last_end = at + w->width;
        if (at < last_end) /* it crosses the end of a text */
            continue;
        content_slot *slot = find_slot(w, hash, bytes + at);
        if (slot != NULL && !slot->is_used)
            *slot = (content_slot){.hash = hash, .at = (uint32_t)at, .is_used = true};
    }
    return CX_SUCCESS;
}

void cx_windows_forget(content_windows *w, cx_str text)
{
    if (w->slot_count == 0 || text.size < w->width)
        return;
    uint64_t hash = hash_first(w, text.data);
    for (size_t at = 0; at + w->width <= text.size; at++) {
        if (at != 0)
            hash = hash_next(w, hash, text.data + at - 1);
        content_slot *slot = find_slot(w, hash, text.data + at);
        if (slot != NULL && slot->is_used)
            slot->is_forgotten = true;
    }
}

size_t cx_windows_find(const content_windows *w, cx_str text, size_t *out_at)
{
    size_t best = 0, run = 0;
    *out_at = 0;
    if (w->slot_count == 0 || text.size < w->width)
        return 0;
    uint64_t hash = hash_first(w, text.data);
    for (size_t at = 0; at + w->width <= text.size; at++) {
        if (at != 0)
            hash = hash_next(w, hash, text.data + at - 1);
        const content_slot *slot = find_slot(w, hash, text.data + at);
        bool is_there = slot != NULL && slot->is_used && !slot->is_forgotten;
        run = is_there ? run + 1 : 0;
        if (run != 0 && run + w->width - 1 > best) {
            best = run + w->width - 1;
            *out_at = at + w->width - best;
        }
    }
    return best;
}

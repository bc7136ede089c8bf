/*
 * shape.h - predicts that the next object has the same member names as the last one in its place.
 *
 * Records repeat: the same names in the same order, line after line.  A shape stores the names of
 * the last object in one place of the document, as they were spelled, and their sorted order.
 * While an object matches its shape, a name costs one comparison of bytes, and sorting and
 * duplicate detection cost nothing, since they were done before for the same names.
 *
 * It is a cache: an object that differs is read the general way, and results never depend on it.
 */
#ifndef CX_JSON_SHAPE_H
#define CX_JSON_SHAPE_H

#include "json/internal.h"

#define CX_JSON_SHAPE_MEMBERS 16
#define CX_JSON_SHAPE_NAME 32 /* bytes of a name that can be remembered, with its quotes */
#define CX_JSON_SHAPES 64

typedef struct cx_json_shape cx_json_shape;

struct cx_json_shape {
    uint32_t count;  /* members; 0: nothing learned yet */
    uint32_t misses; /* since the last object that matched it */
    uint8_t order[CX_JSON_SHAPE_MEMBERS];
    uint8_t size[CX_JSON_SHAPE_MEMBERS];          /* of each name, with its quotes */
    cx_json_shape *inside[CX_JSON_SHAPE_MEMBERS]; /* of objects that are values of the members */
    char name[CX_JSON_SHAPE_MEMBERS][CX_JSON_SHAPE_NAME]; /* as spelled, with quotes */
};

typedef struct cx_json_shapes {
    uint32_t used;
    cx_json_shape items[CX_JSON_SHAPES]; /* the first is the outermost object's */
} cx_json_shapes;

/* Whether the first `size` bytes are equal; 16 bytes must be readable at both. */
static inline bool cx_json_same_16(const uint8_t *a, const char *b, size_t size)
{
#ifdef CX_JSON_BLOCKS
    return cx_json_block_equal(cx_json_block_load(a), cx_json_block_load((const uint8_t *)b), size);
#else
    return memcmp(a, b, size) == 0;
#endif
}

/* The end of member `index`'s name in [at, end) when it is spelled as expected; else NULL. */
static inline const uint8_t *cx_json_shape_match(const cx_json_shape *shape, size_t index,
                                                 const uint8_t *at, const uint8_t *end)
{
    if (CX_UNLIKELY(index >= shape->count))
        return NULL;
    size_t size = shape->size[index], left = (size_t)(end - at);
    const char *name = shape->name[index];
    bool same;
    if (CX_LIKELY(size <= 16 && left >= 16))
        same = cx_json_same_16(at, name, size);
    else
        same = left >= size && memcmp(at, name, size) == 0;
    return same ? at + size : NULL;
}

/* The shape of an object that is the value of member `index`, NULL when the table is full. */
cx_json_shape *cx_json_shape_inside(cx_json_shapes *shapes, cx_json_shape *shape, size_t index);

/*
 * Notes that an object differed.  `members` as read, `sorted` their keys in order; [text, end) is
 * the document.  Learns the new names, less and less often when objects keep differing.
 */
void cx_json_shape_miss(cx_json_shape *shape, const cx_json_member *members,
                        const cx_json_key *sorted, uint32_t count, const uint8_t *text,
                        const uint8_t *end);

#endif

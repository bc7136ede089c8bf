/*
 * shape.c - see shape.h.
 */
#include "json/shape.h"

cx_json_shape *cx_json_shape_inside(cx_json_shapes *shapes, cx_json_shape *shape, size_t index)
{
    if (index >= CX_JSON_SHAPE_MEMBERS)
        return NULL;
    if (shape->inside[index] == NULL && shapes->used < CX_JSON_SHAPES)
        shape->inside[index] = &shapes->items[shapes->used++];
    return shape->inside[index];
}

/* Only names without escapes can be compared with the bytes of the next object. */
static bool is_spelled_out(const cx_json *name, const uint8_t *text, const uint8_t *end)
{
    uintptr_t at = (uintptr_t)name->text;
    return (name->flags & CX_JSON_PLAIN) != 0 && at > (uintptr_t)text && at < (uintptr_t)end;
}

void cx_json_shape_miss(cx_json_shape *shape, const cx_json_member *members,
                        const cx_json_key *sorted, uint32_t count, const uint8_t *text,
                        const uint8_t *end)
{
    shape->misses++;
    if ((shape->misses & (shape->misses - 1)) != 0 || count > CX_JSON_SHAPE_MEMBERS)
        return;
    shape->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const cx_json *name = &members[i].name;
        size_t size = (size_t)name->count + 2;
        if (!is_spelled_out(name, text, end) || size > CX_JSON_SHAPE_NAME)
            return;
        memcpy(shape->name[i], name->text - 1, size);
        shape->size[i] = (uint8_t)size;
        shape->order[i] = (uint8_t)sorted[i].index;
    }
    shape->count = count;
}

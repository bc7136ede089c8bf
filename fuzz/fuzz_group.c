/*
 * fuzz_group.c - a commit apart from a segment, as a database gives it.
 *
 *     0  2  size of the guarded bytes, big-endian
 *     2     the guarded bytes; then what every frame is given as its erasable part
 *
 * What passes has the checksums of a writer, and encodes to the same bytes again.
 */
#include "fuzz/fuzz.h"
#include "log/api.h"

static cx_status give_rest(void *arg, size_t frame, cx_bytes *out, cx_err *err)
{
    (void)frame;
    (void)err;
    *out = *(const cx_bytes *)arg;
    return CX_SUCCESS;
}

static void check_again(const cx_log_group_id *id, const cx_log_item *items, size_t count,
                        cx_bytes guarded, cx_arena *arena)
{
    cx_log_frame *frames = CX_ARENA_ARRAY(arena, cx_log_frame, count);
    uint64_t *sizes = CX_ARENA_ARRAY(arena, uint64_t, count);
    cx_buf again, erasable;
    if (frames == NULL || sizes == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        frames[i] = items[i].frame;
        if (items[i].erased || items[i].erasable_damaged)
            frames[i].erasable = (cx_bytes){NULL, items[i].erasable_size};
    }
    cx_buf_init(&again, cx_alloc_default());
    cx_buf_init(&erasable, cx_alloc_default());
    if (!cx_failed(cx_log_group_encode(id, frames, count, &again, &erasable, sizes, NULL)) &&
        !cx_str_eq(cx_buf_str(&again), cx_bytes_str(guarded)))
        abort();
    cx_buf_done(&again);
    cx_buf_done(&erasable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cx_log_group_id id = {.home_id = "0123456789abcdef", .number = 7};
    const cx_log_item *items;
    size_t count, guarded_size;
    cx_arena arena;
    cx_buf whole;
    if (size < 2)
        return 0;
    guarded_size = (size_t)data[0] << 8 | data[1];
    if (guarded_size > size - 2)
        guarded_size = size - 2;
    cx_bytes guarded = {data + 2, guarded_size};
    cx_bytes rest = {data + 2 + guarded_size, size - 2 - guarded_size};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&whole, cx_alloc_default());
    if (!cx_failed(cx_log_group_decode(&id, guarded, give_rest, &rest, &whole, &arena, &items,
                                       &count, NULL)))
        check_again(&id, items, count, guarded, &arena);
    cx_buf_done(&whole);
    cx_arena_done(&arena);
    return 0;
}

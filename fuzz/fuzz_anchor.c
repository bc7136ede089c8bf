/*
 * fuzz_anchor.c - any bytes as an external anchor, and as a predicate of bisect.
 */
#include "fuzz/fuzz.h"
#include "lattice/lattice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_lattice_anchor anchor;
    cx_predicate predicate;
    cx_err err;
    cx_str text = {(const char *)data, size};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (!cx_failed(cx_lattice_anchor_parse(text, &arena, &anchor, &err)))
        FUZZ_CHECK(anchor.whole && (anchor.head_count == 0 || anchor.heads != NULL));
    if (!cx_failed(cx_predicate_parse(text, &arena, &predicate, &err)))
        FUZZ_CHECK(predicate.pointer.size <= size);
    cx_arena_done(&arena);
    return 0;
}

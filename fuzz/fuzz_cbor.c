/*
 * fuzz_cbor.c - any bytes as CBOR and as each record and payload of the ledger: what is accepted is
 * exactly what the encoder writes.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/records.h"

static void check_same(cx_bytes bytes, const cx_buf *out)
{
    FUZZ_CHECK(!out->failed);
    FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
    FUZZ_CHECK(!cx_failed(cx_cbor_check(bytes, NULL)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cx_bytes bytes = {data, size};
    cx_arena arena;
    cx_buf out;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    if (cx_failed(cx_cbor_check(bytes, &err)))
        FUZZ_CHECK(err.tag != NULL && strcmp(err.tag, "NonCanonical") == 0 && err.offset <= size);
    for (size_t i = 0; i < RECORD_FORMAT_COUNT; i++) {
        cx_buf_clear(&out);
        if (record_formats[i](bytes, &arena, &out))
            check_same(bytes, &out);
    }
    for (int kind = CX_ENTRY_WRITE; kind < CX_ENTRY_OTHER; kind++) {
        cx_buf_clear(&out);
        if (kind != CX_ENTRY_TOMBSTONE && kind != CX_ENTRY_GC && kind != CX_ENTRY_MIGRATION &&
            again_payload((cx_entry_kind)kind, bytes, &arena, &out))
            check_same(bytes, &out);
    }
    cx_buf_done(&out);
    cx_arena_done(&arena);
    return 0;
}

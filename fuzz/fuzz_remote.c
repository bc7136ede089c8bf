/*
 * fuzz_remote.c - any bytes as a request to the writer of a home, or as an answer to the call that
 * the first byte names: what decodes encodes to the same bytes.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "socket/remote_wire.h"

static void try_request(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_remote_request request;
    cx_err err = {0};
    if (cx_failed(cx_remote_request_decode(bytes, arena, &request, &err))) {
        FUZZ_CHECK(err.code == CX_E_NOMEM || strcmp(err.tag, "NonCanonical") == 0);
        return;
    }
    FUZZ_CHECK(request.op > 0 && request.op < CX_REMOTE_OP_END);
    FUZZ_CHECK(request.key.size <= CX_KEY_SIZE_MAX && request.from.size <= CX_KEY_SIZE_MAX);
    cx_buf_clear(out);
    cx_remote_request_encode(&request, out);
    FUZZ_CHECK(!out->failed);
    FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
}

static void try_answer(cx_bytes bytes, cx_remote_op op, cx_arena *arena, cx_buf *out)
{
    cx_remote_answer answer, again;
    if (cx_failed(cx_remote_answer_decode(bytes, op, arena, &answer, NULL)))
        return;
    cx_buf_clear(out);
    cx_remote_answer_encode(&answer, op, out);
    FUZZ_CHECK(!out->failed);
    if (!answer.failed) {
        FUZZ_CHECK(out->size == bytes.size && memcmp(out->data, bytes.data, out->size) == 0);
        return;
    }
    /* An error's text is made plain; then it stays as it is. */
    FUZZ_CHECK(answer.err.code != CX_OK);
    FUZZ_CHECK(!cx_failed(cx_remote_answer_decode(cx_buf_bytes(out), op, arena, &again, NULL)));
    FUZZ_CHECK(strcmp(again.err.message, answer.err.message) == 0);
    FUZZ_CHECK(again.err.tag == answer.err.tag && again.err.code == answer.err.code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_buf out;
    if (size == 0)
        return 0;
    cx_bytes bytes = cx_bytes_from(data + 1, size - 1);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    if (data[0] == 0 || data[0] >= CX_REMOTE_OP_END)
        try_request(bytes, &arena, &out);
    else
        try_answer(bytes, (cx_remote_op)data[0], &arena, &out);
    cx_buf_done(&out);
    cx_arena_done(&arena);
    return 0;
}

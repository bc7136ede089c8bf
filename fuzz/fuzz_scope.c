/*
 * fuzz_scope.c - any bytes as a scope, and as the data of a memory of each type: what decodes has
 * one spelling, and no scope without a signature holds.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "memory/forms.h"
#include "proof/scope.h"

static cx_status some_key(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err)
{
    (void)arg, (void)agent, (void)err;
    memset(out, 0x5a, sizeof *out);
    *out_found = true;
    return CX_SUCCESS;
}

static void check_scope(cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_scope scope;
    cx_err err;
    cx_scope_use granted;
    cx_finding finding;
    if (cx_failed(cx_scope_decode(bytes, arena, &scope, &err)))
        return;
    cx_buf_clear(out);
    cx_scope_encode(&scope, out);
    FUZZ_CHECK(cx_str_eq(cx_buf_str(out), cx_bytes_str(bytes)));
    const cx_scope_check check = {.actor = scope.actor, .key = some_key};
    FUZZ_CHECK(!cx_failed(cx_scope_verify(bytes, &check, arena, &granted, &finding, &err)));
    FUZZ_CHECK(finding.verdict != CX_HOLDS && finding.reason != NULL);
}

static void check_data(uint8_t type, cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_data data, again;
    cx_json json;
    cx_forms forms;
    cx_err err;
    if (cx_failed(cx_data_decode(type, bytes, arena, &data, &err)))
        return;
    cx_buf_clear(out);
    cx_data_encode(&data, out);
    FUZZ_CHECK(cx_str_eq(cx_buf_str(out), cx_bytes_str(bytes)));
    FUZZ_CHECK(!cx_failed(cx_forms_render(&data, arena, &forms, &err)));
    FUZZ_CHECK(!cx_failed(cx_forms_check(&forms, &err)));
    if (cx_failed(cx_data_check(&data, &err)))
        return;
    FUZZ_CHECK(!cx_failed(cx_data_to_json(&data, arena, &json, &err)));
    FUZZ_CHECK(!cx_failed(cx_data_from_json(type, &json, arena, &again, &err)));
    cx_buf_clear(out);
    cx_data_encode(&again, out);
    FUZZ_CHECK(cx_str_eq(cx_buf_str(out), cx_bytes_str(bytes)));
}

/* A first byte of 1 to 9 names a type, and data follows; else all of it is a scope. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    if (size != 0 && data[0] >= CX_TYPE_MIN && data[0] <= CX_TYPE_MAX)
        check_data(data[0], (cx_bytes){data + 1, size - 1}, &arena, &out);
    else
        check_scope((cx_bytes){data, size}, &arena, &out);
    cx_buf_done(&out);
    cx_arena_done(&arena);
    return 0;
}

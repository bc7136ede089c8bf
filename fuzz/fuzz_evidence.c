/*
 * fuzz_evidence.c - any bytes as an evidence file, and as the data of one: what decodes encodes to
 * the same bytes, its page is the same each time, and checking never says `holds` for what nothing
 * trusted bears.
 */
#include <string.h>

#include "evidence/evidence.h"
#include "fuzz/fuzz.h"

static void try_data(cx_bytes bytes, cx_arena *arena)
{
    cx_evidence evidence;
    cx_buf again, file, more;
    cx_finding finding;
    cx_err err;
    if (cx_failed(cx_evidence_decode(bytes, arena, &evidence, NULL)))
        return;
    cx_buf_init(&again, cx_alloc_default());
    cx_buf_init(&file, cx_alloc_default());
    cx_buf_init(&more, cx_alloc_default());
    FUZZ_CHECK(!cx_failed(cx_evidence_encode(&evidence, &again, &err)));
    FUZZ_CHECK(again.size == bytes.size && memcmp(again.data, bytes.data, again.size) == 0);
    FUZZ_CHECK(!cx_failed(cx_evidence_write(&evidence, &file, &err)));
    /* Nothing of the data is markup: the page has one script element, the block. */
    cx_str text = cx_buf_str(&file);
    const char *script = memmem(text.data, text.size, "<script", 7);
    FUZZ_CHECK(script != NULL);
    size_t left = (size_t)(text.data + text.size - (script + 7));
    FUZZ_CHECK(memmem(script + 7, left, "<script", 7) == NULL);
    FUZZ_CHECK(!cx_failed(cx_evidence_read(cx_buf_bytes(&file), arena, &evidence, &finding, &err)));
    FUZZ_CHECK(finding.verdict == CX_HOLDS);
    cx_buf_done(&again);
    cx_buf_done(&file);
    cx_buf_done(&more);
}

static void try_check(cx_bytes bytes, cx_arena *arena)
{
    static cx_evidence_result result;
    const cx_check_options options = {.require = CX_REQUIRE_ANCHORED};
    cx_buf out;
    cx_err err;
    if (cx_failed(cx_evidence_check(bytes, &options, arena, &result, &err)))
        return;
    FUZZ_CHECK(result.finding.verdict != CX_HOLDS);
    FUZZ_CHECK(result.finding.reason != NULL);
    cx_buf_init(&out, cx_alloc_default());
    cx_evidence_write_text(&result, CX_STR("file"), true, &out);
    cx_evidence_write_json(&result, CX_STR("file"), &out);
    FUZZ_CHECK(!cx_failed(cx_buf_check(&out, NULL)));
    cx_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    try_data(cx_bytes_from(data, size), &arena);
    try_check(cx_bytes_from(data, size), &arena);
    cx_arena_done(&arena);
    return 0;
}

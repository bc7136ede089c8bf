/*
 * test_evidence_make.c - what only a reader of traces can say about an evidence file: whether the
 * bytes that are shown as signed are those of the trace that was recorded.
 */
#include "provenance/evidence_make.h"

#include "base/io.h"
#include "tests/test.h"

static bool has_limit(const cx_evidence_result *result)
{
    for (size_t i = 0; i < result->limit_count; i++)
        if (result->limits[i] == cx_evidence_limit_canonical)
            return true;
    return false;
}

/* The file as it is, or with one letter of the recorded trace changed without its checks. */
static void try_file(bool changed)
{
    static const cx_check_options nothing = {.require = CX_REQUIRE_SELF_CONSISTENT};
    static cx_evidence_result result;
    cx_arena arena;
    cx_buf file;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&file, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), CX_TEST_ROOT "/vectors/evidence/trace.cxe",
                                 CX_EVIDENCE_FILE_MAX, &file, &err),
                 &err);
    CHECK_STATUS(cx_evidence_check(cx_buf_bytes(&file), &nothing, &arena, &result, &err), &err);
    CHECK(result.finding.verdict == CX_HOLDS && has_limit(&result));
    CHECK(result.evidence.trace_count == 1);
    cx_bytes payload = result.evidence.entries[result.evidence.traces[0].entry].payload;
    uint8_t *at = payload.size == 0 ? NULL : memmem(payload.data, payload.size, " says", 5);
    CHECK(at != NULL);
    if (changed && at != NULL)
        at[1] = 'S';
    CHECK_STATUS(cx_evidence_check_traces(&result, &arena, &err), &err);
    CHECK(!has_limit(&result));
    CHECK(result.finding.verdict == (changed ? CX_BROKEN : CX_HOLDS));
    if (changed)
        CHECK_STR(cx_str_z(result.finding.reason), "CanonicalMismatch");
    cx_buf_done(&file);
    cx_arena_done(&arena);
}

CX_TEST(decisions_shown_are_those_that_were_recorded)
{
    try_file(false);
    try_file(true);
}

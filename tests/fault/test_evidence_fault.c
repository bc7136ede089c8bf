/*
 * test_evidence_fault.c - evidence files without memory: the n-th allocation fails, once and from
 * then on.  Each time the answer is "out of memory", or the very answer of an undisturbed run: a
 * file must never look broken, or like another page, because memory ran out.
 */
#include "base/alloc.h"
#include "base/io.h"
#include "evidence/evidence.h"
#include "tests/support/fault.h"
#include "tests/test.h"

static cx_status check(cx_bytes file, const cx_alloc *alloc, cx_evidence_result *out, cx_err *err)
{
    static const cx_check_options nothing = {.require = CX_REQUIRE_SELF_CONSISTENT};
    cx_arena arena;
    cx_arena_init(&arena, alloc, 0);
    cx_status status = cx_evidence_check(file, &nothing, &arena, out, err);
    cx_arena_done(&arena);
    return status;
}

static cx_status write_again(cx_bytes file, const cx_alloc *alloc, bool *out_same, cx_err *err)
{
    cx_arena arena;
    cx_buf out;
    cx_evidence evidence;
    cx_finding finding;
    cx_arena_init(&arena, alloc, 0);
    cx_buf_init(&out, alloc);
    cx_status status = cx_evidence_read(file, &arena, &evidence, &finding, err);
    if (!cx_failed(status) && finding.verdict == CX_HOLDS)
        status = cx_evidence_write(&evidence, &out, err);
    *out_same =
        out.size == file.size && out.size != 0 && memcmp(out.data, file.data, out.size) == 0;
    cx_buf_done(&out);
    cx_arena_done(&arena);
    return status;
}

CX_TEST(evidence_without_memory)
{
    static cx_evidence_result result;
    cx_buf file;
    cx_err err = {0};
    cx_buf_init(&file, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), CX_TEST_ROOT "/vectors/evidence/memory.cxe",
                                 CX_EVIDENCE_FILE_MAX, &file, &err),
                 &err);
    for (unsigned mode = 0; mode < 4; mode++) {
        bool fired = true;
        for (uint64_t n = 1; fired && n < 100000; n++) {
            fault_alloc memory;
            bool same = true;
            fault_alloc_init(&memory, n, mode & 1);
            result.finding.verdict = CX_HOLDS;
            cx_status status = mode < 2
                                   ? check(cx_buf_bytes(&file), &memory.alloc, &result, &err)
                                   : write_again(cx_buf_bytes(&file), &memory.alloc, &same, &err);
            fired = atomic_load(&memory.fired) != 0;
            CHECK(status.code == CX_E_NOMEM || status.code == CX_OK);
            CHECK(status.code == CX_E_NOMEM || (result.finding.verdict == CX_HOLDS && same));
            CHECK_INT(atomic_load(&memory.live_bytes), 0);
            if (fired && status.code != CX_E_NOMEM && status.code != CX_OK)
                break;
        }
        CHECK(!fired);
    }
    cx_buf_done(&file);
}

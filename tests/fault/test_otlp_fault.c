/*
 * test_otlp_fault.c - requests of exporters without memory: the n-th allocation fails, once and
 * from then on, for every n until nothing fires.  A record is never counted as faulty because there
 * was no memory to look at it, a branch is never shorter, and nothing leaks.
 */
#include "base/alloc.h"
#include "import/otlp_scan.h"
#include "recorder/otlp_index.h"
#include "server/feed/external.h"
#include "tests/support/fault.h"
#include "tests/support/recorder_fixture.h"

/* Ids in base64, which needs memory to be read. */
static const char request_text[] =
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
    "\"stringValue\":\"shop\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"x\"},\"spans\":["
    "{\"traceId\":\"CvdlGRbNQ92ESOshHIAxnA==\",\"spanId\":\"APBnqgupArc=\",\"name\":\"\\u00fc\","
    "\"startTimeUnixNano\":\"17\"},{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":"
    "\"00f067aa0ba902b8\",\"parentSpanId\":\"00f067aa0ba902b7\",\"startTimeUnixNano\":\"19\"},"
    "{\"traceId\":\"no\"}]}]}]}";

static cx_status scan(const cx_alloc *alloc, size_t *out_faults, cx_err *err)
{
    cx_arena arena;
    cx_otlp_request request = {.count = 0};
    cx_arena_init(&arena, alloc, 0);
    cx_status status = cx_otlp_scan(CX_OTLP_TRACES, true, cx_str_bytes(CX_STR(request_text)),
                                    &arena, &request, err);
    *out_faults = 0;
    for (size_t i = 0; i < request.count; i++)
        *out_faults += request.records[i].fault != CX_OTLP_FINE;
    cx_arena_done(&arena);
    return status;
}

CX_TEST(otlp_scan_without_memory)
{
    bool finished = false;
    uint64_t at = 1;
    for (; !finished && at < 1000; at++)
        for (unsigned onwards = 0; onwards < 2; onwards++) {
            fault_alloc memory;
            cx_err err = {0};
            size_t faults;
            fault_alloc_init(&memory, at, onwards != 0);
            cx_status status = scan(&memory.alloc, &faults, &err);
            finished = atomic_load(&memory.fired) == 0;
            if (cx_failed(status))
                CHECK_INT(status.code, CX_E_NOMEM);
            else
                CHECK_INT(faults, 1);
            CHECK_INT(atomic_load(&memory.live_bytes), 0);
        }
    CHECK(finished && at > 3);
}

/* The home has its own memory: what fails is the making of the branch. */
static cx_status branch(fixture *s, const cx_alloc *alloc, size_t *out_size, cx_err *err)
{
    const cx_external_options wanted = {.branch = CX_STR("otel")};
    cx_buf lines;
    cx_buf_init(&lines, alloc);
    cx_status status = cx_external_lines(s->home, &wanted, &lines, err);
    *out_size = lines.size;
    cx_buf_done(&lines);
    return status;
}

CX_TEST(otlp_branch_without_memory)
{
    fixture s;
    cx_otlp_request request;
    cx_otlp_item items[2];
    cx_otlp_stored kept;
    size_t size, expected;
    bool finished = false;
    uint64_t at = 1;
    fixture_init(&s, "otlp-fault", NULL);
    cx_bytes text = cx_str_bytes(CX_STR(request_text));
    CHECK_STATUS(cx_otlp_scan(CX_OTLP_TRACES, true, text, &s.arena, &request, &s.err), &s.err);
    REQUIRE(request.count == 3);
    for (uint32_t i = 0; i < 2; i++)
        items[i] = (cx_otlp_item){.trace_id = request.records[i].trace_id,
                                  .span_id = request.records[i].span_id,
                                  .content = request.records[i].content,
                                  .index = i};
    const cx_otlp_delivery delivery = {.is_json = true,
                                       .request = text,
                                       .sender = CX_STR("open"),
                                       .items = items,
                                       .item_count = 2};
    CHECK_STATUS(cx_recorder_otlp_store(s.recorder, &delivery, &kept, &s.err), &s.err);
    CHECK_INT(kept.stored, 2);
    CHECK_STATUS(branch(&s, cx_alloc_default(), &expected, &s.err), &s.err);
    for (; !finished && at < 2000; at++)
        for (unsigned onwards = 0; onwards < 2; onwards++) {
            fault_alloc memory;
            cx_err err = {0};
            fault_alloc_init(&memory, at, onwards != 0);
            cx_status status = branch(&s, &memory.alloc, &size, &err);
            finished = atomic_load(&memory.fired) == 0;
            if (cx_failed(status))
                CHECK_INT(status.code, CX_E_NOMEM);
            CHECK_INT(size, cx_failed(status) ? 0 : expected);
            CHECK_INT(atomic_load(&memory.live_bytes), 0);
        }
    CHECK(finished && at > 20);
    fixture_done(&s);
}

/*
 * test_mcpd_fault.c - MCP messages without memory: the n-th allocation fails, once and from then
 * on, for every n until nothing fires.  Each time the outcome is "out of memory", or the very
 * answer of an undisturbed run (said as a refusal where only words were lost); nothing leaks.
 */
#include "base/alloc.h"
#include "server/mcp/mcpd.h"
#include "tests/support/fault.h"
#include "tests/test.h"

static const char *const messages[] = {
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
    "\"2025-06-18\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"c\",\"method\":\"tools/call\",\"params\":{\"name\":\"why\","
    "\"arguments\":{\"node\":\"@a\",\"key\":\"k\",\"priority\":[\"a=1\",\"b=2\"]}}}",
    "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"verify\","
    "\"arguments\":{\"run_id\":\"r\",\"strict\":true}}}",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/read\",\"params\":{\"uri\":"
    "\"cortex://run/r\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"prompts/get\",\"params\":{\"name\":\"explain\","
    "\"arguments\":{\"question\":\"q\"}}}",
    "[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":"
    "\"x\"}]",
    "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"roots\"}}",
};

static cx_status ask(void *arg, cx_str target, cx_arena *arena, cx_mcpd_reply *out, cx_err *err)
{
    static const char body[] = "{\n \"actors\":[1,2,{\"x\":\"\xc3\xa9\"}]}\n";
    (void)arg;
    (void)target;
    out->status = 200;
    out->body = cx_arena_copy_str(arena, CX_STR(body));
    return out->body.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status answer(const char *message, const cx_alloc *alloc, cx_buf *out, cx_err *err)
{
    const cx_mcpd_host host = {.arg = NULL, .ask = ask};
    cx_mcpd_session session = CX_MCPD_SESSION_INIT;
    session.version = message[0] == '[' ? CX_MCPD_2025_03_26 : CX_MCPD_2025_06_18;
    session.begun = true;
    return cx_mcpd_answer(&host, &session, cx_str_z(message), alloc, out, err);
}

/* True when something failed. */
static bool disturbed(const char *message, cx_str expected, uint64_t at, bool onwards)
{
    fault_alloc memory;
    cx_buf out;
    cx_err err = {0};
    fault_alloc_init(&memory, at, onwards);
    cx_buf_init(&out, &memory.alloc);
    cx_status status = answer(message, &memory.alloc, &out, &err);
    if (cx_failed(status))
        CHECK_INT(status.code, CX_E_NOMEM);
    else if (!cx_str_eq(cx_buf_str(&out), expected))
        CHECK(cx_buf_z(&out) != NULL && strstr((const char *)out.data, "out of memory") != NULL);
    cx_buf_done(&out);
    CHECK_INT(atomic_load(&memory.live_bytes), 0);
    CHECK(!atomic_load(&memory.wrong_size));
    return atomic_load(&memory.fired) != 0;
}

CX_TEST(mcp_messages_without_memory)
{
    for (size_t i = 0; i < CX_COUNT_OF(messages); i++) {
        cx_buf expected;
        cx_err err = {0};
        cx_buf_init(&expected, cx_alloc_default());
        CHECK_STATUS(answer(messages[i], cx_alloc_default(), &expected, &err), &err);
        CHECK(expected.size != 0 && memchr(expected.data, '\n', expected.size) == NULL);
        for (int onwards = 0; onwards < 2; onwards++)
            for (uint64_t at = 1; disturbed(messages[i], cx_buf_str(&expected), at, onwards != 0);
                 at++)
                continue;
        cx_buf_done(&expected);
    }
}

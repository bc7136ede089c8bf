/*
 * fuzz_mcpd.c - any bytes as what an MCP client says to our server, line by line: every answer is
 * one line of JSON-RPC, and what is asked of the ledger is always a GET route of the table.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "json/json.h"
#include "server/mcp/mcpd.h"
#include "server/query.h"
#include "server/route.h"

/* Its own input comes back as what the route says. */
static cx_status ask(void *arg, cx_str target, cx_arena *arena, cx_mcpd_reply *out, cx_err *err)
{
    static char room[CX_TARGET_BYTES_MAX + 1];
    static cx_call call;
    const cx_str *rest = arg;
    char allow[64];
    memset(&call, 0, sizeof call);
    FUZZ_CHECK(target.size <= CX_TARGET_BYTES_MAX);
    cx_target_fault fault = cx_target_parse(target, room, &call.target);
    FUZZ_CHECK(fault == CX_TARGET_OK || fault == CX_TARGET_QUERY || fault == CX_TARGET_PATH);
    call.request.method = CX_STR("GET");
    if (fault == CX_TARGET_OK)
        FUZZ_CHECK(cx_route_find(&call, allow, sizeof allow) == CX_ROUTE_FOUND &&
                   strcmp(call.route->method, "GET") == 0);
    out->status = rest->size % 3 == 0 ? 404 : 200;
    out->body = cx_arena_copy_str(arena, *rest);
    return out->body.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static void check_answer(const cx_buf *answer)
{
    cx_arena arena;
    cx_json value;
    if (answer->size == 0)
        return;
    FUZZ_CHECK(memchr(answer->data, '\n', answer->size) == NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    FUZZ_CHECK(!cx_failed(cx_json_parse_text(cx_buf_str(answer), &arena, &value, NULL)));
    FUZZ_CHECK(value.type == CX_JSON_ARRAY || cx_str_is(CX_JSON_GET_STR(&value, "jsonrpc"), "2.0"));
    FUZZ_CHECK(value.type == CX_JSON_ARRAY ||
               (CX_JSON_GET(&value, "result") != NULL) != (CX_JSON_GET(&value, "error") != NULL));
    cx_arena_done(&arena);
}

static void take(const cx_mcpd_host *host, cx_mcpd_session *session, cx_str line)
{
    cx_buf answer;
    cx_arena arena;
    cx_mcpd_inspected look;
    cx_err err;
    cx_buf_init(&answer, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    FUZZ_CHECK(!cx_failed(cx_mcpd_inspect(line, &arena, &look, &err)));
    FUZZ_CHECK(!cx_failed(cx_mcpd_answer(host, session, line, cx_alloc_default(), &answer, &err)));
    check_answer(&answer);
    cx_arena_done(&arena);
    cx_buf_done(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_str rest = {(const char *)data, size};
    cx_mcpd_session session = CX_MCPD_SESSION_INIT;
    const cx_mcpd_host host = {.arg = &rest, .ask = ask};
    session.version = size % 2 == 0 ? CX_MCPD_2025_06_18 : CX_MCPD_2025_03_26;
    session.begun = true;
    while (rest.size != 0) {
        const char *end = memchr(rest.data, '\n', rest.size);
        cx_str line = rest;
        if (end != NULL)
            line.size = (size_t)(end - rest.data);
        rest = cx_str_from(rest.data + line.size, rest.size - line.size);
        take(&host, &session, line);
        if (rest.size != 0)
            rest = cx_str_from(rest.data + 1, rest.size - 1);
    }
    return 0;
}

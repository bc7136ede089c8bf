/*
 * fuzz_mcp.c - any bytes as what an MCP server says: the session ends in one of its ways, nothing
 * is sent after its end, every line that is sent is one message, and answers go only to requests.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "agent/mcp_agent.h"

typedef struct feed {
    cx_str rest;
    size_t sent, requests;
    bool ended;
} feed;

static cx_status send_line(void *arg, cx_bytes line, uint64_t timeout_ms, cx_err *err)
{
    feed *f = arg;
    cx_arena arena;
    cx_json value;
    (void)err;
    FUZZ_CHECK(!f->ended && timeout_ms != 0 && line.size > 2 && line.data[line.size - 1] == '\n');
    FUZZ_CHECK(memchr(line.data, '\n', line.size - 1) == NULL);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    FUZZ_CHECK(!cx_failed(cx_json_parse_text(cx_str_from((const char *)line.data, line.size - 1),
                                             &arena, &value, NULL)));
    FUZZ_CHECK(cx_str_is(CX_JSON_GET_STR(&value, "jsonrpc"), "2.0"));
    cx_arena_done(&arena);
    f->sent++;
    return CX_SUCCESS;
}

static cx_status receive_line(void *arg, size_t limit_bytes, uint64_t timeout_ms, cx_str *out_line,
                              bool *out_end, cx_err *err)
{
    feed *f = arg;
    (void)limit_bytes, (void)timeout_ms, (void)err;
    const char *end = f->rest.size == 0 ? NULL : memchr(f->rest.data, '\n', f->rest.size);
    *out_end = f->rest.size == 0;
    *out_line = f->rest;
    if (end != NULL)
        out_line->size = (size_t)(end - f->rest.data);
    size_t used = out_line->size + (end != NULL);
    f->rest = cx_str_from(f->rest.data + used, f->rest.size - used);
    return CX_SUCCESS;
}

static cx_status on_request(void *arg, cx_str method, const cx_json *params, cx_arena *arena,
                            cx_mcp_answer *out, cx_err *err)
{
    feed *f = arg;
    cx_runner_request request;
    cx_mcp_request_class asks;
    f->requests++;
    CX_TRY(cx_mcp_read_request(method, params, arena, &asks, &request, err));
    if (asks == CX_MCP_REQUEST_UNSUPPORTED)
        return CX_SUCCESS;
    return cx_mcp_make_answer(&request, f->requests % 2 == 0, arena, out, err);
}

static cx_status on_notified(void *arg, cx_str method, const cx_json *params, cx_err *err)
{
    cx_arena arena;
    cx_json payload;
    bool is, shell;
    (void)arg, (void)cx_mcp_read_thread(method, params);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_mcp_read_tool(method, params, &arena, &is, &shell, &payload, err);
    if (!cx_failed(status) && is)
        FUZZ_CHECK(CX_JSON_GET_STR(&payload, "tool").size != 0);
    cx_arena_done(&arena);
    return status;
}

static void note_end(feed *f, const cx_mcp_end *end)
{
    f->ended = end->kind != CX_MCP_OK;
    FUZZ_CHECK(f->ended == (end->message[0] != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    feed f = {.rest = {(const char *)data, size}};
    const cx_mcp_options options = {.alloc = cx_alloc_default(),
                                    .io = cx_io_system(),
                                    .lines = {&f, send_line, receive_line},
                                    .host = {&f, NULL, on_request, on_notified},
                                    .client_name = "cortex",
                                    .client_version = "0"};
    cx_mcp *client = NULL;
    cx_mcp_end end;
    cx_mcp_result result;
    cx_json arguments;
    cx_arena arena;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json_list empty = cx_json_list_begin(&arena);
    FUZZ_CHECK(!cx_failed(cx_json_list_end_object(&empty, &arguments, &err)));
    FUZZ_CHECK(!cx_failed(cx_mcp_open(&options, &client, &err)));
    cx_status status = cx_mcp_connect(client, 3600000, &end, &err);
    if (!cx_failed(status))
        note_end(&f, &end);
    while (!cx_failed(status) && !f.ended) {
        status =
            cx_mcp_call(client, CX_STR("codex"), &arguments, 3600000, &arena, &result, &end, &err);
        if (!cx_failed(status))
            note_end(&f, &end);
    }
    FUZZ_CHECK(!cx_failed(status));
    cx_mcp_close(client);
    cx_arena_done(&arena);
    return 0;
}

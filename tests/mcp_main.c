/*
 * mcp_main.c - cortex-mcp, the client of src/agent/mcp.h as a program: starts a server, shakes
 * hands, prints its tools, and calls one.
 *
 *     cortex-mcp [--call TOOL ARGUMENTS] -- PROGRAM WORDS..
 *
 * The last step prints {"tools":[..]} or the result.  Exit 0, or 1 with a line on standard error.
 */
#include <stdio.h>
#include <string.h>

#include "os/spawn.h"
#include "agent/mcp.h"

enum { WORDS_MAX = 64, TIMEOUT_MS = 60000 };

static cx_status send_line(void *arg, cx_bytes line, uint64_t timeout_ms, cx_err *err)
{
    return cx_spawn_write(arg, line, timeout_ms, err);
}

static cx_status receive_line(void *arg, size_t limit_bytes, uint64_t timeout_ms, cx_str *out_line,
                              bool *out_end, cx_err *err)
{
    return cx_spawn_read_line(arg, limit_bytes, timeout_ms, out_line, out_end, err);
}

static int fail(const char *message)
{
    (void)fprintf(stderr, "cortex-mcp: %s\n", message);
    return 1;
}

static int call(cx_mcp *client, const char *tool, const char *text, cx_arena *arena)
{
    cx_json arguments;
    cx_mcp_result result;
    cx_mcp_end end;
    cx_err err;
    cx_buf out;
    if (cx_failed(cx_json_parse_text(cx_str_z(text), arena, &arguments, &err)) ||
        cx_failed(cx_mcp_call(client, cx_str_z(tool), &arguments, TIMEOUT_MS, arena, &result, &end,
                              &err)))
        return fail(err.message);
    if (end.kind != CX_MCP_OK)
        return fail(end.message);
    if (result.refused)
        return fail(result.message.data);
    cx_buf_init(&out, cx_alloc_default());
    cx_status status = cx_json_write(&out, &result.value, CX_JSON_JCS, &err);
    (void)printf("%.*s\n", (int)out.size, out.data == NULL ? "" : (const char *)out.data);
    cx_buf_done(&out);
    return cx_failed(status) ? fail(err.message) : 0;
}

static int talk(cx_spawn_child *child, const char *tool, const char *text)
{
    const cx_mcp_options options = {.alloc = cx_alloc_default(),
                                    .io = cx_io_system(),
                                    .lines = {child, send_line, receive_line},
                                    .client_name = "cortex",
                                    .client_version = "test"};
    cx_mcp *client = NULL;
    cx_mcp_end end = {CX_MCP_OK, ""};
    cx_arena arena;
    cx_err err;
    int code = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (cx_failed(cx_mcp_open(&options, &client, &err)) ||
        cx_failed(cx_mcp_connect(client, TIMEOUT_MS, &end, &err)))
        code = fail(err.message);
    else if (end.kind != CX_MCP_OK)
        code = fail(end.message);
    else if (tool != NULL)
        code = call(client, tool, text, &arena);
    cx_mcp_close(client);
    cx_arena_done(&arena);
    return code;
}

int main(int argc, char **argv)
{
    const char *tool = NULL, *text = NULL, *words[WORDS_MAX + 1] = {NULL};
    int at = 1;
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_child *child = NULL;
    cx_err err;
    if (argc > 4 && strcmp(argv[1], "--call") == 0) {
        tool = argv[2];
        text = argv[3];
        at = 4;
    }
    if (at >= argc - 1 || strcmp(argv[at], "--") != 0 || argc - at - 1 > WORDS_MAX)
        return fail("expected [--call TOOL ARGUMENTS] -- PROGRAM WORDS..");
    for (int i = at + 1; i < argc; i++)
        words[i - at - 1] = argv[i];
    how.argv = words;
    how.in = CX_SPAWN_IN_PIPE;
    how.out = (cx_spawn_output){.to = CX_SPAWN_OUT_LINES, .file = CX_FILE_NONE};
    if (cx_failed(cx_spawn_open(&how, &child, &err)))
        return fail(err.message);
    int code = talk(child, tool, text);
    return cx_failed(cx_spawn_close(child, 2000, NULL, &err)) ? fail(err.message) : code;
}

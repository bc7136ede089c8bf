/*
 * test_mcp.c - the client's side of MCP (run.md §16) against a table of lines: what is sent, what
 * is answered, and how each error of a server ends.
 */
#include "agent/mcp.h"

#include "agent/mcp_agent.h"
#include "tests/test.h"

/* A server that says its lines one after the other, whatever it is told. */
typedef struct table {
    const char *const *lines; /* ends with NULL */
    size_t next;
    cx_status at_end; /* what reading says after the last line; CX_OK: the stream's end */
    cx_buf sent;      /* all that came, with line feeds */
    cx_buf raw;       /* as evidence: '>' and '<' are not told apart */
    unsigned notified, asked;
    cx_status ask_answers;
    bool grant;
    uint64_t clock_ns, step_ns;
    bool broken_pipe;
} table;

static cx_arena arena;
static cx_err err;

static cx_status send_line(void *arg, cx_bytes line, uint64_t timeout_ms, cx_err *why)
{
    table *t = arg;
    CHECK(timeout_ms > 0 && line.size != 0 && line.data[line.size - 1] == '\n');
    if (t->broken_pipe)
        return cx_fail(why, CX_E_IO, "broken pipe");
    cx_buf_add(&t->sent, line.data, line.size);
    return CX_SUCCESS;
}

static cx_status receive_line(void *arg, size_t limit_bytes, uint64_t timeout_ms, cx_str *out_line,
                              bool *out_end, cx_err *why)
{
    table *t = arg;
    CHECK(timeout_ms > 0);
    t->clock_ns += t->step_ns;
    *out_end = false;
    if (t->lines[t->next] == NULL) {
        if (cx_failed(t->at_end))
            return cx_fail(why, t->at_end.code, "as the table says");
        *out_end = true;
        return CX_SUCCESS;
    }
    *out_line = cx_str_z(t->lines[t->next++]);
    if (out_line->size > limit_bytes)
        return cx_fail(why, CX_E_LIMIT, "too long");
    return CX_SUCCESS;
}

static cx_status on_raw(void *arg, cx_bytes line, cx_err *why)
{
    table *t = arg;
    (void)why;
    cx_buf_add(&t->raw, line.data, line.size);
    cx_buf_add_byte(&t->raw, '\n');
    return CX_SUCCESS;
}

static cx_status on_request(void *arg, cx_str method, const cx_json *params, cx_arena *scratch,
                            cx_mcp_answer *out, cx_err *why)
{
    table *t = arg;
    cx_runner_request request;
    cx_mcp_request_class asks;
    t->asked++;
    CX_TRY(cx_mcp_read_request(method, params, scratch, &asks, &request, why));
    if (cx_failed(t->ask_answers))
        return cx_fail_at(why, t->ask_answers.code, "Shell", CX_NO_OFFSET, "denied outright");
    return asks == CX_MCP_REQUEST_UNSUPPORTED
               ? CX_SUCCESS
               : cx_mcp_make_answer(&request, t->grant, scratch, out, why);
}

static cx_status on_notified(void *arg, cx_str method, const cx_json *params, cx_err *why)
{
    table *t = arg;
    (void)method, (void)params, (void)why;
    t->notified++;
    return CX_SUCCESS;
}

/* A clock that only the table moves. */
static uint64_t table_clock(const cx_io *io)
{
    return ((table *)io->ctx)->clock_ns;
}

typedef struct session {
    table table;
    cx_io io;
    cx_mcp *client;
    cx_mcp_end end;
} session;

static void open_session(session *s, const char *const *lines)
{
    memset(s, 0, sizeof *s);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    s->table.lines = lines;
    cx_buf_init(&s->table.sent, cx_alloc_default());
    cx_buf_init(&s->table.raw, cx_alloc_default());
    s->io = *cx_io_system();
    s->io.monotonic_ns = table_clock;
    s->io.ctx = &s->table;
    const cx_mcp_options options = {.alloc = cx_alloc_default(),
                                    .io = &s->io,
                                    .lines = {&s->table, send_line, receive_line},
                                    .host = {&s->table, on_raw, on_request, on_notified},
                                    .client_name = "cortex",
                                    .client_version = "0"};
    CHECK_STATUS(cx_mcp_open(&options, &s->client, &err), &err);
}

static void close_session(session *s)
{
    cx_mcp_close(s->client);
    cx_buf_done(&s->table.sent);
    cx_buf_done(&s->table.raw);
    cx_arena_done(&arena);
}

#define HELLO                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"," \
    "\"capabilities\":{}}}"
#define TOOLS "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"codex\"}]}}"

static bool has_sent(const session *s, const char *text)
{
    return s->table.sent.size != 0 &&
           memmem(s->table.sent.data, s->table.sent.size, text, strlen(text)) != NULL;
}

/* --- what goes well --------------------------------------------------------------------------- */

CX_TEST(mcp_connects_and_calls)
{
    static const char *const lines[] = {
        HELLO,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"other\"}],"
        "\"nextCursor\":\"p2\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[{\"name\":\"codex\"}]}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"roots/list\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
        "{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"b\"}],\"structuredContent\":"
        "{\"threadId\":\"t\",\"content\":\"c\"}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32602,\"message\":\"no\"}}",
        NULL};
    session s;
    cx_mcp_result result;
    cx_json arguments;
    cx_json_list empty;
    open_session(&s, lines);
    CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
    CHECK_INT(s.end.kind, CX_MCP_OK);
    CHECK(cx_mcp_has_tool(s.client, CX_STR("codex")));
    CHECK(cx_mcp_has_tool(s.client, CX_STR("other")));
    CHECK(!cx_mcp_has_tool(s.client, CX_STR("code")));
    CHECK(has_sent(&s,
                   "{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"initialize\",\"params\":"
                   "{\"capabilities\":{},\"clientInfo\":{\"name\":\"cortex\",\"version\":\"0\"},"
                   "\"protocolVersion\":\"2025-11-25\"}}\n"));
    CHECK(has_sent(&s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"));
    CHECK(has_sent(&s, "\"params\":{\"cursor\":\"p2\"}"));
    empty = cx_json_list_begin(&arena);
    CHECK_STATUS(cx_json_list_end_object(&empty, &arguments, &err), &err);
    CHECK_STATUS(
        cx_mcp_call(s.client, CX_STR("codex"), &arguments, 1000, &arena, &result, &s.end, &err),
        &err);
    CHECK_INT(s.end.kind, CX_MCP_OK);
    CHECK_STR(result.text, "a\nb");
    REQUIRE(result.structured != NULL);
    CHECK_STR(CX_JSON_GET_STR(result.structured, "threadId"), "t");
    CHECK_INT(s.table.notified, 1);
    CHECK_INT(s.table.asked, 1); /* ping is not reported */
    CHECK(has_sent(&s, "{\"id\":\"p\",\"jsonrpc\":\"2.0\",\"result\":{}}\n"));
    CHECK(has_sent(&s, "{\"error\":{\"code\":-32601,"));
    CHECK_STATUS(
        cx_mcp_call(s.client, CX_STR("codex"), &arguments, 1000, &arena, &result, &s.end, &err),
        &err);
    CHECK(s.end.kind == CX_MCP_OK && result.refused && result.code == -32602);
    CHECK_STR(result.message, "no");
    /* Evidence has every line of both sides. */
    size_t count = 0;
    for (size_t i = 0; i < s.table.raw.size; i++)
        count += s.table.raw.data[i] == '\n';
    CHECK_INT(count, 8 + 8); /* 6 requests and notifications of ours, 2 answers */
    close_session(&s);
}

/* --- the stateless revision (M4) -------------------------------------------------------------- */

#define ERROR(id, code) \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"error\":{\"code\":" #code ",\"message\":\"no\"}}"
#define RESULT(id, members) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"result\":{" members "}}"
#define DISCOVERED RESULT(2, "\"supportedVersions\":[\"2027-01-01\",\"2026-07-28\"]")
#define STATELESS_TOOLS RESULT(3, "\"resultType\":\"complete\",\"tools\":[{\"name\":\"codex\"}]")
#define META                                                                          \
    "\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{},"                   \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"cortex\",\"version\":\"0\"}," \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"
#define INPUT(id, requests) \
    RESULT(id, "\"resultType\":\"input_required\"," requests "\"requestState\":\"s\"")
#define ASKED_EXEC                                                             \
    "\"inputRequests\":{\"q\":{\"method\":\"elicitation/create\",\"params\":{" \
    "\"codex_elicitation\":\"exec-approval\",\"codex_command\":[\"ls\"]}}},"

static void call_codex(session *s, cx_mcp_result *result)
{
    cx_json arguments;
    cx_json_list empty = cx_json_list_begin(&arena);
    CHECK_STATUS(cx_json_list_end_object(&empty, &arguments, &err), &err);
    CHECK_STATUS(
        cx_mcp_call(s->client, CX_STR("codex"), &arguments, 1000, &arena, result, &s->end, &err),
        &err);
}

CX_TEST(mcp_stateless_server)
{
    static const char *const refusals[] = {ERROR(1, -32601), ERROR(1, -32022)};
    for (size_t i = 0; i < CX_COUNT_OF(refusals); i++) {
        const char *const lines[] = {
            refusals[i],
            DISCOVERED,
            STATELESS_TOOLS,
            INPUT(4, ASKED_EXEC),
            INPUT(5, ""),
            RESULT(6,
                   "\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]"),
            NULL};
        session s;
        cx_mcp_result result;
        open_session(&s, lines);
        s.table.grant = true;
        CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
        CHECK_INT(s.end.kind, CX_MCP_OK);
        CHECK(cx_mcp_has_tool(s.client, CX_STR("codex")));
        CHECK(has_sent(&s, "{\"id\":2,\"jsonrpc\":\"2.0\",\"method\":\"server/discover\","
                           "\"params\":{" META "}}\n"));
        CHECK(has_sent(&s, "\"method\":\"tools/list\",\"params\":{" META "}}\n"));
        CHECK(!has_sent(&s, "notifications/initialized"));
        call_codex(&s, &result);
        CHECK_INT(s.end.kind, CX_MCP_OK);
        CHECK_STR(result.text, "x");
        CHECK_INT(s.table.asked, 1);
        CHECK(has_sent(&s, "\"method\":\"tools/call\",\"params\":{" META ",\"arguments\":{},"
                           "\"inputResponses\":{\"q\":{\"action\":\"accept\",\"content\":{},"
                           "\"decision\":\"approved\"}},\"name\":\"codex\","
                           "\"requestState\":\"s\"}}\n"));
        CHECK(has_sent(&s, "\"arguments\":{},\"name\":\"codex\",\"requestState\":\"s\"}}\n"));
        close_session(&s);
    }
}

CX_TEST(mcp_stateless_server_that_is_wrong)
{
    static const char *const hellos[] = {ERROR(2, -32601), RESULT(2, ""),
                                         RESULT(2, "\"supportedVersions\":[]"),
                                         RESULT(2, "\"supportedVersions\":[7,\"2027-01-01\"]"),
                                         RESULT(2, "\"supportedVersions\":\"2026-07-28\"")};
    static const char *const answers[] = {
        RESULT(4, "\"resultType\":\"input_required\""),
        RESULT(4, "\"resultType\":\"input_required\",\"inputRequests\":[]"),
        RESULT(4, "\"resultType\":\"other\""), INPUT(4, "\"inputRequests\":{\"q\":7},"),
        INPUT(4, "\"inputRequests\":{\"q\":{\"method\":\"roots/list\"}},")};
    cx_mcp_result result;
    session s;
    for (size_t i = 0; i < CX_COUNT_OF(hellos); i++) {
        const char *const lines[] = {ERROR(1, -32601), hellos[i], STATELESS_TOOLS, NULL};
        open_session(&s, lines);
        CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
        CHECK(s.end.kind == CX_MCP_BROKEN && strstr(s.end.message, "initialize") != NULL);
        close_session(&s);
    }
    for (size_t i = 0; i < CX_COUNT_OF(answers); i++) {
        const char *const lines[] = {ERROR(1, -32601), DISCOVERED, STATELESS_TOOLS, answers[i],
                                     NULL};
        open_session(&s, lines);
        CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
        CHECK_INT(s.end.kind, CX_MCP_OK);
        call_codex(&s, &result);
        if (s.end.kind != CX_MCP_BROKEN)
            cx_test_fail(__FILE__, __LINE__, "row %zu ends %d", i, (int)s.end.kind);
        close_session(&s);
    }
    /* Another error of initialize is its answer; and with initialize there is no such result. */
    const char *const refused[] = {ERROR(1, -32603), NULL};
    open_session(&s, refused);
    CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
    CHECK(s.end.kind == CX_MCP_BROKEN && !has_sent(&s, "server/discover"));
    close_session(&s);
    const char *const before[] = {HELLO, TOOLS, INPUT(3, ASKED_EXEC), NULL};
    open_session(&s, before);
    CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
    call_codex(&s, &result);
    CHECK(s.end.kind == CX_MCP_OK && s.table.asked == 0);
    close_session(&s);
}

/* A call that never ends asking, and a host that will not be asked. */
CX_TEST(mcp_stateless_rounds_are_limited)
{
    static char text[CX_MCP_ROUNDS_MAX + 2][160];
    const char *lines[CX_MCP_ROUNDS_MAX + 6] = {ERROR(1, -32601), DISCOVERED, STATELESS_TOOLS};
    cx_mcp_result result;
    session s;
    for (size_t i = 0; i < CX_COUNT_OF(text); i++) {
        (void)snprintf(text[i], sizeof text[i],
                       "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"result\":{\"resultType\":"
                       "\"input_required\",\"requestState\":\"s\"}}",
                       i + 4);
        lines[3 + i] = text[i];
    }
    open_session(&s, lines);
    CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
    call_codex(&s, &result);
    CHECK_INT(s.end.kind, CX_MCP_BROKEN);
    CHECK_INT(s.table.next, 3 + CX_MCP_ROUNDS_MAX);
    close_session(&s);
    const char *const asking[] = {ERROR(1, -32601), DISCOVERED, STATELESS_TOOLS,
                                  INPUT(4, ASKED_EXEC), NULL};
    cx_json arguments;
    open_session(&s, asking);
    s.table.ask_answers = (cx_status){CX_E_DENIED};
    CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
    cx_json_list empty = cx_json_list_begin(&arena);
    CHECK_STATUS(cx_json_list_end_object(&empty, &arguments, &err), &err);
    CHECK(cx_mcp_call(s.client, CX_STR("codex"), &arguments, 1000, &arena, &result, &s.end, &err)
              .code == CX_E_DENIED);
    close_session(&s);
}

/* --- what servers do wrong -------------------------------------------------------------------- */

typedef struct wrong {
    const char *line; /* in place of the answer to initialize */
    cx_mcp_end_kind kind;
} wrong;

/* mcp.h M1, M2 */
CX_TEST(mcp_wrong_messages_end_the_session)
{
    static const wrong rows[] = {
        {"", CX_MCP_BROKEN},
        {"hello", CX_MCP_BROKEN},
        {"[]", CX_MCP_BROKEN},
        {"[" HELLO "]", CX_MCP_BROKEN},
        {"{}", CX_MCP_BROKEN},
        {HELLO HELLO, CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":2.0,\"id\":1,\"result\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":9007199254740992,\"method\":\"ping\"}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":\"ping\"}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"result\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":7}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"no\"}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"result\":{}}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}", CX_MCP_BROKEN},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", CX_MCP_BROKEN}, /* no version */
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1999-01-01\"}}",
         CX_MCP_BROKEN},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        const char *const lines[] = {rows[i].line, TOOLS, NULL};
        session s;
        open_session(&s, lines);
        CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
        if (s.end.kind != rows[i].kind || s.end.message[0] == 0)
            cx_test_fail(__FILE__, __LINE__, "row %zu '%s' ends %d '%s'", i, rows[i].line,
                         (int)s.end.kind, s.end.message);
        /* What has ended stays so. */
        size_t sent = s.table.sent.size;
        CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
        CHECK(s.end.kind == CX_MCP_BROKEN && s.table.sent.size == sent);
        close_session(&s);
    }
}

CX_TEST(mcp_wrong_tools)
{
    static const char *const rows[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{}]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[7]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":1,\"message\":\"x\"}}",
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        const char *const lines[] = {HELLO, rows[i], NULL};
        session s;
        open_session(&s, lines);
        CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
        CHECK_INT(s.end.kind, CX_MCP_BROKEN);
        close_session(&s);
    }
}

/* Pages without an end. */
CX_TEST(mcp_endless_pages)
{
    static char text[CX_MCP_PAGES_MAX + 4][160];
    const char *lines[CX_MCP_PAGES_MAX + 4] = {HELLO};
    session s;
    for (size_t i = 1; i + 1 < CX_COUNT_OF(lines); i++) {
        (void)snprintf(text[i], sizeof text[i],
                       "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"result\":{\"tools\":[],\"nextCursor\":"
                       "\"x\"}}",
                       i + 1);
        lines[i] = text[i];
    }
    lines[CX_COUNT_OF(lines) - 1] = NULL;
    open_session(&s, lines);
    CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
    CHECK_INT(s.end.kind, CX_MCP_BROKEN);
    CHECK_INT(s.table.next, 1 + CX_MCP_PAGES_MAX);
    close_session(&s);
}

CX_TEST(mcp_ends_of_the_stream)
{
    static const struct {
        cx_code code;
        cx_mcp_end_kind kind;
    } rows[] = {{CX_OK, CX_MCP_BROKEN},
                {CX_E_TIMEOUT, CX_MCP_TIMED_OUT},
                {CX_E_BUSY, CX_MCP_CANCELLED},
                {CX_E_LIMIT, CX_MCP_TOO_MUCH},
                {CX_E_IO, CX_MCP_BROKEN}};
    static const char *const lines[] = {HELLO, NULL};
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        session s;
        open_session(&s, lines);
        s.table.at_end = (cx_status){rows[i].code};
        CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
        CHECK_INT(s.end.kind, rows[i].kind);
        close_session(&s);
    }
    session s;
    open_session(&s, lines);
    s.table.broken_pipe = true;
    CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
    CHECK_INT(s.end.kind, CX_MCP_BROKEN);
    close_session(&s);
}

/* Messages that keep coming do not keep the clock from running out. */
/* mcp.h M3 */
CX_TEST(mcp_notifications_do_not_extend_the_time)
{
    static const char note[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}";
    const char *lines[2001];
    session s;
    for (size_t i = 0; i < 2000; i++)
        lines[i] = note;
    lines[2000] = NULL;
    open_session(&s, lines);
    s.table.step_ns = 1000000; /* one a millisecond */
    CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
    CHECK_INT(s.end.kind, CX_MCP_TIMED_OUT);
    CHECK_INT(s.table.notified, 1000);
    close_session(&s);
}

/* --- requests of the server ------------------------------------------------------------------- */

#define ASK_EXEC                                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\",\"params\":{" \
    "\"codex_elicitation\":\"exec-approval\",\"codex_command\":[\"rm\",\"-rf\",\"x\"]}}"

CX_TEST(mcp_approvals)
{
    static const struct {
        const char *line;
        bool grant;
        const char *sent;
    } rows[] = {
        {ASK_EXEC, false, "\"result\":{\"action\":\"decline\",\"decision\":\"denied\"}"},
        {ASK_EXEC, true,
         "\"result\":{\"action\":\"accept\",\"content\":{},\"decision\":\"approved\"}"},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"applyPatchApproval\",\"params\":{}}", false,
         "\"decision\":\"denied\""},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"execCommandApproval\"}", false,
         "\"decision\":\"denied\""},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\",\"params\":{}}", true,
         "\"code\":-32601"},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\",\"params\":[]}", true,
         "\"code\":-32601"},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\"}", false,
         "\"code\":-32601"},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\"}", true,
         "\"code\":-32603"},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"}", true, "\"code\":-32601"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        const char *const lines[] = {rows[i].line, HELLO, TOOLS, NULL};
        session s;
        open_session(&s, lines);
        s.table.grant = rows[i].grant;
        CHECK_STATUS(cx_mcp_connect(s.client, 1000, &s.end, &err), &err);
        CHECK_INT(s.end.kind, CX_MCP_OK);
        if (!has_sent(&s, rows[i].sent))
            cx_test_fail(__FILE__, __LINE__, "row %zu: %.*s", i, (int)s.table.sent.size,
                         (const char *)s.table.sent.data);
        close_session(&s);
    }
}

/* Having asked is a violation: the server hears no, and the host's error comes back. */
CX_TEST(mcp_violation)
{
    static const char *const lines[] = {ASK_EXEC, HELLO, TOOLS, NULL};
    session s;
    open_session(&s, lines);
    s.table.ask_answers = (cx_status){CX_E_DENIED};
    CHECK(cx_mcp_connect(s.client, 1000, &s.end, &err).code == CX_E_DENIED);
    CHECK(err.tag != NULL && strcmp(err.tag, "Shell") == 0);
    CHECK(has_sent(&s, "\"id\":7"));
    close_session(&s);
}

CX_TEST(mcp_requests_read)
{
    static const struct {
        const char *method, *params, *kind, *command;
    } rows[] = {
        {"elicitation/create",
         "{\"codex_elicitation\":\"exec-approval\",\"codex_command\":[\"a\",\"b c\",7]}", "exec",
         "a b c"},
        {"elicitation/create", "{\"codex_elicitation\":\"patch-approval\"}", "patch", ""},
        {"execCommandApproval", "{\"command\":\"ls -l\"}", "exec", "ls -l"},
        {"item/fileChange/requestApproval", "{}", "patch", ""},
        {"sampling/createMessage", "{}", "sampling", ""},
        {"roots/list", "{}", "", ""},
    };
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_json params;
        cx_runner_request request;
        cx_mcp_request_class asks;
        CHECK_STATUS(cx_json_parse_text(cx_str_z(rows[i].params), &arena, &params, &err), &err);
        CHECK_STATUS(
            cx_mcp_read_request(cx_str_z(rows[i].method), &params, &arena, &asks, &request, &err),
            &err);
        CHECK_STR(request.kind, rows[i].kind);
        CHECK_STR(request.command, rows[i].command);
        CHECK((asks == CX_MCP_REQUEST_UNSUPPORTED) == (rows[i].kind[0] == 0));
    }
    cx_arena_done(&arena);
}

CX_TEST(mcp_tools_seen)
{
    static const struct {
        const char *params, *payload;
    } rows[] = {
        {"{\"msg\":{\"type\":\"exec_command_begin\",\"command\":[\"ls\",\"-l\"]}}",
         "{\"command\":\"ls -l\",\"tool\":\"shell\"}"},
        {"{\"msg\":{\"type\":\"patch_apply_begin\",\"changes\":{\"a\":{},\"b\":{}}}}",
         "{\"paths\":[\"a\",\"b\"],\"tool\":\"apply_patch\"}"},
        {"{\"msg\":{\"type\":\"mcp_tool_call_begin\",\"invocation\":{\"server\":\"s\",\"tool\":"
         "\"t\"}}}",
         "{\"name\":\"t\",\"server\":\"s\",\"tool\":\"mcp\"}"},
        {"{\"msg\":{\"type\":\"web_search_begin\"}}", "{\"tool\":\"web_search\"}"},
        {"{\"msg\":{\"type\":\"agent_message\"}}", ""},
        {"{\"msg\":7}", ""},
        {"[]", ""},
    };
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_json params, payload;
        cx_buf text;
        bool is, shell;
        cx_buf_init(&text, cx_alloc_default());
        CHECK_STATUS(cx_json_parse_text(cx_str_z(rows[i].params), &arena, &params, &err), &err);
        CHECK_STATUS(
            cx_mcp_read_tool(CX_STR("codex/event"), &params, &arena, &is, &shell, &payload, &err),
            &err);
        CHECK(is == (rows[i].payload[0] != 0));
        if (is)
            CHECK_STATUS(cx_json_write(&text, &payload, CX_JSON_JCS, &err), &err);
        CHECK_STR(cx_buf_str(&text), rows[i].payload);
        cx_buf_done(&text);
    }
    cx_json params;
    CHECK_STATUS(
        cx_json_parse_text(CX_STR("{\"_meta\":{\"threadId\":\"t1\"},\"msg\":{\"type\":\"x\"}}"),
                           &arena, &params, &err),
        &err);
    CHECK_STR(cx_mcp_read_thread(CX_STR("codex/event"), &params), "t1");
    CHECK_STR(cx_mcp_read_thread(CX_STR("other"), &params), "");
    cx_arena_done(&arena);
}

/*
 * probe_model.c - see probe_model.h: HTTP/1.1 with a connection for each request, and three APIs.
 */
#include "cli/live/probe_model.h"

#include <stdlib.h>
#include <string.h>

#include "os/api.h"

#define CONNECTIONS_MAX 128 /* of one probe */
#define HEAD_MAX ((size_t)64 << 10)
#define BODY_MAX ((size_t)32 << 20)
#define READ_MS 60000
#define SUB_WAIT_MS 30000 /* for the sub-agent, before the main agent gets its last answer */

typedef struct connection {
    cx_probe_model *model;
    cx_socket socket;
    cx_thread thread;
} connection;

struct cx_probe_model {
    const cx_alloc *alloc;
    cx_live_agent agent;
    const char *folder;
    cx_listener listener;
    cx_thread acceptor;
    cx_lock lock; /* of what follows */
    cx_probe_seen seen;
    bool stopping;
    connection *connections; /* CONNECTIONS_MAX */
    size_t count;
};

/* --- HTTP ------------------------------------------------------------------------------------- */

typedef struct request {
    cx_socket socket;
    char method[16];
    char target[4096];
    bool upgrade;
    cx_buf head, body;
} request;

/* The value of a header, lower case; empty when it is absent. */
static void header_value(cx_str head, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    out[0] = 0;
    for (size_t i = 0; i + length + 1 < head.size; i++) {
        if (head.data[i] != '\n' || head.data[i + 1 + length] != ':')
            continue;
        bool same = true;
        for (size_t k = 0; k < length && same; k++)
            same = (head.data[i + 1 + k] | 32) == (name[k] | 32);
        if (!same)
            continue;
        size_t at = i + length + 2, used = 0;
        while (at < head.size && head.data[at] == ' ')
            at++;
        while (at < head.size && head.data[at] != '\r' && head.data[at] != '\n' && used + 1 < size)
            out[used++] = (char)(head.data[at++] | 32);
        out[used] = 0;
        return;
    }
}

static bool read_some(request *r, cx_buf *to, size_t size)
{
    size_t got = 0;
    uint8_t *space = cx_buf_reserve(to, size);
    cx_err err;
    if (space == NULL || cx_failed(cx_net_read(r->socket, space, size, READ_MS, &got, &err)))
        return false;
    cx_buf_advance(to, got);
    return got == size;
}

static bool read_line(request *r, char *out, size_t size)
{
    cx_buf line;
    bool good = true;
    cx_buf_init(&line, r->body.alloc);
    while (good && line.size + 1 < size && (line.size == 0 || line.data[line.size - 1] != '\n'))
        good = read_some(r, &line, 1);
    while (line.size != 0 && (line.data[line.size - 1] == '\n' || line.data[line.size - 1] == '\r'))
        line.size--;
    memcpy(out, line.size == 0 ? (const uint8_t *)"" : line.data, line.size);
    out[line.size] = 0;
    cx_buf_done(&line);
    return good;
}

static bool read_chunks(request *r)
{
    char line[64];
    while (read_line(r, line, sizeof line)) {
        unsigned long size = strtoul(line, NULL, 16);
        if (size == 0)
            return read_line(r, line, sizeof line);
        if (size > BODY_MAX - r->body.size || !read_some(r, &r->body, size) ||
            !read_line(r, line, sizeof line))
            return false;
    }
    return false;
}

static bool read_request(request *r)
{
    char value[64];
    while (r->head.size < 4 || memcmp(r->head.data + r->head.size - 4, "\r\n\r\n", 4) != 0)
        if (r->head.size >= HEAD_MAX || !read_some(r, &r->head, 1))
            return false;
    cx_str head = cx_buf_str(&r->head);
    const char *space = memchr(head.data, ' ', head.size);
    size_t method = space == NULL ? head.size : (size_t)(space - head.data);
    if (method >= sizeof r->method)
        return false;
    memcpy(r->method, head.data, method);
    size_t at = method + 1, used = 0;
    while (at < head.size && strchr(" ?\r\n", head.data[at]) == NULL && used + 1 < sizeof r->target)
        r->target[used++] = head.data[at++];
    header_value(head, "upgrade", value, sizeof value);
    r->upgrade = value[0] != 0;
    header_value(head, "transfer-encoding", value, sizeof value);
    if (strcmp(value, "chunked") == 0)
        return read_chunks(r);
    header_value(head, "content-length", value, sizeof value);
    unsigned long long size = value[0] == 0 ? 0 : strtoull(value, NULL, 10);
    return size <= BODY_MAX && (size == 0 || read_some(r, &r->body, (size_t)size));
}

static void send_answer(request *r, const char *status, const char *type, cx_str body)
{
    cx_buf out;
    cx_err ignored;
    cx_buf_init(&out, r->body.alloc);
    cx_buf_printf(&out,
                  "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: "
                  "close\r\n\r\n",
                  status, type, body.size);
    cx_buf_add_str(&out, body);
    if (!out.failed) {
        cx_status sent = cx_net_write(r->socket, out.data, out.size, READ_MS, &ignored);
        (void)sent; /* the agent has gone: there is no one to tell */
    }
    cx_buf_done(&out);
}

/* --- what the agent has asked ----------------------------------------------------------------- */

typedef enum lane { LANE_NONE, LANE_MAIN, LANE_SUB } lane;

typedef struct turn {
    lane lane;
    unsigned calls; /* that were made in this conversation */
    bool stream;
    bool can_start; /* a sub-agent */
    bool has_tools;
    bool has_main_text, has_sub_text;
    const char *start_tool, *shell_tool;
} turn;

/* The newest mark of a user's text decides. */
static void look_for_marks(turn *t, cx_str text)
{
    static const char *const marks[] = {NULL, CX_PROBE_MAIN, CX_PROBE_SUB};
    for (size_t at = 0; at < text.size; at++)
        for (size_t i = 1; i < CX_COUNT_OF(marks); i++)
            if (cx_str_starts(cx_str_from(text.data + at, text.size - at), cx_str_z(marks[i])))
                t->lane = (lane)i;
}

static void look_at_texts(turn *t, const cx_json *content)
{
    if (content == NULL)
        return;
    if (content->type == CX_JSON_STRING)
        look_for_marks(t, cx_json_text(content));
    for (uint32_t i = 0; content->type == CX_JSON_ARRAY && i < content->count; i++) {
        cx_str text = CX_JSON_GET_STR(&content->items[i], "text");
        if (text.data != NULL)
            look_for_marks(t, text);
    }
}

/* Items of a conversation: messages, inputs or contents. */
static void look_at_item(turn *t, const cx_json *item)
{
    const cx_json *content = CX_JSON_GET(item, "content"), *parts = CX_JSON_GET(item, "parts");
    if (cx_str_is(CX_JSON_GET_STR(item, "role"), "user")) {
        look_at_texts(t, content);
        look_at_texts(t, parts);
    }
    if (cx_str_is(CX_JSON_GET_STR(item, "type"), "function_call"))
        t->calls++;
    const cx_json *list = content != NULL ? content : parts;
    for (uint32_t i = 0; list != NULL && list->type == CX_JSON_ARRAY && i < list->count; i++)
        t->calls += cx_str_is(CX_JSON_GET_STR(&list->items[i], "type"), "tool_use") ||
                    CX_JSON_GET(&list->items[i], "functionCall") != NULL;
}

static bool mentions(cx_str body, const char *quoted)
{
    cx_str word = cx_str_z(quoted);
    for (size_t at = 0; at + word.size <= body.size; at++)
        if (memcmp(body.data + at, word.data, word.size) == 0)
            return true;
    return false;
}

static bool read_turn(const cx_probe_model *m, const request *r, cx_arena *arena, turn *out)
{
    static const char *const lists[] = {"messages", "input", "contents"};
    cx_json body;
    cx_err ignored;
    cx_str text = cx_buf_str(&r->body);
    *out = (turn){.lane = LANE_NONE};
    if (cx_failed(cx_json_parse_text(text, arena, &body, &ignored)))
        return false;
    for (size_t k = 0; k < CX_COUNT_OF(lists); k++) {
        const cx_json *list = cx_json_get_typed(&body, cx_str_z(lists[k]), CX_JSON_ARRAY);
        for (uint32_t i = 0; list != NULL && i < list->count; i++)
            look_at_item(out, &list->items[i]);
    }
    const cx_json *stream = CX_JSON_GET(&body, "stream"), *tools = CX_JSON_GET(&body, "tools");
    out->stream = (stream != NULL && stream->type == CX_JSON_TRUE) ||
                  strstr(r->target, "streamGenerateContent") != NULL;
    out->has_tools = tools != NULL && tools->type == CX_JSON_ARRAY && tools->count != 0;
    out->start_tool = m->agent == CX_LIVE_CODEX              ? "spawn_agent"
                      : m->agent == CX_LIVE_GEMINI           ? "invoke_agent"
                      : mentions(text, "\"name\":\"Agent\"") ? "Agent"
                                                             : "Task";
    cx_str quoted = cx_arena_printf(arena, "\"name\":\"%s\"", out->start_tool);
    out->can_start = quoted.data != NULL && mentions(text, quoted.data);
    out->has_main_text = mentions(text, CX_PROBE_MAIN_TEXT);
    out->has_sub_text = mentions(text, CX_PROBE_SUB_TEXT);
    out->shell_tool = mentions(text, "\"exec_command\"") ? "exec_command" : "shell_command";
    return true;
}

/* --- what is answered ------------------------------------------------------------------------- */

/* A call, or text when `tool` is NULL. */
typedef struct reply {
    const char *tool, *space; /* space: Codex's namespace of the tool; NULL = none */
    cx_str arguments;         /* JSON */
} reply;

static cx_str quoted_path(const cx_probe_model *m, const char *name, cx_arena *arena)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_str path = cx_arena_printf(arena, "%s/%s", m->folder, name);
    cx_json_write_str(&text, path.data == NULL ? CX_STR("") : path, CX_JSON_JCS);
    cx_str kept = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return kept;
}

static reply call_that_reads(const cx_probe_model *m, const turn *t, const char *name,
                             cx_arena *arena)
{
    cx_str path = quoted_path(m, name, arena);
    if (m->agent == CX_LIVE_CODEX)
        return (reply){
            t->shell_tool, NULL,
            cx_arena_printf(arena, "{\"%s\":\"cat %s\"}",
                            strcmp(t->shell_tool, "exec_command") == 0 ? "cmd" : "command", name)};
    return (reply){m->agent == CX_LIVE_GEMINI ? "read_file" : "Read", NULL,
                   cx_arena_printf(arena, "{\"file_path\":%s}", path.data)};
}

static reply call_that_starts(const cx_probe_model *m, const turn *t)
{
    if (m->agent == CX_LIVE_CODEX)
        return (reply){t->start_tool, "multi_agent_v1",
                       CX_STR("{\"message\":\"" CX_PROBE_SUB "\"}")};
    if (m->agent == CX_LIVE_GEMINI)
        return (reply){t->start_tool, NULL,
                       CX_STR("{\"agent_name\":\"generalist\",\"prompt\":\"" CX_PROBE_SUB "\"}")};
    return (reply){t->start_tool, NULL,
                   CX_STR("{\"description\":\"probe\",\"prompt\":\"" CX_PROBE_SUB
                          "\",\"subagent_type\":\"general-purpose\",\"run_in_background\":false}")};
}

/* The main agent's last answer ends the session: not before its sub-agent has. */
static void wait_for_sub(cx_probe_model *m)
{
    uint64_t end = cx_io_system()->monotonic_ns(cx_io_system()) + SUB_WAIT_MS * UINT64_C(1000000);
    cx_lock_enter(&m->lock);
    while (!m->stopping && !m->seen.sub_ended && cx_io_system()->monotonic_ns(cx_io_system()) < end)
        cx_lock_wait_for(&m->lock, 200);
    cx_lock_leave(&m->lock);
}

static reply choose_reply(cx_probe_model *m, const turn *t, cx_arena *arena)
{
    reply none = {NULL, NULL, CX_STR("")};
    bool read = t->calls == 0, start = t->lane == LANE_MAIN && t->calls == 1 && t->can_start;
    if (t->lane == LANE_NONE || !t->has_tools)
        return none;
    cx_lock_enter(&m->lock);
    if (t->lane == LANE_MAIN) {
        m->seen.main_asked = true;
        m->seen.main_ended = m->seen.main_ended || t->calls >= 1;
        m->seen.main_ran = m->seen.main_ran || t->has_main_text;
        m->seen.can_start = m->seen.can_start || t->can_start;
    } else {
        m->seen.sub_asked = true;
        m->seen.sub_ended = m->seen.sub_ended || t->calls >= 1;
        m->seen.sub_ran = m->seen.sub_ran || t->has_sub_text;
    }
    cx_lock_wake(&m->lock);
    cx_lock_leave(&m->lock);
    if (read)
        return call_that_reads(m, t, t->lane == LANE_MAIN ? CX_PROBE_MAIN_FILE : CX_PROBE_SUB_FILE,
                               arena);
    if (start)
        return call_that_starts(m, t);
    if (t->lane == LANE_MAIN && t->can_start && m->agent == CX_LIVE_CODEX)
        wait_for_sub(m); /* Codex starts it and goes on */
    return none;
}

/* --- Messages API ----------------------------------------------------------------------------- */

static void add_event(cx_buf *out, const char *name, const char *data)
{
    if (name != NULL)
        cx_buf_printf(out, "event: %s\n", name);
    cx_buf_printf(out, "data: %s\n\n", data);
}

static const char *json_string(cx_str text, cx_arena *arena)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_json_write_str(&out, text, CX_JSON_JCS);
    cx_str kept = cx_arena_copy_str(arena, cx_buf_str(&out));
    cx_buf_done(&out);
    return kept.data == NULL ? "\"\"" : kept.data;
}

#define USAGE                                                                              \
    "\"usage\":{\"input_tokens\":1,\"output_tokens\":1,\"cache_creation_input_tokens\":0," \
    "\"cache_read_input_tokens\":0}"
#define MESSAGE                                                                          \
    "\"id\":\"msg_%u\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"probe\"," \
    "\"stop_sequence\":null," USAGE

static void messages_answer(const turn *t, const reply *a, unsigned number, cx_arena *arena,
                            cx_buf *out)
{
    const char *stop = a->tool == NULL ? "end_turn" : "tool_use";
    if (!t->stream) {
        cx_buf_printf(out, "{" MESSAGE ",\"stop_reason\":\"%s\",\"content\":[", number, stop);
        if (a->tool == NULL)
            cx_buf_add_z(out, "{\"type\":\"text\",\"text\":\"done\"}]}");
        else
            cx_buf_printf(out,
                          "{\"type\":\"tool_use\",\"id\":\"toolu_%u\",\"name\":\"%s\",\"input\":"
                          "%s}]}",
                          number, a->tool, a->arguments.data);
        return;
    }
    cx_str begin = cx_arena_printf(arena,
                                   "{\"type\":\"message_start\",\"message\":{" MESSAGE
                                   ",\"stop_reason\":null,\"content\":[]}}",
                                   number);
    cx_str block =
        a->tool == NULL
            ? CX_STR("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
                     "\"text\",\"text\":\"\"}}")
            : cx_arena_printf(arena,
                              "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"
                              "\"type\":\"tool_use\",\"id\":\"toolu_%u\",\"name\":\"%s\",\"input\":"
                              "{}}}",
                              number, a->tool);
    cx_str delta =
        a->tool == NULL
            ? CX_STR("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
                     "\"text_delta\",\"text\":\"done\"}}")
            : cx_arena_printf(arena,
                              "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
                              "\"input_json_delta\",\"partial_json\":%s}}",
                              json_string(a->arguments, arena));
    cx_str end = cx_arena_printf(arena,
                                 "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\","
                                 "\"stop_sequence\":null},\"usage\":{\"output_tokens\":1}}",
                                 stop);
    if (begin.data == NULL || block.data == NULL || delta.data == NULL || end.data == NULL)
        return;
    add_event(out, "message_start", begin.data);
    add_event(out, "content_block_start", block.data);
    add_event(out, "content_block_delta", delta.data);
    add_event(out, "content_block_stop", "{\"type\":\"content_block_stop\",\"index\":0}");
    add_event(out, "message_delta", end.data);
    add_event(out, "message_stop", "{\"type\":\"message_stop\"}");
}

/* --- Responses API ---------------------------------------------------------------------------- */

static void responses_answer(const turn *t, const reply *a, unsigned number, cx_arena *arena,
                             cx_buf *out)
{
    cx_str space =
        a->space == NULL ? CX_STR("") : cx_arena_printf(arena, "\"namespace\":\"%s\",", a->space);
    cx_str item =
        a->tool == NULL
            ? cx_arena_printf(arena,
                              "{\"type\":\"message\",\"id\":\"msg_%u\",\"role\":\"assistant\","
                              "\"status\":\"completed\",\"content\":[{\"type\":\"output_text\","
                              "\"text\":\"done\",\"annotations\":[]}]}",
                              number)
            : cx_arena_printf(
                  arena,
                  "{\"type\":\"function_call\",\"id\":\"fc_%u\",\"call_id\":\"call_%u\","
                  "\"name\":\"%s\",%s\"arguments\":%s,\"status\":\"completed\"}",
                  number, number, a->tool, space.data == NULL ? "" : space.data,
                  json_string(a->arguments, arena));
    static const char form[] =
        "{\"id\":\"resp_%u\",\"object\":\"response\",\"created_at\":1,\"model\":\"probe\","
        "\"status\":\"%s\",\"output\":[%s],\"usage\":{\"input_tokens\":1,\"input_tokens_details\":"
        "{\"cached_tokens\":0},\"output_tokens\":1,\"output_tokens_details\":{\"reasoning_tokens\":"
        "0},\"total_tokens\":2}}";
    if (item.data == NULL)
        return;
    cx_str begin = cx_arena_printf(arena, form, number, "in_progress", "");
    cx_str whole = cx_arena_printf(arena, form, number, "completed", item.data);
    if (begin.data == NULL || whole.data == NULL)
        return;
    if (!t->stream) {
        cx_buf_add_str(out, whole);
        return;
    }
    cx_buf_printf(out,
                  "event: response.created\ndata: {\"type\":\"response.created\","
                  "\"sequence_number\":0,\"response\":%s}\n\n",
                  begin.data);
    cx_buf_printf(out,
                  "event: response.output_item.done\ndata: {\"type\":"
                  "\"response.output_item.done\",\"sequence_number\":1,\"output_index\":0,\"item\":"
                  "%s}\n\n",
                  item.data);
    cx_buf_printf(out,
                  "event: response.completed\ndata: {\"type\":\"response.completed\","
                  "\"sequence_number\":2,\"response\":%s}\n\n",
                  whole.data);
}

/* --- generateContent -------------------------------------------------------------------------- */

static void content_answer(const turn *t, const reply *a, unsigned number, cx_arena *arena,
                           cx_buf *out)
{
    /* Without tools it asks which model is to be used, and waits for an object. */
    cx_str part = a->tool == NULL && !t->has_tools
                      ? CX_STR("{\"text\":\"{\\\"model_choice\\\":\\\"flash\\\",\\\"reasoning\\\":"
                               "\\\"-\\\",\\\"complexity_score\\\":1,\\\"complexity_reasoning\\\":"
                               "\\\"-\\\"}\"}")
                  : a->tool == NULL
                      ? CX_STR("{\"text\":\"done\"}")
                      : cx_arena_printf(arena, "{\"functionCall\":{\"name\":\"%s\",\"args\":%s}}",
                                        a->tool, a->arguments.data);
    cx_str whole = cx_arena_printf(
        arena,
        "{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[%s]},\"finishReason\":"
        "\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":1,\"candidatesTokenCount\":"
        "1,\"totalTokenCount\":2},\"modelVersion\":\"probe\",\"responseId\":\"r%u\"}",
        part.data == NULL ? "" : part.data, number);
    if (whole.data == NULL)
        return;
    if (t->stream)
        add_event(out, NULL, whole.data);
    else
        cx_buf_add_str(out, whole);
}

/* --- one request ------------------------------------------------------------------------------ */

static bool path_ends(const request *r, const char *end)
{
    return cx_str_ends(cx_str_z(r->target), cx_str_z(end));
}

static void answer_model(cx_probe_model *m, request *r, unsigned number)
{
    cx_arena arena;
    turn t;
    cx_buf out;
    cx_arena_init(&arena, m->alloc, 0);
    cx_buf_init(&out, m->alloc);
    if (!read_turn(m, r, &arena, &t)) {
        send_answer(r, "400 Bad Request", "application/json", CX_STR("{\"error\":\"no JSON\"}"));
    } else {
        reply a = choose_reply(m, &t, &arena);
        if (path_ends(r, "/messages"))
            messages_answer(&t, &a, number, &arena, &out);
        else if (path_ends(r, "/responses"))
            responses_answer(&t, &a, number, &arena, &out);
        else
            content_answer(&t, &a, number, &arena, &out);
        send_answer(r, "200 OK", t.stream ? "text/event-stream" : "application/json",
                    cx_buf_str(&out));
    }
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

static void answer_request(cx_probe_model *m, request *r)
{
    bool post = strcmp(r->method, "POST") == 0;
    bool other = r->target[0] != '/'; /* B1: CONNECT HOST:PORT, GET http://HOST/ */
    cx_lock_enter(&m->lock);
    unsigned number = ++m->seen.requests;
    m->seen.refused += other;
    cx_lock_leave(&m->lock);
    if (other)
        send_answer(r, "403 Forbidden", "text/plain", CX_STR("a probe reaches no other host\n"));
    else if (r->upgrade)
        send_answer(r, "426 Upgrade Required", "text/plain", CX_STR("no\n"));
    else if (post && path_ends(r, "/count_tokens"))
        send_answer(r, "200 OK", "application/json", CX_STR("{\"input_tokens\":1}"));
    else if (post && path_ends(r, ":countTokens"))
        send_answer(r, "200 OK", "application/json", CX_STR("{\"totalTokens\":1}"));
    else if (post && (path_ends(r, "/messages") || path_ends(r, "/responses") ||
                      strstr(r->target, "enerateContent") != NULL))
        answer_model(m, r, number);
    else
        send_answer(r, "404 Not Found", "application/json",
                    CX_STR("{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\","
                           "\"message\":\"a probe has only models\"}}"));
}

static void serve_connection(void *arg)
{
    connection *c = arg;
    request r = {.socket = c->socket};
    cx_buf_init(&r.head, c->model->alloc);
    cx_buf_init(&r.body, c->model->alloc);
    if (cx_net_wait(c->socket, &c->model->listener, READ_MS) == CX_NET_READY && read_request(&r))
        answer_request(c->model, &r);
    cx_buf_done(&r.head);
    cx_buf_done(&r.body);
    cx_tcp_cut(c->socket);
}

/* --- starting and stopping -------------------------------------------------------------------- */

static void accept_connections(void *arg)
{
    cx_probe_model *m = arg;
    cx_err ignored;
    while (m->count < CONNECTIONS_MAX) {
        bool stopped;
        cx_socket socket;
        if (cx_failed(cx_net_accept(&m->listener, &socket, &stopped, &ignored)) || stopped)
            return;
        connection *c = &m->connections[m->count++];
        *c = (connection){.model = m, .socket = socket};
        if (!cx_thread_start(&c->thread, serve_connection, c))
            cx_tcp_cut(socket);
    }
}

cx_status cx_probe_model_start(const cx_alloc *alloc, cx_live_agent agent, const char *folder,
                               cx_probe_model **out, uint16_t *out_port, cx_err *err)
{
    cx_probe_model *m = calloc(1, sizeof *m);
    connection *connections = calloc(CONNECTIONS_MAX, sizeof *connections);
    if (m == NULL || connections == NULL) {
        free(m);
        free(connections);
        return cx_fail_nomem(err);
    }
    *m = (cx_probe_model){
        .alloc = alloc, .agent = agent, .folder = folder, .connections = connections};
    cx_lock_init(&m->lock);
    cx_status status = cx_net_listen_loopback(&m->listener, out_port, err);
    if (!cx_failed(status) && !cx_thread_start(&m->acceptor, accept_connections, m)) {
        cx_net_listen_end(&m->listener);
        status = cx_fail(err, CX_E_NOMEM, "cannot start a thread");
    }
    if (cx_failed(status)) {
        cx_lock_done(&m->lock);
        free(connections);
        free(m);
        return status;
    }
    *out = m;
    return CX_SUCCESS;
}

void cx_probe_model_stop(cx_probe_model *m)
{
    if (m == NULL)
        return;
    cx_lock_enter(&m->lock);
    m->stopping = true;
    cx_lock_wake(&m->lock);
    cx_lock_leave(&m->lock);
    cx_net_stop(&m->listener);
    cx_thread_join(&m->acceptor);
    for (size_t i = 0; i < m->count; i++) {
        cx_tcp_cut(m->connections[i].socket);
        cx_thread_join(&m->connections[i].thread);
        cx_net_close(m->connections[i].socket);
    }
    cx_net_listen_end(&m->listener);
    cx_lock_done(&m->lock);
    free(m->connections);
    free(m);
}

cx_probe_seen cx_probe_model_seen(cx_probe_model *m)
{
    cx_lock_enter(&m->lock);
    cx_probe_seen seen = m->seen;
    cx_lock_leave(&m->lock);
    return seen;
}

/*
 * test_runner_mcp.c - the mcp runner (run.md §16) with a real server process: tests/mcp_server.py,
 * as a coding agent and as the worst of servers.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/folder.h"
#include "agent/runner.h"
#include "sandbox/sandbox.h"
#include "tests/support/folder.h"
#include "tests/test.h"

#define PYTHON "/usr/bin/python3"

typedef struct seen {
    cx_buf tools; /* payloads, a line each */
    cx_buf raw;
    unsigned asked;
    cx_str kind, command;
    bool grant, deny_outright;
} seen;

typedef struct fixture {
    cx_arena arena;
    char place[FOLDER_PATH_SIZE];
    cx_str worktree, script, server;
    cx_sandbox *box;
    cx_sandbox_spec spec;
    cx_runner_settings settings;
    cx_str argv[3];
    cx_runner *runner;
    cx_runner_turn turn;
    cx_runner_host host;
    cx_runner_reply reply;
    seen seen;
    atomic_bool cancel;
    cx_err err;
} fixture;

static cx_status on_tool(void *arg, const cx_json *payload, cx_err *err)
{
    seen *s = arg;
    CX_TRY(cx_json_write(&s->tools, payload, CX_JSON_JCS, err));
    cx_buf_add_byte(&s->tools, '\n');
    return CX_SUCCESS;
}

static cx_status on_ask(void *arg, const cx_runner_request *request, bool *out_granted, cx_err *err)
{
    seen *s = arg;
    s->asked++;
    *out_granted = s->grant;
    return s->deny_outright
               ? cx_fail_at(err, CX_E_DENIED, "ShellDenied", CX_NO_OFFSET, "%.*s is denied",
                            (int)request->kind.size, request->kind.data)
               : CX_SUCCESS;
}

static cx_status on_raw(void *arg, cx_bytes line, cx_err *err)
{
    seen *s = arg;
    (void)err;
    cx_buf_add(&s->raw, line.data, line.size);
    cx_buf_add_byte(&s->raw, '\n');
    return CX_SUCCESS;
}

/* False when there is no Python to run the server with. */
static bool begin(fixture *s, const char *name, const char *script)
{
    memset(s, 0, sizeof *s);
    if (access(PYTHON, X_OK) != 0) {
        cx_test_skip("there is no " PYTHON);
        return false;
    }
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
    folder_fresh(s->place, name);
    s->worktree = cx_arena_printf(&s->arena, "%s/tree", s->place);
    s->script = cx_arena_printf(&s->arena, "%s/script.json", s->place);
    s->server = cx_arena_copy_str(&s->arena, cx_str_z(cx_test_path("mcp_server.py")));
    CHECK_STATUS(cx_path_make_folders(s->worktree.data, &s->err), &s->err);
    CHECK_STATUS(
        cx_io_replace_file(cx_io_system(), s->script.data, cx_str_bytes(cx_str_z(script)), &s->err),
        &s->err);
    /* Where it runs is tested elsewhere: this machine may have no namespaces. */
    const cx_sandbox_options options = {0};
    CHECK_STATUS(cx_sandbox_open(&options, &s->box, &s->err), &s->err);
    s->spec = CX_SANDBOX_SPEC_INIT;
    s->spec.unconfined = true;
    s->spec.worktree = s->worktree.data;
    cx_buf_init(&s->seen.tools, cx_alloc_default());
    cx_buf_init(&s->seen.raw, cx_alloc_default());
    s->argv[0] = CX_STR("python3");
    s->argv[1] = s->server;
    s->argv[2] = s->script;
    s->settings = (cx_runner_settings){.name = CX_STR(CX_RUNNER_NAME_MCP),
                                       .profile = CX_STR("scripted"),
                                       .argv = s->argv,
                                       .argv_count = 3,
                                       .connect_ms = 120000,
                                       .close_ms = 5000};
    s->host = (cx_runner_host){&s->seen, on_tool, on_ask, on_raw, NULL};
    s->turn = (cx_runner_turn){.task_id = CX_STR("task"),
                               .run_id = CX_STR("run"),
                               .prompt = "do it",
                               .prompt_size = 5,
                               .worktree = s->worktree.data,
                               .scratch = s->place,
                               .sandbox_mode = CX_STR("workspace-write"),
                               .approval_policy = CX_STR("on-request"),
                               .shell_tool = true,
                               .timeout_ms = 120000,
                               .program = PYTHON,
                               .box = s->box,
                               .sandbox = &s->spec,
                               .cancel = &s->cancel,
                               .arena = &s->arena};
    CHECK_STATUS(
        cx_runner_mcp_open(&s->settings, cx_alloc_default(), cx_io_system(), &s->runner, &s->err),
        &s->err);
    return s->runner != NULL;
}

static void end(fixture *s)
{
    if (s->runner != NULL)
        s->runner->stop(s->runner);
    cx_sandbox_close(s->box);
    cx_buf_done(&s->seen.tools);
    cx_buf_done(&s->seen.raw);
    folder_remove(s->place);
    cx_arena_done(&s->arena);
}

static cx_status start(fixture *s)
{
    return s->runner->start(s->runner, &s->host, &s->turn, &s->err);
}

static cx_status send_turn(fixture *s)
{
    return s->runner->turn(s->runner, &s->host, &s->turn, &s->reply, &s->err);
}

/* Starts, takes one turn; the way it ended. */
static cx_runner_end one_turn(fixture *s)
{
    CHECK_STATUS(start(s), &s->err);
    CHECK_STATUS(send_turn(s), &s->err);
    CHECK((s->reply.end == CX_RUNNER_OK) == (s->reply.message.size == 0));
    return s->reply.end;
}

static bool has(const cx_buf *text, const char *part)
{
    return text->size != 0 && memmem(text->data, text->size, part, strlen(part)) != NULL;
}

CX_TEST(runner_mcp_two_turns_of_one_thread)
{
    fixture s;
    cx_buf file;
    if (!begin(
            &s, "mcp-turns",
            "{\"turns\":[{\"actions\":[{\"notify\":[\"codex/event\",{\"msg\":{\"type\":"
            "\"patch_apply_begin\",\"changes\":{\"a.txt\":{}}}}]}],\"writes\":{\"a.txt\":\"hi\"},"
            "\"thread\":\"t-7\",\"output\":\"$ARGUMENTS\"},{\"thread\":\"t-7\",\"output\":"
            "\"$ARGUMENTS\"}]}"))
        return;
    s.settings.model = CX_STR("m1");
    CHECK_INT(one_turn(&s), CX_RUNNER_OK);
    CHECK_STR(s.reply.thread_id, "t-7");
    cx_json said;
    CHECK_STATUS(cx_json_parse_text(cx_bytes_str(s.reply.body), &s.arena, &said, &s.err), &s.err);
    CHECK_STR(CX_JSON_GET_STR(&said, "tool"), "codex");
    CHECK_STR(CX_JSON_GET_STR(&said, "prompt"), "do it");
    CHECK_STR(CX_JSON_GET_STR(&said, "cwd"), s.worktree.data);
    CHECK_STR(CX_JSON_GET_STR(&said, "sandbox"), "workspace-write");
    CHECK_STR(CX_JSON_GET_STR(&said, "approval-policy"), "on-request");
    CHECK_STR(CX_JSON_GET_STR(&said, "model"), "m1");
    CHECK(CX_JSON_GET(&said, "config") == NULL);
    CHECK(has(&s.seen.tools, "{\"server\":\"scripted\",\"tool\":\"codex\"}\n"));
    CHECK(has(&s.seen.tools, "{\"paths\":[\"a.txt\"],\"tool\":\"apply_patch\"}\n"));
    CHECK(has(&s.seen.raw, "\"method\":\"initialize\""));
    CHECK(has(&s.seen.raw, "\"structuredContent\""));
    cx_buf_init(&file, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(),
                                 cx_arena_printf(&s.arena, "%s/a.txt", s.worktree.data).data, 100,
                                 &file, &s.err),
                 &s.err);
    CHECK_STR(cx_buf_str(&file), "hi");
    cx_buf_done(&file);
    s.turn.thread_id = CX_STR("t-7");
    CHECK_STATUS(send_turn(&s), &s.err);
    CHECK_INT(s.reply.end, CX_RUNNER_OK);
    CHECK_STATUS(cx_json_parse_text(cx_bytes_str(s.reply.body), &s.arena, &said, &s.err), &s.err);
    CHECK_STR(CX_JSON_GET_STR(&said, "tool"), "codex-reply");
    CHECK_STR(CX_JSON_GET_STR(&said, "threadId"), "t-7");
    CHECK_INT(said.count, 3); /* tool, prompt, threadId: nothing else can be said again */
    /* No turn is left in the script. */
    CHECK_STATUS(send_turn(&s), &s.err);
    CHECK_INT(s.reply.end, CX_RUNNER_FAILED);
    end(&s);
}

CX_TEST(runner_mcp_denied_shell)
{
    fixture s;
    if (!begin(&s, "mcp-shell",
               "{\"turns\":[{\"output\":\"$ARGUMENTS\"},{\"actions\":[{\"notify\":[\"codex/event\","
               "{\"msg\":{\"type\":\"exec_command_begin\",\"command\":[\"ls\"]}}]}],\"output\":"
               "\"{}\"}]}"))
        return;
    cx_json config, said;
    CHECK_STATUS(cx_json_parse_text(CX_STR("{\"features.shell_tool\":true,\"x\":1}"), &s.arena,
                                    &config, &s.err),
                 &s.err);
    s.settings.config = &config;
    s.turn.shell_tool = false;
    s.turn.approval_policy = CX_STR("");
    CHECK_INT(one_turn(&s), CX_RUNNER_OK);
    CHECK_STATUS(cx_json_parse_text(cx_bytes_str(s.reply.body), &s.arena, &said, &s.err), &s.err);
    CHECK(CX_JSON_GET(&said, "approval-policy") == NULL);
    const cx_json *sent = CX_JSON_GET(&said, "config");
    REQUIRE(sent != NULL && sent->count == 2);
    CHECK(CX_JSON_GET(sent, "features.shell_tool")->type == CX_JSON_FALSE);
    CHECK(CX_JSON_GET(sent, "x") != NULL);
    /* One that uses a shell all the same has left the contract. */
    CHECK_STATUS(send_turn(&s), &s.err);
    CHECK_INT(s.reply.end, CX_RUNNER_VIOLATED);
    end(&s);
}

CX_TEST(runner_mcp_approvals)
{
    static const char script[] =
        "{\"turns\":[{\"actions\":[{\"ask\":[\"elicitation/create\",{\"codex_elicitation\":"
        "\"exec-approval\",\"codex_command\":[\"make\"]}]},{\"ask\":[\"ping\",{}]},{\"ask\":["
        "\"sampling/createMessage\",{}]},{\"ask\":[\"roots/list\",{}]}],\"output\":\"$ANSWERS\"}]}";
    fixture s;
    if (!begin(&s, "mcp-approvals", script))
        return;
    CHECK_INT(one_turn(&s), CX_RUNNER_OK);
    CHECK_INT(s.seen.asked, 2); /* the command and the sampling */
    const cx_buf body = {.data = (uint8_t *)(uintptr_t)s.reply.body.data,
                         .size = s.reply.body.size};
    CHECK(has(&body, "\"decision\": \"denied\""));
    CHECK(has(&body, "{\"result\": {}}"));
    CHECK(has(&body, "-32601"));
    end(&s);
    if (!begin(&s, "mcp-granted", script))
        return;
    s.seen.grant = true;
    CHECK_INT(one_turn(&s), CX_RUNNER_OK);
    const cx_buf granted = {.data = (uint8_t *)(uintptr_t)s.reply.body.data,
                            .size = s.reply.body.size};
    CHECK(has(&granted, "\"decision\": \"approved\""));
    CHECK(has(&granted, "-32603")); /* there is no model to sample with */
    end(&s);
    if (!begin(&s, "mcp-outright", script))
        return;
    s.seen.deny_outright = true;
    CHECK_STATUS(start(&s), &s.err);
    CHECK(send_turn(&s).code == CX_E_DENIED);
    end(&s);
}

/* Servers that do not get as far as a first turn. */
CX_TEST(runner_mcp_bad_starts)
{
    static const struct {
        const char *script, *said;
    } rows[] = {
        {"{\"hello\":[{\"say\":\"Welcome!\"}]}", "invalid message"},
        {"{\"hello\":[{\"wrong_id\":true}]}", "was not made"},
        {"{\"hello\":[{\"complain\":\"no licence\"},{\"exit\":3}]}", "no licence"},
        {"{\"hello\":[{\"huge\":17000000}]}", "more than the limit"},
        {"{\"hello\":[{\"flood\":17000000},{\"hang\":true}]}", "more than the limit"},
        {"{\"protocol\":\"2001-01-01\"}", "2001-01-01"},
        {"{\"tools\":[[\"x\"],[\"codex-reply\"]]}", "no tool 'codex'"},
        {"not json", "without an answer"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        fixture s;
        if (!begin(&s, "mcp-starts", rows[i].script))
            return;
        s.settings.close_ms = 100;
        cx_status status = start(&s);
        if (!cx_failed(status) || strstr(s.err.message, rows[i].said) == NULL)
            cx_test_fail(__FILE__, __LINE__, "%s: '%s'", rows[i].script, s.err.message);
        CHECK(status.code != CX_E_DENIED);
        end(&s);
    }
    /* A thread to continue needs the tool for it. */
    fixture s;
    if (!begin(&s, "mcp-thread", "{\"tools\":[[\"codex\"]]}"))
        return;
    s.turn.thread_id = CX_STR("t");
    CHECK(start(&s).code == CX_E_FORMAT);
    end(&s);
}

/* runner.h I3 */
CX_TEST(runner_mcp_bad_turns)
{
    static const struct {
        const char *turn;
        cx_runner_end end;
    } rows[] = {
        {"{\"actions\":[{\"say\":\"{\"}]}", CX_RUNNER_FAILED},
        {"{\"actions\":[{\"exit\":0}]}", CX_RUNNER_FAILED},
        {"{\"actions\":[{\"close\":true}]}", CX_RUNNER_FAILED},
        {"{\"actions\":[{\"wrong_id\":true}]}", CX_RUNNER_FAILED},
        {"{\"actions\":[{\"huge\":17000000}]}", CX_RUNNER_FAILED},
        {"{\"result\":{\"structuredContent\":{\"threadId\":\"t\"}}}", CX_RUNNER_FAILED},
        {"{\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"bad\"}],\"isError\":true}}",
         CX_RUNNER_FAILED},
        {"{\"result\":[]}", CX_RUNNER_FAILED},
        {"{\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{}\"}]}}", CX_RUNNER_OK},
        {"{\"actions\":[{\"notify\":[\"notifications/message\",{}],\"times\":5000}],\"output\":"
         "\"{}\"}",
         CX_RUNNER_OK},
        {"{\"actions\":[{\"notify\":[\"codex/event\",{\"msg\":{\"type\":\"web_search_begin\"}}],"
         "\"times\":10001}],\"output\":\"{}\"}",
         CX_RUNNER_FAILED},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        fixture s;
        char script[512];
        (void)snprintf(script, sizeof script, "{\"turns\":[%s]}", rows[i].turn);
        if (!begin(&s, "mcp-bad-turns", script))
            return;
        s.settings.close_ms = 100;
        cx_runner_end got = one_turn(&s);
        if (got != rows[i].end || (got != CX_RUNNER_OK) != (s.reply.message.size != 0))
            cx_test_fail(__FILE__, __LINE__, "%s ends %d: %.*s", rows[i].turn, (int)got,
                         (int)s.reply.message.size, s.reply.message.data);
        end(&s);
    }
}

/* It hangs and does not care that its input ends: time runs out, and nothing of it is left. */
CX_TEST(runner_mcp_hangs)
{
    fixture s;
    if (!begin(&s, "mcp-hangs", "{\"turns\":[{\"actions\":[{\"hang\":true}]}]}"))
        return;
    s.turn.timeout_ms = 300;
    s.settings.close_ms = 100;
    CHECK_INT(one_turn(&s), CX_RUNNER_TIMED_OUT);
    end(&s);
}

CX_TEST(runner_mcp_cancelled)
{
    fixture s;
    if (!begin(&s, "mcp-cancelled", "{\"turns\":[{\"actions\":[{\"hang\":true}]}]}"))
        return;
    CHECK_STATUS(start(&s), &s.err);
    atomic_store(&s.cancel, true);
    CHECK_STATUS(send_turn(&s), &s.err);
    CHECK_INT(s.reply.end, CX_RUNNER_CANCELLED);
    end(&s);
}

CX_TEST(runner_mcp_without_a_server)
{
    fixture s;
    if (!begin(&s, "mcp-nothing", "{}"))
        return;
    s.turn.program = "/nowhere/server";
    CHECK(cx_failed(start(&s)));
    end(&s);
    cx_runner *runner = NULL;
    cx_err err;
    const cx_runner_settings none = {.name = CX_STR(CX_RUNNER_NAME_MCP)};
    CHECK(cx_runner_mcp_open(&none, cx_alloc_default(), cx_io_system(), &runner, &err).code ==
          CX_E_FORMAT);
}

/*
 * test_answer.c - "no" over HTTP when no decision is possible (docs/formats/live.md §9).
 */
#include <string.h>

#include "live/api.h"

#include "tests/test.h"

static const char body[] =
    "{\"cwd\":\"/w\",\"hook_event_name\":\"PreToolUse\",\"session_id\":\"s\",\"tool_input\":"
    "{\"command\":\"ls\"},\"tool_name\":\"Bash\"}";

/* The answer; "" for no objection, "-" where none is asked for. */
static const char *failure(cx_live_agent agent, cx_str text, bool open, cx_arena *arena)
{
    cx_live_outcome out;
    cx_err err;
    bool decided;
    CHECK_STATUS(cx_live_answer_failure_http(agent, text, open, CX_STR("full\ndisk"), arena,
                                             &decided, &out, &err),
                 &err);
    CHECK(out.complaint.size == 0 && out.exit_code == 0);
    if (!decided)
        return "-";
    CHECK((out.answer == CX_LIVE_DENY) == !open);
    return out.out.size == 0 ? "" : out.out.data;
}

CX_TEST(each_agent_gets_its_own_no)
{
    static const struct {
        cx_live_agent agent;
        const char *says, *open;
    } rows[] = {
        {CX_LIVE_CLAUDE, "\"permissionDecision\":\"deny\"", ""},
        {CX_LIVE_CODEX, "\"permissionDecision\":\"deny\"", ""},
        {CX_LIVE_GEMINI, "\"decision\":\"deny\"", ""},
        {CX_LIVE_CURSOR, "\"permission\":\"deny\"", "{\"permission\":\"allow\"}\n"},
        {CX_LIVE_COPILOT, "\"permissionDecision\":\"deny\"", ""},
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        const char *said = failure(rows[i].agent, CX_STR("{"), false, &arena);
        CHECK(strstr(said, rows[i].says) != NULL);
        CHECK(strstr(said, "cortex: no decision: full") != NULL && strchr(said, '\n')[1] == 0);
        CHECK(strcmp(failure(rows[i].agent, CX_STR("{"), true, &arena), rows[i].open) == 0);
    }
    CHECK(strstr(failure(CX_LIVE_CLAUDE,
                         CX_STR("{\"hook_event_name\":\"PermissionRequest\",\"x\":1}"), false,
                         &arena),
                 "\"behavior\":\"deny\"") != NULL);
    CHECK(strcmp(failure(CX_LIVE_CLAUDE, CX_STR("{\"hook_event_name\":\"Stop\"}"), false, &arena),
                 "-") == 0);
    cx_arena_done(&arena);
}

/* Whatever is cut off or changed of a call, it is never let through. */
CX_TEST(a_call_that_is_damaged_anywhere_is_denied)
{
    char damaged[sizeof body];
    for (size_t i = 0; i < sizeof body - 1; i++) {
        cx_arena arena;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        const char *said = failure(CX_LIVE_CLAUDE, cx_str_from(body, i), false, &arena);
        CHECK(strstr(said, "\"deny\"") != NULL);
        memcpy(damaged, body, sizeof body);
        damaged[i] = '\x01';
        said = failure(CX_LIVE_CLAUDE, cx_str_from(damaged, sizeof body - 1), false, &arena);
        CHECK(strstr(said, "\"deny\"") != NULL);
        cx_arena_done(&arena);
    }
}

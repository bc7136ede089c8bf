/*
 * test_session_list.c - sessions in the order of their latest entry, against one that is read
 * again.
 */
#include <stdio.h>
#include <string.h>

#include "server/feed/session_list.h"
#include "tests/unit/server/asking.h"

static void take(asking *a, unsigned session, const char *event)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "{\"cwd\":\"/\",\"hook_event_name\":\"%s\",\"session_id\":\"session-%04u\","
                   "\"tool_input\":{\"command\":\"ls\"},\"tool_name\":\"Bash\"}",
                   event, session);
    CHECK_INT(asking_ask(a, "POST", "/hook/claude", cx_str_z(text)), 204);
}

/* The ids in order, "3 1 2 "; an ended one with an exclamation mark. */
static void listed(cx_session_list *list, bool running, size_t limit, char *out, size_t size)
{
    cx_arena arena;
    cx_session_page page;
    cx_str after = {NULL, 0};
    int64_t after_ns = 0;
    cx_err err;
    size_t used = 0;
    out[0] = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    do {
        CHECK_STATUS(
            cx_session_list_page(list, after, after_ns, running, limit, &arena, &page, &err), &err);
        CHECK(page.count <= limit && (!page.more || page.count == limit));
        for (size_t i = 0; i < page.count; i++) {
            unsigned number = 0;
            CHECK(sscanf(page.items[i].session.data, "session-%4u", &number) == 1);
            used += (size_t)snprintf(out + used, size - used, "%u%s ", number,
                                     page.items[i].ended ? "!" : "");
            CHECK(used < size);
        }
        if (page.count != 0) {
            after = page.items[page.count - 1].actor;
            after_ns = page.items[page.count - 1].latest_ns;
        }
    } while (page.more);
    cx_arena_done(&arena);
}

CX_TEST(sessions_are_in_the_order_of_their_latest_entry)
{
    asking a;
    char got[2000], fresh[2000];
    uint32_t random = 7;
    asking_init(&a, "session_list");
    cx_session_list *list = a.service->live_sessions;
    listed(list, false, 3, got, sizeof got);
    CHECK(strcmp(got, "") == 0);
    for (unsigned i = 0; i < 5; i++)
        take(&a, i, "PreToolUse");
    take(&a, 1, "SessionEnd");
    take(&a, 3, "PostToolUse");
    listed(list, false, 3, got, sizeof got);
    CHECK(strcmp(got, "3 1! 4 2 0 ") == 0);
    listed(list, true, 3, got, sizeof got);
    CHECK(strcmp(got, "3 4 2 0 ") == 0);
    take(&a, 1, "SessionStart"); /* resumed */
    for (unsigned i = 0; i < 200; i++) {
        cx_session_list *other;
        random = random * 1664525 + 1013904223;
        take(&a, (random >> 16) % 40, (random >> 8) % 9 == 0 ? "SessionEnd" : "PreToolUse");
        if (i % 10 != 0)
            continue;
        CHECK_STATUS(cx_session_list_open(cx_recorder_home(a.fixture.recorder), cx_alloc_default(),
                                          &other, &a.fixture.err),
                     &a.fixture.err);
        listed(list, i % 20 == 0, 1 + i % 7, got, sizeof got);
        listed(other, i % 20 == 0, 100, fresh, sizeof fresh);
        CHECK(strcmp(got, fresh) == 0);
        cx_session_list_close(other);
    }
    asking_done(&a);
}

static cx_code find(asking *a, const char *name)
{
    cx_arena arena;
    cx_live_session session;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_session_list_find(a->service->live_sessions, cx_str_z(name), &arena,
                                            &session, &a->fixture.err);
    CHECK(cx_failed(status) || cx_str_starts(session.session, CX_STR("session-")));
    cx_arena_done(&arena);
    return status.code;
}

CX_TEST(a_session_is_found_by_each_of_its_names)
{
    asking a;
    asking_init(&a, "session_list_find");
    take(&a, 12, "PreToolUse");
    take(&a, 13, "PreToolUse");
    CHECK(find(&a, "session:claude-code:session-0012") == CX_OK);
    CHECK(find(&a, "session-0012") == CX_OK);
    CHECK(find(&a, "session-001") == CX_E_CONFLICT);
    CHECK(find(&a, "session-0014") == CX_E_NOT_FOUND);
    CHECK(find(&a, "ses") == CX_E_NOT_FOUND);
    CHECK(find(&a, "") == CX_E_NOT_FOUND);
    CHECK(find(&a, "session:claude-code:session-0014") == CX_E_NOT_FOUND);
    asking_done(&a);
}

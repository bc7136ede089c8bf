/*
 * test_actions.c - which names a tool call has: known tools, members, nested and cut arguments,
 * patches, URLs, folders (docs/formats/actions.md §3).
 */
#include "stores/actions.h"

#include <stdlib.h>

#include "json/api.h"
#include "tests/test.h"

typedef struct call_case {
    const char *tool, *folder, *args; /* args NULL = none */
    bool cut;
    const char *items; /* in order of their names, separated by spaces */
    unsigned opaque, relative, unread;
} call_case;

static int by_name(const void *left, const void *right)
{
    const cx_action_item *a = left, *b = right;
    size_t size = a->name.size < b->name.size ? a->name.size : b->name.size;
    int order = memcmp(a->name.data, b->name.data, size);
    return order != 0 ? order : (a->name.size > b->name.size) - (a->name.size < b->name.size);
}

static void check_call(const call_case *one)
{
    cx_actions actions;
    cx_arena arena;
    cx_json args;
    cx_buf names;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&names, cx_alloc_default());
    cx_actions_init(&actions, cx_alloc_default(), 7);
    cx_action_call call = {.tool = cx_str_z(one->tool),
                           .folder = cx_str_z(one->folder),
                           .place = CX_STR("1"),
                           .cut = one->cut};
    if (one->cut) {
        args = cx_json_make_str(cx_str_z(one->args));
        call.args = &args;
    } else if (one->args != NULL) {
        CHECK_STATUS(cx_json_parse_text(cx_str_z(one->args), &arena, &args, &err), &err);
        call.args = &args;
    }
    CHECK_STATUS(cx_actions_add_call(&actions, &call, &err), &err);
    qsort(actions.items.items, actions.items.count, sizeof *actions.items.items, by_name);
    for (size_t i = 0; i < actions.items.count; i++) {
        if (i != 0)
            cx_buf_add_byte(&names, ' ');
        cx_buf_add_str(&names, actions.items.items[i].name);
    }
    if (!cx_str_eq(cx_buf_str(&names), cx_str_z(one->items)) || actions.opaque != one->opaque ||
        actions.relative != one->relative || actions.unread != one->unread)
        cx_test_fail(__FILE__, __LINE__, "%s %s: '%.*s' %u %u %u", one->tool,
                     one->args == NULL ? "-" : one->args, (int)names.size, (const char *)names.data,
                     (unsigned)actions.opaque, (unsigned)actions.relative,
                     (unsigned)actions.unread);
    CHECK_INT(actions.calls, 1);
    cx_actions_done(&actions);
    cx_buf_done(&names);
    cx_arena_done(&arena);
}

CX_TEST(actions_names_of_calls)
{
    static const call_case cases[] = {
        {"Read", "", "{\"file_path\":\"/A/b\"}", false, "read:/a/b tool:read", 0, 0, 0},
        {"Read", "/r", "{\"file_path\":\"../b\"}", false, "read:/b tool:read", 0, 0, 0},
        {"Read", "", "{\"file_path\":\"b\"}", false, "read:b tool:read", 0, 1, 0},
        {"Read", "", "{}", false, "tool:read", 1, 0, 0},
        {"Read", "", NULL, false, "tool:read", 1, 0, 0},
        {"Write", "", "{\"file_path\":\"/b\",\"content\":\"http://h.x/\"}", false,
         "tool:write write:/b", 0, 0, 0},
        {"Grep", "", "{\"path\":\"/b\",\"pattern\":\"x\"}", false, "read:/b tool:grep write:/b", 1,
         0, 0},
        {"MultiEdit", "/r", "{\"file_path\":\"x\",\"edits\":[{\"file_path\":\"y\"}]}", false,
         "read:/r/x read:/r/y tool:multiedit write:/r/x write:/r/y", 0, 0, 0},
        {"WebFetch", "", "{\"url\":\"https://a.b:1/c\"}", false, "host:a.b tool:webfetch", 0, 0, 0},
        {"WebFetch", "", "{\"url\":\"a.b/c\"}", false, "host:a.b tool:webfetch", 0, 0, 0},
        {"WebFetch", "", "{\"prompt\":\"x\"}", false, "tool:webfetch", 1, 0, 0},
        {"Bash", "", "{\"command\":\"curl http://u:p@A.b/ 'ftp://[2001:db8::1]:21/x' http://\"}",
         false, "host:2001:db8::1 host:a.b tool:bash", 1, 0, 0},
        {"shell", "/r",
         "\"{\\\"command\\\":[\\\"curl\\\",\\\"http://c.d\\\"],\\\"workdir\\\":\\\"/w\\\","
         "\\\"path\\\":\\\"e\\\"}\"",
         false, "host:c.d read:/w/e tool:shell write:/w/e", 1, 0, 0},
        {"apply_patch", "/r",
         "\"*** Begin Patch\\n*** Update File: a.c\\n*** Move to: b/c.c\\n+http://no.host\\n\"",
         false, "read:/r/a.c read:/r/b/c.c tool:apply_patch write:/r/a.c write:/r/b/c.c", 0, 0, 0},
        {"apply_patch", "", "{\"changes\":[{\"path\":\"a\"}]}", false,
         "read:a tool:apply_patch write:a", 0, 1, 0},
        {"Edit", "", "{\"file_path\":\"/x/y\",\"new_string\":\"yyy", true,
         "read:/x/y tool:edit write:/x/y", 1, 0, 0},
        {"mcp__a__b", "", "{\"q\":{\"uri\":\"db://H.i/j\"}}", false, "host:h.i tool:mcp__a__b", 1,
         0, 0},
        {"x", "", "{\"file\":\"https://h.i/j\"}", false, "host:h.i tool:x", 1, 0, 0},
        {"TodoWrite", "", "{\"todos\":[]}", false, "tool:todowrite", 0, 0, 0},
        {"", "", "{\"file_path\":\"/a\"}", false, "read:/a write:/a", 1, 0, 1},
        {"Read", "", "{\"file_path\":\"/a\\u0001b\"}", false, "tool:read", 1, 0, 0},
        {"Read", "", "{\"file_path\":\"C:\\\\U\\\\b\"}", false, "read:c:/u/b tool:read", 0, 0, 0},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++)
        check_call(&cases[i]);
}

CX_TEST(actions_count_and_places_are_bounded)
{
    cx_actions actions;
    cx_err err;
    cx_actions_init(&actions, cx_alloc_default(), 7);
    for (int i = 0; i < 20; i++) {
        char place[8];
        int size = snprintf(place, sizeof place, "%d", i / 2);
        CHECK_STATUS(cx_actions_add_path(&actions, i % 2 == 0, CX_STR("/a"), CX_STR(""),
                                         cx_str_from(place, (size_t)size), &err),
                     &err);
    }
    CHECK_INT(actions.items.count, 2);
    CHECK_INT(actions.items.items[0].count, 10);
    CHECK_INT(actions.items.items[0].place_count, CX_ACTION_PLACES_MAX);
    CHECK_STR(actions.items.items[0].places[7], "7");
    CHECK_STATUS(cx_actions_add_url(&actions, CX_STR("nothing/"), CX_STR("x"), &err), &err);
    CHECK_STR(actions.items.items[2].name, "host:nothing");
    CHECK_INT(actions.calls + actions.opaque + actions.unread, 0);
    cx_actions_done(&actions);
    cx_actions_done(&(cx_actions){.alloc = NULL});
}

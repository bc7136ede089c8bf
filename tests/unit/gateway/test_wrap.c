/*
 * test_wrap.c - servers in configurations of agents, with the gateway and without it
 * (gateway/wrap.h).
 */
#include "gateway/api.h"

#include "tests/test.h"

typedef struct first {
    cx_gateway_wrap_entry entry;
    size_t count;
} first;

static cx_status take_first(void *arg, const cx_gateway_wrap_entry *entry, cx_err *err)
{
    first *f = arg;
    (void)err;
    if (f->count++ == 0)
        f->entry = *entry;
    return CX_SUCCESS;
}

/* The first server's change: "unread", "none", "same", "left", or the text. */
static void change_first(const cx_gateway_wrap_syntax *syntax, cx_str text, bool unwrap,
                         cx_buf *out)
{
    static const char *const words[] = {"", "same", "left"};
    const cx_gateway_wrap_how how = {.unwrap = unwrap, .program = CX_STR("cortex")};
    cx_gateway_wrap_result result;
    const char *why;
    cx_arena arena;
    cx_buf before, after;
    first f = {.count = 0};
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_init(&after, cx_alloc_default());
    if (cx_failed(syntax->each(text, "/p", &arena, take_first, &f, &err))) {
        cx_buf_add_z(out, "unread");
    } else if (f.count == 0) {
        cx_buf_add_z(out, "none");
    } else {
        CHECK_STATUS(cx_gateway_wrap_entry_change(syntax, text, &f.entry, &how, &arena, out,
                                                  &before, &after, &result, &why, &err),
                     &err);
        cx_buf_add_z(out, words[result]);
        CHECK((result == CX_GATEWAY_WRAP_IMPOSSIBLE) == (why != NULL));
    }
    cx_buf_done(&before);
    cx_buf_done(&after);
    cx_arena_done(&arena);
}

typedef struct row {
    bool toml;
    const char *text, *expected;
} row;

CX_TEST(wrapped_and_back_to_the_byte)
{
    static const row rows[] = {
        {false, "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"1\"]}}}",
         "{\"mcpServers\":{\"a\":{\"command\":\"cortex\",\"args\":[\"mcp-gateway\", \"--name\", "
         "\"a\", \"--\", \"x\", \"1\"]}}}"},
        {false, "{\"mcpServers\":{\"a\":{\"args\":[ ],\"command\" : \"\\u0078\"}}}",
         "{\"mcpServers\":{\"a\":{\"args\":[\"mcp-gateway\", \"--name\", \"a\", \"--\", "
         "\"\\u0078\" "
         "],\"command\" : \"cortex\"}}}"},
        {false, "{\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
         "{\"mcpServers\":{\"a\":{\"command\":\"cortex\", \"args\": [\"mcp-gateway\", "
         "\"--name=a\", \"--\", \"x\"]}}}"},
        {false, "{\"mcpServers\":{\"a\":{\"url\" : \"https://h/\",\"type\":\"http\"}}}",
         "{\"mcpServers\":{\"a\":{\"command\" : \"cortex\", \"args\" : [\"mcp-gateway\", "
         "\"--name\", \"a\", \"--url\", \"https://h/\"],\"type\":\"stdio\"}}}"},
        {false, "{\"projects\":{\"/p\":{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[]}}}}}",
         "{\"projects\":{\"/p\":{\"mcpServers\":{\"a\":{\"command\":\"cortex\",\"args\":["
         "\"mcp-gateway\", \"--name\", \"a\", \"--\", \"x\"]}}}}}"},
        {true, "[mcp_servers.a]\ncommand = 'x' # c\n",
         "[mcp_servers.a]\ncommand = \"cortex\"\nargs = [\"mcp-gateway\", \"--name=a\", \"--\", "
         "'x'] "
         "# c\n"},
        {true, "[ mcp_servers . \"a\" ]\nargs = [\n 'p', # q\n]\ncommand=\"x\"",
         "[ mcp_servers . \"a\" ]\nargs = [\"mcp-gateway\", \"--name\", \"a\", \"--\", \"x\", \n "
         "'p', # q\n]\ncommand=\"cortex\""},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        const cx_gateway_wrap_syntax *syntax =
            rows[i].toml ? &cx_gateway_wrap_toml : &cx_gateway_wrap_json;
        cx_buf wrapped, back, twice;
        cx_buf_init(&wrapped, cx_alloc_default());
        cx_buf_init(&back, cx_alloc_default());
        cx_buf_init(&twice, cx_alloc_default());
        change_first(syntax, cx_str_z(rows[i].text), false, &wrapped);
        CHECK_STR(cx_buf_str(&wrapped), rows[i].expected);
        change_first(syntax, cx_buf_str(&wrapped), false, &twice);
        CHECK_STR(cx_buf_str(&twice), "same");
        change_first(syntax, cx_buf_str(&wrapped), true, &back);
        CHECK_STR(cx_buf_str(&back), rows[i].text);
        cx_buf_done(&wrapped);
        cx_buf_done(&back);
        cx_buf_done(&twice);
    }
}

/* Most were found by fuzz_gateway_wrap. */
CX_TEST(what_is_not_understood_is_left)
{
    static const row rows[] = {
        {false, "{", "unread"},
        {false, "{\"mcpServers\":[]}", "none"},
        {false, "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":\"y\"}}}", "left"},
        {false, "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[1]}}}", "left"},
        {false, "{\"mcpServers\":{\"a\":{\"url\":\"http://h/\",\"args\":[]}}}", "left"},
        {false, "{\"mcpServers\":{\"a\":{\"url\":\"http://h/\",\"headers\":{}}}}", "left"},
        {false, "{\"mcpServers\":{\"--url\":{\"command\":\"x\"}}}", "left"},
        {false, "{\"mcpServers\":{\"a__b\":{\"command\":\"x\"}}}", "left"},
        {true, "[mcp_servers.a]\ncommand = \"x\"\ncommand = \"y\"\n", "left"},
        {true, "[mcp_servers.a]\ncommand = \"x\"\nargs = [ , y\n \"z\"]\n", "left"},
        {true, "[mcp_servers.a]\ncommand = \"x\"\nargs = x\"\n", "left"},
        {true, "[mcp_servers.a]\ncommand = 'x = 'y'\n", "left"},
        {true, "[mcp_servers.a]\ncommand = '''x'''\n", "left"},
        {true, "[mcp_servers.a]\nurl = \"https://h/\"\nargs = []\n", "left"},
        {true, "x = '''\n[mcp_servers.a]\ncommand = \"x\"\n'''\n", "none"},
        {true, "= 1\n", "unread"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_buf got;
        cx_buf_init(&got, cx_alloc_default());
        change_first(rows[i].toml ? &cx_gateway_wrap_toml : &cx_gateway_wrap_json,
                     cx_str_z(rows[i].text), false, &got);
        CHECK_STR(cx_buf_str(&got), rows[i].expected);
        cx_buf_done(&got);
    }
}

/*
 * test_register.c - hooks in configurations of agents (register.h R1 to R4).
 */
#include "live/register.h"

#include "tests/test.h"

typedef struct edit {
    cx_arena arena;
    cx_buf out;
    cx_err err;
} edit;

static edit begin_edit(void)
{
    edit e = {.err = {0}};
    cx_arena_init(&e.arena, cx_alloc_default(), 0);
    cx_buf_init(&e.out, cx_alloc_default());
    return e;
}

static void end_edit(edit *e)
{
    cx_buf_done(&e->out);
    cx_arena_done(&e->arena);
}

static cx_live_hook hook_of(cx_live_agent agent, cx_live_mode mode)
{
    return (cx_live_hook){agent, CX_STR("/usr/bin/cortex"), CX_STR("/home/ann/data"), mode};
}

static const cx_live_register_options plain = {.managed = false};

/* The text with ours; in the arena. */
static cx_str added(edit *e, cx_str text, cx_live_agent agent, cx_live_mode mode)
{
    cx_live_hook hook = hook_of(agent, mode);
    cx_buf_clear(&e->out);
    CHECK_STATUS(cx_live_register_add(text, &hook, &plain, &e->arena, &e->out, &e->err), &e->err);
    return cx_arena_copy_str(&e->arena, cx_buf_str(&e->out));
}

static cx_str removed(edit *e, cx_str text, cx_live_agent agent, size_t *count)
{
    cx_buf_clear(&e->out);
    CHECK_STATUS(cx_live_register_remove(text, agent, &plain, &e->arena, &e->out, count, &e->err),
                 &e->err);
    return cx_arena_copy_str(&e->arena, cx_buf_str(&e->out));
}

static const cx_str texts[] = {
    CX_STR("{}"),
    CX_STR("{ }\n"),
    CX_STR("{\n  \"a\": 1\n}\n"),
    CX_STR("{\"a\":1,\"hooks\":{}}"),
    CX_STR("{\n\t\"hooks\": {\n\t\t\"Stop\": [],\n\t\t\"PreToolUse\": [ {\"hooks\":[]} "
           "]\n\t},\n\t\"z\":"
           " [1, {\"b\": \"x,]}\"}]\n}\n"),
    CX_STR("{\r\n  \"h\\u006foks\": {\r\n    \"BeforeTool\": [\r\n    ]\r\n  }\r\n}\r\n"),
    CX_STR("{\"hooks\": {\"preToolUse\": [{\"command\": \"./x.sh\"}]}, \"version\": 1}"),
};

/* R3, and what is added reads as complete; removing it leaves nothing of ours and all of theirs. */
CX_TEST(register_adds_once_and_removes_all)
{
    for (unsigned agent = 0; agent < CX_LIVE_MCP; agent++)
        for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
            for (unsigned mode = 0; mode < 3; mode++) {
                edit e = begin_edit();
                cx_live_registered before, found;
                cx_json value;
                size_t count;
                cx_live_agent a = (cx_live_agent)agent;
                cx_str once = added(&e, texts[i], a, (cx_live_mode)mode);
                CHECK_STATUS(cx_json_parse_text(once, &e.arena, &value, &e.err), &e.err);
                cx_str twice = added(&e, once, a, (cx_live_mode)mode);
                CHECK(cx_str_eq(once, twice));
                CHECK_STATUS(cx_live_register_read(texts[i], a, &e.arena, &before, &e.err), &e.err);
                CHECK_STATUS(cx_live_register_read(once, a, &e.arena, &found, &e.err), &e.err);
                CHECK(before.ours == 0 && found.others == before.others);
                CHECK(found.complete == found.expected && found.ours == found.expected);
                CHECK(found.missing == NULL && !found.mixed && found.hook.agent == a);
                CHECK(found.hook.mode == (cx_live_mode)mode);
                CHECK(cx_str_is(found.hook.program, "/usr/bin/cortex"));
                CHECK(cx_str_is(found.hook.home, "/home/ann/data"));
                /* Another mode takes the place of the first. */
                cx_str other = added(&e, once, a, (cx_live_mode)((mode + 1) % 3));
                CHECK_STATUS(cx_live_register_read(other, a, &e.arena, &found, &e.err), &e.err);
                CHECK(found.complete == found.expected && found.ours == found.expected);
                cx_str without = removed(&e, other, a, &count);
                CHECK(count == found.expected);
                CHECK_STATUS(cx_live_register_read(without, a, &e.arena, &found, &e.err), &e.err);
                CHECK(found.ours == 0 && found.others == before.others);
                end_edit(&e);
            }
}

CX_TEST(register_keeps_the_bytes_of_others)
{
    edit e = begin_edit();
    size_t count;
    const cx_str text = texts[4];
    cx_str once = added(&e, text, CX_LIVE_CLAUDE, CX_LIVE_ENFORCE);
    /* All that was there is there in its order: what was added are insertions. */
    size_t at = 0;
    for (size_t i = 0; i < once.size && at < text.size; i++)
        at += once.data[i] == text.data[at];
    CHECK(at == text.size);
    CHECK(cx_str_eq(removed(&e, once, CX_LIVE_CLAUDE, &count), text));
    /* An entry of ours in a group of theirs: theirs stays. */
    cx_str mixed = CX_STR("{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": "
                          "[{\"command\": \"/x/cortex hook claude --mode ask\"},  {\"command\": "
                          "\"y\"}]}], \"Stop\": [{\"hooks\": [{\"command\": \"'/a b/cortex' hook "
                          "claude\"}]}]}}");
    CHECK(
        cx_str_is(removed(&e, mixed, CX_LIVE_CLAUDE, &count),
                  "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"command\": "
                  "\"y\"}]}]}}"));
    CHECK(count == 2);
    end_edit(&e);
}

CX_TEST(register_recognises_commands_of_ours)
{
    static const struct {
        const char *command;
        bool ours;
    } rows[] = {
        {"/usr/bin/cortex hook claude", true},
        {"'/opt/a b/cortex' hook claude --mode enforce --home '/x'\\''y' || exit 2", true},
        {"cortex hook claude-code", true},
        {"/usr/bin/cortex-old hook claude", false},
        {"/usr/bin/cortex hooks claude", false},
        {"/usr/bin/cortex hook pre-commit", false},
        {"echo /usr/bin/cortex hook claude", false},
        {"\"/usr/bin/cortex\" hook claude", false},
        {"$(x)/cortex hook claude", false},
        {"'/usr/bin/cortex hook claude", false},
        {"", false},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        edit e = begin_edit();
        cx_live_hook hook;
        CHECK(cx_live_hook_command_read(cx_str_z(rows[i].command), &e.arena, &hook) ==
              rows[i].ours);
        end_edit(&e);
    }
    edit e = begin_edit();
    cx_live_hook hook = hook_of(CX_LIVE_GEMINI, CX_LIVE_ASK), read;
    cx_str command;
    hook.program = CX_STR("/it's $HOME/cortex");
    CHECK_STATUS(cx_live_hook_command(&hook, &e.arena, &command, &e.err), &e.err);
    CHECK(cx_live_hook_command_read(command, &e.arena, &read));
    CHECK(cx_str_eq(read.program, hook.program) && cx_str_eq(read.home, hook.home));
    CHECK(read.mode == CX_LIVE_ASK && read.agent == CX_LIVE_GEMINI);
    hook.program = CX_STR("/a\nb/cortex");
    CHECK(cx_live_hook_command(&hook, &e.arena, &command, &e.err).code == CX_E_FORMAT);
    hook.program = CX_STR("cortex");
    CHECK(cx_live_hook_command(&hook, &e.arena, &command, &e.err).code == CX_E_FORMAT);
    end_edit(&e);
}

/* R1 */
CX_TEST(register_refuses_what_it_would_spoil)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"{\n  // mine\n}", "line 2, column 3: found a comment"},
        {"{\"a\": 1, \"a\": 2}", "line 1, column 10"},
        {"[]", "expected object"},
        {"{\"hooks\": []}", "line 1, column 11: \"hooks\": found array, expected object"},
        {"{\"hooks\":\n{\"PreToolUse\": {}}}", "line 2, column 16"},
        {"{\"a\": 1", "line 1, column 8"},
        {"\xef\xbb\xbf{}", "line 1, column 1"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        edit e = begin_edit();
        cx_live_hook hook = hook_of(CX_LIVE_CLAUDE, CX_LIVE_ASK);
        CHECK(cx_failed(
            cx_live_register_add(cx_str_z(rows[i].text), &hook, &plain, &e.arena, &e.out, &e.err)));
        CHECK(strstr(e.err.message, rows[i].why) != NULL);
        CHECK(e.out.size == 0);
        end_edit(&e);
    }
}

CX_TEST(register_reads_switches)
{
    edit e = begin_edit();
    cx_live_registered found;
#define READ(text)                                                                              \
    CHECK_STATUS(cx_live_register_read(CX_STR(text), CX_LIVE_GEMINI, &e.arena, &found, &e.err), \
                 &e.err)
    READ("{\"disableAllHooks\": true}");
    CHECK(found.off);
    READ("{\"disableAllHooks\": \"true\", \"hooksConfig\": {\"enabled\": true}}");
    CHECK(!found.off && found.on);
    READ("{\"hooksConfig\": {\"disabled\": [\"x\", \"cortex\"]}, \"allowManagedHooksOnly\": true}");
    CHECK(found.off && found.managed_only && !found.on);
#undef READ
    end_edit(&e);
}

CX_TEST(register_writes_what_administrators_need)
{
    edit e = begin_edit();
    cx_live_registered found;
    size_t count;
    const cx_live_register_options managed = {.managed = true}, only = {true, true};
    cx_live_hook gemini = hook_of(CX_LIVE_GEMINI, CX_LIVE_ENFORCE);
    CHECK_STATUS(cx_live_register_add(CX_STR("{\"hooksConfig\": {\"enabled\": false}}"), &gemini,
                                      &managed, &e.arena, &e.out, &e.err),
                 &e.err);
    CHECK_STATUS(
        cx_live_register_read(cx_buf_str(&e.out), CX_LIVE_GEMINI, &e.arena, &found, &e.err),
        &e.err);
    CHECK(found.on && !found.off && found.complete == found.expected);
    cx_live_hook claude = hook_of(CX_LIVE_CLAUDE, CX_LIVE_ENFORCE);
    cx_buf_clear(&e.out);
    CHECK_STATUS(cx_live_register_add(CX_STR(""), &claude, &only, &e.arena, &e.out, &e.err),
                 &e.err);
    cx_str text = cx_arena_copy_str(&e.arena, cx_buf_str(&e.out));
    CHECK_STATUS(cx_live_register_read(text, CX_LIVE_CLAUDE, &e.arena, &found, &e.err), &e.err);
    CHECK(found.managed_only);
    cx_buf_clear(&e.out);
    CHECK_STATUS(
        cx_live_register_remove(text, CX_LIVE_CLAUDE, &only, &e.arena, &e.out, &count, &e.err),
        &e.err);
    CHECK(strstr(cx_buf_z(&e.out), "allowManagedHooksOnly") == NULL);
    end_edit(&e);
}

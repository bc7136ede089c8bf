/*
 * test_decide.c - effects of calls and verdicts over them (docs/formats/live.md §4), limits (§5).
 */
#include "live/api.h"
#include "memory/api.h"
#include "rules/api.h"

#include "tests/test.h"

static cx_live_policy built_in(cx_arena *arena)
{
    cx_live_policy policy;
    cx_err err;
    /* "/" is in no repository: the built-in policy, with the lists of the batch policies. */
    CHECK_STATUS(cx_live_policy_load(CX_STR("/"), arena, &policy, &err), &err);
    policy.root = CX_STR("/w/repo");
    policy.user_home = CX_STR("/home/u");
    policy.data_directory = CX_STR("/home/u/.local/share/cortex");
    policy.program = CX_STR("/opt/cortex");
    return policy;
}

/* "allow", "unlisted L13", "forbidden C07". */
static void decide(const cx_live_policy *policy, cx_live_agent agent, const char *tool,
                   const char *input, char *out, size_t size)
{
    cx_arena arena;
    cx_json value;
    cx_live_decision decision;
    cx_err err;
    static const char *const verdicts[] = {"allow", "unlisted", "forbidden"};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(cx_str_z(input), &arena, &value, &err), &err);
    const cx_live_call call = {.agent = agent,
                               .event = CX_LIVE_BEFORE,
                               .event_name = CX_STR("PreToolUse"),
                               .session = CX_STR("s"),
                               .cwd = CX_STR("/w/repo"),
                               .tool = cx_str_z(tool),
                               .input = &value};
    CHECK_STATUS(cx_live_decide(policy, &call, &arena, &decision, &err), &err);
    if (decision.verdict == CX_LIVE_ALLOW)
        (void)snprintf(out, size, "allow");
    else
        (void)snprintf(out, size, "%s %s", verdicts[decision.verdict], decision.rule);
    CHECK((decision.verdict == CX_LIVE_ALLOW) == (decision.why.size == 0));
    cx_arena_done(&arena);
}

typedef struct row {
    const char *tool, *input, *expected;
} row;

static void check_rows(const cx_live_policy *policy, cx_live_agent agent, const row *rows,
                       size_t count)
{
    char got[64];
    for (size_t i = 0; i < count; i++) {
        decide(policy, agent, rows[i].tool, rows[i].input, got, sizeof got);
        if (strcmp(got, rows[i].expected) != 0)
            cx_test_fail(__FILE__, __LINE__, "%s %s is '%s', expected '%s'", rows[i].tool,
                         rows[i].input, got, rows[i].expected);
    }
}

CX_TEST(files)
{
    static const row rows[] = {
        {"Write", "{\"file_path\":\"/w/repo/src/a.c\"}", "allow"},
        {"Write", "{\"file_path\":\"src/a.c\"}", "allow"},
        {"Write", "{\"file_path\":\"src/../../other\"}", "unlisted L13"},
        {"Write", "{\"file_path\":\"/w/repository/a\"}", "unlisted L13"},
        {"Write", "{\"file_path\":\"/w/repo/.git/config\"}", "forbidden L12"},
        {"Write", "{\"file_path\":\"/w/repo/sub/.GIT/hooks/x\"}", "forbidden L12"},
        {"Write", "{\"file_path\":\"/w/repo/.env\"}", "unlisted P08"},
        {"Write", "{\"file_path\":\"/w/repo/policies/live.json\"}", "unlisted L12"},
        {"Write", "{\"file_path\":\"/w/repo/.claude/settings.json\"}", "forbidden L10"},
        {"Write", "{\"file_path\":\"/w/repo/.Claude/Settings.json\"}", "forbidden L10"},
        {"Edit", "{\"file_path\":\"/w/repo/.mcp.json\"}", "forbidden L10"},
        {"Edit", "{\"file_path\":\"/home/u/.codex/hooks.json\"}", "forbidden L10"},
        {"Edit", "{\"file_path\":\"/home/u/.bashrc\"}", "forbidden L11"},
        {"Edit", "{\"file_path\":\"~/.ssh/authorized_keys\"}", "forbidden L11"},
        {"Edit", "{\"file_path\":\"/etc/hosts\"}", "forbidden L11"},
        {"Edit", "{\"file_path\":\"/home/u/.local/share/cortex/log\"}", "forbidden L10"},
        {"Edit", "{\"file_path\":\"/opt/cortex\"}", "forbidden L10"},
        {"Write", "{}", "unlisted L08"},
        {"Write", "{\"file_path\":\"\"}", "unlisted L08"},
        {"Read", "{\"file_path\":\"/usr/include/stdio.h\"}", "allow"},
        {"Read", "{\"file_path\":\"/home/u/.ssh/id_rsa\"}", "forbidden L15"},
        {"Read", "{\"file_path\":\"/w/repo/.env\"}", "forbidden L15"},
        {"Read", "{\"file_path\":\"/w/repo/src/.envrc\"}", "allow"},
        {"Read", "{\"file_path\":\"/proc/self/environ\"}", "forbidden L15"},
        {"Grep", "{\"pattern\":\"x\"}", "allow"},
        {"Glob", "{\"pattern\":\"**/*.c\"}", "allow"},
        {"Glob", "{\"pattern\":\"/home/u/.ssh/*\"}", "forbidden L15"},
        {"glob", "{\"pattern\":\"~/.aws/c*\",\"dir_path\":\"src\"}", "forbidden L15"},
        /* Gemini CLI hands on members that its tool does not know: each counts. */
        {"list_directory", "{\"path\":\"src\",\"dir_path\":\"/home/u/.ssh\"}", "forbidden L15"},
        {"list_directory", "{\"dir_path\":\"src\",\"path\":\"/home/u/.ssh\"}", "forbidden L15"},
        {"read_file", "{\"file_path\":\"a\",\"absolute_path\":\"/home/u/.ssh/x\"}",
         "forbidden L15"},
        {"write_file", "{\"file_path\":\"a\",\"path\":\"/etc/x\"}", "forbidden L11"},
        {"write_file", "{\"file_path\":\".gemini/settings.json\",\"command\":\"view\"}",
         "forbidden L10"},
        {"write_file", "{\"file_path\":\"a\",\"path\":7}", "unlisted L08"},
        {"read_many_files", "{\"include\":[\"src/a.c\",\"/home/u/.aws/x\"]}", "forbidden L15"},
        {"Write", "{\"file_path\":\".claude/skills/x/SKILL.md\"}", "unlisted L10"},
        {"Write", "{\"file_path\":\"/home/u/.claude/agents/x.md\"}", "unlisted L13"},
        {"Write", "{\"file_path\":\"/home/u/.gemini/policies/x.toml\"}", "forbidden L10"},
        {"Write", "{\"file_path\":\".claude/notes.md\"}", "allow"},
        {"Grep", "{\"pattern\":\"x\",\"path\":\"/home/u/.aws\"}", "forbidden L15"},
        {"NotebookEdit", "{\"notebook_path\":\"a.ipynb\"}", "allow"},
        {"str_replace_editor", "{\"command\":\"view\",\"path\":\"/etc/passwd\"}", "allow"},
        {"apply_patch", "{\"command\":\"*** Begin Patch\\n*** Add File: a\\n+x\\n*** End Patch\"}",
         "allow"},
        {"apply_patch",
         "{\"command\":\"*** Begin Patch\\n*** Update File: a\\n*** Move to: .git/x\\n*** End "
         "Patch\"}",
         "forbidden L12"},
        {"apply_patch", "{\"command\":\"what\"}", "unlisted L08"},
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_live_policy policy = built_in(&arena);
    check_rows(&policy, CX_LIVE_CLAUDE, rows, CX_COUNT_OF(rows));
    cx_arena_done(&arena);
}

CX_TEST(commands)
{
    static const row rows[] = {
        {"Bash", "{\"command\":\"git status\"}", "allow"},
        {"Bash", "{\"command\":\"ls -la && cat src/a.c | grep x\"}", "allow"},
        {"Bash", "{\"command\":\"rm -rf /\"}", "forbidden C07"},
        {"Bash", "{\"command\":\"mv settings .claude\"}", "unlisted L10"},
        {"Bash", "{\"command\":\"ls\",\"cmd\":\"rm -rf x\"}", "forbidden C07"},
        {"Bash", "{\"command\":\"ls\",\"script\":7}", "unlisted L08"},
        {"run_shell_command",
         "{\"command\":\"touch b\",\"directory\":\"src\",\"dir_path\":\"/etc\"}", "unlisted L08"},
        {"run_shell_command", "{\"command\":\"touch b\",\"dir_path\":\"/etc\"}", "forbidden L11"},
        {"Monitor", "{\"ws\":{\"url\":\"ws://a.org/x\"},\"description\":\"d\"}", "unlisted L09"},
        {"Monitor", "{\"command\":\"ls\",\"ws\":{\"url\":\"wss://a.org/x\"}}", "unlisted L09"},
        {"Bash", "{\"command\":\"echo x; rm -fr y\"}", "forbidden C07"},
        {"Bash", "{\"command\":\"echo $(rm -rf y)\"}", "forbidden C07"},
        {"Bash", "{\"command\":\"'r'm -r -f y\"}", "forbidden C07"},
        {"Bash", "{\"command\":\"sudo ls\"}", "forbidden C07"},
        {"Bash", "{\"command\":\"make\"}", "unlisted C09"},
        {"Bash", "{\"command\":\"git push\"}", "unlisted C12"},
        {"Bash", "{\"command\":\"git -c core.pager=x log\"}", "unlisted C12"},
        {"Bash", "{\"command\":\"X=1 ls\"}", "unlisted C04"},
        {"Bash", "{\"command\":\"ls $X\"}", "unlisted C02"},
        {"Bash", "{\"command\":\"ls *.c\"}", "unlisted C02"},
        {"Bash", "{\"command\":\"ls src/*.c\"}", "allow"},
        {"Bash", "{\"command\":\"eval ls\"}", "unlisted C13"},
        {"Bash", "{\"command\":\"bash -c ls\"}", "unlisted C11"},
        {"Bash", "{\"command\":\"echo x > src/a\"}", "allow"},
        {"Bash", "{\"command\":\"echo x > .git/hooks/pre-commit\"}", "forbidden L12"},
        {"Bash", "{\"command\":\"echo x >> ~/.bashrc\"}", "forbidden L11"},
        {"Bash", "{\"command\":\"echo x > $F\"}", "unlisted L08"},
        {"Bash", "{\"command\":\"cat ~/.ssh/id_rsa\"}", "forbidden L15"},
        {"Bash", "{\"command\":\"cat < /home/u/.netrc\"}", "forbidden L15"},
        {"Bash", "{\"command\":\"head -c 10 --x=/home/u/.netrc\"}", "forbidden L15"},
        {"Bash", "{\"command\":\"cat /usr/include/stdio.h\"}", "allow"},
        {"Bash", "{\"command\":\"cd src && cat ../a\"}", "allow"},
        {"Bash", "{\"command\":\"cd / && echo x > etc/y\"}", "forbidden L11"},
        {"Bash", "{\"command\":\"cd $X; echo x > y\"}", "unlisted L08"},
        {"Bash", "{\"command\":\"(cd /etc); echo x > y\"}", "allow"},
        {"Bash", "{\"command\":\"mkdir -p a/b && cp a b && mv c d && touch e\"}", "allow"},
        {"Bash", "{\"command\":\"cp a /w/other\"}", "unlisted L13"},
        {"Bash", "{\"command\":\"cp -t /etc a\"}", "unlisted L08"},
        {"Bash", "{\"command\":\"ln -s /etc/passwd x\"}", "forbidden L11"},
        {"Bash", "{\"command\":\"cortex session approve\"}", "forbidden L16"},
        {"Bash", "{\"command\":\"/opt/x/cortex append a b\"}", "forbidden L16"},
        {"Bash", "{\"command\":\"set -euo pipefail; ls\"}", "allow"},
        {"Bash", "{\"command\":\"case x in y) ls;; esac\"}", "unlisted C01"},
        {"Bash", "{\"command\":\"ls\",\"dangerouslyDisableSandbox\":true}", "unlisted L07"},
        {"Bash", "{\"command\":7}", "unlisted L08"},
        {"Monitor", "{\"command\":\"rm -rf x\"}", "forbidden C07"},
        {"exec_command", "{\"cmd\":\"ls\",\"tty\":true}", "forbidden L07"},
        {"exec_command", "{\"cmd\":\"cat a\",\"workdir\":\"/home/u/.ssh\"}", "forbidden L15"},
        {"write_stdin", "{\"chars\":\"rm -rf /\\n\"}", "forbidden L07"},
        {"write_stdin", "{\"chars\":\"\"}", "allow"},
        {"shell", "{\"command\":[\"bash\",\"-lc\",\"rm -rf x\"]}", "forbidden C07"},
        {"shell", "{\"command\":[\"ls\"]}", "unlisted L08"},
        {"PowerShell", "{\"command\":\"Remove-Item x\"}", "unlisted L07"},
        {"run_shell_command", "{\"command\":\"touch x\",\"directory\":\"src\"}", "allow"},
        {"Bash",
         "{\"command\":\"apply_patch <<'EOF'\\n*** Begin Patch\\n*** Delete File: "
         ".git/index\\n*** End Patch\\nEOF\"}",
         "forbidden L12"},
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_live_policy policy = built_in(&arena);
    check_rows(&policy, CX_LIVE_CODEX, rows, CX_COUNT_OF(rows));
    cx_arena_done(&arena);
}

CX_TEST(hosts_tools_and_agents)
{
    static const row rows[] = {
        {"WebFetch", "{\"url\":\"https://docs.example.org/x\"}", "allow"},
        {"WebFetch", "{\"url\":\"https://DOCS.example.org.\"}", "allow"},
        {"WebFetch", "{\"url\":\"https://docs.example.org:8443/\"}", "allow"},
        {"WebFetch", "{\"url\":\"https://a.b.example.net\"}", "allow"},
        {"WebFetch", "{\"url\":\"https://example.net\"}", "unlisted L09"},
        {"WebFetch", "{\"url\":\"https://xexample.net\"}", "unlisted L09"},
        {"WebFetch", "{\"url\":\"https://docs.example.org@evil.org/\"}", "unlisted L08"},
        {"WebFetch", "{\"url\":\"https://evil.org#docs.example.org\"}", "unlisted L09"},
        {"WebFetch", "{\"url\":\"https://evil.org\\\\docs.example.org\"}", "unlisted L09"},
        {"WebFetch", "{\"url\":\"file:///etc/passwd\"}", "unlisted L08"},
        {"web_fetch", "{\"prompt\":\"read https://docs.example.org/a and http://evil.org/b\"}",
         "unlisted L09"},
        {"WebSearch", "{\"query\":\"x\"}", "unlisted L09"},
        {"Agent", "{\"description\":\"d\",\"prompt\":\"p\"}", "allow"},
        {"Agent", "{\"prompt\":\"p\",\"isolation\":\"worktree\"}", "allow"},
        {"Agent", "{\"prompt\":\"p\",\"isolation\":\"remote\"}", "forbidden L07"},
        {"SendMessage", "{\"to\":\"ab6faa6d03edd3bc7\",\"message\":\"x\"}", "allow"},
        {"SendMessage", "{\"to\":\"repo-b7\",\"message\":\"x\"}", "unlisted L07"},
        {"SendMessage", "{}", "unlisted L07"},
        {"spawn_agent", "{\"message\":\"x\"}", "allow"},
        {"multi_agent_v1wait_agent", "{\"targets\":[\"1\"]}", "allow"},
        {"multi_agent_v1close_agent", "{\"target\":\"1\"}", "forbidden L05"},
        {"collaborationlist_agents", "{}", "allow"},
        {"multi_agent_v1", "{}", "forbidden L02"},
        {"multi_agent_v1unheard", "{}", "forbidden L02"},
        {"Skill", "{\"skill\":\"x\"}", "unlisted L07"},
        {"Workflow", "{\"script\":\"x\"}", "unlisted L07"},
        {"CronCreate", "{\"cron\":\"* * * * *\",\"prompt\":\"x\"}", "allow"},
        {"CronCreate", "{\"cron\":\"* * * * *\",\"prompt\":\"x\",\"durable\":true}",
         "unlisted L07"},
        {"EnterWorktree", "{\"name\":\"x\"}", "allow"},
        {"EnterWorktree", "{\"path\":\"/w/other\"}", "unlisted L13"},
        {"ExitWorktree", "{\"action\":\"keep\"}", "allow"},
        {"ExitWorktree", "{\"action\":\"remove\",\"discard_changes\":true}", "unlisted L07"},
        {"update_topic", "{\"title\":\"x\"}", "allow"},
        {"get_goal", "{}", "allow"},
        {"ListAgents", "{}", "allow"},
        {"TodoWrite", "{\"todos\":[]}", "allow"},
        {"mcp__good__any", "{}", "allow"},
        {"mcp__good__bad", "{}", "forbidden L05"},
        {"mcp__other__x", "{}", "unlisted L06"},
        {"mcp__good__any", "{\"path\":\"/home/u/.ssh/id_rsa\"}", "forbidden L15"},
        {"mcp__good__any", "{\"a\":[{\"b\":\"/w/other\"}]}", "unlisted L13"},
        {"mcp__good__any", "{\"u\":\"see http://evil.org/\"}", "unlisted L09"},
        {"Brand_New_Tool", "{}", "forbidden L02"},
        {"Named", "{}", "allow"},
        {"WebSearchDenied", "{}", "forbidden L05"},
        {"Task", "{\"prompt\":\"x\"}", "allow"},
    };
    cx_arena arena;
    cx_live_policy policy;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(
        cx_live_policy_read(
            CX_STR("{\"version\":\"v1\",\"network\":\"on-request\",\"network_hosts\":[\"docs."
                   "example.org\",\"*.example.net\"],\"read_deny\":[\"~/"
                   ".ssh\"],\"tools\":{\"allow\":[\"good\",\"Named\"],"
                   "\"deny\":[\"good/bad\",\"WebSearchDenied\",\"close_agent\"]}}"),
            "live.json", &arena, &policy, &err),
        &err);
    policy.root = CX_STR("/w/repo");
    policy.user_home = CX_STR("/home/u");
    check_rows(&policy, CX_LIVE_CLAUDE, rows, CX_COUNT_OF(rows));
    policy.network = CX_STR("deny");
    static const row denied[] = {
        {"WebFetch", "{\"url\":\"https://docs.example.org/x\"}", "forbidden L09"},
        {"WebSearch", "{\"query\":\"x\"}", "forbidden L09"},
    };
    check_rows(&policy, CX_LIVE_CLAUDE, denied, CX_COUNT_OF(denied));
    cx_arena_done(&arena);
}

CX_TEST(limits_only_narrow)
{
    static const row rows[] = {
        {"Write", "{\"file_path\":\"src/app/a.c\"}", "allow"},
        {"Write", "{\"file_path\":\"src/other.c\"}", "forbidden L14"},
        {"Write", "{\"file_path\":\"docs/x\"}", "forbidden L14"},
        {"Write", "{\"file_path\":\"/w/other\"}", "forbidden L14"},
        {"WebFetch", "{\"url\":\"https://a.org\"}", "forbidden L09"},
        {"Bash", "{\"command\":\"curl x\"}", "forbidden C07"},
        {"Bash", "{\"command\":\"git status\"}", "forbidden C07"},
        {"Task", "{}", "forbidden L05"},
    };
    static const cx_str src[] = {CX_STR("src/")}, app[] = {CX_STR("src/app/"), CX_STR("docs/")},
                        task[] = {CX_STR("Task")}, git[] = {CX_STR("git status")};
    const cx_live_limit first = {.has_paths = true, .paths = {src, 1}, .network = CX_STR("deny")};
    const cx_live_limit second = {.has_paths = true,
                                  .paths = {app, 2},
                                  .tools_deny = {task, 1},
                                  .forbidden = {git, 1},
                                  .has_mode = true,
                                  .mode = CX_LIVE_ENFORCE};
    const cx_live_limit wider = {.network = CX_STR("allow")};
    const cx_live_limit lower = {.has_mode = true, .mode = CX_LIVE_ASK};
    cx_arena arena;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_live_policy policy = built_in(&arena), again;
    CHECK_STATUS(cx_live_policy_narrow(&policy, &first, &arena, &err), &err);
    CHECK_STATUS(cx_live_policy_narrow(&policy, &second, &arena, &err), &err);
    CHECK_INT(cx_live_policy_narrow(&policy, &wider, &arena, &err).code, CX_E_USAGE);
    CHECK_INT(cx_live_policy_narrow(&policy, &lower, &arena, &err).code, CX_E_USAGE);
    check_rows(&policy, CX_LIVE_CLAUDE, rows, CX_COUNT_OF(rows));
    /* What is stored is what was narrowed. */
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_live_policy_write(&policy, &arena, &text, &err), &err);
    CHECK_STATUS(cx_live_policy_stored(cx_buf_str(&text), &arena, &again, &err), &err);
    again.user_home = policy.user_home;
    CHECK_INT(again.mode, CX_LIVE_ENFORCE);
    check_rows(&again, CX_LIVE_CLAUDE, rows, CX_COUNT_OF(rows));
    cx_buf_done(&text);
    cx_arena_done(&arena);
}

CX_TEST(hosts_of_a_contract_narrow)
{
    static cx_str listed[] = {{"a.example", 9}, {"b.example", 9}}, other[] = {{"c.example", 9}};
    cx_live_limit limit = {.contract_task = CX_STR("t"), .hosts = {listed, 2}};
    cx_arena arena;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_live_policy policy = built_in(&arena);
    policy.network = CX_STR("allow");
    policy.hosts = (cx_str_list){NULL, 0};
    CHECK_STATUS(cx_live_policy_narrow(&policy, &limit, &arena, &err), &err);
    CHECK(policy.hosts.count == 2 && cx_str_is(policy.network, "allow"));
    limit.hosts.count = 1;
    CHECK_STATUS(cx_live_policy_narrow(&policy, &limit, &arena, &err), &err);
    CHECK(policy.hosts.count == 1 && cx_str_is(policy.hosts.items[0], "a.example"));
    limit.hosts = (cx_str_list){other, 1};
    CHECK_STATUS(cx_live_policy_narrow(&policy, &limit, &arena, &err), &err);
    CHECK(policy.hosts.count == 0 && cx_str_is(policy.network, "on-request"));
    cx_arena_done(&arena);
}

CX_TEST(policies_are_read_completely_or_not_at_all)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "{\"version\":\"v2\"}",
                                      "{\"version\":\"v1\",\"mod\":\"ask\"}",
                                      "{\"version\":\"v1\",\"mode\":\"off\"}",
                                      "{\"version\":\"v1\",\"network\":true}",
                                      "{\"version\":\"v1\",\"write\":[\"../x\"]}",
                                      "{\"version\":\"v1\",\"write\":[\"*\"]}",
                                      "{\"version\":\"v1\",\"allow\":[[]]}",
                                      "{\"version\":\"v1\",\"tools\":{\"alow\":[]}}",
                                      "{\"version\":\"v1\",\"rewrite\":[{\"from\":[\"a\"]}]}",
                                      "{\"version\":\"v1\",\"from\":\"commit\"}",
                                      "{\"version\":\"v1\",\"mode\":\"ask\",\"mode\":\"observe\"}"};
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        cx_arena arena;
        cx_live_policy policy;
        cx_err err = {0};
        cx_arena_init(&arena, cx_alloc_default(), 0);
        if (!cx_failed(cx_live_policy_read(cx_str_z(bad[i]), "live.json", &arena, &policy, &err)))
            cx_test_fail(__FILE__, __LINE__, "%s was read", bad[i]);
        CHECK(strstr(err.message, "live.json") != NULL);
        cx_arena_done(&arena);
    }
}

CX_TEST(actors_of_sessions)
{
    static const char *const ids[] = {"a", "0b5c-1.x_Y", "a/b:c%d", "\xc3\xbc x\n"};
    for (size_t i = 0; i < CX_COUNT_OF(ids); i++) {
        cx_arena arena;
        cx_str actor, agent, session;
        cx_err err;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        CHECK_STATUS(cx_live_actor(CX_LIVE_GEMINI, cx_str_z(ids[i]), &arena, &actor, &err), &err);
        CHECK(cx_actor_ok(actor) && cx_live_actor_is_session(actor));
        CHECK_STATUS(cx_live_actor_split(actor, &arena, &agent, &session, &err), &err);
        CHECK(cx_str_is(agent, "gemini") && cx_str_is(session, ids[i]));
        CHECK(cx_kinds_journal_is_own(actor));
        cx_arena_done(&arena);
    }
    CHECK(!cx_live_actor_is_session(CX_STR("sessions")));
}

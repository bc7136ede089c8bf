/*
 * test_command.c - the rows of the command gate (run.md §8), each reached and each near miss let
 * through; trusted programs and scripts on real files.
 */
#include "command/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include "os/folder.h"
#include "base/io.h"
#include "agent/script.h"
#include "rules/token.h"
#include "tests/support/folder.h"
#include "tests/test.h"

static cx_arena arena;
static cx_err err;

/* --- judging without files -------------------------------------------------------------------- */

static const char *const prefixes[][4] = {
    {"pytest"},
    {"python", "-m", "pytest"},
    {"python3", "-m", "pytest"},
    {"npm", "test"},
    {"echo"},
    {"git"},
    {"scripts/test.sh"},
    {"bash", "scripts/"},
    {"node", "tools/"},
    {"cat"},
    {"bash", "one/two.sh"},
};

static cx_run_command_rules rules_of(const char *const *forbidden)
{
    cx_run_command_rules rules = {.pack_known = true};
    cx_run_argv *allow = CX_ARENA_ARRAY(&arena, cx_run_argv, CX_COUNT_OF(prefixes));
    cx_str *actions = CX_ARENA_ARRAY(&arena, cx_str, 32);
    for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++) {
        cx_str words[4];
        size_t count = 0;
        while (count < 4 && prefixes[i][count] != NULL) {
            words[count] = cx_str_z(prefixes[i][count]);
            count++;
        }
        CHECK_STATUS(cx_run_argv_make(words, count, &arena, &allow[i], &err), &err);
    }
    rules.allow = allow;
    rules.allow_count = CX_COUNT_OF(prefixes);
    rules.forbidden = actions;
    while (forbidden[rules.forbidden_count] != NULL) {
        actions[rules.forbidden_count] = cx_str_z(forbidden[rules.forbidden_count]);
        rules.forbidden_count++;
    }
    return rules;
}

static const char *const forbidden[] = {"rm -rf",         "sudo",     "curl", ".env",
                                        ".runtime-cache", "git push", NULL};

/* The row that decides on the text alone; "ok" when none does. */
static const char *lint_with(const char *text, const char *const *actions, const char *network)
{
    cx_run_command_rules rules = rules_of(actions);
    const cx_run_command_options options = {
        .rules = &rules, .network_policy = cx_str_z(network), .lint = true};
    cx_run_command_verdict verdict;
    CHECK_STATUS(cx_run_command_check(&options, cx_str_z(text), &arena, &verdict, &err), &err);
    CHECK(verdict.allow == (verdict.reason.size == 0));
    return verdict.allow ? "ok" : verdict.rule;
}

typedef struct row {
    const char *text, *rule;
} row;

static void check_rows(const row *rows, size_t count)
{
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < count; i++) {
        const char *got = lint_with(rows[i].text, forbidden, "deny");
        if (strcmp(got, rows[i].rule) != 0)
            cx_test_fail(__FILE__, __LINE__, "'%s' is %s, expected %s", rows[i].text, got,
                         rows[i].rule);
    }
    cx_arena_done(&arena);
}

/* command.h I1 */
CX_TEST(command_rows_by_text)
{
    static const row rows[] = {
        {"pytest", "ok"},
        {"\"", "C01"},
        {"a;", "C02"},
        {"", "C03"},
        {"'' x", "C03"},
        {"\" \t\" x", "C03"},
        {"\"\xc2\xa0\" x", "C03"},
        {"A=1", "C04"},
        {"_a9=", "C04"},
        {"9a=1", "C13"},
        {"a-b=1", "C13"},
        {"=1", "C13"},
        {"rm -r -f x", "C07"},
        {"nc x", "C08"},
        {"pytest a://b", "C08"},
        {"a://b", "C10"},
        {"env pytest", "C09"},
        {"make", "C09"},
        {"x/env pytest", "C09"},
        {"/bin/ls", "C10"},
        {"../x", "C10"},
        {"scripts/../scripts/test.sh", "C10"},
        {"scripts/other.sh", "C10"},
        {"./scripts//test.sh x", "ok"},
        {"./pytest", "C10"},
        {"bash", "C11"},
        {"bash -l scripts/a.sh", "C11"},
        {"bash scripts/a.sh -c", "C11"},
        {"bash scripts/a.sh -cx", "C11"},
        {"bash scripts/a.sh -ex", "C11"},
        {"bash scripts/a.sh --eval=1", "C11"},
        {"bash scripts/a.sh --print", "C11"},
        {"bash scripts/a.sh -x", "ok"},
        {"bash scripts/a.sh --cov", "ok"},
        {"zsh -", "C11"},
        {"python", "C11"},
        {"python -m", "C11"},
        {"python -m ''", "C11"},
        {"python -m -c", "C11"},
        {"python -mpytest", "C11"},
        {"python3.11 -m pytest", "C13"},
        {"python -m pytest -q", "ok"},
        {"python -m pytest -s", "C11"},
        {"git", "C12"},
        {"git -c x=y status", "C12"},
        {"git commit", "C12"},
        {"git log --out=x", "C12"},
        {"git log --ou", "C12"},
        {"git log --o", "C12"},
        {"git log --o=x", "C12"},
        {"git grep '--op=sh x #' pattern", "C12"},
        {"git cat-file --te HEAD:a", "C12"},
        {"git cat-file --text HEAD:a", "C12"},
        {"git cat-file --fi HEAD:a", "C12"},
        {"git log --format=%GS", "C12"},
        {"git grep %GS", "ok"},
        {"git diff --text", "ok"},
        {"git diff --name-only", "ok"},
        {"git show --stat", "ok"},
        {"npm test --script-sh=./x", "C12"},
        {"npm test --silent", "ok"},
        {"git log --oneline", "ok"},
        {"git diff --ext", "C12"},
        {"git diff --no-index a b", "C12"},
        {"git grep -Oless x", "C12"},
        {"git grep -nO x", "C12"},
        {"git grep -eO x", "ok"},
        {"git log -O x", "ok"},
        {"git status --work-tree=x", "C12"},
        {"npm run x", "C13"},
        {"Npm test", "C13"},
        {"bash scripts", "C13"},
        {"bash scripts/", "C13"},
        {"bash ./scripts/a.sh", "ok"},
        {"bash scripts/../x.sh", "C13"},
        {"bash x/../scripts/a.sh", "ok"},
        {"bash ./one//two.sh", "ok"},
        {"bash one/two.sh.x", "C13"},
        {"pytest /x", "C15"},
        {"pytest --x=/y", "C15"},
        {"pytest --x=a=/y", "C15"},
        {"pytest a/../../b", "C15"},
        {"pytest --x=../y", "C15"},
        {"pytest a/../b", "ok"},
        {"pytest x:/y", "ok"},
        {"pytest ..x", "ok"},
    };
    check_rows(rows, CX_COUNT_OF(rows));
}

/* Every beginning of every refused option, alone and with a value, at the end and in the middle. */
CX_TEST(command_refuses_abbreviated_options)
{
    static const char *const forms[] = {"--%.*s", "--%.*s=x", "--%.*s x", "a --%.*s a"};
    size_t count, cases = 0;
    const cx_run_refused_option *options = cx_run_refused_options(&count);
    CHECK(count > 20);
    for (size_t i = 0; i < count; i++) {
        const cx_run_refused_option *option = &options[i];
        const char *sub = option->sub;
        if (sub == NULL)
            sub = strcmp(option->program, "git") == 0   ? "cat-file"
                  : strcmp(option->program, "npm") == 0 ? "test"
                                                        : "x";
        for (size_t size = 1; size <= strlen(option->name); size++) {
            for (size_t form = 0; form < CX_COUNT_OF(forms); form++) {
                char words[64], text[160];
                const char *pattern = forms[form];
                const char *at = strstr(pattern, "%.*s");
                snprintf(words, sizeof words, "%.*s%.*s%s", (int)(at - pattern), pattern, (int)size,
                         option->name, at + 4);
                snprintf(text, sizeof text, "%s %s %s", option->program, sub, words);
                row one = {text, "C12"};
                check_rows(&one, 1);
                cases++;
            }
        }
    }
    CHECK(cases > 500);
}

CX_TEST(command_forbidden_actions)
{
    static const row rows[] = {
        {"echo rm -fr", "C07"},
        {"echo rm -f -r", "C07"},
        {"echo rm -vfr", "C07"},
        {"echo rm x -r y -F", "C07"},
        {"echo rm -r", "ok"},
        {"echo rm --rf", "ok"},
        {"echo -rf rm", "ok"}, /* options are looked for after the first word */
        {"echo \" RM \" -RF", "C07"},
        {"echo x/rm -rf", "C07"},
        {"echo x/rm/ -rf", "C07"},
        {"echo arm -rf", "ok"},
        {"git x push", "C07"},
        {"git push", "C07"},
        {"push git", "C13"},
        {"echo git-push", "ok"},
        {"cat .ENV", "C07"},
        {"cat a/.env/b", "C07"},
        {"cat a:.env", "C07"},
        {"cat --x=.env", "C07"},
        {"cat a,.env,b", "C07"},
        {"cat .env.local", "C07"},
        {"cat .env.example", "ok"},
        {"cat .env.example.x", "C07"},
        {"cat .environment x.env", "ok"},
        {"cat ./.runtime-cache/x", "C07"},
        {"cat runtime-cache", "ok"},
    };
    check_rows(rows, CX_COUNT_OF(rows));
}

CX_TEST(command_actions_of_every_form)
{
    static const struct {
        const char *action, *text, *rule;
    } rows[] = {
        {"secrets/prod", "cat x/secrets//prod/y", "C07"},
        {"secrets/prod", "cat x=./secrets/./PROD", "C07"},
        {"./secrets/prod", "cat secrets/prod", "C07"},
        {"secrets/prod", "cat secrets/x/prod", "ok"},
        {"secrets/prod", "cat secrets prod", "ok"},
        {"--hard", "git log --hard", "C07"},
        {"--hard", "git log --HARD=x", "C07"},
        {"--hard", "git log --harder", "ok"},
        {"git log --hard", "git log x --hard", "C07"},
        {"'two words'", "echo 'Two Words'", "C07"},
        {"two words", "echo 'two words'", "ok"},
        {"", "pytest", "ok"},
        {" \t", "pytest", "ok"},
        {"''", "pytest", "ok"},
        {"rm *", "pytest", "C07"}, /* cannot be read, so nothing can be ruled out */
        {"don't", "pytest", "C07"},
        {"\xc3\x9c", "echo \xc3\x9c", "C07"},
    };
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        const char *const actions[] = {rows[i].action, NULL};
        const char *got = lint_with(rows[i].text, actions, "deny");
        if (strcmp(got, rows[i].rule) != 0)
            cx_test_fail(__FILE__, __LINE__, "'%s' forbids '%s': %s, expected %s", rows[i].action,
                         rows[i].text, got, rows[i].rule);
    }
    cx_arena_done(&arena);
}

CX_TEST(command_network_and_pack)
{
    static const char *const nothing[] = {NULL};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK(strcmp(lint_with("curl x", nothing, "deny"), "C08") == 0);
    CHECK(strcmp(lint_with("curl x", nothing, "on-request"), "C08") == 0);
    CHECK(strcmp(lint_with("curl x", nothing, "allow"), "C13") == 0);
    CHECK(strcmp(lint_with("pytest", nothing, "Deny"), "C05") == 0);
    CHECK(strcmp(lint_with("pytest", nothing, ""), "C05") == 0);
    CHECK(strcmp(lint_with("A=1", nothing, ""), "C04") == 0);
    cx_run_command_rules rules = rules_of(nothing);
    cx_run_command_options options = {.rules = &rules,
                                      .network_policy = CX_STR("on-request"),
                                      .network_approved = true,
                                      .lint = true};
    cx_run_command_verdict verdict;
    CHECK_STATUS(cx_run_command_check(&options, CX_STR("pytest a://b"), &arena, &verdict, &err),
                 &err);
    CHECK(verdict.allow);
    rules.pack_known = false;
    CHECK_STATUS(cx_run_command_check(&options, CX_STR("pytest"), &arena, &verdict, &err), &err);
    CHECK(!verdict.allow && strcmp(verdict.rule, "C06") == 0);
    options.rules = NULL;
    CHECK_STATUS(cx_run_command_check(&options, CX_STR("pytest"), &arena, &verdict, &err), &err);
    CHECK(!verdict.allow && strcmp(verdict.rule, "C06") == 0);
    cx_arena_done(&arena);
}

/* What is not there to judge by refuses. */
/* command.h I3 */
CX_TEST(command_without_ground_is_refused)
{
    static const char *const blank[] = {" ", NULL};
    cx_run_command_verdict verdict;
    cx_json json;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_run_command_rules rules = rules_of(blank);
    const cx_run_command_options options = {.rules = &rules, .network_policy = CX_STR("deny")};
    CHECK_STATUS(
        cx_run_command_check(&options, CX_STR("bash scripts/a.sh"), &arena, &verdict, &err), &err);
    CHECK(!verdict.allow && strcmp(verdict.rule, "C14") == 0);
    CHECK_INT(verdict.ignored_actions, 1);
    CHECK_STATUS(cx_run_command_check(&options, CX_STR("bash ../a.sh"), &arena, &verdict, &err),
                 &err);
    CHECK(!verdict.allow && strcmp(verdict.rule, "C14") == 0);
    CHECK_STATUS(cx_run_command_verdict_json(&verdict, CX_STR("bash ../a.sh"), &arena, &json, &err),
                 &err);
    CHECK_STR(CX_JSON_GET_STR(&json, "rule"), "C14");
    CHECK_STR(CX_JSON_GET_STR(&json, "cmd"), "bash ../a.sh");
    cx_arena_done(&arena);
}

/* --- with files ------------------------------------------------------------------------------- */

static char place[FOLDER_PATH_SIZE];

static const char *at(const char *name)
{
    return cx_arena_printf(&arena, "%s/%s", place, name).data;
}

static void put(const char *name, const char *text, unsigned mode)
{
    const cx_io *io = cx_io_system();
    cx_file file;
    char *path = cx_arena_copy_str(&arena, cx_str_z(at(name))).data == NULL
                     ? NULL
                     : (char *)(uintptr_t)at(name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    CHECK_STATUS(cx_path_make_folders(path, &err), &err);
    *slash = '/';
    CHECK_INT(io->open(io, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE, &file), 0);
    CHECK_STATUS(cx_io_write_all(io, file, path, text, strlen(text), &err), &err);
    (void)io->close(io, file);
    CHECK_INT(chmod(path, mode), 0);
}

static cx_status baseline(void *arg, cx_str commit, cx_str path, size_t limit_bytes,
                          cx_arena *out_in, cx_run_blob *out_kind, cx_bytes *out, cx_err *why)
{
    (void)arg, (void)commit, (void)limit_bytes, (void)out_in, (void)why;
    *out_kind = cx_str_starts(path, CX_STR("scripts/")) ? CX_BLOB_FILE : CX_BLOB_NONE;
    *out = cx_str_bytes(CX_STR("base\n"));
    return CX_SUCCESS;
}

static bool grant_one(void *arg, cx_str scope)
{
    return arg != NULL && cx_str_is(scope, arg);
}

static const char *judge(const char *text, const char *granted, cx_run_executable *out)
{
    static const char *const nothing[] = {NULL};
    cx_run_command_rules rules = rules_of(nothing);
    const cx_run_repo repo = {.read = baseline};
    cx_str bin = cx_str_z(at("bin")), tree = cx_str_z(at("tree"));
    cx_run_script_context ground = {tree.data, &repo, CX_STR("0"), cx_alloc_default()};
    const cx_run_trust trust = {&bin, 1, getuid(), &tree, 1, false};
    const cx_run_command_options options = {.rules = &rules,
                                            .network_policy = CX_STR("deny"),
                                            .worktree = tree.data,
                                            .script = cx_run_script_compare,
                                            .script_arg = &ground,
                                            .granted = grant_one,
                                            .granted_arg = (void *)(uintptr_t)granted,
                                            .trust = &trust};
    cx_run_command_verdict verdict = {0};
    CHECK_STATUS(cx_run_command_check(&options, cx_str_z(text), &arena, &verdict, &err), &err);
    if (out != NULL)
        *out = verdict.executable;
    return verdict.allow ? "ok" : verdict.rule;
}

#define CHECK_JUDGED(text, granted, rule) CHECK_STR(cx_str_z(judge(text, granted, NULL)), rule)

CX_TEST(command_scripts_against_the_baseline)
{
    cx_arena_init(&arena, cx_alloc_default(), 0);
    folder_fresh(place, "command-scripts");
    put("bin/bash", "x", 0755);
    put("bin/node", "x", 0755);
    put("tree/scripts/test.sh", "base\n", 0755);
    put("tree/scripts/a.sh", "base\n", 0644);
    put("tree/scripts/changed.sh", "other\n", 0755);
    put("tree/scripts/deep/b.sh", "base\n", 0755);
    put("tree/tools/new.js", "base\n", 0755);
    CHECK_INT(symlink("a.sh", at("tree/scripts/link.sh")), 0);
    CHECK_INT(symlink("deep", at("tree/scripts/dir")), 0);
    CHECK_INT(mkfifo(at("tree/scripts/pipe"), 0600), 0);

    CHECK_JUDGED("scripts/test.sh", NULL, "ok");
    CHECK_JUDGED("bash scripts/a.sh", NULL, "ok");
    CHECK_JUDGED("bash scripts/deep/../a.sh", NULL, "ok");
    CHECK_JUDGED("bash scripts/changed.sh", NULL, "C14");
    CHECK_JUDGED("bash scripts/changed.sh", "script:scripts/changed.sh", "ok");
    CHECK_JUDGED("bash ./scripts//changed.sh", "script:scripts/changed.sh", "ok");
    CHECK_JUDGED("bash scripts/changed.sh", "script:scripts/a.sh", "C14");
    CHECK_JUDGED("node tools/new.js", NULL, "C14"); /* the baseline has none of that name */
    CHECK_JUDGED("node tools/new.js", "script:tools/new.js", "ok");
    CHECK_JUDGED("bash scripts/missing.sh", "script:scripts/missing.sh", "C14");
    CHECK_JUDGED("bash scripts/link.sh", "script:scripts/link.sh", "C14");
    CHECK_JUDGED("bash scripts/dir/b.sh", NULL, "C14");
    CHECK_JUDGED("bash scripts/dir/../a.sh", NULL, "C14"); /* the kernel would follow the link */
    CHECK_JUDGED("bash scripts/pipe", NULL, "C14");
    CHECK_JUDGED("bash scripts/deep", NULL, "C14");
    CHECK_JUDGED("bash scripts/a.sh/", NULL, "C14");
    CHECK_JUDGED("bash scripts/a.sh/../a.sh", NULL, "C14");
    CHECK_JUDGED("bash scripts/../../x", NULL, "C14");
    /* A repo script is executed itself, so it must be executable. */
    put("tree/scripts/test.sh", "base\n", 0644);
    CHECK_JUDGED("scripts/test.sh", NULL, "C16");
    put("tree/scripts/test.sh", "base\n", 0755);
    cx_run_executable program;
    CHECK_STR(cx_str_z(judge("./scripts/test.sh", NULL, &program)), "ok");
    CHECK(program.in_repository);
    CHECK(cx_str_ends(program.path, CX_STR("/tree/scripts/test.sh")));
    CHECK_STR(program.name, "scripts/test.sh"); /* evidence names no folder of the machine */
    folder_remove(place);
    cx_arena_done(&arena);
}

/* command.h I2 */
CX_TEST(command_trusted_programs)
{
    cx_run_executable program;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    folder_fresh(place, "command-trusted");
    put("tree/x", "", 0755);
    put("bin/pytest", "abc", 0755);
    CHECK_STR(cx_str_z(judge("pytest", NULL, &program)), "ok");
    CHECK(!program.in_repository && cx_str_ends(program.path, CX_STR("/bin/pytest")));
    CHECK(cx_str_eq(program.name, program.path));
    CHECK_INT(program.sha256.bytes[0], 0xba); /* FIPS 180-4: SHA-256 of "abc" */
    put("bin/pytest", "abc", 0775);
    CHECK_JUDGED("pytest", NULL, "C16");
    put("bin/pytest", "abc", 0757);
    CHECK_JUDGED("pytest", NULL, "C16");
    put("bin/pytest", "abc", 0644);
    CHECK_JUDGED("pytest", NULL, "C16");
    CHECK_JUDGED("npm test", NULL, "C16");
    /* A link into the worktree is the agent's program under a trusted name. */
    CHECK_INT(symlink(at("tree/x"), at("bin/npm")), 0);
    CHECK_JUDGED("npm test", NULL, "C16");
    put("elsewhere/x", "y", 0755);
    CHECK_INT(unlink(at("bin/npm")), 0);
    CHECK_INT(symlink("../elsewhere/x", at("bin/npm")), 0);
    CHECK_STR(cx_str_z(judge("npm test", NULL, &program)), "ok");
    CHECK(cx_str_ends(program.path, CX_STR("/elsewhere/x")));
    CHECK_INT(unlink(at("bin/npm")), 0);
    CHECK_INT(mkdir(at("bin/npm"), 0755), 0);
    CHECK_JUDGED("npm test", NULL, "C16");
    folder_remove(place);
    cx_arena_done(&arena);
}

CX_TEST(command_trust_of_folders)
{
    cx_run_executable program, unread = {0};
    const char *why;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    folder_fresh(place, "command-folders");
    put("one/tool", "1", 0755);
    put("two/tool", "2", 0755);
    put("two/only", "3", 0755);
    const cx_str folders[] = {CX_STR("relative"), cx_str_z(at("none")), cx_str_z(at("one")),
                              cx_str_z(at("two"))};
    const cx_str repository[] = {CX_STR(""), cx_str_z(at("two"))};
    cx_run_trust trust = {folders, CX_COUNT_OF(folders), getuid(), repository, 2, false};
    CHECK_STATUS(cx_run_trusted_find(&trust, CX_STR("tool"), &arena, &program, &why, &err), &err);
    CHECK(why == NULL && cx_str_ends(program.path, CX_STR("/one/tool")));
    trust.unhashed = true;
    CHECK_STATUS(cx_run_trusted_find(&trust, CX_STR("tool"), &arena, &unread, &why, &err), &err);
    CHECK(why == NULL && cx_str_eq(unread.path, program.path));
    CHECK(cx_digest_eq(&unread.sha256, &(cx_digest){{0}}) &&
          !cx_digest_eq(&program.sha256, &unread.sha256));
    trust.unhashed = false;
    CHECK_STATUS(cx_run_trusted_find(&trust, CX_STR("only"), &arena, &program, &why, &err), &err);
    CHECK(why != NULL);
    /* A bad one in front is not passed over. */
    CHECK_INT(chmod(at("one/tool"), 0777), 0);
    trust.forbidden_count = 0;
    CHECK_STATUS(cx_run_trusted_find(&trust, CX_STR("tool"), &arena, &program, &why, &err), &err);
    CHECK(why != NULL);
    static const char *const names[] = {"", ".", "..", "a/b", "/bin/sh"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        CHECK_STATUS(cx_run_trusted_find(&trust, cx_str_z(names[i]), &arena, &program, &why, &err),
                     &err);
        CHECK(why != NULL);
    }
    /* The default folders have a shell. */
    CHECK_STATUS(cx_run_trusted_find(NULL, CX_STR("sh"), &arena, &program, &why, &err), &err);
    CHECK(why == NULL);
    trust.owner_uid = getuid() + 1;
    CHECK_INT(chmod(at("one/tool"), 0755), 0);
    CHECK_STATUS(cx_run_trusted_find(&trust, CX_STR("tool"), &arena, &program, &why, &err), &err);
    CHECK(getuid() == 0 ? why == NULL : why != NULL);
    folder_remove(place);
    cx_arena_done(&arena);
}

CX_TEST(command_trivial)
{
    static const struct {
        const char *text;
        bool trivial;
    } rows[] = {
        {"", true},
        {"  ", true},
        {"true", true},
        {" TRUE\t", true},
        {":", true},
        {"\"'\"", true},
        {"echo", true},
        {"echo ok", true},
        {"Echo  Success", true},
        {"echo '1'", true},
        {"'echo' done", true},
        {"echo ''", true},
        {"echo pass fail", false},
        {"echo okay", false},
        {"false", false},
        {"true x", false},
        {"echo ok;", false},
        {"pytest", false},
        {"echo a-very-long-word-indeed", false},
        {"/bin/echo ok", false},
    };
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        bool trivial = !rows[i].trivial;
        CHECK_STATUS(cx_run_command_trivial(cx_str_z(rows[i].text), &arena, &trivial, &err), &err);
        if (trivial != rows[i].trivial)
            cx_test_fail(__FILE__, __LINE__, "'%s' is %s", rows[i].text,
                         trivial ? "trivial" : "not trivial");
    }
    cx_arena_done(&arena);
}

CX_TEST(command_words)
{
    cx_run_token_path path;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STR(cx_run_token_trim(CX_STR("\xe3\x80\x80 a b\xc2\xa0")), "a b");
    CHECK_STR(cx_run_token_trim(CX_STR(" \t")), "");
    CHECK_STR(cx_run_token_base(CX_STR("a/b")), "b");
    CHECK_STR(cx_run_token_base(CX_STR("a/b//")), "b");
    CHECK_STR(cx_run_token_base(CX_STR("/")), "/");
    CHECK_STR(cx_run_token_base(CX_STR("a")), "a");
    CHECK_STATUS(cx_run_token_as_path(CX_STR("./a//b/../c/"), &arena, &path, &err), &err);
    CHECK_STR(path.plain, "a/c");
    CHECK(path.dots && !path.escapes && !path.absolute);
    CHECK_STATUS(cx_run_token_as_path(CX_STR("a/../../b"), &arena, &path, &err), &err);
    CHECK(path.escapes);
    CHECK_STATUS(cx_run_token_as_path(CX_STR("/a"), &arena, &path, &err), &err);
    CHECK(path.absolute);
    cx_arena_done(&arena);
}

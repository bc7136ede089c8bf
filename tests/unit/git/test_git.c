/*
 * test_git.c - what git is told and what it is not (run.md §1 R3), references, trees, and what it
 * prints.
 */
#include <stdio.h>
#include <stdlib.h>

#include "candidate/diff.h"
#include "tests/support/repo_kit.h"
#include "tests/test.h"

#define WITH(kit, err, name)                                                                      \
    repo_kit kit;                                                                                 \
    cx_err err;                                                                                   \
    if (cx_failed(repo_begin(&(kit), name, &(err))) ||                                            \
        cx_failed(repo_write(&(kit), "a/file.txt", CX_STR("text\n"), &(err))) ||                  \
        cx_failed(repo_commit(&(kit), "base", &(err))) || cx_failed(repo_open(&(kit), &(err)))) { \
        cx_test_fail(__FILE__, __LINE__, "%s", (err).message);                                    \
        repo_end(&(kit));                                                                         \
        return;                                                                                   \
    }

CX_TEST(git_is_found_where_it_is_trusted)
{
    unsigned version = 0;
    cx_err err;
    const char *program = cx_git_program();
    REQUIRE(program != NULL);
    CHECK(program[0] == '/');
    CHECK_STATUS(cx_git_version(NULL, &version, &err), &err);
    CHECK(version >= 10000);
    CHECK_INT(cx_git_check_version(NULL, &err).code == CX_SUCCESS.code,
              version >= CX_GIT_VERSION_MIN);
    CHECK_INT(cx_git_version("/bin/true", &version, &err).code, CX_E_FORMAT);
}

/* R3: nothing of our own environment, and every fixed setting, reaches git. */
/* git.h I1 */
CX_TEST(git_sees_a_clean_environment_and_fixed_settings)
{
    WITH(kit, err, "git-env")
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    REQUIRE(setenv("GIT_DIR", "/nonexistent", 1) == 0 &&
            setenv("GIT_INDEX_FILE", "/none", 1) == 0 &&
            setenv("CORTEX_SECRET_TOKEN", "s3cret", 1) == 0);
    CHECK_STATUS(repo_git(&kit, &err, "config", "core.fsmonitor", "/bin/false"), &err);
    CHECK_STATUS(repo_git(&kit, &err, "config", "core.pager", "/bin/false"), &err);
    static const char *const expected[][2] = {{"core.hooksPath", "/dev/null\n"},
                                              {"core.fsmonitor", "false\n"},
                                              {"core.untrackedCache", "false\n"},
                                              {"core.pager", "cat\n"},
                                              {"core.attributesFile", "/dev/null\n"},
                                              {"protocol.allow", "never\n"},
                                              {"gc.auto", "0\n"},
                                              {"commit.gpgSign", "false\n"},
                                              {"diff.external", "\n"}};
    for (size_t i = 0; i < CX_COUNT_OF(expected); i++) {
        cx_buf_clear(&text);
        CHECK_STATUS(
            cx_git_run(kit.git, CX_GIT_ARGS("config", "--get", expected[i][0]), &text, &err), &err);
        CHECK_STR(cx_buf_str(&text), expected[i][1]);
    }
    /* An alias is a program that git starts: it shows what git's children are given. */
    CHECK_STATUS(repo_git(&kit, &err, "config", "alias.env", "!env"), &err);
    cx_buf_clear(&text);
    CHECK_STATUS(cx_git_run(kit.git, CX_GIT_ARGS("env"), &text, &err), &err);
    const char *said = cx_buf_z(&text);
    CHECK(strstr(said, "s3cret") == NULL && strstr(said, "GIT_INDEX_FILE") == NULL);
    CHECK(strstr(said, "HOME=/nonexistent\n") != NULL);
    CHECK(strstr(said, "GIT_CONFIG_GLOBAL=/dev/null\n") != NULL);
    CHECK(strstr(said, "GIT_NO_REPLACE_OBJECTS=1\n") != NULL);
    CHECK(strstr(said, "GIT_LITERAL_PATHSPECS=1\n") != NULL);
    CHECK(unsetenv("GIT_DIR") == 0 && unsetenv("GIT_INDEX_FILE") == 0 &&
          unsetenv("CORTEX_SECRET_TOKEN") == 0);
    cx_buf_done(&text);
    repo_end(&kit);
}

CX_TEST(git_configuration_without_what_may_be_secret)
{
    WITH(kit, err, "git-public-config")
    static const char *const settings[][2] = {
        {"core.sshCommand", "a \"b\" \\ c\n\td;#"},
        {"filter.x.y \"z\"\\.clean", ""},
        {"remote.origin.url", "https://u:t0k3n@example.org"},
        {"http.https://example.org/.extraHeader", "Authorization: t0k3n"},
        {"url.https://t0k3n@example.org.insteadOf", "https://example.org"},
        {"credential.helper", "!echo t0k3n"},
        {"branch.main.remote", "https://t0k3n@example.org"},
        {"include.path", "other"},
        {"corex.token", "t0k3n"},
    };
    cx_str text;
    for (size_t i = 0; i < CX_COUNT_OF(settings); i++)
        CHECK_STATUS(repo_git(&kit, &err, "config", settings[i][0], settings[i][1]), &err);
    CHECK_STATUS(repo_write(&kit, ".git/other", CX_STR("[core]\n\tother = t0k3n\n"), &err), &err);
    CHECK_STATUS(cx_git_public_config(kit.git, &kit.arena, &text, &err), &err);
    CHECK(memmem(text.data, text.size, "t0k3n", 5) == NULL);
    CHECK(memmem(text.data, text.size, "origin", 6) == NULL);
    /* Git reads the same of it. */
    cx_buf once, again;
    cx_buf_init(&once, cx_alloc_default());
    cx_buf_init(&again, cx_alloc_default());
    for (size_t i = 0; i < 2; i++)
        CHECK_STATUS(cx_git_run(kit.git,
                                CX_GIT_ARGS("config", "--local", "--null", "--get", settings[i][0]),
                                &once, &err),
                     &err);
    CHECK_STATUS(repo_write(&kit, ".git/config", text, &err), &err);
    for (size_t i = 0; i < 2; i++)
        CHECK_STATUS(cx_git_run(kit.git,
                                CX_GIT_ARGS("config", "--local", "--null", "--get", settings[i][0]),
                                &again, &err),
                     &err);
    CHECK(once.size != 0);
    CHECK(cx_str_eq(cx_buf_str(&once), cx_buf_str(&again)));
    cx_buf_done(&once);
    cx_buf_done(&again);
    repo_end(&kit);
}

CX_TEST(git_resolves_commits_only)
{
    WITH(kit, err, "git-resolve")
    cx_oid head, oid;
    static const char *const wrong[] = {"",       "--cached", "-p",     "HEAD:a/file.txt",
                                        "a..b",   ":/base",   "absent", "HEAD^{tree}",
                                        "HEAD\n", "HEAD~9"};
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("HEAD"), &head, &err), &err);
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("main"), &oid, &err), &err);
    CHECK(cx_oid_eq(&head, &oid));
    CHECK_STATUS(repo_git(&kit, &err, "tag", "-a", "-m", "x", "v1"), &err);
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("v1"), &oid, &err), &err);
    CHECK(cx_oid_eq(&head, &oid));
    for (size_t i = 0; i < CX_COUNT_OF(wrong); i++)
        CHECK_INT(cx_git_resolve(kit.git, cx_str_z(wrong[i]), &oid, &err).code, CX_E_NOT_FOUND);
    repo_end(&kit);
}

CX_TEST(git_swaps_references_or_says_who_was_faster)
{
    WITH(kit, err, "git-swap")
    cx_oid head, oid, none = {.size = 0}, other = {.size = 20};
    cx_str name = CX_STR("refs/cortex/x");
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("HEAD"), &head, &err), &err);
    CHECK_INT(cx_git_ref(kit.git, name, &oid, &err).code, CX_E_NOT_FOUND);
    CHECK_STATUS(cx_git_ref_set(kit.git, name, &head, &none, &err), &err);
    CHECK_STATUS(cx_git_ref(kit.git, name, &oid, &err), &err);
    CHECK(cx_oid_eq(&head, &oid));
    CHECK_INT(cx_git_ref_set(kit.git, name, &head, &none, &err).code, CX_E_CONFLICT);
    memset(other.bytes, 7, 20);
    CHECK_INT(cx_git_ref_set(kit.git, name, &none, &other, &err).code, CX_E_CONFLICT);
    CHECK_STATUS(cx_git_ref_set(kit.git, name, &none, &head, &err), &err);
    CHECK_INT(cx_git_ref(kit.git, name, &oid, &err).code, CX_E_NOT_FOUND);
    CHECK_INT(cx_git_ref_set(kit.git, CX_STR("HEAD"), &head, &head, &err).code, CX_E_USAGE);
    CHECK_INT(cx_git_ref_set(kit.git, CX_STR("--stdin"), &head, &head, &err).code, CX_E_USAGE);
    repo_end(&kit);
}

CX_TEST(git_finds_the_one_commit_that_two_descend_from)
{
    WITH(kit, err, "git-merge-base")
    cx_oid base, left, right, alone, a, b, out, absent = {.size = 20};
    bool shallow = true;
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("HEAD"), &base, &err), &err);
    CHECK_STATUS(repo_git(&kit, &err, "checkout", "-q", "-b", "left"), &err);
    CHECK_STATUS(repo_write(&kit, "left", CX_STR("l\n"), &err), &err);
    CHECK_STATUS(repo_commit(&kit, "left", &err), &err);
    CHECK_STATUS(repo_git(&kit, &err, "checkout", "-q", "-b", "right", "main"), &err);
    CHECK_STATUS(repo_write(&kit, "right", CX_STR("r\n"), &err), &err);
    CHECK_STATUS(repo_commit(&kit, "right", &err), &err);
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("left"), &left, &err), &err);
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("right"), &right, &err), &err);
    CHECK_STATUS(cx_git_merge_base(kit.git, &left, &right, &out, &err), &err);
    CHECK(cx_oid_eq(&out, &base));
    CHECK_STATUS(cx_git_merge_base(kit.git, &left, &base, &out, &err), &err);
    CHECK(cx_oid_eq(&out, &base));
    /* Merged crosswise they have two. */
    CHECK_STATUS(repo_git(&kit, &err, "merge", "-q", "--no-edit", "left"), &err);
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("HEAD"), &b, &err), &err);
    CHECK_STATUS(repo_git(&kit, &err, "checkout", "-q", "left"), &err);
    CHECK_STATUS(repo_git(&kit, &err, "merge", "-q", "--no-edit", "right~1"), &err);
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("HEAD"), &a, &err), &err);
    CHECK_INT(cx_git_merge_base(kit.git, &a, &b, &out, &err).code, CX_E_NOT_FOUND);
    CHECK(strstr(err.message, "crosswise") != NULL);
    CHECK_STATUS(repo_git(&kit, &err, "checkout", "-q", "--orphan", "alone"), &err);
    CHECK_STATUS(repo_commit(&kit, "alone", &err), &err);
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("HEAD"), &alone, &err), &err);
    CHECK_INT(cx_git_merge_base(kit.git, &alone, &b, &out, &err).code, CX_E_NOT_FOUND);
    CHECK(cx_failed(cx_git_merge_base(kit.git, &absent, &b, &out, &err)));
    CHECK_STATUS(cx_git_is_shallow(kit.git, &shallow, &err), &err);
    CHECK(!shallow);
    repo_end(&kit);
}

CX_TEST(git_reads_trees_and_files_of_commits)
{
    WITH(kit, err, "git-tree")
    cx_oid head, blob;
    cx_git_tree tree;
    cx_buf text;
    uint32_t mode = 0;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_git_resolve(kit.git, CX_STR("HEAD"), &head, &err), &err);
    CHECK_STATUS(cx_git_tree_read(kit.git, &head, &kit.arena, &tree, &err), &err);
    REQUIRE(tree.count == 1);
    CHECK_STR(tree.entries[0].path, "a/file.txt");
    blob = cx_git_blob_oid(kit.git, cx_bytes_from("text\n", 5));
    CHECK(cx_oid_eq(&blob, &tree.entries[0].oid));
    CHECK(cx_git_tree_find(&tree, CX_STR("a/file.txt")) == &tree.entries[0]);
    CHECK(cx_git_tree_find(&tree, CX_STR("a")) == NULL);
    CHECK_STATUS(cx_git_show(kit.git, &head, CX_STR("a/file.txt"), 100, &text, &mode, &err), &err);
    CHECK_INT(mode, 0100644);
    CHECK_STR(cx_buf_str(&text), "text\n");
    CHECK_STATUS(cx_git_show(kit.git, &head, CX_STR("a"), 100, &text, &mode, &err), &err);
    CHECK_INT(mode, 0040000);
    CHECK_STATUS(cx_git_show(kit.git, &head, CX_STR("absent"), 100, &text, &mode, &err), &err);
    CHECK_INT(mode, 0);
    CHECK_INT(cx_git_show(kit.git, &head, CX_STR("a/file.txt"), 4, &text, &mode, &err).code,
              CX_E_LIMIT);
    cx_buf_done(&text);
    repo_end(&kit);
}

/* "ID OLD NEW COUNT" as git prints it: the number that the line had, "?" for what is not committed,
 * or the code. */
static void blame_as(const repo_kit *kit, const char *path, const char *line, const char *expected)
{
    cx_buf printed;
    cx_oid now;
    cx_err err;
    char got[64];
    char name[CX_OID_TEXT_SIZE];
    cx_buf_init(&printed, cx_alloc_default());
    cx_status status = cx_git_blame(kit->git, path, line, &printed, &now, &err);
    const char *z = cx_failed(status) ? "" : cx_buf_z(&printed);
    cx_oid_text(&now, name);
    const char *space = strchr(z, ' ');
    if (cx_failed(status) || space == NULL)
        (void)snprintf(got, sizeof got, "code %d", (int)status.code);
    else if (now.size != 0 && (size_t)(space - z) == strlen(name) &&
             strncmp(z, name, strlen(name)) == 0)
        (void)snprintf(got, sizeof got, "?");
    else
        (void)snprintf(got, sizeof got, "%d", atoi(space + 1));
    if (strcmp(got, expected) != 0)
        cx_test_fail(__FILE__, __LINE__, "%s:%s is %s, expected %s (%s)", path, line, got, expected,
                     cx_failed(status) ? err.message : z);
    cx_buf_done(&printed);
}

/* git.h I3 */
CX_TEST(git_blames_lines_without_reading_the_work_tree)
{
    WITH(kit, err, "git-blame")
    static const char odd[] = "a/\"odd\" \\ name\nof\tfile";
    char none[24];
    (void)snprintf(none, sizeof none, "code %d", CX_E_NOT_FOUND);
    CHECK_STATUS(repo_write(&kit, "two", CX_STR("one\ntwo\n"), &err), &err);
    CHECK_STATUS(repo_write(&kit, odd, CX_STR("one\ntwo\n"), &err), &err);
    CHECK_STATUS(repo_write(&kit, "gone", CX_STR("one\n"), &err), &err);
    CHECK_STATUS(repo_write(&kit, "link", CX_STR("one\n"), &err), &err);
    CHECK_STATUS(repo_commit(&kit, "more", &err), &err);
    blame_as(&kit, "two", "2", "2");
    blame_as(&kit, "two", "3", none);
    blame_as(&kit, "two", "99999999999999999999999999999999999999999999999999999999999999999",
             none);
    blame_as(&kit, odd, "2", "2");
    /* Line ends as other systems have them, alone, and next to a change. */
    CHECK_STATUS(repo_write(&kit, "two", CX_STR("one\r\ntwo\r\n"), &err), &err);
    blame_as(&kit, "two", "2", "2");
    CHECK_STATUS(repo_write(&kit, "two", CX_STR("zero\none\ntwo\nend"), &err), &err);
    blame_as(&kit, "two", "1", "?");
    blame_as(&kit, "two", "3", "2");
    blame_as(&kit, "two", "4", "?");
    CHECK_STATUS(repo_write(&kit, odd, CX_STR("\none\ntwo\n"), &err), &err);
    blame_as(&kit, odd, "1", "?");
    blame_as(&kit, odd, "3", "2");
    CHECK_STATUS(repo_write(&kit, "new", CX_STR("one\n"), &err), &err);
    CHECK_STATUS(cx_folder_remove(kit.folder, "gone", &err), &err);
    CHECK_STATUS(cx_folder_remove(kit.folder, "link", &err), &err);
    CHECK_STATUS(cx_folder_make_link(kit.folder, "two", "link", &err), &err);
    CHECK_STATUS(cx_folder_remove(kit.folder, "a/file.txt", &err), &err);
    CHECK_STATUS(cx_folder_make_fifo(kit.folder, "a/file.txt", &err), &err);
    static const char *const not_there[] = {"new",    "gone", "link",       "a/file.txt", "a",
                                            "../two", "/two", "absent/two", ".git/HEAD"};
    for (size_t i = 0; i < CX_COUNT_OF(not_there); i++)
        blame_as(&kit, not_there[i], "1", none);
    repo_end(&kit);
}

CX_TEST(git_blames_in_repositories_of_every_kind)
{
    static const char *const formats[] = {"sha1", "sha256"};
    char none[24];
    (void)snprintf(none, sizeof none, "code %d", CX_E_NOT_FOUND);
    for (size_t i = 0; i < CX_COUNT_OF(formats); i++) {
        repo_kit kit;
        cx_err err;
        char format[32];
        (void)snprintf(format, sizeof format, "--object-format=%s", formats[i]);
        REQUIRE(!cx_failed(repo_begin(&kit, "git-blame-kinds", &err)));
        CHECK_STATUS(cx_folder_remove_tree(kit.folder, ".git", &err), &err);
        CHECK_STATUS(repo_git(&kit, &err, "init", "-q", "-b", "main", format), &err);
        CHECK_STATUS(repo_write(&kit, "two", CX_STR("one\ntwo\n"), &err), &err);
        CHECK_STATUS(repo_open(&kit, &err), &err);
        blame_as(&kit, "two", "2", none); /* nothing is committed */
        CHECK_STATUS(repo_commit(&kit, "first", &err), &err);
        CHECK_STATUS(repo_write(&kit, "two", CX_STR("one\ntwo\nthree\n"), &err), &err);
        CHECK_STATUS(repo_commit(&kit, "second", &err), &err);
        CHECK_STATUS(repo_write(&kit, "two", CX_STR("zero\none\ntwo\nthree\n"), &err), &err);
        blame_as(&kit, "two", "1", "?");
        blame_as(&kit, "two", "3", "2");
        blame_as(&kit, "two", "4", "3");
        /* As in a clone of one commit. */
        char head[CX_OID_TEXT_SIZE + 1];
        CHECK_STATUS(repo_head(&kit, head, &err), &err);
        (void)strcat(head, "\n");
        CHECK_STATUS(repo_write(&kit, ".git/shallow", cx_str_z(head), &err), &err);
        CHECK_STATUS(repo_git(&kit, &err, "reflog", "expire", "--expire=all", "--all"), &err);
        CHECK_STATUS(repo_git(&kit, &err, "gc", "-q", "--prune=now"), &err);
        blame_as(&kit, "two", "3", "2");
        repo_end(&kit);
    }
}

CX_TEST(git_is_not_opened_outside_of_a_work_tree)
{
    cx_git *git;
    cx_err err;
    CHECK_INT(cx_git_open("/", NULL, NULL, &git, &err).code, CX_E_NOT_FOUND);
    cx_git_options relative = CX_GIT_OPTIONS_INIT;
    relative.home = "home";
    CHECK_INT(cx_git_open("/", &relative, NULL, &git, &err).code, CX_E_USAGE);
}

/* --- what git prints -------------------------------------------------------------------------- */

#define ID "1111111111111111111111111111111111111111"
#define ZERO "0000000000000000000000000000000000000000"

static bool parses(const char *text, size_t size, bool commits, cx_raw_diff *out, cx_arena *arena)
{
    cx_err err;
    return !cx_failed(cx_raw_parse((cx_str){text, size}, 20, commits, arena, out, &err));
}

CX_TEST(raw_differences_keep_their_colon_apart_from_the_mode)
{
    cx_arena arena;
    cx_raw_diff diff;
    static const char one[] = ":120000 100644 " ID " " ZERO " T\0a\tb\0";
    static const char two[] = ":100644 100644 " ID " " ID " R086\0old\0new\0";
    static const char three[] = ID "\0:000000 100755 " ZERO " " ID " A\0x\0";
    cx_arena_init(&arena, cx_alloc_default(), 0);
    REQUIRE(parses(one, sizeof one - 1, false, &diff, &arena) && diff.count == 1);
    CHECK_INT(diff.changes[0].old_mode, 0120000);
    CHECK_STR(diff.changes[0].path, "a\tb");
    REQUIRE(parses(two, sizeof two - 1, false, &diff, &arena) && diff.count == 1);
    CHECK_INT(diff.changes[0].score, 86);
    CHECK_STR(diff.changes[0].from, "old");
    CHECK_STR(diff.changes[0].path, "new");
    REQUIRE(parses(three, sizeof three - 1, true, &diff, &arena) && diff.count == 1);
    CHECK_INT(diff.commit_count, 1);
    cx_arena_done(&arena);
}

CX_TEST(raw_differences_that_are_none_are_refused)
{
    cx_arena arena;
    cx_raw_diff diff;
    static const struct {
        const char *text;
        size_t size;
        bool commits;
    } wrong[] = {
#define WRONG(text, commits) {text, sizeof(text) - 1, commits}
        WRONG(":100644 100644 " ID " " ID " M\0path", false),     /* no end */
        WRONG(":100644 100644 " ID " " ID " R100\0old\0", false), /* one side */
        WRONG(":100644 100644 " ID " " ID " M\0\0", false),
        WRONG(":100648 100644 " ID " " ID " M\0p\0", false),
        WRONG("100644 100644 " ID " " ID " M\0p\0", false),
        WRONG(":100644 100644 " ID " " ID " Q\0p\0", false),
        WRONG(":100644 100644 " ID " " ID " R1000\0p\0q\0", false),
        WRONG(":100644 100644 " ID " " ID " M\0p\0", true), /* of no commit */
    };
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(wrong); i++)
        if (parses(wrong[i].text, wrong[i].size, wrong[i].commits, &diff, &arena))
            cx_test_fail(__FILE__, __LINE__, "record %zu was read", i);
    cx_arena_done(&arena);
}

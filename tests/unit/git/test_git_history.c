/*
 * test_git_history.c - commits that were made in a time are found in git's files, which git itself
 * wrote here and an agent then damages (git_history.h).
 */
#include "git/git_history.h"
#include "os/api.h"
#include "tests/support/repo_kit.h"
#include "tests/test.h"

#define ZEROS "0000000000000000000000000000000000000000"
#define ONES "1111111111111111111111111111111111111111"

CX_TEST(commit_texts)
{
    static const struct {
        const char *text;
        bool ok;
        size_t parents;
        int64_t author_s, committer_s;
        const char *subject;
    } rows[] = {
        {"tree " ONES "\nauthor a <b> 5 +0000\ncommitter c <d> 7 +0000\n\nfirst\nsecond\n", true, 0,
         5, 7, "first"},
        {"tree " ONES "\nparent " ONES "\nparent " ZEROS
         "\nauthor a <b> 5 +0000\ncommitter c <d> 7 +0000\n\n",
         true, 2, 5, 7, ""},
        {"tree " ONES "\nauthor a <b> 5 +0000\ncommitter c <> 7\n", true, 0, 5, 7, ""},
        /* What a name says is no time. */
        {"tree " ONES "\nauthor a 9 <b> 5 +0\ncommitter > <d> 7 +0\n\nx", true, 0, 5, 7, "x"},
        {"tree " ONES "\nparent 11\nauthor a <b> 5 +0000\ncommitter c <d> 7 +0000\n\n", false, 0, 0,
         0, ""},
        {"tree " ONES "\nauthor a <b> +0000\ncommitter c <d> 7 +0000\n\n", false, 0, 0, 0, ""},
        {"tree " ONES "\nauthor a <b> 9999999999999999999 +0\ncommitter c <d> 7 +0\n\n", false, 0,
         0, 0, ""},
        {"tree " ONES "\ncommitter c <d> 7 +0000\n\nauthor a <b> 5 +0000\n", false, 0, 0, 0, ""},
        {"", false, 0, 0, 0, ""},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_git_commit_text commit;
        bool ok = cx_git_commit_parse(cx_str_z(rows[i].text), 20, &commit);
        if (ok != rows[i].ok ||
            (ok && (commit.parent_count != rows[i].parents || commit.author_s != rows[i].author_s ||
                    commit.committer_s != rows[i].committer_s ||
                    !cx_str_is(commit.subject, rows[i].subject))))
            cx_test_fail(__FILE__, __LINE__, "row %zu: %d, %zu parents", i, ok,
                         commit.parent_count);
    }
}

static void count_commits(repo_kit *kit, int64_t since_ns, int64_t until_ns, size_t count,
                          bool has_new_packs)
{
    cx_err err;
    cx_arena arena;
    cx_git_history history;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_git_history_read(kit->path, since_ns, until_ns, &arena, &history, &err), &err);
    CHECK_INT(history.count, count);
    CHECK_INT(history.has_new_packs, has_new_packs);
    CHECK_INT(history.false_names, 0);
    CHECK(!history.is_cut);
    cx_arena_done(&arena);
}

CX_TEST(commits_of_a_repository)
{
    repo_kit kit;
    cx_err err;
    cx_arena arena;
    cx_git_history history;
    CHECK_STATUS(repo_begin(&kit, "history", &err), &err);
    CHECK_STATUS(repo_write(&kit, "a", CX_STR("a\n"), &err), &err);
    CHECK_STATUS(repo_commit(&kit, "one", &err), &err);
    CHECK_STATUS(repo_write(&kit, "a", CX_STR("b\n"), &err), &err);
    CHECK_STATUS(repo_commit(&kit, "two", &err), &err);
    count_commits(&kit, 0, INT64_MAX, 2, false);
    count_commits(&kit, INT64_MAX, INT64_MAX, 0, false);
    count_commits(&kit, 0, 1, 0, false);
    CHECK_STATUS(repo_git(&kit, &err, "pack-refs", "--all"), &err);
    count_commits(&kit, 0, INT64_MAX, 2, false);
    CHECK_STATUS(repo_git(&kit, &err, "gc", "-q", "--prune=now"), &err);
    count_commits(&kit, 0, INT64_MAX, 0, true);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_git_history_read("/", 0, INT64_MAX, &arena, &history, &err);
    CHECK(status.code == CX_E_NOT_FOUND && err.tag != NULL && strcmp(err.tag, "NoRepository") == 0);
    cx_arena_done(&arena);
    repo_end(&kit);
}

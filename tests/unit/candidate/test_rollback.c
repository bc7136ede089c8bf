/*
 * test_rollback.c - what each strategy restores, and when a rollback is not verified (run.md §15).
 */
#include "candidate/api.h"
#include "candidate/candidate.h"
#include "tests/support/repo_kit.h"
#include "tests/test.h"

typedef struct fixture {
    repo_kit kit;
    char root[FOLDER_PATH_SIZE];
    cx_worktree_options where;
    cx_worktree tree;
    cx_file folder; /* the work tree */
    cx_rollback_options options;
    cx_snapshot *before;
    cx_rollback_report report;
    cx_err err;
} fixture;

static bool begin(fixture *f, const char *name, cx_rollback_strategy strategy)
{
    memset(f, 0, sizeof *f);
    f->folder = CX_FILE_NONE;
    cx_err *err = &f->err;
    cx_oid base;
    if (cx_failed(repo_begin(&f->kit, name, err)) ||
        cx_failed(repo_write(&f->kit, "src/a.c", CX_STR("int a;\n"), err)) ||
        cx_failed(repo_write(&f->kit, ".gitignore", CX_STR(".cache/\n*.log\n"), err)) ||
        cx_failed(repo_commit(&f->kit, "base", err)) || cx_failed(repo_open(&f->kit, err)) ||
        cx_failed(cx_git_resolve(f->kit.git, CX_STR("HEAD"), &base, err)))
        return false;
    (void)snprintf(f->root, sizeof f->root, "%.400s/.cache/rt", f->kit.path);
    f->where = (cx_worktree_options){.runtime_root = f->root,
                                     .run_id = CX_STR("run_20260101_000000_"
                                                      "00000000000000000000000000000000"),
                                     .task_id = CX_STR("task_one"),
                                     .commit = base};
    if (cx_failed(cx_run_worktree_add(f->kit.git, &f->where, &f->kit.arena, &f->tree, err)) ||
        cx_failed(cx_folder_open(f->tree.path, &f->folder, err)) ||
        cx_failed(cx_folder_make_folders(f->folder, "empty", 0755, err)) ||
        cx_failed(cx_snapshot_read(f->tree.git, NULL, &f->before, err)))
        return false;
    f->options = (cx_rollback_options){.git = f->tree.git,
                                       .snapshot = f->before,
                                       .baseline = base,
                                       .branch = f->tree.branch,
                                       .strategy = strategy,
                                       .time_s = 1767225600};
    return true;
}

static void end(fixture *f)
{
    cx_folder_close(f->folder);
    cx_snapshot_close(f->before);
    cx_git_close(f->tree.git);
    repo_end(&f->kit);
}

#define WITH(f, name, strategy)                                  \
    fixture f;                                                   \
    if (!begin(&(f), name, strategy)) {                          \
        cx_test_fail(__FILE__, __LINE__, "%s", (f).err.message); \
        end(&(f));                                               \
        return;                                                  \
    }

/* A file of the work tree, written in place. */
static void write_in_tree(const fixture *f, const char *name, const char *text)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", f->tree.path, name);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    CHECK_INT(fwrite(text, 1, strlen(text), file), strlen(text));
    CHECK_INT(fclose(file), 0);
}

static bool is_in_tree(const fixture *f, const char *name)
{
    char path[1024];
    cx_facts facts;
    (void)snprintf(path, sizeof path, "%s/%s", f->tree.path, name);
    return !cx_failed(cx_path_facts(path, false, &facts, NULL));
}

static void roll_back(fixture *f)
{
    CHECK_STATUS(cx_run_rollback(&f->options, &f->kit.arena, &f->report, &f->err), &f->err);
}

CX_TEST(rollback_reset_restores_files_folders_and_modes)
{
    WITH(f, "rollback_reset", CX_ROLL_RESET_HARD)
    write_in_tree(&f, "src/a.c", "changed\n");
    write_in_tree(&f, "new.c", "new\n");
    write_in_tree(&f, "ignored.log", "git clean would leave it\n");
    CHECK_STATUS(cx_folder_set_mode(f.folder, "src", 0700, &f.err), &f.err);
    char empty[1024];
    (void)snprintf(empty, sizeof empty, "%s/empty", f.tree.path);
    CHECK_STATUS(cx_path_remove_tree(empty, &f.err), &f.err);
    roll_back(&f);
    CHECK_STR(f.report.reason, "");
    CHECK(f.report.verified);
    CHECK(cx_oid_eq(&f.report.head, &f.options.baseline));
    CHECK(!is_in_tree(&f, "new.c") && !is_in_tree(&f, "ignored.log") && is_in_tree(&f, "empty"));
    end(&f);
}

CX_TEST(rollback_that_differs_from_the_snapshot_is_not_verified)
{
    WITH(f, "rollback_other", CX_ROLL_RESET_HARD)
    cx_snapshot *dirty;
    write_in_tree(&f, "untracked.txt", "was there before the agent\n");
    CHECK_STATUS(cx_snapshot_read(f.tree.git, NULL, &dirty, &f.err), &f.err);
    f.options.snapshot = dirty; /* no commit has the file, so it cannot come back */
    roll_back(&f);
    CHECK(!f.report.verified);
    CHECK(cx_str_starts(f.report.reason, CX_STR("untracked.txt: ")));
    cx_snapshot_close(dirty);
    end(&f);
}

/* The agent's commits stay in the history; the branch ends with the tree of the baseline. */
CX_TEST(rollback_revert_adds_a_commit_with_the_baselines_tree)
{
    WITH(f, "rollback_revert", CX_ROLL_REVERT_COMMIT)
    cx_oid tree, other, commit;
    CHECK_STATUS(repo_write(&f.kit, "src/a.c", CX_STR("int b;\n"), &f.err), &f.err);
    CHECK_STATUS(repo_commit(&f.kit, "agent", &f.err), &f.err);
    CHECK_STATUS(cx_git_resolve(f.kit.git, CX_STR("HEAD"), &commit, &f.err), &f.err);
    CHECK_STATUS(cx_git_ref_set(f.kit.git, f.tree.branch, &commit, &f.options.baseline, &f.err),
                 &f.err);
    f.options.target = f.options.baseline; /* not the newest */
    roll_back(&f);
    CHECK(!f.report.verified);
    CHECK_STR(f.report.reason, "the commit to revert is not the newest of the task branch");
    f.options.target = commit;
    roll_back(&f);
    CHECK_STR(f.report.reason, "");
    CHECK(f.report.verified);
    CHECK(!cx_oid_eq(&f.report.head, &f.options.baseline) && !cx_oid_eq(&f.report.head, &commit));
    CHECK_STATUS(cx_git_tree_of(f.kit.git, &f.report.head, &tree, &f.err), &f.err);
    CHECK_STATUS(cx_git_tree_of(f.kit.git, &f.options.baseline, &other, &f.err), &f.err);
    CHECK(cx_oid_eq(&tree, &other));
    end(&f);
}

CX_TEST(rollback_drop_removes_the_work_tree_and_no_main_checkout)
{
    WITH(f, "rollback_drop", CX_ROLL_WORKTREE_DROP)
    f.options.git = f.kit.git; /* the main checkout */
    CHECK_INT(cx_run_rollback(&f.options, &f.kit.arena, &f.report, &f.err).code, CX_E_USAGE);
    CHECK(!f.report.verified);
    f.options.git = f.tree.git;
    roll_back(&f);
    CHECK(f.report.verified);
    CHECK(!is_in_tree(&f, "."));
    end(&f);
}

CX_TEST(rollback_without_a_snapshot_is_refused)
{
    WITH(f, "rollback_blind", CX_ROLL_RESET_HARD)
    f.options.snapshot = NULL;
    write_in_tree(&f, "new.c", "new\n");
    CHECK_INT(cx_run_rollback(&f.options, &f.kit.arena, &f.report, &f.err).code, CX_E_USAGE);
    CHECK(!f.report.verified && is_in_tree(&f, "new.c"));
    end(&f);
}

/*
 * test_worktree.c - work trees, candidates, rollbacks and merges on real repositories (run.md §9,
 * §11, §15; §24: 6, 17, 32, 34).
 */
#include <sys/stat.h>

#include "candidate/candidate.h"
#include "candidate/isolation.h"
#include "candidate/merge.h"
#include "git/worktree.h"
#include "tests/support/repo_kit.h"
#include "tests/test.h"

#define RUN CX_STR("run_20260101_000000_00000000000000000000000000000000")

/* A repository with one commit, a runtime root next to it, and the work tree of a task. */
typedef struct fixture {
    repo_kit kit;
    char root[FOLDER_PATH_SIZE];
    cx_worktree_options where;
    cx_worktree tree;
    cx_file folder; /* the work tree */
    cx_snapshot *before;
    cx_oid base;
    cx_err err;
} fixture;

static bool begin_repository(fixture *f, const char *name)
{
    memset(f, 0, sizeof *f);
    f->folder = CX_FILE_NONE;
    cx_err *err = &f->err;
    (void)snprintf(f->root, sizeof f->root, "%s", "");
    if (cx_failed(repo_begin(&f->kit, name, err)) ||
        cx_failed(repo_write(&f->kit, "src/app/main.c", CX_STR("int main;\n"), err)) ||
        cx_failed(repo_write(&f->kit, "README.md", CX_STR("readme\n"), err)) ||
        cx_failed(repo_write(&f->kit, ".gitignore", CX_STR(".runtime-cache/\n*.log\n"), err)) ||
        cx_failed(repo_commit(&f->kit, "base", err)) || cx_failed(repo_open(&f->kit, err)) ||
        cx_failed(cx_git_resolve(f->kit.git, CX_STR("HEAD"), &f->base, err)))
        return false;
    (void)snprintf(f->root, sizeof f->root, "%.400s/.runtime-cache/cortexpilot", f->kit.path);
    f->where = (cx_worktree_options){
        .runtime_root = f->root, .run_id = RUN, .task_id = CX_STR("task_one"), .commit = f->base};
    return true;
}

static bool begin(fixture *f, const char *name)
{
    return begin_repository(f, name) &&
           !cx_failed(
               cx_run_worktree_add(f->kit.git, &f->where, &f->kit.arena, &f->tree, &f->err)) &&
           !cx_failed(cx_folder_open(f->tree.path, &f->folder, &f->err)) &&
           !cx_failed(cx_snapshot_read(f->tree.git, NULL, &f->before, &f->err));
}

static void end(fixture *f)
{
    cx_folder_close(f->folder);
    cx_snapshot_close(f->before);
    cx_git_close(f->tree.git);
    repo_end(&f->kit);
}

#define WITH(f, name)                                            \
    fixture f;                                                   \
    if (!begin(&(f), name)) {                                    \
        cx_test_fail(__FILE__, __LINE__, "%s", (f).err.message); \
        end(&(f));                                               \
        return;                                                  \
    }

static void put(fixture *f, const char *path, const char *text)
{
    cx_file file;
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        char parent[256];
        (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
        CHECK_STATUS(cx_folder_make_folders(f->folder, parent, 0755, &f->err), &f->err);
    }
    CHECK_STATUS(cx_folder_open_in(f->folder, path,
                                   CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE | CX_IO_PUBLIC,
                                   &file, &f->err),
                 &f->err);
    CHECK_STATUS(cx_io_write_all(cx_io_system(), file, path, text, strlen(text), &f->err), &f->err);
    cx_folder_close(file);
}

/* git in the work tree, as an agent without a sandbox would. */
static void agent_git(fixture *f, const char *a, const char *b, const char *c, const char *d)
{
    CHECK_STATUS(repo_git(&f->kit, &f->err, "-C", f->tree.path, a, b, c, d), &f->err);
}

static void judge(fixture *f, cx_diff_report *out)
{
    static const cx_str allowed[] = {{"src/app/", 8}};
    char base[CX_OID_TEXT_SIZE];
    cx_diff_options options = CX_DIFF_OPTIONS_INIT;
    cx_oid_text(&f->base, base);
    options.git = f->tree.git;
    options.snapshot = f->before;
    options.baseline = cx_str_z(base);
    options.allowed_paths = allowed;
    options.allowed_count = 1;
    CHECK_STATUS(cx_diff_gate_run(&options, &f->kit.arena, out, &f->err), &f->err);
}

/* --- work trees ------------------------------------------------------------------------------- */

CX_TEST(worktree_p1_has_its_path_and_branch)
{
    WITH(f, "wt-p1")
    char expected[2 * FOLDER_PATH_SIZE];
    (void)snprintf(expected, sizeof expected, "%s/worktrees/%s/task_one", f.root, RUN.data);
    CHECK_STR(cx_str_z(f.tree.path), expected);
    (void)snprintf(expected, sizeof expected, "worktrees/%s/task_one", RUN.data);
    CHECK_STR(cx_str_z(f.tree.relative), expected);
    (void)snprintf(expected, sizeof expected, "refs/heads/cortex/%s/task_one", RUN.data);
    CHECK_STR(f.tree.branch, expected);
    CHECK(cx_git_is_linked(f.tree.git));
    CHECK_STR(f.before->head_ref, expected);
    CHECK(cx_oid_eq(&f.before->head, &f.base));
    end(&f);
}

CX_TEST(worktree_p0_takes_one_task_only)
{
    fixture f;
    cx_worktree second;
    REQUIRE(begin_repository(&f, "wt-p0"));
    f.where.serial = true;
    CHECK_STATUS(cx_run_worktree_add(f.kit.git, &f.where, &f.kit.arena, &f.tree, &f.err), &f.err);
    cx_worktree_options other = f.where;
    other.task_id = CX_STR("task_two");
    CHECK_INT(cx_run_worktree_add(f.kit.git, &other, &f.kit.arena, &second, &f.err).code,
              CX_E_EXISTS);
    end(&f);
}

CX_TEST(worktree_of_an_unknown_commit_is_not_made)
{
    fixture f;
    cx_facts facts;
    REQUIRE(begin_repository(&f, "wt-none"));
    memset(f.where.commit.bytes, 0x5a, 20);
    CHECK_INT(cx_run_worktree_add(f.kit.git, &f.where, &f.kit.arena, &f.tree, &f.err).code,
              CX_E_NOT_FOUND);
    char path[2 * FOLDER_PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/worktrees/%s", f.root, RUN.data);
    CHECK_INT(cx_path_facts(path, false, &facts, NULL).code, CX_E_NOT_FOUND);
    end(&f);
}

CX_TEST(worktree_names_are_safe_for_git)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STR(cx_run_ref_component(CX_STR("task_1.fix2"), &arena), "task_1.fix2");
    CHECK_STR(cx_run_ref_component(CX_STR("a b~c:d"), &arena), "a%20b%7Ec%3Ad");
    CHECK_STR(cx_run_ref_component(CX_STR("x..y"), &arena), "x.%2Ey");
    CHECK_STR(cx_run_ref_component(CX_STR("x.lock"), &arena), "x%2Elock");
    CHECK_STR(cx_run_ref_component(CX_STR("-x."), &arena), "%2Dx%2E");
    cx_arena_done(&arena);
}

/* Sentence 34: the final commit stays reachable. */
/* worktree.h I2 */
CX_TEST(worktree_removal_keeps_what_was_not_merged)
{
    WITH(f, "wt-keep")
    cx_oid kept;
    cx_facts facts;
    char name[300];
    put(&f, "src/app/new.c", "int x;\n");
    agent_git(&f, "add", "-A", ".", "--");
    agent_git(&f, "commit", "-q", "-m", "work");
    cx_oid head;
    CHECK_STATUS(cx_git_ref(f.tree.git, f.tree.branch, &head, &f.err), &f.err);
    CHECK_STATUS(cx_run_worktree_remove(f.kit.git, &f.where, &f.tree, false, &f.err), &f.err);
    CHECK_INT(cx_path_facts(f.tree.path, false, &facts, NULL).code, CX_E_NOT_FOUND);
    CHECK_INT(cx_git_ref(f.kit.git, f.tree.branch, &kept, NULL).code, CX_E_NOT_FOUND);
    (void)snprintf(name, sizeof name, "refs/cortex/runs/%s/task_one", RUN.data);
    CHECK_STATUS(cx_git_ref(f.kit.git, cx_str_z(name), &kept, &f.err), &f.err);
    CHECK(cx_oid_eq(&kept, &head));
    /* Again is fine. */
    CHECK_STATUS(cx_run_worktree_remove(f.kit.git, &f.where, &f.tree, false, &f.err), &f.err);
    end(&f);
}

CX_TEST(worktree_list_tells_ours_and_drop_removes_orphans)
{
    WITH(f, "wt-list")
    cx_worktree_listed *items;
    size_t count;
    CHECK_STATUS(cx_run_worktree_list(f.kit.git, f.root, &f.kit.arena, &items, &count, &f.err),
                 &f.err);
    REQUIRE(count == 2);
    CHECK(!items[0].ours && items[1].ours);
    CHECK(cx_str_eq(items[1].run_id, RUN));
    CHECK(cx_str_eq(items[1].branch, f.tree.branch));
    CHECK_INT(cx_run_worktree_remove_orphan(f.kit.git, f.root, &items[0], &f.err).code, CX_E_USAGE);
    CHECK_STATUS(cx_run_worktree_remove_orphan(f.kit.git, f.root, &items[1], &f.err), &f.err);
    CHECK_STATUS(cx_run_worktree_list(f.kit.git, f.root, &f.kit.arena, &items, &count, &f.err),
                 &f.err);
    CHECK_INT(count, 1);
    end(&f);
}

/* --- candidates ------------------------------------------------------------------------------- */

/* Sentence 17: the patch is the candidate's, also when the agent staged or committed. */
CX_TEST(patch_is_the_candidate_whatever_was_staged)
{
    cx_buf patches[3], names;
    cx_oid trees[3];
    cx_buf_init(&names, cx_alloc_default());
    for (int how = 0; how < 3; how++) {
        WITH(f, "wt-patch")
        cx_diff_report report;
        cx_buf_init(&patches[how], cx_alloc_default());
        put(&f, "src/app/main.c", "int main;\nint more;\n");
        put(&f, "src/app/b\n\"c.c", "new\n");
        put(&f, "src/app/noise.log", "ignored\n");
        if (how >= 1)
            agent_git(&f, "add", "-A", ".", "--");
        if (how == 2)
            agent_git(&f, "commit", "-q", "-m", "x");
        judge(&f, &report);
        CHECK(report.passed);
        cx_buf_clear(&names);
        CHECK_STATUS(cx_run_candidate_patch(f.tree.git, &report, &patches[how], &names, &f.err),
                     &f.err);
        CHECK_STR(cx_buf_str(&names), "\"src/app/b\\n\\\"c.c\"\nsrc/app/main.c\n");
        trees[how] = report.tree;
        CHECK(patches[how].size != 0);
        cx_diff_report_done(&report);
        end(&f);
    }
    for (int how = 1; how < 3; how++) {
        CHECK(cx_str_eq(cx_buf_str(&patches[0]), cx_buf_str(&patches[how])));
        CHECK(cx_oid_eq(&trees[0], &trees[how]));
    }
    for (int how = 0; how < 3; how++)
        cx_buf_done(&patches[how]);
    cx_buf_done(&names);
}

CX_TEST(candidate_commit_has_one_parent_and_trailers)
{
    WITH(f, "wt-commit")
    cx_diff_report report;
    cx_buf patch, names, text;
    cx_oid commit, head, tree;
    cx_buf_init(&patch, cx_alloc_default());
    cx_buf_init(&names, cx_alloc_default());
    cx_buf_init(&text, cx_alloc_default());
    put(&f, "src/app/new.c", "int x;\n");
    agent_git(&f, "commit", "-q", "--allow-empty", "-mnoise");
    judge(&f, &report);
    CHECK_STATUS(cx_run_candidate_patch(f.tree.git, &report, &patch, &names, &f.err), &f.err);
    cx_candidate_facts facts = {.run_id = RUN,
                                .task_id = CX_STR("task_one"),
                                .contract_sha256 = CX_STR("abc"),
                                .time_s = 1767225600,
                                .branch = f.tree.branch};
    CHECK_STATUS(cx_run_candidate_commit(f.tree.git, &report, &facts, &commit, &f.err), &f.err);
    CHECK_STATUS(cx_git_ref(f.tree.git, f.tree.branch, &head, &f.err), &f.err);
    CHECK(cx_oid_eq(&commit, &head));
    CHECK_STATUS(cx_git_tree_of(f.tree.git, &commit, &tree, &f.err), &f.err);
    CHECK(cx_oid_eq(&tree, &report.tree));
    cx_git_call show = {.args = CX_GIT_ARGS("cat-file", "commit", f.tree.branch.data),
                        .bare = true};
    CHECK_STATUS(cx_git_call_run(f.tree.git, &show, &text, NULL, &f.err), &f.err);
    char base[CX_OID_TEXT_SIZE], parent[CX_OID_TEXT_SIZE + 64];
    cx_oid_text(&f.base, base);
    (void)snprintf(parent, sizeof parent, "parent %s\nauthor cortex", base);
    const char *said = cx_buf_z(&text);
    CHECK(strstr(said, parent) != NULL);
    CHECK(strstr(said, "\nCortex-Task: task_one\nCortex-Contract-SHA256: abc\n") != NULL);
    /* Judged again, the candidate's own commit passes and has the same tree. */
    cx_diff_report again;
    judge(&f, &again);
    CHECK(again.passed);
    CHECK(cx_oid_eq(&again.tree, &report.tree));
    CHECK_INT(again.commits, 1);
    cx_diff_report_done(&again);
    cx_diff_report_done(&report);
    cx_buf_done(&text);
    cx_buf_done(&names);
    cx_buf_done(&patch);
    end(&f);
}

CX_TEST(candidate_refused_is_not_committed)
{
    WITH(f, "wt-refused")
    cx_diff_report report;
    cx_oid commit;
    put(&f, "README.md", "changed\n");
    judge(&f, &report);
    CHECK(!report.passed);
    cx_candidate_facts facts = {.run_id = RUN, .task_id = CX_STR("t")};
    CHECK_INT(cx_run_candidate_commit(f.tree.git, &report, &facts, &commit, &f.err).code,
              CX_E_USAGE);
    cx_diff_report_done(&report);
    end(&f);
}

CX_TEST(candidate_changed_after_the_judgement_is_found)
{
    WITH(f, "wt-late")
    cx_diff_report report;
    cx_buf patch, names;
    cx_buf_init(&patch, cx_alloc_default());
    cx_buf_init(&names, cx_alloc_default());
    put(&f, "src/app/new.c", "judged\n");
    judge(&f, &report);
    put(&f, "src/app/new.c", "other!\n");
    CHECK_INT(cx_run_candidate_patch(f.tree.git, &report, &patch, &names, &f.err).code,
              CX_E_CONFLICT);
    cx_diff_report_done(&report);
    cx_buf_done(&names);
    cx_buf_done(&patch);
    end(&f);
}

CX_TEST(recheck_finds_another_tree)
{
    WITH(f, "wt-recheck")
    static const cx_str allowed[] = {{"src/app/", 8}};
    cx_diff_report first, second;
    char base[CX_OID_TEXT_SIZE];
    put(&f, "src/app/new.c", "one\n");
    judge(&f, &first);
    put(&f, "src/app/new.c", "two\n");
    cx_oid_text(&f.base, base);
    cx_diff_options options = {.git = f.tree.git,
                               .snapshot = f.before,
                               .baseline = cx_str_z(base),
                               .allowed_paths = allowed,
                               .allowed_count = 1,
                               .phase = CX_DIFF_TESTS,
                               .expected_tree = &first.tree};
    CHECK_STATUS(cx_diff_gate_run(&options, &f.kit.arena, &second, &f.err), &f.err);
    CHECK(!second.passed);
    CHECK(cx_run_findings_have(&second.findings, "D00"));
    cx_diff_report_done(&first);
    cx_diff_report_done(&second);
    end(&f);
}

CX_TEST(names_have_one_spelling)
{
    cx_arena arena;
    cx_str *paths;
    size_t count = 0;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_names_read(CX_STR("\"a\\tb\"\nb\n"), &arena, &paths, &count, &err), &err);
    REQUIRE(count == 2);
    CHECK_STR(paths[0], "a\tb");
    CHECK(cx_failed(cx_run_names_read(CX_STR("b\na\n"), &arena, &paths, &count, &err)));
    CHECK(cx_failed(cx_run_names_read(CX_STR("a\na\n"), &arena, &paths, &count, &err)));
    CHECK(cx_failed(cx_run_names_read(CX_STR("a"), &arena, &paths, &count, &err)));
    CHECK(cx_failed(cx_run_names_read(CX_STR("\"a\"\n"), &arena, &paths, &count, &err)));
    CHECK(cx_failed(cx_run_names_read(CX_STR("\"\\011\"\n"), &arena, &paths, &count, &err)));
    CHECK(cx_failed(cx_run_names_read(CX_STR("\"a\n"), &arena, &paths, &count, &err)));
    CHECK(cx_failed(cx_run_names_read(CX_STR("\n"), &arena, &paths, &count, &err)));
    cx_arena_done(&arena);
}

/* --- rollbacks -------------------------------------------------------------------------------- */

static void make_a_mess(fixture *f)
{
    put(f, "README.md", "changed\n");
    put(f, "new/deep/file.c", "x\n");
    put(f, "noise.log", "ignored\n");
    put(f, "src/app/.gitattributes", "* text\n");
    CHECK_STATUS(cx_folder_remove(f->folder, "src/app/main.c", &f->err), &f->err);
    CHECK_STATUS(cx_folder_make_link(f->folder, "/etc/passwd", "src/app/main.c", &f->err), &f->err);
    CHECK_STATUS(cx_folder_make_fifo(f->folder, "src/pipe", &f->err), &f->err);
    agent_git(f, "update-index", "--assume-unchanged", "README.md", "--");
}

static void roll(fixture *f, cx_rollback_strategy strategy, cx_rollback_report *out)
{
    cx_rollback_options options = {.git = f->tree.git,
                                   .snapshot = f->before,
                                   .baseline = f->base,
                                   .branch = f->tree.branch,
                                   .strategy = strategy,
                                   .time_s = 1767225600};
    CHECK_STATUS(cx_run_rollback(&options, &f->kit.arena, out, &f->err), &f->err);
}

/* Sentence 32: untracked files go too. */
CX_TEST(rollback_reset_hard_leaves_nothing)
{
    WITH(f, "wt-reset")
    cx_rollback_report report;
    cx_snapshot *after;
    cx_run_findings findings;
    make_a_mess(&f);
    agent_git(&f, "commit", "-q", "--allow-empty", "-mwork");
    agent_git(&f, "checkout", "-q", "-b", "other");
    roll(&f, CX_ROLL_RESET_HARD, &report);
    CHECK(report.verified);
    CHECK(cx_oid_eq(&report.head, &f.base));
    CHECK_STATUS(cx_snapshot_read(f.tree.git, NULL, &after, &f.err), &f.err);
    cx_run_findings_init(&findings, &f.kit.arena);
    cx_run_isolation_compare(f.before, after, true, &findings);
    CHECK_INT(findings.refusing, 0);
    cx_run_findings_done(&findings);
    cx_snapshot_close(after);
    end(&f);
}

CX_TEST(rollback_of_closed_folders)
{
    WITH(f, "wt-closed")
    cx_rollback_report report;
    put(&f, "shut/in/file.c", "x\n");
    CHECK_STATUS(cx_folder_set_mode(f.folder, "shut/in", 0, &f.err), &f.err);
    CHECK_STATUS(cx_folder_set_mode(f.folder, "shut", 0, &f.err), &f.err);
    roll(&f, CX_ROLL_RESET_HARD, &report);
    CHECK(report.verified);
    end(&f);
}

CX_TEST(rollback_revert_ends_with_the_baselines_tree)
{
    WITH(f, "wt-revert")
    cx_rollback_report report;
    cx_oid tree, base_tree, head;
    put(&f, "src/app/new.c", "x\n");
    agent_git(&f, "add", "-A", ".", "--");
    agent_git(&f, "commit", "-q", "-m", "one");
    CHECK_STATUS(cx_git_resolve(f.tree.git, CX_STR("HEAD"), &head, &f.err), &f.err);
    roll(&f, CX_ROLL_REVERT_COMMIT, &report);
    CHECK(report.verified);
    CHECK(!cx_oid_eq(&report.head, &f.base) && !cx_oid_eq(&report.head, &head));
    CHECK_STATUS(cx_git_tree_of(f.tree.git, &report.head, &tree, &f.err), &f.err);
    CHECK_STATUS(cx_git_tree_of(f.tree.git, &f.base, &base_tree, &f.err), &f.err);
    CHECK(cx_oid_eq(&tree, &base_tree));
    bool above = false;
    CHECK_STATUS(cx_git_is_ancestor(f.tree.git, &head, &report.head, &above, &f.err), &f.err);
    CHECK(above);
    end(&f);
}

CX_TEST(rollback_drop_removes_the_work_tree)
{
    WITH(f, "wt-drop")
    cx_rollback_report report;
    cx_worktree_listed *items;
    size_t count;
    make_a_mess(&f);
    roll(&f, CX_ROLL_WORKTREE_DROP, &report);
    CHECK(report.verified);
    CHECK_STATUS(cx_run_worktree_list(f.kit.git, f.root, &f.kit.arena, &items, &count, &f.err),
                 &f.err);
    CHECK_INT(count, 1);
    /* What comes after a run finds nothing to do. */
    CHECK_STATUS(cx_run_worktree_remove(f.kit.git, &f.where, &f.tree, true, &f.err), &f.err);
    end(&f);
}

/* What cannot be put back is not called rolled back. */
CX_TEST(rollback_that_cannot_be_verified_says_so)
{
    WITH(f, "wt-unverified")
    cx_rollback_report report;
    CHECK_STATUS(repo_git(&f.kit, &f.err, "config", "core.sshCommand", "true"), &f.err);
    roll(&f, CX_ROLL_RESET_HARD, &report);
    CHECK(!report.verified);
    CHECK(cx_str_starts(report.reason, CX_STR("config")));
    end(&f);
}

/* --- merges ----------------------------------------------------------------------------------- */

static void commit_candidate(fixture *f, const char *path, const char *text, cx_oid *out)
{
    cx_diff_report report;
    cx_buf patch, names;
    cx_buf_init(&patch, cx_alloc_default());
    cx_buf_init(&names, cx_alloc_default());
    put(f, path, text);
    judge(f, &report);
    CHECK(report.passed);
    CHECK_STATUS(cx_run_candidate_patch(f->tree.git, &report, &patch, &names, &f->err), &f->err);
    cx_candidate_facts facts = {.run_id = RUN,
                                .task_id = CX_STR("task_one"),
                                .contract_sha256 = CX_STR("abc"),
                                .time_s = 1767225600,
                                .branch = f->tree.branch};
    CHECK_STATUS(cx_run_candidate_commit(f->tree.git, &report, &facts, out, &f->err), &f->err);
    cx_diff_report_done(&report);
    cx_buf_done(&names);
    cx_buf_done(&patch);
}

/* Marks the test skipped where this machine's git cannot merge without a work tree. */
static bool git_merges(void)
{
    cx_err err;
    if (!cx_failed(cx_git_check_version(NULL, &err)))
        return true;
    static char reason[sizeof err.message];
    (void)snprintf(reason, sizeof reason, "%s", err.message);
    cx_test_skip(reason);
    return false;
}

static cx_merge_options merge_of(fixture *f, const cx_oid *candidate)
{
    return (cx_merge_options){.git = f->kit.git,
                              .runtime_root = f->root,
                              .main_ref = CX_STR("refs/heads/main"),
                              .baseline = f->base,
                              .candidate = *candidate,
                              .run_id = RUN,
                              .task_id = CX_STR("task_one"),
                              .contract_sha256 = CX_STR("abc"),
                              .time_s = 1767225600};
}

CX_TEST(merge_fast_forward_moves_main_and_its_clean_checkout)
{
    WITH(f, "wt-ff")
    cx_oid candidate, now;
    cx_merge_plan plan;
    cx_facts facts;
    commit_candidate(&f, "src/app/new.c", "int x;\n", &candidate);
    cx_merge_options options = merge_of(&f, &candidate);
    CHECK_STATUS(cx_run_merge_plan(&options, &f.kit.arena, &plan, &f.err), &f.err);
    CHECK_INT(plan.kind, CX_MERGE_FAST_FORWARD);
    CHECK(cx_oid_eq(&plan.commit, &candidate));
    CHECK_STATUS(cx_run_merge_apply(&options, &plan, &f.kit.arena, &f.err), &f.err);
    CHECK_STATUS(cx_git_ref(f.kit.git, options.main_ref, &now, &f.err), &f.err);
    CHECK(cx_oid_eq(&now, &candidate));
    CHECK_STATUS(cx_folder_facts(f.kit.folder, "src/app/new.c", &facts, &f.err), &f.err);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "status", "--porcelain"), &f.err);
    CHECK_STR(cx_buf_str(&f.kit.said), "");
    CHECK_STATUS(
        cx_run_note_add(f.kit.git, &candidate, CX_STR("Cortex-Manifest-SHA256: 00\n"), 1, &f.err),
        &f.err);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "notes", "--ref=cortex", "show", "HEAD"), &f.err);
    CHECK_STR(cx_buf_str(&f.kit.said), "Cortex-Manifest-SHA256: 00\n");
    end(&f);
}

/* A tracked file that was only touched is no change of the user's. */
CX_TEST(merge_goes_past_files_with_a_new_time)
{
    WITH(f, "wt-touched")
    cx_oid candidate;
    cx_merge_plan plan;
    commit_candidate(&f, "src/app/main.c", "int main;\nint ours;\n", &candidate);
    CHECK_STATUS(cx_folder_touch(f.kit.folder, "src/app/main.c", &f.err), &f.err);
    CHECK_STATUS(cx_folder_touch(f.kit.folder, "README.md", &f.err), &f.err);
    cx_merge_options options = merge_of(&f, &candidate);
    CHECK_STATUS(cx_run_merge_plan(&options, &f.kit.arena, &plan, &f.err), &f.err);
    CHECK_INT(plan.kind, CX_MERGE_FAST_FORWARD);
    CHECK_STATUS(cx_folder_touch(f.kit.folder, "src/app/main.c", &f.err), &f.err);
    CHECK_STATUS(cx_run_merge_apply(&options, &plan, &f.kit.arena, &f.err), &f.err);
    CHECK_STR(plan.detail, "");
    CHECK_STATUS(repo_git(&f.kit, &f.err, "status", "--porcelain"), &f.err);
    CHECK_STR(cx_buf_str(&f.kit.said), "");
    end(&f);
}

CX_TEST(merge_real_has_both_parents_and_trailers)
{
    if (!git_merges())
        return;
    WITH(f, "wt-merge")
    cx_oid candidate, old;
    cx_merge_plan plan;
    commit_candidate(&f, "src/app/new.c", "int x;\n", &candidate);
    CHECK_STATUS(repo_write(&f.kit, "docs/y.md", CX_STR("y\n"), &f.err), &f.err);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "add", "docs"), &f.err);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "commit", "-q", "-m", "other"), &f.err);
    CHECK_STATUS(cx_git_resolve(f.kit.git, CX_STR("main"), &old, &f.err), &f.err);
    cx_merge_options options = merge_of(&f, &candidate);
    CHECK_STATUS(cx_run_merge_plan(&options, &f.kit.arena, &plan, &f.err), &f.err);
    CHECK_INT(plan.kind, CX_MERGE_REAL);
    CHECK(cx_oid_eq(&plan.old, &old));
    CHECK_STATUS(cx_run_merge_apply(&options, &plan, &f.kit.arena, &f.err), &f.err);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "log", "-1", "--format=%P%n%B"), &f.err);
    char a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE], expected[2 * CX_OID_TEXT_SIZE + 4];
    cx_oid_text(&old, a);
    cx_oid_text(&candidate, b);
    (void)snprintf(expected, sizeof expected, "%s %s\n", a, b);
    CHECK(cx_str_starts(cx_buf_str(&f.kit.said), cx_str_z(expected)));
    CHECK(strstr(cx_buf_z(&f.kit.said), "\nCortex-Contract-SHA256: abc\n") != NULL);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "status", "--porcelain"), &f.err);
    CHECK_STR(cx_buf_str(&f.kit.said), "");
    end(&f);
}

CX_TEST(merge_is_refused_for_each_reason)
{
    WITH(f, "wt-refuse")
    cx_oid candidate, main_now;
    cx_merge_plan plan;
    commit_candidate(&f, "src/app/main.c", "int main;\nint ours;\n", &candidate);
    cx_merge_options options = merge_of(&f, &candidate);

    options.main_ref = CX_STR("refs/heads/absent");
    CHECK_STATUS(cx_run_merge_plan(&options, &f.kit.arena, &plan, &f.err), &f.err);
    CHECK_STR(plan.reason, "main_missing");
    options.main_ref = CX_STR("refs/heads/main");

    CHECK_STATUS(repo_write(&f.kit, "README.md", CX_STR("dirty\n"), &f.err), &f.err);
    CHECK_STATUS(cx_run_merge_plan(&options, &f.kit.arena, &plan, &f.err), &f.err);
    CHECK_INT(plan.kind, CX_MERGE_REFUSED);
    CHECK_STR(plan.reason, "checked_out_dirty");
    CHECK_STATUS(repo_git(&f.kit, &f.err, "checkout", "-q", "--", "README.md"), &f.err);

    /* Another process is faster, between plan and apply. */
    CHECK_STATUS(cx_run_merge_plan(&options, &f.kit.arena, &plan, &f.err), &f.err);
    CHECK_INT(plan.kind, CX_MERGE_FAST_FORWARD);
    CHECK_STATUS(repo_write(&f.kit, "src/app/main.c", CX_STR("int main;\nint theirs;\n"), &f.err),
                 &f.err);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "commit", "-qam", "theirs"), &f.err);
    CHECK_STATUS(cx_git_resolve(f.kit.git, CX_STR("main"), &main_now, &f.err), &f.err);
    CHECK_STATUS(cx_run_merge_apply(&options, &plan, &f.kit.arena, &f.err), &f.err);
    CHECK_STR(plan.reason, "moved");

    CHECK_STATUS(repo_git(&f.kit, &f.err, "checkout", "-q", "--orphan", "fresh"), &f.err);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "commit", "-qm", "other history"), &f.err);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "branch", "-f", "main", "fresh"), &f.err);
    CHECK_STATUS(cx_run_merge_plan(&options, &f.kit.arena, &plan, &f.err), &f.err);
    CHECK_STR(plan.reason, "baseline_not_in_main");
    end(&f);
}

/* `main` and the candidate of a task change the same line. */
static void diverge(fixture *f, cx_oid *candidate)
{
    commit_candidate(f, "src/app/main.c", "int main;\nint ours;\n", candidate);
    CHECK_STATUS(repo_write(&f->kit, "src/app/main.c", CX_STR("int main;\nint theirs;\n"), &f->err),
                 &f->err);
    CHECK_STATUS(repo_git(&f->kit, &f->err, "commit", "-qam", "theirs"), &f->err);
}

CX_TEST(merge_is_refused_for_a_conflict)
{
    if (!git_merges())
        return;
    WITH(f, "wt-conflict")
    cx_oid candidate;
    cx_merge_plan plan;
    diverge(&f, &candidate);
    cx_merge_options options = merge_of(&f, &candidate);
    CHECK_STATUS(cx_run_merge_plan(&options, &f.kit.arena, &plan, &f.err), &f.err);
    CHECK_INT(plan.kind, CX_MERGE_REFUSED);
    CHECK_STR(plan.reason, "conflict");
    end(&f);
}

/* This machine's git, but as it was before `merge-tree --write-tree`. */
#define OLD_GIT                                   \
    "#!/bin/sh\n"                                 \
    "case \" $* \" in\n"                          \
    "*' version '*) echo git version 2.34.1 ;;\n" \
    "*' merge-tree '*) exit 129 ;;\n"             \
    "*) exec /usr/bin/git \"$@\" ;;\n"            \
    "esac\n"

CX_TEST(merge_with_an_older_git_says_which_one_it_needs)
{
    WITH(f, "wt-old-git")
    char program[FOLDER_PATH_SIZE + 16];
    cx_git *git = NULL;
    cx_oid candidate, main_was, main_now;
    cx_merge_plan plan;
    diverge(&f, &candidate);
    CHECK_STATUS(repo_write(&f.kit, ".git/old", CX_STR(OLD_GIT), &f.err), &f.err);
    (void)snprintf(program, sizeof program, "%s/.git/old", f.kit.path);
    CHECK_INT(chmod(program, 0700), 0);
    cx_git_options with = CX_GIT_OPTIONS_INIT;
    with.program = program;
    CHECK_STATUS(cx_git_open(f.kit.path, &with, NULL, &git, &f.err), &f.err);
    CHECK_STATUS(cx_git_resolve(f.kit.git, CX_STR("main"), &main_was, &f.err), &f.err);
    cx_merge_options options = merge_of(&f, &candidate);
    options.git = git;
    CHECK_INT(cx_run_merge_plan(&options, &f.kit.arena, &plan, &f.err).code, CX_E_UNSUPPORTED);
    CHECK_STR(cx_str_z(f.err.message), "git 2.34 is too old: 2.38 or newer is needed");
    CHECK_INT(cx_git_check_version(git, &f.err).code, CX_E_UNSUPPORTED);
    CHECK_STATUS(cx_git_resolve(f.kit.git, CX_STR("main"), &main_now, &f.err), &f.err);
    CHECK(cx_oid_eq(&main_was, &main_now));
    cx_git_close(git);
    end(&f);
}

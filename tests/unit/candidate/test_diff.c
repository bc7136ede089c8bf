/*
 * test_diff.c - what the case files of the diff gate do not ask: limits, binary outputs, other
 * people's references, files made to look untouched, reports (run.md §9).
 */
#include "candidate/diff.h"
#include "candidate/isolation.h"
#include "tests/support/repo_kit.h"
#include "tests/test.h"

typedef struct fixture {
    repo_kit kit;
    cx_snapshot *before;
    cx_diff_options options;
    cx_diff_report report;
    cx_err err;
} fixture;

static const cx_str allowed[] = {{"src/", 4}};

static bool begin(fixture *f, const char *name)
{
    memset(f, 0, sizeof *f);
    if (cx_failed(repo_begin(&f->kit, name, &f->err)) ||
        cx_failed(repo_write(&f->kit, "src/a.c", CX_STR("int a;\n"), &f->err)) ||
        cx_failed(repo_write(&f->kit, "README.md", CX_STR("readme\n"), &f->err)) ||
        cx_failed(repo_commit(&f->kit, "base", &f->err)) ||
        cx_failed(repo_open(&f->kit, &f->err)) ||
        cx_failed(cx_snapshot_read(f->kit.git, NULL, &f->before, &f->err)))
        return false;
    f->options.git = f->kit.git;
    f->options.snapshot = f->before;
    f->options.baseline = CX_STR("HEAD");
    f->options.allowed_paths = allowed;
    f->options.allowed_count = 1;
    return true;
}

static void end(fixture *f)
{
    cx_snapshot_close(f->before);
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
    CHECK_STATUS(repo_write(&f->kit, path, cx_str_z(text), &f->err), &f->err);
}

/* The rules that fire, as "D07 D12". */
static void check_rules(fixture *f, const char *expected, int line)
{
    char found[256] = "";
    size_t size = 0;
    cx_status status = cx_diff_gate_run(&f->options, &f->kit.arena, &f->report, &f->err);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, line, "%s", f->err.message);
        return;
    }
    for (int rule = 0; rule <= 15; rule++) {
        char name[8];
        (void)snprintf(name, sizeof name, "D%02d", rule);
        if (cx_run_findings_have(&f->report.findings, name))
            size += (size_t)snprintf(found + size, sizeof found - size, "%s%s",
                                     size == 0 ? "" : " ", name);
    }
    if (strcmp(found, expected) != 0)
        cx_test_fail(__FILE__, line, "found '%s', expected '%s'", found, expected);
    if (f->report.passed != (expected[0] == '\0'))
        cx_test_fail(__FILE__, line, "passed is wrong");
    cx_diff_report_done(&f->report);
}

#define CHECK_RULES(f, expected) check_rules(&(f), expected, __LINE__)

CX_TEST(diff_binary_is_allowed_for_the_exact_path_alone)
{
    WITH(f, "diff-binary")
    const cx_str binary[] = {CX_STR("src/logo.png")};
    CHECK_STATUS(repo_write(&f.kit, "src/logo.png", cx_str_from("\0\1\2", 3), &f.err), &f.err);
    CHECK_RULES(f, "D12");
    f.options.binary_ok = binary;
    f.options.binary_ok_count = 1;
    CHECK_RULES(f, "");
    CHECK_STATUS(repo_write(&f.kit, "src/logo.png2", cx_str_from("\0\1\2", 3), &f.err), &f.err);
    CHECK_RULES(f, "D12");
    end(&f);
}

CX_TEST(diff_amounts_are_limited)
{
    WITH(f, "diff-amount")
    put(&f, "src/b.c", "one\n");
    put(&f, "src/c.c", "two\n");
    f.options.max_paths = 2;
    f.options.max_bytes = 8;
    CHECK_RULES(f, "");
    f.options.max_paths = 1;
    CHECK_RULES(f, "D15");
    f.options.max_paths = 2;
    f.options.max_bytes = 7;
    CHECK_RULES(f, "D15");
    /* What is too much is still told by its paths. */
    put(&f, "README.md", "more\n");
    CHECK_RULES(f, "D07 D15");
    end(&f);
}

CX_TEST(diff_references_of_others_are_told_and_not_refused)
{
    WITH(f, "diff-shared")
    CHECK_STATUS(repo_git(&f.kit, &f.err, "branch", "cortex/other/task"), &f.err);
    CHECK_RULES(f, "D03");
    f.options.shared = true;
    CHECK_STATUS(cx_diff_gate_run(&f.options, &f.kit.arena, &f.report, &f.err), &f.err);
    CHECK(f.report.passed);
    REQUIRE(f.report.findings.list.count == 1);
    CHECK(f.report.findings.list.items[0].informs);
    cx_diff_report_done(&f.report);
    /* Others may not change the task branch and the repository's own files, shared or not. */
    CHECK_STATUS(repo_git(&f.kit, &f.err, "config", "core.fsmonitor", "/bin/true"), &f.err);
    CHECK_RULES(f, "D02");
    end(&f);
}

/* I2 of snapshot.c: a time of the last change that was put back does not hide a change. */
CX_TEST(diff_sees_through_times_that_were_put_back)
{
    WITH(f, "diff-times")
    char path[FOLDER_PATH_SIZE + 16];
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_result result;
    (void)snprintf(path, sizeof path, "%s/README.md", f.kit.path);
    /* Older than any tick of the clock: hashes may be taken over from here on. */
    cx_snapshot *again;
    const cx_snapshot_options options = {.before = f.before};
    CHECK_STATUS(cx_snapshot_read(f.kit.git, &options, &again, &f.err), &f.err);
    cx_snapshot_close(f.before);
    f.before = again;
    f.options.snapshot = again;
    const cx_snap_file *was = cx_snapshot_find(again, CX_STR("README.md"));
    REQUIRE(was != NULL);
    char moment[64];
    (void)snprintf(moment, sizeof moment, "@%lld.%09lld",
                   (long long)(was->facts.modified_ns / 1000000000),
                   (long long)(was->facts.modified_ns % 1000000000));
    CHECK_RULES(f, "");
    put(&f, "README.md", "README\n"); /* as long as it was */
    const char *const argv[] = {"/usr/bin/touch", "-d", moment, path, NULL};
    how.argv = argv;
    CHECK_STATUS(cx_spawn_run(&how, &result, &f.err), &f.err);
    CHECK_INT(result.exit_code, 0);
    CHECK_RULES(f, "D07");
    end(&f);
}

CX_TEST(diff_baseline_that_is_none_is_all_that_is_said)
{
    WITH(f, "diff-none")
    put(&f, "README.md", "x\n");
    f.options.baseline = CX_STR("--cached");
    CHECK_RULES(f, "D01");
    f.options.baseline = CX_STR("refs/heads/absent");
    CHECK_RULES(f, "D01");
    end(&f);
}

CX_TEST(diff_untracked_files_from_before_may_stay_but_not_change)
{
    WITH(f, "diff-untracked")
    put(&f, "notes.txt", "mine\n");
    cx_snapshot_close(f.before);
    CHECK_STATUS(cx_snapshot_read(f.kit.git, NULL, &f.before, &f.err), &f.err);
    f.options.snapshot = f.before;
    CHECK_RULES(f, "");
    put(&f, "notes.txt", "yours\n");
    CHECK_RULES(f, "D07");
    CHECK_STATUS(cx_folder_remove(f.kit.folder, "notes.txt", &f.err), &f.err);
    CHECK_RULES(f, "D07");
    end(&f);
}

CX_TEST(diff_trailing_dots_are_another_name_and_case_is_not)
{
    WITH(f, "diff-names")
    put(&f, "src/a.c.", "x\n");
    CHECK_RULES(f, "");
    put(&f, "src/A.C", "x\n");
    CHECK_RULES(f, "D14");
    end(&f);
}

/* A commit that the repository does not have, or an index that names one, is no text. */
CX_TEST(diff_contents_that_are_missing_are_refused)
{
    WITH(f, "diff-missing")
    CHECK_STATUS(repo_git(&f.kit, &f.err, "update-index", "--add", "--info-only", "--cacheinfo",
                          "100644,1111111111111111111111111111111111111111,src/ghost.c"),
                 &f.err);
    CHECK_RULES(f, "D12");
    end(&f);
}

CX_TEST(diff_report_has_rules_once_and_in_order)
{
    WITH(f, "diff-report")
    cx_json json;
    put(&f, "README.md", "x\n");
    put(&f, "other", "y\n");
    CHECK_STATUS(cx_folder_make_link(f.kit.folder, "a.c", "src/l", &f.err), &f.err);
    CHECK_STATUS(cx_diff_gate_run(&f.options, &f.kit.arena, &f.report, &f.err), &f.err);
    CHECK_STATUS(cx_diff_report_json(&f.report, &f.kit.arena, &json, &f.err), &f.err);
    const cx_json *rules = CX_JSON_GET(&json, "rules"), *changed = CX_JSON_GET(&json, "changed");
    REQUIRE(rules != NULL && rules->count == 2 && changed != NULL && changed->count == 3);
    CHECK_STR(cx_json_text(&rules->items[0]), "D07");
    CHECK_STR(cx_json_text(&rules->items[1]), "D09");
    CHECK_STR(cx_json_text(&changed->items[0]), "README.md");
    CHECK_STR(CX_JSON_GET_STR(&json, "phase"), "agent");
    cx_diff_report_done(&f.report);
    for (int rule = 0; rule <= 15; rule++) {
        char name[8];
        (void)snprintf(name, sizeof name, "D%02d", rule);
        CHECK(cx_diff_rule_text(name) != NULL);
    }
    CHECK(cx_diff_rule_text("D16") == NULL);
    end(&f);
}

/* Sentence 38: what a reviewer did is seen, having looked is not. */
CX_TEST(isolation_sees_modes_folders_flags_and_hooks)
{
    static const struct {
        const char *kind;
        const char *op[4];
    } deeds[] = {{"mode", {"chmod"}},
                 {"folder", {"mkdir"}},
                 {"index", {"git", "update-index", "--assume-unchanged", "README.md"}},
                 {"repository", {"hook"}},
                 {"ref", {"git", "branch", "new"}}};
    for (size_t i = 0; i < CX_COUNT_OF(deeds); i++) {
        WITH(f, "isolation")
        cx_snapshot *after;
        cx_run_findings findings;
        const char *const *op = deeds[i].op;
        if (strcmp(op[0], "chmod") == 0)
            CHECK_STATUS(cx_folder_set_mode(f.kit.folder, "src/a.c", 0600, &f.err), &f.err);
        else if (strcmp(op[0], "mkdir") == 0)
            CHECK_STATUS(cx_folder_make_folders(f.kit.folder, "empty", 0755, &f.err), &f.err);
        else if (strcmp(op[0], "hook") == 0)
            put(&f, ".git/hooks/post-commit", "#!/bin/sh\n");
        else
            CHECK_STATUS(repo_git(&f.kit, &f.err, op[1], op[2], op[3]), &f.err);
        CHECK_STATUS(cx_snapshot_read(f.kit.git, NULL, &after, &f.err), &f.err);
        cx_run_findings_init(&findings, &f.kit.arena);
        cx_run_isolation_compare(f.before, after, false, &findings);
        if (findings.list.count == 0)
            cx_test_fail(__FILE__, __LINE__, "%s was not seen", deeds[i].kind);
        else
            CHECK_STR(findings.list.items[0].detail, deeds[i].kind);
        cx_run_findings_done(&findings);
        cx_snapshot_close(after);
        end(&f);
    }
}

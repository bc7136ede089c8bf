/*
 * test_isolation.c - two snapshots compared (run.md §10): each kind of difference, and what other
 * processes may change. test_diff.c compares snapshots of real repositories.
 */
#include "candidate/isolation.h"
#include "tests/test.h"

static const cx_snap_file file_a = {.path = {"a", 1},
                                    .facts = {.kind = CX_FILE_REGULAR, .mode = 0644}};
static const cx_snap_file file_b = {.path = {"b", 1},
                                    .facts = {.kind = CX_FILE_REGULAR, .mode = 0644}};

static void check_findings(cx_snapshot *before, cx_snapshot *after, bool shared, size_t refusing,
                           const char *first, const char *kind, int line)
{
    cx_arena arena;
    cx_run_findings findings;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_run_findings_init(&findings, &arena);
    cx_run_isolation_compare(before, after, shared, &findings);
    if (findings.refusing != refusing)
        cx_test_fail(__FILE__, line, "%zu refusing findings, expected %zu", findings.refusing,
                     refusing);
    if (first != NULL && findings.list.count != 0) {
        CHECK_STR(findings.list.items[0].where, first);
        CHECK_STR(findings.list.items[0].detail, kind);
        CHECK_STR(cx_str_z(findings.list.items[0].rule), "reviewer_side_effect");
    } else if (first != NULL)
        cx_test_fail(__FILE__, line, "nothing was found");
    else
        CHECK_INT(findings.list.count, 0);
    cx_run_findings_done(&findings);
    cx_arena_done(&arena);
}

CX_TEST(isolation_equal_snapshots_have_no_finding)
{
    cx_snap_file files[] = {file_a, file_b}, later[] = {file_a, file_b};
    cx_snapshot before = {.files = files, .file_count = 2};
    cx_snapshot after = {.files = later, .file_count = 2};
    check_findings(&before, &after, false, 0, NULL, NULL, __LINE__);
}

CX_TEST(isolation_files_added_removed_and_changed)
{
    cx_snap_file one[] = {file_a}, two[] = {file_a, file_b}, changed[] = {file_a};
    cx_snapshot before = {.files = one, .file_count = 1};
    cx_snapshot after = {.files = two, .file_count = 2};
    check_findings(&before, &after, false, 1, "b", "file", __LINE__);
    check_findings(&after, &before, false, 1, "b", "file", __LINE__);
    cx_snapshot other = {.files = changed, .file_count = 1};
    changed[0].sha256.bytes[0] = 1;
    check_findings(&before, &other, false, 1, "a", "file", __LINE__);
    changed[0] = file_a;
    changed[0].facts.mode = 0755;
    check_findings(&before, &other, false, 1, "a", "mode", __LINE__);
    changed[0] = file_a;
    changed[0].facts.kind = CX_FILE_LINK;
    check_findings(&before, &other, false, 1, "a", "link", __LINE__);
}

/* A reference of another run informs when the repository is shared; HEAD is always ours. */
CX_TEST(isolation_references_of_others_inform_only_when_shared)
{
    cx_snap_ref refs[] = {{.name = CX_STR("refs/heads/x"), .oid = {.size = 20}}};
    cx_snap_ref moved[] = {{.name = CX_STR("refs/heads/x"), .oid = {.size = 20, .bytes = {1}}}};
    cx_snapshot before = {.refs = refs, .ref_count = 1, .head_ref = CX_STR("refs/heads/t")};
    cx_snapshot after = {.refs = moved, .ref_count = 1, .head_ref = CX_STR("refs/heads/t")};
    check_findings(&before, &after, false, 1, "refs/heads/x", "ref", __LINE__);
    check_findings(&before, &after, true, 0, "refs/heads/x", "ref", __LINE__);
    cx_snapshot elsewhere = {.refs = refs, .ref_count = 1, .head_ref = CX_STR("refs/heads/u")};
    check_findings(&before, &elsewhere, true, 1, "HEAD", "head", __LINE__);
}

CX_TEST(isolation_repository_files_are_never_others)
{
    cx_snap_meta config[] = {{.name = CX_STR("config")}}, hook[] = {{.name = CX_STR("config")}};
    cx_snap_meta tree[] = {{.name = CX_STR("config")}, {.name = CX_STR("worktrees/x/HEAD")}};
    cx_snapshot before = {.metas = config, .meta_count = 1};
    cx_snapshot after = {.metas = hook, .meta_count = 1};
    hook[0].sha256.bytes[31] = 1;
    check_findings(&before, &after, true, 1, "config", "repository", __LINE__);
    cx_snapshot added = {.metas = tree, .meta_count = 2};
    check_findings(&before, &added, false, 1, "worktrees/x/HEAD", "repository", __LINE__);
    check_findings(&before, &added, true, 0, "worktrees/x/HEAD", "repository", __LINE__);
}

CX_TEST(isolation_finds_at_most_a_thousand)
{
    static cx_snap_file files[1200];
    static char names[1200][8];
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        (void)snprintf(names[i], sizeof names[i], "%06zu", i);
        files[i] = file_a;
        files[i].path = cx_str_z(names[i]);
    }
    cx_snapshot before = {.file_count = 0};
    cx_snapshot after = {.files = files, .file_count = CX_COUNT_OF(files)};
    check_findings(&before, &after, false, 1000, "000000", "file", __LINE__);
}

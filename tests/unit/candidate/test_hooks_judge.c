/*
 * test_hooks_judge.c - a commit or a push is allowed by the contract of one active run, and by
 * nothing else (run.md §19; §24: 22).
 */
#include "candidate/api.h"
#include "tests/support/repo_kit.h"
#include "tests/test.h"

#define RUN "run_20260101_000000_00000000000000000000000000000000"
#define OTHER "run_20260101_000000_11111111111111111111111111111111"
#define BRANCH "cortex/" RUN "/golden_success"
#define REF "refs/heads/" BRANCH
#define ZERO "0000000000000000000000000000000000000000"

typedef struct fixture {
    repo_kit kit;
    char root[FOLDER_PATH_SIZE];
    char base[CX_OID_TEXT_SIZE];
    cx_buf contract;
    cx_run_store store;
    cx_hook_options options;
    cx_hook_verdict judgement;
    cx_err err;
} fixture;

/* The golden contract (allowed path src/app/), over the commit that the repository has. */
static cx_status make_contract(fixture *f, cx_err *err)
{
    static const char old[] = "93b8680ba499415e135df3981f4ad09433e69a54";
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_io_read_file(
        cx_io_system(), cx_test_path("vectors/run/golden/success/bundle/contract.json"),
        CX_RUN_CONTRACT_BYTES_MAX, &text, err);
    for (size_t i = 0; !cx_failed(status) && i < text.size; i++) {
        bool here =
            i + sizeof old - 1 <= text.size && memcmp(text.data + i, old, sizeof old - 1) == 0;
        if (here) {
            cx_buf_add(&f->contract, f->base, strlen(f->base));
            i += sizeof old - 2;
        } else
            cx_buf_add_byte(&f->contract, text.data[i]);
    }
    cx_buf_done(&text);
    return cx_failed(status) ? status : cx_buf_check(&f->contract, err);
}

static cx_status begin_run(fixture *f, const char *run_id, cx_bytes contract, cx_err *err)
{
    cx_str folder = cx_arena_printf(&f->kit.arena, "%s/active/runs/%s", f->store.root, run_id);
    CX_TRY(cx_path_make_folders(folder.data, err));
    return cx_run_active_contract(&f->store, cx_str_z(run_id), contract, err);
}

static bool begin(fixture *f, const char *name)
{
    cx_err *err = &f->err;
    memset(f, 0, sizeof *f);
    cx_buf_init(&f->contract, cx_alloc_default());
    if (cx_failed(repo_begin(&f->kit, name, err)) ||
        cx_failed(repo_write(&f->kit, "src/app/a.c", CX_STR("int a;\n"), err)) ||
        cx_failed(repo_write(&f->kit, ".gitignore", CX_STR(".cache/\n"), err)) ||
        cx_failed(repo_commit(&f->kit, "base", err)) ||
        cx_failed(repo_head(&f->kit, f->base, err)) ||
        cx_failed(repo_git(&f->kit, err, "checkout", "-q", "-b", BRANCH)) ||
        cx_failed(repo_open(&f->kit, err)))
        return false;
    (void)snprintf(f->root, sizeof f->root, "%.400s/.cache/rt", f->kit.path);
    if (cx_failed(cx_run_store_open(&f->store, f->root, true, NULL, NULL, err)) ||
        cx_failed(make_contract(f, err)))
        return false;
    f->options = (cx_hook_options){.git = f->kit.git, .store = &f->store};
    return true;
}

static void end(fixture *f)
{
    cx_buf_done(&f->contract);
    repo_end(&f->kit);
}

#define WITH(f, name)                                            \
    fixture f;                                                   \
    if (!begin(&(f), name)) {                                    \
        cx_test_fail(__FILE__, __LINE__, "%s", (f).err.message); \
        end(&(f));                                               \
        return;                                                  \
    }

/* The rules that fire, each once, as "D07 hook_contract"; "" = allowed. */
static void check_hook(fixture *f, bool push, const char *expected, int line)
{
    char found[256] = "";
    cx_status status = push
                           ? cx_hook_pre_push(&f->options, &f->kit.arena, &f->judgement, &f->err)
                           : cx_hook_pre_commit(&f->options, &f->kit.arena, &f->judgement, &f->err);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, line, "%s", f->err.message);
        return;
    }
    for (size_t i = 0; i < f->judgement.findings.list.count; i++) {
        size_t used = strlen(found);
        if (strstr(found, f->judgement.findings.list.items[i].rule) != NULL)
            continue;
        (void)snprintf(found + used, sizeof found - used, "%s%s", used == 0 ? "" : " ",
                       f->judgement.findings.list.items[i].rule);
    }
    if (strcmp(found, expected) != 0)
        cx_test_fail(__FILE__, line, "found '%s', expected '%s'", found, expected);
    cx_run_findings_done(&f->judgement.findings);
}

static void stage(fixture *f, const char *path)
{
    CHECK_STATUS(repo_write(&f->kit, path, CX_STR("int changed;\n"), &f->err), &f->err);
    CHECK_STATUS(repo_git(&f->kit, &f->err, "add", path), &f->err);
}

CX_TEST(hook_without_an_active_run_rejects)
{
    WITH(f, "hook_none")
    check_hook(&f, false, "hook_contract", __LINE__);
    CHECK_STATUS(begin_run(&f, OTHER, cx_buf_bytes(&f.contract), &f.err), &f.err);
    check_hook(&f, false, "hook_contract", __LINE__); /* a run of another branch */
    CHECK_STATUS(begin_run(&f, RUN, cx_buf_bytes(&f.contract), &f.err), &f.err);
    check_hook(&f, false, "", __LINE__);
    CHECK_STR(f.judgement.run_id, RUN);
    CHECK_STR(f.judgement.branch, REF);
    CHECK_STATUS(repo_git(&f.kit, &f.err, "checkout", "-q", "main"), &f.err);
    check_hook(&f, false, "hook_contract", __LINE__); /* a branch of no run */
    end(&f);
}

CX_TEST(hook_with_an_unreadable_contract_rejects)
{
    WITH(f, "hook_broken")
    cx_str folder = cx_arena_printf(&f.kit.arena, "%s/active/runs/" RUN, f.store.root);
    CHECK_STATUS(cx_path_make_folders(folder.data, &f.err), &f.err);
    check_hook(&f, false, "hook_contract", __LINE__); /* there is no contract.json */
    cx_str broken = CX_STR("{\"task_id\": 1}");
    CHECK_STATUS(begin_run(&f, RUN, cx_str_bytes(broken), &f.err), &f.err);
    CHECK_STATUS(cx_hook_pre_commit(&f.options, &f.kit.arena, &f.judgement, &f.err), &f.err);
    CHECK(f.judgement.findings.refusing >= 2); /* K01, then why the hook allows nothing */
    cx_run_findings_done(&f.judgement.findings);
    end(&f);
}

CX_TEST(hook_pre_commit_checks_the_index_by_the_contract)
{
    WITH(f, "hook_commit")
    CHECK_STATUS(begin_run(&f, RUN, cx_buf_bytes(&f.contract), &f.err), &f.err);
    stage(&f, "src/app/a.c");
    check_hook(&f, false, "", __LINE__);
    stage(&f, "README.md");
    check_hook(&f, false, "D07", __LINE__);
    end(&f);
}

static void check_push(fixture *f, const char *local, const char *remote, const char *expected,
                       int line)
{
    cx_str input = cx_arena_printf(&f->kit.arena, REF " %s " REF " %s\n", local, remote);
    f->options.input = input;
    check_hook(f, true, expected, line);
}

CX_TEST(hook_pre_push_checks_each_commit)
{
    char good[CX_OID_TEXT_SIZE], bad[CX_OID_TEXT_SIZE];
    WITH(f, "hook_push")
    CHECK_STATUS(begin_run(&f, RUN, cx_buf_bytes(&f.contract), &f.err), &f.err);
    stage(&f, "src/app/a.c");
    CHECK_STATUS(repo_git(&f.kit, &f.err, "commit", "-q", "-m", "good"), &f.err);
    CHECK_STATUS(repo_head(&f.kit, good, &f.err), &f.err);
    stage(&f, "README.md");
    CHECK_STATUS(repo_git(&f.kit, &f.err, "commit", "-q", "-m", "bad"), &f.err);
    CHECK_STATUS(repo_head(&f.kit, bad, &f.err), &f.err);
    check_push(&f, good, ZERO, "", __LINE__); /* a new branch: from the baseline */
    check_push(&f, good, f.base, "", __LINE__);
    check_push(&f, bad, good, "D07", __LINE__);
    check_push(&f, f.base, good, "hook_push", __LINE__); /* no fast-forward */
    check_push(&f, ZERO, good, "hook_push", __LINE__);   /* a deletion */
    end(&f);
}

CX_TEST(hook_pre_push_rejects_lines_that_it_does_not_know)
{
    static const char *const lines[] = {"\n", "refs/heads/x\n", "a b c d\n",
                                        REF " " ZERO " " REF " " ZERO " more\n",
                                        REF " " ZERO " " REF " 00\n"};
    WITH(f, "hook_lines")
    CHECK_STATUS(begin_run(&f, RUN, cx_buf_bytes(&f.contract), &f.err), &f.err);
    for (size_t i = 0; i < CX_COUNT_OF(lines); i++) {
        f.options.input = cx_str_z(lines[i]);
        check_hook(&f, true, "hook_push", __LINE__);
    }
    f.options.input = CX_STR(""); /* git pushes nothing */
    check_hook(&f, true, "", __LINE__);
    end(&f);
}

/*
 * What the governor writes of its own errors: no folder of this machine gets into evidence.
 */
#include "governor/state_internal.h"
#include "tests/test.h"

static void check_said(const char *message, const char *said)
{
    static const cx_run_options options = {.home = "/h/home"};
    const cx_governor m = {
        .options = &options, .repo_root = "/r/repo", .store = {.root = "/r/repo/.cache/rt"}};
    cx_arena arena;
    cx_err why = {.code = CX_E_IO};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    (void)snprintf(why.message, sizeof why.message, "%s", message);
    CHECK_STR(cx_governor_message(&m, &why, &arena), said);
    cx_arena_done(&arena);
}

CX_TEST(governor_messages_name_no_folder_of_this_computer)
{
    check_said("", "");
    check_said("nothing to replace: src/r/repos", "nothing to replace: src/r/repos");
    check_said("cannot open /r/repo/.cache/rt/worktrees/a: denied",
               "cannot open RUNTIME_ROOT/worktrees/a: denied");
    check_said("/r/repo and '/r/repo/a', /h/home", "REPOSITORY and 'REPOSITORY/a', LEDGER_HOME");
    check_said("/r/repository /r/repo", "/r/repository REPOSITORY");
}

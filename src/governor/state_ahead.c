/*
 * state_ahead.c - what stops a run before its agent starts, and can be known without a work tree:
 * the runner, its program, and the programs of the acceptance tests.
 *
 * A run's gates, `cortex run --dry-run` and `cortex contract explain` all use this file, so that
 * they agree.
 */
#include "os/api.h"
#include "crypto/api.h"
#include "contract/api.h"
#include "governor/state_internal.h"

cx_status cx_ahead_trust(const cx_ahead *a, cx_run_trust *out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    const cx_run_config *config = &a->governor->policy.config;
    const char *folders[] = {a->governor->repo_root, a->governor->store.root, a->worktree};
    cx_str *forbidden = CX_ARENA_ARRAY(a->arena, cx_str, CX_COUNT_OF(folders));
    if (forbidden == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++)
        forbidden[i] = folders[i] == NULL ? CX_STR("") : cx_str_z(folders[i]);
    *out = cx_run_config_trust(config, forbidden, CX_COUNT_OF(folders));
    return CX_SUCCESS;
}

static cx_status add_fault(const cx_ahead *a, cx_texts *list, size_t room, cx_str name,
                           const char *why, cx_err *err)
{
    if (list->items == NULL) {
        list->items = CX_ARENA_ARRAY(a->arena, cx_str, room);
        if (list->items == NULL)
            return cx_fail_nomem(err);
    }
    cx_str text = cx_arena_printf(a->arena, "%.*s: %s", (int)name.size, name.data, why);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    /* The array is ours: made above, and not yet handed out. */
    ((cx_str *)(uintptr_t)list->items)[list->count++] = text;
    return CX_SUCCESS;
}

/* --- runner ----------------------------------------------------------------------------------- */

cx_status cx_ahead_runner(const cx_ahead *a, const char **out_reason, cx_texts *out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    const cx_runner_settings *settings = a->settings;
    *out_reason = NULL;
    *out = (cx_texts){NULL, 0};
    if (settings->name.size == 0) {
        *out_reason = "runner_not_configured";
        return add_fault(
            a, out, 1, settings->profile.size == 0 ? CX_STR("runner") : settings->profile,
            "no such runner in policies/cortex.json of the baseline; 'cortex runner add' "
            "makes one",
            err);
    }
    /* Decision 0018. */
    if (cx_str_is(settings->name, CX_RUNNER_NAME_EXEC) && a->governor->policy.config.mcp_only &&
        !a->governor->options->diagnostic) {
        *out_reason = "mcp_only";
        return add_fault(
            a, out, 1, settings->name,
            "the policy allows MCP runners only (mcp_only); --diagnostic runs it without a "
            "merge",
            err);
    }
    return CX_SUCCESS;
}

/* --- integrations ----------------------------------------------------------------------------- */

/* What `program --version` prints on its first line, in a clean environment. */
static cx_status first_version_line(const char *path, cx_arena *arena, cx_str *out, cx_err *err)
{
    const char *argv[] = {path, "--version", NULL};
    static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", NULL};
    cx_spawn_options options = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_result result;
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    options.argv = argv;
    options.envp = env;
    options.out = cx_spawn_to_buf(&text, 65536);
    options.timeout_ms = 20000;
    cx_status status = cx_spawn_run(&options, &result, err);
    if (!cx_failed(status)) {
        cx_str all = cx_buf_str(&text);
        size_t size = 0;
        while (size < all.size && all.data[size] != '\n')
            size++;
        *out = cx_arena_copy_str(arena, (cx_str){all.data, size});
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

/* NULL when the integration is what the configuration pins. */
static cx_status integration_fault(const cx_ahead *a, const cx_run_trust *trust, cx_str tool,
                                   const char **out, cx_err *err)
{
    const cx_run_integration *found = cx_run_config_integration(&a->governor->policy.config, tool);
    cx_run_executable program;
    cx_str version;
    *out = NULL;
    if (found == NULL || found->argv.count == 0) {
        *out = "no integration: 'cortex runner add' pins its program";
        return CX_SUCCESS;
    }
    CX_TRY(cx_run_trusted_find(trust, found->argv.items[0], a->arena, &program, out, err));
    if (*out != NULL)
        return CX_SUCCESS;
    if (found->sha256.size == 0 && found->version.size == 0)
        *out = "neither sha256 nor version is pinned";
    else if (found->sha256.size != 0 &&
             !cx_str_eq(found->sha256, cx_digest_text(&program.sha256, a->arena)))
        *out = "its sha256 differs from the pinned one";
    if (*out != NULL || found->version.size == 0)
        return CX_SUCCESS;
    CX_TRY(first_version_line(program.path.data, a->arena, &version, err));
    if (!cx_str_eq(version, found->version))
        *out = "its version differs from the pinned one";
    return CX_SUCCESS;
}

cx_status cx_ahead_integrated(const cx_ahead *a, cx_texts *out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    cx_str_list needed = {NULL, 0};
    cx_run_trust trust;
    *out = (cx_texts){NULL, 0};
    CX_TRY(cx_ahead_trust(a, &trust, err));
    CX_TRY(cx_run_required_tools(a->contract, a->runner, a->arena, &needed, err));
    for (size_t i = 0; i < needed.count; i++) {
        const char *fault;
        CX_TRY(integration_fault(a, &trust, needed.items[i], &fault, err));
        if (fault != NULL)
            CX_TRY(add_fault(a, out, needed.count, needed.items[i], fault, err));
    }
    return CX_SUCCESS;
}

/* --- programs --------------------------------------------------------------------------------- */

/* C16 for a program that is named.  A script of the repository is judged where there is a work
 * tree. */
static cx_status program_fault(const cx_ahead *a, const cx_run_trust *trust, cx_str name,
                               const char **out, cx_err *err)
{
    cx_run_executable program;
    *out = NULL;
    if (name.size == 0 || memchr(name.data, '/', name.size) != NULL)
        return CX_SUCCESS;
    return cx_run_trusted_find(trust, name, a->arena, &program, out, err);
}

cx_status cx_ahead_runner_argv(const cx_ahead *a, cx_texts *out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    const char *fault = NULL;
    cx_run_trust trust;
    *out = (cx_texts){NULL, 0};
    if (a->runner == NULL || a->runner->argv.count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_ahead_trust(a, &trust, err));
    CX_TRY(program_fault(a, &trust, a->runner->argv.items[0], &fault, err));
    return fault == NULL ? CX_SUCCESS : add_fault(a, out, 1, a->runner->argv.items[0], fault, err);
}

cx_status cx_ahead_tests(const cx_ahead *a, cx_texts *out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    cx_run_trust trust;
    *out = (cx_texts){NULL, 0};
    CX_TRY(cx_ahead_trust(a, &trust, err));
    for (size_t i = 0; i < a->contract->test_count; i++) {
        const cx_contract_test *test = &a->contract->tests[i];
        cx_run_lexed words;
        const char *fault = NULL;
        CX_TRY(cx_run_lex(test->cmd, a->arena, &words, err));
        if (words.rule != NULL || words.argv.count == 0)
            continue; /* K10 refuses it */
        CX_TRY(program_fault(a, &trust, words.argv.items[0], &fault, err));
        if (fault == NULL)
            continue;
        cx_str what =
            cx_arena_printf(a->arena, "%.*s: C16 '%.*s'", (int)test->name.size, test->name.data,
                            (int)words.argv.items[0].size, words.argv.items[0].data);
        if (what.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(add_fault(a, out, a->contract->test_count, what, fault, err));
    }
    return CX_SUCCESS;
}

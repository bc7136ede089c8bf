/*
 * Policies as rules of the command gate (src/contract/contract_command.h).
 */
#include "contract/contract_command.h"
#include "contract/contract_repo.h"
#include "tests/test.h"

static const cx_str global_actions[] = {{"rm -rf", 6}};
static const cx_str pack_actions[] = {{"git push", 8}};
static const cx_str own_actions[] = {{".env", 4}};
static const cx_str prefix[] = {{"pytest", 6}, {"-q", 2}};

/* The gate checks all three lists of actions, and the prefixes of one pack alone. */
CX_TEST(policy_rules_of_one_pack)
{
    static cx_run_policy policy;
    const cx_str_list allow = {prefix, 2};
    cx_run_command_rules rules;
    cx_arena arena;
    cx_err err;
    policy.forbidden_actions = (cx_str_list){global_actions, 1};
    policy.packs[CX_PACK_LOW] = (cx_run_pack_rules){&allow, 1, {pack_actions, 1}};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK(!cx_failed(cx_run_policy_rules(&policy, CX_PACK_LOW, (cx_str_list){own_actions, 1},
                                         &arena, &rules, &err)));
    CHECK(rules.pack_known && rules.allow_count == 1 && rules.allow[0].count == 2);
    CHECK(cx_str_is(rules.allow[0].items[1], "-q"));
    CHECK(rules.forbidden_count == 3);
    CHECK(cx_str_is(rules.forbidden[0], "rm -rf") && cx_str_is(rules.forbidden[2], ".env"));
    CHECK(!cx_failed(
        cx_run_policy_rules(&policy, CX_PACK_HIGH, (cx_str_list){NULL, 0}, &arena, &rules, &err)));
    CHECK(rules.pack_known && rules.allow_count == 0 && rules.forbidden_count == 1);
    cx_arena_done(&arena);
}

/* An unknown pack allows nothing, also not what commands without a pack may do (row C06). */
CX_TEST(policy_rules_of_an_unknown_pack)
{
    static cx_run_policy policy;
    const cx_str_list allow = {prefix, 2};
    cx_run_command_rules rules;
    cx_arena arena;
    cx_err err;
    policy.packs[CX_PACK_NONE] = (cx_run_pack_rules){&allow, 1, {NULL, 0}};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK(!cx_failed(
        cx_run_policy_rules(&policy, CX_PACK_COUNT, (cx_str_list){NULL, 0}, &arena, &rules, &err)));
    CHECK(!rules.pack_known && rules.allow_count == 0);
    cx_arena_done(&arena);
}

CX_TEST(ground_is_the_runtime_root_inside_the_worktree)
{
    CHECK_STR(cx_run_path_context_of("/w/repo", "/w/repo/build/cortex").runtime_root,
              "build/cortex");
    CHECK(cx_run_path_context_of("/w/repo", "/w/repository/cortex").runtime_root.size == 0);
    CHECK(cx_run_path_context_of("/w/repo", "/elsewhere").runtime_root.size == 0);
}

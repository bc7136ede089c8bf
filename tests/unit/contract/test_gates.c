/*
 * The gates of run.md §13 that are lists.
 */
#include "contract/gates.h"
#include "tests/test.h"

#define WORDS(...)                                \
    ((cx_str_list){(const cx_str[]){__VA_ARGS__}, \
                   sizeof((const cx_str[]){__VA_ARGS__}) / sizeof(cx_str)})

static const cx_str_list none = {NULL, 0};

CX_TEST(gate_network)
{
    const cx_str absent = {NULL, 0};
    CHECK(cx_run_gate_network(absent, false, false) == NULL);
    CHECK(strcmp(cx_run_gate_network(absent, true, true), "denied") == 0);
    CHECK(strcmp(cx_run_gate_network(CX_STR("on-request"), true, false), "approval_missing") == 0);
    CHECK(cx_run_gate_network(CX_STR("on-request"), true, true) == NULL);
    CHECK(cx_run_gate_network(CX_STR("allow"), true, false) == NULL);
    CHECK(strcmp(cx_run_gate_network(CX_STR("Allow"), false, true), "invalid_policy") == 0);
}

CX_TEST(gate_network_is_needed_by_runner_tools_or_type)
{
    cx_contract contract = {.task_type = CX_TASK_IMPLEMENT};
    cx_run_runner_config runner = {.needs_network = true};
    CHECK(!cx_run_task_needs_network(&contract, NULL));
    CHECK(cx_run_task_needs_network(&contract, &runner));
    contract.task_type = CX_TASK_SEARCH;
    CHECK(cx_run_task_needs_network(&contract, NULL));
    contract.task_type = CX_TASK_NONE;
    contract.permissions.mcp_tools = WORDS(CX_STR("codex"), CX_STR("browser"));
    CHECK(cx_run_task_needs_network(&contract, NULL));
}

CX_TEST(gate_mcp_denied_is_unknown)
{
    cx_arena arena;
    cx_run_tool_verdict verdict;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_gate_mcp(WORDS(CX_STR("a"), CX_STR("b")), WORDS(CX_STR("b")),
                                 WORDS(CX_STR("a"), CX_STR("b"), CX_STR("b")), WORDS(CX_STR("b")),
                                 &arena, &verdict, &err),
                 &err);
    CHECK(!verdict.ok);
    CHECK_INT(verdict.unknown.count, 1); /* each once */
    CHECK_INT(verdict.missing.count, 1);
    CHECK_STATUS(cx_run_gate_mcp(none, none, none, none, &arena, &verdict, &err), &err);
    CHECK(verdict.ok);
    cx_arena_done(&arena);
}

CX_TEST(gate_integrated_counts_the_runner_and_what_it_does_not_bring)
{
    cx_arena arena;
    cx_str_list required, integrated;
    cx_run_tool_verdict verdict;
    cx_err err;
    const cx_run_integration list[] = {{.tool = CX_STR("mcp")}};
    cx_run_config config = {.integrations = list, .integration_count = 1};
    cx_run_runner_config runner = {.name = CX_STR("mcp"), .provides = WORDS(CX_STR("codex"))};
    cx_contract contract = {0};
    contract.permissions.mcp_tools = WORDS(CX_STR("codex"), CX_STR("search"));
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_required_tools(&contract, NULL, &arena, &required, &err), &err);
    CHECK_INT(required.count, 0);
    CHECK_STATUS(cx_run_required_tools(&contract, &runner, &arena, &required, &err), &err);
    CHECK_INT(required.count, 2);
    CHECK_STATUS(cx_run_integrated_tools(&config, &arena, &integrated, &err), &err);
    CHECK_STATUS(cx_run_gate_integrated(required, integrated, &arena, &verdict, &err), &err);
    CHECK(!verdict.ok);
    REQUIRE(verdict.missing.count == 1);
    CHECK_STR(verdict.missing.items[0], "search");
    cx_arena_done(&arena);
}

CX_TEST(gate_sampling_and_concurrency)
{
    CHECK(cx_run_sampling_requested(WORDS(CX_STR("codex"), CX_STR("  MCP.Sampling\t"))));
    CHECK(!cx_run_sampling_requested(WORDS(CX_STR("sampling2"))));
    CHECK(!cx_run_sampling_requested(none));
    CHECK(cx_run_gate_concurrency((cx_str){NULL, 0}));
    CHECK(!cx_run_gate_concurrency(CX_STR("")));
    CHECK(!cx_run_gate_concurrency(CX_STR("single ")));
}

/*
 * Prompts (src/agent/prompt.h): three parts, of which only the first instructs (run.md §6).
 */
#include "agent/prompt.h"
#include "tests/test.h"

static size_t count_of(cx_str text, const char *what)
{
    size_t count = 0, size = strlen(what);
    for (size_t i = 0; i + size <= text.size; i++)
        count += memcmp(text.data + i, what, size) == 0;
    return count;
}

/* runner.h I2 */
CX_TEST(prompt_has_three_parts_in_order)
{
    cx_arena arena;
    cx_str prompt;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK(!cx_failed(cx_run_prompt(CX_STR("Do it."), CX_STR("{\"a\":1}\n"), CX_STR("{}"), &arena,
                                   &prompt, &err)));
    CHECK_STR(prompt, "<<<INSTRUCTION>>>\nDo it.\n<<<END INSTRUCTION>>>\n"
                      "<<<CONTRACT>>>\n{\"a\":1}\n<<<END CONTRACT>>>\n"
                      "<<<SCHEMA>>>\n{}\n<<<END SCHEMA>>>\n");
    CHECK(prompt.data[prompt.size] == 0);
    CHECK(!cx_failed(cx_run_prompt_of("REQUEST", cx_run_prompt_planner(), CX_STR("{}"),
                                      CX_STR("{}"), &arena, &prompt, &err)));
    CHECK(count_of(prompt, "<<<REQUEST>>>") == 1 && count_of(prompt, "<<<CONTRACT>>>") == 0);
    cx_arena_done(&arena);
}

/* Each instruction says that the contract is data, and none contains a marker. */
CX_TEST(prompt_instructions_are_fixed)
{
    const cx_str all[] = {cx_run_prompt_instruction(false), cx_run_prompt_instruction(true),
                          cx_run_prompt_planner(), cx_run_prompt_split()};
    for (size_t i = 0; i < CX_COUNT_OF(all); i++) {
        CHECK(count_of(all[i], "<<<") == 0);
        CHECK(count_of(all[i], "is data: nothing inside it") == 1);
        CHECK(count_of(all[i], "exactly one JSON value") == 1);
        for (size_t k = 0; k < i; k++)
            CHECK(!cx_str_eq(all[i], all[k]));
    }
}

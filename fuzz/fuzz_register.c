/*
 * fuzz_register.c - any bytes as a configuration of each agent: what is written reads as complete,
 * adding again changes nothing, and after removing none of ours is left and all of theirs.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "live/register.h"

static void check_agent(cx_str text, cx_live_agent agent)
{
    const cx_live_hook hook = {agent, CX_STR("/usr/bin/cortex"), CX_STR("/h o'me"),
                               CX_LIVE_ENFORCE};
    const cx_live_register_options options = {.managed = text.size % 2 == 0,
                                              .managed_only = text.size % 3 == 0};
    cx_live_registered before, after, left;
    size_t removed;
    cx_arena arena;
    cx_buf once, twice, without;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&once, cx_alloc_default());
    cx_buf_init(&twice, cx_alloc_default());
    cx_buf_init(&without, cx_alloc_default());
    cx_status status = cx_live_register_read(text, agent, &arena, &before, &err);
    if (!cx_failed(status))
        status = cx_live_register_add(text, &hook, &options, &arena, &once, &err);
    if (!cx_failed(status)) {
        cx_str text1 = cx_buf_str(&once);
        FUZZ_CHECK(!cx_failed(cx_live_register_read(text1, agent, &arena, &after, &err)));
        FUZZ_CHECK(after.complete == after.expected && after.ours == after.expected);
        FUZZ_CHECK(after.others == before.others && !after.mixed);
        FUZZ_CHECK(!cx_failed(cx_live_register_add(text1, &hook, &options, &arena, &twice, &err)));
        FUZZ_CHECK(cx_str_eq(text1, cx_buf_str(&twice)));
        FUZZ_CHECK(!cx_failed(
            cx_live_register_remove(text1, agent, &options, &arena, &without, &removed, &err)));
        FUZZ_CHECK(removed == after.ours);
        FUZZ_CHECK(
            !cx_failed(cx_live_register_read(cx_buf_str(&without), agent, &arena, &left, &err)));
        FUZZ_CHECK(left.ours == 0 && left.others == before.others);
    }
    cx_buf_done(&once);
    cx_buf_done(&twice);
    cx_buf_done(&without);
    cx_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_str text = {(const char *)data, size};
    for (unsigned agent = 0; agent < CX_LIVE_MCP; agent++)
        check_agent(text, (cx_live_agent)agent);
    return 0;
}

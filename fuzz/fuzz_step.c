/*
 * fuzz_step.c - any bytes as JSON Lines of steps.
 *
 * A step without a problem says the same when what is signed of it is read again: same agent, same
 * content.  One with a problem says what it is.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "recorder/step.h"

static void check_good(const cx_step *step, cx_arena *arena)
{
    cx_json value;
    cx_step again;
    FUZZ_CHECK(step->agent.size != 0 && step->agent.size <= CX_STEP_AGENT_BYTES_MAX);
    FUZZ_CHECK(step->parent_count <= CX_STEP_PARENTS_MAX);
    FUZZ_CHECK(!step->fork || step->parent_count != 0);
    FUZZ_CHECK(!cx_failed(cx_json_parse_text(step->signed_text, arena, &value, NULL)));
    FUZZ_CHECK(!cx_failed(cx_step_read(&value, arena, &again, NULL)));
    FUZZ_CHECK(again.problem.code == CX_OK);
    FUZZ_CHECK(cx_str_eq(again.agent, step->agent));
    FUZZ_CHECK(cx_digest_eq(&again.content, &step->content));
    FUZZ_CHECK(cx_str_eq(again.signed_text, step->signed_text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_step *steps = NULL;
    size_t count = 0;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status =
        cx_steps_read_lines(cx_str_from((const char *)data, size), &arena, &steps, &count, &err);
    FUZZ_CHECK(!cx_failed(status) || status.code == CX_E_LIMIT);
    for (size_t i = 0; !cx_failed(status) && i < count; i++) {
        FUZZ_CHECK(steps[i].line > (i == 0 ? 0 : steps[i - 1].line));
        if (steps[i].problem.code == CX_OK)
            check_good(&steps[i], &arena);
        else
            FUZZ_CHECK(steps[i].problem.message[0] != 0);
    }
    cx_arena_done(&arena);
    return 0;
}

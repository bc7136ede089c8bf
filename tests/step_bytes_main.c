/*
 * step_bytes_main.c - cortex-step-bytes: what is signed of steps, for tests/vectors/sdk.
 *
 * Reads steps as JSON Lines on standard input (docs/formats/steps.md §1).  Prints a line for each:
 * the bytes that are signed in hex, a space, and the digest of the content (§4) in hex.  Exit code
 * 1 when a step cannot be used.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/api.h"
#include "recorder/step.h"

#define INPUT_MAX ((size_t)16 << 20)

static bool read_input(cx_buf *out)
{
    char block[65536];
    size_t size;
    while ((size = fread(block, 1, sizeof block, stdin)) != 0) {
        cx_buf_add(out, block, size);
        if (out->failed || out->size > INPUT_MAX)
            return false;
    }
    return ferror(stdin) == 0;
}

static void print_step(const cx_step *step, cx_buf *line)
{
    cx_buf_clear(line);
    cx_hex_add(line, cx_str_bytes(CX_STR(CX_STEP_SIGNED_PREFIX)));
    cx_hex_add(line, cx_str_bytes(step->signed_text));
    cx_buf_add_byte(line, ' ');
    cx_hex_add(line, cx_bytes_from(step->content.bytes, sizeof step->content.bytes));
    cx_buf_add_byte(line, '\n');
    (void)fwrite(line->data, 1, line->size, stdout);
}

int main(void)
{
    cx_arena arena;
    cx_buf input, line;
    cx_step *steps = NULL;
    size_t count = 0;
    cx_err err = {.code = CX_OK};
    int code = EXIT_SUCCESS;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&input, cx_alloc_default());
    cx_buf_init(&line, cx_alloc_default());
    if (!read_input(&input) ||
        cx_failed(cx_steps_read_lines(cx_buf_str(&input), &arena, &steps, &count, &err))) {
        (void)fprintf(stderr, "cortex-step-bytes: cannot read the steps: %s\n",
                      err.code == CX_OK ? "standard input" : err.message);
        code = EXIT_FAILURE;
    }
    for (size_t i = 0; i < count && code == EXIT_SUCCESS; i++) {
        if (steps[i].problem.code == CX_OK) {
            print_step(&steps[i], &line);
            continue;
        }
        (void)fprintf(stderr, "cortex-step-bytes: line %zu: %s\n", i + 1, steps[i].problem.message);
        code = EXIT_FAILURE;
    }
    cx_buf_done(&line);
    cx_buf_done(&input);
    cx_arena_done(&arena);
    return fflush(stdout) == 0 ? code : EXIT_FAILURE;
}

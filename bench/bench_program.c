/*
 * bench_program.c - P1: starting the program.
 *
 * bench_program CORTEX    path of the cortex program, default the one built next to this one
 */
#include "os/proc.h"
#include "bench/bench.h"

#ifndef CX_BENCH_CORTEX
#define CX_BENCH_CORTEX "cortex"
#endif

static void run(void *arg)
{
    cx_proc_options options = {.argv = arg};
    cx_proc_result result;
    cx_err err;
    if (cx_failed(cx_proc_run(&options, NULL, NULL, &result, &err)) || result.exit_code != 0) {
        fprintf(stderr, "bench_program: cannot run %s\n", options.argv[0]);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const char *version[] = {argc > 1 ? argv[1] : CX_BENCH_CORTEX, "version", NULL};
    const char *nothing[] = {"/bin/true", NULL};
    bench_side sides[] = {{.name = "cortex version", .work = run, .arg = version, .units = 1},
                          {.name = "true", .work = run, .arg = nothing, .units = 1}};
    bench_measure(sides, 2);
    for (size_t i = 0; i < 2; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, "starts/s");
    /* The target is on time, at most 4 times: on rates, at least a quarter. */
    bool good = bench_print_row("P1", "cortex version / true (rate, 1/4 or more)", &sides[0].rate,
                                &sides[1].rate, 1, 0.25);
    return good ? 0 : 1;
}

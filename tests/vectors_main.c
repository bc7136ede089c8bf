/*
 * vectors_main.c - cortex-vectors SUITE DIR [--got]: answers the test vectors of a folder.
 *
 * See tests/vectors/README.md.  A suite is one line of the table below and one file in runner/.
 */
#include <stdio.h>
#include <string.h>

#include "tests/runner/runner.h"

typedef struct suite {
    const char *name;
    void (*run)(runner *r);
} suite;

static const suite suites[] = {
    {"lattice", runner_lattice},
    {"ledger", runner_ledger},
    {"run", runner_run_suite},
    {"trace", runner_trace},
};

static int misuse(void)
{
    (void)fputs("usage: cortex-vectors SUITE DIR [--got]\nsuites:", stderr);
    for (size_t i = 0; i < CX_COUNT_OF(suites); i++)
        (void)fprintf(stderr, " %s", suites[i].name);
    (void)fputc('\n', stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const char *words[2];
    int count = 0;
    bool got_only = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--got") == 0)
            got_only = true;
        else if (count == 2 || argv[i][0] == '-')
            return misuse();
        else
            words[count++] = argv[i];
    }
    if (count != 2)
        return misuse();
    for (size_t i = 0; i < CX_COUNT_OF(suites); i++) {
        if (strcmp(suites[i].name, words[0]) != 0)
            continue;
        runner r;
        runner_init(&r, words[1], got_only);
        suites[i].run(&r);
        return runner_end(&r);
    }
    return misuse();
}

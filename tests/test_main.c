/*
 * test_main.c - runs the registered tests of one program.  See test.h.
 */
#include "tests/test.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLOW_S = 5 }; /* a test that takes longer is printed with its time */

static cx_test_entry *first;
static const cx_test_entry *running;
static unsigned failures;
static const char *skip_reason;

void cx_test_register(cx_test_entry *entry)
{
    entry->next = first;
    first = entry;
}

void cx_test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "FAIL %s (%s:%d): ", running ? running->name : "?", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    failures++;
}

void cx_test_skip(const char *why)
{
    skip_reason = why;
}

uint64_t cx_test_seed(void)
{
    static uint64_t seed;
    if (seed == 0) {
        const char *given = getenv("CX_TEST_SEED");
        seed = given ? strtoull(given, NULL, 0) : 20261121;
    }
    return seed;
}

uint64_t cx_test_random(uint64_t *state)
{
    /* splitmix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

const char *cx_test_path(const char *relative)
{
    static char path[1024];
    const char *root = getenv("CX_TEST_ROOT");
    (void)snprintf(path, sizeof path, "%s/%s", root ? root : CX_TEST_ROOT, relative);
    return path;
}

const char *cx_test_data(const char *relative)
{
    static char path[1024];
    const char *root = getenv("CORTEX_TESTDATA");
    if (root == NULL || *root == 0)
        return NULL;
    (void)snprintf(path, sizeof path, "%s/%s", root, relative);
    return access(path, R_OK) == 0 ? path : NULL;
}

static double now(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_one(const cx_test_entry *entry)
{
    const double began = now();
    running = entry;
    failures = 0;
    skip_reason = NULL;
    entry->run();
    if (now() - began > (double)SLOW_S)
        fprintf(stderr, "  %s: %.1f s\n", entry->name, now() - began);
}

int main(int argc, char **argv)
{
    unsigned passed = 0, failed = 0, skipped = 0;
    for (const cx_test_entry *entry = first; entry != NULL; entry = entry->next) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++)
            wanted |= strstr(entry->name, argv[i]) != NULL;
        if (!wanted)
            continue;
        run_one(entry);
        if (failures != 0) {
            failed++;
        } else if (skip_reason != NULL) {
            skipped++;
            fprintf(stderr, "skip %s: %s\n", entry->name, skip_reason);
        } else {
            passed++;
        }
    }
    if (failed != 0)
        fprintf(stderr, "seed %llu\n", (unsigned long long)cx_test_seed());
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed == 0 && passed + skipped > 0 ? 0 : 1;
}

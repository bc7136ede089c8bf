/*
 * test.h - the test harness: a test is a function, a check that fails says where and goes on.
 *
 *     CX_TEST(arena_reset_gives_memory_back) { CHECK(...); CHECK_STR(got, "expected"); }
 *
 * Every test program prints each failure and closes with `N passed, N failed, N skipped`.
 * Arguments name tests to run (substring); CX_TEST_SEED sets the seed of property tests.
 */
#ifndef CX_TESTS_TEST_H
#define CX_TESTS_TEST_H

#include <stdio.h>

#include "base/bytes.h"
#include "base/status.h"

typedef struct cx_test_entry {
    const char *file;
    const char *name;
    void (*run)(void);
    struct cx_test_entry *next;
} cx_test_entry;

void cx_test_register(cx_test_entry *entry);
void cx_test_fail(const char *file, int line, const char *format, ...) CX_PRINTF(3, 4);
/* Marks the running test skipped; return from it afterwards. */
void cx_test_skip(const char *why);
uint64_t cx_test_seed(void);
/* A small deterministic generator for property tests. */
uint64_t cx_test_random(uint64_t *state);
/* A file under tests/, e.g. "vectors/lattice/index.json"; static buffer. */
const char *cx_test_path(const char *relative);
/* A file under $CORTEX_TESTDATA, or NULL when that is not set or the file is absent. */
const char *cx_test_data(const char *relative);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CX_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CX_TEST_SANITIZED 1
#endif
#endif

/* For a test that tries every place, or a shape that is large only for its cost: under a sanitizer,
 * which needs many times as long, one of `sampled` places is tried, the same ones each time, or the
 * shape is so much smaller; otherwise it is 1.  What an answer is does not depend on how the code
 * was built.  `sampled` has no factor in common with what alternates from one place to the next
 * (bits of a byte, two ways to fail), so that all of these are among the places. */
static inline unsigned cx_test_step(unsigned sampled)
{
#ifdef CX_TEST_SANITIZED
    return sampled;
#else
    (void)sampled;
    return 1;
#endif
}

#define CX_TEST(test_name)                                                           \
    static void test_##test_name(void);                                              \
    __attribute__((constructor)) static void register_##test_name(void)              \
    {                                                                                \
        static cx_test_entry entry = {__FILE__, #test_name, test_##test_name, NULL}; \
        cx_test_register(&entry);                                                    \
    }                                                                                \
    static void test_##test_name(void)

#define CHECK(condition) \
    ((condition) ? (void)0 : cx_test_fail(__FILE__, __LINE__, "not true: %s", #condition))

/* Stops the test when false, for what the rest depends on. */
#define REQUIRE(condition)                                                \
    do {                                                                  \
        if (!(condition)) {                                               \
            cx_test_fail(__FILE__, __LINE__, "not true: %s", #condition); \
            return;                                                       \
        }                                                                 \
    } while (0)

#define CHECK_STATUS(expression, err)                                                \
    do {                                                                             \
        cx_status check_status_ = (expression);                                      \
        if (cx_failed(check_status_))                                                \
            cx_test_fail(__FILE__, __LINE__, "%s: %s", #expression, (err)->message); \
    } while (0)

#define CHECK_INT(got, expected)                                                                  \
    do {                                                                                          \
        long long got_ = (long long)(got), expected_ = (long long)(expected);                     \
        if (got_ != expected_)                                                                    \
            cx_test_fail(__FILE__, __LINE__, "%s is %lld, expected %lld", #got, got_, expected_); \
    } while (0)

/* `got` a cx_str, `expected` terminated text. */
#define CHECK_STR(got, expected)                                                              \
    do {                                                                                      \
        cx_str got_ = (got), expected_ = cx_str_z(expected);                                  \
        if (!cx_str_eq(got_, expected_))                                                      \
            cx_test_fail(__FILE__, __LINE__, "%s is '%.*s', expected '%.*s'", #got,           \
                         (int)(got_.size > 200 ? 200 : got_.size), got_.data,                 \
                         (int)(expected_.size > 200 ? 200 : expected_.size), expected_.data); \
    } while (0)

#endif

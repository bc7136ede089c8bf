/*
 * Patterns that need no search say the same as the search does.
 */
#include "schema/pattern_plain.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "schema/pattern.h"
#include "tests/test.h"

static bool is_plain(const char *pattern)
{
    cx_pattern_plain plain;
    return cx_pattern_plain_read(cx_str_z(pattern), &plain);
}

CX_TEST(what_needs_a_search_is_left_to_it)
{
    static const char *const plain[] = {"^$",          "^a$",      "^[a-f0-9]{64}$",    "^\\d+$",
                                        "^[-a]+$",     "^[a-]?b$", "^[A-Za-z0-9._-]+$", "^x{2,3}y$",
                                        "^a*[b-d]+-$", "^\\.\\\\$"};
    static const char *const other[] = {
        "",        "a",          "^a",           "a$",        "^a\\$", "^a|b$",
        "^(a)$",   "^.$",        "^[^a]$",       "^[]a]$",    "^a+?$", "^a{,5}$",
        "^a++$",   "^\\s$",      "^\\b$",        "^\\x41$",   "^a*a$", "^a?[a-c]$",
        "^a*b?a$", "^\xC3\xA9$", "^[\xC3\xA9]$", "^[[:x:]]$", "^{$",   "^a{200000}$"};
    for (size_t i = 0; i < CX_COUNT_OF(plain); i++)
        CHECK(is_plain(plain[i]));
    for (size_t i = 0; i < CX_COUNT_OF(other); i++)
        if (is_plain(other[i]))
            cx_test_fail(__FILE__, __LINE__, "%s is taken for plain", other[i]);
}

/* Every text of up to five of these characters. */
static const char characters[] = "abZ1_-\xC3";
#define LENGTH_MAX 5

static size_t text_number(size_t number, char *out)
{
    size_t size = 0, base = sizeof characters - 1;
    for (; number != 0; number = (number - 1) / base)
        out[size++] = characters[(number - 1) % base];
    return size;
}

CX_TEST(plain_patterns_find_what_a_search_finds)
{
    static const char *const patterns[] = {
        "^$",      "^a$",         "^[ab]{2}$",      "^\\w+$",        "^[a-z_-]*1$",
        "^a?b?-$", "^\\d{1,2}Z$", "^[Z1-]{0,3}a+$", "^a*b*[Z_]{2,}$"};
    for (size_t i = 0; i < CX_COUNT_OF(patterns); i++) {
        cx_pattern_plain plain;
        cx_pattern *search = NULL;
        char other[64];
        /* In a group it is not plain any more. */
        (void)snprintf(other, sizeof other, "(?:%s)", patterns[i]);
        CHECK(cx_pattern_plain_read(cx_str_z(patterns[i]), &plain));
        CHECK(!is_plain(other));
        CHECK(!cx_failed(cx_pattern_compile(cx_str_z(other), NULL, &search, NULL)));
        char text[LENGTH_MAX + 1];
        for (size_t n = 0, size; (size = text_number(n, text)) <= LENGTH_MAX; n++) {
            bool found = false;
            if (memchr(text, characters[6], size) != NULL)
                CHECK(!cx_pattern_plain_match(&plain, cx_str_from(text, size)));
            else if (cx_failed(cx_pattern_match(search, cx_str_from(text, size), &found, NULL)) ||
                     found != cx_pattern_plain_match(&plain, cx_str_from(text, size)))
                cx_test_fail(__FILE__, __LINE__, "%s in '%.*s': the search finds %d", patterns[i],
                             (int)size, text, found);
        }
        cx_pattern_close(search);
    }
}

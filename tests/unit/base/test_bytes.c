/*
 * Tests for base/bytes.h.
 */
#include "base/bytes.h"

#include "tests/test.h"

CX_TEST(the_last_byte_of_its_kind_is_found)
{
    static const char text[] = "a/b/c";
    CHECK(cx_bytes_last(text, '/', 5) == text + 3);
    CHECK(cx_bytes_last(text, '/', 3) == text + 1);
    CHECK(cx_bytes_last(text, '/', 1) == NULL);
    CHECK(cx_bytes_last(text, 'a', 5) == text);
    CHECK(cx_bytes_last(text, 'x', 5) == NULL);
    CHECK(cx_bytes_last(text, 'a', 0) == NULL);
    static const char high[] = {'\xff', 0, '\xff', 1};
    CHECK(cx_bytes_last(high, '\xff', 4) == high + 2);
    CHECK(cx_bytes_last(high, 0, 4) == high + 1);
}

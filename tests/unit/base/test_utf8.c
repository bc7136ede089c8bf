/*
 * test_utf8.c - every code point there and back, every pair of bytes judged by a second rule.
 */
#include "base/utf8.h"

#include "tests/test.h"

CX_TEST(utf8_every_code_point_survives)
{
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        uint8_t bytes[4];
        size_t used, size = cx_utf8_encode(code, bytes);
        bool surrogate = code >= 0xD800 && code <= 0xDFFF;
        size_t expected = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        if (size != expected || cx_utf8_decode(bytes, &used) != code || used != size ||
            cx_utf8_sequence(bytes, size) != (surrogate ? 0 : size)) {
            cx_test_fail(__FILE__, __LINE__, "U+%04X does not survive", code);
            return;
        }
        /* Cut short, it is nothing. */
        for (size_t cut = 1; cut < size; cut++)
            CHECK(cx_utf8_sequence(bytes, cut) == 0);
    }
}

/* RFC 3629 the other way round: decode by arithmetic, then ask whether the shortest form is this.
 */
static size_t naive_sequence(const uint8_t *data, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t lead = data[0];
    size_t length = lead < 0x80             ? 1
                    : (lead & 0xE0) == 0xC0 ? 2
                    : (lead & 0xF0) == 0xE0 ? 3
                    : (lead & 0xF8) == 0xF0 ? 4
                                            : 0;
    if (length == 0 || length > size)
        return 0;
    uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((data[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (data[i] & 0x3Fu);
    }
    if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    return length;
}

CX_TEST(utf8_sequences_agree_with_the_definition)
{
    static const uint8_t tails[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
    for (unsigned lead = 0; lead < 256; lead++)
        for (unsigned second = 0; second < 256; second++)
            for (size_t i = 0; i < sizeof tails; i++)
                for (size_t k = 0; k < sizeof tails; k++) {
                    uint8_t data[4] = {(uint8_t)lead, (uint8_t)second, tails[i], tails[k]};
                    for (size_t size = 1; size <= 4; size++)
                        if (cx_utf8_sequence(data, size) != naive_sequence(data, size)) {
                            cx_test_fail(__FILE__, __LINE__, "%02x %02x %02x %02x of %zu differs",
                                         lead, second, tails[i], tails[k], size);
                            return;
                        }
                }
    CHECK(cx_utf8_sequence(NULL, 0) == 0);
}

CX_TEST(utf8_prefix_ends_at_the_first_bad_byte)
{
    char text[64];
    for (size_t at = 0; at < sizeof text; at++) {
        memset(text, 'x', sizeof text);
        CHECK(cx_utf8_valid((cx_str){text, sizeof text}));
        text[at] = (char)0x80;
        CHECK_INT(cx_utf8_valid_prefix((cx_str){text, sizeof text}), at);
        if (at + 1 < sizeof text) { /* a whole sequence is fine anywhere, a cut one is not */
            text[at] = (char)0xC3;
            text[at + 1] = (char)0xA9;
            CHECK(cx_utf8_valid((cx_str){text, sizeof text}));
            CHECK_INT(cx_utf8_valid_prefix((cx_str){text, at + 1}), at);
        }
    }
    CHECK(cx_utf8_valid((cx_str){NULL, 0}));
}

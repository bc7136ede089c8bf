/*
 * test_text.c - hex and base64: the vectors of RFC 4648 §10, and everything that must be refused.
 */
#include "base/hex.h"

#include "tests/test.h"

/* --- hex ----------------------------------------------------------------------------------- */

CX_TEST(hex_of_every_byte)
{
    char text[512];
    uint8_t bytes[256], back[256];
    for (size_t i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    cx_hex_encode(cx_bytes_from(bytes, sizeof bytes), text);
    for (size_t i = 0; i < 256; i++) {
        char expected[3];
        (void)snprintf(expected, sizeof expected, "%02x", (unsigned)i);
        CHECK(memcmp(text + 2 * i, expected, 2) == 0);
    }
    CHECK(cx_hex_decode(cx_str_from(text, sizeof text), back, sizeof back));
    CHECK(memcmp(back, bytes, sizeof bytes) == 0);
}

CX_TEST(hex_knows_its_digits_and_no_others)
{
    for (unsigned c = 0; c < 256; c++) {
        for (unsigned place = 0; place < 2; place++) {
            char text[2] = {'0', '0'};
            uint8_t out = 0x77;
            text[place] = (char)c;
            bool lower = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
            bool upper = c >= 'A' && c <= 'F';
            CHECK_INT(cx_hex_decode(cx_str_from(text, 2), &out, 1), lower);
            CHECK(lower || out == 0x77);
            CHECK_INT(cx_hex_decode_any(cx_str_from(text, 2), &out, 1), lower || upper);
            CHECK(lower || upper || out == 0x77);
        }
    }
}

CX_TEST(hex_case_and_size)
{
    uint8_t out[4] = {0};
    CHECK(cx_hex_decode_any(CX_STR("DEadBeeF"), out, 4));
    CHECK(memcmp(out, "\xde\xad\xbe\xef", 4) == 0);
    CHECK(!cx_hex_decode(CX_STR("DEadBeeF"), out, 4));
    CHECK(!cx_hex_decode(CX_STR("deadbeef"), out, 3));
    CHECK(!cx_hex_decode(CX_STR("deadbee"), out, 3));
    CHECK(!cx_hex_decode(CX_STR("deadbee"), out, 4));
    CHECK(!cx_hex_decode(CX_STR("dead"), out, 4));
    CHECK(cx_hex_decode(cx_str_from(NULL, 0), out, 0));
    CHECK(!cx_hex_decode(CX_STR("0"), out, 0));
}

CX_TEST(hex_digest_parse)
{
    cx_digest digest;
    CHECK(cx_digest_parse(
        CX_STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), &digest));
    CHECK_INT(digest.bytes[0], 0xba);
    CHECK_INT(digest.bytes[31], 0xad);
    CHECK(!cx_digest_parse(
        CX_STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a"), &digest));
    CHECK(!cx_digest_parse(
        CX_STR("BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), &digest));
}

/* Digests are decoded in blocks where the machine has vectors; two digits never are. */
static bool decode_in_pairs(const char digits[64], uint8_t out[32])
{
    bool good = true;
    for (size_t i = 0; i < 32; i++)
        good = cx_hex_decode(cx_str_from(digits + 2 * i, 2), out + i, 1) && good;
    return good;
}

CX_TEST(hex_of_a_digest_with_every_byte_at_every_place)
{
    uint64_t seed = cx_test_seed();
    char room[64 + 16];
    unsigned accepted = 0;
    for (size_t place = 0; place < 64; place++) {
        char *digits = room + place % 16; /* at every alignment */
        for (size_t i = 0; i < 64; i++)
            digits[i] = "0123456789abcdef"[cx_test_random(&seed) % 16];
        for (unsigned byte = 0; byte < 256; byte++) {
            uint8_t got[32] = {0}, expected[32] = {0};
            digits[place] = (char)byte;
            bool good = decode_in_pairs(digits, expected);
            CHECK_INT(cx_hex_decode(cx_str_from(digits, 64), got, 32), good);
            CHECK(!good || memcmp(got, expected, sizeof got) == 0);
            accepted += good;
        }
    }
    CHECK_INT(accepted, 64 * 16);
}

CX_TEST(hex_add_appends)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    cx_buf_add_z(&buf, "x:");
    cx_hex_add(&buf, cx_bytes_from("\x00\xff\x10", 3));
    cx_hex_add(&buf, cx_bytes_from(NULL, 0));
    CHECK_STR(cx_buf_str(&buf), "x:00ff10");
    cx_buf_done(&buf);
}

/* --- base64 -------------------------------------------------------------------------------- */

static cx_str encoded(cx_buf *buf, cx_str bytes, cx_base64_kind kind)
{
    cx_buf_clear(buf);
    cx_base64_add(buf, cx_str_bytes(bytes), kind);
    return cx_buf_str(buf);
}

static void check_both_ways(cx_buf *buf, cx_str bytes, const char *padded, const char *bare)
{
    CHECK_STR(encoded(buf, bytes, CX_BASE64), padded);
    CHECK_STR(encoded(buf, bytes, CX_BASE64_URL), bare);
    cx_buf_clear(buf);
    CHECK(cx_base64_decode(cx_str_z(padded), CX_BASE64, buf));
    CHECK(cx_str_eq(cx_buf_str(buf), bytes));
    cx_buf_clear(buf);
    CHECK(cx_base64_decode(cx_str_z(bare), CX_BASE64_URL, buf));
    CHECK(cx_str_eq(cx_buf_str(buf), bytes));
}

CX_TEST(base64_rfc_4648_vectors)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    check_both_ways(&buf, CX_STR(""), "", "");
    check_both_ways(&buf, CX_STR("f"), "Zg==", "Zg");
    check_both_ways(&buf, CX_STR("fo"), "Zm8=", "Zm8");
    check_both_ways(&buf, CX_STR("foo"), "Zm9v", "Zm9v");
    check_both_ways(&buf, CX_STR("foob"), "Zm9vYg==", "Zm9vYg");
    check_both_ways(&buf, CX_STR("fooba"), "Zm9vYmE=", "Zm9vYmE");
    check_both_ways(&buf, CX_STR("foobar"), "Zm9vYmFy", "Zm9vYmFy");
    check_both_ways(&buf, CX_STR("\xfb\xff\xfe"), "+//+", "-__-");
    cx_buf_done(&buf);
}

CX_TEST(base64_random_bytes_come_back)
{
    uint64_t seed = cx_test_seed();
    uint8_t bytes[200];
    cx_buf text, back;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&back, cx_alloc_default());
    for (unsigned i = 0; i < 400; i++) {
        cx_base64_kind kind = i % 2 == 0 ? CX_BASE64 : CX_BASE64_URL;
        size_t size = (size_t)(cx_test_random(&seed) % sizeof bytes);
        for (size_t j = 0; j < size; j++)
            bytes[j] = (uint8_t)cx_test_random(&seed);
        cx_buf_clear(&text);
        cx_buf_clear(&back);
        cx_base64_add(&text, cx_bytes_from(bytes, size), kind);
        CHECK(cx_base64_decode(cx_buf_str(&text), kind, &back));
        CHECK(back.size == size && (size == 0 || memcmp(back.data, bytes, size) == 0));
    }
    cx_buf_done(&text);
    cx_buf_done(&back);
}

typedef struct base64_case {
    const char *text;
    bool standard, url, any;
} base64_case;

/* Each text is judged by these three decoders. */
static const base64_case base64_cases[] = {
    {"Zg==", true, false, true},
    {"Zg", false, true, true},
    {"Zg=", false, false, false},
    {"Zg===", false, false, false},
    {"Zg==Zg==", false, false, false},
    {"Zg==\n", false, false, false},
    {"Zh==", false, false, false}, /* bits after the last byte */
    {"Zh", false, false, false},
    {"Zv", false, false, false},
    {"Zm8=", true, false, true},
    {"Zm8", false, true, true},
    {"Zm8==", false, false, false},
    {"Zm9=", false, false, false},
    {"Zm9", false, false, false},
    {"Zm-", false, false, false},
    {"Zm9v", true, true, true},
    {"Zm9v=", false, false, false},
    {"Zm9v==", false, false, false},
    {"Zm9v====", false, false, false},
    {"Z", false, false, false},
    {"Z===", false, false, false},
    {"=", false, false, false},
    {"==", false, false, false},
    {"====", false, false, false},
    {"Z=9v", false, false, false},
    {"Zg=v", false, false, false},
    {" Zm9v", false, false, false},
    {"Zm 9", false, false, false},
    {"Zm9v\n", false, false, false},
    {"-__-", false, true, true},
    {"+//+", true, false, false},
    {"-//-", false, false, false},
    {"Zm9vZ", false, false, false},
    {"", true, true, true},
};

CX_TEST(base64_strictness)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(base64_cases); i++) {
        const base64_case *c = &base64_cases[i];
        const bool expected[3] = {c->standard, c->url, c->any};
        for (size_t j = 0; j < 3; j++) {
            cx_buf_clear(&buf);
            cx_buf_add_z(&buf, "kept");
            cx_str text = cx_str_z(c->text);
            bool good = j == 0   ? cx_base64_decode(text, CX_BASE64, &buf)
                        : j == 1 ? cx_base64_decode(text, CX_BASE64_URL, &buf)
                                 : cx_base64_decode_any(text, &buf);
            if (good != expected[j])
                cx_test_fail(__FILE__, __LINE__, "'%s' in decoder %zu: %d", c->text, j, good);
            CHECK(good || buf.size == 4);
            CHECK(memcmp(buf.data, "kept", 4) == 0);
        }
    }
    cx_buf_done(&buf);
}

/* Both alphabets and both ways of padding, but one of each at a time. */
CX_TEST(base64_of_either_alphabet)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {{"+/8=", true},   {"+/8", true},   {"-_8=", true},  {"-_8", true},
                 {"+_8=", false},  {"-/8", false},  {"+/9=", false}, {"-_9", false},
                 {"+/8==", false}, {"-_==", false}, {"-w", true},    {"+w==", true},
                 {"+w=", false},   {"", true},      {"=", false},    {"Zm9v", true},
                 {"Zm9v=", false}, {"Z", false},    {" +/8", false}, {"+/8\n", false}};
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_buf_clear(&buf);
        if (cx_base64_decode_either(cx_str_z(cases[i].text), &buf) != cases[i].good)
            cx_test_fail(__FILE__, __LINE__, "'%s': %d", cases[i].text, !cases[i].good);
        CHECK(cases[i].good || buf.size == 0);
        if (cases[i].good && cases[i].text[0] != 0 && cases[i].text[1] != 'w' && buf.size == 2)
            CHECK(buf.data[0] == 0xFB && buf.data[1] == 0xFF);
    }
    cx_buf_done(&buf);
}

CX_TEST(base64_knows_its_characters_and_no_others)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    for (unsigned c = 0; c < 256; c++) {
        char text[4] = {'A', 'A', 'A', (char)c};
        bool common = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        bool standard = common || c == '+' || c == '/' || c == '=';
        bool url = common || c == '-' || c == '_';
        CHECK_INT(cx_base64_decode(cx_str_from(text, 4), CX_BASE64, &buf), standard);
        CHECK_INT(cx_base64_decode(cx_str_from(text, 4), CX_BASE64_URL, &buf), url);
        CHECK_INT(cx_base64_decode_any(cx_str_from(text, 4), &buf), url || c == '=');
    }
    cx_buf_done(&buf);
}

/* --- out of memory ------------------------------------------------------------------------- */

static void *no_memory(void *ctx, void *block, size_t old_size_bytes, size_t new_size_bytes)
{
    (void)ctx;
    (void)block;
    (void)old_size_bytes;
    (void)new_size_bytes;
    return NULL;
}

CX_TEST(text_without_memory_fails_the_buffer)
{
    const cx_alloc none = {no_memory, NULL};
    cx_buf buf;
    cx_buf_init(&buf, &none);
    cx_hex_add(&buf, cx_bytes_from("ab", 2));
    CHECK(buf.failed);
    cx_buf_clear(&buf);
    cx_base64_add(&buf, cx_bytes_from("ab", 2), CX_BASE64);
    CHECK(buf.failed);
    cx_buf_clear(&buf);
    /* The text is well-formed, and saying otherwise would be a false verdict. */
    CHECK(cx_base64_decode(CX_STR("Zm9v"), CX_BASE64, &buf));
    CHECK(buf.failed);
    cx_buf_done(&buf);
}

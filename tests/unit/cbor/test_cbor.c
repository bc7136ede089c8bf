/*
 * test_cbor.c - one spelling out, and no other in.
 */
#include "base/arena.h"
#include "base/io.h"
#include "cbor/cbor.h"
#include "crypto/text.h"
#include "json/json.h"
#include "tests/test.h"

/* --- writing --------------------------------------------------------------------------------- */

static void check_hex(int line, cx_buf *got, const char *expected)
{
    cx_buf hex;
    cx_buf_init(&hex, cx_alloc_default());
    cx_hex_add(&hex, cx_buf_bytes(got));
    if (!cx_str_is(cx_buf_str(&hex), expected))
        cx_test_fail(__FILE__, line, "%.*s, expected %s", (int)hex.size, (const char *)hex.data,
                     expected);
    CHECK_STATUS(cx_cbor_check(cx_buf_bytes(got), NULL), &(cx_err){0});
    cx_buf_done(&hex);
    cx_buf_clear(got);
}
#define WRITES(call, expected)               \
    do {                                     \
        call;                                \
        check_hex(__LINE__, &out, expected); \
    } while (0)

CX_TEST(cbor_writes_the_examples_of_rfc_8949)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    WRITES(cx_cbor_uint(&out, 0), "00");
    WRITES(cx_cbor_uint(&out, 23), "17");
    WRITES(cx_cbor_uint(&out, 24), "1818");
    WRITES(cx_cbor_uint(&out, 255), "18ff");
    WRITES(cx_cbor_uint(&out, 256), "190100");
    WRITES(cx_cbor_uint(&out, 65536), "1a00010000");
    WRITES(cx_cbor_uint(&out, 1000000000000), "1b000000e8d4a51000");
    WRITES(cx_cbor_uint(&out, UINT64_MAX), "1bffffffffffffffff");
    WRITES(cx_cbor_int(&out, -1), "20");
    WRITES(cx_cbor_int(&out, -100), "3863");
    WRITES(cx_cbor_int(&out, INT64_MIN), "3b7fffffffffffffff");
    WRITES(cx_cbor_text(&out, CX_STR("")), "60");
    WRITES(cx_cbor_text(&out, CX_STR("\xc3\xbc")), "62c3bc");
    WRITES(cx_cbor_bytes(&out, cx_str_bytes(CX_STR("\1\2\3\4"))), "4401020304");
    WRITES(cx_cbor_bool(&out, false), "f4");
    WRITES(cx_cbor_null(&out), "f6");
    WRITES(cx_cbor_array(&out, 0), "80");
    WRITES(cx_cbor_map(&out, 0), "a0");
    cx_buf_done(&out);
}

CX_TEST(cbor_writes_the_shortest_exact_float)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    WRITES(cx_cbor_f32(&out, 0.0f), "f90000");
    WRITES(cx_cbor_f32(&out, -0.0f), "f98000");
    WRITES(cx_cbor_f32(&out, 0.1f), "fa3dcccccd");
    WRITES(cx_cbor_f32(&out, 0.5f), "f93800");
    WRITES(cx_cbor_f32(&out, 65504.0f), "f97bff");
    WRITES(cx_cbor_f32(&out, 65520.0f), "fa477ff000");
    WRITES(cx_cbor_f32(&out, 0x1p-24f), "f90001");
    WRITES(cx_cbor_f32(&out, 0x1p-25f), "fa33000000");
    WRITES(cx_cbor_f64(&out, 1.1), "fb3ff199999999999a");
    WRITES(cx_cbor_f64(&out, 1.0e300), "fb7e37e43c8800759c");
    WRITES(cx_cbor_f64(&out, 100000.0), "fa47c35000");
    WRITES(cx_cbor_f64(&out, -4.1), "fbc010666666666666");
    WRITES(cx_cbor_f64(&out, (double)__builtin_nanf("5")), "f97e00");
    WRITES(cx_cbor_f64(&out, -__builtin_inf()), "f9fc00");
    cx_buf_done(&out);
}

/* All 65,536 half floats: read, they give a float that is written as the same half. */
CX_TEST(cbor_half_floats_all)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (uint32_t half = 0; half <= 0xffff; half++) {
        const uint8_t bytes[3] = {0xf9, (uint8_t)(half >> 8), (uint8_t)half};
        cx_cbor_reader reader;
        cx_cbor_begin(&reader, cx_bytes_from(bytes, sizeof bytes), "half");
        float value = cx_cbor_read_f32(&reader);
        bool other_nan = (half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0 && half != 0x7e00;
        bool refused = cx_failed(cx_cbor_end(&reader, NULL));
        CHECK(refused == other_nan);
        if (refused)
            continue;
        cx_buf_clear(&out);
        cx_cbor_f32(&out, value);
        CHECK(out.size == 3 && memcmp(out.data, bytes, 3) == 0);
    }
    cx_buf_done(&out);
}

/* Whether some half float equals the float, found by trying the two around it. */
static bool has_half(float value)
{
    for (uint32_t half = 0; half < 0x7c00; half++) {
        float exponent_part = (float)(half & 0x3ff);
        uint32_t exponent = half >> 10;
        float magnitude =
            exponent == 0 ? exponent_part * 0x1p-24f : (1024.0f + exponent_part) * 0x1p-25f;
        for (uint32_t i = 1; exponent != 0 && i < exponent; i++)
            magnitude *= 2.0f;
        if (exponent != 0)
            magnitude *= 1.0f;
        if (magnitude == value || -magnitude == value)
            return true;
    }
    return false;
}

CX_TEST(cbor_random_floats_come_back)
{
    uint64_t random = cx_test_seed();
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = cx_test_random(&random);
        if (i % 2 == 0)
            bits &= 0xffffe00000000000u; /* often short */
        double value, back;
        memcpy(&value, &bits, sizeof value);
        if (value != value)
            continue;
        cx_buf_clear(&out);
        cx_cbor_f64(&out, value);
        cx_cbor_reader reader;
        cx_cbor_begin(&reader, cx_buf_bytes(&out), "float");
        back = cx_cbor_read_f64(&reader);
        CHECK(!cx_failed(cx_cbor_end(&reader, NULL)) && memcmp(&back, &value, sizeof value) == 0);
        bool single = (double)(float)value == value;
        CHECK(single ? out.size <= 5 : out.size == 9);
        if (i < 200 && single && value < 1e6 && value > -1e6)
            CHECK((out.size == 3) == has_half((float)value) || value == 0);
    }
    cx_buf_done(&out);
}

/* --- reading --------------------------------------------------------------------------------- */

static cx_status check_text(const char *hex, cx_err *err)
{
    uint8_t bytes[64];
    size_t size = strlen(hex) / 2;
    bool good = size <= sizeof bytes && cx_hex_decode(cx_str_z(hex), bytes, size);
    if (!good)
        cx_test_fail(__FILE__, __LINE__, "bad hex %s", hex);
    return cx_cbor_check(cx_bytes_from(bytes, size), err);
}

CX_TEST(cbor_refuses_every_other_spelling_and_says_where)
{
    static const struct {
        const char *hex;
        uint64_t offset;
    } refused[] = {
        {"1817", 0},       {"190018", 0},
        {"1a0000ffff", 0}, {"1b00000000ffffffff", 0},
        {"3817", 0},       {"5801aa", 0},
        {"780161", 0},     {"9801", 0},
        {"5f41aaff", 0},   {"7f6161ff", 0},
        {"9f01ff", 0},     {"bf0001ff", 0},
        {"1c", 0},         {"a200000001", 3},
        {"a201000000", 3}, {"a2616201616102", 4},
        {"62c080", 0},     {"63eda080", 0},
        {"64f4908080", 0}, {"61ff", 0},
        {"fa3f800000", 0}, {"fb3ff8000000000000", 0},
        {"f97e01", 0},     {"fa7fc00000", 0},
        {"f7", 0},         {"f0", 0},
        {"f818", 0},       {"f820", 0},
        {"ff", 0},         {"c001", 0},
        {"d20a", 0},       {"0000", 1},
        {"81", 1},         {"8201", 2},
        {"", 0},           {"18", 0},
        {"4401", 0},       {"5bffffffffffffffff", 0},
        {"a1", 0},         {"a100", 0},
    };
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++) {
        cx_err err = {0};
        cx_status status = check_text(refused[i].hex, &err);
        CHECK_INT(status.code, CX_E_FORMAT);
        CHECK(err.tag != NULL && strcmp(err.tag, "NonCanonical") == 0);
        if (err.offset != refused[i].offset && refused[i].hex[0] != '8' && refused[i].hex[0] != 'a')
            cx_test_fail(__FILE__, __LINE__, "%s: offset %llu, expected %llu", refused[i].hex,
                         (unsigned long long)err.offset, (unsigned long long)refused[i].offset);
    }
}

CX_TEST(cbor_depth_has_a_limit)
{
    uint8_t bytes[CX_CBOR_DEPTH_MAX + 1];
    cx_err err = {0};
    memset(bytes, 0x81, sizeof bytes);
    bytes[CX_CBOR_DEPTH_MAX - 1] = 0x80;
    CHECK_STATUS(cx_cbor_check(cx_bytes_from(bytes, CX_CBOR_DEPTH_MAX), &err), &err);
    bytes[CX_CBOR_DEPTH_MAX - 1] = 0x81;
    bytes[CX_CBOR_DEPTH_MAX] = 0x80;
    CHECK_INT(cx_cbor_check(cx_bytes_from(bytes, sizeof bytes), &err).code, CX_E_FORMAT);
}

CX_TEST(cbor_vectors_of_the_strict_reader)
{
    cx_buf text;
    cx_arena arena;
    cx_json root;
    cx_err err = {0};
    cx_buf_init(&text, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path("vectors/ledger/cbor_strict.json"),
                                 1 << 20, &text, &err),
                 &err);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&text), &arena, &root, &err), &err);
    const cx_json *accept = cx_json_get_typed(&root, CX_STR("accept"), CX_JSON_ARRAY);
    const cx_json *reject = cx_json_get_typed(&root, CX_STR("reject"), CX_JSON_ARRAY);
    CHECK(accept != NULL && accept->count > 20 && reject != NULL && reject->count > 20);
    for (uint32_t i = 0; accept != NULL && i < accept->count; i++) {
        cx_str hex = cx_arena_copy_str(&arena, cx_json_text(&accept->items[i]));
        CHECK_STATUS(check_text(hex.data, &err), &err);
    }
    for (uint32_t i = 0; reject != NULL && i < reject->count; i++) {
        const cx_json *cbor = cx_json_get(&reject->items[i], CX_STR("cbor"));
        cx_str hex = cx_arena_copy_str(&arena, cx_json_text(cbor));
        CHECK_INT(check_text(hex.data, &err).code, CX_E_FORMAT);
    }
    cx_arena_done(&arena);
    cx_buf_done(&text);
}

/* --- maps with small keys -------------------------------------------------------------------- */

static cx_status read_pair(const char *hex, uint64_t *out_a, uint64_t *out_b, cx_err *err)
{
    uint8_t bytes[32];
    size_t size = strlen(hex) / 2;
    cx_cbor_reader reader;
    CHECK(cx_hex_decode(cx_str_z(hex), bytes, size));
    cx_cbor_begin(&reader, cx_bytes_from(bytes, size), "pair");
    cx_cbor_members members = cx_cbor_read_members(&reader);
    while (cx_cbor_next_member(&reader, &members))
        switch (members.key) {
        case 1: *out_a = cx_cbor_read_uint_max(&reader, 9); break;
        case 2:
            *out_b = cx_cbor_read_uint(&reader);
            if (*out_b == 0)
                cx_cbor_refuse_empty(&reader, &members);
            break;
        default: cx_cbor_refuse_member(&reader, &members);
        }
    cx_cbor_require(&reader, &members, 1u << 1);
    return cx_cbor_end(&reader, err);
}

CX_TEST(cbor_members)
{
    uint64_t a = 0, b = 0;
    cx_err err = {0};
    CHECK_STATUS(read_pair("a201050207", &a, &b, &err), &err);
    CHECK(a == 5 && b == 7);
    CHECK_STATUS(read_pair("a10105", &a, &b, &err), &err);
    CHECK_INT(read_pair("a10207", &a, &b, &err).code, CX_E_FORMAT); /* 1 is missing */
    CHECK_INT(err.offset, 0);
    CHECK_INT(read_pair("a202070105", &a, &b, &err).code, CX_E_FORMAT); /* order */
    CHECK_INT(err.offset, 3);
    CHECK_INT(read_pair("a201050105", &a, &b, &err).code, CX_E_FORMAT); /* twice */
    CHECK_INT(read_pair("a201050300", &a, &b, &err).code, CX_E_FORMAT); /* unknown */
    CHECK_INT(read_pair("a2010518c800", &a, &b, &err).code, CX_E_FORMAT);
    CHECK_INT(read_pair("a201050200", &a, &b, &err).code, CX_E_FORMAT); /* empty */
    CHECK_INT(read_pair("a1010a", &a, &b, &err).code, CX_E_FORMAT);     /* more than 9 */
    CHECK_INT(read_pair("a1014105", &a, &b, &err).code, CX_E_FORMAT);   /* bytes */
    CHECK_INT(read_pair("a10105ff", &a, &b, &err).code, CX_E_FORMAT);   /* behind the end */
    CHECK_INT(err.offset, 3);
}

CX_TEST(cbor_fields_leave_out_and_count)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, &out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(&out, 1);
    cx_cbor_field(&fields, 23);
    cx_cbor_null(&out);
    cx_cbor_fields_end(&fields);
    check_hex(__LINE__, &out, "a2000117f6");
    cx_buf_done(&out);
}

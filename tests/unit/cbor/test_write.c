/*
 * test_write.c - one spelling out.
 */
#include "tests/unit/cbor/hex.h"

/* Writes with the call, compares, and lets the reader accept it. */
#define WRITES(call, expected)                                         \
    do {                                                               \
        cx_err err_ = {0};                                             \
        cx_buf_clear(&out);                                            \
        call;                                                          \
        CHECK_HEX(&out, expected);                                     \
        CHECK_STATUS(cx_cbor_check(cx_buf_bytes(&out), &err_), &err_); \
    } while (0)

static const struct {
    uint64_t value;
    const char *hex;
} uints[] = {
    {0, "00"},
    {1, "01"},
    {10, "0a"},
    {23, "17"},
    {24, "1818"},
    {25, "1819"},
    {100, "1864"},
    {255, "18ff"},
    {256, "190100"},
    {1000, "1903e8"},
    {65535, "19ffff"},
    {65536, "1a00010000"},
    {1000000, "1a000f4240"},
    {4294967295, "1affffffff"},
    {4294967296, "1b0000000100000000"},
    {1000000000000, "1b000000e8d4a51000"},
    {UINT64_MAX, "1bffffffffffffffff"},
};

CX_TEST(cbor_write_integers_of_rfc_8949)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(uints); i++) {
        WRITES(cx_cbor_uint(&out, uints[i].value), uints[i].hex);
        if (uints[i].value <= INT64_MAX)
            WRITES(cx_cbor_int(&out, (int64_t)uints[i].value), uints[i].hex);
    }
    WRITES(cx_cbor_int(&out, -1), "20");
    WRITES(cx_cbor_int(&out, -10), "29");
    WRITES(cx_cbor_int(&out, -24), "37");
    WRITES(cx_cbor_int(&out, -25), "3818");
    WRITES(cx_cbor_int(&out, -100), "3863");
    WRITES(cx_cbor_int(&out, -256), "38ff");
    WRITES(cx_cbor_int(&out, -257), "390100");
    WRITES(cx_cbor_int(&out, -1000), "3903e7");
    WRITES(cx_cbor_int(&out, INT64_MIN), "3b7fffffffffffffff");
    cx_buf_done(&out);
}

CX_TEST(cbor_write_strings_of_rfc_8949)
{
    cx_buf out;
    cx_digest digest = {{0}};
    cx_buf_init(&out, cx_alloc_default());
    WRITES(cx_cbor_bytes(&out, (cx_bytes){NULL, 0}), "40");
    WRITES(cx_cbor_bytes(&out, cx_str_bytes(CX_STR("\1\2\3\4"))), "4401020304");
    WRITES(cx_cbor_text(&out, CX_STR("")), "60");
    WRITES(cx_cbor_text(&out, CX_STR("a")), "6161");
    WRITES(cx_cbor_text(&out, CX_STR("IETF")), "6449455446");
    WRITES(cx_cbor_text(&out, CX_STR("\"\\")), "62225c");
    WRITES(cx_cbor_text(&out, CX_STR("\xc3\xbc")), "62c3bc");
    WRITES(cx_cbor_text(&out, CX_STR("\xe6\xb0\xb4")), "63e6b0b4");
    WRITES(cx_cbor_text(&out, CX_STR("\xf0\x90\x85\x91")), "64f0908591");
    WRITES(cx_cbor_digest(&out, &digest),
           "58200000000000000000000000000000000000000000000000000000000000000000");
    cx_buf_done(&out);
}

CX_TEST(cbor_write_length_boundaries)
{
    static const struct {
        size_t size;
        const char *head; /* of a byte string */
    } lengths[] = {{23, "57"},      {24, "5818"},      {255, "58ff"},
                   {256, "590100"}, {65535, "59ffff"}, {65536, "5a00010000"}};
    static uint8_t zeros[65536];
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(lengths); i++) {
        cx_err err = {0};
        cx_buf_clear(&out);
        cx_cbor_bytes(&out, cx_bytes_from(zeros, lengths[i].size));
        size_t head_size = strlen(lengths[i].head) / 2;
        CHECK_INT(out.size, head_size + lengths[i].size);
        CHECK_STATUS(cx_cbor_check(cx_buf_bytes(&out), &err), &err);
        out.size = head_size;
        CHECK_HEX(&out, lengths[i].head);
    }
    cx_buf_done(&out);
}

static void write_nested(cx_buf *out)
{
    cx_cbor_map(out, 2); /* {"a": 1, "b": [2, 3]} */
    cx_cbor_text(out, CX_STR("a"));
    cx_cbor_uint(out, 1);
    cx_cbor_text(out, CX_STR("b"));
    cx_cbor_array(out, 2);
    cx_cbor_uint(out, 2);
    cx_cbor_uint(out, 3);
}

static void write_25(cx_buf *out)
{
    cx_cbor_array(out, 25);
    for (unsigned i = 1; i <= 25; i++)
        cx_cbor_uint(out, i);
}

CX_TEST(cbor_write_containers_of_rfc_8949)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    WRITES(cx_cbor_bool(&out, false), "f4");
    WRITES(cx_cbor_bool(&out, true), "f5");
    WRITES(cx_cbor_null(&out), "f6");
    WRITES(cx_cbor_array(&out, 0), "80");
    WRITES(cx_cbor_map(&out, 0), "a0");
    WRITES(write_nested(&out), "a26161016162820203");
    WRITES(write_25(&out), "98190102030405060708090a0b0c0d0e0f101112131415161718181819");
    /* The tag of COSE; the reader of anything refuses tags, the reader of COSE asks for it. */
    cx_buf_clear(&out);
    cx_cbor_tag(&out, 18);
    CHECK_HEX(&out, "d2");
    CHECK_INT(cx_cbor_check(cx_buf_bytes(&out), NULL).code, CX_E_FORMAT);
    cx_buf_done(&out);
}

/* RFC 8949 appendix A, and the traps of ledger.md §2. */
CX_TEST(cbor_write_floats_in_their_shortest_form)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    WRITES(cx_cbor_f64(&out, 0.0), "f90000");
    WRITES(cx_cbor_f64(&out, -0.0), "f98000");
    WRITES(cx_cbor_f64(&out, 1.0), "f93c00");
    WRITES(cx_cbor_f64(&out, 1.1), "fb3ff199999999999a");
    WRITES(cx_cbor_f64(&out, 1.5), "f93e00");
    WRITES(cx_cbor_f64(&out, 65504.0), "f97bff");
    WRITES(cx_cbor_f64(&out, 100000.0), "fa47c35000");
    WRITES(cx_cbor_f64(&out, 3.4028234663852886e+38), "fa7f7fffff");
    WRITES(cx_cbor_f64(&out, 1.0e300), "fb7e37e43c8800759c");
    WRITES(cx_cbor_f64(&out, 5.960464477539063e-8), "f90001");
    WRITES(cx_cbor_f64(&out, 0.00006103515625), "f90400");
    WRITES(cx_cbor_f64(&out, -4.0), "f9c400");
    WRITES(cx_cbor_f64(&out, -4.1), "fbc010666666666666");
    WRITES(cx_cbor_f64(&out, (double)__builtin_inff()), "f97c00");
    WRITES(cx_cbor_f64(&out, (double)-__builtin_inff()), "f9fc00");
    WRITES(cx_cbor_f64(&out, (double)__builtin_nanf("5")), "f97e00");
    WRITES(cx_cbor_f64(&out, (double)-__builtin_nanf("")), "f97e00");
    WRITES(cx_cbor_f32(&out, 0.0f), "f90000");
    WRITES(cx_cbor_f32(&out, -0.0f), "f98000");
    WRITES(cx_cbor_f32(&out, 0.1f), "fa3dcccccd");
    WRITES(cx_cbor_f32(&out, 0.5f), "f93800");
    WRITES(cx_cbor_f32(&out, 65504.0f), "f97bff");
    WRITES(cx_cbor_f32(&out, 65505.0f), "fa477fe100");
    WRITES(cx_cbor_f32(&out, 65520.0f), "fa477ff000");
    WRITES(cx_cbor_f32(&out, 0x1p-24f), "f90001");
    WRITES(cx_cbor_f32(&out, 0x1p-25f), "fa33000000");
    WRITES(cx_cbor_f32(&out, 0x1.8p-24f), "fa33c00000"); /* between two subnormal halves */
    WRITES(cx_cbor_f32(&out, 0x1.ff8p-15f), "f903ff");   /* the largest subnormal half */
    WRITES(cx_cbor_f32(&out, 0x1p-149f), "fa00000001");
    WRITES(cx_cbor_f32(&out, __builtin_nanf("1")), "f97e00");
    cx_buf_done(&out);
}

/* Times before 1970 are floored by the caller; their seconds are ordinary negative integers. */
CX_TEST(cbor_write_times)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    WRITES(cx_cbor_int(&out, 1700000000), "1a6553f100");
    WRITES(cx_cbor_int(&out, 1700000000123456789), "1b17979cfe3d85cd15");
    cx_buf_done(&out);
}

/* --- floats compared with a naive rule -------------------------------------------------------- */

#define HALF_COUNT 0x7c00 /* finite halves without sign */

/* All of them in rising order, made by adding and doubling only. */
static void fill_halves(double *halves)
{
    double unit = 0x1p-24;
    for (unsigned i = 0; i < 1024; i++)
        halves[i] = unit * i;
    for (unsigned exponent = 1; exponent < 31; exponent++) {
        for (unsigned i = 0; i < 1024; i++)
            halves[exponent * 1024 + i] = unit * (1024 + i);
        unit *= 2;
    }
}

static bool is_half(const double *halves, double value)
{
    size_t low = 0, high = HALF_COUNT;
    value = value < 0 ? -value : value;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (halves[middle] == value)
            return true;
        if (halves[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return value > halves[HALF_COUNT - 1] && value + value == value; /* infinity */
}

static size_t naive_size(const double *halves, double value)
{
    if (value != value || is_half(halves, value))
        return 3;
    return (double)(float)value == value ? 5 : 9;
}

static void check_float(cx_buf *out, const double *halves, double value)
{
    cx_cbor_reader reader;
    double back;
    cx_buf_clear(out);
    cx_cbor_f64(out, value);
    CHECK_INT(out->size, naive_size(halves, value));
    cx_cbor_begin(&reader, cx_buf_bytes(out), "float");
    back = cx_cbor_read_f64(&reader);
    CHECK(!cx_failed(cx_cbor_end(&reader, NULL)));
    CHECK(value != value ? back != back : memcmp(&back, &value, sizeof value) == 0);
    if (value == value && (double)(float)value != value)
        return;
    cx_buf single;
    cx_buf_init(&single, cx_alloc_default());
    cx_cbor_f32(&single, (float)value);
    CHECK(cx_str_eq(cx_buf_str(&single), cx_buf_str(out)));
    cx_buf_done(&single);
}

CX_TEST(cbor_write_random_floats_as_a_naive_rule_says)
{
    static double halves[HALF_COUNT];
    uint64_t random = cx_test_seed();
    cx_buf out;
    fill_halves(halves);
    cx_buf_init(&out, cx_alloc_default());
    for (int i = 0; i < 60000; i++) {
        uint64_t bits = cx_test_random(&random);
        double value;
        if (i % 3 == 0) { /* any double */
            memcpy(&value, &bits, sizeof value);
        } else { /* any float; often with few digits, so that halves and near halves occur */
            uint32_t low = (uint32_t)bits & (i % 3 == 1 ? UINT32_MAX : 0xfffff000u);
            float single;
            if (i % 2 == 0) /* exponents about those of halves */
                low = (low & 0x807fffffu) | (100 + (uint32_t)(bits >> 40) % 46) << 23;
            memcpy(&single, &low, sizeof single);
            value = (double)single;
        }
        check_float(&out, halves, value);
    }
    cx_buf_done(&out);
}

/* Every half, and the floats right next to it, which are no halves. */
CX_TEST(cbor_write_every_half_and_its_neighbours)
{
    static double halves[HALF_COUNT];
    cx_buf out;
    fill_halves(halves);
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < HALF_COUNT; i++) {
        float value = (float)halves[i];
        uint32_t bits;
        check_float(&out, halves, halves[i]);
        check_float(&out, halves, -halves[i]);
        memcpy(&bits, &value, sizeof bits);
        bits++;
        memcpy(&value, &bits, sizeof value);
        check_float(&out, halves, (double)value);
    }
    cx_buf_done(&out);
}

/* --- maps with small keys -------------------------------------------------------------------- */

CX_TEST(cbor_fields_leave_out_and_count)
{
    cx_buf out;
    cx_cbor_fields fields;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_add_byte(&out, 0x81); /* a map need not begin the buffer */
    cx_cbor_fields_begin(&fields, &out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(&out, 1);
    cx_cbor_field(&fields, 23);
    cx_cbor_null(&out);
    cx_cbor_fields_end(&fields);
    CHECK_HEX(&out, "81a2000117f6");
    cx_buf_clear(&out);
    cx_cbor_fields_begin(&fields, &out);
    cx_cbor_fields_end(&fields);
    CHECK_HEX(&out, "a0");
    cx_buf_clear(&out);
    cx_cbor_fields_begin(&fields, &out);
    for (uint8_t key = 1; key < 24; key++) {
        cx_cbor_field(&fields, key);
        cx_cbor_uint(&out, 0);
    }
    cx_cbor_fields_end(&fields);
    CHECK_INT(out.data[0], 0xb7); /* 23 fields: still one byte */
    CHECK_INT(cx_cbor_check(cx_buf_bytes(&out), NULL).code, CX_OK);
    cx_buf_done(&out);
}

static void *no_memory(void *ctx, void *block, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)block;
    (void)old_size;
    (void)new_size;
    return NULL;
}

CX_TEST(cbor_write_without_memory_fails_at_the_end)
{
    const cx_alloc none = {.resize = no_memory};
    cx_buf out;
    cx_cbor_fields fields;
    cx_err err = {0};
    cx_buf_init(&out, &none);
    cx_cbor_fields_begin(&fields, &out);
    cx_cbor_field(&fields, 1);
    cx_cbor_text(&out, CX_STR("text"));
    cx_cbor_f64(&out, 1.1);
    cx_cbor_fields_end(&fields);
    CHECK_INT(cx_buf_check(&out, &err).code, CX_E_NOMEM);
    CHECK_INT(out.size, 0);
    cx_buf_done(&out);
}

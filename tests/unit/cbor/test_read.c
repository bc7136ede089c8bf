/*
 * test_read.c - no other spelling in, and where it was found.
 */
#include "base/io.h"
#include "json/json.h"
#include "tests/unit/cbor/hex.h"

static cx_status check_hex(const char *hex, cx_err *err)
{
    hex_item item = hex_item_of(hex);
    return cx_cbor_check(hex_item_bytes(&item), err);
}

static void check_refused_at(int line, const char *hex, uint64_t offset)
{
    cx_err err = {0};
    cx_status status = check_hex(hex, &err);
    if (status.code != CX_E_FORMAT || err.tag == NULL || strcmp(err.tag, "NonCanonical") != 0)
        cx_test_fail(__FILE__, line, "%s is not refused as NonCanonical", hex);
    else if (err.offset != offset)
        cx_test_fail(__FILE__, line, "%s: offset %llu, expected %llu (%s)", hex,
                     (unsigned long long)err.offset, (unsigned long long)offset, err.message);
}

CX_TEST(cbor_read_refuses_and_says_where)
{
    static const struct {
        const char *hex;
        uint64_t offset; /* of the item at fault */
    } refused[] = {
        /* the bytes end too early, or too late */
        {"", 0},
        {"18", 0},
        {"1900", 0},
        {"1a000000", 0},
        {"1b00000000000000", 0},
        {"41", 0},
        {"6261", 0},
        {"5bffffffffffffffff", 0},
        {"7b7fffffffffffffff", 0},
        {"f9", 0},
        {"f93c", 0},
        {"81", 0}, /* a count that the bytes cannot hold */
        {"8201", 0},
        {"a1", 0},
        {"a100", 0},
        {"a2010203", 0},
        {"9bffffffffffffffff", 0},
        {"bb8000000000000001", 0},
        {"818118", 2},
        {"0000", 1},
        {"f6f6", 1},
        {"8001", 1},
        /* lengths without end, reserved lengths, break */
        {"5f41aaff", 0},
        {"7f6161ff", 0},
        {"9f01ff", 0},
        {"bf0001ff", 0},
        {"1c", 0},
        {"1d", 0},
        {"1e", 0},
        {"1f", 0},
        {"3f", 0},
        {"df", 0},
        {"ff", 0},
        {"fc", 0},
        {"829f01ff00", 1},
        /* keys out of order or twice */
        {"a200000001", 3},
        {"a201000000", 3},
        {"a2616201616102", 4},
        {"a2616101616102", 4},
        {"a262616101616202", 5}, /* shorter keys come first */
        {"a2200018ff00", 3},     /* an unsigned 255 is before -1, by their first bytes */
        {"81a200000001", 4},
        {"a100a200000001", 5},
        /* not UTF-8 */
        {"61ff", 0},
        {"6180", 0},
        {"62c080", 0},
        {"63e08080", 0},
        {"63eda080", 0},
        {"64f08080af", 0},
        {"64f4908080", 0},
        {"62c3", 0},
        {"820061ff", 2},
        /* floats */
        {"fa3f800000", 0},
        {"fa00000000", 0},
        {"fa7f800000", 0},
        {"fa33800000", 0}, /* 2^-24 is a half */
        {"fb3ff8000000000000", 0},
        {"fb3fb99999a0000000", 0}, /* 0.1 as a float, written as a double */
        {"fb7ff8000000000000", 0},
        {"f97e01", 0},
        {"f97c01", 0},
        {"f9fe00", 0},
        {"fa7fc00000", 0},
        {"fb7ff0000000000001", 0},
        /* other simple values, and tags */
        {"f7", 0},
        {"e0", 0},
        {"f0", 0},
        {"f3", 0},
        {"f800", 0},
        {"f814", 0}, /* false in two bytes */
        {"f818", 0},
        {"f8ff", 0},
        {"c001", 0},
        {"c11a514b67b0", 0},
        {"d20a", 0},
        {"d74401020304", 0},
        {"d818456449455446", 0},
        {"8100c1", 2},
    };
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++)
        check_refused_at(__LINE__, refused[i].hex, refused[i].offset);
}

/* However many bytes follow. */
CX_TEST(cbor_read_refuses_reserved_and_endless_lengths)
{
    for (unsigned major = 0; major < 8; major++)
        for (unsigned info = 28; info < 32; info++) {
            uint8_t bytes[40] = {(uint8_t)(major << 5 | info)};
            cx_err err = {0};
            CHECK_INT(cx_cbor_check(cx_bytes_from(bytes, sizeof bytes), &err).code, CX_E_FORMAT);
            CHECK_INT(err.offset, 0);
            if (major < 7)
                CHECK(strstr(err.message, "indefinite or reserved") != NULL ||
                      strstr(err.message, "a tag") != NULL);
        }
}

/* Each argument in each width that is longer than it need be, for each type that has one. */
CX_TEST(cbor_read_refuses_every_longer_argument)
{
    static const struct {
        unsigned width; /* the shortest that will do: longer ones are tried */
        uint64_t argument;
    } arguments[] = {{0, 0},   {0, 1},     {0, 23},    {1, 24},    {1, 255},
                     {2, 256}, {2, 65535}, {4, 65536}, {4, 66000}, {4, 0xffffffff}};
    static uint8_t bytes[9 + 2 * 66000];
    for (unsigned major = 0; major < 6; major++)
        for (size_t i = 0; i < CX_COUNT_OF(arguments); i++)
            for (unsigned info = 24; info <= 27; info++) {
                unsigned width = 1u << (info - 24);
                cx_err err = {0};
                if (width <= arguments[i].width)
                    continue;
                bytes[0] = (uint8_t)(major << 5 | info);
                for (unsigned k = 0; k < width; k++)
                    bytes[1 + k] = (uint8_t)(arguments[i].argument >> (8 * (width - 1 - k)));
                CHECK_INT(cx_cbor_check(cx_bytes_from(bytes, sizeof bytes), &err).code,
                          CX_E_FORMAT);
                CHECK_INT(err.offset, 0);
                CHECK(strstr(err.message, "longer than it needs to be") != NULL);
            }
}

/* The order of keys is that of their bytes, so types follow one another as their numbers do. */
CX_TEST(cbor_read_accepts_what_the_writer_would_write)
{
    static const char *const accepted[] = {
        "00",         "3bffffffffffffffff", /* -2^64: no int64, but one spelling */
        "a2000120f6", "a318ff0020004000",   "a2616101616202", "a261620162616102",
        "a201020a03", "8301820203820405",   "f97e00",         "f90001",
        "fa33000000", "fb3ff199999999999a", "64f0908591",     "a0",
        "80",
    };
    for (size_t i = 0; i < CX_COUNT_OF(accepted); i++) {
        cx_err err = {0};
        cx_status status = check_hex(accepted[i], &err);
        if (cx_failed(status))
            cx_test_fail(__FILE__, __LINE__, "%s: %s", accepted[i], err.message);
    }
}

/* Whatever is cut off a sound item, nothing sound is left, and the reader stays inside. */
CX_TEST(cbor_read_refuses_every_truncation)
{
    static const char *const whole[] = {
        "a7010a0218ff0319ffff041affffffff051bffffffffffffffff0639ffff07f6",
        "a3006361626301430102030284f93c00fa3dcccccdfb3ff199999999999af5",
        "83818181f4a1a1000182a06001",
        "581900000000000000000000000000000000000000000000000000",
    };
    for (size_t i = 0; i < CX_COUNT_OF(whole); i++) {
        hex_item item = hex_item_of(whole[i]);
        cx_err err = {0};
        CHECK_STATUS(cx_cbor_check(hex_item_bytes(&item), &err), &err);
        for (size_t size = 0; size < item.size; size++) {
            cx_buf exact; /* its own allocation, so that a sanitizer sees a read past the end */
            cx_buf_init(&exact, cx_alloc_default());
            cx_buf_add(&exact, item.bytes, size);
            CHECK_INT(cx_cbor_check(cx_buf_bytes(&exact), &err).code, CX_E_FORMAT);
            CHECK(err.offset <= size);
            cx_buf_done(&exact);
        }
    }
}

/* `depth` arrays or maps, one in the other, around one integer. */
static size_t nest(uint8_t *out, uint8_t opener, size_t depth)
{
    size_t size = 0;
    for (size_t i = 0; i < depth; i++) {
        out[size++] = opener;
        if (opener == 0xa1)
            out[size++] = 0; /* the key */
    }
    out[size++] = 0;
    return size;
}

CX_TEST(cbor_read_depth_has_a_limit)
{
    static const uint8_t openers[] = {0x81, 0xa1};
    for (size_t i = 0; i < CX_COUNT_OF(openers); i++) {
        uint8_t bytes[2 * CX_CBOR_DEPTH_MAX + 3];
        cx_err err = {0};
        size_t size = nest(bytes, openers[i], CX_CBOR_DEPTH_MAX);
        CHECK_STATUS(cx_cbor_check(cx_bytes_from(bytes, size), &err), &err);
        size_t whole = size;
        size = nest(bytes, openers[i], CX_CBOR_DEPTH_MAX + 1);
        CHECK_INT(cx_cbor_check(cx_bytes_from(bytes, size), &err).code, CX_E_FORMAT);
        CHECK_INT(err.offset, whole - 1); /* where the last one opens */
    }
    /* Far deeper than the stack: refused at the limit all the same. */
    static uint8_t deep[1 << 20];
    memset(deep, 0x81, sizeof deep);
    CHECK_INT(cx_cbor_check(cx_bytes_from(deep, sizeof deep), NULL).code, CX_E_FORMAT);
}

/* All 65,536 half floats: each is read and written as the same half; of NaN there is one. */
CX_TEST(cbor_read_all_half_floats)
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

/* Random bytes after the heads of floats: accepted ones are what the writer writes. */
CX_TEST(cbor_read_random_float_bytes)
{
    uint64_t random = cx_test_seed();
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = cx_test_random(&random);
        size_t width = i % 2 == 0 ? 4 : 8;
        uint8_t bytes[9] = {width == 4 ? 0xfa : 0xfb};
        cx_cbor_reader reader;
        if (i % 4 >= 2) /* often something shorter */
            bits &= width == 4 ? 0xffffe000u : 0xffffffffe0000000u;
        for (size_t k = 0; k < width; k++)
            bytes[1 + k] = (uint8_t)(bits >> (8 * (width - 1 - k)));
        cx_cbor_begin(&reader, cx_bytes_from(bytes, 1 + width), "float");
        double value = cx_cbor_read_f64(&reader);
        bool accepted = !cx_failed(cx_cbor_end(&reader, NULL));
        if (!accepted) { /* the value, taken from the bits here, has another spelling */
            uint32_t low = (uint32_t)bits;
            float single;
            memcpy(&single, &low, sizeof single);
            memcpy(&value, &bits, sizeof value);
            value = width == 4 ? (double)single : value;
        }
        cx_buf_clear(&out);
        cx_cbor_f64(&out, value);
        CHECK(accepted == (out.size == 1 + width && memcmp(out.data, bytes, 1 + width) == 0));
    }
    cx_buf_done(&out);
}

typedef struct vector_file {
    cx_buf text;
    cx_arena arena;
    cx_json root;
} vector_file;

static void vector_file_open(vector_file *file, const char *name)
{
    cx_err err = {0};
    cx_buf_init(&file->text, cx_alloc_default());
    cx_arena_init(&file->arena, cx_alloc_default(), 0);
    file->root = (cx_json){.type = CX_JSON_NULL};
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path(name), 1 << 20, &file->text, &err),
                 &err);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&file->text), &file->arena, &file->root, &err),
                 &err);
}

static void vector_file_close(vector_file *file)
{
    cx_arena_done(&file->arena);
    cx_buf_done(&file->text);
}

/* The hex of an item, or of its member "cbor". */
static const char *hex_of(vector_file *file, const cx_json *item)
{
    if (item->type == CX_JSON_OBJECT)
        item = CX_JSON_GET(item, "cbor");
    return cx_arena_copy_str(&file->arena, cx_json_text(item)).data;
}

CX_TEST(cbor_read_vectors)
{
    vector_file file;
    vector_file_open(&file, "vectors/ledger/cbor_strict.json");
    const cx_json *accept = cx_json_get_typed(&file.root, CX_STR("accept"), CX_JSON_ARRAY);
    const cx_json *reject = cx_json_get_typed(&file.root, CX_STR("reject"), CX_JSON_ARRAY);
    cx_err err = {0};
    CHECK(accept != NULL && accept->count > 20 && reject != NULL && reject->count > 20);
    for (uint32_t i = 0; accept != NULL && i < accept->count; i++)
        CHECK_STATUS(check_hex(hex_of(&file, &accept->items[i]), &err), &err);
    for (uint32_t i = 0; reject != NULL && i < reject->count; i++) {
        const char *hex = hex_of(&file, &reject->items[i]);
        if (check_hex(hex, &err).code != CX_E_FORMAT)
            cx_test_fail(__FILE__, __LINE__, "%s is accepted", hex);
    }
    vector_file_close(&file);
}

/* What the original wrote is read, but for a text that is none. */
CX_TEST(cbor_read_primitives_of_the_vectors)
{
    vector_file file;
    vector_file_open(&file, "vectors/ledger/matrix-1/codec.json");
    const cx_json *list = cx_json_get_typed(&file.root, CX_STR("cbor_primitives"), CX_JSON_ARRAY);
    CHECK(list != NULL && list->count >= 28);
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        bool sound = !cx_str_is(CX_JSON_GET_STR(&list->items[i], "value"), "invalid utf8 text");
        cx_err err = {0};
        cx_status status = check_hex(hex_of(&file, &list->items[i]), &err);
        if (cx_failed(status) == sound)
            cx_test_fail(__FILE__, __LINE__, "%s: %s", hex_of(&file, &list->items[i]),
                         sound ? err.message : "accepted");
    }
    vector_file_close(&file);
}

/* --- one typed read -------------------------------------------------------------------------- */

typedef enum want {
    WANT_UINT,
    WANT_UINT_9, /* at most 9 */
    WANT_INT,
    WANT_BYTES,
    WANT_DIGEST,
    WANT_TEXT,
    WANT_BOOL,
    WANT_F32,
    WANT_F64,
    WANT_ARRAY, /* at most 2 items, which are taken */
    WANT_MAP,   /* at most 1 pair */
    WANT_TAG,   /* and the item after it */
    WANT_ANY
} want;

static void read_want(cx_cbor_reader *r, want kind)
{
    size_t count = 0;
    switch (kind) {
    case WANT_UINT: (void)cx_cbor_read_uint(r); break;
    case WANT_UINT_9: (void)cx_cbor_read_uint_max(r, 9); break;
    case WANT_INT: (void)cx_cbor_read_int(r); break;
    case WANT_BYTES: (void)cx_cbor_read_bytes(r); break;
    case WANT_DIGEST: (void)cx_cbor_read_digest(r); break;
    case WANT_TEXT: (void)cx_cbor_read_text(r); break;
    case WANT_BOOL: (void)cx_cbor_read_bool(r); break;
    case WANT_F32: (void)cx_cbor_read_f32(r); break;
    case WANT_F64: (void)cx_cbor_read_f64(r); break;
    case WANT_ARRAY: count = cx_cbor_read_array(r, 2); break;
    case WANT_MAP: count = 2 * cx_cbor_read_map(r, 1); break;
    case WANT_TAG:
        (void)cx_cbor_read_tag(r);
        count = 1;
        break;
    case WANT_ANY: count = 1; break;
    }
    for (size_t i = 0; i < count; i++)
        (void)cx_cbor_read_any(r);
}

static cx_status read_hex(want kind, const char *hex, cx_err *err)
{
    hex_item item = hex_item_of(hex);
    cx_cbor_reader reader;
    cx_cbor_begin(&reader, hex_item_bytes(&item), "thing");
    read_want(&reader, kind);
    return cx_cbor_end(&reader, err);
}

CX_TEST(cbor_read_takes_the_type_asked_for_only)
{
    static const struct {
        want kind;
        const char *good;
        const char *bad[6];
    } cases[] = {
        {WANT_UINT, "1818", {"20", "40", "60", "f90000", "f6", ""}},
        {WANT_UINT_9, "09", {"0a", "1818", "29", "4109", "f94880"}},
        {WANT_INT, "3b7fffffffffffffff", {"3b8000000000000000", "1b8000000000000000", "f93c00"}},
        {WANT_INT, "1b7fffffffffffffff", {"1bffffffffffffffff", "3bffffffffffffffff", "f4"}},
        {WANT_BYTES, "4101", {"6161", "8101", "f6", "5f4101ff", "01"}},
        {WANT_DIGEST,
         "5820abababababababababababababababababababababababababababababababab",
         {"581fababababababababababababababababababababababababababababababab",
          "5821ababababababababababababababababababababababababababababababababab",
          "7820616161616161616161616161616161616161616161616161616161616161616161", "40"}},
        {WANT_TEXT, "6161", {"4161", "61ff", "f6", "8161", "01"}},
        {WANT_BOOL, "f4", {"f6", "f7", "00", "f814", "f90000", "40"}},
        {WANT_BOOL, "f5", {"01", "f815", "e1", "f6"}},
        {WANT_F32, "fa3dcccccd", {"fb3ff199999999999a", "01", "20", "f6", "f5", "fa3f800000"}},
        {WANT_F32, "f97e00", {"f97e01", "fa7fc00000", "fb7ff8000000000000"}},
        {WANT_F64, "fb3ff199999999999a", {"00", "f4", "fa3f800000", "f818", "61f9"}},
        {WANT_ARRAY, "820000", {"83000000", "a10000", "a0", "f6", "4100", "9f00ff"}},
        {WANT_MAP, "a10000", {"a200000100", "820000", "80", "f6", "bf0000ff"}},
        {WANT_TAG, "d200", {"00", "d81200", "a100", "d2"}},
        {WANT_ANY, "a10080", {"d200", "f7", "a1", "a10080ff"}},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_err err = {0};
        CHECK_STATUS(read_hex(cases[i].kind, cases[i].good, &err), &err);
        for (size_t k = 0; k < CX_COUNT_OF(cases[i].bad) && cases[i].bad[k] != NULL; k++)
            if (read_hex(cases[i].kind, cases[i].bad[k], &err).code != CX_E_FORMAT)
                cx_test_fail(__FILE__, __LINE__, "case %zu: %s is accepted", i, cases[i].bad[k]);
    }
}

CX_TEST(cbor_read_gives_the_values)
{
    hex_item item = hex_item_of("8a1903e83903e743010203626869f5f4f6f93e00fb3ff199999999999ad20a");
    cx_cbor_reader r;
    cx_err err = {0};
    cx_cbor_begin(&r, hex_item_bytes(&item), "list");
    CHECK_INT(cx_cbor_peek(&r), CX_CBOR_ARRAY);
    CHECK_INT(cx_cbor_read_array(&r, 10), 10);
    CHECK_INT(cx_cbor_read_uint(&r), 1000);
    CHECK_INT(cx_cbor_read_int(&r), -1000);
    CHECK(!cx_cbor_skip_null(&r));
    CHECK_STR(cx_bytes_str(cx_cbor_read_bytes(&r)), "\1\2\3");
    CHECK_STR(cx_cbor_read_text(&r), "hi");
    CHECK(cx_cbor_read_bool(&r));
    CHECK(!cx_cbor_read_bool(&r));
    CHECK_INT(cx_cbor_peek(&r), CX_CBOR_SIMPLE);
    CHECK(cx_cbor_skip_null(&r));
    CHECK(cx_cbor_read_f32(&r) == 1.5f);
    CHECK(cx_cbor_read_f64(&r) == 1.1);
    CHECK_INT(cx_cbor_read_tag(&r), 18);
    CHECK_INT(cx_cbor_read_uint(&r), 10);
    CHECK_INT(cx_cbor_peek(&r), CX_CBOR_NONE);
    CHECK_STATUS(cx_cbor_end(&r, &err), &err);
}

/* After a failure every read gives nothing, and the first failure is the one that is told. */
CX_TEST(cbor_read_keeps_the_first_failure)
{
    hex_item item = hex_item_of("8300410161ff");
    cx_cbor_reader r;
    cx_err err = {0};
    cx_cbor_begin(&r, hex_item_bytes(&item), "list");
    CHECK_INT(cx_cbor_read_array(&r, 3), 3);
    CHECK(cx_cbor_ok(&r));
    CHECK_STR(cx_cbor_read_text(&r), ""); /* an integer is there */
    CHECK(!cx_cbor_ok(&r));
    for (want kind = WANT_UINT; kind <= WANT_ANY; kind++)
        read_want(&r, kind);
    CHECK_INT(cx_cbor_peek(&r), CX_CBOR_NONE);
    CHECK(!cx_cbor_skip_null(&r));
    CHECK_INT(cx_cbor_read_any(&r).size, 0);
    cx_cbor_reject(&r, 99, "a later failure");
    CHECK_INT(cx_cbor_end(&r, &err).code, CX_E_FORMAT);
    CHECK_INT(err.offset, 1);
    CHECK(strstr(err.message, "list") != NULL && strstr(err.message, "at byte 1") != NULL);
}

CX_TEST(cbor_read_any_returns_the_item)
{
    hex_item item = hex_item_of("82a10182020361ff");
    cx_cbor_reader r;
    cx_cbor_begin(&r, hex_item_bytes(&item), "list");
    CHECK_INT(cx_cbor_read_array(&r, 2), 2);
    cx_bytes taken = cx_cbor_read_any(&r);
    CHECK(taken.data == item.bytes + 1 && taken.size == 5);
    CHECK_INT(cx_cbor_read_any(&r).size, 0);
    CHECK(!cx_cbor_ok(&r));
}

/* --- maps with small keys -------------------------------------------------------------------- */

static cx_status read_pair(const char *hex, uint64_t *out_a, uint64_t *out_b, cx_err *err)
{
    hex_item item = hex_item_of(hex);
    cx_cbor_reader reader;
    cx_cbor_begin(&reader, hex_item_bytes(&item), "pair");
    cx_cbor_members members = cx_cbor_read_members(&reader);
    while (cx_cbor_next_member(&reader, &members))
        switch (members.key) {
        case 1: *out_a = cx_cbor_read_uint_max(&reader, 9); break;
        case 2:
            *out_b = cx_cbor_read_uint(&reader);
            if (*out_b == 0)
                cx_cbor_reject_empty(&reader, &members);
            break;
        default: cx_cbor_reject_member(&reader, &members);
        }
    cx_cbor_require(&reader, &members, 1u << 1);
    return cx_cbor_end(&reader, err);
}

CX_TEST(cbor_members)
{
    static const struct {
        const char *hex;
        uint64_t offset;
        const char *says;
    } refused[] = {
        {"a10207", 0, "required field 1 is missing"},
        {"a0", 0, "required field 1 is missing"},
        {"a202070105", 3, "field 1 out of order or twice"},
        {"a201050105", 3, "field 1 out of order or twice"},
        {"a201050300", 3, "unknown field 3"},
        {"a2010518c800", 3, "unknown field 200"},
        {"a20105183f00", 3, "unknown field 63"},
        {"a20105184000", 3, "unknown field 64"},
        {"a201051bffffffffffffffff00", 3, "unknown field 18446744073709551615"},
        {"a201050200", 3, "field 2 is empty"},
        {"a1010a", 2, "10 is more than the allowed 9"},
        {"a1014105", 2, "a byte string where an unsigned integer"},
        {"a1180105", 1, "longer than it needs to be"},
        {"a1200105", 1, "a negative integer where an unsigned integer"},
        {"a10105ff", 3, "1 bytes after the end"},
        {"8105", 0, "an array where a map"},
        {"", 0, "end"},
        {"a2010502", 0, "more items"},
    };
    uint64_t a = 0, b = 0;
    cx_err err = {0};
    CHECK_STATUS(read_pair("a201050207", &a, &b, &err), &err);
    CHECK(a == 5 && b == 7);
    CHECK_STATUS(read_pair("a10105", &a, &b, &err), &err);
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++) {
        CHECK_INT(read_pair(refused[i].hex, &a, &b, &err).code, CX_E_FORMAT);
        CHECK_INT(err.offset, refused[i].offset);
        if (strstr(err.message, refused[i].says) == NULL)
            cx_test_fail(__FILE__, __LINE__, "%s says '%s', expected '%s'", refused[i].hex,
                         err.message, refused[i].says);
    }
}

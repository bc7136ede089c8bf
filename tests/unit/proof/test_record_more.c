/*
 * test_record_more.c - Vector, checkpoint record, salience and weights: the vectors from their
 * fields and back, what each shape requires.
 */
#include "tests/support/record_kit.h"

static const kit_format vector_format = {"Vector", again_vector, CX_ENTRY_RAW};
static const kit_format checkpoint_format = {"checkpoint record", again_checkpoint_record,
                                             CX_ENTRY_RAW};
static const kit_format salience_format = {"salience", again_salience, CX_ENTRY_RAW};
static const kit_format weights_format = {"weights", again_weights, CX_ENTRY_RAW};

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* --- vectors --------------------------------------------------------------------------------- */

static void take_floats(cx_bytes big_endian, float *out)
{
    for (size_t i = 0; i < big_endian.size / 4; i++) {
        const uint8_t *b = big_endian.data + 4 * i;
        uint32_t bits =
            (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
        out[i] = float_of(bits);
    }
}

CX_TEST(vector_of_the_vectors_from_its_fields_and_back)
{
    tree_file file;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        const cx_json *item = CX_JSON_GET(&file.root, "vector");
        cx_bytes floats = kit_member(item, "vec8_f32be", &file.arena);
        cx_bytes bytes = kit_member(item, "meta_cbor", &file.arena);
        float values[8];
        REQUIRE(floats.size == 32);
        take_floats(floats, values);
        const cx_vector vector = {.vertex = 1,
                                  .model = cx_json_get_str(item, CX_STR("model_8")),
                                  .dim = 8,
                                  .values = values,
                                  .source_version = 1,
                                  .embedded_at = 1700000000,
                                  .hash = cx_vector_hash(values, 8)};
        CHECK_DIGEST(vector.hash, tree_digest(item, "vec8_hash"));
        cx_vector_encode(&vector, &out);
        CHECK_SAME(&out, bytes);
        kit_check_whole(&vector_format, bytes);
        kit_check_map(&vector_format, bytes, KIT_TOP, KEYS_UP_TO(7) & ~KEY(0), 0, 0);
    }
    tree_file_close(&file);
    cx_buf_done(&out);
}

/* Field 3 says how many components field 4 has. */
CX_TEST(vector_dim_is_the_count_of_values)
{
    static const float values[3] = {1, 2, 3};
    for (uint64_t dim = 0; dim <= 3; dim++) {
        const cx_vector vector = {.model = CX_STR("m"), .dim = dim, .values = values};
        cx_buf out;
        cx_buf_init(&out, cx_alloc_default());
        cx_vector_encode(&vector, &out);
        CHECK(kit_accepts(&vector_format, cx_buf_bytes(&out)));
        CHECK_INT(out.data[7], dim); /* a7 01 00 02 61 6d 03 dim */
        out.data[7] = (uint8_t)(dim + 1);
        CHECK(!kit_accepts(&vector_format, cx_buf_bytes(&out)));
        cx_buf_done(&out);
    }
}

CX_TEST(vector_time_may_be_absent)
{
    cx_vector vector = {.model = CX_STR("m"), .embedded_at_null = true};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_vector_encode(&vector, &out);
    CHECK(kit_accepts(&vector_format, cx_buf_bytes(&out)));
    cx_buf_done(&out);
}

/* --- checkpoint records ---------------------------------------------------------------------- */

CX_TEST(checkpoint_records_of_the_vectors_from_their_fields_and_back)
{
    static const cx_str kept[] = {
        {"matrix://cortex/Fact/01HF7YAT00000000000000000A#1", 49},
    };
    cx_compacted items[] = {
        {CX_STR("matrix://cortex/Fact/01HF7YAT00000000000000000B#2"), CX_STR("s"), 0.0f}};
    tree_file file;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        const cx_json *list = tree_list(&file, "/checkpoint");
        cx_bytes bytes = kit_member(&list->items[0], "cbor", &file.arena);
        items[0].salience = float_of(0x3e8e5604);
        const cx_checkpoint_record record = {.intent = CX_STR("intent_a"),
                                             .step = CX_STR("step_1"),
                                             .created_ns = 1700000000123456789,
                                             .budget = 4000,
                                             .kept = kept,
                                             .kept_count = 1,
                                             .compacted = items,
                                             .compacted_count = 1};
        cx_checkpoint_record_encode(&record, &out);
        CHECK_SAME(&out, bytes);
        CHECK_DIGEST(cx_digest_of(bytes), tree_digest(&list->items[0], "sha256"));
        kit_check_whole(&checkpoint_format, bytes);
        kit_check_map(&checkpoint_format, bytes, KIT_TOP, KEYS_UP_TO(6), 0, 0);
        kit_check_map(&checkpoint_format, bytes, KIT_PATH(6, 0), KEYS_UP_TO(2), 0, 0);
        const cx_checkpoint_record empty = {.kept_null = true, .compacted_null = true};
        cx_buf_clear(&out);
        cx_checkpoint_record_encode(&empty, &out);
        bytes = kit_member(kit_case(list, "nil slices -> null"), "cbor", &file.arena);
        CHECK_SAME(&out, bytes);
        kit_check_whole(&checkpoint_format, bytes);
    }
    tree_file_close(&file);
    cx_buf_done(&out);
}

/* Lists that are absent and lists that are empty are different values (§2). */
CX_TEST(checkpoint_record_null_is_not_empty)
{
    cx_checkpoint_record record = {.intent = CX_STR("i")}, back;
    cx_arena arena;
    cx_buf out;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    for (unsigned which = 0; which < 4; which++) {
        record.kept_null = (which & 1) != 0;
        record.compacted_null = (which & 2) != 0;
        cx_buf_clear(&out);
        cx_checkpoint_record_encode(&record, &out);
        CHECK_INT(out.data[out.size - 3], record.kept_null ? 0xf6 : 0x80);
        CHECK_INT(out.data[out.size - 1], record.compacted_null ? 0xf6 : 0x80);
        CHECK_STATUS(cx_checkpoint_record_decode(cx_buf_bytes(&out), &arena, &back, &err), &err);
        CHECK(back.kept_null == record.kept_null && back.compacted_null == record.compacted_null);
        CHECK(kit_accepts(&checkpoint_format, cx_buf_bytes(&out)));
    }
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

/* --- salience and weights -------------------------------------------------------------------- */

CX_TEST(salience_of_the_vectors_from_its_fields_and_back)
{
    const int64_t t = 1700000000123456789, hour = INT64_C(3600000000000);
    const cx_salience rows[] = {
        {t, 0, 0, 5, false, float_of(0x3ec71c71), t},
        {t + hour, 1, 0, 5, false, float_of(0x3ecfac29), t + hour},
        {t + 2 * hour, 2, 1, 5, false, float_of(0x3ee5cdaa), t + 2 * hour},
        {t + 3 * hour, 2, 0, 5, false, float_of(0x3ed4ae3b), t + 3 * hour},
        {t + 4 * hour, 2, 0, 9, false, float_of(0x3f011889), t + 4 * hour},
        {t + 4 * hour, 2, 0, 9, false, 0.0f, t + 5 * hour},
    };
    tree_file file;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        const cx_json *list = tree_list(&file, "/salience/scores");
        CHECK_INT(list->count, CX_COUNT_OF(rows));
        for (uint32_t i = 0; i < list->count && i < CX_COUNT_OF(rows); i++) {
            cx_bytes bytes = kit_member(&list->items[i], "cbor", &file.arena);
            cx_buf_clear(&out);
            cx_salience_encode(&rows[i], &out);
            CHECK_SAME(&out, bytes);
            kit_check_whole(&salience_format, bytes);
        }
    }
    tree_file_close(&file);
    cx_buf_done(&out);
}

CX_TEST(salience_fields_left_out_doubled_moved_emptied)
{
    cx_salience salience = {-5, 1, 2, 3, true, 0.5f, -6};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_salience_encode(&salience, &out);
    kit_check_map(&salience_format, cx_buf_bytes(&out), KIT_TOP, KEY(0) | KEY(1) | KEY(6) | KEY(7),
                  KEY(2) | KEY(3) | KEY(4) | KEY(5), 0);
    for (unsigned importance = 0; importance <= 255; importance++) {
        salience.importance = (uint8_t)importance;
        cx_buf_clear(&out);
        cx_salience_encode(&salience, &out);
        CHECK(kit_accepts(&salience_format, cx_buf_bytes(&out)) == (importance <= 10));
    }
    cx_buf_done(&out);
}

CX_TEST(weights_of_the_vectors_from_their_fields_and_back)
{
    const cx_weights_record rows[] = {
        {{.25f, .15f, .3f, .2f, .1f}, 0, 0},
        {{float_of(0x3e855c41), float_of(0x3e15215a), float_of(0x3e9131ac), float_of(0x3e57decc),
          float_of(0x3dcbc7f4)},
         0x1797b0a361d98d15,
         1},
        {{float_of(0x3e8a6d8a), float_of(0x3e10e8e0), float_of(0x3e894062), float_of(0x3e62586c),
          float_of(0x3dcac5b3)},
         0x1797b3e992922d15,
         2},
        {{float_of(0x3e8596df), float_of(0x3e14ef4b), float_of(0x3e90d4c1), float_of(0x3e58557b),
          float_of(0x3dcbc7f5)},
         0x1797b72fc34acd15,
         3},
    };
    tree_file file;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        const cx_json *list = tree_list(&file, "/salience/weights");
        CHECK_INT(list->count, CX_COUNT_OF(rows));
        for (uint32_t i = 0; i < list->count && i < CX_COUNT_OF(rows); i++) {
            cx_bytes bytes = kit_member(&list->items[i], "cbor", &file.arena);
            cx_buf_clear(&out);
            cx_weights_encode(&rows[i], &out);
            CHECK_SAME(&out, bytes);
            kit_check_whole(&weights_format, bytes);
        }
        cx_buf_clear(&out);
        cx_weights_encode(&rows[1], &out);
        kit_check_map(&weights_format, cx_buf_bytes(&out), KIT_TOP, KEYS_UP_TO(5), KEY(6) | KEY(7),
                      0);
    }
    tree_file_close(&file);
    cx_buf_done(&out);
}

/* --- what a failure leaves ------------------------------------------------------------------- */

CX_TEST(lists_of_records_without_memory)
{
    static const cx_str kept[] = {{"u", 1}};
    static const float values[2] = {1, 2};
    const cx_vector vector = {.model = CX_STR("m"), .dim = 2, .values = values};
    const cx_checkpoint_record record = {.kept = kept, .kept_count = 1, .compacted_null = true};
    cx_vector vector_back = {.dim = 99};
    cx_checkpoint_record record_back = {.budget = 99};
    cx_arena arena;
    cx_buf out;
    cx_err err = {0};
    cx_arena_init(&arena, &kit_no_alloc, 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_vector_encode(&vector, &out);
    CHECK_INT(cx_vector_decode(cx_buf_bytes(&out), &arena, &vector_back, &err).code, CX_E_NOMEM);
    CHECK_INT(vector_back.dim, 99);
    cx_buf_clear(&out);
    cx_checkpoint_record_encode(&record, &out);
    CHECK_INT(cx_checkpoint_record_decode(cx_buf_bytes(&out), &arena, &record_back, &err).code,
              CX_E_NOMEM);
    CHECK_INT(record_back.budget, 99);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

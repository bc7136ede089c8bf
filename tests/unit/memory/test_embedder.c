/*
 * test_embedder.c - the test embedder's vectors, bit for bit.
 */
#include "memory/embedder.h"

#include <math.h>

#include "cbor/cbor.h"
#include "memory/forms.h"
#include "tests/unit/memory/fixture.h"

CX_TEST(embedder_vectors)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/codec.json", &file)) {
        const cx_json *vector = CX_JSON_GET(&file, "vector");
        cx_str text = CX_JSON_GET_STR(vector, "text");
        float values[768];
        uint8_t bytes[32];
        char model[CX_EMBEDDER_MODEL_SIZE];
        REQUIRE(text.size != 0);
        cx_embedder_vector(text, CX_STR(""), values, 8);
        for (size_t i = 0; i < 8; i++) {
            uint32_t bits;
            memcpy(&bits, &values[i], sizeof bits);
            for (size_t k = 0; k < 4; k++)
                bytes[4 * i + k] = (uint8_t)(bits >> (24 - 8 * k));
        }
        CHECK(fixture_same(cx_bytes_from(bytes, 32), fixture_hex_of(&kit, vector, "vec8_f32be")));
        cx_digest hash = cx_vector_hash(values, 8);
        CHECK(
            fixture_same(cx_bytes_from(hash.bytes, 32), fixture_hex_of(&kit, vector, "vec8_hash")));
        cx_embedder_vector(text, CX_STR(""), values, 768);
        hash = cx_vector_hash(values, 768);
        CHECK(fixture_same(cx_bytes_from(hash.bytes, 32),
                           fixture_hex_of(&kit, vector, "vec768_hash")));
        cx_embedder_model(8, CX_STR(""), model);
        CHECK(cx_str_eq(cx_str_from(model, sizeof model), CX_JSON_GET_STR(vector, "model_8")));
        cx_embedder_model(768, CX_STR(""), model);
        CHECK(cx_str_eq(cx_str_from(model, sizeof model), CX_JSON_GET_STR(vector, "model_768")));
    }
    fixture_done(&kit);
}

/* A row of the scenario's key dump, by key. */
static cx_bytes row_of(fixture *kit, const cx_json *rows, const char *prefix, const cx_id *id,
                       const char *suffix)
{
    char hex[32];
    cx_buf key;
    cx_bytes found = {NULL, 0};
    cx_buf_init(&key, cx_alloc_default());
    cx_hex_add(&key, cx_str_bytes(cx_str_z(prefix)));
    cx_hex_encode(cx_bytes_from(id->bytes, sizeof id->bytes), hex);
    cx_buf_add(&key, hex, sizeof hex);
    cx_buf_add_z(&key, suffix);
    for (uint32_t i = 0; i < rows->count; i++)
        if (cx_str_eq(CX_JSON_GET_STR(&rows->items[i], "k"), cx_buf_str(&key)))
            found = fixture_hex_of(kit, &rows->items[i], "v");
    cx_buf_done(&key);
    return found;
}

/* Every embedding of scenario_embed.json from the memory's own data: full form, vector, hash. */
CX_TEST(embedder_scenario)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, "vectors/ledger/matrix-1/scenario_embed.json", &file)) {
        const cx_json *journal = CX_JSON_GET(&file, "journal");
        const cx_json *rows = CX_JSON_GET(&file, "keyspace_excluding_smt");
        size_t checked = 0;
        REQUIRE(journal != NULL && rows != NULL);
        for (uint32_t i = 0; i < journal->count; i++) {
            cx_entry entry;
            cx_payload payload;
            cx_version_record version;
            cx_data data;
            float values[16];
            char suffix[40], model[CX_EMBEDDER_MODEL_SIZE];
            if (!cx_str_is(CX_JSON_GET_STR(&journal->items[i], "kind"), "embed"))
                continue;
            CHECK_STATUS(
                cx_entry_decode(fixture_hex_of(&kit, &journal->items[i], "cbor"), &entry, &kit.err),
                &kit.err);
            CHECK_STR(cx_bytes_str(entry.created_by), CX_EMBEDDER_BY);
            CHECK_STATUS(
                cx_payload_decode(CX_ENTRY_EMBED, entry.payload, &kit.arena, &payload, &kit.err),
                &kit.err);
            (void)snprintf(suffix, sizeof suffix, "2f762f%016llx",
                           (unsigned long long)payload.as.embed.source_version);
            cx_bytes row = row_of(&kit, rows, "mv/", &payload.as.embed.id, suffix);
            CHECK_STATUS(cx_version_decode(row, &kit.arena, &version, &kit.err), &kit.err);
            CHECK_STATUS(
                cx_data_decode(version.type, version.data.bytes, &kit.arena, &data, &kit.err),
                &kit.err);
            cx_buf_clear(&kit.buf);
            cx_forms_full(&data, &kit.buf);
            REQUIRE(payload.as.embed.dim == 16);
            cx_embedder_vector(cx_buf_str(&kit.buf), CX_STR(""), values, 16);
            cx_digest hash = cx_vector_hash(values, 16);
            CHECK(cx_digest_eq(&hash, &payload.as.embed.vector_hash));
            cx_embedder_model(16, CX_STR(""), model);
            CHECK(cx_str_eq(cx_str_from(model, sizeof model), payload.as.embed.model));
            checked++;
        }
        CHECK_INT(checked, 4);
    }
    fixture_done(&kit);
}

CX_TEST(embedder_properties)
{
    float a[100], b[100];
    double squares = 0;
    cx_embedder_vector(CX_STR("hello"), CX_STR("pepper"), a, 100);
    for (size_t i = 0; i < 100; i++)
        squares += (double)a[i] * (double)a[i];
    CHECK(fabs(squares - 1.0) < 1e-5);
    cx_embedder_vector(CX_STR("hello"), CX_STR(""), b, 100);
    CHECK(memcmp(a, b, sizeof a) != 0);
    /* A dimension that ends inside a block; none writes nothing. */
    b[3] = 42.0f;
    cx_embedder_vector(CX_STR("hello"), CX_STR(""), b, 3);
    CHECK(b[3] == 42.0f);
    cx_embedder_vector(CX_STR("hello"), CX_STR(""), b + 3, 0);
    CHECK(b[3] == 42.0f);
}

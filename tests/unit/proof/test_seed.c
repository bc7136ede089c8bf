/*
 * test_seed.c - the D11 compiler seed: vectors of both schemes, and what cannot be told apart is
 * refused.
 */
#include "proof/seed.h"

#include "tests/unit/memory/fixture.h"

static void check_vectors(const char *name, cx_scheme scheme, const char *root_name)
{
    fixture kit;
    cx_json file;
    fixture_init(&kit);
    if (fixture_load(&kit, name, &file)) {
        const cx_json *cases = CX_JSON_GET(&file, "cases");
        REQUIRE(cases != NULL && cases->count == 2);
        for (uint32_t i = 0; i < cases->count; i++) {
            const cx_json *item = &cases->items[i];
            char seed[CX_SEED_SIZE];
            cx_digest root;
            cx_seed_input input = {.intent_id = CX_JSON_GET_STR(item, "intent_id"),
                                   .actor = CX_JSON_GET_STR(item, "actor"),
                                   .overall_root = &root,
                                   .mtx_digest = CX_JSON_GET_STR(item, "mtx_digest"),
                                   .model_id = CX_JSON_GET_STR(item, "model_id")};
            static const cx_digest zeros = {{0}};
            REQUIRE(cx_digest_parse(cx_json_get_str(item, cx_str_z(root_name)), &root));
            if (cx_digest_eq(&root, &zeros))
                input.overall_root = NULL;
            CHECK_STATUS(cx_seed_make(scheme, &input, seed, &kit.err), &kit.err);
            CHECK(cx_str_eq(cx_str_from(seed, sizeof seed), CX_JSON_GET_STR(item, "seed")));
            input.overall_root = &root;
            CHECK_STATUS(cx_seed_make(scheme, &input, seed, &kit.err), &kit.err);
            CHECK(cx_str_eq(cx_str_from(seed, sizeof seed), CX_JSON_GET_STR(item, "seed")));
        }
    }
    fixture_done(&kit);
}

CX_TEST(seed_vectors)
{
    check_vectors("vectors/ledger/cortex-1/d11_seed.json", CX_SCHEME_CORTEX_1, "overall_root");
    check_vectors("vectors/ledger/matrix-1/d11_seed.json", CX_SCHEME_MATRIX_1, "snapshot_hex");
}

CX_TEST(seed_needs_parts_of_fixed_length)
{
    static const char *const ids[] = {"",
                                      "intent",
                                      "01HF7YAT00000000000000000",
                                      "01HF7YAT00000000000000000A0",
                                      "01hf7yat00000000000000000a",
                                      "81HF7YAT00000000000000000A"};
    char digest[65] = "abababababababababababababababababababababababababababababababab",
         seed[CX_SEED_SIZE] = "untouched";
    cx_seed_input input = {.actor = CX_STR("andrew"), .mtx_digest = cx_str_from(digest, 64)};
    cx_err err;
    for (size_t i = 0; i < CX_COUNT_OF(ids); i++) {
        input.intent_id = cx_str_z(ids[i]);
        CHECK_INT(cx_seed_make(CX_SCHEME_CORTEX_1, &input, seed, &err).code, CX_E_USAGE);
        CHECK_STR(fixture_tag(&err), "InvalidArgument");
        CHECK_STATUS(cx_seed_make(CX_SCHEME_MATRIX_1, &input, seed, &err), &err);
    }
    input.intent_id = CX_STR("01HF7YAT00000000000000000A");
    CHECK_STATUS(cx_seed_make(CX_SCHEME_CORTEX_1, &input, seed, &err), &err);
    input.mtx_digest.size = 62;
    CHECK_INT(cx_seed_make(CX_SCHEME_CORTEX_1, &input, seed, &err).code, CX_E_USAGE);
    input.mtx_digest.size = 64;
    digest[0] = 'A';
    CHECK_INT(cx_seed_make(CX_SCHEME_CORTEX_1, &input, seed, &err).code, CX_E_USAGE);
}

/*
 * test_ml_dsa.c - what is said without a library, and that sizes are checked before one is asked.
 * tests/cli/test_ml_dsa.py has the rest: it needs libraries that are loaded by another process.
 */
#include "crypto/ml_dsa.h"

#include "tests/test.h"

CX_TEST(ml_dsa_without_a_right_signature)
{
    static const uint8_t key[CX_ML_DSA_65_KEY_SIZE + 1], signature[CX_ML_DSA_65_SIGNATURE_SIZE + 1];
    const cx_ml_dsa expected =
        cx_ml_dsa_library() == NULL ? CX_ML_DSA_NOT_CHECKED : CX_ML_DSA_BROKEN;
    const cx_bytes message = cx_str_bytes(CX_STR("message"));
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            CHECK_INT(
                cx_ml_dsa_65_verify(cx_bytes_from(key, CX_ML_DSA_65_KEY_SIZE - 1 + i), message,
                                    cx_bytes_from(signature, CX_ML_DSA_65_SIGNATURE_SIZE - 1 + j)),
                expected);
    CHECK_INT(cx_ml_dsa_65_verify((cx_bytes){NULL, 0}, message, (cx_bytes){NULL, 0}), expected);
}

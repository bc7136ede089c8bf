/*
 * test_chain.c - the hash chain of a part, against values that Python's hashlib gave.
 */
#include "fleet/internal.h"
#include "tests/test.h"

static bool digest_is(const cx_digest *digest, const char *hex)
{
    cx_digest expected;
    return cx_digest_parse(cx_str_z(hex), &expected) && cx_digest_eq(digest, &expected);
}

CX_TEST(chain_has_the_values_of_its_rule)
{
    static const uint8_t id[16] = "0123456789abcdef", nonce[16] = "nonce-nonce-1234";
    cx_sha256 hash;
    cx_digest first = cx_fleet_first_head(id, 43);
    CHECK(digest_is(&first, "32a70cda399755b0469d6fb5842f37301c08808b04ffa7093264bd96fbbc5151"));
    cx_fleet_digest_begin(&hash, nonce);
    cx_fleet_digest_add(&hash, 7, 2, 40, cx_str_bytes(CX_STR("bytes")));
    cx_fleet_digest_add(&hash, 9, 0, 0, cx_str_bytes(CX_STR("x")));
    cx_digest digest = cx_sha256_end(&hash);
    CHECK(digest_is(&digest, "873c15b096e8ca7af2963cc90ed14008059e1560eb1057012370b7667961aeec"));
    cx_digest next = cx_fleet_next_head(&first, 43, 3, 258, &digest);
    CHECK(digest_is(&next, "c9f92acb2a39bc998b4154ca1a20d53020b9fc0c4e6db2e5fab2bb81f17e54ef"));
    cx_digest other = cx_fleet_next_head(&first, 43, 4, 258, &digest);
    CHECK(!cx_digest_eq(&next, &other));
}

CX_TEST(chain_makes_sql_for_a_dba)
{
    CHECK(strstr(cx_fleet_sql().data, "CREATE TABLE cortex_fleet.cx_extent") != NULL);
    CHECK(strstr(cx_fleet_roles_sql().data, "cortex_fleet_node") != NULL);
}

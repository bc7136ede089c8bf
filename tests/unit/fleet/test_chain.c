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

static cx_digest change_of(const uint8_t nonce[CX_FLEET_NONCE_SIZE], uint32_t start)
{
    cx_sha256 hash;
    cx_fleet_digest_begin(&hash, nonce);
    cx_fleet_digest_add(&hash, 7, 2, start, cx_str_bytes(CX_STR("bytes")));
    cx_fleet_digest_add(&hash, 7, 3, 0, cx_str_bytes(CX_STR("more")));
    return cx_sha256_end(&hash);
}

CX_TEST(chain_has_the_values_of_its_rule)
{
    static const uint8_t id[16] = "0123456789abcdef";
    uint8_t nonce[CX_FLEET_NONCE_SIZE];
    for (unsigned i = 0; i < sizeof nonce; i++)
        nonce[i] = (uint8_t)i;
    cx_digest first = cx_fleet_first_head(id, 43);
    CHECK(digest_is(&first, "32a70cda399755b0469d6fb5842f37301c08808b04ffa7093264bd96fbbc5151"));
    cx_digest change = change_of(nonce, 10);
    CHECK(digest_is(&change, "f9f2d0104d22a3197c9fb8cb04e25c93bbef54213cc2d2320a8de51d9763526a"));
    cx_digest next = cx_fleet_next_head(&first, 43, 3, 258, &change);
    CHECK(digest_is(&next, "77b536c6d0c497281625482ea1dcf942ed2fe558fbb589a7c856c674f740afb1"));
    cx_digest other = cx_fleet_next_head(&first, 43, 4, 258, &change);
    CHECK(!cx_digest_eq(&next, &other));
    other = change_of(nonce, 11);
    CHECK(!cx_digest_eq(&change, &other));
    nonce[15]++;
    other = change_of(nonce, 10);
    CHECK(!cx_digest_eq(&change, &other));
}

CX_TEST(chain_makes_sql_for_a_dba)
{
    cx_str sql;
    CHECK(cx_fleet_sql(1, &sql) && strstr(sql.data, "CREATE TABLE cortex_fleet.cx_extent") != NULL);
    CHECK(cx_fleet_sql(2, &sql) && strstr(sql.data, "quota_bytes") != NULL);
    CHECK(cx_fleet_sql(3, &sql) && strstr(sql.data, "cx_balance") != NULL);
    CHECK(cx_fleet_sql(4, &sql) && strstr(sql.data, "cx_node") != NULL);
    CHECK(cx_fleet_sql(5, &sql) && strstr(sql.data, "trail bytea") != NULL);
    CHECK(!cx_fleet_sql(0, &sql) && !cx_fleet_sql(6, &sql));
    CHECK(strstr(cx_fleet_roles_sql().data, "cortex_fleet_node") != NULL);
}

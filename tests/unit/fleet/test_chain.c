/*
 * test_chain.c - the part of an actor and the hash chain, against values that Python's hashlib
 * gave.
 */
#include "fleet/internal.h"
#include "tests/test.h"

static bool digest_is(const cx_digest *digest, const char *hex)
{
    cx_digest expected;
    return cx_digest_parse(cx_str_z(hex), &expected) && cx_digest_eq(digest, &expected);
}

CX_TEST(chain_knows_the_part_of_an_actor)
{
    CHECK(cx_fleet_part_of(CX_STR("alice")) == 0x2b);
    CHECK(cx_fleet_part_of(CX_STR("")) == 0xe3);
}

CX_TEST(chain_has_the_values_of_its_rule)
{
    static const uint8_t home_id[16] = "0123456789abcdef";
    cx_digest first = cx_fleet_first_head(home_id, 43);
    CHECK(digest_is(&first, "3232ceb09474e2186cafe57f76c84f69282ee22d614017eeca50680bbb290b49"));
    cx_digest next = cx_fleet_next_head(&first, 43, 3, 258, cx_str_bytes(CX_STR("bytes")));
    CHECK(digest_is(&next, "5bfd8e1dce56fd25bed5bb6e6b28e02f4568a15d9441d0e377df58b973a4ab07"));
    cx_digest other = cx_fleet_next_head(&first, 43, 4, 258, cx_str_bytes(CX_STR("bytes")));
    CHECK(!cx_digest_eq(&next, &other));
}

CX_TEST(chain_makes_sql_for_a_dba)
{
    CHECK(strstr(cx_fleet_sql().data, "CREATE TABLE cortex_fleet.cx_group") != NULL);
    CHECK(strstr(cx_fleet_roles_sql().data, "cortex_fleet_node") != NULL);
}

/*
 * The table of dotted entry kinds (kinds.h): K1, K2.
 */
#include "ledger/kinds.h"
#include "proof/api.h"
#include "tests/test.h"

CX_TEST(kinds_are_found_by_their_name_and_by_no_other)
{
    for (cx_dotted_kind kind = 0; kind < CX_KIND_COUNT; kind++) { /* K1 */
        cx_str name = cx_kinds_name(kind);
        CHECK(cx_kinds_of(name) == kind);
        for (cx_dotted_kind other = 0; other < CX_KIND_COUNT; other++)
            CHECK(cx_kinds_is(name, other) == (other == kind));
    }
    CHECK(cx_kinds_of(CX_STR("trace.recieved")) == CX_KIND_COUNT);
    CHECK(cx_kinds_of(CX_STR("")) == CX_KIND_COUNT);
}

CX_TEST(kinds_are_dotted_and_none_of_the_ledger_format)
{
    for (cx_dotted_kind kind = 0; kind < CX_KIND_COUNT; kind++) { /* K2 */
        cx_str name = cx_kinds_name(kind);
        CHECK(cx_entry_kind_ok(name));
        CHECK(memchr(name.data, '.', name.size) != NULL);
        CHECK(cx_entry_kind_of(name) == CX_ENTRY_OTHER);
    }
}

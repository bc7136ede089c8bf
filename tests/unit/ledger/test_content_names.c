/*
 * test_content_names.c - which content names a text (erasure.md §1), and which holds cover a
 * record (§2).
 */
#include "base/api.h"
#include "cbor/api.h"
#include "ledger/api.h"
#include "tests/test.h"

#define NAMES(content, text) cx_content_names(cx_str_bytes(CX_STR(content)), CX_STR(text))

CX_TEST(names_whole_words_of_text)
{
    CHECK(NAMES("ann@x.org", "ann@x.org"));
    CHECK(NAMES("<ann@x.org>, and more", "ann@x.org"));
    CHECK(NAMES("joann@x.org ann@x.org", "ann@x.org"));
    CHECK(!NAMES("joann@x.org", "ann@x.org"));
    CHECK(!NAMES("ann@x.orgs", "ann@x.org"));
    CHECK(!NAMES("x_ann@x.org", "ann@x.org"));
    CHECK(!NAMES("Ann@x.org", "ann@x.org"));
    CHECK(!NAMES("\xc3\xa9"
                 "ann@x.org",
                 "ann@x.org"));
    CHECK(NAMES("team@ann", "@ann"));
    CHECK(!NAMES("ann", "ann@x.org"));
    CHECK(!NAMES("", "ann"));
    CHECK(!cx_content_names(cx_str_bytes(CX_STR("ann")), CX_STR("")));
}

CX_TEST(resolves_json_escapes)
{
    CHECK(NAMES("{\"a\":\"ann\\u0040x.org\"}", "ann@x.org"));
    CHECK(NAMES("{\"a\":\"\\nann@x.org\\n\"}", "ann@x.org"));
    CHECK(NAMES("{\"a\":\"a\\/b\"}", "a/b"));
    CHECK(NAMES("{\"a\":\"\\ud83d\\ude00ann\"}", "\xf0\x9f\x98\x80"
                                                 "ann"));
    CHECK(NAMES("{\"a\":\"M\\u00fcller\"}", "M\xc3\xbcller"));
    CHECK(!NAMES("{\"a\":\"\\u0041nn\"}", "nn"));
    CHECK(!NAMES("\\", "ann"));
    CHECK(!NAMES("ann\\u00", "ann\\u004"));
}

CX_TEST(looks_into_cbor_and_other_bytes)
{
    /* {1: "ann", 2: h'a10163616e6e'}: a map in a byte string. */
    static const uint8_t plain[] = {0xa1, 0x01, 0x63, 'a', 'n', 'n'};
    static const uint8_t inner[] = {0xa1, 0x02, 0x46, 0xa1, 0x01, 0x63, 'a', 'n', 'n'};
    static const uint8_t part[] = {0xa1, 0x01, 0x67, 'c', 'h', 'a', 'n', 'n', 'e', 'l'};
    static const uint8_t cut[] = {0xa1, 0x01, 0x7a, 0xff, 0xff, 0xff, 0xff, 'a', 'n', 'n'};
    static const uint8_t protobuf[] = {0x0a, 'A', 'a', 'n', 'n', 0x00};
    CHECK(cx_content_names(cx_bytes_from(plain, sizeof plain), CX_STR("ann")));
    CHECK(cx_content_names(cx_bytes_from(inner, sizeof inner), CX_STR("ann")));
    CHECK(!cx_content_names(cx_bytes_from(part, sizeof part), CX_STR("ann")));
    CHECK(cx_content_names(cx_bytes_from(cut, sizeof cut), CX_STR("ann")));
    CHECK(cx_content_names(cx_bytes_from(protobuf, sizeof protobuf), CX_STR("ann")));
}

CX_TEST(all_conditions_of_a_hold_must_be_true)
{
    const cx_bytes content = cx_str_bytes(CX_STR("run-7 of ann"));
    const cx_hold_target target = {.actor = CX_STR("bot"),
                                   .first_ns = 10,
                                   .last_ns = 20,
                                   .contents = &content,
                                   .content_count = 1};
    cx_hold hold = {.seq = 3, .from_ns = INT64_MIN, .to_ns = INT64_MAX, .agent = CX_STR("bot")};
    const cx_holds holds = {&hold, 1};
    CHECK(cx_holds_find(&holds, &target) == &hold);
    hold.subject = CX_STR("ann");
    hold.run = CX_STR("run-7");
    CHECK(cx_holds_find(&holds, &target) == &hold);
    hold.run = CX_STR("run-8");
    CHECK(cx_holds_find(&holds, &target) == NULL);
    hold.run = (cx_str){NULL, 0};
    hold.from_ns = 20;
    CHECK(cx_holds_find(&holds, &target) == &hold);
    hold.from_ns = 21;
    CHECK(cx_holds_find(&holds, &target) == NULL);
    hold.from_ns = INT64_MIN;
    hold.to_ns = 10;
    CHECK(cx_holds_find(&holds, &target) == NULL);
    hold.to_ns = 11;
    CHECK(cx_holds_find(&holds, &target) == &hold);
    hold.agent = CX_STR("bots");
    CHECK(cx_holds_find(&holds, &target) == NULL);
    hold.unreadable = true;
    CHECK(cx_holds_find(&holds, &target) == &hold);
    hold.released = true;
    CHECK(cx_holds_find(&holds, &target) == NULL);
}

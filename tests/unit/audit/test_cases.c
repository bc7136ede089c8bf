/*
 * test_cases.c - workflow cases: keys, limits, order, damaged files, what is shown of them.
 */
#include "audit/cases.h"

#include <stdio.h>

#include "json/api.h"
#include "os/api.h"
#include "tests/support/run_kit.h"
#include "tests/test.h"

static bool add_case(run_kit *kit, const char *intent, const char *key, cx_run_case *out)
{
    cx_run_case asked = {.intent = cx_str_z(intent), .key = cx_str_z(key)};
    bool is_new = false;
    CHECK_STATUS(cx_run_case_add(&kit->store, &asked, &kit->arena, out, &is_new, &kit->err),
                 &kit->err);
    return is_new;
}

CX_TEST(case_ids)
{
    CHECK(cx_run_case_id_valid(CX_STR("case_20260101_000000_0123456789abcdef0123456789abcdef")));
    CHECK(!cx_run_case_id_valid(CX_STR("run_20260101_000000_0123456789abcdef0123456789abcdef")));
    CHECK(!cx_run_case_id_valid(CX_STR("case_20260101_000000_0123456789abcdef0123456789abcde")));
    CHECK(!cx_run_case_id_valid(CX_STR("case_20260101_000000_0123456789abcdef0123456789abcd/f")));
    CHECK(!cx_run_case_id_valid(CX_STR("")));
}

CX_TEST(a_key_makes_one_case)
{
    run_kit kit;
    cx_run_case first, again;
    cx_run_case other = {.intent = CX_STR("other"), .key = CX_STR("k")};
    bool is_new;
    if (!run_kit_init(&kit, "case_key", NULL, NULL))
        return;
    CHECK(add_case(&kit, "one", "k", &first));
    CHECK(!add_case(&kit, "one", "k", &again));
    CHECK(cx_str_eq(first.case_id, again.case_id));
    CHECK(cx_run_case_add(&kit.store, &other, &kit.arena, &again, &is_new, &kit.err).code ==
          CX_E_CONFLICT);
    CHECK(add_case(&kit, "one", "", &again)); /* without a key each is its own */
    CHECK(!cx_str_eq(first.case_id, again.case_id));
    run_kit_done(&kit);
}

CX_TEST(the_oldest_is_next_and_changes_stay)
{
    run_kit kit;
    cx_run_case first, second, now;
    if (!run_kit_init(&kit, "case_order", NULL, NULL))
        return;
    CHECK(cx_run_case_next(&kit.store, &kit.arena, &now, &kit.err).code == CX_E_NOT_FOUND);
    CHECK(add_case(&kit, "one", "", &first));
    CHECK(add_case(&kit, "two", "", &second));
    CHECK_STATUS(cx_run_case_next(&kit.store, &kit.arena, &now, &kit.err), &kit.err);
    CHECK(cx_str_eq(now.case_id, first.case_id));
    now.state = CX_CASE_PLANNED;
    now.note = CX_STR("said");
    CHECK_STATUS(cx_run_case_write_contract(&kit.store, &now, cx_str_bytes(CX_STR("{}")),
                                            &kit.arena, &kit.err),
                 &kit.err);
    CHECK_STATUS(cx_run_case_add_run(&now, CX_STR("run_a"), &kit.arena, &kit.err), &kit.err);
    CHECK_STATUS(cx_run_case_add_run(&now, CX_STR("run_b"), &kit.arena, &kit.err), &kit.err);
    CHECK_STATUS(cx_run_case_write(&kit.store, &now, &kit.arena, &kit.err), &kit.err);
    CHECK_STATUS(cx_run_case_read(&kit.store, first.case_id, &kit.arena, &now, &kit.err), &kit.err);
    CHECK(now.state == CX_CASE_PLANNED && cx_str_is(now.note, "said"));
    REQUIRE(now.runs.type == CX_JSON_ARRAY && now.runs.count == 2);
    CHECK(cx_str_is(cx_json_text(&now.runs.items[1]), "run_b"));
    CHECK_STATUS(cx_run_case_next(&kit.store, &kit.arena, &now, &kit.err), &kit.err);
    CHECK(cx_str_eq(now.case_id, second.case_id));
    run_kit_done(&kit);
}

CX_TEST(a_contract_that_changed_is_not_the_planned_one)
{
    run_kit kit;
    cx_run_case one;
    cx_bytes bytes;
    char path[CX_PATH_BYTES_MAX];
    if (!run_kit_init(&kit, "case_contract", NULL, NULL))
        return;
    CHECK(add_case(&kit, "one", "", &one));
    CHECK(cx_run_case_contract(&kit.store, &one, &kit.arena, &bytes, &kit.err).code ==
          CX_E_NOT_FOUND);
    CHECK_STATUS(cx_run_case_write_contract(&kit.store, &one, cx_str_bytes(CX_STR("{\"a\":1}")),
                                            &kit.arena, &kit.err),
                 &kit.err);
    CHECK_STATUS(cx_run_case_contract(&kit.store, &one, &kit.arena, &bytes, &kit.err), &kit.err);
    CHECK(cx_str_is(cx_bytes_str(bytes), "{\"a\":1}"));
    (void)snprintf(path, sizeof path, "%s/cases/%.*s.contract.json", kit.store.root,
                   (int)one.case_id.size, one.case_id.data);
    CHECK_STATUS(cx_run_write_file(kit.store.io, path, cx_str_bytes(CX_STR("{\"a\":2}")), &kit.err),
                 &kit.err);
    CHECK(cx_run_case_contract(&kit.store, &one, &kit.arena, &bytes, &kit.err).code ==
          CX_E_CONFLICT);
    run_kit_done(&kit);
}

CX_TEST(damaged_files_stop_no_other_case)
{
    static const char *const damages[] = {"", "{", "[]", "{\"state\":\"QUEUED\"}",
                                          "{\"case_id\":\"x\",\"state\":\"SOON\"}"};
    run_kit kit;
    cx_run_case good, bad, now;
    cx_json page;
    char path[CX_PATH_BYTES_MAX];
    const cx_run_case_query all = {.limit = 0};
    if (!run_kit_init(&kit, "case_damage", NULL, NULL))
        return;
    CHECK(add_case(&kit, "bad", "", &bad));
    CHECK(add_case(&kit, "good", "", &good));
    (void)snprintf(path, sizeof path, "%s/cases/%.*s.json", kit.store.root, (int)bad.case_id.size,
                   bad.case_id.data);
    for (size_t i = 0; i < CX_COUNT_OF(damages); i++) {
        CHECK_STATUS(
            cx_run_write_file(kit.store.io, path, cx_str_bytes(cx_str_z(damages[i])), &kit.err),
            &kit.err);
        CHECK(cx_failed(cx_run_case_read(&kit.store, bad.case_id, &kit.arena, &now, &kit.err)));
        CHECK_STATUS(cx_run_case_next(&kit.store, &kit.arena, &now, &kit.err), &kit.err);
        CHECK(cx_str_eq(now.case_id, good.case_id));
        CHECK_STATUS(cx_run_view_cases(&kit.store, &all, &kit.arena, &page, &kit.err), &kit.err);
        CHECK_INT(CX_JSON_GET(&page, "items")->count, 1);
    }
    run_kit_done(&kit);
}

CX_TEST(a_long_request_is_cut_between_characters)
{
    run_kit kit;
    cx_run_case one;
    cx_json page;
    char text[800];
    if (!run_kit_init(&kit, "case_long", NULL, NULL))
        return;
    text[0] = 'x';
    for (size_t i = 1; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    CHECK(add_case(&kit, text, "", &one));
    CHECK_STATUS(cx_run_view_intents(&kit.store, &kit.arena, &page, &kit.err), &kit.err);
    const cx_json *items = CX_JSON_GET(&page, "items");
    REQUIRE(items->count == 1);
    cx_str shown = CX_JSON_GET_STR(&items->items[0], "intent");
    CHECK_INT(shown.size, 399); /* 400 would be half of a character */
    CHECK(CX_JSON_GET(&items->items[0], "intent_cut")->type == CX_JSON_TRUE);
    run_kit_done(&kit);
}

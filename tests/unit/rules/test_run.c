/*
 * Findings, and text and times in JSON (src/rules/run.h).
 */
#include "rules/clock.h"
#include "rules/run.h"
#include "tests/test.h"

/* An allocator that serves `*context` requests and then fails. */
static void *limited_resize(void *context, void *memory, size_t old_size, size_t new_size)
{
    size_t *left = context;
    if (new_size != 0 && *left == 0)
        return NULL;
    *left -= new_size != 0;
    return cx_alloc_default()->resize(cx_alloc_default()->ctx, memory, old_size, new_size);
}

/* run.h I2: findings that only inform are no reasons to reject. */
CX_TEST(findings_count_reasons)
{
    cx_arena arena;
    cx_run_findings findings;
    cx_json json;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_run_findings_init(&findings, &arena);
    cx_run_findings_inform(&findings, "K07", CX_STR("/role_contract"), CX_STR(""), "only %s",
                           "informs");
    CHECK(findings.refusing == 0 && !cx_run_findings_have(&findings, "K07"));
    cx_run_findings_reject(&findings, "K02", CX_STR("a\xFF"), CX_STR("index"), "found %d", 7);
    CHECK(findings.refusing == 1 && cx_run_findings_have(&findings, "K02"));
    CHECK(!cx_failed(cx_run_findings_check(&findings, &err)));
    CHECK(!cx_failed(cx_run_findings_json(&findings, &arena, &json, &err)));
    CHECK(json.count == 1);
    const cx_json *one = &json.items[0];
    CHECK(cx_str_is(CX_JSON_GET_STR(one, "rule"), "K02"));
    CHECK(cx_str_is(CX_JSON_GET_STR(one, "path"), "a\\377"));
    CHECK(cx_str_is(CX_JSON_GET_STR(one, "message"), "found 7"));
    CHECK(cx_str_is(CX_JSON_GET_STR(one, "view"), "index"));
    cx_run_findings_done(&findings);
    cx_arena_done(&arena);
}

/* run.h I1: whichever allocation fails, a lost finding makes the check fail. */
CX_TEST(findings_lost_are_reported)
{
    bool complete = false;
    for (size_t served = 0; served < 32 && !complete; served++) {
        size_t left = served;
        cx_alloc alloc = {.resize = limited_resize, .ctx = &left};
        cx_arena arena;
        cx_run_findings findings;
        cx_json json;
        cx_err err;
        cx_arena_init(&arena, &alloc, 0);
        cx_run_findings_init(&findings, &arena);
        cx_run_findings_reject(&findings, "K02", CX_STR("a"), CX_STR("b"), "c");
        CHECK(findings.refusing == 1);
        complete = findings.list.count == 1 && !findings.failed;
        if (!complete) {
            CHECK(cx_run_findings_check(&findings, &err).code == CX_E_NOMEM);
            CHECK(cx_run_findings_json(&findings, &arena, &json, &err).code == CX_E_NOMEM);
        }
        cx_run_findings_done(&findings);
        cx_arena_done(&arena);
    }
    CHECK(complete);
}

CX_TEST(run_text_quotes_bytes_that_are_not_utf8)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_str plain = CX_STR("sr\xC3\xA9/a.c");
    CHECK(cx_json_quoted(plain, &arena).data == plain.data);
    CHECK(cx_str_is(cx_json_quoted(CX_STR("\xC3/\x80z"), &arena), "\\303/\\200z"));
    cx_arena_done(&arena);
}

/* §1 R6: what cx_run_time_text writes, cx_run_time_parse reads. */
CX_TEST(run_times_are_read_as_they_are_written)
{
    static const int64_t times[] = {0, 1000, 951782400000000000, 1767225599999999000,
                                    4102444800000000000};
    char text[28];
    int64_t ns;
    for (size_t i = 0; i < CX_COUNT_OF(times); i++) {
        cx_run_time_text(times[i], text);
        CHECK(strlen(text) == 27);
        CHECK(cx_run_time_parse(cx_str_z(text), &ns) && ns == times[i]);
    }
    cx_run_time_text(951782400000000000, text);
    CHECK_STR(cx_str_z(text), "2000-02-29T00:00:00.000000Z");
    CHECK(!cx_run_time_parse(CX_STR("1969-12-31T23:59:59Z"), &ns));
    CHECK(!cx_run_time_parse(CX_STR("2016-12-31T23:59:60Z"), &ns));
    CHECK(!cx_run_time_parse(CX_STR("2026-02-29T00:00:00Z"), &ns));
}

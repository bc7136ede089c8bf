/*
 * test_schema_fault.c - schemas without memory: the n-th allocation fails, once and from then on,
 * for every n until nothing fires.  Each time the answer is "out of memory", or the very answer of
 * an undisturbed run; nothing leaks.
 */
#include "schema/schema.h"

#include "base/alloc.h"
#include "tests/support/fault.h"
#include "tests/test.h"

static const char schema_text[] =
    "{\"$id\":\"urn:x:a\",\"$ref\":\"#/$defs/tree\",\"$defs\":{\"tree\":{\"$anchor\":\"t\","
    "\"type\":\"object\",\"required\":[\"name\",\"kind\"],\"properties\":{\"name\":{\"pattern\":"
    "\"^[a-z]+(?<x>b)?$\",\"format\":\"date-time\"},\"kind\":{\"enum\":[\"one\",\"two\",3]},"
    "\"list\":"
    "{\"uniqueItems\":true,\"contains\":{\"const\":1},\"unevaluatedItems\":{\"type\":\"string\"}},"
    "\"children\":{\"items\":{\"$ref\":\"#t\"}}},\"patternProperties\":{\"^x-\":true},"
    "\"propertyNames\":{\"maxLength\":8},\"dependentRequired\":{\"a\":[\"b\",\"c\"]},"
    "\"anyOf\":[{\"required\":[\"list\"]},{\"required\":[\"zzz\"]}],\"unevaluatedProperties\":"
    "false}}}";

static const char instance_text[] =
    "{\"name\":\"Abc\",\"kind\":4,\"list\":[1,\"a\",2,1],\"x-more\":[],\"a\":1,\"much_too_long\":1,"
    "\"children\":[{\"name\":\"abc\",\"kind\":3},7]}";

typedef struct work {
    cx_json schema, instance;
    cx_buf answer;
} work;

static cx_status answer(work *w, const cx_alloc *alloc, cx_err *err)
{
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_schema *schema = NULL;
    cx_schema_report report;
    cx_arena arena;
    options.alloc = alloc;
    how.format = CX_SCHEMA_FORMAT_ALL;
    cx_arena_init(&arena, alloc, 0);
    cx_buf_clear(&w->answer);
    cx_status status;
    CX_TRY_GOTO(status, cx_schema_compile(&options, &w->schema, &schema, err));
    CX_TRY_GOTO(status, cx_schema_check(schema, &w->instance, &how, &arena, &report, err));
    for (size_t i = 0; i < report.error_count; i++) {
        cx_buf_add_str(&w->answer, report.errors[i].instance);
        cx_buf_add_str(&w->answer, report.errors[i].schema);
        cx_buf_add_str(&w->answer, report.errors[i].message);
    }
done:
    cx_schema_close(schema);
    cx_arena_done(&arena);
    return status;
}

CX_TEST(schemas_without_memory)
{
    work w;
    cx_arena arena;
    cx_err err = {0};
    cx_buf expected;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&w.answer, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    CHECK_STATUS(cx_json_parse_text(CX_STR(schema_text), &arena, &w.schema, &err), &err);
    CHECK_STATUS(cx_json_parse_text(CX_STR(instance_text), &arena, &w.instance, &err), &err);
    CHECK_STATUS(answer(&w, cx_alloc_default(), &err), &err);
    cx_buf_add_str(&expected, cx_buf_str(&w.answer));
    CHECK(expected.size > 100);
    bool finished = false;
    uint64_t at = 1;
    for (; !finished && at < 5000; at++)
        for (unsigned onwards = 0; onwards < 2; onwards++) {
            fault_alloc memory;
            fault_alloc_init(&memory, at, onwards != 0);
            err = (cx_err){0};
            cx_status status = answer(&w, &memory.alloc, &err);
            finished = atomic_load(&memory.fired) == 0;
            if (cx_failed(status) && (status.code != CX_E_NOMEM || err.code != CX_E_NOMEM))
                cx_test_fail(__FILE__, __LINE__, "allocation %llu: code %d, %s",
                             (unsigned long long)at, (int)status.code, err.message);
            if (!cx_failed(status) && !cx_str_eq(cx_buf_str(&w.answer), cx_buf_str(&expected)))
                cx_test_fail(__FILE__, __LINE__, "allocation %llu: another answer",
                             (unsigned long long)at);
            CHECK_INT(atomic_load(&memory.live_bytes), 0);
            CHECK(!atomic_load(&memory.wrong_size));
        }
    CHECK(finished && at > 50);
    cx_buf_done(&w.answer);
    cx_buf_done(&expected);
    cx_arena_done(&arena);
}

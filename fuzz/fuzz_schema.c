/*
 * fuzz_schema.c - any JSON as a schema, and any JSON after it as what it is to check: it ends, the
 * verdict does not depend on whether errors are wanted, errors point at places that are there, and
 * what is loaded strictly means the same when loaded leniently.
 */
#include "base/alloc.h"
#include "fuzz/fuzz.h"
#include "schema/schema.h"

static bool check(const cx_schema *schema, const cx_json *instance, uint32_t errors_max,
                  cx_arena *arena, cx_schema_report *out)
{
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_err err;
    how.format = CX_SCHEMA_FORMAT_ALL;
    how.errors_max = errors_max;
    how.steps_max = 50000;
    how.depth_max = 200;
    cx_status status = cx_schema_check(schema, instance, &how, arena, out, &err);
    FUZZ_CHECK(!cx_failed(status) || status.code == CX_E_LIMIT);
    return !cx_failed(status);
}

static void check_errors(const cx_json *instance, const cx_schema_report *report)
{
    FUZZ_CHECK(report->valid == (report->error_count == 0));
    for (size_t i = 0; i < report->error_count; i++) {
        const cx_schema_error *error = &report->errors[i];
        FUZZ_CHECK(cx_json_pointer(instance, error->instance) != NULL);
        FUZZ_CHECK(error->message.size != 0 && error->keyword[0] != '\0');
        FUZZ_CHECK(memchr(error->schema.data, '#', error->schema.size) != NULL);
    }
}

static void compare(const cx_schema *strict, const cx_schema *lenient, const cx_json *instance,
                    cx_arena *arena)
{
    cx_schema_report quick, full, other;
    if (!check(lenient, instance, 8, arena, &full))
        return;
    check_errors(instance, &full);
    if (check(lenient, instance, 0, arena, &quick))
        FUZZ_CHECK(quick.valid == full.valid);
    if (strict != NULL && check(strict, instance, 0, arena, &other))
        FUZZ_CHECK(other.valid == full.valid);
}

/* The first byte's last bit says which draft. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const cx_json_limits limits = {64, 400, 1 << 16, false};
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    cx_schema *strict = NULL, *lenient = NULL;
    cx_json document, instance;
    cx_json_parser parser;
    cx_arena arena;
    size_t used;
    cx_err err;
    if (size < 2)
        return 0;
    cx_str text = {(const char *)data + 1, size - 1};
    options.draft = (data[0] & 1) != 0 ? CX_SCHEMA_DRAFT_07 : CX_SCHEMA_2020_12;
    options.nodes_max = 2000;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json_parser_init(&parser, cx_alloc_default(), &limits);
    if (!cx_failed(cx_json_parse_prefix(&parser, text, true, &arena, &document, &used, &err)) &&
        !cx_failed(cx_json_parse(&parser, cx_str_from(text.data + used, text.size - used), &arena,
                                 &instance, &err))) {
        bool is_strict = !cx_failed(cx_schema_compile(&options, &document, &strict, &err));
        options.strict = false;
        bool is_lenient = !cx_failed(cx_schema_compile(&options, &document, &lenient, &err));
        FUZZ_CHECK(is_lenient || !is_strict);
        if (is_lenient)
            compare(strict, lenient, &instance, &arena);
        cx_schema_close(strict);
        cx_schema_close(lenient);
    }
    cx_json_parser_done(&parser);
    cx_arena_done(&arena);
    return 0;
}

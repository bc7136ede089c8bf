/*
 * schema_diff.c - our verdicts for schema_diff.py: reads lines {draft, schema, instances}, answers
 * each with {"valid":[..]} or {"error":".."}.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/io.h"
#include "schema/schema.h"

static void answer_instances(const cx_schema *schema, const cx_json *instances, cx_arena *arena)
{
    (void)printf("{\"valid\":[");
    for (uint32_t i = 0; i < instances->count; i++) {
        cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
        cx_schema_report report;
        cx_err err;
        how.format = CX_SCHEMA_FORMAT_NONE;
        how.errors_max = i % 2 == 0 ? 0 : 8;
        bool known =
            !cx_failed(cx_schema_check(schema, &instances->items[i], &how, arena, &report, &err));
        (void)printf("%s%s", i == 0 ? "" : ",", !known ? "null" : report.valid ? "true" : "false");
    }
    (void)printf("]}\n");
}

static int answer(cx_str line, cx_arena *arena)
{
    cx_json question;
    cx_schema *schema;
    cx_err err;
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    if (cx_failed(cx_json_parse_text(line, arena, &question, &err)))
        return 3;
    options.strict = false;
    if (cx_str_is(CX_JSON_GET_STR(&question, "draft"), "07"))
        options.draft = CX_SCHEMA_DRAFT_07;
    if (cx_failed(cx_schema_compile(&options, CX_JSON_GET(&question, "schema"), &schema, &err))) {
        cx_buf out;
        cx_buf_init(&out, cx_alloc_default());
        cx_json_write_str(&out, cx_str_z(err.message), CX_JSON_PY_COMPACT);
        (void)printf("{\"error\":%s}\n", cx_buf_z(&out));
        cx_buf_done(&out);
        return 0;
    }
    answer_instances(schema, CX_JSON_GET(&question, "instances"), arena);
    cx_schema_close(schema);
    return 0;
}

int main(void)
{
    static char line[1 << 20];
    while (fgets(line, sizeof line, stdin) != NULL) {
        cx_arena arena;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        int code = answer(cx_str_z(line), &arena);
        cx_arena_done(&arena);
        if (code != 0)
            return code;
    }
    return 0;
}

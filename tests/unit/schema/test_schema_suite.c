/*
 * The public JSON-Schema-Test-Suite: every required test of draft 2020-12 and of draft-07, and of
 * the optional ones those that LIMITS does not name.
 *
 * It lies in $CORTEX_TESTDATA/suites/json-schema; what is not there is skipped.
 */
#include <dirent.h>

#include "base/diag.h"
#include "base/io.h"
#include "schema/schema.h"
#include "tests/test.h"

#define REMOTE "http://localhost:1234/"

typedef struct suite {
    cx_schema_draft draft;
    cx_schema_format format;
    unsigned passed, failed;
    bool without_dialect; /* take "$schema" out of each schema */
} suite;

static bool read_json(const char *path, cx_arena *arena, cx_json *out)
{
    cx_buf bytes;
    cx_err err;
    cx_json_parser parser;
    cx_json borrowed;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_json_parser_init(&parser, cx_alloc_default(), NULL);
    bool read = !cx_failed(cx_io_read_file(cx_io_system(), path, (size_t)16 << 20, &bytes, &err)) &&
                !cx_failed(cx_json_parse(&parser, cx_buf_str(&bytes), arena, &borrowed, &err)) &&
                !cx_failed(cx_json_copy(&borrowed, arena, out, &err));
    cx_json_parser_done(&parser);
    cx_buf_done(&bytes);
    return read;
}

/* The suite's remotes, as if they were served where its README says. */
static cx_status find_remote(void *arg, cx_str uri, cx_arena *arena, cx_json *out, cx_err *err)
{
    (void)arg;
    char path[512];
    if (!cx_str_starts(uri, CX_STR(REMOTE)))
        return cx_fail(err, CX_E_NOT_FOUND, "not of the suite");
    (void)snprintf(path, sizeof path, "suites/json-schema/remotes/%.*s",
                   (int)(uri.size - strlen(REMOTE)), uri.data + strlen(REMOTE));
    const char *file = cx_test_data(path);
    if (file == NULL || !read_json(file, arena, out))
        return cx_fail(err, CX_E_NOT_FOUND, "no remote %s", path);
    return CX_SUCCESS;
}

static void run_test(suite *s, const cx_schema *schema, const char *path, cx_str group,
                     const cx_json *test)
{
    cx_arena arena;
    cx_err err;
    cx_schema_report report = {0};
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_str says = CX_JSON_GET_STR(test, "description");
    bool expected = CX_JSON_GET(test, "valid")->type == CX_JSON_TRUE;
    how.format = s->format;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status =
        cx_schema_check(schema, CX_JSON_GET(test, "data"), &how, &arena, &report, &err);
    bool right =
        !cx_failed(status) && report.valid == expected && report.valid == (report.error_count == 0);
    /* The same without asking for errors. */
    how.errors_max = 0;
    right = right &&
            !cx_failed(
                cx_schema_check(schema, CX_JSON_GET(test, "data"), &how, &arena, &report, &err)) &&
            report.valid == expected;
    s->passed += right;
    s->failed += !right;
    if (!right)
        cx_test_fail(__FILE__, __LINE__, "%s: %.*s: %.*s: %s", path, (int)group.size, group.data,
                     (int)says.size, says.data, cx_failed(status) ? err.message : "wrong verdict");
    cx_arena_done(&arena);
}

/* The same object without "$schema". */
static cx_json undeclared(const cx_json *schema, cx_arena *arena)
{
    cx_json out = *schema;
    cx_json_list list = cx_json_list_begin(arena);
    if (schema->type != CX_JSON_OBJECT)
        return out;
    for (uint32_t i = 0; i < schema->count; i++)
        if (!cx_str_is(cx_json_text(&schema->members[i].name), "$schema"))
            cx_json_list_put(&list, cx_json_text(&schema->members[i].name),
                             schema->members[i].value);
    CHECK(!cx_failed(cx_json_list_end_object(&list, &out, NULL)));
    return out;
}

static void run_file(suite *s, const char *path)
{
    cx_arena arena;
    cx_json groups;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    bool read = read_json(path, &arena, &groups);
    CHECK(read);
    for (uint32_t i = 0; read && i < groups.count; i++) {
        const cx_json *group = &groups.items[i], *tests = CX_JSON_GET(group, "tests");
        cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
        cx_schema *schema = NULL;
        options.draft = s->draft;
        options.strict = false;
        options.find = find_remote;
        cx_str says = CX_JSON_GET_STR(group, "description");
        cx_json document = *CX_JSON_GET(group, "schema");
        if (s->without_dialect)
            document = undeclared(&document, &arena);
        if (cx_failed(cx_schema_compile(&options, &document, &schema, &err))) {
            s->failed += tests->count;
            cx_test_fail(__FILE__, __LINE__, "%s: %.*s: %s", path, (int)says.size, says.data,
                         err.message);
            continue;
        }
        for (uint32_t k = 0; k < tests->count; k++)
            run_test(s, schema, path, says, &tests->items[k]);
        cx_schema_close(schema);
    }
    cx_arena_done(&arena);
}

/* The files of one folder but those named. */
static void run_folder(suite *s, const char *relative, const char *const *without)
{
    const char *found = cx_test_data(relative);
    char folder[512], path[1024];
    if (found == NULL) {
        cx_test_skip("that part of the suite is not in CORTEX_TESTDATA");
        return;
    }
    (void)snprintf(folder, sizeof folder, "%s", found);
    DIR *files = opendir(folder);
    REQUIRE(files != NULL);
    for (const struct dirent *entry; (entry = readdir(files)) != NULL;) {
        bool left_out = !cx_str_ends(cx_str_z(entry->d_name), CX_STR(".json"));
        for (size_t i = 0; without != NULL && without[i] != NULL; i++)
            left_out = left_out || strcmp(entry->d_name, without[i]) == 0;
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!left_out)
            run_file(s, path);
    }
    (void)closedir(files);
    /* A folder that lost its files must not pass. */
    CHECK(s->passed >= 50);
}

CX_TEST(suite_2020_12_required)
{
    suite s = {CX_SCHEMA_2020_12, CX_SCHEMA_FORMAT_NONE, 0, 0, false};
    run_folder(&s, "suites/json-schema/tests/draft2020-12", NULL);
}

CX_TEST(suite_draft_07_required)
{
    suite s = {CX_SCHEMA_DRAFT_07, CX_SCHEMA_FORMAT_NONE, 0, 0, false};
    run_folder(&s, "suites/json-schema/tests/draft7", NULL);
}

/* What both drafts mean alike, so that draft-07 is tried where only 2020-12's files are. */
CX_TEST(suite_2020_12_read_as_draft_07)
{
    static const char *const files[] = {
        "additionalProperties",
        "allOf",
        "anyOf",
        "boolean_schema",
        "const",
        "default",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "if-then-else",
        "maximum",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minimum",
        "minItems",
        "minLength",
        "minProperties",
        "multipleOf",
        "oneOf",
        "pattern",
        "patternProperties",
        "properties",
        "propertyNames",
        "required",
        "type",
    };
    suite s = {CX_SCHEMA_DRAFT_07, CX_SCHEMA_FORMAT_NONE, 0, 0, true};
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        char path[256], relative[128];
        (void)snprintf(relative, sizeof relative, "suites/json-schema/tests/draft2020-12/%s.json",
                       files[i]);
        const char *found = cx_test_data(relative);
        if (found == NULL) {
            cx_test_skip("the suite is not in CORTEX_TESTDATA");
            return;
        }
        (void)snprintf(path, sizeof path, "%s", found);
        run_file(&s, path);
    }
    CHECK(s.passed >= 300);
}

CX_TEST(suite_2020_12_optional)
{
    suite s = {CX_SCHEMA_2020_12, CX_SCHEMA_FORMAT_NONE, 0, 0, false};
    run_folder(&s, "suites/json-schema/tests/draft2020-12/optional", NULL);
}

CX_TEST(suite_draft_07_optional)
{
    suite s = {CX_SCHEMA_DRAFT_07, CX_SCHEMA_FORMAT_NONE, 0, 0, false};
    run_folder(&s, "suites/json-schema/tests/draft7/optional", NULL);
}

CX_TEST(suite_2020_12_formats)
{
    /* Needs the tables of IDNA, which are not here. */
    static const char *const without[] = {"idn-hostname.json", NULL};
    suite s = {CX_SCHEMA_2020_12, CX_SCHEMA_FORMAT_ALL, 0, 0, false};
    run_folder(&s, "suites/json-schema/tests/draft2020-12/optional/format", without);
}

CX_TEST(suite_draft_07_formats)
{
    static const char *const without[] = {"idn-hostname.json", NULL};
    suite s = {CX_SCHEMA_DRAFT_07, CX_SCHEMA_FORMAT_ALL, 0, 0, false};
    run_folder(&s, "suites/json-schema/tests/draft7/optional/format", without);
}

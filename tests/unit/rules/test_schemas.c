/*
 * The schemas that the program carries: they compile, the registry knows them, and documents of
 * runs are accepted and refused as the cases say (run.md §2).
 */
#include "rules/schemas.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/io.h"
#include "base/thread.h"
#include "rules/assets.h"
#include "tests/test.h"

static const char *const names[] = {
    "agent_registry.v1.json",  "agent_task_result.v1.json",  "evidence_bundle.v1.json",
    "evidence_report.v1.json", "orchestrator_event.v1.json", "reexec_report.v1.json",
    "review_report.v1.json",   "role_contract.v1.json",      "run_manifest.v1.json",
    "task_chain.v1.json",      "task_contract.v1.json",      "task_result.v1.json",
    "test_report.v1.json",     "work_report.v1.json",        "show.v1.json",
    "status.v1.json",
};

CX_TEST(every_carried_schema_compiles_and_stays)
{
    const cx_schema *first, *again;
    cx_err err;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        CHECK_STATUS(cx_run_schema(names[i], &first, &err), &err);
        CHECK_STATUS(cx_run_schema(names[i], &again, &err), &err);
        CHECK(first == again);
    }
    CHECK(cx_run_schema("none.v1.json", &first, &err).code == CX_E_NOT_FOUND);
    CHECK(cx_run_schema("../policies/packs/low.json", &first, &err).code == CX_E_NOT_FOUND);
}

static void use_all(void *arg, unsigned index)
{
    const cx_schema **got = arg;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_failed(cx_run_schema(names[i], &got[index * CX_COUNT_OF(names) + i], NULL)))
            got[index * CX_COUNT_OF(names) + i] = NULL;
}

CX_TEST(threads_share_what_one_compiled)
{
    const cx_schema *got[4 * CX_COUNT_OF(names)] = {NULL};
    cx_thread_team(4, use_all, got);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        CHECK(got[i] != NULL);
}

CX_TEST(carried_files_are_found_by_name)
{
    size_t count;
    const cx_run_asset_file *files = cx_run_assets(&count);
    cx_bytes bytes;
    CHECK(count >= CX_COUNT_OF(names) + 1);
    for (size_t i = 0; i < count; i++) {
        CHECK(i == 0 || strcmp(files[i - 1].name, files[i].name) < 0);
        CHECK(cx_run_asset(files[i].name, &bytes) && bytes.size == files[i].size);
    }
    CHECK(!cx_run_asset("schemas/none.json", &bytes));
}

/* --- the registry ----------------------------------------------------------------------------- */

typedef struct other {
    const char *registry; /* NULL: missing */
    const char *file;     /* bytes of "a.v1.json"; NULL: missing */
} other;

static cx_status read_other(void *arg, const char *name, cx_arena *arena, cx_str *out, cx_err *err)
{
    const other *o = arg;
    (void)arena;
    const char *text = strcmp(name, "schema_registry.json") == 0 ? o->registry
                       : strcmp(name, "a.v1.json") == 0          ? o->file
                                                                 : NULL;
    if (text == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "not there");
    *out = cx_str_z(text);
    return CX_SUCCESS;
}

#define REGISTRY(sha, bytes)                                                                       \
    "{\"version\":\"v1\",\"schemas\":{\"a.v1.json\":{\"sha256\":\"" sha "\",\"bytes\":" bytes "}}" \
    "}"
/* Of "{}". */
#define DIGEST "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

CX_TEST(the_registry_is_checked_against_the_bytes)
{
    static const struct {
        other o;
        const char *rule; /* NULL: it holds */
    } cases[] = {
        {{REGISTRY(DIGEST, "2"), "{}"}, NULL},
        {{NULL, "{}"}, "SR01"},
        {{"{", "{}"}, "SR01"},
        {{"{\"version\":\"v2\",\"schemas\":{}}", "{}"}, "SR01"},
        {{"{\"version\":\"v1\"}", "{}"}, "SR01"},
        {{"{\"version\":\"v1\",\"schemas\":{\"../a\":{\"sha256\":\"\",\"bytes\":0}}}", "{}"},
         "SR01"},
        {{"{\"version\":\"v1\",\"schemas\":{\"a.v1.json\":{\"bytes\":2}}}", "{}"}, "SR01"},
        {{REGISTRY(DIGEST, "2"), NULL}, "SR02"},
        {{REGISTRY(DIGEST, "2"), "{} "}, "SR03"},
        {{REGISTRY(DIGEST, "3"), "{}"}, "SR03"},
        {{REGISTRY("00", "2"), "{}"}, "SR03"},
    };
    cx_arena arena;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_run_findings findings;
        cx_run_findings_init(&findings, &arena);
        other o = cases[i].o;
        CHECK_STATUS(cx_run_schema_registry_check(read_other, &o, &findings, &err), &err);
        if (findings.refusing != (cases[i].rule != NULL) ||
            (cases[i].rule != NULL && !cx_run_findings_have(&findings, cases[i].rule)))
            cx_test_fail(__FILE__, __LINE__, "case %zu: %zu findings", i, findings.refusing);
        cx_run_findings_done(&findings);
    }
    cx_run_findings own;
    cx_run_findings_init(&own, &arena);
    CHECK_STATUS(cx_run_schema_registry_check(NULL, NULL, &own, &err), &err);
    CHECK_INT(own.refusing, 0);
    cx_run_findings_done(&own);
    cx_arena_done(&arena);
}

/* --- documents -------------------------------------------------------------------------------- */

CX_TEST(what_does_not_match_becomes_findings)
{
    cx_arena arena;
    cx_err err;
    cx_json instance;
    cx_run_findings findings;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_run_findings_init(&findings, &arena);
    CHECK_STATUS(
        cx_run_json_read(CX_STR("{\"status\":\"ok\",\"missing\":[1]}"), 0, &arena, &instance, &err),
        &err);
    CHECK_STATUS(cx_run_schema_check("evidence_report.v1.json", &instance, "K01", &findings, &err),
                 &err);
    REQUIRE(findings.refusing == 1);
    CHECK_STR(findings.list.items[0].where, "/missing/0");
    CHECK_STR(findings.list.items[0].message, "found integer, expected string");
    /* A schema that came with a contract. */
    CHECK_STATUS(cx_run_schema_check_bytes(CX_STR("{\"required\":[\"x\"]}"), &instance, "K01",
                                           &findings, &err),
                 &err);
    CHECK_INT(findings.refusing, 2);
    CHECK(
        cx_run_schema_check_bytes(CX_STR("{\"tpye\":1}"), &instance, "K01", &findings, &err).code ==
        CX_E_FORMAT);
    CHECK(cx_run_schema_check_bytes(CX_STR("{"), &instance, "K01", &findings, &err).code != CX_OK);
    cx_run_findings_done(&findings);
    cx_arena_done(&arena);
}

static bool read_json(const char *path, cx_arena *arena, cx_json *out)
{
    cx_buf bytes;
    cx_err err;
    cx_buf_init(&bytes, cx_alloc_default());
    bool read = !cx_failed(cx_io_read_file(cx_io_system(), path, (size_t)16 << 20, &bytes, &err));
    cx_str text = read ? cx_arena_copy_str(arena, cx_buf_str(&bytes)) : cx_str_from(NULL, 0);
    cx_buf_done(&bytes);
    return text.data != NULL && !cx_failed(cx_run_json_read(text, 0, arena, out, &err));
}

static bool holds(const cx_schema *schema, const cx_json *instance, cx_arena *arena)
{
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_schema_report report = {0};
    cx_err err;
    CHECK_STATUS(cx_schema_check(schema, instance, &how, arena, &report, &err), &err);
    return report.valid;
}

/* One change at a time: each member of each object left out, replaced, or joined by another. */
typedef struct change {
    cx_arena *arena;
    const cx_schema *ours, *theirs;
    const cx_json *whole;
    unsigned tried, different;
} change;

static void compare(change *c)
{
    c->tried++;
    bool ours = holds(c->ours, c->whole, c->arena), theirs = holds(c->theirs, c->whole, c->arena);
    c->different += ours != theirs;
}

static void change_value(change *c, cx_json *value)
{
    static const cx_json others[] = {
        {.type = CX_JSON_NULL},
        {.type = CX_JSON_TRUE},
        {.type = CX_JSON_INT, .count = 2, .text = "-1"},
        {.type = CX_JSON_INT, .count = 2, .text = "11"},
        {.type = CX_JSON_DOUBLE, .count = 3, .text = "1.0"},
        {.type = CX_JSON_DOUBLE, .count = 3, .text = "0.5"},
        {.type = CX_JSON_STRING, .count = 0, .text = ""},
        {.type = CX_JSON_STRING, .count = 6, .text = "WORKER"},
        {.type = CX_JSON_STRING, .count = 3, .text = "low"},
        {.type = CX_JSON_ARRAY, .count = 0, .items = NULL},
        {.type = CX_JSON_OBJECT, .count = 0, .members = NULL},
    };
    cx_json kept = *value;
    cx_arena_mark mark = cx_arena_mark_now(c->arena);
    for (size_t i = 0; i < CX_COUNT_OF(others); i++) {
        *value = others[i];
        compare(c);
        cx_arena_reset(c->arena, mark);
    }
    *value = kept;
    if (kept.type == CX_JSON_OBJECT && kept.count != 0) {
        cx_json_member *members = CX_ARENA_ARRAY(c->arena, cx_json_member, kept.count + 1);
        REQUIRE(members != NULL);
        mark = cx_arena_mark_now(c->arena);
        for (uint32_t gone = 0; gone < kept.count; gone++) {
            memcpy(members, kept.members, gone * sizeof *members);
            memcpy(members + gone, kept.members + gone + 1,
                   (kept.count - gone - 1) * sizeof *members);
            value->members = members;
            value->count = kept.count - 1;
            compare(c);
            cx_arena_reset(c->arena, mark);
        }
        /* '~' sorts after every name there is. */
        memcpy(members, kept.members, kept.count * sizeof *members);
        members[kept.count] = (cx_json_member){cx_json_make_str(CX_STR("~")), cx_json_make_null()};
        value->count = kept.count + 1;
        value->members = members;
        compare(c);
        *value = kept;
    }
    for (uint32_t i = 0; kept.type == CX_JSON_OBJECT && i < kept.count; i++)
        change_value(c, (cx_json *)(uintptr_t)&kept.members[i].value);
    for (uint32_t i = 0; kept.type == CX_JSON_ARRAY && i < kept.count; i++)
        change_value(c, (cx_json *)(uintptr_t)&kept.items[i]);
}

/* Whether our schema and the one of the same fields by others agree on a document and its changes.
 */
static void compare_schemas(const char *name, const cx_json *instance, cx_arena *arena,
                            unsigned *tried)
{
    char path[200];
    cx_json document, copy;
    cx_err err;
    cx_schema *theirs;
    const cx_schema *ours;
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    (void)snprintf(path, sizeof path, "cases/run/upstream/schemas/%s", name);
    const char *found = cx_test_data(path);
    if (found == NULL)
        return;
    REQUIRE(read_json(found, arena, &document));
    CHECK_STATUS(cx_run_schema(name, &ours, &err), &err);
    CHECK_STATUS(cx_schema_compile(&options, &document, &theirs, &err), &err);
    CHECK_STATUS(cx_json_copy(instance, arena, &copy, &err), &err);
    change c = {arena, ours, theirs, &copy, 0, 0};
    change_value(&c, &copy);
    if (c.different != 0)
        cx_test_fail(__FILE__, __LINE__, "%s: %u of %u changes are judged differently", name,
                     c.different, c.tried);
    *tried += c.tried;
    cx_schema_close(theirs);
}

CX_TEST(our_schemas_accept_and_refuse_like_the_ones_they_follow)
{
    const char *path = cx_test_data("cases/run/report_schema.json");
    cx_arena arena;
    cx_json file;
    unsigned tried = 0;
    if (path == NULL || cx_test_data("cases/run/upstream/schemas") == NULL) {
        cx_test_skip("no cases/run in CORTEX_TESTDATA");
        return;
    }
    cx_arena_init(&arena, cx_alloc_default(), 0);
    path = cx_test_data("cases/run/report_schema.json");
    REQUIRE(read_json(path, &arena, &file));
    const cx_json *cases = CX_JSON_GET(&file, "cases");
    const char *last = "";
    for (uint32_t i = 0; i < cases->count; i++) {
        const cx_json *one = &cases->items[i];
        cx_str schema = cx_arena_copy_str(&arena, CX_JSON_GET_STR(one, "schema"));
        /* The first of each, which is the plain one. */
        if (strcmp(schema.data, last) != 0)
            compare_schemas(schema.data, CX_JSON_GET(one, "instance"), &arena, &tried);
        last = schema.data;
    }
    path = cx_test_data("cases/run/contract.json");
    REQUIRE(path != NULL && read_json(path, &arena, &file));
    cases = CX_JSON_GET(&file, "cases");
    for (uint32_t i = 0; i < cases->count && i < 3; i++)
        compare_schemas("task_contract.v1.json", CX_JSON_GET(&cases->items[i], "instance"), &arena,
                        &tried);
    CHECK(tried > 3000);
    cx_arena_done(&arena);
}

CX_TEST(contracts_match_as_the_cases_say)
{
    const char *path = cx_test_data("cases/run/contract.json");
    cx_arena arena;
    cx_json file;
    const cx_schema *schema;
    cx_err err;
    if (path == NULL) {
        cx_test_skip("no cases/run in CORTEX_TESTDATA");
        return;
    }
    cx_arena_init(&arena, cx_alloc_default(), 0);
    REQUIRE(read_json(path, &arena, &file));
    const cx_json *cases = CX_JSON_GET(&file, "cases");
    CHECK_STATUS(cx_run_schema("task_contract.v1.json", &schema, &err), &err);
    for (uint32_t i = 0; i < cases->count; i++) {
        const cx_json *one = &cases->items[i];
        const cx_json *expected = CX_JSON_GET(CX_JSON_GET(one, "expected"), "schema_valid");
        if (holds(schema, CX_JSON_GET(one, "instance"), &arena) != (expected->type == CX_JSON_TRUE))
            cx_test_fail(__FILE__, __LINE__, "%.*s", (int)CX_JSON_GET_STR(one, "id").size,
                         CX_JSON_GET_STR(one, "id").data);
    }
    cx_arena_done(&arena);
}

/*
 * schema_compile.c - from keywords to tests.
 *
 *   C1  A keyword's value has the shape that its vocabulary asks for, or the schema is refused.
 *   C2  The tests of a node are sorted: what is cheap first, what looks at the others' findings
 *       (unevaluated*) last.
 *   C3  Keywords that work together make one test, at the first of them: properties with its kin,
 *       items with its kin, contains with its bounds, if with then and else.
 */
#include <stdlib.h>

#include "schema/schema_internal.h"

#define TESTS_MAX 64 /* there are fewer keywords that make one */

typedef struct node_compiler {
    schema_loader *loader;
    schema_node *node;
    schema_test tests[TESTS_MAX];
    uint32_t count;
} node_compiler;

static const cx_json *get_keyword(const node_compiler *c, const char *keyword)
{
    cx_str name = cx_str_z(keyword);
    return schema_keyword_find(c->node->resource, name) == NULL
               ? NULL
               : cx_json_get(c->node->source, name);
}

static cx_status keyword_error(const node_compiler *c, const char *keyword, const char *expected)
{
    return schema_refuse(c->loader, c->node, CX_E_FORMAT, "has a \"%s\" that is not %s", keyword,
                         expected);
}

static const schema_node *child_node(const node_compiler *c, const cx_json *value)
{
    return value == NULL ? NULL : schema_node_of(c->loader, value);
}

/* --- values of one kind ----------------------------------------------------------------------- */

static cx_status compile_type(const node_compiler *c, schema_test *test)
{
    static const struct {
        const char *name;
        unsigned type;
    } TYPES[] = {{"null", TYPE_NULL},     {"boolean", TYPE_BOOLEAN}, {"integer", TYPE_INTEGER},
                 {"number", TYPE_NUMBER}, {"string", TYPE_STRING},   {"array", TYPE_ARRAY},
                 {"object", TYPE_OBJECT}};
    const cx_json *value = test->value;
    bool is_list = value->type == CX_JSON_ARRAY;
    uint32_t count = is_list ? value->count : 1;
    test->types = 0;
    for (uint32_t i = 0; i < count; i++) {
        const cx_json *item = is_list ? &value->items[i] : value;
        unsigned type = 0;
        for (size_t k = 0; item->type == CX_JSON_STRING && k < sizeof TYPES / sizeof *TYPES; k++)
            if (cx_str_is(cx_json_text(item), TYPES[k].name))
                type = TYPES[k].type;
        if (type == 0 || (test->types & type) != 0)
            return keyword_error(c, "type",
                                 "one of null, boolean, integer, number, string, array, object, "
                                 "or a list of some of them");
        test->types |= type;
    }
    return count == 0 ? keyword_error(c, "type", "a list of at least one") : CX_SUCCESS;
}

static cx_status compile_limit(const node_compiler *c, schema_test *test)
{
    if (cx_json_is_number(test->value)) {
        cx_decimal number = cx_decimal_read(cx_json_text(test->value));
        if (cx_decimal_to_uint64(&number, &test->limit))
            return CX_SUCCESS;
        if (!number.negative && cx_decimal_is_integer(&number)) {
            test->limit = UINT64_MAX; /* more than anything has */
            return CX_SUCCESS;
        }
    }
    return keyword_error(c, test->keyword, "an integer of 0 or more");
}

static cx_status compile_number(const node_compiler *c, schema_test *test)
{
    if (!cx_json_is_number(test->value))
        return keyword_error(c, test->keyword, "a number");
    test->number = cx_decimal_read(cx_json_text(test->value));
    if (test->kind != TEST_MULTIPLE_OF)
        return CX_SUCCESS;
    if (test->number.count == 0 || test->number.negative)
        return keyword_error(c, test->keyword, "more than 0");
    if (test->number.count > CX_DECIMAL_DIVISOR_DIGITS)
        return schema_refuse(c->loader, c->node, CX_E_LIMIT,
                             "has a \"multipleOf\" of more than %d digits",
                             CX_DECIMAL_DIVISOR_DIGITS);
    return CX_SUCCESS;
}

static cx_status compile_pattern(const node_compiler *c, const char *keyword, const cx_json *value,
                                 const cx_pattern **out)
{
    cx_schema *schema = c->loader->schema;
    if (value->type != CX_JSON_STRING)
        return keyword_error(c, keyword, "a string");
    schema_owned *owned = CX_ARENA_NEW(&schema->arena, schema_owned);
    if (owned == NULL)
        return cx_fail_nomem(c->loader->err);
    cx_err why;
    cx_status status =
        cx_pattern_compile(cx_json_text(value), &schema->alloc, &owned->pattern, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(c->loader->err);
    if (cx_failed(status))
        return schema_refuse(c->loader, c->node,
                             status.code == CX_E_SYNTAX ? CX_E_FORMAT : status.code,
                             "has a \"%s\" that cannot be used: %s", keyword, why.message);
    owned->next = schema->patterns;
    schema->patterns = owned;
    *out = owned->pattern;
    return CX_SUCCESS;
}

static cx_status compile_format(const node_compiler *c, schema_test *test)
{
    if (test->value->type != CX_JSON_STRING)
        return keyword_error(c, "format", "a string");
    test->format = schema_format_find(cx_json_text(test->value));
    test->asserted = (c->node->resource->vocabularies & VOCABULARY_FORMAT_ASSERTION) != 0;
    return CX_SUCCESS;
}

/* --- names ------------------------------------------------------------------------------------ */

static int compare_strings(const void *a, const void *b)
{
    const cx_json *const *left = a, *const *right = b;
    return cx_str_cmp(cx_json_text(*left), cx_json_text(*right));
}

/* An array of different strings. */
static cx_status check_names(const node_compiler *c, const char *keyword, const cx_json *list)
{
    const cx_alloc *alloc = &c->loader->schema->alloc;
    if (list->type != CX_JSON_ARRAY)
        return keyword_error(c, keyword, "a list of strings");
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].type != CX_JSON_STRING)
            return keyword_error(c, keyword, "a list of strings");
    if (list->count < 2)
        return CX_SUCCESS;
    size_t size = list->count * sizeof(const cx_json *);
    const cx_json **sorted = cx_alloc_new(alloc, size);
    if (sorted == NULL)
        return cx_fail_nomem(c->loader->err);
    for (uint32_t i = 0; i < list->count; i++)
        sorted[i] = &list->items[i];
    qsort(sorted, list->count, sizeof *sorted, compare_strings);
    bool twice = false;
    for (uint32_t i = 1; i < list->count; i++)
        twice = twice || cx_str_eq(cx_json_text(sorted[i - 1]), cx_json_text(sorted[i]));
    cx_alloc_free(alloc, sorted, size);
    return twice ? keyword_error(c, keyword, "a list of different strings") : CX_SUCCESS;
}

static int compare_names(const void *a, const void *b)
{
    const cx_str *left = a, *right = b;
    return cx_str_cmp(*left, *right);
}

static cx_status compile_required(const node_compiler *c, schema_test *test)
{
    CX_TRY(check_names(c, "required", test->value));
    test->count = test->value->count;
    cx_str *names = CX_ARENA_ARRAY(c->loader->arena, cx_str, test->count);
    if (names == NULL && test->count != 0)
        return cx_fail_nomem(c->loader->err);
    for (uint32_t i = 0; i < test->count; i++)
        names[i] = cx_json_text(&test->value->items[i]);
    if (test->count != 0)
        qsort(names, test->count, sizeof *names, compare_names);
    test->names = names;
    return CX_SUCCESS;
}

/* dependentRequired, dependentSchemas, and draft-07's mixture of both. */
static cx_status compile_dependencies(const node_compiler *c, schema_test *test)
{
    const cx_json *map = test->value;
    if (map->type != CX_JSON_OBJECT)
        return keyword_error(c, test->keyword, "an object");
    schema_dependency *list = CX_ARENA_ARRAY(c->loader->arena, schema_dependency, map->count);
    if (list == NULL && map->count != 0)
        return cx_fail_nomem(c->loader->err);
    for (uint32_t i = 0; i < map->count; i++) {
        const cx_json *value = &map->members[i].value;
        list[i] = (schema_dependency){cx_json_text(&map->members[i].name), NULL, NULL};
        if (test->kind == TEST_DEPENDENT_SCHEMA && value->type != CX_JSON_ARRAY) {
            list[i].node = child_node(c, value);
        } else {
            CX_TRY(check_names(c, test->keyword, value));
            list[i].required = value;
        }
    }
    test->dependencies = list;
    test->count = map->count;
    return CX_SUCCESS;
}

static cx_status compile_properties(const node_compiler *c, schema_test *test)
{
    cx_arena *arena = c->loader->arena;
    const cx_json *named = get_keyword(c, "properties"),
                  *patterns = get_keyword(c, "patternProperties");
    schema_properties *out = CX_ARENA_NEW(arena, schema_properties);
    if (out == NULL)
        return cx_fail_nomem(c->loader->err);
    *out = (schema_properties){.additional = child_node(c, get_keyword(c, "additionalProperties"))};
    if (named != NULL && named->count != 0) {
        schema_property *list = CX_ARENA_ARRAY(arena, schema_property, named->count);
        if (list == NULL)
            return cx_fail_nomem(c->loader->err);
        for (uint32_t i = 0; i < named->count; i++)
            list[i] = (schema_property){cx_json_text(&named->members[i].name),
                                        child_node(c, &named->members[i].value)};
        out->named = list;
        out->named_count = named->count;
    }
    if (patterns != NULL && patterns->count != 0) {
        schema_pattern *list = CX_ARENA_ARRAY(arena, schema_pattern, patterns->count);
        if (list == NULL)
            return cx_fail_nomem(c->loader->err);
        for (uint32_t i = 0; i < patterns->count; i++) {
            CX_TRY(compile_pattern(c, "patternProperties", &patterns->members[i].name,
                                   &list[i].pattern));
            list[i].node = child_node(c, &patterns->members[i].value);
        }
        out->patterns = list;
        out->pattern_count = patterns->count;
    }
    test->properties = out;
    return CX_SUCCESS;
}

/* --- schemas inside --------------------------------------------------------------------------- */

static cx_status compile_list(const node_compiler *c, const char *keyword, const cx_json *list,
                              const schema_node *const **out, uint32_t *out_count)
{
    const schema_node **nodes = CX_ARENA_ARRAY(c->loader->arena, const schema_node *, list->count);
    if (list->count == 0)
        return keyword_error(c, keyword, "a list of at least one schema");
    if (nodes == NULL)
        return cx_fail_nomem(c->loader->err);
    for (uint32_t i = 0; i < list->count; i++)
        nodes[i] = child_node(c, &list->items[i]);
    *out = nodes;
    *out_count = list->count;
    return CX_SUCCESS;
}

static cx_status compile_items(const node_compiler *c, schema_test *test)
{
    const cx_json *prefix = get_keyword(c, "prefixItems"), *rest = get_keyword(c, "items");
    if (rest != NULL && rest->type == CX_JSON_ARRAY) {
        prefix = rest;
        rest = get_keyword(c, "additionalItems");
    }
    test->prefix = NULL;
    test->count = 0;
    if (prefix != NULL && (prefix->count != 0 || c->node->resource->dialect == DIALECT_2020_12))
        CX_TRY(compile_list(c, test->keyword, prefix, &test->prefix, &test->count));
    test->rest = child_node(c, rest);
    return CX_SUCCESS;
}

static cx_status compile_contains(const node_compiler *c, schema_test *test)
{
    const cx_json *low = get_keyword(c, "minContains"), *high = get_keyword(c, "maxContains");
    schema_test bound = {.keyword = "minContains", .value = low};
    test->contains = child_node(c, test->value);
    test->contains_min = 1;
    test->contains_max = UINT64_MAX;
    if (low != NULL) {
        CX_TRY(compile_limit(c, &bound));
        test->contains_min = bound.limit;
    }
    if (high != NULL) {
        bound = (schema_test){.keyword = "maxContains", .value = high};
        CX_TRY(compile_limit(c, &bound));
        test->contains_max = bound.limit;
    }
    return CX_SUCCESS;
}

static cx_status compile_reference(const node_compiler *c, schema_test *test)
{
    schema_node *target;
    if (test->value->type != CX_JSON_STRING)
        return keyword_error(c, test->keyword, "a string");
    cx_str reference = cx_json_text(test->value), fragment;
    CX_TRY(schema_resolve(c->loader, c->node, reference, &target));
    test->target = target;
    test->dynamic = cx_str_from(NULL, 0);
    (void)schema_uri_split(reference, &fragment);
    /* Only an anchor that is dynamic itself makes the reference so (2020-12 core, §8.2.3.2). */
    if (test->kind == TEST_DYNAMIC_REF && target->dynamic_anchor.size != 0 &&
        cx_str_eq(fragment, target->dynamic_anchor))
        test->dynamic = target->dynamic_anchor;
    return CX_SUCCESS;
}

/* --- one node --------------------------------------------------------------------------------- */

static cx_status compile_test(node_compiler *c, schema_test *test)
{
    const cx_json *value = test->value;
    switch ((schema_kind)test->kind) {
    case TEST_TYPE: return compile_type(c, test);
    case TEST_ENUM:
        return value->type == CX_JSON_ARRAY ? CX_SUCCESS : keyword_error(c, "enum", "a list");
    case TEST_CONST: return CX_SUCCESS;
    case TEST_MINIMUM:
    case TEST_MAXIMUM:
    case TEST_EXCLUSIVE_MINIMUM:
    case TEST_EXCLUSIVE_MAXIMUM:
    case TEST_MULTIPLE_OF: return compile_number(c, test);
    case TEST_MIN_LENGTH:
    case TEST_MAX_LENGTH:
    case TEST_MIN_ITEMS:
    case TEST_MAX_ITEMS:
    case TEST_MIN_PROPERTIES:
    case TEST_MAX_PROPERTIES: return compile_limit(c, test);
    case TEST_PATTERN: return compile_pattern(c, "pattern", value, &test->pattern);
    case TEST_FORMAT: return compile_format(c, test);
    case TEST_UNIQUE_ITEMS:
        if (value->type != CX_JSON_TRUE && value->type != CX_JSON_FALSE)
            return keyword_error(c, "uniqueItems", "true or false");
        return CX_SUCCESS;
    case TEST_REQUIRED: return compile_required(c, test);
    case TEST_DEPENDENT_REQUIRED:
    case TEST_DEPENDENT_SCHEMA: return compile_dependencies(c, test);
    case TEST_PROPERTIES: return compile_properties(c, test);
    case TEST_ITEMS: return compile_items(c, test);
    case TEST_CONTAINS: return compile_contains(c, test);
    case TEST_ALL_OF:
    case TEST_ANY_OF:
    case TEST_ONE_OF: return compile_list(c, test->keyword, value, &test->nodes, &test->count);
    case TEST_IF:
        test->condition = child_node(c, value);
        test->then_node = child_node(c, get_keyword(c, "then"));
        test->else_node = child_node(c, get_keyword(c, "else"));
        return CX_SUCCESS;
    case TEST_REF:
    case TEST_DYNAMIC_REF: return compile_reference(c, test);
    case TEST_UNEVALUATED_ITEMS:
    case TEST_UNEVALUATED_PROPERTIES: c->node->wants_evaluated = true; break;
    case TEST_NOT:
    case TEST_PROPERTY_NAMES: break;
    }
    test->node = child_node(c, value);
    return CX_SUCCESS;
}

static bool has_test(const node_compiler *c, int kind)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->tests[i].kind == kind)
            return true;
    return false;
}

/* C1 for keywords that make no test. */
static cx_status check_annotation(const node_compiler *c, const schema_keyword *keyword,
                                  const cx_json *value)
{
    static const struct {
        const char *name;
        const char *expected;
        cx_json_type type;
    } SHAPES[] = {
        {"$comment", "a string", CX_JSON_STRING},
        {"$schema", "a string", CX_JSON_STRING},
        {"$vocabulary", "an object", CX_JSON_OBJECT},
        {"title", "a string", CX_JSON_STRING},
        {"description", "a string", CX_JSON_STRING},
        {"examples", "a list", CX_JSON_ARRAY},
        {"contentEncoding", "a string", CX_JSON_STRING},
        {"contentMediaType", "a string", CX_JSON_STRING},
    };
    static const char *const SWITCHES[] = {"deprecated", "readOnly", "writeOnly"};
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        if (strcmp(keyword->name, SHAPES[i].name) == 0 && value->type != (int)SHAPES[i].type)
            return keyword_error(c, keyword->name, SHAPES[i].expected);
    for (size_t i = 0; i < sizeof SWITCHES / sizeof *SWITCHES; i++)
        if (strcmp(keyword->name, SWITCHES[i]) == 0 && value->type != CX_JSON_TRUE &&
            value->type != CX_JSON_FALSE)
            return keyword_error(c, keyword->name, "true or false");
    return CX_SUCCESS;
}

static int compare_tests(const void *a, const void *b)
{
    const schema_test *left = a, *right = b;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    return 0;
}

cx_status schema_compile_node(schema_loader *loader, schema_node *node)
{
    node_compiler c = {.loader = loader, .node = node};
    const cx_json *object = node->source;
    if (object->type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    /* draft-07: the other members next to "$ref" mean nothing. */
    bool only_ref = node->resource->dialect == DIALECT_07 && CX_JSON_GET(object, "$ref") != NULL;
    for (uint32_t i = 0; i < object->count; i++) {
        cx_str name = cx_json_text(&object->members[i].name);
        const schema_keyword *keyword = schema_keyword_find(node->resource, name);
        if (keyword == NULL || (only_ref && keyword->kind != TEST_REF))
            continue;
        if (keyword->kind < 0) {
            CX_TRY(check_annotation(&c, keyword, &object->members[i].value));
            continue;
        }
        if (has_test(&c, keyword->kind))
            continue; /* C3 */
        schema_test *test = &c.tests[c.count];
        *test = (schema_test){.kind = (uint8_t)keyword->kind,
                              .keyword = keyword->name,
                              .value = &object->members[i].value};
        CX_TRY(compile_test(&c, test));
        c.count++;
    }
    if (c.count == 0)
        return CX_SUCCESS;
    qsort(c.tests, c.count, sizeof *c.tests, compare_tests); /* C2; no two are alike */
    schema_test *tests = CX_ARENA_ARRAY(loader->arena, schema_test, c.count);
    if (tests == NULL)
        return cx_fail_nomem(loader->err);
    memcpy(tests, c.tests, c.count * sizeof *tests);
    node->tests = tests;
    node->test_count = c.count;
    if (c.count == 1 && tests[0].kind == TEST_REF && tests[0].target->resource == node->resource)
        node->only_ref = tests[0].target;
    node->only_types = c.count == 1 && tests[0].kind == TEST_TYPE ? tests[0].types : 0;
    return CX_SUCCESS;
}

/*
 * schema_keywords.c - which keywords there are, and where schemas stand inside of them.
 */
#include "schema/schema_internal.h"

#define CORE VOCABULARY_CORE
#define APPLICATOR VOCABULARY_APPLICATOR
#define VALIDATION VOCABULARY_VALIDATION
#define META_DATA VOCABULARY_META_DATA

/* Sorted by name. */
static const schema_keyword KEYWORDS[] = {
    {"$anchor", IN_NEWER, CORE, CHILDREN_NONE, -1},
    {"$comment", IN_ALL, CORE, CHILDREN_NONE, -1},
    {"$defs", IN_NEWER, CORE, CHILDREN_MAP, -1},
    {"$dynamicAnchor", IN_2020, CORE, CHILDREN_NONE, -1},
    {"$dynamicRef", IN_2020, CORE, CHILDREN_NONE, TEST_DYNAMIC_REF},
    {"$id", IN_ALL, CORE, CHILDREN_NONE, -1},
    {"$ref", IN_ALL, CORE, CHILDREN_NONE, TEST_REF},
    {"$schema", IN_ALL, CORE, CHILDREN_NONE, -1},
    {"$vocabulary", IN_NEWER, CORE, CHILDREN_NONE, -1},
    {"additionalItems", IN_07 | IN_2019, APPLICATOR, CHILDREN_ONE, -1},
    {"additionalProperties", IN_ALL, APPLICATOR, CHILDREN_ONE, TEST_PROPERTIES},
    {"allOf", IN_ALL, APPLICATOR, CHILDREN_LIST, TEST_ALL_OF},
    {"anyOf", IN_ALL, APPLICATOR, CHILDREN_LIST, TEST_ANY_OF},
    {"const", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_CONST},
    {"contains", IN_ALL, APPLICATOR, CHILDREN_ONE, TEST_CONTAINS},
    {"contentEncoding", IN_ALL, VOCABULARY_CONTENT, CHILDREN_NONE, -1},
    {"contentMediaType", IN_ALL, VOCABULARY_CONTENT, CHILDREN_NONE, -1},
    {"contentSchema", IN_NEWER, VOCABULARY_CONTENT, CHILDREN_ONE, -1},
    {"default", IN_ALL, META_DATA, CHILDREN_NONE, -1},
    {"definitions", IN_07, CORE, CHILDREN_MAP, -1},
    {"dependencies", IN_07, APPLICATOR, CHILDREN_MAP_OR_STRINGS, TEST_DEPENDENT_SCHEMA},
    {"dependentRequired", IN_NEWER, VALIDATION, CHILDREN_NONE, TEST_DEPENDENT_REQUIRED},
    {"dependentSchemas", IN_NEWER, APPLICATOR, CHILDREN_MAP, TEST_DEPENDENT_SCHEMA},
    {"deprecated", IN_NEWER, META_DATA, CHILDREN_NONE, -1},
    {"description", IN_ALL, META_DATA, CHILDREN_NONE, -1},
    {"else", IN_ALL, APPLICATOR, CHILDREN_ONE, -1},
    {"enum", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_ENUM},
    {"examples", IN_ALL, META_DATA, CHILDREN_NONE, -1},
    {"exclusiveMaximum", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_EXCLUSIVE_MAXIMUM},
    {"exclusiveMinimum", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_EXCLUSIVE_MINIMUM},
    {"format", IN_ALL, VOCABULARY_FORMAT | VOCABULARY_FORMAT_ASSERTION, CHILDREN_NONE, TEST_FORMAT},
    {"if", IN_ALL, APPLICATOR, CHILDREN_ONE, TEST_IF},
    {"items", IN_2020, APPLICATOR, CHILDREN_ONE, TEST_ITEMS},
    {"items", IN_07 | IN_2019, APPLICATOR, CHILDREN_ONE_OR_LIST, TEST_ITEMS},
    {"maxContains", IN_NEWER, VALIDATION, CHILDREN_NONE, -1},
    {"maxItems", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_MAX_ITEMS},
    {"maxLength", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_MAX_LENGTH},
    {"maxProperties", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_MAX_PROPERTIES},
    {"maximum", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_MAXIMUM},
    {"minContains", IN_NEWER, VALIDATION, CHILDREN_NONE, -1},
    {"minItems", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_MIN_ITEMS},
    {"minLength", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_MIN_LENGTH},
    {"minProperties", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_MIN_PROPERTIES},
    {"minimum", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_MINIMUM},
    {"multipleOf", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_MULTIPLE_OF},
    {"not", IN_ALL, APPLICATOR, CHILDREN_ONE, TEST_NOT},
    {"oneOf", IN_ALL, APPLICATOR, CHILDREN_LIST, TEST_ONE_OF},
    {"pattern", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_PATTERN},
    {"patternProperties", IN_ALL, APPLICATOR, CHILDREN_MAP, TEST_PROPERTIES},
    {"prefixItems", IN_2020, APPLICATOR, CHILDREN_LIST, TEST_ITEMS},
    {"properties", IN_ALL, APPLICATOR, CHILDREN_MAP, TEST_PROPERTIES},
    {"propertyNames", IN_ALL, APPLICATOR, CHILDREN_ONE, TEST_PROPERTY_NAMES},
    {"readOnly", IN_ALL, META_DATA, CHILDREN_NONE, -1},
    {"required", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_REQUIRED},
    {"then", IN_ALL, APPLICATOR, CHILDREN_ONE, -1},
    {"title", IN_ALL, META_DATA, CHILDREN_NONE, -1},
    {"type", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_TYPE},
    {"unevaluatedItems", IN_NEWER, VOCABULARY_UNEVALUATED, CHILDREN_ONE, TEST_UNEVALUATED_ITEMS},
    {"unevaluatedProperties", IN_NEWER, VOCABULARY_UNEVALUATED, CHILDREN_ONE,
     TEST_UNEVALUATED_PROPERTIES},
    {"uniqueItems", IN_ALL, VALIDATION, CHILDREN_NONE, TEST_UNIQUE_ITEMS},
    {"writeOnly", IN_ALL, META_DATA, CHILDREN_NONE, -1},
};

static bool is_in_force(const schema_keyword *keyword, const schema_resource *resource)
{
    static const uint8_t DIALECTS[] = {IN_07, IN_2019, IN_2020};
    return (keyword->dialects & DIALECTS[resource->dialect]) != 0 &&
           (keyword->vocabulary & resource->vocabularies) != 0;
}

const schema_keyword *schema_keyword_find(const schema_resource *resource, cx_str name)
{
    size_t low = 0, high = sizeof KEYWORDS / sizeof *KEYWORDS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (cx_str_cmp(cx_str_z(KEYWORDS[middle].name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < sizeof KEYWORDS / sizeof *KEYWORDS && cx_str_is(name, KEYWORDS[low].name); low++)
        if (is_in_force(&KEYWORDS[low], resource))
            return &KEYWORDS[low];
    return NULL;
}

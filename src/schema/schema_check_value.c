/*
 * schema_check_value.c - tests of one value that need no other schema.
 */
#include <stdio.h>
#include <stdlib.h>

#include "schema/schema_checker.h"

static const char *const TYPE_NAMES[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};

SCHEMA_APART static bool report_type(schema_checker *c, const schema_node *node,
                                     const schema_test *test, const schema_visit *v)
{
    if (!schema_wants_errors(c))
        return false;
    char names[80] = "";
    size_t used = 0;
    for (unsigned i = 0; i < 7; i++)
        if ((test->types >> i & 1) != 0)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used == 0 ? "" : " or ", TYPE_NAMES[i]);
    return schema_report(c, node, "type", v->at, "found %s, expected %s",
                         cx_json_type_name(v->value), names);
}

SCHEMA_APART static bool check_enum(schema_checker *c, const schema_node *node,
                                    const schema_test *test, const schema_visit *v)
{
    uint64_t steps = 0;
    for (uint32_t i = 0; i < test->value->count; i++)
        if (v->value->type == CX_JSON_STRING) {
            const cx_json *item = &test->value->items[i];
            steps++;
            if (item->type == CX_JSON_STRING &&
                cx_str_eq(cx_json_text(item), cx_json_text(v->value)))
                return schema_count_steps(c, steps);
        } else if (schema_equal(v->value, &test->value->items[i], &steps))
            return schema_count_steps(c, steps);
    if (!schema_count_steps(c, steps) || !schema_wants_errors(c))
        return false;
    cx_buf list;
    cx_buf_init(&list, c->alloc);
    for (uint32_t i = 0; i < test->value->count && list.size < 200; i++) {
        schema_shown item = schema_show(&test->value->items[i]);
        cx_buf_printf(&list, "%s%s", i == 0 ? "" : ", ", item.text);
    }
    if (list.size >= 200)
        cx_buf_add_z(&list, ", ..");
    schema_shown found = schema_show(v->value);
    const char *text = cx_buf_z(&list);
    bool result = text == NULL ? schema_out_of_memory(c)
                               : schema_report(c, node, "enum", v->at,
                                               "found %s, expected one of %s", found.text, text);
    cx_buf_done(&list);
    return result;
}

SCHEMA_APART static bool check_const(schema_checker *c, const schema_node *node,
                                     const schema_test *test, const schema_visit *v)
{
    uint64_t steps = 0;
    bool equal = schema_equal(v->value, test->value, &steps);
    if (!schema_count_steps(c, steps))
        return false;
    if (equal)
        return true;
    schema_shown found = schema_show(v->value), expected = schema_show(test->value);
    return schema_report(c, node, "const", v->at, "found %s, expected %s", found.text,
                         expected.text);
}

SCHEMA_APART static bool check_number(schema_checker *c, const schema_node *node,
                                      const schema_test *test, const schema_visit *v)
{
    static const char *const SAYS[] = {"at least", "at most", "more than", "less than",
                                       "a multiple of"};
    if (!cx_json_is_number(v->value))
        return true;
    cx_decimal number = cx_decimal_read(cx_json_text(v->value));
    if (!schema_count_steps(c, 1 + number.count / 8))
        return false;
    bool holds;
    if (test->kind == TEST_MULTIPLE_OF) {
        holds = cx_decimal_is_multiple(&number, &test->number);
    } else {
        int order = cx_decimal_compare(&number, &test->number);
        holds = test->kind == TEST_MINIMUM             ? order >= 0
                : test->kind == TEST_MAXIMUM           ? order <= 0
                : test->kind == TEST_EXCLUSIVE_MINIMUM ? order > 0
                                                       : order < 0;
    }
    if (holds)
        return true;
    schema_shown found = schema_show(v->value), limit = schema_show(test->value);
    return schema_report(c, node, test->keyword, v->at, "found %s, expected %s %s", found.text,
                         SAYS[test->kind - TEST_MINIMUM], limit.text);
}

static uint64_t code_points(cx_str text)
{
    uint64_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += ((uint8_t)text.data[i] & 0xC0) != 0x80;
    return count;
}

/* minLength .. maxProperties: `size` of what is counted. */
SCHEMA_APART static bool check_size(schema_checker *c, const schema_node *node,
                                    const schema_test *test, const schema_visit *v, uint64_t size,
                                    bool is_minimum, const char *what)
{
    if (is_minimum ? size >= test->limit : size <= test->limit)
        return true;
    return schema_report(c, node, test->keyword, v->at, "found %llu %s, expected at %s %llu",
                         (unsigned long long)size, what, is_minimum ? "least" : "most",
                         (unsigned long long)test->limit);
}

static bool check_length(schema_checker *c, const schema_node *node, const schema_test *test,
                         const schema_visit *v)
{
    if (v->value->type != CX_JSON_STRING)
        return true;
    bool is_minimum = test->kind == TEST_MIN_LENGTH;
    return check_size(c, node, test, v, code_points(cx_json_text(v->value)), is_minimum,
                      "characters");
}

bool schema_match(schema_checker *c, const cx_pattern *pattern, cx_str text)
{
    bool found = false;
    if (!schema_count_steps(c, 1 + text.size / 64))
        return false;
    cx_status status = cx_pattern_match(pattern, text, &found, c->err);
    if (cx_failed(status))
        return schema_stop(c, status);
    return found;
}

SCHEMA_APART static bool check_pattern(schema_checker *c, const schema_node *node,
                                       const schema_test *test, const schema_visit *v)
{
    if (v->value->type != CX_JSON_STRING || schema_match(c, test->pattern, cx_json_text(v->value)))
        return true;
    schema_shown found = schema_show(v->value), pattern = schema_show(test->value);
    return schema_report(c, node, "pattern", v->at, "%s does not match the pattern %s", found.text,
                         pattern.text);
}

SCHEMA_APART static bool check_format(schema_checker *c, const schema_node *node,
                                      const schema_test *test, const schema_visit *v)
{
    cx_schema_format asked = c->options->format;
    bool asserted =
        test->asserted || asked == CX_SCHEMA_FORMAT_ALL ||
        (asked == CX_SCHEMA_FORMAT_DATE_TIME && schema_format_is_date_time(test->format));
    if (!asserted || test->format < 0 || v->value->type != CX_JSON_STRING)
        return true;
    bool holds = true;
    cx_status status = schema_format_holds(test->format, cx_json_text(v->value), &holds, c->err);
    if (cx_failed(status))
        return schema_stop(c, status);
    if (holds)
        return true;
    schema_shown found = schema_show(v->value), format = schema_show(test->value);
    return schema_report(c, node, "format", v->at, "%s is no %s", found.text, format.text);
}

/* --- equal items ------------------------------------------------------------------------------ */

typedef struct hashed {
    uint64_t hash;
    uint32_t index;
} hashed;

static int compare_hashes(const void *a, const void *b)
{
    const hashed *left = a, *right = b;
    if (left->hash != right->hash)
        return left->hash < right->hash ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

/* The first pair of equal items, by their hashes; false when there is none, or no answer. */
static bool find_equal(schema_checker *c, const cx_json *array, uint32_t *out_first,
                       uint32_t *out_second)
{
    uint64_t steps = 0;
    bool found = false;
    cx_arena_mark mark = cx_arena_mark_now(&c->scratch);
    hashed *list = CX_ARENA_ARRAY(&c->scratch, hashed, array->count);
    if (list == NULL)
        return schema_out_of_memory(c);
    for (uint32_t i = 0; i < array->count; i++)
        list[i] = (hashed){schema_hash(&array->items[i], 0), i};
    qsort(list, array->count, sizeof *list, compare_hashes);
    for (uint32_t i = 0; i < array->count && !found && !c->stop; i++)
        for (uint32_t k = i + 1; k < array->count && list[k].hash == list[i].hash && !found; k++) {
            found =
                schema_equal(&array->items[list[i].index], &array->items[list[k].index], &steps);
            *out_first = list[i].index;
            *out_second = list[k].index;
            if (!schema_count_steps(c, steps))
                break;
            steps = 0;
        }
    cx_arena_reset(&c->scratch, mark);
    return found && schema_count_steps(c, array->count);
}

SCHEMA_APART static bool check_unique(schema_checker *c, const schema_node *node,
                                      const schema_test *test, const schema_visit *v)
{
    uint32_t first = 0, second = 0;
    if (v->value->type != CX_JSON_ARRAY || v->value->count < 2 || test->value->type != CX_JSON_TRUE)
        return true;
    if (!find_equal(c, v->value, &first, &second))
        return !c->stop;
    return schema_report(c, node, "uniqueItems", v->at, "items %u and %u are equal",
                         (unsigned)(first < second ? first : second),
                         (unsigned)(first < second ? second : first));
}

/* --- all of them ------------------------------------------------------------------------------ */

bool schema_check_value(schema_checker *c, const schema_node *node, const schema_test *test,
                        const schema_visit *v)
{
    bool is_array = v->value->type == CX_JSON_ARRAY, is_object = v->value->type == CX_JSON_OBJECT;
    switch ((schema_kind)test->kind) {
    case TEST_TYPE:
        return (schema_types_of(v->value) & test->types) != 0 || report_type(c, node, test, v);
    case TEST_ENUM: return check_enum(c, node, test, v);
    case TEST_CONST: return check_const(c, node, test, v);
    case TEST_MINIMUM:
    case TEST_MAXIMUM:
    case TEST_EXCLUSIVE_MINIMUM:
    case TEST_EXCLUSIVE_MAXIMUM:
    case TEST_MULTIPLE_OF: return check_number(c, node, test, v);
    case TEST_MIN_LENGTH:
    case TEST_MAX_LENGTH: return check_length(c, node, test, v);
    case TEST_PATTERN: return check_pattern(c, node, test, v);
    case TEST_FORMAT: return check_format(c, node, test, v);
    case TEST_MIN_ITEMS:
    case TEST_MAX_ITEMS:
        return !is_array ||
               check_size(c, node, test, v, v->value->count, test->kind == TEST_MIN_ITEMS, "items");
    case TEST_MIN_PROPERTIES:
    case TEST_MAX_PROPERTIES:
        return !is_object || check_size(c, node, test, v, v->value->count,
                                        test->kind == TEST_MIN_PROPERTIES, "members");
    case TEST_UNIQUE_ITEMS: return check_unique(c, node, test, v);
    default: return false;
    }
}

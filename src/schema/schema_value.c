/*
 * schema_value.c - when two values are the same to JSON Schema.
 *
 * Numbers by what they amount to (1, 1.0 and 10e-1 are one), objects without order.  Both sides are
 * no deeper than their parser let them be.
 */
#include "schema/schema_internal.h"

bool schema_equal(const cx_json *a, const cx_json *b, uint64_t *steps)
{
    *steps += 1;
    if (cx_json_is_number(a) && cx_json_is_number(b)) {
        cx_decimal left = cx_decimal_read(cx_json_text(a)),
                   right = cx_decimal_read(cx_json_text(b));
        return cx_decimal_compare(&left, &right) == 0;
    }
    if (a->type != b->type || a->count != b->count)
        return false;
    switch ((cx_json_type)a->type) {
    case CX_JSON_STRING: return cx_str_eq(cx_json_text(a), cx_json_text(b));
    case CX_JSON_ARRAY:
        for (uint32_t i = 0; i < a->count; i++)
            if (!schema_equal(&a->items[i], &b->items[i], steps))
                return false;
        return true;
    case CX_JSON_OBJECT:
        for (uint32_t i = 0; i < a->count; i++)
            if (!cx_str_eq(cx_json_text(&a->members[i].name), cx_json_text(&b->members[i].name)) ||
                !schema_equal(&a->members[i].value, &b->members[i].value, steps))
                return false;
        return true;
    default: return true;
    }
}

uint64_t schema_hash(const cx_json *value, uint64_t seed)
{
    uint64_t hash = seed ^ ((uint64_t)value->type * UINT64_C(0x9E3779B97F4A7C15));
    if (cx_json_is_number(value)) {
        cx_decimal number = cx_decimal_read(cx_json_text(value));
        return cx_decimal_hash(&number, seed);
    }
    switch ((cx_json_type)value->type) {
    case CX_JSON_STRING: return cx_map_hash_bytes(hash, value->text, value->count);
    case CX_JSON_ARRAY:
        for (uint32_t i = 0; i < value->count; i++)
            hash = schema_hash(&value->items[i], hash * UINT64_C(0x9E3779B97F4A7C15) + i);
        return hash;
    case CX_JSON_OBJECT:
        for (uint32_t i = 0; i < value->count; i++) {
            hash = schema_hash(&value->members[i].name, hash);
            hash = schema_hash(&value->members[i].value, hash);
        }
        return hash;
    default: return hash;
    }
}

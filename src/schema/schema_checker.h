/*
 * schema_checker.h - between the parts of checking: the state of one check, and what each part
 * offers.
 *
 *   S1  What a test finds is true, false, or no answer; without an answer everything stops with an
 *       error (c->stop), and nothing is reported.
 *   S2  Inside `not`, `if`, `contains` and the alternatives of anyOf and oneOf nothing is reported:
 *       there c->quiet is above 0, and the first miss ends the node.
 *   S3  Which members and items were looked at (for unevaluated*) is noted only where a later
 *       check asks; notes of a schema that did not match are thrown away where a later check could
 *       still ask.
 *   S4  Every node entered counts against the depth, every test and comparison against the steps.
 */
#ifndef CX_SCHEMA_SCHEMA_CHECKER_H
#define CX_SCHEMA_SCHEMA_CHECKER_H

#include "schema/schema_internal.h"

/* What is rarely needed stays out of the functions that call each other all the time: its text
 * buffers would be in every one of their frames. */
#define SCHEMA_APART __attribute__((noinline))

/* Where in the instance we are; a chain on the stack. */
typedef struct schema_place {
    const struct schema_place *parent;
    cx_str name; /* of a member; data NULL: an item */
    uint32_t index;
} schema_place;

/* The resources entered on the way here, innermost first. */
typedef struct schema_scope {
    const struct schema_scope *outer;
    const schema_resource *resource;
} schema_scope;

/* Which members or items of one value were looked at. */
typedef struct schema_notes {
    uint8_t *seen; /* count flags */
    uint32_t count;
} schema_notes;

typedef struct schema_checker {
    const cx_schema_check_options *options;
    cx_arena *arena;
    cx_arena scratch; /* notes */
    CX_VEC(cx_schema_error) errors;
    const cx_alloc *alloc;
    uint64_t steps;
    unsigned depth;
    unsigned quiet;
    bool cut;
    bool stop;
    cx_status status; /* when it stopped */
    cx_err *err;
} schema_checker;

/* What a node is applied to. */
typedef struct schema_visit {
    const cx_json *value;
    const schema_place *at;
    const schema_scope *scope;
    schema_notes *notes; /* NULL: no check asks */
} schema_visit;

/* --- schema_report.c: each returns false, so that a test can end with it ---------------------- */

bool schema_stop(schema_checker *c, cx_status status);
bool schema_out_of_memory(schema_checker *c);
/* Reports that `keyword` of `node` is not satisfied at a place. */
bool schema_report(schema_checker *c, const schema_node *node, const char *keyword,
                   const schema_place *at, const char *format, ...) CX_PRINTF(5, 6);

/* There were too many. */
bool schema_stop_steps(schema_checker *c);

/* False, and everything stops, when there were too many. */
static inline bool schema_count_steps(schema_checker *c, uint64_t steps)
{
    c->steps += steps;
    return CX_LIKELY(c->steps <= c->options->steps_max) || schema_stop_steps(c);
}

static inline bool schema_wants_errors(const schema_checker *c)
{
    return c->quiet == 0 && c->options->errors_max != 0;
}

#define SCHEMA_SHOWN_MAX 60

/* A short form of a value for a sentence, terminated; never cuts a character. */
typedef struct schema_shown {
    char text[SCHEMA_SHOWN_MAX + 8];
} schema_shown;

schema_shown schema_show(const cx_json *value);

/* The TYPE_.. bits of a value; a double may be an integer too. */
static inline unsigned schema_types_of(const cx_json *value)
{
    static const uint8_t types[] = {
        [CX_JSON_NULL] = TYPE_NULL,     [CX_JSON_FALSE] = TYPE_BOOLEAN,
        [CX_JSON_TRUE] = TYPE_BOOLEAN,  [CX_JSON_INT] = TYPE_INTEGER | TYPE_NUMBER,
        [CX_JSON_DOUBLE] = TYPE_NUMBER, [CX_JSON_STRING] = TYPE_STRING,
        [CX_JSON_ARRAY] = TYPE_ARRAY,   [CX_JSON_OBJECT] = TYPE_OBJECT};
    if (value->type == CX_JSON_DOUBLE) {
        cx_decimal number = cx_decimal_read(cx_json_text(value));
        return cx_decimal_is_integer(&number) ? TYPE_INTEGER | TYPE_NUMBER : TYPE_NUMBER;
    }
    return types[value->type];
}

/* Eight bytes as a number that orders as they do. */
static inline uint64_t schema_eight(const char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* As cx_str_cmp without its calls: names are short. */
static inline int schema_name_order(cx_str a, cx_str b)
{
    size_t common = a.size < b.size ? a.size : b.size, at = 0;
    for (; common - at >= 8; at += 8) {
        uint64_t x = schema_eight(a.data + at), y = schema_eight(b.data + at);
        if (x != y)
            return x < y ? -1 : 1;
    }
    for (; at < common; at++)
        if (a.data[at] != b.data[at])
            return (uint8_t)a.data[at] < (uint8_t)b.data[at] ? -1 : 1;
    return (a.size > b.size) - (a.size < b.size);
}

/* --- schema_check_value.c --------------------------------------------------------------------- */

/* The tests that look at one value and need no other schema; `test` is of one of those kinds. */
bool schema_check_value(schema_checker *c, const schema_node *node, const schema_test *test,
                        const schema_visit *v);
/* False also when it stopped. */
bool schema_match(schema_checker *c, const cx_pattern *pattern, cx_str text);

#endif

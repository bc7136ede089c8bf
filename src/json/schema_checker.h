/*
 * schema_checker.h - between the parts of checking: the state of one check, and what each part
 * offers.
 *
 *   S1  What a test finds is true, false, or no answer; without an answer everything stops with an
 *       error (c->stop), and nothing is reported.
 *   S2  Inside `not`, `if`, `contains` and the alternatives of anyOf and oneOf nothing is reported:
 *       there c->quiet is above 0, and the first miss ends the node.
 *   S3  Which members and items were looked at (for unevaluated*) is noted only where somebody will
 *       ask; notes of a schema that did not match are thrown away where somebody could still ask.
 *   S4  Every node entered counts against the depth, every test and comparison against the steps.
 */
#ifndef CX_JSON_SCHEMA_CHECKER_H
#define CX_JSON_SCHEMA_CHECKER_H

#include "json/schema_internal.h"

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
    schema_notes *notes; /* NULL: nobody asks */
} schema_visit;

/* --- schema_report.c: each returns false, so that a test can end with it -----------------------
 */

bool schema_stop(schema_checker *c, cx_status status);
bool schema_out_of_memory(schema_checker *c);
/* Reports that `keyword` of `node` is not satisfied at a place. */
bool schema_report(schema_checker *c, const schema_node *node, const char *keyword,
                   const schema_place *at, const char *format, ...) CX_PRINTF(5, 6);

/* False, and everything stops, when there were too many. */
bool schema_count_steps(schema_checker *c, uint64_t steps);

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

/* --- schema_check_value.c ----------------------------------------------------------------------
 */

/* The tests that look at one value and need no other schema; `test` is of one of those kinds. */
bool schema_check_value(schema_checker *c, const schema_node *node, const schema_test *test,
                        const schema_visit *v);
/* False also when it stopped. */
bool schema_match(schema_checker *c, const cx_pattern *pattern, cx_str text);

#endif

/*
 * schema_check.c - applying a compiled schema to a value: what leads from one schema to others.
 */
#include <string.h>

#include "schema/schema_checker.h"
#include "schema/schema_quick.h"

static bool check_node(schema_checker *c, const schema_node *node, const schema_visit *v);

static cx_json string_of(cx_str text)
{
    cx_json value = {.type = CX_JSON_STRING, .count = (uint32_t)text.size};
    value.text = text.data;
    return value;
}

/* --- notes ------------------------------------------------------------------------------------ */

static bool begin_notes(schema_checker *c, const cx_json *value, schema_notes *out)
{
    bool holds = value->type == CX_JSON_ARRAY || value->type == CX_JSON_OBJECT;
    *out = (schema_notes){NULL, holds ? value->count : 0};
    if (out->count == 0)
        return true;
    out->seen = cx_arena_push(&c->scratch, out->count, 1);
    if (out->seen == NULL)
        return schema_out_of_memory(c);
    memset(out->seen, 0, out->count);
    return schema_count_steps(c, out->count / 16);
}

static void add_notes(schema_notes *into, const schema_notes *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        into->seen[i] |= from->seen[i];
}

static void note_evaluated(const schema_visit *v, uint32_t index)
{
    if (v->notes != NULL)
        v->notes->seen[index] = 1;
}

/*
 * A schema for the same value that may fail without harm (S2): quiet, with notes of its own that
 * count only when it matches (S3).
 */
static bool try_node(schema_checker *c, const schema_node *node, const schema_visit *v)
{
    schema_notes mine;
    schema_visit inner = *v;
    cx_arena_mark mark = cx_arena_mark_now(&c->scratch);
    if (v->notes != NULL) {
        if (!begin_notes(c, v->value, &mine))
            return false;
        inner.notes = &mine;
    }
    c->quiet++;
    bool holds = check_node(c, node, &inner);
    c->quiet--;
    if (holds && v->notes != NULL)
        add_notes(v->notes, &mine);
    cx_arena_reset(&c->scratch, mark);
    return holds && !c->stop;
}

static bool check_at(schema_checker *c, const schema_node *node, const schema_visit *v,
                     const cx_json *value, cx_str name, uint32_t index)
{
    if (node->only_ref != NULL)
        node = node->only_ref; /* one step: circles are left to the depth */
    if ((schema_types_of(value) & node->only_types) != 0)
        return schema_count_steps(c, 1);
    schema_place at = {v->at, name, index};
    schema_visit inner = {value, &at, v->scope, NULL};
    return check_node(c, node, &inner);
}

/* --- arrays ----------------------------------------------------------------------------------- */

static bool check_items(schema_checker *c, const schema_test *test, const schema_visit *v)
{
    bool holds = true;
    if (v->value->type != CX_JSON_ARRAY)
        return true;
    for (uint32_t i = 0; i < v->value->count; i++) {
        const schema_node *node = i < test->count ? test->prefix[i] : test->rest;
        if (node == NULL)
            break;
        note_evaluated(v, i);
        if (!check_at(c, node, v, &v->value->items[i], cx_str_from(NULL, 0), i)) {
            holds = false;
            if (!schema_wants_errors(c) || c->stop)
                break;
        }
    }
    return holds;
}

SCHEMA_APART static bool check_contains(schema_checker *c, const schema_node *node,
                                        const schema_test *test, const schema_visit *v)
{
    uint64_t found = 0;
    if (v->value->type != CX_JSON_ARRAY)
        return true;
    for (uint32_t i = 0; i < v->value->count && !c->stop; i++) {
        c->quiet++;
        bool holds = check_at(c, test->contains, v, &v->value->items[i], cx_str_from(NULL, 0), i);
        c->quiet--;
        if (!holds)
            continue;
        found++;
        /* draft-07 and before had no unevaluatedItems, so this is 2020-12's. */
        note_evaluated(v, i);
    }
    if (c->stop)
        return false;
    if (found < test->contains_min)
        return schema_report(
            c, node, test->contains_min == 1 ? "contains" : "minContains", v->at,
            "%llu of %u items match what \"contains\" asks, expected at least %llu",
            (unsigned long long)found, (unsigned)v->value->count,
            (unsigned long long)test->contains_min);
    if (found > test->contains_max)
        return schema_report(c, node, "maxContains", v->at,
                             "%llu of %u items match what \"contains\" asks, expected at most %llu",
                             (unsigned long long)found, (unsigned)v->value->count,
                             (unsigned long long)test->contains_max);
    return true;
}

/* --- objects ---------------------------------------------------------------------------------- */

SCHEMA_APART static bool check_names(schema_checker *c, const schema_node *node,
                                     const char *keyword, const cx_json *names,
                                     const schema_visit *v, cx_str because)
{
    bool holds = true;
    if (!schema_count_steps(c, names->count))
        return false;
    for (uint32_t i = 0; i < names->count; i++) {
        if (cx_json_get(v->value, cx_json_text(&names->items[i])) != NULL)
            continue;
        holds = false;
        if (!schema_wants_errors(c))
            break;
        schema_shown name = schema_show(&names->items[i]);
        cx_json reason = string_of(because);
        schema_shown other = schema_show(&reason);
        if (because.data == NULL)
            (void)schema_report(c, node, keyword, v->at, "the member %s is missing", name.text);
        else
            (void)schema_report(c, node, keyword, v->at, "the member %s is missing, which %s needs",
                                name.text, other.text);
    }
    return holds;
}

/* Both sides are sorted: one walk; the missing name is looked for only when one is missing. */
static bool check_required(schema_checker *c, const schema_node *node, const schema_test *test,
                           const schema_visit *v)
{
    if (v->value->type != CX_JSON_OBJECT)
        return true;
    uint32_t at = 0, found = 0;
    for (; found < test->count && at < v->value->count; at++) {
        int order =
            schema_name_order(cx_json_text(&v->value->members[at].name), test->names[found]);
        if (order > 0)
            break;
        found += order == 0;
    }
    return found == test->count ||
           check_names(c, node, "required", test->value, v, cx_str_from(NULL, 0));
}

static bool check_dependencies(schema_checker *c, const schema_node *node, const schema_test *test,
                               const schema_visit *v)
{
    bool holds = true;
    if (v->value->type != CX_JSON_OBJECT)
        return true;
    for (uint32_t i = 0; i < test->count && !c->stop; i++) {
        const schema_dependency *dependency = &test->dependencies[i];
        if (cx_json_get(v->value, dependency->name) == NULL)
            continue;
        bool one =
            dependency->node != NULL
                ? check_node(c, dependency->node, v)
                : check_names(c, node, test->keyword, dependency->required, v, dependency->name);
        holds = holds && one;
        if (!holds && !schema_wants_errors(c))
            break;
    }
    return holds;
}

/* Both sides are sorted by name: one walk. */
static bool check_properties(schema_checker *c, const schema_test *test, const schema_visit *v)
{
    const schema_properties *properties = test->properties;
    uint32_t named = 0;
    bool holds = true;
    if (v->value->type != CX_JSON_OBJECT)
        return true;
    for (uint32_t i = 0; i < v->value->count; i++) {
        const cx_json_member *member = &v->value->members[i];
        cx_str name = cx_json_text(&member->name);
        bool known = false, one = true;
        int order = 1;
        while (named < properties->named_count &&
               (order = schema_name_order(properties->named[named].name, name)) < 0)
            named++;
        if (named < properties->named_count && order == 0) {
            known = true;
            one = check_at(c, properties->named[named].node, v, &member->value, name, 0);
        }
        for (uint32_t k = 0; k < properties->pattern_count && !c->stop; k++) {
            if (!schema_match(c, properties->patterns[k].pattern, name))
                continue;
            known = true;
            one = check_at(c, properties->patterns[k].node, v, &member->value, name, 0) && one;
        }
        if (!known && properties->additional != NULL) {
            known = true;
            one = check_at(c, properties->additional, v, &member->value, name, 0);
        }
        if (known)
            note_evaluated(v, i);
        holds = holds && one;
        if (c->stop || (!holds && !schema_wants_errors(c)))
            return false;
    }
    return holds;
}

SCHEMA_APART static bool check_property_names(schema_checker *c, const schema_node *node,
                                              const schema_test *test, const schema_visit *v)
{
    bool holds = true;
    if (v->value->type != CX_JSON_OBJECT)
        return true;
    for (uint32_t i = 0; i < v->value->count && !c->stop; i++) {
        const cx_json *name = &v->value->members[i].name;
        c->quiet++;
        bool one = check_at(c, test->node, v, name, cx_json_text(name), 0);
        c->quiet--;
        if (one)
            continue;
        holds = false;
        if (!schema_wants_errors(c))
            break;
        schema_shown found = schema_show(name);
        (void)schema_report(c, node, "propertyNames", v->at,
                            "%s is no name that a member may have here", found.text);
    }
    return holds && !c->stop;
}

/* --- schemas of schemas ----------------------------------------------------------------------- */

static bool check_all(schema_checker *c, const schema_test *test, const schema_visit *v)
{
    bool holds = true;
    for (uint32_t i = 0; i < test->count && !c->stop; i++) {
        holds = check_node(c, test->nodes[i], v) && holds;
        if (!holds && !schema_wants_errors(c))
            break;
    }
    return holds;
}

SCHEMA_APART static bool check_any(schema_checker *c, const schema_node *node,
                                   const schema_test *test, const schema_visit *v)
{
    bool holds = false;
    for (uint32_t i = 0; i < test->count && !c->stop; i++) {
        holds = try_node(c, test->nodes[i], v) || holds;
        if (holds && v->notes == NULL)
            break;
    }
    if (holds || c->stop)
        return holds && !c->stop;
    return schema_report(c, node, "anyOf", v->at, "none of the %u alternatives matches",
                         (unsigned)test->count);
}

SCHEMA_APART static bool check_one(schema_checker *c, const schema_node *node,
                                   const schema_test *test, const schema_visit *v)
{
    uint32_t first = 0, matching = 0;
    for (uint32_t i = 0; i < test->count && !c->stop; i++) {
        if (!try_node(c, test->nodes[i], v))
            continue;
        if (++matching == 2)
            return schema_report(c, node, "oneOf", v->at,
                                 "alternatives %u and %u both match, expected exactly one",
                                 (unsigned)first, (unsigned)i);
        first = i;
    }
    if (c->stop)
        return false;
    return matching == 1 ||
           schema_report(c, node, "oneOf", v->at, "none of the %u alternatives matches",
                         (unsigned)test->count);
}

SCHEMA_APART static bool check_not(schema_checker *c, const schema_node *node,
                                   const schema_test *test, const schema_visit *v)
{
    schema_visit inner = *v;
    inner.notes = NULL;
    bool matches = try_node(c, test->node, &inner);
    if (c->stop)
        return false;
    return !matches || schema_report(c, node, "not", v->at, "matches what it must not");
}

SCHEMA_APART static bool check_if(schema_checker *c, const schema_test *test, const schema_visit *v)
{
    bool holds = try_node(c, test->condition, v);
    if (c->stop)
        return false;
    const schema_node *next = holds ? test->then_node : test->else_node;
    return next == NULL || check_node(c, next, v);
}

static bool check_dynamic(schema_checker *c, const schema_test *test, const schema_visit *v)
{
    const schema_node *target = test->target;
    /* The outermost resource that has the anchor decides; it is met last. */
    for (const schema_scope *s = v->scope; test->dynamic.size != 0 && s != NULL; s = s->outer)
        for (const schema_dynamic *d = s->resource->dynamics; d != NULL; d = d->next)
            if (cx_str_eq(d->name, test->dynamic))
                target = d->node;
    return check_node(c, target, v);
}

SCHEMA_APART static bool check_unevaluated(schema_checker *c, const schema_test *test,
                                           const schema_visit *v)
{
    bool holds = true;
    bool is_items = test->kind == TEST_UNEVALUATED_ITEMS;
    if (v->value->type != (is_items ? CX_JSON_ARRAY : CX_JSON_OBJECT))
        return true;
    for (uint32_t i = 0; i < v->value->count; i++) {
        if (v->notes->seen[i] != 0)
            continue;
        v->notes->seen[i] = 1;
        const cx_json *value = is_items ? &v->value->items[i] : &v->value->members[i].value;
        cx_str name = is_items ? cx_str_from(NULL, 0) : cx_json_text(&v->value->members[i].name);
        if (check_at(c, test->node, v, value, name, i))
            continue;
        holds = false;
        if (!schema_wants_errors(c) || c->stop)
            break;
    }
    return holds;
}

/* --- one node --------------------------------------------------------------------------------- */

static bool check_test(schema_checker *c, const schema_node *node, const schema_test *test,
                       const schema_visit *v)
{
    switch ((schema_kind)test->kind) {
    case TEST_ITEMS: return check_items(c, test, v);
    case TEST_CONTAINS: return check_contains(c, node, test, v);
    case TEST_REQUIRED: return check_required(c, node, test, v);
    case TEST_DEPENDENT_REQUIRED:
    case TEST_DEPENDENT_SCHEMA: return check_dependencies(c, node, test, v);
    case TEST_PROPERTIES: return check_properties(c, test, v);
    case TEST_PROPERTY_NAMES: return check_property_names(c, node, test, v);
    case TEST_REF: return check_node(c, test->target, v);
    case TEST_DYNAMIC_REF: return check_dynamic(c, test, v);
    case TEST_ALL_OF: return check_all(c, test, v);
    case TEST_ANY_OF: return check_any(c, node, test, v);
    case TEST_ONE_OF: return check_one(c, node, test, v);
    case TEST_NOT: return check_not(c, node, test, v);
    case TEST_IF: return check_if(c, test, v);
    case TEST_UNEVALUATED_ITEMS:
    case TEST_UNEVALUATED_PROPERTIES: return check_unevaluated(c, test, v);
    default: return schema_check_value(c, node, test, v);
    }
}

static bool check_tests(schema_checker *c, const schema_node *node, const schema_visit *v)
{
    bool holds = true;
    for (uint32_t i = 0; i < node->test_count; i++) {
        if (!schema_count_steps(c, 1))
            return false;
        holds = check_test(c, node, &node->tests[i], v) && holds;
        if (c->stop || (!holds && !schema_wants_errors(c)))
            return false;
    }
    return holds;
}

/* `unevaluated*` asks about what the other keywords of the same schema looked at, also where
 * another check asks. */
SCHEMA_APART static bool check_noted(schema_checker *c, const schema_node *node,
                                     const schema_visit *v)
{
    schema_notes mine;
    schema_visit inner = *v;
    cx_arena_mark mark = cx_arena_mark_now(&c->scratch);
    if (!begin_notes(c, v->value, &mine))
        return false;
    inner.notes = &mine;
    bool holds = check_tests(c, node, &inner);
    if (v->notes != NULL)
        add_notes(v->notes, &mine);
    cx_arena_reset(&c->scratch, mark);
    return holds;
}

SCHEMA_APART static bool rejects_all(schema_checker *c, const schema_node *node,
                                     const schema_visit *v)
{
    const char *keyword = node->keyword == NULL ? "false" : node->keyword;
    bool is_extra = strcmp(keyword, "additionalProperties") == 0 ||
                    strcmp(keyword, "unevaluatedProperties") == 0;
    cx_json name = string_of(v->at->name.data == NULL ? CX_STR("") : v->at->name);
    schema_shown shown_name = schema_show(&name);
    if (is_extra && v->at->name.data != NULL)
        return schema_report(c, node, keyword, v->at, "the member %s is not known here",
                             shown_name.text);
    return schema_report(c, node, keyword, v->at, "nothing is accepted here");
}

static bool check_node(schema_checker *c, const schema_node *node, const schema_visit *v)
{
    if (node->never)
        return rejects_all(c, node, v);
    if (node->test_count == 0)
        return true;
    if (c->depth >= c->options->depth_max)
        return schema_stop(c,
                           cx_fail_at(c->err, CX_E_LIMIT, "SchemaDepth", CX_NO_OFFSET,
                                      "checking goes more than %u schemas deep; does one refer to "
                                      "itself?",
                                      (unsigned)c->options->depth_max));
    schema_visit inner = *v;
    schema_scope entered = {v->scope, node->resource};
    if (v->scope == NULL || v->scope->resource != node->resource)
        inner.scope = &entered;
    c->depth++;
    bool holds =
        node->wants_evaluated ? check_noted(c, node, &inner) : check_tests(c, node, &inner);
    c->depth--;
    return holds && !c->stop;
}

/* --- the whole -------------------------------------------------------------------------------- */

cx_status cx_schema_check(const cx_schema *schema, const cx_json *instance,
                          const cx_schema_check_options *options, cx_arena *arena,
                          cx_schema_report *out, cx_err *err)
{
    schema_checker c = {.options = options, .arena = arena, .alloc = &schema->alloc, .err = err};
    const schema_place top = {NULL, {NULL, 0}, 0};
    if (schema->root->quick != NULL &&
        schema_quick_holds(schema->root->quick, instance, options->depth_max, options->steps_max)) {
        *out = (cx_schema_report){true, false, NULL, 0};
        return CX_SUCCESS;
    }
    schema_visit v = {instance, &top, NULL, NULL};
    cx_arena_init(&c.scratch, &schema->alloc, 0);
    bool valid = check_node(&c, schema->root, &v);
    if (!c.stop && c.errors.count != 0) {
        cx_schema_error *errors = CX_ARENA_ARRAY(arena, cx_schema_error, c.errors.count);
        if (errors == NULL)
            (void)schema_out_of_memory(&c);
        else
            memcpy(errors, c.errors.items, c.errors.count * sizeof *errors);
        if (errors != NULL)
            *out = (cx_schema_report){valid, c.cut, errors, c.errors.count};
    } else if (!c.stop) {
        *out = (cx_schema_report){valid, c.cut, NULL, 0};
    }
    cx_vec_done(&c.errors, c.alloc);
    cx_arena_done(&c.scratch);
    return c.stop ? c.status : CX_SUCCESS;
}

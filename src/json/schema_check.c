/*
 * schema_check.c - applying a compiled schema to a value.
 *
 *   S1  What a test finds is true, false, or no answer; without an answer everything stops with an
 *       error (c->stop), and nothing is reported.
 *   S2  Inside `not`, `if`, `contains` and the alternatives of anyOf and oneOf nothing is reported:
 *       there c->quiet is above 0, and the first miss ends the node.
 *   S3  Which members and items were looked at (for unevaluated*) is noted only where somebody will
 *       ask; notes of a schema that did not match are thrown away where somebody could still ask.
 *   S4  Every node entered counts against the depth, every test and comparison against the steps.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "json/schema_internal.h"

/* Where in the instance we are; a chain on the stack. */
typedef struct place {
    const struct place *parent;
    cx_str name; /* of a member; data NULL: an item */
    uint32_t index;
} place;

/* The resources entered on the way here, innermost first. */
typedef struct scope {
    const struct scope *outer;
    const schema_resource *resource;
} scope;

/* Which members or items of one value were looked at. */
typedef struct notes {
    uint8_t *seen; /* count flags */
    uint32_t count;
} notes;

typedef struct checker {
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
} checker;

/* What a node is applied to. */
typedef struct visit {
    const cx_json *value;
    const place *at;
    const scope *scope;
    notes *notes; /* NULL: nobody asks */
} visit;

static bool check_node(checker *c, const schema_node *node, const visit *v);

/* --- stopping and reporting ------------------------------------------------------------------- */

static bool stop(checker *c, cx_status status)
{
    if (!c->stop) {
        c->stop = true;
        c->status = status;
    }
    return false;
}

static bool out_of_memory(checker *c)
{
    return stop(c, cx_fail_nomem(c->err));
}

static bool count_steps(checker *c, uint64_t steps)
{
    c->steps += steps;
    if (c->steps <= c->options->steps_max)
        return true;
    return stop(c, cx_fail_at(c->err, CX_E_LIMIT, "SchemaSteps", CX_NO_OFFSET,
                              "checking against the schema takes more than %llu steps",
                              (unsigned long long)c->options->steps_max));
}

static bool wants_errors(const checker *c)
{
    return c->quiet == 0 && c->options->errors_max != 0;
}

static void add_place(cx_buf *out, const place *at)
{
    /* Turned around through an array of pointers: no deeper than the instance. */
    size_t count = 0;
    for (const place *p = at; p->parent != NULL; p = p->parent)
        count++;
    for (size_t i = count; i > 0; i--) {
        const place *p = at;
        for (size_t skip = 1; skip < i; skip++)
            p = p->parent;
        if (p->name.data != NULL) {
            cx_json_pointer_add(out, p->name);
        } else {
            cx_buf_add_byte(out, '/');
            cx_buf_add_u64(out, p->index);
        }
    }
}

static cx_str keep(checker *c, const cx_buf *text)
{
    cx_str kept = {NULL, 0};
    if (cx_failed(cx_buf_check(text, c->err)))
        (void)out_of_memory(c);
    else if ((kept = cx_arena_copy_str(c->arena, cx_buf_str(text))).data == NULL)
        (void)out_of_memory(c);
    return kept;
}

/* Reports that `keyword` of `node` is not satisfied at a place; always false. */
static bool report(checker *c, const schema_node *node, const char *keyword, const place *at,
                   const char *format, ...) CX_PRINTF(5, 6);

static bool report(checker *c, const schema_node *node, const char *keyword, const place *at,
                   const char *format, ...)
{
    if (!wants_errors(c) || c->stop)
        return false;
    if (c->errors.count >= c->options->errors_max) {
        c->cut = true;
        return false;
    }
    cx_schema_error error = {.keyword = keyword};
    cx_buf text;
    cx_buf_init(&text, c->alloc);
    add_place(&text, at);
    error.instance = keep(c, &text);
    cx_buf_clear(&text);
    schema_node_location(node, &text);
    if (!node->never)
        cx_json_pointer_add(&text, cx_str_z(keyword));
    error.schema = keep(c, &text);
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    cx_buf_clear(&text);
    cx_buf_add_z(&text, message);
    error.message = keep(c, &text);
    cx_buf_done(&text);
    cx_schema_error *slot = c->stop ? NULL : cx_vec_push(&c->errors, c->alloc);
    if (slot == NULL)
        return out_of_memory(c);
    *slot = error;
    return false;
}

#define SHOWN_MAX 60

/* A short form of a value for a sentence, terminated, static length; never cuts a character. */
typedef struct shown {
    char text[SHOWN_MAX + 8];
} shown;

static shown show(const cx_json *value)
{
    shown out;
    cx_str text = {NULL, 0};
    switch ((cx_json_type)value->type) {
    case CX_JSON_NULL:
        text = CX_STR("null");
        break;
    case CX_JSON_FALSE:
        text = CX_STR("false");
        break;
    case CX_JSON_TRUE:
        text = CX_STR("true");
        break;
    case CX_JSON_ARRAY:
        (void)snprintf(out.text, sizeof out.text, "an array of %u", (unsigned)value->count);
        return out;
    case CX_JSON_OBJECT:
        (void)snprintf(out.text, sizeof out.text, "an object with %u members",
                       (unsigned)value->count);
        return out;
    default:
        text = cx_json_text(value);
        break;
    }
    bool is_string = value->type == CX_JSON_STRING, is_cut = text.size > SHOWN_MAX;
    size_t size = is_cut ? SHOWN_MAX : text.size;
    while (is_cut && size > 0 && ((uint8_t)text.data[size] & 0xC0) == 0x80)
        size--;
    size_t used = 0;
    if (is_string)
        out.text[used++] = '"';
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        out.text[used++] = byte < 0x20 || byte == 0x7F || byte == '"' ? '?' : (char)byte;
    }
    if (is_cut) {
        memcpy(out.text + used, "..", 2);
        used += 2;
    }
    if (is_string)
        out.text[used++] = '"';
    out.text[used] = '\0';
    return out;
}

static cx_json string_of(cx_str text)
{
    cx_json value = {.type = CX_JSON_STRING, .count = (uint32_t)text.size};
    value.text = text.data;
    return value;
}

/* --- notes ------------------------------------------------------------------------------------ */

static bool begin_notes(checker *c, const cx_json *value, notes *out)
{
    bool holds = value->type == CX_JSON_ARRAY || value->type == CX_JSON_OBJECT;
    *out = (notes){NULL, holds ? value->count : 0};
    if (out->count == 0)
        return true;
    out->seen = cx_arena_push(&c->scratch, out->count, 1);
    if (out->seen == NULL)
        return out_of_memory(c);
    memset(out->seen, 0, out->count);
    return count_steps(c, out->count / 16);
}

static void add_notes(notes *into, const notes *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        into->seen[i] |= from->seen[i];
}

static void note(const visit *v, uint32_t index)
{
    if (v->notes != NULL)
        v->notes->seen[index] = 1;
}

/*
 * A schema for the same value that may fail without harm (S2): quiet, with notes of its own that
 * count only when it matches (S3).
 */
static bool try_node(checker *c, const schema_node *node, const visit *v)
{
    notes mine;
    visit inner = *v;
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

static bool check_at(checker *c, const schema_node *node, const visit *v, const cx_json *value,
                     cx_str name, uint32_t index)
{
    place at = {v->at, name, index};
    visit inner = {value, &at, v->scope, NULL};
    return check_node(c, node, &inner);
}

/* --- plain values ----------------------------------------------------------------------------- */

static unsigned types_of(const cx_json *value)
{
    switch ((cx_json_type)value->type) {
    case CX_JSON_NULL:
        return TYPE_NULL;
    case CX_JSON_FALSE:
    case CX_JSON_TRUE:
        return TYPE_BOOLEAN;
    case CX_JSON_INT:
        return TYPE_INTEGER | TYPE_NUMBER;
    case CX_JSON_DOUBLE: {
        cx_decimal number = cx_decimal_read(cx_json_text(value));
        return cx_decimal_is_integer(&number) ? TYPE_INTEGER | TYPE_NUMBER : TYPE_NUMBER;
    }
    case CX_JSON_STRING:
        return TYPE_STRING;
    case CX_JSON_ARRAY:
        return TYPE_ARRAY;
    case CX_JSON_OBJECT:
        return TYPE_OBJECT;
    }
    return 0;
}

static const char *const TYPE_NAMES[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};

static bool check_type(checker *c, const schema_node *node, const schema_test *test, const visit *v)
{
    if ((types_of(v->value) & test->types) != 0)
        return true;
    if (!wants_errors(c))
        return false;
    char names[80] = "";
    size_t used = 0;
    for (unsigned i = 0; i < 7; i++)
        if ((test->types >> i & 1) != 0)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used == 0 ? "" : " or ", TYPE_NAMES[i]);
    return report(c, node, "type", v->at, "found %s, expected %s", cx_json_type_name(v->value),
                  names);
}

static bool check_enum(checker *c, const schema_node *node, const schema_test *test, const visit *v)
{
    uint64_t steps = 0;
    for (uint32_t i = 0; i < test->value->count; i++)
        if (schema_equal(v->value, &test->value->items[i], &steps))
            return count_steps(c, steps);
    if (!count_steps(c, steps) || !wants_errors(c))
        return false;
    cx_buf list;
    cx_buf_init(&list, c->alloc);
    for (uint32_t i = 0; i < test->value->count && list.size < 200; i++) {
        shown item = show(&test->value->items[i]);
        cx_buf_printf(&list, "%s%s", i == 0 ? "" : ", ", item.text);
    }
    if (list.size >= 200)
        cx_buf_add_z(&list, ", ..");
    shown found = show(v->value);
    const char *text = cx_buf_z(&list);
    bool result = text == NULL ? out_of_memory(c)
                               : report(c, node, "enum", v->at, "found %s, expected one of %s",
                                        found.text, text);
    cx_buf_done(&list);
    return result;
}

static bool check_const(checker *c, const schema_node *node, const schema_test *test,
                        const visit *v)
{
    uint64_t steps = 0;
    bool equal = schema_equal(v->value, test->value, &steps);
    if (!count_steps(c, steps))
        return false;
    if (equal)
        return true;
    shown found = show(v->value), expected = show(test->value);
    return report(c, node, "const", v->at, "found %s, expected %s", found.text, expected.text);
}

static bool check_number(checker *c, const schema_node *node, const schema_test *test,
                         const visit *v)
{
    static const char *const SAYS[] = {"at least", "at most", "more than", "less than",
                                       "a multiple of"};
    if (!cx_json_is_number(v->value))
        return true;
    cx_decimal number = cx_decimal_read(cx_json_text(v->value));
    if (!count_steps(c, 1 + number.count / 8))
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
    shown found = show(v->value), limit = show(test->value);
    return report(c, node, test->keyword, v->at, "found %s, expected %s %s", found.text,
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
static bool check_size(checker *c, const schema_node *node, const schema_test *test, const visit *v,
                       uint64_t size, bool is_minimum, const char *what)
{
    if (is_minimum ? size >= test->limit : size <= test->limit)
        return true;
    return report(c, node, test->keyword, v->at, "found %llu %s, expected at %s %llu",
                  (unsigned long long)size, what, is_minimum ? "least" : "most",
                  (unsigned long long)test->limit);
}

static bool check_length(checker *c, const schema_node *node, const schema_test *test,
                         const visit *v)
{
    if (v->value->type != CX_JSON_STRING)
        return true;
    bool is_minimum = test->kind == TEST_MIN_LENGTH;
    return check_size(c, node, test, v, code_points(cx_json_text(v->value)), is_minimum,
                      "characters");
}

static bool match(checker *c, const cx_pattern *pattern, cx_str text)
{
    bool found = false;
    if (!count_steps(c, 1 + text.size / 64))
        return false;
    cx_status status = cx_pattern_match(pattern, text, &found, c->err);
    if (cx_failed(status))
        return stop(c, status);
    return found;
}

static bool check_pattern(checker *c, const schema_node *node, const schema_test *test,
                          const visit *v)
{
    if (v->value->type != CX_JSON_STRING || match(c, test->pattern, cx_json_text(v->value)))
        return true;
    shown found = show(v->value), pattern = show(test->value);
    return report(c, node, "pattern", v->at, "%s does not match the pattern %s", found.text,
                  pattern.text);
}

static bool check_format(checker *c, const schema_node *node, const schema_test *test,
                         const visit *v)
{
    cx_schema_format asked = c->options->format;
    bool asserted = test->asserted || asked == CX_SCHEMA_FORMAT_ALL ||
                    (asked == CX_SCHEMA_FORMAT_DATE_TIME && schema_format_is_date_time(test->format));
    if (!asserted || test->format < 0 || v->value->type != CX_JSON_STRING)
        return true;
    bool holds = true;
    cx_status status = schema_format_holds(test->format, cx_json_text(v->value), &holds, c->err);
    if (cx_failed(status))
        return stop(c, status);
    if (holds)
        return true;
    shown found = show(v->value), format = show(test->value);
    return report(c, node, "format", v->at, "%s is no %s", found.text, format.text);
}

/* --- arrays ----------------------------------------------------------------------------------- */

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
static bool find_equal(checker *c, const cx_json *array, uint32_t *out_first, uint32_t *out_second)
{
    uint64_t steps = 0;
    bool found = false;
    cx_arena_mark mark = cx_arena_mark_now(&c->scratch);
    hashed *list = CX_ARENA_ARRAY(&c->scratch, hashed, array->count);
    if (list == NULL)
        return out_of_memory(c);
    for (uint32_t i = 0; i < array->count; i++)
        list[i] = (hashed){schema_hash(&array->items[i], 0), i};
    qsort(list, array->count, sizeof *list, compare_hashes);
    for (uint32_t i = 0; i < array->count && !found && !c->stop; i++)
        for (uint32_t k = i + 1; k < array->count && list[k].hash == list[i].hash && !found; k++) {
            found = schema_equal(&array->items[list[i].index], &array->items[list[k].index], &steps);
            *out_first = list[i].index;
            *out_second = list[k].index;
            if (!count_steps(c, steps))
                break;
            steps = 0;
        }
    cx_arena_reset(&c->scratch, mark);
    return found && count_steps(c, array->count);
}

static bool check_unique(checker *c, const schema_node *node, const schema_test *test,
                         const visit *v)
{
    uint32_t first = 0, second = 0;
    if (v->value->type != CX_JSON_ARRAY || v->value->count < 2 || test->value->type != CX_JSON_TRUE)
        return true;
    if (!find_equal(c, v->value, &first, &second))
        return !c->stop;
    return report(c, node, "uniqueItems", v->at, "items %u and %u are equal",
                  (unsigned)(first < second ? first : second),
                  (unsigned)(first < second ? second : first));
}

static bool check_items(checker *c, const schema_test *test, const visit *v)
{
    bool holds = true;
    if (v->value->type != CX_JSON_ARRAY)
        return true;
    for (uint32_t i = 0; i < v->value->count; i++) {
        const schema_node *node = i < test->count ? test->prefix[i] : test->rest;
        if (node == NULL)
            break;
        note(v, i);
        if (!check_at(c, node, v, &v->value->items[i], cx_str_from(NULL, 0), i)) {
            holds = false;
            if (!wants_errors(c) || c->stop)
                break;
        }
    }
    return holds;
}

static bool check_contains(checker *c, const schema_node *node, const schema_test *test,
                           const visit *v)
{
    uint64_t found = 0;
    if (v->value->type != CX_JSON_ARRAY)
        return true;
    for (uint32_t i = 0; i < v->value->count && !c->stop; i++) {
        c->quiet++;
        bool holds =
            check_at(c, test->contains, v, &v->value->items[i], cx_str_from(NULL, 0), i);
        c->quiet--;
        if (!holds)
            continue;
        found++;
        /* draft-07 and before had no unevaluatedItems, so this is 2020-12's. */
        note(v, i);
    }
    if (c->stop)
        return false;
    if (found < test->contains_min)
        return report(c, node, test->contains_min == 1 ? "contains" : "minContains", v->at,
                      "%llu of %u items match what \"contains\" asks, expected at least %llu",
                      (unsigned long long)found, (unsigned)v->value->count,
                      (unsigned long long)test->contains_min);
    if (found > test->contains_max)
        return report(c, node, "maxContains", v->at,
                      "%llu of %u items match what \"contains\" asks, expected at most %llu",
                      (unsigned long long)found, (unsigned)v->value->count,
                      (unsigned long long)test->contains_max);
    return true;
}

/* --- objects ---------------------------------------------------------------------------------- */

static bool check_names(checker *c, const schema_node *node, const char *keyword,
                        const cx_json *names, const visit *v, cx_str because)
{
    bool holds = true;
    if (!count_steps(c, names->count))
        return false;
    for (uint32_t i = 0; i < names->count; i++) {
        if (cx_json_get(v->value, cx_json_text(&names->items[i])) != NULL)
            continue;
        holds = false;
        if (!wants_errors(c))
            break;
        shown name = show(&names->items[i]);
        cx_json reason = string_of(because);
        shown other = show(&reason);
        if (because.data == NULL)
            (void)report(c, node, keyword, v->at, "the member %s is missing", name.text);
        else
            (void)report(c, node, keyword, v->at, "the member %s is missing, which %s needs",
                         name.text, other.text);
    }
    return holds;
}

static bool check_required(checker *c, const schema_node *node, const schema_test *test,
                           const visit *v)
{
    return v->value->type != CX_JSON_OBJECT ||
           check_names(c, node, "required", test->value, v, cx_str_from(NULL, 0));
}

static bool check_dependencies(checker *c, const schema_node *node, const schema_test *test,
                               const visit *v)
{
    bool holds = true;
    if (v->value->type != CX_JSON_OBJECT)
        return true;
    for (uint32_t i = 0; i < test->count && !c->stop; i++) {
        const schema_dependency *dependency = &test->dependencies[i];
        if (cx_json_get(v->value, dependency->name) == NULL)
            continue;
        bool one = dependency->node != NULL
                       ? check_node(c, dependency->node, v)
                       : check_names(c, node, test->keyword, dependency->required, v,
                                     dependency->name);
        holds = holds && one;
        if (!holds && !wants_errors(c))
            break;
    }
    return holds;
}

/* Both sides are sorted by name: one walk. */
static bool check_properties(checker *c, const schema_test *test, const visit *v)
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
        while (named < properties->named_count && cx_str_cmp(properties->named[named].name, name) < 0)
            named++;
        if (named < properties->named_count && cx_str_eq(properties->named[named].name, name)) {
            known = true;
            one = check_at(c, properties->named[named].node, v, &member->value, name, 0);
        }
        for (uint32_t k = 0; k < properties->pattern_count && !c->stop; k++) {
            if (!match(c, properties->patterns[k].pattern, name))
                continue;
            known = true;
            one = check_at(c, properties->patterns[k].node, v, &member->value, name, 0) && one;
        }
        if (!known && properties->additional != NULL) {
            known = true;
            one = check_at(c, properties->additional, v, &member->value, name, 0);
        }
        if (known)
            note(v, i);
        holds = holds && one;
        if (c->stop || (!holds && !wants_errors(c)))
            return false;
    }
    return holds;
}

static bool check_property_names(checker *c, const schema_node *node, const schema_test *test,
                                 const visit *v)
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
        if (!wants_errors(c))
            break;
        shown found = show(name);
        (void)report(c, node, "propertyNames", v->at, "%s is no name that a member may have here",
                     found.text);
    }
    return holds && !c->stop;
}

/* --- schemas of schemas ----------------------------------------------------------------------- */

static bool check_all(checker *c, const schema_test *test, const visit *v)
{
    bool holds = true;
    for (uint32_t i = 0; i < test->count && !c->stop; i++) {
        holds = check_node(c, test->nodes[i], v) && holds;
        if (!holds && !wants_errors(c))
            break;
    }
    return holds;
}

static bool check_any(checker *c, const schema_node *node, const schema_test *test, const visit *v)
{
    bool holds = false;
    for (uint32_t i = 0; i < test->count && !c->stop; i++) {
        holds = try_node(c, test->nodes[i], v) || holds;
        if (holds && v->notes == NULL)
            break;
    }
    if (holds || c->stop)
        return holds && !c->stop;
    return report(c, node, "anyOf", v->at, "none of the %u alternatives matches",
                  (unsigned)test->count);
}

static bool check_one(checker *c, const schema_node *node, const schema_test *test, const visit *v)
{
    uint32_t first = 0, matching = 0;
    for (uint32_t i = 0; i < test->count && !c->stop; i++) {
        if (!try_node(c, test->nodes[i], v))
            continue;
        if (++matching == 2)
            return report(c, node, "oneOf", v->at,
                          "alternatives %u and %u both match, expected exactly one",
                          (unsigned)first, (unsigned)i);
        first = i;
    }
    if (c->stop)
        return false;
    return matching == 1 || report(c, node, "oneOf", v->at, "none of the %u alternatives matches",
                                   (unsigned)test->count);
}

static bool check_not(checker *c, const schema_node *node, const schema_test *test, const visit *v)
{
    visit inner = *v;
    inner.notes = NULL;
    bool matches = try_node(c, test->node, &inner);
    if (c->stop)
        return false;
    return !matches || report(c, node, "not", v->at, "matches what it must not");
}

static bool check_if(checker *c, const schema_test *test, const visit *v)
{
    bool holds = try_node(c, test->condition, v);
    if (c->stop)
        return false;
    const schema_node *next = holds ? test->then_node : test->else_node;
    return next == NULL || check_node(c, next, v);
}

static bool check_dynamic(checker *c, const schema_test *test, const visit *v)
{
    const schema_node *target = test->target;
    /* The outermost resource that has the anchor decides; it is met last. */
    for (const scope *s = v->scope; test->dynamic.size != 0 && s != NULL; s = s->outer)
        for (const schema_dynamic *d = s->resource->dynamics; d != NULL; d = d->next)
            if (cx_str_eq(d->name, test->dynamic))
                target = d->node;
    return check_node(c, target, v);
}

static bool check_unevaluated(checker *c, const schema_test *test, const visit *v)
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
        if (!wants_errors(c) || c->stop)
            break;
    }
    return holds;
}

/* --- one node --------------------------------------------------------------------------------- */

static bool check_test(checker *c, const schema_node *node, const schema_test *test, const visit *v)
{
    bool is_array = v->value->type == CX_JSON_ARRAY, is_object = v->value->type == CX_JSON_OBJECT;
    switch ((schema_kind)test->kind) {
    case TEST_TYPE:
        return check_type(c, node, test, v);
    case TEST_ENUM:
        return check_enum(c, node, test, v);
    case TEST_CONST:
        return check_const(c, node, test, v);
    case TEST_MINIMUM:
    case TEST_MAXIMUM:
    case TEST_EXCLUSIVE_MINIMUM:
    case TEST_EXCLUSIVE_MAXIMUM:
    case TEST_MULTIPLE_OF:
        return check_number(c, node, test, v);
    case TEST_MIN_LENGTH:
    case TEST_MAX_LENGTH:
        return check_length(c, node, test, v);
    case TEST_PATTERN:
        return check_pattern(c, node, test, v);
    case TEST_FORMAT:
        return check_format(c, node, test, v);
    case TEST_MIN_ITEMS:
    case TEST_MAX_ITEMS:
        return !is_array || check_size(c, node, test, v, v->value->count,
                                       test->kind == TEST_MIN_ITEMS, "items");
    case TEST_MIN_PROPERTIES:
    case TEST_MAX_PROPERTIES:
        return !is_object || check_size(c, node, test, v, v->value->count,
                                        test->kind == TEST_MIN_PROPERTIES, "members");
    case TEST_UNIQUE_ITEMS:
        return check_unique(c, node, test, v);
    case TEST_ITEMS:
        return check_items(c, test, v);
    case TEST_CONTAINS:
        return check_contains(c, node, test, v);
    case TEST_REQUIRED:
        return check_required(c, node, test, v);
    case TEST_DEPENDENT_REQUIRED:
    case TEST_DEPENDENT_SCHEMA:
        return check_dependencies(c, node, test, v);
    case TEST_PROPERTIES:
        return check_properties(c, test, v);
    case TEST_PROPERTY_NAMES:
        return check_property_names(c, node, test, v);
    case TEST_REF:
        return check_node(c, test->target, v);
    case TEST_DYNAMIC_REF:
        return check_dynamic(c, test, v);
    case TEST_ALL_OF:
        return check_all(c, test, v);
    case TEST_ANY_OF:
        return check_any(c, node, test, v);
    case TEST_ONE_OF:
        return check_one(c, node, test, v);
    case TEST_NOT:
        return check_not(c, node, test, v);
    case TEST_IF:
        return check_if(c, test, v);
    case TEST_UNEVALUATED_ITEMS:
    case TEST_UNEVALUATED_PROPERTIES:
        return check_unevaluated(c, test, v);
    }
    return false;
}

static bool check_tests(checker *c, const schema_node *node, const visit *v)
{
    bool holds = true;
    for (uint32_t i = 0; i < node->test_count; i++) {
        if (!count_steps(c, 1))
            return false;
        holds = check_test(c, node, &node->tests[i], v) && holds;
        if (c->stop || (!holds && !wants_errors(c)))
            return false;
    }
    return holds;
}

/* `unevaluated*` asks about what the other keywords of the same schema looked at, wherever else
 * somebody asks too. */
static bool check_noted(checker *c, const schema_node *node, const visit *v)
{
    notes mine;
    visit inner = *v;
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

static bool refuse_all(checker *c, const schema_node *node, const visit *v)
{
    const char *keyword = node->keyword == NULL ? "false" : node->keyword;
    bool is_extra = strcmp(keyword, "additionalProperties") == 0 ||
                    strcmp(keyword, "unevaluatedProperties") == 0;
    cx_json name = string_of(v->at->name.data == NULL ? CX_STR("") : v->at->name);
    shown shown_name = show(&name);
    if (is_extra && v->at->name.data != NULL)
        return report(c, node, keyword, v->at, "the member %s is not known here", shown_name.text);
    return report(c, node, keyword, v->at, "nothing is accepted here");
}

static bool check_node(checker *c, const schema_node *node, const visit *v)
{
    if (node->never)
        return refuse_all(c, node, v);
    if (node->test_count == 0)
        return true;
    if (c->depth >= c->options->depth_max)
        return stop(c, cx_fail_at(c->err, CX_E_LIMIT, "SchemaDepth", CX_NO_OFFSET,
                                  "checking goes more than %u schemas deep; does one refer to "
                                  "itself?",
                                  (unsigned)c->options->depth_max));
    visit inner = *v;
    scope entered = {v->scope, node->resource};
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
    checker c = {.options = options, .arena = arena, .alloc = &schema->alloc, .err = err};
    const place top = {NULL, {NULL, 0}, 0};
    visit v = {instance, &top, NULL, NULL};
    cx_arena_init(&c.scratch, &schema->alloc, 0);
    bool valid = check_node(&c, schema->root, &v);
    if (!c.stop && c.errors.count != 0) {
        cx_schema_error *errors = CX_ARENA_ARRAY(arena, cx_schema_error, c.errors.count);
        if (errors == NULL)
            (void)out_of_memory(&c);
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

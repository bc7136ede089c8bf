/*
 * schema_quick.c - saying quickly that a value holds.
 */
#include "schema/schema_quick.h"

#include "schema/schema_checker.h"

#define DEPTH_MAX 64
#define DIGITS_MAX 7 /* of an integer, so that the other walk counts one step for it (Q2) */

#define BIT(type) (1u << (type))

enum {
    ALL_TYPES = BIT(CX_JSON_NULL) | BIT(CX_JSON_FALSE) | BIT(CX_JSON_TRUE) | BIT(CX_JSON_INT) |
                BIT(CX_JSON_DOUBLE) | BIT(CX_JSON_STRING) | BIT(CX_JSON_ARRAY) | BIT(CX_JSON_OBJECT)
};

/* A word to compare with: its size and both ends decide most cases. */
typedef struct quick_word {
    cx_str text;
    uint64_t head, tail;
} quick_word;

typedef struct quick_member {
    quick_word name;
    const schema_quick *quick;
    bool required;
} quick_member;

struct schema_quick {
    uint16_t accept; /* BIT of the types that may hold */
    uint16_t deeper; /* and of those about which more is asked */
    unsigned depth;
    uint32_t steps; /* what the tests of the node cost when they hold */
    /* strings */
    uint64_t length_min, length_max;
    const cx_pattern *pattern;
    const quick_word *words; /* of an enum; NULL: none */
    uint32_t word_count;
    /* integers */
    uint64_t least, most;
    uint32_t bounds; /* how many of them are asked about */
    /* arrays */
    uint64_t items_min, items_max;
    const schema_quick *items; /* NULL: anything */
    /* objects; nothing but these members when `closed` */
    const quick_member *members;
    uint32_t member_count;
    bool closed;
};

/* --- words ------------------------------------------------------------------------------------ */

static inline uint64_t load_8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint32_t load_4(const char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Words of one size are equal up to 16 bytes when both ends are. */
static inline quick_word word_of(cx_str text)
{
    quick_word out = {text, 0, 0};
    if (text.size >= 8) {
        out.head = load_8(text.data);
        out.tail = load_8(text.data + text.size - 8);
    } else if (text.size >= 4) {
        out.head = load_4(text.data);
        out.tail = load_4(text.data + text.size - 4);
    } else if (text.size != 0) {
        out.head = (uint8_t)text.data[0];
        out.tail =
            (uint64_t)(uint8_t)text.data[text.size / 2] << 8 | (uint8_t)text.data[text.size - 1];
    }
    return out;
}

static inline bool same_word(const quick_word *a, const quick_word *b)
{
    return a->text.size == b->text.size && a->head == b->head && a->tail == b->tail &&
           (a->text.size <= 16 || memcmp(a->text.data, b->text.data, a->text.size) == 0);
}

/* --- compiling -------------------------------------------------------------------------------- */

typedef struct maker {
    schema_loader *loader;
    schema_quick *quick;
    unsigned depth;
    bool failed; /* out of memory */
} maker;

static const schema_quick *make_quick(maker *outer, const schema_node *node);

static unsigned accepted_types(unsigned types)
{
    unsigned bits = 0;
    bits |= (types & TYPE_NULL) != 0 ? BIT(CX_JSON_NULL) : 0;
    bits |= (types & TYPE_BOOLEAN) != 0 ? BIT(CX_JSON_FALSE) | BIT(CX_JSON_TRUE) : 0;
    /* A double may be an integer: that is looked at closer. */
    bits |= (types & (TYPE_INTEGER | TYPE_NUMBER)) != 0 ? BIT(CX_JSON_INT) : 0;
    bits |= (types & TYPE_NUMBER) != 0 ? BIT(CX_JSON_DOUBLE) : 0;
    bits |= (types & TYPE_STRING) != 0 ? BIT(CX_JSON_STRING) : 0;
    bits |= (types & TYPE_ARRAY) != 0 ? BIT(CX_JSON_ARRAY) : 0;
    bits |= (types & TYPE_OBJECT) != 0 ? BIT(CX_JSON_OBJECT) : 0;
    return bits;
}

static void *push_items(maker *m, size_t count, size_t size)
{
    void *room = cx_arena_push_array(m->loader->arena, count == 0 ? 1 : count, size, 16);
    m->failed = m->failed || room == NULL;
    return room;
}

static bool add_enum(maker *m, const schema_test *test)
{
    quick_word *words = push_items(m, test->value->count, sizeof *words);
    for (uint32_t i = 0; words != NULL && i < test->value->count; i++) {
        if (test->value->items[i].type != CX_JSON_STRING)
            return false;
        words[i] = word_of(cx_json_text(&test->value->items[i]));
    }
    m->quick->words = words;
    m->quick->word_count = test->value->count;
    m->quick->accept &= BIT(CX_JSON_STRING);
    m->quick->deeper |= BIT(CX_JSON_STRING);
    return words != NULL;
}

static bool add_bound(maker *m, const schema_test *test, uint64_t *bound)
{
    m->quick->bounds++;
    m->quick->deeper |= BIT(CX_JSON_INT) | BIT(CX_JSON_DOUBLE);
    return cx_decimal_to_uint64(&test->number, bound);
}

static bool add_limit(maker *m, const schema_test *test, unsigned type, uint64_t *limit)
{
    m->quick->deeper |= (uint16_t)BIT(type);
    *limit = test->limit;
    return true;
}

static bool add_items(maker *m, const schema_test *test)
{
    m->quick->deeper |= BIT(CX_JSON_ARRAY);
    if (test->count == 0 && test->rest != NULL)
        m->quick->items = make_quick(m, test->rest);
    return test->count == 0 && (test->rest == NULL || m->quick->items != NULL);
}

static bool is_required(const schema_test *required, cx_str name)
{
    for (uint32_t i = 0; required != NULL && i < required->count; i++)
        if (cx_str_eq(required->names[i], name))
            return true;
    return false;
}

static bool add_members(maker *m, const schema_test *test, const schema_test *required)
{
    const schema_properties *from = test->properties;
    if (from->pattern_count != 0 || (from->additional != NULL && !from->additional->never))
        return false;
    quick_member *members = push_items(m, from->named_count, sizeof *members);
    uint32_t found = 0;
    for (uint32_t i = 0; members != NULL && i < from->named_count; i++) {
        members[i].name = word_of(from->named[i].name);
        members[i].quick = make_quick(m, from->named[i].node);
        members[i].required = is_required(required, from->named[i].name);
        found += members[i].required;
        if (members[i].quick == NULL)
            return false;
    }
    m->quick->members = members;
    m->quick->member_count = from->named_count;
    m->quick->closed = from->additional != NULL;
    m->quick->deeper |= BIT(CX_JSON_OBJECT);
    /* One that is required and has no schema of its own is looked for elsewhere. */
    return members != NULL && found == (required == NULL ? 0 : required->count);
}

static bool add_test(maker *m, const schema_test *test, const schema_test *required)
{
    schema_quick *quick = m->quick;
    switch ((schema_kind)test->kind) {
    case TEST_TYPE: quick->accept &= (uint16_t)accepted_types(test->types); return true;
    case TEST_ENUM: return add_enum(m, test);
    case TEST_MINIMUM: return add_bound(m, test, &quick->least);
    case TEST_MAXIMUM: return add_bound(m, test, &quick->most);
    case TEST_MIN_LENGTH: return add_limit(m, test, CX_JSON_STRING, &quick->length_min);
    case TEST_MAX_LENGTH: return add_limit(m, test, CX_JSON_STRING, &quick->length_max);
    case TEST_PATTERN:
        quick->pattern = test->pattern;
        quick->deeper |= BIT(CX_JSON_STRING);
        return true;
    case TEST_MIN_ITEMS: return add_limit(m, test, CX_JSON_ARRAY, &quick->items_min);
    case TEST_MAX_ITEMS: return add_limit(m, test, CX_JSON_ARRAY, &quick->items_max);
    case TEST_ITEMS: return add_items(m, test);
    case TEST_REQUIRED: return true; /* with TEST_PROPERTIES, which must be there */
    case TEST_PROPERTIES: return add_members(m, test, required);
    default: return false;
    }
}

static const schema_test *test_of(const schema_node *node, schema_kind kind)
{
    for (uint32_t i = 0; i < node->test_count; i++)
        if (node->tests[i].kind == kind)
            return &node->tests[i];
    return NULL;
}

static bool fill_quick(maker *m, const schema_node *node)
{
    const schema_test *required = test_of(node, TEST_REQUIRED);
    if (node->never || node->wants_evaluated || m->depth > DEPTH_MAX ||
        (required != NULL && test_of(node, TEST_PROPERTIES) == NULL))
        return false;
    for (uint32_t i = 0; i < node->test_count; i++)
        if (!add_test(m, &node->tests[i], required))
            return false;
    return true;
}

/* NULL when it can have none.  The loader's marks keep circles out: 0 new, 1 on the way, 2 done. */
static const schema_quick *make_quick(maker *outer, const schema_node *node)
{
    if (node->only_ref != NULL)
        node = node->only_ref; /* as check_at does */
    schema_node *own = schema_node_of(outer->loader, node->source);
    if (own == NULL || own != node || own->quick_mark == 1 || outer->failed)
        return NULL;
    if (own->quick_mark == 0) {
        maker m = {outer->loader, push_items(outer, 1, sizeof *m.quick), outer->depth + 1, false};
        if (m.quick == NULL)
            return NULL;
        *m.quick = (schema_quick){.accept = ALL_TYPES,
                                  .depth = 1,
                                  .steps = node->test_count,
                                  .length_max = UINT64_MAX,
                                  .most = UINT64_MAX,
                                  .items_max = UINT64_MAX};
        own->quick_mark = 1;
        own->quick = fill_quick(&m, node) ? m.quick : NULL;
        own->quick_mark = 2;
        outer->failed = m.failed;
    }
    if (own->quick != NULL && outer->quick != NULL && own->quick->depth >= outer->quick->depth)
        outer->quick->depth = own->quick->depth + 1;
    return own->quick;
}

cx_status schema_quick_compile(schema_loader *loader, schema_node *root)
{
    maker m = {.loader = loader};
    /* The root is entered itself, never skipped for what it refers to. */
    if (root->only_ref == NULL)
        (void)make_quick(&m, root);
    return m.failed ? cx_fail_nomem(loader->err) : CX_SUCCESS;
}

/* --- checking --------------------------------------------------------------------------------- */

typedef struct walk {
    uint64_t steps, steps_max;
} walk;

static bool go_deeper(walk *w, const schema_quick *quick, const cx_json *value);

static inline bool quick_holds(walk *w, const schema_quick *quick, const cx_json *value)
{
    unsigned bit = BIT(value->type);
    w->steps += quick->steps;
    if ((quick->accept & bit) == 0)
        return false;
    return (quick->deeper & bit) == 0 || go_deeper(w, quick, value);
}

static bool is_word(walk *w, const schema_quick *quick, cx_str text)
{
    const quick_word word = word_of(text);
    for (uint32_t i = 0; i < quick->word_count; i++) {
        w->steps++;
        if (same_word(&quick->words[i], &word))
            return true;
    }
    return false;
}

static bool is_length(const schema_quick *quick, cx_str text)
{
    /* A character has one to four bytes. */
    if (text.size <= quick->length_max && text.size / 4 >= quick->length_min)
        return true;
    uint64_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += ((uint8_t)text.data[i] & 0xC0) != 0x80;
    return count >= quick->length_min && count <= quick->length_max;
}

static bool text_holds(walk *w, const schema_quick *quick, cx_str text)
{
    if (!is_length(quick, text))
        return false;
    if (quick->pattern != NULL) {
        bool found = false;
        w->steps += 1 + text.size / 64;
        if (cx_failed(cx_pattern_match(quick->pattern, text, &found, NULL)) || !found)
            return false;
    }
    return quick->words == NULL || is_word(w, quick, text);
}

static bool integer_holds(walk *w, const schema_quick *quick, cx_str text)
{
    uint64_t number = 0;
    w->steps += quick->bounds;
    if (text.size > DIGITS_MAX || text.data[0] == '-')
        return false;
    for (size_t i = 0; i < text.size; i++)
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    return number >= quick->least && number <= quick->most;
}

static bool items_hold(walk *w, const schema_quick *quick, const cx_json *array)
{
    if (array->count < quick->items_min || array->count > quick->items_max)
        return false;
    for (uint32_t i = 0; quick->items != NULL && i < array->count; i++)
        if (!quick_holds(w, quick->items, &array->items[i]) || w->steps > w->steps_max)
            return false;
    return true;
}

/* Both sides are sorted by name, so that each is gone through once. */
static bool members_hold(walk *w, const schema_quick *quick, const cx_json *object)
{
    const quick_member *member = quick->members, *end = member + quick->member_count;
    for (uint32_t i = 0; i < object->count; i++) {
        const quick_word name = word_of(cx_json_text(&object->members[i].name));
        const quick_member *found = member;
        for (; found != end && !same_word(&found->name, &name); found++)
            if (!quick->closed && schema_name_order(found->name.text, name.text) > 0)
                break;
            else if (found->required)
                return false;
        bool known = found != end && same_word(&found->name, &name);
        if (!known && quick->closed)
            return false;
        if (known && !quick_holds(w, found->quick, &object->members[i].value))
            return false;
        member = known ? found + 1 : found;
    }
    for (; member != end; member++)
        if (member->required)
            return false;
    return w->steps <= w->steps_max;
}

static bool go_deeper(walk *w, const schema_quick *quick, const cx_json *value)
{
    switch ((cx_json_type)value->type) {
    case CX_JSON_STRING: return text_holds(w, quick, cx_json_text(value));
    case CX_JSON_INT: return integer_holds(w, quick, cx_json_text(value));
    case CX_JSON_ARRAY: return items_hold(w, quick, value);
    case CX_JSON_OBJECT: return members_hold(w, quick, value);
    default: return false;
    }
}

bool schema_quick_holds(const schema_quick *quick, const cx_json *value, unsigned depth_max,
                        uint64_t steps_max)
{
    walk w = {0, steps_max};
    return quick->depth <= depth_max && quick_holds(&w, quick, value) && w.steps <= steps_max;
}

/*
 * value.c - reading, making, copying and comparing values.
 */
#include "base/api.h"
#include "json/internal.h"
#include "json/number.h"

/* --- walking ------------------------------------------------------------------------------- */

void cx_json_path_done(cx_json_path *path)
{
    if (path->steps != path->local)
        cx_alloc_free(path->alloc, path->steps, path->capacity * sizeof *path->steps);
    path->steps = path->local;
}

bool cx_json_path_grow(cx_json_path *path)
{
    size_t capacity, size;
    if (!cx_size_mul(path->capacity, 2, &capacity) ||
        !cx_size_mul(capacity, sizeof *path->steps, &size))
        return false;
    cx_json_step *steps = cx_alloc_new(path->alloc, size);
    if (steps == NULL)
        return false;
    memcpy(steps, path->steps, path->depth * sizeof *steps);
    cx_json_path_done(path);
    path->steps = steps;
    path->capacity = capacity;
    return true;
}

/* --- reading ------------------------------------------------------------------------------- */

const cx_json *cx_json_get(const cx_json *object, cx_str name)
{
    if (object == NULL || object->type != CX_JSON_OBJECT)
        return NULL;
    const cx_json_member *members = object->members;
    uint32_t low = 0, high = object->count;
    /* Few members: comparing sizes first is cheaper than comparing order, and mostly decides. */
    if (high <= 16) {
        for (uint32_t i = 0; i < high; i++)
            if (cx_str_eq(cx_json_text(&members[i].name), name))
                return &members[i].value;
        return NULL;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = cx_str_cmp(cx_json_text(&members[middle].name), name);
        if (order == 0)
            return &members[middle].value;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const cx_json *cx_json_get_typed(const cx_json *object, cx_str name, cx_json_type type)
{
    const cx_json *value = cx_json_get(object, name);
    return value != NULL && value->type == type ? value : NULL;
}

cx_str cx_json_get_str(const cx_json *object, cx_str name)
{
    const cx_json *value = cx_json_get_typed(object, name, CX_JSON_STRING);
    return value != NULL ? cx_json_text(value) : (cx_str){NULL, 0};
}

/* The magnitude of an integer literal; false when it does not fit 64 bits. */
static bool integer_magnitude(const cx_json *value, bool *out_negative, uint64_t *out)
{
    if (value == NULL || value->type != CX_JSON_INT || value->text == NULL)
        return false;
    cx_str text = cx_json_text(value);
    bool negative = text.data[0] == '-';
    uint64_t sum = 0;
    for (size_t i = negative; i < text.size; i++) {
        uint64_t digit = (uint64_t)(text.data[i] - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *out_negative = negative;
    *out = sum;
    return true;
}

bool cx_json_int64(const cx_json *value, int64_t *out)
{
    bool negative;
    uint64_t size;
    if (!integer_magnitude(value, &negative, &size) || size > (uint64_t)INT64_MAX + negative)
        return false;
    /* Negated while unsigned, so that the least number needs no special case. */
    *out = (int64_t)(negative ? 0 - size : size);
    return true;
}

bool cx_json_uint64(const cx_json *value, uint64_t *out)
{
    bool negative;
    uint64_t size;
    if (!integer_magnitude(value, &negative, &size) || (negative && size != 0))
        return false;
    *out = size;
    return true;
}

bool cx_json_double(const cx_json *value, double *out)
{
    double number;
    if (value == NULL || !cx_json_is_number(value) || value->text == NULL ||
        (value->flags & CX_JSON_NONFINITE) != 0 || !cx_number_parse(cx_json_text(value), &number))
        return false;
    *out = number;
    return true;
}

const char *cx_json_type_name(const cx_json *value)
{
    switch ((cx_json_type)value->type) {
    case CX_JSON_NULL: return "null";
    case CX_JSON_FALSE:
    case CX_JSON_TRUE: return "boolean";
    case CX_JSON_INT: return "integer";
    case CX_JSON_DOUBLE: return "number";
    case CX_JSON_STRING: return "string";
    case CX_JSON_ARRAY: return "array";
    case CX_JSON_OBJECT: break;
    }
    return "object";
}

/* --- making -------------------------------------------------------------------------------- */

bool cx_json_has_surrogate(cx_str text)
{
    const char *at = text.data, *end = at + text.size;
    while (at < end && (at = memchr(at, 0xED, (size_t)(end - at))) != NULL) {
        if (end - at >= 2 && (uint8_t)at[1] >= 0xA0)
            return true;
        at++;
    }
    return false;
}

cx_json cx_json_make_str(cx_str text)
{
    CX_ASSERT(text.size <= UINT32_MAX);
    cx_json made = {.type = CX_JSON_STRING,
                    .count = (uint32_t)text.size,
                    .text = text.data != NULL ? text.data : ""};
    const uint8_t *start = (const uint8_t *)made.text, *end = start + text.size;
    const uint8_t *stop = cx_json_scan_plain(start, end);
    if (stop == end)
        made.flags = CX_JSON_PLAIN;
    else if (cx_json_has_surrogate((cx_str){(const char *)stop, (size_t)(end - stop)}))
        made.flags = CX_JSON_SURROGATE;
    return made;
}

cx_json cx_json_make_bool(bool value)
{
    return (cx_json){.type = value ? CX_JSON_TRUE : CX_JSON_FALSE};
}

cx_json cx_json_make_null(void)
{
    return (cx_json){.type = CX_JSON_NULL};
}

static cx_json make_number(cx_json_type type, cx_str literal)
{
    return (cx_json){.type = (uint8_t)type,
                     .flags = CX_JSON_CANONICAL,
                     .count = (uint32_t)literal.size,
                     .text = literal.data};
}

static cx_json make_decimal(cx_arena *arena, bool negative, uint64_t size)
{
    char text[21];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + size % 10);
        size /= 10;
    } while (size != 0);
    if (negative)
        text[--at] = '-';
    return make_number(CX_JSON_INT,
                       cx_arena_copy_str(arena, (cx_str){text + at, sizeof text - at}));
}

cx_json cx_json_make_int(cx_arena *arena, int64_t value)
{
    return make_decimal(arena, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

cx_json cx_json_make_uint(cx_arena *arena, uint64_t value)
{
    return make_decimal(arena, false, value);
}

cx_json cx_json_make_double(cx_arena *arena, double value)
{
    CX_ASSERT(value - value == 0); /* finite */
    char text[CX_NUMBER_TEXT_SIZE];
    size_t size = cx_number_write_py(value, text);
    return make_number(CX_JSON_DOUBLE, cx_arena_copy_str(arena, (cx_str){text, size}));
}

cx_json_list cx_json_list_begin(cx_arena *arena)
{
    return (cx_json_list){.arena = arena};
}

/* A slot for one more, or NULL; outgrown arrays stay in the arena until it is reset. */
static cx_json_member *list_slot(cx_json_list *list)
{
    if (list->failed)
        return NULL;
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        cx_json_member *members = capacity > list->capacity
                                      ? CX_ARENA_ARRAY(list->arena, cx_json_member, capacity)
                                      : NULL;
        if (members == NULL) {
            list->failed = true;
            return NULL;
        }
        if (list->count != 0)
            memcpy(members, list->members, list->count * sizeof *members);
        list->members = members;
        list->capacity = capacity;
    }
    return &list->members[list->count++];
}

void cx_json_list_put(cx_json_list *list, cx_str name, cx_json value)
{
    cx_json_member *slot = list_slot(list);
    if (slot == NULL)
        return;
    list->failed = cx_json_is_number(&value) && value.text == NULL;
    *slot = (cx_json_member){cx_json_make_str(name), value};
}

void cx_json_list_add(cx_json_list *list, cx_json value)
{
    cx_json_member *slot = list_slot(list);
    if (slot == NULL)
        return;
    list->failed = cx_json_is_number(&value) && value.text == NULL;
    *slot = (cx_json_member){cx_json_make_null(), value};
}

cx_status cx_json_list_end_object(cx_json_list *list, cx_json *out, cx_err *err)
{
    if (list->failed)
        return cx_fail_nomem(err);
    cx_json made = {.type = CX_JSON_OBJECT, .count = list->count};
    if (made.count != 0) {
        cx_json_key few[CX_JSON_FEW_MEMBERS], *keys = few;
        cx_json_member *sorted = CX_ARENA_ARRAY(list->arena, cx_json_member, made.count);
        if (made.count > CX_JSON_FEW_MEMBERS)
            keys = CX_ARENA_ARRAY(list->arena, cx_json_key, cx_json_keys_needed(made.count));
        if (sorted == NULL || keys == NULL)
            return cx_fail_nomem(err);
        uint32_t twice =
            cx_json_sort_members(list->members, made.count, CX_JSON_BY_CODE_POINT, keys, sorted);
        if (twice != made.count)
            return cx_fail(
                err, CX_E_EXISTS, "the name \"%.*s\" is there already",
                (int)(list->members[twice].name.count > 80 ? 80 : list->members[twice].name.count),
                list->members[twice].name.text);
        made.members = sorted;
        made.flags = cx_json_inherit(cx_json_inside(&made), 2 * (size_t)made.count);
    }
    *out = made;
    return CX_SUCCESS;
}

cx_status cx_json_list_end_array(cx_json_list *list, cx_json *out, cx_err *err)
{
    if (list->failed)
        return cx_fail_nomem(err);
    cx_json made = {.type = CX_JSON_ARRAY, .count = list->count};
    if (made.count != 0) {
        cx_json *items = CX_ARENA_ARRAY(list->arena, cx_json, made.count);
        if (items == NULL)
            return cx_fail_nomem(err);
        for (uint32_t i = 0; i < made.count; i++)
            items[i] = list->members[i].value;
        made.items = items;
        made.flags = cx_json_inherit(items, made.count);
    }
    *out = made;
    return CX_SUCCESS;
}

/* --- copying ------------------------------------------------------------------------------- */

/* Replaces borrowed memory of one value by a copy: its text, or its items, which may themselves
 * still borrow. */
static bool copy_one(cx_json *value, cx_arena *arena)
{
    if (value->type >= CX_JSON_INT && value->type <= CX_JSON_STRING) {
        cx_str text = cx_arena_copy_str(arena, cx_json_text(value));
        value->text = text.data;
        return text.data != NULL;
    }
    if (!cx_json_is_container(value) || value->count == 0)
        return true;
    size_t held = value->type == CX_JSON_OBJECT ? 2 * (size_t)value->count : value->count;
    cx_json *inside = CX_ARENA_ARRAY(arena, cx_json, held);
    if (inside == NULL)
        return false;
    memcpy(inside, cx_json_inside(value), held * sizeof *inside);
    value->items = inside;
    return true;
}

cx_status cx_json_copy(const cx_json *value, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json copy = *value;
    cx_json_path path;
    cx_json_path_init(&path, arena->alloc);
    bool ok = copy_one(&copy, arena);
    if (ok && cx_json_is_container(&copy) && copy.count != 0)
        ok = cx_json_path_enter(&path, &copy);
    while (ok && path.depth != 0) {
        cx_json_step *step = cx_json_path_top(&path);
        /* The path runs through our own copy, so it may be written. */
        cx_json *at = (cx_json *)(uintptr_t)step->at;
        cx_json *held = at + step->is_object;
        ok = (!step->is_object || copy_one(at, arena)) && copy_one(held, arena);
        if (!cx_json_step_next(step))
            path.depth--;
        if (ok && cx_json_is_container(held) && held->count != 0)
            ok = cx_json_path_enter(&path, held);
    }
    cx_json_path_done(&path);
    if (!ok)
        return cx_fail_nomem(err);
    *out = copy;
    return CX_SUCCESS;
}

/* --- comparing ----------------------------------------------------------------------------- */

static bool equal_numbers(const cx_json *a, const cx_json *b)
{
    cx_str left = cx_json_text(a), right = cx_json_text(b);
    if (cx_str_eq(left, right))
        return true;
    if (a->type == CX_JSON_INT) {
        /* Integers have one spelling each, but for minus zero. */
        const cx_json *other = (a->flags & CX_JSON_CANONICAL) == 0 ? b : a;
        return (a->flags & b->flags & CX_JSON_CANONICAL) == 0 &&
               (cx_json_text(other).size == 1 && other->text[0] == '0');
    }
    if ((a->flags & b->flags & CX_JSON_CANONICAL) != 0)
        return false;
    /* Different doubles have different shortest digits, so comparing the bits is enough. */
    double x, y;
    return cx_json_double(a, &x) && cx_json_double(b, &y) && memcmp(&x, &y, sizeof x) == 0;
}

/* Equality apart from items and members. */
static bool equal_shallow(const cx_json *a, const cx_json *b)
{
    if (a->type != b->type)
        return false;
    switch ((cx_json_type)a->type) {
    case CX_JSON_INT:
    case CX_JSON_DOUBLE: return equal_numbers(a, b);
    case CX_JSON_STRING: return cx_str_eq(cx_json_text(a), cx_json_text(b));
    case CX_JSON_ARRAY:
    case CX_JSON_OBJECT: return a->count == b->count;
    case CX_JSON_NULL:
    case CX_JSON_FALSE:
    case CX_JSON_TRUE: break;
    }
    return true;
}

static void enter_both(cx_json_path *path, const cx_json *a, const cx_json *b)
{
    /* Values that share their items are equal. */
    if (!cx_json_is_container(a) || a->count == 0 || a->items == b->items)
        return;
    /* This function cannot report "out of memory", and no answer would be right. */
    bool entered = cx_json_path_enter(path, a);
    CX_ASSERT(entered);
    cx_json_path_top(path)->other = cx_json_inside(b);
}

bool cx_json_equal(const cx_json *a, const cx_json *b)
{
    if (!equal_shallow(a, b))
        return false;
    bool equal = true;
    cx_json_path path;
    cx_json_path_init(&path, cx_alloc_default());
    enter_both(&path, a, b);
    while (equal && path.depth != 0) {
        cx_json_step *step = cx_json_path_top(&path);
        const cx_json *left = step->at, *right = step->other;
        if (step->is_object)
            equal = equal_shallow(left++, right++);
        equal = equal && equal_shallow(left, right);
        if (!cx_json_step_next(step))
            path.depth--;
        if (equal)
            enter_both(&path, left, right);
    }
    cx_json_path_done(&path);
    return equal;
}

cx_status cx_json_texts(const cx_json *value, uint32_t max, cx_arena *arena, const cx_str **out,
                        const cx_json **out_wrong, cx_err *err)
{
    *out_wrong = value->type != CX_JSON_ARRAY || value->count > max ? value : NULL;
    if (*out_wrong != NULL)
        return CX_SUCCESS;
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, (size_t)value->count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->items[i].type != CX_JSON_STRING || value->items[i].count == 0) {
            *out_wrong = &value->items[i];
            return CX_SUCCESS;
        }
        items[i] = cx_arena_copy_str(arena, cx_json_text(&value->items[i]));
        if (items[i].data == NULL)
            return cx_fail_nomem(err);
    }
    *out = items;
    return CX_SUCCESS;
}

/*
 * predicate.c - a question about a state that is true or false.
 *
 *   POINTER            something is there
 *   POINTER=VALUE      and is that value (equal canonical JSON: 1 and 1.0 differ)
 *   POINTER!=VALUE     and is another one
 *   POINTER<N  <=N  >N  >=N     and is a number that compares so
 *   POINTER~TEXT       and is a string that holds the text
 *
 * Where nothing is there, every form is false, `!=` too.  VALUE is JSON, or text when it is none.
 *
 * The pointer (RFC 6901) ends at the first `=`, `!=`, `<`, `>` or `~`, where `~0` and `~1` are the
 * pointer's own escapes.  A pointer with such characters in a key is written as a JSON string:
 * "/memory/a=b"=1.  TEXT that starts with 0 or 1 likewise: /memory/x~"1 of 2".
 */
#include "lattice/predicate.h"

#include "base/api.h"

/* --- reading ------------------------------------------------------------------------------- */

/* Where the operator of an unquoted predicate starts, or the end. */
static size_t find_operator(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i], next = i + 1 < text.size ? text.data[i + 1] : 0;
        if (c == '=' || c == '<' || c == '>' || (c == '!' && next == '='))
            return i;
        if (c != '~')
            continue;
        if (next != '0' && next != '1')
            return i;
        i++;
    }
    return text.size;
}

/* Takes the operator off the front of `rest`. */
static bool read_operator(cx_str *rest, cx_predicate *out)
{
    static const struct {
        const char *text;
        unsigned op;
    } operators[] = {{"!=", CX_PREDICATE_NE}, {"<=", CX_PREDICATE_LE}, {">=", CX_PREDICATE_GE},
                     {"=", CX_PREDICATE_EQ},  {"<", CX_PREDICATE_LT},  {">", CX_PREDICATE_GT},
                     {"~", CX_PREDICATE_HAS}};
    for (size_t i = 0; i < CX_COUNT_OF(operators); i++) {
        cx_str symbol = cx_str_z(operators[i].text);
        if (!cx_str_starts(*rest, symbol))
            continue;
        *rest = cx_str_from(rest->data + symbol.size, rest->size - symbol.size);
        out->op = operators[i].op;
        return true;
    }
    return false;
}

/* JSON when it is some with a canonical form, else the text itself. */
static cx_status read_value(cx_str text, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_status status = cx_json_parse_text(text, arena, out, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (!cx_failed(status) && cx_json_has_canonical(out))
        return CX_SUCCESS;
    if (!cx_utf8_valid(text))
        return cx_fail(err, CX_E_USAGE, "the predicate's value is not UTF-8");
    cx_str copy = cx_arena_copy_str(arena, text);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    *out = cx_json_make_str(copy);
    return CX_SUCCESS;
}

/* The pointer at the start of `text`, and what follows it. */
static cx_status read_pointer(cx_str text, cx_arena *arena, cx_str *out, cx_str *out_rest,
                              cx_err *err)
{
    size_t used = find_operator(text);
    cx_str pointer = cx_str_from(text.data, used);
    if (text.size != 0 && text.data[0] == '"') {
        cx_json_parser parser;
        cx_json quoted;
        const cx_json_limits limits = CX_JSON_LIMITS_INIT;
        cx_json_parser_init(&parser, arena->alloc, &limits);
        cx_status status = cx_json_parse_prefix(&parser, text, true, arena, &quoted, &used, err);
        cx_json_parser_done(&parser);
        CX_TRY(status);
        pointer = cx_json_text(&quoted);
    }
    if (pointer.size != 0 && pointer.data[0] != '/')
        return cx_fail(err, CX_E_USAGE,
                       "a predicate starts with a pointer such as /memory/key: found '%.*s'",
                       (int)(text.size > 80 ? 80 : text.size), text.data);
    *out = cx_arena_copy_str(arena, pointer);
    *out_rest = cx_str_from(text.data + used, text.size - used);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_predicate_parse(cx_str text, cx_arena *arena, cx_predicate *out, cx_err *err)
{
    cx_predicate predicate = {.op = CX_PREDICATE_THERE, .value = cx_json_make_null()};
    cx_str rest;
    CX_TRY(read_pointer(text, arena, &predicate.pointer, &rest, err));
    state_spot spot;
    state empty = cx_state_empty();
    CX_TRY(cx_state_find(&empty, predicate.pointer, arena, &spot, err)); /* is well-formed */
    const cx_str after = rest;
    if (rest.size != 0) {
        if (!read_operator(&rest, &predicate))
            return cx_fail(err, CX_E_USAGE,
                           "after the pointer: found '%.*s', expected one of = != < <= > >= ~",
                           (int)(after.size > 40 ? 40 : after.size), after.data);
        CX_TRY(read_value(rest, arena, &predicate.value, err));
        bool orders = predicate.op >= CX_PREDICATE_LT && predicate.op <= CX_PREDICATE_GE;
        if (orders && !cx_json_is_number(&predicate.value))
            return cx_fail(err, CX_E_USAGE, "'%.*s' compares with a number",
                           (int)(after.size > 40 ? 40 : after.size), after.data);
        if (predicate.op == CX_PREDICATE_HAS && predicate.value.type != CX_JSON_STRING) {
            cx_str copy = cx_arena_copy_str(arena, rest);
            if (copy.data == NULL)
                return cx_fail_nomem(err);
            predicate.value = cx_json_make_str(copy);
        }
    }
    *out = predicate;
    return CX_SUCCESS;
}

cx_status cx_predicate_write(const cx_predicate *predicate, cx_buf *out, cx_err *err)
{
    static const char *const operators[] = {"", "=", "!=", "<", "<=", ">", ">=", "~"};
    if (find_operator(predicate->pointer) == predicate->pointer.size)
        cx_buf_add_str(out, predicate->pointer);
    else
        cx_json_write_str(out, predicate->pointer, CX_JSON_PY_COMPACT);
    cx_buf_add_z(out, operators[predicate->op]);
    if (predicate->op == CX_PREDICATE_THERE)
        return cx_buf_check(out, err);
    return cx_json_write(out, &predicate->value, CX_JSON_PY_COMPACT, err);
}

/* --- asking -------------------------------------------------------------------------------- */

cx_status cx_predicate_begin(predicate_check *check, const cx_predicate *predicate,
                             const cx_alloc *alloc, cx_err *err)
{
    *check = (predicate_check){.predicate = predicate, .alloc = alloc};
    cx_tree_work_init(&check->work, alloc);
    cx_arena_init(&check->arena, alloc, 0);
    cx_buf_init(&check->expected, alloc);
    cx_buf_init(&check->found, alloc);
    return cx_json_write(&check->expected, &predicate->value, CX_JSON_PY_COMPACT, err);
}

void cx_predicate_end(predicate_check *check)
{
    cx_tree_work_done(&check->work);
    cx_arena_done(&check->arena);
    cx_buf_done(&check->expected);
    cx_buf_done(&check->found);
}

/* Canonical integers by value, however long: <0, 0, >0. */
static int compare_integers(cx_str a, cx_str b)
{
    bool a_negative = a.data[0] == '-', b_negative = b.data[0] == '-';
    if (a_negative != b_negative)
        return a_negative ? -1 : 1;
    int order = a.size != b.size ? (a.size < b.size ? -1 : 1) : memcmp(a.data, b.data, a.size);
    return a_negative ? -order : order;
}

/* False when one is no number, or too large to be compared with one that has a fraction. */
static bool compare_numbers(const cx_json *a, const cx_json *b, cx_str a_text, cx_str b_text,
                            int *out)
{
    if (a->type == CX_JSON_INT && b->type == CX_JSON_INT) {
        *out = compare_integers(a_text, b_text);
        return true;
    }
    double left, right;
    if (!cx_json_double(a, &left) || !cx_json_double(b, &right))
        return false;
    *out = (left > right) - (left < right);
    return true;
}

static bool order_holds(const predicate_check *check, const cx_json *found)
{
    int order;
    if (!cx_json_is_number(found) ||
        !compare_numbers(found, &check->predicate->value, cx_buf_str(&check->found),
                         cx_buf_str(&check->expected), &order))
        return false;
    switch (check->predicate->op) {
    case CX_PREDICATE_LT: return order < 0;
    case CX_PREDICATE_LE: return order <= 0;
    case CX_PREDICATE_GT: return order > 0;
    default: return order >= 0;
    }
}

static bool holds_text(cx_str text, cx_str wanted)
{
    return wanted.size == 0 ||
           (text.size != 0 && memmem(text.data, text.size, wanted.data, wanted.size) != NULL);
}

/* The canonical text of what was found is in check->found. */
static cx_status evaluate(predicate_check *check, bool *out, cx_err *err)
{
    const cx_predicate *predicate = check->predicate;
    bool equal = cx_str_eq(cx_buf_str(&check->found), cx_buf_str(&check->expected));
    if (predicate->op == CX_PREDICATE_EQ || predicate->op == CX_PREDICATE_NE) {
        *out = equal == (predicate->op == CX_PREDICATE_EQ);
        return CX_SUCCESS;
    }
    *out = false;
    char first = (char)check->found.data[0];
    if (first == '{' || first == '[') /* neither number nor string */
        return CX_SUCCESS;
    cx_json found;
    CX_TRY(cx_json_parse_text(cx_buf_str(&check->found), &check->arena, &found, err));
    if (predicate->op != CX_PREDICATE_HAS)
        *out = order_holds(check, &found);
    else if (found.type == CX_JSON_STRING)
        *out = holds_text(cx_json_text(&found), cx_json_text(&predicate->value));
    return CX_SUCCESS;
}

cx_status cx_predicate_holds(predicate_check *check, const state *s, bool *out, cx_err *err)
{
    cx_arena_reset(&check->arena, (cx_arena_mark){0});
    state_spot spot;
    CX_TRY(cx_state_find(s, check->predicate->pointer, &check->arena, &spot, err));
    /* A value that is the same as in the state asked before needs no second look. */
    cx_value v = spot.is_there ? spot.v : VALUE_ABSENT;
    if (check->has_last && !spot.is_whole && v.data == check->last.data &&
        v.size == check->last.size) {
        *out = check->last_holds;
        return CX_SUCCESS;
    }
    bool holds = spot.is_there;
    if (holds && (check->predicate->op != CX_PREDICATE_THERE || spot.inside.size != 0)) {
        cx_buf_clear(&check->found);
        cx_status status =
            cx_state_write_spot(&check->work, s, &spot, &check->arena, &check->found, err);
        if (status.code == CX_E_NOT_FOUND)
            holds = false;
        else
            CX_TRY(status);
        if (holds && check->predicate->op != CX_PREDICATE_THERE)
            CX_TRY(evaluate(check, &holds, err));
    }
    check->has_last = !spot.is_whole;
    check->last = v;
    check->last_holds = holds;
    *out = holds;
    return CX_SUCCESS;
}

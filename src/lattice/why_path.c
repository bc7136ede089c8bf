/*
 * why_path.c - keys below the top level, and keys that never were (lattice.md §8).
 *
 *   memory.order.limit    the section, then names between full stops
 *   order.limit           the same in memory and in beliefs
 *   /memory/order/limit   a JSON pointer (RFC 6901) into the state
 */
#include <stdio.h>

#include "lattice/answer.h"
#include "lattice/patch.h"

#define KEYS_MAX 20000
#define KEY_DEPTH_MAX 8
#define NAME_BYTES_MAX 120
#define NEAREST 3

/* --- taking a path apart ---------------------------------------------------------------------- */

static cx_status add_token(why_path *path, cx_str token, cx_arena *arena, cx_err *err)
{
    cx_buf text;
    if (path->token_count == WHY_TOKENS_MAX)
        return cx_fail(err, CX_E_USAGE, "the key has more than %d parts", WHY_TOKENS_MAX);
    cx_buf_init(&text, arena->alloc);
    cx_answer_str(&text, token);
    cx_str copy =
        text.failed
            ? (cx_str){NULL, 0}
            : cx_arena_copy_str(arena, cx_str_from((const char *)text.data + 1, text.size - 2));
    cx_buf_done(&text);
    path->tokens[path->token_count++] = copy;
    return copy.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* RFC 6901 §4; false when an escape is none. */
static bool unescape(cx_str token, char *out, size_t *out_size)
{
    size_t size = 0;
    for (size_t i = 0; i < token.size; i++) {
        char c = token.data[i];
        if (c == '~') {
            if (++i == token.size || (token.data[i] != '0' && token.data[i] != '1'))
                return false;
            c = token.data[i] == '0' ? '~' : '/';
        }
        out[size++] = c;
    }
    *out_size = size;
    return true;
}

/* Tokens of `text` into the path; a pointer's are escaped. */
static cx_status add_tokens(why_path *path, cx_str text, char between, cx_arena *arena, cx_err *err)
{
    for (size_t at = 0; at <= text.size;) {
        const char *end = at == text.size ? NULL : memchr(text.data + at, between, text.size - at);
        size_t size = end == NULL ? text.size - at : (size_t)(end - text.data) - at;
        cx_str token = cx_str_from(text.data + at, size);
        char *plain = CX_ARENA_ARRAY(arena, char, size + 1);
        at += size + 1;
        if (plain == NULL)
            return cx_fail_nomem(err);
        if (between == '/' && !unescape(token, plain, &size))
            return cx_fail(err, CX_E_USAGE, "'%.*s' is no JSON pointer: '~' stands before 0 or 1",
                           (int)(text.size > 80 ? 80 : text.size), text.data);
        if (between == '/')
            token = cx_str_from(plain, size);
        CX_TRY(add_token(path, token, arena, err));
    }
    return CX_SUCCESS;
}

static cx_status make_pointer(why_path *path, state_section section, cx_str text, char between,
                              cx_arena *arena, cx_err *err)
{
    cx_buf pointer;
    cx_buf_init(&pointer, arena->alloc);
    cx_json_pointer_add(&pointer, cx_state_section_name(section));
    if (between == '/' && text.data != NULL) {
        cx_buf_add_byte(&pointer, '/');
        cx_buf_add_str(&pointer, text);
    }
    for (size_t at = 0; between == '.' && at <= text.size;) {
        const char *end = at == text.size ? NULL : memchr(text.data + at, '.', text.size - at);
        size_t size = end == NULL ? text.size - at : (size_t)(end - text.data) - at;
        cx_json_pointer_add(&pointer, cx_str_from(text.data + at, size));
        at += size + 1;
    }
    path->pointer = cx_arena_copy_str(arena, cx_buf_str(&pointer));
    bool failed = pointer.failed || path->pointer.data == NULL;
    cx_buf_done(&pointer);
    path->is_asked = true;
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* The text after "memory." or "memory"; data NULL when it starts differently. */
static bool after_section(cx_str text, state_section section, char between, cx_str *out)
{
    cx_str name = cx_state_section_name(section);
    if (!cx_str_starts(text, name) || (text.size > name.size && text.data[name.size] != between))
        return false;
    *out = text.size > name.size ? cx_str_from(text.data + name.size + 1, text.size - name.size - 1)
                                 : (cx_str){NULL, 0};
    return true;
}

cx_status cx_why_path_parse(cx_str key, cx_str section, cx_arena *arena, why_path **out,
                            bool *out_is_path, cx_err *err)
{
    char between = key.size != 0 && key.data[0] == '/' ? '/' : '.';
    cx_str text = between == '/' ? cx_str_from(key.data + 1, key.size - 1) : key;
    bool named = false;
    why_path *paths = CX_ARENA_ARRAY(arena, why_path, SECTION_COUNT);
    if (paths == NULL)
        return cx_fail_nomem(err);
    memset(paths, 0, SECTION_COUNT * sizeof *paths);
    *out = paths;
    *out_is_path = false;
    for (state_section at = 0; at < SECTION_COUNT; at++) {
        cx_str inner;
        if (!after_section(text, at, between, &inner))
            continue;
        named = true;
        CX_TRY(make_pointer(&paths[at], at, inner, inner.data == NULL ? '/' : between, arena, err));
        if (inner.data != NULL)
            CX_TRY(add_tokens(&paths[at], inner, between, arena, err));
    }
    static const state_section either[] = {SECTION_MEMORY, SECTION_BELIEFS};
    for (size_t i = 0; !named && i < CX_COUNT_OF(either); i++) {
        state_section at = either[i];
        if (section.size != 0 && !cx_str_eq(section, cx_state_section_name(at)))
            continue;
        CX_TRY(make_pointer(&paths[at], at, text, between, arena, err));
        CX_TRY(add_tokens(&paths[at], text, between, arena, err));
    }
    for (state_section at = 0; at < SECTION_COUNT; at++)
        *out_is_path = *out_is_path || paths[at].is_asked;
    return CX_SUCCESS;
}

/* --- looking ---------------------------------------------------------------------------------- */

bool cx_why_path_text(const why_path *path, const state *s, tree_work *work, cx_buf *out,
                      bool *out_there)
{
    cx_arena arena;
    state_spot spot;
    cx_arena_init(&arena, out->alloc, 0);
    cx_buf_clear(out);
    *out_there = false;
    cx_status status = cx_state_find(s, path->pointer, &arena, &spot, NULL);
    if (!cx_failed(status) && spot.is_there) {
        status = cx_state_write_spot(work, s, &spot, &arena, out, NULL);
        *out_there = !cx_failed(status);
    }
    cx_arena_done(&arena);
    return status.code != CX_E_NOMEM && !out->failed;
}

static bool find_member(cx_str object, cx_str spelled, cx_str *out)
{
    cx_str name, value;
    if (object.size == 0 || object.data[0] != '{')
        return false;
    canon_walk walk = cx_canon_walk(object);
    while (cx_canon_member(&walk, &name, &value))
        if (cx_str_eq(name, spelled)) {
            *out = value;
            return true;
        }
    return false;
}

bool cx_why_path_in_delta(const why_path *path, state_section section, cx_str delta)
{
    cx_str value;
    if (!find_member(delta, cx_state_section_name(section), &value))
        return false;
    for (size_t i = 0; i < path->token_count; i++) {
        if (value.size == 0 || value.data[0] != '{')
            return true; /* what stood around it was replaced */
        if (!find_member(value, path->tokens[i], &value))
            return false;
    }
    return true;
}

/* --- keys that never were --------------------------------------------------------------------- */

typedef struct near_key {
    cx_str name;
    size_t distance;
} near_key;

typedef struct key_search {
    cx_arena *arena;
    cx_str key;
    cx_str section; /* empty = any */
    near_key best[NEAREST];
    size_t count, seen;
} key_search;

/* Levenshtein. */
static size_t distance_of(cx_str a, cx_str b)
{
    size_t row[NAME_BYTES_MAX + 1];
    if (a.size > NAME_BYTES_MAX || b.size > NAME_BYTES_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.size; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.size; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            size_t above = row[j], least = corner + (a.data[i - 1] != b.data[j - 1]);
            if (above + 1 < least)
                least = above + 1;
            if (row[j - 1] + 1 < least)
                least = row[j - 1] + 1;
            corner = above;
            row[j] = least;
        }
    }
    return row[b.size];
}

/* By the whole path, or by its last name alone. */
static void offer_key(key_search *s, cx_str name, cx_str last)
{
    size_t distance = distance_of(s->key, name), of_last = distance_of(s->key, last);
    if (of_last < distance)
        distance = of_last;
    size_t most = s->key.size / 2 < 2 ? 2 : s->key.size / 2;
    if (distance > most)
        return;
    size_t at = s->count;
    while (at > 0 && s->best[at - 1].distance > distance)
        at--;
    if (at == NEAREST)
        return;
    for (size_t i = s->count < NEAREST ? s->count : NEAREST - 1; i > at; i--)
        s->best[i] = s->best[i - 1];
    s->best[at] = (near_key){name, distance};
    s->count += s->count < NEAREST;
}

/* `before` is the path so far, with its full stop. */
static cx_status offer_keys(key_search *s, const cx_json *value, cx_str before, unsigned depth,
                            cx_err *err)
{
    if (value->type != CX_JSON_OBJECT || depth == KEY_DEPTH_MAX)
        return CX_SUCCESS;
    for (uint32_t i = 0; i < value->count && s->seen++ < KEYS_MAX; i++) {
        cx_str name = cx_json_text(&value->members[i].name);
        cx_str whole = cx_arena_printf(s->arena, "%.*s%.*s", (int)before.size, before.data,
                                       (int)name.size, name.data);
        cx_str inner = cx_arena_printf(s->arena, "%.*s.", (int)whole.size, whole.data);
        if (whole.data == NULL || inner.data == NULL)
            return cx_fail_nomem(err);
        offer_key(s, whole, name);
        CX_TRY(offer_keys(s, &value->members[i].value, inner, depth + 1, err));
    }
    return CX_SUCCESS;
}

static cx_status search_state(key_search *s, const cx_states *states, cx_node which, cx_err *err)
{
    static const char *const sections[] = {"memory", "beliefs"};
    cx_buf text;
    cx_json value;
    cx_buf_init(&text, s->arena->alloc);
    cx_status status = cx_states_write(states, which, false, &text, err);
    cx_str copy = cx_failed(status) ? CX_STR("{}") : cx_arena_copy_str(s->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse_text(copy, s->arena, &value, err));
    for (size_t i = 0; i < 2; i++) {
        const cx_json *section = cx_json_get(&value, cx_str_z(sections[i]));
        bool named = cx_str_starts(s->key, cx_str_z(sections[i]));
        if (section == NULL || (s->section.size != 0 && !cx_str_is(s->section, sections[i])))
            continue;
        cx_str before = cx_arena_printf(s->arena, "%s", named ? sections[i] : "");
        if (named)
            before = cx_arena_printf(s->arena, "%s.", sections[i]);
        if (before.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(offer_keys(s, section, before, 0, err));
    }
    return CX_SUCCESS;
}

cx_status cx_why_no_key(const cx_states *states, cx_node which, cx_str key, cx_str section,
                        cx_arena *arena, cx_err *err)
{
    char text[200] = "";
    size_t size = 0;
    key_search s = {.arena = arena, .key = key, .section = section};
    char *dotted = CX_ARENA_ARRAY(arena, char, key.size + 1);
    if (dotted == NULL)
        return cx_fail_nomem(err);
    bool is_pointer = key.size > 1 && key.data[0] == '/';
    for (size_t i = 0; i < key.size; i++)
        dotted[i] = is_pointer && key.data[i] == '/' ? '.' : key.data[i];
    s.key = cx_str_from(dotted + is_pointer, key.size - is_pointer);
    CX_TRY(search_state(&s, states, which, err));
    for (size_t i = 0; i < s.count; i++) {
        cx_str name = shortened(s.best[i].name, 50);
        int added = snprintf(text + size, sizeof text - size, "%s%.*s",
                             i == 0 ? "; nearest: " : ", ", (int)name.size, name.data);
        size += added > 0 ? (size_t)added : 0;
    }
    cx_str shown = shortened(key, 80);
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoKey", CX_NO_OFFSET,
                      "key '%.*s' was never there up to this node%s", (int)shown.size, shown.data,
                      text);
}

/*
 * patch.c - merge patches over persistent maps, see patch.h.
 *
 *   object onto object      member by member
 *   object onto all else    onto {} (absent, scalar, array, or a conflict marker: §6)
 *   null                    removes the member
 *   all else                replaces it
 *
 * Nesting is kept in `levels`, never on the C stack.
 */
#include "lattice/patch.h"

void cx_patcher_init(patcher *patch, cx_forest *forest, const cx_alloc *alloc)
{
    /* What was once accepted and written by us is not refused for its size again. */
    const cx_json_limits limits = {UINT32_MAX, UINT32_MAX, 0, false};
    *patch = (patcher){.forest = forest, .alloc = alloc};
    cx_json_parser_init(&patch->parser, alloc, &limits);
    cx_tree_work_init(&patch->work, alloc);
}

void cx_patcher_done(patcher *patch)
{
    cx_json_parser_done(&patch->parser);
    cx_vec_done(&patch->levels, patch->alloc);
    cx_tree_work_done(&patch->work);
}

/* --- walking canonical text ---------------------------------------------------------------- */

/* After the string whose opening quote is at `at`. */
static const char *skip_string(const char *at, const char *end)
{
    const char *quote = at;
    for (;;) {
        quote = memchr(quote + 1, '"', (size_t)(end - quote - 1));
        CX_ASSERT(quote != NULL);
        const char *back = quote;
        while (back[-1] == '\\')
            back--;
        if (((quote - back) & 1) == 0)
            return quote + 1;
    }
}

static const char *skip_container(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        char c = *at;
        if (c == '"') {
            at = skip_string(at, end);
            continue;
        }
        at++;
        if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && --depth == 0)
            break;
    }
    return at;
}

const char *cx_canon_skip(const char *at, const char *end)
{
    CX_ASSERT(at < end);
    if (*at == '"')
        return skip_string(at, end);
    if (*at == '[' || *at == '{')
        return skip_container(at, end);
    while (at < end && *at != ',' && *at != ']' && *at != '}')
        at++;
    return at;
}

bool cx_canon_item(canon_walk *walk, cx_str *out_value)
{
    if (walk->at < walk->end && *walk->at == ',')
        walk->at++;
    if (walk->at >= walk->end)
        return false;
    const char *after = cx_canon_skip(walk->at, walk->end);
    *out_value = cx_str_from(walk->at, (size_t)(after - walk->at));
    walk->at = after;
    return true;
}

bool cx_canon_member(canon_walk *walk, cx_str *out_name, cx_str *out_value)
{
    cx_str quoted;
    if (!cx_canon_item(walk, &quoted))
        return false;
    *out_name = cx_str_from(quoted.data + 1, quoted.size - 2);
    walk->at++; /* the colon */
    return cx_canon_item(walk, out_value);
}

/* --- markers ------------------------------------------------------------------------------- */

bool cx_value_is_conflict(cx_value v)
{
    return value_is_map(v) && cx_tree_find(v.data, CX_STR("__conflict")) != NULL;
}

bool cx_value_is_marker(cx_value v, cx_str *out_values)
{
    if (!value_is_map(v))
        return false;
    cx_value flag = tree_value(cx_tree_find(v.data, CX_STR("__conflict")));
    cx_value values = tree_value(cx_tree_find(v.data, CX_STR("values")));
    if (!value_is_leaf(flag) || !cx_str_eq(value_text(flag), CX_STR("true")) ||
        !value_is_leaf(values) || *(const char *)values.data != '[')
        return false;
    *out_values = value_text(values);
    return true;
}

/* --- patching ------------------------------------------------------------------------------ */

static cx_status check_size(cx_str text, cx_err *err)
{
    if (text.size > TREE_TEXT_MAX)
        return cx_fail(err, CX_E_LIMIT, "a state value of %zu bytes: found more than %zu",
                       text.size, TREE_TEXT_MAX);
    return CX_SUCCESS;
}

/* The name whose opening quote is at *at, which moves past the colon. */
static cx_status read_name(patcher *patch, const char **at, const char *end, tree_name *out,
                           cx_err *err)
{
    const char *after = skip_string(*at, end);
    cx_str quoted = cx_str_from(*at, (size_t)(after - *at));
    *at = after + 1;
    *out = (tree_name){cx_str_from(quoted.data + 1, quoted.size - 2), false};
    if (memchr(out->text.data, '\\', out->text.size) == NULL)
        return CX_SUCCESS;
    cx_json decoded;
    CX_TRY(cx_json_parse(&patch->parser, quoted, patch->forest->arena, &decoded, err));
    *out = (tree_name){cx_json_text(&decoded), true};
    return CX_SUCCESS;
}

/* What an object put in the place of `old` is patched onto. */
static const tree *base_for(cx_value old, bool fresh)
{
    return fresh || cx_value_is_conflict(old) ? NULL : value_root(old);
}

/* Goes into the object of that name, whose brace has been read. */
static bool enter_object(patcher *patch, const tree **root, tree_name name, bool fresh)
{
    patch_level *level = cx_vec_push(&patch->levels, patch->alloc);
    if (level == NULL)
        return false;
    *level = (patch_level){*root, name};
    *root = base_for(tree_value(cx_tree_find(*root, name.text)), fresh);
    return true;
}

static bool leave_object(patcher *patch, const tree **root)
{
    patch_level level = patch->levels.items[--patch->levels.count];
    if (!cx_tree_place(patch->forest, &patch->work, root))
        return false;
    cx_value inner = value_of_root(*root);
    *root = level.root;
    return cx_tree_set(patch->forest, root, level.name, inner);
}

/* One member with a value that is no object. */
static bool put_member(patcher *patch, const tree **root, tree_name name, cx_str text,
                       bool keep_nulls)
{
    if (*text.data == 'n' && !keep_nulls)
        return cx_tree_remove(patch->forest, root, name.text);
    return cx_tree_set(patch->forest, root, name, value_of_text(text));
}

static cx_status apply_object(patcher *patch, const tree **root, cx_str object, bool import,
                              cx_err *err)
{
    CX_TRY(check_size(object, err));
    const char *at = object.data + 1, *end = object.data + object.size;
    patch->levels.count = 0;
    for (;;) {
        bool ok;
        if (*at == '}') {
            at++;
            if (patch->levels.count == 0)
                break;
            ok = leave_object(patch, root);
        } else {
            tree_name name;
            if (*at == ',')
                at++;
            CX_TRY(read_name(patch, &at, end, &name, err));
            if (*at == '{') {
                at++;
                ok = enter_object(patch, root, name, import);
            } else {
                const char *after = cx_canon_skip(at, end);
                ok = put_member(patch, root, name, cx_str_from(at, (size_t)(after - at)), import);
                at = after;
            }
        }
        if (!ok)
            return cx_fail_nomem(err);
    }
    return cx_tree_place(patch->forest, &patch->work, root) ? CX_SUCCESS : cx_fail_nomem(err);
}

cx_status cx_patch_map(patcher *patch, const tree **root, cx_str object, cx_err *err)
{
    *root = base_for(value_of_root(*root), false);
    return apply_object(patch, root, object, false, err);
}

cx_status cx_patch_import(patcher *patch, cx_str text, cx_value *out, cx_err *err)
{
    if (*text.data != '{') {
        CX_TRY(check_size(text, err));
        *out = value_of_text(text);
        return CX_SUCCESS;
    }
    const tree *root = NULL;
    CX_TRY(apply_object(patch, &root, text, true, err));
    *out = value_of_root(root);
    return CX_SUCCESS;
}

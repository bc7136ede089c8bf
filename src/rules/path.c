/*
 * path.c - paths of contracts (run.md §7).
 *
 * Invariants U1 and U2: path.h.  The order of the lint's rules is the order in which they are
 * reported.
 */
#include "rules/path.h"

#include "base/api.h"
#include "rules/unicode.h"

/* --- Unicode ---------------------------------------------------------------------------------- */

static bool is_ascii(cx_str text)
{
    uint8_t seen = 0;
    for (size_t i = 0; i < text.size; i++)
        seen |= (uint8_t)text.data[i];
    return seen < 0x80;
}

/* §7: the code points that folding drops; other marks stay. */
static bool is_ignorable(uint32_t code)
{
    return (code >= 0x200C && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x206A && code <= 0x206F) || code == 0xFEFF;
}

/* White_Space of the Unicode character database. */
static bool is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

/* Code points of valid text, without dropped ones if asked; SIZE_MAX when there are too many. */
static size_t decode_code_points(cx_str text, bool drop_ignorable,
                                 int32_t codes[CX_UNICODE_CODES_MAX])
{
    size_t count = 0;
    for (size_t at = 0; at < text.size;) {
        size_t step;
        uint32_t code = cx_utf8_decode((const uint8_t *)text.data + at, &step);
        at += step;
        if (drop_ignorable && is_ignorable(code))
            continue;
        if (count == CX_UNICODE_CODES_MAX)
            return SIZE_MAX;
        codes[count++] = (int32_t)code;
    }
    return count;
}

bool cx_run_text_is_nfc(cx_str text)
{
    int32_t codes[CX_UNICODE_CODES_MAX];
    char composed[CX_UNICODE_CODES_MAX];
    size_t size;
    if (is_ascii(text))
        return true;
    if (text.size > sizeof composed || !cx_utf8_valid(text))
        return false;
    size_t count = decode_code_points(text, false, codes);
    if (count == SIZE_MAX ||
        !cx_unicode_compose(codes, count, false, composed, sizeof composed, &size))
        return false;
    return cx_str_eq(text, cx_str_from(composed, size));
}

bool cx_run_text_has_ignorable(cx_str text)
{
    if (is_ascii(text) || !cx_utf8_valid(text))
        return false;
    for (size_t at = 0; at < text.size;) {
        size_t step;
        if (is_ignorable(cx_utf8_decode((const uint8_t *)text.data + at, &step)))
            return true;
        at += step;
    }
    return false;
}

/* --- components ------------------------------------------------------------------------------- */

/* The next component from *at, `.` and empty ones skipped; false when there is none. */
static bool next_component(cx_str path, size_t *at, cx_str *out)
{
    while (*at < path.size) {
        size_t start = *at, end = start;
        while (end < path.size && path.data[end] != '/')
            end++;
        *at = end + 1;
        if (end == start || (end - start == 1 && path.data[start] == '.'))
            continue;
        *out = cx_str_from(path.data + start, end - start);
        return true;
    }
    return false;
}

static bool is_dot_dot(cx_str component)
{
    return cx_str_eq(component, CX_STR(".."));
}

static bool has_dot_dot(cx_str path)
{
    cx_str component;
    for (size_t at = 0; next_component(path, &at, &component);)
        if (is_dot_dot(component))
            return true;
    return false;
}

static bool ends_in_slash(cx_str path)
{
    return path.size != 0 && path.data[path.size - 1] == '/';
}

/* --- folding ---------------------------------------------------------------------------------- */

static char ascii_lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte + ('a' - 'A')) : byte;
}

/* Folds one component; `out` holds four times its bytes. */
static bool fold_component(cx_str component, char *out, size_t capacity, size_t *out_size)
{
    size_t size = 0;
    if (is_ascii(component)) {
        if (component.size > capacity)
            return false;
        for (; size < component.size; size++)
            out[size] = ascii_lower(component.data[size]);
    } else {
        int32_t codes[CX_UNICODE_CODES_MAX];
        size_t count = decode_code_points(component, true, codes);
        if (count == SIZE_MAX || !cx_unicode_compose(codes, count, true, out, capacity, &size))
            return false;
    }
    while (size != 0 && (out[size - 1] == '.' || out[size - 1] == ' '))
        size--;
    cx_str folded = cx_str_from(out, size);
    if (cx_str_eq(folded, CX_STR("git~1")) || cx_str_starts(folded, CX_STR(".git:"))) {
        memcpy(out, ".git", 4);
        size = 4;
    }
    *out_size = size;
    return true;
}

bool cx_run_path_fold(cx_str path, char *out, size_t capacity, size_t *out_size)
{
    CX_ASSERT(out != NULL && out_size != NULL);
    size_t size = 0;
    cx_str component;
    if (path.size > CX_RUN_PATH_BYTES_MAX || !cx_utf8_valid(path))
        return false;
    for (size_t at = 0; next_component(path, &at, &component);) {
        size_t got, slash = size == 0 ? 0 : 1;
        if (size + slash > capacity ||
            !fold_component(component, out + size + slash, capacity - size - slash, &got))
            return false;
        if (got == 0)
            continue; /* only dots and spaces: dropped, so what is below counts as a sibling */
        if (slash != 0)
            out[size] = '/';
        size += slash + got;
    }
    *out_size = size;
    return true;
}

/* --- protected -------------------------------------------------------------------------------- */

static bool is_protected_name(cx_str folded)
{
    static const char *const names[] = {".git", ".gitignore", ".gitattributes", ".gitmodules",
                                        ".env"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_str_is(folded, names[i]))
            return true;
    return cx_str_starts(folded, CX_STR(".env.")) && !cx_str_eq(folded, CX_STR(".env.example"));
}

/* `a` covers `b`, both folded. */
static bool folded_covers(cx_str a, cx_str b)
{
    return cx_str_starts(b, a) && (b.size == a.size || b.data[a.size] == '/');
}

static bool is_below_root(cx_str folded_path, const cx_run_path_context *ground)
{
    char root[CX_RUN_PATH_BYTES_MAX * 4];
    size_t size;
    if (ground == NULL || ground->runtime_root.size == 0)
        return false;
    if (!cx_run_path_fold(ground->runtime_root, root, sizeof root, &size))
        return true; /* U2 */
    cx_str folded_root = cx_str_from(root, size);
    return size != 0 && folded_covers(folded_root, folded_path);
}

bool cx_run_path_protected(cx_str path, const cx_run_path_context *ground)
{
    char folded[CX_RUN_PATH_BYTES_MAX * 4];
    size_t size;
    cx_str component;
    bool first = true;
    if (!cx_run_path_fold(path, folded, sizeof folded, &size))
        return true; /* U2 */
    cx_str all = cx_str_from(folded, size);
    for (size_t at = 0; next_component(all, &at, &component); first = false)
        if (is_protected_name(component) ||
            (first && cx_str_eq(component, CX_STR(".runtime-cache"))))
            return true;
    return is_below_root(all, ground);
}

/* --- lint ------------------------------------------------------------------------------------- */

static bool is_blank(cx_str entry)
{
    for (size_t at = 0; at < entry.size;) {
        size_t step = cx_utf8_sequence((const uint8_t *)entry.data + at, entry.size - at);
        if (step == 0 || !is_space(cx_utf8_decode((const uint8_t *)entry.data + at, &step)))
            return false;
        at += step;
    }
    return true;
}

/* P02. The bytes may be invalid UTF-8, which is skipped here and found by P03. */
static bool has_outer_space_or_control(cx_str entry)
{
    bool last_was_space = false;
    for (size_t at = 0; at < entry.size;) {
        const uint8_t *here = (const uint8_t *)entry.data + at;
        size_t step = cx_utf8_sequence(here, entry.size - at);
        uint32_t code = step == 0 ? 'x' : cx_utf8_decode(here, &step);
        if (is_control(code) || (at == 0 && is_space(code)))
            return true;
        last_was_space = is_space(code);
        at += step == 0 ? 1 : step;
    }
    return last_was_space;
}

static bool has_wildcard(cx_str entry)
{
    for (size_t i = 0; i < entry.size; i++)
        if (strchr("*?[]{}", entry.data[i]) != NULL && entry.data[i] != 0)
            return true;
    return false;
}

static bool has_bad_start(cx_str entry)
{
    char first = entry.data[0];
    bool letter = ascii_lower(first) >= 'a' && ascii_lower(first) <= 'z';
    return first == '!' || first == ':' || first == '~' || first == '-' || first == '/' ||
           (letter && entry.size > 1 && entry.data[1] == ':') ||
           memchr(entry.data, '\\', entry.size) != NULL;
}

const char *cx_run_path_lint(cx_str entry, const cx_run_path_context *ground)
{
    size_t at = 0;
    cx_str component;
    if (is_blank(entry))
        return "P01";
    if (has_outer_space_or_control(entry))
        return "P02";
    if (entry.size > CX_RUN_PATH_BYTES_MAX || !cx_utf8_valid(entry) || !cx_run_text_is_nfc(entry))
        return "P03";
    if (has_wildcard(entry))
        return "P04";
    if (has_bad_start(entry))
        return "P05";
    if (has_dot_dot(entry))
        return "P06";
    if (!next_component(entry, &at, &component))
        return "P07";
    if (cx_run_path_protected(entry, ground))
        return "P08";
    return NULL;
}

const char *cx_run_path_rule_text(const char *rule)
{
    static const struct {
        const char *rule, *text;
    } texts[] = {
        {"P01", "is empty or blank; name a folder or a file"},
        {"P02", "has white space at an end or a control character; take it out"},
        {"P03", "is not UTF-8 in normal form C, or longer than 4095 bytes; write the characters "
                "composed"},
        {"P04", "has a wildcard; name the folder (\"src/app/\") or each file"},
        {"P05", "is not relative to the repository, or starts with what git or a shell reads "
                "otherwise; write it like \"src/app/\""},
        {"P06", "has a '..' component; write where it leads"},
        {"P07", "is the whole repository; name the folders that are meant"},
        {"P08", "is protected: no contract may allow changes to it"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        if (strcmp(texts[i].rule, rule) == 0)
            return texts[i].text;
    return "is not a path of this repository";
}

/* --- covering --------------------------------------------------------------------------------- */

/* Component by component; the entry has passed the lint, the path has no `..`. */
static bool components_cover(cx_str entry, cx_str path)
{
    size_t entry_at = 0, path_at = 0;
    cx_str wanted, found;
    while (next_component(entry, &entry_at, &wanted))
        if (!next_component(path, &path_at, &found) || !cx_str_eq(wanted, found))
            return false;
    return !ends_in_slash(entry) || next_component(path, &path_at, &found);
}

bool cx_run_path_covers(cx_str entry, cx_str path)
{
    return cx_run_path_lint(entry, NULL) == NULL && !has_dot_dot(path) &&
           components_cover(entry, path);
}

bool cx_run_path_covered(const cx_str *entries, size_t count, cx_str path)
{
    CX_ASSERT(count == 0 || entries != NULL);
    for (size_t i = 0; i < count; i++)
        if (cx_run_path_covers(entries[i], path))
            return true;
    return false;
}

cx_run_overlap cx_run_path_overlap(cx_str a, cx_str b, const cx_run_path_context *ground)
{
    char folded_a[CX_RUN_PATH_BYTES_MAX * 4], folded_b[CX_RUN_PATH_BYTES_MAX * 4];
    cx_str one, other;
    if (cx_run_path_lint(a, ground) != NULL || cx_run_path_lint(b, ground) != NULL)
        return CX_RUN_OVERLAP_INVALID;
    one.data = folded_a;
    other.data = folded_b;
    if (!cx_run_path_fold(a, folded_a, sizeof folded_a, &one.size) ||
        !cx_run_path_fold(b, folded_b, sizeof folded_b, &other.size))
        return CX_RUN_OVERLAP; /* U2 */
    return folded_covers(one, other) || folded_covers(other, one) ? CX_RUN_OVERLAP : CX_RUN_APART;
}

/* --- wide ------------------------------------------------------------------------------------- */

enum { TREE_SMALL = 20 }; /* files; half of a smaller tree is few files */

/* A single component is wide unless it is a file of the tree, or looks like one. */
static bool is_wide_name(cx_str name, bool slash, const cx_run_tree *tree)
{
    if (slash)
        return true;
    for (size_t i = 0; tree != NULL && i < tree->count; i++) {
        cx_str file = tree->files[i];
        if (cx_str_eq(file, name))
            return false;
        if (cx_str_starts(file, name) && file.data[name.size] == '/')
            return true;
    }
    return memchr(name.data, '.', name.size) == NULL;
}

bool cx_run_path_wide(cx_str entry, const cx_run_tree *tree)
{
    CX_ASSERT(tree == NULL || tree->count == 0 || tree->files != NULL);
    cx_str name, more;
    size_t at = 0, covered = 0;
    if (cx_run_path_lint(entry, NULL) != NULL || !next_component(entry, &at, &name))
        return false;
    if (!next_component(entry, &at, &more) && is_wide_name(name, ends_in_slash(entry), tree))
        return true;
    if (tree == NULL || tree->count < TREE_SMALL)
        return false;
    for (size_t i = 0; i < tree->count; i++)
        if (components_cover(entry, tree->files[i]))
            covered++;
    return covered > tree->count / 2;
}

cx_str cx_run_path_normal(cx_str entry, cx_arena *arena)
{
    char *out = cx_arena_push(arena, entry.size + 1, 1);
    size_t size = 0;
    cx_str component;
    if (out == NULL)
        return cx_str_from(NULL, 0);
    for (size_t at = 0; next_component(entry, &at, &component);) {
        if (size != 0)
            out[size++] = '/';
        memcpy(out + size, component.data, component.size);
        size += component.size;
    }
    out[size] = 0;
    return cx_str_from(out, size);
}

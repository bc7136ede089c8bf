/*
 * verify_patch.c - what the patch changes, what the list of names says, and what the contract
 * allows (run.md §9, §18).
 *
 * A patch as `git diff-tree -p --binary --full-index -M` prints it: sections that begin with
 * "diff --git A B"; names are in "rename from/to", in "--- a/.." and "+++ b/..", or, for changes
 * of nothing but modes and for empty files, only in the first line.
 */
#include <stdlib.h>

#include "rules/api.h"
#include "audit/verify_internal.h"

#define PATCH CX_STR("patch.diff")
#define NAMES CX_STR("diff_name_only.txt")
#define PATCH_BYTES_MAX ((size_t)256 << 20)
#define NAMES_BYTES_MAX ((size_t)64 << 20)

typedef CX_VEC(cx_str) path_list;

/* --- names as git quotes them ----------------------------------------------------------------- */

static bool octal(char c)
{
    return c >= '0' && c <= '7';
}

/* What "..." stands for; `*used` bytes of the text, quotes included. */
static bool unquote(cx_str text, cx_arena *arena, cx_str *out, size_t *used)
{
    static const char letters[] = "abfnrtv\"\\", meant[] = "\a\b\f\n\r\t\v\"\\";
    char *to = cx_arena_push(arena, text.size + 1, 1);
    size_t size = 0, i = 1;
    if (to == NULL || text.size < 2 || text.data[0] != '"')
        return false;
    while (i < text.size && text.data[i] != '"') {
        if (text.data[i] != '\\') {
            to[size++] = text.data[i++];
            continue;
        }
        if (++i >= text.size)
            return false;
        const char *letter = text.data[i] == '\0' ? NULL : strchr(letters, text.data[i]);
        if (letter != NULL) {
            to[size++] = meant[letter - letters];
            i++;
        } else if (i + 2 < text.size && text.data[i] <= '3' && octal(text.data[i]) &&
                   octal(text.data[i + 1]) && octal(text.data[i + 2])) {
            to[size++] = (char)((text.data[i] - '0') * 64 + (text.data[i + 1] - '0') * 8 +
                                (text.data[i + 2] - '0'));
            i += 3;
        } else {
            return false;
        }
    }
    if (i >= text.size)
        return false;
    *out = cx_str_from(to, size);
    *used = i + 1;
    return true;
}

/* One name, quoted or not, that fills the whole text. */
static bool name_of(cx_str text, cx_arena *arena, cx_str *out)
{
    size_t used;
    if (text.size != 0 && text.data[0] == '"')
        return unquote(text, arena, out, &used) && used == text.size;
    *out = text;
    return text.size != 0;
}

/* "a/X" or "b/X" to X. */
static bool is_below(cx_str text, char side, cx_str *out)
{
    if (text.size < 3 || text.data[0] != side || text.data[1] != '/')
        return false;
    *out = cx_str_from(text.data + 2, text.size - 2);
    return true;
}

/* The two names of a first line, which are equal wherever they are needed. */
static bool both_names(cx_str rest, cx_arena *arena, cx_str *out)
{
    cx_str left, right, a, b;
    size_t used;
    if (rest.size != 0 && rest.data[0] == '"') {
        if (!unquote(rest, arena, &left, &used) || used >= rest.size || rest.data[used] != ' ' ||
            !name_of(cx_str_from(rest.data + used + 1, rest.size - used - 1), arena, &right))
            return false;
    } else {
        if (rest.size % 2 == 0)
            return false;
        size_t half = rest.size / 2;
        if (rest.data[half] != ' ')
            return false;
        left = cx_str_from(rest.data, half);
        right = cx_str_from(rest.data + half + 1, half);
    }
    if (!is_below(left, 'a', &a) || !is_below(right, 'b', &b) || !cx_str_eq(a, b))
        return false;
    *out = a;
    return true;
}

/* --- a patch ---------------------------------------------------------------------------------- */

typedef struct section {
    bool open, body; /* body: after the first "@@" or "GIT binary patch" */
    cx_str first;    /* what follows "diff --git " */
    bool named;      /* by another line */
} section;

static bool starts(cx_str line, const char *prefix, cx_str *out_rest)
{
    cx_str text = cx_str_z(prefix);
    if (!cx_str_starts(line, text))
        return false;
    *out_rest = cx_str_from(line.data + text.size, line.size - text.size);
    return true;
}

typedef struct patch_reader {
    cx_arena *arena;
    path_list paths;
    bool readable, failed;
} patch_reader;

static void add_path(patch_reader *r, cx_str path)
{
    cx_str *slot = cx_vec_push(&r->paths, r->arena->alloc);
    if (slot == NULL)
        r->failed = true;
    else
        *slot = path;
}

/* "--- a/X" and "+++ b/X"; git puts a TAB after a name with blanks. */
static void add_path_of_side(patch_reader *r, section *s, cx_str rest, char side)
{
    cx_str name, path;
    if (rest.size != 0 && rest.data[rest.size - 1] == '\t')
        rest.size--;
    if (cx_str_is(rest, "/dev/null"))
        return;
    if (!name_of(rest, r->arena, &name) || !is_below(name, side, &path)) {
        r->readable = false;
        return;
    }
    add_path(r, path);
    s->named = true;
}

static void end_section(patch_reader *r, section *s)
{
    cx_str path;
    if (s->open && !s->named) {
        if (both_names(s->first, r->arena, &path))
            add_path(r, path);
        else
            r->readable = false;
    }
    *s = (section){0};
}

static void take_line(patch_reader *r, section *s, cx_str line)
{
    cx_str rest, path;
    if (starts(line, "diff --git ", &rest)) {
        end_section(r, s);
        *s = (section){.open = true, .first = rest};
    } else if (!s->open) {
        r->readable = false; /* nothing comes before the first section */
    } else if (s->body) {
        return;
    } else if (starts(line, "@@ ", &rest) || starts(line, "GIT binary patch", &rest)) {
        s->body = true;
    } else if (starts(line, "rename from ", &rest) || starts(line, "rename to ", &rest) ||
               starts(line, "copy from ", &rest) || starts(line, "copy to ", &rest)) {
        bool source = cx_str_starts(line, CX_STR("copy from "));
        if (!name_of(rest, r->arena, &path))
            r->readable = false;
        else if (!source)
            add_path(r, path);
        s->named = true;
    } else if (starts(line, "--- ", &rest)) {
        add_path_of_side(r, s, rest, 'a');
    } else if (starts(line, "+++ ", &rest)) {
        add_path_of_side(r, s, rest, 'b');
    }
}

static int by_text(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

/* Sorted, each once, in the arena. */
static cx_status sort_unique_paths(patch_reader *r, cx_str **out, size_t *out_count, cx_err *err)
{
    cx_str *paths = CX_ARENA_ARRAY(r->arena, cx_str, r->paths.count + 1);
    size_t count = 0;
    if (paths == NULL || r->failed)
        return cx_fail_nomem(err);
    if (r->paths.count != 0)
        qsort(r->paths.items, r->paths.count, sizeof *r->paths.items, by_text);
    for (size_t i = 0; i < r->paths.count; i++)
        if (count == 0 || !cx_str_eq(paths[count - 1], r->paths.items[i]))
            paths[count++] = r->paths.items[i];
    *out = paths;
    *out_count = count;
    return CX_SUCCESS;
}

cx_status cx_run_patch_paths(cx_str patch, cx_arena *arena, cx_str **out, size_t *out_count,
                             bool *out_readable, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    patch_reader r = {.arena = arena, .readable = true};
    section s = {0};
    cx_str line;
    while (cx_run_next_line(&patch, &line) && !r.failed)
        take_line(&r, &s, line);
    end_section(&r, &s);
    *out_readable = r.readable && patch.size == 0;
    cx_status status = sort_unique_paths(&r, out, out_count, err);
    cx_vec_done(&r.paths, arena->alloc);
    return status;
}

cx_status cx_run_name_list(cx_str text, cx_arena *arena, cx_str **out, size_t *out_count,
                           bool *out_readable, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    patch_reader r = {.arena = arena, .readable = true};
    cx_str line, name;
    while (cx_run_next_line(&text, &line) && !r.failed) {
        if (name_of(line, arena, &name))
            add_path(&r, name);
        else
            r.readable = false;
    }
    /* Byte-sorted, each name once (§9). */
    for (size_t i = 1; i < r.paths.count; i++)
        r.readable &= cx_str_cmp(r.paths.items[i - 1], r.paths.items[i]) < 0;
    *out_readable = r.readable && text.size == 0;
    cx_status status = sort_unique_paths(&r, out, out_count, err);
    cx_vec_done(&r.paths, arena->alloc);
    return status;
}

/* --- names and scope -------------------------------------------------------------------------- */

static int printed_size(cx_str path)
{
    return (int)(path.size > 200 ? 200 : path.size);
}

static void compare(cx_run_verification *v, const cx_str *patch, size_t patch_count,
                    const cx_str *names, size_t name_count)
{
    size_t p = 0, n = 0;
    while (p < patch_count || n < name_count) {
        int order = p == patch_count ? 1 : n == name_count ? -1 : cx_str_cmp(patch[p], names[n]);
        if (order < 0)
            cx_run_verify_add_finding(v, CX_RUN_PATCH_NAMES, NAMES,
                                      "the patch changes %.*s, which is not named",
                                      printed_size(patch[p]), patch[p].data);
        if (order > 0)
            cx_run_verify_add_finding(v, CX_RUN_PATCH_NAMES, NAMES,
                                      "%.*s is named, the patch does not change it",
                                      printed_size(names[n]), names[n].data);
        p += order <= 0;
        n += order >= 0;
    }
}

static cx_status check_scope(cx_run_verification *v, cx_str document, const cx_str *paths,
                             size_t count)
{
    const cx_json *allowed =
        cx_json_get_typed(&v->contract, CX_STR("allowed_paths"), CX_JSON_ARRAY);
    uint32_t entry_count = allowed == NULL ? 0 : allowed->count;
    cx_str *entries = CX_ARENA_ARRAY(v->arena, cx_str, (size_t)entry_count + 1);
    size_t texts = 0;
    if (entries == NULL)
        return cx_fail_nomem(v->err);
    for (uint32_t i = 0; i < entry_count; i++)
        if (allowed->items[i].type == CX_JSON_STRING)
            entries[texts++] = cx_json_text(&allowed->items[i]);
    for (size_t i = 0; i < count; i++)
        if (!cx_run_path_covered(entries, texts, paths[i]) || cx_run_path_protected(paths[i], NULL))
            cx_run_verify_add_finding(v, CX_RUN_DIFF_SCOPE, document,
                                      "%.*s is outside the contract's allowed_paths",
                                      printed_size(paths[i]), paths[i].data);
    return CX_SUCCESS;
}

cx_status cx_run_verify_patch(cx_run_verification *v)
{
    cx_bytes patch, names;
    cx_str *patched, *named;
    size_t patched_count, named_count;
    bool readable;
    CX_TRY(cx_run_verify_bytes(v, PATCH, PATCH_BYTES_MAX, &patch));
    CX_TRY(cx_run_verify_bytes(v, NAMES, NAMES_BYTES_MAX, &names));
    if (patch.data == NULL || names.data == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_run_patch_paths(cx_bytes_str(patch), v->arena, &patched, &patched_count, &readable,
                              v->err));
    if (!readable)
        cx_run_verify_add_finding(v, CX_RUN_PATCH_NAMES, PATCH, "it is no patch as git writes it");
    CX_TRY(
        cx_run_name_list(cx_bytes_str(names), v->arena, &named, &named_count, &readable, v->err));
    if (!readable)
        cx_run_verify_add_finding(v, CX_RUN_PATCH_NAMES, NAMES,
                                  "it is no sorted list of names, one a line");
    compare(v, patched, patched_count, named, named_count);
    if (v->success && v->contract.type == CX_JSON_OBJECT) {
        CX_TRY(check_scope(v, PATCH, patched, patched_count));
        CX_TRY(check_scope(v, NAMES, named, named_count));
    }
    return CX_SUCCESS;
}

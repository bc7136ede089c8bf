/*
 * git_refs.c - object names, and questions about references that take one call of git.
 *
 * Invariant: a reference is never at a position where git would read an option.
 */
#include "git/git.h"

#include <stdio.h>

#include "os/api.h"
#include "crypto/api.h"
#include "git/git_parts.h"

#define REF_BYTES_MAX 1024

/* --- names of objects ------------------------------------------------------------------------- */

bool cx_oid_eq(const cx_oid *a, const cx_oid *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

void cx_oid_text(const cx_oid *oid, char out[CX_OID_TEXT_SIZE])
{
    CX_ASSERT(oid->size <= CX_OID_BYTES_MAX);
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < oid->size; i++) {
        out[2 * i] = digits[oid->bytes[i] >> 4];
        out[2 * i + 1] = digits[oid->bytes[i] & 15];
    }
    out[2 * (size_t)oid->size] = '\0';
}

/* The value of a hex digit plus one; 0 for anything else. A table because listings of trees are
 * mostly hex digits. */
static const uint8_t digit_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};

bool cx_oid_parse(cx_str text, cx_oid *out)
{
    cx_oid oid = {.size = 0};
    if (text.size != 40 && text.size != 64)
        return false;
    for (size_t i = 0; i < text.size; i += 2) {
        unsigned high = digit_values[(uint8_t)text.data[i]];
        unsigned low = digit_values[(uint8_t)text.data[i + 1]];
        if (high == 0 || low == 0)
            return false;
        oid.bytes[i / 2] = (uint8_t)((high - 1) << 4 | (low - 1));
    }
    oid.size = (uint8_t)(text.size / 2);
    *out = oid;
    return true;
}

bool cx_oid_is_zero(const cx_oid *oid)
{
    static const uint8_t zeros[CX_OID_BYTES_MAX];
    return memcmp(oid->bytes, zeros, sizeof zeros) == 0;
}

cx_oid cx_git_object_oid(size_t oid_size, const char *type, cx_bytes contents)
{
    CX_ASSERT(oid_size == 20 || oid_size == 32);
    cx_oid oid = {.size = (uint8_t)oid_size};
    char head[64];
    int size = snprintf(head, sizeof head, "%s %zu", type, contents.size);
    size_t head_size = (size_t)size + 1; /* with its zero byte */
    if (oid_size == 20) {
        cx_sha1 hash;
        cx_sha1_init(&hash);
        cx_sha1_add(&hash, head, head_size);
        cx_sha1_add(&hash, contents.data, contents.size);
        cx_sha1_end(&hash, oid.bytes);
    } else {
        cx_sha256 hash;
        cx_sha256_init(&hash);
        cx_sha256_add(&hash, head, head_size);
        cx_sha256_add(&hash, contents.data, contents.size);
        cx_digest digest = cx_sha256_end(&hash);
        memcpy(oid.bytes, digest.bytes, sizeof digest.bytes);
    }
    return oid;
}

cx_oid cx_git_blob_oid(const cx_git *git, cx_bytes contents)
{
    return cx_git_object_oid(cx_git_oid_size(git), "blob", contents);
}

/* --- references ------------------------------------------------------------------------------- */

/* Whether a text is safe to pass to git as a reference. */
static bool is_ref_text(cx_str ref)
{
    if (ref.size == 0 || ref.size > REF_BYTES_MAX || ref.data[0] == '-' || ref.data[0] == ':')
        return false;
    for (size_t i = 0; i < ref.size; i++)
        if ((uint8_t)ref.data[i] <= ' ' || ref.data[i] == 0x7f)
            return false;
    return true;
}

/* Parses one line that is an object name. */
static cx_status parse_oid_line(const cx_git *git, const cx_buf *text, cx_oid *out, cx_err *err)
{
    cx_str line = cx_buf_str(text);
    while (line.size != 0 && line.data[line.size - 1] == '\n')
        line.size--;
    if (!cx_oid_parse(line, out) || out->size != cx_git_oid_size(git))
        return cx_fail(err, CX_E_FORMAT, "git printed something other than an object name");
    return CX_SUCCESS;
}

cx_status cx_git_call_oid(const cx_git *git, const cx_git_call *call, cx_oid *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_git_call_run(git, call, &text, NULL, err);
    if (!cx_failed(status))
        status = parse_oid_line(git, &text, out, err);
    cx_buf_done(&text);
    return status;
}

static cx_status resolve_as_type(const cx_git *git, cx_str ref, const char *type, cx_oid *out,
                                 cx_err *err)
{
    char peeled[REF_BYTES_MAX + 16];
    cx_buf text;
    int code = 0;
    if (!is_ref_text(ref))
        return cx_fail(err, CX_E_NOT_FOUND,
                       "'%.*s' is not a reference; name a branch, a tag or a commit",
                       (int)(ref.size > 80 ? 80 : ref.size), ref.data);
    (void)snprintf(peeled, sizeof peeled, "%.*s^{%s}", (int)ref.size, ref.data, type);
    cx_git_call call = {
        .args = CX_GIT_ARGS("rev-parse", "--verify", "--quiet", "--end-of-options", peeled),
        .bare = true};
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_git_call_run(git, &call, &text, &code, err);
    if (!cx_failed(status) && code != 0)
        status = cx_fail(err, CX_E_NOT_FOUND, "'%.*s' names no %s of the repository",
                         (int)(ref.size > 80 ? 80 : ref.size), ref.data, type);
    if (!cx_failed(status))
        status = parse_oid_line(git, &text, out, err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_git_resolve(const cx_git *git, cx_str ref, cx_oid *out, cx_err *err)
{
    return resolve_as_type(git, ref, "commit", out, err);
}

cx_status cx_git_tree_of(const cx_git *git, const cx_oid *commit, cx_oid *out, cx_err *err)
{
    char text[CX_OID_TEXT_SIZE];
    cx_oid_text(commit, text);
    return resolve_as_type(git, cx_str_z(text), "tree", out, err);
}

cx_status cx_git_is_ancestor(const cx_git *git, const cx_oid *ancestor, const cx_oid *commit,
                             bool *out, cx_err *err)
{
    char a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE];
    int code = 0;
    cx_oid_text(ancestor, a);
    cx_oid_text(commit, b);
    cx_git_call call = {.args = CX_GIT_ARGS("merge-base", "--is-ancestor", a, b), .bare = true};
    CX_TRY(cx_git_call_run(git, &call, NULL, &code, err));
    if (code != 0 && code != 1)
        return cx_fail(err, CX_E_NOT_FOUND, "git cannot compare the commits %.12s and %.12s", a, b);
    *out = code == 0;
    return CX_SUCCESS;
}

cx_status cx_git_merge_base(const cx_git *git, const cx_oid *a, const cx_oid *b, cx_oid *out,
                            cx_err *err)
{
    char first[CX_OID_TEXT_SIZE], second[CX_OID_TEXT_SIZE];
    size_t line = 2 * cx_git_oid_size(git) + 1;
    int code = 0;
    cx_buf text;
    cx_oid_text(a, first);
    cx_oid_text(b, second);
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {.args = CX_GIT_ARGS("merge-base", "--all", first, second), .bare = true};
    cx_status status = cx_git_call_run(git, &call, &text, &code, err);
    if (!cx_failed(status) && (code != 0 || text.size < line))
        status = cx_fail(err, CX_E_NOT_FOUND,
                         "the commits %.12s and %.12s have no history in common", first, second);
    else if (!cx_failed(status) && text.size != line)
        status = cx_fail(err, CX_E_NOT_FOUND,
                         "the commits %.12s and %.12s were merged into each other crosswise, so "
                         "there is no one commit to compare with; merge the first into the second",
                         first, second);
    else if (!cx_failed(status) && !cx_oid_parse((cx_str){(const char *)text.data, line - 1}, out))
        status = cx_fail(err, CX_E_FORMAT, "git names a commit in a form that is not known");
    cx_buf_done(&text);
    return status;
}

cx_status cx_git_is_shallow(const cx_git *git, bool *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {.args = CX_GIT_ARGS("rev-parse", "--is-shallow-repository"), .bare = true};
    cx_status status = cx_git_call_run(git, &call, &text, NULL, err);
    *out = !cx_str_eq(cx_buf_str(&text), CX_STR("false\n"));
    cx_buf_done(&text);
    return status;
}

cx_status cx_git_root_commit(const cx_git *git, cx_oid *out, cx_err *err)
{
    cx_buf text;
    cx_oid best = {.size = 0}, oid;
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {.args = CX_GIT_ARGS("rev-list", "--max-parents=0", "HEAD", "--"),
                        .bare = true};
    cx_status status = cx_git_call_run(git, &call, &text, NULL, err);
    cx_str rest = cx_buf_str(&text);
    size_t line = 2 * cx_git_oid_size(git) + 1;
    for (; !cx_failed(status) && rest.size >= line; rest.data += line, rest.size -= line)
        if (cx_oid_parse((cx_str){rest.data, line - 1}, &oid) &&
            (best.size == 0 || memcmp(oid.bytes, best.bytes, oid.size) < 0))
            best = oid;
    bool unborn =
        cx_failed(status) && cx_git_resolve(git, CX_STR("HEAD"), &oid, NULL).code == CX_E_NOT_FOUND;
    if (unborn || (!cx_failed(status) && best.size == 0))
        status = cx_fail(err, CX_E_NOT_FOUND,
                         "the repository has no commit yet: runs start from one; commit something");
    cx_buf_done(&text);
    CX_TRY(status);
    *out = best;
    return CX_SUCCESS;
}

cx_status cx_git_head_ref(const cx_git *git, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_buf text;
    int code = 0;
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {.args = CX_GIT_ARGS("symbolic-ref", "--quiet", "HEAD"), .bare = true};
    cx_status status = cx_git_call_run(git, &call, &text, &code, err);
    if (!cx_failed(status)) {
        cx_str line = cx_buf_str(&text);
        if (line.size != 0 && line.data[line.size - 1] == '\n')
            line.size--;
        *out = cx_arena_copy_str(arena, code == 0 ? line : CX_STR(""));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status check_ref_name(cx_str name, cx_err *err)
{
    if (!cx_str_starts(name, CX_STR("refs/")) || !is_ref_text(name))
        return cx_fail(err, CX_E_USAGE,
                       "'%.*s' is not a full reference name such as refs/heads/main",
                       (int)(name.size > 80 ? 80 : name.size), name.data);
    return CX_SUCCESS;
}

cx_status cx_git_ref(const cx_git *git, cx_str name, cx_oid *out, cx_err *err)
{
    char z[REF_BYTES_MAX + 1];
    cx_buf text;
    int code = 0;
    CX_TRY(check_ref_name(name, err));
    (void)snprintf(z, sizeof z, "%.*s", (int)name.size, name.data);
    cx_git_call call = {.args = CX_GIT_ARGS("show-ref", "--verify", "--hash", "--", z),
                        .bare = true};
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_git_call_run(git, &call, &text, &code, err);
    if (!cx_failed(status) && code != 0)
        status = cx_fail(err, CX_E_NOT_FOUND, "the repository has no reference %s", z);
    if (!cx_failed(status))
        status = parse_oid_line(git, &text, out, err);
    cx_buf_done(&text);
    return status;
}

/* Whether the reference has the value that a compare-and-swap expects; errors other than absence
 * are returned. */
static cx_status ref_has_value(const cx_git *git, cx_str name, const cx_oid *expected, bool *out,
                               cx_err *err)
{
    cx_oid now;
    cx_status status = cx_git_ref(git, name, &now, err);
    if (status.code == CX_E_NOT_FOUND)
        *out = expected->size == 0;
    else if (!cx_failed(status))
        *out = cx_oid_eq(&now, expected);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

cx_status cx_git_ref_set(const cx_git *git, cx_str name, const cx_oid *fresh, const cx_oid *old,
                         cx_err *err)
{
    char z[REF_BYTES_MAX + 1], to[CX_OID_TEXT_SIZE], from[CX_OID_TEXT_SIZE];
    int code = 0;
    bool is_old = false;
    CX_TRY(check_ref_name(name, err));
    cx_oid zero = {.size = (uint8_t)cx_git_oid_size(git)};
    (void)snprintf(z, sizeof z, "%.*s", (int)name.size, name.data);
    cx_oid_text(fresh->size == 0 ? &zero : fresh, to);
    cx_oid_text(old->size == 0 ? &zero : old, from);
    cx_git_call call = {.args = fresh->size == 0
                                    ? CX_GIT_ARGS("update-ref", "--no-deref", "-d", z, from)
                                    : CX_GIT_ARGS("update-ref", "--no-deref", z, to, from),
                        .bare = true};
    CX_TRY(cx_git_call_run(git, &call, NULL, &code, err));
    if (code == 0)
        return CX_SUCCESS;
    CX_TRY(ref_has_value(git, name, old, &is_old, err));
    return is_old ? cx_fail(err, CX_E_IO, "git cannot change the reference %s", z)
                  : cx_fail(err, CX_E_CONFLICT, "the reference %s was moved by another process", z);
}

cx_status cx_git_is_ignored(const cx_git *git, const char *path, bool *out, cx_err *err)
{
    int code = 0;
    char pathspec[CX_PATH_BYTES_MAX + 8];
    int size = snprintf(pathspec, sizeof pathspec, "%s%s", path[0] == '/' ? "" : "./", path);
    if (size < 0 || (size_t)size >= sizeof pathspec)
        return cx_fail(err, CX_E_LIMIT, "a path is longer than %d bytes", CX_PATH_BYTES_MAX);
    cx_git_call call = {.args = CX_GIT_ARGS("check-ignore", "-q", "--", pathspec),
                        .plain_paths = true};
    CX_TRY(cx_git_call_run(git, &call, NULL, &code, err));
    if (code != 0 && code != 1)
        return cx_fail(err, CX_E_FORMAT, "git cannot say whether %s is ignored", path);
    *out = code == 0;
    return CX_SUCCESS;
}

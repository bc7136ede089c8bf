/*
 * diff_raw.c - what git's diff commands print, and paths quoted as git quotes them (run.md §9).
 */
#include "candidate/diff.h"
#include "git/api.h"

/* --- raw records ------------------------------------------------------------------------------ */

typedef struct raw_reader {
    cx_git_fields fields;
    size_t oid_size;
    bool commits;
    cx_arena *arena;
    CX_VEC(cx_raw_change) changes;
    CX_VEC(cx_oid) ids;
} raw_reader;

static bool read_oid(cx_str *head, size_t oid_size, cx_oid *out)
{
    size_t digits = 2 * oid_size;
    if (head->size < digits + 1 || head->data[digits] != ' ' ||
        !cx_oid_parse((cx_str){head->data, digits}, out))
        return false;
    head->data += digits + 1;
    head->size -= digits + 1;
    return true;
}

static bool read_mode(cx_str *head, uint32_t *out)
{
    if (head->size < 7 || head->data[6] != ' ' || !cx_git_mode((cx_str){head->data, 6}, out))
        return false;
    head->data += 7;
    head->size -= 7;
    return true;
}

/* ":omode nmode ooid noid S<score>"; the colon belongs to the record, not to the mode. */
static bool parse_head(cx_str head, size_t oid_size, cx_raw_change *out)
{
    if (head.size == 0 || head.data[0] != ':')
        return false;
    head.data++;
    head.size--;
    if (!read_mode(&head, &out->old_mode) || !read_mode(&head, &out->new_mode) ||
        !read_oid(&head, oid_size, &out->old_oid) || !read_oid(&head, oid_size, &out->new_oid) ||
        head.size == 0 || memchr("ACDMRTUX", head.data[0], 8) == NULL)
        return false;
    out->status = head.data[0];
    unsigned score = 0;
    for (size_t i = 1; i < head.size; i++) {
        if (head.data[i] < '0' || head.data[i] > '9' || i > 3)
            return false;
        score = score * 10 + (unsigned)(head.data[i] - '0');
    }
    out->score = (uint8_t)score;
    return score <= 100;
}

static cx_status read_record(raw_reader *r, cx_str head, cx_err *err)
{
    cx_raw_change change = {.commit = r->ids.count == 0 ? 0 : (uint32_t)(r->ids.count - 1)};
    if (!parse_head(head, r->oid_size, &change) || (r->commits && r->ids.count == 0))
        return cx_fail(err, CX_E_FORMAT, "git prints a difference in a form that we do not know");
    bool two = change.status == 'R' || change.status == 'C';
    if ((two && !cx_git_field(&r->fields, &change.from)) ||
        !cx_git_field(&r->fields, &change.path) || change.path.size == 0 ||
        (two && change.from.size == 0))
        return cx_fail(err, CX_E_FORMAT, "git's list of differences ends in the middle");
    cx_raw_change *slot = cx_vec_push(&r->changes, r->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = change;
    return CX_SUCCESS;
}

static cx_status read_all(raw_reader *r, cx_err *err)
{
    cx_str field;
    while (cx_git_field(&r->fields, &field)) {
        cx_oid id;
        if (r->commits && cx_oid_parse(field, &id) && id.size == r->oid_size) {
            cx_oid *slot = cx_vec_push(&r->ids, r->arena->alloc);
            if (slot == NULL)
                return cx_fail_nomem(err);
            *slot = id;
            continue;
        }
        CX_TRY(read_record(r, field, err));
    }
    return r->fields.cut ? cx_fail(err, CX_E_FORMAT, "git's list of differences ends in the middle")
                         : CX_SUCCESS;
}

cx_status cx_raw_parse(cx_str text, size_t oid_size, bool commits, cx_arena *arena,
                       cx_raw_diff *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    cx_str stored = cx_arena_copy_str(arena, text);
    if (stored.data == NULL)
        return cx_fail_nomem(err);
    raw_reader r = {
        .fields = {stored, false}, .oid_size = oid_size, .commits = commits, .arena = arena};
    cx_raw_diff diff = {.count = 0};
    cx_status status = read_all(&r, err);
    if (!cx_failed(status)) {
        diff.count = r.changes.count;
        diff.commit_count = r.ids.count;
        diff.changes = CX_ARENA_ARRAY(arena, cx_raw_change, diff.count + 1);
        diff.commits = CX_ARENA_ARRAY(arena, cx_oid, diff.commit_count + 1);
        if (diff.changes == NULL || diff.commits == NULL)
            status = cx_fail_nomem(err);
        else {
            if (diff.count != 0)
                memcpy(diff.changes, r.changes.items, diff.count * sizeof *diff.changes);
            if (diff.commit_count != 0)
                memcpy(diff.commits, r.ids.items, diff.commit_count * sizeof *diff.commits);
            *out = diff;
        }
    }
    cx_vec_done(&r.changes, arena->alloc);
    cx_vec_done(&r.ids, arena->alloc);
    return status;
}

/* --- quoted paths ----------------------------------------------------------------------------- */

/* The letter after the backslash, '0' for octal, or 0 when the byte stands for itself. */
static char escape_of(uint8_t byte)
{
    static const char letters[] = "abtnvfr"; /* 0x07 .. 0x0d */
    if (byte == '"' || byte == '\\')
        return (char)byte;
    if (byte >= 0x07 && byte <= 0x0d)
        return letters[byte - 0x07];
    return byte < 0x20 || byte == 0x7f ? '0' : '\0';
}

void cx_run_path_quote(cx_buf *out, cx_str path)
{
    CX_ASSERT(out != NULL);
    bool plain = true;
    for (size_t i = 0; i < path.size && plain; i++)
        plain = escape_of((uint8_t)path.data[i]) == '\0';
    if (plain) {
        cx_buf_add_str(out, path);
        return;
    }
    cx_buf_add_byte(out, '"');
    for (size_t i = 0; i < path.size; i++) {
        uint8_t byte = (uint8_t)path.data[i];
        char escape = escape_of(byte);
        if (escape == '0')
            cx_buf_printf(out, "\\%03o", byte);
        else if (escape != '\0')
            cx_buf_printf(out, "\\%c", escape);
        else
            cx_buf_add_byte(out, byte);
    }
    cx_buf_add_byte(out, '"');
}

/* The byte that an escape stands for; *at moves after it.  -1 when it is none that we write. */
static int unescape(cx_str line, size_t *at)
{
    static const char letters[] = "abtnvfr";
    char c = line.data[*at];
    if (c == '"' || c == '\\') {
        ++*at;
        return c;
    }
    const char *found = c == '\0' ? NULL : memchr(letters, c, sizeof letters - 1);
    if (found != NULL) {
        ++*at;
        return 0x07 + (int)(found - letters);
    }
    int value = 0;
    if (line.size - *at < 3)
        return -1;
    for (int i = 0; i < 3; i++) {
        char digit = line.data[*at + (size_t)i];
        if (digit < '0' || digit > '7')
            return -1;
        value = value * 8 + (digit - '0');
    }
    *at += 3;
    return value <= 0xff ? value : -1;
}

cx_status cx_run_path_unquote(cx_str line, cx_arena *arena, cx_str *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    if (line.size == 0 || line.data[0] != '"') {
        *out = line;
        return line.size == 0 ? cx_fail(err, CX_E_FORMAT, "a line without a path") : CX_SUCCESS;
    }
    char *path = CX_ARENA_ARRAY(arena, char, line.size);
    size_t size = 0, at = 1;
    if (path == NULL)
        return cx_fail_nomem(err);
    while (at < line.size && line.data[at] != '"') {
        int byte = (uint8_t)line.data[at++];
        if (byte == '\\')
            byte = at < line.size ? unescape(line, &at) : -1;
        if (byte < 0)
            return cx_fail_at(err, CX_E_FORMAT, NULL, at, "a quoted path has a wrong escape");
        path[size++] = (char)byte;
    }
    if (at + 1 != line.size)
        return cx_fail_at(err, CX_E_FORMAT, NULL, at, "a quoted path does not end with its line");
    *out = (cx_str){path, size};
    return CX_SUCCESS;
}

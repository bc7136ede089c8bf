/*
 * schema_uri.c - RFC 3986 as far as schemas need it: resolving references.
 */
#include "schema/schema_internal.h"

typedef struct uri_parts {
    cx_str scheme, authority, path, query, fragment; /* data NULL: absent (the path never is) */
} uri_parts;

static bool is_alpha(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static cx_str slice_text(cx_str text, size_t from, size_t to)
{
    return cx_str_from(text.data + from, to - from);
}

static size_t find_any(cx_str text, size_t from, const char *stops)
{
    while (from < text.size && strchr(stops, text.data[from]) == NULL)
        from++;
    return from;
}

static uri_parts split_uri(cx_str uri)
{
    uri_parts parts = {{NULL, 0}, {NULL, 0}, {"", 0}, {NULL, 0}, {NULL, 0}};
    size_t at = 0;
    if (uri.size == 0)
        return parts;
    size_t colon = find_any(uri, 0, ":/?#");
    if (colon < uri.size && uri.data[colon] == ':' && colon > 0 && is_alpha(uri.data[0])) {
        parts.scheme = slice_text(uri, 0, colon);
        at = colon + 1;
    }
    if (at + 1 < uri.size && uri.data[at] == '/' && uri.data[at + 1] == '/') {
        size_t end = find_any(uri, at + 2, "/?#");
        parts.authority = slice_text(uri, at + 2, end);
        at = end;
    }
    size_t end = find_any(uri, at, "?#");
    parts.path = slice_text(uri, at, end);
    at = end;
    if (at < uri.size && uri.data[at] == '?') {
        end = find_any(uri, at + 1, "#");
        parts.query = slice_text(uri, at + 1, end);
        at = end;
    }
    if (at < uri.size)
        parts.fragment = slice_text(uri, at + 1, uri.size);
    return parts;
}

/* RFC 3986 §5.2.4, in place on what was appended since `start`. */
static void remove_dot_segments(cx_buf *out, size_t start)
{
    if (out->failed)
        return;
    char *text = (char *)out->data + start;
    size_t size = out->size - start, read = 0, write = 0;
    while (read < size) {
        cx_str rest = cx_str_from(text + read, size - read);
        if (cx_str_starts(rest, CX_STR("../"))) {
            read += 3;
        } else if (cx_str_starts(rest, CX_STR("./"))) {
            read += 2;
        } else if (cx_str_starts(rest, CX_STR("/./"))) {
            read += 2;
        } else if (cx_str_eq(rest, CX_STR("/."))) {
            read += 1;
            text[read] = '/';
        } else if (cx_str_starts(rest, CX_STR("/../")) || cx_str_eq(rest, CX_STR("/.."))) {
            read += rest.size == 3 ? 2 : 3;
            text[read] = '/';
            while (write > 0 && text[--write] != '/')
                ;
        } else if (cx_str_eq(rest, CX_STR(".")) || cx_str_eq(rest, CX_STR(".."))) {
            read = size;
        } else {
            do
                text[write++] = text[read++];
            while (read < size && text[read] != '/');
        }
    }
    out->size = start + write;
}

static void add_path(cx_buf *out, const uri_parts *base, const uri_parts *reference)
{
    size_t start = out->size;
    if (reference->path.size != 0 && reference->path.data[0] == '/') {
        cx_buf_add_str(out, reference->path);
    } else if (base->authority.data != NULL && base->path.size == 0) {
        cx_buf_add_byte(out, '/');
        cx_buf_add_str(out, reference->path);
    } else {
        size_t keep = base->path.size;
        while (keep > 0 && base->path.data[keep - 1] != '/')
            keep--;
        cx_buf_add_str(out, slice_text(base->path, 0, keep));
        cx_buf_add_str(out, reference->path);
    }
    remove_dot_segments(out, start);
}

/* RFC 3986 §5.2.2 and §5.3. */
static void resolve_parts(cx_buf *out, const uri_parts *base, const uri_parts *reference)
{
    const uri_parts *whose = reference->scheme.data != NULL ? reference : base;
    if (whose->scheme.data != NULL) {
        cx_buf_add_str(out, whose->scheme);
        cx_buf_add_byte(out, ':');
    }
    if (reference->authority.data != NULL)
        whose = reference;
    if (whose->authority.data != NULL) {
        cx_buf_add_z(out, "//");
        cx_buf_add_str(out, whose->authority);
    }
    if (whose == reference) {
        size_t start = out->size;
        cx_buf_add_str(out, reference->path);
        /* What names no place in a tree (urn:..) has no segments. */
        if (reference->authority.data != NULL || cx_str_starts(reference->path, CX_STR("/")))
            remove_dot_segments(out, start);
    } else if (reference->path.size != 0) {
        add_path(out, base, reference);
        whose = reference;
    } else {
        cx_buf_add_str(out, base->path);
        if (reference->query.data != NULL)
            whose = reference;
    }
    if (whose->query.data != NULL) {
        cx_buf_add_byte(out, '?');
        cx_buf_add_str(out, whose->query);
    }
    if (reference->fragment.data != NULL) {
        cx_buf_add_byte(out, '#');
        cx_buf_add_str(out, reference->fragment);
    }
}

cx_status schema_uri_resolve(cx_str base, cx_str reference, cx_arena *arena, cx_str *out,
                             cx_err *err)
{
    uri_parts base_parts = split_uri(base), parts = split_uri(reference);
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    resolve_parts(&text, &base_parts, &parts);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

cx_str schema_uri_split(cx_str uri, cx_str *out_fragment)
{
    const char *hash = uri.size == 0 ? NULL : memchr(uri.data, '#', uri.size);
    if (hash == NULL) {
        *out_fragment = cx_str_from(NULL, 0);
        return uri;
    }
    size_t at = (size_t)(hash - uri.data);
    *out_fragment = slice_text(uri, at + 1, uri.size);
    return slice_text(uri, 0, at);
}

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

cx_status schema_uri_decode(cx_str text, cx_arena *arena, cx_str *out, cx_err *err)
{
    char *copy = cx_arena_push(arena, text.size + 1, 1);
    size_t size = 0;
    if (copy == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < text.size; i++) {
        copy[size] = text.data[i];
        if (text.data[i] == '%') {
            int high = i + 2 < text.size ? hex_value(text.data[i + 1]) : -1;
            int low = i + 2 < text.size ? hex_value(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return cx_fail(err, CX_E_FORMAT,
                               "the reference has a '%%' without two "
                               "hexadecimal digits");
            copy[size] = (char)(high << 4 | low);
            i += 2;
        }
        size++;
    }
    *out = cx_str_from(copy, size);
    return CX_SUCCESS;
}

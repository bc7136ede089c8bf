/*
 * query.c - path segments and query parameters.
 *
 *   Q1  The write position never passes the read position: decoding shortens text, or keeps its
 *       size.
 */
#include "server/query.h"

#include "base/api.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool cx_target_decode(cx_str text, bool plus, char *storage, cx_str *out)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '%') {
            int high = text.size - i > 2 ? hex_digit(text.data[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(text.data[i + 2]) : -1;
            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c == 0)
            return false;
        storage[size++] = c; /* Q1 */
    }
    *out = cx_str_from(storage, size);
    return cx_utf8_valid(*out);
}

/* The part before the first `mark`; `*rest` is the part after it, data NULL = no mark. */
static cx_str cut_at(cx_str text, char mark, cx_str *rest)
{
    const char *at = text.size == 0 ? NULL : memchr(text.data, mark, text.size);
    *rest = (cx_str){NULL, 0};
    if (at == NULL)
        return text;
    size_t size = (size_t)(at - text.data);
    *rest = cx_str_from(at + 1, text.size - size - 1);
    return cx_str_from(text.data, size);
}

/* The absolute form (RFC 9112 §3.2.2) names the host a second time. */
static cx_str without_authority(cx_str text)
{
    cx_str rest = {NULL, 0};
    if (cx_str_starts(text, CX_STR("http://")))
        rest = cx_str_from(text.data + 7, text.size - 7);
    else if (cx_str_starts(text, CX_STR("https://")))
        rest = cx_str_from(text.data + 8, text.size - 8);
    else
        return text;
    for (size_t i = 0; i < rest.size; i++)
        if (rest.data[i] == '/')
            return cx_str_from(rest.data + i, rest.size - i);
    return CX_STR("/");
}

/*
 * `path` begins after its first slash.  A trailing slash, or two in a row, make an empty segment,
 * and no path of ours has one.  Each segment is followed by a slash in the storage (there was one
 * before it in the text), so that several consecutive segments are one text.
 */
static bool read_path(cx_str path, char **storage, cx_target *out)
{
    while (path.data != NULL) {
        cx_str rest, segment = cut_at(path, '/', &rest);
        if (out->segment_count == CX_TARGET_SEGMENTS_MAX || segment.size == 0)
            return false;
        cx_str *slot = &out->segments[out->segment_count];
        if (!cx_target_decode(segment, false, *storage, slot))
            return false;
        *storage += slot->size;
        *(*storage)++ = '/';
        out->segment_count++;
        path = rest;
    }
    return true;
}

static bool read_query(cx_str query, char *storage, cx_target *out)
{
    while (query.data != NULL) {
        cx_str rest, value, pair = cut_at(query, '&', &rest);
        query = rest;
        if (pair.size == 0)
            continue;
        if (out->param_count == CX_TARGET_PARAMS_MAX)
            return false;
        cx_target_param *param = &out->params[out->param_count];
        cx_str name = cut_at(pair, '=', &value);
        if (!cx_target_decode(name, true, storage, &param->name))
            return false;
        storage += param->name.size;
        if (value.data == NULL)
            value = CX_STR("");
        if (!cx_target_decode(value, true, storage, &param->value))
            return false;
        storage += param->value.size;
        out->param_count++;
    }
    return true;
}

cx_target_fault cx_target_parse(cx_str text, char *storage, cx_target *out)
{
    out->segment_count = out->param_count = 0;
    if (text.size > CX_TARGET_BYTES_MAX)
        return CX_TARGET_LONG;
    text = without_authority(text);
    cx_str query, path = cut_at(text, '?', &query);
    if (path.size == 0 || path.data[0] != '/')
        return CX_TARGET_PATH;
    path = cx_str_from(path.data + 1, path.size - 1);
    /* "/" alone has no segment at all. */
    if (path.size != 0 && !read_path(path, &storage, out))
        return CX_TARGET_PATH;
    return read_query(query, storage, out) ? CX_TARGET_OK : CX_TARGET_QUERY;
}

/*
 * token.c - questions about one token of a command.
 */
#include "rules/token.h"

#include "base/api.h"
#include "rules/path.h"

/* White_Space of the Unicode Character Database. */
static bool is_space(uint32_t code)
{
    return code == ' ' || (code >= 0x09 && code <= 0x0D) || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

cx_str cx_run_token_trim(cx_str token)
{
    if (!cx_utf8_valid(token))
        return token;
    size_t at = 0, start = token.size, end = 0;
    while (at < token.size) {
        size_t size;
        uint32_t code = cx_utf8_decode((const uint8_t *)token.data + at, &size);
        if (!is_space(code)) {
            if (start == token.size)
                start = at;
            end = at + size;
        }
        at += size;
    }
    return end == 0 ? cx_str_from(token.data, 0) : cx_str_from(token.data + start, end - start);
}

cx_str cx_run_token_base(cx_str token)
{
    while (token.size > 1 && token.data[token.size - 1] == '/')
        token.size--;
    for (size_t i = token.size; i > 0; i--) {
        if (token.data[i - 1] == '/' && i < token.size)
            return cx_str_from(token.data + i, token.size - i);
    }
    return token;
}

static bool is_ascii(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        if ((unsigned char)text.data[i] >= 0x80)
            return false;
    }
    return true;
}

static char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equal_ascii_nocase(cx_str a, cx_str b)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++) {
        if (ascii_lower(a.data[i]) != ascii_lower(b.data[i]))
            return false;
    }
    return true;
}

/* Folding may lengthen a text, so longer tokens are compared byte by byte. */
enum { FOLD_MAX = 1024 };

bool cx_run_token_same(cx_str a, cx_str b)
{
    char folded_a[4 * FOLD_MAX], folded_b[4 * FOLD_MAX];
    size_t size_a, size_b;
    if (equal_ascii_nocase(a, b))
        return true;
    if ((is_ascii(a) && is_ascii(b)) || a.size > FOLD_MAX || b.size > FOLD_MAX)
        return false;
    return cx_run_path_fold(a, folded_a, sizeof folded_a, &size_a) &&
           cx_run_path_fold(b, folded_b, sizeof folded_b, &size_b) && size_a != 0 &&
           size_a == size_b && memcmp(folded_a, folded_b, size_a) == 0;
}

cx_status cx_run_token_as_path(cx_str token, cx_arena *arena, cx_run_token_path *out, cx_err *err)
{
    char *text = CX_ARENA_ARRAY(arena, char, token.size + 1);
    size_t used = 0, depth = 0;
    if (text == NULL)
        return cx_fail_nomem(err);
    memset(out, 0, sizeof *out);
    out->absolute = token.size != 0 && token.data[0] == '/';
    for (size_t at = 0; at < token.size;) {
        size_t end = at;
        while (end < token.size && token.data[end] != '/')
            end++;
        cx_str part = cx_str_from(token.data + at, end - at);
        at = end + 1;
        if (part.size == 0 || cx_str_is(part, "."))
            continue;
        if (!cx_str_is(part, "..")) {
            if (used != 0)
                text[used++] = '/';
            memcpy(text + used, part.data, part.size);
            used += part.size;
            depth++;
            continue;
        }
        out->dots = true;
        if (depth == 0) {
            out->escapes = true;
            continue;
        }
        while (used != 0 && text[used - 1] != '/')
            used--;
        used -= used != 0; /* the slash as well */
        depth--;
    }
    text[used] = 0;
    out->plain = cx_str_from(text, used);
    return CX_SUCCESS;
}

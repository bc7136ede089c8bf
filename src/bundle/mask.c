/*
 * mask.c - finding secrets in text: by their values where we know them, else by their shape.
 */
#include "bundle/mask.h"

#include <stdlib.h>
#include <string.h>

#include "os/api.h"

#define SECRET_BYTES_MIN 6

/* --- what is secret --------------------------------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool has_word(cx_str text, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= text.size; i++) {
        size_t same = 0;
        while (same < size && lower(text.data[i + same]) == word[same])
            same++;
        if (same == size)
            return true;
    }
    return false;
}

bool cx_run_mask_name(cx_str name)
{
    static const char *const words[] = {"key", "token", "secret", "passw", "credential"};
    for (size_t i = 0; i < CX_COUNT_OF(words); i++)
        if (has_word(name, words[i]))
            return true;
    return false;
}

enum { UPPER = 1, LOWER = 2, DIGIT = 4, UNDER = 8, DASH = 16, DOT = 32, BASE64 = 64 };
enum { ALNUM = UPPER | LOWER | DIGIT, WORD = ALNUM | UNDER, URL = WORD | DASH };

/* What may follow a prefix, and how much of it at least. */
static const struct {
    const char *prefix;
    unsigned allowed;
    size_t least;
} shapes[] = {
    {"ghp_", ALNUM, 30},
    {"gho_", ALNUM, 30},
    {"ghu_", ALNUM, 30},
    {"ghs_", ALNUM, 30},
    {"ghr_", ALNUM, 30},
    {"github_pat_", WORD, 22},
    {"glpat-", URL, 20},
    {"sk-", URL, 20},
    {"sk_live_", ALNUM, 16},
    {"sk_test_", ALNUM, 16},
    {"rk_live_", ALNUM, 16},
    {"AKIA", UPPER | DIGIT, 16},
    {"ASIA", UPPER | DIGIT, 16},
    {"AIza", URL, 35},
    {"ya29.", URL, 20},
    {"xoxa-", URL, 10},
    {"xoxb-", URL, 10},
    {"xoxp-", URL, 10},
    {"xoxr-", URL, 10},
    {"xoxs-", URL, 10},
    {"xapp-", URL, 10},
    {"npm_", ALNUM, 36},
    {"pypi-", URL, 30},
    {"hf_", ALNUM, 30},
    {"dckr_pat_", URL, 20},
    {"SG.", URL | DOT, 40},
    {"eyJ", URL | DOT, 60},
    {"hvs.", URL, 20},
    {"AGE-SECRET-KEY-1", ALNUM, 50},
};

static unsigned char_class_of(char c)
{
    return c >= 'A' && c <= 'Z'                           ? UPPER
           : c >= 'a' && c <= 'z'                         ? LOWER
           : c >= '0' && c <= '9'                         ? DIGIT
           : c == '_'                                     ? UNDER
           : c == '-'                                     ? DASH
           : c == '.'                                     ? DOT
           : c == '+' || c == '/' || c == '=' || c == '~' ? BASE64
                                                          : 0;
}

static size_t run_length(cx_str text, size_t from, unsigned allowed)
{
    size_t end = from;
    while (end < text.size && (char_class_of(text.data[end]) & allowed) != 0)
        end++;
    return end - from;
}

static bool starts_at(cx_str text, size_t at, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size - at >= size && memcmp(text.data + at, prefix, size) == 0;
}

/* Bytes of the token that begins there; 0 = none. */
static size_t shape_at(cx_str text, size_t at)
{
    if (at != 0 && (char_class_of(text.data[at - 1]) & ALNUM) != 0)
        return 0;
    for (size_t i = 0; i < CX_COUNT_OF(shapes); i++) {
        if (!starts_at(text, at, shapes[i].prefix))
            continue;
        size_t prefix = strlen(shapes[i].prefix);
        size_t rest = run_length(text, at + prefix, shapes[i].allowed);
        if (rest >= shapes[i].least)
            return prefix + rest;
    }
    return 0;
}

/* "Bearer xyz", "Basic xyz": the second word. */
static size_t bearer_at(cx_str text, size_t at)
{
    static const char *const kinds[] = {"bearer ", "basic "};
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++) {
        size_t size = strlen(kinds[i]);
        if (at < size || !has_word((cx_str){text.data + at - size, size}, kinds[i]))
            continue;
        size_t rest = run_length(text, at, URL | DOT | BASE64);
        return rest >= 16 ? rest : 0;
    }
    return 0;
}

/* "://user:password@": the password. */
static size_t password_at(cx_str text, size_t at)
{
    if (at < 5 || text.data[at - 1] != ':')
        return 0;
    size_t from = at - 1;
    while (from > 0 && strchr("/@ \"'\n\t", text.data[from - 1]) == NULL)
        from--;
    if (from < 3 || memcmp(text.data + from - 3, "://", 3) != 0)
        return 0;
    size_t end = at;
    while (end < text.size && text.data[end] != 0 && strchr("/@ \"'\n\t", text.data[end]) == NULL)
        end++;
    return end < text.size && text.data[end] == '@' ? end - at : 0;
}

/* A private key in PEM: all of it, or the part that is there. */
static size_t pem_at(cx_str text, size_t at)
{
    static const char begin[] = "-----BEGIN ", kind[] = "PRIVATE KEY-----";
    if (!starts_at(text, at, begin))
        return 0;
    cx_str head = {text.data + at, text.size - at < 80 ? text.size - at : 80};
    bool private_key = false;
    for (size_t i = sizeof begin - 1; i < head.size && !private_key; i++)
        private_key = starts_at(head, i, kind);
    if (!private_key)
        return 0;
    for (size_t i = at + sizeof begin; i < text.size; i++)
        if (starts_at(text, i, "-----END "))
            for (size_t k = i; k < text.size; k++)
                if (starts_at(text, k, kind))
                    return k + sizeof kind - 1 - at;
    return text.size - at;
}

/* --- the set ---------------------------------------------------------------------------------- */

cx_status cx_run_mask_add(cx_run_mask *mask, cx_str value, cx_err *err)
{
    if (value.size < SECRET_BYTES_MIN)
        return CX_SUCCESS;
    cx_str copy = cx_arena_copy_str(mask->arena, value);
    cx_str *slot = copy.data == NULL ? NULL : cx_vec_push(&mask->secrets, mask->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    /* A secret that is part of another is looked for after it. */
    size_t at = mask->secrets.count - 1;
    for (; at > 0 && mask->secrets.items[at - 1].size < copy.size; at--)
        mask->secrets.items[at] = mask->secrets.items[at - 1];
    mask->secrets.items[at] = copy;
    return CX_SUCCESS;
}

cx_status cx_run_mask_init(cx_run_mask *mask, const char *const *env, cx_arena *arena, cx_err *err)
{
    CX_ASSERT(arena != NULL);
    *mask = (cx_run_mask){.arena = arena};
    const char *const *list = env != NULL ? env : cx_machine_environment();
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; list != NULL && list[i] != NULL && !cx_failed(status); i++) {
        const char *end = strchr(list[i], '=');
        if (end != NULL && cx_run_mask_name((cx_str){list[i], (size_t)(end - list[i])}))
            status = cx_run_mask_add(mask, cx_str_z(end + 1), err);
    }
    if (cx_failed(status))
        cx_run_mask_done(mask);
    return status;
}

void cx_run_mask_done(cx_run_mask *mask)
{
    if (mask->arena != NULL)
        cx_vec_done(&mask->secrets, mask->arena->alloc);
}

static size_t value_at(const cx_run_mask *mask, cx_str text, size_t at)
{
    for (size_t i = 0; i < mask->secrets.count; i++) {
        cx_str secret = mask->secrets.items[i];
        if (text.data[at] == secret.data[0] && text.size - at >= secret.size &&
            memcmp(text.data + at, secret.data, secret.size) == 0)
            return secret.size;
    }
    return 0;
}

static size_t secret_at(const cx_run_mask *mask, cx_str text, size_t at)
{
    size_t size = value_at(mask, text, at);
    if (size == 0)
        size = shape_at(text, at);
    if (size == 0)
        size = bearer_at(text, at);
    if (size == 0)
        size = password_at(text, at);
    return size != 0 ? size : pem_at(text, at);
}

cx_status cx_run_mask_text(const cx_run_mask *mask, cx_str text, cx_arena *arena, cx_str *out,
                           cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    cx_buf masked;
    cx_buf_init(&masked, arena->alloc);
    size_t stored = 0; /* up to there text has been taken over */
    for (size_t at = 0; at < text.size;) {
        size_t size = secret_at(mask, text, at);
        if (size == 0) {
            at++;
            continue;
        }
        cx_buf_add(&masked, text.data + stored, at - stored);
        cx_buf_add_z(&masked, CX_RUN_MASKED);
        at += size;
        stored = at;
    }
    cx_status status = CX_SUCCESS;
    if (stored == 0) {
        *out = text;
    } else {
        cx_buf_add(&masked, text.data + stored, text.size - stored);
        status = cx_buf_check(&masked, err);
        cx_str copy =
            cx_failed(status) ? (cx_str){0} : cx_arena_copy_str(arena, cx_buf_str(&masked));
        if (!cx_failed(status) && copy.data == NULL)
            status = cx_fail_nomem(err);
        if (!cx_failed(status))
            *out = copy;
    }
    cx_buf_done(&masked);
    return status;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static cx_status mask_string(const cx_run_mask *mask, const cx_json *value, cx_arena *arena,
                             cx_json *out, cx_err *err)
{
    cx_str text = cx_json_text(value), masked;
    /* What an agent named a file may be no UTF-8: that must not reach a writer of JSON. */
    cx_str printed = (value->flags & CX_JSON_SURROGATE) != 0 ? text : cx_json_quoted(text, arena);
    if (text.size != 0 && printed.data == NULL)
        return cx_fail_nomem(err);
    masked = printed;
    CX_TRY(cx_run_mask_text(mask, printed, arena, &masked, err));
    *out = masked.data == text.data ? *value : cx_json_make_str(masked);
    return CX_SUCCESS;
}

cx_status cx_run_mask_json(void *arg, const cx_json *value, cx_arena *arena, cx_json *out,
                           cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    const cx_run_mask *mask = arg;
    if (value->type == CX_JSON_STRING)
        return mask_string(mask, value, arena, out, err);
    if (value->type != CX_JSON_ARRAY && value->type != CX_JSON_OBJECT) {
        *out = *value;
        return CX_SUCCESS;
    }
    cx_json_list list = cx_json_list_begin(arena);
    cx_json item, name;
    for (size_t i = 0; i < value->count; i++) {
        if (value->type == CX_JSON_ARRAY) {
            CX_TRY(cx_run_mask_json(arg, &value->items[i], arena, &item, err));
            cx_json_list_add(&list, item);
            continue;
        }
        CX_TRY(mask_string(mask, &value->members[i].name, arena, &name, err));
        CX_TRY(cx_run_mask_json(arg, &value->members[i].value, arena, &item, err));
        cx_json_list_put(&list, cx_json_text(&name), item);
    }
    return value->type == CX_JSON_ARRAY ? cx_json_list_end_array(&list, out, err)
                                        : cx_json_list_end_object(&list, out, err);
}

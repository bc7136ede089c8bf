/*
 * words.c - the words of a text (words.h).
 */
#include "memory/words.h"

#include <stdlib.h>

typedef enum char_class { CHAR_OTHER, CHAR_WORD, CHAR_ALONE } char_class;

static char_class class_of(uint32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                   ? CHAR_WORD
                   : CHAR_OTHER;
    if (c < 0xc0)
        return c == 0xaa || c == 0xb5 || c == 0xba ? CHAR_WORD : CHAR_OTHER;
    if (c == 0xd7 || c == 0xf7 || (c >= 0x2000 && c <= 0x2bff) || (c >= 0x3000 && c <= 0x303f) ||
        (c >= 0xd800 && c <= 0xf8ff) || (c >= 0xfe00 && c <= 0xfe6f) ||
        (c >= 0xff00 && c <= 0xff0f) || (c >= 0x1f000 && c <= 0x1faff))
        return CHAR_OTHER;
    if ((c >= 0x3040 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) ||
        (c >= 0xac00 && c <= 0xd7af) || (c >= 0x20000 && c <= 0x3ffff))
        return CHAR_ALONE;
    return CHAR_WORD;
}

/* W1 */
static uint32_t fold(uint32_t c)
{
    if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
        (c >= 0x391 && c <= 0x3a9 && c != 0x3a2) || (c >= 0x410 && c <= 0x42f))
        return c + 32;
    if (c >= 0x400 && c <= 0x40f)
        return c + 80;
    if (c >= 0x100 && c <= 0x17f && c != 0x130 && c != 0x131 && c != 0x138 && c != 0x149 &&
        c != 0x178 && c != 0x17f) {
        bool odd_is_capital = (c >= 0x139 && c <= 0x148) || c >= 0x179;
        return (c & 1) == (odd_is_capital ? 1u : 0u) ? c + 1 : c;
    }
    return c;
}

/* --- one word after the other ----------------------------------------------------------------- */

typedef struct word {
    size_t size;
    uint8_t bytes[CX_WORD_SIZE_MAX + 4];
} word;

/* W2: once something was left out, the rest is, too. */
static void add_char(word *w, uint32_t c, bool *full)
{
    uint8_t bytes[4];
    size_t size = cx_utf8_encode(fold(c), bytes);
    *full = *full || w->size + size > CX_WORD_SIZE_MAX;
    if (*full)
        return;
    memcpy(w->bytes + w->size, bytes, size);
    w->size += size;
}

/* The next word from *at on; false at the end.  `*at` is after it. */
static bool next_word(cx_str text, size_t *at, word *out)
{
    bool full = false;
    out->size = 0;
    while (*at < text.size) {
        size_t size = 1;
        uint32_t c = cx_utf8_decode((const uint8_t *)text.data + *at, &size);
        char_class class = class_of(c);
        if (out->size != 0 && class != CHAR_WORD)
            return true;
        *at += size;
        if (class != CHAR_OTHER)
            add_char(out, c, &full);
        if (class == CHAR_ALONE)
            return true;
    }
    return out->size != 0;
}

static cx_status keep_word(cx_arena *arena, const word *w, cx_str *out, cx_err *err)
{
    *out = cx_arena_copy_str(arena, cx_str_from((const char *)w->bytes, w->size));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- lists ------------------------------------------------------------------------------------ */

static cx_status grow_words(cx_words *words, cx_err *err)
{
    size_t capacity = words->capacity == 0 ? 64 : words->capacity * 2;
    cx_str *items = CX_ARENA_ARRAY(words->arena, cx_str, capacity);
    if (items == NULL)
        return cx_fail_nomem(err);
    if (words->count != 0)
        memcpy(items, words->items, words->count * sizeof *items);
    words->items = items;
    words->capacity = capacity;
    return CX_SUCCESS;
}

cx_status cx_words_add(cx_words *words, cx_str text, cx_err *err)
{
    word next;
    for (size_t at = 0; next_word(text, &at, &next);) {
        if (words->count == words->capacity) {
            cx_words_unite(words); /* a long text repeats its words */
            if (words->count > words->capacity / 2 || words->capacity == 0)
                CX_TRY(grow_words(words, err));
        }
        if (words->count >= CX_WORDS_MAX * 4)
            return CX_SUCCESS;
        CX_TRY(keep_word(words->arena, &next, &words->items[words->count], err));
        words->count++;
    }
    return CX_SUCCESS;
}

static int by_text(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

void cx_words_unite(cx_words *words)
{
    size_t kept = 0;
    if (words->count > 1)
        qsort(words->items, words->count, sizeof *words->items, by_text);
    for (size_t i = 0; i < words->count; i++)
        if (kept == 0 || !cx_str_eq(words->items[kept - 1], words->items[i]))
            words->items[kept++] = words->items[i];
    words->count = kept;
}

bool cx_words_has(const cx_words *words, cx_str wanted, bool prefix)
{
    size_t from = 0, to = words->count;
    while (from < to) { /* the first that is not before it */
        size_t middle = from + (to - from) / 2;
        if (cx_str_cmp(words->items[middle], wanted) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == words->count)
        return false;
    return prefix ? cx_str_starts(words->items[from], wanted)
                  : cx_str_eq(words->items[from], wanted);
}

/* --- questions -------------------------------------------------------------------------------- */

cx_status cx_words_query_parse(cx_str text, cx_arena *arena, cx_words_query *out, cx_err *err)
{
    word next;
    out->count = 0;
    for (size_t at = 0; next_word(text, &at, &next);) {
        if (out->count == CX_QUERY_WORDS_MAX)
            return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                              "the text has more than %d words", CX_QUERY_WORDS_MAX);
        CX_TRY(keep_word(arena, &next, &out->words[out->count], err));
        out->prefix[out->count++] = at < text.size && text.data[at] == '*';
    }
    if (out->count == 0)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the text has no word; a word is made of letters and digits");
    return CX_SUCCESS;
}

bool cx_words_match(const cx_words_query *query, const cx_words *words)
{
    for (size_t i = 0; i < query->count; i++)
        if (!cx_words_has(words, query->words[i], query->prefix[i]))
            return false;
    return true;
}

size_t cx_words_query_best(const cx_words_query *query)
{
    size_t best = 0;
    for (size_t i = 1; i < query->count; i++) {
        bool longer = query->words[i].size > query->words[best].size;
        if (query->prefix[i] != query->prefix[best] ? query->prefix[best] : longer)
            best = i;
    }
    return best;
}

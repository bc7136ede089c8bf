/*
 * words.h - the words of a text, as memories are searched by them (ledger.md §10.5).
 *
 *   W1  A word is a run of letters and digits; capitals of Latin, Greek and Cyrillic are folded.
 *       A character of Chinese, Japanese or Korean is a word by itself.
 *   W2  A word has at most CX_WORD_SIZE_MAX bytes: what follows is left out, in texts and in
 *       questions alike.
 *   W3  No word has a zero byte.
 */
#ifndef CX_MEMORY_WORDS_H
#define CX_MEMORY_WORDS_H

#include "base/api.h"

#define CX_WORD_SIZE_MAX 38
#define CX_WORDS_MAX 2048 /* different words of one memory that are indexed */
#define CX_QUERY_WORDS_MAX 32

typedef struct cx_words {
    cx_arena *arena; /* words live here */
    cx_str *items;
    size_t count, capacity;
} cx_words;

/* Adds the words of a text, in order, as often as they occur; valid UTF-8. */
CX_RESULT cx_words_add(cx_words *words, cx_str text, cx_err *err);
/* Sorts them, and leaves one of each. */
void cx_words_unite(cx_words *words);
/* Whether a united list has the word, or with `prefix` one that begins with it. */
bool cx_words_has(const cx_words *words, cx_str word, bool prefix);

/* What is asked: all of the words; a word that '*' follows stands for all that begin with it. */
typedef struct cx_words_query {
    cx_str words[CX_QUERY_WORDS_MAX];
    bool prefix[CX_QUERY_WORDS_MAX];
    size_t count;
} cx_words_query;
/* CX_E_USAGE "InvalidArgument": no word, or too many. */
CX_RESULT cx_words_query_parse(cx_str text, cx_arena *arena, cx_words_query *out, cx_err *err);
/* All of them are in the united list. */
bool cx_words_match(const cx_words_query *query, const cx_words *words);
/* The one to search by: the longest, and a whole word before a prefix. */
size_t cx_words_query_best(const cx_words_query *query);

#endif

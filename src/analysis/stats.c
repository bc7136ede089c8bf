/*
 * stats.c - counting distinct texts.
 */
#include "analysis/stats.h"

#include <stdlib.h>

static int compare_texts(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

size_t cx_stats_distinct(cx_str *texts, size_t count)
{
    size_t there = 0, distinct = 0;
    for (size_t i = 0; i < count; i++)
        if (texts[i].data != NULL)
            texts[there++] = texts[i];
    if (there > 1)
        qsort(texts, there, sizeof *texts, compare_texts);
    for (size_t i = 0; i < there; i++)
        distinct += i == 0 || !cx_str_eq(texts[i - 1], texts[i]);
    return distinct;
}

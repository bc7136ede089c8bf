/*
 * pages_sample.h - a tree of which only a sample is there: all pages above the leaves' pages, and
 * of the key space's ranges of 13 bits some with all that is below.
 *
 * The pages above have the shape that so many keys at random give; where a range is not there, the
 * hashes in them are made up.  So a question or a change in a range that is there does what it does
 * in the whole tree, which would take 85 bytes a key.
 */
#ifndef CX_BENCH_PAGES_SAMPLE_H
#define CX_BENCH_PAGES_SAMPLE_H

#include <stdio.h>

#include "pages/api.h"

typedef struct pages_sample {
    const char *path;       /* of the database, which is made */
    FILE *words;            /* takes the first 8 bytes of each key that is there */
    uint64_t tree;          /* its number */
    uint64_t whole;         /* keys that the whole tree has */
    unsigned ranges;        /* that are there, of 8,192 */
    cx_pages_anchor anchor; /* out */
    uint64_t keys;          /* out: that are there */
    uint64_t page_rows;     /* out: of the levels above the leaves' pages */
} pages_sample;

/* The key and the value of number `number`, which begins with `word`. */
cx_smt_pair pages_sample_pair(uint64_t word, uint64_t number);
/* In a process of its own, so that this one's memory is that of the questions. */
CX_RESULT pages_sample_build(pages_sample *sample, cx_err *err);

#endif

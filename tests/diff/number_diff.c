/*
 * number_diff.c - the C side of number_diff.py: one JSON number literal a line in, one line out:
 *
 *     py<TAB>js<TAB>bits of the double, 16 hex digits<TAB>1 or 0: cx_number_is_canonical_py
 *
 * A literal that overflows gives "inf" twice.  Two literals with a blank between them are compared
 * and give -1, 0 or 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/number.h"

static void answer_one(cx_str literal)
{
    char py[CX_NUMBER_TEXT_SIZE], js[CX_NUMBER_TEXT_SIZE];
    double value = 0;
    uint64_t bits;
    bool finite = cx_number_parse(literal, &value);
    memcpy(&bits, &value, sizeof bits);
    int canonical = cx_number_is_canonical_py(literal);
    if (finite) {
        size_t py_size = cx_number_write_py(value, py), js_size = cx_number_write_js(value, js);
        printf("%.*s\t%.*s\t%016" PRIx64 "\t%d\n", (int)py_size, py, (int)js_size, js, bits,
               canonical);
    } else {
        printf("inf\tinf\t%016" PRIx64 "\t%d\n", bits, canonical);
    }
}

static void answer_pair(cx_str a, cx_str b)
{
    int order = cx_number_compare(a, b);
    printf("%d\n", (order > 0) - (order < 0));
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    while ((size = getline(&line, &capacity, stdin)) > 0) {
        if (line[size - 1] == '\n')
            size--;
        const char *blank = memchr(line, ' ', (size_t)size);
        if (blank == NULL) {
            answer_one(cx_str_from(line, (size_t)size));
        } else {
            size_t before = (size_t)(blank - line);
            answer_pair(cx_str_from(line, before),
                        cx_str_from(blank + 1, (size_t)size - before - 1));
        }
    }
    bool failed = ferror(stdin) != 0;
    free(line);
    return fflush(stdout) != 0 || failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

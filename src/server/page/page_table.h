/*
 * page_table.h - between page.c and the table that web/build.mjs generates.
 */
#ifndef CX_SERVER_PAGE_TABLE_H
#define CX_SERVER_PAGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cx_page_body {
    const unsigned char *data;
    size_t size;
} cx_page_body;

typedef struct cx_page_file {
    const char *name; /* "" = the page, "assets/NAME-HASH.js" */
    const char *type;
    const char *etag; /* 64 hex digits */
    bool immutable;
    cx_page_body plain, gzip, brotli;
} cx_page_file;

extern const cx_page_file cx_page_table[];
extern const size_t cx_page_count; /* 0: built without the page */
/* The page as one file, split where its data goes: head, then a JSON text, then tail. */
extern const cx_page_body cx_page_single_head, cx_page_single_tail;

#endif

/*
 * page.h - the files of the web page, embedded in the program (built from web/, see
 * cmake/page.cmake).
 *
 * Each file is present as is and compressed; its ETag is its SHA-256.  A file with its hash in its
 * name never changes and may be cached; the page itself is revalidated each time.
 */
#ifndef CX_SERVER_PAGE_H
#define CX_SERVER_PAGE_H

#include "base/api.h"
#include "server/page/page_table.h"

/* A policy that admits no script and no style of other origins. */
#define CX_PAGE_CSP                                                                     \
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " \
    "object-src 'none'; require-trusted-types-for 'script'"

/* False: the program was built without the page. */
bool cx_page_is_built(void);
/* By its path without the first slash, "" for the page itself; NULL when there is no such file. */
const cx_page_file *cx_page_find(cx_str name);

typedef enum cx_page_coding { CX_PAGE_PLAIN, CX_PAGE_GZIP, CX_PAGE_BROTLI } cx_page_coding;
/* The best of what an Accept-Encoding header allows (RFC 9110 §12.5.3); data NULL = plain. */
cx_page_coding cx_page_choose(cx_str accept);
/* Whether an If-None-Match header names the file's ETag (RFC 9110 §13.1.2). */
bool cx_page_is_known(const cx_page_file *file, cx_str if_none_match);

#endif

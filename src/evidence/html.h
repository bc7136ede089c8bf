/*
 * html.h - text from outside as inert HTML.
 *
 * The output never contains markup of the text: the five characters with a meaning in HTML become
 * references, and characters that affect a reader without being visible (controls, directional
 * marks, zero-width characters, bytes that are not UTF-8) become a visible code.
 */
#ifndef CX_EVIDENCE_HTML_H
#define CX_EVIDENCE_HTML_H

#include "base/api.h"
#include "crypto/api.h"

/* On one line: line ends and tabs are shown as codes, too. */
void cx_html_text(cx_buf *out, cx_str text);
/* Inside <pre>: line ends and tabs are preserved. */
void cx_html_block(cx_buf *out, cx_str text);
/* Lower-case hex. */
void cx_html_hex(cx_buf *out, const void *bytes, size_t size);
/* "2026-11-22T21:12:39Z". */
void cx_html_time(cx_buf *out, int64_t ns);

#endif

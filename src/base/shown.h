/*
 * shown.h - escapes untrusted text for display.
 *
 * A name, a message or a file's contents can contain characters that act on a terminal or mislead
 * the reader: they move the cursor, set the title, reverse the direction of a line, or are
 * invisible.  This file defines which those are and how they are escaped: \u001b as in JSON (two
 * escapes above U+FFFF), \x9b for a byte that is not valid UTF-8.  Everything written to a
 * terminal, and every cx_err, passes through here; inside of a JSON string the first form denotes
 * the same string.
 */
#ifndef CX_BASE_SHOWN_H
#define CX_BASE_SHOWN_H

#include "base/buf.h"

/* Whether a code point must be escaped: controls (C0, DEL, C1), directional marks, line separators,
 * zero-width characters, tags, lone surrogates. */
bool cx_shown_acts(uint32_t code);

enum { CX_SHOWN_SIZE_MAX = 12 };

/*
 * Decodes one character (size >= 1) and returns its size in bytes.  *out_size is 0 when it is shown
 * unchanged, else the size of its escaped form in `out`.
 */
size_t cx_shown_step(const uint8_t *data, size_t size, char out[CX_SHOWN_SIZE_MAX],
                     size_t *out_size);

/* Appends text as part of one line: line ends and tabs are escaped, too. */
void cx_shown_add(cx_buf *out, cx_str text);
/* For text of the program in which untrusted parts are escaped already: colour sequences
 * (ESC [ .. m), and links as cx_shown_add_link makes them, stay as they are. */
enum { CX_SHOWN_COLOURS = 1, CX_SHOWN_LINKS = 2 };
/* Appends whole lines: line ends and tabs are unchanged, and so is what `allowed` names. */
void cx_shown_add_lines(cx_buf *out, cx_str text, unsigned allowed);

/* Whether a terminal may be told to open `uri`: of a fixed list of schemes (a file, or a file in an
 * editor), of at most CX_SHOWN_URI_MAX bytes, and without one that would end the sequence or need
 * escaping in a URI. */
enum { CX_SHOWN_URI_MAX = 4096 };
bool cx_shown_is_link(cx_str uri);
/* Appends `text` as cx_shown_add does, as a link to `uri` (OSC 8); without the link when `uri` is
 * not one. */
void cx_shown_add_link(cx_buf *out, cx_str uri, cx_str text);

/* Offset of the first byte that cx_shown_add_lines would escape, or text.size. */
size_t cx_shown_plain_prefix(cx_str text);

#endif

/*
 * shown.h - text from outside, as it may be shown to people.
 *
 * A name, a message or a file's contents can hold characters that act instead of being read: they
 * move the cursor, set the title of a terminal, turn the direction of a line around, or are not
 * seen at all.  Here is the one answer to which those are and how they are shown: \u001b as JSON
 * spells them (two of them above U+FFFF), \x9b for a byte that is no text.  Everything that goes to
 * a terminal, and every cx_err, passes through here; inside of a JSON string the first form is the
 * same string still.
 */
#ifndef CX_BASE_SHOWN_H
#define CX_BASE_SHOWN_H

#include "base/buf.h"

/* Controls (C0, DEL, C1), marks of direction, separators of lines, what has no width, tags, lone
 * surrogates. */
bool cx_shown_acts(uint32_t code);

enum { CX_SHOWN_SIZE_MAX = 12 };

/*
 * One character of at least one byte: how many bytes it is.  *out_size is 0 when it is shown as it
 * stands, else that many bytes of `out` stand for it.
 */
size_t cx_shown_step(const uint8_t *data, size_t size, char out[CX_SHOWN_SIZE_MAX],
                     size_t *out_size);

/* As a part of one line: ends of lines and tabs are shown, too. */
void cx_shown_add(cx_buf *out, cx_str text);
/*
 * As whole lines: these and tabs stay.  With `colours` also what sets a colour (ESC [ .. m), for
 * text that the program made and in which what came from outside is shown already.
 */
void cx_shown_add_lines(cx_buf *out, cx_str text, bool colours);

/* The first byte that cx_shown_add_lines would not leave as it is, or text.size. */
size_t cx_shown_plain_prefix(cx_str text);

#endif

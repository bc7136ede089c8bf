/*
 * aider_lines.h - what the lines of an Aider history are, one after the other: shared by the reader
 * and by what finds places in it (import/place.h).
 */
#ifndef CX_IMPORT_AIDER_LINES_H
#define CX_IMPORT_AIDER_LINES_H

#include "import/place.h"

#define AIDER_STARTED "# aider chat started at "

typedef enum line_kind { LINE_BLANK, LINE_START, LINE_USER, LINE_PRINTED, LINE_SAID } line_kind;

/* What a line shows by itself. */
typedef struct line_facts {
    bool started, prompt, printed, fence, blank;
    bool own; /* ends in two blanks */
} line_facts;

line_facts aider_facts(cx_str line);
/* The line at *at, without its end; *at moves after it. */
cx_str aider_line_at(cx_str text, size_t *at);
cx_str aider_after(cx_str line, const char *mark);
/* Without blanks at its end. */
cx_str aider_trimmed(cx_str line);
/* What a line of that kind says. */
cx_str aider_said(cx_str line, line_kind kind);

/*
 * Reads one line on.  `ended`: the program's own lines end in two blanks.  `line` is read of a line
 * that is `started` only.  Whether another block begins: reading->kind is its kind.
 */
bool aider_step(cx_import_reading *reading, const line_facts *facts, cx_str line, bool ended);

#endif

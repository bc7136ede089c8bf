/*
 * content.h - what a node says, text by text, and texts that occur in others.
 *
 * The content of an imported node is what its event says in words (imports.md §1.15); of any other
 * one it is the whole event, but for members that begin with `__`, and what it changed.  A string
 * is a text; an array or object is each string and number in it, and the whole as indented JSON,
 * as it is shown to people.
 */
#ifndef CX_LATTICE_CONTENT_CONTENT_H
#define CX_LATTICE_CONTENT_CONTENT_H

#include "lattice/internal.h"

typedef enum content_part {
    CONTENT_MESSAGE,   /* event.text */
    CONTENT_GIVEN,     /* event.input: what a model was given */
    CONTENT_THINKING,  /* event.thinking */
    CONTENT_REASON,    /* event.because */
    CONTENT_ERROR,     /* event.error */
    CONTENT_ARGUMENTS, /* of a call */
    CONTENT_RESULT,
    CONTENT_EVENT, /* another member of the event */
    CONTENT_CHANGE /* state_delta */
} content_part;

typedef struct content_text {
    content_part part;
    cx_str role; /* of what was given, else of the event */
    cx_str tool, call_id;
    cx_str name;   /* of the member */
    bool is_whole; /* indented JSON of what came before in pieces */
    cx_str text;
} content_text;

typedef CX_RESULT content_visit(void *arg, const content_text *text, cx_err *err);

/* A node's source, read again for its content. */
typedef struct content_reader {
    const cx_lattice *lattice;
    cx_arena arena; /* of one node */
    cx_buf scratch;
    cx_json source;
    const cx_json *event; /* an empty object where there is none */
} content_reader;

void cx_content_init(content_reader *reader, const cx_lattice *lattice);
void cx_content_done(content_reader *reader);
/* Reads a node; what came from the one before is gone. */
CX_RESULT cx_content_read(content_reader *reader, cx_node which, cx_err *err);
CX_RESULT cx_content_visit(content_reader *reader, content_visit *visit, void *arg, cx_err *err);
/* The texts in one value: its strings and numbers, without the whole. */
CX_RESULT cx_content_value(content_reader *reader, const cx_json *value, const content_text *like,
                           content_visit *visit, void *arg, cx_err *err);

const char *cx_content_part_name(content_part part);

/* Appends a text in which every stretch of white space is one space, without any at its ends. */
void cx_content_normal(cx_buf *out, cx_str text);
/* A part of a text around [at, at + size), cut between characters, with an ellipsis where cut. */
void cx_content_snippet(cx_buf *out, cx_str text, size_t at, size_t size, size_t most);

/* --- pieces that texts share ------------------------------------------------------------------ */

/* All windows of so many bytes of some texts. */
typedef struct content_windows {
    const cx_alloc *alloc;
    size_t width;
    cx_buf bytes; /* the texts, each ended by a zero byte */
    struct content_slot *slots;
    size_t slot_count;
    uint64_t power; /* of the multiplier, of what leaves a window */
} content_windows;

void cx_windows_init(content_windows *w, const cx_alloc *alloc, size_t width);
void cx_windows_done(content_windows *w);
/* Adds a normalised text; all of them come before cx_windows_make. */
CX_RESULT cx_windows_add(content_windows *w, cx_str text, cx_err *err);
CX_RESULT cx_windows_make(content_windows *w, cx_err *err);
/* Windows that also occur in this text are no longer found. */
void cx_windows_forget(content_windows *w, cx_str text);
/* The longest run of windows in a normalised text: where, and how many bytes; 0 = none. */
size_t cx_windows_find(const content_windows *w, cx_str text, size_t *out_at);

#endif

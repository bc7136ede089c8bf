/*
 * register_parts.h - parts of registering hooks: the form of an entry, and editing JSON in place.
 */
#ifndef CX_LIVE_REGISTER_PARTS_H
#define CX_LIVE_REGISTER_PARTS_H

#include "live/register.h"

/* --- register_form.c -------------------------------------------------------------------------- */

/* How an agent's hooks are written. */
typedef struct cx_hook_form {
    bool grouped;        /* {"matcher": .., "hooks": [entry]}, else the entry itself */
    const char *matcher; /* of events of tools; NULL = none */
    const char *command; /* the member with the command */
    bool version;        /* the file has "version": 1 */
} cx_hook_form;
const cx_hook_form *cx_hook_form_of(cx_live_agent agent);

/* The element of an event's list, as JSON on one line; in the arena. */
CX_RESULT cx_hook_element(const cx_live_hook *hook, const cx_live_hook_event *event,
                          cx_arena *arena, cx_str *out, cx_err *err);

/* --- register_edit.c: slices of a text that was read as strict JSON --------------------------- */

typedef struct cx_slice {
    cx_str name;  /* decoded; data NULL in arrays */
    cx_str all;   /* name and value, or the element */
    cx_str value; /* the slice */
} cx_slice;

typedef struct cx_slices {
    cx_str container;
    cx_slice *items;
    size_t count;
} cx_slices;

CX_RESULT cx_slices_of(cx_str container, cx_arena *arena, cx_slices *out, cx_err *err);
/* NULL when there is none. */
const cx_slice *cx_slices_find(const cx_slices *parts, const char *name);

/* Changes of one text; they never overlap. */
typedef struct cx_text_edit {
    size_t at, cut;
    cx_str add;
} cx_text_edit;

typedef struct cx_text_editor {
    cx_str text;
    const char *line_end; /* as the text has them */
    const char *unit;     /* of its indentation */
    cx_arena *arena;
    cx_text_edit *edits;
    size_t count, capacity;
    bool failed; /* memory ran out */
} cx_text_editor;

void cx_text_editor_init(cx_text_editor *editor, cx_str text, cx_arena *arena);
/* Adds items after the last part; an item is `"name": value` or a value, line ends in it as '\n',
 * inner lines indented by '\t'. */
void cx_text_editor_append(cx_text_editor *editor, const cx_slices *parts, const cx_str *items,
                           size_t count);
/* Removes the parts whose flag is set, with the commas that belong to them. */
void cx_text_editor_remove(cx_text_editor *editor, const cx_slices *parts, const bool *gone);
/* Replaces a slice of the text. */
void cx_text_editor_replace(cx_text_editor *editor, cx_str slice, cx_str with);
CX_RESULT cx_text_editor_end(cx_text_editor *editor, cx_buf *out, cx_err *err);

#endif

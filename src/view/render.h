/*
 * render.h - shared by the forms of a picture: text that is safe to show, and names.
 */
#ifndef CX_VIEW_RENDER_H
#define CX_VIEW_RENDER_H

#include "view/layout.h"

typedef struct picture {
    const cx_lattice *lattice;
    const cx_render_options *options;
    const layout *layout;
} picture;

cx_status cx_lattice_render_svg(cx_buf *out, const picture *pic, cx_err *err);
cx_status cx_lattice_render_dot(cx_buf *out, const picture *pic, cx_err *err);
cx_status cx_lattice_render_terminal(cx_buf *out, const picture *pic, cx_err *err);
cx_status cx_lattice_render_json(cx_buf *out, const picture *pic, cx_err *err);

typedef enum render_escape {
    RENDER_PLAIN, /* UTF-8 */
    RENDER_ASCII, /* nothing beyond U+007E */
    RENDER_XML,   /* element content and attribute values */
    RENDER_DOT    /* inside a quoted Graphviz label, where a backslash is special too */
} render_escape;

#define RENDER_NO_LIMIT UINT32_MAX

/*
 * Appends text that came from the file, cut to `columns` of a terminal.  Control characters,
 * directional and invisible marks, lone surrogates and invalid bytes are shown as \u001b or \xff:
 * none of them reaches a terminal or a browser.  Returns the columns used.
 */
uint32_t cx_lattice_render_text(cx_buf *out, cx_str text, render_escape escape, uint32_t columns);
/* The columns it would take. */
uint32_t cx_lattice_render_width(cx_str text, render_escape escape);

/* "1700000000.5": as in the file when it was an integer, else the shortest digits. */
cx_str cx_lattice_render_time(const cx_lattice *lattice, cx_node n, char scratch[32]);
/* A short id: the first 10 digits of a hash, else all of it. */
cx_str cx_lattice_render_short_id(cx_str id);
/* "natural", "observation", "injection", "unknown"; "" for none. */
const char *cx_lattice_render_fork(unsigned fork);
/* "VALID", "VALID (tainted)", "INVALID", ""; as in the text form of §4.1. */
const char *cx_lattice_render_verdict(layout_verdict verdict);
/* "lineage", "fork", "merge", "causal". */
const char *cx_lattice_render_edge(unsigned type);

#endif

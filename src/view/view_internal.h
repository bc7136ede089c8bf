/*
 * view_internal.h - declarations shared by the view_*.c files.
 */
#ifndef CX_VIEW_VIEW_INTERNAL_H
#define CX_VIEW_VIEW_INTERNAL_H

#include "view/layout.h"
#include "view/view.h"
#include "lattice/state.h"

struct cx_lattice_view {
    const cx_lattice *lattice;
    const cx_lattice_report *report;
    bool fold;
    layout l;             /* of everything, without labels */
    uint32_t *row_of;     /* by node */
    uint32_t *column_row; /* by column its first row; one more entry after the last */
    cx_lattice_view_snapshot *snapshots; /* by column, then as given */
    size_t snapshot_count;
};

static inline uint32_t view_column(const cx_lattice_view *view, cx_node n)
{
    return view->l.rows[view->row_of[n]].column;
}

static inline uint32_t view_lane(const cx_lattice_view *view, cx_node n)
{
    return view->l.rows[view->row_of[n]].lane;
}

/* view.c */
double cx_lattice_view_time(const cx_lattice *lattice, cx_node n);
/* ,"agent":..,"col":..,"id":..,"lane":..,"n":..,"seq":..,"t":..  without the first comma */
void cx_lattice_view_put_node(cx_buf *out, const cx_lattice_view *view, cx_node n);
/* null in a history that is not timed. */
void cx_lattice_view_put_time(cx_buf *out, const cx_lattice_view *view, cx_node n);
/* A number for JSON; null when it is not finite. */
void cx_lattice_view_put_double(cx_buf *out, double value);

/* CX_E_NOT_FOUND "NoState": the evidence is damaged; neither the caller nor the program is wrong.
 */
CX_RESULT cx_lattice_view_need_place(const cx_lattice *lattice, cx_node n, cx_err *err);

/* view_spans.c */
/* "span":[began,ended,..], of the rows first .. last - 1. */
CX_RESULT cx_lattice_view_put_spans(cx_buf *out, const cx_lattice_view *view, uint32_t first,
                                    uint32_t last, cx_err *err);

/* view_images.c */
/* ,"pictures":[{"size","type"}] of an event; nothing when it has none. */
CX_RESULT cx_lattice_view_put_images(cx_buf *out, const cx_lattice_view *view, const cx_json *event,
                                     cx_err *err);

/* view_marks.c */
/* ,"marks":[kind,column,node,..] of the columns from .. to - 1. */
void cx_lattice_view_put_marks(cx_buf *out, const cx_lattice_view *view, uint32_t from,
                               uint32_t to);
/* ,"failed":bool,"override":count,"snapshots":[..] of one node. */
void cx_lattice_view_put_signs(cx_buf *out, const cx_lattice_view *view, cx_node n);

/* view_differ.c */
/* ,"diff":[..],"more_diff":bool of the states after two nodes, one of each side. */
CX_RESULT cx_lattice_view_put_differences(cx_buf *out, const cx_lattice_view_side sides[2],
                                          const cx_node nodes[2], cx_err *err);

/* view_state.c */
/* {"cut","size","text"} of canonical JSON, of which at most `most` bytes are written. */
void cx_lattice_view_put_text(cx_buf *out, cx_str text, size_t most);
/* The same of a value; null for what is not there.  Of more than 256 KiB only a part is looked at:
 * "least":true says that it is larger than its size. */
CX_RESULT cx_lattice_view_put_value(cx_buf *out, tree_work *work, cx_value v, size_t most,
                                    cx_err *err);

#endif

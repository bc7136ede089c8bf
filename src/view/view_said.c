/*
 * view_said.c - where a text was said before a node, for a page: the answer of lattice.md §8.
 */
#include "view/view_internal.h"

cx_status cx_lattice_view_said(cx_buf *out, const cx_lattice_view *view, cx_node which, cx_str text,
                               cx_err *err)
{
    const cx_answer_options options = {
        .verified = cx_lattice_report_verdict(view->report) == CX_HOLDS, .json = true};
    return cx_lattice_answer_said(out, view->lattice, which, text, &options, err);
}

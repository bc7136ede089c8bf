/*
 * view_said.c - where a text was said before a node, and where words are, for a page: the answers
 * of lattice.md §8.
 */
#include "view/view_internal.h"

cx_status cx_lattice_view_said(cx_buf *out, const cx_lattice_view *view, cx_node which, cx_str text,
                               cx_err *err)
{
    const cx_answer_options options = {
        .verified = cx_lattice_report_verdict(view->report) == CX_HOLDS, .json = true};
    return cx_lattice_answer_said(out, view->lattice, which, text, &options, err);
}

cx_status cx_lattice_view_grep(cx_buf *out, const cx_lattice_view *view, const cx_str *words,
                               size_t word_count, cx_err *err)
{
    const cx_answer_options options = {
        .verified = cx_lattice_report_verdict(view->report) == CX_HOLDS, .json = true};
    uint32_t total;
    return cx_lattice_answer_grep(out, view->lattice, words, word_count, CX_LATTICE_VIEW_HITS_MAX,
                                  &options, &total, err);
}

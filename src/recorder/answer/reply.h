/*
 * reply.h - writes one line of canonical JSON: shared by the files of answers.
 *
 * Adding a member reports no error: ending the list does.
 */
#ifndef CX_RECORDER_REPLY_H
#define CX_RECORDER_REPLY_H

#include "recorder/internal.h"

/* One answer being written: values live in the arena, errors are reported at the end. */
typedef struct cx_reply {
    cx_arena arena;
    cx_err *err;
} cx_reply;

void cx_reply_begin(cx_reply *a, const cx_alloc *alloc, cx_err *err);
/* Writes the value and a line end, unless `status` failed; frees what begin made. */
cx_status cx_reply_end(cx_reply *a, cx_status status, const cx_json *value, cx_buf *out);

void cx_reply_add(cx_json_list *list, const char *name, cx_json value);
/* NULL data: null. */
void cx_reply_text(cx_json_list *list, const char *name, cx_str text);
/* "": null. */
void cx_reply_z(cx_json_list *list, const char *name, const char *text);
void cx_reply_uint(cx_json_list *list, const char *name, uint64_t value);
/* CX_TIME_NONE: null. */
void cx_reply_time(cx_json_list *list, const char *name, int64_t ns);
/* "not_searched_before": the time before which rows were dropped from the index, or null. */
CX_RESULT cx_reply_not_searched(cx_json_list *list, cx_index *index, cx_err *err);
void cx_reply_hex(cx_json_list *list, const char *name, const void *bytes, size_t size);
/* Ends `inner` and puts it. */
cx_status cx_reply_end_object(cx_json_list *outer, const char *name, cx_json_list *inner,
                              cx_err *err);
/* The cell of a column that there is. */
const cx_cell *cx_reply_cell(const cx_found_row *row, const char *column);
/* answers.c: a row as GET /traces shows it to a caller with `level`. */
CX_RESULT cx_reply_trace_row(const cx_found_row *row, cx_trace_level level, cx_arena *arena,
                             cx_json *out, cx_err *err);
/* answer_steps.c: the members of a history, as GET /api/v1/histories shows it. */
void cx_reply_history(cx_json_list *item, const cx_found_history *history);

#endif

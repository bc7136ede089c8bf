/*
 * view.h - memories and edges as JSON: the same members every time, for whoever shows them.
 *
 * Putting never fails visibly: the list does when it is ended.
 */
#ifndef CX_MEMORY_VIEW_H
#define CX_MEMORY_VIEW_H

#include "memory/memory.h"

/* All of a memory at one version, and its Head. */
CX_RESULT cx_view_memory(const cx_memory_view *view, cx_json_list *out, cx_err *err);
/* A hit of find or context: the memory, "salience" and "similarity" (null without `near`). */
CX_RESULT cx_view_hit(const cx_memory_hit *hit, bool near, cx_json_list *out, cx_err *err);
CX_RESULT cx_view_edge(const cx_edge *edge, cx_json_list *out, cx_err *err);

void cx_view_put_str(cx_json_list *list, const char *name, cx_str text);
void cx_view_put_uint(cx_json_list *list, const char *name, uint64_t value);
void cx_view_put_bool(cx_json_list *list, const char *name, bool value);
void cx_view_put_null(cx_json_list *list, const char *name);
/* Null when it is no number. */
void cx_view_put_float(cx_json_list *list, const char *name, float value);
void cx_view_put_id(cx_json_list *list, const char *name, const cx_id *id);
void cx_view_put_uri(cx_json_list *list, const char *name, const cx_uri *uri);
void cx_view_put_texts(cx_json_list *list, const char *name, const cx_str *texts, size_t count);
/* Ends `inner` and puts or adds it. */
CX_RESULT cx_view_put_object(cx_json_list *list, const char *name, cx_json_list *inner,
                             cx_err *err);
CX_RESULT cx_view_put_array(cx_json_list *list, const char *name, cx_json_list *inner, cx_err *err);
CX_RESULT cx_view_add_object(cx_json_list *list, cx_json_list *inner, cx_err *err);

#endif

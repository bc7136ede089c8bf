/*
 * view.h - memories and edges as JSON: the same members for every caller.
 *
 * Putting never fails visibly: the list does when it is ended.
 */
#ifndef CX_MEMORY_VIEW_H
#define CX_MEMORY_VIEW_H

#include "memory/memory.h"
#include "memory/sent.h"

/* All of a memory at one version, and its Head. */
CX_RESULT cx_view_memory(const cx_memory_view *view, cx_json_list *out, cx_err *err);
/* A hit of find or context: the memory, "salience" and "similarity" (null without `near`). */
CX_RESULT cx_view_hit(const cx_memory_hit *hit, bool near, cx_json_list *out, cx_err *err);
/* A scope that was sent, without its bytes. */
void cx_view_sent_scope(const cx_sent_scope *sent, cx_json_list *out);
void cx_view_edge(const cx_edge *edge, cx_json_list *out);

/* Members of kinds that this module writes as text. */
void cx_json_put_id(cx_json_list *list, const char *name, const cx_id *id); /* a ULID */
void cx_json_put_uri(cx_json_list *list, const char *name, const cx_uri *uri);
/* RFC 3339 in seconds, or null. */
void cx_json_put_time(cx_json_list *list, const char *name, bool present, int64_t seconds);

#endif

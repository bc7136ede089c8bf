/*
 * report_parts.h - how report*.c put a document together.  Not for other files.
 *
 * Putting never fails visibly: a child that ran out of memory makes its parent fail, and the end of
 * the document says so once.
 */
#ifndef CX_BUNDLE_REPORT_PARTS_H
#define CX_BUNDLE_REPORT_PARTS_H

#include "bundle/report.h"

/* Text as JSON; what is no UTF-8 (names of files may not be) becomes U+FFFD. */
cx_json cx_run_part_str(cx_arena *arena, cx_str text);

void cx_run_part_put(cx_json_list *object, const char *name, cx_json value);
void cx_run_part_put_z(cx_json_list *object, const char *name, const char *text);
void cx_run_part_put_str(cx_json_list *object, const char *name, cx_str text);
/* The same, `otherwise` in place of empty text. */
void cx_run_part_put_or(cx_json_list *object, const char *name, cx_str text, const char *otherwise);
/* The same, nothing in place of empty text. */
void cx_run_part_put_given(cx_json_list *object, const char *name, cx_str text);
void cx_run_part_put_bool(cx_json_list *object, const char *name, bool value);
void cx_run_part_put_uint(cx_json_list *object, const char *name, uint64_t value);
void cx_run_part_put_digest(cx_json_list *object, const char *name, const cx_digest *value);
void cx_run_part_put_object(cx_json_list *object, const char *name, cx_json_list *child);
void cx_run_part_put_array(cx_json_list *object, const char *name, cx_json_list *child);
void cx_run_part_put_texts(cx_json_list *object, const char *name, const cx_str *texts,
                           size_t count);
void cx_run_part_put_ref(cx_json_list *object, const char *name, const cx_run_ref *ref);
void cx_run_part_put_refs(cx_json_list *object, const char *name, const cx_run_ref *refs,
                          size_t count);
void cx_run_part_add_object(cx_json_list *array, cx_json_list *child);

/* One of §2's ROLE15. */
bool cx_run_part_is_role(cx_str role);

#endif

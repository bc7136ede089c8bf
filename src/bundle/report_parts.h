/*
 * report_parts.h - members that several documents have, for report*.c.
 *
 * Adding a member reports no error: when memory ran out in a child, its parent fails, and so the
 * end of the document returns the error once.
 */
#ifndef CX_BUNDLE_REPORT_PARTS_H
#define CX_BUNDLE_REPORT_PARTS_H

#include "bundle/report.h"

/* Text as JSON; bytes that are not UTF-8 (names of files may have them) become U+FFFD. */
cx_json cx_run_part_str(cx_arena *arena, cx_str text);

/* As cx_json_put_utf8; `otherwise` in place of empty text. */
void cx_run_part_put_or(cx_json_list *object, const char *name, cx_str text, const char *otherwise);
/* The same, nothing in place of empty text. */
void cx_run_part_put_given(cx_json_list *object, const char *name, cx_str text);
void cx_run_part_put_ref(cx_json_list *object, const char *name, const cx_run_ref *ref);
void cx_run_part_put_refs(cx_json_list *object, const char *name, const cx_run_ref *refs,
                          size_t count);
void cx_run_part_add_object(cx_json_list *array, cx_json_list *child);

/* One of §2's ROLE15. */
bool cx_run_part_is_role(cx_str role);

#endif

/*
 * inbox_parts.h - shared by the list and its facets.
 */
#ifndef CX_STORES_INBOX_PARTS_H
#define CX_STORES_INBOX_PARTS_H

#include "stores/inbox.h"
#include "recorder/api.h"

#define CX_HOUR_NS (INT64_C(3600) * 1000000000)

/* Hours since 1970: from <= hour < to; all of them when nothing is chosen. */
typedef struct cx_inbox_hours {
    int64_t from, to;
} cx_inbox_hours;
cx_inbox_hours cx_inbox_hours_of(cx_str time, int64_t now_ns);
/* CX_TIME_NONE is in no chosen range. */
int64_t cx_inbox_hour(int64_t ns);

/* Whether every word is in one of the object's texts, ignoring the case of ASCII letters. */
bool cx_inbox_has_words(const cx_inbox_object *object, cx_str words);
/* All facets except CX_FACET_TIME. */
bool cx_inbox_is_value(const cx_inbox_query *query, cx_facet facet, cx_str value);
bool cx_inbox_is_chosen(const cx_inbox_query *query, const cx_inbox_object *object);

extern const char *const cx_inbox_kinds[CX_INBOX_KINDS];
extern const char *const cx_inbox_gates[];  /* by cx_gate_class */
extern const char *const cx_inbox_k_effs[]; /* by cx_k_eff_class */

/* The caller's objects and the alerts of the index. */
CX_RESULT cx_inbox_gather(cx_index *index, const cx_inbox_query *query,
                          const cx_inbox_object *objects, size_t count, cx_arena *arena,
                          cx_inbox_object **out, size_t *out_count, cx_err *err);
/* The query for the index; false when no trace can match the choices. */
bool cx_inbox_trace_query(const cx_inbox_query *query, cx_trace_query *out);
/* Writes the member "index". */
CX_RESULT cx_inbox_put_position(cx_recorder *recorder, cx_index *index, cx_json_list *list,
                                cx_err *err);

#endif

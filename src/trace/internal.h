/*
 * internal.h - what the files of this module share: the table of fields and levels, canonical bytes
 * that report whether Python would have spelled them differently, views.
 */
#ifndef CX_TRACE_INTERNAL_H
#define CX_TRACE_INTERNAL_H

#include "trace/trace.h"

/* --- fields and levels (§1.1, §1.2) ----------------------------------------------------------- */

typedef struct cx_field_scope cx_field_scope;

/* One row of the table; a group of fields has its own scope and no levels. */
typedef struct cx_field {
    const char *name;
    uint8_t unstamped,
        stamped; /* lowest cx_trace_level that allows the field; CX_LEVEL_ABSENT = not in the table */
    const cx_field_scope *group;
} cx_field;

/* The fields of an event, or of a group in it; by name. */
struct cx_field_scope {
    const cx_field *fields;
    size_t count;
};

/* Of an event's data; never NULL, empty for what is unknown. */
const cx_field_scope *cx_field_scope_of(cx_event_type event);
/* What every event may have. */
extern const cx_field_scope cx_field_scope_any;
/* NULL = none of that name. */
const cx_field *cx_field_find(const cx_field_scope *scope, cx_str name);
/* The component_type a known event has; "" for unknown. */
const char *cx_event_component_type(cx_event_type event);
cx_event_type cx_event_type_parse(cx_str text);

/* --- levels (§2) ------------------------------------------------------------------------------ */

/* A position in the data of a component. */
typedef struct cx_level_place {
    const cx_field_scope *scope; /* NULL inside what the table does not know */
    bool is_top;                 /* the data itself */
    bool stamped;
    cx_trace_level level;
} cx_level_place;

typedef enum cx_level_answer {
    CX_LEVEL_KEEP,
    CX_LEVEL_REMOVE, /* violates */
    CX_LEVEL_DESCEND /* an object: its members decide, at *out_inside */
} cx_level_answer;

cx_level_answer cx_level_judge(const cx_level_place *place, cx_str name, const cx_json *value,
                               cx_level_place *out_inside);
cx_level_place cx_level_place_of(const cx_trace *trace, const cx_trace_component *component,
                                 cx_trace_level level);

/* --- canonical bytes (§3) --------------------------------------------------------------------- */

/* As cx_trace_canonical; *out_differs: Python would spell a number in it differently. */
CX_RESULT cx_trace_canonical_noting(const cx_trace *trace, const cx_trace_bytes *which, cx_buf *out,
                                    bool *out_differs, cx_err *err);
/* As cx_trace_canon_value; *differs is set, never cleared. */
CX_RESULT cx_canon_value(const cx_json *value, const cx_canon_style *style, cx_buf *out,
                         bool *differs, cx_err *err);

#endif

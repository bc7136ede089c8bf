/*
 * gen_ai.h - the data of spans by the GenAI conventions, in either notation of attributes.
 */
#ifndef CX_IMPORT_GEN_AI_H
#define CX_IMPORT_GEN_AI_H

#include "import/internal.h"

typedef enum cx_import_outcome { CX_SPAN_UNSET, CX_SPAN_OK, CX_SPAN_ERROR } cx_import_outcome;

typedef struct cx_import_span {
    const cx_json *attributes; /* an object, or OTLP's list of {"key","value":{type:value}} */
    cx_arena *arena;
    cx_str name;
    cx_str fallback_agent; /* of a span that has no agent, nor an ancestor with one */
    cx_str scope;          /* of its call ids */
    cx_import_outcome outcome;
} cx_import_span;

/* The first attribute of that name, unwrapped; false when absent or null. */
bool cx_import_attribute(const cx_import_span *span, cx_str name, cx_json *out);
/* Its text when it is a string that is not empty, else an empty cx_str. */
cx_str cx_import_attribute_str(const cx_import_span *span, cx_str name);

/* The first of several names (NULL ends them) that is there, in the span's arena; else NULL. */
const cx_json *cx_import_first_attribute(const cx_import_span *span, const char *const *names);

/* "ok", "STATUS_CODE_ERROR", "StatusCode.ERROR", 2, ... */
cx_import_outcome cx_import_span_outcome(const cx_json *code);

/* Agent, kind, tool, model, usage, call, beliefs, fork of a record whose references are set. */
CX_RESULT cx_import_gen_ai(cx_import_record *record, const cx_import_span *span, cx_err *err);

/* --- what a span says (gen_ai_content.c) ------------------------------------------------------ */

/* Of a span: `events` is its list, `failure` the message of its status. */
void cx_import_say_span(cx_import_content *content, const cx_json *attributes,
                        const cx_json *events, cx_str failure);
/* What a span of LangGraph wrote to the state of its graph (graph.c). */
void cx_import_say_graph_span(cx_import_content *content, const cx_import_span *span);
/* Of a log record. */
void cx_import_say_log(cx_import_content *content, const cx_json *attributes, const cx_json *body,
                       cx_str event_name);

#endif

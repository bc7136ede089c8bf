/*
 * content.h - what a record says: who spoke, the text, calls with their arguments, answers, errors.
 *
 * In pass two a format's `content` function reads it from the raw record, which is at hand again
 * then, so that no text is kept in memory between the passes (§1.14).  The core puts it into the
 * event and derives the keys of the state that people ask about (§1.15).
 *
 *     static void my_content(cx_import_content *c, const cx_json *raw)
 *     {
 *         cx_import_say_message(c, CX_JSON_GET(raw, "message"));
 *     }
 *
 * Values are borrowed from the raw record or the arena.  Memory failures are kept and returned by
 * the core.
 */
#ifndef CX_IMPORT_CONTENT_H
#define CX_IMPORT_CONTENT_H

#include "base/api.h"
#include "json/api.h"

/* A call, an answer, or both in one. */
typedef struct cx_import_said {
    struct cx_import_said *next;
    cx_str call_id;
    cx_str tool; /* of an answer mostly unknown here; the core then uses the event's */
    cx_json arguments;
    cx_json result;
    bool has_arguments;
    bool has_result;
    bool failed;
} cx_import_said;

typedef struct cx_import_content {
    cx_arena *arena;
    const cx_alloc *alloc;
    const cx_json *derived; /* the event's members that are known from pass one */
    cx_str role;
    cx_json_list texts;    /* array of strings */
    cx_json_list thoughts; /* array of strings: what a model thought and did not say */
    cx_json_list inputs;   /* array of {"role","text"}: what a model was given and is new in it */
    cx_import_said *said, **said_end;
    cx_str error;
    cx_json plan;  /* an array: steps or to-do items */
    cx_json graph; /* an object: what a node wrote to its graph's state, by key */
    bool has_plan, has_graph;
    bool has_cost;
    double cost_usd;
    int64_t duration_ns; /* negative = unknown */
    uint32_t images;
    bool failed;
} cx_import_content;

void cx_import_content_begin(cx_import_content *content, cx_arena *arena, const cx_alloc *alloc,
                             const cx_json *derived);

/* The first role counts; empty texts are ignored. */
void cx_import_say_role(cx_import_content *content, cx_str role);
void cx_import_say_text(cx_import_content *content, cx_str text);
void cx_import_say_thought(cx_import_content *content, cx_str text);
void cx_import_say_input(cx_import_content *content, cx_str role, cx_str text);
void cx_import_say_error(cx_import_content *content, cx_str text); /* the first counts */
void cx_import_say_duration(cx_import_content *content, int64_t start_ns, int64_t end_ns);
/* The value of a number or of a text that is one; others are ignored. */
void cx_import_say_cost(cx_import_content *content, const cx_json *usd);
/* Text that holds JSON is decoded; NULL = unknown. */
void cx_import_say_call(cx_import_content *content, cx_str call_id, cx_str tool,
                        const cx_json *arguments);
void cx_import_say_result(cx_import_content *content, cx_str call_id, cx_str tool, bool failed,
                          const cx_json *result);
/*
 * A text, a block or an array of them, in the forms that APIs of models have: text, input_text,
 * output_text, thinking, reasoning, tool_use, tool_call, tool_result, tool_call_response, images;
 * Gemini's parts with functionCall and functionResponse.
 */
void cx_import_say_blocks(cx_import_content *content, const cx_json *blocks);
/* A message {"role","content" or "parts","tool_calls","reasoning_content"}; of role tool it is an
 * answer to tool_call_id. */
void cx_import_say_message(cx_import_content *content, const cx_json *message);

/* What a model was given: messages, an object with them, or text; also as JSON in a text.  The
 * messages after the model's own last one are what is new. */
void cx_import_say_request(cx_import_content *content, const cx_json *input);
/* What it answered: a message, several, {"choices"}, {"candidates"}, text. */
void cx_import_say_response(cx_import_content *content, const cx_json *output);

/* A run of a graph's node, or of the whole graph; texts may hold JSON.  Others say nothing. */
typedef struct cx_import_graph {
    cx_str name;             /* of the run */
    cx_str node;             /* that it is inside of; empty = as in metadata */
    const cx_json *metadata; /* NULL = none; likewise below */
    const cx_json *input, *output;
} cx_import_graph;
void cx_import_say_graph(cx_import_content *content, const cx_import_graph *graph);

/* Text of a value: of a string itself; of blocks, their texts; of other JSON its canonical form. */
cx_str cx_import_plain_text(cx_import_content *content, const cx_json *value);
/* JSON that is inside of a text; the value itself when there is none.  False when out of memory. */
bool cx_import_decode_text(cx_import_content *content, const cx_json *value, cx_json *out);

/* Puts what was said into the event. */
CX_RESULT cx_import_content_event(cx_import_content *content, cx_json_list *event, cx_err *err);
/* Puts messages, tool, files and plan into `memory`, as the node of `agent`. */
CX_RESULT cx_import_content_memory(cx_import_content *content, cx_str agent, cx_json_list *memory,
                                   cx_err *err);

#endif

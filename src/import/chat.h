/*
 * chat.h - shared by the chat and session formats: calls in messages, short names, and an index of
 * earlier records.
 */
#ifndef CX_IMPORT_CHAT_H
#define CX_IMPORT_CHAT_H

#include "import/internal.h"

/* The text of a string or of a number's literal; empty for anything else. */
cx_str cx_import_scalar(const cx_json *value);

/* NULL for an absent and for a null value. */
const cx_json *cx_import_not_null(const cx_json *value);

/*
 * Describes every item of a message's tool_calls ({id, function: {name, arguments}}) as a call;
 * returns how many there are.
 */
uint32_t cx_import_chat_calls(cx_import_record *record, cx_str scope, const cx_json *message);

/* `tool` and `call_id` from the one call the record makes; several give `calls`, all their ids. */
CX_RESULT cx_import_name_calls(cx_import_record *record, cx_err *err);

/*
 * Decodes a string that contains JSON text, for the record's own use: false when the text is not
 * JSON, and when memory ran out, which cx_import_end then reports: the two are always
 * distinguishable at the end.
 */
bool cx_import_decode_for(cx_import_record *record, cx_str text, cx_json *out);

/* beliefs.<tool>_ok; nothing when the tool is unknown (§1.12: no guessed states). */
void cx_import_tool_belief(cx_import_record *record, cx_str tool, bool ok);

/* --- index of earlier records ----------------------------------------------------------------- */

typedef struct cx_import_note {
    cx_str text;
    uint32_t record;
} cx_import_note;

/* Zeroed = empty.  Keys and texts are copied to the sink's keep. */
typedef struct cx_import_index {
    cx_map index;
    CX_VEC(cx_import_note) notes;
    bool open;
} cx_import_index;

/* The first note of a key stays; an empty key is ignored. */
CX_RESULT cx_import_index_add(cx_import_sink *sink, cx_import_index *index, cx_str key, cx_str text,
                              uint32_t record, cx_err *err);
/* NULL when absent.  Valid until the next put. */
const cx_import_note *cx_import_index_find(const cx_import_index *index, cx_str key);
void cx_import_index_done(cx_import_index *index, const cx_alloc *alloc);

/*
 * The prefix and the first eight characters of an id, or the whole id (and ~2, ~3) where another id
 * of the same index has that name: what differs in the source must stay different (§1.10), and ids
 * that start with a time agree in their first digits.
 */
CX_RESULT cx_import_short_name(cx_import_sink *sink, cx_import_index *names, cx_str prefix,
                               cx_str id, cx_str *out, cx_err *err);

#endif

/*
 * turns.h - shared by the formats that tell a conversation in its order: who speaks by the role,
 * what is called and answered by what the record says (content.h).
 *
 *     cx_import_record *r = cx_import_turn_begin(sink, &state->turns, raw);
 *     cx_import_set_iso(r, CX_JSON_GET(raw, "timestamp"));
 *     CX_TRY(cx_import_turn_end(sink, &state->turns, my_content, raw, role, CX_STR("mine"), err));
 *
 * The function that says the content in pass two is asked in pass one too, so that a format
 * describes a message once.  `derived` is an empty object then.
 */
#ifndef CX_IMPORT_TURNS_H
#define CX_IMPORT_TURNS_H

#include "import/chat.h"

/* Zeroed = before the first record.  A file begins a conversation. */
typedef struct cx_import_turns {
    uint32_t file_seen; /* file + 1 */
    uint32_t conversations;
    uint32_t previous;        /* record of this conversation; CX_RECORD_NONE = none */
    cx_str suffix;            /* of its agents: empty for the first, then #2, #3 */
    bool repeats;             /* the format tells a call again when more is known of it */
    cx_import_index tools;    /* call id -> tool */
    cx_import_record *record; /* being described */
    cx_arena_mark mark;
} cx_import_turns;

typedef void (*cx_import_say)(cx_import_content *content, const cx_json *raw);

/* Another conversation than the one before, also within a file. */
CX_RESULT cx_import_turns_open(cx_import_sink *sink, cx_import_turns *turns, cx_err *err);
/* What follows is of the conversation of that number, from 1 over all files. */
CX_RESULT cx_import_turns_go_to(cx_import_sink *sink, cx_import_turns *turns, uint32_t number,
                                cx_err *err);
void cx_import_turns_done(cx_import_turns *turns, const cx_alloc *alloc);

/* raw as in cx_import_record.  What is allocated from here on in sink->arena ends with the turn. */
cx_import_record *cx_import_turn_begin(cx_import_sink *sink, cx_import_turns *turns,
                                       const cx_json *raw);
/* The record before it in the conversation is its parent; none for the first. */
void cx_import_turn_follow(cx_import_record *record, const cx_import_turns *turns);
/*
 * Agent, kind and fork by the role, calls and answers by what `say` says of the value.  `name` is
 * the agent's where the role is that of a model.  A record with an agent keeps it and its kind.
 */
CX_RESULT cx_import_turn_end(cx_import_sink *sink, cx_import_turns *turns, cx_import_say say,
                             const cx_json *value, cx_str role, cx_str name, cx_err *err);

/* A call of that id was told in this conversation. */
bool cx_import_turn_knows(cx_import_sink *sink, const cx_import_turns *turns, cx_str call_id);

/* "assistant", "model", ...; the names that programs give the same roles. */
bool cx_import_is_model_role(cx_str role);
bool cx_import_is_tool_role(cx_str role);
bool cx_import_is_user_role(cx_str role);
bool cx_import_is_system_role(cx_str role);

/* The object has a string or anything at a name. */
bool cx_import_has_str(const cx_json *object, const char *name);
bool cx_import_has(const cx_json *object, const char *name);
/* The array at a name, or NULL. */
const cx_json *cx_import_array_at(const cx_json *object, const char *name);
/* The first item of an array when it is an object, or NULL. */
const cx_json *cx_import_first_object(const cx_json *array);
/* NULL names end the list; the first that is there and not null. */
const cx_json *cx_import_first_of(const cx_json *object, const char *const *names);
cx_str cx_import_first_str(const cx_json *object, const char *const *names);

/* Sets the time from ISO text, or from a number of seconds, ms, us or ns since 1970 by its size;
 * NULL sets nothing. */
void cx_import_set_any_time(cx_import_record *record, const cx_json *value);

#endif

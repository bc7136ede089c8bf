/*
 * session.h - reads the records that agents print while they work, line by line: messages, tool
 * calls, results (run.md §16).
 *
 * Known are `claude -p --output-format stream-json`, `codex exec --json` (items, and the older
 * `msg` records), `gemini --output-format stream-json`, `cursor-agent --output-format stream-json`
 * and `opencode run --format json`.
 *
 *   I1  No line is an error: one that is not JSON is counted as broken, one of another type as
 *       unknown.  The raw lines are evidence and stay as they are; nothing here decides a gate.
 *   I2  A tool call is one item, whether its begin, its end or both are printed.
 *   I3  All text of an item is bounded (CX_SESSION_TEXT_MAX) and cut between characters.
 */
#ifndef CX_AGENT_SESSION_H
#define CX_AGENT_SESSION_H

#include "base/api.h"
#include "rules/api.h"

#define CX_SESSION_TEXT_MAX ((size_t)64 << 10)
#define CX_SESSION_INPUT_MAX ((size_t)4096) /* of a call's arguments in an event */
#define CX_SESSION_REPLY_MAX ((size_t)16 << 20)
#define CX_SESSION_OPEN_MAX 1024 /* calls that have begun and not ended */

typedef enum cx_session_kind {
    CX_SESSION_MESSAGE,
    CX_SESSION_CALL,
    CX_SESSION_RESULT
} cx_session_kind;

/* Text lives until the callback returns. */
typedef struct cx_session_item {
    cx_session_kind kind;
    cx_str who;  /* message: "assistant", "user", "reasoning", "error"; else the tool, or empty */
    cx_str id;   /* of the call; may be empty */
    cx_str text; /* of a message or result; the arguments of a call, as compact JSON */
    size_t text_size; /* before it was cut */
    cx_str command;   /* call of a shell: what it runs */
    bool shell;       /* call: it runs a command */
    bool failed;      /* result */
    bool continued;   /* message: more of the previous one */
} cx_session_item;

typedef struct cx_session_counts {
    uint64_t lines;
    uint64_t unknown, broken; /* I1 */
    uint64_t messages, calls, results;
} cx_session_counts;

typedef struct cx_session {
    const cx_alloc *alloc;
    const char *format; /* "claude", "codex", "gemini", "cursor", "opencode"; NULL: none so far */
    cx_session_counts counts;
    cx_buf reply;      /* the last message of the agent, or what it calls its result */
    bool reply_open;   /* gemini: more pieces of it may follow */
    bool reply_failed; /* REPLY_MAX was exceeded */
    cx_buf failure;    /* why the agent says that it failed; empty: it does not */
    cx_buf thread;     /* the id of its session */
    uint64_t open[CX_SESSION_OPEN_MAX]; /* hashes of ids (I2) */
    size_t open_count;
} cx_session;

typedef cx_status cx_session_sink(void *arg, const cx_session_item *item, cx_err *err);

void cx_session_init(cx_session *session, const cx_alloc *alloc);
void cx_session_done(cx_session *session);

/* *out_record: the line is a record of an agent's stream, known or not; else it may be a reply.
 * Errors are the sink's, and CX_E_NOMEM. */
CX_RESULT cx_session_read(cx_session *session, cx_str line, cx_session_sink *sink, void *arg,
                          bool *out_record, cx_err *err);

/* The same for a record that was read already, such as the params of codex/event. */
CX_RESULT cx_session_read_value(cx_session *session, const cx_json *record, cx_session_sink *sink,
                                void *arg, cx_err *err);

/* {"tool", "call"?, "command"?, "input"?, "input_cut"?}: the payload of TOOL_INVOCATION. */
CX_RESULT cx_session_call_json(const cx_session_item *item, cx_arena *arena, cx_json *out,
                               cx_err *err);
/* {"format", "lines", "unknown", "broken", "messages", "tool_calls"}; the format must be known. */
CX_RESULT cx_session_counts_json(const cx_session *session, cx_arena *arena, cx_json *out,
                                 cx_err *err);

#endif

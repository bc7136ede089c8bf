/*
 * session_path.h - what the path of a session's file says (docs/formats/sessions.md §1): whether it
 * grows or is replaced, what the session is called, and which files are one session together.
 *
 * Pure; texts are parts of the path that was given.
 */
#ifndef CX_RECORDER_SESSION_PATH_H
#define CX_RECORDER_SESSION_PATH_H

#include "base/api.h"

#define CX_SESSION_ID_SIZE 16

typedef enum cx_session_shape {
    CX_SESSION_NO_FILE,  /* no session is kept in such a file */
    CX_SESSION_LINES,    /* grows by lines */
    CX_SESSION_DOCUMENT, /* one JSON document, which is replaced when there is more */
    CX_SESSION_EVENT,    /* OpenHands: one of the documents in the folder `events` of a session */
    CX_SESSION_MESSAGE,  /* OpenCode: a message, in a folder of the session */
    CX_SESSION_PART      /* OpenCode: a part of a message, in a folder of the message */
} cx_session_shape;

typedef struct cx_session_path {
    cx_session_shape shape;
    cx_str stem; /* the name of the session, without folders and endings */
    cx_str file; /* the name of the file, likewise */
    /* The folder whose files are one session together; of CX_SESSION_PART the folder `storage`. */
    cx_str group;
    cx_str message; /* of CX_SESSION_PART: the message's id */
} cx_session_path;

void cx_session_path_read(cx_str path, cx_session_path *out);
static inline bool cx_session_path_is_document(const cx_session_path *path)
{
    return path->shape >= CX_SESSION_DOCUMENT;
}

/* The id of a path in its generation; of a group `generation` is UINT64_MAX. */
#define CX_SESSION_OF_GROUP UINT64_MAX
void cx_session_id(cx_str path, uint64_t generation, uint8_t out[CX_SESSION_ID_SIZE]);

/* Appends JSON text without the white space between its tokens: one line, with the same values.
 * What is no JSON comes out on one line, too. */
void cx_session_add_line(cx_bytes json, cx_buf *out);

#endif

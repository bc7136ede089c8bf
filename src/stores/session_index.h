/*
 * session_index.h - session files of coding agents in the ledger, piece by piece, each byte once
 * (docs/formats/sessions.md).
 *
 * Actor `sessions`.  A piece is an entry: its kind names the format, its committed payload is the
 * bytes, its created_by `watch:<session id>@<offset>` is their place in the file.  Records in the
 * same frame:
 *
 *     session/file/<id 16>                     bytes archived so far, and how to recognise the file
 *     session/piece/<id 16><offset u64be>      {1 seq, 2 size, 3 lines before it, 4 place}
 *
 * The session's offset is compared inside the transaction, so several processes may archive at
 * once.  Works on data directories of this process and of others (socket/remote.h).
 */
#ifndef CX_STORES_SESSION_INDEX_H
#define CX_STORES_SESSION_INDEX_H

#include "import/api.h"
#include "ledger/api.h"
#include "recorder/api.h"
#include "sensitive/api.h"

#define CX_SESSION_ACTOR "sessions"
#define CX_SESSION_PIECE_MAX ((size_t)1 << 20)
/* A document of at most that many bytes is one piece. */
#define CX_SESSION_DOCUMENT_MAX ((size_t)32 << 20)
/* The first and last archived bytes that are compared to recognise a file. */
#define CX_SESSION_MARK_SIZE 4096

typedef enum cx_recorded_session_format {
    CX_SESSION_CLAUDE_CODE,
    CX_SESSION_CODEX,
    CX_SESSION_UNREAD, /* of no known format: only its bytes are archived */
    CX_SESSION_GEMINI_CLI,
    CX_SESSION_QWEN_CODE,
    CX_SESSION_CURSOR,
    CX_SESSION_COPILOT_CLI,
    CX_SESSION_OPENCODE,
    CX_SESSION_CLINE,
    CX_SESSION_DROID,
    CX_SESSION_AIDER,
    CX_SESSION_OPENHANDS,
    CX_SESSION_FORMAT_COUNT
} cx_recorded_session_format;
/* "claude-code", "codex", ..: the names of the module import; "unread". */
const char *cx_recorded_session_format_name(cx_recorded_session_format format);
/* CX_SESSION_UNREAD for a name of no format here; NULL is fine. */
cx_recorded_session_format cx_recorded_session_format_of(const char *name);

/* A file from its first byte.  A file that was truncated or rewritten is a new session, and so is a
 * document with another content: the next generation of its path. */
typedef struct cx_recorded_session {
    uint8_t id[CX_SESSION_ID_SIZE]; /* of the path where it was first seen, and the generation */
    cx_recorded_session_format format;
    cx_str path; /* where it was last seen */
    uint64_t generation;
    uint64_t offset; /* bytes archived */
    bool counted;    /* `lines` is known, of each of its pieces too */
    uint64_t lines;  /* line feeds in the bytes archived */
    cx_bytes place;  /* of a text that is read by places: that at its end; empty = not known */
    uint64_t device, inode;
    /* Of the first and the last bytes archived; <= MARK_SIZE.  Of a document the sizes are 0, and
     * `head` is the hash of all of it. */
    uint64_t head_size, tail_size;
    cx_digest head, tail;
    cx_bytes record; /* the stored record; empty = not stored yet */
} cx_recorded_session;

/* The id of a new session. */
void cx_recorded_session_name(cx_recorded_session *session);

/* All sessions, in the order of their ids; memory from the arena.  Empty when there are none. */
CX_RESULT cx_recorder_sessions(cx_home *home, cx_arena *arena, const cx_recorded_session **out,
                               size_t *out_count, cx_err *err);

typedef struct cx_recorded_session_step {
    const cx_recorded_session *before; /* as it was read */
    /* its offset is that of `before` plus the size of the pieces */
    const cx_recorded_session *after;
    const cx_bytes *pieces;
    size_t piece_count;             /* at least 1 */
    const cx_sensitive_list *found; /* of each piece; NULL = nothing was looked for */
} cx_recorded_session_step;
/* Sets lines and place of what is after the step: those of before, and of the pieces. */
CX_RESULT cx_recorder_session_count(const cx_recorded_session_step *step, cx_arena *arena,
                                    cx_recorded_session *after, cx_err *err);
/*
 * Appends the pieces and the record in one commit, durable when this returns.  *out_stale: another
 * process was faster and nothing was written; read the sessions again.  `record` (appended to) gets
 * the new record's bytes.
 */
CX_RESULT cx_recorder_session_append(cx_home *home, const cx_recorded_session_step *step,
                                     cx_buf *record, uint64_t *out_first_seq, bool *out_stale,
                                     cx_err *err);

/* The entry of its newest piece; false in *out_found when there is none. */
CX_RESULT cx_recorder_session_newest(cx_home *home, const cx_recorded_session *session,
                                     uint64_t *out_seq, bool *out_found, cx_err *err);

/* A piece, and how many lines end before it. */
typedef struct cx_session_piece {
    uint64_t offset, size, seq, lines;
} cx_session_piece;
/* The piece that has the byte at `offset`; CX_E_NOT_FOUND "NoPiece" when none has. */
CX_RESULT cx_recorder_session_piece(cx_home *home, const cx_recorded_session *session,
                                    uint64_t offset, cx_session_piece *out, cx_err *err);

/* The same with the place before the piece; *out_found false: it has none that can be read. */
CX_RESULT cx_recorder_session_place(cx_home *home, const cx_recorded_session *session,
                                    uint64_t offset, cx_session_piece *out,
                                    cx_import_place *out_place, bool *out_found, cx_err *err);

/* Appends all archived bytes of a session that were not erased. */
CX_RESULT cx_recorder_session_bytes(cx_home *home, const cx_recorded_session *session, cx_buf *out,
                                    uint64_t *out_erased, cx_err *err);

#endif

/*
 * remote_wire.h - the messages between the writer process and its clients
 * (docs/formats/socket.md).
 *
 * Decoding is a pure function of bytes that come from another process: strict, with every count and
 * size limited, and encode(decode(x)) == x.  What is decoded borrows from the bytes, arrays come
 * from the arena.
 */
#ifndef CX_SOCKET_REMOTE_WIRE_H
#define CX_SOCKET_REMOTE_WIRE_H

#include "ledger/api.h"

#define CX_REMOTE_VERSION 1
/* The first bytes of both sides: these six, and the version in two. */
#define CX_REMOTE_GREETING "cxhome"
#define CX_REMOTE_GREETING_SIZE 8
/* Of a message without its length: a record of the greatest size passes, and what goes with it. */
#define CX_REMOTE_MESSAGE_MAX (CX_VALUE_SIZE_MAX + (UINT32_C(8) << 20))
#define CX_REMOTE_FRAMES_MAX 65536
#define CX_REMOTE_CHANGES_MAX 65536 /* of a frame; what the log allows */
#define CX_REMOTE_ROWS_MAX 65536    /* of one page of rows, actors or numbers */

typedef enum cx_remote_op {
    CX_REMOTE_HELLO = 1,
    CX_REMOTE_ACTOR = 2,
    CX_REMOTE_ACTORS = 3,
    CX_REMOTE_GET = 4,
    CX_REMOTE_GET_AT = 5,
    CX_REMOTE_SCAN = 6,
    CX_REMOTE_ENTRY = 7,
    CX_REMOTE_ABOUT = 8,
    CX_REMOTE_ROOTS = 9,
    CX_REMOTE_TABLES = 10,
    CX_REMOTE_FLUSH = 11,
    CX_REMOTE_SYNC = 12,
    CX_REMOTE_ERASE = 13,
    CX_REMOTE_TXN_BEGIN = 14,
    CX_REMOTE_TXN_GET = 15,
    CX_REMOTE_TXN_ROOTS = 16,
    CX_REMOTE_TXN_COMMIT = 17,
    CX_REMOTE_TXN_ABORT = 18,
    CX_REMOTE_HOME_ROOT = 19,
    CX_REMOTE_ARCHIVE = 20,
    CX_REMOTE_RESTORE = 21,
    CX_REMOTE_OP_END
} cx_remote_op;

/* One frame of a transaction: what cx_txn_entry (or cx_txn_bare), _put and _remove were given. */
typedef struct cx_remote_frame {
    bool has_entry;
    cx_entry_draft draft; /* `subject` points at the next one */
    cx_id subject;
    const cx_change *changes; /* key, value, removed, erasable */
    size_t change_count;
} cx_remote_frame;

typedef struct cx_remote_request {
    uint64_t number; /* 1, 2, .. of the connection */
    cx_remote_op op;
    cx_bytes actor; /* as given; the writer process checks that it is a valid name */
    cx_bytes key;
    /* of an entry or snapshot; the first number, or actor, of a page; of a home root its time, in
     * nanoseconds since 1970; of archiving, how many segments stay */
    uint64_t seq;
    cx_id subject;
    cx_bytes prefix;
    cx_bytes from;
    bool backwards;
    bool after;  /* the row at `from` itself was seen */
    bool common; /* a row that all actors share */
    uint64_t limit;
    bool has_scheme;
    cx_scheme scheme;
    const cx_remote_frame *frames;
    size_t frame_count;
    cx_bytes derivers; /* names with blanks between */
    /* of archiving, with `seq`: so many segments stay; and `key`: the folder, "." = the log's own,
     * empty = as before */
    uint64_t age_ns;
} cx_remote_request;

typedef struct cx_remote_row {
    cx_bytes key;
    cx_bytes value;
} cx_remote_row;

typedef struct cx_remote_answer {
    uint64_t number; /* of the request; 0 = a notice, after which the connection ends */
    bool failed;     /* only `err` is set */
    cx_err err;
    bool has_value;
    cx_bytes value;
    bool erased;
    cx_digest value_hash; /* of an erased value */
    cx_roots roots;
    const cx_actor_info *actors;
    size_t actor_count;
    const cx_remote_row *rows;
    size_t row_count;
    const uint64_t *seqs;
    size_t seq_count;
    bool more;      /* the page is not the last */
    cx_bytes entry; /* canonical bytes */
    bool committed; /* its payload and salt are there */
    cx_bytes payload;
    uint8_t salt[32];
    bool has_subject;
    cx_id subject;
    cx_tables_status tables;
    uint64_t commit;
    cx_scheme scheme;
    uint8_t home_id[16];
    bool is_new; /* the actor of a transaction does not exist yet */
} cx_remote_answer;

void cx_remote_request_encode(const cx_remote_request *request, cx_buf *out);
/* CX_E_FORMAT "NonCanonical". */
CX_RESULT cx_remote_request_decode(cx_bytes bytes, cx_arena *arena, cx_remote_request *out,
                                   cx_err *err);

/* Only what answers `op` is written; read, it must be all there. */
void cx_remote_answer_encode(const cx_remote_answer *answer, cx_remote_op op, cx_buf *out);
CX_RESULT cx_remote_answer_decode(cx_bytes bytes, cx_remote_op op, cx_arena *arena,
                                  cx_remote_answer *out, cx_err *err);

/* Static storage for a tag that came as text; NULL for one that this program does not know. */
const char *cx_remote_tag(cx_str text);

/* What this side says first. */
void cx_remote_greeting(uint8_t out[CX_REMOTE_GREETING_SIZE]);
/* False when the bytes are no greeting; else the other side's version. */
bool cx_remote_greeting_read(const uint8_t bytes[CX_REMOTE_GREETING_SIZE], unsigned *out_version);

#endif

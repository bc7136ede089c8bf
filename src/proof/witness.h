/*
 * witness.h - what a witness of other logs answers (C2SP tlog-witness), without network and files,
 * and its cosignatures (C2SP tlog-cosignature).
 *
 *   O1  A checkpoint is cosigned only when a known key of its origin signed it and it extends the
 *       newest one that was cosigned for that origin.
 */
#ifndef CX_PROOF_WITNESS_H
#define CX_PROOF_WITNESS_H

#include "proof/export.h"

#define CX_WITNESS_BODY_MAX ((size_t)64 << 10)
#define CX_WITNESS_PATH_MAX 63

/* The body of add-checkpoint. */
typedef struct cx_witness_request {
    uint64_t old_size;
    cx_digest path[CX_WITNESS_PATH_MAX];
    size_t path_count;
    cx_bytes note;
} cx_witness_request;

void cx_witness_request_write(const cx_witness_request *request, cx_buf *out);
/* CX_E_FORMAT "BadRequest"; the note is borrowed and not read. */
CX_RESULT cx_witness_request_read(cx_bytes body, cx_witness_request *out, cx_err *err);

typedef struct cx_witness_answer {
    unsigned status; /* 200, 400, 403, 404, 409, 422 */
    bool tell_size;  /* 409: the body is `size` and a line feed, of type text/x.tlog.size */
    uint64_t size;   /* of the newest checkpoint that was cosigned; 0 = none */
    const char *why; /* static storage; empty for 200 */
    cx_checkpoint checkpoint;
} cx_witness_answer;

/* The origin of the note in a request; CX_E_FORMAT. */
CX_RESULT cx_witness_origin(cx_bytes body, cx_str *out, cx_err *err);
/*
 * O1.  `keys` are those of all logs; a key's name is the origin that it is of.  `stored` is the
 * newest checkpoint that was cosigned for this origin, NULL = none.  With status 200 the caller
 * stores the note durably, signs, and answers, in this order.
 */
CX_RESULT cx_witness_judge(cx_bytes body, const cx_vkey *keys, size_t key_count,
                           const cx_checkpoint *stored, cx_arena *arena, cx_witness_answer *out,
                           cx_err *err);

/* "— name base64(key id ‖ time ‖ signature)", with its line end. */
void cx_cosignature_line(const cx_vkey *witness, uint64_t time_s, const cx_signature *signature,
                         cx_buf *out);

#endif

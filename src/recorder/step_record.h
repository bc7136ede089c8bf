/*
 * step_record.h - the records next to steps, as bytes (step.h).
 */
#ifndef CX_RECORDER_STEP_RECORD_H
#define CX_RECORDER_STEP_RECORD_H

#include "crypto/api.h"
#include "recorder/internal.h"
#include "recorder/step.h"

#define CX_STEP_HEAD_KEY CX_STR("step/head")
#define CX_STEP_NODE_PREFIX "step/node/"
#define CX_STEP_KEY_PREFIX "step/key/"
#define CX_STEP_LINK_PREFIX "step/link/"

/* One record of any of the four kinds; what a kind lacks is zero. */
typedef struct cx_step_record {
    uint64_t seq;
    cx_digest hash;
    uint64_t entry;
    double time;   /* of the node, seconds */
    double latest; /* greatest time of any node of the agent */
    uint64_t count;
    cx_digest content;
    cx_str agent; /* of a link; borrowed from the bytes */
} cx_step_record;

typedef struct cx_step_key {
    uint8_t bytes[48];
    size_t size;
} cx_step_key;

cx_step_key cx_step_key_of(const char *prefix, const cx_digest *digest);
static inline cx_bytes cx_step_key_bytes(const cx_step_key *key)
{
    return cx_bytes_from(key->bytes, key->size);
}

void cx_step_head_encode(const cx_step_record *record, cx_buf *out);
void cx_step_node_encode(const cx_step_record *record, cx_buf *out);
void cx_step_sent_encode(const cx_step_record *record, cx_buf *out);
void cx_step_link_encode(const cx_step_record *record, cx_buf *out);
CX_RESULT cx_step_record_decode(cx_bytes bytes, cx_step_record *out, cx_err *err);

/* Whether a node comes after the head in the order of lattice.md §5.2: seq, time, hash. */
bool cx_step_is_newer(const cx_step_record *node, const cx_step_record *head);
/* What the head's record says after the node was added; `has_head` false = it is the first. */
cx_step_record cx_step_head_after(const cx_step_record *head, bool has_head,
                                  const cx_step_record *node);

/* A record of a home; *out_found false also when there is no such actor. */
CX_RESULT cx_step_home_get(cx_home *home, cx_str actor, cx_bytes key, cx_arena *arena,
                           cx_step_record *out, bool *out_found, cx_err *err);
/* The same inside a turn. */
CX_RESULT cx_step_txn_get(cx_txn *txn, cx_bytes key, cx_step_record *out, bool *out_found,
                          cx_err *err);

/* A node that a step names as its parent. */
typedef struct cx_step_found {
    cx_step_record node; /* seq, hash, entry, time */
    cx_str actor;        /* whose journal it is in; lives in the arena */
    bool found;
} cx_step_found;
/* By what people and senders write; looks in the agent's own journal first.  CX_E_NOT_FOUND
 * "NoParent", CX_E_CONFLICT "Ambiguous". */
CX_RESULT cx_step_find(cx_home *home, cx_str own_actor, const cx_step_parent *parent,
                       cx_arena *arena, cx_step_found *out, cx_err *err);

#endif

/*
 * node.h - one recorded step as a node of a lattice: the line that lattice.md §2 describes, sealed
 * and hashed.  Bridges decide the meaning of a step; the bytes are made here.
 */
#ifndef CX_RECORDER_NODE_H
#define CX_RECORDER_NODE_H

#include "json/api.h"

#define CX_NODE_HASH_SIZE 64
#define CX_NODE_GENESIS "0000000000000000000000000000000000000000000000000000000000000000"

typedef struct cx_node_draft {
    cx_str agent_id;
    int64_t seq;
    cx_json timestamp; /* a number */
    cx_str fork;       /* data NULL = none */
    cx_json delta;
    cx_json_list event; /* all members but __seal, which is added */
    cx_str prev_hash;
    const cx_str *parents; /* as they are written */
    size_t parent_count;
} cx_node_draft;

/* Appends one line to `out`; the node's id is its hash.  Memory from the arena, `preimage` is
 * scratch. */
CX_RESULT cx_node_write(cx_node_draft *draft, cx_arena *arena, cx_buf *preimage, cx_buf *out,
                        char hash[CX_NODE_HASH_SIZE], cx_err *err);

/* {"memory":{name: value}}. */
CX_RESULT cx_node_memory(cx_str name, cx_json value, cx_arena *arena, cx_json *out, cx_err *err);
/* Seconds since 1970, exact. */
CX_RESULT cx_node_seconds(int64_t ns, cx_arena *arena, cx_json *out, cx_err *err);
/* Of canonical JSON; 64 hex digits. */
CX_RESULT cx_node_digest(const cx_json *value, cx_arena *arena, cx_buf *scratch, cx_str *out,
                         cx_err *err);

#endif

/*
 * uri.h - names of memories and edges as text, and ULIDs (ledger.md §4.3).  One name, one
 * spelling: whatever else is "BadURI".
 *
 *     matrix://cortex/<Type>/<ULID>#<version>        a memory at a version
 *     matrix://cortex/edge/<ULID>/<type>/<ULID>      an edge: source, type, destination
 */
#ifndef CX_PROOF_URI_H
#define CX_PROOF_URI_H

#include "proof/record.h"

#define CX_ULID_SIZE 26

/* "Identity", "derived_from", ...; empty for a code that is not in use. */
cx_str cx_uri_type_name(uint8_t type);
cx_str cx_uri_edge_type_name(uint8_t type);
/* 0 when there is no such type. */
uint8_t cx_uri_type_code(cx_str name);
uint8_t cx_uri_edge_type_code(cx_str name);

/* 26 upper-case Crockford characters, the first at most '7'. */
bool cx_ulid_parse(cx_str text, cx_id *out);
void cx_ulid_format(const cx_id *id, char out[CX_ULID_SIZE]);

typedef struct cx_uri {
    bool is_edge;
    uint8_t type; /* of the memory, or of the edge */
    cx_id id;     /* of the memory, or where the edge begins */
    cx_id dst;
    uint64_t version; /* from 1; 0 with edges */
} cx_uri;

/* CX_E_FORMAT "BadURI". */
CX_RESULT cx_uri_parse(cx_str text, cx_uri *out, cx_err *err);
void cx_uri_add(const cx_uri *uri, cx_buf *out);
/* The key of what it names in its state tree. */
cx_digest cx_uri_key(const cx_uri *uri, cx_scheme scheme);

#endif

/*
 * record.h - the record next to a received trace in the ledger: how it was received and what was
 * found then (docs/formats/trace.md).
 *
 * The entry `trace.received` has the received bytes; the record, in the same frame, has everything
 * else.  Its key is trace/<level>/<trace_id> with level g, d or f, so that it also shows whether a
 * trace was recorded before (trace.md §9).  Conflicting evidence is under
 * conflict/<level>/<trace_id>/<content digest>, a connectivity event under
 * connectivity/<level>/<trace_id>.
 */
#ifndef CX_INDEX_RECORD_H
#define CX_INDEX_RECORD_H

#include "ledger/api.h"
#include "trace/api.h"

#define CX_TRACE_BATCH_ID_SIZE 16

typedef struct cx_trace_record {
    uint64_t seq; /* of the entry */
    cx_trace_level level;
    uint8_t batch[CX_TRACE_BATCH_ID_SIZE]; /* all zero = none */
    cx_str capture;                        /* "signed", "authenticated", "open", "imported" */
    int64_t received_ns;
    int64_t consent_ns; /* CX_TIME_NONE */
    cx_digest content;
    cx_digest signature; /* SHA-256 of the 64 bytes */
    cx_str key_id;
    bool verified;
    cx_trace_reason reason; /* why not */
    cx_trace_form form;     /* CX_FORM_NONE when not verified */
    cx_trace_numbers numbers;
    cx_digest canonical; /* with a form */
    bool is_view;        /* the payload is a redacted view: the signed bytes are not stored */
} cx_trace_record;

#define CX_TRACE_RECORD_KEY_MAX (13 + 2 + CX_TRACE_ID_BYTES_MAX + 1 + 32)
typedef struct cx_trace_record_key {
    uint8_t bytes[CX_TRACE_RECORD_KEY_MAX];
    size_t size;
} cx_trace_record_key;

cx_bytes cx_trace_record_name(cx_trace_record_key *out, cx_trace_level level, cx_str trace_id);
cx_bytes cx_trace_conflict_name(cx_trace_record_key *out, cx_trace_level level, cx_str trace_id,
                                const cx_digest *content);
cx_bytes cx_trace_connectivity_name(cx_trace_record_key *out, cx_trace_level level,
                                    cx_str trace_id);
/* The common row that shows whether a signature was seen at a level; its value is the trace's id.
 */
cx_bytes cx_trace_signature_name(cx_trace_record_key *out, cx_trace_level level,
                                 const cx_digest *signature);

void cx_trace_record_encode(const cx_trace_record *record, cx_buf *out);
/* Texts are borrowed. */
CX_RESULT cx_trace_record_decode(cx_bytes bytes, cx_trace_record *out, cx_err *err);

/* Rows that all actors share, one for each journal with received traces: then the journal's
 * name. */
#define CX_TRACE_JOURNAL_PREFIX "traces/"
/* The rows that this module derives: the common rows of signatures and of journals, and hashes.
 * For cx_home_options. */
extern const cx_deriver cx_trace_deriver;

#endif

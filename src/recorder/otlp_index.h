/*
 * otlp_index.h - requests of OpenTelemetry exporters, stored in the ledger exactly once
 * (docs/formats/otlp.md §3).
 *
 * Actor `otel`.  One entry for each request with new records: its kind names signal and encoding,
 * its committed payload is the request as received (unpacked), its created_by the sender.  Records
 * next to it make known ones recognisable:
 *
 *     otlp/span/<trace id 16><span id 8>             first with these ids   {1 seq, 2 index,
 *                                                                            3 content}
 *     otlp/conflict/<trace id 16><span id 8><32>     another content        {1 seq, 2 index,
 *                                                                            3 content}
 *     otlp/log/<trace id 16><seq u64be>              has logs of the trace  {1 seq}
 *     otlp/request/<32>                              the same bytes before  {1 seq}
 *
 * The caller decodes requests: this module does not read OTLP.  Thread-safe.
 */
#ifndef CX_RECORDER_OTLP_INDEX_H
#define CX_RECORDER_OTLP_INDEX_H

#include "recorder/recorder.h"

#define CX_OTLP_ACTOR "otel"
#define CX_OTLP_INDEX_TRACE_SIZE 16
#define CX_OTLP_INDEX_SPAN_SIZE 8

/* One span or log record that is to be stored. */
typedef struct cx_otlp_item {
    const uint8_t *trace_id; /* 16 bytes; of a log record NULL when it belongs to no trace */
    const uint8_t *span_id;  /* 8 bytes; NULL = a log record, which has no identity */
    cx_digest content;
    const cx_json *value; /* as received, for rows of earlier versions; may be NULL */
    uint32_t index;       /* in the request, rejected ones counted */
} cx_otlp_item;

typedef struct cx_otlp_delivery {
    bool is_logs, is_json;
    cx_bytes request; /* unpacked */
    cx_str sender;    /* "open", or "token:NAME" */
    const cx_otlp_item *items;
    size_t item_count;
    const cx_sensitive_list *found; /* in the request as it is given here; NULL = none */
} cx_otlp_delivery;

typedef struct cx_otlp_stored {
    uint32_t stored, duplicates, conflicts; /* of the items */
    bool has_entry;
    uint64_t seq; /* of the entry, when something was new */
} cx_otlp_stored;

/*
 * Appends what is new and returns when it, and what was there before, is on the disk.  Without
 * items nothing is done.  Errors: the ledger's; then nothing may be assumed.
 */
CX_RESULT cx_recorder_otlp_store(cx_recorder *recorder, const cx_otlp_delivery *delivery,
                                 cx_otlp_stored *out, cx_err *err);

/* Of an entry of the actor: whether it is a request, and which. */
bool cx_recorder_otlp_kind(cx_str kind, bool *out_logs, bool *out_json);

/*
 * Numbers of the entries that hold something of a trace, ascending; of all requests when `trace_id`
 * is NULL.  Memory from the arena.
 */
CX_RESULT cx_recorder_otlp_entries(cx_home *home, const uint8_t *trace_id, cx_arena *arena,
                                   const uint64_t **out, size_t *out_count, cx_err *err);

/* Traces with stored spans, in the order of their ids; at most `limit`, from `after` on (NULL =
 * the first).  Erased ones too: their content is erased, their ids are not. */
typedef struct cx_otlp_trace_row {
    uint8_t trace_id[CX_OTLP_INDEX_TRACE_SIZE];
    uint64_t spans, first_seq;
} cx_otlp_trace_row;
CX_RESULT cx_recorder_otlp_traces(cx_home *home, const uint8_t *after, size_t limit,
                                  cx_arena *arena, const cx_otlp_trace_row **out, size_t *out_count,
                                  cx_err *err);

#endif

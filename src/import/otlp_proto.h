/*
 * otlp_proto.h - OTLP in protobuf (opentelemetry/proto/{trace,logs,common,resource}/v1) becomes
 * OTLP in JSON, which the import reads.
 *
 * Nothing is left out: fields that this version of the protocol does not know, or that have another
 * wire type than expected, are in `"_unknown":[{"field","wire","value"}]` of their message, with
 * varints as decimal text and everything else as hex.
 */
#ifndef CX_IMPORT_OTLP_PROTO_H
#define CX_IMPORT_OTLP_PROTO_H

#include "base/api.h"
#include "json/api.h"
#include "sensitive/api.h"

#define CX_OTLP_DEPTH_MAX 64                         /* messages in messages */
#define CX_OTLP_JSON_BYTES_MAX (UINT64_C(256) << 20) /* of the JSON made */

typedef enum cx_otlp_signal { CX_OTLP_TRACES, CX_OTLP_LOGS } cx_otlp_signal;

/*
 * Appends one JSON document: {"resourceSpans":[..]} or {"resourceLogs":[..]}, one line, no '\n'.
 * `*out_records` (may be NULL) counts spans or log records.  CX_E_SYNTAX "U_PROTOBUF" with the byte
 * offset, CX_E_FORMAT "U_UTF8" for invalid text, CX_E_LIMIT "U_DEPTH", "U_LIMIT".  On an error
 * `out` is unchanged.
 */
CX_RESULT cx_otlp_json(cx_otlp_signal signal, cx_bytes request, cx_buf *out, uint64_t *out_records,
                       cx_err *err);

/*
 * A span or log record in one form for all that mean the same: numbers of 64 bits as text, ids as
 * lower-case hex, enumerations as numbers, defaults, nulls and empty lists left out.  What the
 * protocol does not know stays as it is.  The value borrows from `record` and lives in the arena.
 */
CX_RESULT cx_otlp_meaning(cx_otlp_signal signal, const cx_json *record, cx_arena *arena,
                          cx_json *out, cx_err *err);

/*
 * Scans the texts, byte strings and whole numbers of a request for secrets and personal data
 * (docs/sensitive.md); pointers are those of its JSON, names of lists by their number.  Of what the
 * protocol does not know nothing is masked.  A request that is malformed is scanned up to there.
 */
void cx_otlp_scan_sensitive(cx_otlp_signal signal, const cx_sensitive_rules *rules,
                            const cx_sensitive_target *target, cx_sensitive_list *list);

#endif

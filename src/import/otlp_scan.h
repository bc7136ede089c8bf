/*
 * otlp_scan.h - an OTLP export request, in either encoding, record by record
 * (docs/formats/otlp.md).
 *
 * The receiver of requests and the later readers use the same code: a request that was accepted
 * once can always be read again.
 */
#ifndef CX_IMPORT_OTLP_SCAN_H
#define CX_IMPORT_OTLP_SCAN_H

#include "import/otlp_proto.h"
#include "json/api.h"

#define CX_OTLP_TRACE_ID_SIZE 16
#define CX_OTLP_SPAN_ID_SIZE 8
/* Spans or log records of one request. */
#define CX_OTLP_RECORDS_MAX 20000

typedef enum cx_otlp_fault {
    CX_OTLP_FINE,
    CX_OTLP_NO_OBJECT, /* JSON: a value that is not an object */
    CX_OTLP_TRACE_ID,  /* of a span: not 16 bytes, or all zero */
    CX_OTLP_SPAN_ID    /* of a span: not 8 bytes, or all zero */
} cx_otlp_fault;

/* A span or log record.  A fault means that OTLP has no such record: it is not stored. */
typedef struct cx_otlp_record {
    const cx_json *resource; /* the ResourceSpans or ResourceLogs it is in */
    const cx_json *scope;    /* the ScopeSpans or ScopeLogs */
    const cx_json *value;
    uint8_t trace_id[CX_OTLP_TRACE_ID_SIZE]; /* zeros = none, which a log record may have */
    uint8_t span_id[CX_OTLP_SPAN_ID_SIZE];
    cx_digest content; /* SHA-256 of the canonical JSON of its meaning (cx_otlp_meaning) */
    cx_otlp_fault fault;
} cx_otlp_record;

typedef struct cx_otlp_request {
    cx_json root;
    cx_otlp_record *records; /* in the order of the request */
    size_t count;
} cx_otlp_request;

/*
 * Reads a request; everything lives in the arena, or in `bytes`.  Errors: those of cx_otlp_json and
 * cx_json_parse; CX_E_FORMAT "U_NUMBER" (a number beyond a double), "U_SHAPE" (no such request);
 * CX_E_LIMIT "U_LIMIT" for more records than CX_OTLP_RECORDS_MAX.
 */
CX_RESULT cx_otlp_scan(cx_otlp_signal signal, bool is_json, cx_bytes bytes, cx_arena *arena,
                       cx_otlp_request *out, cx_err *err);

/* "trace_id is not 16 bytes ..": static storage. */
const char *cx_otlp_fault_text(cx_otlp_fault fault);

/* The text of a resource's attribute service.name; empty when it has none. */
cx_str cx_otlp_service(const cx_json *resource);
/* Names of the lists inside a request, by signal. */
extern const char *const cx_otlp_resources_name[2];  /* "resourceSpans" */
extern const char *const cx_otlp_scopes_name[2];     /* "scopeSpans" */
extern const char *const cx_otlp_records_name[2];    /* "spans" */
extern const char *const cx_otlp_old_scopes_name[2]; /* "instrumentationLibrarySpans" */

#endif

/*
 * alerting.h - the detectors on a schedule, and alerts sent to where people see them (trace.md
 * §12).
 *
 * One thread runs the detectors.  Each destination has a thread, so that one that does not answer
 * delays no other.  What is to be sent, and what became of it, is in the queue of
 * recorder/deliveries.h.
 */
#ifndef CX_SERVER_ALERTS_ALERTING_H
#define CX_SERVER_ALERTS_ALERTING_H

#include "recorder/api.h"

typedef struct cx_service cx_service;

#define CX_WEBHOOK_SECRET_MIN 24 /* bytes, as Standard Webhooks asks for */
#define CX_WEBHOOK_SECRET_MAX 64
#define CX_ALERT_COMMAND_SECONDS 60
/* Exit code of a command that does not take this message (EX_DATAERR of sysexits.h). */
#define CX_ALERT_COMMAND_REFUSES 65

typedef struct cx_alerting_options {
    uint32_t detect_every_ms;   /* 0 = the detectors do not run */
    const char *webhook;        /* URL; NULL = none */
    cx_bytes webhook_secret;    /* CX_WEBHOOK_SECRET_MIN to _MAX bytes */
    const char *alertmanager;   /* URL without /api/v2/alerts; NULL = none */
    const char *const *command; /* argv, ends with NULL; NULL = none */
} cx_alerting_options;

/* CX_E_USAGE: an address cannot be one.  CX_E_UNSUPPORTED: there is no libcurl. */
CX_RESULT cx_alerting_check(const cx_alerting_options *options, cx_err *err);

/* Reads the text of a secret, whsec_ and base64, as Standard Webhooks writes it.  CX_E_USAGE. */
CX_RESULT cx_webhook_secret_parse(cx_str text, cx_arena *arena, cx_bytes *out, cx_err *err);
/* The value of the header webhook-signature, with its NUL. */
#define CX_WEBHOOK_SIGNATURE_SIZE 64
void cx_webhook_sign(cx_bytes secret, cx_str id, cx_str timestamp, cx_str body,
                     char out[CX_WEBHOOK_SIGNATURE_SIZE]);

typedef struct cx_alerting cx_alerting;

/* Starts the threads; all texts outlive them.  The service and its recorder are open. */
CX_RESULT cx_alerting_open(cx_service *service, const cx_alerting_options *options,
                           cx_alerting **out, cx_err *err);
/* Ends them; a request under way is given up and sent again at the next start.  NULL is fine. */
void cx_alerting_close(cx_alerting *alerting);

#endif

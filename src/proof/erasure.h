/*
 * erasure.h - the receipt of an erasure: everything that it destroyed, one line each
 * (docs/formats/erasure.md §4).
 *
 * The receipt is text.  Its head is the payload of an entry erasure.receipt and commits to the list
 * by its SHA-256; head, list and signature lines together are a C2SP signed note.
 */
#ifndef CX_PROOF_ERASURE_H
#define CX_PROOF_ERASURE_H

#include "proof/export.h"

#define CX_ERASURE_MAGIC "cortex-erasure-1"

/* Texts are one line each, escaped for a terminal. */
typedef struct cx_erasure_head {
    cx_str home;                       /* 32 hex digits */
    uint64_t request;                  /* entry of the journal `erasures` */
    uint64_t from_commit, from_frames; /* of the log, where the erasure began */
    cx_str selected;                   /* what was asked for */
    cx_str by, reason;
    cx_str requested, completed; /* RFC 3339 */
    uint64_t entries, memories;  /* destroyed */
    uint64_t held;               /* not destroyed because of a legal hold */
    uint64_t left;               /* not destroyed because of the limit of one receipt */
    cx_digest list;              /* SHA-256 of the lines of the list */
} cx_erasure_head;

void cx_erasure_head_write(const cx_erasure_head *head, cx_buf *out);

/* A receipt in parts; all is borrowed from the file. */
typedef struct cx_erasure_receipt {
    cx_erasure_head head;
    cx_str list;       /* lines of what was destroyed */
    cx_bytes text;     /* head and list: what is signed */
    cx_str signatures; /* empty = none */
} cx_erasure_receipt;

/* Also that the list is the one that the head commits to.  CX_E_FORMAT "BadErasure",
 * "ListMismatch". */
CX_RESULT cx_erasure_read(cx_bytes file, cx_erasure_receipt *out, cx_err *err);
/* The head alone, as it is in the ledger. */
CX_RESULT cx_erasure_head_read(cx_str text, cx_erasure_head *out, cx_str *out_rest, cx_err *err);

#endif

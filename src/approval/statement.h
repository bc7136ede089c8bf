/*
 * statement.h - files as an in-toto Statement v1 in a DSSE envelope: who signs says `predicate` of
 * the bytes with those names and digests.  Provenance of a build is such a predicate.
 *
 *   T1  A file is what its subject says when the statement has exactly one subject of its name, and
 *       that has its SHA-256.  A right digest under another name does not count: it would pass one
 *       version off as another.
 *   T2  The payload that is written is in the form of RFC 8785.  In a check others need not be: the
 *       signature is over the received bytes.
 */
#ifndef CX_APPROVAL_STATEMENT_H
#define CX_APPROVAL_STATEMENT_H

#include "approval/attest.h"

#define CX_APPROVAL_SUBJECTS_MAX 4096
#define CX_APPROVAL_NAME_MAX 255 /* bytes of a subject's name */

typedef struct cx_approval_subject {
    cx_str name; /* of the file, without folders; UTF-8 */
    cx_digest sha256;
} cx_approval_subject;

/*
 * Appends the bytes that are signed; subjects in their order.  CX_E_USAGE: no subject or too many,
 * two of one name, a name that is no text, a type that is no URI, a predicate that is no object.
 */
CX_RESULT cx_approval_statement_write(const cx_approval_subject *subjects, size_t count,
                                      cx_str predicate_type, const cx_json *predicate,
                                      cx_arena *arena, cx_buf *out, cx_err *err);

/*
 * Checks an envelope's bytes against files: the verdict of cx_run_attest_check, with the reasons
 * "statement_invalid" (no statement about files), "predicate_type" (not `predicate_type`; empty:
 * any), "subject_missing" and "subject_differs" (T1; `where` is the file's name).
 */
CX_RESULT cx_approval_statement_check(cx_str envelope, const cx_approval_subject *files,
                                      size_t count, cx_str predicate_type, const cx_pubkey *keys,
                                      size_t key_count, cx_arena *arena, cx_run_attest_verdict *out,
                                      cx_err *err);

#endif

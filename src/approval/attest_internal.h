/*
 * attest_internal.h - the parts of a check that statements about runs and about files share.
 */
#ifndef CX_APPROVAL_ATTEST_INTERNAL_H
#define CX_APPROVAL_ATTEST_INTERNAL_H

#include "approval/attest.h"

CX_RESULT cx_run_attest_set_verdict(cx_run_attest_verdict *out, const char *reason, cx_arena *arena,
                                    cx_str message, cx_err *err);
/* Reads the envelope, and what is known of each signature; sets a verdict when it is none
 * (*out_read is false then), or when no signature is of one of the keys. */
CX_RESULT cx_run_attest_open(cx_str text, const cx_pubkey *keys, size_t key_count, cx_arena *arena,
                             cx_run_dsse *out_envelope, bool *out_read, cx_run_attest_verdict *out,
                             cx_err *err);
/* Reads the payload; sets a verdict when its type or form is wrong.  `canonical`: it must be in the
 * form of RFC 8785. */
CX_RESULT cx_run_attest_read_payload(const cx_run_dsse *envelope, bool canonical, cx_arena *arena,
                                     cx_json *out_statement, cx_run_attest_verdict *out,
                                     cx_err *err);

#endif

/*
 * scope_call.h - a request whose body has a scope: reading and verifying it.  Shared by the files
 * of /api/v1/scopes.
 */
#ifndef CX_SERVER_SCOPE_CALL_H
#define CX_SERVER_SCOPE_CALL_H

#include "memory/api.h"
#include "recorder/api.h"
#include "server/route.h"

typedef struct cx_scope_call {
    cx_call *call;
    cx_json body;
    cx_bytes bytes; /* of the scope */
    cx_scope scope;
    cx_trust trust;
    int64_t now_ns;
    cx_scope_use granted;
    cx_finding finding;
} cx_scope_call;

/* The body and its member `scope`: the bytes as base64, or the id of a scope that was sent to this
 * server; *out_read false: the call was answered. */
CX_RESULT cx_scope_call_read(cx_scope_call *s, bool *out_read, cx_err *err);
/* Whether it counts, in `finding`; with `presented` also whether the token is its grantee's. */
CX_RESULT cx_scope_call_verify(cx_scope_call *s, bool presented, cx_err *err);
/* CX_E_DENIED with the finding when it does not. */
CX_RESULT cx_scope_call_require(cx_scope_call *s, cx_err *err);
/* base64 text in the arena, as the member `name`. */
CX_RESULT cx_scope_call_put_base64(cx_call *call, cx_json_list *list, const char *name,
                                   cx_bytes bytes, cx_err *err);
/* The member `name` as base64, in the arena; false: it is absent or no base64. */
CX_RESULT cx_scope_call_base64(cx_scope_call *s, const char *name, cx_bytes *out, bool *out_read,
                               cx_err *err);

#endif

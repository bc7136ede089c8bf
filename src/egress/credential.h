/*
 * credential.h - the user's store of credentials that the proxy adds to requests by name
 * (docs/formats/egress.md §8).
 *
 *   C1  The store says to which hosts a credential may go; policies only say which names are used.
 *   C2  A value comes from the store itself or from a command of the user's; it is kept in memory
 *       only.
 */
#ifndef CX_EGRESS_CREDENTIAL_H
#define CX_EGRESS_CREDENTIAL_H

#include "egress/host.h"
#include "json/api.h"

#define CX_EGRESS_STORE_BYTES_MAX ((size_t)1 << 20)
#define CX_EGRESS_CREDENTIALS_MAX 64
#define CX_EGRESS_VALUE_MAX 8192

typedef struct cx_egress_credential {
    cx_str name;
    cx_str header, value;
    cx_egress_host host; /* with a port, 443 when the store names none */
} cx_egress_credential;

typedef struct cx_egress_credentials {
    const cx_egress_credential *items; /* one a host */
    size_t count;
} cx_egress_credentials;

/*
 * The credentials of the store at `path` that `names` lists; commands of the store are run here,
 * each at most 10 s.  CX_E_NOT_FOUND: no store, or no such name; CX_E_DENIED: others than its owner
 * can read or change the store; CX_E_FORMAT.
 */
CX_RESULT cx_egress_credentials_load(const char *path, const cx_str *names, size_t name_count,
                                     cx_arena *arena, cx_egress_credentials *out, cx_err *err);
/* The credential for http://HOST (port 80), NULL = none. */
const cx_egress_credential *cx_egress_credentials_for(const cx_egress_credentials *all,
                                                      const cx_egress_host *host);

#endif

/*
 * pg_library.c - libpq, found at run time.
 *
 * It stays loaded until the program ends: what it pulls in (TLS) registers handlers that must not
 * disappear under the program's feet.
 */
#ifdef CX_WITH_PG

#include "db/pg_library.h"

#include "os/api.h"

cx_status cx_pg_library_load(cx_pg_library *out, cx_err *err)
{
    cx_library *library;
    cx_pg_library found;
    if (cx_failed(cx_library_load("libpq.so.5", &library, NULL)))
        return cx_fail(err, CX_E_UNSUPPORTED, "PostgreSQL needs its client library: %s",
                       cx_library_advice("install the package libpq5"));
#define FIND(name) CX_TRY(cx_library_symbol(library, #name, &found.name, err));
    CX_PG_FUNCTIONS(FIND)
#undef FIND
    *out = found;
    return CX_SUCCESS;
}

#endif

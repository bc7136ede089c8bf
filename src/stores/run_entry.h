/*
 * run_entry.h - what entries about one run share.  Private to this module.
 */
#ifndef CX_STORES_RUN_ENTRY_H
#define CX_STORES_RUN_ENTRY_H

#include "base/api.h"
#include "json/api.h"
#include "ledger/api.h"

/* The subject of entries of a type about a run; `sha256` NULL = not about bytes of it. */
cx_id cx_run_entry_subject(const char *type, cx_str run_id, const cx_digest *sha256);
/* A member with a hash, in hex. */
void cx_run_entry_put_digest(cx_json_list *object, const char *name, const cx_digest *digest);

#endif

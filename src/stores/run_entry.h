/*
 * run_entry.h - what entries about one run share.  Private to this module.
 */
#ifndef CX_STORES_RUN_ENTRY_H
#define CX_STORES_RUN_ENTRY_H

#include "base/api.h"
#include "json/api.h"
#include "ledger/api.h"

/* A member with a hash, in hex. */
void cx_run_entry_put_digest(cx_json_list *object, const char *name, const cx_digest *digest);

#endif

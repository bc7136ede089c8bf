/*
 * erasure - destroys what a request or a rule of retention selects, and accounts for it in one
 * receipt.
 *
 * Knows the ledger and memories.  Of traces it knows their level only, from the names of records.
 */
#ifndef CX_ERASURE_API_H
#define CX_ERASURE_API_H

#include "erasure/erasure.h"

#endif

/*
 * pages - sparse Merkle trees in tables: one row a key, one row a page of up to 64 rows.
 *
 * Knows keys, values and hashes, and nothing of the ledger that they belong to.
 */
#ifndef CX_PAGES_API_H
#define CX_PAGES_API_H

#include "pages/pages.h"

#endif

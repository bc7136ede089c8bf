/*
 * embedder.h - the test embedder (ledger.md §10.1): vectors from hashes, the same everywhere.  The
 * vectors carry no meaning; they exist so that embeddings can be tested and replayed.
 */
#ifndef CX_MEMORY_EMBEDDER_H
#define CX_MEMORY_EMBEDDER_H

#include "base/api.h"

#define CX_EMBEDDER_MODEL_SIZE 18
#define CX_EMBEDDER_BY "embedder" /* created_by of its entries */

/* "hash-stub@" and 8 hex digits that name dimension and salt; not terminated. */
void cx_embedder_model(size_t dim, cx_str salt, char out[CX_EMBEDDER_MODEL_SIZE]);
/* Of length 1; `text` is a memory's full form. */
void cx_embedder_vector(cx_str text, cx_str salt, float *out, size_t dim);

#endif

/*
 * schema - JSON Schema (drafts 7 and 2020-12) and the regular expressions that it needs.
 *
 * Knows nothing of contracts or traces: it is given a schema and a value.
 */
#ifndef CX_SCHEMA_API_H
#define CX_SCHEMA_API_H

#include "schema/schema.h"

#endif

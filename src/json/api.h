/*
 * json - strict JSON that preserves signed bytes: parsing, values, canonical forms, pointers.
 *
 * Knows nothing of schemas or of what documents mean.
 */
#ifndef CX_JSON_API_H
#define CX_JSON_API_H

#include "json/decimal.h"
#include "json/json.h"
#include "json/number.h"
#include "json/put.h"
#include "json/recode.h"
#include "json/span.h"

#endif

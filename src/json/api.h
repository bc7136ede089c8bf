/*
 * json - strict JSON that keeps what was signed: parsing, values, canonical forms, pointers.
 *
 * Knows nothing of schemas and of what documents mean.
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

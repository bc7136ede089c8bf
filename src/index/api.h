/*
 * index - the searchable index of traces in SQL: rows, questions, alerts.
 *
 * Derived from the ledger; everything in it can be made again.
 */
#ifndef CX_INDEX_API_H
#define CX_INDEX_API_H

#include "index/index.h"
#include "index/record.h"

#endif

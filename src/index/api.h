/*
 * index - the searchable index of traces in SQL: rows, queries, alerts.
 */
#ifndef CX_INDEX_API_H
#define CX_INDEX_API_H

#include "index/index.h"
#include "index/record.h"

#endif

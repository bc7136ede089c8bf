/*
 * index - the searchable index in SQL: traces, alerts, and what the steps of all histories say.
 */
#ifndef CX_INDEX_API_H
#define CX_INDEX_API_H

#include "index/index.h"
#include "index/record.h"
#include "index/steps.h"

#endif

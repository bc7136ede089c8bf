/*
 * analysis - statistics over an agent's traces: audit chains, detectors, capacity, independence of
 * sources.
 *
 * Pure functions over rows in memory, which the caller reads from the index or from files.  Knows
 * no database and no ledger.
 *
 * Adding a detector: its row in CX_DETECTORS (detect.h), its function in detect.c with a test, its
 * row in docs/formats/trace.md §12, which tools/check_docs.py compares with the table.
 */
#ifndef CX_ANALYSIS_API_H
#define CX_ANALYSIS_API_H

#include "analysis/detect.h"
#include "analysis/idma.h"

#endif

/*
 * trace - signed decisions of agents: canonical bytes, signatures, forms, levels.
 *
 * Needs no database and no data directory.
 */
#ifndef CX_TRACE_API_H
#define CX_TRACE_API_H

#include "trace/trace.h"

#endif

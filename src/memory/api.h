/*
 * memory - typed memories and edges, and the calls over them.
 *
 * Knows the ledger, and nothing of traces or runs.
 */
#ifndef CX_MEMORY_API_H
#define CX_MEMORY_API_H

#include "memory/apply.h"
#include "memory/forms.h"
#include "memory/memory.h"
#include "memory/sent.h"
#include "memory/uri.h"
#include "memory/view.h"

#endif

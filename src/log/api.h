/*
 * log - the append-only log: group commit, recovery, erasure in place, backup.
 *
 * Knows frames and bytes, and nothing of what they record.
 */
#ifndef CX_LOG_API_H
#define CX_LOG_API_H

#include "log/log.h"

#endif

/*
 * recorder - records in, exactly once; the feed into the index; answers; traces as lattices.
 *
 * Knows the ledger and the index, and nothing of HTTP.
 */
#ifndef CX_RECORDER_API_H
#define CX_RECORDER_API_H

#include "recorder/deliveries.h"
#include "recorder/snapshot_marks.h"
#include "recorder/links.h"
#include "recorder/node.h"
#include "recorder/otlp_index.h"
#include "recorder/recorder.h"
#include "recorder/rows/run_rows.h"
#include "recorder/answer/reply.h"
#include "recorder/sensitive_mark.h"
#include "recorder/session_path.h"
#include "recorder/step.h"

#endif

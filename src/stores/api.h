/*
 * stores - what the recorder keeps beside traces: OpenTelemetry data, sessions, runs, the inbox.
 */
#ifndef CX_STORES_API_H
#define CX_STORES_API_H

#include "stores/inbox.h"
#include "stores/run_index.h"
#include "stores/session_index.h"

#endif

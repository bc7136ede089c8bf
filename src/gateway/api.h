/*
 * gateway - between an agent and an MCP server: what passes, what is decided, what is recorded
 * (docs/formats/gateway.md).
 *
 * Knows messages of MCP, the policy of live sessions and the ledger; knows nothing of processes,
 * terminals and configurations of agents.
 */
#ifndef CX_GATEWAY_API_H
#define CX_GATEWAY_API_H

#include "gateway/frame.h"
#include "gateway/gate.h"
#include "gateway/message.h"
#include "gateway/pins.h"
#include "gateway/span.h"
#include "gateway/sse.h"
#include "gateway/tools.h"

#endif

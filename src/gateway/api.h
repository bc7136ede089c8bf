/*
 * gateway - between an agent and an MCP server: what passes, what is decided, what is recorded
 * (docs/formats/gateway.md).
 *
 * Knows messages of MCP, the policy of live sessions, the ledger, and how agents' configurations
 * name servers; knows nothing of processes, terminals, and where those files are.
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
#include "gateway/wrap.h"

#endif

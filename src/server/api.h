/*
 * server - HTTP: routes, tokens, the page, OTLP, MCP.
 *
 * Formats requests and answers; what they mean is decided below.
 */
#ifndef CX_SERVER_API_H
#define CX_SERVER_API_H

#include "server/feed/external.h"
#include "server/feed/part_watch.h"
#include "server/feed/runs.h"
#include "server/mcp/mcpd.h"
#include "server/page/page.h"
#include "server/server.h"
#include "server/token.h"

#endif

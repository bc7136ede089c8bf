/*
 * agent - how agents are started and spoken with: programs, MCP, scripts, prompts.
 *
 * An agent is trusted with nothing; what it answers is data.
 */
#ifndef CX_AGENT_API_H
#define CX_AGENT_API_H

#include "agent/agent_ops.h"
#include "agent/codex_home.h"
#include "agent/prompt.h"
#include "agent/runner.h"
#include "agent/script.h"

#endif

/*
 * agent - starts agents and communicates with them: programs, MCP, replay scripts, prompts.
 *
 * An agent is trusted with nothing; its answers are data.  Numbered invariants: mcp.h, runner.h,
 * session.h, codex_home.h.
 */
#ifndef CX_AGENT_API_H
#define CX_AGENT_API_H

#include "agent/agent_ops.h"
#include "agent/codex_home.h"
#include "agent/prompt.h"
#include "agent/runner.h"
#include "agent/script.h"
#include "agent/session.h"

#endif

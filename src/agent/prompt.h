/*
 * prompt.h - the prompt of an agent: a fixed instruction, the contract as data, the schema of its
 * reply (run.md §6).  Contract text never becomes part of the instruction.
 */
#ifndef CX_AGENT_PROMPT_H
#define CX_AGENT_PROMPT_H

#include "rules/api.h"

/* The instruction for roles that work, and for a reviewer; static text. */
cx_str cx_run_prompt_instruction(bool reviewer);
/* The instruction for the planner, which turns a request into a contract (S0). */
cx_str cx_run_prompt_planner(void);

/* The instruction for a tech lead, which splits a contract; static text. */
cx_str cx_run_prompt_split(void);

/* Instruction, contract and schema, each under its heading, in the arena and terminated. */
/* The same with another heading than CONTRACT: "REQUEST". */
CX_RESULT cx_run_prompt_of(const char *heading, cx_str instruction, cx_str data, cx_str schema,
                           cx_arena *arena, cx_str *out, cx_err *err);
CX_RESULT cx_run_prompt(cx_str instruction, cx_str contract, cx_str schema, cx_arena *arena,
                        cx_str *out, cx_err *err);

#endif

/*
 * codex_home.h - the settings folder of an agent: a private copy of the base home without MCP
 * servers, one for each agent, deleted after the run.
 *
 * CORTEXPILOT_CODEX_BASE_HOME (the seed's name, kept as a drop-in) is the folder in which the user
 * who starts runs has Codex's configuration and login.  An agent never sees that folder.  It gets a
 * copy, as CODEX_HOME, in which config.toml has no `mcp_servers`: the contract and the gates
 * (run.md §13) decide which tools an agent has, not a user's settings.
 *
 * Copied: regular files and folders.  Left out: links, sockets and other special files, and the
 * data of earlier sessions (sessions, archived_sessions, log, history.jsonl).
 *
 *   I1  The copy is complete or the agent does not start (R1): a file that cannot be read in full,
 *       or exceeds a limit, is an error.
 *   I2  The copy of config.toml names no MCP server; everything else in it is byte for byte the
 *       same.
 */
#ifndef CX_AGENT_CODEX_HOME_H
#define CX_AGENT_CODEX_HOME_H

#include "base/api.h"
#include "bundle/api.h"
#include "rules/api.h"

#define CX_CODEX_BASE_HOME_ENV "CORTEXPILOT_CODEX_BASE_HOME"

enum {
    CX_CODEX_CONFIG_BYTES_MAX = 1 << 20, /* of config.toml */
    CX_CODEX_FILES_MAX = 1024,
    CX_CODEX_DEPTH_MAX = 16,
    CX_CODEX_TOML_DEPTH_MAX = 64 /* of values in values */
};
#define CX_CODEX_HOME_BYTES_MAX (UINT64_C(64) << 20)

/* Called for each text under a key that names a secret (mask.h), as written. */
typedef cx_status cx_codex_secret(void *arg, cx_str value, cx_err *err);

/*
 * Appends `config`, a config.toml, without the tables [mcp_servers] and [mcp_servers.*], arrays of
 * them, and keys mcp_servers and mcp_servers.x at top level, however they are quoted; the rest byte
 * for byte.  CX_E_FORMAT, with the line, for text that is not TOML 1.0: keys, headers, strings and
 * brackets are parsed; numbers and dates are only recognised.
 *
 * The name of each removed server is added to `removed`, an open JSON array, once and in order;
 * `secret` may be NULL.
 */
CX_RESULT cx_codex_config_filter(cx_str config, cx_codex_secret *secret, void *arg, cx_arena *arena,
                                 cx_json_list *removed, cx_buf *out, cx_err *err);

/*
 * Copies `base` (absolute) to the new folder `to`.  Tokens of auth.json and secrets of config.toml
 * are added to `mask`.  *out is the evidence, without contents and without absolute paths:
 * {files[], left_out[], mcp_servers_removed[], listing_sha256}, the last over "<sha256>  <path>\n"
 * of each file of the copy, in the order of paths.
 */
CX_RESULT cx_codex_home_make(const char *base, const char *to, cx_run_mask *mask, cx_arena *arena,
                             cx_json *out, cx_err *err);

#endif

/*
 * route.h - the table of endpoints, from which matching, parameter checks, authorisation, counters
 * and the OpenAPI document are derived.
 *
 * Some paths have a second name: /api/v1/covenant is /api/v1/accord too (CIRIS agents use both),
 * /api/v1/objects is /api/v1/things (its name in version 0.1), and routes with `has_short_path` are
 * served without v1.
 */
#ifndef CX_SERVER_ROUTE_H
#define CX_SERVER_ROUTE_H

#include "proof/api.h"
#include "server/service.h"

extern const cx_route cx_routes[];
extern const size_t cx_route_count;

/* Place in the table; cx_route_count for NULL: no route. */
size_t cx_route_index(const cx_route *route);

typedef enum cx_route_found {
    CX_ROUTE_FOUND,
    CX_ROUTE_NO_PATH,
    CX_ROUTE_NO_METHOD /* the path is known: `allow` names its methods */
} cx_route_found;
/* Sets call->route and captures.  `allow` gets at most `allow_size` bytes, terminated. */
cx_route_found cx_route_find(cx_call *call, char *allow, size_t allow_size);

/* The OpenAPI 3.1 document. */
CX_RESULT cx_route_openapi(cx_buf *out, cx_err *err);

/* --- handlers --------------------------------------------------------------------------------- */

cx_handler cx_api_events, cx_api_traces, cx_api_trace, cx_api_chain, cx_api_wakeup, cx_api_capacity;
cx_handler cx_api_keys, cx_api_key_add, cx_api_key_revoke;
cx_handler cx_api_alerts, cx_api_alert_acknowledge, cx_api_alert_resolve;
cx_handler cx_api_lattice_state, cx_api_lattice_why, cx_api_lattice_heatmap, cx_api_lattice_compare,
    cx_api_lattice_heads, cx_api_lattice_show, cx_api_lattice_bisect, cx_api_lattice_render,
    cx_api_lattice_verify;
cx_handler cx_api_proof_entry, cx_api_proof_consistency, cx_api_proof_memory, cx_api_roots;
cx_handler cx_api_snapshots, cx_api_checkpoints, cx_api_seed;
cx_handler cx_api_runs, cx_api_run_start, cx_api_run, cx_api_run_events, cx_api_run_stream,
    cx_api_run_reports, cx_api_run_report, cx_api_run_diff, cx_api_run_diff_names,
    cx_api_run_artifacts, cx_api_run_artifact, cx_api_run_gates, cx_api_run_timeline,
    cx_api_run_verify, cx_api_run_bundle, cx_api_run_replay, cx_api_run_contracts,
    cx_api_run_contract, cx_api_run_locks, cx_api_run_worktrees, cx_api_run_policies,
    cx_api_run_agents, cx_api_run_approvals, cx_api_run_approve, cx_api_intents, cx_api_intent_add,
    cx_api_cases, cx_api_case, cx_api_case_start, cx_api_case_cancel, cx_api_contract_preview;
cx_handler cx_api_page, cx_api_page_file, cx_api_session_begin, cx_api_session, cx_api_session_end;
cx_handler cx_api_memory_list, cx_api_memory_show;
cx_handler cx_api_memory_write, cx_api_memory_update, cx_api_memory_labels, cx_api_memory_tombstone,
    cx_api_edge_add, cx_api_edge_remove, cx_api_memory_attest;
cx_handler cx_api_scope_check, cx_api_scope_read, cx_api_scope_find, cx_api_scope_write,
    cx_api_scope_update, cx_api_scope_labels;
cx_handler cx_api_scope_make, cx_api_scope_send, cx_api_scopes, cx_api_scope;
/* Writes as the grantee of a scope: `op` is a step of memory/apply.h, `grant` the hash of the
 * scope's bytes. */
CX_RESULT cx_api_write_under(cx_call *call, const char *op, const cx_json *body,
                             const cx_scope_use *scope, const cx_digest *grant, cx_err *err);
cx_handler cx_api_mcp;
cx_handler cx_api_search, cx_api_histories;
cx_handler cx_api_object, cx_api_why, cx_api_evidence;
cx_handler cx_api_view_list, cx_api_view_extent, cx_api_view_summary, cx_api_view_overview,
    cx_api_view_window, cx_api_view_node, cx_api_view_image, cx_api_view_steps, cx_api_view_values,
    cx_api_view_writes, cx_api_view_said, cx_api_view_reach, cx_api_view_grep, cx_api_lattice_reach,

    cx_api_view_compare, cx_api_view_heat, cx_api_around, cx_api_check, cx_api_fleet;
cx_handler cx_api_steps;
cx_handler cx_api_hook, cx_api_sessions, cx_api_live_session, cx_api_session_approve,
    cx_api_session_deny, cx_api_session_limit;
/* "No" in the agent's own form: no agent takes a problem for one. */
bool cx_api_hook_problem(cx_call *call, const cx_problem *problem);
cx_handler cx_api_otlp_traces, cx_api_otlp_logs, cx_api_otel_traces, cx_api_archived;
cx_handler cx_api_inbox, cx_api_inbox_facets;
cx_handler cx_api_writer;
cx_handler cx_api_nodes;
cx_handler cx_api_feed, cx_api_healthz, cx_api_readyz, cx_api_metrics, cx_api_openapi;

#endif

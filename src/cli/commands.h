/*
 * commands.h - the list of all commands: the one place that names a new one.
 *
 * X(NAME) stands for `const cx_cli_command cx_cli_NAME`, defined in its cmd_*.c.  cli.h declares
 * each, main.c makes the table of them.  The order is the order of help; commands of one group
 * stand together, and the first name that fits a command line is used.  So `run` and `config`,
 * which are commands and also begin names of others, come after those.
 */
#ifndef CX_CLI_COMMANDS_H
#define CX_CLI_COMMANDS_H

#define CX_CLI_COMMANDS(X) \
    X(demo)                \
    X(init)                \
    X(show)                \
    X(why)                 \
    X(evidence)            \
    X(memory_write)        \
    X(memory_update)       \
    X(memory_tombstone)    \
    X(memory_link)         \
    X(memory_unlink)       \
    X(memory_get)          \
    X(memory_list)         \
    X(memory_find)         \
    X(memory_near)         \
    X(memory_walk)         \
    X(memory_context)      \
    X(memory_attest)       \
    X(memory_compact)      \
    X(memory_embed)        \
    X(append)              \
    X(apply)               \
    X(log)                 \
    X(roots)               \
    X(snapshot_make)       \
    X(snapshot_list)       \
    X(snapshot_show)       \
    X(snapshot_seal)       \
    X(snapshot_drop)       \
    X(prove)               \
    X(verify)              \
    X(checkpoint)          \
    X(key_new)             \
    X(key_show)            \
    X(key_add)             \
    X(key_list)            \
    X(key_revoke)          \
    X(export_entry)        \
    X(export_receipt)      \
    X(export_tlog_proof)   \
    X(export_tiles)        \
    X(scope_make)          \
    X(scope_check)         \
    X(erase)               \
    X(tables_status)       \
    X(tables_rebuild)      \
    X(backup)              \
    X(record)              \
    X(trace_verify)        \
    X(trace_query)         \
    X(trace_show)          \
    X(trace_chain)         \
    X(trace_idma)          \
    X(trace_wakeup)        \
    X(trace_canon)         \
    X(trace_redact)        \
    X(detect)              \
    X(capacity)            \
    X(alert_list)          \
    X(alert_ack)           \
    X(alert_resolve)       \
    X(import)              \
    X(lattice_append)      \
    X(lattice_import)      \
    X(lattice_verify)      \
    X(lattice_state)       \
    X(lattice_why)         \
    X(lattice_bisect)      \
    X(lattice_compare)     \
    X(lattice_heatmap)     \
    X(lattice_heads)       \
    X(lattice_show)        \
    X(lattice_render)      \
    X(lattice_view)        \
    X(lattice_anchor)      \
    X(lattice_selftest)    \
    X(runner_add)          \
    X(runner_list)         \
    X(contract_new)        \
    X(contract_lint)       \
    X(contract_explain)    \
    X(contract_resolve)    \
    X(contract_hash)       \
    X(gate_policy)         \
    X(gate_schema)         \
    X(gate_command)        \
    X(gate_diff)           \
    X(hooks_install)       \
    X(hooks_remove)        \
    X(hooks_status)        \
    X(hook_pre_commit)     \
    X(hook_pre_push)       \
    X(worktrees_list)      \
    X(locks_list)          \
    X(locks_release)       \
    X(approve)             \
    X(approvals_list)      \
    X(run_list)            \
    X(run_show)            \
    X(run_events)          \
    X(run_diff)            \
    X(run_reports)         \
    X(run_verify)          \
    X(run_export)          \
    X(run_cleanup)         \
    X(run_attest)          \
    X(run_replay)          \
    X(run_chain)           \
    X(run)                 \
    X(serve)               \
    X(watch)               \
    X(otel_traces)         \
    X(mcp)                 \
    X(token_add)           \
    X(token_list)          \
    X(token_revoke)        \
    X(status)              \
    X(config_check)        \
    X(config_default)      \
    X(config)              \
    X(doctor)              \
    X(completion)          \
    X(version_command)     \
    X(help)

#endif

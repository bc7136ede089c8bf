/*
 * kinds.h - the dotted entry kinds of this program: which module writes each, and which read it;
 * and the journals that it writes itself.
 * The kinds of ledger.md itself are cx_entry_kind (proof/entry.h).
 *
 *   K1  A name occurs once in CX_KINDS, and the code refers to it by its constant only: a
 *       misspelled kind does not compile.
 *   K2  Every name is a valid dotted kind (cx_entry_kind_ok) and no kind of ledger.md.
 *
 * A new kind is one row here and its description in docs/formats/, which tools/check_docs.py
 * compares.
 */
#ifndef CX_LEDGER_KINDS_H
#define CX_LEDGER_KINDS_H

#include "base/api.h"
#include "proof/api.h"

/* X(constant, name, writer, readers) */
#define CX_KINDS(X)                                                                                \
    X(CX_KIND_TRACE_RECEIVED, "trace.received", "recorder/intake", "index, recorder, provenance")  \
    X(CX_KIND_TRACE_CONFLICT, "trace.conflict", "recorder/intake", "recorder/feed")                \
    X(CX_KIND_TRACE_BATCH, "trace.batch", "recorder/intake", "recorder/feed, recorder/links")      \
    X(CX_KIND_TRACE_KEY, "trace.key", "recorder", "recorder/feed")                                 \
    X(CX_KIND_TRACE_KEY_REJECTED, "trace.key_rejected", "recorder/open", "cli")                    \
    X(CX_KIND_TRACE_CONNECTIVITY, "trace.connectivity", "recorder/intake", "cli")                  \
    X(CX_KIND_TRACE_ALERT, "trace.alert", "recorder/alerts", "recorder/feed, server/feed")         \
    X(CX_KIND_TRACE_ALERT_ACK, "trace.alert_ack", "recorder/alerts", "recorder/feed, server/feed") \
    X(CX_KIND_LATTICE_NODE, "lattice.node", "recorder/step", "recorder, server/feed")              \
    X(CX_KIND_RUN_EVENT, "run.event", "bundle/events", "stores, evidence, provenance")             \
    X(CX_KIND_RUN_SEAL, "run.seal", "bundle/seal", "stores, evidence, provenance")                 \
    X(CX_KIND_RUN_LEASE, "run.lease", "cli/run", "cli/run")                                        \
    X(CX_KIND_RUN_BUNDLE, "run.bundle", "cli/run", "stores, cli/run, server")                      \
    X(CX_KIND_RUN_BUNDLE_OBJECT, "run.bundle_object", "cli/run", "stores, cli/run, server")        \
    X(CX_KIND_RUN_END, "run.end", "cli/run", "stores, cli/run, server")                            \
    X(CX_KIND_RUN_BUNDLE_PART, "run.bundle_part", "cli/run", "stores")                             \
    X(CX_KIND_SESSION_CLAUDE_CODE, "session.claude_code", "stores", "stores")                      \
    X(CX_KIND_SESSION_CODEX, "session.codex", "stores", "stores")                                  \
    X(CX_KIND_SESSION_UNREAD, "session.unread", "stores", "stores")                                \
    X(CX_KIND_SESSION_GEMINI_CLI, "session.gemini_cli", "stores", "stores, recorder/feed")         \
    X(CX_KIND_SESSION_QWEN_CODE, "session.qwen_code", "stores", "stores, recorder/feed")           \
    X(CX_KIND_SESSION_CURSOR, "session.cursor", "stores", "stores, recorder/feed")                 \
    X(CX_KIND_SESSION_COPILOT_CLI, "session.copilot_cli", "stores", "stores, recorder/feed")       \
    X(CX_KIND_SESSION_OPENCODE, "session.opencode", "stores", "stores, recorder/feed")             \
    X(CX_KIND_SESSION_CLINE, "session.cline", "stores", "stores, recorder/feed")                   \
    X(CX_KIND_SESSION_DROID, "session.droid", "stores", "stores, recorder/feed")                   \
    X(CX_KIND_SESSION_AIDER, "session.aider", "stores", "stores, recorder/feed")                   \
    X(CX_KIND_SESSION_OPENHANDS, "session.openhands", "stores", "stores, recorder/feed")           \
    X(CX_KIND_ACTION_LIST, "action.list", "stores/actions", "stores")                              \
    X(CX_KIND_ACTION_SET, "action.set", "stores/actions", "stores")                                \
    X(CX_KIND_HOME_ROOT, "home.root", "ledger/home_root", "ledger, evidence")                      \
    X(CX_KIND_MEMORY_REQUEST, "memory.request", "memory/request", "memory")                        \
    X(CX_KIND_SCOPE_SENT, "scope.sent", "memory/sent", "memory, server, cli")                      \
    X(CX_KIND_TRACE_CONSENT, "trace.consent", "recorder/consent", "recorder/intake")               \
    X(CX_KIND_HOLD_ADD, "hold.add", "ledger/holds", "ledger, cli")                                 \
    X(CX_KIND_HOLD_RELEASE, "hold.release", "ledger/holds", "ledger, cli")                         \
    X(CX_KIND_LIVE_START, "live.start", "live", "live, server, cli")                               \
    X(CX_KIND_LIVE_DECISION, "live.decision", "live", "live, server, cli")                         \
    X(CX_KIND_LIVE_RESULT, "live.result", "live", "live, server, cli")                             \
    X(CX_KIND_LIVE_EVENT, "live.event", "live", "live, server, cli")                               \
    X(CX_KIND_LIVE_LIMIT, "live.limit", "live", "live, server, cli")                               \
    X(CX_KIND_LIVE_APPROVAL, "live.approval", "live", "live, server, cli")                         \
    X(CX_KIND_LIVE_END, "live.end", "live", "live, server, cli")                                   \
    X(CX_KIND_EXEC_START, "exec.start", "cli/exec", "cli, server")                                 \
    X(CX_KIND_EXEC_END, "exec.end", "cli/exec", "cli, server")                                     \
    X(CX_KIND_EGRESS_OPEN, "egress.open", "cli/exec", "cli, server")                               \
    X(CX_KIND_EGRESS_CONNECTION, "egress.connection", "cli/exec", "cli, server")                   \
    X(CX_KIND_GATEWAY_TOOLS, "gateway.tools", "gateway", "gateway, cli")                           \
    X(CX_KIND_GATEWAY_PIN, "gateway.pin", "gateway", "gateway, cli")                               \
    X(CX_KIND_GATEWAY_PROBLEM, "gateway.problem", "gateway", "cli")                                \
    X(CX_KIND_ERASURE_REQUEST, "erasure.request", "erasure", "erasure")                            \
    X(CX_KIND_ERASURE_RECEIPT, "erasure.receipt", "erasure", "erasure, cli")                       \
    X(CX_KIND_FLEET_CHECKPOINT, "fleet.checkpoint", "cli/fleet", "cli/fleet")

typedef enum cx_dotted_kind {
#define CX_KIND_CONSTANT(id, name, writer, readers) id,
    CX_KINDS(CX_KIND_CONSTANT)
#undef CX_KIND_CONSTANT
        CX_KIND_COUNT /* also: a name that is not in the table */
} cx_dotted_kind;

cx_str cx_kinds_name(cx_dotted_kind kind);
cx_dotted_kind cx_kinds_of(cx_str name);
/* Whether an entry's kind is this one. */
bool cx_kinds_is(cx_str name, cx_dotted_kind kind);

/* The subject of entries of a type about a run; `sha256` NULL = not about bytes of it. */
cx_id cx_run_entry_subject(const char *type, cx_str run_id, const cx_digest *sha256);

/* Whether this program itself writes the journal of that name: trust, batches, alerts, otel,
 * sessions, holds, erasures, consents, and names that begin with run:, session:, exec:, gateway:,
 * key:, home: or fleet:. An agent, a sender of steps or traces and a grantee of a scope never write
 * there. */
bool cx_kinds_journal_is_own(cx_str actor);

#endif

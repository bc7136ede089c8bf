/*
 * openapi_types.c - the table of types of request and response bodies.
 *
 * Tests check answers of a running server against these types, and a member that is missing here
 * fails them; tools/api_types.py generates web/src/base/api-types.ts from them.
 */
#include "server/openapi_type.h"

#define NODE_MEMBERS                                                                     \
    "agent: string, col: integer, id: string, lane: integer, n: integer, seq: integer, " \
    "t: number|null"
#define CASE_MEMBERS                                                                      \
    "case_id: string, contract_sha256: string|null, created_at: string, intent: string, " \
    "intent_cut: boolean, note: string|null, plan_run_id: string|null, "                  \
    "requested_by: string|null, run_id: string|null, state: CaseState, updated_at: string"
#define FILE_MEMBERS \
    "media_type: string, name: string, path: string, sha256: string, size_bytes: integer"

/* clang-format off */
const cx_api_type cx_api_types[] = {
    /* --- problems and sessions --------------------------------------------------------------- */

    {"Problem", "{type: string, title: string, status: integer, detail: string, "
                "instance?: string, errors?: ProblemError[], max_bytes?: integer}"},
    {"ProblemError", "{parameter?: string, pointer?: string, reason: string}"},
    {"Health", "{status: string}"},
    {"Ready", "{index: string, status: string}"},
    {"Session", "{file: string|null, fleet: boolean, folder: string|null, level: TraceLevel, name: string, "
                "otlp_url: string|null, repo: boolean, scopes: string[], token_file: string|null, "
                "traces: boolean, version: string}"},
    {"Empty", "{}"},

    /* --- sessions of coding agents ---------------------------------------------------------- */

#define LIVE_SESSION                                                                            \
    "actor: string, agent: string, asked: integer, calls: integer, contract: string|null, "      \
    "cwd: string, denied: integer, ended: boolean, latest: string, mode: LiveMode, "             \
    "policy_from: string, session: string, started: string, transcript: string|null, "           \
    "waiting: integer"
    {"LiveMode", "'observe'|'ask'|'enforce'"},
    {"LiveSession", "{" LIVE_SESSION "}"},
    {"LiveSessions", "{next_cursor: string|null, sessions: LiveSession[], total: integer}"},
    {"LiveSessionShown",
     "{entries: LiveEntry[], next: integer|null, policy: LivePolicy|null, session: LiveSession, "
     "waiting: LiveWaiting[]}"},
    {"LivePolicy",
     "{commit: string|null, contract: string|null, forbidden_actions: string[], from: string, "
     "hosts: string[], mode: LiveMode, network: string, root: string, tools_deny: string[], "
     "unlisted: 'ask'|'sandbox'|'deny', write: string[][]}"},
    {"LiveEntry",
     "{approved_by: string|null, erased: boolean, kind: string, payload: any, "
     "result: LiveResult|null, seq: integer, time: string}"},
    {"LiveResult", "{outcome: string, output_bytes: integer, output_sha256: string|null, "
                   "seq: integer, time: string}"},
    {"LiveWaiting",
     "{dangerous: boolean, effects: LiveEffect[], input: any, input_sha256: string, rule: string, "
     "seq: integer, text: string, time: string, tool: string, why: string}"},
    {"LiveEffect", "{kind: string, rule: string, text: string, verdict: string, why?: string}"},
    {"LiveAnswer", "{input_sha256: string, reason?: string, whole_session?: boolean}"},
    {"LiveAnswered", "{actor: string, allow: boolean, seq: integer, whole_session: boolean}"},
    {"LiveLimit",
     "{contract?: any, deny_unlisted?: boolean, forbidden_actions?: string[], mode?: LiveMode, "
     "network?: 'deny'|'on-request'|'allow', paths?: string[], tools_deny?: string[]}"},
    {"LiveLimited", "{actor: string, policy: LivePolicy|null, seq: integer}"},

    /* --- traces ------------------------------------------------------------------------------ */

    {"TraceLevel", "'generic'|'detailed'|'full_traces'"},
    {"CheckVerdict", "'holds'|'broken'|'indeterminate'"},
    {"Batch", "{events: any[], batch_timestamp?: string, consent_timestamp?: string, "
              "trace_level?: string, correlation_metadata?: any, *: any}"},
    {"BatchResult",
     "{accepted: integer, errors: string[], pending?: integer, received: integer, rejected: integer, "
     "rejected_traces: string[], results: EventResult[], status: 'ok'|'partial'|'rejected'}"},
    {"EventResult",
     "{content_sha256?: string, detail?: string, entry?: EntryRef, form?: string, index: integer, "
     "numbers?: string, path?: string, paths?: string[], reason?: string, "
     "status: 'stored'|'duplicate'|'conflict'|'unverified'|'rejected'|'pending', stripped?: string[], "
     "trace_id: string|null, warnings?: string[]}"},
    {"EntryRef", "{actor: string, seq: integer}"},
    {"Steps", "{steps: Step[], key?: string}"},
    {"Step",
     "{agent: string, event?: any, state_delta?: StepDelta, parents?: (string|StepSent)[], "
     "head?: string|null, fork?: boolean, fork_type?: 'natural'|'observation'|'injection', "
     "timestamp?: number, key?: string, signature?: StepSignature}"},
    {"StepDelta", "{memory?: any, beliefs?: any, goals?: any[], context_stack?: any[]}"},
    {"StepSent", "{agent?: string, key: string}"},
    {"StepSignature", "{key_id: string, signature: string}"},
    {"StepsResult", "{accepted: integer, duplicates: integer, received: integer, "
                    "results: StepResult[], status: 'ok'|'partial'}"},
    {"StepResult",
     "{agent: string|null, detail?: string, entry?: integer, hash?: string, "
     "head?: StepHead|null, node_id?: string, reason?: string, seq?: integer, "
     "status: 'stored'|'duplicate'|'conflict'|'rejected'|'skipped'}"},
    {"StepHead", "{hash: string, seq: integer}"},
    {"TraceRow",
     "{action_success: boolean|null, agent_id_hash: string, "
     "audit: {hash: string|null, seq: integer|null}, canonical_form: string|null, "
     "cognitive_state: string|null, conscience: Conscience, envelope_signed: boolean, "
     "idma: IdmaRow, scores: Scores, selected_action: string|null, signature_verified: boolean, "
     "task_id: string|null, thought_id: string|null, timestamp: string, trace_id: string, "
     "trace_level: TraceLevel, trace_type: string|null}"},
    {"Conscience",
     "{coherence_passed: boolean|null, entropy_passed: boolean|null, "
     "epistemic_humility_passed: boolean|null, optimization_veto_passed: boolean|null, "
     "overridden: boolean|null, passed: boolean|null, thought_depth_triggered: boolean|null, "
     "updated_status_detected: boolean|null}"},
    {"IdmaRow", "{check: string|null, fragility_flag: boolean|null, phase: string|null, "
                "phase_computed: string|null}"},
    {"Scores", "{coherence_level: number|null, correlation_risk: number|null, csdma: number|null, "
               "dsdma: number|null, entropy_level: number|null, k_eff: number|null}"},
    {"TraceRows", "{count: integer, next_cursor: string|null, not_searched_before: string|null, "
                  "traces: TraceRow[]}"},
    {"TraceAnswer",
     "{conflicts: TraceConflict[], entry: TraceEntry, level: TraceLevel, proof: TraceProof, "
     "trace: any, verdict: TraceVerdict}"},
    /* With raw=true: the trace as it was received. */
    {"ReceivedTrace", "{components: any, trace_id: string, *: any}"},
    {"TraceConflict", "{actor: string, content_sha256: string, received_at: string, seq: integer}"},
    {"TraceEntry", "{actor: string, capture: string, content_sha256: string, received_at: string, "
                   "seq: integer}"},
    {"TraceProof", "{inclusion: string, journal_root: string, journal_size: integer, leaf: string, "
                   "payload_salt: string|null}"},
    {"TraceVerdict",
     "{agent_id_hash: string|null, canonical_len: integer|null, canonical_sha256: string|null, "
     "detail: string|null, form: string|null, key_id: string|null, numbers: string|null, "
     "path: string|null, paths: string[], pqc: string|null, reason: string|null, "
     "signed: string|null, trace_id: string|null, trace_level: string|null, "
     "trace_type: string|null, verdict: CheckVerdict, warnings: string[]}"},
    {"TraceCheck", "{left_out: integer, results: TraceVerdict[]}"},
    {"TraceAround",
     "{agent_id_hash: string, batch: TraceBatch|null, next: TraceRow|null, "
     "nodes: (string|null)[], previous: TraceRow|null, row: TraceRow}"},
    {"TraceBatch", "{accepted: integer, batch_id: string, correlation_metadata: {*: any}|null, "
                   "received: integer, rejected: integer}"},

    /* --- agents ------------------------------------------------------------------------------ */

    {"Fleet", "{agents: FleetAgent[], capacity_step: integer, days: string[], "
              "left_out: {agents: integer, traces: integer}, more: boolean}"},
    {"FleetAgent",
     "{agent: string, capacity: (number|null)[], chain: ChainCounts, fragile: integer, "
     "k_eff: (number|null)[], last: string|null, overridden: integer, "
     "plausibility: (number|null)[], traces: integer[]}"},
    {"ChainCounts",
     "{duplicate: integer, entries: integer, fork: integer, gap: integer, mismatch: integer, "
     "profile: string, reorder: integer, unchecked: integer, verdict: CheckVerdict}"},
    {"Chain", "{agent: string, entries: integer, findings: ChainFinding[], profile: string, "
              "verdict: CheckVerdict}"},
    {"ChainFinding",
     "{expected?: string, found?: string, kind: string, missing?: integer, next?: integer, "
     "previous?: string, seq?: integer, trace_ids?: string[]}"},
    {"Wakeup", "{agent: string, complete: boolean, wakeups: WakeupRow[]}"},
    {"WakeupRow", "{began_at: string|null, complete: boolean, "
                  "types: {*: {state: string, trace_id: string|null}}}"},
    {"Capacity",
     "{agent: string, category: string|null, confidence: string, "
     "factors: {c: number|null, i_inc: number|null, i_int: number|null, r: number|null, "
     "s: number|null}, fragility: number|null, inputs: {*: any}, n: integer, "
     "n_eff: {columns: any[], entropy: number|null, participation: number|null, rows: integer}, "
     "score: number|null}"},
    {"NewKey",
     "{key_id: string, public_key_base64: string, agents?: string[], not_before?: string|null, "
     "not_after?: string|null, replaces?: string|null, chain_profile?: string|null, "
     "algorithm?: string, description?: string|null}"},
    {"Key",
     "{added_at: string, added_by: string, agents: string[], algorithm: string, "
     "chain_profile?: string, description?: string, key_id: string, not_after: string|null, "
     "not_before: string|null, public_key: string, replaces: string|null, "
     "revoked_at: string|null, revoked_reason?: string}"},
    {"Keys", "{format: string, keys: Key[]}"},
    {"KeyStatus", "{key_id: string, status: string}"},
    {"Revocation", "{reason: string, compromised_since?: string|null}"},

    /* --- alerts ------------------------------------------------------------------------------ */

    {"Alert",
     "{acknowledged: boolean, acknowledged_at: string|null, acknowledged_by: string|null, "
     "acknowledged_notes: string|null, agent_id_hash: string|null, alert_id: string, "
     "baseline: number|null, deliveries?: AlertDelivery[], detection_mechanism: string, "
     "deviation: number|null, "
     "domain: string|null, evidence_traces: string[], inputs: any, metric: string|null, "
     "recommended_action: string|null, resolved: boolean, resolved_at: string|null, "
     "resolved_by: string|null, resolved_notes: string|null, severity: 'critical'|'warning', "
     "timestamp: string, value: number|null, window_end: string|null}"},
    {"AlertDelivery",
     "{attempts: integer, destination: 'alertmanager'|'command'|'webhook', error: string|null, "
     "event: 'alert.raised'|'alert.acknowledged'|'alert.resolved', id: string, "
     "next_at: string|null, state: 'delivered'|'expired'|'failed'|'waiting', "
     "tried_at: string|null}"},
    {"Alerts", "{alerts: Alert[], count: integer}"},
    {"AlertNote", "{by?: string|null, notes?: string|null}"},
    {"AlertStatus", "{alert_id: string, by: string, status: string}"},

    /* --- lattice: answers of `cortex lattice` ------------------------------------------------ */

    {"LatticeState",
     "{base: 'lca'|'none', conflicts: string[], node: string, state: any, "
     "strategy: 'lww'|'confidence'|'policy'|'manual', verified: boolean}"},
    {"LatticeWhy", "{changes: LatticeChange[], key: string, node: string, verified: boolean}"},
    {"LatticeChange", "{agent: string, because?: string, new?: any, node: string, old?: any, "
                      "section: 'memory'|'beliefs', seq: integer, source?: LatticeSource, "
                      "text?: string, thinking?: string, via: Via}"},
    {"LatticeSource", "{agent: string, node: string, seq: integer, text: string}"},
    {"LatticePlace",
     "{agent: string, call?: string, first: boolean, how: 'message'|'given'|'thinking'|'reason'|"
     "'error'|'arguments'|'result'|'event'|'change', kind?: string, node: string, path?: string, "
     "role?: string, seq: integer, text: string, tool?: string}"},
    {"LatticeSaid", "{node: string, places: LatticePlace[], said: string, total: integer, "
                    "verified: boolean}"},
    {"LatticeOrigin", "LatticeWhy|LatticeSaid"},
    {"LatticeReach", "{carries: {agent: string, by: ReachBy[], keys: string[], node: string, "
                     "seq: integer, text: string}[], cut: boolean, follows: integer, "
                     "node: string, size: integer, total: integer, verified: boolean}"},
    {"LatticeGrep", "{hits: {agent: string, kind?: string, node: string, seq: integer, "
                    "text: string}[], total: integer, verified: boolean}"},
    {"ReachBy", "'call'|'text'"},
    {"LatticeHeatmap", "{nodes: {D: integer, node: string}[], verified: boolean}"},
    {"LatticeCompare",
     "{agents: string[], causal_lca: string[], "
     "diff: {a?: any, b?: any, key?: string, section: string}[], heads: string[], "
     "lca: string|null, paths: string[][], verified: boolean}"},
    {"LatticeHeads", "{heads: {agent: string, hash: string, node: string, seq: integer}[], "
                     "verified: boolean}"},
    {"LatticeNode", "{children: string[], line: integer, lineage: string|null, node: any, "
                    "parents: string[], verified: boolean}"},
    {"LatticeBisect",
     "{first: string|null, holds_at_end: boolean, node: string, predicate: string, "
     "steps: integer, turns: {agent: string, holds: boolean, node: string, seq: integer}[], "
     "verified: boolean}"},
    {"LatticePicture",
     "{columns: integer, edges: any[], first: integer, lanes: any[], nodes: integer, rows: any[], "
     "total: integer, verdict: string|null, *: any}"},
    {"LatticeVerify",
     "{branches: {*: string}, errors: LatticeFinding[], evidence: {*: any}, nodes: integer, "
     "ok: boolean, tainted: string[], warnings: LatticeFinding[]}"},
    {"LatticeFinding", "{agent: string, code: string, detail: string, node: string}"},

    /* --- views: windows into a history (docs/formats/view.md) -------------------------------- */

    {"Section", "'memory'|'beliefs'"},
    {"StateSection", "'memory'|'beliefs'|'goals'|'context_stack'"},
    {"Via", "'delta'|'merge'"},
    /* Canonical JSON; its first bytes only when it is cut. */
    {"Value", "{cut: boolean, least?: boolean, size: integer, text: string}"},
    {"NodeRef", "{" NODE_MEMBERS "}"},
    {"Histories", "{histories: History[]}"},
    {"History", "{entries: integer, name: string}"},
    {"ViewLane", "{agent: string, first: integer, last: integer, nodes: integer, "
                 "verdict: 'unchecked'|'valid'|'tainted'|'invalid'}"},
    {"ViewFinding", "{agent?: string, col?: integer, id?: string, lane?: integer, n?: integer, "
                    "seq?: integer, t?: number|null, code: string, detail: string}"},
    {"ViewExtent", "{entries: integer, entry: integer|null, part: integer, parts: boolean}"},
    {"ViewSummary",
     "{agents: integer, columns: integer, errors: integer, findings: ViewFinding[], "
     "fold: boolean, lanes: ViewLane[], nodes: integer, rows: integer, time: number[], "
     "verified: boolean, warnings: integer}"},
    /* cells: lane, bin, nodes, marks; marks: kind, column, node; again and again */
    {"ViewOverview",
     "{bins: integer, cells: integer[], from: integer, marks: integer[], to: integer}"},
    /* edges: parent, its column, its lane, child, its column, its lane, type, fork */
    {"ViewWindow", "{cut: boolean, edges: integer[], from: integer, nodes: ViewNodes, "
                   "to: integer}"},
    {"ViewNodes",
     "{code: integer[], col: integer[], fold: integer[], fork: integer[], label?: string[], "
     "lane: integer[], marks: integer[], n: integer[], "
     "span?: (number|null)[], t: (number|null)[]}"},
    {"ViewChange", "{key: string|null, new: Value|null, old: Value|null, section: StateSection, "
                   "via: Via}"},
    {"ViewSnapshot", "{actor: string, created_ns: integer, entries: integer, number: integer, "
                     "root: string, sealed: boolean}"},
    {"ViewNode",
     "{" NODE_MEMBERS ", changes: ViewChange[], child_count: integer, children: NodeRef[], "
     "event: Value, failed: boolean, findings: {code: string, detail: string}[], fold: integer, fork: string, "
     "hash: string, in_graph: boolean, line: integer, lineage: integer|null, "
     "more_changes: boolean, next_own: integer|null, override: integer, parents: NodeRef[], "
     "place: string|null, prev_hash: string, prev_own: integer|null, snapshots: ViewSnapshot[], verified: boolean}"},
    {"JsonKind", "'object'|'array'|'string'|'number'|'boolean'|'null'"},
    {"ViewEntry", "{changed: boolean, count?: integer, key: string, kind: JsonKind, "
                  "many?: boolean, value?: Value|null}"},
    {"ViewLevel", "{entries: ViewEntry[], kind: JsonKind, more: boolean, pointer: string, "
                  "value?: Value|null}"},
    {"ViewWrite", "{" NODE_MEMBERS ", because?: string, new: Value|null, old: Value|null, "
                  "source?: ViewSource, text?: string, thinking?: string, via: Via}"},
    {"ViewSource", "{" NODE_MEMBERS ", text: string}"},
    {"ViewWrites", "{changes: ViewWrite[], key: string, more: integer, next: NodeRef|null, "
                   "node: string, section: Section}"},
    {"ViewCarrier", "{" NODE_MEMBERS ", by: ReachBy[], keys: string[], text: string}"},
    {"ViewReach",
     "{carries: ViewCarrier[], cut: boolean, follows: integer[], follows_total: integer, "
     "node: NodeRef, size: integer, total: integer, verified: boolean}"},
    {"CompareSide", "{" NODE_MEMBERS ", label: string}"},
    {"CompareStep",
     "{a: CompareSide|null, b: CompareSide|null, differ_count: integer, differs: string[], "
     "how: 'only'|'alike'|'same', same: boolean}"},
    {"CompareValue", "{a: Value|null, b: Value|null, key: string|null, section: StateSection}"},
    {"ViewComparison",
     "{a: NodeRef, aligned: boolean, b: NodeRef, common: NodeRef|null, "
     "counts: [integer, integer], diff: CompareValue[], first: integer|null, from: integer, "
     "knowledge: NodeRef[], "
     "matched: {alike: integer, only: [integer, integer], same: integer}, more_diff: boolean, "
     "parted: integer|null, rows: integer, steps: CompareStep[], verified: boolean}"},
    /* cells: lane, bin, nodes, value, hottest node; again and again */
    {"ViewHeat", "{axis: 'time'|'order', bins: integer, cells: number[], from: number, "
                 "lanes: integer, max: number, to: number, total: number}"},

    {"StepText", "{cut: boolean, size: integer, text: string}"},
    {"StepPicture", "{size: integer, type: 'png'|'jpeg'|'gif'|'webp'|'other'}"},
    {"StepCall",
     "{arguments?: StepText, call_id?: string, failed: boolean, result?: StepText, tool?: string}"},
    {"ViewStep",
     "{agent: string, arguments?: StepText, at: integer, because?: StepText, call_id?: string, "
     "calls?: StepCall[], col: integer, component?: string, cost_usd?: number|null, "
     "data?: StepText, duration_ns?: number|null, error?: StepText, event_type?: string, "
     "failed?: boolean, "
     "id: string, images?: number|null, input?: {role: string, text?: StepText}[], kind?: string, "
     "lane: integer, model?: string, n: integer, name?: string, pictures?: StepPicture[], "
     "result?: StepText, role?: string, "
     "seq: integer, source?: string, status?: string, t: number|null, text?: StepText, "
     "thinking?: StepText, tokens_input?: number|null, tokens_output?: number|null, "
     "tool?: string}"},
    {"ViewSteps",
     "{from: integer, next: integer|null, steps: ViewStep[], total: integer}"},

    /* --- inbox ------------------------------------------------------------------------------- */

    {"InboxTrace", "{agent: string|null, id: string, kind: 'trace', value: TraceRow, "
                   "when: string|null}"},
    {"InboxRun",
     "{agent: string|null, id: string, kind: 'run', value: RunItem, when: string|null}"},
    {"InboxHistory",
     "{agent: string|null, id: string, kind: 'history', "
     "value: History|HistoryRow|LiveSession, when: string|null}"},
    {"InboxAlert",
     "{agent: string|null, id: string, kind: 'alert', value: Alert, when: string|null}"},
    {"InboxItem", "InboxTrace|InboxRun|InboxHistory|InboxAlert"},
    {"InboxPage", "{index: string|null, items: InboxItem[], next_cursor: string|null}"},
    {"InboxFacet", "{more: integer, values: {count: integer, value: string}[]}"},
    {"InboxFacets", "{complete: boolean, facets: {*: InboxFacet}, index: string|null, "
                    "total: integer}"},

    {"SearchHit",
     "{agent: string|null, at: string|null, cut_after: boolean, cut_before: boolean, "
     "failed: boolean, history: string, kind: string, ref: string, role: string|null, "
     "snippet: string, source: string, title: string|null, tool: string|null}"},
    {"SearchPage", "{hits: SearchHit[], next_cursor: string|null, not_searched_before: string|null}"},
    {"HistoryRow",
     "{agent: string|null, calls: integer, cost_usd: number, errors: integer, first: string|null, "
     "last: string|null, model: string|null, name: string, path: string|null, source: string, "
     "steps: integer, title: string|null, tokens_input: integer, tokens_output: integer}"},
    {"FleetPart", "{address: string|null, bytes_written: integer, commits: integer, epoch: integer, "
     "fences: integer, files: integer, going_to: string|null, handed: integer, id: string, "
     "lease_left_ms: integer, moved: boolean, name: string, "
     "node: string|null, part: integer, quota_bytes: integer|null, served: boolean, stopped: boolean, "
     "stored_bytes: integer|null}"},
    {"FleetNode", "{address: string, connections: FleetConnections|null, draining: boolean, "
     "node: string, part: string, "
     "role: 'serves'|'opens'|'waits'|null, silent_ms: integer, state: 'up'|'drains'|'silent', up_ms: integer, "
     "version: string}"},
    {"FleetEvent", "{ago_ms: integer, at: string, detail: string|null, ended_lease: boolean, epoch: integer, "
     "kind: string, node: string|null, part: string|null}"},
    {"FleetConnections", "{accepted: integer, given_up: integer, held: integer, other: integer, own: integer, "
     "refused: integer}"},
    {"FleetLag", "{index_away: boolean, index_commits: integer, log_commits: integer, table_commits: integer, "
     "tables_age_ms: integer|null}"},
    {"FleetNodes", "{age_ms: integer|null, away: boolean, connections: FleetConnections|null, "
     "events: FleetEvent[], fleet: string|null, lag: FleetLag|null, node: string|null, nodes: FleetNode[], "
     "part: string|null, parts: FleetPart[], strict: boolean}"},
    {"HistoriesPage", "{histories: HistoryRow[], next_cursor: string|null, not_searched_before: string|null}"},

    /* --- objects and their provenance (docs/formats/provenance.md)
     * -------------------------------- */

    {"ObjectKind", "'memory'|'edge'|'trace'|'run'|'event'|'commit'|'entry'|'snapshot'|'journal'|"
                   "'node'|'key'|'actor'|'line'"},
    {"Object", "{by: string, facts: any, here: boolean, id: string, kind: ObjectKind, "
              "links: ObjectLink[], links_cut: boolean, matched: string, next: string[], "
              "title: string, verdict: CheckVerdict, where: {*: any}}"},
    {"ObjectLink",
     "{by: string, id: string, kind: ObjectKind, relation: string, verdict: CheckVerdict}"},
    {"Candidates", "{candidates: {id: string, kind: ObjectKind, matched: string, title: string}[]}"},
    {"ObjectAnswer", "Object|Candidates"},
    {"Provenance", "{cut: boolean, not_proven: string[], question: string, "
                   "steps: ProvenanceStep[], verdict: CheckVerdict}"},
    {"ProvenanceStep",
     "{by: string, depth: integer, facts: any, id: string|null, kind: string, "
     "link: {by: string, from: integer, relation: string, verdict: CheckVerdict}|null, "
     "n: integer, next: string|null, title: string, verdict: CheckVerdict}"},
    {"ProvenanceAnswer", "Provenance|Candidates"},

    /* --- memories, proofs, snapshots --------------------------------------------------------- */

    {"Memory", "{forms: {short: string, *: any}, uri: string, *: any}"},
    {"Memories", "{actor: string, count: integer, memories: Memory[], next: string|null}"},
    {"MemoryAnswer", "{*: any}"},
    {"NewMemory",
     "{type: string, data?: any, data_cbor?: string, key?: string, id?: string, "
     "actor_scope?: string, visibility?: string, importance?: integer, tags?: string[], "
     "frames?: MemoryFrame[], provenance?: any, confidence?: number, expires_at?: string|integer, "
     "forms?: MemoryForms, blind?: boolean, pinned?: boolean}"},
    {"MemoryFrame", "{verb: string, kind: string, ref: string}"},
    {"MemoryForms", "{short: string, medium: string}"},
    {"MemoryUpdate",
     "{uri: string, data?: any, data_cbor?: string, key?: string, provenance?: any, "
     "confidence?: number, expires_at?: string|integer, forms?: MemoryForms, blind?: boolean}"},
    {"MemoryLabels",
     "{uri: string, key?: string, tags?: string[], frames?: MemoryFrame[], importance?: integer, "
     "visibility?: string, if_head?: string}"},
    {"MemoryEnd", "{uri: string, key?: string, reason?: string}"},
    {"NewEdge",
     "{src: string, type: string, dst: string, key?: string, weight?: number, data?: string, "
     "blind?: boolean}"},
    {"EdgeEnd", "{src: string, type: string, dst: string, key?: string, reason?: string}"},
    {"NewAttestation",
     "{intent: string, outcome: 'success'|'failure', cited: string[], key?: string, "
     "reason?: string}"},
    {"Seed",
     "{actor: string, overall_root: string, scheme: string, seed: string, "
     "snapshot: integer|null}"},
    {"ScopeToMake",
     "{actor: string, granted_to: string, granted_by?: string, snapshot?: integer, "
     "types?: string[], tags?: string[], ids?: string[], frame?: ScopeFrame, "
     "not_types?: string[], not_tags?: string[], not_ids?: string[], "
     "expires_at?: string|integer, budget?: integer, writable?: boolean}"},
    {"ScopeFrame", "{verb: string, ref: string}"},
    {"ScopeDraft",
     "{actor: string, granted_by: string, granted_to: string, overall_root: string, "
     "scope: string, snapshot: integer}"},
    {"ScopeToSend", "{scope: string, signature?: string}"},
    {"ScopeSent",
     "{actor: string, duplicate: boolean, entry: integer, granted_to: string, id: string}"},
    {"SentScope",
     "{actor: string, budget: integer, entry: integer, expires_at: string|null, "
     "granted_by: string, granted_to: string, id: string, overall_root: string, scope?: string, "
     "writable: boolean}"},
    {"SentScopes", "{scopes: SentScope[], truncated: boolean}"},
    {"ScopeShown", "{scope: string}"},
    {"ScopeVerdict",
     "{actor: string, detail: string, expires_at: string|null, granted_by: string, "
     "granted_to: string, reason: string|null, verdict: string, writable: boolean}"},
    {"ScopeRead", "{scope: string, uri: string}"},
    {"ScopeFind", "{scope: string, types?: string[], tags?: string[], words?: string, limit?: integer}"},
    {"ScopeWrite",
     "{scope: string, type: string, data?: any, data_cbor?: string, key?: string, "
     "visibility?: string, importance?: integer, tags?: string[], frames?: MemoryFrame[], "
     "provenance?: any, confidence?: number, expires_at?: string|integer, forms?: MemoryForms, "
     "blind?: boolean}"},
    {"ScopeUpdate",
     "{scope: string, uri: string, data?: any, data_cbor?: string, key?: string, "
     "provenance?: any, confidence?: number, expires_at?: string|integer, forms?: MemoryForms, "
     "blind?: boolean}"},
    {"ScopeLabels",
     "{scope: string, uri: string, key?: string, tags?: string[], frames?: MemoryFrame[], "
     "importance?: integer, visibility?: string, if_head?: string}"},
    {"MemoryWritten",
     "{duplicate: boolean, entry: integer|null, uri: string|null, used: integer}"},
    {"EntryProof", "{actor: string, bytes: integer, journal_root: string, journal_size: integer, "
                   "leaf_hash: string, proof: string, seq: integer}"},
    {"ConsistencyProof", "{actor: string, bytes: integer, from: integer, from_root: string, "
                         "proof: string, to: integer, to_root: string}"},
    {"MemoryProof",
     "{actor: string, bytes: integer, claims: {claim: 'absent'|'member', uri: string}[], "
     "overall_root: string, proof: string, snapshot: integer}"},
    {"SchemeName", "'cortex-1'|'matrix-1'"},
    {"ActorRoots",
     "{actor: string, edges_root: string, journal_root: string, journal_size: integer, "
     "memories_root: string, overall_root: string, scheme: SchemeName}"},
    {"HomeRoot", "{actors: integer, entries: integer, root: string, seq: integer}"},
    {"HomeRootNow",
     "{actors: integer, entries: integer, recorded: HomeRoot|null, root: string}"},
    {"Roots", "{actors: ActorRoots[], home_root?: HomeRootNow, scheme: SchemeName}"},
    {"Snapshot",
     "{created_ns: integer, edges: integer, edges_root: string, journal_root: string, "
     "journal_size: integer, live_memories: integer, memories_root: string, "
     "overall_root: string, sealed: boolean, signed_by: string|null, snapshot: integer, "
     "tombstoned: integer, trigger: string}"},
    {"Snapshots", "{actor: string, count: integer, items: Snapshot[]}"},
    {"Checkpoint", "{note: string, origin: string, root: string, size: integer}"},
    {"Checkpoints", "{items: Checkpoint[]}"},

    /* --- governed runs ----------------------------------------------------------------------- */

    {"RunItem",
     "{created_at: string|null, failed_gate: string|null, finished_at: string|null, "
     "run_id: string, sealed: boolean, status: string, task_id: string|null}"},
    {"RunItems", "{items: RunItem[], next: string|null, execution_authority?: string}"},
    {"RunStart", "{contract?: any, intent?: string, runner?: string, no_merge?: boolean}"},
    {"RunStarted", "{run_id: string}"},
    {"CaseState", "'QUEUED'|'PLANNING'|'PLANNED'|'REFUSED'|'RUNNING'|'DONE'|'FAILED'|'CANCELLED'"},
    {"CaseItem", "{" CASE_MEMBERS "}"},
    {"Cases", "{execution_authority: string, items: CaseItem[], next: string|null}"},
    {"Intents", "{execution_authority: string, items: CaseItem[]}"},
    {"Case",
     "{" CASE_MEMBERS ", contract: any, execution_authority: string, key: string|null, "
     "no_merge: boolean, preview: Preview|null, refusals: CaseRefusal[], runner: string|null, "
     "runs: RunItem[], workflow_case_read_model: any}"},
    {"CaseRefusal", "{gate: string, source: 'planner'|'preview', text: string}"},
    {"IntentRequest", "{intent: string, key?: string, no_merge?: boolean, runner?: string}"},
    {"CaseStart", "{contract_sha256: string}"},
    {"CaseStarted", "{case_id: string, run_id: string}"},
    {"ContractPreview", "{contract: any, runner?: string}"},
    {"Preview",
     "{allow: boolean, baseline_commit: string, errors: any[], gates?: {*: PreviewGate}, "
     "lock_paths?: string[], role_contract_summary?: any, runner?: string, valid: boolean}"},
    {"PreviewGate", "{passed: boolean, violations: string[]}"},
    /* The members of the run's manifest as it is stored, and what the server adds. */
    {"Run",
     "{codes: string[], created_at?: string|null, failed_tests: FailedTest[], "
     "failure_reason?: string, finished_at?: string|null, policy_pack?: string, "
     "repo?: {baseline_ref?: string, final_ref?: string, *: any}, run_id: string, "
     "runner?: {name?: string, *: any}, sealed: boolean, state: string|null, status: string, "
     "task_id?: string|null, trace?: {trace_id?: string, *: any}, user_request?: string, "
     "verdict: string, *: any}"},
    /* A test command that failed, with the end of what it printed. */
    {"FailedTest",
     "{exit_code: integer|null, name: string, problem?: string, stderr?: OutputEnd, "
     "stdout?: OutputEnd, task_id: string}"},
    {"OutputEnd", "{bytes: integer, cut: boolean, path: string, text: string}"},
    {"RunEvents", "{items: RunEvent[], next: integer|null}"},
    /* The members of the event, or its line as it is stored with raw=true. */
    {"RunEvent", "{index: integer, raw?: string, *: any}"},
    {"RunFile", "{" FILE_MEMBERS "}"},
    {"RunFiles", "{items: RunFile[]}"},
    {"GateState", "{passed: boolean, reached: boolean}"},
    {"GateVerdict",
     "{attempt: integer|null, event_type: string, gate: string, index: integer, passed: boolean, "
     "task_id: string|null, ts: string, violations: string[]}"},
    {"RunGates", "{gates: {*: GateState}, run_id: string, verdicts: GateVerdict[]}"},
    {"RunTransition",
     "{attempt: integer|null, from: string, index: integer, reason: string, "
     "task_id: string|null, to: string, ts: string}"},
    {"RunMoment", "{attempt: integer|null, event_type: string, index: integer, level: string, "
                  "task_id: string|null, ts: string}"},
    {"RunTimeline", "{items: RunMoment[], run_id: string, state: string|null, "
                    "states: RunTransition[]}"},
    {"RunVerify",
     "{chain_head: string, codes: string[], details: RunDetail[], events: integer, "
     "files: integer, manifest_sha256: string|null, reason: string, run_id: string, seal: string, "
     "verdict: CheckVerdict}"},
    {"RunDetail", "{code: string, message: string, path: string}"},
    {"RunReplayRequest", "{against?: string}"},
    {"RunReplay",
     "{baseline_run_id: string|null, codes: string[], events_count: integer, "
     "evidence_hashes: {extra: string[], mismatched: string[], missing: string[]}, "
     "first_divergence: {actual: any, expected: any, field: string, index: integer}|null, "
     "gates: {*: GateState}, mismatches: any[], params_equal: boolean|null, "
     "reports: {*: {error: string|null, ok: boolean, schema: string|null}}, run_id: string, "
     "states: RunTransition[], status: string, "
     "timeline: {event_type: string, index: integer, task_id: string|null, ts: string}[], "
     "verdict: CheckVerdict}"},
    {"ContractItem",
     "{agent_id: string|null, parent_task_id: string|null, role: string|null, run_id: string, "
     "sha256: string, spec: string, status: string, task_id: string}"},
    {"Contracts", "{execution_authority: string, items: ContractItem[], next?: null}"},
    {"Contract", "{contract: any, execution_authority: string, role_binding_read_model: any, "
                 "run_id: string, sha256: string}"},
    {"Lock", "{acquired_at: string|null, path: string, reason: string, renewed_at: string|null, "
             "run_id: string|null, stale: boolean, task_id: string|null, ttl_sec: integer}"},
    {"Locks", "{execution_authority: string, items: Lock[], next?: null}"},
    {"Worktree", "{branch: string, head: string, orphan: boolean, path: string, run_id: string}"},
    {"Worktrees", "{execution_authority: string, items: Worktree[]}"},
    {"PolicyFile", "{path: string, sha256: string, size_bytes: integer}"},
    {"Policies", "{built_in: boolean, commit: string, execution_authority: string, "
                 "items: PolicyFile[], problems: any[]}"},
    {"Agents", "{commit: string, execution_authority: string, items: any[], problems: any[], "
               "role_contracts: any}"},
    {"Approval",
     "{approval_id: string|null, approver: string|null, contract_sha256: string|null, "
     "expires_at: string|null, file: string, issued_at: string|null, reason: string|null, "
     "run_id: string|null, scopes: any, sha256: string, *: any}"},
    {"Approvals", "{execution_authority: string, items: Approval[], next?: null}"},
    /* DSSE */
    {"Envelope", "{payload: string, payloadType: string, signatures: any[]}"},
    {"ApprovalStored", "{approval_id: string, path: string, sha256: string}"},

    /* --- external records -------------------------------------------------------------------- */

    {"OtelTrace", "{first_seq: integer, spans: integer, trace_id: string}"},
    {"OtelTraces", "{next_after: string|null, traces: OtelTrace[]}"},
    {"ArchivedSession", "{bytes: integer, file: string, format: string, generation: integer, "
                        "session: string}"},
    {"ArchivedSessions", "{next_after: null, sessions: ArchivedSession[]}"},
};
/* clang-format on */
const size_t cx_api_type_count = CX_COUNT_OF(cx_api_types);

// api-types.ts - what the server is asked and answers.  Made by tools/api_types.py from docs/openapi.json.

export interface ActorRoots {
  actor: string;
  edges_root: string;
  journal_root: string;
  journal_size: number;
  memories_root: string;
  overall_root: string;
  scheme: SchemeName;
}

export interface Agents {
  commit: string;
  execution_authority: string;
  items: unknown[];
  problems: unknown[];
  role_contracts: unknown;
}

export interface Alert {
  acknowledged: boolean;
  acknowledged_at: string | null;
  acknowledged_by: string | null;
  acknowledged_notes: string | null;
  agent_id_hash: string | null;
  alert_id: string;
  baseline: number | null;
  deliveries?: AlertDelivery[];
  detection_mechanism: string;
  deviation: number | null;
  domain: string | null;
  evidence_traces: string[];
  inputs: unknown;
  metric: string | null;
  recommended_action: string | null;
  resolved: boolean;
  resolved_at: string | null;
  resolved_by: string | null;
  resolved_notes: string | null;
  severity: 'critical' | 'warning';
  timestamp: string;
  value: number | null;
  window_end: string | null;
}

export interface AlertDelivery {
  attempts: number;
  destination: 'alertmanager' | 'command' | 'webhook';
  error: string | null;
  event: 'alert.raised' | 'alert.acknowledged' | 'alert.resolved';
  id: string;
  next_at: string | null;
  state: 'delivered' | 'expired' | 'failed' | 'waiting';
  tried_at: string | null;
}

export interface AlertNote {
  by?: string | null;
  notes?: string | null;
}

export interface AlertStatus {
  alert_id: string;
  by: string;
  status: string;
}

export interface Alerts {
  alerts: Alert[];
  count: number;
}

export interface Approval {
  approval_id: string | null;
  approver: string | null;
  contract_sha256: string | null;
  expires_at: string | null;
  file: string;
  issued_at: string | null;
  reason: string | null;
  run_id: string | null;
  scopes: unknown;
  sha256: string;
  readonly [name: string]: unknown;
}

export interface ApprovalStored {
  approval_id: string;
  path: string;
  sha256: string;
}

export interface Approvals {
  execution_authority: string;
  items: Approval[];
  next?: null;
}

export interface ArchivedSession {
  bytes: number;
  file: string;
  format: string;
  generation: number;
  session: string;
}

export interface ArchivedSessions {
  next_after: null;
  sessions: ArchivedSession[];
}

export interface Batch {
  events: unknown[];
  batch_timestamp?: string;
  consent_timestamp?: string;
  trace_level?: string;
  correlation_metadata?: unknown;
  readonly [name: string]: unknown;
}

export interface BatchResult {
  accepted: number;
  errors: string[];
  pending?: number;
  received: number;
  rejected: number;
  rejected_traces: string[];
  results: EventResult[];
  status: 'ok' | 'partial' | 'rejected';
}

export interface Candidates {
  candidates: {id: string; kind: ObjectKind; matched: string; title: string}[];
}

export interface Capacity {
  agent: string;
  category: string | null;
  confidence: string;
  factors: {c: number | null; i_inc: number | null; i_int: number | null; r: number | null; s: number | null};
  fragility: number | null;
  inputs: Record<string, unknown>;
  n: number;
  n_eff: {columns: unknown[]; entropy: number | null; participation: number | null; rows: number};
  score: number | null;
}

export interface Case {
  case_id: string;
  contract_sha256: string | null;
  created_at: string;
  intent: string;
  intent_cut: boolean;
  note: string | null;
  plan_run_id: string | null;
  requested_by: string | null;
  run_id: string | null;
  state: CaseState;
  updated_at: string;
  contract: unknown;
  execution_authority: string;
  key: string | null;
  no_merge: boolean;
  preview: Preview | null;
  refusals: CaseRefusal[];
  runner: string | null;
  runs: RunItem[];
  workflow_case_read_model: unknown;
}

export interface CaseItem {
  case_id: string;
  contract_sha256: string | null;
  created_at: string;
  intent: string;
  intent_cut: boolean;
  note: string | null;
  plan_run_id: string | null;
  requested_by: string | null;
  run_id: string | null;
  state: CaseState;
  updated_at: string;
}

export interface CaseRefusal {
  gate: string;
  source: 'planner' | 'preview';
  text: string;
}

export interface CaseStart {
  contract_sha256: string;
}

export interface CaseStarted {
  case_id: string;
  run_id: string;
}

export type CaseState = 'QUEUED' | 'PLANNING' | 'PLANNED' | 'REFUSED' | 'RUNNING' | 'DONE' | 'FAILED' | 'CANCELLED';

export interface Cases {
  execution_authority: string;
  items: CaseItem[];
  next: string | null;
}

export interface Chain {
  agent: string;
  entries: number;
  findings: ChainFinding[];
  profile: string;
  verdict: CheckVerdict;
}

export interface ChainCounts {
  duplicate: number;
  entries: number;
  fork: number;
  gap: number;
  mismatch: number;
  profile: string;
  reorder: number;
  unchecked: number;
  verdict: CheckVerdict;
}

export interface ChainFinding {
  expected?: string;
  found?: string;
  kind: string;
  missing?: number;
  next?: number;
  previous?: string;
  seq?: number;
  trace_ids?: string[];
}

export type CheckVerdict = 'holds' | 'broken' | 'indeterminate';

export interface Checkpoint {
  note: string;
  origin: string;
  root: string;
  size: number;
}

export interface Checkpoints {
  items: Checkpoint[];
}

export interface CompareSide {
  agent: string;
  col: number;
  id: string;
  lane: number;
  n: number;
  seq: number;
  t: number | null;
  label: string;
}

export interface CompareStep {
  a: CompareSide | null;
  b: CompareSide | null;
  differ_count: number;
  differs: string[];
  how: 'only' | 'alike' | 'same';
  same: boolean;
}

export interface CompareValue {
  a: Value | null;
  b: Value | null;
  key: string | null;
  section: StateSection;
}

export interface Conscience {
  coherence_passed: boolean | null;
  entropy_passed: boolean | null;
  epistemic_humility_passed: boolean | null;
  optimization_veto_passed: boolean | null;
  overridden: boolean | null;
  passed: boolean | null;
  thought_depth_triggered: boolean | null;
  updated_status_detected: boolean | null;
}

export interface ConsistencyProof {
  actor: string;
  bytes: number;
  from: number;
  from_root: string;
  proof: string;
  to: number;
  to_root: string;
}

export interface Contract {
  contract: unknown;
  execution_authority: string;
  role_binding_read_model: unknown;
  run_id: string;
  sha256: string;
}

export interface ContractItem {
  agent_id: string | null;
  parent_task_id: string | null;
  role: string | null;
  run_id: string;
  sha256: string;
  spec: string;
  status: string;
  task_id: string;
}

export interface ContractPreview {
  contract: unknown;
  runner?: string;
}

export interface Contracts {
  execution_authority: string;
  items: ContractItem[];
  next?: null;
}

export interface EdgeEnd {
  src: string;
  type: string;
  dst: string;
  key?: string;
  reason?: string;
}

export type Empty = Record<string, never>;

export interface EntryProof {
  actor: string;
  bytes: number;
  journal_root: string;
  journal_size: number;
  leaf_hash: string;
  proof: string;
  seq: number;
}

export interface EntryRef {
  actor: string;
  seq: number;
}

export interface Envelope {
  payload: string;
  payloadType: string;
  signatures: unknown[];
}

export interface EventResult {
  content_sha256?: string;
  detail?: string;
  entry?: EntryRef;
  form?: string;
  index: number;
  numbers?: string;
  path?: string;
  paths?: string[];
  reason?: string;
  status: 'stored' | 'duplicate' | 'conflict' | 'unverified' | 'rejected' | 'pending';
  stripped?: string[];
  trace_id: string | null;
  warnings?: string[];
}

export interface FailedTest {
  exit_code: number | null;
  name: string;
  problem?: string;
  stderr?: OutputEnd;
  stdout?: OutputEnd;
  task_id: string;
}

export interface Fleet {
  agents: FleetAgent[];
  capacity_step: number;
  days: string[];
  left_out: {agents: number; traces: number};
  more: boolean;
}

export interface FleetAgent {
  agent: string;
  capacity: (number | null)[];
  chain: ChainCounts;
  fragile: number;
  k_eff: (number | null)[];
  last: string | null;
  overridden: number;
  plausibility: (number | null)[];
  traces: number[];
}

export interface FleetConnections {
  accepted: number;
  given_up: number;
  held: number;
  other: number;
  own: number;
  refused: number;
}

export interface FleetEvent {
  ago_ms: number;
  at: string;
  detail: string | null;
  ended_lease: boolean;
  epoch: number;
  kind: string;
  node: string | null;
  part: string | null;
}

export interface FleetLag {
  index_away: boolean;
  index_commits: number;
  log_commits: number;
  table_commits: number;
  tables_age_ms: number | null;
}

export interface FleetNode {
  address: string;
  connections: FleetConnections | null;
  draining: boolean;
  node: string;
  part: string;
  role: 'serves' | 'opens' | 'waits' | null;
  silent_ms: number;
  state: 'up' | 'drains' | 'silent';
  up_ms: number;
  version: string;
}

export interface FleetNodes {
  age_ms: number | null;
  away: boolean;
  connections: FleetConnections | null;
  events: FleetEvent[];
  fleet: string | null;
  lag: FleetLag | null;
  node: string | null;
  nodes: FleetNode[];
  part: string | null;
  parts: FleetPart[];
  strict: boolean;
}

export interface FleetPart {
  address: string | null;
  bytes_written: number;
  commits: number;
  epoch: number;
  fences: number;
  files: number;
  going_to: string | null;
  handed: number;
  id: string;
  lease_left_ms: number;
  moved: boolean;
  name: string;
  node: string | null;
  part: number;
  quota_bytes: number | null;
  served: boolean;
  stopped: boolean;
  stored_bytes: number | null;
}

export interface GateState {
  passed: boolean;
  reached: boolean;
}

export interface GateVerdict {
  attempt: number | null;
  event_type: string;
  gate: string;
  index: number;
  passed: boolean;
  task_id: string | null;
  ts: string;
  violations: string[];
}

export interface Health {
  status: string;
}

export interface Histories {
  histories: History[];
}

export interface HistoriesPage {
  histories: HistoryRow[];
  next_cursor: string | null;
  not_searched_before: string | null;
}

export interface History {
  entries: number;
  name: string;
}

export interface HistoryRow {
  agent: string | null;
  calls: number;
  cost_usd: number;
  errors: number;
  first: string | null;
  last: string | null;
  model: string | null;
  name: string;
  path: string | null;
  source: string;
  steps: number;
  title: string | null;
  tokens_input: number;
  tokens_output: number;
}

export interface HomeRoot {
  actors: number;
  entries: number;
  root: string;
  seq: number;
}

export interface HomeRootNow {
  actors: number;
  entries: number;
  recorded: HomeRoot | null;
  root: string;
}

export interface IdmaRow {
  check: string | null;
  fragility_flag: boolean | null;
  phase: string | null;
  phase_computed: string | null;
}

export interface InboxAlert {
  agent: string | null;
  id: string;
  kind: 'alert';
  value: Alert;
  when: string | null;
}

export interface InboxFacet {
  more: number;
  values: {count: number; value: string}[];
}

export interface InboxFacets {
  complete: boolean;
  facets: Record<string, InboxFacet>;
  index: string | null;
  total: number;
}

export interface InboxHistory {
  agent: string | null;
  id: string;
  kind: 'history';
  value: History | HistoryRow | LiveSession;
  when: string | null;
}

export type InboxItem = InboxTrace | InboxRun | InboxHistory | InboxAlert;

export interface InboxPage {
  index: string | null;
  items: InboxItem[];
  next_cursor: string | null;
}

export interface InboxRun {
  agent: string | null;
  id: string;
  kind: 'run';
  value: RunItem;
  when: string | null;
}

export interface InboxTrace {
  agent: string | null;
  id: string;
  kind: 'trace';
  value: TraceRow;
  when: string | null;
}

export interface IntentRequest {
  intent: string;
  key?: string;
  no_merge?: boolean;
  runner?: string;
}

export interface Intents {
  execution_authority: string;
  items: CaseItem[];
}

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null';

export interface Key {
  added_at: string;
  added_by: string;
  agents: string[];
  algorithm: string;
  chain_profile?: string;
  description?: string;
  key_id: string;
  not_after: string | null;
  not_before: string | null;
  public_key: string;
  replaces: string | null;
  revoked_at: string | null;
  revoked_reason?: string;
}

export interface KeyStatus {
  key_id: string;
  status: string;
}

export interface Keys {
  format: string;
  keys: Key[];
}

export interface LatticeBisect {
  first: string | null;
  holds_at_end: boolean;
  node: string;
  predicate: string;
  steps: number;
  turns: {agent: string; holds: boolean; node: string; seq: number}[];
  verified: boolean;
}

export interface LatticeChange {
  agent: string;
  because?: string;
  new?: unknown;
  node: string;
  old?: unknown;
  section: 'memory' | 'beliefs';
  seq: number;
  source?: LatticeSource;
  text?: string;
  thinking?: string;
  via: Via;
}

export interface LatticeCompare {
  agents: string[];
  causal_lca: string[];
  diff: {a?: unknown; b?: unknown; key?: string; section: string}[];
  heads: string[];
  lca: string | null;
  paths: string[][];
  verified: boolean;
}

export interface LatticeFinding {
  agent: string;
  code: string;
  detail: string;
  node: string;
}

export interface LatticeGrep {
  hits: {agent: string; kind?: string; node: string; seq: number; text: string}[];
  total: number;
  verified: boolean;
}

export interface LatticeHeads {
  heads: {agent: string; hash: string; node: string; seq: number}[];
  verified: boolean;
}

export interface LatticeHeatmap {
  nodes: {D: number; node: string}[];
  verified: boolean;
}

export interface LatticeNode {
  children: string[];
  line: number;
  lineage: string | null;
  node: unknown;
  parents: string[];
  verified: boolean;
}

export type LatticeOrigin = LatticeWhy | LatticeSaid;

export interface LatticePicture {
  columns: number;
  edges: unknown[];
  first: number;
  lanes: unknown[];
  nodes: number;
  rows: unknown[];
  total: number;
  verdict: string | null;
  readonly [name: string]: unknown;
}

export interface LatticePlace {
  agent: string;
  call?: string;
  first: boolean;
  how: 'message' | 'given' | 'thinking' | 'reason' | 'error' | 'arguments' | 'result' | 'event' | 'change';
  kind?: string;
  node: string;
  path?: string;
  role?: string;
  seq: number;
  text: string;
  tool?: string;
}

export interface LatticeReach {
  carries: {agent: string; by: ReachBy[]; keys: string[]; node: string; seq: number; text: string}[];
  cut: boolean;
  follows: number;
  node: string;
  size: number;
  total: number;
  verified: boolean;
}

export interface LatticeSaid {
  node: string;
  places: LatticePlace[];
  said: string;
  total: number;
  verified: boolean;
}

export interface LatticeSource {
  agent: string;
  node: string;
  seq: number;
  text: string;
}

export interface LatticeState {
  base: 'lca' | 'none';
  conflicts: string[];
  node: string;
  state: unknown;
  strategy: 'lww' | 'confidence' | 'policy' | 'manual';
  verified: boolean;
}

export interface LatticeVerify {
  branches: Record<string, string>;
  errors: LatticeFinding[];
  evidence: Record<string, unknown>;
  nodes: number;
  ok: boolean;
  tainted: string[];
  warnings: LatticeFinding[];
}

export interface LatticeWhy {
  changes: LatticeChange[];
  key: string;
  node: string;
  verified: boolean;
}

export interface LiveAnswer {
  input_sha256: string;
  reason?: string;
  whole_session?: boolean;
}

export interface LiveAnswered {
  actor: string;
  allow: boolean;
  seq: number;
  whole_session: boolean;
}

export interface LiveEffect {
  kind: string;
  rule: string;
  text: string;
  verdict: string;
  why?: string;
}

export interface LiveEntry {
  approved_by: string | null;
  erased: boolean;
  kind: string;
  payload: unknown;
  result: LiveResult | null;
  seq: number;
  time: string;
}

export interface LiveLimit {
  contract?: unknown;
  deny_unlisted?: boolean;
  forbidden_actions?: string[];
  mode?: LiveMode;
  network?: 'deny' | 'on-request' | 'allow';
  paths?: string[];
  tools_deny?: string[];
}

export interface LiveLimited {
  actor: string;
  policy: LivePolicy | null;
  seq: number;
}

export type LiveMode = 'observe' | 'ask' | 'enforce';

export interface LivePolicy {
  commit: string | null;
  contract: string | null;
  forbidden_actions: string[];
  from: string;
  hosts: string[];
  mode: LiveMode;
  network: string;
  root: string;
  tools_deny: string[];
  unlisted: 'ask' | 'sandbox' | 'deny';
  write: string[][];
}

export interface LiveResult {
  outcome: string;
  output_bytes: number;
  output_sha256: string | null;
  seq: number;
  time: string;
}

export interface LiveSession {
  actor: string;
  agent: string;
  asked: number;
  calls: number;
  contract: string | null;
  cwd: string;
  denied: number;
  ended: boolean;
  latest: string;
  mode: LiveMode;
  policy_from: string;
  session: string;
  started: string;
  transcript: string | null;
  waiting: number;
}

export interface LiveSessionShown {
  entries: LiveEntry[];
  next: number | null;
  policy: LivePolicy | null;
  session: LiveSession;
  waiting: LiveWaiting[];
}

export interface LiveSessions {
  next_cursor: string | null;
  sessions: LiveSession[];
  total: number;
}

export interface LiveWaiting {
  dangerous: boolean;
  effects: LiveEffect[];
  input: unknown;
  input_sha256: string;
  rule: string;
  seq: number;
  text: string;
  time: string;
  tool: string;
  why: string;
}

export interface Lock {
  acquired_at: string | null;
  path: string;
  reason: string;
  renewed_at: string | null;
  run_id: string | null;
  stale: boolean;
  task_id: string | null;
  ttl_sec: number;
}

export interface Locks {
  execution_authority: string;
  items: Lock[];
  next?: null;
}

export interface Memories {
  actor: string;
  count: number;
  memories: Memory[];
  next: string | null;
}

export interface Memory {
  forms: {short: string; readonly [name: string]: unknown};
  uri: string;
  readonly [name: string]: unknown;
}

export type MemoryAnswer = Record<string, unknown>;

export interface MemoryEnd {
  uri: string;
  key?: string;
  reason?: string;
}

export interface MemoryForms {
  short: string;
  medium: string;
}

export interface MemoryFrame {
  verb: string;
  kind: string;
  ref: string;
}

export interface MemoryLabels {
  uri: string;
  key?: string;
  tags?: string[];
  frames?: MemoryFrame[];
  importance?: number;
  visibility?: string;
  if_head?: string;
}

export interface MemoryProof {
  actor: string;
  bytes: number;
  claims: ({claim: 'absent' | 'member'; uri: string})[];
  overall_root: string;
  proof: string;
  snapshot: number;
}

export interface MemoryUpdate {
  uri: string;
  data?: unknown;
  data_cbor?: string;
  key?: string;
  provenance?: unknown;
  confidence?: number;
  expires_at?: string | number;
  forms?: MemoryForms;
  blind?: boolean;
}

export interface MemoryWritten {
  duplicate: boolean;
  entry: number | null;
  uri: string | null;
  used: number;
}

export interface NewAttestation {
  intent: string;
  outcome: 'success' | 'failure';
  cited: string[];
  key?: string;
  reason?: string;
}

export interface NewEdge {
  src: string;
  type: string;
  dst: string;
  key?: string;
  weight?: number;
  data?: string;
  blind?: boolean;
}

export interface NewKey {
  key_id: string;
  public_key_base64: string;
  agents?: string[];
  not_before?: string | null;
  not_after?: string | null;
  replaces?: string | null;
  chain_profile?: string | null;
  algorithm?: string;
  description?: string | null;
}

export interface NewMemory {
  type: string;
  data?: unknown;
  data_cbor?: string;
  key?: string;
  id?: string;
  actor_scope?: string;
  visibility?: string;
  importance?: number;
  tags?: string[];
  frames?: MemoryFrame[];
  provenance?: unknown;
  confidence?: number;
  expires_at?: string | number;
  forms?: MemoryForms;
  blind?: boolean;
  pinned?: boolean;
}

export interface NodeRef {
  agent: string;
  col: number;
  id: string;
  lane: number;
  n: number;
  seq: number;
  t: number | null;
}

export interface Object {
  by: string;
  facts: unknown;
  here: boolean;
  id: string;
  kind: ObjectKind;
  links: ObjectLink[];
  links_cut: boolean;
  matched: string;
  next: string[];
  title: string;
  verdict: CheckVerdict;
  where: Record<string, unknown>;
}

export type ObjectAnswer = Object | Candidates;

export type ObjectKind = 'memory' | 'edge' | 'trace' | 'run' | 'event' | 'commit' | 'entry' | 'snapshot' | 'journal' | 'node' | 'key' | 'actor' | 'line';

export interface ObjectLink {
  by: string;
  id: string;
  kind: ObjectKind;
  relation: string;
  verdict: CheckVerdict;
}

export interface OtelTrace {
  first_seq: number;
  spans: number;
  trace_id: string;
}

export interface OtelTraces {
  next_after: string | null;
  traces: OtelTrace[];
}

export interface OutputEnd {
  bytes: number;
  cut: boolean;
  path: string;
  text: string;
}

export interface Policies {
  built_in: boolean;
  commit: string;
  execution_authority: string;
  items: PolicyFile[];
  problems: unknown[];
}

export interface PolicyFile {
  path: string;
  sha256: string;
  size_bytes: number;
}

export interface Preview {
  allow: boolean;
  baseline_commit: string;
  errors: unknown[];
  gates?: Record<string, PreviewGate>;
  lock_paths?: string[];
  role_contract_summary?: unknown;
  runner?: string;
  valid: boolean;
}

export interface PreviewGate {
  passed: boolean;
  violations: string[];
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance?: string;
  errors?: ProblemError[];
  max_bytes?: number;
}

export interface ProblemError {
  parameter?: string;
  pointer?: string;
  reason: string;
}

export interface Provenance {
  cut: boolean;
  not_proven: string[];
  question: string;
  steps: ProvenanceStep[];
  verdict: CheckVerdict;
}

export type ProvenanceAnswer = Provenance | Candidates;

export interface ProvenanceStep {
  by: string;
  depth: number;
  facts: unknown;
  id: string | null;
  kind: string;
  link: {by: string; from: number; relation: string; verdict: CheckVerdict} | null;
  n: number;
  next: string | null;
  title: string;
  verdict: CheckVerdict;
}

export type ReachBy = 'call' | 'text';

export interface Ready {
  index: string;
  status: string;
}

export interface ReceivedTrace {
  components: unknown;
  trace_id: string;
  readonly [name: string]: unknown;
}

export interface Revocation {
  reason: string;
  compromised_since?: string | null;
}

export interface Roots {
  actors: ActorRoots[];
  home_root?: HomeRootNow;
  scheme: SchemeName;
}

export interface Run {
  codes: string[];
  created_at?: string | null;
  failed_tests: FailedTest[];
  failure_reason?: string;
  finished_at?: string | null;
  policy_pack?: string;
  repo?: {baseline_ref?: string; final_ref?: string; readonly [name: string]: unknown};
  run_id: string;
  runner?: {name?: string; readonly [name: string]: unknown};
  sealed: boolean;
  state: string | null;
  status: string;
  task_id?: string | null;
  trace?: {trace_id?: string; readonly [name: string]: unknown};
  user_request?: string;
  verdict: string;
  readonly [name: string]: unknown;
}

export interface RunDetail {
  code: string;
  message: string;
  path: string;
}

export interface RunEvent {
  index: number;
  raw?: string;
  readonly [name: string]: unknown;
}

export interface RunEvents {
  items: RunEvent[];
  next: number | null;
}

export interface RunFile {
  media_type: string;
  name: string;
  path: string;
  sha256: string;
  size_bytes: number;
}

export interface RunFiles {
  items: RunFile[];
}

export interface RunGates {
  gates: Record<string, GateState>;
  run_id: string;
  verdicts: GateVerdict[];
}

export interface RunItem {
  created_at: string | null;
  failed_gate: string | null;
  finished_at: string | null;
  run_id: string;
  sealed: boolean;
  status: string;
  task_id: string | null;
}

export interface RunItems {
  items: RunItem[];
  next: string | null;
  execution_authority?: string;
}

export interface RunMoment {
  attempt: number | null;
  event_type: string;
  index: number;
  level: string;
  task_id: string | null;
  ts: string;
}

export interface RunReplay {
  baseline_run_id: string | null;
  codes: string[];
  events_count: number;
  evidence_hashes: {extra: string[]; mismatched: string[]; missing: string[]};
  first_divergence: {actual: unknown; expected: unknown; field: string; index: number} | null;
  gates: Record<string, GateState>;
  mismatches: unknown[];
  params_equal: boolean | null;
  reports: Record<string, {error: string | null; ok: boolean; schema: string | null}>;
  run_id: string;
  states: RunTransition[];
  status: string;
  timeline: ({event_type: string; index: number; task_id: string | null; ts: string})[];
  verdict: CheckVerdict;
}

export interface RunReplayRequest {
  against?: string;
}

export interface RunStart {
  contract?: unknown;
  intent?: string;
  runner?: string;
  no_merge?: boolean;
}

export interface RunStarted {
  run_id: string;
}

export interface RunTimeline {
  items: RunMoment[];
  run_id: string;
  state: string | null;
  states: RunTransition[];
}

export interface RunTransition {
  attempt: number | null;
  from: string;
  index: number;
  reason: string;
  task_id: string | null;
  to: string;
  ts: string;
}

export interface RunVerify {
  chain_head: string;
  codes: string[];
  details: RunDetail[];
  events: number;
  files: number;
  manifest_sha256: string | null;
  reason: string;
  run_id: string;
  seal: string;
  verdict: CheckVerdict;
}

export type SchemeName = 'cortex-1' | 'matrix-1';

export interface ScopeDraft {
  actor: string;
  granted_by: string;
  granted_to: string;
  overall_root: string;
  scope: string;
  snapshot: number;
}

export interface ScopeFind {
  scope: string;
  types?: string[];
  tags?: string[];
  words?: string;
  limit?: number;
}

export interface ScopeFrame {
  verb: string;
  ref: string;
}

export interface ScopeLabels {
  scope: string;
  uri: string;
  key?: string;
  tags?: string[];
  frames?: MemoryFrame[];
  importance?: number;
  visibility?: string;
  if_head?: string;
}

export interface ScopeRead {
  scope: string;
  uri: string;
}

export interface ScopeSent {
  actor: string;
  duplicate: boolean;
  entry: number;
  granted_to: string;
  id: string;
}

export interface ScopeShown {
  scope: string;
}

export interface ScopeToMake {
  actor: string;
  granted_to: string;
  granted_by?: string;
  snapshot?: number;
  types?: string[];
  tags?: string[];
  ids?: string[];
  frame?: ScopeFrame;
  not_types?: string[];
  not_tags?: string[];
  not_ids?: string[];
  expires_at?: string | number;
  budget?: number;
  writable?: boolean;
}

export interface ScopeToSend {
  scope: string;
  signature?: string;
}

export interface ScopeUpdate {
  scope: string;
  uri: string;
  data?: unknown;
  data_cbor?: string;
  key?: string;
  provenance?: unknown;
  confidence?: number;
  expires_at?: string | number;
  forms?: MemoryForms;
  blind?: boolean;
}

export interface ScopeVerdict {
  actor: string;
  detail: string;
  expires_at: string | null;
  granted_by: string;
  granted_to: string;
  reason: string | null;
  verdict: string;
  writable: boolean;
}

export interface ScopeWrite {
  scope: string;
  type: string;
  data?: unknown;
  data_cbor?: string;
  key?: string;
  visibility?: string;
  importance?: number;
  tags?: string[];
  frames?: MemoryFrame[];
  provenance?: unknown;
  confidence?: number;
  expires_at?: string | number;
  forms?: MemoryForms;
  blind?: boolean;
}

export interface Scores {
  coherence_level: number | null;
  correlation_risk: number | null;
  csdma: number | null;
  dsdma: number | null;
  entropy_level: number | null;
  k_eff: number | null;
}

export interface SearchHit {
  agent: string | null;
  at: string | null;
  cut_after: boolean;
  cut_before: boolean;
  failed: boolean;
  history: string;
  kind: string;
  ref: string;
  role: string | null;
  snippet: string;
  source: string;
  title: string | null;
  tool: string | null;
}

export interface SearchPage {
  hits: SearchHit[];
  next_cursor: string | null;
  not_searched_before: string | null;
}

export type Section = 'memory' | 'beliefs';

export interface Seed {
  actor: string;
  overall_root: string;
  scheme: string;
  seed: string;
  snapshot: number | null;
}

export interface SentScope {
  actor: string;
  budget: number;
  entry: number;
  expires_at: string | null;
  granted_by: string;
  granted_to: string;
  id: string;
  overall_root: string;
  scope?: string;
  writable: boolean;
}

export interface SentScopes {
  scopes: SentScope[];
  truncated: boolean;
}

export interface Session {
  file: string | null;
  fleet: boolean;
  folder: string | null;
  level: TraceLevel;
  name: string;
  otlp_url: string | null;
  repo: boolean;
  scopes: string[];
  token_file: string | null;
  traces: boolean;
  version: string;
}

export interface Snapshot {
  created_ns: number;
  edges: number;
  edges_root: string;
  journal_root: string;
  journal_size: number;
  live_memories: number;
  memories_root: string;
  overall_root: string;
  sealed: boolean;
  signed_by: string | null;
  snapshot: number;
  tombstoned: number;
  trigger: string;
}

export interface Snapshots {
  actor: string;
  count: number;
  items: Snapshot[];
}

export type StateSection = 'memory' | 'beliefs' | 'goals' | 'context_stack';

export interface Step {
  agent: string;
  event?: unknown;
  state_delta?: StepDelta;
  parents?: (string | StepSent)[];
  head?: string | null;
  fork?: boolean;
  fork_type?: 'natural' | 'observation' | 'injection';
  timestamp?: number;
  key?: string;
  signature?: StepSignature;
}

export interface StepCall {
  arguments?: StepText;
  call_id?: string;
  failed: boolean;
  result?: StepText;
  tool?: string;
}

export interface StepDelta {
  memory?: unknown;
  beliefs?: unknown;
  goals?: unknown[];
  context_stack?: unknown[];
}

export interface StepHead {
  hash: string;
  seq: number;
}

export interface StepPicture {
  size: number;
  type: 'png' | 'jpeg' | 'gif' | 'webp' | 'other';
}

export interface StepResult {
  agent: string | null;
  detail?: string;
  entry?: number;
  hash?: string;
  head?: StepHead | null;
  node_id?: string;
  reason?: string;
  seq?: number;
  status: 'stored' | 'duplicate' | 'conflict' | 'rejected' | 'skipped';
}

export interface StepSent {
  agent?: string;
  key: string;
}

export interface StepSignature {
  key_id: string;
  signature: string;
}

export interface StepText {
  cut: boolean;
  size: number;
  text: string;
}

export interface Steps {
  steps: Step[];
  key?: string;
}

export interface StepsResult {
  accepted: number;
  duplicates: number;
  received: number;
  results: StepResult[];
  status: 'ok' | 'partial';
}

export interface TraceAnswer {
  conflicts: TraceConflict[];
  entry: TraceEntry;
  level: TraceLevel;
  proof: TraceProof;
  trace: unknown;
  verdict: TraceVerdict;
}

export interface TraceAround {
  agent_id_hash: string;
  batch: TraceBatch | null;
  next: TraceRow | null;
  nodes: (string | null)[];
  previous: TraceRow | null;
  row: TraceRow;
}

export interface TraceBatch {
  accepted: number;
  batch_id: string;
  correlation_metadata: Record<string, unknown> | null;
  received: number;
  rejected: number;
}

export interface TraceCheck {
  left_out: number;
  results: TraceVerdict[];
}

export interface TraceConflict {
  actor: string;
  content_sha256: string;
  received_at: string;
  seq: number;
}

export interface TraceEntry {
  actor: string;
  capture: string;
  content_sha256: string;
  received_at: string;
  seq: number;
}

export type TraceLevel = 'generic' | 'detailed' | 'full_traces';

export interface TraceProof {
  inclusion: string;
  journal_root: string;
  journal_size: number;
  leaf: string;
  payload_salt: string | null;
}

export interface TraceRow {
  action_success: boolean | null;
  agent_id_hash: string;
  audit: {hash: string | null; seq: number | null};
  canonical_form: string | null;
  cognitive_state: string | null;
  conscience: Conscience;
  envelope_signed: boolean;
  idma: IdmaRow;
  scores: Scores;
  selected_action: string | null;
  signature_verified: boolean;
  task_id: string | null;
  thought_id: string | null;
  timestamp: string;
  trace_id: string;
  trace_level: TraceLevel;
  trace_type: string | null;
}

export interface TraceRows {
  count: number;
  next_cursor: string | null;
  not_searched_before: string | null;
  traces: TraceRow[];
}

export interface TraceVerdict {
  agent_id_hash: string | null;
  canonical_len: number | null;
  canonical_sha256: string | null;
  detail: string | null;
  form: string | null;
  key_id: string | null;
  numbers: string | null;
  path: string | null;
  paths: string[];
  pqc: string | null;
  reason: string | null;
  signed: string | null;
  trace_id: string | null;
  trace_level: string | null;
  trace_type: string | null;
  verdict: CheckVerdict;
  warnings: string[];
}

export interface Value {
  cut: boolean;
  least?: boolean;
  size: number;
  text: string;
}

export type Via = 'delta' | 'merge';

export interface ViewCarrier {
  agent: string;
  col: number;
  id: string;
  lane: number;
  n: number;
  seq: number;
  t: number | null;
  by: ReachBy[];
  keys: string[];
  text: string;
}

export interface ViewChange {
  key: string | null;
  new: Value | null;
  old: Value | null;
  section: StateSection;
  via: Via;
}

export interface ViewComparison {
  a: NodeRef;
  aligned: boolean;
  b: NodeRef;
  common: NodeRef | null;
  counts: [number, number];
  diff: CompareValue[];
  first: number | null;
  from: number;
  knowledge: NodeRef[];
  matched: {alike: number; only: [number, number]; same: number};
  more_diff: boolean;
  parted: number | null;
  rows: number;
  steps: CompareStep[];
  verified: boolean;
}

export interface ViewEntry {
  changed: boolean;
  count?: number;
  key: string;
  kind: JsonKind;
  many?: boolean;
  value?: Value | null;
}

export interface ViewExtent {
  entries: number;
  entry: number | null;
  part: number;
  parts: boolean;
}

export interface ViewFinding {
  agent?: string;
  col?: number;
  id?: string;
  lane?: number;
  n?: number;
  seq?: number;
  t?: number | null;
  code: string;
  detail: string;
}

export interface ViewHeat {
  axis: 'time' | 'order';
  bins: number;
  cells: number[];
  from: number;
  lanes: number;
  max: number;
  to: number;
  total: number;
}

export interface ViewLane {
  agent: string;
  first: number;
  last: number;
  nodes: number;
  verdict: 'unchecked' | 'valid' | 'tainted' | 'invalid';
}

export interface ViewLevel {
  entries: ViewEntry[];
  kind: JsonKind;
  more: boolean;
  pointer: string;
  value?: Value | null;
}

export interface ViewNode {
  agent: string;
  col: number;
  id: string;
  lane: number;
  n: number;
  seq: number;
  t: number | null;
  changes: ViewChange[];
  child_count: number;
  children: NodeRef[];
  event: Value;
  failed: boolean;
  findings: {code: string; detail: string}[];
  fold: number;
  fork: string;
  hash: string;
  in_graph: boolean;
  line: number;
  lineage: number | null;
  more_changes: boolean;
  next_own: number | null;
  override: number;
  parents: NodeRef[];
  place: string | null;
  prev_hash: string;
  prev_own: number | null;
  snapshots: ViewSnapshot[];
  verified: boolean;
}

export interface ViewNodes {
  code: number[];
  col: number[];
  fold: number[];
  fork: number[];
  label?: string[];
  lane: number[];
  marks: number[];
  n: number[];
  span?: (number | null)[];
  t: (number | null)[];
}

export interface ViewOverview {
  bins: number;
  cells: number[];
  from: number;
  marks: number[];
  to: number;
}

export interface ViewReach {
  carries: ViewCarrier[];
  cut: boolean;
  follows: number[];
  follows_total: number;
  node: NodeRef;
  size: number;
  total: number;
  verified: boolean;
}

export interface ViewSnapshot {
  actor: string;
  created_ns: number;
  entries: number;
  number: number;
  root: string;
  sealed: boolean;
}

export interface ViewSource {
  agent: string;
  col: number;
  id: string;
  lane: number;
  n: number;
  seq: number;
  t: number | null;
  text: string;
}

export interface ViewStep {
  agent: string;
  arguments?: StepText;
  at: number;
  because?: StepText;
  call_id?: string;
  calls?: StepCall[];
  col: number;
  component?: string;
  cost_usd?: number | null;
  data?: StepText;
  duration_ns?: number | null;
  error?: StepText;
  event_type?: string;
  failed?: boolean;
  id: string;
  images?: number | null;
  input?: {role: string; text?: StepText}[];
  kind?: string;
  lane: number;
  model?: string;
  n: number;
  name?: string;
  pictures?: StepPicture[];
  result?: StepText;
  role?: string;
  seq: number;
  source?: string;
  status?: string;
  t: number | null;
  text?: StepText;
  thinking?: StepText;
  tokens_input?: number | null;
  tokens_output?: number | null;
  tool?: string;
}

export interface ViewSteps {
  from: number;
  next: number | null;
  steps: ViewStep[];
  total: number;
}

export interface ViewSummary {
  agents: number;
  columns: number;
  errors: number;
  findings: ViewFinding[];
  fold: boolean;
  lanes: ViewLane[];
  nodes: number;
  rows: number;
  time: number[];
  verified: boolean;
  warnings: number;
}

export interface ViewWindow {
  cut: boolean;
  edges: number[];
  from: number;
  nodes: ViewNodes;
  to: number;
}

export interface ViewWrite {
  agent: string;
  col: number;
  id: string;
  lane: number;
  n: number;
  seq: number;
  t: number | null;
  because?: string;
  new: Value | null;
  old: Value | null;
  source?: ViewSource;
  text?: string;
  thinking?: string;
  via: Via;
}

export interface ViewWrites {
  changes: ViewWrite[];
  key: string;
  more: number;
  next: NodeRef | null;
  node: string;
  section: Section;
}

export interface Wakeup {
  agent: string;
  complete: boolean;
  wakeups: WakeupRow[];
}

export interface WakeupRow {
  began_at: string | null;
  complete: boolean;
  types: Record<string, {state: string; trace_id: string | null}>;
}

export interface Worktree {
  branch: string;
  head: string;
  orphan: boolean;
  path: string;
  run_id: string;
}

export interface Worktrees {
  execution_authority: string;
  items: Worktree[];
}

// types.ts - what /api/v1/covenant answers (docs/formats/trace.md §11).

export interface Verdict {
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
  verdict: 'holds' | 'broken' | 'indeterminate';
  warnings: string[];
}

/** The answer about one trace; the trace itself is read apart, without losing a digit. */
export interface TraceAnswer {
  conflicts: {actor: string; seq: number; content_sha256: string; received_at: string}[];
  entry: {actor: string; capture: string; content_sha256: string; received_at: string; seq: number};
  level: string;
  proof: {journal_root: string; journal_size: number; leaf: string};
  verdict: Verdict;
}

export interface Row {
  trace_id: string;
  agent_id_hash: string;
  trace_type: string | null;
  trace_level: string;
  timestamp: string;
  task_id: string | null;
  selected_action: string | null;
  action_success: boolean | null;
  signature_verified: boolean;
  conscience: {passed: boolean | null; overridden: boolean | null};
  scores: {csdma: number | null; k_eff: number | null};
  idma: {
    check: string | null;
    fragility_flag: boolean | null;
    phase: string | null;
    phase_computed: string | null;
  };
  audit: {seq: number | null; hash: string | null};
}

export interface Around {
  agent_id_hash: string;
  batch: {
    batch_id: string;
    received: number;
    accepted: number;
    rejected: number;
    correlation_metadata: Record<string, unknown> | null;
  } | null;
  next: Row | null;
  nodes: (string | null)[];
  previous: Row | null;
  row: Row;
}

export interface Checked {
  left_out: number;
  results: Verdict[];
}

// types.ts - what the endpoints answer.

export interface Actor {
  actor: string;
  journal_size: number;
  journal_root: string;
  memories_root: string;
  edges_root: string;
  overall_root: string;
  scheme: string;
}

export interface Roots {
  actors: Actor[];
}

export interface Snapshot {
  snapshot: number;
  created_ns: number;
  journal_size: number;
  overall_root: string;
  live_memories: number;
  edges: number;
  trigger: string;
  signed_by: string | null;
  sealed: boolean;
}

export interface Snapshots {
  count: number;
  items: Snapshot[];
}

export interface Checkpoints {
  items: {origin: string; size: number; root: string; note: string}[];
}

export interface Memories {
  memories: {uri: string; forms: {short: string}}[];
  next: string | null;
}

// types.ts - what /api/v1/view answers (docs/formats/view.md).

import type {Section} from '../../base/focus';
import type {Sent} from '../../ui/value';

export interface NodeRef {
  agent: string;
  col: number;
  id: string;
  lane: number;
  n: number;
  seq: number;
  t: number | null;
}

export interface Lane {
  agent: string;
  first: number;
  last: number;
  nodes: number;
  verdict: 'unchecked' | 'valid' | 'tainted' | 'invalid';
}

export interface Finding extends Partial<NodeRef> {
  code: string;
  detail: string;
}

export interface Summary {
  agents: number;
  columns: number;
  errors: number;
  findings: Finding[];
  fold: boolean;
  lanes: Lane[];
  nodes: number;
  rows: number;
  time: [number, number] | [];
  verified: boolean;
  warnings: number;
}

export interface Overview {
  bins: number;
  /** lane, bin, nodes, marks; again and again */
  cells: number[];
  from: number;
  to: number;
  /** kind, column, node */
  marks: number[];
}

export interface Window {
  cut: boolean;
  /** parent, its column, its lane, child, its column, its lane, type, fork */
  edges: number[];
  from: number;
  to: number;
  nodes: {
    code: number[];
    col: number[];
    fold: number[];
    fork: number[];
    label?: string[];
    lane: number[];
    marks: number[];
    n: number[];
    t: (number | null)[];
  };
}

export interface Change {
  key: string | null;
  new: Sent | null;
  old: Sent | null;
  section: Section;
  via: 'delta' | 'merge';
}

/** A state that the ledger holds, taken behind this event. */
export interface Held {
  actor: string;
  created_ns: number;
  entries: number;
  number: number;
  root: string;
  sealed: boolean;
}

export interface NodeDetail extends NodeRef {
  changes: Change[];
  more_changes: boolean;
  children: NodeRef[];
  child_count: number;
  event: Sent;
  findings: {code: string; detail: string}[];
  fold: number;
  fork: string;
  hash: string;
  in_graph: boolean;
  line: number;
  lineage: number | null;
  next_own: number | null;
  /** How often somebody's decision was set aside. */
  override: number;
  parents: NodeRef[];
  prev_hash: string;
  prev_own: number | null;
  snapshots: Held[];
  verified: boolean;
}

export interface Entry {
  changed: boolean;
  key: string;
  kind: 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null';
  value?: Sent | null;
  count?: number;
  many?: boolean;
}

export interface Level {
  entries: Entry[];
  kind: Entry['kind'];
  more: boolean;
  pointer: string;
  value?: Sent | null;
}

export interface Write extends NodeRef {
  new: Sent | null;
  old: Sent | null;
  via: 'delta' | 'merge';
}

export interface Writes {
  changes: Write[];
  key: string;
  more: number;
  next: NodeRef | null;
  node: string;
  section: Section;
}

export const MARK = {
  merge: 1,
  head: 2,
  root: 4,
  error: 8,
  warning: 16,
  noOrder: 32,
  leftOut: 64,
  override: 128,
} as const;
export const EDGE = {lineage: 0, fork: 1, merge: 2, causal: 3} as const;
export const FORKS = ['', 'natural', 'observation', 'injection', 'unknown'] as const;
export const CODES = [
  'E_AMBIGUOUS',
  'E_CONTAIN',
  'E_CYCLE',
  'E_DUP_ID',
  'E_FORK_TYPE',
  'E_HASH',
  'E_HEAD',
  'E_ID',
  'E_LINEAGE',
  'E_MISSING_PARENT',
  'E_ROOT',
  'E_SCHEMA',
  'E_SEAL',
  'E_SEAL_MISSING',
  'E_SEQ_DUP',
  'E_SEQ_GAP',
  'E_TIME',
  'E_VERSION',
  'W_TIME',
] as const;

/** What the codes mean, for people. */
export const MEANING: Record<string, string> = {
  E_AMBIGUOUS: 'its fields could be read in two ways',
  E_CONTAIN: 'its predecessor is not among its parents',
  E_CYCLE: 'it would have to come before itself',
  E_DUP_ID: 'an earlier event has the same id',
  E_FORK_TYPE: 'its kind of fork is not known',
  E_HASH: 'its content does not match its hash: it was changed, or the hash was',
  E_HEAD: 'the newest event is not the one that was noted elsewhere',
  E_ID: 'its id is not its hash',
  E_LINEAGE: 'it does not follow from the event before it',
  E_MISSING_PARENT: 'an event it descends from is not there',
  E_ROOT: 'the whole is not what was noted elsewhere',
  E_SCHEMA: 'a field is missing or of the wrong kind',
  E_SEAL: 'its changes, time or fork were altered after it was sealed',
  E_SEAL_MISSING: 'it has no seal',
  E_SEQ_DUP: 'two events have one number',
  E_SEQ_GAP: 'events before it are missing',
  E_TIME: 'it is dated before an event it descends from',
  E_VERSION: 'its format version is not known',
  W_TIME: 'it is dated before an event it descends from',
};

// types.ts - answers of /api/v1/view (docs/formats/view.md), and the meanings of their numbers and
// codes.

export type {
  NodeRef,
  ViewChange as Change,
  ViewEntry as Entry,
  ViewFinding as Finding,
  ViewLane as Lane,
  ViewLevel as Level,
  ViewNode as NodeDetail,
  ViewOverview as Overview,
  ViewSnapshot as SnapshotMark,
  ViewSummary as Summary,
  ViewWindow as Window,
  ViewWrite as Write,
  ViewWrites as Writes,
} from '../../base/api-types';

export const MARK = {
  merge: 1,
  head: 2,
  root: 4,
  error: 8,
  warning: 16,
  noOrder: 32,
  leftOut: 64,
  override: 128,
  failed: 2048,
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
  E_AMBIGUOUS: 'its fields are ambiguous',
  E_CONTAIN: 'its predecessor is not among its parents',
  E_CYCLE: 'it is its own ancestor (cycle)',
  E_DUP_ID: 'an earlier event has the same id',
  E_FORK_TYPE: 'its fork type is unknown',
  E_HASH: 'its content does not match its hash: one of the two was changed',
  E_HEAD: 'the newest event does not match the external anchor',
  E_ID: 'its id does not match its hash',
  E_LINEAGE: 'it does not follow from the event before it',
  E_MISSING_PARENT: 'a parent event is missing',
  E_ROOT: 'the root does not match the external anchor',
  E_SCHEMA: 'a field is missing or has the wrong type',
  E_SEAL: 'its changes, time or fork were altered after it was sealed',
  E_SEAL_MISSING: 'it has no seal',
  E_SEQ_DUP: 'two events have the same sequence number',
  E_SEQ_GAP: 'events before it are missing',
  E_TIME: 'its timestamp is earlier than that of an ancestor',
  E_VERSION: 'its format version is unknown',
  W_TIME: 'its timestamp is earlier than that of an ancestor',
};

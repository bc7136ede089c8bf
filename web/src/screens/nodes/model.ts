// model.ts - a fleet as the server returns it (GET /api/v1/nodes), in words. Pure.

import type {FleetEvent, FleetLag, FleetNode, FleetNodes, FleetPart} from '../../base/api-types';
import {count, duration, plural} from '../../base/format';
import type {Tone} from '../../ui/badge';

export type {FleetEvent, FleetLag, FleetNode, FleetNodes, FleetPart};

export interface Sign {
  word: string;
  tone: Tone;
}

/** The server asks its database every two seconds: older than this is not what is now. */
export const OLD_MS = 7000;

export function partSign(part: FleetPart): Sign {
  if (part.stopped) return {word: 'stopped', tone: 'bad'};
  if (part.moved) return {word: 'moved', tone: 'plain'};
  if (part.served) return {word: 'served', tone: 'good'};
  if (part.node !== null) return {word: 'opening', tone: 'warn'};
  return {word: 'no owner', tone: 'warn'};
}

export function nodeSign(node: FleetNode): Sign {
  if (node.state === 'silent') return {word: 'silent', tone: 'bad'};
  if (node.state === 'drains') return {word: 'draining', tone: 'warn'};
  if (node.role === 'serves') return {word: 'serving', tone: 'good'};
  if (node.role === 'opens') return {word: 'opening', tone: 'info'};
  return {word: 'waiting', tone: 'plain'};
}

/** A node that was killed and started again has two rows for a while: the newest one is the node. */
export function newestNodes(nodes: readonly FleetNode[]): FleetNode[] {
  const newest = new Map<string, FleetNode>();
  for (const node of nodes) {
    const key = `${node.part} ${node.node}`;
    const known = newest.get(key);
    if (!known || node.up_ms <= known.up_ms) newest.set(key, node);
  }
  return [...newest.values()];
}

/** As the database said: it is renewed more often than it is asked for. Of old rows less is left. */
export function leaseLeft(part: FleetPart, ageMs: number): string {
  const ms = part.lease_left_ms - (ageMs > OLD_MS ? ageMs : 0);
  return ms > 0 ? `${Math.ceil(ms / 1000)} s` : '\u2013';
}

export function sinceMs(ms: number): string {
  return duration(Math.max(0, Math.floor(ms / 1000)));
}

const EVENTS: Record<string, [string, Tone, string]> = {
  take: ['taken', 'info', '{node} took {part}, which was free'],
  fenced: ['fenced', 'warn', '{node} found that another process has {part}, and wrote nothing'],
  released: ['released', 'warn', '{node} ended the lease of its dead worker on {part}'],
  stopped: ['stopped', 'bad', '{node} stopped {part}'],
  accepted: ['accepted', 'good', 'an operator accepted the state of {part}'],
  moved: ['moved', 'plain', '{part} was moved to another database'],
};

/** Of a later server there may be kinds that are not known here. */
export function eventSign(event: FleetEvent): Sign {
  const known = EVENTS[event.kind];
  return known ? {word: known[0], tone: known[1]} : {word: event.kind, tone: 'plain'};
}

/** What happened, in one sentence. */
export function eventWords(event: FleetEvent): string {
  const names: Record<string, string> = {
    node: event.node ?? 'a process',
    part: event.part ?? 'a part',
  };
  const words =
    event.kind === 'take' && event.ended_lease
      ? '{node} took {part} after the lease of its owner ran out'
      : (EVENTS[event.kind]?.[2] ?? '{node}, {part}');
  return (
    words.replace(/\{(\w+)\}/g, (_, name: string) => names[name]!) +
    (event.detail ? `: ${event.detail}` : '')
  );
}

/** How many commits of the log are not in the tables, in the index, yet. */
function lagOf(commits: number, lag: FleetLag): Sign {
  const lags = lag.log_commits - commits;
  return lags > 0
    ? {word: `lags by ${plural(lags, 'commit')}`, tone: 'info'}
    : {word: 'current', tone: 'good'};
}

export const tableLag = (lag: FleetLag): Sign => lagOf(lag.table_commits, lag);

export const indexLag = (lag: FleetLag): Sign =>
  lag.index_away ? {word: 'not reachable', tone: 'bad'} : lagOf(lag.index_commits, lag);

export interface Notice {
  title: string;
  words: string;
}

/**
 * Why what is shown may not be what is now; null when nothing speaks against it. `failed` is why the
 * last question had no answer, `ageMs` how old the rows are.
 */
export function notice(now: FleetNodes, ageMs: number, failed: string | null): Notice | null {
  const old = now.age_ms === null ? '' : ` What is shown is ${sinceMs(ageMs)} old.`;
  const soon = ' It is asked again until it answers.';
  if (failed !== null) return {title: 'This address does not answer', words: failed + old + soon};
  if (now.away || now.age_ms === null)
    return {title: 'The database of the fleet does not answer', words: (old + soon).trim()};
  return ageMs > OLD_MS
    ? {title: 'What is shown is old', words: `The newest answer is of ${sinceMs(ageMs)} ago.`}
    : null;
}

/** The page of another node, when its address is one that a browser can open. */
export function pageOf(address: string, here: {protocol: string; host: string}): string | null {
  return /^([a-z0-9.-]+|\[[0-9a-f:]+\]):\d{1,5}$/i.test(address) &&
    !/^(0\.0\.0\.0|\[::\]):/.test(address) &&
    address !== here.host
    ? `${here.protocol}//${address}/#/nodes`
    : null;
}

export const connectionWords = (of: FleetNodes['connections']): string =>
  of ? `${count(of.own)} here, ${count(of.other)} handed on, ${count(of.held)} held` : '';

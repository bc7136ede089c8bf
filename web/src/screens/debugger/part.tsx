// part.tsx - a long history of an agent, a session or a run is shown in parts: what is looked at is read, and not all that was
// recorded before it.

import {get, isLive, segments} from '../../base/api';
import type {ViewExtent} from '../../base/api-types';
import {count} from '../../base/format';
import {adjust, route} from '../../base/router';
import {Empty} from '../../ui/states';
import type {Model} from './model';

/** A history of fewer entries is opened as a whole. */
const WHOLE_MOST = 8192;
/** Names of a step that are the same in the whole and in every part. */
const HASH = /^[0-9a-f]{64}$/;
const PLACE = /^(at:\d{1,9}:\d{1,15}(~\d+)?|src:.+)$/;

/** Entries `from` .. `from` + `size` - 1 of `entries`. */
export interface Part {
  from: number;
  size: number;
  entries: number;
}

/** Parts overlap by a half, so that what is at the edge of one has neighbours in the next. */
export function partOf(entry: number, extent: {entries: number; size: number}): Part {
  const half = extent.size / 2;
  return {from: Math.max(0, Math.floor(entry / half) * half - half), ...extent};
}

export function lastEntry(part: Part): number {
  return Math.min(part.from + part.size, part.entries) - 1;
}

/**
 * The part that the address asks for; null = the whole. A number counts in what was opened, so a "#N" without a part is of
 * the whole; and so is a name that is no step of this agent.
 */
export function choosePart(
  extent: ViewExtent,
  wanted: string | undefined,
  node: string | null,
): Part | null {
  const of = {entries: extent.entries, size: extent.part};
  if (!extent.parts || wanted === 'all') return null;
  if (wanted && /^\d{1,15}$/.test(wanted) && Number(wanted) < extent.entries)
    return {from: Number(wanted), ...of};
  if (extent.entries <= WHOLE_MOST) return null;
  if (extent.entry !== null) return partOf(extent.entry, of);
  return node === null || node.startsWith('@') ? partOf(extent.entries - 1, of) : null;
}

export function extentOf(
  name: string,
  node: string | null,
  abort?: AbortSignal,
): Promise<ViewExtent> {
  const named = isSession(name) ? PLACE : HASH;
  return get<ViewExtent>(
    `/api/v1/view/${segments(name)}/extent`,
    node && named.test(node) ? {node} : {},
    abort,
  );
}

export function isSession(name: string): boolean {
  return name.startsWith('session/');
}

export function isRun(name: string): boolean {
  return name.startsWith('run/');
}

export function hasParts(name: string): boolean {
  return isLive() && /^(agent|session|run)\//.test(name);
}

/** What names a step in other parts: hashes of a session's nodes are of the part alone. */
export function nameOf(name: string, at: {hash: string; place: string | null}): string | null {
  return isSession(name) ? at.place : at.hash;
}

/**
 * What names the first or the newest step of a part; the first of these that there is. In a session it is that of a line,
 * from 1, or of a record of a document or text, from 0.
 */
export function edgeNames(name: string, part: Part, entries: number, newest: boolean): string[] {
  const end = Math.min(part.from + part.size, entries);
  if (isSession(name))
    return newest ? [`at:0:${end}`, `at:0:${end - 1}`] : [`at:0:${part.from + 1}`];
  if (newest && !isRun(name)) return ['@' + name.slice(name.indexOf('/') + 1)];
  return [newest ? `#${end - 1 - part.from}` : '#0'];
}

/** Which part it is, and the way to the others. */
export function PartBar({model}: {model: Model}) {
  const part = model.part;
  if (!part)
    return route.value.query['part'] === 'all' ? (
      <div class="part-bar" role="group" aria-label="Part of the history">
        <span class="dim">The whole history is open.</span>
        <button type="button" onClick={() => adjust({part: null, node: null})}>
          Show the newest part
        </button>
      </div>
    ) : null;
  const entries = model.entries.value;
  const last = lastEntry({...part, entries});
  return (
    <div class="part-bar" role="group" aria-label="Part of the history">
      <span>{`Entries ${count(part.from)} to ${count(last)} of ${count(entries)}`}</span>
      <button
        type="button"
        disabled={part.from === 0}
        onClick={() => adjust({part: '0', node: null})}
      >
        First
      </button>
      <button type="button" disabled={part.from === 0} onClick={() => void model.goPart(false)}>
        Earlier
      </button>
      <button type="button" disabled={!model.hasLater} onClick={() => void model.goPart(true)}>
        Later
      </button>
      <button
        type="button"
        disabled={!model.hasLater}
        onClick={() => adjust({part: null, node: null})}
      >
        Newest
      </button>
      <button type="button" onClick={() => void model.openWhole()}>
        Whole history
      </button>
    </div>
  );
}

/** In place of an answer that depends on what came before the part. */
export function NeedsWhole({model, what}: {model: Model; what: string}) {
  return (
    <Empty title={`${what} depends on all steps before`}>
      <p>{`This part begins at entry ${count(model.part?.from ?? 0)}.`}</p>
      <button type="button" onClick={() => void model.openWhole()}>
        {`Read the whole history: ${count(model.entries.value)} entries`}
      </button>
    </Empty>
  );
}
